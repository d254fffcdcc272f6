//! Communicators as callers pass them, and the MPI of the process.

use std::sync::Mutex;

use ferrier::Comm;
use ferrier_mpi::Mpi;

use crate::distribution::Group;

/// A communicator of the caller.
#[derive(Clone, Copy, Debug)]
pub enum Handle {
    /// `MPI_Comm`: a pointer, or MPICH's integer in the lower half of a register.
    C(usize),
    /// The integer of Fortran.
    Fortran(i32),
}

impl From<usize> for Handle {
    fn from(raw: usize) -> Handle {
        Handle::C(raw)
    }
}

impl From<i32> for Handle {
    fn from(fortran: i32) -> Handle {
        Handle::Fortran(fortran)
    }
}

/// Kept for the life of the process: `local_size` is called often, and the program initialised MPI itself.
static MPI: Mutex<Option<Mpi>> = Mutex::new(None);

fn mpi() -> Result<Mpi, String> {
    let mut kept = MPI.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(mpi) = kept.as_ref() {
        return Ok(mpi.clone());
    }
    let mpi = Mpi::host(std::ptr::null()).map_err(|error| error.to_string())?;
    Ok(kept.insert(mpi).clone())
}

impl Handle {
    /// The `MPI_Comm`.
    ///
    /// # Errors
    /// Where no MPI is loaded.
    pub fn raw(self) -> Result<usize, String> {
        match self {
            Handle::C(raw) => Ok(raw),
            Handle::Fortran(handle) => mpi()?.handle_of_fortran(handle).map_err(|error| error.to_string()),
        }
    }

    /// Rank and size. Not collective.
    ///
    /// # Errors
    /// Where no MPI is loaded or initialised.
    ///
    /// # Safety
    /// It is a communicator of the MPI of this process.
    pub unsafe fn group(self) -> Result<Group, String> {
        // SAFETY: the contract of this function.
        let (rank, ranks) =
            unsafe { mpi()?.rank_and_size(self.raw()?) }.map_err(|error| error.to_string())?;
        Ok(Group { rank, ranks })
    }

    /// The ranks as Ferrier has them. Collective.
    ///
    /// # Errors
    /// Those of MPI.
    ///
    /// # Safety
    /// As [`group`](Self::group).
    pub unsafe fn comm(self) -> Result<Comm, String> {
        mpi()?;
        // SAFETY: the contract of this function.
        unsafe { ferrier::mpi::from_handle(self.raw()?, std::ptr::null()) }.map_err(|error| error.to_string())
    }
}
