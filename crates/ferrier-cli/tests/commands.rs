//! What the commands print, write and leave.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Folder, doubles, ferrier, npy, run, stderr, stdout};
use serde_json::Value;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn bench_reports_all_keys() {
    for (words, shape) in [
        (&["bench", "12x10x14", "--ranks", "3", "--repeat", "3"][..], vec![12, 10, 14]),
        (&["bench", "16", "--kind", "r2c", "--precision", "f32", "--repeat", "2"], vec![16, 16, 16]),
        (
            &["bench", "20x9", "--kind", "r2c", "--ranks", "2", "--out-layout", "best", "--repeat", "2"],
            vec![20, 9],
        ),
        (&["bench", "8", "--in-place", "--batch", "3", "--ranks", "2", "--repeat", "2"], vec![8, 8, 8]),
        (&["bench", "9", "--in-place", "--kind", "r2c", "--ranks", "2", "--repeat", "2"], vec![9, 9, 9]),
        (&["bench", "8x9x10", "--axes", "2,0", "--kind", "r2c", "--repeat", "2"], vec![8, 9, 10]),
        (
            &[
                "bench",
                "8x9x10",
                "--in-layout",
                "bricks",
                "--out-layout",
                "pencils:1",
                "--ranks",
                "4",
                "--in-place",
                "--repeat",
                "2",
            ],
            vec![8, 9, 10],
        ),
    ] {
        let output = run(&[words, &["--json", "-"]].concat());
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        let report = parsed(&stdout(&output));
        assert_eq!(report["shape"], Value::from(shape));
        let epsilon = if words.contains(&"f32") { 1.2e-7 } else { 2.2e-16 };
        for key in ["error_l2", "error_forward"] {
            let error = report[key].as_f64().unwrap();
            assert!((0.0..20.0 * epsilon).contains(&error), "{words:?}: {key} {error}");
        }
        for key in ["kind", "precision", "transport", "exchange", "in_layout", "out_layout"] {
            assert!(report[key].is_string(), "{key}: {report}");
        }
        for key in ["ranks", "threads", "memory_bytes_per_rank", "wire_bytes"] {
            assert!(report[key].is_u64(), "{key}: {report}");
        }
        for key in ["gflops", "copy_gb_s", "limit_fraction"] {
            assert!(report[key].as_f64().unwrap() > 0.0, "{key}: {report}");
        }
        for way in ["forward", "backward"] {
            let times = &report[way];
            assert!(times["best_ms"].as_f64().unwrap() > 0.0);
            assert!(times["best_ms"].as_f64() <= times["median_ms"].as_f64());
        }
        for step in report["steps"].as_array().unwrap() {
            assert!(step["name"].is_string() && step["ms"].is_f64() && step["bytes"].is_u64(), "{step}");
        }
        assert!(!report["steps"].as_array().unwrap().is_empty());
        let several = report["ranks"].as_u64().unwrap() > 1;
        assert_eq!(report["wire_bytes"].as_u64().unwrap() > 0, several, "{report}");
    }
}

/// The prediction is the sum of its steps, which are the measured ones; without the flag there is none.
#[test]
fn bench_and_plan_print_predictions() {
    let words = ["bench", "24", "--ranks", "3", "--in-layout", "bricks", "--repeat", "2"];
    let output = run(&[&words[..], &["--predict", "--json", "-"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let report = parsed(&stdout(&output));
    let steps = report["steps"].as_array().unwrap();
    let sum: f64 = steps.iter().map(|step| step["predicted_ms"].as_f64().unwrap()).sum();
    let all = report["predicted_ms"].as_f64().unwrap();
    assert!(all > 0.0 && (sum / all - 1.0).abs() < 1e-9, "{report}");
    let said = stdout(&run(&[&words[..], &["--predict"]].concat()));
    assert!(said.contains("predicted ms") && said.contains("constants assumed for"), "{said}");
    let without = parsed(&stdout(&run(&[&words[..], &["--json", "-"]].concat())));
    assert!(without["predicted_ms"].is_null() && without["steps"][0]["predicted_ms"].is_null(), "{without}");

    let words = ["plan", "24", "--ranks", "3", "--in-layout", "bricks"];
    let report = parsed(&stdout(&run(&[&words[..], &["--json"]].concat())));
    let steps = report["predicted_steps"].as_array().unwrap();
    let sum: f64 = steps.iter().map(|step| step["predicted_ms"].as_f64().unwrap()).sum();
    assert!((sum / report["predicted_ms"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{report}");
    assert!(report["constants"].as_str().unwrap().contains("assumed"), "{report}");
    assert!(stdout(&run(&words)).contains("predicted with constants assumed for"));
}

#[test]
fn bench_writes_a_file_and_prints() {
    let folder = Folder::new();
    let file = folder.word("result.json");
    let output = run(&["bench", "8", "--repeat", "2", "--profile", "--json", &file]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
    let said = stdout(&output);
    for part in ["8x8x8 c2c f64", "forward", "backward", "GFlop/s", "memory limit", "of copy"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(parsed(&fs::read_to_string(&file).unwrap())["repeat"], 2);
    assert_eq!(folder.names(), ["result.json"]);
}

#[test]
fn exchanges_are_timed_alone() {
    let folder = Folder::new();
    let chart = folder.word("chart.svg");
    let words =
        ["bench", "12x8x10", "--ranks", "3", "--exchange-only", "--repeat", "1", "--in-layout", "bricks"];
    let output = run(&[&words[..], &["--svg", &chart, "--json", "-"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let report = parsed(&stdout(&output));
    let names = parsed(&stdout(&run(&["info", "--json"])))["exchanges"].as_array().unwrap().clone();
    for list in ["reshapes", "sizes"] {
        let list = report[list].as_array().unwrap();
        for name in &names {
            let own: Vec<_> = list.iter().filter(|moved| moved["exchange"] == *name).collect();
            assert!(!own.is_empty(), "{name}: {report}");
            assert!(own.iter().all(|moved| moved["gb_s_per_node"].as_f64().unwrap() > 0.0), "{own:?}");
        }
    }
    for moved in report["sizes"].as_array().unwrap() {
        // 3 ranks: each sends to two others.
        assert_eq!(moved["bytes_total"].as_u64(), moved["bytes_per_pair"].as_u64().map(|bytes| 6 * bytes));
    }
    assert!(report["sizes"].as_array().unwrap().iter().any(|moved| moved["bytes_per_pair"] == 80_000));
    let drawn = fs::read_to_string(&chart).unwrap();
    assert!(names.iter().all(|name| drawn.contains(name.as_str().unwrap())), "{drawn}");
    let one = run(&[&words[..], &["--exchange", "ring"]].concat());
    let said = stdout(&one);
    assert!(one.status.success() && said.contains("ring") && !said.contains("all_to_allv"), "{said}");
}

/// Its ghost cells are checked before they are timed. Widths above the boxes, empty boxes, several nodes.
#[test]
fn ghost_cells_are_timed_alone() {
    for words in [
        &["8", "--halo", "5", "--ranks", "8", "--in-layout", "bricks"][..],
        &["1x9x7", "--halo", "2", "--ranks", "3", "--in-layout", "slabs:0", "--precision", "f32"],
        &["12x8x10", "--halo", "1", "--ranks", "5", "--nodes", "2", "--wire", "10gbit:5us"],
    ] {
        let output = run(&[&["bench"], words, &["--repeat", "2", "--json", "-"]].concat());
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        let report = parsed(&stdout(&output));
        assert_eq!(report["device"], "cpu");
        assert_eq!(report["wire_ms"].is_null(), !words.contains(&"--wire"), "{report}");
        for times in ["exchange", "start_finish", "copy"] {
            assert!(report[times]["median_ms"].as_f64().unwrap() > 0.0, "{times}: {report}");
        }
    }
}

#[test]
fn plan_and_info_print_for_people_and_programs() {
    let output = run(&["plan", "12", "--ranks", "4", "--in-layout", "bricks"]);
    assert!(output.status.success() && stdout(&output).contains("12x12x12"), "{}", stdout(&output));
    assert!(stdout(&output).contains("memory"), "{}", stdout(&output));
    let report = parsed(&stdout(&run(&["plan", "12", "--ranks", "13", "--json"])));
    assert!(report["recipe"]["steps"].as_array().unwrap().len() >= 3, "{report}");
    assert!(report["memory_bytes_per_rank"].is_u64() && report["traffic"].is_array());
    let report = parsed(&stdout(&run(&["info", "--json"])));
    assert!(report["cores"].as_u64().unwrap() > 0 && report["caches"].is_array(), "{report}");
    let said = stdout(&run(&["info"]));
    assert!(report["mpi"]["why"].is_string() && report["mpi"]["ranks"].is_null(), "{report}");
    for part in ["cores", "SIMD", "caches", "huge pages", "MPI"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn the_instruction_set_is_the_one_asked_for() {
    let folder = Folder::new();
    let numbers: Vec<u8> = (0..2 * 256).flat_map(|i| (i as f64).sin().to_le_bytes()).collect();
    let from = folder.file("in.npy", &npy("'<c16'", &[256, 1, 1], &numbers));
    let asked = |simd: &str, words: &[&str]| {
        let output = ferrier().args(words).env("FERRIER_SIMD", simd).output().unwrap();
        assert!(output.status.success(), "{simd}: {}", stderr(&output));
        stdout(&output)
    };
    let used = |simd| parsed(&asked(simd, &["info", "--json"]))["simd_used"].as_str().unwrap().to_string();
    let spectrum = |simd| {
        asked(simd, &["transform", &from, &folder.word("out.npy")]);
        doubles(&folder.path("out.npy"))
    };
    let best = used("");
    assert_eq!((used("portable").as_str(), used(&best)), ("portable", best.clone()));
    let (ours, portable) = (spectrum(""), spectrum("portable"));
    assert_eq!(spectrum(&best), ours);
    assert!(ours.iter().zip(&portable).all(|(a, b)| (a - b).abs() < 1e-12), "more than roundings");
    // Their passes differ, and so do roundings: it is another one that ran.
    assert!(best == "portable" || ours != portable, "{best} gave the bits of portable");
}

#[test]
fn help_and_version_are_no_failures() {
    for words in [
        &["--help"][..],
        &["--version"],
        &["help"],
        &["bench", "--help"],
        &["transform", "-h"],
        &["help", "plan"],
    ] {
        let output = run(words);
        assert!(
            output.status.success() && !output.stdout.is_empty() && output.stderr.is_empty(),
            "{words:?}"
        );
    }
    let help = stdout(&run(&["bench", "--help"]));
    let info = parsed(&stdout(&run(&["info", "--json"])));
    for table in ["exchanges", "kernels"] {
        for name in info[table].as_array().unwrap() {
            assert!(help.contains(name.as_str().unwrap()), "{name}: {help}");
        }
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    for words in [&["--help"][..], &["info"], &["plan", "8"], &["bench", "8", "--repeat", "1"]] {
        let mut child = ferrier().args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success() && said.is_empty(), "{words:?}: {status} {said}");
    }
    // But a full disk is one.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = ferrier().arg("info").stdout(full).output().unwrap();
    crate::common::assert_refused(&output, "No space left");
}

#[test]
fn a_file_may_be_transformed_into_itself() {
    let folder = Folder::new();
    let values: Vec<f64> = (0..2 * 3 * 4 * 5).map(|n| (n as f64 * 0.7).sin()).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let file = folder.file("data.npy", &npy("'<c16'", &[3, 4, 5], &bytes));
    for direction in ["forward", "backward"] {
        let output = run(&["transform", &file, &file, "--direction", direction, "--ranks", "3"]);
        assert!(
            output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
            "{}",
            stderr(&output)
        );
    }
    let back = doubles(&folder.path("data.npy"));
    assert_eq!(back.len(), values.len());
    for (a, b) in values.iter().zip(&back) {
        assert!((a - b).abs() < 1e-14, "{a} {b}");
    }
    assert_eq!(folder.names(), ["data.npy"]);
}

#[test]
fn links_and_permissions_stay() {
    let folder = Folder::new();
    let input = folder.npy("in.npy", "<f8", &[4, 6]);
    fs::create_dir(folder.path("far")).unwrap();
    fs::write(folder.path("far/real.npy"), "old").unwrap();
    fs::set_permissions(folder.path("far/real.npy"), fs::Permissions::from_mode(0o660)).unwrap();
    std::os::unix::fs::symlink("far/real.npy", folder.path("link.npy")).unwrap();
    assert!(run(&["transform", &input, &folder.word("link.npy")]).status.success());
    assert!(fs::symlink_metadata(folder.path("link.npy")).unwrap().is_symlink());
    let there = fs::metadata(folder.path("far/real.npy")).unwrap();
    assert_eq!(there.permissions().mode() & 0o777, 0o660);
    assert!(there.len() > 3);
    // A new file is as readable as any other, not as private as a temporary one.
    assert!(run(&["transform", &input, &folder.word("new.npy")]).status.success());
    let mode = |name: &str| fs::metadata(folder.path(name)).unwrap().mode() & 0o777;
    assert_eq!(mode("new.npy"), mode("in.npy"));
}

/// Has this process a file open that has no name in `folder` yet?
fn has_nameless_file(process: u32, folder: &Path) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let place = |file: fs::DirEntry| fs::read_link(file.path()).unwrap_or_default();
    let gone = |path: &Path| path.to_string_lossy().ends_with(" (deleted)");
    files.flatten().map(place).any(|path| path.starts_with(folder) && gone(&path))
}

#[test]
fn a_signal_leaves_nothing_behind() {
    let folder = Folder::new();
    let input = folder.npy("in.npy", "<c16", &[128, 128, 128]);
    let out = folder.file("out.npy", b"precious");
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGKILL] {
        let caught = (0..10).any(|_| {
            let mut child = ferrier()
                .args(["transform", &input, &out, "--ranks", "8", "--in-layout", "pencils:0"])
                .spawn()
                .unwrap();
            let start = Instant::now();
            let part = |name: &String| name.ends_with(".part");
            let writes =
                || folder.names().iter().any(part) || has_nameless_file(child.id(), &folder.path(""));
            while !writes() && start.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(1));
            }
            // SAFETY: signals the child that was just started and not yet waited for.
            unsafe { libc::kill(child.id() as i32, signal) };
            let status = child.wait().unwrap();
            assert!(!folder.names().iter().any(part), "{:?}", folder.names());
            if status.success() {
                fs::write(&out, b"precious").unwrap();
            }
            status.signal() == Some(signal)
        });
        assert!(caught, "the command was always done before the signal");
        assert_eq!(fs::read(&out).unwrap(), b"precious");
    }
}
