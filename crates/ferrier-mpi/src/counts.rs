//! Lists of counts and displacements, and the calls that take them.

use crate::abi::Handle;
use crate::ffi::{Counted, Int};
use crate::segment::Segment;

/// Counts and displacements in MPI's types.
pub(crate) struct Counts<C, D> {
    send: Vec<C>,
    send_at: Vec<D>,
    recv: Vec<C>,
    recv_at: Vec<D>,
}

/// Buffers, and the handles of their type and of the communicator.
#[derive(Clone, Copy)]
pub(crate) struct Operands {
    pub from: *const u8,
    pub to: *mut u8,
    pub byte: Handle,
    pub comm: Handle,
}

impl<C: Copy + Default + TryFrom<usize>, D: Copy + Default + TryFrom<usize>> Counts<C, D> {
    pub fn new(size: usize, sent: &[Segment], received: &[Segment]) -> Counts<C, D> {
        let list = |segments: &[Segment]| {
            let (mut counts, mut offsets) = (vec![C::default(); size], vec![D::default(); size]);
            for segment in segments {
                counts[segment.peer] = C::try_from(segment.len).unwrap_or_default();
                offsets[segment.peer] = D::try_from(segment.offset).unwrap_or_default();
            }
            (counts, offsets)
        };
        let ((send, send_at), (recv, recv_at)) = (list(sent), list(received));
        Counts { send, send_at, recv, recv_at }
    }

    /// Runs the exchange, or starts it where there is a request.
    ///
    /// # Safety
    /// Every segment lies inside its buffer, buffers and lists live until completion,
    /// and handles are valid.
    pub unsafe fn call(
        &self,
        calls: &Counted<C, D>,
        operands: Operands,
        request: Option<&mut Handle>,
    ) -> Int {
        let Operands { from, to, byte, comm } = operands;
        let (from, send, send_at) = (from.cast(), self.send.as_ptr(), self.send_at.as_ptr());
        let (to, recv, recv_at) = (to.cast(), self.recv.as_ptr(), self.recv_at.as_ptr());
        // SAFETY: the contract of this function; lists have an entry per rank.
        unsafe {
            match request {
                None => (calls.alltoallv)(from, send, send_at, byte, to, recv, recv_at, byte, comm),
                Some(new) => {
                    (calls.ialltoallv)(from, send, send_at, byte, to, recv, recv_at, byte, comm, new)
                }
            }
        }
    }

    /// Gathers what each rank sends, `length` bytes of this one.
    ///
    /// # Safety
    /// As [`Counts::call`], with lists of all ranks that are the same on every rank.
    pub unsafe fn gather(&self, calls: &Counted<C, D>, operands: Operands, length: usize) -> Int {
        let Operands { from, to, byte, comm } = operands;
        let length = C::try_from(length).unwrap_or_default();
        let (from, to, recv, recv_at) = (from.cast(), to.cast(), self.recv.as_ptr(), self.recv_at.as_ptr());
        // SAFETY: as in `call`.
        unsafe { (calls.allgatherv)(from, length, byte, to, recv, recv_at, byte, comm) }
    }
}
