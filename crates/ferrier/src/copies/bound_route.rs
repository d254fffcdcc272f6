//! Routes, bound to memory.

/// Where the other end of a route is.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// This rank.
    Own,
    /// A rank of this node that shares memory.
    Node,
    /// A rank by messages.
    Remote,
}

/// A route, and where its segment lies.
#[doc(hidden)]
#[derive(Debug)]
pub struct BoundRoute {
    pub rank: usize,
    pub peer: Peer,
    /// The exchange of its message, if it is one.
    pub group: usize,
    /// Address of the segment; dangling where there is none.
    pub segment: usize,
    /// Elements of one field.
    pub volume: usize,
}
