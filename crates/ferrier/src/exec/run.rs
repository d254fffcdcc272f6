//! A call under way: the steps of a variant, one after the other.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

use super::backend::{Backend, Executor, MessageBuffers, PollPolicy, VariantOf};
use super::events::StepTiming;
use super::operator::Operator;
use super::plan::{CallState, Fault, Plan};
use super::variant::{BoundStep, TileRef, Variant};
use crate::machine::pool::panic_text;
use crate::transport::Exposed;
use crate::{Error, Real, Result};
use ferrier_plan::geometry::Geometry;
use ferrier_plan::messages::Mechanism;

impl<T: Real, B: Backend> Plan<T, B> {
    /// A rank that cannot go on makes the calls of the others fail: they would wait for it.
    pub(super) fn or_fail<R>(&self, outcome: Result<R>) -> Result<R> {
        outcome.inspect_err(|error| {
            if self.comm.size() > 1 {
                self.comm.transport().fail(&error.to_string());
            }
        })
    }

    /// Makes a call. `own`: input, output, workspace. Whatever the outcome, a panic included: when it is over no
    /// exchange is in flight, and no other rank accesses the arrays.
    ///
    /// # Safety
    /// The arrays are as long as the variant's geometries say, the workspace as the plan's memory. The input is not
    /// written to by others, output and workspace are not accessed, until the call returns (on a GPU: until what it
    /// enqueued has run).
    pub(super) unsafe fn execute(
        &mut self,
        which: usize,
        own: Exposed,
        operator: Option<&dyn Operator<T>>,
        scale: f64,
    ) -> Result<()> {
        if scale != 1.0 && self.variants[which].last_pass.is_none() {
            return Err(Error::choice(
                "scale",
                "a call that neither transforms nor moves anything has no scale",
            ));
        }
        self.check_bounded(which, operator)?;
        self.state.began = Instant::now();
        let prepared = self.executor.prepare(&mut self.variants[which], which, operator, scale != 1.0);
        match prepared {
            Err(Error::Device { .. }) => return self.or_fail(prepared),
            // The same on every rank.
            prepared => prepared?,
        }
        self.state.last = which;
        self.state.timings.clear();
        self.state.in_flight.clear();
        // SAFETY: this function's contract.
        let run = || unsafe { self.run_exposed(which, own, operator, scale) };
        let outcome = catch_unwind(AssertUnwindSafe(run));
        if !matches!(outcome, Ok(Ok(()))) {
            self.abandon(&outcome);
        }
        // Arrays may be freed by their owners only after this.
        let closed = if self.shared { self.comm.transport().unexpose() } else { Ok(()) };
        match outcome {
            Ok(outcome) => outcome.and(closed)?,
            Err(payload) => resume_unwind(payload),
        }
        if self.shared {
            let waits = self.executor.wait_for_peers();
            self.or_fail(waits)?;
        }
        // SAFETY: this function's contract; the output is complete.
        let certified = unsafe { self.certify(own, operator, scale) };
        self.state.ended = Instant::now();
        certified
    }

    /// After an error or a panic: the other ranks are told, and what is in flight is waited for, because its buffers
    /// are about to go.
    fn abandon(&mut self, outcome: &std::thread::Result<Result<()>>) {
        match outcome {
            Err(payload) => {
                let payload: &(dyn Any + Send) = &**payload;
                self.comm.transport().fail(&format!("panicked: {}", panic_text(payload)));
            }
            // Of other errors the transport has told all ranks already.
            Ok(Err(error @ (Error::Codec { .. } | Error::Device { .. }))) => {
                self.comm.transport().fail(&error.to_string());
            }
            _ => {}
        }
        let exchanges = &self.variants[self.state.last].exchanges;
        for exchange in self.state.in_flight.drain(..) {
            let _ = exchanges[exchange].wait();
        }
        self.executor.abandon();
    }

    /// # Safety
    /// As [`execute`](Self::execute).
    unsafe fn run_exposed(
        &mut self,
        which: usize,
        own: Exposed,
        operator: Option<&dyn Operator<T>>,
        scale: f64,
    ) -> Result<()> {
        let rank = self.comm.rank();
        if self.shared {
            let transport = self.comm.transport().clone();
            self.executor.reset_claims([which, self.unexposed[which]].map(|which| &self.variants[which]));
            // What was enqueued before this call comes before what other ranks do to the arrays.
            self.executor.mark()?;
            let reached = transport.expose(self.to_expose(which, own), &mut self.state.exposed)?;
            self.state.last = if reached { which } else { self.unexposed[which] };
            self.executor.wait_for_peers()?;
        }
        self.state.exposed[rank] = own;
        self.executor.begin(self.state.last, rank, &self.state.exposed)?;
        // SAFETY: `execute`'s contract, on every rank; all have come here.
        unsafe { self.run_steps(operator, scale)? };
        match self.shared {
            // What is enqueued after this call comes after it.
            true => self.executor.mark(),
            false => Ok(()),
        }
    }

    /// Of these addresses those that other ranks may need.
    fn to_expose(&self, which: usize, [input, output, work]: Exposed) -> Exposed {
        let variant = &self.variants[which];
        let ends = matches!(self.mechanism, Mechanism::SharedMemory);
        let address = |geometry: &Geometry, address| if ends && geometry.volume > 0 { address } else { 0 };
        [address(&variant.input, input), address(&variant.output, output), work]
    }

    /// # Safety
    /// As [`execute`](Self::execute), and `exposed` is that of this call.
    unsafe fn run_steps(&mut self, operator: Option<&dyn Operator<T>>, scale: f64) -> Result<()> {
        let Plan { comm, variants, executor, progress, shared, state, .. } = self;
        let CallState { in_flight, timings, polls, fault, last, began, meanwhile, skips_passes, .. } = state;
        let (transport, variant) = (comm.transport(), &variants[*last]);
        let exchanges = &variant.exchanges;
        let _watched = progress.as_ref().map(|progress| progress.during(*last));
        let now = || if <B::Executor<T> as Executor<T>>::SYNCHRONOUS { Instant::now() } else { *began };
        let mut start = now();
        executor.tick(0)?;
        for (number, step) in variant.steps.iter().enumerate() {
            // Errors of exchanges in flight are returned by `wait`.
            let poll = || polls.time(|| in_flight.iter().for_each(|&i| drop(exchanges[i].test())));
            let idle = in_flight.is_empty();
            let times = match *step {
                BoundStep::Run { polls, .. } if !idle && progress.is_none() => polls,
                BoundStep::Encode(_) | BoundStep::Decode(_) if !idle => variant.coding_polls,
                _ => 0,
            };
            let policy = PollPolicy { poll: &poll, times, in_flight: !idle };
            // Other ranks' memory is accessed only inside this; it is not entered when a rank has failed.
            let with_access = |run: &mut dyn FnMut() -> Result<()>| {
                let mut outcome = Ok(());
                match *shared {
                    true => transport.with_access(&mut || outcome = run())?,
                    false => outcome = run(),
                }
                outcome
            };
            match *step {
                BoundStep::Barrier => {
                    executor.mark()?;
                    transport.node_barrier()?;
                    executor.wait_for_peers()?;
                }
                BoundStep::Run { reshapes: [None, None], .. } if *skips_passes => {}
                BoundStep::Run { bound, pass, .. } => {
                    let scale = if variant.last_pass == Some(pass) { scale } else { 1.0 };
                    let fault = fault.take_if(|_| !idle);
                    with_access(&mut || {
                        match fault {
                            Some(Fault::Error) => return Err(injected_fault()),
                            Some(Fault::Panic) => panic!("an injected fault"),
                            None => {}
                        }
                        // SAFETY: `execute`'s contract; the schedule keeps ranks apart by barriers and exchanges.
                        unsafe { executor.run(&variant.passes[bound].work, policy, operator, scale) }
                    })?;
                }
                BoundStep::Encode(tile) => {
                    if let Some(coding) = &variant.codings[tile.exchange] {
                        // SAFETY: the workspace is laid out so that stages and segments are this step's alone.
                        with_access(&mut || unsafe { executor.encode(coding, policy) })?;
                    }
                }
                BoundStep::Decode(tile) => {
                    if let Some(coding) = &variant.codings[tile.exchange] {
                        // SAFETY: as above.
                        with_access(&mut || unsafe { executor.decode(coding, policy) })?;
                    }
                }
                BoundStep::Start { blocking: true, .. } if meanwhile.is_none() => {}
                BoundStep::Start { tile, buffers, .. } => {
                    let buffers = message_buffers::<T, B>(variant, tile, buffers);
                    let coder = variant.coder(tile.exchange);
                    // SAFETY: the buffers lie inside the workspace, apart from each other and from those of tiles in
                    // flight; no step accesses them before the wait for this exchange.
                    unsafe {
                        let [send, recv] = match packets(variant, tile) {
                            Some(coding) => executor.begin_packets(coding, buffers, policy)?,
                            None => executor.begin_messages(buffers, policy)?,
                        };
                        in_flight.push(tile.exchange);
                        variant.exchanges[tile.exchange].start(send, recv, coder.as_ref())?;
                    }
                }
                BoundStep::Wait { tile, buffers, blocking } => {
                    let buffers = message_buffers::<T, B>(variant, tile, buffers);
                    let exchange = &variant.exchanges[tile.exchange];
                    // SAFETY: as for `Start`; what an exchange received is complete after `run` or `wait`.
                    unsafe {
                        match blocking && meanwhile.is_none() {
                            true => {
                                let [send, recv] = match packets(variant, tile) {
                                    Some(coding) => executor.begin_packets(coding, buffers, policy)?,
                                    None => executor.begin_messages(buffers, policy)?,
                                };
                                exchange.run(send, recv, variant.coder(tile.exchange).as_ref())?;
                            }
                            false => {
                                if let Some(work) = meanwhile {
                                    work(&poll);
                                }
                                in_flight.retain(|other| *other != tile.exchange);
                                exchange.wait()?;
                            }
                        }
                        match packets(variant, tile) {
                            Some(_) => executor.end_packets(buffers)?,
                            None => executor.end_messages(buffers)?,
                        }
                    }
                }
            }
            executor.tick(number + 1)?;
            let end = now();
            timings.push(StepTiming { start, end, tests: polls.take() });
            start = end;
        }
        Ok(())
    }
}

/// The error of [`Fault::Error`]: like one of a GPU, only this rank knows of it.
fn injected_fault() -> Error {
    Error::Device { message: "an injected fault".into(), source: None }
}

/// What encodes the packets of a tile, where its exchange sends packets as they are encoded.
fn packets<W, C>(variant: &Variant<W, C>, tile: TileRef) -> Option<&C> {
    let encodes = variant.exchanges[tile.exchange].buffers().encodes;
    variant.codings.get(tile.exchange)?.as_ref().filter(|_| encodes)
}

/// The buffers of a tile, in bytes.
fn message_buffers<T: Real, B: Backend>(
    variant: &VariantOf<T, B::Executor<T>>,
    tile: TileRef,
    scalars: [usize; 2],
) -> MessageBuffers {
    let buffers = variant.exchanges[tile.exchange].buffers();
    MessageBuffers { at: scalars.map(|at| at * size_of::<T>()), len: [buffers.send.len, buffers.recv.len] }
}
