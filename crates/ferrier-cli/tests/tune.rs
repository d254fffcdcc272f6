//! `ferrier tune` and `ferrier wisdom`, and what a kill leaves behind.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, assert_refused, ferrier, run, stderr, stdout};
use serde_json::Value;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Tunes something small; the report.
fn tune(shape: &str, wisdom: &str, more: &[&str]) -> Value {
    let words = ["tune", shape, "--wisdom", wisdom, "--trials", "6", "--json", "-"];
    let output = run(&[&words, more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
    parsed(&stdout(&output))
}

fn entries(wisdom: &str) -> Vec<Value> {
    let output = run(&["wisdom", "list", "--json", "--wisdom", wisdom]);
    assert!(output.status.success(), "{}", stderr(&output));
    parsed(&stdout(&output)).as_array().unwrap().clone()
}

fn wait(mut child: Child, limit: Duration) -> std::process::ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it did not end within {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Measured constants are stored as wisdom; plans use them, except reproducible ones.
#[test]
fn a_measured_machine_is_remembered() {
    let folder = Folder::new();
    let file = folder.word("wisdom.json");
    let output = run(&["tune", "--measure-machine", "--ranks", "2", "--wisdom", &file, "--json", "-"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report = parsed(&stdout(&output));
    assert_eq!(report["wisdom"], Value::from(file.clone()));
    let constants = report["speeds"]["constants"].as_object().unwrap();
    assert!(constants.contains_key("barrier_s"), "{report}");
    assert!(constants.values().all(|value| value.as_f64().unwrap() > 0.0), "{report}");
    let plan = |more: &[&str]| {
        let words = ["plan", "16", "--ranks", "2", "--wisdom", &file, "--json"];
        parsed(&stdout(&run(&[&words[..], more].concat())))
    };
    let by = |report: &Value| report["constants"].as_str().unwrap().to_string();
    assert!(by(&plan(&[])).contains("constants measured"), "{}", by(&plan(&[])));
    assert!(by(&plan(&["--reproducible"])).starts_with("constants assumed"));
    assert_refused(&run(&["tune"]), "SHAPE");
}

#[test]
fn tune_stores_its_result_and_plan_uses_it() {
    let folder = Folder::new();
    let file = folder.word("deep/down/wisdom.json");
    let report = tune("12x10x8", &file, &["--ranks", "3"]);
    for key in ["default_ms", "best_ms", "speed_up", "seconds"] {
        assert!(report[key].as_f64().unwrap() > 0.0, "{report}");
    }
    assert!(report["best_ms"].as_f64() <= report["default_ms"].as_f64());
    assert!(report["trials"].as_u64().unwrap() <= 6 && report["choice"].is_object(), "{report}");
    assert_eq!(report["wisdom"], Value::from(file.clone()));
    assert_eq!(entries(&file)[0]["choice"], report["choice"]);

    let plan = |shape: &str| stdout(&run(&["plan", shape, "--ranks", "3", "--wisdom", &file]));
    assert!(plan("12x10x8").contains("wisdom: used"), "{}", plan("12x10x8"));
    assert!(plan("12x10x8").contains(" old)") && plan("12x10x9").contains("wisdom: none"));
    let by_variable =
        ferrier().args(["plan", "12x10x8", "--ranks", "3"]).env("FERRIER_WISDOM", &file).output();
    assert!(stdout(&by_variable.unwrap()).contains("wisdom: used"));
    let off = ferrier().args(["plan", "12x10x8", "--ranks", "3"]).env("FERRIER_WISDOM", "off").output();
    assert!(stdout(&off.unwrap()).contains("wisdom: none"));
    let at_home = ferrier()
        .args(["tune", "8", "--trials", "2"])
        .env_remove("FERRIER_WISDOM")
        .env("XDG_DATA_HOME", folder.path("data"))
        .output();
    assert!(stdout(&at_home.unwrap()).contains("data/ferrier/wisdom.json"));
}

/// Calls with an operator are tuned separately, and the result is used by `bench --apply` only.
#[test]
fn tune_takes_the_pair() {
    let folder = Folder::new();
    let file = folder.word("wisdom.json");
    tune("12x10x8", &file, &["--ranks", "2", "--threads", "1", "--apply"]);
    assert_eq!(entries(&file)[0]["problem"]["operators"], Value::from(true));
    let bench = |more: &[&str]| {
        let words = ["bench", "12x10x8", "--ranks", "2", "--threads", "1", "--repeat", "1", "--json", "-"];
        let output = ferrier().args([&words, more].concat()).env("FERRIER_WISDOM", &file).output().unwrap();
        parsed(&stdout(&output))["wisdom"]["file"].clone()
    };
    assert_eq!(bench(&["--apply", "laplacian"]), Value::from(file.clone()));
    assert_eq!(bench(&["--out-layout", "best"]), Value::Null);
    assert_refused(&run(&["tune", "8", "--kinds", "none,none,none", "--apply"]), "no axis is transformed");
}

#[test]
fn tune_explains_itself() {
    let folder = Folder::new();
    let file = folder.word("wisdom.json");
    for method in ["nelder-mead", "model", "random"] {
        let words = ["tune", "8", "--ranks", "2", "--method", method, "--explain", "--trials", "9"];
        let output = run(&[&words[..], &["--wisdom", &file, "--budget", "20s"]].concat());
        let said = stdout(&output);
        assert!(output.status.success(), "{}", stderr(&output));
        for part in ["verdict", "where the search starts", "default", "best", "speed-up", method] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    assert_eq!(entries(&file).len(), 1);
}

#[test]
fn random_choices_are_spread_out_and_not_remembered() {
    let folder = Folder::new();
    let (svg, file) = (folder.word("spread.svg"), folder.word("wisdom.json"));
    let words = ["tune", "8", "--ranks", "4", "--random", "10", "--svg", &svg, "--wisdom", &file];
    let output = run(&words);
    assert!(output.status.success(), "{}", stderr(&output));
    for part in ["<- default", "fastest", "median", "infeasible"] {
        assert!(stdout(&output).contains(part), "{}", stdout(&output));
    }
    let drawing = fs::read_to_string(&svg).unwrap();
    assert!(drawing.starts_with("<svg") && drawing.ends_with("</svg>\n"));
    assert_eq!(folder.names(), ["spread.svg"]);
    let report = parsed(&stdout(&run(&[&words[..6], &["--json", "-"]].concat())));
    assert_eq!(report["random"]["times_ms"].as_array().unwrap().len(), 10);
}

#[test]
fn wisdom_of_another_machine_is_compared() {
    let folder = Folder::new();
    let (own, other) = (folder.word("own.json"), folder.word("other.json"));
    tune("8", &other, &["--ranks", "2"]);
    let text = fs::read_to_string(&other).unwrap();
    let cpu = entries(&other)[0]["machine"]["cpu"].as_str().unwrap().to_string();
    fs::write(&other, text.replace(&cpu, "abacus")).unwrap();
    let report = tune("8", &own, &["--ranks", "2", "--cross", &other]);
    assert_eq!(report["cross"][0]["cpu"], "abacus", "{report}");
    assert!(report["cross"][0]["their_ms"].as_f64().unwrap() > 0.0);
    let words = ["tune", "9", "--wisdom", &own, "--trials", "3", "--cross", &other];
    assert!(stdout(&run(&words)).contains("has no entry"));
}

#[test]
fn wisdom_is_listed_shown_merged_and_forgotten() {
    let folder = Folder::new();
    let (one, two) = (folder.word("one.json"), folder.word("two.json"));
    let at = |file: &str, words: &[&str]| run(&[&["wisdom"], words, &["--wisdom", file]].concat());
    assert!(stdout(&at(&one, &["list"])).contains("nothing is known"));
    tune("8", &one, &[]);
    tune("9", &two, &[]);
    tune("8", &two, &[]);
    assert!(stdout(&at(&one, &["merge", &two])).starts_with("2 new") || entries(&one).len() == 2);
    assert_eq!(entries(&one).len(), 2);
    let listed = stdout(&at(&one, &["list"]));
    assert!(listed.contains("8x8x8 c2c f64") && listed.contains("9x9x9"), "{listed}");
    let line = listed.lines().find(|line| line.contains("9x9x9")).unwrap();
    let id = line.split_whitespace().next().unwrap().to_string();
    assert_eq!(parsed(&stdout(&at(&one, &["show", &id])))[0]["problem"]["shape"], Value::from(vec![9, 9, 9]));
    assert!(stdout(&at(&one, &["forget", &id])).starts_with("1 forgotten"));
    assert_eq!(entries(&one).len(), 1);
    assert!(stdout(&at(&one, &["forget", "--all"])).starts_with("1 forgotten"));
    assert!(entries(&one).is_empty());
}

#[test]
fn nonsense_is_refused() {
    let folder = Folder::new();
    let (broken, file) = (folder.file("broken.json", b"{\"fer"), folder.word("wisdom.json"));
    for (words, part) in [
        (&["tune", "8", "--method", "guess"][..], "nelder-mead"),
        (&["tune", "8", "--budget", "soon"], "soon"),
        (&["tune", "8", "--trials", "0"], "at least 1"),
        (&["tune", "8", "--random", "0"], "at least 1"),
        (&["tune", "8", "--cross", "nowhere.json"], "no such file"),
        (&["tune", "8", "--cross", &broken], "not whole"),
        (&["tune", "8", "--svg", "x.svg"], "--random"),
        (&["wisdom", "list", "--wisdom", &broken], "not whole"),
        (&["wisdom", "forget", "--all", "--wisdom", &broken], "not whole"),
        (&["wisdom", "forget", "--wisdom", &file], "ID"),
        (&["wisdom", "show", "12345678", "--wisdom", &file], "12345678"),
        (&["wisdom", "merge", "nowhere.json", "--wisdom", &file], "no such file"),
    ] {
        assert_refused(&run(words), part);
    }
    assert_eq!(folder.names(), ["broken.json"], "nothing was written or renamed");
}

#[test]
fn a_place_that_cannot_be_written_is_a_warning() {
    let folder = Folder::new();
    let inside_a_file = folder.file("file", b"") + "/wisdom.json";
    let output = run(&["tune", "8", "--trials", "2", "--wisdom", &inside_a_file]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("warning") && stderr(&output).lines().count() == 1,
        "{}",
        stderr(&output)
    );
    assert!(stdout(&output).contains("speed-up"));
}

#[test]
fn killed_at_any_moment_it_leaves_the_file_whole() {
    let folder = Folder::new();
    let file = folder.word("wisdom.json");
    let before = tune("10", &file, &[]);
    let start = || {
        let words = ["tune", "8", "--trials", "3", "--budget", "5s", "--wisdom", &file];
        ferrier().args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    // How long it takes when it is left alone tells which moments there are.
    let began = Instant::now();
    assert!(wait(start(), Duration::from_secs(60)).success());
    let whole = began.elapsed();
    for round in 0..20u32 {
        let mut child = start();
        // The last third is when the file is written.
        let moment = whole.mul_f64(f64::from(round % 10 + 1) / 10.0 * 1.1);
        std::thread::sleep(moment);
        let _ = child.kill();
        wait(child, Duration::from_secs(60));
        let known = entries(&file);
        assert!(known.iter().any(|entry| entry["choice"] == before["choice"] && entry["trials"].is_u64()));
        assert!(known.iter().any(|entry| entry["problem"]["shape"] == Value::from(vec![10, 10, 10])));
        assert!(!folder.names().iter().any(|name| name.contains("aside")), "{:?}", folder.names());
    }
}

#[test]
fn processes_that_write_at_once_lose_nothing() {
    let folder = Folder::new();
    let file = folder.word("wisdom.json");
    let shapes: Vec<String> = (4..12).map(|n| n.to_string()).collect();
    let start = |shape: &String| {
        let words = ["tune", shape, "--trials", "2", "--wisdom", &file, "--threads", "1"];
        ferrier().args(words).stdout(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = shapes.iter().map(start).collect();
    for child in children {
        assert!(wait(child, Duration::from_secs(120)).success());
    }
    assert_eq!(entries(&file).len(), 8);
    assert_eq!(folder.names(), ["wisdom.json", "wisdom.json.lock"]);
}
