//! Speed of codecs on one core.
//!
//! As plans use them: a pass has a block of lines in cache and stores it to a message, which
//! the next pass loads. So chunks in cache are encoded into a buffer as large as the array and
//! decoded from it. Plain copies in turn give the ratios.

use std::hint::black_box;
use std::time::Instant;

use ferrier::codec::RAW;
use ferrier_codec::{Codec, Norm, Scalar, codec};
use serde::Serialize;

use crate::failure::{Failure, Outcome, fail};
use crate::noise::mix;
use crate::table::{columns, digits};
use crate::timing::median;

/// One or more of each family of codecs, casts first.
const NAMES: &str = "raw,f32,f16,bf16,trim:7,trim:13,trim:23,block:8,block:16,block:24,block:32,\
    within:1e-4,within:1e-7,zfp:rate=16,zfp:accuracy=1e-6,lossless";
/// Scalars of a chunk, and chunks that are in cache together: half a MiB of doubles.
const CHUNK: usize = 4096;
const CACHED: usize = 16;
/// Repetitions of each codec: as many as fit the time, within these limits.
const REPEAT: [usize; 2] = [3, 31];
const SECONDS: f64 = 0.2;
/// Longest time of a repetition: slow codecs process one part of the buffer, each time the next part.
const LONGEST: f64 = 0.03;

/// The times of a codec; the keys are part of the contract. GB/s count scalars, not encoded bytes.
#[derive(Debug, Serialize)]
pub struct CodecTimes {
    codec: String,
    precision: &'static str,
    /// Encoded bits for each scalar.
    bits: f64,
    /// Norm of the loss over that of the data, which are normally distributed.
    loss: f64,
    encode_gb_s: f64,
    decode_gb_s: f64,
    /// Speed over that of copying chunks into the buffer and out of it.
    encode_ratio: f64,
    decode_ratio: f64,
}

/// The report of the benchmark; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct CodecReport {
    cpu: String,
    simd: Vec<&'static str>,
    /// Scalars of the buffer.
    numbers: usize,
    codecs: Vec<CodecTimes>,
}

/// Bytes per second that codec `name` encodes and decodes on one core, of f64 before encoding.
///
/// # Errors
/// An unknown codec; too little memory.
pub fn speeds(name: &str, scalars: usize) -> Outcome<[f64; 2]> {
    let times = measure::<f64>(name, scalars.next_multiple_of(CHUNK), &mut Vec::new())?;
    Ok([times.encode_gb_s, times.decode_gb_s].map(|speed| 1e9 * speed))
}

/// Times codecs on one core: that of `name`, or else some of each family, in a buffer for at
/// least `scalars` scalars.
///
/// # Errors
/// An unknown codec; too little memory.
pub fn run(name: Option<&str>, scalars: usize) -> Outcome<CodecReport> {
    let scalars = scalars.next_multiple_of(CHUNK);
    let (mut codecs, mut buffer) = (Vec::new(), Vec::new());
    for name in name.map_or_else(|| NAMES.split(',').collect(), |name| vec![name]) {
        codecs.push(measure::<f64>(name, scalars, &mut buffer)?);
        // Some parameters are more bits than an f32 has.
        if codec::<f32>(name).is_ok() {
            codecs.push(measure::<f32>(name, scalars, &mut buffer)?);
        }
    }
    codecs.sort_by_key(|times: &CodecTimes| times.precision != "f64");
    let machine = ferrier::machine::info();
    Ok(CodecReport { cpu: machine.cpu, simd: machine.simd, numbers: scalars, codecs })
}

/// Sums of uniform values: nearly normally distributed, as spectra of noise are.
fn values<T: Scalar>() -> Vec<T> {
    let mut counter = 0;
    let mut uniform = || {
        counter += 1;
        (mix(counter) >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    (0..CHUNK * CACHED).map(|_| T::rounded((0..6).map(|_| uniform()).sum())).collect()
}

/// A codec beside `raw`, with data and buffers.
struct CodecTimer<'a, T: Scalar> {
    codec: &'a dyn Codec<T>,
    /// `raw`, which copies.
    plain: Box<dyn Codec<T>>,
    values: Vec<T>,
    back: Vec<T>,
    /// Space for all chunks, encoded or not.
    buffer: &'a mut [u8],
    /// Bytes of the space for a chunk.
    space: usize,
    /// Encoded bytes of the chunks of the last repetition.
    lengths: Vec<usize>,
    scratch: Vec<u64>,
}

impl<'a, T: Scalar> CodecTimer<'a, T> {
    fn new(codec: &'a dyn Codec<T>, scalars: usize, buffer: &'a mut Vec<u8>) -> Outcome<Self> {
        let space = codec.max_bytes(CHUNK).max(CHUNK * T::BYTES);
        let bytes = scalars / CHUNK * space;
        if buffer.try_reserve_exact(bytes.saturating_sub(buffer.len())).is_err() {
            return fail(format!("no memory for a buffer of {bytes} bytes"));
        }
        if buffer.len() < bytes {
            // Touches all pages.
            buffer.resize(bytes, 1);
        }
        Ok(CodecTimer {
            codec,
            plain: ferrier_codec::codec::<T>(RAW).map_err(Failure::new)?,
            values: values(),
            back: vec![T::default(); CHUNK],
            buffer: &mut buffer[..bytes],
            space,
            lengths: Vec::new(),
            scratch: vec![0; codec.scratch(CHUNK)],
        })
    }

    fn chunk(values: &[T], number: usize) -> &[T] {
        &values[number % CACHED * CHUNK..][..CHUNK]
    }

    /// Seconds of copying in, copying out, encoding and decoding `chunks` chunks from chunk
    /// `first` of the buffer on.
    fn repetition(&mut self, first: usize, chunks: usize) -> Outcome<[f64; 4]> {
        let most = self.codec.max_bytes(CHUNK);
        let part = &mut self.buffer[first * self.space..][..chunks * self.space];
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

fn measure<T: Scalar>(name: &str, scalars: usize, buffer: &mut Vec<u8>) -> Outcome<CodecTimes> {
    let codec = codec::<T>(name).map_err(Failure::new)?;
    let mut timer = CodecTimer::new(&*codec, scalars, buffer)?;
    let all = scalars / CHUNK;
    let few = CACHED.min(all);
    let each = timer.repetition(0, few)?.iter().sum::<f64>() / few as f64;
    // The largest equal parts of the buffer that fit a repetition.
    let parts = all.div_ceil(((LONGEST / each) as usize).clamp(few, all));
    let chunks = all / parts;
    let repeat = ((SECONDS / (each * chunks as f64)) as usize).clamp(REPEAT[0], REPEAT[1]);
    let once = |number: usize| timer.repetition(number % parts * chunks, chunks);
    let times = (0..repeat).map(once).collect::<Outcome<Vec<_>>>()?;
    let typical = |of: fn(&[f64; 4]) -> f64| median(&times.iter().map(of).collect::<Vec<_>>());
    let gigabytes = (chunks * CHUNK * T::BYTES) as f64 * 1e-9;
    let bytes: usize = timer.lengths.iter().sum();
    let own = CodecTimer::chunk(&timer.values, 0);
    let encoded = codec.encode(own, timer.buffer, &mut timer.scratch);
    Ok(CodecTimes {
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

impl CodecReport {
    /// A table for each precision.
    pub fn text(&self) -> String {
        let mut out = format!(
            "one core of {}, chunks of {CHUNK} scalars into and out of a buffer of {}\n",
            self.cpu, self.numbers
        );
        for precision in ["f64", "f32"] {
            let row = |times: &CodecTimes| {
                let mut row = vec![times.codec.clone()];
                row.extend([format!("{:.1}", times.bits), format!("{:.1e}", times.loss)]);
                row.extend(
                    [times.encode_gb_s, times.encode_ratio, times.decode_gb_s, times.decode_ratio]
                        .map(digits),
                );
                row
            };
            let own = self.codecs.iter().filter(|times| times.precision == precision);
            let heads = [precision, "bits", "loss", "encode GB/s", "of copy", "decode GB/s", "of copy"];
            out += &format!("\n{}", columns(&heads, own.map(row)));
        }
        out
    }
}
