//! Layouts of the input and output of a problem.

use ferrier::{ArrayStrides, Box3, LayoutSpec, Order, Pencils};

use crate::handle::Handle;
use crate::pointer::{In, Plain, one_of};
use crate::problem::{Problem, axis, change};
use crate::status::{Failure, Outcome, Status};

/// The most ranks that functions without a communicator take.
pub(crate) const MOST_RANKS: u64 = 1 << 24;

/// A box of global indices: lo[a] <= index < hi[a] on each axis. Empty where hi[a] <= lo[a] on any axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct IndexBox {
    /// The first index of each axis.
    pub lo: [u64; 3],
    /// One past the last index of each axis.
    pub hi: [u64; 3],
}

// SAFETY: numbers without padding.
unsafe impl Plain for IndexBox {}

impl From<Box3> for IndexBox {
    fn from(part: Box3) -> IndexBox {
        IndexBox { lo: part.lo.map(|i| i as u64), hi: part.hi.map(|i| i as u64) }
    }
}

impl From<IndexBox> for Box3 {
    fn from(part: IndexBox) -> Box3 {
        Box3::new(part.lo.map(|i| i as usize), part.hi.map(|i| i as usize))
    }
}

/// Input or output of forward; backward goes from the output to the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum ArrayEnd {
    /// What forward reads and backward writes.
    Input = 0,
    /// What forward writes and backward reads.
    Output = 1,
}

const SIDES: [(i32, ArrayEnd); 2] =
    [(ArrayEnd::Input as i32, ArrayEnd::Input), (ArrayEnd::Output as i32, ArrayEnd::Output)];

/// A side of a problem or plan.
pub(crate) fn side(side: i32) -> Outcome<ArrayEnd> {
    one_of("side", side, &SIDES)
}

fn layout(
    problem: Handle<Problem>,
    side: i32,
    set: impl FnOnce(LayoutSpec) -> Outcome<LayoutSpec>,
) -> Status {
    change(problem, |problem| {
        Ok(match self::side(side)? {
            ArrayEnd::Input => {
                let layout = set(problem.input.clone())?;
                problem.input(layout)
            }
            ArrayEnd::Output => {
                let layout = set(problem.output.clone())?;
                problem.output(layout)
            }
        })
    })
}

/// Slabs: only `axis` is split over ranks. `side` is a ferrier_side. The order stays as it is, for all layouts.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_slabs(problem: Handle<Problem>, side: i32, axis: u64) -> Status {
    layout(problem, side, |old| Ok(LayoutSpec::slabs(self::axis(axis)?).order(old.order)))
}

/// Pencils: `axis` is whole on each rank, the other two are split.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_pencils(problem: Handle<Problem>, side: i32, axis: u64) -> Status {
    layout(problem, side, |old| Ok(LayoutSpec::pencils(self::axis(axis)?).order(old.order)))
}

/// Bricks: any axis may be split.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_bricks(problem: Handle<Problem>, side: i32) -> Status {
    layout(problem, side, |old| Ok(LayoutSpec::bricks().order(old.order)))
}

/// The planner chooses the layout and order, where the transform ends at the least cost; outputs only.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_unconstrained(problem: Handle<Problem>, side: i32) -> Status {
    layout(problem, side, |_| Ok(LayoutSpec::unconstrained()))
}

/// The box of the calling rank; a plan gathers those of the others. The boxes of all ranks must tile the array.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_local_box(
    problem: Handle<Problem>,
    side: i32,
    local: In<IndexBox>,
) -> Status {
    layout(problem, side, |old| {
        let [local] = local.array::<1>("local")?;
        Ok(LayoutSpec::local(local.into()).order(old.order))
    })
}

/// The boxes of all ranks, `count` of them, in order of rank; the same on every rank.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_boxes(
    problem: Handle<Problem>,
    side: i32,
    boxes: In<IndexBox>,
    count: u64,
) -> Status {
    layout(problem, side, |old| {
        let boxes = boxes.list("boxes", count)?.into_iter().map(Box3::from).collect();
        Ok(LayoutSpec::boxes(boxes).order(old.order))
    })
}

/// The number of parts of each axis (their product is the number of ranks) instead of a grid that is chosen; for slabs,
/// pencils and bricks.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_grid(problem: Handle<Problem>, side: i32, grid: In<u64>) -> Status {
    layout(problem, side, |old| Ok(old.grid(grid.three("grid")?)))
}

/// The memory order: axes[3] from the slowest to the fastest. {0, 1, 2} is C's order (the default), {2, 1, 0} is
/// Fortran's.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_order(problem: Handle<Problem>, side: i32, axes: In<u64>) -> Status {
    layout(problem, side, |old| {
        let order =
            Order::new(axes.three("axes")?).map_err(|error| Failure::from(ferrier::Error::from(error)))?;
        Ok(old.order(order))
    })
}

/// Where the elements of the calling rank's input or output lie: strides[3] are the distances of neighbours on each axis,
/// `offset` is that of the first element from the address that is handed to calls, `batch` that of neighbouring arrays of
/// a batch (0: one after the other), all in elements (real or complex). So ghost cells around a box, padded rows and
/// interleaved arrays need no copy; what lies between the elements is left alone. Ranks may differ. The order of the
/// layout should be that of the strides.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_strides(
    problem: Handle<Problem>,
    side: i32,
    strides: In<u64>,
    offset: u64,
    batch: u64,
) -> Status {
    change(problem, |problem| {
        let mut strides = ArrayStrides::new(strides.three("strides")?).offset(offset as usize);
        if batch > 0 {
            strides = strides.batch(batch as usize);
        }
        Ok(match self::side(side)? {
            ArrayEnd::Input => problem.input_strides(strides),
            ArrayEnd::Output => problem.output_strides(strides),
        })
    })
}

/// The elements of the calling rank's input or output lie inside a larger array, such as a box inside its ghost cells, in
/// the order of the layout (set it before): outer[3] is the shape of that array, margin[3] the elements of each axis before
/// the box. Arrays of a batch follow each other. Ranks may differ.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_inside(
    problem: Handle<Problem>,
    side: i32,
    outer: In<u64>,
    margin: In<u64>,
) -> Status {
    change(problem, |problem| {
        let (outer, margin) = (outer.three("outer")?, margin.three("margin")?);
        if (0..3).any(|axis| margin[axis] > outer[axis]) {
            return Err(Failure::argument(
                "margin",
                format_args!("{margin:?} exceeds the array of {outer:?}"),
            ));
        }
        let elements = outer.iter().try_fold(1, |all: usize, length| all.checked_mul((*length).max(1)));
        if elements.is_none_or(|elements| elements > 1 << 56) {
            return Err(Failure::argument("outer", format_args!("{outer:?} is more than memory can hold")));
        }
        let strides = |order| ArrayStrides::inside(outer, margin, order);
        Ok(match self::side(side)? {
            ArrayEnd::Input => {
                let strides = strides(problem.input.order);
                problem.input_strides(strides)
            }
            ArrayEnd::Output => {
                let strides = strides(problem.output.order);
                problem.output_strides(strides)
            }
        })
    })
}

/// Pencils of a family over one grid of rows times columns ranks (both 0: chosen), as in 2DECOMP&FFT: those along axis 0
/// split axes 1 and 2, those along axis 1 split axes 0 and 2, those along axis 2 split axes 0 and 1, over rows and columns. A
/// redistribution between neighbours of the family stays among the ranks of a row or column. With `contiguous` 1 the axis
/// of the pencils is the fastest in memory, else the order stays as it is. `ranks` is the size of the communicator.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_pencil_family(
    problem: Handle<Problem>,
    side: i32,
    axis: u64,
    ranks: u64,
    rows: u64,
    columns: u64,
    contiguous: i32,
) -> Status {
    change(problem, |problem| {
        let axis = self::axis(axis)?;
        if !(1..=MOST_RANKS).contains(&ranks) {
            return Err(Failure::argument(
                "ranks",
                format_args!("must be from 1 to {MOST_RANKS}, got {ranks}"),
            ));
        }
        let of = |shape, order| {
            let family = Pencils::new(shape).grid(rows as usize, columns as usize);
            let family = if contiguous != 0 { family.contiguous() } else { family.order(order) };
            Ok::<_, Failure>(family.layout(axis, ranks as usize)?)
        };
        Ok(match self::side(side)? {
            ArrayEnd::Input => {
                let layout = of(problem.shape, problem.input.order)?;
                problem.input(layout)
            }
            ArrayEnd::Output => {
                problem.check().map_err(ferrier::Error::from)?;
                let layout = of(problem.spectrum_shape(), problem.output.order)?;
                problem.output(layout)
            }
        })
    })
}
