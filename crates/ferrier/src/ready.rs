//! Plans of both precisions, compiled with this crate.
//!
//! Builds for tests share generic code between crates where it is already
//! there: with this, every test and example does not compile plans anew.

use crate::{Array, Draft, Plan, Planner, Real};

fn plans<T: Real>() -> [*const (); 12] {
    [
        Planner::draft::<T> as *const (),
        Draft::<T>::build as *const (),
        Draft::<T>::memory as *const (),
        Plan::<T>::new as *const (),
        Plan::<T>::forward::<Array<T>, Array<T>> as *const (),
        Plan::<T>::backward::<Array<T>, Array<T>> as *const (),
        Plan::<T>::forward_in_place::<Array<T>> as *const (),
        Plan::<T>::backward_in_place::<Array<T>> as *const (),
        Plan::<T>::make_input as *const (),
        Plan::<T>::make_output as *const (),
        Plan::<T>::make_in_place as *const (),
        Plan::<T>::profile as *const (),
    ]
}

/// All that is compiled.
#[doc(hidden)]
pub fn ready() -> [[*const (); 12]; 2] {
    [plans::<f32>(), plans::<f64>()]
}
