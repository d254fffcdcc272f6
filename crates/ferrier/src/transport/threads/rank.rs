//! [`Transport`] of ranks that are threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

use super::node_counters::{Counter, Counters};
use super::transfer::{RankSegments, ThreadTransfer};
use super::window::{ThreadWindow, WindowMemory};
use super::world::{Group, ThreadRank, lock};
use crate::machine::pool::panic_text;
use crate::transport::interface::{Exposed, Transport, number_nodes};
use crate::transport::transfer::{NodeCounters, Segment, Transfer, TransferKind, WakeHint};
use crate::transport::window::Window;
use crate::{Error, Result};

impl ThreadRank {
    fn prepare(&self, sent: &[Segment], received: &[Segment], copies: bool) -> Result<Box<dyn Transfer>> {
        let segments = self.gather_objects(Arc::new(RankSegments::new(self, sent, received)))?;
        let transfer = ThreadTransfer::new(self.handle(), segments, copies);
        Ok(Box::new(transfer.inspect_err(|error| self.fail_with(error))?))
    }
}

impl Transport for ThreadRank {
    fn name(&self) -> &'static str {
        "threads"
    }

    /// Names the simulated network: wisdom learned over it does not apply without it.
    fn version(&self) -> String {
        self.links().map_or("threads".into(), |links| format!("threads over {}", links.wire()))
    }

    fn simulated_wire(&self) -> Option<(f64, f64)> {
        Some(self.links()?.wire().rate_and_latency())
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.group.world_ranks.len()
    }

    fn barrier(&self) -> Result<()> {
        self.wait_at(&self.group.barrier, |_| true)
    }

    fn nodes(&self) -> &[usize] {
        &self.group.nodes
    }

    fn node_barrier(&self) -> Result<()> {
        let node = self.group.nodes[self.rank];
        self.wait_at(&self.group.node_barriers[node], |rank| self.group.nodes[rank] == node)
    }

    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        lock(&self.group.gathered)[self.rank] = mine.to_vec();
        self.barrier()?;
        let all = lock(&self.group.gathered).clone();
        self.barrier()?;
        Ok(all)
    }

    fn split(&self, color: usize) -> Result<Arc<dyn Transport>> {
        let colors = self.all_gather(&color.to_le_bytes())?;
        let same: Vec<usize> = (0..self.size()).filter(|&rank| colors[rank] == color.to_le_bytes()).collect();
        let rank = same.iter().position(|&rank| rank == self.rank).expect("a rank is in its own group");
        let key = (self.splits.fetch_add(1, SeqCst), color);
        let world_ranks = same.iter().map(|&rank| self.group.world_ranks[rank]).collect();
        let nodes: Vec<u64> = same.iter().map(|&rank| self.group.nodes[rank] as u64).collect();
        let make = || Group::new(world_ranks, number_nodes(&nodes));
        let group = lock(&self.group.splits).entry(key).or_insert_with(make).clone();
        self.barrier()?;
        lock(&self.group.splits).remove(&key);
        Ok(Arc::new(ThreadRank::new(&self.world, group, rank)))
    }

    fn transfer(&self, _: TransferKind, sent: &[Segment], received: &[Segment]) -> Result<Box<dyn Transfer>> {
        self.prepare(sent, received, true)
    }

    /// Over a simulated network, which moves bytes without the ranks' time.
    fn transfer_in_place(&self, sent: &[Segment], received: &[Segment]) -> Result<Option<Box<dyn Transfer>>> {
        if self.links().is_none() {
            return Ok(None);
        }
        self.prepare(sent, received, false).map(Some)
    }

    fn node_counters(&self, counters: usize) -> Result<Box<dyn NodeCounters>> {
        let own: Vec<Counter> = (0..counters).map(|_| Counter::default()).collect();
        let all = self.gather_objects(Arc::new(own))?;
        let (nodes, node) = (self.nodes(), self.nodes()[self.rank]);
        let first = (0..self.size()).find(|&rank| nodes[rank] == node).unwrap_or(self.rank);
        Ok(Box::new(Counters { rank: self.handle(), all: all[first].clone() }))
    }

    fn wake(&self) {
        self.notify_all();
    }

    fn park(&self, wake_hint: &mut dyn FnMut() -> WakeHint) {
        self.world.condition.wait_for(|| match wake_hint() {
            WakeHint::Now => Ok(()),
            WakeHint::At(time) if time <= Instant::now() => Ok(()),
            WakeHint::At(time) => Err(Some(time)),
            WakeHint::Nothing => Err(None),
        });
    }

    fn expose(&self, own: Exposed, all: &mut [Exposed]) -> Result<bool> {
        for (slot, value) in self.group.exposed[self.rank].iter().zip(own) {
            slot.store(value, SeqCst);
        }
        self.barrier()?;
        let nodes = &self.group.nodes;
        for ((exposed, slots), node) in all.iter_mut().zip(&self.group.exposed).zip(nodes) {
            // Simulated nodes share no memory, except for transfers in place.
            let reachable = *node == nodes[self.rank] || self.links().is_some();
            *exposed = slots.each_ref().map(|slot| if reachable { slot.load(SeqCst) } else { 0 });
        }
        Ok(true)
    }

    fn with_access(&self, work: &mut dyn FnMut()) -> Result<()> {
        let accessing = &self.group.accessing;
        accessing.fetch_add(1, SeqCst);
        if self.world.failed.load(SeqCst) {
            accessing.fetch_sub(1, SeqCst);
            return Err(self.failure());
        }
        let outcome = catch_unwind(AssertUnwindSafe(work));
        if let Err(payload) = &outcome {
            let rank = self.group.world_ranks[self.rank];
            self.world.fail(Error::RankPanicked { rank, message: panic_text(&**payload) });
        }
        accessing.fetch_sub(1, SeqCst);
        if let Err(payload) = outcome {
            // This rank's exposed memory must outlive the accesses of the others.
            self.wait_for_accesses();
            resume_unwind(payload);
        }
        Ok(())
    }

    fn unexpose(&self) -> Result<()> {
        let outcome = self.barrier();
        if outcome.is_err() {
            self.wait_for_accesses();
        }
        outcome
    }

    fn window(&self, bytes: usize, words: usize, slots: usize) -> Result<Box<dyn Window>> {
        let all = self.gather_objects(WindowMemory::new(bytes, words)?)?;
        Ok(Box::new(ThreadWindow::new(self.handle(), all, slots)))
    }

    fn fail(&self, message: &str) {
        let rank = self.group.world_ranks[self.rank];
        self.world.fail(Error::RankLeft { rank, waiting: rank, message: message.into() });
    }
}
