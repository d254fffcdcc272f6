//! Available memory: of the machine, and of the control groups of this process, which set the limits of a
//! container. A process that exceeds them is killed; its allocations do not fail.

use std::fs;
use std::path::Path;

/// The files of a version of control groups.
struct CgroupFiles {
    /// Folder of the root group.
    top: &'static str,
    limit: &'static str,
    used: &'static str,
    /// Lines of `memory.stat` with the page cache, which is reclaimable.
    cache: [&'static str; 2],
}

const VERSION_2: CgroupFiles = CgroupFiles {
    top: "",
    limit: "memory.max",
    used: "memory.current",
    cache: ["active_file", "inactive_file"],
};
const VERSION_1: CgroupFiles = CgroupFiles {
    top: "memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cache: ["total_active_file", "total_inactive_file"],
};

/// Bytes of memory that can still be allocated, as far as the system reports: of the machine, and within the limits
/// of a container. The page cache counts as free.
pub fn memory_left() -> u64 {
    let free = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| Some(entry(&text, "MemAvailable:")? + entry(&text, "SwapFree:").unwrap_or(0)));
    let groups = fs::read_to_string("/proc/self/cgroup")
        .ok()
        .and_then(|list| left_in_groups(&list, Path::new("/sys/fs/cgroup")));
    [free.map(|kib| kib.saturating_mul(1024)), groups].into_iter().flatten().min().unwrap_or(u64::MAX)
}

/// The number after the first word of the line that begins with `word`.
fn entry(text: &str, word: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next() == Some(word)).then(|| words.next()?.parse().ok()).flatten())
}

/// Bytes left in the groups of `list` (as in `/proc/self/cgroup`); `None` if none has a limit.
fn left_in_groups(list: &str, mount: &Path) -> Option<u64> {
    let group = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let files = match controllers {
            "" => &VERSION_2,
            list if list.split(',').any(|name| name == "memory") => &VERSION_1,
            _ => return None,
        };
        let top = mount.join(files.top);
        // The limits of all ancestors apply as well. Inside a container the path may be one of the host's, of
        // which only the root group exists here.
        let own = Path::new(path.trim_start_matches('/'));
        own.ancestors().filter_map(|above| left_in(files, &top.join(above))).min()
    };
    list.lines().filter_map(group).min()
}

fn left_in(files: &CgroupFiles, folder: &Path) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let limit: u64 = read(files.limit)?.trim().parse().ok()?;
    let used: u64 = read(files.used)?.trim().parse().ok()?;
    let stat = read("memory.stat").unwrap_or_default();
    let cache: u64 = files.cache.iter().filter_map(|word| entry(&stat, word)).sum();
    Some(limit.saturating_sub(used.saturating_sub(cache)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_counts_without_the_page_cache() {
        let mount = std::env::temp_dir().join(format!("ferrier-memory-limit-{}", std::process::id()));
        let put = |group: &str, files: &[(&str, &str)]| {
            let folder = mount.join(group);
            fs::create_dir_all(&folder).expect("a folder");
            files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).expect("a file"));
        };
        put("a/b", &[("memory.max", "max\n"), ("memory.current", "90\n")]);
        let stat = "anon 400\nactive_file 200\ninactive_file 100\n";
        put("a", &[("memory.max", "1000\n"), ("memory.current", "900\n"), ("memory.stat", stat)]);
        let stat = "active_file 1\ntotal_active_file 5\ntotal_inactive_file 6\n";
        let first =
            [("memory.limit_in_bytes", "70\n"), ("memory.usage_in_bytes", "50\n"), ("memory.stat", stat)];
        put("memory/c", &first);
        let left = |list: &str| left_in_groups(list, &mount);
        assert_eq!(left("0::/a/b\n"), Some(400));
        assert_eq!(left("1:cpu:/a\n"), None);
        assert_eq!(left("4:cpu,memory:/c\n0::/\n"), Some(31));
        assert_eq!(left("4:memory:/c/gone\n0::/a/b\n"), Some(31));
        assert_eq!(left("0::/elsewhere\n"), None);
        fs::remove_dir_all(&mount).expect("to clean up");
    }
}
