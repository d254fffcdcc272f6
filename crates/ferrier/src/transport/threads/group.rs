//! What the ranks of one process share: a barrier, boards for gathering, and
//! slots for lent pointers.
//!
//! Memory safety rests on two rules. A rank reads what another lent or sends
//! only inside `touching`, which is not entered once the world has failed; and
//! a rank that lent something leaves the call only after a full barrier, one
//! that sent something only when all has been taken or, in a failed world,
//! both after the number of ranks inside `touching` fell to zero.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use super::super::waiting::Bell;
use super::super::{
    Call, EXPOSED, Exposed, NodeCounters, Part, Transfer, Transport, WakeHint, Window, number_nodes,
};
use super::node_counters::Counters;
use super::transfer::{Air, Side};
use super::window::{Memories, Memory};
use super::wire::{Links, Wire};
use crate::{Error, Result};

/// What all groups of one `run` share.
pub(super) struct World {
    failed: AtomicBool,
    cause: Mutex<Option<Error>>,
    gone: Vec<AtomicBool>,
    any_gone: AtomicBool,
    bell: Bell,
    links: Option<Links>,
    whole: Mutex<Option<Arc<Group>>>,
}

impl World {
    /// A rank on each of these nodes, and perhaps a wire between them.
    pub fn new(nodes: Vec<usize>, wire: Option<Wire>) -> Arc<World> {
        let size = nodes.len();
        let world = Arc::new(World {
            failed: AtomicBool::new(false),
            cause: Mutex::new(None),
            gone: (0..size).map(|_| AtomicBool::new(false)).collect(),
            any_gone: AtomicBool::new(false),
            bell: Bell::default(),
            links: wire.map(|wire| Links::new(wire, nodes.clone())),
            whole: Mutex::new(None),
        });
        *lock(&world.whole) = Some(Group::new((0..size).collect(), nodes));
        world
    }

    /// The first cause counts; later ones are its echoes.
    pub fn fail(&self, error: Error) {
        lock(&self.cause).get_or_insert(error);
        self.failed.store(true, SeqCst);
        self.bell.ring();
    }

    pub fn leave(&self, rank: usize) {
        self.gone[rank].store(true, SeqCst);
        self.any_gone.store(true, SeqCst);
        self.bell.ring();
    }
}

struct Group {
    members: Vec<usize>,
    nodes: Vec<usize>,
    all: Gate,
    /// One for each node.
    gates: Vec<Gate>,
    inside: AtomicUsize,
    board: Mutex<Vec<Vec<u8>>>,
    lent: Vec<[AtomicUsize; EXPOSED]>,
    splits: Mutex<HashMap<(usize, usize), Arc<Group>>>,
    /// Things in the making that ranks share, by number: what they have brought so far.
    shared: Mutex<HashMap<usize, Vec<Option<Thing>>>>,
}

type Thing = Arc<dyn Any + Send + Sync>;

/// Where ranks wait for each other.
struct Gate {
    size: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
}

impl Gate {
    fn new(size: usize) -> Gate {
        Gate { size, arrived: AtomicUsize::new(0), generation: AtomicUsize::new(0) }
    }
}

impl Group {
    fn new(members: Vec<usize>, nodes: Vec<usize>) -> Arc<Group> {
        let size = members.len();
        let on = |node: usize| nodes.iter().filter(|&&own| own == node).count();
        Arc::new(Group {
            all: Gate::new(size),
            gates: (0..=nodes.iter().copied().max().unwrap_or(0)).map(|node| Gate::new(on(node))).collect(),
            members,
            nodes,
            inside: AtomicUsize::new(0),
            board: Mutex::new(vec![Vec::new(); size]),
            lent: (0..size).map(|_| Default::default()).collect(),
            splits: Mutex::default(),
            shared: Mutex::default(),
        })
    }
}

/// One rank's view of a group.
pub(super) struct Member {
    world: Arc<World>,
    group: Arc<Group>,
    rank: usize,
    splits: AtomicUsize,
    /// Things that it has shared.
    shared: AtomicUsize,
}

impl Member {
    pub fn of_world(world: &Arc<World>, rank: usize) -> Arc<dyn Transport> {
        let group = lock(&world.whole).clone().expect("the world has a group");
        Member::join(world, group, rank)
    }

    fn join(world: &Arc<World>, group: Arc<Group>, rank: usize) -> Arc<dyn Transport> {
        Arc::new(Member::new(world, group, rank))
    }

    fn new(world: &Arc<World>, group: Arc<Group>, rank: usize) -> Member {
        let (splits, shared) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Member { world: world.clone(), group, rank, splits, shared }
    }

    /// The same rank, for something that outlives this handle.
    fn twin(&self) -> Member {
        Member::new(&self.world, self.group.clone(), self.rank)
    }

    /// What is between this rank and another: the links, and the numbers of
    /// the two there.
    pub fn link_to(&self, peer: usize) -> Option<(&Links, usize, usize)> {
        let (from, to) = (self.group.members[self.rank], self.group.members[peer]);
        self.world.links.as_ref().filter(|links| links.part(from, to)).map(|links| (links, from, to))
    }

    pub fn links(&self) -> Option<&Links> {
        self.world.links.as_ref()
    }

    /// Wakes those who wait.
    pub fn ring(&self) {
        self.world.bell.ring();
    }

    /// Waits for `done`; an error where the world has failed, or a member
    /// (by its number in the group) left that is still `awaited`.
    fn wait(&self, mut done: impl FnMut() -> bool, awaited: impl Fn(usize) -> bool) -> Result<()> {
        self.world.bell.wait_until(|| {
            if done() {
                return Some(Ok(()));
            }
            let error = self.check(&awaited).err()?;
            // It may have left just after what we wait for came true.
            if done() {
                return Some(Ok(()));
            }
            self.fail_with(&error);
            Some(Err(error))
        })
    }

    /// An error where the world has failed, or a member left that is `awaited`.
    pub fn check(&self, awaited: impl Fn(usize) -> bool) -> Result<()> {
        let world = &self.world;
        if world.failed.load(SeqCst) {
            return Err(self.echo());
        }
        if !world.any_gone.load(SeqCst) {
            return Ok(());
        }
        let Some(member) = (0..self.size()).find(|&member| self.is_gone(member) && awaited(member)) else {
            return Ok(());
        };
        let (rank, waiting) = (self.group.members[member], self.group.members[self.rank]);
        Err(Error::RankLeft { rank, waiting, message: "it returned before the others".into() })
    }

    /// Lets the world fail, if it has not: the first cause counts.
    pub fn fail_with(&self, error: &Error) {
        self.world.fail(error.clone());
    }

    /// Everybody's things, in order of rank. Collective.
    fn gather<T: Send + Sync + 'static>(&self, own: Arc<T>) -> Result<Vec<Arc<T>>> {
        let number = self.shared.fetch_add(1, SeqCst);
        let size = self.size();
        lock(&self.group.shared).entry(number).or_insert_with(|| vec![None; size])[self.rank] = Some(own);
        self.barrier()?;
        let all = lock(&self.group.shared).get(&number).cloned().unwrap_or_default();
        self.barrier()?;
        lock(&self.group.shared).remove(&number);
        let things: Vec<Arc<T>> = all.into_iter().filter_map(|thing| thing?.downcast::<T>().ok()).collect();
        match things.len() == size {
            true => Ok(things),
            false => Err(Error::transport("ranks make different things at once")),
        }
    }

    /// Returns when all `members` have come to the gate.
    fn pass(&self, gate: &Gate, members: impl Fn(usize) -> bool) -> Result<()> {
        if self.world.failed.load(SeqCst) {
            return Err(self.echo());
        }
        let generation = gate.generation.load(SeqCst);
        if gate.arrived.fetch_add(1, SeqCst) + 1 == gate.size {
            gate.arrived.store(0, SeqCst);
            gate.generation.store(generation.wrapping_add(1), SeqCst);
            self.world.bell.ring();
            return Ok(());
        }
        self.wait(|| gate.generation.load(SeqCst) != generation, members)
    }

    fn is_gone(&self, member: usize) -> bool {
        self.world.gone[self.group.members[member]].load(SeqCst)
    }

    fn echo(&self) -> Error {
        let cause = lock(&self.world.cause).clone();
        match cause {
            Some(Error::RankLeft { rank, message, .. }) => {
                Error::RankLeft { rank, waiting: self.group.members[self.rank], message }
            }
            Some(other) => other,
            None => Error::transport("the group failed"),
        }
    }
}

impl Transport for Member {
    fn name(&self) -> &'static str {
        "threads"
    }

    /// What is learned over a wire is of no use without it.
    fn version(&self) -> String {
        self.world.links.as_ref().map_or("threads".into(), |links| format!("threads over {}", links.wire()))
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.group.members.len()
    }

    fn barrier(&self) -> Result<()> {
        self.pass(&self.group.all, |_| true)
    }

    fn nodes(&self) -> &[usize] {
        &self.group.nodes
    }

    fn node_barrier(&self) -> Result<()> {
        let node = self.group.nodes[self.rank];
        self.pass(&self.group.gates[node], |member| self.group.nodes[member] == node)
    }

    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        lock(&self.group.board)[self.rank] = mine.to_vec();
        self.barrier()?;
        let all = lock(&self.group.board).clone();
        self.barrier()?;
        Ok(all)
    }

    fn split(&self, color: usize) -> Result<Arc<dyn Transport>> {
        let colors = self.all_gather(&color.to_le_bytes())?;
        let same: Vec<usize> = (0..self.size()).filter(|&rank| colors[rank] == color.to_le_bytes()).collect();
        let rank = same.iter().position(|&rank| rank == self.rank).expect("a rank is in its own group");
        let key = (self.splits.fetch_add(1, SeqCst), color);
        let members = same.iter().map(|&rank| self.group.members[rank]).collect();
        let nodes: Vec<u64> = same.iter().map(|&rank| self.group.nodes[rank] as u64).collect();
        let make = || Group::new(members, number_nodes(&nodes));
        let group = lock(&self.group.splits).entry(key).or_insert_with(make).clone();
        self.barrier()?;
        lock(&self.group.splits).remove(&key);
        Ok(Member::join(&self.world, group, rank))
    }

    fn flight(&self, _: Call, sent: &[Part], received: &[Part]) -> Result<Box<dyn Transfer>> {
        let sides = self.gather(Arc::new(Side::new(self, sent, received)))?;
        let air = Air::new(self.twin(), sides).inspect_err(|error| self.fail_with(error))?;
        Ok(Box::new(air))
    }

    /// Over a wire: what travels there takes none of the ranks' time.
    fn loan(&self, sent: &[Part], received: &[Part]) -> Result<Option<Box<dyn Transfer>>> {
        if self.world.links.is_none() {
            return Ok(None);
        }
        let sides = self.gather(Arc::new(Side::new(self, sent, received)))?;
        let air = Air::new(self.twin(), sides).inspect_err(|error| self.fail_with(error))?;
        Ok(Some(Box::new(air.in_place())))
    }

    fn tally(&self, counters: usize) -> Result<Box<dyn NodeCounters>> {
        let own: Vec<AtomicU64> = (0..counters).map(|_| AtomicU64::new(0)).collect();
        let all = self.gather(Arc::new(own))?;
        let (nodes, node) = (self.nodes(), self.nodes()[self.rank]);
        let first = (0..self.size()).find(|&rank| nodes[rank] == node).unwrap_or(self.rank);
        Ok(Box::new(Counters { member: self.twin(), all: all[first].clone() }))
    }

    fn nudge(&self) {
        self.world.bell.ring();
    }

    fn rest(&self, news: &mut dyn FnMut() -> WakeHint) {
        self.world.bell.wait_for(|| match news() {
            WakeHint::Now => Ok(()),
            WakeHint::At(time) if time <= Instant::now() => Ok(()),
            WakeHint::At(time) => Err(Some(time)),
            WakeHint::Nothing => Err(None),
        });
    }

    fn lend(&self, own: Exposed, all: &mut [Exposed]) -> Result<bool> {
        for (slot, value) in self.group.lent[self.rank].iter().zip(own) {
            slot.store(value, SeqCst);
        }
        self.barrier()?;
        let nodes = &self.group.nodes;
        for ((lent, slots), node) in all.iter_mut().zip(&self.group.lent).zip(nodes) {
            // Those of other nodes are out of reach, if only because we say so; but see `loan`.
            let near = *node == nodes[self.rank] || self.world.links.is_some();
            *lent = slots.each_ref().map(|slot| if near { slot.load(SeqCst) } else { 0 });
        }
        Ok(true)
    }

    fn touching(&self, work: &mut dyn FnMut()) -> Result<()> {
        let inside = &self.group.inside;
        inside.fetch_add(1, SeqCst);
        if self.world.failed.load(SeqCst) {
            inside.fetch_sub(1, SeqCst);
            return Err(self.echo());
        }
        let outcome = catch_unwind(AssertUnwindSafe(work));
        if let Err(payload) = &outcome {
            let rank = self.group.members[self.rank];
            self.world
                .fail(Error::RankPanicked { rank, message: crate::machine::pool::panic_text(&**payload) });
        }
        inside.fetch_sub(1, SeqCst);
        if let Err(payload) = outcome {
            // What this rank lent must outlive those who are still inside.
            self.wait_until_outside();
            resume_unwind(payload);
        }
        Ok(())
    }

    fn give_back(&self) -> Result<()> {
        let outcome = self.barrier();
        if outcome.is_err() {
            self.wait_until_outside();
        }
        outcome
    }

    fn window(&self, bytes: usize, words: usize, lanes: usize) -> Result<Box<dyn Window>> {
        let all = self.gather(Memory::new(bytes, words)?)?;
        Ok(Box::new(Memories::new(self.twin(), all, lanes)))
    }

    fn fail(&self, message: &str) {
        let rank = self.group.members[self.rank];
        self.world.fail(Error::RankLeft { rank, waiting: rank, message: message.into() });
    }
}

impl Member {
    /// Returns when nobody touches what others lent or sent.
    pub fn wait_until_outside(&self) {
        while self.group.inside.load(SeqCst) > 0 {
            std::thread::yield_now();
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
