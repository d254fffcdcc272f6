//! Thread levels.

/// Which threads may call MPI. Ask for the lowest level that suffices: some
/// libraries lose features above it (Open MPI 4.1 has no windows over TCP under
/// [`Level::Multiple`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The process has one thread.
    Single,
    /// Only the thread that initialised MPI calls it; calls of others return an error.
    Funneled,
    /// Any thread, one at a time. A lock is held for the length of each call, so a
    /// thread must not wait in MPI for a message that another thread of the same
    /// rank has yet to send.
    Serialized,
    /// Any thread at any time.
    Multiple,
}
