//! What the tests share: a case becomes a problem, a problem is run on ranks
//! and held against the oracle.
#![allow(dead_code, reason = "every test file uses its own part of this")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ferrier::{
    Box3, Choice, Comm, Decomposition, LayoutSpec, MemoryUse, Order, Overlap, Plan, Planner, Problem,
    Progress, Real, Result, Scale, Tiling, exchange, kernel,
};
use ferrier_test::dft::{Direction, dft, indices, keep_half};
use ferrier_test::tiling::walk;
use ferrier_test::{Case, Errors, Field, Kind, Rng, Split, Tile, Ulp, tolerance};
use num_complex::Complex;

/// A precision under test.
pub trait Number: Real + Ulp + Into<f64> {
    /// For keys of caches.
    const NAME: &'static str;
}
impl Number for f32 {
    const NAME: &'static str = "f32";
}
impl Number for f64 {
    const NAME: &'static str = "f64";
}

pub fn exchanges() -> Vec<&'static str> {
    exchange::EXCHANGES.iter().map(|member| member.name).collect()
}

pub fn kernels() -> Vec<&'static str> {
    kernel::KERNELS.iter().map(|member| member.name).collect()
}

/// True where the tables are to be thinned (sanitizers are slow).
pub fn thin() -> bool {
    std::env::var_os("FERRIER_THIN").is_some()
}

pub fn box3(tile: Tile) -> Box3 {
    Box3::new(tile.0, tile.1)
}

pub fn tile(b: Box3) -> Tile {
    (b.lo, b.hi)
}

pub fn choice(exchange: &str, kernel: &str) -> Choice {
    Choice::new().exchange(exchange).kernel(kernel)
}

/// A number of nodes for an exchange: as the turn has it, one for those that need one.
pub fn nodes(exchange: &str, ranks: usize, turn: usize) -> usize {
    let nodes = [2, 1, 3, ranks][turn % 4].min(ranks);
    if exchange == "direct" { 1 } else { nodes }
}

/// These members; what else may be chosen, at random. None of it may matter.
pub fn any_choice(exchange: &str, kernel: &str, ranks: usize, rng: &mut Rng) -> Choice {
    choice(exchange, kernel)
        .decomposition(*rng.pick(&[None, None, Some(Decomposition::Slab), Some(Decomposition::Pencil)]))
        .ranks(*rng.pick(&[None, None, None, Some(ranks.div_ceil(2))]))
        .fuse(*rng.pick(&[None, None, Some(true), Some(false)]))
        .stream(*rng.pick(&[None, None, Some(true)]))
        .staging(*rng.pick(&[None, Some(true), Some(false)]))
        .overlap(rng.pick(&[false, false, true]).then(|| any_overlap(rng)))
        .progress(*rng.pick(&[None, None, None, Some(Progress::Thread)]))
        .block(*rng.pick(&[None, None, Some(1), Some(5), Some(100)]))
        .memory(*rng.pick(&[MemoryUse::Fast, MemoryUse::Fast, MemoryUse::Small]))
}

/// Reshapes cut in some way, each in its own.
pub fn any_overlap(rng: &mut Rng) -> Overlap {
    let mut tilings = || -> Vec<Tiling> {
        let tiling = |rng: &mut Rng| {
            Tiling::new(*rng.pick(&[0, 1, 2, 3, 5, 100]))
                .cut(*rng.pick(&[None, None, Some(0), Some(1), Some(2)]))
                .window(*rng.pick(&[0, 1, 2, 3, 50]))
                .polls(*rng.pick(&[0, 1, 10]))
                .after(*rng.pick(&[true, true, false]))
        };
        (0..*rng.pick(&[1, 1, 2, 3])).map(|_| tiling(rng)).collect()
    };
    Overlap::new().forward(tilings()).backward(tilings()).arrays(*rng.pick(&[0, 0, 1, 2]))
}

fn spec(split: Split, order: [usize; 3], shape: [usize; 3], ranks: usize, rng: &mut Rng) -> LayoutSpec {
    let spec = match split {
        Split::Bricks => LayoutSpec::bricks(),
        Split::Slabs(axis) => LayoutSpec::slabs(axis),
        Split::Pencils(axis) => LayoutSpec::pencils(axis),
        Split::Best => LayoutSpec::unconstrained(),
        Split::Boxes => {
            LayoutSpec::boxes(ferrier_test::tiles(shape, ranks, rng).into_iter().map(box3).collect())
        }
    };
    spec.order(Order::new(order).unwrap())
}

fn scale(scale: ferrier_test::Scale) -> Scale {
    match scale {
        ferrier_test::Scale::Unscaled => Scale::Unscaled,
        ferrier_test::Scale::Full => Scale::Full,
        ferrier_test::Scale::Symmetric => Scale::Symmetric,
    }
}

/// The problem of a case on so many ranks; random boxes come from `rng`.
pub fn problem(case: &Case, ranks: usize, rng: &mut Rng) -> Problem {
    let base = match case.kind {
        Kind::C2c => Problem::c2c(case.shape),
        Kind::R2c(halved) => Problem::r2c(case.shape).halved(halved),
    };
    base.axes(&case.axes)
        .input(spec(case.input, case.order_in, case.shape, ranks, rng))
        .output(spec(case.output, case.order_out, case.spectrum_shape(), ranks, rng))
        .batch(case.batch)
        .scale_forward(scale(case.scale.0))
        .scale_backward(scale(case.scale.1))
}

/// What goes in, by global index.
pub fn source<T: Ulp>(case: &Case, batch: usize, at: [usize; 3]) -> Complex<f64> {
    let field = Field::new(2026, T::BITS);
    match case.kind {
        Kind::C2c => field.complex(case.first + batch, at),
        Kind::R2c(_) => Complex::new(field.real(case.first + batch, at), 0.0),
    }
}

/// The spectra that the oracle computes for [`source`], each but once.
#[derive(Default)]
pub struct Oracle {
    known: Mutex<HashMap<String, Arc<Vec<Complex<f64>>>>>,
}

impl Oracle {
    /// One array after the other, each in C order of the spectrum's shape.
    pub fn spectrum<T: Number>(&self, case: &Case) -> Arc<Vec<Complex<f64>>> {
        let mut axes = case.axes.clone();
        axes.sort_unstable();
        let key = format!(
            "{:?} {:?} {axes:?} {} {:?} {}",
            case.shape,
            case.kind,
            case.batch,
            case.scale.0,
            T::NAME
        );
        if let Some(known) = self.known.lock().unwrap().get(&key) {
            return known.clone();
        }
        let factor = case.scale.0.factor(case.points());
        let mut all = Vec::new();
        for batch in 0..case.batch {
            let x: Vec<_> = indices(case.shape).map(|at| source::<T>(case, batch, at)).collect();
            let full = dft(&x, case.shape, &axes, Direction::Forward, factor);
            match case.kind {
                Kind::C2c => all.extend(full),
                Kind::R2c(halved) => all.extend(keep_half(&full, case.shape, halved)),
            }
        }
        let all = Arc::new(all);
        self.known.lock().unwrap().insert(key, all.clone());
        all
    }
}

/// How a run treats its arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Arrays made by the plan.
    Arrays,
    /// Vectors of the caller's own.
    Slices,
    /// One array for both sides.
    InPlace,
}

pub const MODES: [Mode; 3] = [Mode::Arrays, Mode::Slices, Mode::InPlace];

pub fn to_f64<T: Number>(x: Complex<T>) -> Complex<f64> {
    Complex::new(x.re.into(), x.im.into())
}

pub fn from_f64<T: Number>(x: Complex<f64>) -> Complex<T> {
    Complex::new(T::rounded(x.re), T::rounded(x.im))
}

/// A rank's part in a plan's own words, for filling and comparing.
#[derive(Clone, Copy)]
pub struct Local {
    pub tile: Tile,
    pub order: [usize; 3],
    pub batch: usize,
}

impl Local {
    pub fn input<T: Number>(plan: &Plan<T>, case: &Case) -> Self {
        Local { tile: tile(plan.input_box()), order: plan.input_layout().order().axes(), batch: case.batch }
    }

    pub fn output<T: Number>(plan: &Plan<T>, case: &Case) -> Self {
        Local { tile: tile(plan.output_box()), order: plan.output_layout().order().axes(), batch: case.batch }
    }

    /// Array of the batch and global index of every element, as they lie in memory.
    pub fn walk(self) -> impl Iterator<Item = (usize, [usize; 3])> {
        let volume: usize = (0..3).map(|d| self.tile.1[d].saturating_sub(self.tile.0[d])).product();
        let elements = walk(self.tile, self.order).cycle().take(self.batch * volume).enumerate();
        elements.map(move |(i, at)| (i / volume, at))
    }
}

/// A rank's part of a result.
pub type Part<T> = (Local, Vec<Complex<T>>);

/// Forward and backward on this rank, with everything that is written to
/// dirtied before. Gives back the spectrum and what came back from it.
pub fn transform<T: Number>(plan: &mut Plan<T>, case: &Case, mode: Mode) -> Result<(Part<T>, Part<T>)> {
    let (from, to) = (Local::input(plan, case), Local::output(plan, case));
    let (spectrum, back) = match (mode, case.kind) {
        (Mode::Arrays, _) => arrays(plan, case)?,
        (Mode::Slices, Kind::C2c) => complex_slices(plan, case, from, to)?,
        (Mode::Slices, Kind::R2c(_)) => real_slices(plan, case, from, to)?,
        (Mode::InPlace, _) => in_place(plan, case, from, to)?,
    };
    Ok(((to, spectrum), (from, back)))
}

type Pair<T> = (Vec<Complex<T>>, Vec<Complex<T>>);

fn dirt<T: Number>() -> Complex<T> {
    Complex::new(T::rounded(f64::NAN), T::rounded(f64::NAN))
}

fn widen<T: Number>(numbers: &[T]) -> Vec<Complex<T>> {
    numbers.iter().map(|x| Complex::new(*x, T::rounded(0.0))).collect()
}

fn complex_slices<T: Number>(plan: &mut Plan<T>, case: &Case, from: Local, to: Local) -> Result<Pair<T>> {
    let input: Vec<Complex<T>> = from.walk().map(|(b, at)| from_f64(source::<T>(case, b, at))).collect();
    let before = input.clone();
    let mut output = vec![dirt(); to.walk().count()];
    let mut back = vec![dirt(); input.len()];
    plan.forward(&input[..], &mut output[..])?;
    assert!(input == before, "forward changed its input");
    let spectrum = output.clone();
    plan.backward(&output[..], &mut back[..])?;
    assert!(output == spectrum || output.iter().any(|x| x.re.into().is_nan()), "backward changed its input");
    Ok((output, back))
}

fn real_slices<T: Number>(plan: &mut Plan<T>, case: &Case, from: Local, to: Local) -> Result<Pair<T>> {
    let input: Vec<T> = from.walk().map(|(b, at)| T::rounded(source::<T>(case, b, at).re)).collect();
    let mut output = vec![dirt(); to.walk().count()];
    let mut back = vec![T::rounded(f64::NAN); input.len()];
    plan.forward(&input[..], &mut output[..])?;
    let spectrum = output.clone();
    plan.backward(&output[..], &mut back[..])?;
    assert!(output == spectrum || output.iter().any(|x| x.re.into().is_nan()), "backward changed its input");
    Ok((output, widen(&back)))
}

fn arrays<T: Number>(plan: &mut Plan<T>, case: &Case) -> Result<Pair<T>> {
    let (mut input, mut output, mut back) = (plan.make_input()?, plan.make_output()?, plan.make_input()?);
    let real = case.kind != Kind::C2c;
    if real {
        input.fill_real(|b, at| T::rounded(source::<T>(case, b, at).re));
        back.real_mut().fill(T::rounded(f64::NAN));
    } else {
        input.fill_complex(|b, at| from_f64(source::<T>(case, b, at)));
        back.complex_mut().fill(dirt());
    }
    output.complex_mut().fill(dirt());
    plan.forward(&input, &mut output)?;
    plan.backward(&output, &mut back)?;
    let back = if real { widen(back.real()) } else { back.complex().to_vec() };
    Ok((output.complex().to_vec(), back))
}

fn in_place<T: Number>(plan: &mut Plan<T>, case: &Case, from: Local, to: Local) -> Result<Pair<T>> {
    let mut array = plan.make_in_place()?;
    if case.kind == Kind::C2c {
        let (before, after) = (from.walk().count(), to.walk().count());
        array.complex_mut().fill(dirt());
        for ((b, at), x) in from.walk().zip(array.complex_mut()) {
            *x = from_f64(source::<T>(case, b, at));
        }
        plan.call().forward_in_place(&mut array)?;
        let spectrum = array.complex()[..after].to_vec();
        array.complex_mut()[after..].fill(dirt());
        plan.call().backward_in_place(&mut array)?;
        return Ok((spectrum, array.complex()[..before].to_vec()));
    }
    array.real_mut().fill(T::rounded(f64::NAN));
    array.fill_real(|b, at| T::rounded(source::<T>(case, b, at).re));
    plan.call().forward_in_place(&mut array)?;
    let place = |b, at| array.complex_index(b, at).expect("an index of this rank's box");
    let spectrum: Vec<_> = to.walk().map(|(b, at)| array.complex()[place(b, at)]).collect();
    array.complex_mut().fill(dirt());
    let mut values = spectrum.iter();
    for (b, at) in to.walk() {
        let place = array.complex_index(b, at).expect("an index of this rank's box");
        array.complex_mut()[place] = *values.next().expect("as many as before");
    }
    plan.call().backward_in_place(&mut array)?;
    let place = |b, at| array.real_index(b, at).expect("an index of this rank's box");
    let back = from.walk().map(|(b, at)| Complex::new(array.real()[place(b, at)], T::rounded(0.0))).collect();
    Ok((spectrum, back))
}

fn merge_errors<T: Number>(
    (local, got): &Part<T>,
    want: impl Fn(usize, [usize; 3]) -> Complex<f64>,
) -> Errors {
    let mut errors = Errors::default();
    local.walk().zip(got).for_each(|((b, at), x)| errors.add(to_f64(*x), want(b, at)));
    errors
}

/// What a rank found in one mode: errors of forward and of the round trip, twice.
fn judge<T: Number>(
    plan: &mut Plan<T>,
    case: &Case,
    mode: Mode,
    want: &[Complex<f64>],
) -> Result<Vec<Errors>> {
    let shape = case.spectrum_shape();
    let volume: usize = shape.iter().product();
    let mut found = Vec::new();
    for _ in 0..2 {
        let (spectrum, back) = transform(plan, case, mode)?;
        found.push(merge_errors(&spectrum, |b, [i, j, k]| {
            want[b * volume + (i * shape[1] + j) * shape[2] + k]
        }));
        found.push(merge_errors(&back, |b, at| source::<T>(case, b, at) * case.round_trip()));
    }
    Ok(found)
}

/// The case of one array of a batch.
pub fn single(case: &Case, array: usize) -> Case {
    Case { batch: 1, first: case.first + array, ..case.clone() }
}

/// A case on ranks, with these choices, in these modes: all must be within tolerance.
pub struct Run<'a> {
    pub case: &'a Case,
    pub ranks: usize,
    /// Pretended.
    pub nodes: usize,
    pub threads: usize,
    pub choice: Choice,
    pub modes: &'a [Mode],
}

impl Run<'_> {
    /// Runs it and holds it against the oracle.
    ///
    /// # Panics
    /// With everything one needs to know to run it again.
    pub fn check<T: Number>(&self, oracle: &Oracle, rng: &mut Rng) {
        let case = self.case;
        let problem = problem(case, self.ranks, rng);
        let want = oracle.spectrum::<T>(case);
        let outcome = ferrier::ranks(self.ranks).nodes(self.nodes).threads(self.threads).run(|comm| {
            let mut plan = plan_of::<T>(&comm, &problem, &self.choice)?;
            self.modes.iter().map(|&mode| judge(&mut plan, case, mode, &want)).collect::<Result<Vec<_>>>()
        });
        let told = || {
            let Run { ranks, nodes, threads, choice, .. } = self;
            format!(
                "{} | {ranks} ranks on {nodes} nodes, {threads} threads, {}\n{choice:?}",
                case.line,
                T::NAME
            )
        };
        let found = outcome.unwrap_or_else(|error| panic!("{}: {error}\n{problem:?}", told()));
        for (m, mode) in self.modes.iter().enumerate() {
            for (call, name) in ["forward", "backward", "forward again", "backward again"].iter().enumerate()
            {
                let mut errors = Errors::default();
                found.iter().for_each(|rank| errors.merge(&rank[m][call]));
                let (shape, times) =
                    if call % 2 == 0 { (case.spectrum_shape(), 1.0) } else { (case.shape, 2.0) };
                let count = case.batch * shape.iter().product::<usize>();
                if let Err(why) = errors.within(times * tolerance::<T>(case.points()), count) {
                    panic!("{}, {mode:?}, {name}: {why}\n{problem:?}", told());
                }
            }
        }
    }
}

pub fn plan_of<T: Number>(comm: &Comm, problem: &Problem, choice: &Choice) -> Result<Plan<T>> {
    Planner::new(problem).choice(choice.clone()).draft::<T>(comm)?.build()
}
