//! The searches on landscapes made up to be like the real one.

use std::cell::RefCell;

use super::landscapes::{Cost, LANDSCAPES, Landscape, is, number, overlap, pipeline, wire, wired};
use ferrier::Result;
use ferrier::tune::{
    Comparison, Evaluator, Limits, METHODS, Parameter, Point, Progress, SearchResult, Session, Space,
    TrialStatus, find,
};
use ferrier_test::{Rng, watchdog};

/// A clock that is never quite right, sometimes quite wrong, and on a machine that others use as well.
struct Made<'a> {
    space: &'a Space,
    cost: Cost,
    noise: f64,
    /// By how much the machine is slower at times.
    drift: f64,
    seed: u64,
    rng: RefCell<Rng>,
    /// Points that were run, in order.
    asked: Vec<Point>,
    runs: usize,
}

impl<'a> Made<'a> {
    fn new(space: &'a Space, cost: Cost, noise: f64, seed: u64) -> Self {
        let rng = RefCell::new(Rng::new(seed));
        Made { space, cost, noise, drift: 0.0, seed, rng, asked: Vec::new(), runs: 0 }
    }

    fn on(space: &'a Space, landscape: &Landscape, seed: u64) -> Self {
        Made { drift: landscape.drift, ..Made::new(space, landscape.cost, landscape.noise, seed) }
    }

    fn ask(&mut self, point: &Point) {
        assert!(!self.asked.contains(point), "a point was tried twice: {point:?}");
        self.asked.push(point.clone());
    }

    /// How slow the machine is, some 40 runs at a time; the default is lucky.
    fn pace(&self) -> f64 {
        let epoch = (self.runs / 40) as u64;
        let slow = self.runs > 3 && Rng::new(self.seed ^ epoch << 20).below(2) == 1;
        if slow { 1.0 + self.drift } else { 1.0 }
    }

    fn run(&mut self, point: &Point) -> f64 {
        assert!(self.space.check(point).is_ok(), "an infeasible point was run: {point:?}");
        self.runs += 1;
        let mut rng = self.rng.borrow_mut();
        let mut uniform = || rng.below(1 << 20) as f64 / f64::from(1 << 20);
        let bell = (0..6).map(|_| uniform() - 0.5).sum::<f64>() * 1.4;
        let spike = if self.noise > 0.0 && uniform() < 0.05 { 1.5 } else { 1.0 };
        (self.cost)(self.space, point) * (1.0 + self.noise * bell) * spike * self.pace()
    }
}

impl Evaluator for Made<'_> {
    type Error = ferrier::Error;

    fn measure(&mut self, point: &Point, runs: usize) -> Result<Vec<f64>> {
        self.ask(point);
        Ok((0..runs).map(|_| self.run(point)).collect())
    }

    fn compare(
        &mut self,
        incumbent: &Point,
        other: &Point,
        comparison: &Comparison,
    ) -> Result<[Vec<f64>; 2]> {
        // The last comparison is of two that are known.
        if comparison.patience.is_some() {
            self.ask(other);
        }
        let mut times = [Vec::new(), Vec::new()];
        while comparison.continues(&times) {
            for (point, times) in [incumbent, other].into_iter().zip(&mut times) {
                times.push(self.run(point));
            }
        }
        Ok(times)
    }

    /// With a progress thread, passes do not poll.
    fn identity(&self, point: &Point) -> std::result::Result<String, String> {
        let mut same = point.clone();
        if is(self.space, point, "progress", "thread") {
            let polls = self.space.parameters().iter().position(|p| p.name() == "polls");
            same.0[polls.unwrap_or(0)] = 0;
        }
        // One tile says nothing about tiles.
        if number(self.space, point, "tile") == 64.0 {
            let parameters = self.space.parameters().iter().enumerate();
            let idle = |name| ["window", "polls", "cut", "progress"].contains(&name);
            parameters.filter(|(_, p)| idle(p.name())).for_each(|(at, _)| same.0[at] = 0);
        }
        Ok(format!("{same:?}"))
    }
}

fn search(space: &Space, made: &mut Made<'_>, method: &str, trials: usize, seed: u64) -> SearchResult {
    let limits = Limits { trials, ..Limits::default() };
    let method = find(method).unwrap();
    Session::new(space, made, limits, &mut |_| ()).run(&*method.searcher(seed)).unwrap()
}

/// The best of 200 random feasible points.
fn best_of_200(space: &Space, cost: Cost, seed: u64) -> f64 {
    let mut rng = Rng::new(seed);
    let mut draw = || Point(space.parameters().iter().map(|p| rng.below(p.values().len())).collect());
    let feasible = std::iter::repeat_with(&mut draw).filter(|point| space.check(point).is_ok());
    feasible.take(200).map(|point| cost(space, &point)).fold(f64::INFINITY, f64::min)
}

#[test]
fn sixty_trials_come_within_5_percent_of_the_best_of_200() {
    let _watchdog = watchdog(300);
    let mut missed = Vec::new();
    for landscape in LANDSCAPES {
        let space = (landscape.space)();
        // Random points and the plain simplex are there to compare with, not to be good.
        for method in METHODS.iter().filter(|method| method.refines).map(|method| method.name) {
            let mut ratios = Vec::new();
            for seed in 1..=5 {
                let best = best_of_200(&space, landscape.cost, 1000 + seed);
                let mut made = Made::on(&space, landscape, seed);
                let found = search(&space, &mut made, method, 60, seed);
                assert!(found.measured <= 60 && made.asked.len() <= 60);
                ratios.push((landscape.cost)(&space, &found.point) / best);
            }
            // Noise, and luck among the 200, may spoil one of five.
            ratios.sort_by(f64::total_cmp);
            if ratios[3] > 1.05 || ratios[4] > 1.2 {
                missed.push(format!("{method} on {}: {ratios:.3?}", landscape.name));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// What matters most is looked at first: where there is no time for sixty, twenty find most of it.
#[test]
fn a_third_of_the_trials_find_tiles() {
    let space = wired();
    for landscape in LANDSCAPES.iter().filter(|landscape| landscape.name.starts_with("wire")) {
        for seed in 1..=10 {
            let best = best_of_200(&space, wire, 1000 + seed);
            let mut made = Made::on(&space, landscape, seed);
            let found = search(&space, &mut made, METHODS[0].name, 20, seed);
            let ratio = wire(&space, &found.point) / best;
            assert!(ratio < 1.15, "{}, seed {seed}: {ratio}, {:?}", landscape.name, found.point);
        }
    }
}

/// What is kept back for looking closer is not kept back where there is nothing to look at.
#[test]
fn a_reserve_is_kept_only_where_it_will_be_used() {
    struct Keeps<'a>(Made<'a>, f64);
    impl Evaluator for Keeps<'_> {
        type Error = ferrier::Error;

        fn measure(&mut self, point: &Point, runs: usize) -> Result<Vec<f64>> {
            self.0.measure(point, runs)
        }
        fn compare(
            &mut self,
            incumbent: &Point,
            other: &Point,
            comparison: &Comparison,
        ) -> Result<[Vec<f64>; 2]> {
            self.0.compare(incumbent, other, comparison)
        }
        fn reserve(&self, best: &Point) -> f64 {
            if number(self.0.space, best, "tile") < 64.0 { self.1 } else { 0.0 }
        }
    }
    let (space, limits) = (wired(), Limits { trials: 40, ..Limits::default() });
    let flat: Cost = |_, _| 0.01;
    for (cost, reserve, trials) in [(wire as Cost, 0.25, 30), (wire, 0.0, 40), (flat, 0.25, 40)] {
        let mut bench = Keeps(Made::new(&space, cost, 0.0, 1), reserve);
        let mut watch = |_: &Progress<'_>| ();
        let found =
            Session::new(&space, &mut bench, limits, &mut watch).run(&*METHODS[0].searcher(1)).unwrap();
        assert_eq!(found.measured, trials);
    }
}

#[test]
fn a_comparison_ends_when_the_result_is_clear() {
    let comparison = Comparison { rounds: 3, more: 3, patience: Some(2.0) };
    let rounds = |ratios: &[f64]| {
        let mut times = [Vec::new(), Vec::new()];
        while comparison.continues(&times) {
            let round = times[0].len();
            times[0].push(1.0);
            times[1].push(ratios[round.min(ratios.len() - 1)]);
        }
        times[0].len()
    };
    // Far slower, slower, a little slower, level, faster; one bad round does not decide.
    assert_eq!([9.0, 1.4, 1.2, 1.0, 0.9].map(|ratio| rounds(&[ratio])), [1, 1, 2, 3, 6]);
    assert_eq!(rounds(&[1.25, 0.9]), 6);
    // What seemed faster and is not.
    assert_eq!(rounds(&[0.9, 0.9, 1.1, 1.1, 1.1]), 4);
    let to_its_end = Comparison { patience: None, more: 0, ..comparison };
    assert!(to_its_end.continues(&[vec![1.0; 2], vec![9.0; 2]]));
    assert!(!to_its_end.continues(&[vec![1.0; 3], vec![0.1; 3]]));
}

#[test]
fn a_search_is_the_same_for_the_same_seed() {
    let space = pipeline();
    for method in METHODS {
        let run = |seed| {
            let mut made = Made::new(&space, overlap, 0.03, 7);
            search(&space, &mut made, method.name, 25, seed);
            made.asked
        };
        assert_eq!(run(1), run(1), "{}", method.name);
    }
}

#[test]
fn the_default_is_kept_if_nothing_is_faster() {
    let flat: Cost = |_, _| 0.01;
    let space = pipeline();
    for method in METHODS {
        for seed in 1..=5 {
            let mut made = Made::new(&space, flat, 0.03, seed);
            let found = search(&space, &mut made, method.name, 40, seed);
            // Luck may crown another, but only by what noise can feign.
            assert!(found.best_seconds <= found.default_seconds);
            assert!(found.point == space.start() || found.best_seconds > 0.95 * found.default_seconds);
        }
    }
}

#[test]
fn the_default_is_compared_with_the_winner_in_the_end() {
    // A clock that lies to the search, and tells the truth in the last comparison: the default is best.
    struct Liar(usize);
    impl Evaluator for Liar {
        type Error = ferrier::Error;

        fn measure(&mut self, _: &Point, runs: usize) -> Result<Vec<f64>> {
            Ok(vec![1.0; runs])
        }
        fn compare(
            &mut self,
            incumbent: &Point,
            other: &Point,
            comparison: &Comparison,
        ) -> Result<[Vec<f64>; 2]> {
            self.0 += 1;
            let true_cost = |point: &Point| if point.0[0] == 3 { 0.4 } else { 1.0 };
            let said = |point: &Point| if self.0 == 1 { 1.5 - true_cost(point) } else { true_cost(point) };
            let rounds = comparison.rounds + comparison.more;
            Ok([vec![said(incumbent); rounds], vec![said(other); rounds]])
        }
    }
    let space = Space::new([Parameter::linear("x", 0, 5).from(3)]);
    let mut liar = Liar(0);
    let mut watch = |_: &Progress<'_>| ();
    let session = Session::new(&space, &mut liar, Limits::default(), &mut watch);
    let found = session.run(&*METHODS[0].searcher(1)).unwrap();
    assert_eq!(found.point, space.start());
    assert_eq!((found.default_seconds, found.best_seconds), (0.4, 0.4));
    assert!(liar.0 >= 2);
}

#[test]
fn slow_points_are_given_up_and_small_spaces_end() {
    let steep: Cost = |_, point| if point.0 == [0, 0] { 0.01 } else { 0.05 };
    let space = Space::new([Parameter::category("a", ["x", "y", "z"]), Parameter::linear("b", 0, 3)]);
    // The plain simplex ends at a point that it has shrunk to.
    for method in METHODS.iter().filter(|method| method.name != "simplex") {
        let mut made = Made::new(&space, steep, 0.0, 1);
        let found = search(&space, &mut made, method.name, usize::MAX, 1);
        assert_eq!((found.measured, made.asked.len()), (12, 12), "{}", method.name);
        assert!(
            found.trials[1..].iter().all(|trial| trial.status == TrialStatus::Stopped),
            "{:?}",
            found.trials
        );
        // Three runs of the default, then one beside one of each of the others.
        assert_eq!(made.runs, 3 + 2 * 11, "{}", method.name);
        assert_eq!(found.point, space.start());
    }
}

#[test]
fn infeasible_points_cost_nothing_and_say_why() {
    let space = pipeline();
    let mut made = Made::new(&space, overlap, 0.0, 1);
    let found = search(&space, &mut made, "random", 30, 1);
    let refused = |trial: &&ferrier::tune::Trial| matches!(trial.status, TrialStatus::Infeasible(_));
    let refused: Vec<_> = found.trials.iter().filter(refused).collect();
    assert!(!refused.is_empty() && found.measured == 30 && made.asked.len() == 30);
    for trial in refused {
        let TrialStatus::Infeasible(why) = &trial.status else { unreachable!() };
        assert!(trial.seconds.is_infinite() && why.contains("tile"), "{why}");
    }
}
