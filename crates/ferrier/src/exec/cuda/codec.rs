//! Codecs on a GPU: the fixed-rate ones, bit for bit as on the CPU.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut};

use super::gpu::{Function, Gpu, Grid, argument};
use super::memory::{Block, Stream};
use super::sources::{CODEC, COMMON, DECODE, ENCODE, real_name};
use crate::codec::{CHUNK_SCALARS, CodecInstance};
use crate::{Error, Precision, Real, Result};

/// Threads of a block of `codec.cuh`.
const WORKERS: u32 = 128;
/// Padding for unaligned starts and for reads past the end.
const SLACK: usize = 48;

/// A run of scalars and the bytes of its chunks; as in `codec.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ChunkedPart {
    first: u64,
    scalars: u64,
    stage: u64,
    bytes: u64,
}

/// Chunks that are encoded or decoded in one launch, among the tables of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunks {
    pub at: usize,
    pub count: usize,
    pub chunks: usize,
}

/// The table of segments: (scalars, offset of the first, offset of the first byte).
pub(super) fn table(parts: impl Iterator<Item = (usize, usize, usize)>) -> (Vec<ChunkedPart>, usize) {
    let mut chunks = 0;
    let part = |(scalars, stage, bytes): (usize, usize, usize)| {
        let first = chunks as u64;
        chunks += scalars.div_ceil(CHUNK_SCALARS);
        ChunkedPart { first, scalars: scalars as u64, stage: stage as u64, bytes: bytes as u64 }
    };
    let parts = parts.map(part).collect();
    (parts, chunks)
}

/// How a codec writes a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Format {
    /// Whether 16 scalars share an exponent.
    block: bool,
    /// Bits of a scalar.
    width: usize,
    /// Bits of its mantissa, if it has its own exponent.
    small: usize,
}

impl Format {
    fn find(name: &str) -> Option<Format> {
        let (first, bits) = name.split_once(':').unwrap_or((name, "0"));
        let bits: usize = bits.parse().ok()?;
        let own = |width, small| Some(Format { block: false, width, small });
        match first {
            "f32" => own(32, 23),
            "f16" => own(16, 10),
            "bf16" => own(16, 7),
            "trim" => own(9 + bits, bits),
            "block" => Some(Format { block: true, width: bits, small: 0 }),
            _ => None,
        }
    }
}

/// A codec with its kernels: encodes chunks of 4096 scalars on a GPU to bytes there
/// and decodes them, in the format of [`crate::codec`].
pub struct DeviceCodec<T> {
    gpu: Gpu,
    instance: CodecInstance<T>,
    slot: usize,
    encode: (Function, Grid),
    decode: (Function, Grid),
    /// The table of the last length.
    whole: Mutex<Option<(usize, Block)>>,
}

impl<T: Real> DeviceCodec<T> {
    /// The codec called `name`, such as `block:16`, compiled for a GPU.
    ///
    /// # Errors
    /// [`Error::Choice`] where there is no such codec, or none on a GPU.
    pub fn new(gpu: &Gpu, name: &str) -> Result<Self> {
        let instance = CodecInstance::<T>::new(name)?;
        let f64 = T::PRECISION == Precision::F64;
        let format = Format::find(name).filter(|format| f64 || format.width < 32 || format.block).ok_or_else(|| {
            Error::choice("codec", format!(
                "codec `{name}` does not run on a GPU in {}: there are f32 (of f64), f16, bf16, trim:B, block:B and raw",
                T::PRECISION.name()
            ))
        })?;
        let slot = instance.codec.max_bytes(CHUNK_SCALARS);
        let bits = 8 * size_of::<T>();
        let pick = |double: &str, single: &str| if f64 { double } else { single }.to_string();
        let macros = [
            ("REAL", real_name::<T>()),
            ("WORD", pick("Word", "unsigned")),
            ("BITS", bits.to_string()),
            ("MANTISSA", pick("52", "23")),
            ("EXPONENT", pick("11", "8")),
            ("LOW", pick("512", "64")),
            ("LIFT", pick("512", "64")),
            ("BLOCK", u8::from(format.block).to_string()),
            ("WIDTH", format.width.to_string()),
            ("SMALL", format.small.to_string()),
            ("CHUNK", CHUNK_SCALARS.to_string()),
            ("SLOT", slot.to_string()),
        ];
        let kernel = |name: &str, source: &str, shared: usize| -> Result<(Function, Grid)> {
            let function = gpu.kernel(name, &[COMMON, CODEC, source], &macros, shared)?;
            Ok((function, Grid { blocks: 0, threads: WORKERS, shared: shared as u32 }))
        };
        let encode = kernel("encode_chunks", ENCODE, slot + SLACK)?;
        let decode = kernel("decode_chunks", DECODE, 0)?;
        Ok(DeviceCodec { gpu: gpu.clone(), instance, slot, encode, decode, whole: Mutex::default() })
    }

    /// Bytes of a run of scalars: the sum of its chunks.
    pub fn bytes(&self, scalars: usize) -> usize {
        scalars / CHUNK_SCALARS * self.slot + self.instance.codec.max_bytes(scalars % CHUNK_SCALARS)
    }

    /// Enqueues encoding all scalars of a slice. The first call for a length
    /// waits for the GPU.
    ///
    /// # Errors
    /// [`Error::Array`] where `bytes` has not [`bytes`](Self::bytes) bytes; errors of the driver.
    pub fn encode(
        &self,
        stream: &Arc<CudaStream>,
        values: &CudaSlice<T>,
        bytes: &mut CudaSlice<u8>,
    ) -> Result<()> {
        self.fits(values.len(), bytes.len())?;
        let table = self.whole(values.len())?;
        let (from, _read) = values.device_ptr(stream);
        let (to, _written) = bytes.device_ptr_mut(stream);
        let chunks = values.len().div_ceil(CHUNK_SCALARS);
        let stream = Stream::of_user(&self.gpu, stream);
        // SAFETY: lengths were checked; a table goes only when the GPU is done. There are no records.
        unsafe { launch_encode(self.encode, (table, 1, chunks), [from, to], (0, 0), &stream) }
    }

    /// Enqueues decoding to all scalars of a slice.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn decode(
        &self,
        stream: &Arc<CudaStream>,
        bytes: &CudaSlice<u8>,
        values: &mut CudaSlice<T>,
    ) -> Result<()> {
        self.fits(values.len(), bytes.len())?;
        let table = self.whole(values.len())?;
        let chunks = values.len().div_ceil(CHUNK_SCALARS);
        let (from, _read) = bytes.device_ptr(stream);
        let (to, _written) = values.device_ptr_mut(stream);
        let stream = Stream::of_user(&self.gpu, stream);
        // SAFETY: as above.
        unsafe { launch_decode(self.decode, (table, 1, 0..chunks), [to, from], &stream) }
    }

    fn fits(&self, scalars: usize, bytes: usize) -> Result<()> {
        match self.bytes(scalars) == bytes {
            true => Ok(()),
            false => Err(Error::array(
                "array of encoded bytes",
                None,
                format!(
                    "{} bytes, for {scalars} scalars in codec {}",
                    self.bytes(scalars),
                    self.instance.codec.name()
                ),
                bytes.to_string(),
            )),
        }
    }

    /// The address of the table of one segment of this length.
    fn whole(&self, scalars: usize) -> Result<u64> {
        let mut known = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, block)) = known.as_ref().filter(|(of, _)| *of == scalars) {
            return Ok(block.start());
        }
        let (parts, _) = table(std::iter::once((scalars, 0, 0)));
        let block = Block::new(&self.gpu, size_of_val(&parts[..]), "the table of a codec")?;
        block.upload(0, &parts)?;
        let start = block.start();
        *known = Some((scalars, block));
        Ok(start)
    }

    /// Enqueues encoding the segments of an exchange. `bytes`: the workspace, or the main memory that stands for it;
    /// `run`: the number that marks chunks which the host may read, 0 where it waits for the stream.
    ///
    /// # Safety
    /// The table at `tables` is that of `coding`, its offsets lie in the workspace and at `bytes`, which others do not
    /// access there until the launch is complete, or the records tell. `records` has one for each chunk.
    pub(super) unsafe fn encode_segments(
        &self,
        chunks: &Chunks,
        (tables, work, bytes): (u64, u64, u64),
        (records, run): (u64, u64),
        stream: &Stream,
    ) -> Result<()> {
        let table = (tables + chunks.at as u64, chunks.count, chunks.chunks);
        // SAFETY: this function's contract.
        unsafe { launch_encode(self.encode, table, [work, bytes], (records, run), stream) }
    }

    /// The kernel that decodes.
    pub(super) fn decoder(&self) -> Decoder {
        Decoder(self.decode)
    }
}

/// The kernel that decodes chunks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decoder((Function, Grid));

impl Decoder {
    /// Enqueues decoding some of the chunks of an exchange.
    ///
    /// # Safety
    /// The table at `tables` is that of `chunks`, its offsets lie in the workspace, which others do not access there
    /// until the launch is complete.
    pub unsafe fn run(
        self,
        chunks: &Chunks,
        some: Range<usize>,
        tables: u64,
        work: u64,
        stream: &Stream,
    ) -> Result<()> {
        let table = (tables + chunks.at as u64, chunks.count, some);
        // SAFETY: this function's contract.
        unsafe { launch_decode(self.0, table, [work, work], stream) }
    }
}

/// # Safety
/// As [`DeviceCodec::encode_segments`]; offsets are relative to `values` and `bytes`.
unsafe fn launch_encode(
    (function, grid): (Function, Grid),
    (mut table, count, chunks): (u64, usize, usize),
    [mut values, mut bytes]: [u64; 2],
    (mut records, mut run): (u64, u64),
    stream: &Stream,
) -> Result<()> {
    let mut count = count as i32;
    let mut arguments: [*mut c_void; 6] = [
        argument(&mut table),
        argument(&mut count),
        argument(&mut values),
        argument(&mut bytes),
        argument(&mut records),
        argument(&mut run),
    ];
    // SAFETY: the arguments are those of `encode.cu`; this function's contract for the memory.
    unsafe { function.launch(Grid { blocks: chunks as u32, ..grid }, stream.raw(), &mut arguments, false) }
}

/// # Safety
/// As [`Decoder::run`]; offsets are relative to `values` and `bytes`.
unsafe fn launch_decode(
    (function, grid): (Function, Grid),
    (mut table, count, chunks): (u64, usize, Range<usize>),
    [mut values, mut bytes]: [u64; 2],
    stream: &Stream,
) -> Result<()> {
    let (mut count, mut first) = (count as i32, chunks.start as u64);
    let mut arguments: [*mut c_void; 5] = [
        argument(&mut table),
        argument(&mut count),
        argument(&mut values),
        argument(&mut bytes),
        argument(&mut first),
    ];
    let grid = Grid { blocks: chunks.len() as u32, ..grid };
    // SAFETY: the arguments are those of `decode.cu`; this function's contract for the memory.
    unsafe { function.launch(grid, stream.raw(), &mut arguments, false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_rate_codecs_have_a_format() {
        let width = |name| Format::find(name).map(|format| format.width);
        assert_eq!(["f32", "f16", "bf16", "trim:12", "block:16"].map(width), [32, 16, 16, 21, 16].map(Some));
        assert_eq!(["raw", "zfp:rate=8", "within:1e-4", "lossless"].map(width), [None; 4]);
    }

    #[test]
    fn chunks_are_counted_over_parts() {
        let (parts, chunks) = table([(5000, 0, 0), (4096, 9, 7), (1, 3, 2)].into_iter());
        assert_eq!((parts.iter().map(|part| part.first).collect::<Vec<_>>(), chunks), (vec![0, 2, 3], 4));
    }
}
