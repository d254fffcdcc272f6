//! Where passes take elements from and put them: scratch, or rows of the
//! caller's memory in which neighbouring lines lie side by side.

use super::vector::{Pair, Vector};
use crate::Strip;

/// Elements of a group of lines, by their number.
pub(super) trait Source<V: Vector>: Copy {
    /// # Safety
    /// Inside [`Vector::enter`]; the source has an element `k`.
    unsafe fn get(&self, k: usize) -> Pair<V>;
}

/// Places for elements of a group of lines.
pub(super) trait Sink<V: Vector>: Copy {
    /// Whether elements stay where the last pass found them.
    const SCRAMBLED: bool = false;

    /// # Safety
    /// Inside [`Vector::enter`]; the sink has a place `k`.
    unsafe fn put(&self, k: usize, x: Pair<V>);
}

/// An area of scratch, vector after vector.
#[derive(Clone, Copy)]
pub(super) struct Area<T>(pub *mut T);

impl<V: Vector> Source<V> for Area<V::T> {
    #[inline(always)]
    unsafe fn get(&self, k: usize) -> Pair<V> {
        // SAFETY: the caller's promise.
        unsafe { Pair::load(self.0, k) }
    }
}

impl<V: Vector> Sink<V> for Area<V::T> {
    #[inline(always)]
    unsafe fn put(&self, k: usize, x: Pair<V>) {
        // SAFETY: the caller's promise.
        unsafe { x.store(self.0, k) };
    }
}

/// The area in which the passes work, left in their order.
#[derive(Clone, Copy)]
pub(super) struct Scrambled<T>(pub *mut T);

impl<V: Vector> Sink<V> for Scrambled<V::T> {
    const SCRAMBLED: bool = true;

    #[inline(always)]
    unsafe fn put(&self, k: usize, x: Pair<V>) {
        // SAFETY: the caller's promise.
        unsafe { x.store(self.0, k) };
    }
}

/// Complex rows of a full group: `table[k] + at` is element `k` of its first line.
#[derive(Clone, Copy)]
pub(super) struct Rows<T> {
    pub table: *const *mut T,
    pub at: usize,
    /// What is stored is multiplied by this. (One changes no bit.)
    pub scale: T,
    /// Whether it is stored past the caches.
    pub stream: bool,
}

impl<V: Vector> Source<V> for Rows<V::T> {
    #[inline(always)]
    unsafe fn get(&self, k: usize) -> Pair<V> {
        // SAFETY: the caller's promise.
        unsafe { V::load_pairs((*self.table.add(k)).add(self.at)) }
    }
}

impl<V: Vector> Sink<V> for Rows<V::T> {
    #[inline(always)]
    unsafe fn put(&self, k: usize, x: Pair<V>) {
        // SAFETY: the caller's promise.
        unsafe {
            let (place, x) = ((*self.table.add(k)).add(self.at), x.scaled(V::splat(self.scale)));
            if self.stream {
                V::stream_pairs(place, x);
            } else {
                V::store_pairs(place, x);
            }
        }
    }
}

/// The parts of a line of `len` elements that no strip has.
pub(super) fn gaps<T>(strips: &[Strip<T>], len: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
    let ends = std::iter::once(0).chain(strips.iter().map(|strip| strip.at + strip.len));
    let starts = strips.iter().map(|strip| strip.at).chain([len]);
    ends.zip(starts).filter(|(end, start)| end < start)
}

/// Writes the address of every row of a line of `len` elements into `table`,
/// `spare` for those that no strip has, and that of row 0 once more at the
/// end, where backward transforms look for it.
///
/// # Safety
/// `table` has room for one more than `len`.
pub(super) unsafe fn list_rows<T>(strips: &[Strip<T>], len: usize, spare: *mut T, table: *mut *mut T) {
    for (from, to) in gaps(strips, len) {
        for k in from..to {
            // SAFETY: the caller's promise.
            unsafe { *table.add(k) = spare };
        }
    }
    for strip in strips {
        // SAFETY: strips lie within the line.
        let mut place = unsafe { table.add(strip.at) };
        for k in 0..strip.len {
            // SAFETY: the caller's promise.
            unsafe {
                *place = strip.ptr.wrapping_offset(k as isize * strip.step);
                place = place.add(1);
            }
        }
    }
    // SAFETY: the caller's promise; the table is not empty.
    unsafe { *table.add(len) = *table };
}

/// Whether groups of lines fill whole cache lines, row by row (neighbouring
/// lines side by side) or line by line.
pub(super) fn whole_cache_lines<V: Vector>(strips: &[Strip<V::T>], width: usize) -> bool {
    const LINE: isize = 64;
    let size = size_of::<V::T>() as isize;
    strips.iter().all(|strip| {
        let aligned = (strip.ptr as isize) % LINE == 0;
        let rows = strip.lane == width as isize && strip.step * size % LINE == 0;
        let columns = strip.step == width as isize
            && strip.lane * size % LINE == 0
            && (strip.len * width).is_multiple_of(V::LANES);
        V::STREAMS && aligned && (rows || columns)
    })
}

/// Whether neighbouring lines lie side by side in every strip.
pub(super) fn are_rows<T>(strips: &[Strip<T>], width: usize) -> bool {
    strips.iter().all(|strip| strip.lane == width as isize)
}
