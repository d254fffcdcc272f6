//! Blocks of contiguous lines: in registers, or a few lines at a time by way of scratch.

use super::contiguous::ContiguousFft;
use super::contiguous_parts::Source;
use super::contiguous_real::{FoldContiguous, UnfoldContiguous};
use super::line_io::{LineArray, StoreMode, whole, whole_cache_lines};
use super::lines::{GROUP_SET_BYTES, NativeLines};
use super::prefetch::Prefetcher;
use super::short_real::{ShortReal, fills_vectors};
use super::vector::Vector;
use crate::lines::{LineBlock, Repeat, StoreHint, Strip};
use crate::spec::LineKind;

/// Source and target of contiguous lines.
type Ends<'a, T> = (Source<'a, T>, &'a Strip<T>);

impl<V: Vector> NativeLines<V> {
    /// Source and target if lines can be transformed one by one: their elements are contiguous, those of the target in one strip.
    fn contiguous_ends<'a>(&self, block: &LineBlock<'a, V::T>) -> Option<Ends<'a, V::T>> {
        let (kind, n) = (self.spec.kind, self.spec.n);
        let from = Source::new(block.from, kind.len_in(n), kind.width_in())?;
        let to = whole(block.to, kind.len_out(n)).filter(|to| to.step == kind.width_out() as isize)?;
        let real = matches!(kind, LineKind::RealForward | LineKind::RealBackward);
        (!real || self.short_real || self.contiguous_real.is_some()).then_some((from, to))
    }

    /// Transforms a block of contiguous lines, and repetitions of it; returns what [`Lines::run`](crate::Lines::run) returns, or
    /// `None` and does nothing where the lines are not contiguous, or too long for repetitions.
    ///
    /// # Safety
    /// As for [`Lines::run_repeated`](crate::Lines::run_repeated); there are lines, and repetitions only where stores are plain.
    pub(super) unsafe fn run_contiguous(
        &self,
        block: &LineBlock<'_, V::T>,
        repeat: Repeat,
        scratch: &mut [V::T],
    ) -> Option<bool> {
        let (from, to) = self.contiguous_ends(block)?;
        // SAFETY: this function's contract.
        unsafe {
            if self.short_real {
                return Some(self.run_short_real(block, [from.whole()?, to], repeat));
            }
            let contiguous = self.contiguous.as_ref()?;
            if contiguous.is_long() && (repeat.count > 1 || from.whole().is_none()) {
                return None;
            }
            self.contiguous(contiguous, block, (from, to), repeat, scratch)
        }
    }

    /// Whether lines of [`ShortReal`] can be stored with non-temporal stores.
    pub(super) fn streams_short_real(&self) -> bool {
        let kind = self.spec.kind;
        fills_vectors::<V>(kind.len_out(self.spec.n) * kind.width_out() / 2)
    }

    /// Transforms real lines in registers.
    ///
    /// # Safety
    /// As for [`run_contiguous`](Self::run_contiguous).
    unsafe fn run_short_real(
        &self,
        block: &LineBlock<'_, V::T>,
        [from, to]: [&Strip<V::T>; 2],
        repeat: Repeat,
    ) -> bool {
        let stream = block.store == StoreHint::Stream
            && self.streams_short_real()
            && whole_cache_lines::<V>(block.to, self.spec.kind.width_out(), block.lines, 1);
        let mut prefetcher = self.contiguous_prefetcher(block, repeat, stream);
        let mut first = 0;
        while first < block.lines {
            let in_run = from.left_in_run(first).min(to.left_in_run(first));
            let lines = in_run.min(block.lines - first);
            let short = ShortReal {
                half: self.fft.n,
                backward: self.fft.backward,
                lines,
                planes: repeat.count,
                skips: [repeat.from, repeat.to],
                from: LineArray { start: from.line(first), lane: from.lane },
                to: LineArray { start: to.line(first), lane: to.lane },
                twiddles: &self.twiddles,
                mode: StoreMode::new(self.scale(block), stream),
                prefetcher: &mut prefetcher,
            };
            // SAFETY: this function's contract.
            unsafe { short.run::<V>() };
            first += lines;
        }
        prefetcher.finish(block)
    }

    /// The prefetcher of lines that fit a cache.
    fn contiguous_prefetcher<'a>(
        &self,
        block: &LineBlock<'a, V::T>,
        repeat: Repeat,
        stream: bool,
    ) -> Prefetcher<'a, V::T> {
        // Line by line: no group is visited in part.
        let visits = repeat.count * block.lines * self.fft.n * self.fft.pass_count() / V::LINES;
        let prefetcher = self.prefetcher(block, visits, stream);
        // Repetitions prefetch more than the first level holds.
        if repeat.count > 1 { prefetcher.into_second_level() } else { prefetcher }
    }

    /// Transforms contiguous lines a few at a time; `None` where scratch is too short for lines in parts.
    ///
    /// # Safety
    /// As for [`run_contiguous`](Self::run_contiguous); long lines are neither repeated nor in parts.
    unsafe fn contiguous(
        &self,
        contiguous: &ContiguousFft<V::T>,
        block: &LineBlock<'_, V::T>,
        (from, to): Ends<'_, V::T>,
        repeat: Repeat,
        scratch: &mut [V::T],
    ) -> Option<bool> {
        let (width_in, width) = (self.spec.kind.width_in(), self.spec.kind.width_out());
        let stream = block.store == StoreHint::Stream
            && width == 2
            && self.contiguous_real.is_none()
            && contiguous.streams()
            && whole_cache_lines::<V>(block.to, width, block.lines, 1);
        let mode = StoreMode::new(self.scale(block), stream);
        let long = contiguous.long_visits::<V>(&self.fft);
        let mut prefetcher = match long {
            Some(_) => Prefetcher::idle(),
            None => self.contiguous_prefetcher(block, repeat, stream),
        };
        // Padded by a cache line, so that lines of a power of two do not map to the same sets.
        let lane = contiguous.work_len(&self.fft) + 64 / size_of::<V::T>();
        let areas = if from.whole().is_some() { 2 } else { 3 };
        if scratch.len() < areas * lane {
            return None;
        }
        let hot = GROUP_SET_BYTES / areas / (lane * size_of::<V::T>());
        let max_lines = match hot.min(scratch.len() / (areas * lane)).max(1) {
            // Several lines at a time, in whole vectors.
            lines if self.fft.is_single_pass() && lines > V::LINES => lines / V::LINES * V::LINES,
            lines => lines,
        };
        let mut areas = scratch[..areas * max_lines * lane].chunks_exact_mut(max_lines * lane);
        let [work, other, joined] = [(); 3].map(|()| {
            let start = areas.next().map_or(std::ptr::null_mut(), <[V::T]>::as_mut_ptr);
            LineArray { start, lane: lane as isize }
        });
        for plane in 0..repeat.count as isize {
            let (mut first, mut lines) = (0, 0);
            while first + lines < block.lines {
                first += lines;
                let in_run = from.left_in_run(first).min(to.left_in_run(first));
                lines = max_lines.min(block.lines - first).min(in_run);
                let target = to.line(first).wrapping_offset(plane * repeat.to);
                let target = LineArray { start: target, lane: to.lane };
                // SAFETY: `run`'s contract covers the strips; each area of the scratch holds that many lines.
                unsafe {
                    let source = from.lines((first, lines), plane * repeat.from, joined, width_in);
                    let areas = [source, work, other, target];
                    let Some(visits) = long else {
                        self.contiguous_set(contiguous, lines, areas, mode, &mut prefetcher);
                        continue;
                    };
                    // Of long lines, only the next one fits a cache beside the current one.
                    let next = match first + lines < block.lines {
                        true => from.whole().map(|strip| Strip { ptr: strip.line(first + lines), ..*strip }),
                        false => whole(block.ahead, self.spec.kind.len_in(self.spec.n)).copied(),
                    };
                    let ahead = next.map(|strip| [Strip { lane: 0, run: usize::MAX, ..strip }]);
                    let ahead = ahead.as_ref().map_or(&[][..], |strips| strips);
                    let soon = LineBlock { ahead, ahead_lines: ahead.len(), ..*block };
                    let mut prefetcher =
                        Prefetcher::new(&soon, false, (width_in, 2), visits).into_second_level();
                    self.contiguous_set(contiguous, lines, areas, mode, &mut prefetcher);
                }
            }
        }
        Some(prefetcher.finish(block))
    }

    /// Transforms a few contiguous lines from the first of four areas to the last one, by way of the others.
    ///
    /// # Safety
    /// As for [`contiguous`](Self::contiguous); the areas have that many lines.
    unsafe fn contiguous_set(
        &self,
        contiguous: &ContiguousFft<V::T>,
        lines: usize,
        [from, work, other, to]: [LineArray<V::T>; 4],
        mode: StoreMode<V::T>,
        prefetcher: &mut Prefetcher<'_, V::T>,
    ) {
        let (fft, plain, long) = (&self.fft, StoreMode::plain(), contiguous.is_long());
        // SAFETY: this function's contract.
        unsafe {
            match (&self.contiguous_real, self.spec.kind) {
                (Some(real), LineKind::RealForward) => {
                    contiguous.run::<V>(fft, lines, [from, work, other], plain, prefetcher);
                    V::enter(UnfoldContiguous::<V> { real, lines, from: other, to, mode, long });
                }
                (Some(real), LineKind::RealBackward) => {
                    V::enter(FoldContiguous::<V> { real, lines, from, to: other });
                    contiguous.run::<V>(fft, lines, [other, work, to], mode, prefetcher);
                }
                _ => contiguous.run::<V>(fft, lines, [from, work, to], mode, prefetcher),
            }
        }
    }
}
