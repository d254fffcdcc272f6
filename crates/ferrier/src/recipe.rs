//! The list of steps: plain data that can be printed, compared and stored.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Box3, Kind, Layout, Precision};

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
pub struct Recipe {
    /// Shape before `forward`.
    pub shape: [usize; 3],
    /// Kind of each axis.
    pub kinds: [Kind; 3],
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
pub(crate) struct State {
    pub layout: Layout,
    pub real: bool,
}

impl Recipe {
    /// The array before the first step, after each step.
    pub(crate) fn states(&self) -> Vec<State> {
        let mut now = State { layout: self.input.clone(), real: self.is_real() };
        let mut states = vec![now.clone()];
        for step in &self.steps {
            match step {
                Step::Transform { axis, kind: Kind::Real } => {
                    let n = self.shape[*axis] / 2 + 1;
                    now = State { layout: now.layout.with_axis(*axis, n), real: false };
                }
                Step::Transform { .. } => {}
                Step::Reshape { to, .. } => now.layout = to.clone(),
            }
            states.push(now.clone());
        }
        states
    }

    /// Is the input of `forward` real?
    pub fn is_real(&self) -> bool {
        self.kinds.contains(&Kind::Real)
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.input.ranks()
    }

    /// How values move between ranks.
    pub fn exchange(&self) -> &str {
        &self.exchange
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
        let states = self.states();
        self.steps
            .iter()
            .zip(&states)
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
    pub fn messages_between_nodes(&self, nodes: &[usize]) -> Vec<u64> {
        let member = crate::exchange::find(&self.exchange);
        let of = |step: &Step| match (step, &member) {
            (Step::Reshape { from, to }, Ok(member)) => {
                member.messages_between_nodes(&pairs(from, to, 1), nodes)
            }
            _ => 0,
        };
        self.steps.iter().map(of).collect()
    }

    /// What all ranks take from other ranks in one `forward`, in bytes.
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
pub(crate) fn pairs(from: &Layout, to: &Layout, element: usize) -> Vec<Vec<usize>> {
    let bytes = |(source, own): (usize, &Box3)| -> Vec<usize> {
        let part = |(target, theirs): (usize, &Box3)| match source == target {
            true => 0,
            false => own.intersect(theirs).volume() * element,
        };
        to.boxes().iter().enumerate().map(part).collect()
    };
    from.boxes().iter().enumerate().map(bytes).collect()
}

pub(crate) fn step_name(step: &Step, real: bool) -> String {
    match step {
        Step::Transform { axis, kind: Kind::Real } if real => format!("r2c axis {axis}"),
        Step::Transform { axis, kind: Kind::Real } => format!("c2r axis {axis}"),
        Step::Transform { axis, .. } => format!("fft axis {axis}"),
        Step::Reshape { from, to } if from.boxes() == to.boxes() => {
            format!("reorder {} to {}", from.order(), to.order())
        }
        Step::Reshape { from, to } => format!("reshape {} to {}", from.grid_text(), to.grid_text()),
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.shape;
        let kind = if self.is_real() { "r2c" } else { "c2c" };
        writeln!(
            f,
            "{kind} {} {x}x{y}x{z}, {} ranks, batch {}",
            self.precision.name(),
            self.ranks(),
            self.batch
        )?;
        writeln!(f, "exchange {}, kernel {}", self.exchange, self.kernel)?;
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
