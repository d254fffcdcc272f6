//! Drafts of plans on GPUs: everything is decided, no memory is taken yet.

use std::marker::PhantomData;

use serde::Serialize;

use super::bind::{Binder, Engine, Variant};
use super::codec::DeviceCodec;
use super::gpu::Gpu;
use super::plan::Plan;
use super::touch::Room;
use super::upload::Tables;
use crate::exchange;
use crate::exec::cpu::bind::movers;
use crate::planner::{agree_on, compare};
use crate::{Choice, Comm, Error, Overlap, Planner, Problem, Real, Recipe, Result, Tiling, design};
use ferrier_plan::messages::Mechanism;
use ferrier_plan::recipe::Distribution;
use ferrier_plan::schedule::tilings;
use ferrier_plan::schedule::{AxisTransform, Direction, Schedule, ScheduleOptions, schedule};
use ferrier_plan::tiles::{self, Tiles};

/// Makes plans whose arrays live on a GPU; see [`Planner::device`].
#[derive(Clone, Debug)]
pub struct CudaPlanner {
    planner: Planner,
    gpu: Gpu,
}

/// Bytes that a plan takes on one rank, the caller's arrays not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CudaMemory {
    /// Arrays between passes, on the GPU.
    pub arrays: usize,
    /// Send and receive buffers, on the GPU.
    pub messages: usize,
    /// Lines on their way to cuFFT and back.
    pub scratch: usize,
    /// cuFFT's work area.
    pub cufft: usize,
    /// Tables of the kernels.
    pub tables: usize,
    /// Main memory that messages are staged in; on the CPU, not on the GPU.
    pub staging: usize,
}

impl CudaMemory {
    /// All of it that is on the GPU.
    pub fn total(&self) -> usize {
        self.arrays + self.messages + self.scratch + self.cufft + self.tables
    }
}

/// The variants of a plan, in order: direction, in place, with an operator. Those after the fourth are for operators.
const KINDS: [(Direction, bool, bool); 8] = [
    (Direction::Forward, false, false),
    (Direction::Backward, false, false),
    (Direction::Forward, true, false),
    (Direction::Backward, true, false),
    (Direction::RoundTrip, false, true),
    (Direction::RoundTrip, true, true),
    (Direction::Forward, false, true),
    (Direction::Backward, false, true),
];

/// Directions, and the first variant of each.
const WAYS: [(Direction, usize); 3] =
    [(Direction::Forward, 0), (Direction::Backward, 1), (Direction::RoundTrip, 4)];

/// What lies on the GPU begins at multiples of this.
pub(super) const ALIGN: usize = 256;

/// Tiles of a reshape that is staged through main memory, so that it flies while others are transformed.
const STAGED_TILES: usize = 4;

/// The exchange whose messages go from GPU to GPU where MPI takes such pointers: its
/// collectives that do not block take none.
const AWARE: &str = "point_to_point";

impl CudaPlanner {
    pub(crate) fn new(planner: Planner, gpu: &Gpu) -> Self {
        CudaPlanner { planner, gpu: gpu.clone() }
    }

    /// Decides everything. Collective: every rank of `comm` must call it with
    /// the same problem and choice (own boxes aside), each with its own GPU.
    ///
    /// [`Choice::kernel`] may be `native` (our own kernel wherever it has the
    /// length) or `cufft`; by default the faster one.
    ///
    /// # Errors
    /// As [`Planner::draft`]; and for exchanges that need memory which ranks cannot share.
    pub fn draft<T: Real>(self, comm: &Comm) -> Result<CudaDraft<T>> {
        let Planner { problem, choice, .. } = self.planner;
        let problem = agree_on::<T>(comm, "cuda", problem, &choice, crate::Effort::Estimate)?;
        let aware = comm.size() > 1 && comm.transport().reaches_gpus()?;
        let (engine, choice) = decide(comm, &problem, choice, aware)?;
        let mut recipe = design(&problem, &choice, T::PRECISION, comm.size())?;
        recipe.kernel = engine.name().into();
        if recipe.sphere.is_some() {
            return Err(Error::problem(
                "keep_sphere",
                "a sphere of modes has no plan on a GPU; boxes of modes have",
            ));
        }
        if let Some(axis) = (0..3).find(|&axis| recipe.kinds[axis].r2r().is_some()) {
            return Err(Error::problem(
                "kinds",
                format!(
                    "axes on a GPU are complex, real or left alone; axis {axis} is {}",
                    recipe.kinds[axis].name()
                ),
            ));
        }
        compare(comm, &recipe)?;
        let own = comm.duplicate()?;
        let mechanism = exchange::find(&recipe.exchange)?.mechanism.on_nodes(comm.node_count());
        if comm.size() > 1 && mechanism.shares() {
            own.transport().enable_sharing()?;
        }
        let aware = aware && recipe.exchange == AWARE;
        let staged = !aware && !matches!(mechanism, Mechanism::SharedMemory);
        CudaDraft::new(own, self.gpu, recipe, (mechanism, staged), engine)
    }
}

impl Engine {
    fn find(name: Option<&str>) -> Result<Engine> {
        match name {
            None | Some("auto") => Ok(Engine::Auto),
            Some("native") => Ok(Engine::Native),
            Some("cufft") => Ok(Engine::Cufft),
            Some(other) => Err(Error::UnknownName {
                what: "kernel",
                name: other.into(),
                known: "auto, native, cufft (on a GPU)".into(),
            }),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Engine::Auto => "auto",
            Engine::Native => "native",
            Engine::Cufft => "cufft",
        }
    }
}

/// What is left open: ranks of this process reach each other's GPUs, others send messages.
fn decide(comm: &Comm, problem: &Problem, mut choice: Choice, aware: bool) -> Result<(Engine, Choice)> {
    let engine = Engine::find(choice.kernel.take().as_deref())?;
    if problem.tolerance.is_some() && choice.codec.as_deref().is_some_and(|name| name != crate::codec::RAW) {
        return Err(Error::choice(
            "codec",
            "on a GPU no certificate says whether a codec kept a tolerance: leave out the codec, and nothing is \
             lost, or the tolerance",
        ));
    }
    // What is allowed to be lost need not be.
    let coded = choice.codec.get_or_insert_with(|| crate::codec::RAW.into()) != crate::codec::RAW;
    (choice.fuse, choice.memory) = (Some(false), crate::MemoryUse::Small);
    let near = comm.transport_name() == "threads" && comm.node_count() == 1;
    let name = choice.exchange.get_or_insert_with(|| match (near && !coded) || comm.size() == 1 {
        true => exchange::EXCHANGES[0].name.into(),
        false if aware => AWARE.into(),
        false => "all_to_allv".into(),
    });
    let member = exchange::find(name)?;
    let shares = member.mechanism.on_nodes(comm.node_count()).shares();
    if comm.size() > 1 && shares && !near {
        return Err(Error::choice(
            "exchange",
            format!(
                "exchange `{name}` on GPUs needs ranks that are threads of one process on one node; others send \
             messages"
            ),
        ));
    }
    if coded && comm.size() > 1 && (shares || name == "ring") {
        return Err(Error::choice(
            "exchange",
            format!(
                "exchange `{name}` encodes nothing on a GPU; those that send whole messages do, such as `all_to_allv`"
            ),
        ));
    }
    if !shares && comm.size() > 1 {
        let longest = problem.shape().into_iter().max().unwrap_or(1);
        let tile = longest.div_ceil(STAGED_TILES);
        choice.overlap.get_or_insert_with(|| Overlap::uniform(Tiling::new(tile).polls(0)));
    }
    Ok((engine, choice))
}

/// A plan on a GPU without its memory: says what it will do and what it will need.
pub struct CudaDraft<T: Real> {
    pub(super) comm: Comm,
    pub(super) gpu: Gpu,
    pub(super) recipe: Recipe,
    pub(super) mechanism: Mechanism,
    pub(super) variants: Vec<Variant>,
    pub(super) tables: Tables,
    pub(super) memory: CudaMemory,
    /// Where the two scratches and cuFFT's work area begin in the workspace.
    pub(super) scratch: [usize; 2],
    pub(super) cufft: usize,
    pub(super) codec: Option<DeviceCodec<T>>,
    /// Where tables of formulas go.
    pub(super) room: Room,
}

impl<T: Real> CudaDraft<T> {
    fn new(
        comm: Comm,
        gpu: Gpu,
        recipe: Recipe,
        (mechanism, staged): (Mechanism, bool),
        engine: Engine,
    ) -> Result<Self> {
        let kinds = &KINDS[..if recipe.operators { 8 } else { 4 }];
        let directions = &WAYS[..if recipe.operators { 3 } else { 2 }];
        let tilings: Vec<_> = directions.iter().map(|(direction, _)| tilings(&recipe, *direction)).collect();
        let plan = |&(direction, in_place, operated): &(Direction, bool, bool)| {
            let (tilings, exposed_ends, fuse) =
                (&tilings[direction as usize][..], true, &|_: &[AxisTransform], _: &Distribution| false);
            schedule(
                &recipe,
                ScheduleOptions {
                    direction,
                    in_place,
                    with_operator: operated,
                    mechanism,
                    exposed_ends,
                    tilings,
                    fuse,
                },
            )
        };
        let plans: Vec<Schedule> = kinds.iter().map(plan).collect();
        let lots = match recipe.overlap.arrays {
            0 => 1,
            arrays => recipe.batch.div_ceil(arrays).max(1),
        };
        let cut = |(way, &(_, first)): (usize, &(Direction, usize))| {
            tiles::cut(&plans[first], &tilings[way], recipe.batch, lots)
        };
        let cuts: Vec<Vec<Tiles>> = directions.iter().enumerate().map(cut).collect();
        let codec = match recipe.codec == crate::codec::RAW || comm.size() == 1 || mechanism.shares() {
            true => None,
            false => Some(DeviceCodec::<T>::new(&gpu, &recipe.codec)?),
        };
        let packing = codec.as_ref().map(|codec| crate::exec::cpu::coding::encoding(codec.coat(), None));
        let ways: Vec<(&Schedule, &[Tiles])> =
            directions.iter().zip(&cuts).map(|((_, first), cuts)| (&plans[*first], &cuts[..])).collect();
        let movers =
            movers(&comm, &recipe, &ways, exchange::find(&recipe.exchange)?, (packing.as_ref(), true))?;
        let mut binder = Binder::<T> {
            gpu: &gpu,
            recipe: &recipe,
            rank: comm.rank(),
            engine,
            packing: packing.as_ref(),
            tables: Tables::default(),
            arrays: recipe.batch,
            in_place: false,
            scratch: [0; 2],
            cufft: 0,
            number: PhantomData,
        };
        let mut variants = Vec::with_capacity(kinds.len());
        for ((direction, in_place, _), plan) in kinds.iter().zip(&plans) {
            let way = *direction as usize;
            variants.push(binder.variant(plan, *in_place, (&cuts[way], &movers[way]))?);
        }
        let room = if recipe.operators { binder.formula_room() } else { Room::default() };
        let Binder { tables, scratch, cufft, .. } = binder;
        let most = |of: fn(&Variant) -> usize| variants.iter().map(of).max().unwrap_or(0) * size_of::<T>();
        let arrays = most(|variant| variant.areas.arrays);
        let total = most(|variant| variant.areas.total).next_multiple_of(ALIGN);
        let [first, second] = scratch.map(|bytes| bytes.next_multiple_of(ALIGN));
        let messages = most(|variant| variant.areas.total - variant.areas.arrays);
        let memory = CudaMemory {
            arrays: total - messages.min(total),
            messages,
            scratch: first + second,
            cufft,
            tables: tables.bytes.len(),
            staging: if staged { total } else { 0 },
        };
        debug_assert!(arrays <= total);
        let places = [total, total + first];
        let cufft = total + first + second;
        Ok(CudaDraft {
            comm,
            gpu,
            recipe,
            mechanism,
            variants,
            tables,
            memory,
            scratch: places,
            cufft,
            codec,
            room,
        })
    }

    /// What the plan will do.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// What the plan will take on this rank.
    pub fn memory(&self) -> CudaMemory {
        self.memory
    }

    /// The GPU of this rank.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Takes the memory and compiles the kernels. Collective.
    ///
    /// # Errors
    /// On every rank, and before any memory is taken, where a GPU has not
    /// enough of it for all ranks that share it; where a kernel does not compile.
    pub fn build(self) -> Result<Plan<T>> {
        self.room()?;
        let comm = self.comm.clone();
        Plan::build(self).inspect_err(|error| {
            if comm.size() > 1 {
                comm.transport().fail(&error.to_string());
            }
        })
    }

    /// Is there room on every GPU for the plans of all its ranks?
    fn room(&self) -> Result<()> {
        let (free, _) = self.gpu.memory()?;
        let mine = [self.memory.total(), free, self.gpu.index()].map(|value| value as u64);
        let mine: Vec<u8> = mine.iter().flat_map(|value| value.to_le_bytes()).collect();
        let all: Vec<[u64; 3]> = self
            .comm
            .all_gather(&mine)?
            .iter()
            .map(|bytes| {
                let words = bytes.as_chunks::<8>().0;
                std::array::from_fn(|i| words.get(i).map_or(0, |word| u64::from_le_bytes(*word)))
            })
            .collect();
        let nodes = self.comm.nodes();
        for (rank, [_, free, gpu]) in all.iter().enumerate() {
            let shares = |other: &usize| nodes[*other] == nodes[rank] && all[*other][2] == *gpu;
            let needed: u64 = (0..all.len()).filter(shares).map(|other| all[other][0]).sum();
            if needed > *free {
                return Err(Error::device(format!(
                    "out of memory: the plan needs {needed} bytes on GPU {gpu} for its {} ranks there, {free} are \
                     free",
                    (0..all.len()).filter(shares).count()
                )));
            }
        }
        Ok(())
    }
}
