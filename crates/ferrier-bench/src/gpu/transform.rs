//! The timed part of a contest on a GPU, by events of the GPU.

use std::time::Instant;

use cudarc::driver::{DeviceRepr, ValidAsZeroBits};
use ferrier::cuda::{Cuda, Event, Plan};
use ferrier::{Array, Choice, Comm, DeviceSpec, Order, Planner, Precision, Real};
use num_complex::Complex;

use super::cufft::{CufftInput, CufftPeer};
use super::device::{of_rank, timed};
use crate::agree::{RankGroup, agree_result};
use crate::contest::{
    Arrays, CandidateResult, ContestOptions, ContestResult, PeerResult, gather_events, join_steps, references,
};
use crate::failure::Outcome;
use crate::in_precision;
use crate::noise::Noise;
use crate::peers::PeerProblem;
use crate::reference::{References, relative_error};
use crate::scalars::{scalars_mut, widened};
use crate::view::View;

/// Shorter transforms are timed several in a row.
const SHORT_MS: f64 = 1.0;
/// About the time of all timed repetitions.
const WANTED_SECONDS: f64 = 0.5;

/// A plan on a GPU with its arrays.
struct GpuCandidate<T: Real> {
    plan: Plan<T>,
    arrays: Arrays<T, Cuda>,
    events: [Event; 2],
}

/// A transform of a candidate's arrays.
type Direction<T> = fn(&mut Arrays<T, Cuda>, &mut Plan<T>) -> ferrier::Result<()>;

impl<T: Real> GpuCandidate<T> {
    fn new(plan: Plan<T>, in_place: bool) -> ferrier::Result<Self> {
        let events = [Event::new(plan.gpu())?, Event::new(plan.gpu())?];
        Ok(GpuCandidate { arrays: Arrays::new(&plan, in_place)?, plan, events })
    }

    /// Seconds of one of `count` transforms, on the slowest rank. Collective.
    fn timed(&mut self, comm: &Comm, count: usize, direction: Direction<T>) -> ferrier::Result<f64> {
        let GpuCandidate { plan, arrays, events } = self;
        let seconds = timed(comm, plan, events, |plan| (0..count).try_for_each(|_| direction(arrays, plan)))?;
        Ok(seconds / count as f64)
    }

    /// The value of array `b` at an index of the spectrum, if this rank holds it.
    fn at(&self, order: Order, b: usize, index: [usize; 3]) -> Option<Complex<f64>> {
        let own = self.plan.output_box();
        if !own.contains(index) {
            return None;
        }
        let strides = order.strides(own.shape());
        let offset: usize = (0..3).map(|a| (index[a] - own.lo[a]) * strides[a]).sum();
        let mut value = [T::default(); 2];
        self.arrays.spectrum().download_part(2 * (b * own.volume() + offset), &mut value).ok()?;
        Some(widened(Complex::new(value[0], value[1])))
    }
}

/// Plans, warms up and times one choice on each rank's GPU. Collective.
///
/// # Errors
/// Those of the library, and of cuFFT if it is compared.
pub fn contest(
    comm: &Comm,
    options: &ContestOptions<'_>,
    choice: &Choice,
    device: DeviceSpec,
) -> Outcome<ContestResult> {
    in_precision!(options.peer_problem.precision, T => measure::<T>(comm, options, choice, device))
}

fn measure<T: Real + DeviceRepr + ValidAsZeroBits>(
    comm: &Comm,
    options: &ContestOptions<'_>,
    choice: &Choice,
    device: DeviceSpec,
) -> Outcome<ContestResult> {
    let problem = &options.peer_problem;
    let noise = Noise::new(problem.shape, 1);
    options.say(comm, "planning".into());
    let gpu = of_rank(device, comm)?;
    let draft = Planner::new(&options.problem).choice(choice.clone()).device(&gpu).draft::<T>(comm);
    let plan = agree_result(comm, draft)?.build()?;
    let mut candidate = agree_result(comm, GpuCandidate::new(plan, options.in_place))?;
    let host =
        if options.in_place { candidate.plan.make_host_in_place() } else { candidate.plan.make_host_input() };
    let mut host = agree_result(comm, host)?;
    fill(&mut host, &noise, problem.batch, comm.threads());
    candidate.arrays.input.upload(&host)?;
    let references = references(comm, options, &host)?;
    let mut result = warm_up(comm, &mut candidate, &references)?;
    let planning = Instant::now();
    let mut peer = match comm.rank() {
        0 if !options.peers.is_empty() => {
            options.say(comm, "planning cufft".into());
            // The input of one rank out of place, in C order, is the peer's input too.
            let c_order = candidate.plan.recipe().input.order() == Order::C;
            let mut peer = match comm.size() == 1 && !options.in_place && c_order {
                true => CufftPeer::new(&gpu, problem, CufftInput::Device(&candidate.arrays.input))?,
                false => CufftPeer::new(&gpu, problem, CufftInput::Host(&whole::<T>(problem, &noise)))?,
            };
            peer.check(&references)?;
            Some(peer)
        }
        _ => None,
    };
    let planning_ms = planning.elapsed().as_secs_f64() * 1e3;
    comm.barrier()?;
    let once = candidate.timed(comm, 1, Arrays::forward)?;
    let pair = once + candidate.timed(comm, 1, Arrays::backward)?;
    let repeat = options.repeat.unwrap_or_else(|| (WANTED_SECONDS / pair).ceil().clamp(7.0, 60.0) as usize);
    let several = (SHORT_MS / 1e3 / once).ceil().clamp(1.0, 20.0) as usize;
    let in_place = several.min(repeatable::<T>(problem.shape));
    let own = if options.in_place { in_place } else { several };
    for repetition in 0..repeat {
        options.say(comm, format!("repetition {} of {repeat}", repetition + 1));
        // Once untimed, as for the peer.
        candidate.timed(comm, 1, Arrays::forward)?;
        candidate.timed(comm, 1, Arrays::backward)?;
        result.forward.push(candidate.timed(comm, own, Arrays::forward)?);
        result.backward.push(candidate.timed(comm, own, Arrays::backward)?);
        peer.iter_mut().try_for_each(|peer| peer.run([several, in_place]))?;
        comm.barrier()?;
    }
    // From new input: in place, the errors of all repetitions have added up.
    candidate.arrays.input.upload(&host)?;
    candidate.arrays.forward(&mut candidate.plan)?;
    candidate.arrays.backward(&mut candidate.plan)?;
    candidate.arrays.back().download(&mut host)?;
    let (distance, norm) = View::of_input(&host, problem.batch).distance(&noise, comm.threads());
    let sums = comm.sum(&[distance, norm])?;
    result.error_l2 = if options.whole { (sums[0] / sums[1]).sqrt() } else { f64::NAN };
    let own = traced(&mut candidate)?;
    result.steps = join_steps(comm, &candidate.plan.profile()?)?;
    result.typical_ms = comm.max(&[own[0].1])?[0];
    result.traced = [gather_events(comm, &own[0])?, gather_events(comm, &own[1])?];
    Ok(ContestResult {
        candidates: vec![result],
        infeasible: Vec::new(),
        tunings: Vec::new(),
        group: RankGroup::new(comm),
        peers: peer.iter().map(|peer| PeerResult { planning_ms, ..peer.faster() }).collect(),
        copy_ms: None,
        gpu: Some(gpu.name().into()),
    })
}

/// How often a transform can repeat in place before values, which grow by the root of their
/// number each time, overflow.
fn repeatable<T: Real>(shape: [usize; 3]) -> usize {
    let range: f64 = match T::PRECISION {
        Precision::F32 => 110.0,
        Precision::F64 => 1000.0,
    };
    let growth = 0.5 * shape.iter().map(|&n| (n as f64).log2()).sum::<f64>();
    (range / growth.max(1.0)).max(1.0) as usize
}

/// Runs both directions untimed and measures the error of the spectrum. Collective.
fn warm_up<T: Real>(
    comm: &Comm,
    candidate: &mut GpuCandidate<T>,
    references: &References,
) -> Outcome<CandidateResult> {
    candidate.arrays.forward(&mut candidate.plan)?;
    candidate.plan.synchronize()?;
    let order = candidate.plan.output_layout().order();
    let error_forward = relative_error(Some(comm), references, |b, index| candidate.at(order, b, index))?;
    let wire_bytes = comm.sum(&[candidate.plan.wire_bytes() as f64])?[0] as u64;
    let forward = candidate.plan.certificate().unwrap_or_default();
    candidate.arrays.backward(&mut candidate.plan)?;
    let backward = candidate.plan.certificate().unwrap_or_default();
    // The backward transform keeps the loss of the spectrum; of a halved one, up to twice its squares.
    let round = (std::f64::consts::SQRT_2 * forward.bound() + backward.bound()) * (1.0 + forward.bound());
    let recipe = candidate.plan.recipe();
    Ok(CandidateResult {
        memory: comm.max(&[candidate.plan.memory().total() as f64])?[0] as u64,
        wire_bytes,
        exchange: recipe.exchange.clone(),
        kernel: recipe.kernel.clone(),
        codec: recipe.codec.clone(),
        overlap: recipe.overlap.clone(),
        error_forward,
        error_bound: forward.bound(),
        bounds: (forward.loss + backward.loss > 0.0).then_some([forward.bound(), round]),
        ..CandidateResult::default()
    })
}

/// Events and time of a transform in each direction, the forward one last, on this rank's stream. Collective.
fn traced<T: Real>(candidate: &mut GpuCandidate<T>) -> Outcome<[(Vec<ferrier::Event>, f64); 2]> {
    candidate.plan.time_steps()?;
    let mut own = [(Vec::new(), 0.0), (Vec::new(), 0.0)];
    for _ in 0..3 {
        let directions: [(usize, Direction<T>); 2] = [(1, Arrays::backward), (0, Arrays::forward)];
        for (at, direction) in directions {
            direction(&mut candidate.arrays, &mut candidate.plan)?;
            let events = candidate.plan.stream_events()?;
            let total = events.last().map_or(0.0, |event| event.end_ms);
            own[at] = (events, total);
        }
    }
    Ok(own)
}

/// Fills an array, by all threads if its planes are contiguous.
fn fill<T: Real>(array: &mut Array<T>, noise: &Noise, batch: usize, threads: usize) {
    let View { width, lo, hi, strides, array: apart, .. } = View::of_input(array, batch);
    let (planes, plane) = (hi[0] - lo[0], strides[0] * width);
    let contiguous = planes > 1 && strides[0] >= strides[1] && strides[1] >= strides[2];
    if !contiguous || (batch > 1 && apart != planes * strides[0]) {
        return noise.fill(array);
    }
    let scalars = if width == 1 { array.real_mut() } else { scalars_mut(array.complex_mut()) };
    in_planes(scalars, plane, threads, |number, plane| {
        let (b, i) = (number / planes, number % planes);
        for j in 0..hi[1] - lo[1] {
            for k in 0..hi[2] - lo[2] {
                let at = (j * strides[1] + k * strides[2]) * width;
                store(noise.at(b, [lo[0] + i, lo[1] + j, lo[2] + k]), &mut plane[at..at + width]);
            }
        }
    });
}

/// Calls `work` with the number and the scalars of each plane, by all threads.
fn in_planes<T: Real>(
    scalars: &mut [T],
    plane: usize,
    threads: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let mut planes: Vec<(usize, &mut [T])> = scalars.chunks_mut(plane).enumerate().collect();
    let share = planes.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        for part in planes.chunks_mut(share) {
            scope.spawn(|| part.iter_mut().for_each(|(number, plane)| work(*number, plane)));
        }
    });
}

/// Stores a value as one real scalar or as two.
fn store<T: Real>(value: Complex<f64>, to: &mut [T]) {
    to.iter_mut().zip([value.re, value.im]).for_each(|(to, part)| *to = T::rounded(part));
}

/// The whole input in C order, filled by all cores.
fn whole<T: Real>(problem: &PeerProblem, noise: &Noise) -> Vec<T> {
    let ([n0, n1, n2], width) = (problem.shape, problem.width());
    let mut scalars = vec![T::default(); problem.batch * n0 * n1 * n2 * width];
    in_planes(&mut scalars, n1 * n2 * width, ferrier::machine::cores(), |number, plane| {
        for (at, to) in plane.chunks_mut(width).enumerate() {
            store(noise.at(number / n0, [number % n0, at / n2, at % n2]), to);
        }
    });
    scalars
}
