//! Flights between ranks that are threads. A sender posts where its parts
//! lie; each receiver copies its part when it looks and finds it; the sender
//! is done when all of its parts were taken.
//!
//! A flight has a post for each pair of ranks, and a rank starts the next
//! round only when all its posts of the last were taken: so a post is never
//! written to before it was read.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::super::{Part, Transfer, Transport, WakeHint};
use super::group::{Member, lock};
use crate::{Error, Result};

/// One rank's parts of a flight, and its posts, one for each part sent.
pub(super) struct Side {
    sent: Vec<Part>,
    received: Vec<Part>,
    posts: Vec<Post>,
}

#[derive(Default)]
struct Post {
    /// Where the part lies in this round, and how long it is.
    data: AtomicUsize,
    len: AtomicUsize,
    /// The round it was posted in, and the one it was taken in.
    posted: AtomicU64,
    taken: AtomicU64,
    /// For the wire that it goes over, if any.
    ticket: Option<usize>,
}

impl Side {
    pub fn new(member: &Member, sent: &[Part], received: &[Part]) -> Side {
        let post = |part: &Part| {
            let ticket = member.link_to(part.peer).map(|(links, ..)| links.ticket());
            Post { ticket, ..Post::default() }
        };
        let posts = sent.iter().map(post).collect();
        Side { sent: sent.to_vec(), received: received.to_vec(), posts }
    }

    /// Bytes to a rank, if a part goes there.
    fn len_to(&self, rank: usize) -> usize {
        self.sent.iter().find(|part| part.peer == rank).map_or(0, |part| part.len)
    }

    fn len_from(&self, rank: usize) -> usize {
        self.received.iter().find(|part| part.peer == rank).map_or(0, |part| part.len)
    }
}

/// A part that is to come, and where its post is.
struct Arrival {
    part: Part,
    post: usize,
}

pub(super) struct Air {
    member: Member,
    sides: Vec<Arc<Side>>,
    arrivals: Vec<Arrival>,
    /// Are parts to be copied, or loaded where they are?
    copies: bool,
    state: Mutex<State>,
}

struct State {
    /// 0 before the first start.
    round: u64,
    aloft: bool,
    /// Where parts go in this round.
    recv: *mut u8,
    /// Which arrivals have not come, and how many.
    waiting: Vec<bool>,
    left: usize,
}

// SAFETY: the pointer is used as the caller of `start` allows, by whoever holds the state.
unsafe impl Send for State {}

impl Air {
    /// `sides` are those of all ranks of the member's group.
    pub fn new(member: Member, sides: Vec<Arc<Side>>) -> Result<Air> {
        let rank = member.rank();
        let own = &sides[rank];
        for (peer, side) in sides.iter().enumerate() {
            for (from, to, sends, expects) in [
                (peer, rank, side.len_to(rank), own.len_from(peer)),
                (rank, peer, own.len_to(peer), side.len_from(rank)),
            ] {
                if sends != expects {
                    return Err(Error::transport(format!(
                        "rank {to} waits for {expects} bytes from rank {from}, which sends {sends}"
                    )));
                }
            }
        }
        let mut arrivals = Vec::new();
        for part in own.received.iter().filter(|part| part.len > 0) {
            let post = sides[part.peer].sent.iter().position(|sent| sent.peer == rank);
            arrivals.extend(post.map(|post| Arrival { part: *part, post }));
        }
        let waiting = vec![false; arrivals.len()];
        let state = State { round: 0, aloft: false, recv: std::ptr::null_mut(), waiting, left: 0 };
        Ok(Air { member, sides, arrivals, copies: true, state: Mutex::new(state) })
    }

    /// Leaves parts where they are.
    pub fn in_place(mut self) -> Air {
        self.copies = false;
        self
    }

    fn own(&self) -> &Side {
        &self.sides[self.member.rank()]
    }

    fn post(&self, arrival: &Arrival) -> &Post {
        &self.sides[arrival.part.peer].posts[arrival.post]
    }

    /// Is this part there, or when will it be?
    fn arrival(&self, state: &State, index: usize) -> WakeHint {
        let post = self.post(&self.arrivals[index]);
        if !state.waiting[index] || post.posted.load(SeqCst) != state.round {
            return WakeHint::Nothing;
        }
        match (self.member.links(), post.ticket) {
            (Some(links), Some(ticket)) => links.news(ticket, Instant::now()),
            _ => WakeHint::Now,
        }
    }

    /// Posts that nobody took yet, with whom they are for.
    fn untaken<'a>(&'a self, state: &'a State) -> impl Iterator<Item = usize> + 'a {
        let own = self.own();
        let open = |(part, post): &(&Part, &Post)| part.len > 0 && post.taken.load(SeqCst) != state.round;
        own.sent.iter().zip(&own.posts).filter(open).map(|(part, _)| part.peer)
    }

    fn is_done(&self, state: &State) -> bool {
        state.left == 0 && self.untaken(state).next().is_none()
    }

    /// Does this rank still wait for that one?
    fn is_owed(&self, state: &State, peer: usize) -> bool {
        let waits = |(arrival, waiting): (&Arrival, &bool)| *waiting && arrival.part.peer == peer;
        self.arrivals.iter().zip(&state.waiting).any(waits) || self.untaken(state).any(|other| other == peer)
    }

    fn take(&self, state: &mut State) -> Result<()> {
        let mut any = false;
        for (index, arrival) in self.arrivals.iter().enumerate() {
            if self.arrival(state, index) != WakeHint::Now {
                continue;
            }
            let (part, post) = (&arrival.part, self.post(arrival));
            let data = post.data.load(SeqCst) as *const u8;
            let len = post.len.load(SeqCst).min(part.len);
            if self.copies {
                self.member.touching(&mut || {
                    // SAFETY: the sender keeps the part until it is taken or nobody is inside
                    // `touching`; the receive buffer is this flight's until it is done.
                    unsafe { state.recv.add(part.at).copy_from_nonoverlapping(data, len) };
                })?;
            }
            post.taken.store(state.round, SeqCst);
            (state.waiting[index], any) = (false, true);
            state.left -= 1;
        }
        if any {
            self.member.ring();
        }
        Ok(())
    }

    fn advance(&self, state: &mut State) -> Result<bool> {
        self.take(state)?;
        if self.is_done(state) {
            return Ok(true);
        }
        let Err(error) = self.member.check(|peer| self.is_owed(state, peer)) else { return Ok(false) };
        // It may have left just after the last part came or went.
        match self.is_done(state) {
            true => Ok(true),
            false => Err(error),
        }
    }
}

impl Transfer for Air {
    unsafe fn start(&self, send: *const u8, recv: *mut u8) -> Result<()> {
        // SAFETY: the caller's word.
        unsafe { self.start_measured(send, recv, &|_| usize::MAX) }
    }

    unsafe fn start_measured(
        &self,
        send: *const u8,
        recv: *mut u8,
        len: &dyn Fn(usize) -> usize,
    ) -> Result<()> {
        let mut state = lock(&self.state);
        if state.aloft {
            return Err(Error::transport("an exchange was started that is in flight"));
        }
        self.member.check(|_| false)?;
        state.round += 1;
        (state.aloft, state.recv) = (true, recv);
        state.waiting.fill(true);
        state.left = self.arrivals.len();
        let (own, rank) = (self.own(), self.member.rank());
        // Each rank begins with the one after it, so that not all send to rank 0 at first.
        let turn = own.sent.iter().position(|part| part.peer > rank).unwrap_or(0);
        let pairs = || own.sent.iter().zip(&own.posts);
        for (part, post) in pairs().skip(turn).chain(pairs().take(turn)) {
            let len = len(part.peer).min(part.len);
            post.data.store(send.wrapping_add(part.at) as usize, SeqCst);
            post.len.store(len, SeqCst);
            if let (Some(ticket), Some((links, from, to)), 1..) =
                (post.ticket, self.member.link_to(part.peer), part.len)
            {
                links.send(ticket, from, to, len, Instant::now());
            }
            post.posted.store(state.round, SeqCst);
        }
        self.member.ring();
        Ok(())
    }

    fn test(&self) -> Result<bool> {
        let mut state = lock(&self.state);
        if !state.aloft {
            return Ok(true);
        }
        let outcome = self.advance(&mut state);
        match &outcome {
            Ok(done) => state.aloft = !done,
            Err(error) => {
                self.member.fail_with(error);
                // Nobody enters `touching` any more; wait for who is inside.
                self.member.wait_until_outside();
                state.aloft = false;
            }
        }
        outcome
    }

    fn news(&self) -> WakeHint {
        let state = lock(&self.state);
        if !state.aloft {
            return WakeHint::Now;
        }
        let over = self.is_done(&state) || self.member.check(|peer| self.is_owed(&state, peer)).is_err();
        let soonest = (0..self.arrivals.len()).map(|index| self.arrival(&state, index)).min();
        if over { WakeHint::Now } else { soonest.unwrap_or(WakeHint::Nothing) }
    }

    fn wait(&self) -> Result<()> {
        while !self.test()? {
            self.member.rest(&mut || self.news());
        }
        Ok(())
    }
}

impl Drop for Air {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        if state.aloft {
            // What was posted is about to go.
            self.member.fail("it left an exchange that was in flight");
            self.member.wait_until_outside();
        }
    }
}
