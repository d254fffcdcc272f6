//! Measures what moving bytes costs, for the choice of a decomposition.

use std::time::Instant;

use crate::machine::copy_seconds;
use crate::transport::{Segment, TransferKind};
use crate::{Comm, MachineSpeeds, Result};
use ferrier_plan::messages::packed;

/// Bytes to each rank in a small exchange, and to all ranks in a large one.
const FEW: usize = 64;
const MANY: usize = 4 << 20;
/// Runs of either; the fastest counts, since other programs may use the machine.
const RUNS: usize = 7;
/// Scalars that a rank copies: more than its share of any cache.
const COPIED: usize = 4 << 20;

/// Measures how fast a rank moves bytes, in some hundredths of a second. Collective; the same on every rank.
///
/// # Errors
/// Too little memory, or a rank that has failed.
pub fn measure_speeds(comm: &Comm) -> Result<MachineSpeeds> {
    let copy = copy_seconds(comm.threads(), COPIED, RUNS)?;
    let peers = (comm.size() - 1).max(1);
    let (few, many) = match comm.size() {
        1 => (0.0, 0.0),
        _ => (exchange(comm, FEW)?, exchange(comm, (MANY / peers).max(FEW))?),
    };
    let slowest = comm.max(&[copy, few, many])?;
    let (copy, few, many) = (slowest[0], slowest[1], slowest[2]);
    let assumed = MachineSpeeds::default();
    let or = |speed: f64, other: f64| if speed.is_finite() && speed > 0.0 { speed } else { other };
    let latency = few / peers as f64;
    let wire = ((MANY / peers).max(FEW) * peers) as f64 / (many - few);
    let memory = (COPIED * size_of::<f64>()) as f64 / copy;
    Ok(assumed
        .latency_s(or(latency, assumed.latency_s))
        .wire_bytes_s(or(wire, assumed.wire_bytes_s))
        .memory_bytes_s(or(memory, assumed.memory_bytes_s)))
}

/// Seconds of an exchange of so many bytes between each two ranks.
fn exchange(comm: &Comm, bytes: usize) -> Result<f64> {
    let ranks = comm.size();
    let at = packed(&vec![bytes; ranks]).offsets;
    let segment = |peer| Segment { peer, offset: at[peer], len: bytes };
    let segments: Vec<Segment> = (0..ranks).map(segment).collect();
    let transfer = comm.transport().transfer(TransferKind::AllToAll, &segments, &segments)?;
    let (send, mut recv) = (vec![1_u8; bytes * ranks], vec![0_u8; bytes * ranks]);
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        comm.barrier()?;
        let start = Instant::now();
        // SAFETY: the buffers hold all segments, and are borrowed here until `run` returns.
        unsafe { transfer.run(send.as_ptr(), recv.as_mut_ptr())? };
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bandwidth of a simulated network of 0.1 GB/s is measured, and the same on all ranks.
    #[test]
    fn a_slow_wire_is_measured() {
        let _watchdog = ferrier_test::watchdog(60);
        let wire = "800mbit:50us".parse().unwrap();
        let all = crate::ranks(3).wire(wire).run(|comm| measure_speeds(&comm)).unwrap();
        assert!(all.iter().all(|speeds| *speeds == all[0]), "{all:?}");
        assert!((5e7..1.1e8).contains(&all[0].wire_bytes_s), "{all:?}");
        assert!(all[0].latency_s >= 20e-6 && all[0].memory_bytes_s > 1e7, "{all:?}");
        let alone = measure_speeds(&Comm::one_rank()).unwrap();
        assert_eq!(alone.wire_bytes_s, MachineSpeeds::default().wire_bytes_s);
    }
}
