//! A transform on so many ranks of a machine.

use ferrier_plan::cost::{Machine, Setting};
use ferrier_plan::lowering::MemoryPolicy;
use ferrier_plan::messages::Mechanism;
use ferrier_plan::schedule::bundle_bytes;
use ferrier_plan::{Choice, Overlap, Precision, Problem, Recipe, design_on};

use crate::cluster::{Cluster, Processor};
use crate::error::{Error, Result};
use crate::exchange::ExchangeName;

/// Threads of a rank: products with ranks do not overflow.
const THREADS: std::ops::RangeInclusive<usize> = 1..=1 << 20;

/// A codec, as far as models need it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Codec {
    /// Its name.
    pub name: String,
    /// Bytes after encoding, relative to those before.
    pub part: f64,
}

impl Codec {
    /// A codec that leaves this part of the bytes.
    pub fn new(name: impl Into<String>, part: f64) -> Codec {
        Codec { name: name.into(), part }
    }
}

/// How a job runs, besides its problem.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobOptions {
    /// What transforms lines.
    pub processor: Processor,
    /// Ranks of a node; `None`: as the machine's file says.
    pub per_node: Option<usize>,
    /// Threads of a rank; `None`: the cores of a node are shared out.
    pub threads: Option<usize>,
    /// The exchange; `None`: shared memory on one node, one collective on several.
    pub exchange: Option<ExchangeName>,
    /// Decisions that the planner would take.
    pub choice: Choice,
}

impl JobOptions {
    /// A job on CPUs or GPUs; the planner decides the rest.
    pub fn new(processor: Processor) -> JobOptions {
        JobOptions { processor, per_node: None, threads: None, exchange: None, choice: Choice::new() }
    }

    /// Sets the ranks of a node.
    #[must_use]
    pub fn per_node(mut self, ranks: Option<usize>) -> Self {
        self.per_node = ranks;
        self
    }

    /// Sets the threads of a rank.
    #[must_use]
    pub fn threads(mut self, threads: Option<usize>) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the exchange.
    #[must_use]
    pub fn exchange(mut self, exchange: Option<ExchangeName>) -> Self {
        self.exchange = exchange;
        self
    }

    /// Sets decisions that the planner would take.
    #[must_use]
    pub fn choice(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }
}

/// A transform on so many ranks of a machine, with the recipe that the planner designs for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Job<'a> {
    /// The machine.
    pub cluster: &'a Cluster,
    /// One node of it, for the cost model.
    pub machine: Machine,
    /// The recipe.
    pub recipe: Recipe,
    /// The exchange.
    pub exchange: ExchangeName,
    /// The codec, if messages are encoded.
    pub codec: Option<Codec>,
    /// What transforms lines.
    pub processor: Processor,
    /// Threads of a rank.
    pub threads: usize,
    /// Ranks of a node.
    pub per_node: usize,
    /// The node of each rank.
    nodes: Vec<usize>,
}

impl<'a> Job<'a> {
    /// Designs a recipe for `ranks` ranks: the first ones on the first node, and so on.
    ///
    /// # Errors
    /// [`Error::Job`] for more nodes than the machine has, for GPUs that it does not have and for an exchange that does
    /// not work between nodes; the planner's errors.
    pub fn new(
        cluster: &'a Cluster,
        problem: &Problem,
        precision: Precision,
        ranks: usize,
        options: &JobOptions,
    ) -> Result<Job<'a>> {
        let JobOptions { processor, .. } = *options;
        let name = &cluster.name;
        if processor == Processor::Gpu && cluster.gpu.is_none() {
            return Err(Error::Job(format!("machine `{name}` has no GPUs")));
        }
        let per_node = options.per_node.unwrap_or(cluster.node.ranks);
        if per_node == 0 || ranks == 0 {
            return Err(Error::Job("at least 1 rank is needed, and at least 1 on a node".into()));
        }
        if let Some(threads) = options.threads.filter(|threads| !THREADS.contains(threads)) {
            let (least, most) = (THREADS.start(), THREADS.end());
            return Err(Error::Job(format!(
                "threads of a rank must be from {least} to {most}, got {threads}"
            )));
        }
        let count = ranks.div_ceil(per_node);
        if count > cluster.nodes {
            return Err(Error::Job(format!(
                "{ranks} ranks, {per_node} on a node, need {count} nodes; machine `{name}` has {}",
                cluster.nodes
            )));
        }
        let default = if count == 1 { ExchangeName::Direct } else { ExchangeName::AllToAllV };
        let exchange = match options.exchange.unwrap_or(default) {
            ExchangeName::Direct if count > 1 => {
                return Err(Error::Job(format!(
                    "exchange direct works inside a node; {ranks} ranks, {per_node} on a node, are on {count} nodes"
                )));
            }
            // GPUs have no memory in common.
            ExchangeName::Direct if processor == Processor::Gpu => ExchangeName::AllToAllV,
            exchange => exchange,
        };
        let mut machine = cluster.machine(processor, count);
        machine.constants.copy_overlap = copy_overlap(cluster, exchange);
        let threads = match processor {
            Processor::Gpu => 1,
            Processor::Cpu => {
                let sharing = if cluster.node.emulated { ranks } else { per_node.min(ranks) };
                options.threads.unwrap_or((machine.cores / sharing).max(1))
            }
        };
        let mut choice = options.choice.clone().exchange(exchange.name());
        if processor == Processor::Gpu {
            choice = choice.fuse(false);
        }
        let nodes: Vec<usize> = (0..ranks).map(|rank| rank / per_node).collect();
        let place = Placement { cluster, machine: &machine, exchange, processor, threads, per_node };
        let setting = place.setting(&nodes, false, bytes(problem, precision, per_node.min(ranks), ranks));
        let recipe = design_on(problem, &choice, precision, &setting, (ranks, &machine))?.recipe;
        Ok(Job { cluster, machine, recipe, exchange, codec: None, processor, threads, per_node, nodes })
    }

    /// The job with encoded messages. A ring encodes while it sends.
    #[must_use]
    pub fn with_codec(mut self, codec: Codec) -> Self {
        self.machine.constants.encoded_part = codec.part;
        if self.exchange == ExchangeName::Ring {
            (self.machine.constants.encode_bytes_s, self.machine.constants.decode_bytes_s) =
                (f64::INFINITY, f64::INFINITY);
        }
        self.codec = Some(codec);
        self
    }

    /// The job with another exchange, if that moves data in the same way, so that the planner decides alike.
    #[must_use]
    pub fn with_exchange(mut self, exchange: ExchangeName) -> Option<Self> {
        let mechanism = |exchange: ExchangeName| exchange.mechanism(self.node_count());
        if mechanism(exchange) != mechanism(self.exchange) || self.codec.is_some() {
            return None;
        }
        self.exchange = exchange;
        self.machine.constants.copy_overlap = copy_overlap(self.cluster, exchange);
        self.recipe.exchange = exchange.name().into();
        Some(self)
    }

    /// The job with other tiles: the planner decides the layouts without them.
    #[must_use]
    pub fn with_overlap(mut self, overlap: Overlap) -> Self {
        self.recipe.overlap = overlap;
        self
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.nodes.len()
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.last().map_or(1, |last| last + 1)
    }

    /// The node of each rank.
    pub fn nodes(&self) -> &[usize] {
        &self.nodes
    }

    /// Whether messages are encoded.
    pub fn is_encoded(&self) -> bool {
        self.codec.is_some() && self.exchange.mechanism(self.node_count()) != Mechanism::SharedMemory
    }

    /// The placement of the ranks for the cost model.
    pub fn setting(&self) -> Setting<'_> {
        let Job { cluster, machine, exchange, processor, threads, per_node, recipe, .. } = self;
        let place = Placement {
            cluster,
            machine,
            exchange: *exchange,
            processor: *processor,
            threads: *threads,
            per_node: *per_node,
        };
        let elements = recipe.shape.iter().product::<usize>() * recipe.batch;
        let bytes = elements as f64 * 2.0 * recipe.precision.bytes() as f64;
        let on_node = self.per_node.min(self.ranks()) as f64 / self.ranks() as f64;
        place.setting(&self.nodes, self.is_encoded(), bytes * on_node)
    }

    /// Operations of the transform: 5 N log2 N for each array, half of it for real input.
    pub fn flops(&self) -> f64 {
        let points = self.recipe.shape.iter().product::<usize>() as f64;
        let real = if self.recipe.real { 0.5 } else { 1.0 };
        real * 5.0 * points * points.log2() * self.recipe.batch as f64
    }
}

/// The part of the copies inside a node that overlaps with transfers: a ring sends to its own node last.
fn copy_overlap(cluster: &Cluster, exchange: ExchangeName) -> f64 {
    if exchange == ExchangeName::Ring { 0.0 } else { cluster.network.copy_overlap }
}

/// Bytes of the arrays of a node.
fn bytes(problem: &Problem, precision: Precision, on_node: usize, ranks: usize) -> f64 {
    let elements = problem.points() * problem.batch as f64;
    elements * 2.0 * precision.bytes() as f64 * on_node as f64 / ranks as f64
}

/// What a setting is made of.
struct Placement<'a> {
    cluster: &'a Cluster,
    machine: &'a Machine,
    exchange: ExchangeName,
    processor: Processor,
    threads: usize,
    per_node: usize,
}

impl Placement<'_> {
    fn setting<'n>(&self, nodes: &'n [usize], coded: bool, node_bytes: f64) -> Setting<'n> {
        let count = nodes.last().map_or(1, |last| last + 1);
        let gpu = self.processor == Processor::Gpu;
        let sharing = if self.cluster.node.emulated { nodes.len() } else { self.per_node.min(nodes.len()) };
        // As the planner decides: stores bypass the caches where arrays exceed them.
        let stream = gpu || 2.0 * node_bytes > self.machine.last_level.bytes as f64 / 2.0;
        let plane_bytes = if gpu { 0 } else { 2 * self.machine.level2.bytes };
        let policy = MemoryPolicy {
            stream,
            prefetch: true,
            staging: self.machine.stages(self.threads, sharing * self.threads),
            block: None,
            bundle_bytes: bundle_bytes(plane_bytes),
            threads: self.threads,
        };
        Setting::new(self.exchange.mechanism(count))
            .nodes(nodes)
            .ranks_per_host(sharing)
            .threads(self.threads)
            .plane_bytes(plane_bytes)
            .memory_policy(policy)
            .remote_buffers(self.cluster.node.emulated && !self.cluster.node.processes)
            .coded(coded)
    }
}
