//! Drafts: everything about a plan is decided, no buffer is taken yet.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::geometry::Geometry;
use super::lower::{Areas, Site, padded_rows, volumes};
use super::pass::{BoundPass, Hand};
use super::schedule::{Direction, Leg, Schedule, Terms, schedule};
use super::{Memory, Plan};
use crate::buffer::Buffer;
use crate::exchange::{Mover, Way};
use crate::kernel::{Lines, LinesSpec};
use crate::layout::Split;
use crate::machine::{last_level_bytes, level2_bytes};
use crate::pool::Pool;
use crate::recipe::State;
use crate::tune::Effort;
use crate::wisdom::{self, Advice, Known, Source};
use crate::{Box3, Choice, Comm, Error, Kind, LayoutSpec, Problem, Real, Recipe, Result, design};

/// Makes plans: a problem, and what the user wants to decide himself.
#[derive(Clone, Debug)]
pub struct Planner {
    problem: Problem,
    choice: Choice,
    effort: Effort,
    source: Source,
}

/// What rank 0 decides for all.
#[derive(Debug, Serialize, Deserialize)]
struct Decision {
    choice: Choice,
    /// The largest plane, in bytes, that is transformed along two axes in one pass.
    plane_bytes: usize,
    threads: usize,
    /// Are the arrays too large for any cache, so that stores had better go past them?
    stream: bool,
    /// Where the choice comes from, if it was known.
    wisdom: Option<Known>,
}

impl Planner {
    /// A planner for this problem; everything else is left to it.
    pub fn new(problem: &Problem) -> Self {
        let (problem, choice) = (problem.clone(), Choice::default());
        Planner { problem, choice, effort: Effort::default(), source: Source::default() }
    }

    /// What is decided already.
    pub fn choice(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// How hard to look for a fast plan where none is known for this problem
    /// (default: not at all). What trials find is remembered in the file of wisdom.
    pub fn effort(mut self, effort: Effort) -> Self {
        self.effort = effort;
        self
    }

    /// The file of wisdom, read on rank 0, instead of the user's own.
    pub fn wisdom(mut self, file: impl Into<std::path::PathBuf>) -> Self {
        self.source = Source::File(file.into());
        self
    }

    /// What was learned in other runs is neither used nor added to.
    pub fn without_wisdom(mut self) -> Self {
        self.source = Source::Nothing;
        self
    }

    /// Decides everything. Collective: every rank of `comm` must call it with
    /// the same problem and choice (own boxes aside).
    ///
    /// # Errors
    /// Whatever is wrong with the problem or the choice;
    /// [`Error::Disagreement`], on every rank, where they differ between ranks.
    /// A rank that never calls cannot be told from a slow one.
    pub fn draft<T: Real>(self, comm: &Comm) -> Result<Draft<T>> {
        let problem = agree::<T>(comm, self.problem, &self.choice, self.effort)?;
        let advice = wisdom::advice::<T>(comm, &problem, &self.choice, self.effort, &self.source)?;
        let decision = decide::<T>(comm, &problem, advice)?;
        let recipe = design(&problem, &decision.choice, T::PRECISION, comm.size())?;
        compare(comm, &recipe)?;
        Draft::new(&comm.duplicate()?.with_threads(decision.threads), recipe, &decision)
    }
}

/// Gathers the ranks' own boxes and compares everything else; checks the problem.
pub(crate) fn agree<T: Real>(
    comm: &Comm,
    mut problem: Problem,
    choice: &Choice,
    effort: Effort,
) -> Result<Problem> {
    for spec in [&mut problem.input, &mut problem.output] {
        gather_boxes(comm, spec)?;
    }
    let mine = format!("{} {problem:?} {choice:?}, effort: {effort:?}", T::PRECISION.name());
    let all = comm.all_gather(mine.as_bytes())?;
    match all.iter().position(|theirs| *theirs != all[0]) {
        None => problem.check().map(|()| problem),
        Some(rank) => Err(Error::Disagreement(difference(&all[0], &all[rank], rank))),
    }
}

fn gather_boxes(comm: &Comm, spec: &mut LayoutSpec) -> Result<()> {
    let own = match spec.split {
        Split::Mine(own) => Some(own),
        _ => None,
    };
    let text = own.map_or(String::new(), |b| serde_json::to_string(&b).unwrap_or_default());
    let all = comm.all_gather(text.as_bytes())?;
    if all.iter().all(Vec::is_empty) {
        return Ok(());
    }
    if let Some(rank) = all.iter().position(Vec::is_empty) {
        let other = all.iter().position(|text| !text.is_empty()).unwrap_or(0);
        return Err(Error::Disagreement(format!(
            "rank {other} gave its own box, rank {rank} gave a layout for all ranks"
        )));
    }
    let boxes: std::result::Result<Vec<Box3>, _> =
        all.iter().map(|text| serde_json::from_slice(text)).collect();
    spec.split = Split::Boxes(boxes.map_err(Error::other)?);
    Ok(())
}

/// The first field in which two descriptions differ.
fn difference(first: &[u8], other: &[u8], rank: usize) -> String {
    let same = first.iter().zip(other).take_while(|(a, b)| a == b).count();
    let field = first[..same].iter().rposition(|byte| b"{,".contains(byte)).map_or(0, |at| at + 1);
    let show = |text: &[u8]| {
        let rest = String::from_utf8_lossy(&text[field.min(text.len())..]);
        rest.trim().chars().take(60).collect::<String>()
    };
    format!("rank 0 has `{}`, rank {rank} has `{}`", show(first), show(other))
}

/// As many threads as have work for longer than it takes to wake them.
pub(crate) fn threads(comm: &Comm, problem: &Problem, choice: &Choice) -> usize {
    if let Some(threads) = choice.threads {
        return threads.max(1);
    }
    let share = problem.batch * problem.shape.iter().product::<usize>() / comm.size();
    comm.threads().min(share / 4096).max(1)
}

/// Whether input and output of the ranks of a node together are more than the last cache holds.
fn stream(comm: &Comm, problem: &Problem, number: usize) -> bool {
    let numbers =
        problem.batch * problem.shape.iter().product::<usize>() * if problem.is_real() { 1 } else { 2 };
    let ranks = comm.size().min(crate::machine::cores());
    2 * (numbers / comm.size()) * number * ranks > last_level_bytes()
}

/// Rank 0's decision, on every rank.
fn decide<T: Real>(comm: &Comm, problem: &Problem, advice: Advice) -> Result<Decision> {
    let Advice { mut choice, known: wisdom } = advice;
    if comm.size() > 1 && !comm.transport().shares_memory() {
        let name = choice.exchange.get_or_insert_with(|| "all_to_allv".into());
        if matches!(crate::exchange::find(name)?.way, Way::Shared) {
            return Err(Error::Choice(format!(
                "exchange `{name}` needs ranks that share memory; those of `{}` do not",
                comm.transport_name()
            )));
        }
    }
    let threads = threads(comm, problem, &choice);
    let stream = choice.stream.unwrap_or_else(|| stream(comm, problem, T::PRECISION.bytes()));
    let decision = Decision { choice, plane_bytes: 2 * level2_bytes(), threads, stream, wisdom };
    let mine = match comm.rank() {
        0 => serde_json::to_vec(&decision).map_err(Error::other)?,
        _ => Vec::new(),
    };
    serde_json::from_slice(&comm.all_gather(&mine)?[0]).map_err(Error::other)
}

fn compare(comm: &Comm, recipe: &Recipe) -> Result<()> {
    let all = comm.all_gather(&recipe.digest().to_le_bytes())?;
    match all.iter().position(|digest| *digest != all[0]) {
        None => Ok(()),
        Some(rank) => Err(Error::Disagreement(format!("rank {rank} derived another recipe than rank 0"))),
    }
}

/// One direction, out of place or in place, bound to this rank.
pub(super) struct Variant<T> {
    pub passes: Vec<BoundPass<T>>,
    pub areas: Areas,
    pub movers: Arc<Vec<Box<dyn Mover>>>,
    /// Name of each reshape, and the bytes this rank takes from others in it.
    pub reshapes: Vec<(String, u64)>,
    pub input: Geometry,
    pub output: Geometry,
}

/// A plan without its buffers: says what it will do and what it will need.
pub struct Draft<T: Real> {
    pub(super) comm: Comm,
    pub(super) recipe: Recipe,
    /// Forward, backward, forward in place, backward in place.
    pub(super) variants: [Variant<T>; 4],
    pub(super) memory: Memory,
    pub(super) scratch: usize,
    wisdom: Option<Known>,
}

impl<T: Real> Draft<T> {
    fn new(comm: &Comm, recipe: Recipe, decision: &Decision) -> Result<Self> {
        let way = crate::exchange::find(&recipe.exchange)?.way;
        let mut tables = Tables { kernel: recipe.kernel.clone(), made: Vec::new() };
        let fuse = |legs: &[Leg], state: &State| may_fuse(&recipe, decision, legs, state);
        let mut variants = Vec::with_capacity(4);
        for direction in [Direction::Forward, Direction::Backward] {
            let terms = Terms { direction, in_place: false, way, fuse: &fuse };
            let movers = Arc::new(movers(comm, &recipe, &schedule(&recipe, terms), way)?);
            for in_place in [false, true] {
                let plan = schedule(&recipe, Terms { in_place, ..terms });
                variants.push(bind(
                    comm,
                    &recipe,
                    &plan,
                    (in_place, decision.stream),
                    movers.clone(),
                    &mut tables,
                )?);
            }
        }
        let order = |[forward, forward_in, backward, backward_in]: [Variant<T>; 4]| {
            [forward, backward, forward_in, backward_in]
        };
        let Ok(variants) = <[Variant<T>; 4]>::try_from(variants).map(order) else {
            unreachable!("four were made")
        };
        let scratch =
            variants.iter().flat_map(|variant| &variant.passes).map(BoundPass::scratch).max().unwrap_or(0);
        // An odd number of cache lines apart, so that the threads' scratches do not share sets.
        let scratch = ((scratch * size_of::<T>()).div_ceil(64) | 1) * (64 / size_of::<T>());
        let memory = Memory::new::<T>(&variants, scratch * comm.threads());
        let wisdom = decision.wisdom.clone();
        Ok(Draft { comm: comm.clone(), recipe, variants, memory, scratch, wisdom })
    }

    /// What the plan will do.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Whose experience the plan was made from; `None` where there was none.
    pub fn wisdom(&self) -> Option<&Known> {
        self.wisdom.as_ref()
    }

    /// What the plan will take on this rank.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Takes the buffers and starts the threads.
    ///
    /// # Errors
    /// Where memory or threads cannot be had.
    pub fn build(self) -> Result<Plan<T>> {
        let work = Buffer::new(self.memory.total() / size_of::<T>(), "the buffers of a plan");
        let work = work.inspect_err(|error| self.comm.transport().fail(&error.to_string()))?;
        self.finish(Some(work))
    }

    /// A plan without buffers of its own: use
    /// [`forward_using`](Plan::forward_using) and its relatives.
    ///
    /// # Errors
    /// Where threads cannot be had.
    pub fn build_without_workspace(self) -> Result<Plan<T>> {
        self.finish(None)
    }

    fn finish(self, work: Option<Buffer<T>>) -> Result<Plan<T>> {
        let pool = Pool::new(self.comm.threads());
        let pool = pool.inspect_err(|error| self.comm.transport().fail(&error.to_string()))?;
        let passes = || self.variants.iter().flat_map(|variant| &variant.passes);
        let strips = passes().map(BoundPass::most_strips).max().unwrap_or(0);
        let hands = (0..pool.threads()).map(|_| Hand::new(strips, self.comm.size())).collect();
        Ok(Plan::assemble(self, work, pool, hands))
    }
}

/// Kernels' tables, made once for each kind of line.
struct Tables<T> {
    kernel: String,
    made: Vec<(LinesSpec, Arc<dyn Lines<T>>)>,
}

impl<T: Real> Tables<T> {
    fn lines(&mut self, leg: &Leg) -> Result<Arc<dyn Lines<T>>> {
        if let Some((_, lines)) = self.made.iter().find(|(spec, _)| *spec == leg.spec) {
            return Ok(lines.clone());
        }
        let lines: Arc<dyn Lines<T>> = crate::kernel::lines::<T>(&self.kernel, &leg.spec)?.into();
        self.made.push((leg.spec, lines.clone()));
        Ok(lines)
    }
}

fn movers(comm: &Comm, recipe: &Recipe, plan: &Schedule, way: Way) -> Result<Vec<Box<dyn Mover>>> {
    let Way::Messages(make) = way else { return Ok(Vec::new()) };
    let number = recipe.precision.bytes();
    plan.reshapes
        .iter()
        .map(|reshape| make(comm, &volumes(reshape, comm.rank(), recipe.batch, number)))
        .collect()
}

fn bind<T: Real>(
    comm: &Comm,
    recipe: &Recipe,
    plan: &Schedule,
    (in_place, stream): (bool, bool),
    movers: Arc<Vec<Box<dyn Mover>>>,
    tables: &mut Tables<T>,
) -> Result<Variant<T>> {
    let halved = recipe.kinds.iter().position(|&kind| kind == Kind::Real);
    let (rank, number, batch) = (comm.rank(), recipe.precision.bytes(), recipe.batch);
    let memory = recipe.memory;
    let site =
        Site { rank, ranks: comm.size(), batch, number, memory, in_place, stream, halved, movers: &movers };
    let areas = site.areas(plan);
    let passes: Result<Vec<_>> = plan
        .passes
        .iter()
        .map(|pass| BoundPass::new(&site, plan, &areas, pass, &mut |leg| tables.lines(leg)))
        .collect();
    let end = |state: &State| {
        let (part, order) = (state.layout.boxes()[rank], state.layout.order());
        match in_place && state.real && padded_rows(state, halved) {
            true => Geometry::padded_real(part, order),
            false => Geometry::dense(part, order, state.real),
        }
    };
    let (input, output) = (end(&plan.input), end(&plan.output));
    let taken = |reshape| volumes(reshape, rank, batch, number).from.iter().sum::<usize>() as u64;
    let reshapes = plan.reshapes.iter().map(|reshape| (reshape.name.clone(), taken(reshape))).collect();
    Ok(Variant { passes: passes?, areas, movers, reshapes, input, output })
}

/// Two axes in one pass: where a plane stays in cache between them, and there
/// are planes enough to keep all threads busy. The same answer on every rank.
fn may_fuse(recipe: &Recipe, decision: &Decision, legs: &[Leg], state: &State) -> bool {
    if let Some(fuse) = recipe.fuse {
        return fuse;
    }
    let across = 3 - legs[0].axis - legs[1].axis;
    let plane = |b: &Box3| b.shape()[legs[0].axis] * b.shape()[legs[1].axis];
    let plane = state.layout.boxes().iter().map(plane).max().unwrap_or(0) * 2 * recipe.precision.bytes();
    let planes = state.layout.boxes().iter().map(|b| b.shape()[across]).max().unwrap_or(0) * recipe.batch;
    let rounds = planes.div_ceil(decision.threads);
    // The last round may leave threads idle, but not more than a quarter of the time.
    let busy = planes * 4 >= rounds * decision.threads * 3;
    plane <= decision.plane_bytes && busy && recipe.memory == crate::MemoryUse::Fast
}
