//! Events that the ranks of a process share.

use std::sync::Arc;

use super::gpu::Gpu;
use super::memory::Event;
use crate::{Comm, Result};

/// Collects the events of all ranks and enables access to their GPUs' memory. Collective.
///
/// A rank may drop its plan while another one has still to wait for its last event: so all ranks hold references to
/// the events.
pub(crate) fn share_marks(comm: &Comm, gpu: &Gpu, marks: &Arc<[Event; 2]>) -> Result<Vec<Arc<[Event; 2]>>> {
    let start = Arc::as_ptr(marks);
    for _ in 1..comm.size() {
        // SAFETY: the events live; every other rank takes one of these counts below (where the group fails first,
        // they are leaked).
        unsafe { Arc::increment_strong_count(start) };
    }
    let own: Vec<u8> = [start as usize, gpu.index()].iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut peers = Vec::with_capacity(comm.size());
    for (peer, theirs) in comm.all_gather(&own)?.iter().enumerate() {
        let words: Vec<usize> =
            theirs.as_chunks::<8>().0.iter().map(|word| usize::from_le_bytes(*word)).collect();
        peers.push(match peer == comm.rank() {
            true => marks.clone(),
            // SAFETY: a rank of this process, which has counted this reference above.
            false => unsafe { Arc::from_raw(words[0] as *const [Event; 2]) },
        });
        gpu.reach(words[1])?;
    }
    Ok(peers)
}
