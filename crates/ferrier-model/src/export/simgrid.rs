//! Input of SimGrid: a platform, hosts of ranks, and traces for `smpirun -replay`.

use std::fmt::Write;
use std::ops::Range;

use ferrier_plan::cost::ExchangeShape;

use super::programs::{Operation, programs};
use crate::error::{Error, Result};
use crate::job::Job;
use crate::topology::Topology;

/// Hosts below a switch of a star, so that not all pairs of hosts of a large one are listed.
const STAR_LEAF: usize = 256;

/// Bytes per second between the switches of a star: never the limit. One link for all of them, which is not shared, would do
/// as well, but SimGrid goes through all flows of such a link for each rate that it finds.
const FREE: f64 = 1e15;

/// Bytes that SMPI adds to each message: traces have as many less. On 768 ranks they are a thousandth of a message.
const ENVELOPE: u64 = 16;

/// Bytes of a word without its envelope. Fewer bytes than any message has: SMPI tells words by their length.
const WORD: u64 = 1;

/// Operations per second of a host in the exported platform.
const SPEED: f64 = 1e9;

/// The files of an export.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SimGridFiles {
    /// The platform, `platform.xml`.
    pub platform: String,
    /// The host of each rank, `hosts.txt`.
    pub hosts: String,
    /// The names of the traces, `traces.txt`.
    pub list: String,
    /// Names and contents of the traces.
    pub traces: Vec<(String, String)>,
}

/// Arguments of `smpirun`, run in the folder of the files: factors of 1, no cross-traffic, no detached messages, so
/// that its network is that of the machine file. It prints the simulated seconds before each line.
pub fn simgrid_arguments(ranks: usize) -> Vec<String> {
    // Words have a latency and take nothing of the links: SMPI would count their envelopes, some nanoseconds, by which the
    // packets of a ring are late a thousand times as much in the end. Longer messages have factors of 1.
    let words = format!("smpi/bw-factor:0:1e9;{}:1", ENVELOPE + WORD);
    let configuration = [
        // CM02 with factors by size.
        "network/model:SMPI",
        &words,
        "smpi/lat-factor:0:1",
        // Rates of all flows are computed anew at each event; "Lazy" leaves some as they were.
        "network/optim:Full",
        "network/crosstraffic:0",
        "network/weight-S:0",
        "network/TCP-gamma:0",
        // Words of one byte are under way when they are said, as in the library; messages wait for their receivers.
        "smpi/send-is-detached-thresh:2",
        "smpi/async-small-thresh:2",
        "smpi/host-speed:1Gf",
        // Seconds. With smpirun's 1e-9 latencies end up to a nanosecond early.
        "surf/precision:1e-13",
    ];
    let mut all: Vec<String> = vec!["-np".into(), ranks.to_string()];
    for (option, file) in
        [("-platform", "platform.xml"), ("-hostfile", "hosts.txt"), ("-replay", "traces.txt")]
    {
        all.extend([option.into(), file.into()]);
    }
    all.extend(configuration.iter().map(|setting| format!("--cfg={setting}")));
    all.push("--log=root.fmt:%.12r%e%m%n".into());
    all
}

/// The call as input of SimGrid.
///
/// # Errors
/// [`Error::Job`] for a topology other than a star and a fat tree of one level.
pub fn simgrid(job: &Job<'_>) -> Result<SimGridFiles> {
    let platform = platform(job)?;
    let hosts = job.nodes().iter().map(|node| format!("node{node}\n")).collect();
    let mut traces = Vec::with_capacity(job.ranks());
    for (rank, program) in programs(job).into_iter().enumerate() {
        traces.push((format!("rank{rank}.txt"), trace(rank, &program)));
    }
    let list = traces.iter().map(|(name, _)| format!("{name}\n")).collect();
    Ok(SimGridFiles { platform, hosts, list, traces })
}

fn trace(rank: usize, program: &[Operation]) -> String {
    let mut out = format!("{rank} init\n");
    for operation in program {
        let _ = match *operation {
            Operation::Compute(seconds) => writeln!(out, "{rank} compute {}", seconds * SPEED),
            Operation::Send { to, bytes, tag } => {
                writeln!(out, "{rank} isend {to} {tag} {}", own_bytes(bytes))
            }
            Operation::Receive { from, bytes, tag } => {
                writeln!(out, "{rank} irecv {from} {tag} {}", own_bytes(bytes))
            }
            Operation::WaitSend { to, tag } => writeln!(out, "{rank} wait {rank} {to} {tag}"),
            Operation::WaitReceive { from, tag } => writeln!(out, "{rank} wait {from} {rank} {tag}"),
            Operation::WaitAll => writeln!(out, "{rank} waitall"),
            Operation::Barrier => writeln!(out, "{rank} barrier"),
        };
    }
    out + &format!("{rank} finalize\n")
}

/// The bytes of a message without its envelope; those of a word stay.
fn own_bytes(bytes: u64) -> u64 {
    if bytes <= WORD { bytes } else { bytes.saturating_sub(ENVELOPE).max(WORD + 1) }
}

fn platform(job: &Job<'_>) -> Result<String> {
    let nodes = job.node_count();
    let constants = &job.machine.constants;
    let injection = job.cluster.network.injection_bytes_s();
    let (leaf, up) = match &job.cluster.topology {
        Topology::Star => (STAR_LEAF.min(nodes), FREE),
        Topology::FatTree { levels } if levels.len() == 1 => {
            (levels[0].nodes, injection * levels[0].nodes as f64 / levels[0].taper)
        }
        _ => {
            return Err(Error::Job(
                "SimGrid's platform is written for a star and for a fat tree of one level".into(),
            ));
        }
    };
    let on_node = job.per_node.min(job.ranks());
    let mut shape = ExchangeShape::default();
    shape.ranks_on_node = on_node;
    let speeds = HostSpeeds {
        cores: on_node,
        copies: shape.copy_bytes_s(&job.machine) * on_node as f64,
        copy_latency: constants.node_latency_s,
        link: injection.min(on_node as f64 * constants.wire_bytes_s),
        // A message passes the links of two nodes; those between switches have no latency of their own.
        latency: constants.wire_latency_s / 2.0,
    };
    let leaves = nodes.div_ceil(leaf);
    let mut out = String::from(
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n\
         <platform version=\"4.1\">\n<zone id=\"machine\" routing=\"Full\">\n",
    );
    for at in 0..leaves {
        write_leaf(&mut out, at, at * leaf..((at + 1) * leaf).min(nodes), &speeds);
    }
    // Links between switches: one of each leaf.
    for at in 0..if leaves > 1 { leaves } else { 0 } {
        let _ = writeln!(
            out,
            "<link id=\"up{at}\" bandwidth=\"{up}Bps\" latency=\"0s\" sharing_policy=\"SPLITDUPLEX\"/>"
        );
    }
    for (from, to) in (0..leaves).flat_map(|from| (0..leaves).map(move |to| (from, to))) {
        if from != to {
            let _ = writeln!(
                out,
                "<zoneRoute src=\"leaf{from}\" dst=\"leaf{to}\" gw_src=\"switch{from}\" gw_dst=\"switch{to}\" \
                 symmetrical=\"NO\"><link_ctn id=\"up{from}\" direction=\"UP\"/><link_ctn id=\"up{to}\" \
                 direction=\"DOWN\"/></zoneRoute>"
            );
        }
    }
    Ok(out + "</zone>\n</platform>\n")
}

/// The speeds of a host of the platform.
struct HostSpeeds {
    cores: usize,
    copies: f64,
    copy_latency: f64,
    link: f64,
    latency: f64,
}

/// Writes the hosts below a switch. Their routes are listed one by one, because SimGrid's own clusters do not share out
/// the speed of copies inside a host.
fn write_leaf(out: &mut String, leaf: usize, nodes: Range<usize>, speeds: &HostSpeeds) {
    let HostSpeeds { cores, copies, copy_latency, link, latency } = speeds;
    let _ = writeln!(out, "<zone id=\"leaf{leaf}\" routing=\"Full\">");
    for node in nodes.clone() {
        let _ = writeln!(out, "<host id=\"node{node}\" speed=\"{SPEED}f\" core=\"{cores}\"/>");
    }
    let _ = writeln!(out, "<router id=\"switch{leaf}\"/>");
    for node in nodes.clone() {
        let _ = writeln!(
            out,
            "<link id=\"copies{node}\" bandwidth=\"{copies}Bps\" latency=\"{copy_latency}s\"/>\n\
             <link id=\"link{node}\" bandwidth=\"{link}Bps\" latency=\"{latency}s\" \
             sharing_policy=\"SPLITDUPLEX\"/>"
        );
    }
    let mut route = |from: &str, to: &str, links: &str| {
        let _ = writeln!(out, "<route src=\"{from}\" dst=\"{to}\" symmetrical=\"NO\">{links}</route>");
    };
    let up = |node: usize| format!("<link_ctn id=\"link{node}\" direction=\"UP\"/>");
    let down = |node: usize| format!("<link_ctn id=\"link{node}\" direction=\"DOWN\"/>");
    for from in nodes.clone() {
        let (host, switch) = (format!("node{from}"), format!("switch{leaf}"));
        route(&host, &host, &format!("<link_ctn id=\"copies{from}\"/>"));
        route(&host, &switch, &up(from));
        route(&switch, &host, &down(from));
        for to in nodes.clone().filter(|&to| to != from) {
            route(&host, &format!("node{to}"), &(up(from) + &down(to)));
        }
    }
    out.push_str("</zone>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExchangeName, JobOptions, Processor, shipped};
    use ferrier_plan::{LayoutSpec, Precision, Problem};

    /// With the envelope that SMPI adds, a message has the bytes that the simulation counts; words stay shorter than all
    /// messages.
    #[test]
    fn messages_have_no_envelope_and_words_are_shorter() {
        let cluster = shipped("umd").unwrap();
        let problem = Problem::c2c([8; 3]).input(LayoutSpec::slabs(0)).output(LayoutSpec::slabs(1));
        let options = JobOptions::new(Processor::Cpu).per_node(Some(1)).exchange(Some(ExchangeName::Ring));
        let job = Job::new(&cluster, &problem, Precision::F64, 2, &options).unwrap();
        let files = simgrid(&job).unwrap();
        let sent = files.traces[0].1.lines().filter_map(|line| line.strip_prefix("0 isend 1 "));
        let bytes: Vec<f64> = sent.map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
        let message = 4.0 * 4.0 * 8.0 * 16.0;
        let counted = (message / job.machine.efficiency(message)).round();
        assert_eq!(bytes, [WORD as f64, counted - ENVELOPE as f64]);
        assert!([2, 16, 17, 18].map(own_bytes).iter().all(|bytes| *bytes > WORD));
    }
}
