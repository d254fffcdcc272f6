//! The operations of each rank in a call, for other simulators.

use ferrier_plan::cost::CallShapes;
use ferrier_plan::messages::Mechanism;
use ferrier_plan::order::{Action, actions};

use crate::exchange::ExchangeName;
use crate::forward::ForwardCall;
use crate::job::Job;
use crate::sim::{Exchanges, RingSteps};

/// An operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operation {
    /// Computes for so many seconds.
    Compute(f64),
    /// Starts to send so many bytes to a rank, with a tag.
    Send { to: usize, bytes: u64, tag: usize },
    /// Starts to receive.
    Receive { from: usize, bytes: u64, tag: usize },
    /// Waits for what it sends to a rank with a tag.
    WaitSend { to: usize, tag: usize },
    /// Waits for what it receives from a rank with a tag.
    WaitReceive { from: usize, tag: usize },
    /// Waits for everything that is in flight.
    WaitAll,
    /// Waits for all ranks.
    Barrier,
}

/// Messages of a tile: senders, receivers and bytes as exported.
struct TileMessages {
    /// From each rank.
    sent: Vec<Vec<(usize, u64)>>,
    /// To each rank.
    received: Vec<Vec<(usize, u64)>>,
    /// Seconds in which each rank starts its messages.
    starts: Vec<f64>,
    /// Bytes of each rank before encoding.
    raw: Vec<f64>,
    /// The steps of exchange `ring`.
    ring: Option<RingSteps>,
}

/// The operations of all ranks.
pub(super) fn programs(job: &Job<'_>) -> Vec<Vec<Operation>> {
    let call = ForwardCall::new(job);
    let (shapes, list) = (call.shapes(), actions(&call.schedule, &call.cuts));
    let cuts = &call.cuts;
    let mut programs = vec![Vec::new(); job.ranks()];
    let mut in_flight = 0;
    let mut known: Vec<((usize, usize), TileMessages)> = Vec::new();
    let tag = |reshape: usize, tile: usize| {
        2 * (cuts[..reshape].iter().map(|cut| cut.count()).sum::<usize>() + tile)
    };
    let constants = &job.machine.constants;
    let coding = |rank: usize, raw: f64, speed: f64| match job.is_encoded() {
        true => shapes.coding_seconds(rank, raw, speed),
        false => 0.0,
    };
    for action in list {
        match action {
            Action::Barrier => programs.iter_mut().for_each(|program| program.push(Operation::Barrier)),
            Action::Run { pass, part } => {
                for (rank, program) in programs.iter_mut().enumerate() {
                    let seconds = shapes.pass(rank, pass, part).cost(&job.machine).seconds;
                    program.push(Operation::Compute(seconds));
                }
            }
            Action::Start { reshape, tile } => {
                let messages = messages(job, &shapes, reshape, tile);
                let (tag, blocking) = (tag(reshape, tile), cuts[reshape].count() == 1);
                for (rank, program) in programs.iter_mut().enumerate() {
                    let encoding = coding(rank, messages.raw[rank], constants.encode_bytes_s);
                    program.push(Operation::Compute(encoding + messages.starts[rank]));
                    start(job, program, rank, &messages, (tag, blocking));
                }
                known.push(((reshape, tile), messages));
                in_flight += 1;
            }
            Action::Wait { reshape, tile } => {
                let Some(at) = known.iter().position(|(key, _)| *key == (reshape, tile)) else { continue };
                let (_, messages) = known.swap_remove(at);
                let tag = tag(reshape, tile);
                for (rank, program) in programs.iter_mut().enumerate() {
                    wait(job, program, rank, &messages, (tag, in_flight == 1));
                    let decoding = coding(rank, messages.raw[rank], constants.decode_bytes_s);
                    program.push(Operation::Compute(decoding));
                }
                in_flight -= 1;
            }
        }
    }
    for program in &mut programs {
        program.retain(|operation| *operation != Operation::Compute(0.0));
    }
    programs
}

fn start(
    job: &Job<'_>,
    program: &mut Vec<Operation>,
    rank: usize,
    messages: &TileMessages,
    (tag, blocking): (usize, bool),
) {
    let receive = |&(from, bytes): &(usize, u64)| Operation::Receive { from, bytes, tag };
    let send = |&(to, bytes): &(usize, u64)| Operation::Send { to, bytes, tag };
    program.extend(messages.received[rank].iter().map(receive));
    let nodes = job.nodes();
    if let Some(ring) = &messages.ring {
        // To one node after the other, as the library does.
        let step = |to: usize| ring.step(nodes[rank], nodes[to]);
        let mut order = messages.sent[rank].clone();
        order.sort_by_key(|&(to, _)| step(to));
        for together in order.chunk_by(|a, b| step(a.0) == step(b.0)) {
            program.extend(together.iter().map(send));
            program.extend(together.iter().map(|&(to, _)| Operation::WaitSend { to, tag }));
        }
        return;
    }
    let inside = |&&(peer, _): &&(usize, u64)| nodes[peer] == nodes[rank];
    let outside = |message: &&(usize, u64)| !inside(message);
    program.extend(messages.sent[rank].iter().filter(inside).map(send));
    // As in a simulation of ours: where cores do both, they copy first.
    if blocking && job.machine.constants.copy_overlap < 0.5 {
        let copied = |&(from, _): &(usize, u64)| Operation::WaitReceive { from, tag };
        program.extend(messages.received[rank].iter().filter(inside).map(copied));
        let copied = |&(to, _): &(usize, u64)| Operation::WaitSend { to, tag };
        program.extend(messages.sent[rank].iter().filter(inside).map(copied));
    }
    program.extend(messages.sent[rank].iter().filter(outside).map(send));
}

fn wait(
    job: &Job<'_>,
    program: &mut Vec<Operation>,
    rank: usize,
    messages: &TileMessages,
    (tag, alone): (usize, bool),
) {
    if alone {
        program.push(Operation::WaitAll);
    } else {
        let receive = |&(from, _): &(usize, u64)| Operation::WaitReceive { from, tag };
        program.extend(messages.received[rank].iter().map(receive));
        if job.exchange != ExchangeName::Ring {
            let send = |&(to, _): &(usize, u64)| Operation::WaitSend { to, tag };
            program.extend(messages.sent[rank].iter().map(send));
        }
    }
    if job.exchange.mechanism(job.node_count()) == Mechanism::NodeAware {
        // Ranks load what others of their node have received: they tell each other.
        let first = job.nodes()[rank] * job.per_node;
        let others = (first..job.ranks().min(first + job.per_node)).filter(|&other| other != rank);
        let others: Vec<usize> = others.collect();
        let tag = tag + 1;
        program.extend(others.iter().map(|&from| Operation::Receive { from, bytes: 1, tag }));
        program.extend(others.iter().map(|&to| Operation::Send { to, bytes: 1, tag }));
        program.extend(others.iter().map(|&from| Operation::WaitReceive { from, tag }));
        program.extend(others.iter().map(|&to| Operation::WaitSend { to, tag }));
    }
}

fn messages(job: &Job<'_>, shapes: &CallShapes<'_>, reshape: usize, tile: usize) -> TileMessages {
    let exchanges = Exchanges { job, shapes };
    let traffic = exchanges.traffic(reshape, tile);
    let constants = &job.machine.constants;
    let ring =
        (job.exchange == ExchangeName::Ring).then(|| exchanges.ring_steps(&traffic.flows, reshape, tile));
    let starts = traffic
        .ranks
        .iter()
        .map(|share| share.node_messages * constants.node_gap_s + share.wire_messages * constants.wire_gap_s);
    let (starts, raw) = (starts.collect(), traffic.ranks.iter().map(|share| share.bytes).collect());
    let mut sent = vec![Vec::new(); job.ranks()];
    let mut received = vec![Vec::new(); job.ranks()];
    let mut add = |from: usize, to: usize, bytes: f64| {
        let inside = job.nodes()[from] == job.nodes()[to];
        let slowed = if inside { bytes } else { bytes / job.machine.efficiency(bytes) };
        sent[from].push((to, slowed.round().max(1.0) as u64));
        received[to].push((from, slowed.round().max(1.0) as u64));
    };
    match job.exchange.mechanism(job.node_count()) {
        Mechanism::NodeAware => {
            // One message for each pair of nodes; the ranks of a node share them out.
            let local = |node: usize, number: usize| {
                let first = node * job.per_node;
                first + number % (job.ranks() - first).min(job.per_node)
            };
            for flow in traffic.flows {
                add(local(flow.from, flow.to), local(flow.to, flow.from), flow.bytes);
            }
        }
        _ => {
            let padded = job.exchange == ExchangeName::AllToAll;
            let all: Vec<_> = (0..job.ranks()).map(|rank| exchanges.messages(rank, reshape, tile)).collect();
            let most = all.iter().flatten().map(|message| message.1).fold(0.0, f64::max);
            for (from, list) in all.into_iter().enumerate() {
                for (to, bytes) in list {
                    add(from, to, exchanges.encoded(if padded { most } else { bytes }));
                }
            }
        }
    }
    TileMessages { sent, received, starts, raw, ring }
}
