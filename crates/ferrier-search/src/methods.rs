//! The table of search methods.
//!
//! A method is one file and one line in [`METHODS`]. A search only evaluates the objective; caching, budget and noise
//! are handled by [`Session`](crate::Session). It must be a function of its seed and of the costs, so that runs with
//! equal costs are equal.

use crate::search::Search;

/// An entry of [`METHODS`].
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    make: fn(seed: u64) -> Box<dyn Search>,
    /// Whether the result is worth refining; false for a baseline.
    pub refines: bool,
}

impl Method {
    /// A search; equal seeds give equal searches.
    pub fn searcher(&self, seed: u64) -> Box<dyn Search> {
        (self.make)(seed)
    }
}

/// All methods; the first is the default.
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
        name: "simplex",
        summary: "a simplex alone, from the start and one neighbour for each number",
        make: |_| Box::new(crate::nelder_mead::Simplex),
        refines: false,
    },
    Method {
        name: "random",
        summary: "points at random, to compare with",
        make: |seed| Box::new(crate::random::Random { seed }),
        refines: false,
    },
];

/// An error: a name that is not in [`METHODS`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown method `{name}`; known are: {known}")]
pub struct UnknownMethod {
    /// The given name.
    pub name: String,
    /// The known names, separated by commas.
    pub known: String,
}

/// The method called `name`.
///
/// # Errors
/// [`UnknownMethod`] for a name that is not in [`METHODS`].
pub fn find(name: &str) -> Result<&'static Method, UnknownMethod> {
    METHODS.iter().find(|method| method.name == name).ok_or_else(|| UnknownMethod {
        name: name.into(),
        known: METHODS.iter().map(|method| method.name).collect::<Vec<_>>().join(", "),
    })
}
