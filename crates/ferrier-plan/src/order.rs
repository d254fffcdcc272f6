//! The order of all that a rank does: the one loop over tiles. Pure, and the
//! same on every rank.

use std::ops::Range;

use crate::schedule::{End, Schedule};
use crate::tiles::Tiles;

/// A part of a pass: a batch_chunk of arrays, and of that a tile of the reshape it
/// loads from and one of the reshape it stores to; `None` is all of the batch_chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassPart {
    pub batch_chunk: usize,
    pub from: Option<usize>,
    pub to: Option<usize>,
}

/// What a rank does, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Barrier,
    /// A part of a pass, by its place among all.
    Run {
        pass: usize,
        part: PassPart,
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

/// Everything a rank does: what was stored sets out as soon as the window
/// allows, and what has come is passed on before the next is begun.
pub fn actions(schedule: &Schedule, cuts: &[Tiles]) -> Vec<Action> {
    let batch_chunks = cuts.first().map_or(1, Tiles::batch_chunks);
    let mut list =
        List { schedule, cuts, batch_chunks, flown: vec![[0; 2]; cuts.len()], actions: Vec::new() };
    if !schedule.passes.is_empty() {
        (0..batch_chunks).for_each(|batch_chunk| list.all_of(0, batch_chunk..batch_chunk + 1));
    }
    for reshape in 0..cuts.len() {
        while list.flying(reshape) > 0 {
            let tile = list.land(reshape);
            list.consume(reshape, tile);
        }
    }
    list.actions
}

/// Are tiles of different reshapes in flight at once?
pub fn in_flight_together(actions: &[Action]) -> bool {
    let mut flying: Vec<usize> = Vec::new();
    actions.iter().any(|action| {
        match action {
            Action::Start { reshape, .. } => flying.push(*reshape),
            Action::Wait { reshape, .. } => {
                if let Some(at) = flying.iter().position(|at| at == reshape) {
                    flying.swap_remove(at);
                }
            }
            _ => {}
        }
        flying.iter().any(|reshape| *reshape != flying[0])
    })
}

struct List<'a> {
    schedule: &'a Schedule,
    cuts: &'a [Tiles],
    batch_chunks: usize,
    /// Of each reshape, how many tiles have started and how many have landed.
    flown: Vec<[usize; 2]>,
    actions: Vec<Action>,
}

impl List<'_> {
    /// The reshape that a pass stores into.
    fn target(&self, pass: usize) -> Option<usize> {
        match self.schedule.passes[pass].to {
            End::Message(number) => Some(number),
            _ => None,
        }
    }

    fn run(&mut self, pass: usize, batch_chunk: usize, from: Option<usize>, to: Option<usize>) {
        self.actions.push(Action::Run { pass, part: PassPart { batch_chunk, from, to } });
    }

    /// A pass over batch_chunks of which everything is there.
    fn all_of(&mut self, pass: usize, batch_chunks: Range<usize>) {
        if self.schedule.passes[pass].barrier {
            self.actions.push(Action::Barrier);
        }
        match self.target(pass) {
            Some(reshape) if self.cuts[reshape].before => {
                let along = self.cuts[reshape].along;
                for tile in batch_chunks.start * along..batch_chunks.end * along {
                    self.run(pass, tile / along, None, Some(tile));
                    self.produce(reshape, tile);
                }
            }
            _ => {
                batch_chunks.clone().for_each(|batch_chunk| self.run(pass, batch_chunk, None, None));
                self.done(pass, batch_chunks);
            }
        }
    }

    /// A pass over a tile that has come.
    fn tile_of(&mut self, pass: usize, fed: usize, tile: usize) {
        let from = self.cuts[fed];
        let (batch_chunk, last) = (tile / from.along, tile % from.along + 1 == from.along);
        let target = self.target(pass).filter(|&reshape| self.cuts[reshape].before);
        let Some(reshape) = target else {
            self.run(pass, batch_chunk, Some(tile), None);
            if last {
                self.done(pass, batch_chunk..batch_chunk + 1);
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
            // Its last part is stored: in this tile, or there is none after it.
            if (start < high || at + 1 == to.along && last) && (high <= end || last) {
                self.produce(reshape, number);
            }
        }
    }

    /// What follows a pass that is through with some batch_chunks.
    fn done(&mut self, pass: usize, batch_chunks: Range<usize>) {
        match self.target(pass) {
            Some(reshape) => {
                let along = self.cuts[reshape].along;
                for tile in batch_chunks.start * along..batch_chunks.end * along {
                    self.produce(reshape, tile);
                }
            }
            None if pass + 1 < self.schedule.passes.len() => self.all_of(pass + 1, batch_chunks),
            None => {}
        }
    }

    /// A tile is stored: it sets out, after another has landed if too many fly.
    fn produce(&mut self, reshape: usize, tile: usize) {
        let landed = (self.flying(reshape) == self.cuts[reshape].window).then(|| self.land(reshape));
        self.actions.push(Action::Start { reshape, tile });
        self.flown[reshape][0] += 1;
        if let Some(landed) = landed {
            self.consume(reshape, landed);
        }
    }

    fn flying(&self, reshape: usize) -> usize {
        self.flown[reshape][0] - self.flown[reshape][1]
    }

    fn land(&mut self, reshape: usize) -> usize {
        let tile = self.flown[reshape][1];
        self.flown[reshape][1] += 1;
        self.actions.push(Action::Wait { reshape, tile });
        tile
    }

    /// A tile has come: what can be done with it.
    fn consume(&mut self, reshape: usize, tile: usize) {
        let Tiles { after, held, along, .. } = self.cuts[reshape];
        let Some(pass) = self.schedule.passes.iter().position(|pass| pass.from == End::Message(reshape))
        else {
            return;
        };
        let (batch_chunk, last) = (tile / along, (tile + 1).is_multiple_of(along));
        if held {
            if last && batch_chunk + 1 == self.batch_chunks {
                self.all_of(pass, 0..self.batch_chunks);
            }
        } else if after {
            self.tile_of(pass, reshape, tile);
        } else if last {
            self.all_of(pass, batch_chunk..batch_chunk + 1);
        }
    }
}

/// How many reshapes in a row need areas of their own, so that nothing is
/// stored over what is still in use: send and receive buffers, and what stays
/// on a rank or on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferCycle {
    pub buffers: [usize; 2],
    pub local: usize,
}

impl BufferCycle {
    pub fn new(schedule: &Schedule, actions: &[Action]) -> BufferCycle {
        let uses: Vec<Use> = (0..schedule.reshapes.len()).map(|r| Use::new(schedule, actions, r)).collect();
        let least = |free: &dyn Fn(&Use, &Use) -> bool| {
            let enough = |cycle: &usize| uses.iter().zip(uses.iter().skip(*cycle)).all(|(a, b)| free(a, b));
            (1..uses.len()).find(enough).unwrap_or(uses.len().max(1))
        };
        let met = met(schedule, actions);
        BufferCycle {
            buffers: [
                least(&|first, next| first.landed < next.stored),
                least(&|first, next| first.loaded < next.started),
            ],
            local: least(&|first, next| met[next.stored].is_some_and(|met| first.loaded < met)),
        }
    }
}

/// For each place in the list, how far all ranks of a node have come at least
/// when one is there: what has landed, all had started.
fn met(schedule: &Schedule, actions: &[Action]) -> Vec<Option<usize>> {
    let mut starts = vec![Vec::new(); schedule.reshapes.len()];
    let mut far = None;
    let mut list = Vec::with_capacity(actions.len());
    for (at, action) in actions.iter().enumerate() {
        list.push(far);
        match *action {
            Action::Start { reshape, .. } => starts[reshape].push(at),
            Action::Wait { reshape, tile } => far = far.max(starts[reshape].get(tile).copied()),
            _ => {}
        }
    }
    list
}

/// When a reshape is in use, by places in the list of actions.
struct Use {
    /// The first time that something is stored for it, and that a tile starts.
    stored: usize,
    started: usize,
    /// The last time that a tile lands, and that something is loaded.
    landed: usize,
    loaded: usize,
}

impl Use {
    fn new(schedule: &Schedule, actions: &[Action], number: usize) -> Use {
        let end = |action: &Action, from: bool| match action {
            Action::Run { pass, .. } => {
                let pass = &schedule.passes[*pass];
                *if from { &pass.from } else { &pass.to } == End::Message(number)
            }
            _ => false,
        };
        let first = |which: &dyn Fn(&Action) -> bool| actions.iter().position(which).unwrap_or(0);
        let last = |which: &dyn Fn(&Action) -> bool| actions.iter().rposition(which).unwrap_or(actions.len());
        Use {
            stored: first(&|action| end(action, false)),
            started: first(&|action| matches!(action, Action::Start { reshape, .. } if *reshape == number)),
            landed: last(&|action| matches!(action, Action::Wait { reshape, .. } if *reshape == number)),
            loaded: last(&|action| end(action, true)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Mechanism;
    use crate::schedule::{Direction, ScheduleOptions, schedule};
    use crate::tiles;
    use crate::{Box3, Choice, LayoutSpec, Precision, Problem, Tiling};

    /// What is left of a rank's box in a part of a pass.
    fn region(schedule: &Schedule, cuts: &[Tiles], pass: usize, part: PassPart, rank: usize) -> Box3 {
        let pass = &schedule.passes[pass];
        let mut left = pass.arrive.layout.boxes()[rank];
        let mut narrow = |axis: usize, tile: Box3| {
            left.lo[axis] = left.lo[axis].max(tile.lo[axis]);
            left.hi[axis] = left.hi[axis].min(tile.hi[axis]);
        };
        if let (End::Message(number), Some(tile)) = (&pass.from, part.from) {
            narrow(cuts[*number].axis, cuts[*number].taken(&schedule.reshapes[*number], rank, tile));
        }
        if let (End::Message(number), Some(tile)) = (&pass.to, part.to) {
            narrow(cuts[*number].axis, cuts[*number].sent(&schedule.reshapes[*number], rank, tile));
        }
        left
    }

    /// Everything is done once, nothing is sent before it is stored or loaded before it has come.
    fn check(schedule: &Schedule, cuts: &[Tiles], batch: usize, ranks: usize, told: &str) {
        let actions = actions(schedule, cuts);
        let place = |wanted: Action| actions.iter().position(|action| *action == wanted);
        for (reshape, cut) in cuts.iter().enumerate() {
            let mut flying = 0;
            for action in &actions {
                match action {
                    Action::Start { reshape: at, .. } if *at == reshape => flying += 1,
                    Action::Wait { reshape: at, .. } if *at == reshape => flying -= 1,
                    _ => {}
                }
                assert!(flying <= cut.window, "{told}: {flying} fly");
            }
            for tile in 0..cut.count() {
                let (start, wait) =
                    (place(Action::Start { reshape, tile }), place(Action::Wait { reshape, tile }));
                let (Some(start), Some(wait)) = (start, wait) else { panic!("{told}: {reshape}, {tile}") };
                assert!(start < wait, "{told}");
                for (at, action) in actions.iter().enumerate() {
                    let Action::Run { pass, part } = *action else { continue };
                    let touches = |end: &End, own: Option<usize>| {
                        let tiles = own
                            .map_or(part.batch_chunk * cut.along..(part.batch_chunk + 1) * cut.along, |t| {
                                t..t + 1
                            });
                        *end == End::Message(reshape) && tiles.contains(&tile)
                    };
                    assert!(
                        !touches(&schedule.passes[pass].to, part.to) || at < start,
                        "{told}: stored late"
                    );
                    assert!(
                        !touches(&schedule.passes[pass].from, part.from) || at > wait,
                        "{told}: loaded early"
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
            assert_eq!(done, whole, "{told}: pass {pass} of rank {rank}");
        }
    }

    fn problems() -> Vec<(Problem, usize)> {
        let slabs = Problem::c2c([12, 10, 9]);
        let bricks = || Problem::c2c([8, 12, 10]).input(LayoutSpec::bricks()).output(LayoutSpec::bricks());
        let pencils = Problem::r2c([8, 9, 10]).input(LayoutSpec::pencils(2)).batch(3);
        vec![(slabs.clone(), 2), (slabs.batch(5), 3), (bricks(), 4), (bricks().batch(2), 8), (pencils, 6)]
    }

    #[test]
    fn every_order_is_sound() {
        let way = Mechanism::Messages;
        for (problem, ranks) in problems() {
            let recipe = crate::design(
                &problem,
                &Choice::default(),
                Precision::F64,
                ranks,
                &crate::MachineSpeeds::default(),
            )
            .unwrap();
            for (fused, in_place, arrays) in
                [(true, false, 0), (false, false, 1), (true, true, 2), (false, true, 0)]
            {
                for direction in [Direction::Forward, Direction::Backward] {
                    for (tile, cut) in
                        [(0, None), (1, None), (3, Some(2)), (2, Some(1)), (4, Some(0)), (99, None)]
                    {
                        for (window, after) in [(1, true), (2, true), (50, true), (2, false)] {
                            // A second reshape in tiles of another size.
                            let one = Tiling::new(tile).cut(cut).window(window).after(after);
                            let tilings = [one, one.tile(tile + tile / 2)];
                            let fuse = &|_: &[_], _: &_| fused;
                            let terms = ScheduleOptions {
                                direction,
                                in_place,
                                with_operator: false,
                                mechanism: way,
                                exposed_ends: true,
                                tilings: &tilings,
                                fuse,
                            };
                            let schedule = schedule(&recipe, terms);
                            let batch_chunks = if arrays == 0 { 1 } else { problem.batch.div_ceil(arrays) };
                            let cuts = tiles::cut(&schedule, &tilings, problem.batch, batch_chunks);
                            let cuts = tiles::fit(&schedule, &cuts, in_place);
                            let told = format!("{problem:?} {direction:?} {tilings:?} in place {in_place}");
                            check(&schedule, &cuts, problem.batch, ranks, &told);
                        }
                    }
                }
            }
        }
    }

    /// Natural order in and out: a pass between two reshapes hands on what has
    /// come, where the axis that both leave alone is not the last one before them.
    #[test]
    fn reshapes_fly_together_where_an_axis_is_left_alone() {
        let way = Mechanism::Messages;
        let slabs = || LayoutSpec::slabs(0);
        let problem = Problem::c2c([8, 8, 8]).input(slabs()).output(slabs());
        let mut together = 0;
        for cut in [1, 2] {
            let choice = Choice::new().axes([cut, 3 - cut, 0]);
            let recipe =
                crate::design(&problem, &choice, Precision::F64, 2, &crate::MachineSpeeds::default())
                    .unwrap();
            let tilings = [Tiling::new(2).cut(cut).window(1)];
            let (direction, tilings, fuse) = (Direction::Forward, &tilings[..], &|_: &[_], _: &_| true);
            let terms = ScheduleOptions {
                direction,
                in_place: false,
                with_operator: false,
                mechanism: way,
                exposed_ends: true,
                tilings,
                fuse,
            };
            let schedule = schedule(&recipe, terms);
            let cuts = tiles::fit(&schedule, &tiles::cut(&schedule, tilings, 1, 1), false);
            let actions = actions(&schedule, &cuts);
            let at = |reshape, tile| {
                actions.iter().position(|action| *action == Action::Start { reshape, tile }).unwrap()
            };
            if at(1, 0) < at(0, cuts[0].count() - 1) {
                together += 1;
                // Two in a row are in use together: their buffers are apart.
                assert_eq!(BufferCycle::new(&schedule, &actions).buffers, [2, 2]);
            }
        }
        assert!(together > 0, "no axis lets two reshapes fly together");
    }

    /// Links are used both ways: no tile goes from one half of the ranks to the other only.
    #[test]
    fn every_rank_sends_in_every_tile() {
        let way = Mechanism::Messages;
        let slabs = || LayoutSpec::slabs(0);
        let problem = Problem::c2c([8, 8, 8]).input(slabs()).output(slabs());
        let recipe =
            crate::design(&problem, &Choice::default(), Precision::F64, 2, &crate::MachineSpeeds::default())
                .unwrap();
        let tilings = &[Tiling::new(2).window(2)][..];
        for (direction, fused) in
            [Direction::Forward, Direction::Backward].into_iter().flat_map(|way| [(way, true), (way, false)])
        {
            let fuse = &|_: &[_], _: &_| fused;
            let terms = ScheduleOptions {
                direction,
                in_place: false,
                with_operator: false,
                mechanism: way,
                exposed_ends: true,
                tilings,
                fuse,
            };
            let schedule = schedule(&recipe, terms);
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
