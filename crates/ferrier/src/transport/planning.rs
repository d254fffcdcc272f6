//! One rank of a group whose other ranks do not run: drafts of plans can be made on it, calls return errors.

use std::sync::Arc;

use super::interface::{Exposed, Transport, number_nodes};
use super::transfer::{Lengths, NodeCounters, Segment, Transfer, TransferKind, WakeHint};
use super::window::Window;
use crate::{Error, Result};

/// A rank that stands for its group. What the ranks of a group compare is taken to be the same on all.
#[derive(Clone, Debug)]
pub(crate) struct PlanningRank {
    rank: usize,
    nodes: Arc<[usize]>,
    version: String,
    /// The simulated network, as [`Transport::simulated_wire`]; receivers then load segments from the buffers of
    /// their senders.
    wire: Option<(f64, f64)>,
}

/// What cannot be done without the other ranks.
struct NoRanks;

fn no_ranks<T>() -> Result<T> {
    Err(Error::transport("this group was made for planning: its other ranks do not run"))
}

impl PlanningRank {
    /// Stands for ranks of transport `threads` on these nodes; `version` as [`Transport::version`].
    pub fn new(nodes: Vec<usize>, version: String, wire: Option<(f64, f64)>) -> PlanningRank {
        PlanningRank { rank: 0, nodes: nodes.into(), version, wire }
    }
}

impl Transport for PlanningRank {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn simulated_wire(&self) -> Option<(f64, f64)> {
        self.wire
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.nodes.len()
    }

    fn barrier(&self) -> Result<()> {
        no_ranks()
    }

    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![mine.to_vec(); self.size()])
    }

    fn split(&self, color: usize) -> Result<Arc<dyn Transport>> {
        self.split_by(&vec![color; self.size()])
    }

    fn split_by(&self, colors: &[usize]) -> Result<Arc<dyn Transport>> {
        let same: Vec<usize> = (0..self.size()).filter(|&rank| colors[rank] == colors[self.rank]).collect();
        let names: Vec<u64> = same.iter().map(|&rank| self.nodes[rank] as u64).collect();
        let rank = same.partition_point(|&rank| rank < self.rank);
        Ok(Arc::new(PlanningRank { rank, nodes: number_nodes(&names).into(), ..self.clone() }))
    }

    fn other_rank(&self, rank: usize) -> Option<Arc<dyn Transport>> {
        Some(Arc::new(PlanningRank { rank, ..self.clone() }))
    }

    fn nodes(&self) -> &[usize] {
        &self.nodes
    }

    fn node_barrier(&self) -> Result<()> {
        no_ranks()
    }

    fn transfer(&self, _: TransferKind, _: &[Segment], _: &[Segment]) -> Result<Box<dyn Transfer>> {
        Ok(Box::new(NoRanks))
    }

    fn transfer_in_place(&self, _: &[Segment], _: &[Segment]) -> Result<Option<Box<dyn Transfer>>> {
        Ok(self.wire.map(|_| Box::new(NoRanks) as Box<dyn Transfer>))
    }

    fn node_counters(&self, _: usize) -> Result<Box<dyn NodeCounters>> {
        Ok(Box::new(NoRanks))
    }

    fn park(&self, _: &mut dyn FnMut() -> WakeHint) {}

    fn expose(&self, _: Exposed, _: &mut [Exposed]) -> Result<bool> {
        no_ranks()
    }

    fn with_access(&self, _: &mut dyn FnMut()) -> Result<()> {
        no_ranks()
    }

    fn unexpose(&self) -> Result<()> {
        no_ranks()
    }

    fn window(&self, _: usize, _: usize, _: usize) -> Result<Box<dyn Window>> {
        no_ranks()
    }

    fn fail(&self, _: &str) {}
}

impl Transfer for NoRanks {
    unsafe fn start(&self, _: *const u8, _: *mut u8, _: Option<Lengths<'_>>) -> Result<()> {
        no_ranks()
    }

    fn test(&self) -> Result<bool> {
        no_ranks()
    }

    fn wake_hint(&self) -> WakeHint {
        WakeHint::Now
    }

    fn wait(&self) -> Result<()> {
        no_ranks()
    }
}

impl NodeCounters for NoRanks {
    fn add(&self, _: usize) {}

    fn take(&self, _: usize, _: u64) -> u64 {
        0
    }

    fn value(&self, _: usize) -> u64 {
        0
    }

    fn clear(&self, _: usize) {}

    fn reached(&self, _: usize, _: u64, _: Option<usize>) -> Result<bool> {
        no_ranks()
    }
}
