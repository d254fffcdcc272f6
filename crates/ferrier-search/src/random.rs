//! Search `random`: random points, as the baseline for the other methods.

use crate::rng::Rng;
use crate::search::{Objective, Search, SearchInput};

pub(crate) struct Random {
    pub seed: u64,
}

impl Search for Random {
    fn explore(&self, input: &SearchInput<'_>, objective: &mut Objective<'_>) -> Option<()> {
        let mut rng = Rng::new(self.seed);
        loop {
            objective(&input.space.random(&mut rng))?;
        }
    }
}
