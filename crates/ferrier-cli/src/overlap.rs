//! Tiles on the command line: what is cut, and what flies.

use clap::{Args, ValueEnum};
use ferrier::{Choice, Comm, Overlap, Progress, Tiling, exchange};

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
    /// Of a batch, transform so many arrays at once, so that the others fly meanwhile [default: all]
    #[arg(long, value_name = "N")]
    pub arrays: Option<usize>,
    /// Who looks after what flies: passes, or a thread of each rank, which wants a core and an MPI that
    /// more than one thread may call
    #[arg(long, value_enum)]
    pub progress: Option<ProgressName>,
    /// Lines that are transformed together where their elements lie far apart [default: the kernel's own]
    #[arg(long, value_name = "LINES")]
    pub block: Option<usize>,
}

/// Who looks after what flies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressName {
    Poll,
    Thread,
}

impl ProgressName {
    /// As the library calls it.
    pub fn progress(self) -> Progress {
        match self {
            ProgressName::Poll => Progress::Poll,
            ProgressName::Thread => Progress::Thread,
        }
    }
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
                    let tiling = |&tile: &usize| Tiling::new(tile).cut(cut).window(window).polls(polls);
                    all.extend(self.tiles.iter().map(tiling));
                }
            }
        }
        Ok(all)
    }

    /// These tiles, and the lots that were asked for.
    pub fn lots(&self, tiling: Tiling) -> Overlap {
        Overlap::uniform(tiling).arrays(self.arrays.unwrap_or(0))
    }

    /// The one that was asked for, if any.
    ///
    /// # Errors
    /// Those of [`tilings`](Self::tilings), and lists.
    pub fn overlap(&self, frame: &Frame) -> Outcome<Option<Overlap>> {
        match self.tilings(frame)?[..] {
            [] => Ok(self.arrays.map(|_| self.lots(Tiling::default()))),
            [one] => Ok(Some(self.lots(one))),
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

/// What the reshapes of a direction go by, in words; the same for all is said once.
pub fn text(overlap: &Overlap, ndim: usize) -> String {
    let mut said: Vec<String> = overlap.forward.iter().map(|tiling| tiles(tiling, ndim)).collect();
    said.dedup();
    let lots =
        if overlap.arrays > 0 { format!(", {} arrays at once", overlap.arrays) } else { String::new() };
    said.join(" / ") + &lots
}

/// Is anything cut?
pub fn is_cut(overlap: &Overlap) -> bool {
    overlap.arrays > 0 || overlap.forward.iter().any(|tiling| tiling.tile > 0)
}

/// Tiles in words, axes counted as the user does.
fn tiles(tiling: &Tiling, ndim: usize) -> String {
    if tiling.tile == 0 {
        return "a single one".into();
    }
    let cut = tiling.cut.map_or(String::new(), |axis| format!(" along axis {}", axis + ndim - 3));
    let after = if tiling.after { "" } else { ", before the reshape only" };
    format!("{}{cut}, window {}, polls {}{after}", tiling.tile, tiling.window, tiling.polls)
}
