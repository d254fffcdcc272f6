//! A transform run block by block, as papers time them: every 1-D transform, transposition, pack, exchange and unpack
//! is a plan of its own. The bits of the result are those of the fused plan.

use std::time::Instant;

use ferrier::{
    Array, Choice, Comm, Data, Event, EventKind, Kind, LayoutSpec, Plan, Precision, Problem, Real, Recipe,
    Scale, Step,
};
use serde::Serialize;

use crate::agree::{RankGroup, agree, agree_result, draft};
use crate::failure::{Failure, Outcome, fail};
use crate::in_precision;
use crate::noise::Noise;
use crate::table::{columns, digits, plural};
use crate::tiling::{is_tiled, overlap_text, with_messages};
use crate::timing::{Times, median, timed};

/// Options of the benchmark.
pub struct BlockBench {
    /// The transform.
    pub problem: Problem,
    /// The precision of its elements.
    pub precision: Precision,
    /// The choice; tiles make exchanges non-blocking.
    pub choice: Choice,
    /// Number of repetitions; the papers take 3.
    pub repeat: usize,
    /// The user's lengths, for the report.
    pub shape: Vec<usize>,
}

/// A block; the keys are part of the contract.
#[derive(Clone, Debug, Serialize)]
pub struct BlockRow {
    /// The block's name.
    pub block: String,
    /// The least of all ranks, of the medians over repetitions.
    pub min_ms: f64,
    /// The mean of all ranks.
    pub mean_ms: f64,
    /// The most of all ranks.
    pub max_ms: f64,
    /// The mean over that of the whole transform.
    pub share: f64,
    /// The mean over that of the same block with blocking exchanges; `None` if exchanges are blocking, or it has none.
    pub to_blocking: Option<f64>,
}

/// One direction; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct DirectionBlocks {
    /// `forward` or `backward`.
    pub direction: &'static str,
    /// The blocks in the order in which they run, then the rest.
    pub blocks: Vec<BlockRow>,
    /// All blocks together, one after the other.
    pub unfused: Times,
    /// The same transform in fused passes.
    pub fused: Times,
}

/// The report; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct BlockReport {
    /// Lengths of the user's axes.
    pub shape: Vec<usize>,
    /// The ranks.
    #[serde(flatten)]
    pub group: RankGroup,
    /// The exchange.
    pub exchange: String,
    /// The tiles, as text; `None`: blocking.
    pub tiles: Option<String>,
    /// Are the bits of both directions those of the fused plan? Always true: otherwise the benchmark fails.
    pub same_bits: bool,
    /// Both directions.
    pub directions: Vec<DirectionBlocks>,
}

impl BlockBench {
    /// Runs both directions block by block and compares the bits with those of the fused plan. Collective.
    ///
    /// # Errors
    /// Those of the library; other bits.
    pub fn run(&self, comm: &Comm) -> Outcome<BlockReport> {
        in_precision!(self.precision, T => self.run_as::<T>(comm))
    }

    fn run_as<T: Real>(&self, comm: &Comm) -> Outcome<BlockReport> {
        let choice = with_messages(comm, &self.choice)?;
        let tiled = self.choice.overlap.as_ref().is_some_and(is_tiled);
        // Scales of single axes would round differently.
        let problem = self.problem.clone().scale_backward(Scale::Unscaled);
        let recipe = draft::<T>(comm, &problem, choice.clone())?.recipe().clone();
        agree(comm, supported(&problem, &recipe))?;
        let mut fused = Fused::<T>::new(comm, &problem, &choice)?;
        let mut chain = Chain::<T>::new(comm, &recipe, &choice, tiled)?;
        let blocking = match tiled {
            true => {
                let mut chain = Chain::<T>::new(comm, &recipe, &choice, false)?;
                Some([chain.measure(comm, false, self.repeat)?, chain.measure(comm, true, self.repeat)?])
            }
            false => None,
        };
        let mut directions = Vec::new();
        for backward in [false, true] {
            let (blocks, seconds) = chain.measure(comm, backward, self.repeat)?;
            let whole = fused.measure(comm, backward, self.repeat)?;
            chain.compare(comm, &fused, backward)?;
            let reference = blocking.as_ref().map(|both| &both[usize::from(backward)].0);
            let mut blocks = rows(&blocks, reference);
            if !backward {
                blocks.insert(0, alone("allocate", chain.allocate_ms));
                blocks.push(alone("free", fused.free_ms));
            }
            directions.push(DirectionBlocks {
                direction: if backward { "backward" } else { "forward" },
                blocks,
                unfused: Times::new(&seconds),
                fused: Times::new(&whole),
            });
        }
        Ok(BlockReport {
            shape: self.shape.clone(),
            group: RankGroup::new(comm),
            exchange: recipe.exchange.clone(),
            tiles: tiled.then(|| overlap_text(&recipe.overlap, self.shape.len())),
            same_bits: true,
            directions,
        })
    }
}

/// Transforms that have blocks of their own: complex and real ones of whole arrays or of the lowest modes.
fn supported(problem: &Problem, recipe: &Recipe) -> Outcome {
    let fourier = recipe.kinds.iter().all(|kind| matches!(kind, Kind::Identity | Kind::Complex | Kind::Real));
    let plain = recipe.sphere.is_none() && recipe.long.is_none() && recipe.codec == ferrier::codec::RAW;
    match fourier && plain && recipe.support == [None; 3] && problem.tolerance.is_none() {
        true => Ok(()),
        false => {
            fail("--blocks is for c2c and r2c in three or two axes, without codec, tolerance and spheres")
        }
    }
}

/// The usual plan, to compare with.
struct Fused<T: Real> {
    plan: Plan<T>,
    input: Array<T>,
    output: Array<T>,
    back: Array<T>,
    free_ms: f64,
}

impl<T: Real> Fused<T> {
    fn new(comm: &Comm, problem: &Problem, choice: &Choice) -> Outcome<Self> {
        let spare = draft::<T>(comm, problem, choice.clone())?.build()?;
        let start = Instant::now();
        drop(spare);
        let free_ms = comm.max(&[start.elapsed().as_secs_f64() * 1e3])?[0];
        let plan = draft::<T>(comm, problem, choice.clone())?.build()?;
        let arrays = plan.make_input().and_then(|input| Ok((input, plan.make_output()?, plan.make_input()?)));
        let (mut input, output, back) = agree_result(comm, arrays)?;
        Noise::new(plan.recipe().shape, 1).fill(&mut input);
        Ok(Fused { plan, input, output, back, free_ms })
    }

    fn measure(&mut self, comm: &Comm, backward: bool, repeat: usize) -> Outcome<Vec<f64>> {
        let Fused { plan, input, output, back, .. } = self;
        let mut once = || match backward {
            false => plan.forward(&*input, output),
            true => plan.backward(&*output, back),
        };
        once()?;
        Ok((0..repeat).map(|_| timed(comm, &mut once)).collect::<ferrier::Result<_>>()?)
    }
}

/// A step of the recipe as a plan of its own.
struct Link<T: Real> {
    plan: Plan<T>,
    /// The name of a transform or a transposition; `None`: a reshape, which has several blocks.
    name: Option<String>,
}

/// All steps, and the arrays between them.
struct Chain<T: Real> {
    links: Vec<Link<T>>,
    arrays: Vec<Array<T>>,
    allocate_ms: f64,
}

impl<T: Real> Chain<T> {
    fn new(comm: &Comm, recipe: &Recipe, choice: &Choice, tiled: bool) -> Outcome<Self> {
        let distributions = recipe.distributions();
        let mut links = Vec::new();
        for (step, ends) in recipe.steps.iter().zip(distributions.windows(2)) {
            let lengths = ends[0].layout.shape();
            let (problem, name) = match step {
                Step::Transform { axis, kind } => {
                    let mut kinds = [Kind::Identity; 3];
                    kinds[*axis] = *kind;
                    let mut keep = recipe.keep;
                    (0..3).filter(|other| other != axis).for_each(|other| keep[other] = ferrier::Keep::All);
                    let problem = Problem::mixed(lengths, kinds).keep(keep).sign(recipe.sign);
                    (problem, Some(format!("fft axis {axis}")))
                }
                Step::Reshape { from, to } => {
                    let local = from.boxes() == to.boxes();
                    (Problem::redistribute(lengths), local.then(|| "transpose".to_string()))
                }
            };
            let problem = if ends[0].real { problem } else { problem.complex_values() };
            let layout =
                |layout: &ferrier::Layout| LayoutSpec::boxes(layout.boxes().to_vec()).order(layout.order());
            let problem =
                problem.input(layout(&ends[0].layout)).output(layout(&ends[1].layout)).batch(recipe.batch);
            let problem = problem.scale_backward(Scale::Unscaled);
            let mut own = Choice::new().kernel(&*recipe.kernel).exchange(&*recipe.exchange);
            own.threads = choice.threads;
            own.overlap = choice.overlap.clone().filter(|_| tiled && name.is_none());
            links.push(Link { plan: draft::<T>(comm, &problem, own)?.build()?, name });
        }
        let start = Instant::now();
        let mut arrays = Vec::new();
        for (number, link) in links.iter().enumerate() {
            if number == 0 {
                arrays.push(agree_result(comm, link.plan.make_input())?);
            }
            arrays.push(agree_result(comm, link.plan.make_output())?);
        }
        let allocate_ms = comm.max(&[start.elapsed().as_secs_f64() * 1e3])?[0];
        if let Some(input) = arrays.first_mut() {
            Noise::new(recipe.shape, 1).fill(input);
        }
        Ok(Chain { links, arrays, allocate_ms })
    }

    /// Names and milliseconds of the blocks of this rank, of one transform.
    fn once(&mut self, backward: bool) -> ferrier::Result<Vec<(String, f64)>> {
        let mut blocks = Vec::new();
        let count = self.links.len();
        for number in 0..count {
            let at = if backward { count - 1 - number } else { number };
            let Link { plan, name } = &mut self.links[at];
            let (before, after) = self.arrays.split_at_mut(at + 1);
            match backward {
                false => plan.forward(&before[at], &mut after[0])?,
                true => plan.backward(&after[0], &mut before[at])?,
            }
            let events = plan.events();
            let known: f64 = events.iter().map(Event::ms).sum();
            match name {
                Some(name) => add(&mut blocks, name, known),
                None => split(&mut blocks, &events),
            }
            add(&mut blocks, "rest", plan.elapsed_ms() - known);
        }
        Ok(blocks)
    }

    /// For each block its name and the times of all ranks, medians over repetitions; and the seconds of each
    /// repetition. Collective.
    fn measure(&mut self, comm: &Comm, backward: bool, repeat: usize) -> Outcome<(Blocks, Vec<f64>)> {
        self.once(backward)?;
        let (mut all, mut seconds) = (Vec::new(), Vec::new());
        for _ in 0..repeat {
            seconds.push(timed(comm, || {
                all.push(self.once(backward)?);
                Ok(())
            })?);
        }
        let names: Vec<String> = all[0].iter().map(|(name, _)| name.clone()).collect();
        let own: Vec<f64> =
            (0..names.len()).map(|at| median(&all.iter().map(|one| one[at].1).collect::<Vec<_>>())).collect();
        let bytes: Vec<u8> = own.iter().flat_map(|ms| ms.to_le_bytes()).collect();
        let ranks: Vec<Vec<f64>> = comm
            .all_gather(&bytes)?
            .iter()
            .map(|bytes| {
                bytes
                    .chunks_exact(8)
                    .map(|ms| f64::from_le_bytes(ms.try_into().unwrap_or_default()))
                    .collect()
            })
            .collect();
        let of = |at: usize| ranks.iter().filter_map(|rank| rank.get(at).copied()).collect();
        Ok((names.into_iter().enumerate().map(|(at, name)| (name, of(at))).collect(), seconds))
    }

    /// Fails where the bits differ from those of the fused plan. Collective.
    fn compare(&self, comm: &Comm, fused: &Fused<T>, backward: bool) -> Outcome {
        let (own, theirs) = match backward {
            false => (self.arrays.last(), &fused.output),
            true => (self.arrays.first(), &fused.back),
        };
        let bits = |array: &Array<T>| {
            array.scalars().iter().map(|scalar| scalar.widened().to_bits()).collect::<Vec<_>>()
        };
        let same = own.is_some_and(|own| bits(own) == bits(theirs));
        let direction = if backward { "backward" } else { "forward" };
        let outcome = match same {
            true => Ok(()),
            false => {
                Err(Failure::wrong(format!("the blocks of {direction} give other bits than the fused plan")))
            }
        };
        agree(comm, outcome)
    }
}

/// Names of blocks, and the milliseconds of each rank.
type Blocks = Vec<(String, Vec<f64>)>;

/// Adds a time to a block.
fn add(blocks: &mut Vec<(String, f64)>, name: &str, ms: f64) {
    match blocks.iter_mut().find(|(known, _)| known == name) {
        Some((_, sum)) => *sum += ms,
        None => blocks.push((name.into(), ms)),
    }
}

/// Adds the events of a reshape: a pass stores a tile to messages (pack) before it is posted, or loads it (unpack)
/// after the wait for it.
fn split(blocks: &mut Vec<(String, f64)>, events: &[Event]) {
    let (mut waited, mut unpacked) = (0, 0);
    // All of them, so that every rank and repetition has the same blocks.
    ["pack", "post", "test", "wait", "unpack"].iter().for_each(|name| add(blocks, name, 0.0));
    for event in events.iter().filter(|event| event.packet.is_none()) {
        let name = match event.kind {
            EventKind::Post => "post",
            EventKind::Wait => {
                waited += 1;
                "wait"
            }
            EventKind::Barrier => "wait",
            _ if unpacked < waited => {
                unpacked += 1;
                "unpack"
            }
            _ => "pack",
        };
        add(blocks, name, event.ms() - event.test_ms);
        add(blocks, "test", event.test_ms);
    }
}

/// The rows of blocks, the rest last.
fn rows(blocks: &Blocks, blocking: Option<&Blocks>) -> Vec<BlockRow> {
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len().max(1) as f64;
    let whole: f64 = blocks.iter().map(|(_, times)| mean(times)).sum();
    let mut rows: Vec<BlockRow> = blocks
        .iter()
        .map(|(name, times)| {
            let reference = blocking.and_then(|all| all.iter().find(|(own, _)| own == name));
            let ratio = reference.map(|(_, reference)| mean(times) / mean(reference));
            BlockRow {
                block: name.clone(),
                min_ms: times.iter().copied().fold(f64::INFINITY, f64::min),
                mean_ms: mean(times),
                max_ms: times.iter().copied().fold(0.0, f64::max),
                share: mean(times) / whole,
                to_blocking: ratio.filter(|ratio| ratio.is_finite()),
            }
        })
        .collect();
    rows.sort_by_key(|row| row.block == "rest");
    rows
}

/// A block that is not part of a transform.
fn alone(name: &str, ms: f64) -> BlockRow {
    BlockRow { block: name.into(), min_ms: ms, mean_ms: ms, max_ms: ms, share: 0.0, to_blocking: None }
}

impl BlockReport {
    /// The report as text.
    pub fn text(&self) -> String {
        let RankGroup { ranks, nodes, threads, .. } = self.group;
        let shape = crate::table::shape_text(&self.shape);
        let tiles = self.tiles.as_ref().map_or("blocking".into(), |tiles| format!("tiles of {tiles}"));
        let on = if nodes > 1 { format!(" on {nodes} nodes") } else { String::new() };
        let mut out = format!("{shape}, {}{on} of {}, ", plural(ranks, "rank"), plural(threads, "thread"));
        out += &format!("exchange {}, {tiles}; every block is a plan of its own; same bits\n", self.exchange);
        let relative = self.tiles.is_some();
        for DirectionBlocks { direction, blocks, unfused, fused } in &self.directions {
            let row = |row: &BlockRow| {
                let mut cells = vec![row.block.clone()];
                cells.extend([row.min_ms, row.mean_ms, row.max_ms].map(digits));
                cells.push(if row.share > 0.0 {
                    format!("{:.1} %", 100.0 * row.share)
                } else {
                    String::new()
                });
                cells.extend(relative.then(|| row.to_blocking.map_or(String::new(), digits)));
                cells
            };
            let mut heads = vec!["block", "min ms", "mean ms", "max ms", "share"];
            heads.extend(relative.then_some("to blocking"));
            out += &format!("\n{direction}\n{}", columns(&heads, blocks.iter().map(row)));
            let [unfused, fused] = [unfused.median_ms, fused.median_ms];
            out += &format!("in blocks {} ms, in fused passes {} ms\n", digits(unfused), digits(fused));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrier::{Keep, Overlap, Tiling};

    #[test]
    fn blocks_have_the_bits_of_fused_passes() {
        let slabs = Problem::c2c([8, 6, 10]);
        let real = Problem::r2c([6, 8, 9]).input(LayoutSpec::bricks()).output(LayoutSpec::bricks());
        let kept = Problem::c2c([8, 8, 8]).keep([Keep::Lowest(4); 3]).output(LayoutSpec::unconstrained());
        for (problem, ranks) in [(slabs.clone().batch(2), 2), (real, 4), (kept, 2), (slabs, 1)] {
            for tile in [0, 2] {
                let choice = Choice::new().overlap((tile > 0).then(|| Overlap::uniform(Tiling::new(tile))));
                let choice = choice.exchange(if ranks > 1 { "all_to_allv" } else { "direct" });
                if ranks == 1 && tile > 0 {
                    continue;
                }
                let bench = BlockBench {
                    problem: problem.clone(),
                    precision: Precision::F64,
                    choice,
                    repeat: 2,
                    shape: vec![8; 3],
                };
                let reports = ferrier::ranks(ranks)
                    .run(|comm| bench.run(&comm).map_err(Failure::into_error))
                    .unwrap_or_else(|error| panic!("{problem:?}, tiles of {tile}: {error}"));
                let report = &reports[0];
                let names: Vec<_> =
                    report.directions[0].blocks.iter().map(|row| row.block.as_str()).collect();
                assert_eq!(names.contains(&"pack"), ranks > 1, "{names:?}");
                assert!(names.contains(&"fft axis 0") && names.contains(&"free"), "{names:?}");
                let share: f64 = report.directions[1].blocks.iter().map(|row| row.share).sum();
                assert!((share - 1.0).abs() < 1e-9);
                assert!(report.text().contains("same bits"));
            }
        }
    }
}
