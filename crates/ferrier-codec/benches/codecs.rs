//! How fast codecs encode and decode on one core, as ratios to copying.
//!
//! `cargo bench -p ferrier-codec --bench codecs [-- NAME ...]`
//!
//! 16 chunks of 4096 random values (512 KiB of f64: they stay in L2).
//! Encoding, decoding and copying alternate; medians of many rounds. GB/s
//! count values, not encoded bytes. `FERRIER_ISA=avx2` or `portable` selects
//! another instruction set than the best.

use std::time::Instant;

use ferrier_codec::{Codec, Isa, Norm, Scalar, codec_on};

const CHUNK: usize = 4096;
const CHUNKS: usize = 16;
const ROUNDS: usize = 61;

/// Sums of uniform values: nearly normally distributed, like transforms of noise.
fn values<T: Scalar>() -> Vec<T> {
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    (0..CHUNK * CHUNKS).map(|_| T::rounded((0..6).map(|_| uniform()).sum())).collect()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn isa() -> Isa {
    match std::env::var("FERRIER_ISA").as_deref() {
        #[cfg(target_arch = "x86_64")]
        Ok("avx2") => Isa::Avx2,
        Ok("portable") => Isa::Portable,
        _ => Isa::best(),
    }
}

/// Seconds of encoding, decoding and copying all chunks.
fn race<T: Scalar>(codec: &dyn Codec<T>, values: &[T]) -> [f64; 3] {
    let limit = codec.max_bytes(CHUNK);
    let mut bytes = vec![0; limit * CHUNKS];
    let mut lengths = [0; CHUNKS];
    let mut scratch = vec![0; codec.scratch(CHUNK)];
    let mut back = vec![T::default(); CHUNK];
    let mut copies = vec![T::default(); CHUNK];
    let mut times = [vec![], vec![], vec![]];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for (i, chunk) in values.chunks(CHUNK).enumerate() {
            lengths[i] = codec.encode(chunk, &mut bytes[i * limit..], &mut scratch).bytes;
        }
        times[0].push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        for (i, length) in lengths.iter().enumerate() {
            let chunk = &bytes[i * limit..][..*length];
            codec.decode(chunk, &mut back, &mut scratch).expect("what was encoded");
            std::hint::black_box(&mut back);
        }
        times[1].push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        for chunk in values.chunks(CHUNK) {
            copies.copy_from_slice(chunk);
            std::hint::black_box(&mut copies);
        }
        times[2].push(start.elapsed().as_secs_f64());
    }
    times.map(median)
}

fn report<T: Scalar>(name: &str) {
    let values = values::<T>();
    let codec = match codec_on::<T>(name, isa()) {
        Ok(codec) => codec,
        Err(error) => return println!("{:3} {name:18} {error}", T::NAME),
    };
    let mut bytes = vec![0; codec.max_bytes(CHUNK)];
    let mut scratch = vec![0; codec.scratch(CHUNK)];
    let encoded = codec.encode(&values[..CHUNK], &mut bytes, &mut scratch);
    let [encode, decode, copy] = race(&*codec, &values);
    let gigabytes = size_of_val(&values[..]) as f64 * 1e-9;
    println!(
        "{} {name:18} {:5.3} of raw, loss {:7.1e}  encode {:6.2} GB/s ({:4.2} of copy)  decode {:6.2} GB/s ({:4.2})",
        T::NAME,
        encoded.bytes as f64 / (CHUNK * T::BYTES) as f64,
        encoded.loss.relative_to(Norm::of(&values[..CHUNK])),
        gigabytes / encode,
        copy / encode,
        gigabytes / decode,
        copy / decode,
    );
}

fn main() {
    let mut names: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    if names.is_empty() {
        let all = "raw f32 f16 bf16 trim:7 trim:13 trim:20 trim:23 block:8 block:16 block:17 block:24 block:32 \
                   within:1e-4 within:1e-7 zfp:rate=16 zfp:accuracy=1e-4 lossless";
        names = all.split_whitespace().map(String::from).collect();
    }
    for name in &names {
        report::<f64>(name);
        report::<f32>(name);
    }
}
