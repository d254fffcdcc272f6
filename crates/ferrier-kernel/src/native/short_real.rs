//! Contiguous real lines of an even number of points, half of which one butterfly transforms: a vector of lines at a time, in
//! registers from the source to the target. Squares of elements are transposed on the way in and out; the extra pass of
//! `real.rs` lies between the butterfly and the store, or between the load and the butterfly. The arithmetic is that of
//! `real.rs`, so bits are the same.
//!
//! Indexed loops: the compiler keeps their arrays in registers.
#![allow(clippy::needless_range_loop, clippy::manual_memcpy)]

use super::butterfly::{dft, lists};
use super::line_io::{LineArray, StoreMode};
use super::prefetch::Prefetcher;
use super::vector::{FACTOR_LEN, MAX_LANES, MAX_LINES, Op, Vector};
use crate::real::Real;

/// Elements of the longest spectrum.
const MAX_ELEMENTS: usize = 25;

/// An unrolled loop of at most 13 iterations: the compiler does not unroll all of them, and indexed arrays then leave the
/// registers.
macro_rules! unrolled {
    ($i:ident < $end:expr, $body:block) => {
        unrolled!(@ $i, $end, $body; 0 1 2 3 4 5 6 7 8 9 10 11 12)
    };
    (@ $i:ident, $end:expr, $body:block; $($n:literal)*) => {
        $(if $n < $end { let $i: usize = $n; $body })*
    };
}

/// Half the lengths that are compiled: those of 4 to 20, 24, 30, 32 and 48 points that one butterfly transforms.
macro_rules! with_short_real {
    ($half:expr, $V:ty, $R:ident => $body:expr) => {
        with_short_real!(@ $half, $V, $R => $body; 2 3 4 5 7 8 9 10 12 15 16 24)
    };
    (@ $half:expr, $V:ty, $R:ident => $body:expr; $($r:literal)*) => {
        match $half {
            $($r if const { is_short::<$V>($r) } => { const $R: usize = $r; $body })*
            other => unreachable!("no real lines of twice {other} points"),
        }
    };
}

/// Whether lines of `2 * half` real points are transformed in registers.
pub(super) const fn is_short<V: Vector>(half: usize) -> bool {
    // Vectors shorter than a cache line are those of instruction sets with 16 registers, which hold no 17 elements.
    let registers = !V::SHORT || half < 16;
    matches!(half, 2 | 3 | 4 | 5 | 7 | 8 | 9 | 10 | 12 | 15 | 16 | 24) && registers && lists(V::RADICES, half)
}

/// Whether lines of `elements` complex numbers are stored in whole cache lines, vector by vector.
pub(super) fn fills_vectors<V: Vector>(elements: usize) -> bool {
    !V::SHORT && elements.is_multiple_of(V::LINES)
}

/// Blocks of lines, repeated at constant distances.
pub(super) struct ShortReal<'a, 'b, T> {
    pub half: usize,
    pub backward: bool,
    pub lines: usize,
    /// How often the lines come again, and the scalars from one source (target) to the next.
    pub planes: usize,
    pub skips: [isize; 2],
    pub from: LineArray<T>,
    pub to: LineArray<T>,
    /// Those of the extra pass, as packed factors.
    pub twiddles: &'a [T],
    pub mode: StoreMode<T>,
    pub prefetcher: &'a mut Prefetcher<'b, T>,
}

impl<T: Real> ShortReal<'_, '_, T> {
    /// Transforms the lines.
    ///
    /// # Safety
    /// The processor has `V`'s instruction set; [`is_short`]; `twiddles` are those of the length; the lines are valid in
    /// every plane, those of the target aligned and in whole vectors if stores are non-temporal.
    pub unsafe fn run<V: Vector<T = T>>(self) {
        let it = self;
        // SAFETY: this function's contract.
        unsafe {
            with_short_real!(it.half, V, R => match it.backward {
                true => V::enter(Backward::<V, R>(it)),
                false => V::enter(Forward::<V, R>(it)),
            })
        }
    }

    /// Calls `transform` with the lines of source and target of every group, and the number of lines.
    #[inline(always)]
    unsafe fn groups<V: Vector<T = T>, const R: usize, G: Group<V>>(&mut self) {
        let budget = self.prefetcher.budget(R);
        let (mut from, mut to) = (self.from, self.to);
        for _ in 0..self.planes {
            for first in (0..self.lines).step_by(V::LINES) {
                let mut starts = [from.line(first).cast_const(); MAX_LINES];
                let mut targets = [to.line(first); MAX_LINES];
                for i in 1..V::LINES {
                    // Lanes without a line use the last line.
                    let lanes = if first + i < self.lines { [from.lane, to.lane] } else { [0; 2] };
                    starts[i] = starts[i - 1].wrapping_offset(lanes[0]);
                    targets[i] = targets[i - 1].wrapping_offset(lanes[1]);
                }
                // SAFETY: `run`'s contract.
                unsafe { G::transform(&starts, &targets, self.twiddles.as_ptr(), self.mode) };
                self.prefetcher.visit(budget);
            }
            from.start = from.start.wrapping_offset(self.skips[0]);
            to.start = to.start.wrapping_offset(self.skips[1]);
        }
    }
}

/// The transform of a vector of lines.
trait Group<V: Vector> {
    /// # Safety
    /// Inside [`Vector::enter`]; source, target and twiddles are valid.
    unsafe fn transform(
        from: &[*const V::T; MAX_LINES],
        to: &[*mut V::T; MAX_LINES],
        w: *const V::T,
        mode: StoreMode<V::T>,
    );
}

/// From reals to their spectrum.
struct Forward<'a, 'b, V: Vector, const R: usize>(ShortReal<'a, 'b, V::T>);

impl<V: Vector, const R: usize> Op<V> for Forward<'_, '_, V, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(mut self) {
        // SAFETY: `Op::run`'s contract.
        unsafe { self.0.groups::<V, R, Self>() }
    }
}

impl<V: Vector, const R: usize> Group<V> for Forward<'_, '_, V, R> {
    /// As `Unfold`.
    #[inline(always)]
    unsafe fn transform(
        from: &[*const V::T; MAX_LINES],
        to: &[*mut V::T; MAX_LINES],
        w: *const V::T,
        mode: StoreMode<V::T>,
    ) {
        let mut x = [V::zero(); R];
        // SAFETY: this function's contract: lines have R elements.
        unsafe { load::<V>(from, &mut x) };
        dft::<V, R>(&mut x);
        let mut spectrum = [V::zero(); MAX_ELEMENTS];
        unrolled!(k < R / 2 + 1, {
            let mirror = R - k;
            let (a, b) = (x[k], x[mirror % R]);
            let even = a.add_conj(b);
            // SAFETY: there is a twiddle for each pair.
            let odd = unsafe { a.sub_conj(b).times_factor(w.add(FACTOR_LEN * k)) };
            spectrum[k] = even.sub_i(odd);
            spectrum[mirror] = even.add_i(odd).conj();
        });
        // SAFETY: this function's contract: lines have R + 1 elements, aligned if stores are non-temporal.
        unsafe { store(to, mode.scaled(spectrum), R + 1, mode.stream) };
    }
}

/// From spectra to reals.
struct Backward<'a, 'b, V: Vector, const R: usize>(ShortReal<'a, 'b, V::T>);

impl<V: Vector, const R: usize> Op<V> for Backward<'_, '_, V, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(mut self) {
        // SAFETY: `Op::run`'s contract.
        unsafe { self.0.groups::<V, R, Self>() }
    }
}

impl<V: Vector, const R: usize> Group<V> for Backward<'_, '_, V, R> {
    /// As `Fold`.
    #[inline(always)]
    unsafe fn transform(
        from: &[*const V::T; MAX_LINES],
        to: &[*mut V::T; MAX_LINES],
        w: *const V::T,
        mode: StoreMode<V::T>,
    ) {
        let mut spectrum = [V::zero(); R];
        let mut last = V::zero();
        // SAFETY: this function's contract: lines have R + 1 elements.
        unsafe {
            load::<V>(from, &mut spectrum);
            for i in 0..V::LINES {
                let element = from[i].add(2 * R);
                last = last.load_lines(element.wrapping_sub(2 * i), i, i + 1);
            }
        }
        let mut x = [V::zero(); R];
        // The imaginary parts of these two are taken as zero.
        x[0] = spectrum[0].reals().add_conj(last.reals());
        unrolled!(pair < R / 2, {
            let k = pair + 1;
            let mirror = R - k;
            let (a, b) = (spectrum[k], spectrum[mirror]);
            let even = a.add_conj(b);
            // SAFETY: there is a twiddle for each pair.
            let odd = unsafe { a.sub_conj(b).times_factor(w.add(FACTOR_LEN * k)) };
            x[k] = even.add_i(odd);
            x[mirror] = even.sub_i(odd).conj();
        });
        dft::<V, R>(&mut x);
        // Butterflies have sign -1: with sign +1 the results are in reverse order.
        let mut results = [V::zero(); MAX_ELEMENTS];
        for k in 0..R {
            results[k] = x[(R - k) % R];
        }
        // SAFETY: this function's contract: lines have R elements, aligned if stores are non-temporal.
        unsafe { store(to, mode.scaled(results), R, mode.stream) };
    }
}

/// Loads the first elements of a vector of lines, squares of them transposed. The last square may overlap the one before it.
///
/// # Safety
/// Inside [`Vector::enter`]; the lines have R elements.
#[inline(always)]
unsafe fn load<V: Vector>(from: &[*const V::T; MAX_LINES], x: &mut [V]) {
    let count = x.len();
    for part in (0..count).step_by(V::LINES) {
        let part = part.min(count.saturating_sub(V::LINES));
        let mut square = [V::zero(); MAX_LINES];
        for i in 0..V::LINES {
            // SAFETY: this function's contract.
            square[i] = unsafe {
                match count < V::LINES {
                    true => V::zero().load_lines(from[i], 0, count),
                    false => V::load(from[i].add(2 * part)),
                }
            };
        }
        V::transpose(&mut square);
        for i in 0..V::LINES.min(count) {
            x[part + i] = square[i];
        }
    }
}

/// Stores the first `count` elements of each line. Lanes without a line store the last line once more.
///
/// # Safety
/// Inside [`Vector::enter`]; the lines are writable, aligned and whole vectors if `stream`.
#[inline(always)]
unsafe fn store<V: Vector>(to: &[*mut V::T; MAX_LINES], x: [V; MAX_ELEMENTS], count: usize, stream: bool) {
    unrolled!(number < count.div_ceil(V::LINES), {
        let part = number * V::LINES;
        // SAFETY: this function's contract.
        unsafe {
            if part > 0 && part + 1 == count {
                store_one(to, x[part], part);
                return;
            }
            // The last square may overlap the one before it.
            let part = part.min(count.saturating_sub(V::LINES));
            let mut square = [V::zero(); MAX_LINES];
            for i in 0..V::LINES.min(count) {
                square[i] = x[part + i];
            }
            V::transpose(&mut square);
            for i in 0..V::LINES {
                let to = to[i].wrapping_add(2 * part);
                if count < V::LINES {
                    square[i].store_lines(to, 0, count);
                } else if stream {
                    square[i].stream(to);
                } else {
                    square[i].store(to);
                }
            }
        }
    });
}

/// Stores element `k` of each line.
///
/// # Safety
/// As for [`store`].
#[inline(always)]
unsafe fn store_one<V: Vector>(to: &[*mut V::T; MAX_LINES], x: V, k: usize) {
    let mut scalars = [V::T::default(); MAX_LANES];
    // SAFETY: the array has as many scalars as the widest vector; this function's contract.
    unsafe {
        x.store(scalars.as_mut_ptr());
        for i in 0..V::LINES {
            let element = scalars.as_ptr().add(2 * i).cast::<[V::T; 2]>().read();
            to[i].add(2 * k).cast::<[V::T; 2]>().write(element);
        }
    }
}
