//! Kernel `rustfft`: the crates rustfft and realfft, line by line. It takes every length and is the reference for tests of
//! other kernels.

use std::sync::Arc;

use num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftPlanner};

use crate::gathered::{GatheredLines, LineEngine, scalars};
use crate::lines::Lines;
use crate::real::Real;
use crate::spec::{LineKind, LinesSpec};

/// The transform of a line.
enum Transform<T> {
    Complex(Arc<dyn Fft<T>>),
    Forward(Arc<dyn RealToComplex<T>>),
    Backward(Arc<dyn ComplexToReal<T>>),
}

struct RustFft<T> {
    transform: Transform<T>,
    /// Scalars before and after it.
    scalars: [usize; 2],
}

pub(super) fn lines<T: Real>(spec: &LinesSpec) -> Box<dyn Lines<T>> {
    let transform = match spec.kind {
        LineKind::Forward => Transform::Complex(FftPlanner::new().plan_fft_forward(spec.n)),
        LineKind::Backward => Transform::Complex(FftPlanner::new().plan_fft_inverse(spec.n)),
        LineKind::RealForward => Transform::Forward(RealFftPlanner::new().plan_fft_forward(spec.n)),
        LineKind::RealBackward => Transform::Backward(RealFftPlanner::new().plan_fft_inverse(spec.n)),
        LineKind::R2r { .. } => unreachable!("`R2rLines` uses the other kinds"),
    };
    Box::new(GatheredLines { engine: RustFft { transform, scalars: scalars(spec) }, spec: *spec })
}

impl<T: Real> LineEngine<T> for RustFft<T> {
    fn scratch(&self) -> usize {
        2 * match &self.transform {
            Transform::Complex(fft) => fft.get_inplace_scratch_len(),
            Transform::Forward(fft) => fft.get_scratch_len(),
            Transform::Backward(fft) => fft.get_scratch_len(),
        }
    }

    fn transform(&self, line: &mut [T], result: usize, scratch: &mut [T]) {
        let (scratch, [before, after]) = (as_complex(scratch), self.scalars);
        match &self.transform {
            Transform::Complex(fft) => fft.process_with_scratch(as_complex(&mut line[..before]), scratch),
            Transform::Forward(fft) => {
                let (from, to) = line.split_at_mut(result);
                fft.process_with_scratch(&mut from[..before], as_complex(&mut to[..after]), scratch)
                    .expect("lengths come from the same plan");
            }
            Transform::Backward(fft) => {
                let (from, to) = line.split_at_mut(result);
                fft.process_with_scratch(as_complex(&mut from[..before]), &mut to[..after], scratch)
                    .expect("lengths come from the same plan");
            }
        }
    }
}

fn as_complex<T: Real>(scalars: &mut [T]) -> &mut [Complex<T>] {
    // SAFETY: Complex<T> is repr(C) of two T, with T's alignment; the length is halved.
    unsafe { std::slice::from_raw_parts_mut(scalars.as_mut_ptr().cast(), scalars.len() / 2) }
}
