//! The GPU of a rank, its copy speed, and times by its events.

use ferrier::cuda::{self, Cuda, Event, Gpu, Plan};
use ferrier::{Comm, Device, DeviceSpec, Real};

use crate::agree::agree;
use crate::failure::{Failure, Outcome, fail};

/// The GPU of a rank: the one of `device`, or the ranks of a node are distributed over its
/// GPUs. The same outcome on every rank. Collective.
///
/// # Errors
/// There is no GPU, or a library of CUDA is missing.
pub fn of_rank(device: DeviceSpec, comm: &Comm) -> Outcome<Device<Cuda>> {
    agree(comm, pick(device, comm))
}

fn pick(device: DeviceSpec, comm: &Comm) -> Outcome<Device<Cuda>> {
    cuda::check()?;
    let count = cuda::gpu_count();
    if count == 0 {
        return fail("--device cuda: the driver is installed, but there is no GPU");
    }
    let node = comm.nodes()[comm.rank()];
    let local = comm.nodes()[..comm.rank()].iter().filter(|other| **other == node).count();
    let index = match device {
        DeviceSpec::Cuda(Some(index)) => index,
        _ => local % count,
    };
    Ok(Device::cuda(index)?)
}

/// The copy speed of the GPU's memory in GB/s, read and written, as rank 0 measures it. Collective.
///
/// # Errors
/// Too little memory, or an error of the driver.
pub fn copy_speed(comm: &Comm, device: DeviceSpec) -> Outcome<f64> {
    let gpu = of_rank(device, comm)?;
    let own = if comm.rank() == 0 { own_copy_speed(&gpu) } else { Ok(0.0) };
    Ok(comm.max(&[agree(comm, own)?])?[0])
}

fn own_copy_speed(gpu: &Gpu) -> Outcome<f64> {
    const BYTES: usize = 1 << 31;
    let refused =
        |error: cudarc::driver::DriverError| Failure::new(format!("copy speed of the GPU: {error:?}"));
    let (free, _) = gpu.memory()?;
    let bytes = BYTES.min(free / 4);
    let stream = gpu.context().new_stream().map_err(refused)?;
    let from = stream.alloc_zeros::<u8>(bytes).map_err(refused)?;
    let mut to = stream.alloc_zeros::<u8>(bytes).map_err(refused)?;
    let mut best = f64::INFINITY;
    for _ in 0..8 {
        let flags = Some(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT);
        let start = stream.record_event(flags).map_err(refused)?;
        stream.memcpy_dtod(&from, &mut to).map_err(refused)?;
        let end = stream.record_event(flags).map_err(refused)?;
        end.synchronize().map_err(refused)?;
        best = best.min(f64::from(start.elapsed_ms(&end).map_err(refused)?));
    }
    Ok(2.0 * bytes as f64 / best / 1e6)
}

/// Seconds of `work` on the slowest rank, by events of the GPU. Collective.
///
/// # Errors
/// Those of `work` and of the driver.
pub fn timed<T: Real>(
    comm: &Comm,
    plan: &mut Plan<T>,
    events: &[Event; 2],
    work: impl FnOnce(&mut Plan<T>) -> ferrier::Result<()>,
) -> ferrier::Result<f64> {
    plan.synchronize()?;
    comm.barrier()?;
    plan.record(&events[0])?;
    work(plan)?;
    plan.record(&events[1])?;
    plan.synchronize()?;
    Ok(comm.max(&[events[1].ms_since(&events[0])? / 1e3])?[0])
}
