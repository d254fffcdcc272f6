//! Machine files from measurements.

use std::collections::BTreeMap;

use ferrier_plan::cost::{Machine, MeasuredConstants};

use crate::cluster::{Cluster, Codecs, Cpu, Network, Node};
use crate::topology::Topology;

/// What was measured of a machine.
#[derive(Clone, Debug)]
pub struct MeasuredMachine {
    /// The name of the processor.
    pub processor: String,
    /// A node, with the constants in use.
    pub machine: Machine,
    /// Those of its constants that were measured.
    pub measured: MeasuredConstants,
    /// Nodes of the run.
    pub nodes: usize,
    /// Ranks of a node.
    pub ranks_per_node: usize,
    /// Bytes per second that a rank sends to other nodes.
    pub rank_bytes_s: f64,
    /// Seconds of a small message between nodes.
    pub latency_s: f64,
    /// Seconds between the starts of two messages.
    pub gap_s: f64,
    /// Memory of a node in bytes.
    pub memory_bytes: f64,
    /// Speeds of codecs, of one rank.
    pub codecs: Codecs,
    /// Whether ranks are threads of one process.
    pub emulated: bool,
    /// The emulated network.
    pub wire: Option<String>,
}

impl Cluster {
    /// The file of a machine that was measured. The measured ranks shared the links of their node: together they sent
    /// what its links carry.
    pub fn measured(measured: &MeasuredMachine) -> Cluster {
        let MeasuredMachine { processor, machine, .. } = measured;
        let constants = measured.measured.list().into_iter().map(|(name, value)| (name.to_string(), value));
        // A wire is a link of each rank, which is a node then.
        let wired = measured.wire.is_some();
        let ranks = if wired { 1 } else { measured.ranks_per_node };
        // Ranks of a process on one node send nothing between nodes: any number of nodes can be assumed.
        let nodes = if measured.emulated { 1 << 20 } else { measured.nodes };
        let origin = [
            (
                "nodes",
                if measured.emulated { "any number, emulated on one host" } else { "the measured run" },
            ),
            ("node", "this machine, as the system reports it"),
            ("cpu", "this machine, as the system reports it"),
            ("cpu.constants", "measured, as `ferrier tune --measure-machine` does"),
            (
                "codecs",
                "codec f32 as measured on one core in cache, and loads from memory; times the threads of a rank",
            ),
            (
                "network",
                match wired {
                    true => "the emulated network; the gap assumed",
                    false => "measured among the ranks of the run, in an all-to-all",
                },
            ),
        ];
        Cluster {
            name: "measured".into(),
            summary: match &measured.wire {
                Some(wire) => format!("{processor}, ranks of one process on an emulated network of {wire}"),
                None => processor.clone(),
            },
            nodes,
            node: Node {
                ranks,
                sockets: 1,
                gpus: 0,
                memory_bytes: measured.memory_bytes,
                emulated: measured.emulated,
                processes: false,
            },
            cpu: Cpu {
                family: machine.family.clone(),
                cores: machine.cores,
                vector_bytes: machine.vector_bytes,
                level2: machine.level2,
                last_level: machine.last_level,
                constants: constants.collect::<BTreeMap<_, _>>(),
            },
            gpu: None,
            network: Network {
                rails: 1,
                rail_sockets: Vec::new(),
                rail_bytes_s: measured.rank_bytes_s * ranks as f64,
                rank_bytes_s: measured.rank_bytes_s,
                latency_s: measured.latency_s,
                gap_s: measured.gap_s,
                copy_overlap: 0.0,
                efficiency: Vec::new(),
            },
            topology: Topology::Star,
            codecs: measured.codecs,
            origin: origin.map(|(key, text)| (key.to_string(), text.to_string())).into(),
        }
    }
}
