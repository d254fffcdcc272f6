//! Reshapes in tiles: while one flies, others are transformed.
//!
//! A reshape is cut along one axis. Where the pass before it does not
//! transform that axis it runs tile by tile, and so does the pass after it
//! where it does not either; whichever of the two can. One tile is the
//! blocking transform: there is no other loop. Pure, and the same on every rank.

use super::schedule::{Before, End, Home, Pass, Reshape, Schedule};
use crate::Box3;
use crate::choice::Tiling;

/// Whose box the tiles of a pair of ranks are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    From,
    To,
}

/// How a reshape is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiles {
    axis: usize,
    side: Side,
    /// Indices in a tile.
    size: usize,
    /// Tiles; on some ranks the last ones may be empty.
    pub count: usize,
    /// The most that fly at once.
    pub window: usize,
    /// How often a pass looks after those that fly.
    pub polls: usize,
    /// Must the pass after the reshape wait for all tiles?
    only_before: bool,
    /// Does the pass before (after) the reshape go tile by tile?
    pub before: bool,
    pub after: bool,
}

impl Tiles {
    /// All at once.
    pub const ONE: Tiles = Tiles {
        axis: 0,
        side: Side::From,
        size: usize::MAX,
        count: 1,
        window: 1,
        polls: 0,
        only_before: false,
        before: false,
        after: false,
    };

    /// How many passes it lets overlap.
    fn worth(&self) -> usize {
        usize::from(self.before) + usize::from(self.after)
    }

    /// What is left of a box in one tile.
    pub fn of(&self, part: &Box3, tile: usize) -> Box3 {
        let (lo, hi) = (part.lo[self.axis], part.hi[self.axis]);
        let at = |tile: usize| lo.saturating_add(tile.saturating_mul(self.size)).min(hi);
        let mut part = *part;
        (part.lo[self.axis], part.hi[self.axis]) = (at(tile), at(tile + 1));
        part
    }

    /// What goes from a box to another in one tile.
    pub fn between(&self, from: &Box3, to: &Box3, tile: usize) -> Box3 {
        match self.side {
            Side::From => self.of(from, tile).intersect(to),
            Side::To => from.intersect(&self.of(to, tile)),
        }
    }
}

/// What a rank does, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Barrier,
    /// A pass, or one tile of it, by its place among all.
    Run {
        pass: usize,
        tile: Option<(usize, usize)>,
    },
    /// A tile of a reshape.
    Start {
        reshape: usize,
        tile: usize,
    },
    Wait {
        reshape: usize,
        tile: usize,
    },
}

/// How the reshapes of a schedule are cut, by the wishes for them.
pub(crate) fn cut(schedule: &Schedule, wishes: &[Tiling]) -> Vec<Tiles> {
    let mut taken = vec![false; schedule.passes.len()];
    let mut all = Vec::with_capacity(schedule.reshapes.len());
    for number in 0..schedule.reshapes.len() {
        let wish = wishes.get(number).or(wishes.last()).filter(|wish| wish.tile > 0);
        let mut best = Tiles::ONE;
        for tiles in wish.iter().flat_map(|wish| candidates(&schedule.reshapes[number], wish)) {
            let tiles = flags(schedule, number, tiles, &taken, false);
            if tiles.count > 1 && tiles.worth() > best.worth() {
                best = tiles;
            }
        }
        take(schedule, number, &best, &mut taken);
        all.push(best);
    }
    all
}

/// The same cuts for another schedule of the same reshapes: which passes can go by them.
pub(crate) fn fit(schedule: &Schedule, cuts: &[Tiles], in_place: bool) -> Vec<Tiles> {
    let mut taken = vec![false; schedule.passes.len()];
    let fitted = cuts.iter().enumerate().take(schedule.reshapes.len()).map(|(number, cut)| {
        let tiles = match cut.count {
            1 => *cut,
            _ => flags(schedule, number, *cut, &taken, in_place),
        };
        take(schedule, number, &tiles, &mut taken);
        tiles
    });
    fitted.collect()
}

/// The passes before and after a reshape.
fn neighbours(schedule: &Schedule, number: usize) -> Option<[usize; 2]> {
    let sender = schedule.passes.iter().position(|pass| pass.to == End::Wire(number))?;
    let taker = schedule.passes.iter().position(|pass| pass.from == End::Wire(number))?;
    Some([sender, taker])
}

/// A pass goes by the tiles of one reshape only.
fn take(schedule: &Schedule, number: usize, tiles: &Tiles, taken: &mut [bool]) {
    if let Some([sender, taker]) = neighbours(schedule, number) {
        taken[sender] |= tiles.before;
        taken[taker] |= tiles.after;
    }
}

/// All cuts that were asked for.
fn candidates(reshape: &Reshape, wish: &Tiling) -> Vec<Tiles> {
    let axes = wish.cut.map_or(0..3, |axis| axis..axis + 1);
    let cut = |axis: usize, side: Side| {
        let boxes = if side == Side::From { reshape.from.boxes() } else { reshape.to.boxes() };
        let longest = boxes.iter().map(|part| part.shape()[axis]).max().unwrap_or(0);
        let count = longest.div_ceil(wish.tile).max(1);
        let (size, window, polls) = (wish.tile, wish.window.clamp(1, count), wish.polls);
        let only_before = !wish.after;
        Tiles { axis, side, size, count, window, polls, only_before, before: false, after: false }
    };
    axes.flat_map(|axis| [cut(axis, Side::From), cut(axis, Side::To)]).collect()
}

/// Which of the two passes can go tile by tile.
fn flags(schedule: &Schedule, number: usize, tiles: Tiles, taken: &[bool], in_place: bool) -> Tiles {
    let Some([sender, taker]) = neighbours(schedule, number) else { return Tiles::ONE };
    let (first, second) = (&schedule.passes[sender], &schedule.passes[taker]);
    let moves = |pass: &Pass| pass.legs.iter().any(|leg| leg.moves(tiles.axis));
    let alone = left_alone(&schedule.reshapes[number], tiles.axis);
    let before = !taken[sender] && !moves(first) && (tiles.side == Side::From || alone);
    let after = !tiles.only_before && !taken[taker] && !moves(second) && (tiles.side == Side::To || alone);
    // What the second pass stores, the first one may have yet to load.
    let clash = before && after && overlap(&first.from, &second.to, in_place);
    Tiles { before, after: after && !clash, ..tiles }
}

/// Does every value keep its rank's range of this axis?
fn left_alone(reshape: &Reshape, axis: usize) -> bool {
    reshape.from.boxes().iter().all(|from| {
        let talks = reshape.to.boxes().iter().filter(|to| !from.intersect(to).is_empty());
        talks.into_iter().all(|to| (from.lo[axis], from.hi[axis]) == (to.lo[axis], to.hi[axis]))
    })
}

/// May two ends be the same memory? (Wires take turns.)
fn overlap(one: &End, other: &End, in_place: bool) -> bool {
    let memory = |end: &End| match end {
        End::Own(home, _) | End::Peers(home, _) => {
            Some(if in_place && *home == Home::In { Home::Out } else { *home })
        }
        End::Wire(_) => None,
    };
    memory(one).is_some() && memory(one) == memory(other)
}

/// Everything a rank does, in order: the one loop over tiles.
pub(crate) fn actions(schedule: &Schedule, cuts: &[Tiles]) -> Vec<Action> {
    let mut list = List { schedule, cuts, actions: Vec::new() };
    let mut pass = 0;
    while pass < schedule.passes.len() {
        pass = list.add(pass);
    }
    list.actions
}

struct List<'a> {
    schedule: &'a Schedule,
    cuts: &'a [Tiles],
    actions: Vec<Action>,
}

impl List<'_> {
    /// The reshape that a pass stores into.
    fn target(&self, pass: usize) -> Option<usize> {
        match self.schedule.passes[pass].to {
            End::Wire(number) => Some(number),
            _ => None,
        }
    }

    fn run(&mut self, pass: usize, tile: Option<(usize, usize)>) {
        self.actions.push(Action::Run { pass, tile });
    }

    fn start(&mut self, reshape: usize, tile: usize) {
        self.actions.push(Action::Start { reshape, tile });
    }

    fn wait(&mut self, reshape: usize, tile: usize) {
        self.actions.push(Action::Wait { reshape, tile });
    }

    /// Adds a pass and the reshape after it, with the pass after that where
    /// it goes by the same tiles; the next pass to add.
    fn add(&mut self, pass: usize) -> usize {
        if self.schedule.passes[pass].before == Before::Barrier {
            self.actions.push(Action::Barrier);
        }
        match self.target(pass) {
            Some(reshape) if self.cuts[reshape].before => self.send_in_tiles(pass, reshape),
            _ => {
                self.run(pass, None);
                self.after(pass)
            }
        }
    }

    fn send_in_tiles(&mut self, pass: usize, reshape: usize) -> usize {
        let Tiles { count, window, after, .. } = self.cuts[reshape];
        for tile in 0..count {
            self.run(pass, Some((reshape, tile)));
            if tile >= window {
                self.wait(reshape, tile - window);
            }
            self.start(reshape, tile);
            if after && tile >= window {
                self.run(pass + 1, Some((reshape, tile - window)));
            }
        }
        for tile in count.saturating_sub(window)..count {
            self.wait(reshape, tile);
            if after {
                self.run(pass + 1, Some((reshape, tile)));
            }
        }
        if after { self.after(pass + 1) } else { pass + 1 }
    }

    /// What follows a pass that has run as a whole, or all of whose tiles have.
    fn after(&mut self, pass: usize) -> usize {
        let Some(reshape) = self.target(pass) else { return pass + 1 };
        let Tiles { count, window, after, .. } = self.cuts[reshape];
        for tile in 0..window.min(count) {
            self.start(reshape, tile);
        }
        for tile in 0..count {
            self.wait(reshape, tile);
            if tile + window < count {
                self.start(reshape, tile + window);
            }
            if after {
                self.run(pass + 1, Some((reshape, tile)));
            }
        }
        if after { self.after(pass + 1) } else { pass + 1 }
    }
}
