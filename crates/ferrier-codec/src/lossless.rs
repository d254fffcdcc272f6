//! `lossless`: bytes shuffled, then LZ4; raw where that would grow.
//!
//! The first bytes of all values come first, then the second bytes, and so on:
//! this groups signs and exponents, which repeat in smooth data.
//!
//! On the wire: the format of the rest (one byte), the rest.

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

use crate::codec::{Codec, CodecResult, Encoded};
use crate::error::Error;
use crate::float::{Float, Word};
use crate::isa::{Isa, Job, Runner};
use crate::loss::Loss;
use crate::parse;
use crate::raw::{from_bytes, to_bytes};

const RAW: u8 = 0;
const SHUFFLED: u8 = 1;

#[derive(Debug)]
struct Lossless(Runner);

pub(crate) fn make<T: Float>(parameter: &str, isa: Isa) -> CodecResult<T> {
    parse::none("lossless", parameter)?;
    Ok(Box::new(Lossless(isa.runner())))
}

impl<T: Float> Codec<T> for Lossless {
    fn name(&self) -> String {
        "lossless".into()
    }

    fn max_bytes(&self, count: usize) -> usize {
        if count == 0 { 0 } else { 1 + count * T::BYTES }
    }

    fn is_fixed(&self) -> bool {
        false
    }

    fn bound(&self, _: usize) -> Option<f64> {
        Some(0.0)
    }

    fn scratch(&self, count: usize) -> usize {
        let bytes = count * T::BYTES;
        bytes.div_ceil(8) + get_maximum_output_size(bytes).div_ceil(8)
    }

    fn encode(&self, values: &[T], out: &mut [u8], scratch: &mut [u64]) -> Encoded {
        if values.is_empty() {
            return Encoded { bytes: 0, loss: Loss::NONE };
        }
        let size = size_of_val(values);
        let (shuffled, packed) = scratch.split_at_mut(size.div_ceil(8));
        let shuffled = &mut bytemuck::cast_slice_mut(shuffled)[..size];
        self.0.run(Shuffle { values, bytes: shuffled });
        let packed: &mut [u8] = bytemuck::cast_slice_mut(packed);
        let bytes = match compress_into(shuffled, packed) {
            Ok(bytes) if bytes < size => {
                out[0] = SHUFFLED;
                out[1..1 + bytes].copy_from_slice(&packed[..bytes]);
                bytes
            }
            _ => {
                out[0] = RAW;
                to_bytes(values, &mut out[1..])
            }
        };
        Encoded { bytes: 1 + bytes, loss: Loss::NONE }
    }

    fn decode(&self, bytes: &[u8], out: &mut [T], scratch: &mut [u64]) -> Result<(), Error> {
        let (codec, size) = ("lossless", size_of_val(out));
        let Some((kind, rest)) = bytes.split_first().filter(|_| size > 0) else {
            return Error::check_length(codec, if size == 0 { 0 } else { 1 + size }, bytes.len());
        };
        match *kind {
            RAW => {
                Error::check_length(codec, 1 + size, bytes.len())?;
                from_bytes(rest, out);
                Ok(())
            }
            SHUFFLED => {
                let shuffled = &mut bytemuck::cast_slice_mut(scratch)[..size];
                match decompress_into(rest, shuffled) {
                    Ok(got) if got == size => self.0.run(Unshuffle { bytes: shuffled, out }),
                    _ => {
                        return Err(Error::Corrupt {
                            name: codec,
                            what: "something that LZ4 cannot have written",
                        });
                    }
                }
                Ok(())
            }
            _ => Err(Error::Corrupt { name: codec, what: "that they are neither raw nor compressed" }),
        }
    }
}

struct Shuffle<'a, T> {
    values: &'a [T],
    bytes: &'a mut [u8],
}

impl<T: Float> Job for Shuffle<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        for (b, plane) in self.bytes.chunks_exact_mut(self.values.len()).enumerate() {
            for (to, x) in plane.iter_mut().zip(self.values) {
                *to = (x.word() >> (8 * b as u32)).to_u64() as u8;
            }
        }
    }
}

struct Unshuffle<'a, T> {
    bytes: &'a [u8],
    out: &'a mut [T],
}

impl<T: Float> Job for Unshuffle<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        // One pass builds whole words: a pass per byte would read and write the values eight times.
        for (i, x) in self.out.iter_mut().enumerate() {
            let word = (0..T::BYTES).fold(0, |word, b| word | (self.bytes[b * n + i] as u64) << (8 * b));
            *x = T::of_word(T::Word::from_u64(word));
        }
    }
}
