//! MPI's errors as this crate's.

use crate::Error;

/// An error of `ferrier-mpi` as one of this crate.
pub(crate) fn mpi_error(error: ferrier_mpi::Error) -> Error {
    Error::transport(error.to_string()).caused_by(error)
}
