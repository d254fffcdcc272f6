//! Contiguous lines one by one, with vectors along the line: neighbouring
//! elements instead of neighbouring lines. Element by element the arithmetic is
//! that of the passes over groups, so bits do not depend on which way a line
//! goes; but nothing is transposed on the way in and out, only once before
//! the last pass.
// Indexed loops, because the compiler keeps what they touch in registers.
#![allow(clippy::needless_range_loop, clippy::manual_memcpy)]

use super::butterfly::{dft, lists, with_radix};
use super::fft::{Fft, Leaf, Level, steps};
use super::ports::{Finish, put};
use super::touch::Touch;
use super::vector::{FACTOR, MAX_LINES, Op, Vector, factor};
use crate::real::Real;

/// Twiddles as vectors, for every level of an [`Fft`].
pub(super) struct Along<T> {
    twiddles: Vec<T>,
    /// Where those of a level begin.
    at: Vec<usize>,
    streams: bool,
}

impl<T: Real> Along<T> {
    /// None where vectors do not fit the passes.
    pub fn new<V: Vector<T = T>>(fft: &Fft<T>) -> Option<Self> {
        let Leaf::Radix(leaf) = fft.leaf else { return None };
        let lengths = [leaf, fft.levels.first()?.radix];
        let even = lengths.iter().all(|length| length.is_multiple_of(V::LINES));
        // The last vector may overlap the one before it where no pass works in
        // place, and as long as that is little work done twice.
        let little =
            |length: usize| length >= V::LINES && 5 * length.next_multiple_of(V::LINES) <= 7 * length;
        let long = fft.levels.len() == 1 && lengths.into_iter().all(little);
        if !even && !long {
            return None;
        }
        let whole = !V::SHORT || lengths[1].is_multiple_of(2 * V::LINES);
        let mut along = Along { twiddles: vec![], at: vec![], streams: even && whole };
        let mut done = 1;
        for level in &fft.levels {
            along.at.push(along.twiddles.len());
            for j in (0..level.m).step_by(V::LINES) {
                let j = j.min(level.m - V::LINES);
                for p in 1..level.radix {
                    along.push::<V>(|i| fft.twiddle(level.radix, (j + i) * done, p));
                }
            }
            done *= level.radix;
        }
        Some(along)
    }

    /// Whether results can go past the caches: no vectors overlap, so that all
    /// are aligned, and their cache lines come whole.
    pub fn streams(&self) -> bool {
        self.streams
    }

    /// The factors of a vector's elements: real parts twice, then imaginary parts.
    fn push<V: Vector<T = T>>(&mut self, twiddle: impl Fn(usize) -> (f64, f64)) {
        let factors: Vec<[T; FACTOR]> = (0..V::LINES).map(twiddle).map(|(re, im)| factor(re, im)).collect();
        self.twiddles.extend(factors.iter().flat_map(|w| [w[0], w[0]]));
        self.twiddles.extend(factors.iter().flat_map(|w| [w[1], w[2]]));
    }

    /// Transforms `lines` lines from `from` through `work` to `to`.
    ///
    /// # Safety
    /// The processor has `V`'s instruction set; the lines have the `n`
    /// elements of `fft`, for which `self` was made, and `work` is apart.
    pub unsafe fn run<V: Vector<T = T>>(
        &self,
        fft: &Fft<T>,
        lines: usize,
        [from, work, to]: [Stack<T>; 3],
        finish: Finish<T>,
        touch: &mut Touch<'_, T>,
    ) {
        let mut blocks = 1;
        let mut source = from;
        // SAFETY: blocks and levels nest, so all stay within n elements.
        unsafe {
            for (&Level { radix, m, .. }, &at) in fft.levels.iter().zip(&self.at) {
                let twiddles = self.twiddles[at..].as_ptr();
                with_radix!(radix, V, R => V::enter(Pass::<V, R> {
                    lines, from: source, work, blocks, m, twiddles, backward: fft.backward, touch,
                }));
                source = work;
                blocks *= radix;
            }
            let base = &fft.base[..];
            let (stride, first_radix, backward) = (fft.stride, fft.levels[0].radix, fft.backward);
            let Leaf::Radix(radix) = fft.leaf else { unreachable!("checked when made") };
            with_radix!(radix, V, R => V::enter(Last::<V, R> {
                lines, work, to, base, stride, backward, first_radix, finish, touch,
            }));
        }
    }
}

/// Lines one after the other.
#[derive(Clone, Copy)]
pub(super) struct Stack<T> {
    pub start: *mut T,
    /// Numbers from one line to the next.
    pub lane: isize,
}

impl<T> Stack<T> {
    #[inline(always)]
    pub fn line(&self, line: usize) -> *mut T {
        self.start.wrapping_offset(line as isize * self.lane)
    }
}

/// Butterflies of `R` elements `m` apart, for several neighbours at once.
struct Pass<'a, 'b, V: Vector, const R: usize> {
    lines: usize,
    from: Stack<V::T>,
    work: Stack<V::T>,
    blocks: usize,
    m: usize,
    twiddles: *const V::T,
    backward: bool,
    touch: &'a mut Touch<'b, V::T>,
}

impl<V: Vector, const R: usize> Op<V> for Pass<'_, '_, V, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let share = self.touch.share(R);
        let step = 2 * self.m;
        let (jump, stride) = steps::<R>(self.backward, step as isize);
        for line in 0..self.lines {
            let (mut source, mut target) = (self.from.line(line), self.work.line(line));
            for _ in 0..self.blocks {
                let mut w = self.twiddles;
                for j in (0..self.m).step_by(V::LINES) {
                    let at = 2 * j.min(self.m - V::LINES);
                    // SAFETY: elements as the struct says; R - 1 pairs of vectors of twiddles for each step.
                    unsafe {
                        let mut x = [V::zero(); R];
                        let mut from = source.add(at);
                        for q in 0..R {
                            x[q] = V::load(from);
                            from = from.wrapping_add(step);
                        }
                        dft::<V, R>(&mut x);
                        let mut to = target.add(at);
                        x[0].store(to);
                        to = to.wrapping_offset(jump);
                        for p in 1..R {
                            to = to.wrapping_offset(stride);
                            x[p].times(V::load(w), V::load(w.add(V::LANES))).store(to);
                            w = w.add(2 * V::LANES);
                        }
                    }
                    self.touch.fetch(share);
                }
                (source, target) = (source.wrapping_add(R * step), target.wrapping_add(R * step));
            }
        }
    }
}

/// Butterflies of `R` neighbours, for several blocks whose results are
/// neighbours: the blocks of neighbouring digits of the first pass.
struct Last<'a, 'b, V: Vector, const R: usize> {
    lines: usize,
    work: Stack<V::T>,
    to: Stack<V::T>,
    base: &'a [usize],
    stride: isize,
    backward: bool,
    first_radix: usize,
    finish: Finish<V::T>,
    touch: &'a mut Touch<'b, V::T>,
}

impl<V: Vector, const R: usize> Op<V> for Last<'_, '_, V, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        if R < V::LINES {
            return;
        }
        let share = self.touch.share(R);
        let apart = self.base.len() / self.first_radix;
        // What goes past the caches goes in whole cache lines.
        let pairs = V::SHORT && self.finish.stream && self.first_radix.is_multiple_of(2 * V::LINES);
        let mut held = [V::zero(); R];
        for line in 0..self.lines {
            let (work, to) = (self.work.line(line), self.to.line(line));
            for rest in 0..apart {
                for digit in (0..self.first_radix).step_by(V::LINES) {
                    let digit = digit.min(self.first_radix - V::LINES);
                    let first = digit * apart + rest;
                    // SAFETY: blocks of R elements, with a base for each.
                    unsafe {
                        let mut x = Self::load(work.add(2 * R * first), 2 * R * apart);
                        dft::<V, R>(&mut x);
                        let x = self.finish.scaled(x);
                        let to = to.add(2 * *self.base.get_unchecked(first));
                        if !pairs {
                            self.store(to, [x]);
                        } else if digit.is_multiple_of(2 * V::LINES) {
                            held = x;
                        } else {
                            self.store(to.wrapping_sub(V::LANES), [held, x]);
                        }
                    }
                    self.touch.fetch(share);
                }
            }
        }
    }
}

impl<V: Vector, const R: usize> Last<'_, '_, V, R> {
    /// Elements of blocks `apart` numbers apart, as many blocks as a vector has lines.
    ///
    /// # Safety
    /// Inside [`Vector::enter`]; the blocks have R elements.
    #[inline(always)]
    unsafe fn load(work: *const V::T, apart: usize) -> [V; R] {
        let mut x = [V::zero(); R];
        for part in (0..R).step_by(V::LINES) {
            let part = part.min(R - V::LINES);
            let mut square = [V::zero(); MAX_LINES];
            for i in 0..V::LINES {
                // SAFETY: the caller's promise.
                square[i] = unsafe { V::load(work.add(i * apart + 2 * part)) };
            }
            V::transpose(&mut square);
            for i in 0..V::LINES {
                x[part + i] = square[i];
            }
        }
        x
    }

    /// Neighbouring vectors, one after the other.
    ///
    /// # Safety
    /// Inside [`Vector::enter`]; runs of places from `to` on, `stride` apart.
    #[inline(always)]
    unsafe fn store<const G: usize>(&self, to: *mut V::T, x: [[V; R]; G]) {
        // SAFETY: the caller's promise.
        unsafe { if self.finish.stream { self.put::<G, true>(to, x) } else { self.put::<G, false>(to, x) } }
    }

    /// # Safety
    /// As for [`store`](Last::store).
    #[inline(always)]
    unsafe fn put<const G: usize, const STREAM: bool>(&self, mut to: *mut V::T, x: [[V; R]; G]) {
        let (jump, stride) = steps::<R>(self.backward, 2 * self.stride);
        for p in 0..R {
            for g in 0..G {
                // SAFETY: the caller's promise.
                unsafe { put::<V, STREAM>(x[g][p], to.wrapping_add(g * V::LANES)) };
            }
            to = to.wrapping_offset(if p == 0 { jump + stride } else { stride });
        }
    }
}
