//! The peer cuFFT: its multi-dimensional plans, out of place and in place.

use std::ffi::c_longlong;
use std::sync::Arc;

use cudarc::cufft::{result as cufft, sys};
use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, sys::CUevent_flags};
use ferrier::cuda::{DeviceArray, Gpu};
use ferrier::{Precision, Real};
use num_complex::Complex;

use crate::contest::{PeerResult, worse};
use crate::failure::{Failure, Outcome, fail};
use crate::peers::PeerProblem;
use crate::reference::{References, relative_error};
use crate::scalars::widened;
use crate::timing::median;

/// The source of the input.
pub enum CufftInput<'a, T: Real> {
    /// From main memory.
    Host(&'a [T]),
    /// From an array of a plan.
    Device(&'a DeviceArray<T>),
}

/// A plan: in place or out of place.
struct CufftPlan {
    name: &'static str,
    handle: sys::cufftHandle,
    /// Scalars of a row of the real array.
    row: usize,
    seconds: Vec<f64>,
    error: f64,
}

/// cuFFT with arrays of its own.
pub struct CufftPeer<T> {
    stream: Arc<CudaStream>,
    problem: PeerProblem,
    input: CudaSlice<T>,
    output: CudaSlice<T>,
    plans: [CufftPlan; 2],
}

impl<T> Drop for CufftPeer<T> {
    fn drop(&mut self) {
        let _ = self.stream.synchronize();
        for plan in &self.plans {
            // SAFETY: `new` made this handle, and the stream is idle.
            let _ = unsafe { cufft::destroy(plan.handle) };
        }
    }
}

fn failed(what: &'static str) -> impl Fn(cufft::CufftError) -> Failure {
    move |error| Failure::new(format!("peer cufft: {what}: {error:?}"))
}

fn mark(stream: &Arc<CudaStream>) -> Outcome<CudaEvent> {
    stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).map_err(refused)
}

fn refused(error: cudarc::driver::DriverError) -> Failure {
    Failure::new(format!("peer cufft: {error:?}"))
}

impl<T: Real + cudarc::driver::DeviceRepr + cudarc::driver::ValidAsZeroBits> CufftPeer<T> {
    /// Plans and allocates; the input, dense and in C order, is copied from the GPU or from
    /// main memory.
    ///
    /// # Errors
    /// cuFFT does not support this transform; too little memory.
    pub fn new(gpu: &Gpu, problem: &PeerProblem, input: CufftInput<'_, T>) -> Outcome<Self> {
        let done = 3 - problem.axes.iter().copied().min().unwrap_or(0);
        let mut sorted = problem.axes.clone();
        sorted.sort_unstable();
        if sorted != (3 - done..3).collect::<Vec<_>>() || (problem.real && problem.axes.last() != Some(&2)) {
            return fail(
                "peer cufft: only transforms of the last axes, of which the last is halved, can be compared",
            );
        }
        let stream = gpu.context().new_stream().map_err(refused)?;
        let input = match input {
            CufftInput::Host(numbers) => stream.clone_htod(numbers).map_err(refused)?,
            CufftInput::Device(array) => {
                let mut copy = stream.alloc_zeros::<T>(array.scalars()).map_err(refused)?;
                let (to, written) = copy.device_ptr_mut(&stream);
                let bytes = array.scalars() * size_of::<T>();
                // SAFETY: both arrays have `bytes` bytes, and the borrow of `array` excludes writes.
                let copied = unsafe {
                    cudarc::driver::result::memcpy_dtod_async(to, array.as_raw(), bytes, stream.cu_stream())
                };
                copied.map_err(refused)?;
                drop(written);
                copy
            }
        };
        let complex = problem.spectrum().iter().product::<usize>() * 2 * problem.batch;
        let output = stream.alloc_zeros::<T>(complex).map_err(refused)?;
        let last = problem.shape[2];
        let dense = plan(problem, &stream, "out of place", last)?;
        let padded =
            plan(problem, &stream, "in place", if problem.real { 2 * (last / 2 + 1) } else { last })?;
        Ok(CufftPeer { stream, problem: problem.clone(), input, output, plans: [dense, padded] })
    }

    /// Runs each plan once and measures the error of its spectrum.
    ///
    /// # Errors
    /// cuFFT fails.
    pub fn check(&mut self, references: &References) -> Outcome {
        for which in 0..2 {
            self.prepare(which)?;
            self.launch(which)?;
            self.stream.synchronize().map_err(refused)?;
            let [_, n1, n2] = self.problem.spectrum();
            let volume = self.problem.spectrum().iter().product::<usize>();
            let error = relative_error(None, references, |b, [i, j, k]| {
                let at = 2 * (b * volume + (i * n1 + j) * n2 + k);
                let mut value = [T::default(); 2];
                let part = self.output.try_slice(at..at + 2)?;
                self.stream.memcpy_dtoh(&part, &mut value[..]).ok()?;
                self.stream.synchronize().ok()?;
                Some(widened(Complex::new(value[0], value[1])))
            })?;
            self.plans[which].error = error;
        }
        Ok(())
    }

    /// Copies the input of a plan in place to the memory of the output, padded if real.
    fn prepare(&mut self, which: usize) -> Outcome {
        if which == 0 {
            return Ok(());
        }
        let (row, padded) = (self.problem.shape[2], self.plans[1].row);
        if row == padded {
            return self.stream.memcpy_dtod(&self.input, &mut self.output).map_err(refused);
        }
        let rows = self.problem.batch * self.problem.shape[0] * self.problem.shape[1];
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
        // SAFETY: both arrays have `rows` rows of these pitches.
        let status = unsafe { cudarc::driver::sys::cuMemcpy2DAsync_v2(&copy, self.stream.cu_stream()) };
        status.result().map_err(refused)
    }

    fn launch(&mut self, which: usize) -> Outcome {
        let handle = self.plans[which].handle;
        let (from, _read) = self.input.device_ptr(&self.stream);
        let (to, _written) = self.output.device_ptr_mut(&self.stream);
        let from = if which == 0 { from } else { to };
        // SAFETY: the arrays are as large as the plan was made for.
        unsafe {
            match (self.problem.real, self.problem.precision) {
                (false, Precision::F32) => cufft::exec_c2c(handle, from as *mut _, to as *mut _, -1),
                (false, Precision::F64) => cufft::exec_z2z(handle, from as *mut _, to as *mut _, -1),
                (true, Precision::F32) => cufft::exec_r2c(handle, from as *mut _, to as *mut _),
                (true, Precision::F64) => cufft::exec_d2z(handle, from as *mut _, to as *mut _),
            }
        }
        .map_err(failed("cannot run"))
    }

    /// Times each plan once. `count`: transforms in a row, out of place and in place.
    ///
    /// # Errors
    /// cuFFT fails.
    pub fn run(&mut self, count: [usize; 2]) -> Outcome {
        for (which, count) in count.into_iter().enumerate() {
            self.prepare(which)?;
            // Once untimed, to warm up the GPU.
            self.launch(which)?;
            self.prepare(which)?;
            let start = mark(&self.stream)?;
            for _ in 0..count {
                self.launch(which)?;
            }
            let end = mark(&self.stream)?;
            end.synchronize().map_err(refused)?;
            let ms = f64::from(start.elapsed_ms(&end).map_err(refused)?);
            self.plans[which].seconds.push(ms / 1e3 / count as f64);
        }
        Ok(())
    }

    /// The faster plan.
    pub fn faster(&self) -> PeerResult {
        let middle = |plan: &CufftPlan| median(&plan.seconds);
        let best =
            if middle(&self.plans[1]) < middle(&self.plans[0]) { &self.plans[1] } else { &self.plans[0] };
        PeerResult {
            name: "cufft",
            version: ferrier::cuda::info().cufft.unwrap_or_default(),
            placement: best.name,
            seconds: best.seconds.clone(),
            error_forward: self.plans.iter().map(|plan| plan.error).fold(0.0, worse),
            planning_ms: 0.0,
        }
    }
}

/// A plan of the transformed axes, with real rows of `row` scalars.
fn plan(
    problem: &PeerProblem,
    stream: &Arc<CudaStream>,
    name: &'static str,
    row: usize,
) -> Outcome<CufftPlan> {
    let axes: Vec<usize> = (problem.axes.iter().copied().min().unwrap_or(0)..3).collect();
    let list = |shape: [usize; 3], last: usize| -> Vec<c_longlong> {
        axes.iter().map(|&a| if a == 2 { last } else { shape[a] } as c_longlong).collect()
    };
    let mut n = list(problem.shape, problem.shape[2]);
    let (mut before, mut after) = (list(problem.shape, row), list(problem.spectrum(), problem.spectrum()[2]));
    let outer: usize = (0..3).filter(|a| !axes.contains(a)).map(|a| problem.shape[a]).product();
    let kind = match (problem.real, problem.precision) {
        (false, Precision::F32) => sys::cufftType::CUFFT_C2C,
        (false, Precision::F64) => sys::cufftType::CUFFT_Z2Z,
        (true, Precision::F32) => sys::cufftType::CUFFT_R2C,
        (true, Precision::F64) => sys::cufftType::CUFFT_D2Z,
    };
    let apart = [before.iter().product(), after.iter().product()];
    let handle = cufft::create().map_err(failed("cannot plan"))?;
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
            (outer * problem.batch) as c_longlong,
        )
        .map_err(failed("cannot plan"))?;
        cufft::set_stream(handle, stream.cu_stream().cast()).map_err(failed("cannot set the stream"))?;
    }
    Ok(CufftPlan { name, handle, row, seconds: Vec::new(), error: f64::NAN })
}
