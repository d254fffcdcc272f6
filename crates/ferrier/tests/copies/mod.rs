//! Redistributions and ghost cells on ranks that are threads.

mod failures;
mod scenario;

use ferrier::{Ghosts, Halo, LayoutSpec, Order, PencilFamily, Pencils, Wire};
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

/// Messages that are cut into parts, each packed while the last is on its way; the random cases are too small for that.
#[test]
fn long_messages_go_in_parts() {
    let _watchdog = watchdog(60);
    let (shape, fields) = ([41_usize, 47, 66], 2);
    let value = |field: usize, at: [isize; 3]| {
        let [i, j, k] = [0, 1, 2].map(|a| at[a].rem_euclid(shape[a] as isize) as usize);
        (((field * 64 + i) * 64 + j) * 128 + k) as f64
    };
    for (ranks, layout) in [(4, LayoutSpec::bricks()), (3, LayoutSpec::slabs(2).order(Order::F))] {
        let ghosts = Ghosts::widths([[3, 4], [4, 1], [2, 5]]).periodic([true; 3]).fields(fields);
        let outcome = ferrier::ranks(ranks).nodes(ranks).threads(2).run(|comm| {
            let mut halo = Halo::<f64>::new(&comm, shape, &layout, &ghosts)?;
            for flies in [false, true, false] {
                let mut u = vec![vec![-1.0; halo.volume()]; fields];
                for index in scenario::indices(halo.local_box()) {
                    let index = index.map(|at| at as isize);
                    let at = halo.index(index).unwrap();
                    u.iter_mut().enumerate().for_each(|(field, u)| u[at] = value(field, index));
                }
                match flies {
                    true => halo.start(&mut u)?.finish().map(drop)?,
                    false => halo.exchange(&mut u)?,
                }
                let (own, widths) = (halo.local_box(), [[3, 4], [4, 1], [2, 5]]);
                let range = |a: usize| own.lo[a] as isize - widths[a][0]..own.hi[a] as isize + widths[a][1];
                for (i, j) in range(0).flat_map(|i| range(1).map(move |j| (i, j))) {
                    for k in range(2) {
                        let at = halo.index([i, j, k]).unwrap();
                        for (field, u) in u.iter().enumerate() {
                            assert_eq!(u[at], value(field, [i, j, k]), "{i}, {j}, {k} of field {field}");
                        }
                    }
                }
            }
            Ok(())
        });
        assert!(outcome.is_ok(), "{ranks} ranks: {outcome:?}");
    }
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
