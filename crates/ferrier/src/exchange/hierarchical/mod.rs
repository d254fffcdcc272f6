//! Exchange `hierarchical`: one message for each pair of nodes.
//!
//! A rank stores its segment for a rank of another node into the send buffer of
//! the neighbour that carries all messages from this node to that one, and
//! loads segments from there from the receive buffer of the neighbour that
//! receives them: gathering and scattering are the stores and loads of the
//! passes, in memory that the node shares. Segments inside a node are loaded
//! from the sender's memory.

mod compact;
mod routes;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ferrier_plan::messages::Volumes;

use super::coder::Coder;
use super::progress_set::{self, Exchange, ExchangeSpec, Operation, Protocol};
use crate::Result;
use crate::transport::{Comm, NodeCounters, Transfer, TransferKind, WakeHint};
use compact::{compact, expand};
use routes::{Message, RankRoutes};

/// One rank's end. Two counters of the node tell when all ranks have stored their segments, and when all messages are
/// complete.
struct Hierarchical {
    counters: Arc<dyn NodeCounters>,
    /// Counts ranks that have stored; the next counter those whose messages are complete.
    stored: usize,
    /// Ranks of the node.
    node_size: u64,
    /// `None` where this rank carries no messages.
    transfer: Option<Box<dyn Transfer>>,
    /// Messages whose segments have variable length.
    variable: Option<VariableMessages>,
    run: Mutex<HierarchicalRun>,
}

/// This rank's messages with segments of variable length: they are sent without gaps, and lie at the offsets of their
/// greatest lengths before and after.
struct VariableMessages {
    outgoing: Vec<Message>,
    incoming: Vec<Message>,
}

struct HierarchicalRun {
    number: u64,
    stage: Stage,
    send: *const u8,
    recv: *mut u8,
    /// Lengths of messages, by receiving rank.
    lens: Vec<usize>,
    /// Scratch: where the segments of a message begin without gaps.
    starts: Vec<usize>,
}

// SAFETY: the pointers are used only under the lock and until completion, as the contract of `start` allows.
unsafe impl Send for HierarchicalRun {}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Until all ranks of the node have stored.
    Storing,
    /// Until this rank's messages are complete.
    Sending,
    /// Until the messages of all ranks of the node are.
    Completing,
    Done,
}

pub(super) fn exchanges(comm: &Comm, all: &[Volumes]) -> Result<Vec<Exchange>> {
    let messages = comm.duplicate()?;
    let counters: Arc<dyn NodeCounters> = comm.transport().node_counters(2 * all.len())?.into();
    let (nodes, rank) = (comm.nodes(), comm.rank());
    let node_size = nodes.iter().filter(|&&node| node == nodes[rank]).count() as u64;
    let specify = |(number, volumes): (usize, &Volumes)| -> Result<ExchangeSpec> {
        let own = RankRoutes::new(nodes, &volumes.table, rank);
        let transfer = messages.transport().transfer(TransferKind::Messages, &own.sent, &own.received)?;
        let carries = !(own.sent.is_empty() && own.received.is_empty());
        let most = own.incoming.iter().map(|message| message.segments.len()).max().unwrap_or(0);
        let run = HierarchicalRun {
            number: 0,
            stage: Stage::Done,
            send: std::ptr::null(),
            recv: std::ptr::null_mut(),
            lens: vec![0; comm.size()],
            starts: vec![0; most + 1],
        };
        let variable = VariableMessages { outgoing: own.outgoing, incoming: own.incoming };
        let protocol = Hierarchical {
            counters: counters.clone(),
            stored: 2 * number,
            node_size,
            transfer: carries.then_some(transfer),
            variable: volumes.vary().then_some(variable),
            run: Mutex::new(run),
        };
        let mut spec = ExchangeSpec::new(own.send, own.recv, Operation::Protocol(Box::new(protocol)));
        spec.buffers.sharing = Some(own.sharing);
        Ok(spec)
    };
    let specs = all.iter().enumerate().map(specify).collect::<Result<Vec<_>>>()?;
    Ok(progress_set::exchanges(messages.transport(), specs))
}

impl Hierarchical {
    fn run(&self) -> MutexGuard<'_, HierarchicalRun> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn completed(&self) -> usize {
        self.stored + 1
    }

    /// Makes one step, if possible; returns the new stage.
    fn step(&self, run: &mut HierarchicalRun) -> Result<Stage> {
        let all = run.number * self.node_size;
        match (run.stage, &self.transfer) {
            (Stage::Storing, _) if !self.counters.reached(self.stored, all, None)? => Ok(Stage::Storing),
            (Stage::Storing, None) => Ok(Stage::Sending),
            (Stage::Storing, Some(transfer)) => {
                let (send, recv) = (run.send, run.recv);
                for message in self.variable.iter().flat_map(|variable| &variable.outgoing) {
                    // SAFETY: a range of this rank's send buffer. All ranks of the node have stored, and nothing
                    // reads it before the transfer starts.
                    let bytes = unsafe {
                        std::slice::from_raw_parts_mut(send.add(message.at).cast_mut(), message.len)
                    };
                    run.lens[message.peer] = compact(bytes, &message.segments);
                }
                let lens = &run.lens;
                let length = |peer: usize| lens[peer];
                let lengths: Option<&dyn Fn(usize) -> usize> = match &self.variable {
                    Some(_) => Some(&length),
                    None => None,
                };
                // SAFETY: `Protocol::start`'s contract: the buffers live until completion.
                unsafe { transfer.start(send, recv, lengths)? };
                Ok(Stage::Sending)
            }
            (Stage::Sending, Some(transfer)) if !transfer.test()? => Ok(Stage::Sending),
            (Stage::Sending, _) => {
                for message in self.variable.iter().flat_map(|variable| &variable.incoming) {
                    // SAFETY: a range of this rank's receive buffer; no rank reads it before the counter below.
                    let bytes =
                        unsafe { std::slice::from_raw_parts_mut(run.recv.add(message.at), message.len) };
                    expand(bytes, &message.segments, &mut run.starts);
                }
                self.counters.add(self.completed());
                Ok(Stage::Completing)
            }
            (Stage::Completing, _) if !self.counters.reached(self.completed(), all, None)? => {
                Ok(Stage::Completing)
            }
            (Stage::Completing | Stage::Done, _) => Ok(Stage::Done),
        }
    }
}

impl Protocol for Hierarchical {
    /// This rank has stored its segments, and has loaded those of the last run.
    unsafe fn start(&self, send: *const u8, recv: *mut u8, _: Option<&Arc<dyn Coder>>) -> Result<()> {
        let mut run = self.run();
        run.number += 1;
        (run.stage, run.send, run.recv) = (Stage::Storing, send, recv);
        self.counters.add(self.stored);
        Ok(())
    }

    fn advance(&self) -> Result<bool> {
        let mut run = self.run();
        loop {
            let before = run.stage;
            let stage = self.step(&mut run);
            match stage {
                Ok(stage) => run.stage = stage,
                Err(error) => {
                    run.stage = Stage::Done;
                    // Ends the transfer, too: the group has failed.
                    return Err(self
                        .transfer
                        .as_ref()
                        .and_then(|transfer| transfer.wait().err())
                        .unwrap_or(error));
                }
            }
            if run.stage == before || run.stage == Stage::Done {
                return Ok(run.stage == Stage::Done);
            }
        }
    }

    fn wake_hint(&self) -> WakeHint {
        let run = self.run();
        let all = run.number * self.node_size;
        let counted = |counter| {
            if matches!(self.counters.reached(counter, all, None), Ok(false)) {
                WakeHint::Nothing
            } else {
                WakeHint::Now
            }
        };
        match (run.stage, &self.transfer) {
            (Stage::Storing, _) => counted(self.stored),
            (Stage::Sending, Some(transfer)) => transfer.wake_hint(),
            (Stage::Completing, _) => counted(self.completed()),
            (Stage::Sending | Stage::Done, _) => WakeHint::Now,
        }
    }

    fn wait_exclusive(&self) -> Result<()> {
        match &self.transfer {
            Some(transfer) if self.run().stage == Stage::Sending => transfer.wait(),
            _ => Ok(()),
        }
    }
}
