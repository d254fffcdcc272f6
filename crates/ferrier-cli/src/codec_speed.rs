//! `ferrier bench --codec-speed`: how fast codecs encode and decode on one core.
//!
//! As plans use them: a pass has a block of lines in cache and stores it into
//! a message, the next one loads it from there. So chunks that are in cache
//! are encoded into a buffer as large as the array, and decoded from it; the
//! same with plain copies, in turn, is what the ratios are to.

use std::hint::black_box;
use std::time::Instant;

use ferrier::codec::RAW;
use ferrier_codec::{Codec, Norm, Scalar, codec};
use serde::Serialize;

use crate::args::BenchArgs;
use crate::failure::{Failure, Outcome, fail};
use crate::report::{self, digits};
use crate::session::Session;
use crate::timing::median;

/// One of each member, casts first.
const NAMES: &[&str] = &[
    "raw",
    "f32",
    "f16",
    "bf16",
    "trim:7",
    "trim:13",
    "trim:23",
    "block:8",
    "block:16",
    "block:24",
    "block:32",
    "within:1e-4",
    "within:1e-7",
    "zfp:rate=16",
    "zfp:accuracy=1e-6",
    "lossless",
];
/// Numbers of a chunk, and chunks that are in cache together: half a MiB of doubles.
const CHUNK: usize = 4096;
const CACHED: usize = 16;
/// Turns of each codec: as many as fit the time, within these.
const TURNS: [usize; 2] = [3, 31];
const SECONDS: f64 = 0.2;
/// A turn takes this long at most: slow codecs go through a part of the buffer only, each time the next one.
const TURN: f64 = 0.03;

/// One codec; the keys are part of the contract. GB/s are of numbers, not of what is sent.
#[derive(Debug, Serialize)]
struct Speed {
    codec: String,
    precision: &'static str,
    /// On the wire, for each number.
    bits: f64,
    /// Norm of what is lost over that of the data, which are normally distributed.
    loss: f64,
    encode_gb_s: f64,
    decode_gb_s: f64,
    /// Over copying chunks into the buffer, and out of it.
    encode_ratio: f64,
    decode_ratio: f64,
}

/// All that is known; the keys are part of the contract.
#[derive(Debug, Serialize)]
struct Report {
    cpu: String,
    simd: Vec<&'static str>,
    /// Numbers of the buffer.
    numbers: usize,
    codecs: Vec<Speed>,
}

/// Runs the command.
///
/// # Errors
/// Bad input.
pub fn run(args: &BenchArgs, session: &Session) -> Outcome {
    session.agree(crate::setup::cpu_only(&args.problem.common, "--codec-speed"))?;
    session.first(|| {
        report::check_json(args.json.as_deref())?;
        let names: Vec<&str> = match &args.problem.common.codec {
            Some(name) => vec![name],
            None => NAMES.to_vec(),
        };
        let elements = args.problem.shape.shape().iter().product::<usize>().checked_mul(2);
        let Some(numbers) = elements.filter(|&numbers| numbers < usize::MAX / 64) else {
            return fail(format!("shape {} is too large to measure codecs with", args.problem.shape));
        };
        let numbers = numbers.next_multiple_of(CHUNK);
        let (mut codecs, mut wire) = (Vec::new(), Vec::new());
        for name in names {
            codecs.push(measure::<f64>(name, numbers, &mut wire)?);
            // Some parameters are more than f32 has bits.
            if codec::<f32>(name).is_ok() {
                codecs.push(measure::<f32>(name, numbers, &mut wire)?);
            }
        }
        codecs.sort_by_key(|speed: &Speed| speed.precision != "f64");
        let machine = ferrier::machine::info();
        let report = Report { cpu: machine.cpu, simd: machine.simd, numbers, codecs };
        match args.json.as_deref() {
            Some(path) if path.as_os_str() == "-" => report::json(path, &report),
            path => {
                path.map_or(Ok(()), |path| report::json(path, &report))?;
                report::say(&text(&report))
            }
        }
    })
}

/// Sums of uniform numbers: nearly normally distributed, as transforms of noise are.
fn values<T: Scalar>() -> Vec<T> {
    let mut counter = 0;
    let mut uniform = || {
        counter += 1;
        (crate::noise::mix(counter) >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    (0..CHUNK * CACHED).map(|_| T::rounded((0..6).map(|_| uniform()).sum())).collect()
}

/// What takes part in a race.
struct Race<'a, T: Scalar> {
    codec: &'a dyn Codec<T>,
    /// `raw`, which copies.
    plain: Box<dyn Codec<T>>,
    values: Vec<T>,
    back: Vec<T>,
    /// Room for all chunks, encoded or not.
    wire: &'a mut [u8],
    room: usize,
    /// Of the chunks of the last turn.
    lengths: Vec<usize>,
    scratch: Vec<u64>,
}

impl<'a, T: Scalar> Race<'a, T> {
    fn new(member: &'a dyn Codec<T>, numbers: usize, wire: &'a mut Vec<u8>) -> Outcome<Self> {
        let room = member.max_bytes(CHUNK).max(CHUNK * T::BYTES);
        let bytes = numbers / CHUNK * room;
        if wire.try_reserve_exact(bytes.saturating_sub(wire.len())).is_err() {
            return fail(format!("no memory for a buffer of {bytes} bytes"));
        }
        if wire.len() < bytes {
            // Touches all pages.
            wire.resize(bytes, 1);
        }
        Ok(Race {
            codec: member,
            plain: codec::<T>(RAW).map_err(Failure::new)?,
            values: values(),
            back: vec![T::default(); CHUNK],
            wire: &mut wire[..bytes],
            room,
            lengths: Vec::new(),
            scratch: vec![0; member.scratch(CHUNK)],
        })
    }

    fn chunk(values: &[T], number: usize) -> &[T] {
        &values[number % CACHED * CHUNK..][..CHUNK]
    }

    /// Seconds of copying in, encoding, copying out, decoding so many chunks,
    /// one after the other in the buffer, which is written before it is read.
    fn turn(&mut self, first: usize, chunks: usize) -> Outcome<[f64; 4]> {
        let most = self.codec.max_bytes(CHUNK);
        let part = &mut self.wire[first * self.room..][..chunks * self.room];
        let mut done = Ok(());
        let copy_in = seconds(|| {
            for (number, to) in part.chunks_exact_mut(CHUNK * T::BYTES).take(chunks).enumerate() {
                self.plain.encode(Self::chunk(&self.values, number), to, &mut []);
            }
        });
        let copy_out = seconds(|| {
            for from in part.chunks_exact(CHUNK * T::BYTES).take(chunks) {
                done = done.clone().and(self.plain.decode(from, &mut self.back, &mut []));
                black_box(&mut self.back);
            }
        });
        self.lengths.resize(chunks, 0);
        let encode = seconds(|| {
            for (number, length) in self.lengths.iter_mut().enumerate() {
                let to = &mut part[number * most..][..most];
                *length = self.codec.encode(Self::chunk(&self.values, number), to, &mut self.scratch).bytes;
            }
        });
        let decode = seconds(|| {
            for (number, length) in self.lengths.iter().enumerate() {
                let from = &part[number * most..][..*length];
                done = done.clone().and(self.codec.decode(from, &mut self.back, &mut self.scratch));
                black_box(&mut self.back);
            }
        });
        done.map(|()| [copy_in, copy_out, encode, decode]).map_err(Failure::wrong)
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn measure<T: Scalar>(name: &str, numbers: usize, wire: &mut Vec<u8>) -> Outcome<Speed> {
    let codec = codec::<T>(name).map_err(Failure::new)?;
    let mut race = Race::new(&*codec, numbers, wire)?;
    let all = numbers / CHUNK;
    let few = CACHED.min(all);
    let each = race.turn(0, few)?.iter().sum::<f64>() / few as f64;
    // All that fit a turn, as even parts of the buffer.
    let parts = all.div_ceil(((TURN / each) as usize).clamp(few, all));
    let chunks = all / parts;
    let turns = ((SECONDS / (each * chunks as f64)) as usize).clamp(TURNS[0], TURNS[1]);
    let of_turn = |turn: usize| race.turn(turn % parts * chunks, chunks);
    let times = (0..turns).map(of_turn).collect::<Outcome<Vec<_>>>()?;
    let typical = |of: fn(&[f64; 4]) -> f64| median(&times.iter().map(of).collect::<Vec<_>>());
    let gigabytes = (chunks * CHUNK * T::BYTES) as f64 * 1e-9;
    let bytes: usize = race.lengths.iter().sum();
    let own = Race::chunk(&race.values, 0);
    let encoded = codec.encode(own, race.wire, &mut race.scratch);
    Ok(Speed {
        codec: codec.name(),
        precision: T::NAME,
        bits: bytes as f64 * 8.0 / (chunks * CHUNK) as f64,
        loss: encoded.loss.relative_to(Norm::of(own)),
        encode_gb_s: gigabytes / typical(|t| t[2]),
        decode_gb_s: gigabytes / typical(|t| t[3]),
        encode_ratio: typical(|t| t[0] / t[2]),
        decode_ratio: typical(|t| t[1] / t[3]),
    })
}

fn text(report: &Report) -> String {
    let mut out = format!(
        "one core of {}, chunks of {CHUNK} numbers into and out of a buffer of {}\n",
        report.cpu, report.numbers
    );
    for precision in ["f64", "f32"] {
        let row = |speed: &Speed| {
            let mut row = vec![speed.codec.clone()];
            row.extend([format!("{:.1}", speed.bits), format!("{:.1e}", speed.loss)]);
            row.extend(
                [speed.encode_gb_s, speed.encode_ratio, speed.decode_gb_s, speed.decode_ratio].map(digits),
            );
            row
        };
        let own = report.codecs.iter().filter(|speed| speed.precision == precision);
        let rows: Vec<_> = own.map(row).collect();
        let heads = [precision, "bits", "loss", "encode GB/s", "of copy", "decode GB/s", "of copy"];
        out += &format!("\n{}", report::columns(&heads, &rows));
    }
    out
}
