//! Predicted seconds of the steps of a call.

use serde::Serialize;

use super::build::{PassDomain, PassEnd, pass_shape};
use super::exchange::ExchangeShape;
use super::machine::Machine;
use super::pass::{PassCost, PassShape};
use super::setting::Setting;
use crate::geometry::{Base, Geometry, Piece, width};
use crate::layout::{Box3, Layout};
use crate::lowering::{EndStrides, RankContext};
use crate::order::{Action, BufferCycle, PassPart, actions};
use crate::recipe::{Distribution, Recipe};
use crate::schedule::{
    ArraySlot, AxisTransform, Direction, End, Pass, Schedule, ScheduleOptions, may_fuse, schedule, tilings,
};
use crate::tiles::{self, Tiles};

/// Ranks that a prediction is made for at most: those with the largest boxes.
const RANKS: usize = 3;

/// The predicted time of a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StepCost {
    /// The name of the step, as in `ferrier::StepTime`.
    pub name: String,
    /// Seconds on the rank that takes longest.
    pub seconds: f64,
    /// Where the seconds of a pass go.
    #[serde(skip)]
    pub pass: Option<PassCost>,
}

/// The predicted times of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Prediction {
    /// The steps, in order.
    pub steps: Vec<StepCost>,
}

impl Prediction {
    /// Seconds of the call: the sum of its steps.
    pub fn seconds(&self) -> f64 {
        self.steps.iter().map(|step| step.seconds).sum()
    }
}

/// The predicted times of `forward` or `backward`, out of place or in place.
pub fn predict(
    recipe: &Recipe,
    direction: Direction,
    in_place: bool,
    setting: &Setting<'_>,
    machine: &Machine,
) -> Prediction {
    let fuse = |transforms: &[AxisTransform], state: &Distribution| {
        may_fuse(recipe, (setting.plane_bytes, setting.threads), transforms, state)
    };
    let tilings = tilings(recipe, direction);
    let options = ScheduleOptions {
        direction,
        in_place,
        alike: true,
        with_operator: false,
        mechanism: setting.mechanism,
        exposed_ends: setting.exposed_ends,
        tilings: &tilings,
        fuse: &fuse,
    };
    let schedule = schedule(recipe, options);
    let batch_chunks = match recipe.overlap.arrays {
        0 => 1,
        arrays => recipe.batch.div_ceil(arrays).max(1),
    };
    let cuts = tiles::cut(&schedule, &tilings, recipe.batch, batch_chunks);
    let cuts = tiles::fit(&schedule, &cuts, in_place);
    predict_schedule(recipe, &schedule, &cuts, (direction, in_place), setting, machine)
}

/// The predicted times of a schedule of `recipe`, cut into these tiles.
pub fn predict_schedule(
    recipe: &Recipe,
    schedule: &Schedule,
    cuts: &[Tiles],
    (direction, in_place): (Direction, bool),
    setting: &Setting<'_>,
    machine: &Machine,
) -> Prediction {
    let actions = actions(schedule, cuts);
    let mut merged: Option<Vec<StepCost>> = None;
    for rank in busiest(schedule) {
        let context = RankContext {
            rank,
            ranks: recipe.ranks(),
            batch: recipe.batch,
            scalar_bytes: recipe.precision.bytes(),
            memory: recipe.memory,
            in_place,
            strides: &EndStrides::default(),
            memory_policy: setting.memory_policy,
            halved: recipe.padded_axis(),
            packed_rows: direction == Direction::Backward,
            cuts,
            cycle: BufferCycle { buffers: [1; 2], local: 1 },
            exchanges: &[],
            encoding: None,
        };
        let timeline = Timeline { context: &context, schedule, cuts, setting, machine };
        let steps = timeline.steps(&actions);
        match &mut merged {
            None => merged = Some(steps),
            Some(all) => {
                for (known, step) in all.iter_mut().zip(steps) {
                    if step.seconds > known.seconds {
                        *known = step;
                    }
                }
            }
        }
    }
    Prediction { steps: merged.unwrap_or_default() }
}

/// Ranks with the largest boxes of the arrays of a schedule, at most [`RANKS`].
fn busiest(schedule: &Schedule) -> Vec<usize> {
    let mut found = Vec::with_capacity(RANKS);
    let mut add = |layout: &Layout| {
        // Of equal boxes, one in the middle: ranks at the edge have fewer neighbours.
        let volume = |rank: usize| layout.boxes()[rank].volume();
        let ranks = layout.ranks();
        let middle = (0..ranks).map(|rank| (rank + ranks / 2) % ranks);
        let largest = middle.reduce(|best, rank| if volume(rank) > volume(best) { rank } else { best });
        if let Some(rank) = largest.filter(|rank| found.len() < RANKS && !found.contains(rank)) {
            found.push(rank);
        }
    };
    for pass in &schedule.passes {
        add(&pass.arrive.layout);
    }
    if found.is_empty() {
        found.push(0);
    }
    found
}

/// The steps of one rank in the order of time.
struct Timeline<'a> {
    context: &'a RankContext<'a>,
    schedule: &'a Schedule,
    cuts: &'a [Tiles],
    setting: &'a Setting<'a>,
    machine: &'a Machine,
}

/// Which pass, exchange or coding a step belongs to: its tiles are counted together.
type Key = (u8, usize);

impl Timeline<'_> {
    fn steps(&self, actions: &[Action]) -> Vec<StepCost> {
        let mut steps: Vec<(Option<Key>, StepCost)> = Vec::new();
        let mut add =
            |key: Option<Key>, name: &dyn Fn() -> String, seconds: f64, pass: Option<PassCost>| match steps
                .iter_mut()
                .find(|(known, _)| key.is_some() && *known == key)
            {
                Some((_, known)) => known.seconds += seconds,
                None => steps.push((key, StepCost { name: name(), seconds, pass })),
            };
        let exchanges: Vec<ExchangeShape> =
            (0..self.schedule.reshapes.len()).map(|reshape| self.exchange(reshape)).collect();
        // The clock of the rank, when the network is free again, and when each tile has arrived.
        let (mut now, mut free) = (0.0_f64, 0.0_f64);
        let mut arrivals: Vec<Vec<f64>> = vec![Vec::new(); exchanges.len()];
        let constants = &self.machine.constants;
        // Time in which other ranks had the core; the next barrier waits for them.
        let mut late = 0.0;
        for action in actions {
            match *action {
                Action::Barrier => {
                    let ranks = self.context.ranks.max(2) as f64;
                    let seconds = constants.barrier_s * ranks.log2() + std::mem::take(&mut late);
                    now += seconds;
                    add(None, &|| "wait".into(), seconds, None);
                }
                Action::Run { pass, part } => {
                    let cost = self.pass(pass, part).cost(self.machine);
                    // Of ranks that share a core each runs for a time slice: a short pass is not interrupted.
                    let part = 1.0 / (1.0 + (constants.slice_s / cost.alone.max(1e-9)).powi(2));
                    let seconds = cost.alone + (cost.seconds - cost.alone) * part;
                    late += cost.seconds - seconds;
                    now += seconds;
                    let name = || pass_name(&self.schedule.passes[pass]);
                    add(Some((0, pass)), &name, seconds, Some(cost));
                }
                Action::Start { reshape, .. } | Action::Wait { reshape, .. } => {
                    let shape = exchanges[reshape].tile(self.cuts[reshape].count());
                    let name = &self.schedule.reshapes[reshape].name;
                    let bytes = shape.wire_bytes + shape.node_bytes;
                    let coding = |speed: f64| if self.setting.coded { bytes / speed } else { 0.0 };
                    let sent = match self.setting.coded {
                        true => ExchangeShape {
                            wire_bytes: shape.wire_bytes * constants.encoded_part,
                            node_bytes: shape.node_bytes * constants.encoded_part,
                            ..shape
                        },
                        false => shape,
                    };
                    if let Action::Start { .. } = action {
                        if self.setting.coded {
                            let seconds = coding(constants.encode_bytes_s);
                            now += seconds;
                            add(Some((1, reshape)), &|| format!("encode {name}"), seconds, None);
                        }
                        let seconds = sent.start_seconds(self.machine);
                        now += seconds;
                        free = free.max(now) + sent.transfer_seconds(self.machine);
                        arrivals[reshape].push(free);
                        add(Some((2, reshape)), &|| name.clone(), seconds, None);
                    } else {
                        let arrival = arrivals[reshape].first().copied().unwrap_or(now);
                        if !arrivals[reshape].is_empty() {
                            arrivals[reshape].remove(0);
                        }
                        let seconds = (arrival - now).max(0.0);
                        now += seconds;
                        add(Some((2, reshape)), &|| name.clone(), seconds, None);
                        if self.setting.coded {
                            let seconds = coding(constants.decode_bytes_s);
                            now += seconds;
                            add(Some((3, reshape)), &|| format!("decode {name}"), seconds, None);
                        }
                    }
                }
            }
        }
        steps.into_iter().map(|(_, step)| step).collect()
    }

    fn exchange(&self, reshape: usize) -> ExchangeShape {
        let reshape = &self.schedule.reshapes[reshape];
        let element = width(reshape.real) * self.context.scalar_bytes * self.context.batch;
        ExchangeShape::new(&reshape.from, &reshape.to, element, self.context.rank, self.setting)
    }

    fn pass(&self, number: usize, part: PassPart) -> PassShape {
        let (context, pass) = (self.context, &self.schedule.passes[number]);
        let [arrive, leave] = [&pass.arrive, &pass.leave]
            .map(|state| context.part_of(self.schedule, pass, part, &state.layout.boxes()[context.rank]));
        let from = self.pieces(&pass.from, &arrive, false);
        let to = self.pieces(&pass.to, &leave, true);
        let domain = PassDomain {
            rank: context.rank,
            arrive,
            transforms: &pass.transforms,
            arrays: context.arrays(part.batch_chunk).len(),
            scalar_bytes: context.scalar_bytes,
            in_place: self.returns(pass),
            ranks_on_node: self.setting.ranks_on_host(context.rank, context.ranks),
        };
        let from = PassEnd { pieces: &from, real: pass.arrive.real };
        let to = PassEnd { pieces: &to, real: pass.leave.real };
        pass_shape(&domain, &from, &to, self.setting, self.machine)
    }

    /// Whether lines are stored where they were loaded from.
    fn returns(&self, pass: &Pass) -> bool {
        let memory = |slot: ArraySlot| match slot {
            ArraySlot::In if self.context.in_place => ArraySlot::Out,
            slot => slot,
        };
        match (&pass.from, &pass.to) {
            (End::Own(a, one), End::Own(b, two)) | (End::Peers(a, one), End::Peers(b, two)) => {
                memory(*a) == memory(*b) && one == two
            }
            _ => false,
        }
    }

    /// The pieces of memory at an end of a pass. Their offsets are not needed here.
    fn pieces(&self, end: &End, domain: &Box3, sending: bool) -> Vec<Piece> {
        let piece = |geometry: Geometry, rank: usize| {
            let region = geometry.part.intersect(domain);
            let Geometry { strides, batch, .. } = geometry;
            (!region.is_empty()).then_some(Piece {
                region,
                rank,
                base: Base::Work,
                offset: 0,
                strides,
                batch,
            })
        };
        let rank = self.context.rank;
        match end {
            End::Own(slot, array) => {
                piece(self.context.geometry(*slot, array, rank), rank).into_iter().collect()
            }
            End::Peers(slot, array) => {
                let met = array.layout.intersections(domain).into_iter();
                met.filter_map(|(peer, _)| piece(self.context.geometry(*slot, array, peer), peer)).collect()
            }
            End::Message(index) => {
                let reshape = &self.schedule.reshapes[*index];
                let (own, theirs) = match sending {
                    true => (&reshape.from, &reshape.to),
                    false => (&reshape.to, &reshape.from),
                };
                let of = |(peer, both): (usize, Box3)| {
                    let region = both.intersect(domain);
                    let holder = if !sending && self.setting.remote_buffers { peer } else { rank };
                    (!region.is_empty())
                        .then(|| piece(Geometry::dense(region, reshape.to.order(), reshape.real), holder))?
                };
                theirs.intersections(&own.boxes()[rank]).into_iter().filter_map(of).collect()
            }
        }
    }
}

fn pass_name(pass: &Pass) -> String {
    match &pass.transforms[..] {
        [] => "copy".into(),
        transforms => {
            transforms.iter().map(|transform| transform.name.as_str()).collect::<Vec<_>>().join(" + ")
        }
    }
}
