//! Ranks that leave while others still look for what they sent.

use crate::{Error, Result};

/// Looks for what has come (true: that was all), then asks whether a rank left
/// that is still waited for. Who puts into another's memory does not wait for
/// it to take: a rank may have put its last and left since we looked. So
/// whoever is gone is an error only if another look finds nothing of it.
pub(super) fn look_and_ask<S>(
    state: &mut S,
    look: impl Fn(&mut S) -> Result<bool>,
    ask: impl Fn(&S) -> Result<()>,
) -> Result<bool> {
    let mut gone = None;
    loop {
        if look(state)? {
            return Ok(true);
        }
        match ask(state) {
            Ok(()) => return Ok(false),
            Err(Error::RankLeft { rank, .. }) if gone != Some(rank) => gone = Some(rank),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Ranks put their parts, or do not, and leave, one at every question.
    struct Ranks {
        put: Vec<Cell<bool>>,
        gone: Vec<Cell<bool>>,
        honest: Vec<bool>,
        taken: Vec<bool>,
    }

    impl Ranks {
        fn new(honest: &[bool]) -> Ranks {
            let cells = || honest.iter().map(|_| Cell::new(false)).collect();
            Ranks { put: cells(), gone: cells(), honest: honest.to_vec(), taken: vec![false; honest.len()] }
        }

        fn look(&mut self) -> Result<bool> {
            self.taken.iter_mut().zip(&self.put).for_each(|(taken, put)| *taken |= put.get());
            Ok(self.taken.iter().all(|taken| *taken))
        }

        fn ask(&self) -> Result<()> {
            if let Some(next) = self.gone.iter().position(|gone| !gone.get()) {
                self.put[next].set(self.honest[next]);
                self.gone[next].set(true);
            }
            match (0..self.gone.len()).find(|&rank| self.gone[rank].get() && !self.taken[rank]) {
                Some(rank) => Err(Error::RankLeft { rank, waiting: 9, message: "it returned".into() }),
                None => Ok(()),
            }
        }
    }

    #[test]
    fn who_put_its_last_between_a_look_and_the_question_may_go() {
        for ranks in 1..4 {
            let done = look_and_ask(&mut Ranks::new(&vec![true; ranks]), Ranks::look, Ranks::ask);
            assert!(done.unwrap(), "{ranks} ranks");
        }
    }

    #[test]
    fn who_leaves_others_alone_is_named() {
        for deserter in 0..3 {
            let honest: Vec<bool> = (0..3).map(|rank| rank != deserter).collect();
            let error = look_and_ask(&mut Ranks::new(&honest), Ranks::look, Ranks::ask).unwrap_err();
            assert!(matches!(error, Error::RankLeft { rank, .. } if rank == deserter), "{error}");
        }
    }
}
