//! Names and parameters.

use ferrier_codec::{CODECS, Error, Scalar, codec};

fn check_all_names<T: Scalar>() {
    for name in crate::common::names::<T>() {
        let made = codec::<T>(&name).unwrap_or_else(|error| panic!("{error}"));
        let again = codec::<T>(&made.name()).expect("its own name");
        assert_eq!(made.name(), again.name());
        assert_eq!((made.max_bytes(1000), made.is_fixed()), (again.max_bytes(1000), again.is_fixed()));
        assert_eq!(made.max_bytes(0), 0, "{name}");
        let entry = CODECS.iter().find(|entry| name.split(':').next() == Some(entry.name)).expect("an entry");
        assert!(!entry.fixed || made.is_fixed());
    }
}

#[test]
fn a_codec_of_a_name_has_that_name() {
    check_all_names::<f64>();
    check_all_names::<f32>();
}

#[test]
fn wrong_names_and_parameters() {
    let error = codec::<f64>("blocks:16").unwrap_err();
    assert!(matches!(error, Error::Name { .. }));
    for entry in CODECS {
        assert!(error.to_string().contains(&format!("{}{}", entry.name, entry.parameter)), "{error}");
    }
    let wrong = "raw:1 f32:3 f16:x block block: block:1 block:54 block:+9 block:16.0 trim:0 trim:53 trim:-1 trim:B \
                 zfp zfp:16 zfp:rate= zfp:rate=3 zfp:rate=65 zfp:rate=nan zfp:accuracy=0 zfp:accuracy=-1 zfp:accuracy=inf \
                 within within:0 within:2 within:nan lossless:9";
    for name in wrong.split_whitespace() {
        match codec::<f64>(name) {
            Err(Error::Parameter { name: codec, .. }) => assert!(name.starts_with(codec), "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    for name in ["block:25", "trim:24", "zfp:rate=33"] {
        assert!(codec::<f64>(name).is_ok() && codec::<f32>(name).is_err(), "{name}");
    }
    let text = codec::<f64>("trim:60").unwrap_err().to_string();
    assert_eq!(text, "codec trim: expected trim:B with B from 1 to 52, got \"60\"");
}
