//! Timelines of all ranks, for Chrome's and Perfetto's viewers and as a drawing.

use std::path::Path;

use ferrier::{Event, EventKind};
use serde_json::{Value, json};

use crate::failure::{Outcome, fail};
use crate::output;
use crate::report;
use crate::timeline;

/// A tile under way: from its start to the end of the wait for it.
pub struct Flight<'a> {
    /// The reshape in words.
    pub name: &'a str,
    pub reshape: usize,
    pub tile: usize,
    pub start_ms: f64,
    pub end_ms: f64,
    /// Bytes that this rank takes from others.
    pub bytes: u64,
}

impl Flight<'_> {
    /// Bytes over time.
    pub fn gb_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / (self.end_ms - self.start_ms).max(1e-9)
    }
}

/// The flights of a rank, in the order in which they start.
pub fn flights(events: &[Event]) -> Vec<Flight<'_>> {
    let posts = events.iter().filter(|event| event.kind == EventKind::Post);
    let flight = |post: &'_ Event| {
        let same = |event: &&Event| {
            event.kind == EventKind::Wait && (event.reshape, event.tile) == (post.reshape, post.tile)
        };
        events.iter().find(same).map(|wait| wait.end_ms)
    };
    posts
        .filter_map(|post| {
            Some(Flight {
                name: &post.name,
                reshape: post.reshape?,
                tile: post.tile?,
                start_ms: post.start_ms,
                end_ms: flight(post)?,
                bytes: post.bytes,
            })
        })
        .collect()
}

/// A timeline that can be written to `path`?
///
/// # Errors
/// A name that says no kind; a place that cannot be written to.
pub fn check(path: &Path) -> Outcome {
    match extension(path) {
        Some("json" | "svg") => output::check_text(path),
        _ => fail(format!("--trace {}: the name must end in .json or .svg", path.display())),
    }
}

fn extension(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

/// Writes the timeline of what each rank did.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, title: &str, ranks: &[Vec<Event>]) -> Outcome {
    match extension(path) {
        Some("svg") => output::write_text(path, &timeline::svg(title, ranks)),
        _ => report::json(path, &chrome(title, ranks)),
    }
}

/// The trace-event format: a process for each rank, flights as asynchronous events.
fn chrome(title: &str, ranks: &[Vec<Event>]) -> Value {
    let mut list = Vec::new();
    for (rank, events) in ranks.iter().enumerate() {
        let meta =
            |what: &str, args: Value| json!({"ph": "M", "name": what, "pid": rank, "tid": 0, "args": args});
        list.push(meta("process_name", json!({"name": format!("rank {rank}")})));
        list.push(meta("process_sort_index", json!({"sort_index": rank})));
        list.push(meta("thread_name", json!({"name": "steps"})));
        list.extend(events.iter().map(|event| step(rank, event)));
        for flight in flights(events) {
            let id = format!("{rank}.{}.{}", flight.reshape, flight.tile);
            let name = format!("tile {} of {}", flight.tile, flight.name);
            let edge = |ph: &str, ms: f64, args: Value| {
                json!({"ph": ph, "cat": "flight", "id": id, "name": name, "pid": rank, "tid": 0,
                    "ts": 1e3 * ms, "args": args})
            };
            let args = json!({"bytes": flight.bytes, "gb_s": flight.gb_s(), "reshape": flight.reshape,
                "tile": flight.tile});
            list.push(edge("b", flight.start_ms, args));
            list.push(edge("e", flight.end_ms, json!({})));
        }
    }
    json!({"traceEvents": list, "displayTimeUnit": "ms", "otherData": {"title": title}})
}

fn step(rank: usize, event: &Event) -> Value {
    let (category, name) = match event.kind {
        EventKind::Transform => ("fft", event.name.clone()),
        EventKind::Copy => ("copy", event.name.clone()),
        EventKind::Encode => ("encode", format!("encode {}", event.name)),
        EventKind::Decode => ("decode", format!("decode {}", event.name)),
        EventKind::Post => ("post", format!("post {}", event.name)),
        EventKind::Wait => ("wait", format!("wait for {}", event.name)),
        EventKind::Barrier => ("barrier", "barrier".into()),
    };
    let mut args = json!({"bytes": event.bytes});
    if matches!(event.kind, EventKind::Transform | EventKind::Copy) {
        args["gb_s"] = json!(event.bytes as f64 / 1e6 / event.ms().max(1e-9));
        args["test_ms"] = json!(event.test_ms);
    }
    if let (Some(reshape), Some(tile)) = (event.reshape, event.tile) {
        args["reshape"] = json!(reshape);
        args["tile"] = json!(tile);
    }
    json!({"ph": "X", "cat": category, "name": name, "pid": rank, "tid": 0,
        "ts": 1e3 * event.start_ms, "dur": 1e3 * event.ms(), "args": args})
}
