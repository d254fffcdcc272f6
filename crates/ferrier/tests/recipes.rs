//! Golden recipes: the planner is a pure function, so what it makes of a
//! problem is kept in `tests/golden/` and compared.
//!
//! `FERRIER_BLESS=1 cargo test -p ferrier --test transforms recipes` rewrites the files;
//! read the difference before you commit it.

use std::collections::HashSet;
use std::path::PathBuf;

use ferrier::{Choice, Decomposition, LayoutSpec, Order, Precision, Problem, Recipe, Step, design};

fn recipe(problem: &Problem, choice: &Choice, ranks: usize) -> Recipe {
    design(problem, choice, Precision::F64, ranks).unwrap()
}

fn path(path: Decomposition) -> Choice {
    Choice::new().decomposition(path)
}

/// Compares with `tests/golden/NAME.txt`, and checks what no recipe may lack.
fn golden(name: &str, problem: &Problem, choice: &Choice, ranks: usize) -> Recipe {
    // The defaults may change as members come; the goldens are about the steps.
    let mut choice = choice.clone();
    choice.exchange.get_or_insert_with(|| "all_to_allv".into());
    choice.kernel.get_or_insert_with(|| "rustfft".into());
    let recipe = recipe(problem, &choice, ranks);
    hangs_together(&recipe);
    let text = format!("{recipe}\n");
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.txt"));
    if std::env::var_os("FERRIER_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let want = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        text == want,
        "the recipe `{name}` has changed (FERRIER_BLESS=1 accepts it)\n--- was\n{want}--- is\n{text}"
    );
    recipe
}

/// Each axis once, each where it is whole, each reshape from where the last
/// step ended, none that moves nothing.
fn hangs_together(recipe: &Recipe) {
    let mut now = recipe.input.clone();
    let mut done = HashSet::new();
    for step in &recipe.steps {
        match step {
            Step::Transform { axis, kind } => {
                assert!(done.insert(*axis), "axis {axis} twice");
                assert_eq!(*kind, recipe.kinds[*axis]);
                assert!(now.is_whole(*axis), "axis {axis} is split");
                if *kind == ferrier::Kind::Real {
                    assert_eq!(done.len(), 1, "the halved axis comes first");
                    // What follows lies on the halved shape: taken from the next step.
                    now = shrink(&now, *axis);
                }
            }
            Step::Reshape { from, to } => {
                assert_eq!(*from, now, "a reshape begins where the last step ended");
                assert_ne!(from, to, "a reshape that moves nothing");
                now = to.clone();
            }
        }
    }
    assert_eq!(now, recipe.output);
    // A complex transform of one point is none.
    let wanted = (0..3).filter(|&axis| match recipe.kinds[axis] {
        ferrier::Kind::Complex => recipe.shape[axis] > 1,
        kind => kind == ferrier::Kind::Real,
    });
    let wanted: HashSet<usize> = wanted.collect();
    assert_eq!(done, wanted);
}

fn shrink(layout: &ferrier::Layout, axis: usize) -> ferrier::Layout {
    let mut shape = layout.shape();
    shape[axis] = shape[axis] / 2 + 1;
    let mut boxes = layout.boxes().to_vec();
    for b in boxes.iter_mut().filter(|b| !b.is_empty()) {
        b.hi[axis] = shape[axis];
    }
    ferrier::Layout::from_boxes(shape, boxes, layout.order()).unwrap()
}

fn cube(input: LayoutSpec, output: LayoutSpec) -> Problem {
    Problem::c2c([24, 24, 24]).input(input).output(output)
}

#[test]
fn pencil_to_pencil_is_two_reshapes() {
    let problem = cube(LayoutSpec::pencils(2).grid([2, 2, 1]), LayoutSpec::pencils(0).grid([1, 2, 2]));
    let recipe = golden("pencil_to_pencil", &problem, &path(Decomposition::Pencil), 4);
    assert_eq!(recipe.reshapes(), 2);
}

#[test]
fn slab_to_transposed_slab_is_one_reshape() {
    let recipe =
        golden("slab_to_slab", &cube(LayoutSpec::slabs(0), LayoutSpec::slabs(1)), &Choice::default(), 4);
    assert_eq!(recipe.reshapes(), 1);
}

#[test]
fn natural_slabs_are_two_reshapes() {
    let recipe =
        golden("natural_slabs", &cube(LayoutSpec::slabs(0), LayoutSpec::slabs(0)), &Choice::default(), 4);
    assert_eq!(recipe.reshapes(), 2);
}

#[test]
fn slab_to_best_is_one_reshape() {
    let recipe = golden(
        "slab_to_best",
        &cube(LayoutSpec::slabs(0), LayoutSpec::unconstrained()),
        &Choice::default(),
        4,
    );
    assert_eq!(recipe.reshapes(), 1);
}

#[test]
fn brick_to_brick_is_four_reshapes_by_pencils() {
    let problem = cube(LayoutSpec::bricks().grid([2, 2, 2]), LayoutSpec::bricks().grid([2, 2, 2]));
    assert_eq!(golden("brick_to_brick_pencils", &problem, &path(Decomposition::Pencil), 8).reshapes(), 4);
}

#[test]
fn brick_to_brick_is_three_reshapes_by_slabs() {
    let problem = cube(LayoutSpec::bricks().grid([2, 2, 2]), LayoutSpec::bricks().grid([2, 2, 2]));
    assert_eq!(golden("brick_to_brick_slabs", &problem, &path(Decomposition::Slab), 8).reshapes(), 3);
}

#[test]
fn thirteen_ranks_on_twelve_cubed() {
    let problem = Problem::c2c([12, 12, 12]).input(LayoutSpec::bricks()).output(LayoutSpec::bricks());
    golden("thirteen_ranks", &problem, &Choice::default(), 13);
    golden("thirteen_ranks_slabs", &Problem::c2c([12, 12, 12]), &Choice::default(), 13);
}

#[test]
fn real_transforms_halve_their_axis_first() {
    for halved in 0..3 {
        let problem = Problem::r2c([24, 20, 18])
            .halved(halved)
            .input(LayoutSpec::pencils(2))
            .output(LayoutSpec::pencils(0));
        golden(&format!("real_halved_{halved}"), &problem, &Choice::default(), 6);
    }
}

#[test]
fn two_and_one_dimensions() {
    let flat = |kind: fn([usize; 3]) -> Problem| {
        kind([1, 36, 40]).input(LayoutSpec::slabs(1)).output(LayoutSpec::slabs(1))
    };
    assert_eq!(golden("flat", &flat(Problem::c2c), &Choice::default(), 4).reshapes(), 2);
    golden("flat_real", &flat(Problem::r2c), &Choice::default(), 4);
    let line = Problem::c2c([1, 1, 60]).input(LayoutSpec::slabs(2)).output(LayoutSpec::slabs(2));
    assert_eq!(golden("line", &line, &Choice::default(), 3).reshapes(), 2);
    let one = Problem::c2c([1, 1, 60]).input(LayoutSpec::pencils(2)).output(LayoutSpec::pencils(2));
    assert_eq!(golden("line_whole", &one, &Choice::default(), 3).reshapes(), 0);
}

#[test]
fn one_rank_moves_nothing() {
    let recipe = golden("one_rank", &Problem::c2c([24, 24, 24]), &Choice::default(), 1);
    assert_eq!((recipe.reshapes(), recipe.steps.len(), recipe.wire_bytes()), (0, 3, 0));
}

#[test]
fn another_memory_order_is_a_local_step() {
    let problem = cube(LayoutSpec::slabs(0), LayoutSpec::slabs(0).order(Order::F)).axes(&[1, 2]);
    let recipe = golden("reorder", &problem, &Choice::default(), 3);
    assert_eq!((recipe.reshapes(), recipe.wire_bytes()), (0, 0));
    assert!(recipe.traffic().iter().all(|step| step.local));
}

#[test]
fn fewer_ranks_inside() {
    let choice = Choice::new().ranks(3);
    let recipe = golden("fewer_inside", &cube(LayoutSpec::slabs(0), LayoutSpec::slabs(0)), &choice, 8);
    let layouts = recipe.steps.windows(2).filter_map(|pair| match pair {
        [Step::Reshape { to, .. }, Step::Transform { .. }] => Some(to),
        _ => None,
    });
    let mut seen = 0;
    for layout in layouts {
        assert!(layout.boxes()[3..].iter().all(ferrier::Box3::is_empty), "{layout:?}");
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn a_subset_of_the_axes() {
    let problem = cube(LayoutSpec::slabs(0), LayoutSpec::slabs(0));
    assert_eq!(golden("axes_1_2", &problem.clone().axes(&[1, 2]), &Choice::default(), 4).reshapes(), 0);
    assert_eq!(golden("axes_0", &problem.axes(&[0]), &Choice::default(), 4).reshapes(), 2);
}

/// The traffic of a recipe, counted anew from its boxes, index by index.
#[test]
fn traffic_agrees_with_the_boxes() {
    for ranks in [2, 5, 6] {
        let problem =
            Problem::r2c([6, 7, 8]).input(LayoutSpec::bricks()).output(LayoutSpec::slabs(1)).batch(3);
        let recipe = recipe(&problem, &Choice::default(), ranks);
        let (mut real, mut wire) = (true, 0);
        for (step, told) in recipe.steps.iter().zip(recipe.traffic()) {
            let Step::Reshape { from, to } = step else {
                real = false;
                assert_eq!((told.bytes_total, told.messages_total), (0, 0));
                continue;
            };
            let mut moved = vec![vec![0_u64; ranks]; ranks];
            for at in ferrier_test::dft::indices(from.shape()) {
                let owner =
                    |layout: &ferrier::Layout| layout.boxes().iter().position(|b| b.contains(at)).unwrap();
                moved[owner(from)][owner(to)] += 3 * if real { 8 } else { 16 };
            }
            (0..ranks).for_each(|rank| moved[rank][rank] = 0);
            let sums: Vec<u64> = moved.iter().map(|row| row.iter().sum()).collect();
            let counts: Vec<u64> =
                moved.iter().map(|row| row.iter().filter(|b| **b > 0).count() as u64).collect();
            assert_eq!(told.bytes_total, sums.iter().sum::<u64>(), "{}", told.name);
            assert_eq!(told.bytes_max, *sums.iter().max().unwrap(), "{}", told.name);
            assert_eq!(told.messages_total, counts.iter().sum::<u64>(), "{}", told.name);
            assert_eq!(told.messages_max, *counts.iter().max().unwrap(), "{}", told.name);
            wire += told.bytes_total;
        }
        assert_eq!(recipe.wire_bytes(), wire);
    }
}

#[test]
fn recipes_survive_json_and_have_distinct_digests() {
    let one = recipe(&Problem::c2c([8, 9, 10]), &Choice::default(), 4);
    let again: Recipe = serde_json::from_str(&serde_json::to_string(&one).unwrap()).unwrap();
    assert_eq!((&one, one.digest()), (&again, again.digest()));
    let other = recipe(&Problem::c2c([8, 9, 10]).batch(2), &Choice::default(), 4);
    assert_ne!(one.digest(), other.digest());
}

/// Every count of ranks works, on shapes with hardly a line for each.
#[test]
fn every_count_of_ranks_has_a_recipe() {
    for ranks in 1..=40 {
        for shape in [[12, 12, 12], [3, 2, 5], [1, 1, 7], [64, 1, 64]] {
            for spec in [LayoutSpec::bricks, || LayoutSpec::slabs(0), || LayoutSpec::pencils(1)] {
                for forced in [None, Some(Decomposition::Slab), Some(Decomposition::Pencil)] {
                    let choice = Choice::new().decomposition(forced);
                    for problem in [Problem::c2c(shape), Problem::r2c(shape)] {
                        hangs_together(&recipe(&problem.input(spec()).output(spec()), &choice, ranks));
                    }
                }
            }
        }
    }
}

/// 2 nodes x 2 ranks: of slabs everybody has something for everybody, so four
/// messages go from node to node, or one that carries them all.
#[test]
fn messages_between_nodes_are_counted() {
    let problem = Problem::c2c([16, 16, 16]).output(LayoutSpec::slabs(2));
    for (exchange, most) in [("all_to_allv", 4), ("ring", 4), ("hierarchical", 1)] {
        let choice = Choice::new().exchange(exchange);
        let recipe = recipe(&problem, &choice, 4);
        let counts =
            ferrier::exchange::find(&recipe.exchange).unwrap().messages_between_nodes(&recipe, &[0, 0, 1, 1]);
        assert_eq!(counts.len(), recipe.steps.len());
        for (count, step) in counts.iter().zip(&recipe.steps) {
            let crosses = matches!(step, Step::Reshape { from, to } if from.boxes() != to.boxes());
            assert_eq!(*count, if crosses { most } else { 0 }, "{exchange}: {step:?}");
        }
        assert!(
            ferrier::exchange::find(&recipe.exchange)
                .unwrap()
                .messages_between_nodes(&recipe, &[0; 4])
                .iter()
                .all(|&count| count == 0)
        );
    }
}

/// A rank that plans for its group, without the others, finds the recipe and the memory of a group that runs.
#[test]
fn planning_alone_is_planning_together() {
    let problem = Problem::c2c([12, 10, 9]).input(LayoutSpec::bricks()).output(LayoutSpec::slabs(1)).batch(2);
    let wire = ferrier::Wire { gbit_per_s: 10.0, latency_us: 1.0 };
    for exchange in ferrier::exchange::EXCHANGES.iter().map(|entry| entry.name) {
        for (ranks, nodes, wire, codec) in
            [(4, 1, None, None), (6, 2, None, None), (5, 5, Some(wire), None), (6, 3, None, Some("lossless"))]
        {
            let entry = ferrier::exchange::find(exchange).unwrap();
            if (exchange == "direct" && nodes > 1) || (codec.is_some() && !entry.sends_messages(1)) {
                continue;
            }
            let group = ferrier::ranks(ranks).nodes(nodes);
            let group = wire.map_or(group, |wire| group.wire(wire));
            let mut choice = Choice::new().exchange(exchange);
            choice.codec = codec.map(Into::into);
            let planner = ferrier::Planner::new(&problem).choice(choice).without_wisdom();
            let draft = |comm: &ferrier::Comm| -> ferrier::Result<(Recipe, u64)> {
                let draft = planner.clone().draft::<f64>(comm)?;
                Ok((draft.recipe().clone(), draft.largest_memory()?))
            };
            let together = group.run(|comm| draft(&comm)).unwrap().swap_remove(0);
            let alone = draft(&group.for_planning().unwrap()).unwrap();
            assert_eq!(alone, together, "{exchange} on {ranks} ranks of {nodes} nodes, {codec:?}");
        }
    }
}

/// As many ranks as a large machine has: a table of all pairs of them would take 4.8 GB.
#[test]
fn many_ranks_are_planned_for() {
    let problem = Problem::r2c([1024; 3]).input(LayoutSpec::bricks()).output(LayoutSpec::pencils(0));
    for exchange in ["all_to_allv", "hierarchical"] {
        let comm = ferrier::ranks(24_576).nodes(384).for_planning().unwrap();
        let planner = ferrier::Planner::new(&problem).choice(Choice::new().exchange(exchange));
        let draft = planner.without_wisdom().draft::<f64>(&comm).unwrap();
        let traffic = draft.recipe().traffic();
        let crossing = draft.messages_between_nodes();
        let moves = traffic.iter().filter(|step| !step.local);
        assert!(moves.clone().count() > 1 && moves.clone().all(|step| step.messages_max < 24_575));
        assert!(crossing.iter().zip(&traffic).all(|(&count, step)| step.local || count > 0));
        let share = 1024 * 1024 * 1024 / 24_576 * 8;
        assert!(draft.memory().total() < 64 * share, "{:?}", draft.memory());
    }
}
