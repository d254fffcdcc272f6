//! A build without CUDA: says so.

use ferrier::Device;
use serde::Serialize;

use crate::args::Common;
use crate::contest::Job;
use crate::failure::{Outcome, fail};
use crate::session::Session;
use crate::timing::{Measured, Work};

/// Nothing.
#[derive(Debug, Serialize)]
pub struct Info {}

/// Nothing.
pub fn info() -> Option<Info> {
    None
}

/// Nothing.
pub fn text(_: &Info) -> String {
    String::new()
}

/// Cannot.
///
/// # Errors
/// Always.
pub fn bench(
    _: &Common,
    _: &Work<'_>,
    _: &Job,
    device: Device,
    _: &Session,
) -> Outcome<(Vec<Measured>, f64)> {
    refuse(device)
}

/// Cannot.
///
/// # Errors
/// Always.
pub fn draft<T>(
    _: &ferrier::Comm,
    _: &ferrier::Problem,
    _: &ferrier::Choice,
    device: Device,
) -> Outcome<crate::plan::Drafted> {
    refuse(device)
}

/// Cannot.
///
/// # Errors
/// Always.
pub fn apply<T>(_: &ferrier::Comm, work: &crate::applying::Work) -> Outcome<crate::applying::Report> {
    refuse(work.device)
}

/// Cannot.
///
/// # Errors
/// Always.
pub fn refuse<T>(device: Device) -> Outcome<T> {
    fail(format!("--device {device}: this program was built without the feature `cuda`"))
}
