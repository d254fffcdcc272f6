//! Sources and targets of passes: scratch, or rows of the caller's memory in
//! which neighbouring lines are adjacent.
//!
//! Indexed loops: the compiler unrolls them; it does not always unroll iterators over arrays.
#![allow(clippy::needless_range_loop)]

use super::cache_hint::{prefetch_for_write, prefetch_second_level};
use super::vector::Vector;
use crate::lines::{LineBlock, Strip};
use crate::real::Real;

/// A source or target of the elements of neighbouring groups of lines.
pub(super) trait LineIo<V: Vector>: Copy {
    /// Whether the elements conflict in caches: they are
    /// [prefetched](LineIo::prefetch) shortly before their use.
    const UNCACHED: bool;

    /// The position of an element: its address, or the address of its entry in a table.
    type Cursor: Copy;

    /// The source or target `g` groups further.
    fn of_group(&self, g: usize) -> Self;

    /// The position of element `k`.
    fn cursor(&self, k: usize) -> Self::Cursor;

    /// The position `steps` elements further.
    fn advance(&self, cursor: Self::Cursor, steps: isize) -> Self::Cursor;

    /// The address of an element, `g` groups further.
    ///
    /// # Safety
    /// The element and the group exist.
    unsafe fn address(&self, cursor: Self::Cursor, g: usize) -> *mut V::T;

    /// How elements are stored.
    fn store_mode(&self) -> StoreMode<V::T>;

    /// The elements `first`, `first + step`, ... of the first `G` groups.
    ///
    /// # Safety
    /// Inside [`Vector::enter`]; the elements and the groups exist.
    #[inline(always)]
    unsafe fn read<const R: usize, const G: usize>(&self, first: usize, step: isize) -> [[V; R]; G] {
        let mut x = [[V::zero(); R]; G];
        let mut cursor = self.cursor(first);
        for k in 0..R {
            for g in 0..G {
                // SAFETY: `read`'s contract: elements and groups exist, so the address is valid for reads.
                x[g][k] = unsafe { V::load(self.address(cursor, g)) };
            }
            cursor = self.advance(cursor, step);
        }
        x
    }

    /// Stores elements `first`, `first + step`, ... of the first `G` groups, but
    /// the first of them as element `head`.
    ///
    /// # Safety
    /// As for [`read`](LineIo::read).
    #[inline(always)]
    unsafe fn write<const R: usize, const G: usize>(
        &self,
        head: usize,
        first: usize,
        step: isize,
        x: [[V; R]; G],
    ) {
        let mode = self.store_mode();
        let x = mode.all_scaled(x);
        let cursors = [self.cursor(head), self.cursor(first)];
        // SAFETY: `write`'s contract is that of `store_all`.
        unsafe {
            if mode.stream {
                self.store_all::<R, G, true>(cursors, step, x);
            } else {
                self.store_all::<R, G, false>(cursors, step, x);
            }
        }
    }

    /// Stores the first element at one cursor, the others from another cursor on.
    ///
    /// # Safety
    /// As for [`read`](LineIo::read).
    #[inline(always)]
    unsafe fn store_all<const R: usize, const G: usize, const STREAM: bool>(
        &self,
        [mut to, mut next]: [Self::Cursor; 2],
        step: isize,
        x: [[V; R]; G],
    ) {
        for k in 0..R {
            for g in 0..G {
                // SAFETY: `store_all`'s contract: elements and groups exist, so the address is valid for writes.
                unsafe { put::<V, STREAM>(x[g][k], self.address(to, g)) };
            }
            next = self.advance(next, step);
            to = next;
        }
    }

    /// Prefetches elements, for reading or for writing.
    ///
    /// # Safety
    /// As for [`read`](LineIo::read).
    unsafe fn prefetch<const R: usize>(&self, first: usize, step: isize, write: bool);

    /// The source of the next block.
    fn next(&self) -> Option<Self> {
        None
    }

    /// Itself, if elements are at a constant stride.
    fn strided(&self) -> Option<StridedIo<V::T>> {
        None
    }

    /// # Safety
    /// As for [`read`](LineIo::read).
    #[inline(always)]
    unsafe fn get(&self, k: usize) -> V {
        // SAFETY: `get`'s contract is that of `read`.
        unsafe { self.read::<1, 1>(k, 0)[0][0] }
    }

    /// # Safety
    /// As for [`read`](LineIo::read).
    #[inline(always)]
    unsafe fn put(&self, k: usize, x: V) {
        // SAFETY: `put`'s contract is that of `write`.
        unsafe { self.write::<1, 1>(k, k, 0, [[x]]) };
    }
}

/// How elements are stored: scale and kind of store.
#[derive(Clone, Copy)]
pub(super) struct StoreMode<T> {
    /// The factor, and whether it is one.
    scale: T,
    is_one: bool,
    /// Whether to use non-temporal stores.
    pub stream: bool,
}

impl<T: Real> StoreMode<T> {
    /// Multiplies by `scale`; uses non-temporal stores if `stream`.
    pub fn new(scale: T, stream: bool) -> Self {
        StoreMode { scale, is_one: scale == T::rounded(1.0), stream }
    }

    /// Stores unscaled elements with ordinary stores.
    pub fn plain() -> Self {
        StoreMode::new(T::rounded(1.0), false)
    }

    /// Multiplies by the scale; skips a scale of one, which changes no bit.
    #[inline(always)]
    pub fn scaled<V: Vector<T = T>, const R: usize>(&self, mut x: [V; R]) -> [V; R] {
        if !self.is_one {
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

/// Elements at a constant stride: in scratch, or in one strip.
#[derive(Clone, Copy)]
pub(super) struct StridedIo<T> {
    pub start: *mut T,
    /// Scalars from one element to the next.
    pub step: isize,
    /// Scalars from one group to the next.
    pub pitch: usize,
    pub mode: StoreMode<T>,
}

impl<T: Real> StridedIo<T> {
    /// Areas of scratch, one per group, vector after vector.
    pub fn scratch<V: Vector<T = T>>(start: *mut T, pitch: usize) -> Self {
        StridedIo { start, step: V::LANES as isize, pitch, mode: StoreMode::plain() }
    }

    /// The elements of group `g`.
    #[inline(always)]
    pub fn group(&self, g: usize) -> *mut T {
        self.start.wrapping_add(g * self.pitch)
    }
}

/// Stores `x`, with a non-temporal store if `STREAM`.
///
/// # Safety
/// Inside [`Vector::enter`]; `to` is valid for `LANES` writes, aligned to the vector if `STREAM`.
#[inline(always)]
pub(super) unsafe fn put<V: Vector, const STREAM: bool>(x: V, to: *mut V::T) {
    // SAFETY: `put`'s contract: `to` is valid for writes, and aligned if `STREAM`.
    unsafe { if STREAM { x.stream(to) } else { x.store(to) } }
}

impl<V: Vector> LineIo<V> for StridedIo<V::T> {
    const UNCACHED: bool = false;
    type Cursor = *mut V::T;

    #[inline(always)]
    fn of_group(&self, g: usize) -> Self {
        StridedIo { start: self.group(g), ..*self }
    }

    #[inline(always)]
    fn cursor(&self, k: usize) -> *mut V::T {
        self.start.wrapping_offset(k as isize * self.step)
    }

    #[inline(always)]
    fn advance(&self, cursor: *mut V::T, steps: isize) -> *mut V::T {
        cursor.wrapping_offset(steps * self.step)
    }

    #[inline(always)]
    unsafe fn address(&self, cursor: *mut V::T, g: usize) -> *mut V::T {
        cursor.wrapping_add(g * self.pitch)
    }

    #[inline(always)]
    fn store_mode(&self) -> StoreMode<V::T> {
        self.mode
    }

    #[inline(always)]
    unsafe fn prefetch<const R: usize>(&self, _: usize, _: isize, _: bool) {}

    fn strided(&self) -> Option<StridedIo<V::T>> {
        Some(*self)
    }
}

/// Contiguous lines at a constant distance.
#[derive(Clone, Copy)]
pub(super) struct LineArray<T> {
    pub start: *mut T,
    /// Scalars from one line to the next.
    pub lane: isize,
}

impl<T> LineArray<T> {
    #[inline(always)]
    pub fn line(&self, line: usize) -> *mut T {
        self.start.wrapping_offset(line as isize * self.lane)
    }
}

/// Complex rows given by a table of addresses: `table[k] + at` is element `k`
/// of the first line.
#[derive(Clone, Copy)]
pub(super) struct TableIo<T> {
    pub table: *const *mut T,
    pub at: usize,
    pub mode: StoreMode<T>,
    /// Whether to prefetch rows that will be written.
    pub prefetch_target: bool,
    /// Whether rows return where they were loaded from.
    pub in_place: bool,
    /// The rows of the next block, or null.
    pub ahead: *const *mut T,
}

impl<V: Vector> LineIo<V> for TableIo<V::T> {
    const UNCACHED: bool = true;
    type Cursor = *const *mut V::T;

    #[inline(always)]
    fn of_group(&self, g: usize) -> Self {
        TableIo { at: self.at + g * V::LANES, ..*self }
    }

    #[inline(always)]
    fn cursor(&self, k: usize) -> *const *mut V::T {
        self.table.wrapping_add(k)
    }

    #[inline(always)]
    fn advance(&self, cursor: *const *mut V::T, steps: isize) -> *const *mut V::T {
        cursor.wrapping_offset(steps)
    }

    #[inline(always)]
    unsafe fn address(&self, cursor: *const *mut V::T, g: usize) -> *mut V::T {
        // SAFETY: `address`'s contract: the element exists, so the table has its row.
        unsafe { (*cursor).add(self.at + g * V::LANES) }
    }

    #[inline(always)]
    fn store_mode(&self) -> StoreMode<V::T> {
        self.mode
    }

    #[inline(always)]
    unsafe fn prefetch<const R: usize>(&self, first: usize, step: isize, write: bool) {
        if write && !self.prefetch_target {
            return;
        }
        let (mut row, at) = (self.table.wrapping_add(first), self.at);
        for _ in 0..R {
            // SAFETY: `prefetch`'s contract: the element exists, so the table has its row.
            let address = unsafe { *row }.wrapping_add(at).cast_const().cast();
            if write || self.in_place {
                prefetch_for_write(address);
            } else {
                prefetch_second_level(address);
            }
            row = row.wrapping_offset(step);
        }
    }

    #[inline(always)]
    fn next(&self) -> Option<Self> {
        (!self.ahead.is_null()).then_some(TableIo { table: self.ahead, ..*self })
    }
}

/// The ranges of a line of `len` elements that no strip covers.
pub(super) fn gaps<T>(strips: &[Strip<T>], len: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
    let ends = std::iter::once(0).chain(strips.iter().map(|strip| strip.at + strip.len));
    let starts = strips.iter().map(|strip| strip.at).chain([len]);
    ends.zip(starts).filter(|(end, start)| end < start)
}

/// The single strip that covers the whole line of `len` elements, if there is one.
pub(super) fn whole<T>(strips: &[Strip<T>], len: usize) -> Option<&Strip<T>> {
    match strips {
        [strip] if strip.len == len => Some(strip),
        _ => None,
    }
}

/// Writes the address of every row of a line of `len` elements into `table`,
/// `spare` for rows that no strip covers.
///
/// # Safety
/// `table` is valid for `len` writes.
pub(super) unsafe fn list_rows<T>(strips: &[Strip<T>], len: usize, spare: *mut T, table: *mut *mut T) {
    for (from, to) in gaps(strips, len) {
        for k in from..to {
            // SAFETY: `table` is valid for `len` writes, and `k < len`.
            unsafe { *table.add(k) = spare };
        }
    }
    for strip in strips {
        for k in 0..strip.len {
            // SAFETY: `table` is valid for `len` writes, and strips lie within the line of `len` elements.
            unsafe { *table.add(strip.at + k) = strip.ptr.wrapping_offset(k as isize * strip.step) };
        }
    }
}

/// Whether the lines of a block fill whole cache lines: row by row
/// (adjacent lines, `groups` vectors at a time) or line by line.
pub(super) fn whole_cache_lines<V: Vector>(
    strips: &[Strip<V::T>],
    width: usize,
    lines: usize,
    groups: usize,
) -> bool {
    const LINE: usize = 64;
    let size = size_of::<V::T>();
    let whole = |scalars: usize| (scalars * size).is_multiple_of(LINE);
    let rows_fill = whole(groups * V::LANES) && whole(lines * width);
    strips.iter().all(|strip| {
        let aligned = (strip.ptr as usize).is_multiple_of(LINE);
        let one_run = strip.run >= lines;
        let whole_runs = one_run || whole(strip.run * width) && whole(strip.skip.unsigned_abs());
        let rows =
            strip.lane == 2 && width == 2 && rows_fill && whole_runs && whole(strip.step.unsigned_abs());
        let columns = strip.step == width as isize
            && whole(strip.lane.unsigned_abs())
            && (one_run || whole(strip.skip.unsigned_abs()))
            && (strip.len * width).is_multiple_of(V::LANES);
        V::STREAMS && aligned && (rows || columns)
    })
}

/// Whether the lines of a block are adjacent complex numbers in every strip.
pub(super) fn are_rows<T>(strips: &[Strip<T>], lines: usize) -> bool {
    strips.iter().all(|strip| strip.lane == 2 && strip.run >= lines)
}

/// Whether lines return where they were loaded from.
pub(super) fn is_in_place<T>(block: &LineBlock<'_, T>) -> bool {
    block.from.first().map(|strip| strip.ptr) == block.to.first().map(|strip| strip.ptr)
}

/// Whether source and target of a block do not overlap.
pub(super) fn are_apart<T>(block: &LineBlock<'_, T>) -> bool {
    let range = |strips: &[Strip<T>]| {
        strips.iter().fold((usize::MAX, 0), |(low, high), strip| {
            let run = strip.run.min(block.lines).max(1);
            let (steps, lanes) = (strip.len as isize * strip.step, run as isize * strip.lane);
            let runs = (block.lines.div_ceil(run) - 1) as isize * strip.skip;
            let ends = [0, steps, lanes, steps + lanes].map(|end| [end, runs + end]);
            let ends = ends.as_flattened().iter().map(|end| strip.ptr.wrapping_offset(*end) as usize);
            ends.fold((low, high), |(low, high), end| (low.min(end), high.max(end)))
        })
    };
    let (from, to) = (range(block.from), range(block.to));
    from.1 <= to.0 || to.1 <= from.0
}

/// Whether rows are a multiple of a page apart, so that they map to few cache sets.
pub(super) fn are_aliases<T>(strips: &[Strip<T>]) -> bool {
    const PAGE: usize = 4096;
    strips.iter().any(|strip| (strip.step.unsigned_abs() * size_of::<T>()).is_multiple_of(PAGE))
}
