//! Kinds of 1-D transforms, and scale factors.

use ferrier_kernel::R2r;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The 1-D transform of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// No transform.
    #[serde(rename = "none")]
    Identity,
    /// Complex to complex.
    Complex,
    /// Real to complex forward (n to n/2+1), complex to real backward.
    Real,
    /// Cosine transform of type 1 (at least two points). `backward` is type 1.
    Dct1,
    /// Cosine transform of type 2. `backward` is type 3.
    Dct2,
    /// Cosine transform of type 3. `backward` is type 2.
    Dct3,
    /// Cosine transform of type 4. `backward` is type 4.
    Dct4,
    /// Sine transform of type 1. `backward` is type 1.
    Dst1,
    /// Sine transform of type 2. `backward` is type 3.
    Dst2,
    /// Sine transform of type 3. `backward` is type 2.
    Dst3,
    /// Sine transform of type 4. `backward` is type 4.
    Dst4,
}

impl Kind {
    /// All kinds with their names on the command line.
    pub const NAMES: [(&'static str, Kind); 11] = [
        ("none", Kind::Identity),
        ("c2c", Kind::Complex),
        ("r2c", Kind::Real),
        ("dct1", Kind::Dct1),
        ("dct2", Kind::Dct2),
        ("dct3", Kind::Dct3),
        ("dct4", Kind::Dct4),
        ("dst1", Kind::Dst1),
        ("dst2", Kind::Dst2),
        ("dst3", Kind::Dst3),
        ("dst4", Kind::Dst4),
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        Kind::NAMES.iter().find(|(_, kind)| *kind == self).map_or("none", |(name, _)| name)
    }

    /// The cosine or sine transform; `None` for other kinds.
    pub fn r2r(self) -> Option<R2r> {
        let index = Kind::NAMES.iter().position(|(_, kind)| *kind == self)?;
        // Cosines and sines follow the other three kinds, in the order of `R2r::ALL`.
        R2r::ALL.get(index.checked_sub(3)?).copied()
    }

    /// Whether values are complex after a transform of this kind.
    pub(crate) fn is_fourier(self) -> bool {
        matches!(self, Kind::Complex | Kind::Real)
    }

    /// Number of modes of `n` points.
    pub fn modes(self, n: usize) -> usize {
        if self == Kind::Real { n / 2 + 1 } else { n }
    }

    /// The factor by which unscaled `forward` and `backward` together multiply: the length of the Fourier
    /// transform that `n` points amount to (1 for [`Kind::Identity`]). For cosine and sine transforms 2n, but
    /// 2(n-1) for [`Kind::Dct1`] and 2(n+1) for [`Kind::Dst1`], as in `scipy.fft`.
    pub fn size(self, n: usize) -> usize {
        match (self, self.r2r()) {
            (Kind::Identity, _) => 1,
            (_, Some(r2r)) => r2r.size(n),
            _ => n,
        }
    }
}

impl std::str::FromStr for Kind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Kind> {
        let found = Kind::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        found.ok_or_else(|| Error::UnknownName {
            what: "kind",
            name: name.into(),
            known: Kind::NAMES.map(|(name, _)| name).join(", "),
        })
    }
}

/// The sign of the exponent of `forward`; `backward` has the other one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sign {
    /// `e^(-2 pi i k x / n)`, as in numpy and FFTW's `FFTW_FORWARD`.
    #[default]
    Negative,
    /// `e^(+2 pi i k x / n)`.
    Positive,
}

impl Sign {
    pub(crate) fn is_negative(&self) -> bool {
        *self == Sign::Negative
    }
}

/// Scale factor of a transform; N is the product of the [sizes](Kind::size) of the transformed axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// 1.
    #[serde(rename = "none")]
    Unscaled,
    /// 1/N.
    Full,
    /// 1/sqrt(N). Cosine and sine transforms are then orthogonal, as with `norm="ortho"` of `scipy.fft`: the first
    /// and last elements of types 1, 2 and 3 get additional factors.
    Symmetric,
}

impl Scale {
    /// The factor for N = `n`.
    pub fn factor(self, n: f64) -> f64 {
        match self {
            Scale::Unscaled => 1.0,
            Scale::Full => 1.0 / n,
            Scale::Symmetric => 1.0 / n.sqrt(),
        }
    }
}

/// The names of the kinds, separated by commas.
pub(crate) fn names(kinds: [Kind; 3]) -> String {
    kinds.map(Kind::name).join(",")
}
