//! The extra pass of contiguous real lines, with vectors along the line: what
//! `real.rs` does for groups of lines, element by element the same.

use super::along::Stack;
use super::ports::Finish;
use super::vector::{FACTOR, MAX_LANES, Op, Vector};

/// Twiddles of the extra pass as vectors, and that of the element in the middle.
pub(super) struct AlongReal<T> {
    twiddles: Vec<T>,
    middle: [T; FACTOR],
    half: usize,
}

impl<T: Copy> AlongReal<T> {
    /// From the factors of elements 0 to `half / 2`; none where vectors do not fit.
    pub fn new<V: Vector<T = T>>(half: usize, factors: &[T]) -> Option<Self> {
        if half == 0 || !half.is_multiple_of(2 * V::LINES) {
            return None;
        }
        let factors: Vec<&[T]> = factors.chunks_exact(FACTOR).collect();
        let mut twiddles = vec![];
        for vector in factors[..half / 2].chunks_exact(V::LINES) {
            twiddles.extend(vector.iter().flat_map(|w| [w[0], w[0]]));
            twiddles.extend(vector.iter().flat_map(|w| [w[1], w[2]]));
        }
        let middle = factors[half / 2];
        Some(AlongReal { twiddles, middle: [middle[0], middle[1], middle[2]], half })
    }
}

/// After the complex transform of `half` elements: twice the spectrum of the
/// reals. Lines of `from` have room for one element more.
pub(super) struct UnfoldAlong<'a, V: Vector> {
    pub real: &'a AlongReal<V::T>,
    pub lines: usize,
    pub from: Stack<V::T>,
    pub to: Stack<V::T>,
    pub finish: Finish<V::T>,
}

impl<V: Vector> Op<V> for UnfoldAlong<'_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let half = self.real.half;
        // All of them first: what was just stored in part cannot be loaded as a whole without waiting.
        for line in 0..self.lines {
            let from = self.from.line(line);
            // SAFETY: `half` elements and one more.
            unsafe { std::ptr::copy_nonoverlapping(from, from.add(2 * half), 2) };
        }
        for line in 0..self.lines {
            let (from, to) = (self.from.line(line), self.to.line(line));
            // SAFETY: `half` elements and one more here, `half + 1` there; a vector fits between
            // the middle and the end.
            unsafe {
                let mut w = self.real.twiddles.as_ptr();
                for k in (0..half / 2).step_by(V::LINES) {
                    let mirror = half - k - (V::LINES - 1);
                    let (a, b) = (V::load(from.add(2 * k)), V::load(from.add(2 * mirror)).reverse());
                    let even = a.add_conj(b);
                    let odd = a.sub_conj(b).times(V::load(w), V::load(w.add(V::LANES)));
                    let x = [even.sub_i(odd), even.add_i(odd).conj().reverse()];
                    let [near, far] = self.finish.scaled(x);
                    near.store(to.add(2 * k));
                    far.store(to.add(2 * mirror));
                    w = w.add(2 * V::LANES);
                }
                let a = V::load(from.add(half));
                let odd = a.sub_conj(a).times_factor(self.real.middle.as_ptr());
                let [x] = self.finish.scaled([a.add_conj(a).add_i(odd).conj()]);
                put_one(x, to.add(half));
            }
        }
    }
}

/// Before the complex transform backwards: `half` elements from one more.
/// Lines of `to` have room for one element more.
pub(super) struct FoldAlong<'a, V: Vector> {
    pub real: &'a AlongReal<V::T>,
    pub lines: usize,
    pub from: Stack<V::T>,
    pub to: Stack<V::T>,
}

impl<V: Vector> Op<V> for FoldAlong<'_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let half = self.real.half;
        for line in 0..self.lines {
            let (from, to) = (self.from.line(line), self.to.line(line));
            // SAFETY: `half + 1` elements on both sides; a vector fits between the middle and the end.
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
                // The imaginary parts of the first and the last element count as zero.
                let (first, last) = (*from, *from.add(2 * half));
                (*to, *to.add(1)) = (first + last, first - last);
            }
        }
    }
}

/// Stores the first element of a vector.
///
/// # Safety
/// Inside [`Vector::enter`]; two numbers can be written.
#[inline(always)]
unsafe fn put_one<V: Vector>(x: V, to: *mut V::T) {
    let mut numbers = [V::T::default(); MAX_LANES];
    // SAFETY: the caller's promise.
    unsafe {
        x.store(numbers.as_mut_ptr());
        std::ptr::copy_nonoverlapping(numbers.as_ptr(), to, 2);
    }
}
