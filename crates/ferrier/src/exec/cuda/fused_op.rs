//! Pointwise operations on modes in a GPU's registers: the formula of an operator, or the twiddle factors between
//! the two halves of a long transform.

use super::sources::{COMMON, FUSED_OP, real_name};
use crate::{Formula, Real, Tables};
use ferrier_kernel::{LineKind, LinesSpec};
use ferrier_plan::geometry::Axes;
use ferrier_plan::modes::IndexRun;
use ferrier_plan::schedule::{AxisTransform, OpPosition, PointwiseOp};

/// The pointwise operation of a launch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FusedLaunch {
    pub when: OpTime,
    /// The axis of the lines, and the axis across neighbouring lines.
    pub along: usize,
    pub across: usize,
    /// The modes of a line.
    kept: Vec<IndexRun>,
    /// Factor of the modes before the operation.
    pub scale: f64,
    /// Points of a long transform, negative for backward; `None`: the operator of the call.
    twiddle: Option<i64>,
    /// The first array of the launch.
    pub batch: usize,
}

/// Before or after a transform, or between it and its inverse; FUSED_OP of `lines.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpTime {
    Before = 1,
    After = 2,
    Between = 3,
}

impl FusedLaunch {
    /// The operation of a transform, with the scale and the last of its transforms.
    pub fn of(transform: &AxisTransform, axes: Axes, batch: usize) -> Option<(FusedLaunch, f64, LinesSpec)> {
        let op = transform.fused_op.as_ref()?;
        let (when, scale, last) = match op.position {
            OpPosition::Before => (OpTime::Before, 1.0, transform.spec),
            OpPosition::After => {
                (OpTime::After, transform.spec.scale, LinesSpec { scale: 1.0, ..transform.spec })
            }
            OpPosition::Between(back) => (OpTime::Between, transform.spec.scale, back),
        };
        let twiddle = match op.op {
            PointwiseOp::Called => None,
            PointwiseOp::Conjugate => unreachable!("plans for GPUs conjugate nothing"),
            PointwiseOp::Twiddles { points, backward } => {
                Some(if backward { -(points as i64) } else { points as i64 })
            }
        };
        let (along, across, kept) = (axes.along, axes.lanes, op.runs.clone());
        let launch = FusedLaunch { when, along, across, kept, scale, twiddle, batch };
        Some((launch, last.scale, last))
    }

    /// Whether it is the operator of a call.
    pub fn is_operator(&self) -> bool {
        self.twiddle.is_none()
    }

    /// Macros that `fused_op.cuh` is compiled with.
    pub fn macros(&self, entry: usize) -> Vec<(&'static str, String)> {
        vec![
            ("ALONG", self.along.to_string()),
            ("ACROSS", self.across.to_string()),
            ("TABLES", entry.to_string()),
            ("TWIDDLE", u8::from(self.twiddle.is_some()).to_string()),
            ("KEPT", self.kept.len().min(MOST_RUNS).to_string()),
        ]
    }

    /// The argument of a launch.
    pub fn argument<T: Real>(&self, operand: &Operand<T>) -> OpArgument<T> {
        let kept = |number: usize| match self.kept.get(number) {
            Some(run) => Kept { at: run.at as i32, line: run.line as i32, len: run.len as i32, pad: 0 },
            None => Kept::default(),
        };
        OpArgument {
            tables: operand.tables,
            kept: [kept(0), kept(1)],
            constants: operand.constants,
            scale: self.scale,
            points: self.twiddle.unwrap_or(0),
            batch: self.batch as i32,
            pad: 0,
        }
    }
}

/// The most runs of modes of an axis; as in `fused_op.cuh`.
const MOST_RUNS: usize = 2;

/// As in `fused_op.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Kept {
    at: i32,
    line: i32,
    len: i32,
    pad: i32,
}

/// The structure `FusedOp` of `fused_op.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OpArgument<T> {
    tables: [u64; 3],
    kept: [Kept; MOST_RUNS],
    constants: [T; 4],
    scale: f64,
    points: i64,
    batch: i32,
    pad: i32,
}

/// The tables of an operator on the GPU, and its constants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Operand<T> {
    pub tables: [u64; 3],
    pub constants: [T; 4],
}

/// The text of a formula, and the scalars of an entry of its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code<'a> {
    pub text: &'a str,
    pub entry: usize,
}

impl<'a> Code<'a> {
    /// No formula: for the twiddle factors of long transforms.
    pub const NONE: Code<'static> = Code { text: "return z;", entry: 0 };

    pub fn of<T>(formula: &Formula<'a, T>) -> Code<'a> {
        let entry = match formula.tables {
            Tables::None => 0,
            Tables::Real(_) => 1,
            Tables::Complex(_) => 2,
        };
        Code { text: formula.code, entry }
    }

    /// The source before that of a kernel with a pointwise operation.
    pub fn source(&self) -> [&'a str; 5] {
        [
            COMMON,
            FUSED_OP,
            "INLINE Pair formula(Pair z, Entry a, Entry b, Entry c, const int (&index)[3], int batch, const REAL \
             (&p)[CONSTANTS]) {\n#line 1 \"formula\"\n",
            self.text,
            "\n}\n#line 1 \"kernel\"\n",
        ]
    }

    /// Macros of `common.cuh` and `fused_op.cuh`.
    pub fn macros<T: Real>(&self, launch: &FusedLaunch) -> Vec<(&'static str, String)> {
        let mut macros = vec![("REAL", real_name::<T>())];
        macros.extend(launch.macros(self.entry));
        macros
    }
}

/// Dense lines of modes in scratch, for `operate.cu`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub fused: FusedLaunch,
    /// Modes of a line, neighbouring lines, rows of lines, arrays.
    pub len: usize,
    pub lanes: usize,
    pub rows: usize,
    pub arrays: usize,
    /// Index of the first line, along lanes and rows.
    pub low: [usize; 2],
    /// Points of the real lines of these modes; 0: complex lines.
    pub edges: usize,
    /// Whether it is in the second scratch.
    pub second: bool,
}

impl Field {
    pub fn count(&self) -> usize {
        self.len * self.lanes * self.rows * self.arrays
    }
}

/// Whether lines become real.
pub(super) fn ends_real(kind: LineKind) -> bool {
    kind == LineKind::RealBackward
}

/// Tables of formulas that are kept on the GPU.
pub(super) const FORMULA_SETS: usize = 4;

/// Offset of the tables of formulas in a plan's tables, in bytes, and the entries of each axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FormulaRoom {
    pub at: usize,
    pub lens: [usize; 3],
}

impl FormulaRoom {
    /// Scalars of a set of tables.
    pub fn scalars(&self, entry: usize) -> usize {
        entry * self.lens.iter().sum::<usize>()
    }

    /// Offset of set `number` in the plan's tables, in bytes.
    pub fn place<T>(&self, number: usize) -> usize {
        self.at + number * self.scalars(2) * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_those_of_the_kernels() {
        assert_eq!((size_of::<OpArgument<f32>>(), size_of::<OpArgument<f64>>()), (96, 112));
        assert_eq!(std::mem::offset_of!(OpArgument<f32>, scale), 72);
        assert_eq!(std::mem::offset_of!(OpArgument<f64>, scale), 88);
    }

    #[test]
    fn formulas_say_what_their_entries_are() {
        let constants = [0.0; 4];
        let code = |tables| Code::of(&Formula::<f64> { code: "return z;", tables, constants }).entry;
        assert_eq!(
            [code(Tables::None), code(Tables::Real([&[]; 3])), code(Tables::Complex([&[]; 3]))],
            [0, 1, 2]
        );
    }
}
