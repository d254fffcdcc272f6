//! The error of a transform is at most what its certificate says, and that at
//! most what was allowed: for any data, layout, exchange and tolerance.

use crate::common;

use common::{Number, any_overlap, from_f64, plan_of, to_f64};
use ferrier::{Certificate, Choice, Error, Keep, LayoutSpec, Plan, Problem, Result, Scale};
use ferrier_test::dft::{Direction, dft, indices, keep_half};
use ferrier_test::{Rng, watchdog};
use num_complex::Complex;

/// How many random problems: `FERRIER_CASES`, or a few. From 1000 on other tests are larger too.
fn count() -> usize {
    std::env::var("FERRIER_CASES").map_or(198, |text| text.parse().expect("FERRIER_CASES is a number"))
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
        let mut choice = Choice::new().overlap(overlap);
        choice.exchange = exchange;
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
        assert!(error <= certificate.bound(), "{}\n{error:e}, {certificate:?}", told());
        assert!(certificate.bound() <= tolerance, "{}\n{certificate:?}", told());
        encoded += usize::from(raw > 0 && sent != raw);
        lossy += usize::from(certificate.loss > 0.0);
    }
    // Else nothing was tested.
    assert!(encoded * 2 > count() && lossy * 3 > count(), "{encoded} encoded, {lossy} lossy");
}

#[test]
fn tolerances_are_kept_in_double_precision() {
    promises::<f64>(71, &[1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12]);
}

#[test]
fn tolerances_are_kept_in_single_precision() {
    promises::<f32>(72, &[1e-2, 1e-3, 1e-4]);
}

/// A plan's result beside that of raw numbers, relative to it: the error, the
/// loss in the certificate, the bytes over those of raw numbers.
struct Found {
    error: f64,
    loss: f64,
    bytes: f64,
}

/// From bricks to bricks on eight ranks.
fn cube(n: usize) -> Problem {
    Problem::c2c([n; 3]).input(LayoutSpec::bricks()).output(LayoutSpec::bricks())
}

/// The same layouts between steps on every machine, for every precision and codec, so that bytes can be compared.
fn fixed() -> Choice {
    Choice::new().exchange("all_to_allv").axes([2, 1, 0]).grid([8, 1])
}

/// Forward with each codec (or with a tolerance, by its number), of this field.
fn against_raw<T: Number>(
    n: usize,
    codecs: &[&str],
    field: &(dyn Fn([usize; 3]) -> Complex<f64> + Sync),
) -> Vec<Found> {
    let all = ferrier::ranks(8).run(|comm| {
        let mut raw = plan_of::<f64>(&comm, &cube(n), &fixed())?;
        let (mut input, mut exact) = (raw.make_input()?, raw.make_output()?);
        input.fill_complex(|_, index| field(index));
        raw.forward(&input, &mut exact)?;
        let mut found = Vec::new();
        for codec in codecs {
            let (problem, choice) = match codec.parse() {
                Ok(tolerance) => (cube(n).tolerance(tolerance), fixed()),
                Err(_) => (cube(n), fixed().codec(*codec)),
            };
            let mut plan = plan_of::<T>(&comm, &problem, &choice)?;
            let (mut input, mut output) = (plan.make_input()?, plan.make_output()?);
            input.fill_complex(|_, index| from_f64(field(index)));
            plan.forward(&input, &mut output)?;
            let pairs = output.complex().iter().zip(exact.complex());
            let wrong: f64 = pairs.map(|(a, b)| (to_f64(*a) - b).norm_sqr()).sum();
            let size: f64 = exact.complex().iter().map(|x| x.norm_sqr()).sum();
            let sums = comm.sum(&[wrong, size, plan.wire_bytes() as f64, raw.wire_bytes() as f64])?;
            let loss = plan.certificate().expect("after a transform").loss;
            found.push(Found { error: (sums[0] / sums[1]).sqrt(), loss, bytes: sums[2] / sums[3] });
        }
        Ok(found)
    });
    all.unwrap().swap_remove(0)
}

fn noise(at: [usize; 3]) -> Complex<f64> {
    ferrier_test::Field::new(3, 53).complex(0, at)
}

#[test]
fn fewer_bytes_and_smaller_errors() {
    let _watchdog = watchdog(120);
    let n = if count() < 1000 { 64 } else { 128 };
    let found = against_raw::<f64>(n, &["1e-4", "1e-7", "f32", "f16", "block:16"], &noise);
    assert!(found[0].bytes <= 0.3 && found[1].bytes <= 0.55, "{} {}", found[0].bytes, found[1].bytes);
    let [single, half, block] = [&found[2], &found[3], &found[4]];
    let all_single = &against_raw::<f32>(n, &["raw"], &noise)[0];
    assert!(single.error <= all_single.error / 3.0, "{} {}", single.error, all_single.error);
    assert!(single.bytes <= 1.001 * all_single.bytes, "{} {}", single.bytes, all_single.bytes);
    assert!(block.error <= half.error / 4.0, "{} {}", block.error, half.error);
    assert!(block.bytes <= 1.05 * half.bytes, "{} {}", block.bytes, half.bytes);
}

/// The bound is not far from the truth, and on smooth data correlations pay.
#[test]
fn losses_are_near_the_errors() {
    let _watchdog = watchdog(120);
    let codecs = ["f32", "f16", "bf16", "trim:7", "trim:20", "block:8", "block:16", "zfp:rate=16"];
    let found = against_raw::<f64>(24, &codecs, &noise);
    let ratios: Vec<f64> = found.iter().map(|found| found.loss / found.error).collect();
    assert!(ratios.iter().all(|ratio| *ratio >= 1.0), "{ratios:?}");
    assert!(ratios.iter().sum::<f64>() <= 3.0 * ratios.len() as f64, "{ratios:?}");
    let wave = |a: usize| 2.0 * std::f64::consts::PI * a as f64 / 24.0;
    let smooth =
        |[i, j, k]: [usize; 3]| Complex::new(wave(i).sin() + wave(j).cos(), (wave(k) + wave(i)).cos());
    let found = against_raw::<f64>(24, &["trim:7", "block:16", "zfp:rate=16"], &smooth);
    assert!(found[1].bytes <= 1.05 * found[0].bytes && found[2].bytes <= 1.01 * found[0].bytes);
    assert!(found[1].error < found[0].error / 4.0, "{} {}", found[1].error, found[0].error);
}

/// Where nearly all of the data is dropped, what was lost of it may be more
/// than what is left: an error on every rank, and the certificate says how much.
#[test]
fn a_result_that_is_too_small_is_an_error() {
    // No axis is whole on any rank: everything is sent before anything is dropped.
    let problem = Problem::c2c([16, 16, 16]).keep([Keep::Lowest(4); 3]).tolerance(1e-4);
    let problem = problem.input(LayoutSpec::bricks());
    let run = |rest: f64| {
        ferrier::ranks(8).run(|comm| {
            let mut plan = plan_of::<f64>(&comm, &problem, &Choice::default())?;
            let (mut input, mut output) = (plan.make_input()?, plan.make_output()?);
            // Noise in a mode that is dropped, and a little of one that is kept.
            let sign = |[i, j, k]: [usize; 3]| if (i + j + k) % 2 == 0 { 1.0 } else { -1.0 };
            input.fill_complex(|_, at| noise(at) * 1e-3 * sign(at) + Complex::new(sign(at) + rest, 0.0));
            let outcome = plan.forward(&input, &mut output);
            let certificate = plan.certificate().expect("after a transform");
            Ok((outcome, certificate.loss))
        })
    };
    let fine = run(1.0).unwrap();
    assert!(fine.iter().all(|(outcome, loss)| outcome.is_ok() && *loss < 1e-4), "{fine:?}");
    let tiny = run(1e-6).unwrap();
    let told =
        |outcome: &Result<()>| matches!(outcome, Err(Error::Tolerance { allowed, .. }) if *allowed == 1e-4);
    assert!(tiny.iter().all(|(outcome, loss)| told(outcome) && *loss > 1e-4), "{tiny:?}");
}
