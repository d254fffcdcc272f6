//! Communicators as users see them.

use std::sync::Arc;

use super::interface::Transport;
use crate::Result;

/// A handle on a group of ranks, and how many threads each may use.
#[derive(Clone)]
pub struct Comm {
    transport: Arc<dyn Transport>,
    threads: usize,
}

impl std::fmt::Debug for Comm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} of {} ({})", self.rank(), self.size(), self.transport_name())
    }
}

impl Comm {
    pub(crate) fn new(transport: Arc<dyn Transport>, threads: usize) -> Comm {
        Comm { transport, threads }
    }

    /// The same group, with `threads` threads inside this rank (at least one).
    pub fn with_threads(mut self, threads: usize) -> Comm {
        self.threads = threads.max(1);
        self
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.transport.rank()
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.transport.size()
    }

    /// Threads inside this rank.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// `threads`: the ranks are threads of this process; `mpi`: processes.
    pub fn transport_name(&self) -> &'static str {
        self.transport.name()
    }

    /// The node of each rank; nodes are numbered in order of their first ranks.
    pub fn nodes(&self) -> &[usize] {
        self.transport.nodes()
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes().iter().max().map_or(1, |last| last + 1)
    }

    /// Does the transport offer one-sided communication? Where it does not (Open
    /// MPI 4.1 between hosts over TCP in its default configuration), exchange
    /// `ring` uses two-sided messages. Collective.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    pub fn has_windows(&self) -> Result<bool> {
        self.transport.has_windows()
    }

    /// Returns when every rank has called it. Collective.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    pub fn barrier(&self) -> Result<()> {
        self.transport.barrier()
    }

    /// Every rank's bytes, in order of rank. Collective; allocates.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    pub fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.transport.all_gather(mine)
    }

    /// Sums over ranks, entry by entry, in order of rank. Collective; allocates.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    pub fn sum(&self, mine: &[f64]) -> Result<Vec<f64>> {
        self.reduce(mine, |a, b| a + b)
    }

    /// Maxima over ranks, entry by entry. Collective; allocates.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    pub fn max(&self, mine: &[f64]) -> Result<Vec<f64>> {
        self.reduce(mine, f64::max)
    }

    fn reduce(&self, mine: &[f64], combine: fn(f64, f64) -> f64) -> Result<Vec<f64>> {
        let bytes: Vec<u8> = mine.iter().flat_map(|value| value.to_le_bytes()).collect();
        let lists: Vec<Vec<f64>> = self
            .all_gather(&bytes)?
            .iter()
            .map(|list| list.as_chunks::<8>().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect())
            .collect();
        Ok((0..mine.len()).map(|i| lists.iter().map(|list| list[i]).reduce(combine).unwrap_or(0.0)).collect())
    }

    /// Reports that this rank cannot continue: collective calls of the other
    /// ranks return an error. Under MPI, where a blocked call of another process
    /// cannot be ended, the job is aborted with this message and exit code 2. Not
    /// collective.
    ///
    /// Call it after an error that only this rank has, such as one of a file that
    /// only it reads. Under MPI the other ranks would wait for a rank that only
    /// returns.
    pub fn fail(&self, message: &str) {
        self.transport.fail(message);
    }

    pub(crate) fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// The same ranks as a separate group, so that a plan's messages never
    /// match the user's. Collective.
    pub(crate) fn duplicate(&self) -> Result<Comm> {
        Ok(Comm::new(self.transport.duplicate()?, self.threads))
    }
}
