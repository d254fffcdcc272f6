//! Kernel `native`: transforms blocks of lines, a few groups at a time.

use std::marker::PhantomData;

use super::block_plan::{BlockPlan, GroupSet, RowAccess, row_len, table_len};
use super::contiguous::ContiguousFft;
use super::contiguous_real::ContiguousReal;
use super::fft::Fft;
use super::line_io::{
    StoreMode, StridedIo, TableIo, are_aliases, are_apart, are_rows, gaps, is_in_place, list_rows, whole,
    whole_cache_lines,
};
use super::planes::RowPlanes;
use super::prefetch::Prefetcher;
use super::real::twiddles;
use super::short_real::is_short;
use super::staging::{STAGING_BYTES, StagingCopy, row_pitch};
use super::vector::Vector;
use crate::lines::{LineBlock, Lines, Repeat, StoreHint, Strip, run_each};
use crate::real::Real;
use crate::spec::{LineKind, LinesSpec};

/// Lines computed with the vectors `V`.
pub(super) struct NativeLines<V: Vector> {
    pub spec: LinesSpec,
    /// The factor of the results; [`LineBlock::factor`] comes on top.
    scale: f64,
    pub fft: Fft<V::T>,
    /// For contiguous lines, which are transformed one by one.
    pub contiguous: Option<ContiguousFft<V::T>>,
    pub contiguous_real: Option<ContiguousReal<V::T>>,
    /// Whether contiguous real lines are transformed in registers.
    pub short_real: bool,
    /// Twiddles of the extra pass for an even number of reals.
    pub twiddles: Vec<V::T>,
    /// The order in which the passes leave elements that are scattered.
    pub permutation: Option<Vec<usize>>,
    lanes: PhantomData<fn() -> V>,
}

/// A block that is not repeated.
const ONCE: Repeat = Repeat { count: 1, from: 0, to: 0 };

/// The most bytes of the areas of a set of groups: most of a first-level cache.
pub(super) const GROUP_SET_BYTES: usize = 17 << 10;

impl<V: Vector> NativeLines<V> {
    /// The processor must have `V`'s instruction set.
    pub fn new(spec: &LinesSpec) -> Self {
        let n = spec.n.max(1);
        let halved = Self::is_halved(spec);
        let fft = Fft::new(if halved { n / 2 } else { n }, V::RADICES, Self::is_backward(spec));
        let twiddles = if halved { twiddles(n, Self::is_backward(spec)) } else { vec![] };
        let half = if halved { n / 2 } else { 0 };
        let short_real = halved && fft.is_single_pass() && is_short::<V>(half);
        NativeLines {
            spec: *spec,
            // `Unfold` gives twice the spectrum.
            scale: match spec.kind {
                LineKind::RealForward if halved => 0.5 * spec.scale,
                _ => spec.scale,
            },
            permutation: fft.permutation(),
            contiguous: (!short_real).then(|| ContiguousFft::new::<V>(&fft)).flatten(),
            fft,
            contiguous_real: ContiguousReal::new::<V>(half, &twiddles),
            short_real,
            twiddles,
            lanes: PhantomData,
        }
    }

    pub fn is_halved(spec: &LinesSpec) -> bool {
        let real = matches!(spec.kind, LineKind::RealForward | LineKind::RealBackward);
        real && spec.n > 0 && spec.n.is_multiple_of(2)
    }

    /// The factor of a block's results.
    pub fn scale(&self, block: &LineBlock<'_, V::T>) -> V::T {
        V::T::rounded(self.scale * block.factor)
    }

    /// Scalars of one area: the vectors of a line, and one more element for real lines of even length.
    fn area_len(&self) -> usize {
        (self.fft.n + 1) * V::LANES
    }

    fn is_backward(spec: &LinesSpec) -> bool {
        matches!(spec.kind, LineKind::Backward | LineKind::RealBackward)
    }

    /// Plans a block and fills its tables of rows.
    ///
    /// # Safety
    /// `scratch` has [`Lines::scratch`] scalars.
    unsafe fn plan_block(&self, block: &LineBlock<'_, V::T>, scratch: *mut V::T) -> BlockPlan<V::T> {
        let kind = self.spec.kind;
        let (len_in, len_out) = (kind.len_in(self.spec.n), kind.len_out(self.spec.n));
        let full = block.lines / V::LINES;
        let rows_in = kind.width_in() == 2 && full > 0 && are_rows(block.from, block.lines);
        let rows_out = kind.width_out() == 2 && full > 0 && are_rows(block.to, block.lines);
        let pieces = whole(block.from, len_in).is_none() || whole(block.to, len_out).is_none();
        let uncached =
            rows_in && rows_out && (block.from_staging || full > 1 && (pieces || are_aliases(block.from)));
        let max_groups = if uncached { full } else { self.groups_per_set(full) };
        // Dropped results share a spare row, which non-temporal stores must not write.
        let stream = block.store == StoreHint::Stream
            && !(rows_out && gaps(block.to, len_out).next().is_some())
            && whole_cache_lines::<V>(block.to, kind.width_out(), block.lines, max_groups);
        let rows_ahead = uncached && are_rows(block.ahead, block.ahead_lines);
        let stage = rows_ahead && block.ahead_lines > 0 && !block.staging.is_null();
        let ahead = stage || rows_ahead && block.ahead_lines >= full * V::LINES;

        let groups = block.lines.div_ceil(V::LINES);
        let lens = [
            table_len::<V::T>(len_in),
            table_len::<V::T>(len_out),
            table_len::<V::T>(len_in),
            row_len(block.lines),
            row_len(block.lines),
            groups * self.area_len(),
            self.groups_per_set(groups) * self.area_len(),
        ];
        let mut at = scratch;
        let [table_in, table_out, table_ahead, zeros, dropped, a, b] = lens.map(|len| {
            let here = at;
            at = at.wrapping_add(len);
            here
        });
        // SAFETY: the tables have an entry for every element; the spare rows have the length of the block's rows.
        unsafe {
            if rows_in && (uncached || pieces) || ahead {
                std::ptr::write_bytes(zeros, 0, row_len(block.lines));
                list_rows(block.from, len_in, zeros, table_in.cast());
            }
            if rows_out && (uncached || pieces) {
                list_rows(block.to, len_out, dropped, table_out.cast());
            }
            if ahead {
                list_rows(block.ahead, len_in, zeros, table_ahead.cast());
            }
        }
        let ahead = if ahead { table_ahead.cast_const().cast() } else { std::ptr::null() };
        let tables = [table_in, table_out].map(|table| table.cast_const().cast());
        BlockPlan { rows_in, rows_out, uncached, max_groups, stream, tables, ahead, stage, a, b, spare: at }
    }

    /// The set of groups that begins with line `first`.
    fn group_set<'a, 'b>(
        &self,
        block: &'a LineBlock<'a, V::T>,
        plan: &BlockPlan<V::T>,
        first: usize,
        prefetcher: &'a mut Prefetcher<'b, V::T>,
    ) -> GroupSet<'a, 'b, V> {
        let groups = plan.max_groups.min((block.lines - first) / V::LINES);
        let (len_in, len_out) = (self.spec.kind.len_in(self.spec.n), self.spec.kind.len_out(self.spec.n));
        let mode = StoreMode::new(self.scale(block), plan.stream);
        let access =
            |strips: &[Strip<V::T>], len: usize, table: *const *mut V::T, from_staging: bool| match whole(
                strips, len,
            ) {
                Some(strip) if !plan.uncached || from_staging => {
                    let start = strip.ptr.wrapping_add(2 * first);
                    RowAccess::Strided(StridedIo { start, step: strip.step, pitch: V::LANES, mode })
                }
                _ => {
                    let prefetch_target = plan.uncached && !plan.stream;
                    let ahead = if plan.stage { std::ptr::null() } else { plan.ahead };
                    let in_place = is_in_place(block);
                    RowAccess::Table(TableIo { table, at: 2 * first, mode, prefetch_target, in_place, ahead })
                }
            };
        let [table_in, table_out] = plan.tables;
        GroupSet {
            block,
            first,
            lines: if groups == 0 { block.lines - first } else { groups * V::LINES },
            groups: groups.max(1),
            rows_in: (plan.rows_in && groups > 0)
                .then(|| access(block.from, len_in, table_in, block.from_staging)),
            rows_out: (plan.rows_out && groups > 0).then(|| access(block.to, len_out, table_out, false)),
            a: StridedIo::scratch::<V>(plan.a, self.area_len()),
            b: StridedIo::scratch::<V>(plan.b, self.area_len()),
            spare: plan.spare,
            stream: plan.stream,
            prefetcher,
        }
    }

    /// The prefetcher of the target of a block of groups and of the next block.
    fn group_prefetcher<'a>(
        &self,
        block: &LineBlock<'a, V::T>,
        (rows_in, rows_out): (bool, bool),
        stream: bool,
    ) -> Prefetcher<'a, V::T> {
        // Gathering and scattering each take about as long as a pass.
        let copies = usize::from(!rows_in) + usize::from(!rows_out);
        let visits = block.lines.div_ceil(V::LINES) * self.fft.n * (self.fft.pass_count() + copies);
        self.prefetcher(block, visits, stream)
    }

    /// The prefetcher of a block's target and of the next block, within so many visits of an element.
    pub fn prefetcher<'a>(
        &self,
        block: &LineBlock<'a, V::T>,
        visits: usize,
        stream: bool,
    ) -> Prefetcher<'a, V::T> {
        let kind = self.spec.kind;
        let prefetch_target = block.store != StoreHint::Plain && !stream;
        Prefetcher::new(block, prefetch_target, (kind.width_in(), kind.width_out()), visits)
            .with_stream_copy(block, visits)
    }

    /// The prefetcher that copies the next block to staging.
    ///
    /// # Safety
    /// As for [`Lines::run`]; `table` lists the rows of the next block.
    unsafe fn staging_prefetcher<'a>(
        &self,
        block: &LineBlock<'a, V::T>,
        table: *const *mut V::T,
    ) -> Prefetcher<'a, V::T> {
        let rows = self.spec.kind.len_in(self.spec.n);
        // SAFETY: `run`'s contract: `ahead` is readable, and `staging` is writable and apart from the block.
        let staging = unsafe { StagingCopy::new::<V>((table, rows), block.ahead_lines, block.staging) };
        let vectors = staging.vectors();
        let visits = block.lines / V::LINES * self.fft.n * self.fft.pass_count();
        Prefetcher::with_staging(staging, vectors, visits)
    }

    /// The number of groups of a set, of `groups` in all.
    fn groups_per_set(&self, groups: usize) -> usize {
        let vector = V::LANES * size_of::<V::T>();
        let hot = GROUP_SET_BYTES / (self.area_len() * size_of::<V::T>());
        // As many groups as fill a cache line, where vectors are shorter.
        let per_cache_line = 64usize.div_ceil(vector);
        (hot / per_cache_line * per_cache_line).max(per_cache_line).min(groups.max(1))
    }
}

impl<V: Vector> Lines<V::T> for NativeLines<V> {
    fn block(&self, strided: bool) -> usize {
        if !strided {
            // Long lines are not prefetched from block to block.
            if self.contiguous.as_ref().is_some_and(ContiguousFft::is_long) {
                return V::LINES;
            }
            // Enough short lines to amortise the fixed cost of a block.
            return V::LANES.max(8).max(2048 / self.spec.n.max(1)).min(64);
        }
        // Half a kilobyte per row: enough to amortise opening a DRAM page. Fewer
        // lines where the block would not fit a second-level cache.
        let bytes = 2 * size_of::<V::T>();
        let fit = (512 << 10) / (bytes * self.spec.n.max(1));
        (512 / bytes).min(fit / V::LINES * V::LINES).max(V::LINES)
    }

    fn scratch(&self, lines: usize) -> usize {
        let kind = self.spec.kind;
        let tables =
            2 * table_len::<V::T>(kind.len_in(self.spec.n)) + table_len::<V::T>(kind.len_out(self.spec.n));
        let groups = lines.div_ceil(V::LINES).max(1);
        let areas = (groups + self.groups_per_set(groups)) * self.area_len();
        tables + 2 * row_len(lines) + areas + self.fft.spare() * V::LANES
    }

    unsafe fn run_repeated(&self, block: &LineBlock<'_, V::T>, repeat: Repeat, scratch: &mut [V::T]) {
        assert!(scratch.len() >= self.scratch(block.lines), "scratch is too short");
        let complex = matches!(self.spec.kind, LineKind::Forward | LineKind::Backward);
        let spare = self.fft.spare() * V::LANES;
        // SAFETY: this function's contract covers all repetitions; the scratch is checked above.
        unsafe {
            match RowPlanes::new::<V>(&self.fft, block, repeat) {
                Some(planes) if complex => {
                    let areas = self.groups_per_set((scratch.len() - spare) / self.area_len());
                    let groups = repeat.count * block.lines.div_ceil(V::LINES);
                    let visits = groups * self.fft.n * self.fft.pass_count();
                    let mut prefetcher = Prefetcher::new(block, false, (2, 2), visits).into_second_level();
                    let scratch = (scratch.as_mut_ptr(), areas, self.area_len());
                    planes.run::<V>(self.scale(block), scratch, &mut prefetcher);
                }
                _ => {
                    // Where the target is prefetched or streamed, block by block.
                    let plain = block.store == StoreHint::Plain && block.lines > 0 && self.spec.n > 0;
                    if !plain || self.run_contiguous(block, repeat, scratch).is_none() {
                        run_each(self, block, repeat, scratch);
                    }
                }
            }
        }
    }

    fn streams_lines(&self) -> bool {
        match self.short_real {
            true => self.streams_short_real(),
            false => {
                self.contiguous_real.is_none() && self.contiguous.as_ref().is_none_or(ContiguousFft::streams)
            }
        }
    }

    fn streams_rows(&self) -> bool {
        self.groups_per_set(usize::MAX) * V::LANES * size_of::<V::T>() > 64
    }

    fn staging_len(&self, lines: usize) -> usize {
        let len = self.spec.n * row_pitch::<V::T>(lines);
        let complex = matches!(self.spec.kind, LineKind::Forward | LineKind::Backward);
        if complex && len * size_of::<V::T>() <= STAGING_BYTES { len } else { 0 }
    }

    fn staged(&self, staging: *mut V::T, lines: usize) -> Strip<V::T> {
        let step = row_pitch::<V::T>(lines) as isize;
        Strip { ptr: staging, len: self.spec.n, step, lane: 2, ..Strip::default() }
    }

    unsafe fn run(&self, block: &LineBlock<'_, V::T>, scratch: &mut [V::T]) -> bool {
        let n = self.spec.n;
        assert!(scratch.len() >= self.scratch(block.lines), "scratch is too short");
        if n == 0 || block.lines == 0 {
            return false;
        }
        // SAFETY: `run`'s contract covers the strips; the scratch is checked above.
        let contiguous = unsafe { self.run_contiguous(block, ONCE, scratch) };
        if let Some(staged) = contiguous {
            return staged;
        }
        // SAFETY: the length of the scratch is checked above.
        let plan = unsafe { self.plan_block(block, scratch.as_mut_ptr()) };
        let mut prefetcher = match () {
            // SAFETY: `run`'s contract covers `ahead` and `staging`; the plan lists the rows of the next block.
            () if plan.stage => unsafe { self.staging_prefetcher(block, plan.ahead) },
            // The passes prefetch conflicting rows themselves.
            () if plan.uncached => Prefetcher::idle(),
            () => self.group_prefetcher(block, (plan.rows_in, plan.rows_out), plan.stream),
        };
        let mut first = 0;
        let apart = !block.lines.is_multiple_of(V::LINES) && are_apart(block);
        while first < block.lines {
            // A group that is not full is done again with lines before it, where they are not overwritten yet.
            if apart && block.lines - first < V::LINES && first > 0 {
                first = block.lines - V::LINES;
            }
            let mut set = self.group_set(block, &plan, first, &mut prefetcher);
            first += set.lines;
            // SAFETY: `run`'s contract covers the strips; `plan_block` laid out tables and areas in the scratch.
            unsafe {
                match self.spec.kind {
                    LineKind::Forward | LineKind::Backward => self.complex(&mut set),
                    LineKind::RealForward => self.real_forward(&mut set),
                    LineKind::RealBackward => self.real_backward(&mut set),
                    LineKind::R2r { .. } => unreachable!("`R2rLines` uses the other kinds"),
                }
            }
        }
        prefetcher.finish(block)
    }
}
