//! Kernel `native` on every instruction set against transforms computed term by term.

use ferrier_kernel::internals::{Isa, Roots, lines_f32_on, lines_f64_on};
use ferrier_kernel::{LineBlock, LineKind, Lines, LinesSpec, Real, Repeat, StoreHint, Strip};

const KINDS: [LineKind; 4] =
    [LineKind::Forward, LineKind::Backward, LineKind::RealForward, LineKind::RealBackward];

/// A precision and the constructor of its lines.
trait Tested: Real {
    fn make(isa: Isa, spec: &LinesSpec) -> Box<dyn Lines<Self>>;
    fn bits(self) -> u64;
}
impl Tested for f32 {
    fn make(isa: Isa, spec: &LinesSpec) -> Box<dyn Lines<f32>> {
        lines_f32_on(isa, spec)
    }
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}
impl Tested for f64 {
    fn make(isa: Isa, spec: &LinesSpec) -> Box<dyn Lines<f64>> {
        lines_f64_on(isa, spec)
    }
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// Values in -1..1 that both precisions represent exactly.
fn noise(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 40) as f64 / (1u64 << 23) as f64 - 1.0) as f32 as f64
    };
    (0..count).map(|_| next()).collect()
}

/// The transform of one line, term by term.
fn naive(n: usize, kind: LineKind, line: &[f64]) -> Vec<f64> {
    let sign = if matches!(kind, LineKind::Backward | LineKind::RealBackward) { 1.0 } else { -1.0 };
    let turn = |t: usize| {
        // Of an angle below a quarter turn, so that the rounding error of the argument is small.
        let quarter = 4 * t / n;
        let (sin, cos) = (std::f64::consts::FRAC_PI_2 * (4 * t % n) as f64 / n as f64).sin_cos();
        [(cos, sin), (-sin, cos), (-cos, -sin), (sin, -cos)][quarter]
    };
    let table: Vec<_> = (0..n).map(turn).collect();
    let last = n / 2;
    let input = |k: usize| match kind {
        LineKind::Forward | LineKind::Backward => (line[2 * k], line[2 * k + 1]),
        LineKind::RealForward => (line[k], 0.0),
        LineKind::RealBackward if k == 0 || 2 * k == n => (line[2 * k], 0.0),
        LineKind::RealBackward if k <= last => (line[2 * k], line[2 * k + 1]),
        LineKind::RealBackward => (line[2 * (n - k)], -line[2 * (n - k) + 1]),
        LineKind::R2r { .. } => unreachable!("cosine and sine transforms have their own tests"),
    };
    let inputs: Vec<_> = (0..n).map(input).collect();
    let mut result = vec![];
    for k in 0..kind.len_out(n) {
        let (mut re, mut im) = (Sum::default(), Sum::default());
        let mut t = 0;
        for &(a, b) in &inputs {
            let (c, s) = (table[t].0, sign * table[t].1);
            re.add(a * c);
            re.add(-b * s);
            im.add(a * s);
            im.add(b * c);
            t = if t + k >= n { t + k - n } else { t + k };
        }
        result.push(re.value());
        if kind.width_out() == 2 {
            result.push(im.value());
        }
    }
    result
}

/// A compensated sum.
#[derive(Default)]
struct Sum(f64, f64);
impl Sum {
    fn add(&mut self, x: f64) {
        let s = self.0 + x;
        let t = s - self.0;
        self.1 += (self.0 - (s - t)) + (x - t);
        self.0 = s;
    }
    fn value(&self) -> f64 {
        self.0 + self.1
    }
}

/// The memory layout of lines.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    /// Neighbouring lines are adjacent.
    Rows,
    /// The same in three pieces, as if on three ranks.
    RowPieces,
    /// Line after line.
    Columns,
    /// The same in pieces of one, two and the remaining elements.
    ColumnPieces,
    /// Neither lines nor elements are adjacent.
    Sparse,
    /// Adjacent lines, from the last to the first.
    Backwards,
    /// Rows aligned to cache lines, so that non-temporal stores apply.
    WholeRows,
    /// Columns aligned to cache lines.
    WholeColumns,
    /// The same in two pieces.
    WholeColumnPieces,
    /// Rows a multiple of a page apart, which conflict in caches.
    PageRows,
    /// Rows of runs of so many lines, as in boxes that have few elements along the fastest axis; runs are farther
    /// apart than elements.
    RowRuns(usize),
    /// Rows of runs of eight lines, nearer than elements, all aligned to cache lines.
    WholeRuns,
    /// Columns in runs of three lines.
    ColumnRuns,
}
const LAYOUTS: [Layout; 15] = [
    Layout::Rows,
    Layout::RowPieces,
    Layout::Columns,
    Layout::ColumnPieces,
    Layout::Sparse,
    Layout::Backwards,
    Layout::WholeRows,
    Layout::WholeColumns,
    Layout::WholeColumnPieces,
    Layout::PageRows,
    Layout::RowRuns(1),
    Layout::RowRuns(2),
    Layout::RowRuns(3),
    Layout::WholeRuns,
    Layout::ColumnRuns,
];

/// Strips over one buffer, and the buffer's length.
fn strips<T>(layout: Layout, lines: usize, len: usize, width: usize) -> (Vec<(usize, Strip<T>)>, usize) {
    let cuts = match layout {
        Layout::RowPieces => vec![0, len / 3, len / 2, len],
        Layout::ColumnPieces => vec![0, len.min(1), len.min(3), len],
        Layout::WholeColumnPieces => vec![0, len.min((len / 2).next_multiple_of(16)), len],
        _ => vec![0, len],
    };
    let (w, n, l) = (width as isize, len as isize, lines as isize);
    let (step, lane) = match layout {
        Layout::Rows | Layout::RowPieces => (w * (l + 3), w),
        Layout::Columns | Layout::ColumnPieces => (w, w * n + 5),
        Layout::Sparse => (w + 1, (w + 1) * n + 3),
        Layout::Backwards => (w * l, -w),
        // 16 scalars are one cache line, or two.
        Layout::WholeRows => ((w * (l + 3) + 15) / 16 * 16, w),
        Layout::WholeColumns | Layout::WholeColumnPieces => (w, (w * n + 20) / 16 * 16),
        Layout::PageRows => (1024, w),
        Layout::RowRuns(run) => (w * run as isize + 1, w),
        Layout::WholeRuns => ((l + 7) / 8 * 32 + 16, w),
        Layout::ColumnRuns => (w, w * n + 2),
    };
    let (run, skip) = match layout {
        Layout::RowRuns(run) => (run, n * step + 3),
        Layout::WholeRuns => (8, 32),
        Layout::ColumnRuns => (3, 3 * lane + 7),
        _ => (usize::MAX, 0),
    };
    let mut strips = vec![];
    let aligned = [
        Layout::WholeRows,
        Layout::WholeColumns,
        Layout::WholeColumnPieces,
        Layout::PageRows,
        Layout::WholeRuns,
    ];
    let aligned = aligned.contains(&layout);
    let mut offset = if aligned { 16 } else { 7 };
    for cut in cuts.windows(2) {
        let pieces = cut[1] - cut[0];
        let first = if lane < 0 { (l - 1) * w } else { 0 };
        let strip = Strip { ptr: std::ptr::null_mut(), at: cut[0], len: pieces, step, lane, run, skip };
        strips.push((offset + first as usize, strip));
        let runs = (lines / run) * skip.unsigned_abs();
        offset += pieces * step.unsigned_abs() + lines.min(run) * lane.unsigned_abs() + runs + 9;
        offset = if aligned { offset.next_multiple_of(16) } else { offset };
    }
    (strips, offset)
}

/// Lines in memory, with a canary in all other memory.
struct LinesInMemory<T> {
    scalars: Vec<T>,
    strips: Vec<Strip<T>>,
}

impl<T: Real> LinesInMemory<T> {
    fn new(layout: Layout, lines: usize, len: usize, width: usize) -> Self {
        let (places, total) = strips::<T>(layout, lines, len, width);
        let mut scalars = vec![T::rounded(-77.0); total + 16];
        let start = scalars.as_ptr().align_offset(64);
        let mut place =
            |&(at, strip): &(usize, Strip<T>)| Strip { ptr: scalars[start + at..].as_mut_ptr(), ..strip };
        let strips = places.iter().map(&mut place).collect();
        LinesInMemory { scalars, strips }
    }

    fn visit(&mut self, lines: usize, width: usize, mut f: impl FnMut(usize, usize, &mut T)) {
        for strip in &self.strips {
            for (k, j, w) in
                (0..strip.len).flat_map(|k| (0..lines).flat_map(move |j| (0..width).map(move |w| (k, j, w))))
            {
                let at = strip.line(j).wrapping_offset(k as isize * strip.step).wrapping_add(w);
                // SAFETY: `strips` computes offsets within the buffer.
                f(j, (strip.at + k) * width + w, unsafe { &mut *at });
            }
        }
    }

    /// The lines, after checking that nothing else was written.
    fn read(&mut self, lines: usize, len: usize, width: usize) -> Vec<Vec<T>> {
        let mut result = vec![vec![T::default(); len * width]; lines];
        self.visit(lines, width, |j, m, x| {
            result[j][m] = *x;
            *x = T::rounded(-77.0);
        });
        assert!(
            self.scalars.iter().all(|x| *x == T::rounded(-77.0)),
            "memory outside the strips was written"
        );
        result
    }
}

struct Scratch<T>(Vec<T>, usize);
impl<T: Real> Scratch<T> {
    fn dirty(len: usize) -> Self {
        let scalars = vec![T::rounded(f64::NAN); len + 64];
        let skip = scalars.as_ptr().align_offset(64);
        Scratch(scalars, skip)
    }
    fn slice(&mut self, len: usize) -> &mut [T] {
        &mut self.0[self.1..self.1 + len]
    }
}

/// Runs `input` through `lines`, from one layout to another.
fn run<T: Tested>(
    lines: &dyn Lines<T>,
    spec: &LinesSpec,
    input: &[Vec<f64>],
    (from, to): (Layout, Layout),
    in_place: bool,
) -> Vec<Vec<T>> {
    let (n, kind, count) = (spec.n, spec.kind, input.len());
    let mut source = LinesInMemory::<T>::new(from, count, kind.len_in(n), kind.width_in());
    source.visit(count, kind.width_in(), |j, m, x| *x = T::rounded(input[j][m]));
    let mut target = LinesInMemory::<T>::new(to, count, kind.len_out(n), kind.width_out());
    let size = lines.scratch(count);
    let mut scratch = Scratch::dirty(size);
    let strips = if in_place { source.strips.clone() } else { target.strips.clone() };
    let mut staging = Scratch::dirty(lines.staging_len(count));
    let room = staging.slice(lines.staging_len(count));
    // The next block cannot be staged if this block stores to it.
    let null = in_place || room.is_empty();
    let block = LineBlock {
        ahead: &source.strips,
        ahead_lines: count,
        store: StoreHint::Stream,
        staging: if null { std::ptr::null_mut() } else { room.as_mut_ptr() },
        ..LineBlock::new(count, &source.strips, &strips)
    };
    // SAFETY: the strips lie within the buffers of source and target, which this function owns.
    let staged = unsafe { lines.run(&block, scratch.slice(size)) };
    let far = from == Layout::PageRows && matches!(to, Layout::PageRows | Layout::Rows) && count >= 16;
    assert!(staged || null || !far, "{count} lines of {n} were not staged along");
    let result = if in_place { &mut source } else { &mut target };
    let result = result.read(count, kind.len_out(n), kind.width_out());
    if staged {
        let from = [lines.staged(room.as_mut_ptr(), count)];
        let again = LineBlock {
            store: StoreHint::Stream,
            from_staging: true,
            ..LineBlock::new(count, &from, &strips)
        };
        // SAFETY: as above; the source is the staging buffer.
        unsafe { lines.run(&again, scratch.slice(size)) };
        let again = target.read(count, kind.len_out(n), kind.width_out());
        assert!(again == result, "{count} lines of {n} from staging");
    }
    result
}

fn error<T: Real>(got: &[T], want: &[f64], scale: f64) -> f64 {
    let square = |x: f64| x * x;
    let off: f64 = got.iter().zip(want).map(|(g, w)| square(g.widened() - scale * w)).sum();
    let all: f64 = want.iter().map(|w| square(scale * w)).sum();
    (off / all.max(f64::MIN_POSITIVE)).sqrt() / T::PRECISION.epsilon()
}

fn inputs(n: usize, kind: LineKind, count: usize) -> Vec<Vec<f64>> {
    (0..count).map(|j| noise(kind.len_in(n) * kind.width_in(), (n * 100 + j) as u64)).collect()
}

/// All instruction sets and memory layouts for lines of `n` points.
fn check<T: Tested>(n: usize, kind: LineKind, references: &[Vec<f64>], layouts: &[Layout]) {
    let count = references.len();
    let input = inputs(n, kind, count);
    let scale = if n.is_multiple_of(2) { 1.0 } else { 1.0 / n as f64 };
    let spec = LinesSpec { n, kind, scale };
    let allowed = 1.0 + 0.6 * (n as f64).log2();
    for isa in Isa::available() {
        let lines = T::make(isa, &spec);
        for (i, &from) in layouts.iter().enumerate() {
            let to = layouts[(i + n) % layouts.len()];
            let got = run(&*lines, &spec, &input, (from, to), false);
            for (got, want) in got.iter().zip(references) {
                let error = error(got, want, scale);
                let what = T::PRECISION.name();
                assert!(error < allowed, "n {n} {kind:?} {isa:?} {what} {from:?} to {to:?}: {error} eps");
            }
            if kind.width_in() == kind.width_out() {
                assert_eq!(
                    run(&*lines, &spec, &input, (from, from), true),
                    got,
                    "in place, n {n} {isa:?} {from:?}"
                );
            }
        }
    }
}

fn check_all(n: usize, count: usize, layouts: &[Layout]) {
    for kind in KINDS {
        let references: Vec<_> = inputs(n, kind, count).iter().map(|line| naive(n, kind, line)).collect();
        check::<f64>(n, kind, &references, layouts);
        check::<f32>(n, kind, &references, layouts);
    }
}

#[test]
fn every_small_length() {
    for n in 1..=130 {
        check_all(n, [1, 5, 11, 19][n % 4], &LAYOUTS);
    }
}

#[test]
fn larger_lengths() {
    for n in [144, 243, 250, 256, 289, 360, 384, 500, 512, 1000, 1001, 1009, 1024, 2021, 2048, 2187] {
        check_all(
            n,
            9,
            &[Layout::Rows, Layout::ColumnPieces, Layout::WholeRows, Layout::WholeColumns, Layout::PageRows],
        );
    }
}

#[test]
fn largest_lengths() {
    for n in [4096, 10007] {
        check_all(n, 1, &[Layout::Rows]);
    }
}

#[test]
fn a_line_depends_on_itself_alone() {
    fn check<T: Tested>(n: usize, kind: LineKind, isa: Isa) {
        let spec = LinesSpec { n, kind, scale: 0.3 };
        let lines = T::make(isa, &spec);
        let input = inputs(n, kind, 33);
        let bits = |line: &[T]| line.iter().map(|x| x.bits()).collect::<Vec<_>>();
        let full = run(&*lines, &spec, &input, (Layout::Rows, Layout::Rows), false);
        for count in 1..=33 {
            let layouts = (LAYOUTS[count % LAYOUTS.len()], LAYOUTS[count / 4 % LAYOUTS.len()]);
            // At other positions in the block, too.
            let from = (7 * count) % (34 - count);
            let part = run(&*lines, &spec, &input[from..from + count], layouts, false);
            for (got, want) in part.iter().zip(&full[from..]) {
                assert_eq!(bits(got), bits(want), "n {n} {kind:?} {isa:?}, {count} lines, {layouts:?}");
            }
        }
    }
    for isa in Isa::available() {
        for kind in KINDS {
            for n in [1, 2, 4, 7, 16, 20, 24, 25, 27, 30, 32, 37, 45, 48, 60, 64, 96, 128, 143, 192, 256] {
                check::<f32>(n, kind, isa);
                check::<f64>(n, kind, isa);
            }
        }
    }
}

/// Contiguous lines that exceed a cache are transformed in another order, with the same bits.
#[test]
fn long_contiguous_lines_have_the_bits_of_rows() {
    fn check<T: Tested>(n: usize, kind: LineKind) {
        let spec = LinesSpec { n, kind, scale: 0.3 };
        let input = inputs(n, kind, 1);
        for isa in Isa::available() {
            let lines = T::make(isa, &spec);
            let of = |layout| run(&*lines, &spec, &input, (layout, layout), false);
            let rows = of(Layout::Rows);
            assert!(
                of(Layout::Columns) == rows && of(Layout::WholeColumns) == rows,
                "n {n} {kind:?} {isa:?}"
            );
        }
    }
    for kind in KINDS {
        for n in [16384, 20480, 24000, 65536] {
            check::<f64>(n, kind);
            check::<f32>(n, kind);
        }
    }
}

/// A repeated block has the bits of as many blocks.
#[test]
fn repeated_blocks() {
    fn check<T: Tested>(n: usize, lanes: usize, planes: usize, isa: Isa) {
        let spec = LinesSpec { n, kind: LineKind::Backward, scale: 0.3 };
        let lines = T::make(isa, &spec);
        let step = 2 * lanes + 16;
        // Neighbouring lines are adjacent, or elements are.
        for (step, lane, plane) in [(step, 2, n * step + 32), (2, 2 * n + 16, lanes * (2 * n + 16) + 16)] {
            let source: Vec<T> = noise(planes * plane, n as u64).into_iter().map(T::rounded).collect();
            let strip = |all: &mut [T]| {
                [Strip {
                    ptr: all.as_mut_ptr(),
                    len: n,
                    step: step as isize,
                    lane: lane as isize,
                    ..Strip::default()
                }]
            };
            let mut scratch = Scratch::dirty(lines.scratch(lanes));
            let scratch = scratch.slice(lines.scratch(lanes));
            let mut want = source.clone();
            for part in want.chunks_mut(plane) {
                let strips = strip(part);
                // SAFETY: the strip lies within the plane.
                unsafe { lines.run(&LineBlock::new(lanes, &strips, &strips), scratch) };
            }
            let mut got = source.clone();
            let strips = strip(&mut got);
            let repeat = Repeat { count: planes, from: plane as isize, to: plane as isize };
            // SAFETY: the strips lie within the planes.
            unsafe { lines.run_repeated(&LineBlock::new(lanes, &strips, &strips), repeat, scratch) };
            let bits = |all: &[T]| all.iter().map(|x| x.bits()).collect::<Vec<_>>();
            assert_eq!(bits(&got), bits(&want), "{planes} planes of {lanes} lines of {n} on {isa:?}");
            // From one array to another, while the source is prefetched once more.
            let (mut from, mut got) = (source.clone(), source.clone());
            let ahead = [Strip { ptr: from.as_mut_ptr(), len: from.len() / 2, step: 2, ..Strip::default() }];
            let (from, to) = (strip(&mut from), strip(&mut got));
            let block = LineBlock { ahead: &ahead, ahead_lines: 1, ..LineBlock::new(lanes, &from, &to) };
            // SAFETY: the strips lie within the planes.
            unsafe { lines.run_repeated(&block, repeat, scratch) };
            assert_eq!(bits(&got), bits(&want), "apart: {planes} planes of {lanes} lines of {n} on {isa:?}");
        }
    }
    for isa in Isa::available() {
        for n in [1, 2, 8, 10, 16, 25, 32, 37, 64, 100] {
            for (lanes, planes) in [(8, 5), (16, 16), (16, 1), (5, 3), (9, 20), (32, 70), (1, 2), (65, 3)] {
                check::<f64>(n, lanes, planes, isa);
                check::<f32>(n, lanes, planes, isa);
            }
        }
    }
}

/// A repeated block of contiguous real lines has the bits of as many blocks of rows, from one array to another and in place.
#[test]
fn repeated_blocks_of_real_lines() {
    fn check<T: Tested>(n: usize, kind: LineKind, lanes: usize, planes: usize, isa: Isa) {
        let spec = LinesSpec { n, kind, scale: 0.3 };
        let lines = T::make(isa, &spec);
        let input = inputs(n, kind, lanes * planes);
        let want = run(&*lines, &spec, &input, (Layout::Rows, Layout::Rows), false);
        // In place there is room for the longer of both.
        let (line, gap) = (n + 2, 5);
        let plane = lanes * line + gap;
        let mut source = vec![T::rounded(-7.0); planes * plane];
        let at = |number: usize| number / lanes * plane + number % lanes * line;
        for (number, values) in input.iter().enumerate() {
            for (k, &x) in values.iter().enumerate() {
                source[at(number) + k] = T::rounded(x);
            }
        }
        let strip = |all: &mut [T], len: usize, width: usize| {
            let (ptr, step, lane) = (all.as_mut_ptr(), width as isize, line as isize);
            [Strip { ptr, len, step, lane, ..Strip::default() }]
        };
        let mut scratch = Scratch::dirty(lines.scratch(lanes));
        let scratch = scratch.slice(lines.scratch(lanes));
        for in_place in [false, true] {
            let (mut from, mut got) = (source.clone(), source.clone());
            let to = strip(&mut got, kind.len_out(n), kind.width_out());
            let from = if in_place { &mut [][..] } else { &mut from[..] };
            let mut source = strip(from, kind.len_in(n), kind.width_in());
            if in_place {
                source[0].ptr = to[0].ptr;
            }
            let repeat = Repeat { count: planes, from: plane as isize, to: plane as isize };
            // SAFETY: the strips lie within the planes.
            unsafe { lines.run_repeated(&LineBlock::new(lanes, &source, &to), repeat, scratch) };
            for (number, want) in want.iter().enumerate() {
                let line_of = &got[at(number)..][..line];
                let bits = |all: &[T]| all.iter().map(|x| x.bits()).collect::<Vec<_>>();
                assert_eq!(
                    bits(&line_of[..want.len()]),
                    bits(want),
                    "line {number} of {n} {kind:?} on {isa:?}, in place: {in_place}"
                );
                // What lies behind a line is not written.
                if !in_place && want.len() < line {
                    let before = input.get(number).and_then(|values| values.get(want.len()));
                    let kept = before.map_or(-7.0, |&x| x);
                    assert!(
                        line_of[want.len()] == T::rounded(kept),
                        "behind line {number} of {n} on {isa:?}"
                    );
                }
            }
            let gaps = (0..planes).flat_map(|number| &got[number * plane + lanes * line..][..gap]);
            assert!(gaps.into_iter().all(|&x| x == T::rounded(-7.0)), "between planes, {n} on {isa:?}");
        }
    }
    for isa in Isa::available() {
        for kind in [LineKind::RealForward, LineKind::RealBackward] {
            for n in [4, 6, 8, 10, 14, 16, 18, 20, 24, 30, 32, 48, 64, 96, 100, 128] {
                for (lanes, planes) in [(16, 3), (5, 4), (1, 2), (30, 2), (9, 1)] {
                    check::<f64>(n, kind, lanes, planes, isa);
                    check::<f32>(n, kind, lanes, planes, isa);
                }
            }
        }
    }
}

#[test]
fn four_epsilon_at_512() {
    for kind in KINDS {
        let input = inputs(512, kind, 3);
        for isa in Isa::available() {
            let spec = LinesSpec { n: 512, kind, scale: 1.0 };
            let layouts = (Layout::Rows, Layout::Rows);
            let got32 = run(&*f32::make(isa, &spec), &spec, &input, layouts, false);
            let got64 = run(&*f64::make(isa, &spec), &spec, &input, layouts, false);
            for (j, line) in input.iter().enumerate() {
                let want = naive(512, kind, line);
                let (e32, e64) = (error(&got32[j], &want, 1.0), error(&got64[j], &want, 1.0));
                assert!(e32 < 4.0 && e64 < 4.0, "{kind:?} {isa:?}: {e32}, {e64} eps");
            }
        }
    }
}

#[test]
fn a_scale_of_a_power_of_two_is_exact() {
    let input = inputs(96, LineKind::Forward, 5);
    for isa in Isa::available() {
        let at = |scale| {
            let spec = LinesSpec { n: 96, kind: LineKind::Forward, scale };
            run(&*f64::make(isa, &spec), &spec, &input, (Layout::Rows, Layout::Columns), false)
        };
        let halved: Vec<Vec<f64>> =
            at(1.0).iter().map(|line| line.iter().map(|x| 0.5 * x).collect()).collect();
        assert_eq!(at(0.5), halved, "{isa:?}");
    }
}

#[test]
fn roots_are_right_to_the_last_bit() {
    let roots = Roots::new(360);
    assert_eq!(roots.get(0), (1.0, 0.0));
    assert_eq!(roots.get(90), (0.0, 1.0));
    assert_eq!(roots.get(180), (-1.0, 0.0));
    assert_eq!(roots.get(60), (0.5, 0.866_025_403_784_438_6));
    assert_eq!(roots.get(315), (std::f64::consts::FRAC_1_SQRT_2, -std::f64::consts::FRAC_1_SQRT_2));
    assert_eq!(roots.get(72), (0.309_016_994_374_947_45, 0.951_056_516_295_153_5));
    assert_eq!(Roots::new(11).get(4), (-0.654_860_733_945_285_1, 0.755_749_574_354_258_3));
}
