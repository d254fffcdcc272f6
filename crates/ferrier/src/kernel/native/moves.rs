//! Between the caller's memory and scratch, where elements cannot go straight
//! into the passes: contiguous lines, partly filled groups, odd strides, reals.
//!
//! In scratch, vector `m` holds number `m` of every line of the group.

use super::super::Strip;
use super::vector::{MAX_LANES, Op, Pair, Vector};

/// Which vector of scratch a number of a line belongs to.
#[derive(Clone, Copy)]
pub(super) struct Map {
    /// Numbers come in pairs, one complex number; otherwise they are the real
    /// parts of complex numbers.
    pub paired: bool,
    /// Complex elements come backwards from element 0: 0, n-1, n-2, ...; the length n, or 0.
    pub reversed: usize,
}

impl Map {
    #[inline(always)]
    fn vector(&self, m: usize) -> usize {
        let (element, part) = if self.paired { (m / 2, m % 2) } else { (m, 0) };
        let element = if self.reversed > 0 && element > 0 { self.reversed - element } else { element };
        2 * element + part
    }
}

/// A strip of a group of `lines` (at most `LANES`) lines and its place in scratch.
pub(super) struct Move<'a, V: Vector> {
    pub strip: &'a Strip<V::T>,
    /// First line of the group, and how many there are.
    pub first: usize,
    pub lines: usize,
    /// Numbers per element.
    pub width: usize,
    pub area: *mut V::T,
    pub map: Map,
}

impl<V: Vector> Move<'_, V> {
    /// Where number `m` of the strip's part of lane `i`'s line lies.
    #[inline(always)]
    fn place(&self, m: usize, i: usize) -> *mut V::T {
        let (k, w) = (m / self.width, m % self.width);
        self.line(i).wrapping_offset(k as isize * self.strip.step).wrapping_add(w)
    }

    #[inline(always)]
    fn vector(&self, m: usize) -> *mut V::T {
        self.area.wrapping_add(self.map.vector(self.strip.at * self.width + m) * V::LANES)
    }

    /// How many blocks of `LANES` numbers to transpose where a line's numbers
    /// follow each other; the last block may overlap the one before it.
    #[inline(always)]
    fn squares(&self) -> Option<usize> {
        let numbers = self.strip.len * self.width;
        let fit = self.strip.step == self.width as isize && numbers >= V::LANES;
        fit.then_some(numbers.div_ceil(V::LANES))
    }

    /// The first number of a block.
    #[inline(always)]
    fn square(&self, i: usize) -> usize {
        (i * V::LANES).min(self.strip.len * self.width - V::LANES)
    }

    /// Where lane `i`'s line begins. Lanes without a line share the last one.
    #[inline(always)]
    fn line(&self, i: usize) -> *mut V::T {
        let line = self.first + V::ORDER[i].min(self.lines - 1);
        self.strip.ptr.wrapping_offset(line as isize * self.strip.lane)
    }

    /// The first number of the strip's rows where neighbouring lines lie side by side.
    #[inline(always)]
    fn rows(&self) -> Option<*mut V::T> {
        let start = self.strip.ptr.wrapping_offset(self.first as isize * self.strip.lane);
        (self.strip.lane == self.width as isize).then_some(start)
    }
}

/// From the caller's memory into scratch.
pub(super) struct Gather<'a, V: Vector>(pub Move<'a, V>);

impl<V: Vector> Op<V> for Gather<'_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let it = &self.0;
        // SAFETY: the strip's lines can be read, scratch has a vector for each number.
        unsafe {
            if let Some(start) = it.rows() {
                for k in 0..it.strip.len {
                    let row = start.wrapping_offset(k as isize * it.strip.step);
                    load_row::<V>(it, k, row);
                }
                return;
            }
            // No closures here: they would be compiled without the instructions.
            if let Some(squares) = it.squares() {
                for m in 0..squares {
                    let m = it.square(m);
                    let mut square = [V::splat(V::T::default()); MAX_LANES];
                    for (i, row) in square.iter_mut().enumerate().take(V::LANES) {
                        *row = V::load(it.line(i).add(m));
                    }
                    V::transpose(&mut square);
                    for (i, column) in square.iter().enumerate().take(V::LANES) {
                        column.store(it.vector(m + i));
                    }
                }
            } else {
                for m in 0..it.strip.len * it.width {
                    for i in 0..V::LANES {
                        *it.vector(m).add(i) = *it.place(m, i);
                    }
                }
            }
        }
    }
}

/// # Safety
/// As for [`Gather`].
#[inline(always)]
unsafe fn load_row<V: Vector>(it: &Move<'_, V>, k: usize, mut row: *const V::T) {
    // SAFETY: a full group's row, or a copy of what there is of it.
    unsafe {
        let mut copy = [V::T::default(); 2 * MAX_LANES];
        if it.lines < V::LANES {
            std::ptr::copy_nonoverlapping(row, copy.as_mut_ptr(), it.lines * it.width);
            row = copy.as_ptr();
        }
        if it.width == 2 {
            let x = V::load_pairs(row);
            x.re.store(it.vector(2 * k));
            x.im.store(it.vector(2 * k + 1));
        } else {
            V::load_row(row).store(it.vector(k));
        }
    }
}

/// From scratch to the caller's memory, multiplied by a scale.
pub(super) struct Scatter<'a, V: Vector>(pub Move<'a, V>, pub V::T);

impl<V: Vector> Op<V> for Scatter<'_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let (it, scale) = (&self.0, V::splat(self.1));
        // SAFETY: the strip's lines can be written, scratch has a vector for each number.
        unsafe {
            if let Some(start) = it.rows() {
                for k in 0..it.strip.len {
                    let row = start.wrapping_offset(k as isize * it.strip.step);
                    store_row::<V>(it, k, row, scale);
                }
                return;
            }
            if let Some(squares) = it.squares() {
                for m in 0..squares {
                    let m = it.square(m);
                    let mut square = [V::splat(V::T::default()); MAX_LANES];
                    for (i, column) in square.iter_mut().enumerate().take(V::LANES) {
                        *column = V::load(it.vector(m + i)).mul(scale);
                    }
                    V::transpose(&mut square);
                    for (i, row) in square.iter().enumerate().take(V::LANES) {
                        if V::ORDER[i] < it.lines {
                            row.store(it.line(i).add(m));
                        }
                    }
                }
            } else {
                for m in 0..it.strip.len * it.width {
                    let mut numbers = [V::T::default(); MAX_LANES];
                    V::load(it.vector(m)).mul(scale).store(numbers.as_mut_ptr());
                    for (i, number) in numbers.iter().enumerate().take(V::LANES) {
                        if V::ORDER[i] < it.lines {
                            *it.place(m, i) = *number;
                        }
                    }
                }
            }
        }
    }
}

/// # Safety
/// As for [`Scatter`].
#[inline(always)]
unsafe fn store_row<V: Vector>(it: &Move<'_, V>, k: usize, row: *mut V::T, scale: V) {
    // SAFETY: a full group's row, or as much of a copy as there is of it.
    unsafe {
        let mut copy = [V::T::default(); 2 * MAX_LANES];
        let to = if it.lines < V::LANES { copy.as_mut_ptr() } else { row };
        if it.width == 2 {
            let x = Pair { re: V::load(it.vector(2 * k)), im: V::load(it.vector(2 * k + 1)) };
            V::store_pairs(to, x.scaled(scale));
        } else {
            V::load(it.vector(k)).mul(scale).store_row(to);
        }
        if it.lines < V::LANES {
            std::ptr::copy_nonoverlapping(to, row, it.lines * it.width);
        }
    }
}
