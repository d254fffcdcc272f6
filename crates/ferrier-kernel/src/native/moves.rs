//! Between the caller's memory and scratch, where elements cannot go straight
//! into the passes: contiguous lines, partly filled groups, odd strides, reals.
//!
//! No closures in what runs inside `enter`: they would be compiled without
//! the instructions. Indexed loops, because a lane indexes several arrays.
#![allow(clippy::needless_range_loop)]

use super::touch::Touch;
use super::vector::{MAX_LANES, Op, Pair, Vector};
use crate::Strip;

/// A strip of a group of lines and its place in scratch.
pub(super) struct Move<'a, V: Vector> {
    pub strip: &'a Strip<V::T>,
    /// First line of the group, and how many there are (at most `LANES`).
    pub first: usize,
    pub lines: usize,
    /// Numbers per element.
    pub width: usize,
    pub area: *mut V::T,
    /// Vector `m` of scratch holds number `m` of every line; otherwise the
    /// numbers are the real parts of complex ones, in every other vector.
    pub paired: bool,
    /// Whether to store past the caches.
    pub stream: bool,
    /// Where the elements of scratch are, if not in order.
    pub places: Option<&'a [usize]>,
}

/// How the lines of a strip lie.
enum Shape<T> {
    /// Neighbouring lines side by side, from here.
    Rows(*mut T),
    /// Each line's numbers one after the other, and enough of them.
    Columns,
    Sparse,
}

impl<V: Vector> Move<'_, V> {
    #[inline(always)]
    fn shape(&self) -> Shape<V::T> {
        let width = self.width as isize;
        if self.strip.lane == width {
            Shape::Rows(self.strip.ptr.wrapping_offset(self.first as isize * self.strip.lane))
        } else if self.strip.step == width && self.numbers() >= V::LANES {
            Shape::Columns
        } else {
            Shape::Sparse
        }
    }

    /// Numbers of a line in this strip.
    #[inline(always)]
    fn numbers(&self) -> usize {
        self.strip.len * self.width
    }

    /// Where each lane's line begins. Lanes without a line share the last one.
    #[inline(always)]
    fn starts(&self) -> [*mut V::T; MAX_LANES] {
        let mut starts = [self.strip.ptr; MAX_LANES];
        for i in 0..V::LANES {
            let line = self.first + V::ORDER[i].min(self.lines - 1);
            starts[i] = self.strip.ptr.wrapping_offset(line as isize * self.strip.lane);
        }
        starts
    }

    /// From the start of a line to number `m` of this strip.
    #[inline(always)]
    fn offset(&self, m: usize) -> isize {
        (m / self.width) as isize * self.strip.step + (m % self.width) as isize
    }

    /// The vector of number `m` of this strip, for scattering.
    ///
    /// # Safety
    /// The strip has a number `m`.
    #[inline(always)]
    unsafe fn vector(&self, m: usize) -> *const V::T {
        let m = self.strip.at * self.width + m;
        let vector = match self.places {
            // SAFETY: there is a place for every element; a check would cost a tenth of the scatter.
            Some(places) => 2 * unsafe { *places.get_unchecked(m / 2) } + m % 2,
            None if self.paired => m,
            None => 2 * m,
        };
        self.area.wrapping_add(vector * V::LANES)
    }

    /// The vector of the strip's first number, and from one vector to the next.
    #[inline(always)]
    fn vectors(&self) -> (*mut V::T, usize) {
        let pitch = if self.paired { V::LANES } else { 2 * V::LANES };
        (self.area.wrapping_add(self.strip.at * self.width * pitch), pitch)
    }
}

/// From the caller's memory into scratch.
pub(super) struct Gather<'a, 'b, V: Vector>(pub Move<'a, V>, pub &'a mut Touch<'b, V::T>);

impl<V: Vector> Op<V> for Gather<'_, '_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let it = &self.0;
        // SAFETY: the strip's lines can be read, scratch has a vector for each number.
        unsafe {
            match it.shape() {
                Shape::Rows(start) => load_rows(it, start),
                Shape::Columns => load_columns(it, self.1),
                Shape::Sparse => load_sparse(it),
            }
        }
    }
}

/// # Safety
/// As for [`Gather`].
#[inline(always)]
unsafe fn load_rows<V: Vector>(it: &Move<'_, V>, start: *mut V::T) {
    let (area, pitch) = it.vectors();
    let mut copy = [V::T::default(); 2 * MAX_LANES];
    for k in 0..it.strip.len {
        let mut row = start.wrapping_offset(k as isize * it.strip.step);
        // SAFETY: a full group's row, or a copy of what there is of it.
        unsafe {
            if it.lines < V::LANES {
                std::ptr::copy_nonoverlapping(row, copy.as_mut_ptr(), it.lines * it.width);
                row = copy.as_mut_ptr();
            }
            if it.width == 2 {
                V::load_pairs(row).store(area, k);
            } else {
                V::load_row(row).store(area.add(k * pitch));
            }
        }
    }
}

/// # Safety
/// As for [`Gather`].
#[inline(always)]
unsafe fn load_columns<V: Vector>(it: &Move<'_, V>, touch: &mut Touch<'_, V::T>) {
    let share = touch.share(V::LANES / 2);
    let (area, pitch) = it.vectors();
    let starts = it.starts();
    let numbers = it.numbers();
    let mut m = 0;
    loop {
        // SAFETY: the lines have LANES numbers from m on.
        unsafe {
            let columns = V::load_square(&starts, m);
            for i in 0..V::LANES {
                columns[i].store(area.add((m + i) * pitch));
            }
        }
        touch.fetch(share);
        // The last block may overlap the one before it.
        if m + V::LANES == numbers {
            return;
        }
        m = (m + V::LANES).min(numbers - V::LANES);
    }
}

/// # Safety
/// As for [`Gather`].
#[inline(always)]
unsafe fn load_sparse<V: Vector>(it: &Move<'_, V>) {
    let (area, pitch) = it.vectors();
    let starts = it.starts();
    for m in 0..it.numbers() {
        let offset = it.offset(m);
        for i in 0..V::LANES {
            // SAFETY: number m of lane i's line.
            unsafe { *area.add(m * pitch + i) = *starts[i].offset(offset) };
        }
    }
}

/// From scratch to the caller's memory, multiplied by a scale.
pub(super) struct Scatter<'a, 'b, V: Vector>(pub Move<'a, V>, pub V::T, pub &'a mut Touch<'b, V::T>);

impl<V: Vector> Op<V> for Scatter<'_, '_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let (it, scale) = (&self.0, V::splat(self.1));
        // SAFETY: the strip's lines can be written, scratch has a vector for each number.
        unsafe {
            match it.shape() {
                Shape::Rows(start) => store_rows(it, start, scale),
                Shape::Columns => store_columns(it, scale, self.2),
                Shape::Sparse => store_sparse(it, scale),
            }
        }
    }
}

/// # Safety
/// As for [`Scatter`].
#[inline(always)]
unsafe fn store_rows<V: Vector>(it: &Move<'_, V>, start: *mut V::T, scale: V) {
    let mut copy = [V::T::default(); 2 * MAX_LANES];
    for k in 0..it.strip.len {
        let row = start.wrapping_offset(k as isize * it.strip.step);
        // SAFETY: a full group's row, or as much of a copy as there is of it.
        unsafe {
            let to = if it.lines < V::LANES { copy.as_mut_ptr() } else { row };
            if it.width == 2 {
                let x =
                    Pair { re: V::load(it.vector(2 * k)), im: V::load(it.vector(2 * k + 1)) }.scaled(scale);
                if it.stream && it.lines == V::LANES {
                    V::stream_pairs(to, x);
                } else {
                    V::store_pairs(to, x);
                }
            } else {
                V::load(it.vector(k)).mul(scale).store_row(to);
            }
            if it.lines < V::LANES {
                std::ptr::copy_nonoverlapping(to, row, it.lines * it.width);
            }
        }
    }
}

/// # Safety
/// As for [`Scatter`].
#[inline(always)]
unsafe fn store_columns<V: Vector>(it: &Move<'_, V>, scale: V, touch: &mut Touch<'_, V::T>) {
    let share = touch.share(V::LANES / 2);
    // Copies of what the loop needs: what it stores might alias the original.
    let (area, pitch) = it.vectors();
    let (starts, numbers, lines) = (it.starts(), it.numbers(), it.lines);
    let places = it.places.map(|places| (it.area, places[it.strip.at..].as_ptr()));
    let mut m = 0;
    loop {
        // SAFETY: the lines have LANES numbers from m on; lanes without a line are left out.
        unsafe {
            let mut columns = [scale; MAX_LANES];
            for i in (0..V::LANES).step_by(2) {
                let (pair, pitch) = match places {
                    Some((area, places)) => (area.add(*places.add((m + i) / 2) * 2 * V::LANES), V::LANES),
                    None => (area.add((m + i) * pitch), pitch),
                };
                columns[i] = V::load(pair).mul(scale);
                columns[i + 1] = V::load(pair.add(pitch)).mul(scale);
            }
            if lines == V::LANES {
                V::store_square(columns, &starts, m, it.stream);
            } else {
                V::transpose(&mut columns);
                for i in 0..V::LANES {
                    if V::ORDER[i] < lines {
                        columns[i].store(starts[i].add(m));
                    }
                }
            }
        }
        touch.fetch(share);
        // The last block may overlap the one before it.
        if m + V::LANES == numbers {
            return;
        }
        m = (m + V::LANES).min(numbers - V::LANES);
    }
}

/// # Safety
/// As for [`Scatter`].
#[inline(always)]
unsafe fn store_sparse<V: Vector>(it: &Move<'_, V>, scale: V) {
    let starts = it.starts();
    for m in 0..it.numbers() {
        let offset = it.offset(m);
        let mut numbers = [V::T::default(); MAX_LANES];
        // SAFETY: number m of lane i's line.
        unsafe {
            V::load(it.vector(m)).mul(scale).store(numbers.as_mut_ptr());
            for i in 0..V::LANES {
                if V::ORDER[i] < it.lines {
                    *starts[i].offset(offset) = numbers[i];
                }
            }
        }
    }
}
