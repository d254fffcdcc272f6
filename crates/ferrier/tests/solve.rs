//! Equations with known solutions, and estimates of what grids lose.

use std::f64::consts::TAU;

use ferrier::solve::{Helmholtz, estimate_discretisation};
use ferrier::{Array, Comm, Complex, Error, Keep, LayoutSpec, Order, Plan, Problem, Result, Scale};

/// A sum of waves on a box of 3 x 2 x 1, and `-laplace + shift` of it: any
/// mixed-up axis, sign or side changes the second.
const LENGTHS: [f64; 3] = [3.0, 2.0, 1.0];
const WAVES: [([i32; 3], f64); 4] =
    [([1, 0, 0], 1.0), ([0, -2, 1], 0.5), ([3, 1, -1], -0.25), ([-2, 2, 2], 2.0)];

fn wave(shape: [usize; 3], index: [usize; 3], shift: f64, right_hand_side: bool) -> Complex<f64> {
    let term = |(k, amplitude): &([i32; 3], f64)| {
        let phase: f64 = (0..3).map(|a| f64::from(k[a]) * index[a] as f64 / shape[a] as f64).sum();
        let square: f64 = (0..3).map(|a| (TAU * f64::from(k[a]) / LENGTHS[a]).powi(2)).sum();
        let factor = if right_hand_side { square + shift } else { 1.0 };
        Complex::cis(TAU * phase) * amplitude * factor
    };
    WAVES.iter().map(term).sum()
}

fn value(array: &Array<f64>, index: [usize; 3]) -> Complex<f64> {
    let at = array.index(0, index).expect("own");
    if array.is_complex() { array.complex()[at] } else { Complex::from(array.real()[at]) }
}

/// The largest distance of a solution from the truth on this rank.
fn largest(array: &Array<f64>, wanted: impl Fn([usize; 3]) -> Complex<f64>) -> f64 {
    let own = array.local_box();
    let mut worst = 0.0_f64;
    for i in own.lo[0]..own.hi[0] {
        for j in own.lo[1]..own.hi[1] {
            for k in own.lo[2]..own.hi[2] {
                worst = worst.max((value(array, [i, j, k]) - wanted([i, j, k])).norm());
            }
        }
    }
    worst
}

#[test]
fn waves_are_solved_on_any_layout_order_scale_and_kind() {
    let shape = [9, 8, 10];
    let orders = [[0, 1, 2], [2, 0, 1], [1, 2, 0]].map(|axes| Order::new(axes).expect("an order"));
    for (case, ranks) in [1, 2, 5, 6].into_iter().enumerate() {
        for real in [false, true] {
            let problem = if real { Problem::r2c(shape).halved(case % 3) } else { Problem::c2c(shape) };
            let scales =
                [[Scale::Unscaled, Scale::Full], [Scale::Full, Scale::Unscaled], [Scale::Symmetric; 2]];
            let [forward, backward] = scales[case % 3];
            let problem = problem
                .input(LayoutSpec::bricks())
                .output(LayoutSpec::pencils(case % 3).order(orders[case % 3]))
                .scale_forward(forward)
                .scale_backward(backward);
            let shift = 0.5 + case as f64;
            ferrier::ranks(ranks)
                .threads(1)
                .run(|comm| {
                    let plan = Plan::<f64>::new(&comm, &problem)?;
                    let (mut f, mut u) = (plan.make_input()?, plan.make_input()?);
                    if real {
                        f.fill_real(|_, index| wave(shape, index, shift, true).re);
                    } else {
                        f.fill_complex(|_, index| wave(shape, index, shift, true));
                    }
                    Helmholtz::new(plan, LENGTHS, shift)?.solve(&f, &mut u)?;
                    let want = |index| {
                        let want = wave(shape, index, shift, false);
                        if real { Complex::from(want.re) } else { want }
                    };
                    let worst = largest(&u, want);
                    assert!(worst < 1e-12, "{ranks} ranks, real {real}: off by {worst:e}");
                    Ok(())
                })
                .expect("solved");
        }
    }
}

#[test]
fn kept_modes_are_divided_by_their_own_eigenvalues() {
    // All waves are among the lowest modes, so dropping the others changes nothing.
    let shape = [12, 10, 14];
    let keep = [Keep::Lowest(8), Keep::Lowest(5), Keep::Lowest(7)];
    for problem in [Problem::c2c(shape).keep(keep), Problem::r2c(shape).keep(keep)] {
        ferrier::ranks(3)
            .threads(1)
            .run(|comm| {
                let plan = Plan::<f64>::new(&comm, &problem)?;
                let (mut f, mut u) = (plan.make_input()?, plan.make_input()?);
                let real = f.is_real();
                if real {
                    f.fill_real(|_, index| wave(shape, index, 1.0, true).re);
                } else {
                    f.fill_complex(|_, index| wave(shape, index, 1.0, true));
                }
                Helmholtz::new(plan, LENGTHS, 1.0)?.solve(&f, &mut u)?;
                let want = |index| {
                    let want = wave(shape, index, 1.0, false);
                    if real { Complex::from(want.re) } else { want }
                };
                assert!(largest(&u, want) < 1e-12, "real {real}: off by {:e}", largest(&u, want));
                Ok(())
            })
            .expect("solved");
    }
}

#[test]
fn every_array_of_a_batch_is_solved() {
    let problem = Problem::c2c([6, 5, 4]).batch(3).output(LayoutSpec::slabs(1));
    ferrier::ranks(2)
        .run(|comm| {
            let plan = Plan::<f64>::new(&comm, &problem)?;
            let (mut f, mut u) = (plan.make_input()?, plan.make_input()?);
            // Constants: u = f / shift, with another constant in each array.
            f.fill_complex(|b, _| Complex::new(b as f64 + 1.0, 2.0));
            Helmholtz::new(plan, [1.0; 3], 4.0)?.solve(&f, &mut u)?;
            for b in 0..3 {
                let at = u.index(b, u.local_box().lo).expect("own");
                assert!((u.complex()[at] - Complex::new(b as f64 + 1.0, 2.0) / 4.0).norm() < 1e-14);
            }
            Ok(())
        })
        .expect("solved");
}

/// The product of three factors with many modes, so that what is lost matters.
fn rough(shape: [usize; 3], index: [usize; 3]) -> f64 {
    (0..3).map(|a| 1.0 / (1.2 - (TAU * index[a] as f64 / shape[a] as f64).cos())).product()
}

#[test]
fn the_bound_holds_and_follows_the_tolerance() {
    let shape = [16; 3];
    let solved = |comm: &Comm, tolerance: Option<f64>| {
        let problem = Problem::r2c(shape).input(LayoutSpec::bricks()).output(LayoutSpec::unconstrained());
        let problem = tolerance.map_or(problem.clone(), |tolerance| problem.tolerance(tolerance));
        let plan = Plan::<f64>::new(comm, &problem)?;
        let (mut f, mut u) = (plan.make_input()?, plan.make_input()?);
        f.fill_real(|_, index| rough(shape, index));
        let mut solver = Helmholtz::new(plan, [TAU; 3], 1.0)?;
        let cost = solver.solve(&f, &mut u)?;
        let squares = |array: &Array<f64>| array.real().iter().map(|x| x * x).sum::<f64>();
        let sums = comm.sum(&[squares(&f), squares(&u), cost.wire_bytes as f64])?;
        let bound = solver.error_bound(&cost, sums[0].sqrt(), sums[1].sqrt());
        Result::Ok((u, bound, sums[1].sqrt(), sums[2]))
    };
    ferrier::ranks(4)
        .threads(1)
        .run(|comm| {
            let (exact, _, norm, raw_bytes) = solved(&comm, None)?;
            let mut last = (0.0, raw_bytes);
            for tolerance in [1e-10, 1e-7, 1e-4, 1e-2] {
                let (u, bound, _, bytes) = solved(&comm, Some(tolerance))?;
                let squares = |(a, b): (&f64, &f64)| (a - b) * (a - b);
                let own: f64 = exact.real().iter().zip(u.real()).map(squares).sum();
                let error = comm.sum(&[own])?[0].sqrt() / norm;
                assert!(error > last.0, "{tolerance:e}: the error {error:e} does not grow");
                assert!(error <= bound && bound < 20.0 * tolerance, "{tolerance:e}: {error:e} {bound:e}");
                assert!(bytes < last.1, "{tolerance:e}: {bytes} bytes");
                last = (error, bytes);
            }
            Ok(())
        })
        .expect("solved");
}

#[test]
fn unsolvable_problems_are_errors() {
    let plan = |problem: Problem| Plan::<f64>::new(&Comm::one_rank(), &problem).expect("a plan");
    let refused = |problem: Problem, lengths: [f64; 3], shift: f64, part: &str| {
        let error = Helmholtz::new(plan(problem), lengths, shift).expect_err("refused");
        assert!(matches!(&error, Error::Problem(invalid) if invalid.message.contains(part)), "{error}");
    };
    let cube = || Problem::c2c([4; 3]);
    refused(cube(), [1.0; 3], 0.0, "shift");
    refused(cube(), [1.0; 3], -1.0, "shift");
    refused(cube(), [1.0; 3], f64::NAN, "shift");
    refused(cube(), [1.0, 0.0, 1.0], 1.0, "sides");
    refused(cube(), [1.0, f64::INFINITY, 1.0], 1.0, "sides");
    refused(cube().scale_backward(Scale::Unscaled), [1.0; 3], 1.0, "by 64");
    refused(cube().axes(&[0, 2]), [1.0; 3], 1.0, "axis 1");
    // An axis of length 1 need not be transformed.
    assert!(Helmholtz::new(plan(Problem::c2c([1, 4, 4]).axes(&[1, 2])), [1.0; 3], 1.0).is_ok());
}

/// A field on a grid; only its layout comes from the plan.
fn field(comm: &Comm, problem: &Problem, at: impl Fn([usize; 3]) -> f64) -> Result<Array<f64>> {
    let mut field = Plan::<f64>::new(comm, problem)?.make_input()?;
    match field.is_real() {
        true => field.fill_real(|_, index| at(index)),
        false => field.fill_complex(|_, index| Complex::new(0.0, at(index))),
    }
    Ok(field)
}

#[test]
fn estimates_see_just_the_points_of_both_grids() {
    // The fine field is 1 on the points of both grids and wild elsewhere; the coarse one is 1.01.
    for (coarse, fine, step, ranks) in [
        ([6, 4, 10], [12, 8, 20], 2, 1),
        ([6, 4, 10], [12, 8, 20], 2, 5),
        ([8, 4, 12], [10, 5, 15], 5, 3),
        ([1, 6, 4], [1, 18, 12], 3, 4),
        ([2, 2, 2], [4, 4, 4], 2, 7),
    ] {
        let shared = |index: [usize; 3]| index.iter().all(|i| i.is_multiple_of(step));
        for (a, b) in [
            (
                Problem::r2c(coarse).input(LayoutSpec::bricks()),
                Problem::r2c(fine).input(LayoutSpec::slabs(2)),
            ),
            (Problem::c2c(coarse).input(LayoutSpec::pencils(1)), Problem::c2c(fine)),
        ] {
            ferrier::ranks(ranks)
                .run(|comm| {
                    let coarse = field(&comm, &a, |_| 1e300 * 1.01)?;
                    let fine = field(&comm, &b, |index| if shared(index) { 1e300 } else { -7e300 })?;
                    let found = estimate_discretisation(&comm, &coarse, &fine)?;
                    assert!((found.difference - 0.01).abs() < 1e-14, "{found:?}");
                    assert_eq!(found.ratio, fine_over_coarse(&a, &b), "{found:?}");
                    assert!((found.coarse_of_order(1.0) - found.fine_of_order(1.0) - 0.01).abs() < 1e-14);
                    Ok(())
                })
                .expect("estimated");
        }
    }
}

fn fine_over_coarse(coarse: &Problem, fine: &Problem) -> f64 {
    fine.shape()[1] as f64 / coarse.shape()[1] as f64
}

#[test]
fn grids_that_do_not_fit_give_every_rank_the_same_error() {
    for (coarse, fine) in [
        ([4, 4, 4], [4, 4, 4]),
        ([8, 8, 8], [4, 4, 4]),
        ([4, 4, 4], [8, 8, 12]),
        ([4, 4, 4], [8, 8, 4]),
        ([1, 4, 4], [2, 8, 4]),
        ([1, 1, 1], [1, 1, 1]),
    ] {
        let outcome = ferrier::ranks(3).run(|comm| {
            let [coarse, fine] = [coarse, fine].map(|shape| field(&comm, &Problem::r2c(shape), |_| 1.0));
            let error = estimate_discretisation(&comm, &coarse?, &fine?).expect_err("refused");
            assert!(matches!(&error, Error::Array { expected, .. } if expected.contains("finer")), "{error}");
            Ok(error.to_string())
        });
        let said = outcome.expect("no rank fails");
        assert!(said.iter().all(|text| *text == said[0]), "{said:?}");
    }
}
