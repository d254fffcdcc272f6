//! `ferrier transform` equals numpy: any shape up to 3-D, any layouts, 1 to 12
//! ranks, every exchange, both directions, real and complex, all scales, both
//! precisions, C and Fortran order, both byte orders.
//!
//! Needs a Python with numpy: that of FERRIER_PYTHON, or `python3`. Where it
//! has none the test fails, unless FERRIER_SKIP_NUMPY is set.

use std::env;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

/// splitmix64: cases are the same wherever the seed is.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

fn python(arguments: &[&str]) -> std::process::Output {
    let python = env::var("FERRIER_PYTHON").unwrap_or_else(|_| "python3".into());
    Command::new(&python)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("cannot run {python}: {error}"))
}

/// The names of a table, as `ferrier info` lists them.
fn names(table: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_ferrier")).args(["info", "--json"]).output().unwrap();
    let info: Value = serde_json::from_slice(&output.stdout).unwrap();
    info[table].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_string()).collect()
}

/// A layout that an array of `ndim` axes can have, and perhaps a grid for it.
fn layout(random: &mut Random, ndim: usize, ranks: usize, side: &str) -> Vec<String> {
    let axis = random.below(ndim);
    let mut grid = vec![1; ndim];
    let name = match random.below(3) {
        0 => {
            scatter(random, ranks, &mut grid, &(0..ndim).collect::<Vec<_>>());
            "bricks".to_string()
        }
        1 => {
            grid[axis] = ranks;
            format!("slabs:{axis}")
        }
        _ => {
            let others: Vec<_> = (0..ndim).filter(|&a| a != axis).collect();
            scatter(random, ranks, &mut grid, &others);
            format!("pencils:{axis}")
        }
    };
    let mut arguments = vec![format!("--{side}-layout"), name];
    if grid.iter().product::<usize>() == ranks && random.chance(50) {
        let grid = grid.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        arguments.extend([format!("--{side}-grid"), grid]);
    }
    arguments
}

/// Spreads the prime factors of `ranks` over some axes of a grid.
fn scatter(random: &mut Random, mut ranks: usize, grid: &mut [usize], axes: &[usize]) {
    if axes.is_empty() {
        return;
    }
    for prime in [2, 3, 5, 7, 11] {
        while ranks.is_multiple_of(prime) {
            ranks /= prime;
            grid[random.pick(axes)] *= prime;
        }
    }
}

fn case(random: &mut Random, id: usize, ranks: usize, exchange: &str, kernel: &str) -> Value {
    let ndim = random.pick(&[1, 2, 3, 3, 3]);
    let longest = if ndim == 1 { 1200 } else { 24 };
    let mut shape: Vec<usize> = (0..ndim).map(|_| 1 + random.below(longest)).collect();
    let real = random.chance(40);
    let forward = random.chance(60);
    let mut axes: Vec<usize> = (0..ndim).collect();
    (1..ndim).for_each(|i| axes.swap(i, random.below(i + 1)));
    axes.truncate(1 + random.below(ndim));
    let axes = random.chance(50).then_some(axes);
    let halved = axes.as_ref().map_or(ndim - 1, |axes| *axes.last().unwrap());
    let mut last = None;
    if real && !forward {
        // Half of them by default, which needs two frequencies; half with --last.
        let n = 1 + random.below(longest);
        shape[halved] = if random.chance(50) { n / 2 + 1 } else { shape[halved].max(2) };
        if shape[halved] == n / 2 + 1 {
            last = Some(n);
        }
    }
    let complex_file = if real { !forward } else { random.chance(70) };
    let order = random.pick(&["<", "<", "<", ">"]);
    let dtype = format!("{order}{}", random.pick(if complex_file { &["c8", "c16"] } else { &["f4", "f8"] }));
    let scale = random.pick(&["numpy", "numpy", "none", "full", "symmetric"]);

    let mut arguments = vec!["--ranks".into(), ranks.to_string(), "--exchange".into(), exchange.into()];
    arguments.extend(["--kernel".into(), kernel.into()]);
    if random.chance(80) {
        arguments.extend(layout(random, ndim, ranks, "in"));
    }
    if random.chance(80) {
        arguments.extend(layout(random, ndim, ranks, "out"));
    } else if forward {
        arguments.extend(["--out-layout".into(), random.pick(&["best", "same"]).into()]);
    }
    if random.chance(30) {
        arguments.extend(["--threads".into(), (1 + random.below(3)).to_string()]);
    }
    if random.chance(20) {
        arguments.push("--reproducible".into());
    }
    if let Some(axes) = &axes {
        // Negative axes mean the same.
        let negative = random.chance(20);
        let name = |&axis: &usize| if negative { format!("-{}", ndim - axis) } else { axis.to_string() };
        arguments.extend(["--axes".into(), axes.iter().map(name).collect::<Vec<_>>().join(",")]);
    }
    if real {
        arguments.push("--real".into());
    }
    if let Some(last) = last {
        arguments.extend(["--last".into(), last.to_string()]);
    }
    if scale != "numpy" {
        arguments.extend(["--scale".into(), scale.into()]);
    }
    let direction = if forward { "forward" } else { "backward" };
    if !forward {
        arguments.extend(["--direction".into(), direction.into()]);
    }
    json!({
        "id": id, "shape": shape, "dtype": dtype, "fortran": random.chance(40), "version": [random.pick(&[1, 1, 2, 3]), 0],
        "direction": direction, "real": real, "last": last, "axes": axes, "scale": scale, "arguments": arguments,
    })
}

/// Runs the command on every case, two at a time.
fn transform_all(folder: &Path, cases: &[Value]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let output = Command::new(env!("CARGO_BIN_EXE_ferrier"))
                        .arg("transform")
                        .arg(folder.join(format!("in_{}.npy", case["id"])))
                        .arg(folder.join(format!("out_{}.npy", case["id"])))
                        .args(case["arguments"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()))
                        .output()
                        .unwrap();
                    if !output.status.success() {
                        let said = String::from_utf8_lossy(&output.stderr);
                        failures.lock().unwrap().push(format!("{} {}: {case}", output.status, said.trim()));
                    }
                }
            });
        }
    });
    failures.into_inner().unwrap()
}

#[test]
fn transforms_equal_numpys() {
    if !python(&["-c", "import numpy"]).status.success() {
        assert!(
            env::var_os("FERRIER_SKIP_NUMPY").is_some(),
            "numpy cannot be imported: install it (FERRIER_PYTHON names the Python), or set FERRIER_SKIP_NUMPY"
        );
        println!("skipped: numpy cannot be imported");
        return;
    }
    let seed = env::var("FERRIER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_260_101);
    let rounds = env::var("FERRIER_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3);
    println!("FERRIER_SEED={seed} FERRIER_ROUNDS={rounds}");
    let mut random = Random(seed);
    let (exchanges, kernels) = (names("exchanges"), names("kernels"));
    let mut cases = Vec::new();
    for _ in 0..rounds {
        for ranks in 1..=12 {
            for exchange in &exchanges {
                for kernel in &kernels {
                    cases.push(case(&mut random, cases.len(), ranks, exchange, kernel));
                }
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cases.json"), serde_json::to_vec(&cases).unwrap()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/numpy_cases.py");
    let path = folder.path().to_str().unwrap();
    let made = python(&[script, "make", path]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let failures = transform_all(folder.path(), &cases);
    assert!(failures.is_empty(), "{} of {} failed:\n{}", failures.len(), cases.len(), failures.join("\n"));
    let checked = python(&[script, "check", path]);
    let said = String::from_utf8_lossy(&checked.stdout);
    print!("{said}");
    assert!(checked.status.success(), "{said}{}", String::from_utf8_lossy(&checked.stderr));
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "left behind: {left:?}");
}
