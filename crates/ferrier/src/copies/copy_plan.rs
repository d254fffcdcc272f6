//! A pattern of copies bound to ranks and memory.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use super::bind::{Binder, Binding};
use super::bound_route::Peer;
use super::copier::{Copier, Incoming, Mark, wait_for_readers};
use super::node_link::{NodeLink, Published};
use super::pattern::Pattern;
use super::sweep::Planes;
use crate::exchange::{self, Exchange, ExchangeEntry};
use crate::machine::pool::panic_text;
use crate::transport::Transport;
use crate::{Comm, Error, Fault, Result};

/// How a plan of copies is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    /// Arrays that are copied together.
    pub fields: usize,
    /// The user's exchange. By default ranks of a node load from each other, others get a message each.
    pub exchange: Option<&'a str>,
    /// Whether sources and targets may be the same memory.
    pub in_place: bool,
    /// Where copies have targets in common, which they are then applied to in order of rank: the planes of the target.
    pub planes: Option<Planes>,
}

/// Copies that are ready to run. Made collectively, run collectively; runs allocate nothing.
pub(crate) struct CopyPlan<C: Copier> {
    binding: Binding<C>,
    comm: Comm,
    pub copier: C,
    fields: usize,
    notes: Vec<String>,
    state: RunState,
}

/// The current run.
struct RunState {
    sources: Vec<usize>,
    targets: Vec<usize>,
    /// Bytes of a source.
    source_bytes: usize,
    /// Where the fields of each incoming route lie, and whether they are segments.
    from: Vec<usize>,
    packed: Vec<bool>,
    in_flight: bool,
    published: Published,
    fault: Option<Fault>,
}

/// The exchange between nodes where the user named none.
const BETWEEN_NODES: &str = "point_to_point";

impl<C: Copier> CopyPlan<C> {
    /// Collective. `copier` makes what copies; it is called again where ranks of a node cannot share memory.
    pub fn new(
        comm: &Comm,
        pattern: &Arc<dyn Pattern>,
        settings: Settings<'_>,
        copier: impl Fn() -> Result<C>,
    ) -> Result<CopyPlan<C>> {
        let entry = exchange::find(settings.exchange.unwrap_or(BETWEEN_NODES))?;
        if comm.size() > 1 {
            entry.check_nodes(comm.node_count())?;
        }
        let first = copier()?;
        let can_share = first.can_share(comm, settings.exchange.map(|_| entry))?;
        let crowded = comm.node_count() < comm.size();
        let shares = can_share && crowded && (settings.exchange.is_none() || entry.mechanism.shares());
        match CopyPlan::on(comm, pattern, settings, first, entry, shares) {
            // An error of memory to share occurs on every rank.
            Err(error @ (Error::Memory { .. } | Error::Transport { .. }))
                if shares && settings.exchange.is_none() && !comm.transport().exposes_all_memory() =>
            {
                let mut plan = CopyPlan::on(comm, pattern, settings, copier()?, entry, false)?;
                plan.notes.push(format!("messages inside a node, too: {error}"));
                Ok(plan)
            }
            outcome => outcome,
        }
    }

    fn on(
        comm: &Comm,
        pattern: &Arc<dyn Pattern>,
        settings: Settings<'_>,
        mut copier: C,
        entry: &ExchangeEntry,
        shares: bool,
    ) -> Result<CopyPlan<C>> {
        let comm = comm.duplicate()?;
        if shares {
            comm.transport().enable_sharing()?;
        }
        let Settings { fields, in_place, planes, .. } = settings;
        let element_bytes = copier.element_bytes();
        // Named exchanges may be collectives; sums wait for all anyway.
        let most_groups = if settings.exchange.is_some() || planes.is_some() { 1 } else { C::GROUPS };
        let binder =
            Binder { comm: &comm, pattern, fields, element_bytes, shares, in_place, planes, most_groups };
        let binding = binder.bind(entry, &mut copier)?;
        let state = RunState {
            sources: vec![0; fields],
            targets: vec![0; fields],
            source_bytes: 0,
            from: vec![0; binding.incoming.len() * fields],
            packed: vec![false; binding.incoming.len()],
            in_flight: false,
            published: Published::Segments,
            fault: None,
        };
        let mut notes = exchange::notes(&binding.exchanges);
        notes.extend(copier.notes());
        Ok(CopyPlan { binding, comm, copier, fields, notes, state })
    }

    /// Sets the arrays of a run. `source_bytes`: of each source.
    pub fn set_arrays(
        &mut self,
        sources: impl Iterator<Item = usize>,
        targets: impl Iterator<Item = usize>,
        source_bytes: usize,
    ) {
        self.state.sources.iter_mut().zip(sources).for_each(|(slot, address)| *slot = address);
        self.state.targets.iter_mut().zip(targets).for_each(|(slot, address)| *slot = address);
        self.state.source_bytes = source_bytes;
    }

    /// Sets an array that is source and target.
    pub fn set_array(&mut self, field: usize, address: usize) {
        (self.state.sources[field], self.state.targets[field]) = (address, address);
    }

    pub fn set_source_bytes(&mut self, bytes: usize) {
        self.state.source_bytes = bytes;
    }

    /// Copies from the sources to the targets. The sources themselves are loaded by other ranks where they can be.
    ///
    /// # Safety
    /// The arrays that were set are as large as the pattern says. Sources and targets do not overlap, but as copies
    /// neither have sources nor targets there. Only this plan accesses the targets until this returns.
    pub unsafe fn run(&mut self) -> Result<()> {
        // SAFETY: this function's contract.
        unsafe {
            self.begin(Published::Arrays)?;
            self.complete()
        }
    }

    /// Begins a run without a wait for other ranks: copies what leaves this rank to segments.
    ///
    /// # Safety
    /// The sources that were set are as large as the pattern says, and not written to until this returns.
    pub unsafe fn start(&mut self) -> Result<()> {
        // SAFETY: this function's contract.
        unsafe { self.begin(Published::Segments)? };
        self.copier.park();
        Ok(())
    }

    /// Completes a run. What stays on this rank is copied from the sources, or from the staging of a plan for runs in
    /// place.
    ///
    /// # Safety
    /// As [`run`](Self::run), for the arrays that are set now.
    pub unsafe fn finish(&mut self) -> Result<()> {
        // SAFETY: this function's contract.
        unsafe { self.complete() }
    }

    /// # Safety
    /// As [`start`](Self::start); if arrays are published, until [`complete`](Self::complete) returns.
    unsafe fn begin(&mut self, published: Published) -> Result<()> {
        // A run that was started and never finished.
        self.cancel()?;
        self.guarded(|plan| {
            let CopyPlan { binding, copier, comm, state, .. } = plan;
            let RunState { sources, source_bytes, .. } = &*state;
            let transport = binding.node.as_ref().map(|_| comm.transport());
            let Binding { exchanges, pack_messages, spans, buffers, outgoing, .. } = &*binding;
            // Errors are returned by the wait for it.
            let poll = &mut || exchanges.iter().for_each(|exchange| drop(exchange.test()));
            for ((exchange, sweep), &span) in exchanges.iter().zip(pack_messages).zip(spans) {
                // SAFETY: this function's contract; segments are this rank's until it publishes or sends them, and other
                // ranks have loaded those of the last run.
                accessing(transport, || unsafe { copier.pack(sweep, sources, outgoing) })?;
                // SAFETY: the plan's buffers; they are not accessed before the wait, and outlive the exchange.
                unsafe {
                    let [send, recv] = copier.begin_messages(buffers, span, poll)?;
                    exchange.start(send, recv, None)?;
                }
                poll();
            }
            let published = match &binding.node {
                Some(node) if published == Published::Arrays && node.reaches(sources, *source_bytes) => {
                    published
                }
                None => published,
                _ => Published::Segments,
            };
            if let Some(node) = &binding.node {
                wait_for_readers(copier, node)?;
            }
            if published == Published::Segments {
                let sweep = &binding.pack_segments;
                // SAFETY: as above.
                accessing(transport, || unsafe { copier.pack(sweep, sources, outgoing) })?;
            }
            state.published = published;
            if let Some(node) = &mut binding.node {
                copier.mark(Mark::Posted)?;
                let arrays = (published == Published::Arrays).then_some(&state.sources[..]);
                // SAFETY: all readers have loaded, see above.
                unsafe { node.publish(arrays, state.source_bytes) };
            }
            state.in_flight = true;
            Ok(())
        })
    }

    /// # Safety
    /// As [`finish`](Self::finish).
    unsafe fn complete(&mut self) -> Result<()> {
        self.guarded(|plan| {
            let fault = plan.state.fault.take();
            if let Some(node) = &plan.binding.node {
                let exchanges = &plan.binding.exchanges;
                // Errors are returned by the wait for it.
                node.wait_for_sources(&mut || exchanges.iter().for_each(|exchange| drop(exchange.test())))?;
                plan.copier.wait_for(node.sources(), Mark::Posted)?;
            }
            plan.resolve()?;
            let CopyPlan { binding, copier, comm, state, .. } = plan;
            let Binding { exchanges, node, near, far, spans, buffers, far_shares, .. } = &*binding;
            let transport = node.as_ref().map(|_| comm.transport());
            match fault {
                Some(Fault::Error) => {
                    return Err(Error::Device { message: "an injected fault".into(), source: None });
                }
                Some(Fault::Panic) => accessing(transport, || panic!("an injected fault"))?,
                None => {}
            }
            let RunState { from, packed, targets, published, in_flight, .. } = state;
            let incoming = Incoming { from, packed, targets };
            let store = |copier: &mut C, sweep: &C::Sweep| {
                // SAFETY: this function's contract. Sources on this node are kept until this rank has ended its loads;
                // messages are complete.
                accessing(transport, || unsafe { copier.store(sweep, incoming) })
            };
            store(copier, near)?;
            if !far_shares {
                end_loads(copier, node.as_ref())?;
            }
            for (number, (exchange, &span)) in exchanges.iter().zip(spans).enumerate() {
                exchange.wait()?;
                // SAFETY: the plan's buffers; the exchange is complete.
                unsafe { copier.end_messages(buffers, span)? };
                if far.len() == exchanges.len() {
                    store(copier, &far[number])?;
                }
            }
            if far.len() != exchanges.len() {
                // All at once.
                far.iter().try_for_each(|sweep| store(copier, sweep))?;
            }
            if *far_shares {
                end_loads(copier, node.as_ref())?;
            }
            match node {
                Some(node) if *published == Published::Arrays => wait_for_readers(copier, node)?,
                _ => {}
            }
            *in_flight = false;
            copier.park();
            Ok(())
        })
    }

    /// Finds where the fields of each incoming route lie.
    fn resolve(&mut self) -> Result<()> {
        let (fields, staged) = (self.fields, C::span(&self.binding.staging)[1] > 0);
        let element_bytes = self.copier.element_bytes();
        let RunState { from, packed, sources, published, .. } = &mut self.state;
        for (number, route) in self.binding.incoming.iter().enumerate() {
            let addresses = &mut from[number * fields..][..fields];
            let has_segment = match (route.peer, &self.binding.node) {
                (Peer::Own, _) if *published == Published::Arrays || !staged => {
                    addresses.copy_from_slice(sources);
                    false
                }
                (Peer::Node, Some(node)) => {
                    let mut found = Ok(Published::Segments);
                    self.comm
                        .transport()
                        .with_access(&mut || found = node.published(route.rank, addresses))?;
                    found? == Published::Segments
                }
                _ => true,
            };
            packed[number] = has_segment;
            if has_segment {
                let segment = |field: usize| route.segment + field * route.volume * element_bytes;
                addresses.iter_mut().enumerate().for_each(|(field, address)| *address = segment(field));
            }
        }
        Ok(())
    }

    /// Runs a part of a run. After an error or a panic the other ranks are told, nothing is in flight, and no rank
    /// accesses the arrays.
    fn guarded(&mut self, part: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let outcome = catch_unwind(AssertUnwindSafe(|| part(self)));
        let message = match &outcome {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(payload) => format!("panicked: {}", panic_text(&**payload)),
        };
        let transport = self.comm.transport();
        let threads = transport.exposes_all_memory();
        // An error of MPI has reached all ranks; others only this one knows of.
        if threads || matches!(outcome, Err(_) | Ok(Err(Error::Device { .. } | Error::Array { .. }))) {
            transport.fail(&message);
        }
        self.state.in_flight = false;
        for exchange in &self.binding.exchanges {
            let _ = exchange.wait();
        }
        if threads && self.binding.node.is_some() {
            // The group has failed: returns when no rank accesses memory of others.
            let _ = transport.unexpose();
        }
        self.copier.abandon();
        match outcome {
            Ok(outcome) => outcome,
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Reports an error that only this rank has, such as a wrong array: the others would wait for it.
    pub fn or_fail<R>(&self, outcome: Result<R>) -> Result<R> {
        outcome.inspect_err(|error| {
            if self.comm.size() > 1 {
                self.comm.transport().fail(&error.to_string());
            }
        })
    }

    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Whether ranks of this node load from each other.
    pub fn shares(&self) -> bool {
        self.binding.node.is_some()
    }

    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Bytes of memory on this rank.
    pub fn memory(&self) -> usize {
        let Binding { buffers, staging, segments, node, exchanges, .. } = &self.binding;
        let all = buffers.iter().chain([staging, segments]);
        let bytes: usize = all.map(|buffer| C::span(buffer)[1]).sum();
        let node = node.as_ref().map_or(0, NodeLink::memory);
        let window = exchanges.iter().map(Exchange::window).max().unwrap_or(0);
        bytes + node + window + self.copier.memory()
    }

    /// Makes the next run fail while it is in flight, for tests of the library itself.
    pub fn inject_fault(&mut self, fault: Fault) {
        self.state.fault = Some(fault);
    }
}

/// Runs work that may access the memory of other ranks, where there are any that share it.
fn accessing(transport: Option<&Arc<dyn Transport>>, mut work: impl FnMut() -> Result<()>) -> Result<()> {
    let Some(transport) = transport else { return work() };
    let mut outcome = Ok(());
    transport.with_access(&mut || outcome = work())?;
    outcome
}

/// Tells the ranks that this one loads from that it has loaded.
fn end_loads<C: Copier>(copier: &mut C, node: Option<&NodeLink>) -> Result<()> {
    let Some(node) = node else { return Ok(()) };
    copier.mark(Mark::Loaded)?;
    node.end_loads();
    Ok(())
}

impl<C: Copier> CopyPlan<C> {
    /// Whether a run was started that is not finished.
    pub fn is_in_flight(&self) -> bool {
        self.state.in_flight
    }

    /// Ends a run that was started: what arrives is dropped.
    fn cancel(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.state.in_flight) {
            return Ok(());
        }
        let ended = end_loads(&mut self.copier, self.binding.node.as_ref());
        let outcomes = self.binding.exchanges.iter().map(Exchange::wait);
        // All are waited for, whatever the outcome of the first.
        outcomes.fold(ended, Result::and)
    }

    /// The same; where this thread panics, the other ranks are told.
    pub fn abort(&mut self) {
        if self.state.in_flight && std::thread::panicking() {
            self.comm.transport().fail("panicked while copies were in flight");
        }
        // Another rank's failure is returned by the next run.
        let _ = self.cancel();
    }
}

impl<C: Copier> Drop for CopyPlan<C> {
    fn drop(&mut self) {
        self.abort();
    }
}
