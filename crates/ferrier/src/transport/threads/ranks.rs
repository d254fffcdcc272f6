//! Starts ranks as threads of this process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::wire::Wire;
use super::world::{ThreadRank, World};
use crate::machine::pool::panic_text;
use crate::machine::waiting::BusyThreads;
use crate::transport::comm::Comm;
use crate::transport::planning::PlanningRank;
use crate::{Error, Result};

/// Ranks inside this process, one thread each; made by [`ranks`].
#[derive(Clone, Copy, Debug)]
pub struct Ranks {
    count: usize,
    nodes: Option<usize>,
    threads: Option<usize>,
    wire: Option<Wire>,
}

/// `count` ranks inside this process.
///
/// ```
/// let sizes = ferrier::ranks(3).run(|comm| Ok(comm.rank() * 10))?;
/// assert_eq!(sizes, [0, 10, 20]);
/// # Ok::<(), ferrier::Error>(())
/// ```
pub fn ranks(count: usize) -> Ranks {
    Ranks { count, nodes: None, threads: None, wire: None }
}

impl Ranks {
    /// Threads inside each rank; by default the cores divided by the ranks.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Simulates so many nodes: ranks are assigned to them in blocks, and ranks
    /// of different nodes communicate by messages only. For tests and studies
    /// of exchanges between nodes.
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = Some(nodes);
        self
    }

    /// Simulates a network between nodes: a message arrives after the time that
    /// it would take there, during which ranks can compute. Each rank's link
    /// carries one message out and one in at a time. Every rank is then a node,
    /// unless [`nodes`](Self::nodes) says otherwise. Results do not change.
    pub fn wire(mut self, wire: Wire) -> Self {
        self.wire = Some(wire);
        self
    }

    /// The node of each rank, and the threads of a rank.
    fn check(&self) -> Result<(Vec<usize>, usize)> {
        if self.count == 0 {
            return Err(Error::problem("ranks", "at least one rank is needed, got 0"));
        }
        if self.threads == Some(0) {
            return Err(Error::problem("threads", "a rank needs at least one thread, got 0"));
        }
        let nodes = self.nodes.unwrap_or(if self.wire.is_some() { self.count } else { 1 });
        if nodes == 0 || nodes > self.count {
            return Err(Error::problem(
                "nodes",
                format!("{} ranks can be spread over 1 to {} nodes, got {nodes}", self.count, self.count),
            ));
        }
        self.wire.iter().try_for_each(Wire::check)?;
        let threads = self.threads.unwrap_or_else(|| (crate::machine::cores() / self.count).max(1));
        Ok(((0..self.count).map(|rank| rank * nodes / self.count).collect(), threads))
    }

    /// The first rank of such a group, without the others: [`Planner::draft`](crate::Planner::draft) takes it, for
    /// any number of ranks, and starts no thread. Calls of plans return errors.
    ///
    /// ```
    /// let comm = ferrier::ranks(4096).for_planning()?;
    /// let problem = ferrier::Problem::c2c([512, 512, 512]);
    /// let draft = ferrier::Planner::new(&problem).without_wisdom().draft::<f64>(&comm)?;
    /// assert_eq!(draft.recipe().ranks(), 4096);
    /// # Ok::<(), ferrier::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`run`](Self::run) that concern the group.
    pub fn for_planning(self) -> Result<Comm> {
        let (nodes, threads) = self.check()?;
        let version = self.wire.map_or("threads".into(), |wire| format!("threads over {wire}"));
        let rank = PlanningRank::new(nodes, version, self.wire.as_ref().map(Wire::rate_and_latency));
        Ok(Comm::new(Arc::new(rank), threads))
    }

    /// Runs `work` on every rank and returns the results in order of rank.
    ///
    /// # Errors
    /// The error of the first failing rank; [`Error::RankPanicked`] where
    /// one panicked. Collective calls of the other ranks then return an error,
    /// so no rank waits forever.
    pub fn run<R: Send>(self, work: impl Fn(Comm) -> Result<R> + Sync) -> Result<Vec<R>> {
        let (nodes, threads) = self.check()?;
        let world = World::new(nodes, self.wire);
        let _busy = BusyThreads::new(self.count - 1);
        let mut outcomes: Vec<Result<R>> = Vec::with_capacity(self.count);
        std::thread::scope(|scope| {
            let mut handles = Vec::with_capacity(self.count);
            for rank in 0..self.count {
                let (world, work) = (&world, &work);
                let body = move || run_rank(world, rank, threads, work);
                match std::thread::Builder::new().name(format!("rank {rank}")).spawn_scoped(scope, body) {
                    Ok(handle) => handles.push(handle),
                    Err(error) => {
                        let error = Error::transport(format!(
                            "rank {rank} of {} could not be started as a thread: {error}",
                            self.count
                        ))
                        .caused_by(error);
                        world.fail(error.clone());
                        outcomes.push(Err(error));
                        break;
                    }
                }
            }
            for handle in handles {
                outcomes.push(handle.join().unwrap_or_else(|_| {
                    Err(Error::transport("the thread of a rank ended without a result"))
                }));
            }
        });
        let cause =
            outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).min_by_key(|error| error.is_echo());
        match cause {
            Some(error) => Err(error.clone()),
            None => outcomes.into_iter().collect(),
        }
    }
}

fn run_rank<R>(
    world: &Arc<World>,
    rank: usize,
    threads: usize,
    work: &impl Fn(Comm) -> Result<R>,
) -> Result<R> {
    let comm = Comm::new(ThreadRank::of_world(world, rank), threads);
    let outcome = catch_unwind(AssertUnwindSafe(|| work(comm)))
        .unwrap_or_else(|payload| Err(Error::RankPanicked { rank, message: panic_text(&*payload) }));
    if let Err(error) = &outcome {
        world.fail(match error {
            Error::RankPanicked { .. } => error.clone(),
            other => Error::RankLeft { rank, waiting: rank, message: other.to_string() },
        });
    }
    world.exit(rank);
    outcome
}

impl Comm {
    /// One rank: the calling thread, with as many threads as there are cores.
    pub fn one_rank() -> Comm {
        Comm::new(ThreadRank::of_world(&World::new(vec![0], None), 0), crate::machine::cores())
    }
}
