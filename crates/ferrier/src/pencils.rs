//! Pencils along each axis over one grid of ranks, and the redistributions between them.

use std::fmt;

use crate::copies::{CopyBackend, Element, Field};
use crate::redistribute::Redistribution;
use crate::{Box3, Choice, Comm, Cpu, Error, Layout, LayoutSpec, Order, Problem, Result};

/// Specification of a [`PencilFamily`]: three layouts over one grid of `rows` times `columns` ranks.
///
/// With axes x, y, z (0, 1, 2), x-pencils split y over the rows and z over the columns; y-pencils split x over the rows
/// and z over the columns; z-pencils split x over the rows and y over the columns. So a redistribution between x- and
/// y-pencils stays among the ranks of a column, one between y- and z-pencils among those of a row, as in 2DECOMP&FFT
/// (`p_row`, `p_col`), P3DFFT and cuDecomp.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Pencils {
    shape: [usize; 3],
    grid: Option<[usize; 2]>,
    orders: [Order; 3],
    batch: usize,
    exchange: Option<String>,
}

impl Pencils {
    /// Pencils of an array of this shape, on a grid that is chosen, in C order.
    pub fn new(shape: [usize; 3]) -> Pencils {
        Pencils { shape, grid: None, orders: [Order::C; 3], batch: 1, exchange: None }
    }

    /// Sets the grid of ranks. `[0, 0]` chooses one, as in 2DECOMP&FFT.
    pub fn grid(mut self, rows: usize, columns: usize) -> Pencils {
        self.grid = Some([rows, columns]).filter(|grid| *grid != [0, 0]);
        self
    }

    /// Sets the memory order of all pencils. [`Order::F`] is that of Fortran codes.
    pub fn order(mut self, order: Order) -> Pencils {
        self.orders = [order; 3];
        self
    }

    /// Makes the axis of each pencil the fastest in memory: xyz, yzx and zxy, fastest first. 1-D transforms, tridiagonal
    /// solvers and compact schemes then work on contiguous lines.
    pub fn contiguous(mut self) -> Pencils {
        let [x, y, z] = [[2, 1, 0], [0, 2, 1], [1, 0, 2]];
        let order = |axes: [usize; 3]| Order::ALL.into_iter().find(|order| order.axes() == axes);
        self.orders = [x, y, z].map(|axes| order(axes).unwrap_or(Order::F));
        self
    }

    /// Sets the number of arrays that are redistributed together; on each rank they are consecutive in memory.
    pub fn batch(mut self, arrays: usize) -> Pencils {
        self.batch = arrays;
        self
    }

    /// Sets the exchange, one of [`EXCHANGES`](crate::exchange::EXCHANGES).
    pub fn exchange(mut self, name: &str) -> Pencils {
        self.exchange = Some(name.into());
        self
    }

    /// The pencils along `axis` over so many ranks, as a layout of problems and plans.
    ///
    /// # Errors
    /// [`Error::Layout`] for an axis above 2 or a grid of another number of ranks.
    pub fn layout(&self, axis: usize, ranks: usize) -> Result<LayoutSpec> {
        let spec = LayoutSpec::pencils(axis);
        // An axis above 2 and a grid of another size are errors of the layout.
        spec.layout(self.shape, ranks)?;
        let [rows, columns] = match self.grid {
            Some(grid) => grid,
            None => self.best_grid(ranks)?,
        };
        let mut grid = [rows, columns, columns];
        if axis == 0 {
            grid[1] = rows;
        }
        grid[axis] = 1;
        let spec = spec.grid(grid).order(self.orders[axis]);
        spec.layout(self.shape, ranks)?;
        Ok(spec)
    }

    /// The grid that is best for y-pencils, whose splits all three have in common.
    fn best_grid(&self, ranks: usize) -> Result<[usize; 2]> {
        let [rows, _, columns] = LayoutSpec::pencils(1).layout(self.shape, ranks)?.parts();
        // Empty boxes are no parts.
        Ok(if rows * columns == ranks { [rows, columns] } else { [1, ranks] })
    }

    /// The redistribution from the pencils along one axis to those along another, over so many ranks: for
    /// [`Redistribution`] and, with complex numbers, for plans.
    ///
    /// # Errors
    /// As [`layout`](Self::layout).
    pub fn transpose(&self, from: usize, to: usize, ranks: usize) -> Result<Problem> {
        let (input, output) = (self.layout(from, ranks)?, self.layout(to, ranks)?);
        Ok(Problem::redistribute(self.shape).input(input).output(output).batch(self.batch))
    }
}

/// Pencils along x, y and z (axes 0, 1, 2) over one grid of ranks, and the redistributions between them: codes written for
/// 2DECOMP&FFT, P3DFFT or cuDecomp can be ported call by call. Made once, used often.
///
/// Arrays are in main memory; `PencilFamily<E, Cuda>`, made by `PencilFamily::on`, takes those in the memory of a GPU.
///
/// ```
/// use ferrier::{Order, PencilFamily, Pencils};
/// ferrier::ranks(4).run(|comm| {
///     // decomp_2d_init(8, 6, 4, p_row=2, p_col=2)
///     let mut pencils = PencilFamily::<f64>::new(&comm, &Pencils::new([8, 6, 4]).grid(2, 2).order(Order::F))?;
///     let (mut x, mut y) = (pencils.make(0)?, pencils.make(1)?);
///     x.fill(1.0);
///     pencils.x_to_y(&x, &mut y)?;
///     assert_eq!(pencils.local_box(1).shape(), [4, 6, 2]);
///     assert!(y.iter().all(|value| *value == 1.0));
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
pub struct PencilFamily<E: Element, B: CopyBackend = Cpu> {
    /// x to y, y to z, z to y, y to x.
    pub(crate) steps: [Redistribution<E, B>; 4],
}

/// The redistributions of a family.
const STEPS: [[usize; 2]; 4] = [[0, 1], [1, 2], [2, 1], [1, 0]];

impl<E: Element> PencilFamily<E> {
    /// The pencils of this specification on these ranks. Collective; allocates.
    ///
    /// # Errors
    /// As [`Pencils::layout`] and [`Redistribution::with`].
    pub fn new(comm: &Comm, pencils: &Pencils) -> Result<Self> {
        Self::of(comm, pencils, |problem, choice| Redistribution::with(comm, problem, choice))
    }

    /// From x-pencils to y-pencils. Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`Redistribution::run`].
    pub fn x_to_y(&mut self, x: &[E], y: &mut [E]) -> Result<()> {
        self.steps[0].run(x, y)
    }

    /// From y-pencils to z-pencils. Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`Redistribution::run`].
    pub fn y_to_z(&mut self, y: &[E], z: &mut [E]) -> Result<()> {
        self.steps[1].run(y, z)
    }

    /// From z-pencils to y-pencils. Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`Redistribution::run`].
    pub fn z_to_y(&mut self, z: &[E], y: &mut [E]) -> Result<()> {
        self.steps[2].run(z, y)
    }

    /// From y-pencils to x-pencils. Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`Redistribution::run`].
    pub fn y_to_x(&mut self, y: &[E], x: &mut [E]) -> Result<()> {
        self.steps[3].run(y, x)
    }

    /// An array for the pencils along `axis`. Collective; allocates.
    ///
    /// # Errors
    /// [`Error::Problem`] for an axis above 2; where the memory cannot be allocated.
    pub fn make(&self, axis: usize) -> Result<Field<E>> {
        match axis {
            0 => self.steps[0].make_input(),
            1 => self.steps[0].make_output(),
            2 => self.steps[1].make_output(),
            _ => Err(no_such_axis(axis)),
        }
    }
}

pub(crate) fn no_such_axis(axis: usize) -> Error {
    Error::problem("axis", format!("axes are 0, 1 and 2; got {axis}"))
}

impl<E: Element, B: CopyBackend> PencilFamily<E, B> {
    /// Collective. `step` makes a redistribution.
    pub(crate) fn of(
        comm: &Comm,
        pencils: &Pencils,
        step: impl Fn(&Problem, &Choice) -> Result<Redistribution<E, B>>,
    ) -> Result<Self> {
        let mut choice = Choice::default();
        choice.exchange.clone_from(&pencils.exchange);
        let step = |[from, to]: [usize; 2]| step(&pencils.transpose(from, to, comm.size())?, &choice);
        let [a, b, c, d] = STEPS.map(step);
        Ok(PencilFamily { steps: [a?, b?, c?, d?] })
    }

    /// The layout of the pencils along `axis`.
    ///
    /// # Panics
    /// If the axis is above 2.
    pub fn layout(&self, axis: usize) -> &Layout {
        match axis {
            0 => self.steps[0].input_layout(),
            1 => self.steps[0].output_layout(),
            2 => self.steps[1].output_layout(),
            _ => panic!("axes are 0, 1 and 2; got {axis}"),
        }
    }

    /// This rank's box of the pencils along `axis`.
    ///
    /// # Panics
    /// If the axis is above 2.
    pub fn local_box(&self, axis: usize) -> Box3 {
        match axis {
            0 => self.steps[0].input_box(),
            1 => self.steps[0].output_box(),
            2 => self.steps[1].output_box(),
            _ => panic!("axes are 0, 1 and 2; got {axis}"),
        }
    }

    /// Bytes that it takes on this rank, the caller's arrays not counted.
    pub fn memory(&self) -> usize {
        self.steps.iter().map(Redistribution::memory).sum()
    }
}

impl<E: Element, B: CopyBackend> fmt::Debug for PencilFamily<E, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grids = [0, 1, 2].map(|axis| self.layout(axis).grid_text());
        write!(f, "pencils of {grids:?}")
    }
}
