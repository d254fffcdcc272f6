//! Counters of ranks that are threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::super::{NodeCounters, Transport};
use super::group::Member;
use crate::Result;

pub(super) struct Counters {
    pub member: Member,
    /// Those of the first rank of the node.
    pub all: Arc<Vec<AtomicU64>>,
}

impl NodeCounters for Counters {
    fn add(&self, counter: usize) {
        self.all[counter].fetch_add(1, SeqCst);
        self.member.ring();
    }

    fn reached(&self, counter: usize, count: u64) -> Result<bool> {
        let reached = || self.all[counter].load(SeqCst) >= count;
        if reached() {
            return Ok(true);
        }
        let nodes = self.member.nodes();
        let near = |rank: usize| nodes[rank] == nodes[self.member.rank()];
        match self.member.check(near) {
            // It may have left just after it counted.
            Err(error) if !reached() => Err(error),
            Err(_) => Ok(true),
            Ok(()) => Ok(false),
        }
    }
}
