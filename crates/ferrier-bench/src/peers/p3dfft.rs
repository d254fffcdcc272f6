//! P3DFFT++, from `libp3dfft.3.so`, by its C interface, found at run time and run on the communicator of Ferrier's own
//! transform. Nothing of it is linked: this file has only the names and signatures of its functions.

use std::ffi::{c_int, c_void};

use ferrier::Precision;
use libloading::os::unix::Library;

use super::arena::{Arena, Pages};
use super::launch::MpiLaunch;
use super::library::{open, symbol};
use super::linked_to_mpi::{RawComm, find};
use super::peer::{PLACEMENTS, Peer, PeerPlan};
use super::problem::{LocalPart, PeerProblem};
use crate::failure::{Failure, Outcome, fail};

/// The library builds an archive; as a shared library it has this name.
const FILE: &str = "libp3dfft.3.so";

/// The first fields of its `Grid`; axes are in its order, the fastest first.
#[repr(C)]
struct Grid {
    split_axes: c_int,
    global: [c_int; 3],
    halved: c_int,
    order: [c_int; 3],
    local: [c_int; 3],
    map: [c_int; 3],
    processes: c_int,
    place: [c_int; 3],
    start: [c_int; 3],
}

type Ints = *const c_int;
type InitProcesses = unsafe extern "C" fn(Ints, RawComm) -> c_int;
type InitGrid = unsafe extern "C" fn(Ints, c_int, c_int, Ints, Ints) -> *mut Grid;
type InitTypes = unsafe extern "C" fn(Ints) -> c_int;
type MakePlan = unsafe extern "C" fn(*mut Grid, *mut Grid, c_int) -> c_int;
type Execute = unsafe extern "C" fn(c_int, *mut c_void, *mut c_void, c_int);

/// This process's part of a grid, with elements of `width` scalars in C order.
fn part(grid: &Grid, width: usize) -> LocalPart {
    let of = |numbers: [c_int; 3]| [2, 1, 0].map(|axis| numbers[axis] as usize);
    let (lo, shape) = (of(grid.start), of(grid.local));
    let [_, rows, row] = shape;
    LocalPart {
        lo,
        hi: [0, 1, 2].map(|axis| lo[axis] + shape[axis]),
        strides: [rows * row * width, row * width, width, 0],
    }
}

/// A shape in the library's order of axes.
fn lengths(shape: [usize; 3]) -> [c_int; 3] {
    [2, 1, 0].map(|axis| shape[axis] as c_int)
}

/// The number of a type of transform, a variable that `p3dfft_setup` sets.
fn kind(library: &Library, name: &str, precision: Precision) -> Outcome<c_int> {
    let letter = if precision == Precision::F32 { 'S' } else { 'D' };
    // SAFETY: an `int` of the library, which is never unloaded.
    unsafe { Ok(*symbol::<*const c_int>(library, &format!("P3DFFT_{name}_{letter}"))?) }
}

/// A plan out of place. Collective.
pub fn make(problem: &PeerProblem, launch: &MpiLaunch<'_>) -> Outcome<Peer> {
    if problem.axes != [0, 1, 2] || problem.ndim != 3 || problem.batch != 1 {
        return fail("peer p3dfft: only transforms of three axes, one array at a time, can be compared");
    }
    let ranks = launch.world.size();
    if problem.shape[0] < ranks || problem.transposed && problem.shape[1] < ranks {
        return fail("peer p3dfft: there are more ranks than planes");
    }
    let path = find("p3dfft", FILE, "P3DFFT++ as a shared library", launch)?;
    let library = open(&path, false).map_err(|why| Failure::new(format!("peer p3dfft: {why}")))?;
    let execute = match problem.precision {
        Precision::F64 => "p3dfft_exec_3Dtrans_double",
        Precision::F32 => "p3dfft_exec_3Dtrans_single",
    };
    // Slabs of the slowest axis; of the spectrum, where it may be transposed, of the axis after it.
    let (processes, c_order) = ([1, 1, ranks as c_int], [0, 1, 2]);
    let map = if problem.transposed { [0, 2, 1] } else { c_order };
    let (shape, spectrum) = (lengths(problem.shape), lengths(problem.spectrum()));
    let halved = if problem.real { 0 } else { -1 };
    // SAFETY: the types are those of Cwrap.h; the communicator is alive, and arrays have three numbers each. The grids
    // that it returns live until the process ends.
    let (input, output, plan, execute) = unsafe {
        symbol::<unsafe extern "C" fn()>(library, "p3dfft_setup")?();
        let forward = kind(library, "CFFT_FORWARD", problem.precision)?;
        let first = if problem.real { kind(library, "R2CFFT", problem.precision)? } else { forward };
        let types = symbol::<InitTypes>(library, "p3dfft_init_3Dtype")?([first, forward, forward].as_ptr());
        let processes = symbol::<InitProcesses>(library, "p3dfft_init_proc_grid")?(
            processes.as_ptr(),
            launch.world.raw(),
        );
        let grid: InitGrid = symbol(library, "p3dfft_init_data_grid")?;
        let from = grid(shape.as_ptr(), -1, processes, c_order.as_ptr(), c_order.as_ptr());
        let to = grid(spectrum.as_ptr(), halved, processes, map.as_ptr(), c_order.as_ptr());
        let plan = symbol::<MakePlan>(library, "p3dfft_plan_3Dtrans")?(from, to, types);
        let parts = (part(&*from, problem.width()), part(&*to, 2));
        (parts.0, parts.1, plan, symbol::<Execute>(library, execute)?)
    };
    if plan < 0 {
        return fail("peer p3dfft: it makes no plan for this transform");
    }
    let scalars = |part: &LocalPart, width: usize| {
        (0..3).map(|axis| part.hi[axis] - part.lo[axis]).product::<usize>() * width
    };
    let most = scalars(&input, problem.width()).max(scalars(&output, 2));
    let pages = || Pages::new(most.max(1) * problem.precision.bytes());
    let arena = Arena { input: pages()?, output: pages()?, in_place: None };
    let (name, in_place) = PLACEMENTS[0];
    let (from, to) = arena.addresses(in_place);
    // SAFETY: the arrays are alive (see the order of fields of `Peer`), and `Peer::run` borrows the peer exclusively. Every
    // process runs it. 0: the input is kept.
    let run = move || unsafe { execute(plan, from.cast(), to.cast(), 0) };
    let plans = vec![PeerPlan { name, in_place, run: Box::new(run) }];
    Ok(Peer { version: "3".into(), plans, arena, input, output })
}
