//! Windows of ranks that are threads. All ranks hold all memory, so that it
//! outlives a rank that has exited.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::world::{ThreadRank, lock};
use crate::machine::buffer::Buffer;
use crate::transport::transfer::WakeHint;
use crate::transport::window::{Put, Window};
use crate::{Error, Result};

/// One rank's bytes and words.
pub(super) struct WindowMemory {
    bytes: Buffer<f64>,
    words: Vec<AtomicU64>,
}

impl WindowMemory {
    pub fn new(bytes: usize, words: usize) -> Result<Arc<WindowMemory>> {
        let bytes = Buffer::new(bytes.div_ceil(size_of::<f64>()), "the window of an exchange")?;
        Ok(Arc::new(WindowMemory { bytes, words: (0..words).map(|_| AtomicU64::new(0)).collect() }))
    }

    /// The address of `len` bytes at `offset`.
    fn address(&self, offset: usize, len: usize) -> Result<*mut u8> {
        let have = self.bytes.len() * size_of::<f64>();
        if offset.checked_add(len).is_none_or(|end| end > have) {
            return Err(Error::transport(format!(
                "{len} bytes at offset {offset} exceed a window of {have} bytes"
            )));
        }
        Ok(self.bytes.as_ptr().cast::<u8>().wrapping_add(offset))
    }
}

/// The window of a group: one rank's handle.
pub(super) struct ThreadWindow {
    rank: ThreadRank,
    memory: Vec<Arc<WindowMemory>>,
    lanes: Vec<Mutex<Lane>>,
}

/// Puts of a lane that need no allocation.
const PREPARED_PUTS: usize = 4;

/// Tickets of a lane for the simulated network, if there is one, and how many are in use.
struct Lane {
    tickets: Vec<usize>,
    used: usize,
}

impl ThreadWindow {
    pub fn new(rank: ThreadRank, memory: Vec<Arc<WindowMemory>>, lanes: usize) -> ThreadWindow {
        let tickets = || rank.links().map(|links| (0..PREPARED_PUTS).map(|_| links.ticket()).collect());
        let lane = |_| Mutex::new(Lane { tickets: tickets().unwrap_or_default(), used: 0 });
        ThreadWindow { memory, lanes: (0..lanes).map(lane).collect(), rank }
    }

    /// Accounts for a put over the simulated network, if there is one between the two ranks.
    fn send(&self, lane: &mut Lane, put: &Put) {
        let Some((links, from, to)) = self.rank.link_to(put.peer) else { return };
        if lane.used == lane.tickets.len() {
            lane.tickets.push(links.ticket());
        }
        links.send(lane.tickets[lane.used], from, to, put.len, Instant::now());
        lane.used += 1;
    }
}

impl Window for ThreadWindow {
    /// Copies at once; the target is told only when the put is complete.
    unsafe fn put(&self, lane: usize, puts: &[Put]) -> Result<()> {
        let mut lane = lock(&self.lanes[lane]);
        lane.used = 0;
        for put in puts {
            let target = self.memory[put.peer].address(put.offset, put.len)?;
            // SAFETY: inside the target's memory, which this window keeps alive. The exchange assigns every byte
            // to one source at a time, and the target reads it only after a signal.
            unsafe { target.copy_from(put.data, put.len) };
            self.send(&mut lane, put);
        }
        Ok(())
    }

    fn puts_complete(&self, lane: usize) -> Result<bool> {
        Ok(self.wake_hint(lane) == WakeHint::Now)
    }

    fn wake_hint(&self, lane: usize) -> WakeHint {
        let lane = lock(&self.lanes[lane]);
        let now = Instant::now();
        let arrival =
            |ticket: &usize| self.rank.links().map_or(WakeHint::Now, |links| links.wake_hint(*ticket, now));
        lane.tickets[..lane.used].iter().map(arrival).max().unwrap_or(WakeHint::Now)
    }

    fn signal(&self, peer: usize, word: usize, value: u64) -> Result<()> {
        self.memory[peer].words[word].store(value, Ordering::SeqCst);
        self.rank.notify_all();
        Ok(())
    }

    fn word(&self, word: usize) -> u64 {
        self.memory[self.rank.rank].words[word].load(Ordering::SeqCst)
    }

    fn read(&self, offset: usize, into: &mut [u8]) -> Result<()> {
        let source = self.memory[self.rank.rank].address(offset, into.len())?;
        // SAFETY: inside this rank's memory; the source has signalled that the put is complete.
        unsafe { into.as_mut_ptr().copy_from(source, into.len()) };
        Ok(())
    }

    fn check(&self, awaited: &dyn Fn(usize) -> bool) -> Result<()> {
        self.rank.check(awaited)
    }
}
