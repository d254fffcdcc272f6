//! Transfers between ranks that are threads. A sender posts the address of
//! each segment in a mailbox; each receiver copies its segment when a test
//! finds it posted; the sender is done when all of its segments were copied.
//!
//! A transfer has a mailbox for each pair of ranks. A rank starts the next
//! round only when all its segments of the last were copied, so a mailbox is
//! never overwritten before it was read.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::wire::Ticket;
use super::world::{ThreadRank, lock};
use crate::transport::interface::Transport;
use crate::transport::transfer::{Lengths, Segment, Transfer, WakeHint, already_in_flight};
use crate::{Error, Result};

/// One rank's segments of a transfer, and a mailbox for each segment sent.
pub(super) struct RankSegments {
    sent: Vec<Segment>,
    received: Vec<Segment>,
    mailboxes: Vec<Mailbox>,
}

#[derive(Default)]
struct Mailbox {
    /// Address and length of the segment in this round.
    data: AtomicUsize,
    len: AtomicUsize,
    /// The last rounds in which it was posted and copied.
    posted: AtomicU64,
    copied: AtomicU64,
    /// For the simulated network between the two ranks, if any.
    ticket: Option<Ticket>,
}

impl RankSegments {
    pub fn new(rank: &ThreadRank, sent: &[Segment], received: &[Segment]) -> RankSegments {
        let mailbox = |segment: &Segment| {
            let ticket = rank.link_to(segment.peer).map(|(links, ..)| links.ticket());
            Mailbox { ticket, ..Mailbox::default() }
        };
        let mailboxes = sent.iter().map(mailbox).collect();
        RankSegments { sent: sent.to_vec(), received: received.to_vec(), mailboxes }
    }

    /// Bytes to a rank; 0 without a segment.
    fn len_to(&self, rank: usize) -> usize {
        self.sent.iter().find(|segment| segment.peer == rank).map_or(0, |segment| segment.len)
    }

    fn len_from(&self, rank: usize) -> usize {
        self.received.iter().find(|segment| segment.peer == rank).map_or(0, |segment| segment.len)
    }
}

/// A segment to receive, and the index of its mailbox at the sender.
struct Expected {
    segment: Segment,
    mailbox: usize,
}

pub(super) struct ThreadTransfer {
    rank: ThreadRank,
    /// Of all ranks of the group.
    segments: Vec<Arc<RankSegments>>,
    expected: Vec<Expected>,
    /// Are segments copied, or loaded in the sender's buffer?
    copies: bool,
    round: Mutex<TransferRound>,
}

/// The state of one start.
struct TransferRound {
    /// 0 before the first start.
    number: u64,
    in_flight: bool,
    recv: *mut u8,
    /// Which expected segments are missing, and how many.
    missing: Vec<bool>,
    left: usize,
}

// SAFETY: the pointer is used only under the lock of the round and until completion, as `start`'s contract allows.
unsafe impl Send for TransferRound {}

impl ThreadTransfer {
    /// `segments` are those of all ranks of the group.
    pub fn new(rank: ThreadRank, segments: Vec<Arc<RankSegments>>, copies: bool) -> Result<ThreadTransfer> {
        let number = rank.rank;
        let own = &segments[number];
        for (peer, theirs) in segments.iter().enumerate() {
            for (from, to, sends, expects) in [
                (peer, number, theirs.len_to(number), own.len_from(peer)),
                (number, peer, own.len_to(peer), theirs.len_from(number)),
            ] {
                if sends != expects {
                    return Err(Error::transport(format!(
                        "rank {to} expects {expects} bytes from rank {from}, which sends {sends}"
                    )));
                }
            }
        }
        let mut expected = Vec::new();
        for segment in own.received.iter().filter(|segment| segment.len > 0) {
            let mailbox = segments[segment.peer].sent.iter().position(|sent| sent.peer == number);
            expected.extend(mailbox.map(|mailbox| Expected { segment: *segment, mailbox }));
        }
        let missing = vec![false; expected.len()];
        let round =
            TransferRound { number: 0, in_flight: false, recv: std::ptr::null_mut(), missing, left: 0 };
        Ok(ThreadTransfer { rank, segments, expected, copies, round: Mutex::new(round) })
    }

    fn own(&self) -> &RankSegments {
        &self.segments[self.rank.rank]
    }

    fn mailbox(&self, expected: &Expected) -> &Mailbox {
        &self.segments[expected.segment.peer].mailboxes[expected.mailbox]
    }

    /// When the expected segment can be copied.
    fn arrival(&self, round: &TransferRound, index: usize) -> WakeHint {
        let mailbox = self.mailbox(&self.expected[index]);
        if !round.missing[index] || mailbox.posted.load(SeqCst) != round.number {
            return WakeHint::Nothing;
        }
        match (self.rank.links(), &mailbox.ticket) {
            (Some(links), Some(ticket)) => links.wake_hint(ticket, Instant::now()),
            _ => WakeHint::Now,
        }
    }

    /// The receivers of segments that were not copied yet.
    fn uncopied<'a>(&'a self, round: &'a TransferRound) -> impl Iterator<Item = usize> + 'a {
        let own = self.own();
        let open = |(segment, mailbox): &(&Segment, &Mailbox)| {
            segment.len > 0 && mailbox.copied.load(SeqCst) != round.number
        };
        own.sent.iter().zip(&own.mailboxes).filter(open).map(|(segment, _)| segment.peer)
    }

    fn is_done(&self, round: &TransferRound) -> bool {
        round.left == 0 && self.uncopied(round).next().is_none()
    }

    /// Does this rank still wait for `peer`?
    fn awaits(&self, round: &TransferRound, peer: usize) -> bool {
        let waits = |(expected, missing): (&Expected, &bool)| *missing && expected.segment.peer == peer;
        self.expected.iter().zip(&round.missing).any(waits) || self.uncopied(round).any(|other| other == peer)
    }

    fn receive(&self, round: &mut TransferRound) -> Result<()> {
        let mut any = false;
        for (index, expected) in self.expected.iter().enumerate() {
            if self.arrival(round, index) != WakeHint::Now {
                continue;
            }
            let (segment, mailbox) = (&expected.segment, self.mailbox(expected));
            let data = mailbox.data.load(SeqCst) as *const u8;
            let len = mailbox.len.load(SeqCst).min(segment.len);
            if self.copies {
                self.rank.with_access(&mut || {
                    // SAFETY: the sender keeps the segment until it is marked as copied or no rank is inside
                    // `with_access`; by `start`'s contract nothing else accesses the receive buffer until
                    // completion.
                    unsafe { round.recv.add(segment.offset).copy_from_nonoverlapping(data, len) };
                })?;
            }
            mailbox.copied.store(round.number, SeqCst);
            (round.missing[index], any) = (false, true);
            round.left -= 1;
        }
        if any {
            self.rank.notify_all();
        }
        Ok(())
    }

    fn advance(&self, round: &mut TransferRound) -> Result<bool> {
        self.receive(round)?;
        if self.is_done(round) {
            return Ok(true);
        }
        let Err(error) = self.rank.check(|peer| self.awaits(round, peer)) else { return Ok(false) };
        // It may have exited just after the last segment was posted or copied.
        match self.is_done(round) {
            true => Ok(true),
            false => Err(error),
        }
    }
}

impl Transfer for ThreadTransfer {
    unsafe fn start(&self, send: *const u8, recv: *mut u8, lengths: Option<Lengths<'_>>) -> Result<()> {
        let mut round = lock(&self.round);
        if round.in_flight {
            return Err(already_in_flight());
        }
        self.rank.check(|_| false)?;
        round.number += 1;
        (round.in_flight, round.recv) = (true, recv);
        round.missing.fill(true);
        round.left = self.expected.len();
        let (own, rank) = (self.own(), self.rank.rank);
        // Each rank begins with the next one, so that not all send to rank 0 first.
        let first = own.sent.iter().position(|segment| segment.peer > rank).unwrap_or(0);
        let pairs = || own.sent.iter().zip(&own.mailboxes);
        for (segment, mailbox) in pairs().skip(first).chain(pairs().take(first)) {
            let len = lengths.map_or(segment.len, |lengths| lengths(segment.peer).min(segment.len));
            mailbox.data.store(send.wrapping_add(segment.offset) as usize, SeqCst);
            mailbox.len.store(len, SeqCst);
            if let (Some(ticket), Some((links, from, to)), 1..) =
                (&mailbox.ticket, self.rank.link_to(segment.peer), segment.len)
            {
                links.send(ticket, from, to, len, Instant::now());
            }
            mailbox.posted.store(round.number, SeqCst);
        }
        self.rank.notify_all();
        Ok(())
    }

    fn test(&self) -> Result<bool> {
        let mut round = lock(&self.round);
        if !round.in_flight {
            return Ok(true);
        }
        let outcome = self.advance(&mut round);
        match &outcome {
            Ok(done) => round.in_flight = !done,
            Err(error) => {
                self.rank.fail_with(error);
                // No rank enters `with_access` any more; wait for those inside.
                self.rank.wait_for_accesses();
                round.in_flight = false;
            }
        }
        outcome
    }

    fn wake_hint(&self) -> WakeHint {
        let round = lock(&self.round);
        if !round.in_flight {
            return WakeHint::Now;
        }
        let over = self.is_done(&round) || self.rank.check(|peer| self.awaits(&round, peer)).is_err();
        let soonest = (0..self.expected.len()).map(|index| self.arrival(&round, index)).min();
        if over { WakeHint::Now } else { soonest.unwrap_or(WakeHint::Nothing) }
    }

    fn wait(&self) -> Result<()> {
        while !self.test()? {
            self.rank.park(&mut || self.wake_hint());
        }
        Ok(())
    }
}

impl Drop for ThreadTransfer {
    fn drop(&mut self) {
        let round = self.round.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        if round.in_flight {
            // The posted memory is about to be freed.
            self.rank.fail("it dropped an exchange that was in flight");
            self.rank.wait_for_accesses();
        }
    }
}
