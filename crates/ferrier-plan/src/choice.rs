//! Everything that may be tuned.

use serde::{Deserialize, Serialize};

/// Which intermediate layouts a recipe may go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decomposition {
    /// One axis is split: fewer reshapes, more messages each.
    Slab,
    /// Two axes are split: more reshapes, each within a row of ranks.
    Pencil,
}

/// How much memory a plan may take for speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryUse {
    /// Padded strides and whole planes in scratch.
    #[default]
    Fast,
    /// No padding, no planes in scratch.
    Small,
}

/// What is encoded where a codec or a tolerance was asked for. What a rank
/// keeps for itself never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compress {
    /// What crosses between nodes.
    BetweenNodes,
    /// What crosses between ranks.
    BetweenRanks,
}

impl Compress {
    /// All of them.
    pub const ALL: [Compress; 2] = [Compress::BetweenNodes, Compress::BetweenRanks];

    /// The name users type.
    pub fn name(self) -> &'static str {
        match self {
            Compress::BetweenNodes => "between-nodes",
            Compress::BetweenRanks => "between-ranks",
        }
    }
}

/// How a reshape is cut into tiles, so that some fly while others are transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tiling {
    /// The axis that is cut; where it is `None`, one that lets most overlap.
    /// An axis that the reshape leaves alone lets both neighbouring passes
    /// overlap; cutting one that is transformed forbids to fuse it.
    pub cut: Option<usize>,
    /// Indices in a tile; 0 is short for all of them.
    pub tile: usize,
    /// The most tiles that fly at once, at least one.
    pub window: usize,
    /// How often a pass over a tile looks after those that fly.
    pub polls: usize,
    /// May the pass after the reshape go tile by tile too? Otherwise only the
    /// one before it does, as in most published schemes.
    #[serde(default = "yes")]
    pub after: bool,
}

fn yes() -> bool {
    true
}

impl Default for Tiling {
    /// A single tile.
    fn default() -> Self {
        Tiling { cut: None, tile: 0, window: 2, polls: 8, after: true }
    }
}

/// Who looks after exchanges that fly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Progress {
    /// Passes do, now and then; see [`Tiling::polls`].
    #[default]
    Poll,
    /// A thread of each rank does. It wants a core, and a transport that more
    /// than one thread of a process may call; elsewhere passes do.
    Thread,
}

/// The tiles of the reshapes of a plan, in the order in which each direction
/// comes to them. A list that is too short goes on with its last entry, an
/// empty one means a single tile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Overlap {
    /// Of `forward`.
    pub forward: Vec<Tiling>,
    /// Of `backward`.
    pub backward: Vec<Tiling>,
    /// Where several arrays are transformed together, how many go at once: the
    /// others are transformed while these fly. 0 is short for all of them.
    #[serde(default)]
    pub arrays: usize,
}

impl Overlap {
    /// The same for all reshapes of both directions.
    pub fn uniform(tiling: Tiling) -> Overlap {
        Overlap { forward: vec![tiling], backward: vec![tiling], arrays: 0 }
    }
}

/// What the planner may be told; what is `None` it decides itself. Nothing
/// here but a lossy codec changes the result beyond rounding, and only `axes`
/// and `kernel` change that.
///
/// To let the tuner decide a new field, add a line to the table of knobs in
/// `tune/knobs.rs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Choice {
    /// How values move between ranks; a name from
    /// [`EXCHANGES`](crate::exchange::EXCHANGES).
    pub exchange: Option<String>,
    /// How values are encoded on their way; a name from
    /// [`CODECS`](crate::codec::CODECS), with its parameter. By default they go
    /// as they are or, where the problem has a tolerance, with the codec that
    /// keeps it in the fewest bytes.
    pub codec: Option<String>,
    /// What is encoded; by default what crosses between nodes, or between
    /// ranks where there is only one node.
    pub compress: Option<Compress>,
    /// What transforms lines; a name from [`KERNELS`](crate::kernel::KERNELS).
    pub kernel: Option<String>,
    /// Through slabs or through pencils.
    pub path: Option<Decomposition>,
    /// The order in which axes are transformed (forward); the halved axis of
    /// a real transform must be first.
    pub axes: Option<Vec<usize>>,
    /// How many ranks hold data between the first and the last reshape.
    pub ranks: Option<usize>,
    /// The rank grid between the first and the last reshape: into how many
    /// parts the two split axes are cut; their product is the number of ranks
    /// that hold data there.
    pub grid: Option<[usize; 2]>,
    /// Two axes in one pass over memory, plane by plane.
    pub fuse: Option<bool>,
    /// Whether lines that do not go back where they came from are written
    /// past the caches; by default where the arrays are larger than those.
    pub stream: Option<bool>,
    /// Whether lines whose elements lie far apart are taken along, in copies,
    /// while those before them are transformed; by default where a core's
    /// second-level cache has few places for them.
    #[serde(rename = "pockets")]
    pub staging: Option<bool>,
    /// Threads inside each rank; by default those of the communicator, or
    /// fewer where there is too little work for them.
    pub threads: Option<usize>,
    /// Reshapes that fly in tiles; for exchanges that send messages.
    pub overlap: Option<Overlap>,
    /// Who looks after what flies; passes, where it is not said.
    pub progress: Option<Progress>,
    /// Lines that are loaded, transformed and stored together where their
    /// elements lie far apart: the sub-tiles of the literature. By default what
    /// the kernel does best with.
    pub block: Option<usize>,
    /// Speed against space.
    pub memory: MemoryUse,
}
