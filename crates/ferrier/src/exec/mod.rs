//! Plans: recipes bound to ranks and memory.

mod apply;
mod arrays;
mod certificate;
pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod data;
mod events;
mod operator;
mod progress;
mod run;

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

pub use certificate::Certificate;
pub(crate) use certificate::Ledger;
pub(crate) use data::Rows;
pub use data::{Array, Data, DataMut, Workspace};
pub use events::{Event, EventKind};
pub use operator::{Formula, Modes, Operator, Run, Tables, pointwise};
pub(crate) use progress::ProgressThread;

use crate::machine::buffer::Buffer;
use crate::machine::pool::Pool;
use crate::planner::{Draft, OnlineTuner, Planner};
use crate::transport::{EXPOSED, Exposed};
use crate::{Comm, Error, Problem, Real, Recipe, Result};
use cpu::bind::{Variant, lends};
use cpu::coding::WorkPointers;
use cpu::pass::WorkerState;
use events::{StepTiming, Tests};
use ferrier_codec::Loss;
use ferrier_plan::geometry::{self, Geometry};
use ferrier_plan::messages::Mechanism;

/// Bytes that a plan takes on one rank, the caller's arrays not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Arrays between passes.
    pub arrays: usize,
    /// Send and receive buffers.
    pub messages: usize,
    /// What the threads work in.
    pub scratch: usize,
    /// What other ranks put into; no workspace replaces it.
    pub window: usize,
}

impl Memory {
    pub(crate) fn new<T: Real>(variants: &[Variant<T>], scratch: usize) -> Memory {
        let size = size_of::<T>();
        let largest = variants.iter().map(|variant| &variant.areas).max_by_key(|areas| areas.total);
        let (arrays, total) = largest.map_or((0, 0), |areas| (areas.arrays, areas.total));
        let movers = variants.iter().flat_map(|variant| variant.movers.iter());
        let window = movers.map(|mover| mover.window()).max().unwrap_or(0);
        Memory { arrays: arrays * size, messages: (total - arrays) * size, scratch: scratch * size, window }
    }

    /// All of it.
    pub fn total(&self) -> usize {
        self.arrays + self.messages + self.scratch + self.window
    }

    /// What a workspace must have.
    pub(crate) fn workspace(&self) -> usize {
        self.arrays + self.messages + self.scratch
    }
}

/// How long a step of the last transform took on this rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepTime {
    /// The step in words.
    pub name: String,
    /// Milliseconds.
    pub ms: f64,
    /// Bytes loaded and stored in a pass, or taken from other ranks in an exchange.
    pub bytes: u64,
    /// Floating-point operations, by the usual count of 5 n log2 n a line.
    pub flops: f64,
}

/// An executable transform that owns its buffers. Made once, run often.
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
pub struct Plan<T: Real> {
    pub(crate) comm: Comm,
    pub(crate) recipe: Recipe,
    pub(crate) mechanism: Mechanism,
    pub(crate) variants: Vec<Variant<T>>,
    pub(crate) private: Vec<usize>,
    pub(crate) memory: Memory,
    pub(crate) scratch: usize,
    pub(crate) notes: Vec<String>,
    pub(crate) shared: bool,
    pub(crate) work: Option<Buffer<T>>,
    pub(crate) pool: Pool,
    pub(crate) hands: Vec<WorkerState<T>>,
    pub(crate) lent: Vec<Exposed>,
    pub(crate) bases: Vec<*mut T>,
    pub(crate) last: usize,
    /// When the last call began, and when each of its steps ran.
    pub(crate) began: Instant,
    pub(crate) spells: Vec<StepTiming>,
    pub(crate) tests: Tests,
    /// Movers that have started and not landed.
    pub(crate) flying: Vec<usize>,
    /// Looks after them, where passes do not.
    pub(crate) lookout: Option<ProgressThread>,
    /// Looks for a faster mechanism, where that was asked for.
    pub(crate) apprentice: Option<OnlineTuner>,
    pub(crate) grounds: Option<Arc<WorkPointers<T>>>,
    pub(crate) ledger: Option<Ledger<T>>,
    pub(crate) tolerance: Option<f64>,
    /// Of the last call: what was lost in each reshape, what this rank sent.
    pub(crate) losses: Vec<Loss>,
    pub(crate) sent: u64,
    pub(crate) certificate: Option<Certificate>,
}

// SAFETY: the pointers among the fields are used only during a call, when they are set anew.
unsafe impl<T: Real> Send for Plan<T> {}

pub(crate) const FORWARD: usize = 0;
pub(crate) const BACKWARD: usize = 1;
pub(crate) const IN_PLACE: usize = 2;
pub(crate) const ROUND: usize = 4;

impl<T: Real> Plan<T> {
    /// A plan with everything left to the planner. Collective.
    ///
    /// # Errors
    /// As [`Planner::draft`] and [`Draft::build`].
    pub fn new(comm: &Comm, problem: &Problem) -> Result<Self> {
        Planner::new(problem).draft(comm)?.build()
    }

    pub(crate) fn assemble(
        draft: Draft<T>,
        work: Option<Buffer<T>>,
        pool: Pool,
        hands: Vec<WorkerState<T>>,
        lookout: Option<ProgressThread>,
    ) -> Self {
        let Draft { comm, recipe, mechanism, variants, private, memory, scratch, notes, apprentice, .. } =
            draft;
        let apprentice = apprentice.filter(|_| work.is_some());
        let Draft { grounds, ledger, tolerance, .. } = draft;
        let reshapes = variants.iter().map(|variant| variant.gains.len()).max().unwrap_or(0);
        let lends = variants.iter().any(|variant| lends(&variant.movers));
        let shared = comm.size() > 1 && (mechanism.shares() || lends);
        let most = variants.iter().map(|variant| variant.steps.len()).max().unwrap_or(0);
        let ranks = comm.size();
        Plan {
            lent: vec![[0; EXPOSED]; ranks],
            bases: vec![std::ptr::null_mut(); ranks * EXPOSED],
            last: FORWARD,
            began: Instant::now(),
            spells: Vec::with_capacity(most),
            tests: Tests::default(),
            flying: Vec::with_capacity(most),
            grounds,
            ledger,
            tolerance,
            losses: vec![Loss::NONE; reshapes],
            sent: 0,
            certificate: None,
            comm,
            recipe,
            mechanism,
            variants,
            private,
            memory,
            scratch,
            notes,
            shared,
            work,
            pool,
            hands,
            lookout,
            apprentice,
        }
    }

    /// Transforms `input` to `output`. Collective; allocates nothing; leaves
    /// the input as it was.
    ///
    /// # Errors
    /// [`Error::Array`] where an array is not the one the plan was made for
    /// (the group fails then, so that nobody waits); an error on every rank
    /// where one fails or leaves.
    pub fn forward<I, O>(&mut self, input: &I, output: &mut O) -> Result<()>
    where
        I: Data<T> + ?Sized,
        O: DataMut<T> + ?Sized,
    {
        self.as_trial(FORWARD, |plan| plan.out_of_place(FORWARD, input, output, None, None))
    }

    /// Transforms `input`, laid out as the output of [`forward`](Self::forward), back. Collective;
    /// allocates nothing; leaves the input as it was.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn backward<I, O>(&mut self, input: &I, output: &mut O) -> Result<()>
    where
        I: Data<T> + ?Sized,
        O: DataMut<T> + ?Sized,
    {
        self.as_trial(BACKWARD, |plan| plan.out_of_place(BACKWARD, input, output, None, None))
    }

    /// Lets the threads of the plan sleep until its next transform; see [`Pool::rest`].
    pub(crate) fn rest(&self) {
        self.pool.rest();
    }

    /// [`forward`](Self::forward) with the caller's workspace instead of the plan's.
    ///
    /// # Errors
    /// As [`forward`](Self::forward), and where the workspace is too small.
    pub fn forward_using<I, O>(
        &mut self,
        input: &I,
        output: &mut O,
        workspace: &mut Workspace<T>,
    ) -> Result<()>
    where
        I: Data<T> + ?Sized,
        O: DataMut<T> + ?Sized,
    {
        self.out_of_place(FORWARD, input, output, Some(workspace), None)
    }

    /// [`backward`](Self::backward) with the caller's workspace instead of the plan's.
    ///
    /// # Errors
    /// As [`forward`](Self::forward), and where the workspace is too small.
    pub fn backward_using<I, O>(
        &mut self,
        input: &I,
        output: &mut O,
        workspace: &mut Workspace<T>,
    ) -> Result<()>
    where
        I: Data<T> + ?Sized,
        O: DataMut<T> + ?Sized,
    {
        self.out_of_place(BACKWARD, input, output, Some(workspace), None)
    }

    /// Transforms an array in place; see [`make_in_place`](Self::make_in_place)
    /// for how long it must be and how a real one is laid out. Collective;
    /// allocates nothing.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn forward_in_place<A: DataMut<T> + ?Sized>(&mut self, array: &mut A) -> Result<()> {
        self.as_trial(IN_PLACE + FORWARD, |plan| plan.in_place(IN_PLACE + FORWARD, array, None, None))
    }

    /// [`forward_in_place`](Self::forward_in_place) with the caller's workspace instead of the plan's.
    ///
    /// # Errors
    /// As [`forward`](Self::forward), and where the workspace is too small.
    pub fn forward_in_place_using<A: DataMut<T> + ?Sized>(
        &mut self,
        array: &mut A,
        workspace: &mut Workspace<T>,
    ) -> Result<()> {
        self.in_place(IN_PLACE + FORWARD, array, Some(workspace), None)
    }

    /// Transforms a spectrum back in place. Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn backward_in_place<A: DataMut<T> + ?Sized>(&mut self, array: &mut A) -> Result<()> {
        self.as_trial(IN_PLACE + BACKWARD, |plan| plan.in_place(IN_PLACE + BACKWARD, array, None, None))
    }

    /// [`backward_in_place`](Self::backward_in_place) with the caller's workspace instead of the plan's.
    ///
    /// # Errors
    /// As [`forward`](Self::forward), and where the workspace is too small.
    pub fn backward_in_place_using<A: DataMut<T> + ?Sized>(
        &mut self,
        array: &mut A,
        workspace: &mut Workspace<T>,
    ) -> Result<()> {
        self.in_place(IN_PLACE + BACKWARD, array, Some(workspace), None)
    }

    fn out_of_place<I, O>(
        &mut self,
        which: usize,
        input: &I,
        output: &mut O,
        workspace: Option<&mut Workspace<T>>,
        operator: Option<&dyn Operator<T>>,
    ) -> Result<()>
    where
        I: Data<T> + ?Sized,
        O: DataMut<T> + ?Sized,
    {
        let (kind_in, kind_out) = (input.is_real(), output.is_real());
        // Taken once: what is checked is what is used, whatever the caller's types do.
        let (source, target) = (input.numbers(), output.numbers_mut());
        let variant = &self.variants[which];
        let [real_in, real_out] = variant.real;
        let checked = self
            .check("input", &variant.input, real_in, source.len(), kind_in)
            .and_then(|()| self.check("output", &variant.output, real_out, target.len(), kind_out))
            .and_then(|()| self.work_area(workspace));
        let work = self.or_fail(checked)?;
        // Passes only load from the input; the pointer is mutable because strips have one kind of pointer.
        let (source, target) = (source.as_ptr().cast_mut(), target.as_mut_ptr());
        // SAFETY: lengths were checked, both arrays are borrowed for the call.
        unsafe { self.execute(which, source, target, work, operator) }
    }

    fn in_place<A: DataMut<T> + ?Sized>(
        &mut self,
        which: usize,
        array: &mut A,
        workspace: Option<&mut Workspace<T>>,
        operator: Option<&dyn Operator<T>>,
    ) -> Result<()> {
        let variant = &self.variants[which];
        let needed = variant.input.volume.max(variant.output.volume) * self.recipe.batch;
        let numbers = array.numbers_mut();
        let checked = match numbers.len() >= needed {
            true => self.work_area(workspace),
            false => Err(Error::array(
                "array",
                self.comm.rank(),
                format!("at least {needed} scalars (a complex element is two) for a transform in place"),
                numbers.len().to_string(),
            )),
        };
        let work = self.or_fail(checked)?;
        let pointer = numbers.as_mut_ptr();
        // SAFETY: the length was checked, the array is borrowed for the call.
        unsafe { self.execute(which, pointer, pointer, work, operator) }
    }

    /// An array of the right kind and length?
    fn check(
        &self,
        side: &'static str,
        geometry: &Geometry,
        real: bool,
        numbers: usize,
        is_real: Option<bool>,
    ) -> Result<()> {
        let word = |real: bool| if real { "real" } else { "complex" };
        if is_real.is_some_and(|is_real| is_real != real) {
            return Err(Error::array(side, self.comm.rank(), word(real), word(!real)));
        }
        let needed = geometry.volume * self.recipe.batch;
        if numbers != needed {
            let width = geometry::width(real);
            let (elements, word, batch) = (needed / width, word(real), self.recipe.batch);
            let expected =
                format!("{elements} {word} elements (its box is {}, times {batch} arrays)", geometry.part);
            return Err(Error::array(side, self.comm.rank(), expected, (numbers / width).to_string()));
        }
        Ok(())
    }

    fn work_area(&self, workspace: Option<&mut Workspace<T>>) -> Result<*mut T> {
        let needed = self.memory.workspace() / size_of::<T>();
        match (workspace, &self.work) {
            (Some(workspace), _) if workspace.0.len() >= needed => Ok(workspace.0.as_ptr()),
            (Some(workspace), _) => Err(Error::array(
                "workspace",
                self.comm.rank(),
                format!("at least {} bytes", self.memory.workspace()),
                (workspace.0.len() * size_of::<T>()).to_string(),
            )),
            (None, Some(work)) => Ok(work.as_ptr()),
            (None, None) => Err(Error::array(
                "workspace",
                self.comm.rank(),
                "passed to a plan that was built without one",
                "none",
            )),
        }
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
    /// The arrays are as long as the variant's geometries say, the input is
    /// not written to by others, the output not touched.
    unsafe fn execute(
        &mut self,
        which: usize,
        input: *mut T,
        output: *mut T,
        work: *mut T,
        operator: Option<&dyn Operator<T>>,
    ) -> Result<()> {
        let own = [input as usize, output as usize, work as usize];
        self.last = which;
        self.began = Instant::now();
        self.spells.clear();
        let rank = self.comm.rank();
        if !self.shared {
            self.lent[rank] = own;
            // SAFETY: the caller's word.
            return unsafe {
                self.run_passes(which, work, operator).and_then(|()| self.certify(output, operator.is_some()))
            };
        }
        let transport = self.comm.transport().clone();
        let outcome = transport.expose(self.to_lend(which, own), &mut self.lent).and_then(|reached| {
            self.lent[rank] = own;
            self.last = if reached { which } else { self.private[which] };
            // SAFETY: the caller's word, on every rank; all have come here.
            unsafe { self.run_passes(self.last, work, operator) }
        });
        // What was lent may be freed by its owner only after this.
        let given = transport.unexpose();
        outcome.and(given)?;
        // SAFETY: the caller's word.
        unsafe { self.certify(output, operator.is_some()) }
    }

    /// Of these pointers those that other ranks may need.
    fn to_lend(&self, which: usize, [input, output, work]: Exposed) -> Exposed {
        let variant = &self.variants[which];
        let ends = matches!(self.mechanism, Mechanism::SharedMemory);
        let lent = |geometry: &Geometry, pointer| if ends && geometry.volume > 0 { pointer } else { 0 };
        [lent(&variant.input, input), lent(&variant.output, output), work]
    }
}
