//! The bits of the result do not depend on what must not matter.

use crate::common;

use common::{Local, MODES, Mode, Number, choice, exchanges, kernels, plan_of, source};
use ferrier::{Choice, Decomposition, Plan, Planner, Problem, Progress, Result, Wire, Workspace};
use ferrier_test::cases::{Case, Kind, ORDERS, Scale, Split};
use ferrier_test::dft::indices;
use ferrier_test::{Rng, watchdog};
use num_complex::Complex;

/// Bit patterns of the spectrum and of what came back, by global index.
type Bits = (Vec<[u64; 2]>, Vec<[u64; 2]>);

fn bits<T: Number>(x: Complex<T>) -> [u64; 2] {
    // Every f32 is an f64: no bits are lost, and zeros keep their signs.
    [Into::<f64>::into(x.re).to_bits(), Into::<f64>::into(x.im).to_bits()]
}

fn case(shape: [usize; 3], kind: Kind, batch: usize) -> Case {
    Case {
        line: format!("{shape:?} {kind:?} x{batch}"),
        shape,
        kind,
        axes: vec![0, 1, 2],
        batch,
        first: 0,
        input: Split::Slabs(0),
        output: Split::Slabs(0),
        order_in: [0, 1, 2],
        order_out: [0, 1, 2],
        scale: (Scale::Symmetric, Scale::Full),
    }
}

struct How {
    ranks: usize,
    threads: usize,
    choice: Choice,
    mode: Mode,
    wire: Option<Wire>,
}

/// Forward and backward; the results in C order of the global arrays, batch outermost.
fn run<T: Number>(case: &Case, problem: &Problem, how: &How) -> Bits {
    let ranks = ferrier::ranks(how.ranks).threads(how.threads);
    let ranks = how.wire.map_or(ranks, |wire| ranks.wire(wire));
    let outcome: Result<Vec<_>> = ranks.run(|comm| {
        let mut plan = plan_of::<T>(&comm, problem, &how.choice)?;
        common::transform(&mut plan, case, how.mode)
    });
    let parts = outcome.unwrap_or_else(|error| panic!("{}: {error}", case.line));
    let (spectrum, back): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    (whole(case, case.spectrum_shape(), spectrum), whole(case, case.shape, back))
}

fn whole<T: Number>(case: &Case, shape: [usize; 3], parts: Vec<(Local, Vec<Complex<T>>)>) -> Vec<[u64; 2]> {
    let volume: usize = shape.iter().product();
    let mut all = vec![[u64::MAX; 2]; case.batch * volume];
    for (local, values) in parts {
        for ((b, [i, j, k]), x) in local.walk().zip(values) {
            all[b * volume + (i * shape[1] + j) * shape[2] + k] = bits(x);
        }
    }
    assert!(!all.contains(&[u64::MAX; 2]), "an index that no rank has");
    all
}

fn same(told: &str, one: &Bits, other: &Bits) {
    for (side, a, b) in [("forward", &one.0, &other.0), ("backward", &one.1, &other.1)] {
        let differ = a.iter().zip(b).filter(|(a, b)| a != b).count();
        assert!(a.len() == b.len() && differ == 0, "{told}: {differ} of {} values differ in {side}", a.len());
    }
}

fn kinds() -> [Kind; 3] {
    [Kind::C2c, Kind::R2c(2), Kind::R2c(0)]
}

/// Exchange, threads and the user's arrays, for one number of ranks.
fn does_not_matter<T: Number>(kernel: &str) {
    for (kind, shape) in kinds().into_iter().zip([[32, 30, 27], [28, 30, 32], [32, 27, 30]]) {
        // Large enough that three threads have work.
        let case = case(shape, kind, 1);
        let problem = common::problem(&case, 2, &mut Rng::new(0));
        let how = |exchange, threads, mode| How {
            ranks: 2,
            threads,
            choice: choice(exchange, kernel),
            mode,
            wire: None,
        };
        let first = run::<T>(&case, &problem, &how(exchanges()[0], 1, Mode::Arrays));
        for exchange in exchanges() {
            for threads in 1..=3 {
                for mode in MODES {
                    let told = format!(
                        "{} {kernel} {}: {exchange}, {threads} threads, {mode:?}",
                        case.line,
                        T::NAME
                    );
                    same(&told, &first, &run::<T>(&case, &problem, &how(exchange, threads, mode)));
                }
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_exchange_threads_or_owner_of_the_arrays() {
    let _watchdog = watchdog(120);
    for kernel in kernels() {
        does_not_matter::<f64>(kernel);
        does_not_matter::<f32>(kernel);
    }
}

#[test]
fn a_batch_is_many_single_transforms() {
    let _watchdog = watchdog(120);
    for kernel in kernels() {
        for (turn, kind) in kinds().into_iter().enumerate() {
            let many = case([8, 7, 10], kind, 5);
            let choice = choice(exchanges()[turn % exchanges().len()], kernel);
            for ranks in [1, 3] {
                let how =
                    How { ranks, threads: 2, choice: choice.clone(), mode: MODES[turn % 3], wire: None };
                let all = run::<f64>(&many, &common::problem(&many, ranks, &mut Rng::new(0)), &how);
                let (n, m) = (all.0.len() / 5, all.1.len() / 5);
                for b in 0..5 {
                    let one = common::single(&many, b);
                    let alone = run::<f64>(&one, &common::problem(&one, ranks, &mut Rng::new(0)), &how);
                    let part = (all.0[b * n..][..n].to_vec(), all.1[b * m..][..m].to_vec());
                    same(&format!("{kernel} {kind:?} array {b} on {ranks} ranks"), &alone, &part);
                }
            }
        }
    }
}

/// Whole arrays in one pass have the bits of a pass per axis, whatever their number and that of the threads.
#[test]
fn all_axes_in_one_pass_or_a_pass_per_axis() {
    let _watchdog = watchdog(120);
    let orders = [[0, 1, 2], [2, 1, 0]];
    for (turn, kind) in [Kind::C2c, Kind::R2c(2), Kind::R2c(1), Kind::R2c(0)].into_iter().enumerate() {
        // In the fifth and sixth, small planes go together, and rows do not fill vectors.
        for (shape, batch, threads) in [
            ([16, 16, 16], 3, 1),
            ([8, 7, 10], 5, 2),
            ([4, 33, 18], 2, 5),
            ([20, 6, 9], 1, 1),
            ([21, 32, 8], 1, 2),
            ([11, 64, 3], 1, 2),
            // The last arrays go in two passes.
            ([12, 10, 16], 7, 3),
        ] {
            for order_out in orders {
                let case = Case { order_out, ..case(shape, kind, batch) };
                let problem = common::problem(&case, 1, &mut Rng::new(0));
                let kernel = kernels()[(turn + batch) % kernels().len()];
                let how = |fuse: Option<bool>, stream, mode| {
                    let choice = choice(exchanges()[0], kernel).threads(threads).fuse(fuse).stream(stream);
                    How { ranks: 1, threads, choice, mode, wire: None }
                };
                let first = run::<f64>(&case, &problem, &how(Some(false), None, Mode::Arrays));
                let first_f32 = run::<f32>(&case, &problem, &how(Some(false), None, Mode::Arrays));
                for mode in MODES {
                    for stream in [None, Some(true)] {
                        let told = format!("{} {kernel} {threads} threads {mode:?}", case.line);
                        same(&told, &first, &run::<f64>(&case, &problem, &how(None, stream, mode)));
                        same(&told, &first_f32, &run::<f32>(&case, &problem, &how(None, stream, mode)));
                    }
                }
            }
        }
    }
}

/// Arrays of users need not begin with a cache line: blocks of lines are cut elsewhere then.
#[test]
fn results_do_not_depend_on_where_arrays_begin() {
    fn check<T: Number>(shape: [usize; 3], choice: Choice) {
        let comm = ferrier::Comm::one_rank().with_threads(2);
        let mut plan = plan_of::<T>(&comm, &Problem::c2c(shape), &choice).unwrap();
        let points: usize = shape.iter().product();
        let case = case(shape, Kind::C2c, 1);
        let value = |i: usize| common::from_f64::<T>(source::<T>(&case, 0, [i, 0, 0]));
        let values: Vec<_> = (0..points).map(value).collect();
        // As many elements as a cache line has, before and after the array.
        let (line, canary) = (64 / size_of::<Complex<T>>(), value(points + 7));
        let at = |memory: &[Complex<T>], start: usize| {
            let past = memory.as_ptr() as usize % 64 / size_of::<Complex<T>>();
            let first = (line - past) % line + start;
            first..first + points
        };
        let mut one: Option<[Vec<[u64; 2]>; 2]> = None;
        for start in 0..line {
            let mut memory = [vec![canary; points + 3 * line], vec![canary; points + 3 * line]];
            let [from, to] = [0, 1].map(|i| at(&memory[i], (i + 1) * start % line));
            memory[0][from.clone()].copy_from_slice(&values);
            let [input, output] = &mut memory;
            plan.forward(&input[from.clone()], &mut output[to.clone()]).unwrap();
            plan.call().forward_in_place(&mut input[from.clone()]).unwrap();
            let found =
                [&output[to.clone()], &input[from.clone()]].map(|x| x.iter().map(|x| bits(*x)).collect());
            for (memory, inside) in [(&input, from), (&output, to)] {
                let outside = memory[..inside.start].iter().chain(&memory[inside.end..]);
                assert!(
                    outside.into_iter().all(|x| bits(*x) == bits(canary)),
                    "{shape:?} {choice:?} {start}"
                );
            }
            assert!(one.get_or_insert_with(|| found.clone()) == &found, "{shape:?} {choice:?} {start}");
        }
    }
    for shape in [[6, 40, 72], [12, 33, 64], [3, 4, 8], [2, 50, 36]] {
        for fuse in [true, false] {
            for stream in [true, false] {
                let choice = Choice::new().fuse(fuse).stream(stream);
                check::<f64>(shape, choice.clone());
                check::<f32>(shape, choice);
            }
        }
    }
}

/// The passes of a plan, and its memory, for arrays that fit a cache.
#[test]
fn arrays_that_fit_a_cache_take_one_pass() {
    let passes = |problem: &Problem, choice: Choice| -> Vec<String> {
        let comm = ferrier::Comm::one_rank().with_threads(2);
        let draft = Planner::new(problem).choice(choice).draft::<f64>(&comm).unwrap();
        let memory = draft.memory();
        let mut plan = draft.build().unwrap();
        assert_eq!(plan.memory(), memory);
        let (x, mut y) = (plan.make_input().unwrap(), plan.make_output().unwrap());
        plan.forward(&x, &mut y).unwrap();
        plan.profile().into_iter().map(|step| step.name).collect()
    };
    let batch = |batch| Problem::c2c([16, 16, 16]).batch(batch);
    let one = "fft axis 2 + fft axis 1 + fft axis 0";
    assert_eq!(passes(&batch(8), Choice::new()), [one]);
    assert_eq!(passes(&batch(8), Choice::new().fuse(false)).len(), 3);
    // A thread would have nothing to do; arrays that do not fit.
    assert_ne!(passes(&batch(1), Choice::new().threads(2)), [one]);
    assert_ne!(passes(&Problem::c2c([128, 128, 128]).batch(2), Choice::new()), [one]);
}

/// FFTW's layout of a real array that is transformed in place: rows of n
/// padded to 2 (n/2 + 1), in a vector of the user's own.
#[test]
fn a_padded_real_vector_is_transformed_as_fftw_would() {
    let _watchdog = watchdog(120);
    for n in [8, 9] {
        for (exchange, kernel) in exchanges().into_iter().zip(kernels().into_iter().cycle()) {
            let case = case([6, 4, n], Kind::R2c(2), 2);
            let problem = common::problem(&case, 3, &mut Rng::new(0));
            let outcome: Result<Vec<bool>> = ferrier::ranks(3).run(|comm| {
                let mut plan: Plan<f64> = plan_of(&comm, &problem, &choice(exchange, kernel))?;
                let (spectrum, back) = common::transform(&mut plan, &case, Mode::Arrays)?;
                let (half, row) = (n / 2 + 1, 2 * (n / 2 + 1));
                let mut padded = vec![f64::NAN; 2 * 2 * 4 * row];
                for (place, numbers) in padded.chunks_mut(row).enumerate() {
                    let (b, i, j) = (place / 8, place / 4 % 2 + 2 * comm.rank(), place % 4);
                    (0..n).for_each(|k| numbers[k] = source::<f64>(&case, b, [i, j, k]).re);
                }
                plan.call().forward_in_place(&mut padded)?;
                let same_spectrum = padded.chunks(row).zip(spectrum.1.chunks(half)).all(|(numbers, want)| {
                    numbers.chunks(2).zip(want).all(|(x, want)| Complex::new(x[0], x[1]) == *want)
                });
                plan.call().backward_in_place(&mut padded[..])?;
                let same_back = padded
                    .chunks(row)
                    .zip(back.1.chunks(n))
                    .all(|(numbers, want)| numbers.iter().zip(want).all(|(x, want)| *x == want.re));
                Ok(same_spectrum && same_back)
            });
            assert_eq!(outcome.unwrap(), [true; 3], "n={n} {exchange} {kernel}");
        }
    }
}

/// A workspace of the caller's, dirty, one for two plans in turn.
#[test]
fn results_do_not_depend_on_the_owner_of_the_workspace() {
    let _watchdog = watchdog(120);
    for exchange in exchanges() {
        let cases = [case([9, 8, 15], Kind::C2c, 2), case([9, 8, 16], Kind::R2c(2), 1)];
        let outcome: Result<Vec<()>> = ferrier::ranks(3).threads(2).run(|comm| {
            let mut workspace = Workspace::<f64>::new(1 << 20)?;
            for case in &cases {
                let problem = common::problem(case, 3, &mut Rng::new(0));
                let choice = choice(exchange, kernels()[0]);
                let want = common::transform(&mut plan_of(&comm, &problem, &choice)?, case, Mode::Arrays)?;
                let draft = Planner::new(&problem).choice(choice).draft::<f64>(&comm)?;
                assert!(draft.memory().total() <= 1 << 20);
                let mut plan = draft.build_without_workspace()?;
                let (mut x, mut y, mut back) = (plan.make_input()?, plan.make_output()?, plan.make_input()?);
                if x.is_real() {
                    x.fill_real(|b, at| source::<f64>(case, b, at).re);
                } else {
                    x.fill_complex(|b, at| source::<f64>(case, b, at));
                }
                plan.call().workspace(&mut workspace).forward(&x, &mut y)?;
                plan.call().workspace(&mut workspace).backward(&y, &mut back)?;
                assert!(y.complex() == want.0.1, "{exchange}: forward");
                let back = if back.is_real() {
                    back.real().iter().map(|x| Complex::new(*x, 0.0)).collect()
                } else {
                    back.complex().to_vec()
                };
                assert!(back == want.1.1, "{exchange}: backward");
            }
            Ok(())
        });
        outcome.unwrap();
    }
}

/// Reproducible mode: any number of ranks, any layouts, any exchange.
#[test]
fn reproducible_results_do_not_depend_on_ranks_or_layouts() {
    let _watchdog = watchdog(120);
    let mut rng = Rng::for_test(404);
    let splits = [Split::Bricks, Split::Slabs(0), Split::Slabs(2), Split::Pencils(1), Split::Boxes];
    for kernel in kernels() {
        for (kind, shape) in kinds().into_iter().zip([[12, 10, 9], [7, 11, 16], [10, 13, 8]]) {
            let base = case(shape, kind, 1);
            let first = {
                let problem = common::problem(&base, 1, &mut rng).reproducible(true);
                let choice = choice(exchanges()[0], kernel);
                run::<f64>(
                    &base,
                    &problem,
                    &How { ranks: 1, threads: 1, choice, mode: Mode::Arrays, wire: None },
                )
            };
            for ranks in 1..=8 {
                for turn in 0..4 {
                    let case = Case {
                        input: *rng.pick(&splits),
                        output: *rng.pick(&splits),
                        order_in: *rng.pick(&ORDERS),
                        order_out: *rng.pick(&ORDERS),
                        ..base.clone()
                    };
                    let problem = common::problem(&case, ranks, &mut rng).reproducible(true);
                    let exchange = exchanges()[turn % exchanges().len()];
                    let choice = common::any_choice(exchange, kernel, ranks, &mut rng);
                    let how =
                        How { ranks, threads: 1 + turn % 2, choice, mode: *rng.pick(&MODES), wire: None };
                    let told = format!("{kernel} {} {ranks} ranks\n{problem:?}\n{:?}", base.line, how.choice);
                    same(&told, &first, &run::<f64>(&case, &problem, &how));
                }
            }
        }
    }
}

/// Slabs cut along the last axis have few elements side by side (1, 2, 3, 5 and more), and planes across it share
/// cache lines: one pass for each axis or for two, blocks of several planes and bundles give the bits of one rank.
#[test]
fn short_runs_do_not_matter() {
    fn check<T: Number>(case: &Case, ranks: usize, turn: usize, rng: &mut Rng) {
        let how =
            |ranks, choice| How { ranks, threads: 1 + turn % 2, choice, mode: MODES[turn % 3], wire: None };
        let problem = common::problem(case, 1, rng).reproducible(true);
        let want = run::<T>(case, &problem, &how(1, choice(exchanges()[0], kernels()[0])));
        let problem = common::problem(case, ranks, rng).reproducible(true);
        for fuse in [Some(true), Some(false)] {
            let exchange = exchanges()[turn % exchanges().len()];
            let path = if turn.is_multiple_of(3) { Decomposition::Pencil } else { Decomposition::Slab };
            let choice = choice(exchange, kernels()[0]).fuse(fuse).decomposition(path).stream(turn % 4 == 1);
            let told = format!("{} {} on {ranks} ranks\n{problem:?}\n{choice:?}", case.line, T::NAME);
            same(&told, &want, &run::<T>(case, &problem, &how(ranks, choice)));
        }
    }
    let _watchdog = watchdog(120);
    let mut rng = Rng::for_test(606);
    let shapes = [
        ([12, 10, 8], 8),
        ([12, 20, 8], 4),
        ([9, 21, 9], 3),
        ([24, 7, 15], 3),
        ([40, 36, 10], 2),
        ([9, 8, 70], 1),
        ([6, 33, 140], 2),
    ];
    let splits = [Split::Slabs(2), Split::Slabs(2), Split::Bricks, Split::Pencils(0), Split::Pencils(1)];
    for (turn, (kind, (shape, ranks))) in
        kinds().into_iter().flat_map(|kind| shapes.map(|shape| (kind, shape))).enumerate()
    {
        let case = Case {
            input: splits[turn % 5],
            output: splits[turn / 2 % 5],
            ..case(shape, kind, [1, 3][turn % 2])
        };
        check::<f64>(&case, ranks, turn, &mut rng);
        check::<f32>(&case, ranks, turn + 1, &mut rng);
    }
}

/// Tiles, windows, cuts, lots of arrays, for all that sends messages: the bits of one tile.
#[test]
fn results_do_not_depend_on_tiles() {
    let _watchdog = watchdog(120);
    let mut rng = Rng::for_test(505);
    let splits = [Split::Slabs(0), Split::Slabs(0), Split::Slabs(1), Split::Pencils(2), Split::Bricks];
    for turn in 0..36 {
        let shape = *rng.pick(&[[8, 8, 8], [6, 7, 10], [12, 5, 9]]);
        let ranks = *rng.pick(&[2, 2, 3, 4, 6]);
        let case = Case {
            input: *rng.pick(&splits),
            output: *rng.pick(&splits),
            ..case(shape, kinds()[turn % 3], *rng.pick(&[1, 1, 2, 5]))
        };
        let problem = common::problem(&case, ranks, &mut rng);
        let exchange = exchanges()[turn % exchanges().len()];
        let fast = Wire { gbit_per_s: 50.0, latency_us: 5.0 };
        let wire = (exchange != "direct" && rng.below(2) == 0).then_some(fast);
        let how = |choice: Choice, mode| How { ranks, threads: 1, choice, mode, wire };
        let path = *rng.pick(&[None, Some(Decomposition::Slab), Some(Decomposition::Pencil)]);
        let base = choice(exchange, kernels()[0]).decomposition(path);
        // Ranks with a wire are nodes of their own, where the order of the axes may be another one.
        let one = how(base.clone(), Mode::Arrays);
        let one = run::<f64>(&case, &problem, &one);
        for _ in 0..3 {
            let progress = *rng.pick(&[None, None, Some(Progress::Thread)]);
            let tiled = base.clone().overlap(common::any_overlap(&mut rng)).progress(progress);
            let told = format!("{problem:?} on {ranks} ranks\n{tiled:?}");
            same(&told, &one, &run::<f64>(&case, &problem, &how(tiled, *rng.pick(&MODES))));
        }
    }
}

/// The oracle of this file can tell two results apart.
#[test]
fn another_order_of_the_axes_shows_in_the_bits() {
    let _watchdog = watchdog(120);
    let case = case([13, 11, 7], Kind::C2c, 1);
    let problem = common::problem(&case, 2, &mut Rng::new(0));
    let with = |axes: [usize; 3]| {
        let choice = choice(exchanges()[0], kernels()[0]).axes(axes.to_vec());
        run::<f64>(&case, &problem, &How { ranks: 2, threads: 1, choice, mode: Mode::Arrays, wire: None })
    };
    assert_ne!(with([0, 1, 2]).0, with([2, 1, 0]).0);
}

#[test]
fn two_runs_of_one_plan_are_alike() {
    let _watchdog = watchdog(120);
    let case = case([9, 8, 15], Kind::C2c, 2);
    for exchange in exchanges() {
        let problem = common::problem(&case, 3, &mut Rng::new(0));
        let outcome: Result<Vec<bool>> = ferrier::ranks(3).threads(2).run(|comm| {
            let mut plan: Plan<f64> = plan_of(&comm, &problem, &choice(exchange, kernels()[0]))?;
            let first = common::transform(&mut plan, &case, Mode::Slices)?;
            let again = common::transform(&mut plan, &case, Mode::Slices)?;
            Ok(first.0.1 == again.0.1 && first.1.1 == again.1.1)
        });
        assert_eq!(outcome.unwrap(), [true; 3], "{exchange}");
    }
    // Silences nothing: the source is what the transforms were fed with.
    assert!(indices(case.shape).any(|at| source::<f64>(&case, 1, at) != source::<f64>(&case, 0, at)));
}

/// Planes whose rows a transform cannot store past the caches are stored behind it: rows of odd length, lengths whose last
/// butterflies do not fill cache lines, and long columns, which are stored one cache line at a time.
#[test]
fn planes_stored_behind_their_transform_have_the_same_bits() {
    let _watchdog = watchdog(120);
    let odd = [([40, 36, 90], 1), ([24, 50, 180], 2), ([36, 45, 51], 2), ([30, 33, 100], 3)];
    let long = [([16, 144, 48], 1), ([12, 160, 64], 2)];
    for (shape, ranks) in odd.into_iter().chain(long) {
        for axes in [[0, 2, 1], [1, 0, 2], [0, 1, 2], [2, 1, 0]] {
            let of = |streamed: bool| {
                let choice = Choice::new().kernel("native").axes(axes).fuse(streamed).stream(streamed);
                let problem = Problem::c2c(shape);
                let outcome = ferrier::ranks(ranks).threads(1).run(|comm| {
                    let mut plan = plan_of::<f64>(&comm, &problem, &choice)?;
                    let wave = |i: usize| Complex::new((i % 11) as f64, (i % 7) as f64 - 0.5);
                    let values: Vec<_> = (0..plan.input_len()).map(wave).collect();
                    let mut found = plan.make_output()?;
                    plan.forward(&values[..], &mut found)?;
                    let mut back = plan.make_input()?;
                    plan.backward(&found, &mut back)?;
                    Ok((found.complex().to_vec(), back.complex().to_vec()))
                });
                outcome.unwrap()
            };
            assert!(of(true) == of(false), "{shape:?} on {ranks} ranks, axes {axes:?}");
        }
    }
}
