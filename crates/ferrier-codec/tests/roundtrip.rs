//! Every codec, every kind of data, many lengths: the decoded values, and the reported loss against the exact one.

use crate::common::exact::Big;
use crate::common::{KINDS, data, names, on_every_isa};
use ferrier_codec::{Codec, Encoded, Loss, Norm, Scalar};

/// The guarantees of every codec. zfp may turn zeros into small values.
fn check_kept<T: Scalar>(name: &str, values: &[T], back: &[T]) {
    for (i, (a, b)) in values.iter().zip(back).enumerate() {
        let (a, b) = (a.widened(), b.widened());
        let describe = || format!("{name}: value {i} of {}: {a:e} decoded as {b:e}", values.len());
        assert_eq!(a.is_finite(), b.is_finite(), "{}", describe());
        if a.is_nan() || (a.is_infinite() && name == "block:2") {
            assert!(b.is_nan(), "{}", describe());
        } else if a.is_infinite() || (a == 0.0 && (b == 0.0 || !name.starts_with("zfp"))) {
            assert_eq!(a.to_bits(), b.to_bits(), "{}", describe());
        }
    }
}

/// The reported loss against one that is computed exactly.
fn check_loss<T: Scalar>(codec: &dyn Codec<T>, encoded: &Encoded, values: &[T], back: &[T]) {
    let name = codec.name();
    let lossless = matches!(name.as_str(), "raw" | "lossless") || (name == "f32" && T::NAME == "f32");
    if lossless {
        assert_eq!(crate::common::bits(values), crate::common::bits(back), "{name}");
        return assert_eq!(encoded.loss, Loss::NONE);
    }
    if values.iter().any(|x| !x.widened().is_finite()) {
        // `within` and `zfp` may have kept everything.
        let kept = crate::common::bits(values) == crate::common::bits(back) && !codec.is_fixed();
        return assert!(encoded.loss == Loss::INFINITE || (kept && encoded.loss == Loss::NONE), "{name}");
    }
    let pairs = values.iter().zip(back).map(|(a, b)| (a.widened(), b.widened()));
    let (truth, said) = (Big::sum_of_squares(pairs), Big::of_array(encoded.loss.to_array()));
    let describe =
        || format!("{name}: {} values from {:?}: loss {:?}", values.len(), values[0], encoded.loss);
    assert!(said >= truth, "below the exact loss: {}", describe());
    assert!(!said.far_above(&truth), "far above the exact loss: {}", describe());
    let norm = Norm::of(values);
    if let Some(bound) = codec.bound(values.len()) {
        let relative = encoded.loss.relative_to(norm);
        assert!(relative <= bound, "beyond the bound {bound:e}: {relative:e} {}", describe());
    }
}

fn check<T: Scalar>(kinds: &[usize], lengths: &[usize], pick: impl Fn(&str) -> bool) {
    for name in names::<T>().iter().filter(|name| pick(name)) {
        for kind in kinds {
            for n in lengths {
                let values = data::<T>(*kind, *n);
                let (codec, encoded, back) = on_every_isa::<T>(name, &values);
                check_kept(name, &values, &back);
                check_loss(&*codec, &encoded, &values, &back);
            }
        }
    }
}

const LONG: &[usize] = &[255, 256, 257, 1000, 4096];
const SOME: &[usize] = &[0, 1, 2, 3, 5, 15, 16, 17, 31, 33, 64, 100];

#[test]
fn all_lengths_of_plain_data() {
    let all: Vec<usize> = (0..=200).collect();
    check::<f64>(&[0], &all, |_| true);
    check::<f32>(&[0], &all, |_| true);
}

#[test]
fn all_kinds_of_data_f64() {
    check::<f64>(&(0..KINDS).collect::<Vec<_>>(), SOME, |_| true);
}

#[test]
fn all_kinds_of_data_f32() {
    check::<f32>(&(0..KINDS).collect::<Vec<_>>(), SOME, |_| true);
}

#[test]
fn long_chunks() {
    let few =
        |name: &str| ["f16", "trim:11", "block:16", "within:1e-4", "zfp:rate=16", "lossless"].contains(&name);
    check::<f64>(&[0, 4, 5, 8, 9, 14, 18], LONG, few);
    check::<f32>(&[0, 4, 5, 8, 9, 14, 18], LONG, few);
}

#[test]
fn norms_are_bounds_of_the_exact_norm() {
    for kind in (0..KINDS).filter(|kind| ![11, 14, 17, 18].contains(kind)) {
        for n in SOME {
            let values = data::<f64>(kind, *n);
            let norm = Norm::of(&values);
            let truth = Big::sum_of_squares(values.iter().map(|x| (*x, 0.0)));
            let [low, low_exponent, high, high_exponent] = norm.to_array();
            assert!(Big::of_array([low, low_exponent]) <= truth, "{kind} {n}");
            let high = Big::of_array([high, high_exponent]);
            assert!(high >= truth && !high.far_above(&truth), "{kind} {n}");
        }
    }
    assert_eq!(Norm::of(&[1.0, f64::NAN]), Norm::INFINITE);
}

/// Rounding is to nearest: no error in a plain chunk exceeds half a step.
#[test]
fn rounding_is_to_nearest() {
    let values = data::<f64>(0, 1000);
    for bits in [1, 4, 10, 23, 40, 51, 52] {
        let (_, _, back) = on_every_isa::<f64>(&format!("trim:{bits}"), &values);
        for (a, b) in values.iter().zip(&back) {
            let step = 2f64.powi(a.abs().log2().floor() as i32 - bits);
            assert!((a - b).abs() <= step / 2.0, "trim:{bits}: {a} {b}");
        }
    }
    for bits in [4, 10, 16, 33] {
        let (_, _, back) = on_every_isa::<f64>(&format!("block:{bits}"), &values);
        for (a, b) in values.chunks(16).zip(back.chunks(16)) {
            let largest = a.iter().fold(0f64, |m, x| m.max(x.abs()));
            let unit = 2f64.powi(largest.log2().floor() as i32 + 2 - bits);
            for (a, b) in a.iter().zip(b) {
                let clipped = a.abs() > unit * (2f64.powi(bits - 1) - 1.0);
                assert!((a - b).abs() <= unit / if clipped { 1.0 } else { 2.0 }, "block:{bits}: {a} {b}");
            }
        }
    }
}

/// Encoding decoded values again is lossless: a code is that of its decoded value.
#[test]
fn encoding_twice_loses_nothing_more() {
    for name in ["f32", "f16", "bf16", "trim:9", "block:12"] {
        let values = data::<f64>(0, 333);
        let (_, _, once) = on_every_isa::<f64>(name, &values);
        let (_, encoded, twice) = on_every_isa::<f64>(name, &once);
        assert_eq!(
            (encoded.loss, crate::common::bits(&once)),
            (Loss::NONE, crate::common::bits(&twice)),
            "{name}"
        );
    }
}
