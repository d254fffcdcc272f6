//! How much memory a plan takes.

use serde::Serialize;

use super::variant::Variant;

/// Bytes that a plan takes on one rank, the caller's arrays not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Memory {
    /// Arrays between passes.
    pub arrays: usize,
    /// Send and receive buffers.
    pub messages: usize,
    /// Scratch of the threads; on a GPU, of lines that cuFFT transforms.
    pub scratch: usize,
    /// Windows that other ranks put into; no workspace replaces them.
    pub window: usize,
    /// The work area of cuFFT.
    #[serde(skip_serializing_if = "is_zero")]
    pub cufft: usize,
    /// Tables of a GPU's kernels.
    #[serde(skip_serializing_if = "is_zero")]
    pub tables: usize,
    /// Main memory that the messages of a GPU are staged in. Not part of [`total`](Self::total).
    #[serde(skip_serializing_if = "is_zero")]
    pub staging: usize,
    /// Main memory in which a GPU records what it has encoded, and sums for norms. Not part of [`total`](Self::total).
    #[serde(skip_serializing_if = "is_zero")]
    pub records: usize,
}

fn is_zero(bytes: &usize) -> bool {
    *bytes == 0
}

impl Memory {
    /// Arrays, messages and windows of these variants; scalars have `size` bytes.
    pub(crate) fn of<W, C>(variants: &[Variant<W, C>], size: usize) -> Memory {
        let largest = variants.iter().map(|variant| &variant.layout).max_by_key(|layout| layout.total);
        let (arrays, total) = largest.map_or((0, 0), |layout| (layout.arrays, layout.total));
        let exchanges = variants.iter().flat_map(|variant| variant.exchanges.iter());
        let window = exchanges.map(|exchange| exchange.window()).max().unwrap_or(0);
        Memory { arrays: arrays * size, messages: (total - arrays) * size, window, ..Memory::default() }
    }

    /// All bytes where the arrays are: in main memory or on the GPU.
    pub fn total(&self) -> usize {
        self.workspace() + self.window + self.tables
    }

    /// Bytes of a workspace.
    pub(crate) fn workspace(&self) -> usize {
        self.arrays + self.messages + self.scratch + self.cufft
    }
}
