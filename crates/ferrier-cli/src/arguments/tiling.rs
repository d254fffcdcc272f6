//! Options about tiles.

use std::str::FromStr;

use clap::Args;
use ferrier::{Overlap, Progress, Tiling};

use super::shape::UserShape;
use super::switches::Pair;
use super::words::{PROGRESS, words};
use crate::failure::{Outcome, fail};

/// Indices in a tile, or `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileWord {
    /// Tiles are tuned in the first runs.
    Auto,
    /// So many indices; 0: one tile.
    Indices(usize),
}

impl FromStr for TileWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(TileWord::Auto),
            _ => text
                .parse()
                .map(TileWord::Indices)
                .map_err(|_| format!("`{text}` is neither a number of indices nor `auto`")),
        }
    }
}

/// Options about tiles. `bench` takes lists and times every combination.
#[derive(Args, Clone, Debug, Default)]
pub struct TilingArgs {
    /// Cut reshapes into tiles of T indices, so that some are in flight while others are transformed; 0:
    /// one tile; auto (bench, solve): tiles are tuned in the first runs. bench takes lists, such as 4,8,16, of this and
    /// the next four options and times every combination
    #[arg(long, value_name = "T,..", value_delimiter = ',')]
    pub tiles: Vec<TileWord>,
    /// Tiles of forward transforms [default: those of --tiles]
    #[arg(long, value_name = "T")]
    pub tiles_forward: Option<usize>,
    /// Tiles of backward transforms [default: those of --tiles]
    #[arg(long, value_name = "T")]
    pub tiles_backward: Option<usize>,
    /// The most tiles in flight at once; 0: each tile is waited for at once, nothing overlaps [default: 2]
    #[arg(long, value_name = "W,..", value_delimiter = ',')]
    pub window: Vec<usize>,
    /// How often a pass over a tile polls the tiles in flight [default: 8]
    #[arg(long, value_name = "F,..", value_delimiter = ',')]
    pub polls: Vec<usize>,
    /// The same for the pass after the exchange [default: as --polls]
    #[arg(long, value_name = "F,..", value_delimiter = ',')]
    pub polls_after: Vec<usize>,
    /// The axis that is cut [default: the one that allows most overlap]
    #[arg(long, value_name = "AXIS,..", value_delimiter = ',', allow_hyphen_values = true)]
    pub cut: Vec<isize>,
    /// Sub-tiles of the pass before an exchange: lines side by side (0: chosen by the kernel) x planes, such as 16x2
    #[arg(long, value_name = "LxP")]
    pub sub_before: Option<Pair>,
    /// Sub-tiles of the pass after an exchange
    #[arg(long, value_name = "LxP")]
    pub sub_after: Option<Pair>,
    /// Transform N arrays of a batch at once, so that the others can be in flight [default: all]
    #[arg(long, value_name = "N")]
    pub arrays: Option<usize>,
    /// How tiles in flight make progress: passes poll, or a thread of each rank polls, which needs a free
    /// core and an MPI that several threads may call
    #[arg(long, value_parser = words(PROGRESS))]
    pub progress: Option<Progress>,
    /// Bytes of a packet of exchange ring, which is encoded, sent and decoded on its own [default: 65536 if messages are
    /// encoded, else 1048576]
    #[arg(long, value_name = "BYTES")]
    pub packet: Option<usize>,
    /// Packets of exchange ring in flight at once [default: 4]
    #[arg(long, value_name = "N")]
    pub packets: Option<usize>,
    /// Lines that are transformed together along strided axes [default: chosen by the kernel]
    #[arg(long, value_name = "LINES")]
    pub block: Option<usize>,
}

impl TilingArgs {
    /// Does this ask for tiles that are tuned in the first runs?
    ///
    /// # Errors
    /// Other tiles are given too.
    pub fn is_auto(&self) -> Outcome<bool> {
        let auto = self.tiles.contains(&TileWord::Auto);
        let more = self.tiles.len() > 1 || self.tiles_forward.is_some() || self.tiles_backward.is_some();
        let more = more || !self.window.is_empty() || !self.polls.is_empty() || !self.cut.is_empty();
        match auto && more {
            true => {
                fail("--tiles auto tunes tiles, window, polls and cut: leave out the other options of tiles")
            }
            false => Ok(auto),
        }
    }

    /// Are there tiles?
    pub fn has_tiles(&self) -> bool {
        !self.tiles.is_empty() || self.tiles_forward.is_some() || self.tiles_backward.is_some()
    }

    /// Every combination of the lists; empty without `--tiles`.
    ///
    /// # Errors
    /// An unknown axis; options of tiles without tiles.
    pub fn tilings(&self, frame: &UserShape) -> Outcome<Vec<Tiling>> {
        let details = !self.window.is_empty() || !self.polls.is_empty() || !self.cut.is_empty();
        let details = details || !self.polls_after.is_empty();
        if (details || self.sub_before.is_some() || self.sub_after.is_some()) && !self.has_tiles() {
            return fail("--window, --polls, --polls-after, --cut and sub-tiles need --tiles");
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
        let mut sizes = Vec::new();
        for word in &self.tiles {
            match word {
                TileWord::Indices(tile) => sizes.push(*tile),
                TileWord::Auto => return fail("--tiles auto is for bench and solve"),
            }
        }
        if sizes.is_empty() && self.has_tiles() {
            sizes.push(0);
        }
        let after: Vec<Option<usize>> = match &self.polls_after[..] {
            [] => vec![None],
            list => list.iter().copied().map(Some).collect(),
        };
        let [before, behind] = [self.sub_before, self.sub_after].map(|pair| pair.map(|pair| pair.0));
        let mut all = Vec::new();
        for &cut in &cuts {
            for &polls_after in &after {
                for polls in or(&self.polls, usual.polls) {
                    for window in or(&self.window, usual.window) {
                        let base = usual.cut(cut).window(window).polls(polls).polls_after(polls_after);
                        let base = base.sub_before(before).sub_after(behind);
                        all.extend(sizes.iter().map(|&tile| base.tile(tile)));
                    }
                }
            }
        }
        Ok(all)
    }

    /// The overlap with these tiles, the given ones of single directions, and the given number of arrays at once.
    pub fn with_tiling(&self, tiling: Tiling) -> Overlap {
        let of = |tile: Option<usize>| vec![tile.map_or(tiling, |tile| tiling.tile(tile))];
        let overlap = Overlap::new().forward(of(self.tiles_forward)).backward(of(self.tiles_backward));
        overlap.arrays(self.arrays.unwrap_or(0))
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
