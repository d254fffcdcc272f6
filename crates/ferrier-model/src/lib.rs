//! Distributed Fourier transforms on machines that are given as data.
//!
//! A [`Cluster`] is a machine file: nodes, GPUs, links, topology, and where each number comes from. A [`Job`] is a
//! transform on so many ranks of it. [`Job::model`] predicts its steps in closed form, by the
//! [cost model](ferrier_plan::cost) that plans are made by; [`simulate`](sim::simulate) runs the
//! [order of actions](ferrier_plan::order) of every rank against a network of max-min fair flows; [`papers`] has the
//! roofline of equations 1 to 3 of the heFFTe paper. Nothing here starts a thread, opens a file, reads a clock or the
//! environment.
#![forbid(unsafe_code)]

mod cluster;
mod error;
mod exchange;
pub mod export;
mod flows;
mod forward;
mod job;
mod measured;
mod model;
pub mod papers;
mod shipped;
pub mod sim;
mod slowest;
mod topology;

pub use cluster::{Cluster, Codecs, Cpu, Gpu, Network, Node, Processor};
pub use error::{Error, Result};
pub use exchange::ExchangeName;
pub use ferrier_plan::messages::CHUNK_SCALARS;
pub use job::{Codec, Job, JobOptions};
pub use measured::MeasuredMachine;
pub use model::{ModelStep, Modelled, limit_sentence};
pub use shipped::{SHIPPED, ShippedMachine, shipped};
pub use topology::{Topology, TreeLevel};
