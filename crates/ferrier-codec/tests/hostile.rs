//! Malformed bytes: decoders give values or an error, and never panic.

mod common;

use common::{Rng, data, names, round_trip};
use ferrier_codec::{Error, Isa, Scalar, codec_on};

fn attack<T: Scalar>(seed: u64) {
    let mut rng = Rng(seed);
    for isa in Isa::available() {
        for name in names::<T>() {
            let codec = codec_on::<T>(&name, isa).expect("a codec");
            for n in [0, 1, 4, 15, 16, 17, 33, 100] {
                let (_, good, _) = round_trip(&*codec, &data::<T>(rng.below(common::KINDS), n));
                let mut out = vec![T::default(); n];
                let mut scratch = vec![0; codec.scratch(n)];
                // All shorter lengths, and some longer ones.
                for length in (0..good.len()).chain([good.len() + 1, good.len() + 64]) {
                    let mut bytes = good.clone();
                    bytes.resize(length, 0);
                    let result = codec.decode(&bytes, &mut out, &mut scratch);
                    if codec.is_fixed() {
                        let right = matches!(result, Err(Error::Length { got, .. }) if got == length);
                        assert!(right, "{name}: {length} instead of {}: {result:?}", good.len());
                    }
                }
                for _ in 0..40 {
                    let mut bytes = good.clone();
                    for _ in 0..1 + rng.below(8) {
                        if !bytes.is_empty() {
                            let at = rng.below(bytes.len());
                            bytes[if rng.below(2) == 0 { at } else { at.min(3) }] = rng.bits() as u8;
                        }
                    }
                    let _ = codec.decode(&bytes, &mut out, &mut scratch);
                    bytes.iter_mut().for_each(|byte| *byte = rng.bits() as u8);
                    let _ = codec.decode(&bytes, &mut out, &mut scratch);
                }
            }
        }
    }
}

#[test]
fn wrong_bytes_f64() {
    attack::<f64>(1);
}

#[test]
fn wrong_bytes_f32() {
    attack::<f32>(2);
}

#[test]
fn errors_say_what_was_expected() {
    let codec = codec_on::<f64>("block:16", Isa::best()).expect("a codec");
    let error = codec.decode(&[0; 7], &mut [0.0; 16], &mut []).unwrap_err();
    assert_eq!(error.to_string(), "codec block: expected a chunk of 35 bytes, got 7");
    let mut bytes = [0xff; 35];
    let error = codec.decode(&bytes, &mut [0.0; 16], &mut []).unwrap_err();
    assert!(matches!(error, Error::Corrupt { name: "block", .. }), "{error}");
    bytes[..2].copy_from_slice(&1023u16.to_le_bytes());
    assert!(codec.decode(&bytes, &mut [0.0; 16], &mut []).is_ok());
}

/// A stream that ends early, or that holds more than was asked for.
#[test]
fn compressed_chunks_of_another_length() {
    let codec = codec_on::<f64>("lossless", Isa::best()).expect("a codec");
    let (_, bytes, _) = round_trip(&*codec, &[1.5; 100]);
    for n in [99, 101, 200] {
        let mut scratch = vec![0; codec.scratch(n)];
        let result = codec.decode(&bytes, &mut vec![0.0; n], &mut scratch);
        assert!(matches!(result, Err(Error::Corrupt { name: "lossless", .. })), "{n}: {result:?}");
    }
}
