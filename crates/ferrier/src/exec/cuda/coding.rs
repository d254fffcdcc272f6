//! The encoded segments of an exchange on a GPU. All chunks are encoded by one launch, which records what was lost of each.
//! Exchanges that send packets do not wait for it: the kernel writes to main memory and marks each chunk that the host may
//! send; received packets are decoded as they arrive, on a stream of their own.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::codec::{Chunks, Decoder};
use super::gpu::Gpu;
use super::memory::{Pinned, Stream};
use crate::exchange::Coder;
use crate::exec::variant::Coding;
use crate::{Error, Result};
use ferrier_codec::Loss;
use ferrier_plan::messages::{CHUNK_SCALARS, EncodedSegment, Encoding};

/// What a kernel says of a chunk; as in `encode.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkRecord {
    loss: [f64; 2],
    run: u64,
    _unused: u64,
}

/// The records of all exchanges of a plan, in main memory that the GPU writes to.
pub(super) struct Records(Pinned);

impl Records {
    pub fn new(gpu: &Gpu, chunks: usize) -> Result<Records> {
        Ok(Records(Pinned::new(gpu, Records::bytes(chunks))?))
    }

    /// Bytes of the records of so many chunks.
    pub fn bytes(chunks: usize) -> usize {
        chunks * size_of::<ChunkRecord>()
    }

    /// The record of a chunk.
    fn at(&self, chunk: usize) -> *const ChunkRecord {
        self.0.at(chunk * size_of::<ChunkRecord>()).cast()
    }

    /// The address of the records from a chunk on, for kernels.
    pub fn address(&self, chunk: usize) -> u64 {
        self.at(chunk) as u64
    }

    fn is_marked(&self, chunk: usize, run: u64) -> bool {
        // SAFETY: inside the records; the GPU writes this word at once, after all that belongs to the chunk.
        let seen = unsafe { (&raw const (*self.at(chunk)).run).read_volatile() } == run;
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        seen
    }

    fn loss(&self, chunk: usize) -> Loss {
        // SAFETY: inside the records; the stream of the kernel has been waited for.
        Loss::from_array(unsafe { (&raw const (*self.at(chunk)).loss).read_volatile() })
    }
}

/// A segment: its first chunk among those of the exchange, its chunks, and where its bytes begin in the workspace.
#[derive(Clone, Copy, Debug)]
struct CodedSegment {
    first: usize,
    scalars: usize,
    byte_offset: usize,
}

/// The segments of one side, by peer.
fn by_peer(segments: &[EncodedSegment], ranks: usize) -> Vec<Option<CodedSegment>> {
    let (mut all, mut first) = (vec![None; ranks], 0);
    for segment in segments {
        let EncodedSegment { scalars, byte_offset, .. } = *segment;
        all[segment.peer] = Some(CodedSegment { first, scalars, byte_offset });
        first += segment.chunks();
    }
    all
}

/// Encodes and decodes the segments of one exchange.
pub struct CudaCoding {
    pub(super) encode: Chunks,
    /// Its first record.
    pub(super) first_record: usize,
    pub(super) packets: Arc<PacketCoder>,
}

impl CudaCoding {
    /// `plain`: bytes to each rank of segments that are not encoded.
    pub(super) fn new(
        [encode, decode]: [Chunks; 2],
        [sent, received]: [&[EncodedSegment]; 2],
        plain: Vec<usize>,
        encoding: &Encoding,
        first_record: usize,
    ) -> CudaCoding {
        let mut lens = plain;
        sent.iter().for_each(|part| lens[part.peer] = encoding.segment_bytes(part.scalars));
        let [sent, received] = [sent, received].map(|segments| by_peer(segments, lens.len()));
        let (run, encoding) = (Mutex::default(), encoding.clone());
        let packets = Arc::new(PacketCoder { lens, sent, received, encoding, decode, first_record, run });
        CudaCoding { encode, first_record, packets }
    }

    /// Chunks that are received.
    pub(super) fn decode(&self) -> &Chunks {
        &self.packets.decode
    }
}

impl Coding for CudaCoding {
    fn coder(&self) -> Arc<dyn Coder> {
        self.packets.clone()
    }

    fn bytes_sent(&self) -> u64 {
        self.packets.lens.iter().map(|&bytes| bytes as u64).sum()
    }

    /// The stream that encoded has been waited for.
    fn loss(&self) -> Loss {
        let run = self.packets.run();
        let Some(run) = &*run else { return Loss::NONE };
        let chunks = self.first_record..self.first_record + self.encode.chunks;
        chunks.map(|chunk| run.records.loss(chunk)).sum()
    }
}

/// What packets of a run need: memory and streams of the call.
#[derive(Clone)]
pub(super) struct PacketRun {
    pub gpu: Gpu,
    pub records: Arc<Records>,
    /// The mark of chunks that this run has encoded; 0: the transport reads whole messages.
    pub number: u64,
    pub decoder: Decoder,
    pub tables: u64,
    pub work: u64,
    /// The main memory that stands for the workspace.
    pub staging: *mut u8,
    /// The stream on which packets are decoded.
    pub stream: Arc<Stream>,
}

// SAFETY: the staging memory is accessed only where an exchange in flight may: by the thread that runs it.
unsafe impl Send for PacketRun {}

/// Tells exchanges the lengths of segments, and which packets the GPU has encoded; decodes packets there.
pub(super) struct PacketCoder {
    lens: Vec<usize>,
    sent: Vec<Option<CodedSegment>>,
    received: Vec<Option<CodedSegment>>,
    encoding: Encoding,
    decode: Chunks,
    first_record: usize,
    run: Mutex<Option<PacketRun>>,
}

impl PacketCoder {
    fn run(&self) -> MutexGuard<'_, Option<PacketRun>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what the next run needs.
    pub fn set(&self, run: PacketRun) {
        *self.run() = Some(run);
    }

    /// The bytes of chunks of a segment.
    fn bytes(&self, segment: &CodedSegment, chunks: &Range<usize>) -> usize {
        let scalars = segment.scalars.min(chunks.end * CHUNK_SCALARS) - chunks.start * CHUNK_SCALARS;
        let (full, rest) = (scalars / CHUNK_SCALARS, scalars % CHUNK_SCALARS);
        full * self.encoding.max_bytes(CHUNK_SCALARS)
            + if rest > 0 { self.encoding.max_bytes(rest) } else { 0 }
    }
}

impl Coder for PacketCoder {
    fn len(&self, peer: usize) -> usize {
        self.lens[peer]
    }

    fn can_encode(&self, peer: usize, chunks: Range<usize>) -> Result<bool> {
        let run = self.run();
        let (Some(run), Some(segment)) = (&*run, self.sent[peer]) else { return Ok(true) };
        let first = self.first_record + segment.first;
        let marked = |chunk: usize| run.records.is_marked(first + chunk, run.number);
        Ok(chunks.rev().all(marked))
    }

    /// The kernel has.
    fn encode(&self, peer: usize, chunks: Range<usize>) -> usize {
        self.sent[peer].map_or(0, |segment| self.bytes(&segment, &chunks))
    }

    fn decode(&self, peer: usize, chunks: Range<usize>, bytes: &mut [u8]) -> Result<()> {
        let run = self.run();
        let (Some(run), Some(segment)) = (&*run, self.received[peer]) else { return Ok(()) };
        let len = self.bytes(&segment, &chunks);
        if len > bytes.len() {
            let message = format!("a packet of {len} bytes has room for {}", bytes.len());
            return Err(Error::codec(peer, message));
        }
        let at = segment.byte_offset + chunks.start * self.encoding.max_bytes(CHUNK_SCALARS);
        run.gpu.enter()?;
        let some = segment.first + chunks.start..segment.first + chunks.end;
        // SAFETY: the bytes of this packet in the receive buffer of an exchange in flight, and at the same place of the
        // staging memory; no pass accesses them before the wait for it, nor the stage that they are decoded to.
        unsafe {
            let to = run.staging.add(at);
            to.copy_from_nonoverlapping(bytes.as_ptr(), len);
            run.stream.upload(to, run.work + at as u64, len)?;
            run.decoder.run(&self.decode, some, run.tables, run.work, &run.stream)
        }
    }
}
