//! `ferrier model --measure`: the machine file of the machine at hand.

use std::path::{Path, PathBuf};

use ferrier::{Comm, MachineSpeeds, machine};
use ferrier_bench::codec_speed;
use ferrier_bench::table::{digits, pairs};
use ferrier_model::{Cluster, Codecs, MeasuredMachine};

use crate::arguments::{CommonArgs, ExecutionArgs};
use crate::failure::{Failure, Outcome};
use crate::print;
use crate::session::Session;

/// The codec whose speed is measured, and in how many scalars.
const CODEC: &str = "f32";
const CODED: usize = 4 << 20;

/// Measures the constants as `ferrier tune --measure-machine`, and writes the file.
///
/// # Errors
/// Too little memory; a file that cannot be written to.
pub fn run(common: &CommonArgs, file: &Path, session: &Session) -> Outcome {
    let path: Option<PathBuf> = Some(file.into());
    session.first(|| print::check([&path]))?;
    let work = |comm: &Comm| {
        let speeds = ferrier::measure_speeds(comm, ferrier::MEASURE_TIME)?;
        Ok((speeds, comm.size(), comm.node_count(), comm.threads()))
    };
    // Without the emulated network: over a slow one, passes would be too short to be measured.
    let execution = ExecutionArgs { wire: None, ..common.execution.clone() };
    let (speeds, ranks, nodes, threads) = session.run(&CommonArgs { execution, ..common.clone() }, work)?;
    session.first(|| {
        let coding = codec_speed::speeds(CODEC, CODED)?;
        let run = Measurer { ranks, nodes, threads, launched: session.launched().is_some() };
        let cluster = cluster(&speeds, coding, common, &run);
        print::write(file, &cluster.to_toml().map_err(Failure::new)?)?;
        if print::is_stdout(Some(file)) {
            return Ok(());
        }
        let network = &cluster.network;
        print::say(&pairs(&[
            ("machine file", file.display().to_string()),
            (
                "nodes",
                format!(
                    "{} of {} cores, {} ranks each",
                    cluster.nodes, cluster.cpu.cores, cluster.node.ranks
                ),
            ),
            (
                "between nodes",
                format!(
                    "{} GB/s, {} us",
                    digits(network.rail_bytes_s / 1e9),
                    digits(network.latency_s * 1e6)
                ),
            ),
            ("constants measured", cluster.cpu.constants.len().to_string()),
        ]))
    })
}

/// Who measured.
struct Measurer {
    ranks: usize,
    nodes: usize,
    threads: usize,
    launched: bool,
}

fn cluster(speeds: &MachineSpeeds, coding: [f64; 2], common: &CommonArgs, run: &Measurer) -> Cluster {
    let Measurer { ranks, nodes, threads, launched } = *run;
    let info = machine::info();
    let here = machine::model().clone().with_speeds(speeds);
    let wire = common.execution.wire;
    let constants = here.constants;
    let network = match wire {
        Some(wire) => (wire.gbit_per_s * 1e9 / 8.0, constants.wire_latency_s + wire.latency_us * 1e-6),
        None => (constants.wire_bytes_s, constants.wire_latency_s),
    };
    // Codecs are measured on chunks in cache; messages come from memory.
    let coded = |speed: f64| threads as f64 / (1.0 / speed + 1.0 / constants.memory_bytes_s);
    let name = if info.cpu.is_empty() { "unknown processor".into() } else { info.cpu.clone() };
    Cluster::measured(&MeasuredMachine {
        processor: name,
        machine: here,
        measured: speeds.constants,
        nodes,
        ranks_per_node: ranks.div_ceil(nodes).max(1),
        rank_bytes_s: network.0,
        latency_s: network.1,
        gap_s: constants.wire_gap_s,
        memory_bytes: info.memory_bytes as f64,
        codecs: Codecs::new(coded(coding[0]), coded(coding[1])),
        emulated: !launched,
        wire: wire.map(|wire| wire.to_string()),
    })
}
