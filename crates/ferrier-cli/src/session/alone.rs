//! Where there is no MPI: `ferrier-mpi` knows only 64-bit little-endian Linux.

use ferrier::Comm;

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

    /// All processes of the launch.
    pub fn comm(&self) -> &Comm {
        match *self {}
    }

    /// Ends them all.
    pub fn abort(&self, _code: i32) -> ! {
        match *self {}
    }
}

/// What `ferrier info` says about MPI.
#[derive(serde::Serialize)]
pub struct About {
    why: &'static str,
}

impl About {
    /// Asks for nothing.
    ///
    /// # Errors
    /// None.
    pub fn of(_launched: Option<&Launched>) -> Outcome<About> {
        Ok(About { why: "not on this system" })
    }

    /// For people.
    pub fn text(&self) -> String {
        format!("none: {}", self.why)
    }
}
