//! Where ranks sit: sockets, NUMA domains, cores, and the GPUs and network cards near them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::info::listed;

/// The hardware threads that this process may use, as the system lists them.
fn allowed_cpus() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    allowed.unwrap_or("").trim().into()
}

/// A GPU or a network card on the PCI bus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PciDevice {
    /// Its address, and names that the system gives it.
    pub name: String,
    /// Its NUMA domain; `None` if the system does not report it.
    pub domain: Option<usize>,
    /// The socket of that domain.
    pub socket: Option<usize>,
}

/// Where a process may run, and what is near.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Placement {
    /// Hardware threads that the process may use, by the system's numbers.
    pub cpus: Vec<usize>,
    /// Sockets and cores of these.
    pub cores: Vec<(usize, usize)>,
    /// Their sockets.
    pub sockets: Vec<usize>,
    /// Their NUMA domains.
    pub domains: Vec<usize>,
    /// Cores of the node.
    pub node_cores: usize,
    /// GPUs of the node.
    pub gpus: Vec<PciDevice>,
    /// Network cards of the node.
    pub network_cards: Vec<PciDevice>,
}

impl Placement {
    /// The placement of a process that may use the hardware threads `cpus` (a list such as `0-3,8`), as the files below
    /// `sys` describe the node (`/sys`). What is not there is left out.
    pub fn read(sys: &Path, cpus: &str) -> Placement {
        let read = |path: &Path| fs::read_to_string(path).ok().map(|text| text.trim().to_string());
        let number = |path: &Path| read(path)?.parse::<i64>().ok();
        let cpu_folder = sys.join("devices/system/cpu");
        let core = |cpu: usize| {
            let topology = cpu_folder.join(format!("cpu{cpu}/topology"));
            let socket = number(&topology.join("physical_package_id"))?;
            Some((usize::try_from(socket).ok()?, usize::try_from(number(&topology.join("core_id"))?).ok()?))
        };
        let online = read(&cpu_folder.join("online")).map_or(Vec::new(), |list| listed(&list));
        let all: BTreeSet<(usize, usize)> = online.iter().filter_map(|&cpu| core(cpu)).collect();
        let domains: Vec<(usize, Vec<usize>)> = numbered(&sys.join("devices/system/node"), "node")
            .into_iter()
            .filter_map(|(number, folder)| Some((number, listed(&read(&folder.join("cpulist"))?))))
            .collect();
        let cpus = listed(cpus);
        let cores: BTreeSet<(usize, usize)> = cpus.iter().filter_map(|&cpu| core(cpu)).collect();
        let sockets: BTreeSet<usize> = cores.iter().map(|core| core.0).collect();
        let near = domains.iter().filter(|(_, list)| list.iter().any(|cpu| cpus.contains(cpu)));
        let near: Vec<usize> = near.map(|(number, _)| *number).collect();
        let mut placement = Placement {
            cores: cores.into_iter().collect(),
            sockets: sockets.into_iter().collect(),
            domains: near,
            node_cores: all.len(),
            cpus,
            ..Placement::default()
        };
        let socket_of = |domain: usize| {
            let cpus = &domains.iter().find(|(number, _)| *number == domain)?.1;
            core(*cpus.first()?).map(|core| core.0)
        };
        let mut devices: Vec<_> = entries(&sys.join("bus/pci/devices"));
        devices.sort();
        for (address, folder) in devices {
            let Some(class) = read(&folder.join("class")) else { continue };
            let domain = number(&folder.join("numa_node")).and_then(|domain| usize::try_from(domain).ok());
            let names = ["net", "infiniband"].into_iter().flat_map(|kind| entries(&folder.join(kind)));
            let names: Vec<String> = [address].into_iter().chain(names.map(|(name, _)| name)).collect();
            let device = PciDevice { name: names.join(" "), domain, socket: domain.and_then(&socket_of) };
            // Classes of the PCI standard: 3D controllers, displays of GPUs without a screen, network, InfiniBand.
            match class.trim_start_matches("0x").get(..4) {
                Some("0302" | "0380" | "1200") => placement.gpus.push(device),
                Some("0300") if read(&folder.join("vendor")).is_some_and(|vendor| vendor == "0x10de") => {
                    placement.gpus.push(device);
                }
                Some("0200" | "0207") => placement.network_cards.push(device),
                _ => {}
            }
        }
        placement
    }

    /// The placement of this process.
    pub fn here() -> Placement {
        Placement::read(Path::new("/sys"), &allowed_cpus())
    }

    /// The GPU of the rank with this number on its node: they are taken in turn.
    pub fn gpu(&self, local: usize) -> Option<&PciDevice> {
        self.gpus.get(local % self.gpus.len().max(1))
    }

    /// The network cards on the sockets of the process; all of them if none is.
    pub fn near_cards(&self) -> Vec<&PciDevice> {
        let is_near = |card: &&PciDevice| card.socket.is_none_or(|socket| self.sockets.contains(&socket));
        let near: Vec<&PciDevice> = self.network_cards.iter().filter(is_near).collect();
        if near.is_empty() { self.network_cards.iter().collect() } else { near }
    }

    /// Whether the process may use all cores of its node.
    pub fn is_unbound(&self) -> bool {
        self.cores.len() == self.node_cores
    }
}

/// The socket that this process is bound to, as the files below `sys` describe the node; `None` where it may run on
/// several, or where the system does not say.
pub(crate) fn own_socket(sys: &Path) -> Option<usize> {
    socket_of(sys, &allowed_cpus())
}

fn socket_of(sys: &Path, cpus: &str) -> Option<usize> {
    let package = |cpu: usize| {
        let path = sys.join(format!("devices/system/cpu/cpu{cpu}/topology/physical_package_id"));
        fs::read_to_string(path).ok()?.trim().parse::<usize>().ok()
    };
    let mut sockets = listed(cpus).into_iter().map(package);
    let first = sockets.next()??;
    sockets.all(|socket| socket == Some(first)).then_some(first)
}

/// A rank, where it is and how many threads it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankPlacement {
    /// The name of its host.
    pub host: String,
    /// The number of the rank among those of its node.
    pub local: usize,
    /// Its threads.
    pub threads: usize,
    /// Where it may run.
    pub placement: Placement,
}

/// What bindings of these ranks cost, one line for each.
pub fn binding_warnings(ranks: &[RankPlacement], uses_gpus: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    for (rank, RankPlacement { local, threads, placement, .. }) in ranks.iter().enumerate() {
        let cores = placement.cores.len();
        if cores > 0 && *threads > cores {
            warnings.push(format!(
                "rank {rank}: its {threads} threads are bound to {}; bind it to {threads} cores (Open MPI: --map-by \
                 slot:PE={threads}) or to none (--bind-to none)",
                count(cores, "core")
            ));
        }
        let Some(gpu) = placement.gpu(*local).filter(|_| uses_gpus) else { continue };
        if let (Some(socket), [own]) = (gpu.socket, &placement.sockets[..])
            && socket != *own
        {
            warnings.push(format!(
                "rank {rank}: it runs on socket {own}, its GPU {} hangs on socket {socket}; bind it to that socket",
                gpu.name
            ));
        }
    }
    warnings.extend(shared_cores(ranks));
    for (rank, RankPlacement { placement, .. }) in ranks.iter().enumerate() {
        let sockets: BTreeSet<usize> =
            placement.network_cards.iter().filter_map(|card| card.socket).collect();
        let far = !sockets.is_empty() && placement.sockets.iter().all(|own| !sockets.contains(own));
        if let (true, [own]) = (far, &placement.sockets[..]) {
            warnings.push(format!("rank {rank}: it runs on socket {own}, which has no network card"));
        }
    }
    idle(ranks, &mut warnings);
    warnings
}

/// Ranks that are bound to the same core.
fn shared_cores(ranks: &[RankPlacement]) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut told = BTreeSet::new();
    for (rank, one) in ranks.iter().enumerate() {
        for (other, two) in ranks.iter().enumerate().skip(rank + 1) {
            let [a, b] = [one, two].map(|rank| &rank.placement);
            if one.host != two.host || a.is_unbound() || b.is_unbound() || told.contains(&other) {
                continue;
            }
            let shared = a.cores.iter().filter(|core| b.cores.contains(core)).count();
            let all: BTreeSet<_> = a.cores.iter().chain(&b.cores).collect();
            if shared > 0 && one.threads + two.threads > all.len() {
                told.insert(other);
                warnings.push(format!(
                    "ranks {rank} and {other} of {} share {} for {} threads",
                    one.host,
                    count(shared, "core"),
                    one.threads + two.threads
                ));
            }
        }
    }
    warnings
}

/// Nodes whose ranks have more threads than cores, or leave cores idle by their binding.
fn idle(ranks: &[RankPlacement], warnings: &mut Vec<String>) {
    let hosts: BTreeSet<&str> = ranks.iter().map(|rank| &*rank.host).collect();
    for host in hosts {
        let on = || ranks.iter().filter(|rank| rank.host == host);
        let threads: usize = on().map(|rank| rank.threads).sum();
        let cores = on().map(|rank| rank.placement.node_cores).max().unwrap_or(0);
        let bound = on().all(|rank| !rank.placement.is_unbound());
        let used: BTreeSet<_> = on().flat_map(|rank| rank.placement.cores.iter().copied()).collect();
        if cores > 0 && threads > cores {
            warnings.push(format!("{host}: {threads} threads of all ranks share {}", count(cores, "core")));
        } else if bound && 2 * used.len() <= cores {
            let idle = cores - used.len();
            warnings.push(format!(
                "{host}: its ranks are bound to {} of {cores} cores; {idle} are idle",
                used.len()
            ));
        }
    }
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Names and paths in a folder.
fn entries(folder: &Path) -> Vec<(String, std::path::PathBuf)> {
    let Ok(list) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<_> = list
        .flatten()
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .collect();
    found.sort();
    found
}

/// Entries of a folder that are called `prefix` and a number, by their numbers.
fn numbered(folder: &Path, prefix: &str) -> Vec<(usize, std::path::PathBuf)> {
    let number = |(name, path): (String, std::path::PathBuf)| {
        Some((name.strip_prefix(prefix)?.parse::<usize>().ok()?, path))
    };
    let mut found: Vec<_> = entries(folder).into_iter().filter_map(number).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node of two sockets of four cores with two hardware threads each, four GPUs and two network cards.
    fn node(sys: &Path) {
        let write = |path: &str, text: &str| {
            let path = sys.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        };
        write("devices/system/cpu/online", "0-15");
        for cpu in 0..16 {
            let core = cpu % 8;
            let topology = format!("devices/system/cpu/cpu{cpu}/topology");
            write(&format!("{topology}/physical_package_id"), &(core / 4).to_string());
            write(&format!("{topology}/core_id"), &(core % 4).to_string());
        }
        write("devices/system/node/node0/cpulist", "0-3,8-11");
        write("devices/system/node/node1/cpulist", "4-7,12-15");
        for (number, (address, class, domain)) in [
            ("0000:04:00.0", "0x030200", 0),
            ("0000:05:00.0", "0x030200", 0),
            ("0000:84:00.0", "0x030200", 1),
            ("0000:85:00.0", "0x030200", 1),
            ("0000:06:00.0", "0x020700", 0),
            ("0000:86:00.0", "0x020000", 1),
            ("0000:00:1f.0", "0x060100", -1),
        ]
        .into_iter()
        .enumerate()
        {
            let folder = format!("bus/pci/devices/{address}");
            write(&format!("{folder}/class"), class);
            write(&format!("{folder}/numa_node"), &domain.to_string());
            match number {
                4 => write(&format!("{folder}/infiniband/mlx5_0/node_type"), "1"),
                5 => write(&format!("{folder}/net/eth0/mtu"), "1500"),
                _ => {}
            }
        }
    }

    fn ranks(sys: &Path, lists: &[(&str, usize)]) -> Vec<RankPlacement> {
        let rank = |(local, (cpus, threads)): (usize, &(&str, usize))| RankPlacement {
            host: "node".into(),
            local,
            threads: *threads,
            placement: Placement::read(sys, cpus),
        };
        lists.iter().enumerate().map(rank).collect()
    }

    #[test]
    fn sockets_domains_and_devices_are_found() {
        let folder = tempfile::tempdir().unwrap();
        node(folder.path());
        let found = Placement::read(folder.path(), "4-5,12");
        assert_eq!(found.cpus, [4, 5, 12]);
        assert_eq!(found.cores, [(1, 0), (1, 1)]);
        assert_eq!((&found.sockets[..], &found.domains[..], found.node_cores), (&[1][..], &[1][..], 8));
        let sockets = |list: &[PciDevice]| list.iter().map(|device| device.socket).collect::<Vec<_>>();
        assert_eq!(sockets(&found.gpus), [Some(0), Some(0), Some(1), Some(1)]);
        assert_eq!(found.network_cards[0].name, "0000:06:00.0 mlx5_0");
        assert_eq!(found.near_cards().len(), 1);
        assert_eq!(found.near_cards()[0].name, "0000:86:00.0 eth0");
        assert_eq!(found.gpu(6), Some(&found.gpus[2]));
        assert!(Placement::read(folder.path(), "0-15").is_unbound());
        let socket = |cpus: &str| socket_of(folder.path(), cpus);
        assert_eq!(
            [socket("4-5,12"), socket("0,8"), socket("3-4"), socket("")],
            [Some(1), Some(0), None, None]
        );
        // Nothing is known of an empty folder.
        assert_eq!(Placement::read(&folder.path().join("none"), "0-1").cores, []);
    }

    #[test]
    fn bindings_that_cost_are_reported_and_good_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        node(folder.path());
        let said = |lists: &[(&str, usize)], gpus: bool| {
            binding_warnings(&ranks(folder.path(), lists), gpus).join("\n")
        };
        // A rank for each GPU, two cores each on its socket; and four unbound ranks.
        assert_eq!(said(&[("0-1", 2), ("2-3", 2), ("4-5", 2), ("6-7", 2)], true), "");
        assert_eq!(said(&[("0-15", 2); 4], false), "");
        let one_core = said(&[("0", 4), ("1", 4), ("4", 4), ("5", 4)], false);
        assert!(one_core.contains("rank 0: its 4 threads are bound to 1 core"), "{one_core}");
        // Two hardware threads of one core.
        let shared = said(&[("0", 1), ("8", 1)], false);
        assert!(shared.contains("ranks 0 and 1 of node share 1 core for 2 threads"), "{shared}");
        let across = said(&[("4-5", 2), ("6-7", 2), ("0-1", 2), ("2-3", 2)], true);
        assert!(
            across.contains("rank 0: it runs on socket 1, its GPU 0000:04:00.0 hangs on socket 0"),
            "{across}"
        );
        assert_eq!(across.lines().count(), 4, "{across}");
        let crowded = said(&[("0-15", 4); 4], false);
        assert!(crowded.contains("16 threads of all ranks share 8 cores"), "{crowded}");
        let idle = said(&[("0", 1), ("1", 1)], false);
        assert!(idle.contains("bound to 2 of 8 cores; 6 are idle"), "{idle}");
        // A card on one socket only.
        fs::remove_dir_all(folder.path().join("bus/pci/devices/0000:86:00.0")).unwrap();
        let far = said(&[("0-3", 4), ("4-7", 4)], false);
        assert_eq!(far, "rank 1: it runs on socket 1, which has no network card");
    }
}
