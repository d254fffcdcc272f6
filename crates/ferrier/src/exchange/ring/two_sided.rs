//! The ring by messages, step by step: for transports without windows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ferrier_plan::messages::{Volumes, packed};

use super::steps::Steps;
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
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    let (sent, received) = (segments(&send, &volumes.to), segments(&recv, &volumes.from));
    let mut steps = Vec::new();
    let order = Steps::new(volumes, comm.nodes(), comm.rank());
    let [targets, sources] = [true, false].map(|sending| order.peers(sending));
    for now in 0..order.count() {
        let of_step = |peers: &[(usize, usize)], segments: &[Segment]| -> Vec<Segment> {
            let peers = peers.iter().filter(|(_, step)| *step == now);
            peers.filter_map(|(peer, _)| segments.iter().find(|own| own.peer == *peer)).copied().collect()
        };
        let (to, from) = (of_step(&targets, &sent), of_step(&sources, &received));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::progress_set;
    use ferrier_plan::messages::SegmentTable;

    #[test]
    fn bytes_arrive_and_the_substitution_is_noted() {
        let _watchdog = ferrier_test::watchdog(60);
        let length = |from: usize, to: usize| if from == to { 0 } else { 10 * from + to };
        let outcome = crate::ranks(4).nodes(2).run(|comm| {
            let rank = comm.rank();
            let volumes = Volumes::new(SegmentTable::of(4, length), rank);
            let specs = vec![specify(&comm, &volumes)?];
            let exchange = &progress_set::exchanges(comm.transport(), specs)[0];
            let note = "ring: threads has no windows between these ranks; using two-sided messages";
            assert_eq!(exchange.note(), Some(note));
            let buffers = exchange.buffers();
            let (mut send, mut recv) = (vec![0_u8; buffers.send.len], vec![0_u8; buffers.recv.len]);
            for to in 0..4 {
                send[buffers.send.offsets[to]..][..length(rank, to)].fill((4 * rank + to) as u8);
            }
            // SAFETY: the buffers are as long as the exchange says, and live until `run` returns.
            unsafe { exchange.run(send.as_ptr(), recv.as_mut_ptr(), None)? };
            for from in 0..4 {
                let segment = &recv[buffers.recv.offsets[from]..][..length(from, rank)];
                assert!(segment.iter().all(|&byte| usize::from(byte) == 4 * from + rank));
            }
            comm.barrier()
        });
        outcome.unwrap();
    }
}
