//! Kernels: many 1-D transforms at once.
//!
//! They live in a crate of their own, which knows nothing of ranks or plans,
//! because compiling them takes longer than all the rest.

pub use ferrier_kernel::{
    Block, KERNELS, LineKind, Lines, LinesSpec, Member, R2r, Store, StreamCopy, Strip, fence,
};

use crate::{Error, Real, Result};

/// The instruction set that kernel `native` runs on: the best that this
/// processor has, or the one that the variable `FERRIER_SIMD` names. Unlike
/// processors give the same bits on the same one.
///
/// # Errors
/// [`Error::UnknownName`] lists those that this processor has.
pub fn simd() -> Result<&'static str> {
    ferrier_kernel::simd().map_err(|(name, known)| Error::UnknownName { what: "FERRIER_SIMD", name, known })
}

/// The member called `name`.
///
/// # Errors
/// [`Error::UnknownName`] lists the names there are.
pub fn find(name: &str) -> Result<&'static Member> {
    simd()?;
    ferrier_kernel::find(name).ok_or_else(|| Error::UnknownName {
        what: "kernel",
        name: name.into(),
        known: KERNELS.iter().map(|member| member.name).collect::<Vec<_>>().join(", "),
    })
}

/// Lines of the kernel called `name`.
///
/// # Errors
/// [`Error::UnknownName`] for a name that is not in [`KERNELS`].
pub fn lines<T: Real>(name: &str, spec: &LinesSpec) -> Result<Box<dyn Lines<T>>> {
    Ok(find(name)?.lines(spec))
}
