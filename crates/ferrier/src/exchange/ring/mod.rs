//! Exchange `ring`: ranks send to one node after the other, beginning with the
//! node after their own, so that no two nodes send to the same node at once.
//! By one-sided puts or, where the transport has no windows, by messages.

mod one_sided;
mod shared_window;
mod spans;
mod steps;
mod two_sided;

use ferrier_plan::messages::Volumes;

use super::packets::PacketPolicy;
use super::progress_set::{self, Exchange};
use crate::Result;
use crate::transport::Comm;

pub(super) fn exchanges(comm: &Comm, all: &[Volumes], policy: PacketPolicy) -> Result<Vec<Exchange>> {
    let encodes = all.iter().any(|volumes| volumes.encoded.is_some());
    let chunk = match policy.bytes {
        Some(bytes) => bytes.max(1),
        None => shared_window::chunk_size(comm, encodes)?,
    };
    let comm = comm.duplicate()?;
    match comm.transport().has_windows()? {
        true => Ok(one_sided::exchanges(comm, all, policy, chunk)),
        false => {
            let specs = all.iter().map(|volumes| two_sided::specify(&comm, volumes));
            Ok(progress_set::exchanges(comm.transport(), specs.collect::<Result<Vec<_>>>()?))
        }
    }
}
