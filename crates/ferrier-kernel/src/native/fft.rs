//! The complex transform of a group of lines, sign -1, in passes.
//!
//! Decimation in frequency: every pass but the last works in place on
//! scratch and leaves independent blocks; the last one stores its results
//! where they belong, so the digit reversal costs no pass of its own. Large
//! lines go depth first, so that a block stays in the cache until it is done.

use std::marker::PhantomData;

use super::butterfly::{dft, lists, with_radix};
use super::factor::{Radices, factors};
use super::ports::{Area, Scrambled, Sink, Source};
use super::prime::{Bluestein, Rader};
use super::roots::Roots;
use super::touch::Touch;
use super::vector::{Op, Pair, Vector};
use crate::Real;

/// Blocks below this go through their passes one after the other: half a
/// first-level cache.
const HOT_BYTES: usize = 24 << 10;

/// A pass that leaves blocks of `m` elements.
struct Level {
    radix: usize,
    m: usize,
    /// Where its twiddles begin.
    at: usize,
}

/// The last pass.
enum Leaf<T> {
    Radix(usize),
    Rader(Box<Rader<T>>),
    Bluestein(Box<Bluestein<T>>),
}

/// Tables for lines of `n` points.
pub(super) struct Fft<T> {
    pub n: usize,
    levels: Vec<Level>,
    leaf: Leaf<T>,
    leaf_len: usize,
    /// Place of the first result of each block of the last pass, and from one
    /// result of a block to the next.
    base: Vec<usize>,
    stride: isize,
    /// The same for results left where they are.
    identity: Vec<usize>,
    twiddles: Vec<T>,
}

impl<T: Real> Fft<T> {
    /// Tables for lines of `n` points, made of passes of these `radices`.
    ///
    /// Sign +1 is sign -1 with its results in reverse: a `backward` transform
    /// puts element `k` in place `k`, but element 0 in place `n`.
    pub fn new(n: usize, radices: Radices, backward: bool) -> Self {
        let (mut passes, rest) = factors(n, radices);
        let (leaf, leaf_len) = if rest > 1 {
            let leaf = match Rader::new(rest, radices) {
                Some(rader) => Leaf::Rader(Box::new(rader)),
                None => Leaf::Bluestein(Box::new(Bluestein::new(rest, radices))),
            };
            (leaf, rest)
        } else {
            let radix = passes.pop().unwrap_or(1);
            (Leaf::Radix(radix), radix)
        };
        let identity = (0..n).step_by(leaf_len).collect();
        let mut fft = Fft {
            identity,
            n,
            levels: vec![],
            leaf,
            leaf_len,
            base: vec![0],
            stride: (n / leaf_len) as isize,
            twiddles: vec![],
        };
        let roots = Roots::new(n);
        let (mut len, mut done) = (n, 1);
        for radix in passes {
            let m = len / radix;
            fft.levels.push(Level { radix, m, at: fft.twiddles.len() });
            for j in 0..m {
                for p in 1..radix {
                    let (cos, sin) = roots.get(j * p * done);
                    fft.twiddles.extend([T::rounded(cos), T::rounded(-sin)]);
                }
            }
            fft.base = fft.base.iter().flat_map(|&b| (0..radix).map(move |p| b + p * done)).collect();
            (len, done) = (m, done * radix);
        }
        if backward {
            fft.base.iter_mut().for_each(|base| *base = n - *base);
            fft.stride = -fft.stride;
        }
        fft
    }

    /// Where [`scramble`](Fft::scramble) leaves each element, and element 0
    /// once more; none where the last pass cannot work in place.
    pub fn places(&self) -> Option<Vec<usize>> {
        if !matches!(self.leaf, Leaf::Radix(_)) {
            return None;
        }
        let mut places = vec![0; self.n + 1];
        for (&base, &place) in self.base.iter().zip(&self.identity) {
            for p in 0..self.leaf_len {
                places[base.wrapping_add_signed(p as isize * self.stride)] = place + p;
            }
        }
        let first = if self.stride < 0 { self.n } else { 0 };
        (places[0], places[self.n]) = (places[first], places[first]);
        Some(places)
    }

    /// How many passes there are.
    pub fn passes(&self) -> usize {
        self.levels.len() + 1
    }

    /// Elements of spare scratch that [`run`](Fft::run) needs.
    pub fn spare(&self) -> usize {
        match &self.leaf {
            Leaf::Radix(_) => 0,
            Leaf::Rader(rader) => rader.spare(),
            Leaf::Bluestein(bluestein) => bluestein.spare(),
        }
    }

    /// Transforms from `from` through `work` (`n` elements; may be where
    /// `from` takes from) to `to`.
    ///
    /// # Safety
    /// The processor has `V`'s instruction set; ports and areas have the
    /// lengths stated; `to` does not overlap `work` or `spare`.
    pub unsafe fn run<V: Vector<T = T>, S: Source<V>, D: Sink<V>>(
        &self,
        from: S,
        work: *mut T,
        to: D,
        spare: *mut T,
        touch: &mut Touch<'_, T>,
    ) {
        // SAFETY: the caller's promises; the levels' lengths multiply to n.
        unsafe {
            if self.levels.is_empty() {
                V::enter(Copy { from, work, n: self.n, lanes: PhantomData::<V> });
                self.last::<V, D>(work, 0, 1, to, spare, touch);
            } else {
                self.pass::<V, S>(0, from, work, 0, 1, touch);
                self.descend::<V, D>(1, work, 0, self.levels[0].radix, to, spare, touch);
            }
        }
    }

    /// Transforms `work` in place and leaves the results as
    /// [`places`](Fft::places) says: half the scratch to keep in cache.
    ///
    /// # Safety
    /// As [`run`](Fft::run); there are places.
    pub unsafe fn scramble<V: Vector<T = T>>(&self, work: *mut T, touch: &mut Touch<'_, T>) {
        // SAFETY: a butterfly reads all its elements before it stores the first.
        unsafe { self.run::<V, _, _>(Area(work), work, Scrambled(work), std::ptr::null_mut(), touch) }
    }

    /// All passes from `level` on, for `blocks` blocks that the level before
    /// it left from element `start` on.
    #[allow(clippy::too_many_arguments)]
    unsafe fn descend<V: Vector<T = T>, D: Sink<V>>(
        &self,
        level: usize,
        work: *mut T,
        start: usize,
        mut blocks: usize,
        to: D,
        spare: *mut T,
        touch: &mut Touch<'_, T>,
    ) {
        // SAFETY: blocks and levels nest, so all stay within n elements.
        unsafe {
            for next in level..self.levels.len() {
                let len = self.levels[next - 1].m;
                if blocks > 1 && blocks * len * 2 * V::LANES * size_of::<T>() > HOT_BYTES {
                    for b in 0..blocks {
                        self.descend::<V, D>(next, work, start + b * len, 1, to, spare, touch);
                    }
                    return;
                }
                self.pass::<V, Area<T>>(next, Area(work), work, start, blocks, touch);
                blocks *= self.levels[next].radix;
            }
            self.last::<V, D>(work, start / self.leaf_len, blocks, to, spare, touch);
        }
    }

    #[inline]
    unsafe fn pass<V: Vector<T = T>, S: Source<V>>(
        &self,
        level: usize,
        from: S,
        work: *mut T,
        start: usize,
        blocks: usize,
        touch: &mut Touch<'_, T>,
    ) {
        let Level { radix, m, at } = self.levels[level];
        let twiddles = self.twiddles[at..].as_ptr();
        // SAFETY: the caller's promises.
        unsafe {
            with_radix!(radix, V, R => V::enter(Pass::<V, S, R> { from, work, start, blocks, m, twiddles, touch }));
        }
    }

    unsafe fn last<V: Vector<T = T>, D: Sink<V>>(
        &self,
        work: *mut T,
        first: usize,
        blocks: usize,
        to: D,
        spare: *mut T,
        touch: &mut Touch<'_, T>,
    ) {
        let (base, stride) = if D::SCRAMBLED { (&self.identity, 1) } else { (&self.base, self.stride) };
        let base = &base[first..first + blocks];
        // SAFETY: the caller's promises; bases and strides stay within the places.
        unsafe {
            let work = work.add(first * self.leaf_len * 2 * V::LANES);
            match &self.leaf {
                Leaf::Radix(radix) => {
                    with_radix!(*radix, V, R => V::enter(Last::<V, D, R> {
                        work, base, stride, to, touch, lanes: PhantomData,
                    }));
                }
                Leaf::Rader(rader) => {
                    for (b, &base) in base.iter().enumerate() {
                        let block = work.add(b * self.leaf_len * 2 * V::LANES);
                        rader.run::<V, D>(block, base, stride, to, spare, touch);
                    }
                }
                Leaf::Bluestein(bluestein) => {
                    for (b, &base) in base.iter().enumerate() {
                        let block = work.add(b * self.leaf_len * 2 * V::LANES);
                        bluestein.run::<V, D>(block, base, stride, to, spare, touch);
                    }
                }
            }
        }
    }
}

/// Elements from a source into scratch.
struct Copy<V: Vector, S> {
    from: S,
    work: *mut V::T,
    n: usize,
    lanes: PhantomData<V>,
}

impl<V: Vector, S: Source<V>> Op<V> for Copy<V, S> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        for k in 0..self.n {
            // SAFETY: source and scratch have n elements.
            unsafe { self.from.get(k).store(self.work, k) };
        }
    }
}

/// Butterflies of `R` elements `m` apart, then twiddles, in `blocks` blocks.
struct Pass<'a, 'b, V: Vector, S, const R: usize> {
    from: S,
    work: *mut V::T,
    start: usize,
    blocks: usize,
    m: usize,
    twiddles: *const V::T,
    touch: &'a mut Touch<'b, V::T>,
}

impl<V: Vector, S: Source<V>, const R: usize> Op<V> for Pass<'_, '_, V, S, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let share = self.touch.share(R);
        for block in 0..self.blocks {
            let start = self.start + block * R * self.m;
            let mut w = self.twiddles;
            for j in start..start + self.m {
                // SAFETY: blocks and elements as the struct says; R - 1 twiddles for each j.
                unsafe {
                    let mut x = [Pair::zero(); R];
                    for (q, x) in x.iter_mut().enumerate() {
                        *x = self.from.get(j + q * self.m);
                    }
                    dft::<V, R>(&mut x);
                    x[0].store(self.work, j);
                    for (p, x) in x.iter().enumerate().skip(1) {
                        let (wr, wi) = (V::splat(*w.add(2 * p - 2)), V::splat(*w.add(2 * p - 1)));
                        x.times(wr, wi).store(self.work, j + p * self.m);
                    }
                    w = w.add(2 * (R - 1));
                }
                self.touch.fetch(share);
            }
        }
    }
}

/// Butterflies of `R` neighbours, stored where they belong.
struct Last<'a, 'b, V: Vector, D, const R: usize> {
    work: *const V::T,
    base: &'a [usize],
    stride: isize,
    to: D,
    touch: &'a mut Touch<'b, V::T>,
    lanes: PhantomData<V>,
}

impl<V: Vector, D: Sink<V>, const R: usize> Op<V> for Last<'_, '_, V, D, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let share = self.touch.share(R);
        for (block, &base) in self.base.iter().enumerate() {
            // SAFETY: one block of R elements for every base.
            unsafe {
                let mut x = [Pair::zero(); R];
                for (q, x) in x.iter_mut().enumerate() {
                    *x = Pair::load(self.work, block * R + q);
                }
                dft::<V, R>(&mut x);
                for (p, x) in x.iter().enumerate() {
                    self.to.put(base.wrapping_add_signed(p as isize * self.stride), *x);
                }
            }
            self.touch.fetch(share);
        }
    }
}
