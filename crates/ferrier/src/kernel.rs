//! Kernels: many 1-D transforms at once.
//!
//! Their crate, `ferrier-kernel`, does not depend on ranks or plans.

pub use ferrier_kernel::{INSTALLED, KERNELS, KernelEntry};

use crate::{Error, Result};

/// The instruction set of kernel `native`: the best that this processor has,
/// or the one that the environment variable `FERRIER_SIMD` names. Different
/// processors give the same bits with the same instruction set.
///
/// # Errors
/// [`Error::UnknownName`] lists the instruction sets of this processor.
pub fn simd() -> Result<&'static str> {
    ferrier_kernel::simd().map_err(|unknown| Error::UnknownName {
        what: "FERRIER_SIMD",
        name: unknown.name,
        known: unknown.known,
    })
}

/// The kernel called `name`.
///
/// # Errors
/// [`Error::UnknownName`] lists the names in [`KERNELS`] and [`INSTALLED`]; [`Error::Choice`] where the library of a
/// kernel is not installed.
pub fn find(name: &str) -> Result<&'static KernelEntry> {
    simd()?;
    let entry = ferrier_kernel::find(name).ok_or_else(|| Error::UnknownName {
        what: "kernel",
        name: name.into(),
        known: KERNELS.iter().chain(INSTALLED).map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })?;
    entry.check().map_err(|why| Error::choice("kernel", format!("kernel `{name}` cannot be used: {why}")))?;
    Ok(entry)
}
