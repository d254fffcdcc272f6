//! The window that the exchanges of a plan share.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use ferrier_plan::messages::{BufferLayout, Volumes, packed};
use ferrier_plan::ring::packet_bytes;

use crate::transport::{Comm, Window};
use crate::{Error, Result};

/// State that the exchanges of a plan share.
pub(super) struct RingWindow {
    pub comm: Comm,
    /// Bytes of this rank's window.
    pub bytes: usize,
    exchanges: usize,
    /// Packets in flight at once.
    pub depth: usize,
    window: OnceLock<Box<dyn Window>>,
    /// The reshape that owns the window.
    owner: Mutex<WindowOwner>,
}

/// Exchanges of one reshape have separate ranges of the window; those of different reshapes share it, one reshape
/// after the other.
#[derive(Default)]
pub(super) struct WindowOwner {
    pub reshape: usize,
    /// Its exchanges that use the window.
    pub users: usize,
}

impl WindowOwner {
    pub fn admits(&self, reshape: usize) -> bool {
        self.users == 0 || self.reshape == reshape
    }
}

impl RingWindow {
    /// `comm` belongs to the `exchanges` alone.
    pub fn new(comm: Comm, bytes: usize, exchanges: usize, depth: usize) -> RingWindow {
        RingWindow { comm, bytes, exchanges, depth, window: OnceLock::new(), owner: Mutex::default() }
    }

    /// Allocates the window, if that was not done. Collective.
    pub fn open(&self) -> Result<()> {
        if self.window.get().is_none() {
            let words = self.exchanges * 2 * self.comm.size();
            let window = self.comm.transport().window(self.bytes, words, self.exchanges * self.depth)?;
            let _ = self.window.set(window);
        }
        Ok(())
    }

    pub fn window(&self) -> Result<&dyn Window> {
        let window = self.window.get().map(|window| &**window);
        window.ok_or_else(|| Error::transport("the window of exchange ring was not opened"))
    }

    pub fn owner(&self) -> MutexGuard<'_, WindowOwner> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The word in which a source counts the packets of an exchange that have arrived.
    pub fn count_word(&self, exchange: usize, rank: usize) -> usize {
        exchange * 2 * self.comm.size() + rank
    }

    /// The word in which a target signals that its window is free for an exchange.
    pub fn ready_word(&self, exchange: usize, rank: usize) -> usize {
        self.count_word(exchange, rank) + self.comm.size()
    }
}

/// Where the range of each exchange begins in the windows of `rank` and of the ranks that it sends to, and the length
/// of its own window.
pub(super) fn window_ranges(all: &[Volumes], rank: usize, size: usize) -> (Vec<Vec<usize>>, usize) {
    let is_target = |peer: &usize| *peer == rank || all.iter().any(|volumes| volumes.to[*peer] > 0);
    let targets: Vec<usize> = (0..size).filter(is_target).collect();
    let mut end = 0;
    let mut used = vec![vec![0; size]; all.iter().map(|volumes| volumes.reshape + 1).max().unwrap_or(0)];
    let mut starts = Vec::with_capacity(all.len());
    for volumes in all {
        let used = &mut used[volumes.reshape];
        starts.push(used.clone());
        for &target in &targets {
            used[target] += volumes.table.column(target).iter().map(|(_, len)| aligned(*len)).sum::<usize>();
        }
        end = end.max(used[rank]);
    }
    (starts, end)
}

/// Where the segment of `rank` lies in the range of another rank's window.
pub(super) fn window_offset(volumes: &Volumes, target: usize, rank: usize) -> usize {
    let column = volumes.table.column(target);
    column.iter().take_while(|(source, _)| *source < rank).map(|(_, len)| aligned(*len)).sum()
}

fn aligned(len: usize) -> usize {
    len.next_multiple_of(64)
}

/// Rank 0's setting, on every rank. Collective.
pub(super) fn chunk_size(comm: &Comm, encodes: bool) -> Result<usize> {
    let usual = packet_bytes(encodes);
    let asked = std::env::var("FERRIER_RING_CHUNK").ok().and_then(|text| text.parse().ok());
    let own: u64 = asked.unwrap_or(usual as u64).max(1);
    let all = comm.all_gather(&own.to_le_bytes())?;
    Ok(all[0].as_slice().try_into().map_or(usual, |bytes| u64::from_le_bytes(bytes) as usize))
}

/// Where the segment of each rank lies in a range of the window.
pub(super) fn window_layout(from: &[usize]) -> BufferLayout {
    packed(&from.iter().map(|&len| aligned(len)).collect::<Vec<_>>())
}
