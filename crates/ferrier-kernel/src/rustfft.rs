//! Kernel `rustfft`: the crates rustfft and realfft, one line after the other.
//!
//! Lines are gathered into scratch, transformed there, and scattered. It
//! takes every length and is the reference that other kernels are tested
//! against.

use std::sync::Arc;

use num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftPlanner};

use crate::lines::{LineBlock, Lines, Strip};
use crate::real::Real;
use crate::spec::{LineKind, LinesSpec};

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
        LineKind::R2r { .. } => unreachable!("made of the others"),
    };
    Box::new(RustLines { engine, spec: *spec })
}

/// Rounds up so that the next area of the scratch is 64-byte aligned.
fn padded(numbers: usize) -> usize {
    numbers.next_multiple_of(16)
}

impl<T: Real> RustLines<T> {
    fn numbers_in(&self) -> usize {
        self.spec.kind.len_in(self.spec.n) * self.spec.kind.width_in()
    }

    fn numbers_out(&self) -> usize {
        self.spec.kind.len_out(self.spec.n) * self.spec.kind.width_out()
    }

    /// Numbers that one line takes in the gathered area: real lines need two
    /// areas, because realfft is out of place.
    fn pitch(&self) -> usize {
        match self.engine {
            Engine::Complex(_) => padded(self.numbers_in()),
            _ => padded(self.numbers_in()) + padded(self.numbers_out()),
        }
    }

    fn inner(&self) -> usize {
        2 * match &self.engine {
            Engine::Complex(fft) => fft.get_inplace_scratch_len(),
            Engine::Forward(fft) => fft.get_scratch_len(),
            Engine::Backward(fft) => fft.get_scratch_len(),
        }
    }

    /// Where a line's result starts within its pitch.
    fn result(&self) -> usize {
        match self.engine {
            Engine::Complex(_) => 0,
            _ => padded(self.numbers_in()),
        }
    }

    fn transform(&self, line: &mut [T], scale: f64, inner: &mut [T]) {
        let inner = as_complex(inner);
        let (numbers_in, numbers_out, result) = (self.numbers_in(), self.numbers_out(), self.result());
        match &self.engine {
            Engine::Complex(fft) => fft.process_with_scratch(as_complex(&mut line[..numbers_in]), inner),
            Engine::Forward(fft) => {
                let (from, to) = line.split_at_mut(result);
                fft.process_with_scratch(&mut from[..numbers_in], as_complex(&mut to[..numbers_out]), inner)
                    .expect("lengths come from the same plan");
            }
            Engine::Backward(fft) => {
                let (from, to) = line.split_at_mut(result);
                // realfft complains where these are not zero; numpy and FFTW ignore them.
                from[1] = T::zero();
                if self.spec.n.is_multiple_of(2) {
                    from[numbers_in - 1] = T::zero();
                }
                fft.process_with_scratch(as_complex(&mut from[..numbers_in]), &mut to[..numbers_out], inner)
                    .expect("lengths come from the same plan");
            }
        }
        if scale != 1.0 {
            let scale = T::rounded(scale);
            for number in &mut line[result..result + numbers_out] {
                *number *= scale;
            }
        }
    }
}

impl<T: Real> Lines<T> for RustLines<T> {
    fn block(&self, _strided: bool) -> usize {
        // One cache line of complex numbers, so that a strided load uses all it fetches.
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
            // SAFETY: the caller vouches for every element the strips describe.
            unsafe { gather(strip, block.lines, kind.width_in(), area, pitch) };
        }
        for line in area.chunks_exact_mut(pitch) {
            self.transform(line, self.spec.scale * block.factor, &mut inner[..inner_len]);
        }
        for strip in block.to {
            // SAFETY: as above.
            unsafe { scatter(strip, block.lines, kind.width_out(), &area[self.result()..], pitch) };
        }
        false
    }
}

fn as_complex<T: Real>(numbers: &mut [T]) -> &mut [Complex<T>] {
    // SAFETY: Complex<T> is repr(C) of two T, with T's alignment; the length is halved.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), numbers.len() / 2) }
}

/// Elements outermost: neighbouring lines usually lie side by side in memory.
unsafe fn gather<T: Real>(strip: &Strip<T>, lines: usize, width: usize, area: &mut [T], pitch: usize) {
    for k in 0..strip.len {
        for j in 0..lines {
            for w in 0..width {
                // SAFETY: element strip.at + k of line j, vouched for by the caller.
                let value =
                    unsafe { *strip.ptr.offset(k as isize * strip.step + j as isize * strip.lane).add(w) };
                area[j * pitch + (strip.at + k) * width + w] = value;
            }
        }
    }
}

unsafe fn scatter<T: Real>(strip: &Strip<T>, lines: usize, width: usize, area: &[T], pitch: usize) {
    for k in 0..strip.len {
        for j in 0..lines {
            for w in 0..width {
                let value = area[j * pitch + (strip.at + k) * width + w];
                // SAFETY: element strip.at + k of line j, vouched for by the caller.
                unsafe {
                    *strip.ptr.offset(k as isize * strip.step + j as isize * strip.lane).add(w) = value
                };
            }
        }
    }
}
