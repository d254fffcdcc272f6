//! Raw files and Zarr stores of the command.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Folder, assert_refused, doubles, ferrier, npy, run, stderr};

/// Runs the command, which must succeed.
fn done(words: &[&str]) {
    let output = run(words);
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
}

/// A field of 6 x 5 x 4 doubles, as .npy and as bytes.
fn field(folder: &Folder) -> (String, Vec<u8>) {
    let bytes: Vec<u8> = (0..120).flat_map(|n| f64::from(n * n % 17).to_le_bytes()).collect();
    (folder.file("field.npy", &npy("'<f8'", &[6, 5, 4], &bytes)), bytes)
}

#[test]
fn raw_files_are_read_and_written_in_both_byte_orders() {
    let folder = Folder::new();
    let (input, bytes) = field(&folder);
    let modes = folder.word("modes.npy");
    done(&["transform", &input, &modes, "--real", "--ranks", "2"]);
    let expected = doubles(&folder.path("modes.npy"));
    let swapped: Vec<u8> = bytes.chunks_exact(8).flat_map(|value| value.iter().rev().copied()).collect();
    let raw = folder.file("field.raw", &[&b"head"[..], &bytes].concat());
    let big = folder.file("field.big", &swapped);
    let shape = ["--raw-shape", "6x5x4", "--raw-dtype"];
    let out = folder.word("out.npy");
    done(&[&["transform", &raw, &out, "--real"], &shape[..], &["float64", "--raw-offset", "4"]].concat());
    assert_eq!(doubles(&folder.path("out.npy")), expected);
    // The output has the byte order of the input.
    let raw_out = folder.word("out.dat");
    done(&[&["transform", &big, &raw_out, "--real", "--ranks", "3"], &shape[..], &[">f8"]].concat());
    let values: Vec<f64> = fs::read(&raw_out)
        .unwrap()
        .chunks_exact(8)
        .map(|value| f64::from_be_bytes(value.try_into().unwrap()))
        .collect();
    assert_eq!(values, expected);
    // Two raw files with shapes of their own.
    let small = folder.file("small.raw", &bytes[..64]);
    let (one, two) = (folder.word("one.npy"), folder.word("two.npy"));
    let kernel = folder.file("small.npy", &npy("'<f8'", &[2, 2, 2], &bytes[..64]));
    done(&["convolve", &input, &kernel, &one, "--linear"]);
    let shapes = ["--raw-shape", "6x5x4,2x2x2", "--raw-dtype", ">f8,<f8"];
    done(&[&["convolve", &big, &small, &two, "--linear", "--ranks", "2"], &shapes[..]].concat());
    assert_eq!(doubles(&folder.path("one.npy")), doubles(&folder.path("two.npy")));
}

#[test]
fn refused_raw_files_and_options() {
    let folder = Folder::new();
    let (input, bytes) = field(&folder);
    let raw = folder.file("field.raw", &bytes);
    let out = folder.word("out.npy");
    let refused = |words: &[&str], part: &str| {
        assert_refused(&run(&[&["transform"], words].concat()), part);
        assert_eq!(folder.names(), ["field.npy", "field.raw"]);
    };
    refused(&[&raw, &out], "a raw file needs --raw-shape and --raw-dtype");
    refused(&[&raw, &out, "--raw-shape", "6x5x4"], "a raw file needs --raw-shape and --raw-dtype");
    refused(&[&raw, &out, "--raw-dtype", "float64"], "--raw-shape");
    refused(&[&raw, &out, "--raw-shape", "6x5x4", "--raw-dtype", "int8"], "is not a type");
    refused(&[&raw, &out, "--raw-shape", "6y5", "--raw-dtype", "float64"], "is not a list of lengths");
    let sizes = ["--raw-shape", "6x5x5", "--raw-dtype", "float64"];
    refused(
        &[&[&raw[..], &out], &sizes[..]].concat(),
        "truncated: shape 6x5x5 of float64 needs 1200 bytes, it has 960",
    );
    refused(&[&input, &out, "--chunks", "4"], "--chunks is for Zarr stores");
    refused(
        &[&input, &folder.word("o.zarr"), "--chunks", "4,4"],
        "2 lengths of chunks, but the array has 3 axes",
    );
    refused(&[&input, &folder.word("o.zarr"), "--chunks", "4", "--shards", "6"], "not a multiple");
    refused(&[&input, &folder.word("o.zarr"), "--chunk-codec", "lz4"], "unknown compression `lz4`");
    refused(&[&folder.word("no.zarr"), &out], "No such file");
    refused(&[&folder.word("no.zarr::x[0]"), &out], "No such file");
    refused(&[&input, &folder.word("no/o.zarr")], "there is no folder");
}

#[test]
fn stores_hold_what_npy_files_hold() {
    let folder = Folder::new();
    let (input, _) = field(&folder);
    let modes = folder.word("modes.npy");
    done(&["transform", &input, &modes, "--real"]);
    let expected = doubles(&folder.path("modes.npy"));
    for (ranks, options) in [
        ("1", &[][..]),
        ("3", &["--chunks", "2,3,2"]),
        ("4", &["--chunks", "2", "--shards", "4x4x4", "--chunk-codec", "gzip:3"]),
        ("2", &["--chunks", "4", "--chunk-codec", "none", "--out-layout", "pencils:0"]),
    ] {
        let store = folder.word("modes.zarr");
        done(&[&["transform", &input, &store, "--real", "--ranks", ranks], options].concat());
        let copy = folder.word("copy.npy");
        done(&["transform", &store, &copy, "--kinds", "none,none,none", "--ranks", "2"]);
        assert_eq!(doubles(&folder.path("copy.npy")), expected, "{options:?}");
        // The store is read and replaced by the same command.
        done(&[
            "transform",
            &store,
            &store,
            "--direction",
            "backward",
            "--real",
            "--last",
            "4",
            "--ranks",
            ranks,
        ]);
        done(&["transform", &store, &copy, "--kinds", "none,none,none"]);
        // Copies have the elements of their source.
        let back = doubles(&folder.path("copy.npy"));
        let wrong = |n: usize| (back[n] - (n * n % 17) as f64).abs();
        let error = (0..120).map(wrong).fold(0.0, f64::max);
        assert!(back.len() == 120 && error < 1e-13, "{error}");
    }
    assert_eq!(folder.names(), ["copy.npy", "field.npy", "modes.npy", "modes.zarr"]);
}

#[test]
fn parts_of_stores_are_transformed() {
    let folder = Folder::new();
    let (input, bytes) = field(&folder);
    let store = folder.word("run.zarr::state/density");
    done(&["transform", &input, &store, "--kinds", "none,none,none", "--chunks", "4"]);
    let plane = folder.file("plane.npy", &npy("'<f8'", &[5, 4], &bytes[2 * 160..3 * 160]));
    let (one, two) = (folder.word("one.npy"), folder.word("two.npy"));
    // Bits do not depend on the number of ranks then.
    done(&["transform", &plane, &one, "--reproducible"]);
    done(&["transform", &format!("{store}[2]"), &two, "--ranks", "2", "--reproducible"]);
    assert_eq!(doubles(&folder.path("one.npy")), doubles(&folder.path("two.npy")));
    let shells = |name: &str| {
        let output = run(&["spectrum", name, "--csv", "-"]);
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout
    };
    let copy = folder.word("copy.npy");
    done(&["transform", &plane, &copy, "--kinds", "none,none", "--out-layout", "slabs:1", "--ranks", "2"]);
    assert_eq!(doubles(&folder.path("copy.npy")), doubles(&folder.path("plane.npy")));
    assert_eq!(shells(&copy), shells(&format!("{store}[2,:,:]")));
    let lossy = ["transform", &plane, &copy, "--kinds", "none,none", "--codec", "f16", "--ranks", "2"];
    assert_refused(&run(&lossy), "elements stay what they are");
    let refused = |name: &str, part: &str| assert_refused(&run(&["transform", name, &one]), part);
    refused(&folder.word("run.zarr"), "it is a Zarr group");
    refused(&folder.word("run.zarr::state"), "(it has: density)");
    refused(&format!("{store}[6]"), "axis 0 has 6 indices, 6 is not one of them");
    refused(&format!("{store}[1,1,1]"), "no axes");
    assert_refused(&run(&["transform", &plane, &format!("{store}[2]")]), "written as a whole");
    assert_refused(&run(&["transform", &plane, &folder.word("run.zarr")]), "name an array in it");
}

#[test]
fn a_disk_without_room_for_a_store() {
    let folder = Folder::new();
    let input = folder.file("in.npy", &npy("'<f8'", &[64, 64, 64], &noise(64 * 64 * 64 * 8)));
    let store = folder.word("out.zarr");
    done(&["transform", &folder.npy("small.npy", "<f8", &[4]), &store]);
    let before = fs::read(folder.path("out.zarr/zarr.json")).unwrap();
    // The shell's limit on the size of files stands in for a full disk.
    let script = "ulimit -f 64; exec \"$0\" transform \"$1\" \"$2\" --ranks 2";
    let words = ["-c", script, env!("CARGO_BIN_EXE_ferrier"), &input, &store];
    let output = Command::new("sh").args(words).output().unwrap();
    assert_refused(&output, "File too large");
    assert_eq!(fs::read(folder.path("out.zarr/zarr.json")).unwrap(), before);
    assert_eq!(folder.names(), ["in.npy", "out.zarr", "small.npy"]);
}

/// Bytes that do not compress.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u8
    };
    // The high bytes of doubles near 1.
    (0..count).map(|at| if at % 8 == 7 { 0x3f } else { next() }).collect()
}

#[test]
fn a_signal_leaves_no_half_store() {
    let folder = Folder::new();
    let input = folder.npy("in.npy", "<c16", &[128, 128, 128]);
    let store = folder.word("out.zarr");
    done(&["transform", &folder.npy("small.npy", "<f8", &[4]), &store]);
    let before = fs::read(folder.path("out.zarr/zarr.json")).unwrap();
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let caught = (0..10).any(|_| {
            let mut child = ferrier()
                .args([
                    "transform",
                    &input,
                    &store,
                    "--ranks",
                    "8",
                    "--in-layout",
                    "pencils:0",
                    "--chunks",
                    "16",
                ])
                .spawn()
                .unwrap();
            let start = Instant::now();
            while !folder.names().iter().any(|name| name.ends_with(".part"))
                && start.elapsed() < Duration::from_secs(20)
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            // SAFETY: signals the child that was just started and not yet waited for.
            unsafe { libc::kill(child.id() as i32, signal) };
            let status = child.wait().unwrap();
            if status.success() {
                done(&["transform", &folder.word("small.npy"), &store]);
            }
            status.signal() == Some(signal)
        });
        assert!(caught, "the command was always done before the signal");
        assert_eq!(fs::read(folder.path("out.zarr/zarr.json")).unwrap(), before);
        // Only a kill may leave a hidden folder, which the next command removes.
        let parts = folder.names().iter().filter(|name| name.ends_with(".part")).count();
        assert!(parts == 0 || signal == libc::SIGKILL, "{:?}", folder.names());
    }
    done(&["transform", &folder.word("small.npy"), &store]);
    assert_eq!(folder.names(), ["in.npy", "out.zarr", "small.npy"]);
}
