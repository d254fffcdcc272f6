//! What ranks and nodes send in each tile of a reshape.

use ferrier_plan::cost::CallShapes;
use ferrier_plan::messages::Mechanism;
use ferrier_plan::ring::{IN_FLIGHT, arrived_before, packet_bytes, step};

use crate::exchange::ExchangeName;
use crate::job::Job;

/// What goes from one party to another in a tile. The parties are nodes; in a ring they are ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub from: usize,
    pub to: usize,
    /// Bytes, after encoding.
    pub bytes: f64,
    pub messages: f64,
    /// Bytes of a message, which decide how fast it is.
    pub message_bytes: f64,
    /// Flows of the same party that have arrived before it starts, in a ring.
    pub after: usize,
}

/// The bytes that take as long at the full speed of links as these do in messages of `message_bytes`: more between nodes,
/// where short messages are slower. Whole bytes, as exports have them.
pub(crate) fn full_speed_bytes(job: &Job<'_>, bytes: f64, message_bytes: f64, inside: bool) -> f64 {
    let efficiency = if inside { 1.0 } else { job.machine.efficiency(message_bytes) };
    (bytes / efficiency).round().max(1.0)
}

/// What a rank sends or receives in a tile, whichever is more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RankShare {
    pub node_messages: f64,
    pub wire_messages: f64,
    /// Bytes before encoding.
    pub bytes: f64,
}

/// The traffic of one tile.
pub(crate) struct TileTraffic {
    /// Flows by their senders, in a ring in the order of sending.
    pub flows: Vec<Flow>,
    pub ranks: Vec<RankShare>,
    /// Bytes that each rank receives.
    pub received: Vec<f64>,
}

/// The steps of exchange `ring` in a tile: which nodes each rank sends to, and each node receives from, its own where data
/// stays.
struct RingSteps {
    targets: Vec<Vec<usize>>,
    sources: Vec<Vec<usize>>,
}

impl RingSteps {
    /// The step in which one rank sends to another. Copies inside a node come last.
    fn step(&self, [from, to]: [usize; 2], nodes: &[usize]) -> usize {
        match nodes[from] == nodes[to] {
            true => usize::MAX,
            false => step(&self.targets[from], &self.sources[nodes[to]], nodes[from], nodes[to]),
        }
    }
}

/// Lists the traffic of tiles.
pub(crate) struct Exchanges<'a> {
    pub job: &'a Job<'a>,
    pub shapes: &'a CallShapes<'a>,
}

impl Exchanges<'_> {
    /// Messages from `rank` in a tile: receivers and bytes before encoding; nothing that stays.
    pub fn messages(&self, rank: usize, reshape: usize, tile: usize) -> Vec<(usize, f64)> {
        let cuts = &self.shapes.cuts[reshape];
        // Elements of the arrays of the tile's batch chunk.
        let arrays = cuts.arrays(tile).len() as f64 / self.shapes.recipe.batch.max(1) as f64;
        let element = self.shapes.element_bytes(reshape) as f64 * arrays;
        let reshape = &self.shapes.schedule.reshapes[reshape];
        let from = &reshape.from.boxes()[rank];
        let bytes = |(peer, both): (usize, ferrier_plan::Box3)| {
            let part =
                if cuts.along == 1 { both } else { cuts.between(from, &reshape.to.boxes()[peer], tile) };
            (peer != rank && !part.is_empty()).then(|| (peer, part.volume() as f64 * element))
        };
        reshape.to.intersections(from).into_iter().filter_map(bytes).collect()
    }

    /// Whether some of a rank's data in a tile stays on it.
    pub fn keeps(&self, rank: usize, reshape: usize, tile: usize) -> bool {
        let (cuts, reshape) = (&self.shapes.cuts[reshape], &self.shapes.schedule.reshapes[reshape]);
        let [from, to] = [&reshape.from, &reshape.to].map(|layout| &layout.boxes()[rank]);
        !cuts.between(from, to, tile).is_empty()
    }

    /// The steps of exchange `ring` in a tile with these messages of each rank.
    fn ring_steps(&self, messages: &[Vec<(usize, f64)>], reshape: usize, tile: usize) -> RingSteps {
        let (nodes, ranks) = (self.job.nodes(), self.job.ranks());
        let (mut targets, mut sources) = (vec![Vec::new(); ranks], vec![Vec::new(); self.job.node_count()]);
        for (rank, list) in messages.iter().enumerate() {
            let own = self.keeps(rank, reshape, tile).then_some(rank);
            for peer in own.into_iter().chain(list.iter().map(|message| message.0)) {
                targets[rank].push(nodes[peer]);
                sources[nodes[peer]].push(nodes[rank]);
            }
        }
        for list in targets.iter_mut().chain(&mut sources) {
            list.sort_unstable();
            list.dedup();
        }
        RingSteps { targets, sources }
    }

    /// The packets of exchange `ring` in a tile with these messages of each rank, in the order of sending. Of a message
    /// of more packets than are in flight at once, several count as one.
    fn ring_flows(&self, messages: &[Vec<(usize, f64)>], reshape: usize, tile: usize) -> Vec<Flow> {
        let (nodes, ranks) = (self.job.nodes(), self.job.ranks());
        let steps = self.ring_steps(messages, reshape, tile);
        let mut flows = Vec::new();
        for (from, list) in messages.iter().enumerate() {
            let step = |to: usize| steps.step([from, to], nodes);
            let sent = list.iter().filter(|&&(to, _)| !self.is_shared(from, to));
            let mut order: Vec<_> = sent.map(|&(to, bytes)| (step(to), to, bytes)).collect();
            order.sort_unstable_by_key(|&(step, to, _)| (step, (to + ranks - from) % ranks));
            let first = flows.len();
            let mut packet_steps = Vec::new();
            for (step, to, bytes) in order {
                let bytes = self.encoded(bytes);
                let packets = (bytes / packet_bytes(self.job.is_encoded()) as f64).ceil();
                let packets = packets.clamp(1.0, IN_FLIGHT as f64);
                packet_steps.resize(packet_steps.len() + packets as usize, step);
                let packet =
                    Flow { from, to, bytes: bytes / packets, messages: 1.0, message_bytes: bytes, after: 0 };
                flows.resize(first + packet_steps.len(), packet);
            }
            let arrived = arrived_before(&packet_steps, IN_FLIGHT);
            flows[first..].iter_mut().zip(arrived).for_each(|(flow, arrived)| flow.after = arrived);
        }
        flows
    }

    /// The bytes of a message on the wire.
    pub fn encoded(&self, bytes: f64) -> f64 {
        match self.job.is_encoded() {
            true => bytes * self.job.machine.constants.encoded_part,
            false => bytes,
        }
    }

    /// Whether the next pass of a rank loads another's data from memory that ranks of a node share; nothing is encoded.
    pub fn is_shared(&self, from: usize, to: usize) -> bool {
        let mechanism = self.job.exchange.mechanism(self.job.node_count());
        self.job.nodes()[from] == self.job.nodes()[to]
            && (mechanism != Mechanism::Messages || self.shapes.setting.remote_buffers)
    }

    /// The traffic of a tile.
    pub fn traffic(&self, reshape: usize, tile: usize) -> TileTraffic {
        let (nodes, ranks) = (self.job.nodes(), self.job.ranks());
        let mut sent = vec![RankShare::default(); ranks];
        let mut received = vec![RankShare::default(); ranks];
        let mut list = Vec::with_capacity(ranks);
        let mut most: f64 = 0.0;
        for rank in 0..ranks {
            let messages = self.messages(rank, reshape, tile);
            most = messages.iter().map(|message| message.1).fold(most, f64::max);
            list.push(messages);
        }
        let mechanism = self.job.exchange.mechanism(self.job.node_count());
        let ring = self.job.exchange == ExchangeName::Ring;
        let mut flows: Vec<Flow> = Vec::new();
        // The flow to each node from the one at hand.
        let mut known = vec![usize::MAX; self.job.node_count()];
        for (rank, messages) in list.iter().enumerate() {
            let node = nodes[rank];
            if rank > 0 && nodes[rank - 1] != node {
                known.fill(usize::MAX);
            }
            for &(peer, bytes) in messages {
                let bytes = if self.job.exchange == ExchangeName::AllToAll { most } else { bytes };
                let inside = nodes[peer] == node;
                let shared = self.is_shared(rank, peer);
                for share in [&mut sent[rank], &mut received[peer]] {
                    share.bytes += if shared { 0.0 } else { bytes };
                    match inside {
                        true => share.node_messages += 1.0,
                        false => share.wire_messages += 1.0,
                    }
                }
                if shared || ring {
                    continue;
                }
                let at = &mut known[nodes[peer]];
                if *at == usize::MAX {
                    *at = flows.len();
                    let to = nodes[peer];
                    flows.push(Flow {
                        from: node,
                        to,
                        bytes: 0.0,
                        messages: 0.0,
                        message_bytes: 0.0,
                        after: 0,
                    });
                }
                flows[*at].bytes += self.encoded(bytes);
                flows[*at].messages += 1.0;
            }
        }
        for flow in &mut flows {
            if mechanism == Mechanism::NodeAware {
                flow.messages = 1.0;
            }
            flow.message_bytes = flow.bytes / flow.messages;
        }
        if ring {
            flows = self.ring_flows(&list, reshape, tile);
        }
        let incoming = received.iter().map(|share| share.bytes).collect();
        let most = |(sent, received): (RankShare, RankShare)| {
            let mut share = RankShare {
                node_messages: sent.node_messages.max(received.node_messages),
                wire_messages: sent.wire_messages.max(received.wire_messages),
                bytes: sent.bytes.max(received.bytes),
            };
            if mechanism == Mechanism::NodeAware {
                share.node_messages = 0.0;
                share.wire_messages /= (self.job.per_node * self.job.per_node) as f64;
            }
            share
        };
        let ranks = sent.into_iter().zip(received).map(most).collect();
        TileTraffic { flows, ranks, received: incoming }
    }
}
