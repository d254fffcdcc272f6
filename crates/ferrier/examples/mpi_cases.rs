//! The case table under `mpiexec`, for as many ranks as it starts: every case
//! over every exchange, with arrays of the plan, slices of the user and in
//! place. Bits must be those of in-process ranks of the same number, whose
//! results are held against the oracle.
//!
//! ```text
//! mpiexec -n 4 target/debug/examples/mpi_cases [EXCHANGE ...]
//! ```
//!
//! `FERRIER_THIN=7` takes every seventh case, `FERRIER_COUNT_LIMIT=1000` makes
//! messages above so many bytes go in pieces, `FERRIER_LIMIT=600` is the time
//! limit in seconds. The exit code is 1 where anything differs.

#[path = "../tests/common/mod.rs"]
mod common;

use std::process::ExitCode;

use common::{MODES, Mode, Number, Oracle, Run, any_choice, exchanges, kernels, plan_of, transform};
use ferrier::{Choice, Comm, Complex, Problem, Result};
use ferrier_mpi::{Level, Mpi};
use ferrier_test::cases::{Case, cases};
use ferrier_test::{Rng, watchdog};

/// A case as every rank derives it from its number.
struct Task {
    case: Case,
    problem: Problem,
    choice: Choice,
    single: bool,
    seed: u64,
}

impl Task {
    fn new(number: usize, case: Case, ranks: usize) -> Task {
        let seed = 7000 + number as u64;
        let problem = common::problem(&case, ranks, &mut Rng::new(seed));
        let kernel = kernels()[number % kernels().len()];
        // What else may be chosen must not depend on the exchange: it may change bits.
        let choice = any_choice(exchanges()[0], kernel, ranks, &mut Rng::new(seed + 1));
        Task { case, problem, choice, single: number % 3 == 2, seed }
    }

    fn with(&self, exchange: &str) -> Choice {
        self.choice.clone().exchange(exchange)
    }

    /// Fingerprints of a rank's spectrum and of what came back.
    fn run<T: Number>(&self, comm: &Comm, exchange: &str, mode: Mode) -> Result<[u64; 2]> {
        let mut plan = plan_of::<T>(comm, &self.problem, &self.with(exchange))?;
        let (spectrum, back) = transform(&mut plan, &self.case, mode)?;
        Ok([digest(&spectrum.1), digest(&back.1)])
    }

    /// On in-process ranks, held against the oracle: what each rank should find.
    fn expected<T: Number>(&self, ranks: usize, oracle: &Oracle) -> Result<Vec<[u64; 2]>> {
        let choice = self.with(exchanges()[0]);
        let run = Run { case: &self.case, ranks, nodes: 1, threads: 1, choice, modes: &[Mode::Arrays] };
        run.check::<T>(oracle, &mut Rng::new(self.seed));
        ferrier::ranks(ranks).threads(1).run(|comm| self.run::<T>(&comm, exchanges()[0], Mode::Arrays))
    }
}

/// FNV-1a over the bits; every f32 is an f64.
fn digest<T: Number>(values: &[Complex<T>]) -> u64 {
    let numbers = values.iter().flat_map(|x| [x.re.into(), x.im.into()]);
    numbers
        .flat_map(|x: f64| x.to_bits().to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What this rank should find in each task. Each rank works out some of them.
fn expectations(comm: &Comm, tasks: &[Task]) -> Result<Vec<[u64; 2]>> {
    let (rank, ranks) = (comm.rank(), comm.size());
    let oracle = Oracle::default();
    let mut mine = Vec::new();
    for task in tasks.iter().skip(rank).step_by(ranks) {
        let all = match task.single {
            true => task.expected::<f32>(ranks, &oracle)?,
            false => task.expected::<f64>(ranks, &oracle)?,
        };
        mine.extend(all.iter().flatten().flat_map(|digest| digest.to_le_bytes()));
    }
    let all = comm.all_gather(&mine)?;
    let digest = |task: usize, which: usize| {
        let at = ((task / ranks * ranks + rank) * 2 + which) * 8;
        u64::from_le_bytes(all[task % ranks][at..at + 8].try_into().expect("eight bytes"))
    };
    Ok((0..tasks.len()).map(|task| [digest(task, 0), digest(task, 1)]).collect())
}

/// Names the order of the axes that the plans of these ranks have by default: in-process ranks, which are on one node and may
/// use only the cores that the launcher has bound this process to, might have another, and other bits.
fn name_axes(comm: &Comm, exchange: &str, task: &mut Task) -> Result<()> {
    let (problem, choice) = (&task.problem, task.with(exchange));
    let axes = match task.single {
        true => plan_of::<f32>(comm, problem, &choice)?.recipe().axes(),
        false => plan_of::<f64>(comm, problem, &choice)?.recipe().axes(),
    };
    task.choice = task.choice.clone().axes(axes);
    Ok(())
}

fn table(comm: &Comm, chosen: &[&str], tasks: &[Task]) -> Result<(usize, Vec<String>)> {
    let expected = expectations(comm, tasks)?;
    let (mut count, mut wrong) = (0, Vec::new());
    for (task, want) in tasks.iter().zip(&expected) {
        for exchange in chosen {
            for mode in MODES {
                let got = match task.single {
                    true => task.run::<f32>(comm, exchange, mode)?,
                    false => task.run::<f64>(comm, exchange, mode)?,
                };
                count += 1;
                for (side, (got, want)) in ["forward", "backward"].iter().zip(got.iter().zip(want)) {
                    if got != want {
                        let line = &task.case.line;
                        wrong.push(format!(
                            "{exchange}, {mode:?}, {side}: other bits | {line} | {:?}",
                            task.choice
                        ));
                    }
                }
            }
        }
    }
    Ok((count, wrong))
}

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`")))
}

fn run(comm: &Comm, asked: &[String]) -> Result<bool> {
    let one_node = comm.node_count() == 1;
    let chosen: Vec<&str> = exchanges()
        .into_iter()
        .filter(|&name| asked.is_empty() || asked.iter().any(|asked| asked == name))
        .filter(|&name| one_node || name != "direct")
        .collect();
    let step = number("FERRIER_THIN").unwrap_or(1).max(1);
    let mut tasks: Vec<Task> = (cases().into_iter().enumerate().step_by(step))
        .map(|(number, case)| Task::new(number, case, comm.size()))
        .collect();
    tasks.iter_mut().try_for_each(|task| name_axes(comm, chosen[0], task))?;
    let (count, wrong) = table(comm, &chosen, &tasks)?;
    let all = comm.all_gather(wrong.join("\n").as_bytes())?;
    let bad = all.iter().filter(|text| !text.is_empty()).count();
    if comm.rank() == 0 {
        for (rank, text) in all.iter().enumerate().filter(|(_, text)| !text.is_empty()) {
            for line in String::from_utf8_lossy(text).lines().take(5) {
                println!("mpi_cases: WRONG on rank {rank}: {line}");
            }
        }
        let verdict = if bad == 0 { "ok" } else { "FAILED" };
        println!(
            "mpi_cases {verdict}: {count} transforms there and back on {} ranks of {} nodes: {}",
            comm.size(),
            comm.node_count(),
            chosen.join(", ")
        );
    }
    Ok(bad == 0)
}

/// Runs the table with the exchanges that are asked for, all if none; whether the bits are right.
pub fn run_table(asked: &[String]) -> bool {
    let _watchdog = watchdog(number("FERRIER_LIMIT").unwrap_or(600) as u64);
    let outcome = (|| -> Result<bool> {
        let Some(comm) = ferrier::mpi::world()? else {
            println!("mpi_cases: not started by mpiexec, nothing to do");
            return Ok(true);
        };
        if let (Some(limit), Ok(Some(mpi))) = (number("FERRIER_COUNT_LIMIT"), Mpi::init(Level::Funneled)) {
            mpi.lower_count_limit(limit);
        }
        run(&comm, asked)
    })();
    outcome.unwrap_or_else(|error| {
        eprintln!("mpi_cases: FAILED: {error}");
        // Not `return`: the others may wait for this rank, and so would the end of MPI.
        std::process::exit(1)
    })
}

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    if run_table(&asked) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
