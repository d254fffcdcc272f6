//! What is done to modes while they are in a GPU's registers: the formula of an
//! operator, or the factors between the two halves of a long transform.

use super::bind::Binder;
use super::launch::{COMMON, real};
use crate::{Formula, Real, Tables};
use ferrier_kernel::{LineKind, LinesSpec};
use ferrier_plan::geometry::Axes;
use ferrier_plan::modes::IndexRun;
use ferrier_plan::schedule::{AxisTransform, OpPosition, PointwiseOp};

const TOUCH: &str = include_str!("kernels/touch.cuh");

/// What a launch does to modes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Touching {
    pub when: When,
    /// The axis of the lines, and that along which they lie side by side.
    pub along: usize,
    pub across: usize,
    /// The modes that there are of a line.
    kept: Vec<IndexRun>,
    /// Modes are multiplied by this first.
    pub scale: f64,
    /// Of a long transform: its points, negative on the way back. Else the operator of the call.
    twiddle: Option<i64>,
    /// The first array of the launch.
    pub batch: usize,
}

/// Before or after a transform, or between it and its inverse: TOUCH of `lines.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Before = 1,
    After = 2,
    Between = 3,
}

impl Touching {
    /// What a leg wants, with the factors before it and at its end, and the last of its transforms.
    pub fn of(transform: &AxisTransform, axes: Axes, batch: usize) -> Option<(Touching, f64, LinesSpec)> {
        let touch = transform.fused_op.as_ref()?;
        let (when, scale, last) = match touch.position {
            OpPosition::Before => (When::Before, 1.0, transform.spec),
            OpPosition::After => {
                (When::After, transform.spec.scale, LinesSpec { scale: 1.0, ..transform.spec })
            }
            OpPosition::Between(back) => (When::Between, transform.spec.scale, back),
        };
        let twiddle = match touch.op {
            PointwiseOp::Called => None,
            PointwiseOp::Twiddles { points, backward } => {
                Some(if backward { -(points as i64) } else { points as i64 })
            }
        };
        let (along, across, kept) = (axes.along, axes.lanes, touch.runs.clone());
        let touching = Touching { when, along, across, kept, scale, twiddle, batch };
        Some((touching, last.scale, last))
    }

    /// Does it need the operator of a call?
    pub fn is_called(&self) -> bool {
        self.twiddle.is_none()
    }

    /// What `touch.cuh` is compiled with.
    pub fn macros(&self, entry: usize) -> Vec<(&'static str, String)> {
        vec![
            ("ALONG", self.along.to_string()),
            ("ACROSS", self.across.to_string()),
            ("TABLES", entry.to_string()),
            ("TWIDDLE", u8::from(self.twiddle.is_some()).to_string()),
            ("KEPT", self.kept.len().min(MOST_RUNS).to_string()),
        ]
    }

    /// What a launch is handed.
    pub fn handed<T: Real>(&self, operand: &Operand<T>) -> Handed<T> {
        let kept = |number: usize| match self.kept.get(number) {
            Some(run) => Kept { at: run.at as i32, line: run.line as i32, len: run.len as i32, pad: 0 },
            None => Kept::default(),
        };
        Handed {
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

/// Runs of modes that an axis has at most; as in `touch.cuh`.
const MOST_RUNS: usize = 2;

/// As in `touch.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Kept {
    at: i32,
    line: i32,
    len: i32,
    pad: i32,
}

/// The structure `FusedOp` of `touch.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Handed<T> {
    tables: [u64; 3],
    kept: [Kept; MOST_RUNS],
    constants: [T; 4],
    scale: f64,
    points: i64,
    batch: i32,
    pad: i32,
}

/// What an operator brings to a call: where its tables lie on the GPU, and its constants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Operand<T> {
    pub tables: [u64; 3],
    pub constants: [T; 4],
}

/// The text of a formula, and numbers of an entry of its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code<'a> {
    pub text: &'a str,
    pub entry: usize,
}

impl<'a> Code<'a> {
    /// Nothing to compile: for the factors of long transforms.
    pub const NONE: Code<'static> = Code { text: "return z;", entry: 0 };

    pub fn of<T>(formula: &Formula<'a, T>) -> Code<'a> {
        let entry = match formula.tables {
            Tables::None => 0,
            Tables::Real(_) => 1,
            Tables::Complex(_) => 2,
        };
        Code { text: formula.code, entry }
    }

    /// What comes before a kernel that touches modes.
    pub fn source(&self) -> [&'a str; 5] {
        [
            COMMON,
            TOUCH,
            "INLINE Pair formula(Pair z, Entry a, Entry b, Entry c, const int (&index)[3], int batch, const REAL \
             (&p)[CONSTANTS]) {\n#line 1 \"formula\"\n",
            self.text,
            "\n}\n#line 1 \"kernel\"\n",
        ]
    }

    /// Macros of `common.cuh` and `touch.cuh`.
    pub fn macros<T: Real>(&self, touching: &Touching) -> Vec<(&'static str, String)> {
        let mut macros = vec![("REAL", real::<T>())];
        macros.extend(touching.macros(self.entry));
        macros
    }
}

/// Dense lines of modes in scratch, for `operate.cu`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub touching: Touching,
    /// Modes of a line; lines side by side; rows of them; arrays.
    pub len: usize,
    pub lanes: usize,
    pub rows: usize,
    pub arrays: usize,
    /// Index of the first line, along lanes and rows.
    pub low: [usize; 2],
    /// Points of the real lines that these modes become; 0: complex ones.
    pub edges: usize,
    /// In the second scratch?
    pub second: bool,
}

impl Field {
    pub fn count(&self) -> usize {
        self.len * self.lanes * self.rows * self.arrays
    }
}

/// Is there a transform to real lines?
pub(super) fn ends_real(kind: LineKind) -> bool {
    kind == LineKind::RealBackward
}

impl<T: Real> Binder<'_, T> {
    /// Words of the tables of formulas: room for a few, so that callers may change operators.
    pub(super) fn formula_room(&mut self) -> Room {
        let lens = [0, 1, 2].map(|axis| ferrier_plan::modes::total_len(&self.recipe.modes(axis)));
        let numbers = FORMULAS * 2 * lens.iter().sum::<usize>();
        let at = self.tables.room((numbers * size_of::<T>()).div_ceil(size_of::<u64>()));
        Room { at, lens }
    }
}

/// Tables of formulas that are kept on the GPU.
pub(super) const FORMULAS: usize = 4;

/// Where tables of formulas go, in bytes of a plan's tables, and the entries of each axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    pub at: usize,
    pub lens: [usize; 3],
}

impl Room {
    /// Numbers of a set of tables.
    pub fn numbers(&self, entry: usize) -> usize {
        entry * self.lens.iter().sum::<usize>()
    }

    /// Where set `number` begins, in bytes of the plan's tables.
    pub fn place<T>(&self, number: usize) -> usize {
        self.at + number * self.numbers(2) * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_those_of_the_kernels() {
        assert_eq!((size_of::<Handed<f32>>(), size_of::<Handed<f64>>()), (96, 112));
        assert_eq!(std::mem::offset_of!(Handed<f32>, scale), 72);
        assert_eq!(std::mem::offset_of!(Handed<f64>, scale), 88);
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
