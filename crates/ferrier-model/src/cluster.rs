//! Machine files: nodes, processors, GPUs and the network of a machine.

use std::collections::BTreeMap;

use ferrier_plan::cost::{CacheShape, Constants, Machine};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::topology::{SPEEDS, Topology};

/// The most nodes of a machine: a number that computes in memory.
const MOST_NODES: usize = 1 << 24;

/// The most of other counts: products of some of them do not overflow.
const MOST: usize = 1 << 20;

/// Brackets inside each other in a machine file: it has lists of lists of tables, and the parser is recursive.
const DEPTH: usize = 16;

/// The part of the time in which links are busy that carry one message at a time, in an exchange among three or more: a
/// message waits until the links of both ends are free. On average over random starts, of 4 ranks 0.83, of 8 ranks 0.81.
const TURNS: f64 = 0.82;

/// A machine of many nodes, as its file describes it. All nodes are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// One line that says what it is.
    pub summary: String,
    /// Number of nodes.
    pub nodes: usize,
    /// A node.
    pub node: Node,
    /// The processors of a node.
    pub cpu: Cpu,
    /// A GPU; none if nodes have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// The links of a node.
    pub network: Network,
    /// How nodes are connected.
    pub topology: Topology,
    /// Speeds of codecs.
    #[serde(default)]
    pub codecs: Codecs,
    /// Where numbers come from: a key, or a table for all keys in it, and a source.
    #[serde(default)]
    pub origin: BTreeMap<String, String>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Node {
    /// Ranks of a node unless the user says otherwise.
    pub ranks: usize,
    /// Sockets.
    #[serde(default = "one")]
    pub sockets: usize,
    /// GPUs.
    #[serde(default)]
    pub gpus: usize,
    /// Memory in bytes; 0: unknown.
    #[serde(default)]
    pub memory_bytes: f64,
    /// Whether all nodes are emulated on one host, whose cores and memory they share.
    #[serde(default)]
    pub emulated: bool,
    /// Whether the ranks of emulated nodes are processes; otherwise they are threads of one process, and receivers load
    /// messages from the memory of senders.
    #[serde(default)]
    pub processes: bool,
}

fn one() -> usize {
    1
}

/// The processors of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Cpu {
    /// The family whose constants are assumed: a name of [`Machine::families`].
    pub family: String,
    /// Cores of a node that ranks may use.
    pub cores: usize,
    /// Bytes of a vector register.
    pub vector_bytes: usize,
    /// The level-2 cache of a core.
    pub level2: CacheShape,
    /// The last-level cache.
    pub last_level: CacheShape,
    /// Constants of the cost model that differ from those of the family, by their names.
    #[serde(default)]
    pub constants: BTreeMap<String, f64>,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Gpu {
    /// Bytes per second that passes load and store.
    pub memory_bytes_s: f64,
    /// Operations per second of f64 transforms in cache, by the usual count of 5 n log2 n a line.
    pub flops: f64,
    /// Seconds of the launch of a kernel.
    pub launch_s: f64,
    /// Bytes per second that a GPU sends to others of its node.
    pub link_bytes_s: f64,
}

/// The links of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Network {
    /// Number of links to the network.
    #[serde(default = "one")]
    pub rails: usize,
    /// The socket that each link hangs on.
    #[serde(default)]
    pub rail_sockets: Vec<usize>,
    /// Bytes per second of a link, in each direction.
    pub rail_bytes_s: f64,
    /// Bytes per second that one rank sends alone; 0: one link.
    #[serde(default)]
    pub rank_bytes_s: f64,
    /// Seconds of a small message between nodes.
    pub latency_s: f64,
    /// Seconds between the starts of two messages of a rank.
    pub gap_s: f64,
    /// The part of copies inside a node that transfers between nodes hide, or the other way round; see
    /// [`Constants::copy_overlap`].
    #[serde(default)]
    pub copy_overlap: f64,
    /// Bytes of a message, ascending, and the part of the speed of a link that messages of this size reach.
    #[serde(default)]
    pub efficiency: Vec<[f64; 2]>,
}

impl Network {
    /// Bytes per second that a node sends: the sum of its links.
    pub fn injection_bytes_s(&self) -> f64 {
        self.rails as f64 * self.rail_bytes_s
    }
}

/// Speeds of codecs, of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Codecs {
    /// Bytes per second that are encoded, before encoding; 0: as the cost model assumes.
    pub encode_bytes_s: f64,
    /// Bytes per second that are decoded, after decoding; 0: as the cost model assumes.
    pub decode_bytes_s: f64,
}

impl Codecs {
    /// Codecs of these speeds.
    pub fn new(encode_bytes_s: f64, decode_bytes_s: f64) -> Codecs {
        Codecs { encode_bytes_s, decode_bytes_s }
    }
}

/// What transforms lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Processor {
    /// The cores of a node.
    Cpu,
    /// One GPU for each rank.
    Gpu,
}

impl Cluster {
    /// A machine from the text of its file.
    ///
    /// # Errors
    /// [`Error::File`] for text that is no machine file, [`Error::Machine`] for values out of range.
    pub fn parse(text: &str) -> Result<Cluster> {
        if depth(text) > DEPTH {
            return Err(Error::File(format!("more than {DEPTH} brackets inside each other")));
        }
        let cluster: Cluster = basic_toml::from_str(text)
            .map_err(|error| Error::File(error.to_string().trim().replace('\n', " ")))?;
        cluster.check()?;
        Ok(cluster)
    }

    /// The text of its file.
    ///
    /// # Errors
    /// [`Error::File`] for a machine that TOML cannot hold.
    pub fn to_toml(&self) -> Result<String> {
        basic_toml::to_string(self).map_err(|error| Error::File(error.to_string()))
    }

    fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::Machine { machine: self.name.clone(), what });
        let Cluster { node, cpu, network, .. } = self;
        let counts = [
            ("nodes", self.nodes),
            ("node.ranks", node.ranks),
            ("node.sockets", node.sockets),
            ("cpu.cores", cpu.cores),
            ("cpu.vector_bytes", cpu.vector_bytes),
            ("cpu.level2.bytes", cpu.level2.bytes),
            ("cpu.level2.ways", cpu.level2.ways),
            ("cpu.level2.cores", cpu.level2.cores),
            ("cpu.last_level.bytes", cpu.last_level.bytes),
            ("cpu.last_level.ways", cpu.last_level.ways),
            ("cpu.last_level.cores", cpu.last_level.cores),
            ("network.rails", network.rails),
        ];
        if let Some((key, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return wrong(format!("{key} must be at least 1, got 0"));
        }
        let most = [
            ("node.ranks", node.ranks),
            ("node.sockets", node.sockets),
            ("node.gpus", node.gpus),
            ("cpu.cores", cpu.cores),
            ("cpu.vector_bytes", cpu.vector_bytes),
            ("network.rails", network.rails),
        ];
        if let Some((key, count)) = most.into_iter().find(|(_, count)| *count > MOST) {
            return wrong(format!("{key} must be at most {MOST}, got {count}"));
        }
        if self.nodes > MOST_NODES {
            return wrong(format!("nodes must be at most {MOST_NODES}, got {}", self.nodes));
        }
        let gpu = self.gpu.as_ref();
        let speeds = [
            ("network.rail_bytes_s", Some(network.rail_bytes_s)),
            ("gpu.memory_bytes_s", gpu.map(|gpu| gpu.memory_bytes_s)),
            ("gpu.flops", gpu.map(|gpu| gpu.flops)),
            ("gpu.link_bytes_s", gpu.map(|gpu| gpu.link_bytes_s)),
        ];
        for (key, speed) in speeds {
            if let Some(speed) = speed.filter(|speed| !SPEEDS.contains(speed)) {
                return wrong(format!(
                    "{key} must be from {:e} to {:e}, got {speed}",
                    SPEEDS.start(),
                    SPEEDS.end()
                ));
            }
        }
        let others = [
            ("network.latency_s", network.latency_s),
            ("network.gap_s", network.gap_s),
            ("network.rank_bytes_s", network.rank_bytes_s),
            ("network.copy_overlap", network.copy_overlap),
            ("node.memory_bytes", node.memory_bytes),
            ("gpu.launch_s", gpu.map_or(0.0, |gpu| gpu.launch_s)),
            ("codecs.encode_bytes_s", self.codecs.encode_bytes_s),
            ("codecs.decode_bytes_s", self.codecs.decode_bytes_s),
        ];
        for (key, value) in others {
            if !(0.0..=*SPEEDS.end()).contains(&value) {
                return wrong(format!("{key} must be from 0 to {:e}, got {value}", SPEEDS.end()));
            }
        }
        if network.copy_overlap > 1.0 {
            return wrong(format!("network.copy_overlap must be at most 1, got {}", network.copy_overlap));
        }
        if node.gpus > 0 && gpu.is_none() {
            return wrong(format!("node.gpus is {}, but there is no table [gpu]", node.gpus));
        }
        if !network.rail_sockets.is_empty() && network.rail_sockets.len() != network.rails {
            let (sockets, rails) = (network.rail_sockets.len(), network.rails);
            return wrong(format!("network.rail_sockets has {sockets} entries for {rails} rails"));
        }
        if let Some(socket) = network.rail_sockets.iter().find(|&&socket| socket >= node.sockets) {
            return wrong(format!("network.rail_sockets names socket {socket} of {}", node.sockets));
        }
        let points = &network.efficiency;
        let rising = points.windows(2).all(|pair| pair[0][0] < pair[1][0]);
        let within =
            |[bytes, part]: &[f64; 2]| *bytes > 0.0 && bytes.is_finite() && *part > 0.0 && *part <= 1.0;
        if !rising || !points.iter().all(within) {
            return wrong(
                "network.efficiency must have ascending sizes above 0 and parts above 0 and at most 1".into(),
            );
        }
        if Machine::families().all(|family| family != cpu.family) {
            let known: Vec<_> = Machine::families().collect();
            return wrong(format!("cpu.family `{}` is unknown; known are: {}", cpu.family, known.join(", ")));
        }
        let mut constants = Constants::default();
        for (name, value) in &cpu.constants {
            if !constants.set(name, *value) {
                let known: Vec<_> = constants.list().into_iter().map(|(name, _)| name).collect();
                let known = known.join(", ");
                return wrong(format!(
                    "cpu.constants.{name}: no constant of the cost model; known are: {known}"
                ));
            }
            // Nothing moves at no speed.
            let least = if name.ends_with("bytes_s") { *SPEEDS.start() } else { 0.0 };
            if !(least..=*SPEEDS.end()).contains(value) {
                let most = SPEEDS.end();
                return wrong(format!(
                    "cpu.constants.{name} must be from {least:e} to {most:e}, got {value}"
                ));
            }
        }
        self.topology.check(self.nodes).or_else(wrong)
    }

    /// Where the number with this key comes from: its own entry, or that of the innermost table around it.
    pub fn origin_of(&self, key: &str) -> Option<&str> {
        let mut key = key;
        loop {
            if let Some(origin) = self.origin.get(key) {
                return Some(origin);
            }
            key = key.rsplit_once('.')?.0;
        }
    }

    /// One node for the cost model, while `nodes` nodes exchange data.
    pub fn machine(&self, processor: Processor, nodes: usize) -> Machine {
        let Cluster { cpu, network, codecs, .. } = self;
        let mut machine = Machine::of_family(&cpu.family)
            .cores(cpu.cores)
            .level2(cpu.level2)
            .last_level(cpu.last_level)
            .vector_bytes(cpu.vector_bytes)
            .message_efficiency(network.efficiency.clone());
        let constants = &mut machine.constants;
        for (name, value) in &cpu.constants {
            constants.set(name, *value);
        }
        let injection = network.injection_bytes_s();
        constants.wire_latency_s = network.latency_s;
        constants.wire_gap_s = network.gap_s;
        constants.wire_bytes_s =
            if network.rank_bytes_s > 0.0 { network.rank_bytes_s } else { network.rail_bytes_s };
        // A message on an emulated wire has both links for itself.
        if self.node.emulated && !self.node.processes && nodes > 2 {
            constants.wire_bytes_s *= TURNS;
        }
        constants.wire_node_bytes_s = injection.min(self.topology.uniform_bytes_s(nodes, injection));
        constants.copy_overlap = network.copy_overlap;
        if codecs.encode_bytes_s > 0.0 {
            constants.encode_bytes_s = codecs.encode_bytes_s;
        }
        if codecs.decode_bytes_s > 0.0 {
            constants.decode_bytes_s = codecs.decode_bytes_s;
        }
        match (&self.gpu, processor) {
            (Some(gpu), Processor::Gpu) => self.gpu_machine(gpu, machine),
            _ => machine,
        }
    }

    /// A node whose cores are GPUs: a pass is bound by memory or by arithmetic, whichever takes longer, and the length
    /// of runs and the sets of caches do not matter.
    fn gpu_machine(&self, gpu: &Gpu, mut machine: Machine) -> Machine {
        let gpus = self.node.gpus.max(1);
        machine = machine.cores(gpus).level2(CacheShape::new(1, 1, 1)).last_level(CacheShape::new(1, 1, 1));
        machine.vector_bytes = 64;
        let fast = 1e15;
        let node = gpu.memory_bytes_s * gpus as f64;
        for (name, value) in [
            ("flop_s", 1.0 / gpu.flops),
            ("contiguous_flop_s", 1.0 / gpu.flops),
            ("block_s", 0.0),
            ("pass_s", gpu.launch_s),
            ("overlap", 1.0),
            ("level2_bytes_s", fast),
            ("last_level_bytes_s", fast),
            ("last_level_busy_bytes_s", fast),
            ("memory_bytes_s", gpu.memory_bytes_s),
            ("memory_node_bytes_s", node),
            ("run_last_level_s", 0.0),
            ("run_memory_s", 0.0),
            ("page_s", 0.0),
            ("busy_flop", 0.0),
            ("uneven", 0.0),
            ("conflict", 0.0),
            ("line_conflict", 0.0),
            ("neighbours", 0.0),
            ("unaligned", 0.0),
            ("allocate", 0.0),
            ("remote", 1.0),
            ("node_bytes_s", gpu.link_bytes_s),
        ] {
            machine.constants.set(name, value);
        }
        machine
    }
}

/// How many brackets are inside each other, at most, outside strings and comments.
fn depth(text: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    for line in text.lines() {
        let mut quote = None;
        for character in line.chars() {
            match (quote, character) {
                (None, '#') => break,
                (None, '"' | '\'') => quote = Some(character),
                (Some(open), _) if open == character => quote = None,
                (None, '[' | '{') => depth += 1,
                (None, ']' | '}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            most = most.max(depth);
        }
    }
    most
}
