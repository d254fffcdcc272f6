//! The pieces of memory at the ends of a pass.

use std::ops::Range;

use super::context::{RankContext, ReshapeTile};
use super::workspace::WorkspaceLayout;
use crate::geometry::{Base, Geometry, Piece, width};
use crate::layout::Box3;
use crate::recipe::Distribution;
use crate::schedule::{ArraySlot, End, Reshape, Schedule};

/// The part of a reshape's messages that a pass stores or loads.
#[derive(Clone, Copy, Debug)]
pub struct MessageEnd {
    /// Whether the pass stores (sends) or loads (receives).
    pub sending: bool,
    /// The batch chunk.
    pub batch_chunk: usize,
    /// The tile, counted over all batch chunks; `None`: all tiles of the batch chunk.
    pub tile: Option<usize>,
}

impl RankContext<'_> {
    /// The pieces of memory of `domain` (this rank's box at an end of a pass, or a part of it) for some arrays of
    /// the batch.
    pub fn pieces(
        &self,
        schedule: &Schedule,
        workspace: &WorkspaceLayout,
        end: &End,
        domain: (&Box3, &Range<usize>),
        message: MessageEnd,
    ) -> Vec<Piece> {
        match end {
            End::Own(slot, array) => {
                self.array_piece(workspace, *slot, array, self.rank, domain).into_iter().collect()
            }
            End::Peers(slot, array) => {
                let met = array.layout.intersections(domain.0).into_iter();
                met.filter_map(|(rank, _)| self.array_piece(workspace, *slot, array, rank, domain)).collect()
            }
            End::Message(index) => {
                self.message_pieces(&schedule.reshapes[*index], workspace, *index, message)
            }
        }
    }

    fn array_piece(
        &self,
        workspace: &WorkspaceLayout,
        slot: ArraySlot,
        array: &Distribution,
        rank: usize,
        (domain, arrays): (&Box3, &Range<usize>),
    ) -> Option<Piece> {
        let geometry = self.geometry(slot, array, rank);
        let region = geometry.part.intersect(domain);
        let (base, start) = match slot {
            ArraySlot::In => (Base::In, 0),
            ArraySlot::Out => (Base::Out, 0),
            ArraySlot::Work(slot) => (Base::Work, workspace.slots[slot][rank]),
        };
        (!region.is_empty()).then(|| Piece {
            region,
            rank,
            base,
            offset: start + geometry.offset(region.lo) + arrays.start * geometry.batch,
            strides: geometry.strides,
            batch: geometry.batch,
        })
    }

    fn message_pieces(
        &self,
        reshape: &Reshape,
        workspace: &WorkspaceLayout,
        index: usize,
        message: MessageEnd,
    ) -> Vec<Piece> {
        let (from, to) = (reshape.from.boxes(), reshape.to.boxes());
        let along = self.cuts[index].along;
        let chunk = message.batch_chunk * along..(message.batch_chunk + 1) * along;
        let tiles = message.tile.map_or(chunk, |tile| tile..tile + 1);
        let end = usize::from(!message.sending);
        let unencoded = |tile| match self.encoding {
            Some(_) => self.unencoded_segments(workspace, ReshapeTile { reshape, index, tile }, end),
            None => Vec::new(),
        };
        let unencoded: Vec<Vec<(usize, usize)>> = tiles.clone().map(unencoded).collect();
        let mut pieces = Vec::new();
        for peer in reshape.peers(self.rank, message.sending) {
            let (source, target) = if message.sending { (self.rank, peer) } else { (peer, self.rank) };
            // Segments are in the memory order of the receiver, which loads them as lines.
            let mut push = |region: Box3, (rank, base): (usize, Base), offset: usize| {
                let Geometry { strides, volume, .. } =
                    Geometry::dense(region, reshape.to.order(), reshape.real);
                if !region.is_empty() {
                    pieces.push(Piece { region, rank, base, offset, strides, batch: volume });
                }
            };
            if self.is_local(index, self.rank, peer) {
                let part = from[source].intersect(&to[target]);
                let first_array = self.cuts[index].arrays_of(message.batch_chunk).start;
                let first = first_array * part.volume() * width(reshape.real);
                let offset = self.local_offset(workspace, reshape, index, source, target) + first;
                push(part, (source, Base::Work), offset);
                continue;
            }
            for (tile, unencoded) in tiles.clone().zip(&unencoded) {
                let region = self.cuts[index].between(&from[source], &to[target], tile);
                if let Ok(at) = unencoded.binary_search_by_key(&peer, |(peer, _)| *peer) {
                    push(region, (self.rank, Base::Work), unencoded[at].1);
                    continue;
                }
                let exchange = &self.exchanges[self.exchange(index, tile)];
                let buffer = if message.sending { &exchange.send } else { &exchange.recv };
                let holder = self.holder(exchange, end, peer);
                let offset = self.tile_at(workspace, index, tile, holder, end);
                match (&exchange.remote, &exchange.window) {
                    // It is loaded from the send buffer of its sender.
                    (Some(remote), _) if !message.sending => {
                        let offset = self.tile_at(workspace, index, tile, peer, 0);
                        let offset = offset + remote.offsets[peer] / self.scalar_bytes;
                        push(region, (peer, Base::Work), offset);
                    }
                    (_, Some(window)) if !message.sending => {
                        push(region, Base::window(self.ranks), window[peer] / self.scalar_bytes);
                    }
                    _ => {
                        let offset = offset + buffer.offsets[peer] / self.scalar_bytes;
                        push(region, (holder, Base::Work), offset);
                    }
                }
            }
        }
        pieces
    }
}
