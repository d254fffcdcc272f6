//! One error type; a return code of MPI comes with MPI's own text.

use std::path::PathBuf;

use crate::find::Searched;
use crate::mpi::Level;

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An MPI call returned an error code.
    #[error("{call}: {text} (MPI error {code}, class {class})")]
    Mpi {
        /// The call, `MPI_Send`.
        call: &'static str,
        /// What it returned.
        code: i32,
        /// The class that MPI gives for that code.
        class: i32,
        /// The text that MPI gives for that code.
        text: String,
    },

    /// This process was started by an MPI launcher whose library cannot be found.
    #[error("started by {launcher}, but its MPI library was not found; set FERRIER_MPI to its path, \
             or to `off` to run without MPI. Searched:{}", list(.searched))]
    NotFound {
        /// Who started this process.
        launcher: String,
        /// Where was looked.
        searched: Vec<Searched>,
    },

    /// `FERRIER_MPI` names something that is not there.
    #[error("FERRIER_MPI is `{value}`: {why}")]
    Override {
        /// What it was set to.
        value: String,
        /// What is wrong with it.
        why: String,
    },

    /// The library is there, but cannot be loaded or lacks a call.
    #[error("{}: {why}", .path.display())]
    Load {
        /// The library.
        path: PathBuf,
        /// What the loader said.
        why: String,
    },

    /// MPI has been finalized, by us or by the program around us.
    #[error("MPI has been finalized")]
    Finalized,

    /// [`Mpi::finalize`](crate::Mpi::finalize) while communicators, windows or requests are alive.
    #[error("MPI cannot be finalized: {0}")]
    InUse(String),

    /// A call from a thread that the thread level does not allow.
    #[error("MPI call from another thread than the one that initialised it; thread level is {level:?}")]
    WrongThread {
        /// The level that MPI granted.
        level: Level,
    },

    /// Another library was loaded before: a process has one MPI.
    #[error("{} is loaded already, {} cannot be", .loaded.display(), .asked.display())]
    SecondLibrary {
        /// The one in use.
        loaded: PathBuf,
        /// The one asked for.
        asked: PathBuf,
    },

    /// A call that this library, or this case, does not have.
    #[error("no {call}: {why}")]
    Missing {
        /// The call.
        call: &'static str,
        /// What is in the way.
        why: &'static str,
    },

    /// Arguments that no call could have: what was expected and what came.
    #[error("{0}")]
    Argument(String),

    /// Less shared memory than a window needs: writing to it would kill the process.
    #[error("a shared window of {needed} bytes does not fit into /dev/shm, which has {free} bytes left")]
    SharedMemory {
        /// Bytes of all ranks together.
        needed: u64,
        /// What is left.
        free: u64,
    },
}

fn list(searched: &[Searched]) -> String {
    searched.iter().map(|place| format!("\n  {place}")).collect()
}
