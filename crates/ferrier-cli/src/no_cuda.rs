//! Commands on GPUs, in a build without CUDA: all fail.

use ferrier::tune::SearchResult;
use ferrier::{Choice, Comm, DeviceSpec, Precision, Problem, Real, tune};
use ferrier_bench::contest::{Comparison, ContestOptions, ContestResult};
use ferrier_bench::halo_bench::{HaloBench, HaloReport};
use ferrier_bench::operator_bench::{OperatorBench, OperatorReport};
use serde::Serialize;

use crate::arguments::CommonArgs;
use crate::drafted::Drafted;
use crate::failure::{Outcome, fail};
use crate::session::Session;

/// Stands for the information about CUDA.
#[derive(Debug, Serialize)]
pub struct Info {}

/// `None`.
pub fn info() -> Option<Info> {
    None
}

/// Empty.
pub fn text(_: &Info) -> String {
    String::new()
}

/// Fails.
///
/// # Errors
/// Always.
pub fn contest(
    _: &CommonArgs,
    _: &ContestOptions<'_>,
    _: &Comparison,
    device: DeviceSpec,
    _: &Session,
) -> Outcome<(ContestResult, f64)> {
    refuse(device)
}

/// Fails.
///
/// # Errors
/// Always.
#[expect(clippy::extra_unused_type_parameters, reason = "the signature is that of a build with CUDA")]
pub fn draft<T: Real>(_: &Comm, _: &Problem, _: &Choice, device: DeviceSpec) -> Outcome<Drafted> {
    refuse(device)
}

/// Fails.
///
/// # Errors
/// Always.
pub fn operator_bench(_: &Comm, bench: &OperatorBench) -> Outcome<OperatorReport> {
    refuse(bench.device)
}

/// Fails.
///
/// # Errors
/// Always.
pub fn halo_bench(_: &Comm, bench: &HaloBench) -> Outcome<HaloReport> {
    refuse(bench.device)
}

/// Fails.
///
/// # Errors
/// Always.
pub fn tuned(
    _: &Comm,
    _: &Problem,
    _: Precision,
    (_, device): (&Choice, DeviceSpec),
    _: &tune::Options,
) -> Outcome<Option<(SearchResult, Choice)>> {
    refuse(device)
}

/// Fails.
///
/// # Errors
/// Always.
pub fn refuse<T>(device: DeviceSpec) -> Outcome<T> {
    fail(format!("--device {device}: this program was built without the feature `cuda`"))
}
