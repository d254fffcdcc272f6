//! Plans: recipes bound to ranks and memory.

use std::fmt;
use std::time::{Duration, Instant};

use super::array::Workspace;
use super::backend::{ArrayShape, Backend, Executor, VariantOf};
use super::certificate::{Certificate, Ledger};
use super::cpu::Cpu;
use super::events::{PollTime, StepTiming};
use super::field_table::FieldTable;
use super::memory::Memory;
use super::progress::ProgressThread;
use super::variant::{FORWARD, IN_PLACE, Variant};
use crate::transport::{EXPOSED, Exposed};
use crate::{Box3, Comm, Layout, Real, Recipe, Result};
use ferrier_codec::Loss;
use ferrier_plan::geometry::{Geometry, width};
use ferrier_plan::messages::Mechanism;

/// An executable transform that owns its buffers. Made once, run often.
///
/// [`forward`](Self::forward) and [`backward`](Self::backward) are the plain calls; [`call`](Self::call) is for
/// transforms in place, with a workspace of the caller's, an operator or a scale.
///
/// ```
/// use ferrier::{Plan, Problem};
/// ferrier::ranks(2).run(|comm| {
///     let mut plan = Plan::<f64>::new(&comm, &Problem::r2c([8, 8, 8]))?;
///     let mut field = plan.make_input()?;
///     field.fill_real(|_, [i, j, k]| (i + 2 * j + 3 * k) as f64);
///     let mut spectrum = plan.make_output()?;
///     plan.forward(&field, &mut spectrum)?;
///     if let Some(zero) = spectrum.index(0, [0, 0, 0]) {
///         assert_eq!(spectrum.complex()[zero].re, 512.0 * 6.0 * 3.5);
///     }
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
pub struct Plan<T: Real, B: Backend = Cpu> {
    pub(crate) comm: Comm,
    pub(crate) recipe: Recipe,
    pub(crate) mechanism: Mechanism,
    /// One for each kind of call; then those that differ where users' arrays cannot be exposed.
    pub(crate) variants: Vec<VariantOf<T, B::Executor<T>>>,
    /// Which variant takes the place of each kind of call then.
    pub(crate) unexposed: Vec<usize>,
    pub(crate) memory: Memory,
    pub(crate) notes: Vec<String>,
    /// Do ranks access each other's memory?
    pub(crate) shared: bool,
    pub(crate) executor: B::Executor<T>,
    /// Makes progress on exchanges in flight, where passes do not.
    pub(crate) progress: Option<ProgressThread>,
    pub(crate) observer: Option<Box<dyn CallObserver<T, B>>>,
    pub(crate) ledger: Option<Ledger>,
    pub(crate) tolerance: Option<f64>,
    pub(crate) state: CallState,
}

/// The current call, and what is known of the last one.
pub(crate) struct CallState {
    /// The addresses of the current call, by rank.
    pub exposed: Vec<Exposed>,
    /// Exchanges that were started and not waited for.
    pub in_flight: Vec<usize>,
    /// The variant of the last call, when it began, and when each of its steps ran.
    pub last: usize,
    pub began: Instant,
    pub timings: Vec<StepTiming>,
    /// When the last call ended.
    pub ended: Instant,
    pub polls: PollTime,
    /// Of the last call: what was lost in each reshape, what this rank sent.
    pub losses: Vec<Loss>,
    pub sent: u64,
    pub certificate: Option<Certificate>,
    pub fault: Option<Fault>,
    /// Runs between the start of an exchange and the wait for it.
    pub meanwhile: Option<Meanwhile>,
    /// Passes that no reshape touches are not run; results are wrong.
    pub skips_passes: bool,
    /// The addresses of the input's and of the output's arrays, where each has memory of its own.
    pub fields: [FieldTable; 2],
}

impl CallState {
    /// Before the first call of a plan of these variants. Calls allocate nothing, so there is room for the longest.
    pub fn new<W, C>(ranks: usize, batch: usize, variants: &[Variant<W, C>]) -> CallState {
        let reshapes = variants.iter().map(|variant| variant.gains.each.len()).max().unwrap_or(0);
        let most = variants.iter().map(|variant| variant.steps.len()).max().unwrap_or(0);
        CallState {
            exposed: vec![[0; EXPOSED]; ranks],
            in_flight: Vec::with_capacity(most),
            last: FORWARD,
            began: Instant::now(),
            timings: Vec::with_capacity(most),
            ended: Instant::now(),
            polls: PollTime::default(),
            losses: vec![Loss::NONE; reshapes],
            sent: 0,
            certificate: None,
            fault: None,
            meanwhile: None,
            skips_passes: false,
            fields: [0, 1].map(|_| FieldTable::new(batch)),
        }
    }
}

/// Observes the calls of a plan, and may replace the plan before one. Collective, as the calls are.
pub(crate) trait CallObserver<T: Real, B: Backend>: Send {
    /// Called before a call; false: it has seen enough.
    fn before(&mut self, plan: &mut Plan<T, B>) -> Result<bool>;
    /// Called after a call of a kind that took so long on this rank.
    fn after(&mut self, plan: &Plan<T, B>, kind: usize, elapsed: Duration) -> Result<()>;
}

/// Work of a benchmark while an exchange is in flight; it is given what polls the exchange.
#[doc(hidden)]
pub type Meanwhile = Box<dyn FnMut(&dyn Fn()) + Send>;

/// A failure for tests: in the first pass that runs while an exchange is in flight.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The pass returns an error.
    Error,
    /// The pass panics.
    Panic,
}

impl<T: Real, B: Backend> Plan<T, B> {
    /// An array for the input of [`forward`](Self::forward). Collective; allocates.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_input(&self) -> Result<ArrayOf<T, B>> {
        self.make(Some(self.variants[FORWARD].input), None)
    }

    /// An array for the output of [`forward`](Self::forward). Collective; allocates.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_output(&self) -> Result<ArrayOf<T, B>> {
        self.make(None, Some(self.variants[FORWARD].output))
    }

    /// An array for transforms in place. Collective; allocates.
    ///
    /// It has room for the larger of input and output. In a real transform whose halved axis is the fastest in
    /// memory and whole on each rank, real rows of n are padded to 2 (n/2 + 1) scalars, as FFTW lays them out;
    /// otherwise real elements lie densely at its start, also where not all modes of that axis are kept or not all
    /// of its points are filled. [`Array::index`](crate::Array::index) refers to the input where input and output
    /// are of one kind.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_in_place(&self) -> Result<ArrayOf<T, B>> {
        let variant = &self.variants[IN_PLACE + FORWARD];
        self.make(Some(variant.input), Some(variant.output))
    }

    fn make(&self, input: Option<Geometry>, output: Option<Geometry>) -> Result<ArrayOf<T, B>> {
        let exposed = self.shared && matches!(self.mechanism, Mechanism::SharedMemory);
        self.executor.make_array(&self.comm, self.shape(input, output), exposed)
    }

    /// The shape of an array that is input, output or both in turn. One that is both, of one kind, is seen as the
    /// input.
    pub(crate) fn shape(&self, input: Option<Geometry>, output: Option<Geometry>) -> ArrayShape {
        let sides = [(input, self.recipe.is_real()), (output, self.recipe.has_real_output())];
        let [real, complex] =
            [true, false].map(|real| sides.iter().filter(|side| side.1 == real).find_map(|side| side.0));
        let batch = self.recipe.batch;
        let scalars = [input, output].iter().flatten().map(|geometry| geometry.scalars(batch)).max();
        ArrayShape { real, complex, scalars: scalars.unwrap_or(0), batch }
    }

    /// Substitutions that Ferrier made for this plan; see [`Draft::notes`](crate::Draft::notes).
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Elements (real or complex) that an array must have to be the input of [`forward`](Self::forward) on this rank;
    /// with [strides](crate::Problem::input_strides) it may have more.
    pub fn input_len(&self) -> usize {
        let variant = &self.variants[FORWARD];
        variant.input.scalars(self.recipe.batch) / width(variant.real[0])
    }

    /// Elements (real or complex) that an array must have to be the output of [`forward`](Self::forward) on this rank;
    /// with [strides](crate::Problem::output_strides) it may have more.
    pub fn output_len(&self) -> usize {
        let variant = &self.variants[FORWARD];
        variant.output.scalars(self.recipe.batch) / width(variant.real[1])
    }

    /// Scalars (a complex element is two) that an array for transforms in place must have at least on this rank.
    pub fn in_place_scalars(&self) -> usize {
        self.scalars_in_place(IN_PLACE + FORWARD, self.recipe.batch)
    }

    /// Elements of each array of a batch where each has memory of its own ([`Fields`](crate::Fields)): of the inputs and
    /// of the outputs of [`forward`](Self::forward) on this rank.
    pub fn field_lens(&self) -> [usize; 2] {
        let Variant { input, output, real, .. } = &self.variants[FORWARD];
        [input.scalars(1) / width(real[0]), output.scalars(1) / width(real[1])]
    }

    /// Scalars that each array of a batch must have at least for transforms in place, where each has memory of its own.
    pub fn field_scalars_in_place(&self) -> usize {
        self.scalars_in_place(IN_PLACE + FORWARD, 1)
    }

    /// Scalars of so many arrays for one kind of call in place.
    pub(super) fn scalars_in_place(&self, kind: usize, arrays: usize) -> usize {
        let Variant { input, output, .. } = &self.variants[kind];
        input.scalars(arrays).max(output.scalars(arrays))
    }

    /// This rank's box of the input of [`forward`](Self::forward).
    pub fn input_box(&self) -> Box3 {
        self.recipe.input.boxes()[self.comm.rank()]
    }

    /// This rank's box of the output of [`forward`](Self::forward).
    pub fn output_box(&self) -> Box3 {
        self.recipe.output.boxes()[self.comm.rank()]
    }

    /// The layout of the input of [`forward`](Self::forward).
    pub fn input_layout(&self) -> &Layout {
        &self.recipe.input
    }

    /// The layout of the output of [`forward`](Self::forward).
    pub fn output_layout(&self) -> &Layout {
        &self.recipe.output
    }

    /// What the plan does.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The memory that the plan takes on this rank.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Does it still look for a faster choice? See [`Effort::Online`](crate::tune::Effort::Online).
    pub fn is_tuning(&self) -> bool {
        self.observer.is_some()
    }

    /// Lets the threads of the plan sleep until its next call.
    pub(crate) fn park(&self) {
        self.executor.park();
    }

    /// Makes a pass of the next call fail, for tests of the library itself.
    #[doc(hidden)]
    pub fn inject_fault(&mut self, fault: Fault) {
        self.state.fault = Some(fault);
    }

    /// Work that calls do between the start of each exchange and the wait for it, for benchmarks of overlap.
    #[doc(hidden)]
    pub fn set_meanwhile(&mut self, work: Option<Meanwhile>) {
        self.state.meanwhile = work;
    }

    /// Whether calls leave out passes that no reshape touches: their results are wrong, and their times those of the
    /// rest.
    pub(crate) fn skip_passes(&mut self, yes: bool) {
        self.state.skips_passes = yes;
    }

    /// How many exchanges are in flight; none between calls. For tests of the library itself.
    #[doc(hidden)]
    pub fn exchanges_in_flight(&self) -> usize {
        let exchanges = self.variants.iter().flat_map(|variant| variant.exchanges.iter());
        exchanges.filter(|exchange| exchange.is_in_flight()).count()
    }
}

impl<T: Real> Plan<T, Cpu> {
    /// A workspace for this plan; see [`Call::workspace`](crate::Call::workspace). Collective; allocates.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_workspace(&self) -> Result<Workspace<T>> {
        Workspace::allocate(&self.comm, self.memory.workspace(), self.shared, "a workspace")
    }
}

/// The arrays that plans of a backend make.
pub type ArrayOf<T, B> = <<B as Backend>::Executor<T> as Executor<T>>::Array;

impl<T: Real, B: Backend> fmt::Debug for Plan<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("comm", &self.comm)
            .field("recipe", &self.recipe)
            .field("memory", &self.memory)
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}
