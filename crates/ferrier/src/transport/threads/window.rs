//! Windows of ranks that are threads. All ranks hold all memory, so that it
//! outlives a rank that has exited.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use super::wire::{Links, Ticket};
use super::world::ThreadRank;
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
    slots: Vec<Slot>,
}

/// The ticket of a slot for the simulated network, if there is one, and whether its last put uses it.
struct Slot {
    ticket: Option<Ticket>,
    in_use: AtomicBool,
}

impl ThreadWindow {
    pub fn new(rank: ThreadRank, memory: Vec<Arc<WindowMemory>>, slots: usize) -> ThreadWindow {
        let ticket = || rank.links().map(Links::ticket);
        let slot = |_| Slot { ticket: ticket(), in_use: AtomicBool::new(false) };
        ThreadWindow { memory, slots: (0..slots).map(slot).collect(), rank }
    }
}

impl Window for ThreadWindow {
    /// Copies at once; the target is told only when the put has arrived.
    unsafe fn put(&self, slot: usize, put: &Put) -> Result<()> {
        let target = self.memory[put.peer].address(put.offset, put.len)?;
        // SAFETY: inside the target's memory, which this window keeps alive. The exchange assigns every byte to one
        // source at a time, and the target reads it only after a signal.
        unsafe { target.copy_from(put.data, put.len) };
        let (slot, link) = (&self.slots[slot], self.rank.link_to(put.peer));
        slot.in_use.store(link.is_some(), Ordering::SeqCst);
        if let (Some((links, from, to)), Some(ticket)) = (link, &slot.ticket) {
            links.send(ticket, from, to, put.len, Instant::now());
        }
        Ok(())
    }

    fn has_arrived(&self, slot: usize) -> Result<bool> {
        Ok(self.wake_hint(slot) == WakeHint::Now)
    }

    fn wake_hint(&self, slot: usize) -> WakeHint {
        let Slot { ticket, in_use } = &self.slots[slot];
        match (self.rank.links(), ticket) {
            (Some(links), Some(ticket)) if in_use.load(Ordering::SeqCst) => {
                links.wake_hint(ticket, Instant::now())
            }
            _ => WakeHint::Now,
        }
    }

    fn signal(&self, peer: usize, word: usize, value: u64) -> Result<()> {
        self.memory[peer].words[word].store(value, Ordering::SeqCst);
        self.rank.notify_all();
        Ok(())
    }

    fn word(&self, word: usize) -> u64 {
        self.memory[self.rank.rank].words[word].load(Ordering::SeqCst)
    }

    fn bytes(&self, offset: usize, len: usize) -> Result<*mut u8> {
        self.memory[self.rank.rank].address(offset, len)
    }

    fn check(&self, awaited: &dyn Fn(usize) -> bool) -> Result<()> {
        self.rank.check(awaited)
    }
}
