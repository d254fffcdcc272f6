//! Certificates of accuracy.

use crate::handle::Handle;
use crate::plan::Plan;
use crate::pointer::Out;
use crate::status::{Failure, Status, guard};

/// How far the result of the last call may be from the exact one, relative to it (L2).
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Certificate {
    /// What encoding the messages lost.
    pub loss: f64,
    /// A rigorous bound of rounding.
    pub rounding_worst: f64,
    /// What rounding is typically.
    pub rounding_typical: f64,
    /// The tolerance of the problem; infinite where it has none.
    pub tolerance: f64,
    /// Loss and rounding together: what is certified.
    pub bound: f64,
}

/// The certificate of the last call. FERRIER_STATUS_OTHER before the first call, after one with an operator, and on a
/// GPU with a lossy codec: then there is none.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_certificate(plan: Handle<Plan>, certificate: Out<Certificate>) -> Status {
    guard(|| {
        let plan = plan.get("plan")?;
        let none = || Failure::new(Status::Other, "there is no certificate of the last call");
        let found = plan.lock()?.certificate().ok_or_else(none)?;
        let value = Certificate {
            loss: found.loss,
            rounding_worst: found.rounding_worst,
            rounding_typical: found.rounding_typical,
            tolerance: found.tolerance.unwrap_or(f64::INFINITY),
            bound: found.bound(),
        };
        certificate.set("certificate", value)
    })
}
