//! From the ends of a pass to pieces of memory.

use super::geometry::{Geometry, width};
use super::schedule::{End, Home, Reshape, Schedule};
use crate::exchange::{Mover, Volumes};
use crate::recipe::State;
use crate::{Box3, MemoryUse};

/// Which of a rank's lent pointers a piece counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    In = 0,
    Out = 1,
    Work = 2,
}

/// A box of elements somewhere in memory; all distances in numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub region: Box3,
    pub rank: usize,
    pub base: Base,
    /// Of the first element of the region.
    pub offset: usize,
    pub strides: [usize; 3],
    /// From one array of a batch to the next.
    pub batch: usize,
}

/// What lowering needs to know besides the schedule.
pub(crate) struct Site<'a> {
    pub rank: usize,
    pub ranks: usize,
    pub batch: usize,
    /// Bytes of a number.
    pub number: usize,
    pub memory: MemoryUse,
    pub in_place: bool,
    /// Is the array so large that what is stored is better written past the caches?
    pub stream: bool,
    pub halved: Option<usize>,
    pub movers: &'a [Box<dyn Mover>],
}

/// The areas of a rank's workspace, in numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Areas {
    /// Where each work array begins, for every rank.
    pub slots: Vec<Vec<usize>>,
    pub send: usize,
    pub send_len: usize,
    pub recv: usize,
    pub recv_len: usize,
    pub keep: [usize; 2],
    pub total: usize,
}

impl Site<'_> {
    /// Numbers rounded up to whole cache lines.
    fn lines(&self, numbers: usize) -> usize {
        numbers.next_multiple_of(64 / self.number)
    }

    /// Numbers of a work array on a rank, all arrays of the batch together.
    fn work_len(&self, state: &State, rank: usize) -> usize {
        self.lines(Geometry::work(state, rank, self.number, self.memory).volume * self.batch)
    }

    /// Lays out the workspace of a schedule.
    pub fn areas(&self, schedule: &Schedule) -> Areas {
        let mut lens: Vec<Vec<usize>> = Vec::new();
        for end in schedule.passes.iter().flat_map(|pass| [&pass.from, &pass.to]) {
            if let End::Own(Home::Work(slot), state) | End::Peers(Home::Work(slot), state) = end {
                while lens.len() <= *slot {
                    lens.push(vec![0; self.ranks]);
                }
                for (rank, len) in lens[*slot].iter_mut().enumerate() {
                    *len = (*len).max(self.work_len(state, rank));
                }
            }
        }
        let mut at = vec![0; self.ranks];
        let slots = lens
            .iter()
            .map(|lens| {
                let here = at.clone();
                at.iter_mut().zip(lens).for_each(|(at, len)| *at += len);
                here
            })
            .collect();
        let bytes = |len: usize| self.lines(len.div_ceil(self.number));
        let send_len = self.movers.iter().map(|mover| bytes(mover.send().len)).max().unwrap_or(0);
        let recv_len = self.movers.iter().map(|mover| bytes(mover.recv().len)).max().unwrap_or(0);
        let kept = |parity: usize| {
            let of = |reshape: &Reshape| {
                self.lines(self.kept(reshape).volume() * width(reshape.real) * self.batch)
            };
            schedule.reshapes.iter().skip(parity).step_by(2).map(of).max().unwrap_or(0)
        };
        let send = at[self.rank];
        let recv = send + send_len;
        let keep = [recv + recv_len, recv + recv_len + kept(0)];
        Areas { slots, send, send_len, recv, recv_len, keep, total: keep[1] + kept(1) }
    }

    /// What this rank keeps in a reshape.
    fn kept(&self, reshape: &Reshape) -> Box3 {
        reshape.from.boxes()[self.rank].intersect(&reshape.to.boxes()[self.rank])
    }

    /// The memory of `rank`'s part of an array.
    pub fn geometry(&self, home: Home, state: &State, rank: usize) -> Geometry {
        let (part, order) = (state.layout.boxes()[rank], state.layout.order());
        match home {
            Home::Work(_) => Geometry::work(state, rank, self.number, self.memory),
            _ if self.in_place && state.real && padded_rows(state, self.halved) => {
                Geometry::padded_real(part, order)
            }
            _ => Geometry::dense(part, order, state.real),
        }
    }

    fn array_piece(
        &self,
        areas: &Areas,
        home: Home,
        state: &State,
        rank: usize,
        domain: &Box3,
    ) -> Option<Piece> {
        let geometry = self.geometry(home, state, rank);
        let region = geometry.part.intersect(domain);
        let (base, start) = match home {
            Home::In => (Base::In, 0),
            Home::Out => (Base::Out, 0),
            Home::Work(slot) => (Base::Work, areas.slots[slot][rank]),
        };
        (!region.is_empty()).then(|| Piece {
            region,
            rank,
            base,
            offset: start + geometry.offset(region.lo),
            strides: geometry.strides,
            batch: geometry.volume,
        })
    }

    /// Where the elements of `domain` (this rank's box there) lie.
    pub fn pieces(
        &self,
        schedule: &Schedule,
        areas: &Areas,
        end: &End,
        domain: &Box3,
        sending: bool,
    ) -> Vec<Piece> {
        match end {
            End::Own(home, state) => {
                self.array_piece(areas, *home, state, self.rank, domain).into_iter().collect()
            }
            End::Peers(home, state) => (0..self.ranks)
                .filter_map(|rank| self.array_piece(areas, *home, state, rank, domain))
                .collect(),
            End::Wire(number) => self.wire_pieces(&schedule.reshapes[*number], areas, *number, sending),
        }
    }

    fn wire_pieces(&self, reshape: &Reshape, areas: &Areas, number: usize, sending: bool) -> Vec<Piece> {
        let mover = &self.movers[number];
        let (mine, theirs) = match sending {
            true => (reshape.from.boxes()[self.rank], reshape.to.boxes()),
            false => (reshape.to.boxes()[self.rank], reshape.from.boxes()),
        };
        let mut pieces = Vec::new();
        for (peer, other) in theirs.iter().enumerate() {
            let region = mine.intersect(other);
            if region.is_empty() {
                continue;
            }
            // Parts lie in the order of the receiving side, which loads them as lines.
            let geometry = Geometry::dense(region, reshape.to.order(), reshape.real);
            let offset = match () {
                () if peer == self.rank => areas.keep[number % 2],
                () if sending => areas.send + mover.send().at[peer] / self.number,
                () => areas.recv + mover.recv().at[peer] / self.number,
            };
            let (strides, batch) = (geometry.strides, geometry.volume);
            pieces.push(Piece { region, rank: self.rank, base: Base::Work, offset, strides, batch });
        }
        pieces
    }
}

/// Do real rows lie along the halved axis, whole, so that they can be padded?
pub(crate) fn padded_rows(state: &State, halved: Option<usize>) -> bool {
    halved.is_some_and(|axis| state.layout.order().fastest() == axis && state.layout.is_whole(axis))
}

/// What a reshape carries between this rank and the others, in bytes.
pub(crate) fn volumes(reshape: &Reshape, rank: usize, batch: usize, number: usize) -> Volumes {
    let element = width(reshape.real) * batch * number;
    let (from, to) = (reshape.from.boxes(), reshape.to.boxes());
    let between = |source: usize, target: usize| match source == target {
        true => 0,
        false => from[source].intersect(&to[target]).volume() * element,
    };
    let ranks = from.len();
    let largest = (0..ranks).flat_map(|a| (0..ranks).map(move |b| (a, b))).map(|(a, b)| between(a, b)).max();
    Volumes {
        to: (0..ranks).map(|peer| between(rank, peer)).collect(),
        from: (0..ranks).map(|peer| between(peer, rank)).collect(),
        largest: largest.unwrap_or(0),
    }
}
