//! The error of a transform is at most what its certificate says, and that at
//! most what was allowed: for any data, layout, exchange and tolerance.

mod common;

use common::{Number, any_overlap, from_f64, plan_of, to_f64};
use ferrier::{Certificate, Choice, LayoutSpec, Plan, Problem, Result, Scale};
use ferrier_test::dft::{Direction, dft, indices, keep_half};
use ferrier_test::{Rng, watchdog};
use num_complex::Complex;

/// How many random problems: `FERRIER_CASES`, or a few.
fn count() -> usize {
    std::env::var("FERRIER_CASES").map_or(150, |text| text.parse().expect("FERRIER_CASES is a number"))
}

/// Random, smooth, or spiky over sixty decades; between -1 and 1 but for the last.
fn data(rng: &mut Rng, shape: [usize; 3], which: usize) -> Vec<Complex<f64>> {
    let uniform = |rng: &mut Rng| rng.below(1 << 40) as f64 / (1_u64 << 39) as f64 - 1.0;
    let waves: Vec<[f64; 5]> = (0..3).map(|_| [0; 5].map(|_| uniform(rng))).collect();
    let smooth = |at: [usize; 3], phase: f64| -> f64 {
        let turn = |w: &[f64; 5]| (0..3).map(|a| at[a] as f64 * w[a]).sum::<f64>() * 0.3 + w[3] + phase;
        waves.iter().map(|w| w[4] * turn(w).sin()).sum()
    };
    let spike = |rng: &mut Rng| 10f64.powf(30.0 * uniform(rng)) * uniform(rng).signum();
    indices(shape)
        .map(|at| match which {
            0 => Complex::new(uniform(rng), uniform(rng)),
            1 => Complex::new(smooth(at, 0.0), smooth(at, 1.0)),
            _ => Complex::new(spike(rng), spike(rng)),
        })
        .collect()
}

fn any_layout(rng: &mut Rng, shape: [usize; 3], ranks: usize) -> LayoutSpec {
    match rng.below(4) {
        0 => LayoutSpec::bricks(),
        1 => LayoutSpec::slabs(rng.below(3)),
        2 => LayoutSpec::pencils(rng.below(3)),
        _ => {
            LayoutSpec::boxes(ferrier_test::tiles(shape, ranks, rng).into_iter().map(common::box3).collect())
        }
    }
}

/// What is transformed, and to what.
struct Trial {
    problem: Problem,
    choice: Choice,
    ranks: usize,
    nodes: usize,
    forward: bool,
    real: bool,
    shape: [usize; 3],
    half: [usize; 3],
    from: Vec<Complex<f64>>,
    exact: Vec<Complex<f64>>,
}

impl Trial {
    fn any<T: Number>(rng: &mut Rng, tolerance: f64) -> Trial {
        let shape = [0; 3].map(|_| *rng.pick(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]));
        let (ranks, real, forward) = (1 + rng.below(8), rng.below(2) == 0, rng.below(2) == 0);
        let base = if real { Problem::r2c(shape) } else { Problem::c2c(shape) };
        let half = base.spectrum_shape();
        let (input, output) = (any_layout(rng, shape, ranks), any_layout(rng, half, ranks));
        let problem = base.input(input).output(output).scale_backward(Scale::Symmetric).tolerance(tolerance);
        let which = rng.below(3);
        let mut x = data(rng, shape, which);
        x.iter_mut()
            .for_each(|x| *x = to_f64(from_f64::<T>(if real { Complex::new(x.re, 0.0) } else { *x })));
        let (from, exact) = Trial::exact(x, shape, real, forward);
        let exchange = *rng.pick(&[None, Some("ring"), Some("hierarchical"), Some("point_to_point")]);
        let nodes = [1, 2, ranks][rng.below(3)].min(ranks);
        // On one node hierarchical shares memory.
        let exchange = exchange.filter(|name| *name != "hierarchical" || nodes > 1).map(String::from);
        let overlap = (rng.below(3) == 0).then(|| any_overlap(rng));
        let choice = Choice { exchange, overlap, ..Choice::default() };
        Trial { problem, choice, ranks, nodes, forward, real, shape, half, from, exact }
    }

    /// What goes in, and what should come out.
    fn exact(
        x: Vec<Complex<f64>>,
        shape: [usize; 3],
        real: bool,
        forward: bool,
    ) -> (Vec<Complex<f64>>, Vec<Complex<f64>>) {
        let root = (shape.iter().product::<usize>() as f64).sqrt().recip();
        let transform = |direction, scale| dft(&x, shape, &[0, 1, 2], direction, scale);
        match (forward, real) {
            (true, false) => (x.clone(), transform(Direction::Forward, 1.0)),
            (true, true) => (x.clone(), keep_half(&transform(Direction::Forward, 1.0), shape, 2)),
            (false, false) => (x.clone(), transform(Direction::Backward, root)),
            // The spectrum of real data, as near as it can be written.
            (false, true) => (keep_half(&transform(Direction::Forward, root), shape, 2), x),
        }
    }

    /// Certificate, error relative to the exact result, bytes sent and those of raw numbers.
    fn run<T: Number>(&self) -> Result<(Certificate, f64, u64, u64)> {
        let all = ferrier::ranks(self.ranks).nodes(self.nodes).run(|comm| {
            let mut plan = plan_of::<T>(&comm, &self.problem, &self.choice)?;
            let sums = self.rank(&mut plan)?;
            let sums = comm.sum(&[sums[0], sums[1], plan.wire_bytes() as f64])?;
            let certificate = plan.certificate().expect("after a transform");
            Ok((certificate, (sums[0] / sums[1]).sqrt(), sums[2] as u64, plan.recipe().wire_bytes()))
        })?;
        assert!(all.iter().all(|rank| rank.0 == all[0].0), "ranks have different certificates");
        Ok(all[0])
    }

    /// Squares of what is wrong on this rank, and of what is right.
    fn rank<T: Number>(&self, plan: &mut Plan<T>) -> Result<[f64; 2]> {
        let (mut input, mut output) = (plan.make_input()?, plan.make_output()?);
        let at = |shape: [usize; 3], [i, j, k]: [usize; 3]| (i * shape[1] + j) * shape[2] + k;
        let mut sums = [0.0; 2];
        let mut add = |got: Complex<f64>, want: Complex<f64>| {
            sums[0] += (got - want).norm_sqr();
            sums[1] += want.norm_sqr();
        };
        if self.forward {
            match self.real {
                true => input.fill_real(|_, index| T::rounded(self.from[at(self.shape, index)].re)),
                false => input.fill_complex(|_, index| from_f64(self.from[at(self.shape, index)])),
            }
            plan.forward(&input, &mut output)?;
            for index in indices(self.half) {
                if let Some(place) = output.complex_index(0, index) {
                    add(to_f64(output.complex()[place]), self.exact[at(self.half, index)]);
                }
            }
            return Ok(sums);
        }
        output.fill_complex(|_, index| from_f64(self.from[at(self.half, index)]));
        plan.backward(&output, &mut input)?;
        for index in indices(self.shape) {
            let want = self.exact[at(self.shape, index)];
            if self.real {
                let place = input.real_index(0, index);
                place.iter().for_each(|&place| add(Complex::new(input.real()[place].into(), 0.0), want));
            } else {
                let place = input.complex_index(0, index);
                place.iter().for_each(|&place| add(to_f64(input.complex()[place]), want));
            }
        }
        Ok(sums)
    }
}

fn promises<T: Number>(seed: u64, tolerances: &[f64]) {
    let _watchdog = watchdog(60 + count() as u64);
    let mut rng = Rng::for_test(seed);
    let (mut encoded, mut lossy) = (0, 0);
    for number in 0..count() {
        let tolerance = tolerances[number % tolerances.len()];
        let trial = Trial::any::<T>(&mut rng, tolerance);
        let told = || format!("number {number}, {tolerance:e}: {:?} {:?}", trial.problem, trial.choice);
        let (certificate, error, sent, raw) =
            trial.run::<T>().unwrap_or_else(|error| panic!("{}: {error}", told()));
        let points = trial.shape.iter().product::<usize>() as f64;
        assert!(error <= certificate.bound(), "{}\n{error:e}, {certificate:?}", told());
        // What rounding may do is less for small factors than what tolerances leave it.
        let rounding = certificate.rounding_worst.min(10.0 * T::EPS * points.log2());
        assert!(certificate.loss + rounding <= tolerance, "{}\n{certificate:?}", told());
        assert!(error <= tolerance, "{}\n{error:e}", told());
        encoded += usize::from(raw > 0 && sent != raw);
        lossy += usize::from(certificate.loss > 0.0);
    }
    // Else nothing was tested.
    assert!(encoded * 2 > count() && lossy * 3 > count(), "{encoded} encoded, {lossy} lossy");
}

#[test]
fn double_precision_keeps_what_it_promises() {
    promises::<f64>(71, &[1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12]);
}

#[test]
fn single_precision_keeps_what_it_promises() {
    promises::<f32>(72, &[1e-2, 1e-3, 1e-4]);
}
