//! Plans that fill ghost cells.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::ghosts::{Ghosts, PaddedLayout};
use crate::copies::{
    BoxCopy, Copier, CopyBackend, CopyPlan, CpuCopier, Element, Field, Pattern, Planes, Settings,
};
use crate::{ArrayStrides, Box3, Comm, Cpu, Error, Fault, Layout, LayoutSpec, Result};

/// Fills the ghost cells around the boxes of a layout with the cells of their owners. Made once, run often.
///
/// The array of a rank holds its box and the ghost cells around it, see [`Ghosts`]. Boxes may be of any size, empty or
/// thinner than the ghost cells, and need not form a grid.
///
/// ```
/// use ferrier::{Ghosts, Halo, LayoutSpec};
/// let ghosts = Ghosts::width(1).periodic([true; 3]);
/// ferrier::ranks(4).run(|comm| {
///     let mut halo = Halo::<f64>::new(&comm, [8, 8, 8], &LayoutSpec::bricks(), &ghosts)?;
///     let mut u = halo.make_field()?;
///     let own = halo.local_box();
///     for i in own.lo[0]..own.hi[0] {
///         for j in own.lo[1]..own.hi[1] {
///             for k in own.lo[2]..own.hi[2] {
///                 u[halo.index([i as isize, j as isize, k as isize]).unwrap()] = i as f64;
///             }
///         }
///     }
///     halo.exchange([&mut u])?;
///     // The cell below the box is that of the neighbour, or of the other end.
///     let below = own.lo[0] as isize - 1;
///     let at = halo.index([below, own.lo[1] as isize, own.lo[2] as isize]).unwrap();
///     assert_eq!(u[at], below.rem_euclid(8) as f64);
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
///
/// Fields are in main memory; `Halo<E, Cuda>`, made by `Halo::on`, fills those in the memory of a GPU.
pub struct Halo<E: Element, B: CopyBackend = Cpu> {
    pub(crate) plan: CopyPlan<B::Copier<E>>,
    padded: Arc<PaddedLayout>,
    fields: usize,
}

impl<E: Element> Halo<E> {
    /// Ghost cells around the boxes of `layout`, which tile an array of this shape. Collective; allocates.
    ///
    /// # Errors
    /// Errors of the layout, the widths or the exchange; [`Error::Disagreement`], on every rank, where ranks differ;
    /// where memory cannot be allocated.
    pub fn new(comm: &Comm, shape: [usize; 3], layout: &LayoutSpec, ghosts: &Ghosts) -> Result<Self> {
        let padded = Arc::new(ghosts.bind(comm, shape, layout, size_of::<E>())?);
        let pattern: Arc<dyn Pattern> = padded.clone();
        Halo::of(comm, padded, &pattern, (ghosts, None), || CpuCopier::new(comm, BoxCopy::copy::<E>))
    }

    /// Fills the ghost cells of these fields: as many as the plan has, each of [`volume`](Self::volume) elements.
    /// Collective; allocates nothing.
    ///
    /// Neighbours on the node load from the fields themselves: ranks that are processes only from those that
    /// [`make_field`](Self::make_field) made.
    ///
    /// # Errors
    /// [`Error::Array`] where a field is missing or has another length (the other ranks' calls fail then); an error on
    /// every rank where one fails or leaves.
    pub fn exchange<F, G>(&mut self, mut fields: F) -> Result<()>
    where
        F: AsMut<[G]>,
        G: AsMut<[E]>,
    {
        self.take(fields.as_mut().iter_mut().map(address_of))?;
        // SAFETY: the fields were checked and are borrowed for the call. Copies load from the boxes of ranks and store to
        // their ghost cells, or the other way.
        unsafe { self.plan.run() }
    }

    /// Begins to fill the ghost cells, without a wait for other ranks. What other ranks need is copied out of the
    /// fields first, so that they can be read (not changed) until [`HaloInFlight::finish`] fills the ghost cells.
    /// Collective; allocates nothing.
    ///
    /// ```
    /// # use ferrier::{Ghosts, Halo, LayoutSpec};
    /// # ferrier::ranks(2).run(|comm| {
    /// let mut halo = Halo::<f64>::new(&comm, [8, 8, 8], &LayoutSpec::slabs(0), &Ghosts::width(1))?;
    /// let mut u = vec![1.0; halo.volume()];
    /// let exchange = halo.start([&mut u])?;
    /// // Work on cells that need no ghost cells.
    /// let sum: f64 = exchange.fields()[0].iter().sum();
    /// exchange.finish()?;
    /// # Ok(()) })?;
    /// # Ok::<(), ferrier::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`exchange`](Self::exchange).
    pub fn start<F, G>(&mut self, mut fields: F) -> Result<HaloInFlight<'_, E, F, G>>
    where
        F: AsMut<[G]>,
        G: AsMut<[E]>,
    {
        self.take(fields.as_mut().iter_mut().map(address_of))?;
        // SAFETY: the fields were checked and are borrowed until this returns.
        unsafe { self.plan.start()? };
        Ok(HaloInFlight::new(self, fields))
    }

    /// A field, zero at first, that neighbours can load from. Collective; allocates.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_field(&self) -> Result<Field<E>> {
        Field::new(self.plan.comm(), self.volume(), self.plan.shares())
    }
}

/// The address of a field, and its elements. Each is taken once: what is checked is what is used, whatever the caller's type
/// does.
fn address_of<E, G: AsMut<[E]>>(field: &mut G) -> (usize, usize) {
    let field = field.as_mut();
    (field.as_mut_ptr() as usize, field.len())
}

impl<E: Element, B: CopyBackend> Halo<E, B> {
    /// A plan of this pattern; `planes`: those of the target, where copies have targets in common. Collective.
    pub(crate) fn of(
        comm: &Comm,
        padded: Arc<PaddedLayout>,
        pattern: &Arc<dyn Pattern>,
        (ghosts, planes): (&Ghosts, Option<Planes>),
        copier: impl Fn() -> Result<B::Copier<E>>,
    ) -> Result<Self> {
        const { assert!(size_of::<E>() > 0, "elements have at least one byte") };
        let fields = ghosts.fields;
        let settings = Settings { fields, exchange: ghosts.exchange.as_deref(), in_place: false, planes };
        Ok(Halo { plan: CopyPlan::new(comm, pattern, settings, copier)?, padded, fields })
    }

    /// Checks fields, given by address and elements, and sets them as the arrays of the next run.
    pub(crate) fn take(&mut self, fields: impl ExactSizeIterator<Item = (usize, usize)>) -> Result<()> {
        let (rank, volume) = (self.plan.comm().rank(), self.volume());
        let alignment = self.plan.copier.alignment();
        let mut checked = match fields.len() == self.fields {
            true => Ok(()),
            false => {
                Err(Error::array("list of fields", rank, self.fields.to_string(), fields.len().to_string()))
            }
        };
        for (number, (address, len)) in fields.enumerate().take(self.fields) {
            if len != volume && checked.is_ok() {
                let shape = self.padded.shape(rank);
                let expected = format!("{volume} elements ({shape:?}, ghost cells included)");
                checked = Err(Error::array("field", rank, expected, format!("{len} in field {number}")));
            }
            if !address.is_multiple_of(alignment) && checked.is_ok() {
                let expected = format!("an address that is a multiple of {alignment} bytes");
                checked =
                    Err(Error::array("field", rank, expected, format!("{address:#x} of field {number}")));
            }
            self.plan.set_array(number, address);
        }
        self.plan.set_source_bytes(volume * size_of::<E>());
        self.plan.or_fail(checked)
    }

    /// The exchange that was [started](Halo::start) and whose [`HaloInFlight`] was forgotten, on the same fields, for callers
    /// that cannot keep a borrow, such as other languages. `None` where none is in flight.
    #[doc(hidden)]
    pub fn resume<F, G>(&mut self, fields: F) -> Option<HaloInFlight<'_, E, F, G, B>> {
        self.plan.is_in_flight().then(|| HaloInFlight::new(self, fields))
    }

    /// This rank's box, without ghost cells.
    pub fn local_box(&self) -> Box3 {
        self.padded.own(self.plan.comm().rank())
    }

    /// The layout of the boxes.
    pub fn layout(&self) -> &Layout {
        &self.padded.layout
    }

    /// The shape of this rank's fields, ghost cells included; all zero where its box is empty.
    pub fn shape(&self) -> [usize; 3] {
        self.padded.shape(self.plan.comm().rank())
    }

    /// Distance in elements between neighbours on each axis of a field.
    pub fn strides(&self) -> [usize; 3] {
        self.padded.strides(self.plan.comm().rank())
    }

    /// Where this rank's box lies in a field, for plans that transform it there, between its ghost cells.
    ///
    /// ```
    /// use ferrier::{Complex, Ghosts, Halo, LayoutSpec, Plan, Problem};
    /// ferrier::ranks(2).run(|comm| {
    ///     let layout = LayoutSpec::bricks();
    ///     let halo = Halo::<f64>::new(&comm, [8, 8, 8], &layout, &Ghosts::width(2))?;
    ///     let problem = Problem::r2c([8, 8, 8]).input(layout).input_strides(halo.array_strides());
    ///     let mut plan = Plan::<f64>::new(&comm, &problem)?;
    ///     let field = halo.make_field()?;
    ///     plan.forward(&field[..], &mut vec![Complex::default(); plan.output_len()])?;
    ///     Ok(())
    /// })?;
    /// # Ok::<(), ferrier::Error>(())
    /// ```
    pub fn array_strides(&self) -> ArrayStrides {
        let before = self.padded.widths.map(|[low, _]| low);
        ArrayStrides::inside(self.shape(), before, self.padded.order())
    }

    /// The elements of a field of this rank, ghost cells included.
    pub fn volume(&self) -> usize {
        self.padded.volume(self.plan.comm().rank())
    }

    /// Where a global index lies in a field of this rank, if it is in its box or its ghost cells. Indices of ghost
    /// cells may be negative or above the shape.
    pub fn index(&self, index: [isize; 3]) -> Option<usize> {
        self.padded.index(self.plan.comm().rank(), index)
    }

    /// Bytes that it takes on this rank, the caller's fields not counted.
    pub fn memory(&self) -> usize {
        self.plan.memory()
    }

    /// Substitutions that Ferrier made.
    pub fn notes(&self) -> &[String] {
        self.plan.notes()
    }

    /// Makes the next exchange fail while it is in flight, for tests of the library itself.
    #[doc(hidden)]
    pub fn inject_fault(&mut self, fault: Fault) {
        self.plan.inject_fault(fault);
    }
}

impl<E: Element, B: CopyBackend> fmt::Debug for Halo<E, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (grid, widths) = (self.padded.layout.grid_text(), self.padded.widths);
        write!(f, "ghost cells {widths:?} of {grid}, {} fields", self.fields)
    }
}

/// Ghost cells on their way, made by [`Halo::start`]. The fields can be read meanwhile; their ghost cells have the old
/// values.
///
/// Dropped without [`finish`](Self::finish), it leaves the ghost cells as they were; other ranks are not disturbed.
/// Since other ranks load from copies, not from the fields, it may even be forgotten.
#[must_use = "ghost cells are filled by `finish`"]
pub struct HaloInFlight<'a, E: Element, F, G, B: CopyBackend = Cpu> {
    pub(crate) halo: &'a mut Halo<E, B>,
    /// `None` once it is finished.
    pub(crate) fields: Option<F>,
    field: PhantomData<G>,
}

impl<E: Element, F: AsMut<[G]>, G: AsMut<[E]>> HaloInFlight<'_, E, F, G> {
    /// Waits for the neighbours, fills the ghost cells, and returns the fields. Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`Halo::exchange`].
    ///
    /// # Panics
    /// Never: the fields are there until this call.
    pub fn finish(mut self) -> Result<F> {
        let mut fields = self.fields.take().expect("the fields are there until they are returned");
        self.halo.take(fields.as_mut().iter_mut().map(address_of))?;
        // SAFETY: the fields were checked and are borrowed for the call.
        unsafe { self.halo.plan.finish()? };
        Ok(fields)
    }
}

impl<'a, E: Element, F, G, B: CopyBackend> HaloInFlight<'a, E, F, G, B> {
    pub(crate) fn new(halo: &'a mut Halo<E, B>, fields: F) -> Self {
        HaloInFlight { halo, fields: Some(fields), field: PhantomData }
    }

    /// The fields, with old values in their ghost cells.
    ///
    /// # Panics
    /// Never: the fields are there until [`finish`](Self::finish).
    pub fn fields(&self) -> &F {
        self.fields.as_ref().expect("the fields are there until they are returned")
    }
}

impl<E: Element, F, G, B: CopyBackend> Drop for HaloInFlight<'_, E, F, G, B> {
    fn drop(&mut self) {
        if self.fields.is_some() {
            self.halo.plan.abort();
        }
    }
}

impl<E: Element, F, G, B: CopyBackend> fmt::Debug for HaloInFlight<'_, E, F, G, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in flight: {:?}", self.halo)
    }
}
