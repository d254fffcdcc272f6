//! The wisdom that a plan was made from, on one line.

use ferrier::wisdom::Known;

/// The entry of wisdom that a plan was made from, and its age.
pub fn wisdom_line(known: Option<&Known>) -> String {
    match known {
        Some(known) => {
            let age = age(known.age());
            format!("wisdom: used (entry {} of {}, {age} old)\n", known.id, known.file.display())
        }
        None => "wisdom: none\n".into(),
    }
}

/// A number of seconds as text: `5 minutes`.
pub fn age(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7200 => (seconds / 60, "minute"),
        7200..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}
