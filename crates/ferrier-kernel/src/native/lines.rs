//! Blocks of lines, group by group.

use std::marker::PhantomData;

use super::fft::Fft;
use super::moves::{Gather, Move, Scatter};
use super::ports::{Area, Rows, are_rows, gaps, list_rows, whole_cache_lines};
use super::real::{Blank, Fold, Mirror, Unfold, twiddles};
use super::touch::Touch;
use super::vector::Vector;
use crate::Real;
use crate::{Block, LineKind, Lines, LinesSpec, Store};

/// Lines on the vectors `V`.
pub(super) struct NativeLines<V: Vector> {
    spec: LinesSpec,
    scale: V::T,
    fft: Fft<V::T>,
    /// Of the extra pass for an even number of reals.
    twiddles: Vec<V::T>,
    /// Of elements that stay in the order of the passes.
    places: Option<Vec<usize>>,
    lanes: PhantomData<fn() -> V>,
}

/// Numbers of a row of so many complex elements, whole cache lines.
fn row(lines: usize) -> usize {
    (2 * lines).next_multiple_of(16)
}

/// One group of lines on its way.
struct Group<'a, 'b, V: Vector> {
    block: &'a Block<'a, V::T>,
    first: usize,
    lines: usize,
    /// Tables of rows, where lines lie side by side and fill the group.
    rows_in: Option<Rows<V::T>>,
    rows_out: Option<Rows<V::T>>,
    /// Two areas of a line each, and more.
    a: *mut V::T,
    b: *mut V::T,
    spare: *mut V::T,
    /// Whether to store past the caches.
    stream: bool,
    touch: &'a mut Touch<'b, V::T>,
}

impl<V: Vector> NativeLines<V> {
    /// The processor must have `V`'s instruction set.
    pub fn new(spec: &LinesSpec) -> Self {
        let n = spec.n.max(1);
        let halved = Self::is_halved(spec);
        let fft = Fft::new(if halved { n / 2 } else { n }, V::RADICES, Self::is_backward(spec));
        NativeLines {
            spec: *spec,
            // Unfolding leaves twice the spectrum.
            scale: match spec.kind {
                LineKind::RealForward if halved => V::T::rounded(0.5 * spec.scale),
                _ => V::T::rounded(spec.scale),
            },
            places: fft.places(),
            fft,
            twiddles: if halved { twiddles(n) } else { vec![] },
            lanes: PhantomData,
        }
    }

    fn is_halved(spec: &LinesSpec) -> bool {
        let real = matches!(spec.kind, LineKind::RealForward | LineKind::RealBackward);
        real && spec.n > 0 && spec.n.is_multiple_of(2)
    }

    /// Numbers of one area: a line, and the element more that backward
    /// transforms and halved real lines have.
    fn area(&self) -> usize {
        (self.fft.n + 1) * 2 * V::LANES
    }

    /// Numbers that a table of `rows` addresses takes, whole cache lines.
    fn table(rows: usize) -> usize {
        ((rows + 1) * size_of::<*mut V::T>()).next_multiple_of(64) / size_of::<V::T>()
    }

    fn is_backward(spec: &LinesSpec) -> bool {
        matches!(spec.kind, LineKind::Backward | LineKind::RealBackward)
    }

    unsafe fn gather(&self, group: &mut Group<'_, '_, V>, area: *mut V::T, paired: bool) {
        let width = self.spec.kind.width_in();
        let pitch = if paired { V::LANES } else { 2 * V::LANES };
        for (from, to) in gaps(group.block.from, self.spec.kind.len_in(self.spec.n)) {
            // SAFETY: the area has a place for every element of the line.
            unsafe { std::ptr::write_bytes(area.add(from * width * pitch), 0, (to - from) * width * pitch) };
        }
        for strip in group.block.from {
            let it = Move {
                strip,
                first: group.first,
                lines: group.lines,
                width,
                area,
                paired,
                stream: false,
                places: None,
            };
            // SAFETY: the strips are the caller's promise, the area is long enough.
            unsafe { V::enter(Gather::<V>(it, group.touch)) };
        }
    }

    unsafe fn scatter(
        &self,
        group: &mut Group<'_, '_, V>,
        area: *mut V::T,
        paired: bool,
        places: Option<&[usize]>,
    ) {
        let width = self.spec.kind.width_out();
        for strip in group.block.to {
            let (first, lines, stream) = (group.first, group.lines, group.stream);
            let it = Move { strip, first, lines, width, area, paired, stream, places };
            // SAFETY: the strips are the caller's promise, the area is long enough.
            unsafe { V::enter(Scatter::<V>(it, self.scale, group.touch)) };
        }
    }

    /// The complex transform from where the lines are (area `a`, or rows) to area `b` or rows.
    unsafe fn transform(
        &self,
        group: &mut Group<'_, '_, V>,
        from: Option<Rows<V::T>>,
        to: Option<Rows<V::T>>,
    ) {
        let (a, b, spare) = (group.a, group.b, group.spare);
        let touch = &mut *group.touch;
        // SAFETY: areas and spare are as long as the plan says.
        unsafe {
            match (from, to) {
                (Some(from), Some(to)) => self.fft.run::<V, _, _>(from, a, to, spare, touch),
                (Some(from), None) => self.fft.run::<V, _, _>(from, a, Area(b), spare, touch),
                (None, Some(to)) => self.fft.run::<V, _, _>(Area(a), a, to, spare, touch),
                (None, None) => self.fft.run::<V, _, _>(Area(a), a, Area(b), spare, touch),
            }
            if to.is_none() && Self::is_backward(&self.spec) {
                let element = 2 * V::LANES;
                std::ptr::copy_nonoverlapping(b.add(self.fft.n * element), b, element);
            }
        }
    }

    unsafe fn complex(&self, group: &mut Group<'_, '_, V>) {
        let (rows_in, rows_out) = (group.rows_in, group.rows_out);
        // SAFETY: strips, tables and areas are as `run` made them.
        unsafe {
            if rows_in.is_none() {
                self.gather(group, group.a, true);
            }
            if rows_in.is_none() && rows_out.is_none() && self.places.is_some() {
                self.fft.scramble::<V>(group.a, group.touch);
                return self.scatter(group, group.a, true, self.places.as_deref());
            }
            self.transform(group, rows_in, rows_out);
            if rows_out.is_none() {
                self.scatter(group, group.b, true, None);
            }
        }
    }

    unsafe fn real_forward(&self, group: &mut Group<'_, '_, V>) {
        let n = self.fft.n;
        let paired = Self::is_halved(&self.spec);
        // SAFETY: strips, tables and areas are as `run` made them.
        unsafe {
            self.gather(group, group.a, paired);
            if !paired {
                V::enter(Blank::<V> { area: group.a, n });
            }
            self.transform(group, None, None);
            if !paired {
                return self.scatter(group, group.b, true, None);
            }
            let (area, half, twiddles) = (group.b, n, &self.twiddles[..]);
            if let Some(to) = group.rows_out {
                return V::enter(Unfold::<V, _> { area, half, twiddles, to });
            }
            V::enter(Unfold::<V, _> { area, half, twiddles, to: Area(group.a) });
            self.scatter(group, group.a, true, None);
        }
    }

    unsafe fn real_backward(&self, group: &mut Group<'_, '_, V>) {
        let n = self.fft.n;
        let (a, half, twiddles) = (group.a, n, &self.twiddles[..]);
        let paired = Self::is_halved(&self.spec);
        // SAFETY: strips, tables and areas are as `run` made them.
        unsafe {
            if !paired {
                self.gather(group, a, true);
                V::enter(Mirror::<V> { area: a, n, lanes: PhantomData });
            } else if let Some(from) = group.rows_in {
                V::enter(Fold::<V, _> { from, half, twiddles, area: a });
            } else {
                self.gather(group, group.b, true);
                V::enter(Fold::<V, _> { from: Area(group.b), half, twiddles, area: a });
            }
            self.transform(group, None, None);
            self.scatter(group, group.b, paired, None);
        }
    }
}

impl<V: Vector> Lines<V::T> for NativeLines<V> {
    fn block(&self, strided: bool) -> usize {
        if !strided {
            return V::LANES;
        }
        // Half a kilobyte of neighbours: enough for a memory page to be worth
        // opening. Fewer where the lines would not stay in a second-level cache.
        let bytes = 2 * size_of::<V::T>();
        let fit = (512 << 10) / (bytes * self.spec.n.max(1));
        (512 / bytes).min(fit / V::LANES * V::LANES).max(V::LANES)
    }

    fn scratch(&self, lines: usize) -> usize {
        let tables = Self::table(self.spec.kind.len_in(self.spec.n))
            + Self::table(self.spec.kind.len_out(self.spec.n));
        tables + 2 * row(lines) + 2 * self.area() + self.fft.spare() * 2 * V::LANES
    }

    unsafe fn run(&self, block: &Block<'_, V::T>, scratch: &mut [V::T]) {
        let kind = self.spec.kind;
        let (len_in, len_out) = (kind.len_in(self.spec.n), kind.len_out(self.spec.n));
        assert!(scratch.len() >= self.scratch(block.lines), "scratch is too short");
        if self.spec.n == 0 {
            return;
        }
        let start = scratch.as_mut_ptr();
        // SAFETY: within the scratch, whose length was checked; it is aligned for addresses.
        let (table_out, zeros, waste, a, b, spare) = unsafe {
            let table_out = start.add(Self::table(len_in));
            let zeros = table_out.add(Self::table(len_out));
            let waste = zeros.add(row(block.lines));
            let a = waste.add(row(block.lines));
            (table_out, zeros, waste, a, a.add(self.area()), a.add(2 * self.area()))
        };
        let stream = block.store == Store::Stream && whole_cache_lines::<V>(block.to, kind.width_out());
        let rows_in = kind.width_in() == 2 && are_rows(block.from, 2);
        let rows_out = kind.width_out() == 2 && are_rows(block.to, 2);
        // What is dropped must not be written past the caches.
        let rows_out = rows_out && !(stream && gaps(block.to, len_out).next().is_some());
        let full = block.lines >= V::LANES;
        // SAFETY: the tables have a place for every element; the spare rows are as long as the block's.
        unsafe {
            if rows_in && full {
                std::ptr::write_bytes(zeros, 0, row(block.lines));
                list_rows(block.from, len_in, zeros, start.cast());
            }
            if rows_out && full {
                list_rows(block.to, len_out, waste, table_out.cast());
            }
        }
        // Gathering and scattering take about as long as a pass each.
        let moves = usize::from(!rows_in || !full) + usize::from(!rows_out || !full);
        let visits = block.lines.div_ceil(V::LANES) * self.fft.n * (self.fft.passes() + moves);
        let reserve = block.store != Store::Plain && !stream;
        let mut touch = Touch::new(block, reserve, (kind.width_in(), kind.width_out()), visits);
        for first in (0..block.lines).step_by(V::LANES) {
            let lines = V::LANES.min(block.lines - first);
            let full = lines == V::LANES;
            let rows = |table: *mut V::T| Rows {
                table: table.cast_const().cast(),
                at: 2 * first,
                scale: self.scale,
                stream,
            };
            let mut group = Group {
                block,
                first,
                lines,
                rows_in: (rows_in && full).then(|| rows(start)),
                rows_out: (rows_out && full).then(|| rows(table_out)),
                a,
                b,
                spare,
                stream,
                touch: &mut touch,
            };
            // SAFETY: the caller's promises.
            unsafe {
                match kind {
                    LineKind::Forward | LineKind::Backward => self.complex(&mut group),
                    LineKind::RealForward => self.real_forward(&mut group),
                    LineKind::RealBackward => self.real_backward(&mut group),
                    LineKind::R2r { .. } => unreachable!("made of the others"),
                }
            }
        }
    }
}
