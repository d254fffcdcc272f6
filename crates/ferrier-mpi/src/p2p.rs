//! Messages from one rank to another.
//!
//! A message above the limit of 32-bit counts goes in pieces of `limit` bytes
//! and a last one that is shorter (maybe empty), so that the receiver knows
//! the end without knowing the length. MPI keeps their order.

use std::ops::Range;

use crate::comm::Comm;
use crate::data::{Plain, received_at, sent_from};
use crate::error::Result;
use crate::ffi::{Count, Int};
use crate::library::Counting;
use crate::status::{Received, Source, Status};
use crate::table::Table;

/// The pieces of a message: full ones and a last that is not full.
fn pieces(length: usize, limit: usize) -> impl Iterator<Item = Range<usize>> {
    (0..=length / limit).map(move |piece| piece * limit..((piece + 1) * limit).min(length))
}

impl Comm {
    /// Sends; returns when `data` may be used again. Not collective.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn send<T: Plain>(&self, data: &[T], to: usize, tag: i32) -> Result<()> {
        let (mpi, to) = (self.library(), self.peer(to)?);
        let (start, length, byte, comm) = (sent_from(data), size_of_val(data), mpi.h.byte, self.raw());
        match mpi.counting() {
            Counting::Wide(wide) => {
                let _guard = mpi.enter()?;
                // SAFETY: `length` bytes at `start` live for the call; handles are valid.
                let code = unsafe { (wide.send)(start.cast(), length as Count, byte, to, tag, comm) };
                mpi.check("MPI_Send_c", code)
            }
            Counting::Split(limit) => pieces(length, limit).try_for_each(|piece| {
                let _guard = mpi.enter()?;
                // SAFETY: the piece lies inside the data; handles are valid.
                let code = unsafe {
                    (mpi.calls().send)(start.add(piece.start).cast(), piece.len() as Int, byte, to, tag, comm)
                };
                mpi.check("MPI_Send", code)
            }),
        }
    }

    /// Receives a message that is at most as long as `data`. Not collective.
    ///
    /// # Errors
    /// Those of MPI: a longer message among them.
    pub fn receive<T: Plain>(&self, data: &mut [T], from: impl Into<Source>, tag: i32) -> Result<Received> {
        let mpi = self.library();
        let mut from = self.source(from.into())?;
        let (start, length, byte, comm) =
            (received_at(data.as_mut_ptr(), data.len()), size_of_val(data), mpi.h.byte, self.raw());
        let mut status = Status::new();
        let limit = match mpi.counting() {
            Counting::Wide(wide) => {
                let _guard = mpi.enter()?;
                // SAFETY: `length` bytes at `start` are borrowed for the call; handles are valid.
                let code = unsafe {
                    (wide.recv)(start.cast(), length as Count, byte, from, tag, comm, status.out())
                };
                mpi.check("MPI_Recv_c", code)?;
                return status.received(mpi);
            }
            Counting::Split(limit) => limit,
        };
        let mut sum: Option<Received> = None;
        for piece in pieces(length, limit) {
            let _guard = mpi.enter()?;
            // SAFETY: the piece lies inside the data; handles are valid.
            let code = unsafe {
                let start = start.add(piece.start).cast();
                (mpi.calls().recv)(start, piece.len() as Int, byte, from, tag, comm, status.out())
            };
            mpi.check("MPI_Recv", code)?;
            let got = status.received(mpi)?;
            // The other pieces come from the sender of the first.
            from = got.source as Int;
            sum = Some(sum.map_or(got, |sum| Received { bytes: sum.bytes + got.bytes, ..sum }));
            if got.bytes < limit {
                break;
            }
        }
        Ok(sum.expect("a message has at least one piece"))
    }

    /// Makes progress on all operations in flight, puts of other ranks into windows
    /// included. Not collective.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn progress(&self) -> Result<()> {
        let mpi = self.library();
        let _guard = mpi.enter()?;
        let mut flag = 0;
        // SAFETY: a valid communicator and out-parameters; whether a message is there does not matter.
        let code = unsafe {
            (mpi.calls().iprobe)(mpi.abi.any_source, 0, self.raw(), &mut flag, mpi.status_ignore())
        };
        mpi.check("MPI_Iprobe", code)
    }

    pub(crate) fn source(&self, source: Source) -> Result<Int> {
        match source {
            Source::Rank(rank) => self.peer(rank),
            Source::Any => Ok(self.library().abi.any_source),
        }
    }
}

/// Starts to send `length` bytes of at most `most`, for which the receiver is
/// prepared: the message goes in as many pieces as it expects.
///
/// # Safety
/// The bytes live and do not change until the operations are complete.
pub(crate) unsafe fn start_send(
    table: &Table,
    comm: &Comm,
    start: *const u8,
    [length, most]: [usize; 2],
    to: usize,
    tag: i32,
    segment: usize,
) -> Result<()> {
    let (mpi, to) = (comm.library(), comm.peer(to)?);
    let (byte, raw) = (mpi.h.byte, comm.raw());
    let mut handle = 0;
    match mpi.counting() {
        Counting::Wide(wide) => {
            let _guard = mpi.enter()?;
            // SAFETY: the contract of this function keeps the bytes; handles are valid.
            let code =
                unsafe { (wide.isend)(start.cast(), length as Count, byte, to, tag, raw, &mut handle) };
            mpi.check("MPI_Isend_c", code)?;
            table.push(handle, false, segment);
        }
        Counting::Split(limit) => {
            for piece in pieces(most, limit).map(|piece| piece.start.min(length)..piece.end.min(length)) {
                let _guard = mpi.enter()?;
                // SAFETY: the piece lies inside the bytes, which the contract of this function keeps.
                let code = unsafe {
                    let start = start.add(piece.start).cast();
                    (mpi.calls().isend)(start, piece.len() as Int, byte, to, tag, raw, &mut handle)
                };
                mpi.check("MPI_Isend", code)?;
                table.push(handle, false, segment);
            }
        }
    }
    Ok(())
}

/// Starts to receive `length` bytes.
///
/// # Safety
/// Only MPI accesses the bytes until the operations are complete.
pub(crate) unsafe fn start_receive(
    table: &Table,
    comm: &Comm,
    start: *mut u8,
    length: usize,
    from: Source,
    tag: i32,
    segment: usize,
) -> Result<()> {
    let (mpi, from) = (comm.library(), comm.source(from)?);
    let (byte, raw) = (mpi.h.byte, comm.raw());
    let mut handle = 0;
    match mpi.counting() {
        Counting::Wide(wide) => {
            let _guard = mpi.enter()?;
            // SAFETY: the contract of this function reserves the bytes for MPI; handles are valid.
            let code =
                unsafe { (wide.irecv)(start.cast(), length as Count, byte, from, tag, raw, &mut handle) };
            mpi.check("MPI_Irecv_c", code)?;
            table.push(handle, true, segment);
        }
        Counting::Split(limit) => {
            for piece in pieces(length, limit) {
                let _guard = mpi.enter()?;
                // SAFETY: the piece lies inside the bytes, which the contract of this function reserves for MPI.
                let code = unsafe {
                    let start = start.add(piece.start).cast();
                    (mpi.calls().irecv)(start, piece.len() as Int, byte, from, tag, raw, &mut handle)
                };
                mpi.check("MPI_Irecv", code)?;
                table.push(handle, true, segment);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn the_last_piece_is_never_full() {
        let of = |length, limit| pieces(length, limit).map(|piece| piece.len()).collect::<Vec<_>>();
        assert_eq!(of(0, 4), [0]);
        assert_eq!(of(3, 4), [3]);
        assert_eq!(of(4, 4), [4, 0]);
        assert_eq!(of(9, 4), [4, 4, 1]);
    }
}
