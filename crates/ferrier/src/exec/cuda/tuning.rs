//! How the kernel of lines is cut for a length: radices, threads, lines of a
//! block. Pure. The weights were measured on an H200: eight scalars
//! in a thread's registers, rows of 128 bytes, as many threads as registers allow.

use crate::Precision;
use ferrier_kernel::LineKind;

/// Parameters that the kernel of lines is compiled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub radices: Vec<usize>,
    /// Threads of a line.
    pub threads: usize,
    /// Lines of a block.
    pub lines: usize,
    /// Blocks that should fit on a multiprocessor.
    pub blocks: usize,
    /// Bytes of shared memory.
    pub shared: usize,
}

/// The lines to transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub points: usize,
    pub kind: LineKind,
    pub precision: Precision,
    /// Whether lines are contiguous in the source.
    pub rows: bool,
    /// Whether the target has the other order.
    pub turn: bool,
    /// Whether a line has several strips in source or target.
    pub scattered: bool,
    /// Whether there is a pointwise operation.
    pub fused: bool,
    /// Neighbouring lines.
    pub lanes: usize,
}

/// The largest prime that is transformed in registers.
const LARGEST_PRIME: usize = 13;
const LARGEST_RADIX: usize = 16;
const MOST_THREADS: usize = 1024;
/// Bytes that neighbouring lines should fill.
const ROW: usize = 128;
/// Bytes of shared memory for the kernel's own use.
const OWN: usize = 4096;

impl Cut {
    /// The best parameters; `None` where the length has a large prime factor or does
    /// not fit into `shared` bytes of a block, of [block, multiprocessor].
    pub fn new(wish: &Wish, shared: [usize; 2]) -> Option<Cut> {
        let pair = 2 * wish.precision.bytes();
        let mut best: Option<(f64, Vec<usize>, usize)> = None;
        for radices in products(wish.points) {
            for threads in thread_counts(wish.points) {
                let cost = cost(wish, &radices, threads);
                if best.as_ref().is_none_or(|(least, ..)| cost < *least - 1e-9) {
                    best = Some((cost, radices.clone(), threads));
                }
            }
        }
        let (_, radices, threads) = best?;
        let bytes = |lines: usize| match (radices.len() > 1 || wish.turn, wish.rows) {
            (false, _) => 0,
            (_, true) => lines * ((wish.points + wish.points / (ROW / pair)) | 1) * pair,
            (_, false) => wish.points * (lines + usize::from(wish.turn)) * pair,
        };
        let mut lines = match wish.rows && !wish.turn {
            true => (128 / threads).max(1),
            // Short lines of f64: twice as many lines were faster.
            false if wish.precision == Precision::F64 && threads <= 32 => 2 * ROW / pair,
            false => ROW / pair,
        };
        while lines * threads < 128 && lines * 2 <= wish.lanes {
            lines *= 2;
        }
        while lines > 1
            && (lines * threads > MOST_THREADS || bytes(lines) + OWN > shared[0] || lines / 2 >= wish.lanes)
        {
            lines /= 2;
        }
        let shared_bytes = bytes(lines);
        if lines * threads > MOST_THREADS || shared_bytes + OWN > shared[0] {
            return None;
        }
        let fit = if shared_bytes == 0 { 32 } else { shared[1] / (shared_bytes + OWN) };
        let blocks = (resident(wish, &radices, threads) / (lines * threads)).clamp(1, fit.clamp(1, 32));
        Some(Cut { radices, threads, lines, blocks, shared: shared_bytes })
    }
}

/// Threads that a multiprocessor should hold: as many as registers allow.
fn resident(wish: &Wish, radices: &[usize], threads: usize) -> usize {
    let most = most(wish.points, radices, threads);
    let f64 = wish.precision == Precision::F64;
    let full = match (f64, most) {
        (true, 0..=8) => 1024,
        (true, 9..=12) => 768,
        (true, 13..=20) => 512,
        (true, _) => 384,
        (false, 0..=8) => 2048,
        (false, 9..=12) => 1536,
        (false, 13..=20) => 1024,
        (false, _) => 768,
    };
    // Contiguous rows are faster with more registers; strips and formulas need some too.
    match (wish.rows || wish.scattered || wish.fused || wish.kind == LineKind::RealBackward, f64) {
        (false, _) => full,
        (true, true) => full.min(768),
        (true, false) => full.min(1024),
    }
}

/// Scalars that a thread holds in its largest stage.
fn most(points: usize, radices: &[usize], threads: usize) -> usize {
    radices.iter().map(|r| (points / r).div_ceil(threads) * r).max().unwrap_or(1)
}

/// The cost of parameters: stages, idle threads weigh more, and scalars
/// that do not fit into registers.
fn cost(wish: &Wish, radices: &[usize], threads: usize) -> f64 {
    let n = wish.points as f64;
    let stage = |r: &usize| {
        let held = (wish.points / r).div_ceil(threads) * r;
        1.0 + 0.5 * ((held * threads) as f64 / n - 1.0)
    };
    let stages: f64 = radices.iter().map(stage).sum();
    let weight = if wish.precision == Precision::F64 { 0.25 } else { 0.1 };
    let held = most(wish.points, radices, threads);
    let crowded = weight * held.saturating_sub(8) as f64;
    // Fewer scalars per thread mean more threads with less work each.
    let thin = 0.25 * 8_usize.saturating_sub(wish.points.div_ceil(threads)) as f64;
    let row = ROW / (2 * wish.precision.bytes());
    let wide = !wish.rows || wish.turn;
    let narrow = if wide && threads * row > MOST_THREADS { 0.5 } else { 0.0 };
    stages + crowded + thin + narrow
}

/// All ways to write `n` as a product of radices, the largest first.
fn products(n: usize) -> Vec<Vec<usize>> {
    fn extend(left: usize, largest: usize, list: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
        if left == 1 {
            all.push(list.clone());
            return;
        }
        if list.len() == 6 {
            return;
        }
        for radix in (2..=largest.min(left)).rev().filter(|r| left.is_multiple_of(*r) && smooth(*r)) {
            list.push(radix);
            extend(left / radix, radix, list, all);
            list.pop();
        }
    }
    if n == 1 {
        return vec![vec![1]];
    }
    let mut all = Vec::new();
    if smooth(n) {
        extend(n, LARGEST_RADIX, &mut Vec::new(), &mut all);
    }
    all
}

/// Whether all prime factors can be transformed in registers.
pub(super) fn smooth(mut n: usize) -> bool {
    for p in 2..=LARGEST_PRIME {
        while n.is_multiple_of(p) {
            n /= p;
        }
    }
    n == 1
}

/// Candidates for the number of threads of a line.
fn thread_counts(n: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = (4..=32).filter(|d| n.is_multiple_of(*d)).map(|d| n / d).collect();
    counts.push(n.div_ceil(8));
    counts.retain(|&threads| threads <= MOST_THREADS);
    counts.sort_unstable();
    counts.dedup();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: [usize; 2] = [232_448, 233_472];

    fn wish(points: usize, precision: Precision, rows: bool) -> Wish {
        let kind = LineKind::Forward;
        Wish { points, kind, precision, rows, turn: false, scattered: false, fused: false, lanes: points }
    }

    #[test]
    fn cuts_that_measured_best_are_found() {
        let cut = |n, precision, rows| Cut::new(&wish(n, precision, rows), H200).unwrap();
        let lanes = |n| cut(n, Precision::F64, false);
        assert_eq!(
            (&*lanes(512).radices, lanes(512).threads, lanes(512).lines, lanes(512).blocks),
            (&[8, 8, 8][..], 64, 8, 2)
        );
        assert_eq!(
            (&*lanes(768).radices, lanes(768).threads, lanes(768).lines, lanes(768).blocks),
            (&[12, 8, 8][..], 96, 8, 1)
        );
        assert_eq!((lanes(1024).radices.len(), lanes(1024).threads, lanes(1024).lines), (4, 128, 8));
        assert_eq!(cut(768, Precision::F64, true).lines, 2);
    }

    #[test]
    fn every_smooth_length_fits_and_no_other() {
        for n in 1..=4096 {
            for (precision, rows) in
                [(Precision::F64, false), (Precision::F64, true), (Precision::F32, false)]
            {
                let cut = Cut::new(&wish(n, precision, rows), H200);
                assert_eq!(cut.is_some(), smooth(n), "{n}");
                let Some(cut) = cut else { continue };
                assert_eq!(cut.radices.iter().product::<usize>(), n);
                assert!(
                    cut.threads * cut.lines <= MOST_THREADS && cut.shared + OWN <= H200[0],
                    "{n} {cut:?}"
                );
            }
        }
    }

    #[test]
    fn few_lanes_make_small_blocks() {
        let cut = Cut::new(&Wish { lanes: 3, ..wish(256, Precision::F64, false) }, H200).unwrap();
        assert!(cut.lines <= 4, "{cut:?}");
    }
}
