//! Exchanges: how the data of a reshape moves between ranks.
//!
//! An exchange is one file (or folder) and one line in [`EXCHANGES`]. The
//! passes before and after it load from and store to its buffers, so an
//! exchange never packs: it says where in a send and a receive buffer the
//! segment of each rank lies, and moves the bytes. With `direct` no bytes move:
//! the next pass loads from the neighbours' memory. `hierarchical` is both:
//! shared memory inside a node, messages between nodes.

mod all_to_all;
mod all_to_allv;
mod coder;
mod groups;
mod hierarchical;
mod packets;
mod point_to_point;
mod progress_set;
mod rank_exit;
mod ring;
mod table;

pub(crate) use coder::Coder;
pub(crate) use packets::{PacketPolicy, PacketTiming, PacketWork};
pub(crate) use progress_set::Exchange;
pub use table::{EXCHANGES, ExchangeEntry, find};

/// The notes of some exchanges, each once.
pub(crate) fn notes<'a>(exchanges: impl IntoIterator<Item = &'a Exchange>) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in exchanges.into_iter().filter_map(Exchange::note) {
        if !notes.iter().any(|known| known == note) {
            notes.push(note.into());
        }
    }
    notes
}

#[cfg(test)]
mod tests;
