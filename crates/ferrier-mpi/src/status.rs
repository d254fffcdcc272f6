//! Statuses of received messages.

use std::ffi::c_void;

use crate::abi::Abi;
use crate::error::Result;
use crate::ffi::{Count, Int};
use crate::library::Library;

/// Where a message may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// This rank.
    Rank(usize),
    /// Any rank.
    Any,
}

impl From<usize> for Source {
    fn from(rank: usize) -> Source {
        Source::Rank(rank)
    }
}

/// A received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its length in bytes.
    pub bytes: usize,
    /// Its sender.
    pub source: usize,
    /// Its tag.
    pub tag: i32,
}

/// An `MPI_Status` of any ABI.
#[repr(C, align(8))]
pub(crate) struct Status([u8; 64]);

impl Status {
    pub fn new() -> Status {
        Status([0; 64])
    }

    pub fn out(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    fn field(&self, at: usize) -> Int {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.0[at..at + 4]);
        Int::from_ne_bytes(bytes)
    }

    /// To be called under the guard of [`Library::enter`].
    pub fn received(&self, mpi: &Library) -> Result<Received> {
        let abi: &Abi = mpi.abi;
        let mut bytes: Count = 0;
        // SAFETY: a status that MPI filled; the out-parameter is valid.
        let code = unsafe { (mpi.calls().get_elements_x)(self.0.as_ptr().cast(), mpi.h.byte, &mut bytes) };
        mpi.check("MPI_Get_elements_x", code)?;
        // The status of a cancelled receive is undefined.
        let natural = |value: Int| usize::try_from(value).unwrap_or(0);
        Ok(Received {
            bytes: usize::try_from(bytes).unwrap_or(0),
            source: natural(self.field(abi.status_source)),
            tag: self.field(abi.status_tag),
        })
    }
}
