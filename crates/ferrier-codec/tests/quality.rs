//! Errors of codecs at equal bytes.

use crate::common::{Rng, round_trip};
use ferrier_codec::{Norm, Scalar, cheapest_fixed_rate, codec};

const CHUNK: usize = 4096;

/// Bytes per value and the relative error of all chunks.
fn rate_and_error<T: Scalar>(name: &str, values: &[T]) -> (f64, f64) {
    let codec = codec::<T>(name).unwrap_or_else(|error| panic!("{error}"));
    let (mut bytes, mut loss) = (0, ferrier_codec::Loss::NONE);
    for chunk in values.chunks(CHUNK) {
        let (encoded, ..) = round_trip(&*codec, chunk);
        bytes += encoded.bytes;
        loss += encoded.loss;
    }
    (bytes as f64 / values.len() as f64, loss.relative_to(Norm::of(values)))
}

fn normal(n: usize) -> Vec<f64> {
    let mut rng = Rng(7);
    (0..n).map(|_| rng.normal()).collect()
}

fn uniform(n: usize) -> Vec<f64> {
    let mut rng = Rng(8);
    (0..n).map(|_| rng.uniform()).collect()
}

#[test]
fn block_has_a_quarter_of_the_error_of_half_precision() {
    for values in [normal(1 << 16), uniform(1 << 16)] {
        let (half_bytes, half) = rate_and_error("f16", &values);
        let (bytes, error) = rate_and_error("block:16", &values);
        assert!(error <= half / 4.0, "block:16 {error:e}, f16 {half:e}");
        assert!(bytes <= 1.05 * half_bytes);
        // In single precision as well.
        let values: Vec<f32> = values.iter().map(|x| *x as f32).collect();
        let ((_, half), (_, error)) = (rate_and_error("f16", &values), rate_and_error("block:16", &values));
        assert!(error <= half / 4.0, "f32: block:16 {error:e}, f16 {half:e}");
    }
}

#[test]
fn short_formats_have_their_precision() {
    let values = normal(1 << 14);
    for (name, mantissa) in [("f32", 23), ("f16", 10), ("bf16", 7), ("trim:15", 15)] {
        let (_, error) = rate_and_error(name, &values);
        let half_step = 0.5f64.powi(mantissa + 1);
        assert!(error < half_step && error > half_step / 4.0, "{name}: {error:e}");
    }
}

#[test]
fn smooth_data_beat_truncation() {
    let real: Vec<f64> =
        (0..1 << 14).map(|i| (i as f64 * 1e-2).sin() + 0.3 * (i as f64 * 3e-3).cos()).collect();
    // Complex values: two smooth functions, interleaved.
    let complex: Vec<f64> = (0..1 << 14)
        .map(|i| ((i / 2) as f64 * 1e-2 + (i % 2) as f64 * 1.5).sin() * [1.0, -3.0][i % 2])
        .collect();
    for values in [real, complex] {
        let (trim_bytes, trim) = rate_and_error("trim:11", &values);
        let (zfp_bytes, zfp) = rate_and_error("zfp:rate=20", &values);
        let (block_bytes, block) = rate_and_error("block:19", &values);
        assert!(zfp_bytes <= 1.01 * trim_bytes && block_bytes <= 1.01 * trim_bytes);
        assert!(zfp < trim / 100.0 && block < trim / 30.0, "zfp {zfp:e}, block {block:e}, trim {trim:e}");
        assert!(zfp < block, "zfp {zfp:e}, block {block:e}");
    }
}

#[test]
fn smooth_data_need_fewer_bytes_where_lengths_vary() {
    let smooth: Vec<f64> = (0..1 << 14).map(|i| (i as f64 * 1e-3).sin()).collect();
    let (bytes, error) = rate_and_error("zfp:accuracy=1e-6", &smooth);
    assert!(bytes < 2.5 && error < 2e-6, "{bytes} {error:e}");
    let coarse: Vec<f64> = smooth.iter().map(|x| (x * 1024.0).round()).collect();
    let (bytes, _) = rate_and_error("lossless", &coarse);
    assert!(bytes < 3.0, "{bytes}");
    let (bytes, _) = rate_and_error("lossless", &normal(1 << 14));
    assert!(bytes <= 8.01, "{bytes}");
}

#[test]
fn tolerances_are_kept_with_few_bytes() {
    for values in [normal(1 << 16), uniform(1 << 16)] {
        for (tolerance, most) in
            [(1e-2, 0.18), (1e-4, 0.3), (1e-4 / 3.0, 0.3), (1e-7, 0.45), (1e-7 / 3.0, 0.47), (1e-12, 0.74)]
        {
            let (bytes, error) = rate_and_error(&format!("within:{tolerance:e}"), &values);
            assert!(error <= tolerance && bytes <= 8.0 * most, "{tolerance:e}: {error:e} with {bytes} bytes");
            let cheapest = cheapest_fixed_rate::<f64>(tolerance, CHUNK);
            let (fixed_bytes, error) = rate_and_error(&cheapest.name, &values);
            assert!(error <= cheapest.bound && cheapest.bound <= tolerance, "{cheapest:?}: {error:e}");
            assert!(
                bytes <= fixed_bytes && fixed_bytes == cheapest.bytes as f64 / CHUNK as f64,
                "{cheapest:?}"
            );
        }
    }
    assert!(cheapest_fixed_rate::<f64>(1e-4, CHUNK).bytes * 10 <= CHUNK * 8 * 3);
    assert!(cheapest_fixed_rate::<f64>(1e-7, CHUNK).bytes * 100 <= CHUNK * 8 * 55);
    assert_eq!(cheapest_fixed_rate::<f64>(0.0, 10).name, "raw");
    assert_eq!(cheapest_fixed_rate::<f32>(1e-9, 10).name, "raw");
}

/// The worst chunks: one value at the bottom of its power of two, all others
/// half a unit off the grid.
#[test]
fn bounds_are_reached() {
    for bits in [8, 16, 24] {
        let unit = 2f64.powi(2 - bits);
        let mut values = [1.0; 16];
        values[1..].fill(unit / 2.0 * 1.0001);
        let (_, error) = rate_and_error(&format!("block:{bits}"), &values);
        let bound = codec::<f64>(&format!("block:{bits}")).expect("a codec").bound(16).expect("a bound");
        assert!(error <= bound && error > 0.95 * bound, "block:{bits}: {error:e}, bound {bound:e}");
        let (_, error) = rate_and_error(&format!("trim:{bits}"), &[1.0 + 0.5f64.powi(bits + 1) * 0.9999]);
        let bound = codec::<f64>(&format!("trim:{bits}")).expect("a codec").bound(1).expect("a bound");
        assert!(error <= bound && error > 0.95 * bound, "trim:{bits}: {error:e}, bound {bound:e}");
    }
}
