//! Reshapes in tiles: while one flies, others are transformed.
//!
//! A reshape is cut along one axis, and into batch_chunks of arrays where several are
//! transformed together. Where the pass before it does not transform that axis
//! it runs tile by tile, and so does the pass after it where it does not
//! either; whichever of the two can. Lots are left alone by every pass. A pass
//! between two reshapes goes by the tiles of both where they are cut along one
//! axis, so that the second sets out while the first flies. One tile is the
//! blocking transform. Pure, and the same on every rank.

use std::ops::Range;

use crate::choice::Tiling;
use crate::layout::Box3;
use crate::schedule::{ArraySlot, End, Pass, Reshape, Schedule};

/// Whose box the tiles of a pair of ranks are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TiledBox {
    Source,
    Target,
}

/// How a reshape is cut. Tiles are numbered batch_chunk by batch_chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    pub axis: usize,
    tiled: TiledBox,
    /// Indices in a tile.
    pub size: usize,
    /// Tiles of a batch_chunk; on some ranks the last ones may be empty.
    pub along: usize,
    /// Arrays in all and in a batch_chunk; the last batch_chunk may have fewer.
    batch: usize,
    arrays: usize,
    /// The most that fly at once.
    pub window: usize,
    /// How often a pass looks after those that fly.
    pub polls: usize,
    /// Must the pass after the reshape wait for all tiles?
    only_before: bool,
    /// Does the pass before (after) the reshape go tile by tile?
    pub before: bool,
    pub after: bool,
    /// Must what comes after the reshape wait for all batch_chunks, because it stores
    /// where what comes before it has yet to load?
    pub held: bool,
}

impl Tiles {
    /// All of a batch_chunk at once; by `batch_chunks` batch_chunks.
    fn whole(batch: usize, batch_chunks: usize) -> Tiles {
        Tiles {
            axis: 0,
            tiled: TiledBox::Source,
            size: usize::MAX,
            along: 1,
            batch,
            arrays: batch.div_ceil(batch_chunks.max(1)).max(1),
            window: 1,
            polls: 0,
            only_before: false,
            before: false,
            after: false,
            held: false,
        }
    }

    /// Lots of arrays.
    pub fn batch_chunks(&self) -> usize {
        self.batch.div_ceil(self.arrays).max(1)
    }

    /// Tiles in all.
    pub fn count(&self) -> usize {
        self.along * self.batch_chunks()
    }

    /// The arrays of a batch_chunk.
    pub fn arrays_of(&self, batch_chunk: usize) -> Range<usize> {
        (batch_chunk * self.arrays).min(self.batch)..((batch_chunk + 1) * self.arrays).min(self.batch)
    }

    /// The arrays of a tile.
    pub fn arrays(&self, tile: usize) -> Range<usize> {
        self.arrays_of(tile / self.along)
    }

    /// How many passes it lets overlap.
    fn worth(&self) -> usize {
        usize::from(self.before) + usize::from(self.after)
    }

    /// Does every rank send and receive in every tile? Where those that a box is counted for have different
    /// ranges of the axis, a tile goes to some of them only, or comes from some only, and links stand idle.
    fn is_even(&self, reshape: &Reshape) -> bool {
        let (from, to) = (reshape.from.boxes(), reshape.to.boxes());
        match self.tiled {
            TiledBox::Source => shared_range(from, to, self.axis),
            TiledBox::Target => shared_range(to, from, self.axis),
        }
    }

    /// The range of the axis that a tile has of a box in which it is counted.
    fn range(&self, part: &Box3, tile: usize) -> (usize, usize) {
        let (lo, hi) = (part.lo[self.axis], part.hi[self.axis]);
        let at = |tile: usize| lo.saturating_add(tile.saturating_mul(self.size)).min(hi);
        (at(tile % self.along), at(tile % self.along + 1))
    }

    /// A box, as far as a tile of another one reaches.
    fn within(&self, part: &Box3, counted: &Box3, tile: usize) -> Box3 {
        let (lo, hi) = self.range(counted, tile);
        let mut part = *part;
        part.lo[self.axis] = part.lo[self.axis].max(lo);
        part.hi[self.axis] = part.hi[self.axis].min(hi).max(part.lo[self.axis]);
        part
    }

    /// What goes from a box to another in one tile.
    pub fn between(&self, from: &Box3, to: &Box3, tile: usize) -> Box3 {
        match self.tiled {
            TiledBox::Source => self.within(from, from, tile).intersect(to),
            TiledBox::Target => from.intersect(&self.within(to, to, tile)),
        }
    }

    /// What a rank sends in a tile, itself included, where the pass before the
    /// reshape goes by tiles.
    pub fn sent(&self, reshape: &Reshape, rank: usize, tile: usize) -> Box3 {
        let own = &reshape.from.boxes()[rank];
        match self.tiled {
            TiledBox::Source => self.within(own, own, tile),
            TiledBox::Target => self.within(own, first_meeting(own, reshape.to.boxes()).unwrap_or(own), tile),
        }
    }

    /// What a rank takes in a tile, where the pass after the reshape goes by tiles.
    pub fn taken(&self, reshape: &Reshape, rank: usize, tile: usize) -> Box3 {
        let own = &reshape.to.boxes()[rank];
        match self.tiled {
            TiledBox::Target => self.within(own, own, tile),
            TiledBox::Source => {
                self.within(own, first_meeting(own, reshape.from.boxes()).unwrap_or(own), tile)
            }
        }
    }
}

fn first_meeting<'a>(part: &Box3, others: &'a [Box3]) -> Option<&'a Box3> {
    others.iter().find(|other| !part.intersect(other).is_empty())
}

/// How the reshapes of a schedule are cut, by the wishes for them; and into
/// how many batch_chunks the arrays go.
pub fn cut(schedule: &Schedule, wishes: &[Tiling], batch: usize, batch_chunks: usize) -> Vec<Tiles> {
    let mut chain = Chain::new(schedule, false);
    let mut all = Vec::with_capacity(schedule.reshapes.len());
    for number in 0..schedule.reshapes.len() {
        let wish = wishes.get(number).or(wishes.last()).copied().unwrap_or_default();
        let mut whole = Tiles::whole(batch, batch_chunks);
        (whole.window, whole.polls) = (wish.window.clamp(1, whole.count()), wish.polls);
        let mut best = chain.flags(number, whole);
        let reshape = &schedule.reshapes[number];
        let rank = |tiles: &Tiles| (tiles.worth() > 0 && tiles.is_even(reshape), tiles.worth());
        for tiles in candidates(reshape, &wish, &whole) {
            let tiles = chain.flags(number, tiles);
            if tiles.along > 1 && rank(&tiles) > rank(&best) {
                best = tiles;
            }
        }
        chain.add(number, best);
        all.push(best);
    }
    all
}

/// The same cuts for another schedule of the same reshapes: which passes can go by them.
pub fn fit(schedule: &Schedule, cuts: &[Tiles], in_place: bool) -> Vec<Tiles> {
    let mut chain = Chain::new(schedule, in_place);
    let fitted = cuts.iter().enumerate().take(schedule.reshapes.len()).map(|(number, cut)| {
        let tiles = chain.flags(number, *cut);
        chain.add(number, tiles);
        tiles
    });
    fitted.collect()
}

/// All cuts that were asked for.
fn candidates(reshape: &Reshape, wish: &Tiling, whole: &Tiles) -> Vec<Tiles> {
    let axes = match (wish.tile, wish.cut) {
        (0, _) => 0..0,
        (_, Some(axis)) => axis..axis + 1,
        (_, None) => 0..3,
    };
    let cut = |axis: usize, tiled: TiledBox| {
        let boxes = if tiled == TiledBox::Source { reshape.from.boxes() } else { reshape.to.boxes() };
        let longest = boxes.iter().map(|part| part.shape()[axis]).max().unwrap_or(0);
        let along = longest.div_ceil(wish.tile).max(1);
        let tiles = Tiles { axis, tiled, size: wish.tile, along, only_before: !wish.after, ..*whole };
        Tiles { window: wish.window.clamp(1, tiles.count()), ..tiles }
    };
    axes.flat_map(|axis| [cut(axis, TiledBox::Source), cut(axis, TiledBox::Target)]).collect()
}

/// The pipeline, reshape by reshape.
struct Chain<'a> {
    schedule: &'a Schedule,
    in_place: bool,
    /// Tiles that each pass is fed by, if it is.
    fed: Vec<Option<Tiles>>,
    /// The first pass that may still run when each one begins.
    since: Vec<usize>,
}

impl<'a> Chain<'a> {
    fn new(schedule: &'a Schedule, in_place: bool) -> Self {
        let passes = schedule.passes.len();
        Chain { schedule, in_place, fed: vec![None; passes], since: (0..passes).collect() }
    }

    /// The passes before and after a reshape.
    fn neighbours(&self, number: usize) -> Option<[usize; 2]> {
        let sender = self.schedule.passes.iter().position(|pass| pass.to == End::Message(number))?;
        let taker = self.schedule.passes.iter().position(|pass| pass.from == End::Message(number))?;
        Some([sender, taker])
    }

    /// Which of the two passes can go tile by tile, and whether batch_chunks must wait.
    fn flags(&self, number: usize, tiles: Tiles) -> Tiles {
        let idle = Tiles { before: false, after: false, held: false, ..tiles };
        let Some([sender, taker]) = self.neighbours(number) else { return idle };
        let reshape = &self.schedule.reshapes[number];
        let cut = tiles.along > 1;
        let before = cut && self.may_send(reshape, &tiles, sender);
        let after = cut && !tiles.only_before && may_take(reshape, &tiles, &self.schedule.passes[taker]);
        let pipelined = before && after;
        let since = self.since([number, sender], &tiles, pipelined || tiles.batch_chunks() > 1);
        // What the passes after it store, those before it may have yet to load.
        let clash = |tiled: bool| {
            let later = &self.schedule.passes[taker..];
            let last = later.iter().position(|pass| matches!(pass.to, End::Message(_)));
            let later = &later[..last.map_or(later.len(), |last| last + 1)];
            let earlier = &self.schedule.passes[since.unwrap_or(taker)..taker];
            earlier.iter().any(|one| later.iter().any(|other| self.clash(one, other, tiled)))
        };
        let after = after && !(pipelined && clash(true));
        let held = tiles.batch_chunks() > 1 && clash(before && after);
        Tiles { before, after: after && !held, held, ..idle }
    }

    /// The first pass that may still run when a reshape, after `sender`, feeds
    /// another, if any may. Lots go one by one through all that comes before
    /// the first reshape.
    fn since(&self, [number, sender]: [usize; 2], tiles: &Tiles, open: bool) -> Option<usize> {
        let first = number == 0 && tiles.batch_chunks() > 1;
        open.then(|| if first { 0 } else { self.since[sender] })
    }

    /// May the pass before a reshape go by its tiles?
    fn may_send(&self, reshape: &Reshape, tiles: &Tiles, sender: usize) -> bool {
        let pass = &self.schedule.passes[sender];
        let own = match tiles.tiled {
            TiledBox::Source => true,
            TiledBox::Target => shared_range(reshape.from.boxes(), reshape.to.boxes(), tiles.axis),
        };
        // Where it is fed by tiles itself, both must be counted in its own box along one axis.
        let goes_on = |fed: &Tiles| {
            let alone = left_alone(reshape, tiles.axis);
            fed.axis == tiles.axis && (tiles.tiled == TiledBox::Source || alone)
        };
        own && !transforms(pass, tiles.axis) && self.fed[sender].as_ref().is_none_or(goes_on)
    }

    fn add(&mut self, number: usize, tiles: Tiles) {
        let Some([sender, taker]) = self.neighbours(number) else { return };
        let reshape = &self.schedule.reshapes[number];
        let own = tiles.tiled == TiledBox::Target || left_alone(reshape, tiles.axis);
        // Fed by tiles that are not counted in its own box, it cannot hand them on.
        self.fed[taker] =
            tiles.after.then_some(if own { tiles } else { Tiles { axis: usize::MAX, ..tiles } });
        let open = tiles.before && tiles.after || tiles.batch_chunks() > 1;
        let first = self.since([number, sender], &tiles, open && !tiles.held).unwrap_or(taker);
        let last = self.schedule.passes[taker..].iter().position(|pass| matches!(pass.to, End::Message(_)));
        let end = last.map_or(self.schedule.passes.len(), |last| taker + last + 1);
        for pass in taker..end {
            // Inside a batch_chunk a pass is over before the next one begins.
            self.since[pass] = if pass == taker || tiles.batch_chunks() > 1 { first } else { pass };
        }
    }

    /// Must the second of two passes not begin before the first is over? Lots
    /// are apart in arrays of one form, tiles may not be.
    fn clash(&self, one: &Pass, other: &Pass, tiled: bool) -> bool {
        let memory = |end: &End| match end {
            End::Own(home, state) | End::Peers(home, state) => {
                let place = if self.in_place && *home == ArraySlot::In { ArraySlot::Out } else { *home };
                Some((place, state.clone()))
            }
            End::Message(_) => None,
        };
        let meet = |a: &End, b: &End| match (memory(a), memory(b)) {
            (Some((a, before)), Some((b, after))) => a == b && (tiled || before != after),
            _ => false,
        };
        meet(&one.from, &other.to) || meet(&one.to, &other.to) || meet(&one.to, &other.from)
    }
}

fn transforms(pass: &Pass, axis: usize) -> bool {
    pass.transforms.iter().any(|transform| transform.changes(axis))
}

/// May the pass after a reshape go by its tiles?
fn may_take(reshape: &Reshape, tiles: &Tiles, taker: &Pass) -> bool {
    let own = match tiles.tiled {
        TiledBox::Target => true,
        TiledBox::Source => shared_range(reshape.to.boxes(), reshape.from.boxes(), tiles.axis),
    };
    own && !transforms(taker, tiles.axis)
}

/// Have all those that a box talks to the same range of an axis, for every box?
fn shared_range(boxes: &[Box3], others: &[Box3], axis: usize) -> bool {
    boxes.iter().all(|part| {
        let mut ranges = others.iter().filter(|other| !part.intersect(other).is_empty());
        let first = ranges.next();
        let range = |part: &Box3| (part.lo[axis], part.hi[axis]);
        ranges.all(|other| first.is_some_and(|first| range(first) == range(other)))
    })
}

/// Does every value keep its rank's range of this axis?
fn left_alone(reshape: &Reshape, axis: usize) -> bool {
    reshape.from.boxes().iter().all(|from| {
        let talks = reshape.to.boxes().iter().filter(|to| !from.intersect(to).is_empty());
        talks.into_iter().all(|to| (from.lo[axis], from.hi[axis]) == (to.lo[axis], to.hi[axis]))
    })
}
