//! Operators: a trip there and back is forward, the operator and backward, to
//! the last bit, whatever the layouts, ranks, exchange, tiles and arrays.

use crate::common;

use common::{Number, choice, exchanges, from_f64, kernels, plan_of};
use ferrier::{
    Array, Choice, Data, DataMut, Error, Keep, Kind, LayoutSpec, Modes, Operator, Order, Overlap, Plan,
    Problem, Result, Tiling,
};
use ferrier_test::cases::ORDERS;
use ferrier_test::{Field, Rng, watchdog};
use num_complex::Complex;

/// Multiplies each mode by a random number that depends on its index and array alone.
struct Noise(Field);

impl Noise {
    fn factor<T: Number>(&self, batch: usize, index: [usize; 3]) -> Complex<T> {
        from_f64(self.0.complex(batch, index))
    }
}

impl<T: Number> Operator<T> for Noise {
    fn apply(&self, modes: &mut Modes<'_, T>) {
        for mut run in modes.runs() {
            let (mut index, axis, batch) = (run.first(), run.axis(), run.batch());
            if run.is_real() {
                for mode in run.real() {
                    *mode *= self.factor::<T>(batch, index).re;
                    index[axis] += 1;
                }
                continue;
            }
            for mode in run.complex() {
                *mode = *mode * self.factor(batch, index);
                index[axis] += 1;
            }
        }
    }
}

struct Trial {
    problem: Problem,
    choice: Choice,
    ranks: usize,
    threads: usize,
}

fn layout(rng: &mut Rng) -> LayoutSpec {
    let spec = match rng.below(3) {
        0 => LayoutSpec::bricks(),
        1 => LayoutSpec::slabs(rng.below(3)),
        _ => LayoutSpec::pencils(rng.below(3)),
    };
    spec.order(Order::new(*rng.pick(&ORDERS)).expect("an order"))
}

fn trial(rng: &mut Rng) -> Trial {
    let shape = [0; 3].map(|_| 1 + rng.below(13));
    let mut axes = vec![0, 1, 2];
    rng.shuffle(&mut axes);
    axes.truncate(1 + rng.below(3));
    let problem = match rng.below(4) {
        0 => Problem::c2c(shape).axes(&axes),
        1 => Problem::r2c(shape).halved(*rng.pick(&axes)).axes(&axes),
        2 => Problem::mixed(shape, kinds(shape, &axes, rng)),
        _ => sphere(shape, rng),
    };
    let whole = problem.columns().is_empty();
    let problem = if whole && rng.below(2) == 0 { prune(problem, rng) } else { problem };
    let output = if rng.below(2) == 0 { LayoutSpec::unconstrained() } else { layout(rng) };
    let problem = problem.input(layout(rng)).output(output).batch(1 + rng.below(3));
    let [exchange, kernel] = [*rng.pick(&exchanges()), *rng.pick(&kernels())];
    let mut choice = choice(exchange, kernel);
    if rng.below(2) == 0 {
        let tiling = |rng: &mut Rng| Tiling::new(1 + rng.below(4)).window(1 + rng.below(3));
        let list = |rng: &mut Rng| (0..rng.below(3)).map(|_| tiling(rng)).collect::<Vec<_>>();
        choice.overlap =
            Some(Overlap::new().forward(list(rng)).backward(list(rng)).arrays(*rng.pick(&[0, 0, 1, 2])));
    }
    choice.fuse = [None, Some(true), Some(false)][rng.below(3)];
    Trial { problem: problem.operators(true), choice, ranks: 1 + rng.below(6), threads: 1 + rng.below(2) }
}

/// Columns of a sphere, sometimes of half a spectrum, sometimes of a disc.
fn sphere(mut shape: [usize; 3], rng: &mut Rng) -> Problem {
    let radius = *rng.pick(&[0.0, 1.0, 2.5, 3.0, 4.2, 20.0]);
    if rng.below(4) == 0 {
        shape[0] = 1;
    }
    let whole = if rng.below(2) == 0 { Problem::c2c(shape) } else { Problem::r2c(shape) };
    let whole = if shape[0] == 1 && rng.below(2) == 0 { whole.axes(&[1, 2]) } else { whole };
    whole.keep_ellipsoid(*rng.pick(&[[radius; 3], [radius, 0.7 * radius, 1.4 * radius]]))
}

/// Kinds for these axes; one of them at most is halved.
fn kinds(shape: [usize; 3], axes: &[usize], rng: &mut Rng) -> [Kind; 3] {
    let mut kinds = [Kind::Identity; 3];
    for &axis in axes {
        kinds[axis] = match Kind::NAMES[1 + rng.below(Kind::NAMES.len() - 1)].1 {
            Kind::Real if kinds.contains(&Kind::Real) => Kind::Complex,
            Kind::Dct1 if shape[axis] < 2 => Kind::Dct2,
            kind => kind,
        };
    }
    kinds
}

/// Keeps some of the modes, fills some of the points.
fn prune(mut problem: Problem, rng: &mut Rng) -> Problem {
    let (shape, kinds) = (problem.lengths(), problem.kinds());
    let keep = [0, 1, 2].map(|axis| match (kinds[axis], rng.below(3)) {
        (Kind::Identity, _) | (_, 0) => Keep::All,
        (_, 1) => Keep::Lowest(1 + rng.below(shape[axis])),
        (kind, _) => {
            let modes = kind.modes(shape[axis]);
            let from = rng.below(modes);
            Keep::Range(from, from + 1 + rng.below(modes - from))
        }
    });
    for axis in (0..3).filter(|&axis| kinds[axis] != Kind::Identity) {
        if rng.below(3) == 0 {
            let from = rng.below(shape[axis]);
            problem = problem.support(axis, from..from + 1 + rng.below(shape[axis] - from));
        }
    }
    problem.keep(keep)
}

fn fill<T: Number>(plan: &Plan<T>, array: &mut Array<T>) {
    let field = Field::new(5, 24);
    match plan.recipe().is_real() {
        true => array.fill_real(|b, at| T::rounded(field.real(b, at))),
        false => array.fill_complex(|b, at| from_f64(field.complex(b, at))),
    }
}

fn dirty<T: Number>(array: &mut Array<T>) {
    array.scalars_mut().fill(T::rounded(f64::NAN));
}

/// The numbers of an array in place, without those that pad its rows.
fn unpadded<T: Number>(plan: &Plan<T>, array: &Array<T>) -> Vec<T> {
    let mut plain = plan.make_input().expect("memory");
    let field = |b, at| array.real_index(b, at).map(|at| array.real()[at]).expect("an index of this rank's");
    match plan.recipe().is_real() {
        true => plain.fill_real(field),
        false => return array.scalars().to_vec()[..plain.scalars().len()].to_vec(),
    }
    plain.scalars().to_vec()
}

fn check<T: Number>(trial: &Trial, turn: u64) -> Result<()> {
    let noise = Noise(Field::new(turn, 24));
    let told = || format!("turn {turn}: {:?} {:?} on {} ranks", trial.problem, trial.choice, trial.ranks);
    let ranks = ferrier::ranks(trial.ranks).threads(trial.threads);
    ranks.run(|comm| {
        let mut plan = plan_of::<T>(&comm, &trial.problem, &trial.choice)?;
        let (mut x, mut spectrum) = (plan.make_input()?, plan.make_output()?);
        let (mut modes, mut wanted, mut got) = (plan.make_output()?, plan.make_input()?, plan.make_input()?);
        fill(&plan, &mut x);
        plan.forward(&x, &mut spectrum)?;
        dirty(&mut modes);
        plan.call().operator(&noise).forward(&x, &mut modes)?;
        dirty(&mut got);
        plan.call().operator(&noise).backward(&spectrum, &mut got)?;
        spectrum.apply(&noise, 1 + turn as usize % 3);
        assert!(spectrum.scalars() == modes.scalars(), "forward_with, {}", told());
        plan.backward(&spectrum, &mut wanted)?;
        assert!(wanted.scalars() == got.scalars(), "backward_with, {}", told());
        dirty(&mut got);
        plan.call().operator(&noise).apply(&x, &mut got)?;
        assert!(wanted.scalars() == got.scalars(), "apply, {}", told());
        let mut place = plan.make_in_place()?;
        dirty(&mut place);
        fill(&plan, &mut place);
        plan.call().operator(&noise).apply_in_place(&mut place)?;
        assert!(unpadded(&plan, &place) == wanted.scalars(), "in place, {}", told());
        Ok(())
    })?;
    Ok(())
}

#[test]
fn a_round_trip_is_forward_operator_backward_to_the_last_bit() -> Result<()> {
    let _watchdog = watchdog(120);
    let mut rng = Rng::for_test(71);
    for turn in 0..if common::thin() { 20 } else { 120 } {
        let trial = trial(&mut rng);
        match turn % 4 {
            0 => check::<f32>(&trial, turn)?,
            _ => check::<f64>(&trial, turn)?,
        }
    }
    Ok(())
}

#[test]
fn a_single_point_has_a_spectrum_too() -> Result<()> {
    for problem in [Problem::c2c([1, 1, 1]), Problem::r2c([1, 1, 1]), Problem::c2c([1, 1, 1]).axes(&[1])] {
        let choice = Choice::default();
        check::<f64>(&Trial { problem: problem.operators(true), choice, ranks: 2, threads: 1 }, 0)?;
    }
    Ok(())
}

#[test]
fn plans_without_operators_say_so() -> Result<()> {
    let failed = ferrier::ranks(2).run(|comm| {
        let mut plan = Plan::<f64>::new(&comm, &Problem::c2c([4, 4, 4]))?;
        let (x, mut y) = (plan.make_input()?, plan.make_input()?);
        let error =
            plan.call().operator(&Noise(Field::new(1, 24))).apply(&x, &mut y).expect_err("no operators");
        assert!(
            matches!(&error, Error::Choice(invalid) if invalid.message.contains("operators(true)")),
            "{error}"
        );
        Ok(())
    });
    failed?;
    let problem = Problem::c2c([4, 4, 4]).axes(&[]).operators(true);
    assert!(
        matches!(problem.check(), Err(ferrier::PlanError::Problem(invalid)) if invalid.message.contains("no axis is transformed"))
    );
    Ok(())
}

/// The norm of an operator enters the bound of `apply`; where it is unknown, a plan with a tolerance refuses.
#[test]
fn apply_is_certified_where_the_norm_is_known() -> Result<()> {
    let _watchdog = watchdog(60);
    for problem in [Problem::c2c([12, 16, 18]), Problem::r2c([12, 16, 18])] {
        let outcome = ferrier::ranks(3).run(|comm| {
            let problem = problem.clone().output(ferrier::LayoutSpec::unconstrained()).operators(true);
            let mut exact = Plan::<f64>::new(&comm, &problem)?;
            let mut plan = Plan::<f64>::new(&comm, &problem.tolerance(1e-5))?;
            let waves = ferrier::spectral::WaveNumbers::new(plan.recipe(), [std::f64::consts::TAU; 3])?;
            let (mut x, mut y, mut want) = (plan.make_input()?, plan.make_input()?, exact.make_input()?);
            let value = |[i, j, k]: [usize; 3]| ((i * i + 3 * j + 7 * k * k) as f64).sin();
            match x.is_real() {
                true => x.fill_real(|_, index| value(index)),
                false => x.fill_complex(|_, index| ferrier::Complex::new(value(index), 0.5)),
            }
            let moved = ferrier::spectral::shift(&waves, [0.3, 0.1, 0.2])?;
            let square = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>();
            exact.call().operator(&moved).apply(&x, &mut want)?;
            plan.call().operator(&moved).apply(&x, &mut y)?;
            let off: Vec<f64> = y.scalars().iter().zip(want.scalars()).map(|(a, b)| a - b).collect();
            let sums = comm.sum(&[square(&off), square(want.scalars())])?;
            let (error, certificate) =
                ((sums[0] / sums[1]).sqrt(), plan.certificate().expect("it is bounded"));
            assert!(
                error > 0.0 && error <= certificate.loss && certificate.bound() <= 1e-5,
                "{error} {certificate:?}"
            );
            let lifted = ferrier::pointwise(|_, mode: ferrier::Complex<f64>| mode + 1.0);
            let refused = plan.call().operator(&lifted).apply(&x, &mut y);
            assert!(
                matches!(&refused, Err(Error::Choice(why)) if why.message.contains("bounded")),
                "{refused:?}"
            );
            plan.call().operator(&ferrier::bounded(&lifted, 1.0)).apply(&x, &mut y)
        });
        outcome?;
    }
    Ok(())
}

#[test]
fn an_operator_that_panics_fails_the_group() {
    let _watchdog = watchdog(60);
    let outcome = ferrier::ranks(3).run(|comm| {
        let mut plan = Plan::<f64>::new(&comm, &Problem::c2c([6, 6, 6]).operators(true))?;
        let (x, mut y) = (plan.make_input()?, plan.make_input()?);
        let bad =
            ferrier::pointwise(|index, value| if index == [3, 3, 3] { panic!("a bad mode") } else { value });
        plan.call().operator(&bad).apply(&x, &mut y)
    });
    let text = outcome.expect_err("it panicked").to_string();
    assert!(text.contains("a bad mode"), "{text}");
}
