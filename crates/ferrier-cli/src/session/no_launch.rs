//! Without MPI: `ferrier-mpi` supports 64-bit little-endian Linux only.

use ferrier::Comm;
use ferrier_bench::peers::MpiLaunch;

use crate::failure::Outcome;

/// Processes of a launch: there are none.
pub enum Launched {}

impl Launched {
    /// There is no launcher here.
    ///
    /// # Errors
    /// None.
    pub fn start() -> Outcome<Option<Launched>> {
        Ok(None)
    }

    /// The first processes of the launch.
    ///
    /// # Errors
    /// None.
    pub fn first_ranks(&self, _count: usize) -> Outcome<Option<Launched>> {
        match *self {}
    }

    /// All processes of the launch.
    pub fn comm(&self) -> &Comm {
        match *self {}
    }

    /// The library and the communicator, for peers.
    pub fn for_peers(&self) -> MpiLaunch<'_> {
        match *self {}
    }

    /// Ends all processes.
    pub fn abort(&self, _code: i32) -> ! {
        match *self {}
    }
}

/// MPI as `ferrier info` reports it.
#[derive(serde::Serialize)]
pub struct MpiInfo {
    why: &'static str,
}

impl MpiInfo {
    /// A fixed text.
    ///
    /// # Errors
    /// None.
    pub fn of(_launched: Option<&Launched>) -> Outcome<MpiInfo> {
        Ok(MpiInfo { why: "not supported on this system" })
    }

    /// As text.
    pub fn text(&self) -> String {
        format!("none: {}", self.why)
    }
}

/// The name of each rank's host.
///
/// # Errors
/// None: there is no launch.
pub fn hosts(_comm: &Comm) -> ferrier::Result<Vec<String>> {
    Ok(Vec::new())
}
