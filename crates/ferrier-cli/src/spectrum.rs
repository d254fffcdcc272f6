//! `ferrier spectrum`: the power spectrum of a file.

use std::f64::consts::TAU;
use std::fs::File;
use std::path::PathBuf;

use clap::Args;
use ferrier::spectral::{Shell, WaveNumbers, power_spectrum};
use ferrier::{Choice, Comm, LayoutSpec, Order, Planner, Precision, Problem, Real};

use crate::args::WayArgs;
use crate::chart::Chart;
use crate::failure::{Outcome, fail, io_failure};
use crate::npy::Header;
use crate::output;
use crate::parts::{self, Number};
use crate::report::{self, digits};
use crate::session::{self, Session};
use crate::setup;
use crate::shape::Frame;
use crate::transform::{elements, io_error, part};

/// `ferrier spectrum`.
#[derive(Args, Debug)]
pub struct SpectrumArgs {
    /// The array: .npy, 1 to 3 axes, float32/64 or complex64/128, C or Fortran order
    #[arg(value_name = "IN.npy")]
    pub input: PathBuf,
    /// Length of the box along each axis, such as 1,1,2 [default: 2 pi each, so that wave numbers are whole]
    #[arg(long, value_name = "L,..", value_delimiter = ',')]
    pub lengths: Vec<f64>,
    /// Write the shells as CSV; `-` is stdout, which then carries nothing else
    #[arg(long, value_name = "FILE|-")]
    pub csv: Option<PathBuf>,
    /// Draw power against wave number
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Number of ranks, threads of this process; under mpiexec its processes are the ranks [default: 1]
    #[arg(long, value_name = "R")]
    pub ranks: Option<usize>,
    #[command(flatten)]
    pub way: WayArgs,
}

struct Job<'a> {
    args: &'a SpectrumArgs,
    input: File,
    header: Header,
    problem: Problem,
    lengths: [f64; 3],
    choice: Choice,
}

/// Runs the command.
///
/// # Errors
/// Bad input; a machine that refuses.
pub fn run(args: &SpectrumArgs, session: &Session) -> Outcome {
    let common = args.way.common(args.ranks);
    let job = session.agree(prepare(args, session))?;
    session.first(|| {
        let csv = args.csv.as_deref().filter(|path| path.as_os_str() != "-");
        csv.map_or(Ok(()), output::check_text)?;
        args.svg.as_deref().map_or(Ok(()), output::check_text)
    })?;
    let all = match job.header.dtype.precision {
        Precision::F32 => session.run(&common, |comm| rank::<f32>(comm, &job)),
        Precision::F64 => session.run(&common, |comm| rank::<f64>(comm, &job)),
    }?;
    session.first(|| {
        let Some(shells) = all.first() else { return fail("no rank came back") };
        if let Some(path) = &args.svg {
            output::write_text(path, &svg(args, shells))?;
        }
        match args.csv.as_deref() {
            Some(path) if path.as_os_str() == "-" => report::say(&csv(shells)),
            path => {
                path.map_or(Ok(()), |path| output::write_text(path, &csv(shells)))?;
                report::say(&table(shells))
            }
        }
    })
}

fn prepare<'a>(args: &'a SpectrumArgs, session: &Session) -> Outcome<Job<'a>> {
    let common = args.way.common(args.ranks);
    session.size(&common)?;
    let input = File::open(&args.input).map_err(|error| io_failure("read", &args.input, &error))?;
    let header = Header::read(&input, &args.input)?;
    let frame = Frame::new(&header.shape)?;
    let mut lengths = [TAU; 3];
    if !args.lengths.is_empty() {
        if args.lengths.len() != frame.ndim() {
            let (got, axes) = (args.lengths.len(), frame.ndim());
            return fail(format!("--lengths has {got} numbers, but the array ({frame}) has {axes} axes"));
        }
        if let Some(length) = args.lengths.iter().find(|&&length| !(length > 0.0 && length.is_finite())) {
            return fail(format!("--lengths: sides must be positive, got {length}"));
        }
        lengths[3 - frame.ndim()..].copy_from_slice(&args.lengths);
    }
    let problem = match header.dtype.complex {
        true => Problem::c2c(frame.shape()),
        false => Problem::r2c(frame.shape()),
    };
    let (slowest, order) = if header.fortran { (2, Order::F) } else { (3 - frame.ndim(), Order::C) };
    let axes: Vec<usize> = (3 - frame.ndim()..3).collect();
    let problem = problem
        .axes(&axes)
        .input(LayoutSpec::slabs(slowest).order(order))
        .output(LayoutSpec::unconstrained());
    Ok(Job { args, input, header, problem, lengths, choice: setup::choice(&common, &frame)? })
}

/// What one rank does: read its box, transform, sum. Collective.
fn rank<T: Real + Number>(comm: &Comm, job: &Job<'_>) -> Outcome<Vec<Shell>> {
    let draft = Planner::new(&job.problem).choice(job.choice.clone()).draft::<T>(comm);
    let draft = session::agree(comm, draft.map_err(Into::into))?;
    let boxes =
        [&draft.recipe().input, &draft.recipe().output].map(|layout| layout.boxes()[comm.rank()].volume());
    setup::check_room(comm, draft.memory().total() + (boxes[0] + boxes[1]) * 2 * size_of::<T>())?;
    let mut plan = draft.build()?;
    let arrays = plan.make_input().and_then(|input| Ok((input, plan.make_output()?)));
    let (mut field, mut spectrum) = session::agree(comm, arrays.map_err(Into::into))?;
    let part = part(plan.input_layout(), plan.input_box());
    let read = parts::read(&job.input, &job.header, &part, elements(&mut field), &|_| {});
    session::agree(comm, read.map_err(|error| io_error("read", &job.args.input, &error)))?;
    plan.forward(&field, &mut spectrum)?;
    let waves = WaveNumbers::new(plan.recipe(), job.lengths)?;
    Ok(power_spectrum(comm, &plan, &waves, &spectrum)?)
}

fn csv(shells: &[Shell]) -> String {
    let row = |shell: &Shell| format!("{},{},{:e},{:e}\n", shell.k, shell.modes, shell.power, shell.mean());
    shells.iter().map(row).fold("k,modes,power,mean\n".into(), |text, row| text + &row)
}

fn table(shells: &[Shell]) -> String {
    let row = |shell: &Shell| {
        vec![
            digits(shell.k),
            shell.modes.to_string(),
            format!("{:.6e}", shell.power),
            format!("{:.6e}", shell.mean()),
        ]
    };
    let rows: Vec<Vec<String>> = shells.iter().map(row).collect();
    report::columns(&["k", "modes", "power", "per mode"], &rows)
}

fn svg(args: &SpectrumArgs, shells: &[Shell]) -> String {
    let name = args.input.file_name().unwrap_or_default().to_string_lossy();
    let mut chart = Chart::new(format!("{name}: power spectrum"), "wave number", "power in a shell");
    chart.line("power", shells.iter().map(|shell| (shell.k, shell.power)).collect());
    // Shells of powers of two are named: all would not fit.
    let unit = shells.get(1).map_or(1.0, |shell| shell.k);
    let named = |k: f64| ((k / unit).round() as usize).is_power_of_two();
    chart.svg(|k| if named(k) { digits(k) } else { String::new() })
}
