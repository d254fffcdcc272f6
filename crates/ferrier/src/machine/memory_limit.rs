//! How much memory can still be had: of the machine, and of the control
//! groups that this process is in, where a container's limits stand. Beyond
//! those nothing fails, it is killed.

use std::fs;
use std::path::Path;

/// Where a kind of control groups keeps what.
struct Kind {
    /// Folder of the topmost group.
    top: &'static str,
    limit: &'static str,
    used: &'static str,
    /// Lines of `memory.stat` with what would be given up for others: the cache of files.
    cache: [&'static str; 2],
}

const SECOND: Kind =
    Kind { top: "", limit: "memory.max", used: "memory.current", cache: ["active_file", "inactive_file"] };
const FIRST: Kind = Kind {
    top: "memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cache: ["total_active_file", "total_inactive_file"],
};

/// Bytes that can still be taken, as far as the system tells; see [`crate::machine::memory_left`].
pub(crate) fn left() -> u64 {
    let free = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| Some(entry(&text, "MemAvailable:")? + entry(&text, "SwapFree:").unwrap_or(0)));
    let groups = fs::read_to_string("/proc/self/cgroup")
        .ok()
        .and_then(|list| left_in_groups(&list, Path::new("/sys/fs/cgroup")));
    [free.map(|kib| kib.saturating_mul(1024)), groups].into_iter().flatten().min().unwrap_or(u64::MAX)
}

/// The number after a word at the beginning of a line.
fn entry(text: &str, word: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next() == Some(word)).then(|| words.next()?.parse().ok()).flatten())
}

/// What the groups in `list` (as in `/proc/self/cgroup`) leave; `None` where none has a limit.
fn left_in_groups(list: &str, mount: &Path) -> Option<u64> {
    let group = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let kind = match controllers {
            "" => &SECOND,
            list if list.split(',').any(|name| name == "memory") => &FIRST,
            _ => return None,
        };
        let top = mount.join(kind.top);
        // The limits of all groups above hold as well. Inside a container the path may be one of the
        // host's, of which only the last part, the top here, is there.
        let own = Path::new(path.trim_start_matches('/'));
        own.ancestors().filter_map(|above| left_in(kind, &top.join(above))).min()
    };
    list.lines().filter_map(group).min()
}

fn left_in(kind: &Kind, folder: &Path) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let limit: u64 = read(kind.limit)?.trim().parse().ok()?;
    let used: u64 = read(kind.used)?.trim().parse().ok()?;
    let stat = read("memory.stat").unwrap_or_default();
    let cache: u64 = kind.cache.iter().filter_map(|word| entry(&stat, word)).sum();
    Some(limit.saturating_sub(used.saturating_sub(cache)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_counts_and_caches_do_not() {
        let mount = std::env::temp_dir().join(format!("ferrier-room-{}", std::process::id()));
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
