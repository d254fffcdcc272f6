//! Prefetching, spread over the passes of a block: first the target of the
//! block, then the lines of the next block. Copies (to staging, past the
//! caches) are advanced at the same visits.
//!
//! Memory and arithmetic overlap only where software prefetches early: the
//! hardware does not predict strided rows, predicts contiguous lines only up to
//! the next page, and does not predict stores.

use std::cell::Cell;

use super::cache_hint::{prefetch, prefetch_for_write, prefetch_second_level};
use super::line_io::is_in_place;
use super::staging::StagingCopy;
use crate::lines::{LineBlock, Strip};
use crate::stream_copy::StreamCopy;

const LINE: usize = 64;

/// Strips to be prefetched.
struct StripQueue<'a, T> {
    strips: &'a [Strip<T>],
    lines: usize,
    width: usize,
    write: bool,
}

impl<T> StripQueue<'_, T> {
    const NONE: Self = StripQueue { strips: &[], lines: 0, width: 0, write: false };

    fn cache_lines(&self) -> usize {
        let of = |strip: &Strip<T>| match () {
            () if strip.run < self.lines => self.spans(strip).map_or(0, |spans| spans.cache_lines()),
            () => strip.len * self.lines * self.width * size_of::<T>() / LINE,
        };
        self.strips.iter().map(of).sum()
    }

    /// The bytes of a strip; `None` where its elements are apart from each other.
    fn spans(&self, strip: &Strip<T>) -> Option<Spans> {
        let (run, size) = (strip.run.min(self.lines).max(1), size_of::<T>() as isize);
        let mut levels = [(strip.len, strip.step), (run, strip.lane), (self.lines.div_ceil(run), strip.skip)];
        levels.sort_unstable_by_key(|level| level.1);
        let mut bytes = self.width as isize * size;
        let mut apart = [(1, 0); 2];
        let mut count = 0;
        for (len, stride) in levels {
            let stride = stride * size;
            match len {
                0 => return None,
                1 => {}
                // What is between two spans is less than a span, or the rest of a cache line.
                _ if count == 0 && stride > 0 && stride < (2 * bytes).max(LINE as isize + 1) => {
                    bytes += (len as isize - 1) * stride;
                }
                _ if count == 2 => return None,
                _ => {
                    apart[count] = (len, stride);
                    count += 1;
                }
            }
        }
        (count < 2 || bytes > self.width as isize * size).then_some(Spans { bytes: bytes as usize, apart })
    }
}

/// Contiguous bytes: the length of a span, and number and distance of spans on two levels.
struct Spans {
    bytes: usize,
    apart: [(usize, isize); 2],
}

impl Spans {
    fn cache_lines(&self) -> usize {
        self.apart[0].0 * self.apart[1].0 * self.bytes.div_ceil(LINE)
    }
}

/// Prefetches the cache lines of strips, a few at every visit of the passes.
pub(super) struct Prefetcher<'a, T> {
    current: StripQueue<'a, T>,
    next: StripQueue<'a, T>,
    /// The contiguous run of bytes being prefetched, how many such runs remain, and how often they come again.
    at: *const u8,
    end: *const u8,
    start: *const u8,
    bytes: usize,
    pitch: isize,
    runs: usize,
    again: Option<(Spans, *const u8)>,
    /// Cache lines (or vectors of the staging copy) per 1024 elements that the passes visit.
    rate: usize,
    /// The copy of the next block to staging, which replaces prefetching.
    staging: Option<StagingCopy<T>>,
    /// The copy past the caches, and its cache lines per 1024 elements.
    stream_copy: StreamCopy<T>,
    stream_rate: usize,
    /// Whether there is a copy to advance.
    copies: bool,
    /// Whether lines go to the second-level cache only.
    second_level: bool,
}

/// The work of one visit.
#[derive(Clone, Copy)]
pub(super) struct VisitBudget {
    /// Cache lines to prefetch, or vectors to copy to staging.
    fetch: usize,
    /// Cache lines to copy past the caches.
    stream: usize,
}

impl<'a, T> Prefetcher<'a, T> {
    /// Prefetches the target of `block` for writing (if `for_write`) and the next block, within
    /// `visits` visits of an element. Widths are scalars per element, before and after.
    pub fn new(block: &LineBlock<'a, T>, for_write: bool, widths: (usize, usize), visits: usize) -> Self {
        let (width_in, width_out) = widths;
        let target = StripQueue { strips: block.to, lines: block.lines, width: width_out, write: true };
        // In place, other cores give up their copies of the lines at once, not when they are stored to.
        let write = is_in_place(block);
        let source = StripQueue { strips: block.ahead, lines: block.ahead_lines, width: width_in, write };
        let mut prefetcher = Prefetcher::idle();
        (prefetcher.current, prefetcher.next) = (if for_write { target } else { StripQueue::NONE }, source);
        let cache_lines = prefetcher.current.cache_lines() + prefetcher.next.cache_lines();
        prefetcher.rate = (cache_lines * 1024).div_ceil(visits.max(1));
        prefetcher.next_strip();
        prefetcher
    }

    /// Prefetches nothing.
    pub fn idle() -> Self {
        let null = std::ptr::null();
        let (current, next) = (StripQueue::NONE, StripQueue::NONE);
        let (staging, stream_copy) = (None, StreamCopy::default());
        let (at, end, start) = (null, null, null);
        let (bytes, pitch, runs, rate, stream_rate) = (0, 0, 0, 0, 0);
        let copies = false;
        Prefetcher {
            current,
            next,
            at,
            end,
            start,
            bytes,
            pitch,
            runs,
            again: None,
            rate,
            staging,
            stream_copy,
            stream_rate,
            copies,
            second_level: false,
        }
    }

    /// Prefetches to the second-level cache: more than the first level holds. Prefetches for writing go to the first level.
    pub fn into_second_level(mut self) -> Self {
        (self.current.write, self.next.write) = (false, false);
        Prefetcher { second_level: true, ..self }
    }

    /// Advances a copy to staging, `vectors` in all.
    pub fn with_staging(staging: StagingCopy<T>, vectors: usize, visits: usize) -> Self {
        let rate = (vectors * 1024).div_ceil(visits.max(1));
        Prefetcher { rate, staging: Some(staging), copies: true, ..Prefetcher::idle() }
    }

    /// Advances the block's copy past the caches too, within `visits` visits of an element.
    pub fn with_stream_copy(mut self, block: &LineBlock<'_, T>, visits: usize) -> Self {
        self.stream_copy = block.stream_copy.map(Cell::take).unwrap_or_default();
        self.stream_rate = (self.stream_copy.cache_lines() * 1024).div_ceil(visits.max(1));
        self.copies |= !self.stream_copy.is_empty();
        self
    }

    /// Completes the copy to staging; returns whether there was one. Hands the rest of the copy past the caches back to the block.
    pub fn finish(&mut self, block: &LineBlock<'_, T>) -> bool {
        match block.stream_copy {
            Some(cell) if !self.stream_copy.is_empty() => cell.set(self.stream_copy),
            _ => {}
        }
        let Some(staging) = &mut self.staging else { return false };
        staging.advance(usize::MAX);
        true
    }

    /// The work of a visit of `elements` elements.
    #[inline(always)]
    pub fn budget(&self, elements: usize) -> VisitBudget {
        let part = |rate: usize| (rate * elements).div_ceil(1024);
        VisitBudget { fetch: part(self.rate), stream: part(self.stream_rate) }
    }

    /// Does the work of one visit.
    #[inline(always)]
    pub fn visit(&mut self, budget: VisitBudget) {
        if self.copies {
            return self.advance_copies(budget);
        }
        if self.runs > 0 {
            self.prefetch_some(budget);
        }
    }

    /// Advances the copies; prefetches if there is no copy to staging.
    #[inline(never)]
    fn advance_copies(&mut self, budget: VisitBudget) {
        self.stream_copy.advance(budget.stream);
        match &mut self.staging {
            Some(staging) => staging.advance(budget.fetch),
            None if self.runs > 0 => self.prefetch_some(budget),
            None => {}
        }
    }

    #[inline(always)]
    fn prefetch_some(&mut self, budget: VisitBudget) {
        for _ in 0..budget.fetch {
            match () {
                () if self.current.write => prefetch_for_write(self.at),
                () if self.second_level => prefetch_second_level(self.at),
                () => prefetch(self.at),
            }
            self.at = self.at.wrapping_add(LINE);
            if self.at >= self.end {
                self.next_run();
            }
        }
    }

    #[inline(always)]
    fn next_run(&mut self) {
        if self.runs > 1 {
            self.runs -= 1;
            self.start = self.start.wrapping_offset(self.pitch);
            self.at = self.start;
            self.end = self.start.wrapping_add(self.bytes);
        } else {
            self.runs = 0;
            if self.again.is_some() {
                self.next_span();
            } else {
                self.next_strip();
            }
        }
    }

    /// The next of the spans that lie on two levels.
    #[cold]
    fn next_span(&mut self) {
        let Some((mut spans, start)) = self.again.take() else { return };
        ((self.runs, self.pitch), self.bytes) = (spans.apart[0], spans.bytes);
        (self.start, self.at) = (start, start);
        self.end = start.wrapping_add(self.bytes);
        spans.apart[1].0 -= 1;
        if spans.apart[1].0 > 0 {
            let next = start.wrapping_offset(spans.apart[1].1);
            self.again = Some((spans, next));
        }
    }

    #[cold]
    fn next_strip(&mut self) {
        let size = size_of::<T>();
        loop {
            let Some((strip, rest)) = self.current.strips.split_first() else {
                if self.next.strips.is_empty() {
                    return;
                }
                self.current = std::mem::replace(&mut self.next, StripQueue::NONE);
                continue;
            };
            if strip.run < self.current.lines {
                let spans = self.current.spans(strip);
                self.current.strips = rest;
                if let Some(spans) = spans {
                    self.again = Some((spans, strip.ptr.cast_const().cast()));
                    return self.next_span();
                }
                continue;
            }
            self.current.strips = rest;
            let width = self.current.width as isize;
            let (runs, scalars, pitch) = match () {
                () if strip.lane == width => (strip.len, self.current.lines * self.current.width, strip.step),
                () if strip.step == width => (self.current.lines, strip.len * self.current.width, strip.lane),
                () => continue,
            };
            if runs == 0 || scalars == 0 {
                continue;
            }
            self.runs = runs;
            self.bytes = scalars * size;
            self.pitch = pitch * size as isize;
            self.start = strip.ptr.cast_const().cast();
            self.at = self.start;
            self.end = self.start.wrapping_add(self.bytes);
            return;
        }
    }
}
