//! The launches of passes: kernels, compiled for this GPU, with their arguments.

use std::ffi::c_void;

use super::batch::Batch;
use super::bind::{BoundPass, Lines, Moves, Work};
use super::gpu::{Function, Gpu, Grid};
use super::memory::Stream;
use super::touch::{Code, Field, Operand, When};
use crate::{Error, Precision, Real, Result};
use ferrier_kernel::LineKind;

pub(super) const COMMON: &str = include_str!("kernels/common.cuh");
const DFT: &str = include_str!("kernels/dft.cuh");
const LINES: &str = include_str!("kernels/lines.cu");
const MOVE: &str = include_str!("kernels/move.cu");
const OPERATE: &str = include_str!("kernels/operate.cu");

/// Threads of a block of `move.cu`.
const MOVE_THREADS: u32 = 256;
/// And of `operate.cu`.
const OPERATE_THREADS: usize = 256;

/// The name of a number in C.
pub(super) fn real<T: Real>() -> String {
    match T::PRECISION {
        Precision::F32 => "float".into(),
        Precision::F64 => "double".into(),
    }
}

/// The kernel of a launch of lines; `code` is what is done to modes, where something is.
fn lines_kernel<T: Real>(gpu: &Gpu, lines: &Lines, code: Code<'_>) -> Result<Function> {
    let (wish, cut) = (&lines.wish, &lines.cut);
    let when = lines.touch.as_ref().map(|touching| touching.when);
    let kind = match wish.kind {
        LineKind::Forward | LineKind::Backward => 0,
        LineKind::RealForward if when == Some(When::Between) => 3,
        LineKind::RealForward => 1,
        LineKind::RealBackward => 2,
        LineKind::R2r { .. } => {
            return Err(Error::device("cosines and sines have no kernel on a GPU"));
        }
    };
    let radices: Vec<String> = cut.radices.iter().map(usize::to_string).collect();
    let mut macros = vec![
        ("POINTS", wish.points.to_string()),
        ("RADICES", radices.join(",")),
        ("STAGES", radices.len().to_string()),
        ("THREADS", cut.threads.to_string()),
        ("LINES", cut.lines.to_string()),
        ("KIND", kind.to_string()),
        ("ROWS", u8::from(wish.rows).to_string()),
        ("TURN", u8::from(wish.turn).to_string()),
        ("FROM", lines.strips[0].to_string()),
        ("TO", lines.strips[1].to_string()),
        ("BLOCKS", cut.blocks.to_string()),
        ("LONE", u8::from(lines.lone.is_some()).to_string()),
        ("FLOWING", u8::from(lines.flowing).to_string()),
        ("TOUCH", when.map_or(0, |when| when as u8).to_string()),
    ];
    let Some(touching) = &lines.touch else {
        macros.push(("REAL", real::<T>()));
        return gpu.kernel("lines", &[COMMON, DFT, LINES], &macros, cut.shared);
    };
    macros.extend(code.macros::<T>(touching));
    let source: Vec<&str> = code.source().into_iter().chain([DFT, LINES]).collect();
    gpu.kernel("lines", &source, &macros, cut.shared)
}

/// The kernel that does something to lines of modes in scratch.
fn field_kernel<T: Real>(gpu: &Gpu, field: &Field, code: Code<'_>) -> Result<Function> {
    let source: Vec<&str> = code.source().into_iter().chain([OPERATE]).collect();
    gpu.kernel("operate_lines", &source, &code.macros::<T>(&field.touching), 0)
}

/// The kernel of a launch of moves.
fn moves_kernel<T: Real>(gpu: &Gpu, moves: &Moves) -> Result<Function> {
    let macros = [
        ("REAL", real::<T>()),
        ("UNIT", moves.unit.max(1).to_string()),
        ("NUMBERS", (moves.unit / size_of::<T>()).max(1).to_string()),
        ("TURN", u8::from(moves.turn).to_string()),
        ("SCALED", u8::from(moves.scale != 1.0).to_string()),
    ];
    gpu.kernel("move", &[COMMON, MOVE], &macros, 0)
}

/// Does a pass need the operator of a call?
pub(super) fn is_called(pass: &BoundPass) -> bool {
    let touching = match &pass.work {
        Work::Lines(lines) => lines.touch.as_ref(),
        Work::Batch(batch) => batch.field.as_ref().map(|field| &field.touching),
        _ => None,
    };
    touching.is_some_and(|touching| touching.is_called())
}

/// The kernels of a pass; `code` is that of the operator, where it needs one.
pub(super) fn kernels<T: Real>(gpu: &Gpu, pass: &BoundPass, code: Code<'_>) -> Result<Vec<Function>> {
    match &pass.work {
        Work::Nothing | Work::Whole(_, None) => Ok(Vec::new()),
        Work::Lines(lines) => Ok(vec![lines_kernel::<T>(gpu, lines, code)?]),
        Work::Moves(moves) | Work::Whole(_, Some(moves)) => Ok(vec![moves_kernel::<T>(gpu, moves)?]),
        Work::Batch(batch) => {
            let mut all =
                vec![moves_kernel::<T>(gpu, &batch.gather)?, moves_kernel::<T>(gpu, &batch.scatter)?];
            if let Some(field) = &batch.field {
                all.push(field_kernel::<T>(gpu, field, code)?);
            }
            Ok(all)
        }
    }
}

/// Where things are in one call.
#[derive(Clone, Copy)]
pub(super) struct Places {
    /// The tables.
    pub tables: u64,
    /// The pointers of this call, on the GPU, and which set of them it is.
    pub bases: u64,
    pub set: usize,
    pub input: u64,
    pub output: u64,
    pub scratch: [u64; 2],
}

/// Enqueues a pass.
///
/// # Safety
/// The functions are those of [`kernels`]; the tables hold what the pass was
/// bound to, and the pointers are those of arrays that are large enough, live
/// until it has run, and are not touched by others meanwhile.
pub(super) unsafe fn run<T: Real>(
    pass: &BoundPass,
    functions: &[Function],
    (places, pointers): (&Places, &[u64]),
    operand: &Operand<T>,
    stream: &Stream,
) -> Result<()> {
    // SAFETY: the caller's word, for each of them.
    unsafe {
        match &pass.work {
            Work::Nothing => Ok(()),
            Work::Lines(lines) => run_lines::<T>(lines, functions[0], (places, pointers), operand, stream),
            Work::Moves(moves) => run_moves::<T>(moves, functions[0], places, stream),
            Work::Batch(batch) => run_batch::<T>(batch, functions, places, operand, stream),
            Work::Whole(fft, scaling) => {
                fft.run(places.input, places.output)?;
                match scaling {
                    Some(moves) => run_moves::<T>(moves, functions[0], places, stream),
                    None => Ok(()),
                }
            }
        }
    }
}

/// # Safety
/// As [`run`].
unsafe fn run_batch<T: Real>(
    batch: &Batch,
    functions: &[Function],
    places: &Places,
    operand: &Operand<T>,
    stream: &Stream,
) -> Result<()> {
    let [there, end] = batch.ends().map(|which| places.scratch[which]);
    let field = |when: fn(When) -> bool| -> Result<()> {
        match batch.field.as_ref().filter(|field| when(field.touching.when)) {
            // SAFETY: the caller's word; the field lies in the scratches.
            Some(field) => unsafe { run_field::<T>(field, functions[2], places, operand, stream) },
            None => Ok(()),
        }
    };
    // SAFETY: the caller's word, for each of them.
    unsafe {
        stream.clear(places.scratch[0], batch.clear)?;
        run_moves::<T>(&batch.gather, functions[0], places, stream)?;
        field(|when| when == When::Before)?;
        batch.fft.run(places.scratch[0], there)?;
        field(|when| when != When::Before)?;
        if let Some(back) = &batch.back {
            back.run(there, end)?;
        }
        run_moves::<T>(&batch.scatter, functions[1], places, stream)
    }
}

/// # Safety
/// As [`run`].
unsafe fn run_field<T: Real>(
    field: &Field,
    function: Function,
    places: &Places,
    operand: &Operand<T>,
    stream: &Stream,
) -> Result<()> {
    let mut modes = places.scratch[usize::from(field.second)];
    let mut count = field.count() as u64;
    let mut sizes =
        [field.len, field.rows, field.lanes, field.low[1], field.low[0], field.edges].map(|n| n as u32);
    let mut handed = field.touching.handed(operand);
    let [len, rows, lanes, low_row, low_lane, edges] = &mut sizes;
    let mut arguments = [
        place(&mut modes),
        place(&mut count),
        place(len),
        place(rows),
        place(lanes),
        place(low_row),
        place(low_lane),
        place(edges),
        place(&mut handed),
    ];
    let blocks = field.count().div_ceil(OPERATE_THREADS) as u32;
    let grid = Grid { blocks, threads: OPERATE_THREADS as u32, shared: 0 };
    // SAFETY: the arguments are those of `operate.cu`; the caller's word for the memory.
    unsafe { function.launch(grid, stream.raw(), &mut arguments) }
}

/// # Safety
/// As [`run`].
unsafe fn run_lines<T: Real>(
    lines: &Lines,
    function: Function,
    (places, pointers): (&Places, &[u64]),
    operand: &Operand<T>,
    stream: &Stream,
) -> Result<()> {
    let mut lone = lines.lone.map(|lone| lone.at(pointers));
    let mut cells = places.tables + lines.cells as u64;
    let mut cell_count = lines.count as i32;
    let mut strips = places.tables + lines.strips_at as u64;
    let mut bases = places.bases;
    let mut roots = places.tables + lines.roots as u64;
    let mut scale = T::rounded(lines.scale);
    let mut swap = i32::from(matches!(lines.wish.kind, LineKind::Backward | LineKind::RealBackward));
    let mut handed = lines.touch.as_ref().map(|touching| touching.handed(operand));
    let tables = [place(&mut cells), place(&mut cell_count), place(&mut strips), place(&mut bases)];
    let rest = [place(&mut roots), place(&mut scale), place(&mut swap)];
    let touch = handed.as_mut().map(place);
    let lone = lone.as_mut().map(place);
    let mut arguments = [std::ptr::null_mut(); 8];
    let first = if lone.is_some() { 0..0 } else { 0..tables.len() };
    let all = lone.into_iter().chain(tables[first].iter().copied()).chain(rest).chain(touch);
    let count = arguments.iter_mut().zip(all).map(|(to, from)| *to = from).count();
    let grid = Grid {
        blocks: lines.blocks as u32,
        threads: (lines.cut.threads * lines.cut.lines) as u32,
        shared: lines.cut.shared as u32,
    };
    // SAFETY: the arguments are those of `lines.cu`, which waits before it touches arrays; the caller's word for
    // the memory.
    unsafe {
        match lines.early {
            true => function.launch_early(grid, stream.raw(), &mut arguments[..count]),
            false => function.launch(grid, stream.raw(), &mut arguments[..count]),
        }
    }
}

/// # Safety
/// As [`run`].
unsafe fn run_moves<T: Real>(
    moves: &Moves,
    function: Function,
    places: &Places,
    stream: &Stream,
) -> Result<()> {
    let mut table = places.tables + moves.at as u64;
    let mut count = moves.count as i32;
    let mut bases = places.bases;
    let mut scale = T::rounded(moves.scale);
    let mut arguments = [place(&mut table), place(&mut count), place(&mut bases), place(&mut scale)];
    let grid = Grid { blocks: moves.blocks as u32, threads: MOVE_THREADS, shared: 0 };
    // SAFETY: the arguments are those of `move.cu`; the caller's word for the memory.
    unsafe { function.launch(grid, stream.raw(), &mut arguments) }
}

/// An argument, by its place: the driver copies it at the launch.
pub(super) fn place<A>(argument: &mut A) -> *mut c_void {
    std::ptr::from_mut(argument).cast()
}
