//! Options of all equations.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::{CommonArgs, ExecutionArgs};
use crate::failure::{Outcome, fail};

/// Options of all equations.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Number of ranks, as threads of this process; under mpiexec the processes are the ranks [default: 1]
    #[arg(long, value_name = "R")]
    pub ranks: Option<usize>,
    /// Timed repetitions
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub repeat: usize,
    /// Write the result as JSON; `-` is stdout, which then has no other output
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub execution: ExecutionArgs,
}

impl RunArgs {
    /// As options of a command that makes a plan.
    pub fn common(&self) -> CommonArgs {
        self.execution.common(self.ranks)
    }

    /// Checks `--repeat`.
    ///
    /// # Errors
    /// It is 0.
    pub fn check_repeat(&self) -> Outcome {
        if self.repeat == 0 { fail("--repeat 0: at least 1 repetition is needed") } else { Ok(()) }
    }
}
