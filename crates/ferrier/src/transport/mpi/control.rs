//! A plan's control block in shared memory: a barrier of the node's ranks,
//! and the addresses of the memory that each rank exposes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

use super::mapping::PAGE;
use super::node_shared::{NodeShared, RegionRef};
use crate::machine::waiting::Backoff;
use crate::transport::interface::{EXPOSED, Exposed};
use crate::{Error, Result};

/// The control block of a plan's communicator.
pub(super) struct Control {
    node_shared: Arc<NodeShared>,
    region: RegionRef,
}

/// In the part of the node's first rank.
#[repr(C, align(64))]
struct NodeBarrier {
    arrived: AtomicU32,
    sleepers: AtomicU32,
    /// On a cache line of its own, since ranks spin on it.
    generation: CacheLine,
}

#[repr(C, align(64))]
struct CacheLine(AtomicU32);

/// In the part of each rank.
#[repr(C, align(64))]
struct RankSlot {
    /// Region and offset of each exposed pointer.
    exposed: [[AtomicU64; 2]; EXPOSED],
    /// Its process id.
    process: AtomicU32,
}

/// A rank whose process has ended.
pub(super) struct ExitedRank(pub usize);

const SLOT_OFFSET: usize = 256;
/// No pointer is exposed.
const NOTHING: u64 = u64::MAX;
/// The pointer is to memory that others cannot access.
const PRIVATE: u64 = 0;

impl Control {
    /// Collective over `comm`.
    pub fn new(node_shared: &Arc<NodeShared>, comm: &ferrier_mpi::Comm) -> Result<Control> {
        let region = node_shared.region(comm, PAGE, "the control block of a plan")?;
        let control = Control { node_shared: node_shared.clone(), region };
        control.slot(node_shared.own()).process.store(std::process::id(), SeqCst);
        Ok(control)
    }

    fn node_barrier(&self) -> &NodeBarrier {
        // SAFETY: a page of its own, zero at first, aligned; only atomics in it.
        unsafe { self.region.part(0).cast::<NodeBarrier>().as_ref() }
    }

    fn slot(&self, rank: usize) -> &RankSlot {
        // SAFETY: as above, behind the barrier.
        unsafe { self.region.part(rank).add(SLOT_OFFSET).cast::<RankSlot>().as_ref() }
    }

    /// Returns when every rank of the node has called it, or the process of one has ended.
    pub fn barrier(&self) -> std::result::Result<(), ExitedRank> {
        let barrier = self.node_barrier();
        let generation = barrier.generation.0.load(SeqCst);
        if barrier.arrived.fetch_add(1, SeqCst) + 1 == self.node_shared.ranks.len() as u32 {
            barrier.arrived.store(0, SeqCst);
            barrier.generation.0.store(generation.wrapping_add(1), SeqCst);
            // Either a sleeper sees the new generation, or we see it sleeping.
            if barrier.sleepers.load(SeqCst) > 0 {
                wake(&barrier.generation.0);
            }
            return Ok(());
        }
        let mut backoff = Backoff::new();
        while barrier.generation.0.load(SeqCst) == generation {
            if backoff.pause() {
                // Ranks of other nodes may wait for messages of this one, and a simulator of MPI runs the other ranks of
                // this node only in calls.
                self.node_shared.make_progress();
                barrier.sleepers.fetch_add(1, SeqCst);
                sleep(&barrier.generation.0, generation);
                barrier.sleepers.fetch_sub(1, SeqCst);
                // Most launchers end the job when a process is killed; some do not.
                if let Some(exited) = self.exited_rank()
                    && barrier.generation.0.load(SeqCst) == generation
                {
                    return Err(ExitedRank(exited));
                }
            }
        }
        Ok(())
    }

    /// A rank of the node whose process does not exist any more.
    fn exited_rank(&self) -> Option<usize> {
        let ended = |number: &usize| match self.slot(*number).process.load(SeqCst) {
            // It has not stored its process id yet.
            0 => false,
            // SAFETY: signal 0 only asks whether the process exists.
            process => unsafe {
                libc::kill(process as libc::pid_t, 0) != 0
                    && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
            },
        };
        let ranks = &self.node_shared.ranks;
        (0..ranks.len()).find(ended).map(|number| ranks[number])
    }

    /// Publishes the regions and offsets of this rank's pointers; a barrier must follow.
    pub fn publish(&self, own: Exposed) {
        let mine = self.slot(self.node_shared.own());
        for (slot, address) in mine.exposed.iter().zip(own) {
            let (region, offset) = match address {
                0 => (NOTHING, 0),
                _ => self.node_shared.find(address).unwrap_or((PRIVATE, 0)),
            };
            slot[0].store(region, SeqCst);
            slot[1].store(offset as u64, SeqCst);
        }
    }

    /// The pointers that all ranks have published; see
    /// [`Transport::expose`](crate::transport::interface::Transport::expose).
    pub fn read(&self, all: &mut [Exposed]) -> Result<bool> {
        let node_shared = &self.node_shared;
        all.fill([0; EXPOSED]);
        let mut shared = true;
        for (number, &rank) in node_shared.ranks.iter().enumerate() {
            for (which, slot) in self.slot(number).exposed.iter().enumerate() {
                let (region, offset) = (slot[0].load(SeqCst), slot[1].load(SeqCst) as usize);
                all[rank][which] = match region {
                    NOTHING => 0,
                    PRIVATE if which + 1 < EXPOSED => {
                        shared = false;
                        0
                    }
                    PRIVATE => return Err(Error::array("workspace", rank, WORKSPACE, "another")),
                    _ => node_shared.address((region, offset), number).ok_or_else(|| {
                        Error::transport(format!("rank {rank} exposes memory that is not mapped here"))
                    })?,
                };
            }
        }
        Ok(shared)
    }
}

const WORKSPACE: &str = "one that `Plan::make_workspace` made, since the ranks of this plan share memory";

fn futex(word: &AtomicU32, operation: libc::c_int, value: u32, timeout: *const libc::timespec) {
    // SAFETY: a word that lives, in shared memory; the kernel only compares it.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, timeout, 0, 0) };
}

/// Sleeps while the word is `value`, for a limited time.
fn sleep(word: &AtomicU32, value: u32) {
    let timeout = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    futex(word, libc::FUTEX_WAIT, value, &timeout);
}

fn wake(word: &AtomicU32) {
    futex(word, libc::FUTEX_WAKE, i32::MAX as u32, std::ptr::null());
}
