//! Transforms by cuFFT: whole arrays, or batches of contiguous lines.

use std::ffi::{c_longlong, c_void};

use cudarc::cufft::{result as cufft, sys};

use super::gpu::Gpu;
use super::memory::Stream;
use crate::{Error, Precision, Result};
use ferrier_kernel::LineKind;

/// Shape of a transform: up to three axes of `batch` arrays, the fastest last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    /// Points of each transformed axis.
    pub n: Vec<usize>,
    pub kind: LineKind,
    pub batch: usize,
    /// Scalars of a row of a padded real array.
    pub real_row: usize,
}

impl Shape {
    /// Elements of one array of a batch, before and after; `real`: of the real side.
    fn elements(&self, real: bool, complex: bool) -> Vec<c_longlong> {
        let mut embed: Vec<c_longlong> = self.n.iter().map(|&n| n as c_longlong).collect();
        if let (Some(last), Some(row)) = (embed.last_mut(), self.n.last()) {
            *last = match (real, complex) {
                (true, _) => self.real_row as c_longlong,
                _ => (row / 2 + 1) as c_longlong,
            };
        }
        embed
    }
}

/// A plan of cuFFT; its work area is in our workspace.
pub(super) struct Cufft {
    gpu: Gpu,
    handle: sys::cufftHandle,
    /// Element types, and the sign of a complex transform's exponent.
    kind: sys::cufftType,
    sign: i32,
    /// Bytes of its work area.
    pub work: usize,
}

// SAFETY: a plan may be used from any thread, by one at a time; we hold it mutably or behind a plan that is.
unsafe impl Send for Cufft {}
// SAFETY: as above.
unsafe impl Sync for Cufft {}

fn failed(what: &str) -> impl FnOnce(cufft::CufftError) -> Error + '_ {
    move |error| Error::device(format!("cuFFT {what}: {error:?}")).caused_by(error)
}

impl Cufft {
    pub fn new(gpu: &Gpu, shape: &Shape, precision: Precision) -> Result<Cufft> {
        gpu.enter()?;
        let kind = match (shape.kind, precision) {
            (LineKind::Forward | LineKind::Backward, Precision::F32) => sys::cufftType::CUFFT_C2C,
            (LineKind::Forward | LineKind::Backward, Precision::F64) => sys::cufftType::CUFFT_Z2Z,
            (LineKind::RealForward, Precision::F32) => sys::cufftType::CUFFT_R2C,
            (LineKind::RealForward, Precision::F64) => sys::cufftType::CUFFT_D2Z,
            (LineKind::RealBackward, Precision::F32) => sys::cufftType::CUFFT_C2R,
            (LineKind::RealBackward, Precision::F64) => sys::cufftType::CUFFT_Z2D,
            (LineKind::R2r { .. }, _) => return Err(Error::device("cuFFT has no cosines and sines")),
        };
        let sign = if shape.kind == LineKind::Backward { 1 } else { -1 };
        let handle = cufft::create().map_err(failed("makes no plan"))?;
        let mut plan = Cufft { gpu: gpu.clone(), handle, kind, sign, work: 0 };
        let mut n: Vec<c_longlong> = shape.n.iter().map(|&n| n as c_longlong).collect();
        let whole = n.clone();
        let side = |real: bool, complex: bool| match real || complex {
            true => shape.elements(real, complex),
            false => whole.clone(),
        };
        let real = |kind: LineKind| shape.kind == kind;
        let mut before = side(real(LineKind::RealForward), real(LineKind::RealBackward));
        let mut after = side(real(LineKind::RealBackward), real(LineKind::RealForward));
        let volume = |embed: &[c_longlong]| embed.iter().product::<c_longlong>();
        let (apart_before, apart_after) = (volume(&before), volume(&after));
        // SAFETY: the handle is new; the lists have as many entries as there are axes.
        let made = unsafe {
            cufft::set_auto_allocation(handle, false).and_then(|()| {
                cufft::make_plan_many64(
                    handle,
                    n.len() as i32,
                    n.as_mut_ptr(),
                    before.as_mut_ptr(),
                    1,
                    apart_before,
                    after.as_mut_ptr(),
                    1,
                    apart_after,
                    kind,
                    shape.batch as c_longlong,
                )
            })
        };
        plan.work = made.map_err(|error| {
            Error::device(format!("cuFFT makes no plan for {:?}, {} times: {error:?}", shape.n, shape.batch))
        })?;
        Ok(plan)
    }

    /// Sets the stream and the work area; `work` has [`work`](Self::work) bytes.
    ///
    /// # Safety
    /// The stream and the memory live as long as the plan is used.
    pub unsafe fn bind(&self, stream: &Stream, work: u64) -> Result<()> {
        self.gpu.enter()?;
        // SAFETY: this function's contract.
        unsafe {
            cufft::set_stream(self.handle, stream.raw().cast()).map_err(failed("takes no stream"))?;
            if self.work > 0 {
                cufft::set_work_area(self.handle, work as *mut _).map_err(failed("takes no work area"))?;
            }
        }
        Ok(())
    }

    /// Enqueues the unscaled transform.
    ///
    /// # Safety
    /// Both arrays are as large as the shape says and live until the transform is complete.
    pub unsafe fn run(&self, from: u64, to: u64) -> Result<()> {
        let (from, to) = (from as *mut c_void, to as *mut c_void);
        // SAFETY: this function's contract.
        unsafe {
            match self.kind {
                sys::cufftType::CUFFT_C2C => cufft::exec_c2c(self.handle, from.cast(), to.cast(), self.sign),
                sys::cufftType::CUFFT_Z2Z => cufft::exec_z2z(self.handle, from.cast(), to.cast(), self.sign),
                sys::cufftType::CUFFT_R2C => cufft::exec_r2c(self.handle, from.cast(), to.cast()),
                sys::cufftType::CUFFT_D2Z => cufft::exec_d2z(self.handle, from.cast(), to.cast()),
                sys::cufftType::CUFFT_C2R => cufft::exec_c2r(self.handle, from.cast(), to.cast()),
                sys::cufftType::CUFFT_Z2D => cufft::exec_z2d(self.handle, from.cast(), to.cast()),
            }
        }
        .map_err(failed("failed"))
    }
}

impl Drop for Cufft {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: made by `new`.
            let _ = unsafe { cufft::destroy(self.handle) };
        }
    }
}
