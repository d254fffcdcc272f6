//! Predicted seconds of the steps of a call.

use serde::Serialize;

use super::call::{CallShapes, scheduled};
use super::exchange::ExchangeShape;
use super::machine::Machine;
use super::pass::PassCost;
use super::setting::Setting;
use crate::layout::Layout;
use crate::order::{Action, actions};
use crate::recipe::Recipe;
use crate::schedule::{Direction, Pass, Schedule};

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

/// What a tile of a reshape takes, as far as its messages go.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExchangeCost {
    /// Seconds in which a rank starts its messages.
    pub start: f64,
    /// Seconds from then until those that it sends, and those that it receives, have arrived.
    pub transfer: [f64; 2],
    /// Bytes that a rank encodes, or decodes, if messages are encoded.
    pub coded_bytes: f64,
}

/// What is known of a call besides what the cost model of a rank says.
#[derive(Clone, Debug, PartialEq)]
pub struct CallCosts {
    /// The cost of each tile of each reshape; empty: that of each rank, as if all ranks and tiles were alike.
    pub exchanges: Vec<Vec<ExchangeCost>>,
    /// How many times as long passes take.
    pub slow_passes: f64,
}

impl Default for CallCosts {
    fn default() -> Self {
        CallCosts { exchanges: Vec::new(), slow_passes: 1.0 }
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
    let (schedule, cuts) = scheduled(recipe, direction, in_place, setting);
    let kind = (direction, in_place);
    let shapes = CallShapes { recipe, schedule: &schedule, cuts: &cuts, kind, setting, machine };
    predict_call(&shapes, &CallCosts::default())
}

/// The predicted times of a call whose schedule is known.
pub fn predict_call(shapes: &CallShapes<'_>, costs: &CallCosts) -> Prediction {
    let actions = actions(shapes.schedule, shapes.cuts);
    let mut merged: Option<Vec<StepCost>> = None;
    for rank in busiest(shapes.schedule) {
        let timeline = Timeline { rank, shapes, costs };
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
    // Rows of smaller boxes may take longer: those that are not whole cache lines.
    for pass in &schedule.passes {
        let boxes = pass.arrive.layout.boxes();
        let filled = (0..boxes.len()).filter(|&rank| !boxes[rank].is_empty());
        let smallest = filled.min_by_key(|&rank| boxes[rank].volume());
        if let Some(rank) = smallest.filter(|rank| found.len() < RANKS && !found.contains(rank)) {
            found.push(rank);
        }
    }
    if found.is_empty() {
        found.push(0);
    }
    found
}

/// The steps of one rank in the order of time.
struct Timeline<'a> {
    rank: usize,
    shapes: &'a CallShapes<'a>,
    costs: &'a CallCosts,
}

/// Which pass, exchange or coding a step belongs to: its tiles are counted together.
type Key = (u8, usize);

impl Timeline<'_> {
    /// The cost of each tile of each reshape.
    fn exchanges(&self) -> Vec<Vec<ExchangeCost>> {
        let CallShapes { schedule, cuts, setting, machine, .. } = *self.shapes;
        let cost = |reshape: usize| {
            if let Some(tiles) = self.costs.exchanges.get(reshape) {
                return tiles.clone();
            }
            let shape = self.shapes.exchange(self.rank, reshape).tile(cuts[reshape].count());
            let part = if setting.coded { machine.constants.encoded_part } else { 1.0 };
            let sent = ExchangeShape {
                wire_bytes: shape.wire_bytes * part,
                node_bytes: shape.node_bytes * part,
                ..shape
            };
            let cost = ExchangeCost {
                start: sent.start_seconds(machine),
                transfer: [sent.transfer_seconds(machine); 2],
                coded_bytes: shape.wire_bytes + shape.node_bytes,
            };
            vec![cost; cuts[reshape].count()]
        };
        (0..schedule.reshapes.len()).map(cost).collect()
    }

    fn steps(&self, actions: &[Action]) -> Vec<StepCost> {
        let CallShapes { schedule, setting, machine, .. } = *self.shapes;
        let mut steps: Vec<(Option<Key>, StepCost)> = Vec::new();
        let mut add =
            |key: Option<Key>, name: &dyn Fn() -> String, seconds: f64, pass: Option<PassCost>| match steps
                .iter_mut()
                .find(|(known, _)| key.is_some() && *known == key)
            {
                Some((_, known)) => known.seconds += seconds,
                None => steps.push((key, StepCost { name: name(), seconds, pass })),
            };
        let exchanges = self.exchanges();
        // The clock of the rank, when the network is free again each way, and when each tile has arrived.
        let (mut now, mut free) = (0.0_f64, [0.0_f64; 2]);
        let mut arrivals: Vec<Vec<f64>> = vec![Vec::new(); exchanges.len()];
        let constants = &machine.constants;
        // Time in which other ranks have the core; the next barrier, the next message, or the end waits for them.
        let (mut late, mut last) = (0.0, None);
        for action in actions {
            match *action {
                Action::Barrier => {
                    let ranks = self.shapes.recipe.ranks().max(2) as f64;
                    let seconds = constants.barrier_s * ranks.log2() + std::mem::take(&mut late);
                    now += seconds;
                    add(None, &|| "wait".into(), seconds, None);
                }
                Action::Run { pass, part } => {
                    let cost = self.shapes.pass(self.rank, pass, part).cost(machine);
                    let seconds = cost.own_seconds(constants) * self.costs.slow_passes;
                    late += cost.late_seconds(constants) * self.costs.slow_passes;
                    now += seconds;
                    let name = || pass_name(&schedule.passes[pass]);
                    last = Some((0, pass));
                    add(last, &name, seconds, Some(cost));
                }
                Action::Start { reshape, tile } | Action::Wait { reshape, tile } => {
                    let cost = exchanges[reshape].get(tile).copied().unwrap_or_default();
                    let name = &schedule.reshapes[reshape].name;
                    let coding = |speed: f64| self.shapes.coding_seconds(self.rank, cost.coded_bytes, speed);
                    if let Action::Start { .. } = action {
                        if setting.coded {
                            let seconds = coding(constants.encode_bytes_s);
                            now += seconds;
                            add(Some((1, reshape)), &|| format!("encode {name}"), seconds, None);
                        }
                        now += cost.start;
                        let mut arrival = now;
                        // What does not come or go is not waited for.
                        let ways = free.iter_mut().zip(cost.transfer).filter(|(_, transfer)| *transfer > 0.0);
                        for (free, transfer) in ways {
                            *free = free.max(now) + transfer;
                            arrival = arrival.max(*free);
                        }
                        arrivals[reshape].push(arrival);
                        add(Some((2, reshape)), &|| name.clone(), cost.start, None);
                    } else {
                        let arrival = arrivals[reshape].first().copied().unwrap_or(now);
                        if !arrivals[reshape].is_empty() {
                            arrivals[reshape].remove(0);
                        }
                        // The others send when they have had the core.
                        let seconds = (arrival - now).max(0.0) + std::mem::take(&mut late);
                        now += seconds;
                        add(Some((2, reshape)), &|| name.clone(), seconds, None);
                        if setting.coded {
                            let seconds = coding(constants.decode_bytes_s);
                            now += seconds;
                            add(Some((3, reshape)), &|| format!("decode {name}"), seconds, None);
                        }
                    }
                }
            }
        }
        if last.is_some() {
            add(last, &String::new, late, None);
        }
        if setting.coded {
            add(None, &|| CERTIFICATE.into(), self.shapes.certificate_seconds(self.rank), None);
        }
        steps.into_iter().map(|(_, step)| step).collect()
    }
}

/// The name of the step that certifies results of encoded messages.
pub const CERTIFICATE: &str = "certificate";

/// The name of a pass, as in `ferrier::StepTime`.
pub fn pass_name(pass: &Pass) -> String {
    match &pass.transforms[..] {
        [] => "copy".into(),
        transforms => {
            transforms.iter().map(|transform| transform.name.as_str()).collect::<Vec<_>>().join(" + ")
        }
    }
}
