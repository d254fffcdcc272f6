//! Names of the tunables: Ferrier's, and those of the literature.

use crate::{Error, Result};

/// Tunables that are searched only if they are named: they matter less than the others, and each takes trials.
pub(super) const BY_NAME: [&str; 5] =
    ["polls after", "planes before", "lines before", "planes after", "lines after"];

/// Names of the literature on overlapped transforms, and of the tunables: tile size T, window W, sub-tiles of the
/// pass before an exchange (Px, Pz) and after it (Uy, Uz), polls in its steps (Fy and Fp, Fu and Fx, which are one
/// pass each here).
const ALIASES: [(&str, &str); 12] = [
    ("T", "tile"),
    ("W", "window"),
    ("Px", "planes before"),
    ("Pz", "lines before"),
    ("Uy", "planes after"),
    ("Uz", "lines after"),
    ("F", "polls"),
    ("Fy", "polls"),
    ("Fp", "polls"),
    ("Fu", "polls after"),
    ("Fx", "polls after"),
    ("staging", "pockets"),
];

/// Tunables of reshapes in tiles: the ten of the literature as far as passes have them, and two of Ferrier's (`cut` and
/// `arrays`). All but the last, `arrays`, matter only to passes beside a reshape.
pub const TILE_TUNABLES: [&str; 10] = [
    "tile",
    "window",
    "polls",
    "polls after",
    "planes before",
    "lines before",
    "planes after",
    "lines after",
    "cut",
    "arrays",
];

/// The other tunables.
const PLAN_TUNABLES: [&str; 13] = [
    "exchange", "kernel", "axes", "grid", "fuse", "stream", "pockets", "memory", "ranks", "progress",
    "packet", "packets", "threads",
];

/// The tunable called `name`, or known by it in the literature.
///
/// # Errors
/// [`Error::UnknownName`](crate::Error::UnknownName) lists the names that exist.
pub fn tunable(name: &str) -> Result<&'static str> {
    let own = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own);
    let names = || PLAN_TUNABLES.iter().chain(&TILE_TUNABLES);
    names().find(|known| **known == own || known.replace(' ', "-") == own).copied().ok_or_else(|| {
        let aliases = ALIASES.iter().take(11).map(|(alias, _)| *alias);
        let known = names().map(|known| known.replace(' ', "-")).chain(aliases.map(String::from));
        Error::UnknownName {
            what: "parameter",
            name: name.into(),
            known: known.collect::<Vec<_>>().join(", "),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_literature_are_known() {
        let all =
            ["T", "W", "Px", "Pz", "Uy", "Uz", "Fy", "Fp", "Fu", "Fx"].map(|name| tunable(name).unwrap());
        let after = ["planes before", "lines before", "planes after", "lines after"];
        assert_eq!(all[..2], ["tile", "window"]);
        assert_eq!(all[2..6], after);
        assert_eq!(all[6..], ["polls", "polls", "polls after", "polls after"]);
        assert_eq!(tunable("lines-after").unwrap(), "lines after");
        assert!(tunable("Q").unwrap_err().to_string().contains("lines-after"));
    }
}
