//! Types that can be sent, and reductions.

use std::sync::atomic::AtomicU8;

use crate::abi::{Handle, Handles};

mod sealed {
    pub trait Sealed {}
}

/// Numbers that are sent as bytes: all ranks must have the same architecture.
pub trait Plain: sealed::Sealed + Copy + Send + Sync + 'static {}

/// Numbers that MPI can reduce.
pub trait Number: Plain {
    #[doc(hidden)]
    fn datatype(handles: &Handles) -> Handle;
}

/// A reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// The sum.
    Sum,
    /// The least.
    Min,
    /// The largest.
    Max,
}

impl Op {
    pub(crate) fn handle(self, handles: &Handles) -> Handle {
        match self {
            Op::Sum => handles.sum,
            Op::Min => handles.min,
            Op::Max => handles.max,
        }
    }
}

macro_rules! plain {
    ($($type:ty),*) => { $(impl sealed::Sealed for $type {} impl Plain for $type {})* };
}
plain!(u8, i8, u16, i16, u32, i32, u64, i64, usize, isize, f32, f64);

macro_rules! number {
    ($($type:ty => $field:ident),*) => {
        $(impl Number for $type {
            fn datatype(handles: &Handles) -> Handle {
                handles.$field
            }
        })*
    };
}
number!(i32 => int32_t, i64 => int64_t, u64 => uint64_t, f32 => float, f64 => double);

/// The address of bytes to send. The dangling pointer of an empty slice may be a
/// special value of MPI: 1 is `MPI_IN_PLACE` of Open MPI and of the standard ABI.
/// Empty slices get valid addresses instead, one for sends and one for receives.
pub(crate) fn sent_from<T>(data: &[T]) -> *const u8 {
    if data.is_empty() { EMPTY[0].as_ptr() } else { data.as_ptr().cast() }
}

/// The address of bytes to receive; see [`sent_from`].
pub(crate) fn received_at<T>(start: *mut T, length: usize) -> *mut u8 {
    if length == 0 { EMPTY[64].as_ptr() } else { start.cast() }
}

static EMPTY: [AtomicU8; 128] = [const { AtomicU8::new(0) }; 128];
