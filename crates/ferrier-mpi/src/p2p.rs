//! Messages from one rank to another.
//!
//! A message above a limit, such as that of 32-bit counts, goes in pieces of `limit`
//! bytes and a last one that is shorter (maybe empty). MPI keeps their order.

use std::ops::Range;

use crate::comm::Comm;
use crate::error::Result;
use crate::library::counted;
use crate::table::Table;

/// The pieces of a message: full ones and a last that is not full.
fn pieces(length: usize, limit: usize) -> impl Iterator<Item = Range<usize>> {
    (0..=length / limit).map(move |piece| piece * limit..((piece + 1) * limit).min(length))
}

/// Starts to send `length` bytes in the pieces, of at most `limit` bytes, of a message
/// of `most` bytes, which the receiver expects.
///
/// # Safety
/// The bytes live and stay as they are until the operations in the table are complete.
pub(crate) unsafe fn start_send(
    table: &mut Table,
    comm: &Comm,
    start: *const u8,
    [length, most]: [usize; 2],
    (to, tag): (usize, i32),
    limit: usize,
) -> Result<()> {
    let (mpi, to) = (comm.library(), comm.peer(to)?);
    let mut request = 0;
    for piece in
        pieces(most, limit.min(mpi.limit())).map(|piece| piece.start.min(length)..piece.end.min(length))
    {
        // SAFETY: a piece of bytes that live until completion; handles are valid.
        unsafe {
            let (start, count) = (start.add(piece.start).cast(), piece.len());
            let (byte, raw, request) = (mpi.h.byte, comm.raw(), &mut request);
            counted!(mpi, "MPI_Isend", isend(start, count as _, byte, to, tag, raw, request))?;
        }
        table.push(request, false);
    }
    Ok(())
}

/// Starts to receive a message of at most `length` bytes, in the same pieces.
///
/// # Safety
/// The bytes live and only MPI accesses them until the operations in the table are
/// complete.
pub(crate) unsafe fn start_receive(
    table: &mut Table,
    comm: &Comm,
    start: *mut u8,
    length: usize,
    (from, tag): (usize, i32),
    limit: usize,
) -> Result<()> {
    let (mpi, from) = (comm.library(), comm.peer(from)?);
    let mut request = 0;
    for piece in pieces(length, limit.min(mpi.limit())) {
        // SAFETY: as in `start_send`.
        unsafe {
            let (start, count) = (start.add(piece.start).cast(), piece.len());
            let (byte, raw, request) = (mpi.h.byte, comm.raw(), &mut request);
            counted!(mpi, "MPI_Irecv", irecv(start, count as _, byte, from, tag, raw, request))?;
        }
        table.push(request, true);
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
