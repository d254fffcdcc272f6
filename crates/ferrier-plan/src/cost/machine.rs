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

    /// The family of a processor with this model name and vectors of so many bytes.
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
