//! What a design may decide besides layouts.

use super::designer::mean_seconds;
use crate::choice::{Choice, Overlap, Tiling};
use crate::cost::{Machine, Setting};
use crate::messages::Mechanism;
use crate::problem::Problem;
use crate::recipe::Recipe;

/// What a design may decide besides layouts, where the choice leaves it open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Freedom<'a> {
    /// Exchanges besides the one of the choice, and how they move data on these nodes.
    pub exchanges: &'a [(&'static str, Mechanism)],
    /// Whether fewer ranks than there are may hold data between the first and the last reshape.
    pub ranks: bool,
    /// Whether reshapes may be cut into tiles.
    pub tiles: bool,
    /// Whether the order of the axes, which shows in bits, is decided for the nodes and the machine at hand; not if
    /// results must be reproducible or the output is left to the planner.
    pub axes: bool,
}

/// Elements of a rank up to which fewer ranks may be faster: with more, the work of a pass outweighs a barrier or a
/// message by far.
const FEW_ELEMENTS: usize = 1 << 14;

/// Elements from which other exchanges are tried, and fewer ranks where they take turns: the overheads that decide between them
/// for less are not known so well.
const MANY_ELEMENTS: usize = 1 << 18;

/// Ranks up to which fewer ranks and other exchanges are tried: a search takes longer with more.
const MOST_RANKS: usize = 4096;

/// Parts of the longest axis that tiles are tried for.
const PARTS: [usize; 6] = [2, 4, 8, 16, 32, 64];

/// Tiles in flight that are tried.
const WINDOWS: [usize; 2] = [2, 4];

/// Tiles must be predicted to be so many times as fast as none.
const WORTHWHILE: f64 = 1.05;

impl<'a> Freedom<'a> {
    crate::setters::setters! {
        /// Sets the other exchanges to compare with.
        exchanges(list: &'a [(&'static str, Mechanism)]) = list;
        /// Sets whether fewer ranks may hold data.
        ranks(yes: bool) = yes;
        /// Sets whether reshapes may be cut into tiles.
        tiles(yes: bool) = yes;
        /// Sets whether the order of the axes is decided for the nodes and the machine at hand.
        axes(yes: bool) = yes;
    }

    /// The exchanges that are worth a look.
    pub(super) fn other_exchanges(&self, problem: &Problem, ranks: usize) -> &'a [(&'static str, Mechanism)] {
        if ranks <= MOST_RANKS && elements(problem) >= MANY_ELEMENTS { self.exchanges } else { &[] }
    }
}

/// Numbers of ranks that are worth a look besides all of `ranks`: as many as have a core each where they take turns, and
/// fewer for small arrays of several nodes.
pub(super) fn fewer_ranks(
    problem: &Problem,
    choice: &Choice,
    setting: &Setting<'_>,
    (ranks, machine): (usize, &Machine),
) -> Vec<usize> {
    let elements = elements(problem);
    if choice.ranks.is_some() || choice.grid.is_some() || ranks > MOST_RANKS {
        return Vec::new();
    }
    let mut counts = Vec::new();
    let (here, threads) = (setting.ranks_on_host(0, ranks), setting.threads.max(1));
    if here == ranks && here * threads > machine.cores && elements >= MANY_ELEMENTS {
        counts.push(machine.cores / threads);
    }
    if several_nodes(setting) && elements / ranks.max(1) <= FEW_ELEMENTS {
        counts.extend([ranks / 2, ranks / 4, ranks / 16, 1]);
    }
    counts.retain(|&count| (1..ranks).contains(&count));
    counts.dedup();
    counts
}

fn elements(problem: &Problem) -> usize {
    problem.shape.iter().product::<usize>() * problem.batch
}

fn several_nodes(setting: &Setting<'_>) -> bool {
    setting.nodes.iter().any(|node| *node != setting.nodes[0])
}

/// The recipe with the tiles that are predicted to be fastest, where messages go between nodes; without if they hardly
/// gain.
pub(super) fn tiled(recipe: Recipe, seconds: f64, setting: &Setting<'_>, machine: &Machine) -> (Recipe, f64) {
    // Where ranks share cores, one computes while another waits for its messages.
    let shared = setting.ranks_on_host(0, recipe.ranks()) * setting.threads > machine.cores;
    if !several_nodes(setting)
        || shared
        || setting.mechanism == Mechanism::SharedMemory
        || recipe.reshapes() == 0
    {
        return (recipe, seconds);
    }
    let longest = recipe.shape.into_iter().max().unwrap_or(1);
    // With more ranks fewer tiles are compared: a prediction takes longer.
    let every = if recipe.ranks() > MOST_RANKS { 3 } else { 1 };
    let tiles =
        PARTS.iter().skip(every / 3).step_by(every).filter(|parts| **parts <= longest).flat_map(|parts| {
            WINDOWS.map(|window| Overlap::uniform(Tiling::new(longest.div_ceil(*parts)).window(window)))
        });
    let chunks = PARTS.iter().filter(|parts| **parts <= recipe.batch);
    let chunks = chunks.map(|parts| Overlap::default().arrays(recipe.batch.div_ceil(*parts)));
    let mut best = (recipe.clone(), seconds);
    for overlap in tiles.chain(chunks) {
        let other = Recipe { overlap, ..recipe.clone() };
        let seconds = mean_seconds(&other, setting, machine);
        if seconds < best.1 {
            best = (other, seconds);
        }
    }
    if best.1 * WORTHWHILE < seconds { best } else { (recipe, seconds) }
}
