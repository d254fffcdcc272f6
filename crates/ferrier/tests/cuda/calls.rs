//! Calls on a GPU: scales, and faults while exchanges are in flight.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ferrier::{Choice, Comm, Complex, Fault, LayoutSpec, Overlap, Problem, Result, Tiling};
use ferrier_test::watchdog;

use crate::{KERNELS, gpu, planner};

/// A factor of a power of two changes exponents only: the bits are those of a call without it.
#[test]
fn a_scale_multiplies_the_result() {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(300);
    for problem in [Problem::c2c([16, 12, 10]), Problem::r2c([8, 10, 12]), Problem::c2c([7, 11, 13])] {
        for (kernel, ranks) in KERNELS.into_iter().flat_map(|kernel| [(kernel, 1), (kernel, 2)]) {
            let run = |comm: Comm| -> Result<()> {
                let mut plan =
                    planner(&problem, &Choice::new().kernel(kernel), &gpu).draft::<f64>(&comm)?.build()?;
                let mut host = plan.make_host_input()?;
                match plan.recipe().is_real() {
                    true => host.fill_real(|_, [i, j, k]| (i + 2 * j) as f64 - k as f64),
                    false => host.fill_complex(|_, [i, j, k]| Complex::new((i + 2 * j) as f64, k as f64)),
                }
                let (mut x, mut y, mut z) = (plan.make_input()?, plan.make_output()?, plan.make_output()?);
                x.upload(&host)?;
                plan.forward(&x, &mut y)?;
                plan.call().scale(-4.0).forward(&x, &mut z)?;
                plan.synchronize()?;
                let (mut plain, mut scaled) = (plan.make_host_output()?, plan.make_host_output()?);
                y.download(&mut plain)?;
                z.download(&mut scaled)?;
                for (a, b) in plain.complex().iter().zip(scaled.complex()) {
                    assert_eq!(a * -4.0, *b, "{kernel}, {ranks} ranks");
                }
                let (mut back, mut half) = (plan.make_input()?, plan.make_input()?);
                plan.backward(&y, &mut back)?;
                plan.call().scale(0.5).backward(&y, &mut half)?;
                plan.synchronize()?;
                let (mut plain, mut scaled) = (plan.make_host_input()?, plan.make_host_input()?);
                back.download(&mut plain)?;
                half.download(&mut scaled)?;
                use ferrier::Data;
                for (a, b) in plain.scalars().iter().zip(scaled.scalars()) {
                    assert_eq!(a * 0.5, *b, "{kernel}, {ranks} ranks, backward");
                }
                Ok(())
            };
            ferrier::ranks(ranks).run(run).unwrap_or_else(|error| panic!("{kernel}, {ranks} ranks: {error}"));
        }
    }
}

/// A pass that fails, by an error or a panic, while an exchange is in flight: the call ends when that is complete,
/// on every rank, so that arrays and plans may go; the GPU works on.
#[test]
fn a_fault_waits_for_exchanges_in_flight() {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(300);
    let problem = Problem::c2c([32, 32, 32]).output(LayoutSpec::slabs(1));
    for exchange in ["all_to_allv", "point_to_point", "ring"] {
        for fault in [Some(Fault::Error), Some(Fault::Panic), None] {
            let outcome: Result<Vec<()>> = ferrier::ranks(2).run(|comm| {
                let tiles = Overlap::uniform(Tiling::new(8).window(3).polls(0));
                let choice = Choice::new().exchange(exchange).overlap(tiles);
                let mut plan = planner(&problem, &choice, &gpu).draft::<f64>(&comm)?.build()?;
                let (x, mut y) = (plan.make_input()?, plan.make_output()?);
                plan.forward(&x, &mut y)?;
                if let (1, Some(fault)) = (comm.rank(), fault) {
                    plan.inject_fault(fault);
                }
                let outcome = catch_unwind(AssertUnwindSafe(|| plan.forward(&x, &mut y)));
                assert_eq!(plan.exchanges_in_flight(), 0, "{exchange} {fault:?}");
                plan.synchronize()?;
                drop((x, y, plan));
                outcome.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
            });
            match (fault, outcome) {
                (None, outcome) => drop(outcome.unwrap()),
                (Some(_), outcome) => {
                    let error = outcome.expect_err("a fault").to_string();
                    assert!(error.contains("an injected fault"), "{exchange} {fault:?}: {error}");
                }
            }
        }
    }
}
