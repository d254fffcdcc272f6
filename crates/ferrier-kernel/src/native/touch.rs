//! Prefetching, spread over the passes of a block: first the places where it
//! will be stored, then the lines of the next block. What leaves a cache does so along the way.
//!
//! Memory and arithmetic only overlap where the processor is told early what
//! will be needed: it does not see strided rows coming, contiguous lines only
//! up to the next page, and stores not at all.

use std::cell::Cell;

use super::pocket::Taking;
use crate::lines::{LineBlock, Strip};
use crate::stream_copy::StreamCopy;

const LINE: usize = 64;

/// What is to be fetched of a list of strips.
struct List<'a, T> {
    strips: &'a [Strip<T>],
    lines: usize,
    width: usize,
    write: bool,
}

impl<T> List<'_, T> {
    const NONE: Self = List { strips: &[], lines: 0, width: 0, write: false };

    fn cache_lines(&self) -> usize {
        let elements: usize = self.strips.iter().map(|strip| strip.len * self.lines).sum();
        elements * self.width * size_of::<T>() / LINE
    }
}

/// A walk over the cache lines of a block of lines.
pub(super) struct Touch<'a, T> {
    now: List<'a, T>,
    next: List<'a, T>,
    /// The run of bytes being walked, and how many more like it there are.
    at: *const u8,
    end: *const u8,
    start: *const u8,
    bytes: usize,
    pitch: isize,
    runs: usize,
    /// Cache lines, or vectors of what is taken along, per 1024 elements that the passes visit.
    rate: usize,
    /// What is taken along, instead of all this.
    taking: Option<Taking<T>>,
    /// What leaves meanwhile, and how many cache lines of it per 1024 elements.
    leaving: StreamCopy<T>,
    leaving_rate: usize,
    /// Whether anything leaves or is taken along.
    moves: bool,
}

/// What to do at a visit.
#[derive(Clone, Copy)]
pub(super) struct Share {
    fetch: usize,
    leave: usize,
}

impl<'a, T> Touch<'a, T> {
    /// A walk over what `block` will store (to `reserve` it) and what comes after it, done after
    /// `visits` visits of an element. Widths are numbers per element, before and after.
    pub fn new(block: &LineBlock<'a, T>, reserve: bool, widths: (usize, usize), visits: usize) -> Self {
        let (width_in, width_out) = widths;
        let target = List { strips: block.to, lines: block.lines, width: width_out, write: true };
        let source = List { strips: block.ahead, lines: block.ahead_lines, width: width_in, write: false };
        let mut touch = Touch::nothing();
        (touch.now, touch.next) = (if reserve { target } else { List::NONE }, source);
        let cache_lines = touch.now.cache_lines() + touch.next.cache_lines();
        touch.rate = (cache_lines * 1024).div_ceil(visits.max(1));
        touch.next_strip();
        touch
    }

    /// A walk over nothing.
    pub fn nothing() -> Self {
        let null = std::ptr::null();
        let (now, next) = (List::NONE, List::NONE);
        let (taking, leaving) = (None, StreamCopy::default());
        let (at, end, start) = (null, null, null);
        let (bytes, pitch, runs, rate, leaving_rate) = (0, 0, 0, 0, 0);
        let moves = false;
        Touch { now, next, at, end, start, bytes, pitch, runs, rate, taking, leaving, leaving_rate, moves }
    }

    /// A walk that takes rows along, `vectors` in all.
    pub fn taking(taking: Taking<T>, vectors: usize, visits: usize) -> Self {
        let rate = (vectors * 1024).div_ceil(visits.max(1));
        Touch { rate, taking: Some(taking), moves: true, ..Touch::nothing() }
    }

    /// Lets what leaves with the block leave, within `visits` visits of an element.
    pub fn leave(mut self, block: &LineBlock<'_, T>, visits: usize) -> Self {
        self.leaving = block.stream_copy.map(Cell::take).unwrap_or_default();
        self.leaving_rate = (self.leaving.cache_lines() * 1024).div_ceil(visits.max(1));
        self.moves |= !self.leaving.is_empty();
        self
    }

    /// Takes along what is left, if anything is; whether it was to. What has not left goes back to the block.
    pub fn finish(&mut self, block: &LineBlock<'_, T>) -> bool {
        match block.stream_copy {
            Some(cell) if !self.leaving.is_empty() => cell.set(self.leaving),
            _ => {}
        }
        let Some(taking) = &mut self.taking else { return false };
        taking.more(usize::MAX);
        true
    }

    /// What to do with every visit of `elements` elements.
    #[inline(always)]
    pub fn share(&self, elements: usize) -> Share {
        let part = |rate: usize| (rate * elements).div_ceil(1024);
        Share { fetch: part(self.rate), leave: part(self.leaving_rate) }
    }

    /// Fetches a few more, or takes them along.
    #[inline(always)]
    pub fn fetch(&mut self, share: Share) {
        if self.moves {
            return self.carry(share);
        }
        if self.runs > 0 {
            self.prefetch(share);
        }
    }

    /// Lets some more leave, takes some more along; else fetches.
    #[inline(never)]
    fn carry(&mut self, share: Share) {
        self.leaving.advance(share.leave);
        match &mut self.taking {
            Some(taking) => taking.more(share.fetch),
            None if self.runs > 0 => self.prefetch(share),
            None => {}
        }
    }

    #[inline(always)]
    fn prefetch(&mut self, share: Share) {
        for _ in 0..share.fetch {
            if self.now.write {
                prefetch_to_write(self.at)
            } else {
                prefetch(self.at)
            };
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
            self.next_strip();
        }
    }

    #[cold]
    fn next_strip(&mut self) {
        let size = size_of::<T>();
        loop {
            let Some((strip, rest)) = self.now.strips.split_first() else {
                if self.next.strips.is_empty() {
                    return;
                }
                self.now = std::mem::replace(&mut self.next, List::NONE);
                continue;
            };
            self.now.strips = rest;
            let width = self.now.width as isize;
            let (runs, numbers, pitch) = match () {
                () if strip.lane == width => (strip.len, self.now.lines * self.now.width, strip.step),
                () if strip.step == width => (self.now.lines, strip.len * self.now.width, strip.lane),
                () => continue,
            };
            if runs == 0 || numbers == 0 {
                continue;
            }
            self.runs = runs;
            self.bytes = numbers * size;
            self.pitch = pitch * size as isize;
            self.start = strip.ptr.cast_const().cast();
            self.at = self.start;
            self.end = self.start.wrapping_add(self.bytes);
            return;
        }
    }
}

#[inline(always)]
pub(super) fn prefetch(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address is harmless, and SSE is always there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Fetches a cache line as its owner, so that the store does not have to wait.
#[inline(always)]
pub(super) fn prefetch_to_write(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless; processors without the instruction do nothing.
    unsafe {
        std::arch::asm!("prefetchw [{0}]", in(reg) p, options(nostack, preserves_flags, readonly))
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Fetches a cache line into the second-level cache: the first has fewer places.
#[inline(always)]
pub(super) fn prefetch_far(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch of any address is harmless, and SSE is always there.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(p.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}
