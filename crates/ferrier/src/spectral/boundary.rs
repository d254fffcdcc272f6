//! What holds at the two ends of an axis, and the transforms that fit it.

use crate::Kind;

/// What holds at the two ends of an axis.
///
/// ```
/// use ferrier::{Problem, spectral::{Walls, kinds_for}};
/// // A channel: periodic along and across, no slip at the walls.
/// let kinds = kinds_for([Walls::Periodic, Walls::Periodic, Walls::Dirichlet]);
/// let problem = Problem::mixed([32, 32, 24], kinds);
/// # problem.check()?;
/// # Ok::<(), ferrier::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// They are the same place: Fourier series.
    Periodic,
    /// The slope is zero: cosines.
    Neumann,
    /// The value is zero: sines.
    Dirichlet,
}

impl Boundary {
    /// Where point `i` of `n` is on an axis of length 1: between walls in the middle of its cell.
    pub fn place(self, i: usize, n: usize) -> f64 {
        (i as f64 + if self == Boundary::Periodic { 0.0 } else { 0.5 }) / n as f64
    }
}

/// The transforms that turn derivatives of a real field between these walls
/// into factors; points lie at [`Boundary::place`]. The last periodic axis is halved.
pub fn kinds_for(walls: [Boundary; 3]) -> [Kind; 3] {
    let halved = walls.iter().rposition(|&walls| walls == Boundary::Periodic);
    std::array::from_fn(|axis| match walls[axis] {
        Boundary::Periodic if halved == Some(axis) => Kind::Real,
        Boundary::Periodic => Kind::Complex,
        Boundary::Neumann => Kind::Dct2,
        Boundary::Dirichlet => Kind::Dst2,
    })
}
