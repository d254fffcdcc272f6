//! Arrays in a GPU's memory, made by plans or by others.

use std::marker::PhantomData;

use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut};

use super::gpu::Gpu;
use super::memory::{Block, Stream};
use crate::exec::backend::ArrayShape;
use crate::exec::data::Span;
use crate::{Box3, Data, DataMut, Error, Fields, FieldsMut, Real, Result};
use ferrier_plan::geometry::Geometry;

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// Scalars on a GPU that a plan can read: [`DeviceArray`], cudarc's
/// [`CudaSlice`], and raw pointers ([`RawArray`]).
pub trait DeviceData<T: Real>: sealed::Sealed {
    #[doc(hidden)]
    fn with_span<R>(&self, stream: &Stream, work: impl FnOnce(Span) -> R) -> R;
    /// Visits each array of a batch where each has memory of its own, as [`Fields`] do.
    #[doc(hidden)]
    fn each_field(&self, _stream: &Stream, _visit: &mut dyn FnMut(Span)) {}
}

/// Scalars on a GPU that a plan can write.
pub trait DeviceDataMut<T: Real>: DeviceData<T> {
    #[doc(hidden)]
    fn with_span_mut<R>(&mut self, stream: &Stream, work: impl FnOnce(Span) -> R) -> R;
    /// As [`each_field`](DeviceData::each_field).
    #[doc(hidden)]
    fn each_field_mut(&mut self, _stream: &Stream, _visit: &mut dyn FnMut(Span)) {}
}

/// Of an empty list.
const NOTHING: Span = Span { start: 0, scalars: 0, is_real: None, fields: None };

impl<D: ?Sized> sealed::Sealed for Fields<'_, D> {}

impl<T: Real, D: DeviceData<T>> DeviceData<T> for Fields<'_, D> {
    fn with_span<R>(&self, stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        match self.0.first() {
            Some(first) => first.with_span(stream, work),
            None => work(NOTHING),
        }
    }
    fn each_field(&self, stream: &Stream, visit: &mut dyn FnMut(Span)) {
        self.0.iter().for_each(|field| field.with_span(stream, &mut *visit));
    }
}

impl<D: ?Sized> sealed::Sealed for FieldsMut<'_, '_, D> {}

impl<T: Real, D: DeviceData<T>> DeviceData<T> for FieldsMut<'_, '_, D> {
    fn with_span<R>(&self, stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        match self.0.first() {
            Some(first) => first.with_span(stream, work),
            None => work(NOTHING),
        }
    }
    fn each_field(&self, stream: &Stream, visit: &mut dyn FnMut(Span)) {
        self.0.iter().for_each(|field| field.with_span(stream, &mut *visit));
    }
}

impl<T: Real, D: DeviceDataMut<T>> DeviceDataMut<T> for FieldsMut<'_, '_, D> {
    fn with_span_mut<R>(&mut self, stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        match self.0.first_mut() {
            Some(first) => first.with_span_mut(stream, work),
            None => work(NOTHING),
        }
    }
    fn each_field_mut(&mut self, stream: &Stream, visit: &mut dyn FnMut(Span)) {
        self.0.iter_mut().for_each(|field| field.with_span_mut(stream, &mut *visit));
    }
}

/// One rank's part of an array in its GPU's memory, made by a plan.
#[derive(Debug)]
pub struct DeviceArray<T: Real> {
    block: Block,
    real: Option<Geometry>,
    complex: Option<Geometry>,
    scalars: usize,
    kind: PhantomData<T>,
}

impl<T: Real> DeviceArray<T> {
    pub(super) fn new(gpu: &Gpu, shape: ArrayShape) -> Result<Self> {
        let ArrayShape { real, complex, scalars, .. } = shape;
        let block = Block::new(gpu, scalars * size_of::<T>(), "an array of a plan")?;
        block.clear()?;
        Ok(DeviceArray { block, real, complex, scalars, kind: PhantomData })
    }

    /// The number of scalars; a complex element is two.
    pub fn scalars(&self) -> usize {
        self.scalars
    }

    /// This rank's box of global indices (of the complex array where it can be both).
    pub fn local_box(&self) -> Box3 {
        self.complex.or(self.real).map_or(Box3::EMPTY, |geometry| geometry.part)
    }

    /// The GPU whose memory it is in.
    pub fn gpu(&self) -> &Gpu {
        self.block.gpu()
    }

    /// The address of the first scalar, for kernels of the caller's own.
    pub fn as_raw(&self) -> u64 {
        self.block.start()
    }

    /// Copies a host array of the same length to the GPU, after all work enqueued there; returns when the copy is complete.
    ///
    /// # Errors
    /// [`Error::Array`] where the lengths differ; where the copy fails.
    pub fn upload<D: Data<T> + ?Sized>(&mut self, from: &D) -> Result<()> {
        let scalars = from.scalars();
        self.fits(scalars.len())?;
        // Enqueued work may still use the old values.
        self.gpu().synchronize()?;
        self.block.upload(0, scalars)
    }

    /// Copies the scalars to a host array, after all work enqueued on this GPU.
    ///
    /// # Errors
    /// [`Error::Array`] where the lengths differ; where the copy or enqueued work fails.
    pub fn download<D: DataMut<T> + ?Sized>(&self, to: &mut D) -> Result<()> {
        let scalars = to.scalars_mut();
        self.fits(scalars.len())?;
        self.block.download(0, scalars)
    }

    /// Copies scalars from index `first` on to main memory, after all work
    /// enqueued on this GPU.
    ///
    /// # Errors
    /// [`Error::Array`] where the array is too short; where the copy fails.
    pub fn download_part(&self, first: usize, to: &mut [T]) -> Result<()> {
        if first.checked_add(to.len()).is_none_or(|end| end > self.scalars) {
            let expected = format!("within the {} scalars of the array", self.scalars);
            return Err(Error::array("range", None, expected, format!("{} from {first} on", to.len())));
        }
        self.block.download(first * size_of::<T>(), to)
    }

    fn fits(&self, scalars: usize) -> Result<()> {
        if scalars == self.scalars {
            return Ok(());
        }
        let expected = format!("{} scalars, as many as the array on the GPU has", self.scalars);
        Err(Error::array("host array", None, expected, scalars.to_string()))
    }

    fn span(&self) -> Span {
        let is_real = match (&self.real, &self.complex) {
            (Some(_), None) => Some(true),
            (None, Some(_)) => Some(false),
            _ => None,
        };
        Span { start: self.block.start() as usize, scalars: self.scalars, is_real, fields: None }
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

impl<T> sealed::Sealed for CudaSlice<T> {}

impl<T: Real> DeviceData<T> for CudaSlice<T> {
    fn with_span<R>(&self, stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        // cudarc orders its own uses of the slice before and after ours.
        let (start, _used) = self.device_ptr(stream.safe.as_ref().unwrap_or(self.stream()));
        work(Span { start: start as usize, scalars: self.len(), is_real: None, fields: None })
    }
}

impl<T: Real> DeviceDataMut<T> for CudaSlice<T> {
    fn with_span_mut<R>(&mut self, stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        let scalars = self.len();
        let own = self.stream().clone();
        let (start, _used) = self.device_ptr_mut(stream.safe.as_ref().unwrap_or(&own));
        work(Span { start: start as usize, scalars, is_real: None, fields: None })
    }
}

/// Scalars, or elements of redistributions and ghost cells, at a raw pointer in a GPU's memory.
#[derive(Clone, Copy, Debug)]
pub struct RawArray<T> {
    pub(crate) start: u64,
    pub(crate) scalars: usize,
    kind: PhantomData<T>,
}

impl<T> RawArray<T> {
    /// `scalars` values of type `T` from `start` on; for plans, a complex element is two.
    ///
    /// # Safety
    /// They lie in the memory of the plan's GPU, live until the work enqueued
    /// with them is complete, and are not written to (nor read, where a plan writes)
    /// by others meanwhile.
    pub unsafe fn new(start: u64, scalars: usize) -> Self {
        RawArray { start, scalars, kind: PhantomData }
    }
}

impl<T> sealed::Sealed for RawArray<T> {}

impl<T: Real> DeviceData<T> for RawArray<T> {
    fn with_span<R>(&self, _stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        work(Span { start: self.start as usize, scalars: self.scalars, is_real: None, fields: None })
    }
}

impl<T: Real> DeviceDataMut<T> for RawArray<T> {
    fn with_span_mut<R>(&mut self, _stream: &Stream, work: impl FnOnce(Span) -> R) -> R {
        work(Span { start: self.start as usize, scalars: self.scalars, is_real: None, fields: None })
    }
}
