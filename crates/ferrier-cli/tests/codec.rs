//! Codecs and tolerances on the command line.

use crate::common::{Folder, assert_refused, doubles, npy, run, stderr, stdout};
use serde_json::Value;

fn report(words: &[&str]) -> Value {
    let output = run(&[words, &["--json", "-"]].concat());
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {}", stdout(&output)))
}

fn number(report: &Value, key: &str) -> f64 {
    report[key].as_f64().unwrap_or_else(|| panic!("no number {key}: {report}"))
}

#[test]
fn bench_reports_codec_bound_and_bytes() {
    let bench = ["bench", "24x20x18", "--ranks", "3", "--in-layout", "bricks", "--repeat", "2"];
    let raw = report(&bench);
    assert_eq!(raw["codec"], "raw");
    assert!(number(&raw, "error_forward") <= number(&raw, "error_bound"), "{raw}");
    for (more, codec, least, most, share) in [
        (&["--tolerance", "1e-4"][..], "within:", 1e-7, 1e-4, 0.35),
        (&["--codec", "f32", "--exchange", "ring"], "f32", 1e-9, 1e-6, 0.51),
        (
            &["--codec", "block:16", "--tiles", "3", "--compress", "between-ranks"],
            "block:16",
            1e-7,
            1e-3,
            0.27,
        ),
    ] {
        let got = report(&[&bench, more].concat());
        assert!(got["codec"].as_str().is_some_and(|name| name.starts_with(codec)), "{more:?}: {got}");
        let (error, bound) = (number(&got, "error_forward"), number(&got, "error_bound"));
        assert!(least < error && error <= bound && bound <= most, "{more:?}: {error} {bound}");
        let bytes = number(&got, "wire_bytes") / number(&raw, "wire_bytes");
        assert!(bytes <= share, "{more:?}: {bytes} of the raw bytes");
    }
    let output = run(&[&bench[..], &["--codec", "lossless", "--breakdown", "--profile"]].concat());
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(text.contains("codec lossless") && text.contains("encode") && text.contains("decode"), "{text}");
}

#[test]
fn plan_shows_the_codec() {
    let words = ["plan", "16", "--ranks", "4", "--tolerance", "1e-3"];
    let text = stdout(&run(&words));
    assert!(text.contains("exchange all_to_allv, codec within:") && text.contains("between-ranks"), "{text}");
    let plan = report(&words);
    assert!(plan["recipe"]["codec"].as_str().is_some_and(|name| name.starts_with("within:")), "{plan}");
}

#[test]
fn transform_keeps_a_tolerance() {
    let folder = Folder::new();
    let values: Vec<f64> = (0..2 * 8 * 9 * 10).map(|i| (i as f64 * 0.7).sin()).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let input = folder.file("in.npy", &npy("'<c16'", &[8, 9, 10], &bytes));
    let transform = |name: &str, more: &[&str]| {
        let out = folder.word(name);
        let output = run(&[&["transform", &input, &out, "--ranks", "3"], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        doubles(&folder.path(name))
    };
    let (exact, near) = (transform("exact.npy", &[]), transform("near.npy", &["--tolerance", "1e-5"]));
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>().sqrt();
    let error = norm(&mut exact.iter().zip(&near).map(|(a, b)| a - b)) / norm(&mut exact.iter().copied());
    assert!(error > 0.0 && error <= 1e-5, "{error}");
}

#[test]
fn invalid_arguments_are_refused() {
    let bench = |more: &[&str]| run(&[&["bench", "8", "--ranks", "2", "--repeat", "1"], more].concat());
    assert_refused(&bench(&["--codec", "gzip"]), "gzip");
    assert_refused(&bench(&["--codec", "block:1"]), "block:B");
    assert_refused(&bench(&["--codec", "f32", "--exchange", "direct"]), "shares memory");
    assert_refused(&bench(&["--tolerance", "1e-16"]), "10 epsilon log2 N");
    assert_refused(&bench(&["--tolerance", "2"]), "between 0 and 1");
    assert_refused(&bench(&["--compress", "everything"]), "everything");
}
