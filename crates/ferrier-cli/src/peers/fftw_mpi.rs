//! FFTW's own distributed transforms, from `libfftw3_mpi`, found at run time
//! and run on the communicator that our own transform runs on.
//!
//! That library is linked to one MPI. In a process that has another one, its
//! calls would go to the wrong library, so it is looked into before it is opened.

use std::env;
use std::ffi::{CStr, c_char, c_double, c_int, c_uint, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferrier::Precision;
use libloading::os::unix::Library;

use super::library::{open, open_first, symbol};
use super::pages::Pages;
use super::{Arena, Held, Peer, Task, Variant};
use crate::failure::{Failure, Outcome, fail};
use crate::session::launched::Launched;

const MEASURE: c_uint = 0;
const TRANSPOSED_OUT: c_uint = 1 << 30;
const FORWARD: c_int = -1;
/// Seconds that FFTW may take to plan one variant.
const TIME_LIMIT: c_double = 60.0;

/// How MPI libraries are called in the list of what a library needs.
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

/// Folders in which the library may lie.
fn folders(mpi: &Path) -> Vec<PathBuf> {
    let listed = env::var_os("LD_LIBRARY_PATH");
    let mut folders: Vec<PathBuf> =
        listed.iter().flat_map(env::split_paths).filter(|folder| folder.is_absolute()).collect();
    folders.extend(mpi.parent().map(Path::to_path_buf));
    let arch = format!("/usr/lib/{}-linux-gnu", env::consts::ARCH);
    folders.extend([arch.as_str(), "/usr/local/lib", "/usr/lib64", "/usr/lib"].map(PathBuf::from));
    folders
}

/// The library's file, which is made for the MPI in use.
fn find(name: &str, launched: &Launched) -> Outcome<PathBuf> {
    let in_use = &launched.mpi().found().path;
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
        if linked.is_empty() { "no MPI that is known".into() } else { linked.join(", ") },
        in_use.display()
    ))
}

impl FftwMpi {
    fn load(task: &Task, launched: &Launched) -> Outcome<Arc<FftwMpi>> {
        let letter = if task.precision == Precision::F32 { "f" } else { "" };
        let path = find(&format!("libfftw3{letter}_mpi.so.3"), launched)?;
        let missing = |why: String| Failure::new(format!("peer fftw-mpi: {why}"));
        let core = open_first(&[format!("libfftw3{letter}.so.3")]).map_err(missing)?;
        let library = open(&path, false).map_err(missing)?;
        let name = |function: &str| format!("fftw{letter}_{function}");
        let threads = task.threads / launched.comm().size();
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
/// None but the types of fftw3.h.
unsafe fn start_threads(letter: &str, threads: usize) -> Outcome {
    let names = ["threads", "omp"].map(|part| format!("libfftw3{letter}_{part}.so.3"));
    let library: &Library =
        open_first(&names).map_err(|why| Failure::new(format!("peer fftw-mpi: its threads: {why}")))?;
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

/// A plan of FFTW's.
struct Owned {
    plan: Plan,
    fftw: Arc<FftwMpi>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: made by the same library, dropped once.
        unsafe { (self.fftw.destroy)(self.plan) }
    }
}

/// What this process holds: slabs of the first axis before, of the first or
/// (transposed) the second after. And the complex numbers to make room for.
fn shares(fftw: &FftwMpi, task: &Task, first: usize, comm: RawComm) -> (Held, Held, usize) {
    let lengths: Vec<isize> = task.spectrum()[first..].iter().map(|&n| n as isize).collect();
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
    let (lo, hi) = slab(task.shape, first, start0, n0);
    let mut padded = task.shape;
    if task.real {
        padded[2] = 2 * (padded[2] / 2 + 1); // out of place, too
    }
    let row = padded[2] * task.width();
    let input = Held { lo, hi, strides: [padded[1] * row, row, task.width(), 0] };
    let output = if task.transposed {
        let spectrum = task.spectrum();
        let (lo, hi) = slab(spectrum, first + 1, start1, n1);
        let mut strides = [0, 0, 2, 0];
        if first == 0 {
            strides = [2 * spectrum[2], 2 * spectrum[2] * spectrum[0], 2, 0];
        } else {
            (strides[1], strides[2]) = (2, 2 * spectrum[1]);
        }
        Held { lo, hi, strides }
    } else {
        let (lo, hi) = slab(task.spectrum(), first, start0, n0);
        Held { lo, hi, strides: task.strides_out() }
    };
    (input, output, complex as usize)
}

/// The same of one long axis, in natural order on both sides.
fn line_shares(fftw: &FftwMpi, task: &Task, comm: RawComm) -> (Held, Held, usize) {
    let (mut n_in, mut start_in, mut n_out, mut start_out) = (0, 0, 0, 0);
    let n = task.shape[2] as isize;
    // SAFETY: the out-parameters are valid.
    let complex = unsafe {
        (fftw.local_size_1d)(n, comm, FORWARD, MEASURE, &mut n_in, &mut start_in, &mut n_out, &mut start_out)
    };
    let part = |start: isize, count: isize| Held {
        lo: [0, 0, start as usize],
        hi: [1, 1, (start + count) as usize],
        strides: [0, 2 * count as usize, 2, 0],
    };
    (part(start_in, n_in), part(start_out, n_out), complex as usize)
}

/// Plans in and out of place. Collective.
pub fn make(task: &Task, launched: &Launched) -> Outcome<Peer> {
    let first = (0..3).find(|&axis| task.shape[axis] > 1).unwrap_or(2);
    let line = task.ndim == 1;
    if line && (task.real || task.transposed) {
        return fail("peer fftw-mpi: of one axis only complex transforms in natural order can be compared");
    }
    if task.axes != (3 - task.ndim..3).collect::<Vec<_>>() || task.batch != 1 || (first > 1 && !line) {
        return fail(
            "peer fftw-mpi: only transforms of all of the axes, one array at a time, can be compared",
        );
    }
    let fftw = FftwMpi::load(task, launched)?;
    let comm = launched.world().raw();
    let (input, output, complex) = match line {
        true => line_shares(&fftw, task, comm),
        false => shares(&fftw, task, first, comm),
    };
    let pages = || Pages::new(complex.max(1) * 2 * task.precision.bytes());
    let arena = Arena { input: pages()?, output: pages()?, place: Some(pages()?) };
    let lengths: Vec<isize> = task.shape[first..].iter().map(|&n| n as isize).collect();
    let flags = MEASURE | if task.transposed { TRANSPOSED_OUT } else { 0 };
    let mut variants = Vec::new();
    for (name, in_place) in [("out of place", false), ("in place", true)] {
        let (from, to) = match &arena.place {
            Some(place) if in_place => (place.address(), place.address()),
            _ => (arena.input.address(), arena.output.address()),
        };
        let (rank, n) = (lengths.len() as c_int, lengths.as_ptr());
        // SAFETY: the arrays are as long as FFTW asked for and outlive the plan
        // (see the order of fields of `Peer`); the communicator is alive.
        let plan = unsafe {
            if line {
                (fftw.plan_1d)(task.shape[2] as isize, from.cast(), to.cast(), comm, FORWARD, flags)
            } else if task.real {
                (fftw.plan_r2c)(rank, n, 1, 0, 0, from.cast(), to.cast(), comm, flags)
            } else {
                (fftw.plan_c2c)(rank, n, 1, 0, 0, from.cast(), to.cast(), comm, FORWARD, flags)
            }
        };
        if !plan.is_null() {
            let plan = Owned { plan, fftw: fftw.clone() };
            // SAFETY: the plan and its arrays are alive; every process runs it.
            let run = move || unsafe { (plan.fftw.execute)(plan.plan) };
            variants.push(Variant { name, in_place, run: Box::new(run) });
        }
    }
    if variants.is_empty() {
        return fail("peer fftw-mpi: it has no plan for this transform");
    }
    Ok(Peer { name: "", version: fftw.version.clone(), variants, arena, input, output })
}
