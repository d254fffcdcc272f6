//! Types of elements.

use std::str::FromStr;

use crate::Precision;

/// The types that files may have.
pub(crate) const SUPPORTED: &str = "float32, float64, complex64, complex128";

/// The type of the elements of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dtype {
    complex: bool,
    precision: Precision,
    big_endian: bool,
}

impl Dtype {
    /// Real or complex elements of this precision, in this machine's byte order.
    pub const fn new(complex: bool, precision: Precision) -> Self {
        Dtype { complex, precision, big_endian: cfg!(target_endian = "big") }
    }

    /// The same type in a byte order.
    #[must_use]
    pub const fn big_endian(self, big_endian: bool) -> Self {
        Dtype { big_endian, ..self }
    }

    /// The same type, real or complex.
    #[must_use]
    pub const fn complex(self, complex: bool) -> Self {
        Dtype { complex, ..self }
    }

    /// Does an element have a real and an imaginary part?
    pub const fn is_complex(self) -> bool {
        self.complex
    }

    /// The precision of each part.
    pub const fn precision(self) -> Precision {
        self.precision
    }

    /// Is the most significant byte of a scalar the first?
    pub const fn is_big_endian(self) -> bool {
        self.big_endian
    }

    /// Are bytes in the other order than this machine's?
    pub(crate) const fn is_swapped(self) -> bool {
        self.big_endian != cfg!(target_endian = "big")
    }

    /// Scalars of an element.
    pub(crate) const fn width(self) -> usize {
        if self.complex { 2 } else { 1 }
    }

    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        self.precision.bytes() * self.width()
    }

    /// numpy's and Zarr's name: `complex64` and so on.
    pub const fn name(self) -> &'static str {
        match (self.complex, self.precision) {
            (false, Precision::F32) => "float32",
            (false, Precision::F64) => "float64",
            (true, Precision::F32) => "complex64",
            (true, Precision::F64) => "complex128",
        }
    }

    /// The type called `name`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let types = [
            (false, Precision::F32),
            (false, Precision::F64),
            (true, Precision::F32),
            (true, Precision::F64),
        ];
        types
            .into_iter()
            .map(|(complex, precision)| Dtype::new(complex, precision))
            .find(|it| it.name() == name)
    }

    /// numpy's short name with the byte order: `<c8` and so on.
    pub fn descr(self) -> String {
        let order = if self.big_endian { '>' } else { '<' };
        format!("{order}{}{}", if self.complex { 'c' } else { 'f' }, self.bytes())
    }
}

/// numpy's names: `float32`, or `<f4`, `>f4` and `=f4` with a byte order.
impl FromStr for Dtype {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(dtype) = Dtype::named(text) {
            return Ok(dtype);
        }
        let unknown = || format!("its elements are of type '{text}'; supported are {SUPPORTED}");
        let (order, code) = text.split_at_checked(1).ok_or_else(unknown)?;
        let big = match order {
            "<" => false,
            ">" => true,
            "=" => cfg!(target_endian = "big"),
            _ => return Err(unknown()),
        };
        let dtype = match code {
            "f4" => Dtype::new(false, Precision::F32),
            "f8" => Dtype::new(false, Precision::F64),
            "c8" => Dtype::new(true, Precision::F32),
            "c16" => Dtype::new(true, Precision::F64),
            _ => return Err(unknown()),
        };
        Ok(dtype.big_endian(big))
    }
}
