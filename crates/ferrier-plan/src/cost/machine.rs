//! A machine as data: what a node has, and constants of its speed.

use serde::{Deserialize, Serialize};

use super::cache_shape::CacheShape;
use super::constants::{Constants, MeasuredConstants};
use super::families;
use crate::setters::setters;
use crate::speeds::MachineSpeeds;

/// One node of a machine; all nodes are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Machine {
    /// The processor family that constants are assumed for: a name of [`Machine::families`].
    pub family: String,
    /// Cores of a node that ranks may use.
    pub cores: usize,
    /// The level-2 cache of a core.
    pub level2: CacheShape,
    /// The last-level cache.
    pub last_level: CacheShape,
    /// Bytes of a page of memory.
    pub page_bytes: usize,
    /// Bytes of a vector register.
    pub vector_bytes: usize,
    /// The constants in use: assumed for the family, except those in `measured`.
    pub constants: Constants,
    /// The constants that were measured.
    pub measured: MeasuredConstants,
    /// Speed of the network by the size of messages: bytes of a message, ascending, and the part of the speed that
    /// messages of this size reach; none: all of it.
    pub message_efficiency: Vec<[f64; 2]>,
}

/// How much slower stores past the caches may be predicted to be: they leave the caches to loads.
const ALIKE: f64 = 1.06;
/// The part of arrays in the last-level cache from which on they count as cached.
const CACHED: f64 = 0.9;

/// Rows that a kernel loads together. If their distance is a power of two, they fill all ways of a cache set with no more
/// ways than this.
const BUTTERFLY: usize = 16;

/// Part of the bytes that a cache of `room` bytes still holds when all of `bytes` were accessed since.
pub(super) fn held(bytes: f64, room: f64) -> f64 {
    // Caches do not replace the oldest lines exactly: between half and twice their size, some stay.
    (1.0 - (bytes / room).log2()).clamp(0.0, 2.0) / 2.0
}

impl Default for Machine {
    fn default() -> Self {
        Machine::of_family(families::DEFAULT)
    }
}

impl Machine {
    /// The names of the processor families that constants are known for.
    pub fn families() -> impl Iterator<Item = &'static str> {
        families::FAMILIES.iter().map(|family| family.name)
    }

    /// A node with a processor of this family; of the default family if it is unknown.
    pub fn of_family(name: &str) -> Machine {
        let family = families::find(name);
        Machine {
            family: family.name.into(),
            cores: family.cores,
            level2: family.level2,
            last_level: family.last_level,
            page_bytes: 2 << 20,
            vector_bytes: family.vector_bytes,
            constants: (family.constants)(),
            measured: MeasuredConstants::default(),
            message_efficiency: Vec::new(),
        }
    }

    /// The family of a processor with this model name, followed by `family N` where the system says so, and vectors of so
    /// many bytes.
    pub fn family_of(processor: &str, vector_bytes: usize) -> &'static str {
        families::of_processor(processor, vector_bytes)
    }

    setters! {
        /// Sets the cores of a node.
        cores(cores: usize) = cores.max(1);
        /// Sets the level-2 cache of a core.
        level2(cache: CacheShape) = cache;
        /// Sets the last-level cache.
        last_level(cache: CacheShape) = cache;
        /// Sets the bytes of a page.
        page_bytes(bytes: usize) = bytes.max(1);
        /// Sets the bytes of a vector register.
        vector_bytes(bytes: usize) = bytes.max(8);
        /// Sets all constants.
        constants(constants: Constants) = constants;
        /// Sets the speed of the network by the size of messages.
        message_efficiency(points: Vec<[f64; 2]>) = points;
    }

    /// The part of the network's speed that messages of so many bytes reach, from 0 to 1: between the points of
    /// [`message_efficiency`](Self::message_efficiency) in proportion to the logarithm of the size.
    pub fn efficiency(&self, bytes: f64) -> f64 {
        let points = &self.message_efficiency;
        let after = points.partition_point(|[size, _]| *size <= bytes);
        let part = match (after.checked_sub(1).map(|at| points[at]), points.get(after)) {
            (None, None) => 1.0,
            (Some([_, part]), None) => part,
            (None, Some([_, part])) => *part,
            (Some([low, from]), Some([high, to])) => {
                from + (to - from) * (bytes / low).ln() / (high / low).ln()
            }
        };
        part.clamp(1e-3, 1.0)
    }

    /// Whether stores past the caches are faster for arrays of so many bytes on a node: cached ones load each cache line
    /// first, and leave the next pass what is still in the last-level cache.
    pub fn streams(&self, node_bytes: f64) -> bool {
        let Constants { last_level_busy_bytes_s, memory_bytes_s, memory_node_bytes_s, allocate, .. } =
            self.constants;
        let near = 1.0 / last_level_busy_bytes_s;
        let far = 1.0 / memory_bytes_s.min(memory_node_bytes_s / self.cores as f64);
        let kept = self.last_level_kept(node_bytes);
        // Whatever was measured: arrays that the cache holds stay in it.
        kept < CACHED && 2.0 * far < ALIKE * (2.0 + allocate) * (kept * near + (1.0 - kept) * far)
    }

    /// Whether the ranks of a node have more input and output than half of the last cache (measured: two cores
    /// that share 48 MiB gain at 128^3 complex f64, two with a larger one lose there and gain at 192^3), or so much, work
    /// arrays of several ranks included, that too little of it is in the part of the cache that they have.
    pub fn streams_arrays(&self, ranks: usize, [input, output]: [usize; 2]) -> bool {
        let work = if ranks > 1 { input.max(output) } else { 0 };
        input + output > self.last_level.bytes / 2 || self.streams((input + output + work) as f64)
    }

    /// Whether rows that meet in few sets of a cache are staged, where ranks have so many threads and so many cores are busy.
    pub fn stages(&self, threads: usize, busy: usize) -> bool {
        let Constants { memory_bytes_s, memory_node_bytes_s, .. } = self.constants;
        let busy = busy.clamp(1, self.cores) as f64;
        let again = self.conflict_part(threads as f64) / memory_bytes_s.min(memory_node_bytes_s / busy);
        self.level2.ways <= BUTTERFLY && self.staging_seconds() < again
    }

    /// How often a row of lines that meets others in few sets is loaded again.
    pub(super) fn conflict_part(&self, threads: f64) -> f64 {
        self.constants.line_conflict + self.constants.neighbours * (1.0 - 2.0 / threads).max(0.0)
    }

    /// Seconds per byte of staging.
    pub(super) fn staging_seconds(&self) -> f64 {
        self.constants.staging / self.constants.memory_bytes_s
    }

    /// Part of arrays of so many bytes on a node that is in the last-level cache when they are accessed again.
    pub(super) fn last_level_kept(&self, node_bytes: f64) -> f64 {
        let caches = (self.cores as f64 / self.last_level.cores as f64).max(1.0);
        let room = self.constants.last_level_part.clamp(0.01, 1.0) * self.last_level.bytes as f64 * caches;
        let random = self.constants.last_level_random.clamp(0.0, 1.0);
        (1.0 - random) * held(node_bytes, room) + random * (room / node_bytes.max(1.0)).min(1.0)
    }

    /// The machine with these measured speeds in place of assumed ones.
    #[must_use]
    pub fn with_speeds(mut self, speeds: &MachineSpeeds) -> Self {
        // Files of older versions have three speeds; what they say of messages holds for ranks of a node and of
        // several, because they were measured among the ranks at hand.
        let old = MeasuredConstants::default()
            .node_latency_s(speeds.latency_s)
            .node_gap_s(speeds.latency_s)
            .node_bytes_s(speeds.wire_bytes_s)
            .wire_latency_s(speeds.latency_s)
            .wire_gap_s(speeds.latency_s)
            .wire_bytes_s(speeds.wire_bytes_s);
        self.constants = self.constants.with(&old).with(&speeds.constants);
        self.measured = speeds.constants;
        self
    }

    /// Whether some constants were measured.
    pub fn is_measured(&self) -> bool {
        !self.measured.is_empty()
    }

    /// One line that says where the constants come from.
    pub fn origin(&self) -> String {
        match self.measured.list().len() {
            0 => format!("constants assumed for {}", self.family),
            count => {
                let all = self.constants.list().len();
                format!("{count} of {all} constants measured, the others assumed for {}", self.family)
            }
        }
    }
}
