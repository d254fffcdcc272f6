//! Plans that fill ghost cells.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::ghosts::{Ghosts, PaddedLayout};
use crate::copies::{BoxCopy, CopyPlan, Element, Field, Pattern, Settings, Store};
use crate::{ArrayStrides, Box3, Comm, Error, Fault, Layout, LayoutSpec, Result};

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
pub struct Halo<E: Element> {
    plan: CopyPlan<E>,
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
        Halo::of(comm, padded, &pattern, ghosts, Store { apply: BoxCopy::copy::<E>, planes: None })
    }

    /// A plan of this pattern. Collective.
    pub(super) fn of(
        comm: &Comm,
        padded: Arc<PaddedLayout>,
        pattern: &Arc<dyn Pattern>,
        ghosts: &Ghosts,
        store: Store<E>,
    ) -> Result<Self> {
        const { assert!(size_of::<E>() > 0, "elements have at least one byte") };
        let fields = ghosts.fields;
        let settings = Settings { fields, exchange: ghosts.exchange.as_deref(), in_place: false };
        Ok(Halo { plan: CopyPlan::new(comm, pattern, settings, store)?, padded, fields })
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
        self.take(fields.as_mut())?;
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
        self.take(fields.as_mut())?;
        // SAFETY: the fields were checked and are borrowed until this returns.
        unsafe { self.plan.start()? };
        Ok(HaloInFlight::new(self, fields))
    }

    /// The exchange that was [started](Self::start) and whose [`HaloInFlight`] was forgotten, on the same fields, for callers
    /// that cannot keep a borrow, such as other languages. `None` where none is in flight.
    #[doc(hidden)]
    pub fn resume<F, G>(&mut self, fields: F) -> Option<HaloInFlight<'_, E, F, G>>
    where
        F: AsMut<[G]>,
        G: AsMut<[E]>,
    {
        self.plan.is_in_flight().then(|| HaloInFlight::new(self, fields))
    }

    /// Checks fields and sets them as the arrays of the next run.
    fn take<G: AsMut<[E]>>(&mut self, fields: &mut [G]) -> Result<()> {
        let (rank, volume) = (self.plan.comm().rank(), self.volume());
        let mut checked = match fields.len() == self.fields {
            true => Ok(()),
            false => {
                Err(Error::array("list of fields", rank, self.fields.to_string(), fields.len().to_string()))
            }
        };
        let mut address = |(number, field): (usize, &mut G)| {
            // Each is taken once: what is checked is what is used, whatever the caller's type does.
            let field = field.as_mut();
            if field.len() != volume && checked.is_ok() {
                let shape = self.padded.shape(rank);
                let expected = format!("{volume} elements ({shape:?}, ghost cells included)");
                checked =
                    Err(Error::array("field", rank, expected, format!("{} in field {number}", field.len())));
            }
            self.plan.set_array(number, field.as_mut_ptr() as usize);
        };
        fields.iter_mut().enumerate().take(self.fields).for_each(&mut address);
        self.plan.set_source_bytes(volume * size_of::<E>());
        self.plan.or_fail(checked)
    }

    /// A field, zero at first, that neighbours can load from. Collective; allocates.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_field(&self) -> Result<Field<E>> {
        Field::new(self.plan.comm(), self.volume(), self.plan.shares())
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

impl<E: Element> fmt::Debug for Halo<E> {
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
pub struct HaloInFlight<'a, E: Element, F, G> {
    halo: &'a mut Halo<E>,
    /// `None` once it is finished.
    fields: Option<F>,
    field: PhantomData<G>,
}

impl<'a, E: Element, F: AsMut<[G]>, G: AsMut<[E]>> HaloInFlight<'a, E, F, G> {
    fn new(halo: &'a mut Halo<E>, fields: F) -> Self {
        HaloInFlight { halo, fields: Some(fields), field: PhantomData }
    }

    /// Waits for the neighbours, fills the ghost cells, and returns the fields. Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`Halo::exchange`].
    ///
    /// # Panics
    /// Never: the fields are there until this call.
    pub fn finish(mut self) -> Result<F> {
        let mut fields = self.fields.take().expect("the fields are there until they are returned");
        self.halo.take(fields.as_mut())?;
        // SAFETY: the fields were checked and are borrowed for the call.
        unsafe { self.halo.plan.finish()? };
        Ok(fields)
    }
}

impl<E: Element, F, G> HaloInFlight<'_, E, F, G> {
    /// The fields, with old values in their ghost cells.
    ///
    /// # Panics
    /// Never: the fields are there until [`finish`](Self::finish).
    pub fn fields(&self) -> &F {
        self.fields.as_ref().expect("the fields are there until they are returned")
    }
}

impl<E: Element, F, G> Drop for HaloInFlight<'_, E, F, G> {
    fn drop(&mut self) {
        if self.fields.is_some() {
            self.halo.plan.abort();
        }
    }
}

impl<E: Element, F, G> fmt::Debug for HaloInFlight<'_, E, F, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in flight: {:?}", self.halo)
    }
}
