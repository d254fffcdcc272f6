//! A transform under way: the steps of a variant, one after the other.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

use super::Plan;
use super::cpu::bind::{Step, Variant};
use super::cpu::pass::{PollPolicy, WorkerState};
use super::events::StepTiming;
use super::operator::Operator;
use crate::machine::SendPtr;
use crate::transport::EXPOSED;
use crate::{Error, Real, Result};

impl<T: Real> Plan<T> {
    /// # Safety
    /// As [`execute`](Self::execute), and `lent` is that of this call.
    pub(super) unsafe fn run_passes(
        &mut self,
        which: usize,
        work: *mut T,
        operator: Option<&dyn Operator<T>>,
    ) -> Result<()> {
        let variant = &self.variants[which];
        for (lent, bases) in self.lent.iter().zip(self.bases.chunks_exact_mut(EXPOSED)) {
            bases.iter_mut().zip(lent).for_each(|(base, address)| *base = *address as *mut T);
        }
        let first = (self.memory.workspace() - self.memory.scratch) / size_of::<T>();
        for (thread, hand) in self.hands.iter_mut().enumerate() {
            // SAFETY: the workspace was sized for a scratch for each thread.
            let scratch = unsafe { work.add(first + thread * self.scratch) };
            hand.set(&self.bases, scratch, self.scratch);
        }
        if let Some(grounds) = &self.grounds {
            self.lent.iter().enumerate().for_each(|(rank, lent)| grounds.set(rank, lent[2] as *mut T));
            // SAFETY: the workspace has one scratch more than there are threads.
            grounds.set_scratch(unsafe { work.add(first + self.hands.len() * self.scratch) });
        }
        let hands = SendPtr(self.hands.as_mut_ptr());
        self.flying.clear();
        let _watched = self.lookout.as_ref().map(|lookout| lookout.during(which));
        for step in &variant.steps {
            let start = Instant::now();
            // SAFETY: the caller's word.
            let run = || unsafe { self.run_step(variant, step, work, hands, operator) };
            let outcome = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
                self.comm
                    .transport()
                    .fail(&format!("panicked: {}", crate::machine::pool::panic_text(&*payload)));
                // Others may be reading what this rank sends, and it is about to go.
                for &mover in &self.flying {
                    let _ = variant.movers[mover].wait();
                }
                resume_unwind(payload)
            });
            match step {
                Step::Start { mover, run: true, .. } => self.flying.push(*mover),
                Step::Wait { mover, .. } => self.flying.retain(|flying| flying != mover),
                _ => {}
            }
            if let Err(error) = outcome {
                if matches!(error, Error::Codec { .. }) {
                    // Only this rank knows.
                    self.comm.transport().fail(&error.to_string());
                }
                // What still flies must land before anybody frees its memory.
                for &mover in &self.flying {
                    let _ = variant.movers[mover].wait();
                }
                return Err(error);
            }
            self.spells.push(StepTiming { start, end: Instant::now(), tests: self.tests.take() });
        }
        Ok(())
    }

    /// # Safety
    /// As [`run_passes`](Self::run_passes); `hands` are those of the plan.
    unsafe fn run_step(
        &self,
        variant: &Variant<T>,
        step: &Step,
        work: *mut T,
        hands: SendPtr<WorkerState<T>>,
        operator: Option<&dyn Operator<T>>,
    ) -> Result<()> {
        let transport = self.comm.transport();
        match *step {
            Step::Barrier => transport.node_barrier(),
            Step::Run { bound, polls, .. } => {
                // What goes wrong in the air comes out in the wait for it.
                let (flying, movers) = (&self.flying[..], &variant.movers);
                let test = || flying.iter().for_each(|&mover| drop(movers[mover].test()));
                let tests = &self.tests;
                let look = || tests.time(test);
                let times = if flying.is_empty() || self.lookout.is_some() { 0 } else { polls };
                let care = PollPolicy { look: &look, times };
                // SAFETY: the caller's word; the schedule keeps ranks apart by barriers and exchanges.
                let mut run = || unsafe { variant.passes[bound].run(&self.pool, hands, &care, operator) };
                match self.shared {
                    true => transport.with_access(&mut run),
                    false => {
                        run();
                        Ok(())
                    }
                }
            }
            Step::Encode { mover, .. } | Step::Decode { mover, .. } => {
                let Some(coding) = &variant.codings[mover] else { return Ok(()) };
                // SAFETY: a scratch for each thread; nothing else runs.
                let scratch = |thread: usize| unsafe { (*hands.get().add(thread)).scratch() };
                let mut outcome = Ok(());
                // SAFETY: areas are laid out so that stages and bytes are this step's alone.
                let mut run = || unsafe {
                    match step {
                        Step::Encode { .. } => coding.encode_all(&self.pool, &scratch),
                        _ => outcome = coding.decode_all(&self.pool, &scratch),
                    }
                };
                match self.shared {
                    true => transport.with_access(&mut run)?,
                    false => run(),
                }
                outcome
            }
            Step::Start { run: false, .. } => Ok(()),
            Step::Start { mover, send, recv, .. } => {
                let coder = variant.coder(mover);
                // SAFETY: the areas lie inside the workspace, apart from each other and from those
                // of tiles that fly; nobody touches them before the wait for this mover.
                unsafe {
                    variant.movers[mover].start(work.add(send).cast(), work.add(recv).cast(), coder.as_ref())
                }
            }
            Step::Wait { mover, run: Some([send, recv]), .. } => {
                let coder = variant.coder(mover);
                // SAFETY: as above.
                unsafe {
                    variant.movers[mover].run(work.add(send).cast(), work.add(recv).cast(), coder.as_ref())
                }
            }
            Step::Wait { mover, .. } => variant.movers[mover].wait(),
        }
    }
}
