//! What may be tuned of a [`Choice`]: one line for each of its fields.

use super::fine::{self, Fine};
use crate::exchange::{EXCHANGES, Member};
use crate::kernel::KERNELS;
use crate::{
    Choice, Comm, Decomposition, MemoryUse, Overlap, Precision, Problem, Progress, Recipe, Step, Tiling,
    design,
};
use ferrier_plan::layout::factor_pairs;
use ferrier_plan::messages::Mechanism;
use ferrier_search::{Parameter, Point, Space, Value};

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
    /// On how many nodes.
    pub nodes: usize,
    /// Where the search for tiles starts; `None` where no messages are sent.
    pub tiling: Option<Tiling>,
    /// May a thread look after what flies?
    pub watched: bool,
}

impl<'a> Site<'a> {
    pub fn new(comm: &Comm, problem: &'a Problem, given: &Choice) -> Self {
        let encodes = crate::planner::encodes_in_nodes(comm, problem, given);
        // Where ranks share memory nothing can be encoded.
        let fits = |member: &Member| {
            let shares = member.mechanism.on_nodes(comm.node_count()).shares();
            works(member, comm) && !(encodes && shares)
        };
        let mut exchanges: Vec<_> =
            EXCHANGES.iter().filter(|member| fits(member)).map(|member| member.name).collect();
        let default = crate::planner::default_exchange(comm, encodes);
        exchanges.sort_by_key(|name| *name != default);
        let nodes = comm.node_count();
        let exchange = crate::exchange::find(given.exchange.as_deref().unwrap_or(default));
        let sends = comm.size() > 1 && exchange.is_ok_and(|member| member.sends_messages(nodes));
        let tiling = given.overlap.as_ref().and_then(|overlap| overlap.forward.first().copied());
        Site {
            problem,
            ranks: comm.size(),
            threads: crate::planner::threads(comm, problem, given),
            most_threads: comm.threads(),
            exchanges,
            nodes,
            tiling: sends.then(|| tiling.unwrap_or_default()),
            watched: comm.transport().may_watch().is_ok(),
        }
    }
}

/// Can ranks of this transport exchange in this way?
pub(crate) fn works(exchange: &Member, comm: &Comm) -> bool {
    let nodes = comm.node_count();
    nodes == 1 || !matches!(exchange.mechanism.on_nodes(nodes), Mechanism::SharedMemory)
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

/// All of them.
#[rustfmt::skip]
static KNOBS: &[Knob] = &[
    Knob { values: exchanges, decided: |choice| choice.exchange.is_some(), set: |choice, value| choice.exchange = Some(value.name().into()) },
    Knob { values: kernels, decided: |choice| choice.kernel.is_some(), set: |choice, value| choice.kernel = Some(value.name().into()) },
    Knob { values: orders, decided: |choice| choice.axes.is_some(), set: |choice, value| choice.axes = numbers(value.name(), ',') },
    Knob { values: grids, decided: |choice| choice.path.is_some() || choice.grid.is_some() || choice.ranks.is_some(), set: set_grid },
    Knob { values: |_| Some(Parameter::category("fuse", [AUTO, "yes", "no"])), decided: |choice| choice.fuse.is_some(), set: |choice, value| choice.fuse = Some(value.name() == "yes") },
    Knob { values: |_| Some(Parameter::category("stream", [AUTO, "yes", "no"])), decided: |choice| choice.stream.is_some(), set: |choice, value| choice.stream = Some(value.name() == "yes") },
    Knob { values: |_| Some(Parameter::category("pockets", [AUTO, "yes", "no"])), decided: |choice| choice.staging.is_some(), set: |choice, value| choice.staging = Some(value.name() == "yes") },
    Knob { values: |_| Some(Parameter::category("memory", ["fast", "small"])), decided: |choice| choice.memory == MemoryUse::Small, set: |choice, _| choice.memory = MemoryUse::Small },
    Knob { values: ranks, decided: |choice| choice.ranks.is_some() || choice.grid.is_some(), set: |choice, value| choice.ranks = Some(value.number()) },
    Knob { values: tiles, decided: |choice| choice.overlap.is_some(), set: |choice, value| tiling(choice, |tiling| tiling.tile = value.number()) },
    Knob { values: windows, decided: |choice| choice.overlap.is_some(), set: |choice, value| tiling(choice, |tiling| tiling.window = value.number()) },
    Knob { values: polls, decided: |choice| choice.overlap.is_some(), set: |choice, value| tiling(choice, |tiling| tiling.polls = value.number()) },
    Knob { values: cuts, decided: |choice| choice.overlap.is_some(), set: |choice, value| tiling(choice, |tiling| tiling.cut = value.name().parse().ok()) },
    Knob { values: lots, decided: |choice| choice.overlap.is_some(), set: |choice, value| choice.overlap.get_or_insert_default().arrays = value.number() },
    Knob { values: watches, decided: |choice| choice.progress.is_some(), set: |choice, value| choice.progress = Some(if value.name() == THREAD { Progress::Thread } else { Progress::Poll }) },
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
        if site.problem.is_legal_order(axes) {
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
        "slab" => choice.path = Some(Decomposition::Slab),
        "pencil" => choice.path = Some(Decomposition::Pencil),
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

/// Indices in a tile; the length of the longest axis is a single tile.
fn tiles(site: &Site<'_>) -> Option<Parameter> {
    let (longest, start) = (longest(site.problem), site.tiling?.tile);
    let start = if start == 0 { longest } else { start };
    Some(Parameter::log_scale("tile", 1, longest).from(start))
}

/// How many fly at once: more than some are no better, and all take buffers.
fn windows(site: &Site<'_>) -> Option<Parameter> {
    Some(Parameter::log_scale("window", 1, 8).from(site.tiling?.window))
}

/// How many arrays of a batch go at once.
fn lots(site: &Site<'_>) -> Option<Parameter> {
    let batch = site.problem.batch;
    site.tiling.filter(|_| batch > 1).map(|_| Parameter::log_scale("arrays", 1, batch).from(batch))
}

const THREAD: &str = "thread";

/// Who looks after what flies.
fn watches(site: &Site<'_>) -> Option<Parameter> {
    site.tiling.filter(|_| site.watched).map(|_| Parameter::category("progress", ["poll", THREAD]))
}

/// How often a pass over a tile tests those that fly.
fn polls(site: &Site<'_>) -> Option<Parameter> {
    Some(Parameter::log_scale("polls", 0, 128).from(site.tiling?.polls))
}

/// The axis that is cut, where one was asked for that first.
fn cuts(site: &Site<'_>) -> Option<Parameter> {
    let mut names = [AUTO, "0", "1", "2"];
    let start = site.tiling?.cut.map_or(0, |axis| axis + 1);
    names[..=start].rotate_right(1);
    Some(Parameter::category("cut", names))
}

pub(super) fn longest(problem: &Problem) -> usize {
    problem.shape.into_iter().max().unwrap_or(1)
}

/// Changes the tiles of all reshapes.
fn tiling(choice: &mut Choice, change: impl FnOnce(&mut Tiling)) {
    let given = choice.overlap.as_ref().and_then(|overlap| overlap.forward.first().copied());
    let mut tiling = given.unwrap_or_default();
    change(&mut tiling);
    let arrays = choice.overlap.as_ref().map_or(0, |overlap| overlap.arrays);
    choice.overlap = Some(Overlap::uniform(tiling).arrays(arrays));
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
    /// What sets the field of each parameter.
    setters: Vec<Setter>,
}

enum Setter {
    Whole(&'static Knob),
    Fine(Fine),
}

impl Setter {
    fn set(&self, choice: &mut Choice, value: &Value) {
        match self {
            Setter::Whole(knob) => (knob.set)(choice, value),
            Setter::Fine(fine) => fine.set(choice, value),
        }
    }
}

impl Knobs {
    pub fn new(site: &Site<'_>, given: &Choice, only: &[&str]) -> Self {
        let found = KNOBS.iter().filter_map(|knob| Some((knob, (knob.values)(site)?)));
        let free = |knob: &Knob, name: &str| match only {
            [] => !(knob.decided)(given),
            names => names.contains(&name),
        };
        let (setters, parameters): (Vec<_>, Vec<_>) = found
            .filter(|(knob, parameter)| parameter.values().len() > 1 && free(knob, parameter.name()))
            .map(|(knob, parameter)| (Setter::Whole(knob), parameter))
            .unzip();
        Knobs { given: given.clone(), space: Space::new(parameters), setters }
    }

    /// What can be told apart when a choice is nearly good: tiles, windows and
    /// polls of each of so many reshapes in each direction, and lines in a block.
    pub fn fine(site: &Site<'_>, given: &Choice, reshapes: usize) -> Self {
        let found = fine::all(site, given, reshapes).into_iter().map(|(fine, p)| (Setter::Fine(fine), p));
        let (setters, parameters): (Vec<_>, Vec<_>) =
            found.filter(|(_, parameter)| parameter.values().len() > 1).unzip();
        Knobs { given: given.clone(), space: Space::new(parameters), setters }
    }

    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The choice of a point. What is as in the default stays undecided, so
    /// that the default is the user's own choice.
    pub fn choice(&self, point: &Point) -> Choice {
        let start = self.space.start();
        let mut choice = self.given.clone();
        for (at, setter) in self.setters.iter().enumerate().filter(|(at, _)| point.0[*at] != start.0[*at]) {
            setter.set(&mut choice, &self.space.parameters()[at].values()[point.0[at]]);
        }
        // A window without tiles says nothing.
        let tiled = |overlap: &Overlap| {
            overlap.arrays > 0 || overlap.forward.iter().chain(&overlap.backward).any(|t| t.tile > 0)
        };
        if self.given.overlap.is_none() && !choice.overlap.as_ref().is_some_and(tiled) {
            choice.overlap = None;
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
        // The exchange that ranks agree on where nobody asks for one is not known to the design.
        let mut choice = choice.clone();
        choice.exchange = choice.exchange.or(self.site.exchanges.first().map(|&name| name.into()));
        let recipe = design(self.site.problem, &choice, self.precision, self.site.ranks);
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
        if recipe.exchange.is_empty() || self.tiles(&recipe) == 1 {
            recipe.overlap = Overlap::default();
        }
        // What has gone into the recipe is compared there, the rest here.
        let mut rest = choice
            .clone()
            .path(None)
            .ranks(None)
            .grid(None)
            .fuse(None)
            .memory(MemoryUse::default())
            .overlap(None)
            .threads(choice.threads.unwrap_or(self.site.threads));
        (rest.exchange, rest.kernel, rest.axes) = (None, None, None);
        Ok(format!("{:016x} {rest:?}", recipe.digest()))
    }

    /// Does anything of a choice go in tiles?
    pub fn is_tiled(&self, choice: &Choice) -> bool {
        self.recipe(choice).is_ok_and(|recipe| self.tiles(&recipe) > 1)
    }

    /// Into how many tiles a reshape is cut at most.
    fn tiles(&self, recipe: &Recipe) -> usize {
        let sends = crate::exchange::find(&recipe.exchange).is_ok_and(|m| m.sends_messages(self.site.nodes));
        let all = recipe.overlap.forward.iter().chain(&recipe.overlap.backward);
        let sizes = all.map(|tiling| tiling.tile).filter(|&tile| sends && tile > 0);
        let lots = match recipe.overlap.arrays {
            arrays @ 1.. if sends => recipe.batch.div_ceil(arrays),
            _ => 1,
        };
        lots * sizes.map(|tile| longest(self.site.problem).div_ceil(tile)).max().unwrap_or(1)
    }

    /// Seconds by a crude model: bytes past memory and between ranks.
    pub fn predict(&self, choice: &Choice) -> f64 {
        let Ok(recipe) = self.recipe(choice) else { return f64::INFINITY };
        let threads = choice.threads.unwrap_or(self.site.threads).min(crate::machine::cores()) as f64;
        // A thread alone does not use all of the memory's speed, two nearly do.
        let memory = 8e9 * (1.0 + 0.7 * (threads - 1.0)).min(4.0);
        let kernel = if recipe.kernel == KERNELS[0].name { 1.0 } else { 1.7 };
        let shared = crate::exchange::find(&recipe.exchange)
            .is_ok_and(|m| matches!(m.mechanism.on_nodes(1), Mechanism::SharedMemory));
        let bytes = |elements: usize| (elements * 2 * recipe.precision.bytes() * recipe.batch) as f64;
        let tiles = self.tiles(&recipe) as f64;
        let mut seconds = 0.0;
        for (step, traffic) in recipe.steps.iter().zip(recipe.traffic()) {
            seconds += match step {
                Step::Transform { .. } => 0.0,
                Step::Reshape { .. } if shared => 1e-6,
                // Half of the flight of all tiles but one is hidden, at the price of more messages.
                Step::Reshape { .. } => {
                    let flight = traffic.bytes_max as f64 / 4e9;
                    2e-6 * traffic.messages_max as f64 * tiles + flight * (0.5 + 0.5 / tiles)
                }
            };
        }
        let transforms = recipe.distributions().into_iter().skip(1).zip(&recipe.steps);
        let largest = |(state, step): (ferrier_plan::recipe::Distribution, &Step)| match step {
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
        Site { problem, ranks, threads: 2, most_threads: 6, exchanges, nodes: 1, tiling: None, watched: true }
    }

    fn names(knobs: &Knobs) -> Vec<&'static str> {
        knobs.space().parameters().iter().map(Parameter::name).collect()
    }

    #[test]
    fn what_is_decided_or_must_not_change_is_not_tuned() {
        let problem = Problem::c2c([8, 8, 8]);
        let all = Knobs::new(&site(&problem, 12), &Choice::default(), &[]);
        assert_eq!(
            names(&all),
            ["exchange", "kernel", "axes", "grid", "fuse", "stream", "pockets", "memory", "ranks", "threads"]
        );
        let alone = Knobs::new(&site(&problem, 1), &Choice::default(), &[]);
        assert_eq!(names(&alone), ["kernel", "axes", "fuse", "stream", "pockets", "memory", "threads"]);
        let given = Choice::new().threads(1).fuse(true);
        let pinned = problem.clone().reproducible(true);
        assert_eq!(names(&Knobs::new(&site(&pinned, 1), &given, &[])), ["stream", "pockets", "memory"]);
    }

    #[test]
    fn points_are_choices_and_the_start_is_the_users() {
        let problem = Problem::r2c([8, 8, 8]).halved(1);
        let given = Choice::new().kernel("native");
        let knobs = Knobs::new(&site(&problem, 12), &given, &[]);
        let space = knobs.space();
        assert_eq!(knobs.choice(&space.start()), given);
        let set = |name: &str, value: &str| {
            let mut point = space.start();
            let at = space.parameters().iter().position(|p| p.name() == name).unwrap();
            let values = space.parameters()[at].values();
            point.0[at] = values.iter().position(|v| v.to_string() == value).unwrap();
            knobs.choice(&point)
        };
        assert_eq!(set("grid", "3x4"), given.clone().grid([3, 4]));
        assert_eq!(set("grid", "slab"), given.clone().path(Decomposition::Slab));
        assert_eq!(set("axes", "1,2,0"), given.clone().axes([1, 2, 0]));
        assert_eq!(set("ranks", "8"), given.clone().ranks(8));
        assert_eq!(set("threads", "6"), given.clone().threads(6));
        assert_eq!(set("fuse", "no"), given.clone().fuse(false));
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
        assert_eq!(identity(Choice::new().threads(2)).unwrap(), auto);
        assert_ne!(identity(Choice::new().threads(1)).unwrap(), auto);
        assert_ne!(identity(Choice::new().exchange("all_to_all")).unwrap(), auto);
        let grid = Choice::new().grid([3, 2]);
        assert!(identity(grid.clone()).unwrap_err().contains("3x2"));
        assert_eq!(judge.predict(&grid), f64::INFINITY);
        assert!(judge.predict(&Choice::default()) > 0.0);
    }

    #[test]
    fn tiles_are_tuned_where_messages_fly() {
        let problem = Problem::c2c([8, 8, 24]);
        let given = Choice::new().exchange("ring");
        let place = |start: Option<Tiling>| Site { tiling: start, ..site(&problem, 4) };
        let knobs = Knobs::new(&place(Some(Tiling::default())), &given, &[]);
        assert!(["tile", "window", "polls", "cut"].iter().all(|name| names(&knobs).contains(name)));
        let at = |knobs: &Knobs, wanted: &[(&str, &str)]| {
            let mut point = knobs.space().start();
            for (at, parameter) in knobs.space().parameters().iter().enumerate() {
                if let Some((_, value)) = wanted.iter().find(|(name, _)| *name == parameter.name()) {
                    point.0[at] = parameter.values().iter().position(|v| v.to_string() == *value).unwrap();
                }
            }
            knobs.choice(&point)
        };
        assert_eq!(at(&knobs, &[]), given);
        // Where nothing is cut, nothing else about tiles matters.
        assert_eq!(at(&knobs, &[("window", "4"), ("cut", "1")]), given);
        let cut = Tiling::new(4).cut(1).window(8).polls(0);
        let found = at(&knobs, &[("tile", "4"), ("window", "8"), ("polls", "0"), ("cut", "1")]);
        assert_eq!(found.overlap, Some(Overlap::uniform(cut)));

        // Searched although it was given, from where it was given, and nothing else is.
        let start = Tiling::new(2).cut(2).window(1).polls(16).after(false);
        let pinned = given.clone().overlap(Overlap::uniform(start));
        assert!(!names(&Knobs::new(&place(Some(start)), &pinned, &[])).contains(&"tile"));
        let only = Knobs::new(&place(Some(start)), &pinned, &["tile", "window", "polls"]);
        assert_eq!(names(&only), ["tile", "window", "polls"]);
        assert_eq!(at(&only, &[]), pinned);
        let found = at(&only, &[("tile", "24")]).overlap;
        assert_eq!(found, Some(Overlap::uniform(start.tile(24))));

        let default = design(&problem, &given, Precision::F64, 4).unwrap();
        let judge = Judge { site: place(Some(start)), precision: Precision::F64, default };
        let with = |tile: usize, exchange: &str| {
            let overlap = Some(Overlap::uniform(start.tile(tile)));
            judge.identity(&Choice::new().exchange(exchange).overlap(overlap)).unwrap()
        };
        let whole = judge.identity(&given).unwrap();
        assert_eq!(with(0, "ring"), whole);
        assert_eq!(with(24, "ring"), whole);
        assert_ne!(with(23, "ring"), whole);
        assert_eq!(with(4, "direct"), with(0, "direct"));
    }

    /// A codec is the user's: no knob turns it, and it rules out exchanges that share memory.
    #[test]
    fn where_messages_are_encoded_there_are_messages() {
        let given = Choice::new().codec("f32");
        let tolerant = Problem::c2c([8, 8, 8]).tolerance(1e-3);
        for (problem, given) in [(Problem::c2c([8, 8, 8]), given), (tolerant, Choice::default())] {
            let outcome = crate::ranks(2).run(|comm| {
                let site = Site::new(&comm, &problem, &given);
                assert_eq!(site.exchanges[0], "all_to_allv");
                assert!(!site.exchanges.iter().any(|name| ["direct", "hierarchical"].contains(name)));
                let default = design(&problem, &given, Precision::F64, 2)?;
                let judge =
                    Judge { site: Site::new(&comm, &problem, &given), precision: Precision::F64, default };
                let overlap = Some(Overlap::uniform(Tiling::new(2)));
                let tiled = given.clone().overlap(overlap);
                assert!(judge.is_tiled(&tiled), "tiles go by the exchange that nobody had to ask for");
                assert_ne!(judge.identity(&tiled).unwrap(), judge.identity(&given).unwrap());
                let knobs = Knobs::new(&site, &given, &[]);
                let (start, sizes) = (knobs.space().start(), knobs.space().parameters());
                let last = Point(sizes.iter().map(|parameter| parameter.values().len() - 1).collect());
                assert!([start, last].iter().all(|point| knobs.choice(point).codec == given.codec));
                Ok(())
            });
            outcome.unwrap();
        }
    }
}
