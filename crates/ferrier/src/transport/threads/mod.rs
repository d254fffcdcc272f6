//! Transport `threads`: every rank is a thread of this process.

mod group;
mod node_counters;
mod transfer;
mod window;
mod wire;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::waiting::BusyThreads;
use super::{Comm, Transport};
use crate::{Error, Result};
use group::{Member, World};
pub use wire::Wire;

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

    /// Pretends that the ranks are spread over so many nodes, in blocks: those
    /// of different nodes then only send messages to each other. For tests and
    /// studies of exchanges between nodes.
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = Some(nodes);
        self
    }

    /// Pretends that there is a wire between nodes: a message arrives only
    /// after the time that it would take there, during which ranks can compute.
    /// Each rank's link carries one message out and one in at a time. Ranks are
    /// then nodes of their own, unless [`nodes`](Self::nodes) says otherwise.
    /// Results are the same bits.
    pub fn wire(mut self, wire: Wire) -> Self {
        self.wire = Some(wire);
        self
    }

    /// Runs `work` on every rank and returns what they return, in order.
    ///
    /// # Errors
    /// What the first failing rank returned; [`Error::RankPanicked`] where
    /// one panicked. The other ranks' collective calls then return an error,
    /// so nobody waits for ever.
    pub fn run<R: Send>(self, work: impl Fn(Comm) -> Result<R> + Sync) -> Result<Vec<R>> {
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
        let world = World::new((0..self.count).map(|rank| rank * nodes / self.count).collect(), self.wire);
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
                outcomes.push(handle.join().unwrap_or_else(|_| Err(Error::transport("a rank died"))));
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
    let comm = Comm::new(Member::of_world(world, rank), threads);
    let outcome = catch_unwind(AssertUnwindSafe(|| work(comm))).unwrap_or_else(|payload| {
        Err(Error::RankPanicked { rank, message: crate::machine::pool::panic_text(&*payload) })
    });
    if let Err(error) = &outcome {
        world.fail(match error {
            Error::RankPanicked { .. } => error.clone(),
            other => Error::RankLeft { rank, waiting: rank, message: other.to_string() },
        });
    }
    world.leave(rank);
    outcome
}

/// A group of one.
pub(super) fn one_rank() -> Arc<dyn Transport> {
    Member::of_world(&World::new(vec![0], None), 0)
}
