//! Whole arrays by cuFFT's own plan of several axes.

use super::bind::{Binder, BoundPass, Engine, Work, flops};
use super::fft::{Cufft, Shape};
use super::tuning::{Cut, Wish};
use crate::kernel::LineKind;
use crate::modes::held;
use crate::plan::geometry::{Geometry, width};
use crate::plan::lower::{Base, Piece, Site};
use crate::plan::schedule::{Leg, Schedule};
use crate::{Real, Result};

impl<T: Real> Binder<'_, T> {
    /// The whole schedule as one plan of cuFFT, where that can be and is better.
    pub(super) fn whole(
        &mut self,
        plan: &Schedule,
        site: &Site<'_>,
        [input, output]: [&Geometry; 2],
    ) -> Result<Option<BoundPass>> {
        let legs: Vec<&Leg> = plan.passes.iter().flat_map(|pass| &pass.legs).collect();
        let Some(shape) = whole_shape(plan, site, &legs) else { return Ok(None) };
        let scale = legs.iter().map(|leg| leg.spec.scale).product::<f64>();
        if !self.prefers_cufft(&legs, input.volume.max(output.volume), scale) {
            return Ok(None);
        }
        self.arrays = site.batch;
        let fft = Cufft::new(self.gpu, &shape, T::PRECISION)?;
        self.cufft = self.cufft.max(fft.work);
        let real = plan.output.real;
        let home = |geometry: &Geometry| Piece {
            region: geometry.part,
            rank: site.rank,
            base: Base::Out,
            offset: 0,
            strides: geometry.strides,
            batch: geometry.volume,
        };
        let scaling =
            (scale != 1.0).then(|| self.moves(&[home(output)], &[home(output)], width(real), scale));
        let bytes: u64 = [input, output].map(|g| (g.volume * site.batch * site.number) as u64).iter().sum();
        let name = legs.iter().map(|leg| leg.name.as_str()).collect::<Vec<_>>().join(" + ");
        let flops = legs.iter().map(|leg| flops(leg, &output.part) * site.batch as f64).sum();
        let passes = legs.len() as u64;
        Ok(Some(BoundPass { name, bytes: bytes * passes, flops, work: Work::Whole(fft, scaling) }))
    }

    /// Measured on an H200: our passes are faster, but for real arrays of powers of two that are larger
    /// than its cache, and they do not have all lengths.
    fn prefers_cufft(&self, legs: &[&Leg], numbers: usize, scale: f64) -> bool {
        const CACHE: usize = 100 << 20;
        let ours = |leg: &&Leg| {
            let wish = Wish {
                points: leg.spec.n,
                kind: leg.spec.kind,
                precision: T::PRECISION,
                rows: false,
                turn: false,
                scattered: false,
                touched: false,
                lanes: 64,
            };
            Cut::new(&wish, self.gpu.shared_bytes()).is_some()
        };
        let large = numbers * size_of::<T>() * self.recipe.batch >= CACHE;
        // Real lines are complex ones to our kernel; powers of two are cuFFT's best.
        let even = scale == 1.0
            && legs.iter().any(|leg| leg.spec.kind == LineKind::RealForward)
            && legs.iter().all(|leg| leg.spec.n.is_power_of_two());
        match self.engine {
            Engine::Native => false,
            Engine::Cufft => true,
            Engine::Auto => even && large || !legs.iter().all(ours),
        }
    }
}

/// The shape for cuFFT of a schedule that one rank does alone: the transformed
/// axes are the fastest ones, and lie the same way before and after.
fn whole_shape(plan: &Schedule, site: &Site<'_>, legs: &[&Leg]) -> Option<Shape> {
    let order = plan.input.layout.order();
    let touched = legs.iter().any(|leg| leg.touch.is_some());
    if site.ranks > 1 || legs.is_empty() || touched || plan.output.layout.order() != order {
        return None;
    }
    let shape = plan.input.layout.shape();
    let whole = |leg: &&Leg| {
        held(&leg.from) == leg.spec.kind.len_in(leg.spec.n)
            && held(&leg.to) == leg.spec.kind.len_out(leg.spec.n)
    };
    if !legs.iter().all(whole) {
        return None;
    }
    let real = legs.iter().find(|leg| leg.spec.kind.width_in() != leg.spec.kind.width_out());
    let kind = real.map_or(legs[0].spec.kind, |leg| leg.spec.kind);
    // Back to real, cuFFT overwrites its input.
    if kind == LineKind::RealBackward && !site.in_place || real.is_some_and(|leg| leg.axis != order.fastest())
    {
        return None;
    }
    let length = |axis: usize| legs.iter().find(|leg| leg.axis == axis).map(|leg| leg.spec.n);
    // Axes of one point are transformed whether they are listed or not.
    let done: Vec<usize> = order.axes().into_iter().skip_while(|&a| length(a).is_none()).collect();
    let n: Option<Vec<usize>> = done.iter().map(|&a| length(a).or((shape[a] == 1).then_some(1))).collect();
    let outer: usize = order.axes().iter().filter(|a| !done.contains(a)).map(|&a| shape[a]).product();
    let row = *legs.iter().find(|leg| leg.axis == order.fastest()).map(|leg| &leg.spec.n).unwrap_or(&1);
    let padded = site.in_place && real.is_some();
    let real_row = if padded { 2 * (row / 2 + 1) } else { row };
    n.map(|n| Shape { n, kind, batch: outer * site.batch, real_row })
}
