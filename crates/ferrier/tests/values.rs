//! The sign of the exponent, and real input of complex transforms.

use std::collections::BTreeMap;

use crate::common::{self, any_choice, exchanges, kernels, plan_of};
use ferrier::{Array, Choice, Complex, Keep, Kind, LayoutSpec, Problem, Sign};
use ferrier_test::{Field, Rng, watchdog};

/// The elements of an array by array of the batch and index.
type Values = BTreeMap<(usize, [usize; 3]), Complex<f64>>;

fn value(problem: &Problem, batch: usize, at: [usize; 3]) -> Complex<f64> {
    let value = Field::new(7, 53).complex(batch, at);
    if problem.is_real() { Complex::new(value.re, 0.0) } else { value }
}

fn values(array: &Array<f64>, batch: usize) -> Values {
    let part = if array.is_complex() { array.local_box() } else { array.real_box() };
    let mut found = Values::new();
    for b in 0..batch {
        for i in part.lo[0]..part.hi[0] {
            for j in part.lo[1]..part.hi[1] {
                for k in part.lo[2]..part.hi[2] {
                    let at = array.index(b, [i, j, k]).unwrap();
                    let value = match array.is_complex() {
                        true => array.complex()[at],
                        false => array.real()[at].into(),
                    };
                    found.insert((b, [i, j, k]), value);
                }
            }
        }
    }
    found
}

/// The spectrum of [`value`], conjugated before if `conjugate`, and what comes back; in place too.
fn run(problem: &Problem, choice: &Choice, (ranks, nodes): (usize, usize), conjugate: bool) -> [Values; 2] {
    let outcome = ferrier::ranks(ranks).nodes(nodes).run(|comm| {
        let mut plan = plan_of::<f64>(&comm, problem, choice)?;
        let (mut field, mut spectrum, mut back) =
            (plan.make_input()?, plan.make_output()?, plan.make_input()?);
        let given = |b: usize, at: [usize; 3]| {
            let value = value(problem, b, at);
            if conjugate { value.conj() } else { value }
        };
        let mut both = plan.make_in_place()?;
        match problem.is_real() {
            true => {
                field.fill_real(|b, at| given(b, at).re);
                both.fill_real(|b, at| given(b, at).re);
            }
            false => {
                field.fill_complex(given);
                both.fill_complex(given);
            }
        }
        plan.forward(&field, &mut spectrum)?;
        plan.backward(&spectrum, &mut back)?;
        plan.call().forward_in_place(&mut both)?;
        plan.call().backward_in_place(&mut both)?;
        let back = values(&back, problem.batch);
        for (&(b, at), value) in &back {
            let found = match problem.is_real() {
                true => both.real()[both.real_index(b, at).unwrap()].into(),
                false => both.complex()[both.complex_index(b, at).unwrap()],
            };
            assert_eq!(found, *value, "in place, {at:?}");
        }
        Ok([values(&spectrum, problem.batch), back])
    });
    let parts = outcome.unwrap_or_else(|error| panic!("{error}: {problem:?} {choice:?}"));
    let mut all = [Values::new(), Values::new()];
    for part in parts {
        all.iter_mut().zip(part).for_each(|(all, part)| all.extend(part));
    }
    all
}

fn distance(one: &Values, two: &Values) -> f64 {
    assert_eq!(one.len(), two.len());
    let apart: f64 = one.iter().map(|(at, value)| (value - two[at]).norm_sqr()).sum();
    (apart / one.values().map(Complex::norm_sqr).sum::<f64>().max(1e-300)).sqrt()
}

fn problems(rng: &mut Rng) -> Problem {
    let shape = [0; 3].map(|_| *rng.pick(&[1, 2, 4, 5, 7, 8, 12]));
    let problem = match rng.below(7) {
        0 | 1 => Problem::c2c(shape),
        2 => Problem::c2c_1d(60),
        3 => Problem::mixed(shape, [Kind::Dct2, Kind::Complex, Kind::Dst3]),
        4 => Problem::c2c([9, 8, 10]).keep_sphere(3.0),
        5 => Problem::c2c([12, 8, 10]).keep([Keep::Lowest(5), Keep::All, Keep::Lowest(6)]).support(0, 1..8),
        _ => Problem::c2c(shape).axes(&[rng.below(3)]),
    };
    let layouts = [LayoutSpec::bricks(), LayoutSpec::slabs(rng.below(3)), LayoutSpec::pencils(rng.below(3))];
    match problem.long || problem.sphere.is_some() {
        true => problem.batch(1 + rng.below(2)),
        false => problem
            .input(rng.pick(&layouts).clone())
            .output(rng.pick(&layouts).clone())
            .batch(1 + rng.below(3)),
    }
}

/// A random problem on random ranks, with a random choice.
fn each_case(seed: u64, mut check: impl FnMut(&mut Rng, Problem, &Choice, (usize, usize))) {
    let _watchdog = watchdog(300);
    let mut rng = Rng::for_test(seed);
    for case in 0..if common::thin() { 10 } else { 60 } {
        let problem = problems(&mut rng);
        let ranks = 1 + rng.below(5);
        let exchange = exchanges()[case % exchanges().len()];
        let kernel = *rng.pick(&kernels());
        let choice = any_choice(exchange, kernel, ranks, &mut rng);
        check(&mut rng, problem, &choice, (ranks, common::nodes(exchange, ranks, case)));
    }
}

#[test]
fn the_positive_sign_conjugates() {
    each_case(19, |rng, problem, choice, ranks| {
        let conjugates = |values: &Values| values.iter().map(|(at, value)| (*at, value.conj())).collect();
        let plus = problem.clone().sign(Sign::Positive);
        let ([found, back], [other, _]) =
            (run(&plus, choice, ranks, false), run(&problem, choice, ranks, true));
        let other: Values = conjugates(&other);
        assert!(distance(&found, &other) < 1e-14, "{plus:?} {choice:?} {ranks:?}");
        if problem.keep == [Keep::All; 3] && problem.sphere.is_none() {
            let start: Values = back.keys().map(|&(b, at)| ((b, at), value(&problem, b, at))).collect();
            assert!(distance(&back, &start) < 1e-14, "there and back: {plus:?} {choice:?} {ranks:?}");
        }
        // Real lines: the same kernel, then the conjugate.
        let halved = Problem::r2c([6, 8, 5 + rng.below(4)]).halved(rng.below(3)).batch(problem.batch);
        let halved =
            if problem.long { halved } else { halved.input(problem.input).output(LayoutSpec::bricks()) };
        let [found, back] = run(&halved.clone().sign(Sign::Positive), choice, ranks, false);
        let [other, start] = run(&halved, choice, ranks, false);
        let other: Values = conjugates(&other);
        assert_eq!((found, back), (other, start), "{halved:?} {choice:?} {ranks:?}");
    });
}

#[test]
fn real_input_is_complex_input_without_imaginary_parts() {
    each_case(20, |_, problem, choice, ranks| {
        let real = problem.clone().real_input(true);
        assert!(real.is_real() && !real.has_real_spectrum());
        // The order of axes may depend on the size of elements.
        let [found, back] = run(&real, choice, ranks, false);
        let outcome = ferrier::ranks(ranks.0).nodes(ranks.1).run(|comm| {
            let mut plan = plan_of::<f64>(&comm, &problem, choice)?;
            let (mut field, mut spectrum) = (plan.make_input()?, plan.make_output()?);
            field.fill_complex(|b, at| value(&real, b, at));
            plan.forward(&field, &mut spectrum)?;
            plan.backward(&spectrum, &mut field)?;
            Ok([values(&spectrum, problem.batch), values(&field, problem.batch)])
        });
        let mut all = [Values::new(), Values::new()];
        for part in outcome.unwrap() {
            all.iter_mut().zip(part).for_each(|(all, part)| all.extend(part));
        }
        let told = || format!("{real:?} {choice:?} {ranks:?}");
        assert!(distance(&found, &all[0]) < 1e-14, "{}", told());
        let parts: Values = all[1].iter().map(|(at, value)| (*at, value.re.into())).collect();
        assert!(distance(&back, &parts) < 1e-14, "back: {}", told());
    });
}

#[test]
fn operators_with_the_positive_sign_are_refused() {
    let problem = Problem::c2c([4, 4, 4]).sign(Sign::Positive).operators(true);
    let found = problem.check().unwrap_err().to_string();
    assert!(found.contains("e^(-i k x)"), "{found}");
}
