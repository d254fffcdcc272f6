//! Exchange `ring`: ranks send to one node after the other, beginning with the
//! node after their own, so that no two nodes send to the same node at once.
//! By one-sided puts or, where the transport has no windows, by messages.

mod one_sided;
mod shared_window;
mod steps;
mod two_sided;

use ferrier_plan::messages::Volumes;

use super::progress_set::{self, Exchange};
use crate::Result;
use crate::transport::Comm;

pub(super) fn exchanges(comm: &Comm, all: &[Volumes]) -> Result<Vec<Exchange>> {
    let chunk = shared_window::chunk_size(comm)?;
    let comm = comm.duplicate()?;
    match comm.transport().has_windows()? {
        true => Ok(one_sided::exchanges(comm, all, chunk)),
        false => {
            let specs = all.iter().map(|volumes| two_sided::specify(&comm, volumes));
            Ok(progress_set::exchanges(comm.transport(), specs.collect::<Result<Vec<_>>>()?))
        }
    }
}
