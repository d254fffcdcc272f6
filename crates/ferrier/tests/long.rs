//! Long 1-D transforms over ranks: against the oracle, and at 2^24 points by
//! what must hold of every Fourier transform.

use crate::common;

use common::{Number, choice, exchanges, from_f64, kernels, plan_of, to_f64};
use ferrier::{Array, Error, LayoutSpec, Plan, Problem, Result};
use ferrier_test::dft::{Direction, dft, twiddles};
use ferrier_test::{Errors, Field, Rng, Sum, tolerance, watchdog};
use num_complex::Complex;

/// The point of the input that lies at an index of the matrix.
fn point(problem: &Problem, index: [usize; 3]) -> usize {
    index[1] * problem.shape()[2] + index[2]
}

/// The mode of the output that lies there.
fn mode(problem: &Problem, index: [usize; 3]) -> usize {
    index[2] * problem.shape()[1] + index[1]
}

fn signal(field: &Field, batch: usize, j: usize) -> Complex<f64> {
    field.complex(batch, [j, 0, 0])
}

/// All indices of a rank's part.
fn each(array: &Array<impl Number>, mut visit: impl FnMut([usize; 3], usize)) {
    let part = array.local_box();
    for i in part.lo[1]..part.hi[1] {
        for j in part.lo[2]..part.hi[2] {
            visit([0, i, j], array.index(0, [0, i, j]).expect("an index of this rank's"));
        }
    }
}

fn check<T: Number>(n: usize, ranks: usize, transposed: bool, rng: &mut Rng) -> Result<()> {
    let field = Field::new(n as u64, T::BITS);
    let input: Vec<_> = (0..n).map(|j| signal(&field, 0, j)).collect();
    let wanted = dft(&input, [1, 1, n], &[2], Direction::Forward, 1.0);
    let problem = Problem::c2c_1d(n);
    let problem = if transposed { problem.output(LayoutSpec::slabs(1)) } else { problem };
    let [exchange, kernel] = [*rng.pick(&exchanges()), *rng.pick(&kernels())];
    let choice = choice(exchange, kernel);
    let told = format!("{n} points, {ranks} ranks, transposed {transposed}, {choice:?}");
    let found = ferrier::ranks(ranks).threads(1 + rng.below(2)).run(|comm| {
        let mut plan = plan_of::<T>(&comm, &problem, &choice)?;
        let (mut x, mut y, mut back) = (plan.make_input()?, plan.make_output()?, plan.make_input()?);
        x.fill_complex(|_, at| from_f64(signal(&field, 0, point(&problem, at))));
        plan.forward(&x, &mut y)?;
        let mut errors = [Errors::default(), Errors::default()];
        each(&y, |index, at| errors[0].add(to_f64(y.complex()[at]), wanted[mode(&problem, index)]));
        plan.backward(&y, &mut back)?;
        each(&x, |_, at| errors[1].add(to_f64(back.complex()[at]), to_f64(x.complex()[at])));
        if !transposed {
            consecutive(&plan, &y, &problem);
        }
        Ok(errors)
    })?;
    for (side, name) in ["forward", "round trip"].iter().enumerate() {
        let mut errors = Errors::default();
        found.iter().for_each(|rank| errors.merge(&rank[side]));
        // Twiddles are products of four roundings, beside what the two halves do.
        let allowed = tolerance::<T>(n.max(2)) * 2.0;
        errors.within(allowed, n).map_err(|why| Error::other(format!("{name}, {told}: {why}")))?;
    }
    Ok(())
}

/// In natural order a rank's modes follow each other in memory.
fn consecutive<T: Number>(plan: &Plan<T>, y: &Array<T>, problem: &Problem) {
    let mut places = Vec::new();
    each(y, |index, at| places.push((at, mode(problem, index))));
    places.sort_unstable();
    let first = places.first().map_or(0, |place| place.1);
    let natural = places.iter().enumerate().all(|(i, place)| *place == (i, first + i));
    assert!(natural, "modes of {:?} are out of order", plan.output_box());
}

#[test]
fn any_length_on_any_number_of_ranks() -> Result<()> {
    let _watchdog = watchdog(120);
    let mut rng = Rng::for_test(24);
    for n in [1, 2, 3, 4, 7, 12, 36, 97, 121, 202, 360, 1000, 1024, 2187] {
        for ranks in [1, 2, 3, 5] {
            check::<f64>(n, ranks, false, &mut rng)?;
            check::<f64>(n, ranks, true, &mut rng)?;
        }
        check::<f32>(n, 4, false, &mut rng)?;
    }
    Ok(())
}

#[test]
fn the_two_halves_go_together() {
    let problem = Problem::c2c_1d(24);
    assert_eq!(problem.shape(), [1, 4, 6]);
    assert_eq!(problem.mode(23), [0, 3, 5]);
    assert!(
        matches!(problem.axes(&[1]).check(), Err(ferrier::PlanError::Problem(invalid)) if invalid.message.contains("go together"))
    );
    assert_eq!(Problem::c2c_1d(101).shape(), [1, 1, 101]);
    assert!(Problem::c2c_1d(0).check().is_err());
}

#[test]
fn an_operator_comes_between_long_transforms() -> Result<()> {
    let n = 240;
    let problem = Problem::c2c_1d(n).operators(true);
    ferrier::ranks(3).run(|comm| {
        let mut plan = Plan::<f64>::new(&comm, &problem)?;
        let (mut x, mut y) = (plan.make_input()?, plan.make_input()?);
        let field = Field::new(3, 24);
        x.fill_complex(|_, at| signal(&field, 0, point(&problem, at)));
        // A shift by five points.
        let w = twiddles(n);
        let turn = ferrier::pointwise(|index, z: Complex<f64>| z * w[5 * mode(&problem, index) % n]);
        plan.call().operator(&turn).apply(&x, &mut y)?;
        each(&y, |index, at| {
            let wanted = signal(&field, 0, (point(&problem, index) + n - 5) % n);
            assert!((y.complex()[at] - wanted).norm() < 1e-13, "{index:?}");
        });
        Ok(())
    })?;
    Ok(())
}

/// 2^24 points on 4 ranks.
#[test]
fn sixteen_million_points() -> Result<()> {
    let _watchdog = watchdog(300);
    let n = if common::thin() { 1 << 16 } else { 1 << 24 };
    let problem = Problem::c2c_1d(n);
    let field = Field::new(9, 53);
    let mut rng = Rng::for_test(9);
    let impulse = rng.below(n);
    let picked: Vec<usize> = (0..2).map(|_| rng.below(n)).collect();
    let root = |m: u128| {
        let turn = (m % n as u128) as f64 / n as f64;
        Complex::cis(-2.0 * std::f64::consts::PI * turn)
    };
    let found = ferrier::ranks(4).run(|comm| {
        let mut plan = Plan::<f64>::new(&comm, &problem)?;
        let (mut x, mut y) = (plan.make_input()?, plan.make_output()?);
        // Noise: some modes by the sum that defines them, and the energy.
        x.fill_complex(|_, at| signal(&field, 0, point(&problem, at)));
        plan.forward(&x, &mut y)?;
        let mut sums = Vec::new();
        for &k in &picked {
            let (mut re, mut im) = (Sum::default(), Sum::default());
            each(&x, |index, at| {
                let term = x.complex()[at] * root(k as u128 * point(&problem, index) as u128);
                re.add(term.re);
                im.add(term.im);
            });
            let own = y.index(0, problem.mode(k)).map_or(Complex::ZERO, |at| y.complex()[at]);
            sums.extend([re.value(), im.value(), own.re, own.im]);
        }
        let energy =
            |array: &Array<f64>| array.complex().iter().map(|z| z.norm_sqr()).collect::<Sum>().value();
        sums.extend([energy(&x), energy(&y) / n as f64]);
        let sums = comm.sum(&sums)?;
        // An impulse becomes a wave.
        x.fill_complex(|_, at| Complex::new(f64::from(u8::from(point(&problem, at) == impulse)), 0.0));
        plan.forward(&x, &mut y)?;
        let mut worst: f64 = 0.0;
        each(&y, |index, at| {
            let k = mode(&problem, index);
            if k.is_multiple_of(61) {
                worst = worst.max((y.complex()[at] - root(impulse as u128 * k as u128)).norm());
            }
        });
        Ok((sums, worst))
    })?;
    let sums = &found[0].0;
    // The norm of a mode of noise is about the root of n; its error is relative to that.
    let scale = (n as f64).sqrt();
    for (k, mode) in picked.iter().zip(sums.chunks_exact(4)) {
        let error = ((mode[0] - mode[2]).powi(2) + (mode[1] - mode[3]).powi(2)).sqrt() / scale;
        assert!(error < 10.0 * tolerance::<f64>(n), "mode {k} of {n}: {error:.1e}");
    }
    let [before, after] = [sums[sums.len() - 2], sums[sums.len() - 1]];
    assert!((after / before - 1.0).abs() < 2.0 * tolerance::<f64>(n), "energy {before} became {after}");
    let worst = found.iter().map(|rank| rank.1).fold(0.0, f64::max);
    assert!(worst < tolerance::<f64>(n), "the worst mode of an impulse is off by {worst:.1e}");
    Ok(())
}
