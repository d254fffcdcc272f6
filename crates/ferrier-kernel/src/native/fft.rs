//! The complex transform of a group of lines, sign -1, in passes.
//!
//! Decimation in frequency: every pass but the last works in place on
//! scratch and leaves independent blocks; the last one stores its results in
//! natural order, so digit reversal needs no pass of its own. Large lines are
//! processed depth first, so that a block stays in cache until it is done.
//!
//! Lengths that no radix divides are convolutions on the same lanes: Rader's
//! algorithm for primes whose predecessor factors into radices, Bluestein's
//! for the rest.

use std::marker::PhantomData;

use super::butterfly::{lists, with_radix};
use super::convolution::{BluesteinStore, Multiply, RaderProduct, RaderStore, Reorder};
use super::factorization::{Radices, factorize, is_prime, power, primitive_root, smooth_from};
use super::line_io::{LineIo, StridedIo};
use super::pairs::with_pairs;
use super::passes::{CopyIn, Last, Pass, ResultSlots};
use super::portable::Portable;
use super::prefetch::Prefetcher;
use super::single_pass::SinglePass;
use super::two_pass::{TwoPass, has_pair, with_pair};
use super::vector::{Vector, packed_factor};
use crate::real::Real;
use crate::roots::Roots;

/// Smaller blocks are processed breadth first: half a first-level cache.
const DEPTH_FIRST_BYTES: usize = 24 << 10;

/// A leading pass, which leaves blocks of `m` elements.
pub(super) struct PassSpec {
    pub radix: usize,
    pub m: usize,
    /// The index of its first twiddle.
    at: usize,
}

/// The last pass.
pub(super) enum LastPass<T> {
    Radix(usize),
    Rader(Box<Rader<T>>),
    Bluestein(Box<Bluestein<T>>),
}

/// Tables for lines of `n` points.
pub(super) struct Fft<T> {
    pub n: usize,
    pub leading: Vec<PassSpec>,
    pub last_pass: LastPass<T>,
    last_len: usize,
    /// Index of the first result of each block of the last pass, and the
    /// distance from one result of a block to the next.
    pub base: Vec<usize>,
    pub stride: isize,
    pub backward: bool,
    /// The same for results that stay in place.
    identity: Vec<usize>,
    twiddles: Vec<T>,
    roots: Roots,
}

impl<T: Real> Fft<T> {
    /// Tables for lines of `n` points, with passes of these `radices`.
    ///
    /// A `backward` transform (sign +1) uses butterflies of sign -1 and stores
    /// all their results but the first in reverse order; its twiddles are conjugate.
    pub fn new(n: usize, radices: Radices, backward: bool) -> Self {
        let (mut passes, rest) = factorize(n, radices);
        let (last_pass, last_len) = if rest > 1 {
            let last_pass = match Rader::new(rest, radices) {
                Some(rader) => LastPass::Rader(Box::new(rader)),
                None => LastPass::Bluestein(Box::new(Bluestein::new(rest, radices))),
            };
            (last_pass, rest)
        } else {
            let radix = passes.pop().unwrap_or(1);
            (LastPass::Radix(radix), radix)
        };
        let identity = (0..n).step_by(last_len).collect();
        let mut fft = Fft {
            identity,
            n,
            leading: vec![],
            last_pass,
            last_len,
            base: vec![0],
            stride: (n / last_len) as isize,
            backward,
            twiddles: vec![],
            roots: Roots::new(n),
        };
        let (mut len, mut done) = (n, 1);
        for radix in passes {
            let m = len / radix;
            fft.leading.push(PassSpec { radix, m, at: fft.twiddles.len() });
            for j in 0..m {
                for p in 1..radix {
                    let (re, im) = fft.twiddle(radix, j * done, p);
                    fft.twiddles.extend(packed_factor::<T>(re, im));
                }
            }
            fft.base = fft.base.iter().flat_map(|&b| (0..radix).map(move |p| b + p * done)).collect();
            (len, done) = (m, done * radix);
        }
        fft
    }

    /// The index at which [`run_permuted`](Fft::run_permuted) leaves each element;
    /// `None` if the last pass cannot work in place.
    pub fn permutation(&self) -> Option<Vec<usize>> {
        if !matches!(self.last_pass, LastPass::Radix(_)) {
            return None;
        }
        let mut permutation = vec![0; self.n];
        for (&base, &slot) in self.base.iter().zip(&self.identity) {
            for p in 0..self.last_len {
                permutation[base.wrapping_add_signed(p as isize * self.stride)] = slot + p;
            }
        }
        Some(permutation)
    }

    /// The twiddle of result `p` of a butterfly, in the order of `dft`, for exponent `j`.
    pub fn twiddle(&self, radix: usize, j: usize, p: usize) -> (f64, f64) {
        let index = if self.backward { radix - p } else { p };
        let (cos, sin) = self.roots.get(j * index);
        (cos, if self.backward { sin } else { -sin })
    }

    /// The number of passes.
    pub fn pass_count(&self) -> usize {
        self.leading.len() + 1
    }

    /// Whether one butterfly transforms a line, without scratch.
    pub fn is_single_pass(&self) -> bool {
        self.leading.is_empty() && matches!(self.last_pass, LastPass::Radix(_))
    }

    /// Elements of spare scratch that [`run`](Fft::run) needs.
    pub fn spare(&self) -> usize {
        match &self.last_pass {
            LastPass::Radix(_) => 0,
            LastPass::Rader(rader) => rader.spare(),
            LastPass::Bluestein(bluestein) => bluestein.spare(),
        }
    }

    /// Transforms groups of lines from `from` (which may be the work area of
    /// `scratch`) to `to`.
    ///
    /// # Safety
    /// The processor has `V`'s instruction set; `from`, `to` and the work area
    /// have `n` elements of every group, the spare scratch has [`spare`](Fft::spare)
    /// elements; `to` does not overlap the scratch.
    pub unsafe fn run<V: Vector<T = T>, S: LineIo<V>, D: LineIo<V>>(
        &self,
        from: S,
        to: D,
        scratch: &mut FftScratch<'_, '_, T>,
    ) {
        // SAFETY: `run`'s contract; the radices multiply to n, so all passes stay within n elements.
        unsafe {
            // Sources in pieces with targets in one are rare: not compiled.
            if const { !S::UNCACHED || D::UNCACHED }
                && let (true, LastPass::Radix(radix)) = (self.leading.is_empty(), &self.last_pass)
            {
                let (groups, backward) = (scratch.groups, self.backward);
                let prefetcher = &mut *scratch.prefetcher;
                return with_radix!(*radix, V, R => V::enter(SinglePass::<V, S, D, R> {
                    from, to, groups, backward, prefetcher,
                }));
            }
            // Vectors shorter than a cache line are streamed in pairs.
            if const { !S::UNCACHED && !D::UNCACHED }
                && !scratch.permuted
                && !(V::SHORT && to.store_mode().stream)
                && self.run_pair::<V>(from.strided(), to.strided(), scratch)
            {
                return;
            }
            if self.leading.is_empty() {
                let (work, n, groups) = (scratch.work, self.n, scratch.groups);
                V::enter(CopyIn { from, work, n, groups, lanes: PhantomData::<V> });
                self.run_last::<V, D>(0, 1, to, scratch);
            } else {
                self.run_pass::<V, S>(0, from, (0, 1), (scratch.work, scratch.groups), scratch.prefetcher);
                self.descend::<V, D>(1, 0, self.leading[0].radix, to, scratch);
            }
        }
    }

    /// [`run`](Fft::run) for two passes of known radices; returns whether they are.
    ///
    /// # Safety
    /// As [`run`](Fft::run).
    unsafe fn run_pair<V: Vector<T = T>>(
        &self,
        from: Option<StridedIo<T>>,
        to: Option<StridedIo<T>>,
        scratch: &mut FftScratch<'_, '_, T>,
    ) -> bool {
        let ([first], LastPass::Radix(last)) = (&self.leading[..], &self.last_pass) else { return false };
        let (Some(from), Some(to)) = (from, to) else { return false };
        let (work, groups, backward) = (scratch.work, scratch.groups, self.backward);
        let (twiddles, prefetcher) = (self.twiddles[first.at..].as_ptr(), &mut *scratch.prefetcher);
        // SAFETY: `run`'s contract; the radices multiply to n, the twiddles are those of the first pass.
        unsafe {
            with_pair!((first.radix, *last), V, has_pair, A, B => {
                V::enter(TwoPass::<V, A, B> { from, to, work, groups, twiddles, backward, prefetcher });
                true
            }, else false)
        }
    }

    /// Transforms in place and leaves the results in the order of
    /// [`permutation`](Fft::permutation): half the scratch to keep in cache.
    ///
    /// # Safety
    /// As [`run`](Fft::run); there is a permutation.
    pub unsafe fn run_permuted<V: Vector<T = T>>(&self, scratch: &mut FftScratch<'_, '_, T>) {
        let work = scratch.work;
        scratch.permuted = true;
        // SAFETY: `run_permuted`'s contract; source and target may be the same, because a butterfly loads all
        // its elements before it stores the first.
        unsafe { self.run::<V, _, _>(work, work, scratch) }
    }

    /// All passes from `level` on, for the `blocks` blocks from element `start` on
    /// that the pass before it left.
    unsafe fn descend<V: Vector<T = T>, D: LineIo<V>>(
        &self,
        level: usize,
        start: usize,
        mut blocks: usize,
        to: D,
        scratch: &mut FftScratch<'_, '_, T>,
    ) {
        // SAFETY: `run`'s contract; blocks nest, so all passes stay within n elements.
        unsafe {
            for next in level..self.leading.len() {
                let len = self.leading[next - 1].m;
                if blocks > 1 && blocks * len * V::LANES * size_of::<T>() > DEPTH_FIRST_BYTES {
                    for b in 0..blocks {
                        self.descend::<V, D>(next, start + b * len, 1, to, scratch);
                    }
                    return;
                }
                for g in 0..scratch.groups {
                    let area = LineIo::<V>::of_group(&scratch.work, g);
                    self.run_pass::<V, StridedIo<T>>(
                        next,
                        area,
                        (start, blocks),
                        (area, 1),
                        scratch.prefetcher,
                    );
                }
                blocks *= self.leading[next].radix;
            }
            self.run_last::<V, D>(start / self.last_len, blocks, to, scratch);
        }
    }

    #[inline]
    unsafe fn run_pass<V: Vector<T = T>, S: LineIo<V>>(
        &self,
        level: usize,
        from: S,
        (start, blocks): (usize, usize),
        (work, groups): (StridedIo<T>, usize),
        prefetcher: &mut Prefetcher<'_, T>,
    ) {
        let PassSpec { radix, m, at } = self.leading[level];
        let twiddles = self.twiddles[at..].as_ptr();
        // SAFETY: `run`'s contract; `start` and `blocks` stay within n elements, the twiddles are those of the pass.
        unsafe {
            with_radix!(radix, V, R => V::enter(Pass::<V, S, R> {
                from, work, groups, start, blocks, m, twiddles, backward: self.backward, prefetcher,
            }));
        }
    }

    unsafe fn run_last<V: Vector<T = T>, D: LineIo<V>>(
        &self,
        first: usize,
        blocks: usize,
        to: D,
        scratch: &mut FftScratch<'_, '_, T>,
    ) {
        let (base, stride) = if scratch.permuted { (&self.identity, 1) } else { (&self.base, self.stride) };
        let base = &base[first..first + blocks];
        let (groups, spare) = (scratch.groups, scratch.spare);
        let start = scratch.work.start.wrapping_add(first * self.last_len * V::LANES);
        let work = StridedIo { start, ..scratch.work };
        let prefetcher = &mut *scratch.prefetcher;
        // SAFETY: `run`'s contract; bases and strides stay within the n results.
        unsafe {
            if let LastPass::Radix(radix) = &self.last_pass {
                return with_radix!(*radix, V, R => V::enter(Last::<V, D, R> {
                    work, groups, base, stride, backward: self.backward, to, prefetcher, lanes: PhantomData,
                }));
            }
            for g in 0..groups {
                for (b, &base) in base.iter().enumerate() {
                    let block = work.group(g).add(b * self.last_len * V::LANES);
                    let len = if self.backward { self.last_len } else { 0 };
                    let slots = ResultSlots { base, stride, len, to: to.of_group(g) };
                    match &self.last_pass {
                        LastPass::Radix(_) => unreachable!("done above"),
                        LastPass::Rader(rader) => rader.run::<V, D>(block, slots, spare, prefetcher),
                        LastPass::Bluestein(bluestein) => {
                            bluestein.run::<V, D>(block, slots, spare, prefetcher)
                        }
                    }
                }
            }
        }
    }
}

/// Scratch of a transform: an area of `n` elements for each group of lines,
/// spare scratch, and the prefetcher to advance.
pub(super) struct FftScratch<'a, 'b, T> {
    pub work: StridedIo<T>,
    pub groups: usize,
    /// Whether the last pass works in place.
    pub permuted: bool,
    pub spare: *mut T,
    pub prefetcher: &'a mut Prefetcher<'b, T>,
}

/// The spectrum of a convolution's kernel, divided by its length; computed in
/// double precision for both precisions of lines.
fn spectrum<T: Real>(kernel: impl Iterator<Item = (f64, f64)>) -> Vec<T> {
    type V = Portable<f64>;
    let kernel: Vec<_> = kernel.collect();
    let n = kernel.len();
    let fft = Fft::<f64>::new(n, V::RADICES, false);
    let mut work = vec![0.0; (2 * n + fft.spare()) * V::LANES];
    for (k, x) in kernel.iter().enumerate() {
        (work[k * V::LANES], work[k * V::LANES + 1]) = *x;
    }
    let a = work.as_mut_ptr();
    // SAFETY: `work` holds two areas of n elements and the spare scratch; portable vectors need no instruction set.
    unsafe {
        let b = a.add(n * V::LANES);
        let spare = b.add(n * V::LANES);
        let (one, two, prefetcher) =
            (StridedIo::scratch::<V>(a, 0), StridedIo::scratch::<V>(b, 0), &mut Prefetcher::idle());
        fft.run::<V, _, _>(
            one,
            two,
            &mut FftScratch { work: one, groups: 1, permuted: false, spare, prefetcher },
        );
    }
    let elements = work[n * V::LANES..].chunks_exact(V::LANES).take(n);
    elements.flat_map(|x| packed_factor(x[0] / n as f64, x[1] / n as f64)).collect()
}

/// Rader's algorithm: except for element 0, a transform of a prime length is a
/// cyclic convolution in the order of the powers of a primitive root.
pub(super) struct Rader<T> {
    p: usize,
    inner: Fft<T>,
    order_in: Vec<usize>,
    order_out: Vec<usize>,
    spectrum: Vec<T>,
}

impl<T: Real> Rader<T> {
    /// `None` where Bluestein's algorithm is used.
    pub fn new(p: usize, radices: Radices) -> Option<Self> {
        if !is_prime(p) || factorize(p - 1, radices).1 > 1 {
            return None;
        }
        let n = p - 1;
        let g = primitive_root(p);
        let back = power(g, p - 2, p);
        let powers = |g: usize| std::iter::successors(Some(1), move |x| Some(x * g % p)).take(n);
        let roots = Roots::new(p);
        let minus = |(cos, sin): (f64, f64)| (cos, -sin);
        Some(Rader {
            p,
            inner: Fft::new(n, radices, false),
            order_in: powers(g).collect(),
            // The second transform is forward too, so its results are in reverse order.
            order_out: (0..n).map(|q| power(back, (n - q) % n, p)).collect(),
            spectrum: spectrum(powers(back).map(|k| minus(roots.get(k)))),
        })
    }

    pub fn spare(&self) -> usize {
        2 * (self.p - 1) + self.inner.spare()
    }

    /// # Safety
    /// As [`Fft::run`]; `block` has p elements, `to` p slots, `spare` [`spare`](Rader::spare) elements.
    pub unsafe fn run<V: Vector<T = T>, D: LineIo<V>>(
        &self,
        block: *mut T,
        to: ResultSlots<D>,
        spare: *mut T,
        prefetcher: &mut Prefetcher<'_, T>,
    ) {
        let size = (self.p - 1) * V::LANES;
        // SAFETY: `run`'s contract: the spare scratch holds two lines of p - 1 and that of the inner transform.
        unsafe {
            let (a, b, rest) = (spare, spare.add(size), spare.add(2 * size));
            V::enter(Reorder::<V> { from: block, order: &self.order_in, to: a });
            let (one, two) = (StridedIo::scratch::<V>(a, 0), StridedIo::scratch::<V>(b, 0));
            let mut scratch = FftScratch { work: one, groups: 1, permuted: false, spare: rest, prefetcher };
            self.inner.run::<V, _, _>(one, two, &mut scratch);
            V::enter(RaderProduct::<V> { block, area: b, spectrum: &self.spectrum });
            scratch.work = two;
            self.inner.run::<V, _, _>(two, one, &mut scratch);
            V::enter(RaderStore::<V, D> { block, area: a, order: &self.order_out, to });
        }
    }
}

/// Bluestein's algorithm: a transform of any length as a convolution with a chirp.
pub(super) struct Bluestein<T> {
    inner: Fft<T>,
    chirp: Vec<T>,
    spectrum: Vec<T>,
}

impl<T: Real> Bluestein<T> {
    pub fn new(n: usize, radices: Radices) -> Self {
        let len = smooth_from(2 * n - 1);
        let roots = Roots::new(2 * n);
        let chirp = |k: usize| roots.get((k as u128 * k as u128 % (2 * n as u128)) as usize);
        let kernel = (0..len).map(|k| match k.min(len - k) {
            k if k < n => chirp(k),
            _ => (0.0, 0.0),
        });
        Bluestein {
            inner: Fft::new(len, radices, false),
            spectrum: spectrum(kernel),
            chirp: (0..n).map(chirp).flat_map(|(cos, sin)| packed_factor(cos, -sin)).collect(),
        }
    }

    pub fn spare(&self) -> usize {
        2 * self.inner.n + self.inner.spare()
    }

    /// # Safety
    /// As [`Fft::run`]; `block` has n elements, `to` n slots, `spare` [`spare`](Bluestein::spare) elements.
    pub unsafe fn run<V: Vector<T = T>, D: LineIo<V>>(
        &self,
        block: *mut T,
        to: ResultSlots<D>,
        spare: *mut T,
        prefetcher: &mut Prefetcher<'_, T>,
    ) {
        let len = self.inner.n;
        let size = len * V::LANES;
        // SAFETY: `run`'s contract: the spare scratch holds two lines of len and that of the inner transform.
        unsafe {
            let (a, b, rest) = (spare, spare.add(size), spare.add(2 * size));
            V::enter(Multiply::<V> { from: block, by: &self.chirp, to: a, len });
            let (one, two) = (StridedIo::scratch::<V>(a, 0), StridedIo::scratch::<V>(b, 0));
            let mut scratch = FftScratch { work: one, groups: 1, permuted: false, spare: rest, prefetcher };
            self.inner.run::<V, _, _>(one, two, &mut scratch);
            V::enter(Multiply::<V> { from: b, by: &self.spectrum, to: b, len });
            scratch.work = two;
            self.inner.run::<V, _, _>(two, one, &mut scratch);
            let lanes = PhantomData::<V>;
            V::enter(BluesteinStore { area: a, chirp: &self.chirp, len, to, lanes });
        }
    }
}
