//! `ferrier solve`: equations on periodic boxes. One file for each.

mod helmholtz;

use clap::{Args, Subcommand};

use crate::failure::Outcome;
use crate::session::Session;

/// `ferrier solve`.
#[derive(Args, Debug)]
pub struct SolveArgs {
    /// Which equation.
    #[command(subcommand)]
    pub what: Equation,
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
}

/// Runs the command.
///
/// # Errors
/// Those of the equation.
pub fn run(args: &SolveArgs, session: &Session) -> Outcome {
    match &args.what {
        Equation::Helmholtz(args) => helmholtz::run(args, session),
    }
}
