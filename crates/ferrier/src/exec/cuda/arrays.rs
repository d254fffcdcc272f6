//! Small arrays along all their axes by one kernel, which has each in the shared memory of a block.

use super::binder::{CudaBinder, Engine};
use super::tuning::smooth;
use super::work::{ArrayEnd, ArrayLaunch, CudaWork, Launch};
use crate::{Real, Result};
use ferrier_kernel::LineKind;
use ferrier_plan::geometry::Geometry;
use ferrier_plan::lowering::RankContext;
use ferrier_plan::modes::total_len;
use ferrier_plan::schedule::{AxisTransform, Schedule};

/// The longest line that a thread holds in its registers.
const LONGEST: usize = 32;
/// Threads of a block: lines are shared out over them.
const MOST_THREADS: usize = 256;
/// Registers of a multiprocessor, of 32 bits.
const REGISTERS: usize = 65536;

impl<T: Real> CudaBinder<T> {
    /// The whole schedule as one launch, where one rank does it alone and a block holds an array, or as one plan of cuFFT.
    pub(super) fn whole(
        &mut self,
        plan: &Schedule,
        context: &RankContext<'_>,
        ends: [&Geometry; 2],
    ) -> Result<Option<CudaWork>> {
        let transforms: Vec<&AxisTransform> = plan.passes.iter().flat_map(|pass| &pass.transforms).collect();
        let launch = match context.ranks == 1 && self.engine != Engine::Cufft {
            true => ArrayLaunch::new(&transforms, ends, self.gpu.shared_bytes(), size_of::<T>()),
            false => None,
        };
        match launch {
            None => self.cufft_array(plan, context, ends),
            Some(launch) => {
                let launch = Box::new(ArrayLaunch { arrays: context.batch, ..launch });
                Ok(Some(CudaWork::new(Launch::Arrays(launch))))
            }
        }
    }
}

impl ArrayLaunch {
    /// `None` where the array is too large, or the kernel does not have these transforms. `room`: bytes of shared memory of
    /// [block, multiprocessor].
    fn new(
        transforms: &[&AxisTransform],
        ends: [&Geometry; 2],
        room: [usize; 2],
        scalar_bytes: usize,
    ) -> Option<ArrayLaunch> {
        let first = transforms.first()?.spec.kind;
        let (kind, backward) = match (first, transforms.last()?.spec.kind) {
            (LineKind::RealForward, _) => (1, false),
            (_, LineKind::RealBackward) => (2, true),
            (LineKind::Forward, _) => (0, false),
            (LineKind::Backward, _) => (0, true),
            _ => return None,
        };
        let whole = |transform: &&AxisTransform| {
            let spec = &transform.spec;
            total_len(&transform.from) == spec.kind.len_in(spec.n)
                && total_len(&transform.to) == spec.kind.len_out(spec.n)
                && transform.fused_op.is_none()
                && spec.n <= LONGEST
                && smooth(spec.n)
        };
        let complex = if backward { LineKind::Backward } else { LineKind::Forward };
        let halved = |at: usize| kind == 1 && at == 0 || kind == 2 && at + 1 == transforms.len();
        let fits = |(at, transform): (usize, &&AxisTransform)| match halved(at) {
            true => transform.axis == 2,
            false => transform.spec.kind == complex && !(kind > 0 && transform.axis == 2),
        };
        if !transforms.iter().all(whole) || !transforms.iter().enumerate().all(fits) {
            return None;
        }
        // An axis that is not transformed lies in the way, unless it has one point.
        let mut points = if kind == 2 { ends[1].part.shape() } else { ends[0].part.shape() };
        let order: Vec<usize> = transforms.iter().map(|transform| transform.axis).collect();
        if (0..3).any(|axis| points[axis] > 1 && !order.contains(&axis)) {
            return None;
        }
        transforms.iter().for_each(|transform| points[transform.axis] = transform.spec.n);
        let row = if kind > 0 { points[2] / 2 + 1 } else { points[2] };
        let shared = points[0] * points[1] * (row | 1) * 2 * scalar_bytes;
        if shared > room[0] || order.len() > 3 {
            return None;
        }
        let lines = (points[0] * points[1]).max(points[0] * row).max(points[1] * row);
        let threads = lines.next_multiple_of(32).min(MOST_THREADS);
        // A line, and as much again while it is transformed.
        let longest = points.into_iter().max().unwrap_or(1);
        let registers = (longest * scalar_bytes + 32).clamp(32, 255);
        let resident = (room[1] / (shared + 1024)).min(REGISTERS / (registers * threads)).clamp(1, 16);
        Some(ArrayLaunch {
            points,
            kind,
            order,
            threads,
            resident,
            shared,
            ends: ends.map(ArrayEnd::from),
            backward,
            scale: transforms.iter().map(|transform| transform.spec.scale).product(),
            arrays: 1,
        })
    }
}
