//! Sources of the kernels.

use crate::{Precision, Real};

pub(crate) const COMMON: &str = include_str!("kernels/common.cuh");
pub(super) const FUSED_OP: &str = include_str!("kernels/fused_op.cuh");
pub(super) const DFT: &str = include_str!("kernels/dft.cuh");
pub(super) const ARRAYS: &str = include_str!("kernels/arrays.cu");
pub(super) const LINES: &str = include_str!("kernels/lines.cu");
pub(crate) const MOVE: &str = include_str!("kernels/move.cu");
pub(super) const OPERATE: &str = include_str!("kernels/operate.cu");
pub(super) const CODEC: &str = include_str!("kernels/codec.cuh");
pub(super) const ENCODE: &str = include_str!("kernels/encode.cu");
pub(super) const NORM: &str = include_str!("kernels/norm.cu");
pub(super) const DECODE: &str = include_str!("kernels/decode.cu");

/// The name of a scalar in C.
pub(super) fn real_name<T: Real>() -> String {
    match T::PRECISION {
        Precision::F32 => "float".into(),
        Precision::F64 => "double".into(),
    }
}
