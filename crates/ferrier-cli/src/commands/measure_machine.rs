//! `ferrier tune --measure-machine`: measured constants of the cost model.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ferrier::{Comm, MachineSpeeds, machine};
use ferrier_bench::table::{columns, digits, pairs};
use serde::Serialize;

use crate::arguments::{CommonArgs, setup};
use crate::failure::Outcome;
use crate::print;
use crate::session::Session;

/// The report of the command; the keys are part of the contract.
#[derive(Serialize)]
struct MachineReport<'a> {
    machine: &'a machine::Info,
    speeds: MachineSpeeds,
    wisdom: Option<&'a Path>,
}

/// Runs the command, with so much time for transforms.
///
/// # Errors
/// Too little memory; a file that cannot be written to.
pub fn run(
    common: &CommonArgs,
    time: Option<Duration>,
    [wisdom, json]: [&Option<PathBuf>; 2],
    session: &Session,
) -> Outcome {
    session.agree(setup::cpu_only(common, "measuring"))?;
    session.first(|| print::check([json]))?;
    let time = time.unwrap_or(ferrier::MEASURE_TIME);
    let work = |comm: &Comm| Ok(ferrier::wisdom::measure_machine(comm, time, wisdom.as_deref())?);
    let (speeds, path) = session.run(common, work)?;
    session.first(|| {
        let report = MachineReport { machine: &machine::info(), speeds, wisdom: path.as_deref() };
        print::report(json.as_deref(), &report, &text(&speeds, path.as_deref()))
    })
}

/// The measured constants beside the assumed ones.
fn text(speeds: &MachineSpeeds, path: Option<&Path>) -> String {
    let assumed = machine::model();
    let assumed_value = |name: &str| {
        let all = assumed.constants.list();
        all.iter().find(|(known, _)| *known == name).map_or(f64::NAN, |(_, value)| *value)
    };
    let number = |value: f64| format!("{value:.3e}");
    let rows = speeds.constants.list().into_iter().map(|(name, value)| {
        let before = assumed_value(name);
        vec![name.to_string(), number(before), number(value), digits(value / before)]
    });
    let mut out = columns(&["constant", "assumed", "measured", "ratio"], rows);
    out.push('\n');
    let rate = |bytes_s: f64| format!("{} GB/s", digits(bytes_s / 1e9));
    let mut rows = vec![
        ("processor family", assumed.family.clone()),
        ("copy", rate(speeds.memory_bytes_s)),
        ("message", format!("{} us", digits(speeds.latency_s * 1e6))),
        ("between ranks", rate(speeds.wire_bytes_s)),
    ];
    if let Some(path) = path {
        rows.push(("stored in", path.display().to_string()));
    }
    out + &pairs(&rows)
}
