//! The complex transform of a group of lines, sign -1, in passes.
//!
//! Decimation in frequency: every pass but the last works in place on
//! scratch and leaves independent blocks; the last one stores its results
//! where they belong, so the digit reversal costs no pass of its own. Large
//! lines go depth first, so that a block stays in the cache until it is done.
//!
//! Indexed loops: the compiler unrolls them, iterators over arrays it does not always.
#![allow(clippy::needless_range_loop)]

use std::marker::PhantomData;

use super::butterfly::{dft, lists, with_radix};
use super::factor::{Radices, factors};
use super::ports::{Even, Port};
use super::prime::{Bluestein, Rader};
use super::touch::Touch;
use super::vector::{FACTOR, Op, Vector, factor};
use crate::real::Real;
use crate::roots::Roots;

/// Blocks below this go through their passes one after the other: half a
/// first-level cache.
const HOT_BYTES: usize = 24 << 10;

/// A pass that leaves blocks of `m` elements.
pub(super) struct Level {
    pub radix: usize,
    pub m: usize,
    /// Where its twiddles begin.
    at: usize,
}

/// The last pass.
pub(super) enum Leaf<T> {
    Radix(usize),
    Rader(Box<Rader<T>>),
    Bluestein(Box<Bluestein<T>>),
}

/// Tables for lines of `n` points.
pub(super) struct Fft<T> {
    pub n: usize,
    pub levels: Vec<Level>,
    pub leaf: Leaf<T>,
    leaf_len: usize,
    /// Place of the first result of each block of the last pass, and from one
    /// result of a block to the next.
    pub base: Vec<usize>,
    pub stride: isize,
    pub backward: bool,
    /// The same for results left where they are.
    identity: Vec<usize>,
    twiddles: Vec<T>,
    roots: Roots,
}

impl<T: Real> Fft<T> {
    /// Tables for lines of `n` points, made of passes of these `radices`.
    ///
    /// Sign +1 of a `backward` transform is, in every butterfly, sign -1 with
    /// its results but the first in reverse; twiddles are conjugate.
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
            backward,
            twiddles: vec![],
            roots: Roots::new(n),
        };
        let (mut len, mut done) = (n, 1);
        for radix in passes {
            let m = len / radix;
            fft.levels.push(Level { radix, m, at: fft.twiddles.len() });
            for j in 0..m {
                for p in 1..radix {
                    let (re, im) = fft.twiddle(radix, j * done, p);
                    fft.twiddles.extend(factor::<T>(re, im));
                }
            }
            fft.base = fft.base.iter().flat_map(|&b| (0..radix).map(move |p| b + p * done)).collect();
            (len, done) = (m, done * radix);
        }
        fft
    }

    /// Where [`scramble`](Fft::scramble) leaves each element; none where the
    /// last pass cannot work in place.
    pub fn places(&self) -> Option<Vec<usize>> {
        if !matches!(self.leaf, Leaf::Radix(_)) {
            return None;
        }
        let mut places = vec![0; self.n];
        for (&base, &place) in self.base.iter().zip(&self.identity) {
            for p in 0..self.leaf_len {
                places[base.wrapping_add_signed(p as isize * self.stride)] = place + p;
            }
        }
        Some(places)
    }

    /// The twiddle of result `p` of a butterfly, as `dft` counts them, at turn `j`.
    pub fn twiddle(&self, radix: usize, j: usize, p: usize) -> (f64, f64) {
        let place = if self.backward { radix - p } else { p };
        let (cos, sin) = self.roots.get(j * place);
        (cos, if self.backward { sin } else { -sin })
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

    /// Transforms the groups of lines on the desk from `from` (which may be
    /// where the desk works) to `to`.
    ///
    /// # Safety
    /// The processor has `V`'s instruction set; ports and areas have the
    /// lengths stated; `to` does not overlap the desk.
    pub unsafe fn run<V: Vector<T = T>, S: Port<V>, D: Port<V>>(
        &self,
        from: S,
        to: D,
        desk: &mut Desk<'_, '_, T>,
    ) {
        // SAFETY: the caller's promises; the levels' lengths multiply to n.
        unsafe {
            if self.levels.is_empty() {
                let (work, n, groups) = (desk.work, self.n, desk.groups);
                V::enter(Copy { from, work, n, groups, lanes: PhantomData::<V> });
                self.last::<V, D>(0, 1, to, desk);
            } else {
                self.pass::<V, S>(0, from, (0, 1), (desk.work, desk.groups), desk.touch);
                self.descend::<V, D>(1, 0, self.levels[0].radix, to, desk);
            }
        }
    }

    /// Transforms in place and leaves the results as [`places`](Fft::places)
    /// says: half the scratch to keep in cache.
    ///
    /// # Safety
    /// As [`run`](Fft::run); there are places.
    pub unsafe fn scramble<V: Vector<T = T>>(&self, desk: &mut Desk<'_, '_, T>) {
        let work = desk.work;
        desk.scrambled = true;
        // SAFETY: a butterfly reads all its elements before it stores the first.
        unsafe { self.run::<V, _, _>(work, work, desk) }
    }

    /// All passes from `level` on, for `blocks` blocks that the level before
    /// it left from element `start` on.
    unsafe fn descend<V: Vector<T = T>, D: Port<V>>(
        &self,
        level: usize,
        start: usize,
        mut blocks: usize,
        to: D,
        desk: &mut Desk<'_, '_, T>,
    ) {
        // SAFETY: blocks and levels nest, so all stay within n elements.
        unsafe {
            for next in level..self.levels.len() {
                let len = self.levels[next - 1].m;
                if blocks > 1 && blocks * len * V::LANES * size_of::<T>() > HOT_BYTES {
                    for b in 0..blocks {
                        self.descend::<V, D>(next, start + b * len, 1, to, desk);
                    }
                    return;
                }
                for g in 0..desk.groups {
                    let area = Port::<V>::of_group(&desk.work, g);
                    self.pass::<V, Even<T>>(next, area, (start, blocks), (area, 1), desk.touch);
                }
                blocks *= self.levels[next].radix;
            }
            self.last::<V, D>(start / self.leaf_len, blocks, to, desk);
        }
    }

    #[inline]
    unsafe fn pass<V: Vector<T = T>, S: Port<V>>(
        &self,
        level: usize,
        from: S,
        (start, blocks): (usize, usize),
        (work, groups): (Even<T>, usize),
        touch: &mut Touch<'_, T>,
    ) {
        let Level { radix, m, at } = self.levels[level];
        let twiddles = self.twiddles[at..].as_ptr();
        // SAFETY: the caller's promises.
        unsafe {
            with_radix!(radix, V, R => V::enter(Pass::<V, S, R> {
                from, work, groups, start, blocks, m, twiddles, backward: self.backward, touch,
            }));
        }
    }

    unsafe fn last<V: Vector<T = T>, D: Port<V>>(
        &self,
        first: usize,
        blocks: usize,
        to: D,
        desk: &mut Desk<'_, '_, T>,
    ) {
        let (base, stride) = if desk.scrambled { (&self.identity, 1) } else { (&self.base, self.stride) };
        let base = &base[first..first + blocks];
        let (groups, spare) = (desk.groups, desk.spare);
        let start = desk.work.start.wrapping_add(first * self.leaf_len * V::LANES);
        let work = Even { start, ..desk.work };
        let touch = &mut *desk.touch;
        // SAFETY: the caller's promises; bases and strides stay within the places.
        unsafe {
            if let Leaf::Radix(radix) = &self.leaf {
                return with_radix!(*radix, V, R => V::enter(Last::<V, D, R> {
                    work, groups, base, stride, backward: self.backward, to, touch, lanes: PhantomData,
                }));
            }
            for g in 0..groups {
                for (b, &base) in base.iter().enumerate() {
                    let block = work.group(g).add(b * self.leaf_len * V::LANES);
                    let len = if self.backward { self.leaf_len } else { 0 };
                    let places = Places { base, stride, len, to: to.of_group(g) };
                    match &self.leaf {
                        Leaf::Radix(_) => unreachable!("done above"),
                        Leaf::Rader(rader) => rader.run::<V, D>(block, places, spare, touch),
                        Leaf::Bluestein(bluestein) => bluestein.run::<V, D>(block, places, spare, touch),
                    }
                }
            }
        }
    }
}

/// Where a transform works: areas of `n` elements for each of some groups of
/// lines, spare scratch, and the walk that goes along.
pub(super) struct Desk<'a, 'b, T> {
    pub work: Even<T>,
    pub groups: usize,
    /// Whether results stay where the last pass found them.
    pub scrambled: bool,
    pub spare: *mut T,
    pub touch: &'a mut Touch<'b, T>,
}

/// The places of one block's results: the first, from one to the next, and how
/// many where they go in reverse.
#[derive(Clone, Copy)]
pub(super) struct Places<D> {
    base: usize,
    stride: isize,
    len: usize,
    to: D,
}

impl<D> Places<D> {
    /// # Safety
    /// Inside [`Vector::enter`]; there is a result `k`.
    #[inline(always)]
    pub unsafe fn put<V: Vector>(&self, k: usize, x: V)
    where
        D: Port<V>,
    {
        let k = if k == 0 { 0 } else { self.len.abs_diff(k) };
        // SAFETY: the caller's promise.
        unsafe { self.to.put(self.base.wrapping_add_signed(k as isize * self.stride), x) };
    }
}

/// Elements from a source into scratch.
struct Copy<V: Vector, S> {
    from: S,
    work: Even<V::T>,
    n: usize,
    groups: usize,
    lanes: PhantomData<V>,
}

impl<V: Vector, S: Port<V>> Op<V> for Copy<V, S> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        for k in 0..self.n {
            for g in 0..self.groups {
                // SAFETY: source and scratch have n elements of every group.
                unsafe {
                    let x = self.from.of_group(g).get(k);
                    x.put(self.work.group(g), k);
                }
            }
        }
    }
}

/// Butterflies of `R` elements `m` apart, then twiddles, in `blocks` blocks
/// of every group. Groups take turns at each butterfly: what they share
/// (twiddles, rows of memory) is still there. Caches do not keep far rows
/// even that long: of groups that share cache lines two are read at once.
struct Pass<'a, 'b, V: Vector, S, const R: usize> {
    from: S,
    work: Even<V::T>,
    groups: usize,
    start: usize,
    blocks: usize,
    m: usize,
    twiddles: *const V::T,
    backward: bool,
    touch: &'a mut Touch<'b, V::T>,
}

impl<V: Vector, S: Port<V>, const R: usize> Op<V> for Pass<'_, '_, V, S, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let share = self.touch.share(R);
        let pairs = V::SHORT && S::FAR && self.groups.is_multiple_of(2);
        let mut held = [V::zero(); R];
        let (m, step) = (self.m, self.m as isize);
        let (jump, stride) = steps::<R>(self.backward, step * V::LANES as isize);
        for block in 0..self.blocks {
            let start = self.start + block * R * m;
            let mut w = self.twiddles;
            for j in start..start + m {
                let mut from = self.from;
                let mut work = self.work.start.wrapping_add(j * V::LANES);
                for g in 0..self.groups {
                    // SAFETY: blocks and elements as the struct says; R - 1 twiddles for each j.
                    unsafe {
                        let second = pairs && g % 2 == 1;
                        let mut x = held;
                        if !pairs {
                            [x] = from.read::<R, 1>(j, step);
                        } else if !second {
                            [x, held] = from.read::<R, 2>(j, step);
                        }
                        // What comes next takes the places in cache of what was just read.
                        if S::FAR && !second {
                            match from.next() {
                                _ if j + 1 < start + m => from.fetch::<R>(j + 1, step, false),
                                Some(next) => next.fetch::<R>(0, step, false),
                                None => {}
                            }
                        }
                        dft::<V, R>(&mut x);
                        let mut to = work;
                        x[0].store(to);
                        to = to.wrapping_offset(jump);
                        for p in 1..R {
                            to = to.wrapping_offset(stride);
                            x[p].times_factor(w.add(FACTOR * (p - 1))).store(to);
                        }
                    }
                    (from, work) = (from.of_group(1), work.wrapping_add(self.work.pitch));
                    self.touch.fetch(share);
                }
                w = w.wrapping_add(FACTOR * (R - 1));
            }
        }
    }
}

/// How far results are apart that belong `step` apart: what is added after
/// the first, and before each of the others.
#[inline(always)]
pub(super) fn steps<const R: usize>(backward: bool, step: isize) -> (isize, isize) {
    if backward { (R as isize * step, -step) } else { (0, step) }
}

/// Butterflies of `R` neighbours, stored where they belong; two groups at once
/// where they share cache lines that are far, or written past the caches.
struct Last<'a, 'b, V: Vector, D, const R: usize> {
    work: Even<V::T>,
    groups: usize,
    base: &'a [usize],
    stride: isize,
    backward: bool,
    to: D,
    touch: &'a mut Touch<'b, V::T>,
    lanes: PhantomData<V>,
}

impl<V: Vector, D: Port<V>, const R: usize> Op<V> for Last<'_, '_, V, D, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let share = self.touch.share(R);
        let pairs = V::SHORT && (D::FAR || self.to.finish().stream) && self.groups.is_multiple_of(2);
        let mut held = (self.to, [V::zero(); R]);
        let (jump, stride) = steps::<R>(self.backward, self.stride);
        for (block, &base) in self.base.iter().enumerate() {
            let next = self.base.get(block + 1);
            let mut to = self.to;
            let mut work = self.work.start.wrapping_add(block * R * V::LANES);
            for g in 0..self.groups {
                // SAFETY: one block of R elements for every base and group.
                unsafe {
                    let mut x = [V::zero(); R];
                    for q in 0..R {
                        x[q] = V::get(work, q);
                    }
                    dft::<V, R>(&mut x);
                    let (first, half) = (base.wrapping_add_signed(jump), pairs && g % 2 == 0);
                    if !pairs {
                        to.write::<R, 1>(base, first, stride, [x]);
                    } else if half {
                        held = (to, x);
                    } else {
                        held.0.write::<R, 2>(base, first, stride, [held.1, x]);
                    }
                    if D::FAR
                        && !half
                        && let Some(&next) = next
                    {
                        to.fetch::<R>(next, self.stride, true);
                    }
                }
                (to, work) = (to.of_group(1), work.wrapping_add(self.work.pitch));
                self.touch.fetch(share);
            }
        }
    }
}
