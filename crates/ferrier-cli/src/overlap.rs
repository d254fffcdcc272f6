//! Tiles on the command line: what is cut, and what flies.

use clap::Args;
use ferrier::{Choice, Comm, Overlap, Tiling, exchange};

use crate::failure::{Outcome, fail};
use crate::session;
use crate::shape::Frame;

/// Options about tiles. `bench` takes lists, of which it tries every combination.
#[derive(Args, Clone, Debug, Default)]
pub struct TilingArgs {
    /// Cut reshapes into tiles of T indices, so that some fly while others are transformed; 0: a single
    /// one. With bench a list, such as 4,8,16, is a sweep; so are lists of the next three
    #[arg(long, value_name = "T,..", value_delimiter = ',')]
    pub tiles: Vec<usize>,
    /// The most tiles that fly at once [default: 2]
    #[arg(long, value_name = "W,..", value_delimiter = ',', requires = "tiles")]
    pub window: Vec<usize>,
    /// How often a pass over a tile looks after those that fly [default: 8]
    #[arg(long, value_name = "F,..", value_delimiter = ',', requires = "tiles")]
    pub polls: Vec<usize>,
    /// The axis that is cut [default: the one that lets most overlap]
    #[arg(
        long,
        value_name = "AXIS,..",
        value_delimiter = ',',
        allow_hyphen_values = true,
        requires = "tiles"
    )]
    pub cut: Vec<isize>,
}

impl TilingArgs {
    /// Every combination that was asked for; none where nothing was.
    ///
    /// # Errors
    /// An axis that is not there, a window in which nothing flies.
    pub fn tilings(&self, frame: &Frame) -> Outcome<Vec<Tiling>> {
        if self.window.contains(&0) {
            return fail("--window 0: at least 1 tile must fly");
        }
        let usual = Tiling::default();
        let or = |list: &[usize], value: usize| if list.is_empty() { vec![value] } else { list.to_vec() };
        let mut cuts = Vec::new();
        for &axis in &self.cut {
            cuts.push(Some(frame.axis(axis, "--cut")?));
        }
        if cuts.is_empty() {
            cuts.push(None);
        }
        let mut all = Vec::new();
        for &cut in &cuts {
            for polls in or(&self.polls, usual.polls) {
                for window in or(&self.window, usual.window) {
                    let tiling = |&tile: &usize| Tiling { cut, tile, window, polls, after: true };
                    all.extend(self.tiles.iter().map(tiling));
                }
            }
        }
        Ok(all)
    }

    /// The one that was asked for, if any.
    ///
    /// # Errors
    /// Those of [`tilings`](Self::tilings), and lists.
    pub fn overlap(&self, frame: &Frame) -> Outcome<Option<Overlap>> {
        match self.tilings(frame)?[..] {
            [] => Ok(None),
            [one] => Ok(Some(Overlap::uniform(one))),
            _ => fail("lists of --tiles, --window, --polls or --cut are for bench: here one of each"),
        }
    }
}

/// The choice with an exchange that has something to cut, where tiles were
/// asked for. Collective.
///
/// # Errors
/// An exchange was asked for that sends no messages.
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
    session::agree(comm, fits)?;
    if nodes == 1 && choice.exchange.is_none() {
        choice.exchange = Some("all_to_allv".into());
    }
    Ok(choice)
}

/// Tiles in words, axes counted as the user does.
pub fn text(tiling: &Tiling, ndim: usize) -> String {
    if tiling.tile == 0 {
        return "a single one".into();
    }
    let cut = tiling.cut.map_or(String::new(), |axis| format!(" along axis {}", axis + ndim - 3));
    let after = if tiling.after { "" } else { ", before the reshape only" };
    format!("{}{cut}, window {}, polls {}{after}", tiling.tile, tiling.window, tiling.polls)
}
