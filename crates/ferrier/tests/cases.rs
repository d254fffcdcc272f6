//! The case table over every exchange, every kernel and every number of
//! ranks, forward against the oracle and back, arrays of the plan, slices of
//! the user and in place, everything dirtied before each call.

use crate::common;

use common::{MODES, Oracle, Run, any_choice, exchanges, kernels, nodes, thin};
use ferrier_test::cases::cases;
use ferrier_test::{Rng, watchdog};

/// All cases and all exchanges. Kernels take turns from one number of ranks to the next, so that every case meets each
/// of them over every exchange; precision and threads are drawn. Eight ranks take one half of the cases and twelve the
/// other.
fn table(ranks: usize) {
    let _watchdog = watchdog(if thin() { 600 } else { 300 });
    let mut rng = Rng::for_test(1000 + ranks as u64);
    let oracle = Oracle::default();
    let place = ferrier_test::RANKS.iter().position(|&number| number == ranks).unwrap();
    let step = match (thin(), ranks) {
        (true, _) => 7,
        (false, 0..8) => 1,
        (false, _) => 2,
    };
    let kernels = kernels();
    for (c, case) in cases().iter().enumerate().skip(if step == 2 { ranks / 4 % 2 } else { 0 }).step_by(step)
    {
        for (e, exchange) in exchanges().into_iter().enumerate() {
            let run = Run {
                case,
                ranks,
                nodes: nodes(exchange, ranks, rng.below(4)),
                threads: *rng.pick(&[1, 1, 2, 3]),
                choice: any_choice(
                    exchange,
                    kernels[(c / step + e + place) % kernels.len()],
                    ranks,
                    &mut rng,
                ),
                modes: &MODES,
            };
            if rng.below(3) == 0 {
                run.check::<f32>(&oracle, &mut rng)
            } else {
                run.check::<f64>(&oracle, &mut rng)
            }
        }
    }
}

macro_rules! tables {
    ($($name:ident: $ranks:expr,)*) => {
        $(#[test]
        fn $name() {
            table($ranks);
        })*

        #[test]
        fn no_number_of_ranks_is_left_out() {
            assert_eq!([$($ranks),*], ferrier_test::RANKS);
        }
    };
}

tables! {
    on_1_rank: 1,
    on_2_ranks: 2,
    on_3_ranks: 3,
    on_4_ranks: 4,
    on_6_ranks: 6,
    on_7_ranks: 7,
    on_8_ranks: 8,
    on_12_ranks: 12,
}
