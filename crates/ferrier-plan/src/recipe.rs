//! Recipes: the steps of a transform as plain data that can be printed, compared and stored.

use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};

use crate::choice::{Compress, MemoryUse, Overlap, RAW};
use crate::kind::{Kind, Sign, names};
use crate::layout::Layout;
use crate::messages::Mechanism;
use crate::modes::{Columns, IndexRun, Keep, Radii, modes, total_len, transformed};
use ferrier_kernel::Precision;

/// One step of a transform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Transforms every line along `axis`; each rank has whole lines.
    Transform {
        /// The transformed axis.
        axis: usize,
        /// The kind of transform.
        kind: Kind,
    },
    /// Moves values to the ranks that the next step needs them on; if the boxes are the same, only to another
    /// memory order.
    Reshape {
        /// The layout before.
        from: Layout,
        /// The layout after.
        to: Layout,
    },
}

/// The steps of `forward`, derived from a [`Problem`](crate::Problem) and a [`Choice`](crate::Choice).
/// `backward` is the same list reversed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recipe {
    /// Lengths of the transforms, in elements.
    pub shape: [usize; 3],
    /// The kind of each axis.
    pub kinds: [Kind; 3],
    /// Whether the input of `forward` is real.
    pub real: bool,
    /// The kept modes of each axis.
    pub keep: [Keep; 3],
    /// The half-open range of points of each axis that the input of `forward` holds; `None`: all points.
    #[serde(rename = "filled")]
    pub support: [Option<(usize, usize)>; 3],
    /// The radii of the ellipsoid of kept modes.
    pub sphere: Option<Radii>,
    /// Whether cosine and sine transforms are orthogonal, in `forward` and in `backward`.
    pub ortho: [bool; 2],
    /// Precision of the scalars.
    pub precision: Precision,
    /// Number of arrays that are transformed together.
    pub batch: usize,
    /// Factor of `forward`.
    pub scale_forward: f64,
    /// Factor of `backward`.
    pub scale_backward: f64,
    /// Whether operators can be applied.
    #[serde(default)]
    pub operators: bool,
    /// The number of points of a long 1-D transform, whose two factors are axes 1 and 2.
    #[serde(default)]
    pub long: Option<usize>,
    /// The sign of the exponent of `forward`.
    #[serde(default, skip_serializing_if = "Sign::is_negative")]
    pub sign: Sign,
    /// Layout of the input of `forward`.
    pub input: Layout,
    /// Layout of the output of `forward`.
    pub output: Layout,
    /// The steps of `forward`, in order.
    pub steps: Vec<Step>,
    /// Name of the exchange.
    pub exchange: String,
    /// Name of the codec; `raw`: messages are not encoded.
    pub codec: String,
    /// Which messages are encoded.
    pub compress: Compress,
    /// Name of the kernel.
    pub kernel: String,
    /// Whether two axes may share a pass, if the choice says so.
    pub fuse: Option<bool>,
    /// The pairs of axes that share a pass, as the cost model decided; `None`: decided by the size of the planes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fused: Option<Vec<[usize; 2]>>,
    /// Tiles of the reshapes.
    pub overlap: Overlap,
    /// Trade-off between memory and speed.
    pub memory: MemoryUse,
}

/// Messages of one step of a recipe in one `forward`, before any codec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepTraffic {
    /// Description of the step, as in `ferrier::StepTime`.
    pub name: String,
    /// Whether no data leaves its rank.
    pub local: bool,
    /// The largest number of bytes that a rank sends.
    pub bytes_max: u64,
    /// The number of bytes that all ranks send.
    pub bytes_total: u64,
    /// The largest number of messages that a rank sends.
    pub messages_max: u64,
    /// The number of messages of all ranks.
    pub messages_total: u64,
}

/// An array between two steps: its layout and whether its elements are real.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The box of each rank.
    pub layout: Layout,
    /// Whether an element is one scalar (real) or two (complex).
    pub real: bool,
}

impl Recipe {
    /// The distribution before the first step and after each step.
    pub fn distributions(&self) -> Vec<Distribution> {
        let mut now = Distribution { layout: self.input.clone(), real: self.real };
        let mut distributions = vec![now.clone()];
        let columns = self.columns();
        for step in &self.steps {
            match step {
                Step::Transform { axis, kind } => {
                    let layout = transformed(&now.layout, *axis, &self.modes(*axis), columns.as_ref());
                    now = Distribution { layout, real: now.real && !kind.is_fourier() };
                }
                Step::Reshape { to, .. } => now.layout = to.clone(),
            }
            distributions.push(now.clone());
        }
        distributions
    }

    /// Whether the input of `forward` is real.
    pub fn is_real(&self) -> bool {
        self.real
    }

    /// Whether the output of `forward` is real.
    pub fn has_real_output(&self) -> bool {
        self.real && !self.kinds.iter().any(|kind| kind.is_fourier())
    }

    /// The points of an axis that the input of `forward` holds.
    pub fn space(&self, axis: usize) -> Vec<IndexRun> {
        match self.support[axis] {
            Some((from, to)) => vec![IndexRun { at: 0, line: from, len: to - from }],
            None => IndexRun::whole(self.shape[axis]),
        }
    }

    /// The modes of an axis that the output of `forward` holds.
    pub fn modes(&self, axis: usize) -> Vec<IndexRun> {
        modes(self.keep[axis], self.sphere, axis, self.kinds[axis], self.shape[axis])
    }

    /// The columns of the sphere, if there is one.
    pub fn columns(&self) -> Option<Columns> {
        self.sphere.map(|radii| Columns::new(radii, self.shape, self.kinds))
    }

    /// The axis along which in-place transforms pad real rows to the size of their spectra: the halved axis, if
    /// all its points and modes are kept.
    pub fn padded_axis(&self) -> Option<usize> {
        let axis = self.kinds.iter().position(|&kind| kind == Kind::Real)?;
        let whole = total_len(&self.space(axis)) == self.shape[axis]
            && total_len(&self.modes(axis)) == self.kinds[axis].modes(self.shape[axis]);
        (whole && self.sphere.is_none()).then_some(axis)
    }

    /// The kind of transform as text: `c2c`, `r2c`, or the kinds of the axes.
    pub fn kind_text(&self) -> String {
        let has_r2r = self.kinds.iter().any(|kind| kind.r2r().is_some());
        match () {
            () if has_r2r => names(self.kinds),
            () if self.kinds.contains(&Kind::Real) => "r2c".into(),
            () => "c2c".into(),
        }
    }

    /// Description of kept modes and of the support, each preceded by a comma; empty if all are kept.
    pub fn modes_text(&self) -> String {
        let by = |shape: [usize; 3]| shape.map(|n| n.to_string()).join("x");
        let mut text = String::new();
        if self.keep != [Keep::All; 3] {
            text += &format!(", {} modes kept", by(std::array::from_fn(|axis| total_len(&self.modes(axis)))));
        }
        if let Some(columns) = self.columns() {
            text += &format!(", a sphere of modes kept in {} columns", columns.count());
        }
        if self.support != [None; 3] {
            text +=
                &format!(", {} points filled", by(std::array::from_fn(|axis| total_len(&self.space(axis)))));
        }
        text
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.input.ranks()
    }

    /// The number of ranks that hold data between the first and the last reshape.
    pub fn inner_ranks(&self) -> usize {
        let held = |layout: &Layout| {
            layout.boxes().iter().rposition(|part| !part.is_empty()).map_or(0, |last| last + 1)
        };
        let states = self.distributions();
        let transformed =
            self.steps.iter().zip(&states).filter(|(step, _)| matches!(step, Step::Transform { .. }));
        transformed.map(|(_, state)| held(&state.layout)).max().unwrap_or(self.ranks()).max(1)
    }

    /// The axes in the order in which `forward` transforms them.
    pub fn axes(&self) -> Vec<usize> {
        let axis = |step: &Step| match step {
            Step::Transform { axis, .. } => Some(*axis),
            Step::Reshape { .. } => None,
        };
        self.steps.iter().filter_map(axis).collect()
    }

    /// Number of reshapes in which data leaves its rank.
    pub fn reshapes(&self) -> usize {
        let moves = |step: &&Step| matches!(step, Step::Reshape { from, to } if from.boxes() != to.boxes());
        self.steps.iter().filter(moves).count()
    }

    /// The layouts that axes are transformed in, on one line, such as `64x1x1: 2+1, 1x64x1: 0`; `+` joins axes that
    /// share a pass, a memory order follows the grid if it is not the one of the output.
    pub fn path_text(&self) -> String {
        let mut text = String::new();
        let mut group: Option<Layout> = None;
        let mut last = None;
        for (step, array) in self.steps.iter().zip(self.distributions()) {
            let Step::Transform { axis, .. } = step else { continue };
            let layout = array.layout;
            let fused = |last: usize| {
                let pairs = self.fused.iter().flatten();
                pairs.into_iter().any(|pair| pair.contains(&last) && pair.contains(axis))
            };
            match &group {
                Some(known) if known.order() == layout.order() && known.grid_text() == layout.grid_text() => {
                    text += if last.is_some_and(fused) { "+" } else { " " };
                }
                _ => {
                    text += if text.is_empty() { "" } else { ", " };
                    text += &layout.grid_text();
                    if layout.order() != self.output.order() {
                        text += &format!(" {}", layout.order());
                    }
                    text += ": ";
                }
            }
            text += &axis.to_string();
            (group, last) = (Some(layout), Some(*axis));
        }
        text
    }

    /// The messages of each step in one `forward`.
    pub fn traffic(&self) -> Vec<StepTraffic> {
        let distributions = self.distributions();
        self.steps
            .iter()
            .zip(&distributions)
            .map(|(step, before)| {
                let name = step_name(step, before.real);
                match step {
                    Step::Transform { .. } => StepTraffic { name, local: true, ..StepTraffic::default() },
                    Step::Reshape { from, to } => self.reshape_traffic(name, from, to, before.real),
                }
            })
            .collect()
    }

    fn reshape_traffic(&self, name: String, from: &Layout, to: &Layout, real: bool) -> StepTraffic {
        let element = (self.precision.bytes() * if real { 1 } else { 2 } * self.batch) as u64;
        let mut traffic = StepTraffic { name, ..StepTraffic::default() };
        for rank in 0..from.ranks() {
            let [elements, messages] = from.sent(to, rank).map(|count| count as u64);
            let bytes = elements * element;
            traffic.bytes_total += bytes;
            traffic.messages_total += messages;
            traffic.bytes_max = traffic.bytes_max.max(bytes);
            traffic.messages_max = traffic.messages_max.max(messages);
        }
        traffic.local = traffic.messages_total == 0;
        traffic
    }

    /// For each step the largest number of messages from one node to another. `nodes` is the node of each rank
    /// (`ferrier::Comm::nodes`).
    pub fn messages_between_nodes(&self, mechanism: Mechanism, nodes: &[usize]) -> Vec<u64> {
        let of = |step: &Step| match step {
            Step::Reshape { from, to } => messages_between_nodes(from, to, mechanism, nodes),
            Step::Transform { .. } => 0,
        };
        self.steps.iter().map(of).collect()
    }

    /// Bytes that all ranks receive from other ranks in one `forward`, before any codec; `ferrier::Plan::wire_bytes`
    /// is after it.
    pub fn wire_bytes(&self) -> u64 {
        self.traffic().iter().map(|t| t.bytes_total).sum()
    }

    /// A hash by which ranks compare their recipes.
    pub fn digest(&self) -> u64 {
        fingerprint(format_args!("{self:?}"))
    }
}

/// A hash of a text by FNV-1a: the same for all builds and machines, unlike the hashers of std.
pub fn fingerprint(text: fmt::Arguments<'_>) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    let _ = hash.write_fmt(text);
    hash.0
}

struct Fnv(u64);

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.0 = text.bytes().fold(self.0, add);
        Ok(())
    }
}

/// The largest number of messages from one node to another in a reshape.
fn messages_between_nodes(from: &Layout, to: &Layout, mechanism: Mechanism, nodes: &[usize]) -> u64 {
    if nodes.iter().all(|node| *node == nodes[0]) {
        return 0;
    }
    let mut ranks: Vec<usize> = (0..nodes.len()).collect();
    ranks.sort_by_key(|&rank| nodes[rank]);
    let mut most = 0;
    let mut messages = vec![0_u64; nodes.iter().max().map_or(0, |last| last + 1)];
    for node in ranks.chunk_by(|&one, &other| nodes[one] == nodes[other]) {
        let mut receivers = Vec::new();
        for &rank in node {
            let targets = to.intersections(&from.boxes()[rank]).into_iter().map(|(target, _)| nodes[target]);
            receivers.extend(targets.filter(|&target| target != nodes[rank]));
        }
        receivers.iter().for_each(|&receiver| messages[receiver] += 1);
        most = receivers.iter().map(|&receiver| messages[receiver]).max().unwrap_or(0).max(most);
        receivers.iter().for_each(|&receiver| messages[receiver] = 0);
    }
    if mechanism == Mechanism::NodeAware { most.min(1) } else { most }
}

/// Description of a step; `real`: the array before it is real.
pub(crate) fn step_name(step: &Step, real: bool) -> String {
    match step {
        Step::Transform { axis, kind: Kind::Real } if real => format!("r2c axis {axis}"),
        Step::Transform { axis, kind: Kind::Real } => format!("c2r axis {axis}"),
        Step::Transform { axis, kind: Kind::Complex } => format!("fft axis {axis}"),
        Step::Transform { axis, kind } => format!("{} axis {axis}", kind.name()),
        Step::Reshape { from, to } if from.boxes() == to.boxes() => {
            format!("reorder {} to {}", from.order(), to.order())
        }
        Step::Reshape { from, to } => format!("reshape {} to {}", from.grid_text(), to.grid_text()),
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.shape;
        writeln!(
            f,
            "{} {} {x}x{y}x{z}, {} ranks, batch {}{}",
            self.kind_text(),
            self.precision.name(),
            self.ranks(),
            self.batch,
            self.modes_text()
        )?;
        write!(f, "exchange {}, kernel {}", self.exchange, self.kernel)?;
        match &*self.codec {
            RAW => writeln!(f)?,
            codec => writeln!(f, ", codec {codec} {}", self.compress.name())?,
        }
        writeln!(f, "in   {} {}", self.input.grid_text(), self.input.order())?;
        for t in self.traffic() {
            if t.local {
                writeln!(f, "     {}", t.name)?;
            } else {
                writeln!(
                    f,
                    "     {}: at most {} bytes in {} messages from a rank, {} bytes in {} messages in all",
                    t.name, t.bytes_max, t.messages_max, t.bytes_total, t.messages_total
                )?;
            }
        }
        write!(f, "out  {} {}", self.output.grid_text(), self.output.order())
    }
}
