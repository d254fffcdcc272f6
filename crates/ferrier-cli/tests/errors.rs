//! Bad input: exit code 2, one line on stderr, and nothing is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::common::{Folder, assert_refused, ferrier, npy, run};

/// Refused, and OUT (which was there before) is as it was, and nothing is left behind.
fn transform_refused(folder: &Folder, input: &str, more: &[&str], part: &str) {
    let out = folder.file("out.npy", b"precious");
    let before = folder.names();
    assert_refused(&run(&[&["transform", input, &out], more].concat()), part);
    assert_eq!(fs::read(&out).unwrap(), b"precious");
    assert_eq!(folder.names(), before);
}

#[test]
fn files_that_are_no_arrays() {
    let folder = Folder::new();
    transform_refused(&folder, &folder.word("nowhere.npy"), &[], "No such file");
    transform_refused(&folder, &folder.word(""), &[], "folder");
    transform_refused(&folder, "/dev/null", &[], "not a regular file");
    for (bytes, part) in [
        (&b""[..], "not an .npy file"),
        (b"hello, world, this is text", "not an .npy file"),
        (b"\x93NUMPY", "truncated"),
        (b"\x93NUMPY\x01\x00\xff\xff{'descr'", "more than any array needs"),
        (b"\x93NUMPY\x01\x00\x80\x00{'descr'", "truncated"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'", "more than any array needs"),
        (b"\x93NUMPY\x07\x00\x10\x00{'descr': '<f8'}", "version 7"),
        (b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8'}", "damaged"),
        (b"\x93NUMPY\x01\x00\x10\x00((((((((((((((((", "damaged"),
    ] {
        let input = folder.file("in.npy", bytes);
        transform_refused(&folder, &input, &[], part);
    }
    let whole = npy("'<f8'", &[4, 5], &[0; 160]);
    let input = folder.file("in.npy", &whole[..whole.len() - 1]);
    transform_refused(&folder, &input, &[], "truncated: shape 4x5 of float64 needs");
}

#[test]
fn arrays_that_cannot_be_transformed() {
    let folder = Folder::new();
    for (descr, part) in [
        ("'<i8'", "'<i8'; supported are float32"),
        ("'|b1'", "supported are"),
        ("'<f2'", "supported are"),
        ("'|O'", "supported are"),
        ("'<c32'", "supported are"),
        ("[('a', '<f8'), ('b', '<i4')]", "structured"),
    ] {
        let input = folder.file("in.npy", &npy(descr, &[4, 5], &[0; 640]));
        transform_refused(&folder, &input, &[], part);
    }
    let scalar = folder.file("in.npy", &npy("'<f8'", &[], &[0; 8]));
    transform_refused(&folder, &scalar, &[], "no axes");
    let none = folder.npy("in.npy", "<f8", &[4, 0, 3]);
    transform_refused(&folder, &none, &[], "axis 1 is of length 0");
    let four = folder.npy("in.npy", "<f8", &[2, 2, 2, 2]);
    transform_refused(&folder, &four, &[], "4 axes; 1 to 3");
    let huge = folder.file("in.npy", &npy("'<f8'", &[1 << 40, 1 << 40], &[0; 8]));
    transform_refused(&folder, &huge, &[], "overflows");
    let long = folder.file("in.npy", &npy("'<c16'", &[1 << 50], &[0; 8]));
    transform_refused(&folder, &long, &[], "truncated");
}

#[test]
fn options_that_do_not_fit_the_array() {
    let folder = Folder::new();
    let real = folder.npy("real.npy", "<f8", &[4, 6]);
    let complex = folder.npy("complex.npy", "<c16", &[4, 6]);
    let single = folder.npy("one.npy", "<c16", &[4, 1]);
    let back = ["--real", "--direction", "backward"];
    let refused = |input: &str, more: &[&str], part: &str| transform_refused(&folder, input, more, part);
    refused(&complex, &["--real"], "real numbers forward, the file has complex128");
    refused(&real, &back, "complex numbers backward, the file has float64");
    refused(&real, &["--axes", "0,0"], "axis 0 is listed twice");
    refused(&real, &["--axes", "0,-2"], "axis -2 is listed twice");
    refused(&real, &["--axes", "2"], "no axis 2; shape 4x6 has 0, 1");
    refused(&real, &["--axes", "-3"], "no axis -3");
    refused(&real, &["--axes", "x"], "axes are written");
    refused(&real, &["--axes", ""], "axes are written");
    refused(&real, &["--last", "6"], "--last is for --real --direction backward");
    refused(&complex, &[&back[..], &["--last", "12"]].concat(), "real length is 10 or 11");
    refused(&complex, &[&back[..], &["--last", "0"]].concat(), "does not match");
    refused(&single, &back, "give --last 1");
    refused(&real, &["--halved", "0"], "--halved is for real transforms");
    refused(&real, &["--real", "--axes", "1", "--halved", "0"], "must be one of --axes");
    refused(&real, &["--ranks", "0"], "at least 1 rank");
    refused(&real, &["--ranks", "-1"], "ferrier: ");
    refused(&real, &["--ranks", "99999999999999999999"], "--ranks");
    refused(&real, &["--threads", "0"], "at least 1 thread");
    refused(&real, &["--ranks", "4", "--in-grid", "2x1"], "2 ranks, not for 4");
    refused(&real, &["--ranks", "4", "--out-layout", "bricks", "--out-grid", "4x4"], "16 ranks, not for 4");
    refused(&real, &["--ranks", "4", "--in-grid", "2x2x1"], "3 numbers but the array (4x6) has 2 axes");
    refused(&real, &["--ranks", "4", "--in-grid", "0x4"], "at least 1 rank along every axis");
    refused(&real, &["--in-grid", "2y2"], "a grid is written");
    refused(&real, &["--ranks", "4", "--in-layout", "slabs:0", "--in-grid", "1x4"], "ferrier: ");
    refused(&real, &["--ranks", "4", "--in-layout", "pencils:1", "--in-grid", "1x4"], "ferrier: ");
    refused(&real, &["--in-layout", "slabs:2"], "no axis 2");
    refused(&real, &["--in-layout", "tiles"], "known are: bricks, slabs:A, pencils:A");
    refused(&real, &["--in-layout", "best"], "--out-layout only");
    refused(&complex, &["--direction", "backward", "--out-layout", "best"], "forward");
    refused(&real, &["--exchange", "pigeon"], "known are: direct");
    refused(&real, &["--kernel", "abacus"], "unknown kernel `abacus`; known are: ");
    refused(&real, &["--scale", "huge"], "possible values: numpy, none, full, symmetric");
    refused(&real, &["--direction", "sideways"], "possible values: forward, backward");
}

#[test]
fn places_that_cannot_be_written() {
    let folder = Folder::new();
    let input = folder.npy("in.npy", "<f8", &[4, 6]);
    let refused = |out: &str, part: &str| assert_refused(&run(&["transform", &input, out]), part);
    refused(&folder.word("no/such/out.npy"), "there is no folder");
    refused(&folder.word(""), "folder");
    refused(&folder.word("new/"), "folder");
    refused("/dev/null", "not a regular file");
    refused("/dev/full", "not a regular file");
    refused(&folder.word("in.npy/out.npy"), "ferrier: ");
    assert_eq!(folder.names(), ["in.npy"]);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn a_disk_without_room() {
    let folder = Folder::new();
    let input = folder.npy("in.npy", "<f8", &[64, 64, 64]);
    let out = folder.file("out.npy", b"precious");
    // The shell's limit on the size of files stands in for a full disk.
    let script = "ulimit -f 64; exec \"$0\" transform \"$1\" \"$2\"";
    let output = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_ferrier"), &input, &out])
        .output()
        .unwrap();
    assert_refused(&output, "no room for");
    assert_eq!(fs::read(&out).unwrap(), b"precious");
    assert_eq!(folder.names(), ["in.npy", "out.npy"]);
}

#[test]
fn a_folder_without_leave() {
    // SAFETY: a plain call. Root may write anywhere.
    if unsafe { libc::geteuid() } == 0 {
        return;
    }
    let folder = Folder::new();
    let input = folder.npy("in.npy", "<f8", &[4]);
    fs::create_dir(folder.path("closed")).unwrap();
    fs::set_permissions(folder.path("closed"), fs::Permissions::from_mode(0o555)).unwrap();
    assert_refused(&run(&["transform", &input, &folder.word("closed/out.npy")]), "ermission denied");
    let out = folder.file("out.npy", b"precious");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o444)).unwrap();
    assert_refused(&run(&["transform", &input, &out]), "ermission denied");
}

#[test]
fn shapes_and_options_of_bench_and_plan() {
    for command in ["bench", "plan", "tune"] {
        let refused = |words: &[&str], part: &str| assert_refused(&run(&[&[command], words].concat()), part);
        refused(&[], "<SHAPE>");
        refused(&["0"], "length 0");
        refused(&["8x0x8"], "axis 1 is of length 0");
        refused(&["8x8x8x8"], "4 axes");
        refused(&["big"], "a shape is written");
        refused(&["8x"], "a shape is written");
        refused(&["99999999999999999999999"], "too large");
        refused(&["4294967296x4294967296x4"], "too large");
        refused(&["2097152x2097152x2097152"], "too large");
        refused(&["8", "--batch", "18446744073709551615"], "overflows");
        refused(&["8", "--batch", "0"], "at least 1 array");
        refused(&["8", "--ranks", "0"], "at least 1 rank");
        refused(&["8", "--threads", "0"], "at least 1 thread");
        if command == "plan" {
            refused(&["8", "--ranks", "2000000"], "at most 1048576 ranks");
        } else {
            refused(&["8", "--ranks", "200000"], "at most 1024 ranks");
            refused(&["8", "--ranks", "1000", "--threads", "1000"], "at most 4096 threads");
        }
        refused(&["8", "--threads", "18446744073709551615"], "at most 4096 threads");
        refused(&["8", "--kind", "c3c"], "possible values: c2c, r2c");
        refused(&["8", "--precision", "f16"], "possible values: f32, f64");
        refused(&["8", "--exchange", "pigeon"], "unknown exchange `pigeon`; known are: direct");
        refused(&["8", "--kernel", "abacus"], "unknown kernel `abacus`; known are: ");
        refused(&["8", "--in-layout", "slabs"], "which axis?");
        refused(&["8", "--in-layout", "slabs:3"], "no axis 3");
        refused(&["8x8", "--out-layout", "pencils:2"], "no axis 2");
        refused(&["8", "--in-layout", "same"], "--out-layout only");
        refused(&["8", "--ranks", "4", "--in-layout", "bricks", "--in-grid", "2x2x2"], "8 ranks, not for 4");
        refused(&["8", "--axes", "1,1"], "is listed twice");
        refused(&["8", "--out-layout", "best", "--out-grid", "1x1x1"], "best");
        refused(&["8", "--frobnicate"], "--frobnicate");
        refused(&["8", "--json", "/no/such/folder/x.json"], "no folder /no/such/folder");
    }
    // A petabyte: more than any machine that runs this has.
    assert_refused(&run(&["bench", "40000"]), "memory");
    assert_refused(&run(&["tune", "40000"]), "memory");
    assert_refused(&run(&["bench", "8", "--repeat", "0"]), "at least 1 repetition");
    assert_refused(&run(&["bench", "8", "--against", "abacus"]), "known are: fftw, fftw-patient, mkl");
    assert_refused(&run(&["bench", "8", "--against", "fftw-mpi"]), "start ferrier with mpiexec");
    assert_refused(&run(&["bench", "8", "--exchange-only"]), "at least 2 ranks");
    let alone = ["bench", "8", "--exchange-only", "--ranks", "2"];
    assert_refused(&run(&[&alone[..], &["--kind", "r2c"]].concat()), "--kind c2c");
    assert_refused(&run(&[&alone[..], &["--against", "fftw"]].concat()), "--against");
    assert_refused(&run(&[&alone[..], &["--svg", "/no/such/folder/x.svg"]].concat()), "no folder");
    assert_refused(&run(&["bench", "8", "--svg", "x.svg"]), "--exchange-only");
    assert_refused(
        &run(&[]),
        "commands are: transform, bench, plan, model, simulate, tune, accuracy, spectrum, convolve, solve, wisdom, info",
    );
    assert_refused(
        &run(&["dance"]),
        "commands are: transform, bench, plan, model, simulate, tune, accuracy, spectrum, convolve, solve, wisdom, info",
    );
}

#[test]
fn an_instruction_set_that_is_not_there() {
    for words in [&["bench", "8"][..], &["plan", "8"], &["info"]] {
        let output = ferrier().args(words).env("FERRIER_SIMD", "mmx").output().unwrap();
        assert_refused(&output, "unknown FERRIER_SIMD `mmx`; known are: ");
    }
}

#[test]
fn a_peer_that_is_not_there_says_where_it_was_looked_for() {
    // No loader path and no Python can have it.
    let output = ferrier()
        .args(["bench", "8", "--against", "mkl"])
        .env("PATH", "/nowhere")
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("FERRIER_PYTHON")
        .env_remove("CONDA_PREFIX")
        .env_remove("VIRTUAL_ENV")
        .env_remove("MKLROOT")
        .output()
        .unwrap();
    if !output.status.success() {
        assert_refused(&output, "libmkl_rt.so");
    }
}

#[test]
fn copies_of_a_one_rank_run_under_a_launcher_are_refused() {
    let under = |mpi: &str, rank: &str| {
        let mut command = ferrier();
        command.args(["plan", "8"]).env("OMPI_COMM_WORLD_SIZE", "2").env("OMPI_COMM_WORLD_RANK", rank);
        command.env("FERRIER_MPI", mpi).output().unwrap()
    };
    // A library that is not there: the first process says so, the others leave the word to it.
    assert_refused(&under("/nowhere/libmpi.so", "0"), "FERRIER_MPI is `/nowhere/libmpi.so`");
    let other = under("/nowhere/libmpi.so", "1");
    assert!(other.status.code() == Some(2) && other.stderr.is_empty() && other.stdout.is_empty());
    assert!(under("off", "1").status.success());
}

#[test]
fn devices_that_are_not_there_or_do_not_fit() {
    assert_refused(&run(&["bench", "8", "--device", "abacus"]), "known are: cpu, cuda");
    assert_refused(
        &run(&["bench", "8", "--against", "cufft"]),
        "peer cufft and --device cpu do not go together",
    );
    assert_refused(&run(&["bench", "8", "--device", "cuda", "--against", "fftw"]), "do not go together");
    assert_refused(&run(&["tune", "8", "--device", "cuda", "--random", "3"]), "are for the CPU");
    let on_gpu = |more: &[&str]| run(&[&["bench", "8", "--device", "cuda"], more].concat());
    let overlap = ["--ranks", "2", "--exchange-only", "--overlap"];
    assert_refused(&on_gpu(&overlap), "computes on the cores, is for the CPU");
    assert_refused(
        &run(&["solve", "helmholtz", "--n", "8", "--device", "cuda", "--tiles", "auto"]),
        "tiles are tuned on the CPU",
    );
    assert_refused(&on_gpu(&["--codec-speed"]), "--codec-speed is for the CPU");
    // Where there is a GPU, there is none of such a number.
    for words in [
        &["bench", "8"][..],
        &["plan", "8"],
        &["bench", "8", "--apply", "laplacian"],
        &["bench", "8", "--ranks", "2", "--exchange-only"],
        &["tune", "8"],
        &["accuracy", "8", "--ranks", "2"],
        &["solve", "helmholtz", "--n", "8"],
        &["solve", "poisson", "--n", "8"],
    ] {
        let output = run(&[words, &["--device", "cuda:4711"]].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        let part = if told.contains("4711") { "there is no GPU 4711" } else { "CUDA" };
        assert_refused(&output, part);
    }
}
