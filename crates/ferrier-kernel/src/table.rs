//! The table of kernels.

use crate::entry::KernelEntry;
use crate::lines::Lines;
use crate::r2r::R2rLines;
use crate::real::Real;
use crate::spec::{LineKind, LinesSpec};
use crate::{fftw, mkl, native, rustfft};

/// All kernels; the first is the default.
pub static KERNELS: &[KernelEntry] = &[
    KernelEntry {
        name: "native",
        summary: "our own, a line in each SIMD lane",
        check: None,
        f32: native::lines_f32,
        f64: native::lines_f64,
    },
    KernelEntry {
        name: "rustfft",
        summary: "the rustfft and realfft crates, line by line",
        check: None,
        f32: rustfft::lines::<f32>,
        f64: rustfft::lines::<f64>,
    },
];

/// Kernels of libraries that must be installed: they are loaded when one is asked for by name.
pub static INSTALLED: &[KernelEntry] = &[
    KernelEntry {
        name: "fftw",
        summary: "an installed FFTW 3, line by line",
        check: Some(fftw::check),
        f32: fftw::lines::<f32>,
        f64: fftw::lines::<f64>,
    },
    KernelEntry {
        name: "mkl",
        summary: "an installed Intel MKL, line by line",
        check: Some(mkl::check),
        f32: mkl::lines::<f32>,
        f64: mkl::lines::<f64>,
    },
];

/// The kernel called `name`, if there is one.
pub fn find(name: &str) -> Option<&'static KernelEntry> {
    KERNELS.iter().chain(INSTALLED).find(|entry| entry.name == name)
}

/// Lines of a kernel. Allocates tables.
pub fn lines<T: Real>(kernel: &KernelEntry, spec: &LinesSpec) -> Box<dyn Lines<T>> {
    match spec.kind {
        LineKind::R2r { kind, ortho, complex } => {
            let engine = |spec: &LinesSpec| T::lines(kernel, spec);
            Box::new(R2rLines::new(spec, (kind, ortho, complex), engine))
        }
        _ => T::lines(kernel, spec),
    }
}

/// `FERRIER_SIMD` names an instruction set that this processor does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownSimd {
    /// The value of `FERRIER_SIMD`.
    pub name: String,
    /// The names that this processor accepts, separated by commas.
    pub known: String,
}

impl std::fmt::Display for UnknownSimd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "unknown instruction set {:?}; known: {}", self.name, self.known)
    }
}

impl std::error::Error for UnknownSimd {}

/// The instruction set of kernel `native`: the best that this processor
/// has, or the one that `FERRIER_SIMD` names. Different processors give
/// the same bits with the same instruction set.
///
/// # Errors
/// [`UnknownSimd`] if this processor does not have the set that `FERRIER_SIMD` names.
pub fn simd() -> Result<&'static str, UnknownSimd> {
    native::Isa::chosen().map(native::Isa::name).ok_or_else(|| {
        let asked = std::env::var_os("FERRIER_SIMD").unwrap_or_default();
        let known: Vec<_> = native::Isa::available().iter().map(|isa| isa.name()).collect();
        UnknownSimd { name: asked.to_string_lossy().into_owned(), known: known.join(", ") }
    })
}
