//! Keys of entries: the problem and the machine.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::{Choice, Comm, Keep, Kind, Layout, Precision, Problem, Result};
use ferrier_plan::Tolerance;

/// The properties of a problem that affect speed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemKey {
    /// Shape before `forward`.
    pub shape: [usize; 3],
    /// Kind of each axis.
    pub kinds: [Kind; 3],
    /// Precision of the elements.
    pub precision: Precision,
    /// Layout of the input: grid, memory order, fingerprint of the boxes.
    pub input: String,
    /// Layout of the output; `best` if it is unconstrained.
    pub output: String,
    /// The kept modes and the support of the input; empty if all.
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
    /// The allowed error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tolerance: Option<Tolerance>,
    /// The fields of the choice that the user set.
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

/// The properties of values and modes that are not in the shape and the kinds. The text is part of the file format.
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
    if problem.real_input {
        words.push("real input".into());
    }
    if problem.complex_values {
        words.push("complex".into());
    }
    words.join(" ")
}

/// Equal boxes give equal texts, whatever layout was specified.
fn layout_text(layout: &Layout) -> String {
    let bounds = layout.boxes().iter().flat_map(|b| b.lo.into_iter().chain(b.hi));
    let bytes = bounds.flat_map(|bound| (bound as u64).to_le_bytes());
    format!("{} {} {:08x}", layout.grid_text(), layout.order(), fingerprint(bytes) as u32)
}

/// FNV-1a: the same on every machine.
pub(super) fn fingerprint(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A machine and how it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineKey {
    /// The name of the processor.
    pub cpu: String,
    /// Cores that a process may use.
    pub cores: usize,
    /// Number of ranks.
    pub ranks: usize,
    /// Number of nodes that the ranks are on.
    pub nodes: usize,
    /// Threads that a rank may have.
    pub threads: usize,
    /// The transport, with the version of its library.
    pub transport: String,
    /// The device of the arrays.
    pub device: String,
    /// The version of Ferrier.
    pub ferrier: String,
}

impl MachineKey {
    pub(crate) fn new(comm: &Comm) -> Self {
        MachineKey {
            cpu: cpu().to_string(),
            cores: crate::machine::cores(),
            ranks: comm.size(),
            nodes: comm.node_count(),
            threads: comm.threads(),
            transport: comm.transport().version(),
            device: "cpu".into(),
            ferrier: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// The name of the processor. Read once: the list of processors may be long.
fn cpu() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| crate::machine::info().cpu)
}
