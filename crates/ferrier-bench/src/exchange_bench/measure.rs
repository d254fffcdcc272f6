//! Exchanges alone: their bandwidth on the reshapes of a transform and over message sizes.
//!
//! A plan without transforms is one reshape. So this times the code that a transform runs: the
//! store to send buffers, the exchange, the load from receive buffers; for `direct`, the load.

use ferrier::exchange::EXCHANGES;
use ferrier::{Choice, Comm, DeviceSpec, Error, LayoutSpec, Precision, Problem, Real, Recipe, Step};
use serde::Serialize;

use super::overlap::{OverlapTimes, overlapped};
use crate::agree::{RankGroup, agree, agree_result};
use crate::charts::chart::Chart;
use crate::failure::{Failure, Outcome};
use crate::hosted_plan::HostedPlan;
use crate::in_precision;
use crate::noise::Noise;
use crate::table::{bytes, columns, digits, distinct, plural, substitutions};
use crate::timing::{Times, median};
use crate::view::View;

/// Bytes from each rank to each other one; 80 000 is common in the literature.
const SIZES: [usize; 8] = [1 << 10, 4 << 10, 16 << 10, 80_000, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
/// Upper limit of the bytes of a rank's array.
const LONGEST: usize = 1 << 30;
/// About the time of the repetitions of one measurement.
const WANTED_SECONDS: f64 = 0.2;

/// One reshape under one exchange.
#[derive(Clone, Debug, Serialize)]
pub struct ReshapeTimes {
    pub(super) what: String,
    pub(super) exchange: &'static str,
    /// The most bytes from one rank to another.
    pub(super) bytes_per_pair: u64,
    /// The bytes that all ranks receive from others.
    bytes_total: u64,
    /// The bytes that leave the node that sends most.
    bytes_leaving_node: u64,
    #[serde(flatten)]
    pub(super) speed: Option<ExchangeSpeed>,
    /// The exchange around computation, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    overlap: Option<OverlapTimes>,
    /// The reason why there is no speed; else the notes of the plan.
    note: Option<String>,
}

/// The speed of a reshape.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct ExchangeSpeed {
    #[serde(flatten)]
    pub(super) times: Times,
    /// The part of the exchange, without loads and stores; null if they are not separate.
    exchange_ms: Option<f64>,
    pub(super) gb_s_per_rank: f64,
    pub(super) gb_s_per_node: f64,
}

/// The report of the benchmark; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct ExchangeReport {
    #[serde(flatten)]
    pub(super) group: RankGroup,
    precision: &'static str,
    /// The reshapes of the transform.
    pub(super) reshapes: Vec<ReshapeTimes>,
    /// All-to-all exchanges of several sizes.
    pub(super) sizes: Vec<ReshapeTimes>,
}

/// Options of the benchmark.
pub struct ExchangeBench {
    /// The transform whose reshapes are timed.
    pub problem: Problem,
    /// The precision of its elements.
    pub precision: Precision,
    /// The choice; one exchange alone is timed if it names one.
    pub choice: Choice,
    /// Number of repetitions; `None`: about 0.2 seconds' worth.
    pub repeat: Option<usize>,
    /// Time exchanges around computation too, on the CPU.
    pub overlap: bool,
    /// Where arrays lie.
    pub device: DeviceSpec,
}

impl ExchangeBench {
    /// Times all exchanges. Needs at least two ranks. Collective.
    ///
    /// # Errors
    /// Those of the library; wrong data after an exchange.
    pub fn run(&self, comm: &Comm) -> Outcome<ExchangeReport> {
        in_precision!(self.precision, T => measure::<T>(comm, self))
    }

    fn exchanges(&self) -> impl Iterator<Item = &'static str> {
        let names = EXCHANGES.iter().map(|entry| entry.name);
        names.filter(|name| self.choice.exchange.as_deref().is_none_or(|chosen| chosen == *name))
    }
}

fn measure<T: Real>(comm: &Comm, options: &ExchangeBench) -> Outcome<ExchangeReport> {
    let plan = HostedPlan::<T>::new(comm, &options.problem, options.choice.clone(), options.device, 0)?;
    let recipe = plan.recipe().clone();
    drop(plan);
    let mut report = ExchangeReport {
        group: RankGroup::new(comm),
        precision: recipe.precision.name(),
        reshapes: Vec::new(),
        sizes: Vec::new(),
    };
    for problem in reshapes(&options.problem, &recipe) {
        for exchange in options.exchanges() {
            report.reshapes.push(reshape_times::<T>(comm, options, &problem, exchange, None)?);
        }
    }
    let element = 2 * size_of::<T>();
    for size in SIZES {
        if size * comm.size() > LONGEST {
            continue;
        }
        let shape = [comm.size(), comm.size(), size / element];
        let problem = Problem::c2c(shape).axes(&[]).input(LayoutSpec::slabs(0)).output(LayoutSpec::slabs(1));
        for exchange in options.exchanges() {
            let what = format!("{} per pair", bytes(size as u64));
            report.sizes.push(reshape_times::<T>(comm, options, &problem, exchange, Some(what))?);
        }
    }
    Ok(report)
}

/// The reshapes of a recipe in which something leaves its rank, each as a problem of its own.
fn reshapes(problem: &Problem, recipe: &Recipe) -> Vec<Problem> {
    let local = recipe.traffic().into_iter().map(|step| step.local);
    let steps = recipe.steps.iter().zip(local).filter(|(_, local)| !local);
    let alone = |(step, _): (&Step, bool)| match step {
        Step::Reshape { from, to } => Some(
            problem
                .clone()
                .axes(&[])
                .input(LayoutSpec::boxes(from.boxes().to_vec()).order(from.order()))
                .output(LayoutSpec::boxes(to.boxes().to_vec()).order(to.order())),
        ),
        _ => None,
    };
    steps.filter_map(alone).collect()
}

/// Times one reshape under one exchange. Collective.
fn reshape_times<T: Real>(
    comm: &Comm,
    options: &ExchangeBench,
    problem: &Problem,
    exchange: &'static str,
    what: Option<String>,
) -> Outcome<ReshapeTimes> {
    let choice = options.choice.clone().exchange(exchange);
    let mut result = ReshapeTimes {
        what: what.unwrap_or_default(),
        exchange,
        bytes_per_pair: 0,
        bytes_total: 0,
        bytes_leaving_node: 0,
        speed: None,
        overlap: None,
        note: None,
    };
    let mut plan = match HostedPlan::<T>::new(comm, problem, choice, options.device, 2) {
        Ok(plan) => plan,
        // Not possible on these nodes, or too little shared memory: the same on every rank.
        Err(Failure { error: Some(error @ (Error::Choice(_) | Error::Memory { .. })), .. }) => {
            result.note = Some(error.to_string());
            return Ok(result);
        }
        Err(failure) => return agree(comm, Err(failure)),
    };
    describe(&mut result, plan.recipe(), comm);
    result.note =
        Some(substitutions(plan.notes()).collect::<Vec<_>>().join("; ")).filter(|notes| !notes.is_empty());
    let arrays = plan.make_input().and_then(|input| Ok((input, plan.make_output()?)));
    let (mut input, mut output) = agree_result(comm, arrays)?;
    let noise = Noise::new(plan.recipe().shape, 1);
    noise.fill(&mut input);

    plan.forward(&input, &mut output)?;
    let (layout, batch) = (plan.output_layout(), plan.recipe().batch);
    let view = View::of_spectrum(&output, plan.output_box(), layout.order(), batch);
    let distance = comm.sum(&[view.distance(&noise, comm.threads()).0])?[0];
    if distance != 0.0 {
        let text = format!("exchange {exchange} delivered wrong data ({})", result.what);
        return agree(comm, Err(Failure::wrong(text)));
    }
    let name = plan.recipe().traffic().into_iter().find(|step| !step.local).map(|step| step.name);
    let once = plan.timed_forward(comm, &input, &mut output)?;
    let repeat = options.repeat.unwrap_or_else(|| (WANTED_SECONDS / once).ceil().clamp(5.0, 500.0) as usize);
    let (mut seconds, mut alone) = (Vec::with_capacity(repeat), Vec::with_capacity(repeat));
    for _ in 0..repeat {
        seconds.push(plan.timed_forward(comm, &input, &mut output)?);
        let steps = plan.on_cpu().map_or(Vec::new(), |plan| plan.profile());
        let step = steps.into_iter().find(|step| Some(&step.name) == name.as_ref());
        alone.push(step.map_or(0.0, |step| step.ms));
    }
    let alone = median(&comm.max(&alone)?);
    if let Some(plan) = plan.on_cpu().filter(|_| options.overlap && alone > 0.0) {
        result.overlap = Some(overlapped(comm, plan, (&input, &mut output), alone, repeat.min(100))?);
    }
    let (total, typical) = (result.bytes_total as f64 / 1e9, median(&seconds));
    result.speed = Some(ExchangeSpeed {
        times: Times::new(&seconds),
        exchange_ms: (alone > 0.0).then_some(alone),
        gb_s_per_rank: total / comm.size() as f64 / typical,
        gb_s_per_node: total / comm.node_count() as f64 / typical,
    });
    Ok(result)
}

/// Names the reshape and counts its bytes.
fn describe(result: &mut ReshapeTimes, recipe: &Recipe, comm: &Comm) {
    let element = (2 * recipe.precision.bytes() * recipe.batch) as u64;
    let (from, to, nodes) = (recipe.input.boxes(), recipe.output.boxes(), comm.nodes());
    let mut leaving = vec![0; comm.node_count()];
    for (source, own) in from.iter().enumerate() {
        for (target, theirs) in to.iter().enumerate().filter(|&(target, _)| target != source) {
            let bytes = own.intersect(theirs).volume() as u64 * element;
            result.bytes_total += bytes;
            result.bytes_per_pair = result.bytes_per_pair.max(bytes);
            if nodes[source] != nodes[target] {
                leaving[nodes[source]] += bytes;
            }
        }
    }
    result.bytes_leaving_node = leaving.into_iter().max().unwrap_or(0);
    if result.what.is_empty() {
        result.what = format!("{} to {}", recipe.input.grid_text(), recipe.output.grid_text());
    }
}

impl ExchangeReport {
    /// Tables of the reshapes and sizes, and the notes.
    pub fn text(&self) -> String {
        let RankGroup { ranks, nodes, threads, transport } = self.group;
        let [ranks, nodes, threads] =
            [(ranks, "rank"), (nodes, "node"), (threads, "thread")].map(|(count, noun)| plural(count, noun));
        let mut out = format!("{ranks} on {nodes} ({transport}), {threads} each: ");
        out += "bytes received from other ranks, median time\n";
        for (title, list) in [("reshapes of the transform", &self.reshapes), ("all to all", &self.sizes)] {
            if list.is_empty() {
                continue;
            }
            let heads = ["", "exchange", "per pair", "ms", "exchange ms", "GB/s per rank", "GB/s per node"];
            out += &format!("\n{title}\n{}", columns(&heads, list.iter().map(row)));
        }
        out += &self.overlap_table();
        let all = self.sizes.iter().chain(&self.reshapes);
        let mut notes: Vec<_> =
            all.filter_map(|result| Some((result.exchange, result.note.as_ref()?))).collect();
        notes.sort_unstable();
        notes.dedup();
        notes.iter().for_each(|(exchange, note)| out += &format!("\nnote: {exchange}: {note}\n"));
        out
    }

    /// Blocking time against post, test and wait around computation, if that was asked for.
    fn overlap_table(&self) -> String {
        let all = self.reshapes.iter().chain(&self.sizes);
        let row = |result: &ReshapeTimes| {
            let times = result.overlap?;
            let mut row = vec![result.what.clone(), result.exchange.into()];
            let OverlapTimes { blocking_ms, compute_ms, post_ms, test_ms, wait_ms, overhead_ms, hidden } =
                times;
            row.extend([blocking_ms, compute_ms, post_ms, test_ms, wait_ms, overhead_ms].map(digits));
            row.push(format!("{:.0} %", 100.0 * hidden));
            Some(row)
        };
        let rows: Vec<_> = all.filter_map(row).collect();
        if rows.is_empty() {
            return String::new();
        }
        let heads = [
            "",
            "exchange",
            "blocking ms",
            "compute ms",
            "post ms",
            "test ms",
            "wait ms",
            "overhead ms",
            "hidden",
        ];
        format!("\nexchanges around computation that takes as long\n{}", columns(&heads, rows))
    }

    /// Overhead against the bytes of a pair: blocking, and around computation.
    fn overlap_svg(&self) -> String {
        let RankGroup { ranks, nodes, transport, .. } = self.group;
        let title = format!("{ranks} ranks on {nodes} nodes ({transport})");
        let mut chart = Chart::new(title, "bytes from each rank to each other", "ms");
        for name in distinct(self.sizes.iter().map(|result| result.exchange.to_string())) {
            let own = || self.sizes.iter().filter(|result| result.exchange == name);
            let points = |of: fn(&OverlapTimes) -> f64| {
                own()
                    .filter_map(|result| Some((result.bytes_per_pair as f64, of(result.overlap.as_ref()?))))
                    .collect()
            };
            chart.line(&format!("{name}, blocking"), points(|times| times.blocking_ms));
            chart.line(&format!("{name}, overlapped"), points(|times| times.overhead_ms));
        }
        chart.svg(|size| bytes(size as u64))
    }

    /// Bandwidth of a node against the bytes of a pair, with a line for each exchange, as SVG; with computation, the
    /// overheads.
    pub fn svg(&self) -> String {
        if self.sizes.iter().any(|result| result.overlap.is_some()) {
            return self.overlap_svg();
        }
        let RankGroup { ranks, nodes, transport, .. } = self.group;
        let title = format!("{ranks} ranks on {nodes} nodes ({transport})");
        let mut chart = Chart::new(title, "bytes from each rank to each other", "GB/s per node");
        let mut names = distinct(self.sizes.iter().map(|result| result.exchange.to_string()));
        names.sort_unstable();
        for name in names {
            let points = self.sizes.iter().filter(|result| result.exchange == name);
            let point =
                |result: &ReshapeTimes| Some((result.bytes_per_pair as f64, result.speed?.gb_s_per_node));
            chart.line(&name, points.filter_map(point).collect());
        }
        chart.svg(|size| bytes(size as u64))
    }
}

fn row(result: &ReshapeTimes) -> Vec<String> {
    let ReshapeTimes { what, exchange, bytes_per_pair, speed, .. } = result;
    let mut row = vec![what.clone(), exchange.to_string(), bytes(*bytes_per_pair)];
    match speed {
        Some(speed) => row.extend([
            digits(speed.times.median_ms),
            speed.exchange_ms.map_or(String::new(), digits),
            digits(speed.gb_s_per_rank),
            digits(speed.gb_s_per_node),
        ]),
        None => row.extend(std::iter::repeat_n("-".to_string(), 4)),
    }
    row
}
