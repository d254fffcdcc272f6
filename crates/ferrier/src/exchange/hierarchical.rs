//! Exchange `hierarchical`: one message for each pair of nodes.
//!
//! A rank stores its part for a rank of another node straight into the send
//! buffer of the neighbour that carries all of this node's parts to that node,
//! and loads what comes from there straight from the receive buffer of the
//! neighbour that takes it: gathering and scattering are the stores and loads
//! of the stages, in memory that the node shares. What stays inside the node
//! is loaded where its sender stored it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::progress_set::{Craft, Hull, fleet};
use super::{BufferLayout, Coder, Exchange, LENGTH_BYTES, NodeSharing, Volumes};
use crate::transport::{Call, NodeCounters, Part, Transfer, WakeHint};
use crate::{Comm, Result};

/// A rank of a node on the way through one run. Two counters of the node tell
/// when all have stored what is to be sent, and when all messages are done.
struct Hierarchical {
    tally: Arc<dyn NodeCounters>,
    /// The counter of ranks that have stored; the next one is of those whose messages are done.
    stored: usize,
    /// Ranks of the node.
    near: u64,
    /// `None` where this rank carries nothing.
    flight: Option<Box<dyn Transfer>>,
    /// Messages whose parts are shorter than they may be.
    loose: Option<Loose>,
    state: Mutex<State>,
}

/// What this rank carries of parts whose lengths vary: on the way they lie
/// without gaps, before and after where they would if all were as long as can be.
struct Loose {
    out: Vec<Message>,
    back: Vec<Message>,
}

struct State {
    run: u64,
    stage: Stage,
    send: *const u8,
    recv: *mut u8,
    /// Lengths of messages, by receiving rank.
    lens: Vec<usize>,
    /// Where the parts of a message began on the way.
    starts: Vec<usize>,
}

// SAFETY: the pointers are used as the caller of `start` allows, by whoever holds the state.
unsafe impl Send for State {}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Until all of the node have stored.
    Gathering,
    /// Until this rank's messages have come and gone.
    Flying,
    /// Until those of all of the node have.
    Landing,
    Done,
}

pub(super) fn movers(comm: &Comm, all: &[Volumes]) -> Result<Vec<Box<dyn Exchange>>> {
    let messages = comm.duplicate()?;
    let tally: Arc<dyn NodeCounters> = comm.transport().tally(2 * all.len())?.into();
    let make = |(number, volumes): (usize, &Volumes)| -> Result<Hull> {
        let load = Routes::new(comm.nodes(), &volumes.pairs).load(comm.rank());
        let flight = messages.transport().flight(Call::Messages, &load.sent, &load.received)?;
        let near = comm.nodes().iter().filter(|&&node| node == comm.nodes()[comm.rank()]).count();
        let carries = !(load.sent.is_empty() && load.received.is_empty());
        let (send, recv) = (std::ptr::null(), std::ptr::null_mut());
        let most = load.back.iter().map(|message| message.parts.len()).max().unwrap_or(0);
        let (lens, starts) = (vec![0; comm.size()], vec![0; most + 1]);
        let state = State { run: 0, stage: Stage::Done, send, recv, lens, starts };
        let loose = volumes.vary().then_some(Loose { out: load.out, back: load.back });
        let craft = Hierarchical {
            tally: tally.clone(),
            stored: 2 * number,
            near: near as u64,
            flight: carries.then_some(flight),
            loose,
            state: Mutex::new(state),
        };
        let mut hull = Hull::new(load.send, load.recv, Box::new(craft));
        hull.buffers.sharing = Some(load.sharing);
        Ok(hull)
    };
    let hulls = all.iter().enumerate().map(make).collect::<Result<Vec<_>>>()?;
    Ok(fleet(messages.transport(), hulls))
}

impl Hierarchical {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn landed(&self) -> usize {
        self.stored + 1
    }

    /// One step on, if it can be made.
    fn step(&self, state: &mut State) -> Result<Stage> {
        let all = state.run * self.near;
        match (state.stage, &self.flight) {
            (Stage::Gathering, _) if !self.tally.reached(self.stored, all)? => Ok(Stage::Gathering),
            (Stage::Gathering, flight) => {
                let (send, recv) = (state.send, state.recv);
                match (flight, &self.loose) {
                    (None, _) => {}
                    // SAFETY: the caller of `start` keeps the buffers until all is done.
                    (Some(flight), None) => unsafe { (**flight).start(send, recv)? },
                    (Some(flight), Some(loose)) => {
                        for message in &loose.out {
                            // SAFETY: a part of this rank's send buffer; all have stored, nobody reads yet.
                            let bytes = unsafe {
                                std::slice::from_raw_parts_mut(
                                    send.add(message.send_at).cast_mut(),
                                    message.len,
                                )
                            };
                            state.lens[message.to] = close_up(bytes, &message.parts);
                        }
                        let lens = &state.lens;
                        // SAFETY: as above.
                        unsafe { flight.start_measured(send, recv, &|peer| lens[peer])? };
                    }
                }
                Ok(Stage::Flying)
            }
            (Stage::Flying, Some(flight)) if !flight.test()? => Ok(Stage::Flying),
            (Stage::Flying, _) => {
                for message in self.loose.iter().flat_map(|loose| &loose.back) {
                    // SAFETY: a part of this rank's receive buffer, which nobody reads before the count.
                    let bytes = unsafe {
                        std::slice::from_raw_parts_mut(state.recv.add(message.recv_at), message.len)
                    };
                    spread_out(bytes, &message.parts, &mut state.starts);
                }
                self.tally.add(self.landed());
                Ok(Stage::Landing)
            }
            (Stage::Landing, _) if !self.tally.reached(self.landed(), all)? => Ok(Stage::Landing),
            (Stage::Landing | Stage::Done, _) => Ok(Stage::Done),
        }
    }
}

impl Craft for Hierarchical {
    /// This rank has stored, and has loaded what came last time.
    unsafe fn start(&self, send: *const u8, recv: *mut u8, _: Option<&Arc<dyn Coder>>) -> Result<()> {
        let mut state = self.state();
        state.run += 1;
        (state.stage, state.send, state.recv) = (Stage::Gathering, send, recv);
        self.tally.add(self.stored);
        Ok(())
    }

    fn advance(&self) -> Result<bool> {
        let mut state = self.state();
        loop {
            let before = state.stage;
            let stage = self.step(&mut state);
            match stage {
                Ok(stage) => state.stage = stage,
                Err(error) => {
                    state.stage = Stage::Done;
                    // Ends it as well: the group has failed.
                    return Err(self.flight.as_ref().and_then(|flight| flight.wait().err()).unwrap_or(error));
                }
            }
            if state.stage == before || state.stage == Stage::Done {
                return Ok(state.stage == Stage::Done);
            }
        }
    }

    fn news(&self) -> WakeHint {
        let state = self.state();
        let all = state.run * self.near;
        let counted = |counter| {
            if matches!(self.tally.reached(counter, all), Ok(false)) {
                WakeHint::Nothing
            } else {
                WakeHint::Now
            }
        };
        match (state.stage, &self.flight) {
            (Stage::Gathering, _) => counted(self.stored),
            (Stage::Flying, Some(flight)) => flight.news(),
            (Stage::Landing, _) => counted(self.landed()),
            (Stage::Flying | Stage::Done, _) => WakeHint::Now,
        }
    }

    fn settle(&self) -> Result<()> {
        match &self.flight {
            Some(flight) if self.state().stage == Stage::Flying => flight.wait(),
            _ => Ok(()),
        }
    }
}

/// Bytes of a part of chunks and their lengths, the end included: the first of these.
fn measure(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(length) = bytes.get(at..at + LENGTH_BYTES).and_then(|length| length.try_into().ok()) {
        at += LENGTH_BYTES;
        match u32::from_le_bytes(length) as usize {
            0 => return at,
            length => at = at.saturating_add(length).min(bytes.len()),
        }
    }
    // Nobody wrote this; who decodes it will see.
    bytes.len()
}

/// Moves parts together; how long they are then. Each is given by its place and its greatest length.
fn close_up(bytes: &mut [u8], parts: &[(usize, usize)]) -> usize {
    parts.iter().fold(0, |end, &(at, most)| {
        let len = measure(&bytes[at..at + most]);
        bytes.copy_within(at..at + len, end);
        end + len
    })
}

/// Moves parts back to their places, the last one first.
fn spread_out(bytes: &mut [u8], parts: &[(usize, usize)], starts: &mut [usize]) {
    starts[0] = 0;
    for (index, &(_, most)) in parts.iter().enumerate() {
        let start = starts[index];
        starts[index + 1] = start + measure(&bytes[start..bytes.len().min(start + most)]);
    }
    for (index, &(at, _)) in parts.iter().enumerate().rev() {
        bytes.copy_within(starts[index]..starts[index + 1], at);
    }
}

/// What one rank has to do with the routes.
struct Load {
    send: BufferLayout,
    recv: BufferLayout,
    sharing: NodeSharing,
    sent: Vec<Part>,
    received: Vec<Part>,
    out: Vec<Message>,
    back: Vec<Message>,
}

/// Which rank carries which parts, and where they lie in its buffers.
struct Routes {
    nodes: Vec<usize>,
    /// Ranks of each node.
    ranks: Vec<Vec<usize>>,
    /// Where the part from one rank to another begins, in the sending
    /// carrier's send buffer and in the receiving carrier's receive buffer.
    places: Vec<Vec<[usize; 2]>>,
    /// Lengths of send and receive buffers.
    lens: Vec<[usize; 2]>,
    /// From a node to another: carriers, places in their buffers, length.
    messages: Vec<Message>,
}

#[derive(Clone)]
struct Message {
    from: usize,
    to: usize,
    send_at: usize,
    recv_at: usize,
    len: usize,
    /// Its parts: where they begin in it, and how long they are at most.
    parts: Vec<(usize, usize)>,
}

impl Routes {
    fn new(nodes: &[usize], pairs: &[Vec<usize>]) -> Routes {
        let count = nodes.iter().max().map_or(0, |last| last + 1);
        let of = |node: usize| (0..nodes.len()).filter(|&rank| nodes[rank] == node).collect();
        let ranks: Vec<Vec<usize>> = (0..count).map(of).collect();
        let size = nodes.len();
        let mut routes = Routes {
            nodes: nodes.to_vec(),
            ranks,
            places: vec![vec![[0; 2]; size]; size],
            lens: vec![[0; 2]; size],
            messages: Vec::new(),
        };
        // In order of distance, as in a ring: carriers start with different nodes.
        for (from, to) in (1..count).flat_map(|far| (0..count).map(move |node| (node, (node + far) % count)))
        {
            routes.add(from, to, pairs);
        }
        routes
    }

    /// The rank of `node` that sends to node `other` (0), or receives from it
    /// (1): another one for each node and direction, as far as there are ranks.
    fn carrier(&self, node: usize, other: usize, side: usize) -> usize {
        let count = self.ranks.len();
        let distance = (other + count - node) % count;
        self.ranks[node][(distance - 1 + side) % self.ranks[node].len()]
    }

    fn add(&mut self, from: usize, to: usize, pairs: &[Vec<usize>]) {
        let (sender, receiver) = (self.carrier(from, to, 0), self.carrier(to, from, 1));
        let (send_at, recv_at) = (self.lens[sender][0], self.lens[receiver][1]);
        let mut len = 0;
        let mut parts = Vec::new();
        for &source in &self.ranks[from] {
            for &target in &self.ranks[to] {
                self.places[source][target] = [send_at + len, recv_at + len];
                if pairs[source][target] > 0 {
                    parts.push((len, pairs[source][target]));
                }
                // Neighbours store side by side: on lines of their own.
                len += pairs[source][target].next_multiple_of(64);
            }
        }
        if len > 0 {
            self.messages.push(Message { from: sender, to: receiver, send_at, recv_at, len, parts });
            self.lens[sender][0] += len;
            self.lens[receiver][1] += len;
        }
    }

    fn load(self, rank: usize) -> Load {
        let size = self.nodes.len();
        let node = self.nodes[rank];
        let carriers = |side: usize| -> Vec<usize> {
            let of = |peer: usize| match self.nodes[peer] {
                own if own == node => rank,
                other => self.carrier(node, other, side),
            };
            (0..size).map(of).collect()
        };
        let places = |at: Vec<usize>, which: usize| BufferLayout { offsets: at, len: self.lens[rank][which] };
        let of = |out: bool| self.messages.iter().filter(move |m| (if out { m.from } else { m.to }) == rank);
        Load {
            send: places((0..size).map(|peer| self.places[rank][peer][0]).collect(), 0),
            recv: places((0..size).map(|peer| self.places[peer][rank][1]).collect(), 1),
            sent: of(true).map(|m| Part { peer: m.to, at: m.send_at, len: m.len }).collect(),
            received: of(false).map(|m| Part { peer: m.from, at: m.recv_at, len: m.len }).collect(),
            out: of(true).cloned().collect(),
            back: of(false).cloned().collect(),
            sharing: NodeSharing {
                nodes: self.nodes.clone(),
                outbox: carriers(0),
                inbox: carriers(1),
                lens: self.lens.clone(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is moved together and apart again is what it was; whatever comes is
    /// taken apart without a panic.
    #[test]
    fn loose_parts_come_back_to_their_places() {
        let parts = [(0, 40), (64, 10), (128, 100)];
        let mut bytes = vec![7_u8; 228];
        let mut write = |at: usize, lengths: &[u8]| {
            let mut to = at;
            for &length in lengths {
                bytes[to..to + 4].copy_from_slice(&u32::from(length).to_le_bytes());
                bytes[to + 4..][..length.into()].fill(at as u8 + length);
                to += 4 + usize::from(length);
            }
            bytes[to..to + 4].fill(0);
            to + 4 - at
        };
        let lens = [write(0, &[3, 9]), write(64, &[1]), write(128, &[30, 2])];
        let before = bytes.clone();
        let closed = close_up(&mut bytes, &parts);
        assert_eq!(closed, lens.iter().sum::<usize>());
        bytes[closed..].fill(1);
        let mut starts = vec![0; 4];
        spread_out(&mut bytes, &parts, &mut starts);
        for ((at, _), len) in parts.iter().zip(lens) {
            assert_eq!(bytes[*at..at + len], before[*at..at + len]);
        }
        for byte in 0..=255 {
            bytes.fill(byte);
            spread_out(&mut bytes, &parts, &mut starts);
        }
    }

    /// Every part has a place of its own on both sides, and what a message
    /// takes from the one side is what it brings to the other.
    #[test]
    fn parts_lie_apart_and_messages_carry_them() {
        for nodes in [vec![0, 0, 1, 1], vec![0, 1, 0, 1, 2], vec![0, 1, 2, 3], vec![0, 0, 0, 1, 1, 2, 2, 2]] {
            let size = nodes.len();
            let bytes = |from: usize, to: usize| if from == to { 0 } else { (from * 7 + to * 3) % 5 * 40 };
            let pairs: Vec<Vec<usize>> =
                (0..size).map(|from| (0..size).map(|to| bytes(from, to)).collect()).collect();
            let routes = Routes::new(&nodes, &pairs);
            for side in 0..2 {
                let mut taken: Vec<(usize, usize, usize)> = Vec::new();
                for (from, to) in (0..size).flat_map(|a| (0..size).map(move |b| (a, b))) {
                    if nodes[from] != nodes[to] && pairs[from][to] > 0 {
                        let (own, other) = if side == 0 { (from, to) } else { (to, from) };
                        let carrier = routes.carrier(nodes[own], nodes[other], side);
                        let at = routes.places[from][to][side];
                        assert!(at + pairs[from][to] <= routes.lens[carrier][side]);
                        taken.push((carrier, at, at + pairs[from][to]));
                    }
                }
                taken.sort_unstable();
                assert!(taken.windows(2).all(|w| w[0].0 != w[1].0 || w[0].2 <= w[1].1), "{nodes:?}");
            }
            for m in &routes.messages {
                let inside = |from: usize, to: usize| {
                    let [send, recv] = routes.places[from][to];
                    let here = (m.send_at..m.send_at + m.len).contains(&send);
                    !here || send - m.send_at == recv - m.recv_at
                };
                let own = |rank: usize, other: usize| nodes[rank] == nodes[other];
                let pairs = (0..size).flat_map(|a| (0..size).map(move |b| (a, b)));
                assert!(pairs.filter(|&(a, b)| own(a, m.from) && own(b, m.to)).all(|(a, b)| inside(a, b)));
            }
            let mut between: Vec<_> = routes.messages.iter().map(|m| (nodes[m.from], nodes[m.to])).collect();
            let all = between.len();
            between.sort_unstable();
            between.dedup();
            assert_eq!(between.len(), all, "one message for a pair of nodes");
        }
    }

    #[test]
    fn pairs_of_nodes_are_carried_by_different_ranks() {
        let nodes = [0, 0, 1, 1, 2, 2];
        let routes = Routes::new(&nodes, &vec![vec![8; 6]; 6]);
        for side in 0..2 {
            assert_ne!(routes.carrier(0, 1, side), routes.carrier(0, 2, side));
            assert_ne!(routes.carrier(1, 0, side), routes.carrier(1, 2, side));
        }
        assert_ne!(routes.carrier(0, 1, 0), routes.carrier(0, 1, 1));
    }
}
