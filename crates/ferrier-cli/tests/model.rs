//! `ferrier model`, `ferrier simulate`, and where `ferrier info` says that ranks are.

use std::fs;

use serde_json::Value;

use crate::common::{Folder, assert_refused, run, stderr, stdout};

fn json(words: &[&str]) -> Value {
    let output = run(words);
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn predictions_are_a_list_with_the_keys_of_the_contract() {
    let list = json(&["model", "64", "--machine", "summit", "--ranks", "6,24", "--json"]);
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), 2);
    for (one, (ranks, nodes)) in list.iter().zip([(6, 1), (24, 4)]) {
        assert_eq!((one["ranks"].as_u64(), one["nodes"].as_u64()), (Some(ranks), Some(nodes)));
        for key in ["total_ms", "gflops", "roofline_gflops"] {
            assert!(one[key].as_f64().unwrap() > 0.0, "{key}: {one}");
        }
        let steps = one["steps"].as_array().unwrap();
        let sum: f64 = steps.iter().map(|step| step["ms"].as_f64().unwrap()).sum();
        assert!((sum / one["total_ms"].as_f64().unwrap() - 1.0).abs() < 1e-9);
        assert!(steps.iter().all(|step| step["name"].is_string() && step["limit"].is_string()));
    }
    let said = stdout(&run(&["model", "64", "--machine", "umd", "--ranks", "4,8"]));
    assert!(said.contains("roofline") && said.contains("at 8 ranks on 8 nodes"), "{said}");
    for name in ["summit", "hopper", "umd", "h100-ndr", "genoa-hdr"] {
        assert!(stdout(&run(&["model", "--list"])).contains(name), "{name}");
    }
}

#[test]
fn scaling_is_drawn_and_variants_are_searched() {
    let folder = Folder::new();
    let svg = folder.word("scaling.svg");
    let words = ["model", "64", "--machine", "genoa-hdr", "--ranks", "8,64", "--svg", &svg];
    assert!(run(&words).status.success());
    let drawn = fs::read_to_string(&svg).unwrap();
    for part in ["strong scaling", "weak scaling", "roofline", "share of each step"] {
        assert!(drawn.contains(part), "{part}");
    }
    let found = json(&["model", "64", "--machine", "genoa-hdr", "--ranks", "64", "--search", "--json"]);
    let found = found.as_array().unwrap();
    assert!(found.len() > 5 && found[0]["change"] == "as given");
    assert!(found[1]["gain"].as_f64().unwrap() >= found[2]["gain"].as_f64().unwrap());
    for part in ["tolerance", "grid 8x8", "tiles of 16", "output where"] {
        assert!(found.iter().any(|one| one["change"].as_str().unwrap().contains(part)), "{part}");
    }
}

#[test]
fn a_measured_machine_is_a_machine_file() {
    let folder = Folder::new();
    let file = folder.word("here.toml");
    let output = run(&["model", "--measure", &file, "--ranks", "2", "--wire", "1gbit:20us"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let one = &json(&["model", "32", "--machine", &file, "--ranks", "2", "--json"])[0];
    assert_eq!((one["ranks"].as_u64(), one["nodes"].as_u64()), (Some(2), Some(2)));
    // Half of the array goes over the wire in each of two reshapes: 125 MB/s.
    let least = 2.0 * 32f64.powi(3) * 16.0 / 4.0 / 125e6 * 1e3;
    assert!(one["total_ms"].as_f64().unwrap() > 0.9 * least, "{one}");
}

#[test]
fn simulations_are_reported_traced_and_exported() {
    let folder = Folder::new();
    let (svg, trace, goal) = (folder.word("t.svg"), folder.word("t.json"), folder.word("t.goal"));
    let base = ["simulate", "64", "--machine", "genoa-hdr", "--ranks", "8", "--per-node", "2"];
    let report = json(&[&base[..], &["--json", "--trace", &svg]].concat());
    assert!(report["total_ms"].as_f64().unwrap() > 0.0 && report["simgrid_ms"].is_null(), "{report}");
    assert!(fs::read_to_string(&svg).unwrap().contains("rank 7"));
    let slow = json(&[&base[..], &["--json", "--slow-link", "1=4"]].concat());
    assert!(slow["total_ms"].as_f64() > report["total_ms"].as_f64());
    let tiled = ["--tiles", "8", "--trace", &trace, "--export", "goal", "--to", &goal];
    assert!(run(&[&base[..], &tiled].concat()).status.success());
    let events: Value = serde_json::from_str(&fs::read_to_string(&trace).unwrap()).unwrap();
    assert!(events["traceEvents"].as_array().unwrap().len() > 50);
    let text = fs::read_to_string(&goal).unwrap();
    assert!(text.starts_with("num_ranks 8\n") && text.contains("requires") && text.contains("b to 7 tag"));
    // What is sent is received.
    assert_eq!(text.matches(": send ").count(), text.matches(": recv ").count());
    let to = folder.word("simgrid");
    assert!(run(&[&base[..], &["--export", "simgrid", "--to", &to]].concat()).status.success());
    assert!(fs::read_to_string(folder.path("simgrid/rank7.txt")).unwrap().contains("7 irecv"));
}

#[test]
fn machines_and_jobs_that_do_not_exist_are_refused() {
    let folder = Folder::new();
    let bad = folder.file("bad.toml", b"nodes = many");
    for (words, part) in [
        (&["model", "64", "--machine", "sumit", "--ranks", "4"][..], "no machine is called `sumit`"),
        (&["model", "64", "--machine", &bad, "--ranks", "4"], "machine file"),
        (&["model", "64", "--machine", "umd", "--ranks", "65"], "machine `umd` has 64"),
        (&["model", "64", "--machine", "umd"], "--ranks is needed"),
        (&["model", "64", "--ranks", "4"], "--machine is needed"),
        (&["model"], "<SHAPE>"),
        (&["model", "64", "--machine", "umd", "--ranks", "0,4", "--weak"], "--ranks 0"),
        (&["simulate", "64", "--machine", "umd", "--ranks", "0"], "at least 1 rank"),
        (&["simulate", "64", "--machine", "umd", "--ranks", "4", "--per-node", "0"], "at least 1 on a node"),
        (
            &["simulate", "64", "--machine", "umd", "--ranks", "4", "--noise", "nan"],
            "noise must be from 0 to 1e6, got NaN",
        ),
        (&["model", "64", "--machine", "umd", "--ranks", "4", "--processor", "gpu"], "has no GPUs"),
        (&["simulate", "64", "--machine", "umd", "--ranks", "4", "--exchange", "direct"], "inside a node"),
        (&["simulate", "64", "--machine", "umd", "--ranks", "4", "--slow-node", "9=2"], "slow node 9"),
        (&["simulate", "64", "--machine", "umd", "--ranks", "4", "--slow-node", "9"], "not like 3=2"),
        (&["model", "64", "--machine", "umd", "--ranks", "4", "--slow-link", "9=2"], "slow link of node 9"),
        // Both went on for ever: the clock did not move any more.
        (&["simulate", "64", "--machine", "umd", "--ranks", "4", "--slow-link", "0=1e300"], "1e-6 to 1e6"),
        (&["simulate", "64", "--machine", "umd", "--ranks", "4", "--noise", "1e308"], "from 0 to 1e6"),
        (&["simulate", "64", "--machine", "umd", "--ranks", "4", "--trace", "t.txt"], ".json or .svg"),
    ] {
        assert_refused(&run(words), part);
    }
}

#[test]
fn info_says_where_ranks_are() {
    let report = json(&["info", "--json", "--threads", "1"]);
    let rank = &report["ranks"][0];
    assert_eq!(rank["threads"], 1);
    assert!(!rank["placement"]["cpus"].as_array().unwrap().is_empty(), "{report}");
    assert!(report["warnings"].is_array());
    let crowded = stdout(&run(&["info", "--threads", "4096"]));
    assert!(crowded.contains("NUMA") && crowded.contains("warning: "), "{crowded}");
}
