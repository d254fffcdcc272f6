//! Any bits as values, any bytes as input of decoders.

use crate::common::exact::Big;
use crate::common::{names, on_every_isa};
use ferrier_codec::{Loss, Scalar, codec};
use proptest::prelude::*;

fn kept<T: Scalar>(name: &str, values: &[T]) {
    let (_, encoded, back) = on_every_isa::<T>(name, values);
    for (a, b) in values.iter().zip(&back) {
        assert_eq!(a.widened().is_finite(), b.widened().is_finite(), "{name} {a:?} {b:?}");
        // zfp may turn a zero into a small value.
        if a.widened() == 0.0 && b.widened() == 0.0 {
            assert_eq!(a.widened().to_bits(), b.widened().to_bits(), "{name}");
        }
    }
    if values.iter().all(|x| x.widened().is_finite()) {
        let truth = Big::sum_of_squares(values.iter().zip(&back).map(|(a, b)| (a.widened(), b.widened())));
        assert!(encoded.loss != Loss::INFINITE && Big::of_array(encoded.loss.to_array()) >= truth, "{name}");
    }
}

fn choose<T: Scalar>(which: prop::sample::Index) -> String {
    which.get(&names::<T>()[..]).clone()
}

/// Values of very different magnitudes in one chunk.
fn any_values() -> impl Strategy<Value = Vec<f64>> {
    let any = any::<u64>().prop_map(f64::from_bits);
    let of = |exponents: std::ops::Range<i32>| {
        exponents
            .prop_flat_map(|e| (-1.0..1.0f64).prop_map(move |x| x * 2f64.powi(e / 2) * 2f64.powi(e - e / 2)))
    };
    let plain = -1.0..1.0f64;
    prop_oneof![
        proptest::collection::vec(any, 0..70),
        proptest::collection::vec(of(-1080..1024), 0..70),
        // The range of f32.
        proptest::collection::vec(of(-155..128), 0..70),
        proptest::collection::vec(plain, 0..70),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_of_any_magnitude(values in any_values(), which in any::<prop::sample::Index>()) {
        kept::<f64>(&choose::<f64>(which), &values);
        let narrow: Vec<f32> = values.iter().map(|x| *x as f32).collect();
        kept::<f32>(&choose::<f32>(which), &narrow);
    }

    #[test]
    fn decoding_of_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400), n in 0usize..70, which in any::<prop::sample::Index>()) {
        let codec = codec::<f64>(&choose::<f64>(which)).unwrap();
        let mut scratch = vec![0; codec.scratch(n)];
        let _ = codec.decode(&bytes, &mut vec![0.0; n], &mut scratch);
        let mut exact = bytes;
        exact.resize(codec.max_bytes(n), 0);
        let _ = codec.decode(&exact, &mut vec![0.0; n], &mut scratch);
    }
}
