//! The timed part of `ferrier bench --device cuda`: by events of the GPU.

use ferrier::cuda::{DeviceArray, Event, Gpu, Plan};
use ferrier::{Array, Choice, Comm, Device, Order, Planner, Real, StepTime};
use num_complex::Complex;

use super::cufft;
use crate::contender::Timed;
use crate::failure::Outcome;
use crate::noise::Noise;
use crate::parts::Number;
use crate::peers::Task;
use crate::reference::Reference;
use crate::session;
use crate::timing::{Measured, Work, references};
use crate::view::{View, rounded};

/// A timing of less is made of several transforms in a row.
const SHORT_MS: f64 = 1.0;
/// What all timed repetitions should take, about.
const WANTED_SECONDS: f64 = 0.5;

/// Numbers that codecs encode at a time.
const CHUNK: usize = 4096;

/// A plan on a GPU with its arrays.
struct Contender<T: Real> {
    plan: Plan<T>,
    input: DeviceArray<T>,
    /// The spectrum, and what comes back.
    apart: Option<[DeviceArray<T>; 2]>,
    marks: [Event; 2],
}

impl<T: Real + Number> Contender<T> {
    fn new(plan: Plan<T>, in_place: bool) -> ferrier::Result<Self> {
        let (input, apart) = match in_place {
            true => (plan.make_in_place()?, None),
            false => (plan.make_input()?, Some([plan.make_output()?, plan.make_input()?])),
        };
        let marks = [Event::new(plan.gpu())?, Event::new(plan.gpu())?];
        Ok(Contender { plan, input, apart, marks })
    }

    fn forward(&mut self) -> ferrier::Result<()> {
        match &mut self.apart {
            Some([spectrum, _]) => self.plan.forward(&self.input, spectrum),
            None => self.plan.forward_in_place(&mut self.input),
        }
    }

    fn backward(&mut self) -> ferrier::Result<()> {
        match &mut self.apart {
            Some([spectrum, back]) => self.plan.backward(&*spectrum, back),
            None => self.plan.backward_in_place(&mut self.input),
        }
    }

    fn spectrum(&self) -> &DeviceArray<T> {
        self.apart.as_ref().map_or(&self.input, |[spectrum, _]| spectrum)
    }

    fn back(&self) -> &DeviceArray<T> {
        self.apart.as_ref().map_or(&self.input, |[_, back]| back)
    }

    /// Seconds of one of `count` transforms, on the slowest rank. Collective.
    fn timed(
        &mut self,
        comm: &Comm,
        count: usize,
        work: fn(&mut Self) -> ferrier::Result<()>,
    ) -> ferrier::Result<f64> {
        self.plan.synchronize()?;
        comm.barrier()?;
        self.plan.record(&self.marks[0])?;
        (0..count).try_for_each(|_| work(self))?;
        self.plan.record(&self.marks[1])?;
        self.plan.synchronize()?;
        let ms = self.marks[1].ms_since(&self.marks[0])?;
        Ok(comm.max(&[ms / 1e3 / count as f64])?[0])
    }

    /// The value of array `b` at an index of the spectrum, if it lies here.
    fn at(&self, order: Order, b: usize, index: [usize; 3]) -> Option<Complex<f64>> {
        let own = self.plan.output_box();
        if !own.contains(index) {
            return None;
        }
        let strides = order.strides(own.shape());
        let place: usize = (0..3).map(|a| (index[a] - own.lo[a]) * strides[a]).sum();
        let mut value = [T::default(); 2];
        self.spectrum().download_part(2 * (b * own.volume() + place), &mut value).ok()?;
        Some(Complex::new(value[0].widened(), value[1].widened()))
    }
}

/// What a rank does, from plan to last repetition. Collective.
///
/// # Errors
/// Those of the library, and of cuFFT where it is compared.
pub fn measure<T>(comm: &Comm, work: &Work<'_>, choice: &Choice, device: Device) -> Outcome<Measured>
where
    T: Real + Number + Into<f64> + cudarc::driver::DeviceRepr + cudarc::driver::ValidAsZeroBits,
{
    let task = &work.task;
    let noise = Noise::new(task.shape, 1);
    work.say(comm, "planning".into());
    let gpu = super::of_rank(device, comm)?;
    let draft = Planner::new(&work.problem).choice(choice.clone()).device(&gpu).draft::<T>(comm);
    let draft = session::agree(comm, draft.map_err(Into::into))?;
    let plan = draft.build()?;
    let made = Contender::new(plan, work.in_place).map_err(Into::into);
    let mut contender = session::agree(comm, made)?;
    let host =
        if work.in_place { contender.plan.make_host_in_place() } else { contender.plan.make_host_input() };
    let mut host = session::agree(comm, host.map_err(Into::into))?;
    fill(&mut host, &noise, task.batch, comm.threads());
    contender.input.upload(&host)?;
    let references = references(comm, work, &host)?;
    let mut timed = warm_up(comm, &mut contender, &references)?;
    let mut peer = match comm.rank() {
        0 if !work.peers.is_empty() => {
            work.say(comm, "planning cufft".into());
            // Alone and out of place, our input is what the peer wants.
            let mut peer = match comm.size() == 1 && !work.in_place && plain(&contender.plan) {
                true => cufft::Peer::new(&gpu, task, cufft::Input::Device(&contender.input))?,
                false => cufft::Peer::new(&gpu, task, cufft::Input::Host(&whole::<T>(task, &noise)))?,
            };
            peer.check(&references)?;
            Some(peer)
        }
        _ => None,
    };
    comm.barrier()?;
    let once = contender.timed(comm, 1, Contender::forward)?;
    let pair = once + contender.timed(comm, 1, Contender::backward)?;
    let repeat = work.repeat.unwrap_or_else(|| (WANTED_SECONDS / pair).ceil().clamp(7.0, 60.0) as usize);
    let several = (SHORT_MS / 1e3 / once).ceil().clamp(1.0, 20.0) as usize;
    let in_place = several.min(repeatable::<T>(task.shape));
    let own = if work.in_place { in_place } else { several };
    for turn in 0..repeat {
        work.say(comm, format!("repetition {} of {repeat}", turn + 1));
        // Once untimed, as the peer.
        contender.timed(comm, 1, Contender::forward)?;
        contender.timed(comm, 1, Contender::backward)?;
        timed.forward.push(contender.timed(comm, own, Contender::forward)?);
        timed.backward.push(contender.timed(comm, own, Contender::backward)?);
        peer.iter_mut().try_for_each(|peer| peer.run([several, in_place]))?;
        comm.barrier()?;
    }
    // Once more from the beginning: in place, errors of all repetitions have added up.
    contender.input.upload(&host)?;
    contender.forward()?;
    contender.backward()?;
    contender.back().download(&mut host)?;
    let (distance, norm) = View::of_input(&host, task.batch).distance(&noise, comm.threads());
    let sums = comm.sum(&[distance, norm])?;
    // What was dropped does not come back.
    timed.error_l2 = if work.whole { (sums[0] / sums[1]).sqrt() } else { f64::NAN };
    timed.steps = steps(comm, &mut contender)?;
    Ok(Measured {
        timed: vec![timed],
        nodes: comm.node_count(),
        threads: comm.threads(),
        transport: comm.transport_name().into(),
        peers: peer.iter().map(cufft::Peer::better).collect(),
        gpu: Some(gpu.name().into()),
    })
}

/// How often a transform may follow itself in place before numbers, which grow by the root of their
/// count each time, leave the range of `T`.
fn repeatable<T: Real>(shape: [usize; 3]) -> usize {
    let room: f64 = match T::PRECISION {
        ferrier::Precision::F32 => 110.0,
        ferrier::Precision::F64 => 1000.0,
    };
    let growth = 0.5 * shape.iter().map(|&n| (n as f64).log2()).sum::<f64>();
    (room / growth.max(1.0)).max(1.0) as usize
}

/// Does the input lie in C order?
fn plain<T: Real>(plan: &Plan<T>) -> bool {
    plan.recipe().input.order() == Order::C
}

/// Both directions, untimed; is the spectrum right? Collective.
fn warm_up<T: Real + Number>(
    comm: &Comm,
    contender: &mut Contender<T>,
    references: &[(usize, Reference)],
) -> Outcome<Timed> {
    contender.forward()?;
    contender.plan.synchronize()?;
    let order = contender.plan.output_layout().order();
    let (mut distance, mut norm) = (0.0, 0.0);
    for (b, reference) in references {
        let part = reference.distance(|index| contender.at(order, *b, index));
        (distance, norm) = (distance + part.0, norm + part.1);
    }
    let error_forward = (comm.sum(&[distance])?[0] / norm).sqrt();
    contender.backward()?;
    let recipe = contender.plan.recipe();
    // Each reshape may lose as much, there and on the way back; the norm of a real spectrum is a half.
    let reshapes = recipe.reshapes() as f64;
    let codec =
        ferrier_codec::codec::<f64>(recipe.codec()).ok().filter(|_| recipe.codec() != ferrier::codec::RAW);
    let bound = codec.and_then(|codec| codec.bound(CHUNK));
    Ok(Timed {
        memory: comm.max(&[contender.plan.memory().total() as f64])?[0] as u64,
        wire: recipe.wire_bytes(),
        exchange: recipe.exchange().into(),
        kernel: recipe.kernel().into(),
        codec: recipe.codec().into(),
        overlap: recipe.overlap.clone(),
        error_forward,
        bounds: bound.map(|bound| [2.0 * reshapes * bound, 4.0 * reshapes * bound]),
        ..Timed::default()
    })
}

/// Each step of a forward transform: the slowest rank's time, all ranks' bytes. Collective.
fn steps<T: Real + Number>(comm: &Comm, contender: &mut Contender<T>) -> Outcome<Vec<StepTime>> {
    contender.plan.time_steps()?;
    let mut own = Vec::new();
    for _ in 0..3 {
        contender.forward()?;
        own = contender.plan.profile()?;
    }
    Ok(crate::contender::joined(comm, &own)?)
}

/// Fills an array by all threads, plane by plane, where it lies plane by plane.
fn fill<T: Real + Number>(array: &mut Array<T>, noise: &Noise, batch: usize, threads: usize) {
    let View { width, lo, hi, strides, array: apart, .. } = View::of_input(array, batch);
    let (planes, plane) = (hi[0] - lo[0], strides[0] * width);
    let in_planes = planes > 1 && strides[0] >= strides[1] && strides[1] >= strides[2];
    if !in_planes || (batch > 1 && apart != planes * strides[0]) {
        match array.is_real() {
            true => array.fill_real(|b, index| T::rounded(noise.at(b, index).re)),
            false => array.fill_complex(|b, index| rounded(noise.at(b, index))),
        }
        return;
    }
    let numbers = if width == 1 { array.real_mut() } else { crate::parts::flat_mut(array.complex_mut()) };
    let mut chunks: Vec<(usize, &mut [T])> = numbers.chunks_mut(plane).enumerate().collect();
    let share = chunks.len().div_ceil(threads.max(1));
    std::thread::scope(|scope| {
        for part in chunks.chunks_mut(share) {
            scope.spawn(move || {
                for (number, plane) in part {
                    let (b, i) = (*number / planes, *number % planes);
                    for j in 0..hi[1] - lo[1] {
                        for k in 0..hi[2] - lo[2] {
                            let value = noise.at(b, [lo[0] + i, lo[1] + j, lo[2] + k]);
                            let at = (j * strides[1] + k * strides[2]) * width;
                            plane[at] = T::rounded(value.re);
                            if width == 2 {
                                plane[at + 1] = T::rounded(value.im);
                            }
                        }
                    }
                }
            });
        }
    });
}

/// The whole input, in C order, by all cores.
fn whole<T: Real + Number>(task: &Task, noise: &Noise) -> Vec<T> {
    let [n0, n1, n2] = task.shape;
    let width = if task.real { 1 } else { 2 };
    let mut numbers = vec![T::default(); task.batch * n0 * n1 * n2 * width];
    let mut rows: Vec<(usize, &mut [T])> = numbers.chunks_mut(n1 * n2 * width).enumerate().collect();
    let share = rows.len().div_ceil(ferrier::machine::cores());
    std::thread::scope(|scope| {
        for part in rows.chunks_mut(share) {
            scope.spawn(move || {
                for (number, plane) in part {
                    for (at, value) in plane.chunks_mut(width).enumerate() {
                        let got = noise.at(*number / n0, [*number % n0, at / n2, at % n2]);
                        value[0] = T::rounded(got.re);
                        if let Some(im) = value.get_mut(1) {
                            *im = T::rounded(got.im);
                        }
                    }
                }
            });
        }
    });
    numbers
}

/// How fast the GPU copies its own memory, in GB/s, read and written; the
/// first rank looks. Collective.
///
/// # Errors
/// No memory, or the driver refuses.
pub fn copy_speed(comm: &Comm, gpu: &Gpu) -> Outcome<f64> {
    let own = if comm.rank() == 0 { own_copy_speed(gpu) } else { Ok(0.0) };
    Ok(comm.max(&[session::agree(comm, own)?])?[0])
}

fn own_copy_speed(gpu: &Gpu) -> Outcome<f64> {
    const BYTES: usize = 1 << 31;
    let refused = |error: cudarc::driver::DriverError| {
        crate::failure::Failure::new(format!("the GPU's copy speed: {error:?}"))
    };
    let (free, _) = gpu.memory()?;
    let bytes = BYTES.min(free / 4);
    let stream = gpu.context().new_stream().map_err(refused)?;
    let from = stream.alloc_zeros::<u8>(bytes).map_err(refused)?;
    let mut to = stream.alloc_zeros::<u8>(bytes).map_err(refused)?;
    let mut best = f64::INFINITY;
    for _ in 0..8 {
        let flags = Some(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT);
        let start = stream.record_event(flags).map_err(refused)?;
        stream.memcpy_dtod(&from, &mut to).map_err(refused)?;
        let end = stream.record_event(flags).map_err(refused)?;
        end.synchronize().map_err(refused)?;
        best = best.min(f64::from(start.elapsed_ms(&end).map_err(refused)?));
    }
    Ok(2.0 * bytes as f64 / best / 1e6)
}
