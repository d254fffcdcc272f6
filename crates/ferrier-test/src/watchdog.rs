//! Turns a test that hangs into a failure.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Ends the process unless it is dropped in time.
#[derive(Debug)]
pub struct Watchdog {
    _alive: Sender<()>,
}

/// Starts a watchdog: unless it is dropped within `seconds`, it prints a message
/// and ends the test process with a failure (a thread that hangs cannot be
/// stopped from outside).
#[must_use = "the watchdog watches until it is dropped"]
pub fn watchdog(seconds: u64) -> Watchdog {
    let (alive, gone) = channel::<()>();
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    std::thread::Builder::new()
        .name("watchdog".into())
        .spawn(move || {
            if gone.recv_timeout(Duration::from_secs(seconds)) == Err(RecvTimeoutError::Timeout) {
                // Not `eprintln`: the test runner captures it, and the process ends before it is shown.
                let _ = writeln!(
                    std::io::stderr(),
                    "watchdog: `{name}` still runs after {seconds} s; ending the process"
                );
                std::process::exit(101);
            }
        })
        .expect("a thread for the watchdog");
    Watchdog { _alive: alive }
}
