//! The interface of a search: it proposes points and evaluates an objective.

use crate::space::{Point, Space};

/// The input of a search.
pub struct SearchInput<'a> {
    /// The space to search.
    pub space: &'a Space,
    /// Seconds of a point predicted by a cost model; only ratios matter. 1 for every point if there is no model,
    /// infinite for an infeasible point.
    pub predict: &'a dyn Fn(&Point) -> f64,
}

/// The cost of a point: infinite for an infeasible one, `None` when the search must stop.
pub type Objective<'a> = dyn FnMut(&Point) -> Option<f64> + 'a;

/// A search method.
pub trait Search {
    /// Evaluates points until the method has no more of them, or until the objective returns `None`, which is
    /// returned too (by `?`).
    fn explore(&self, input: &SearchInput<'_>, objective: &mut Objective<'_>) -> Option<()>;
}
