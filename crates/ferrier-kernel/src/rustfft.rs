//! Kernel `rustfft`: the crates rustfft and realfft, line by line.
//!
//! Lines are gathered to scratch, transformed there, and scattered. This kernel
//! takes every length and is the reference for tests of other kernels.

use std::sync::Arc;

use num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftPlanner};

use crate::lines::{LineBlock, Lines, Strip};
use crate::real::Real;
use crate::spec::{LineKind, LinesSpec};

/// The transform of a line.
enum Engine<T> {
    Complex(Arc<dyn Fft<T>>),
    Forward(Arc<dyn RealToComplex<T>>),
    Backward(Arc<dyn ComplexToReal<T>>),
}

struct RustLines<T> {
    engine: Engine<T>,
    spec: LinesSpec,
}

pub(super) fn lines<T: Real>(spec: &LinesSpec) -> Box<dyn Lines<T>> {
    let engine = match spec.kind {
        LineKind::Forward => Engine::Complex(FftPlanner::new().plan_fft_forward(spec.n)),
        LineKind::Backward => Engine::Complex(FftPlanner::new().plan_fft_inverse(spec.n)),
        LineKind::RealForward => Engine::Forward(RealFftPlanner::new().plan_fft_forward(spec.n)),
        LineKind::RealBackward => Engine::Backward(RealFftPlanner::new().plan_fft_inverse(spec.n)),
        LineKind::R2r { .. } => unreachable!("`R2rLines` uses the other kinds"),
    };
    Box::new(RustLines { engine, spec: *spec })
}

/// Rounds up, so that the next area of the scratch is 64-byte aligned.
fn padded(scalars: usize) -> usize {
    scalars.next_multiple_of(16)
}

impl<T: Real> RustLines<T> {
    fn scalars_in(&self) -> usize {
        self.spec.kind.len_in(self.spec.n) * self.spec.kind.width_in()
    }

    fn scalars_out(&self) -> usize {
        self.spec.kind.len_out(self.spec.n) * self.spec.kind.width_out()
    }

    /// Scalars of a line in scratch: real lines need two areas, because realfft
    /// works out of place.
    fn pitch(&self) -> usize {
        match self.engine {
            Engine::Complex(_) => padded(self.scalars_in()),
            _ => padded(self.scalars_in()) + padded(self.scalars_out()),
        }
    }

    fn inner(&self) -> usize {
        2 * match &self.engine {
            Engine::Complex(fft) => fft.get_inplace_scratch_len(),
            Engine::Forward(fft) => fft.get_scratch_len(),
            Engine::Backward(fft) => fft.get_scratch_len(),
        }
    }

    /// The offset of a line's result within its scratch.
    fn result(&self) -> usize {
        match self.engine {
            Engine::Complex(_) => 0,
            _ => padded(self.scalars_in()),
        }
    }

    fn transform(&self, line: &mut [T], scale: f64, inner: &mut [T]) {
        let inner = as_complex(inner);
        let (scalars_in, scalars_out, result) = (self.scalars_in(), self.scalars_out(), self.result());
        match &self.engine {
            Engine::Complex(fft) => fft.process_with_scratch(as_complex(&mut line[..scalars_in]), inner),
            Engine::Forward(fft) => {
                let (from, to) = line.split_at_mut(result);
                fft.process_with_scratch(&mut from[..scalars_in], as_complex(&mut to[..scalars_out]), inner)
                    .expect("lengths come from the same plan");
            }
            Engine::Backward(fft) => {
                let (from, to) = line.split_at_mut(result);
                // realfft reports an error if these are not zero; numpy and FFTW ignore them.
                from[1] = T::zero();
                if self.spec.n.is_multiple_of(2) {
                    from[scalars_in - 1] = T::zero();
                }
                fft.process_with_scratch(as_complex(&mut from[..scalars_in]), &mut to[..scalars_out], inner)
                    .expect("lengths come from the same plan");
            }
        }
        if scale != 1.0 {
            let scale = T::rounded(scale);
            for scalar in &mut line[result..result + scalars_out] {
                *scalar *= scale;
            }
        }
    }
}

impl<T: Real> Lines<T> for RustLines<T> {
    fn block(&self, _strided: bool) -> usize {
        // One cache line of complex scalars, so that a strided load uses whole cache lines.
        64 / (2 * T::PRECISION.bytes())
    }

    fn scratch(&self, lines: usize) -> usize {
        lines * self.pitch() + self.inner()
    }

    unsafe fn run(&self, block: &LineBlock<'_, T>, scratch: &mut [T]) -> bool {
        let pitch = self.pitch();
        let (area, inner) = scratch.split_at_mut(block.lines * pitch);
        let inner_len = self.inner();
        let kind = self.spec.kind;
        if block.from.iter().map(|strip| strip.len).sum::<usize>() < kind.len_in(self.spec.n) {
            area.fill(T::zero());
        }
        for strip in block.from {
            // SAFETY: `run`'s contract: every element of the strip is valid for reads.
            unsafe { gather(strip, block.lines, kind.width_in(), area, pitch) };
        }
        for line in area.chunks_exact_mut(pitch) {
            self.transform(line, self.spec.scale * block.factor, &mut inner[..inner_len]);
        }
        for strip in block.to {
            // SAFETY: `run`'s contract: every element of the strip is valid for writes.
            unsafe { scatter(strip, block.lines, kind.width_out(), &area[self.result()..], pitch) };
        }
        false
    }
}

fn as_complex<T: Real>(scalars: &mut [T]) -> &mut [Complex<T>] {
    // SAFETY: Complex<T> is repr(C) of two T, with T's alignment; the length is halved.
    unsafe { std::slice::from_raw_parts_mut(scalars.as_mut_ptr().cast(), scalars.len() / 2) }
}

/// Copies the elements of a strip to scratch. Elements in the outer loop:
/// neighbouring lines are usually adjacent in memory.
///
/// # Safety
/// All elements of the strip's lines are valid for reads.
unsafe fn gather<T: Real>(strip: &Strip<T>, lines: usize, width: usize, area: &mut [T], pitch: usize) {
    for k in 0..strip.len {
        for j in 0..lines {
            for w in 0..width {
                // SAFETY: `gather`'s contract covers element strip.at + k of line j.
                let value = unsafe { *strip.line(j).offset(k as isize * strip.step).add(w) };
                area[j * pitch + (strip.at + k) * width + w] = value;
            }
        }
    }
}

/// Copies the elements of a strip from scratch.
///
/// # Safety
/// All elements of the strip's lines are valid for writes.
unsafe fn scatter<T: Real>(strip: &Strip<T>, lines: usize, width: usize, area: &[T], pitch: usize) {
    for k in 0..strip.len {
        for j in 0..lines {
            for w in 0..width {
                let value = area[j * pitch + (strip.at + k) * width + w];
                // SAFETY: `scatter`'s contract covers element strip.at + k of line j.
                unsafe { *strip.line(j).offset(k as isize * strip.step).add(w) = value };
            }
        }
    }
}
