//! Encoded parts: a pass stores values into a stage, in cache where the tile
//! is small, and chunk by chunk they are encoded into the messages; what came
//! is decoded into a stage that the next pass loads from.

use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::codec::CodecInstance;
use crate::exchange::Coder;
use crate::exec::backend::TileToCode;
use crate::exec::variant::Coding;
use crate::machine::pool::Pool;
use crate::{Error, Real, Result};
use ferrier_codec::{Codec, Loss};
use ferrier_plan::messages::{CHUNK_SCALARS, EncodedSegment, Encoding, LENGTH_BYTES};

/// Where the work areas of this call are, by rank (this node's only), and the
/// scratch of the thread that encodes while a pass runs.
pub(crate) struct WorkPointers<T> {
    work: Vec<AtomicPtr<T>>,
    scratch: AtomicPtr<T>,
    /// Is what comes to be spoiled?
    #[cfg(test)]
    spoil: std::sync::atomic::AtomicBool,
}

impl<T> WorkPointers<T> {
    pub fn new(ranks: usize) -> WorkPointers<T> {
        let none = || AtomicPtr::new(std::ptr::null_mut());
        WorkPointers {
            work: (0..ranks).map(|_| none()).collect(),
            scratch: none(),
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
}

/// What became of a chunk: its bytes when it was encoded and what that lost,
/// or where its bytes lie when it is to be decoded.
#[derive(Default)]
struct Note {
    at: AtomicUsize,
    len: AtomicUsize,
    loss: [AtomicU64; 2],
}

impl Note {
    fn set_loss(&self, loss: Loss) {
        for (place, number) in self.loss.iter().zip(loss.to_array()) {
            place.store(number.to_bits(), Relaxed);
        }
    }

    fn loss(&self) -> Loss {
        Loss::from_array(self.loss.each_ref().map(|number| f64::from_bits(number.load(Relaxed))))
    }
}

/// The segments that one exchange sends, or receives.
struct CodedSegments {
    parts: Vec<EncodedSegment>,
    /// The part of each rank, if there is one.
    by_peer: Vec<Option<usize>>,
    /// The first chunk of each part, and the number of all.
    first: Vec<usize>,
    notes: Vec<Note>,
}

impl CodedSegments {
    fn new(parts: Vec<EncodedSegment>, ranks: usize) -> CodedSegments {
        let mut by_peer = vec![None; ranks];
        let mut first = vec![0];
        for (index, part) in parts.iter().enumerate() {
            by_peer[part.peer] = Some(index);
            first.push(first[index] + part.chunks());
        }
        let notes = (0..first[parts.len()]).map(|_| Note::default()).collect();
        CodedSegments { parts, by_peer, first, notes }
    }

    /// The part of a chunk and its number there.
    fn find(&self, chunk: usize) -> (usize, usize) {
        let part = self.first.partition_point(|first| *first <= chunk) - 1;
        (part, chunk - self.first[part])
    }

    fn notes(&self, part: usize) -> &[Note] {
        &self.notes[self.first[part]..self.first[part + 1]]
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
    /// Bytes to each rank of parts that are not encoded.
    plain: Vec<usize>,
    next: AtomicUsize,
    failure: Mutex<Option<Error>>,
}

/// Numbers of scratch that a thread needs for a codec.
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
    fn stage(&self, part: &EncodedSegment, chunk: usize) -> (*mut T, usize) {
        let range = part.chunk(chunk);
        let work = self.pointers.work[self.rank].load(Relaxed);
        (work.wrapping_add(part.scalar_offset + range.start), range.len())
    }

    /// The bytes of a part from there on.
    fn bytes(&self, part: &EncodedSegment, at: usize) -> *mut u8 {
        let work: *mut u8 = self.pointers.work[part.holder].load(Relaxed).cast();
        work.wrapping_add(part.byte_offset + at)
    }

    /// Encodes a chunk to bytes that begin there; how many.
    ///
    /// # Safety
    /// The areas of this call are as the plan laid them out, the bytes are
    /// this part's; no other thread accesses them or writes to the stage.
    unsafe fn encode_chunk(&self, index: usize, chunk: usize, at: usize, scratch: &mut [u64]) -> usize {
        let (part, head) = (&self.sent.parts[index], self.encoding.header_bytes());
        let (values, numbers) = self.stage(part, chunk);
        // SAFETY: this function's contract.
        let (values, out) = unsafe {
            let most = self.encoding.chunk_bytes(numbers);
            (
                std::slice::from_raw_parts(values, numbers),
                std::slice::from_raw_parts_mut(self.bytes(part, at), most),
            )
        };
        let encoded = self.codec.encode(values, &mut out[head..], scratch);
        if self.encoding.varies {
            out[..LENGTH_BYTES].copy_from_slice(&(encoded.bytes as u32).to_le_bytes());
        }
        let note = &self.sent.notes(index)[chunk];
        note.set_loss(encoded.loss);
        note.len.store(head + encoded.bytes, Relaxed);
        head + encoded.bytes
    }

    /// Encodes everything, on all threads.
    ///
    /// # Safety
    /// As for [`encode_chunk`](Self::encode_chunk); `scratch` gives each
    /// thread as much as [`scratch`] says.
    pub(super) unsafe fn encode_all(&self, pool: &Pool, scratch: &(dyn Fn(usize) -> *mut T + Sync)) {
        let slot = self.encoding.chunk_bytes(CHUNK_SCALARS);
        let (all, parts) = (self.sent.notes.len(), self.sent.parts.len());
        if self.encoding.varies && pool.threads() == 1 {
            // One after the other: nothing needs to move.
            // SAFETY: this function's contract.
            return unsafe { (0..parts).for_each(|part| self.encode_part(part, self.scratch(scratch(0)))) };
        }
        self.next.store(0, Relaxed);
        pool.run(&|thread| {
            // SAFETY: the thread's own.
            let scratch = unsafe { self.scratch(scratch(thread)) };
            loop {
                let chunk = self.next.fetch_add(1, Relaxed);
                if chunk >= all {
                    return;
                }
                let (part, chunk) = self.sent.find(chunk);
                // SAFETY: this function's contract; chunks lie apart.
                unsafe { self.encode_chunk(part, chunk, chunk * slot, scratch) };
            }
        });
        if !self.encoding.varies {
            return;
        }
        self.next.store(0, Relaxed);
        pool.run(&|_| {
            loop {
                let part = self.next.fetch_add(1, Relaxed);
                if part >= parts {
                    return;
                }
                // SAFETY: this function's contract; parts lie apart.
                unsafe { self.close_up(part) };
            }
        });
    }

    /// Encodes a part whose lengths vary, chunk after chunk.
    ///
    /// # Safety
    /// As for [`encode_chunk`](Self::encode_chunk).
    unsafe fn encode_part(&self, index: usize, scratch: &mut [u64]) {
        let part = &self.sent.parts[index];
        let mut end = 0;
        for chunk in 0..part.chunks() {
            // SAFETY: this function's contract.
            end += unsafe { self.encode_chunk(index, chunk, end, scratch) };
        }
        // SAFETY: the room of a part is that of its chunks and of its end.
        unsafe { self.bytes(part, end).write_bytes(0, LENGTH_BYTES) };
    }

    /// Moves the chunks of a part together and ends it.
    ///
    /// # Safety
    /// As for [`encode_chunk`](Self::encode_chunk).
    unsafe fn close_up(&self, index: usize) {
        let (part, slot) = (&self.sent.parts[index], self.encoding.chunk_bytes(CHUNK_SCALARS));
        let most = self.encoding.segment_bytes(part.scalars);
        // SAFETY: this function's contract.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.bytes(part, 0), most) };
        let mut end = 0;
        for (chunk, note) in self.sent.notes(index).iter().enumerate() {
            let len = note.len.load(Relaxed);
            bytes.copy_within(chunk * slot..chunk * slot + len, end);
            end += len;
        }
        bytes[end..end + LENGTH_BYTES].fill(0);
    }

    /// # Safety
    /// As much memory as [`scratch`] says, for one thread alone.
    unsafe fn scratch<'a>(&self, start: *mut T) -> &'a mut [u64] {
        let words = self.codec.scratch(CHUNK_SCALARS);
        match words {
            0 => &mut [],
            // SAFETY: this function's contract; scratches begin on cache lines.
            _ => unsafe { std::slice::from_raw_parts_mut(start.cast(), words) },
        }
    }

    /// Decodes everything that came, on all threads.
    ///
    /// # Errors
    /// [`Error::Codec`] where no encoder wrote what came.
    ///
    /// # Safety
    /// As for [`encode_all`](Self::encode_all); the exchange is complete.
    pub(super) unsafe fn decode_all(
        &self,
        pool: &Pool,
        scratch: &(dyn Fn(usize) -> *mut T + Sync),
    ) -> Result<()> {
        #[cfg(test)]
        self.received
            .parts
            .iter()
            .for_each(|part| self.spoil(part, 0..self.encoding.segment_bytes(part.scalars)));
        for part in 0..self.received.parts.len() {
            // SAFETY: this function's contract.
            unsafe { self.locate(part)? };
        }
        *self.failure() = None;
        self.next.store(0, Relaxed);
        pool.run(&|thread| {
            // SAFETY: the thread's own.
            let scratch = unsafe { self.scratch(scratch(thread)) };
            loop {
                let chunk = self.next.fetch_add(1, Relaxed);
                let Some(note) = self.received.notes.get(chunk) else { return };
                let (part, chunk) = self.received.find(chunk);
                let (at, len) = (note.at.load(Relaxed), note.len.load(Relaxed));
                // SAFETY: this function's contract; chunks lie apart.
                if let Err(error) = unsafe { self.decode_chunk(part, chunk, at..at + len, scratch) } {
                    self.failure().get_or_insert(error);
                }
            }
        });
        self.failure().take().map_or(Ok(()), Err)
    }

    /// Finds the chunks of a part that came.
    ///
    /// # Safety
    /// As for [`decode_all`](Self::decode_all).
    unsafe fn locate(&self, index: usize) -> Result<()> {
        let part = &self.received.parts[index];
        let most = self.encoding.segment_bytes(part.scalars);
        // SAFETY: this function's contract.
        let bytes = unsafe { std::slice::from_raw_parts(self.bytes(part, 0), most) };
        let mut at = 0;
        for (chunk, note) in self.received.notes(index).iter().enumerate() {
            let room = self.encoding.max_bytes(part.chunk(chunk).len());
            let mut len = room;
            if self.encoding.varies {
                let length: [u8; LENGTH_BYTES] = bytes
                    .get(at..at + LENGTH_BYTES)
                    .and_then(|length| length.try_into().ok())
                    .unwrap_or_default();
                (len, at) = (u32::from_le_bytes(length) as usize, at + LENGTH_BYTES);
            }
            if len > room || at + len > most {
                return Err(too_long(part.peer, room, len));
            }
            note.at.store(at, Relaxed);
            note.len.store(len, Relaxed);
            at += len;
        }
        Ok(())
    }

    /// # Safety
    /// As for [`decode_all`](Self::decode_all); the bytes are inside the part.
    unsafe fn decode_chunk(
        &self,
        index: usize,
        chunk: usize,
        bytes: Range<usize>,
        scratch: &mut [u64],
    ) -> Result<()> {
        let part = &self.received.parts[index];
        let (values, numbers) = self.stage(part, chunk);
        // SAFETY: this function's contract.
        let (from, values) = unsafe {
            (
                std::slice::from_raw_parts(self.bytes(part, bytes.start), bytes.len()),
                std::slice::from_raw_parts_mut(values, numbers),
            )
        };
        let wrong = |error: ferrier_codec::Error| Error::codec(part.peer, error.to_string()).caused_by(error);
        self.codec.decode(from, values, scratch).map_err(wrong)
    }

    /// As if the wire had made a mess of it.
    #[cfg(test)]
    fn spoil(&self, part: &EncodedSegment, bytes: Range<usize>) {
        if self.pointers.spoil.load(Relaxed) {
            // SAFETY: bytes of a part that came, which is ours.
            unsafe { self.bytes(part, bytes.start).write_bytes(0xa7, bytes.len()) };
        }
    }

    /// The scratch of the thread that talks.
    ///
    /// # Safety
    /// For that thread alone.
    unsafe fn own_scratch<'a>(&self) -> &'a mut [u64] {
        // SAFETY: the plan set it for this call.
        unsafe { self.scratch(self.pointers.scratch.load(Relaxed)) }
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
        self.sent.notes.iter().map(Note::loss).sum()
    }
}

impl<T: Real> Coder for CpuCoding<T> {
    fn len(&self, peer: usize) -> usize {
        match self.sent.of(peer) {
            None => self.plain[peer],
            Some(part) if !self.encoding.varies => self.encoding.segment_bytes(self.sent.parts[part].scalars),
            Some(part) => {
                self.sent.notes(part).iter().map(|note| note.len.load(Relaxed)).sum::<usize>() + LENGTH_BYTES
            }
        }
    }

    fn encode(&self, peer: usize, chunks: Range<usize>) -> usize {
        let Some(part) = self.sent.of(peer) else { return 0 };
        let start = chunks.start * self.encoding.chunk_bytes(CHUNK_SCALARS);
        chunks.fold(start, |at, chunk| {
            // SAFETY: an exchange calls this between its start and its end, when stage and bytes are its own.
            at + unsafe { self.encode_chunk(part, chunk, at, self.own_scratch()) }
        }) - start
    }

    fn size(&self, peer: usize, chunk: usize) -> usize {
        let part = self.received.of(peer).map(|part| &self.received.parts[part]);
        part.map_or(0, |part| self.encoding.max_bytes(part.chunk(chunk).len()))
    }

    fn decode(&self, peer: usize, chunk: usize, bytes: Range<usize>) -> Result<()> {
        #[cfg(test)]
        if let Some(part) = self.received.of(peer) {
            self.spoil(&self.received.parts[part], bytes.clone());
        }
        let room = self.size(peer, chunk);
        match self.received.of(peer) {
            Some(part) if bytes.len() <= room => {
                // SAFETY: as in `encode`; a chunk from its place on, no longer than it may be.
                unsafe { self.decode_chunk(part, chunk, bytes, self.own_scratch()) }
            }
            _ => Err(too_long(peer, room, bytes.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Choice, Overlap, Planner, Problem, Tiling};

    /// Whatever comes, on whatever exchange, in tiles or not: an error of all ranks, no panic, and no rank waits forever.
    #[test]
    fn garbage_is_an_error_of_the_group() {
        let _watchdog = ferrier_test::watchdog(120);
        for exchange in ["all_to_allv", "all_to_all", "point_to_point", "ring", "hierarchical"] {
            for (codec, tile) in
                [("lossless", 0), ("zfp:accuracy=1e-3", 2), ("within:1e-4", 3), ("block:9", 0)]
            {
                // To these most bytes are some values.
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
