//! The file of wisdom: used, kept whole, never in the way.

use std::fs;
use std::path::{Path, PathBuf};

use ferrier::wisdom::{Entry, Measured, Wisdom, keys};
use ferrier::{
    Box3, Choice, Comm, Complex, Decomposition, Effort, Layout, LayoutSpec, MachineSpeeds, Plan, Planner,
    Problem, Recipe, Step,
};
use ferrier_test::watchdog;
use tempfile::TempDir;

fn problem() -> Problem {
    Problem::c2c([12, 8, 10])
}

/// What would be remembered about a problem on so many ranks.
fn entry(problem: &Problem, ranks: usize, choice: Choice) -> Entry {
    let both = |comm: Comm| keys::<f64>(&comm, problem, &Choice::default());
    let (problem, machine) = ferrier::ranks(ranks).run(both).unwrap().swap_remove(0);
    let mut entry = Entry::new(problem, machine, choice);
    (entry.default_ms, entry.best_ms, entry.trials, entry.seconds) = (2.0, 1.0, 7, 0.5);
    (entry.method, entry.found) = ("random".into(), 1000);
    entry
}

fn write(path: &Path, entries: impl IntoIterator<Item = Entry>) {
    Wisdom::update(path, |wisdom| entries.into_iter().for_each(|entry| wisdom.add(entry))).unwrap();
}

/// The recipe, and whether it was known, on every rank.
fn planned(problem: &Problem, ranks: usize, path: &Path) -> (Recipe, bool) {
    let run = |comm: Comm| {
        let draft = Planner::new(problem).wisdom(path).draft::<f64>(&comm)?;
        Ok((draft.recipe().clone(), draft.wisdom().is_some()))
    };
    let mut all = ferrier::ranks(ranks).run(run).unwrap();
    assert!(all.iter().all(|other| *other == all[0]), "ranks differ");
    all.swap_remove(0)
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wisdom.json");
    (folder, path)
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn wisdom_is_used_by_all_ranks_and_only_for_the_same_problem() {
    let _watchdog = watchdog(120);
    let (_folder, path) = folder();
    let choice = Choice::new().exchange("point_to_point").decomposition(Decomposition::Pencil);
    write(&path, [entry(&problem(), 4, choice)]);
    let (recipe, known) = planned(&problem(), 4, &path);
    assert!(known && recipe.exchange == "point_to_point", "{recipe}");
    // Another number of ranks, batch, shape or layout is another problem.
    for (other, ranks) in [
        (problem(), 3),
        (problem().batch(2), 4),
        (Problem::c2c([12, 8, 11]), 4),
        (problem().input(ferrier::LayoutSpec::bricks()), 4),
    ] {
        assert!(!planned(&other, ranks, &path).1);
    }
    // The same boxes asked for in another way are the same problem; so is another scale.
    let boxes = ferrier::LayoutSpec::slabs(0).layout([12, 8, 10], 4).unwrap().boxes().to_vec();
    assert!(planned(&problem().input(ferrier::LayoutSpec::boxes(boxes)), 4, &path).1);
    assert!(planned(&problem().scale_forward(ferrier::Scale::Full), 4, &path).1);
    // Of another machine, or another version: not used.
    let mut foreign = entry(&problem(), 2, Choice::default());
    foreign.machine.cpu = "abacus".into();
    write(&path, [foreign]);
    assert!(!planned(&problem(), 2, &path).1);
}

#[test]
fn a_user_who_decides_or_ignores_is_obeyed() {
    let (_folder, path) = folder();
    let tuned = Choice::new().exchange("all_to_all");
    write(&path, [entry(&problem(), 2, tuned)]);
    let run = |comm: Comm| {
        let mine = Choice::new().exchange("all_to_allv");
        let decided = Planner::new(&problem()).choice(mine).wisdom(&path).draft::<f64>(&comm)?;
        let ignored = Planner::new(&problem()).wisdom(&path).without_wisdom().draft::<f64>(&comm)?;
        assert!(decided.wisdom().is_none() && ignored.wisdom().is_none());
        Ok([decided, ignored].map(|draft| draft.recipe().exchange.clone()))
    };
    assert_eq!(ferrier::ranks(2).run(run).unwrap()[1], ["all_to_allv", "direct"]);
}

/// Messages of the busiest rank in all steps, and bytes of all between nodes of three ranks: inside a node they are
/// loaded where they are.
fn traffic(recipe: &Recipe) -> (u64, usize) {
    let between = |from: &Layout, to: &Layout| -> usize {
        let pairs = |(rank, own): (usize, &Box3)| -> usize {
            let others = to.boxes().iter().enumerate().filter(|(peer, _)| peer / 3 != rank / 3);
            others.map(|(_, part)| own.intersect(part).volume()).sum()
        };
        from.boxes().iter().enumerate().map(pairs).sum()
    };
    let elements = recipe.steps.iter().map(|step| match step {
        Step::Reshape { from, to } => between(from, to),
        Step::Transform { .. } => 0,
    });
    (recipe.traffic().iter().map(|step| step.messages_max).sum(), elements.sum())
}

/// Where messages are dear there are fewer of them, where bytes are dear fewer bytes; all ranks obey the file.
#[test]
fn estimates_use_measured_speeds() {
    let _watchdog = watchdog(120);
    let cube = Problem::c2c([16, 16, 16]).input(LayoutSpec::bricks()).output(LayoutSpec::bricks());
    let of = |speeds: Option<MachineSpeeds>, problem: &Problem, cpu: Option<&str>| {
        let (_folder, path) = folder();
        let mut machine = entry(problem, 4, Choice::default()).machine;
        (machine.cpu, machine.nodes) = (cpu.map_or(machine.cpu, String::from), 4);
        if let Some(speeds) = speeds {
            let measured = Measured::new(machine.clone(), speeds);
            Wisdom::update(&path, |wisdom| wisdom.add_speeds(&measured)).unwrap();
        }
        let run = |comm: Comm| {
            // Where ranks share memory or a process, bytes are loaded where they are.
            let choice = Choice::new().exchange("all_to_allv");
            let draft = Planner::new(problem).choice(choice).wisdom(&path).draft::<f64>(&comm)?;
            assert!(draft.wisdom().is_none());
            Ok((draft.recipe().clone(), draft.speeds()))
        };
        // With as many ranks as were measured, and with others.
        let few = ferrier::ranks(4).nodes(4).run(run).unwrap().swap_remove(3);
        let many = ferrier::ranks(12).nodes(4).run(run).unwrap().swap_remove(7);
        assert_eq!(few.1, many.1);
        many
    };
    let usual = MachineSpeeds::default();
    let [messages, bytes] = [usual.latency_s(1.0), usual.wire_bytes_s(1e3)];
    let [(few, by), (light, _), (plain, none)] =
        [Some(messages), Some(bytes), None].map(|speeds| of(speeds, &cube, None));
    assert_eq!((by, none), (Some(messages), None));
    let [few, light, plain] = [few, light, plain].map(|recipe| traffic(&recipe));
    assert!(few.0 <= plain.0 && light.1 <= plain.1, "{few:?} {plain:?} {light:?}");
    assert!(few.0 < light.0 && light.1 < few.1, "{few:?} {light:?}");
    // Bits must not depend on a file, nor where an output lies; another machine is another one.
    assert_eq!(of(Some(messages), &cube.clone().reproducible(true), None).1, None);
    assert_eq!(of(Some(messages), &cube, Some("abacus")).1, None);
    let open = cube.output(LayoutSpec::unconstrained());
    let outputs = [Some(messages), Some(bytes), None].map(|speeds| of(speeds, &open, None).0.output);
    assert!(outputs.iter().all(|output| *output == outputs[2]), "{outputs:?}");
}

#[test]
fn trials_are_remembered_and_not_repeated() {
    let _watchdog = watchdog(300);
    let (_folder, path) = folder();
    let run = |comm: Comm| {
        let planner = Planner::new(&problem()).wisdom(&path).effort(Effort::Measure);
        let first = planner.clone().draft::<f64>(&comm)?;
        assert!(first.wisdom().is_none());
        comm.barrier()?;
        let second = planner.draft::<f64>(&comm)?;
        assert!(second.wisdom().is_some_and(|known| known.age() < 1000 && known.file == path));
        assert_eq!(first.recipe(), second.recipe());
        let mut plan: Plan<f64> = second.build()?;
        let mut input = plan.make_input()?;
        input.fill_complex(|_, _| ferrier::Complex::new(1.0, 0.0));
        let mut output = plan.make_output()?;
        plan.forward(&input, &mut output)?;
        Ok(output.index(0, [0, 0, 0]).map(|at| output.complex()[at].re))
    };
    let zeros = ferrier::ranks(2).run(run).unwrap();
    assert_eq!(zeros.into_iter().flatten().collect::<Vec<_>>(), [960.0]);
    let wisdom = Wisdom::read(&path).unwrap();
    let known = wisdom.entries().next().unwrap();
    assert!(known.trials > 1 && known.best_ms <= known.default_ms && known.method == "nelder-mead");
}

#[test]
fn where_there_is_no_file_none_is_made() {
    let (folder, path) = folder();
    assert!(!planned(&problem(), 2, &path).1);
    assert!(!planned(&problem(), 2, &folder.path().join("a/b/wisdom.json")).1);
    assert!(names(&folder).is_empty());
}

#[test]
fn invalid_files_are_ignored_by_readers_and_moved_aside_by_writers() {
    let whole = {
        let (_folder, path) = folder();
        write(&path, [entry(&problem(), 1, Choice::default())]);
        fs::read(&path).unwrap()
    };
    let newer =
        String::from_utf8(whole.clone()).unwrap().replace("\"ferrier_wisdom\": 1", "\"ferrier_wisdom\": 2");
    let strange: [&[u8]; 7] = [
        b"",
        b"\x00\xff garbage",
        &whole[..whole.len() / 2],
        &whole[..whole.len() - 3],
        b"{\"wisdom\": \"is the principal thing\"}",
        b"[1, 2, 3]",
        newer.as_bytes(),
    ];
    for bytes in strange {
        let (folder, path) = folder();
        fs::write(&path, bytes).unwrap();
        assert!(Wisdom::read(&path).is_err());
        assert!(!planned(&problem(), 2, &path).1);
        assert_eq!(
            (fs::read(&path).unwrap(), names(&folder).len()),
            (bytes.to_vec(), 1),
            "a reader changed it"
        );
        write(&path, [entry(&problem(), 2, Choice::default())]);
        assert_eq!(Wisdom::read(&path).unwrap().entries().count(), 1);
        let aside = names(&folder).into_iter().find(|name| name.contains("aside")).expect("it was not kept");
        assert_eq!(fs::read(folder.path().join(aside)).unwrap(), bytes);
        assert!(planned(&problem(), 2, &path).1);
    }
}

#[test]
fn unwritable_wisdom_files_are_no_failure() {
    let _watchdog = watchdog(300);
    let (folder, path) = folder();
    fs::create_dir(&path).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"in the way").unwrap();
    for place in [path.clone(), file.join("wisdom.json"), PathBuf::from("/proc/ferrier/wisdom.json")] {
        assert!(!planned(&problem(), 2, &place).1);
        let error = Wisdom::update(&place, |_| ()).unwrap_err();
        assert!(error.to_string().contains("wisdom"), "{error}");
        let run = |comm: Comm| {
            let planner = Planner::new(&Problem::c2c([4, 4, 4])).wisdom(&place);
            planner.effort(Effort::Measure).draft::<f64>(&comm)?.build().map(drop)
        };
        ferrier::ranks(2).run(run).unwrap();
    }
    assert!(path.is_dir() && fs::read(&file).unwrap() == b"in the way");
}

#[test]
fn a_file_behind_a_link_stays_behind_it_and_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = folder();
    let real = folder.path().join("real.json");
    write(&real, [entry(&problem(), 1, Choice::default())]);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("real.json", &path).unwrap();
    write(&path, [entry(&problem(), 2, Choice::default())]);
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(Wisdom::read(&real).unwrap().entries().count(), 2);
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn writers_at_once_lose_nothing() {
    let _watchdog = watchdog(120);
    let (_folder, path) = folder();
    let first = entry(&problem(), 1, Choice::default());
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (path, first) = (&path, &first);
            scope.spawn(move || {
                for number in 0..10 {
                    let mut mine = first.clone();
                    mine.problem.batch = 100 * writer + number;
                    write(path, [mine]);
                    assert!(Wisdom::read(path).is_ok(), "a reader saw half a file");
                }
            });
        }
    });
    assert_eq!(Wisdom::read(&path).unwrap().entries().count(), 80);
}

#[test]
fn entries_that_are_not_understood_are_kept() {
    let (_folder, path) = folder();
    fs::write(&path, r#"{"ferrier_wisdom": 1, "entries": [{"riddle": 42}]}"#).unwrap();
    write(&path, [entry(&problem(), 1, Choice::default())]);
    let wisdom = Wisdom::read(&path).unwrap();
    assert_eq!(wisdom.entries().count(), 1);
    assert!(fs::read_to_string(&path).unwrap().contains("riddle"));
    // Merged twice, it is still one.
    let mut both = wisdom.clone();
    assert_eq!(both.merge(wisdom), 0);
    let mut empty = Wisdom::default();
    assert_eq!(empty.merge(both), 2);
}

#[test]
fn of_two_experiences_the_younger_is_kept() {
    let old = entry(&problem(), 1, Choice::default());
    let mut young = old.clone();
    (young.found, young.best_ms) = (old.found + 5, 3.0);
    let wisdom = |entry: &Entry| {
        let mut wisdom = Wisdom::default();
        wisdom.add(entry.clone());
        wisdom
    };
    let mut one = wisdom(&old);
    assert_eq!(one.merge(wisdom(&young)), 1);
    assert_eq!(one.merge(wisdom(&old)), 0);
    assert_eq!(one.entries().collect::<Vec<_>>(), [&young]);
    assert_eq!((one.forget(|entry| entry.id() == old.id()), one.entries().count()), (1, 0));
}

#[test]
fn in_reproducible_mode_a_file_changes_no_bits() {
    let (_folder, path) = folder();
    let pinned = problem().reproducible(true);
    let (before, _) = planned(&pinned, 3, &path);
    let transformed = || {
        let run = |comm: Comm| {
            let mut plan = Planner::new(&pinned).wisdom(&path).draft::<f64>(&comm)?.build()?;
            let (mut x, mut y) = (plan.make_input()?, plan.make_output()?);
            x.fill_complex(|_, [i, j, k]| Complex::new((i * 7 + j) as f64 % 5.0, k as f64 - 2.5));
            plan.forward(&x, &mut y)?;
            Ok(y.complex().to_vec())
        };
        ferrier::ranks(3).run(run).unwrap()
    };
    let spectrum = transformed();
    let odd = Choice::new().axes([0, 1, 2]).kernel("rustfft").exchange("all_to_all");
    write(&path, [entry(&pinned, 3, odd)]);
    let (after, known) = planned(&pinned, 3, &path);
    assert!(known && after.exchange == "all_to_all");
    let axes = |recipe: &Recipe| -> Vec<Step> {
        recipe.steps.iter().filter(|step| matches!(step, Step::Transform { .. })).cloned().collect()
    };
    assert_eq!((&after.kernel, axes(&after)), (&before.kernel, axes(&before)));
    assert!(transformed() == spectrum, "other bits");
}

#[test]
fn choices_that_do_not_work_here_are_not_used() {
    let _watchdog = watchdog(120);
    for wrong in [
        Choice::new().exchange("pigeons"),
        Choice::new().kernel("abacus"),
        Choice::new().axes([0, 0, 7]),
        Choice::new().ranks(99),
        Choice::new().grid([usize::MAX, 3]),
    ] {
        let (_folder, path) = folder();
        write(&path, [entry(&problem(), 2, wrong.clone())]);
        let (recipe, known) = planned(&problem(), 2, &path);
        assert!(!known && recipe.exchange == "direct", "{wrong:?}");
    }
}

/// What was learned over a pretended wire is about another machine.
#[test]
fn a_wire_is_part_of_the_machine() {
    let problem = Problem::c2c([8, 8, 8]);
    let both = |comm: Comm| keys::<f64>(&comm, &problem, &Choice::default());
    let wires = [None, Some("10gbit:5us"), Some("1gbit:5us")];
    let machines = wires.map(|wire| {
        let ranks = ferrier::ranks(2).nodes(2);
        let ranks = wire.map_or(ranks, |wire| ranks.wire(wire.parse().unwrap()));
        ranks.run(both).unwrap().swap_remove(0).1
    });
    assert_ne!(machines[0], machines[1]);
    assert_ne!(machines[1], machines[2]);
    assert_eq!(machines[1].transport, "threads over 10gbit:5us");
}
