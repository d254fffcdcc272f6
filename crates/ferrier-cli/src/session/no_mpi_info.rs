//! MPI as `ferrier info` reports it, on systems without it.

use super::launched::Launched;
use crate::failure::Outcome;

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
