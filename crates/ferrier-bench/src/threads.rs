//! Threads of a benchmark's own checks.

/// The result of a thread; a panic is passed on.
pub fn joined<R>(thread: std::thread::ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
