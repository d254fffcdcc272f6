//! Copies between the caller's memory and scratch, where passes cannot access
//! the caller's memory directly: contiguous lines, partly filled groups, other
//! strides, reals.
//!
//! Code inside `enter` uses no closures: they would be compiled without the
//! instruction set. Loops are indexed, because they index several arrays.
#![allow(clippy::needless_range_loop)]

use super::prefetch::Prefetcher;
use super::vector::{MAX_LANES, MAX_LINES, Op, Vector};
use crate::lines::Strip;

/// How the scalars of the caller's lines map to complex elements of scratch.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ScalarLayout {
    /// Complex elements.
    Complex,
    /// Reals; two form an element.
    RealPairs,
    /// Reals; each is the real part of an element.
    RealParts,
}

/// A copy between the strips of a group of lines and scratch.
pub(super) struct StripCopy<'a, V: Vector> {
    /// First line of the group, and the number of lines (at most `LINES`).
    pub first: usize,
    pub lines: usize,
    pub layout: ScalarLayout,
    pub area: *mut V::T,
    /// Whether to use non-temporal stores.
    pub stream: bool,
    /// The index in scratch of each element, if not in order.
    pub permutation: Option<&'a [usize]>,
}

/// The layout of the lines of a strip.
enum StripLayout {
    /// Complex lines are adjacent in each run.
    Rows,
    /// The elements of each line are contiguous: number of elements, and index of the first.
    Contiguous(usize, usize),
    /// Complex elements one by one.
    Elements,
    /// Real scalars one by one.
    Scalars,
}

impl<V: Vector> StripCopy<'_, V> {
    /// Scalars per element in the caller's memory.
    #[inline(always)]
    fn width(&self) -> usize {
        if self.layout == ScalarLayout::Complex { 2 } else { 1 }
    }

    #[inline(always)]
    fn strip_layout(&self, strip: &Strip<V::T>) -> StripLayout {
        let (at, len) = (strip.at, strip.len);
        let columns = strip.step == self.width() as isize;
        match self.layout {
            ScalarLayout::Complex if strip.lane == 2 => StripLayout::Rows,
            ScalarLayout::Complex if columns && len > 0 => StripLayout::Contiguous(len, at),
            ScalarLayout::RealPairs if columns && at % 2 == 0 && len % 2 == 0 && len > 0 => {
                StripLayout::Contiguous(len / 2, at / 2)
            }
            ScalarLayout::Complex => StripLayout::Elements,
            _ => StripLayout::Scalars,
        }
    }

    /// The start of each line. Lanes without a line use the last line.
    #[inline(always)]
    fn starts(&self, strip: &Strip<V::T>) -> [*mut V::T; MAX_LINES] {
        let mut starts = [strip.ptr; MAX_LINES];
        for i in 0..V::LINES {
            starts[i] = strip.line(self.first + i.min(self.lines - 1));
        }
        starts
    }

    /// The end of the run that line `line` of the group is in, in lines of the group.
    #[inline(always)]
    fn run_end(&self, strip: &Strip<V::T>, line: usize) -> usize {
        self.lines.min(line.saturating_add(strip.left_in_run(self.first + line)))
    }

    /// The element of scratch that holds real `m` of a line, and its part (0: real, 1: imaginary).
    #[inline(always)]
    fn element(&self, m: usize) -> (usize, usize) {
        if self.layout == ScalarLayout::RealParts { (m, 0) } else { (m / 2, m % 2) }
    }

    /// The address in scratch of element `k`, for scattering.
    ///
    /// # Safety
    /// `k` is less than the number of elements.
    #[inline(always)]
    unsafe fn vector(&self, k: usize) -> *const V::T {
        let index = match self.permutation {
            // SAFETY: the permutation has an entry for every element. A bounds check would cost a tenth of the scatter.
            Some(permutation) => unsafe { *permutation.get_unchecked(k) },
            None => k,
        };
        self.area.wrapping_add(index * V::LANES)
    }
}

/// Copies from the caller's memory to scratch.
pub(super) struct Gather<'a, 'b, V: Vector>(
    pub StripCopy<'a, V>,
    pub &'a [Strip<V::T>],
    pub &'a mut Prefetcher<'b, V::T>,
);

impl<V: Vector> Op<V> for Gather<'_, '_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let it = &self.0;
        for strip in self.1 {
            // SAFETY: `Op::run`'s contract: the strip's lines are readable, scratch has a vector for each element.
            unsafe {
                match it.strip_layout(strip) {
                    StripLayout::Rows => load_rows(it, strip, self.2),
                    StripLayout::Contiguous(len, at) => load_contiguous(it, strip, len, at, self.2),
                    StripLayout::Elements => load_elements(it, strip, self.2),
                    StripLayout::Scalars => load_scalars(it, strip),
                }
            }
        }
    }
}

/// # Safety
/// As for [`Gather`].
#[inline(always)]
unsafe fn load_rows<V: Vector>(
    it: &StripCopy<'_, V>,
    strip: &Strip<V::T>,
    prefetcher: &mut Prefetcher<'_, V::T>,
) {
    let budget = prefetcher.budget(V::LINES);
    let (area, mut line) = (it.area.wrapping_add(strip.at * V::LANES), 0);
    while line < it.lines {
        let end = it.run_end(strip, line);
        let start = strip.line(it.first + line).wrapping_sub(2 * line);
        for k in 0..strip.len {
            let row = start.wrapping_offset(k as isize * strip.step);
            // SAFETY: the lines of the run are readable; scratch has a vector for the row.
            unsafe {
                let x = match end - line {
                    lines if lines == V::LINES => V::load(row),
                    _ if line == 0 => V::zero().load_lines(row, line, end),
                    // The lines of the runs before are in scratch.
                    _ => V::get(area, k).load_lines(row, line, end),
                };
                x.put(area, k);
            }
            if line == 0 && k % V::LINES == 0 {
                prefetcher.visit(budget);
            }
        }
        line = end;
    }
}

/// # Safety
/// As for [`Gather`].
#[inline(always)]
unsafe fn load_elements<V: Vector>(
    it: &StripCopy<'_, V>,
    strip: &Strip<V::T>,
    prefetcher: &mut Prefetcher<'_, V::T>,
) {
    let budget = prefetcher.budget(V::LINES);
    let (mut starts, area) = (it.starts(strip), it.area.wrapping_add(strip.at * V::LANES));
    for k in 0..strip.len {
        for i in 0..V::LINES {
            // SAFETY: element k of line i is readable; scratch has a vector for it.
            unsafe {
                let element = starts[i].cast::<[V::T; 2]>().read();
                area.add(k * V::LANES + 2 * i).cast::<[V::T; 2]>().write(element);
            }
            starts[i] = starts[i].wrapping_offset(strip.step);
        }
        if k % V::LINES == 0 {
            prefetcher.visit(budget);
        }
    }
}

/// # Safety
/// As for [`Gather`].
#[inline(always)]
unsafe fn load_contiguous<V: Vector>(
    it: &StripCopy<'_, V>,
    strip: &Strip<V::T>,
    len: usize,
    at: usize,
    prefetcher: &mut Prefetcher<'_, V::T>,
) {
    let budget = prefetcher.budget(V::LINES);
    let (area, starts) = (it.area.wrapping_add(at * V::LANES), it.starts(strip));
    let (mut k, few) = (0, len < V::LINES);
    loop {
        // SAFETY: the lines have LINES elements from k on, or few in all.
        unsafe {
            let mut square = [V::zero(); MAX_LINES];
            for i in 0..V::LINES {
                let from = starts[i].add(2 * k);
                square[i] = if few { V::zero().load_lines(from, 0, len) } else { V::load(from) };
            }
            V::transpose(&mut square);
            for i in 0..V::LINES {
                if few && i >= len {
                    break;
                }
                square[i].put(area, k + i);
            }
        }
        prefetcher.visit(budget);
        // The last square may overlap the one before it.
        if few || k + V::LINES == len {
            return;
        }
        k = (k + V::LINES).min(len - V::LINES);
    }
}

/// # Safety
/// As for [`Gather`].
#[inline(always)]
unsafe fn load_scalars<V: Vector>(it: &StripCopy<'_, V>, strip: &Strip<V::T>) {
    let starts = it.starts(strip);
    for m in 0..strip.len {
        let (offset, (k, part)) = (m as isize * strip.step, it.element(strip.at + m));
        for i in 0..V::LINES {
            // SAFETY: scalar m of line i is readable; scratch has element k.
            unsafe {
                let element = it.area.add(k * V::LANES + 2 * i);
                *element.add(part) = *starts[i].offset(offset);
                if it.layout == ScalarLayout::RealParts {
                    *element.add(1) = V::T::default();
                }
            }
        }
    }
}

/// Copies from scratch to the caller's memory, multiplied by a scale.
pub(super) struct Scatter<'a, 'b, V: Vector>(
    pub StripCopy<'a, V>,
    pub &'a [Strip<V::T>],
    pub V::T,
    pub &'a mut Prefetcher<'b, V::T>,
);

impl<V: Vector> Op<V> for Scatter<'_, '_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let (it, scale) = (&self.0, V::splat(self.2));
        for strip in self.1 {
            // SAFETY: `Op::run`'s contract: the strip's lines are writable, scratch has a vector for each element.
            unsafe {
                match it.strip_layout(strip) {
                    StripLayout::Rows => store_rows(it, strip, scale, self.3),
                    StripLayout::Contiguous(len, at) => store_contiguous(it, strip, (len, at), scale, self.3),
                    StripLayout::Elements => store_elements(it, strip, scale, self.3),
                    StripLayout::Scalars => store_scalars(it, strip, scale),
                }
            }
        }
    }
}

/// # Safety
/// As for [`Scatter`].
#[inline(always)]
unsafe fn store_rows<V: Vector>(
    it: &StripCopy<'_, V>,
    strip: &Strip<V::T>,
    scale: V,
    prefetcher: &mut Prefetcher<'_, V::T>,
) {
    let budget = prefetcher.budget(V::LINES);
    let (mut line, stream) = (0, it.stream);
    while line < it.lines {
        let end = it.run_end(strip, line);
        let start = strip.line(it.first + line).wrapping_sub(2 * line);
        for k in 0..strip.len {
            let row = start.wrapping_offset(k as isize * strip.step);
            // SAFETY: the lines of the run are writable; scratch has a vector for the row.
            unsafe {
                let x = V::load(it.vector(strip.at + k)).mul(scale);
                if end - line < V::LINES {
                    x.store_lines(row, line, end);
                } else if stream {
                    x.stream(row);
                } else {
                    x.store(row);
                }
            }
            if line == 0 && k % V::LINES == 0 {
                prefetcher.visit(budget);
            }
        }
        line = end;
    }
}

/// # Safety
/// As for [`Scatter`].
#[inline(always)]
unsafe fn store_contiguous<V: Vector>(
    it: &StripCopy<'_, V>,
    strip: &Strip<V::T>,
    (len, at): (usize, usize),
    scale: V,
    prefetcher: &mut Prefetcher<'_, V::T>,
) {
    let budget = prefetcher.budget(V::LINES);
    // Local copies: the compiler must assume that stores alias the original.
    let (starts, lines, stream) = (it.starts(strip), it.lines, it.stream);
    let (area, permutation) = (it.area, it.permutation.map(|indices| indices[at..].as_ptr()));
    let (mut k, few) = (0, len < V::LINES);
    loop {
        // SAFETY: the lines have LINES elements from k on, or few in all; lanes without a line are not stored.
        unsafe {
            let mut square = [scale; MAX_LINES];
            for i in 0..V::LINES {
                if few && i >= len {
                    break;
                }
                let index = permutation.map_or(at + k + i, |indices| *indices.add(k + i));
                square[i] = V::get(area, index).mul(scale);
            }
            V::transpose(&mut square);
            for i in 0..V::LINES {
                let to = starts[i].add(2 * k);
                if i >= lines {
                    break;
                } else if few {
                    square[i].store_lines(to, 0, len);
                } else if stream {
                    square[i].stream(to);
                } else {
                    square[i].store(to);
                }
            }
        }
        prefetcher.visit(budget);
        // The last square may overlap the one before it.
        if few || k + V::LINES == len {
            return;
        }
        k = (k + V::LINES).min(len - V::LINES);
    }
}

/// # Safety
/// As for [`Scatter`].
#[inline(always)]
unsafe fn store_elements<V: Vector>(
    it: &StripCopy<'_, V>,
    strip: &Strip<V::T>,
    scale: V,
    prefetcher: &mut Prefetcher<'_, V::T>,
) {
    let budget = prefetcher.budget(V::LINES);
    let (mut starts, lines) = (it.starts(strip), it.lines);
    let mut copy = [V::T::default(); MAX_LANES];
    for k in 0..strip.len {
        // SAFETY: element k of every line is writable; scratch has a vector for it.
        unsafe {
            V::load(it.vector(strip.at + k)).mul(scale).store(copy.as_mut_ptr());
            for i in 0..lines {
                let element = copy.as_ptr().add(2 * i).cast::<[V::T; 2]>().read();
                starts[i].cast::<[V::T; 2]>().write(element);
                starts[i] = starts[i].wrapping_offset(strip.step);
            }
        }
        if k % V::LINES == 0 {
            prefetcher.visit(budget);
        }
    }
}

/// # Safety
/// As for [`Scatter`].
#[inline(always)]
unsafe fn store_scalars<V: Vector>(it: &StripCopy<'_, V>, strip: &Strip<V::T>, scale: V) {
    let starts = it.starts(strip);
    for m in 0..strip.len {
        let (offset, (k, part)) = (m as isize * strip.step, it.element(strip.at + m));
        let mut scalars = [V::T::default(); MAX_LANES];
        // SAFETY: scalar m of every line is writable; scratch has element k.
        unsafe {
            V::load(it.vector(k)).mul(scale).store(scalars.as_mut_ptr());
            for i in 0..it.lines {
                *starts[i].offset(offset) = scalars[2 * i + part];
            }
        }
    }
}
