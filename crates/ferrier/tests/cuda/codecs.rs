//! Codecs on a GPU, against the CPU's.

use ferrier::cuda::Gpu;
use ferrier::{Choice, Comm, Complex, Error, LayoutSpec, Problem, Result};
use ferrier_test::{Rng, watchdog};

use crate::common::Number;
use crate::{against_cpu_with, gpu, planner, thin};

/// Numbers of all sizes, with zeros and what is not finite among them.
pub fn wild<T: Number>(count: usize) -> Vec<T> {
    let mut rng = Rng::for_test(count as u64);
    let mut next = || {
        let x = (rng.bits() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
        let scaled = x * 2f64.powi(rng.below(40) as i32 - 20);
        T::rounded([scaled, scaled, scaled, x, 0.0][rng.below(5)])
    };
    let mut numbers: Vec<T> = (0..count).map(|_| next()).collect();
    // A chunk with what is not finite, one of tiny numbers, one of zeros.
    for (at, value) in [(5, f64::INFINITY), (17, f64::NEG_INFINITY), (40, f64::NAN), (41, -0.0)] {
        if at < count {
            numbers[at] = T::rounded(value);
        }
    }
    let tiny = T::rounded(if T::NAME == "f64" { 1e-290 } else { 1e-36 });
    numbers.iter_mut().skip(2 * 4096).take(4096).for_each(|x| *x *= tiny);
    numbers.iter_mut().skip(3 * 4096).take(4096).for_each(|x| *x = T::rounded(0.0));
    numbers
}

fn codec_agrees<T>(gpu: &Gpu, name: &str, count: usize)
where
    T: Number + ferrier_codec::Scalar + cudarc::driver::DeviceRepr + cudarc::driver::ValidAsZeroBits,
{
    let stream = gpu.context().new_stream().unwrap();
    let codec = ferrier_codec::codec::<T>(name).unwrap();
    let device = ferrier::cuda::DeviceCodec::<T>::new(gpu, name).unwrap();
    let values = wild::<T>(count);
    let mut want = Vec::new();
    let mut scratch = vec![0; codec.scratch(4096)];
    for chunk in values.chunks(4096) {
        let mut bytes = vec![0; codec.max_bytes(chunk.len())];
        codec.encode(chunk, &mut bytes, &mut scratch);
        want.extend(bytes);
    }
    assert_eq!(device.bytes(count), want.len());
    let from = stream.clone_htod(&values).unwrap();
    let mut bytes = stream.alloc_zeros::<u8>(want.len()).unwrap();
    device.encode(&stream, &from, &mut bytes).unwrap();
    let got = stream.clone_dtoh(&bytes).unwrap();
    stream.synchronize().unwrap();
    let wrong = got.iter().zip(&want).position(|(a, b)| a != b);
    assert_eq!(wrong, None, "{name} of {}, {count} numbers: another byte", <T as Number>::NAME);
    let mut back = stream.alloc_zeros::<T>(count).unwrap();
    device.decode(&stream, &bytes, &mut back).unwrap();
    let back = stream.clone_dtoh(&back).unwrap();
    stream.synchronize().unwrap();
    let slot = codec.max_bytes(4096);
    for (number, (got, bytes)) in back.chunks(4096).zip(want.chunks(slot)).enumerate() {
        let mut wanted = vec![T::default(); got.len()];
        codec.decode(bytes, &mut wanted, &mut scratch).unwrap();
        let same = |a: &T, b: &T| {
            ferrier_codec::Float::widened(*a).to_bits() == ferrier_codec::Float::widened(*b).to_bits()
        };
        let wrong = got.iter().zip(&wanted).position(|(a, b)| !same(a, b));
        assert_eq!(wrong, None, "{name} of {}, chunk {number}: another number", <T as Number>::NAME);
    }
}

#[test]
fn codecs_write_what_the_cpu_writes() {
    let Some(gpu) = gpu() else { return };
    for count in [1, 16, 100, 4096, 5 * 4096 + 1234].into_iter().step_by(thin()) {
        for name in [
            "f32", "f16", "bf16", "trim:3", "trim:20", "trim:44", "block:2", "block:12", "block:16",
            "block:33",
        ] {
            codec_agrees::<f64>(&gpu, name, count);
        }
        for name in ["f16", "bf16", "trim:2", "trim:15", "block:2", "block:9", "block:16", "block:24"] {
            codec_agrees::<f32>(&gpu, name, count);
        }
    }
    let refused = ferrier::cuda::DeviceCodec::<f64>::new(&gpu, "zfp:rate=8").err().unwrap();
    assert!(refused.to_string().contains("block:B"), "{refused}");
}

/// What is encoded on its way comes out within the codec's bound, and not better than raw.
#[test]
fn plans_encode_what_leaves_the_gpu() {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(300);
    let problem = Problem::c2c([32, 48, 40]).output(ferrier::LayoutSpec::slabs(1));
    for exchange in ["all_to_allv", "all_to_all", "point_to_point", "ring"] {
        for (name, most) in [("f32", 1e-6), ("f16", 2e-3), ("trim:20", 1e-5), ("block:16", 1e-3)] {
            let choice = Choice::new().exchange(exchange).codec(name);
            let run = |comm: Comm| against_cpu_with::<f64>(&comm, &gpu, &problem, &choice);
            let worst = ferrier::ranks(4).run(run).unwrap().into_iter().fold(0.0, f64::max);
            assert!(worst < most && worst > 1e-9, "{name} by {exchange}: {worst:.3e}");
        }
    }
    let shared = Choice::new().exchange("direct").codec("f16");
    let refused =
        ferrier::ranks(2).run(|comm| planner(&problem, &shared, &gpu).draft::<f64>(&comm).map(drop));
    assert!(matches!(refused, Err(Error::Choice(_))), "{refused:?}");
}

/// What encoding has lost is at most what the certificate says, in both directions; returns what was sent of what it
/// would have been without a codec.
pub fn certified(comm: &Comm, gpu: &crate::Gpu, problem: &Problem, choice: &Choice) -> Result<f64> {
    let plain = Choice::new().exchange("all_to_allv").codec("raw");
    let mut exact = problem.clone();
    exact.tolerance = None;
    let mut raw = planner(&exact, &plain, gpu).draft::<f64>(comm)?.build()?;
    let mut plan = planner(problem, choice, gpu).draft::<f64>(comm)?.build()?;
    let norm = |values: &[f64]| -> Result<f64> {
        Ok(comm.sum(&[values.iter().map(|x| x * x).sum::<f64>()])?[0].sqrt())
    };
    let check = |got: Vec<f64>, want: Vec<f64>, certificate: Option<ferrier::Certificate>| -> Result<()> {
        let lost: Vec<f64> = got.iter().zip(&want).map(|(a, b)| a - b).collect();
        let (error, certificate) = (norm(&lost)? / norm(&want)?, certificate.expect("after a call"));
        let told = format!("{} {}: {error:.2e} lost, {certificate:?}", plan_name(choice), problem.real);
        assert!(error > 0.0 && error <= certificate.bound(), "{told}");
        assert!(certificate.loss < 1e3 * error, "{told}");
        if let Some(tolerance) = &problem.tolerance {
            assert!(certificate.bound() <= tolerance.0, "{told}");
        }
        if comm.rank() == 0 {
            println!("{told}");
        }
        Ok(())
    };
    let mut rng = Rng::for_test(comm.rank() as u64);
    let mut next = || (rng.bits() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
    let (mut input, mut one, mut other) = (plan.make_input()?, raw.make_output()?, plan.make_output()?);
    let values: Vec<f64> = (0..input.scalars()).map(|_| next()).collect();
    input.upload(&values[..])?;
    // Twice: what a call leaves behind must not matter.
    for _ in 0..2 {
        raw.forward(&input, &mut one)?;
        plan.forward(&input, &mut other)?;
    }
    raw.synchronize()?;
    check(crate::download(&other)?, crate::download(&one)?, plan.certificate())?;
    let sent = comm.sum(&[plan.wire_bytes() as f64, raw.wire_bytes() as f64])?;
    let (mut there, mut back) = (raw.make_input()?, plan.make_input()?);
    raw.backward(&one, &mut there)?;
    plan.backward(&one, &mut back)?;
    raw.synchronize()?;
    check(crate::download(&back)?, crate::download(&there)?, plan.certificate())?;
    Ok(sent[0] / sent[1])
}

fn plan_name(choice: &Choice) -> String {
    let name = |name: &Option<String>| name.clone().unwrap_or("auto".into());
    format!("{} over {}", name(&choice.codec), name(&choice.exchange))
}

/// Certificates hold on a GPU, with a codec and with a tolerance, whole and in packets, for arrays of any size of numbers.
#[test]
fn losses_on_a_gpu_are_certified() {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(300);
    let c2c = Problem::c2c([32, 48, 40]).output(LayoutSpec::slabs(1));
    let r2c = Problem::r2c([30, 34, 50]).input(LayoutSpec::bricks()).output(LayoutSpec::pencils(0)).batch(2);
    for problem in [&c2c, &r2c] {
        let tolerant = problem.clone().tolerance(1e-6);
        let by = |exchange: &str| Choice::new().exchange(exchange);
        for (problem, choice, most) in [
            (problem, by("ring").codec("block:16"), 0.3),
            (problem, by("ring").codec("trim:20").packet(40_000).packets(2), 0.5),
            (problem, by("all_to_allv").codec("f32"), 0.51),
            (&tolerant, by("ring"), 0.45),
            (&tolerant, by("point_to_point"), 0.45),
            (&tolerant, Choice::new(), 0.45),
        ] {
            let run = |comm: Comm| certified(&comm, &gpu, problem, &choice);
            let sent = ferrier::ranks(4).run(run).unwrap()[0];
            assert!(sent < most, "{}: {sent} of the bytes", plan_name(&choice));
        }
    }
}

/// Numbers that are tiny, huge or not finite: the bound holds, or there is none.
#[test]
fn wild_numbers_are_certified() {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(120);
    let problem = Problem::c2c([16, 16, 16]).output(LayoutSpec::slabs(1));
    let choice = Choice::new().exchange("ring").codec("block:16");
    for (scale, finite) in [(1e-300, true), (1e290, true), (1.0, false)] {
        let run = |comm: Comm| {
            let mut plan = planner(&problem, &choice, &gpu).draft::<f64>(&comm)?.build()?;
            let (mut input, mut output) = (plan.make_input()?, plan.make_output()?);
            let wave = |i: usize| Complex::<f64>::cis(i as f64) * scale;
            let mut values: Vec<f64> =
                (0..input.scalars() / 2).flat_map(|i| [wave(i).re, wave(i).im]).collect();
            if !finite && comm.rank() == 0 {
                values[7] = f64::INFINITY;
            }
            input.upload(&values[..])?;
            plan.forward(&input, &mut output)?;
            Ok(plan.certificate().expect("after a call").loss)
        };
        let loss = ferrier::ranks(2).run(run).unwrap();
        assert!(loss.iter().all(|own| own.to_bits() == loss[0].to_bits()));
        assert!(
            if finite { loss[0] > 1e-8 && loss[0] < 1e-3 } else { loss[0] == f64::INFINITY },
            "{scale}: {loss:?}"
        );
    }
}
