//! A simulated network between ranks that are threads: each message has the
//! arrival time that it would have over a link; no thread is blocked for it.

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::transport::transfer::WakeHint;
use crate::{Error, Result};

/// A simulated link between nodes; see [`Ranks::wire`](crate::Ranks::wire).
///
/// ```
/// let wire: ferrier::Wire = "10gbit:5us".parse()?;
/// assert_eq!(wire, ferrier::Wire { gbit_per_s: 10.0, latency_us: 5.0 });
/// assert_eq!(wire.to_string(), "10gbit:5us");
/// # Ok::<(), ferrier::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// Bandwidth of each rank's link, in each direction.
    pub gbit_per_s: f64,
    /// Time from the last bit sent to the last bit received.
    pub latency_us: f64,
}

impl std::fmt::Display for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}gbit:{}us", self.gbit_per_s, self.latency_us)
    }
}

impl FromStr for Wire {
    type Err = Error;

    /// Bandwidth in `gbit` or `mbit`, then, if any, latency in `us` or `ms`.
    fn from_str(text: &str) -> Result<Wire> {
        let wrong =
            || Error::problem("wire", format!("a wire is like 10gbit:5us or 100mbit:1ms, got `{text}`"));
        let (band, late) = text.split_once(':').unwrap_or((text, "0us"));
        let number = |text: &str, units: [(&str, f64); 2]| {
            let (digits, scale) =
                units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))?;
            digits.trim().parse::<f64>().ok().map(|value| value * scale)
        };
        let gbit_per_s = number(band, [("gbit", 1.0), ("mbit", 1e-3)]).ok_or_else(wrong)?;
        let latency_us = number(late, [("us", 1.0), ("ms", 1e3)]).ok_or_else(wrong)?;
        let wire = Wire { gbit_per_s, latency_us };
        wire.check()?;
        Ok(wire)
    }
}

impl Wire {
    /// Bytes per second, and seconds.
    pub(super) fn rate_and_latency(&self) -> (f64, f64) {
        (self.gbit_per_s * 1e9 / 8.0, self.latency_us * 1e-6)
    }

    pub(super) fn check(&self) -> Result<()> {
        let fine =
            self.gbit_per_s.is_finite() && self.gbit_per_s > 0.0 && (0.0..1e12).contains(&self.latency_us);
        match fine {
            true => Ok(()),
            false => Err(Error::problem(
                "wire",
                format!(
                    "a wire needs a bandwidth above 0 and a latency of at least 0, got {} gbit and {} us",
                    self.gbit_per_s, self.latency_us
                ),
            )),
        }
    }

    /// How long a link is busy with so many bytes.
    fn busy(&self, bytes: usize) -> Duration {
        Duration::try_from_secs_f64(bytes as f64 * 8e-9 / self.gbit_per_s).unwrap_or(Duration::MAX / 4)
    }

    fn latency(&self) -> Duration {
        Duration::from_secs_f64(self.latency_us * 1e-6)
    }
}

/// The simulated links of all ranks. Ranks that wait look at two times without the lock: when their message arrives, and when the
/// next one gets its links.
pub(super) struct Links {
    wire: Wire,
    /// The node of each rank: messages inside a node use no link.
    nodes: Vec<usize>,
    /// Times are nanoseconds after it.
    origin: Instant,
    /// When a message of the queue can start at the earliest.
    next_start: AtomicU64,
    state: Mutex<LinkState>,
}

struct LinkState {
    /// When each rank's link is free, out and in.
    out: Vec<u64>,
    into: Vec<u64>,
    /// Messages that wait for a link, in order of posting.
    queue: Vec<Message>,
    tickets: usize,
}

struct Message {
    from: usize,
    to: usize,
    bytes: usize,
    posted: u64,
    ticket: Ticket,
}

/// For one message at a time: when it arrives.
#[derive(Clone)]
pub(super) struct Ticket(Arc<AtomicU64>);

/// A time that is not known yet.
const UNKNOWN: u64 = u64::MAX;

impl Links {
    pub fn new(wire: Wire, nodes: Vec<usize>) -> Links {
        let free = vec![0; nodes.len()];
        let state = LinkState { out: free.clone(), into: free, queue: Vec::new(), tickets: 0 };
        let next_start = AtomicU64::new(UNKNOWN);
        Links { wire, nodes, origin: Instant::now(), next_start, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nanos(&self, time: Instant) -> u64 {
        nanos(time.saturating_duration_since(self.origin))
    }

    fn at(&self, time: u64) -> WakeHint {
        WakeHint::At(self.origin + Duration::from_nanos(time))
    }

    /// Bandwidth and latency of the links.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Do messages between these ranks use links?
    pub fn connect(&self, from: usize, to: usize) -> bool {
        self.nodes[from] != self.nodes[to]
    }

    /// A ticket for one message at a time; allocates, so that sending need not.
    pub fn ticket(&self) -> Ticket {
        let mut state = self.state();
        state.tickets += 1;
        let more = state.tickets - state.queue.len();
        state.queue.reserve(more);
        Ticket(Arc::new(AtomicU64::new(0)))
    }

    /// Posts a message.
    pub fn send(&self, ticket: &Ticket, from: usize, to: usize, bytes: usize, now: Instant) {
        let now = self.nanos(now);
        let mut state = self.state();
        self.advance(&mut state, now);
        ticket.0.store(UNKNOWN, SeqCst);
        state.queue.push(Message { from, to, bytes, posted: now, ticket: ticket.clone() });
        self.advance(&mut state, now);
    }

    /// When a test for a message is worthwhile: `Now` when it has arrived.
    pub fn wake_hint(&self, Ticket(arrival): &Ticket, now: Instant) -> WakeHint {
        let now = self.nanos(now);
        loop {
            match (arrival.load(SeqCst), self.next_start.load(SeqCst)) {
                // Another thread posts it, or assigns its links, at this moment.
                (UNKNOWN, UNKNOWN) => std::hint::spin_loop(),
                (UNKNOWN, next) if next <= now => self.advance(&mut self.state(), now),
                // It waits for a link.
                (UNKNOWN, next) => return self.at(next),
                (due, _) if due <= now => return WakeHint::Now,
                (due, _) => return self.at(due),
            }
        }
    }

    /// Assigns links to messages that could start by now: repeatedly the one that
    /// can start first, which among equals is the one that was posted first.
    fn advance(&self, state: &mut LinkState, now: u64) {
        loop {
            let start = |m: &Message| m.posted.max(state.out[m.from]).max(state.into[m.to]);
            let first = state.queue.iter().enumerate().min_by_key(|(at, message)| (start(message), *at));
            let first = first.map(|(at, message)| (at, start(message)));
            let Some((at, start)) = first.filter(|(_, start)| *start <= now) else {
                return self.next_start.store(first.map_or(UNKNOWN, |(_, start)| start), SeqCst);
            };
            let message = state.queue.remove(at);
            let later = |time: u64, by: Duration| time.saturating_add(nanos(by)).min(UNKNOWN - 1);
            let end = later(start, self.wire.busy(message.bytes));
            state.out[message.from] = end;
            state.into[message.to] = end;
            message.ticket.0.store(later(end, self.wire.latency()), SeqCst);
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(UNKNOWN - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// 1 Mbit is 125 bytes a millisecond.
    fn links(ranks: usize) -> (Links, Vec<Ticket>, Instant) {
        let links = Links::new(Wire { gbit_per_s: 1e-3, latency_us: 500.0 }, (0..ranks).collect());
        let tickets = (0..16).map(|_| links.ticket()).collect();
        (links, tickets, Instant::now())
    }

    fn due(links: &Links, ticket: &Ticket, from: Instant) -> f64 {
        links.wake_hint(ticket, from + 1000 * MS);
        (ticket.0.load(SeqCst) as f64 - links.nanos(from) as f64) * 1e-6
    }

    #[test]
    fn a_link_carries_one_stream_out_and_one_in() {
        let (links, tickets, t) = links(4);
        // One rank sends to three, one after the other; another rank sends to the last of them.
        for (ticket, (from, to)) in [(0, 1), (0, 2), (0, 3), (1, 3), (3, 0)].into_iter().enumerate() {
            links.send(&tickets[ticket], from, to, 125, t);
        }
        let expected = [1.5, 2.5, 3.5, 1.5, 1.5];
        for (ticket, expected) in expected.into_iter().enumerate() {
            // 1 to 3 goes while 0 is busy with 1: both links are free.
            let due = due(&links, &tickets[ticket], t);
            assert!((due - expected).abs() < 1e-6, "{ticket}: {due}");
        }
    }

    /// An all-to-all takes no more time than the bytes of one link.
    #[test]
    fn links_are_not_idle_while_messages_wait() {
        let (links, tickets, t) = links(4);
        let pairs = (0..4).flat_map(|from| (1..4).map(move |far| (from, (from + far) % 4)));
        for (ticket, (from, to)) in pairs.enumerate() {
            links.send(&tickets[ticket], from, to, 125, t);
        }
        let last = tickets[..12].iter().map(|ticket| due(&links, ticket, t)).fold(0.0, f64::max);
        assert!((last - 3.5).abs() < 1e-6, "{last}");
    }

    #[test]
    fn a_message_arrives_at_its_time() {
        let (links, tickets, t) = links(2);
        links.send(&tickets[0], 0, 1, 1250, t);
        links.send(&tickets[1], 0, 1, 125, t + MS);
        assert_eq!(links.wake_hint(&tickets[1], t + 2 * MS), WakeHint::At(t + 10 * MS));
        assert_eq!(links.wake_hint(&tickets[0], t + 10 * MS), WakeHint::At(t + 10 * MS + MS / 2));
        assert_eq!(links.wake_hint(&tickets[0], t + 11 * MS), WakeHint::Now);
        assert_eq!(links.wake_hint(&tickets[1], t + 11 * MS), WakeHint::At(t + 11 * MS + MS / 2));
        // Reuses the ticket, on free links.
        links.send(&tickets[0], 0, 1, 0, t + 30 * MS);
        assert_eq!(links.wake_hint(&tickets[0], t + 30 * MS), WakeHint::At(t + 30 * MS + MS / 2));
    }

    #[test]
    fn wires_are_parsed() {
        let wire = |text: &str| text.parse::<Wire>().map(|wire| (wire.gbit_per_s, wire.latency_us));
        assert_eq!(wire("10gbit:5us").unwrap(), (10.0, 5.0));
        assert_eq!(wire("250mbit:1.5ms").unwrap(), (0.25, 1500.0));
        assert_eq!(wire("2.5gbit").unwrap(), (2.5, 0.0));
        for text in
            ["", "10", "10gbit:5", "0gbit:5us", "-1gbit:1us", "1gbit:-1us", "nangbit:1us", "xgbit:1us"]
        {
            assert!(wire(text).is_err(), "{text}");
        }
    }
}
