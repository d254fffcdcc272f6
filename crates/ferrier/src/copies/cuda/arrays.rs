//! Arrays of any element type in the memory of a GPU.

use std::fmt;
use std::marker::PhantomData;

use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut};

use crate::exec::cuda::array::sealed::Sealed;
use crate::exec::cuda::{Block, DeviceArray, DeviceData, DeviceDataMut, Gpu, RawArray, Stream};
use crate::exec::data::Span;
use crate::{Complex, Element, Error, Real, Result};

/// Where an array lies.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ElementSpan {
    /// Its address.
    pub start: usize,
    /// Its elements.
    pub len: usize,
}

/// Elements on a GPU that redistributions and ghost cells can read: [`DeviceField`], arrays of plans
/// ([`DeviceArray`]), cudarc's [`CudaSlice`], and raw pointers ([`RawArray`]).
pub trait DeviceElements<E: Element>: Sealed {
    /// Where it lies. What is enqueued on the stream afterwards follows what others do to the array.
    #[doc(hidden)]
    fn span(&self, stream: &Stream) -> ElementSpan;
    /// What others do to the array afterwards follows what was enqueued on the stream.
    #[doc(hidden)]
    fn release(&self, stream: &Stream) {
        let _ = self.span(stream);
    }
}

/// Elements on a GPU that redistributions and ghost cells can write.
pub trait DeviceElementsMut<E: Element>: DeviceElements<E> {
    /// As [`span`](DeviceElements::span).
    #[doc(hidden)]
    fn span_mut(&mut self, stream: &Stream) -> ElementSpan;
    /// As [`release`](DeviceElements::release).
    #[doc(hidden)]
    fn release_mut(&mut self, stream: &Stream) {
        let _ = self.span_mut(stream);
    }
}

/// Elements in the memory of a GPU, zero at first, for redistributions and ghost cells there.
pub struct DeviceField<E: Element> {
    block: Block,
    len: usize,
    elements: PhantomData<E>,
}

impl<E: Element> DeviceField<E> {
    pub(crate) fn new(gpu: &Gpu, len: usize) -> Result<Self> {
        const WHAT: &str = "a field";
        let bytes = len.checked_mul(size_of::<E>()).ok_or(Error::Memory { bytes: usize::MAX, what: WHAT })?;
        let block = Block::new(gpu, bytes, WHAT)?;
        block.clear()?;
        Ok(DeviceField { block, len, elements: PhantomData })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The GPU whose memory it is in.
    pub fn gpu(&self) -> &Gpu {
        self.block.gpu()
    }

    /// The address of the first element, for kernels of the caller's own.
    pub fn as_raw(&self) -> u64 {
        self.block.start()
    }

    /// Copies elements of the same number to the GPU, after all work enqueued there; returns when the copy is complete.
    ///
    /// # Errors
    /// [`Error::Array`] where the lengths differ; where the copy fails.
    pub fn upload(&mut self, from: &[E]) -> Result<()> {
        self.fits(from.len())?;
        // Enqueued work may still use the old values.
        self.gpu().synchronize()?;
        self.block.upload(0, from)
    }

    /// Copies the elements to main memory, after all work enqueued on this GPU.
    ///
    /// # Errors
    /// [`Error::Array`] where the lengths differ; where the copy or enqueued work fails.
    pub fn download(&self, to: &mut [E]) -> Result<()> {
        self.fits(to.len())?;
        self.block.download(0, to)
    }

    fn fits(&self, len: usize) -> Result<()> {
        if len == self.len {
            return Ok(());
        }
        let expected = format!("{} elements, as many as the field on the GPU has", self.len);
        Err(Error::array("host array", None, expected, len.to_string()))
    }

    fn place(&self) -> ElementSpan {
        ElementSpan { start: self.block.start() as usize, len: self.len }
    }

    /// For plans; `width`: scalars of an element.
    fn scalars(&self, width: usize) -> Span {
        let ElementSpan { start, len } = self.place();
        Span { start, scalars: len * width, is_real: Some(width == 1), fields: None }
    }
}

impl<E: Element> fmt::Debug for DeviceField<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements of {} bytes on {:?}", self.len, size_of::<E>(), self.gpu())
    }
}

impl<E: Element> Sealed for DeviceField<E> {}

impl<E: Element> DeviceElements<E> for DeviceField<E> {
    fn span(&self, _stream: &Stream) -> ElementSpan {
        self.place()
    }
}

impl<E: Element> DeviceElementsMut<E> for DeviceField<E> {
    fn span_mut(&mut self, _stream: &Stream) -> ElementSpan {
        self.place()
    }
}

/// Plans take fields of their scalars.
impl<T: Real + Element> DeviceData<T> for DeviceField<T> {
    fn with_span<R>(&self, _stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        work(self.scalars(1))
    }
}

impl<T: Real + Element> DeviceDataMut<T> for DeviceField<T> {
    fn with_span_mut<R>(&mut self, _stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        work(self.scalars(1))
    }
}

/// Plans take fields of their complex elements.
impl<T: Real + Element> DeviceData<T> for DeviceField<Complex<T>> {
    fn with_span<R>(&self, _stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        work(self.scalars(2))
    }
}

impl<T: Real + Element> DeviceDataMut<T> for DeviceField<Complex<T>> {
    fn with_span_mut<R>(&mut self, _stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        work(self.scalars(2))
    }
}

/// The elements of an array of a plan; `width`: scalars of one.
fn elements<T: Real>(array: &DeviceArray<T>, width: usize) -> ElementSpan {
    ElementSpan { start: array.as_raw() as usize, len: array.scalars() / width }
}

impl<T: Real + Element> DeviceElements<T> for DeviceArray<T> {
    fn span(&self, _stream: &Stream) -> ElementSpan {
        elements(self, 1)
    }
}

impl<T: Real + Element> DeviceElementsMut<T> for DeviceArray<T> {
    fn span_mut(&mut self, _stream: &Stream) -> ElementSpan {
        elements(self, 1)
    }
}

impl<T: Real + Element> DeviceElements<Complex<T>> for DeviceArray<T> {
    fn span(&self, _stream: &Stream) -> ElementSpan {
        elements(self, 2)
    }
}

impl<T: Real + Element> DeviceElementsMut<Complex<T>> for DeviceArray<T> {
    fn span_mut(&mut self, _stream: &Stream) -> ElementSpan {
        elements(self, 2)
    }
}

// cudarc orders its own uses of a slice before (when a pointer is taken) and after ours (when it is given back), so that the
// pointer is taken twice.
impl<E: Element> DeviceElements<E> for CudaSlice<E> {
    fn span(&self, stream: &Stream) -> ElementSpan {
        let (start, _used) = self.device_ptr(stream.safe.as_ref().unwrap_or(self.stream()));
        ElementSpan { start: start as usize, len: self.len() }
    }
}

impl<E: Element> DeviceElementsMut<E> for CudaSlice<E> {
    fn span_mut(&mut self, stream: &Stream) -> ElementSpan {
        let (own, len) = (self.stream().clone(), self.len());
        let (start, _used) = self.device_ptr_mut(stream.safe.as_ref().unwrap_or(&own));
        ElementSpan { start: start as usize, len }
    }
}

impl<E: Element> DeviceElements<E> for RawArray<E> {
    fn span(&self, _stream: &Stream) -> ElementSpan {
        ElementSpan { start: self.start as usize, len: self.scalars }
    }
}

impl<E: Element> DeviceElementsMut<E> for RawArray<E> {
    fn span_mut(&mut self, _stream: &Stream) -> ElementSpan {
        ElementSpan { start: self.start as usize, len: self.scalars }
    }
}

impl<D: Sealed + ?Sized> Sealed for &mut D {}

impl<E: Element, D: DeviceElements<E> + ?Sized> DeviceElements<E> for &mut D {
    fn span(&self, stream: &Stream) -> ElementSpan {
        (**self).span(stream)
    }
}

impl<E: Element, D: DeviceElementsMut<E> + ?Sized> DeviceElementsMut<E> for &mut D {
    fn span_mut(&mut self, stream: &Stream) -> ElementSpan {
        (**self).span_mut(stream)
    }
}
