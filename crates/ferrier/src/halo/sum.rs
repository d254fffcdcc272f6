//! Plans that add ghost cells to the cells of their owners.

use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

use super::ghosts::{Ghosts, PaddedLayout};
use super::pattern::Reversed;
use super::plan::Halo;
use crate::copies::{BoxCopy, CopyBackend, CpuCopier, Element, Field, Pattern, Planes};
use crate::{Box3, Comm, Cpu, LayoutSpec, Result};

/// Adds what is in the ghost cells to the cells of their owners: the reverse of [`Halo`], for the deposition of
/// particles on a mesh. Ghost cells are not changed. A cell gets its terms in order of rank, whatever the exchange.
///
/// ```
/// use ferrier::{GhostSum, Ghosts, LayoutSpec};
/// let ghosts = Ghosts::width(1).periodic([true; 3]);
/// ferrier::ranks(2).run(|comm| {
///     let mut sum = GhostSum::<f32>::new(&comm, [4, 4, 4], &LayoutSpec::slabs(0), &ghosts)?;
///     let mut mass = sum.make_field()?;
///     mass.fill(1.0);
///     sum.run([&mut mass])?;
///     // A cell at a corner of the 2x4x4 cells of a rank is a ghost cell of 7 images.
///     let corner = sum.index(sum.local_box().lo.map(|at| at as isize)).unwrap();
///     assert_eq!(mass[corner], 8.0);
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
///
/// Fields are in main memory; `GhostSum<E, Cuda>`, made by `GhostSum::on`, adds those in the memory of a GPU.
pub struct GhostSum<E: Element, B: CopyBackend = Cpu> {
    pub(crate) halo: Halo<E, B>,
}

/// The reversed pattern, and the planes of the fields of this rank.
pub(crate) fn reversed(padded: &Arc<PaddedLayout>, rank: usize) -> (Arc<dyn Pattern>, Planes) {
    let axes = padded.order().axes();
    let (count, stride) = (padded.shape(rank)[axes[0]], padded.strides(rank)[axes[0]]);
    (Arc::new(Reversed(padded.clone())), Planes { axes, count, stride })
}

impl<E: Element + AddAssign> GhostSum<E> {
    /// The sum of the ghost cells around the boxes of `layout`, as [`Halo::new`]. Collective; allocates.
    ///
    /// # Errors
    /// As [`Halo::new`].
    pub fn new(comm: &Comm, shape: [usize; 3], layout: &LayoutSpec, ghosts: &Ghosts) -> Result<Self> {
        let padded = Arc::new(ghosts.bind(comm, shape, layout, size_of::<E>())?);
        let (pattern, planes) = reversed(&padded, comm.rank());
        let copier = || CpuCopier::new(comm, BoxCopy::add::<E>);
        Ok(GhostSum { halo: Halo::of(comm, padded, &pattern, (ghosts, Some(planes)), copier)? })
    }

    /// Adds the ghost cells of these fields to the cells of their owners. Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`Halo::exchange`].
    pub fn run<F, G>(&mut self, fields: F) -> Result<()>
    where
        F: AsMut<[G]>,
        G: AsMut<[E]>,
    {
        self.halo.exchange(fields)
    }
}

impl<E: Element> GhostSum<E> {
    /// See [`Halo::make_field`].
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_field(&self) -> Result<Field<E>> {
        self.halo.make_field()
    }
}

/// Boxes and indices are those of a [`Halo`].
impl<E: Element, B: CopyBackend> GhostSum<E, B> {
    /// See [`Halo::local_box`].
    pub fn local_box(&self) -> Box3 {
        self.halo.local_box()
    }

    /// See [`Halo::shape`].
    pub fn shape(&self) -> [usize; 3] {
        self.halo.shape()
    }

    /// See [`Halo::strides`].
    pub fn strides(&self) -> [usize; 3] {
        self.halo.strides()
    }

    /// See [`Halo::notes`].
    pub fn notes(&self) -> &[String] {
        self.halo.notes()
    }

    /// See [`Halo::volume`].
    pub fn volume(&self) -> usize {
        self.halo.volume()
    }

    /// See [`Halo::index`].
    pub fn index(&self, index: [isize; 3]) -> Option<usize> {
        self.halo.index(index)
    }

    /// See [`Halo::memory`].
    pub fn memory(&self) -> usize {
        self.halo.memory()
    }
}

impl<E: Element, B: CopyBackend> fmt::Debug for GhostSum<E, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sum of {:?}", self.halo)
    }
}
