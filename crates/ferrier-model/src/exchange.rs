//! Exchanges by name, as far as models tell them apart.

use std::str::FromStr;

use ferrier_plan::messages::Mechanism;

use crate::error::Error;

/// An exchange of crate `ferrier`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExchangeName {
    /// Ranks of one node load from each other's memory.
    Direct,
    /// One collective of segments of any length.
    AllToAllV,
    /// One collective of segments that are padded to one length.
    AllToAll,
    /// A message to each peer.
    PointToPoint,
    /// Node after node, to one node at a time; encodes while it sends.
    Ring,
    /// One message for each pair of nodes.
    Hierarchical,
}

impl ExchangeName {
    /// All exchanges.
    pub const ALL: [ExchangeName; 6] = [
        ExchangeName::Direct,
        ExchangeName::AllToAllV,
        ExchangeName::AllToAll,
        ExchangeName::PointToPoint,
        ExchangeName::Ring,
        ExchangeName::Hierarchical,
    ];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            ExchangeName::Direct => "direct",
            ExchangeName::AllToAllV => "all_to_allv",
            ExchangeName::AllToAll => "all_to_all",
            ExchangeName::PointToPoint => "point_to_point",
            ExchangeName::Ring => "ring",
            ExchangeName::Hierarchical => "hierarchical",
        }
    }

    /// How it moves data over so many nodes.
    pub fn mechanism(self, nodes: usize) -> Mechanism {
        let mechanism = match self {
            ExchangeName::Direct => Mechanism::SharedMemory,
            ExchangeName::Hierarchical => Mechanism::NodeAware,
            _ => Mechanism::Messages,
        };
        mechanism.on_nodes(nodes)
    }
}

impl FromStr for ExchangeName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        ExchangeName::ALL.into_iter().find(|exchange| exchange.name() == name).ok_or_else(|| {
            let known: Vec<_> = ExchangeName::ALL.iter().map(|exchange| exchange.name()).collect();
            Error::Job(format!("unknown exchange `{name}`; known are: {}", known.join(", ")))
        })
    }
}
