//! The order of passes, transfers and barriers on a rank. Pure, and the same on every rank.

use std::ops::Range;

use crate::schedule::{End, Schedule};
use crate::tiles::Tiles;

/// A part of a pass: a batch chunk, and of that a tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassPart {
    /// The batch chunk.
    pub batch_chunk: usize,
    /// The tile of the reshape that the pass loads from; `None`: the whole batch chunk.
    pub from: Option<usize>,
    /// The tile of the reshape that the pass stores to; `None`: the whole batch chunk.
    pub to: Option<usize>,
}

/// One action of a rank. Passes and reshapes are given by their indices in the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Synchronises all ranks.
    Barrier,
    /// Runs a part of a pass.
    Run {
        /// The pass.
        pass: usize,
        /// The part.
        part: PassPart,
    },
    /// Starts the transfer of a tile.
    Start {
        /// The reshape.
        reshape: usize,
        /// The tile, counted over all batch chunks.
        tile: usize,
    },
    /// Waits for the transfer of a tile.
    Wait {
        /// The reshape.
        reshape: usize,
        /// The tile, counted over all batch chunks.
        tile: usize,
    },
}

/// The actions of a rank, in order: a stored tile is sent as soon as the window allows, and a received tile is
/// processed before the next one is started.
pub fn actions(schedule: &Schedule, cuts: &[Tiles]) -> Vec<Action> {
    let batch_chunks = cuts.first().map_or(1, Tiles::batch_chunks);
    let mut list =
        List { schedule, cuts, batch_chunks, tiles: vec![[0; 2]; cuts.len()], actions: Vec::new() };
    if !schedule.passes.is_empty() {
        (0..batch_chunks).for_each(|batch_chunk| list.run_chunks(0, batch_chunk..batch_chunk + 1));
    }
    for reshape in 0..cuts.len() {
        while list.in_flight(reshape) > 0 {
            let tile = list.wait(reshape);
            list.received(reshape, tile);
        }
    }
    list.actions
}

/// Whether tiles of different reshapes are in flight together.
pub fn in_flight_together(actions: &[Action]) -> bool {
    let mut in_flight: Vec<usize> = Vec::new();
    actions.iter().any(|action| {
        match action {
            Action::Start { reshape, .. } => in_flight.push(*reshape),
            Action::Wait { reshape, .. } => {
                if let Some(at) = in_flight.iter().position(|at| at == reshape) {
                    in_flight.swap_remove(at);
                }
            }
            _ => {}
        }
        in_flight.iter().any(|reshape| *reshape != in_flight[0])
    })
}

struct List<'a> {
    schedule: &'a Schedule,
    cuts: &'a [Tiles],
    batch_chunks: usize,
    /// Numbers of tiles of each reshape that were started and waited for.
    tiles: Vec<[usize; 2]>,
    actions: Vec<Action>,
}

impl List<'_> {
    /// The reshape that a pass stores into.
    fn target(&self, pass: usize) -> Option<usize> {
        match self.schedule.passes[pass].to {
            End::Message(reshape) => Some(reshape),
            _ => None,
        }
    }

    fn run(&mut self, pass: usize, batch_chunk: usize, from: Option<usize>, to: Option<usize>) {
        self.actions.push(Action::Run { pass, part: PassPart { batch_chunk, from, to } });
    }

    /// A pass over whole batch chunks.
    fn run_chunks(&mut self, pass: usize, batch_chunks: Range<usize>) {
        if self.schedule.passes[pass].barrier {
            self.actions.push(Action::Barrier);
        }
        match self.target(pass) {
            Some(reshape) if self.cuts[reshape].before => {
                let along = self.cuts[reshape].along;
                for tile in batch_chunks.start * along..batch_chunks.end * along {
                    self.run(pass, tile / along, None, Some(tile));
                    self.start(reshape, tile);
                }
            }
            _ => {
                batch_chunks.clone().for_each(|batch_chunk| self.run(pass, batch_chunk, None, None));
                self.finished(pass, batch_chunks);
            }
        }
    }

    /// A pass over a received tile of `source`.
    fn run_tile(&mut self, pass: usize, source: usize, tile: usize) {
        let from = self.cuts[source];
        let (batch_chunk, last) = (tile / from.along, tile % from.along + 1 == from.along);
        let target = self.target(pass).filter(|&reshape| self.cuts[reshape].before);
        let Some(reshape) = target else {
            self.run(pass, batch_chunk, Some(tile), None);
            if last {
                self.finished(pass, batch_chunk..batch_chunk + 1);
            }
            return;
        };
        let to = self.cuts[reshape];
        let (start, end) = (tile % from.along * from.size, (tile % from.along + 1) * from.size);
        for at in 0..to.along {
            let (low, high) = (at * to.size, (at + 1) * to.size);
            let number = batch_chunk * to.along + at;
            if low < end && start < high {
                self.run(pass, batch_chunk, Some(tile), Some(number));
            }
            // The last part of the tile is stored: it ends in this tile, or no other tile follows.
            if (start < high || at + 1 == to.along && last) && (high <= end || last) {
                self.start(reshape, number);
            }
        }
    }

    /// Continues after a pass has finished some batch chunks.
    fn finished(&mut self, pass: usize, batch_chunks: Range<usize>) {
        match self.target(pass) {
            Some(reshape) => {
                let along = self.cuts[reshape].along;
                for tile in batch_chunks.start * along..batch_chunks.end * along {
                    self.start(reshape, tile);
                }
            }
            None if pass + 1 < self.schedule.passes.len() => self.run_chunks(pass + 1, batch_chunks),
            None => {}
        }
    }

    /// Starts the transfer of a stored tile; waits for another one first if the window is full, for this one if it is 0.
    fn start(&mut self, reshape: usize, tile: usize) {
        let window = self.cuts[reshape].window;
        let full = window > 0 && self.in_flight(reshape) == window;
        let waited = full.then(|| self.wait(reshape));
        self.actions.push(Action::Start { reshape, tile });
        self.tiles[reshape][0] += 1;
        let waited = waited.or_else(|| (window == 0).then(|| self.wait(reshape)));
        if let Some(waited) = waited {
            self.received(reshape, waited);
        }
    }

    fn in_flight(&self, reshape: usize) -> usize {
        self.tiles[reshape][0] - self.tiles[reshape][1]
    }

    fn wait(&mut self, reshape: usize) -> usize {
        let tile = self.tiles[reshape][1];
        self.tiles[reshape][1] += 1;
        self.actions.push(Action::Wait { reshape, tile });
        tile
    }

    /// Runs the pass after the reshape on a received tile, as far as its data is complete.
    fn received(&mut self, reshape: usize, tile: usize) {
        let Tiles { after, after_all, along, .. } = self.cuts[reshape];
        let Some(pass) = self.schedule.passes.iter().position(|pass| pass.from == End::Message(reshape))
        else {
            return;
        };
        let (batch_chunk, last) = (tile / along, (tile + 1).is_multiple_of(along));
        if after_all {
            if last && batch_chunk + 1 == self.batch_chunks {
                self.run_chunks(pass, 0..self.batch_chunks);
            }
        } else if after {
            self.run_tile(pass, reshape, tile);
        } else if last {
            self.run_chunks(pass, batch_chunk..batch_chunk + 1);
        }
    }
}

/// The number of consecutive reshapes that need memory of their own, so that no data in use is overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferCycle {
    /// For send (0) and receive (1) buffers.
    pub buffers: [usize; 2],
    /// For data that stays on its rank or node.
    pub local: usize,
}

impl BufferCycle {
    /// The cycle for these actions.
    pub fn new(schedule: &Schedule, actions: &[Action]) -> BufferCycle {
        let uses: Vec<Lifetime> =
            (0..schedule.reshapes.len()).map(|r| Lifetime::new(schedule, actions, r)).collect();
        let least = |free: &dyn Fn(&Lifetime, &Lifetime) -> bool| {
            let enough = |cycle: &usize| uses.iter().zip(uses.iter().skip(*cycle)).all(|(a, b)| free(a, b));
            (1..uses.len()).find(enough).unwrap_or(uses.len().max(1))
        };
        let reached = reached_by_all(schedule, actions);
        BufferCycle {
            buffers: [
                least(&|first, next| first.waited < next.stored),
                least(&|first, next| first.loaded < next.started),
            ],
            local: least(&|first, next| reached[next.stored].is_some_and(|reached| first.loaded < reached)),
        }
    }
}

/// For each action, the last action that all ranks of a node have reached when one rank performs it: a completed
/// transfer was started by all.
fn reached_by_all(schedule: &Schedule, actions: &[Action]) -> Vec<Option<usize>> {
    let mut starts = vec![Vec::new(); schedule.reshapes.len()];
    let mut reached = None;
    let mut list = Vec::with_capacity(actions.len());
    for (at, action) in actions.iter().enumerate() {
        list.push(reached);
        match *action {
            Action::Start { reshape, .. } => starts[reshape].push(at),
            Action::Wait { reshape, tile } => reached = reached.max(starts[reshape].get(tile).copied()),
            _ => {}
        }
    }
    list
}

/// The actions between which the memory of a reshape is in use, by index.
struct Lifetime {
    /// The first store.
    stored: usize,
    /// The first start.
    started: usize,
    /// The last wait.
    waited: usize,
    /// The last load.
    loaded: usize,
}

impl Lifetime {
    fn new(schedule: &Schedule, actions: &[Action], reshape: usize) -> Lifetime {
        let accesses = |action: &Action, from: bool| match action {
            Action::Run { pass, .. } => {
                let pass = &schedule.passes[*pass];
                *if from { &pass.from } else { &pass.to } == End::Message(reshape)
            }
            _ => false,
        };
        let first = |which: &dyn Fn(&Action) -> bool| actions.iter().position(which).unwrap_or(0);
        let last = |which: &dyn Fn(&Action) -> bool| actions.iter().rposition(which).unwrap_or(actions.len());
        Lifetime {
            stored: first(&|action| accesses(action, false)),
            started: first(&|action| matches!(action, Action::Start { reshape: of, .. } if *of == reshape)),
            waited: last(&|action| matches!(action, Action::Wait { reshape: of, .. } if *of == reshape)),
            loaded: last(&|action| accesses(action, true)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::{Choice, Tiling};
    use crate::design::design;
    use crate::layout::{Box3, LayoutSpec};
    use crate::messages::Mechanism;
    use crate::problem::Problem;
    use crate::recipe::Recipe;
    use crate::schedule::{Direction, ScheduleOptions, schedule};
    use crate::tiles;
    use ferrier_kernel::Precision;

    fn recipe(problem: &Problem, choice: &Choice, ranks: usize) -> Recipe {
        design(problem, choice, Precision::F64, ranks).unwrap()
    }

    /// The part of a rank's box that a part of a pass covers.
    fn region(schedule: &Schedule, cuts: &[Tiles], pass: usize, part: PassPart, rank: usize) -> Box3 {
        let pass = &schedule.passes[pass];
        let mut left = pass.arrive.layout.boxes()[rank];
        let mut narrow = |axis: usize, tile: Box3| {
            left.lo[axis] = left.lo[axis].max(tile.lo[axis]);
            left.hi[axis] = left.hi[axis].min(tile.hi[axis]);
        };
        if let (End::Message(reshape), Some(tile)) = (&pass.from, part.from) {
            narrow(cuts[*reshape].axis, cuts[*reshape].received(&schedule.reshapes[*reshape], rank, tile));
        }
        if let (End::Message(reshape), Some(tile)) = (&pass.to, part.to) {
            narrow(cuts[*reshape].axis, cuts[*reshape].sent(&schedule.reshapes[*reshape], rank, tile));
        }
        left
    }

    /// Every element is processed once; nothing is sent before it is stored or loaded before it is received.
    fn check(schedule: &Schedule, cuts: &[Tiles], batch: usize, ranks: usize, case: &str) {
        let actions = actions(schedule, cuts);
        let place = |wanted: Action| actions.iter().position(|action| *action == wanted);
        for (reshape, cut) in cuts.iter().enumerate() {
            let mut in_flight = 0;
            for action in &actions {
                match action {
                    Action::Start { reshape: at, .. } if *at == reshape => in_flight += 1,
                    Action::Wait { reshape: at, .. } if *at == reshape => in_flight -= 1,
                    _ => {}
                }
                assert!(in_flight <= cut.window.max(1), "{case}: {in_flight} tiles in flight");
            }
            for tile in 0..cut.count() {
                let (start, wait) =
                    (place(Action::Start { reshape, tile }), place(Action::Wait { reshape, tile }));
                let (Some(start), Some(wait)) = (start, wait) else { panic!("{case}: {reshape}, {tile}") };
                assert!(start < wait, "{case}");
                assert!(cut.window > 0 || wait == start + 1, "{case}: not waited for at once");
                for (at, action) in actions.iter().enumerate() {
                    let Action::Run { pass, part } = *action else { continue };
                    let accesses = |end: &End, own: Option<usize>| {
                        let tiles = own
                            .map_or(part.batch_chunk * cut.along..(part.batch_chunk + 1) * cut.along, |t| {
                                t..t + 1
                            });
                        *end == End::Message(reshape) && tiles.contains(&tile)
                    };
                    assert!(
                        !accesses(&schedule.passes[pass].to, part.to) || at < start,
                        "{case}: stored late"
                    );
                    assert!(
                        !accesses(&schedule.passes[pass].from, part.from) || at > wait,
                        "{case}: loaded early"
                    );
                }
            }
        }
        for (pass, rank) in
            (0..schedule.passes.len()).flat_map(|pass| (0..ranks).map(move |rank| (pass, rank)))
        {
            let batch_chunks =
                |batch_chunk: usize| cuts.first().map_or(batch, |cut| cut.arrays_of(batch_chunk).len());
            let done: usize = actions
                .iter()
                .map(|action| match *action {
                    Action::Run { pass: at, part } if at == pass => {
                        region(schedule, cuts, pass, part, rank).volume() * batch_chunks(part.batch_chunk)
                    }
                    _ => 0,
                })
                .sum();
            let whole = schedule.passes[pass].arrive.layout.boxes()[rank].volume() * batch;
            assert_eq!(done, whole, "{case}: pass {pass} of rank {rank}");
        }
    }

    fn problems() -> Vec<(Problem, usize)> {
        let slabs = Problem::c2c([12, 10, 9]);
        let bricks = || Problem::c2c([8, 12, 10]).input(LayoutSpec::bricks()).output(LayoutSpec::bricks());
        let pencils = Problem::r2c([8, 9, 10]).input(LayoutSpec::pencils(2)).batch(3);
        vec![(slabs.clone(), 2), (slabs.batch(5), 3), (bricks(), 4), (bricks().batch(2), 8), (pencils, 6)]
    }

    #[test]
    fn every_order_of_actions_is_valid() {
        let mechanism = Mechanism::Messages;
        for (problem, ranks) in problems() {
            let recipe = recipe(&problem, &Choice::default(), ranks);
            for (fused, in_place, arrays) in
                [(true, false, 0), (false, false, 1), (true, true, 2), (false, true, 0)]
            {
                for direction in [Direction::Forward, Direction::Backward] {
                    for (tile, cut) in
                        [(0, None), (1, None), (3, Some(2)), (2, Some(1)), (4, Some(0)), (99, None)]
                    {
                        for (window, after) in
                            [(0, true), (1, true), (2, true), (50, true), (2, false), (0, false)]
                        {
                            // A second reshape in tiles of another size.
                            let one = Tiling::new(tile).cut(cut).window(window).after(after);
                            let tilings = [one, one.tile(tile + tile / 2)];
                            let fuse = &|_: &[_], _: &_| fused;
                            let options = ScheduleOptions {
                                direction,
                                in_place,
                                alike: true,
                                with_operator: false,
                                mechanism,
                                exposed_ends: true,
                                tilings: &tilings,
                                fuse,
                                aside: &|_, _| false,
                            };
                            let schedule = schedule(&recipe, options);
                            let batch_chunks = if arrays == 0 { 1 } else { problem.batch.div_ceil(arrays) };
                            let cuts = tiles::cut(&schedule, &tilings, problem.batch, batch_chunks);
                            let cuts = tiles::fit(&schedule, &cuts, in_place);
                            let case = format!("{problem:?} {direction:?} {tilings:?} in place {in_place}");
                            check(&schedule, &cuts, problem.batch, ranks, &case);
                        }
                    }
                }
            }
        }
    }

    /// A pass between two reshapes forwards received tiles if both are cut along an axis that it does not transform.
    #[test]
    fn two_reshapes_are_in_flight_together_when_cut_along_an_unchanged_axis() {
        let mechanism = Mechanism::Messages;
        let slabs = || LayoutSpec::slabs(0);
        let problem = Problem::c2c([8, 8, 8]).input(slabs()).output(slabs());
        let mut together = 0;
        for cut in [1, 2] {
            let choice = Choice::new().axes([cut, 3 - cut, 0]);
            let recipe = recipe(&problem, &choice, 2);
            let tilings = [Tiling::new(2).cut(cut).window(1)];
            let (direction, tilings, fuse) = (Direction::Forward, &tilings[..], &|_: &[_], _: &_| true);
            let options = ScheduleOptions {
                direction,
                in_place: false,
                alike: true,
                with_operator: false,
                mechanism,
                exposed_ends: true,
                tilings,
                fuse,
                aside: &|_, _| false,
            };
            let schedule = schedule(&recipe, options);
            let cuts = tiles::fit(&schedule, &tiles::cut(&schedule, tilings, 1, 1), false);
            let actions = actions(&schedule, &cuts);
            let at = |reshape, tile| {
                actions.iter().position(|action| *action == Action::Start { reshape, tile }).unwrap()
            };
            if at(1, 0) < at(0, cuts[0].count() - 1) {
                together += 1;
                // Two consecutive reshapes are in use together: their buffers are separate.
                assert_eq!(BufferCycle::new(&schedule, &actions).buffers, [2, 2]);
            }
        }
        assert!(together > 0, "two reshapes are never in flight together");
    }

    /// Links are used in both directions in every tile.
    #[test]
    fn every_rank_sends_in_every_tile() {
        let mechanism = Mechanism::Messages;
        let slabs = || LayoutSpec::slabs(0);
        let problem = Problem::c2c([8, 8, 8]).input(slabs()).output(slabs());
        let recipe = recipe(&problem, &Choice::default(), 2);
        let tilings = &[Tiling::new(2).window(2)][..];
        for (direction, fused) in [Direction::Forward, Direction::Backward]
            .into_iter()
            .flat_map(|direction| [(direction, true), (direction, false)])
        {
            let fuse = &|_: &[_], _: &_| fused;
            let options = ScheduleOptions {
                direction,
                in_place: false,
                alike: true,
                with_operator: false,
                mechanism,
                exposed_ends: true,
                tilings,
                fuse,
                aside: &|_, _| false,
            };
            let schedule = schedule(&recipe, options);
            let cuts = tiles::cut(&schedule, tilings, 1, 1);
            assert!(cuts.iter().all(|cut| cut.along > 1), "{direction:?}: {cuts:?}");
            for (reshape, cut) in schedule.reshapes.iter().zip(&cuts) {
                for (tile, rank) in (0..cut.count()).flat_map(|tile| [(tile, 0), (tile, 1)]) {
                    let (from, to) = (&reshape.from.boxes()[rank], &reshape.to.boxes()[1 - rank]);
                    assert!(!cut.between(from, to, tile).is_empty(), "{direction:?} {fused} {cut:?}: {tile}");
                }
            }
        }
    }
}
