//! Windows of ranks that are threads: memory that all of them hold, so that
//! it outlives a rank that is gone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::super::{Put, Transport, WakeHint, Window};
use super::group::{Member, lock};
use crate::machine::buffer::Buffer;
use crate::{Error, Result};

/// One rank's bytes and words.
pub(super) struct Memory {
    bytes: Buffer<f64>,
    words: Vec<AtomicU64>,
}

impl Memory {
    pub fn new(bytes: usize, words: usize) -> Result<Arc<Memory>> {
        let bytes = Buffer::new(bytes.div_ceil(size_of::<f64>()), "the window of an exchange")?;
        Ok(Arc::new(Memory { bytes, words: (0..words).map(|_| AtomicU64::new(0)).collect() }))
    }

    /// Where `len` bytes at `at` lie.
    fn reach(&self, at: usize, len: usize) -> Result<*mut u8> {
        let have = self.bytes.len() * size_of::<f64>();
        if at.checked_add(len).is_none_or(|end| end > have) {
            return Err(Error::transport(format!("{len} bytes at {at} of a window of {have}")));
        }
        Ok(self.bytes.as_ptr().cast::<u8>().wrapping_add(at))
    }
}

/// All ranks' windows, as one of them sees them.
pub(super) struct Memories {
    member: Member,
    all: Vec<Arc<Memory>>,
    lanes: Vec<Mutex<Lane>>,
}

/// Puts of a lane that need no allocation.
const AT_ONCE: usize = 4;

/// Tickets for the wire, if there is one, and how many of them are in use.
struct Lane {
    tickets: Vec<usize>,
    used: usize,
}

impl Memories {
    pub fn new(member: Member, all: Vec<Arc<Memory>>, lanes: usize) -> Memories {
        let tickets = || member.links().map(|links| (0..AT_ONCE).map(|_| links.ticket()).collect());
        let lane = |_| Mutex::new(Lane { tickets: tickets().unwrap_or_default(), used: 0 });
        Memories { all, lanes: (0..lanes).map(lane).collect(), member }
    }

    /// Sends a put over the wire, if there is one between the two.
    fn send(&self, lane: &mut Lane, put: &Put) {
        let Some((links, from, to)) = self.member.link_to(put.peer) else { return };
        if lane.used == lane.tickets.len() {
            lane.tickets.push(links.ticket());
        }
        links.send(lane.tickets[lane.used], from, to, put.len, Instant::now());
        lane.used += 1;
    }
}

impl Window for Memories {
    /// The bytes are there at once, but their owner is not told before they have landed.
    unsafe fn put(&self, lane: usize, puts: &[Put]) -> Result<()> {
        let mut lane = lock(&self.lanes[lane]);
        lane.used = 0;
        for put in puts {
            let target = self.all[put.peer].reach(put.at, put.len)?;
            // SAFETY: inside the target's memory, which is held here. The exchange
            // lets one rank at a time write there, and its owner read only when told.
            unsafe { target.copy_from(put.data, put.len) };
            self.send(&mut lane, put);
        }
        Ok(())
    }

    fn landed(&self, lane: usize) -> Result<bool> {
        Ok(self.landing(lane) == WakeHint::Now)
    }

    fn landing(&self, lane: usize) -> WakeHint {
        let lane = lock(&self.lanes[lane]);
        let now = Instant::now();
        let due =
            |ticket: &usize| self.member.links().map_or(WakeHint::Now, |links| links.news(*ticket, now));
        lane.tickets[..lane.used].iter().map(due).max().unwrap_or(WakeHint::Now)
    }

    fn signal(&self, peer: usize, word: usize, value: u64) -> Result<()> {
        self.all[peer].words[word].store(value, Ordering::SeqCst);
        self.member.ring();
        Ok(())
    }

    fn word(&self, word: usize) -> u64 {
        self.all[self.member.rank()].words[word].load(Ordering::SeqCst)
    }

    fn take(&self, at: usize, into: &mut [u8]) -> Result<()> {
        let source = self.all[self.member.rank()].reach(at, into.len())?;
        // SAFETY: inside our own memory; who put it there has told us that it is done.
        unsafe { into.as_mut_ptr().copy_from(source, into.len()) };
        Ok(())
    }

    fn check(&self, owed: &dyn Fn(usize) -> bool) -> Result<()> {
        self.member.check(owed)
    }
}
