//! Random problems against the oracle, and large ones against what must hold
//! of every Fourier transform.

use crate::common;

use common::{Local, MODES, Number, Oracle, Run, choice, exchanges, from_f64, kernels, plan_of, to_f64};
use ferrier::{LayoutSpec, Order, Problem, Result};
use ferrier_test::cases::{Case, Kind, ORDERS, Scale, Split};
use ferrier_test::dft::{Direction, dft, twiddles};
use ferrier_test::{Errors, Field, Rng, Sum, tolerance, watchdog};
use num_complex::Complex;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

fn split() -> impl Strategy<Value = Split> {
    prop_oneof![
        4 => Just(Split::Boxes),
        1 => Just(Split::Bricks),
        1 => (0..3_usize).prop_map(Split::Slabs),
        1 => (0..3_usize).prop_map(Split::Pencils),
    ]
}

fn output() -> impl Strategy<Value = Split> {
    prop_oneof![7 => split(), 1 => Just(Split::Best)]
}

fn scale() -> impl Strategy<Value = Scale> {
    prop_oneof![Just(Scale::Unscaled), Just(Scale::Full), Just(Scale::Symmetric)]
}

/// Any problem whose transform the oracle can do in a blink.
fn any_case() -> impl Strategy<Value = Case> {
    let axes = proptest::sample::subsequence(vec![0, 1, 2], 1..=3).prop_shuffle();
    let order = proptest::sample::select(ORDERS.to_vec());
    (
        ([1..=13_usize, 1..=13_usize, 1..=13_usize], axes, any::<proptest::sample::Index>(), any::<bool>()),
        (1..=3_usize, split(), output(), order.clone(), order, (scale(), scale())),
    )
        .prop_map(|((shape, axes, halved, real), (batch, input, output, order_in, order_out, scale))| {
            let kind = if real { Kind::R2c(axes[halved.index(axes.len())]) } else { Kind::C2c };
            let line = String::from("random case");
            Case { line, shape, kind, axes, batch, first: 0, input, output, order_in, order_out, scale }
        })
}

#[test]
fn random_problems_match_the_oracle() {
    let _watchdog = watchdog(120);
    // The same problems every time, unless FERRIER_SEED is set.
    let mut seed = [0; 32];
    let rng = Rng::for_test(77);
    seed[..8].copy_from_slice(&rng.seed().to_le_bytes());
    let config = Config {
        cases: if common::thin() { 30 } else { 400 },
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let oracle = Oracle::default();
    let names = (proptest::sample::select(exchanges()), proptest::sample::select(kernels()));
    let how = (1..=9_usize, 1..=2_usize, any::<u64>(), any::<bool>(), names);
    let outcome =
        runner.run(&(any_case(), how), |(case, (ranks, threads, boxes, single, (exchange, kernel)))| {
            let mut rng = Rng::new(boxes);
            let nodes = common::nodes(exchange, ranks, boxes as usize % 4);
            let run =
                Run { case: &case, ranks, nodes, threads, choice: choice(exchange, kernel), modes: &MODES };
            if single {
                run.check::<f32>(&oracle, &mut rng)
            } else {
                run.check::<f64>(&oracle, &mut rng)
            }
            Ok(())
        });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

// ---- large sizes -----------------------------------------------------------

/// A large problem on ranks: the input by global index, and what to say of the output.
struct Large {
    shape: [usize; 3],
    ranks: usize,
    real: bool,
    input: LayoutSpec,
    output: LayoutSpec,
}

impl Large {
    fn problem(&self) -> Problem {
        let base = if self.real { Problem::r2c(self.shape) } else { Problem::c2c(self.shape) };
        base.input(self.input.clone()).output(self.output.clone())
    }

    /// Transforms some inputs with one plan; `judge` sees a rank's part of all the outputs.
    fn run<T: Number, R: Send>(
        &self,
        turn: usize,
        inputs: &[&(dyn Fn([usize; 3]) -> Complex<f64> + Sync)],
        judge: impl Fn(Local, &[Vec<Complex<T>>]) -> R + Sync,
    ) -> Vec<R> {
        let exchange = exchanges()[turn % exchanges().len()];
        let kernel = kernels()[turn % kernels().len()];
        let outcome: Result<Vec<R>> = ferrier::ranks(self.ranks).threads(1 + turn % 3).run(|comm| {
            let mut plan = plan_of::<T>(&comm, &self.problem(), &choice(exchange, kernel))?;
            let (mut x, mut y) = (plan.make_input()?, plan.make_output()?);
            let mut outputs = Vec::new();
            for input in inputs {
                if self.real {
                    x.fill_real(|_, at| T::rounded(input(at).re));
                } else {
                    x.fill_complex(|_, at| from_f64(input(at)));
                }
                y.complex_mut().fill(Complex::new(T::rounded(f64::NAN), T::rounded(f64::NAN)));
                plan.forward(&x, &mut y)?;
                outputs.push(y.complex().to_vec());
            }
            let tile = common::tile(plan.output_box());
            Ok(judge(Local { tile, order: plan.output_layout().order().axes(), batch: 1 }, &outputs))
        });
        outcome.unwrap_or_else(|error| panic!("{exchange}, {kernel}: {error}"))
    }

    fn points(&self) -> usize {
        self.shape.iter().product()
    }

    fn spectrum_points(&self) -> usize {
        if self.real { self.points() / self.shape[2] * (self.shape[2] / 2 + 1) } else { self.points() }
    }

    /// Asserts that the errors of all ranks, merged, are at most `times` the tolerance.
    fn check_errors<T: Number>(&self, what: &str, found: &[Errors], times: f64) {
        let mut errors = Errors::default();
        found.iter().for_each(|rank| errors.merge(rank));
        if let Err(why) = errors.within(times * tolerance::<T>(self.points()), self.spectrum_points()) {
            panic!("{what} of {:?} on {} ranks, {}: {why}", self.shape, self.ranks, T::NAME);
        }
    }
}

fn large() -> Vec<Large> {
    let order = |axes| Order::new(axes).unwrap();
    vec![
        Large {
            shape: [96, 80, 72],
            ranks: 4,
            real: false,
            input: LayoutSpec::slabs(0),
            output: LayoutSpec::slabs(0),
        },
        Large {
            shape: [96, 80, 72],
            ranks: 6,
            real: true,
            input: LayoutSpec::bricks().order(Order::F),
            output: LayoutSpec::pencils(0).order(order([1, 2, 0])),
        },
        Large {
            shape: [128, 128, 128],
            ranks: 4,
            real: false,
            input: LayoutSpec::pencils(2),
            output: LayoutSpec::unconstrained(),
        },
        Large {
            shape: [61, 64, 101],
            ranks: 3,
            real: true,
            input: LayoutSpec::slabs(1),
            output: LayoutSpec::bricks(),
        },
    ]
}

/// A product `u(i) v(j) w(k)` has the product of three 1-D transforms as its
/// spectrum, and those the oracle can do at any length. Two of them added.
fn products<T: Number>(turn: usize, case: &Large) {
    let real = case.real;
    let factor = |term: usize, axis: usize| -> Vec<Complex<f64>> {
        let field = Field::new(40 + term as u64, 53);
        let value =
            |i| if real { field.real(axis, [i, 0, 0]).into() } else { field.complex(axis, [i, 0, 0]) };
        (0..case.shape[axis]).map(value).collect()
    };
    let terms: Vec<[Vec<_>; 2]> = (0..6)
        .map(|at| {
            let x = factor(at / 3, at % 3);
            let y = dft(&x, [1, 1, x.len()], &[2], Direction::Forward, 1.0);
            [x, y]
        })
        .collect();
    let at = |side: usize, [i, j, k]: [usize; 3]| {
        let one = |t: usize| terms[3 * t][side][i] * terms[3 * t + 1][side][j] * terms[3 * t + 2][side][k];
        one(0) + one(1)
    };
    let found = case.run::<T, _>(turn, &[&|p| at(0, p)], |local, outputs| {
        let mut errors = Errors::default();
        local.walk().zip(&outputs[0]).for_each(|((_, q), got)| errors.add(to_f64(*got), at(1, q)));
        errors
    });
    // The input is rounded too: one more epsilon.
    case.check_errors::<T>("a sum of products", &found, 1.0 + 1.0 / (case.points() as f64).log2());
}

#[test]
fn large_products_of_lines() {
    let _watchdog = watchdog(120);
    for (turn, case) in large().iter().enumerate() {
        products::<f64>(turn, case);
        products::<f32>(turn + 1, case);
    }
}

#[test]
fn large_impulses_become_waves() {
    let _watchdog = watchdog(120);
    for (turn, case) in large().iter().enumerate() {
        let p = [0, 1, 2].map(|d| (case.shape[d] * (d + 2)) / 7 + 1);
        let w: Vec<_> = case.shape.iter().map(|&n| twiddles(n)).collect();
        let found =
            case.run::<f64, _>(turn, &[&|at| f64::from(u8::from(at == p)).into()], |local, outputs| {
                let mut errors = Errors::default();
                for ((_, q), got) in local.walk().zip(&outputs[0]) {
                    let wave = (0..3).map(|d| w[d][p[d] * q[d] % case.shape[d]]).product();
                    errors.add(to_f64(*got), wave);
                }
                errors
            });
        case.check_errors::<f64>("an impulse", &found, 1.0);
    }
}

#[test]
fn large_transforms_are_linear() {
    let _watchdog = watchdog(120);
    let (f, g) = (Field::new(51, 53), Field::new(52, 53));
    let (a, b) = (0.625, -1.75);
    for (turn, case) in large().iter().enumerate() {
        let x = |at| f.complex(0, at);
        let y = |at| g.complex(0, at);
        let both = |at: [usize; 3]| x(at) * a + y(at) * b;
        let found = case.run::<f64, _>(turn + 1, &[&x, &y, &both], |_, outputs| {
            let mut errors = Errors::default();
            for ((x, y), both) in outputs[0].iter().zip(&outputs[1]).zip(&outputs[2]) {
                errors.add(*both, x * a + y * b);
            }
            errors
        });
        case.check_errors::<f64>("linearity", &found, 2.0);
    }
}

#[test]
fn large_shifts_turn_phases() {
    let _watchdog = watchdog(120);
    let f = Field::new(53, 53);
    for (turn, case) in large().iter().enumerate() {
        let n = case.shape;
        let shift = [5, n[1] / 2 + 1, n[2] - 3];
        let w: Vec<_> = n.iter().map(|&n| twiddles(n)).collect();
        let x = |at| f.complex(0, at);
        let moved = |at: [usize; 3]| x([0, 1, 2].map(|d| (at[d] + n[d] - shift[d]) % n[d]));
        let found = case.run::<f64, _>(turn + 2, &[&x, &moved], |local, outputs| {
            let mut errors = Errors::default();
            for (((_, q), x), moved) in local.walk().zip(&outputs[0]).zip(&outputs[1]) {
                let phase: Complex<f64> = (0..3).map(|d| w[d][shift[d] * q[d] % n[d]]).product();
                errors.add(*moved, x * phase);
            }
            errors
        });
        case.check_errors::<f64>("a shift", &found, 2.0);
    }
}

#[test]
fn large_spectra_keep_the_energy() {
    let _watchdog = watchdog(120);
    let f = Field::new(54, 53);
    for (turn, case) in large().iter().enumerate() {
        let n = case.shape;
        let x = |at| if case.real { f.real(0, at).into() } else { f.complex(0, at) };
        let before = ferrier_test::dft::indices(n).map(|at| x(at).norm_sqr()).collect::<Sum>().value();
        let found = case.run::<f64, _>(turn + 3, &[&x], |local, outputs| {
            let weigh = |q: [usize; 3]| if case.real && q[2] != 0 && 2 * q[2] != n[2] { 2.0 } else { 1.0 };
            local.walk().zip(&outputs[0]).map(|((_, q), y)| weigh(q) * y.norm_sqr()).collect::<Sum>().value()
        });
        let after = found.into_iter().collect::<Sum>().value() / case.points() as f64;
        let error = (after / before - 1.0).abs();
        assert!(error < 2.0 * tolerance::<f64>(case.points()), "{n:?}: energy is off by {error:.2e}");
    }
}
