//! Contiguous lines one by one, with vectors of neighbouring elements instead
//! of neighbouring lines. The arithmetic of each element is that of the passes
//! over groups, so results have the same bits; but data are transposed only
//! once, before the last pass, and not on loading and storing.
// Indexed loops: the compiler keeps their arrays in registers.
#![allow(clippy::needless_range_loop, clippy::manual_memcpy)]

use super::butterfly::{dft, lists, with_radix};
use super::cache_hint::prefetch_for_write;
use super::contiguous_long::LongLines;
use super::fft::{Fft, LastPass, PassSpec};
use super::line_io::{LineArray, StoreMode, put};
use super::pairs::with_pairs;
use super::passes::steps;
use super::prefetch::Prefetcher;
use super::single_pass::SinglePassContiguous;
use super::two_pass::{TwoPassContiguous, fits_registers, with_pair};
use super::vector::{FACTOR_LEN, MAX_LINES, Op, Vector, packed_factor};
use crate::real::Real;

/// Twiddles as vectors, for every level of an [`Fft`].
pub(super) struct ContiguousFft<T> {
    twiddles: Vec<T>,
    /// The index of the first twiddle of each pass.
    at: Vec<usize>,
    streams: bool,
    /// The first passes of lines that do not fit a cache.
    long: Option<LongLines<T>>,
    /// Whether vectors have half as many elements.
    half: bool,
}

impl<T: Real> ContiguousFft<T> {
    /// `None` where the radices are no multiples of the vector length.
    pub fn new<V: Vector<T = T>>(fft: &Fft<T>) -> Option<Self> {
        let in_registers = |fits: fn(usize, usize) -> bool| match (&fft.leading[..], &fft.last_pass) {
            ([first], LastPass::Radix(last)) => fits(first.radix, *last),
            _ => false,
        };
        // Shorter vectors, where longer ones would be gathered.
        if !in_registers(fits_registers::<V>) && in_registers(fits_registers::<V::Half>) {
            return Self::with::<V::Half>(fft).map(|short| ContiguousFft { half: true, ..short });
        }
        Self::with::<V>(fft)
    }

    fn with<V: Vector<T = T>>(fft: &Fft<T>) -> Option<Self> {
        let LastPass::Radix(last_pass) = fft.last_pass else { return None };
        // The last vector may overlap the one before it if no pass works in
        // place and little work is done twice.
        let little =
            |length: usize| length >= V::LINES && 5 * length.next_multiple_of(V::LINES) <= 7 * length;
        let Some(first) = fft.leading.first() else {
            let streams = !V::SHORT && last_pass.is_multiple_of(V::LINES);
            let fits = last_pass < V::LINES || little(last_pass);
            return fits.then(|| ContiguousFft {
                twiddles: vec![],
                at: vec![],
                streams,
                long: None,
                half: false,
            });
        };
        let lengths = [last_pass, first.radix];
        let even = lengths.iter().all(|length| length.is_multiple_of(V::LINES));
        let long = fft.leading.len() == 1 && lengths.into_iter().all(little);
        if !even && !long {
            return None;
        }
        let whole = !V::SHORT || lengths[1].is_multiple_of(2 * V::LINES);
        let long = if even { LongLines::new::<V>(fft) } else { None };
        let first = long.as_ref().map_or(0, LongLines::levels);
        let mut contiguous =
            ContiguousFft { twiddles: vec![], at: vec![], streams: even && whole, long, half: false };
        let mut done = 1;
        for (number, level) in fft.leading.iter().enumerate() {
            contiguous.at.push(contiguous.twiddles.len());
            // Those of the first passes of long lines are in another order.
            let m = if number < first { 0 } else { level.m };
            for j in (0..m).step_by(V::LINES) {
                let j = j.min(m - V::LINES);
                for p in 1..level.radix {
                    contiguous.push::<V>(|i| fft.twiddle(level.radix, (j + i) * done, p));
                }
            }
            done *= level.radix;
        }
        Some(contiguous)
    }

    /// Whether results can use non-temporal stores: vectors do not overlap, so
    /// all are aligned and fill whole cache lines.
    pub fn streams(&self) -> bool {
        self.streams
    }

    /// Whether lines do not fit a cache: their passes prefetch what they load and store.
    pub fn is_long(&self) -> bool {
        self.long.is_some()
    }

    /// The visits of a prefetcher by the passes of a line over its rows, where lines are long.
    pub fn long_visits<V: Vector<T = T>>(&self, fft: &Fft<T>) -> Option<usize> {
        self.long.as_ref().map(|long| fft.n / V::LINES * (fft.pass_count() - long.levels()))
    }

    /// Scalars of a line's work area.
    pub fn work_len(&self, fft: &Fft<T>) -> usize {
        self.long.as_ref().map_or(2 * fft.n, LongLines::work_len)
    }

    /// Appends the factors of a vector's elements: real parts twice, then imaginary parts.
    fn push<V: Vector<T = T>>(&mut self, twiddle: impl Fn(usize) -> (f64, f64)) {
        let factors: Vec<[T; FACTOR_LEN]> =
            (0..V::LINES).map(twiddle).map(|(re, im)| packed_factor(re, im)).collect();
        self.twiddles.extend(factors.iter().flat_map(|w| [w[0], w[0]]));
        self.twiddles.extend(factors.iter().flat_map(|w| [w[1], w[2]]));
    }

    /// Transforms `lines` lines from `from` through `work` to `to`.
    ///
    /// # Safety
    /// The processor has `V`'s instruction set; `self` was made for `fft`; all
    /// lines have its `n` elements, those of `work` [`work_len`](Self::work_len) scalars; `work` overlaps neither `from` nor `to`.
    pub unsafe fn run<V: Vector<T = T>>(
        &self,
        fft: &Fft<T>,
        lines: usize,
        [from, work, to]: [LineArray<T>; 3],
        mode: StoreMode<T>,
        prefetcher: &mut Prefetcher<'_, T>,
    ) {
        // SAFETY: this function's contract.
        unsafe {
            match self.half {
                true => self.run_with::<V::Half>(fft, lines, [from, work, to], mode, prefetcher),
                false => self.run_with::<V>(fft, lines, [from, work, to], mode, prefetcher),
            }
        }
    }

    /// [`run`](Self::run) with vectors of the length of the twiddles.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    unsafe fn run_with<V: Vector<T = T>>(
        &self,
        fft: &Fft<T>,
        lines: usize,
        [from, work, to]: [LineArray<T>; 3],
        mode: StoreMode<T>,
        prefetcher: &mut Prefetcher<'_, T>,
    ) {
        if let (true, LastPass::Radix(radix)) = (fft.leading.is_empty(), &fft.last_pass) {
            let backward = fft.backward;
            // SAFETY: `run`'s contract: lines have n elements, the radix.
            return unsafe {
                with_radix!(*radix, V, R => V::enter(SinglePassContiguous::<V, R> {
                    lines, from, to, backward, mode, prefetcher,
                }))
            };
        }
        // SAFETY: this function's contract.
        if unsafe { self.run_pair::<V>(fft, lines, [from, to], mode, prefetcher) } {
            return;
        }
        let digits = fft.leading[0].radix;
        let blocks = fft.base.len() / digits;
        // SAFETY: `run`'s contract; blocks nest, so all passes stay within n elements.
        unsafe {
            let Some(long) = &self.long else {
                self.pass::<V>((fft, 0), lines, [from, work], 1, prefetcher);
                self.middle::<V>((fft, 1), lines, work, digits, prefetcher);
                let pitch = 2 * fft.leading[0].m;
                return self.last::<V>(fft, lines, (work, pitch), (to, (0, blocks)), mode, prefetcher);
            };
            let (rows, pitch) = (long.rows() / digits, long.pitch());
            for line in 0..lines {
                long.first_passes::<V>(fft, from.line(line), work.line(line));
                let to = LineArray { start: to.line(line), lane: 0 };
                for row in 0..rows {
                    // The rows of all first digits go together: their results are neighbours.
                    let start = work.line(line).wrapping_add(row * pitch);
                    let work = LineArray { start, lane: (rows * pitch) as isize };
                    self.middle::<V>((fft, long.levels()), digits, work, 1, prefetcher);
                    let rest = (row * blocks / rows, (row + 1) * blocks / rows);
                    self.last::<V>(fft, 1, (work, rows * pitch), (to, rest), mode, prefetcher);
                }
            }
        }
    }

    /// [`run`](Self::run) for two passes of known radices; returns whether they are.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    unsafe fn run_pair<V: Vector<T = T>>(
        &self,
        fft: &Fft<T>,
        lines: usize,
        [from, to]: [LineArray<T>; 2],
        mode: StoreMode<T>,
        prefetcher: &mut Prefetcher<'_, T>,
    ) -> bool {
        let ([first], LastPass::Radix(last)) = (&fft.leading[..], &fft.last_pass) else { return false };
        // Vectors shorter than a cache line are streamed in pairs.
        if V::SHORT && mode.stream {
            return false;
        }
        let twiddles = self.twiddles.as_ptr();
        // SAFETY: this function's contract; the radices multiply to n, the twiddles are those of the first pass.
        unsafe {
            with_pair!((first.radix, *last), V, fits_registers, A, B => {
                if fft.backward {
                    V::enter(TwoPassContiguous::<V, A, B, true> { lines, from, to, twiddles, mode, prefetcher });
                } else {
                    V::enter(TwoPassContiguous::<V, A, B, false> { lines, from, to, twiddles, mode, prefetcher });
                }
                true
            }, else false)
        }
    }

    /// Pass number `level`, over `blocks` blocks of each line.
    ///
    /// # Safety
    /// As for [`run`](Self::run); lines have that many blocks.
    unsafe fn pass<V: Vector<T = T>>(
        &self,
        (fft, level): (&Fft<T>, usize),
        lines: usize,
        [from, work]: [LineArray<T>; 2],
        blocks: usize,
        prefetcher: &mut Prefetcher<'_, T>,
    ) {
        let PassSpec { radix, m, .. } = fft.leading[level];
        let (twiddles, backward) = (self.twiddles[self.at[level]..].as_ptr(), fft.backward);
        // SAFETY: this function's contract.
        unsafe {
            with_radix!(radix, V, R => V::enter(Pass::<V, R> {
                lines, from, work, blocks, m, twiddles, backward, prefetcher,
            }));
        }
    }

    /// The passes from number `level` to the last but one, in place.
    ///
    /// # Safety
    /// As for [`pass`](Self::pass).
    unsafe fn middle<V: Vector<T = T>>(
        &self,
        (fft, level): (&Fft<T>, usize),
        lines: usize,
        work: LineArray<T>,
        mut blocks: usize,
        prefetcher: &mut Prefetcher<'_, T>,
    ) {
        for next in level..fft.leading.len() {
            // SAFETY: this function's contract.
            unsafe { self.pass::<V>((fft, next), lines, [work; 2], blocks, prefetcher) };
            blocks *= fft.leading[next].radix;
        }
    }

    /// The last pass, over blocks `rest` of each first digit; the digits are `pitch` scalars apart.
    ///
    /// # Safety
    /// As for [`run`](Self::run); `work` has these blocks.
    unsafe fn last<V: Vector<T = T>>(
        &self,
        fft: &Fft<T>,
        lines: usize,
        (work, pitch): (LineArray<T>, usize),
        (to, rest): (LineArray<T>, (usize, usize)),
        mode: StoreMode<T>,
        prefetcher: &mut Prefetcher<'_, T>,
    ) {
        let base = &fft.base[..];
        let (stride, backward, first_radix) = (fft.stride, fft.backward, fft.leading[0].radix);
        let prefetch_target = self.is_long() && !mode.stream;
        let LastPass::Radix(radix) = fft.last_pass else { unreachable!("checked by `new`") };
        // SAFETY: this function's contract.
        unsafe {
            with_radix!(radix, V, R => V::enter(Last::<V, R> {
                lines, work, pitch, to, base, stride, backward, first_radix, rest, mode, prefetch_target, prefetcher,
            }));
        }
    }
}

/// Butterflies of `R` elements `m` apart, for a vector of neighbours at once.
struct Pass<'a, 'b, V: Vector, const R: usize> {
    lines: usize,
    from: LineArray<V::T>,
    work: LineArray<V::T>,
    blocks: usize,
    m: usize,
    twiddles: *const V::T,
    backward: bool,
    prefetcher: &'a mut Prefetcher<'b, V::T>,
}

impl<V: Vector, const R: usize> Op<V> for Pass<'_, '_, V, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let budget = self.prefetcher.budget(R);
        let step = 2 * self.m;
        let (jump, stride) = steps::<R>(self.backward, step as isize);
        for line in 0..self.lines {
            let (mut source, mut target) = (self.from.line(line), self.work.line(line));
            for _ in 0..self.blocks {
                let mut w = self.twiddles;
                for j in (0..self.m).step_by(V::LINES) {
                    let at = 2 * j.min(self.m - V::LINES);
                    // SAFETY: `Op::run`'s contract: lines have all blocks; R - 1 pairs of vectors of twiddles for each step.
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
                    self.prefetcher.visit(budget);
                }
                (source, target) = (source.wrapping_add(R * step), target.wrapping_add(R * step));
            }
        }
    }
}

/// Butterflies of `R` neighbours, for a vector of blocks whose results are
/// neighbours: blocks of neighbouring digits of the first pass.
struct Last<'a, 'b, V: Vector, const R: usize> {
    lines: usize,
    work: LineArray<V::T>,
    /// Scalars from the blocks of one first digit to those of the next.
    pitch: usize,
    to: LineArray<V::T>,
    base: &'a [usize],
    stride: isize,
    backward: bool,
    first_radix: usize,
    /// The blocks of a first digit that `work` has: from, to.
    rest: (usize, usize),
    mode: StoreMode<V::T>,
    /// Whether to prefetch what will be written.
    prefetch_target: bool,
    prefetcher: &'a mut Prefetcher<'b, V::T>,
}

impl<V: Vector, const R: usize> Op<V> for Last<'_, '_, V, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        if R < V::LINES {
            return;
        }
        let budget = self.prefetcher.budget(R);
        let apart = self.base.len() / self.first_radix;
        // Non-temporal stores write whole cache lines.
        let pairs = V::SHORT && self.mode.stream && self.first_radix.is_multiple_of(2 * V::LINES);
        let mut held = [V::zero(); R];
        for line in 0..self.lines {
            let (work, to) = (self.work.line(line), self.to.line(line));
            for rest in self.rest.0..self.rest.1 {
                for digit in (0..self.first_radix).step_by(V::LINES) {
                    let digit = digit.min(self.first_radix - V::LINES);
                    let first = digit * apart + rest;
                    // SAFETY: `Op::run`'s contract: lines have a block of R elements for each base.
                    unsafe {
                        let block = work.add(digit * self.pitch + 2 * R * (rest - self.rest.0));
                        let mut x = Self::load(block, self.pitch);
                        dft::<V, R>(&mut x);
                        let x = self.mode.scaled(x);
                        if self.prefetch_target && rest + 1 < self.rest.1 {
                            self.prefetch(to.add(2 * *self.base.get_unchecked(first + 1)));
                        }
                        let to = to.add(2 * *self.base.get_unchecked(first));
                        if !pairs {
                            self.store(to, [x]);
                        } else if digit.is_multiple_of(2 * V::LINES) {
                            held = x;
                        } else {
                            self.store(to.wrapping_sub(V::LANES), [held, x]);
                        }
                    }
                    self.prefetcher.visit(budget);
                }
            }
        }
    }
}

impl<V: Vector, const R: usize> Last<'_, '_, V, R> {
    /// Loads and transposes elements of `LINES` blocks, `apart` scalars apart.
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
                // SAFETY: `load`'s contract: the blocks have R elements.
                square[i] = unsafe { V::load(work.add(i * apart + 2 * part)) };
            }
            V::transpose(&mut square);
            for i in 0..V::LINES {
                x[part + i] = square[i];
            }
        }
        x
    }

    /// Prefetches the results of a butterfly for writing.
    #[inline(always)]
    fn prefetch(&self, to: *mut V::T) {
        for p in 0..R as isize {
            prefetch_for_write(to.wrapping_offset(2 * p * self.stride).cast_const().cast());
        }
    }

    /// Stores `G` neighbouring vectors of each result.
    ///
    /// # Safety
    /// Inside [`Vector::enter`]; `to` is valid for writes of `G` vectors at every result, `stride` apart.
    #[inline(always)]
    unsafe fn store<const G: usize>(&self, to: *mut V::T, x: [[V; R]; G]) {
        // SAFETY: `store`'s contract is that of `put`.
        unsafe { if self.mode.stream { self.put::<G, true>(to, x) } else { self.put::<G, false>(to, x) } }
    }

    /// # Safety
    /// As for [`store`](Last::store).
    #[inline(always)]
    unsafe fn put<const G: usize, const STREAM: bool>(&self, mut to: *mut V::T, x: [[V; R]; G]) {
        let (jump, stride) = steps::<R>(self.backward, 2 * self.stride);
        for p in 0..R {
            for g in 0..G {
                // SAFETY: `put`'s contract: `to` is valid for writes of G vectors at every result.
                unsafe { put::<V, STREAM>(x[g][p], to.wrapping_add(g * V::LANES)) };
            }
            to = to.wrapping_offset(if p == 0 { jump + stride } else { stride });
        }
    }
}
