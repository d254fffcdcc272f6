//! The peer cuFFT: its own multi-dimensional plan, out of place and in place.

use std::ffi::c_longlong;
use std::sync::Arc;

use cudarc::cufft::{result as cufft, sys};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut, sys::CUevent_flags};
use ferrier::Precision;
use ferrier::Real;
use ferrier::cuda::{DeviceArray, Gpu};
use num_complex::Complex;

use crate::failure::{Failure, Outcome, fail};
use crate::parts::Number;
use crate::peers::Task;
use crate::reference::Reference;
use crate::turns::PeerMeasured;

/// Where the input comes from.
pub enum Input<'a, T: Real> {
    /// From main memory.
    Host(&'a [T]),
    /// From an array of a plan.
    Device(&'a DeviceArray<T>),
}

/// A way to do it.
struct Way {
    name: &'static str,
    handle: sys::cufftHandle,
    /// Numbers of a row of the real array.
    row: usize,
    seconds: Vec<f64>,
    error: f64,
}

/// cuFFT with arrays of its own.
pub struct Peer<T> {
    stream: Arc<CudaStream>,
    task: Task,
    input: CudaSlice<T>,
    output: CudaSlice<T>,
    ways: [Way; 2],
}

impl<T> Drop for Peer<T> {
    fn drop(&mut self) {
        let _ = self.stream.synchronize();
        for way in &self.ways {
            // SAFETY: made in `new`, and nothing of it runs any more.
            let _ = unsafe { cufft::destroy(way.handle) };
        }
    }
}

fn failed(what: &'static str) -> impl Fn(cufft::CufftError) -> Failure {
    move |error| Failure::new(format!("peer cufft: {what}: {error:?}"))
}

fn refused(error: cudarc::driver::DriverError) -> Failure {
    Failure::new(format!("peer cufft: {error:?}"))
}

impl<T: Real + Number + cudarc::driver::DeviceRepr + cudarc::driver::ValidAsZeroBits> Peer<T> {
    /// Plans, and takes memory; the input, dense and in C order, is copied from
    /// the GPU or from main memory.
    ///
    /// # Errors
    /// cuFFT cannot do this transform; no memory.
    pub fn new(gpu: &Gpu, task: &Task, input: Input<'_, T>) -> Outcome<Self> {
        let done = 3 - task.axes.iter().copied().min().unwrap_or(0);
        let mut sorted = task.axes.clone();
        sorted.sort_unstable();
        if sorted != (3 - done..3).collect::<Vec<_>>() || (task.real && task.axes.last() != Some(&2)) {
            return fail(
                "peer cufft: only transforms of the last axes, of which the last is halved, are compared",
            );
        }
        let stream = gpu.context().new_stream().map_err(refused)?;
        let input = match input {
            Input::Host(numbers) => stream.clone_htod(numbers).map_err(refused)?,
            Input::Device(array) => {
                let mut copy = stream.alloc_zeros::<T>(array.numbers()).map_err(refused)?;
                let (to, written) = copy.device_ptr_mut(&stream);
                let bytes = array.numbers() * size_of::<T>();
                // SAFETY: both have as many numbers, and nothing writes to the array meanwhile.
                let copied = unsafe {
                    cudarc::driver::result::memcpy_dtod_async(to, array.as_raw(), bytes, stream.cu_stream())
                };
                copied.map_err(refused)?;
                drop(written);
                copy
            }
        };
        let complex = task.spectrum().iter().product::<usize>() * 2 * task.batch;
        let output = stream.alloc_zeros::<T>(complex).map_err(refused)?;
        let last = task.shape[2];
        let dense = way(task, &stream, "out of place", last)?;
        let padded = way(task, &stream, "in place", if task.real { 2 * (last / 2 + 1) } else { last })?;
        Ok(Peer { stream, task: task.clone(), input, output, ways: [dense, padded] })
    }

    /// Runs each way once; holds the spectrum against the references.
    ///
    /// # Errors
    /// cuFFT fails.
    pub fn check(&mut self, references: &[(usize, Reference)]) -> Outcome {
        for which in 0..2 {
            self.prepare(which)?;
            self.launch(which)?;
            self.stream.synchronize().map_err(refused)?;
            let [_, n1, n2] = self.task.spectrum();
            let volume = self.task.spectrum().iter().product::<usize>();
            let (mut distance, mut norm) = (0.0, 0.0);
            for (b, reference) in references {
                let (off, size) = reference.distance(|[i, j, k]| {
                    let at = 2 * (b * volume + (i * n1 + j) * n2 + k);
                    let mut value = [T::default(); 2];
                    let part = self.output.try_slice(at..at + 2)?;
                    self.stream.memcpy_dtoh(&part, &mut value[..]).ok()?;
                    self.stream.synchronize().ok()?;
                    Some(Complex::new(value[0].widened(), value[1].widened()))
                });
                (distance, norm) = (distance + off, norm + size);
            }
            self.ways[which].error = (distance / norm).sqrt();
        }
        Ok(())
    }

    /// In place, the input is put into the output's memory, padded where it must be.
    fn prepare(&mut self, which: usize) -> Outcome {
        if which == 0 {
            return Ok(());
        }
        let (row, padded) = (self.task.shape[2], self.ways[1].row);
        if row == padded {
            return self.stream.memcpy_dtod(&self.input, &mut self.output).map_err(refused);
        }
        let rows = self.task.batch * self.task.shape[0] * self.task.shape[1];
        let (from, _read) = self.input.device_ptr(&self.stream);
        let (to, _written) = self.output.device_ptr_mut(&self.stream);
        let bytes = size_of::<T>();
        let device = cudarc::driver::sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
        let copy = cudarc::driver::sys::CUDA_MEMCPY2D_st {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: device,
            srcHost: std::ptr::null(),
            srcDevice: from,
            srcArray: std::ptr::null_mut(),
            srcPitch: row * bytes,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: device,
            dstHost: std::ptr::null_mut(),
            dstDevice: to,
            dstArray: std::ptr::null_mut(),
            dstPitch: padded * bytes,
            WidthInBytes: row * bytes,
            Height: rows,
        };
        // SAFETY: both arrays have as many rows of these pitches.
        let status = unsafe { cudarc::driver::sys::cuMemcpy2DAsync_v2(&copy, self.stream.cu_stream()) };
        status.result().map_err(refused)
    }

    fn launch(&mut self, which: usize) -> Outcome {
        let handle = self.ways[which].handle;
        let (from, _read) = self.input.device_ptr(&self.stream);
        let (to, _written) = self.output.device_ptr_mut(&self.stream);
        let from = if which == 0 { from } else { to };
        // SAFETY: the arrays are as large as the plan was made for.
        unsafe {
            match (self.task.real, self.task.precision) {
                (false, Precision::F32) => cufft::exec_c2c(handle, from as *mut _, to as *mut _, -1),
                (false, Precision::F64) => cufft::exec_z2z(handle, from as *mut _, to as *mut _, -1),
                (true, Precision::F32) => cufft::exec_r2c(handle, from as *mut _, to as *mut _),
                (true, Precision::F64) => cufft::exec_d2z(handle, from as *mut _, to as *mut _),
            }
        }
        .map_err(failed("fails"))
    }

    /// Times each way once: as many transforms in a row, out of place and in place, as `count` says.
    ///
    /// # Errors
    /// cuFFT fails.
    pub fn run(&mut self, count: [usize; 2]) -> Outcome {
        for (which, count) in count.into_iter().enumerate() {
            self.prepare(which)?;
            // Once untimed, so that both begin on a warm GPU.
            self.launch(which)?;
            self.prepare(which)?;
            let mark = || self.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).map_err(refused);
            let start = mark()?;
            for _ in 0..count {
                self.launch(which)?;
            }
            let end = self.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).map_err(refused)?;
            end.synchronize().map_err(refused)?;
            let ms = f64::from(start.elapsed_ms(&end).map_err(refused)?);
            self.ways[which].seconds.push(ms / 1e3 / count as f64);
        }
        Ok(())
    }

    /// The better way.
    pub fn better(&self) -> PeerMeasured {
        let middle = |way: &Way| crate::timing::median(&way.seconds);
        let best = if middle(&self.ways[1]) < middle(&self.ways[0]) { &self.ways[1] } else { &self.ways[0] };
        PeerMeasured {
            name: "cufft",
            version: ferrier::cuda::info().cufft.unwrap_or_default(),
            way: best.name,
            seconds: best.seconds.clone(),
            error: self
                .ways
                .iter()
                .map(|way| way.error)
                .fold(0.0, |a, b| if b.is_nan() || b > a { b } else { a }),
        }
    }
}

/// A plan of the transformed axes, with real rows of `row` numbers.
fn way(task: &Task, stream: &Arc<CudaStream>, name: &'static str, row: usize) -> Outcome<Way> {
    let axes: Vec<usize> = (task.axes.iter().copied().min().unwrap_or(0)..3).collect();
    let list = |shape: [usize; 3], last: usize| -> Vec<c_longlong> {
        axes.iter().map(|&a| if a == 2 { last } else { shape[a] } as c_longlong).collect()
    };
    let mut n = list(task.shape, task.shape[2]);
    let (mut before, mut after) = (list(task.shape, row), list(task.spectrum(), task.spectrum()[2]));
    let outer: usize = (0..3).filter(|a| !axes.contains(a)).map(|a| task.shape[a]).product();
    let kind = match (task.real, task.precision) {
        (false, Precision::F32) => sys::cufftType::CUFFT_C2C,
        (false, Precision::F64) => sys::cufftType::CUFFT_Z2Z,
        (true, Precision::F32) => sys::cufftType::CUFFT_R2C,
        (true, Precision::F64) => sys::cufftType::CUFFT_D2Z,
    };
    let apart = [before.iter().product(), after.iter().product()];
    let handle = cufft::create().map_err(failed("makes no plan"))?;
    // SAFETY: the handle is new; the lists have as many entries as there are axes.
    unsafe {
        cufft::make_plan_many64(
            handle,
            n.len() as i32,
            n.as_mut_ptr(),
            before.as_mut_ptr(),
            1,
            apart[0],
            after.as_mut_ptr(),
            1,
            apart[1],
            kind,
            (outer * task.batch) as c_longlong,
        )
        .map_err(failed("makes no plan"))?;
        cufft::set_stream(handle, stream.cu_stream().cast()).map_err(failed("takes no stream"))?;
    }
    Ok(Way { name, handle, row, seconds: Vec::new(), error: f64::NAN })
}
