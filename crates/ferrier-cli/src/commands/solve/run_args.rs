//! Options of all equations.

use std::path::PathBuf;

use clap::Args;

use ferrier::{Choice, Comm, Problem};
use ferrier_bench::tiling::{tuned_tiles, with_messages};

use crate::arguments::{CommonArgs, ExecutionArgs, TileWord};
use crate::failure::{Outcome, fail};

/// Options of all equations.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Number of ranks, as threads of this process; under mpiexec the processes are the ranks [default: 1]
    #[arg(long, value_name = "R")]
    pub ranks: Option<usize>,
    /// Cut reshapes into tiles of T indices; auto: tiles are tuned in the first runs
    #[arg(long, value_name = "T")]
    pub tiles: Option<TileWord>,
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
        let mut common = self.execution.common(self.ranks);
        common.tiling.tiles.extend(self.tiles.filter(|word| *word != TileWord::Auto));
        common
    }

    /// The choice, with tuned tiles if they are asked for, else with an exchange that tiles need. Collective.
    ///
    /// # Errors
    /// Those of the library.
    pub fn tuned(&self, comm: &Comm, problem: &Problem, choice: &Choice) -> Outcome<Choice> {
        match self.tiles {
            Some(TileWord::Auto) => Ok(tuned_tiles::<f64>(comm, problem, choice)?.0),
            _ => with_messages(comm, choice),
        }
    }

    /// Checks `--repeat`.
    ///
    /// # Errors
    /// It is 0.
    pub fn check_repeat(&self) -> Outcome {
        if self.repeat == 0 { fail("--repeat 0: at least 1 repetition is needed") } else { Ok(()) }
    }
}
