//! Tables of the kernels of a plan; each kind of line has one.

use std::sync::Arc;

use super::copy::Copy;
use super::line_op::{FusedLineOp, LineChange, LineOp};
use super::real_parts::{RealEnd, RealParts};
use super::twiddle::Twiddle;
use crate::{Real, Result};
use ferrier_kernel::{LineKind, Lines, LinesSpec};
use ferrier_plan::schedule::{AxisTransform, FusedOp, OpPosition, PointwiseOp};

/// Key of the twiddle factors of a long transform: points, rows, whether for `backward`.
type Twiddles<T> = ((usize, usize, bool), Arc<Twiddle<T>>);

/// The tables of one kernel.
pub(super) struct KernelTables<T> {
    kernel: String,
    made: Vec<(LinesSpec, Arc<dyn Lines<T>>)>,
    twiddles: Vec<Twiddles<T>>,
}

impl<T: Real> KernelTables<T> {
    pub fn new(kernel: &str) -> Self {
        KernelTables { kernel: kernel.into(), made: Vec::new(), twiddles: Vec::new() }
    }

    fn lines(&mut self, spec: &LinesSpec) -> Result<Arc<dyn Lines<T>>> {
        if let Some((_, lines)) = self.made.iter().find(|(made, _)| made == spec) {
            return Ok(lines.clone());
        }
        let lines: Arc<dyn Lines<T>> =
            ferrier_kernel::lines::<T>(crate::kernel::find(&self.kernel)?, spec).into();
        self.made.push((*spec, lines.clone()));
        Ok(lines)
    }

    fn twiddle(&mut self, points: usize, rows: usize, backward: bool) -> Arc<Twiddle<T>> {
        let key = (points, rows, backward);
        if let Some((_, twiddle)) = self.twiddles.iter().find(|(made, _)| *made == key) {
            return twiddle.clone();
        }
        let twiddle = Arc::new(Twiddle::new(points, rows, backward));
        self.twiddles.push((key, twiddle.clone()));
        twiddle
    }

    /// The operation on the lines of an axis.
    pub fn line_op(&mut self, transform: &AxisTransform) -> Result<LineOp<T>> {
        let LinesSpec { n, kind, .. } = transform.spec;
        let mut lines = self.lines(&transform.spec)?;
        if transform.real_before && kind.width_in() == 2 {
            lines = Arc::new(RealParts { lines, end: RealEnd::Source, points: n });
        }
        let narrows = |kind: LineKind| transform.real && kind.width_out() == 2;
        let narrow =
            |lines| -> Arc<dyn Lines<T>> { Arc::new(RealParts { lines, end: RealEnd::Target, points: n }) };
        let last = matches!(transform.fused_op, Some(FusedOp { position: OpPosition::Between(_), .. }));
        if narrows(kind) && !last {
            lines = narrow(lines);
        }
        let Some(op) = &transform.fused_op else { return Ok(LineOp::Lines(lines)) };
        let width = if op.position == OpPosition::Before { kind.width_in() } else { kind.width_out() };
        let (before, after): (Arc<dyn Lines<T>>, Arc<dyn Lines<T>>) = match op.position {
            OpPosition::Before => (Arc::new(Copy { width }), lines),
            OpPosition::After => (lines, Arc::new(Copy { width })),
            OpPosition::Between(back) if narrows(back.kind) => (lines, narrow(self.lines(&back)?)),
            OpPosition::Between(back) => (lines, self.lines(&back)?),
        };
        let change = match op.op {
            PointwiseOp::Called => LineChange::Operator,
            PointwiseOp::Conjugate => LineChange::Conjugate,
            PointwiseOp::Twiddles { points, backward } => {
                LineChange::Twiddle(self.twiddle(points, n, backward))
            }
        };
        let (runs, ragged) = (op.runs.clone(), op.ragged.clone());
        Ok(LineOp::FusedLineOp(FusedLineOp { before, after, runs, ragged, width, change }))
    }
}
