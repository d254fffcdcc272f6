//! Redistribution of arrays of any element type from one layout to another.

use std::fmt;
use std::sync::Arc;

use crate::copies::{
    BoxCopy, Copier, CopyBackend, CopyPlan, CpuCopier, Element, Field, Pattern, Place, Route, Settings,
};
use crate::planner::{compare_texts, default_exchange, gather_boxes, gather_strides};
use crate::{Box3, Choice, Comm, Cpu, Error, Fault, Kind, Layout, LayoutSpec, Problem, Result};
use ferrier_plan::StridesSpec;
use ferrier_plan::geometry::Geometry;

/// Takes arrays from one layout to another, unchanged: any element type, every exchange. Made once, run often.
///
/// Batches and strides are those of the problem, as in plans. Arrays are in main memory; `Redistribution<E, Cuda>`, made by
/// `Redistribution::on`, takes those in the memory of a GPU.
///
/// ```
/// use ferrier::{LayoutSpec, Order, Problem, Redistribution};
/// let shape = [6, 5, 4];
/// let problem = Problem::redistribute(shape)
///     .input(LayoutSpec::slabs(0))
///     .output(LayoutSpec::pencils(0).order(Order::F));
/// ferrier::ranks(3).run(|comm| {
///     let mut redistribution = Redistribution::<[u8; 3]>::new(&comm, &problem)?;
///     let mut slab = redistribution.make_input()?;
///     slab.fill([1, 2, 3]);
///     let mut pencils = redistribution.make_output()?;
///     redistribution.run(&slab, &mut pencils)?;
///     assert!(pencils.iter().all(|pixel| *pixel == [1, 2, 3]));
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
pub struct Redistribution<E: Element, B: CopyBackend = Cpu> {
    pub(crate) plan: CopyPlan<B::Copier<E>>,
    layouts: Arc<Layouts>,
}

/// The arrays of all ranks before or after.
struct ArraysEnd {
    layout: Layout,
    strides: StridesSpec,
}

impl ArraysEnd {
    /// The memory of a rank's array, in elements.
    fn geometry(&self, rank: usize) -> Geometry {
        let part = self.layout.boxes()[rank];
        match self.strides.of(rank) {
            Some(strides) => Geometry::strided(part, strides, true),
            None => Geometry::dense(part, self.layout.order(), true),
        }
    }

    fn place(&self, rank: usize, part: &Box3) -> Place {
        let geometry = self.geometry(rank);
        Place { offset: geometry.offset(part.lo), strides: geometry.strides }
    }
}

/// The copies from one layout to another.
struct Layouts {
    input: ArraysEnd,
    output: ArraysEnd,
    batch: usize,
}

impl Layouts {
    fn copy(&self, part: &Box3, from: usize, to: usize) -> BoxCopy {
        BoxCopy { shape: part.shape(), from: self.input.place(from, part), to: self.output.place(to, part) }
    }
}

impl Pattern for Layouts {
    fn ranks(&self) -> usize {
        self.input.layout.ranks()
    }

    fn incoming(&self, rank: usize) -> Vec<Route> {
        let parts = self.input.layout.intersections(&self.output.layout.boxes()[rank]).into_iter();
        parts.map(|(peer, part)| Route { peer, copies: vec![self.copy(&part, peer, rank)] }).collect()
    }

    fn outgoing(&self, rank: usize) -> Vec<Route> {
        let parts = self.output.layout.intersections(&self.input.layout.boxes()[rank]).into_iter();
        parts.map(|(peer, part)| Route { peer, copies: vec![self.copy(&part, rank, peer)] }).collect()
    }
}

impl<E: Element> Redistribution<E> {
    /// From the input layout of the problem to its output layout. Collective; allocates.
    ///
    /// # Errors
    /// [`Error::Problem`] unless it is a problem of [`Problem::redistribute`]; errors of its layouts;
    /// [`Error::Disagreement`], on every rank, where ranks differ; where memory cannot be allocated.
    pub fn new(comm: &Comm, problem: &Problem) -> Result<Self> {
        Self::with(comm, problem, &Choice::default())
    }

    /// The same, with the exchange and the threads of a choice; other fields of it do not matter.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`Error::UnknownName`] or [`Error::Choice`] for an exchange that does not exist or
    /// cannot be used on these nodes.
    pub fn with(comm: &Comm, problem: &Problem, choice: &Choice) -> Result<Self> {
        let between_nodes = (comm.node_count() > 1).then(|| default_exchange(comm, false));
        let exchange = choice.exchange.as_deref().or(between_nodes);
        Self::of(comm, problem, (choice, exchange), |comm| CpuCopier::new(comm, BoxCopy::copy::<E>))
    }

    /// Copies `input` to `output`. Collective; allocates nothing.
    ///
    /// # Errors
    /// [`Error::Array`] where an array does not have the length of its box times the batch, or is shorter than the
    /// strides of the problem need (the other ranks' calls fail then); an error on every rank where one fails or leaves.
    pub fn run(&mut self, input: &[E], output: &mut [E]) -> Result<()> {
        self.take([input.as_ptr() as usize, output.as_mut_ptr() as usize], [input.len(), output.len()])?;
        // SAFETY: lengths were checked; both are borrowed, one of them mutably, so that they do not overlap.
        unsafe { self.plan.run() }
    }

    /// Redistributes an array in place. It has room for the larger of input and output, which begin at its start.
    /// Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_in_place(&mut self, array: &mut [E]) -> Result<()> {
        self.take_one(array.as_mut_ptr() as usize, array.len())?;
        // SAFETY: the length was checked. The array is copied to segments before anything is stored to it.
        unsafe {
            self.plan.start()?;
            self.plan.finish()
        }
    }

    /// An array for the input. Collective; allocates.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_input(&self) -> Result<Field<E>> {
        Field::new(self.plan.comm(), self.len(0), self.plan.shares())
    }

    /// An array for the output. Collective; allocates.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_output(&self) -> Result<Field<E>> {
        Field::new(self.plan.comm(), self.len(1), self.plan.shares())
    }
}

impl<E: Element, B: CopyBackend> Redistribution<E, B> {
    /// Collective. `exchange`: the one to use, if not the default of copies.
    pub(crate) fn of(
        comm: &Comm,
        problem: &Problem,
        (choice, exchange): (&Choice, Option<&str>),
        copier: impl Fn(&Comm) -> Result<B::Copier<E>>,
    ) -> Result<Self> {
        const { assert!(size_of::<E>() > 0, "elements have at least one byte") };
        let layouts = Arc::new(layouts::<E>(comm, problem, choice)?);
        let comm = comm.clone().with_threads(choice.threads.unwrap_or(comm.threads()));
        let settings = Settings { fields: layouts.batch, exchange, in_place: true, planes: None };
        let pattern: Arc<dyn Pattern> = layouts.clone();
        let plan = CopyPlan::new(&comm, &pattern, settings, || copier(&comm))?;
        Ok(Redistribution { plan, layouts })
    }

    /// Checks input and output, given by address and elements, and sets them as the arrays of the next run.
    pub(crate) fn take(&mut self, starts: [usize; 2], lens: [usize; 2]) -> Result<()> {
        let (ends, layouts) = (self.geometries(), &self.layouts);
        let checked = self.check("input", (starts[0], lens[0]), &ends[0], !layouts.input.strides.is_dense());
        let checked = checked.and_then(|()| {
            self.check("output", (starts[1], lens[1]), &ends[1], !layouts.output.strides.is_dense())
        });
        self.plan.or_fail(checked)?;
        self.set(starts, ends);
        Ok(())
    }

    /// The same for an array that is input and output.
    pub(crate) fn take_one(&mut self, start: usize, len: usize) -> Result<()> {
        let ends = self.geometries();
        let checked = ends.iter().try_for_each(|end| self.check("array", (start, len), end, true));
        self.plan.or_fail(checked)?;
        self.set([start; 2], ends);
        Ok(())
    }

    fn geometries(&self) -> [Geometry; 2] {
        [&self.layouts.input, &self.layouts.output].map(|end| end.geometry(self.plan.comm().rank()))
    }

    fn set(&mut self, starts: [usize; 2], ends: [Geometry; 2]) {
        let batch = 0..self.layouts.batch;
        let [sources, targets] = [0, 1].map(|end| {
            let (start, distance) = (starts[end], ends[end].batch * size_of::<E>());
            batch.clone().map(move |array| start + array * distance)
        });
        self.plan.set_arrays(sources, targets, ends[0].scalars(1) * size_of::<E>());
    }

    fn check(
        &self,
        argument: &'static str,
        (start, len): (usize, usize),
        end: &Geometry,
        or_more: bool,
    ) -> Result<()> {
        let (batch, needed) = (self.layouts.batch, end.scalars(self.layouts.batch));
        let (rank, alignment) = (self.plan.comm().rank(), self.plan.copier.alignment());
        if len != needed && !(or_more && len > needed) {
            let least = if or_more { "at least " } else { "" };
            let expected =
                format!("{least}{needed} elements (its box is {}, times {batch} arrays)", end.part);
            return Err(Error::array(argument, rank, expected, len.to_string()));
        }
        if !start.is_multiple_of(alignment) {
            let expected = format!("an address that is a multiple of {alignment} bytes");
            return Err(Error::array(argument, rank, expected, format!("{start:#x}")));
        }
        Ok(())
    }

    /// The elements of an array at this end.
    pub(crate) fn len(&self, end: usize) -> usize {
        self.geometries()[end].scalars(self.layouts.batch)
    }

    /// This rank's box of the input.
    pub fn input_box(&self) -> Box3 {
        self.layouts.input.layout.boxes()[self.plan.comm().rank()]
    }

    /// This rank's box of the output.
    pub fn output_box(&self) -> Box3 {
        self.layouts.output.layout.boxes()[self.plan.comm().rank()]
    }

    /// The layout of the input.
    pub fn input_layout(&self) -> &Layout {
        &self.layouts.input.layout
    }

    /// The layout of the output.
    pub fn output_layout(&self) -> &Layout {
        &self.layouts.output.layout
    }

    /// Bytes that it takes on this rank, the caller's arrays not counted.
    pub fn memory(&self) -> usize {
        self.plan.memory()
    }

    /// Substitutions that Ferrier made.
    pub fn notes(&self) -> &[String] {
        self.plan.notes()
    }

    /// Makes the next run fail while it is in flight, for tests of the library itself.
    #[doc(hidden)]
    pub fn inject_fault(&mut self, fault: Fault) {
        self.plan.inject_fault(fault);
    }
}

impl<E: Element, B: CopyBackend> fmt::Debug for Redistribution<E, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [input, output] = [self.input_layout(), self.output_layout()].map(Layout::grid_text);
        write!(f, "redistribution from {input} to {output} of {} bytes per element", size_of::<E>())
    }
}

/// The layouts of a problem, the same on every rank. Collective.
fn layouts<E: Element>(comm: &Comm, problem: &Problem, choice: &Choice) -> Result<Layouts> {
    let mut problem = problem.clone();
    for spec in [&mut problem.input, &mut problem.output] {
        gather_boxes(comm, spec)?;
    }
    for spec in [&mut problem.input_strides, &mut problem.output_strides] {
        gather_strides(comm, spec)?;
    }
    compare_texts(comm, &format!("{} bytes per element {problem:?} {choice:?}", size_of::<E>()))?;
    problem.check()?;
    problem.check_strides(comm.size())?;
    if problem.kinds() != [Kind::Identity; 3] || problem.spectrum_shape() != problem.shape() {
        return Err(Error::problem(
            "kinds",
            "a redistribution transforms nothing: make its problem by `Problem::redistribute`",
        ));
    }
    let end = |spec: &LayoutSpec, strides: StridesSpec| -> Result<ArraysEnd> {
        Ok(ArraysEnd { layout: spec.layout(problem.shape(), comm.size())?, strides })
    };
    Ok(Layouts {
        input: end(&problem.input, problem.input_strides.clone())?,
        output: end(&problem.output, problem.output_strides.clone())?,
        batch: problem.batch,
    })
}
