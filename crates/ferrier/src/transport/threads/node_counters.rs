//! Counters of ranks that are threads.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::world::ThreadRank;
use crate::Result;
use crate::transport::interface::Transport;
use crate::transport::transfer::NodeCounters;

pub(super) struct Counters {
    pub rank: ThreadRank,
    /// Those of the first rank of the node.
    pub all: Arc<Vec<Counter>>,
}

/// A cache line from the next, since ranks spin on it.
#[derive(Default)]
pub(super) struct Counter {
    value: AtomicU64,
    _padding: [u64; 7],
}

impl NodeCounters for Counters {
    fn add(&self, counter: usize) {
        self.all[counter].value.fetch_add(1, SeqCst);
        self.rank.notify_all();
    }

    fn take(&self, counter: usize, count: u64) -> u64 {
        self.all[counter].value.fetch_add(count, Relaxed)
    }

    fn value(&self, counter: usize) -> u64 {
        self.all[counter].value.load(Relaxed)
    }

    fn clear(&self, counter: usize) {
        self.all[counter].value.store(0, SeqCst);
    }

    fn reached(&self, counter: usize, count: u64, by: Option<usize>) -> Result<bool> {
        let reached = || self.all[counter].value.load(SeqCst) >= count;
        if reached() {
            return Ok(true);
        }
        let nodes = self.rank.nodes();
        let awaited = |rank: usize| match by {
            Some(by) => rank == by,
            None => nodes[rank] == nodes[self.rank.rank],
        };
        match self.rank.check(awaited) {
            // It may have exited just after it counted.
            Err(error) if !reached() => Err(error),
            Err(_) => Ok(true),
            Ok(()) => Ok(false),
        }
    }
}
