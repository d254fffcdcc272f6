//! Drafts: everything about a plan is decided, no buffer is taken yet.

use std::sync::Arc;

use super::OnlineTuner;
use super::agree::{Decision, MESSAGES, agree, compare, decide};
use crate::codec::{self, CodecInstance};
use crate::exchange;
use crate::exec::cpu::bind::{Tables, Variant, WireCodec, bind, movers};
use crate::exec::cpu::coding::{self, WorkPointers};
use crate::exec::cpu::pass::{BoundPass, WorkerState};
use crate::exec::{BACKWARD, FORWARD, Memory, Plan, ROUND};
use crate::exec::{Ledger, ProgressThread};
use crate::machine::buffer::Buffer;
use crate::machine::pool::Pool;
use crate::planner::effort::Effort;
use crate::planner::wisdom::{self, Known, Source};
use crate::transport::shared_buffer;
use crate::{
    Choice, Comm, Compress, Error, MachineSpeeds, MemoryUse, Problem, Progress, Real, Recipe, Result, Tiling,
    design_with,
};
use ferrier_plan::geometry::width;
use ferrier_plan::messages::Mechanism;
use ferrier_plan::modes::total_len;
use ferrier_plan::recipe::Distribution;
use ferrier_plan::schedule::tilings;
use ferrier_plan::schedule::{AxisTransform, Direction, Schedule, ScheduleOptions, schedule};
use ferrier_plan::tiles::{self, Tiles};

/// Makes plans: a problem, and what the user wants to decide himself.
#[derive(Clone, Debug)]
pub struct Planner {
    pub(crate) problem: Problem,
    pub(crate) choice: Choice,
    effort: Effort,
    source: Source,
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

    /// A planner of plans whose arrays live on this GPU. Wisdom and tuning
    /// are the CPU's; they do not matter there.
    #[cfg(feature = "cuda")]
    pub fn device(self, gpu: &crate::cuda::Gpu) -> crate::cuda::CudaPlanner {
        crate::cuda::CudaPlanner::new(self, gpu)
    }

    /// Decides everything. Collective: every rank of `comm` must call it with
    /// the same problem and choice (own boxes aside).
    ///
    /// # Errors
    /// Whatever is wrong with the problem or the choice;
    /// [`Error::Disagreement`], on every rank, where they differ between ranks.
    /// A rank that never calls cannot be told from a slow one.
    pub fn draft<T: Real>(self, comm: &Comm) -> Result<Draft<T>> {
        let problem = agree::<T>(comm, self.problem.clone(), &self.choice, self.effort)?;
        let advice = wisdom::advice::<T>(comm, &problem, &self.choice, self.effort, &self.source)?;
        let decision = decide::<T>(comm, &problem, advice)?;
        let speeds = decision.speeds.unwrap_or_default();
        let recipe = design_with(&problem, &decision.choice, T::PRECISION, comm.size(), &speeds)?;
        compare(comm, &recipe)?;
        let own = comm.duplicate()?.with_threads(decision.threads);
        let tolerance = problem.tolerance.map(|tolerance| tolerance.0);
        let shares = comm.size() > 1
            && exchange::find(&recipe.exchange)?.mechanism.on_nodes(comm.node_count()).shares();
        // Where sharing memory was not asked for, it may fail.
        let spare = shares && !own.transport().exposes_all_memory() && self.choice.exchange.is_none();
        let online = self.effort == Effort::Online && decision.wisdom.is_none();
        let apprentice = online.then(|| OnlineTuner::new::<T>(comm, &problem, &self.choice, &self.source));
        let other = spare.then(|| Other { comm: comm.clone(), planner: self });
        match if shares { own.transport().enable_sharing() } else { Ok(()) } {
            Ok(()) => Ok(Draft { other, apprentice, ..Draft::new(&own, recipe, &decision, tolerance)? }),
            Err(error) => match other {
                Some(other) => other.draft(&recipe, &error),
                None => Err(error),
            },
        }
    }
}

/// What to do where memory cannot be shared: the same with another exchange.
struct Other {
    comm: Comm,
    planner: Planner,
}

impl Other {
    fn draft<T: Real>(self, recipe: &Recipe, why: &Error) -> Result<Draft<T>> {
        let Planner { problem, mut choice, .. } = self.planner;
        choice.exchange = Some(MESSAGES.into());
        let mut draft = Planner::new(&problem).choice(choice).without_wisdom().draft(&self.comm)?;
        draft.notes.push(format!("exchange {MESSAGES} instead of {}: {why}", recipe.exchange));
        Ok(draft)
    }
}

/// What parts are encoded with; `None` where none is.
fn wrapping<T: Real>(comm: &Comm, recipe: &Recipe) -> Result<Option<WireCodec<T>>> {
    let one_node = comm.node_count() == 1;
    let nothing = recipe.codec == codec::RAW
        || comm.size() == 1
        || one_node && recipe.compress == Compress::BetweenNodes
        || recipe.reshapes() == 0;
    if nothing {
        return Ok(None);
    }
    let coat = CodecInstance::new(&recipe.codec)?;
    let nodes = (recipe.compress == Compress::BetweenNodes).then(|| comm.nodes().to_vec());
    let packing = coding::encoding(&coat, nodes);
    Ok(Some(WireCodec { coat, packing, grounds: Arc::new(WorkPointers::new(comm.size())) }))
}

/// A plan without its buffers: says what it will do and what it will need.
pub struct Draft<T: Real> {
    pub(crate) comm: Comm,
    pub(crate) recipe: Recipe,
    pub(crate) mechanism: Mechanism,
    /// One for each of the trips; then those of them that differ where users'
    /// arrays cannot be lent.
    pub(crate) variants: Vec<Variant<T>>,
    /// Which variant takes the place of each of the trips then.
    pub(crate) private: Vec<usize>,
    pub(crate) memory: Memory,
    pub(crate) scratch: usize,
    /// Where the work areas of each call are, for what is encoded.
    pub(crate) grounds: Option<Arc<WorkPointers<T>>>,
    /// Where something may be lost.
    pub(crate) ledger: Option<Ledger<T>>,
    pub(crate) tolerance: Option<f64>,
    wisdom: Option<Known>,
    speeds: Option<MachineSpeeds>,
    pub(crate) notes: Vec<String>,
    /// Is there to be a progress thread?
    lookout: bool,
    pub(crate) apprentice: Option<OnlineTuner>,
    other: Option<Other>,
}

/// One of the ways in which a plan can be run.
#[derive(Clone, Copy)]
struct CallKind {
    direction: Direction,
    in_place: bool,
    operated: bool,
}

/// The variants of a plan, in order; those after the fourth are for operators.
const CALL_KINDS: [CallKind; 8] = {
    const fn trip(direction: Direction, in_place: bool, operated: bool) -> CallKind {
        CallKind { direction, in_place, operated }
    }
    use Direction::{Backward, Forward, RoundTrip};
    [
        trip(Forward, false, false),
        trip(Backward, false, false),
        trip(Forward, true, false),
        trip(Backward, true, false),
        trip(RoundTrip, false, true),
        trip(RoundTrip, true, true),
        trip(Forward, false, true),
        trip(Backward, false, true),
    ]
};

impl<T: Real> Draft<T> {
    fn new(comm: &Comm, recipe: Recipe, decision: &Decision, tolerance: Option<f64>) -> Result<Self> {
        let exchange = exchange::find(&recipe.exchange)?;
        let mechanism = exchange.mechanism.on_nodes(comm.node_count());
        let wrapping = wrapping::<T>(comm, &recipe)?;
        let wrapped = wrapping.as_ref();
        let mut tables = Tables { kernel: recipe.kernel.clone(), made: Vec::new(), twiddles: Vec::new() };
        let fuse = |transforms: &[AxisTransform], state: &Distribution| {
            may_fuse(&recipe, decision, transforms, state)
        };
        let trips = &CALL_KINDS[..if recipe.operators { 8 } else { 4 }];
        // Trips in the same direction have the same reshapes, cut in the same way.
        let directions = [Direction::Forward, Direction::Backward, Direction::RoundTrip];
        let directions = &directions[..if recipe.operators { 3 } else { 2 }];
        let tilings: Vec<Vec<Tiling>> = directions.iter().map(|&way| tilings(&recipe, way)).collect();
        let plan = |trip: &CallKind, exposed_ends: bool| {
            let CallKind { direction, in_place, operated } = *trip;
            let tilings = &tilings[direction as usize];
            schedule(
                &recipe,
                ScheduleOptions {
                    direction,
                    in_place,
                    with_operator: operated,
                    mechanism,
                    exposed_ends,
                    tilings,
                    fuse: &fuse,
                },
            )
        };
        let plans: Vec<Schedule> = trips.iter().map(|trip| plan(trip, true)).collect();
        let firsts: Vec<&Schedule> = directions
            .iter()
            .filter_map(|way| Some(&plans[trips.iter().position(|trip| trip.direction == *way)?]))
            .collect();
        let lots = match recipe.overlap.arrays {
            0 => 1,
            arrays => recipe.batch.div_ceil(arrays).max(1),
        };
        let cut = |(plan, tilings): (&&Schedule, &Vec<Tiling>)| tiles::cut(plan, tilings, recipe.batch, lots);
        let cuts: Vec<Vec<Tiles>> = firsts.iter().zip(&tilings).map(cut).collect();
        let ways: Vec<(&Schedule, &[Tiles])> =
            firsts.iter().zip(&cuts).map(|(plan, cuts)| (*plan, &cuts[..])).collect();
        let movers =
            movers(comm, &recipe, &ways, exchange, (wrapped.map(|wrapped| &wrapped.packing), false))?;
        let mut bind = |trip: &CallKind, plan: &Schedule| {
            let way = trip.direction as usize;
            let options = (trip.direction, trip.in_place, decision.memory_policy);
            bind(comm, &recipe, plan, options, (&cuts[way], &movers[way]), wrapped, &mut tables)
        };
        let mut variants = Vec::with_capacity(2 * trips.len());
        for (trip, plan) in trips.iter().zip(&plans) {
            variants.push(bind(trip, plan)?);
        }
        let mut private: Vec<usize> = (0..trips.len()).collect();
        if matches!(mechanism, Mechanism::SharedMemory)
            && comm.size() > 1
            && !comm.transport().exposes_all_memory()
        {
            for (i, trip) in trips.iter().enumerate() {
                let own = plan(trip, false);
                if own != plans[i] {
                    private[i] = variants.len();
                    variants.push(bind(trip, &own)?);
                }
            }
        }
        let scratch =
            variants.iter().flat_map(|variant| &variant.passes).map(BoundPass::scratch).max().unwrap_or(0);
        let coding = wrapped.map_or(0, |wrapped| coding::scratch(&*wrapped.coat.codec));
        // An odd number of cache lines apart, so that the threads' scratches do not share sets.
        let scratch = ((scratch.max(coding) * size_of::<T>()).div_ceil(64) | 1) * (64 / size_of::<T>());
        // One more for who encodes while the others run a pass.
        let scratches = comm.threads() + usize::from(coding > 0);
        let memory = Memory::new::<T>(&variants, scratch * scratches);
        let lossy = wrapped.filter(|_| codec::is_lossy(&recipe.codec));
        let ledger = lossy.map(|wrapped| Ledger::new(comm, &recipe, &wrapped.coat, &variants)).transpose()?;
        let grounds = wrapped.map(|wrapped| wrapped.grounds.clone());
        let mut notes = exchange::notes(movers.iter().flat_map(|movers| movers.iter()));
        let mut lookout = decision.choice.progress == Some(Progress::Thread) && comm.size() > 1;
        if lookout && wrapped.is_some() {
            lookout = false;
            notes.push("passes look after what flies, not a thread: parts are encoded on the way".into());
        }
        if let (true, Err(error)) = (lookout, comm.transport().allows_progress_thread()) {
            lookout = false;
            notes.push(format!("passes look after what flies, not a thread: {error}"));
        }
        let wisdom = decision.wisdom.clone();
        Ok(Draft {
            comm: comm.clone(),
            recipe,
            mechanism,
            variants,
            private,
            memory,
            scratch,
            notes,
            lookout,
            apprentice: None,
            grounds,
            ledger,
            tolerance,
            other: None,
            wisdom,
            speeds: decision.speeds,
        })
    }

    /// What a user should know: an exchange that had to make do with less, or
    /// another one than the planner's first choice, and why.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// For each step of the recipe the most messages that go from one node to
    /// another in one `forward`.
    pub fn messages_between_nodes(&self) -> Vec<u64> {
        self.recipe.messages_between_nodes(self.mechanism, self.comm.nodes())
    }

    /// What the plan will do.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Whose experience the plan was made from; `None` where there was none.
    pub fn wisdom(&self) -> Option<&Known> {
        self.wisdom.as_ref()
    }

    /// What the planner judged by, where it was measured on such a machine:
    /// tuning leaves that in the file of wisdom. `None` where it was assumed.
    pub fn speeds(&self) -> Option<MachineSpeeds> {
        self.speeds
    }

    /// What the plan will take on this rank.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Takes the buffers and starts the threads. Collective.
    ///
    /// # Errors
    /// Where memory or threads cannot be had. Where only memory to share is
    /// missing, and the planner chose to share it, another exchange is taken,
    /// which [`notes`](Self::notes) tell.
    pub fn build(mut self) -> Result<Plan<T>> {
        let other = self.other.take();
        match (self.take_work(), other) {
            (Ok(work), _) => self.finish(Some(work)),
            (Err(error @ Error::Memory { .. }), Some(other)) => other.draft(&self.recipe, &error)?.build(),
            (Err(error), _) => Err(error),
        }
    }

    fn take_work(&self) -> Result<Buffer<T>> {
        let (transport, what) = (self.comm.transport(), "the buffers of a plan");
        let numbers = self.memory.workspace() / size_of::<T>();
        match self.comm.size() > 1 && self.mechanism.shares() {
            true => self.told(shared_buffer(&**transport, numbers, what)),
            false => Buffer::new(numbers, what).inspect_err(|error| transport.fail(&error.to_string())),
        }
    }

    /// Where memory is shared an error is one on every rank; elsewhere the
    /// others must be told.
    fn told<R>(&self, outcome: Result<R>) -> Result<R> {
        outcome.inspect_err(|error| {
            if self.comm.transport().exposes_all_memory() {
                self.comm.transport().fail(&error.to_string());
            }
        })
    }

    /// A plan without buffers of its own: use
    /// [`forward_using`](Plan::forward_using) and its relatives. Collective.
    ///
    /// # Errors
    /// Where threads cannot be had.
    pub fn build_without_workspace(self) -> Result<Plan<T>> {
        self.finish(None)
    }

    pub(crate) fn finish(self, work: Option<Buffer<T>>) -> Result<Plan<T>> {
        // Trips in one direction have their movers together; a third direction is the first trip of operators.
        let first = |which: &usize| [FORWARD, BACKWARD, ROUND].contains(which);
        let variants = self.variants.iter().enumerate().filter(|(which, _)| first(which));
        let movers = variants.flat_map(|(_, variant)| variant.movers.iter());
        let opened = movers.map(|mover| mover.open()).collect::<Result<Vec<()>>>();
        self.told(opened)?;
        let pool = Pool::new(self.comm.threads());
        let pool = pool.inspect_err(|error| self.comm.transport().fail(&error.to_string()))?;
        let passes = || self.variants.iter().flat_map(|variant| &variant.passes);
        let strips = passes().map(BoundPass::most_strips).max().unwrap_or(0);
        let hands = (0..pool.threads()).map(|_| WorkerState::new(strips, self.comm.size())).collect();
        let movers: Vec<_> = self.variants.iter().map(|variant| variant.movers.clone()).collect();
        let flies = movers.iter().any(|movers| !movers.is_empty());
        let lookout = (self.lookout && flies).then(|| ProgressThread::new(movers)).transpose();
        let lookout = lookout.inspect_err(|error| self.comm.transport().fail(&error.to_string()))?;
        Ok(Plan::assemble(self, work, pool, hands, lookout))
    }
}

/// Two axes in one pass: where a plane stays in cache between them, and there
/// are planes enough to keep all threads busy. The same answer on every rank.
fn may_fuse(
    recipe: &Recipe,
    decision: &Decision,
    transforms: &[AxisTransform],
    state: &Distribution,
) -> bool {
    if let Some(fuse) = recipe.fuse {
        return fuse;
    }
    let across = 3 - transforms[0].axis - transforms[1].axis;
    // What lies between the legs; both axes are whole.
    let elements = total_len(&transforms[0].to) * total_len(&transforms[1].from);
    let plane = elements * width(transforms[0].real) * recipe.precision.bytes();
    let planes = state.layout.boxes().iter().map(|b| b.shape()[across]).max().unwrap_or(0) * recipe.batch;
    let rounds = planes.div_ceil(decision.threads);
    // The last round may leave threads idle, but not more than a quarter of the time.
    let busy = planes * 4 >= rounds * decision.threads * 3;
    plane <= decision.plane_bytes && busy && recipe.memory == MemoryUse::Fast
}
