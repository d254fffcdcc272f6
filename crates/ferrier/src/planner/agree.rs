//! Agreement between ranks before planning: they compare the problem, and rank 0 decides for all.

use serde::{Deserialize, Serialize};

use super::entry_ref::EntryRef;
use crate::machine::level2;
use crate::{
    Box3, Choice, Comm, Compress, Error, LayoutSpec, MachineSpeeds, MemoryUse, Problem, Real, Recipe, Result,
    StridesSpec, codec, exchange,
};
use ferrier_plan::cost::Machine;
use ferrier_plan::geometry::width;
use ferrier_plan::layout::Split;
use ferrier_plan::lowering::MemoryPolicy;
use ferrier_plan::messages::Mechanism;
use ferrier_plan::recipe::fingerprint;
use ferrier_plan::schedule::bundle_bytes;
use ferrier_plan::threads::{SharedWork, ThreadCosts};

/// The choice that planning starts from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartChoice {
    /// The user's choice, completed from wisdom.
    pub(crate) choice: Choice,
    /// The entry that it was taken from; `None` for the user's choice alone.
    pub(crate) wisdom: Option<EntryRef>,
    /// Measured speeds of this machine; `None` if the default speeds are assumed.
    pub(crate) speeds: Option<MachineSpeeds>,
    /// Whether the cost model decides what the choice leaves open: the exchange, tiles, and ranks between the first and
    /// the last reshape. Choices of wisdom and of trials are complete: what they leave open is as usual.
    pub(crate) open: bool,
}

impl StartChoice {
    /// The user's choice, of which the cost model decides what is open.
    pub(crate) fn open(choice: Choice) -> Self {
        StartChoice { open: true, ..choice.into() }
    }
}

impl From<Choice> for StartChoice {
    fn from(choice: Choice) -> Self {
        StartChoice { choice, wisdom: None, speeds: None, open: false }
    }
}

/// What rank 0 decides for all ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Decision {
    pub(crate) start: StartChoice,
    /// The largest plane, in bytes, that is transformed along two axes in one pass.
    pub(crate) plane_bytes: usize,
    pub(crate) threads: usize,
    pub(crate) memory_policy: MemoryPolicy,
    /// The machine that the plan is made for.
    pub(crate) machine: Machine,
    /// Whether the cost model may take another exchange than the usual one, and tiles.
    pub(crate) open_exchange: bool,
}

/// The exchange that needs nothing but messages.
pub(crate) const MESSAGES: &str = "all_to_allv";

/// Are messages between ranks of one node encoded, as far as is known before the design? Then they cannot share
/// memory.
pub(crate) fn encodes_in_nodes(comm: &Comm, problem: &Problem, choice: &Choice) -> bool {
    let wanted = match choice.codec.as_deref() {
        Some(name) => name != codec::RAW,
        None => problem.tolerance.is_some(),
    };
    wanted && choice.compress.unwrap_or(compress(comm)) == Compress::BetweenRanks
}

/// Which messages are encoded by default.
fn compress(comm: &Comm) -> Compress {
    if comm.node_count() > 1 { Compress::BetweenNodes } else { Compress::BetweenRanks }
}

/// The exchange by default.
pub(crate) fn default_exchange(comm: &Comm, encodes_in_nodes: bool) -> &'static str {
    let nodes = comm.node_count();
    match nodes {
        _ if encodes_in_nodes => MESSAGES,
        1 => exchange::EXCHANGES[0].name,
        _ if nodes < comm.size() => "hierarchical",
        _ => MESSAGES,
    }
}

/// Exchanges besides the one by default that the cost model compares with it, and how they move data: of each mechanism
/// one that these ranks can use.
pub(crate) fn other_exchanges(comm: &Comm) -> Vec<(&'static str, Mechanism)> {
    let (nodes, usual) = (comm.node_count(), default_exchange(comm, false));
    let used = |name: &str| exchange::find(name).map(|entry| entry.mechanism.on_nodes(nodes));
    let others = [exchange::EXCHANGES[0].name, MESSAGES, "hierarchical"].into_iter();
    let mut found: Vec<(&'static str, Mechanism)> = Vec::new();
    for (name, mechanism) in others.filter_map(|name| Some((name, used(name).ok()?))) {
        let known = used(usual).is_ok_and(|usual| usual == mechanism)
            || found.iter().any(|(_, other)| *other == mechanism);
        if !known && (nodes == 1 || mechanism != Mechanism::SharedMemory) {
            found.push((name, mechanism));
        }
    }
    found
}

/// Gathers the boxes of all ranks, compares everything else, and checks the problem. Collective.
pub(crate) fn agree<T: Real>(
    comm: &Comm,
    device: &str,
    mut problem: Problem,
    choice: &Choice,
    effort: impl std::fmt::Debug,
) -> Result<Problem> {
    for spec in [&mut problem.input, &mut problem.output] {
        gather_boxes(comm, spec)?;
    }
    for spec in [&mut problem.input_strides, &mut problem.output_strides] {
        gather_strides(comm, spec)?;
    }
    let mine = format!("{} {device} {problem:?} {choice:?}, effort: {effort:?}", T::PRECISION.name());
    compare_texts(comm, &mine)?;
    problem.check()?;
    problem.check_strides(comm.size())?;
    Ok(problem)
}

/// An error on every rank where ranks were called with different arguments; `mine` describes those of this rank.
/// Collective.
pub(crate) fn compare_texts(comm: &Comm, mine: &str) -> Result<()> {
    // Lists of boxes are long: the texts themselves are gathered only where they differ.
    let digests = comm.all_gather(&fingerprint(format_args!("{mine}")).to_le_bytes())?;
    let Some(rank) = digests.iter().position(|theirs| *theirs != digests[0]) else { return Ok(()) };
    let all = comm.all_gather(mine.as_bytes())?;
    Err(Error::Disagreement { rank, message: difference(&all[0], &all[rank], rank) })
}

/// Replaces the box of this rank by those of all. Collective.
pub(crate) fn gather_boxes(comm: &Comm, spec: &mut LayoutSpec) -> Result<()> {
    let own = match spec.split {
        Split::Local(own) => Some(own),
        _ => None,
    };
    let text = own.map_or(String::new(), |b| serde_json::to_string(&b).unwrap_or_default());
    let all = comm.all_gather(text.as_bytes())?;
    if all.iter().all(Vec::is_empty) {
        return Ok(());
    }
    if let Some(rank) = all.iter().position(Vec::is_empty) {
        let other = all.iter().position(|text| !text.is_empty()).unwrap_or(0);
        let message = format!("rank {other} gave its own box, rank {rank} gave a layout for all ranks");
        return Err(Error::Disagreement { rank, message });
    }
    let boxes: std::result::Result<Vec<Box3>, _> =
        all.iter().map(|text| serde_json::from_slice(text)).collect();
    spec.split = Split::Boxes(boxes.map_err(Error::other)?);
    Ok(())
}

/// Gathers the strides of all ranks, unless none has any or they are known.
pub(crate) fn gather_strides(comm: &Comm, spec: &mut StridesSpec) -> Result<()> {
    let text = match spec {
        StridesSpec::Local(own) => serde_json::to_string(own).map_err(Error::other)?,
        _ => String::new(),
    };
    let mut all = comm.all_gather(text.as_bytes())?;
    if all.iter().all(Vec::is_empty) {
        return Ok(());
    }
    if comm.transport().other_rank(comm.rank()).is_some() {
        // A group for planning: the strides are those of this rank alone.
        (0..all.len()).filter(|&rank| rank != comm.rank()).for_each(|rank| all[rank].clear());
    }
    let of = |text: &Vec<u8>| match text.is_empty() {
        true => Ok(None),
        false => serde_json::from_slice(text).map(Some),
    };
    let strides: std::result::Result<Vec<_>, _> = all.iter().map(of).collect();
    *spec = StridesSpec::Ranks(strides.map_err(Error::other)?);
    Ok(())
}

/// The first field in which two descriptions differ.
fn difference(first: &[u8], other: &[u8], rank: usize) -> String {
    let same = first.iter().zip(other).take_while(|(a, b)| a == b).count();
    let field = first[..same].iter().rposition(|byte| b"{,".contains(byte)).map_or(0, |at| at + 1);
    let show = |text: &[u8]| {
        let rest = String::from_utf8_lossy(&text[field.min(text.len())..]);
        rest.trim().chars().take(60).collect::<String>()
    };
    format!("rank 0 has `{}`, rank {rank} has `{}`", show(first), show(other))
}

/// The number of threads that pays.
pub(crate) fn threads(comm: &Comm, problem: &Problem, choice: &Choice) -> usize {
    if let Some(threads) = choice.threads {
        return threads.max(1);
    }
    let volume = problem.shape.iter().product::<usize>() as f64;
    let elements = volume * problem.batch as f64 / comm.size() as f64;
    let half = if problem.is_real() { 0.5 } else { 1.0 };
    // Many arrays are shared out; one goes from the planes of some threads to the lines of others.
    let passes = if problem.batch >= comm.threads() { 1 } else { 2 };
    let work = SharedWork {
        flops: 5.0 * half * elements * volume.max(2.0).log2(),
        passes,
        bytes_between: (passes - 1) as f64 * half * elements * 16.0,
    };
    work.threads(&ThreadCosts::default(), comm.threads())
}

/// The bytes of input and of output on a node.
fn node_bytes(nodes: usize, problem: &Problem, scalar_bytes: usize) -> [usize; 2] {
    let side = |shape: [usize; 3], real: bool| {
        shape.iter().product::<usize>() * width(real) * problem.batch / nodes * scalar_bytes
    };
    let input = side(problem.shape(), problem.is_real());
    [input, side(problem.spectrum_shape(), problem.has_real_spectrum())]
}

/// Input and output of a core that exceed its second-level cache so many times are prefetched, though the last cache holds
/// them (measured: one thread of a Zen 5 loses up to a third by prefetching 16 MB, one of a Xeon gains a third at 33 MB).
const PREFETCHED_LEVEL2: usize = 16;

/// How passes access memory, on so many ranks and nodes, each rank with so many threads.
pub(crate) fn memory_policy(
    ranks: (usize, usize),
    threads: usize,
    problem: &Problem,
    choice: &Choice,
    scalar_bytes: usize,
    machine: &Machine,
) -> MemoryPolicy {
    let busy = ranks.0.div_ceil(ranks.1) * threads;
    let bytes = node_bytes(ranks.1, problem, scalar_bytes);
    let stream = choice.stream.unwrap_or_else(|| machine.streams_arrays(ranks.0, bytes));
    let stages = choice.memory == MemoryUse::Fast && machine.stages(threads, busy);
    MemoryPolicy {
        stream,
        prefetch: stream || (bytes[0] + bytes[1]) / busy.max(1) > PREFETCHED_LEVEL2 * level2().bytes,
        staging: choice.staging.unwrap_or(stages),
        block: choice.block,
        bundle_bytes: bundle_bytes(plane_bytes()),
        threads,
    }
}

/// The largest plane, in bytes, that is transformed along two axes in one pass.
pub(crate) fn plane_bytes() -> usize {
    2 * level2().bytes
}

/// This machine as the cost model sees it, with the cores that its ranks have together, with these measured speeds, if
/// there are any, and with the simulated network of the ranks, if they have one.
pub(crate) fn machine(comm: &Comm, speeds: Option<&MachineSpeeds>) -> Machine {
    let machine = crate::machine::model().clone().cores(comm.transport().node_cores());
    let machine = speeds.map_or(machine.clone(), |speeds| machine.with_speeds(speeds));
    let Some((rate, latency)) = comm.transport().simulated_wire() else { return machine };
    let mut constants = machine.constants;
    (constants.wire_bytes_s, constants.wire_node_bytes_s) = (rate, rate);
    constants.wire_latency_s += latency;
    machine.constants(constants)
}

/// Rank 0's decision, on every rank.
pub(crate) fn decide<T: Real>(comm: &Comm, problem: &Problem, mut start: StartChoice) -> Result<Decision> {
    let choice = &mut start.choice;
    let encoded =
        problem.tolerance.is_some() || choice.codec.as_deref().is_some_and(|name| name != codec::RAW);
    let open_exchange = start.open && choice.exchange.is_none() && !encoded;
    if comm.size() > 1 {
        let (nodes, encodes) = (comm.node_count(), encodes_in_nodes(comm, problem, choice));
        choice.compress.get_or_insert(compress(comm));
        let name = choice.exchange.get_or_insert_with(|| default_exchange(comm, encodes).into());
        let entry = exchange::find(name)?;
        let mechanism = entry.mechanism.on_nodes(nodes);
        if encodes && mechanism.shares() {
            return Err(Error::choice(
                "exchange",
                format!(
                    "exchange `{name}` shares memory inside a node, where nothing is encoded; what crosses between \
                 ranks is encoded by exchanges that send messages, such as `{MESSAGES}`"
                ),
            ));
        }
        entry.check_nodes(nodes)?;
    }
    let threads = threads(comm, problem, choice);
    let machine = machine(comm, start.speeds.as_ref());
    let ranks = (comm.size(), comm.node_count());
    let memory_policy = memory_policy(ranks, threads, problem, choice, T::PRECISION.bytes(), &machine);
    let decision =
        Decision { start, plane_bytes: plane_bytes(), threads, memory_policy, machine, open_exchange };
    let mine = match comm.rank() {
        0 => serde_json::to_vec(&decision).map_err(Error::other)?,
        _ => Vec::new(),
    };
    serde_json::from_slice(&comm.all_gather(&mine)?[0]).map_err(Error::other)
}

/// Checks that every rank has the same recipe. Collective.
pub(crate) fn compare(comm: &Comm, recipe: &Recipe) -> Result<()> {
    let all = comm.all_gather(&recipe.digest().to_le_bytes())?;
    match all.iter().position(|digest| *digest != all[0]) {
        None => Ok(()),
        Some(rank) => {
            let message = format!("rank {rank} derived another recipe than rank 0");
            Err(Error::Disagreement { rank, message })
        }
    }
}
