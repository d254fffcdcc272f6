//! Plans on GPUs.

use std::marker::PhantomData;

use super::array::{DeviceArray, DeviceData, DeviceDataMut, Span, Streams};
use super::bind::{SETS, Step, Variant, Work, set_len};
use super::codec::DeviceCodec;
use super::draft::{CudaDraft, CudaMemory};
use super::gpu::{Function, Gpu};
use super::launch::{self, Places};
use super::memory::{Block, Event, Pinned, Stream};
use crate::exchange::Way;
use crate::plan::geometry::{Geometry, width};
use crate::transport::{LENT, Lent};
use crate::{Array, Box3, Comm, Error, Layout, Real, Recipe, Result, StepTime};

/// An executable transform on a GPU. Made once, run often.
///
/// Calls enqueue their work on the plan's stream and return;
/// [`synchronize`](Self::synchronize) waits for it. (Exchanges by messages
/// wait inside the call, for their bytes pass through main memory.)
///
/// ```no_run
/// use ferrier::{Complex, Device, Planner, Problem};
/// ferrier::ranks(2).run(|comm| {
///     let gpu = Device::cuda(0)?;
///     let mut plan = Planner::new(&Problem::c2c([64, 64, 64])).device(&gpu).draft::<f64>(&comm)?.build()?;
///     let mut wave = plan.make_input()?;
///     let values = vec![Complex::new(1.0, 0.0); wave.numbers() / 2];
///     wave.upload(&values)?;
///     let mut modes = plan.make_output()?;
///     plan.forward(&wave, &mut modes)?;
///     let mut result = values.clone();
///     modes.download(&mut result)?;
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
pub struct Plan<T: Real> {
    comm: Comm,
    gpu: Gpu,
    recipe: Recipe,
    variants: Vec<Variant>,
    functions: Vec<Vec<Vec<Function>>>,
    memory: CudaMemory,
    scratch: [u64; 2],
    shared: bool,
    stream: Stream,
    work: Block,
    tables: Block,
    staging: Pinned,
    /// Two moments of this rank, in turn, and those of all ranks.
    marks: [Event; 2],
    peers: Vec<[usize; 2]>,
    turn: usize,
    lent: Vec<Lent>,
    /// For each variant the sets of pointers that the GPU has, and which comes next.
    sets: Vec<(Vec<Vec<u64>>, usize)>,
    codec: Option<DeviceCodec<T>>,
    /// Moments between steps, where they are timed.
    clock: Option<Vec<Event>>,
    last: usize,
    /// Set last: waits for the GPU before anything else goes.
    _kind: PhantomData<T>,
}

const FORWARD: usize = 0;
const BACKWARD: usize = 1;
const IN_PLACE: usize = 2;

/// Kernels load and store up to 16 bytes at once.
const ALIGNMENT: u64 = 16;

impl<T: Real> Plan<T> {
    pub(super) fn build(draft: CudaDraft<T>) -> Result<Self> {
        let CudaDraft { comm, gpu, recipe, way, variants, tables, memory, scratch, cufft, codec } = draft;
        let work = Block::new(&gpu, memory.total() - memory.tables, "the buffers of a plan")?;
        let table_block = Block::new(&gpu, memory.tables, "the tables of a plan")?;
        table_block.upload(0, &tables.bytes)?;
        let stream = Stream::new(&gpu)?;
        let compile = |variant: &Variant| variant.passes.iter().map(|pass| launch::kernels::<T>(&gpu, pass)).collect();
        let functions = variants.iter().map(compile).collect::<Result<Vec<_>>>()?;
        let shared = comm.size() > 1 && way.shares();
        let marks = [Event::mark(&gpu)?, Event::mark(&gpu)?];
        let peers = if shared { meet(&comm, &gpu, &marks)? } else { Vec::new() };
        for mover in variants[..2].iter().flat_map(|variant| variant.movers.iter()) {
            mover.open()?;
        }
        let staging = if matches!(way, Way::Shared) { 0 } else { memory.staging };
        let at = |offset: usize| work.start() + offset as u64;
        let plan = Plan {
            scratch: scratch.map(at),
            staging: Pinned::new(&gpu, staging)?,
            lent: vec![[0; LENT]; comm.size()],
            sets: variants.iter().map(|_| (Vec::with_capacity(SETS), 0)).collect(),
            codec,
            clock: None,
            last: FORWARD,
            turn: 0,
            comm,
            gpu,
            recipe,
            variants,
            functions,
            memory,
            shared,
            stream,
            tables: table_block,
            marks,
            peers,
            work,
            _kind: PhantomData,
        };
        plan.bind_cufft(plan.work.start() + cufft as u64)?;
        Ok(plan)
    }

    /// cuFFT works on our stream and in our memory.
    fn bind_cufft(&self, work: u64) -> Result<()> {
        for pass in self.variants.iter().flat_map(|variant| &variant.passes) {
            let fft = match &pass.work {
                Work::Whole(fft, _) => fft,
                Work::Batch(batch) => &batch.fft,
                _ => continue,
            };
            // SAFETY: stream and workspace live as long as this plan, which has the cuFFT plans.
            unsafe { fft.bind(&self.stream, work)? };
        }
        Ok(())
    }

    /// From now on the plan works on this stream of its GPU.
    ///
    /// # Errors
    /// Where cuFFT or the driver refuses.
    pub fn set_stream(&mut self, stream: &std::sync::Arc<cudarc::driver::CudaStream>) -> Result<()> {
        self.replace_stream(Stream::of_user(&self.gpu, stream))
    }

    /// From now on the plan works on this stream.
    ///
    /// # Errors
    /// Where cuFFT or the driver refuses.
    ///
    /// # Safety
    /// It is a stream (`CUstream`, `cudaStream_t`) of the primary context of
    /// the plan's GPU and lives until the plan gets another one or is gone.
    pub unsafe fn set_raw_stream(&mut self, stream: *mut std::ffi::c_void) -> Result<()> {
        // SAFETY: the caller's word.
        let stream = unsafe { Stream::of_raw(&self.gpu, stream.cast()) };
        self.replace_stream(stream)
    }

    fn replace_stream(&mut self, stream: Stream) -> Result<()> {
        self.stream.synchronize()?;
        self.stream = stream;
        self.bind_cufft(self.work.start() + (self.work.bytes() - self.memory.cufft) as u64)
    }

    /// Returns when all that was enqueued has run.
    ///
    /// # Errors
    /// Where the GPU failed.
    pub fn synchronize(&self) -> Result<()> {
        self.stream.synchronize()
    }

    /// Notes the moment at which the plan's stream comes here.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn record(&self, event: &Event) -> Result<()> {
        self.gpu.enter()?;
        event.record(&self.stream)
    }

    /// Transforms `input` to `output`; leaves the input as it was. Collective;
    /// allocates nothing.
    ///
    /// # Errors
    /// [`Error::Array`] where an array is not the one the plan was made for
    /// (the group fails then, so that nobody waits); an error on every rank
    /// where one fails or leaves. What goes wrong on the GPU later comes out
    /// of [`synchronize`](Self::synchronize).
    pub fn forward<I: DeviceData<T>, O: DeviceDataMut<T>>(&mut self, input: &I, output: &mut O) -> Result<()> {
        self.out_of_place(FORWARD, input, output)
    }

    /// Transforms `input`, laid out as the output of [`forward`](Self::forward),
    /// back; leaves the input as it was. Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn backward<I: DeviceData<T>, O: DeviceDataMut<T>>(&mut self, input: &I, output: &mut O) -> Result<()> {
        self.out_of_place(BACKWARD, input, output)
    }

    /// Transforms an array in place; it is laid out as on the CPU
    /// ([`crate::Plan::make_in_place`]). Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn forward_in_place<A: DeviceDataMut<T>>(&mut self, array: &mut A) -> Result<()> {
        self.in_place(FORWARD, array)
    }

    /// Transforms a spectrum back in place. Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn backward_in_place<A: DeviceDataMut<T>>(&mut self, array: &mut A) -> Result<()> {
        self.in_place(BACKWARD, array)
    }

    fn out_of_place<I, O>(&mut self, direction: usize, input: &I, output: &mut O) -> Result<()>
    where
        I: DeviceData<T>,
        O: DeviceDataMut<T>,
    {
        // The stream is borrowed while the plan changes: it is put back below.
        let stream = self.stream.twin();
        let streams = Streams(&stream);
        input.with_span(&streams, |source| {
            output.with_span_mut(&streams, |target| {
                let real = self.recipe.is_real();
                let variant = &self.variants[direction];
                let checked = self
                    .check("input", &variant.input, real && direction == FORWARD, &source)
                    .and_then(|()| self.check("output", &variant.output, real && direction == BACKWARD, &target));
                self.or_fail(checked)?;
                // SAFETY: lengths and places were checked, both arrays are borrowed for the call.
                let outcome = unsafe { self.execute(direction, source.start, target.start) };
                self.or_fail(outcome)
            })
        })
    }

    fn in_place<A: DeviceDataMut<T>>(&mut self, direction: usize, array: &mut A) -> Result<()> {
        let stream = self.stream.twin();
        array.with_span_mut(&Streams(&stream), |span| {
            let variant = &self.variants[IN_PLACE + direction];
            let needed = variant.input.volume.max(variant.output.volume) * self.recipe.batch;
            let checked = match span.numbers >= needed && span.start.is_multiple_of(ALIGNMENT) {
                true => Ok(()),
                false => Err(Error::Array(format!(
                    "a transform in place needs an array of {needed} numbers (a complex one is two) on rank {}, at a \
                     multiple of {ALIGNMENT} bytes; got {} at {:#x}",
                    self.comm.rank(),
                    span.numbers,
                    span.start
                ))),
            };
            self.or_fail(checked)?;
            // SAFETY: as above.
            let outcome = unsafe { self.execute(IN_PLACE + direction, span.start, span.start) };
            self.or_fail(outcome)
        })
    }

    /// An array of the right kind and length?
    fn check(&self, side: &str, geometry: &Geometry, real: bool, span: &Span) -> Result<()> {
        let word = |real: bool| if real { "real" } else { "complex" };
        let needed = geometry.volume * self.recipe.batch;
        let wrong_kind = span.is_real.is_some_and(|is_real| is_real != real);
        if wrong_kind || span.numbers != needed {
            let got = span.is_real.map_or("", |real| if real { "real " } else { "complex " });
            return Err(Error::Array(format!(
                "the {side} of rank {} must be {} {} numbers (its box is {}, times {} arrays), got {} {got}ones",
                self.comm.rank(),
                needed / width(real),
                word(real),
                geometry.part,
                self.recipe.batch,
                span.numbers / width(span.is_real.unwrap_or(real)),
            )));
        }
        if !span.start.is_multiple_of(ALIGNMENT) {
            return Err(Error::Array(format!(
                "the {side} must lie at a multiple of {ALIGNMENT} bytes, got {:#x}",
                span.start
            )));
        }
        Ok(())
    }

    /// A rank that cannot go on tells the others, who would wait for it.
    fn or_fail<R>(&self, outcome: Result<R>) -> Result<R> {
        outcome.inspect_err(|error| {
            if self.comm.size() > 1 {
                self.comm.transport().fail(&error.to_string());
            }
        })
    }

    /// # Safety
    /// The arrays are as long as the variant's geometries say, and live and
    /// are not touched by others until what is enqueued has run.
    unsafe fn execute(&mut self, which: usize, input: u64, output: u64) -> Result<()> {
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
        let outcome = transport.lend(own, &mut self.lent).and_then(|_| {
            self.wait_for_peers()?;
            // SAFETY: the caller's word, on every rank; all have come here.
            unsafe { self.run_steps(which, own) }?;
            // And what is enqueued after this call comes after it.
            self.mark()
        });
        if let Err(error) = &outcome {
            transport.fail(&error.to_string());
        }
        let given = transport.give_back();
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
            // SAFETY: an event of a rank of this process that is in this call too.
            unsafe { self.stream.wait(marks[self.turn % 2] as *mut _)? };
        }
        self.turn += 1;
        Ok(())
    }

    /// # Safety
    /// As [`execute`](Self::execute), and `lent` is that of this call.
    unsafe fn run_steps(&mut self, which: usize, [input, output, work]: Lent) -> Result<()> {
        let places = Places {
            tables: self.tables.start(),
            bases: self.bases(which)?,
            input: input as u64,
            output: output as u64,
            scratch: self.scratch,
        };
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
                let mut outcome = Ok(());
                // SAFETY: the caller's word; the schedule keeps ranks apart by barriers and exchanges.
                let mut run = || outcome = unsafe { launch::run::<T>(pass, functions, places, &self.stream) };
                match self.shared {
                    true => self.comm.transport().touching(&mut run)?,
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
                let mover = &variant.movers[flight.mover];
                let coder = variant.coders[flight.mover].as_ref();
                // SAFETY: the areas lie in the workspace and its twin in main memory, apart from those of
                // tiles that fly; nobody touches them before the wait.
                unsafe {
                    self.stream.download(work + flight.send.0 as u64, self.staging.at(flight.send.0), flight.send.1)?;
                    self.stream.synchronize()?;
                    mover.start(self.staging.at(flight.send.0), self.staging.at(flight.recv.0), coder)
                }
            }
            Step::Wait(flight) => {
                let mover = &variant.movers[flight.mover];
                let coder = variant.coders[flight.mover].as_ref();
                let (send, recv) = (self.staging.at(flight.send.0), self.staging.at(flight.recv.0));
                // SAFETY: as above.
                unsafe {
                    if flight.tiled {
                        mover.wait()?;
                    } else {
                        self.stream.download(work + flight.send.0 as u64, send, flight.send.1)?;
                        self.stream.synchronize()?;
                        mover.run(send, recv, coder)?;
                    }
                    self.stream.upload(recv, work + flight.recv.0 as u64, flight.recv.1)
                }
            }
        }
    }

    /// The pointers of this call on the GPU: a set that is there already, or a
    /// new one in the place of the oldest.
    fn bases(&mut self, which: usize) -> Result<u64> {
        let lent = self.lent.iter().flatten().map(|&address| address as u64);
        let (sets, next) = &mut self.sets[which];
        let scratch = self.scratch.into_iter().chain([0]);
        let at = self.variants[which].bases;
        let bytes = set_len(self.lent.len()) * size_of::<u64>();
        let place = |set: usize| self.tables.start() + (at + set * bytes) as u64;
        if let Some(known) = sets.iter().position(|set| set.iter().copied().eq(lent.clone().chain(scratch.clone()))) {
            return Ok(place(known));
        }
        let set: Vec<u64> = lent.chain(scratch).collect();
        let slot = *next % SETS;
        // Kernels that still use the oldest set end first.
        self.stream.synchronize()?;
        self.tables.upload(at + slot * bytes, &set)?;
        match sets.get_mut(slot) {
            Some(old) => *old = set,
            None => sets.push(set),
        }
        *next += 1;
        Ok(place(slot))
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

    /// An array on the GPU for the input of [`forward`](Self::forward). Allocates.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    pub fn make_input(&self) -> Result<DeviceArray<T>> {
        self.make(Some(self.variants[FORWARD].input), None)
    }

    /// An array on the GPU for the output of [`forward`](Self::forward). Allocates.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    pub fn make_output(&self) -> Result<DeviceArray<T>> {
        self.make(None, Some(self.variants[FORWARD].output))
    }

    /// An array on the GPU for transforms in place, laid out as
    /// [`crate::Plan::make_in_place`] says. Allocates.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    pub fn make_in_place(&self) -> Result<DeviceArray<T>> {
        let variant = &self.variants[IN_PLACE + FORWARD];
        self.make(Some(variant.input), Some(variant.output))
    }

    /// The real and the complex side of an array.
    fn sides(&self, input: Option<Geometry>, output: Option<Geometry>) -> (Option<Geometry>, Option<Geometry>) {
        match self.recipe.is_real() {
            true => (input, output),
            // A complex array that is input and output in turn is seen as the input.
            false => (None, input.or(output)),
        }
    }

    fn make(&self, input: Option<Geometry>, output: Option<Geometry>) -> Result<DeviceArray<T>> {
        let (real, complex) = self.sides(input, output);
        let most = [input, output].iter().flatten().map(|geometry| geometry.volume).max().unwrap_or(0);
        DeviceArray::new(&self.gpu, most * self.recipe.batch, real, complex)
    }

    /// An array in main memory that can be copied to [`make_input`](Self::make_input)'s. Allocates.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    pub fn make_host_input(&self) -> Result<Array<T>> {
        self.make_host(Some(self.variants[FORWARD].input), None)
    }

    /// An array in main memory that [`make_output`](Self::make_output)'s can be copied to. Allocates.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    pub fn make_host_output(&self) -> Result<Array<T>> {
        self.make_host(None, Some(self.variants[FORWARD].output))
    }

    /// An array in main memory that can be copied to and from [`make_in_place`](Self::make_in_place)'s.
    /// Allocates.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    pub fn make_host_in_place(&self) -> Result<Array<T>> {
        let variant = &self.variants[IN_PLACE + FORWARD];
        self.make_host(Some(variant.input), Some(variant.output))
    }

    fn make_host(&self, input: Option<Geometry>, output: Option<Geometry>) -> Result<Array<T>> {
        let (real, complex) = self.sides(input, output);
        Array::new([real, complex], self.recipe.batch)
    }

    /// This rank's box of the input of [`forward`](Self::forward).
    pub fn input_box(&self) -> Box3 {
        self.recipe.input.boxes()[self.comm.rank()]
    }

    /// This rank's box of the output of [`forward`](Self::forward).
    pub fn output_box(&self) -> Box3 {
        self.recipe.output.boxes()[self.comm.rank()]
    }

    /// Where the output of [`forward`](Self::forward) lies.
    pub fn output_layout(&self) -> &Layout {
        &self.recipe.output
    }

    /// What the plan does.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// What the plan takes on this rank.
    pub fn memory(&self) -> CudaMemory {
        self.memory
    }

    /// The GPU of this rank.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }
}

/// Learns the events of all ranks, and reaches their GPUs' memory. Collective.
fn meet(comm: &Comm, gpu: &Gpu, marks: &[Event; 2]) -> Result<Vec<[usize; 2]>> {
    let mine = [marks[0].raw() as usize, marks[1].raw() as usize, gpu.index()];
    let mine: Vec<u8> = mine.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut peers = Vec::with_capacity(comm.size());
    for theirs in comm.all_gather(&mine)? {
        let words: Vec<usize> = theirs.as_chunks::<8>().0.iter().map(|word| usize::from_le_bytes(*word)).collect();
        gpu.reach(words[2])?;
        peers.push([words[0], words[1]]);
    }
    Ok(peers)
}

impl<T: Real> Drop for Plan<T> {
    fn drop(&mut self) {
        // Neighbours may still wait for our marks, and the GPU works in our memory.
        let _ = self.stream.synchronize();
    }
}
