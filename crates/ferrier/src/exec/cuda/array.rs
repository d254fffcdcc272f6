//! Arrays in a GPU's memory, made by plans or by others.

use std::marker::PhantomData;

use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut};

use super::gpu::Gpu;
use super::memory::{Block, Stream};
use crate::exec::backend::ArrayShape;
use crate::exec::data::Span;
use crate::{Box3, Data, DataMut, Error, Real, Result};
use ferrier_plan::geometry::Geometry;

mod sealed {
    pub trait Sealed {}
}

/// Numbers on a GPU that a plan can read: [`DeviceArray`], cudarc's
/// [`CudaSlice`], and raw pointers ([`RawArray`]).
pub trait DeviceData<T: Real>: sealed::Sealed {
    #[doc(hidden)]
    fn with_span<R>(&self, stream: &Stream, work: impl FnOnce(Span) -> R) -> R;
}

/// Numbers on a GPU that a plan can write.
pub trait DeviceDataMut<T: Real>: DeviceData<T> {
    #[doc(hidden)]
    fn with_span_mut<R>(&mut self, stream: &Stream, work: impl FnOnce(Span) -> R) -> R;
}

/// One rank's part of an array in its GPU's memory, made by a plan.
#[derive(Debug)]
pub struct DeviceArray<T: Real> {
    block: Block,
    real: Option<Geometry>,
    complex: Option<Geometry>,
    numbers: usize,
    kind: PhantomData<T>,
}

impl<T: Real> DeviceArray<T> {
    pub(super) fn new(gpu: &Gpu, shape: ArrayShape) -> Result<Self> {
        let ArrayShape { real, complex, scalars: numbers, .. } = shape;
        let block = Block::new(gpu, numbers * size_of::<T>(), "an array of a plan")?;
        block.clear()?;
        Ok(DeviceArray { block, real, complex, numbers, kind: PhantomData })
    }

    /// How many numbers; a complex one is two.
    pub fn numbers(&self) -> usize {
        self.numbers
    }

    /// This rank's box of global indices (of the complex array where it can be both).
    pub fn local_box(&self) -> Box3 {
        self.complex.or(self.real).map_or(Box3::EMPTY, |geometry| geometry.part)
    }

    /// The GPU that it lives on.
    pub fn gpu(&self) -> &Gpu {
        self.block.gpu()
    }

    /// Where the first number lies, for kernels of the caller's own.
    pub fn as_raw(&self) -> u64 {
        self.block.start()
    }

    /// Copies a host array of the same numbers to the GPU; returns when it is there.
    ///
    /// # Errors
    /// [`Error::Array`] where the lengths differ; where the copy fails.
    pub fn upload<D: Data<T> + ?Sized>(&mut self, from: &D) -> Result<()> {
        let numbers = from.numbers();
        self.fits(numbers.len())?;
        self.block.upload(0, numbers)
    }

    /// Copies the numbers to a host array, after all that was enqueued on this GPU.
    ///
    /// # Errors
    /// [`Error::Array`] where the lengths differ; where the copy, or what was enqueued, fails.
    pub fn download<D: DataMut<T> + ?Sized>(&self, to: &mut D) -> Result<()> {
        let numbers = to.numbers_mut();
        self.fits(numbers.len())?;
        self.block.download(0, numbers)
    }

    /// Copies some numbers, from number `first` on, to main memory, after all
    /// that was enqueued on this GPU.
    ///
    /// # Errors
    /// [`Error::Array`] where there are not as many; where the copy fails.
    pub fn download_part(&self, first: usize, to: &mut [T]) -> Result<()> {
        if first.checked_add(to.len()).is_none_or(|end| end > self.numbers) {
            let expected = format!("within the {} scalars of the array", self.numbers);
            return Err(Error::array("range", None, expected, format!("{} from {first} on", to.len())));
        }
        self.block.download(first * size_of::<T>(), to)
    }

    fn fits(&self, numbers: usize) -> Result<()> {
        if numbers == self.numbers {
            return Ok(());
        }
        let expected = format!("{} scalars, as many as the array on the GPU has", self.numbers);
        Err(Error::array("host array", None, expected, numbers.to_string()))
    }

    fn span(&self) -> Span {
        let is_real = match (&self.real, &self.complex) {
            (Some(_), None) => Some(true),
            (None, Some(_)) => Some(false),
            _ => None,
        };
        Span { start: self.block.start() as usize, scalars: self.numbers, is_real }
    }
}

impl<T: Real> sealed::Sealed for DeviceArray<T> {}

impl<T: Real> DeviceData<T> for DeviceArray<T> {
    fn with_span<R>(&self, _stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        work(self.span())
    }
}

impl<T: Real> DeviceDataMut<T> for DeviceArray<T> {
    fn with_span_mut<R>(&mut self, _stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        work(self.span())
    }
}

impl<T: Real> sealed::Sealed for CudaSlice<T> {}

impl<T: Real> DeviceData<T> for CudaSlice<T> {
    fn with_span<R>(&self, stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        // cudarc orders its own uses of the slice before and after ours.
        let (start, _used) = self.device_ptr(stream.safe.as_ref().unwrap_or(self.stream()));
        work(Span { start: start as usize, scalars: self.len(), is_real: None })
    }
}

impl<T: Real> DeviceDataMut<T> for CudaSlice<T> {
    fn with_span_mut<R>(&mut self, stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        let numbers = self.len();
        let own = self.stream().clone();
        let (start, _used) = self.device_ptr_mut(stream.safe.as_ref().unwrap_or(&own));
        work(Span { start: start as usize, scalars: numbers, is_real: None })
    }
}

/// Numbers at a raw pointer in a GPU's memory.
#[derive(Clone, Copy, Debug)]
pub struct RawArray<T> {
    start: u64,
    numbers: usize,
    kind: PhantomData<T>,
}

impl<T: Real> RawArray<T> {
    /// `numbers` numbers (a complex one is two) from `start` on.
    ///
    /// # Safety
    /// They lie in the memory of the plan's GPU, live until what was enqueued
    /// with them has run, and are not written to (nor read, where a plan writes)
    /// by others meanwhile.
    pub unsafe fn new(start: u64, numbers: usize) -> Self {
        RawArray { start, numbers, kind: PhantomData }
    }
}

impl<T: Real> sealed::Sealed for RawArray<T> {}

impl<T: Real> DeviceData<T> for RawArray<T> {
    fn with_span<R>(&self, _stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        work(Span { start: self.start as usize, scalars: self.numbers, is_real: None })
    }
}

impl<T: Real> DeviceDataMut<T> for RawArray<T> {
    fn with_span_mut<R>(&mut self, _stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        work(Span { start: self.start as usize, scalars: self.numbers, is_real: None })
    }
}
