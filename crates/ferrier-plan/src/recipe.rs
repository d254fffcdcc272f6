//! The list of steps: plain data that can be printed, compared and stored.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::kind::names;
use crate::messages::Mechanism;
use crate::modes::{Columns, IndexRun, Radii, modes, total_len, transformed};
use crate::{Box3, Compress, Keep, Kind, Layout, Precision};

/// One step of a transform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Every line along `axis` is transformed; each rank has whole lines.
    Transform {
        /// Which axis.
        axis: usize,
        /// What kind of transform.
        kind: Kind,
    },
    /// Values move to the ranks (or, where the boxes are the same, only to
    /// the places in memory) that the next step wants them in.
    Reshape {
        /// Where they are.
        from: Layout,
        /// Where they go.
        to: Layout,
    },
}

/// What a [`Problem`](crate::Problem) and a [`Choice`](crate::Choice) become:
/// the steps of `forward`. `backward` is the same list reversed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recipe {
    /// Lengths of the transforms.
    pub shape: [usize; 3],
    /// Kind of each axis.
    pub kinds: [Kind; 3],
    /// Are values real before `forward`?
    pub real: bool,
    /// Modes that are kept of each axis.
    pub keep: [Keep; 3],
    /// Points of each axis that there are before `forward`, where not all.
    #[serde(rename = "filled")]
    pub support: [Option<(usize, usize)>; 3],
    /// The radii of the ellipsoid of modes that are kept, where there is one.
    pub sphere: Option<Radii>,
    /// Are cosines and sines orthogonal forward, backward?
    pub ortho: [bool; 2],
    /// Precision of the numbers.
    pub precision: Precision,
    /// Arrays transformed together.
    pub batch: usize,
    /// Factor of `forward`.
    pub scale_forward: f64,
    /// Factor of `backward`.
    pub scale_backward: f64,
    /// Can operators be applied?
    #[serde(default)]
    pub operators: bool,
    /// The points of a long 1-D transform, whose two factors are axes 1 and 2.
    #[serde(default)]
    pub long: Option<usize>,
    /// Where the input lies.
    pub input: Layout,
    /// Where the output lies.
    pub output: Layout,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// How values move between ranks.
    pub exchange: String,
    /// How values are encoded on their way; `raw`: not at all.
    pub codec: String,
    /// What is encoded.
    pub compress: Compress,
    /// What transforms lines.
    pub kernel: String,
    /// May two axes share a pass?
    pub fuse: Option<bool>,
    /// How reshapes fly.
    pub overlap: crate::Overlap,
    /// Speed against space.
    pub memory: crate::MemoryUse,
}

/// What one step of a recipe moves in one `forward`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepTraffic {
    /// The step in words, as in [`StepTime`](crate::StepTime).
    pub name: String,
    /// Does nothing leave its rank?
    pub local: bool,
    /// The most that any rank sends, in bytes.
    pub bytes_max: u64,
    /// What all ranks send together.
    pub bytes_total: u64,
    /// The most messages that any rank sends.
    pub messages_max: u64,
    /// The messages of all ranks.
    pub messages_total: u64,
}

/// An array between two steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    pub layout: Layout,
    pub real: bool,
}

impl Recipe {
    /// The array before the first step, after each step.
    pub fn distributions(&self) -> Vec<Distribution> {
        let mut now = Distribution { layout: self.input.clone(), real: self.real };
        let mut distributions = vec![now.clone()];
        let columns = self.columns();
        for step in &self.steps {
            match step {
                Step::Transform { axis, kind } => {
                    let layout = transformed(&now.layout, *axis, &self.modes(*axis), columns.as_ref());
                    now = Distribution { layout, real: now.real && *kind != Kind::Real };
                }
                Step::Reshape { to, .. } => now.layout = to.clone(),
            }
            distributions.push(now.clone());
        }
        distributions
    }

    /// Is the input of `forward` real?
    pub fn is_real(&self) -> bool {
        self.real
    }

    /// Is the output of `forward` real?
    pub fn has_real_output(&self) -> bool {
        self.real && !self.kinds.contains(&Kind::Real)
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

    /// The columns of the sphere, where there is one.
    pub fn columns(&self) -> Option<Columns> {
        self.sphere.map(|radii| Columns::new(radii, self.shape, self.kinds))
    }

    /// The axis along which real rows, padded in place, take the place of
    /// their spectra: the halved one, where all of it is there on both sides.
    pub fn padded_axis(&self) -> Option<usize> {
        let axis = self.kinds.iter().position(|&kind| kind == Kind::Real)?;
        let whole = total_len(&self.space(axis)) == self.shape[axis]
            && total_len(&self.modes(axis)) == self.kinds[axis].modes(self.shape[axis]);
        (whole && self.sphere.is_none()).then_some(axis)
    }

    /// What is transformed, in words.
    pub fn kind_text(&self) -> String {
        let waves = self.kinds.iter().any(|kind| kind.r2r().is_some());
        match () {
            () if waves => names(self.kinds),
            () if self.real => "r2c".into(),
            () => "c2c".into(),
        }
    }

    /// What is kept of the modes, and what there is of the points, in words;
    /// nothing where that is all.
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

    /// How values move between ranks.
    pub fn exchange(&self) -> &str {
        &self.exchange
    }

    /// How values are encoded on their way.
    pub fn codec(&self) -> &str {
        &self.codec
    }

    /// What transforms lines.
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// The reshapes in which something leaves its rank.
    pub fn reshapes(&self) -> usize {
        self.traffic()
            .iter()
            .zip(&self.steps)
            .filter(|(t, s)| matches!(s, Step::Reshape { .. }) && !t.local)
            .count()
    }

    /// What each step moves in one `forward`.
    pub fn traffic(&self) -> Vec<StepTraffic> {
        let distributions = self.distributions();
        self.steps
            .iter()
            .zip(&distributions)
            .map(|(step, before)| {
                let name = step_name(step, before.real);
                match step {
                    Step::Transform { .. } => StepTraffic {
                        name,
                        local: true,
                        bytes_max: 0,
                        bytes_total: 0,
                        messages_max: 0,
                        messages_total: 0,
                    },
                    Step::Reshape { from, to } => self.reshape_traffic(name, from, to, before.real),
                }
            })
            .collect()
    }

    fn reshape_traffic(&self, name: String, from: &Layout, to: &Layout, real: bool) -> StepTraffic {
        let element = self.precision.bytes() * if real { 1 } else { 2 } * self.batch;
        let mut traffic = StepTraffic {
            name,
            local: true,
            bytes_max: 0,
            bytes_total: 0,
            messages_max: 0,
            messages_total: 0,
        };
        for (rank, own) in from.boxes().iter().enumerate() {
            let (mut bytes, mut messages) = (0, 0);
            for (_, theirs) in to.boxes().iter().enumerate().filter(|(peer, _)| *peer != rank) {
                let volume = own.intersect(theirs).volume();
                bytes += (volume * element) as u64;
                messages += u64::from(volume > 0);
            }
            traffic.bytes_total += bytes;
            traffic.messages_total += messages;
            traffic.bytes_max = traffic.bytes_max.max(bytes);
            traffic.messages_max = traffic.messages_max.max(messages);
        }
        traffic.local = traffic.messages_total == 0;
        traffic
    }

    /// For each step the most messages that go from one node to another, where
    /// `nodes` are the nodes of the ranks ([`Comm::nodes`](crate::Comm::nodes)):
    /// what a slow network between nodes has to carry one by one.
    pub fn messages_between_nodes(&self, mechanism: Mechanism, nodes: &[usize]) -> Vec<u64> {
        let of = |step: &Step| match step {
            Step::Reshape { from, to } => mechanism.messages_between_nodes(&pairs(from, to, 1), nodes),
            Step::Transform { .. } => 0,
        };
        self.steps.iter().map(of).collect()
    }

    /// What all ranks take from other ranks in one `forward`, in bytes, before
    /// any codec; [`Plan::wire_bytes`](crate::Plan::wire_bytes) is after it.
    pub fn wire_bytes(&self) -> u64 {
        self.traffic().iter().map(|t| t.bytes_total).sum()
    }

    /// A fingerprint: equal on two ranks only if their recipes are equal.
    pub fn digest(&self) -> u64 {
        // FNV-1a: stable over builds and machines, unlike std's hashers.
        let text = format!("{self:?}");
        text.bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

/// Bytes from each rank to each other one in a reshape, by sender.
pub fn pairs(from: &Layout, to: &Layout, element: usize) -> Vec<Vec<usize>> {
    let bytes = |(source, own): (usize, &Box3)| -> Vec<usize> {
        let part = |(target, theirs): (usize, &Box3)| match source == target {
            true => 0,
            false => own.intersect(theirs).volume() * element,
        };
        to.boxes().iter().enumerate().map(part).collect()
    };
    from.boxes().iter().enumerate().map(bytes).collect()
}

pub fn step_name(step: &Step, real: bool) -> String {
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
            crate::choice::RAW => writeln!(f)?,
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
