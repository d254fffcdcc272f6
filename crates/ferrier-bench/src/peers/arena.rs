//! The arrays of a peer.

use super::pages::Pages;
use super::problem::PeerProblem;
use crate::failure::Outcome;

/// The arrays of a peer, on the same kind of pages as Ferrier's.
pub struct Arena {
    /// The input.
    pub(super) input: Pages,
    /// The spectrum of transforms out of place.
    pub(super) output: Pages,
    /// Input and spectrum of transforms in place, if the transform can run in place.
    pub(super) in_place: Option<Pages>,
}

impl Arena {
    /// Allocates the arrays.
    ///
    /// # Errors
    /// Too little memory.
    pub(super) fn new(problem: &PeerProblem) -> Outcome<Self> {
        let bytes = problem.precision.bytes() * problem.batch;
        let spectrum = || Pages::new(bytes * problem.strides_out()[3]);
        Ok(Arena {
            input: Pages::new(bytes * problem.strides_in(false)[3])?,
            output: spectrum()?,
            in_place: problem.fits_in_place().then(spectrum).transpose()?,
        })
    }

    /// Addresses of input and output.
    pub(super) fn addresses(&self, in_place: bool) -> (*mut u8, *mut u8) {
        match &self.in_place {
            Some(pages) if in_place => (pages.address(), pages.address()),
            _ => (self.input.address(), self.output.address()),
        }
    }
}
