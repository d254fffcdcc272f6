//! Prefetching of the next block, spread over the passes of this one.

use super::super::Strip;

const LINE: usize = 64;

/// A walk over the cache lines of a block of lines.
pub(super) struct Touch<'a, T> {
    strips: std::slice::Iter<'a, Strip<T>>,
    lines: usize,
    width: usize,
    /// The run of bytes being walked, and how many more like it there are.
    at: *const u8,
    end: *const u8,
    start: *const u8,
    bytes: usize,
    pitch: isize,
    runs: usize,
    /// Cache lines per 1024 elements that the passes visit.
    rate: usize,
}

impl<'a, T> Touch<'a, T> {
    /// A walk over `strips` that should be done after `visits` visits of an element.
    pub fn new(strips: &'a [Strip<T>], lines: usize, width: usize, visits: usize) -> Self {
        let null = std::ptr::null();
        let mut touch = Touch {
            strips: strips.iter(),
            lines,
            width,
            at: null,
            end: null,
            start: null,
            bytes: 0,
            pitch: 0,
            runs: 0,
            rate: 0,
        };
        let elements: usize = strips.iter().map(|strip| strip.len * lines).sum();
        let cache_lines = elements * width * size_of::<T>() / LINE;
        touch.rate = (cache_lines * 1024).div_ceil(visits.max(1));
        touch.next_strip();
        touch
    }

    /// How many cache lines to [`fetch`](Touch::fetch) with a butterfly of `radix` elements.
    #[inline(always)]
    pub fn share(&self, radix: usize) -> usize {
        (self.rate * radix).div_ceil(1024)
    }

    #[inline(always)]
    pub fn fetch(&mut self, share: usize) {
        if self.runs == 0 {
            return;
        }
        for _ in 0..share {
            prefetch(self.at);
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
        for strip in self.strips.by_ref() {
            let (runs, numbers, pitch) = if strip.lane == self.width as isize {
                (strip.len, self.lines * self.width, strip.step)
            } else if strip.step == self.width as isize {
                (self.lines, strip.len * self.width, strip.lane)
            } else {
                continue;
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
fn prefetch(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address is harmless, and SSE is always there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}
