//! What a call of a plan does: launches, barriers, flights.

use std::sync::Arc;

use super::bind::{Flight, SETS, Step, set_len};
use super::gpu::Gpu;
use super::launch::{self, Places};
use super::memory::Event;
use super::plan::Plan;
use crate::transport::Exposed;
use crate::{Comm, Real, Result, StepTime};

impl<T: Real> Plan<T> {
    /// # Safety
    /// The arrays are as long as the variant's geometries say, and live and
    /// are not touched by others until what is enqueued has run.
    pub(super) unsafe fn execute(&mut self, which: usize, input: u64, output: u64) -> Result<()> {
        self.gpu.enter()?;
        self.last = which;
        let own = [input, output, self.work.start()].map(|address| address as usize);
        let rank = self.comm.rank();
        if !self.shared {
            self.lent[rank] = own;
            // SAFETY: the caller's word.
            return unsafe { self.run_steps(which, own) };
        }
        let transport = self.comm.transport().clone();
        // What was enqueued before comes before what neighbours do to our arrays.
        self.mark()?;
        let outcome = transport.expose(own, &mut self.lent).and_then(|_| {
            self.wait_for_peers()?;
            // SAFETY: the caller's word, on every rank; all have come here.
            unsafe { self.run_steps(which, own) }?;
            // And what is enqueued after this call comes after it.
            self.mark()
        });
        if let Err(error) = &outcome {
            transport.fail(&error.to_string());
        }
        let given = transport.unexpose();
        outcome.and(given)?;
        self.wait_for_peers()
    }

    /// Notes where this rank's stream is.
    fn mark(&mut self) -> Result<()> {
        self.marks[self.turn % 2].record(&self.stream)
    }

    /// This rank's stream waits until those of the others are where they were
    /// noted last; all have noted it.
    fn wait_for_peers(&mut self) -> Result<()> {
        let rank = self.comm.rank();
        for (_, marks) in self.peers.iter().enumerate().filter(|(peer, _)| *peer != rank) {
            // SAFETY: the event lives.
            unsafe { self.stream.wait(marks[self.turn % 2].raw())? };
        }
        self.turn += 1;
        Ok(())
    }

    /// # Safety
    /// As [`execute`](Self::execute), and `lent` is that of this call.
    unsafe fn run_steps(&mut self, which: usize, [input, output, work]: Exposed) -> Result<()> {
        let set = self.bases(which)?;
        let places = Places {
            tables: self.tables.start(),
            bases: self.base(which, set),
            set,
            input: input as u64,
            output: output as u64,
            scratch: self.scratch,
        };
        self.aloft.clear();
        self.tick(0)?;
        for number in 0..self.variants[which].steps.len() {
            // SAFETY: the caller's word.
            unsafe { self.run_step(which, number, &places, work as u64)? };
            self.tick(number + 1)?;
        }
        Ok(())
    }

    /// # Safety
    /// As [`run_steps`](Self::run_steps).
    unsafe fn run_step(&mut self, which: usize, number: usize, places: &Places, work: u64) -> Result<()> {
        let variant = &self.variants[which];
        match variant.steps[number] {
            Step::Barrier => {
                self.mark()?;
                self.comm.transport().node_barrier()?;
                self.wait_for_peers()
            }
            Step::Run(pass) => {
                let (pass, functions) = (&variant.passes[pass], &self.functions[which][pass]);
                let pointers = &self.sets[which].0[places.set][..];
                let mut outcome = Ok(());
                let mut run = || {
                    let operand = &self.formulas.operand;
                    // SAFETY: the caller's word; the schedule keeps ranks apart by barriers and exchanges.
                    outcome = unsafe {
                        launch::run::<T>(pass, functions, (places, pointers), operand, &self.stream)
                    };
                };
                match self.shared {
                    true => self.comm.transport().with_access(&mut run)?,
                    false => run(),
                }
                outcome
            }
            Step::Start(flight) if !flight.tiled => Ok(()),
            Step::Encode(chunks) => {
                let Some(codec) = &self.codec else { return Ok(()) };
                // SAFETY: the caller's word; the table is the variant's.
                unsafe { codec.run(true, &chunks, places.tables, work, &self.stream) }
            }
            Step::Decode(chunks) => {
                let Some(codec) = &self.codec else { return Ok(()) };
                // SAFETY: as above.
                unsafe { codec.run(false, &chunks, places.tables, work, &self.stream) }
            }
            Step::Start(flight) => {
                // SAFETY: the caller's word.
                unsafe { self.leave(which, &flight, work, false) }
            }
            Step::Wait(flight) => {
                // SAFETY: the caller's word.
                unsafe {
                    match flight.tiled {
                        true => self.variants[which].movers[flight.mover].wait()?,
                        false => self.leave(which, &flight, work, true)?,
                    }
                    self.aloft.retain(|mover| *mover != flight.mover);
                    match self.staging.is_empty() {
                        true => Ok(()),
                        false => self.stream.upload(
                            self.staging.at(flight.recv.0),
                            work + flight.recv.0 as u64,
                            flight.recv.1,
                        ),
                    }
                }
            }
        }
    }

    /// A tile of a reshape sets out, by way of main memory where MPI does not
    /// take pointers into a GPU's; `whole`: and comes.
    ///
    /// # Safety
    /// As [`run_steps`](Self::run_steps).
    unsafe fn leave(&mut self, which: usize, flight: &Flight, work: u64, whole: bool) -> Result<()> {
        let [mut send, mut recv] = [flight.send.0, flight.recv.0].map(|at| (work + at as u64) as *mut u8);
        if !self.staging.is_empty() {
            [send, recv] = [flight.send.0, flight.recv.0].map(|at| self.staging.at(at));
            // SAFETY: the areas lie in the workspace and its twin in main memory, apart from those of
            // tiles that fly; nobody touches them before the wait.
            unsafe { self.stream.download(work + flight.send.0 as u64, send, flight.send.1)? };
        }
        self.settle(which)?;
        let variant = &self.variants[which];
        let (mover, coder) = (&variant.movers[flight.mover], variant.coders[flight.mover].as_ref());
        // SAFETY: as above.
        unsafe {
            if whole {
                return mover.run(send, recv, coder);
            }
            mover.start(send, recv, coder)?;
        }
        self.aloft.push(flight.mover);
        Ok(())
    }

    /// Returns when all that was enqueued has run; looks after what flies meanwhile.
    fn settle(&self, which: usize) -> Result<()> {
        if self.aloft.is_empty() {
            return self.stream.synchronize();
        }
        let movers = &self.variants[which].movers;
        while !self.stream.is_idle()? {
            for mover in &self.aloft {
                movers[*mover].test()?;
            }
        }
        Ok(())
    }

    /// The set of the pointers of this call on the GPU: one that is there already, or a
    /// new one in the place of the oldest.
    fn bases(&mut self, which: usize) -> Result<usize> {
        let lent = self.lent.iter().flatten().map(|&address| address as u64);
        let scratch = self.scratch.into_iter().chain([0]);
        let sets = &self.sets[which].0;
        if let Some(known) =
            sets.iter().position(|set| set.iter().copied().eq(lent.clone().chain(scratch.clone())))
        {
            return Ok(known);
        }
        let set: Vec<u64> = lent.chain(scratch).collect();
        let slot = self.sets[which].1 % SETS;
        // Kernels that still use the oldest set end first.
        self.stream.synchronize()?;
        self.tables.upload((self.base(which, slot) - self.tables.start()) as usize, &set)?;
        let (sets, next) = &mut self.sets[which];
        match sets.get_mut(slot) {
            Some(old) => *old = set,
            None => sets.push(set),
        }
        *next += 1;
        Ok(slot)
    }

    /// Where a set of pointers lies on the GPU.
    fn base(&self, which: usize, set: usize) -> u64 {
        let bytes = set_len(self.lent.len()) * size_of::<u64>();
        self.tables.start() + (self.variants[which].bases + set * bytes) as u64
    }

    fn tick(&self, number: usize) -> Result<()> {
        match &self.clock {
            Some(clock) => clock[number].record(&self.stream),
            None => Ok(()),
        }
    }

    /// Times every step of the calls to come, for [`profile`](Self::profile).
    ///
    /// # Errors
    /// Where the driver has no more events.
    pub fn time_steps(&mut self) -> Result<()> {
        let most = self.variants.iter().map(|variant| variant.steps.len()).max().unwrap_or(0);
        self.clock = Some((0..=most).map(|_| Event::new(&self.gpu)).collect::<Result<_>>()?);
        Ok(())
    }

    /// How long each step of the last transform took on this rank's stream,
    /// where [`time_steps`](Self::time_steps) was asked for. Waits for the GPU.
    ///
    /// # Errors
    /// Where the GPU failed.
    pub fn profile(&self) -> Result<Vec<StepTime>> {
        self.synchronize()?;
        let Some(clock) = &self.clock else { return Ok(Vec::new()) };
        let variant = &self.variants[self.last];
        let time = |(number, step): (usize, &Step)| -> Result<StepTime> {
            let ms = clock[number + 1].ms_since(&clock[number])?;
            let (name, bytes, flops) = match *step {
                Step::Barrier => ("wait".into(), 0, 0.0),
                Step::Run(pass) => {
                    let pass = &variant.passes[pass];
                    (pass.name.clone(), pass.bytes, pass.flops)
                }
                Step::Encode(chunks) => ("encode".into(), chunks.bytes::<T>(), 0.0),
                Step::Decode(chunks) => ("decode".into(), chunks.bytes::<T>(), 0.0),
                Step::Start(flight) => (variant.reshapes[flight.reshape].clone(), flight.send.1 as u64, 0.0),
                Step::Wait(flight) => (variant.reshapes[flight.reshape].clone(), flight.recv.1 as u64, 0.0),
            };
            Ok(StepTime { name, ms, bytes, flops })
        };
        variant.steps.iter().enumerate().map(time).collect()
    }
}

/// Learns the events of all ranks, and reaches their GPUs' memory. Collective.
///
/// A rank may be through with its plan while another one has still to wait for its last event: so
/// events belong to all of them.
pub(super) fn meet(comm: &Comm, gpu: &Gpu, marks: &Arc<[Event; 2]>) -> Result<Vec<Arc<[Event; 2]>>> {
    let start = Arc::as_ptr(marks);
    for _ in 1..comm.size() {
        // SAFETY: the events live; every other rank takes one of these counts below (or, where the group
        // fails now, they are never given back).
        unsafe { Arc::increment_strong_count(start) };
    }
    let mine: Vec<u8> = [start as usize, gpu.index()].iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut peers = Vec::with_capacity(comm.size());
    for (peer, theirs) in comm.all_gather(&mine)?.iter().enumerate() {
        let words: Vec<usize> =
            theirs.as_chunks::<8>().0.iter().map(|word| usize::from_le_bytes(*word)).collect();
        peers.push(match peer == comm.rank() {
            true => marks.clone(),
            // SAFETY: a rank of this process, which has counted this one.
            false => unsafe { Arc::from_raw(words[0] as *const [Event; 2]) },
        });
        gpu.reach(words[1])?;
    }
    Ok(peers)
}
