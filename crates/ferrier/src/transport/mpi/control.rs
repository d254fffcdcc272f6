//! What the ranks of a node tell each other in shared memory: that they have
//! come to a barrier, and where the arrays lie that they lend.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

use super::mapping::PAGE;
use super::node_shared::{NodeShared, RegionRef};
use crate::transport::{Backoff, EXPOSED, Exposed};
use crate::{Error, Result};

/// The page of a plan's communicator.
pub(super) struct Control {
    house: Arc<NodeShared>,
    held: RegionRef,
}

/// In the part of the node's first rank.
#[repr(C, align(64))]
struct Gate {
    arrived: AtomicU32,
    sleepers: AtomicU32,
    /// On a line of its own: this is what ranks spin on.
    generation: Line,
}

#[repr(C, align(64))]
struct Line(AtomicU32);

/// In the part of each rank.
#[repr(C, align(64))]
struct Board {
    /// Region and place of what it lends.
    lent: [[AtomicU64; 2]; EXPOSED],
    /// Its number as a process.
    process: AtomicU32,
}

/// A rank whose process has ended.
pub(super) struct Gone(pub usize);

const BOARD_AT: usize = 256;
/// Nothing is lent.
const NOTHING: u64 = u64::MAX;
/// Lent is what others cannot reach.
const PRIVATE: u64 = 0;

impl Control {
    /// Collective over `comm`.
    pub fn new(house: &Arc<NodeShared>, comm: &ferrier_mpi::Comm) -> Result<Control> {
        let held = house.region(comm, PAGE, "the control block of a plan")?;
        let control = Control { house: house.clone(), held };
        control.board(house.own()).process.store(std::process::id(), SeqCst);
        Ok(control)
    }

    fn gate(&self) -> &Gate {
        // SAFETY: a page of its own, zero at first, aligned; only atomics in it.
        unsafe { self.held.region.part(0).cast::<Gate>().as_ref() }
    }

    fn board(&self, rank: usize) -> &Board {
        // SAFETY: as above, beyond the gate.
        unsafe { self.held.region.part(rank).add(BOARD_AT).cast::<Board>().as_ref() }
    }

    /// Returns when every rank of the node has come here, or one never will.
    pub fn barrier(&self) -> std::result::Result<(), Gone> {
        let gate = self.gate();
        let generation = gate.generation.0.load(SeqCst);
        if gate.arrived.fetch_add(1, SeqCst) + 1 == self.house.near.len() as u32 {
            gate.arrived.store(0, SeqCst);
            gate.generation.0.store(generation.wrapping_add(1), SeqCst);
            // Either a sleeper sees the new generation, or we see it sleeping.
            if gate.sleepers.load(SeqCst) > 0 {
                wake(&gate.generation.0);
            }
            return Ok(());
        }
        let mut backoff = Backoff::new();
        while gate.generation.0.load(SeqCst) == generation {
            if backoff.pause() {
                gate.sleepers.fetch_add(1, SeqCst);
                sleep(&gate.generation.0, generation);
                gate.sleepers.fetch_sub(1, SeqCst);
                // Most launchers end the job when a process is killed; some do not.
                if let Some(gone) = self.gone()
                    && gate.generation.0.load(SeqCst) == generation
                {
                    return Err(Gone(gone));
                }
            }
        }
        Ok(())
    }

    /// A rank of the node whose process is no more.
    fn gone(&self) -> Option<usize> {
        let ended = |number: &usize| match self.board(*number).process.load(SeqCst) {
            // It has not come here yet.
            0 => false,
            // SAFETY: asks whether there is such a process, and sends nothing.
            process => unsafe {
                libc::kill(process as libc::pid_t, 0) != 0
                    && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
            },
        };
        (0..self.house.near.len()).find(ended).map(|number| self.house.near[number])
    }

    /// Says where lies what this rank lends; to be followed by a barrier.
    pub fn post(&self, own: Exposed) {
        let mine = self.board(self.house.own());
        for (slot, address) in mine.lent.iter().zip(own) {
            let (region, at) = match address {
                0 => (NOTHING, 0),
                _ => self.house.find(address).unwrap_or((PRIVATE, 0)),
            };
            slot[0].store(region, SeqCst);
            slot[1].store(at as u64, SeqCst);
        }
    }

    /// What all have posted; see [`Transport::lend`](crate::transport::Transport::lend).
    pub fn read(&self, all: &mut [Exposed]) -> Result<bool> {
        let house = &self.house;
        all.fill([0; EXPOSED]);
        let mut shared = true;
        for (number, &rank) in house.near.iter().enumerate() {
            for (which, slot) in self.board(number).lent.iter().enumerate() {
                let place = (slot[0].load(SeqCst), slot[1].load(SeqCst) as usize);
                all[rank][which] = match place.0 {
                    NOTHING => 0,
                    PRIVATE if which + 1 < EXPOSED => {
                        shared = false;
                        0
                    }
                    PRIVATE => return Err(Error::array("workspace", rank, WORKSPACE, "another")),
                    _ => house.reach(place, number).ok_or_else(|| {
                        Error::transport(format!("rank {rank} lends memory that is not known here"))
                    })?,
                };
            }
        }
        Ok(shared)
    }
}

const WORKSPACE: &str = "one that `Plan::make_workspace` made, since the ranks of this plan share memory";

fn futex(word: &AtomicU32, operation: libc::c_int, value: u32, patience: *const libc::timespec) {
    // SAFETY: a word that lives, in shared memory; the kernel only compares it.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, patience, 0, 0) };
}

/// Sleeps while the word is `value`; now and then wakes to look.
fn sleep(word: &AtomicU32, value: u32) {
    let patience = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    futex(word, libc::FUTEX_WAIT, value, &patience);
}

fn wake(word: &AtomicU32) {
    futex(word, libc::FUTEX_WAKE, i32::MAX as u32, std::ptr::null());
}
