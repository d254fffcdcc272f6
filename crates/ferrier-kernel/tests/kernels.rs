//! Every kernel of the table against the oracle, without plans and ranks.

use std::collections::HashMap;

use ferrier_kernel::{INSTALLED, KERNELS, LineBlock, LineKind, LinesSpec, R2r, Real, StoreHint, Strip, find};
use ferrier_test::dft::{Direction, dft, keep_half};
use ferrier_test::mixed::{self, Axis, Wave};
use ferrier_test::{Errors, Field, Rng, Ulp, tolerance, watchdog};
use num_complex::Complex;

const KINDS: [LineKind; 4] =
    [LineKind::Forward, LineKind::Backward, LineKind::RealForward, LineKind::RealBackward];

/// The oracle's name of a cosine or sine transform.
fn wave(kind: R2r) -> Wave {
    let at = R2r::ALL.iter().position(|other| *other == kind).unwrap();
    Wave::ALL[at]
}

/// Memory layout of a block of lines: element `k` of line `j` at `k * step + j * lane`.
#[derive(Clone, Copy)]
struct MemoryLayout {
    step: usize,
    lane: usize,
    size: usize,
}

/// Adjacent lines (`strided`) or one line after the other, with a gap.
fn memory_layout(len: usize, width: usize, lines: usize, strided: bool) -> MemoryLayout {
    if strided {
        let step = (lines + 3) * width;
        MemoryLayout { step, lane: width, size: len * step }
    } else {
        let lane = len * width + 5;
        MemoryLayout { step: width, lane, size: lines * lane }
    }
}

/// The line in one to three pieces, as in buffers of several ranks, without the
/// elements of the gap.
fn strips<T>(base: *mut T, len: usize, layout: MemoryLayout, pieces: usize, gap: Gap) -> Vec<Strip<T>> {
    let mut cuts: Vec<usize> = (0..=pieces).map(|p| p * len / pieces).chain([gap.0, gap.1]).collect();
    cuts.sort_unstable();
    cuts.windows(2)
        .filter(|cut| gap.0 >= gap.1 || cut[1] <= gap.0 || gap.1 <= cut[0])
        .map(|cut| Strip {
            // Stays inside the block: cut[0] <= len.
            ptr: base.wrapping_add(cut[0] * layout.step),
            at: cut[0],
            len: cut[1] - cut[0],
            step: layout.step as isize,
            lane: layout.lane as isize,
            ..Strip::default()
        })
        .collect()
}

struct Job<'a> {
    kernel: &'a str,
    n: usize,
    kind: LineKind,
    scale: f64,
    /// The factor of the call.
    factor: f64,
    lines: usize,
    strided: (bool, bool),
    pieces: (usize, usize),
    /// Elements of the line that no strip has, before and after: they are zero, or dropped.
    gaps: (Gap, Gap),
}

impl Job<'_> {
    fn total_scale(&self) -> f64 {
        self.scale * self.factor
    }

    fn describe(&self) -> String {
        let Job { kernel, n, kind, lines, strided, pieces, scale, factor, gaps } = self;
        format!(
            "{kernel} n={n} {kind:?} lines={lines} strided={strided:?} pieces={pieces:?} scale={scale} \
             factor={factor} gaps={gaps:?}"
        )
    }
}

/// A range of elements that no strip has.
type Gap = (usize, usize);
const NO_GAPS: (Gap, Gap) = ((0, 0), (0, 0));

fn source(job: &Job<'_>, line: usize, element: usize, bits: u32) -> Complex<f64> {
    let field = Field::new(11, bits);
    let at = [line, element, job.n];
    match job.kind {
        LineKind::RealForward | LineKind::R2r { complex: false, .. } => Complex::new(field.real(0, at), 0.0),
        // Imaginary parts that a real line's spectrum cannot have are noise that must be ignored.
        _ => field.complex(0, at),
    }
}

/// Transforms a block and returns the lines. Checks that memory outside the
/// lines is unchanged.
fn run<T: Real + Ulp + Into<f64>>(job: &Job<'_>, in_place: bool) -> Vec<Vec<Complex<T>>> {
    let spec = LinesSpec { n: job.n, kind: job.kind, scale: job.scale };
    let lines = ferrier_kernel::lines::<T>(find(job.kernel).unwrap(), &spec);
    let (len_in, len_out) = (job.kind.len_in(job.n), job.kind.len_out(job.n));
    let (width_in, width_out) = (job.kind.width_in(), job.kind.width_out());
    let layout_in = memory_layout(len_in, width_in, job.lines, job.strided.0);
    let layout_out =
        if in_place { layout_in } else { memory_layout(len_out, width_out, job.lines, job.strided.1) };

    let canary = T::rounded(1234.5);
    let mut input = vec![canary; layout_in.size];
    for j in 0..job.lines {
        for k in 0..len_in {
            let value = source(job, j, k, T::BITS);
            let at = k * layout_in.step + j * layout_in.lane;
            input[at] = T::rounded(value.re);
            if width_in == 2 {
                input[at + 1] = T::rounded(value.im);
            }
        }
    }
    let before = input.clone();
    let mut output = vec![canary; layout_out.size];
    // 64-byte aligned, with arbitrary contents, and exactly as long as required.
    let need = lines.scratch(job.lines);
    let mut scratch = vec![T::rounded(f64::NAN); need + 16];
    let skip = scratch.as_ptr().align_offset(64);
    let scratch = &mut scratch[skip..skip + need];

    let from = strips(input.as_mut_ptr(), len_in, layout_in, job.pieces.0, job.gaps.0);
    let to_base = if in_place { input.as_mut_ptr() } else { output.as_mut_ptr() };
    let to = strips(to_base, len_out, layout_out, job.pieces.1, job.gaps.1);
    let block = LineBlock {
        ahead: &from,
        ahead_lines: job.lines,
        store: StoreHint::Stream,
        factor: job.factor,
        ..LineBlock::new(job.lines, &from, &to)
    };
    // SAFETY: strips lie inside `input` and `output`, which this function owns;
    // the scratch is aligned and has the required length.
    unsafe { lines.run(&block, scratch) };

    let result = if in_place { &input } else { &output };
    let mut written = vec![false; result.len()];
    let out = (0..job.lines)
        .map(|j| {
            (0..len_out)
                .filter(|k| !(job.gaps.1.0..job.gaps.1.1).contains(k))
                .map(|k| {
                    let at = k * layout_out.step + j * layout_out.lane;
                    written[at..at + width_out].fill(true);
                    let im = if width_out == 2 { result[at + 1] } else { T::rounded(0.0) };
                    Complex::new(result[at], im)
                })
                .collect()
        })
        .collect();
    if !in_place {
        assert!(written.iter().zip(&output).all(|(t, x)| *t || *x == canary), "wrote outside its lines");
        assert!(input == before, "changed its input");
    }
    out
}

/// Results of the oracle: the same lines are given to every kernel.
#[derive(Default)]
struct Oracle(HashMap<Key, Vec<Complex<f64>>>);

/// Length, kind, bits of the scale, line, bits of the scalars, gaps.
type Key = (usize, LineKind, u64, usize, u32, (Gap, Gap));

impl Oracle {
    fn line(&mut self, job: &Job<'_>, line: usize, bits: u32) -> &[Complex<f64>] {
        let key = (job.n, job.kind, job.total_scale().to_bits(), line, bits, job.gaps);
        self.0.entry(key).or_insert_with(|| expected(job, line, bits))
    }
}

/// The oracle's result of one line.
fn expected(job: &Job<'_>, line: usize, bits: u32) -> Vec<Complex<f64>> {
    let n = job.n;
    let value = |k: usize| match (job.gaps.0.0..job.gaps.0.1).contains(&k) {
        true => Complex::new(0.0, 0.0),
        false => source(job, line, k, bits),
    };
    let x: Vec<_> = (0..job.kind.len_in(n)).map(value).collect();
    let mut all = whole_line(job, n, x);
    all.drain(job.gaps.1.0..job.gaps.1.1);
    all
}

fn whole_line(job: &Job<'_>, n: usize, x: Vec<Complex<f64>>) -> Vec<Complex<f64>> {
    let whole = |x: &[Complex<f64>], direction| dft(x, [1, 1, n], &[2], direction, job.total_scale());
    match job.kind {
        LineKind::Forward => whole(&x, Direction::Forward),
        LineKind::Backward => whole(&x, Direction::Backward),
        LineKind::RealForward => keep_half(&whole(&x, Direction::Forward), [1, 1, n], 2),
        LineKind::RealBackward => {
            let mut full: Vec<_> = (0..n).map(|k| if 2 * k <= n { x[k] } else { x[n - k].conj() }).collect();
            full[0].im = 0.0;
            if n.is_multiple_of(2) {
                full[n / 2].im = 0.0;
            }
            whole(&full, Direction::Backward).iter().map(|v| Complex::new(v.re, 0.0)).collect()
        }
        LineKind::R2r { kind, ortho, .. } => {
            let axes = [Axis::Same, Axis::Same, Axis::Wave(wave(kind))];
            mixed::forward(&x, [1, 1, n], axes, ortho, job.total_scale())
        }
    }
}

fn check<T: Real + Ulp + Into<f64>>(job: &Job<'_>, oracle: &mut Oracle) {
    let describe = || format!("{} eps={:.0e}", job.describe(), T::EPS);
    let got = run::<T>(job, false);
    let mut errors = Errors::default();
    for (j, line) in got.iter().enumerate() {
        for (g, w) in line.iter().zip(oracle.line(job, j, T::BITS)) {
            errors.add(Complex::new(g.re.into(), g.im.into()), *w);
        }
    }
    let size = match job.kind {
        // Weights before and after: the error of a transform of twice the size.
        LineKind::R2r { kind, .. } => 2 * kind.size(job.n),
        _ => job.n,
    };
    if let Err(why) = errors
        .within(tolerance::<T>(size), job.lines * (job.kind.len_out(job.n) - (job.gaps.1.1 - job.gaps.1.0)))
    {
        panic!("{}: {why}", describe());
    }
    // The bits of a line depend on that line alone: not on its neighbours, nor on the memory layout.
    for other in [
        Job { lines: 1, ..*job },
        Job { lines: job.lines.div_ceil(2), strided: (!job.strided.0, job.strided.1), ..*job },
        Job { strided: (job.strided.0, !job.strided.1), pieces: (3, 1), ..*job },
    ] {
        let again = run::<T>(&other, false);
        assert!(again[..] == got[..other.lines], "{}: bits differ with {} lines", describe(), other.lines);
    }
    if job.kind.width_in() == job.kind.width_out() {
        assert!(run::<T>(job, true) == got, "{}: in layout differs", describe());
    }
}

fn check_both(job: &Job<'_>, oracle: &mut Oracle) {
    check::<f64>(job, oracle);
    check::<f32>(job, oracle);
}

fn lengths() -> Vec<usize> {
    if std::env::var_os("FERRIER_THIN").is_some() {
        return (1..=33).chain([48, 49, 60, 77, 97, 101, 120, 128]).collect();
    }
    (1..=128).chain([144, 169, 210, 243, 251, 256, 343, 360, 385, 500, 512, 625, 1001, 1021, 1024]).collect()
}

fn every_length(kind: LineKind) {
    let _watchdog = watchdog(120);
    let mut rng = Rng::for_test(31);
    for n in lengths() {
        let mut oracle = Oracle::default();
        let scale = *rng.pick(&[1.0, 1.0, 0.25, 1.0 / n as f64]);
        // The oracle takes n^2 operations: fewer long lines.
        let most = if n > 256 { 3 } else { 9 };
        let installed = INSTALLED.iter().filter(|entry| entry.check().is_ok());
        for kernel in KERNELS.iter().chain(installed).map(|entry| entry.name) {
            let job = Job {
                kernel,
                n,
                kind,
                scale,
                factor: 1.0,
                lines: 1 + rng.below(most),
                strided: (rng.below(2) == 0, rng.below(2) == 0),
                pieces: (1 + rng.below(3), 1 + rng.below(3)),
                gaps: NO_GAPS,
            };
            check_both(&job, &mut oracle);
        }
    }
}

#[test]
fn forward_lines_of_every_length() {
    every_length(LineKind::Forward);
}

#[test]
fn backward_lines_of_every_length() {
    every_length(LineKind::Backward);
}

#[test]
fn real_forward_lines_of_every_length() {
    every_length(LineKind::RealForward);
}

#[test]
fn real_backward_lines_of_every_length() {
    every_length(LineKind::RealBackward);
}

/// The factor of a call gives the results of a specification with the scale times that factor.
#[test]
fn the_factor_of_a_call_multiplies_the_scale() {
    let _watchdog = watchdog(120);
    let cosine = LineKind::R2r { kind: R2r::Dct2, ortho: true, complex: true };
    let mut oracle = Oracle::default();
    for kernel in KERNELS.iter().map(|entry| entry.name) {
        for kind in KINDS.into_iter().chain([cosine]) {
            for (n, lines, strided) in [(12, 1, false), (31, 5, true), (64, 20, true), (64, 20, false)] {
                for (scale, factor) in [(1.0, 0.25), (0.5, 4.0), (0.3, -0.7), (1.0, 1.0 / 3.0)] {
                    let whole = Job {
                        kernel,
                        n,
                        kind,
                        scale: scale * factor,
                        factor: 1.0,
                        lines,
                        strided: (strided, strided),
                        pieces: (1, 2),
                        gaps: NO_GAPS,
                    };
                    let split = Job { scale, factor, ..whole };
                    let exact = !matches!(kind, LineKind::R2r { .. }) || factor.abs().log2().fract() == 0.0;
                    if exact {
                        assert!(
                            run::<f64>(&whole, false) == run::<f64>(&split, false),
                            "{}",
                            split.describe()
                        );
                        assert!(
                            run::<f32>(&whole, false) == run::<f32>(&split, false),
                            "{}",
                            split.describe()
                        );
                    }
                    check_both(&split, &mut oracle);
                }
            }
        }
    }
}

/// The numbers of lines at which a kernel changes its algorithm: its own block
/// size, one less, one more.
#[test]
fn blocks_of_every_size() {
    let _watchdog = watchdog(120);
    let mut oracle = Oracle::default();
    for kernel in KERNELS.iter().map(|entry| entry.name) {
        for kind in KINDS {
            for n in [12, 31] {
                let spec = LinesSpec { n, kind, scale: 1.0 };
                let best = ferrier_kernel::lines::<f64>(find(kernel).unwrap(), &spec).block(true).min(64);
                for lines in [1, 2, 3, 5, 8, best.max(2) - 1, best, best + 1] {
                    let job = Job {
                        kernel,
                        n,
                        kind,
                        scale: 1.0,
                        factor: 1.0,
                        lines,
                        strided: (true, false),
                        pieces: (2, 1),
                        gaps: NO_GAPS,
                    };
                    check_both(&job, &mut oracle);
                }
            }
        }
    }
}

/// Cosine and sine transforms of types 1 to 4, on real and on complex elements.
#[test]
fn cosines_and_sines_of_many_lengths() {
    let _watchdog = watchdog(120);
    let mut rng = Rng::for_test(32);
    for n in (1..=32).chain([45, 48, 64, 67, 100, 101, 128]) {
        for kind in R2r::ALL.into_iter().filter(|kind| *kind != R2r::Dct1 || n > 1) {
            let (ortho, complex) = (rng.below(3) == 0, rng.below(2) == 0);
            let mut oracle = Oracle::default();
            for kernel in KERNELS.iter().map(|entry| entry.name) {
                let job = Job {
                    kernel,
                    n,
                    kind: LineKind::R2r { kind, ortho, complex },
                    scale: *rng.pick(&[1.0, 0.25]),
                    factor: 1.0,
                    lines: 1 + rng.below(9),
                    strided: (rng.below(2) == 0, rng.below(2) == 0),
                    pieces: (1 + rng.below(3), 1 + rng.below(3)),
                    gaps: NO_GAPS,
                };
                check_both(&job, &mut oracle);
            }
        }
    }
}

/// Elements that no strip has are zero before the transform and dropped after it.
#[test]
fn lines_with_gaps() {
    let _watchdog = watchdog(120);
    let mut rng = Rng::for_test(33);
    let cosine = LineKind::R2r { kind: R2r::Dct2, ortho: false, complex: true };
    for n in [2, 3, 8, 15, 16, 31, 37, 64, 96, 100, 101] {
        for kind in KINDS.into_iter().chain([cosine]) {
            let mut gap = |len: usize| {
                let (a, b) = (rng.below(len), rng.below(len));
                (a.min(b), a.max(b))
            };
            let gaps = (gap(kind.len_in(n)), gap(kind.len_out(n)));
            let mut oracle = Oracle::default();
            for kernel in KERNELS.iter().map(|entry| entry.name) {
                for lines in [1 + rng.below(7), 16 + rng.below(20)] {
                    let strided = (rng.below(2) == 0, rng.below(2) == 0);
                    let pieces = (1 + rng.below(3), 1 + rng.below(3));
                    check_both(
                        &Job { kernel, n, kind, scale: 0.5, factor: 1.0, lines, strided, pieces, gaps },
                        &mut oracle,
                    );
                }
            }
        }
    }
}
