//! `ferrier model`: predicted times on machines that are given as files.

mod measure;
mod search;
mod weak;

use std::path::PathBuf;

use clap::Args;
use ferrier_bench::charts::scaling::{ScalingChart, ScalingPoint};
use ferrier_bench::table::{columns, digits, pairs};
use ferrier_model::{Modelled, SHIPPED, limit_sentence, shipped};

use crate::arguments::{ExecutionArgs, JobArgs, SlowArgs, UserShape};
use crate::failure::{Failure, Outcome, fail};
use crate::print;
use crate::session::Session;

/// `ferrier model`.
#[derive(Args, Debug)]
pub struct ModelArgs {
    /// 256 (a cube), 256x256x128, 512x512 (two axes)
    #[arg(required_unless_present_any = ["measure", "list"])]
    pub shape: Option<UserShape>,
    #[command(flatten)]
    pub job: JobArgs,
    /// Numbers of ranks, such as 64,128,256; with --measure, ranks as threads of this process
    #[arg(long, value_name = "R,..", value_delimiter = ',')]
    pub ranks: Vec<usize>,
    #[command(flatten)]
    pub slow: SlowArgs,
    /// Weak scaling: the shape is for the first number of ranks and grows in proportion to the others
    #[arg(long)]
    pub weak: bool,
    /// Try layouts, rank grids, exchanges, tiles, codecs and tolerances for the last number of ranks
    #[arg(long, conflicts_with_all = ["weak", "svg", "slow_rank", "slow_node", "slow_link"])]
    pub search: bool,
    /// Measure the machine at hand and write its machine file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["shape", "search"])]
    pub measure: Option<PathBuf>,
    /// With --measure: emulate a network between in-process ranks, such as 10gbit:5us
    #[arg(long, value_name = "RATE:LATENCY", requires = "measure")]
    pub wire: Option<ferrier::Wire>,
    /// List the machines that are part of the program
    #[arg(long, conflicts_with_all = ["shape", "measure"])]
    pub list: bool,
    /// Write the predictions as JSON, to stdout without FILE
    #[arg(long, value_name = "FILE|-", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Draw strong and weak scaling with the roofline, and the share of each step
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// What the names of reshapes begin with.
const RESHAPE: &str = "reshape ";

/// Runs the command.
///
/// # Errors
/// Bad input.
pub fn run(args: &ModelArgs, session: &Session) -> Outcome {
    if let Some(file) = &args.measure {
        let execution =
            ExecutionArgs { wire: args.wire, threads: args.job.threads, ..ExecutionArgs::default() };
        let ranks = match args.ranks[..] {
            [] => None,
            [ranks] => Some(ranks),
            _ => return fail("--measure: --ranks must be one number"),
        };
        return measure::run(&execution.common(ranks), file, session);
    }
    session.first(|| if args.list { list() } else { predict(args) })
}

fn list() -> Outcome {
    let mut rows = Vec::new();
    for machine in SHIPPED {
        rows.push((machine.name, shipped(machine.name).map_err(Failure::new)?.summary));
    }
    print::say(&pairs(&rows))
}

fn predict(args: &ModelArgs) -> Outcome {
    let Some(shape) = &args.shape else { return fail("a shape is needed") };
    let cluster = args.job.cluster()?;
    if args.ranks.is_empty() {
        return fail("--ranks is needed, such as --ranks 64,128,256");
    }
    if args.ranks.contains(&0) {
        return fail("--ranks 0: at least 1 rank is needed");
    }
    print::check([&args.json, &args.svg])?;
    if args.search {
        return search::run(
            &args.job,
            &cluster,
            shape,
            args.ranks[args.ranks.len() - 1],
            args.json.as_deref(),
        );
    }
    let model = |weak: bool| {
        let of = |&ranks: &usize| {
            let grown = weak::grown(shape, args.ranks[0], ranks)?;
            let job = args.job.job(&cluster, if weak { &grown } else { shape }, ranks)?;
            job.model_with(&args.slow.options()).map_err(Failure::new)
        };
        args.ranks.iter().map(of).collect::<Outcome<Vec<Modelled>>>()
    };
    let found = model(args.weak)?;
    if let Some(path) = &args.svg {
        let [strong, weak] =
            if args.weak { [model(false)?, found.clone()] } else { [found.clone(), model(true)?] };
        print::write(path, &svg(&format!("{shape} on {}", cluster.name), &strong, &weak))?;
    }
    let text = format!("{shape} on {}: {}\n\n{}", cluster.name, cluster.summary, text(&found));
    print::report(args.json.as_deref(), &found, &text)
}

fn svg(title: &str, strong: &[Modelled], weak: &[Modelled]) -> String {
    let points = |list: &[Modelled]| -> Vec<ScalingPoint> { list.iter().map(point).collect() };
    ScalingChart { title: title.into(), strong: points(strong), weak: points(weak) }.svg()
}

fn point(modelled: &Modelled) -> ScalingPoint {
    ScalingPoint {
        ranks: modelled.ranks,
        gflops: modelled.gflops,
        roofline_gflops: modelled.roofline_gflops,
        network_gflops: modelled.network_gflops,
        steps: numbered(modelled),
    }
}

/// The steps with the numbers of reshapes in place of their rank grids, which differ from one number of ranks to another.
fn numbered(modelled: &Modelled) -> Vec<(String, f64)> {
    let mut reshapes: Vec<&str> = Vec::new();
    let mut steps = Vec::new();
    for step in &modelled.steps {
        let Some(at) = step.name.find(RESHAPE) else {
            steps.push((step.name.clone(), step.ms));
            continue;
        };
        let (before, reshape) = step.name.split_at(at);
        let number = reshapes.iter().position(|known| *known == reshape).unwrap_or_else(|| {
            reshapes.push(reshape);
            reshapes.len() - 1
        });
        steps.push((format!("{before}{RESHAPE}{}", number + 1), step.ms));
    }
    steps
}

fn text(found: &[Modelled]) -> String {
    let network = |value: Option<f64>| value.map_or("-".into(), digits);
    let row = |one: &Modelled| {
        vec![
            one.ranks.to_string(),
            one.nodes.to_string(),
            digits(one.total_ms),
            digits(one.gflops),
            digits(one.roofline_gflops),
            network(one.network_gflops),
            format!("{:.0} %", 100.0 * one.exchange_ms() / one.total_ms),
        ]
    };
    let heads = ["ranks", "nodes", "ms", "Gflop/s", "roofline", "network limit", "exchanges"];
    let mut out = columns(&heads, found.iter().map(row));
    let Some(last) = found.last() else { return out };
    let step = |step: &ferrier_model::ModelStep| {
        let share = format!("{:.1} %", 100.0 * step.ms / last.total_ms);
        vec![step.name.clone(), digits(step.ms), share, step.limit.into()]
    };
    let head = format!("step, {} ranks", last.ranks);
    out += &format!("\n{}", columns(&[&head, "ms", "share", "limit"], last.steps.iter().map(step)));
    out += &format!("\nexchange {}, codec {}, layouts and axes: {}\n", last.exchange, last.codec, last.path);
    out + &limit_sentence(last) + "\n"
}
