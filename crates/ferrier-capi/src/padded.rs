//! Arrays with ghost cells, as halos and ghost sums have them.

use ferrier::{Box3, Element};

use crate::array::Array;
use crate::elements::Made;
use crate::status::Outcome;

/// What a halo or a ghost sum says about its arrays, whatever their elements and their memory.
pub(crate) trait Padded {
    fn part(&self) -> Box3;
    fn shape(&self) -> [usize; 3];
    fn strides(&self) -> [usize; 3];
    fn bytes(&self) -> u64;
    fn memory(&self) -> usize;
    fn notes(&self) -> &[String];
    fn make(&self) -> Outcome<Array>;
}

/// For types whose methods have the names of each other's.
macro_rules! padded {
    ($($type:ty: $($bound:path)?),*) => {$(
        impl<E: Element $(+ $bound)?> Padded for $type {
            fn part(&self) -> Box3 {
                self.local_box()
            }
            fn shape(&self) -> [usize; 3] {
                self.shape()
            }
            fn strides(&self) -> [usize; 3] {
                self.strides()
            }
            fn bytes(&self) -> u64 {
                (self.volume() * size_of::<E>()) as u64
            }
            fn memory(&self) -> usize {
                self.memory()
            }
            fn notes(&self) -> &[String] {
                self.notes()
            }
            fn make(&self) -> Outcome<Array> {
                Ok(self.make_field()?.into_array())
            }
        }
    )*};
}
padded!(ferrier::Halo<E>:, ferrier::GhostSum<E>:);
#[cfg(feature = "cuda")]
padded!(ferrier::Halo<E, ferrier::cuda::Cuda>:, ferrier::GhostSum<E, ferrier::cuda::Cuda>: ferrier::cuda::DeviceSum);
