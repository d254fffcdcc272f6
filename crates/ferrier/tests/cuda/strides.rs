//! Arrays with strides on a GPU: the results of arrays without gaps, and nothing between the elements is touched.

use ferrier::{
    Array, ArrayStrides, Choice, Comm, Complex, Data, DataMut, Fields, FieldsMut, LayoutSpec, Order, Problem,
    Result, Sign,
};
use ferrier_test::watchdog;

use crate::{EXCHANGES, KERNELS, download, gpu, planner};

const CANARY: f64 = -12345.678;

/// An element of the first part of an array in place, or of an array of one kind.
fn at(array: &Array<f64>, real: bool, b: usize, index: [usize; 3]) -> Option<Complex<f64>> {
    match real {
        true => array.real_index(b, index).map(|at| array.real()[at].into()),
        false => array.complex_index(b, index).map(|at| array.complex()[at]),
    }
}

fn fill(array: &mut Array<f64>, real: bool) {
    array.scalars_mut().fill(CANARY);
    let value = |b: usize, [i, j, k]: [usize; 3]| ((7 * i + 5 * j + 3 * k + 11 * b) % 13) as f64 - 6.0;
    match real {
        true => array.fill_real(value),
        false => array.fill_complex(|b, at| Complex::new(value(b, at), at[0] as f64)),
    }
}

/// The largest difference of the elements of two arrays; panics where memory outside the box has changed.
fn difference(plain: &Array<f64>, strided: &Array<f64>, real: bool, batch: usize) -> f64 {
    let part = if real { plain.real_box() } else { plain.local_box() };
    let (mut inside, mut most) = (0, 0.0_f64);
    for b in 0..batch {
        for i in part.lo[0]..part.hi[0] {
            for j in part.lo[1]..part.hi[1] {
                for k in part.lo[2]..part.hi[2] {
                    let [one, two] = [plain, strided].map(|array| at(array, real, b, [i, j, k]).unwrap());
                    most = most.max((one - two).norm());
                    inside += if real { 1 } else { 2 };
                }
            }
        }
    }
    let canaries = strided.scalars().iter().filter(|&&value| value == CANARY).count();
    assert_eq!(canaries, strided.scalars().len() - inside, "memory outside the box has changed");
    most
}

/// Ghost cells around the box at one end, interleaved arrays at the other.
fn strided(comm: &Comm, problem: &Problem, turned: bool) -> Result<Problem> {
    let (input, output) = problem.layouts(comm.size())?;
    let [from, to] = [Some(input), output]
        .map(|layout| layout.map_or([0; 3], |layout| layout.boxes()[comm.rank()].shape()));
    let ghosts = |shape: [usize; 3]| ArrayStrides::inside(shape.map(|n| n + 3), [1, 2, 1], Order::C);
    let side_by_side = |shape| ArrayStrides::interleaved(shape, problem.batch, Order::C).offset(2);
    Ok(match turned {
        false => problem.clone().input_strides(ghosts(from)).output_strides(side_by_side(to)),
        true => problem.clone().input_strides(side_by_side(from)).output_strides(ghosts(to)),
    })
}

#[test]
fn strides_are_those_of_the_user() {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(600);
    let problems = [
        Problem::c2c([16, 12, 10]).batch(3),
        Problem::r2c([8, 10, 12]).batch(2).input(LayoutSpec::bricks()),
        Problem::c2c([7, 11, 26]).output(LayoutSpec::pencils(0)),
        Problem::c2c([16, 16, 16]).sign(Sign::Positive),
    ];
    for (number, problem) in problems.iter().enumerate() {
        for (turn, exchange) in EXCHANGES.into_iter().enumerate() {
            let (kernel, ranks) = (KERNELS[(number + turn) % 3], [1, 2, 4][turn % 3]);
            let choice = Choice::new().exchange(exchange).kernel(kernel);
            let run = |comm: Comm| -> Result<()> {
                let (real, batch) = (problem.is_real(), problem.batch);
                let mut plain = planner(problem, &choice, &gpu).draft::<f64>(&comm)?.build()?;
                let strided = strided(&comm, problem, turn % 2 == 1)?;
                let mut plan = planner(&strided, &choice, &gpu).draft::<f64>(&comm)?.build()?;
                let mut found = Vec::new();
                for plan in [&mut plain, &mut plan] {
                    let mut host = plan.make_host_input()?;
                    fill(&mut host, real);
                    let mut modes = plan.make_host_output()?;
                    modes.scalars_mut().fill(CANARY);
                    let (mut x, mut y) = (plan.make_input()?, plan.make_output()?);
                    x.upload(&host)?;
                    y.upload(&modes)?;
                    plan.forward(&x, &mut y)?;
                    host.scalars_mut().fill(CANARY);
                    x.upload(&host)?;
                    plan.backward(&y, &mut x)?;
                    plan.synchronize()?;
                    x.download(&mut host)?;
                    y.download(&mut modes)?;
                    found.push((modes, host));
                }
                // Whole arrays without gaps may go by cuFFT's own plan.
                let bound = if kernel == "native" { 0.0 } else { 1e-9 };
                let told = format!("{problem:?}, {exchange}, {kernel}, {ranks} ranks");
                assert!(difference(&found[0].0, &found[1].0, false, batch) <= bound, "forward: {told}");
                assert!(difference(&found[0].1, &found[1].1, real, batch) <= bound, "backward: {told}");
                Ok(())
            };
            ferrier::ranks(ranks).run(run).unwrap_or_else(|error| panic!("{exchange}, {kernel}: {error}"));
        }
    }
}

/// In place: lines that return to their places, and strides that need a work array.
#[test]
fn strides_in_place() {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(600);
    for (ranks, differ) in [(1, false), (1, true), (2, false), (2, true)] {
        let problem = Problem::c2c([12, 10, 14]).batch(2);
        let run = |comm: Comm| -> Result<()> {
            let shape = problem.layouts(ranks)?.0.boxes()[comm.rank()].shape();
            let ghosts = ArrayStrides::inside(shape.map(|n| n + 2), [1; 3], Order::C);
            let output = if differ { ArrayStrides::interleaved(shape, 2, Order::C) } else { ghosts };
            let strided = problem.clone().input_strides(ghosts).output_strides(output);
            let mut plan = planner(&strided, &Choice::new(), &gpu).draft::<f64>(&comm)?.build()?;
            let mut host = plan.make_host_in_place()?;
            fill(&mut host, false);
            let mut wanted = plan.make_host_in_place()?;
            fill(&mut wanted, false);
            let mut array = plan.make_in_place()?;
            array.upload(&host)?;
            plan.call().forward_in_place(&mut array)?;
            plan.call().backward_in_place(&mut array)?;
            plan.synchronize()?;
            array.download(&mut host)?;
            let part = host.local_box();
            for b in 0..2 {
                for i in part.lo[0]..part.hi[0] {
                    for j in part.lo[1]..part.hi[1] {
                        for k in part.lo[2]..part.hi[2] {
                            let [got, want] =
                                [&host, &wanted].map(|array| at(array, false, b, [i, j, k]).unwrap());
                            assert!((got - want).norm() < 1e-12, "{ranks} ranks, {differ}: {got} for {want}");
                        }
                    }
                }
            }
            Ok(())
        };
        ferrier::ranks(ranks).run(run).unwrap_or_else(|error| panic!("{ranks} ranks, {differ}: {error}"));
    }
}

/// Arrays of a batch that were allocated one by one: the results of a batch in one array.
#[test]
fn lists_of_fields() {
    let Some(gpu) = gpu() else { return };
    let _watchdog = watchdog(300);
    let problems = [
        Problem::c2c([16, 12, 10]).batch(3),
        Problem::r2c([8, 10, 12]).batch(2).input(LayoutSpec::bricks()),
        Problem::c2c([7, 11, 26]).batch(4).output(LayoutSpec::pencils(0)),
        Problem::mixed([6, 8, 10], [ferrier::Kind::Identity; 3])
            .complex_values()
            .batch(3)
            .output(LayoutSpec::slabs(2)),
    ];
    for (number, problem) in problems.iter().enumerate() {
        for (turn, exchange) in EXCHANGES.into_iter().enumerate() {
            let (kernel, ranks) = (KERNELS[(number + turn) % 3], [1, 2, 4][(turn + number) % 3]);
            let choice = Choice::new().exchange(exchange).kernel(kernel);
            let told = format!("{problem:?}, {exchange}, {kernel}, {ranks} ranks");
            let run = |comm: Comm| -> Result<()> {
                let (real, batch) = (problem.is_real(), problem.batch);
                let mut plan = planner(problem, &choice, &gpu).draft::<f64>(&comm)?.build()?;
                let mut host = plan.make_host_input()?;
                fill(&mut host, real);
                let (mut x, mut y) = (plan.make_input()?, plan.make_output()?);
                x.upload(&host)?;
                plan.call().scale(0.5).forward(&x, &mut y)?;
                plan.synchronize()?;
                let modes = download(&y)?;
                // The same values in arrays of their own, in another order of memory than in the list.
                let stream = gpu.context().new_stream().unwrap();
                let part =
                    |all: &[f64], b: usize| all[b * all.len() / batch..(b + 1) * all.len() / batch].to_vec();
                let fields = |all: &[f64]| -> Vec<_> {
                    let mut made: Vec<_> =
                        (0..batch).rev().map(|b| stream.clone_htod(&part(all, b)).unwrap()).collect();
                    made.reverse();
                    made
                };
                let input = fields(host.scalars());
                let mut output = fields(&vec![CANARY; modes.len()]);
                let sources: Vec<_> = input.iter().collect();
                plan.call()
                    .scale(0.5)
                    .forward(&Fields(&sources), &mut FieldsMut(&mut output.iter_mut().collect::<Vec<_>>()))?;
                plan.synchronize()?;
                for (b, field) in output.iter().enumerate() {
                    let got = stream.clone_dtoh(field).unwrap();
                    stream.synchronize().unwrap();
                    let bound = if kernel == "native" { 0.0 } else { 1e-9 };
                    let wanted = part(&modes, b);
                    let worst = got.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    assert!(got.len() == wanted.len() && worst <= bound, "array {b}: {worst:e}: {told}");
                }
                // A list to an array, and back to a list.
                let mut back = fields(&vec![CANARY; host.scalars().len()]);
                let spectra: Vec<_> = output.iter().collect();
                plan.backward(&Fields(&spectra), &mut x)?;
                plan.backward(&y, &mut FieldsMut(&mut back.iter_mut().collect::<Vec<_>>()))?;
                plan.synchronize()?;
                let whole = download(&x)?;
                for (b, field) in back.iter().enumerate() {
                    let got = stream.clone_dtoh(field).unwrap();
                    stream.synchronize().unwrap();
                    let worst =
                        got.iter().zip(part(&whole, b)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    assert!(worst <= 1e-9, "back, array {b}: {worst:e}: {told}");
                }
                if comm.size() == 1 {
                    let few = plan.forward(&Fields(&sources[1..]), &mut y).unwrap_err().to_string();
                    assert!(few.contains("the batch of the plan"), "{few}");
                }
                Ok(())
            };
            let outcome = ferrier::ranks(ranks).run(run);
            assert!(outcome.is_ok(), "{told}: {outcome:?}");
        }
    }
}

#[test]
fn what_gpus_cannot_do_is_refused() {
    let Some(gpu) = gpu() else { return };
    let refused = |problem: Problem| {
        let run = |comm: Comm| planner(&problem, &Choice::new(), &gpu).draft::<f64>(&comm).map(drop);
        ferrier::ranks(1).run(run).unwrap_err().to_string()
    };
    assert!(refused(Problem::c2c([4, 4, 4]).real_input(true)).contains("`r2c` takes real input"));
    assert!(refused(Problem::r2c([4, 4, 4]).sign(Sign::Positive)).contains("its conjugate"));
}
