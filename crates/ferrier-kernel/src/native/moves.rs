//! Between the caller's memory and scratch, where elements cannot go straight
//! into the passes: contiguous lines, partly filled groups, odd strides, reals.
//!
//! No closures in what runs inside `enter`: they would be compiled without
//! the instructions. Indexed loops, because a line indexes several arrays.
#![allow(clippy::needless_range_loop)]

use super::touch::Touch;
use super::vector::{MAX_LANES, MAX_LINES, Op, Vector};
use crate::lines::Strip;

/// What the numbers of the caller's lines are to scratch.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Form {
    /// Complex elements.
    Complex,
    /// Reals, of which two make an element.
    Pairs,
    /// Reals, each the real part of an element.
    Singles,
}

/// A strip of a group of lines and its place in scratch.
pub(super) struct Move<'a, V: Vector> {
    pub strip: &'a Strip<V::T>,
    /// First line of the group, and how many there are (at most `LINES`).
    pub first: usize,
    pub lines: usize,
    pub form: Form,
    pub area: *mut V::T,
    /// Whether to store past the caches.
    pub stream: bool,
    /// Where the elements of scratch are, if not in order.
    pub places: Option<&'a [usize]>,
}

/// How the lines of a strip lie.
enum Shape<T> {
    /// Neighbouring complex lines side by side, from here.
    Rows(*mut T),
    /// Each line's elements one after the other, and enough of them: this
    /// many, from this one on.
    Columns(usize, usize),
    Sparse,
}

impl<V: Vector> Move<'_, V> {
    /// Numbers per element of the caller's memory.
    #[inline(always)]
    fn width(&self) -> usize {
        if self.form == Form::Complex { 2 } else { 1 }
    }

    #[inline(always)]
    fn shape(&self) -> Shape<V::T> {
        let (at, len) = (self.strip.at, self.strip.len);
        let columns = self.strip.step == self.width() as isize;
        match self.form {
            Form::Complex if self.strip.lane == 2 => {
                Shape::Rows(self.strip.ptr.wrapping_offset(self.first as isize * self.strip.lane))
            }
            Form::Complex if columns && len >= V::LINES => Shape::Columns(len, at),
            Form::Pairs if columns && at % 2 == 0 && len % 2 == 0 && len >= V::LANES => {
                Shape::Columns(len / 2, at / 2)
            }
            _ => Shape::Sparse,
        }
    }

    /// Where each line begins. Places without a line share the last one.
    #[inline(always)]
    fn starts(&self) -> [*mut V::T; MAX_LINES] {
        let mut starts = [self.strip.ptr; MAX_LINES];
        for i in 0..V::LINES {
            let line = self.first + i.min(self.lines - 1);
            starts[i] = self.strip.ptr.wrapping_offset(line as isize * self.strip.lane);
        }
        starts
    }

    /// From the start of a line to number `m` of this strip.
    #[inline(always)]
    fn offset(&self, m: usize) -> isize {
        (m / self.width()) as isize * self.strip.step + (m % self.width()) as isize
    }

    /// The element of scratch and the part of it (0: real) that number `m` of this strip is.
    #[inline(always)]
    fn element(&self, m: usize) -> (usize, usize) {
        let m = self.strip.at * self.width() + m;
        match self.form {
            Form::Singles => (m, 0),
            Form::Complex | Form::Pairs => (m / 2, m % 2),
        }
    }

    /// Where element `k` is, for scattering.
    ///
    /// # Safety
    /// There is an element `k`.
    #[inline(always)]
    unsafe fn vector(&self, k: usize) -> *const V::T {
        let place = match self.places {
            // SAFETY: there is a place for every element; a check would cost a tenth of the scatter.
            Some(places) => unsafe { *places.get_unchecked(k) },
            None => k,
        };
        self.area.wrapping_add(place * V::LANES)
    }
}

/// From the caller's memory into scratch.
pub(super) struct Gather<'a, 'b, V: Vector>(pub Move<'a, V>, pub &'a mut Touch<'b, V::T>);

impl<V: Vector> Op<V> for Gather<'_, '_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let it = &self.0;
        // SAFETY: the strip's lines can be read, scratch has a vector for each element.
        unsafe {
            match it.shape() {
                Shape::Rows(start) => load_rows(it, start),
                Shape::Columns(len, at) => load_columns(it, len, at, self.1),
                Shape::Sparse => load_sparse(it),
            }
        }
    }
}

/// # Safety
/// As for [`Gather`].
#[inline(always)]
unsafe fn load_rows<V: Vector>(it: &Move<'_, V>, start: *mut V::T) {
    let mut copy = [V::T::default(); MAX_LANES];
    for k in 0..it.strip.len {
        let mut row = start.wrapping_offset(k as isize * it.strip.step);
        // SAFETY: a full group's row, or a copy of what there is of it.
        unsafe {
            let x = match it.lines {
                // The last column of a real spectrum is often alone.
                1 => V::load_twin(row),
                lines => {
                    if lines < V::LINES {
                        std::ptr::copy_nonoverlapping(row, copy.as_mut_ptr(), lines * 2);
                        row = copy.as_mut_ptr();
                    }
                    V::load(row)
                }
            };
            x.put(it.area, it.strip.at + k);
        }
    }
}

/// # Safety
/// As for [`Gather`].
#[inline(always)]
unsafe fn load_columns<V: Vector>(it: &Move<'_, V>, len: usize, at: usize, touch: &mut Touch<'_, V::T>) {
    let share = touch.share(V::LINES);
    let (area, starts) = (it.area.wrapping_add(at * V::LANES), it.starts());
    let mut k = 0;
    loop {
        // SAFETY: the lines have LINES elements from k on.
        unsafe {
            let mut square = [V::zero(); MAX_LINES];
            for i in 0..V::LINES {
                square[i] = V::load(starts[i].add(2 * k));
            }
            V::transpose(&mut square);
            for i in 0..V::LINES {
                square[i].put(area, k + i);
            }
        }
        touch.fetch(share);
        // The last square may overlap the one before it.
        if k + V::LINES == len {
            return;
        }
        k = (k + V::LINES).min(len - V::LINES);
    }
}

/// # Safety
/// As for [`Gather`].
#[inline(always)]
unsafe fn load_sparse<V: Vector>(it: &Move<'_, V>) {
    let starts = it.starts();
    for m in 0..it.strip.len * it.width() {
        let (offset, (k, part)) = (it.offset(m), it.element(m));
        for i in 0..V::LINES {
            // SAFETY: number m of line i; scratch has element k.
            unsafe {
                let place = it.area.add(k * V::LANES + 2 * i);
                *place.add(part) = *starts[i].offset(offset);
                if it.form == Form::Singles {
                    *place.add(1) = V::T::default();
                }
            }
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
        // SAFETY: the strip's lines can be written, scratch has a vector for each element.
        unsafe {
            match it.shape() {
                Shape::Rows(start) => store_rows(it, start, scale),
                Shape::Columns(len, at) => store_columns(it, len, at, scale, self.2),
                Shape::Sparse => store_sparse(it, scale),
            }
        }
    }
}

/// # Safety
/// As for [`Scatter`].
#[inline(always)]
unsafe fn store_rows<V: Vector>(it: &Move<'_, V>, start: *mut V::T, scale: V) {
    let mut copy = [V::T::default(); MAX_LANES];
    for k in 0..it.strip.len {
        let row = start.wrapping_offset(k as isize * it.strip.step);
        // SAFETY: a full group's row, or as much of a copy as there is of it.
        unsafe {
            let x = V::load(it.vector(it.strip.at + k)).mul(scale);
            if it.lines < V::LINES {
                x.store(copy.as_mut_ptr());
                match it.lines {
                    1 => std::ptr::copy_nonoverlapping(copy.as_ptr(), row, 2),
                    lines => std::ptr::copy_nonoverlapping(copy.as_ptr(), row, lines * 2),
                }
            } else if it.stream {
                x.stream(row);
            } else {
                x.store(row);
            }
        }
    }
}

/// # Safety
/// As for [`Scatter`].
#[inline(always)]
unsafe fn store_columns<V: Vector>(
    it: &Move<'_, V>,
    len: usize,
    at: usize,
    scale: V,
    touch: &mut Touch<'_, V::T>,
) {
    let share = touch.share(V::LINES);
    // Copies of what the loop needs: what it stores might alias the original.
    let (starts, lines, stream) = (it.starts(), it.lines, it.stream);
    let (area, places) = (it.area, it.places.map(|places| places[at..].as_ptr()));
    let mut k = 0;
    loop {
        // SAFETY: the lines have LINES elements from k on; places without a line are left out.
        unsafe {
            let mut square = [scale; MAX_LINES];
            for i in 0..V::LINES {
                let place = places.map_or(at + k + i, |places| *places.add(k + i));
                square[i] = V::get(area, place).mul(scale);
            }
            V::transpose(&mut square);
            for i in 0..V::LINES {
                let to = starts[i].add(2 * k);
                if i >= lines {
                    break;
                } else if stream {
                    square[i].stream(to);
                } else {
                    square[i].store(to);
                }
            }
        }
        touch.fetch(share);
        // The last square may overlap the one before it.
        if k + V::LINES == len {
            return;
        }
        k = (k + V::LINES).min(len - V::LINES);
    }
}

/// # Safety
/// As for [`Scatter`].
#[inline(always)]
unsafe fn store_sparse<V: Vector>(it: &Move<'_, V>, scale: V) {
    let starts = it.starts();
    for m in 0..it.strip.len * it.width() {
        let (offset, (k, part)) = (it.offset(m), it.element(m));
        let mut numbers = [V::T::default(); MAX_LANES];
        // SAFETY: number m of line i; scratch has element k.
        unsafe {
            V::load(it.vector(k)).mul(scale).store(numbers.as_mut_ptr());
            for i in 0..it.lines {
                *starts[i].offset(offset) = numbers[2 * i + part];
            }
        }
    }
}
