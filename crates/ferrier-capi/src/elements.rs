//! Elements of redistributions and ghost cells: bytes that are copied, numbers that are added.

use ferrier::{Comm, Element, Field, LayoutSpec, Problem};

use crate::array::{Array, Memory, copy_in, copy_out};
use crate::layout::ArrayEnd;
use crate::pointer::{KeptArray, Out, Source, Target};
use crate::status::Outcome;
use std::ffi::c_void;

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
pub(crate) fn array_of<E: Element>(mut field: Field<E>) -> Array {
    let (start, bytes) = (field.as_mut_ptr().cast(), size_of_val(&*field));
    Array::new(start, bytes as u64, field)
}

/// The caller's fields, each of `volume` elements.
pub(crate) fn kept_arrays<E>(
    fields: &mut [Out<c_void>],
    bytes: u64,
    volume: usize,
) -> Outcome<Vec<KeptArray<E>>> {
    fields.iter_mut().map(|field| Target(field, bytes).kept("field", volume)).collect()
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
