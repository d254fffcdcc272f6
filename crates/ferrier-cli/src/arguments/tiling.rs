//! Options about tiles.

use clap::Args;
use ferrier::{Overlap, Progress, Tiling};

use super::shape::UserShape;
use super::words::{PROGRESS, words};
use crate::failure::{Outcome, fail};

/// Options about tiles. `bench` takes lists and times every combination.
#[derive(Args, Clone, Debug, Default)]
pub struct TilingArgs {
    /// Cut reshapes into tiles of T indices, so that some are in flight while others are transformed; 0:
    /// one tile. bench takes lists, such as 4,8,16, of this and the next three options and times every
    /// combination
    #[arg(long, value_name = "T,..", value_delimiter = ',')]
    pub tiles: Vec<usize>,
    /// The most tiles in flight at once [default: 2]
    #[arg(long, value_name = "W,..", value_delimiter = ',', requires = "tiles")]
    pub window: Vec<usize>,
    /// How often a pass over a tile polls the tiles in flight [default: 8]
    #[arg(long, value_name = "F,..", value_delimiter = ',', requires = "tiles")]
    pub polls: Vec<usize>,
    /// The axis that is cut [default: the one that allows most overlap]
    #[arg(
        long,
        value_name = "AXIS,..",
        value_delimiter = ',',
        allow_hyphen_values = true,
        requires = "tiles"
    )]
    pub cut: Vec<isize>,
    /// Transform N arrays of a batch at once, so that the others can be in flight [default: all]
    #[arg(long, value_name = "N")]
    pub arrays: Option<usize>,
    /// How tiles in flight make progress: passes poll, or a thread of each rank polls, which needs a free
    /// core and an MPI that several threads may call
    #[arg(long, value_parser = words(PROGRESS))]
    pub progress: Option<Progress>,
    /// Lines that are transformed together along strided axes [default: chosen by the kernel]
    #[arg(long, value_name = "LINES")]
    pub block: Option<usize>,
}

impl TilingArgs {
    /// Every combination of the lists; empty without `--tiles`.
    ///
    /// # Errors
    /// An unknown axis; a window of 0.
    pub fn tilings(&self, frame: &UserShape) -> Outcome<Vec<Tiling>> {
        if self.window.contains(&0) {
            return fail("--window 0: at least 1 tile must be in flight");
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

    /// The overlap with these tiles and the given number of arrays at once.
    pub fn with_tiling(&self, tiling: Tiling) -> Overlap {
        Overlap::uniform(tiling).arrays(self.arrays.unwrap_or(0))
    }

    /// The overlap, if the options ask for one.
    ///
    /// # Errors
    /// Those of [`tilings`](Self::tilings), and lists of values.
    pub fn overlap(&self, frame: &UserShape) -> Outcome<Option<Overlap>> {
        match self.tilings(frame)?[..] {
            [] => Ok(self.arrays.map(|_| self.with_tiling(Tiling::default()))),
            [one] => Ok(Some(self.with_tiling(one))),
            _ => fail(
                "lists of --tiles, --window, --polls or --cut are for bench only; give one value of each",
            ),
        }
    }
}
