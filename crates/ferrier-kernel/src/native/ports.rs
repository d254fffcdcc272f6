//! Where passes take elements from and put them: scratch, or rows of the
//! caller's memory in which neighbouring lines lie side by side.
//!
//! Indexed loops: the compiler unrolls them, iterators over arrays it does not always.
#![allow(clippy::needless_range_loop)]

use super::touch::{prefetch_far, prefetch_to_write};
use super::vector::Vector;
use crate::lines::Strip;
use crate::real::Real;

/// Elements of neighbouring groups of lines: where they come from or go to.
pub(super) trait Port<V: Vector>: Copy {
    /// Whether caches have no room for the elements: they are
    /// [fetched](Port::fetch) shortly before their use.
    const FAR: bool;

    /// Where an element is found: its address, or where that is listed.
    type Place: Copy;

    /// The port of the group `g` groups on.
    fn of_group(&self, g: usize) -> Self;

    /// Where element `k` is found.
    fn place(&self, k: usize) -> Self::Place;

    /// Where that is found which is `steps` elements further on.
    fn further(&self, place: Self::Place, steps: isize) -> Self::Place;

    /// The address of an element of the group `g` groups on.
    ///
    /// # Safety
    /// The port has it.
    unsafe fn address(&self, place: Self::Place, g: usize) -> *mut V::T;

    /// How elements are stored.
    fn finish(&self) -> Finish<V::T>;

    /// The elements `first`, `first + step`, ... of the first `G` groups.
    ///
    /// # Safety
    /// Inside [`Vector::enter`]; the port has them.
    #[inline(always)]
    unsafe fn read<const R: usize, const G: usize>(&self, first: usize, step: isize) -> [[V; R]; G] {
        let mut x = [[V::zero(); R]; G];
        let mut place = self.place(first);
        for k in 0..R {
            for g in 0..G {
                // SAFETY: the caller's promise.
                x[g][k] = unsafe { V::load(self.address(place, g)) };
            }
            place = self.further(place, step);
        }
        x
    }

    /// Stores elements `first`, `first + step`, ... of the first `G` groups, but
    /// the first of them as element `head`.
    ///
    /// # Safety
    /// As for [`read`](Port::read).
    #[inline(always)]
    unsafe fn write<const R: usize, const G: usize>(
        &self,
        head: usize,
        first: usize,
        step: isize,
        x: [[V; R]; G],
    ) {
        let finish = self.finish();
        let x = finish.all_scaled(x);
        let places = [self.place(head), self.place(first)];
        // SAFETY: the caller's promise.
        unsafe {
            if finish.stream {
                self.put_all::<R, G, true>(places, step, x);
            } else {
                self.put_all::<R, G, false>(places, step, x);
            }
        }
    }

    /// The first to one place, the others from another place on.
    ///
    /// # Safety
    /// As for [`read`](Port::read).
    #[inline(always)]
    unsafe fn put_all<const R: usize, const G: usize, const STREAM: bool>(
        &self,
        [mut to, mut next]: [Self::Place; 2],
        step: isize,
        x: [[V; R]; G],
    ) {
        for k in 0..R {
            for g in 0..G {
                // SAFETY: the caller's promise.
                unsafe { put::<V, STREAM>(x[g][k], self.address(to, g)) };
            }
            next = self.further(next, step);
            to = next;
        }
    }

    /// Fetches them, to be read or to be written.
    ///
    /// # Safety
    /// As for [`read`](Port::read).
    unsafe fn fetch<const R: usize>(&self, first: usize, step: isize, write: bool);

    /// Where elements come from the next time.
    fn next(&self) -> Option<Self> {
        None
    }

    /// # Safety
    /// As for [`read`](Port::read).
    #[inline(always)]
    unsafe fn get(&self, k: usize) -> V {
        // SAFETY: the caller's promise.
        unsafe { self.read::<1, 1>(k, 0)[0][0] }
    }

    /// # Safety
    /// As for [`read`](Port::read).
    #[inline(always)]
    unsafe fn put(&self, k: usize, x: V) {
        // SAFETY: the caller's promise.
        unsafe { self.write::<1, 1>(k, k, 0, [[x]]) };
    }
}

/// How elements are stored.
#[derive(Clone, Copy)]
pub(super) struct Finish<T> {
    /// What they are multiplied by, and whether that is one.
    scale: T,
    as_is: bool,
    /// Whether they go past the caches.
    pub stream: bool,
}

impl<T: Real> Finish<T> {
    /// Multiplied by `scale`, past the caches or not.
    pub fn new(scale: T, stream: bool) -> Self {
        Finish { scale, as_is: scale == T::rounded(1.0), stream }
    }

    /// As they are.
    pub fn plain() -> Self {
        Finish::new(T::rounded(1.0), false)
    }

    /// Products with one change no bit.
    #[inline(always)]
    pub fn scaled<V: Vector<T = T>, const R: usize>(&self, mut x: [V; R]) -> [V; R] {
        if !self.as_is {
            for x in &mut x {
                *x = x.mul(V::splat(self.scale));
            }
        }
        x
    }

    #[inline(always)]
    fn all_scaled<V: Vector<T = T>, const R: usize, const G: usize>(
        &self,
        mut x: [[V; R]; G],
    ) -> [[V; R]; G] {
        for x in &mut x {
            *x = self.scaled(*x);
        }
        x
    }
}

/// Elements at even distances: in scratch, or in one piece of memory.
#[derive(Clone, Copy)]
pub(super) struct Even<T> {
    pub start: *mut T,
    /// Numbers from one element to the next.
    pub step: isize,
    /// Numbers from one group to the next.
    pub pitch: usize,
    pub finish: Finish<T>,
}

impl<T: Real> Even<T> {
    /// Areas of scratch, one for each group, vector after vector.
    pub fn areas<V: Vector<T = T>>(start: *mut T, pitch: usize) -> Self {
        Even { start, step: V::LANES as isize, pitch, finish: Finish::plain() }
    }

    /// The elements of group `g`.
    #[inline(always)]
    pub fn group(&self, g: usize) -> *mut T {
        self.start.wrapping_add(g * self.pitch)
    }
}

/// Stores `x`, past the caches or not.
///
/// # Safety
/// Inside [`Vector::enter`]; there is room, aligned if it goes past the caches.
#[inline(always)]
pub(super) unsafe fn put<V: Vector, const STREAM: bool>(x: V, to: *mut V::T) {
    // SAFETY: the caller's promise.
    unsafe { if STREAM { x.stream(to) } else { x.store(to) } }
}

impl<V: Vector> Port<V> for Even<V::T> {
    const FAR: bool = false;
    type Place = *mut V::T;

    #[inline(always)]
    fn of_group(&self, g: usize) -> Self {
        Even { start: self.group(g), ..*self }
    }

    #[inline(always)]
    fn place(&self, k: usize) -> *mut V::T {
        self.start.wrapping_offset(k as isize * self.step)
    }

    #[inline(always)]
    fn further(&self, place: *mut V::T, steps: isize) -> *mut V::T {
        place.wrapping_offset(steps * self.step)
    }

    #[inline(always)]
    unsafe fn address(&self, place: *mut V::T, g: usize) -> *mut V::T {
        place.wrapping_add(g * self.pitch)
    }

    #[inline(always)]
    fn finish(&self) -> Finish<V::T> {
        self.finish
    }

    #[inline(always)]
    unsafe fn fetch<const R: usize>(&self, _: usize, _: isize, _: bool) {}
}

/// Complex rows in several pieces of memory, or far apart: `table[k] + at` is
/// element `k` of the first line.
#[derive(Clone, Copy)]
pub(super) struct Rows<T> {
    pub table: *const *mut T,
    pub at: usize,
    pub finish: Finish<T>,
    /// Whether what is to be written is worth fetching.
    pub reserve: bool,
    /// The rows of the next block, or null.
    pub ahead: *const *mut T,
}

impl<V: Vector> Port<V> for Rows<V::T> {
    const FAR: bool = true;
    type Place = *const *mut V::T;

    #[inline(always)]
    fn of_group(&self, g: usize) -> Self {
        Rows { at: self.at + g * V::LANES, ..*self }
    }

    #[inline(always)]
    fn place(&self, k: usize) -> *const *mut V::T {
        self.table.wrapping_add(k)
    }

    #[inline(always)]
    fn further(&self, place: *const *mut V::T, steps: isize) -> *const *mut V::T {
        place.wrapping_offset(steps)
    }

    #[inline(always)]
    unsafe fn address(&self, place: *const *mut V::T, g: usize) -> *mut V::T {
        // SAFETY: the caller's promise.
        unsafe { (*place).add(self.at + g * V::LANES) }
    }

    #[inline(always)]
    fn finish(&self) -> Finish<V::T> {
        self.finish
    }

    #[inline(always)]
    unsafe fn fetch<const R: usize>(&self, first: usize, step: isize, write: bool) {
        if write && !self.reserve {
            return;
        }
        let (mut row, at) = (self.table.wrapping_add(first), self.at);
        for _ in 0..R {
            // SAFETY: the caller's promise.
            let place = unsafe { *row }.wrapping_add(at).cast_const().cast();
            if write {
                prefetch_to_write(place);
            } else {
                prefetch_far(place);
            }
            row = row.wrapping_offset(step);
        }
    }

    #[inline(always)]
    fn next(&self) -> Option<Self> {
        (!self.ahead.is_null()).then_some(Rows { table: self.ahead, ..*self })
    }
}

/// The parts of a line of `len` elements that no strip has.
pub(super) fn gaps<T>(strips: &[Strip<T>], len: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
    let ends = std::iter::once(0).chain(strips.iter().map(|strip| strip.at + strip.len));
    let starts = strips.iter().map(|strip| strip.at).chain([len]);
    ends.zip(starts).filter(|(end, start)| end < start)
}

/// The one strip that has the whole line of `len` elements, if there is one.
pub(super) fn whole<T>(strips: &[Strip<T>], len: usize) -> Option<&Strip<T>> {
    match strips {
        [strip] if strip.len == len => Some(strip),
        _ => None,
    }
}

/// Writes the address of every row of a line of `len` elements into `table`,
/// `spare` for those that no strip has.
///
/// # Safety
/// `table` has room for `len`.
pub(super) unsafe fn list_rows<T>(strips: &[Strip<T>], len: usize, spare: *mut T, table: *mut *mut T) {
    for (from, to) in gaps(strips, len) {
        for k in from..to {
            // SAFETY: the caller's promise.
            unsafe { *table.add(k) = spare };
        }
    }
    for strip in strips {
        for k in 0..strip.len {
            // SAFETY: the caller's promise; strips lie within the line.
            unsafe { *table.add(strip.at + k) = strip.ptr.wrapping_offset(k as isize * strip.step) };
        }
    }
}

/// Whether the lines of a block fill whole cache lines, row by row
/// (neighbouring lines side by side, `groups` vectors at a time) or line by line.
pub(super) fn whole_cache_lines<V: Vector>(
    strips: &[Strip<V::T>],
    width: usize,
    lines: usize,
    groups: usize,
) -> bool {
    const LINE: usize = 64;
    let size = size_of::<V::T>();
    let whole = |numbers: usize| (numbers * size).is_multiple_of(LINE);
    let rows_fill = whole(groups * V::LANES) && whole(lines * width);
    strips.iter().all(|strip| {
        let aligned = (strip.ptr as usize).is_multiple_of(LINE);
        let rows = strip.lane == 2 && width == 2 && rows_fill && whole(strip.step.unsigned_abs());
        let columns = strip.step == width as isize
            && whole(strip.lane.unsigned_abs())
            && (strip.len * width).is_multiple_of(V::LANES);
        V::STREAMS && aligned && (rows || columns)
    })
}

/// Whether neighbouring lines lie side by side in every strip.
pub(super) fn are_rows<T>(strips: &[Strip<T>], width: usize) -> bool {
    strips.iter().all(|strip| strip.lane == width as isize)
}

/// Whether rows lie so that few of them fit a cache: at multiples of a page.
pub(super) fn are_aliases<T>(strips: &[Strip<T>]) -> bool {
    const PAGE: usize = 4096;
    strips.iter().any(|strip| (strip.step.unsigned_abs() * size_of::<T>()).is_multiple_of(PAGE))
}
