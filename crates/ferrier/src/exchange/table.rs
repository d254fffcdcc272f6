//! The table of exchanges.

use ferrier_plan::messages::{Mechanism, Volumes};

use super::groups::make_each;
use super::packets::PacketPolicy;
use super::progress_set::Exchange;
use super::{all_to_all, all_to_allv, hierarchical, point_to_point, ring};
use crate::transport::Comm;
use crate::{Error, Recipe, Result};

/// Makes the exchanges of all reshapes of a plan. Collective.
pub(crate) type Make = fn(&Comm, &[Volumes], PacketPolicy) -> Result<Vec<Exchange>>;

/// A line of the table of exchanges.
#[derive(Debug)]
pub struct ExchangeEntry {
    /// The name users type.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    pub(crate) mechanism: Mechanism,
    /// Makes the exchanges of all reshapes of a plan; `None` where no bytes are sent.
    pub(crate) make: Option<Make>,
}

impl ExchangeEntry {
    /// Does it send messages over so many nodes, or only share memory?
    pub fn sends_messages(&self, nodes: usize) -> bool {
        self.mechanism.on_nodes(nodes) != Mechanism::SharedMemory
    }

    /// An error where it only shares memory, and the ranks are on several nodes.
    pub(crate) fn check_nodes(&self, nodes: usize) -> Result<()> {
        if nodes == 1 || self.mechanism != Mechanism::SharedMemory {
            return Ok(());
        }
        let name = self.name;
        Err(Error::choice(
            "exchange",
            format!(
                "exchange `{name}` needs ranks that share a node; these are on {nodes} (`hierarchical` is for several)"
            ),
        ))
    }

    /// For each step of a recipe the most messages that go from one node to another; see
    /// [`Recipe::messages_between_nodes`].
    pub fn messages_between_nodes(&self, recipe: &Recipe, nodes: &[usize]) -> Vec<u64> {
        recipe.messages_between_nodes(self.mechanism, nodes)
    }
}

/// All exchanges; the first is the default.
pub static EXCHANGES: &[ExchangeEntry] = &[
    ExchangeEntry {
        name: "direct",
        summary: "load straight from the neighbours' memory, no messages",
        mechanism: Mechanism::SharedMemory,
        make: None,
    },
    ExchangeEntry {
        name: "all_to_allv",
        summary: "one collective among the ranks that exchange data, segments of any length",
        mechanism: Mechanism::Messages,
        make: Some(|comm, all, _| make_each(comm, all, all_to_allv::specify)),
    },
    ExchangeEntry {
        name: "all_to_all",
        summary: "one collective among the ranks that exchange data, segments padded to one length",
        mechanism: Mechanism::Messages,
        make: Some(|comm, all, _| make_each(comm, all, all_to_all::specify)),
    },
    ExchangeEntry {
        name: "point_to_point",
        summary: "a message to each peer, received in order of arrival",
        mechanism: Mechanism::Messages,
        make: Some(|comm, all, _| make_each(comm, all, point_to_point::specify)),
    },
    ExchangeEntry {
        name: "ring",
        summary: "one-sided puts in chunks, node after node, to one node at a time",
        mechanism: Mechanism::Messages,
        make: Some(ring::exchanges),
    },
    ExchangeEntry {
        name: "hierarchical",
        summary: "one message for each pair of nodes, inside a node as direct",
        mechanism: Mechanism::NodeAware,
        make: Some(|comm, all, _| hierarchical::exchanges(comm, all)),
    },
];

/// The exchange called `name`.
///
/// # Errors
/// [`Error::UnknownName`] lists the known names.
pub fn find(name: &str) -> Result<&'static ExchangeEntry> {
    EXCHANGES.iter().find(|entry| entry.name == name).ok_or_else(|| Error::UnknownName {
        what: "exchange",
        name: name.into(),
        known: EXCHANGES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })
}
