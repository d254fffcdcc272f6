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
    pub(crate) f32: MakeLines<f32>,
    pub(crate) f64: MakeLines<f64>,
}
