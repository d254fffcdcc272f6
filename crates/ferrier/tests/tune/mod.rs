//! The tuner on real transforms; the searches on made-up costs are in [`searches`].

use crate::common;
mod landscapes;
mod searches;

use common::{MODES, Oracle, Run, exchanges};
use ferrier::tune::{Limits, METHODS, Options, tune};
use ferrier::{Choice, Comm, Effort, Plan, Planner, Problem};
use ferrier_test::cases::cases;
use ferrier_test::{Rng, watchdog};

fn quick(seed: u64) -> Options {
    let limits = Limits { seconds: 20.0, trials: 12, runs: 1, ..Limits::default() };
    Options::default().method(METHODS[seed as usize % METHODS.len()].name).limits(limits).seed(seed)
}

#[test]
fn tuned_plans_give_right_results() {
    let _watchdog = watchdog(300);
    let oracle = Oracle::default();
    let mut rng = Rng::for_test(3);
    for (turn, case) in cases().iter().enumerate().step_by(9) {
        let ranks = [1, 4, 3, 6][turn / 9 % 4];
        let problem = common::problem(case, ranks, &mut Rng::new(turn as u64));
        let given = Choice::default();
        let options = quick(turn as u64 / 9);
        let run = |comm: Comm| tune::<f64>(&comm, &problem, &given, &options, &mut |_| ());
        let found =
            ferrier::ranks(ranks).threads(2).run(run).unwrap_or_else(|e| panic!("{}: {e}", case.line));
        let found = &found[..];
        assert!(found.iter().all(|other| other.choice == found[0].choice), "ranks differ: {}", case.line);
        assert!(found[0].best_ms <= found[0].default_ms && found[0].measured <= 12);
        let choice = found[0].choice.clone();
        Run { case, ranks, nodes: 1, threads: 2, choice, modes: &MODES }.check::<f64>(&oracle, &mut rng);
    }
}

/// Forward of fixed values; the bits of every rank's part.
fn spectrum(problem: &Problem, choice: &Choice) -> Vec<Vec<u64>> {
    let run = |comm: Comm| {
        let planner = Planner::new(problem).choice(choice.clone()).without_wisdom();
        let mut plan: Plan<f64> = planner.draft(&comm)?.build()?;
        let mut input = plan.make_input()?;
        input.fill_real(|_, [i, j, k]| ((i * 31 + j * 17 + k * 7) % 101) as f64 - 50.0);
        let mut output = plan.make_output()?;
        plan.forward(&input, &mut output)?;
        Ok(output.complex().iter().flat_map(|x| [x.re.to_bits(), x.im.to_bits()]).collect::<Vec<u64>>())
    };
    ferrier::ranks(4).run(run).unwrap()
}

#[test]
fn bits_change_only_with_axes_and_kernel() {
    let _watchdog = watchdog(300);
    let problem = Problem::r2c([12, 10, 16]);
    // With these decided, nothing that is left to the tuner may change a bit.
    let given = Choice::new().axes([2, 1, 0]).kernel("native");
    let first = spectrum(&problem, &given);
    let mut differed = 0;
    for seed in 1..=3 {
        let options = quick(seed).method("random");
        let run = |comm: Comm| tune::<f64>(&comm, &problem, &given, &options, &mut |_| ());
        let found = ferrier::ranks(4).run(run).unwrap().swap_remove(0);
        assert_eq!((&found.choice.axes, &found.choice.kernel), (&given.axes, &given.kernel));
        assert_eq!(spectrum(&problem, &found.choice), first, "{:?}", found.choice);
        differed += usize::from(found.choice != given);
    }
    println!("{differed} of 3 times another choice than the default was faster");
}

#[test]
fn in_reproducible_mode_neither_axes_nor_kernel_are_tuned() {
    let _watchdog = watchdog(300);
    let problem = Problem::r2c([12, 10, 16]).reproducible(true);
    let first = spectrum(&problem, &Choice::default());
    for seed in 1..=3 {
        let options = quick(seed);
        let run = |comm: Comm| tune::<f64>(&comm, &problem, &Choice::default(), &options, &mut |_| ());
        let found = ferrier::ranks(4).run(run).unwrap().swap_remove(0);
        for trial in &found.trials {
            assert!(trial.values.iter().all(|(name, _)| name != "axes" && name != "kernel"), "{trial:?}");
        }
        assert_eq!(spectrum(&problem, &found.choice), first);
    }
}

#[test]
fn choices_of_the_user_are_kept_and_invalid_ones_are_errors_on_all_ranks() {
    let _watchdog = watchdog(120);
    let problem = Problem::c2c([8, 9, 10]);
    let given = Choice::new().exchange(exchanges()[2]).fuse(false);
    let run = |comm: Comm| tune::<f32>(&comm, &problem, &given, &quick(2), &mut |_| ());
    let found = ferrier::ranks(3).run(run).unwrap().swap_remove(0);
    assert_eq!((&found.choice.exchange, found.choice.fuse), (&given.exchange, Some(false)));
    for (wrong, options) in
        [(Choice::new().ranks(9), quick(1)), (Choice::default(), quick(1).method("guess"))]
    {
        let run = |comm: Comm| {
            let error = tune::<f32>(&comm, &problem, &wrong, &options, &mut |_| ()).unwrap_err();
            Ok(error.to_string())
        };
        let errors = ferrier::ranks(3).run(run).unwrap();
        assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    }
}

#[test]
fn different_efforts_of_ranks_are_an_error() {
    let _watchdog = watchdog(120);
    let problem = Problem::c2c([8, 8, 8]);
    let run = |comm: Comm| {
        let effort = if comm.rank() == 1 { Effort::Measure } else { Effort::Estimate };
        let draft = Planner::new(&problem).without_wisdom().effort(effort).draft::<f64>(&comm);
        Ok(draft.err().map(|error| error.to_string()).unwrap_or_default())
    };
    for error in ferrier::ranks(3).run(run).unwrap() {
        assert!(error.contains("disagree") && error.contains("Measure"), "{error}");
    }
}

#[test]
fn every_rank_grid_gives_right_results() {
    let _watchdog = watchdog(300);
    let (oracle, mut rng) = (Oracle::default(), Rng::for_test(5));
    for (turn, case) in cases().iter().enumerate().step_by(13) {
        let given = [[1, 6], [2, 3], [3, 2], [6, 1]][turn % 4];
        let choice = Choice::new().grid(given);
        Run { case, ranks: 6, nodes: 1, threads: 1, choice, modes: &MODES[..1] }
            .check::<f64>(&oracle, &mut rng);
    }
}

/// The first transforms of a plan are trials, and right; then it settles, and remembers.
#[test]
fn a_plan_tunes_itself_while_it_works() {
    let _watchdog = watchdog(120);
    let file = std::env::temp_dir().join(format!("ferrier-online-{}.json", std::process::id()));
    let problem = Problem::c2c([12, 10, 8]).reproducible(true);
    let run = |effort: Effort, times: usize| {
        ferrier::ranks(2).run(|comm| {
            let draft = Planner::new(&problem).effort(effort).wisdom(&file).draft::<f64>(&comm)?;
            let known = draft.wisdom().is_some();
            let mut plan: Plan<f64> = draft.build()?;
            let (mut x, mut y, mut back) = (plan.make_input()?, plan.make_output()?, plan.make_input()?);
            x.fill_complex(|_, [i, j, k]| ferrier::Complex::new((i * 7 + j) as f64 % 5.0, k as f64 - 2.5));
            let mut seen = Vec::new();
            let began = plan.is_tuning();
            for _ in 0..times {
                plan.forward(&x, &mut y)?;
                plan.backward(&y, &mut back)?;
                seen.push((y.complex().to_vec(), back.complex().to_vec()));
            }
            Ok((known, began, plan.is_tuning(), seen))
        })
    };
    let plain = run(Effort::Estimate, 1).unwrap();
    let tuned = run(Effort::Online, 60).unwrap();
    for (plain, tuned) in plain.iter().zip(&tuned) {
        assert_eq!((tuned.0, tuned.1, tuned.2), (false, true, false), "it began to tune, and came to an end");
        assert!(tuned.3.iter().all(|pair| *pair == plain.3[0]), "bits changed while it tuned");
    }
    let again = run(Effort::Online, 1).unwrap();
    assert!(again.iter().all(|rank| rank.0 && !rank.1), "what was found is known");
    std::fs::remove_file(&file).unwrap();
}
