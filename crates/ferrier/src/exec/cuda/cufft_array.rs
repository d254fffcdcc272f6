//! Whole arrays by cuFFT's own plan of several axes.

use super::binder::{CudaBinder, Engine};
use super::cufft::{Cufft, Shape};
use super::tuning::{Cut, Wish};
use super::work::{CudaWork, CufftArray, Launch};
use crate::{Real, Result};
use ferrier_kernel::LineKind;
use ferrier_plan::geometry::{Base, Geometry, Piece, width};
use ferrier_plan::lowering::RankContext;
use ferrier_plan::modes::total_len;
use ferrier_plan::schedule::{AxisTransform, Schedule};

impl<T: Real> CudaBinder<T> {
    /// The whole schedule as one plan of cuFFT, where that is possible and faster.
    pub(super) fn cufft_array(
        &mut self,
        plan: &Schedule,
        context: &RankContext<'_>,
        [input, output]: [&Geometry; 2],
    ) -> Result<Option<CudaWork>> {
        let transforms: Vec<&AxisTransform> = plan.passes.iter().flat_map(|pass| &pass.transforms).collect();
        let shape = whole_shape(plan, context, &transforms).filter(|_| context.strides.is_dense());
        let Some(shape) = shape else { return Ok(None) };
        let scale = transforms.iter().map(|transform| transform.spec.scale).product::<f64>();
        if !self.prefers_cufft(&transforms, input.volume.max(output.volume), scale) {
            return Ok(None);
        }
        self.arrays = 0..context.batch;
        let whole = Cufft::new(&self.gpu, &shape, T::PRECISION)?;
        // Arrays that have memory of their own are transformed one by one.
        let one = Shape { batch: shape.batch / context.batch.max(1), ..shape };
        let one = match context.batch {
            1 => None,
            _ => Some(Cufft::new(&self.gpu, &one, T::PRECISION)?),
        };
        let work = one.as_ref().map_or(0, |one| one.work).max(whole.work);
        self.cufft = self.cufft.max(work);
        let real = plan.output.real;
        let home = |geometry: &Geometry| Piece {
            region: geometry.part,
            rank: context.rank,
            base: Base::Out,
            offset: 0,
            strides: geometry.strides,
            batch: geometry.batch,
        };
        let scaling = self.moves(&[home(output)], &[home(output)], width(real), scale);
        let bytes = [input, output].map(|geometry| geometry.batch * size_of::<T>());
        Ok(Some(CudaWork::new(Launch::CufftArray(CufftArray { whole, one, bytes, scaling }))))
    }

    /// Measured on an H200: our passes are faster, but for real arrays of powers of two that are larger
    /// than its cache, and they do not have all lengths.
    fn prefers_cufft(&self, transforms: &[&AxisTransform], scalars: usize, scale: f64) -> bool {
        const CACHE: usize = 100 << 20;
        let ours = |transform: &&AxisTransform| {
            let wish = Wish {
                points: transform.spec.n,
                kind: transform.spec.kind,
                precision: T::PRECISION,
                rows: false,
                turn: false,
                scattered: false,
                fused: false,
                lanes: 64,
            };
            Cut::new(&wish, self.gpu.shared_bytes()).is_some()
        };
        let large = scalars * size_of::<T>() * self.recipe.batch >= CACHE;
        // Our kernel transforms real lines as complex ones; cuFFT is fastest for powers of two.
        let even = scale == 1.0
            && transforms.iter().any(|transform| transform.spec.kind == LineKind::RealForward)
            && transforms.iter().all(|transform| transform.spec.n.is_power_of_two());
        match self.engine {
            Engine::Native => false,
            Engine::Cufft => true,
            Engine::Auto => even && large || !transforms.iter().all(ours),
        }
    }
}

/// The shape for cuFFT of a schedule that one rank does alone: the transformed
/// axes are the fastest ones, in the same order before and after.
fn whole_shape(plan: &Schedule, context: &RankContext<'_>, transforms: &[&AxisTransform]) -> Option<Shape> {
    let order = plan.input.layout.order();
    let fused = transforms.iter().any(|transform| transform.fused_op.is_some());
    if context.ranks > 1 || transforms.is_empty() || fused || plan.output.layout.order() != order {
        return None;
    }
    let shape = plan.input.layout.shape();
    let whole = |transform: &&AxisTransform| {
        total_len(&transform.from) == transform.spec.kind.len_in(transform.spec.n)
            && total_len(&transform.to) == transform.spec.kind.len_out(transform.spec.n)
    };
    if !transforms.iter().all(whole) {
        return None;
    }
    let real =
        transforms.iter().find(|transform| transform.spec.kind.width_in() != transform.spec.kind.width_out());
    let kind = real.map_or(transforms[0].spec.kind, |transform| transform.spec.kind);
    // Back to real, cuFFT overwrites its input.
    if kind == LineKind::RealBackward && !context.in_place
        || real.is_some_and(|transform| transform.axis != order.fastest())
    {
        return None;
    }
    let length = |axis: usize| {
        transforms.iter().find(|transform| transform.axis == axis).map(|transform| transform.spec.n)
    };
    // Axes of one point are transformed whether they are listed or not.
    let done: Vec<usize> = order.axes().into_iter().skip_while(|&a| length(a).is_none()).collect();
    let n: Option<Vec<usize>> = done.iter().map(|&a| length(a).or((shape[a] == 1).then_some(1))).collect();
    let outer: usize = order.axes().iter().filter(|a| !done.contains(a)).map(|&a| shape[a]).product();
    let row = *transforms
        .iter()
        .find(|transform| transform.axis == order.fastest())
        .map(|transform| &transform.spec.n)
        .unwrap_or(&1);
    let padded = context.in_place && real.is_some();
    let real_row = if padded { 2 * (row / 2 + 1) } else { row };
    n.map(|n| Shape { n, kind, batch: outer * context.batch, real_row })
}
