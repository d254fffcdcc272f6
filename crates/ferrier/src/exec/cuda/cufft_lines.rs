//! Lines that cuFFT transforms in scratch: gathered, transformed, scattered.

use super::binder::CudaBinder;
use super::cufft::{Cufft, Shape};
use super::fused_op::{Field, FusedLaunch, OpTime, ends_real};
use super::work::{CufftLines, Launch};
use crate::{Box3, Order, Real, Result};
use ferrier_kernel::{LineKind, LinesSpec};
use ferrier_plan::geometry::{Axes, Base, Geometry, Piece};
use ferrier_plan::modes::total_len;
use ferrier_plan::schedule::AxisTransform;

impl<T: Real> CudaBinder<T> {
    /// Lines that cuFFT transforms in scratch. `first`: the first array of the batch.
    pub(super) fn cufft_lines(
        &mut self,
        transform: &AxisTransform,
        domain: [&Box3; 2],
        first: usize,
        [from, to]: [&[Piece]; 2],
    ) -> Result<Launch> {
        let (spec, number, batch) = (transform.spec, size_of::<T>(), self.arrays.len());
        let (others, kind) = ([1, 2].map(|a| (transform.axis + a) % 3), spec.kind);
        let axes = Axes { along: transform.axis, lanes: others[1], planes: others[0] };
        let fused = FusedLaunch::of(transform, axes, first);
        let (scale, last) = fused.as_ref().map_or((spec.scale, spec), |(_, scale, last)| (*scale, *last));
        let order = Order::new([others[0], others[1], transform.axis])?;
        let ranks = self.recipe.ranks();
        let apart = matches!(kind, LineKind::RealForward | LineKind::RealBackward);
        let returns = matches!(&fused, Some((launch, ..)) if launch.when == OpTime::Between);
        // Lines in scratch are whole, even where arrays hold parts of them.
        let scratch = |len: usize, real: bool, second: bool| {
            let part = domain[0].with_axis(transform.axis, len);
            let Geometry { strides, volume, .. } = Geometry::dense(part, order, real);
            let base = if second { Base::Out } else { Base::In };
            Piece { region: part, rank: ranks, base, offset: 0, strides, batch: volume }
        };
        let source = scratch(kind.len_in(spec.n), kind == LineKind::RealForward, false);
        let modes = scratch(kind.len_out(spec.n), kind == LineKind::RealBackward, apart);
        let target = match returns {
            true => scratch(last.kind.len_out(last.n), ends_real(last.kind), false),
            false => modes.clone(),
        };
        for piece in [&source, &modes, &target] {
            let room = &mut self.scratch[piece.base as usize];
            *room = (*room).max(piece.batch * batch * number);
        }
        let lines = domain[0].volume() / domain[0].shape()[transform.axis].max(1) * batch;
        let fft = self.cufft_plan(&spec, lines)?;
        let back = if returns { Some(self.cufft_plan(&last, lines)?) } else { None };
        let field = fused.map(|(launch, ..)| {
            let piece = if launch.when == OpTime::Before { &source } else { &modes };
            let shape = piece.region.shape();
            let edges = launch.when != OpTime::After && ends_real(last.kind);
            Field {
                len: shape[transform.axis],
                lanes: shape[others[1]],
                rows: shape[others[0]],
                arrays: batch,
                low: [others[1], others[0]].map(|axis| domain[0].lo[axis]),
                edges: if edges { spec.n } else { 0 },
                second: piece.base == Base::Out,
                fused: launch,
            }
        });
        let clear =
            if total_len(&transform.from) == kind.len_in(spec.n) { 0 } else { source.batch * batch * number };
        let gather = self.moves(from, &[source], kind.width_in(), 1.0);
        let scatter = self.moves(&[target], to, last.kind.width_out(), scale);
        Ok(Launch::CufftLines(Box::new(CufftLines { clear, gather, fft, apart, field, back, scatter })))
    }

    fn cufft_plan(&mut self, spec: &LinesSpec, lines: usize) -> Result<Cufft> {
        let shape = Shape { n: vec![spec.n], kind: spec.kind, batch: lines, real_row: spec.n };
        let fft = Cufft::new(&self.gpu, &shape, T::PRECISION)?;
        self.cufft = self.cufft.max(fft.work);
        Ok(fft)
    }
}
