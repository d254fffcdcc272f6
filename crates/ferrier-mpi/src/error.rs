//! One error type; a return code of MPI comes with MPI's own text.

use std::path::PathBuf;

use crate::level::Level;
use crate::searched::Searched;

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The errors of this crate.
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
        /// The launcher.
        launcher: String,
        /// The places searched.
        searched: Vec<Searched>,
    },

    /// `FERRIER_MPI` names no usable library.
    #[error("FERRIER_MPI is `{value}`: {why}")]
    Override {
        /// Its value.
        value: String,
        /// What is wrong with it.
        why: String,
    },

    /// The library exists, but cannot be loaded or lacks a call.
    #[error("{}: {why}", .path.display())]
    Load {
        /// The library.
        path: PathBuf,
        /// What the loader said.
        why: String,
    },

    /// A communicator was given, but no MPI library is loaded in this process.
    #[error("no MPI library is loaded in this process; link the program to one, or start MPI in it first")]
    NotLoaded,

    /// A communicator was given before the host program initialised MPI.
    #[error("MPI is not initialised; call MPI_Init or MPI_Init_thread first")]
    NotInitialised,

    /// MPI has been finalized, by this crate or by the host program.
    #[error("MPI has been finalized")]
    Finalized,

    /// [`Mpi::finalize`](crate::Mpi::finalize) while communicators, windows or requests are alive.
    #[error("MPI cannot be finalized: {0}")]
    InUse(String),

    /// A call from a thread that the thread level does not allow.
    #[error(
        "MPI was called from another thread than the one that initialised it; the thread level is {level:?}"
    )]
    WrongThread {
        /// The level that MPI granted.
        level: Level,
    },

    /// Another library was loaded before: a process has one MPI.
    #[error("{} is loaded already; {} cannot be loaded, too", .loaded.display(), .asked.display())]
    SecondLibrary {
        /// The one in use.
        loaded: PathBuf,
        /// The one asked for.
        asked: PathBuf,
    },

    /// Invalid arguments: what was expected and what was given.
    #[error("{0}")]
    Argument(String),
}

fn list(searched: &[Searched]) -> String {
    searched.iter().map(|place| format!("\n  {place}")).collect()
}
