//! A simulated network between ranks that are threads: each message has the
//! arrival time that it would have over a link; no thread is blocked for it.

use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
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

/// The simulated links of all ranks.
pub(super) struct Links {
    wire: Wire,
    /// The node of each rank: messages inside a node use no link.
    nodes: Vec<usize>,
    state: Mutex<LinkState>,
}

struct LinkState {
    /// When each rank's link is free, out and in.
    out: Vec<Instant>,
    into: Vec<Instant>,
    /// Messages that wait for a link, in order of posting.
    queue: Vec<Message>,
    /// When the message of each ticket arrives, if that is known.
    tickets: Vec<Option<Instant>>,
}

struct Message {
    from: usize,
    to: usize,
    bytes: usize,
    posted: Instant,
    ticket: usize,
}

impl Links {
    pub fn new(wire: Wire, nodes: Vec<usize>) -> Links {
        let now = Instant::now();
        let free = vec![now; nodes.len()];
        let state = LinkState { out: free.clone(), into: free, queue: Vec::new(), tickets: Vec::new() };
        Links { wire, nodes, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub fn ticket(&self) -> usize {
        let mut state = self.state();
        state.tickets.push(None);
        let (queued, most) = (state.queue.len(), state.tickets.len());
        state.queue.reserve(most - queued);
        state.tickets.len() - 1
    }

    /// Posts a message.
    pub fn send(&self, ticket: usize, from: usize, to: usize, bytes: usize, now: Instant) {
        let mut state = self.state();
        self.advance(&mut state, now);
        state.tickets[ticket] = None;
        state.queue.push(Message { from, to, bytes, posted: now, ticket });
        self.advance(&mut state, now);
    }

    /// When a test for a message is worthwhile: `Now` when it has arrived.
    pub fn wake_hint(&self, ticket: usize, now: Instant) -> WakeHint {
        let mut state = self.state();
        self.advance(&mut state, now);
        match state.tickets[ticket] {
            Some(due) if due <= now => WakeHint::Now,
            Some(due) => WakeHint::At(due),
            // It waits for a link: test when the next one is free.
            None => {
                let free = state.out.iter().chain(&state.into).filter(|free| **free > now).min();
                free.map_or(WakeHint::Now, |free| WakeHint::At(*free))
            }
        }
    }

    /// Assigns links to messages that could start by now: repeatedly the one that
    /// can start first, which among equals is the one that was posted first.
    fn advance(&self, state: &mut LinkState, now: Instant) {
        loop {
            let start = |m: &Message| m.posted.max(state.out[m.from]).max(state.into[m.to]);
            let first = state.queue.iter().enumerate().min_by_key(|(at, message)| (start(message), *at));
            let Some((at, start)) = first.map(|(at, message)| (at, start(message))) else { return };
            if start > now {
                return;
            }
            let message = state.queue.remove(at);
            let end = start + self.wire.busy(message.bytes);
            state.out[message.from] = end;
            state.into[message.to] = end;
            state.tickets[message.ticket] = Some(end + self.wire.latency());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// 1 Mbit is 125 bytes a millisecond.
    fn links(ranks: usize) -> (Links, Instant) {
        let links = Links::new(Wire { gbit_per_s: 1e-3, latency_us: 500.0 }, (0..ranks).collect());
        assert_eq!((0..16).map(|_| links.ticket()).last(), Some(15));
        (links, Instant::now())
    }

    fn due(links: &Links, ticket: usize, from: Instant) -> f64 {
        let later = from + 1000 * MS;
        links.wake_hint(ticket, later);
        links.state().tickets[ticket].map_or(f64::NAN, |due| (due - from).as_secs_f64() * 1e3)
    }

    #[test]
    fn a_link_carries_one_stream_out_and_one_in() {
        let (links, t) = links(4);
        // One rank sends to three, one after the other; another rank sends to the last of them.
        for (ticket, (from, to)) in [(0, 1), (0, 2), (0, 3), (1, 3), (3, 0)].into_iter().enumerate() {
            links.send(ticket, from, to, 125, t);
        }
        let expected = [1.5, 2.5, 3.5, 1.5, 1.5];
        for (ticket, expected) in expected.into_iter().enumerate() {
            // 1 to 3 goes while 0 is busy with 1: both links are free.
            assert!((due(&links, ticket, t) - expected).abs() < 1e-6, "{ticket}: {}", due(&links, ticket, t));
        }
    }

    /// An all-to-all takes no more time than the bytes of one link.
    #[test]
    fn links_are_not_idle_while_messages_wait() {
        let (links, t) = links(4);
        let pairs = (0..4).flat_map(|from| (1..4).map(move |far| (from, (from + far) % 4)));
        for (ticket, (from, to)) in pairs.enumerate() {
            links.send(ticket, from, to, 125, t);
        }
        let last = (0..12).map(|ticket| due(&links, ticket, t)).fold(0.0, f64::max);
        assert!((last - 3.5).abs() < 1e-6, "{last}");
    }

    #[test]
    fn a_message_arrives_at_its_time() {
        let (links, t) = links(2);
        links.send(0, 0, 1, 1250, t);
        links.send(1, 0, 1, 125, t + MS);
        assert_eq!(links.wake_hint(1, t + 2 * MS), WakeHint::At(t + 10 * MS));
        assert_eq!(links.wake_hint(0, t + 10 * MS), WakeHint::At(t + 10 * MS + MS / 2));
        assert_eq!(links.wake_hint(0, t + 11 * MS), WakeHint::Now);
        assert_eq!(links.wake_hint(1, t + 11 * MS), WakeHint::At(t + 11 * MS + MS / 2));
        // Reuses the ticket, on free links.
        links.send(0, 0, 1, 0, t + 30 * MS);
        assert_eq!(links.wake_hint(0, t + 30 * MS), WakeHint::At(t + 30 * MS + MS / 2));
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
