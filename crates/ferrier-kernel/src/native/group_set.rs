//! The transforms of a set of groups of lines, by kind: what is not loaded and stored directly goes through scratch.

use std::marker::PhantomData;

use super::block_plan::{GroupSet, RowAccess};
use super::gather_scatter::{Gather, ScalarLayout, Scatter, StripCopy};
use super::line_io::{LineIo, StridedIo, gaps};
use super::lines::NativeLines;
use super::real::{Fold, Mirror, Unfold};
use super::vector::Vector;

impl<V: Vector> NativeLines<V> {
    /// How scalars of lines of this width map to elements of scratch.
    fn layout(&self, width: usize) -> ScalarLayout {
        match width {
            2 => ScalarLayout::Complex,
            _ if Self::is_halved(&self.spec) => ScalarLayout::RealPairs,
            _ => ScalarLayout::RealParts,
        }
    }

    unsafe fn gather(&self, set: &mut GroupSet<'_, '_, V>, area: StridedIo<V::T>) {
        let layout = self.layout(self.spec.kind.width_in());
        let per_element = if layout == ScalarLayout::RealPairs { 2 } else { 1 };
        for g in 0..set.groups {
            let ((first, lines), area) = (set.group(g), area.group(g));
            for (from, to) in gaps(set.block.from, self.spec.kind.len_in(self.spec.n)) {
                let (from, to) = (from / per_element, to.div_ceil(per_element));
                // SAFETY: the area has a vector for every element of the line.
                unsafe { std::ptr::write_bytes(area.add(from * V::LANES), 0, (to - from) * V::LANES) };
            }
            let it = StripCopy { first, lines, layout, area, stream: false, permutation: None };
            // SAFETY: `run`'s contract covers the strips; the area has a vector for each element.
            unsafe { V::enter(Gather::<V>(it, set.block.from, set.prefetcher)) };
        }
    }

    unsafe fn scatter(
        &self,
        set: &mut GroupSet<'_, '_, V>,
        area: StridedIo<V::T>,
        permutation: Option<&[usize]>,
    ) {
        let layout = self.layout(self.spec.kind.width_out());
        let scale = self.scale(set.block);
        for g in 0..set.groups {
            let ((first, lines), area, stream) = (set.group(g), area.group(g), set.stream);
            let it = StripCopy { first, lines, layout, area, stream, permutation };
            // SAFETY: `run`'s contract covers the strips; the area has a vector for each element.
            unsafe { V::enter(Scatter::<V>(it, set.block.to, scale, set.prefetcher)) };
        }
    }

    /// The complex transform from `from` (default: area `a`) to `to` (default: area `b`).
    unsafe fn transform(
        &self,
        set: &mut GroupSet<'_, '_, V>,
        from: Option<RowAccess<V::T>>,
        to: Option<RowAccess<V::T>>,
    ) {
        let (from, to) = (from.unwrap_or(RowAccess::Strided(set.a)), to.unwrap_or(RowAccess::Strided(set.b)));
        let scratch = &mut set.fft_scratch();
        // SAFETY: `plan_block` sized the areas and the spare scratch for this transform.
        unsafe {
            match (from, to) {
                (RowAccess::Strided(from), RowAccess::Strided(to)) => {
                    self.fft.run::<V, _, _>(from, to, scratch)
                }
                (RowAccess::Strided(from), RowAccess::Table(to)) => {
                    self.fft.run::<V, _, _>(from, to, scratch)
                }
                (RowAccess::Table(from), RowAccess::Strided(to)) => {
                    self.fft.run::<V, _, _>(from, to, scratch)
                }
                (RowAccess::Table(from), RowAccess::Table(to)) => self.fft.run::<V, _, _>(from, to, scratch),
            }
        }
    }

    /// # Safety
    /// The strips of the set are valid; its tables and areas fit the block.
    pub(super) unsafe fn complex(&self, set: &mut GroupSet<'_, '_, V>) {
        let (rows_in, rows_out, a, b) = (set.rows_in, set.rows_out, set.a, set.b);
        // SAFETY: `run` passes a set whose strips are valid and whose tables and areas fit the block.
        unsafe {
            if rows_in.is_none() {
                self.gather(set, a);
            }
            if rows_in.is_none() && rows_out.is_none() && self.permutation.is_some() {
                self.fft.run_permuted::<V>(&mut set.fft_scratch());
                return self.scatter(set, a, self.permutation.as_deref());
            }
            self.transform(set, rows_in, rows_out);
            if rows_out.is_none() {
                self.scatter(set, b, None);
            }
        }
    }

    /// # Safety
    /// The strips of the set are valid; its tables and areas fit the block.
    pub(super) unsafe fn real_forward(&self, set: &mut GroupSet<'_, '_, V>) {
        let (a, b, half, twiddles) = (set.a, set.b, self.fft.n, &self.twiddles[..]);
        // SAFETY: `run` passes a set whose strips are valid and whose tables and areas fit the block.
        unsafe {
            self.gather(set, a);
            self.transform(set, None, None);
            if !Self::is_halved(&self.spec) {
                return self.scatter(set, b, None);
            }
            for g in 0..set.groups {
                let area = b.group(g);
                match set.rows_out.unwrap_or(RowAccess::Strided(a)) {
                    RowAccess::Table(rows) => {
                        V::enter(Unfold::<V, _> { area, half, twiddles, to: LineIo::<V>::of_group(&rows, g) })
                    }
                    RowAccess::Strided(even) => {
                        V::enter(Unfold::<V, _> { area, half, twiddles, to: LineIo::<V>::of_group(&even, g) })
                    }
                }
            }
            if set.rows_out.is_none() {
                self.scatter(set, a, None);
            }
        }
    }

    /// # Safety
    /// The strips of the set are valid; its tables and areas fit the block.
    pub(super) unsafe fn real_backward(&self, set: &mut GroupSet<'_, '_, V>) {
        let (a, b, half, twiddles) = (set.a, set.b, self.fft.n, &self.twiddles[..]);
        let halved = Self::is_halved(&self.spec);
        // SAFETY: `run` passes a set whose strips are valid and whose tables and areas fit the block.
        unsafe {
            if !halved {
                self.gather(set, a);
            } else if set.rows_in.is_none() {
                self.gather(set, b);
            }
            for g in 0..set.groups {
                let area = a.group(g);
                match set.rows_in.unwrap_or(RowAccess::Strided(b)) {
                    _ if !halved => V::enter(Mirror::<V> { area, n: half, lanes: PhantomData }),
                    RowAccess::Table(rows) => {
                        V::enter(Fold::<V, _> { from: LineIo::<V>::of_group(&rows, g), half, twiddles, area })
                    }
                    RowAccess::Strided(even) => {
                        V::enter(Fold::<V, _> { from: LineIo::<V>::of_group(&even, g), half, twiddles, area })
                    }
                }
            }
            self.transform(set, None, None);
            self.scatter(set, b, None);
        }
    }
}
