//! Operators of the module `spectral` against formulas and direct sums, on
//! ranks, in random layouts.

use crate::common;

use std::f64::consts::TAU;

use common::{choice, exchanges, kernels};
use ferrier::spectral::{self, Calculus, Convolution, Products, WaveNumbers, linear_shape, power_spectrum};
use ferrier::{
    Array, Comm, Complex, Error, Keep, Kind, LayoutSpec, Operator, Plan, Planner, Problem, Result,
};
use ferrier_test::dft::indices;
use ferrier_test::{Field, Rng, watchdog};

const LENGTHS: [f64; 3] = [TAU, 3.0, 1.5];

/// A real field with a few waves along each axis, shifted by `by`, and its derivatives.
struct Waving {
    shape: [usize; 3],
    by: [f64; 3],
}

impl Waving {
    fn angle(&self, axis: usize, i: usize) -> f64 {
        TAU * (i as f64 / self.shape[axis] as f64 - self.by[axis] / LENGTHS[axis])
    }

    /// Derived so many times along each axis.
    fn derived(&self, at: [usize; 3], times: [u32; 3]) -> f64 {
        let wave = |axis: usize, waves: f64| {
            let k = waves * TAU / LENGTHS[axis];
            let quarter = f64::from(times[axis]) * TAU / 4.0;
            k.powi(times[axis] as i32) * (waves * self.angle(axis, at[axis]) + quarter).sin()
        };
        let constant = |axis: usize| if times[axis] == 0 { 1.0 } else { 0.0 };
        wave(0, 1.0) * wave(1, 2.0) * wave(2, 1.0) + wave(0, 2.0) * constant(1) * wave(2, 2.0)
    }

    fn laplacian(&self, at: [usize; 3]) -> f64 {
        [[2, 0, 0], [0, 2, 0], [0, 0, 2]].iter().map(|times| self.derived(at, *times)).sum()
    }
}

fn near(told: &str, got: &Array<f64>, wanted: impl Fn([usize; 3]) -> f64, within: f64) {
    let part = got.real_box();
    for i in part.lo[0]..part.hi[0] {
        for j in part.lo[1]..part.hi[1] {
            for k in part.lo[2]..part.hi[2] {
                let found = got.real()[got.real_index(0, [i, j, k]).expect("an index of this rank's")];
                let want = wanted([i, j, k]);
                assert!((found - want).abs() < within, "{told} at {:?}: {found}, not {want}", [i, j, k]);
            }
        }
    }
}

fn problem(shape: [usize; 3], rng: &mut Rng) -> Problem {
    let input = [LayoutSpec::bricks(), LayoutSpec::slabs(0), LayoutSpec::pencils(2), LayoutSpec::slabs(2)];
    let problem = match rng.below(3) {
        // All the waves of the fields are inside.
        0 => Problem::r2c(shape).keep_sphere(*rng.pick(&[3.0, 3.7, 20.0])),
        _ => Problem::r2c(shape).halved(rng.below(3)),
    };
    problem.input(rng.pick(&input).clone()).output(LayoutSpec::unconstrained()).operators(true)
}

/// Runs `work` with a plan and its waves, on some ranks with some exchange.
fn each(
    turns: usize,
    seed: u64,
    work: impl Fn(&Comm, &mut Plan<f64>, &WaveNumbers) -> Result<()> + Send + Sync,
) -> Result<()> {
    let _watchdog = watchdog(60);
    let mut rng = Rng::for_test(seed);
    for _ in 0..turns {
        let shape = [9 + rng.below(4), 9 + rng.below(4), 9 + rng.below(4)];
        let problem = problem(shape, &mut rng);
        let [exchange, kernel] = [*rng.pick(&exchanges()), *rng.pick(&kernels())];
        let choice = choice(exchange, kernel);
        ferrier::ranks(1 + rng.below(5)).run(|comm| {
            let mut plan = Planner::new(&problem).choice(choice.clone()).draft::<f64>(&comm)?.build()?;
            let waves = WaveNumbers::new(plan.recipe(), LENGTHS)?;
            work(&comm, &mut plan, &waves)
        })?;
    }
    Ok(())
}

fn applied(plan: &mut Plan<f64>, field: &Waving, operator: &impl Operator<f64>) -> Result<Array<f64>> {
    let (mut x, mut y) = (plan.make_input()?, plan.make_input()?);
    x.fill_real(|_, at| field.derived(at, [0; 3]));
    plan.call().operator(operator).apply(&x, &mut y)?;
    Ok(y)
}

#[test]
fn operators_agree_with_their_formulas() -> Result<()> {
    each(6, 31, |_, plan, waves| {
        let field = Waving { shape: plan.recipe().shape, by: [0.0; 3] };
        let value = |at| field.derived(at, [0; 3]);
        near(
            "laplacian",
            &applied(plan, &field, &spectral::laplacian(waves))?,
            |at| field.laplacian(at),
            1e-10,
        );
        for axis in 0..3 {
            let mut times = [0; 3];
            times[axis] = 1;
            let slope = applied(plan, &field, &spectral::derivative(waves, axis)?)?;
            near("derivative", &slope, |at| field.derived(at, times), 1e-11);
        }
        let by = [0.3, -1.1, 0.2];
        let moved = Waving { shape: field.shape, by };
        near(
            "shift",
            &applied(plan, &field, &spectral::shift(waves, by)?)?,
            |at| moved.derived(at, [0; 3]),
            1e-12,
        );
        // The inverse undoes the Laplacian; Helmholtz' operator undoes its own.
        let (mut f, mut u) = (plan.make_input()?, plan.make_input()?);
        f.fill_real(|_, at| field.laplacian(at) + 7.0);
        plan.call().operator(&spectral::inverse_laplacian(waves)).apply(&f, &mut u)?;
        near("inverse, without the mean", &u, value, 1e-12);
        f.fill_real(|_, at| -field.laplacian(at) + 2.5 * value(at));
        plan.call().operator(&spectral::helmholtz(waves, 2.5)).apply(&f, &mut u)?;
        near("helmholtz", &u, value, 1e-12);
        Ok(())
    })
}

#[test]
fn filters_drop_what_they_should() -> Result<()> {
    each(4, 32, |_, plan, waves| {
        let field = Waving { shape: plan.recipe().shape, by: [0.0; 3] };
        let k = |m: [f64; 3]| (0..3).map(|a| (m[a] * TAU / LENGTHS[a]).powi(2)).sum::<f64>();
        let (one, two) = (k([1.0, 2.0, 1.0]), k([2.0, 0.0, 2.0]));
        let first = |at: [usize; 3]| field.derived(at, [0; 3]) - second(&field, at);
        let kept = spectral::low_pass(waves, one.sqrt());
        near("low pass", &applied(plan, &field, &kept)?, first, 1e-12);
        let sigma = 0.2;
        let bell = |square: f64| (-0.5 * sigma * sigma * square).exp();
        let smooth = applied(plan, &field, &spectral::gaussian(waves, sigma))?;
        near("gaussian", &smooth, |at| bell(one) * first(at) + bell(two) * second(&field, at), 1e-12);
        // Nine points: modes 0, 1, 2 are below a third of them.
        near(
            "two thirds",
            &applied(plan, &field, &spectral::two_thirds(waves))?,
            |at| field.derived(at, [0; 3]),
            1e-12,
        );
        Ok(())
    })
}

/// The second of the two waves.
fn second(field: &Waving, at: [usize; 3]) -> f64 {
    (2.0 * field.angle(0, at[0])).sin() * (2.0 * field.angle(2, at[2])).sin()
}

/// The mode n/2 stands for both signs: odd operators drop it, even ones do not.
#[test]
fn the_nyquist_mode() -> Result<()> {
    for real in [true, false] {
        let shape = [4, 6, 8];
        let base = if real { Problem::r2c(shape) } else { Problem::c2c(shape) };
        let problem = base.output(LayoutSpec::unconstrained()).operators(true);
        ferrier::ranks(2).run(|comm| {
            let mut plan = Plan::<f64>::new(&comm, &problem)?;
            let waves = WaveNumbers::new(plan.recipe(), [TAU; 3])?;
            for axis in 0..3 {
                assert!(waves.is_nyquist(axis, shape[axis] / 2) && !waves.is_nyquist(axis, 1));
                let sign = |at: [usize; 3]| if at[axis].is_multiple_of(2) { 1.0 } else { -1.0 };
                let square = (shape[axis] as f64 / 2.0).powi(2);
                let (mut x, mut y) = (plan.make_input()?, plan.make_input()?);
                match real {
                    true => x.fill_real(|_, at| sign(at)),
                    false => x.fill_complex(|_, at| sign(at).into()),
                }
                let mut check = |operator: &dyn Operator<f64>, factor: f64| -> Result<()> {
                    plan.call().operator(&operator).apply(&x, &mut y)?;
                    let numbers = |array: &Array<f64>| -> Vec<f64> {
                        if real {
                            array.real().to_vec()
                        } else {
                            array.complex().iter().map(|z| z.re + 3.0 * z.im).collect()
                        }
                    };
                    let pairs: Vec<_> = numbers(&x).into_iter().zip(numbers(&y)).collect();
                    assert!(
                        pairs.iter().all(|(x, y)| (factor * x - y).abs() < 1e-13),
                        "axis {axis}: {pairs:?}"
                    );
                    Ok(())
                };
                check(&spectral::derivative(&waves, axis)?, 0.0)?;
                check(&spectral::laplacian(&waves), -square)?;
                let mut by = [0.0; 3];
                by[axis] = 0.4;
                check(&spectral::shift(&waves, by)?, (0.4 * square.sqrt()).cos())?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn waves_of_all_kinds() -> Result<()> {
    let recipe =
        |problem: &Problem| ferrier::design(problem, &Default::default(), ferrier::Precision::F64, 1);
    let numbers = |problem: Problem, axis: usize| -> Result<Vec<f64>> {
        let count = problem.spectrum_shape()[axis];
        let waves = WaveNumbers::new(&recipe(&problem)?, [TAU / 2.0; 3])?;
        Ok((0..count).map(|i| waves.at(axis, i)).collect())
    };
    let mixed = |kind| Problem::mixed([4, 4, 4], [kind, Kind::Identity, Kind::Identity]);
    assert_eq!(numbers(Problem::c2c([4, 5, 1]), 0)?, [0.0, 2.0, -4.0, -2.0]);
    assert_eq!(numbers(Problem::c2c([4, 5, 1]), 1)?, [0.0, 2.0, 4.0, -4.0, -2.0]);
    assert_eq!(numbers(Problem::r2c([4, 5, 6]), 2)?, [0.0, 2.0, 4.0, 6.0]);
    assert_eq!(numbers(mixed(Kind::Dct2), 0)?, [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(numbers(mixed(Kind::Dst1), 0)?, [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(numbers(mixed(Kind::Dst4), 0)?, [0.5, 1.5, 2.5, 3.5]);
    assert_eq!(numbers(mixed(Kind::Dst4), 1)?, [0.0; 4]);
    let kept = Problem::c2c([8, 8, 8]).keep([Keep::Lowest(4), Keep::Range(6, 8), Keep::All]);
    assert_eq!(numbers(kept.clone(), 0)?, [0.0, 2.0, -4.0, -2.0]);
    assert_eq!(numbers(kept.clone(), 1)?, [-4.0, -2.0]);
    let waves = WaveNumbers::new(&recipe(&kept)?, [1.0; 3])?;
    assert!(waves.is_nyquist(0, 2) && !(0..2).any(|i| waves.is_nyquist(1, i)) && waves.is_nyquist(2, 4));
    // Columns of a sphere: (0, 0), (1, 0), (-1, 0) and (0, 1) of axes 1 and 2.
    let sphere = Problem::r2c([8, 8, 8]).keep_sphere(1.0);
    assert_eq!(sphere.columns(), [[0, 0], [1, 0], [2, 0], [0, 1]]);
    let waves = WaveNumbers::new(&recipe(&sphere)?, [TAU; 3])?;
    assert_eq!((waves.place(0), waves.place(1), waves.place(2)), (0, 1, 1));
    assert_eq!([0, 1, 2, 3].map(|column| waves.at(1, column)), [0.0, 1.0, -1.0, 0.0]);
    assert_eq!(waves.vector([2, 3, 0]), [-1.0, 0.0, 1.0]);
    assert!(waves.is_held([2, 0, 0]) && waves.is_held([0, 3, 0]) && !waves.is_held([2, 3, 0]));
    let sines = WaveNumbers::new(&recipe(&mixed(Kind::Dst2))?, [1.0; 3])?;
    assert!(
        matches!(spectral::derivative::<f64>(&sines, 0), Err(Error::Problem(invalid)) if invalid.message.contains("Dst2"))
    );
    assert!(WaveNumbers::new(&recipe(&kept)?, [1.0, 0.0, 1.0]).is_err());
    assert!(WaveNumbers::new(&recipe(&Problem::c2c_1d(12))?, [1.0; 3]).is_err());
    Ok(())
}

#[test]
fn gradients_divergences_and_curls() -> Result<()> {
    let _watchdog = watchdog(60);
    let shape = [10, 9, 12];
    let field = Waving { shape, by: [0.0; 3] };
    for ranks in [1, 3] {
        ferrier::ranks(ranks).run(|comm| {
            let mut calculus =
                Calculus::<f64>::new(&comm, &Problem::r2c(shape).input(LayoutSpec::bricks()), LENGTHS)?;
            let mut f = calculus.plan().make_input()?;
            f.fill_real(|_, at| field.derived(at, [0; 3]));
            let mut slopes = calculus.fields()?;
            calculus.gradient(&f, &mut slopes)?;
            for (axis, slope) in slopes.iter().enumerate() {
                let mut times = [0; 3];
                times[axis] = 1;
                near("gradient", slope, |at| field.derived(at, times), 1e-11);
            }
            let mut out = calculus.plan().make_input()?;
            calculus.divergence(&slopes, &mut out)?;
            near("divergence of a gradient", &out, |at| field.laplacian(at), 1e-9);
            let mut curl = calculus.fields()?;
            calculus.curl(&slopes, &mut curl)?;
            curl.iter().for_each(|part| near("curl of a gradient", part, |_| 0.0, 1e-9));
            // (0, 0, f): its curl is (f_y, -f_x, 0).
            let mut column = calculus.fields()?;
            column[2].fill_real(|_, at| field.derived(at, [0; 3]));
            calculus.curl(&column, &mut curl)?;
            near("curl x", &curl[0], |at| field.derived(at, [0, 1, 0]), 1e-11);
            near("curl y", &curl[1], |at| -field.derived(at, [1, 0, 0]), 1e-11);
            near("curl z", &curl[2], |_| 0.0, 1e-11);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn convolutions_are_sums() -> Result<()> {
    let _watchdog = watchdog(60);
    let shape = [3, 5, 6];
    let (a, b) = (Field::new(1, 24), Field::new(2, 24));
    let sum = |at: [usize; 3], correlate: bool| -> Complex<f64> {
        let term = |y: [usize; 3]| {
            let turn = |axis: usize| match correlate {
                true => (at[axis] + y[axis]) % shape[axis],
                false => (at[axis] + shape[axis] - y[axis]) % shape[axis],
            };
            let other = a.complex(0, [turn(0), turn(1), turn(2)]);
            if correlate { b.complex(0, y).conj() * other } else { b.complex(0, y) * other }
        };
        indices(shape).map(term).sum()
    };
    for (ranks, scale) in [(1, ferrier::Scale::Unscaled), (3, ferrier::Scale::Symmetric)] {
        let problem = Problem::c2c(shape).scale_forward(scale).input(LayoutSpec::slabs(2));
        ferrier::ranks(ranks).run(|comm| {
            let mut convolution = Convolution::<f64>::new(&comm, &problem)?;
            let (mut x, mut y) = (convolution.plan().make_input()?, convolution.plan().make_input()?);
            x.fill_complex(|_, at| b.complex(0, at));
            convolution.kernel(&x)?;
            x.fill_complex(|_, at| a.complex(0, at));
            for correlate in [false, true] {
                match correlate {
                    true => convolution.correlate(&x, &mut y)?,
                    false => convolution.convolve(&x, &mut y)?,
                }
                let found = y.complex().to_vec();
                // The same array, filled with what is wanted.
                y.fill_complex(|_, at| sum(at, correlate));
                let worst = found.iter().zip(y.complex()).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
                assert!(worst < 1e-13, "correlate {correlate} on {ranks} ranks: {worst:e}");
            }
            Ok(())
        })?;
    }
    assert_eq!(linear_shape(shape, shape), [5, 9, 12]);
    let refused = ferrier::ranks(2).run(|comm| {
        let problem = Problem::c2c(shape).output(LayoutSpec::slabs(0)).operators(true);
        Convolution::<f64>::with(Planner::new(&problem).draft(&comm)?).map(drop)
    });
    assert!(matches!(refused, Err(Error::Choice(invalid)) if invalid.message.contains("best")));
    Ok(())
}

#[test]
fn power_is_where_the_waves_are() -> Result<()> {
    each(4, 33, |comm, plan, _| {
        let waves = WaveNumbers::new(plan.recipe(), [TAU; 3])?;
        let shape = plan.recipe().shape;
        let angle = |axis: usize, i: usize| TAU * i as f64 / shape[axis] as f64;
        let (mut x, mut spectrum) = (plan.make_input()?, plan.make_output()?);
        // |k| of the two waves: 3, and the root of 6, which is nearer to 2.
        x.fill_real(|_, [i, j, k]| {
            let two = angle(0, i) + 2.0 * angle(1, j) - angle(2, k);
            0.5 + 2.0 * (3.0 * angle(2, k)).cos() + 3.0 * two.sin()
        });
        plan.forward(&x, &mut spectrum)?;
        let shells = power_spectrum(comm, plan, &waves, &spectrum)?;
        let wanted = |shell: usize| [0.25, 0.0, 4.5, 2.0].get(shell).copied().unwrap_or(0.0);
        for (number, shell) in shells.iter().enumerate() {
            assert!((shell.power - wanted(number)).abs() < 1e-12, "shell {number}: {shell:?}");
            assert_eq!(shell.k, number as f64);
        }
        let modes: u64 = shells.iter().map(|shell| shell.modes).sum();
        let most = plan.recipe().sphere.map_or(f64::INFINITY, |radii| radii.get()[0]);
        let k = |at: [usize; 3], a: usize| at[a].min(shape[a] - at[a]).pow(2) as f64;
        let inside = |at: &[usize; 3]| (0..3).map(|a| k(*at, a)).sum::<f64>().sqrt() <= most;
        assert_eq!(modes as usize, indices(shape).filter(inside).count());
        Ok(())
    })
}

/// Products have the modes that a sum over all pairs of modes says, and no aliases.
#[test]
fn products_are_convolutions_of_modes() -> Result<()> {
    let _watchdog = watchdog(60);
    let shape = [5, 1, 6];
    let kept = [5_usize, 1, 5];
    let wave = |axis: usize, index: usize| {
        let (i, n) = (index as isize, kept[axis] as isize);
        if 2 * i < n { i } else { i - n }
    };
    let (a, b) = (Field::new(1, 24), Field::new(2, 24));
    let sum = |index: [usize; 3]| {
        let pair = |one: [usize; 3]| {
            let other: Option<Vec<usize>> = (0..3)
                .map(|axis| {
                    let k = wave(axis, index[axis]) - wave(axis, one[axis]);
                    let n = kept[axis] as isize;
                    (2 * k.abs() < n).then(|| ((k + n) % n) as usize)
                })
                .collect();
            other.map(|other| a.complex(0, one) * b.complex(0, [other[0], other[1], other[2]]))
        };
        indices(kept).filter_map(pair).sum::<Complex<f64>>()
    };
    for ranks in [1, 2] {
        ferrier::ranks(ranks).run(|comm| {
            let mut products = Products::<f64>::new(&comm, &Problem::c2c(shape))?;
            let (mut x, mut y, mut z) =
                (products.make_modes()?, products.make_modes()?, products.make_modes()?);
            x.fill_complex(|_, at| a.complex(0, at));
            y.fill_complex(|_, at| b.complex(0, at));
            products.multiply(&x, &y, &mut z)?;
            let found = z.complex().to_vec();
            z.fill_complex(|_, at| sum(at));
            let worst = found.iter().zip(z.complex()).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
            assert!(worst < 1e-13, "{ranks} ranks: {worst:e}");
            Ok(())
        })?;
    }
    Ok(())
}
