//! `ferrier convolve`, `spectrum`, `solve poisson` and `bench --apply`: against
//! numpy where there is a Python that has it (see `numpy.rs`), and by what they
//! say of themselves.

use std::env;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

fn ferrier(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ferrier")).args(arguments).output().unwrap()
}

/// The JSON that a command prints.
fn json_of(arguments: &[&str]) -> Value {
    let output = ferrier(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn python(arguments: &[&str]) -> Output {
    let python = env::var("FERRIER_PYTHON").unwrap_or_else(|_| "python3".into());
    Command::new(python).args(arguments).output().unwrap()
}

/// Shapes, element types, ways and ranks, each with each other in turn.
fn cases() -> Vec<Value> {
    let shapes = [
        (vec![12], vec![12]),
        (vec![40], vec![7]),
        (vec![6, 9], vec![6, 9]),
        (vec![5, 8], vec![3, 2]),
        (vec![4, 6, 5], vec![4, 6, 5]),
        (vec![7, 3, 8], vec![2, 3, 1]),
    ];
    let types = [("f8", "f8"), ("f4", "f4"), ("c16", "f8"), ("f8", "c16"), ("c8", "c8")];
    let mut cases = Vec::new();
    for (number, (a, b)) in shapes.iter().enumerate() {
        for (turn, way) in ["periodic", "linear", "correlate"].into_iter().enumerate() {
            let id = cases.len();
            let (one, two) = types[id % types.len()];
            let lengths: Option<Vec<f64>> =
                (id % 2 == 1).then(|| (0..a.len()).map(|i| 1.0 + 0.2718 * i as f64).collect());
            cases.push(json!({
                "id": id, "a": a, "b": b, "dtype_a": one, "dtype_b": two, "way": way, "fortran": turn == number % 3,
                "lengths": lengths, "ranks": 1 + id % 5,
            }));
        }
    }
    cases
}

fn run(folder: &Path, case: &Value) {
    let (id, ranks) = (&case["id"], case["ranks"].to_string());
    let path = |name: &str| folder.join(name).to_str().unwrap().to_string();
    let (a, b) = (path(&format!("a_{id}.npy")), path(&format!("b_{id}.npy")));
    let out = path(&format!("out_{id}.npy"));
    let flag = format!("--{}", case["way"].as_str().unwrap());
    let mut words = vec!["convolve", &a, &b, &out, "--ranks", &ranks];
    words.extend((flag != "--periodic").then_some(flag.as_str()));
    let done = ferrier(&words);
    assert!(done.status.success(), "{case}: {}", String::from_utf8_lossy(&done.stderr));

    let csv = path(&format!("shells_{id}.csv"));
    let lengths = case["lengths"]
        .as_array()
        .map(|list| list.iter().map(Value::to_string).collect::<Vec<_>>().join(","));
    let mut words = vec!["spectrum", &a, "--csv", &csv, "--ranks", &ranks];
    words.extend(lengths.iter().flat_map(|list| ["--lengths", list.as_str()]));
    let done = ferrier(&words);
    assert!(done.status.success(), "{case}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn convolutions_and_spectra_equal_numpys() {
    if !python(&["-c", "import numpy"]).status.success() {
        let skip = env::var_os("FERRIER_SKIP_NUMPY").is_some();
        assert!(skip, "numpy cannot be imported: install it (FERRIER_PYTHON), or set FERRIER_SKIP_NUMPY");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cases = cases();
    std::fs::write(folder.path().join("cases.json"), serde_json::to_vec(&cases).unwrap()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/spectral_cases.py");
    let path = folder.path().to_str().unwrap();
    let made = python(&[script, "make", path]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    cases.iter().for_each(|case| run(folder.path(), case));
    let checked = python(&[script, "check", path]);
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn poissons_equation_is_solved_between_all_walls() {
    for walls in ["periodic", "neumann", "dirichlet", "periodic,dirichlet,neumann"] {
        let words = [
            "solve", "poisson", "--n", "8,16,32", "--bc", walls, "--ranks", "3", "--repeat", "1", "--json",
            "-",
        ];
        let report = json_of(&words);
        let errors: Vec<f64> =
            report["rows"].as_array().unwrap().iter().map(|row| row["error"].as_f64().unwrap()).collect();
        assert!(errors[1] < 1e-2 * errors[0] && errors[2] < 1e-12, "{walls}: {errors:?}");
    }
    let table = ferrier(&["solve", "poisson", "--n", "8", "--repeat", "1"]);
    assert!(String::from_utf8_lossy(&table.stdout).contains("periodic boundaries"));
}

#[test]
fn an_operator_is_timed_and_checked() {
    for words in
        [&["--kind", "r2c"][..], &["--exchange", "all_to_allv", "--tiles", "4"], &["--precision", "f32"]]
    {
        let mut all =
            vec!["bench", "12x10x8", "--ranks", "2", "--repeat", "2", "--apply", "laplacian", "--json", "-"];
        all.extend(words);
        let report = json_of(&all);
        for key in ["apply", "pair", "separate"] {
            assert!(report[key]["median_ms"].as_f64().unwrap() > 0.0, "{report}");
        }
        assert_eq!(report["difference"], 0.0, "{report}");
    }
}

#[test]
fn one_long_axis_is_timed_and_checked() {
    for (shape, out) in [("1d:4096", "same"), ("1d:4096", "best"), ("1d:997", "same"), ("1d:1000", "same")] {
        let words = ["bench", shape, "--ranks", "3", "--repeat", "2", "--out-layout", out, "--json", "-"];
        let report = json_of(&words);
        // What is checked is the same sum as for all: frequencies drawn at random.
        assert!(report["error_forward"].as_f64().unwrap() < 1e-14, "{report}");
        assert!(report["error_l2"].as_f64().unwrap() < 1e-14, "{report}");
    }
    let plan = ferrier(&["plan", "1d:4096", "--ranks", "4"]);
    let text = String::from_utf8_lossy(&plan.stdout);
    assert!(plan.status.success() && text.contains("fft axis 1") && text.contains("fft axis 2"), "{text}");
}

#[test]
fn invalid_plans_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.npy");
    let missing = missing.to_str().unwrap();
    for (words, part) in [
        (vec!["spectrum", missing], "none.npy"),
        (vec!["convolve", missing, missing, missing], "none.npy"),
        (vec!["solve", "poisson", "--n", "8", "--bc", "periodic,neumann"], "1 or 3"),
        (vec!["solve", "poisson", "--n", "0"], "no elements"),
        (vec!["bench", "8", "--apply", "magic"], "known are: laplacian"),
        (vec!["bench", "1d:8x8"], "1d:256"),
    ] {
        let output = ferrier(&words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(part) && said.lines().count() == 1, "{words:?}: {said}");
    }
}
