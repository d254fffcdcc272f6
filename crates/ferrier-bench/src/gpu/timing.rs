//! Times by events of the GPU.

use ferrier::cuda::{Event, Plan};
use ferrier::{Comm, Real};

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
