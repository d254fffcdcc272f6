//! Encoded messages: what is lossless changes no bit, whatever carries it;
//! what is lossy stays inside its certificate, and that inside the tolerance.

use crate::common;

use common::{MODES, Mode, Number, Oracle, Part, Run, any_choice, any_overlap, kernels, plan_of};
use ferrier::Choice;
use ferrier_test::cases::{Case, Kind, cases};
use ferrier_test::{Rng, watchdog};

/// Members that send messages over so many nodes of these ranks.
const SENDING: [&str; 5] = ["all_to_allv", "all_to_all", "point_to_point", "ring", "hierarchical"];

fn with(codec: &str, choice: Choice) -> Choice {
    choice.codec(codec)
}

/// Every fifth case of the table on every exchange, encoded without loss: as close to the oracle as
/// without, on any number of nodes, cut in any way, in place or not.
#[test]
fn the_case_table_with_a_codec() {
    let _watchdog = watchdog(600);
    let (oracle, mut rng) = (Oracle::default(), Rng::for_test(61));
    for (turn, case) in cases().iter().enumerate().filter(|(turn, _)| turn % 5 == 1) {
        for (i, exchange) in SENDING.into_iter().enumerate() {
            let turn = turn + i;
            let ranks = [4, 2, 6, 3, 8][turn % 5];
            // A node to each rank, two nodes, one node (where only hierarchical shares memory).
            let nodes = [ranks, 2, if exchange == "hierarchical" { 2 } else { 1 }][turn % 3];
            let choice = any_choice(exchange, kernels()[0], ranks, &mut rng);
            let (threads, modes) = ([1, 2, 3][turn % 3], &MODES);
            let run = Run { case, ranks, nodes, threads, choice: with("lossless", choice), modes };
            if turn % 4 == 3 {
                run.check::<f32>(&oracle, &mut rng)
            } else {
                run.check::<f64>(&oracle, &mut rng)
            }
        }
    }
}

type Bits = Vec<[u64; 2]>;

fn bits<T: Number>((_, values): &Part<T>) -> Bits {
    values.iter().map(|x| [Into::<f64>::into(x.re).to_bits(), Into::<f64>::into(x.im).to_bits()]).collect()
}

fn run<T: Number>(case: &Case, ranks: usize, nodes: usize, choice: &Choice, mode: Mode) -> Vec<[Bits; 2]> {
    let problem = common::problem(case, ranks, &mut Rng::new(7));
    let outcome = ferrier::ranks(ranks).nodes(nodes).threads(2).run(|comm| {
        let mut plan = plan_of::<T>(&comm, &problem, choice)?;
        let (there, back) = common::transform(&mut plan, case, mode)?;
        assert_eq!(plan.certificate().map(|certificate| certificate.loss), Some(0.0));
        Ok([bits(&there), bits(&back)])
    });
    outcome
        .unwrap_or_else(|error| panic!("{}, {ranks} ranks on {nodes} nodes, {choice:?}: {error}", case.line))
}

fn case(shape: [usize; 3], kind: Kind, input: &str, output: &str) -> Case {
    let split = |name: &str| match name {
        "bricks" => ferrier_test::Split::Bricks,
        "pencils" => ferrier_test::Split::Pencils(1),
        "boxes" => ferrier_test::Split::Boxes,
        _ => ferrier_test::Split::Slabs(0),
    };
    Case {
        line: format!("{shape:?} {kind:?} {input} to {output}"),
        shape,
        kind,
        axes: vec![0, 1, 2],
        batch: 2,
        first: 0,
        input: split(input),
        output: split(output),
        order_in: [0, 1, 2],
        order_out: [0, 1, 2],
        scale: (ferrier_test::Scale::Unscaled, ferrier_test::Scale::Full),
    }
}

/// Large enough for many chunks, and for whole ones.
#[test]
fn lossless_changes_no_bit() {
    let _watchdog = watchdog(120);
    let mut rng = Rng::for_test(62);
    for (case, ranks) in [
        (case([30, 28, 27], Kind::C2c, "bricks", "slabs"), 4),
        (case([26, 31, 40], Kind::R2c(2), "boxes", "pencils"), 3),
    ] {
        let raw = Choice::new().exchange("all_to_allv");
        // The order of the axes, and with it the bits, may be another one on other nodes.
        let wanted = [2, ranks].map(|nodes| (nodes, run::<f64>(&case, ranks, nodes, &raw, Mode::Arrays)));
        for (turn, exchange) in SENDING.into_iter().enumerate() {
            for (tiled, nodes) in [(false, 2), (true, ranks), (true, 2)] {
                let choice = Choice::new().exchange(exchange).overlap(tiled.then(|| any_overlap(&mut rng)));
                let got = run::<f64>(&case, ranks, nodes, &with("lossless", choice.clone()), MODES[turn % 3]);
                let (_, want) = wanted.iter().find(|(known, _)| *known == nodes).unwrap();
                assert!(got == *want, "{}: {exchange} on {nodes} nodes: {choice:?}", case.line);
            }
        }
    }
}
