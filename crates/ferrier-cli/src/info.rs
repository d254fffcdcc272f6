//! `ferrier info`: this machine, as far as it matters here.

use ferrier::machine::{self, Info};
use serde::Serialize;

use crate::args::InfoArgs;
use crate::failure::Outcome;
use crate::peers::PEERS;
use crate::report::{self, bytes};
use crate::session::{Session, launched::About};

#[derive(Serialize)]
struct Report {
    version: &'static str,
    #[serde(flatten)]
    machine: Info,
    exchanges: Vec<&'static str>,
    kernels: Vec<&'static str>,
    /// What kernel `native` runs on.
    simd_used: &'static str,
    mpi: About,
    /// `null` where this program was built without it.
    cuda: Option<crate::gpu::Info>,
    devices: Vec<&'static str>,
}

/// Runs the command.
///
/// # Errors
/// The report cannot be written.
pub fn run(args: &InfoArgs, session: &Session) -> Outcome {
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        machine: machine::info(),
        exchanges: ferrier::exchange::EXCHANGES.iter().map(|member| member.name).collect(),
        kernels: ferrier::kernel::KERNELS.iter().map(|member| member.name).collect(),
        simd_used: ferrier::kernel::simd()?,
        mpi: session.agree(About::of(session.launched()))?,
        cuda: crate::gpu::info(),
        devices: ferrier::device::DEVICES.iter().map(|member| member.name).collect(),
    };
    session.first(|| match args.json.as_deref() {
        Some(path) => report::json(path, &report),
        None => report::say(&text(&report)),
    })
}

fn text(report: &Report) -> String {
    let Info { cpu, cores, simd, caches, huge_pages, memory_bytes, .. } = &report.machine;
    let or_unknown = |text: String| if text.is_empty() { "unknown".to_string() } else { text };
    let caches: Vec<_> =
        caches.iter().map(|cache| format!("L{} {}", cache.level, bytes(cache.bytes as u64))).collect();
    report::pairs(&[
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
        ("CUDA", report.cuda.as_ref().map_or("not in this build".into(), crate::gpu::text)),
        ("peers (if installed)", PEERS.iter().map(|peer| peer.name).collect::<Vec<_>>().join(", ")),
    ])
}
