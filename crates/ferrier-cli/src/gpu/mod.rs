//! `--device cuda`: the same commands with arrays on a GPU.

mod apply;
mod bench;
mod cufft;

use ferrier::cuda::{self, CudaPlanner, Gpu};
use ferrier::{Choice, Comm, Device, Planner, Precision, Problem, Real};

pub use apply::apply;
pub use ferrier::cuda::CudaInfo as Info;

use crate::args::Common;
use crate::contest::Job;
use crate::failure::{Outcome, fail};
use crate::plan::Drafted;
use crate::report::bytes;
use crate::session::{self, Session};
use crate::timing::{Measured, Work};

/// The GPUs and libraries of this machine.
pub fn info() -> Option<Info> {
    Some(cuda::info())
}

/// On one line.
pub fn text(info: &Info) -> String {
    if let Some(missing) = &info.missing {
        // The first that is missing will do; all of them are in the JSON.
        return missing.split("; no CUDA").next().unwrap_or_default().into();
    }
    let version = |version: &Option<String>| version.clone().unwrap_or("unknown".into());
    let gpus: Vec<String> = info
        .gpus
        .iter()
        .map(|gpu| {
            format!(
                "{} (GPU {}, {}, capability {}, {} multiprocessors)",
                gpu.name,
                gpu.index,
                bytes(gpu.memory_bytes as u64),
                gpu.capability,
                gpu.multiprocessors
            )
        })
        .collect();
    let gpus = if gpus.is_empty() { "no GPU".into() } else { gpus.join(", ") };
    format!(
        "{gpus}; driver for CUDA {}, cuFFT {}, NVRTC {}",
        version(&info.driver),
        version(&info.cufft),
        version(&info.nvrtc)
    )
}

/// The GPU of a rank: the one that was asked for, or the ranks of a node share
/// out all. The same outcome on every rank. Collective.
///
/// # Errors
/// There is none, or something of CUDA is missing; says what was searched.
pub fn of_rank(device: Device, comm: &Comm) -> Outcome<Gpu> {
    session::agree(comm, pick(device, comm))
}

fn pick(device: Device, comm: &Comm) -> Outcome<Gpu> {
    cuda::check()?;
    let count = cuda::gpu_count();
    if count == 0 {
        return fail("--device cuda: the driver is there, but no GPU");
    }
    let node = comm.nodes()[comm.rank()];
    let local = comm.nodes()[..comm.rank()].iter().filter(|other| **other == node).count();
    let index = match device {
        Device::Cuda(Some(index)) => index,
        _ => local % count,
    };
    Ok(Device::cuda(index)?)
}

/// A planner for this rank's GPU. Collective.
///
/// # Errors
/// As [`of_rank`].
pub fn planner(problem: &Problem, choice: &Choice, device: Device, comm: &Comm) -> Outcome<CudaPlanner> {
    Ok(Planner::new(problem).choice(choice.clone()).device(&of_rank(device, comm)?))
}

/// `ferrier plan`: what a rank learns from a draft. Collective.
///
/// # Errors
/// Those of the library.
pub fn draft<T: Real>(comm: &Comm, problem: &Problem, choice: &Choice, device: Device) -> Outcome<Drafted> {
    let start = std::time::Instant::now();
    let draft = planner(problem, choice, device, comm)?.draft::<T>(comm);
    let draft = session::agree(comm, draft.map_err(Into::into))?;
    Ok(Drafted {
        recipe: draft.recipe().clone(),
        memory: comm.max(&[draft.memory().total() as f64])?[0] as u64,
        nodes: comm.nodes().to_vec(),
        notes: vec![format!("memory is that of {:?}", draft.gpu())],
        wisdom: None,
        speeds: None,
        planning_ms: start.elapsed().as_secs_f64() * 1e3,
    })
}

/// `ferrier bench`: what was measured, and the GPU's copy speed before and after.
///
/// # Errors
/// Those of the library; options that are for the CPU.
pub fn bench(
    common: &Common,
    work: &Work<'_>,
    job: &Job,
    device: Device,
    session: &Session,
) -> Outcome<(Vec<Measured>, f64)> {
    let Job::One(choice) = job else {
        return fail(format!("--device {device}: sweeps and variants are for the CPU"));
    };
    let copy = || session.run(common, |comm| bench::copy_speed(comm, &of_rank(device, comm)?));
    let before = copy()?;
    let measured = match work.task.precision {
        Precision::F32 => session.run(common, |comm| bench::measure::<f32>(comm, work, choice, device)),
        Precision::F64 => session.run(common, |comm| bench::measure::<f64>(comm, work, choice, device)),
    }?;
    let best = before.into_iter().chain(copy()?).fold(0.0, f64::max);
    Ok((measured, best))
}
