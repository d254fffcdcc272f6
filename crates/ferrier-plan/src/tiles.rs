//! Reshapes in tiles: while some tiles are in flight, others are transformed.
//!
//! A reshape is cut along one axis, and into batch chunks if several arrays are transformed together. The pass
//! before it runs tile by tile if it does not transform that axis, and so does the pass after it. Every pass can run
//! by batch chunks. A pass between two reshapes runs by the tiles of both if they are cut along the same axis, so
//! that the second starts while the first is in flight. A single tile is the blocking transform. Pure, and the same
//! on every rank.

use std::ops::Range;

use crate::choice::Tiling;
use crate::layout::{Box3, Layout};
use crate::schedule::{ArraySlot, End, Pass, Reshape, Schedule};

/// The box in which the tiles between two ranks are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TiledBox {
    /// The box of the sender.
    Source,
    /// The box of the receiver.
    Target,
}

/// How a reshape is cut. Tiles are numbered batch chunk by batch chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// The axis that is cut.
    pub axis: usize,
    tiled: TiledBox,
    /// Indices of the axis in a tile.
    pub size: usize,
    /// Number of tiles of a batch chunk; on some ranks the last ones may be empty.
    pub along: usize,
    /// Arrays of the batch.
    batch: usize,
    /// Arrays of a batch chunk; the last one may have fewer.
    arrays: usize,
    /// The largest number of tiles in flight; 0: each is waited for at once.
    pub window: usize,
    /// How many times the passes before and after the reshape poll the transfers in flight.
    pub polls: [usize; 2],
    /// Lines side by side, and planes, in a block of the passes before and after; `None`: what suits the kernel.
    pub sub_tiles: [Option<[usize; 2]>; 2],
    /// Whether the pass after the reshape must wait for all tiles.
    only_before: bool,
    /// Whether the pass before the reshape goes tile by tile.
    pub before: bool,
    /// Whether the pass after the reshape goes tile by tile.
    pub after: bool,
    /// Whether the pass after the reshape must wait for all batch chunks, because it stores where a pass before the
    /// reshape has yet to load.
    pub after_all: bool,
}

impl Tiles {
    /// One tile for each of `batch_chunks` batch chunks.
    fn whole(batch: usize, batch_chunks: usize) -> Tiles {
        Tiles {
            axis: 0,
            tiled: TiledBox::Source,
            size: usize::MAX,
            along: 1,
            batch,
            arrays: batch.div_ceil(batch_chunks.max(1)).max(1),
            window: 1,
            polls: [0; 2],
            sub_tiles: [None; 2],
            only_before: false,
            before: false,
            after: false,
            after_all: false,
        }
    }

    /// Number of batch chunks.
    pub fn batch_chunks(&self) -> usize {
        self.batch.div_ceil(self.arrays).max(1)
    }

    /// Number of tiles of all batch chunks.
    pub fn count(&self) -> usize {
        self.along * self.batch_chunks()
    }

    /// The arrays of a batch chunk.
    pub fn arrays_of(&self, batch_chunk: usize) -> Range<usize> {
        (batch_chunk * self.arrays).min(self.batch)..((batch_chunk + 1) * self.arrays).min(self.batch)
    }

    /// The arrays of a tile.
    pub fn arrays(&self, tile: usize) -> Range<usize> {
        self.arrays_of(tile / self.along)
    }

    /// Number of passes that overlap with the exchange.
    fn overlapping_passes(&self) -> usize {
        usize::from(self.before) + usize::from(self.after)
    }

    /// Whether every rank sends and receives in every tile. If the peers of a box have different ranges of the axis,
    /// a tile involves only some of them, and links are idle.
    pub fn is_even(&self, reshape: &Reshape) -> bool {
        match self.tiled {
            TiledBox::Source => shared_range(&reshape.from, &reshape.to, self.axis),
            TiledBox::Target => shared_range(&reshape.to, &reshape.from, self.axis),
        }
    }

    /// The range of the axis of a tile that is counted in `part`.
    fn range(&self, part: &Box3, tile: usize) -> (usize, usize) {
        let (lo, hi) = (part.lo[self.axis], part.hi[self.axis]);
        let at = |tile: usize| lo.saturating_add(tile.saturating_mul(self.size)).min(hi);
        (at(tile % self.along), at(tile % self.along + 1))
    }

    /// The part of a box in the range of a tile that is counted in `counted`.
    fn within(&self, part: &Box3, counted: &Box3, tile: usize) -> Box3 {
        let (lo, hi) = self.range(counted, tile);
        let mut part = *part;
        part.lo[self.axis] = part.lo[self.axis].max(lo);
        part.hi[self.axis] = part.hi[self.axis].min(hi).max(part.lo[self.axis]);
        part
    }

    /// The elements that go from one box to another in a tile.
    pub fn between(&self, from: &Box3, to: &Box3, tile: usize) -> Box3 {
        match self.tiled {
            TiledBox::Source => self.within(from, from, tile).intersect(to),
            TiledBox::Target => from.intersect(&self.within(to, to, tile)),
        }
    }

    /// The box that a rank sends in a tile, including what stays on it, if the pass before the reshape goes by
    /// tiles.
    pub fn sent(&self, reshape: &Reshape, rank: usize, tile: usize) -> Box3 {
        self.part(TiledBox::Source, &reshape.from.boxes()[rank], &reshape.to, tile)
    }

    /// The box that a rank receives in a tile, including what stays on it, if the pass after the reshape goes by
    /// tiles.
    pub fn received(&self, reshape: &Reshape, rank: usize, tile: usize) -> Box3 {
        self.part(TiledBox::Target, &reshape.to.boxes()[rank], &reshape.from, tile)
    }

    /// The part of a sender's or receiver's box in a tile; if tiles are counted in the other box, in that of the
    /// first peer.
    fn part(&self, side: TiledBox, own: &Box3, peers: &Layout, tile: usize) -> Box3 {
        let first = || peers.intersections(own).first().map_or(own, |(peer, _)| &peers.boxes()[*peer]);
        self.within(own, if self.tiled == side { own } else { first() }, tile)
    }
}

/// Cuts the reshapes of a schedule by the requested tilings, and a batch into batch chunks.
pub fn cut(schedule: &Schedule, tilings: &[Tiling], batch: usize, batch_chunks: usize) -> Vec<Tiles> {
    let mut pipeline = Pipeline::new(schedule, false);
    let mut all = Vec::with_capacity(schedule.reshapes.len());
    for index in 0..schedule.reshapes.len() {
        let tiling = tilings.get(index).or(tilings.last()).copied().unwrap_or_default();
        let mut whole = Tiles::whole(batch, batch_chunks);
        whole.window = tiling.window.min(whole.count());
        whole.polls = [tiling.polls, tiling.polls_after.unwrap_or(tiling.polls)];
        whole.sub_tiles = [tiling.sub_before, tiling.sub_after];
        let mut best = pipeline.flags(index, whole);
        let reshape = &schedule.reshapes[index];
        let quality = |tiles: &Tiles| {
            (tiles.overlapping_passes() > 0 && tiles.is_even(reshape), tiles.overlapping_passes())
        };
        for tiles in candidates(reshape, &tiling, &whole) {
            let tiles = pipeline.flags(index, tiles);
            if tiles.along > 1 && quality(&tiles) > quality(&best) {
                best = tiles;
            }
        }
        pipeline.add(index, best);
        all.push(best);
    }
    all
}

/// The same cuts for another schedule of the same reshapes, with the passes that can go by them.
pub fn fit(schedule: &Schedule, cuts: &[Tiles], in_place: bool) -> Vec<Tiles> {
    let mut pipeline = Pipeline::new(schedule, in_place);
    let fitted = cuts.iter().enumerate().take(schedule.reshapes.len()).map(|(index, cut)| {
        let tiles = pipeline.flags(index, *cut);
        pipeline.add(index, tiles);
        tiles
    });
    fitted.collect()
}

/// All cuts that a tiling allows.
fn candidates(reshape: &Reshape, tiling: &Tiling, whole: &Tiles) -> Vec<Tiles> {
    let axes = match (tiling.tile, tiling.cut) {
        (0, _) => 0..0,
        (_, Some(axis)) => axis..axis + 1,
        (_, None) => 0..3,
    };
    let cut = |axis: usize, tiled: TiledBox| {
        let boxes = if tiled == TiledBox::Source { reshape.from.boxes() } else { reshape.to.boxes() };
        let longest = boxes.iter().map(|part| part.shape()[axis]).max().unwrap_or(0);
        let along = longest.div_ceil(tiling.tile).max(1);
        let tiles = Tiles { axis, tiled, size: tiling.tile, along, only_before: !tiling.after, ..*whole };
        Tiles { window: tiling.window.min(tiles.count()), ..tiles }
    };
    axes.flat_map(|axis| [cut(axis, TiledBox::Source), cut(axis, TiledBox::Target)]).collect()
}

/// The pipeline of passes and reshapes, extended reshape by reshape.
struct Pipeline<'a> {
    schedule: &'a Schedule,
    in_place: bool,
    /// The tiles that each pass loads, if it goes by tiles.
    loaded: Vec<Option<Tiles>>,
    /// The first pass that may still run when each one starts.
    since: Vec<usize>,
}

impl<'a> Pipeline<'a> {
    fn new(schedule: &'a Schedule, in_place: bool) -> Self {
        let passes = schedule.passes.len();
        Pipeline { schedule, in_place, loaded: vec![None; passes], since: (0..passes).collect() }
    }

    /// The passes before and after a reshape.
    fn neighbours(&self, index: usize) -> Option<[usize; 2]> {
        let sender = self.schedule.passes.iter().position(|pass| pass.to == End::Message(index))?;
        let receiver = self.schedule.passes.iter().position(|pass| pass.from == End::Message(index))?;
        Some([sender, receiver])
    }

    /// Which of the two neighbouring passes can go tile by tile, and whether batch chunks must wait.
    fn flags(&self, index: usize, tiles: Tiles) -> Tiles {
        let idle = Tiles { before: false, after: false, after_all: false, ..tiles };
        let Some([sender, receiver]) = self.neighbours(index) else { return idle };
        let reshape = &self.schedule.reshapes[index];
        let cut = tiles.along > 1;
        let before = cut && self.may_send(reshape, &tiles, sender);
        let after =
            cut && !tiles.only_before && may_receive(reshape, &tiles, &self.schedule.passes[receiver]);
        let pipelined = before && after;
        let since = self.since([index, sender], &tiles, pipelined || tiles.batch_chunks() > 1);
        // Passes after the reshape may store where passes before it have yet to load.
        let clash = |tiled: bool| {
            let later = &self.schedule.passes[receiver..];
            let last = later.iter().position(|pass| matches!(pass.to, End::Message(_)));
            let later = &later[..last.map_or(later.len(), |last| last + 1)];
            let earlier = &self.schedule.passes[since.unwrap_or(receiver)..receiver];
            earlier.iter().any(|one| later.iter().any(|other| self.clash(one, other, tiled)))
        };
        let after = after && !(pipelined && clash(true));
        let after_all = tiles.batch_chunks() > 1 && clash(before && after);
        Tiles { before, after: after && !after_all, after_all, ..idle }
    }

    /// The first pass that may still run when a tile of a reshape arrives, if any may. Batch chunks go one by one
    /// through all passes before the first reshape.
    fn since(&self, [index, sender]: [usize; 2], tiles: &Tiles, open: bool) -> Option<usize> {
        let first = index == 0 && tiles.batch_chunks() > 1;
        open.then(|| if first { 0 } else { self.since[sender] })
    }

    /// Whether the pass before a reshape can go by its tiles.
    fn may_send(&self, reshape: &Reshape, tiles: &Tiles, sender: usize) -> bool {
        let pass = &self.schedule.passes[sender];
        let own = match tiles.tiled {
            TiledBox::Source => true,
            TiledBox::Target => shared_range(&reshape.from, &reshape.to, tiles.axis),
        };
        // If it loads tiles too, both must be counted in its own box along one axis.
        let forwards = |loaded: &Tiles| {
            let unchanged = is_unchanged(reshape, tiles.axis);
            loaded.axis == tiles.axis && (tiles.tiled == TiledBox::Source || unchanged)
        };
        own && !transforms(pass, tiles.axis) && self.loaded[sender].as_ref().is_none_or(forwards)
    }

    fn add(&mut self, index: usize, tiles: Tiles) {
        let Some([sender, receiver]) = self.neighbours(index) else { return };
        let reshape = &self.schedule.reshapes[index];
        let own = tiles.tiled == TiledBox::Target || is_unchanged(reshape, tiles.axis);
        // Tiles that are not counted in the box of the pass cannot be forwarded to the next reshape.
        self.loaded[receiver] =
            tiles.after.then_some(if own { tiles } else { Tiles { axis: usize::MAX, ..tiles } });
        let open = tiles.before && tiles.after || tiles.batch_chunks() > 1;
        let first = self.since([index, sender], &tiles, open && !tiles.after_all).unwrap_or(receiver);
        let last =
            self.schedule.passes[receiver..].iter().position(|pass| matches!(pass.to, End::Message(_)));
        let end = last.map_or(self.schedule.passes.len(), |last| receiver + last + 1);
        for pass in receiver..end {
            // Inside a batch chunk a pass ends before the next one starts.
            self.since[pass] = if pass == receiver || tiles.batch_chunks() > 1 { first } else { pass };
        }
    }

    /// Whether the second of two passes must not start before the first one ends. Batch chunks are disjoint in
    /// arrays of the same distribution; tiles may not be.
    fn clash(&self, one: &Pass, other: &Pass, tiled: bool) -> bool {
        let memory = |end: &End| match end {
            End::Own(slot, array) | End::Peers(slot, array) => {
                let memory = if self.in_place && *slot == ArraySlot::In { ArraySlot::Out } else { *slot };
                Some((memory, *slot, array.clone()))
            }
            End::Message(_) => None,
        };
        let meet = |a: &End, b: &End| match (memory(a), memory(b)) {
            (Some((a, one, before)), Some((b, two, after))) => {
                let alike = one == two || self.schedule.alike;
                a == b && (tiled || !alike || before != after)
            }
            _ => false,
        };
        meet(&one.from, &other.to) || meet(&one.to, &other.to) || meet(&one.to, &other.from)
    }
}

fn transforms(pass: &Pass, axis: usize) -> bool {
    pass.transforms.iter().any(|transform| transform.changes(axis))
}

/// Whether the pass after a reshape can go by its tiles.
fn may_receive(reshape: &Reshape, tiles: &Tiles, receiver: &Pass) -> bool {
    let own = match tiles.tiled {
        TiledBox::Target => true,
        TiledBox::Source => shared_range(&reshape.to, &reshape.from, tiles.axis),
    };
    own && !transforms(receiver, tiles.axis)
}

/// Whether, for every box, all boxes that intersect it have the same range of an axis.
fn shared_range(layout: &Layout, others: &Layout, axis: usize) -> bool {
    let range = |(rank, _): &(usize, Box3)| {
        let other = &others.boxes()[*rank];
        (other.lo[axis], other.hi[axis])
    };
    let shares = |part: &Box3| {
        let met = others.intersections(part);
        met.iter().all(|other| range(other) == range(&met[0]))
    };
    layout.boxes().iter().all(shares)
}

/// Whether the reshape does not redistribute this axis.
fn is_unchanged(reshape: &Reshape, axis: usize) -> bool {
    reshape.from.keeps_axis(&reshape.to, axis)
}
