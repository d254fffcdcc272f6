//! Measurements, not tests: how fast codecs and moves are beside a copy in the same run. Where they are asked for, by
//! `FERRIER_CODEC_SPEED=1`.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DeviceRepr, ValidAsZeroBits, sys::CUevent_flags};
use ferrier::cuda::DeviceCodec;
use ferrier::{Choice, Comm, Kind, LayoutSpec, Order, Problem};

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
