//! The cost of one exchange.

use super::machine::Machine;
use super::setting::Setting;
use crate::layout::Layout;
use crate::messages::Mechanism;

/// What one rank sends, or receives, in an exchange (a tile of a reshape); the larger of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ExchangeShape {
    /// Bytes between this rank and others of its node that are copied.
    pub node_bytes: f64,
    /// Messages between this rank and others of its node.
    pub node_messages: f64,
    /// Bytes between this rank and other nodes.
    pub wire_bytes: f64,
    /// Messages between this rank and other nodes.
    pub wire_messages: f64,
    /// Ranks of the node that do the same.
    pub ranks_on_node: usize,
}

impl ExchangeShape {
    /// What `rank` sends and receives in a reshape of elements of `element` bytes (all arrays together).
    pub fn new(
        from: &Layout,
        to: &Layout,
        element: usize,
        rank: usize,
        setting: &Setting<'_>,
    ) -> ExchangeShape {
        let node_aware = setting.mechanism == Mechanism::NodeAware;
        let count = |own: &Layout, theirs: &Layout| {
            let (mut shape, mut nodes) = (ExchangeShape::default(), Vec::new());
            for (peer, both) in theirs.intersections(&own.boxes()[rank]) {
                let bytes = (both.volume() * element) as f64;
                if peer != rank && setting.node(peer) == setting.node(rank) {
                    shape.node_bytes += bytes;
                    shape.node_messages += 1.0;
                } else if peer != rank {
                    shape.wire_bytes += bytes;
                    shape.wire_messages += 1.0;
                    if node_aware {
                        nodes.push(setting.node(peer));
                    }
                }
            }
            if node_aware {
                nodes.sort_unstable();
                nodes.dedup();
                shape.wire_messages = nodes.len() as f64;
            }
            shape
        };
        let (sent, received) = (count(from, to), count(to, from));
        let ranks_on_node = setting.ranks_on_node(rank, from.ranks());
        let mut shape = ExchangeShape {
            node_bytes: sent.node_bytes.max(received.node_bytes),
            node_messages: sent.node_messages.max(received.node_messages),
            wire_bytes: sent.wire_bytes.max(received.wire_bytes),
            wire_messages: sent.wire_messages.max(received.wire_messages),
            ranks_on_node,
        };
        match setting.mechanism {
            // Receivers load from the memory of their senders, as part of a pass.
            Mechanism::SharedMemory => (shape.node_bytes, shape.node_messages) = (0.0, 0.0),
            // Between two nodes goes one message, which the ranks of a node share out among themselves.
            Mechanism::NodeAware => {
                (shape.node_bytes, shape.node_messages) = (0.0, 0.0);
                shape.wire_messages /= ranks_on_node as f64;
            }
            Mechanism::Messages if setting.remote_buffers => shape.node_bytes = 0.0,
            Mechanism::Messages => {}
        }
        shape
    }

    /// One of `tiles` equal tiles.
    pub(super) fn tile(mut self, tiles: usize) -> ExchangeShape {
        self.node_bytes /= tiles.max(1) as f64;
        self.wire_bytes /= tiles.max(1) as f64;
        self
    }

    /// Whether nothing leaves the rank.
    pub fn is_empty(&self) -> bool {
        self.node_messages + self.wire_messages == 0.0
    }

    /// Seconds in which the rank starts its messages.
    pub fn start_seconds(&self, machine: &Machine) -> f64 {
        let constants = &machine.constants;
        self.node_messages * constants.node_gap_s + self.wire_messages * constants.wire_gap_s
    }

    /// Bytes per second that a rank copies inside its node, while the others do the same.
    pub fn copy_bytes_s(&self, machine: &Machine) -> f64 {
        let constants = &machine.constants;
        let active = self.ranks_on_node.min(machine.cores).max(1) as f64;
        // A copy inside the node reads and writes memory, whose speed all ranks share.
        constants.node_bytes_s.min(constants.memory_node_bytes_s / (2.0 * active)) / self.crowded(machine)
    }

    /// Bytes per second that a rank sends to other nodes, while the others of its node do the same.
    pub fn wire_bytes_s(&self, machine: &Machine) -> f64 {
        let constants = &machine.constants;
        let wire = constants.wire_bytes_s.min(constants.wire_node_bytes_s / self.ranks_on_node.max(1) as f64);
        wire * machine.efficiency(self.message_bytes())
    }

    /// Bytes of a message to another node. Ranks that share one have a part of a message each, and of its bytes.
    pub fn message_bytes(&self) -> f64 {
        if self.wire_messages > 0.0 { self.wire_bytes / self.wire_messages } else { 0.0 }
    }

    /// Ranks that share a core.
    fn crowded(&self, machine: &Machine) -> f64 {
        (self.ranks_on_node as f64 / machine.cores as f64).max(1.0)
    }

    /// Seconds from the start of the messages until they have arrived.
    pub fn transfer_seconds(&self, machine: &Machine) -> f64 {
        let constants = &machine.constants;
        let latency = match () {
            () if self.wire_messages > 0.0 => constants.wire_latency_s,
            () if self.node_messages > 0.0 => constants.node_latency_s * self.crowded(machine),
            () => 0.0,
        };
        let (copy, wire) =
            (self.node_bytes / self.copy_bytes_s(machine), self.wire_bytes / self.wire_bytes_s(machine));
        latency + copy.max(wire) + (1.0 - constants.copy_overlap) * copy.min(wire)
    }

    /// Seconds of the exchange alone.
    pub fn seconds(&self, machine: &Machine) -> f64 {
        self.start_seconds(machine) + self.transfer_seconds(machine)
    }
}
