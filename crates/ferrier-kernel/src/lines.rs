//! The interface of a kernel: blocks of lines, described by strips.

use std::cell::Cell;

use crate::stream_copy::StreamCopy;

/// Consecutive elements of every line of a block.
///
/// Element `k` (with `at <= k < at + len`) of line `j` is at
/// `ptr + (k - at) * step + (j / run) * skip + (j % run) * lane`, counted in
/// scalars (`T`), so contiguous complex elements have a step of 2. By default
/// all lines of a block are one run.
#[derive(Clone, Copy, Debug)]
pub struct Strip<T> {
    /// Element `at` of line 0.
    pub ptr: *mut T,
    /// Index in the line of the first element of the strip.
    pub at: usize,
    /// Number of elements of the strip.
    pub len: usize,
    /// Scalars from one element of a line to the next.
    pub step: isize,
    /// Scalars from one line of a run to the next.
    pub lane: isize,
    /// Lines of a run.
    pub run: usize,
    /// Scalars from the first line of a run to the first of the next.
    pub skip: isize,
}

impl<T> Default for Strip<T> {
    /// No elements; all lines in one run.
    fn default() -> Self {
        Strip { ptr: std::ptr::null_mut(), at: 0, len: 0, step: 0, lane: 0, run: usize::MAX, skip: 0 }
    }
}

impl<T> Strip<T> {
    /// The address of the first element of a line.
    #[inline(always)]
    pub fn line(&self, line: usize) -> *mut T {
        let mut offset = line as isize * self.lane;
        if line >= self.run {
            offset = (line / self.run) as isize * self.skip + (line % self.run) as isize * self.lane;
        }
        self.ptr.wrapping_offset(offset)
    }

    /// The number of lines from `line` on that are in its run.
    #[inline(always)]
    pub fn left_in_run(&self, line: usize) -> usize {
        self.run - if line < self.run { line } else { line % self.run }
    }
}

/// Transforms of many lines of one length and kind. Created once, shared by
/// threads; each thread brings its own scratch.
pub trait Lines<T>: Send + Sync {
    /// The preferred number of lines of a block: where the elements of a line
    /// are far apart (`strided == true`), or the lines are (`strided == false`).
    fn block(&self, strided: bool) -> usize;

    /// Scalars of scratch that [`run`](Lines::run) needs for blocks of at
    /// most `lines` lines.
    fn scratch(&self, lines: usize) -> usize;

    /// Loads `lines` lines from `from`, transforms them, stores them to `to`.
    ///
    /// The strips of `from` are parts of the line before the transform, in
    /// ascending order; those of `to` are parts of the line after it. Elements
    /// that no strip of `from` has are zero; results that no strip of `to` has
    /// are dropped. All loads happen before the first store, so `from` and
    /// `to` may be the same memory. Every result is multiplied by the scale of
    /// the specification and by [`factor`](LineBlock::factor).
    ///
    /// `ahead` describes the next block of this thread (`ahead_lines` lines;
    /// none at the end). The kernel may prefetch it or, where there is a
    /// [`staging`](LineBlock::staging) buffer, copy it there. Returns whether
    /// it was copied: then the caller loads the next block from
    /// [`staged`](Lines::staged).
    ///
    /// The bits of a transformed line depend on that line alone. After
    /// [`StoreHint::Stream`] the thread calls [`fence`] before other threads
    /// read the results.
    ///
    /// # Safety
    /// Every element that `from` describes is valid for reads and every one
    /// that `to` describes for writes; no other thread writes to the former or
    /// accesses the latter during the call. `scratch` has at least
    /// `self.scratch(lines)` scalars, 64-byte aligned, with any contents.
    /// Where `staging` is not null, `ahead` is readable like `from`, `staging`
    /// has [`staging_len`](Lines::staging_len) scalars, 64-byte aligned, and does not overlap
    /// the memory of this block.
    unsafe fn run(&self, block: &LineBlock<'_, T>, scratch: &mut [T]) -> bool;

    /// Transforms a block again and again, each time with source and target moved. Source and target have one strip
    /// each. `ahead` is none, or one line of any length with a `lane` of 0: memory that is accessed soon after.
    ///
    /// # Safety
    /// As [`run`](Lines::run), for every repetition; what one stores no other loads or stores.
    unsafe fn run_repeated(&self, block: &LineBlock<'_, T>, repeat: Repeat, scratch: &mut [T]) {
        // SAFETY: this function's contract.
        unsafe { run_each(self, block, repeat, scratch) };
    }

    /// Whether contiguous lines that are whole cache lines are stored past the caches where a block says so.
    fn streams_lines(&self) -> bool {
        true
    }

    /// Whether rows of neighbouring lines are stored past the caches several cache lines at a time. One at a time, each store
    /// opens another page of the memory.
    fn streams_rows(&self) -> bool {
        true
    }

    /// Scalars of a [`LineBlock::staging`] buffer for blocks of at most
    /// `lines` lines; 0 if this kernel never copies the next block.
    fn staging_len(&self, lines: usize) -> usize {
        let _ = lines;
        0
    }

    /// The strip of `lines` lines that were copied to a staging buffer.
    fn staged(&self, staging: *mut T, lines: usize) -> Strip<T> {
        let _ = lines;
        Strip { ptr: staging, ..Strip::default() }
    }
}

/// [`Lines::run_repeated`], one repetition after the other.
///
/// # Safety
/// As [`Lines::run_repeated`].
pub(crate) unsafe fn run_each<T, L: Lines<T> + ?Sized>(
    lines: &L,
    block: &LineBlock<'_, T>,
    repeat: Repeat,
    scratch: &mut [T],
) {
    let ([from], [to]) = (block.from, block.to) else {
        unreachable!("repeated blocks have one strip at each end")
    };
    let (mut from, mut to) = ([Strip { ..*from }], [Strip { ..*to }]);
    // Each repetition prefetches a part.
    let part = |number: usize, strip: &Strip<T>| {
        let [start, end] = [number, number + 1].map(|number| strip.len * number / repeat.count);
        [Strip { ptr: strip.ptr.wrapping_offset(start as isize * strip.step), len: end - start, ..*strip }]
    };
    for number in 0..repeat.count {
        let ahead = block.ahead.first().map(|strip| part(number, strip));
        let ahead = ahead.as_ref().map_or(&[][..], |strips| strips);
        // SAFETY: this function's contract.
        unsafe { lines.run(&LineBlock { from: &from, to: &to, ahead, ..*block }, scratch) };
        from[0].ptr = from[0].ptr.wrapping_offset(repeat.from);
        to[0].ptr = to[0].ptr.wrapping_offset(repeat.to);
    }
}

/// Repetitions of a block, see [`Lines::run_repeated`].
#[derive(Clone, Copy, Debug)]
pub struct Repeat {
    /// How often.
    pub count: usize,
    /// Scalars from one source to the next.
    pub from: isize,
    /// Scalars from one target to the next.
    pub to: isize,
}

/// A block of lines: source, target, and the next block.
#[derive(Clone, Copy, Debug)]
pub struct LineBlock<'a, T> {
    /// Number of lines.
    pub lines: usize,
    /// Source of the lines.
    pub from: &'a [Strip<T>],
    /// Target of the lines.
    pub to: &'a [Strip<T>],
    /// Source of the lines of this thread's next block; may be empty.
    pub ahead: &'a [Strip<T>],
    /// Number of lines of the next block.
    pub ahead_lines: usize,
    /// A buffer to copy the next block's rows to, or null. Rows a multiple of
    /// a page apart compete for a few sets of each cache, so prefetching them
    /// early is useless; copies do not conflict.
    pub staging: *mut T,
    /// Whether `from` is in cache, such as a staging buffer, and `to` is not: rows are then prefetched shortly before
    /// they are stored to.
    pub from_staging: bool,
    /// How to store the lines. A hint.
    pub store: StoreHint,
    /// A copy that the kernel may advance while it transforms; the cell keeps what is left.
    pub stream_copy: Option<&'a Cell<StreamCopy<T>>>,
    /// A factor of this call: results are multiplied by it and by the scale of the specification.
    pub factor: f64,
}

impl<'a, T> LineBlock<'a, T> {
    /// A block without a next block, with a factor of 1.
    pub fn new(lines: usize, from: &'a [Strip<T>], to: &'a [Strip<T>]) -> Self {
        LineBlock {
            lines,
            from,
            to,
            ahead: &[],
            ahead_lines: 0,
            staging: std::ptr::null_mut(),
            from_staging: false,
            store: StoreHint::Plain,
            stream_copy: None,
            factor: 1.0,
        }
    }
}

/// How lines are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreHint {
    /// Ordinary stores: the target is in cache, or is the source.
    #[default]
    Plain,
    /// The target is not in cache: prefetch it for writing.
    Prefetch,
    /// The target is not in cache and will not be read soon: use
    /// non-temporal stores where whole cache lines are written.
    Stream,
}

/// Makes this thread's stores by [`StoreHint::Stream`] visible to other
/// threads, before it signals completion to them.
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is part of SSE, which every x86-64 processor has.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
