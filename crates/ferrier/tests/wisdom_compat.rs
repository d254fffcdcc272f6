//! Compatibility of wisdom files: the choices and keys that Ferrier 0.1.0 wrote are those that this version reads.
//!
//! `data/wisdom-0.1.0.json` was written by `ferrier tune` of commit a78fc49; some choices were edited by hand so
//! that every field of `Choice` has a value other than its default.

use std::fs;

use ferrier::wisdom::{Entry, Wisdom, keys};
use ferrier::{
    Choice, Comm, Compress, Decomposition, Keep, Kind, LayoutSpec, MemoryUse, Overlap, Planner, Precision,
    Problem, Progress, Tiling,
};
use ferrier_test::watchdog;
use serde_json::Value;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/wisdom-0.1.0.json");
const WIRE: &str = "10gbit:5us";

/// A problem as it was given to the old version, and the choice of its entry.
struct Case {
    problem: Problem,
    precision: Precision,
    ranks: usize,
    wire: bool,
    given: Choice,
    choice: Choice,
}

fn case(problem: Problem, choice: Choice) -> Case {
    Case { problem, precision: Precision::F64, ranks: 2, wire: false, given: Choice::default(), choice }
}

fn tiling(cut: Option<usize>, [tile, window, polls]: [usize; 3], after: bool) -> Tiling {
    let mut tiling = Tiling::default();
    (tiling.cut, tiling.tile, tiling.window, tiling.polls, tiling.after) = (cut, tile, window, polls, after);
    tiling
}

fn overlap(forward: Vec<Tiling>, backward: Vec<Tiling>, arrays: usize) -> Option<Overlap> {
    let mut overlap = Overlap::default();
    (overlap.forward, overlap.backward, overlap.arrays) = (forward, backward, arrays);
    Some(overlap)
}

fn choice(set: impl FnOnce(&mut Choice)) -> Choice {
    let mut choice = Choice::default();
    set(&mut choice);
    choice
}

/// All entries of the file, in its order.
fn cases() -> Vec<Case> {
    let one_rank = || choice(|choice| choice.ranks = Some(1));
    let slabs = |shape| Problem::c2c(shape).input(LayoutSpec::slabs(0)).output(LayoutSpec::slabs(0));
    let all_fields = choice(|choice| {
        choice.exchange = Some("point_to_point".into());
        choice.codec = Some("block:20".into());
        choice.compress = Some(Compress::BetweenRanks);
        choice.kernel = Some("rustfft".into());
        choice.decomposition = Some(Decomposition::Pencil);
        choice.axes = Some(vec![2, 0, 1]);
        choice.ranks = Some(4);
        choice.grid = Some([2, 2]);
        choice.fuse = Some(false);
        choice.stream = Some(true);
        choice.staging = Some(true);
        choice.threads = Some(1);
        let forward = vec![tiling(Some(1), [3, 4, 16], false), tiling(None, [5, 1, 0], true)];
        choice.overlap = overlap(forward, vec![tiling(Some(0), [2, 3, 7], false)], 1);
        choice.progress = Some(Progress::Thread);
        choice.block = Some(24);
        choice.memory = MemoryUse::Small;
    });
    let other_values = choice(|choice| {
        choice.exchange = Some("ring".into());
        choice.codec = Some("f16".into());
        choice.compress = Some(Compress::BetweenNodes);
        choice.kernel = Some("native".into());
        choice.decomposition = Some(Decomposition::Slab);
        choice.axes = Some(vec![1, 0, 2]);
        choice.ranks = Some(2);
        choice.fuse = Some(true);
        choice.stream = Some(false);
        choice.staging = Some(false);
        choice.threads = Some(1);
        choice.overlap = overlap(vec![], vec![tiling(Some(2), [4, 2, 8], true)], 2);
        choice.progress = Some(Progress::Poll);
        choice.block = Some(8);
    });
    let within = choice(|choice| {
        choice.exchange = Some("all_to_allv".into());
        choice.codec = Some("within:1e-7".into());
        choice.compress = Some(Compress::BetweenRanks);
    });
    let tiles = tiling(None, [4, 2, 8], true);
    let tiled = choice(|choice| choice.overlap = overlap(vec![tiles], vec![tiles], 0));
    let hierarchical = choice(|choice| {
        choice.exchange = Some("hierarchical".into());
        choice.stream = Some(true);
    });
    let all_to_all = choice(|choice| {
        choice.exchange = Some("all_to_all".into());
        choice.ranks = Some(2);
    });
    // Fields that the entry does not have take their defaults.
    let short = choice(|choice| {
        choice.exchange = Some("all_to_all".into());
        choice.memory = MemoryUse::Small;
        choice.overlap = overlap(vec![tiling(Some(1), [2, 2, 8], true)], vec![], 0);
    });
    let operators = slabs([8, 8, 8]).output(LayoutSpec::unconstrained()).operators(true);
    let supported = slabs([8, 8, 8]).support(0, 0..4).support(2, 2..8);
    let waves = Problem::mixed([8, 8, 8], [Kind::Dct2, Kind::Dst3, Kind::Complex]);
    vec![
        case(slabs([12, 8, 10]), one_rank()),
        Case { ranks: 4, ..case(Problem::r2c([12, 8, 10]), all_fields) },
        case(slabs([12, 8, 10]).keep([Keep::Lowest(4); 3]), one_rank()),
        case(slabs([16, 16, 16]).keep_sphere(5.0), one_rank()),
        case(slabs([16, 16, 16]).tolerance(1e-6), within),
        Case { wire: true, given: tiled.clone(), ..case(slabs([16, 16, 16]), tiled) },
        Case { precision: Precision::F32, ..case(slabs([8, 8, 8]).batch(3), other_values) },
        case(Problem::mixed([8, 8, 8], [Kind::Dct2, Kind::Complex, Kind::Identity]), Choice::default()),
        case(Problem::c2c_1d(4096), Choice::default()),
        case(operators, Choice::default()),
        case(supported, hierarchical),
        case(waves.complex_values().reproducible(true), all_to_all),
        Case { ranks: 8, ..case(Problem::c2c_1d(4096), short) },
    ]
}

impl Case {
    fn ranks(&self) -> ferrier::Ranks {
        let ranks = ferrier::ranks(self.ranks).threads(1);
        if self.wire { ranks.wire(WIRE.parse().unwrap()) } else { ranks }
    }

    /// The entry's keys, with the processor and the version of the file.
    fn entry<'a>(&self, wisdom: &'a Wisdom) -> &'a Entry {
        let run = |comm: Comm| match self.precision {
            Precision::F32 => keys::<f32>(&comm, &self.problem, &self.given),
            Precision::F64 => keys::<f64>(&comm, &self.problem, &self.given),
        };
        let (problem, mut machine) = self.ranks().run(run).unwrap().swap_remove(0);
        let recorded = &wisdom.entries().next().unwrap().machine;
        machine.cpu.clone_from(&recorded.cpu);
        machine.ferrier.clone_from(&recorded.ferrier);
        machine.cores = recorded.cores;
        let found = wisdom.find(&problem, &machine);
        found.unwrap_or_else(|| {
            panic!("not found:\n{}", serde_json::to_string_pretty(&(problem, machine)).unwrap())
        })
    }
}

#[test]
fn choices_of_version_0_1_0_are_found_and_read_in_full() {
    let _watchdog = watchdog(120);
    let wisdom = Wisdom::read(FILE.as_ref()).unwrap();
    let cases = cases();
    assert_eq!(wisdom.entries().count(), cases.len());
    for (case, written) in cases.iter().zip(wisdom.entries()) {
        let entry = case.entry(&wisdom);
        assert_eq!(entry, written, "{:?}", case.problem);
        assert_eq!(entry.choice, case.choice, "{:?}", case.problem);
    }
    assert_eq!(wisdom.measured().count(), 3);
}

#[test]
fn a_file_of_version_0_1_0_is_written_as_it_was() {
    let text = fs::read_to_string(FILE).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("wisdom.json");
    fs::write(&copy, &text).unwrap();
    Wisdom::update(&copy, |_| ()).unwrap();
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let raw = read(&text);
    assert_eq!(read(&fs::read_to_string(&copy).unwrap()), raw);
    // Entries are serialised as the old version serialised them; the last one lacks some fields.
    let raw: Vec<&Value> = raw["entries"].as_array().unwrap().iter().collect();
    let wisdom = Wisdom::read(&copy).unwrap();
    let tuned: Vec<_> = raw.iter().filter(|raw| raw.get("choice").is_some()).collect();
    for (entry, raw) in wisdom.entries().zip(&tuned[..tuned.len() - 1]) {
        assert_eq!(serde_json::to_value(entry).unwrap(), ***raw);
    }
    for (measured, raw) in wisdom.measured().zip(raw.iter().filter(|raw| raw.get("speeds").is_some())) {
        assert_eq!(serde_json::to_value(measured).unwrap(), **raw);
    }
}

/// On the machine of the file (here: as if this were it) the planner takes the choices.
#[test]
fn the_planner_uses_choices_of_version_0_1_0() {
    let _watchdog = watchdog(120);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wisdom.json");
    let wisdom = Wisdom::read(FILE.as_ref()).unwrap();
    let here = ferrier::ranks(1).run(|comm| keys::<f64>(&comm, &Problem::c2c([2, 2, 2]), &Choice::default()));
    let here = here.unwrap().swap_remove(0).1;
    let entries = wisdom.entries().cloned().map(|mut entry| {
        (entry.machine.cpu, entry.machine.cores) = (here.cpu.clone(), here.cores);
        entry.machine.ferrier.clone_from(&here.ferrier);
        entry
    });
    Wisdom::update(&path, |wisdom| entries.for_each(|entry| wisdom.add(entry))).unwrap();
    let case = &cases()[1];
    let run = |comm: Comm| {
        let draft = Planner::new(&case.problem).wisdom(&path).draft::<f64>(&comm)?;
        assert!(draft.wisdom().is_some());
        Ok(draft.recipe().clone())
    };
    let recipe = case.ranks().run(run).unwrap().swap_remove(0);
    let given = |comm: Comm| {
        let planner = Planner::new(&case.problem).choice(case.choice.clone()).without_wisdom();
        Ok(planner.draft::<f64>(&comm)?.recipe().clone())
    };
    assert_eq!(recipe, case.ranks().run(given).unwrap().swap_remove(0));
    assert_eq!((&*recipe.exchange, &*recipe.kernel), ("point_to_point", "rustfft"));
}
