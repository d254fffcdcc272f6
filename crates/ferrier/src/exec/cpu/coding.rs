//! Encoded segments of messages. A pass stores values into a stage (in cache, if the tile is small); chunks of
//! it are encoded into the messages. Received chunks are decoded into a stage that the next pass loads from.

use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::codec::CodecInstance;
use crate::exchange::Coder;
use crate::exec::backend::{PollPolicy, TileToCode};
use crate::exec::variant::Coding;
use crate::machine::SendPtr;
use crate::machine::pool::Pool;
use crate::{Error, Real, Result};
use ferrier_codec::{Codec, Loss};
use ferrier_plan::messages::{CHUNK_SCALARS, EncodedSegment, Encoding, LENGTH_BYTES};

/// The workspaces of a call by rank (of this node only), the scratch of the thread that encodes while a pass
/// runs, and the threads that encode while none does.
pub(crate) struct WorkPointers<T> {
    work: Vec<AtomicPtr<T>>,
    scratch: AtomicPtr<T>,
    /// The threads of the rank, between passes of a call; null while they run one.
    pool: AtomicPtr<Pool>,
    /// The scratch of the first of them, and scalars of each.
    scratches: (AtomicPtr<T>, AtomicUsize),
    /// Whether received bytes are overwritten with garbage.
    #[cfg(test)]
    spoil: std::sync::atomic::AtomicBool,
}

impl<T> WorkPointers<T> {
    pub fn new(ranks: usize) -> WorkPointers<T> {
        let none = || AtomicPtr::new(std::ptr::null_mut());
        WorkPointers {
            work: (0..ranks).map(|_| none()).collect(),
            scratch: none(),
            pool: AtomicPtr::new(std::ptr::null_mut()),
            scratches: (none(), AtomicUsize::new(0)),
            #[cfg(test)]
            spoil: Default::default(),
        }
    }

    pub fn set(&self, rank: usize, work: *mut T) {
        self.work[rank].store(work, Relaxed);
    }

    pub fn set_scratch(&self, scratch: *mut T) {
        self.scratch.store(scratch, Relaxed);
    }

    /// Sets the threads that encode, each with its scratch, or null.
    pub fn set_pool(&self, pool: *const Pool, first: *mut T, scalars: usize) {
        self.scratches.0.store(first, Relaxed);
        self.scratches.1.store(scalars, Relaxed);
        self.pool.store(pool.cast_mut(), Relaxed);
    }
}

/// A chunk's bytes in its segment, and the loss of encoding it.
#[derive(Default)]
struct ChunkRecord {
    at: AtomicUsize,
    len: AtomicUsize,
    loss: [AtomicU64; 2],
}

impl ChunkRecord {
    fn set_loss(&self, loss: Loss) {
        for (field, value) in self.loss.iter().zip(loss.to_array()) {
            field.store(value.to_bits(), Relaxed);
        }
    }

    fn loss(&self) -> Loss {
        Loss::from_array(self.loss.each_ref().map(|value| f64::from_bits(value.load(Relaxed))))
    }
}

/// The segments that one exchange sends, or receives.
struct CodedSegments {
    segments: Vec<EncodedSegment>,
    /// The index of each rank's segment, if there is one.
    by_peer: Vec<Option<usize>>,
    /// The first chunk of each segment, and the number of chunks.
    first: Vec<usize>,
    chunks: Vec<ChunkRecord>,
}

impl CodedSegments {
    fn new(segments: Vec<EncodedSegment>, ranks: usize) -> CodedSegments {
        let mut by_peer = vec![None; ranks];
        let mut first = vec![0];
        for (index, segment) in segments.iter().enumerate() {
            by_peer[segment.peer] = Some(index);
            first.push(first[index] + segment.chunks());
        }
        let chunks = (0..first[segments.len()]).map(|_| ChunkRecord::default()).collect();
        CodedSegments { segments, by_peer, first, chunks }
    }

    /// The segment of a chunk and the chunk's index in it.
    fn find(&self, chunk: usize) -> (usize, usize) {
        let segment = self.first.partition_point(|first| *first <= chunk) - 1;
        (segment, chunk - self.first[segment])
    }

    fn chunks(&self, segment: usize) -> &[ChunkRecord] {
        &self.chunks[self.first[segment]..self.first[segment + 1]]
    }

    fn of(&self, peer: usize) -> Option<usize> {
        self.by_peer.get(peer).copied().flatten()
    }
}

/// The encoded segments of one exchange of one variant.
pub struct CpuCoding<T> {
    codec: Arc<dyn Codec<T>>,
    encoding: Encoding,
    pointers: Arc<WorkPointers<T>>,
    rank: usize,
    sent: CodedSegments,
    received: CodedSegments,
    /// Bytes to each rank of segments that are not encoded.
    plain: Vec<usize>,
    next: AtomicUsize,
    failure: Mutex<Option<Error>>,
}

/// Scalars of scratch per thread for a codec.
pub(crate) fn scratch<T: Real>(codec: &dyn Codec<T>) -> usize {
    codec.scratch(CHUNK_SCALARS) * size_of::<u64>() / size_of::<T>()
}

impl<T: Real> CpuCoding<T> {
    pub(super) fn new(
        codec: &CodecInstance<T>,
        pointers: &Arc<WorkPointers<T>>,
        tile: TileToCode<'_>,
    ) -> Self {
        let TileToCode { context, layout, tile, encoding, plain } = tile;
        let staged = |side| context.encoded_segments(layout, tile, side);
        let [sent, received] = [0, 1].map(|side| CodedSegments::new(staged(side), plain.len()));
        CpuCoding {
            codec: codec.codec.clone(),
            encoding: encoding.clone(),
            pointers: pointers.clone(),
            rank: context.rank,
            sent,
            received,
            plain,
            next: AtomicUsize::new(0),
            failure: Mutex::default(),
        }
    }

    fn failure(&self) -> MutexGuard<'_, Option<Error>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The values of a chunk.
    fn stage(&self, segment: &EncodedSegment, chunk: usize) -> (*mut T, usize) {
        let range = segment.chunk(chunk);
        let work = self.pointers.work[self.rank].load(Relaxed);
        (work.wrapping_add(segment.scalar_offset + range.start), range.len())
    }

    /// The bytes of a segment from `at` on.
    fn bytes(&self, segment: &EncodedSegment, at: usize) -> *mut u8 {
        let work: *mut u8 = self.pointers.work[segment.holder].load(Relaxed).cast();
        work.wrapping_add(segment.byte_offset + at)
    }

    /// Encodes a chunk to the segment's bytes from `at` on. Returns the number of bytes.
    ///
    /// # Safety
    /// The workspaces of this call are as the plan laid them out; no other thread accesses the bytes or writes to
    /// the stage.
    unsafe fn encode_chunk(&self, index: usize, chunk: usize, at: usize, scratch: &mut [u64]) -> usize {
        let (segment, head) = (&self.sent.segments[index], self.encoding.header_bytes());
        let (values, scalars) = self.stage(segment, chunk);
        // SAFETY: this function's contract.
        let (values, out) = unsafe {
            let most = self.encoding.chunk_bytes(scalars);
            (
                std::slice::from_raw_parts(values, scalars),
                std::slice::from_raw_parts_mut(self.bytes(segment, at), most),
            )
        };
        let encoded = self.codec.encode(values, &mut out[head..], scratch);
        if self.encoding.varies {
            out[..LENGTH_BYTES].copy_from_slice(&(encoded.bytes as u32).to_le_bytes());
        }
        let record = &self.sent.chunks(index)[chunk];
        record.set_loss(encoded.loss);
        record.len.store(head + encoded.bytes, Relaxed);
        head + encoded.bytes
    }

    /// Encodes all chunks, on all threads.
    ///
    /// # Safety
    /// As for [`encode_chunk`](Self::encode_chunk); `scratch` gives each thread its own [`scratch`] scalars.
    pub(super) unsafe fn encode_all(
        &self,
        pool: &Pool,
        poll: PollPolicy<'_>,
        scratch: &(dyn Fn(usize) -> *mut T + Sync),
    ) {
        let slot = self.encoding.chunk_bytes(CHUNK_SCALARS);
        let segments = self.sent.segments.len();
        self.share_out(pool, self.sent.chunks.len(), |thread, chunk| {
            poll_at(poll, pool, thread, chunk, self.sent.chunks.len());
            // SAFETY: the thread's own.
            let scratch = unsafe { self.scratch(scratch(thread)) };
            let (segment, chunk) = self.sent.find(chunk);
            // SAFETY: this function's contract; chunks do not overlap.
            unsafe { self.encode_chunk(segment, chunk, chunk * slot, scratch) };
        });
        if self.encoding.varies {
            self.share_out(pool, segments, |_, index| {
                let segment = &self.sent.segments[index];
                // SAFETY: this function's contract; segments do not overlap. A segment has room for its chunks and the
                // length 0 that ends it.
                unsafe {
                    let end = self.compact(index, 0..segment.chunks());
                    self.bytes(segment, end).write_bytes(0, LENGTH_BYTES);
                }
            });
        }
    }

    /// Runs `work` for each index below `count`, on all threads.
    fn share_out(&self, pool: &Pool, count: usize, work: impl Fn(usize, usize) + Sync) {
        self.next.store(0, Relaxed);
        pool.run(&|thread| {
            let claims = std::iter::repeat_with(|| self.next.fetch_add(1, Relaxed));
            claims.take_while(|index| *index < count).for_each(|index| work(thread, index));
        });
    }

    /// Removes the gaps between chunks of a segment. Returns their bytes.
    ///
    /// # Safety
    /// As for [`encode_chunk`](Self::encode_chunk).
    unsafe fn compact(&self, index: usize, chunks: Range<usize>) -> usize {
        let (segment, slot) = (&self.sent.segments[index], self.encoding.chunk_bytes(CHUNK_SCALARS));
        let start = chunks.start * slot;
        chunks.fold(start, |end, chunk| {
            let len = self.sent.chunks(index)[chunk].len.load(Relaxed);
            if end < chunk * slot {
                // SAFETY: this function's contract; chunks lie in the segment's bytes.
                unsafe { self.bytes(segment, end).copy_from(self.bytes(segment, chunk * slot), len) };
            }
            end + len
        }) - start
    }

    /// # Safety
    /// `start` points to [`scratch`] scalars that no other thread uses.
    unsafe fn scratch<'a>(&self, start: *mut T) -> &'a mut [u64] {
        let words = self.codec.scratch(CHUNK_SCALARS);
        match words {
            0 => &mut [],
            // SAFETY: this function's contract; scratches begin on cache lines.
            _ => unsafe { std::slice::from_raw_parts_mut(start.cast(), words) },
        }
    }

    /// Decodes all received chunks, on all threads.
    ///
    /// # Errors
    /// [`Error::Codec`] if received bytes are not an encoder's.
    ///
    /// # Safety
    /// As for [`encode_all`](Self::encode_all); the exchange is complete.
    pub(super) unsafe fn decode_all(
        &self,
        pool: &Pool,
        poll: PollPolicy<'_>,
        scratch: &(dyn Fn(usize) -> *mut T + Sync),
    ) -> Result<()> {
        for (index, segment) in self.received.segments.iter().enumerate() {
            let most = self.encoding.segment_bytes(segment.scalars);
            // SAFETY: this function's contract.
            let bytes = unsafe { std::slice::from_raw_parts_mut(self.bytes(segment, 0), most) };
            self.spoil(bytes);
            self.locate(index, 0..segment.chunks(), bytes)?;
        }
        *self.failure() = None;
        self.share_out(pool, self.received.chunks.len(), |thread, chunk| {
            poll_at(poll, pool, thread, chunk, self.received.chunks.len());
            // SAFETY: the thread's own.
            let scratch = unsafe { self.scratch(scratch(thread)) };
            let (index, chunk) = self.received.find(chunk);
            let segment = &self.received.segments[index];
            let most = self.encoding.segment_bytes(segment.scalars);
            // SAFETY: this function's contract; chunks do not overlap.
            unsafe {
                let bytes = std::slice::from_raw_parts(self.bytes(segment, 0), most);
                self.decode_chunk(index, chunk, bytes, scratch);
            }
        });
        self.failure().take().map_or(Ok(()), Err)
    }

    /// Finds chunks of a received segment, which lie one after the other in `bytes`.
    fn locate(&self, index: usize, chunks: Range<usize>, bytes: &[u8]) -> Result<()> {
        let (segment, most) = (&self.received.segments[index], bytes.len());
        let mut at = 0;
        for (chunk, record) in chunks.clone().zip(&self.received.chunks(index)[chunks]) {
            let room = self.encoding.max_bytes(segment.chunk(chunk).len());
            let mut len = room;
            if self.encoding.varies {
                let length: [u8; LENGTH_BYTES] = bytes
                    .get(at..at + LENGTH_BYTES)
                    .and_then(|length| length.try_into().ok())
                    .unwrap_or_default();
                (len, at) = (u32::from_le_bytes(length) as usize, at + LENGTH_BYTES);
            }
            if len > room || at + len > most {
                return Err(too_long(segment.peer, room, len));
            }
            record.at.store(at, Relaxed);
            record.len.store(len, Relaxed);
            at += len;
        }
        Ok(())
    }

    /// Decodes a chunk that was found in `bytes`; `failure` gets its error.
    ///
    /// # Safety
    /// No other thread accesses the stage of the chunk.
    unsafe fn decode_chunk(&self, index: usize, chunk: usize, bytes: &[u8], scratch: &mut [u64]) {
        let (segment, record) = (&self.received.segments[index], &self.received.chunks(index)[chunk]);
        let (at, len) = (record.at.load(Relaxed), record.len.load(Relaxed));
        let (values, scalars) = self.stage(segment, chunk);
        // SAFETY: this function's contract.
        let values = unsafe { std::slice::from_raw_parts_mut(values, scalars) };
        if let Err(error) = self.codec.decode(&bytes[at..at + len], values, scratch) {
            let wrong = Error::codec(segment.peer, error.to_string()).caused_by(error);
            self.failure().get_or_insert(wrong);
        }
    }

    /// Overwrites received bytes, as a faulty network might, where a test asks for it.
    #[cfg_attr(not(test), expect(clippy::unused_self))]
    fn spoil(&self, _bytes: &mut [u8]) {
        #[cfg(test)]
        if self.pointers.spoil.load(Relaxed) {
            _bytes.fill(0xa7);
        }
    }

    /// Runs `work` for each index below `count` with the scratch of a thread: on all threads of the rank where they
    /// are idle, otherwise on this one, which runs exchanges while they run a pass.
    fn for_each(&self, count: usize, work: impl Fn(usize, &mut [u64]) + Sync) {
        let pool = self.pointers.pool.load(Relaxed);
        if pool.is_null() || count == 1 {
            // SAFETY: the plan set it for this call, for the thread that runs exchanges.
            let scratch = unsafe { self.scratch(self.pointers.scratch.load(Relaxed)) };
            return (0..count).for_each(|index| work(index, scratch));
        }
        let (first, scalars) = &self.pointers.scratches;
        let (first, scalars) = (SendPtr(first.load(Relaxed)), scalars.load(Relaxed));
        // SAFETY: the executor set its threads for this call and has taken them back where they run a pass.
        self.share_out(unsafe { &*pool }, count, |thread, index| {
            // SAFETY: the thread's own.
            work(index, unsafe { self.scratch(first.get().wrapping_add(thread * scalars)) });
        });
    }
}

/// Makes progress on exchanges in flight about as often as the policy says, on the thread that may: of every so many
/// chunks, it gets one of the first.
fn poll_at(poll: PollPolicy<'_>, pool: &Pool, thread: usize, chunk: usize, chunks: usize) {
    let every = chunks.div_ceil(poll.times.max(1));
    if thread == 0 && poll.times > 0 && chunk % every < pool.threads() {
        (poll.poll)();
    }
}

fn too_long(rank: usize, room: usize, len: usize) -> Error {
    Error::codec(rank, format!("a chunk of at most {room} bytes says that it has {len}"))
}

impl<T: Real> Coding for Arc<CpuCoding<T>> {
    fn coder(&self) -> Arc<dyn Coder> {
        self.clone()
    }

    fn bytes_sent(&self) -> u64 {
        (0..self.plain.len()).map(|peer| self.len(peer) as u64).sum()
    }

    fn loss(&self) -> Loss {
        self.sent.chunks.iter().map(ChunkRecord::loss).sum()
    }
}

impl<T: Real> Coder for CpuCoding<T> {
    fn len(&self, peer: usize) -> usize {
        match self.sent.of(peer) {
            None => self.plain[peer],
            Some(index) if self.encoding.varies => {
                let chunks = self.sent.chunks(index).iter();
                chunks.map(|chunk| chunk.len.load(Relaxed)).sum::<usize>() + LENGTH_BYTES
            }
            Some(index) => self.encoding.segment_bytes(self.sent.segments[index].scalars),
        }
    }

    fn encode(&self, peer: usize, chunks: Range<usize>) -> usize {
        let Some(segment) = self.sent.of(peer) else { return 0 };
        let slot = self.encoding.chunk_bytes(CHUNK_SCALARS);
        self.for_each(chunks.len(), |index, scratch| {
            let chunk = chunks.start + index;
            // SAFETY: an exchange calls this while it is in flight, when no pass accesses its stage and bytes.
            unsafe { self.encode_chunk(segment, chunk, chunk * slot, scratch) };
        });
        // SAFETY: as above.
        unsafe { self.compact(segment, chunks) }
    }

    fn decode(&self, peer: usize, chunks: Range<usize>, bytes: &mut [u8]) -> Result<()> {
        let Some(index) = self.received.of(peer) else { return Ok(()) };
        self.spoil(bytes);
        let bytes = &*bytes;
        self.locate(index, chunks.clone(), bytes)?;
        *self.failure() = None;
        self.for_each(chunks.len(), |number, scratch| {
            // SAFETY: as in `encode`; chunks do not overlap.
            unsafe { self.decode_chunk(index, chunks.start + number, bytes, scratch) };
        });
        self.failure().take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Choice, Overlap, Planner, Problem, Tiling};

    /// Garbage on any exchange, in tiles or not, gives all ranks an error: no panic, no deadlock.
    #[test]
    fn garbage_is_an_error_of_the_group() {
        let _watchdog = ferrier_test::watchdog(120);
        for exchange in ["all_to_allv", "all_to_all", "point_to_point", "ring", "hierarchical"] {
            for (codec, tile) in
                [("lossless", 0), ("zfp:accuracy=1e-3", 2), ("within:1e-4", 3), ("block:9", 0)]
            {
                // These decode most bytes to some values.
                let reads_all = ["block:9", "zfp:accuracy=1e-3"].contains(&codec);
                let outcome = crate::ranks(4).nodes(2).run(|comm| {
                    let tiling = Tiling::new(tile);
                    let choice =
                        Choice::new().exchange(exchange).codec(codec).overlap(Overlap::uniform(tiling));
                    let problem = Problem::c2c([12, 10, 9]);
                    let mut plan = Planner::new(&problem).choice(choice).draft::<f64>(&comm)?.build()?;
                    let (mut input, mut output) = (plan.make_input()?, plan.make_output()?);
                    input.fill_complex(|_, [i, j, k]| num_complex::Complex::cis((i * j + k) as f64));
                    plan.forward(&input, &mut output)?;
                    let pointers = plan.executor.pointers.as_ref().expect("something is encoded");
                    pointers.spoil.store(comm.rank() == 2, Relaxed);
                    let spoiled = plan.forward(&input, &mut output);
                    assert!(spoiled.is_err() || reads_all, "{exchange} {codec}");
                    spoiled
                });
                match outcome {
                    Ok(_) => assert!(reads_all),
                    Err(Error::Codec { .. }) => {}
                    Err(other) => panic!("{exchange} {codec}: {other}"),
                }
            }
        }
    }
}
