//! The time of a transform by kinds of work, over all ranks.

use ferrier::{Event, EventKind};
use serde::Serialize;

use crate::charts::events::names;
use crate::table::{columns, digits};

/// The time that ranks spend on one kind of work.
#[derive(Debug, Serialize)]
pub struct BreakdownRow {
    /// fft, copy, encode, decode, post, test, wait, barrier or rest.
    pub kind: &'static str,
    /// The axes of an fft; empty otherwise.
    pub name: String,
    /// The least of all ranks.
    pub min_ms: f64,
    /// The mean of all ranks.
    pub mean_ms: f64,
    /// The most of all ranks.
    pub max_ms: f64,
}

/// The events of all ranks in one transform, and how long it took on each.
#[derive(Debug, Default)]
pub struct RankEvents {
    /// The events of each rank.
    pub events: Vec<Vec<Event>>,
    /// Milliseconds of each rank.
    pub total_ms: Vec<f64>,
}

/// Time outside passes, by its kind; means over ranks. The keys are part of the contract.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct WaitSplit {
    /// Starting exchanges.
    pub post_ms: f64,
    /// Polling exchanges in flight.
    pub test_ms: f64,
    /// Waiting for exchanges and for slower ranks.
    pub wait_ms: f64,
    /// What is not measured: between events, and at both ends of a call.
    pub rest_ms: f64,
    /// The largest share of it in the time of a rank.
    pub rest_share: f64,
}

/// Time of computation and time of waiting.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ComputeSplit {
    /// Passes over memory: transforms, encoding and decoding, copies.
    pub compute_ms: f64,
    /// The part of it in passes that store to messages or load from them.
    pub overlappable_ms: f64,
    /// The rest: posting, testing, waiting for messages and for slower ranks.
    pub wait_ms: f64,
}

fn kind(event: &Event) -> &'static str {
    names(event).0
}

fn is_compute(event: &Event) -> bool {
    use EventKind::{Copy, Decode, Encode, Transform};
    matches!(event.kind, Transform | Copy | Encode | Decode)
}

fn name(event: &Event) -> &str {
    if event.kind == EventKind::Transform { &event.name } else { "" }
}

/// Time outside passes, by its kind.
pub fn waits(ranks: &RankEvents) -> WaitSplit {
    let mean = |of: &dyn Fn(&Event) -> f64| {
        ranks.events.iter().flatten().map(of).sum::<f64>() / ranks.events.len().max(1) as f64
    };
    let rest = ranks.events.iter().zip(&ranks.total_ms).map(|(events, total)| (rest(events, *total), total));
    WaitSplit {
        post_ms: mean(&|event| if event.kind == EventKind::Post { event.own_ms() } else { 0.0 }),
        test_ms: mean(&|event| event.test_ms),
        wait_ms: mean(&|event| match event.kind {
            EventKind::Wait | EventKind::Barrier => event.own_ms(),
            _ => 0.0,
        }),
        rest_ms: rest.clone().map(|(rest, _)| rest).sum::<f64>() / ranks.events.len().max(1) as f64,
        rest_share: rest.map(|(rest, total)| rest / total).fold(0.0, f64::max),
    }
}

/// The time of a rank outside its events.
fn rest(events: &[Event], total_ms: f64) -> f64 {
    let steps = events.iter().filter(|event| event.packet.is_none());
    total_ms - steps.map(Event::ms).sum::<f64>()
}

/// The breakdown of a transform.
pub fn breakdown(RankEvents { events: ranks, total_ms }: &RankEvents) -> Vec<BreakdownRow> {
    let mut keys: Vec<(&'static str, &str)> = Vec::new();
    for event in ranks.iter().flatten().filter(|event| event.kind != EventKind::Transfer) {
        if !keys.contains(&(kind(event), name(event))) {
            keys.push((kind(event), name(event)));
        }
    }
    // Passes in the order in which they run, then communication.
    let order = ["fft", "copy", "encode", "decode", "post", "wait", "barrier"];
    keys.sort_by_key(|(kind, _)| order.iter().position(|known| known == kind));
    let row = |kind: &'static str, name: &str, own: &dyn Fn(&Vec<Event>) -> f64| {
        spread(kind, name, &ranks.iter().map(own).collect::<Vec<f64>>())
    };
    let mut list: Vec<BreakdownRow> = keys
        .iter()
        .map(|&(of, called)| {
            row(of, called, &|events| {
                let own = events.iter().filter(|event| kind(event) == of && name(event) == called);
                own.map(Event::own_ms).sum()
            })
        })
        .collect();
    let tests = row("test", "", &|events| events.iter().map(|event| event.test_ms).sum());
    if tests.max_ms > 0.0 {
        let at = list.iter().position(|row| row.kind == "wait").unwrap_or(list.len());
        list.insert(at, tests);
    }
    let each: Vec<f64> = ranks.iter().zip(total_ms).map(|(events, total)| rest(events, *total)).collect();
    list.push(spread("rest", "", &each));
    list
}

/// A row of the times of all ranks.
fn spread(kind: &'static str, name: &str, each: &[f64]) -> BreakdownRow {
    BreakdownRow {
        kind,
        name: name.into(),
        min_ms: each.iter().copied().fold(f64::INFINITY, f64::min),
        mean_ms: each.iter().sum::<f64>() / each.len() as f64,
        max_ms: each.iter().copied().fold(0.0, f64::max),
    }
}

/// Computation and waiting, as means over ranks; their sum is `total_ms`.
pub fn split(ranks: &[Vec<Event>], total_ms: f64) -> ComputeSplit {
    let sum = |which: &dyn Fn(&Event) -> bool| {
        let own = ranks.iter().flatten().filter(|event| is_compute(event) && which(event));
        own.map(Event::own_ms).sum::<f64>() / ranks.len().max(1) as f64
    };
    let compute_ms = sum(&|_| true);
    ComputeSplit { compute_ms, overlappable_ms: sum(&|event| event.wired), wait_ms: total_ms - compute_ms }
}

/// A table of a breakdown.
pub fn text(rows: &[BreakdownRow]) -> String {
    let line = |row: &BreakdownRow| {
        let name = if row.name.is_empty() { row.kind } else { &row.name };
        vec![name.into(), digits(row.min_ms), digits(row.mean_ms), digits(row.max_ms)]
    };
    columns(&["block", "min ms", "mean ms", "max ms"], rows.iter().map(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind, name: &str, start_ms: f64, end_ms: f64, wired: bool) -> Event {
        let (reshape, tile, packet, bytes) = (None, None, None, 0);
        let (test_ms, coded_ms) = (0.0, 0.0);
        Event {
            kind,
            name: name.into(),
            reshape,
            tile,
            wired,
            start_ms,
            end_ms,
            test_ms,
            coded_ms,
            packet,
            bytes,
        }
    }

    /// Packets that are encoded while the rank waits, and are in flight while it does something else.
    #[test]
    fn packets_are_taken_out_of_their_steps() {
        let packet = |kind, start, end| Event { packet: Some(0), ..event(kind, "there", start, end, false) };
        let mut wait = event(EventKind::Wait, "there", 0.0, 8.0, false);
        wait.coded_ms = 5.0;
        let events = vec![
            wait,
            packet(EventKind::Encode, 0.0, 3.0),
            packet(EventKind::Transfer, 3.0, 9.0),
            packet(EventKind::Decode, 5.0, 7.0),
        ];
        let list = breakdown(&RankEvents { events: vec![events.clone()], total_ms: vec![9.0] });
        let rows: Vec<_> = list.iter().map(|row| (row.kind, row.mean_ms)).collect();
        assert_eq!(rows, [("encode", 3.0), ("decode", 2.0), ("wait", 3.0), ("rest", 1.0)]);
        assert_eq!(split(&[events], 9.0).compute_ms, 5.0);
    }

    #[test]
    fn rows_add_up_to_the_total() {
        let mut polled = event(EventKind::Transform, "x", 4.0, 7.0, true);
        polled.test_ms = 0.5;
        let ranks = [
            vec![
                event(EventKind::Transform, "z", 0.0, 2.0, false),
                event(EventKind::Wait, "there", 2.0, 4.0, false),
                polled,
            ],
            vec![
                event(EventKind::Transform, "z", 0.0, 4.0, false),
                event(EventKind::Wait, "there", 4.0, 5.0, false),
                event(EventKind::Transform, "x", 5.0, 8.0, true),
            ],
        ];
        let ranks = RankEvents { events: ranks.to_vec(), total_ms: vec![7.5, 9.0] };
        let list = breakdown(&ranks);
        let names: Vec<_> = list.iter().map(|row| format!("{} {}", row.kind, row.name)).collect();
        assert_eq!(names, ["fft z", "fft x", "test ", "wait ", "rest "]);
        assert_eq!((list[0].min_ms, list[0].mean_ms, list[0].max_ms), (2.0, 3.0, 4.0));
        assert_eq!((list[1].min_ms, list[1].max_ms), (2.5, 3.0));
        assert_eq!(list.iter().map(|row| row.mean_ms).sum::<f64>(), 8.25);
        let waits = waits(&ranks);
        assert_eq!((waits.post_ms, waits.test_ms, waits.wait_ms), (0.0, 0.25, 1.5));
        assert_eq!((waits.rest_ms, waits.rest_share), (0.75, 1.0 / 9.0));
        let split = split(&ranks.events, 9.0);
        assert_eq!((split.compute_ms, split.overlappable_ms, split.wait_ms), (5.75, 2.75, 3.25));
        assert!(text(&list).contains(" z "));
    }
}
