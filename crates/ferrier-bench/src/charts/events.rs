//! Names of events, and transfers of tiles from the events of a rank.

use ferrier::{Event, EventKind};

/// The kind of an event in reports, and its own name in words.
pub fn names(event: &Event) -> (&'static str, String) {
    let name = &event.name;
    match event.kind {
        EventKind::Transform => ("fft", name.clone()),
        EventKind::Copy => ("copy", name.clone()),
        EventKind::Encode => ("encode", format!("encode {name}")),
        EventKind::Decode => ("decode", format!("decode {name}")),
        EventKind::Post => ("post", format!("post {name}")),
        EventKind::Wait => ("wait", format!("wait for {name}")),
        EventKind::Barrier => ("barrier", "barrier".into()),
        EventKind::Transfer => ("transfer", format!("packet of {name}")),
    }
}

/// The transfer of a tile: from its start to the end of the wait for it.
pub struct TileTransfer<'a> {
    /// The name of the reshape.
    pub name: &'a str,
    pub reshape: usize,
    pub tile: usize,
    pub start_ms: f64,
    pub end_ms: f64,
    /// Bytes that this rank receives from others.
    pub bytes: u64,
}

impl TileTransfer<'_> {
    /// Bytes over time.
    pub fn gb_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / (self.end_ms - self.start_ms).max(1e-9)
    }
}

/// The transfers of a rank, in the order in which they start.
pub fn transfers(events: &[Event]) -> Vec<TileTransfer<'_>> {
    let posts = events.iter().filter(|event| event.kind == EventKind::Post);
    let end = |post: &'_ Event| {
        let same = |event: &&Event| {
            event.kind == EventKind::Wait && (event.reshape, event.tile) == (post.reshape, post.tile)
        };
        events.iter().find(same).map(|wait| wait.end_ms)
    };
    posts
        .filter_map(|post| {
            Some(TileTransfer {
                name: &post.name,
                reshape: post.reshape?,
                tile: post.tile?,
                start_ms: post.start_ms,
                end_ms: end(post)?,
                bytes: post.bytes,
            })
        })
        .collect()
}
