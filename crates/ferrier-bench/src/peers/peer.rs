//! A peer that is planned and ready to run.

use ferrier::Real;
use num_complex::Complex;

use super::arena::Arena;
use super::problem::{LocalPart, PeerProblem};

/// A plan of a peer: in place or out of place.
pub(super) struct PeerPlan {
    pub name: &'static str,
    pub in_place: bool,
    pub run: Box<dyn FnMut()>,
}

/// Names of plans, and whether they run in place.
pub(super) const PLACEMENTS: [(&str, bool); 2] = [("out of place", false), ("in place", true)];

/// A peer with its plans and arrays.
pub struct Peer {
    /// The version of the library.
    pub version: String,
    // Before the arena: plans hold addresses of its arrays.
    pub(super) plans: Vec<PeerPlan>,
    pub(super) arena: Arena,
    pub(super) input: LocalPart,
    pub(super) output: LocalPart,
}

impl Peer {
    /// Fills the input with `value(array, index)`.
    pub(super) fn fill<T: Real>(
        &mut self,
        problem: &PeerProblem,
        value: impl Fn(usize, [usize; 3]) -> Complex<T>,
    ) {
        let (scalars, part) = (self.arena.input.scalars_mut::<T>(), &self.input);
        for b in 0..problem.batch {
            for i in part.lo[0]..part.hi[0] {
                for j in part.lo[1]..part.hi[1] {
                    for k in part.lo[2]..part.hi[2] {
                        let (value, at) = (value(b, [i, j, k]), part.offset(b, [i, j, k]).unwrap_or(0));
                        scalars[at] = value.re;
                        if !problem.real {
                            scalars[at + 1] = value.im;
                        }
                    }
                }
            }
        }
    }

    /// Number of plans.
    pub fn plan_count(&self) -> usize {
        self.plans.len()
    }

    /// `in place` or `out of place`.
    pub fn plan_name(&self, plan: usize) -> &'static str {
        self.plans[plan].name
    }

    /// Restores the input of a plan that runs in place. Not part of a timing.
    pub fn prepare<T: Real>(&mut self, plan: usize, problem: &PeerProblem) {
        if !self.plans[plan].in_place {
            return;
        }
        let Arena { input, in_place: Some(in_place), .. } = &mut self.arena else { return };
        // The local part of a distributed line is shorter than the problem's.
        let row = self.input.strides[1].max(1);
        let padded = if problem.real { problem.strides_in(true)[1] } else { row };
        let rows = input.scalars_mut::<T>().chunks_exact(row);
        for (from, to) in rows.zip(in_place.scalars_mut::<T>().chunks_exact_mut(padded)) {
            to[..row].copy_from_slice(from);
        }
    }

    /// Runs the transform.
    pub fn run(&mut self, plan: usize) {
        (self.plans[plan].run)();
    }

    /// The value at an index of the spectrum after [`run`](Peer::run), if this process holds it.
    pub fn result<T: Real>(&mut self, plan: usize, array: usize, index: [usize; 3]) -> Option<Complex<T>> {
        let at = self.output.offset(array, index)?;
        let pages = match &mut self.arena {
            Arena { in_place: Some(pages), .. } if self.plans[plan].in_place => pages,
            arena => &mut arena.output,
        };
        let scalars = pages.scalars_mut::<T>();
        Some(Complex::new(scalars[at], scalars[at + 1]))
    }
}
