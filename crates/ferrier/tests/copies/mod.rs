//! Redistributions and ghost cells on ranks that are threads.

mod failures;
mod scenario;

use ferrier::{Order, PencilFamily, Pencils, Wire};
use ferrier_test::{Rng, watchdog};
use scenario::Scenario;

/// How many random cases: `FERRIER_CASES`, or a few.
fn cases() -> usize {
    let few = if crate::common::thin() { 40 } else { 160 };
    std::env::var("FERRIER_CASES").map_or(few, |text| text.parse().expect("FERRIER_CASES is a number"))
}

/// Random ranks, nodes and threads for each case; some over a simulated network.
fn on_ranks(seed: u64, check: impl Fn(&ferrier::Comm, &Scenario) -> ferrier::Result<()> + Sync) {
    let _watchdog = watchdog(300);
    for case in 0..cases() as u64 {
        let mut rng = Rng::new(seed + case);
        let ranks = 1 + rng.below(9);
        let (nodes, threads) = (1 + rng.below(3).min(ranks - 1), 1 + rng.below(3));
        let group = ferrier::ranks(ranks).nodes(nodes).threads(threads);
        let group =
            if rng.below(8) == 0 { group.wire(Wire { gbit_per_s: 10.0, latency_us: 1.0 }) } else { group };
        let outcome = group.run(|comm| check(&comm, &Scenario::new(seed + case, &comm)));
        assert!(outcome.is_ok(), "case {case} of seed {seed}: {outcome:?}");
    }
}

#[test]
fn redistributions_are_those_of_plain_indexing() {
    on_ranks(180_000, |comm, scenario| scenario.redistribute(comm));
}

#[test]
fn ghost_cells_are_those_of_plain_indexing() {
    on_ranks(181_000, |comm, scenario| scenario.fill_ghosts(comm));
}

#[test]
fn sums_of_ghost_cells_are_those_of_plain_indexing() {
    on_ranks(182_000, |comm, scenario| scenario.sum_ghosts(comm));
}

/// Around all pencils and back, on any grid and in any order.
#[test]
fn pencils_hold_what_plain_indexing_says() {
    let _watchdog = watchdog(120);
    let mut rng = Rng::for_test(184_000);
    for case in 0..cases() / 4 {
        let shape: [usize; 3] = std::array::from_fn(|_| 1 + rng.below(12));
        let (rows, columns, batch) = (1 + rng.below(3), 1 + rng.below(3), 1 + rng.below(2));
        let pencils = Pencils::new(shape).batch(batch).exchange(["direct", "ring", "all_to_all"][case % 3]);
        let pencils = match case % 4 {
            0 => pencils,
            1 => pencils.grid(0, 0).order(Order::F),
            2 => pencils.grid(rows, columns).contiguous(),
            _ => pencils.grid(rows, columns).order(*rng.pick(&Order::ALL)),
        };
        let outcome = ferrier::ranks(rows * columns).run(|comm| {
            let mut family = PencilFamily::<u32>::new(&comm, &pencils)?;
            let mut arrays = [family.make(0)?, family.make(1)?, family.make(2)?];
            let exact: [Vec<u32>; 3] = std::array::from_fn(|axis| {
                let (part, order) = (family.local_box(axis), family.layout(axis).order());
                assert_eq!(part.shape()[axis], if part.is_empty() { 0 } else { shape[axis] });
                let mut exact = vec![0; part.volume() * batch];
                for (array, values) in exact.chunks_mut(part.volume().max(1)).enumerate() {
                    for index in scenario::indices(part) {
                        let [i, j, k] = index;
                        values[scenario::offset(&part, order, index)] =
                            (((array * 16 + i) * 16 + j) * 16 + k) as u32 + 1;
                    }
                }
                exact
            });
            let [x, y, z] = &mut arrays;
            x.copy_from_slice(&exact[0]);
            family.x_to_y(x, y)?;
            assert_eq!(y[..], exact[1]);
            family.y_to_z(y, z)?;
            assert_eq!(z[..], exact[2]);
            y.fill(0);
            family.z_to_y(z, y)?;
            assert_eq!(y[..], exact[1]);
            x.fill(0);
            family.y_to_x(y, x)?;
            assert_eq!(x[..], exact[0]);
            Ok(())
        });
        assert!(outcome.is_ok(), "{pencils:?} on {rows}x{columns}: {outcome:?}");
    }
    let wrong = ferrier::ranks(4)
        .run(|comm| PencilFamily::<u8>::new(&comm, &Pencils::new([8; 3]).grid(3, 2)).map(drop));
    assert!(wrong.unwrap_err().to_string().contains("6 ranks, but there are 4"));
}
