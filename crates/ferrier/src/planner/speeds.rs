//! Measures the constants of the cost model: messages between ranks, and steps of transforms.

use std::time::{Duration, Instant};

use super::forecast::Forecast;
use super::samples::{Measurement, samples};
use crate::machine::copy_seconds;
use crate::transport::{Segment, TransferKind};
use crate::{Comm, MachineSpeeds, Result};
use ferrier_plan::cost::{Machine, MeasuredConstants, Sample, fit};
use ferrier_plan::messages::packed;

/// Bytes to each rank in a small exchange, and to all ranks in a large one.
const FEW: usize = 64;
const MANY: usize = 4 << 20;
/// Runs of either. The fastest counts, since other programs may use the machine; of large exchanges between nodes the
/// median, because messages that meet on links are part of what they cost.
const RUNS: usize = 7;
/// Scalars that a rank copies: more than its share of any cache.
const COPIED: usize = 4 << 20;

/// Barriers that are timed together, [`RUNS`] times.
const BARRIERS: usize = 10;
/// Time for transforms that suffices for the most important constants.
pub const MEASURE_TIME: Duration = Duration::from_secs(1);

/// The part of the time that transforms have where threads of one rank are measured as ranks, too.
const AS_RANKS: f64 = 0.5;

/// Measures the speeds of the ranks: messages, copies, and the steps of transforms, to which the constants of the cost
/// model are fitted. The more `time` for transforms, the more of them: [`MEASURE_TIME`] suffices for the most important constants.
/// The threads of a single rank are measured as ranks of one thread, too. Collective; the same on every rank. Allocates.
///
/// # Errors
/// Too little memory, or a rank that has failed.
pub fn measure_speeds(comm: &Comm, time: Duration) -> Result<MachineSpeeds> {
    let copy = copy_seconds(comm.threads(), COPIED, RUNS)?;
    let peers = peers(comm.nodes()).max(1);
    let (few, many) = match comm.size() {
        1 => (0.0, 0.0),
        _ => {
            let counted = if comm.node_count() > 1 { RUNS / 2 } else { 0 };
            (exchange(comm, FEW)?[0], exchange(comm, (MANY / peers).max(FEW))?[counted])
        }
    };
    let slowest = comm.max(&[copy, few, many])?;
    let (copy, few, many) = (slowest[0], slowest[1], slowest[2]);
    let assumed = MachineSpeeds::default();
    let or = |speed: f64, other: f64| if speed.is_finite() && speed > 0.0 { speed } else { other };
    let latency = few / peers as f64;
    let wire = ((MANY / peers).max(FEW) * peers) as f64 / (many - few);
    let memory = (COPIED * size_of::<f64>()) as f64 / copy;
    let constants = constants(comm, time.as_secs_f64())?;
    Ok(assumed
        .constants(constants)
        .latency_s(or(latency, assumed.latency_s))
        .wire_bytes_s(or(wire, assumed.wire_bytes_s))
        .memory_bytes_s(or(memory, assumed.memory_bytes_s)))
}

/// Measures the constants of the cost model. Collective.
fn constants(comm: &Comm, budget: f64) -> Result<MeasuredConstants> {
    let as_ranks = if comm.size() == 1 { comm.threads() } else { 1 };
    let mut found = samples(comm, if as_ranks > 1 { budget * (1.0 - AS_RANKS) } else { budget })?;
    if as_ranks > 1 {
        let ranks = crate::ranks(as_ranks).threads(1);
        let all = ranks.run(|comm| samples(&comm, budget * AS_RANKS))?;
        found.extend(all.into_iter().next().unwrap_or_default());
    }
    let found: Vec<_> = found
        .into_iter()
        .map(|Measurement { forecast, recipe, direction, steps }| Sample {
            steps,
            predict: move |machine: &Machine| {
                let forecast = Forecast { machine: machine.clone(), ..forecast.clone() };
                forecast.predict(&recipe, direction, false)
            },
        })
        .collect();
    let mut measured = fit(&super::agree::machine(comm, None), &found);
    if comm.size() > 1 {
        measured.barrier_s = Some(barrier(comm)? / (comm.size() as f64).log2());
    }
    // Rank 0's, so that all ranks have the same.
    let all = comm.all_gather(&serde_json::to_vec(&measured).map_err(crate::Error::other)?)?;
    serde_json::from_slice(&all[0]).map_err(crate::Error::other)
}

/// Seconds of a barrier. Collective.
fn barrier(comm: &Comm) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        comm.barrier()?;
        let start = Instant::now();
        for _ in 0..BARRIERS {
            comm.barrier()?;
        }
        best = best.min(start.elapsed().as_secs_f64() / BARRIERS as f64);
    }
    Ok(comm.max(&[best])?[0])
}

/// The most ranks that a rank exchanges data with to measure messages: those of other nodes, or on one node all others.
fn peers(nodes: &[usize]) -> usize {
    let on_node = |node: usize| nodes.iter().filter(|other| **other == node).count();
    match nodes.iter().map(|&node| nodes.len() - on_node(node)).max() {
        None | Some(0) => nodes.len().saturating_sub(1),
        Some(outside) => outside,
    }
}

/// Seconds of exchanges of so many bytes between each two ranks of different nodes, or of one node if there is no other:
/// of each run, ascending.
fn exchange(comm: &Comm, bytes: usize) -> Result<[f64; RUNS]> {
    let (ranks, nodes) = (comm.size(), comm.nodes());
    let at = packed(&vec![bytes; ranks]).offsets;
    let segment = |peer| Segment { peer, offset: at[peer], len: bytes };
    let one = comm.node_count() == 1;
    let others = (0..ranks).filter(|&peer| one || nodes[peer] != nodes[comm.rank()]);
    let segments: Vec<Segment> = others.map(segment).collect();
    let kind = if one { TransferKind::AllToAll } else { TransferKind::AllToAllV };
    let transfer = comm.transport().transfer(kind, &segments, &segments)?;
    let (send, mut recv) = (vec![1_u8; bytes * ranks], vec![0_u8; bytes * ranks]);
    let mut seconds = [0.0; RUNS];
    for seconds in &mut seconds {
        comm.barrier()?;
        let start = Instant::now();
        // SAFETY: the buffers hold all segments, and are borrowed here until `run` returns.
        unsafe { transfer.run(send.as_ptr(), recv.as_mut_ptr())? };
        *seconds = start.elapsed().as_secs_f64();
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_measured_between_nodes() {
        assert_eq!(peers(&[0]), 0);
        assert_eq!(peers(&[0, 0, 0]), 2);
        assert_eq!(peers(&[0, 0, 1, 1]), 2);
        assert_eq!(peers(&[0, 0, 1, 0]), 3);
    }

    /// The bandwidth of a simulated network of 0.1 GB/s is measured, and the same on all ranks.
    #[test]
    fn a_slow_wire_is_measured() {
        let _watchdog = ferrier_test::watchdog(60);
        let wire = "800mbit:50us".parse().unwrap();
        let all = crate::ranks(3).wire(wire).run(|comm| measure_speeds(&comm, MEASURE_TIME)).unwrap();
        assert!(all.iter().all(|speeds| *speeds == all[0]), "{all:?}");
        assert!((5e7..1.1e8).contains(&all[0].wire_bytes_s), "{all:?}");
        assert!(all[0].latency_s >= 20e-6 && all[0].memory_bytes_s > 1e7, "{all:?}");
        let alone = measure_speeds(&Comm::one_rank(), MEASURE_TIME).unwrap();
        assert_eq!(alone.wire_bytes_s, MachineSpeeds::default().wire_bytes_s);
    }
}
