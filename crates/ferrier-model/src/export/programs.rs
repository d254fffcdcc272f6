//! The operations of each rank in a call, for other simulators.

use ferrier_plan::cost::CallShapes;
use ferrier_plan::messages::Mechanism;
use ferrier_plan::order::{Action, actions};
use ferrier_plan::ring::IN_FLIGHT;

use crate::exchange::ExchangeName;
use crate::forward::ForwardCall;
use crate::job::Job;
use crate::sim::{Exchanges, full_speed_bytes};

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

/// Tags of a tile: of the packets of a message, and of a word about it.
const TAGS: usize = IN_FLIGHT + 1;
const WORD: usize = IN_FLIGHT;

/// A message, or a packet of one in a ring.
#[derive(Clone, Copy)]
struct Message {
    peer: usize,
    bytes: u64,
    /// Its number among those to the same rank.
    packet: usize,
    /// Messages of the same rank that have arrived before it is sent.
    after: usize,
}

/// Messages of a tile.
struct TileMessages {
    /// From each rank, in a ring in the order of sending.
    sent: Vec<Vec<Message>>,
    /// To each rank.
    received: Vec<Vec<Message>>,
    /// Seconds in which each rank starts its messages.
    starts: Vec<f64>,
    /// Bytes of each rank before encoding.
    raw: Vec<f64>,
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
        TAGS * (cuts[..reshape].iter().map(|cut| cut.count()).sum::<usize>() + tile)
    };
    let constants = &job.machine.constants;
    let coding = |rank: usize, raw: f64, speed: f64| match job.is_encoded() {
        true => shapes.coding_seconds(rank, raw, speed),
        false => 0.0,
    };
    // Time in which other ranks have the core of each: the next barrier, the next message, or the end waits for them.
    let mut late = vec![0.0; job.ranks()];
    for action in list {
        match action {
            Action::Barrier => {
                for (program, late) in programs.iter_mut().zip(&mut late) {
                    program.extend([Operation::Compute(std::mem::take(late)), Operation::Barrier]);
                }
            }
            Action::Run { pass, part } => {
                for (rank, program) in programs.iter_mut().enumerate() {
                    let cost = shapes.pass(rank, pass, part).cost(&job.machine);
                    late[rank] += cost.late_seconds(constants);
                    program.push(Operation::Compute(cost.own_seconds(constants)));
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
                let (tag, blocking) = (tag(reshape, tile), cuts[reshape].count() == 1);
                for (rank, program) in programs.iter_mut().enumerate() {
                    wait(job, program, rank, &messages, (tag, blocking, in_flight == 1));
                    let decoding = coding(rank, messages.raw[rank], constants.decode_bytes_s);
                    program.push(Operation::Compute(std::mem::take(&mut late[rank]) + decoding));
                }
                in_flight -= 1;
            }
        }
    }
    for (program, late) in programs.iter_mut().zip(late) {
        program.push(Operation::Compute(late));
        program.retain(|operation| *operation != Operation::Compute(0.0));
    }
    programs
}

impl Message {
    fn send(&self, tag: usize) -> Operation {
        Operation::Send { to: self.peer, bytes: self.bytes, tag: tag + self.packet }
    }

    fn receive(&self, tag: usize) -> Operation {
        Operation::Receive { from: self.peer, bytes: self.bytes, tag: tag + self.packet }
    }

    fn wait_sent(&self, tag: usize) -> Operation {
        Operation::WaitSend { to: self.peer, tag: tag + self.packet }
    }

    fn wait_received(&self, tag: usize) -> Operation {
        Operation::WaitReceive { from: self.peer, tag: tag + self.packet }
    }
}

fn start(
    job: &Job<'_>,
    program: &mut Vec<Operation>,
    rank: usize,
    messages: &TileMessages,
    (tag, blocking): (usize, bool),
) {
    let [sent, received] = [&messages.sent[rank], &messages.received[rank]];
    program.extend(received.iter().map(|message| message.receive(tag)));
    let nodes = job.nodes();
    if job.exchange == ExchangeName::Ring {
        let firsts = |list: &[Message]| -> Vec<usize> {
            list.iter().filter(|message| message.packet == 0).map(|message| message.peer).collect()
        };
        let tag = tag + WORD;
        program.extend(firsts(sent).into_iter().map(|from| Operation::Receive { from, bytes: 1, tag }));
        program.extend(firsts(received).into_iter().map(|to| Operation::Send { to, bytes: 1, tag }));
        // Packets are sent while the rank waits for the tile; of several tiles, the first ones at once.
        let first = sent.iter().take_while(|message| message.after == 0 && !blocking);
        program.extend(first.map(|message| message.send(tag - WORD)));
        return;
    }
    let inside = |message: &&Message| nodes[message.peer] == nodes[rank];
    program.extend(sent.iter().filter(inside).map(|message| message.send(tag)));
    // As in a simulation of ours: where cores do both, they copy first.
    if blocking && job.machine.constants.copy_overlap < 0.5 {
        program.extend(received.iter().filter(inside).map(|message| message.wait_received(tag)));
        program.extend(sent.iter().filter(inside).map(|message| message.wait_sent(tag)));
    }
    program.extend(sent.iter().filter(|message| !inside(message)).map(|message| message.send(tag)));
}

fn wait(
    job: &Job<'_>,
    program: &mut Vec<Operation>,
    rank: usize,
    messages: &TileMessages,
    (tag, blocking, alone): (usize, bool, bool),
) {
    let sent = &messages.sent[rank];
    let mut arrived = 0;
    if job.exchange == ExchangeName::Ring {
        for message in sent.iter().filter(|message| message.after > 0 || blocking) {
            program.extend(sent[arrived..message.after].iter().map(|message| message.wait_sent(tag)));
            if message.packet == 0 {
                // The receiver has said that it is ready.
                program.push(Operation::WaitReceive { from: message.peer, tag: tag + WORD });
            }
            program.push(message.send(tag));
            arrived = message.after;
        }
    }
    if alone {
        program.push(Operation::WaitAll);
    } else {
        program.extend(messages.received[rank].iter().map(|message| message.wait_received(tag)));
        program.extend(sent[arrived..].iter().map(|message| message.wait_sent(tag)));
    }
    if job.exchange.mechanism(job.node_count()) == Mechanism::NodeAware {
        // Ranks load what others of their node have received: they tell each other.
        let first = job.nodes()[rank] * job.per_node;
        let others = (first..job.ranks().min(first + job.per_node)).filter(|&other| other != rank);
        let others: Vec<usize> = others.collect();
        let tag = tag + WORD;
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
    let starts = traffic
        .ranks
        .iter()
        .map(|share| share.node_messages * constants.node_gap_s + share.wire_messages * constants.wire_gap_s);
    let (starts, raw) = (starts.collect(), traffic.ranks.iter().map(|share| share.bytes).collect());
    let mut sent = vec![Vec::new(); job.ranks()];
    let mut received = vec![Vec::new(); job.ranks()];
    // Bytes of a packet of a message.
    let mut add = |[from, to]: [usize; 2], bytes: f64, message_bytes: f64, after: usize| {
        let inside = job.nodes()[from] == job.nodes()[to];
        let bytes = full_speed_bytes(job, bytes, message_bytes, inside) as u64;
        let list: &mut Vec<Message> = &mut sent[from];
        let packet = list.last().filter(|last| last.peer == to).map_or(0, |last| last.packet + 1);
        let message = |peer: usize| Message { peer, bytes, packet, after };
        list.push(message(to));
        received[to].push(message(from));
    };
    match job.exchange.mechanism(job.node_count()) {
        Mechanism::NodeAware => {
            // One message for each pair of nodes; the ranks of a node share them out.
            let local = |node: usize, number: usize| {
                let first = node * job.per_node;
                first + number % (job.ranks() - first).min(job.per_node)
            };
            for flow in traffic.flows {
                add([local(flow.from, flow.to), local(flow.to, flow.from)], flow.bytes, flow.bytes, 0);
            }
        }
        _ if job.exchange == ExchangeName::Ring => {
            for flow in traffic.flows {
                add([flow.from, flow.to], flow.bytes, flow.message_bytes, flow.after);
            }
        }
        _ => {
            let padded = job.exchange == ExchangeName::AllToAll;
            let all: Vec<_> = (0..job.ranks()).map(|rank| exchanges.messages(rank, reshape, tile)).collect();
            let most = all.iter().flatten().map(|message| message.1).fold(0.0, f64::max);
            for (from, list) in all.into_iter().enumerate() {
                for (to, bytes) in list {
                    let bytes = exchanges.encoded(if padded { most } else { bytes });
                    add([from, to], bytes, bytes, 0);
                }
            }
        }
    }
    TileMessages { sent, received, starts, raw }
}
