//! FFTW's distributed transforms, from `libfftw3_mpi`, found at run time and run on the
//! communicator of Ferrier's own transform.

use std::ffi::{c_int, c_uint};

use ferrier::Precision;
use libloading::os::unix::Library;

use super::arena::{Arena, Pages};
use super::fftw::{Data, FORWARD, Fftw, MEASURE, PATIENT, Plan};
use super::launch::MpiLaunch;
use super::library::open;
use super::linked_to_mpi::{RawComm, find};
use super::peer::Peer;
use super::problem::{LocalPart, PeerProblem};
use crate::failure::{Failure, Outcome, fail};

const TRANSPOSED_OUT: c_uint = 1 << 30;

type Lengths = *const isize;
type Out = *mut isize;
type LocalSize =
    unsafe extern "C" fn(c_int, Lengths, isize, isize, isize, RawComm, Out, Out, Out, Out) -> isize;
type PlanC2c =
    unsafe extern "C" fn(c_int, Lengths, isize, isize, isize, Data, Data, RawComm, c_int, c_uint) -> Plan;
type PlanR2c = unsafe extern "C" fn(c_int, Lengths, isize, isize, isize, Data, Data, RawComm, c_uint) -> Plan;
type LocalSize1d = unsafe extern "C" fn(isize, RawComm, c_int, c_uint, Out, Out, Out, Out) -> isize;
type Plan1d = unsafe extern "C" fn(isize, Data, Data, RawComm, c_int, c_uint) -> Plan;

/// The core library, and that of distributed transforms.
struct FftwMpi {
    core: Fftw,
    library: &'static Library,
    comm: RawComm,
}

impl FftwMpi {
    fn load(problem: &PeerProblem, launch: &MpiLaunch<'_>) -> Outcome<FftwMpi> {
        let letter = if problem.precision == Precision::F32 { "f" } else { "" };
        let path = find("fftw-mpi", &format!("libfftw3{letter}_mpi.so.3"), "Debian: libfftw3-mpi3", launch)?;
        let missing = |why: String| Failure::new(format!("peer fftw-mpi: {why}"));
        let core = Fftw::load(problem.precision, missing)?;
        let library = open(&path, false).map_err(missing)?;
        let threads = problem.threads / launch.world.size();
        // Before FFTW's MPI starts.
        if threads > 1 {
            core.use_threads("fftw-mpi", threads, |why| missing(format!("its thread library: {why}")))?;
        }
        // SAFETY: the type is that of fftw3-mpi.h; MPI is initialised.
        unsafe { core.function::<unsafe extern "C" fn()>(library, "mpi_init")?() };
        Ok(FftwMpi { core, library, comm: launch.world.raw() })
    }

    /// # Safety
    /// `F` is the type of a pointer to the function called `name`.
    unsafe fn function<F: Copy>(&self, name: &str) -> Outcome<F> {
        // SAFETY: this function's contract is that of `Fftw::function`.
        unsafe { self.core.function(self.library, name) }
    }
}

/// The parts that this process holds: slabs of the first axis of the input, of the first or
/// (transposed) the second axis of the output. And the number of complex elements to allocate.
fn shares(fftw: &FftwMpi, problem: &PeerProblem, first: usize) -> Outcome<(LocalPart, LocalPart, usize)> {
    let lengths: Vec<isize> = problem.spectrum()[first..].iter().map(|&n| n as isize).collect();
    let (rank, lengths) = (lengths.len() as c_int, lengths.as_ptr());
    let (mut n0, mut start0, mut n1, mut start1) = (0, 0, 0, 0);
    // SAFETY: the type is that of fftw3-mpi.h; as many lengths as said; the out-parameters are valid.
    let complex = unsafe {
        let local_size: LocalSize = fftw.function("mpi_local_size_many_transposed")?;
        local_size(rank, lengths, 1, 0, 0, fftw.comm, &mut n0, &mut start0, &mut n1, &mut start1)
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
    Ok((input, output, complex as usize))
}

/// As `shares` for one long axis, in natural order on both sides.
fn line_shares(fftw: &FftwMpi, problem: &PeerProblem) -> Outcome<(LocalPart, LocalPart, usize)> {
    let (mut n_in, mut start_in, mut n_out, mut start_out) = (0, 0, 0, 0);
    let out: [Out; 4] = [&mut n_in, &mut start_in, &mut n_out, &mut start_out];
    let n = problem.shape[2] as isize;
    // SAFETY: the type is that of fftw3-mpi.h; the out-parameters are valid.
    let complex = unsafe {
        let local_size: LocalSize1d = fftw.function("mpi_local_size_1d")?;
        local_size(n, fftw.comm, FORWARD, MEASURE, out[0], out[1], out[2], out[3])
    };
    let part = |start: isize, count: isize| LocalPart {
        lo: [0, 0, start as usize],
        hi: [1, 1, (start + count) as usize],
        strides: [0, 2 * count as usize, 2, 0],
    };
    Ok((part(start_in, n_in), part(start_out, n_out), complex as usize))
}

/// FFTW_MEASURE. Collective.
pub fn measure(problem: &PeerProblem, launch: &MpiLaunch<'_>) -> Outcome<Peer> {
    make(problem, launch, MEASURE)
}

/// FFTW_PATIENT, at most a minute each. Collective.
pub fn patient(problem: &PeerProblem, launch: &MpiLaunch<'_>) -> Outcome<Peer> {
    make(problem, launch, PATIENT)
}

/// Plans in and out of place. Collective.
fn make(problem: &PeerProblem, launch: &MpiLaunch<'_>, effort: c_uint) -> Outcome<Peer> {
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
    let (input, output, complex) = match line {
        true => line_shares(&fftw, problem)?,
        false => shares(&fftw, problem, first)?,
    };
    let pages = || Pages::new(complex.max(1) * 2 * problem.precision.bytes());
    let arena = Arena { input: pages()?, output: pages()?, in_place: Some(pages()?) };
    let lengths: Vec<isize> = problem.shape[first..].iter().map(|&n| n as isize).collect();
    let (rank, n, comm) = (lengths.len() as c_int, lengths.as_ptr(), fftw.comm);
    let flags = effort | if problem.transposed { TRANSPOSED_OUT } else { 0 };
    // SAFETY: the types are those of fftw3-mpi.h. The arrays are as long as FFTW asked for and outlive
    // the plans (see the order of fields of `Peer`); the communicator is alive. The plans are new.
    let plans = unsafe {
        let plan_1d: Plan1d = fftw.function("mpi_plan_dft_1d")?;
        let plan_c2c: PlanC2c = fftw.function("mpi_plan_many_dft")?;
        let plan_r2c: PlanR2c = fftw.function("mpi_plan_many_dft_r2c")?;
        fftw.core.plans("fftw-mpi", &arena, |_, from, to| match (line, problem.real) {
            (true, _) => plan_1d(problem.shape[2] as isize, from, to, comm, FORWARD, flags),
            (false, true) => plan_r2c(rank, n, 1, 0, 0, from, to, comm, flags),
            (false, false) => plan_c2c(rank, n, 1, 0, 0, from, to, comm, FORWARD, flags),
        })?
    };
    Ok(Peer { version: fftw.core.version, plans, arena, input, output })
}
