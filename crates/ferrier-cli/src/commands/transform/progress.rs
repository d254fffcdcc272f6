//! What the progress bar shows.

use ferrier::Comm;
use indicatif::ProgressBar;

/// Shows what is going on, on rank 0.
pub fn stage(comm: &Comm, bar: &ProgressBar, message: &'static str) {
    if comm.rank() == 0 {
        bar.set_message(message);
    }
}
