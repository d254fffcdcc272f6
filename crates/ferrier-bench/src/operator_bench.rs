//! Operators on the spectrum, fused with the transforms and not.

use std::f64::consts::TAU;

use ferrier::spectral::{self, WaveNumbers};
use ferrier::wisdom::EntryRef;
use ferrier::{Choice, Comm, Data, DeviceSpec, Operator, Precision, Problem, Real, Recipe};
use serde::Serialize;

use crate::agree::{agree, check_memory, draft, local_volumes};
use crate::failure::{self, Failure, Outcome};
use crate::in_precision;
use crate::noise::Noise;
use crate::table::{columns, digits, notes_text, shape_text, wisdom_line};
use crate::tiling::with_messages;
use crate::timing::{Times, median, timed};

/// An operator: a line of [`OPERATORS`].
pub struct OperatorEntry {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    kind: OperatorKind,
}

#[derive(Clone, Copy)]
enum OperatorKind {
    Laplacian,
    Inverse,
    Gaussian,
    Shift,
}

/// All operators.
pub static OPERATORS: &[OperatorEntry] = &[
    OperatorEntry { name: "laplacian", summary: "each mode times -k^2", kind: OperatorKind::Laplacian },
    OperatorEntry { name: "poisson", summary: "the inverse of the Laplacian", kind: OperatorKind::Inverse },
    OperatorEntry { name: "gaussian", summary: "a smooth filter", kind: OperatorKind::Gaussian },
    OperatorEntry {
        name: "shift",
        summary: "by a fraction of a point, each mode times a phase",
        kind: OperatorKind::Shift,
    },
];

impl OperatorEntry {
    /// The operator for these wave numbers.
    ///
    /// # Errors
    /// The operator does not support these axes.
    pub fn operator<T: Real>(&self, waves: &WaveNumbers) -> ferrier::Result<Box<dyn Operator<T>>> {
        Ok(match self.kind {
            OperatorKind::Laplacian => Box::new(spectral::laplacian(waves)),
            OperatorKind::Inverse => Box::new(spectral::inverse_laplacian(waves)),
            OperatorKind::Gaussian => Box::new(spectral::gaussian(waves, 0.1)),
            OperatorKind::Shift => Box::new(spectral::shift(waves, [0.1; 3])?),
        })
    }
}

/// The report of the benchmark; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct OperatorReport {
    shape: Vec<usize>,
    kind: &'static str,
    precision: &'static str,
    device: String,
    /// The name of the GPU, if it ran on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<String>,
    operator: &'static str,
    ranks: usize,
    threads: usize,
    transport: &'static str,
    exchange: String,
    repeat: usize,
    /// Forward, operator and backward in one call.
    apply: Times,
    /// Forward and backward.
    pair: Times,
    /// Forward, a pass that multiplies the spectrum, and backward. (On a GPU the
    /// multiplication is fused with the last pass of forward.)
    separate: Times,
    /// Medians of `apply` over those of the other two.
    apply_over_pair: f64,
    apply_over_separate: f64,
    /// Distance of the two results over their norm. (On a GPU the operator of the second
    /// one runs on the CPU.)
    difference: f64,
    /// The wisdom that the plan was made from; null if there was none.
    wisdom: Option<EntryRef>,
    /// The plan's notes.
    notes: Vec<String>,
}

/// Options of the benchmark.
pub struct OperatorBench {
    /// The transform; it allows operators.
    pub problem: Problem,
    /// The precision of its elements.
    pub precision: Precision,
    /// The choice.
    pub choice: Choice,
    /// The operator.
    pub operator: &'static OperatorEntry,
    /// The device.
    pub device: DeviceSpec,
    /// Lengths of the user's axes, for the report.
    pub shape: Vec<usize>,
    /// Number of repetitions; `None`: about two seconds' worth.
    pub repeat: Option<usize>,
}

/// Seconds of `apply`, `pair` and `separate` in each repetition, on the slowest rank.
pub(crate) type Repetitions = [Vec<f64>; 3];

/// About the time of all repetitions.
const WANTED_SECONDS: f64 = 2.0;

impl OperatorBench {
    /// Times the operator on the CPU. Collective.
    ///
    /// # Errors
    /// Those of the library; a wrong result.
    pub fn run(&self, comm: &Comm) -> Outcome<OperatorReport> {
        in_precision!(self.precision, T => measure::<T>(comm, self))
    }

    /// Calls `once` to warm up, then repeatedly; it returns the seconds of `apply`, `pair` and `separate`.
    ///
    /// # Errors
    /// Those of `once`.
    pub(crate) fn repeated(&self, mut once: impl FnMut() -> Outcome<[f64; 3]>) -> Outcome<Repetitions> {
        let first: f64 = once()?.iter().sum();
        let repeat = self.repeat.unwrap_or((WANTED_SECONDS / first).ceil().clamp(5.0, 300.0) as usize);
        let mut all = Repetitions::default();
        for _ in 0..repeat {
            all.iter_mut().zip(once()?).for_each(|(list, seconds)| list.push(seconds));
        }
        Ok(all)
    }

    /// The report of a run.
    pub(crate) fn report(
        &self,
        comm: &Comm,
        (recipe, notes): (&Recipe, &[String]),
        repetitions: &Repetitions,
        difference: f64,
    ) -> OperatorReport {
        let [apply, pair, separate] = repetitions;
        OperatorReport {
            shape: self.shape.clone(),
            kind: if recipe.is_real() { "r2c" } else { "c2c" },
            precision: recipe.precision.name(),
            device: self.device.to_string(),
            gpu: None,
            operator: self.operator.name,
            ranks: comm.size(),
            threads: comm.threads(),
            transport: comm.transport_name(),
            exchange: recipe.exchange.clone(),
            repeat: apply.len(),
            apply_over_pair: median(apply) / median(pair),
            apply_over_separate: median(apply) / median(separate),
            apply: Times::new(apply),
            pair: Times::new(pair),
            separate: Times::new(separate),
            difference,
            wisdom: None,
            notes: notes.to_vec(),
        }
    }
}

/// The operator called `name`.
///
/// # Errors
/// Lists the known names.
pub fn find_operator(name: &str) -> Outcome<&'static OperatorEntry> {
    failure::find("operator", OPERATORS, |entry| entry.name, name)
}

/// The distance of two arrays over the norm of the second, over all ranks. Collective.
///
/// # Errors
/// It is more than `most`; the same on every rank.
pub(crate) fn difference<T: Real>(comm: &Comm, one: &[T], other: &[T], most: f64) -> Outcome<f64> {
    let (mut distance, mut norm) = (0.0, 0.0);
    for (a, b) in one.iter().zip(other) {
        let (a, b): (f64, f64) = (a.widened(), b.widened());
        distance += (a - b) * (a - b);
        norm += b * b;
    }
    let sums = comm.sum(&[distance, norm])?;
    let difference = (sums[0] / sums[1].max(f64::MIN_POSITIVE)).sqrt();
    match difference <= most {
        true => Ok(difference),
        false => agree(comm, Err(Failure::wrong(format!("the two results differ by {difference:.1e}")))),
    }
}

fn measure<T: Real>(comm: &Comm, options: &OperatorBench) -> Outcome<OperatorReport> {
    let choice = with_messages(comm, &options.choice)?;
    let draft = draft::<T>(comm, &options.problem, choice)?;
    let (recipe, wisdom) = (draft.recipe().clone(), draft.wisdom().cloned());
    let volumes = local_volumes(comm, &recipe);
    let scalars = (3 * volumes[0] + volumes[1]) * 2 * recipe.batch;
    check_memory(comm, draft.memory().total() + scalars * size_of::<T>())?;
    let mut plan = draft.build()?;
    let mut input = plan.make_input()?;
    let (mut fused, mut back, mut spectrum) = (plan.make_input()?, plan.make_input()?, plan.make_output()?);
    Noise::new(recipe.shape, 1).fill(&mut input);
    let waves = WaveNumbers::new(&recipe, [TAU; 3])?;
    let operator = options.operator.operator::<T>(&waves)?;
    let operator = &*operator;
    let threads = comm.threads();
    let repetitions = options.repeated(|| {
        let apply = timed(comm, || plan.call().operator(&operator).apply(&input, &mut fused))?;
        let pair = timed(comm, || {
            plan.forward(&input, &mut spectrum)?;
            plan.backward(&spectrum, &mut back)
        })?;
        let separate = timed(comm, || {
            plan.forward(&input, &mut spectrum)?;
            spectrum.apply(operator, threads);
            plan.backward(&spectrum, &mut back)
        })?;
        Ok([apply, pair, separate])
    })?;
    // Kernels need not round fused operators in the same way.
    let most = 8.0 * recipe.precision.epsilon();
    let difference = difference(comm, fused.scalars(), back.scalars(), most)?;
    Ok(OperatorReport { wisdom, ..options.report(comm, (&recipe, plan.notes()), &repetitions, difference) })
}

impl OperatorReport {
    /// The same, measured on a GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_gpu(self, gpu: &str) -> Self {
        OperatorReport { gpu: Some(gpu.into()), ..self }
    }

    /// A table of the times.
    pub fn text(&self) -> String {
        let row = |name: &str, Times { best_ms, median_ms }: Times| {
            [vec![name.into()], [best_ms, median_ms, self.apply.median_ms / median_ms].map(digits).to_vec()]
                .concat()
        };
        let rows = [
            row("apply", self.apply),
            row("forward + backward", self.pair),
            row("forward, multiply, backward", self.separate),
        ];
        let gpu = self.gpu.as_ref().map_or(String::new(), |gpu| format!("on {gpu}, timed by GPU events\n"));
        let notes = notes_text(&self.notes);
        let OperatorReport { kind, precision, operator, ranks, threads, exchange, .. } = self;
        let head = format!("{} {kind} {precision}, {operator}", shape_text(&self.shape));
        let table = columns(&["", "best ms", "median ms", "apply over it"], rows);
        let wisdom = wisdom_line(self.wisdom.as_ref());
        format!(
            "{head}: ranks {ranks}, threads {threads}, exchange {exchange}\n{gpu}{notes}\n{table}{wisdom}"
        )
    }
}
