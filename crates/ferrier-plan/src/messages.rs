//! Messages as data: how many bytes go between ranks, where they lie in buffers, how they are encoded.

use std::ops::Range;
use std::sync::Arc;

/// How many bytes go to and come from each rank in one reshape, this rank's
/// own part left out (it never travels). Of parts that are encoded, as many as
/// they take at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volumes {
    /// Bytes to each rank.
    pub to: Vec<usize>,
    /// Bytes from each rank.
    pub from: Vec<usize>,
    /// The largest part between any two ranks of the whole reshape.
    pub largest: usize,
    /// Bytes from each rank to each rank, by sender.
    pub pairs: Vec<Vec<usize>>,
    /// The reshape that this is, or is a part of. Parts of different ones are
    /// never in flight together, so their movers may share memory; reshapes that
    /// fly together have one number.
    pub reshape: usize,
    /// How parts are encoded, if they are.
    pub encoded: Option<EncodedChunks>,
    /// Must parts be brought, because buffers only stand in for a device's
    /// memory? Otherwise they may be loaded where they are.
    pub via_host: bool,
}

impl Volumes {
    /// Are lengths known only when parts have been encoded?
    pub fn vary(&self) -> bool {
        self.encoded.as_ref().is_some_and(|coded| coded.varies)
    }
}

/// How the parts of a reshape are encoded: as chunks, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedChunks {
    /// Bytes that a whole chunk takes at most, with its length where that varies.
    pub slot: usize,
    /// Do lengths depend on the data? Then each chunk comes after its length
    /// ([`LENGTH_BYTES`] bytes), and a part ends with a length of 0.
    pub varies: bool,
    /// Chunks of the part from each rank to each, by sender; 0 where it is
    /// empty or not encoded.
    pub chunks: Vec<Vec<usize>>,
}

/// Bytes of the length of a chunk.
pub const LENGTH_BYTES: usize = 4;

/// Scalars of a chunk: enough that headers do not matter, few enough that a
/// chunk and its bytes stay in the first caches.
pub const CHUNK_SCALARS: usize = 4096;

/// Where each rank's part lies in one of the two buffers of a reshape; in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferLayout {
    /// Where the part of each rank begins.
    pub offsets: Vec<usize>,
    /// Length of the buffer.
    pub len: usize,
}

/// How an exchange uses the memory that the ranks of a node share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSharing {
    /// The node of each rank. Parts for ranks of the same node never travel:
    /// they load them where the sender stored them.
    pub nodes: Vec<usize>,
    /// For each rank of another node, in whose send buffer the part for it
    /// goes, a rank of this node.
    pub outbox: Vec<usize>,
    /// For each rank of another node, in whose receive buffer the part from it
    /// comes, a rank of this node.
    pub inbox: Vec<usize>,
    /// Lengths of the send and the receive buffer of every rank.
    pub lens: Vec<[usize; 2]>,
}

/// Where parts are that stay where their senders stored them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteBuffers {
    /// Where in each rank's send buffer the part for this rank begins; in bytes.
    pub offsets: Vec<usize>,
    /// The length of each rank's send buffer.
    pub lens: Vec<usize>,
}

/// The buffers of an exchange, as far as passes before and after it must know them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeBuffers {
    /// The send buffer: where the segment for each rank goes.
    pub send: BufferLayout,
    /// The receive buffer: where the segment from each rank arrives.
    pub recv: BufferLayout,
    /// For exchanges through the memory of a node: segments that neighbours have stored are sent when all of
    /// them have started; on completion, segments that arrived at neighbours may be loaded as well.
    pub sharing: Option<NodeSharing>,
    /// For transports whose ranks load segments where their senders stored them: all send buffers are exposed
    /// for the length of a call, and there is no receive buffer.
    pub remote: Option<RemoteBuffers>,
    /// Does the exchange encode and decode chunk by chunk itself? Otherwise everything is encoded before the
    /// start and decoded after the wait.
    pub encodes: bool,
}

/// How an exchange moves data between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// The next pass loads from the neighbours' memory.
    SharedMemory,
    /// Through send and receive buffers.
    Messages,
    /// Shared memory inside a node, messages between nodes.
    NodeAware,
}

impl Mechanism {
    /// Do ranks access each other's memory?
    pub fn shares(self) -> bool {
        self != Mechanism::Messages
    }

    /// The mechanism over `nodes` nodes: inside one there is nothing to send.
    pub fn on_nodes(self, nodes: usize) -> Mechanism {
        match self {
            Mechanism::NodeAware if nodes == 1 => Mechanism::SharedMemory,
            mechanism => mechanism,
        }
    }

    /// The most messages that go from one node to another in a reshape in
    /// which these bytes go from rank to rank.
    pub fn messages_between_nodes(self, pairs: &[Vec<usize>], nodes: &[usize]) -> u64 {
        let count = nodes.iter().max().map_or(0, |last| last + 1);
        let mut messages = vec![0_u64; count * count];
        for (from, row) in pairs.iter().enumerate() {
            for (to, _) in
                row.iter().enumerate().filter(|(to, bytes)| **bytes > 0 && nodes[*to] != nodes[from])
            {
                messages[nodes[from] * count + nodes[to]] += 1;
            }
        }
        let most = messages.into_iter().max().unwrap_or(0);
        if self == Mechanism::NodeAware { most.min(1) } else { most }
    }
}

/// Segments laid one after the other.
pub fn packed(lens: &[usize]) -> BufferLayout {
    let mut len = 0;
    let mut after = |part: usize| {
        len += part;
        len - part
    };
    let offsets = lens.iter().map(|&part| after(part)).collect();
    BufferLayout { offsets, len }
}

/// The loans of parts that every rank lays one after the other.
pub fn packed_remote(volumes: &Volumes, rank: usize) -> RemoteBuffers {
    let places: Vec<BufferLayout> = volumes.pairs.iter().map(|lens| packed(lens)).collect();
    let offsets = places.iter().map(|places| places.offsets[rank]).collect();
    RemoteBuffers { offsets, lens: places.iter().map(|places| places.len).collect() }
}

/// Which parts are encoded and how much room they take.
#[derive(Clone)]
pub struct Encoding {
    /// Bytes of a chunk of so many numbers at most.
    max_bytes: Arc<dyn Fn(usize) -> usize + Send + Sync>,
    pub varies: bool,
    /// Parts between ranks of one node are left alone, if this is `Some`.
    nodes: Option<Vec<usize>>,
}

impl Encoding {
    /// For a codec that takes at most `max_bytes(n)` bytes for `n` scalars.
    pub fn new(
        max_bytes: Arc<dyn Fn(usize) -> usize + Send + Sync>,
        varies: bool,
        nodes: Option<Vec<usize>>,
    ) -> Encoding {
        Encoding { max_bytes, varies, nodes }
    }

    /// Is what goes from a rank to another encoded?
    pub fn is_encoded(&self, from: usize, to: usize) -> bool {
        from != to && self.nodes.as_ref().is_none_or(|nodes| nodes[from] != nodes[to])
    }

    /// Bytes of a chunk of so many scalars at most, its length not included.
    pub fn max_bytes(&self, scalars: usize) -> usize {
        (self.max_bytes)(scalars)
    }

    /// Bytes of a chunk at most, its length included.
    pub fn chunk_bytes(&self, numbers: usize) -> usize {
        self.header_bytes() + (self.max_bytes)(numbers)
    }

    pub fn header_bytes(&self) -> usize {
        if self.varies { LENGTH_BYTES } else { 0 }
    }

    /// Bytes of a part of so many numbers at most: its chunks, its end.
    /// Whole words, so that what comes after it is aligned.
    pub fn segment_bytes(&self, numbers: usize) -> usize {
        let (whole, rest) = (numbers / CHUNK_SCALARS, numbers % CHUNK_SCALARS);
        let last = if rest > 0 { self.chunk_bytes(rest) } else { 0 };
        let end = if numbers > 0 { self.header_bytes() } else { 0 };
        (whole * self.chunk_bytes(CHUNK_SCALARS) + last + end).next_multiple_of(8)
    }

    /// What a mover must know of parts of so many numbers, by sender.
    pub fn chunks(&self, numbers: &[Vec<usize>]) -> EncodedChunks {
        let chunks = |from: usize, to: usize| match self.is_encoded(from, to) {
            true => numbers[from][to].div_ceil(CHUNK_SCALARS),
            false => 0,
        };
        let row = |from: usize| (0..numbers.len()).map(|to| chunks(from, to)).collect();
        let chunks = (0..numbers.len()).map(row).collect();
        EncodedChunks { slot: self.chunk_bytes(CHUNK_SCALARS), varies: self.varies, chunks }
    }
}

/// A part that is encoded: its stage and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct EncodedSegment {
    pub peer: usize,
    /// In this rank's work area, in numbers.
    pub scalar_offset: usize,
    pub scalars: usize,
    /// In whose work area the bytes lie, and where, in bytes.
    pub holder: usize,
    pub byte_offset: usize,
}

impl EncodedSegment {
    pub fn chunks(&self) -> usize {
        self.scalars.div_ceil(CHUNK_SCALARS)
    }

    /// The numbers of a chunk, counted from the first of the part.
    pub fn chunk(&self, chunk: usize) -> Range<usize> {
        chunk * CHUNK_SCALARS..self.scalars.min((chunk + 1) * CHUNK_SCALARS)
    }
}
