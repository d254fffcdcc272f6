//! Simulations as input of other simulators: SimGrid (SMPI's replay) and LogGOPSim (GOAL).
//!
//! Passes become computations of the seconds that the cost model gives; messages, and puts, become non-blocking sends
//! and receives. The size of messages slows them down, in proportion to the machine's efficiency: their bytes are
//! exported as many more.

mod goal;
mod programs;
mod simgrid;

pub use goal::goal;
pub use simgrid::{SimGridFiles, simgrid, simgrid_arguments};
