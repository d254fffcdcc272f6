//! Under `mpiexec`: ranks that disagree all hear of it, one that fails ends
//! the job, and it does not matter whose arrays and workspaces are whose.
//!
//! ```text
//! mpiexec -n 4 target/debug/examples/mpi_plans          all checks; exit code 0
//! mpiexec -n 4 target/debug/examples/mpi_plans fail     a rank fails in a call: the job must end, not 0
//! mpiexec -n 4 target/debug/examples/mpi_plans panic    a rank panics: the same
//! FERRIER_SHARED_LIMIT=0 mpiexec -n 4 ...               no memory to share: checked instead of the rest
//! ```

use ferrier::exchange::EXCHANGES;
use ferrier::{
    Array, ArrayStrides, Choice, Comm, Complex, Fields, FieldsMut, LayoutSpec, Order, Overlap, Plan, Planner,
    Problem, Result, Tiling, Workspace,
};
use ferrier_test::watchdog;

type Value = Complex<f64>;

fn choice(exchange: &str) -> Choice {
    Choice::new().exchange(exchange)
}

fn plan(comm: &Comm, problem: &Problem, exchange: &str) -> Result<Plan<f64>> {
    Planner::new(problem).choice(choice(exchange)).draft(comm)?.build()
}

/// Bricks to bricks: the ends have no transforms to fold a copy into.
fn problem() -> Problem {
    Problem::c2c([12, 10, 8]).input(LayoutSpec::bricks()).output(LayoutSpec::bricks())
}

fn exchanges(comm: &Comm) -> impl Iterator<Item = &'static str> {
    let one_node = comm.node_count() == 1;
    EXCHANGES.iter().map(|member| member.name).filter(move |&name| one_node || name != "direct")
}

fn fill(array: &mut Array<f64>) -> Vec<Value> {
    array.fill_complex(|_, [i, j, k]| Complex::new((i * 7 + j) as f64 % 5.0, k as f64 - 2.5));
    array.complex().to_vec()
}

/// What must be the same on every rank is.
fn same_everywhere(comm: &Comm, what: &str, text: &str) -> Result<()> {
    let all = comm.all_gather(text.as_bytes())?;
    assert!(all.iter().all(|other| *other == all[0]), "{what}: ranks differ; this one has: {text}");
    Ok(())
}

fn disagreements_reach_everybody(comm: &Comm) -> Result<()> {
    let odd = comm.rank() + 1 == comm.size();
    let shape = if odd { [12, 10, 9] } else { [12, 10, 8] };
    let exchange = if odd { "point_to_point" } else { "all_to_allv" };
    let boxes =
        |last: usize| LayoutSpec::boxes(vec![ferrier::Box3::new([0; 3], [12, 10, last]); comm.size()]);
    let cases: [(&str, Result<Plan<f64>>); 4] = [
        ("shape", Plan::new(comm, &Problem::c2c(shape))),
        ("choice", plan(comm, &problem(), exchange)),
        ("boxes", Plan::new(comm, &Problem::c2c([12, 10, 8]).input(boxes(if odd { 7 } else { 8 })))),
        ("no such exchange", plan(comm, &problem(), "carrier pigeon")),
    ];
    for (what, outcome) in cases {
        let error = outcome.err().map(|error| error.to_string());
        assert!(error.is_some() || comm.size() == 1, "{what}: no error");
        same_everywhere(comm, what, &error.unwrap_or_default())?;
    }
    // The group still works.
    drop(plan(comm, &problem(), "all_to_allv")?);
    Ok(())
}

/// Ghost cells on even ranks, exposed or not, and a list of arrays: the bits of arrays without gaps.
fn strides_do_not_matter(comm: &Comm) -> Result<()> {
    let shape = problem().layouts(comm.size())?.0.boxes()[comm.rank()].shape();
    let ghosts = ArrayStrides::inside(shape.map(|n| n + 2), [1; 3], Order::C);
    let strided = match comm.rank() % 2 {
        0 => problem().input_strides(ghosts).output_strides(ghosts),
        _ => problem(),
    };
    let inside = |array: &Array<f64>| -> Vec<Value> {
        let part = array.local_box();
        let rows = (part.lo[0]..part.hi[0]).flat_map(|i| (part.lo[1]..part.hi[1]).map(move |j| (i, j)));
        let points = rows.flat_map(|(i, j)| (part.lo[2]..part.hi[2]).map(move |k| [i, j, k]));
        points.filter_map(|at| array.complex_index(0, at)).map(|at| array.complex()[at]).collect()
    };
    for exchange in exchanges(comm) {
        let (mut plain, mut plan) = (plan(comm, &problem(), exchange)?, plan(comm, &strided, exchange)?);
        let (mut x, mut y) = (plain.make_input()?, plain.make_output()?);
        let own = fill(&mut x);
        plain.forward(&x, &mut y)?;
        let want = y.complex().to_vec();
        let mut listed = vec![Value::default(); want.len()];
        plain.forward(&Fields(&[&own]), &mut FieldsMut(&mut [&mut listed]))?;
        assert!(listed == want, "{exchange}: a list");
        // Arrays of the plan can be exposed to other processes, those of the user cannot.
        let (mut a, mut b) = (plan.make_input()?, plan.make_output()?);
        fill(&mut a);
        plan.forward(&a, &mut b)?;
        assert!(inside(&b) == want, "{exchange}: strides, arrays of the plan");
        let (field, mut modes) = (a.complex().to_vec(), vec![Value::default(); plan.output_len()]);
        plan.forward(&field, &mut modes)?;
        assert!(modes[..] == b.complex()[..modes.len()], "{exchange}: strides, arrays of the user");
        let mut both = plan.make_in_place()?;
        fill(&mut both);
        plan.call().forward_in_place(&mut both)?;
        assert!(inside(&both) == want, "{exchange}: strides, in place");
    }
    Ok(())
}

/// Rank 0 has nearly all planes, so that the others help it: not with arrays of the user, which they cannot access.
fn uneven_ranks_help_where_they_can(comm: &Comm) -> Result<()> {
    let (n, ranks) = (32, comm.size());
    if comm.node_count() > 1 || ranks == 1 {
        return Ok(());
    }
    let first = |rank: usize| if rank == 0 { 0 } else { n - ranks + rank };
    let part = |rank: usize| ferrier::Box3::new([first(rank), 0, 0], [first(rank + 1), n, n]);
    let problem = Problem::c2c([n; 3])
        .input(LayoutSpec::boxes((0..ranks).map(part).collect()))
        .output(LayoutSpec::slabs(0));
    let choice = choice("direct").threads(1);
    let mut plan: Plan<f64> = Planner::new(&problem).choice(choice).draft(comm)?.build()?;
    let (mut x, mut y) = (plan.make_input()?, plan.make_output()?);
    let own = fill(&mut x);
    plan.forward(&x, &mut y)?;
    let (want, mut out) = (y.complex().to_vec(), vec![Value::default(); y.complex().len()]);
    for call in 0..20 {
        y.complex_mut().fill(Value::default());
        plan.forward(&x, &mut y)?;
        assert!(y.complex() == want, "call {call}: arrays of the plan");
        out.fill(Value::default());
        plan.forward(&own, &mut out)?;
        assert!(out == want, "call {call}: arrays of the user");
    }
    Ok(())
}

fn whose_arrays_does_not_matter(comm: &Comm) -> Result<()> {
    for exchange in exchanges(comm) {
        let (mut one, mut two) = (plan(comm, &problem(), exchange)?, plan(comm, &problem(), exchange)?);
        let (mut x, mut y) = (one.make_input()?, one.make_output()?);
        let own = fill(&mut x);
        one.forward(&x, &mut y)?;
        let want = y.complex().to_vec();
        let check = |what: &str, got: &[Value]| assert!(got == want, "{exchange}: {what}: other bits");
        let empty = || vec![Value::default(); want.len()];

        let mut out = empty();
        one.forward(&own, &mut out)?;
        check("slices of all ranks", &out);
        let mut out = empty();
        match comm.rank() {
            0 => one.forward(&own, &mut out)?,
            _ => one.forward(&x, &mut out[..])?,
        }
        check("a slice of one rank", &out);
        y.complex_mut().fill(Value::default());
        two.forward(&x, &mut y)?;
        check("arrays of another plan", y.complex());

        // One rank has dropped its part of an array that others still use.
        let mut spare = one.make_input()?;
        fill(&mut spare);
        let spare = if comm.rank() == 0 { None } else { Some(spare) };
        let mut out = empty();
        match &spare {
            None => one.forward(&own, &mut out)?,
            Some(spare) => one.forward(spare, &mut out)?,
        }
        check("an array that one rank dropped", &out);

        let mut array = one.make_in_place()?;
        array.complex_mut()[..own.len()].copy_from_slice(&own);
        one.call().forward_in_place(&mut array)?;
        check("in place", &array.complex()[..want.len()]);
        let mut array = own.clone();
        array.resize(own.len().max(want.len()), Value::default());
        one.call().forward_in_place(&mut array)?;
        check("a vector in place", &array[..want.len()]);
    }
    Ok(())
}

fn workspaces(comm: &Comm) -> Result<()> {
    for exchange in exchanges(comm) {
        let mut owner = plan(comm, &problem(), exchange)?;
        let mut plan: Plan<f64> =
            Planner::new(&problem()).choice(choice(exchange)).draft(comm)?.build_without_workspace()?;
        let (mut x, mut y, mut z) = (owner.make_input()?, owner.make_output()?, owner.make_output()?);
        fill(&mut x);
        owner.forward(&x, &mut y)?;
        let mut workspace = plan.make_workspace()?;
        plan.call().workspace(&mut workspace).forward(&x, &mut z)?;
        assert!(y.complex() == z.complex(), "{exchange}: the workspace matters");
        // A private one is refused everywhere, or does as well.
        let mut private = Workspace::new(plan.memory().total())?;
        let outcome = plan.call().workspace(&mut private).forward(&x, &mut z);
        let said = outcome.err().map_or(String::new(), |error| error.to_string());
        assert!(said.is_empty() || said.contains("make_workspace"), "{exchange}: {said}");
        same_everywhere(comm, "a private workspace", &said)?;
    }
    Ok(())
}

/// Tiles in flight do not show in the bits, again and again, there and back.
fn tiles(comm: &Comm) -> Result<()> {
    let problem = Problem::r2c([12, 10, 14]).batch(2);
    for exchange in exchanges(comm) {
        let mut blocking = plan(comm, &problem, exchange)?;
        let (mut x, mut y) = (blocking.make_input()?, blocking.make_output()?);
        x.fill_real(|b, [i, j, k]| ((b + 3 * i + 5 * j + 7 * k) % 11) as f64 - 4.5);
        blocking.forward(&x, &mut y)?;
        let mut back = blocking.make_input()?;
        blocking.backward(&y, &mut back)?;
        for (tile, window) in [(1, 1), (1, 3), (2, 2), (3, 9)] {
            let tiling = Tiling::new(tile).window(window).polls(2);
            let choice = choice(exchange).overlap(Overlap::uniform(tiling));
            let mut flying: Plan<f64> = Planner::new(&problem).choice(choice).draft(comm)?.build()?;
            let (mut out, mut there) = (flying.make_output()?, flying.make_input()?);
            for _ in 0..5 {
                flying.forward(&x, &mut out)?;
                assert!(
                    out.complex() == y.complex(),
                    "{exchange}, tiles of {tile}, {window} at once: forward"
                );
                flying.backward(&out, &mut there)?;
                assert!(
                    there.real() == back.real(),
                    "{exchange}, tiles of {tile}, {window} at once: backward"
                );
            }
        }
    }
    Ok(())
}

/// What is encoded without loss comes out the same, in tiles or not; what loses something loses what
/// it may, and says so alike on every rank.
fn codecs(comm: &Comm) -> Result<()> {
    let problem = Problem::c2c([20, 18, 24]).input(LayoutSpec::bricks());
    let messages =
        |name: &&str| ferrier::exchange::find(name).is_ok_and(|m| m.sends_messages(comm.node_count()));
    let mut raw = plan(comm, &problem, "all_to_allv")?;
    let (mut x, mut y) = (raw.make_input()?, raw.make_output()?);
    x.fill_complex(|_, [i, j, k]| Complex::cis((i * i + 3 * j * k) as f64));
    raw.forward(&x, &mut y)?;
    for exchange in exchanges(comm).filter(messages) {
        for tile in [0, 3] {
            let overlap = Some(Overlap::uniform(Tiling::new(tile)));
            for codec in ["lossless", "f32", "within:1e-5"] {
                let choice = choice(exchange).codec(codec).overlap(overlap.clone());
                let mut plan: Plan<f64> = Planner::new(&problem).choice(choice).draft(comm)?.build()?;
                let mut out = plan.make_output()?;
                for _ in 0..3 {
                    plan.forward(&x, &mut out)?;
                }
                let certificate = plan.certificate().expect("after a transform");
                same_everywhere(comm, "a certificate", &format!("{certificate:?}"))?;
                let pairs = out.complex().iter().zip(y.complex());
                let wrong = pairs.map(|(a, b)| (a - b).norm_sqr()).sum::<f64>();
                let size = y.complex().iter().map(|x| x.norm_sqr()).sum::<f64>();
                let sums = comm.sum(&[wrong, size])?;
                let error = (sums[0] / sums[1]).sqrt();
                let fits = if codec == "lossless" { error == 0.0 } else { error <= certificate.bound() };
                let lossy = comm.size() > 1 && codec != "lossless";
                assert!(fits && (error > 0.0) == lossy, "{exchange}, {codec}, tiles of {tile}: {error:e}");
                assert!(
                    !lossy || plan.wire_bytes() < raw.wire_bytes(),
                    "{exchange}, {codec}: no fewer bytes"
                );
            }
        }
    }
    let mut plan = Plan::<f64>::new(comm, &problem.tolerance(1e-4))?;
    plan.forward(&x, &mut y)?;
    let certificate = plan.certificate().expect("after a transform");
    assert!(certificate.bound() <= 1e-4, "{certificate:?}");
    Ok(())
}

/// With `FERRIER_SHARED_LIMIT=0`.
fn without_memory_to_share(comm: &Comm) -> Result<()> {
    if comm.size() == 1 {
        return Ok(());
    }
    let refused = plan(comm, &problem(), "hierarchical").err().map(|error| error.to_string());
    assert!(refused.as_ref().is_some_and(|text| text.contains("memory")), "{refused:?}");
    same_everywhere(comm, "no memory to share", &refused.unwrap_or_default())?;
    let mut plan = Plan::new(comm, &problem())?;
    assert!(plan.recipe().exchange == "all_to_allv" || comm.node_count() == comm.size());
    assert!(
        comm.node_count() == comm.size() || plan.notes().iter().any(|note| note.contains("instead of")),
        "{:?}",
        plan.notes()
    );
    let (mut x, mut y) = (plan.make_input()?, plan.make_output()?);
    fill(&mut x);
    plan.forward(&x, &mut y)
}

/// What must end the job: the others wait for this rank.
fn end_in(comm: &Comm, how: &str) -> Result<()> {
    let mut plan = Plan::new(comm, &problem())?;
    let (mut x, mut y) = (plan.make_input()?, plan.make_output()?);
    fill(&mut x);
    if comm.rank() + 1 == comm.size() {
        assert!(how != "panic", "planted");
        let short = [Value::default(); 3];
        return plan.forward(&short[..], &mut y);
    }
    plan.forward(&x, &mut y)?;
    println!("mpi_plans: FAILED: a rank {how}ed and rank {} noticed nothing", comm.rank());
    Ok(())
}

fn main() -> Result<()> {
    let _watchdog = watchdog(300);
    let Some(comm) = ferrier::mpi::world()? else {
        println!("mpi_plans: not started by mpiexec, nothing to do");
        return Ok(());
    };
    if let Some(how) = std::env::args().nth(1) {
        return end_in(&comm, &how);
    }
    if std::env::var_os("FERRIER_SHARED_LIMIT").is_some() {
        without_memory_to_share(&comm)?;
    } else {
        disagreements_reach_everybody(&comm)?;
        whose_arrays_does_not_matter(&comm)?;
        strides_do_not_matter(&comm)?;
        uneven_ranks_help_where_they_can(&comm)?;
        workspaces(&comm)?;
        tiles(&comm)?;
        codecs(&comm)?;
    }
    comm.barrier()?;
    if comm.rank() == 0 {
        println!("mpi_plans ok: {} ranks of {} nodes", comm.size(), comm.node_count());
    }
    Ok(())
}
