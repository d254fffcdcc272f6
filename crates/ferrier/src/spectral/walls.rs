//! What holds at the two ends of an axis, and the transforms that fit it.

use crate::Kind;

/// What holds at the two ends of an axis.
///
/// ```
/// use ferrier::{Problem, spectral::{Walls, kinds_between}};
/// // A channel: periodic along and across, no slip at the walls.
/// let kinds = kinds_between([Walls::Periodic, Walls::Periodic, Walls::Dirichlet]);
/// let problem = Problem::mixed([32, 32, 24], kinds);
/// # problem.check()?;
/// # Ok::<(), ferrier::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Walls {
    /// They are the same place: Fourier series.
    Periodic,
    /// The slope is zero: cosines.
    Neumann,
    /// The value is zero: sines.
    Dirichlet,
}

impl Walls {
    /// Where point `i` of `n` is on an axis of length 1: between walls in the middle of its cell.
    pub fn place(self, i: usize, n: usize) -> f64 {
        (i as f64 + if self == Walls::Periodic { 0.0 } else { 0.5 }) / n as f64
    }
}

/// The transforms that turn derivatives of a real field between these walls
/// into factors; points lie at [`Walls::place`]. The last periodic axis is halved.
pub fn kinds_between(walls: [Walls; 3]) -> [Kind; 3] {
    let halved = walls.iter().rposition(|&walls| walls == Walls::Periodic);
    std::array::from_fn(|axis| match walls[axis] {
        Walls::Periodic if halved == Some(axis) => Kind::Real,
        Walls::Periodic => Kind::Complex,
        Walls::Neumann => Kind::Dct2,
        Walls::Dirichlet => Kind::Dst2,
    })
}
