//! Tunable parameters of a plan.

use serde::{Deserialize, Serialize};

use crate::setters::setters;

/// The codec that leaves scalars as they are.
pub const RAW: &str = "raw";

/// Shape of the layouts between the first and the last reshape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decomposition {
    /// One axis is split: fewer reshapes, more messages each.
    Slab,
    /// Two axes are split: more reshapes, each within a row or column of the rank grid.
    Pencil,
}

/// Trade-off between memory and speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryUse {
    /// Padded strides in work arrays, whole planes in scratch.
    #[default]
    Fast,
    /// No padding, no planes in scratch.
    Small,
}

/// Which messages are encoded, given a codec or a tolerance. Data that stays on its rank is never encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compress {
    /// Messages between nodes.
    BetweenNodes,
    /// All messages between ranks.
    BetweenRanks,
}

impl Compress {
    /// All variants.
    pub const ALL: [Compress; 2] = [Compress::BetweenNodes, Compress::BetweenRanks];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Compress::BetweenNodes => "between-nodes",
            Compress::BetweenRanks => "between-ranks",
        }
    }
}

/// How a reshape is cut into tiles, so that some tiles are in flight while others are transformed.
///
/// ```
/// let tiling = ferrier::Tiling::new(16).window(4);
/// assert_eq!((tiling.tile, tiling.window, tiling.cut), (16, 4, None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tiling {
    /// The axis that is cut; `None`: the axis that allows the most overlap.
    /// An axis that the reshape does not redistribute lets both neighbouring passes overlap. An axis
    /// that a neighbouring pass transforms cannot be fused with another one when it is cut.
    pub cut: Option<usize>,
    /// Indices of the cut axis in a tile; 0: a single tile.
    pub tile: usize,
    /// The largest number of tiles in flight. 0: every tile is waited for as soon as it is started, so that nothing
    /// overlaps.
    pub window: usize,
    /// How many times a pass over a tile polls the transfers in flight.
    pub polls: usize,
    /// The same for the pass after the reshape; `None`: as often as the pass before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polls_after: Option<usize>,
    /// Sub-tiles of the pass before the reshape: lines side by side (0: as many as suit the kernel), and planes, that
    /// are loaded, transformed and stored together. Passes that transform two axes at once go by planes instead.
    /// `None`: what suits the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_before: Option<[usize; 2]>,
    /// The same for the pass after the reshape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_after: Option<[usize; 2]>,
    /// Whether the pass after the reshape may go tile by tile too. Otherwise only the pass before it does,
    /// as in most published schemes.
    #[serde(default = "yes")]
    pub after: bool,
}

fn yes() -> bool {
    true
}

impl Tiling {
    /// Tiles of `tile` indices (0: a single tile), 2 of them in flight, 8 polls in a pass.
    pub const fn new(tile: usize) -> Self {
        Tiling {
            cut: None,
            tile,
            window: 2,
            polls: 8,
            polls_after: None,
            sub_before: None,
            sub_after: None,
            after: true,
        }
    }

    setters! {
        /// Sets the axis that is cut; `None` leaves it to the planner.
        cut(axis: impl Into<Option<usize>>) = axis.into();
        /// Sets the number of indices in a tile; 0: a single tile.
        tile(indices: usize) = indices;
        /// Sets the largest number of tiles in flight; 0: each is waited for at once.
        window(tiles: usize) = tiles;
        /// Sets how many times a pass over a tile polls the transfers in flight.
        polls(polls: usize) = polls;
        /// Sets how many times the pass after the reshape polls.
        polls_after(polls: impl Into<Option<usize>>) = polls.into();
        /// Sets the sub-tiles of the pass before the reshape: lines side by side, and planes.
        sub_before(block: impl Into<Option<[usize; 2]>>) = block.into();
        /// Sets the sub-tiles of the pass after the reshape.
        sub_after(block: impl Into<Option<[usize; 2]>>) = block.into();
        /// Sets whether the pass after the reshape may go tile by tile.
        after(yes: bool) = yes;
    }
}

impl Default for Tiling {
    /// A single tile.
    fn default() -> Self {
        Tiling::new(0)
    }
}

/// How transfers in flight make progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Progress {
    /// Passes poll now and then; see [`Tiling::polls`].
    #[default]
    Poll,
    /// A thread of each rank polls. It needs a core, and a transport that several threads of a process may
    /// call; otherwise passes poll.
    Thread,
}

/// The tiles of the reshapes of a plan, in the order in which each direction performs them. A list that is
/// shorter than the number of reshapes repeats its last entry; an empty list means a single tile each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Overlap {
    /// Tilings of `forward`.
    pub forward: Vec<Tiling>,
    /// Tilings of `backward`.
    pub backward: Vec<Tiling>,
    /// Arrays of a batch chunk: a batch is transformed in chunks of this many arrays, and some chunks are in
    /// flight while others are transformed. 0: the whole batch at once.
    #[serde(default)]
    pub arrays: usize,
}

impl Overlap {
    /// No tiles.
    pub fn new() -> Self {
        Overlap::default()
    }

    /// The same tiling for all reshapes of both directions.
    pub fn uniform(tiling: Tiling) -> Overlap {
        Overlap { forward: vec![tiling], backward: vec![tiling], arrays: 0 }
    }

    setters! {
        /// Sets the tilings of `forward`.
        forward(tilings: impl Into<Vec<Tiling>>) = tilings.into();

        /// Sets the tilings of `backward`.
        backward(tilings: impl Into<Vec<Tiling>>) = tilings.into();

        /// Sets the number of arrays in a batch chunk; 0: the whole batch at once.
        arrays(arrays: usize) = arrays;
    }
}

/// Decisions of the user; the planner decides those that are `None`. Only a lossy codec changes results beyond
/// rounding; of the rest only `axes` and `kernel` change rounding.
///
/// To let the tuner decide a new field, add a line to the table of tunables in `planner/tune/tunables.rs` of
/// crate `ferrier`.
///
/// ```
/// use ferrier::Choice;
/// let choice = Choice::new().exchange("ring").grid([2, 2]);
/// assert_eq!(choice.exchange.as_deref(), Some("ring"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Choice {
    /// How values move between ranks: a name from `ferrier::exchange::EXCHANGES`.
    pub exchange: Option<String>,
    /// How messages are encoded: a name from `ferrier::codec::CODECS`, with its parameter. By default they are
    /// not encoded or, if the problem has a tolerance, encoded by the codec that keeps it in the fewest bytes.
    pub codec: Option<String>,
    /// Which messages are encoded; by default those between nodes, or between ranks on a single node.
    pub compress: Option<Compress>,
    /// The 1-D transforms: a name from `ferrier::kernel::KERNELS`.
    pub kernel: Option<String>,
    /// Slabs or pencils between the first and the last reshape.
    #[serde(rename = "path")]
    pub decomposition: Option<Decomposition>,
    /// The order in which `forward` transforms the axes; the halved axis of a real transform must be first.
    /// Axes of one point, which are not transformed, may be left out.
    pub axes: Option<Vec<usize>>,
    /// The number of ranks that hold data between the first and the last reshape; by default all, or fewer if an array is
    /// small.
    pub ranks: Option<usize>,
    /// The rank grid between the first and the last reshape: the number of parts of the two split axes.
    /// The product is the number of ranks that hold data there.
    pub grid: Option<[usize; 2]>,
    /// Whether two axes are transformed in one pass over memory, plane by plane.
    pub fuse: Option<bool>,
    /// Whether arrays are stored in another memory order before an axis is transformed, so that its lines are contiguous
    /// (`true`), or layouts between steps keep the memory order of the output (`false`); by default what takes less
    /// time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<bool>,
    /// Whether stores bypass the caches when lines are not stored where they were loaded from; by default if
    /// the arrays are larger than the caches.
    pub stream: Option<bool>,
    /// Whether the strided rows of the next block are copied to a staging buffer while the current block is
    /// transformed, which avoids cache-set conflicts; by default if the second-level cache has few ways.
    #[serde(rename = "pockets")]
    pub staging: Option<bool>,
    /// Threads in each rank; by default those of the communicator, or fewer for a small problem.
    pub threads: Option<usize>,
    /// Tiles of the reshapes, for exchanges that send messages. By default none or, where the exchange is left to the
    /// planner and sends messages between nodes, those that the cost model predicts to be fastest.
    pub overlap: Option<Overlap>,
    /// How transfers in flight make progress; by default passes poll.
    pub progress: Option<Progress>,
    /// Lines that are loaded, transformed and stored together if their elements are strided (sub-tiles in the
    /// literature); by default what suits the kernel.
    pub block: Option<usize>,
    /// Bytes of a packet of exchange `ring`, which is encoded, sent and decoded as a whole; by default 64 KiB for
    /// encoded messages and 1 MiB for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<usize>,
    /// Packets of exchange `ring` that a rank has in flight at once; by default 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<usize>,
    /// Trade-off between memory and speed.
    pub memory: MemoryUse,
}

impl Choice {
    /// Everything is left to the planner.
    pub fn new() -> Self {
        Choice::default()
    }

    setters! {
        /// Sets the exchange by name.
        exchange(name: impl Into<String>) = Some(name.into());

        /// Sets the codec by name.
        codec(name: impl Into<String>) = Some(name.into());

        /// Sets which messages are encoded.
        compress(compress: impl Into<Option<Compress>>) = compress.into();

        /// Sets the kernel by name.
        kernel(name: impl Into<String>) = Some(name.into());

        /// Sets slabs or pencils.
        decomposition(decomposition: impl Into<Option<Decomposition>>) = decomposition.into();

        /// Sets the order in which `forward` transforms the axes.
        axes(axes: impl Into<Vec<usize>>) = Some(axes.into());

        /// Sets the number of ranks that hold data between the first and the last reshape.
        ranks(ranks: impl Into<Option<usize>>) = ranks.into();

        /// Sets the rank grid between the first and the last reshape.
        grid(grid: impl Into<Option<[usize; 2]>>) = grid.into();

        /// Sets whether two axes are transformed in one pass.
        fuse(yes: impl Into<Option<bool>>) = yes.into();

        /// Sets whether lines are made contiguous before they are transformed.
        reorder(yes: impl Into<Option<bool>>) = yes.into();

        /// Sets whether stores bypass the caches.
        stream(yes: impl Into<Option<bool>>) = yes.into();

        /// Sets whether strided rows are copied to a staging buffer ahead of their transform.
        staging(yes: impl Into<Option<bool>>) = yes.into();

        /// Sets the number of threads in each rank.
        threads(threads: impl Into<Option<usize>>) = threads.into();

        /// Sets the tiles of the reshapes.
        overlap(overlap: impl Into<Option<Overlap>>) = overlap.into();

        /// Sets how transfers in flight make progress.
        progress(progress: impl Into<Option<Progress>>) = progress.into();

        /// Sets the number of strided lines in a block.
        block(lines: impl Into<Option<usize>>) = lines.into();

        /// Sets the bytes of a packet of exchange `ring`.
        packet(bytes: impl Into<Option<usize>>) = bytes.into();

        /// Sets how many packets of exchange `ring` a rank has in flight at once.
        packets(packets: impl Into<Option<usize>>) = packets.into();

        /// Sets the trade-off between memory and speed.
        memory(memory: MemoryUse) = memory;
    }
}
