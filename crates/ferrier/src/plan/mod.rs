//! Plans: recipes bound to ranks and memory.

mod copy;
mod data;
mod draft;
mod geometry;
mod lines;
mod lower;
mod pass;
mod schedule;

use std::time::{Duration, Instant};

use serde::Serialize;

pub use data::{Array, Data, DataMut, Workspace};
pub use draft::{Draft, Planner};
pub(crate) use draft::{agree, threads};

use crate::buffer::Buffer;
use crate::exchange::Way;
use crate::machine::SendPtr;
use crate::pool::Pool;
use crate::transport::{LENT, Lent};
use crate::{Box3, Comm, Error, Layout, Problem, Real, Recipe, Result};
use draft::Variant;
use geometry::Geometry;
use pass::Hand;
use schedule::Before;

/// Bytes that a plan takes on one rank, the caller's arrays not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Arrays between passes.
    pub arrays: usize,
    /// Send and receive buffers.
    pub messages: usize,
    /// What the threads work in.
    pub scratch: usize,
}

impl Memory {
    fn new<T: Real>(variants: &[Variant<T>; 4], scratch: usize) -> Memory {
        let size = size_of::<T>();
        let largest = variants.iter().map(|variant| &variant.areas).max_by_key(|areas| areas.total);
        let (arrays, total) = largest.map_or((0, 0), |areas| (areas.send, areas.total));
        Memory { arrays: arrays * size, messages: (total - arrays) * size, scratch: scratch * size }
    }

    /// All of it.
    pub fn total(&self) -> usize {
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
    comm: Comm,
    recipe: Recipe,
    variants: [Variant<T>; 4],
    memory: Memory,
    scratch: usize,
    shared: bool,
    work: Option<Buffer<T>>,
    pool: Pool,
    hands: Vec<Hand<T>>,
    lent: Vec<Lent>,
    bases: Vec<*mut T>,
    last: usize,
    times: Vec<Duration>,
}

// SAFETY: the pointers among the fields are used only during a call, when they are set anew.
unsafe impl<T: Real> Send for Plan<T> {}

const FORWARD: usize = 0;
const BACKWARD: usize = 1;
const IN_PLACE: usize = 2;

impl<T: Real> Plan<T> {
    /// A plan with everything left to the planner. Collective.
    ///
    /// # Errors
    /// As [`Planner::draft`] and [`Draft::build`].
    pub fn new(comm: &Comm, problem: &Problem) -> Result<Self> {
        Planner::new(problem).draft(comm)?.build()
    }

    fn assemble(draft: Draft<T>, work: Option<Buffer<T>>, pool: Pool, hands: Vec<Hand<T>>) -> Self {
        let Draft { comm, recipe, variants, memory, scratch, .. } = draft;
        let way = crate::exchange::find(&recipe.exchange).map(|member| member.way);
        let shared = comm.size() > 1 && matches!(way, Ok(Way::Shared));
        let most = variants.iter().map(|variant| 2 * variant.passes.len() + 2).max().unwrap_or(0);
        let ranks = comm.size();
        Plan {
            lent: vec![[0; LENT]; ranks],
            bases: vec![std::ptr::null_mut(); ranks * LENT],
            last: FORWARD,
            times: Vec::with_capacity(most),
            comm,
            recipe,
            variants,
            memory,
            scratch,
            shared,
            work,
            pool,
            hands,
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
        self.out_of_place(FORWARD, input, output, None)
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
        self.out_of_place(BACKWARD, input, output, None)
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
        self.out_of_place(FORWARD, input, output, Some(workspace))
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
        self.out_of_place(BACKWARD, input, output, Some(workspace))
    }

    /// Transforms an array in place; see [`make_in_place`](Self::make_in_place)
    /// for how long it must be and how a real one is laid out. Collective;
    /// allocates nothing.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn forward_in_place<A: DataMut<T> + ?Sized>(&mut self, array: &mut A) -> Result<()> {
        self.in_place(FORWARD, array, None)
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
        self.in_place(FORWARD, array, Some(workspace))
    }

    /// Transforms a spectrum back in place. Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn backward_in_place<A: DataMut<T> + ?Sized>(&mut self, array: &mut A) -> Result<()> {
        self.in_place(BACKWARD, array, None)
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
        self.in_place(BACKWARD, array, Some(workspace))
    }

    fn out_of_place<I, O>(
        &mut self,
        direction: usize,
        input: &I,
        output: &mut O,
        workspace: Option<&mut Workspace<T>>,
    ) -> Result<()>
    where
        I: Data<T> + ?Sized,
        O: DataMut<T> + ?Sized,
    {
        let real = self.recipe.is_real();
        let (real_in, real_out) = (real && direction == FORWARD, real && direction == BACKWARD);
        let (kind_in, kind_out) = (input.is_real(), output.is_real());
        // Taken once: what is checked is what is used, whatever the caller's types do.
        let (source, target) = (input.numbers(), output.numbers_mut());
        let variant = &self.variants[direction];
        let checked = self
            .check("input", &variant.input, real_in, source.len(), kind_in)
            .and_then(|()| self.check("output", &variant.output, real_out, target.len(), kind_out))
            .and_then(|()| self.work_area(workspace));
        let work = self.or_fail(checked)?;
        // Passes only load from the input; the pointer is mutable because strips have one kind of pointer.
        let (source, target) = (source.as_ptr().cast_mut(), target.as_mut_ptr());
        // SAFETY: lengths were checked, both arrays are borrowed for the call.
        unsafe { self.execute(direction, source, target, work) }
    }

    fn in_place<A: DataMut<T> + ?Sized>(
        &mut self,
        direction: usize,
        array: &mut A,
        workspace: Option<&mut Workspace<T>>,
    ) -> Result<()> {
        let variant = &self.variants[IN_PLACE + direction];
        let needed = variant.input.volume.max(variant.output.volume) * self.recipe.batch;
        let numbers = array.numbers_mut();
        let checked = match numbers.len() >= needed {
            true => self.work_area(workspace),
            false => Err(Error::Array(format!(
                "a transform in place needs an array of {needed} numbers (a complex one is two) on rank {}, got {}",
                self.comm.rank(),
                numbers.len()
            ))),
        };
        let work = self.or_fail(checked)?;
        let pointer = numbers.as_mut_ptr();
        // SAFETY: the length was checked, the array is borrowed for the call.
        unsafe { self.execute(IN_PLACE + direction, pointer, pointer, work) }
    }

    /// An array of the right kind and length?
    fn check(
        &self,
        side: &str,
        geometry: &Geometry,
        real: bool,
        numbers: usize,
        is_real: Option<bool>,
    ) -> Result<()> {
        let word = |real: bool| if real { "real" } else { "complex" };
        if is_real.is_some_and(|is_real| is_real != real) {
            return Err(Error::Array(format!(
                "the {side} must be {} numbers, got {} ones",
                word(real),
                word(!real)
            )));
        }
        let needed = geometry.volume * self.recipe.batch;
        if numbers != needed {
            let width = geometry::width(real);
            return Err(Error::Array(format!(
                "the {side} of rank {} must be {} {} numbers (its box is {}, times {} arrays), got {}",
                self.comm.rank(),
                needed / width,
                word(real),
                geometry.part,
                self.recipe.batch,
                numbers / width
            )));
        }
        Ok(())
    }

    fn work_area(&self, workspace: Option<&mut Workspace<T>>) -> Result<*mut T> {
        let needed = self.memory.total() / size_of::<T>();
        match (workspace, &self.work) {
            (Some(workspace), _) if workspace.0.len() >= needed => Ok(workspace.0.as_ptr()),
            (Some(workspace), _) => Err(Error::Array(format!(
                "the workspace must have at least {} bytes, got {}",
                self.memory.total(),
                workspace.0.len() * size_of::<T>()
            ))),
            (None, Some(work)) => Ok(work.as_ptr()),
            (None, None) => Err(Error::Array("this plan was built without a workspace: pass one".into())),
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
    unsafe fn execute(&mut self, which: usize, input: *mut T, output: *mut T, work: *mut T) -> Result<()> {
        let own = [input as usize, output as usize, work as usize];
        self.last = which;
        self.times.clear();
        if !self.shared {
            self.lent[self.comm.rank()] = own;
            // SAFETY: the caller's word.
            return unsafe { self.run_passes(which, work) };
        }
        let transport = self.comm.transport().clone();
        let outcome = transport.lend(own, &mut self.lent).and_then(|()| {
            // SAFETY: the caller's word, on every rank; all have come here.
            unsafe { self.run_passes(which, work) }
        });
        // What was lent may be freed by its owner only after this.
        let given = transport.give_back();
        outcome.and(given)
    }

    /// # Safety
    /// As [`execute`](Self::execute), and `lent` is that of this call.
    unsafe fn run_passes(&mut self, which: usize, work: *mut T) -> Result<()> {
        let variant = &self.variants[which];
        for (lent, bases) in self.lent.iter().zip(self.bases.chunks_exact_mut(LENT)) {
            bases.iter_mut().zip(lent).for_each(|(base, address)| *base = *address as *mut T);
        }
        let first = (self.memory.total() - self.memory.scratch) / size_of::<T>();
        for (thread, hand) in self.hands.iter_mut().enumerate() {
            // SAFETY: the workspace was sized for a scratch for each thread.
            let scratch = unsafe { work.add(first + thread * self.scratch) };
            hand.set(&self.bases, scratch, self.scratch);
        }
        let transport = self.comm.transport();
        let hands = SendPtr(self.hands.as_mut_ptr());
        for pass in &variant.passes {
            let start = Instant::now();
            match pass.before {
                Before::Nothing => {}
                Before::Barrier => transport.barrier()?,
                // SAFETY: the areas lie inside the workspace and do not overlap.
                Before::Exchange(number) => unsafe { exchange(variant, number, work)? },
            }
            let middle = Instant::now();
            // SAFETY: the caller's word; the schedule keeps ranks apart by barriers and exchanges.
            let mut run = || unsafe { pass.run(&self.pool, hands) };
            match self.shared {
                true => transport.touching(&mut run)?,
                false => run(),
            }
            self.times.extend([middle - start, middle.elapsed()]);
        }
        Ok(())
    }
}

/// # Safety
/// `work` is the workspace that the variant's areas were laid out for.
unsafe fn exchange<T: Real>(variant: &Variant<T>, number: usize, work: *mut T) -> Result<()> {
    let areas = &variant.areas;
    let mover = &variant.movers[number];
    // SAFETY: both areas lie inside the workspace, apart from each other; any bytes are numbers.
    let (send, recv) = unsafe {
        (
            std::slice::from_raw_parts(work.add(areas.send).cast::<u8>(), mover.send().len),
            std::slice::from_raw_parts_mut(work.add(areas.recv).cast::<u8>(), mover.recv().len),
        )
    };
    mover.run(send, recv)
}

impl<T: Real> Plan<T> {
    /// An array for the input of [`forward`](Self::forward). Collective; allocates.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    pub fn make_input(&self) -> Result<Array<T>> {
        self.make(Some(self.variants[FORWARD].input), None)
    }

    /// An array for the output of [`forward`](Self::forward). Collective; allocates.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    pub fn make_output(&self) -> Result<Array<T>> {
        self.make(None, Some(self.variants[FORWARD].output))
    }

    /// An array for transforms in place. Collective; allocates.
    ///
    /// It has room for the larger of input and output. In a real transform
    /// whose halved axis is the fastest in memory and whole on each rank, real
    /// rows of n are padded to 2 (n/2 + 1) numbers, as FFTW lays them out;
    /// otherwise real numbers lie densely at its start.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    pub fn make_in_place(&self) -> Result<Array<T>> {
        let variant = &self.variants[IN_PLACE + FORWARD];
        self.make(Some(variant.input), Some(variant.output))
    }

    fn make(&self, input: Option<Geometry>, output: Option<Geometry>) -> Result<Array<T>> {
        let (real, complex) = match self.recipe.is_real() {
            true => (input, output),
            // A complex array that is input and output in turn is seen as the input.
            false => (None, input.or(output)),
        };
        let mut array = Array::new(real, complex, self.recipe.batch)?;
        if let (None, Some(input), Some(output)) = (real, input, output)
            && output.volume > input.volume
        {
            array.buffer = Buffer::new(output.volume * self.recipe.batch, "an array of a plan")?;
        }
        Ok(array)
    }

    /// This rank's box of the input of [`forward`](Self::forward).
    pub fn input_box(&self) -> Box3 {
        self.recipe.input.boxes()[self.comm.rank()]
    }

    /// This rank's box of the output of [`forward`](Self::forward).
    pub fn output_box(&self) -> Box3 {
        self.recipe.output.boxes()[self.comm.rank()]
    }

    /// Where the input of [`forward`](Self::forward) lies.
    pub fn input_layout(&self) -> &Layout {
        &self.recipe.input
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
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// How long each step of the last transform took on this rank. Allocates.
    pub fn profile(&self) -> Vec<StepTime> {
        let variant = &self.variants[self.last];
        let mut steps = Vec::new();
        for (pass, times) in variant.passes.iter().zip(self.times.chunks_exact(2)) {
            let mut push = |name: String, time: Duration, bytes: u64, flops: f64| {
                steps.push(StepTime { name, ms: time.as_secs_f64() * 1e3, bytes, flops });
            };
            match pass.before {
                Before::Nothing => {}
                Before::Barrier => push("wait".into(), times[0], 0, 0.0),
                Before::Exchange(number) => {
                    let (name, bytes) = &variant.reshapes[number];
                    push(name.clone(), times[0], *bytes, 0.0);
                }
            }
            push(pass.name.clone(), times[1], pass.bytes, pass.flops);
        }
        steps
    }
}
