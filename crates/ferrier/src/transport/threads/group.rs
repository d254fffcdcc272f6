//! What the ranks of one process share: a barrier, a board for gathering,
//! slots for lent pointers, and a mailbox for each pair.
//!
//! Memory safety rests on two rules. A rank reads what another lent only
//! inside `touching`, which is not entered once the world has failed; and a
//! rank that lent something leaves the call only after a full barrier or, in
//! a failed world, after the number of ranks inside `touching` fell to zero.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

use super::super::waiting::Bell;
use super::super::{LENT, Lent, Part, Transport, Window, number_nodes};
use super::window::{Memories, Memory};
use crate::{Error, Result};

/// What all groups of one `run` share.
pub(super) struct World {
    failed: AtomicBool,
    cause: Mutex<Option<Error>>,
    gone: Vec<AtomicBool>,
    any_gone: AtomicBool,
    bell: Bell,
    whole: Mutex<Option<Arc<Group>>>,
}

impl World {
    /// A rank on each of these nodes.
    pub fn new(nodes: Vec<usize>) -> Arc<World> {
        let size = nodes.len();
        let world = Arc::new(World {
            failed: AtomicBool::new(false),
            cause: Mutex::new(None),
            gone: (0..size).map(|_| AtomicBool::new(false)).collect(),
            any_gone: AtomicBool::new(false),
            bell: Bell::default(),
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
    lent: Vec<[AtomicUsize; LENT]>,
    /// One for each pair, at `from * size + to`: the message on its way.
    mail: Vec<Mail>,
    splits: Mutex<HashMap<(usize, usize), Arc<Group>>>,
    /// Windows in the making, by number: what ranks have brought so far.
    windows: Mutex<HashMap<usize, Vec<Option<Arc<Memory>>>>>,
}

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

#[derive(Default)]
struct Mail {
    full: AtomicBool,
    data: AtomicUsize,
    len: AtomicUsize,
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
            mail: (0..size * size).map(|_| Mail::default()).collect(),
            splits: Mutex::default(),
            windows: Mutex::default(),
        })
    }
}

/// One rank's view of a group.
pub(super) struct Member {
    world: Arc<World>,
    group: Arc<Group>,
    rank: usize,
    splits: AtomicUsize,
    windows: AtomicUsize,
    /// Which parts of a call of `messages` have arrived.
    arrived: Mutex<Vec<bool>>,
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
        let arrived = Mutex::new(vec![false; group.members.len()]);
        let (splits, windows) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Member { world: world.clone(), group, rank, splits, windows, arrived }
    }

    /// The same rank, for something that outlives this handle.
    fn twin(&self) -> Member {
        Member::new(&self.world, self.group.clone(), self.rank)
    }

    /// Wakes those who wait.
    pub fn ring(&self) {
        self.world.bell.ring();
    }

    /// Waits for `done`; an error where the world has failed, or a member
    /// (by its number in the group) left that is still `awaited`.
    pub fn wait(&self, mut done: impl FnMut() -> bool, awaited: impl Fn(usize) -> bool) -> Result<()> {
        let world = &self.world;
        world.bell.wait_until(|| {
            if done() {
                return Some(Ok(()));
            }
            if world.failed.load(SeqCst) {
                return Some(Err(self.echo()));
            }
            if world.any_gone.load(SeqCst)
                && let Some(member) = (0..self.size()).find(|&member| self.is_gone(member) && awaited(member))
            {
                // It may have left just after what we wait for came true.
                if done() {
                    return Some(Ok(()));
                }
                let rank = self.group.members[member];
                let waiting = self.group.members[self.rank];
                let error =
                    Error::RankLeft { rank, waiting, message: "it returned before the others".into() };
                world.fail(error.clone());
                return Some(Err(error));
            }
            None
        })
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
            None => Error::Transport("the group failed".into()),
        }
    }

    /// The part of `from`'s published parts that is for this rank.
    ///
    /// # Safety
    /// Only inside `touching`, in a call of `all_to_allv` of all ranks: slot 0
    /// holds the address of the data, slots 1 and 2 length and address of the parts.
    unsafe fn part_for_me(&self, from: usize) -> Option<(*const u8, usize)> {
        let [data, len, parts] = self.group.lent[from].each_ref().map(|slot| slot.load(SeqCst));
        // SAFETY: `from` lent its slice of parts and holds it until everybody has been here.
        let parts = unsafe { std::slice::from_raw_parts(parts as *const Part, len) };
        parts.iter().find(|part| part.peer == self.rank).map(|part| ((data + part.at) as *const u8, part.len))
    }

    fn copy_part(&self, from: usize, recv: &mut [u8], part: &Part) -> Result<()> {
        // SAFETY: called inside `touching` only.
        match unsafe { self.part_for_me(from) } {
            Some((data, len)) if len == part.len => {
                let target = &mut recv[part.at..part.at + part.len];
                // SAFETY: the sender lent `len` bytes at `data` and nobody writes to them now.
                target.copy_from_slice(unsafe { std::slice::from_raw_parts(data, len) });
                Ok(())
            }
            other => Err(Error::Transport(format!(
                "rank {} waits for {} bytes from rank {from}, which sends {}",
                self.rank,
                part.len,
                other.map_or(0, |(_, len)| len)
            ))),
        }
    }

    /// Runs fallible work inside `touching`.
    fn touching_with(&self, mut work: impl FnMut() -> Result<()>) -> Result<()> {
        let mut outcome = Ok(());
        self.touching(&mut || outcome = work())?;
        outcome
    }
}

impl Transport for Member {
    fn name(&self) -> &'static str {
        "threads"
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

    fn all_to_all(&self, block: usize, send: &[u8], recv: &mut [u8]) -> Result<()> {
        let (size, rank) = (self.size(), self.rank);
        assert!(
            send.len() >= block * size && recv.len() >= block * size,
            "buffers hold a block for every rank"
        );
        self.group.lent[rank][0].store(send.as_ptr() as usize, SeqCst);
        let outcome = self.barrier().and_then(|()| {
            self.touching(&mut || {
                for from in (1..size).map(|shift| (rank + shift) % size) {
                    let data = (self.group.lent[from][0].load(SeqCst) + rank * block) as *const u8;
                    let target = &mut recv[from * block..(from + 1) * block];
                    // SAFETY: `from` lent at least `size` blocks and nobody writes to them now.
                    target.copy_from_slice(unsafe { std::slice::from_raw_parts(data, block) });
                }
            })
        });
        self.give_back().and(outcome)
    }

    fn all_to_allv(&self, send: &[u8], sent: &[Part], recv: &mut [u8], received: &[Part]) -> Result<()> {
        check_parts(send, sent);
        let own = [send.as_ptr() as usize, sent.len(), sent.as_ptr() as usize];
        for (slot, value) in self.group.lent[self.rank].iter().zip(own) {
            slot.store(value, SeqCst);
        }
        let outcome = self.barrier().and_then(|()| {
            self.touching_with(|| received.iter().try_for_each(|part| self.copy_part(part.peer, recv, part)))
        });
        if let Err(error) = &outcome {
            self.world.fail(error.clone());
        }
        self.give_back().and(outcome)
    }

    fn messages(&self, send: &[u8], sent: &[Part], recv: &mut [u8], received: &[Part]) -> Result<()> {
        check_parts(send, sent);
        let size = self.size();
        let mail = |from: usize, to: usize| &self.group.mail[from * size + to];
        for part in sent {
            let mail = mail(self.rank, part.peer);
            mail.data.store(send[part.at..].as_ptr() as usize, SeqCst);
            mail.len.store(part.len, SeqCst);
            mail.full.store(true, SeqCst);
        }
        self.world.bell.ring();
        let mut arrived = lock(&self.arrived);
        arrived.fill(false);
        let mut left = received.len();
        let mut outcome = Ok(());
        while left > 0 && outcome.is_ok() {
            let ready = |arrived: &[bool], part: &&Part| {
                !arrived[part.peer] && mail(part.peer, self.rank).full.load(SeqCst)
            };
            let owed = |peer: usize| received.iter().any(|part| part.peer == peer && !arrived[peer]);
            outcome = self.wait(|| received.iter().any(|part| ready(&arrived, &part)), owed);
            if outcome.is_err() {
                break;
            }
            for part in received {
                if !ready(&arrived, &part) {
                    continue;
                }
                outcome = outcome.and_then(|()| self.take(part, recv));
                arrived[part.peer] = true;
                left -= 1;
            }
        }
        if let Err(error) = &outcome {
            self.world.fail(error.clone());
        }
        let waiting = |peer: usize| mail(self.rank, peer).full.load(SeqCst);
        let sent_all = self.wait(|| !sent.iter().any(|part| waiting(part.peer)), waiting);
        if sent_all.is_err() {
            // Nobody enters `touching` any more; wait for who is inside.
            self.wait_until_outside();
        }
        outcome.and(sent_all)
    }

    fn lend(&self, own: Lent, all: &mut [Lent]) -> Result<bool> {
        for (slot, value) in self.group.lent[self.rank].iter().zip(own) {
            slot.store(value, SeqCst);
        }
        self.barrier()?;
        let nodes = &self.group.nodes;
        for ((lent, slots), node) in all.iter_mut().zip(&self.group.lent).zip(nodes) {
            // Those of other nodes are out of reach, if only because we say so.
            let near = *node == nodes[self.rank];
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
            self.world.fail(Error::RankPanicked { rank, message: crate::pool::panic_text(&**payload) });
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

    fn window(&self, bytes: usize, words: usize) -> Result<Box<dyn Window>> {
        let own = Memory::new(bytes, words)?;
        let number = self.windows.fetch_add(1, SeqCst);
        let size = self.size();
        lock(&self.group.windows).entry(number).or_insert_with(|| vec![None; size])[self.rank] = Some(own);
        self.barrier()?;
        let all = lock(&self.group.windows).get(&number).cloned().unwrap_or_default();
        self.barrier()?;
        lock(&self.group.windows).remove(&number);
        Ok(Box::new(Memories { member: self.twin(), all: all.into_iter().flatten().collect() }))
    }

    fn fail(&self, message: &str) {
        let rank = self.group.members[self.rank];
        self.world.fail(Error::RankLeft { rank, waiting: rank, message: message.into() });
    }
}

impl Member {
    fn wait_until_outside(&self) {
        while self.group.inside.load(SeqCst) > 0 {
            std::thread::yield_now();
        }
    }

    fn take(&self, part: &Part, recv: &mut [u8]) -> Result<()> {
        let mail = &self.group.mail[part.peer * self.size() + self.rank];
        let (data, len) = (mail.data.load(SeqCst) as *const u8, mail.len.load(SeqCst));
        if len != part.len {
            return Err(Error::Transport(format!(
                "rank {} waits for {} bytes from rank {}, which sends {len}",
                self.rank, part.len, part.peer
            )));
        }
        let target = &mut recv[part.at..part.at + part.len];
        // SAFETY: the sender keeps the message until `full` is cleared below or nobody is inside.
        self.touching(&mut || target.copy_from_slice(unsafe { std::slice::from_raw_parts(data, len) }))?;
        mail.full.store(false, SeqCst);
        self.world.bell.ring();
        Ok(())
    }
}

fn check_parts(buffer: &[u8], parts: &[Part]) {
    assert!(parts.iter().all(|part| part.at + part.len <= buffer.len()), "parts lie inside their buffer");
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
