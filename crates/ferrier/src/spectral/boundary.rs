//! Boundary conditions and the transforms that satisfy them.

use crate::Kind;

/// The boundary condition of an axis.
///
/// ```
/// use ferrier::{Problem, spectral::{Boundary, kinds_for}};
/// // A channel: periodic along two axes, no slip at the walls.
/// let kinds = kinds_for([Boundary::Periodic, Boundary::Periodic, Boundary::Dirichlet]);
/// let problem = Problem::mixed([32, 32, 24], kinds);
/// # problem.check()?;
/// # Ok::<(), ferrier::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// Periodic: Fourier series.
    Periodic,
    /// Zero normal derivative: cosine series.
    Neumann,
    /// Zero value: sine series.
    Dirichlet,
}

impl Boundary {
    /// Coordinate of point `i` of `n` on an axis of length 1. Non-periodic points are cell centres.
    pub fn place(self, i: usize, n: usize) -> f64 {
        (i as f64 + if self == Boundary::Periodic { 0.0 } else { 0.5 }) / n as f64
    }
}

/// The transforms that diagonalise derivatives of a real field with these
/// boundary conditions; its points are at [`Boundary::place`]. The last periodic
/// axis is halved.
pub fn kinds_for(boundaries: [Boundary; 3]) -> [Kind; 3] {
    let halved = boundaries.iter().rposition(|&boundary| boundary == Boundary::Periodic);
    std::array::from_fn(|axis| match boundaries[axis] {
        Boundary::Periodic if halved == Some(axis) => Kind::Real,
        Boundary::Periodic => Kind::Complex,
        Boundary::Neumann => Kind::Dct2,
        Boundary::Dirichlet => Kind::Dst2,
    })
}
