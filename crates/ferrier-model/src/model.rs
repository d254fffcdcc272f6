//! The closed form: predicted steps, rooflines, and what limits.

use ferrier_plan::cost::{CallCosts, ExchangeShape, PassCost, predict_call};
use ferrier_plan::geometry::width;
use ferrier_plan::schedule::Schedule;
use ferrier_plan::tiles::Tiles;
use serde::Serialize;

use crate::error::Result;
use crate::forward::ForwardCall;
use crate::job::Job;
use crate::papers;
use crate::sim::SimOptions;
use crate::slowest::SlowestNode;

/// A predicted step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ModelStep {
    /// Its name, as in `ferrier::StepTime`.
    pub name: String,
    /// Milliseconds on the rank that takes longest.
    pub ms: f64,
    /// What most of its time goes to.
    pub limit: &'static str,
}

/// The prediction for a job; the keys are part of the contract.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Modelled {
    /// Number of ranks.
    pub ranks: usize,
    /// Number of nodes.
    pub nodes: usize,
    /// Milliseconds of `forward`.
    pub total_ms: f64,
    /// Operations per second, by 5 N log2 N.
    pub gflops: f64,
    /// The peak of equation 2 of the heFFTe paper: each of four reshapes moves all elements between nodes.
    pub roofline_gflops: f64,
    /// The peak with the reshapes of this recipe and the bytes that leave a node; null on one node.
    pub network_gflops: Option<f64>,
    /// The exchange.
    pub exchange: &'static str,
    /// The codec.
    pub codec: String,
    /// Layouts and order of the axes.
    pub path: String,
    /// The steps.
    pub steps: Vec<ModelStep>,
}

impl Modelled {
    /// Milliseconds of the steps whose limit is one of `limits`.
    pub fn ms_of(&self, limits: &[&str]) -> f64 {
        self.steps.iter().filter(|step| limits.contains(&step.limit)).map(|step| step.ms).sum()
    }

    /// Milliseconds of exchanges.
    pub fn exchange_ms(&self) -> f64 {
        self.ms_of(&EXCHANGE_LIMITS)
    }
}

/// What limits passes and exchanges.
const ARITHMETIC: &str = "arithmetic";
const MEMORY: &str = "memory";
const LAUNCH: &str = "launches";
const BARRIER: &str = "barriers";
const CODING: &str = "coding";
const MESSAGES: &str = "messages";
const LATENCY: &str = "latency";
const COPIES: &str = "copies inside nodes";
const INJECTION: &str = "injection";
const SIZES: &str = "message size";
const TOPOLOGY: &str = "topology";
const EXCHANGE_LIMITS: [&str; 6] = [MESSAGES, LATENCY, COPIES, INJECTION, SIZES, TOPOLOGY];

impl Job<'_> {
    /// Predicts `forward`, out of place.
    pub fn model(&self) -> Modelled {
        self.modelled(&SimOptions::default())
    }

    /// Predicts `forward` on a machine of which something is slow: everyone waits for the slowest rank in each exchange.
    /// There is no noise in closed form.
    ///
    /// # Errors
    /// [`Error::Job`](crate::Error::Job) for ranks and nodes that do not exist and factors that are not above 0.
    pub fn model_with(&self, options: &SimOptions) -> Result<Modelled> {
        options.check(self)?;
        Ok(self.modelled(options))
    }

    fn modelled(&self, options: &SimOptions) -> Modelled {
        let call = ForwardCall::new(self);
        let ForwardCall { schedule, cuts, .. } = &call;
        let shapes = call.shapes();
        let exchanges = SlowestNode { job: self, shapes: &shapes, options }.costs();
        let slowness = self.nodes().iter().enumerate().map(|(rank, node)| options.slowness(rank, *node));
        let slow_passes = slowness.fold(0.0, f64::max);
        let found = predict_call(&shapes, &CallCosts { exchanges, slow_passes });
        let rank = self.ranks() / 2;
        let exchange_limit = |name: &str| {
            let at = schedule.reshapes.iter().position(|reshape| reshape.name == name)?;
            Some(self.exchange_limit(&shapes.exchange(rank, at), &cuts[at]))
        };
        let limit = |name: &str, pass: Option<PassCost>| match pass {
            Some(cost) => pass_limit(&cost, self.machine.constants.pass_s),
            None if name == "wait" => BARRIER,
            None => exchange_limit(name).unwrap_or(CODING),
        };
        let steps: Vec<ModelStep> = found
            .steps
            .iter()
            .map(|step| ModelStep {
                name: step.name.clone(),
                ms: 1e3 * step.seconds,
                limit: limit(&step.name, step.pass),
            })
            .collect();
        let seconds = found.seconds();
        Modelled {
            ranks: self.ranks(),
            nodes: self.node_count(),
            total_ms: 1e3 * seconds,
            gflops: self.flops() / seconds / 1e9,
            roofline_gflops: self.roofline() / 1e9,
            network_gflops: self.network_roofline(schedule).map(|flops| flops / 1e9),
            exchange: self.exchange.name(),
            codec: self.codec.as_ref().map_or("raw".into(), |codec| codec.name.clone()),
            path: self.recipe.path_text(),
            steps,
        }
    }

    /// Equation 2, with the paper's four reshapes.
    fn roofline(&self) -> f64 {
        let points = self.recipe.shape.iter().product::<usize>() as f64;
        let element = 2.0 * self.recipe.precision.bytes() as f64;
        let injection = self.cluster.network.injection_bytes_s();
        papers::peak_flops(points, self.node_count() as f64, element, papers::RESHAPES, injection)
    }

    /// Operations per second if a node did nothing but send what leaves it.
    fn network_roofline(&self, schedule: &Schedule) -> Option<f64> {
        let node = self.nodes()[self.ranks() / 2];
        let first = self.nodes().partition_point(|&at| at < node);
        let ranks = first..self.nodes().partition_point(|&at| at <= node);
        let mut bytes = 0.0;
        for reshape in &schedule.reshapes {
            let element = width(reshape.real) * self.recipe.precision.bytes() * self.recipe.batch;
            for rank in ranks.clone() {
                let met = reshape.to.intersections(&reshape.from.boxes()[rank]);
                let leaves = met.iter().filter(|(peer, _)| self.nodes()[*peer] != node);
                bytes += leaves.map(|(_, part)| part.volume() * element).sum::<usize>() as f64;
            }
        }
        let part = self.codec.as_ref().map_or(1.0, |codec| codec.part);
        (bytes > 0.0).then(|| self.flops() / (bytes * part / self.cluster.network.injection_bytes_s()))
    }

    fn exchange_limit(&self, shape: &ExchangeShape, cuts: &Tiles) -> &'static str {
        let (machine, constants) = (&self.machine, &self.machine.constants);
        let tiles = cuts.count() as f64;
        let size = machine.efficiency(shape.message_bytes() / tiles);
        let injection = self.cluster.network.injection_bytes_s();
        let wire = match () {
            () if size < 0.7 => SIZES,
            () if constants.wire_node_bytes_s < 0.99 * injection => TOPOLOGY,
            () => INJECTION,
        };
        let costs = [
            (MESSAGES, tiles * shape.start_seconds(machine)),
            (LATENCY, tiles * if shape.wire_messages > 0.0 { constants.wire_latency_s } else { 0.0 }),
            (COPIES, shape.node_bytes / shape.copy_bytes_s(machine)),
            (wire, shape.wire_bytes / shape.wire_bytes_s(machine)),
        ];
        costs.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(wire, |(limit, _)| limit)
    }
}

fn pass_limit(cost: &PassCost, launch: f64) -> &'static str {
    let memory = cost.load + cost.store;
    match () {
        () if launch > memory.max(cost.compute) => LAUNCH,
        () if memory > cost.compute => MEMORY,
        () => ARITHMETIC,
    }
}

/// One sentence that says what limits.
pub fn limit_sentence(modelled: &Modelled) -> String {
    let mut limits: Vec<(&str, f64)> = Vec::new();
    for step in &modelled.steps {
        match limits.iter_mut().find(|(limit, _)| *limit == step.limit) {
            Some((_, ms)) => *ms += step.ms,
            None => limits.push((step.limit, step.ms)),
        }
    }
    limits.sort_by(|a, b| b.1.total_cmp(&a.1));
    let Some((limit, ms)) = limits.first() else { return "there is nothing to do".into() };
    let share = |ms: f64| (100.0 * ms / modelled.total_ms).round();
    let remedy = match *limit {
        ARITHMETIC => "faster cores, or more of them, would help",
        MEMORY => "memory is the limit: more nodes bring more of it",
        LAUNCH => "the array is too small for so many GPUs: use fewer, or batches",
        BARRIER => "ranks wait for each other: use fewer",
        CODING => "the codec is slower than the network: send raw values",
        MESSAGES => "there are too many small messages: try exchange hierarchical, or fewer ranks per node",
        LATENCY => "messages are too short to matter: use fewer ranks, or batches",
        COPIES => "ranks of a node copy: try exchange hierarchical",
        SIZES => {
            "messages are too small for the network's full speed: try exchange hierarchical, or fewer ranks per node"
        }
        TOPOLOGY => {
            "the network between switches is the limit: encode messages, or allocate nodes closer together"
        }
        _ => "the links of the nodes are the limit: encode messages (--tolerance), or use more nodes",
    };
    format!(
        "at {} ranks on {} nodes {} % of the time is {limit}, exchanges take {} %: {remedy}",
        modelled.ranks,
        modelled.nodes,
        share(*ms),
        share(modelled.exchange_ms())
    )
}
