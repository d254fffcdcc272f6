//! What `bench` shows of overlap: tiles, sweeps, breakdowns, timelines, variants.

use std::collections::{HashMap, HashSet};
use std::fs;

use crate::common::{Folder, assert_refused, doubles, npy, run, stderr, stdout};
use serde_json::Value;

/// What a command wrote to stdout as JSON.
fn told(words: &[&str]) -> Value {
    let output = run(&[words, &["--json", "-"]].concat());
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stdout(&output)))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("no list {key} in {value}"))
}

fn ms(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {value}"))
}

/// Every tag that opens closes, in order; nothing is left unescaped.
fn assert_well_formed(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "{}", &rest[..at]);
        let bare = rest[..at].replace("&amp;", "").replace("&lt;", "");
        assert!(!bare.contains('&'), "{bare}");
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
    assert!(text.starts_with("<svg ") && !text.contains("NaN"), "{text}");
}

#[test]
fn lists_of_tiles_are_a_sweep() {
    let folder = Folder::new();
    let chart = folder.word("tiles.svg");
    let words = ["bench", "12x8x10", "--ranks", "2", "--repeat", "2", "--tiles", "0,3,50"];
    let more = ["--window", "1,3", "--polls", "0,5", "--cut", "1,-1", "--svg", &chart];
    let report = told(&[&words[..], &more].concat());
    let sweep = list(&report, "sweep");
    assert_eq!(sweep.len(), 24);
    let keys: HashSet<_> = sweep
        .iter()
        .map(|point| ["tiles", "window", "polls", "cut"].map(|key| point[key].as_u64().unwrap()))
        .collect();
    assert_eq!(keys.len(), 24, "{sweep:?}");
    assert!(keys.contains(&[3, 3, 5, 2]) && keys.contains(&[0, 1, 0, 1]), "{keys:?}");
    for point in sweep {
        assert!(0.0 < ms(point, "best_ms") && ms(point, "best_ms") <= ms(point, "median_ms"));
        assert!(ms(point, "compute_ms") > 0.0 && ms(&point["backward"], "best_ms") > 0.0);
    }
    // The rest of the report is that of the fastest.
    let best = sweep.iter().map(|point| ms(point, "median_ms")).fold(f64::INFINITY, f64::min);
    assert_eq!(ms(&report["forward"], "median_ms"), best);
    assert_eq!(report["exchange"], "all_to_allv");
    let drawn = fs::read_to_string(&chart).unwrap();
    assert_well_formed(&drawn);
    assert_eq!(drawn.matches("<polyline").count(), 8);
    let said = stdout(&run(&words));
    assert!(said.contains("the fastest:") && said.contains("0 (one)"), "{said}");
}

#[test]
fn breakdowns_add_up() {
    let words = ["bench", "16", "--ranks", "3", "--repeat", "3", "--breakdown", "--tiles", "2"];
    for exchange in ["all_to_allv", "point_to_point", "ring", "all_to_all"] {
        let report = told(&[&words[..], &["--exchange", exchange]].concat());
        let blocks = list(&report, "breakdown");
        let kinds: HashSet<_> = blocks.iter().map(|block| block["kind"].as_str().unwrap()).collect();
        assert!(["fft", "post", "test", "wait", "rest"].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
        for block in blocks {
            assert!(ms(block, "min_ms") <= ms(block, "mean_ms"), "{block}");
            assert!(ms(block, "mean_ms") <= ms(block, "max_ms") * 1.000_001, "{block}");
        }
        // The run nearest to the median of three is the median: that of the last rank to end, blocks are means over ranks.
        let sum: f64 = blocks.iter().map(|block| ms(block, "mean_ms")).sum();
        let median = ms(&report["forward"], "median_ms");
        assert!(sum <= 1.000_001 * median && sum > 0.5 * median, "{sum} {median}");
        assert_eq!(report["overlap"]["forward"][0]["tile"], 2);
    }
    let said = stdout(&run(&words));
    assert!(["block", "mean ms", "fft axis 0", "wait"].iter().all(|part| said.contains(part)), "{said}");
    // Without messages there are barriers instead.
    let report = told(&["bench", "16", "--ranks", "3", "--repeat", "3", "--breakdown"]);
    assert!(list(&report, "breakdown").iter().any(|block| block["kind"] == "barrier"), "{report}");
}

#[test]
fn timelines_have_every_tile_of_every_rank() {
    let folder = Folder::new();
    let trace = folder.word("trace.json");
    let words =
        ["bench", "12x16x12", "--ranks", "3", "--grid", "1x3", "--repeat", "1", "--tiles", "2", "--cut", "1"];
    let report = told(&[&words[..], &["--trace", &trace]].concat());
    let trace: Value = serde_json::from_str(&fs::read_to_string(&trace).unwrap()).unwrap();
    let events = list(&trace, "traceEvents");
    let of = |phase: &'static str| events.iter().filter(move |event| event["ph"] == phase);
    assert_eq!(of("M").filter(|event| event["name"] == "process_name").count(), 3);
    // A transfer begins and ends on the same rank, and transfers carry all bytes.
    let mut began: HashMap<&str, &Value> = HashMap::new();
    for event in of("b") {
        assert!(began.insert(event["id"].as_str().unwrap(), event).is_none(), "{event}");
        assert!(ms(&event["args"], "gb_s") > 0.0, "{event}");
    }
    assert_eq!(of("b").count(), of("e").count());
    for event in of("e") {
        let start = began[event["id"].as_str().unwrap()];
        assert!(start["pid"] == event["pid"] && ms(start, "ts") <= ms(event, "ts"), "{event}");
    }
    let bytes: u64 = of("b").map(|event| event["args"]["bytes"].as_u64().unwrap()).sum();
    assert_eq!(Some(bytes), report["wire_bytes"].as_u64());
    // Two reshapes of 16 / 2 tiles on each rank, and passes by the same tiles.
    for rank in 0..3 {
        let own = |reshape: u64| {
            let mine = of("b").filter(move |e| e["pid"] == rank && e["args"]["reshape"] == reshape);
            mine.map(|e| e["args"]["tile"].as_u64().unwrap()).collect::<HashSet<_>>()
        };
        assert_eq!(own(0), (0..8).collect(), "{rank}");
        let tiled = of("X").filter(|e| e["pid"] == rank && e["cat"] == "fft" && e["args"]["tile"].is_u64());
        assert!(tiled.count() >= 8);
        // The steps of a rank follow each other.
        let mut steps: Vec<_> =
            of("X").filter(|e| e["pid"] == rank).map(|e| (ms(e, "ts"), ms(e, "dur"))).collect();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(steps.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0 + 1e-3), "{steps:?}");
    }
}

#[test]
fn timelines_are_drawn() {
    let folder = Folder::new();
    let drawing = folder.word("trace.svg");
    for more in [&["--exchange", "point_to_point", "--tiles", "4"][..], &[]] {
        let words = ["bench", "16", "--ranks", "4", "--repeat", "1", "--trace", &drawing];
        let output = run(&[&words[..], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let drawn = fs::read_to_string(&drawing).unwrap();
        assert_well_formed(&drawn);
        for rank in 0..4 {
            assert!(drawn.contains(&format!(">rank {rank}</text>")), "{drawn}");
        }
        assert_eq!(drawn.contains("GB/s</title>") && drawn.contains("tile 3: "), !more.is_empty(), "{drawn}");
    }
}

#[test]
fn variants_are_tuned_and_compared() {
    let words = ["bench", "16", "--ranks", "2", "--repeat", "3", "--budget", "400ms"];
    let all = "blocking,new,new-0,th,th-0,th-usual";
    let report = told(&[&words[..], &["--variants", all]].concat());
    let variants = list(&report, "variants");
    let names: Vec<_> = variants.iter().map(|variant| variant["name"].as_str().unwrap()).collect();
    assert_eq!(names.join(","), all);
    for variant in variants {
        let [compute, wait] = ["compute_ms", "wait_ms"].map(|key| ms(variant, key));
        let median = ms(variant, "median_ms");
        assert!((compute + wait - median).abs() <= 1e-6 * median, "{variant}");
        assert!(ms(variant, "overlappable_ms") <= compute * 1.000_001, "{variant}");
        assert!(!list(variant, "breakdown").is_empty());
        let waits = ["post_ms", "test_ms", "wait_ms"].map(|key| ms(&variant["waits"], key));
        assert!(waits.iter().all(|&time| time >= 0.0 && time <= median), "{variant}");
        // Between events a rank does nothing but read the clock.
        assert!((0.0..0.2).contains(&ms(&variant["waits"], "rest_share")), "{variant}");
    }
    assert!(variants[0]["overlap"].is_null(), "{variants:?}");
    assert_eq!(variants[5]["overlap"]["forward"][0]["tile"], 1);
    assert_eq!(variants[5]["overlap"]["forward"][0]["after"], false);
    for [with, without] in [[1, 2], [3, 4]] {
        // The same tiles, none of them in flight while others are transformed.
        let [with, without] = [with, without].map(|at: usize| &variants[at]["overlap"]["forward"][0]);
        if !with.is_null() {
            assert_eq!(
                (with["tile"].clone(), with["cut"].clone()),
                (without["tile"].clone(), without["cut"].clone())
            );
            assert_eq!((&without["window"], &without["polls"]), (&0.into(), &0.into()), "{without}");
        }
    }
    let [wait, wait_0] = [1, 2].map(|at: usize| ms(&variants[at]["waits"], "wait_ms"));
    let hidden = (wait_0 - wait) / ms(&variants[2], "overlappable_ms").min(wait_0);
    assert!((ms(&report, "hidden_fraction") - hidden).abs() <= 1e-9 * hidden.abs(), "{report}");
    let said = stdout(&run(&[&words[..], &["--variants", "th-usual,blocking"]].concat()));
    assert!(said.contains("before the reshape only") && said.contains("speed-up"), "{said}");
    assert!(said.contains("Fy+Fp 8") && !said.contains("hides"), "{said}");
}

#[test]
fn ranks_communicate_over_a_wire() {
    let words = ["bench", "16", "--ranks", "2", "--repeat", "2", "--precision", "f32"];
    let report = told(&[&words[..], &["--wire", "100mbit:3ms", "--breakdown"]].concat());
    assert_eq!(report["wire"], "0.1gbit:3000us");
    assert_eq!(report["nodes"], 2);
    assert_eq!(report["exchange"], "all_to_allv");
    let report = told(&[&words[..], &["--wire", "10gbit", "--tiles", "4,8"]].concat());
    assert_eq!(list(&report, "sweep").len(), 2);
}

#[test]
fn tiles_change_no_bit_of_a_file() {
    let folder = Folder::new();
    let values: Vec<u8> =
        (0..2 * 6 * 8 * 10).flat_map(|n| (f64::from(n) * 0.7).sin().to_le_bytes()).collect();
    let input = folder.file("in.npy", &npy("'<c16'", &[6, 8, 10], &values));
    let result = |name: &str, more: &[&str]| {
        let words = ["transform", &input, &folder.word(name), "--ranks", "2"];
        let output = run(&[&words[..], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        doubles(&folder.path(name)).iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    let whole = result("whole.npy", &["--exchange", "all_to_allv"]);
    assert_eq!(result("tiles.npy", &["--tiles", "3", "--window", "2", "--polls", "1", "--cut", "-1"]), whole);
    let said = stdout(&run(&["plan", "6x8x10", "--ranks", "2", "--tiles", "3", "--cut", "2"]));
    assert!(said.contains("3 along axis 2, window 2, polls 8") && said.contains("all_to_allv"), "{said}");
    let plan: Value =
        serde_json::from_slice(&run(&["plan", "8", "--ranks", "2", "--tiles", "3", "--json"]).stdout)
            .unwrap();
    assert_eq!(plan["recipe"]["overlap"]["forward"][0]["tile"], 3);
}

#[test]
fn contradictory_arguments_are_refused() {
    let folder = Folder::new();
    let input = folder.npy("in.npy", "<c16", &[4, 6]);
    let output = folder.word("out.npy");
    for start in [&["bench", "8"][..], &["plan", "8"], &["tune", "8"], &["transform", &input, &output]] {
        let refused = |words: &[&str], part: &str| assert_refused(&run(&[start, words].concat()), part);
        refused(&["--tiles", "many"], "--tiles");
        refused(&["--tiles", "-1"], "-1");
        refused(&["--window", "2"], "--tiles");
        refused(&["--polls", "2"], "--tiles");
        refused(&["--cut", "1"], "--tiles");
        refused(&["--tiles", "4", "--cut", "3"], "--cut: there is no axis 3");
        refused(&["--tiles", "4", "--cut", "x"], "--cut");
        for wire in ["fast", "10", "0gbit:1us", "10gbit:-1us", "10gbit:5", "nangbit"] {
            refused(&["--ranks", "2", "--wire", wire], "--wire");
        }
        refused(&["--ranks", "2", "--wire", "10gbit:5us", "--exchange", "direct"], "direct");
        if start[0] != "bench" {
            refused(&["--tiles", "4,8"], "are for bench");
        }
        let direct = ["--ranks", "2", "--exchange", "direct", "--tiles", "4"];
        refused(&direct, "exchange direct sends no messages");
    }
    let refused = |words: &[&str], part: &str| assert_refused(&run(&[&["bench", "8"], words].concat()), part);
    refused(
        &["--ranks", "2", "--variants", "blocking,old"],
        "unknown variant `old`; known are: blocking, new, new-0, th, th-0, th-usual",
    );
    refused(&["--variants", "new"], "at least 2 ranks");
    refused(&["--ranks", "2", "--variants", "new", "--tiles", "4"], "leave out --tiles and --svg");
    refused(&["--ranks", "2", "--variants", "new", "--exchange", "direct"], "sends no messages");
    refused(&["--ranks", "2", "--variants", "new", "--budget", "soon"], "`soon` is not a time");
    refused(&["--budget", "1s"], "--variants");
    refused(&["--trace", "trace.txt"], "must end in .json or .svg");
    refused(&["--trace", "/no/such/folder/x.json"], "no folder /no/such/folder");
    refused(&["--tiles", "2,4", "--svg", "/no/such/folder/x.svg"], "no folder");
    refused(&["--tiles", "4", "--svg", "x.svg"], "--tiles 4,8,16");
    refused(&["--tiles", "2,4", "--against", "fftw"], "--against");
    for words in [&["--breakdown"][..], &["--trace", "x.svg"], &["--tiles", "4"], &["--variants", "new"]] {
        refused(&[&["--exchange-only", "--ranks", "2"], words].concat(), "--exchange-only excludes");
    }
    assert_eq!(folder.names(), ["in.npy"]);
}
