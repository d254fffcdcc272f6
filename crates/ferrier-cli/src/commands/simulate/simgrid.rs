//! SimGrid as the simulator.

use std::fs;
use std::path::Path;
use std::process::Command;

use ferrier_model::Job;
use ferrier_model::export::{simgrid, simgrid_arguments};

use crate::failure::{Failure, Outcome, fail, io_failure};

/// Writes the files of a job to a folder, which is made if need be.
///
/// # Errors
/// A topology that cannot be written; a folder that cannot be written to.
pub fn write(job: &Job<'_>, folder: &Path) -> Outcome {
    let files = simgrid(job).map_err(Failure::new)?;
    fs::create_dir_all(folder).map_err(|error| io_failure("make", folder, &error))?;
    let fixed = [("platform.xml", &files.platform), ("hosts.txt", &files.hosts), ("traces.txt", &files.list)];
    let traces = files.traces.iter().map(|(name, text)| (&**name, text));
    for (name, text) in fixed.into_iter().chain(traces) {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| io_failure("write", &path, &error))?;
    }
    Ok(())
}

/// Seconds that SimGrid's smpirun simulates.
///
/// # Errors
/// It is not installed or fails.
pub fn run(job: &Job<'_>) -> Outcome<f64> {
    let folder =
        tempfile::tempdir().map_err(|error| Failure::new(format!("no temporary folder: {error}")))?;
    write(job, folder.path())?;
    let output =
        Command::new("smpirun").args(simgrid_arguments(job.ranks())).current_dir(folder.path()).output();
    let output = output.map_err(|error| {
        Failure::new(format!("cannot run smpirun: {error}; SimGrid is needed (Debian: libsimgrid-dev)"))
    })?;
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    // "0.012345678901 Simulation time 0.012346"
    let mut seconds =
        said.lines().filter_map(|line| line.split_once("Simulation time")?.0.trim().parse::<f64>().ok());
    match seconds.next_back() {
        Some(seconds) if output.status.success() => Ok(seconds),
        _ => {
            let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
            fail(format!("smpirun failed ({}): {last}", output.status))
        }
    }
}
