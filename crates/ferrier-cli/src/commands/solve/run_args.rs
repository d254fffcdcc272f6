//! Options of all equations.

use std::path::PathBuf;

use clap::Args;

use ferrier::{Choice, Comm, DeviceSpec, Problem};
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
    /// Where arrays are stored and transformed: cpu, cuda, cuda:1
    #[arg(long, value_name = "NAME", default_value_t = DeviceSpec::Cpu)]
    pub device: DeviceSpec,
    #[command(flatten)]
    pub execution: ExecutionArgs,
}

impl RunArgs {
    /// As options of a command that makes a plan.
    pub fn common(&self) -> CommonArgs {
        let mut common = self.execution.common(self.ranks);
        common.device = self.device;
        common.tiling.tiles.extend(self.tiles.filter(|word| *word != TileWord::Auto));
        common
    }

    /// The choice, with tuned tiles if they are asked for, else with an exchange that tiles need. Collective.
    ///
    /// # Errors
    /// Those of the library.
    pub fn tuned(&self, comm: &Comm, problem: &Problem, choice: &Choice) -> Outcome<Choice> {
        match self.tiles {
            _ if self.device != DeviceSpec::Cpu => Ok(choice.clone()),
            Some(TileWord::Auto) => Ok(tuned_tiles::<f64>(comm, problem, choice)?.0),
            _ => with_messages(comm, choice),
        }
    }

    /// Checks `--repeat` and `--tiles`.
    ///
    /// # Errors
    /// No repetition; tiles that are tuned on a GPU.
    pub fn check(&self) -> Outcome {
        if self.repeat == 0 {
            return fail("--repeat 0: at least 1 repetition is needed");
        }
        if self.tiles == Some(TileWord::Auto) && self.device != DeviceSpec::Cpu {
            return fail(format!("--tiles auto: tiles are tuned on the CPU, not on {}", self.device));
        }
        Ok(())
    }
}
