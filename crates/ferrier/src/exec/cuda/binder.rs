//! Binding to the memory of a GPU: passes become launches.

use std::marker::PhantomData;
use std::ops::Range;

use super::address_sets::AddressSets;
use super::codec::{Chunks, DeviceCodec, table};
use super::coding::{CudaCoding, Records};
use super::fused_op::{FORMULA_SETS, FormulaRoom, FusedLaunch};
use super::gpu::Gpu;
use super::line_tables::{LineTable, MoveTable};
use super::norm::NORM_BYTES;
use super::table_buffer::TableBuffer;
use super::tuning::{Cut, Wish};
use super::work::{CudaWork, Launch, LineLaunch, MoveLaunch};
use crate::exec::backend::{PassEnds, TileToCode};
use crate::exec::memory::Memory;
use crate::exec::variant::Variant;
use crate::transport::EXPOSED;
use crate::{Box3, Comm, Error, Real, Recipe, Result};
use ferrier_plan::geometry::{Axes, Base, Piece, width};
use ferrier_plan::messages::Encoding;
use ferrier_plan::modes::{IndexRun, total_len};
use ferrier_plan::schedule::AxisTransform;

/// The kernel of lines: the names of [`Choice::kernel`](crate::Choice::kernel) on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The faster one.
    Auto,
    /// Our own kernel wherever it has the length.
    Native,
    /// cuFFT everywhere.
    Cufft,
}

impl Engine {
    const NAMES: [(&str, Engine); 3] =
        [("auto", Engine::Auto), ("native", Engine::Native), ("cufft", Engine::Cufft)];

    pub fn find(name: Option<&str>) -> Result<Engine> {
        let name = name.unwrap_or("auto");
        let found = Engine::NAMES.iter().find(|(known, _)| *known == name).map(|(_, engine)| *engine);
        let known = "auto, native, cufft (on a GPU)";
        found.ok_or_else(|| Error::UnknownName { what: "kernel", name: name.into(), known: known.into() })
    }

    pub fn name(self) -> &'static str {
        Engine::NAMES[self as usize].0
    }
}

/// Alignment of areas on the GPU.
const ALIGN: usize = 256;

/// Addresses of a set.
pub(super) fn set_len(ranks: usize) -> usize {
    (ranks + 1) * EXPOSED
}

/// Binds the passes of a plan to a GPU.
pub struct CudaBinder<T> {
    pub(super) gpu: Gpu,
    pub(super) recipe: Recipe,
    pub(super) engine: Engine,
    /// The codec of segments, if they are encoded.
    pub(super) codec: Option<(DeviceCodec<T>, Encoding)>,
    /// Whether messages are staged in main memory.
    pub(super) staged: bool,
    pub(super) tables: TableBuffer,
    /// Arrays of the pass that is being bound.
    pub(super) arrays: Range<usize>,
    /// Whether the variant that is being bound is in place.
    pub(super) in_place: bool,
    /// Bytes of the two scratches of [`CufftLines`](super::work::CufftLines).
    pub(super) scratch: [usize; 2],
    /// Bytes of cuFFT's work area.
    pub(super) cufft: usize,
    /// Where the sets of addresses of each variant begin, in bytes of the tables.
    pub(super) addresses_at: Vec<usize>,
    /// And the lists of arrays, of input and output.
    pub(super) lists_at: [usize; 2],
    pub(super) formulas: FormulaRoom,
    /// Chunks that are encoded, of all exchanges.
    pub(super) records: usize,
    scalar: PhantomData<T>,
}

impl<T: Real> CudaBinder<T> {
    pub(crate) fn new(
        gpu: &Gpu,
        recipe: &Recipe,
        codec: Option<(DeviceCodec<T>, Encoding)>,
        staged: bool,
    ) -> Result<Self> {
        Ok(CudaBinder {
            gpu: gpu.clone(),
            engine: Engine::find(Some(&recipe.kernel))?,
            recipe: recipe.clone(),
            codec,
            staged,
            tables: TableBuffer::default(),
            arrays: 0..recipe.batch,
            in_place: false,
            scratch: [0; 2],
            cufft: 0,
            addresses_at: Vec::new(),
            lists_at: [0; 2],
            formulas: FormulaRoom::default(),
            records: 0,
            scalar: PhantomData,
        })
    }

    /// Lays out the memory of a plan. Where the two scratches and cuFFT's work area begin: [`places`](Self::places).
    pub(super) fn memory<W, C>(&mut self, comm: &Comm, variants: &[Variant<W, C>]) -> Memory {
        let set = AddressSets::words(set_len(comm.size()));
        self.addresses_at = variants.iter().map(|_| self.tables.reserve(set)).collect();
        let list = AddressSets::words(self.recipe.batch);
        self.lists_at = [0, 1].map(|_| self.tables.reserve(list));
        if self.recipe.operators {
            let lens = [0, 1, 2].map(|axis| total_len(&self.recipe.modes(axis)));
            let scalars = FORMULA_SETS * 2 * lens.iter().sum::<usize>();
            let at = self.tables.reserve((scalars * size_of::<T>()).div_ceil(size_of::<u64>()));
            self.formulas = FormulaRoom { at, lens };
        }
        let most =
            |of: fn(&Variant<W, C>) -> usize| variants.iter().map(of).max().unwrap_or(0) * size_of::<T>();
        let total = most(|variant| variant.layout.total).next_multiple_of(ALIGN);
        let messages = most(|variant| variant.layout.total - variant.layout.arrays).min(total);
        Memory {
            arrays: total - messages,
            messages,
            scratch: self.scratch.iter().map(|bytes| bytes.next_multiple_of(ALIGN)).sum(),
            cufft: self.cufft,
            tables: self.tables.bytes.len(),
            staging: if self.staged { total } else { 0 },
            records: if self.codec.is_some() { Records::bytes(self.records) + NORM_BYTES } else { 0 },
            ..Memory::of(variants, size_of::<T>())
        }
    }

    /// Where the two scratches begin in the workspace.
    pub(super) fn scratch_at(&self, memory: &Memory) -> [usize; 2] {
        let total = memory.arrays + memory.messages;
        [total, total + self.scratch[0].next_multiple_of(ALIGN)]
    }

    pub(super) fn pass(&mut self, ends: &PassEnds<'_>) -> Result<CudaWork> {
        let PassEnds { context, pass, arrive, leave, arrays, from, to, .. } = ends;
        (self.arrays, self.in_place) = (arrays.clone(), context.in_place);
        let launch = match &pass.transforms[..] {
            _ if arrive.is_empty() => Launch::Nothing,
            [] => Launch::Moves(self.moves(from, to, width(pass.leave.real), 1.0)),
            [transform] => self.lines(transform, [arrive, leave], arrays.start, [from, to])?,
            _ => unreachable!("passes on a GPU are not fused"),
        };
        Ok(CudaWork::new(launch))
    }

    /// The coding of a tile.
    pub(super) fn coding(&mut self, tile: TileToCode<'_>) -> CudaCoding {
        let TileToCode { context, layout, tile, encoding, plain } = tile;
        let mut chunks = |side| {
            let segments = context.encoded_segments(layout, tile, side);
            let parts = segments.iter().map(|part| (part.scalars, part.scalar_offset, part.byte_offset));
            let (parts, chunks) = table(parts);
            (Chunks { at: self.tables.push(&parts), count: parts.len(), chunks }, segments)
        };
        let ((encode, sent), (decode, received)) = (chunks(0), chunks(1));
        let first_record = self.records;
        self.records += encode.chunks;
        CudaCoding::new([encode, decode], [&sent, &received], plain, encoding, first_record)
    }

    /// A launch that moves all pieces.
    pub(super) fn moves(&mut self, from: &[Piece], to: &[Piece], width: usize, scale: f64) -> MoveLaunch {
        let table = MoveTable::new(from, to, &self.arrays, width, size_of::<T>());
        let at = self.tables.push(&table.moves);
        let MoveTable { unit, turn, blocks, .. } = table;
        MoveLaunch { unit, turn, at, count: table.moves.len(), blocks, scale }
    }

    /// The lines of a pass: by our kernel where it has the length, else by cuFFT.
    fn lines(
        &mut self,
        transform: &AxisTransform,
        domain: [&Box3; 2],
        first: usize,
        [from, to]: [&[Piece]; 2],
    ) -> Result<Launch> {
        let (axes, spec) = (Axes::choose(transform.axis, from, to), transform.spec);
        let fused = FusedLaunch::of(transform, axes, first);
        let (scale, last) = fused.as_ref().map_or((spec.scale, spec), |(_, scale, last)| (*scale, *last));
        let (from, to) = (
            &unrolled(from, &transform.from, transform.axis)[..],
            &unrolled(to, &transform.to, transform.axis)[..],
        );
        let dense = |pieces: &[Piece]| pieces.first().is_some_and(|piece| piece.is_fastest(transform.axis));
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
            fused: fused.is_some(),
            lanes,
        };
        let cut = match self.engine {
            Engine::Cufft => None,
            _ => Cut::new(&wish, self.gpu.shared_bytes()),
        };
        let Some(cut) = cut else { return self.cufft_lines(transform, domain, first, [from, to]) };
        let table = LineTable::new(axes, domain[0], [from, to], cut.lines, &self.arrays);
        // Powers of two: fewer kernels to compile.
        let strips = [0, 1].map(|side| if one[side] { 0 } else { table.most[side].next_power_of_two() });
        Ok(Launch::Lines(Box::new(LineLaunch {
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
            fused_op: fused.map(|(fused, ..)| fused),
        })))
    }
}

impl<T: Real> CudaBinder<T> {
    /// Whether an input that is not read again would evict the output, which fits in the cache.
    fn flows(&self, from: &[Piece], to: &[Piece]) -> bool {
        let base = |pieces: &[Piece], base: Base| pieces.iter().all(|piece| piece.base == base);
        let scalars: usize = to.iter().map(|piece| piece.region.volume()).sum();
        let bytes = 2 * scalars * size_of::<T>() * self.arrays.len();
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
