//! Binding: a schedule becomes launches, step by step, on memory of a GPU.

use std::sync::Arc;

use super::batch::Batch;
use super::codec::{Chunks, Lengths, table};
use super::fft::Cufft;
use super::gpu::Gpu;
use super::tables::{LineTable, Lone, MoveTable};
use super::touch::Touching;
use super::tuning::{Cut, Wish};
use super::upload::Tables;
use crate::exchange::Coder;
use crate::exec::cpu::bind::Exchanges;
use crate::{Box3, Real, Recipe, Result};
use ferrier_plan::geometry::Axes;
use ferrier_plan::geometry::{Base, Geometry, Piece, width};
use ferrier_plan::lowering::{MemoryPolicy, MessageEnd, RankContext, WorkspaceLayout, padded_rows, volumes};
use ferrier_plan::messages::Encoding;
use ferrier_plan::modes::IndexRun;
use ferrier_plan::order::{self, Action, BufferCycle, PassPart};
use ferrier_plan::recipe::Distribution;
use ferrier_plan::schedule::{AxisTransform, OpPosition, Pass, Schedule};
use ferrier_plan::tiles::{self, Tiles};

/// A launch of the kernel of lines.
pub(super) struct Lines {
    pub wish: Wish,
    pub cut: Cut,
    /// Strips of a line before and after; 0: one that holds all of it.
    pub strips: [usize; 2],
    /// All lines, where no table is needed to tell them.
    pub lone: Option<Lone>,
    /// Is what is loaded not wanted again soon?
    pub flowing: bool,
    /// May it come while the kernel before still runs?
    pub early: bool,
    pub cells: usize,
    pub count: usize,
    pub strips_at: usize,
    pub roots: usize,
    pub blocks: u64,
    pub scale: f64,
    /// What is done to the modes.
    pub touch: Option<Touching>,
}

/// A launch of the kernel of moves.
pub(super) struct Moves {
    pub unit: usize,
    pub turn: bool,
    pub at: usize,
    pub count: usize,
    pub blocks: u64,
    pub scale: f64,
}

/// The work of a pass.
pub(super) enum Work {
    Nothing,
    Lines(Lines),
    Moves(Moves),
    Batch(Batch),
    /// The whole array, or batches of its planes or rows, from the input to
    /// the output; then, maybe, times a factor where it lies.
    Whole(Cufft, Option<Moves>),
}

/// A pass of one rank.
pub(super) struct BoundPass {
    pub name: String,
    /// Bytes loaded and stored, as a pass over memory counts them.
    pub bytes: u64,
    pub flops: f64,
    pub work: Work,
}

/// What a rank does, in order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Barrier,
    Run(usize),
    /// A tile of a reshape: to main memory and off. Where there is only one,
    /// it goes in the wait for it.
    Start(Flight),
    Wait(Flight),
    /// Values of a reshape's tile to bytes before it starts, and back after it has come.
    Encode(Chunks),
    Decode(Chunks),
}

/// A tile of a reshape; places in bytes of the workspace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub mover: usize,
    pub reshape: usize,
    pub send: (usize, usize),
    pub recv: (usize, usize),
    /// Does it fly on its own?
    pub tiled: bool,
}

/// One direction, out of place or in place, bound to this rank.
pub(super) struct Variant {
    pub passes: Vec<BoundPass>,
    pub steps: Vec<Step>,
    pub areas: WorkspaceLayout,
    pub movers: Exchanges,
    pub reshapes: Vec<String>,
    /// How long the parts of each mover are, where they are encoded.
    pub coders: Vec<Option<Arc<dyn Coder>>>,
    pub input: Geometry,
    pub output: Geometry,
    /// Are input and output real?
    pub real: [bool; 2],
    /// Where the pointers of a call go, among the tables; a few sets of them.
    pub bases: usize,
}

/// What all variants of a plan share.
pub(super) struct Binder<'a, T> {
    pub gpu: &'a Gpu,
    pub recipe: &'a Recipe,
    pub rank: usize,
    pub engine: Engine,
    /// How parts are encoded.
    pub packing: Option<&'a Encoding>,
    pub tables: Tables,
    /// Arrays of the pass that is being bound.
    pub arrays: usize,
    /// Is the variant that is being bound in place?
    pub in_place: bool,
    /// Bytes of the two scratches of [`Batch`]es.
    pub scratch: [usize; 2],
    /// Bytes of cuFFT's work area.
    pub cufft: usize,
    pub number: std::marker::PhantomData<T>,
}

/// What transforms: names that [`Choice::kernel`](crate::Choice::kernel) takes on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// The faster one.
    Auto,
    /// Our own kernel wherever it has the length.
    Native,
    /// cuFFT everywhere.
    Cufft,
}

/// Sets of pointers that are kept on the GPU, so that callers may change arrays.
pub(super) const SETS: usize = 8;

/// Pointers of a set.
pub(super) fn set_len(ranks: usize) -> usize {
    (ranks + 1) * crate::transport::EXPOSED
}

impl<T: Real> Binder<'_, T> {
    /// Binds a schedule to this rank and its memory.
    pub fn variant(
        &mut self,
        plan: &Schedule,
        in_place: bool,
        (cuts, movers): (&[Tiles], &Exchanges),
    ) -> Result<Variant> {
        let recipe = self.recipe;
        self.in_place = in_place;
        let halved = recipe.padded_axis();
        let cuts = &tiles::fit(plan, cuts, in_place);
        let actions = order::actions(plan, cuts);
        let buffers: Vec<_> = movers.iter().map(|mover| mover.buffers()).collect();
        let site = RankContext {
            rank: self.rank,
            ranks: recipe.ranks(),
            batch: recipe.batch,
            scalar_bytes: size_of::<T>(),
            memory: crate::MemoryUse::Small,
            in_place,
            memory_policy: MemoryPolicy::default(),
            halved,
            packed_rows: false,
            cuts,
            cycle: BufferCycle::new(plan, &actions),
            exchanges: &buffers,
            encoding: self.packing,
        };
        let end = |state: &Distribution| {
            let (part, order) = (state.layout.boxes()[self.rank], state.layout.order());
            match in_place && state.real && padded_rows(state, halved) {
                true => Geometry::padded_real(part, order),
                false => Geometry::dense(part, order, state.real),
            }
        };
        let (input, output) = (end(&plan.input), end(&plan.output));
        let areas = site.workspace(plan);
        let bases = self.tables.room(SETS * set_len(recipe.ranks()));
        let mut variant = Variant {
            passes: Vec::new(),
            steps: Vec::new(),
            areas,
            movers: movers.clone(),
            reshapes: plan.reshapes.iter().map(|reshape| reshape.name.clone()).collect(),
            coders: Vec::new(),
            input,
            output,
            real: [plan.input.real, plan.output.real],
            bases,
        };
        if let Some(pass) = self.whole(plan, &site, [&input, &output])? {
            variant.steps.push(Step::Run(0));
            variant.passes.push(pass);
            // Nothing waits between passes.
            (variant.areas.arrays, variant.areas.total) = (0, 0);
            return Ok(variant);
        }
        variant.coders = self.coders(plan, &site);
        for action in actions {
            if let Action::Start { reshape, tile } = action {
                let encode = self.chunks(plan, &site, &variant.areas, (reshape, tile), 0);
                variant.steps.extend(encode.map(Step::Encode));
            }
            let flight = |reshape: usize, tile: usize, areas: &WorkspaceLayout| {
                let mover = site.exchange(reshape, tile);
                let at = [0, 1]
                    .map(|side| site.tile_at(areas, reshape, tile, site.rank, side) * site.scalar_bytes);
                let (send, recv) = (movers[mover].buffers().send.len, movers[mover].buffers().recv.len);
                let tiled = cuts[reshape].count() > 1;
                Flight { mover, reshape, send: (at[0], send), recv: (at[1], recv), tiled }
            };
            variant.steps.push(match action {
                Action::Barrier => Step::Barrier,
                Action::Run { pass, part } => {
                    let bound = self.pass(plan, &site, &variant.areas, &plan.passes[pass], part)?;
                    variant.passes.push(bound);
                    Step::Run(variant.passes.len() - 1)
                }
                Action::Start { reshape, tile } => Step::Start(flight(reshape, tile, &variant.areas)),
                Action::Wait { reshape, tile } => Step::Wait(flight(reshape, tile, &variant.areas)),
            });
            if let Action::Wait { reshape, tile } = action {
                let decode = self.chunks(plan, &site, &variant.areas, (reshape, tile), 1);
                variant.steps.extend(decode.map(Step::Decode));
            }
        }
        Ok(variant)
    }

    /// What is encoded before a tile flies (side 0), or decoded after it (1).
    fn chunks(
        &mut self,
        plan: &Schedule,
        site: &RankContext<'_>,
        areas: &WorkspaceLayout,
        (reshape, tile): (usize, usize),
        side: usize,
    ) -> Option<Chunks> {
        self.packing?;
        let parts = site.encoded_segments(areas, &plan.reshapes[reshape], reshape, tile, side);
        let (parts, chunks) =
            table(parts.iter().map(|part| (part.scalars, part.scalar_offset, part.byte_offset)));
        (chunks > 0).then(|| Chunks { at: self.tables.push(&parts), count: parts.len(), chunks })
    }

    /// The lengths of encoded parts, by mover.
    fn coders(&self, plan: &Schedule, site: &RankContext<'_>) -> Vec<Option<Arc<dyn Coder>>> {
        let of = |(reshape, tile): (usize, usize)| -> Option<Arc<dyn Coder>> {
            let packing = self.packing?;
            let number = size_of::<T>();
            let cut = (&site.cuts[reshape], tile);
            let plain = volumes(&plan.reshapes[reshape], cut, self.rank, number, None).to;
            let len = |(peer, &bytes): (usize, &usize)| match packing.is_encoded(self.rank, peer) {
                true => packing.segment_bytes(bytes / number),
                false => bytes,
            };
            Some(Arc::new(Lengths(plain.iter().enumerate().map(len).collect())))
        };
        let tiles = |(reshape, cut): (usize, &Tiles)| {
            (0..cut.count()).map(move |tile| (reshape, tile)).collect::<Vec<_>>()
        };
        site.cuts.iter().enumerate().flat_map(tiles).map(of).collect()
    }

    fn pass(
        &mut self,
        schedule: &Schedule,
        site: &RankContext<'_>,
        areas: &WorkspaceLayout,
        pass: &Pass,
        part: PassPart,
    ) -> Result<BoundPass> {
        let [arrive, leave] = [&pass.arrive, &pass.leave]
            .map(|state| site.part_of(schedule, pass, part, &state.layout.boxes()[site.rank]));
        let arrays = site.arrays(part.batch_chunk);
        self.arrays = arrays.len();
        let side = |sending: bool| {
            let tile = if sending { part.to } else { part.from };
            MessageEnd { sending, batch_chunk: part.batch_chunk, tile }
        };
        let from = site.pieces(schedule, areas, &pass.from, (&arrive, &arrays), side(false));
        let to = site.pieces(schedule, areas, &pass.to, (&leave, &arrays), side(true));
        let work = match &pass.transforms[..] {
            _ if arrive.is_empty() => Work::Nothing,
            [] => Work::Moves(self.moves(&from, &to, width(pass.leave.real), 1.0)),
            [transform] => self.lines(transform, [&arrive, &leave], arrays.start, [&from, &to])?,
            _ => unreachable!("passes on a GPU are not fused"),
        };
        let numbers = |part: &Box3, real: bool| (part.volume() * width(real) * arrays.len()) as u64;
        let bytes = (numbers(&arrive, pass.arrive.real) + numbers(&leave, pass.leave.real))
            * site.scalar_bytes as u64;
        let flops =
            pass.transforms.iter().map(|transform| flops(transform, &leave) * arrays.len() as f64).sum();
        let name = pass.transforms.first().map_or("copy".into(), |transform| transform.name.clone());
        Ok(BoundPass { name, bytes, flops, work })
    }

    /// A launch that moves all pieces.
    pub(super) fn moves(&mut self, from: &[Piece], to: &[Piece], width: usize, scale: f64) -> Moves {
        let table = MoveTable::new(from, to, self.arrays, width, size_of::<T>());
        let at = self.tables.push(&table.moves);
        let MoveTable { unit, turn, blocks, .. } = table;
        Moves { unit, turn, at, count: table.moves.len(), blocks, scale }
    }

    /// The lines of a pass: by our kernel where it has the length, else by cuFFT.
    fn lines(
        &mut self,
        transform: &AxisTransform,
        domain: [&Box3; 2],
        first: usize,
        [from, to]: [&[Piece]; 2],
    ) -> Result<Work> {
        let (axes, spec) = (Axes::choose(transform.axis, from, to), transform.spec);
        let touched = Touching::of(transform, axes, first);
        let (scale, last) = touched.as_ref().map_or((spec.scale, spec), |(_, scale, last)| (*scale, *last));
        let (from, to) = (
            &unrolled(from, &transform.from, transform.axis)[..],
            &unrolled(to, &transform.to, transform.axis)[..],
        );
        let dense = |pieces: &[Piece]| {
            pieces
                .first()
                .is_some_and(|piece| (0..3).all(|a| piece.strides[transform.axis] <= piece.strides[a]))
        };
        let lanes = domain[0].shape()[axes.lanes];
        let (rows, rows_after) = (dense(from), dense(to));
        let lens = [spec.kind.len_in(spec.n), last.kind.len_out(last.n)];
        let whole = |pieces: &[Piece], len: usize| {
            pieces.len() == 1 && pieces[0].region.shape()[transform.axis] == len
        };
        let one = [whole(from, lens[0]), whole(to, lens[1])];
        let wish = Wish {
            points: spec.n,
            kind: spec.kind,
            precision: T::PRECISION,
            rows,
            turn: rows != rows_after,
            scattered: one.contains(&false),
            touched: touched.is_some(),
            lanes,
        };
        let cut = match self.engine {
            Engine::Cufft => None,
            _ => Cut::new(&wish, self.gpu.shared_bytes()),
        };
        let Some(cut) = cut else { return self.batch(transform, domain, first, [from, to]).map(Work::Batch) };
        let table = LineTable::new(axes, domain[0], from, to, cut.lines, self.arrays);
        // Powers of two: fewer kernels to compile.
        let strips = [0, 1].map(|side| if one[side] { 0 } else { table.most[side].next_power_of_two() });
        Ok(Work::Lines(Lines {
            wish,
            cut,
            strips,
            lone: table.lone().filter(|_| strips == [0; 2]),
            flowing: self.flows(from, to),
            early: self.gpu.launches_early(),
            cells: self.tables.push(&table.cells),
            count: table.cells.len(),
            strips_at: self.tables.push(&table.strips),
            roots: self.tables.roots::<T>(spec.n),
            blocks: table.blocks,
            scale,
            touch: touched.map(|(touching, ..)| touching),
        }))
    }
}

impl<T: Real> Binder<'_, T> {
    /// Does an input that is not wanted again push out of the cache what comes of it, which would fit there?
    fn flows(&self, from: &[Piece], to: &[Piece]) -> bool {
        let base = |pieces: &[Piece], base: Base| pieces.iter().all(|piece| piece.base == base);
        let numbers: usize = to.iter().map(|piece| piece.region.volume()).sum();
        let bytes = 2 * numbers * size_of::<T>() * self.arrays;
        !self.in_place && base(from, Base::In) && !base(to, Base::In) && bytes <= self.gpu.cache_bytes()
    }
}

/// Pieces along an axis as the transformed lines count it: what an array
/// holds of a line lies in runs.
fn unrolled(pieces: &[Piece], runs: &[IndexRun], axis: usize) -> Vec<Piece> {
    let part = |(piece, run): (&Piece, &IndexRun)| {
        let (low, high) = (piece.region.lo[axis].max(run.at), piece.region.hi[axis].min(run.at + run.len));
        let mut region = piece.region;
        (region.lo[axis], region.hi[axis]) =
            (run.line + low - run.at.min(low), run.line + high - run.at.min(high));
        let offset = piece.offset + (low - piece.region.lo[axis]) * piece.strides[axis];
        (low < high).then(|| Piece { region, offset, ..piece.clone() })
    };
    pieces.iter().flat_map(|piece| runs.iter().map(move |run| (piece, run))).filter_map(part).collect()
}

/// 5 n log2 n a line, half of it for real ones.
pub(super) fn flops(transform: &AxisTransform, part: &Box3) -> f64 {
    let n = transform.spec.n as f64;
    let lines = part.volume() / part.shape()[transform.axis].max(1);
    let real = transform.spec.kind.width_in() != transform.spec.kind.width_out();
    let returns =
        matches!(&transform.fused_op, Some(touch) if matches!(touch.position, OpPosition::Between(_)));
    lines as f64 * 5.0 * n * n.log2() * if real { 0.5 } else { 1.0 } * if returns { 2.0 } else { 1.0 }
}
