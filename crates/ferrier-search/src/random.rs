//! Search `random`: the measure of all others.

use crate::rng::Rng;
use crate::search::{Ask, Ground, Search};

pub(crate) struct Random {
    pub seed: u64,
}

impl Search for Random {
    fn explore(&self, ground: &Ground<'_>, ask: &mut Ask<'_>) -> Option<()> {
        let mut rng = Rng::new(self.seed);
        loop {
            ask(&ground.space.random(&mut rng))?;
        }
    }
}
