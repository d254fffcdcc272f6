//! One module for each subcommand, with its arguments.

pub mod accuracy;
pub mod bench;
mod choice_text;
pub mod convolve;
pub mod info;
mod measure_machine;
pub mod model;
pub mod plan;
pub mod simulate;
pub mod solve;
pub mod spectrum;
mod sphere_box;
pub mod transform;
pub mod tune;
mod tune_gpu;
mod tune_report;
pub mod wisdom;
