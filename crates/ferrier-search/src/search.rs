//! Searches: which point to try next.
//!
//! A member is one file and one line in [`METHODS`]. A search only asks for
//! costs; remembering, budgets and noise are the business of
//! [`Session`](super::Session). It must be a function of its seed and of the
//! answers, so that all runs with the same answers are the same.

use crate::space::{Point, Space};

/// What a search is told before it begins.
pub struct Ground<'a> {
    /// Where it may go.
    pub space: &'a Space,
    /// Seconds that a point would take by a model; only their ratios matter.
    /// 1 for every point where there is no model; infinite for an infeasible one.
    pub predict: &'a dyn Fn(&Point) -> f64,
}

/// Answers with the cost of a point: infinite where it is infeasible, `None`
/// when the search is to stop.
pub type Ask<'a> = dyn FnMut(&Point) -> Option<f64> + 'a;

/// A way to search.
pub trait Search {
    /// Asks until there is nothing more to ask, or until told to stop; then
    /// it returns `None` so that `?` may be used.
    fn explore(&self, ground: &Ground<'_>, ask: &mut Ask<'_>) -> Option<()>;
}

/// A line of the table of searches.
pub struct Method {
    /// The name users type.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    make: fn(seed: u64) -> Box<dyn Search>,
    /// Does it look for the best, so that it is worth looking closer around what it found?
    pub refines: bool,
}

impl Method {
    /// A search; the same seed gives the same one.
    pub fn searcher(&self, seed: u64) -> Box<dyn Search> {
        (self.make)(seed)
    }
}

/// All searches; the first is the default.
pub static METHODS: &[Method] = &[
    Method {
        name: "nelder-mead",
        summary: "one name at a time, then a simplex over the numbers",
        make: |seed| Box::new(crate::nelder_mead::NelderMead { seed }),
        refines: true,
    },
    Method {
        name: "model",
        summary: "a model of the machine, corrected by what was measured",
        make: |seed| Box::new(crate::model::Model { seed }),
        refines: true,
    },
    Method {
        name: "random",
        summary: "points at random, to compare with",
        make: |seed| Box::new(crate::random::Random { seed }),
        refines: false,
    },
];

/// A name that is not in [`METHODS`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown method `{name}`; known are: {known}")]
pub struct UnknownMethod {
    /// The name that was given.
    pub name: String,
    /// The names that exist.
    pub known: String,
}

/// The method called `name`.
///
/// # Errors
/// [`UnknownMethod`] lists the names that exist.
pub fn find(name: &str) -> Result<&'static Method, UnknownMethod> {
    METHODS.iter().find(|method| method.name == name).ok_or_else(|| UnknownMethod {
        name: name.into(),
        known: METHODS.iter().map(|method| method.name).collect::<Vec<_>>().join(", "),
    })
}
