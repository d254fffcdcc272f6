//! The cores that the ranks of a node may use together.

use ferrier_mpi::Comm;

use super::error::mpi_error;
use crate::Result;

const WORDS: usize = 16;

/// One bit for each core that this process may run on.
fn own_mask() -> [u64; WORDS] {
    let mut mask = [0; WORDS];
    // SAFETY: the mask is valid for its size, and the kernel writes at most that.
    let outcome = unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    if outcome != 0 {
        mask = [0; WORDS];
    }
    mask
}

/// Cores that at least one rank of the node may use; launchers often bind
/// each rank to its own. Collective over `node`.
pub(super) fn of_node(node: &Comm) -> Result<usize> {
    let mut all = vec![0; WORDS * node.size()];
    node.all_gather(&own_mask(), &mut all).map_err(mpi_error)?;
    let union = |word: usize| all.iter().skip(word).step_by(WORDS).fold(0_u64, |mask, other| mask | other);
    let cores = (0..WORDS).map(|word| union(word).count_ones() as usize).sum();
    Ok(if cores == 0 { crate::machine::cores() } else { cores })
}
