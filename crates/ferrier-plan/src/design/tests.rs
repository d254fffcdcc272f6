//! Tests of the search: what users see does not depend on the machine; what is chosen is fast.

use super::*;
use crate::choice::Overlap;
use crate::cost::Constants;
use crate::layout::Layout;
use crate::layout::LayoutSpec;
use crate::lowering::MemoryPolicy;
use crate::recipe::Step;

fn layouts() -> [LayoutSpec; 7] {
    let [a, b, c] = [0, 1, 2].map(LayoutSpec::slabs);
    let [d, e, f] = [0, 1, 2].map(LayoutSpec::pencils);
    [LayoutSpec::bricks(), a, b, c, d, e, f]
}

/// Unless the order of the axes is decided for the nodes and the machine at hand, neither it, which shows in the bits, nor an
/// output that is left to the planner depends on the exchange, the nodes, the threads, the batch or the machine.
#[test]
fn what_users_see_depends_on_the_problem_alone() {
    let machines = [Machine::default(), Machine::of_family("amd-zen").cores(2)];
    let nodes = [0, 0, 0, 1, 1, 1];
    let settings = [
        Setting::new(Mechanism::SharedMemory),
        Setting::new(Mechanism::Messages).threads(3),
        Setting::new(Mechanism::NodeAware).nodes(&nodes),
    ];
    for (number, input) in layouts().into_iter().enumerate() {
        for output in layouts().into_iter().skip(number % 2).step_by(2).chain([LayoutSpec::unconstrained()]) {
            for problem in [Problem::c2c([24, 20, 18]), Problem::r2c([24, 20, 18])] {
                let problem = problem.input(input.clone()).output(output.clone());
                let seen = |problem: &Problem, setting: &Setting<'_>, machine: &Machine| {
                    let choice = Choice::default();
                    let designed =
                        design_on(problem, &choice, Precision::F64, setting, (6, machine)).unwrap();
                    (designed.recipe.axes(), designed.recipe.output)
                };
                let first = seen(&problem, &settings[0], &machines[0]);
                for (setting, machine) in settings.iter().zip(machines.iter().cycle()) {
                    assert_eq!(seen(&problem.clone().batch(5), setting, machine), first, "{problem:?}");
                }
                let alone = design(&problem, &Choice::default(), Precision::F64, 6).unwrap();
                assert_eq!((alone.axes(), alone.output), first);
            }
        }
    }
}

/// The order of the axes for the nodes and the machine at hand does not depend on the exchange, the threads, the batch, the
/// tiles, or what else is left open; where results must be reproducible or the output is left to the planner, not on nodes
/// and machine either.
#[test]
fn the_order_at_hand_depends_on_problem_nodes_and_machine_alone() {
    let machines = [Machine::default(), Machine::of_family("amd-zen").cores(2)];
    let two_nodes = [0, 0, 0, 1, 1, 1];
    let free = Freedom::default().axes(true);
    let others = [("all_to_allv", Mechanism::Messages)];
    let all = free.exchanges(&others).ranks(true).tiles(true);
    let mut differ = 0;
    for (number, input) in layouts().into_iter().enumerate() {
        for output in layouts().into_iter().skip(number % 2).step_by(2).chain([LayoutSpec::unconstrained()]) {
            for problem in [Problem::c2c([48, 100, 30]), Problem::r2c([100, 30, 48])] {
                let problem = problem.input(input.clone()).output(output.clone());
                let seen =
                    |problem: &Problem, setting: &Setting<'_>, machine: &Machine, freedom: &Freedom<'_>| {
                        let choice = Choice::default();
                        let designed =
                            design_free(problem, &choice, Precision::F64, setting, (6, machine), freedom)
                                .unwrap();
                        (designed.recipe.axes(), designed.recipe.output)
                    };
                let mut orders = Vec::new();
                for machine in &machines {
                    for nodes in [&[][..], &two_nodes] {
                        let direct = Setting::new(Mechanism::SharedMemory).nodes(nodes);
                        let sent = Setting::new(Mechanism::Messages).nodes(nodes).threads(3);
                        let first = seen(&problem, &sent, machine, &free);
                        assert_eq!(
                            seen(&problem.clone().batch(5), &sent, machine, &all),
                            first,
                            "{problem:?}"
                        );
                        let policy = MemoryPolicy { stream: true, threads: 2, ..MemoryPolicy::default() };
                        let other = direct.threads(2).memory_policy(policy);
                        assert_eq!(seen(&problem, &other, machine, &free), first, "{problem:?}");
                        let pinned = problem.clone().reproducible(true);
                        orders.push((first, seen(&pinned, &sent, machine, &free)));
                    }
                }
                assert!(orders.iter().all(|(_, pinned)| *pinned == orders[0].1), "{problem:?}");
                let same = orders.iter().all(|(order, _)| *order == orders[0].0);
                assert!(same || output != LayoutSpec::unconstrained(), "{problem:?}");
                differ += usize::from(!same);
            }
        }
    }
    assert!(differ > 0);
}

/// `reorder` decides whether lines are contiguous where they are transformed, whatever the exchange and the layouts.
#[test]
fn lines_are_contiguous_or_keep_the_memory_order() {
    let settings = [Setting::new(Mechanism::SharedMemory), Setting::new(Mechanism::Messages)];
    for (setting, (input, ranks)) in settings.iter().flat_map(|setting| {
        layouts().into_iter().zip([1, 2, 6, 6, 1, 2, 6]).map(move |layout| (setting, layout))
    }) {
        for output in [LayoutSpec::bricks(), LayoutSpec::slabs(1), LayoutSpec::unconstrained()] {
            for problem in [Problem::c2c([24, 20, 18]), Problem::r2c([24, 20, 18])] {
                let problem = problem.input(input.clone()).output(output.clone());
                for reorder in [true, false] {
                    let choice = Choice::new().reorder(reorder);
                    let machine = Machine::default();
                    let designed = design_on(&problem, &choice, Precision::F64, setting, (ranks, &machine));
                    let recipe = designed.unwrap().recipe;
                    let mut order = recipe.input.order();
                    for step in &recipe.steps {
                        match step {
                            Step::Reshape { to, .. } => order = to.order(),
                            Step::Transform { axis, .. } if reorder => assert_eq!(order.axes()[2], *axis),
                            Step::Transform { .. } => assert_eq!(order, recipe.output.order()),
                        }
                    }
                    let usual =
                        design_on(&problem, &Choice::new(), Precision::F64, setting, (ranks, &machine));
                    assert_eq!(recipe.axes(), usual.unwrap().recipe.axes(), "{problem:?}");
                }
            }
        }
    }
}

/// On one node bricks take little more than slabs: two passes, the first of which loads planes from bricks.
#[test]
fn bricks_are_nearly_as_fast_as_slabs_on_one_node() {
    let setting = Setting::new(Mechanism::SharedMemory);
    for (family, cores, ranks) in [("intel-avx512", 2, 4), ("intel-avx512", 16, 16), ("amd-zen", 2, 2)] {
        let machine = Machine::of_family(family).cores(cores);
        for problem in [Problem::c2c([256; 3]), Problem::r2c([256; 3])] {
            let of = |layout: LayoutSpec| {
                let problem = problem.clone().input(layout.clone()).output(layout);
                let choice = Choice::default();
                design_on(&problem, &choice, Precision::F64, &setting, (ranks, &machine)).unwrap()
            };
            let (bricks, slabs) = (of(LayoutSpec::bricks()), of(LayoutSpec::slabs(0)));
            let text =
                format!("{family} {ranks}: {} {}", bricks.recipe.path_text(), slabs.recipe.path_text());
            assert!(bricks.seconds < 1.5 * slabs.seconds, "{text}: {} {}", bricks.seconds, slabs.seconds);
            assert!(bricks.recipe.fused.is_some_and(|pairs| pairs.len() == 1), "{text}");
            assert!(bricks.rejected.iter().all(|(_, seconds)| *seconds >= 0.98 * bricks.seconds));
        }
    }
}

/// Ranks that a launcher has dealt out to nodes, or to sockets, in turn take the places of a grid in groups.
#[test]
fn rows_of_a_grid_are_inside_nodes_and_sockets() {
    let dealt: Vec<usize> = (0..16).map(|rank| rank % 2).collect();
    let (one_node, none) = (vec![0; 16], Vec::new());
    for (nodes, sockets) in [(&dealt, &none), (&one_node, &dealt)] {
        let setting = Setting::new(Mechanism::Messages).nodes(nodes).sockets(sockets);
        let groups = setting.grouped(16).unwrap();
        assert_eq!(groups[..5], [0, 2, 4, 6, 8]);
        let of = |setting: &Setting<'_>, choice: &Choice| {
            let [input, output] = [0, 1].map(|_| LayoutSpec::pencils(2));
            let problem = Problem::c2c([64; 3]).input(input).output(output);
            design_on(&problem, choice, Precision::F64, setting, (16, &Machine::default())).unwrap()
        };
        let choice = Choice::default().grid([4, 4]);
        let (grouped, plain) = (of(&setting, &choice), of(&setting.sockets(&[]), &choice));
        // What users see is the same.
        assert_eq!(
            (grouped.recipe.axes(), &grouped.recipe.output),
            (plain.recipe.axes(), &plain.recipe.output)
        );
        // Ranks of the first group are neighbours in a grid between.
        let near = |layout: &Layout| {
            let lows: Vec<_> = groups[..4].iter().map(|&rank| layout.boxes()[rank].lo).collect();
            (0..3).any(|axis| lows.iter().all(|low| low[axis] == lows[0][axis]) && layout.parts()[axis] > 1)
        };
        let is_grouped = |step: &Step| matches!(step, Step::Reshape { to, .. } if near(to));
        assert!(grouped.recipe.steps.iter().any(is_grouped), "{}", grouped.recipe.path_text());
        assert!(sockets.is_empty() || !plain.recipe.steps.iter().any(is_grouped));
    }
    // In order: nothing to group.
    let in_order: Vec<usize> = (0..16).map(|rank| rank / 4).collect();
    assert_eq!(Setting::new(Mechanism::Messages).nodes(&in_order).sockets(&[0; 16]).grouped(16), None);
    assert_eq!(Setting::new(Mechanism::Messages).grouped(16), None);
}

/// The order that a recipe has can be asked for, also where axes of one point are left out; no other axis may be.
#[test]
fn the_order_of_a_recipe_can_be_asked_for() {
    let setting = Setting::new(Mechanism::Messages);
    let of = |problem: &Problem, axes: Option<Vec<usize>>| {
        let choice = axes.into_iter().fold(Choice::default(), Choice::axes);
        design_on(problem, &choice, Precision::F64, &setting, (2, &Machine::default()))
            .map(|designed| designed.recipe)
    };
    for shape in [[64, 1, 96], [1, 1, 8], [31, 32, 1], [5, 6, 7]] {
        for problem in [Problem::c2c(shape), Problem::r2c(shape)] {
            let default = of(&problem, None).unwrap();
            let mut axes = default.axes();
            assert_eq!(of(&problem, Some(axes.clone())).unwrap(), default, "{shape:?}");
            let left_out = axes.pop();
            let error = of(&problem, Some(axes)).expect_err(&format!("{shape:?} without {left_out:?}"));
            assert!(error.to_string().contains("must list each of [0, 1, 2] once"), "{error}");
        }
    }
}

/// Messages between nodes are worth more than passes: pencils to pencils have two reshapes, bricks to bricks four at
/// most, and no layout is as large as the array.
#[test]
fn messages_are_few() {
    let nodes: Vec<usize> = (0..64).collect();
    let setting = Setting::new(Mechanism::Messages).nodes(&nodes);
    let of = |input: LayoutSpec, output: LayoutSpec| {
        let problem = Problem::c2c([256; 3]).input(input).output(output);
        let choice = Choice::default();
        design_on(&problem, &choice, Precision::F64, &setting, (64, &Machine::default())).unwrap().recipe
    };
    assert_eq!(of(LayoutSpec::slabs(0), LayoutSpec::slabs(1)).reshapes(), 1);
    assert_eq!(of(LayoutSpec::slabs(0), LayoutSpec::slabs(0)).reshapes(), 2);
    assert_eq!(of(LayoutSpec::pencils(2), LayoutSpec::pencils(0)).reshapes(), 2);
    assert!((3..=4).contains(&of(LayoutSpec::bricks(), LayoutSpec::bricks()).reshapes()));
}

/// Over a wire transfers are hidden behind passes by tiles; where nothing is gained, there are none. Ranks of several nodes
/// compare exchanges. Neither changes what users see.
#[test]
fn tiles_and_exchanges_are_searched() {
    let nodes: Vec<usize> = (0..4).collect();
    let others = [("hierarchical", Mechanism::NodeAware)];
    let freedom = Freedom::default().exchanges(&others).ranks(true).tiles(true);
    let choice = Choice::default().exchange("all_to_allv");
    let setting = Setting::new(Mechanism::Messages).nodes(&nodes);
    let mut machine = Machine::of_family("intel-avx512");
    machine.constants.wire_bytes_s = 1.25e9;
    let of = |problem: &Problem, choice: &Choice, freedom: &Freedom<'_>| {
        design_free(problem, choice, Precision::F64, &setting, (4, &machine), freedom).unwrap()
    };
    for layout in layouts() {
        let large = Problem::c2c([128; 3]).input(layout.clone()).output(layout);
        let (plain, free) = (of(&large, &choice, &Freedom::default()), of(&large, &choice, &freedom));
        assert!(
            free.recipe.overlap.forward.iter().any(|tiling| tiling.tile > 0),
            "{:?}",
            free.recipe.overlap
        );
        assert!(free.seconds < 0.95 * plain.seconds, "{} {}", free.seconds, plain.seconds);
        assert_eq!((free.recipe.axes(), &free.recipe.output), (plain.recipe.axes(), &plain.recipe.output));
        // What the user decided stays: no tiles, all ranks.
        let decided = choice.clone().overlap(Overlap::default());
        assert_eq!(of(&large, &decided, &freedom).recipe.overlap, Overlap::default());
    }
    // Latencies outweigh what tiles hide.
    let small = Problem::c2c([8; 3]);
    assert_eq!(of(&small, &choice, &freedom).recipe.overlap, Overlap::default());
    // One rank transforms an array that is smaller than messages are late: 2 reshapes instead of 3 or 4.
    let (nodes, late) = ((0..8).collect::<Vec<_>>(), Constants { wire_latency_s: 1e-3, ..machine.constants });
    let (setting, late) = (Setting::new(Mechanism::Messages).nodes(&nodes), machine.clone().constants(late));
    let bricks = small.input(LayoutSpec::bricks()).output(LayoutSpec::bricks());
    let inner = |choice: &Choice| {
        let free = design_free(&bricks, choice, Precision::F64, &setting, (8, &late), &freedom).unwrap();
        (free.recipe.inner_ranks(), free.recipe.reshapes())
    };
    assert_eq!(inner(&choice), (1, 2));
    assert_eq!(inner(&choice.clone().ranks(8)).0, 8);
}
