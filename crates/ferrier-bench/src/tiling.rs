//! Tiles of reshapes: the exchange that they need, and how they are printed.

use ferrier::{Choice, Comm, Overlap, Tiling, exchange};

use crate::agree::agree;
use crate::failure::{Outcome, fail};

/// If tiles are asked for, the choice with an exchange that sends messages. Collective.
///
/// # Errors
/// The chosen exchange sends no messages.
pub fn with_messages(comm: &Comm, choice: &Choice) -> Outcome<Choice> {
    let mut choice = choice.clone();
    if choice.overlap.is_none() {
        return Ok(choice);
    }
    let nodes = comm.node_count();
    let fits = match &choice.exchange {
        Some(name) if !exchange::find(name)?.sends_messages(nodes) => {
            let here = if nodes == 1 { " on one node" } else { "" };
            fail(format!("exchange {name} sends no messages{here}, so there is nothing to cut into tiles"))
        }
        _ => Ok(()),
    };
    agree(comm, fits)?;
    if nodes == 1 && choice.exchange.is_none() {
        choice.exchange = Some("all_to_allv".into());
    }
    Ok(choice)
}

/// The tiles of the forward reshapes; reshapes with the same tiles are listed once.
/// `ndim` is the number of axes that the user has.
pub fn overlap_text(overlap: &Overlap, ndim: usize) -> String {
    let mut tilings: Vec<String> = overlap.forward.iter().map(|tiling| tiling_text(tiling, ndim)).collect();
    tilings.dedup();
    let arrays =
        if overlap.arrays > 0 { format!(", {} arrays at once", overlap.arrays) } else { String::new() };
    tilings.join(" / ") + &arrays
}

/// Does anything overlap: more than one tile, or part of a batch at a time?
pub fn is_tiled(overlap: &Overlap) -> bool {
    overlap.arrays > 0 || overlap.forward.iter().any(|tiling| tiling.tile > 0)
}

fn tiling_text(tiling: &Tiling, ndim: usize) -> String {
    if tiling.tile == 0 {
        return "one tile".into();
    }
    let cut = tiling.cut.map_or(String::new(), |axis| format!(" along axis {}", axis + ndim - 3));
    let after = if tiling.after { "" } else { ", before the reshape only" };
    format!("{}{cut}, window {}, polls {}{after}", tiling.tile, tiling.window, tiling.polls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_printed_once() {
        assert_eq!(overlap_text(&Overlap::uniform(Tiling::default()), 3), "one tile");
        assert!(!is_tiled(&Overlap::uniform(Tiling::default())));
    }
}
