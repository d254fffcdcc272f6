//! Help texts that list the entries of a table.

use ferrier::{codec::CODECS, exchange::EXCHANGES, kernel::KERNELS};

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
    table("Implementation of the 1-D transforms", KERNELS.iter().map(|entry| (entry.name, entry.summary)))
}

/// Help of `--codec`, with the parameters of each.
pub fn codecs() -> String {
    let names: Vec<_> =
        CODECS.iter().map(|entry| (format!("{}{}", entry.name, entry.parameter), entry.summary)).collect();
    table("Encoding of messages", names.iter().map(|(name, summary)| (&**name, *summary)))
}
