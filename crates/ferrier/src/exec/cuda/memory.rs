//! Memory of a GPU, page-locked main memory, streams and events.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use cudarc::driver::{CudaStream, DriverError, result as driver, sys};

use super::gpu::{Gpu, failed};
use crate::{Error, Result};

/// A block of a GPU's memory.
#[derive(Debug)]
pub struct Block {
    gpu: Gpu,
    start: sys::CUdeviceptr,
    bytes: usize,
}

impl Block {
    pub fn new(gpu: &Gpu, bytes: usize, what: &str) -> Result<Block> {
        gpu.enter()?;
        if bytes == 0 {
            return Ok(Block { gpu: gpu.clone(), start: 0, bytes });
        }
        // SAFETY: the memory is only reached through this block.
        let start = unsafe { driver::malloc_sync(bytes) }.map_err(|error| {
            let free = gpu.memory().map_or(0, |(free, _)| free);
            Error::device(format!(
                "out of memory: {bytes} bytes for {what} on {gpu:?}, which has {free} free ({error:?})"
            ))
        })?;
        Ok(Block { gpu: gpu.clone(), start, bytes })
    }

    pub fn start(&self) -> sys::CUdeviceptr {
        self.start
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Sets all bytes to zero; returns when it is complete.
    pub fn clear(&self) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        self.gpu.enter()?;
        // SAFETY: the block is ours.
        let outcome = unsafe { driver::memset_d8_sync(self.start, 0, self.bytes) };
        outcome.and_then(|()| driver::ctx::synchronize()).map_err(failed("memory could not be cleared"))
    }

    /// Copies from main memory to byte `at`; returns when the copy is complete.
    pub fn upload<E: Copy>(&self, at: usize, from: &[E]) -> Result<()> {
        assert!(at + size_of_val(from) <= self.bytes, "a copy to a GPU that does not fit");
        if from.is_empty() {
            return Ok(());
        }
        self.gpu.enter()?;
        // SAFETY: inside the block. A copy from pageable memory may return before it has ended.
        let outcome = unsafe { driver::memcpy_htod_sync(self.start + at as u64, from) };
        outcome.and_then(|()| driver::ctx::synchronize()).map_err(failed("a copy to the GPU failed"))
    }

    /// Copies from byte `at` to main memory; returns when the copy is complete.
    pub fn download<E: Copy>(&self, at: usize, to: &mut [E]) -> Result<()> {
        assert!(at + size_of_val(to) <= self.bytes, "a copy from a GPU that does not fit");
        if to.is_empty() {
            return Ok(());
        }
        self.gpu.enter()?;
        // Waits for streams that may still write.
        let outcome = driver::ctx::synchronize();
        // SAFETY: inside the block; every bit pattern is a valid scalar.
        let copy = |()| unsafe { driver::memcpy_dtoh_sync(to, self.start + at as u64) };
        outcome.and_then(copy).map_err(failed("a copy from the GPU failed"))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.bytes > 0 && self.gpu.enter().is_ok() {
            // Waits for work in progress, including other ranks' kernels.
            let _ = driver::ctx::synchronize();
            // SAFETY: allocated by `new`; the context is idle, so no kernel uses it.
            let _ = unsafe { driver::free_sync(self.start) };
        }
    }
}

/// Page-locked main memory.
pub(crate) struct Pinned {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a block of bytes without an owner thread.
unsafe impl Send for Pinned {}
// SAFETY: as above; it is written to only through raw pointers whose users vouch for it.
unsafe impl Sync for Pinned {}

impl Pinned {
    pub fn new(gpu: &Gpu, bytes: usize) -> Result<Pinned> {
        gpu.enter()?;
        if bytes == 0 {
            return Ok(Pinned { start: NonNull::dangling(), bytes });
        }
        // SAFETY: the memory is only reached through this value.
        let start = unsafe { driver::malloc_host(bytes, sys::CU_MEMHOSTALLOC_PORTABLE) };
        let refused = || Error::Memory { bytes, what: "messages between GPUs" };
        let start = start.ok().and_then(|start| NonNull::new(start.cast::<u8>())).ok_or_else(refused)?;
        // SAFETY: the block is ours; this touches every page.
        unsafe { start.write_bytes(0, bytes) };
        Ok(Pinned { start, bytes })
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The address of byte `at`.
    pub fn at(&self, at: usize) -> *mut u8 {
        debug_assert!(at <= self.bytes);
        self.start.as_ptr().wrapping_add(at)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: taken by `new`.
            let _ = unsafe { driver::free_host(self.start.as_ptr().cast::<c_void>()) };
        }
    }
}

/// A stream: our own or the user's.
pub struct Stream {
    gpu: Gpu,
    raw: sys::CUstream,
    /// Keeps the stream alive; cudarc's slices record it as their user.
    pub(crate) safe: Option<Arc<CudaStream>>,
}

// SAFETY: the driver allows the use of a stream from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    pub fn new(gpu: &Gpu) -> Result<Stream> {
        gpu.enter()?;
        let safe = gpu.context().new_stream().map_err(failed("a stream could not be made"))?;
        Ok(Stream::of_user(gpu, &safe))
    }

    pub fn of_user(gpu: &Gpu, stream: &Arc<CudaStream>) -> Stream {
        Stream { gpu: gpu.clone(), raw: stream.cu_stream(), safe: Some(stream.clone()) }
    }

    /// # Safety
    /// The stream belongs to the GPU's primary context and outlives this value.
    pub unsafe fn of_raw(gpu: &Gpu, raw: sys::CUstream) -> Stream {
        Stream { gpu: gpu.clone(), raw, safe: None }
    }

    pub fn raw(&self) -> sys::CUstream {
        self.raw
    }

    /// Another handle of the same stream.
    pub fn twin(&self) -> Stream {
        Stream { gpu: self.gpu.clone(), raw: self.raw, safe: self.safe.clone() }
    }

    /// Waits until all enqueued work is complete.
    pub fn synchronize(&self) -> Result<()> {
        self.gpu.enter()?;
        // SAFETY: the stream lives.
        unsafe { driver::stream::synchronize(self.raw) }.map_err(failed("the GPU failed"))
    }

    /// Whether all enqueued work is complete.
    pub fn is_idle(&self) -> Result<bool> {
        self.gpu.enter()?;
        // SAFETY: the stream lives.
        match unsafe { sys::cuStreamQuery(self.raw) } {
            sys::CUresult::CUDA_SUCCESS => Ok(true),
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            error => Err(failed("the GPU failed")(DriverError(error))),
        }
    }

    /// Makes work enqueued later wait for this event.
    ///
    /// # Safety
    /// The event lives.
    pub unsafe fn wait(&self, event: sys::CUevent) -> Result<()> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: this function's contract; the stream lives.
        unsafe { driver::stream::wait_event(self.raw, event, flags) }.map_err(failed("a stream cannot wait"))
    }

    /// Enqueues setting `bytes` bytes to zero.
    ///
    /// # Safety
    /// The range is valid and is not accessed by others until the work is complete.
    pub unsafe fn clear(&self, start: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: this function's contract.
        unsafe { driver::memset_d8_async(start, 0, bytes, self.raw) }
            .map_err(failed("memory could not be cleared"))
    }

    /// Enqueues a copy of `bytes` bytes to main memory.
    ///
    /// # Safety
    /// Both ranges are valid and are not accessed by others until the copy is complete.
    pub unsafe fn download(&self, from: u64, to: *mut u8, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: this function's contract.
        let to = unsafe { std::slice::from_raw_parts_mut(to, bytes) };
        // SAFETY: as above.
        unsafe { driver::memcpy_dtoh_async(to, from, self.raw) }.map_err(failed("a copy from the GPU failed"))
    }

    /// Enqueues a copy of `bytes` bytes from main memory.
    ///
    /// # Safety
    /// As [`download`](Self::download).
    pub unsafe fn upload(&self, from: *const u8, to: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: this function's contract.
        let from = unsafe { std::slice::from_raw_parts(from, bytes) };
        // SAFETY: as above.
        unsafe { driver::memcpy_htod_async(to, from, self.raw) }.map_err(failed("a copy to the GPU failed"))
    }
}

/// A point in a stream.
pub struct Event {
    gpu: Gpu,
    raw: sys::CUevent,
}

// SAFETY: the driver allows the use of an event from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event that records the time.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn new(gpu: &Gpu) -> Result<Event> {
        Event::with(gpu, sys::CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// An event that only orders streams.
    pub(crate) fn mark(gpu: &Gpu) -> Result<Event> {
        Event::with(gpu, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    fn with(gpu: &Gpu, flags: sys::CUevent_flags) -> Result<Event> {
        gpu.enter()?;
        let raw = driver::event::create(flags).map_err(failed("an event could not be made"))?;
        Ok(Event { gpu: gpu.clone(), raw })
    }

    pub(crate) fn raw(&self) -> sys::CUevent {
        self.raw
    }

    pub(crate) fn record(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both live and are of one context.
        unsafe { driver::event::record(self.raw, stream.raw) }.map_err(failed("an event was refused"))
    }

    /// Waits until the stream has reached the event.
    ///
    /// # Errors
    /// Where the GPU failed.
    pub fn synchronize(&self) -> Result<()> {
        self.gpu.enter()?;
        // SAFETY: the event lives.
        unsafe { driver::event::synchronize(self.raw) }.map_err(failed("the GPU failed"))
    }

    /// Milliseconds from `earlier` to this event; the stream has reached both.
    ///
    /// # Errors
    /// Where one of them has not.
    pub fn ms_since(&self, earlier: &Event) -> Result<f64> {
        // SAFETY: both events live.
        let ms = unsafe { driver::event::elapsed(earlier.raw, self.raw) };
        ms.map(f64::from).map_err(failed("two events have no time between them"))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: made by `with`.
            let _ = unsafe { driver::event::destroy(self.raw) };
        }
    }
}
