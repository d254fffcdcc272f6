//! A timeline of all ranks as SVG: one row for each, work above, transfers below.

use ferrier::{Event, EventKind};

use super::chart::{COLOURS, escaped, text};
use super::events::{TileTransfer, names as event_names, transfers};
use crate::table::{bytes, digits, distinct};

/// Width of the drawing, and where time begins and ends in it.
const WIDTH: f64 = 1000.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 980.0;
/// Where the first row begins.
const TOP: f64 = 46.0;
/// Heights: of the work of a rank, of a lane of transfers, between rows.
const WORK: f64 = 28.0;
const LANE: f64 = 11.0;
const GAP: f64 = 16.0;
/// Approximate width of a letter.
const LETTER: f64 = 6.2;
/// Colours of events that are not passes.
const POST: &str = "#555555";
const CODEC: &str = "#9a7fb8";
const WAIT: &str = "#f3d3cc";
const TRANSFER: &str = "#e69f00";

/// The timeline.
pub fn svg(title: &str, ranks: &[Vec<Event>]) -> String {
    let end = ranks.iter().flatten().map(|event| event.end_ms).fold(1e-6, f64::max);
    let across = |ms: f64| LEFT + (RIGHT - LEFT) * ms / end;
    let names = passes(ranks);
    let colour = |event: &Event| match event.kind {
        EventKind::Transform | EventKind::Copy => {
            let at = names.iter().position(|name| *name == event.name).unwrap_or(0);
            PASSES[at % PASSES.len()]
        }
        EventKind::Encode | EventKind::Decode => CODEC,
        EventKind::Post => POST,
        EventKind::Wait | EventKind::Barrier | EventKind::Transfer => WAIT,
    };
    let mut body = String::new();
    let mut top = TOP;
    for (rank, events) in ranks.iter().enumerate() {
        let lanes = lanes(transfers(events));
        let height = WORK + LANE * lanes.iter().map(|(lane, _)| lane + 1).max().unwrap_or(0) as f64;
        body += &text(LEFT - 10.0, top + WORK / 2.0 + 5.0, "text-anchor=\"end\"", &format!("rank {rank}"));
        // Packets in flight are part of their tile's transfer.
        for event in events.iter().filter(|event| event.kind != EventKind::Transfer) {
            let (x, width) = (across(event.start_ms), across(event.end_ms) - across(event.start_ms));
            let label = event.packet.or(event.tile).map(|number| number.to_string());
            let label = label.filter(|_| event.kind != EventKind::Post);
            body += &bar([x, top, width, WORK], colour(event), label.as_deref(), &tooltip(event));
        }
        for (lane, transfer) in &lanes {
            let (x, y) = (across(transfer.start_ms), top + WORK + 2.0 + LANE * *lane as f64);
            let width = across(transfer.end_ms) - x;
            let what = format!(
                "{}, tile {}: {} in {} ms, {} GB/s",
                transfer.name,
                transfer.tile,
                bytes(transfer.bytes),
                digits(transfer.end_ms - transfer.start_ms),
                digits(transfer.gb_s())
            );
            body += &bar([x, y, width, LANE - 2.0], TRANSFER, Some(&transfer.tile.to_string()), &what);
        }
        top += height + GAP;
    }
    let axis = axis(end, top, across);
    let (legend, bottom) = legend(&names, top + 44.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {bottom}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"{WIDTH}\" height=\"{bottom}\" fill=\"white\"/>\n{}{axis}{body}{legend}</svg>\n",
        text(LEFT, 26.0, "font-size=\"15\"", title)
    )
}

/// Colours of passes: those of charts without that of transfers.
const PASSES: [&str; 5] = [COLOURS[0], COLOURS[2], COLOURS[3], COLOURS[4], COLOURS[7]];

/// The names of all passes.
fn passes(ranks: &[Vec<Event>]) -> Vec<String> {
    let is_pass = |event: &&Event| matches!(event.kind, EventKind::Transform | EventKind::Copy);
    distinct(ranks.iter().flatten().filter(is_pass).map(|event| event.name.clone()))
}

/// Transfers that overlap are drawn in different lanes.
fn lanes(transfers: Vec<TileTransfer<'_>>) -> Vec<(usize, TileTransfer<'_>)> {
    let mut free: Vec<f64> = Vec::new();
    transfers
        .into_iter()
        .map(|transfer| {
            let found = free.iter().position(|&until| until <= transfer.start_ms);
            let at = found.unwrap_or_else(|| {
                free.push(0.0);
                free.len() - 1
            });
            free[at] = transfer.end_ms;
            (at, transfer)
        })
        .collect()
}

fn tooltip(event: &Event) -> String {
    let mut tile = event.tile.map_or(String::new(), |tile| format!(", tile {tile}"));
    if let Some(packet) = event.packet {
        tile += &format!(", packet {packet}");
    }
    let ms = digits(event.ms());
    match event.kind {
        EventKind::Transform | EventKind::Copy => {
            let speed = event.bytes as f64 / 1e6 / event.ms().max(1e-9);
            format!("{}{tile}: {ms} ms, {} at {} GB/s", event.name, bytes(event.bytes), digits(speed))
        }
        _ => format!("{}{tile}: {ms} ms", event_names(event).1),
    }
}

/// A box with a tooltip, and a label if it fits.
fn bar([x, y, width, height]: [f64; 4], colour: &str, label: Option<&str>, what: &str) -> String {
    let edge = if width > 3.0 { " stroke=\"white\" stroke-width=\"0.6\"" } else { "" };
    let mut out = format!(
        "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{height:.1}\" fill=\"{colour}\"{edge}>\
         <title>{}</title></rect>\n",
        width.max(0.3),
        escaped(what)
    );
    let size = (height - 1.0).min(11.0);
    if let Some(label) = label.filter(|label| width > LETTER * (label.len() as f64 + 0.6)) {
        let ink = if colour == WAIT || colour == TRANSFER { "black" } else { "white" };
        let more =
            format!("text-anchor=\"middle\" font-size=\"{size}\" fill=\"{ink}\" pointer-events=\"none\"");
        out += &text(x + width / 2.0, y + height / 2.0 + 0.36 * size, &more, label);
    }
    out
}

/// Lines at round times.
fn axis(end: f64, bottom: f64, across: impl Fn(f64) -> f64) -> String {
    let rough = end / 8.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(|&s| s >= rough).unwrap_or(rough);
    let mut out = String::new();
    let mut number = 0.0;
    while number * step <= end * 1.0001 {
        let (x, from) = (across(number * step), TOP - 8.0);
        out += &format!("<path d=\"M{x:.1} {from}V{bottom:.1}\" stroke=\"#dddddd\"/>\n");
        let ms = format!("{}", (number * step * 1e6).round() / 1e6);
        out += &text(x, bottom + 16.0, "text-anchor=\"middle\"", &ms);
        number += 1.0;
    }
    out + &text(LEFT - 10.0, bottom + 16.0, "text-anchor=\"end\"", "ms")
}

/// The legend of the colours, in lines that fit, and its lower edge.
fn legend(names: &[String], top: f64) -> (String, f64) {
    let passes = names.iter().enumerate().map(|(at, name)| (PASSES[at % PASSES.len()], name.as_str()));
    let others = [
        (POST, "post"),
        (CODEC, "encode, decode"),
        (WAIT, "wait"),
        (TRANSFER, "in flight (numbers are tiles)"),
    ];
    let (mut x, mut y, mut out) = (LEFT, top, String::new());
    for (colour, name) in passes.chain(others) {
        let width = 40.0 + 7.2 * name.chars().count() as f64;
        if x > LEFT && x + width > WIDTH {
            (x, y) = (LEFT, y + 22.0);
        }
        out += &format!(
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"12\" fill=\"{colour}\"/>\n",
            y - 10.0
        );
        out += &text(x + 20.0, y, "", name);
        x += width;
    }
    (out, y + 18.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind, tile: usize, start_ms: f64, end_ms: f64) -> Event {
        let (name, reshape, tile) = ("a < b & c".into(), Some(0), Some(tile));
        let (test_ms, coded_ms, packet, bytes) = (0.0, 0.0, None, 1 << 20);
        Event { kind, name, reshape, tile, wired: true, start_ms, end_ms, test_ms, coded_ms, packet, bytes }
    }

    #[test]
    fn overlapping_transfers_are_in_different_lanes() {
        let events = [
            event(EventKind::Post, 0, 0.0, 0.1),
            event(EventKind::Post, 1, 1.0, 1.1),
            event(EventKind::Wait, 0, 2.0, 3.0),
            event(EventKind::Post, 2, 3.0, 3.1),
            event(EventKind::Wait, 1, 3.1, 4.0),
            event(EventKind::Wait, 2, 4.0, 5.0),
        ];
        let found: Vec<_> =
            lanes(transfers(&events)).iter().map(|(lane, f)| (*lane, f.tile, f.end_ms)).collect();
        assert_eq!(found, [(0, 0, 3.0), (1, 1, 4.0), (0, 2, 5.0)]);
    }

    #[test]
    fn names_are_escaped_and_all_numbers_are_finite() {
        for ranks in [vec![], vec![vec![]], vec![vec![event(EventKind::Transform, 7, 0.0, 0.0)]; 3]] {
            let drawn = svg("x < y", &ranks);
            assert!(drawn.contains("x &lt; y") && drawn.ends_with("</svg>\n"), "{drawn}");
            assert!(
                !drawn.contains("NaN") && !drawn.contains("inf\"") && !drawn.contains("a < b"),
                "{drawn}"
            );
        }
    }
}
