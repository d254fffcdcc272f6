//! Tests of the cost model: what must cost more costs more.

use super::*;
use crate::choice::{Choice, Overlap, Tiling};
use crate::design::design;
use crate::layout::LayoutSpec;
use crate::lowering::{EndStrides, MemoryPolicy};
use crate::messages::Mechanism;
use crate::problem::Problem;
use crate::recipe::Recipe;
use crate::schedule::Direction;
use crate::speeds::MachineSpeeds;
use crate::strides::ArrayStrides;
use ferrier_kernel::Precision;

fn machine() -> Machine {
    Machine::of_family("intel-avx512").cores(16)
}

fn recipe(problem: &Problem, choice: &Choice, ranks: usize) -> Recipe {
    design(problem, choice, Precision::F64, ranks).unwrap()
}

fn cube(n: usize, input: LayoutSpec, output: LayoutSpec) -> Problem {
    Problem::c2c([n; 3]).input(input).output(output)
}

fn shared(machine: &Machine) -> Setting<'static> {
    let memory_policy = MemoryPolicy { stream: true, staging: true, ..MemoryPolicy::default() };
    Setting::new(Mechanism::SharedMemory).plane_bytes(2 * machine.level2.bytes).memory_policy(memory_policy)
}

fn forward(recipe: &Recipe, setting: &Setting<'_>, machine: &Machine) -> Prediction {
    predict(recipe, Direction::Forward, false, setting, machine)
}

/// Measured on 16 cores: the pass over planes that lie across the fastest axis took 73 of 80 ms, a good one takes 6.
#[test]
fn planes_across_the_fastest_axis_are_predicted_to_be_slow() {
    let machine = machine();
    let setting = shared(&machine);
    // Slabs that are cut along the last axis, and along the first.
    let of = |slabs: usize, axes: [usize; 3]| {
        let problem = cube(256, LayoutSpec::slabs(slabs), LayoutSpec::slabs(slabs));
        let recipe = recipe(&problem, &Choice::new().axes(axes).fuse(true), 16);
        forward(&recipe, &setting, &machine).steps.swap_remove(0)
    };
    let (bad, good) = (of(2, [1, 0, 2]), of(0, [2, 1, 0]));
    assert_eq!((&*bad.name, &*good.name), ("fft axis 1 + fft axis 0", "fft axis 2 + fft axis 1"));
    assert!(bad.seconds > 3.0 * good.seconds, "{bad:#?} {good:#?}");
}

#[test]
fn shorter_runs_cost_more() {
    let machine = machine();
    let shape = |run: f64| {
        let bytes = 64.0 * 1024.0 * 1024.0;
        let lines = bytes / run * ((run + 48.0) / 64.0);
        let access = Access { bytes, runs: bytes / run, lines, reuse_bytes: 1e6, ..Access::default() };
        PassShape {
            load: access,
            store: access,
            threads: 1,
            ranks_on_node: 16,
            node_bytes: 4e9,
            ..PassShape::default()
        }
    };
    let seconds: Vec<f64> =
        [16.0, 64.0, 256.0, 1024.0, 65536.0].map(|run| shape(run).cost(&machine).seconds).to_vec();
    assert!(seconds.windows(2).all(|pair| pair[0] > pair[1]), "{seconds:?}");
}

/// Cores differ, and ranks wait for the slowest unless they help each other.
#[test]
fn ranks_that_help_each_other_do_not_wait_for_the_slowest() {
    let machine = machine();
    assert!(machine.constants.uneven > 0.0);
    let lines = vec![LineWork { flops: 1e9, contiguous: false, blocks: 1e3, bytes: 1e6 }];
    let seconds = |helped: bool, ranks_on_node: usize| {
        let shape =
            PassShape { lines: lines.clone(), threads: 1, ranks_on_node, helped, ..PassShape::default() };
        shape.cost(&machine).seconds
    };
    assert!(seconds(false, 16) > 1.1 * seconds(true, 16));
    assert_eq!(seconds(false, 1), seconds(true, 1));
}

#[test]
fn families_by_model_name_and_number() {
    let found = ["AMD EPYC family 26", "AMD EPYC 9654 96-Core Processor family 25", "AMD EPYC"]
        .map(|processor| Machine::family_of(processor, 64));
    assert_eq!(found, ["amd-zen5", "amd-zen", "amd-zen"]);
    assert_eq!(Machine::family_of("Intel(R) Xeon(R) Processor family 6", 64), "intel-avx512");
}

/// Also with constants that a busy machine measured, by which memory is faster than the cache.
#[test]
fn arrays_in_cache_are_not_streamed() {
    for family in ["generic", "intel-avx512", "intel-avx2", "amd-zen", "amd-zen5", "arm-neon"] {
        let mut machine = Machine::of_family(family).cores(2);
        let streams = |machine: &Machine| [1e3, 1e6, 1e10].map(|bytes| machine.streams(bytes));
        assert_eq!(streams(&machine), [false, false, true], "{family}");
        machine.constants.last_level_busy_bytes_s = 0.5e9;
        assert_eq!(streams(&machine), [false, false, true], "{family}, busy");
    }
}

/// Measured: staging takes a third off the last pass of 256^3 with 16 threads, and doubles it with 2 on two cores; ranks of
/// one or two threads lose or gain nothing.
#[test]
fn rows_are_staged_where_many_threads_wait_for_memory() {
    let (many, two) = (machine(), machine().cores(2));
    let found =
        [many.stages(16, 16), many.stages(4, 16), many.stages(2, 16), many.stages(1, 16), two.stages(2, 2)];
    assert_eq!(found, [true, true, false, false, false]);
    assert!(!Machine::of_family("amd-zen").stages(16, 16));
}

#[test]
fn more_messages_and_more_bytes_cost_more() {
    let machine = machine();
    let nodes: Vec<usize> = (0..64).collect();
    let setting = Setting::new(Mechanism::Messages).nodes(&nodes);
    let problem = cube(64, LayoutSpec::slabs(0), LayoutSpec::slabs(0));
    let of = |ranks: usize| {
        let nodes: Vec<usize> = (0..ranks).collect();
        let setting = setting.nodes(&nodes);
        let steps = forward(&recipe(&problem, &Choice::new(), ranks), &setting, &machine).steps;
        steps.into_iter().find(|step| step.name.starts_with("reshape")).unwrap().seconds
    };
    // A small array: the time is that of the messages.
    assert!(of(64) > of(8), "{} {}", of(64), of(8));
    let large = cube(256, LayoutSpec::slabs(0), LayoutSpec::slabs(0));
    let reshape = |problem: &Problem| {
        let steps = forward(&recipe(problem, &Choice::new(), 64), &setting, &machine).steps;
        steps.into_iter().find(|step| step.name.starts_with("reshape")).unwrap().seconds
    };
    assert!(reshape(&large) > 3.0 * reshape(&problem));
    let slow = machine.clone().constants(Constants { wire_bytes_s: 1e8, ..machine.constants });
    assert!(forward(&recipe(&large, &Choice::new(), 64), &setting, &slow).seconds() > 0.01);
}

#[test]
fn tiles_hide_a_slow_wire_behind_passes() {
    let machine = machine();
    let wire = Constants { wire_bytes_s: 2e9, wire_node_bytes_s: 2e9, ..machine.constants };
    let machine = machine.constants(wire);
    let nodes: Vec<usize> = (0..4).collect();
    let setting = Setting::new(Mechanism::Messages).nodes(&nodes);
    let problem = cube(256, LayoutSpec::slabs(0), LayoutSpec::slabs(1));
    let whole = forward(&recipe(&problem, &Choice::new().fuse(false), 4), &setting, &machine);
    let choice = Choice::new().fuse(false).overlap(Overlap::uniform(Tiling::new(32)));
    let tiled = forward(&recipe(&problem, &choice, 4), &setting, &machine);
    assert!(tiled.seconds() < 0.9 * whole.seconds(), "{tiled:#?} {whole:#?}");
    let names = |prediction: &Prediction| -> Vec<String> {
        prediction.steps.iter().map(|step| step.name.clone()).collect()
    };
    assert_eq!(names(&tiled), names(&whole));
}

/// Two cores do the same work for two ranks, four or eight, also that after the last exchange.
#[test]
fn ranks_that_share_cores_take_as_long_together() {
    let machine = machine().cores(2);
    let total = |ranks: usize| {
        let setting = shared(&machine).ranks_per_host(ranks);
        let problem = cube(128, LayoutSpec::slabs(0), LayoutSpec::slabs(1));
        forward(&recipe(&problem, &Choice::new(), ranks), &setting, &machine).seconds()
    };
    let (two, four, eight) = (total(2), total(4), total(8));
    for (ranks, seconds) in [(4, four), (8, eight)] {
        assert!((seconds / two - 1.0).abs() < 0.2, "{ranks} ranks {seconds} s, 2 ranks {two} s");
    }
}

/// A rounding error here once cost every barrier a part of a time slice.
#[test]
fn ranks_with_cores_of_their_own_never_wait_for_turns() {
    for cores in 1..200 {
        let machine = machine().cores(cores);
        for bytes in [1e3, 1e6, 3e7] {
            let load = Access { bytes, ..Access::default() };
            let shape = PassShape { load, threads: 1, ranks_on_node: cores, ..PassShape::default() };
            assert_eq!(
                shape.cost(&machine).late_seconds(&machine.constants),
                0.0,
                "{cores} cores, {bytes} bytes"
            );
        }
    }
}

#[test]
fn a_prediction_is_the_sum_of_its_steps_and_finite() {
    let machine = machine();
    for ranks in [1, 3, 16] {
        for (input, output) in [
            (LayoutSpec::bricks(), LayoutSpec::bricks()),
            (LayoutSpec::pencils(2), LayoutSpec::pencils(0)),
            (LayoutSpec::slabs(1), LayoutSpec::unconstrained()),
        ] {
            for problem in [Problem::c2c([24, 7, 40]), Problem::r2c([16, 30, 22]).batch(3)] {
                let problem = problem.input(input.clone()).output(output.clone());
                let recipe = recipe(&problem, &Choice::new(), ranks);
                for mechanism in [Mechanism::SharedMemory, Mechanism::Messages] {
                    for direction in [Direction::Forward, Direction::Backward] {
                        let setting = Setting::new(mechanism).plane_bytes(1 << 20).threads(2);
                        let found = predict(&recipe, direction, false, &setting, &machine);
                        let sum: f64 = found.steps.iter().map(|step| step.seconds).sum();
                        assert_eq!(found.seconds(), sum);
                        assert!(sum.is_finite() && sum > 0.0, "{found:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn estimates_agree_with_predictions() {
    let machine = machine();
    let setting = shared(&machine);
    let problem = cube(128, LayoutSpec::slabs(0), LayoutSpec::slabs(0));
    let recipe = recipe(&problem, &Choice::new().fuse(false), 16);
    let found = forward(&recipe, &setting, &machine);
    let stages = crate::schedule::stages(&recipe, Direction::Forward, false);
    let first = &stages[0];
    let estimator = Estimator { machine: &machine, setting: &setting, precision: Precision::F64, batch: 1 };
    let transforms = [first.transform.clone().unwrap()];
    let ends = [[&first.before; 2], [&first.after; 2]];
    let seconds = estimator.pass(&transforms, ends[0], ends[1]);
    assert!((seconds / found.steps[0].seconds - 1.0).abs() < 0.3, "{seconds} {found:?}");
}

/// One real number in eight, as in an array of structures, is loaded with the cache lines of all.
#[test]
fn strides_cost_what_they_touch() {
    let machine = machine();
    let dense = cube(128, LayoutSpec::slabs(0), LayoutSpec::slabs(0));
    let apart = dense.clone().input_strides(ArrayStrides::new([8 * 128 * 128, 8 * 128, 8]));
    let recipe = recipe(&dense, &Choice::new(), 1);
    let setting = shared(&machine);
    let first = |strides: &EndStrides| forward(&recipe, &setting.strides(strides), &machine).steps[0].seconds;
    let (near, far) = (first(&EndStrides::new(&dense)), first(&EndStrides::new(&apart)));
    assert!(far > 1.5 * near, "{far} {near}");
}

/// Planes across the fastest axis go together: their rows are whole cache lines.
#[test]
fn bundles_are_faster_than_planes_by_themselves() {
    let machine = machine();
    let problem = cube(64, LayoutSpec::slabs(2), LayoutSpec::slabs(2));
    let recipe = recipe(&problem, &Choice::new().axes([1, 0, 2]).fuse(true), 4);
    let of = |bundle_bytes: usize| {
        let policy = MemoryPolicy { bundle_bytes, ..MemoryPolicy::default() };
        forward(&recipe, &shared(&machine).memory_policy(policy), &machine).steps[0].seconds
    };
    assert!(of(1 << 20) < 0.7 * of(0), "{} {}", of(1 << 20), of(0));
}

/// Arrays of a batch that go through all axes at once: memory is accessed once.
#[test]
fn whole_arrays_are_faster_than_a_pass_for_each_axis() {
    let machine = machine();
    let recipe = recipe(&Problem::c2c([32; 3]).batch(512), &Choice::new(), 1);
    let setting = shared(&machine);
    let (whole, apart) =
        (forward(&recipe, &setting, &machine), Recipe { fuse: Some(false), ..recipe.clone() });
    assert_eq!(whole.steps.len(), 1, "{whole:?}");
    let apart = forward(&apart, &setting, &machine);
    assert!(whole.seconds() < 0.7 * apart.seconds(), "{whole:?} {apart:?}");
}

#[test]
fn measured_constants_replace_assumed_ones() {
    let assumed = machine();
    let measured = MeasuredConstants::default().flop_s(1e-9).memory_bytes_s(f64::NAN);
    let machine = assumed.clone().with_speeds(&MachineSpeeds::default().constants(measured));
    assert_eq!(machine.constants.flop_s, 1e-9);
    assert_eq!(machine.constants.memory_bytes_s, assumed.constants.memory_bytes_s);
    assert!(machine.is_measured() && !assumed.is_measured());
    assert!(assumed.origin().contains("assumed for intel-avx512"));
}
