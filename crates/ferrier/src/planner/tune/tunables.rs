//! The table of tunables: one line for each field of a [`Choice`] that tuning may set.

use super::context::{TuneContext, longest};
use super::names::BY_NAME;
use super::per_reshape::{self, MOST_POLLS, MOST_WINDOW, Setter};
use crate::kernel::KERNELS;
use crate::{Choice, Decomposition, MemoryUse, Overlap, Progress, Tiling};
use ferrier_plan::layout::factor_pairs;
use ferrier_plan::ring::IN_FLIGHT;
use ferrier_search::{Parameter, Point, Space, Value};

/// A field of [`Choice`] that may be tuned.
struct Tunable {
    /// Its values; `None` if there is nothing to tune for this problem on these ranks.
    values: fn(&TuneContext<'_>) -> Option<Parameter>,
    /// Has the user set the field?
    decided: fn(&Choice) -> bool,
    set: fn(&mut Choice, &Value),
}

/// The most lines side by side, and planes, of a sub-tile.
const MOST_LINES: usize = 256;
const MOST_PLANES: usize = 64;

/// The value that leaves a field to the planner.
const AUTO: &str = "auto";

/// All tunables.
#[rustfmt::skip]
static TUNABLES: &[Tunable] = &[
    Tunable { values: exchanges, decided: |choice| choice.exchange.is_some(), set: |choice, value| choice.exchange = Some(value.name().into()) },
    Tunable { values: kernels, decided: |choice| choice.kernel.is_some(), set: |choice, value| choice.kernel = Some(value.name().into()) },
    Tunable { values: orders, decided: |choice| choice.axes.is_some(), set: |choice, value| choice.axes = numbers(value.name(), ',') },
    Tunable { values: grids, decided: |choice| choice.decomposition.is_some() || choice.grid.is_some() || choice.ranks.is_some(), set: set_grid },
    Tunable { values: |_| Some(Parameter::category("fuse", [AUTO, "yes", "no"])), decided: |choice| choice.fuse.is_some(), set: |choice, value| choice.fuse = Some(value.name() == "yes") },
    Tunable { values: |_| Some(Parameter::category("stream", [AUTO, "yes", "no"])), decided: |choice| choice.stream.is_some(), set: |choice, value| choice.stream = Some(value.name() == "yes") },
    Tunable { values: |_| Some(Parameter::category("pockets", [AUTO, "yes", "no"])), decided: |choice| choice.staging.is_some(), set: |choice, value| choice.staging = Some(value.name() == "yes") },
    Tunable { values: |_| Some(Parameter::category("memory", ["fast", "small"])), decided: |choice| choice.memory == MemoryUse::Small, set: |choice, _| choice.memory = MemoryUse::Small },
    Tunable { values: ranks, decided: |choice| choice.ranks.is_some() || choice.grid.is_some(), set: |choice, value| choice.ranks = Some(value.number()) },
    Tunable { values: tiles, decided: |choice| choice.overlap.is_some(), set: |choice, value| set_tiling(choice, |tiling| tiling.tile = value.number()) },
    Tunable { values: windows, decided: |choice| choice.overlap.is_some(), set: |choice, value| set_tiling(choice, |tiling| tiling.window = value.number()) },
    Tunable { values: polls, decided: |choice| choice.overlap.is_some(), set: |choice, value| set_tiling(choice, |tiling| tiling.polls = value.number()) },
    Tunable { values: |context| number(context, "polls after", 0, MOST_POLLS, |tiling| tiling.polls_after.unwrap_or(tiling.polls)), decided: |choice| choice.overlap.is_some(), set: |choice, value| set_tiling(choice, |tiling| tiling.polls_after = Some(value.number())) },
    Tunable { values: |context| number(context, "planes before", 1, MOST_PLANES, |tiling| sub(tiling.sub_before)[1]), decided: |choice| choice.overlap.is_some(), set: |choice, value| set_tiling(choice, |tiling| tiling.sub_before = Some([sub(tiling.sub_before)[0], value.number()])) },
    Tunable { values: |context| number(context, "lines before", 0, MOST_LINES, |tiling| sub(tiling.sub_before)[0]), decided: |choice| choice.overlap.is_some(), set: |choice, value| set_tiling(choice, |tiling| tiling.sub_before = Some([value.number(), sub(tiling.sub_before)[1]])) },
    Tunable { values: |context| number(context, "planes after", 1, MOST_PLANES, |tiling| sub(tiling.sub_after)[1]), decided: |choice| choice.overlap.is_some(), set: |choice, value| set_tiling(choice, |tiling| tiling.sub_after = Some([sub(tiling.sub_after)[0], value.number()])) },
    Tunable { values: |context| number(context, "lines after", 0, MOST_LINES, |tiling| sub(tiling.sub_after)[0]), decided: |choice| choice.overlap.is_some(), set: |choice, value| set_tiling(choice, |tiling| tiling.sub_after = Some([value.number(), sub(tiling.sub_after)[1]])) },
    Tunable { values: cuts, decided: |choice| choice.overlap.is_some(), set: |choice, value| set_tiling(choice, |tiling| tiling.cut = value.name().parse().ok()) },
    Tunable { values: batch_chunks, decided: |choice| choice.overlap.is_some(), set: |choice, value| choice.overlap.get_or_insert_default().arrays = value.number() },
    Tunable { values: progress, decided: |choice| choice.progress.is_some(), set: |choice, value| choice.progress = Some(if value.name() == THREAD { Progress::Thread } else { Progress::Poll }) },
    Tunable { values: packet_bytes, decided: |choice| choice.packet.is_some(), set: |choice, value| choice.packet = Some(value.number()) },
    Tunable { values: packets, decided: |choice| choice.packets.is_some(), set: |choice, value| choice.packets = Some(value.number()) },
    Tunable { values: threads, decided: |choice| choice.threads.is_some(), set: |choice, value| choice.threads = Some(value.number()) },
];

fn exchanges(context: &TuneContext<'_>) -> Option<Parameter> {
    (context.ranks > 1).then(|| Parameter::category("exchange", context.exchanges.iter().copied()))
}

/// Not tuned if results must be reproducible: kernels round differently.
fn kernels(context: &TuneContext<'_>) -> Option<Parameter> {
    let names = || Parameter::category("kernel", KERNELS.iter().map(|member| member.name));
    (!context.problem.reproducible).then(names)
}

/// Not tuned if results must be reproducible, as kernels.
fn orders(context: &TuneContext<'_>) -> Option<Parameter> {
    if context.problem.reproducible {
        return None;
    }
    let mut found = vec![AUTO.to_string()];
    permute(&mut context.problem.axes.clone(), 0, &mut |axes| {
        if context.problem.is_legal_order(axes) {
            found.push(axes.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
        }
    });
    Some(Parameter::category("axes", found))
}

/// Slabs, pencils on a grid of the planner's choice, pencils on each possible grid.
fn grids(context: &TuneContext<'_>) -> Option<Parameter> {
    let pencils = factor_pairs(context.ranks).filter(|&(p, q)| p > 1 && q > 1);
    let names =
        ["slab", "pencil"].map(String::from).into_iter().chain(pencils.map(|(p, q)| format!("{p}x{q}")));
    (context.ranks > 1).then(|| Parameter::category("grid", std::iter::once(AUTO.to_string()).chain(names)))
}

fn set_grid(choice: &mut Choice, value: &Value) {
    match value.name() {
        "slab" => choice.decomposition = Some(Decomposition::Slab),
        "pencil" => choice.decomposition = Some(Decomposition::Pencil),
        grid => choice.grid = numbers(grid, 'x').and_then(|list| list.try_into().ok()),
    }
}

/// Number of ranks that hold data between the first and the last reshape.
fn ranks(context: &TuneContext<'_>) -> Option<Parameter> {
    Some(Parameter::log_scale("ranks", 1, context.ranks).from(context.start.ranks.unwrap_or(context.ranks)))
}

fn threads(context: &TuneContext<'_>) -> Option<Parameter> {
    Some(Parameter::log_scale("threads", 1, context.most_threads.max(context.threads)).from(context.threads))
}

/// Indices in a tile; the length of the longest axis means a single tile.
fn tiles(context: &TuneContext<'_>) -> Option<Parameter> {
    let (longest, start) = (longest(context.problem), context.tiling?.tile);
    let start = if start == 0 { longest } else { start };
    Some(Parameter::log_scale("tile", 1, longest).from(start))
}

/// Tiles in flight at once, on a linear scale: 3 is often the best. Each needs buffers, and more than 8 gain nothing.
fn windows(context: &TuneContext<'_>) -> Option<Parameter> {
    Some(Parameter::linear("window", 1, MOST_WINDOW).from(context.tiling?.window))
}

/// A number of a tiling, in log scale.
fn number(
    context: &TuneContext<'_>,
    name: &'static str,
    low: usize,
    high: usize,
    of: fn(&Tiling) -> usize,
) -> Option<Parameter> {
    let tiling = context.tiling?;
    Some(Parameter::log_scale(name, low, high).from(of(&tiling)))
}

/// A sub-tile, by default as the kernel chooses: lines side by side, and planes.
fn sub(tile: Option<[usize; 2]>) -> [usize; 2] {
    tile.unwrap_or([0, 1])
}

/// Arrays of a batch that are transformed at once.
fn batch_chunks(context: &TuneContext<'_>) -> Option<Parameter> {
    let batch = context.problem.batch;
    context.tiling.filter(|_| batch > 1).map(|_| Parameter::log_scale("arrays", 1, batch).from(batch))
}

/// Bytes of a packet of exchange `ring`.
fn packet_bytes(context: &TuneContext<'_>) -> Option<Parameter> {
    Some(Parameter::log_scale("packet", 16 << 10, 1 << 20).from(context.packet?))
}

/// Packets of exchange `ring` in flight at once.
fn packets(context: &TuneContext<'_>) -> Option<Parameter> {
    context.packet.map(|_| Parameter::log_scale("packets", 1, 16).from(IN_FLIGHT))
}

const THREAD: &str = "thread";

/// What makes progress on transfers: passes or a thread.
fn progress(context: &TuneContext<'_>) -> Option<Parameter> {
    context
        .tiling
        .filter(|_| context.progress_thread)
        .map(|_| Parameter::category("progress", ["poll", THREAD]))
}

/// How often a pass over a tile polls the transfers in flight.
fn polls(context: &TuneContext<'_>) -> Option<Parameter> {
    Some(Parameter::log_scale("polls", 0, MOST_POLLS).from(context.tiling?.polls))
}

/// The axis that is cut; the user's first, if there is one.
fn cuts(context: &TuneContext<'_>) -> Option<Parameter> {
    let mut names = [AUTO, "0", "1", "2"];
    let start = context.tiling?.cut.map_or(0, |axis| axis + 1);
    names[..=start].rotate_right(1);
    Some(Parameter::category("cut", names))
}

/// Changes the tiling of all reshapes.
fn set_tiling(choice: &mut Choice, change: impl FnOnce(&mut Tiling)) {
    let given = choice.overlap.as_ref().and_then(|overlap| overlap.forward.first().copied());
    let mut tiling = given.unwrap_or_default();
    change(&mut tiling);
    let arrays = choice.overlap.as_ref().map_or(0, |overlap| overlap.arrays);
    choice.overlap = Some(Overlap::uniform(tiling).arrays(arrays));
}

/// The grid of so many ranks whose ratio of sides is nearest to that of another grid.
fn similar_grid([p, q]: [usize; 2], ranks: usize) -> [usize; 2] {
    let ratio = |p: usize, q: usize| (p as f64 / q as f64).ln();
    let distance = |(a, b): &(usize, usize)| (ratio(*a, *b) - ratio(p, q)).abs();
    let nearest = factor_pairs(ranks).min_by(|a, b| distance(a).total_cmp(&distance(b)));
    nearest.map_or([1, ranks], |(p, q)| [p, q])
}

fn numbers(text: &str, separator: char) -> Option<Vec<usize>> {
    text.split(separator).map(|word| word.parse().ok()).collect()
}

/// Visits all permutations of the elements from `from` on.
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

/// The space of the fields that the user has not set. Its points are choices.
pub(super) struct ChoiceSpace {
    given: Choice,
    /// The choice of the start.
    start: Choice,
    space: Space,
    /// Sets the field of each parameter.
    setters: Vec<Setter>,
}

impl ChoiceSpace {
    /// The tunables that `given` leaves open; those named in `only`, if there are any.
    pub fn new(context: &TuneContext<'_>, given: &Choice, only: &[&str]) -> Self {
        let free = |tunable: &Tunable, name: &str| match only {
            [] => !(tunable.decided)(given) && !BY_NAME.contains(&name),
            names => names.contains(&name),
        };
        let open = TUNABLES.iter().filter_map(|tunable| {
            let parameter = (tunable.values)(context).filter(|parameter| free(tunable, parameter.name()))?;
            Some((Box::new(tunable.set) as Setter, parameter))
        });
        Self::of([given, &context.start], open)
    }

    /// The space around a choice that is nearly optimal: tile, window and polls of each reshape in each
    /// direction, and lines in a block.
    pub fn per_reshape(context: &TuneContext<'_>, given: &Choice, reshapes: usize) -> Self {
        Self::of([given; 2], per_reshape::all(context, given, reshapes).into_iter())
    }

    fn of([given, start]: [&Choice; 2], fields: impl Iterator<Item = (Setter, Parameter)>) -> Self {
        let (setters, parameters): (Vec<_>, Vec<_>) =
            fields.filter(|(_, parameter)| parameter.values().len() > 1).unzip();
        ChoiceSpace { given: given.clone(), start: start.clone(), space: Space::new(parameters), setters }
    }

    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The choice of a point. Fields whose value is that of the start are left as they are in its choice.
    pub fn choice(&self, point: &Point) -> Choice {
        let start = self.space.start();
        let mut choice = self.start.clone();
        for (at, set) in self.setters.iter().enumerate().filter(|(at, _)| point.0[*at] != start.0[*at]) {
            set(&mut choice, &self.space.parameters()[at].values()[point.0[at]]);
        }
        // Grids are those of all ranks; fewer ranks get the grid of the most similar shape.
        if let (Some(grid), Some(ranks)) = (choice.grid, choice.ranks)
            && self.given.grid.is_none()
            && grid[0] * grid[1] != ranks
        {
            choice.grid = Some(similar_grid(grid, ranks));
        }
        // Windows and polls have no effect without tiles.
        let tiled = |overlap: &Overlap| {
            overlap.arrays > 0 || overlap.forward.iter().chain(&overlap.backward).any(|t| t.tile > 0)
        };
        if self.given.overlap.is_none() && !choice.overlap.as_ref().is_some_and(tiled) {
            choice.overlap = None;
        }
        choice
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::EXCHANGES;
    use crate::planner::Forecast;
    use crate::planner::tune::cost_model::CostModel;
    use crate::{Precision, Problem, design};

    fn context(problem: &Problem, ranks: usize) -> TuneContext<'_> {
        let exchanges = EXCHANGES.iter().map(|member| member.name).collect();
        TuneContext {
            problem,
            ranks,
            threads: 2,
            most_threads: 6,
            start: Choice::default(),
            exchanges,
            nodes: 1,
            tiling: None,
            progress_thread: true,
            packet: None,
            forecast: Forecast::new(&crate::Comm::one_rank(), crate::machine::model().clone()),
        }
    }

    /// The space around a choice that is complete.
    fn space_of(context: TuneContext<'_>, given: &Choice) -> ChoiceSpace {
        ChoiceSpace::new(&TuneContext { start: given.clone(), ..context }, given, &[])
    }

    fn names(choices: &ChoiceSpace) -> Vec<&'static str> {
        choices.space().parameters().iter().map(Parameter::name).collect()
    }

    #[test]
    fn fields_that_are_set_or_change_bits_are_not_tuned() {
        let problem = Problem::c2c([8, 8, 8]);
        let all = space_of(context(&problem, 12), &Choice::default());
        assert_eq!(
            names(&all),
            ["exchange", "kernel", "axes", "grid", "fuse", "stream", "pockets", "memory", "ranks", "threads"]
        );
        let alone = space_of(context(&problem, 1), &Choice::default());
        assert_eq!(names(&alone), ["kernel", "axes", "fuse", "stream", "pockets", "memory", "threads"]);
        let given = Choice::new().threads(1).fuse(true);
        let pinned = problem.clone().reproducible(true);
        assert_eq!(names(&space_of(context(&pinned, 1), &given)), ["stream", "pockets", "memory"]);
    }

    #[test]
    fn the_start_of_the_space_is_the_given_choice() {
        let problem = Problem::r2c([8, 8, 8]).halved(1);
        let given = Choice::new().kernel("native");
        let choices = space_of(context(&problem, 12), &given);
        let space = choices.space();
        assert_eq!(choices.choice(&space.start()), given);
        let set = |name: &str, value: &str| {
            let mut point = space.start();
            let at = space.parameters().iter().position(|p| p.name() == name).unwrap();
            let values = space.parameters()[at].values();
            point.0[at] = values.iter().position(|v| v.to_string() == value).unwrap();
            choices.choice(&point)
        };
        assert_eq!(set("grid", "3x4"), given.clone().grid([3, 4]));
        assert_eq!(set("grid", "slab"), given.clone().decomposition(Decomposition::Slab));
        assert_eq!(set("axes", "1,2,0"), given.clone().axes([1, 2, 0]));
        assert_eq!(set("ranks", "8"), given.clone().ranks(8));
        assert_eq!((similar_grid([3, 4], 8), similar_grid([6, 2], 4)), ([2, 4], [4, 1]));
        // Fewer ranks than the grid has get a grid of their own.
        let mut fewer = space.start();
        for (name, value) in [("grid", "3x4"), ("ranks", "8")] {
            let at = space.parameters().iter().position(|p| p.name() == name).unwrap();
            let values = space.parameters()[at].values();
            fewer.0[at] = values.iter().position(|v| v.to_string() == value).unwrap();
        }
        assert_eq!(choices.choice(&fewer), given.clone().grid([2, 4]).ranks(8));
        assert_eq!(set("threads", "6"), given.clone().threads(6));
        assert_eq!(set("fuse", "no"), given.clone().fuse(false));
        // The halved axis comes first in all orders of a real transform.
        let axes = space.parameters().iter().find(|p| p.name() == "axes").unwrap();
        assert_eq!(axes.values().iter().map(Value::name).collect::<Vec<_>>(), [AUTO, "1,0,2", "1,2,0"]);
    }

    #[test]
    fn tiles_are_tuned_if_messages_are_sent() {
        let problem = Problem::c2c([8, 8, 24]);
        let given = Choice::new().exchange("ring");
        let place = |start: Option<Tiling>| TuneContext { tiling: start, ..context(&problem, 4) };
        let choices = space_of(place(Some(Tiling::default())), &given);
        assert!(["tile", "window", "polls", "cut"].iter().all(|name| names(&choices).contains(name)));
        let at = |choices: &ChoiceSpace, wanted: &[(&str, &str)]| {
            let mut point = choices.space().start();
            for (at, parameter) in choices.space().parameters().iter().enumerate() {
                if let Some((_, value)) = wanted.iter().find(|(name, _)| *name == parameter.name()) {
                    point.0[at] = parameter.values().iter().position(|v| v.to_string() == *value).unwrap();
                }
            }
            choices.choice(&point)
        };
        assert_eq!(at(&choices, &[]), given);
        assert!(!names(&choices).contains(&"packet"));
        let ring = TuneContext { packet: Some(65536), ..place(Some(Tiling::default())) };
        let found = at(&space_of(ring, &given), &[("packet", "32768"), ("packets", "8")]);
        assert_eq!(found, given.clone().packet(32768).packets(8));
        // Without tiles the other fields of a tiling have no effect.
        assert_eq!(at(&choices, &[("window", "4"), ("cut", "1")]), given);
        let cut = Tiling::new(4).cut(1).window(8).polls(0);
        let found = at(&choices, &[("tile", "4"), ("window", "8"), ("polls", "0"), ("cut", "1")]);
        assert_eq!(found.overlap, Some(Overlap::uniform(cut)));

        // Only the named parameters are searched, from the given values.
        let start = Tiling::new(2).cut(2).window(1).polls(16).after(false);
        let pinned = given.clone().overlap(Overlap::uniform(start));
        assert!(!names(&space_of(place(Some(start)), &pinned)).contains(&"tile"));
        let only = ChoiceSpace::new(
            &TuneContext { start: pinned.clone(), ..place(Some(start)) },
            &pinned,
            &["tile", "window", "polls"],
        );
        assert_eq!(names(&only), ["tile", "window", "polls"]);
        assert_eq!(at(&only, &[]), pinned);
        let found = at(&only, &[("tile", "24")]).overlap;
        assert_eq!(found, Some(Overlap::uniform(start.tile(24))));

        let default = design(&problem, &given, Precision::F64, 4).unwrap();
        let model = CostModel { context: place(Some(start)), precision: Precision::F64, default };
        let with = |tile: usize, exchange: &str| {
            let overlap = Some(Overlap::uniform(start.tile(tile)));
            model.identity(&Choice::new().exchange(exchange).overlap(overlap)).unwrap()
        };
        let whole = model.identity(&given).unwrap();
        assert_eq!(with(0, "ring"), whole);
        assert_eq!(with(24, "ring"), whole);
        assert_ne!(with(23, "ring"), whole);
        assert_eq!(with(4, "direct"), with(0, "direct"));
    }

    #[test]
    fn a_codec_is_never_tuned_and_excludes_shared_memory() {
        let given = Choice::new().codec("f32");
        let tolerant = Problem::c2c([8, 8, 8]).tolerance(1e-3);
        for (problem, given) in [(Problem::c2c([8, 8, 8]), given), (tolerant, Choice::default())] {
            let outcome = crate::ranks(2).run(|comm| {
                let context = TuneContext::new(&comm, &problem, &given, given.clone(), None);
                assert_eq!(context.exchanges[0], "all_to_allv");
                assert!(!context.exchanges.iter().any(|name| ["direct", "hierarchical"].contains(name)));
                let default = design(&problem, &given, Precision::F64, 2)?;
                let model = CostModel {
                    context: TuneContext::new(&comm, &problem, &given, given.clone(), None),
                    precision: Precision::F64,
                    default,
                };
                let overlap = Some(Overlap::uniform(Tiling::new(2)));
                let tiled = given.clone().overlap(overlap);
                assert!(model.is_tiled(&tiled), "tiles of the default exchange count");
                assert_ne!(model.identity(&tiled).unwrap(), model.identity(&given).unwrap());
                let choices = ChoiceSpace::new(&context, &given, &[]);
                let (start, sizes) = (choices.space().start(), choices.space().parameters());
                let last = Point(sizes.iter().map(|parameter| parameter.values().len() - 1).collect());
                assert!([start, last].iter().all(|point| choices.choice(point).codec == given.codec));
                Ok(())
            });
            outcome.unwrap();
        }
    }

    #[test]
    fn equal_plans_have_one_identity_and_impossible_choices_a_reason() {
        let problem = Problem::c2c([8, 8, 8]);
        let default = design(&problem, &Choice::default(), Precision::F64, 4).unwrap();
        let model = CostModel { context: context(&problem, 4), precision: Precision::F64, default };
        let identity = |choice: Choice| model.identity(&choice);
        let auto = identity(Choice::default()).unwrap();
        assert_eq!(identity(Choice::new().threads(2)).unwrap(), auto);
        assert_ne!(identity(Choice::new().threads(1)).unwrap(), auto);
        assert_ne!(identity(Choice::new().exchange("all_to_all")).unwrap(), auto);
        let grid = Choice::new().grid([3, 2]);
        assert!(identity(grid.clone()).unwrap_err().contains("3x2"));
        assert_eq!(model.predict(&grid), f64::INFINITY);
        assert!(model.predict(&Choice::default()) > 0.0);
    }
}
