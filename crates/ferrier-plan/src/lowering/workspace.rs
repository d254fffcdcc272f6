//! The layout of a workspace: work arrays, local data, message buffers, unencoded data.

use super::context::{RankContext, ReshapeTile};
use crate::geometry::{Geometry, width};
use crate::messages::{EncodedSegment, ExchangeBuffers};
use crate::recipe::Distribution;
use crate::schedule::{ArraySlot, End, Reshape, Schedule};

/// The areas of a workspace: their offsets on every rank, in scalars. Offsets on other ranks are valid only if a
/// pass accesses them.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkspaceLayout {
    /// Work arrays, by slot and rank.
    pub slots: Vec<Vec<usize>>,
    /// Data of a reshape that stays on its rank or node, by index in the cycle and rank. Reshapes cycle through
    /// these areas, because one is stored while earlier ones are loaded.
    pub local: Vec<Vec<usize>>,
    /// Send (0) and receive (1) buffers, by index in the cycle and rank.
    pub buffers: [Vec<Vec<usize>>; 2],
    /// This rank's data before encoding (0) and after decoding (1), by index in the cycle of the buffers.
    pub unencoded: [Vec<usize>; 2],
    /// Scalars of the work arrays on this rank.
    pub arrays: usize,
    /// Scalars of all areas on this rank.
    pub total: usize,
}

impl RankContext<'_> {
    /// Lays out the workspace of a schedule.
    pub fn workspace(&self, schedule: &Schedule) -> WorkspaceLayout {
        let mut lens: Vec<Vec<usize>> = Vec::new();
        for end in schedule.passes.iter().flat_map(|pass| [&pass.from, &pass.to]) {
            if let End::Own(ArraySlot::Work(slot), array) | End::Peers(ArraySlot::Work(slot), array) = end {
                while lens.len() <= *slot {
                    lens.push(vec![0; self.ranks]);
                }
                for (rank, len) in lens[*slot].iter_mut().enumerate() {
                    *len = (*len).max(self.work_len(array, rank));
                }
            }
        }
        let mut offsets = vec![0; self.ranks];
        let mut next = |lens: Vec<usize>| {
            let here = offsets.clone();
            offsets.iter_mut().zip(&lens).for_each(|(offset, len)| *offset += len);
            here
        };
        let ranks = || 0..self.ranks;
        let slots = lens.into_iter().map(&mut next).collect();
        let cycle = self.cycle;
        let local_lens = |at: usize| ranks().map(|rank| self.local_len(schedule, at, rank)).collect();
        let local: Vec<_> = (0..cycle.local).map(|at| next(local_lens(at))).collect();
        let arrays = local[0][self.rank];
        let mut buffers = |end: usize| -> Vec<Vec<usize>> {
            let lens = |at: usize| ranks().map(|rank| self.buffer_len(rank, end, at)).collect();
            (0..cycle.buffers[end]).map(|at| next(lens(at))).collect()
        };
        let buffers = [buffers(0), buffers(1)];
        let mut unencoded = |end: usize| -> Vec<usize> {
            let lens = |at: usize| vec![self.unencoded_len(schedule, end, at); self.ranks];
            (0..cycle.buffers[end]).map(|at| next(lens(at))[self.rank]).collect()
        };
        let unencoded = [unencoded(0), unencoded(1)];
        WorkspaceLayout { slots, local, buffers, unencoded, arrays, total: offsets[self.rank] }
    }

    /// Scalars of a work array on a rank, for the whole batch.
    fn work_len(&self, array: &Distribution, rank: usize) -> usize {
        let geometry = Geometry::work(array, rank, self.scalar_bytes, self.memory, self.packed_rows);
        self.cache_lines(geometry.volume * self.batch)
    }

    /// The encoded segments of a tile before encoding (`end` 0) or after decoding (1): the peer of each and its
    /// offset in the unencoded area of the tile; and the length of that area. In scalars.
    fn unencoded_tile(&self, tile: ReshapeTile<'_>, end: usize) -> (Vec<(usize, usize)>, usize) {
        let mut len = 0;
        let mut segments = Vec::new();
        for peer in tile.reshape.peers(self.rank, end == 0) {
            let (from, to) = if end == 0 { (self.rank, peer) } else { (peer, self.rank) };
            if self.is_encoded(from, to) {
                segments.push((peer, len));
                len += self.cache_lines(self.segment_scalars(tile, from, to));
            }
        }
        (segments, len)
    }

    /// Whether the tiles of a reshape share one unencoded area: the pass goes tile by tile, and each tile is encoded
    /// before the next one is stored, or decoded after the last one was loaded.
    fn tiles_share_unencoded(&self, reshape: usize, end: usize) -> bool {
        let cut = &self.cuts[reshape];
        (if end == 0 { cut.before } else { cut.after }) && !self.exchanges[self.exchange(reshape, 0)].encodes
    }

    /// Scalars of the unencoded area at an index of the cycle.
    fn unencoded_len(&self, schedule: &Schedule, end: usize, at: usize) -> usize {
        let of = |index: usize| -> usize {
            let reshape = &schedule.reshapes[index];
            let tiles = (0..self.cuts[index].count())
                .map(|tile| self.unencoded_tile(ReshapeTile { reshape, index, tile }, end).1);
            if self.tiles_share_unencoded(index, end) { tiles.max().unwrap_or(0) } else { tiles.sum() }
        };
        match self.encoding {
            Some(_) => (at..self.cuts.len()).step_by(self.cycle.buffers[end]).map(of).max().unwrap_or(0),
            None => 0,
        }
    }

    /// The encoded segments of a tile: the peer of each and the offset of its unencoded data, in scalars.
    pub(super) fn unencoded_segments(
        &self,
        workspace: &WorkspaceLayout,
        of: ReshapeTile<'_>,
        end: usize,
    ) -> Vec<(usize, usize)> {
        let earlier = |tile: usize| self.unencoded_tile(ReshapeTile { tile, ..of }, end).1;
        let before: usize = match self.tiles_share_unencoded(of.index, end) {
            true => 0,
            false => (0..of.tile).map(earlier).sum(),
        };
        let areas = &workspace.unencoded[end];
        let start = areas[of.index % areas.len()] + before;
        self.unencoded_tile(of, end).0.into_iter().map(|(peer, at)| (peer, start + at)).collect()
    }

    /// The segments of a tile that are encoded (`end` 0) or decoded (1).
    pub fn encoded_segments(
        &self,
        workspace: &WorkspaceLayout,
        of: ReshapeTile<'_>,
        end: usize,
    ) -> Vec<EncodedSegment> {
        let ReshapeTile { index, tile, .. } = of;
        let exchange = &self.exchanges[self.exchange(index, tile)];
        let buffer = if end == 0 { &exchange.send } else { &exchange.recv };
        let segment = |(peer, scalar_offset): (usize, usize)| {
            let (from, to) = if end == 0 { (self.rank, peer) } else { (peer, self.rank) };
            let scalars = self.segment_scalars(of, from, to);
            let holder = self.holder(exchange, end, peer);
            let tile_bytes = self.tile_at(workspace, index, tile, holder, end) * self.scalar_bytes;
            let byte_offset = tile_bytes + buffer.offsets[peer];
            let segment = EncodedSegment { peer, scalar_offset, scalars, holder, byte_offset };
            (scalars > 0).then_some(segment)
        };
        self.unencoded_segments(workspace, of, end).into_iter().filter_map(segment).collect()
    }

    /// Scalars of a rank's send (`end` 0) or receive (1) buffer for a tile.
    fn tile_len(&self, reshape: usize, tile: usize, rank: usize, end: usize) -> usize {
        let exchange = &self.exchanges[self.exchange(reshape, tile)];
        let bytes = match (&exchange.sharing, &exchange.remote) {
            (Some(sharing), _) => sharing.lens[rank][end],
            (_, Some(remote)) if end == 0 => remote.lens[rank],
            // Only the buffers of this rank are known, and needed.
            _ => [exchange.send.len, exchange.recv.len][end],
        };
        self.cache_lines(bytes.div_ceil(self.scalar_bytes))
    }

    /// Scalars of a rank's send (`end` 0) or receive (1) buffers at an index of the cycle.
    fn buffer_len(&self, rank: usize, end: usize, at: usize) -> usize {
        let of = |reshape: usize| -> usize {
            (0..self.cuts[reshape].count()).map(|tile| self.tile_len(reshape, tile, rank, end)).sum()
        };
        (at..self.cuts.len()).step_by(self.cycle.buffers[end]).map(of).max().unwrap_or(0)
    }

    /// Offset of a rank's send (`end` 0) or receive (1) buffer for a tile, in scalars.
    pub fn tile_at(
        &self,
        workspace: &WorkspaceLayout,
        reshape: usize,
        tile: usize,
        rank: usize,
        end: usize,
    ) -> usize {
        let before: usize = (0..tile).map(|tile| self.tile_len(reshape, tile, rank, end)).sum();
        let areas = &workspace.buffers[end];
        areas[reshape % areas.len()][rank] + before
    }

    /// The data of a reshape that stays on a rank or goes to another rank of its node, by receiver: scalars.
    fn local_segments(
        &self,
        reshape: &Reshape,
        index: usize,
        from: usize,
    ) -> impl Iterator<Item = (usize, usize)> {
        let sent = reshape.to.intersections(&reshape.from.boxes()[from]).into_iter();
        let local = sent.filter(move |(to, _)| self.is_local(index, from, *to));
        let width = width(reshape.real) * self.batch;
        local.map(move |(to, part)| (to, self.cache_lines(part.volume() * width)))
    }

    /// Scalars of the area of a rank's local data at an index of the cycle; 0 for ranks whose memory this rank does not
    /// access, so that their layout does not matter.
    fn local_len(&self, schedule: &Schedule, at: usize, rank: usize) -> usize {
        if !self.accesses(rank) {
            return 0;
        }
        let of = |(index, reshape): (usize, &Reshape)| -> usize {
            self.local_segments(reshape, index, rank).map(|(_, scalars)| scalars).sum()
        };
        schedule.reshapes.iter().enumerate().skip(at).step_by(self.cycle.local).map(of).max().unwrap_or(0)
    }

    /// Whether this rank loads from the workspace of `rank`: its own, those of its node if an exchange uses the memory
    /// of the node, and all if segments are loaded from the send buffers of other ranks.
    fn accesses(&self, rank: usize) -> bool {
        let shares = |exchange: &&ExchangeBuffers| {
            exchange.remote.is_some()
                || exchange
                    .sharing
                    .as_ref()
                    .is_some_and(|sharing| sharing.nodes[self.rank] == sharing.nodes[rank])
        };
        rank == self.rank || self.exchanges.iter().any(shares)
    }

    /// Offset in the workspace of `from` of its data for `to`, which is on its node, in scalars.
    pub(super) fn local_offset(
        &self,
        workspace: &WorkspaceLayout,
        reshape: &Reshape,
        index: usize,
        from: usize,
        to: usize,
    ) -> usize {
        let before = self.local_segments(reshape, index, from).take_while(|(peer, _)| *peer < to);
        workspace.local[index % workspace.local.len()][from]
            + before.map(|(_, scalars)| scalars).sum::<usize>()
    }
}
