//! The type of an entry of the table of kernels.

use crate::lines::Lines;
use crate::spec::LinesSpec;

/// Constructs the lines of a kernel.
pub(crate) type MakeLines<T> = fn(&LinesSpec) -> Box<dyn Lines<T>>;

/// An entry of the table of kernels.
#[derive(Debug)]
#[non_exhaustive]
pub struct KernelEntry {
    /// The name users type.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    /// Whether it can be used on this machine; `None`: always.
    pub(crate) check: Option<fn() -> Result<(), String>>,
    pub(crate) f32: MakeLines<f32>,
    pub(crate) f64: MakeLines<f64>,
}

impl KernelEntry {
    /// Whether this kernel can be used on this machine.
    ///
    /// # Errors
    /// The library that was not found, and where it was searched.
    pub fn check(&self) -> Result<(), String> {
        self.check.map_or(Ok(()), |check| check())
    }
}
