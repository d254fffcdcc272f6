//! Studies over lists, heFFTe's switches, blocks, and the parameters of the literature.

use std::fs;

use crate::common::{Folder, assert_refused, run, stderr, stdout};
use serde_json::Value;

/// The report of a command.
fn told(words: &[&str]) -> Value {
    let output = run(&[words, &["--json", "-"]].concat());
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stdout(&output)))
}

fn rows(report: &Value) -> &Vec<Value> {
    report["rows"].as_array().unwrap_or_else(|| panic!("no rows in {report}"))
}

#[test]
fn lists_are_one_study() {
    let folder = Folder::new();
    let (csv, svg) = (folder.word("study.csv"), folder.word("study.svg"));
    let words = ["bench", "8,12", "--ranks", "1,2", "--exchange", "all_to_allv,ring", "--repeat", "1"];
    let report = told(&[&words[..], &["--csv", &csv, "--svg", &svg]].concat());
    let rows = rows(&report);
    assert_eq!(rows.len(), 8);
    for row in rows {
        assert!(
            row["median_ms"].as_f64().unwrap() > 0.0 && row["error_forward"].as_f64().unwrap() < 1e-14,
            "{row}"
        );
        let ranks = row["ranks"].as_u64().unwrap() as f64;
        let [speed_up, efficiency] = ["speed_up", "efficiency"].map(|key| row[key].as_f64().unwrap());
        assert!((speed_up / ranks - efficiency).abs() < 1e-9 * efficiency, "{row}");
        assert!(ranks > 1.0 || speed_up == 1.0, "{row}");
    }
    let text = fs::read_to_string(&csv).unwrap();
    assert!(text.starts_with("shape,ranks,exchange,best_ms,median_ms"), "{text}");
    assert_eq!(text.lines().count(), 9);
    assert!(fs::read_to_string(&svg).unwrap().contains("shape 12, exchange ring"));
    let said = stdout(&run(&[&words[..], &["--csv", "-"]].concat()));
    assert_eq!(said.lines().count(), 9, "{said}");
}

/// Contiguous and strided local transforms, and local libraries, have the same spectrum.
#[test]
fn reordered_lines_and_installed_kernels() {
    let words = ["bench", "12x10x8", "--ranks", "2", "--in-layout", "bricks", "--repeat", "1"];
    let report = told(&[&words[..], &["--reorder", "yes,no,auto", "--exchange", "direct,ring"]].concat());
    assert_eq!(rows(&report).len(), 6);
    for row in rows(&report) {
        assert!(row["error_forward"].as_f64().is_some_and(|error| error < 1e-14), "{row}");
    }
    for kernel in ["fftw", "mkl"] {
        let output = run(&[&words[..], &["--kernel", kernel, "--kind", "r2c"]].concat());
        match output.status.success() {
            true => assert!(stdout(&output).contains(&format!("kernel {kernel}")), "{}", stdout(&output)),
            false => assert_refused(&output, "was not found"),
        }
    }
}

#[test]
fn arrays_grow_and_impossible_combinations_are_notes() {
    let report = told(&["bench", "8", "--weak", "--ranks", "1,2,4", "--repeat", "1"]);
    let shapes: Vec<_> = rows(&report).iter().map(|row| row["shape"].to_string()).collect();
    assert_eq!(shapes, ["[8,8,8]", "[16,8,8]", "[16,16,8]"]);
    let words = ["bench", "8", "--ranks", "2,4", "--grid", "2x2,1x2", "--repeat", "1"];
    let report = told(&words);
    let notes: Vec<_> = rows(&report).iter().map(|row| row["note"].is_string()).collect();
    assert_eq!(notes, [true, false, false, true], "{report}");
    let report = told(&["bench", "8", "--ranks", "1,2", "--variants", "blocking,th-usual", "--repeat", "1"]);
    let names: Vec<_> = rows(&report).iter().map(|row| row["who"].as_str().unwrap_or("-")).collect();
    assert_eq!(names, ["-", "blocking", "th-usual"]);
    assert_refused(
        &run(&["bench", "8", "--ranks", "1,2", "--exchange", "ring,carrier-pigeon"]),
        "carrier-pigeon",
    );
    assert_refused(
        &run(&["bench", "8", "--ranks", "1,2", "--apply", "laplacian"]),
        "lists of options exclude",
    );
}

#[test]
fn exchanges_are_studied_and_overlapped() {
    let words = ["bench", "8", "--exchange-only", "--exchange", "all_to_allv,ring", "--repeat", "1"];
    let report = told(&[&words[..], &["--ranks", "2,3", "--nodes", "2"]].concat());
    let at: Vec<_> = rows(&report).iter().filter(|row| row["bytes_per_pair"] == 80_000).collect();
    assert_eq!(at.len(), 4);
    assert!(at.iter().all(|row| row["gb_s_per_node"].as_f64().unwrap() > 0.0), "{report}");
    let words =
        ["bench", "8", "--exchange-only", "--overlap", "--exchange", "point_to_point", "--ranks", "2"];
    let report = told(&[&words[..], &["--wire", "10gbit:5us", "--repeat", "1"]].concat());
    for row in report["sizes"].as_array().unwrap() {
        let of = |key: &str| row["overlap"][key].as_f64().unwrap();
        let sum = of("post_ms") + of("test_ms") + of("wait_ms");
        assert!((of("overhead_ms") - sum).abs() < 1e-9 && of("compute_ms") > 0.0, "{row}");
        assert!((of("hidden") - (1.0 - sum / of("blocking_ms"))).abs() < 1e-9, "{row}");
    }
}

#[test]
fn switches_reach_the_planner() {
    let recipe = |words: &[&str]| {
        told(
            &[&["plan", "8x6x10", "--ranks", "4", "--in-layout", "bricks", "--out-layout", "bricks"], words]
                .concat(),
        )
    };
    let order = |words: &[&str]| {
        let report = recipe(words);
        let steps = report["recipe"]["steps"].as_array().unwrap().clone();
        let axes = steps
            .iter()
            .filter_map(|step| step["Transform"]["axis"].as_u64().or(step["transform"]["axis"].as_u64()));
        axes.map(|axis| axis.to_string()).collect::<String>()
    };
    for wanted in ["012", "210", "120"] {
        assert_eq!(order(&["--axis-order", wanted]), wanted);
    }
    assert_eq!(recipe(&["--fuse", "no"])["recipe"]["fuse"], false);
    assert_eq!(recipe(&["--nodes", "2"])["nodes"], 2);
    assert_ne!(
        recipe(&["--decomposition", "slab"])["recipe"],
        recipe(&["--decomposition", "pencil"])["recipe"]
    );
    let orders = |words: &[&str]| recipe(words)["recipe"]["output"].to_string();
    assert_ne!(orders(&["--out-order", "210"]), orders(&[]));
    for (words, part) in [
        (&["--out-order", "21"][..], "every axis"),
        (&["--axis-order", "2x"], "axes as digits"),
        (&["--grid", "2"], "such as 2x4"),
        (&["--inner-ranks", "0"], "at least 1"),
    ] {
        assert_refused(&run(&[&["plan", "8", "--ranks", "4"], words].concat()), part);
    }
}

#[test]
fn blocks_have_the_same_bits_and_tiles_a_direction() {
    for more in [&[][..], &["--tiles", "2"], &["--tiles", "2", "--keep", "4"]] {
        let report = told(&[&["bench", "8", "--ranks", "2", "--blocks", "--repeat", "2"], more].concat());
        assert_eq!(report["same_bits"], true);
        let blocks = report["directions"][0]["blocks"].as_array().unwrap();
        let names: Vec<_> = blocks.iter().map(|row| row["block"].as_str().unwrap()).collect();
        for name in ["allocate", "fft axis 0", "pack", "post", "wait", "unpack", "free"] {
            assert!(names.contains(&name), "{names:?}");
        }
        let relative = blocks.iter().any(|row| row["to_blocking"].is_number());
        assert_eq!(relative, more.contains(&"--tiles"));
    }
    let tiles = ["--tiles-forward", "2", "--tiles-backward", "4"];
    let report = told(
        &[
            &["plan", "16", "--ranks", "2", "--exchange", "all_to_allv", "--out-layout", "slabs:1"],
            &tiles[..],
        ]
        .concat(),
    );
    let depths: Vec<_> =
        report["pipelines"].as_array().unwrap().iter().map(|one| one["depth"].as_u64().unwrap()).collect();
    assert_eq!(depths.len(), 2);
    assert_eq!(depths[0], 2 * depths[1], "{depths:?}");
    let report = told(&["bench", "16", "--ranks", "2", "--tiles", "auto", "--repeat", "1"]);
    assert_eq!(report["exchange"], "all_to_allv");
    assert_refused(&run(&["plan", "8", "--ranks", "2", "--tiles", "auto"]), "for bench and solve");
    let report = told(&["bench", "16", "--ranks", "2", "--breakdown", "--repeat", "1"]);
    assert!(!report["breakdown_backward"].as_array().unwrap().is_empty());
}

#[test]
fn some_parameters_are_searched() {
    let folder = Folder::new();
    let file = folder.word("wisdom.json");
    let base = ["tune", "16", "--ranks", "2", "--wire", "10gbit:5us", "--wisdom", &file];
    let report = told(&[&base[..], &["--tune-only", "T,W", "--trials", "5"]].concat());
    let tried = report["tried"].as_array().unwrap();
    let names: Vec<_> =
        tried[0]["values"].as_array().unwrap().iter().map(|pair| pair[0].as_str().unwrap()).collect();
    assert_eq!(names, ["tile", "window"]);
    let report = told(&[&base[..], &["--start", "paper", "--trials", "6"]].concat());
    assert_eq!(report["method"], "simplex");
    assert_eq!(report["tried"][0]["values"].as_array().unwrap().len(), 8);
    let svg = folder.word("spread.svg");
    let report = told(
        &[&base[..], &["--random", "5", "--tune-only", "T,W,F", "--budget", "1s", "--svg", &svg]].concat(),
    );
    let percentile = report["random"]["tuned"]["percentile"].as_f64().unwrap();
    assert!((0.0..=100.0).contains(&percentile), "{report}");
    assert!(fs::read_to_string(&svg).unwrap().contains("percentile"));
    assert_refused(&run(&["tune", "8", "--ranks", "2", "--tune-only", "T,Q"]), "unknown parameter `Q`");
    assert_refused(&run(&["tune", "8", "--tune-only", "T"]), "at least 2 ranks");
}
