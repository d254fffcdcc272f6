//! The launches of passes: kernels, compiled for this GPU, with their arguments.

use super::fused_op::{Code, Field, OpTime, Operand};
use super::gpu::{Function, Gpu, Grid, argument};
use super::memory::Stream;
use super::sources::{ARRAYS, COMMON, DFT, LINES, MOVE, OPERATE, real_name};
use super::work::{ArrayEnd, ArrayLaunch, CudaWork, CufftArray, CufftLines, Launch, LineLaunch, MoveLaunch};
use crate::exec::field_table::LISTED;
use crate::{Error, Real, Result};
use ferrier_kernel::LineKind;

/// Threads of a block of `move.cu`.
pub(crate) const MOVE_THREADS: u32 = 256;
/// And of `operate.cu`.
const OPERATE_THREADS: usize = 256;

/// The kernel of a launch of lines; `code` is the pointwise operation, if there is one.
fn lines_kernel<T: Real>(gpu: &Gpu, lines: &LineLaunch, code: Code<'_>) -> Result<Function> {
    let (wish, cut) = (&lines.wish, &lines.cut);
    let when = lines.fused_op.as_ref().map(|fused| fused.when);
    let kind = match wish.kind {
        LineKind::Forward | LineKind::Backward => 0,
        LineKind::RealForward if when == Some(OpTime::Between) => 3,
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
        ("FUSED_OP", when.map_or(0, |when| when as u8).to_string()),
    ];
    let Some(fused) = &lines.fused_op else {
        macros.push(("REAL", real_name::<T>()));
        return gpu.kernel("lines", &[COMMON, DFT, LINES], &macros, cut.shared);
    };
    macros.extend(code.macros::<T>(fused));
    let source: Vec<&str> = code.source().into_iter().chain([DFT, LINES]).collect();
    gpu.kernel("lines", &source, &macros, cut.shared)
}

/// The kernel of a launch of arrays.
fn arrays_kernel<T: Real>(gpu: &Gpu, arrays: &ArrayLaunch) -> Result<Function> {
    let [n0, n1, n2] = arrays.points.map(|points| points.to_string());
    let order: Vec<String> = arrays.order.iter().map(usize::to_string).collect();
    let macros = [
        ("REAL", real_name::<T>()),
        ("N0", n0),
        ("N1", n1),
        ("N2", n2),
        ("KIND", arrays.kind.to_string()),
        ("ORDER", order.join(",")),
        ("AXES", order.len().to_string()),
        ("SIZE", arrays.threads.to_string()),
        ("BLOCKS", arrays.resident.to_string()),
    ];
    gpu.kernel("arrays", &[COMMON, DFT, ARRAYS], &macros, arrays.shared)
}

/// The kernel that operates on lines of modes in scratch.
fn field_kernel<T: Real>(gpu: &Gpu, field: &Field, code: Code<'_>) -> Result<Function> {
    let source: Vec<&str> = code.source().into_iter().chain([OPERATE]).collect();
    gpu.kernel("operate_lines", &source, &code.macros::<T>(&field.fused), 0)
}

/// The kernel of a launch of copies.
fn moves_kernel<T: Real>(gpu: &Gpu, moves: &MoveLaunch, scaled: bool) -> Result<Function> {
    let macros = [
        ("REAL", real_name::<T>()),
        ("UNIT", moves.unit.max(1).to_string()),
        ("NUMBERS", (moves.unit / size_of::<T>()).max(1).to_string()),
        ("TURN", u8::from(moves.turn).to_string()),
        ("SCALED", u8::from(scaled).to_string()),
        ("ADDED", "0".into()),
    ];
    gpu.kernel("move", &[COMMON, MOVE], &macros, 0)
}

/// The kernels of a pass; `code` is that of the operator, where it has one.
pub(super) fn kernels<T: Real>(gpu: &Gpu, work: &CudaWork, code: Code<'_>) -> Result<Vec<Function>> {
    match &work.launch {
        Launch::Nothing => Ok(Vec::new()),
        Launch::Arrays(arrays) => Ok(vec![arrays_kernel::<T>(gpu, arrays)?]),
        Launch::Lines(lines) => Ok(vec![lines_kernel::<T>(gpu, lines, code)?]),
        Launch::Moves(moves) => Ok(vec![moves_kernel::<T>(gpu, moves, moves.scale != 1.0)?]),
        // It is launched only with a scale.
        Launch::CufftArray(array) if array.scaling.scale == 1.0 => Ok(Vec::new()),
        Launch::CufftArray(array) => Ok(vec![moves_kernel::<T>(gpu, &array.scaling, true)?]),
        Launch::CufftLines(lines) => {
            let moves = |moves: &MoveLaunch| moves_kernel::<T>(gpu, moves, moves.scale != 1.0);
            let mut all = vec![moves(&lines.gather)?, moves(&lines.scatter)?];
            if let Some(field) = &lines.field {
                all.push(field_kernel::<T>(gpu, field, code)?);
            }
            Ok(all)
        }
    }
}

/// The kernel of the last moves of a pass for calls with a scale; `None` where there are no moves.
pub(super) fn scaled_moves<T: Real>(gpu: &Gpu, work: &CudaWork) -> Result<Option<Function>> {
    match &work.launch {
        Launch::Nothing | Launch::Lines(_) | Launch::Arrays(_) => Ok(None),
        Launch::Moves(moves) => moves_kernel::<T>(gpu, moves, true).map(Some),
        Launch::CufftArray(array) => moves_kernel::<T>(gpu, &array.scaling, true).map(Some),
        Launch::CufftLines(lines) => moves_kernel::<T>(gpu, &lines.scatter, true).map(Some),
    }
}

/// The addresses and factors of one call.
#[derive(Clone, Copy, Default)]
pub(super) struct CallArguments<T> {
    /// The tables.
    pub tables: u64,
    /// The addresses of this call on the GPU.
    pub addresses: u64,
    pub input: u64,
    pub output: u64,
    pub scratch: [u64; 2],
    pub operand: Operand<T>,
}

/// Enqueues a pass; what it stores is multiplied by `scale`. `lists`: the arrays of input and output, where each has memory of
/// its own.
///
/// # Safety
/// The functions of the work are those of [`kernels`] (and [`scaled_moves`], where there is a scale); the tables hold
/// what the pass was bound to, and the addresses are those of arrays that are large enough, live until it has run,
/// and are not accessed by others meanwhile.
pub(super) unsafe fn run<T: Real>(
    work: &CudaWork,
    call: &CallArguments<T>,
    (addresses, lists): (&[u64], [&[u64]; 2]),
    stream: &Stream,
    scale: f64,
) -> Result<()> {
    let functions = &work.functions;
    let last = |own: Option<&Function>| -> Result<Function> {
        let function = if scale == 1.0 { own.copied() } else { work.scaled_moves };
        function.ok_or_else(|| Error::device("a kernel was not compiled"))
    };
    // SAFETY: this function's contract, for each of them.
    unsafe {
        match &work.launch {
            Launch::Nothing => Ok(()),
            Launch::Arrays(arrays) => run_arrays::<T>(arrays, functions[0], call, stream, scale),
            Launch::Lines(lines) => run_lines::<T>(lines, functions[0], (call, addresses), stream, scale),
            Launch::Moves(moves) => run_moves::<T>(moves, last(functions.first())?, call, stream, scale),
            Launch::CufftLines(lines) => {
                let functions = (&functions[..], last(functions.get(1))?);
                run_cufft_lines::<T>(lines, functions, call, stream, scale)
            }
            Launch::CufftArray(array) => {
                run_cufft_array(array, call, lists)?;
                match array.scaling.scale * scale == 1.0 {
                    true => Ok(()),
                    false => run_moves::<T>(&array.scaling, last(functions.first())?, call, stream, scale),
                }
            }
        }
    }
}

/// # Safety
/// As [`run`].
unsafe fn run_arrays<T: Real>(
    arrays: &ArrayLaunch,
    function: Function,
    call: &CallArguments<T>,
    stream: &Stream,
    scale: f64,
) -> Result<()> {
    let mut ends: [ArrayEnd; 2] = arrays.ends;
    let (mut input, mut output) = (call.input, call.output);
    let mut scale = T::rounded(arrays.scale * scale);
    let mut swap = i32::from(arrays.backward);
    let mut arguments = [
        argument(&mut ends),
        argument(&mut input),
        argument(&mut output),
        argument(&mut scale),
        argument(&mut swap),
    ];
    let grid =
        Grid { blocks: arrays.arrays as u32, threads: arrays.threads as u32, shared: arrays.shared as u32 };
    // SAFETY: the arguments are those of `arrays.cu`; `run`'s contract covers the memory.
    unsafe { function.launch(grid, stream.raw(), &mut arguments, false) }
}

/// # Safety
/// As [`run`].
unsafe fn run_cufft_array<T>(array: &CufftArray, call: &CallArguments<T>, lists: [&[u64]; 2]) -> Result<()> {
    let one = array.one.as_ref().unwrap_or(&array.whole);
    let listed = [call.input, call.output].map(|address| address & LISTED as u64 != 0);
    if listed == [false; 2] {
        // SAFETY: this function's contract.
        return unsafe { array.whole.run(call.input, call.output) };
    }
    let count = lists[usize::from(!listed[0])].len();
    let at = |end: usize, number: usize| -> u64 {
        let start = [call.input, call.output][end];
        if listed[end] { lists[end][number] } else { start + (number * array.bytes[end]) as u64 }
    };
    // SAFETY: this function's contract, for each array.
    (0..count).try_for_each(|number| unsafe { one.run(at(0, number), at(1, number)) })
}

/// # Safety
/// As [`run`].
unsafe fn run_cufft_lines<T: Real>(
    batch: &CufftLines,
    (functions, scatter): (&[Function], Function),
    call: &CallArguments<T>,
    stream: &Stream,
    scale: f64,
) -> Result<()> {
    let operand = &call.operand;
    let [there, end] = batch.ends().map(|which| call.scratch[which]);
    let field = |when: fn(OpTime) -> bool| -> Result<()> {
        match batch.field.as_ref().filter(|field| when(field.fused.when)) {
            // SAFETY: this function's contract; the field lies in the scratches.
            Some(field) => unsafe { run_field::<T>(field, functions[2], call, operand, stream) },
            None => Ok(()),
        }
    };
    // SAFETY: this function's contract, for each of them.
    unsafe {
        stream.clear(call.scratch[0], batch.clear)?;
        run_moves::<T>(&batch.gather, functions[0], call, stream, 1.0)?;
        field(|when| when == OpTime::Before)?;
        batch.fft.run(call.scratch[0], there)?;
        field(|when| when != OpTime::Before)?;
        if let Some(back) = &batch.back {
            back.run(there, end)?;
        }
        run_moves::<T>(&batch.scatter, scatter, call, stream, scale)
    }
}

/// # Safety
/// As [`run`].
unsafe fn run_field<T: Real>(
    field: &Field,
    function: Function,
    call: &CallArguments<T>,
    operand: &Operand<T>,
    stream: &Stream,
) -> Result<()> {
    let mut modes = call.scratch[usize::from(field.second)];
    let mut count = field.count() as u64;
    let mut sizes =
        [field.len, field.rows, field.lanes, field.low[1], field.low[0], field.edges].map(|n| n as u32);
    let mut op_argument = field.fused.argument(operand);
    let [len, rows, lanes, low_row, low_lane, edges] = &mut sizes;
    let mut arguments = [
        argument(&mut modes),
        argument(&mut count),
        argument(len),
        argument(rows),
        argument(lanes),
        argument(low_row),
        argument(low_lane),
        argument(edges),
        argument(&mut op_argument),
    ];
    let blocks = field.count().div_ceil(OPERATE_THREADS) as u32;
    let grid = Grid { blocks, threads: OPERATE_THREADS as u32, shared: 0 };
    // SAFETY: the arguments are those of `operate.cu`; `run`'s contract covers the memory.
    unsafe { function.launch(grid, stream.raw(), &mut arguments, false) }
}

/// # Safety
/// As [`run`].
unsafe fn run_lines<T: Real>(
    lines: &LineLaunch,
    function: Function,
    (call, pointers): (&CallArguments<T>, &[u64]),
    stream: &Stream,
    scale: f64,
) -> Result<()> {
    let operand = &call.operand;
    let mut lone = lines.lone.map(|lone| lone.at(pointers));
    let mut cells = call.tables + lines.cells as u64;
    let mut cell_count = lines.count as i32;
    let mut strips = call.tables + lines.strips_at as u64;
    let mut bases = call.addresses;
    let mut roots = call.tables + lines.roots as u64;
    let mut scale = T::rounded(lines.scale * scale);
    let mut swap = i32::from(matches!(lines.wish.kind, LineKind::Backward | LineKind::RealBackward));
    let mut op_argument = lines.fused_op.as_ref().map(|fused| fused.argument(operand));
    let tables =
        [argument(&mut cells), argument(&mut cell_count), argument(&mut strips), argument(&mut bases)];
    let rest = [argument(&mut roots), argument(&mut scale), argument(&mut swap)];
    let fused_op = op_argument.as_mut().map(argument);
    let lone = lone.as_mut().map(argument);
    let mut arguments = [std::ptr::null_mut(); 8];
    let first = if lone.is_some() { 0..0 } else { 0..tables.len() };
    let all = lone.into_iter().chain(tables[first].iter().copied()).chain(rest).chain(fused_op);
    let count = arguments.iter_mut().zip(all).map(|(to, from)| *to = from).count();
    let grid = Grid {
        blocks: lines.blocks as u32,
        threads: (lines.cut.threads * lines.cut.lines) as u32,
        shared: lines.cut.shared as u32,
    };
    // SAFETY: the arguments are those of `lines.cu`, which waits before it accesses arrays; this function's contract for
    // the memory.
    unsafe { function.launch(grid, stream.raw(), &mut arguments[..count], lines.early) }
}

/// # Safety
/// As [`run`].
unsafe fn run_moves<T: Real>(
    moves: &MoveLaunch,
    function: Function,
    call: &CallArguments<T>,
    stream: &Stream,
    scale: f64,
) -> Result<()> {
    let mut table = call.tables + moves.at as u64;
    let mut count = moves.count as i32;
    let mut bases = call.addresses;
    let mut scale = T::rounded(moves.scale * scale);
    let mut arguments =
        [argument(&mut table), argument(&mut count), argument(&mut bases), argument(&mut scale)];
    let grid = Grid { blocks: moves.blocks as u32, threads: MOVE_THREADS, shared: 0 };
    // SAFETY: the arguments are those of `move.cu`; `run`'s contract covers the memory.
    unsafe { function.launch(grid, stream.raw(), &mut arguments, false) }
}
