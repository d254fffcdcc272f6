//! Methods of plans on GPUs: streams, events, arrays in main memory.

use std::sync::Arc;

use super::executor::Cuda;
use super::gpu::Gpu;
use super::memory::{Event, Stream};
use crate::exec::array::Array;
use crate::exec::events::StepTime;
use crate::exec::variant::{FORWARD, IN_PLACE};
use crate::machine::buffer::Buffer;
use crate::{Real, Result};
use ferrier_plan::geometry::Geometry;

/// A plan whose arrays are in the memory of a GPU.
///
/// Calls enqueue their work on the plan's stream and return; [`synchronize`](Plan::synchronize) waits for it.
/// (Exchanges by messages wait inside the call.)
///
/// ```no_run
/// use ferrier::{Complex, Device, Planner, Problem};
/// ferrier::ranks(2).run(|comm| {
///     let gpu = Device::cuda(0)?;
///     let mut plan = Planner::new(&Problem::c2c([64, 64, 64])).device(&gpu).draft::<f64>(&comm)?.build()?;
///     let mut wave = plan.make_input()?;
///     let values = vec![Complex::new(1.0, 0.0); wave.scalars() / 2];
///     wave.upload(&values)?;
///     let mut modes = plan.make_output()?;
///     plan.forward(&wave, &mut modes)?;
///     let mut result = values.clone();
///     modes.download(&mut result)?;
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
pub type Plan<T> = crate::Plan<T, Cuda>;

impl<T: Real> crate::Plan<T, Cuda> {
    /// Sets the stream of the plan's GPU that calls use.
    ///
    /// # Errors
    /// Where cuFFT or the driver refuses.
    pub fn set_stream(&mut self, stream: &Arc<cudarc::driver::CudaStream>) -> Result<()> {
        self.replace_stream(Stream::of_user(&self.executor.gpu, stream))
    }

    /// Sets the stream that calls use.
    ///
    /// # Errors
    /// Where cuFFT or the driver refuses.
    ///
    /// # Safety
    /// It is a stream (`CUstream`, `cudaStream_t`) of the primary context of the plan's GPU and lives until the plan
    /// gets another one or is dropped.
    pub unsafe fn set_raw_stream(&mut self, stream: *mut std::ffi::c_void) -> Result<()> {
        // SAFETY: this function's contract.
        let stream = unsafe { Stream::of_raw(&self.executor.gpu, stream.cast()) };
        self.replace_stream(stream)
    }

    fn replace_stream(&mut self, stream: Stream) -> Result<()> {
        self.synchronize()?;
        self.executor.stream = stream;
        let passes = self.variants.iter().flat_map(|variant| &variant.passes);
        self.executor.bind_cufft(passes.map(|pass| &pass.work))
    }

    /// Waits until all enqueued work is complete.
    ///
    /// # Errors
    /// Where the GPU failed.
    pub fn synchronize(&self) -> Result<()> {
        self.executor.stream.synchronize()
    }

    /// Records an event on the plan's stream.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn record(&self, event: &Event) -> Result<()> {
        self.executor.gpu.enter()?;
        event.record(&self.executor.stream)
    }

    /// An array in main memory that can be copied to [`make_input`](Self::make_input)'s. Allocates.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_host_input(&self) -> Result<Array<T>> {
        self.make_host(Some(self.variants[FORWARD].input), None)
    }

    /// An array in main memory that [`make_output`](Self::make_output)'s can be copied to. Allocates.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_host_output(&self) -> Result<Array<T>> {
        self.make_host(None, Some(self.variants[FORWARD].output))
    }

    /// An array in main memory that can be copied to and from [`make_in_place`](Self::make_in_place)'s. Allocates.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_host_in_place(&self) -> Result<Array<T>> {
        let variant = &self.variants[IN_PLACE + FORWARD];
        self.make_host(Some(variant.input), Some(variant.output))
    }

    fn make_host(&self, input: Option<Geometry>, output: Option<Geometry>) -> Result<Array<T>> {
        Array::new(self.shape(input, output), Buffer::by_all_cores)
    }

    /// The GPU of this rank.
    pub fn gpu(&self) -> &Gpu {
        &self.executor.gpu
    }

    /// Times every step of the calls to come, for [`profile`](Self::profile).
    ///
    /// # Errors
    /// Where the driver has no more events.
    pub fn time_steps(&mut self) -> Result<()> {
        let most = self.variants.iter().map(|variant| variant.steps.len()).max().unwrap_or(0);
        let events = (0..=most).map(|_| Event::new(&self.executor.gpu)).collect::<Result<_>>()?;
        self.executor.clock = Some(events);
        Ok(())
    }

    /// How long each step of the last call took on this rank's stream, its tiles together, where
    /// [`time_steps`](Self::time_steps) was called before. Waits for the GPU; allocates.
    ///
    /// # Errors
    /// Where the GPU failed.
    pub fn profile(&self) -> Result<Vec<StepTime>> {
        Ok(self.profile_of(self.step_ms()?.into_iter()))
    }

    /// The steps of the last call as they ran on this rank's stream, tile by tile, where
    /// [`time_steps`](Self::time_steps) was called before. Waits for the GPU; allocates.
    ///
    /// # Errors
    /// Where the GPU failed.
    pub fn stream_events(&self) -> Result<Vec<crate::Event>> {
        let mut end = 0.0;
        let times = self.step_ms()?.into_iter().map(|ms| {
            let start = end;
            end += ms;
            (start, end, 0.0)
        });
        Ok(self.events_of(times, &[]))
    }

    /// Milliseconds of each step of the last call.
    fn step_ms(&self) -> Result<Vec<f64>> {
        self.synchronize()?;
        let Some(clock) = &self.executor.clock else { return Ok(Vec::new()) };
        let steps = self.variants[self.state.last].steps.len();
        (0..steps).map(|step| clock[step + 1].ms_since(&clock[step])).collect()
    }
}
