//! Binding: a schedule becomes what one rank does, step by step, on memory of its own.

use std::sync::Arc;

use super::coding::{Coding, WorkPointers};
use super::copy::Copy;
use super::line_op::{FusedLineOp, LineOp};
use super::pass::BoundPass;
use super::twiddle::Twiddle;
use crate::codec::CodecInstance;
use crate::exchange::{Coder, Exchange, ExchangeEntry};
use crate::exec::certificate::gains;
use crate::{Comm, Real, Recipe, Result};
use ferrier_kernel::{Lines, LinesSpec};
use ferrier_plan::geometry::{Geometry, width};
use ferrier_plan::lowering::{MemoryPolicy, RankContext, WorkspaceLayout, padded_rows, volumes};
use ferrier_plan::messages::{Encoding, Volumes};
use ferrier_plan::order::{self, Action, BufferCycle, PassPart};
use ferrier_plan::recipe::{self, Distribution};
use ferrier_plan::schedule::stages;
use ferrier_plan::schedule::{AxisTransform, Direction, End, OpPosition, PointwiseOp, Reshape, Schedule};
use ferrier_plan::tiles::{self, Tiles};

/// What a rank does, in order: an [`Action`] bound to its memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Barrier,
    /// A part of a pass. Its ends, where they are messages: the reshape and the tile of it.
    Run {
        bound: usize,
        pass: usize,
        part: PassPart,
        wires: [Option<usize>; 2],
        /// How often it looks after what flies.
        polls: usize,
    },
    /// What a mover will send is encoded, and what it brought decoded.
    Encode {
        mover: usize,
        reshape: usize,
        tile: usize,
    },
    Decode {
        mover: usize,
        reshape: usize,
        tile: usize,
    },
    Start {
        mover: usize,
        reshape: usize,
        tile: usize,
        send: usize,
        recv: usize,
        /// Or is it only marked, and runs in the wait?
        run: bool,
    },
    Wait {
        mover: usize,
        reshape: usize,
        tile: usize,
        /// Run it now, between these places.
        run: Option<[usize; 2]>,
    },
}

/// One direction, out of place or in place, bound to this rank.
pub(crate) struct Variant<T> {
    pub passes: Vec<BoundPass<T>>,
    pub steps: Vec<Step>,
    pub areas: WorkspaceLayout,
    pub movers: Arc<Vec<Exchange>>,
    /// Name of each reshape, and the bytes this rank takes from others in it.
    pub reshapes: Vec<(String, u64)>,
    /// The bytes that this rank takes from others, by mover.
    pub taken: Vec<u64>,
    /// What encodes and decodes, by mover, and the reshape of each.
    pub codings: Vec<Option<Arc<Coding<T>>>>,
    pub reshape_of: Vec<usize>,
    /// By how much errors of each reshape grow until the end.
    pub gains: Vec<f64>,
    /// The bytes that this rank sends without encoding them.
    pub plain: u64,
    pub input: Geometry,
    pub output: Geometry,
    /// Are input and output real?
    pub real: [bool; 2],
}

impl<T: Real> Variant<T> {
    /// What encodes the parts of a mover.
    pub fn coder(&self, mover: usize) -> Option<Arc<dyn Coder>> {
        let coding = self.codings.get(mover)?.clone()?;
        Some(coding)
    }
}

/// Factors of a long transform, by its points, its rows and whether they are those of `backward`.
type Twiddles<T> = ((usize, usize, bool), Arc<Twiddle<T>>);

/// Kernels' tables, made once for each kind of line.
pub(crate) struct Tables<T> {
    pub kernel: String,
    pub made: Vec<(LinesSpec, Arc<dyn Lines<T>>)>,
    pub twiddles: Vec<Twiddles<T>>,
}

impl<T: Real> Tables<T> {
    fn lines(&mut self, spec: &LinesSpec) -> Result<Arc<dyn Lines<T>>> {
        if let Some((_, lines)) = self.made.iter().find(|(made, _)| made == spec) {
            return Ok(lines.clone());
        }
        let lines: Arc<dyn Lines<T>> =
            ferrier_kernel::lines::<T>(crate::kernel::find(&self.kernel)?, spec).into();
        self.made.push((*spec, lines.clone()));
        Ok(lines)
    }

    fn twiddle(&mut self, points: usize, rows: usize, backward: bool) -> Arc<Twiddle<T>> {
        let key = (points, rows, backward);
        if let Some((_, twiddle)) = self.twiddles.iter().find(|(made, _)| *made == key) {
            return twiddle.clone();
        }
        let twiddle = Arc::new(Twiddle::new(points, rows, backward));
        self.twiddles.push((key, twiddle.clone()));
        twiddle
    }

    /// What is done to the lines of a leg.
    fn tool(&mut self, transform: &AxisTransform) -> Result<LineOp<T>> {
        let LinesSpec { n, kind, .. } = transform.spec;
        let lines = self.lines(&transform.spec)?;
        let Some(touch) = &transform.fused_op else { return Ok(LineOp::Lines(lines)) };
        let width = if touch.position == OpPosition::Before { kind.width_in() } else { kind.width_out() };
        let (before, after): (Arc<dyn Lines<T>>, Arc<dyn Lines<T>>) = match touch.position {
            OpPosition::Before => (Arc::new(Copy { width }), lines),
            OpPosition::After => (lines, Arc::new(Copy { width })),
            OpPosition::Between(back) => (lines, self.lines(&back)?),
        };
        let twiddle = match touch.op {
            PointwiseOp::Called => None,
            PointwiseOp::Twiddles { points, backward } => Some(self.twiddle(points, n, backward)),
        };
        let (runs, ragged) = (touch.runs.clone(), touch.ragged.clone());
        Ok(LineOp::FusedLineOp(FusedLineOp { before, after, runs, ragged, width, twiddle }))
    }
}

pub(crate) type Exchanges = Arc<Vec<Exchange>>;

/// What parts are encoded with, if they are.
pub(crate) struct WireCodec<T> {
    pub coat: CodecInstance<T>,
    pub packing: Encoding,
    pub grounds: Arc<WorkPointers<T>>,
}

/// The movers of some directions (each with its cuts), in place or not: one for every tile.
pub(crate) fn movers(
    comm: &Comm,
    recipe: &Recipe,
    ways: &[(&Schedule, &[Tiles])],
    member: &ExchangeEntry,
    (packing, staged): (Option<&Encoding>, bool),
) -> Result<Vec<Exchanges>> {
    let sends = member.sends_messages(comm.node_count());
    let Some(make) = member.make.filter(|_| sends) else {
        return Ok(vec![Exchanges::default(); ways.len()]);
    };
    let number = recipe.precision.bytes();
    let mut all: Vec<Volumes> = Vec::new();
    let mut count = 0;
    for (plan, cuts) in ways {
        // What flies together must not take cycle in the same memory: two ranks could each wait
        // for the turn that the other has.
        let (first, together) = (count, order::in_flight_together(&order::actions(plan, cuts)));
        for (reshape, cut) in plan.reshapes.iter().zip(*cuts) {
            let of = |tile| Volumes {
                reshape: if together { first } else { count },
                via_host: staged,
                ..volumes(reshape, (cut, tile), comm.rank(), number, packing)
            };
            all.extend((0..cut.count()).map(of));
            count += 1;
        }
    }
    let mut made = make(comm, &all)?.into_iter();
    let share = |(_, cuts): &(&Schedule, &[Tiles])| {
        let tiles: usize = cuts.iter().map(Tiles::count).sum();
        Arc::new(made.by_ref().take(tiles).collect())
    };
    Ok(ways.iter().map(share).collect())
}

/// Do ranks load what was sent where its sender stored it?
pub(crate) fn lends(movers: &[Exchange]) -> bool {
    movers.iter().any(|mover| mover.buffers().remote.is_some())
}

/// Binds a schedule to this rank and its memory.
pub(crate) fn bind<T: Real>(
    comm: &Comm,
    recipe: &Recipe,
    plan: &Schedule,
    (direction, in_place, memory_policy): (Direction, bool, MemoryPolicy),
    (cuts, movers): (&[Tiles], &Exchanges),
    wrapping: Option<&WireCodec<T>>,
    tables: &mut Tables<T>,
) -> Result<Variant<T>> {
    let halved = recipe.padded_axis();
    let (rank, number, batch) = (comm.rank(), recipe.precision.bytes(), recipe.batch);
    let memory = recipe.memory;
    let ranks = comm.size();
    let cuts = &tiles::fit(plan, cuts, in_place);
    let actions = order::actions(plan, cuts);
    let mut cycle = BufferCycle::new(plan, &actions);
    if lends(movers) {
        // Only at the end of a transform does a sender know that all was loaded.
        cycle.buffers[0] = plan.reshapes.len().max(1);
    }
    let packing = wrapping.map(|wrapping| &wrapping.packing);
    let packed_rows = direction == Direction::Backward;
    let buffers: Vec<_> = movers.iter().map(|mover| mover.buffers()).collect();
    let site = RankContext {
        rank,
        ranks,
        batch,
        scalar_bytes: number,
        memory,
        in_place,
        memory_policy,
        halved,
        packed_rows,
        cuts,
        cycle,
        exchanges: &buffers,
        encoding: packing,
    };
    let areas = site.workspace(plan);
    let most_polls = cuts.iter().map(|cut| cut.polls).max().unwrap_or(0);
    let mut passes = Vec::new();
    let mut steps = Vec::new();
    // Members that encode while they send need no steps for it.
    let coded = |reshape: usize, tile: usize| {
        let mover = site.exchange(reshape, tile);
        (packing.is_some() && !movers[mover].buffers().encodes).then_some(mover)
    };
    for action in actions {
        if let Action::Start { reshape, tile } = action
            && let Some(mover) = coded(reshape, tile)
        {
            steps.push(Step::Encode { mover, reshape, tile });
        }
        steps.push(match action {
            Action::Barrier => Step::Barrier,
            Action::Run { pass, part } => {
                let lines = &mut |transform: &AxisTransform| tables.tool(transform);
                passes.push(BoundPass::new(&site, plan, &areas, &plan.passes[pass], part, lines)?);
                let wires = [&plan.passes[pass].from, &plan.passes[pass].to].map(|end| match end {
                    End::Message(number) => Some(*number),
                    _ => None,
                });
                let polls = wires.iter().flatten().map(|&number| cuts[number].polls).max();
                Step::Run { bound: passes.len() - 1, pass, part, wires, polls: polls.unwrap_or(most_polls) }
            }
            // A reshape in one tile goes in the wait for it: blocking calls are the fastest then.
            Action::Start { reshape, tile } => {
                let [send, recv] = [0, 1].map(|side| site.tile_at(&areas, reshape, tile, rank, side));
                let run = cuts[reshape].count() > 1;
                Step::Start { mover: site.exchange(reshape, tile), reshape, tile, send, recv, run }
            }
            Action::Wait { reshape, tile } => {
                let [send, recv] = [0, 1].map(|side| site.tile_at(&areas, reshape, tile, rank, side));
                let run = (cuts[reshape].count() == 1).then_some([send, recv]);
                Step::Wait { mover: site.exchange(reshape, tile), reshape, tile, run }
            }
        });
        if let Action::Wait { reshape, tile } = action
            && let Some(mover) = coded(reshape, tile)
        {
            steps.push(Step::Decode { mover, reshape, tile });
        }
    }
    let end = |state: &Distribution| {
        let (part, order) = (state.layout.boxes()[rank], state.layout.order());
        match in_place && state.real && padded_rows(state, halved) {
            true => Geometry::padded_real(part, order),
            false => Geometry::dense(part, order, state.real),
        }
    };
    let (input, output) = (end(&plan.input), end(&plan.output));
    let tiled = |(reshape, cut): (&Reshape, &Tiles)| -> Vec<u64> {
        (0..cut.count()).map(|tile| taken(reshape, (cut, tile), rank, number)).collect()
    };
    let by_tile: Vec<Vec<u64>> = plan.reshapes.iter().zip(cuts).map(tiled).collect();
    let named = |(reshape, bytes): (&Reshape, &Vec<u64>)| (reshape.name.clone(), bytes.iter().sum());
    let reshapes = plan.reshapes.iter().zip(&by_tile).map(named).collect();
    let taken = by_tile.concat();
    let tiles =
        || cuts.iter().enumerate().flat_map(|(reshape, cut)| (0..cut.count()).map(move |t| (reshape, t)));
    let reshape_of: Vec<usize> = tiles().map(|(reshape, _)| reshape).collect();
    let coding = |(reshape, tile)| {
        let WireCodec { coat, packing, grounds } = wrapping?;
        let of = &plan.reshapes[reshape];
        let sides = [0, 1].map(|side| site.encoded_segments(&areas, of, reshape, tile, side));
        let bytes = volumes(of, (&cuts[reshape], tile), rank, number, None).to;
        let plain = bytes.iter().enumerate().map(|(peer, &bytes)| match packing.is_encoded(rank, peer) {
            true => 0,
            false => bytes,
        });
        Some(Arc::new(Coding::new(coat, packing, grounds, rank, sides, plain.collect())))
    };
    let codings: Vec<_> = if movers.is_empty() { Vec::new() } else { tiles().map(coding).collect() };
    let plain = if wrapping.is_some() { 0 } else { sent(recipe, direction, rank) };
    let gains = gains(recipe, direction);
    let real = [plan.input.real, plan.output.real];
    let movers = movers.clone();
    Ok(Variant {
        passes,
        steps,
        areas,
        movers,
        reshapes,
        taken,
        codings,
        reshape_of,
        gains,
        plain,
        input,
        output,
        real,
    })
}

/// The bytes that a rank sends to others in all reshapes of one direction,
/// where nothing is encoded.
fn sent(recipe: &Recipe, direction: Direction, rank: usize) -> u64 {
    let mut bytes = 0;
    for stage in stages(recipe, direction, false) {
        if let recipe::Step::Reshape { from, to } = &stage.step {
            let own = &from.boxes()[rank];
            let others = to.boxes().iter().enumerate().filter(|(peer, _)| *peer != rank);
            let elements: usize = others.map(|(_, to)| own.intersect(to).volume()).sum();
            bytes += elements * width(stage.before.real) * recipe.batch * recipe.precision.bytes();
        }
    }
    bytes as u64
}

/// The bytes that a rank takes from others in a tile; a number is so many.
fn taken(reshape: &Reshape, (cut, tile): (&Tiles, usize), rank: usize, number: usize) -> u64 {
    let own = &reshape.to.boxes()[rank];
    let others = reshape.from.boxes().iter().enumerate().filter(|(source, _)| *source != rank);
    let elements: usize = others.map(|(_, from)| cut.between(from, own, tile).volume()).sum();
    (elements * width(reshape.real) * cut.arrays(tile).len() * number) as u64
}
