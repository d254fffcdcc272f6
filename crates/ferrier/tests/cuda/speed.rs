//! Measurements, not tests: how fast codecs, moves, redistributions, ghost cells and strided arrays are beside a copy in the
//! same run. Where they are asked for, by `FERRIER_CODEC_SPEED=1` and `FERRIER_COPY_SPEED=1`.

use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaStream, DeviceRepr, ValidAsZeroBits, sys::CUevent_flags};
use ferrier::cuda::{Cuda, DeviceCodec};
use ferrier::{
    ArrayStrides, Choice, Comm, Element, Ghosts, Halo, Kind, LayoutSpec, Order, Problem, Redistribution,
    Result,
};

use crate::codecs::wild;
use crate::common::Number;
use crate::{Gpu, gpu, planner};

const REPEAT: usize = 7;

/// Milliseconds, by the GPU's events; the least of some.
fn timed(stream: &Arc<CudaStream>, work: &mut dyn FnMut()) -> f64 {
    work();
    let event = || stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
    let once = |_| {
        let start = event();
        work();
        let end = event();
        end.synchronize().unwrap();
        f64::from(start.elapsed_ms(&end).unwrap())
    };
    (0..REPEAT).map(once).fold(f64::INFINITY, f64::min)
}

/// What is moved, with its share of the bandwidth of a copy.
fn say(what: &str, bytes: f64, ms: f64, copy: f64) {
    let speed = bytes / ms / 1e9;
    println!("{what}: {speed:.2} TB/s, {:.0} % of a copy", 100.0 * speed / copy);
}

fn codecs<T>(gpu: &Gpu, names: &[&str])
where
    T: Number + ferrier_codec::Scalar + DeviceRepr + ValidAsZeroBits,
{
    let stream = gpu.context().new_stream().unwrap();
    let count = 1_usize << 28;
    let some = wild::<T>(1 << 20);
    let plain =
        |x: &T| if Into::<f64>::into(*x).is_finite() { *x } else { <T as ferrier::Real>::rounded(1.0) };
    let values: Vec<T> = some.iter().map(plain).cycle().take(count).collect();
    let from = stream.clone_htod(&values).unwrap();
    let mut back = stream.alloc_zeros::<T>(count).unwrap();
    let (number, kind) = (size_of::<T>(), <T as Number>::NAME);
    let ms = timed(&stream, &mut || stream.memcpy_dtod(&from, &mut back).unwrap());
    let copy = (2 * number * count) as f64 / ms / 1e9;
    println!("copy of {kind}: {copy:.2} TB/s");
    for name in names {
        let codec = DeviceCodec::<T>::new(gpu, name).unwrap();
        let mut bytes = stream.alloc_zeros::<u8>(codec.bytes(count)).unwrap();
        let moved = (number * count + codec.bytes(count)) as f64;
        let ms = timed(&stream, &mut || codec.encode(&stream, &from, &mut bytes).unwrap());
        say(&format!("{name} of {kind}, encode"), moved, ms, copy);
        let ms = timed(&stream, &mut || codec.decode(&stream, &bytes, &mut back).unwrap());
        say(&format!("{name} of {kind}, decode"), moved, ms, copy);
    }
}

/// Arrays from one order of axes to another: what packs and unpacks where there is nothing to transform.
fn moves<T>(gpu: &Gpu)
where
    T: Number + DeviceRepr + ValidAsZeroBits,
{
    let stream = gpu.context().new_stream().unwrap();
    let (comm, shape) = (Comm::one_rank(), [512, 510, 514]);
    let numbers: usize = shape.iter().product();
    for (what, order) in [("in order", [0, 1, 2]), ("planes apart", [1, 0, 2]), ("turned", [2, 1, 0])] {
        let layout = |axes| LayoutSpec::slabs(0).order(Order::new(axes).unwrap());
        let problem = Problem::mixed(shape, [Kind::Identity; 3]).complex_values();
        let problem = problem.input(layout([0, 1, 2])).output(layout(order));
        let mut plan = planner(&problem, &Choice::default(), gpu).draft::<T>(&comm).unwrap().build().unwrap();
        plan.set_stream(&stream).unwrap();
        let (from, mut to) = (plan.make_input().unwrap(), plan.make_output().unwrap());
        let source = stream.alloc_zeros::<T>(from.scalars()).unwrap();
        let mut target = stream.alloc_zeros::<T>(from.scalars()).unwrap();
        let bytes = (2 * size_of::<T>() * from.scalars()) as f64;
        let copy = bytes / timed(&stream, &mut || stream.memcpy_dtod(&source, &mut target).unwrap()) / 1e9;
        let ms = timed(&stream, &mut || plan.forward(&from, &mut to).unwrap());
        let width = from.scalars() / numbers;
        say(&format!("moves of {width} {}, {what}", <T as Number>::NAME), bytes, ms, copy);
    }
}

#[test]
fn codec_speed() {
    let (Some(gpu), Some(_)) = (gpu(), std::env::var_os("FERRIER_CODEC_SPEED")) else { return };
    codecs::<f64>(&gpu, &["f32", "f16", "bf16", "trim:12", "trim:20", "block:12", "block:16", "block:24"]);
    codecs::<f32>(&gpu, &["f16", "bf16", "trim:8", "block:8", "block:16"]);
    moves::<f64>(&gpu);
    moves::<f32>(&gpu);
}

/// One rank: arrays of any elements from one order of axes to another.
fn redistributions<E: Element>(gpu: &Gpu, name: &str) {
    let stream = gpu.context().new_stream().unwrap();
    let (comm, shape) = (Comm::one_rank(), [512, 510, 514]);
    for (what, order) in [("in order", [0, 1, 2]), ("planes apart", [1, 0, 2]), ("turned", [2, 1, 0])] {
        let layout = |axes| LayoutSpec::slabs(0).order(Order::new(axes).unwrap());
        let problem = Problem::redistribute(shape).input(layout([0, 1, 2])).output(layout(order));
        let mut plan = Redistribution::<E, Cuda>::on(gpu, &comm, &problem).unwrap();
        plan.set_stream(&stream).unwrap();
        let (from, mut to) = (plan.make_input().unwrap(), plan.make_output().unwrap());
        let bytes = from.len() * size_of::<E>();
        let source = stream.alloc_zeros::<u8>(bytes).unwrap();
        let mut target = stream.alloc_zeros::<u8>(bytes).unwrap();
        let copied = timed(&stream, &mut || stream.memcpy_dtod(&source, &mut target).unwrap());
        let ms = timed(&stream, &mut || plan.run(&from, &mut to).unwrap());
        let moved = (2 * bytes) as f64;
        say(&format!("redistribution of {name}, {what}"), moved, ms, moved / copied / 1e9);
    }
}

/// Seconds of a call on ranks that share the GPU: many calls, one wait.
fn per_call(
    comm: &Comm,
    calls: usize,
    work: &mut dyn FnMut() -> Result<()>,
    wait: &dyn Fn() -> Result<()>,
) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..REPEAT {
        wait()?;
        comm.max(&[0.0])?;
        let start = Instant::now();
        (0..calls).try_for_each(|_| work())?;
        wait()?;
        least = least.min(comm.max(&[start.elapsed().as_secs_f64() / calls as f64])?[0]);
    }
    Ok(least)
}

/// Ghost cells of bricks of one array, all neighbours.
fn ghost_cells(gpu: &Gpu, n: usize, ranks: usize, exchange: Option<&'static str>) {
    let mut ghosts = Ghosts::width(2).periodic([true; 3]);
    if let Some(name) = exchange {
        ghosts = ghosts.exchange(name);
    }
    let run = |comm: Comm| {
        let mut halo = Halo::<f64, Cuda>::on(gpu, &comm, [n; 3], &LayoutSpec::bricks(), &ghosts)?;
        let (mut field, stream) = (halo.make_field()?, gpu.context().new_stream().unwrap());
        halo.set_stream(&stream)?;
        let bytes = 8 * (halo.volume() - halo.local_box().volume());
        halo.exchange([&mut field])?;
        let seconds = per_call(&comm, 20, &mut || halo.exchange([&mut field]), &|| {
            stream.synchronize().map_err(ferrier::Error::other)
        })?;
        Ok((seconds, bytes))
    };
    let found = ferrier::ranks(ranks).threads(1).run(run).unwrap();
    let (us, bytes) = (found[0].0 * 1e6, found.iter().map(|(_, bytes)| bytes).sum::<usize>());
    let speed = 2.0 * bytes as f64 / found[0].0 / 1e9;
    println!(
        "ghost cells of {n}^3, width 2, {ranks} ranks, {}: {us:.1} us, {speed:.0} GB/s read and written",
        exchange.unwrap_or("default")
    );
}

/// Redistributions between ranks that share the GPU, against all bytes at the speed of a copy.
fn between_ranks(gpu: &Gpu, n: usize, ranks: usize) {
    let problem = Problem::redistribute([n; 3]).input(LayoutSpec::slabs(0)).output(LayoutSpec::pencils(0));
    let run = |comm: Comm| {
        let mut plan = Redistribution::<f64, Cuda>::on(gpu, &comm, &problem)?;
        let (from, mut to) = (plan.make_input()?, plan.make_output()?);
        let stream = gpu.context().new_stream().unwrap();
        plan.set_stream(&stream)?;
        plan.run(&from, &mut to)?;
        per_call(&comm, 10, &mut || plan.run(&from, &mut to), &|| {
            stream.synchronize().map_err(ferrier::Error::other)
        })
    };
    let seconds = ferrier::ranks(ranks).threads(1).run(run).unwrap()[0];
    let speed = 16.0 * (n * n * n) as f64 / seconds / 1e12;
    println!(
        "redistribution of {n}^3 f64, {ranks} ranks, slabs to pencils: {:.1} us, {speed:.2} TB/s",
        seconds * 1e6
    );
}

/// Transforms of arrays with ghost cells or interleaved components, against arrays without gaps.
fn strided(gpu: &Gpu, n: usize) {
    let (stream, comm) = (gpu.context().new_stream().unwrap(), Comm::one_rank());
    let plain = Problem::c2c([n; 3]);
    let thrice = plain.clone().batch(3);
    let ghosts = ArrayStrides::inside([n + 4; 3], [2; 3], Order::C);
    let interleaved = ArrayStrides::interleaved([n; 3], 3, Order::C);
    let cases = [
        ("ghost cells", plain.clone(), plain.input_strides(ghosts).output_strides(ghosts)),
        (
            "3 components side by side",
            thrice.clone(),
            thrice.input_strides(interleaved).output_strides(interleaved),
        ),
    ];
    for (name, plain, strided) in cases {
        let ms = [plain, strided].map(|problem| {
            let choice = Choice::new().kernel("native");
            let mut plan = planner(&problem, &choice, gpu).draft::<f64>(&comm).unwrap().build().unwrap();
            plan.set_stream(&stream).unwrap();
            let (x, mut y) = (plan.make_input().unwrap(), plan.make_output().unwrap());
            timed(&stream, &mut || plan.forward(&x, &mut y).unwrap())
        });
        println!("{n}^3 with {name}: {:.3} ms, without gaps {:.3} ms: {:.2}", ms[1], ms[0], ms[1] / ms[0]);
    }
}

#[test]
fn copy_speed() {
    let (Some(gpu), Some(_)) = (gpu(), std::env::var_os("FERRIER_COPY_SPEED")) else { return };
    redistributions::<u8>(&gpu, "u8");
    redistributions::<f32>(&gpu, "f32");
    redistributions::<f64>(&gpu, "f64");
    redistributions::<[f32; 3]>(&gpu, "[f32; 3]");
    redistributions::<ferrier::Complex<f64>>(&gpu, "complex f64");
    for ranks in [1, 2, 8] {
        between_ranks(&gpu, 512, ranks);
        for n in [256, 512] {
            ghost_cells(&gpu, n, ranks, None);
        }
    }
    ghost_cells(&gpu, 256, 8, Some("all_to_allv"));
    ghost_cells(&gpu, 256, 8, Some("point_to_point"));
    strided(&gpu, 256);
    strided(&gpu, 512);
}
