//! Errors of redistributions and ghost cells: their texts, and that no rank hangs.

use ferrier::Fault;
use ferrier::{Box3, Choice, Error, Ghosts, Halo, LayoutSpec, Problem, Redistribution, Result};
use ferrier_test::watchdog;

/// What each rank says of `work`; none may hang.
fn outcomes(ranks: usize, nodes: usize, work: impl Fn(&ferrier::Comm) -> Result<()> + Sync) -> Vec<String> {
    let _watchdog = watchdog(60);
    let said = |comm: ferrier::Comm| Ok(work(&comm).map_or_else(|error| error.to_string(), |()| "ok".into()));
    ferrier::ranks(ranks).nodes(nodes).run(said).unwrap_or_else(|error| vec![error.to_string()])
}

#[track_caller]
fn all_say(said: &[String], words: &[&str]) {
    for text in said {
        assert!(words.iter().all(|word| text.contains(word)), "{words:?} are not all in: {text}");
    }
}

#[test]
fn wrong_arguments_are_named() {
    let halo = |ghosts: Ghosts| {
        move |comm: &ferrier::Comm| Halo::<f64>::new(comm, [8; 3], &LayoutSpec::slabs(0), &ghosts).map(drop)
    };
    all_say(&outcomes(2, 1, halo(Ghosts::width(1).fields(0))), &["at least one field", "0"]);
    all_say(&outcomes(2, 1, halo(Ghosts::width(1).fields(usize::MAX))), &["65536 at most"]);
    all_say(&outcomes(2, 1, halo(Ghosts::width(1000).periodic([true; 3]))), &["axis 0", "1000", "64 times"]);
    all_say(&outcomes(2, 1, halo(Ghosts::width(usize::MAX / 2))), &["axis 0", "too many"]);
    all_say(
        &outcomes(2, 1, halo(Ghosts::width(1).exchange("pigeon"))),
        &["unknown exchange `pigeon`", "ring"],
    );
    all_say(&outcomes(2, 2, halo(Ghosts::width(1).exchange("direct"))), &["`direct`", "share a node"]);
    let differ = |comm: &ferrier::Comm| {
        Halo::<f64>::new(comm, [8; 3], &LayoutSpec::slabs(0), &Ghosts::width(comm.rank())).map(drop)
    };
    all_say(&outcomes(2, 1, differ), &["ranks disagree", "widths"]);
    let transforms = |comm: &ferrier::Comm| Redistribution::<u8>::new(comm, &Problem::c2c([8; 3])).map(drop);
    all_say(&outcomes(2, 1, transforms), &["Problem::redistribute"]);
    let gap = LayoutSpec::boxes(vec![Box3::new([0; 3], [4, 8, 8]), Box3::new([5, 0, 0], [8; 3])]);
    let gap = |comm: &ferrier::Comm| {
        Redistribution::<u8>::new(comm, &Problem::redistribute([8; 3]).input(gap.clone())).map(drop)
    };
    all_say(&outcomes(2, 1, gap), &["4..5"]);
}

#[test]
fn wrong_arrays_are_named_and_no_rank_hangs() {
    let short = |comm: &ferrier::Comm| {
        let mut halo = Halo::<f64>::new(comm, [8; 3], &LayoutSpec::slabs(0), &Ghosts::width(1))?;
        halo.exchange([vec![0.0; halo.volume() - usize::from(comm.rank() == 1)]])
    };
    let said = outcomes(3, 1, short);
    assert!(
        said.iter().any(|text| text.contains("field of rank 1") && text.contains("ghost cells included")),
        "{said:?}"
    );
    let missing = |comm: &ferrier::Comm| {
        let mut halo = Halo::<f64>::new(comm, [8; 3], &LayoutSpec::slabs(0), &Ghosts::width(1).fields(2))?;
        halo.exchange([vec![0.0; halo.volume()]])
    };
    all_say(&outcomes(1, 1, missing), &["list of fields", "2", "got 1"]);
    let long = |comm: &ferrier::Comm| {
        let mut plan = Redistribution::<u32>::new(comm, &Problem::redistribute([8; 3]))?;
        plan.run(&[0; 512], &mut [0; 513])
    };
    all_say(&outcomes(1, 1, long), &["output of rank 0", "512", "513"]);
}

/// A rank that fails or panics between start and finish, over every exchange: the others get an error.
#[test]
fn a_rank_that_fails_does_not_hang_the_others() {
    for (name, nodes) in
        [("direct", 1), ("hierarchical", 2), ("point_to_point", 2), ("all_to_allv", 1), ("ring", 2)]
    {
        for fault in [Fault::Error, Fault::Panic] {
            let ghosts = Ghosts::width(2).periodic([true; 3]).exchange(name);
            let halo = |comm: &ferrier::Comm| {
                let mut halo = Halo::<f64>::new(comm, [12; 3], &LayoutSpec::bricks(), &ghosts)?;
                let mut field = vec![0.0; halo.volume()];
                halo.exchange([&mut field])?;
                if comm.rank() == 2 {
                    halo.inject_fault(fault);
                }
                for _ in 0..3 {
                    halo.start([&mut field])?.finish()?;
                    halo.exchange([&mut field])?;
                }
                Ok(())
            };
            let said = outcomes(4, nodes, halo);
            assert!(said.iter().all(|text| text != "ok"), "{name}, {fault:?}: {said:?}");
            let redistribute = |comm: &ferrier::Comm| {
                let problem = Problem::redistribute([12; 3]).output(LayoutSpec::slabs(2));
                let mut plan = Redistribution::<u16>::with(comm, &problem, &Choice::new().exchange(name))?;
                let mut array = vec![0; plan.input_box().volume()];
                if comm.rank() == 1 {
                    plan.inject_fault(fault);
                }
                let mut other = array.clone();
                plan.run(&array, &mut other)?;
                plan.run_in_place(&mut array)
            };
            let said = outcomes(4, nodes, redistribute);
            assert!(said.iter().all(|text| text != "ok"), "{name}, {fault:?}: {said:?}");
        }
    }
}

/// A rank that returns while others exchange with it is named.
#[test]
fn a_rank_that_leaves_is_named() {
    let halo = |comm: &ferrier::Comm| {
        let mut halo = Halo::<f32>::new(comm, [12; 3], &LayoutSpec::slabs(0), &Ghosts::width(1))?;
        let mut field = vec![0.0; halo.volume()];
        halo.exchange([&mut field])?;
        if comm.rank() == 1 {
            return Ok(());
        }
        halo.exchange([&mut field])
    };
    let said = outcomes(3, 1, halo);
    assert!(said.iter().filter(|text| text.contains("rank 1 left")).count() == 2, "{said:?}");
}

/// An exchange that is dropped, or forgotten, leaves the ghost cells as they were and disturbs no other rank.
#[test]
fn an_exchange_may_be_dropped_or_forgotten() {
    for name in ["direct", "point_to_point", "ring"] {
        let ghosts = Ghosts::width(1).periodic([true; 3]).exchange(name);
        let halo = |comm: &ferrier::Comm| {
            let mut halo = Halo::<u64>::new(comm, [8; 3], &LayoutSpec::bricks(), &ghosts)?;
            for round in 1..6 {
                let mut field = vec![round + comm.rank() as u64 * 100; halo.volume()];
                let old = field.clone();
                let started = halo.start([&mut field])?;
                match (comm.rank() + round as usize) % 3 {
                    0 => drop(started),
                    1 => std::mem::forget(started),
                    _ => {
                        started.finish()?;
                        continue;
                    }
                }
                assert_eq!(field, old);
            }
            let mut field = vec![comm.rank() as u64 + 1; halo.volume()];
            halo.exchange([&mut field])?;
            let below = halo.local_box().lo.map(|at| at as isize - 1);
            let [i, j, k] = below.map(|at| at.rem_euclid(8) as usize);
            let owner = halo.layout().boxes().iter().position(|part| part.contains([i, j, k]));
            let corner = halo.index(below).and_then(|at| field.get(at).copied());
            assert_eq!(corner, owner.map(|owner| owner as u64 + 1));
            Ok(())
        };
        all_say(&outcomes(8, 1, halo), &["ok"]);
    }
}

/// A panic of the user's code between start and finish ends the others' calls.
#[test]
fn a_panic_while_in_flight_reaches_all_ranks() {
    let halo = |comm: &ferrier::Comm| {
        let mut halo = Halo::<f64>::new(comm, [8; 3], &LayoutSpec::slabs(0), &Ghosts::width(1))?;
        let mut field = vec![0.0; halo.volume()];
        for round in 0..3 {
            let started = halo.start([&mut field])?;
            assert!(comm.rank() != 1 || round < 1, "planted");
            started.finish()?;
        }
        Ok(())
    };
    let _watchdog = watchdog(60);
    let outcome = ferrier::ranks(4).run(|comm| halo(&comm));
    assert!(matches!(outcome, Err(Error::RankPanicked { rank: 1, .. })), "{outcome:?}");
}
