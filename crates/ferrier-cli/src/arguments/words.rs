//! Words of options: their values, times, and help that lists the entries of a table.

use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ferrier::{
    Compress, Precision, Progress,
    codec::CODECS,
    exchange::EXCHANGES,
    kernel::{INSTALLED, KERNELS},
};

/// Words of an option, with their help and values.
pub type Words<T> = [(&'static str, &'static str, T)];

/// The precision of a transform.
pub const PRECISIONS: &Words<Precision> =
    &[("f32", "Single", Precision::F32), ("f64", "Double", Precision::F64)];

/// Which messages are encoded.
pub const COMPRESS: &Words<Compress> = &[
    ("between-nodes", "Messages between nodes", Compress::BetweenNodes),
    ("between-ranks", "Messages between ranks", Compress::BetweenRanks),
];

/// How tiles in flight make progress.
pub const PROGRESS: &Words<Progress> =
    &[("poll", "Passes poll", Progress::Poll), ("thread", "A thread of each rank polls", Progress::Thread)];

/// A parser of these words.
pub fn words<T: Copy + Send + Sync + 'static>(table: &'static Words<T>) -> impl TypedValueParser<Value = T> {
    let values = table.iter().map(|(name, help, _)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|word| {
        let found = table.iter().find(|(name, ..)| *name == word);
        found.map(|(.., value)| *value).ok_or("not one of the words")
    })
}

/// The direction of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// Sign -1: numpy's fftn, rfftn.
    Forward,
    /// Sign +1: numpy's ifftn, irfftn.
    Backward,
}

/// The factor of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScaleName {
    /// 1 forward, 1/N backward.
    Numpy,
    /// 1.
    None,
    /// 1/N.
    Full,
    /// 1/sqrt(N).
    Symmetric,
}

/// Complex or real input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KindName {
    /// Complex to complex.
    C2c,
    /// Real to complex.
    R2c,
}

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

/// Help that lists the entries of a table.
pub fn table<'a>(what: &str, entries: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let list: Vec<_> = entries.map(|(name, summary)| format!("{name} ({summary})")).collect();
    format!("{what}: {}", list.join(", "))
}

/// Help of `--exchange`.
pub fn exchanges() -> String {
    table("How ranks exchange data", EXCHANGES.iter().map(|entry| (entry.name, entry.summary)))
}

/// Help of `--kernel`.
pub fn kernels() -> String {
    let entries = KERNELS.iter().chain(INSTALLED).map(|entry| (entry.name, entry.summary));
    table("Implementation of the 1-D transforms", entries)
}

/// Help of `--codec`, with the parameters of each.
pub fn codecs() -> String {
    let names: Vec<_> =
        CODECS.iter().map(|entry| (format!("{}{}", entry.name, entry.parameter), entry.summary)).collect();
    table("Encoding of messages", names.iter().map(|(name, summary)| (&**name, *summary)))
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
