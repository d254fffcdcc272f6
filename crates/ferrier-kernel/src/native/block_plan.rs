//! How a block is processed: the layout of scratch, and sets of groups of lines.

use super::fft::FftScratch;
use super::line_io::{StridedIo, TableIo};
use super::prefetch::Prefetcher;
use super::vector::Vector;
use crate::lines::LineBlock;

/// Rows that the passes load from or store to directly.
#[derive(Clone, Copy)]
pub(super) enum RowAccess<T> {
    /// One strip covers whole lines.
    Strided(StridedIo<T>),
    /// Rows in several strips, or conflicting in caches.
    Table(TableIo<T>),
}

/// The plan of a block: whether the passes load and store rows directly, how
/// many groups form a set, and the layout of scratch.
pub(super) struct BlockPlan<T> {
    pub rows_in: bool,
    pub rows_out: bool,
    /// Whether rows conflict in caches: then all groups form one set, so that each row is read once.
    pub uncached: bool,
    pub max_groups: usize,
    pub stream: bool,
    pub tables: [*const *mut T; 2],
    /// The table of the next block's rows, or null: to be prefetched, or copied to staging.
    pub ahead: *const *mut T,
    pub stage: bool,
    pub a: *mut T,
    pub b: *mut T,
    pub spare: *mut T,
}

/// Scalars of a row of `lines` complex elements, rounded up to cache lines.
pub(super) fn row_len(lines: usize) -> usize {
    (2 * lines).next_multiple_of(16)
}

/// Scalars of a table of `rows` addresses, rounded up to cache lines.
pub(super) fn table_len<T>(rows: usize) -> usize {
    (rows * size_of::<*mut T>()).next_multiple_of(64) / size_of::<T>()
}

/// Neighbouring groups of lines that are transformed together. Either all are full, or there is one.
pub(super) struct GroupSet<'a, 'b, V: Vector> {
    pub block: &'a LineBlock<'a, V::T>,
    pub first: usize,
    pub lines: usize,
    pub groups: usize,
    /// Direct access to rows, where lines are adjacent and fill the groups.
    pub rows_in: Option<RowAccess<V::T>>,
    pub rows_out: Option<RowAccess<V::T>>,
    /// Two areas of scratch per group, and spare scratch.
    pub a: StridedIo<V::T>,
    pub b: StridedIo<V::T>,
    pub spare: *mut V::T,
    /// Whether to use non-temporal stores.
    pub stream: bool,
    pub prefetcher: &'a mut Prefetcher<'b, V::T>,
}

impl<'b, V: Vector> GroupSet<'_, 'b, V> {
    pub fn fft_scratch(&mut self) -> FftScratch<'_, 'b, V::T> {
        let (work, groups, spare) = (self.a, self.groups, self.spare);
        FftScratch { work, groups, permuted: false, spare, prefetcher: self.prefetcher }
    }

    /// The first line of group `g`, and its number of lines.
    pub fn group(&self, g: usize) -> (usize, usize) {
        let before = g * V::LINES;
        (self.first + before, V::LINES.min(self.lines - before))
    }
}
