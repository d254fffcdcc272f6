//! `ferrier info`: the parts of this machine that matter for transforms.

use std::path::PathBuf;

use clap::Args;
use ferrier::machine::{self, Info};
use ferrier_bench::peers::PEERS;
use ferrier_bench::table::{bytes, pairs};
use serde::Serialize;

use crate::failure::Outcome;
use crate::session::{Session, launched::MpiInfo};
use crate::{cuda, print};

/// `ferrier info`.
#[derive(Args, Debug)]
pub struct InfoArgs {
    /// Write JSON, to stdout without FILE
    #[arg(long, value_name = "FILE|-", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
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
}

/// Runs the command.
///
/// # Errors
/// The report cannot be written.
pub fn run(args: &InfoArgs, session: &Session) -> Outcome {
    let report = InfoReport {
        version: env!("CARGO_PKG_VERSION"),
        machine: machine::info(),
        exchanges: ferrier::exchange::EXCHANGES.iter().map(|entry| entry.name).collect(),
        kernels: ferrier::kernel::KERNELS.iter().map(|entry| entry.name).collect(),
        simd_used: ferrier::kernel::simd()?,
        mpi: session.agree(MpiInfo::of(session.launched()))?,
        cuda: cuda::info(),
        devices: ferrier::device::DEVICES.iter().map(|entry| entry.name).collect(),
    };
    session.first(|| match args.json.as_deref() {
        Some(path) => print::json(path, &report),
        None => print::say(&text(&report)),
    })
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
    ])
}
