//! The points that a cost model predicts to be fastest.

use std::collections::BTreeMap;

use crate::search::SearchInput;
use crate::space::Point;

/// Points whose neighbours are predicted in each round.
const BEAM: usize = 4;
/// Rounds: the most parameters that change together.
const ROUNDS: usize = 4;
/// The most points that are predicted: a prediction may take milliseconds.
const MOST: usize = 150;

/// At most `count` points that are predicted to be faster than the start, fastest first. Of points that are predicted
/// to be equal one is enough. Predicts the points around the best ones, at most [`MOST`].
pub(crate) fn leading(input: &SearchInput<'_>, count: usize) -> Vec<Point> {
    let start = input.space.start();
    let mut known = BTreeMap::from([(start.clone(), (input.predict)(&start))]);
    let limit = known[&start];
    let ranked = |known: &BTreeMap<Point, f64>| {
        let mut all: Vec<(Point, f64)> = known.iter().map(|(point, cost)| (point.clone(), *cost)).collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        all.dedup_by(|a, b| (a.1 - b.1).abs() <= 1e-6 * b.1);
        all
    };
    for _ in 0..ROUNDS {
        let before = known.len();
        for (point, _) in ranked(&known).into_iter().take(BEAM) {
            for other in input.space.around(&point).into_iter().take(MOST.saturating_sub(known.len())) {
                known.entry(other).or_insert_with_key(input.predict);
            }
        }
        if known.len() == before {
            break;
        }
    }
    // A prediction that differs by less than its error is no reason for a trial.
    let faster = ranked(&known).into_iter().filter(|(_, cost)| *cost < 0.98 * limit);
    faster.map(|(point, _)| point).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::{Parameter, Space};

    #[test]
    fn leading_points_come_in_order_of_their_predictions() {
        let names = |name, count: usize| Parameter::category(name, (0..count).map(|n| n.to_string()));
        let space = Space::new(vec![names("a", 4), names("b", 4), Parameter::log_scale("c", 1, 8).from(2)]);
        let predict = |point: &Point| match point.0[..] {
            [1, ..] => f64::INFINITY,
            _ => 10.0 - (point.0[0] + 2 * point.0[1]) as f64 + point.0[2] as f64,
        };
        let input = SearchInput { space: &space, predict: &predict };
        let found = leading(&input, 5);
        let costs: Vec<f64> = found.iter().map(predict).collect();
        assert_eq!(found[0], Point(vec![3, 3, 0]));
        assert!(costs.windows(2).all(|pair| pair[0] < pair[1]), "{costs:?}");
        assert!(!found.contains(&space.start()));
        // Without a model there is nothing to try first.
        assert!(leading(&SearchInput { space: &space, predict: &|_| 1.0 }, 5).is_empty());
    }
}
