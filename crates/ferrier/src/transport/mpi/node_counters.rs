//! Counters in memory that the ranks of a node share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::node_shared::{NodeShared, RegionRef};
use crate::Result;
use crate::transport::transfer::NodeCounters;

/// In the part of the node's first rank, each on a cache line of its own.
pub(super) struct Counters {
    region: RegionRef,
    count: usize,
}

const LINE: usize = 64;

impl Counters {
    /// Collective over `comm`.
    pub fn new(node_shared: &Arc<NodeShared>, comm: &ferrier_mpi::Comm, count: usize) -> Result<Counters> {
        let region = node_shared.region(comm, count * LINE, "the counters of a plan")?;
        Ok(Counters { region, count })
    }

    fn counter(&self, counter: usize) -> &AtomicU64 {
        assert!(counter < self.count, "counter {counter} of {}", self.count);
        // SAFETY: inside the part, aligned, zero at first, and only used as an atomic.
        unsafe { AtomicU64::from_ptr(self.region.part(0).add(counter * LINE).cast().as_ptr()) }
    }
}

impl NodeCounters for Counters {
    fn add(&self, counter: usize) {
        self.counter(counter).fetch_add(1, SeqCst);
    }

    fn take(&self, counter: usize, count: u64) -> u64 {
        self.counter(counter).fetch_add(count, Relaxed)
    }

    fn value(&self, counter: usize) -> u64 {
        self.counter(counter).load(Relaxed)
    }

    fn clear(&self, counter: usize) {
        self.counter(counter).store(0, SeqCst);
    }

    /// Without errors: a rank that fails ends the job.
    fn reached(&self, counter: usize, count: u64, _by: Option<usize>) -> Result<bool> {
        Ok(self.counter(counter).load(SeqCst) >= count)
    }
}
