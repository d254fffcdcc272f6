//! Times on the command line.

use std::time::Duration;

/// A time such as `60s`, `1.5m`, `500ms` or `90`.
///
/// # Errors
/// Anything else.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time; write 60s, 5m or 500ms");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    let seconds = number * scale;
    // A year: longer than any search, short enough for clocks.
    if seconds > 0.0 && seconds < 3.2e7 { Ok(Duration::from_secs_f64(seconds)) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_units_are_parsed() {
        for (text, seconds) in [("60s", 60.0), ("1.5m", 90.0), ("500ms", 0.5), ("2", 2.0), ("1h", 3600.0)] {
            assert_eq!(duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "s", "-1s", "0", "5 parsecs", "nan", "1e300s", "inf"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
