//! Facts about the processor and the memory.

use std::sync::OnceLock;

use serde::Serialize;

/// Cores that this process may use.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// A data cache, as the system describes it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Cache {
    /// Its level: 1, 2 or 3.
    pub level: usize,
    /// Its size in bytes.
    pub bytes: usize,
    /// Associativity (ways); 0 if the system does not report it.
    pub ways: usize,
    /// Cores that share it.
    pub cores: usize,
}

/// The result of [`info`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Info {
    /// The processor's model name.
    pub cpu: String,
    /// Cores this process may use.
    pub cores: usize,
    /// Instruction sets that the kernels use.
    pub simd: Vec<&'static str>,
    /// Data caches of core 0.
    pub caches: Vec<Cache>,
    /// The system's setting for transparent huge pages, such as `madvise`.
    pub huge_pages: String,
    /// Memory of the machine, in bytes.
    pub memory_bytes: usize,
}

/// Describes this machine. Reads files under /proc and /sys; fields that the system does not report are empty or 0.
pub fn info() -> Info {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (processors, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    Info {
        cpu: field(&processors, "model name").to_string(),
        cores: cores(),
        simd: simd(),
        caches: caches(),
        huge_pages: super::pages::huge_page_setting().into(),
        memory_bytes: field(&memory, "MemTotal")
            .trim_end_matches(" kB")
            .parse::<usize>()
            .map_or(0, |kib| kib * 1024),
    }
}

/// The processor's model name, and the number of its family.
pub(super) fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    format!("{} family {}", field(&text, "model name"), field(&text, "cpu family"))
}

/// The value of the first line of a file under /proc that begins with `key`; empty if there is none.
fn field<'a>(text: &'a str, key: &str) -> &'a str {
    let line = text.lines().find(|line| line.starts_with(key));
    line.and_then(|line| line.split(':').nth(1)).map_or("", str::trim)
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

/// The processors in a list such as `0-3,8`.
pub(super) fn listed(list: &str) -> Vec<usize> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse::<usize>().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

pub(super) fn caches() -> Vec<Cache> {
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
            let cores = read("shared_cpu_list").map_or(1, |list| listed(&list).len().max(1));
            found.push(Cache { level, bytes: number * scale, ways, cores });
        }
    }
    found
}

/// A core's level-2 cache; 1 MiB with 8 ways if the system does not report it.
pub(crate) fn level2() -> &'static Cache {
    static CACHE: OnceLock<Cache> = OnceLock::new();
    let second = || caches().into_iter().find(|cache| cache.level == 2 && cache.ways > 0);
    CACHE.get_or_init(|| second().unwrap_or(Cache { level: 2, bytes: 1 << 20, ways: 8, cores: 1 }))
}

/// Bytes of the largest cache; 32 MiB if the system does not report it.
pub(crate) fn last_level_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| caches().iter().map(|cache| cache.bytes).max().unwrap_or(32 << 20))
}
