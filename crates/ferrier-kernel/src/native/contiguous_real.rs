//! The extra pass of contiguous real lines, with vectors of neighbouring
//! elements; `real.rs` does the same arithmetic for groups of lines.

use super::cache_hint::prefetch_for_write;
use super::line_io::{LineArray, StoreMode};
use super::vector::{FACTOR_LEN, MAX_LANES, Op, Vector};

/// Scalars between a prefetch and its use: about the latency of memory.
const LEAD: usize = 256;

/// Twiddles of the extra pass as vectors, and that of the middle element.
pub(super) struct ContiguousReal<T> {
    twiddles: Vec<T>,
    middle: [T; FACTOR_LEN],
    half: usize,
}

impl<T: Copy> ContiguousReal<T> {
    /// From the factors of elements 0 to `half / 2`; `None` where vectors do not divide the length.
    pub fn new<V: Vector<T = T>>(half: usize, factors: &[T]) -> Option<Self> {
        if half == 0 || !half.is_multiple_of(2 * V::LINES) {
            return None;
        }
        let factors: Vec<&[T]> = factors.chunks_exact(FACTOR_LEN).collect();
        let mut twiddles = vec![];
        for vector in factors[..half / 2].chunks_exact(V::LINES) {
            twiddles.extend(vector.iter().flat_map(|w| [w[0], w[0]]));
            twiddles.extend(vector.iter().flat_map(|w| [w[1], w[2]]));
        }
        let middle = factors[half / 2];
        Some(ContiguousReal { twiddles, middle: [middle[0], middle[1], middle[2]], half })
    }
}

/// After the complex transform of `half` elements: computes twice the spectrum
/// of the reals. Lines of `from` have room for one more element.
pub(super) struct UnfoldContiguous<'a, V: Vector> {
    pub real: &'a ContiguousReal<V::T>,
    pub lines: usize,
    pub from: LineArray<V::T>,
    pub to: LineArray<V::T>,
    pub mode: StoreMode<V::T>,
    /// Whether the target was not prefetched, because lines do not fit a cache.
    pub long: bool,
}

impl<V: Vector> Op<V> for UnfoldContiguous<'_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let half = self.real.half;
        // For all lines first: a vector load that covers a recent scalar store would stall.
        for line in 0..self.lines {
            let from = self.from.line(line);
            // SAFETY: lines of `from` have room for `half + 1` elements.
            unsafe { std::ptr::copy_nonoverlapping(from, from.add(2 * half), 2) };
        }
        for line in 0..self.lines {
            let (from, to) = (self.from.line(line), self.to.line(line));
            // SAFETY: lines of `from` and `to` have `half + 1` elements; a vector fits between the middle and the end.
            unsafe {
                let mut w = self.real.twiddles.as_ptr();
                for k in (0..half / 2).step_by(V::LINES) {
                    let mirror = half - k - (V::LINES - 1);
                    let (a, b) = (V::load(from.add(2 * k)), V::load(from.add(2 * mirror)).reverse());
                    let even = a.add_conj(b);
                    let odd = a.sub_conj(b).times(V::load(w), V::load(w.add(V::LANES)));
                    let x = [even.sub_i(odd), even.add_i(odd).conj().reverse()];
                    let [near, far] = self.mode.scaled(x);
                    if self.long {
                        prefetch_for_write(to.wrapping_add(2 * k + LEAD).cast_const().cast());
                        prefetch_for_write(
                            to.wrapping_add(2 * mirror).wrapping_sub(LEAD).cast_const().cast(),
                        );
                    }
                    near.store(to.add(2 * k));
                    far.store(to.add(2 * mirror));
                    w = w.add(2 * V::LANES);
                }
                let a = V::load(from.add(half));
                let odd = a.sub_conj(a).times_factor(self.real.middle.as_ptr());
                let [x] = self.mode.scaled([a.add_conj(a).add_i(odd).conj()]);
                put_one(x, to.add(half));
            }
        }
    }
}

/// Before the backward complex transform: computes `half` elements from
/// `half + 1`. Lines of `to` have room for one more element.
pub(super) struct FoldContiguous<'a, V: Vector> {
    pub real: &'a ContiguousReal<V::T>,
    pub lines: usize,
    pub from: LineArray<V::T>,
    pub to: LineArray<V::T>,
}

impl<V: Vector> Op<V> for FoldContiguous<'_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let half = self.real.half;
        for line in 0..self.lines {
            let (from, to) = (self.from.line(line), self.to.line(line));
            // SAFETY: lines of `from` and `to` have `half + 1` elements; a vector fits between the middle and the end.
            unsafe {
                let mut w = self.real.twiddles.as_ptr();
                for k in (0..half / 2).step_by(V::LINES) {
                    let mirror = half - k - (V::LINES - 1);
                    let (a, b) = (V::load(from.add(2 * k)), V::load(from.add(2 * mirror)).reverse());
                    let even = a.add_conj(b);
                    let odd = a.sub_conj(b).times(V::load(w), V::load(w.add(V::LANES)));
                    even.add_i(odd).store(to.add(2 * k));
                    even.sub_i(odd).conj().reverse().store(to.add(2 * mirror));
                    w = w.add(2 * V::LANES);
                }
                let a = V::load(from.add(half));
                let odd = a.sub_conj(a).times_factor(self.real.middle.as_ptr());
                put_one(a.add_conj(a).sub_i(odd).conj(), to.add(half));
                // The imaginary parts of the first and the last element are taken as zero.
                let (first, last) = (*from, *from.add(2 * half));
                (*to, *to.add(1)) = (first + last, first - last);
            }
        }
    }
}

/// Stores the first element of a vector.
///
/// # Safety
/// Inside [`Vector::enter`]; `to` is valid for two writes.
#[inline(always)]
unsafe fn put_one<V: Vector>(x: V, to: *mut V::T) {
    let mut scalars = [V::T::default(); MAX_LANES];
    // SAFETY: the array has MAX_LANES scalars; `to` is valid for two writes.
    unsafe {
        x.store(scalars.as_mut_ptr());
        std::ptr::copy_nonoverlapping(scalars.as_ptr(), to, 2);
    }
}
