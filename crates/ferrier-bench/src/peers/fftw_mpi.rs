//! FFTW's distributed transforms, from `libfftw3_mpi`, found at run time and run on the
//! communicator of Ferrier's own transform.
//!
//! That library is linked to one MPI. In a process that uses another one, its calls would
//! go to the wrong library, so its dependencies are read before it is opened.

use std::env;
use std::ffi::{CStr, c_char, c_double, c_int, c_uint, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferrier::Precision;
use libloading::os::unix::Library;

use super::arena::Arena;
use super::launch::MpiLaunch;
use super::library::{open, open_first, symbol};
use super::pages::Pages;
use super::peer::{PLACEMENTS, Peer, PeerPlan};
use super::problem::{LocalPart, PeerProblem};
use crate::failure::{Failure, Outcome, fail};

const MEASURE: c_uint = 0;
const TRANSPOSED_OUT: c_uint = 1 << 30;
const FORWARD: c_int = -1;
/// Seconds that FFTW may take to plan one variant.
const TIME_LIMIT: c_double = 60.0;

/// File names of MPI libraries in the list of needed libraries.
const MPI_NAMES: [&str; 4] = ["libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1"];

type Plan = *mut c_void;
/// A communicator: a pointer, or an integer in the low half of a register.
type RawComm = usize;
type LocalSize = unsafe extern "C" fn(
    c_int,
    *const isize,
    isize,
    isize,
    isize,
    RawComm,
    *mut isize,
    *mut isize,
    *mut isize,
    *mut isize,
) -> isize;
type PlanC2c = unsafe extern "C" fn(
    c_int,
    *const isize,
    isize,
    isize,
    isize,
    *mut c_void,
    *mut c_void,
    RawComm,
    c_int,
    c_uint,
) -> Plan;
type PlanR2c = unsafe extern "C" fn(
    c_int,
    *const isize,
    isize,
    isize,
    isize,
    *mut c_void,
    *mut c_void,
    RawComm,
    c_uint,
) -> Plan;

type LocalSize1d = unsafe extern "C" fn(
    isize,
    RawComm,
    c_int,
    c_uint,
    *mut isize,
    *mut isize,
    *mut isize,
    *mut isize,
) -> isize;
type Plan1d = unsafe extern "C" fn(isize, *mut c_void, *mut c_void, RawComm, c_int, c_uint) -> Plan;

/// The functions that are used.
struct FftwMpi {
    local_size_1d: LocalSize1d,
    plan_1d: Plan1d,
    local_size: LocalSize,
    plan_c2c: PlanC2c,
    plan_r2c: PlanR2c,
    execute: unsafe extern "C" fn(Plan),
    destroy: unsafe extern "C" fn(Plan),
    version: String,
}

/// Folders that may contain the library.
fn folders(mpi: &Path) -> Vec<PathBuf> {
    let listed = env::var_os("LD_LIBRARY_PATH");
    let mut folders: Vec<PathBuf> =
        listed.iter().flat_map(env::split_paths).filter(|folder| folder.is_absolute()).collect();
    folders.extend(mpi.parent().map(Path::to_path_buf));
    let arch = format!("/usr/lib/{}-linux-gnu", env::consts::ARCH);
    folders.extend([arch.as_str(), "/usr/local/lib", "/usr/lib64", "/usr/lib"].map(PathBuf::from));
    folders
}

/// The file of the library that is linked to the MPI in use.
fn find(name: &str, launch: &MpiLaunch<'_>) -> Outcome<PathBuf> {
    let in_use = launch.library;
    let folders = folders(in_use);
    let Some(path) = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file()) else {
        let list: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        return fail(format!(
            "peer fftw-mpi was not found (Debian: libfftw3-mpi3): no {name} in {}",
            list.join(", ")
        ));
    };
    let bytes = fs::read(&path)
        .map_err(|error| Failure::new(format!("peer fftw-mpi: cannot read {}: {error}", path.display())))?;
    let holds = |name: &str| {
        let wanted = [name.as_bytes(), b"\0"].concat();
        bytes.windows(wanted.len()).any(|window| window == wanted)
    };
    let linked: Vec<_> = MPI_NAMES.into_iter().filter(|name| holds(name)).collect();
    let own = in_use.file_name().unwrap_or_default().to_string_lossy();
    if linked.iter().any(|&name| name == own) {
        return Ok(path);
    }
    fail(format!(
        "peer fftw-mpi: {} is linked to {}, but the MPI in use is {}: launch with the MPI it was built for",
        path.display(),
        if linked.is_empty() { "no known MPI".into() } else { linked.join(", ") },
        in_use.display()
    ))
}

impl FftwMpi {
    fn load(problem: &PeerProblem, launch: &MpiLaunch<'_>) -> Outcome<Arc<FftwMpi>> {
        let letter = if problem.precision == Precision::F32 { "f" } else { "" };
        let path = find(&format!("libfftw3{letter}_mpi.so.3"), launch)?;
        let missing = |why: String| Failure::new(format!("peer fftw-mpi: {why}"));
        let core = open_first(&[format!("libfftw3{letter}.so.3")]).map_err(missing)?;
        let library = open(&path, false).map_err(missing)?;
        let name = |function: &str| format!("fftw{letter}_{function}");
        let threads = problem.threads / launch.world.size();
        // SAFETY: the types are those of fftw3.h and fftw3-mpi.h; MPI is initialised.
        unsafe {
            if threads > 1 {
                start_threads(letter, threads)?;
            }
            symbol::<unsafe extern "C" fn()>(library, &name("mpi_init"))?();
            symbol::<unsafe extern "C" fn(c_double)>(core, &name("set_timelimit"))?(TIME_LIMIT);
            let version: *const c_char = symbol(core, &name("version"))?;
            Ok(Arc::new(FftwMpi {
                local_size_1d: symbol(library, &name("mpi_local_size_1d"))?,
                plan_1d: symbol(library, &name("mpi_plan_dft_1d"))?,
                local_size: symbol(library, &name("mpi_local_size_many_transposed"))?,
                plan_c2c: symbol(library, &name("mpi_plan_many_dft"))?,
                plan_r2c: symbol(library, &name("mpi_plan_many_dft_r2c"))?,
                execute: symbol(core, &name("execute"))?,
                destroy: symbol(core, &name("destroy_plan"))?,
                version: CStr::from_ptr(version).to_string_lossy().trim_start_matches("fftw-").into(),
            }))
        }
    }
}

/// Threads inside each process; to be called before FFTW's MPI starts.
///
/// # Safety
/// The libraries of these names declare their functions as fftw3.h does.
unsafe fn start_threads(letter: &str, threads: usize) -> Outcome {
    let names = ["threads", "omp"].map(|part| format!("libfftw3{letter}_{part}.so.3"));
    let library: &Library = open_first(&names)
        .map_err(|why| Failure::new(format!("peer fftw-mpi: its thread library: {why}")))?;
    // SAFETY: as fftw3.h declares them.
    unsafe {
        if symbol::<unsafe extern "C" fn() -> c_int>(library, &format!("fftw{letter}_init_threads"))?() == 0 {
            return fail("peer fftw-mpi: its threads could not be started");
        }
        symbol::<unsafe extern "C" fn(c_int)>(library, &format!("fftw{letter}_plan_with_nthreads"))?(
            threads as c_int,
        );
    }
    Ok(())
}

/// A plan that FFTW owns.
struct Owned {
    plan: Plan,
    fftw: Arc<FftwMpi>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: this library made it, and it is freed once.
        unsafe { (self.fftw.destroy)(self.plan) }
    }
}

/// The parts that this process holds: slabs of the first axis of the input, of the first or
/// (transposed) the second axis of the output. And the number of complex elements to allocate.
fn shares(
    fftw: &FftwMpi,
    problem: &PeerProblem,
    first: usize,
    comm: RawComm,
) -> (LocalPart, LocalPart, usize) {
    let lengths: Vec<isize> = problem.spectrum()[first..].iter().map(|&n| n as isize).collect();
    let (mut n0, mut start0, mut n1, mut start1) = (0, 0, 0, 0);
    // SAFETY: as many lengths as said; the out-parameters are valid.
    let complex = unsafe {
        (fftw.local_size)(
            lengths.len() as c_int,
            lengths.as_ptr(),
            1,
            0,
            0,
            comm,
            &mut n0,
            &mut start0,
            &mut n1,
            &mut start1,
        )
    };
    let slab = |shape: [usize; 3], axis: usize, start: isize, count: isize| {
        let (mut lo, mut hi) = ([0; 3], shape);
        (lo[axis], hi[axis]) = (start as usize, (start + count) as usize);
        (lo, hi)
    };
    let (lo, hi) = slab(problem.shape, first, start0, n0);
    let mut padded = problem.shape;
    if problem.real {
        padded[2] = 2 * (padded[2] / 2 + 1); // out of place, too
    }
    let row = padded[2] * problem.width();
    let input = LocalPart { lo, hi, strides: [padded[1] * row, row, problem.width(), 0] };
    let output = if problem.transposed {
        let spectrum = problem.spectrum();
        let (lo, hi) = slab(spectrum, first + 1, start1, n1);
        let mut strides = [0, 0, 2, 0];
        if first == 0 {
            strides = [2 * spectrum[2], 2 * spectrum[2] * spectrum[0], 2, 0];
        } else {
            (strides[1], strides[2]) = (2, 2 * spectrum[1]);
        }
        LocalPart { lo, hi, strides }
    } else {
        let (lo, hi) = slab(problem.spectrum(), first, start0, n0);
        LocalPart { lo, hi, strides: problem.strides_out() }
    };
    (input, output, complex as usize)
}

/// As `shares` for one long axis, in natural order on both sides.
fn line_shares(fftw: &FftwMpi, problem: &PeerProblem, comm: RawComm) -> (LocalPart, LocalPart, usize) {
    let (mut n_in, mut start_in, mut n_out, mut start_out) = (0, 0, 0, 0);
    let n = problem.shape[2] as isize;
    // SAFETY: the out-parameters are valid.
    let complex = unsafe {
        (fftw.local_size_1d)(n, comm, FORWARD, MEASURE, &mut n_in, &mut start_in, &mut n_out, &mut start_out)
    };
    let part = |start: isize, count: isize| LocalPart {
        lo: [0, 0, start as usize],
        hi: [1, 1, (start + count) as usize],
        strides: [0, 2 * count as usize, 2, 0],
    };
    (part(start_in, n_in), part(start_out, n_out), complex as usize)
}

/// Plans in and out of place. Collective.
pub fn make(problem: &PeerProblem, launch: &MpiLaunch<'_>) -> Outcome<Peer> {
    let first = (0..3).find(|&axis| problem.shape[axis] > 1).unwrap_or(2);
    let line = problem.ndim == 1;
    if line && (problem.real || problem.transposed) {
        return fail("peer fftw-mpi: of one axis only complex transforms in natural order can be compared");
    }
    if problem.axes != (3 - problem.ndim..3).collect::<Vec<_>>() || problem.batch != 1 || (first > 1 && !line)
    {
        return fail(
            "peer fftw-mpi: only transforms of all of the axes, one array at a time, can be compared",
        );
    }
    let fftw = FftwMpi::load(problem, launch)?;
    let comm = launch.world.raw();
    let (input, output, complex) = match line {
        true => line_shares(&fftw, problem, comm),
        false => shares(&fftw, problem, first, comm),
    };
    let pages = || Pages::new(complex.max(1) * 2 * problem.precision.bytes());
    let arena = Arena { input: pages()?, output: pages()?, in_place: Some(pages()?) };
    let lengths: Vec<isize> = problem.shape[first..].iter().map(|&n| n as isize).collect();
    let flags = MEASURE | if problem.transposed { TRANSPOSED_OUT } else { 0 };
    let mut plans = Vec::new();
    for (name, in_place) in PLACEMENTS {
        let (from, to) = arena.addresses(in_place);
        let (rank, n) = (lengths.len() as c_int, lengths.as_ptr());
        // SAFETY: the arrays are as long as FFTW asked for and outlive the plan
        // (see the order of fields of `Peer`); the communicator is alive.
        let plan = unsafe {
            if line {
                (fftw.plan_1d)(problem.shape[2] as isize, from.cast(), to.cast(), comm, FORWARD, flags)
            } else if problem.real {
                (fftw.plan_r2c)(rank, n, 1, 0, 0, from.cast(), to.cast(), comm, flags)
            } else {
                (fftw.plan_c2c)(rank, n, 1, 0, 0, from.cast(), to.cast(), comm, FORWARD, flags)
            }
        };
        if !plan.is_null() {
            let plan = Owned { plan, fftw: fftw.clone() };
            // SAFETY: the plan and its arrays are alive; every process runs it.
            let run = move || unsafe { (plan.fftw.execute)(plan.plan) };
            plans.push(PeerPlan { name, in_place, run: Box::new(run) });
        }
    }
    if plans.is_empty() {
        return fail("peer fftw-mpi: it has no plan for this transform");
    }
    Ok(Peer { version: fftw.version.clone(), plans, arena, input, output })
}
