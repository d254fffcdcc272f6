//! Collective calls.

use crate::comm::Comm;
use crate::counts::{Counts, Operands};
use crate::data::{Number, Op, Plain, received_at, sent_from};
use crate::error::{Error, Result};
use crate::exchange::AllToAllV;
use crate::library::counted;
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
        let (start, length) = (data.as_mut_ptr().cast::<u8>(), size_of_val(data));
        (0..length).step_by(mpi.limit()).try_for_each(|at| {
            let (count, byte, raw) = (mpi.limit().min(length - at), mpi.h.byte, self.raw());
            // SAFETY: a part of `data`, of which any bytes are values; handles are valid.
            unsafe { counted!(mpi, "MPI_Bcast", bcast(start.add(at).cast(), count as _, byte, root, raw)) }
        })
    }

    /// Replaces each entry of `data` by the sum (least, largest) over ranks;
    /// as long on every rank. Collective.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn all_reduce<T: Number>(&self, data: &mut [T], op: Op) -> Result<()> {
        let mpi = self.library();
        let (kind, op, in_place) = (T::datatype(&mpi.h), op.handle(&mpi.h), mpi.in_place());
        data.chunks_mut(mpi.limit()).try_for_each(|piece| {
            let (start, count, raw) = (piece.as_mut_ptr().cast(), piece.len(), self.raw());
            // SAFETY: valid for its length, of MPI's type for `T`; handles are valid.
            unsafe { counted!(mpi, "MPI_Allreduce", allreduce(in_place, start, count as _, kind, op, raw)) }
        })
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
        let (mpi, n) = (self.library(), size_of_val(mine));
        if n > mpi.limit() {
            let rank = self.rank();
            all[rank * mine.len()..(rank + 1) * mine.len()].copy_from_slice(mine);
            let mut blocks = all.chunks_mut(mine.len()).enumerate();
            return blocks.try_for_each(|(root, block)| self.broadcast(block, root));
        }
        let (from, to) = (sent_from(mine).cast(), received_at(all.as_mut_ptr(), all.len()).cast());
        let (byte, raw) = (mpi.h.byte, self.raw());
        // SAFETY: both are as long as the counts say; handles are valid.
        unsafe { counted!(mpi, "MPI_Allgather", allgather(from, n as _, byte, to, n as _, byte, raw)) }
    }

    /// Every rank's bytes, of any length. Collective; allocates.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn all_gather_bytes(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut lengths = vec![0_u64; self.size()];
        self.all_gather(&[mine.len() as u64], &mut lengths)?;
        let mut total = 0;
        let segment = |(peer, &length): (usize, &u64)| {
            let offset = total;
            total += length as usize;
            Segment { peer, offset, len: length as usize }
        };
        let segments: Vec<Segment> = lengths.iter().enumerate().map(segment).collect();
        let mut all = vec![0_u8; total];
        let (mpi, size) = (self.library(), self.size());
        let (from, to) = (sent_from(mine), received_at(all.as_mut_ptr(), total));
        let operands = Operands { from, to, byte: mpi.h.byte, comm: self.raw() };
        if let Some(wide) = mpi.wide() {
            let (counts, _guard) = (Counts::new(size, &[], &segments), mpi.enter()?);
            // SAFETY: the buffers are as long as the counts say; handles are valid.
            mpi.check("MPI_Allgatherv_c", unsafe { counts.gather(wide, operands, mine.len()) })?;
        } else if total <= mpi.limit() {
            let (counts, _guard) = (Counts::new(size, &[], &segments), mpi.enter()?);
            // SAFETY: as above.
            let code = unsafe { counts.gather(&mpi.loaded.narrow, operands, mine.len()) };
            mpi.check("MPI_Allgatherv", code)?;
        } else {
            let own = segments[self.rank()];
            all[own.offset..own.offset + own.len].copy_from_slice(mine);
            for segment in &segments {
                self.broadcast(&mut all[segment.offset..segment.offset + segment.len], segment.peer)?;
            }
        }
        let list = |segment: &Segment| all[segment.offset..segment.offset + segment.len].to_vec();
        Ok(segments.iter().map(list).collect())
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
        let (block, from, to) =
            (size_of_val(send) / size, sent_from(send), received_at(recv.as_mut_ptr(), recv.len()));
        if block > mpi.limit() {
            let segment = |peer| Segment { peer, offset: peer * block, len: block };
            let segments: Vec<Segment> = (0..size).map(segment).collect();
            // SAFETY: `Plain` types have no padding, and any bytes are valid values.
            let (send, recv) = unsafe {
                (
                    std::slice::from_raw_parts(from, size_of_val(send)),
                    std::slice::from_raw_parts_mut(to, size_of_val(recv)),
                )
            };
            // All blocks have the same length, so nothing needs to be checked. (`new` calls this function.)
            return AllToAllV::local(&self.duplicate()?, &segments, &segments, 1)?.run(send, recv);
        }
        let (from, to, byte, raw) = (from.cast(), to.cast(), mpi.h.byte, self.raw());
        // SAFETY: both are `size` blocks long; handles are valid.
        unsafe { counted!(mpi, "MPI_Alltoall", alltoall(from, block as _, byte, to, block as _, byte, raw)) }
    }
}
