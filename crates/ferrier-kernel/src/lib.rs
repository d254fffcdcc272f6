//! Kernels: many 1-D transforms at once.
//!
//! A kernel member is one file and one line in [`KERNELS`]. It is asked for
//! [`Lines`] of one length, kind and scale, and then transforms *blocks of
//! lines*: it loads the lines from wherever they lie ([`Strip`]s: own memory,
//! a neighbour's, a receive buffer), transforms them in cache, and stores
//! them wherever they are wanted. So packing, unpacking, transposing and
//! scaling are not passes of their own.

mod leaving;
mod native;
mod r2r;
mod real;
mod rustfft;

use std::cell::Cell;

use serde::{Deserialize, Serialize};

/// For the tests of this crate alone, which would otherwise compile all of it
/// once more: the kernel on each instruction set.
#[doc(hidden)]
pub mod inside {
    pub use crate::native::{Isa, Roots, lines_f32_on, lines_f64_on};
}

pub use leaving::StreamCopy;
pub use r2r::R2r;
pub use real::{Precision, Real};

/// What a line goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// n complex in, n complex out, sign -1.
    Forward,
    /// n complex in, n complex out, sign +1.
    Backward,
    /// n real in, n/2+1 complex out, sign -1.
    RealForward,
    /// n/2+1 complex in, n real out, sign +1. The imaginary parts of the
    /// first and (for even n) the last element are taken as zero.
    RealBackward,
    /// n in, n out: a cosine or sine transform.
    R2r {
        /// Which one.
        kind: R2r,
        /// Whether its matrix is made orthogonal up to a factor, as scipy
        /// does for `norm="ortho"` (types 1, 2 and 3: the first or last
        /// elements get a factor of the root of 2, or of a half).
        ortho: bool,
        /// Whether elements are complex: their parts go through it one by one.
        complex: bool,
    },
}

impl LineKind {
    /// Elements of a line of `n` points before the transform.
    pub fn len_in(self, n: usize) -> usize {
        if self == LineKind::RealBackward { n / 2 + 1 } else { n }
    }

    /// Elements of a line of `n` points after the transform.
    pub fn len_out(self, n: usize) -> usize {
        if self == LineKind::RealForward { n / 2 + 1 } else { n }
    }

    /// Numbers per element before the transform: 1 for real, 2 for complex.
    pub fn width_in(self) -> usize {
        match self {
            LineKind::RealForward | LineKind::R2r { complex: false, .. } => 1,
            _ => 2,
        }
    }

    /// Numbers per element after the transform.
    pub fn width_out(self) -> usize {
        match self {
            LineKind::RealBackward | LineKind::R2r { complex: false, .. } => 1,
            _ => 2,
        }
    }
}

/// What a kernel is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinesSpec {
    /// Points of a line (of the real line, for real kinds).
    pub n: usize,
    /// What is done to it.
    pub kind: LineKind,
    /// Every output is multiplied by this.
    pub scale: f64,
}

/// A run of consecutive elements of every line of a block.
///
/// Element `k` (with `at <= k < at + len`) of line `j` lies at
/// `ptr + (k - at) * step + j * lane`, counted in numbers (`T`), so a complex
/// element at unit distance has a step of 2.
#[derive(Clone, Copy, Debug)]
pub struct Strip<T> {
    /// Element `at` of line 0.
    pub ptr: *mut T,
    /// First element of the line that lies here.
    pub at: usize,
    /// How many elements lie here.
    pub len: usize,
    /// Numbers from one element of a line to the next.
    pub step: isize,
    /// Numbers from one line to the next.
    pub lane: isize,
}

/// Transforms of many lines of one length and kind. Made once, used by many
/// threads, each with a scratch of its own.
pub trait Lines<T>: Send + Sync {
    /// The number of lines in a block at which this kernel does best, for
    /// lines whose elements (`strided == true`) or which themselves
    /// (`strided == false`) lie far apart.
    fn block(&self, strided: bool) -> usize;

    /// Numbers of scratch that [`run`](Lines::run) needs for blocks of at
    /// most `lines` lines.
    fn scratch(&self, lines: usize) -> usize;

    /// Loads `lines` lines from `from`, transforms them, stores them to `to`.
    ///
    /// The strips of `from` are parts of the line before the transform, in
    /// order; those of `to` likewise after it. What those of `from` leave out
    /// is zero, what those of `to` leave out is dropped. All loads
    /// happen before the first store, so lines may go back where they came
    /// from. `ahead` describes the block that this thread will be given next
    /// (`ahead_lines` lines; none at the end): it may be fetched meanwhile or,
    /// where there is a [`pocket`](Block::pocket) for it, be read into that.
    /// Returns whether it was: then the next block comes from
    /// [`pocketed`](Lines::pocketed) rather than from where it lies.
    /// What comes out for a line depends on that line alone, to the last bit.
    /// A thread that asked for [`Store::Stream`] calls [`fence`] before others look.
    ///
    /// # Safety
    /// Every element that `from` describes is valid for reads and every one
    /// that `to` describes for writes, nobody else writes to the former or
    /// touches the latter meanwhile, and `scratch` has at least
    /// `self.scratch(lines)` numbers, 64-byte aligned. Scratch may hold anything.
    /// Where there is a pocket, the same holds for `ahead` as for `from`, the
    /// pocket is as long as [`pocket`](Lines::pocket) says, 64-byte aligned,
    /// and nothing of this block lies in it.
    unsafe fn run(&self, block: &Block<'_, T>, scratch: &mut [T]) -> bool;

    /// Numbers of a [`Block::pocket`] for blocks of at most `lines` lines;
    /// none where this kernel never takes anything along.
    fn pocket(&self, lines: usize) -> usize {
        let _ = lines;
        0
    }

    /// Where `lines` lines that were taken along lie in their pocket.
    fn pocketed(&self, pocket: *mut T, lines: usize) -> Strip<T> {
        let _ = lines;
        Strip { ptr: pocket, at: 0, len: 0, step: 0, lane: 0 }
    }
}

/// A block of lines: where they come from, where they go, and what comes next.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a, T> {
    /// How many lines.
    pub lines: usize,
    /// Where the lines come from.
    pub from: &'a [Strip<T>],
    /// Where they go.
    pub to: &'a [Strip<T>],
    /// Where the lines of this thread's next block come from; may be empty.
    pub ahead: &'a [Strip<T>],
    /// How many lines that next block has.
    pub ahead_lines: usize,
    /// Where the next block may be taken along to, or null. Rows that lie far
    /// apart in memory crowd the few places that a cache has for them, so that
    /// fetching them early is no use; copies of them have room.
    pub pocket: *mut T,
    /// Whether `from` is a pocket.
    pub pocketed: bool,
    /// How the lines are best stored. A hint.
    pub store: Store,
    /// Rows that may leave meanwhile: those that did are taken out.
    pub leaving: Option<&'a Cell<StreamCopy<T>>>,
}

impl<'a, T> Block<'a, T> {
    /// A block after which nothing comes.
    pub fn new(lines: usize, from: &'a [Strip<T>], to: &'a [Strip<T>]) -> Self {
        let (pocket, store) = (std::ptr::null_mut(), Store::Plain);
        Block { lines, from, to, ahead: &[], ahead_lines: 0, pocket, pocketed: false, store, leaving: None }
    }
}

/// How lines are best stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Store {
    /// Their places are in cache, or those that they came from.
    #[default]
    Plain,
    /// Their places are far: it pays to fetch them early.
    Reserve,
    /// Their places are far and nobody will look at them soon: it pays to
    /// write past the caches, where whole cache lines are written.
    Stream,
}

/// Makes what this thread stored by [`Store::Stream`] visible to the others,
/// before it tells them that it is done.
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is part of SSE, which is always there.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

type Make<T> = fn(&LinesSpec) -> Box<dyn Lines<T>>;

/// A line of the table of kernels.
#[derive(Debug)]
pub struct Member {
    /// The name users type.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    f32: Make<f32>,
    f64: Make<f64>,
}

/// All kernels; the first is the default.
pub static KERNELS: &[Member] = &[
    Member {
        name: "native",
        summary: "our own, a line in each SIMD lane",
        f32: native::lines_f32,
        f64: native::lines_f64,
    },
    Member {
        name: "rustfft",
        summary: "the rustfft and realfft crates, line by line",
        f32: rustfft::lines::<f32>,
        f64: rustfft::lines::<f64>,
    },
];

/// The instruction set that `native` runs on: the best that this processor
/// has, or the one that `FERRIER_SIMD` names, so that unlike processors give
/// the same bits.
///
/// # Errors
/// What it names and the names there are, where this processor has no such thing.
pub fn simd() -> Result<&'static str, (String, String)> {
    native::Isa::chosen().map(native::Isa::name).ok_or_else(|| {
        let asked = std::env::var_os("FERRIER_SIMD").unwrap_or_default();
        let known: Vec<_> = native::Isa::available().iter().map(|isa| isa.name()).collect();
        (asked.to_string_lossy().into_owned(), known.join(", "))
    })
}

/// The member called `name`, if there is one.
pub fn find(name: &str) -> Option<&'static Member> {
    KERNELS.iter().find(|member| member.name == name)
}

impl Member {
    /// Lines of this kernel.
    pub fn lines<T: Real>(&self, spec: &LinesSpec) -> Box<dyn Lines<T>> {
        match spec.kind {
            LineKind::R2r { kind, ortho, complex } => {
                let engine = |spec: &LinesSpec| T::lines(self, spec);
                Box::new(r2r::R2rLines::new(spec, (kind, ortho, complex), engine))
            }
            _ => T::lines(self, spec),
        }
    }
}
