//! What an experience is about: which problem, on which machine.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::{Choice, Comm, Keep, Kind, Layout, Precision, Problem, Result};
use ferrier_plan::Tolerance;

/// A problem, as far as it matters for speed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemKey {
    /// Shape before `forward`.
    pub shape: [usize; 3],
    /// Kind of each axis.
    pub kinds: [Kind; 3],
    /// Precision of the numbers.
    pub precision: Precision,
    /// Where the input lies: grid, memory order, fingerprint of the boxes.
    pub input: String,
    /// Where the output lies; `best` where that is left to the planner.
    pub output: String,
    /// What is kept of modes and filled of points, where not all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub modes: String,
    /// Arrays transformed together.
    pub batch: usize,
    /// Must the bits not depend on the number of ranks?
    pub reproducible: bool,
    /// Are operators applied?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operators: bool,
    /// Are axes 1 and 2 the factors of a long one?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub long: bool,
    /// The error that is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tolerance: Option<Tolerance>,
    /// What the user decided himself.
    #[serde(default, skip_serializing_if = "is_default")]
    pub given: Choice,
}

fn is_default(choice: &Choice) -> bool {
    *choice == Choice::default()
}

impl ProblemKey {
    /// # Errors
    /// Layouts that do not fit.
    pub(crate) fn new(problem: &Problem, given: &Choice, precision: Precision, ranks: usize) -> Result<Self> {
        let (input, output) = problem.layouts(ranks)?;
        Ok(ProblemKey {
            shape: problem.shape,
            kinds: problem.kinds(),
            precision,
            input: layout_text(&input),
            output: output.as_ref().map_or(format!("best {}", problem.output.order), layout_text),
            modes: modes_text(problem),
            batch: problem.batch,
            reproducible: problem.reproducible,
            operators: problem.operators,
            long: problem.long,
            tolerance: problem.tolerance,
            given: given.clone(),
        })
    }
}

/// Everything about values and modes that the shape and the kinds do not say.
fn modes_text(problem: &Problem) -> String {
    let mut words = Vec::new();
    if problem.keep != [Keep::All; 3] {
        words.push(format!("keep {:?}", problem.keep));
    }
    if problem.support != [None; 3] {
        words.push(format!("filled {:?}", problem.support));
    }
    if let Some(radii) = problem.sphere {
        words.push(format!("sphere {radii:?}"));
    }
    if problem.complex_values {
        words.push("complex".into());
    }
    words.join(" ")
}

/// Boxes that are the same are one layout, however they were asked for.
fn layout_text(layout: &Layout) -> String {
    let numbers = layout.boxes().iter().flat_map(|b| b.lo.into_iter().chain(b.hi));
    let bytes = numbers.flat_map(|number| (number as u64).to_le_bytes());
    format!("{} {} {:08x}", layout.grid_text(), layout.order(), fingerprint(bytes) as u32)
}

/// FNV-1a: the same on every machine.
pub(super) fn fingerprint(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A machine and how it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineKey {
    /// The processor's name for itself.
    pub cpu: String,
    /// Cores that a process may use.
    pub cores: usize,
    /// Number of ranks.
    pub ranks: usize,
    /// Nodes that they are on.
    pub nodes: usize,
    /// Threads that a rank may have.
    pub threads: usize,
    /// How ranks talk, with the version of the library that they talk through.
    pub transport: String,
    /// Where arrays live and kernels run.
    pub device: String,
    /// The version of Ferrier.
    pub ferrier: String,
}

impl MachineKey {
    pub(crate) fn new(comm: &Comm, nodes: usize) -> Self {
        MachineKey {
            cpu: cpu().to_string(),
            cores: crate::machine::cores(),
            ranks: comm.size(),
            nodes,
            threads: comm.threads(),
            transport: comm.transport().version(),
            device: "cpu".into(),
            ferrier: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// The processor's name. Asked once: the list of processors is long where there are many.
fn cpu() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| crate::machine::info().cpu)
}
