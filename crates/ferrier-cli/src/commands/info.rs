//! `ferrier info`: the parts of this machine that matter for transforms.

use std::path::PathBuf;

use clap::Args;
use ferrier::machine::{self, Info, Placement, RankPlacement, binding_warnings};
use ferrier_bench::peers::PEERS;
use ferrier_bench::table::{bytes, left_columns, pairs};
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::session::Session;
use crate::session::launched::{self, Launched, MpiInfo};
use crate::{cuda, print};

/// `ferrier info`.
#[derive(Args, Debug)]
pub struct InfoArgs {
    /// Write JSON, to stdout without FILE
    #[arg(long, value_name = "FILE|-", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Threads that each rank will have, for the warnings about bindings [default: as a run would have]
    #[arg(long, value_name = "T")]
    pub threads: Option<usize>,
}

/// The report of the command; the keys are part of the contract.
#[derive(Serialize)]
struct InfoReport {
    version: &'static str,
    #[serde(flatten)]
    machine: Info,
    exchanges: Vec<&'static str>,
    kernels: Vec<&'static str>,
    /// The instruction set of kernel `native`.
    simd_used: &'static str,
    mpi: MpiInfo,
    /// `null` if the command was built without CUDA.
    cuda: Option<cuda::Info>,
    devices: Vec<&'static str>,
    /// Where each rank may run, and what is near.
    ranks: Vec<RankPlacement>,
    /// Bindings that cost.
    warnings: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// The report cannot be written.
pub fn run(args: &InfoArgs, session: &Session) -> Outcome {
    let ranks = session.agree(placements(args, session))?;
    let cuda = cuda::info();
    let uses_gpus = ranks.iter().any(|rank| !rank.placement.gpus.is_empty());
    let warnings = binding_warnings(&ranks, uses_gpus);
    let report = InfoReport {
        version: env!("CARGO_PKG_VERSION"),
        machine: machine::info(),
        exchanges: ferrier::exchange::EXCHANGES.iter().map(|entry| entry.name).collect(),
        kernels: ferrier::kernel::KERNELS.iter().map(|entry| entry.name).collect(),
        simd_used: ferrier::kernel::simd()?,
        mpi: session.agree(MpiInfo::of(session.launched()))?,
        cuda,
        devices: ferrier::device::DEVICES.iter().map(|entry| entry.name).collect(),
        ranks,
        warnings,
    };
    session.first(|| match args.json.as_deref() {
        Some(path) => print::json(path, &report),
        None => print::say(&text(&report)),
    })
}

/// Where the ranks of the launch are; without one, this process. Collective over processes.
fn placements(args: &InfoArgs, session: &Session) -> Outcome<Vec<RankPlacement>> {
    let placement = Placement::here();
    let Some(comm) = session.launched().map(Launched::comm) else {
        let threads = args.threads.unwrap_or(machine::cores());
        return Ok(vec![RankPlacement { host: "this node".into(), local: 0, threads, placement }]);
    };
    let hosts = launched::hosts(comm)?;
    let (rank, nodes) = (comm.rank(), comm.nodes());
    let own = RankPlacement {
        host: hosts[rank].clone(),
        local: nodes[..rank].iter().filter(|&&node| node == nodes[rank]).count(),
        threads: args.threads.unwrap_or(comm.threads()),
        placement,
    };
    let wrong = |error: serde_json::Error| Failure::new(format!("placements: {error}"));
    let all = comm.all_gather(&serde_json::to_vec(&own).map_err(wrong)?)?;
    all.iter().map(|text| serde_json::from_slice(text).map_err(wrong)).collect()
}

/// The table of placements and the warnings.
fn placements_text(report: &InfoReport) -> String {
    let list = |numbers: &[usize]| match numbers {
        [] => "?".to_string(),
        [first, .., last] if last - first + 1 == numbers.len() => format!("{first}-{last}"),
        _ => numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(","),
    };
    let row = |(rank, one): (usize, &RankPlacement)| {
        let Placement { cpus, sockets, domains, cores, gpus, .. } = &one.placement;
        let cards: Vec<_> = one.placement.near_cards().iter().map(|card| card.name.clone()).collect();
        let gpu = one.placement.gpu(one.local).filter(|_| !gpus.is_empty());
        vec![
            rank.to_string(),
            one.host.clone(),
            list(sockets),
            list(domains),
            format!("{} (cpus {})", cores.len(), list(cpus)),
            one.threads.to_string(),
            gpu.map_or("-".into(), |gpu| gpu.name.clone()),
            if cards.is_empty() { "-".into() } else { cards.join(", ") },
        ]
    };
    let heads = ["rank", "host", "socket", "NUMA", "cores", "threads", "GPU", "network card"];
    let table = left_columns(&heads, &report.ranks.iter().enumerate().map(row).collect::<Vec<_>>());
    let warnings: String = report.warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
    format!("\n{table}{warnings}")
}

fn text(report: &InfoReport) -> String {
    let Info { cpu, cores, simd, caches, huge_pages, memory_bytes, .. } = &report.machine;
    let or_unknown = |text: String| if text.is_empty() { "unknown".to_string() } else { text };
    let caches: Vec<_> =
        caches.iter().map(|cache| format!("L{} {}", cache.level, bytes(cache.bytes as u64))).collect();
    pairs(&[
        ("ferrier", report.version.to_string()),
        ("processor", or_unknown(cpu.clone())),
        ("cores", cores.to_string()),
        ("SIMD", format!("{}; kernel native on {}", or_unknown(simd.join(", ")), report.simd_used)),
        ("caches", or_unknown(caches.join(", "))),
        ("huge pages", huge_pages.clone()),
        ("memory", bytes(*memory_bytes as u64)),
        ("exchanges", report.exchanges.join(", ")),
        ("kernels", report.kernels.join(", ")),
        ("MPI", report.mpi.text()),
        ("devices", report.devices.join(", ")),
        ("CUDA", report.cuda.as_ref().map_or("not in this build".into(), cuda::text)),
        ("peers (if installed)", PEERS.iter().map(|peer| peer.name).collect::<Vec<_>>().join(", ")),
    ]) + &placements_text(report)
}
