//! Redistributions and ghost cells on ranks that are threads.

mod failures;
mod scenario;

use ferrier::Wire;
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
