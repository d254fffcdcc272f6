//! Messages as data: bytes between ranks, their offsets in buffers, how they are encoded.
//!
//! The bytes from one rank to another in one tile of a reshape form a *segment*.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The segments between all ranks in one tile of a reshape. A row or a column is computed when it is asked for: a
/// table of all pairs of ranks would not fit in memory.
#[derive(Clone)]
pub struct SegmentTable {
    ranks: usize,
    list: Arc<ListSegments>,
    keeps: Arc<dyn Fn(usize) -> bool + Send + Sync>,
}

/// The peers of a rank that are sent something (`true`) or that send something, ascending, with the bytes.
type ListSegments = dyn Fn(usize, bool) -> Vec<(usize, usize)> + Send + Sync;

impl SegmentTable {
    /// The table of `ranks` ranks whose rows (`true`) and columns `list` gives: peers, ascending, and bytes, none 0.
    pub fn new(
        ranks: usize,
        list: impl Fn(usize, bool) -> Vec<(usize, usize)> + Send + Sync + 'static,
    ) -> SegmentTable {
        SegmentTable { ranks, list: Arc::new(list), keeps: Arc::new(|_| true) }
    }

    /// Sets which ranks keep data of their own; by default all do.
    pub fn keeping(self, keeps: impl Fn(usize) -> bool + Send + Sync + 'static) -> SegmentTable {
        SegmentTable { keeps: Arc::new(keeps), ..self }
    }

    /// The table with these bytes from one rank to another.
    pub fn of(ranks: usize, bytes: impl Fn(usize, usize) -> usize + Send + Sync + 'static) -> SegmentTable {
        SegmentTable::new(ranks, move |rank, sending| {
            let of = |peer| if sending { bytes(rank, peer) } else { bytes(peer, rank) };
            (0..ranks).map(|peer| (peer, of(peer))).filter(|(_, bytes)| *bytes > 0).collect()
        })
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The ranks that `rank` sends to, ascending, and the bytes.
    pub fn row(&self, rank: usize) -> Vec<(usize, usize)> {
        (self.list)(rank, true)
    }

    /// The ranks that send to `rank`, ascending, and the bytes.
    pub fn column(&self, rank: usize) -> Vec<(usize, usize)> {
        (self.list)(rank, false)
    }

    /// Whether some data stays on this rank.
    pub fn keeps(&self, rank: usize) -> bool {
        (self.keeps)(rank)
    }

    /// Bytes of the largest segment between any two ranks.
    pub fn largest(&self) -> usize {
        (0..self.ranks).flat_map(|rank| self.row(rank)).map(|(_, bytes)| bytes).max().unwrap_or(0)
    }
}

impl fmt::Debug for SegmentTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentTable").field("ranks", &self.ranks).finish_non_exhaustive()
    }
}

/// Bytes between this rank and each other rank in one tile of a reshape. Data that stays on its rank is not
/// counted. For encoded segments the counts are upper bounds.
#[derive(Clone, Debug)]
pub struct Volumes {
    /// Bytes to each rank.
    pub to: Vec<usize>,
    /// Bytes from each rank.
    pub from: Vec<usize>,
    /// Bytes between any two ranks.
    pub table: SegmentTable,
    /// Number of the group of reshapes whose tiles may be in flight together, or loaded from a window while others are.
    /// Tiles of different groups never are, so their exchanges may share memory.
    pub reshape: usize,
    /// How segments are encoded, if they are.
    pub encoded: Option<EncodedChunks>,
    /// Whether buffers in host memory stand in for device memory, so that segments must be copied to the
    /// receiver. Otherwise the receiver may load them from the buffer of the sender.
    pub via_host: bool,
    /// Whether several exchanges follow each other at once, so that long messages, which MPI sends only when their receiver
    /// has answered, should go in short ones.
    pub in_pieces: bool,
}

impl Volumes {
    /// The volumes of `rank` in a table; nothing is encoded.
    pub fn new(table: SegmentTable, rank: usize) -> Volumes {
        let (to, from) = (spread(&table.row(rank), table.ranks), spread(&table.column(rank), table.ranks));
        Volumes { to, from, table, reshape: 0, encoded: None, via_host: false, in_pieces: false }
    }

    /// Whether the lengths of segments are known only after encoding.
    pub fn vary(&self) -> bool {
        self.encoded.as_ref().is_some_and(|encoded| encoded.varies)
    }
}

/// A value for each rank, from a list of those that are not 0.
pub(crate) fn spread(list: &[(usize, usize)], ranks: usize) -> Vec<usize> {
    let mut all = vec![0; ranks];
    list.iter().for_each(|&(rank, value)| all[rank] = value);
    all
}

/// How the segments of a tile are encoded: as a sequence of chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedChunks {
    /// Upper bound of the bytes of a full chunk, with its length prefix if there is one.
    pub slot: usize,
    /// Whether the length of a chunk depends on the data. If so, each chunk is preceded by its length
    /// ([`LENGTH_BYTES`] bytes), and a segment ends with a length of 0.
    pub varies: bool,
    /// Number of chunks to each rank; 0 for empty segments and for segments that are not encoded.
    pub to: Vec<usize>,
    /// Number of chunks from each rank.
    pub from: Vec<usize>,
}

/// Bytes of the length prefix of a chunk.
pub const LENGTH_BYTES: usize = 4;

/// Scalars of a chunk: so many that headers do not matter, so few that a chunk and its encoding fit the
/// first-level caches.
pub const CHUNK_SCALARS: usize = 4096;

/// Offsets of the segments in the send or receive buffer of an exchange, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferLayout {
    /// Offset of the segment of each rank.
    pub offsets: Vec<usize>,
    /// Length of the buffer.
    pub len: usize,
}

/// How an exchange uses memory that the ranks of a node share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSharing {
    /// The node of each rank. Segments for ranks of the same node are not sent: the receiver loads them from the
    /// memory of the sender.
    pub nodes: Vec<usize>,
    /// For each rank of another node, the rank of this node whose send buffer holds the segment for it.
    pub outbox: Vec<usize>,
    /// For each rank of another node, the rank of this node whose receive buffer gets the segment from it.
    pub inbox: Vec<usize>,
    /// Bytes of the send and the receive buffer of every rank.
    pub lens: Vec<[usize; 2]>,
}

/// Segments that receivers load from the send buffers of their senders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteBuffers {
    /// Offset of the segment for this rank in the send buffer of each rank, in bytes.
    pub offsets: Vec<usize>,
    /// Bytes of the send buffer of each rank.
    pub lens: Vec<usize>,
}

/// The buffers of an exchange, as far as the passes before and after it access them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeBuffers {
    /// The send buffer: the offset of the segment for each rank.
    pub send: BufferLayout,
    /// The receive buffer: the offset of the segment from each rank.
    pub recv: BufferLayout,
    /// For exchanges through the memory of a node: segments stored by the other ranks of the node are sent once
    /// all of them have started; on completion, segments received by the other ranks may be loaded as well.
    pub sharing: Option<NodeSharing>,
    /// For transports whose ranks load segments from the send buffers of their senders: all send buffers are
    /// exposed for the duration of a call, and there is no receive buffer.
    pub remote: Option<RemoteBuffers>,
    /// For exchanges that put segments into a window of this rank, from which passes load them: the offset of the segment
    /// from each rank there, in bytes. There is no receive buffer.
    pub window: Option<Vec<usize>>,
    /// Whether the exchange encodes and decodes chunk by chunk itself. Otherwise everything is encoded before the
    /// start and decoded after the wait.
    pub encodes: bool,
}

/// How an exchange moves data between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// The next pass loads from the memory of the other ranks.
    SharedMemory,
    /// Messages through send and receive buffers.
    Messages,
    /// Shared memory inside a node, messages between nodes.
    NodeAware,
}

impl Mechanism {
    /// Whether ranks access the memory of other ranks.
    pub fn shares(self) -> bool {
        self != Mechanism::Messages
    }

    /// The mechanism over `nodes` nodes: on a single node there are no messages.
    pub fn on_nodes(self, nodes: usize) -> Mechanism {
        match self {
            Mechanism::NodeAware if nodes == 1 => Mechanism::SharedMemory,
            mechanism => mechanism,
        }
    }
}

/// A buffer of consecutive segments of these lengths, in bytes.
pub fn packed(lens: &[usize]) -> BufferLayout {
    let mut len = 0;
    let mut next = |segment: usize| {
        len += segment;
        len - segment
    };
    let offsets = lens.iter().map(|&segment| next(segment)).collect();
    BufferLayout { offsets, len }
}

/// The segments for `rank` in the send buffers of all ranks, if every rank packs its segments.
pub fn packed_remote(volumes: &Volumes, rank: usize) -> RemoteBuffers {
    let buffer = |source: usize| -> (usize, usize) {
        let row = volumes.table.row(source);
        let bytes = |segments: &[(usize, usize)]| segments.iter().map(|(_, bytes)| bytes).sum();
        (bytes(&row[..row.partition_point(|(target, _)| *target < rank)]), bytes(&row))
    };
    let (offsets, lens) = (0..volumes.table.ranks()).map(buffer).unzip();
    RemoteBuffers { offsets, lens }
}

/// Which segments are encoded, and upper bounds of their bytes.
#[derive(Clone)]
pub struct Encoding {
    max_bytes: Arc<dyn Fn(usize) -> usize + Send + Sync>,
    /// Whether the length of a chunk depends on the data.
    pub varies: bool,
    /// The node of each rank, if segments inside a node are not encoded.
    nodes: Option<Vec<usize>>,
}

impl fmt::Debug for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoding").field("varies", &self.varies).finish_non_exhaustive()
    }
}

impl Encoding {
    /// The encoding by a codec that takes at most `max_bytes(n)` bytes for `n` scalars. With `nodes`, the node of
    /// each rank, segments inside a node are not encoded.
    pub fn new(
        max_bytes: Arc<dyn Fn(usize) -> usize + Send + Sync>,
        varies: bool,
        nodes: Option<Vec<usize>>,
    ) -> Encoding {
        Encoding { max_bytes, varies, nodes }
    }

    /// Whether segments from one rank to another are encoded.
    pub fn is_encoded(&self, from: usize, to: usize) -> bool {
        from != to && self.nodes.as_ref().is_none_or(|nodes| nodes[from] != nodes[to])
    }

    /// Upper bound of the bytes of a chunk of so many scalars, without its length prefix.
    pub fn max_bytes(&self, scalars: usize) -> usize {
        (self.max_bytes)(scalars)
    }

    /// Upper bound of the bytes of a chunk of so many scalars, with its length prefix.
    pub fn chunk_bytes(&self, scalars: usize) -> usize {
        self.header_bytes() + (self.max_bytes)(scalars)
    }

    /// Bytes of the length prefix of a chunk; 0 if lengths do not vary.
    pub fn header_bytes(&self) -> usize {
        if self.varies { LENGTH_BYTES } else { 0 }
    }

    /// Upper bound of the bytes of a segment of so many scalars: chunks and terminator, rounded up to 8 bytes so
    /// that the next segment is aligned.
    pub fn segment_bytes(&self, scalars: usize) -> usize {
        let (full, rest) = (scalars / CHUNK_SCALARS, scalars % CHUNK_SCALARS);
        let last = if rest > 0 { self.chunk_bytes(rest) } else { 0 };
        let terminator = if scalars > 0 { self.header_bytes() } else { 0 };
        (full * self.chunk_bytes(CHUNK_SCALARS) + last + terminator).next_multiple_of(8)
    }

    /// Number of chunks of a segment of so many scalars; 0 if it is not encoded.
    pub fn chunks(&self, from: usize, to: usize, scalars: usize) -> usize {
        if self.is_encoded(from, to) { scalars.div_ceil(CHUNK_SCALARS) } else { 0 }
    }
}

/// An encoded segment: where its scalars and its bytes are.
#[derive(Clone, Copy, Debug)]
pub struct EncodedSegment {
    /// The receiver, or the sender, of the segment.
    pub peer: usize,
    /// Offset of the scalars in this rank's workspace, in scalars.
    pub scalar_offset: usize,
    /// Number of scalars.
    pub scalars: usize,
    /// The rank whose workspace holds the bytes.
    pub holder: usize,
    /// Offset of the bytes in that workspace, in bytes.
    pub byte_offset: usize,
}

impl EncodedSegment {
    /// Number of chunks.
    pub fn chunks(&self) -> usize {
        self.scalars.div_ceil(CHUNK_SCALARS)
    }

    /// The scalars of a chunk, relative to the first scalar of the segment.
    pub fn chunk(&self, chunk: usize) -> Range<usize> {
        chunk * CHUNK_SCALARS..self.scalars.min((chunk + 1) * CHUNK_SCALARS)
    }
}
