//! The launches of a pass, as data.

use super::cufft::Cufft;
use super::fused_op::{Field, FusedLaunch};
use super::gpu::Function;
use super::line_tables::Lone;
use super::tuning::{Cut, Wish};
use ferrier_plan::geometry::Geometry;

/// A launch of the kernel of lines.
pub(super) struct LineLaunch {
    pub wish: Wish,
    pub cut: Cut,
    /// Strips of a line before and after; 0: one that holds all of it.
    pub strips: [usize; 2],
    /// The only cell of lines, where no table is needed.
    pub lone: Option<Lone>,
    /// Whether loaded data is not used again soon.
    pub flowing: bool,
    /// Whether it may start while the previous kernel runs.
    pub early: bool,
    pub cells: usize,
    pub count: usize,
    pub strips_at: usize,
    pub roots: usize,
    pub blocks: u64,
    pub scale: f64,
    /// The pointwise operation of the modes.
    pub fused_op: Option<FusedLaunch>,
}

/// A launch of the kernel of copies.
pub(super) struct MoveLaunch {
    pub unit: usize,
    pub turn: bool,
    pub at: usize,
    pub count: usize,
    pub blocks: u64,
    pub scale: f64,
}

/// Lines gathered into scratch, transformed there by cuFFT, and scattered.
pub(super) struct CufftLines {
    /// Bytes of scratch to set to zero first, because lines are not whole.
    pub clear: usize,
    pub gather: MoveLaunch,
    pub fft: Cufft,
    /// Whether they go to a second scratch or stay in place.
    pub apart: bool,
    /// The pointwise operation of the modes, before or after.
    pub field: Option<Field>,
    /// The backward transform of the modes.
    pub back: Option<Cufft>,
    pub scatter: MoveLaunch,
}

impl CufftLines {
    /// The scratch (first or second) that each of the two transforms stores to.
    pub fn ends(&self) -> [usize; 2] {
        let there = usize::from(self.apart);
        [there, if self.back.is_some() { 0 } else { there }]
    }
}

/// The whole array, or batches of its planes or rows, from the input to the output by cuFFT; then, where there is a scale,
/// times that in place.
pub(super) struct CufftArray {
    pub whole: Cufft,
    /// For one array of a batch; `None` where that is all.
    pub one: Option<Cufft>,
    /// Bytes between arrays of the input, and of the output.
    pub bytes: [usize; 2],
    pub scaling: MoveLaunch,
}

/// Where elements lie, in scalars; as in `arrays.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ArrayEnd {
    pub start: u64,
    pub step: [u64; 3],
    pub batch: u64,
}

impl From<&Geometry> for ArrayEnd {
    fn from(geometry: &Geometry) -> ArrayEnd {
        ArrayEnd {
            start: geometry.start as u64,
            step: geometry.strides.map(|step| step as u64),
            batch: geometry.batch as u64,
        }
    }
}

/// A launch of the kernel of arrays.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ArrayLaunch {
    /// Points of the axes.
    pub points: [usize; 3],
    /// 0: complex, 1: real to complex, 2: complex to real.
    pub kind: usize,
    /// The axes in the order of their transforms.
    pub order: Vec<usize>,
    pub threads: usize,
    /// Blocks that should fit on a multiprocessor.
    pub resident: usize,
    /// Bytes of shared memory.
    pub shared: usize,
    pub ends: [ArrayEnd; 2],
    pub backward: bool,
    pub scale: f64,
    pub arrays: usize,
}

/// The launches of a pass.
pub(super) enum Launch {
    Nothing,
    Lines(Box<LineLaunch>),
    Moves(MoveLaunch),
    CufftLines(Box<CufftLines>),
    CufftArray(CufftArray),
    Arrays(Box<ArrayLaunch>),
}

/// A pass with its kernels.
pub struct CudaWork {
    pub(super) launch: Launch,
    /// Empty until the operator of a call is known, where there is one.
    pub(super) functions: Vec<Function>,
    /// The kernel of the last moves for calls with a scale, once there was one.
    pub(super) scaled_moves: Option<Function>,
}

impl CudaWork {
    pub(super) fn new(launch: Launch) -> CudaWork {
        CudaWork { launch, functions: Vec::new(), scaled_moves: None }
    }

    /// Whether it needs the operator of a call.
    pub(super) fn has_operator(&self) -> bool {
        let fused = match &self.launch {
            Launch::Lines(lines) => lines.fused_op.as_ref(),
            Launch::CufftLines(lines) => lines.field.as_ref().map(|field| &field.fused),
            _ => None,
        };
        fused.is_some_and(|fused| fused.is_operator())
    }

    /// Its plans of cuFFT.
    pub(super) fn cufft_plans(&self) -> Vec<&Cufft> {
        match &self.launch {
            Launch::CufftArray(array) => std::iter::once(&array.whole).chain(&array.one).collect(),
            Launch::CufftLines(lines) => std::iter::once(&lines.fft).chain(&lines.back).collect(),
            _ => Vec::new(),
        }
    }
}
