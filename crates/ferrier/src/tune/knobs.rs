//! What may be tuned of a [`Choice`]: one line for each of its fields.

use super::space::{Parameter, Point, Space, Value};
use crate::exchange::{EXCHANGES, Member, Way};
use crate::kernel::KERNELS;
use crate::layout::factor_pairs;
use crate::{Choice, Comm, MemoryUse, Path, Precision, Problem, Recipe, Step, design};

/// What decides which values make sense.
pub(super) struct Site<'a> {
    pub problem: &'a Problem,
    pub ranks: usize,
    /// Threads of a rank, as the planner would have them.
    pub threads: usize,
    /// Threads that a rank may have.
    pub most_threads: usize,
    /// Exchanges that work here, the default first.
    pub exchanges: Vec<&'static str>,
}

impl<'a> Site<'a> {
    pub fn new(comm: &Comm, problem: &'a Problem, given: &Choice) -> Self {
        let mut exchanges: Vec<_> =
            EXCHANGES.iter().filter(|member| works(member, comm)).map(|member| member.name).collect();
        let default = crate::plan::default_exchange(comm);
        exchanges.sort_by_key(|name| *name != default);
        Site {
            problem,
            ranks: comm.size(),
            threads: crate::plan::threads(comm, problem, given),
            most_threads: comm.threads(),
            exchanges,
        }
    }
}

/// Can ranks of this transport exchange in this way?
pub(crate) fn works(exchange: &Member, comm: &Comm) -> bool {
    let nodes = comm.node_count();
    nodes == 1 || !matches!(exchange.way_on(nodes), Way::Shared)
}

/// A field of [`Choice`] that may be tuned.
struct Knob {
    /// What it can be, where searches start first; `None`: nothing to tune here.
    values: fn(&Site<'_>) -> Option<Parameter>,
    /// Did the user decide it?
    decided: fn(&Choice) -> bool,
    set: fn(&mut Choice, &Value),
}

/// What the planner decides by itself.
const AUTO: &str = "auto";

/// All of them. Pipelining goes here, a line for each of its numbers.
#[rustfmt::skip]
static KNOBS: &[Knob] = &[
    Knob { values: exchanges, decided: |choice| choice.exchange.is_some(), set: |choice, value| choice.exchange = Some(value.name().into()) },
    Knob { values: kernels, decided: |choice| choice.kernel.is_some(), set: |choice, value| choice.kernel = Some(value.name().into()) },
    Knob { values: orders, decided: |choice| choice.axes.is_some(), set: |choice, value| choice.axes = numbers(value.name(), ',') },
    Knob { values: grids, decided: |choice| choice.path.is_some() || choice.grid.is_some() || choice.ranks.is_some(), set: set_grid },
    Knob { values: |_| Some(Parameter::category("fuse", [AUTO, "yes", "no"])), decided: |choice| choice.fuse.is_some(), set: |choice, value| choice.fuse = Some(value.name() == "yes") },
    Knob { values: |_| Some(Parameter::category("stream", [AUTO, "yes", "no"])), decided: |choice| choice.stream.is_some(), set: |choice, value| choice.stream = Some(value.name() == "yes") },
    Knob { values: |_| Some(Parameter::category("memory", ["fast", "small"])), decided: |choice| choice.memory == MemoryUse::Small, set: |choice, _| choice.memory = MemoryUse::Small },
    Knob { values: ranks, decided: |choice| choice.ranks.is_some() || choice.grid.is_some(), set: |choice, value| choice.ranks = Some(value.number()) },
    Knob { values: threads, decided: |choice| choice.threads.is_some(), set: |choice, value| choice.threads = Some(value.number()) },
];

fn exchanges(site: &Site<'_>) -> Option<Parameter> {
    (site.ranks > 1).then(|| Parameter::category("exchange", site.exchanges.iter().copied()))
}

/// Where bits must not depend on wisdom, the kernel is not for tuning.
fn kernels(site: &Site<'_>) -> Option<Parameter> {
    let names = || Parameter::category("kernel", KERNELS.iter().map(|member| member.name));
    (!site.problem.reproducible).then(names)
}

/// As for kernels.
fn orders(site: &Site<'_>) -> Option<Parameter> {
    if site.problem.reproducible {
        return None;
    }
    let mut found = vec![AUTO.to_string()];
    permute(&mut site.problem.axes.clone(), 0, &mut |axes| {
        if !site.problem.real || axes.first() == Some(&site.problem.halved) {
            found.push(axes.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
        }
    });
    Some(Parameter::category("axes", found))
}

/// Slabs, pencils of any grid, pencils of each.
fn grids(site: &Site<'_>) -> Option<Parameter> {
    let pencils = factor_pairs(site.ranks).filter(|&(p, q)| p > 1 && q > 1);
    let names =
        ["slab", "pencil"].map(String::from).into_iter().chain(pencils.map(|(p, q)| format!("{p}x{q}")));
    (site.ranks > 1).then(|| Parameter::category("grid", std::iter::once(AUTO.to_string()).chain(names)))
}

fn set_grid(choice: &mut Choice, value: &Value) {
    match value.name() {
        "slab" => choice.path = Some(Path::Slab),
        "pencil" => choice.path = Some(Path::Pencil),
        grid => choice.grid = numbers(grid, 'x').and_then(|list| list.try_into().ok()),
    }
}

/// How many ranks hold data between the first and the last reshape.
fn ranks(site: &Site<'_>) -> Option<Parameter> {
    Some(Parameter::log_scale("ranks", 1, site.ranks).from(site.ranks))
}

fn threads(site: &Site<'_>) -> Option<Parameter> {
    Some(Parameter::log_scale("threads", 1, site.most_threads.max(site.threads)).from(site.threads))
}

fn numbers(text: &str, separator: char) -> Option<Vec<usize>> {
    text.split(separator).map(|word| word.parse().ok()).collect()
}

/// All orders of the elements from `from` on.
fn permute(list: &mut Vec<usize>, from: usize, visit: &mut dyn FnMut(&[usize])) {
    if from + 1 >= list.len() {
        visit(list);
    }
    for at in from..if from + 1 < list.len() { list.len() } else { from } {
        list[from..=at].rotate_right(1);
        permute(list, from + 1, visit);
        list[from..=at].rotate_left(1);
    }
}

/// The space of what the user has not decided, and how its points are choices.
pub(super) struct Knobs {
    given: Choice,
    space: Space,
    /// The knob of each parameter.
    knobs: Vec<&'static Knob>,
}

impl Knobs {
    pub fn new(site: &Site<'_>, given: &Choice) -> Self {
        let free = KNOBS.iter().filter(|knob| !(knob.decided)(given));
        let found = free.filter_map(|knob| Some((knob, (knob.values)(site)?)));
        let (knobs, parameters): (Vec<_>, Vec<_>) =
            found.filter(|(_, parameter)| parameter.values().len() > 1).unzip();
        Knobs { given: given.clone(), space: Space::new(parameters), knobs }
    }

    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The choice of a point. What is as in the default stays undecided, so
    /// that the default is the user's own choice.
    pub fn choice(&self, point: &Point) -> Choice {
        let start = self.space.start();
        let mut choice = self.given.clone();
        for (at, knob) in self.knobs.iter().enumerate().filter(|(at, _)| point.0[*at] != start.0[*at]) {
            (knob.set)(&mut choice, &self.space.parameters()[at].values()[point.0[at]]);
        }
        choice
    }
}

/// Choices on this number of ranks: what they come to, what they would cost.
pub(super) struct Judge<'a> {
    pub site: Site<'a>,
    pub precision: Precision,
    /// The recipe that the search starts from.
    pub default: Recipe,
}

impl Judge<'_> {
    /// The recipe of a choice.
    ///
    /// # Errors
    /// Why it does not fit.
    fn recipe(&self, choice: &Choice) -> Result<Recipe, String> {
        let recipe = design(self.site.problem, choice, self.precision, self.site.ranks);
        let recipe = recipe.map_err(|error| error.to_string())?;
        // An output left to the planner must not move about with wisdom.
        if recipe.output != self.default.output {
            return Err(format!("the output would lie in {}", recipe.output.grid_text()));
        }
        Ok(recipe)
    }

    /// Two choices with the same identity are the same plan: how bytes would
    /// move does not matter where none move.
    pub fn identity(&self, choice: &Choice) -> Result<String, String> {
        let mut recipe = self.recipe(choice)?;
        if recipe.reshapes() == 0 {
            recipe.exchange.clear();
        }
        // What has gone into the recipe is compared there, the rest here.
        let rest = Choice {
            exchange: None,
            kernel: None,
            path: None,
            axes: None,
            ranks: None,
            grid: None,
            fuse: None,
            memory: MemoryUse::default(),
            threads: Some(choice.threads.unwrap_or(self.site.threads)),
            ..choice.clone()
        };
        Ok(format!("{:016x} {rest:?}", recipe.digest()))
    }

    /// Seconds by a crude model: bytes past memory and between ranks.
    pub fn predict(&self, choice: &Choice) -> f64 {
        let Ok(recipe) = self.recipe(choice) else { return f64::INFINITY };
        let threads = choice.threads.unwrap_or(self.site.threads).min(crate::machine::cores()) as f64;
        // A thread alone does not use all of the memory's speed, two nearly do.
        let memory = 8e9 * (1.0 + 0.7 * (threads - 1.0)).min(4.0);
        let kernel = if recipe.kernel == KERNELS[0].name { 1.0 } else { 1.7 };
        let shared =
            crate::exchange::find(&recipe.exchange).is_ok_and(|m| matches!(m.way_on(1), Way::Shared));
        let bytes = |elements: usize| (elements * 2 * recipe.precision.bytes() * recipe.batch) as f64;
        let mut seconds = 0.0;
        for (step, traffic) in recipe.steps.iter().zip(recipe.traffic()) {
            seconds += match step {
                Step::Transform { .. } => 0.0,
                Step::Reshape { .. } if shared => 1e-6,
                Step::Reshape { .. } => 2e-6 * traffic.messages_max as f64 + traffic.bytes_max as f64 / 4e9,
            };
        }
        let transforms = recipe.states().into_iter().skip(1).zip(&recipe.steps);
        let largest = |(state, step): (crate::recipe::State, &Step)| match step {
            Step::Transform { .. } => bytes(state.layout.largest()),
            Step::Reshape { .. } => 0.0,
        };
        seconds + kernel * 2.0 * transforms.map(largest).sum::<f64>() / memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(problem: &Problem, ranks: usize) -> Site<'_> {
        let exchanges = EXCHANGES.iter().map(|member| member.name).collect();
        Site { problem, ranks, threads: 2, most_threads: 6, exchanges }
    }

    fn names(knobs: &Knobs) -> Vec<&'static str> {
        knobs.space().parameters().iter().map(Parameter::name).collect()
    }

    #[test]
    fn what_is_decided_or_must_not_change_is_not_tuned() {
        let problem = Problem::c2c([8, 8, 8]);
        let all = Knobs::new(&site(&problem, 12), &Choice::default());
        assert_eq!(
            names(&all),
            ["exchange", "kernel", "axes", "grid", "fuse", "stream", "memory", "ranks", "threads"]
        );
        let alone = Knobs::new(&site(&problem, 1), &Choice::default());
        assert_eq!(names(&alone), ["kernel", "axes", "fuse", "stream", "memory", "threads"]);
        let given = Choice { threads: Some(1), fuse: Some(true), ..Choice::default() };
        let pinned = problem.clone().reproducible(true);
        assert_eq!(names(&Knobs::new(&site(&pinned, 1), &given)), ["stream", "memory"]);
    }

    #[test]
    fn points_are_choices_and_the_start_is_the_users() {
        let problem = Problem::r2c([8, 8, 8]).halved(1);
        let given = Choice { kernel: Some("native".into()), ..Choice::default() };
        let knobs = Knobs::new(&site(&problem, 12), &given);
        let space = knobs.space();
        assert_eq!(knobs.choice(&space.start()), given);
        let set = |name: &str, value: &str| {
            let mut point = space.start();
            let at = space.parameters().iter().position(|p| p.name() == name).unwrap();
            let values = space.parameters()[at].values();
            point.0[at] = values.iter().position(|v| v.to_string() == value).unwrap();
            knobs.choice(&point)
        };
        assert_eq!(set("grid", "3x4"), Choice { grid: Some([3, 4]), ..given.clone() });
        assert_eq!(set("grid", "slab"), Choice { path: Some(Path::Slab), ..given.clone() });
        assert_eq!(set("axes", "1,2,0"), Choice { axes: Some(vec![1, 2, 0]), ..given.clone() });
        assert_eq!(set("ranks", "8"), Choice { ranks: Some(8), ..given.clone() });
        assert_eq!(set("threads", "6"), Choice { threads: Some(6), ..given.clone() });
        assert_eq!(set("fuse", "no"), Choice { fuse: Some(false), ..given.clone() });
        // The halved axis comes first in all orders of a real transform.
        let axes = space.parameters().iter().find(|p| p.name() == "axes").unwrap();
        assert_eq!(axes.values().iter().map(Value::name).collect::<Vec<_>>(), [AUTO, "1,0,2", "1,2,0"]);
    }

    #[test]
    fn same_plans_have_one_identity_and_impossible_ones_a_reason() {
        let problem = Problem::c2c([8, 8, 8]);
        let default = design(&problem, &Choice::default(), Precision::F64, 4).unwrap();
        let judge = Judge { site: site(&problem, 4), precision: Precision::F64, default };
        let identity = |choice: Choice| judge.identity(&choice);
        let auto = identity(Choice::default()).unwrap();
        assert_eq!(identity(Choice { threads: Some(2), ..Choice::default() }).unwrap(), auto);
        assert_ne!(identity(Choice { threads: Some(1), ..Choice::default() }).unwrap(), auto);
        assert_ne!(
            identity(Choice { exchange: Some("all_to_all".into()), ..Choice::default() }).unwrap(),
            auto
        );
        let grid = Choice { grid: Some([3, 2]), ..Choice::default() };
        assert!(identity(grid.clone()).unwrap_err().contains("3x2"));
        assert_eq!(judge.predict(&grid), f64::INFINITY);
        assert!(judge.predict(&Choice::default()) > 0.0);
    }
}
