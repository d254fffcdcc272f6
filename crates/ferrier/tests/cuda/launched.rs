//! Ranks that are processes of an `mpiexec`, sharing one GPU: this binary starts itself.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ferrier::{Choice, Comm, Complex, Data, LayoutSpec, Planner, Problem};
use ferrier_test::{tolerance, watchdog};

use crate::{Gpu, against_cpu_with, gpu, planner};

const PATIENCE: Duration = Duration::from_secs(150);

/// Runs `body` on so many processes; what it said.
fn launch(ranks: usize) -> Option<String> {
    gpu()?;
    let mut command = Command::new("mpiexec");
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    command.args(["-n", &ranks.to_string()]).arg(std::env::current_exe().expect("this binary"));
    command.args(["--exact", "launched::body", "--ignored", "--nocapture", "--test-threads=1"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        println!("skipped: no mpiexec");
        return None;
    };
    let started = Instant::now();
    while child.try_wait().expect("mpiexec").is_none() {
        if started.elapsed() > PATIENCE {
            let _ = child.kill();
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("mpiexec");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} ranks: {}\n{text}", ranks, output.status);
    Some(text.into_owned())
}

#[test]
fn processes_share_a_gpu() {
    for ranks in [2, 3] {
        let Some(text) = launch(ranks) else { return };
        assert_eq!(text.matches("rank done").count(), ranks, "{text}");
        text.lines()
            .filter(|line| line.starts_with("messages"))
            .for_each(|line| println!("{ranks} processes: {line}"));
    }
}

fn worst(comm: &Comm, gpu: &Gpu, problem: &Problem, choice: &Choice) -> f64 {
    let own = against_cpu_with::<f64>(comm, gpu, problem, choice).expect("a spectrum");
    comm.max(&[own]).expect("ranks")[0]
}

/// The bits of this rank's spectrum, and whether messages went by way of main memory.
fn bits(comm: &Comm, gpu: &Gpu, problem: &Problem, choice: &Choice) -> (Vec<u64>, bool) {
    let mut plan = planner(problem, choice, gpu).draft::<f64>(comm).unwrap().build().unwrap();
    let (mut from, mut to) = (plan.make_input().unwrap(), plan.make_output().unwrap());
    let number = |i: usize| ((i * 2654435761 + comm.rank() * 97) % 10007) as f64 / 10007.0 - 0.5;
    from.upload(&(0..from.scalars()).map(number).collect::<Vec<f64>>()[..]).unwrap();
    // Twice: what a call leaves behind must not matter.
    for _ in 0..2 {
        plan.forward(&from, &mut to).unwrap();
    }
    let mut got = vec![f64::NAN; to.scalars()];
    to.download(&mut got[..]).unwrap();
    (got.into_iter().map(f64::to_bits).collect(), plan.memory().staging > 0)
}

/// Whatever MPI takes, numbers or pointers to them on the GPU, the result has the same bits.
fn ways_agree(comm: &Comm, gpu: &Gpu, problem: &Problem) {
    let by = |exchange: &str, codec: Option<&str>| {
        let mut choice = Choice::new().exchange(exchange);
        choice.codec = codec.map(String::from);
        choice
    };
    for codec in [None, Some("block:16")] {
        let (want, staged) = bits(comm, gpu, problem, &by("all_to_allv", codec));
        assert!(staged, "collectives take no pointers into a GPU's memory");
        let (got, _) = bits(comm, gpu, problem, &by("ring", codec));
        assert!(got == want, "{problem:?} {codec:?} by ring: other bits");
        let (got, staged) = bits(comm, gpu, problem, &by("point_to_point", codec));
        assert!(got == want, "{problem:?} {codec:?}: other bits");
        println!("messages of {codec:?} go {}", if staged { "by main memory" } else { "from GPU to GPU" });
    }
}

#[test]
#[ignore = "runs under mpiexec, started by the other test"]
fn body() {
    let _watchdog = watchdog(120);
    let comm = ferrier::mpi::world().expect("MPI").expect("a launcher");
    let gpu = gpu().expect("a GPU");
    let problems = [
        Problem::c2c([24, 20, 36]).output(LayoutSpec::slabs(1)),
        Problem::r2c([18, 34, 30]).input(LayoutSpec::bricks()).output(LayoutSpec::pencils(0)).batch(2),
    ];
    for problem in &problems {
        let points = problem.shape().iter().product::<usize>();
        for exchange in ["auto", "all_to_allv", "all_to_all", "point_to_point", "ring"] {
            let exchange = Some(exchange).filter(|name| *name != "auto").map(String::from);
            let mut choice = Choice::new();
            choice.exchange = exchange;
            let error = worst(&comm, &gpu, problem, &choice);
            assert!(error <= 2.0 * tolerance::<f64>(points), "{problem:?} {choice:?}: {error:.1e}");
        }
        let choice = Choice::new().codec("trim:20");
        let error = worst(&comm, &gpu, problem, &choice);
        assert!(error < 1e-5 && error > 1e-9, "{problem:?} encoded: {error:.1e}");
    }
    for (problem, choice) in [
        (problems[0].clone(), Choice::new().exchange("ring").codec("block:16")),
        (problems[0].clone().tolerance(1e-6), Choice::new().exchange("ring")),
        (problems[1].clone().tolerance(1e-6), Choice::new()),
    ] {
        let sent = crate::codecs::certified(&comm, &gpu, &problem, &choice).expect("certified");
        assert!(sent < 0.5, "{choice:?}: {sent} of the bytes");
    }
    // Long messages go another way than short ones.
    ways_agree(&comm, &gpu, &problems[0]);
    ways_agree(&comm, &gpu, &Problem::c2c([96, 80, 64]).output(LayoutSpec::slabs(1)));
    let direct = Choice::new().exchange("direct");
    let told = planner(&problems[0], &direct, &gpu).draft::<f64>(&comm).expect_err("refused").to_string();
    assert!(told.contains("threads of one process"), "{told}");
    apply(&comm, &gpu);
    println!("rank done");
}

/// An operator, with messages on the way there and back.
fn apply(comm: &Comm, gpu: &Gpu) {
    let problem = Problem::c2c([16, 12, 20]).output(LayoutSpec::unconstrained()).operators(true);
    let mut host = Planner::new(&problem).draft::<f64>(comm).unwrap().build().unwrap();
    let mut plan = planner(&problem, &Choice::default(), gpu).draft::<f64>(comm).unwrap().build().unwrap();
    let (mut input, mut want) = (host.make_input().unwrap(), host.make_input().unwrap());
    input.fill_complex(|_, [i, j, k]| Complex::new((i * j) as f64 + 0.5, (k * k) as f64 - 3.0));
    let waves = ferrier::spectral::WaveNumbers::new(plan.recipe(), [1.0; 3]).unwrap();
    let operator = ferrier::spectral::helmholtz(&waves, 2.0);
    host.call().operator(&operator).apply(&input, &mut want).unwrap();
    let (mut from, mut to) = (plan.make_input().unwrap(), plan.make_input().unwrap());
    from.upload(&input).unwrap();
    plan.call().operator(&operator).apply(&from, &mut to).unwrap();
    let mut got = host.make_input().unwrap();
    to.download(&mut got).unwrap();
    let scale = want.scalars().iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let far = got.scalars().iter().zip(want.scalars()).find(|(a, b)| (*a - *b).abs() > 1e-13 * scale);
    assert_eq!(far, None);
}
