//! `ferrier model --measure`: the machine file of the machine at hand.

use std::path::{Path, PathBuf};

use ferrier::{Comm, MachineSpeeds, machine};
use ferrier_bench::table::{digits, pairs};
use ferrier_model::{Cluster, MeasuredMachine};

use crate::arguments::CommonArgs;
use crate::failure::{Failure, Outcome};
use crate::print;
use crate::session::Session;

/// Measures the constants as `ferrier tune --measure-machine`, and writes the file.
///
/// # Errors
/// Too little memory; a file that cannot be written to.
pub fn run(common: &CommonArgs, file: &Path, session: &Session) -> Outcome {
    let path: Option<PathBuf> = Some(file.into());
    session.first(|| print::check([&path]))?;
    let work = |comm: &Comm| {
        let speeds = ferrier::measure_speeds(comm)?;
        Ok((speeds, comm.size(), comm.node_count()))
    };
    let (speeds, ranks, nodes) = session.run(common, work)?;
    session.first(|| {
        let cluster = cluster(&speeds, common, ranks, nodes, session.launched().is_some());
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

fn cluster(
    speeds: &MachineSpeeds,
    common: &CommonArgs,
    ranks: usize,
    nodes: usize,
    launched: bool,
) -> Cluster {
    let info = machine::info();
    let here = machine::model().clone().with_speeds(speeds);
    let wire = common.execution.wire;
    let constants = here.constants;
    let network = match wire {
        Some(wire) => (wire.gbit_per_s * 1e9 / 8.0, constants.wire_latency_s + wire.latency_us * 1e-6),
        None => (constants.wire_bytes_s, constants.wire_latency_s),
    };
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
        emulated: !launched,
        wire: wire.map(|wire| wire.to_string()),
    })
}
