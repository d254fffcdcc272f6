//! `ferrier solve`: one file for each equation.

mod helmholtz;
mod poisson;
mod run_args;
mod solvers;

use clap::{Args, Subcommand};

use crate::failure::Outcome;
use crate::session::Session;

/// `ferrier solve`.
#[derive(Args, Debug)]
pub struct SolveArgs {
    /// The equation.
    #[command(subcommand)]
    pub what: Equation,
}

/// Equations.
#[derive(Debug, Subcommand)]
pub enum Equation {
    /// -laplace(u) + u = f on the periodic cube, for several tolerances
    #[command(after_help = "Examples:
  ferrier solve helmholtz --n 64 --ranks 4
  ferrier solve helmholtz --n 128 --ranks 4 --tolerance 1e-4,1e-6,1e-8 --json table.json
  ferrier solve helmholtz --n 64 --ranks 4 --tolerance auto
  ferrier solve helmholtz --rhs f.npy --out u.npy --ranks 4
  mpiexec -n 4 ferrier solve helmholtz --n 128")]
    Helmholtz(helmholtz::HelmholtzArgs),
    /// laplace(u) = f with periodic, Neumann or Dirichlet boundary conditions
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
