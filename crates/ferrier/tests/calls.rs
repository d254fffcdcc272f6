//! Calls: scales, what operators go with, and faults while exchanges are in flight.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ferrier::{Choice, Comm, Complex, Error, Fault, Kind, Overlap, Plan, Planner, Problem, Result, Tiling};
use ferrier_test::watchdog;

use crate::common::{choice, exchanges, kernels};

fn value(index: [usize; 3]) -> f64 {
    let [i, j, k] = index;
    ((7 * i + 5 * j + 3 * k) % 11) as f64 - 4.0
}

fn fill(plan: &Plan<f64>, array: &mut ferrier::Array<f64>) {
    match plan.recipe().is_real() {
        true => array.fill_real(|b, index| value(index) + b as f64),
        false => array.fill_complex(|b, index| Complex::new(value(index), b as f64)),
    }
}

/// A factor of a power of two changes exponents only: the bits are those of a call without it.
#[test]
fn a_scale_multiplies_the_result() {
    let _watchdog = watchdog(120);
    let problems = [
        Problem::c2c([12, 10, 9]).batch(2),
        Problem::r2c([8, 9, 14]),
        Problem::mixed([8, 9, 10], [Kind::Dct2, Kind::Complex, Kind::Real]),
        Problem::c2c([12, 10, 14]).keep_sphere(4.0),
        Problem::c2c_1d(360),
    ];
    for (number, problem) in problems.into_iter().enumerate() {
        let problem = problem.operators(true);
        for kernel in kernels() {
            for (ranks, exchange) in [(1, "direct"), (3, "direct"), (3, "all_to_allv"), (2, "ring")] {
                let run = |comm: Comm| -> Result<()> {
                    let planner = Planner::new(&problem).choice(choice(exchange, kernel));
                    let mut plan = planner.draft::<f64>(&comm)?.build()?;
                    let mut x = plan.make_input()?;
                    fill(&plan, &mut x);
                    let (mut y, mut z) = (plan.make_output()?, plan.make_output()?);
                    plan.forward(&x, &mut y)?;
                    plan.call().scale(-4.0).forward(&x, &mut z)?;
                    scaled(&y, &z, -4.0);
                    let (mut back, mut half) = (plan.make_input()?, plan.make_input()?);
                    plan.backward(&y, &mut back)?;
                    plan.call().scale(0.5).backward(&y, &mut half)?;
                    scaled(&back, &half, 0.5);
                    let twice = Twice;
                    plan.call().operator(&twice).apply(&x, &mut back)?;
                    plan.call().operator(&twice).scale(8.0).apply(&x, &mut half)?;
                    scaled(&back, &half, 8.0);
                    let [mut one, mut two] = [plan.make_in_place()?, plan.make_in_place()?];
                    fill(&plan, &mut one);
                    fill(&plan, &mut two);
                    plan.call().forward_in_place(&mut one)?;
                    plan.call().scale(2.0).forward_in_place(&mut two)?;
                    plan.call().scale(2.0).backward_in_place(&mut one)?;
                    plan.call().backward_in_place(&mut two)?;
                    // Rows may be padded: what is there does not count.
                    let part = plan.input_box();
                    for index in (part.lo[0]..part.hi[0]).flat_map(|i| {
                        (part.lo[1]..part.hi[1])
                            .flat_map(move |j| (part.lo[2]..part.hi[2]).map(move |k| [i, j, k]))
                    }) {
                        match plan.recipe().is_real() {
                            true => {
                                let at = one.real_index(0, index).unwrap();
                                assert_eq!(one.real()[at], two.real()[at], "{index:?}");
                            }
                            false => {
                                let at = one.complex_index(0, index).unwrap();
                                assert_eq!(one.complex()[at], two.complex()[at], "{index:?}");
                            }
                        }
                    }
                    Ok(())
                };
                ferrier::ranks(ranks)
                    .run(run)
                    .unwrap_or_else(|error| panic!("problem {number}, {kernel}, {exchange}: {error}"));
            }
        }
    }
}

struct Twice;

impl ferrier::Operator<f64> for Twice {
    fn apply(&self, modes: &mut ferrier::Modes<'_, f64>) {
        modes.runs().for_each(|mut run| run.scale(|_| 2.0));
    }
}

fn scaled(plain: &ferrier::Array<f64>, other: &ferrier::Array<f64>, factor: f64) {
    use ferrier::Data;
    for (a, b) in plain.scalars().iter().zip(other.scalars()) {
        assert_eq!(a * factor, *b, "times {factor}");
    }
}

#[test]
fn operators_go_with_the_calls_that_take_them() {
    let comm = Comm::one_rank();
    let mut plan = Plan::<f64>::new(&comm, &Problem::c2c([4, 4, 4]).operators(true)).unwrap();
    let (x, mut y, mut z) =
        (plan.make_input().unwrap(), plan.make_input().unwrap(), plan.make_in_place().unwrap());
    let error = plan.call().apply(&x, &mut y).unwrap_err();
    assert!(matches!(&error, Error::Choice(_)) && error.to_string().contains("operator"), "{error}");
    let error = plan.call().operator(&Twice).forward_in_place(&mut z).unwrap_err();
    assert!(matches!(&error, Error::Choice(_)) && error.to_string().contains("in place"), "{error}");
}

/// A pass that fails, by an error or a panic, while an exchange is in flight: the call ends when that is complete,
/// on every rank, so that arrays and plans may go.
#[test]
fn a_fault_waits_for_exchanges_in_flight() {
    let _watchdog = watchdog(120);
    for exchange in exchanges().into_iter().filter(|name| *name != "direct") {
        for fault in [Fault::Error, Fault::Panic] {
            for nodes in [1, 2] {
                let outcome: Result<Vec<()>> = ferrier::ranks(4).nodes(nodes).run(|comm| {
                    let tiles = Overlap::uniform(Tiling::new(2).window(3));
                    let choice = Choice::new().exchange(exchange).overlap(tiles);
                    let planner = Planner::new(&Problem::c2c([16, 16, 16])).choice(choice);
                    let mut plan = planner.without_wisdom().draft::<f64>(&comm)?.build()?;
                    let (x, mut y) = (plan.make_input()?, plan.make_output()?);
                    plan.forward(&x, &mut y)?;
                    if comm.rank() == 1 {
                        plan.inject_fault(fault);
                    }
                    let outcome = catch_unwind(AssertUnwindSafe(|| plan.forward(&x, &mut y)));
                    assert_eq!(plan.exchanges_in_flight(), 0, "{exchange} {fault:?}");
                    drop((x, y, plan));
                    outcome.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
                });
                // One node may share memory instead: then nothing is in flight, and nothing fails.
                let error = match outcome {
                    Ok(_) if nodes == 1 && exchange == "hierarchical" => continue,
                    outcome => outcome.expect_err("a fault").to_string(),
                };
                assert!(error.contains("an injected fault"), "{exchange} {fault:?}: {error}");
            }
        }
    }
}
