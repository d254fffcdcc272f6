//! What planning decides for GPUs.

use super::agree::{Decision, MESSAGES, StartChoice};
use super::draft::Draft;
use super::target::{Target, encoding};
use crate::codec::{self, CodecInstance, RAW};
use crate::exec::cuda::{Cuda, CudaBinder, DeviceCodec, Engine, Gpu};
use crate::{
    Choice, Comm, Error, Kind, Overlap, Problem, Real, Recipe, Result, Sign, Tiling, design, exchange,
};
use ferrier_plan::Designed;
use ferrier_plan::lowering::MemoryPolicy;
use ferrier_plan::messages::Mechanism;

/// Tiles of a reshape that is staged in main memory, so that it is in flight while others are transformed.
const STAGED_TILES: usize = 4;

/// Bytes of a packet of exchange `ring` that a GPU encodes.
const GPU_PACKET: usize = 1 << 20;

/// The exchange whose messages go from GPU to GPU where MPI accesses their memory: its collectives that do not block
/// cannot.
const AWARE: &str = "point_to_point";

impl Target for Cuda {
    const NAME: &'static str = "cuda";
    const LEARNS: bool = false;
    const PROGRESS_THREAD: bool = false;

    fn decide<T: Real>(comm: &Comm, problem: &Problem, start: StartChoice) -> Result<Decision> {
        let aware = comm.size() > 1 && comm.transport().reaches_gpus()?;
        let start = complete(comm, problem, start.choice, aware)?.into();
        let (threads, memory_policy) = (comm.threads(), MemoryPolicy::default());
        let machine = crate::machine::model().clone();
        Ok(Decision { start, plane_bytes: 0, threads, memory_policy, machine, open_exchange: false })
    }

    fn design<T: Real>(problem: &Problem, decision: &Decision, comm: &Comm) -> Result<Designed> {
        let mut choice = decision.start.choice.clone();
        let engine = Engine::find(choice.kernel.take().as_deref())?;
        let mut recipe = design(problem, &choice, T::PRECISION, comm.size())?;
        // Codecs of variable length, which a design may choose, do not run on a GPU.
        recipe.codec = codec::decide_among(problem, choice.codec.as_deref(), &recipe, true)?;
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
        Ok(recipe.into())
    }

    fn binder<T: Real>(gpu: &Gpu, comm: &Comm, recipe: &Recipe) -> Result<CudaBinder<T>> {
        let mechanism = exchange::find(&recipe.exchange)?.mechanism.on_nodes(comm.node_count());
        let sends = comm.size() > 1 && mechanism != Mechanism::SharedMemory;
        let staged = sends && !(recipe.exchange == AWARE && comm.transport().reaches_gpus()?);
        let encodes = recipe.codec != RAW && comm.size() > 1 && !mechanism.shares();
        let codec = match encodes {
            true => {
                let encoding = encoding(&CodecInstance::<T>::new(&recipe.codec)?, None);
                Some((DeviceCodec::new(gpu, &recipe.codec)?, encoding))
            }
            false => None,
        };
        CudaBinder::new(gpu, recipe, codec, staged)
    }
}

impl<T: Real> Draft<T, Cuda> {
    /// The GPU of this rank.
    pub fn gpu(&self) -> &Gpu {
        &self.device
    }
}

/// Completes a choice: ranks of one process access each other's GPUs, others send messages. `aware`: MPI accesses
/// GPU memory.
fn complete(comm: &Comm, problem: &Problem, mut choice: Choice, aware: bool) -> Result<Choice> {
    Engine::find(choice.kernel.as_deref())?;
    if problem.real_input && problem.kinds().contains(&Kind::Complex) {
        return Err(Error::choice(
            "device",
            "on a GPU the input of a complex transform is complex; `r2c` takes real input",
        ));
    }
    if problem.real && problem.sign == Sign::Positive {
        return Err(Error::choice(
            "device",
            "on a GPU real transforms have the negative sign; the spectrum of the other one is its conjugate",
        ));
    }
    let coded = match &choice.codec {
        Some(name) => name != RAW,
        None => problem.tolerance.is_some(),
    };
    (choice.fuse, choice.memory) = (Some(false), crate::MemoryUse::Small);
    let near = comm.transport_name() == "threads" && comm.node_count() == 1;
    let name = choice.exchange.get_or_insert_with(|| match (near && !coded) || comm.size() == 1 {
        true => exchange::EXCHANGES[0].name.into(),
        false if aware => AWARE.into(),
        false => MESSAGES.into(),
    });
    let entry = exchange::find(name)?;
    let shares = entry.mechanism.on_nodes(comm.node_count()).shares();
    if comm.size() > 1 && shares && !near {
        return Err(Error::choice(
            "exchange",
            format!(
                "exchange `{name}` on GPUs needs ranks that are threads of one process on one node; others send \
             messages"
            ),
        ));
    }
    if coded && comm.size() > 1 && shares {
        return Err(Error::choice(
            "exchange",
            format!(
                "exchange `{name}` encodes nothing on a GPU; those that send messages do, such as `all_to_allv`"
            ),
        ));
    }
    if coded && name == "ring" {
        // A packet costs a copy to the GPU and a launch.
        choice.packet.get_or_insert(GPU_PACKET);
    }
    if !shares && comm.size() > 1 {
        let longest = problem.shape().into_iter().max().unwrap_or(1);
        let tile = longest.div_ceil(STAGED_TILES);
        choice.overlap.get_or_insert_with(|| Overlap::uniform(Tiling::new(tile).polls(0)));
    }
    Ok(choice)
}
