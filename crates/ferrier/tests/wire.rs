//! Plans over a wire: the same bits, whatever flies while ranks compute.

use std::time::Instant;

use ferrier::{Choice, Comm, Complex, Overlap, Plan, Planner, Problem, Result, Tiling, Wire};
use ferrier_test::watchdog;

fn transformed(comm: &Comm, exchange: &str, tiling: Option<Tiling>) -> Result<Vec<Complex<f64>>> {
    let problem = Problem::c2c([12, 10, 14]);
    let overlap = tiling.map(Overlap::uniform);
    let choice = Choice::new().exchange(exchange).overlap(overlap);
    let mut plan: Plan<f64> = Planner::new(&problem).choice(choice).draft(comm)?.build()?;
    let (mut x, mut y) = (plan.make_input()?, plan.make_output()?);
    x.fill_complex(|_, [i, j, k]| Complex::new((i * 7 + j) as f64 % 5.0, k as f64 - 2.5));
    plan.forward(&x, &mut y)?;
    plan.forward(&x, &mut y)?;
    Ok(y.complex().to_vec())
}

/// Without nodes named each rank is one; with them, only what goes between nodes takes time.
#[test]
fn a_wire_does_not_show_in_the_bits() {
    let _watchdog = watchdog(180);
    let wire: Wire = "200mbit:100us".parse().unwrap();
    let exchanges = ["all_to_allv", "all_to_all", "point_to_point", "ring", "hierarchical"];
    for exchange in exchanges {
        let want = ferrier::ranks(4).run(|comm| transformed(&comm, exchange, None)).unwrap();
        for ranks in [ferrier::ranks(4).wire(wire), ferrier::ranks(4).wire(wire).nodes(2)] {
            for tiling in [None, Some(Tiling::new(2).polls(3))] {
                let got = ranks.run(|comm| transformed(&comm, exchange, tiling)).unwrap();
                assert!(got == want, "{exchange}, {tiling:?}: other bits");
            }
        }
    }
}

/// What a rank sends passes its link, which has a known speed.
#[test]
fn a_transform_takes_as_long_as_its_bytes() {
    let _watchdog = watchdog(180);
    let wire = Wire { gbit_per_s: 0.01, latency_us: 100.0 };
    let start = Instant::now();
    ferrier::ranks(2).wire(wire).run(|comm| transformed(&comm, "all_to_allv", None)).unwrap();
    // A quarter of all numbers goes each way in a reshape, at least once in each of two transforms.
    let bytes = 12 * 10 * 14 * 16 / 4 * 2;
    let least = f64::from(bytes) * 8e-9 / wire.gbit_per_s;
    assert!(start.elapsed().as_secs_f64() > least, "{:?} instead of {least} s", start.elapsed());
}
