//! Commands on GPUs.

use ferrier::cuda::{self, Cuda, GpuInfo};
use ferrier::tune::SearchResult;
use ferrier::{Choice, Comm, DeviceSpec, Planner, Precision, Problem, Real, tune};
use ferrier_bench::agree::agree_result;
use ferrier_bench::contest::{Comparison, ContestOptions, ContestResult};
use ferrier_bench::gpu;
use ferrier_bench::table::bytes;

use crate::arguments::CommonArgs;
use crate::drafted::Drafted;
use crate::failure::{Outcome, fail};
use crate::session::Session;

pub use ferrier::cuda::CudaInfo as Info;
pub use ferrier_bench::gpu::{halo_bench, operator_bench};

/// The GPUs and libraries of this machine.
pub fn info() -> Option<Info> {
    Some(cuda::info())
}

/// The same on one line.
pub fn text(info: &Info) -> String {
    if let Some(missing) = &info.missing {
        // Only the first missing library; the JSON has all of them.
        return missing.split("; no CUDA").next().unwrap_or_default().into();
    }
    let version = |version: &Option<String>| version.clone().unwrap_or("unknown".into());
    let gpu = |gpu: &GpuInfo| {
        let GpuInfo { name, index, capability, multiprocessors, .. } = gpu;
        let memory = bytes(gpu.memory_bytes as u64);
        format!("{name} (GPU {index}, {memory}, capability {capability}, {multiprocessors} multiprocessors)")
    };
    let gpus: Vec<String> = info.gpus.iter().map(gpu).collect();
    let gpus = if gpus.is_empty() { "no GPU".into() } else { gpus.join(", ") };
    let [driver, cufft, nvrtc] = [&info.driver, &info.cufft, &info.nvrtc].map(version);
    format!("{gpus}; driver for CUDA {driver}, cuFFT {cufft}, NVRTC {nvrtc}")
}

/// A planner for this rank's GPU. Collective.
///
/// # Errors
/// There is no GPU, or a library of CUDA is missing.
pub fn planner(
    problem: &Problem,
    choice: &Choice,
    device: DeviceSpec,
    comm: &Comm,
) -> Outcome<Planner<Cuda>> {
    Ok(Planner::new(problem).choice(choice.clone()).device(&gpu::of_rank(device, comm)?))
}

/// `ferrier plan`: a draft on this rank's GPU. Collective.
///
/// # Errors
/// Those of the library.
pub fn draft<T: Real>(
    comm: &Comm,
    problem: &Problem,
    choice: &Choice,
    device: DeviceSpec,
) -> Outcome<Drafted> {
    let start = std::time::Instant::now();
    let draft = agree_result(comm, planner(problem, choice, device, comm)?.draft::<T>(comm))?;
    let mut drafted = Drafted::new(comm, &draft, start)?;
    drafted.notes.insert(0, format!("memory is that of {:?}", draft.gpu()));
    Ok(drafted)
}

/// `ferrier bench`: the measurements, and the GPU's copy speed: the better of before and after.
///
/// # Errors
/// Those of the library; options that are for the CPU.
pub fn contest(
    common: &CommonArgs,
    options: &ContestOptions<'_>,
    comparison: &Comparison,
    device: DeviceSpec,
    session: &Session,
) -> Outcome<(ContestResult, f64)> {
    let Comparison::One(choice) = comparison else {
        return fail(format!("--device {device}: sweeps and variants are for the CPU"));
    };
    let copy = || session.run(common, |comm| gpu::copy_speed(comm, device));
    let before = copy()?;
    let result = session.run(common, |comm| gpu::contest(comm, options, choice, device))?;
    Ok((result, before.max(copy()?)))
}

/// `ferrier tune`: searches on each rank's GPU; the result and its choice, on rank 0. Collective.
///
/// # Errors
/// Those of the library.
pub fn tuned(
    comm: &Comm,
    problem: &Problem,
    precision: Precision,
    (choice, device): (&Choice, DeviceSpec),
    options: &tune::Options,
) -> Outcome<Option<(SearchResult, Choice)>> {
    let tune::Options { method, limits, seed, only, .. } = options.clone();
    let (problem, choice) = (problem.clone(), choice.clone());
    gpu::GpuTuning { problem, precision, choice, device, limits, method, seed, only }.run(comm)
}
