//! Collective calls.

use std::ffi::c_void;

use crate::comm::Comm;
use crate::data::{Number, Op, Plain, Predefined, received_at, sent_from};
use crate::error::{Error, Result};
use crate::exchange::AllToAllV;
use crate::ffi::{Aint, Count, Int};
use crate::library::Counting;
use crate::segment::Segment;

impl Comm {
    /// Returns when every rank has called it. Collective.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn barrier(&self) -> Result<()> {
        let mpi = self.library();
        let _guard = mpi.enter()?;
        // SAFETY: a valid communicator.
        mpi.check("MPI_Barrier", unsafe { (mpi.calls().barrier)(self.raw()) })
    }

    /// Copies `data` of `root` to every rank; as long on every rank. Collective.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn broadcast<T: Plain>(&self, data: &mut [T], root: usize) -> Result<()> {
        let (mpi, root) = (self.library(), self.peer(root)?);
        let (start, length, byte) =
            (received_at(data.as_mut_ptr(), data.len()), size_of_val(data), mpi.h.byte);
        match mpi.counting() {
            Counting::Wide(wide) => {
                let _guard = mpi.enter()?;
                // SAFETY: `length` bytes at `start` are borrowed for the call; handles are valid.
                let code = unsafe { (wide.bcast)(start.cast(), length as Count, byte, root, self.raw()) };
                mpi.check("MPI_Bcast_c", code)
            }
            Counting::Split(limit) => (0..length).step_by(limit).try_for_each(|at| {
                let _guard = mpi.enter()?;
                let count = limit.min(length - at) as Int;
                // SAFETY: the piece lies inside the data; handles are valid.
                let code =
                    unsafe { (mpi.calls().bcast)(start.add(at).cast(), count, byte, root, self.raw()) };
                mpi.check("MPI_Bcast", code)
            }),
        }
    }

    /// Replaces each entry of `data` by the sum (least, largest) over ranks;
    /// as long on every rank. Collective.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn all_reduce<T: Number>(&self, data: &mut [T], op: Op) -> Result<()> {
        let mpi = self.library();
        let (kind, op, in_place) = (T::datatype(&Predefined(&mpi.h)), op.handle(&mpi.h), mpi.in_place());
        match mpi.counting() {
            Counting::Wide(wide) => {
                let _guard = mpi.enter()?;
                let start: *mut c_void = received_at(data.as_mut_ptr(), data.len()).cast();
                // SAFETY: the data is borrowed for the call and of that type; handles are valid.
                let code =
                    unsafe { (wide.allreduce)(in_place, start, data.len() as Count, kind, op, self.raw()) };
                mpi.check("MPI_Allreduce_c", code)
            }
            Counting::Split(limit) => data.chunks_mut(limit).try_for_each(|piece| {
                let _guard = mpi.enter()?;
                let start: *mut c_void = piece.as_mut_ptr().cast();
                // SAFETY: as above.
                let code = unsafe {
                    (mpi.calls().allreduce)(in_place, start, piece.len() as Int, kind, op, self.raw())
                };
                mpi.check("MPI_Allreduce", code)
            }),
        }
    }

    /// Every rank's `mine`, one after the other, in `all`; as long on every
    /// rank. Collective.
    ///
    /// # Errors
    /// [`Error::Argument`] where `all` is not as long as all together; those of MPI.
    pub fn all_gather<T: Plain>(&self, mine: &[T], all: &mut [T]) -> Result<()> {
        if all.len() != mine.len() * self.size() {
            let (came, expected) = (all.len(), mine.len() * self.size());
            return Err(Error::Argument(format!("all_gather into {came} values, {expected} expected")));
        }
        let mpi = self.library();
        let (bytes, byte) = (size_of_val(mine), mpi.h.byte);
        let (from, to) = (sent_from(mine).cast(), received_at(all.as_mut_ptr(), all.len()).cast());
        match mpi.counting() {
            Counting::Wide(wide) => {
                let (_guard, count) = (mpi.enter()?, bytes as Count);
                // SAFETY: both are as long as the counts say; handles are valid.
                let code = unsafe { (wide.allgather)(from, count, byte, to, count, byte, self.raw()) };
                mpi.check("MPI_Allgather_c", code)
            }
            Counting::Split(limit) if bytes <= limit => {
                let (_guard, count) = (mpi.enter()?, bytes as Int);
                // SAFETY: as above.
                let code = unsafe { (mpi.calls().allgather)(from, count, byte, to, count, byte, self.raw()) };
                mpi.check("MPI_Allgather", code)
            }
            Counting::Split(_) => {
                let rank = self.rank();
                all[rank * mine.len()..(rank + 1) * mine.len()].copy_from_slice(mine);
                all.chunks_mut(mine.len())
                    .enumerate()
                    .try_for_each(|(root, block)| self.broadcast(block, root))
            }
        }
    }

    /// Every rank's bytes, of any length. Collective; allocates.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn all_gather_bytes(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut lengths = vec![0_u64; self.size()];
        self.all_gather(&[mine.len() as u64], &mut lengths)?;
        let counts: Vec<Count> = lengths.iter().map(|&length| length as Count).collect();
        let places: Vec<Aint> =
            counts.iter().scan(0, |end, &count| Some(std::mem::replace(end, *end + count as Aint))).collect();
        let total: usize = lengths.iter().sum::<u64>() as usize;
        let mut all = vec![0_u8; total];
        let mpi = self.library();
        let (byte, from, to) =
            (mpi.h.byte, sent_from(mine).cast(), received_at(all.as_mut_ptr(), total).cast());
        match mpi.counting() {
            Counting::Wide(wide) => {
                let _guard = mpi.enter()?;
                // SAFETY: the buffers are as long as the counts say; handles are valid.
                let code = unsafe {
                    let (counts, places) = (counts.as_ptr(), places.as_ptr());
                    (wide.allgatherv)(from, mine.len() as Count, byte, to, counts, places, byte, self.raw())
                };
                mpi.check("MPI_Allgatherv_c", code)?;
            }
            Counting::Split(limit) if total <= limit => {
                let counts: Vec<Int> = counts.iter().map(|&count| count as Int).collect();
                let places: Vec<Int> = places.iter().map(|&place| place as Int).collect();
                let _guard = mpi.enter()?;
                // SAFETY: as above.
                let code = unsafe {
                    let (counts, places) = (counts.as_ptr(), places.as_ptr());
                    (mpi.calls().allgatherv)(
                        from,
                        mine.len() as Int,
                        byte,
                        to,
                        counts,
                        places,
                        byte,
                        self.raw(),
                    )
                };
                mpi.check("MPI_Allgatherv", code)?;
            }
            Counting::Split(_) => {
                let place = places[self.rank()] as usize;
                all[place..place + mine.len()].copy_from_slice(mine);
                for (root, &count) in counts.iter().enumerate() {
                    let place = places[root] as usize;
                    self.broadcast(&mut all[place..place + count as usize], root)?;
                }
            }
        }
        let cut =
            |(&place, &count): (&Aint, &Count)| all[place as usize..place as usize + count as usize].to_vec();
        Ok(places.iter().zip(&counts).map(cut).collect())
    }

    /// Block `q` of `send` goes to rank `q`, block `q` of `recv` comes from it;
    /// all blocks are as long, on every rank. Collective.
    ///
    /// # Errors
    /// [`Error::Argument`] where buffers differ in length or cannot be cut into
    /// as many blocks as there are ranks; those of MPI.
    pub fn all_to_all<T: Plain>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        let (size, mpi) = (self.size(), self.library());
        if send.len() != recv.len() || !send.len().is_multiple_of(size) {
            let (sent, received) = (send.len(), recv.len());
            return Err(Error::Argument(format!(
                "all_to_all of {sent} values into {received} on {size} ranks"
            )));
        }
        let (block, byte) = (size_of_val(send) / size, mpi.h.byte);
        let (from, to) =
            (sent_from(send).cast::<c_void>(), received_at(recv.as_mut_ptr(), recv.len()).cast::<c_void>());
        match mpi.counting() {
            Counting::Wide(wide) => {
                let (_guard, count) = (mpi.enter()?, block as Count);
                // SAFETY: both are `size` blocks long; handles are valid.
                let code = unsafe { (wide.alltoall)(from, count, byte, to, count, byte, self.raw()) };
                mpi.check("MPI_Alltoall_c", code)
            }
            Counting::Split(limit) if block <= limit => {
                let (_guard, count) = (mpi.enter()?, block as Int);
                // SAFETY: as above.
                let code = unsafe { (mpi.calls().alltoall)(from, count, byte, to, count, byte, self.raw()) };
                mpi.check("MPI_Alltoall", code)
            }
            Counting::Split(_) => {
                let segment = |peer| Segment { peer, offset: peer * block, len: block };
                let segments: Vec<Segment> = (0..size).map(segment).collect();
                // SAFETY: `Plain` types have no padding, and any bytes are valid values.
                let (send, recv) = unsafe {
                    (
                        std::slice::from_raw_parts(from.cast::<u8>(), size_of_val(send)),
                        std::slice::from_raw_parts_mut(to.cast::<u8>(), size_of_val(recv)),
                    )
                };
                // All blocks have the same length, so nothing needs to be checked. (`new` calls this function.)
                AllToAllV::local(&self.duplicate()?, &segments, &segments, 1)?.run(send, recv)
            }
        }
    }
}
