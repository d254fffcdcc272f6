//! Plans on GPUs.

use std::marker::PhantomData;
use std::sync::Arc;

use super::apply::Formulas;
use super::array::{DeviceArray, DeviceData, DeviceDataMut, Span, Streams};
use super::bind::{BoundPass, SETS, Variant, Work};
use super::codec::DeviceCodec;
use super::draft::{CudaDraft, CudaMemory};
use super::fft::Cufft;
use super::gpu::{Function, Gpu};
use super::launch;
use super::memory::{Block, Event, Pinned, Stream};
use super::run::meet;
use super::touch::Code;
use crate::transport::{EXPOSED, Exposed};
use crate::{Array, Box3, Comm, Error, Layout, Real, Recipe, Result};
use ferrier_plan::geometry::{Geometry, width};

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
    pub(super) comm: Comm,
    pub(super) gpu: Gpu,
    pub(super) recipe: Recipe,
    pub(super) variants: Vec<Variant>,
    pub(super) functions: Vec<Vec<Vec<Function>>>,
    pub(super) memory: CudaMemory,
    pub(super) scratch: [u64; 2],
    pub(super) shared: bool,
    pub(super) stream: Stream,
    pub(super) work: Block,
    pub(super) tables: Block,
    pub(super) staging: Pinned,
    /// Movers that were started and not waited for.
    pub(super) aloft: Vec<usize>,
    /// Two moments of this rank, in turn, and those of all ranks.
    pub(super) marks: Arc<[Event; 2]>,
    pub(super) peers: Vec<Arc<[Event; 2]>>,
    pub(super) turn: usize,
    pub(super) lent: Vec<Exposed>,
    /// For each variant the sets of pointers that the GPU has, and which comes next.
    pub(super) sets: Vec<(Vec<Vec<u64>>, usize)>,
    pub(super) codec: Option<DeviceCodec<T>>,
    pub(super) formulas: Formulas<T>,
    /// Moments between steps, where they are timed.
    pub(super) clock: Option<Vec<Event>>,
    pub(super) last: usize,
    /// Set last: waits for the GPU before anything else goes.
    pub(super) _kind: PhantomData<T>,
}

/// The variants of a plan; those from `ROUND` on are there for operators only.
pub(super) const FORWARD: usize = 0;
pub(super) const BACKWARD: usize = 1;
const IN_PLACE: usize = 2;
pub(super) const ROUND: usize = 4;
pub(super) const ROUND_IN_PLACE: usize = 5;
pub(super) const OPERATED: usize = 6;

/// Kernels load and store up to 16 bytes at once.
const ALIGNMENT: u64 = 16;

impl<T: Real> Plan<T> {
    pub(super) fn build(draft: CudaDraft<T>) -> Result<Self> {
        let CudaDraft { comm, gpu, recipe, mechanism, variants, tables, memory, scratch, cufft, codec, room } =
            draft;
        let work = Block::new(&gpu, memory.total() - memory.tables, "the buffers of a plan")?;
        let table_block = Block::new(&gpu, memory.tables, "the tables of a plan")?;
        table_block.upload(0, &tables.bytes)?;
        let stream = Stream::new(&gpu)?;
        let compile = |pass: &BoundPass| match launch::is_called(pass) {
            // When the operator is known.
            true => Ok(Vec::new()),
            false => launch::kernels::<T>(&gpu, pass, Code::NONE),
        };
        let compile = |variant: &Variant| variant.passes.iter().map(compile).collect();
        let functions = variants.iter().map(compile).collect::<Result<Vec<_>>>()?;
        let shared = comm.size() > 1 && mechanism.shares();
        let marks = Arc::new([Event::mark(&gpu)?, Event::mark(&gpu)?]);
        let peers = if shared { meet(&comm, &gpu, &marks)? } else { Vec::new() };
        // Variants in one direction have their movers together.
        for variant in [FORWARD, BACKWARD, ROUND].iter().filter_map(|&first| variants.get(first)) {
            variant.movers.iter().try_for_each(|mover| mover.open())?;
        }
        let at = |offset: usize| work.start() + offset as u64;
        let plan = Plan {
            scratch: scratch.map(at),
            staging: Pinned::new(&gpu, memory.staging)?,
            lent: vec![[0; EXPOSED]; comm.size()],
            aloft: Vec::with_capacity(variants.iter().map(|variant| variant.movers.len()).max().unwrap_or(0)),
            sets: variants.iter().map(|_| (Vec::with_capacity(SETS), 0)).collect(),
            codec,
            formulas: Formulas::new(room, variants.len()),
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
            // SAFETY: stream and workspace live as long as this plan, which has the cuFFT plans.
            let bind = |fft: &Cufft| unsafe { fft.bind(&self.stream, work) };
            match &pass.work {
                Work::Whole(fft, _) => bind(fft)?,
                Work::Batch(batch) => batch.plans().try_for_each(bind)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// From now on the plan works on this stream of its GPU.
    ///
    /// # Errors
    /// Where cuFFT or the driver refuses.
    pub fn set_stream(&mut self, stream: &Arc<cudarc::driver::CudaStream>) -> Result<()> {
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
    pub fn forward<I: DeviceData<T>, O: DeviceDataMut<T>>(
        &mut self,
        input: &I,
        output: &mut O,
    ) -> Result<()> {
        self.out_of_place(FORWARD, input, output)
    }

    /// Transforms `input`, laid out as the output of [`forward`](Self::forward),
    /// back; leaves the input as it was. Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn backward<I: DeviceData<T>, O: DeviceDataMut<T>>(
        &mut self,
        input: &I,
        output: &mut O,
    ) -> Result<()> {
        self.out_of_place(BACKWARD, input, output)
    }

    /// Transforms an array in place; it is laid out as on the CPU
    /// ([`crate::Plan::make_in_place`]). Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn forward_in_place<A: DeviceDataMut<T>>(&mut self, array: &mut A) -> Result<()> {
        self.in_place(IN_PLACE + FORWARD, array)
    }

    /// Transforms a spectrum back in place. Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn backward_in_place<A: DeviceDataMut<T>>(&mut self, array: &mut A) -> Result<()> {
        self.in_place(IN_PLACE + BACKWARD, array)
    }

    pub(super) fn out_of_place<I, O>(&mut self, which: usize, input: &I, output: &mut O) -> Result<()>
    where
        I: DeviceData<T>,
        O: DeviceDataMut<T>,
    {
        // The stream is borrowed while the plan changes: it is put back below.
        let stream = self.stream.twin();
        let streams = Streams(&stream);
        input.with_span(&streams, |source| {
            output.with_span_mut(&streams, |target| {
                let variant = &self.variants[which];
                let checked = self
                    .check("input", &variant.input, variant.real[0], &source)
                    .and_then(|()| self.check("output", &variant.output, variant.real[1], &target));
                self.or_fail(checked)?;
                // SAFETY: lengths and places were checked, both arrays are borrowed for the call.
                let outcome = unsafe { self.execute(which, source.start, target.start) };
                self.or_fail(outcome)
            })
        })
    }

    pub(super) fn in_place<A: DeviceDataMut<T>>(&mut self, which: usize, array: &mut A) -> Result<()> {
        let stream = self.stream.twin();
        array.with_span_mut(&Streams(&stream), |span| {
            let variant = &self.variants[which];
            let needed = variant.input.volume.max(variant.output.volume) * self.recipe.batch;
            let checked = match span.numbers >= needed && span.start.is_multiple_of(ALIGNMENT) {
                true => Ok(()),
                false => Err(Error::array(
                    "array",
                    self.comm.rank(),
                    format!(
                        "at least {needed} scalars (a complex element is two) at a multiple of {ALIGNMENT} bytes \
                         for a transform in place"
                    ),
                    format!("{} at {:#x}", span.numbers, span.start),
                )),
            };
            self.or_fail(checked)?;
            // SAFETY: as above.
            let outcome = unsafe { self.execute(which, span.start, span.start) };
            self.or_fail(outcome)
        })
    }

    /// An array of the right kind and length?
    fn check(&self, side: &'static str, geometry: &Geometry, real: bool, span: &Span) -> Result<()> {
        let word = |real: bool| if real { "real" } else { "complex" };
        let needed = geometry.volume * self.recipe.batch;
        let wrong_kind = span.is_real.is_some_and(|is_real| is_real != real);
        if wrong_kind || span.numbers != needed {
            let got = span.is_real.map_or("", |real| if real { "real " } else { "complex " });
            let expected = format!(
                "{} {} elements (its box is {}, times {} arrays)",
                needed / width(real),
                word(real),
                geometry.part,
                self.recipe.batch,
            );
            let got = format!("{} {got}elements", span.numbers / width(span.is_real.unwrap_or(real)));
            return Err(Error::array(side, self.comm.rank(), expected, got));
        }
        if !span.start.is_multiple_of(ALIGNMENT) {
            let expected = format!("at a multiple of {ALIGNMENT} bytes");
            return Err(Error::array(side, self.comm.rank(), expected, format!("{:#x}", span.start)));
        }
        Ok(())
    }

    /// A rank that cannot go on tells the others, who would wait for it.
    pub(super) fn or_fail<R>(&self, outcome: Result<R>) -> Result<R> {
        outcome.inspect_err(|error| {
            if self.comm.size() > 1 {
                self.comm.transport().fail(&error.to_string());
            }
        })
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
    fn sides(
        &self,
        input: Option<Geometry>,
        output: Option<Geometry>,
    ) -> (Option<Geometry>, Option<Geometry>) {
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

impl<T: Real> Drop for Plan<T> {
    fn drop(&mut self) {
        // Neighbours may still wait for our marks, and the GPU works in our memory.
        let _ = self.stream.synchronize();
    }
}
