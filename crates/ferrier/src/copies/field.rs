//! Arrays of any element type that the ranks of a node can load from.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::element::Element;
use crate::machine::buffer::Buffer;
use crate::transport::shared_buffer;
use crate::{Comm, Error, Result};

/// A slice of elements, zero at first, in memory that the other ranks of the node can load from without a copy. Ranks
/// that are threads can load from any memory; those that are processes only from arrays like this one.
pub struct Field<E: Element> {
    buffer: Buffer<f64>,
    len: usize,
    elements: PhantomData<E>,
}

impl<E: Element> Field<E> {
    /// Collective where ranks share memory.
    pub(crate) fn new(comm: &Comm, len: usize, shared: bool) -> Result<Field<E>> {
        const WHAT: &str = "a field";
        const { assert!(align_of::<E>() <= 64, "elements are aligned to at most 64 bytes") };
        let bytes = len.checked_mul(size_of::<E>()).ok_or(Error::Memory { bytes: usize::MAX, what: WHAT })?;
        let words = bytes.div_ceil(8);
        let buffer = match shared {
            true => shared_buffer(&**comm.transport(), words, WHAT)?,
            false => Buffer::new(words, WHAT)?,
        };
        Ok(Field { buffer, len, elements: PhantomData })
    }
}

impl<E: Element> Deref for Field<E> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        match self.len {
            0 => &[],
            // SAFETY: the buffer has room for `len` elements and is aligned to 64 bytes; zero bytes are a valid element.
            len => unsafe { std::slice::from_raw_parts(self.buffer.as_ptr().cast(), len) },
        }
    }
}

impl<E: Element> DerefMut for Field<E> {
    fn deref_mut(&mut self) -> &mut [E] {
        match self.len {
            0 => &mut [],
            // SAFETY: as above; `&mut self` makes the access exclusive.
            len => unsafe { std::slice::from_raw_parts_mut(self.buffer.as_ptr().cast(), len) },
        }
    }
}

impl<E: Element> AsRef<[E]> for Field<E> {
    fn as_ref(&self) -> &[E] {
        self
    }
}

impl<E: Element> AsMut<[E]> for Field<E> {
    fn as_mut(&mut self) -> &mut [E] {
        self
    }
}

impl<E: Element> fmt::Debug for Field<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements of {} bytes", self.len, size_of::<E>())
    }
}
