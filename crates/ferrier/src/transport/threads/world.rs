//! The state that the ranks of one process share: barriers, mailboxes for
//! gathering, and slots for exposed pointers.
//!
//! Memory safety rests on two rules. A rank reads memory that another exposes
//! or sends only inside `with_access`, which does not run its closure once the
//! world has failed. A rank that exposed memory returns from the call only
//! after a full barrier, and a rank that sent segments only when all were
//! copied; in a failed world both wait until no rank is inside `with_access`.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

use super::wire::{Links, Wire};
use crate::machine::waiting::Condition;
use crate::transport::interface::{EXPOSED, Transport};
use crate::{Error, Result};

/// State of all groups of one `run`.
pub(super) struct World {
    pub failed: AtomicBool,
    cause: Mutex<Option<Error>>,
    exited: Vec<AtomicBool>,
    any_exited: AtomicBool,
    pub condition: Condition,
    pub links: Option<Links>,
    whole: Mutex<Option<Arc<Group>>>,
}

impl World {
    /// `nodes` is the node of each rank; `wire` the simulated network between nodes.
    pub fn new(nodes: Vec<usize>, wire: Option<Wire>) -> Arc<World> {
        let size = nodes.len();
        let world = Arc::new(World {
            failed: AtomicBool::new(false),
            cause: Mutex::new(None),
            exited: (0..size).map(|_| AtomicBool::new(false)).collect(),
            any_exited: AtomicBool::new(false),
            condition: Condition::default(),
            links: wire.map(|wire| Links::new(wire, nodes.clone())),
            whole: Mutex::new(None),
        });
        *lock(&world.whole) = Some(Group::new((0..size).collect(), nodes));
        world
    }

    /// Records a failure; the first cause is kept.
    pub fn fail(&self, error: Error) {
        lock(&self.cause).get_or_insert(error);
        self.failed.store(true, SeqCst);
        self.condition.notify_all();
    }

    pub fn exit(&self, rank: usize) {
        self.exited[rank].store(true, SeqCst);
        self.any_exited.store(true, SeqCst);
        self.condition.notify_all();
    }
}

/// The shared state of a group of ranks.
pub(super) struct Group {
    /// The rank in the world of each rank of the group.
    pub world_ranks: Vec<usize>,
    pub nodes: Vec<usize>,
    pub barrier: BarrierState,
    /// One for each node.
    pub node_barriers: Vec<BarrierState>,
    /// Ranks inside `with_access`.
    pub accessing: AtomicUsize,
    /// What each rank gives to `all_gather`.
    pub gathered: Mutex<Vec<Vec<u8>>>,
    pub exposed: Vec<[AtomicUsize; EXPOSED]>,
    pub splits: Mutex<HashMap<(usize, usize), Arc<Group>>>,
    /// Objects of `gather_objects` calls in progress, by call number and rank.
    objects: Mutex<HashMap<usize, Vec<Option<Object>>>>,
}

type Object = Arc<dyn Any + Send + Sync>;

/// A barrier that can be used again and again.
pub(super) struct BarrierState {
    size: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
}

impl BarrierState {
    fn new(size: usize) -> BarrierState {
        BarrierState { size, arrived: AtomicUsize::new(0), generation: AtomicUsize::new(0) }
    }
}

impl Group {
    pub fn new(world_ranks: Vec<usize>, nodes: Vec<usize>) -> Arc<Group> {
        let size = world_ranks.len();
        let on = |node: usize| nodes.iter().filter(|&&own| own == node).count();
        let count = nodes.iter().copied().max().unwrap_or(0) + 1;
        Arc::new(Group {
            barrier: BarrierState::new(size),
            node_barriers: (0..count).map(|node| BarrierState::new(on(node))).collect(),
            world_ranks,
            nodes,
            accessing: AtomicUsize::new(0),
            gathered: Mutex::new(vec![Vec::new(); size]),
            exposed: (0..size).map(|_| Default::default()).collect(),
            splits: Mutex::default(),
            objects: Mutex::default(),
        })
    }
}

/// One rank's handle on a group.
pub(super) struct ThreadRank {
    pub world: Arc<World>,
    pub group: Arc<Group>,
    pub rank: usize,
    /// Calls of `split` so far.
    pub splits: AtomicUsize,
    /// Calls of `gather_objects` so far.
    gathers: AtomicUsize,
}

impl ThreadRank {
    pub fn of_world(world: &Arc<World>, rank: usize) -> Arc<ThreadRank> {
        let group = lock(&world.whole).clone().expect("the world has a group");
        Arc::new(ThreadRank::new(world, group, rank))
    }

    pub fn new(world: &Arc<World>, group: Arc<Group>, rank: usize) -> ThreadRank {
        let (splits, gathers) = (AtomicUsize::new(0), AtomicUsize::new(0));
        ThreadRank { world: world.clone(), group, rank, splits, gathers }
    }

    /// Another handle on the same rank, for an object that outlives this one.
    pub fn handle(&self) -> ThreadRank {
        ThreadRank::new(&self.world, self.group.clone(), self.rank)
    }

    /// The simulated links between this rank and another, and the ranks of the two in the world; `None` where
    /// they share a node.
    pub fn link_to(&self, peer: usize) -> Option<(&Links, usize, usize)> {
        let (from, to) = (self.group.world_ranks[self.rank], self.group.world_ranks[peer]);
        self.world.links.as_ref().filter(|links| links.connect(from, to)).map(|links| (links, from, to))
    }

    pub fn links(&self) -> Option<&Links> {
        self.world.links.as_ref()
    }

    /// Wakes all waiting ranks.
    pub fn notify_all(&self) {
        self.world.condition.notify_all();
    }

    /// Waits for `done`; an error where the world has failed, or a rank of the group exited that is `awaited`.
    fn wait(&self, mut done: impl FnMut() -> bool, awaited: impl Fn(usize) -> bool) -> Result<()> {
        self.world.condition.wait_until(|| {
            if done() {
                return Some(Ok(()));
            }
            let error = self.check(&awaited).err()?;
            // It may have exited just after the condition became true.
            if done() {
                return Some(Ok(()));
            }
            self.fail_with(&error);
            Some(Err(error))
        })
    }

    /// An error where the world has failed, or a rank of the group exited that is `awaited`.
    pub fn check(&self, awaited: impl Fn(usize) -> bool) -> Result<()> {
        let world = &self.world;
        if world.failed.load(SeqCst) {
            return Err(self.failure());
        }
        if !world.any_exited.load(SeqCst) {
            return Ok(());
        }
        let exited = |rank: usize| world.exited[self.group.world_ranks[rank]].load(SeqCst);
        let Some(rank) = (0..self.size()).find(|&rank| exited(rank) && awaited(rank)) else {
            return Ok(());
        };
        let (rank, waiting) = (self.group.world_ranks[rank], self.group.world_ranks[self.rank]);
        Err(Error::RankLeft { rank, waiting, message: "it returned before the others".into() })
    }

    /// Records a failure of the world; the first cause is kept.
    pub fn fail_with(&self, error: &Error) {
        self.world.fail(error.clone());
    }

    /// The failure of the world, as this rank reports it.
    pub fn failure(&self) -> Error {
        let cause = lock(&self.world.cause).clone();
        match cause {
            Some(Error::RankLeft { rank, message, .. }) => {
                Error::RankLeft { rank, waiting: self.group.world_ranks[self.rank], message }
            }
            Some(other) => other,
            None => Error::transport("the group failed"),
        }
    }

    /// The objects of all ranks, in order of rank. Collective.
    pub fn gather_objects<T: Send + Sync + 'static>(&self, own: Arc<T>) -> Result<Vec<Arc<T>>> {
        let number = self.gathers.fetch_add(1, SeqCst);
        let size = self.size();
        lock(&self.group.objects).entry(number).or_insert_with(|| vec![None; size])[self.rank] = Some(own);
        self.barrier()?;
        let all = lock(&self.group.objects).get(&number).cloned().unwrap_or_default();
        self.barrier()?;
        lock(&self.group.objects).remove(&number);
        let objects: Vec<Arc<T>> =
            all.into_iter().filter_map(|object| object?.downcast::<T>().ok()).collect();
        match objects.len() == size {
            true => Ok(objects),
            false => Err(Error::transport("ranks made different collective calls")),
        }
    }

    /// Returns when all ranks of the barrier, for which `awaited` is true, have called it.
    pub fn wait_at(&self, barrier: &BarrierState, awaited: impl Fn(usize) -> bool) -> Result<()> {
        if self.world.failed.load(SeqCst) {
            return Err(self.failure());
        }
        let generation = barrier.generation.load(SeqCst);
        if barrier.arrived.fetch_add(1, SeqCst) + 1 == barrier.size {
            barrier.arrived.store(0, SeqCst);
            barrier.generation.store(generation.wrapping_add(1), SeqCst);
            self.notify_all();
            return Ok(());
        }
        self.wait(|| barrier.generation.load(SeqCst) != generation, awaited)
    }

    /// Returns when no rank is inside `with_access`. After a failure no rank enters it again.
    pub fn wait_for_accesses(&self) {
        while self.group.accessing.load(SeqCst) > 0 {
            std::thread::yield_now();
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
