//! Mixed and pruned transforms: each axis its own kind, modes that are not
//! kept, points outside the support, compared with the oracle's whole arrays
//! with modes dropped and zeros added.

use crate::common;
mod setup;

use common::{MODES, any_choice, choice, exchanges, kernels, plan_of};
use ferrier::{
    Choice, DataMut, Decomposition, Keep, Kind, LayoutSpec, Order, Plan, Precision, Problem, Scale,
};
use ferrier_test::{Field, Rng, watchdog};
use num_complex::Complex;
use setup::{How, Setup, WAVES, axis, check, run};

fn any_keep(kind: Kind, n: usize, rng: &mut Rng) -> Keep {
    let modes = axis(kind).modes(n);
    match rng.below(4) {
        _ if kind == Kind::Identity => Keep::All,
        0 => Keep::All,
        1 => {
            let from = rng.below(modes);
            Keep::Range(from, from + 1 + rng.below(modes - from))
        }
        _ => Keep::Lowest(1 + rng.below(n)),
    }
}

fn any_layout(shape: [usize; 3], ranks: usize, rng: &mut Rng) -> LayoutSpec {
    let spec = match rng.below(5) {
        0 => LayoutSpec::bricks(),
        1 => LayoutSpec::slabs(rng.below(3)),
        2 => LayoutSpec::pencils(rng.below(3)),
        _ => {
            LayoutSpec::boxes(ferrier_test::tiles(shape, ranks, rng).into_iter().map(common::box3).collect())
        }
    };
    spec.order(*rng.pick(&Order::ALL))
}

fn any_setup(ranks: usize, rng: &mut Rng) -> Setup {
    let shape = [0; 3].map(|_| *rng.pick(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17]));
    // Mostly Fourier, with and without a halved axis.
    let flavour = rng.below(4);
    let mut kinds = [0, 1, 2].map(|d| match (flavour, rng.below(6)) {
        (_, 0) => Kind::Identity,
        (0, _) | (2, 1..=3) => Kind::Complex,
        (1, _) => Kind::Complex,
        _ => match *rng.pick(&WAVES) {
            Kind::Dct1 if shape[d] == 1 => Kind::Dct2,
            wave => wave,
        },
    });
    if flavour == 1 || rng.below(4) == 0 {
        kinds[rng.below(3)] = Kind::Real;
    }
    let only_waves = kinds.iter().all(|kind| !matches!(kind, Kind::Complex | Kind::Real));
    let mut setup = Setup { complex_values: only_waves && rng.below(3) == 0, ..Setup::new(shape, kinds) };
    for d in 0..3 {
        if rng.below(3) > 0 {
            setup.keep[d] = any_keep(kinds[d], shape[d], rng);
        }
        if rng.below(4) == 0 && kinds[d] != Kind::Identity {
            let from = rng.below(shape[d]);
            setup.support[d] = Some((from, from + 1 + rng.below(shape[d] - from)));
        }
    }
    let scales = [Scale::Unscaled, Scale::Full, Scale::Symmetric];
    setup.scale = (*rng.pick(&scales), *rng.pick(&scales));
    setup.batch = *rng.pick(&[1, 1, 2, 3]);
    setup.input = any_layout(setup.points().map(|list| list.len()), ranks, rng);
    setup.output = match rng.below(6) {
        0 => LayoutSpec::unconstrained().order(*rng.pick(&Order::ALL)),
        _ => any_layout(setup.modes().map(|list| list.len()), ranks, rng),
    };
    setup
}

/// A sphere or an ellipsoid, sometimes of half a spectrum, sometimes a disc.
fn any_sphere(ranks: usize, rng: &mut Rng) -> Setup {
    let mut shape = [0; 3].map(|_| *rng.pick(&[2, 3, 5, 6, 8, 9, 12, 16, 17]));
    if rng.below(6) == 0 {
        shape[0] = 1;
    }
    let last = *rng.pick(&[Kind::Complex, Kind::Complex, Kind::Real]);
    let radius = *rng.pick(&[0.5, 1.0, 2.0, 2.5, 3.0, 4.3, 6.0, 20.0]);
    let radii = *rng.pick(&[[radius; 3], [radius, 1.5 * radius, 0.7 * radius + 0.1]]);
    let mut setup = Setup { sphere: Some(radii), ..Setup::new(shape, [Kind::Complex, Kind::Complex, last]) };
    if rng.below(4) == 0 {
        let axis = rng.below(3);
        setup.support[axis] = Some((0, 1 + rng.below(shape[axis])));
    }
    setup.batch = *rng.pick(&[1, 1, 2]);
    setup.input = any_layout(setup.points().map(|list| list.len()), ranks, rng);
    setup.output = match rng.below(3) {
        0 => LayoutSpec::unconstrained().order(*rng.pick(&Order::ALL)),
        1 => LayoutSpec::slabs(1),
        _ => any_layout(setup.held().0, ranks, rng),
    };
    setup
}

/// Holds random problems, run in random ways, against the oracle.
fn random(seed: u64, count: usize, any: fn(usize, &mut Rng) -> Setup) {
    let _watchdog = watchdog(120);
    let mut rng = Rng::for_test(seed);
    for turn in 0..count {
        let ranks = 1 + rng.below(8);
        let setup = any(ranks, &mut rng);
        let exchange = exchanges()[turn % exchanges().len()];
        let kernel = kernels()[rng.below(kernels().len())];
        let how = How {
            ranks,
            nodes: common::nodes(exchange, ranks, rng.below(4)),
            threads: 1 + rng.below(2),
            choice: any_choice(exchange, kernel, ranks, &mut rng),
            mode: MODES[rng.below(3)],
        };
        if rng.below(4) == 0 { drop(check::<f32>(&setup, &how)) } else { drop(check::<f64>(&setup, &how)) }
    }
}

#[test]
fn random_spheres_match_the_oracle() {
    random(606, if common::thin() { 20 } else { 80 }, any_sphere);
}

#[test]
fn random_kinds_and_modes_match_the_oracle() {
    random(505, if common::thin() { 30 } else { 240 }, any_setup);
}

/// Ranks have equal numbers of columns, and only columns are sent.
#[test]
fn columns_are_shared_out_evenly() {
    let problem = Problem::c2c([32, 32, 32]).keep_sphere(8.0);
    let places = problem.columns();
    let disc =
        (-8_i32..=8).flat_map(|b| (-8_i32..=8).map(move |c| b * b + c * c)).filter(|d| *d <= 64).count();
    assert_eq!((places.len(), problem.spectrum_shape()), (disc, [17, disc, 1]));
    assert_eq!(places[0], [0, 0]);
    let recipe = ferrier::design(&problem, &Choice::default(), Precision::F64, 4).unwrap();
    let counts: Vec<usize> = recipe.output.boxes().iter().map(|b| b.shape()[1]).collect();
    assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
    // One reshape: every rank keeps its quarter of its own columns.
    let kept: usize = (0..4).map(|rank| 8 * counts[rank]).sum();
    assert_eq!(recipe.wire_bytes() as usize, (32 * disc - kept) * 16);
    let bad = |problem: Problem, word: &str| {
        let text = problem.check().expect_err("nonsense").to_string();
        assert!(text.contains(word), "{text}");
    };
    bad(Problem::c2c([8, 8, 8]).keep_sphere(f64::NAN), "NaN");
    bad(Problem::r2c([8, 8, 8]).halved(0).keep_sphere(2.0), "axis 0");
    bad(Problem::mixed([8, 8, 8], [Kind::Complex, Kind::Dct2, Kind::Complex]).keep_sphere(2.0), "dct2");
    bad(Problem::c2c([8, 8, 8]).keep([Keep::Lowest(2); 3]).keep_sphere(2.0), "Lowest");
}

/// Every cosine and sine on every axis, over 1 to 8 ranks, to 1e-14: alone with each of scipy's
/// norms, and together with others.
#[test]
fn all_waves_on_all_axes() {
    let _watchdog = watchdog(120);
    let norms = [
        (Scale::Unscaled, Scale::Full),
        (Scale::Symmetric, Scale::Symmetric),
        (Scale::Full, Scale::Unscaled),
    ];
    let mut turn = 0;
    for wave in WAVES {
        for ranks in 1..=8 {
            let mut kinds = [Kind::Complex, Kind::Real, wave];
            kinds.rotate_left(turn % 3);
            let alone = norms.map(|scale| ([wave; 3], scale));
            for (kinds, scale) in alone.into_iter().chain([(kinds, norms[turn / 3 % 3])]) {
                let setup = Setup {
                    scale,
                    input: [LayoutSpec::slabs(0), LayoutSpec::bricks(), LayoutSpec::pencils(1)][turn % 3]
                        .clone(),
                    output: LayoutSpec::slabs(turn % 3),
                    ..Setup::new([8, 9, 10], kinds)
                };
                assert!(ferrier_test::tolerance::<f64>(2 * setup.sizes()) <= 1e-14);
                let exchange = exchanges()[turn % exchanges().len()];
                let choice = choice(exchange, kernels()[turn % kernels().len()]);
                check::<f64>(&setup, &How { ranks, nodes: 1, threads: 1, choice, mode: MODES[turn % 3] });
                turn += 1;
            }
        }
    }
}

/// Kept modes come back as they were; all of a mixed transform does.
#[test]
fn there_and_back() {
    let _watchdog = watchdog(60);
    // Odd numbers of modes where both signs are kept: an even one has a mode without its mirror image.
    let keep = [Keep::Lowest(5), Keep::Lowest(3), Keep::Lowest(4)];
    let half = Setup { keep, ..Setup::new([8, 9, 10], [Kind::Complex, Kind::Complex, Kind::Real]) };
    let waves = Setup::new([8, 9, 10], [Kind::Dct2, Kind::Complex, Kind::Dst1]);
    for (setup, first) in [(half, false), (waves, true)] {
        ferrier::ranks(3)
            .run(|comm| {
                let mut plan = Plan::<f64>::new(&comm, &setup.problem())?;
                let (mut x, mut y) = (plan.make_input()?, plan.make_output()?);
                let field = Field::new(4, 53);
                let before: Vec<f64>;
                if first {
                    x.fill_complex(|_, at| field.complex(0, at));
                    before = x.scalars_mut().to_vec();
                    plan.forward(&x, &mut y)?;
                    plan.backward(&y, &mut x)?;
                } else {
                    y.fill_complex(|_, at| field.complex(0, at));
                    // Mode 0 of the halved axis must be that of real numbers.
                    plan.backward(&y, &mut x)?;
                    plan.forward(&x, &mut y)?;
                    before = y.scalars_mut().to_vec();
                    plan.backward(&y, &mut x)?;
                    plan.forward(&x, &mut y)?;
                }
                let after = if first { x.scalars_mut() } else { y.scalars_mut() };
                assert!(before.iter().zip(after).all(|(a, b)| (a - *b).abs() < 1e-14));
                Ok(())
            })
            .unwrap();
    }
}

/// With boxcut 2, one reshape between slabs carries a quarter of what it does without.
#[test]
fn bytes_are_those_of_the_boxes() {
    let _watchdog = watchdog(60);
    let wire = |problem: &Problem, choice: &Choice| {
        ferrier::design(problem, choice, Precision::F64, 4).unwrap().wire_bytes()
    };
    let cube = || Problem::c2c([32, 32, 32]).input(LayoutSpec::slabs(0)).output(LayoutSpec::slabs(1));
    let (whole, half) = (cube(), cube().keep([Keep::Lowest(16); 3]));
    let slab = Choice::new().decomposition(Decomposition::Slab);
    assert_eq!(wire(&whole, &slab), 32 * 32 * 32 * 16 * 3 / 4);
    assert_eq!(wire(&whole, &slab), 4 * wire(&half, &slab));
    assert_eq!(wire(&whole, &Choice::default()), 4 * wire(&half, &Choice::default()));
    // Pencils: half after the first axis, a quarter after the second.
    let pencil = Choice::new().decomposition(Decomposition::Pencil).grid([2, 2]);
    let pencils = |keep| {
        let problem = Problem::c2c([32, 32, 32]).input(LayoutSpec::pencils(2)).output(LayoutSpec::pencils(0));
        wire(&problem.keep([keep; 3]), &pencil)
    };
    assert_eq!(pencils(Keep::All), 2 * 32 * 32 * 32 * 16 / 2);
    assert_eq!(pencils(Keep::Lowest(16)), (32 * 32 * 16 + 32 * 16 * 16) * 16 / 2);
    // What is padded with zeros is not sent either, and what was counted is what is moved.
    let padded = half.support(2, 0..8);
    for exchange in exchanges().into_iter().filter(|name| *name != "direct") {
        let choice = choice(exchange, kernels()[0]);
        let moved = ferrier::ranks(4).nodes(4).run(|comm| {
            let mut plan = plan_of::<f64>(&comm, &padded, &choice)?;
            let (x, mut y) = (plan.make_input()?, plan.make_output()?);
            plan.forward(&x, &mut y)?;
            let reshapes = plan.profile().into_iter().filter(|step| step.name.starts_with("reshape"));
            Ok(reshapes.map(|step| step.bytes).sum::<u64>())
        });
        assert_eq!(moved.unwrap().iter().sum::<u64>(), wire(&padded, &choice), "{exchange}");
    }
}

/// The planner transforms first what shrinks most, where nothing else speaks against it.
#[test]
fn orders_that_shrink_early_are_preferred() {
    let keep = [Keep::Lowest(4), Keep::All, Keep::All];
    let problem = Problem::c2c([32, 32, 32]).keep(keep);
    let recipe = ferrier::design(&problem, &Choice::default(), Precision::F64, 1).unwrap();
    assert!(matches!(recipe.steps[0], ferrier::Step::Transform { axis: 0, .. }), "{recipe}");
}

/// Bits depend neither on exchange, threads and tiles nor on whose arrays they are.
#[test]
fn bits_of_pruned_and_mixed_transforms() {
    let _watchdog = watchdog(60);
    let mut rng = Rng::for_test(17);
    let lowest = [Keep::Lowest(7), Keep::Lowest(10), Keep::Lowest(9)];
    let kinds = [
        [Kind::Complex; 3],
        [Kind::Complex, Kind::Complex, Kind::Real],
        [Kind::Dct2, Kind::Dst4, Kind::Dct3],
        [Kind::Dct1, Kind::Real, Kind::Complex],
    ];
    for kinds in kinds {
        let setup =
            Setup { keep: lowest, support: [None, Some((3, 11)), None], ..Setup::new([16, 20, 18], kinds) };
        for kernel in kernels() {
            let axes: Vec<usize> = if kinds[1] == Kind::Real { vec![1, 2, 0] } else { vec![2, 1, 0] };
            let mut first = None;
            for exchange in exchanges() {
                for mode in MODES {
                    let choice = any_choice(exchange, kernel, 3, &mut rng).axes(axes.clone());
                    let threads = 1 + rng.below(2);
                    let got = run::<f64>(&setup, &How { ranks: 3, nodes: 1, threads, choice, mode });
                    let want = first.get_or_insert_with(|| got.clone());
                    assert!(got == *want, "{kinds:?} {kernel} {exchange} {mode:?}: bits differ");
                }
            }
        }
    }
}

/// The mode m/2 of an even m: the negative one of a complex axis; of a halved axis the positive one, as it stands.
#[test]
fn the_highest_of_an_even_number_of_modes() {
    let wave = |sign: f64| {
        move |_: usize, [_, _, k]: [usize; 3]| {
            Complex::cis(sign * std::f64::consts::TAU * 2.0 * k as f64 / 8.0)
        }
    };
    let complex = Problem::c2c([1, 1, 8]).keep([Keep::All, Keep::All, Keep::Lowest(4)]);
    let real = Problem::r2c([1, 1, 8]).keep([Keep::All, Keep::All, Keep::Lowest(4)]);
    assert_eq!(complex.kept_modes(2), [0, 1, 6, 7]);
    assert_eq!(real.kept_modes(2), [0, 1, 2]);
    let comm = ferrier::Comm::one_rank();
    let mut plan = Plan::<f64>::new(&comm, &complex).unwrap();
    let (mut x, mut y) = (plan.make_input().unwrap(), plan.make_output().unwrap());
    for (sign, want) in [(1.0, 0.0), (-1.0, 8.0)] {
        x.fill_complex(wave(sign));
        plan.forward(&x, &mut y).unwrap();
        assert!((y.complex()[2].re - want).abs() < 1e-14, "{sign}");
    }
    let mut plan = Plan::<f64>::new(&comm, &real).unwrap();
    let (mut x, mut y) = (plan.make_input().unwrap(), plan.make_output().unwrap());
    x.fill_real(|b, at| wave(1.0)(b, at).re);
    plan.forward(&x, &mut y).unwrap();
    assert!((y.complex()[2].re - 4.0).abs() < 1e-14, "neither doubled nor halved");
    plan.backward(&y, &mut x).unwrap();
    assert!(x.real().iter().enumerate().all(|(k, v)| (v - wave(1.0)(0, [0, 0, k]).re).abs() < 1e-15));
}

#[test]
fn contradictory_arguments_are_refused() {
    let bad = |problem: Problem, words: &[&str]| {
        let text = problem.check().expect_err("nonsense").to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let real = [Kind::Real, Kind::Real, Kind::Complex];
    bad(Problem::mixed([4, 4, 4], real), &["one axis", "2", "r2c,r2c,c2c"]);
    bad(
        Problem::mixed([4, 4, 4], [Kind::Real, Kind::Dct1, Kind::Dct1]).complex_values(),
        &["real", "complex"],
    );
    bad(Problem::mixed([4, 1, 4], [Kind::Dct1; 3]), &["axis 1", "two points"]);
    bad(Problem::c2c([4, 4, 4]).keep([Keep::All, Keep::Lowest(5), Keep::All]), &["axis 1", "4", "5"]);
    bad(Problem::c2c([4, 4, 4]).keep([Keep::Lowest(0), Keep::All, Keep::All]), &["axis 0", "got 0"]);
    bad(Problem::r2c([4, 4, 4]).keep([Keep::All, Keep::All, Keep::Range(1, 4)]), &["3 modes", "1..4"]);
    bad(Problem::c2c([4, 4, 4]).keep([Keep::Range(2, 2), Keep::All, Keep::All]), &["2..2"]);
    bad(
        Problem::c2c([4, 4, 4]).axes(&[1, 2]).keep([Keep::Lowest(2), Keep::All, Keep::All]),
        &["axis 0", "not transformed"],
    );
    bad(Problem::c2c([4, 4, 4]).support(0, 2..5), &["axis 0", "2..5"]);
    bad(Problem::c2c([4, 4, 4]).axes(&[1, 2]).support(0, 0..2), &["axis 0", "not transformed"]);
    let text = "dct5".parse::<Kind>().unwrap_err().to_string();
    assert!(text.contains("dct5") && text.contains("dst4"), "{text}");
}
