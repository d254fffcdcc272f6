//! The case table on a GPU: every exchange that applies, both kernels, 1 to 8
//! ranks on one GPU, out of place and in place, against the oracle. Where
//! there is no GPU the tests say so and pass.

mod apply;
mod calls;
mod codecs;
#[path = "../common/mod.rs"]
mod common;
mod copies;
mod launched;
mod refused;
#[path = "../copies/scenario.rs"]
mod scenario;
mod speed;
mod strides;

use common::{Local, Number, Oracle, Part, any_overlap, from_f64, problem, source, tile, to_f64};
use ferrier::cuda::{Cuda, DeviceArray, Plan, RawArray};
use ferrier::{Choice, Comm, Complex, Decomposition, Device, Error, Planner, Problem, Result};
use ferrier_test::cases::cases;
use ferrier_test::{Case, Errors, Kind, Rng, tolerance, watchdog};

/// A GPU as plans take it.
type Gpu = Device<Cuda>;

/// The first GPU; `None`, and a line of output, where there is none.
fn gpu() -> Option<Gpu> {
    match Device::cuda(0) {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            println!("skipped: no GPU ({error})");
            None
        }
    }
}

/// Only what is needed of a big machine's time.
fn thin() -> usize {
    std::env::var("FERRIER_THIN").ok().and_then(|every| every.parse().ok()).unwrap_or(1)
}

/// Exchanges of ranks that share a GPU.
const EXCHANGES: [&str; 6] =
    ["direct", "all_to_allv", "all_to_all", "point_to_point", "ring", "hierarchical"];
const KERNELS: [&str; 3] = ["auto", "native", "cufft"];

fn planner(problem: &Problem, choice: &Choice, gpu: &Gpu) -> Planner<Cuda> {
    Planner::new(problem).choice(choice.clone()).device(gpu)
}

fn nan<T: Number>(count: usize) -> Vec<T> {
    vec![T::rounded(f64::NAN); count]
}

fn complex<T: Number>(numbers: &[T]) -> Vec<Complex<T>> {
    numbers.as_chunks::<2>().0.iter().map(|[re, im]| Complex::new(*re, *im)).collect()
}

fn real<T: Number>(numbers: &[T]) -> Vec<Complex<T>> {
    numbers.iter().map(|x| Complex::new(*x, T::rounded(0.0))).collect()
}

/// What a rank has to put in, as numbers.
fn numbers<T: Number>(case: &Case, from: Local) -> Vec<T> {
    let values = from.walk().map(|(b, at)| source::<T>(case, b, at));
    match case.kind {
        Kind::C2c => values.flat_map(|x| [T::rounded(x.re), T::rounded(x.im)]).collect(),
        Kind::R2c(_) => values.map(|x| T::rounded(x.re)).collect(),
    }
}

fn download<T: Number>(array: &DeviceArray<T>) -> Result<Vec<T>> {
    let mut host = nan(array.scalars());
    array.download(&mut host[..])?;
    Ok(host)
}

/// Forward and back, out of place; everything that is written to is dirty before.
fn out_of_place<T: Number>(plan: &mut Plan<T>, case: &Case, from: Local) -> Result<[Vec<Complex<T>>; 2]> {
    let (mut input, mut output, mut back) = (plan.make_input()?, plan.make_output()?, plan.make_input()?);
    let values = numbers::<T>(case, from);
    input.upload(&values[..])?;
    output.upload(&nan::<T>(output.scalars())[..])?;
    back.upload(&nan::<T>(back.scalars())[..])?;
    plan.forward(&input, &mut output)?;
    plan.synchronize()?;
    assert!(download(&input)? == values, "forward changed its input");
    let spectrum = download(&output)?;
    plan.backward(&output, &mut back)?;
    plan.synchronize()?;
    assert!(download(&output)? == spectrum, "backward changed its input");
    let back = download(&back)?;
    Ok([complex(&spectrum), if case.kind == Kind::C2c { complex(&back) } else { real(&back) }])
}

/// Where an in-place array of the CPU's has everything, the GPU's has it too.
fn in_place<T: Number>(
    plan: &mut Plan<T>,
    host: &ferrier::Plan<T>,
    case: &Case,
    [from, to]: [Local; 2],
) -> Result<[Vec<Complex<T>>; 2]> {
    let mut array = host.make_in_place()?;
    let mut device = plan.make_in_place()?;
    let c2c = case.kind == Kind::C2c;
    if c2c {
        array.complex_mut().fill(Complex::new(T::rounded(f64::NAN), T::rounded(f64::NAN)));
        let before = from.walk().map(|(b, at)| from_f64(source::<T>(case, b, at)));
        array.complex_mut().iter_mut().zip(before).for_each(|(x, value)| *x = value);
    } else {
        array.real_mut().fill(T::rounded(f64::NAN));
        array.fill_real(|b, at| T::rounded(source::<T>(case, b, at).re));
    }
    device.upload(&array)?;
    plan.call().forward_in_place(&mut device)?;
    device.download(&mut array)?;
    let dense = |array: &ferrier::Array<T>, local: Local| array.complex()[..local.walk().count()].to_vec();
    let at =
        |array: &ferrier::Array<T>, b, index| array.complex_index(b, index).expect("an index of this rank");
    let spectrum = match c2c {
        true => dense(&array, to),
        false => to.walk().map(|(b, index)| array.complex()[at(&array, b, index)]).collect(),
    };
    plan.call().backward_in_place(&mut device)?;
    device.download(&mut array)?;
    let back = match c2c {
        true => dense(&array, from),
        false => from
            .walk()
            .map(|(b, index)| array.real()[array.real_index(b, index).expect("an index of this rank")])
            .map(|x| Complex::new(x, T::rounded(0.0)))
            .collect(),
    };
    Ok([spectrum, back])
}

fn errors<T: Number>(part: &Part<T>, want: impl Fn(usize, [usize; 3]) -> Complex<f64>) -> Errors {
    let mut errors = Errors::default();
    part.0.walk().zip(&part.1).for_each(|((b, at), x)| errors.add(to_f64(*x), want(b, at)));
    errors
}

/// What a rank finds: errors of forward and back, out of place and in place.
fn judge<T: Number>(
    comm: &Comm,
    gpu: &Gpu,
    (case, problem, choice): (&Case, &Problem, &Choice),
    want: &[Complex<f64>],
) -> Result<Vec<Errors>> {
    let mut plan = planner(problem, choice, gpu).draft::<T>(comm)?.build()?;
    let mut same = choice.clone();
    same.kernel = None;
    let host = Planner::new(problem).choice(same).draft::<T>(comm)?.build()?;
    let local =
        |part, order: ferrier::Order| Local { tile: tile(part), order: order.axes(), batch: case.batch };
    let from = local(plan.input_box(), plan.recipe().input.order());
    let to = local(plan.output_box(), plan.recipe().output.order());
    let shape = case.spectrum_shape();
    let volume: usize = shape.iter().product();
    let spectrum = |b: usize, [i, j, k]: [usize; 3]| want[b * volume + (i * shape[1] + j) * shape[2] + k];
    let mut found = Vec::new();
    // Twice: what a call leaves behind must not matter.
    for _ in 0..2 {
        let both = [out_of_place(&mut plan, case, from)?, in_place(&mut plan, &host, case, [from, to])?];
        for [forward, back] in both {
            found.push(errors(&(to, forward), spectrum));
            found.push(errors(&(from, back), |b, at| source::<T>(case, b, at) * case.round_trip()));
        }
    }
    Ok(found)
}

fn check<T: Number>(gpu: &Gpu, case: &Case, ranks: usize, choice: &Choice, oracle: &Oracle, rng: &mut Rng) {
    let problem = problem(case, ranks, rng);
    let want = oracle.spectrum::<T>(case);
    let told = format!("{} | {ranks} ranks, {}\n{choice:?}\n{problem:?}", case.line, T::NAME);
    let outcome =
        ferrier::ranks(ranks).threads(1).run(|comm| judge::<T>(&comm, gpu, (case, &problem, choice), &want));
    let found = outcome.unwrap_or_else(|error| panic!("{told}: {error}"));
    for call in 0..found[0].len() {
        let mut errors = Errors::default();
        found.iter().for_each(|rank| errors.merge(&rank[call]));
        let (shape, times) = if call % 2 == 0 { (case.spectrum_shape(), 1.0) } else { (case.shape, 2.0) };
        let count = case.batch * shape.iter().product::<usize>();
        if let Err(why) = errors.within(times * tolerance::<T>(case.points()), count) {
            panic!("{told}\ncall {call}: {why}");
        }
    }
}

/// All cases; exchanges, kernels and precisions take turns.
fn table(ranks: usize) {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(420);
    let mut rng = Rng::for_test(7000 + ranks as u64);
    let oracle = Oracle::default();
    let mut turn = ranks;
    for case in cases().iter().step_by(thin()) {
        turn += 1;
        let (exchange, kernel) = (EXCHANGES[turn % 6], *rng.pick(&KERNELS));
        let choice = Choice::new()
            .exchange(exchange)
            .kernel(kernel)
            .decomposition(*rng.pick(&[None, None, Some(Decomposition::Slab), Some(Decomposition::Pencil)]))
            .ranks(*rng.pick(&[None, None, None, Some(ranks.div_ceil(2))]))
            .overlap(rng.pick(&[false, true]).then(|| any_overlap(&mut rng)));
        match turn % 4 {
            0 => check::<f32>(&gpu, case, ranks, &choice, &oracle, &mut rng),
            _ => check::<f64>(&gpu, case, ranks, &choice, &oracle, &mut rng),
        }
    }
}

macro_rules! tables {
    ($($name:ident: $ranks:expr,)*) => {
        $(#[test]
        fn $name() {
            table($ranks);
        })*
    };
}

tables! {
    on_1_rank: 1,
    on_2_ranks: 2,
    on_3_ranks: 3,
    on_4_ranks: 4,
    on_6_ranks: 6,
    on_8_ranks: 8,
}

/// Large lengths, which the oracle is too slow for: against the CPU's plan.
#[test]
fn long_lines_agree_with_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(300);
    for (shape, real) in [
        ([64, 64, 768], false),
        ([1024, 8, 48], false),
        ([6, 640, 32], false),
        ([8, 4, 1000], true),
        ([1, 1, 65536], false),
        ([2, 4096, 16], false),
        ([384, 6, 10], true),
        ([1, 1536, 34], true),
    ] {
        let problem = if real { Problem::r2c(shape) } else { Problem::c2c(shape) };
        for ranks in [1, 3] {
            let worst = ferrier::ranks(ranks).run(|comm| against_cpu::<f64>(&comm, &gpu, &problem)).unwrap();
            let worst = worst.into_iter().fold(0.0, f64::max);
            let points = shape.iter().product::<usize>();
            assert!(worst <= 2.0 * tolerance::<f64>(points), "{shape:?} on {ranks}: {worst:.3e}");
        }
    }
}

/// One long axis: two halves, with factors between them.
#[test]
fn one_long_axis_agrees_with_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(200);
    for (n, ranks, exchange) in [
        (1 << 20, 1, "direct"),
        (90_000, 3, "direct"),
        (1 << 16, 4, "all_to_allv"),
        (77 * 1000, 2, "direct"),
        (34 * 38, 2, "all_to_allv"),
    ]
    .into_iter()
    .step_by(thin())
    {
        for kernel in KERNELS {
            let choice = Choice::new().exchange(exchange).kernel(kernel);
            let run = |comm: Comm| {
                let problem = Problem::c2c_1d(n);
                let there = against_cpu_with::<f64>(&comm, &gpu, &problem, &choice)?;
                let single = against_cpu_with::<f32>(&comm, &gpu, &problem, &choice)?;
                let mut plan = planner(&problem, &choice, &gpu).draft::<f64>(&comm)?.build()?;
                let (mut wave, mut modes) = (plan.make_input()?, plan.make_output()?);
                let values: Vec<f64> = (0..wave.scalars()).map(|i| (i as f64).sin()).collect();
                wave.upload(&values[..])?;
                plan.forward(&wave, &mut modes)?;
                plan.backward(&modes, &mut wave)?;
                let back = download(&wave)?;
                let far = |(a, b): (&f64, &f64)| (a - b).abs();
                Ok([there, single, back.iter().zip(&values).map(far).fold(0.0, f64::max)])
            };
            for [there, single, back] in ferrier::ranks(ranks).run(run).unwrap() {
                let told = format!("{n} points on {ranks}, {kernel}: {there:.1e} {single:.1e} {back:.1e}");
                assert!(there <= 2.0 * tolerance::<f64>(n) && back <= 1e-14, "{told}");
                assert!(single <= 2.0 * tolerance::<f32>(n), "{told}");
            }
        }
    }
}

/// The relative L2 error of this rank's spectrum, as the CPU's plan has it.
fn against_cpu<T: Number>(comm: &Comm, gpu: &Gpu, problem: &Problem) -> Result<f64> {
    against_cpu_with::<T>(comm, gpu, problem, &Choice::default())
}

fn against_cpu_with<T: Number>(comm: &Comm, gpu: &Gpu, problem: &Problem, choice: &Choice) -> Result<f64> {
    let mut host = ferrier::Plan::<T>::new(comm, problem)?;
    let mut plan = planner(problem, choice, gpu).draft::<T>(comm)?.build()?;
    let (mut input, mut want) = (host.make_input()?, host.make_output()?);
    let mut rng = Rng::for_test(comm.rank() as u64);
    let mut next = || T::rounded((rng.bits() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5);
    if problem.is_real() {
        input.fill_real(|_, _| next());
    } else {
        input.fill_complex(|_, _| Complex::new(next(), next()));
    }
    host.forward(&input, &mut want)?;
    let (mut from, mut to) = (plan.make_input()?, plan.make_output()?);
    from.upload(&input)?;
    plan.forward(&from, &mut to)?;
    let mut got = host.make_output()?;
    to.download(&mut got)?;
    let mut errors = Errors::default();
    got.complex().iter().zip(want.complex()).for_each(|(got, want)| errors.add(to_f64(*got), to_f64(*want)));
    Ok(errors.relative())
}

#[test]
fn streams_and_pointers_of_the_caller_work() {
    let Some(gpu) = gpu() else { return };
    let stream = gpu.context().new_stream().unwrap();
    let comm = Comm::one_rank();
    let mut plan = planner(&Problem::c2c([4, 6, 8]), &Choice::default(), &gpu)
        .draft::<f64>(&comm)
        .unwrap()
        .build()
        .unwrap();
    plan.set_stream(&stream).unwrap();
    let mut values = vec![0.0; 384];
    values[0] = 1.0;
    let input = stream.clone_htod(&values).unwrap();
    let mut output = stream.alloc_zeros::<f64>(384).unwrap();
    plan.forward(&input, &mut output).unwrap();
    let got = stream.clone_dtoh(&output).unwrap();
    stream.synchronize().unwrap();
    assert!(got.as_chunks::<2>().0.iter().all(|x| *x == [1.0, 0.0]), "the spectrum of an impulse is one");
    // The same memory by its address, and more sets of pointers than are kept.
    let arrays: Vec<_> = (0..11).map(|_| plan.make_output().unwrap()).collect();
    for array in &arrays {
        // SAFETY: `array` outlives `raw`, has `numbers()` scalars, and is not used otherwise meanwhile.
        let mut raw = unsafe { RawArray::<f64>::new(array.as_raw(), array.scalars()) };
        plan.forward(&input, &mut raw).unwrap();
    }
    for array in &arrays {
        assert!(download(array).unwrap() == got);
    }
    // SAFETY: never touched: it is refused.
    let crooked = unsafe { RawArray::<f64>::new(arrays[0].as_raw() + 8, 384) };
    assert!(matches!(plan.forward(&crooked, &mut output), Err(Error::Array { .. })));
}

#[test]
fn a_plan_that_does_not_fit_is_refused_before_anything_runs() {
    let Some(gpu) = gpu() else { return };
    let (free, _) = gpu.memory().unwrap();
    // Messages need room on the GPU: more than there is.
    let n = ((free as f64 / 8.0).cbrt() as usize).next_multiple_of(2);
    let problem = Problem::c2c([n, n, n])
        .input(ferrier::LayoutSpec::pencils(2))
        .output(ferrier::LayoutSpec::pencils(0));
    let choice = Choice::new().exchange("all_to_allv");
    let outcome = ferrier::ranks(2).run(|comm| {
        let draft = planner(&problem, &choice, &gpu).draft::<f64>(&comm)?;
        let needed = draft.memory().total();
        match draft.build() {
            Err(error) => Ok((needed, error.to_string())),
            Ok(_) => Err(Error::other("the plan was built")),
        }
    });
    let told = outcome.unwrap();
    assert!(told.iter().all(|(_, text)| *text == told[0].1 && text.contains("out of memory")), "{told:?}");
    // Other tests, and processes that they start, take some meanwhile, but not as much as this plan would.
    let left = gpu.memory().unwrap().0;
    assert!(told[0].0 > free / 2 && left > free / 2, "memory was taken: {free} bytes were free, {left} are");
}

/// A rank that is through takes nothing along that others still wait for.
#[test]
fn plans_may_go_as_soon_as_a_call_returns() {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(120);
    let problem = Problem::c2c([4, 6, 8]).output(ferrier::LayoutSpec::slabs(1));
    for _ in 0..30 {
        let outcome = ferrier::ranks(6).threads(1).run(|comm| {
            for _ in 0..10 {
                let mut plan = planner(&problem, &Choice::default(), &gpu).draft::<f64>(&comm)?.build()?;
                let (wave, mut modes) = (plan.make_input()?, plan.make_output()?);
                plan.forward(&wave, &mut modes)?;
            }
            Ok(())
        });
        outcome.unwrap();
    }
}

#[test]
fn ranks_that_want_different_things_get_the_same_error() {
    let Some(gpu) = gpu() else { return };
    let told = ferrier::ranks(3).run(|comm| {
        let problem = Problem::c2c([4, 4, 4 + comm.rank() / 2]);
        Ok(planner(&problem, &Choice::default(), &gpu).draft::<f64>(&comm).err())
    });
    let told = told.unwrap();
    assert!(
        told.iter().all(|error| matches!(error, Some(Error::Disagreement { .. })) && *error == told[0]),
        "{told:?}"
    );
    let wrong = Choice::new().kernel("fftw");
    let error =
        planner(&Problem::c2c([4, 4, 4]), &wrong, &gpu).draft::<f64>(&Comm::one_rank()).err().unwrap();
    assert!(error.to_string().contains("native, cufft"), "{error}");
}

/// Kept modes and filled space: against the CPU's plan.
#[test]
fn pruned_transforms_agree_with_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(300);
    use ferrier::Keep::{Lowest, Range};
    let problems = [
        Problem::c2c([24, 20, 36]).keep([Lowest(16), Lowest(10), Lowest(24)]),
        Problem::r2c([18, 16, 30]).keep([Lowest(9), Range(2, 11), Lowest(20)]),
        Problem::c2c([34, 19, 23]).keep([Lowest(11), Lowest(19), Lowest(8)]),
    ];
    for problem in &problems {
        for (ranks, exchange) in [(1, "direct"), (3, "direct"), (4, "all_to_allv")] {
            for kernel in KERNELS {
                let choice = Choice::new().exchange(exchange).kernel(kernel);
                let run = |comm: Comm| against_cpu_with::<f64>(&comm, &gpu, problem, &choice);
                let worst = ferrier::ranks(ranks).run(run).unwrap().into_iter().fold(0.0, f64::max);
                let points = problem.shape().iter().product::<usize>();
                assert!(
                    worst <= 3.0 * tolerance::<f64>(points),
                    "{problem:?} on {ranks}, {kernel}: {worst:.3e}"
                );
            }
        }
    }
}

/// Where nothing of CUDA is installed the error says what was searched.
#[test]
fn a_missing_library_is_named() {
    let info = ferrier::cuda::info();
    match (Device::cuda(0), &info.missing) {
        (Err(error), Some(missing)) => {
            assert!(missing.contains("lib") && missing.contains("searched for"), "{missing}");
            assert!(error.to_string().contains("no CUDA"), "{error}");
        }
        (Err(error), None) => assert!(info.gpus.is_empty(), "{error}"),
        (Ok(_), missing) => assert_eq!(*missing, None),
    }
    assert!(Device::cuda(9999).is_err());
}
