//! `ferrier accuracy`, `ferrier solve helmholtz`, `ferrier bench --codec-speed`.

use std::fs;

use crate::common::{Folder, assert_refused, doubles, npy, run, stderr, stdout};
use serde_json::Value;

fn json(words: &[&str]) -> Value {
    let output = run(&[words, &["--json", "-"]].concat());
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {}", stdout(&output)))
}

/// The row of a codec; its errors and its bytes.
fn row<'a>(report: &'a Value, arithmetic: &str, codec: &str, ranks: u64) -> &'a Value {
    let rows = report["rows"].as_array().unwrap();
    let same =
        |row: &&Value| row["arithmetic"] == arithmetic && row["codec"] == codec && row["ranks"] == ranks;
    rows.iter().find(same).unwrap_or_else(|| panic!("{arithmetic} {codec} {ranks}: {report}"))
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"))
}

#[test]
fn errors_over_ranks_and_bits() {
    let codecs = "f32,f16,block:8,block:16,block:24,trim:15,zfp:rate=16,within:1e-4,lossless";
    // One reshape, the same for both precisions: with an exchange of its own choice, a plan may leave ranks out.
    let layout = ["--out-layout", "slabs:1", "--exchange", "all_to_allv"];
    let report =
        json(&[&["accuracy", "24x20x16", "--ranks", "1,8", "--codecs", codecs][..], &layout].concat());
    assert_eq!(report["rows"].as_array().unwrap().len(), 2 + 11, "one rank has nothing to encode: {report}");
    for row in report["rows"].as_array().unwrap() {
        for key in ["error_l2", "error_forward", "error_bound"] {
            assert!((1e-17..0.1).contains(&number(row, key)), "{key}: {row}");
        }
        assert!(number(row, "error_forward") <= number(row, "error_bound"), "{row}");
        assert_eq!(row["wire_bytes"].as_u64().unwrap() > 0, row["ranks"] == 8, "{row}");
    }
    let of = |arithmetic: &str, codec: &str, key: &str| number(row(&report, arithmetic, codec, 8), key);
    let forward = |codec: &str| of("f64", codec, "error_forward");
    // Both single-precision rows send the same bytes; only arithmetic in f64 keeps the error small.
    let (single, wire) = (of("f32", "raw", "wire_bytes"), of("f64", "f32", "wire_bytes"));
    assert!(wire < 1.05 * single, "{wire} {single}");
    assert!(forward("f32") < 0.5 * of("f32", "raw", "error_forward"), "{report}");
    assert!(forward("raw") < 1e-15 && (forward("raw") - forward("lossless")).abs() == 0.0, "{report}");
    // Eight bits more are 256 times less error.
    for (few, many) in [("block:8", "block:16"), ("block:16", "block:24")] {
        assert!((150.0..400.0).contains(&(forward(few) / forward(many))), "{few} {many}: {report}");
    }
    assert!(forward("block:16") < 0.25 * forward("f16"), "{report}");
    assert!(of("f64", "block:16", "wire_bytes") < 1.1 * of("f64", "f16", "wire_bytes"), "{report}");
    assert!(forward("within:1e-4") < 4e-4, "{report}");
    // On one rank nothing is lost, and the round trip is no worse than twice a transform.
    let alone = row(&report, "f64", "raw", 1);
    assert!(number(alone, "error_l2") < 1e-15 && alone["bits"].is_null(), "{alone}");
}

#[test]
fn smooth_data_have_a_known_spectrum() {
    let words =
        ["accuracy", "32", "--ranks", "4", "--data", "smooth", "--codecs", "trim:7,block:16,zfp:rate=16"];
    for kind in ["c2c", "r2c"] {
        let report = json(&[&words[..], &["--kind", kind]].concat());
        assert_eq!(report["kind"], kind);
        let forward = |codec: &str| number(row(&report, "f64", codec, 4), "error_forward");
        assert!(forward("raw") < 1e-15, "{report}");
        assert!(number(row(&report, "f32", "raw", 4), "error_forward") < 4e-7, "{report}");
        // At 16 bits for each number truncation is the worst. What zfp gains depends on which elements are neighbours in a
        // message, and so on the plan: 3.4 times in one, more than 4 in another.
        assert!(forward("trim:7") > 4.0 * forward("block:16"), "{report}");
        assert!(forward("trim:7") > 2.0 * forward("zfp:rate=16"), "{report}");
    }
}

#[test]
fn accuracy_for_people_tables_and_drawings() {
    let folder = Folder::new();
    let (csv, svg, file) = (folder.word("a.csv"), folder.word("a.svg"), folder.word("a.json"));
    let words = ["accuracy", "12x8", "--ranks", "2,3", "--codecs", "f32,block:12,block:20"];
    let output = run(&[&words[..], &["--csv", &csv, "--svg", &svg]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    for part in ["12x8 c2c", "error of the round trip", "all f32", "f64 wire block:12", "3 ranks"] {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
    let table = fs::read_to_string(&csv).unwrap();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0][..3], ["arithmetic", "codec", "ranks"]);
    assert_eq!(lines.len(), 1 + 2 * 5);
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{table}");
    assert!(lines[1..].iter().all(|line| line[4].parse::<f64>().unwrap() > 0.0), "{table}");
    let drawn = fs::read_to_string(&svg).unwrap();
    for part in ["all f64", "all f32", ">block<", "1e-16"] {
        assert!(drawn.contains(part), "`{part}` is not in: {drawn}");
    }
    // Two, three, and so on: one dot for each row.
    assert_eq!(drawn.matches("<circle").count(), 5, "{drawn}");
    assert!(run(&[&words[..], &["--json", &file]].concat()).status.success());
    assert!(fs::read_to_string(&file).unwrap().contains("\"error_bound\""));
    let output = run(&[&words[..], &["--csv", "-"]].concat());
    assert!(stdout(&output).starts_with("arithmetic,") && stdout(&output).lines().count() == 11);
}

/// Exchanges give the same errors: all rows of a list but those of one rank, which sends nothing.
#[test]
fn accuracy_compares_exchanges() {
    let list = ["--codecs", "block:12", "--exchange", "ring,all_to_allv"];
    let report = json(&[&["accuracy", "12x8", "--ranks", "1,2"][..], &list].concat());
    let rows = report["rows"].as_array().unwrap();
    let of = |exchange: &str| -> Vec<String> {
        let own = rows.iter().filter(|row| row["ranks"] == 2 && row["exchange"] == exchange);
        own.map(|row| format!("{} {} {}", row["codec"], row["error_l2"], row["error_bound"])).collect()
    };
    assert_eq!((rows.len(), of("ring").len()), (2 + 2 * 3, 3), "{report}");
    assert_eq!(of("ring"), of("all_to_allv"));
    let said = stdout(&run(&[&["accuracy", "8", "--ranks", "2"][..], &list].concat()));
    assert!(said.contains("f64 wire block:12, ring"), "{said}");
}

/// The tolerance comes from the grids, not from the known solution.
#[test]
fn helmholtz_chooses_its_tolerance() {
    let words = ["solve", "helmholtz", "--n", "64", "--ranks", "2", "--repeat", "1", "--tolerance", "auto"];
    let report = json(&words);
    let (auto, rows) = (&report["auto"], &report["rows"]);
    let (error, estimate) = (number(&report, "discretisation_error"), number(auto, "estimate"));
    assert!((0.5..2.0).contains(&(estimate / error)), "{report}");
    assert_eq!(auto["grids"], serde_json::json!([64, 80, 100]), "{report}");
    assert!(number(auto, "order") > 4.0 && number(auto, "tolerance") < estimate, "{report}");
    assert_eq!(rows[1]["tolerance"], auto["tolerance"], "{report}");
    assert!(number(&rows[1], "error_bound") <= 1.01 * estimate, "{report}");
    assert!(number(&rows[1], "solution_error") <= 2.0 * error, "{report}");
    assert!(number(&rows[1], "wire_bytes") < 0.5 * number(&rows[0], "wire_bytes"), "{report}");
}

/// -laplace(u) + u = (1 + 1) u for u = cos x, and a file that is no cube.
#[test]
fn helmholtz_reads_and_writes_files() {
    let folder = Folder::new();
    let wave = |i: usize| (std::f64::consts::TAU * i as f64 / 16.0).cos();
    let values: Vec<u8> = (0..16 * 16 * 16).flat_map(|i| (2.0 * wave(i / 256)).to_le_bytes()).collect();
    let from = folder.file("f.npy", &npy("'<f8'", &[16, 16, 16], &values));
    let to = folder.word("u.npy");
    let words = ["solve", "helmholtz", "--rhs", &from, "--out", &to, "--ranks", "2", "--repeat", "1"];
    let report = json(&words);
    // Every grid has the solution: nothing may be lost.
    assert!(report["auto"]["tolerance"].is_null() && report["discretisation_error"].is_null(), "{report}");
    let found = doubles(&folder.path("u.npy"));
    assert!((0..4096).all(|i| (found[i] - wave(i / 256)).abs() < 1e-14));
    let lossy = json(&[&words[..], &["--tolerance", "1e-3"]].concat());
    assert!(number(&lossy["rows"][1], "deviation") > 0.0, "{lossy}");
    let near = doubles(&folder.path("u.npy"));
    assert!(near != found && (0..4096).all(|i| (near[i] - wave(i / 256)).abs() < 1e-2));
    let flat = folder.npy("flat.npy", "<f8", &[4, 6]);
    assert_refused(&run(&["solve", "helmholtz", "--rhs", &flat]), "a cube of real numbers");
    let odd = folder.npy("odd.npy", "<f8", &[6, 6, 6]);
    assert_refused(&run(&["solve", "helmholtz", "--rhs", &odd]), "not a multiple of 4");
}

#[test]
fn helmholtz_prints_the_gain_of_a_tolerance() {
    let report = json(&["solve", "helmholtz", "--n", "32", "--ranks", "4", "--repeat", "1"]);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 7, "{report}");
    let grid = number(&report, "discretisation_error");
    assert!((1e-2..5e-2).contains(&grid), "{report}");
    assert!((0.5..2.0).contains(&(number(&report, "discretisation_estimate") / grid)), "{report}");
    assert!(rows[0]["tolerance"].is_null() && rows[0]["codec"] == "raw", "{report}");
    assert_eq!(number(&rows[0], "solution_error"), grid);
    for pair in rows.windows(2) {
        let [first, second] = [&pair[0], &pair[1]];
        let errors = |row: &Value| (number(row, "deviation"), number(row, "error_bound"));
        assert!(errors(second).0 <= errors(second).1, "{second}");
        let coarser = first["tolerance"].is_null();
        assert!(coarser || errors(second).0 < errors(first).0 / 10.0, "{first} {second}");
        assert!(coarser || number(second, "wire_bytes") > number(first, "wire_bytes"), "{first} {second}");
        assert!(number(second, "wire_bytes") < number(&rows[0], "wire_bytes"), "{second}");
    }
    assert_eq!(number(&report, "suggested"), 1e-2, "{report}");

    // On a grid that shows the solution to seven digits, four lose something.
    let words =
        ["solve", "helmholtz", "--n", "80", "--ranks", "2", "--repeat", "1", "--tolerance", "1e-3,1e-8"];
    let report = json(&words);
    let [raw, loose, tight] = [0, 1, 2].map(|row| number(&report["rows"][row], "solution_error"));
    assert!(raw < 1e-6 && loose > 10.0 * raw && tight < 1.5 * raw, "{report}");
    assert_eq!(number(&report, "suggested"), 1e-8, "{report}");
    let said = stdout(&run(&["solve", "helmholtz", "--n", "9", "--ranks", "3", "--repeat", "1"]));
    for part in ["9x9x9 points", "discretisation error", "second grid of 18 points", "none", "between ranks"]
    {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
}

#[test]
fn codecs_are_timed_alone() {
    let report = json(&["bench", "16", "--codec-speed"]);
    let rows = report["codecs"].as_array().unwrap();
    for member in ["raw", "f32", "f16", "bf16", "trim:", "block:", "within:", "zfp:", "lossless"] {
        for precision in ["f64", "f32"] {
            let own = |row: &&Value| {
                row["precision"] == precision && row["codec"].as_str().unwrap().starts_with(member)
            };
            let row = rows.iter().find(own).unwrap_or_else(|| panic!("{member} {precision}: {report}"));
            for key in ["encode_gb_s", "decode_gb_s", "encode_ratio", "decode_ratio", "bits"] {
                assert!(number(row, key) > 0.0, "{key}: {row}");
            }
            assert!((0.0..0.1).contains(&number(row, "loss")), "{row}");
        }
    }
    let one = run(&["bench", "8", "--codec-speed", "--codec", "block:16"]);
    let said = stdout(&one);
    assert!(said.contains("block:16") && !said.contains("trim") && said.contains("encode GB/s"), "{said}");
}

#[test]
fn bad_options_are_refused() {
    let refused = |words: &[&str], part: &str| assert_refused(&run(words), part);
    refused(&["accuracy"], "<SHAPE>");
    refused(&["accuracy", "0"], "length 0");
    refused(&["accuracy", "8", "--ranks", "0"], "at least 1 rank");
    refused(&["accuracy", "8", "--ranks", "2,x"], "--ranks");
    refused(&["accuracy", "8", "--ranks", "2,5000"], "at most 1024 ranks");
    refused(&["accuracy", "8", "--codecs", "f32,pigeon"], "no codec \"pigeon\"");
    refused(&["accuracy", "8", "--codecs", "block:99"], "block");
    refused(&["accuracy", "8", "--data", "rough"], "possible values: noise, smooth");
    refused(&["accuracy", "8", "--exchange", "pigeon"], "unknown exchange");
    refused(&["accuracy", "8", "--in-layout", "slabs:3"], "no axis 3");
    refused(&["accuracy", "8", "--out-layout", "best"], "need one layout");
    refused(&["accuracy", "8", "--svg", "/no/such/folder/a.svg"], "no folder");
    refused(&["accuracy", "8", "--csv", "/no/such/folder/a.csv"], "no folder");
    refused(&["accuracy", "8", "--csv", "-", "--json", "-"], "--json");
    refused(&["accuracy", "40000", "--ranks", "2"], "memory");
    refused(&["solve"], "commands are: helmholtz");
    refused(&["solve", "pigeon"], "commands are: helmholtz");
    refused(&["solve", "helmholtz"], "--n <N>");
    refused(&["solve", "helmholtz", "--n", "0"], "length 0");
    refused(&["solve", "helmholtz", "--n", "8", "--repeat", "0"], "at least 1 repetition");
    refused(&["solve", "helmholtz", "--n", "8", "--tolerance", "x"], "--tolerance");
    refused(&["solve", "helmholtz", "--n", "8", "--ranks", "2", "--tolerance", "1e-4,0"], "between 0 and 1");
    refused(&["solve", "helmholtz", "--n", "8", "--ranks", "2", "--tolerance", "1e-15"], "rounding");
    refused(&["solve", "helmholtz", "--n", "8", "--json", "/no/such/folder/a.json"], "no folder");
    refused(&["solve", "helmholtz", "--n", "40000"], "memory");
    refused(&["bench", "--codec-speed", "--codec", "pigeon"], "no codec \"pigeon\"");
    refused(&["bench", "4000000000x40000", "--codec-speed"], "memory");
}
