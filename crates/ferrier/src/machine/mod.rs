//! What this machine is.

pub(crate) mod buffer;
pub(crate) mod memory_limit;
pub(crate) mod pool;
pub(crate) mod waiting;

use std::sync::OnceLock;
use std::time::Instant;

use serde::Serialize;

use crate::Result;
use crate::machine::buffer::Buffer;
use crate::machine::pool::Pool;

/// Cores that this process may use.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// Bytes of memory that can still be taken, as far as the system tells: of the
/// machine, and inside the limits of a container. Beyond those the system
/// kills. The cache of files counts as free, since it makes way.
pub fn memory_left() -> u64 {
    crate::machine::memory_limit::left()
}

/// Asks for huge pages; where the system has none, nothing happens.
///
/// # Safety
/// The range belongs to the caller.
pub(crate) unsafe fn advise_huge_pages(start: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: the caller owns the range; MADV_HUGEPAGE does not change its contents.
    unsafe {
        libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

/// A cache, as the system describes it.
#[derive(Clone, Debug, Serialize)]
pub struct Cache {
    /// 1, 2, 3.
    pub level: usize,
    /// Its size.
    pub bytes: usize,
    /// Places for lines whose addresses are alike; 0 where the system does not say.
    pub ways: usize,
}

/// What [`info`] tells.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    /// The processor's name for itself.
    pub cpu: String,
    /// Cores this process may use.
    pub cores: usize,
    /// Instruction sets that matter here.
    pub simd: Vec<&'static str>,
    /// Data caches of core 0.
    pub caches: Vec<Cache>,
    /// The system's setting for transparent huge pages, such as `madvise`.
    pub huge_pages: String,
    /// Memory of the machine.
    pub memory_bytes: usize,
}

/// What this machine is. Reads files under /proc and /sys where there are any.
pub fn info() -> Info {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key));
        line.and_then(|line| line.split(':').nth(1)).map_or(String::new(), |value| value.trim().to_string())
    };
    let huge = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let huge =
        huge.split('[').nth(1).and_then(|rest| rest.split(']').next()).unwrap_or("unknown").to_string();
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    Info {
        cpu: field(&read("/proc/cpuinfo"), "model name"),
        cores: cores(),
        simd: simd(),
        caches: caches(),
        huge_pages: huge,
        memory_bytes: memory.trim_end_matches(" kB").parse::<usize>().map_or(0, |kib| kib * 1024),
    }
}

fn simd() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        [
            ("sse2", true),
            ("avx2", is_x86_feature_detected!("avx2")),
            ("fma", is_x86_feature_detected!("fma")),
            ("avx512f", is_x86_feature_detected!("avx512f")),
        ]
        .into_iter()
        .filter_map(|(name, there)| there.then_some(name))
        .collect()
    }
    #[cfg(target_arch = "aarch64")]
    {
        vec!["neon"]
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        Vec::new()
    }
}

fn caches() -> Vec<Cache> {
    let mut found = Vec::new();
    for index in 0..8 {
        let read = |what: &str| {
            std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}"))
                .map(|text| text.trim().to_string())
        };
        let (Ok(level), Ok(size), Ok(kind)) = (read("level"), read("size"), read("type")) else { continue };
        let scale = if size.ends_with('M') { 1 << 20 } else { 1 << 10 };
        let number = size.trim_end_matches(['K', 'M']).parse::<usize>();
        if let (Ok(level), Ok(number)) = (level.parse(), number)
            && kind != "Instruction"
        {
            let ways = read("ways_of_associativity").ok().and_then(|ways| ways.parse().ok()).unwrap_or(0);
            found.push(Cache { level, bytes: number * scale, ways });
        }
    }
    found
}

/// A core's level-2 cache; 1 MiB with 8 ways where the system does not say.
pub(crate) fn level2() -> &'static Cache {
    static CACHE: OnceLock<Cache> = OnceLock::new();
    let second = || caches().into_iter().find(|cache| cache.level == 2 && cache.ways > 0);
    CACHE.get_or_init(|| second().unwrap_or(Cache { level: 2, bytes: 1 << 20, ways: 8 }))
}

/// Bytes of the largest cache; 32 MiB where the system does not say.
pub(crate) fn last_level_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| caches().iter().map(|cache| cache.bytes).max().unwrap_or(32 << 20))
}

/// How fast `threads` threads copy memory that no cache holds, in GB/s, read
/// and write counted, huge pages, best of several. Takes about 0.2 s.
///
/// # Errors
/// Where memory or threads cannot be had.
pub fn copy_speed(threads: usize) -> Result<f64> {
    const MOST: usize = 32 << 20;
    // Where memory is short, a quarter of what is left for both.
    let numbers = MOST.min((memory_left() / 64) as usize).max(1 << 16);
    Ok(2.0 * (numbers * size_of::<f64>()) as f64 / copying(threads, numbers, 5)? / 1e9)
}

/// Seconds in which `threads` threads copy so many doubles, the least of some runs.
///
/// # Errors
/// Where memory or threads cannot be had.
pub(crate) fn copying(threads: usize, numbers: usize, runs: usize) -> Result<f64> {
    const WHAT: &str = "measuring the copy speed";
    let pool = Pool::new(threads.max(1))?;
    let (from, to) = (Buffer::<f64>::new(numbers, WHAT)?, Buffer::<f64>::new(numbers, WHAT)?);
    let (from, to) = (from.as_slice(), SendPtr(to.as_ptr()));
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        pool.run(&|index| {
            let (first, last) = (numbers * index / pool.threads(), numbers * (index + 1) / pool.threads());
            let part = &from[first..last];
            // SAFETY: each thread writes a part of its own.
            unsafe { part.as_ptr().copy_to_nonoverlapping(to.get().add(first), part.len()) };
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// A pointer that may go to other threads; who uses it says why that is sound.
pub(crate) struct SendPtr<T>(pub *mut T);

impl<T> Clone for SendPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SendPtr<T> {}
// SAFETY: the pointer itself is only an address.
unsafe impl<T> Send for SendPtr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for SendPtr<T> {}

impl<T> SendPtr<T> {
    /// The pointer; a method, so that closures capture the wrapper.
    pub fn get(self) -> *mut T {
        self.0
    }
}
