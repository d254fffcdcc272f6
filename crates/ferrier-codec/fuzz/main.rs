//! A fuzzer for decoders of untrusted bytes.
//!
//! `scripts/fuzz-codecs [SECONDS [NAME ...]]` runs it, under AddressSanitizer
//! where it is available. Each decoder decodes mutations of the corpus and of
//! encoded chunks, for SECONDS each. A panic, a read out of bounds or a
//! difference between instruction sets stops the fuzzer, which saves the
//! input. With `KEEP=1`, inputs with a new outcome (another error, other
//! kinds of values) are added to the corpus.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use ferrier_codec::{Codec, Isa, Scalar, codec_on};

/// Every codec, with parameters at the ends of their ranges.
const NAMES: &[&str] = &[
    "raw",
    "f32",
    "f16",
    "bf16",
    "trim:1",
    "trim:13",
    "trim:23",
    "block:2",
    "block:3",
    "block:16",
    "block:24",
    "within:1e-4",
    "zfp:rate=4",
    "zfp:rate=16",
    "zfp:accuracy=1e-6",
    "lossless",
];
/// The most values of a chunk.
const MOST: usize = 300;

struct Rng(u64);

impl Rng {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.bits() >> 16) as usize % n.max(1)
    }
}

/// The number of values to decode, and the bytes to decode them from.
#[derive(Clone)]
struct Input {
    count: usize,
    bytes: Vec<u8>,
}

impl Input {
    /// All inputs of a file: for each, the number of values, the number of bytes, the bytes.
    fn read_all(path: &Path) -> Vec<Input> {
        let bytes = fs::read(path).unwrap_or_default();
        let (mut rest, mut inputs) = (&bytes[..], vec![]);
        while let Some(([a, b, c, d], after)) = rest.split_first_chunk() {
            let (count, length) = (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]));
            let (bytes, after) = after.split_at(after.len().min(length as usize));
            inputs.push(Input { count: (count as usize).min(MOST), bytes: bytes.to_vec() });
            rest = after;
        }
        inputs
    }

    fn write_all(inputs: &[Input], path: &Path) -> std::io::Result<()> {
        let mut all = vec![];
        for input in inputs {
            all.extend((input.count as u16).to_le_bytes());
            all.extend((input.bytes.len() as u16).to_le_bytes());
            all.extend(&input.bytes);
        }
        fs::write(path, all)
    }
}

/// An encoded chunk of values of a random kind.
fn encoded<T: Scalar>(codec: &dyn Codec<T>, rng: &mut Rng) -> Input {
    let count = rng.below(MOST);
    let kind = rng.below(5);
    let values: Vec<T> = (0..count)
        .map(|i| match kind {
            0 => T::rounded(rng.bits() as f64 / 1e19 - 0.5),
            1 => T::rounded(f64::from_bits(rng.bits())),
            2 => T::rounded((i as f64 * 0.1).sin()),
            3 => T::rounded([0.0, -0.0, 1.0, f64::INFINITY, f64::NAN][rng.below(5)]),
            _ => T::rounded(i as f64),
        })
        .collect();
    let mut bytes = vec![0; codec.max_bytes(count)];
    let mut scratch = vec![0; codec.scratch(count)];
    let length = codec.encode(&values, &mut bytes, &mut scratch).bytes;
    bytes.truncate(length);
    Input { count, bytes }
}

fn mutate(input: &mut Input, rng: &mut Rng) {
    for _ in 0..rng.below(6) {
        let at = rng.below(input.bytes.len());
        match rng.below(8) {
            0 => input.count = rng.below(MOST),
            1 => input.bytes.truncate(at),
            2 => input.bytes.insert(at.min(input.bytes.len()), rng.bits() as u8),
            3 => input.bytes.extend((0..rng.below(40)).map(|_| rng.bits() as u8)),
            _ if input.bytes.is_empty() => {}
            4 => input.bytes[at] ^= 1 << rng.below(8),
            5 => input.bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.below(5)],
            6 => input.bytes[at.min(4)] = rng.bits() as u8,
            _ => {
                let (from, run) = (rng.below(input.bytes.len()), rng.below(16));
                for i in 0..run.min(input.bytes.len() - from.max(at)) {
                    input.bytes[at + i] = input.bytes[from + i];
                }
            }
        }
    }
}

/// The outcome of decoding as text, and the bits of the values.
fn outcome<T: Scalar>(codec: &dyn Codec<T>, input: &Input) -> (String, Vec<u64>) {
    // Buffers of the exact sizes, so that a sanitizer detects every access beyond them.
    let bytes = input.bytes.clone().into_boxed_slice();
    let mut out = vec![T::default(); input.count].into_boxed_slice();
    let mut scratch = vec![u64::MAX; codec.scratch(input.count)].into_boxed_slice();
    match codec.decode(&bytes, &mut out, &mut scratch) {
        Err(error) => (error.to_string().replace(|c: char| c.is_ascii_digit(), ""), vec![]),
        Ok(()) => {
            let any = |test: fn(f64) -> bool| out.iter().any(|x| test(x.widened()));
            let kinds = [
                any(f64::is_nan),
                any(f64::is_infinite),
                any(|x| x == 0.0),
                any(f64::is_subnormal),
                any(f64::is_normal),
            ];
            (format!("{kinds:?}"), out.iter().map(|x| x.widened().to_bits()).collect())
        }
    }
}

/// Decodes on every instruction set; the outcome.
fn decode_everywhere<T: Scalar>(codecs: &[Box<dyn Codec<T>>], input: &Input) -> String {
    let first = outcome(&*codecs[0], input);
    for codec in &codecs[1..] {
        let other = outcome(&**codec, input);
        assert!(first == other, "instruction sets differ: {} and {}", first.0, other.0);
    }
    first.0
}

fn fuzz<T: Scalar>(name: &str, time: Duration, corpus: &Path) {
    let codecs: Vec<_> =
        Isa::available().map(|isa| codec_on::<T>(name, isa)).collect::<Result<_, _>>().expect("a codec");
    let file = format!("{}-{}", name.replace([':', '='], "-"), T::NAME);
    let mut inputs = Input::read_all(&corpus.join(&file));
    let mut seen = HashSet::new();
    for input in &inputs {
        seen.insert(decode_everywhere(&codecs, input));
    }
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().map_or(1, |t| t.as_nanos() as u64));
    let mut rng = Rng(seed | 1);
    let (start, mut runs) = (Instant::now(), 0u64);
    while start.elapsed() < time {
        let mut input = match rng.below(3) {
            0 if !inputs.is_empty() => inputs[rng.below(inputs.len())].clone(),
            _ => encoded(&*codecs[0], &mut rng),
        };
        mutate(&mut input, &mut rng);
        // Recorded first: the panic hook saves it.
        LAST.with_borrow_mut(|last| *last = Some((file.clone(), input.clone())));
        let outcome = decode_everywhere(&codecs, &input);
        if seen.insert(outcome) {
            inputs.push(input);
        }
        runs += 1;
    }
    if std::env::var_os("KEEP").is_some() {
        Input::write_all(&inputs, &corpus.join(&file)).expect("a corpus that can be written to");
    }
    println!("{name:18} {}: {runs:9} inputs, {:3} outcomes, seed {seed}", T::NAME, seen.len());
}

thread_local! {
    static LAST: std::cell::RefCell<Option<(String, Input)>> = const { std::cell::RefCell::new(None) };
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().map_or(1.0, |word| word.parse().expect("SECONDS is a number"));
    let names: Vec<String> = arguments.collect();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        hook(info);
        LAST.with_borrow(|last| {
            if let Some((file, input)) = last {
                let path = std::env::temp_dir().join(format!("{file}-failed"));
                let written = Input::write_all(std::slice::from_ref(input), &path);
                eprintln!("the input: {} ({written:?})", path.display());
            }
        });
    }));
    for name in NAMES.iter().filter(|name| names.is_empty() || names.iter().any(|wanted| wanted == *name)) {
        let time = Duration::from_secs_f64(seconds / 2.0);
        fuzz::<f64>(name, time, &corpus);
        fuzz::<f32>(name, time, &corpus);
    }
}
