//! Specification of ghost cells.

use crate::planner::{compare_texts, gather_boxes};
use crate::{Box3, Comm, Error, Layout, LayoutSpec, Order, Result};

/// Fields that can be exchanged together.
const MOST_FIELDS: usize = 1 << 16;

/// How often ghost cells can repeat a periodic axis.
const MOST_IMAGES: usize = 64;

/// The ghost cells around the boxes of a layout.
///
/// A rank's array holds its box and, on each side of each axis, so many cells of the neighbours: it is dense, in the
/// memory order of the layout. All boxes have the same widths, also where they end at a boundary that is not
/// periodic; ghost cells beyond it are left as they are, for boundary conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Ghosts {
    pub(super) widths: [[usize; 2]; 3],
    pub(super) periodic: [bool; 3],
    pub(super) faces_only: bool,
    pub(super) fields: usize,
    pub(super) exchange: Option<String>,
}

impl Ghosts {
    /// `cells` ghost cells on every side, edges and corners included; no axis is periodic; one field.
    pub fn width(cells: usize) -> Ghosts {
        Ghosts::widths([[cells; 2]; 3])
    }

    /// A width for the low and the high side of each axis. A 2-D array (of shape `[1, n0, n1]`) has none on axis 0.
    pub fn widths(widths: [[usize; 2]; 3]) -> Ghosts {
        Ghosts { widths, periodic: [false; 3], faces_only: false, fields: 1, exchange: None }
    }

    /// Sets which axes are periodic.
    pub fn periodic(mut self, axes: [bool; 3]) -> Ghosts {
        self.periodic = axes;
        self
    }

    /// Only ghost cells at the faces: those of edges and corners, which differ from the box on more than one axis, are
    /// left as they are. Stencils without mixed derivatives need no more.
    pub fn faces_only(mut self) -> Ghosts {
        self.faces_only = true;
        self
    }

    /// Sets the number of arrays that are exchanged together, with one message per neighbour.
    pub fn fields(mut self, fields: usize) -> Ghosts {
        self.fields = fields;
        self
    }

    /// Sets the exchange, one of [`EXCHANGES`](crate::exchange::EXCHANGES). By default neighbours on a node load from
    /// each other's memory, and others get a message each.
    pub fn exchange(mut self, name: &str) -> Ghosts {
        self.exchange = Some(name.into());
        self
    }

    /// The ghost cells of a layout, the same on every rank. Collective.
    pub(crate) fn bind(
        &self,
        comm: &Comm,
        shape: [usize; 3],
        layout: &LayoutSpec,
        element_bytes: usize,
    ) -> Result<PaddedLayout> {
        let mut layout = layout.clone();
        gather_boxes(comm, &mut layout)?;
        compare_texts(comm, &format!("{element_bytes} bytes per element {shape:?} {layout:?} {self:?}"))?;
        if !(1..=MOST_FIELDS).contains(&self.fields) {
            let message =
                format!("at least one field is exchanged, and {MOST_FIELDS} at most, got {}", self.fields);
            return Err(Error::problem("fields", message));
        }
        let most = usize::MAX / 16;
        if let Some(axis) = (0..3).find(|&axis| self.widths[axis].iter().any(|&width| width > most)) {
            let widths = self.widths[axis];
            return Err(Error::problem(
                "widths",
                format!("axis {axis} has {widths:?} ghost cells: too many"),
            ));
        }
        let wrapped = |axis: usize| {
            let most = shape[axis].saturating_mul(MOST_IMAGES);
            self.periodic[axis] && self.widths[axis].iter().any(|&width| width > most)
        };
        if let Some(axis) = (0..3).find(|&axis| wrapped(axis)) {
            let (widths, points) = (self.widths[axis], shape[axis]);
            let message = format!(
                "axis {axis} has {widths:?} ghost cells: more than {MOST_IMAGES} times its {points} points"
            );
            return Err(Error::problem("widths", message));
        }
        let layout = layout.layout(shape, comm.size())?;
        let Ghosts { widths, periodic, faces_only, .. } = *self;
        let padded = PaddedLayout { layout, widths, periodic, faces_only };
        let bytes = |rank: usize| {
            let shape = padded.shape(rank);
            shape
                .into_iter()
                .try_fold(element_bytes, usize::checked_mul)
                .filter(|&bytes| bytes < isize::MAX as usize)
        };
        match (0..comm.size()).find(|&rank| bytes(rank).is_none()) {
            None => Ok(padded),
            Some(rank) => {
                let shape = padded.shape(rank);
                Err(Error::problem(
                    "widths",
                    format!("the array of rank {rank}, {shape:?} elements, is too large"),
                ))
            }
        }
    }
}

/// A layout whose boxes have ghost cells.
#[derive(Debug)]
pub(crate) struct PaddedLayout {
    pub layout: Layout,
    pub widths: [[usize; 2]; 3],
    pub periodic: [bool; 3],
    pub faces_only: bool,
}

impl PaddedLayout {
    pub fn own(&self, rank: usize) -> Box3 {
        self.layout.boxes()[rank]
    }

    pub fn order(&self) -> Order {
        self.layout.order()
    }

    /// The shape of a rank's array, ghost cells included; empty boxes have none.
    pub fn shape(&self, rank: usize) -> [usize; 3] {
        match self.own(rank) {
            own if own.is_empty() => [0; 3],
            own => {
                std::array::from_fn(|axis| own.shape()[axis] + self.widths[axis][0] + self.widths[axis][1])
            }
        }
    }

    /// The elements of a rank's array.
    pub fn volume(&self, rank: usize) -> usize {
        self.shape(rank).iter().product()
    }

    pub fn strides(&self, rank: usize) -> [usize; 3] {
        self.order().strides(self.shape(rank))
    }

    /// Where a global index lies in a rank's array, if it is in its box or its ghost cells.
    pub fn index(&self, rank: usize, index: [isize; 3]) -> Option<usize> {
        let (own, shape, strides) = (self.own(rank), self.shape(rank), self.strides(rank));
        let mut offset = 0;
        for axis in 0..3 {
            let at =
                index[axis].checked_sub_unsigned(own.lo[axis])?.checked_add_unsigned(self.widths[axis][0])?;
            let at = usize::try_from(at).ok().filter(|&at| at < shape[axis])?;
            offset += at * strides[axis];
        }
        Some(offset)
    }
}
