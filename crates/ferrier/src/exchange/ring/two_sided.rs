//! The ring by messages, step by step: for transports without windows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ferrier_plan::messages::{Volumes, packed};

use super::steps::step;
use crate::Result;
use crate::exchange::coder::Coder;
use crate::exchange::groups::segments;
use crate::exchange::progress_set::{ExchangeSpec, Operation, Protocol};
use crate::transport::{Comm, Segment, Transfer, TransferKind, WakeHint};

/// One transfer for each step.
struct TwoSided {
    steps: Vec<Box<dyn Transfer>>,
    run: Mutex<TwoSidedRun>,
}

struct TwoSidedRun {
    /// The step in flight.
    step: usize,
    send: *const u8,
    recv: *mut u8,
    coder: Option<Arc<dyn Coder>>,
}

// SAFETY: the pointers are used only under the lock and until completion, as the contract of `start` allows.
unsafe impl Send for TwoSidedRun {}

pub(super) fn specify(comm: &Comm, volumes: &Volumes) -> Result<ExchangeSpec> {
    let (nodes, rank) = (comm.nodes(), comm.rank());
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    let (sent, received) = (segments(&send, &volumes.to), segments(&recv, &volumes.from));
    let mut steps = Vec::new();
    for now in 1..=comm.node_count() {
        let to: Vec<Segment> =
            sent.iter().filter(|segment| step(nodes, rank, segment.peer) == now).copied().collect();
        let from: Vec<Segment> =
            received.iter().filter(|segment| step(nodes, segment.peer, rank) == now).copied().collect();
        steps.push(comm.transport().transfer(TransferKind::Messages, &to, &from)?);
    }
    let run = TwoSidedRun { step: 0, send: std::ptr::null(), recv: std::ptr::null_mut(), coder: None };
    let protocol = Box::new(TwoSided { steps, run: Mutex::new(run) });
    let library = comm.transport().version();
    let note = Some(format!("ring: {library} has no windows between these ranks; using two-sided messages"));
    let needs_coder = volumes.vary();
    Ok(ExchangeSpec { note, needs_coder, ..ExchangeSpec::new(send, recv, Operation::Protocol(protocol)) })
}

impl TwoSided {
    fn run(&self) -> MutexGuard<'_, TwoSidedRun> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the next step.
    ///
    /// # Safety
    /// The buffers of the run fulfil the contract of [`Protocol::start`].
    unsafe fn start_step(&self, TwoSidedRun { step, send, recv, coder }: &TwoSidedRun) -> Result<()> {
        let transfer = &self.steps[*step];
        match coder {
            // SAFETY: `Protocol::start`'s contract covers all steps.
            None => unsafe { transfer.start(*send, *recv, None) },
            // SAFETY: as above.
            Some(coder) => unsafe { transfer.start(*send, *recv, Some(&|peer| coder.len(peer))) },
        }
    }
}

impl Protocol for TwoSided {
    unsafe fn start(&self, send: *const u8, recv: *mut u8, coder: Option<&Arc<dyn Coder>>) -> Result<()> {
        let mut run = self.run();
        *run = TwoSidedRun { step: 0, send, recv, coder: coder.cloned() };
        // SAFETY: this function has the same contract.
        unsafe { self.start_step(&run) }
    }

    fn advance(&self) -> Result<bool> {
        let mut run = self.run();
        while self.steps[run.step].test()? {
            if run.step + 1 == self.steps.len() {
                return Ok(true);
            }
            run.step += 1;
            // SAFETY: `start`'s contract: the buffers live until the last step is complete.
            unsafe { self.start_step(&run)? };
        }
        Ok(false)
    }

    fn wake_hint(&self) -> WakeHint {
        let step = self.run().step;
        self.steps[step].wake_hint()
    }

    fn wait_exclusive(&self) -> Result<()> {
        let step = self.run().step;
        self.steps[step].wait()
    }
}
