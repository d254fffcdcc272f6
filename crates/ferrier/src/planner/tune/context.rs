//! What a search for a choice depends on.

use crate::codec::RAW;
use crate::exchange::{EXCHANGES, ExchangeEntry};
use crate::planner::Forecast;
use crate::{Choice, Comm, MachineSpeeds, Overlap, Problem, Recipe, Tiling};
use ferrier_plan::messages::Mechanism;
use ferrier_plan::ring::packet_bytes;

/// The problem, the ranks and their transport: they decide which values a tunable can take.
pub(super) struct TuneContext<'a> {
    pub problem: &'a Problem,
    pub ranks: usize,
    /// Threads of a rank by default.
    pub threads: usize,
    /// Threads that a rank may have.
    pub most_threads: usize,
    /// The choice that the search starts from: the user's, completed by the cost model.
    pub start: Choice,
    /// Exchanges that these ranks can use, the one of the start first.
    pub exchanges: Vec<&'static str>,
    /// Number of nodes that the ranks are on.
    pub nodes: usize,
    /// Tiling that the search starts from; `None` if no messages are sent.
    pub tiling: Option<Tiling>,
    /// Does the transport allow a progress thread?
    pub progress_thread: bool,
    /// Bytes of a packet by default; `None` if exchange `ring` has none whose size matters: where it is not what the
    /// user chose, and messages are not encoded.
    pub packet: Option<usize>,
    /// What predictions depend on.
    pub forecast: Forecast,
}

impl<'a> TuneContext<'a> {
    /// The search starts from `start`, a completed choice; predictions use these measured speeds, if there are any.
    pub fn new(
        comm: &Comm,
        problem: &'a Problem,
        given: &Choice,
        start: Choice,
        speeds: Option<&MachineSpeeds>,
    ) -> Self {
        let encodes = crate::planner::encodes_in_nodes(comm, problem, given);
        // Exchanges through shared memory cannot encode.
        let fits = |member: &ExchangeEntry| {
            let shares = member.mechanism.on_nodes(comm.node_count()).shares();
            works(member, comm) && !(encodes && shares)
        };
        let mut exchanges: Vec<_> =
            EXCHANGES.iter().filter(|member| fits(member)).map(|member| member.name).collect();
        let default = crate::planner::default_exchange(comm, encodes);
        let first = start.exchange.as_deref().filter(|_| given.exchange.is_none()).unwrap_or(default);
        exchanges.sort_by_key(|name| *name != first);
        let nodes = comm.node_count();
        let exchange = crate::exchange::find(start.exchange.as_deref().unwrap_or(default));
        let sends = comm.size() > 1 && exchange.is_ok_and(|member| member.sends_messages(nodes));
        let encoded = problem.tolerance.is_some() || given.codec.as_deref().is_some_and(|name| name != RAW);
        let ring = given.exchange.as_deref().map_or(encoded, |name| name == "ring");
        let packet = (comm.size() > 1 && ring).then(|| packet_bytes(encoded));
        let tiling = start.overlap.as_ref().and_then(|overlap| overlap.forward.first().copied());
        TuneContext {
            problem,
            ranks: comm.size(),
            threads: crate::planner::threads(comm, problem, given),
            most_threads: comm.threads(),
            start,
            exchanges,
            nodes,
            tiling: sends.then(|| tiling.unwrap_or_default()),
            progress_thread: comm.transport().allows_progress_thread().is_ok(),
            packet,
            forecast: Forecast::new(comm, crate::planner::machine(comm, speeds)),
        }
    }
}

/// The choice with what the cost model decides in a plan by default, which has this recipe: the exchange and the order of
/// the axes where they are not those of `usual`, tiles, and the number of ranks between the first and the last reshape.
pub(crate) fn completed(comm: &Comm, given: &Choice, [recipe, usual]: [&Recipe; 2]) -> Choice {
    let mut start = given.clone();
    if recipe.axes() != usual.axes() {
        start.axes.get_or_insert(recipe.axes());
    }
    if comm.size() > 1
        && recipe.codec == RAW
        && recipe.exchange != crate::planner::default_exchange(comm, false)
    {
        start.exchange = Some(recipe.exchange.clone());
    }
    if recipe.overlap != Overlap::default() {
        start.overlap = Some(recipe.overlap.clone());
    }
    let inner = recipe.inner_ranks();
    if inner < comm.size() && given.grid.is_none() {
        start.ranks.get_or_insert(inner);
    }
    start
}

/// Can the ranks of `comm` use this exchange? Shared memory needs a single node.
pub(crate) fn works(exchange: &ExchangeEntry, comm: &Comm) -> bool {
    let nodes = comm.node_count();
    nodes == 1 || !matches!(exchange.mechanism.on_nodes(nodes), Mechanism::SharedMemory)
}

/// The length of the longest axis.
pub(super) fn longest(problem: &Problem) -> usize {
    problem.shape.into_iter().max().unwrap_or(1)
}
