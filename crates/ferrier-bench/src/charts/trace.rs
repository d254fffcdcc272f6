//! Timelines of all ranks for Chrome's and Perfetto's viewers.

use ferrier::{Event, EventKind};
use serde_json::{Value, json};

use super::events::{names, transfers};

/// The events of all ranks in the trace-event format: a process for each rank, transfers as
/// asynchronous events.
pub fn chrome(title: &str, ranks: &[Vec<Event>]) -> Value {
    let mut list = Vec::new();
    for (rank, events) in ranks.iter().enumerate() {
        let meta =
            |what: &str, args: Value| json!({"ph": "M", "name": what, "pid": rank, "tid": 0, "args": args});
        list.push(meta("process_name", json!({"name": format!("rank {rank}")})));
        list.push(meta("process_sort_index", json!({"sort_index": rank})));
        list.push(meta("thread_name", json!({"name": "steps"})));
        let (packets, steps): (Vec<_>, Vec<_>) =
            events.iter().partition(|event| event.kind == EventKind::Transfer);
        list.extend(steps.iter().map(|event| step(rank, event)));
        list.extend(packets.iter().flat_map(|event| packet(rank, event)));
        for transfer in transfers(events) {
            let id = format!("{rank}.{}.{}", transfer.reshape, transfer.tile);
            let name = format!("tile {} of {}", transfer.tile, transfer.name);
            let edge = |ph: &str, ms: f64, args: Value| {
                json!({"ph": ph, "cat": "flight", "id": id, "name": name, "pid": rank, "tid": 0,
                    "ts": 1e3 * ms, "args": args})
            };
            let args = json!({"bytes": transfer.bytes, "gb_s": transfer.gb_s(), "reshape": transfer.reshape,
                "tile": transfer.tile});
            list.push(edge("b", transfer.start_ms, args));
            list.push(edge("e", transfer.end_ms, json!({})));
        }
    }
    json!({"traceEvents": list, "displayTimeUnit": "ms", "otherData": {"title": title}})
}

/// A packet on its way, as an asynchronous event.
fn packet(rank: usize, event: &Event) -> [Value; 2] {
    let [reshape, tile, packet] = [event.reshape, event.tile, event.packet].map(Option::unwrap_or_default);
    let edge = |ph: &str, ms: f64| {
        json!({"ph": ph, "cat": "packet", "id": format!("{rank}.{reshape}.{tile}.{packet}"),
            "name": format!("packet {packet} of tile {tile} of {}", event.name), "pid": rank, "tid": 0,
            "ts": 1e3 * ms, "args": {"bytes": event.bytes}})
    };
    [edge("b", event.start_ms), edge("e", event.end_ms)]
}

fn step(rank: usize, event: &Event) -> Value {
    let (category, name) = names(event);
    let mut args = json!({"bytes": event.bytes});
    if matches!(event.kind, EventKind::Transform | EventKind::Copy) {
        args["gb_s"] = json!(event.bytes as f64 / 1e6 / event.ms().max(1e-9));
        args["test_ms"] = json!(event.test_ms);
    }
    if let Some(packet) = event.packet {
        args["packet"] = json!(packet);
    }
    if let (Some(reshape), Some(tile)) = (event.reshape, event.tile) {
        args["reshape"] = json!(reshape);
        args["tile"] = json!(tile);
    }
    json!({"ph": "X", "cat": category, "name": name, "pid": rank, "tid": 0,
        "ts": 1e3 * event.start_ms, "dur": 1e3 * event.ms(), "args": args})
}
