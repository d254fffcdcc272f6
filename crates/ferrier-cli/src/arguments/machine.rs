//! Options of the commands that predict for other machines.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ferrier::{Choice, Precision, Problem, Recipe};
use ferrier_model::{
    CHUNK_SCALARS, Cluster, Codec, ExchangeName, Job, JobOptions, Processor, SHIPPED, shipped,
};

use super::common::{CommonArgs, ProblemArgs};
use super::modes::{KeepList, ModesArgs};
use super::setup;
use super::shape::{LayoutName, UserShape};
use super::switches::OrderArgs;
use super::tiling::TilingArgs;
use super::words::{self, KindName, PRECISIONS, words};
use crate::failure::{Failure, Outcome, fail, io_failure};

/// What transforms lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProcessorName {
    /// The cores of the nodes.
    Cpu,
    /// One GPU for each rank.
    Gpu,
}

/// A transform on ranks of a machine.
#[derive(Args, Clone, Debug)]
pub struct JobArgs {
    #[arg(long, value_name = "NAME|FILE", help = machines_help())]
    pub machine: Option<String>,
    /// Ranks of a node [default: as the machine file says]
    #[arg(long, value_name = "N")]
    pub per_node: Option<usize>,
    /// What transforms lines [default: GPUs where the machine has some]
    #[arg(long, value_enum)]
    pub processor: Option<ProcessorName>,
    /// Complex to complex, or real to complex
    #[arg(long, value_enum, default_value_t = KindName::C2c)]
    pub kind: KindName,
    /// Precision of elements and arithmetic
    #[arg(long, value_parser = words(PRECISIONS), default_value = "f64")]
    pub precision: Precision,
    /// How the input is split: bricks, slabs:A (axis A is split), pencils:A (axis A is whole)
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true, default_value = "bricks")]
    pub in_layout: LayoutName,
    /// How the output is split: as above, or same, or best (the layout that needs no reshape)
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true, default_value = "same")]
    pub out_layout: LayoutName,
    /// Keep only the lowest modes: 64x64x64, one number per axis, or `all` for all modes of an axis; 64 alone is for
    /// every axis
    #[arg(long, value_name = "MODES", allow_negative_numbers = true)]
    pub keep: Option<KeepList>,
    /// Number of arrays that one plan transforms
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub batch: usize,
    /// Threads of each rank [default: the cores of a node are shared out]
    #[arg(long, value_name = "T")]
    pub threads: Option<usize>,
    #[arg(long, value_name = "NAME", help = words::exchanges())]
    pub exchange: Option<String>,
    #[arg(long, value_name = "NAME", help = words::codecs())]
    pub codec: Option<String>,
    /// Allowed error relative to the norm of the result: messages are encoded with as few bytes as keep it
    #[arg(long, value_name = "E")]
    pub tolerance: Option<f64>,
    #[command(flatten)]
    pub tiling: TilingArgs,
}

fn machines_help() -> String {
    let names: Vec<_> = SHIPPED.iter().map(|machine| machine.name).collect();
    format!("A machine file, or one of: {}", names.join(", "))
}

impl JobArgs {
    /// The machine.
    ///
    /// # Errors
    /// No machine is named; a file that cannot be read or is no machine file.
    pub fn cluster(&self) -> Outcome<Cluster> {
        let Some(name) = &self.machine else {
            return fail(format!("--machine is needed. {}", machines_help()));
        };
        if SHIPPED.iter().any(|machine| machine.name == name) || !Path::new(name).exists() {
            return shipped(name).map_err(|error| Failure::new(format!("--machine {name}: {error}")));
        }
        let path = PathBuf::from(name);
        let text = std::fs::read_to_string(&path).map_err(|error| io_failure("read", &path, &error))?;
        Cluster::parse(&text).map_err(|error| Failure::new(format!("--machine {name}: {error}")))
    }

    /// What transforms lines.
    pub fn processor(&self, cluster: &Cluster) -> Processor {
        match self.processor {
            Some(ProcessorName::Cpu) => Processor::Cpu,
            Some(ProcessorName::Gpu) => Processor::Gpu,
            None if cluster.gpu.is_some() => Processor::Gpu,
            None => Processor::Cpu,
        }
    }

    /// The problem.
    ///
    /// # Errors
    /// Options that do not fit each other.
    pub fn problem(&self, shape: &UserShape, ranks: usize) -> Outcome<Problem> {
        let modes = ModesArgs { keep: self.keep.clone(), ..ModesArgs::default() };
        let common = CommonArgs { tolerance: self.tolerance, modes, ..CommonArgs::default() };
        let args = ProblemArgs {
            shape: shape.clone(),
            kind: self.kind,
            precision: self.precision,
            in_layout: self.in_layout,
            out_layout: self.out_layout,
            batch: self.batch,
            orders: OrderArgs::default(),
            common,
        };
        Ok(setup::problem(&args, ranks)?.0)
    }

    /// The options of a job.
    ///
    /// # Errors
    /// Unknown names; tiles that do not fit the array.
    pub fn options(&self, cluster: &Cluster, shape: &UserShape) -> Outcome<JobOptions> {
        let exchange =
            self.exchange.as_deref().map(str::parse::<ExchangeName>).transpose().map_err(Failure::new)?;
        let choice = Choice::new().overlap(self.tiling.overlap(shape)?);
        Ok(JobOptions::new(self.processor(cluster))
            .per_node(self.per_node)
            .threads(self.threads)
            .exchange(exchange)
            .choice(choice))
    }

    /// The job on so many ranks.
    ///
    /// # Errors
    /// What the machine or the problem does not allow.
    pub fn job<'a>(&self, cluster: &'a Cluster, shape: &UserShape, ranks: usize) -> Outcome<Job<'a>> {
        let problem = self.problem(shape, ranks)?;
        let options = self.options(cluster, shape)?;
        let job = Job::new(cluster, &problem, self.precision, ranks, &options).map_err(Failure::new)?;
        match codec_of(&problem, self.codec.as_deref(), &job.recipe)? {
            Some(codec) => Ok(job.with_codec(codec)),
            None => Ok(job),
        }
    }
}

/// The codec that the library would use for a recipe; none if messages stay as they are.
///
/// # Errors
/// An unknown codec; a tolerance below the rounding errors.
pub fn codec_of(problem: &Problem, given: Option<&str>, recipe: &Recipe) -> Outcome<Option<Codec>> {
    let name = ferrier::codec::decide(problem, given, recipe)?;
    if name == ferrier::codec::RAW {
        return Ok(None);
    }
    let bytes = match recipe.precision {
        Precision::F32 => ferrier_codec::codec::<f32>(&name).map(|codec| codec.max_bytes(CHUNK_SCALARS)),
        Precision::F64 => ferrier_codec::codec::<f64>(&name).map(|codec| codec.max_bytes(CHUNK_SCALARS)),
    };
    let bytes = bytes.map_err(Failure::new)?;
    let part = bytes as f64 / (CHUNK_SCALARS * recipe.precision.bytes()) as f64;
    Ok(Some(Codec::new(name, part.min(1.0))))
}
