//! `ferrier solve`: equations on boxes. One file for each.

mod helmholtz;
mod poisson;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::WayArgs;
use crate::failure::Outcome;
use crate::session::Session;

/// `ferrier solve`.
#[derive(Args, Debug)]
pub struct SolveArgs {
    /// Which equation.
    #[command(subcommand)]
    pub what: Equation,
}

/// What all equations take.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Number of ranks, threads of this process; under mpiexec its processes are the ranks [default: 1]
    #[arg(long, value_name = "R")]
    pub ranks: Option<usize>,
    /// Timed repetitions
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub repeat: usize,
    /// Write the result as JSON; `-` is stdout, which then carries nothing else
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub way: WayArgs,
}

/// Equations.
#[derive(Debug, Subcommand)]
pub enum Equation {
    /// -laplace(u) + u = f on the periodic cube, for a sweep of tolerances
    #[command(after_help = "Examples:
  ferrier solve helmholtz --n 64 --ranks 4
  ferrier solve helmholtz --n 128 --ranks 4 --tolerance 1e-4,1e-6,1e-8 --json table.json
  mpiexec -n 4 ferrier solve helmholtz --n 128")]
    Helmholtz(helmholtz::HelmholtzArgs),
    /// laplace(u) = f between walls: periodic, with a given slope, or with a given value
    #[command(after_help = "Examples:
  ferrier solve poisson --n 8,16,32 --bc neumann
  ferrier solve poisson --n 64 --bc periodic,periodic,dirichlet --ranks 4
  mpiexec -n 4 ferrier solve poisson --n 128")]
    Poisson(poisson::PoissonArgs),
}

/// Runs the command.
///
/// # Errors
/// Those of the equation.
pub fn run(args: &SolveArgs, session: &Session) -> Outcome {
    match &args.what {
        Equation::Helmholtz(args) => helmholtz::run(args, session),
        Equation::Poisson(args) => poisson::run(args, session),
    }
}
