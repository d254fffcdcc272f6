//! The command `ferrier`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(ferrier_cli::run(std::env::args_os().collect()))
}
