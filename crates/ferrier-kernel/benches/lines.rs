//! Speed of kernels on one core, as ratios to FFTW and rustfft.
//!
//! `cargo run --release --bench lines [-- strided|contiguous [n ...]]`
//!
//! `strided`: adjacent complex f64 lines in an array of n rows that is larger
//! than the caches, in place, against FFTW (MEASURE, loaded at run time).
//! `contiguous`: lines in cache, in place, against rustfft and FFTW. The
//! libraries alternate; medians and best of the runs. `STAGING=1` gives the
//! kernel staging buffers for the next block, `BLOCK` sets the lines of a
//! block, `NO_AHEAD=1` disables prefetching.

use std::ffi::{c_int, c_uint, c_void};
use std::time::Instant;

use ferrier_kernel::{LineBlock, LineKind, Lines, LinesSpec, Strip, find};

/// Complex elements of the array for strided lines: 256 MiB.
const LARGE: usize = 1 << 24;
/// Complex elements of the array for lines in cache: 256 KiB.
const SMALL: usize = 1 << 14;

type PlanMany = unsafe extern "C" fn(
    c_int,
    *const c_int,
    c_int,
    *mut f64,
    *const c_int,
    c_int,
    c_int,
    *mut f64,
    *const c_int,
    c_int,
    c_int,
    c_int,
    c_uint,
) -> *mut c_void;

/// Memory in huge pages.
struct HugePages(*mut f64, usize);

impl HugePages {
    fn new(scalars: usize) -> Self {
        let bytes = (8 * scalars).next_multiple_of(2 << 20);
        // SAFETY: a fresh anonymous mapping.
        let start = unsafe {
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let start = libc::mmap(std::ptr::null_mut(), bytes + (2 << 20), protection, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED, "no memory for {bytes} bytes");
            let start = (start as usize).next_multiple_of(2 << 20) as *mut c_void;
            libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
            start
        };
        HugePages(start.cast(), scalars)
    }

    /// Fills with small values, so that repeated transforms in place stay finite.
    fn fill(&mut self) {
        for i in 0..self.1 {
            // SAFETY: within the mapping.
            unsafe { *self.0.add(i) = ((i * 7919 % 1009) as f64 - 504.0) * 1e-3 };
        }
    }
}

fn fftw(n: usize, howmany: usize, stride: usize, dist: usize, data: *mut f64) -> Option<Box<dyn Fn()>> {
    // SAFETY: the types are those of FFTW's documentation; the library is never unloaded.
    unsafe {
        let library = Box::leak(Box::new(libloading::Library::new("libfftw3.so.3").ok()?));
        let plan_many: libloading::Symbol<PlanMany> = library.get(b"fftw_plan_many_dft").ok()?;
        let execute: libloading::Symbol<unsafe extern "C" fn(*mut c_void)> =
            library.get(b"fftw_execute").ok()?;
        let (null, stride, dist) = (std::ptr::null(), stride as c_int, dist as c_int);
        let size = n as c_int;
        let plan =
            plan_many(1, &size, howmany as c_int, data, null, stride, dist, data, null, stride, dist, -1, 0);
        Some(Box::new(move || execute(plan)))
    }
}

/// Transforms `count` lines in blocks; lines are `lane` apart, elements `step`.
fn ours(kernel: &str, n: usize, count: usize, step: usize, lane: usize, data: *mut f64) -> Box<dyn Fn()> {
    let spec = LinesSpec { n, kind: LineKind::Forward, scale: 1.0 };
    let kernel: Box<dyn Lines<f64>> = ferrier_kernel::lines(find(kernel).expect("a kernel"), &spec);
    let size = match std::env::var("BLOCK") {
        Ok(size) => size.parse().expect("BLOCK is a number of lines"),
        Err(_) => kernel.block(lane < step),
    };
    let scratch = HugePages::new(kernel.scratch(size));
    let no_ahead = std::env::var("NO_AHEAD").is_ok();
    let strip = move |first: usize| {
        [Strip {
            ptr: data.wrapping_add(first * lane),
            at: 0,
            len: n,
            step: step as isize,
            lane: lane as isize,
            ..Strip::default()
        }]
    };
    // As plans do for a second-level cache of few ways.
    let staging_len =
        if std::env::var("STAGING").is_ok() { kernel.staging_len(size).next_multiple_of(8) } else { 0 };
    let staging = HugePages::new(2 * staging_len);
    Box::new(move || {
        let mut staged = false;
        let mut buffers = [staging.0, staging.0.wrapping_add(staging_len)];
        if staging_len == 0 {
            buffers = [std::ptr::null_mut(); 2];
        }
        for first in (0..count).step_by(size) {
            let next = (first + size).min(count);
            let (here, there) = (strip(first), strip(next));
            let ahead_lines = if no_ahead { 0 } else { size.min(count - next) };
            let source = if staged { [kernel.staged(buffers[0], next - first)] } else { here };
            let block = LineBlock {
                ahead: &there,
                ahead_lines,
                staging: buffers[1],
                from_staging: staged,
                ..LineBlock::new(next - first, &source, &here)
            };
            // SAFETY: the array has `count` lines; scratch and staging have their lengths; there is one thread.
            staged = unsafe { kernel.run(&block, std::slice::from_raw_parts_mut(scratch.0, scratch.1)) };
            buffers.swap(0, 1);
        }
    })
}

/// Best and median seconds of each job; the jobs alternate.
fn race(data: &mut HugePages, jobs: &[&dyn Fn()], runs: usize) -> Vec<(f64, f64)> {
    let mut times = vec![vec![]; jobs.len()];
    for _ in 0..runs {
        for (job, times) in jobs.iter().zip(&mut times) {
            data.fill();
            let start = Instant::now();
            job();
            times.push(start.elapsed().as_secs_f64());
        }
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    times.iter().map(|times| (times[0], times[times.len() / 2])).collect()
}

fn strided(n: usize) {
    let count = (LARGE / n).next_multiple_of(64);
    let mut data = HugePages::new(2 * n * count);
    let Some(peer) = fftw(n, count, count, 1, data.0) else {
        return println!("libfftw3.so.3 not found");
    };
    let native = ours("native", n, count, 2 * count, 2, data.0);
    let times = race(&mut data, &[&*native, &*peer], 9);
    let bytes = 32.0 * (n * count) as f64 * 1e-9;
    let ((best, median), (peer_best, peer_median)) = (times[0], times[1]);
    println!(
        "strided    {n:5}: native {:7.2} ms ({:5.1} GB/s), fftw {:7.2} ms: {:.2} (best {:.2})",
        1e3 * median,
        bytes / median,
        1e3 * peer_median,
        peer_median / median,
        peer_best / best
    );
}

fn contiguous(n: usize) {
    let count = SMALL.div_ceil(n).next_multiple_of(16);
    let mut data = HugePages::new(2 * n * count);
    let native = ours("native", n, count, 2, 2 * n, data.0);
    let plan = rustfft::FftPlanner::<f64>::new().plan_fft_forward(n);
    let rows = data.0;
    let mut scratch = vec![Default::default(); plan.get_inplace_scratch_len()];
    let scratch = std::cell::RefCell::new(&mut scratch);
    let rustfft = move || {
        // SAFETY: the array as complex scalars; there is no other access during the call.
        let all = unsafe { std::slice::from_raw_parts_mut(rows.cast(), n * count) };
        plan.process_with_scratch(all, &mut scratch.borrow_mut());
    };
    let peer = fftw(n, count, 1, n, data.0);
    let none = || ();
    let peer: &dyn Fn() = peer.as_deref().unwrap_or(&none);
    let times = race(&mut data, &[&*native, &rustfft, peer], 201);
    let flops = 5e-9 * (n * count) as f64 * (n as f64).log2();
    println!(
        "contiguous {n:5}: native {:7.1} us ({:5.1} GFlop/s), to rustfft {:.2} (best {:.2}), to fftw {:.2} (best {:.2})",
        1e6 * times[0].1,
        flops / times[0].1,
        times[1].1 / times[0].1,
        times[1].0 / times[0].0,
        times[2].1 / times[0].1,
        times[2].0 / times[0].0
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |name: &str| arguments.first().is_none_or(|what| what == name);
    let mut sizes: Vec<usize> = arguments.iter().filter_map(|word| word.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![64, 128, 256, 512, 1024, 100, 101, 120, 125, 127, 129, 131, 180, 243, 250];
    }
    for n in sizes {
        if wanted("strided") {
            strided(n);
        }
        if wanted("contiguous") {
            contiguous(n);
        }
    }
}
