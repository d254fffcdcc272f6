//! Which indices of an axis there are: kept modes, and space that is not zero.
//!
//! An axis of `n` points is always transformed as a whole, but an array need
//! not hold all of them. What it holds lies in *runs*: one, or two where the
//! lowest frequencies of both signs are kept.

use serde::{Deserialize, Serialize};

use crate::Kind;

/// Which modes of an axis are kept: forward drops the others right after the
/// axis is transformed, backward takes them as zero. The array holds the kept
/// ones only, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// All of them.
    #[default]
    All,
    /// The lowest frequencies, as many as a transform of this length has.
    ///
    /// - A complex axis keeps m modes in the order of `numpy.fft.fftfreq(m)`:
    ///   0, 1, .., then the negative ones, .., -1. Of an even m the mode m/2
    ///   is the negative one; +m/2 is dropped, and zero on the way back. (So
    ///   the spectrum of something real is only symmetric for an odd m.)
    /// - The halved axis of a real transform keeps the first m/2+1 modes, as
    ///   `numpy.fft.rfft` of length m has them. The last one of an even m < n
    ///   is the mode +m/2 as it stands, neither doubled nor halved; going
    ///   back its conjugate counts as mode -m/2, as for all others.
    /// - A cosine or sine axis keeps the first m modes.
    Lowest(usize),
    /// Those from the first to before the second, counted as the transform
    /// of the whole axis counts them.
    Range(usize, usize),
}

/// Neighbours: elements `at..at + len` of an array's axis are elements
/// `line..line + len` of the line that is transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub at: usize,
    pub line: usize,
    pub len: usize,
}

impl Run {
    /// All of a line.
    pub fn whole(len: usize) -> Vec<Run> {
        vec![Run { at: 0, line: 0, len }]
    }
}

/// How many elements an array has of a line.
pub(crate) fn held(runs: &[Run]) -> usize {
    runs.iter().map(|run| run.len).sum()
}

impl Keep {
    /// The modes of an axis of `n` points that are kept.
    pub(crate) fn runs(self, kind: Kind, n: usize) -> Vec<Run> {
        match self {
            Keep::All => Run::whole(kind.modes(n)),
            Keep::Range(from, to) => vec![Run { at: 0, line: from, len: to.saturating_sub(from) }],
            Keep::Lowest(m) => match kind {
                Kind::Complex => {
                    let (low, high) = (m.div_ceil(2), m / 2);
                    let both = [
                        Run { at: 0, line: 0, len: low },
                        Run { at: low, line: n.saturating_sub(high), len: high },
                    ];
                    // Runs that touch are one.
                    if m == n { Run::whole(n) } else { both.into_iter().filter(|run| run.len > 0).collect() }
                }
                _ => Run::whole(kind.modes(m)),
            },
        }
    }

    /// Is there something wrong with it?
    pub(crate) fn check(self, axis: usize, kind: Kind, n: usize) -> Result<(), String> {
        let modes = kind.modes(n);
        match self {
            Keep::All => Ok(()),
            _ if kind == Kind::None => {
                Err(format!("axis {axis} is not transformed, so it has no modes to keep; got {self:?}"))
            }
            Keep::Lowest(m) if m == 0 || m > n => {
                Err(format!("between 1 and {n} of the lowest modes of axis {axis} can be kept, got {m}"))
            }
            Keep::Range(from, to) if from >= to || to > modes => Err(format!(
                "a range of the {modes} modes of axis {axis} must not be empty or go beyond them, got {from}..{to}"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_modes_lie_as_numpy_has_them() {
        let modes = |keep: Keep, kind, n| -> Vec<usize> {
            keep.runs(kind, n).iter().flat_map(|run| run.line..run.line + run.len).collect()
        };
        assert_eq!(modes(Keep::Lowest(4), Kind::Complex, 8), [0, 1, 6, 7]);
        assert_eq!(modes(Keep::Lowest(3), Kind::Complex, 8), [0, 1, 7]);
        assert_eq!(modes(Keep::Lowest(1), Kind::Complex, 8), [0]);
        assert_eq!(modes(Keep::Lowest(8), Kind::Complex, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(modes(Keep::Lowest(4), Kind::Real, 8), [0, 1, 2]);
        assert_eq!(modes(Keep::Lowest(5), Kind::Real, 8), [0, 1, 2]);
        assert_eq!(modes(Keep::Lowest(3), Kind::Dct2, 8), [0, 1, 2]);
        assert_eq!(modes(Keep::Range(2, 4), Kind::Real, 8), [2, 3]);
        assert_eq!(modes(Keep::All, Kind::Real, 8), [0, 1, 2, 3, 4]);
    }
}
