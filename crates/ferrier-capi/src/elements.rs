//! Elements of redistributions and ghost cells: bytes that are copied, numbers that are added.

use std::ffi::c_void;

use ferrier::{Comm, CopyBackend, Cpu, Element, Field, LayoutSpec, Problem};

use crate::array::{Array, Memory, copy_in, copy_out};
use crate::engine::without_streams;
use crate::layout::ArrayEnd;
use crate::pointer::{KeptArray, Out, Source, Target};
use crate::status::Outcome;

/// Elements of `N` bytes.
pub(crate) type Bytes<const N: usize> = [u8; N];

/// Calls a function for elements of so many bytes.
macro_rules! for_size {
    ($bytes:expr, $function:ident($($argument:expr),*)) => {
        match $bytes {
            1 => $function::<1>($($argument),*),
            2 => $function::<2>($($argument),*),
            4 => $function::<4>($($argument),*),
            8 => $function::<8>($($argument),*),
            12 => $function::<12>($($argument),*),
            16 => $function::<16>($($argument),*),
            24 => $function::<24>($($argument),*),
            32 => $function::<32>($($argument),*),
            48 => $function::<48>($($argument),*),
            64 => $function::<64>($($argument),*),
            other => Err(Failure::argument(
                "element_bytes",
                format_args!("must be 1, 2, 4, 8, 12, 16, 24, 32, 48 or 64, got {other}"),
            )),
        }
    };
}
pub(crate) use for_size;

impl<E: Element> Memory for Field<E> {
    fn upload(&mut self, from: Source<'_>) -> Outcome {
        copy_in(&from, self)
    }
    fn download(&self, to: Target<'_>) -> Outcome {
        copy_out(self, to)
    }
}

/// An array of a redistribution or a halo.
pub(crate) trait Made {
    fn into_array(self) -> Array;
}

impl<E: Element> Made for Field<E> {
    fn into_array(mut self) -> Array {
        let (start, bytes) = (self.as_mut_ptr().cast(), size_of_val(&*self));
        Array::new(start, bytes as u64, self)
    }
}

/// What redistributions, halos and ghost sums of one memory differ in from those of the other: how they take the caller's
/// arrays. Their other methods have the same names.
pub(crate) trait Place: CopyBackend {
    type Given<E: Element>: Send;

    /// An array of the caller's of `needed` elements, also after this call.
    fn given<E: Element>(name: &str, array: Target<'_>, needed: usize) -> Outcome<Self::Given<E>>;

    /// The caller's fields, each of `volume` elements.
    fn fields<E: Element>(
        fields: &mut [Out<c_void>],
        bytes: u64,
        volume: usize,
    ) -> Outcome<Vec<Self::Given<E>>> {
        fields.iter_mut().map(|field| Self::given("field", Target(field, bytes), volume)).collect()
    }
}

impl Place for Cpu {
    type Given<E: Element> = KeptArray<E>;

    fn given<E: Element>(name: &str, mut array: Target<'_>, needed: usize) -> Outcome<KeptArray<E>> {
        array.kept(name, needed)
    }
}

/// The stream of a redistribution, a halo or a ghost sum.
pub(crate) trait Streamed {
    /// # Safety
    /// `stream` is a stream of the object's GPU, or null, and lives as long as the object uses it.
    unsafe fn set_stream(&mut self, stream: *mut c_void) -> Outcome;
    fn synchronize(&self) -> Outcome;
}

macro_rules! streamed {
    ($($type:ident: $name:literal),*) => {$(
        impl<E: Element> Streamed for ferrier::$type<E> {
            unsafe fn set_stream(&mut self, _: *mut c_void) -> Outcome {
                Err(without_streams($name))
            }
            fn synchronize(&self) -> Outcome {
                Err(without_streams($name))
            }
        }

        #[cfg(feature = "cuda")]
        impl<E: Element> Streamed for ferrier::$type<E, ferrier::cuda::Cuda> {
            unsafe fn set_stream(&mut self, stream: *mut c_void) -> Outcome {
                // SAFETY: the same contract.
                Ok(unsafe { self.set_raw_stream(stream) }?)
            }
            fn synchronize(&self) -> Outcome {
                Ok(Self::synchronize(self)?)
            }
        }
    )*};
}
streamed!(Redistribution: "redistribution", Halo: "halo", GhostSum: "sum");

#[cfg(feature = "cuda")]
mod on_gpu {
    use ferrier::cuda::{Cuda, DeviceField, RawArray};

    use super::*;

    impl Place for Cuda {
        type Given<E: Element> = RawArray<E>;

        fn given<E: Element>(name: &str, array: Target<'_>, needed: usize) -> Outcome<RawArray<E>> {
            crate::engine_cuda::device(name, array.0.address(), array.1, needed)
        }
    }

    impl<E: Element> Made for DeviceField<E> {
        fn into_array(self) -> Array {
            let bytes = self.len() * size_of::<E>();
            Array::new(std::ptr::without_provenance_mut(self.as_raw() as usize), bytes as u64, self)
        }
    }

    impl<E: Element> Memory for DeviceField<E> {
        fn upload(&mut self, from: Source<'_>) -> Outcome {
            let elements = self.len();
            Ok(DeviceField::upload(self, from.scalars("data", elements)?)?)
        }
        fn download(&self, mut to: Target<'_>) -> Outcome {
            Ok(DeviceField::download(self, to.scalars("data", self.len())?)?)
        }
    }
}

/// A communicator, and the shape and layout of one side of a problem: where ghost cells are.
pub(crate) struct Mesh<'a> {
    pub comm: &'a Comm,
    pub shape: [usize; 3],
    pub layout: &'a LayoutSpec,
}

impl<'a> Mesh<'a> {
    pub fn new(comm: &'a Comm, problem: &'a Problem, side: ArrayEnd) -> Outcome<Self> {
        problem.check().map_err(ferrier::Error::from)?;
        Ok(match side {
            ArrayEnd::Input => Mesh { comm, shape: problem.shape, layout: &problem.input },
            ArrayEnd::Output => Mesh { comm, shape: problem.spectrum_shape(), layout: &problem.output },
        })
    }
}
