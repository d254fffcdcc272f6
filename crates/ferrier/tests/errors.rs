//! Every error of the library: its text, that every rank returns it, and that no rank hangs or reads freed
//! memory.

use crate::common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{choice, exchanges, kernels, plan_of};
use ferrier::{
    Box3, Choice, Comm, Error, Layout, LayoutSpec, Order, Plan, Planner, Problem, Result, Workspace,
};
use ferrier_test::watchdog;
use num_complex::Complex;

/// One line that has all these words.
#[track_caller]
fn says<T, E: std::fmt::Display>(outcome: std::result::Result<T, E>, words: &[&str]) {
    let Err(error) = outcome else { panic!("no error, but one with {words:?} was due") };
    let text = error.to_string();
    assert!(!text.contains('\n') && !text.is_empty(), "not one line: {text}");
    for word in words {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
}

/// The error that every one of `ranks` ranks gets for this problem.
#[track_caller]
fn everybody_hears(ranks: usize, words: &[&str], make: impl Fn(&Comm) -> Result<Plan<f64>> + Sync) {
    let _watchdog = watchdog(60);
    let heard = ferrier::ranks(ranks)
        .run(|comm| Ok(make(&comm).err().map(|error| error.to_string())))
        .expect("an error of a plan is not an error of the run");
    let first = heard[0].clone().unwrap_or_else(|| panic!("no error, but one with {words:?} was due"));
    assert!(
        heard.iter().all(|text| text.as_ref() == Some(&first)),
        "ranks heard different things: {heard:?}"
    );
    for word in words {
        assert!(first.contains(word), "`{word}` is not in: {first}");
    }
}

fn plan(comm: &Comm, problem: &Problem) -> Result<Plan<f64>> {
    Plan::new(comm, problem)
}

// ---- layouts ---------------------------------------------------------------

fn boxes(shape: [usize; 3], boxes: Vec<Box3>) -> Result<Layout> {
    Ok(Layout::from_boxes(shape, boxes, Order::C)?)
}

#[test]
fn boxes_outside_overlapping_or_missing() {
    let half = |lo, hi| Box3::new([lo, 0, 0], [hi, 4, 4]);
    says(boxes([4, 4, 4], vec![half(0, 2), half(2, 5)]), &["rank 1", "2..5", "4x4x4"]);
    says(
        boxes([4, 4, 4], vec![half(0, 3), Box3::EMPTY, half(2, 4)]),
        &["0 and 2", "overlap", "0..3", "2..4"],
    );
    says(boxes([4, 4, 4], vec![half(0, 2), half(3, 4)]), &["2..3"]);
    says(boxes([4, 4, 4], vec![]), &["rank"]);
    says(boxes([4, 4, 4], vec![Box3::EMPTY; 3]), &["0..4"]);
    // As much overlap as hole: the volumes alone would not tell.
    let tricky = vec![Box3::new([0, 0, 0], [4, 4, 2]), Box3::new([0, 0, 1], [4, 4, 3])];
    says(boxes([4, 4, 4], tricky), &["overlap"]);
    let last = Box3::new([3, 3, 3], [4, 4, 4]);
    says(boxes([4, 4, 4], vec![Box3::whole([4, 4, 4]), last]), &["0 and 1", "overlap"]);
    assert!(boxes([4, 4, 4], vec![half(2, 4), Box3::new([3; 3], [3; 3]), half(0, 2)]).is_ok());
}

#[test]
fn boxes_of_a_plan_are_checked_on_every_rank() {
    let half = |lo, hi| Box3::new([lo, 0, 0], [hi, 4, 4]);
    let bad = LayoutSpec::boxes(vec![half(0, 2), half(1, 4)]);
    everybody_hears(2, &["input", "0 and 1", "overlap"], |comm| {
        plan(comm, &Problem::c2c([4, 4, 4]).input(bad.clone()))
    });
    everybody_hears(2, &["output", "0 and 1", "overlap"], |comm| {
        plan(comm, &Problem::c2c([4, 4, 4]).output(bad.clone()))
    });
    everybody_hears(3, &["2 boxes", "3 ranks"], |comm| {
        plan(comm, &Problem::c2c([4, 4, 4]).input(bad.clone()))
    });
    everybody_hears(2, &["rank", "0..4"], |comm| {
        plan(comm, &Problem::c2c([4, 4, 4]).input(LayoutSpec::local(half(0, comm.rank()))))
    });
    everybody_hears(2, &["overlap"], |comm| {
        plan(comm, &Problem::c2c([4, 4, 4]).output(LayoutSpec::local(half(comm.rank(), 4))))
    });
}

#[test]
fn own_boxes_are_gathered() {
    let _watchdog = watchdog(60);
    let found = ferrier::ranks(3).run(|comm| {
        let own = Box3::new([2 * comm.rank(), 0, 0], [2 * comm.rank() + 2, 4, 4]);
        let problem = Problem::c2c([6, 4, 4]).input(LayoutSpec::local(own)).output(LayoutSpec::slabs(1));
        let plan = plan(&comm, &problem)?;
        Ok(plan.input_box() == own && plan.input_layout().boxes().len() == 3)
    });
    assert_eq!(found.unwrap(), [true; 3]);
}

#[test]
fn grids_and_axes_of_layouts() {
    let shape = [8, 8, 8];
    says(LayoutSpec::bricks().grid([2, 2, 2]).layout(shape, 6), &["2x2x2", "8", "6"]);
    says(LayoutSpec::slabs(0).grid([2, 2, 1]).layout(shape, 4), &["2x2x1", "axis 1"]);
    says(LayoutSpec::pencils(1).grid([2, 2, 1]).layout(shape, 4), &["2x2x1", "axis 1"]);
    says(LayoutSpec::bricks().grid([0, 4, 1]).layout(shape, 4), &["0x4x1"]);
    says(LayoutSpec::bricks().grid([1 << 40, 1 << 40, 1]).layout(shape, 4), &["grid", "4"]);
    says(LayoutSpec::slabs(3).layout(shape, 4), &["3"]);
    says(LayoutSpec::pencils(7).layout(shape, 4), &["7"]);
    says(LayoutSpec::bricks().layout(shape, 0), &["0"]);
    says(LayoutSpec::unconstrained().layout(shape, 2), &["plan"]);
    says(LayoutSpec::local(Box3::EMPTY).layout(shape, 2), &["plan"]);
    says(LayoutSpec::boxes(vec![Box3::whole(shape)]).grid([1, 1, 1]).layout(shape, 1), &["grid"]);
    says(Order::new([0, 1, 1]), &["permutation", "[0, 1, 1]"]);
    says(Order::new([0, 1, 3]), &["permutation"]);
    everybody_hears(3, &["2x2x1", "3"], |comm| {
        plan(comm, &Problem::c2c(shape).input(LayoutSpec::bricks().grid([2, 2, 1])))
    });
    everybody_hears(2, &["input"], |comm| {
        plan(comm, &Problem::c2c(shape).input(LayoutSpec::unconstrained()))
    });
}

// ---- problems and choices --------------------------------------------------

#[test]
fn problems_that_make_no_sense() {
    let bad = |problem: Problem, words: &[&str]| everybody_hears(2, words, |comm| plan(comm, &problem));
    bad(Problem::c2c([4, 0, 4]), &["axis 1", "4x0x4"]);
    bad(Problem::c2c([4, 4, 4]).axes(&[0, 3]), &["3"]);
    bad(Problem::c2c([4, 4, 4]).axes(&[0, 1, 0]), &["axis 0", "twice"]);
    bad(Problem::r2c([4, 4, 4]).axes(&[0, 1]), &["halved", "2"]);
    bad(Problem::r2c([4, 4, 4]).halved(3), &["3"]);
    bad(Problem::c2c([4, 4, 4]).batch(0), &["batch", "0"]);
    bad(Problem::c2c([1 << 21, 1 << 21, 1 << 21]), &["2097152"]);
    bad(Problem::c2c([usize::MAX, 2, 2]), &["address"]);
    bad(Problem::c2c([usize::MAX, usize::MAX, usize::MAX]), &["address"]);
    bad(Problem::r2c([2, 2, usize::MAX]), &["address"]);
    bad(Problem::c2c([1 << 20, 1 << 20, 1]).batch(1 << 40), &["address"]);
}

#[test]
fn more_memory_than_there_is() {
    // Addressable, but no machine has it: an error, not an abort.
    let _watchdog = watchdog(60);
    let problem = Problem::c2c([1 << 17, 1 << 17, 1 << 17]).output(LayoutSpec::slabs(1));
    for exchange in exchanges() {
        let outcome = ferrier::ranks(2).run(|comm| {
            let plan = plan_of::<f64>(&comm, &problem, &choice(exchange, kernels()[0]))?;
            plan.make_input().map(drop)
        });
        says(outcome, &["memory", "bytes"]);
    }
}

#[test]
fn layouts_of_huge_shapes_do_not_overflow() {
    for shape in [[1 << 40, 1 << 40, 1 << 40], [usize::MAX, usize::MAX, 1], [usize::MAX; 3]] {
        for spec in [LayoutSpec::bricks(), LayoutSpec::slabs(0), LayoutSpec::pencils(0)] {
            let _ = spec.layout(shape, 6);
        }
        let _ = boxes(shape, vec![Box3::whole(shape)]);
        let _ = boxes(shape, vec![Box3::whole(shape), Box3::new([0; 3], [1; 3])]);
    }
}

#[test]
fn choices_that_do_not_fit() {
    let with = |choice: Choice, problem: Problem, words: &[&str]| {
        everybody_hears(2, words, |comm| plan_of(comm, &problem, &choice));
    };
    let cube = || Problem::c2c([4, 4, 4]);
    let mut names = exchanges();
    names.push("carrier_pigeon");
    with(Choice::new().exchange("carrier_pigeon"), cube(), &names);
    let mut names = kernels();
    names.push("abacus");
    with(Choice::new().kernel("abacus"), cube(), &names);
    let codec = |name: &str| Choice::new().codec(name);
    with(codec("gzip"), cube(), &["gzip", "block:B", "lossless"]);
    with(codec("trim:99"), cube(), &["trim", "99"]);
    for exchange in ["direct", "hierarchical"] {
        let choice = codec("f32").exchange(exchange);
        with(choice, cube(), &[exchange, "shares memory", "all_to_allv"]);
    }
    for (tolerance, words) in [(1e-15, "10 epsilon log2 N"), (0.0, "between 0 and 1"), (f64::NAN, "NaN")] {
        with(Choice::default(), cube().tolerance(tolerance), &["tolerance", words]);
    }
    with(Choice::new().ranks(0), cube(), &["0"]);
    with(Choice::new().ranks(3), cube(), &["3", "2"]);
    with(Choice::new().axes([0, 1]), cube(), &["[0, 1]"]);
    with(Choice::new().axes([0, 1, 1]), cube(), &["[0, 1, 1]"]);
    let real = Problem::r2c([4, 4, 4]);
    with(Choice::new().axes([0, 1, 2]), real, &["halved", "first"]);
    says(ferrier::exchange::find("carrier_pigeon"), &names_of("carrier_pigeon", &exchanges()));
    says(ferrier::kernel::find("abacus"), &names_of("abacus", &kernels()));
}

fn names_of<'a>(wrong: &'a str, known: &[&'a str]) -> Vec<&'a str> {
    known.iter().copied().chain([wrong]).collect()
}

#[test]
fn ranks_that_disagree_all_hear_it() {
    let even = |comm: &Comm| comm.rank().is_multiple_of(2);
    let cube = || Problem::c2c([4, 4, 4]);
    everybody_hears(4, &["disagree"], |comm| {
        plan(comm, &if even(comm) { cube() } else { Problem::c2c([4, 4, 5]) })
    });
    everybody_hears(3, &["disagree"], |comm| plan(comm, &if even(comm) { cube() } else { cube().batch(2) }));
    everybody_hears(3, &["disagree"], |comm| {
        plan(comm, &if even(comm) { cube() } else { Problem::r2c([4, 4, 4]) })
    });
    everybody_hears(5, &["disagree"], |comm| {
        plan(comm, &if comm.rank() < 4 { cube() } else { cube().output(LayoutSpec::slabs(1)) })
    });
    everybody_hears(3, &["disagree"], |comm| {
        plan(comm, &if comm.rank() < 2 { cube() } else { cube().scale_forward(ferrier::Scale::Full) })
    });
    let names = exchanges();
    everybody_hears(3, &["disagree"], |comm| {
        plan_of(comm, &cube(), &choice(names[comm.rank().min(1)], kernels()[0]))
    });
    // Names that begin with the same byte and differ in the next.
    everybody_hears(2, &["disagree"], |comm| {
        plan_of(comm, &cube(), &choice(["\u{e9}", "\u{e8}"][comm.rank()], kernels()[0]))
    });
    everybody_hears(2, &["disagree"], |comm| {
        let spec =
            if comm.rank() == 0 { LayoutSpec::local(Box3::whole([4; 3])) } else { LayoutSpec::slabs(0) };
        plan(comm, &cube().input(spec))
    });
    // One rank's problem is bad, the others' is good.
    everybody_hears(3, &[], |comm| plan(comm, &if comm.rank() == 1 { cube().batch(0) } else { cube() }));
    everybody_hears(3, &[], |comm| {
        plan(comm, &if comm.rank() == 2 { cube().input(LayoutSpec::slabs(9)) } else { cube() })
    });
}

#[test]
fn ranks_of_different_precision_all_hear_it() {
    let _watchdog = watchdog(60);
    let heard = ferrier::ranks(2).run(|comm| {
        let problem = Problem::c2c([4, 4, 4]);
        let error = if comm.rank() == 0 {
            Plan::<f64>::new(&comm, &problem).err()
        } else {
            Plan::<f32>::new(&comm, &problem).err()
        };
        Ok(error.map(|error| error.to_string()))
    });
    let heard = heard.unwrap();
    assert!(heard[0].is_some() && heard[0] == heard[1], "{heard:?}");
    assert!(heard[0].as_ref().unwrap().contains("disagree"));
}

#[test]
fn after_an_error_the_ranks_go_on() {
    let _watchdog = watchdog(60);
    let sums = ferrier::ranks(3).run(|comm| {
        assert!(plan(&comm, &Problem::c2c([4, 4, 4]).batch(0)).is_err());
        let problem = Problem::c2c([6, 4, 4]);
        let mut plan = plan(&comm, &problem)?;
        let (mut x, mut y) = (plan.make_input()?, plan.make_output()?);
        x.fill_complex(|_, _| Complex::new(1.0, 0.0));
        plan.forward(&x, &mut y)?;
        Ok(y.index(0, [0, 0, 0]).map(|at| y.complex()[at].re))
    });
    assert_eq!(sums.unwrap(), [Some(96.0), None, None]);
}

// ---- arrays ----------------------------------------------------------------

/// The error of one call on all of two ranks; the group fails with it.
#[track_caller]
fn refused(problem: &Problem, words: &[&str], call: impl Fn(&mut Plan<f64>) -> Result<()> + Sync) {
    let _watchdog = watchdog(60);
    says(ferrier::ranks(2).run(|comm| call(&mut plan(&comm, problem)?)), words);
    // A single rank does not wait for others: the plan can be used after an error.
    let mut alone = plan(&Comm::one_rank(), problem).unwrap();
    assert!(call(&mut alone).is_err());
    let (x, mut y) = (alone.make_input().unwrap(), alone.make_output().unwrap());
    assert_eq!(alone.forward(&x, &mut y), Ok(()));
}

fn zeros(n: usize) -> Vec<Complex<f64>> {
    vec![Complex::new(0.0, 0.0); n]
}

#[test]
fn slices_of_the_wrong_length_or_kind() {
    let complex = Problem::c2c([4, 3, 2]);
    let c = zeros;
    refused(&complex, &["input", "12", "11"], |plan| plan.forward(&c(11), &mut c(12)));
    refused(&complex, &["output", "12", "13"], |plan| plan.forward(&c(12), &mut c(13)));
    refused(&complex, &["input", "12", "0"], |plan| plan.backward(&c(0)[..], &mut c(12)[..]));
    refused(&complex, &["input", "complex", "real"], |plan| plan.forward(&vec![0.0; 24], &mut c(12)));
    refused(&complex, &["output", "complex", "real"], |plan| plan.backward(&c(12), &mut vec![0.0; 24]));
    refused(&complex, &["24", "22"], |plan| plan.call().forward_in_place(&mut c(11)));
    refused(&complex, &["24", "0"], |plan| plan.call().backward_in_place(&mut c(0)));
    let real = Problem::r2c([4, 3, 2]);
    refused(&real, &["input", "complex", "real"], |plan| plan.forward(&c(6), &mut c(12)));
    refused(&real, &["input", "12", "11"], |plan| plan.forward(&vec![0.0; 11], &mut c(12)));
    refused(&real, &["output", "12", "11"], |plan| plan.forward(&vec![0.0; 12], &mut c(11)));
    refused(&real, &["output", "complex", "real"], |plan| plan.forward(&vec![0.0; 12], &mut vec![0.0; 24]));
    refused(&real, &["output", "12", "24"], |plan| plan.backward(&c(12), &mut vec![0.0; 24]));
    refused(&real, &["24", "23"], |plan| plan.call().forward_in_place(&mut vec![0.0; 23]));
}

/// The array of one rank is wrong: all ranks return an error, none hangs.
#[test]
fn a_wrong_slice_on_one_rank_is_an_error_on_all() {
    let _watchdog = watchdog(60);
    for exchange in exchanges() {
        let failed = AtomicUsize::new(0);
        let outcome = ferrier::ranks(3).run(|comm| {
            let mut plan = plan_of::<f64>(&comm, &Problem::c2c([6, 3, 2]), &choice(exchange, kernels()[0]))?;
            let right = zeros(12);
            let given = if comm.rank() == 1 { &right[..11] } else { &right[..] };
            let outcome = plan.forward(given, &mut zeros(12));
            failed.fetch_add(usize::from(outcome.is_err()), Ordering::SeqCst);
            // No rank leaves before all have the error: the call itself must notify the others.
            while failed.load(Ordering::SeqCst) < 3 {
                std::thread::sleep(Duration::from_millis(1));
            }
            outcome
        });
        says(outcome, &["rank 1", "12", "11"]);
        assert_eq!(failed.into_inner(), 3, "{exchange}: every rank gets an error");
    }
}

#[test]
fn arrays_of_another_plan() {
    let mut small = plan(&Comm::one_rank(), &Problem::c2c([4, 4, 4])).unwrap();
    let large = plan(&Comm::one_rank(), &Problem::c2c([4, 4, 5])).unwrap();
    let tiny = plan(&Comm::one_rank(), &Problem::c2c([4, 4, 3])).unwrap();
    let real = plan(&Comm::one_rank(), &Problem::r2c([4, 4, 4])).unwrap();
    let mut right = small.make_output().unwrap();
    says(small.forward(&large.make_input().unwrap(), &mut right), &["80", "64"]);
    says(small.forward(&real.make_input().unwrap(), &mut right), &["complex", "real"]);
    says(small.call().forward_in_place(&mut tiny.make_in_place().unwrap()), &["128", "96"]);
}

#[test]
fn workspaces_that_are_missing_or_too_small() {
    let problem = Problem::r2c([8, 9, 10]);
    let draft = Planner::new(&problem).draft::<f64>(&Comm::one_rank()).unwrap();
    let bytes = draft.memory().total();
    let mut plan = draft.build_without_workspace().unwrap();
    let (x, mut y) = (plan.make_input().unwrap(), plan.make_output().unwrap());
    says(plan.forward(&x, &mut y), &["workspace"]);
    let mut array = plan.make_in_place().unwrap();
    says(plan.call().forward_in_place(&mut array), &["workspace"]);
    let mut small = Workspace::new(bytes.saturating_sub(64)).unwrap();
    says(plan.call().workspace(&mut small).forward(&x, &mut y), &["workspace", &bytes.to_string()]);
    let mut right = Workspace::new(bytes).unwrap();
    assert_eq!(plan.call().workspace(&mut right).forward(&x, &mut y), Ok(()));
    says(Workspace::<f64>::new(usize::MAX - 7).map(drop), &["memory"]);
}

#[test]
fn no_ranks_and_no_threads() {
    says(ferrier::ranks(0).run(|_| Ok(())), &["0"]);
    says(ferrier::ranks(2).threads(0).run(|_| Ok(())), &["0"]);
    says(ferrier::ranks(2).nodes(0).run(|_| Ok(())), &["1 to 2 nodes", "0"]);
    says(ferrier::ranks(2).nodes(3).run(|_| Ok(())), &["1 to 2 nodes", "3"]);
}

/// Ranks of different nodes cannot load from each other: asked for it is an
/// error, left to the planner it is another exchange.
#[test]
fn direct_does_not_reach_other_nodes() {
    let _watchdog = watchdog(60);
    for (nodes, default) in [(1, "direct"), (2, "hierarchical"), (4, "all_to_allv")] {
        let outcome = ferrier::ranks(4).nodes(nodes).run(|comm| {
            let problem = Problem::c2c([8, 8, 8]);
            let asked = plan_of::<f64>(&comm, &problem, &choice("direct", kernels()[0])).map(drop);
            let left = Plan::<f64>::new(&comm, &problem)?.recipe().exchange.clone();
            Ok((comm.node_count(), asked, left))
        });
        for (count, asked, left) in outcome.unwrap() {
            assert_eq!((count, left.as_str()), (nodes, default));
            if nodes > 1 {
                says(asked, &["direct", "share a node", &nodes.to_string(), "hierarchical"]);
            } else {
                assert_eq!(asked, Ok(()));
            }
        }
    }
}

// ---- panics and early leavers ----------------------------------------------

/// Runs with one rank that fails while the others are inside `rest`; the
/// error must name it and come within a second.
#[track_caller]
fn ends(
    culprit: usize,
    words: &[&str],
    fail: impl Fn() -> Result<()> + Sync,
    rest: impl Fn(&Comm) -> Result<()> + Sync,
) {
    let _watchdog = watchdog(60);
    let failed_at = std::sync::Mutex::new(None);
    let survivors = AtomicUsize::new(0);
    let outcome = ferrier::ranks(4).run(|comm| {
        if comm.rank() == culprit {
            // Let the others get deep inside first.
            std::thread::sleep(Duration::from_millis(100));
            *failed_at.lock().unwrap() = Some(Instant::now());
            return fail();
        }
        let outcome = rest(&comm);
        survivors.fetch_add(1, Ordering::SeqCst);
        assert!(outcome.is_err(), "the others get an error too");
        outcome
    });
    let took = failed_at.lock().unwrap().unwrap().elapsed();
    assert!(took < Duration::from_secs(1), "it took {took:?}");
    assert_eq!(survivors.load(Ordering::SeqCst), 3);
    says(outcome, words);
}

fn panics() -> Result<()> {
    std::panic::panic_any(String::from("a bug of the user's"))
}

fn leaves() -> Result<()> {
    Err(Error::other("the disk is full"))
}

#[test]
fn a_panic_while_others_wait_at_a_barrier() {
    for culprit in [0, 2] {
        let name = format!("rank {culprit}");
        ends(culprit, &[&name, "panicked", "a bug of the user's"], panics, Comm::barrier);
        ends(culprit, &[&name, "panicked"], panics, |comm| comm.all_gather(&[1, 2]).map(drop));
        ends(culprit, &[&name, "panicked"], panics, |comm| comm.sum(&[1.0]).map(drop));
        ends(culprit, &[&name, "panicked"], panics, |comm| plan(comm, &Problem::c2c([4; 3])).map(drop));
    }
}

#[test]
fn an_early_leaver_while_others_wait() {
    ends(1, &["the disk is full"], leaves, Comm::barrier);
    ends(3, &["the disk is full"], leaves, |comm| plan(comm, &Problem::c2c([4; 3])).map(drop));
    // One that returns without an error, as if there were nothing more to do.
    ends(1, &["rank 1", "left"], || Ok(()), Comm::barrier);
}

/// All ranks transform again and again; one stops in the middle.
#[test]
fn a_panic_while_others_are_inside_forward() {
    for exchange in exchanges() {
        for in_place in [false, true] {
            stops_in_the_middle(exchange, in_place);
        }
    }
}

fn stops_in_the_middle(exchange: &str, in_place: bool) {
    let _watchdog = watchdog(60);
    let failed_at = std::sync::Mutex::new(None);
    let outcome: Result<Vec<()>> = ferrier::ranks(4).run(|comm| {
        let problem = Problem::c2c([16, 16, 16]);
        let mut plan = plan_of::<f64>(&comm, &problem, &choice(exchange, kernels()[0]))?;
        let (x, mut y, mut z) = (plan.make_input()?, plan.make_output()?, plan.make_in_place()?);
        for round in 0.. {
            if comm.rank() == 2 && round == 20 {
                *failed_at.lock().unwrap() = Some(Instant::now());
                panic!("round 20");
            }
            if in_place { plan.call().forward_in_place(&mut z)? } else { plan.forward(&x, &mut y)? }
        }
        Ok(())
    });
    let took = failed_at.lock().unwrap().unwrap().elapsed();
    assert!(took < Duration::from_secs(1), "{exchange}: it took {took:?}");
    says(outcome, &["rank 2", "panicked", "round 20"]);
}

/// The plan is there, then one rank fails instead of calling.
#[test]
fn a_rank_that_never_calls_forward() {
    for exchange in exchanges() {
        let _watchdog = watchdog(60);
        let outcome: Result<Vec<()>> = ferrier::ranks(3).run(|comm| {
            let mut plan = plan_of::<f64>(&comm, &Problem::c2c([6, 6, 6]), &choice(exchange, kernels()[0]))?;
            if comm.rank() == 0 {
                std::thread::sleep(Duration::from_millis(50));
                return leaves();
            }
            // User arrays on the stack of this closure: they are gone when it returns.
            let x = vec![Complex::new(1.0, 0.0); plan.input_box().volume()];
            let mut y = vec![Complex::new(0.0, 0.0); plan.output_box().volume()];
            plan.forward(&x[..], &mut y[..])
        });
        says(outcome, &["the disk is full"]);
    }
}

#[test]
fn run_returns_the_first_error() {
    let _watchdog = watchdog(60);
    for _ in 0..50 {
        let outcome: Result<Vec<()>> = ferrier::ranks(8).run(|comm| {
            if comm.rank() == 5 {
                return Err(Error::other("the cause"));
            }
            comm.barrier()
        });
        assert_eq!(outcome, Err(Error::other("the cause")));
    }
}

#[test]
fn drafts_report_errors() {
    let _watchdog = watchdog(60);
    let outcome = ferrier::ranks(2).run(|comm| {
        let draft = Planner::new(&Problem::c2c([0, 1, 1])).draft::<f32>(&comm);
        says(draft.map(drop), &["axis 0"]);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn an_unknown_kernel_lists_the_known_ones() {
    let error = ferrier::kernel::find("fftw4").unwrap_err().to_string();
    for word in ferrier::kernel::KERNELS.iter().map(|member| member.name).chain(["fftw4", "kernel"]) {
        assert!(error.contains(word), "{error}");
    }
}
