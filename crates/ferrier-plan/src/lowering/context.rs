//! The inputs of lowering on one rank, besides the schedule.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::ends::EndStrides;
use crate::choice::MemoryUse;
use crate::geometry::{Geometry, PackedRows, width};
use crate::layout::Box3;
use crate::messages::{Encoding, ExchangeBuffers};
use crate::order::{BufferCycle, PassPart};
use crate::recipe::Distribution;
use crate::schedule::{ArraySlot, Direction, End, Pass, Reshape, Schedule};
use crate::tiles::Tiles;

/// How passes access memory. Affects speed only.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct MemoryPolicy {
    /// Whether stores bypass the caches, for arrays that exceed them.
    pub stream: bool,
    /// Whether the lines of the next block, and targets, are prefetched by software: not where caches hold the arrays, because
    /// the instructions take longer than they save.
    #[serde(default)]
    pub prefetch: bool,
    /// Whether strided rows of the next block are copied to a staging buffer while the current block is
    /// transformed.
    pub staging: bool,
    /// Number of strided lines in a block; `None`: what suits the kernel.
    pub block: Option<usize>,
    /// Bytes of planes that are side by side in memory and go through cache together.
    pub bundle_bytes: usize,
    /// Threads of a rank, which share out blocks of lines.
    pub threads: usize,
}

impl MemoryPolicy {
    /// Which rows of work arrays are packed. Planes that are stored past the caches are one run then, and no row shares a cache
    /// line with padding. Passes of `backward` store adjacent lines, whose blocks then continue from row to row; where caches
    /// hold the arrays, that pays only if planes are whole cache lines.
    pub fn packed_rows(&self, direction: Direction) -> PackedRows {
        match direction {
            _ if self.stream => PackedRows::All,
            Direction::Backward => PackedRows::InWholePlanes,
            Direction::Forward | Direction::RoundTrip => PackedRows::None,
        }
    }
}

/// The inputs of lowering on one rank, besides the schedule.
#[derive(Debug)]
pub struct RankContext<'a> {
    /// This rank.
    pub rank: usize,
    /// Number of ranks.
    pub ranks: usize,
    /// Number of arrays of the batch.
    pub batch: usize,
    /// Bytes of a scalar.
    pub scalar_bytes: usize,
    /// Trade-off between memory and speed.
    pub memory: MemoryUse,
    /// Whether input and output are one array.
    pub in_place: bool,
    /// Where the elements of input and output lie, on every rank.
    pub strides: &'a EndStrides,
    /// How passes access memory.
    pub memory_policy: MemoryPolicy,
    /// The axis whose real rows are padded to the size of their spectra; see
    /// [`Recipe::padded_axis`](crate::Recipe::padded_axis).
    pub halved: Option<usize>,
    /// Which rows of work arrays are packed, see [`MemoryPolicy::packed_rows`].
    pub packed_rows: PackedRows,
    /// The tiles of each reshape.
    pub cuts: &'a [Tiles],
    /// The number of consecutive reshapes with buffers of their own.
    pub cycle: BufferCycle,
    /// The buffers of the exchange of every tile, see [`exchange`](Self::exchange).
    pub exchanges: &'a [&'a ExchangeBuffers],
    /// How messages are encoded, if they are.
    pub encoding: Option<&'a Encoding>,
}

/// A tile of a reshape.
#[derive(Clone, Copy, Debug)]
pub struct ReshapeTile<'a> {
    /// The reshape.
    pub reshape: &'a Reshape,
    /// Its index in the schedule.
    pub index: usize,
    /// The tile, counted over all batch chunks.
    pub tile: usize,
}

impl RankContext<'_> {
    /// Scalars rounded up to whole cache lines.
    pub(super) fn cache_lines(&self, scalars: usize) -> usize {
        scalars.next_multiple_of(64 / self.scalar_bytes)
    }

    /// Whether segments from one rank to another are encoded.
    pub(super) fn is_encoded(&self, from: usize, to: usize) -> bool {
        self.encoding.is_some_and(|encoding| encoding.is_encoded(from, to))
    }

    /// Index in `exchanges` of the exchange of a tile.
    pub fn exchange(&self, reshape: usize, tile: usize) -> usize {
        self.cuts[..reshape].iter().map(Tiles::count).sum::<usize>() + tile
    }

    /// The rank whose buffer holds the segment for (`end` 0) or from (1) a peer.
    pub(super) fn holder(&self, exchange: &ExchangeBuffers, end: usize, peer: usize) -> usize {
        exchange
            .sharing
            .as_ref()
            .map_or(self.rank, |sharing| if end == 0 { sharing.outbox[peer] } else { sharing.inbox[peer] })
    }

    /// Whether data of a reshape between these ranks is not sent: they are the same rank, or share a node and the
    /// exchange uses its memory.
    pub(super) fn is_local(&self, reshape: usize, one: usize, other: usize) -> bool {
        let sharing = || self.exchanges[self.exchange(reshape, 0)].sharing.as_ref();
        one == other || sharing().is_some_and(|sharing| sharing.nodes[one] == sharing.nodes[other])
    }

    /// Scalars of a segment, from one rank to another in a tile.
    pub(super) fn segment_scalars(&self, tile: ReshapeTile<'_>, from: usize, to: usize) -> usize {
        let ReshapeTile { reshape, index, tile } = tile;
        let (source, target) = (&reshape.from.boxes()[from], &reshape.to.boxes()[to]);
        self.cuts[index].between(source, target, tile).volume()
            * width(reshape.real)
            * self.cuts[index].arrays(tile).len()
    }

    /// The memory of `rank`'s box of an array.
    pub fn geometry(&self, slot: ArraySlot, array: &Distribution, rank: usize) -> Geometry {
        let end = match slot {
            ArraySlot::Work(_) => {
                return Geometry::work(array, rank, self.scalar_bytes, self.memory, self.packed_rows);
            }
            ArraySlot::In => 0,
            ArraySlot::Out => 1,
        };
        self.strides.geometry(end, array, rank, (self.in_place, self.halved))
    }

    /// The part of a box of a pass that a [`PassPart`] covers.
    pub fn part_of(&self, schedule: &Schedule, pass: &Pass, part: PassPart, whole: &Box3) -> Box3 {
        let mut left = *whole;
        let mut narrow = |axis: usize, tile: Box3| {
            left.lo[axis] = left.lo[axis].max(tile.lo[axis]);
            left.hi[axis] = left.hi[axis].min(tile.hi[axis]);
        };
        if let (End::Message(reshape), Some(tile)) = (&pass.from, part.from) {
            let cut = &self.cuts[*reshape];
            narrow(cut.axis, cut.received(&schedule.reshapes[*reshape], self.rank, tile));
        }
        if let (End::Message(reshape), Some(tile)) = (&pass.to, part.to) {
            let cut = &self.cuts[*reshape];
            narrow(cut.axis, cut.sent(&schedule.reshapes[*reshape], self.rank, tile));
        }
        left
    }

    /// The arrays of a batch chunk.
    pub fn arrays(&self, batch_chunk: usize) -> Range<usize> {
        self.cuts.first().map_or(0..self.batch, |cut| cut.arrays_of(batch_chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Padding ends rows with parts of cache lines, which cost real transforms of 4 ranks up to 0.4 of their time.
    #[test]
    fn rows_are_packed_where_stores_bypass_the_caches() {
        let all = [Direction::Forward, Direction::Backward, Direction::RoundTrip];
        let packed = |stream| {
            let policy = MemoryPolicy { stream, ..MemoryPolicy::default() };
            all.map(|direction| policy.packed_rows(direction))
        };
        assert_eq!(packed(true), [PackedRows::All; 3]);
        // Measured: packing others costs `backward` a third there.
        assert_eq!(packed(false), [PackedRows::None, PackedRows::InWholePlanes, PackedRows::None]);
    }
}
