//! Truncated spectra and zero-padded input: the indices of an axis that an array holds.
//!
//! An axis of `n` points is always transformed as a whole, but an array may hold only some of its points or modes.
//! They form *runs* of consecutive indices: one run, or two if the lowest frequencies of both signs are kept.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::Invalid;
use crate::kind::Kind;
use crate::layout::{Box3, Layout};

/// Which modes of an axis are kept: `forward` drops the others right after the axis is transformed, `backward`
/// treats them as zero. The array holds the kept modes only, consecutively.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// All modes.
    #[default]
    All,
    /// The lowest frequencies, as many as a transform of this length m has.
    ///
    /// - A complex axis keeps m modes in the order of `numpy.fft.fftfreq(m)`: 0, 1, .., then the negative ones,
    ///   .., -1. For an even m the mode of frequency m/2 is the negative one; +m/2 is dropped, and zero in
    ///   `backward`. (The kept spectrum of real data is therefore symmetric only for an odd m.)
    /// - The halved axis of a real transform keeps the first m/2+1 modes, as `numpy.fft.rfft` of length m has
    ///   them. The last mode of an even m < n is the mode +m/2 unchanged, neither doubled nor halved; in
    ///   `backward` its conjugate counts as mode -m/2, as for all other modes.
    /// - A cosine or sine axis keeps the first m modes.
    Lowest(usize),
    /// The half-open range from the first to the second number, in indices of the whole axis.
    Range(usize, usize),
}

/// A run of consecutive indices: elements `at..at + len` of an array's axis are elements `line..line + len` of the
/// transformed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexRun {
    /// First index in the array.
    pub at: usize,
    /// First index in the line.
    pub line: usize,
    /// Number of elements.
    pub len: usize,
}

impl IndexRun {
    /// One run for a whole line of `len` elements.
    pub fn whole(len: usize) -> Vec<IndexRun> {
        vec![IndexRun { at: 0, line: 0, len }]
    }
}

/// Number of elements of a line that an array holds.
pub fn total_len(runs: &[IndexRun]) -> usize {
    runs.iter().map(|run| run.len).sum()
}

impl Keep {
    /// The kept modes of an axis of `n` points.
    pub fn runs(self, kind: Kind, n: usize) -> Vec<IndexRun> {
        match self {
            Keep::All => IndexRun::whole(kind.modes(n)),
            Keep::Range(from, to) => vec![IndexRun { at: 0, line: from, len: to.saturating_sub(from) }],
            Keep::Lowest(m) => match kind {
                Kind::Complex => {
                    let (low, high) = (m.div_ceil(2), m / 2);
                    let both = [
                        IndexRun { at: 0, line: 0, len: low },
                        IndexRun { at: low, line: n.saturating_sub(high), len: high },
                    ];
                    // Adjacent runs are merged.
                    if m == n {
                        IndexRun::whole(n)
                    } else {
                        both.into_iter().filter(|run| run.len > 0).collect()
                    }
                }
                _ => IndexRun::whole(kind.modes(m)),
            },
        }
    }

    /// Checks that an axis of `n` points has these modes.
    pub(crate) fn check(self, axis: usize, kind: Kind, n: usize) -> Result<(), Invalid> {
        let modes = kind.modes(n);
        let fail =
            |message: String| Err(Invalid::new("keep", message).got(format!("{self:?} for axis {axis}")));
        match self {
            Keep::All => Ok(()),
            _ if kind == Kind::Identity => {
                fail(format!("axis {axis} is not transformed, so it has no modes to keep; got {self:?}"))
            }
            Keep::Lowest(m) if m == 0 || m > n => {
                fail(format!("between 1 and {n} of the lowest modes of axis {axis} can be kept, got {m}"))
            }
            Keep::Range(from, to) if from >= to || to > modes => fail(format!(
                "a range of the {modes} modes of axis {axis} must not be empty or go beyond them, got {from}..{to}"
            )),
            _ => Ok(()),
        }
    }
}

/// The modes of an axis that an array holds; for a sphere those of its bounding box.
pub(crate) fn modes(keep: Keep, sphere: Option<Radii>, axis: usize, kind: Kind, n: usize) -> Vec<IndexRun> {
    match sphere {
        Some(radii) => within(kind, n, radii.get()[axis] as usize, None),
        None => keep.runs(kind, n),
    }
}

/// The modes of an axis whose frequency is at most `highest`, in an array that holds `held` modes (`None`: only
/// these).
fn within(kind: Kind, n: usize, highest: usize, held: Option<usize>) -> Vec<IndexRun> {
    // An axis without points is an error of the problem, which is reported when it is planned.
    if kind != Kind::Complex || n == 0 {
        return IndexRun::whole(highest.saturating_add(1).min(kind.modes(n)));
    }
    let (positive, negative) = (highest.min((n - 1) / 2) + 1, highest.min(n / 2));
    let held = held.unwrap_or(positive + negative);
    if positive + negative == n {
        return IndexRun::whole(n);
    }
    let both = [
        IndexRun { at: 0, line: 0, len: positive },
        IndexRun { at: held - negative, line: n - negative, len: negative },
    ];
    both.into_iter().filter(|run| run.len > 0).collect()
}

/// The radii of an ellipsoid, stored as bits so that they can be compared and hashed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Radii([u64; 3]);

impl fmt::Debug for Radii {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.get())
    }
}

impl Radii {
    /// An ellipsoid with these radii, in frequencies.
    pub fn new(radii: [f64; 3]) -> Radii {
        Radii(radii.map(f64::to_bits))
    }

    /// The radius along each axis.
    pub fn get(self) -> [f64; 3] {
        self.0.map(f64::from_bits)
    }

    /// Whether a frequency is inside; exact for a sphere.
    pub fn contains(self, k: [usize; 3]) -> bool {
        let [a, b, c] = self.get();
        let k = k.map(|k| k as f64);
        match a == b && b == c {
            true => k.iter().map(|k| k * k).sum::<f64>() <= a * a,
            false => k.iter().zip([a, b, c]).map(|(k, r)| (k / r) * (k / r)).sum::<f64>() <= 1.0,
        }
    }

    /// The highest frequency of an axis for given frequencies of the others.
    fn highest(self, axis: usize, mut k: [usize; 3]) -> usize {
        k[axis] = self.get()[axis] as usize;
        while k[axis] > 0 && !self.contains(k) {
            k[axis] -= 1;
        }
        k[axis]
    }

    /// Checks that the radii are finite and the kinds allow a sphere.
    pub(crate) fn check(self, shape: [usize; 3], kinds: [Kind; 3]) -> Result<(), Invalid> {
        let fail =
            |message: String| Err(Invalid::new("keep_ellipsoid", message).got(format!("{:?}", self.get())));
        if self.get().iter().any(|r| r.is_nan() || *r < 0.0 || *r > 1e9) {
            return fail(format!("the radii of a sphere must be numbers from 0 to 1e9, got {self:?}"));
        }
        let fits = |axis: usize| match kinds[axis] {
            Kind::Complex => true,
            Kind::Real => axis == 2,
            kind => kind == Kind::Identity && axis == 0 && shape[0] == 1,
        };
        match (0..3).find(|&axis| !fits(axis)) {
            None => Ok(()),
            Some(axis) => fail(format!(
                "a sphere takes complex axes, axis 2 may be halved; axis {axis} is {}",
                kinds[axis].name()
            )),
        }
    }
}

/// The absolute frequency of a mode.
pub(crate) fn frequency(kind: Kind, n: usize, mode: usize) -> usize {
    if kind == Kind::Complex { mode.min(n - mode) } else { mode }
}

/// Lines of which an array holds runs that differ from line to line.
#[derive(Clone, Debug, PartialEq)]
pub struct Ragged {
    /// The axis along which the lines are numbered.
    pub lanes: usize,
    /// The runs that the array holds, by the index of the line along that axis.
    pub runs: Vec<Vec<IndexRun>>,
    /// Whether the runs of all lines are consecutive along the transformed axis, and the axis of the lines has
    /// length 1. Otherwise the array holds zeros for the elements outside the runs.
    pub merged: bool,
}

/// The columns of a sphere: pairs of modes of axes 1 and 2, sorted by the kept mode of axis 2, then of axis 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// The first column of each mode of axis 2; the last entry is the number of columns.
    starts: Vec<usize>,
    /// The columns as runs of the lines along axis 1, by the mode of axis 2.
    pub across: Ragged,
    /// The kept runs of the columns along axis 0.
    pub along: Ragged,
}

impl Columns {
    /// The columns of the ellipsoid in a spectrum of this shape.
    pub fn new(radii: Radii, shape: [usize; 3], kinds: [Kind; 3]) -> Columns {
        let lists = |runs: &[IndexRun]| -> Vec<usize> {
            runs.iter().flat_map(|run| run.line..run.line + run.len).collect()
        };
        let kept = |axis: usize| modes(Keep::All, Some(radii), axis, kinds[axis], shape[axis]);
        let k = |axis: usize, mode: usize| frequency(kinds[axis], shape[axis], mode);
        let (mut starts, mut across, mut along) = (vec![0], Vec::new(), Vec::new());
        for mode in lists(&kept(2)) {
            let k2 = k(2, mode);
            let start = along.len();
            let mut runs = within(kinds[1], shape[1], radii.highest(1, [0, 0, k2]), None);
            for mode in lists(&runs) {
                let highest = radii.highest(0, [0, k(1, mode), k2]);
                along.push(within(kinds[0], shape[0], highest, Some(total_len(&kept(0)))));
            }
            runs.iter_mut().for_each(|run| run.at += start);
            across.push(runs);
            starts.push(along.len());
        }
        Columns {
            starts,
            across: Ragged { lanes: 2, runs: across, merged: true },
            along: Ragged { lanes: 1, runs: along, merged: false },
        }
    }

    /// Number of columns.
    pub fn count(&self) -> usize {
        self.along.runs.len()
    }

    /// For each column its indices among the kept modes of axes 1 and 2.
    pub fn mode_indices(&self, kept: &[IndexRun]) -> Vec<[usize; 2]> {
        let mut indices = Vec::with_capacity(self.count());
        for (two, runs) in self.across.runs.iter().enumerate() {
            for line in runs.iter().flat_map(|run| run.line..run.line + run.len) {
                let run = kept.iter().find(|run| (run.line..run.line + run.len).contains(&line));
                indices.push([run.map_or(0, |run| run.at + line - run.line), two]);
            }
        }
        indices
    }

    /// The box of columns that a box of whole lines along axis 1 becomes.
    pub fn merged(&self, part: &Box3) -> Box3 {
        let [low, high] = [part.lo[2], part.hi[2]].map(|at| self.starts[at]);
        if part.is_empty() {
            return Box3::EMPTY;
        }
        Box3::new([part.lo[0], low, 0], [part.hi[0], high, 1])
    }

    /// Inverse of [`merged`](Self::merged), for lines of `n` elements.
    pub fn split(&self, part: &Box3, n: usize) -> Box3 {
        if part.is_empty() {
            return Box3::EMPTY;
        }
        let [low, high] = [part.lo[1], part.hi[1]].map(|at| self.starts.partition_point(|start| *start < at));
        Box3::new([part.lo[0], 0, low], [part.hi[0], n, high])
    }
}

/// The layout after a forward transform of `axis`: lines become modes, or columns.
pub(crate) fn transformed(
    layout: &Layout,
    axis: usize,
    modes: &[IndexRun],
    columns: Option<&Columns>,
) -> Layout {
    match columns.filter(|_| axis == 1) {
        Some(columns) => layout.map(|part| columns.merged(part)),
        None => layout.with_axis(axis, total_len(modes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_modes_are_in_the_order_of_numpy() {
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

    #[test]
    fn columns_cover_the_disc_and_runs_the_sphere() {
        for (shape, last) in
            [([12, 9, 8], Kind::Complex), ([12, 9, 8], Kind::Real), ([4, 30, 5], Kind::Complex)]
        {
            let kinds = [Kind::Complex, Kind::Complex, last];
            for radius in [0.0, 1.0, 2.5, 3.0, 4.2, 7.0] {
                let columns = Columns::new(Radii::new([radius; 3]), shape, kinds);
                let k = |axis: usize, mode| frequency(kinds[axis], shape[axis], mode) as f64;
                let inside = |m: [usize; 3]| {
                    (0..3).map(|axis| k(axis, m[axis]).powi(2)).sum::<f64>() <= radius * radius
                };
                let all = |axis: usize| 0..kinds[axis].modes(shape[axis]);
                let discs =
                    all(1).flat_map(|b| all(2).map(move |c| [0, b, c])).filter(|m| inside(*m)).count();
                assert_eq!(columns.count(), discs, "{shape:?} {radius}");
                let points = all(0).flat_map(|a| all(1).flat_map(move |b| all(2).map(move |c| [a, b, c])));
                let held: usize = columns.along.runs.iter().map(|runs| total_len(runs)).sum();
                assert_eq!(held, points.filter(|m| inside(*m)).count(), "{shape:?} {radius}");
                let whole = Box3::new([0; 3], [5, shape[1], columns.starts.len() - 1]);
                assert_eq!(columns.split(&columns.merged(&whole), shape[1]), whole);
            }
        }
    }
}
