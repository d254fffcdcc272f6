//! Ranks that exit while others still wait for their data.

use crate::{Error, Result};

/// Calls `test` (true: complete), then `check`, which returns [`Error::RankLeft`] where an awaited rank has exited.
/// A rank that puts into another's memory does not wait until its data are taken: it may have put its last bytes and
/// exited since the test. So the error is returned only if another test does not find the bytes.
pub(super) fn test_then_check<S>(
    state: &mut S,
    test: impl Fn(&mut S) -> Result<bool>,
    check: impl Fn(&S) -> Result<()>,
) -> Result<bool> {
    let mut exited = None;
    loop {
        if test(state)? {
            return Ok(true);
        }
        match check(state) {
            Ok(()) => return Ok(false),
            Err(Error::RankLeft { rank, .. }) if exited != Some(rank) => exited = Some(rank),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Ranks put their segments, or do not, and exit, one at every check.
    struct Ranks {
        put: Vec<Cell<bool>>,
        exited: Vec<Cell<bool>>,
        puts: Vec<bool>,
        taken: Vec<bool>,
    }

    impl Ranks {
        fn new(puts: &[bool]) -> Ranks {
            let cells = || puts.iter().map(|_| Cell::new(false)).collect();
            Ranks { put: cells(), exited: cells(), puts: puts.to_vec(), taken: vec![false; puts.len()] }
        }

        fn test(&mut self) -> Result<bool> {
            self.taken.iter_mut().zip(&self.put).for_each(|(taken, put)| *taken |= put.get());
            Ok(self.taken.iter().all(|taken| *taken))
        }

        fn check(&self) -> Result<()> {
            if let Some(next) = self.exited.iter().position(|exited| !exited.get()) {
                self.put[next].set(self.puts[next]);
                self.exited[next].set(true);
            }
            match (0..self.exited.len()).find(|&rank| self.exited[rank].get() && !self.taken[rank]) {
                Some(rank) => Err(Error::RankLeft { rank, waiting: 9, message: "it returned".into() }),
                None => Ok(()),
            }
        }
    }

    #[test]
    fn a_rank_may_exit_after_its_last_put() {
        for ranks in 1..4 {
            let done = test_then_check(&mut Ranks::new(&vec![true; ranks]), Ranks::test, Ranks::check);
            assert!(done.unwrap(), "{ranks} ranks");
        }
    }

    #[test]
    fn a_rank_that_exits_early_is_named() {
        for early in 0..3 {
            let puts: Vec<bool> = (0..3).map(|rank| rank != early).collect();
            let error = test_then_check(&mut Ranks::new(&puts), Ranks::test, Ranks::check).unwrap_err();
            assert!(matches!(error, Error::RankLeft { rank, .. } if rank == early), "{error}");
        }
    }
}
