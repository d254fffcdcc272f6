//! `--kinds`, `--keep` and `--keep-sphere`: `transform` against numpy, `bench`
//! and `plan` with them, and what they refuse.
//!
//! Needs a Python with numpy, as `numpy.rs` does.

use std::env;

use crate::common::{Folder, assert_refused, ferrier, run, stderr, stdout};

#[test]
fn transforms_equal_numpys() {
    let python = env::var("FERRIER_PYTHON").unwrap_or_else(|_| "python3".into());
    let call = |words: &[&str]| std::process::Command::new(&python).args(words).output().unwrap();
    if !call(&["-c", "import numpy"]).status.success() {
        assert!(env::var_os("FERRIER_SKIP_NUMPY").is_some(), "numpy cannot be imported");
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/modes_cases.py");
    let done = call(&[script, env!("CARGO_BIN_EXE_ferrier")]);
    assert!(done.status.success(), "{}{}", stdout(&done), stderr(&done));
}

#[test]
fn benches_and_plans_of_some_modes() {
    for words in [
        &["--keep", "8"][..],
        &["--keep", "8xallx5", "--kind", "r2c"],
        &["--keep-sphere", "4.5"],
        &["--kinds", "dct2,c2c,none"],
        &["--kinds", "dst1,dct4,dst3", "--keep", "6"],
        &["--kinds", "dct2,r2c,c2c", "--batch", "2"],
    ] {
        for (command, more) in
            [("bench", &["--repeat", "1"][..]), ("bench", &["--repeat", "1", "--in-place"]), ("plan", &[])]
        {
            let output =
                ferrier().args([command, "16x12x10", "--ranks", "3"]).args(words).args(more).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{command} {words:?}: {}", stderr(&output));
            assert!(!stdout(&output).contains("NaN"), "{}", stdout(&output));
        }
    }
    let said = stdout(&run(&["plan", "16", "--ranks", "2", "--keep", "8"]));
    assert!(said.contains("8x8x8 modes kept"), "{said}");
    let said = stdout(&run(&["plan", "16", "--ranks", "2", "--keep-sphere", "2"]));
    assert!(said.contains("13 columns"), "{said}");
}

#[test]
fn contradictory_arguments_are_refused() {
    let folder = Folder::new();
    let (real, complex, out) = (
        folder.npy("r.npy", "<f8", &[4, 6, 8]),
        folder.npy("c.npy", "<c16", &[4, 6, 8]),
        folder.word("out.npy"),
    );
    let refused = |input: &str, words: &[&str], part: &str| {
        let output = ferrier().args(["transform", input, &out]).args(words).output().unwrap();
        assert_refused(&output, part);
    };
    refused(&real, &["--kinds", "dct2,c2c"], "2 entries");
    refused(&real, &["--kinds", "dct2,c2c,dct5"], "dct5");
    refused(&real, &["--kinds", "r2c,r2c,none"], "one axis at most");
    refused(&complex, &["--kinds", "r2c,c2c,c2c"], "real numbers forward");
    refused(&real, &["--kinds", "dct2,c2c,none", "--axes", "0"], "--axes");
    refused(&real, &["--keep", "4x6"], "2 entries");
    refused(&real, &["--keep", "4x6x9"], "axis 2");
    refused(&real, &["--keep", "4xsixx8"], "one entry per axis");
    refused(&real, &["--keep-sphere", "-1"], "");
    refused(&complex, &["--keep-sphere", "2", "--out-layout", "bricks"], "slabs:0");
    refused(&complex, &["--direction", "backward", "--keep", "2x2x2"], "--points");
    refused(&complex, &["--direction", "backward", "--points", "4x4x8"], "axis 1");
    refused(&complex, &["--points", "4x6x8"], "--direction backward");
    assert_refused(&run(&["bench", "8", "--kinds", "dct2,c2c,none", "--kind", "r2c"]), "--kinds");
    assert_refused(&run(&["bench", "8", "--keep", "4", "--against", "fftw"]), "--against");
    assert!(!folder.names().contains(&"out.npy".to_string()));
}
