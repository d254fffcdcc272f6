//! From the ends of a pass to pieces of memory.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::choice::MemoryUse;
use crate::geometry::{Base, Geometry, Piece, width};
use crate::layout::Box3;
use crate::messages::{EncodedSegment, Encoding, ExchangeBuffers, Volumes};
use crate::order::{BufferCycle, PassPart};
use crate::recipe::Distribution;
use crate::schedule::{ArraySlot, End, Pass, Reshape, Schedule};
use crate::tiles::Tiles;

/// How passes handle memory: what changes their speed and nothing else.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct MemoryPolicy {
    /// Are the arrays so large that what is stored is better written past the caches?
    pub stream: bool,
    /// Are lines that come from afar taken along while others are transformed?
    pub staging: bool,
    /// Lines in a block, where somebody wants to say.
    pub block: Option<usize>,
}

/// What lowering needs to know besides the schedule.
pub struct RankContext<'a> {
    pub rank: usize,
    pub ranks: usize,
    pub batch: usize,
    /// Bytes of a number.
    pub scalar_bytes: usize,
    pub memory: MemoryUse,
    pub in_place: bool,
    pub memory_policy: MemoryPolicy,
    pub halved: Option<usize>,
    /// Do rows of work arrays follow each other? Backward they are stored to by passes of lines side by side,
    /// whose blocks then go on from row to row.
    pub packed_rows: bool,
    /// How the reshapes are cut, how they take turns, and a mover for every tile.
    pub cuts: &'a [Tiles],
    pub cycle: BufferCycle,
    pub exchanges: &'a [&'a ExchangeBuffers],
    /// How parts are encoded, if they are.
    pub encoding: Option<&'a Encoding>,
}

/// The workspace of the workspaces, in numbers: where they begin on every rank.
/// Those of other ranks count only where a schedule reaches them.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkspaceLayout {
    /// Work arrays.
    pub slots: Vec<Vec<usize>>,
    /// What stays on a rank, or on its node: reshapes take turns, because one
    /// is stored while the last is loaded, and in tiles also those before it.
    pub local: Vec<Vec<usize>>,
    /// Send and receive buffers, in turns as well.
    pub buffers: [Vec<Vec<usize>>; 2],
    /// Where this rank's values lie before they are encoded and after they were
    /// decoded, in the same turns.
    pub unencoded: [Vec<usize>; 2],
    /// Numbers of work arrays on this rank, and of all workspace.
    pub arrays: usize,
    pub total: usize,
}

impl RankContext<'_> {
    /// Numbers rounded up to whole cache lines.
    fn lines(&self, numbers: usize) -> usize {
        numbers.next_multiple_of(64 / self.scalar_bytes)
    }

    /// Numbers of a work array on a rank, all arrays of the batch together.
    fn work_len(&self, state: &Distribution, rank: usize) -> usize {
        self.lines(
            Geometry::work(state, rank, self.scalar_bytes, self.memory, self.packed_rows).volume * self.batch,
        )
    }

    /// Lays out the workspace of a schedule.
    pub fn workspace(&self, schedule: &Schedule) -> WorkspaceLayout {
        let mut lens: Vec<Vec<usize>> = Vec::new();
        for end in schedule.passes.iter().flat_map(|pass| [&pass.from, &pass.to]) {
            if let End::Own(ArraySlot::Work(slot), state) | End::Peers(ArraySlot::Work(slot), state) = end {
                while lens.len() <= *slot {
                    lens.push(vec![0; self.ranks]);
                }
                for (rank, len) in lens[*slot].iter_mut().enumerate() {
                    *len = (*len).max(self.work_len(state, rank));
                }
            }
        }
        let mut at = vec![0; self.ranks];
        let mut next = |lens: Vec<usize>| {
            let here = at.clone();
            at.iter_mut().zip(&lens).for_each(|(at, len)| *at += len);
            here
        };
        let ranks = || 0..self.ranks;
        let slots = lens.into_iter().map(&mut next).collect();
        let turns = self.cycle;
        let kept = |turn: usize| ranks().map(|rank| self.kept(schedule, (turn, turns.local), rank)).collect();
        let keep: Vec<_> = (0..turns.local).map(|turn| next(kept(turn))).collect();
        let arrays = keep[0][self.rank];
        let mut side = |side: usize| -> Vec<Vec<usize>> {
            let of = |turn, rank| self.buffer(rank, side, turn);
            (0..turns.buffers[side]).map(|turn| next(ranks().map(|rank| of(turn, rank)).collect())).collect()
        };
        let buffers = [side(0), side(1)];
        let mut stage = |side: usize| -> Vec<usize> {
            let of = |turn: usize| vec![self.stage(schedule, side, turn); self.ranks];
            (0..turns.buffers[side]).map(|turn| next(of(turn))[self.rank]).collect()
        };
        let stages = [stage(0), stage(1)];
        WorkspaceLayout { slots, local: keep, buffers, unencoded: stages, arrays, total: at[self.rank] }
    }

    /// Is what goes from a rank to another encoded?
    fn is_encoded(&self, from: usize, to: usize) -> bool {
        self.encoding.is_some_and(|encoding| encoding.is_encoded(from, to))
    }

    /// Numbers that a tile carries from a rank to another.
    fn numbers(&self, reshape: &Reshape, number: usize, tile: usize, from: usize, to: usize) -> usize {
        let (source, target) = (&reshape.from.boxes()[from], &reshape.to.boxes()[to]);
        self.cuts[number].between(source, target, tile).volume()
            * width(reshape.real)
            * self.cuts[number].arrays(tile).len()
    }

    /// Numbers of the stage of a tile before (0) or after (1) the messages, up to a rank's part.
    fn stage_len(&self, reshape: &Reshape, number: usize, tile: usize, side: usize, peers: usize) -> usize {
        let part = |peer: usize| {
            let (from, to) = if side == 0 { (self.rank, peer) } else { (peer, self.rank) };
            match self.is_encoded(from, to) {
                true => self.lines(self.numbers(reshape, number, tile, from, to)),
                false => 0,
            }
        };
        (0..peers).map(part).sum()
    }

    /// Do the tiles of a reshape take turns in one stage? Where the pass goes tile by tile, and what
    /// it stores is encoded before the next one, what it loads decoded after the last one.
    fn stage_turns(&self, number: usize, side: usize) -> bool {
        let cut = &self.cuts[number];
        (if side == 0 { cut.before } else { cut.after }) && !self.exchanges[self.exchange(number, 0)].encodes
    }

    /// Numbers of the stages for the reshapes of one turn.
    fn stage(&self, schedule: &Schedule, side: usize, turn: usize) -> usize {
        let of = |number: usize| -> usize {
            let reshape = &schedule.reshapes[number];
            let tiles = (0..self.cuts[number].count())
                .map(|tile| self.stage_len(reshape, number, tile, side, self.ranks));
            if self.stage_turns(number, side) { tiles.max().unwrap_or(0) } else { tiles.sum() }
        };
        match self.encoding {
            Some(_) => (turn..self.cuts.len()).step_by(self.cycle.buffers[side]).map(of).max().unwrap_or(0),
            None => 0,
        }
    }

    /// Where the stage of a part begins.
    fn stage_at(
        &self,
        workspace: &WorkspaceLayout,
        reshape: &Reshape,
        number: usize,
        tile: usize,
        side: usize,
        peer: usize,
    ) -> usize {
        let before: usize = match self.stage_turns(number, side) {
            true => 0,
            false => (0..tile).map(|tile| self.stage_len(reshape, number, tile, side, self.ranks)).sum(),
        };
        workspace.unencoded[side][number % workspace.unencoded[side].len()]
            + before
            + self.stage_len(reshape, number, tile, side, peer)
    }

    /// The parts of a tile that are encoded (side 0) or decoded (1).
    pub fn encoded_segments(
        &self,
        workspace: &WorkspaceLayout,
        reshape: &Reshape,
        number: usize,
        tile: usize,
        side: usize,
    ) -> Vec<EncodedSegment> {
        let exchange = &self.exchanges[self.exchange(number, tile)];
        let places = if side == 0 { &exchange.send } else { &exchange.recv };
        let part = |peer: usize| {
            let (from, to) = if side == 0 { (self.rank, peer) } else { (peer, self.rank) };
            let numbers = self.numbers(reshape, number, tile, from, to);
            let holder = self.holder(exchange, side, peer);
            let bytes = self.tile_at(workspace, number, tile, holder, side) * self.scalar_bytes
                + places.offsets[peer];
            let stage = self.stage_at(workspace, reshape, number, tile, side, peer);
            (self.is_encoded(from, to) && numbers > 0).then_some(EncodedSegment {
                peer,
                scalar_offset: stage,
                scalars: numbers,
                holder,
                byte_offset: bytes,
            })
        };
        (0..self.ranks).filter_map(part).collect()
    }

    /// In whose buffer the part for (side 0) or from (1) a rank lies.
    fn holder(&self, exchange: &ExchangeBuffers, side: usize, peer: usize) -> usize {
        exchange
            .sharing
            .as_ref()
            .map_or(self.rank, |sharing| if side == 0 { sharing.outbox[peer] } else { sharing.inbox[peer] })
    }

    /// The mover of a tile.
    pub fn exchange(&self, reshape: usize, tile: usize) -> usize {
        self.cuts[..reshape].iter().map(Tiles::count).sum::<usize>() + tile
    }

    /// Numbers of a rank's send (0) or receive (1) buffer for a tile.
    fn tile_len(&self, reshape: usize, tile: usize, rank: usize, side: usize) -> usize {
        let exchange = &self.exchanges[self.exchange(reshape, tile)];
        let bytes = match (&exchange.sharing, &exchange.remote) {
            (Some(sharing), _) => sharing.lens[rank][side],
            (_, Some(remote)) if side == 0 => remote.lens[rank],
            // Only this rank's are known, and needed.
            _ => [exchange.send.len, exchange.recv.len][side],
        };
        self.lines(bytes.div_ceil(self.scalar_bytes))
    }

    /// Numbers of a rank's send (0) or receive (1) buffers for the reshapes of one turn.
    fn buffer(&self, rank: usize, side: usize, turn: usize) -> usize {
        let of = |reshape: usize| -> usize {
            (0..self.cuts[reshape].count()).map(|tile| self.tile_len(reshape, tile, rank, side)).sum()
        };
        (turn..self.cuts.len()).step_by(self.cycle.buffers[side]).map(of).max().unwrap_or(0)
    }

    /// Where the send (0) or receive (1) buffer of a tile begins.
    pub fn tile_at(
        &self,
        workspace: &WorkspaceLayout,
        reshape: usize,
        tile: usize,
        rank: usize,
        side: usize,
    ) -> usize {
        let before: usize = (0..tile).map(|tile| self.tile_len(reshape, tile, rank, side)).sum();
        let turns = &workspace.buffers[side];
        turns[reshape % turns.len()][rank] + before
    }

    /// Are these ranks on one node, as far as the mover of a reshape goes?
    fn near(&self, reshape: usize, one: usize, other: usize) -> bool {
        let sharing = || self.exchanges[self.exchange(reshape, 0)].sharing.as_ref();
        one == other || sharing().is_some_and(|sharing| sharing.nodes[one] == sharing.nodes[other])
    }

    /// Numbers that go from one rank to another of its node.
    fn kept_part(&self, reshape: &Reshape, from: usize, to: usize) -> usize {
        let part = reshape.from.boxes()[from].intersect(&reshape.to.boxes()[to]);
        self.lines(part.volume() * width(reshape.real) * self.batch)
    }

    /// Numbers that a rank keeps for itself and its node in the reshapes of one turn.
    fn kept(&self, schedule: &Schedule, (turn, turns): (usize, usize), rank: usize) -> usize {
        let of = |(number, reshape): (usize, &Reshape)| -> usize {
            let near = (0..self.ranks).filter(|&peer| self.near(number, rank, peer));
            near.map(|peer| self.kept_part(reshape, rank, peer)).sum()
        };
        schedule.reshapes.iter().enumerate().skip(turn).step_by(turns).map(of).max().unwrap_or(0)
    }

    /// Where in `from`'s workspace the part for `to` lies, which is on its node.
    fn kept_at(
        &self,
        workspace: &WorkspaceLayout,
        reshape: &Reshape,
        number: usize,
        from: usize,
        to: usize,
    ) -> usize {
        let before = (0..to).filter(|&peer| self.near(number, from, peer));
        workspace.local[number % workspace.local.len()][from]
            + before.map(|peer| self.kept_part(reshape, from, peer)).sum::<usize>()
    }

    /// The memory of `rank`'s part of an array.
    pub fn geometry(&self, home: ArraySlot, state: &Distribution, rank: usize) -> Geometry {
        let (part, order) = (state.layout.boxes()[rank], state.layout.order());
        match home {
            ArraySlot::Work(_) => {
                Geometry::work(state, rank, self.scalar_bytes, self.memory, self.packed_rows)
            }
            _ if self.in_place && state.real && padded_rows(state, self.halved) => {
                Geometry::padded_real(part, order)
            }
            _ => Geometry::dense(part, order, state.real),
        }
    }

    fn array_piece(
        &self,
        workspace: &WorkspaceLayout,
        home: ArraySlot,
        state: &Distribution,
        rank: usize,
        (domain, arrays): (&Box3, &Range<usize>),
    ) -> Option<Piece> {
        let geometry = self.geometry(home, state, rank);
        let region = geometry.part.intersect(domain);
        let (base, start) = match home {
            ArraySlot::In => (Base::In, 0),
            ArraySlot::Out => (Base::Out, 0),
            ArraySlot::Work(slot) => (Base::Work, workspace.slots[slot][rank]),
        };
        (!region.is_empty()).then(|| Piece {
            region,
            rank,
            base,
            offset: start + geometry.offset(region.lo) + arrays.start * geometry.volume,
            strides: geometry.strides,
            batch: geometry.volume,
        })
    }

    /// Where the elements of `domain` (this rank's box there, or a tile of it)
    /// lie, of some arrays.
    pub fn pieces(
        &self,
        schedule: &Schedule,
        workspace: &WorkspaceLayout,
        end: &End,
        domain: (&Box3, &Range<usize>),
        side: MessageEnd,
    ) -> Vec<Piece> {
        match end {
            End::Own(home, state) => {
                self.array_piece(workspace, *home, state, self.rank, domain).into_iter().collect()
            }
            End::Peers(home, state) => (0..self.ranks)
                .filter_map(|rank| self.array_piece(workspace, *home, state, rank, domain))
                .collect(),
            End::Message(number) => {
                self.message_pieces(&schedule.reshapes[*number], workspace, *number, side)
            }
        }
    }

    /// What is left of a box of a pass in a part of it.
    pub fn part_of(&self, schedule: &Schedule, pass: &Pass, part: PassPart, whole: &Box3) -> Box3 {
        let mut left = *whole;
        let mut narrow = |axis: usize, tile: Box3| {
            left.lo[axis] = left.lo[axis].max(tile.lo[axis]);
            left.hi[axis] = left.hi[axis].min(tile.hi[axis]);
        };
        if let (End::Message(number), Some(tile)) = (&pass.from, part.from) {
            let cut = &self.cuts[*number];
            narrow(cut.axis, cut.taken(&schedule.reshapes[*number], self.rank, tile));
        }
        if let (End::Message(number), Some(tile)) = (&pass.to, part.to) {
            let cut = &self.cuts[*number];
            narrow(cut.axis, cut.sent(&schedule.reshapes[*number], self.rank, tile));
        }
        left
    }

    /// The arrays of a batch_chunk.
    pub fn arrays(&self, batch_chunk: usize) -> Range<usize> {
        self.cuts.first().map_or(0..self.batch, |cut| cut.arrays_of(batch_chunk))
    }

    fn message_pieces(
        &self,
        reshape: &Reshape,
        workspace: &WorkspaceLayout,
        number: usize,
        side: MessageEnd,
    ) -> Vec<Piece> {
        let (from, to) = (reshape.from.boxes(), reshape.to.boxes());
        let mut pieces = Vec::new();
        for peer in 0..self.ranks {
            let (source, target) = if side.sending { (self.rank, peer) } else { (peer, self.rank) };
            // Parts lie in the order of the receiving side, which loads them as lines.
            let mut push = |region: Box3, rank: usize, offset: usize| {
                let Geometry { strides, volume, .. } =
                    Geometry::dense(region, reshape.to.order(), reshape.real);
                if !region.is_empty() {
                    pieces.push(Piece { region, rank, base: Base::Work, offset, strides, batch: volume });
                }
            };
            if self.near(number, self.rank, peer) {
                let part = from[source].intersect(&to[target]);
                let first =
                    self.cuts[number].arrays_of(side.batch_chunk).start * part.volume() * width(reshape.real);
                push(part, source, self.kept_at(workspace, reshape, number, source, target) + first);
                continue;
            }
            let along = self.cuts[number].along;
            let tiles = side
                .tile
                .map_or(side.batch_chunk * along..(side.batch_chunk + 1) * along, |tile| tile..tile + 1);
            for tile in tiles {
                let which = usize::from(!side.sending);
                let region = self.cuts[number].between(&from[source], &to[target], tile);
                if self.is_encoded(source, target) {
                    let at = self.stage_at(workspace, reshape, number, tile, which, peer);
                    push(region, self.rank, at);
                    continue;
                }
                let exchange = &self.exchanges[self.exchange(number, tile)];
                let places = if side.sending { &exchange.send } else { &exchange.recv };
                let holder = self.holder(exchange, which, peer);
                let at = self.tile_at(workspace, number, tile, holder, which);
                match &exchange.remote {
                    // It is loaded where its sender stored it.
                    Some(remote) if !side.sending => {
                        let at = self.tile_at(workspace, number, tile, peer, 0);
                        push(region, peer, at + remote.offsets[peer] / self.scalar_bytes);
                    }
                    _ => push(region, holder, at + places.offsets[peer] / self.scalar_bytes),
                }
            }
        }
        pieces
    }
}

/// Which end of a reshape, which batch_chunk of arrays, and which tile of it (`None`: all).
#[derive(Clone, Copy, Debug)]
pub struct MessageEnd {
    pub sending: bool,
    pub batch_chunk: usize,
    pub tile: Option<usize>,
}

/// Do real rows lie along the halved axis, whole, so that they can be padded?
pub fn padded_rows(state: &Distribution, halved: Option<usize>) -> bool {
    halved.is_some_and(|axis| state.layout.order().fastest() == axis && state.layout.is_whole(axis))
}

/// What a tile of a reshape carries between this rank and the others, in bytes
/// (at most, where parts are encoded).
pub fn volumes(
    reshape: &Reshape,
    (cut, tile): (&Tiles, usize),
    rank: usize,
    number: usize,
    encoding: Option<&Encoding>,
) -> Volumes {
    let element = width(reshape.real) * cut.arrays(tile).len();
    let (from, to) = (reshape.from.boxes(), reshape.to.boxes());
    let ranks = from.len();
    let table = |entry: &dyn Fn(usize, usize) -> usize| -> Vec<Vec<usize>> {
        (0..ranks).map(|source| (0..ranks).map(|target| entry(source, target)).collect()).collect()
    };
    let numbers = table(&|source, target| match source == target {
        true => 0,
        false => cut.between(&from[source], &to[target], tile).volume() * element,
    });
    let pairs = table(&|source, target| match encoding {
        Some(encoding) if encoding.is_encoded(source, target) => {
            encoding.segment_bytes(numbers[source][target])
        }
        _ => numbers[source][target] * number,
    });
    Volumes {
        to: pairs[rank].clone(),
        from: pairs.iter().map(|row| row[rank]).collect(),
        largest: pairs.iter().flatten().copied().max().unwrap_or(0),
        pairs,
        reshape: 0,
        encoded: encoding.map(|encoding| encoding.chunks(&numbers)),
        via_host: false,
    }
}
