//! Layouts of the input and output of a problem.

use ferrier::{ArrayStrides, Box3, LayoutSpec, Order};

use crate::handle::Handle;
use crate::pointer::{In, Plain, one_of};
use crate::problem::{Problem, axis, change};
use crate::status::{Failure, Outcome, Status};

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
