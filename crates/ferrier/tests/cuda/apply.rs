//! Operators on a GPU, against the CPU's plan.

use ferrier::spectral::{self, WaveNumbers};
use ferrier::{
    Box3, Choice, Comm, Complex, Data, Error, Formula, Keep, LayoutSpec, Modes, Operator, Overlap, Planner,
    Problem, Result, Tables, Tiling, pointwise,
};
use ferrier_test::{Errors, Rng, tolerance, watchdog};

use crate::common::Number;
use crate::{Gpu, KERNELS, gpu, planner};

/// Multiplies each mode by something that depends on its index, its array, tables
/// and a constant: wrong where one of them is.
struct Shade<T> {
    tables: [Vec<Complex<T>>; 3],
    constant: T,
}

impl<T: Number> Shade<T> {
    fn new(lens: [usize; 3], rng: &mut Rng) -> Self {
        let mut number = || T::rounded(0.5 + (rng.bits() >> 11) as f64 / (1_u64 << 53) as f64);
        let mut table = |len: usize| (0..len).map(|_| Complex::new(number(), number())).collect();
        let tables = lens.map(&mut table);
        Shade { tables, constant: T::rounded(0.25) }
    }
}

impl<T: Number> Operator<T> for Shade<T> {
    fn apply(&self, modes: &mut Modes<'_, T>) {
        for mut run in modes.runs() {
            let (mut index, axis, batch) = (run.first(), run.axis(), run.batch());
            for mode in run.complex() {
                let [a, b, c] = std::array::from_fn(|axis| self.tables[axis][index[axis]]);
                let own = (index[0] + 2 * index[1] + 3 * index[2]) % 5 + batch;
                *mode = *mode * (a * b + c) * (self.constant + T::rounded(own as f64));
                index[axis] += 1;
            }
        }
    }

    fn formula(&self) -> Option<Formula<'_, T>> {
        let code = "int own = (index[0] + 2 * index[1] + 3 * index[2]) % 5 + batch;
                    return z * (a * b + c) * (p[0] + own); // The constant is the first.";
        let constants = [self.constant, T::rounded(0.0), T::rounded(0.0), T::rounded(0.0)];
        Some(Formula {
            code,
            tables: Tables::Complex(std::array::from_fn(|axis| &self.tables[axis][..])),
            constants,
        })
    }
}

fn noise<T: Number>(input: &mut ferrier::Array<T>, seed: u64) {
    let mut rng = Rng::for_test(seed);
    let mut next = || T::rounded((rng.bits() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5);
    match input.is_real() {
        true => input.fill_real(|_, _| next()),
        false => input.fill_complex(|_, _| Complex::new(next(), next())),
    }
}

/// All indices of a box, for each array.
fn indices(part: Box3, batch: usize) -> Vec<(usize, [usize; 3])> {
    let Box3 { lo, hi } = part;
    let plane =
        |b: usize, i: usize| (lo[1]..hi[1]).flat_map(move |j| (lo[2]..hi[2]).map(move |k| (b, [i, j, k])));
    (0..batch).flat_map(|b| (lo[0]..hi[0]).map(move |i| (b, i))).flat_map(|(b, i)| plane(b, i)).collect()
}

fn distance<T: Number>(got: &[T], want: &[T]) -> f64 {
    let mut errors = Errors::default();
    got.iter().zip(want).for_each(|(got, want)| {
        let [got, want]: [f64; 2] = [(*got).into(), (*want).into()];
        errors.add(Complex::new(got, 0.0), Complex::new(want, 0.0));
    });
    errors.relative()
}

/// The largest relative errors of this rank: apply, in place, forward_with, backward_with.
fn all_ways<T: Number, O: Operator<T>>(
    comm: &Comm,
    gpu: &Gpu,
    (problem, choice): (&Problem, &Choice),
    operator: impl Fn(&ferrier::Recipe) -> O,
) -> Result<Vec<f64>> {
    let mut plan = planner(problem, choice, gpu).draft::<T>(comm)?.build()?;
    let mut same = choice.clone();
    same.kernel = None;
    let mut host = Planner::new(problem).choice(same).draft::<T>(comm)?.build()?;
    let operator = operator(plan.recipe());
    let mut found = Vec::new();
    let (mut input, mut field, mut spectrum) = (host.make_input()?, host.make_input()?, host.make_output()?);
    noise(&mut input, comm.rank() as u64);
    let (mut from, mut to, mut modes) = (plan.make_input()?, plan.make_input()?, plan.make_output()?);
    let (mut got, mut got_modes) = (host.make_input()?, host.make_output()?);
    from.upload(&input)?;
    host.call().operator(&operator).apply(&input, &mut field)?;
    // Twice: what a call leaves behind must not matter.
    for _ in 0..2 {
        plan.call().operator(&operator).apply(&from, &mut to)?;
        to.download(&mut got)?;
        found.push(distance(got.scalars(), field.scalars()));
    }
    let mut array = host.make_in_place()?;
    let mut device = plan.make_in_place()?;
    match problem.is_real() {
        true => array.fill_real(|b, at| input.real()[input.index(b, at).expect("here")]),
        false => array.fill_complex(|b, at| input.complex()[input.index(b, at).expect("here")]),
    }
    device.upload(&array)?;
    plan.call().operator(&operator).apply_in_place(&mut device)?;
    host.call().operator(&operator).apply_in_place(&mut array)?;
    let mut in_place = host.make_in_place()?;
    device.download(&mut in_place)?;
    let places = indices(plan.input_box(), plan.recipe().batch);
    let picked = |array: &ferrier::Array<T>| -> Vec<T> {
        let real = |(b, at): &(usize, [usize; 3])| array.real()[array.real_index(*b, *at).expect("here")];
        match problem.is_real() {
            true => places.iter().map(real).collect(),
            false => array.scalars()[..2 * places.len()].to_vec(),
        }
    };
    found.push(distance(&picked(&in_place), &picked(&array)));
    host.call().operator(&operator).forward(&input, &mut spectrum)?;
    plan.call().operator(&operator).forward(&from, &mut modes)?;
    modes.download(&mut got_modes)?;
    found.push(distance(got_modes.scalars(), spectrum.scalars()));
    host.call().operator(&operator).backward(&spectrum, &mut field)?;
    modes.upload(&spectrum)?;
    plan.call().operator(&operator).backward(&modes, &mut to)?;
    to.download(&mut got)?;
    found.push(distance(got.scalars(), field.scalars()));
    Ok(found)
}

fn check<T: Number, O: Operator<T>>(
    gpu: &Gpu,
    problem: &Problem,
    (ranks, choice): (usize, &Choice),
    operator: impl Fn(&ferrier::Recipe) -> O + Sync,
) {
    let told = format!("{problem:?}\n{choice:?} on {ranks}, {}", T::NAME);
    let run = |comm: Comm| all_ways::<T, O>(&comm, gpu, (problem, choice), &operator);
    let found = ferrier::ranks(ranks).threads(1).run(run).unwrap_or_else(|error| panic!("{told}: {error}"));
    let most = 4.0 * tolerance::<T>(problem.shape().iter().product());
    for (rank, errors) in found.iter().enumerate() {
        let wrong = errors.iter().position(|error| error.is_nan() || *error > most);
        assert_eq!(wrong, None, "{told}\nrank {rank}: {errors:?}, {most:.1e} is allowed");
    }
}

/// Entries of the tables of a spectrum.
fn lens(recipe: &ferrier::Recipe) -> [usize; 3] {
    recipe.output.shape()
}

#[test]
fn formulas_meet_the_right_modes() {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(300);
    let shapes = [[6, 10, 12], [34, 8, 9], [1, 30, 14], [16, 1, 1], [4, 38, 5], [5, 7, 46]];
    let mut rng = Rng::for_test(8100);
    for turn in 0..48 {
        let shape = shapes[turn % shapes.len()];
        let problem = if turn % 2 == 0 { Problem::c2c(shape) } else { Problem::r2c(shape) };
        let keep = shape.map(|n| if rng.below(2) == 0 { Keep::All } else { Keep::Lowest(1 + rng.below(n)) });
        let problem = if turn % 3 == 0 { problem.keep(keep) } else { problem };
        let problem = match rng.below(3) {
            0 => problem.input(LayoutSpec::bricks()),
            1 => problem.input(LayoutSpec::pencils(2)).output(LayoutSpec::pencils(0)),
            _ => problem.output(LayoutSpec::unconstrained()),
        };
        let problem = problem.batch(1 + rng.below(3)).operators(true);
        let exchange = *rng.pick(&["direct", "all_to_allv", "point_to_point"]);
        let overlap = (rng.below(2) == 0).then(|| {
            let tiling = Tiling::new(1 + rng.below(6));
            Overlap::uniform(tiling).arrays(rng.below(2))
        });
        let choice = Choice::new().exchange(exchange).kernel(KERNELS[turn / 2 % 3]).overlap(overlap);
        let ranks = 1 + rng.below(4);
        let seed = turn as u64;
        if turn % 4 == 3 {
            check::<f32, _>(&gpu, &problem, (ranks, &choice), |recipe| {
                Shade::new(lens(recipe), &mut Rng::for_test(seed))
            });
        } else {
            check::<f64, _>(&gpu, &problem, (ranks, &choice), |recipe| {
                Shade::new(lens(recipe), &mut Rng::for_test(seed))
            });
        }
    }
}

/// Those of the library, each in f64 and f32, in turn on one plan as well.
#[test]
fn operators_of_the_library_agree_with_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(200);
    type Make = fn(&WaveNumbers) -> Result<Box<dyn Operator<f64>>>;
    let makers: [(&str, Make); 8] = [
        ("laplacian", |waves| Ok(Box::new(spectral::laplacian(waves)))),
        ("inverse", |waves| Ok(Box::new(spectral::inverse_laplacian(waves)))),
        ("helmholtz", |waves| Ok(Box::new(spectral::helmholtz(waves, 1.5)))),
        ("low pass", |waves| Ok(Box::new(spectral::low_pass(waves, 5.0)))),
        ("gaussian", |waves| Ok(Box::new(spectral::gaussian(waves, 0.1)))),
        ("two thirds", |waves| Ok(Box::new(spectral::two_thirds(waves)))),
        ("shift", |waves| Ok(Box::new(spectral::shift(waves, [0.1, 0.2, 0.3])?))),
        ("derivative", |waves| Ok(Box::new(spectral::derivative(waves, 1)?))),
    ];
    for problem in [Problem::c2c([16, 24, 20]), Problem::r2c([12, 18, 32])] {
        let problem = problem.output(LayoutSpec::unconstrained()).operators(true);
        let outcome = ferrier::ranks(2).run(|comm| {
            let mut host = Planner::new(&problem).draft::<f64>(&comm)?.build()?;
            let mut plan = planner(&problem, &Choice::default(), &gpu).draft::<f64>(&comm)?.build()?;
            let waves = WaveNumbers::new(plan.recipe(), [1.0, 2.0, 3.0])?;
            let (mut input, mut want, mut got) = (host.make_input()?, host.make_input()?, host.make_input()?);
            noise(&mut input, 5);
            let (mut from, mut to) = (plan.make_input()?, plan.make_input()?);
            from.upload(&input)?;
            for (name, make) in makers.iter().chain(&makers) {
                let operator = make(&waves)?;
                host.call().operator(&&*operator).apply(&input, &mut want)?;
                plan.call().operator(&&*operator).apply(&from, &mut to)?;
                to.download(&mut got)?;
                let error = distance(got.scalars(), want.scalars());
                assert!(error < 1e-14, "{name} of {problem:?}: {error:.1e}");
            }
            Ok(())
        });
        outcome.unwrap();
    }
}

#[test]
fn invalid_operators_are_refused() {
    let Some(gpu) = gpu() else { return };
    let comm = Comm::one_rank();
    let problem = Problem::c2c([4, 6, 8]);
    let build = |problem: &Problem| planner(problem, &Choice::default(), &gpu).draft::<f64>(&comm)?.build();
    let mut without = build(&problem).unwrap();
    let mut plan = build(&problem.operators(true)).unwrap();
    let (from, mut to) = (plan.make_input().unwrap(), plan.make_input().unwrap());
    let good = Shade::new([4, 6, 8], &mut Rng::for_test(1));
    let told = without.call().operator(&good).apply(&from, &mut to).unwrap_err();
    assert!(matches!(&told, Error::Choice(invalid) if invalid.message.contains("operators(true)")), "{told}");
    let told = plan.call().operator(&pointwise(|_, z| z)).apply(&from, &mut to).unwrap_err();
    assert!(matches!(&told, Error::Choice(invalid) if invalid.message.contains("no formula")), "{told}");
    let told = plan
        .call()
        .operator(&Shade::new([4, 5, 8], &mut Rng::for_test(1)))
        .apply(&from, &mut to)
        .unwrap_err();
    assert!(
        matches!(&told, Error::Array { expected, got, .. } if expected.contains("axis 1") && got == "5"),
        "{told}"
    );
    struct Broken;
    impl Operator<f64> for Broken {
        fn apply(&self, _: &mut Modes<'_, f64>) {}
        fn formula(&self) -> Option<Formula<'_, f64>> {
            Some(Formula { code: "return z * nonsense;", tables: Tables::None, constants: [0.0; 4] })
        }
    }
    let told = plan.call().operator(&Broken).apply(&from, &mut to).unwrap_err();
    assert!(
        matches!(&told, Error::Device { message: text, .. } if text.contains("formula(1)") && text.contains("nonsense")),
        "{told}"
    );
    plan.call().operator(&good).apply(&from, &mut to).unwrap();
    plan.synchronize().unwrap();
}
