//! How ranks are placed and what was decided for them, besides the recipe.

use crate::layout::{Box3, Layout};
use crate::lowering::{EndStrides, MemoryPolicy};
use crate::messages::Mechanism;

/// The placement of the ranks, and the decisions that are not in a recipe.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Setting<'a> {
    /// The node of each rank; empty: all ranks are on one node.
    pub nodes: &'a [usize],
    /// The socket of each rank on its node, where ranks are bound to one; empty: unknown.
    pub sockets: &'a [usize],
    /// Ranks that share the cores and the memory of a node; 0: those that `nodes` says. They differ if several
    /// nodes are simulated on one.
    pub ranks_per_host: usize,
    /// Threads of a rank.
    pub threads: usize,
    /// How data moves between ranks, on these nodes.
    pub mechanism: Mechanism,
    /// How passes access memory.
    pub memory_policy: MemoryPolicy,
    /// The largest plane, in bytes, that is transformed along two axes in one pass.
    pub plane_bytes: usize,
    /// Whether ranks may access the inputs and outputs of other ranks.
    pub exposed_ends: bool,
    /// Whether receivers load messages from the send buffers of the other ranks of their node, as those of ranks
    /// that are threads of one process, so that nothing is copied inside a node.
    pub remote_buffers: bool,
    /// Whether messages are encoded by steps of their own before the exchange.
    pub coded: bool,
    /// The strides of input and output of `forward`; `None`: arrays without gaps.
    pub strides: Option<&'a EndStrides>,
}

impl<'a> Setting<'a> {
    /// Ranks of one thread on one node that share memory; no plane is too large to be transformed in one pass.
    pub fn new(mechanism: Mechanism) -> Self {
        Setting {
            nodes: &[],
            sockets: &[],
            ranks_per_host: 0,
            threads: 1,
            mechanism,
            memory_policy: MemoryPolicy::default(),
            plane_bytes: usize::MAX,
            exposed_ends: true,
            remote_buffers: false,
            coded: false,
            strides: None,
        }
    }

    /// Sets the node of each rank.
    #[must_use]
    pub fn nodes(mut self, nodes: &'a [usize]) -> Self {
        self.nodes = nodes;
        self
    }

    /// Sets the socket of each rank.
    #[must_use]
    pub fn sockets(mut self, sockets: &'a [usize]) -> Self {
        self.sockets = sockets;
        self
    }

    /// Sets the strides of input and output of `forward`.
    #[must_use]
    pub fn strides(mut self, strides: &'a EndStrides) -> Self {
        self.strides = (!strides.is_dense()).then_some(strides);
        self
    }

    crate::setters::setters! {
        /// Sets the ranks that share the cores and the memory of a node.
        ranks_per_host(ranks: usize) = ranks;
        /// Sets the threads of a rank.
        threads(threads: usize) = threads.max(1);
        /// Sets how passes access memory.
        memory_policy(policy: MemoryPolicy) = policy;
        /// Sets the largest plane of a pass along two axes, in bytes.
        plane_bytes(bytes: usize) = bytes;
        /// Sets whether ranks may access the inputs and outputs of other ranks.
        exposed_ends(yes: bool) = yes;
        /// Sets whether receivers load messages from the buffers of their senders.
        remote_buffers(yes: bool) = yes;
        /// Sets whether messages are encoded.
        coded(yes: bool) = yes;
    }

    /// The first `ranks` ranks in groups that are near to each other: by their nodes, those of a node by their sockets,
    /// those of a socket in order. `None` if that is the order of the ranks.
    pub fn grouped(&self, ranks: usize) -> Option<Vec<usize>> {
        let socket = |rank: usize| self.sockets.get(rank).copied().unwrap_or(0);
        let mut order: Vec<usize> = (0..ranks).collect();
        order.sort_by_key(|&rank| (self.node(rank), socket(rank)));
        (!order.is_sorted()).then_some(order)
    }

    /// The node of a rank.
    pub(super) fn node(&self, rank: usize) -> usize {
        self.nodes.get(rank).copied().unwrap_or(0)
    }

    /// Ranks that share cores and memory with `rank`, of so many in all.
    pub(crate) fn ranks_on_host(&self, rank: usize, ranks: usize) -> usize {
        if self.ranks_per_host > 0 { self.ranks_per_host } else { self.ranks_on_node(rank, ranks) }
    }

    /// Ranks that share cores and memory with `rank` and have a part of an array.
    pub(super) fn busy_on_host(&self, rank: usize, layout: &Layout) -> usize {
        let (boxes, all) = (layout.boxes(), self.ranks_on_host(rank, layout.ranks()));
        // Boxes are empty where fewer ranks hold data: those of the last ranks.
        if !boxes.last().is_some_and(Box3::is_empty) {
            return all;
        }
        let near = |other: usize| self.ranks_per_host > 0 || self.node(other) == self.node(rank);
        let busy = (0..boxes.len()).filter(|&other| near(other) && !boxes[other].is_empty()).count();
        busy.clamp(1, all.max(1))
    }

    /// Ranks on the node of `rank`, of so many in all.
    pub(super) fn ranks_on_node(&self, rank: usize, ranks: usize) -> usize {
        if self.nodes.is_empty() {
            return ranks;
        }
        let node = self.node(rank);
        self.nodes.iter().filter(|&&other| other == node).count().max(1)
    }
}
