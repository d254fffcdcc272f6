//! What happens to an axis, and by what a transform multiplies.

use ferrier_kernel::R2r;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What happens to an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// Left as it is.
    #[serde(rename = "none")]
    Identity,
    /// Complex to complex.
    Complex,
    /// Real to complex forward (n to n/2+1), complex to real backward.
    Real,
    /// Cosines, type 1 (at least two points). Backward is type 1 too.
    Dct1,
    /// Cosines, type 2. Backward is type 3.
    Dct2,
    /// Cosines, type 3. Backward is type 2.
    Dct3,
    /// Cosines, type 4. Backward is type 4 too.
    Dct4,
    /// Sines, type 1. Backward is type 1 too.
    Dst1,
    /// Sines, type 2. Backward is type 3.
    Dst2,
    /// Sines, type 3. Backward is type 2.
    Dst3,
    /// Sines, type 4. Backward is type 4 too.
    Dst4,
}

impl Kind {
    /// All kinds with the names that users type.
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

    /// The name that users type.
    pub fn name(self) -> &'static str {
        Kind::NAMES.iter().find(|(_, kind)| *kind == self).map_or("none", |(name, _)| name)
    }

    /// The cosine or sine transform that it is.
    pub fn r2r(self) -> Option<R2r> {
        match self {
            Kind::Identity | Kind::Complex | Kind::Real => None,
            Kind::Dct1 => Some(R2r::Dct1),
            Kind::Dct2 => Some(R2r::Dct2),
            Kind::Dct3 => Some(R2r::Dct3),
            Kind::Dct4 => Some(R2r::Dct4),
            Kind::Dst1 => Some(R2r::Dst1),
            Kind::Dst2 => Some(R2r::Dst2),
            Kind::Dst3 => Some(R2r::Dst3),
            Kind::Dst4 => Some(R2r::Dst4),
        }
    }

    /// Modes of `n` points.
    pub fn modes(self, n: usize) -> usize {
        if self == Kind::Real { n / 2 + 1 } else { n }
    }

    /// By what forward and backward together multiply where neither is
    /// scaled: the length of the Fourier transform behind `n` points (1 where
    /// there is none). For cosines and sines 2n, but 2(n-1) for
    /// [`Kind::Dct1`] and 2(n+1) for [`Kind::Dst1`], as in `scipy.fft`.
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

/// By what a transform multiplies; N is the product of the transformed axes'
/// [sizes](Kind::size).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// 1.
    #[serde(rename = "none")]
    Unscaled,
    /// 1/N.
    Full,
    /// 1/sqrt(N). Cosines and sines are orthogonal then, as with
    /// `norm="ortho"` of `scipy.fft`: the first and last elements of types 1,
    /// 2 and 3 get the factors that this takes.
    Symmetric,
}

impl Scale {
    pub fn factor(self, n: f64) -> f64 {
        match self {
            Scale::Unscaled => 1.0,
            Scale::Full => 1.0 / n,
            Scale::Symmetric => 1.0 / n.sqrt(),
        }
    }
}

/// The kinds of the axes as users type them.
pub fn names(kinds: [Kind; 3]) -> String {
    kinds.map(Kind::name).join(",")
}
