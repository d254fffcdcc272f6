//! Drafts: everything about a plan is decided, no memory is allocated yet.

use std::fmt;

use super::agree::{Decision, MESSAGES, StartChoice, agree, compare};
use super::entry_ref::EntryRef;
use super::forecast::Forecast;
use super::pipeline::Pipeline;
use super::target::Target;
use crate::exchange::PacketPolicy;
use crate::exec::backend::{Backend, Executor, VariantOf};
use crate::exec::bind::{bind, exchanges, has_remote_buffers};
use crate::exec::certificate::Ledger;
use crate::exec::plan::{CallObserver, CallState, Plan};
use crate::exec::progress::ProgressThread;
use crate::exec::variant::{BACKWARD, CALL_KINDS, CallKind, DIRECTIONS, FORWARD};
use crate::exec::{Cpu, Memory};
use crate::{Choice, Comm, Error, MachineSpeeds, Problem, Progress, Real, Recipe, Result, codec, exchange};
use ferrier_plan::cost::{Machine, Prediction};
use ferrier_plan::lowering::EndStrides;
use ferrier_plan::messages::Mechanism;
use ferrier_plan::recipe::Distribution;
use ferrier_plan::schedule::{
    AxisTransform, Direction, Schedule, ScheduleOptions, better_aside, may_fuse, schedule, tilings,
};
use ferrier_plan::tiles::{self, Tiles};

/// The arguments of a second draft, with another exchange, if memory cannot be shared.
struct Spare {
    comm: Comm,
    problem: Problem,
    choice: Choice,
}

impl Spare {
    fn draft<T: Real, B: Target>(
        self,
        device: &B::Handle,
        recipe: &Recipe,
        why: &Error,
    ) -> Result<Draft<T, B>> {
        let Spare { comm, problem, mut choice } = self;
        choice.exchange = Some(MESSAGES.into());
        let mut draft = Draft::on(&comm, &problem, choice, device)?;
        draft.notes.push(format!("exchange {MESSAGES} instead of {}: {why}", recipe.exchange));
        Ok(draft)
    }
}

/// The first word of the note that says which constants were used.
const COST_MODEL: &str = "cost model";

/// A plan without its memory: says what it will do and what it will need.
pub struct Draft<T: Real, B: Backend = Cpu> {
    pub(super) comm: Comm,
    recipe: Recipe,
    strides: EndStrides,
    mechanism: Mechanism,
    variants: Vec<VariantOf<T, B::Executor<T>>>,
    unexposed: Vec<usize>,
    pub(super) memory: Memory,
    pub(super) binder: <B::Executor<T> as Executor<T>>::Binder,
    ledger: Option<Ledger>,
    tolerance: Option<f64>,
    decision: Decision,
    notes: Vec<String>,
    /// `None` where the cost model does not know the device.
    pub(super) forecast: Option<Forecast>,
    /// Recipes that the cost model rejected, with their predicted times relative to this one's.
    rejected: Vec<(Recipe, f64)>,
    progress_thread: bool,
    /// Observes the calls of the plan.
    pub(super) observer: Option<Box<dyn CallObserver<T, B>>>,
    pub(super) device: B::Handle,
    spare: Option<Spare>,
}

impl<T: Real, B: Target> Draft<T, B> {
    /// A draft for this choice, without wisdom. Collective.
    pub(super) fn on(comm: &Comm, problem: &Problem, choice: Choice, device: &B::Handle) -> Result<Self> {
        let problem = agree::<T>(comm, B::NAME, problem.clone(), &choice, "none")?;
        Draft::new(comm, &problem, choice.clone(), choice.into(), device)
    }

    /// Completes the choice, lays out memory and binds all kinds of calls. `given` is the user's own choice.
    /// Collective.
    pub(super) fn new(
        comm: &Comm,
        problem: &Problem,
        given: Choice,
        start: StartChoice,
        device: &B::Handle,
    ) -> Result<Self> {
        let decision = B::decide::<T>(comm, problem, start)?;
        let designed = B::design::<T>(problem, &decision, comm)?;
        let recipe = designed.recipe;
        compare(comm, &recipe)?;
        // Shared memory may be unavailable; if the user did not name the exchange, another one is used then.
        let spare = given.exchange.is_none();
        let spare = spare.then(|| Spare { comm: comm.clone(), problem: problem.clone(), choice: given });
        let tolerance = problem.tolerance.map(|tolerance| tolerance.0);
        let strides = EndStrides::new(problem);
        let draft = Draft::of_recipe(comm, (recipe, strides), decision, (tolerance, spare), device)?;
        let relative = |(recipe, seconds)| (recipe, seconds / designed.seconds);
        Ok(Draft { rejected: designed.rejected.into_iter().map(relative).collect(), ..draft })
    }

    /// Lays out the memory of a recipe and binds all kinds of calls. Collective.
    fn of_recipe(
        comm: &Comm,
        (recipe, strides): (Recipe, EndStrides),
        decision: Decision,
        (tolerance, spare): (Option<f64>, Option<Spare>),
        device: &B::Handle,
    ) -> Result<Self> {
        let comm = &comm.duplicate()?.with_threads(decision.threads);
        let entry = exchange::find(&recipe.exchange)?;
        let mechanism = entry.mechanism.on_nodes(comm.node_count());
        let shares = comm.size() > 1 && mechanism.shares();
        let mut spare = spare.filter(|_| shares && !comm.transport().exposes_all_memory());
        if shares && let Err(error) = comm.transport().enable_sharing() {
            return spare.take().ok_or_else(|| error.clone())?.draft(device, &recipe, &error);
        }
        let mut binder = B::binder::<T>(device, comm, &recipe)?;
        let kinds = &CALL_KINDS[..if recipe.operators { 8 } else { 4 }];
        let directions = &DIRECTIONS[..if recipe.operators { 3 } else { 2 }];
        let fuse = |transforms: &[AxisTransform], state: &Distribution| {
            may_fuse(&recipe, (decision.plane_bytes, decision.threads), transforms, state)
        };
        let aside = |transform: &AxisTransform, state: &Distribution| {
            better_aside(&recipe, (decision.plane_bytes, decision.threads), transform, state)
        };
        // Calls in the same direction have the same reshapes, cut in the same way.
        let tilings: Vec<_> = directions.iter().map(|(direction, _)| tilings(&recipe, *direction)).collect();
        let alike = strides.are_alike(&recipe);
        let schedule = |kind: &CallKind, exposed_ends: bool| {
            let CallKind { direction, in_place, operated: with_operator } = *kind;
            let (tilings, fuse) = (&tilings[direction as usize][..], &fuse);
            let options = ScheduleOptions {
                direction,
                in_place,
                alike: alike || direction == Direction::RoundTrip,
                with_operator,
                mechanism,
                exposed_ends,
                tilings,
                fuse,
                aside: &aside,
            };
            schedule(&recipe, options)
        };
        let schedules: Vec<Schedule> = kinds.iter().map(|kind| schedule(kind, true)).collect();
        let batch_chunks = match recipe.overlap.arrays {
            0 => 1,
            arrays => recipe.batch.div_ceil(arrays).max(1),
        };
        let cut = |(number, (_, first)): (usize, &(_, usize))| {
            tiles::cut(&schedules[*first], &tilings[number], recipe.batch, batch_chunks)
        };
        let cuts: Vec<Vec<Tiles>> = directions.iter().enumerate().map(cut).collect();
        let sent: Vec<(&Schedule, &[Tiles])> =
            directions.iter().zip(&cuts).map(|((_, first), cuts)| (&schedules[*first], &cuts[..])).collect();
        let encoding = <B::Executor<T>>::encoding(&binder);
        let encodes = encoding.is_some();
        let packets = PacketPolicy::of(&decision.start.choice);
        let options = (encoding, <B::Executor<T>>::NEEDS_RECEIVE_BUFFERS, packets);
        let exchanges = exchanges(comm, &recipe, &sent, entry, options)?;
        // Ranks with several threads share blocks out among these.
        let helps = mechanism == Mechanism::SharedMemory && comm.size() > 1 && comm.threads() == 1;
        let mut bind = |kind: &CallKind, schedule: &Schedule, exposed_ends: bool| {
            let number = kind.direction as usize;
            let exchanges = (&cuts[number][..], &exchanges[number]);
            let help = helps.then_some(exposed_ends);
            let options = (*kind, decision.memory_policy, &strides.of(kind.direction), help);
            bind::<T, B::Executor<T>>(comm, &recipe, schedule, options, exchanges, &mut binder)
        };
        // Where not all memory can be exposed, calls with other arrays have schedules of their own, or the same one: then
        // it must do without access to the ends of other ranks.
        let may_be_private =
            mechanism == Mechanism::SharedMemory && comm.size() > 1 && !comm.transport().exposes_all_memory();
        let private: Vec<Option<Schedule>> =
            kinds.iter().map(|kind| may_be_private.then(|| schedule(kind, false))).collect();
        let mut variants = Vec::with_capacity(2 * kinds.len());
        for ((kind, schedule), private) in kinds.iter().zip(&schedules).zip(&private) {
            variants.push(bind(kind, schedule, private.as_ref() != Some(schedule))?);
        }
        let mut unexposed: Vec<usize> = (0..kinds.len()).collect();
        for (i, own) in private.iter().enumerate() {
            if let Some(own) = own.as_ref().filter(|own| **own != schedules[i]) {
                unexposed[i] = variants.len();
                variants.push(bind(&kinds[i], own, false)?);
            }
        }
        let memory = <B::Executor<T>>::memory(&mut binder, comm, &variants);
        let lossy = encodes && codec::is_lossy(&recipe.codec);
        let reshapes = variants.iter().map(|variant| variant.gains.each.len()).max().unwrap_or(0);
        let ledger = lossy.then(|| Ledger::new(comm, reshapes)).transpose()?;
        let mut notes = exchange::notes(exchanges.iter().flat_map(|exchanges| exchanges.iter()));
        notes.extend(<B::Executor<T>>::notes(&binder, &memory));
        let mut progress_thread = decision.start.choice.progress == Some(Progress::Thread) && comm.size() > 1;
        let refused = match comm.transport().allows_progress_thread() {
            _ if encodes => Some("messages are encoded".to_string()),
            _ if !B::PROGRESS_THREAD => Some("on a GPU, calls poll while they wait for it".into()),
            allowed => allowed.err().map(|error| error.to_string()),
        };
        if let (true, Some(reason)) = (progress_thread, refused) {
            progress_thread = false;
            notes.push(format!("progress thread disabled: {reason}"));
        }
        if B::LEARNS {
            notes.push(format!("{COST_MODEL}: {}", decision.machine.origin()));
        }
        let forecast = B::LEARNS.then(|| Forecast::of(comm, &decision, mechanism, strides.clone()));
        Ok(Draft {
            tolerance,
            decision,
            comm: comm.clone(),
            device: device.clone(),
            recipe,
            strides,
            mechanism,
            variants,
            unexposed,
            memory,
            binder,
            ledger,
            notes,
            forecast,
            rejected: Vec::new(),
            progress_thread,
            observer: None,
            spare,
        })
    }

    /// Bytes of memory of the rank that needs most. Collective.
    ///
    /// For a group [for planning](crate::Ranks::for_planning) of more than 64 ranks, the most of rank 0 and of those
    /// that have the largest boxes of the layouts before and after each step.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    pub fn largest_memory(&self) -> Result<u64> {
        let other = |rank: usize| self.comm.transport().other_rank(rank);
        if other(0).is_none() {
            return Ok(self.comm.max(&[self.memory.total() as f64])?[0] as u64);
        }
        let mut most = self.memory.total();
        for rank in ranks_with_most(&self.recipe).into_iter().filter(|&rank| rank != self.comm.rank()) {
            let Some(transport) = other(rank) else { continue };
            let comm = Comm::new(transport, self.comm.threads());
            let recipe = (self.recipe.clone(), self.strides.clone());
            let decision = self.decision.clone();
            let draft: Self = Draft::of_recipe(&comm, recipe, decision, (None, None), &self.device)?;
            most = most.max(draft.memory.total());
        }
        Ok(most as u64)
    }

    /// Takes the memory, starts the threads or compiles the kernels. Collective.
    ///
    /// # Errors
    /// Where memory or threads cannot be had, or a kernel does not compile; where the GPUs have too little memory,
    /// on every rank before any is taken. Where only memory to share is missing, and the planner chose to share it,
    /// another exchange is taken, which [`notes`](Self::notes) tell.
    pub fn build(mut self) -> Result<Plan<T, B>> {
        let spare = self.spare.take();
        let exposed = self.comm.size() > 1 && self.mechanism.shares();
        <B::Executor<T>>::check_room(&self.binder, &self.comm, &self.memory)?;
        let work = <B::Executor<T>>::allocate(&self.binder, &self.comm, &self.memory, exposed);
        // Where not all memory can be exposed, an error of memory to expose occurs on every rank.
        let work = work.inspect_err(|error| {
            if !exposed || self.comm.transport().exposes_all_memory() {
                self.comm.transport().fail(&error.to_string());
            }
        });
        match (work, spare) {
            (Ok(work), _) => self.finish(Some(work)),
            (Err(error @ Error::Memory { .. }), Some(spare)) => {
                spare.draft(&self.device, &self.recipe, &error)?.build()
            }
            (Err(error), _) => Err(error),
        }
    }

    pub(super) fn finish(
        mut self,
        work: Option<<B::Executor<T> as Executor<T>>::Buffer>,
    ) -> Result<Plan<T, B>> {
        let comm = self.comm;
        let tell = |error: &Error| comm.transport().fail(&error.to_string());
        // Calls in one direction have their exchanges in common.
        let firsts = DIRECTIONS.iter().filter_map(|(_, first)| self.variants.get(*first));
        let mut all = firsts.flat_map(|variant| variant.exchanges.iter());
        let opened = all.try_for_each(|exchange| exchange.open());
        // Where not all memory can be exposed, an error occurs on every rank.
        opened.inspect_err(|error| {
            if comm.transport().exposes_all_memory() {
                tell(error)
            }
        })?;
        let exchanges: Vec<_> = self.variants.iter().map(|variant| variant.exchanges.clone()).collect();
        let remote = exchanges.iter().any(|exchanges| has_remote_buffers(exchanges));
        let shared = comm.size() > 1 && (self.mechanism.shares() || remote);
        let own_work = work.is_some();
        let executor =
            <B::Executor<T>>::build(self.binder, &comm, &mut self.variants, &self.memory, work, shared);
        let executor = executor.inspect_err(tell)?;
        let sends = exchanges.iter().any(|exchanges| !exchanges.is_empty());
        let progress = (self.progress_thread && sends).then(|| ProgressThread::new(exchanges)).transpose();
        let progress = progress.inspect_err(tell)?;
        Ok(Plan {
            state: CallState::new(comm.size(), self.recipe.batch, &self.variants),
            comm,
            recipe: self.recipe,
            mechanism: self.mechanism,
            variants: self.variants,
            unexposed: self.unexposed,
            memory: self.memory,
            notes: self.notes,
            shared,
            executor,
            progress,
            observer: self.observer.filter(|_| own_work),
            ledger: self.ledger,
            tolerance: self.tolerance,
        })
    }
}

impl<T: Real> Draft<T, Cpu> {
    /// A plan without a workspace of its own: calls take one by [`Call::workspace`](crate::Call::workspace).
    /// Collective.
    ///
    /// # Errors
    /// Where threads cannot be started.
    pub fn build_without_workspace(self) -> Result<Plan<T>> {
        self.finish(None)
    }
}

impl<T: Real, B: Backend> Draft<T, B> {
    /// Which constants of the cost model were used, and the substitutions that Ferrier makes, each with its reason:
    /// another exchange than the planner's first choice, an exchange that works without windows, no progress thread.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// For each step of the recipe the most messages that go from one node to another in one `forward`.
    pub fn messages_between_nodes(&self) -> Vec<u64> {
        self.recipe.messages_between_nodes(self.mechanism, self.comm.nodes())
    }

    /// What the plan will do.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// How the reshapes in which something is sent are pipelined: those of `forward`, then those of `backward`.
    pub fn pipelines(&self) -> Vec<Pipeline> {
        let one_way = [(FORWARD, false), (BACKWARD, true)];
        let of = |(kind, backward): (usize, bool)| {
            let variant = &self.variants[kind];
            let reshape = move |(number, (name, _)): (usize, &(String, u64))| {
                let tiles = variant.reshape_of.iter().zip(&variant.received);
                let own: Vec<u64> = tiles.filter(|(of, _)| **of == number).map(|(_, bytes)| *bytes).collect();
                let (depth, bytes) = (own.len(), own.into_iter().max().unwrap_or(0));
                Pipeline { name: name.clone(), backward, depth, bytes }
            };
            variant.reshapes.iter().enumerate().map(reshape).filter(|pipeline| pipeline.depth > 0)
        };
        one_way.into_iter().flat_map(of).collect()
    }

    /// Recipes that were rejected, the fastest first, with the times that the cost model predicts for them relative to
    /// this one's, `forward` and `backward` on average.
    pub fn rejected(&self) -> &[(Recipe, f64)] {
        &self.rejected
    }

    /// The wisdom that the choice was taken from; `None` where nothing was known.
    pub fn wisdom(&self) -> Option<&EntryRef> {
        self.decision.start.wisdom.as_ref()
    }

    /// The speeds that the planner decided by, where they were measured on such a machine: tuning adds them to the
    /// wisdom file. `None` where it assumed some.
    pub fn speeds(&self) -> Option<MachineSpeeds> {
        self.decision.start.speeds
    }

    /// The times of the steps of `forward` (in place or not) that the cost model predicts; `None` on a GPU.
    pub fn prediction(&self, in_place: bool) -> Option<Prediction> {
        let forecast = self.forecast.as_ref()?;
        Some(forecast.predict(&self.recipe, Direction::Forward, in_place))
    }

    /// The machine that predictions are for, with the constants that they use; `None` on a GPU.
    pub fn machine(&self) -> Option<&Machine> {
        self.forecast.as_ref().map(|forecast| &forecast.machine)
    }

    /// The memory that the plan will take on this rank.
    pub fn memory(&self) -> Memory {
        self.memory
    }
}

impl<T: Real, B: Backend> fmt::Debug for Draft<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("comm", &self.comm)
            .field("recipe", &self.recipe)
            .field("memory", &self.memory)
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

/// The ranks that may need most memory: all of up to 64.
fn ranks_with_most(recipe: &Recipe) -> Vec<usize> {
    if recipe.ranks() <= 64 {
        return (0..recipe.ranks()).collect();
    }
    let largest = |array: Distribution| {
        let (boxes, most) = (array.layout.boxes(), array.layout.largest());
        boxes.iter().position(|part| part.volume() == most).unwrap_or(0)
    };
    let mut ranks: Vec<usize> = recipe.distributions().into_iter().map(largest).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}
