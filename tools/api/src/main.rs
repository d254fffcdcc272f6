//! `ferrier-api FILE.json`: the public items of a crate, one a line, from rustdoc's JSON.

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(file) = std::env::args_os().nth(1) else {
        eprintln!("usage: ferrier-api FILE.json");
        return ExitCode::from(2);
    };
    // Blanket and automatic implementations say little and fill pages.
    let items = public_api::Builder::from_rustdoc_json(file)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build();
    match items {
        Ok(api) => {
            for item in api.items() {
                println!("{item}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("ferrier-api: {error}");
            ExitCode::FAILURE
        }
    }
}
