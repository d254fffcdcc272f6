//! Which 1-D transform a kernel is asked for.

use serde::{Deserialize, Serialize};

/// A transform from reals to reals, with the conventions of `scipy.fft`
/// (`norm="backward"`: not scaled).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum R2r {
    /// Cosines, even about the first and the last point; at least two points.
    Dct1,
    /// Cosines, even about half a step before the first and after the last point.
    Dct2,
    /// The inverse of [`R2r::Dct2`], up to a scale.
    Dct3,
    /// Cosines, even at the left, odd at the right end.
    Dct4,
    /// Sines, odd about one step before the first and after the last point.
    Dst1,
    /// Sines, odd about half a step before the first and after the last point.
    Dst2,
    /// The inverse of [`R2r::Dst2`], up to a scale.
    Dst3,
    /// Sines, odd at the left, even at the right end.
    Dst4,
}

impl R2r {
    /// All of them.
    pub const ALL: [R2r; 8] =
        [R2r::Dct1, R2r::Dct2, R2r::Dct3, R2r::Dct4, R2r::Dst1, R2r::Dst2, R2r::Dst3, R2r::Dst4];

    /// The inverse transform, up to a factor of [`size`](R2r::size).
    pub fn inverse(self) -> R2r {
        match self {
            R2r::Dct2 => R2r::Dct3,
            R2r::Dct3 => R2r::Dct2,
            R2r::Dst2 => R2r::Dst3,
            R2r::Dst3 => R2r::Dst2,
            own => own,
        }
    }

    /// The length of the Fourier transform of the symmetric extension of `n` points.
    pub fn size(self, n: usize) -> usize {
        match self {
            R2r::Dct1 => 2 * n.saturating_sub(1),
            R2r::Dst1 => 2 * (n + 1),
            _ => 2 * n,
        }
    }
}

/// The kind of a 1-D transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// n complex in, n complex out, sign -1.
    Forward,
    /// n complex in, n complex out, sign +1.
    Backward,
    /// n real in, n/2+1 complex out, sign -1.
    RealForward,
    /// n/2+1 complex in, n real out, sign +1. The imaginary parts of the
    /// first and (for even n) the last element are taken as zero.
    RealBackward,
    /// n in, n out: a cosine or sine transform.
    R2r {
        /// Which one.
        kind: R2r,
        /// Whether its matrix is made orthogonal up to a factor, as scipy
        /// does for `norm="ortho"` (types 1, 2 and 3: the first or last
        /// elements get a factor of the root of 2, or of a half).
        ortho: bool,
        /// Whether elements are complex: real and imaginary parts are transformed separately.
        complex: bool,
    },
}

impl LineKind {
    /// Elements of a line of `n` points before the transform.
    pub fn len_in(self, n: usize) -> usize {
        if self == LineKind::RealBackward { n / 2 + 1 } else { n }
    }

    /// Elements of a line of `n` points after the transform.
    pub fn len_out(self, n: usize) -> usize {
        if self == LineKind::RealForward { n / 2 + 1 } else { n }
    }

    /// Scalars per element before the transform: 1 for real, 2 for complex.
    pub fn width_in(self) -> usize {
        match self {
            LineKind::RealForward | LineKind::R2r { complex: false, .. } => 1,
            _ => 2,
        }
    }

    /// Scalars per element after the transform.
    pub fn width_out(self) -> usize {
        match self {
            LineKind::RealBackward | LineKind::R2r { complex: false, .. } => 1,
            _ => 2,
        }
    }
}

/// Specification of [`Lines`](crate::Lines).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinesSpec {
    /// Points of a line (of the real line, for real kinds).
    pub n: usize,
    /// The transform.
    pub kind: LineKind,
    /// Every output is multiplied by this.
    pub scale: f64,
}
