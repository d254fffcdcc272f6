//! A mixed or pruned problem in words that do not come from the library, run
//! on ranks and held against the oracle.

use ferrier::{Choice, DataMut, Keep, Kind, LayoutSpec, Plan, Problem, Result, Scale};
use ferrier_test::dft::indices;
use ferrier_test::mixed::{self, Axis, Wave};
use ferrier_test::tiling::walk;
use ferrier_test::{Errors, Field, Tile, tolerance};
use num_complex::Complex;

use crate::common::{self, Mode, Number, plan_of};

pub const WAVES: [Kind; 8] =
    [Kind::Dct1, Kind::Dct2, Kind::Dct3, Kind::Dct4, Kind::Dst1, Kind::Dst2, Kind::Dst3, Kind::Dst4];

/// A kind in the oracle's words.
pub fn axis(kind: Kind) -> Axis {
    match kind {
        Kind::Identity => Axis::Same,
        Kind::Complex => Axis::Complex,
        Kind::Real => Axis::Half,
        _ => Axis::Wave(Wave::ALL[WAVES.iter().position(|wave| *wave == kind).unwrap()]),
    }
}

/// A problem, in words that do not come from the library.
#[derive(Clone, Debug)]
pub struct Setup {
    pub shape: [usize; 3],
    pub kinds: [Kind; 3],
    pub keep: [Keep; 3],
    pub support: [Option<(usize, usize)>; 3],
    pub complex_values: bool,
    pub sphere: Option<[f64; 3]>,
    pub scale: (Scale, Scale),
    pub batch: usize,
    pub input: LayoutSpec,
    pub output: LayoutSpec,
}

impl Setup {
    pub fn new(shape: [usize; 3], kinds: [Kind; 3]) -> Setup {
        Setup {
            shape,
            kinds,
            keep: [Keep::All; 3],
            support: [None; 3],
            complex_values: false,
            sphere: None,
            scale: (Scale::Unscaled, Scale::Full),
            batch: 1,
            input: LayoutSpec::slabs(0),
            output: LayoutSpec::slabs(0),
        }
    }

    pub fn problem(&self) -> Problem {
        let mut problem = Problem::mixed(self.shape, self.kinds)
            .keep(self.keep)
            .scale_forward(self.scale.0)
            .scale_backward(self.scale.1)
            .batch(self.batch)
            .input(self.input.clone());
        if let Some(radii) = self.sphere {
            problem = problem.keep_ellipsoid(radii);
        }
        problem = problem.output(self.output.clone());
        for (axis, range) in self.support.iter().enumerate() {
            if let Some((from, to)) = *range {
                problem = problem.support(axis, from..to);
            }
        }
        if self.complex_values { problem.complex_values() } else { problem }
    }

    pub fn real_in(&self) -> bool {
        let has = |kind| self.kinds.contains(&kind);
        let waves = self.kinds.iter().any(|kind| WAVES.contains(kind));
        has(Kind::Real) || (waves && !has(Kind::Complex) && !self.complex_values)
    }

    pub fn real_out(&self) -> bool {
        self.real_in() && !self.kinds.contains(&Kind::Real)
    }

    pub fn axes(&self) -> [Axis; 3] {
        self.kinds.map(axis)
    }

    pub fn spectrum(&self) -> [usize; 3] {
        [0, 1, 2].map(|d| axis(self.kinds[d]).modes(self.shape[d]))
    }

    /// The indices of whole axes that the arrays hold, before and after.
    pub fn points(&self) -> [Vec<usize>; 3] {
        [0, 1, 2].map(|d| self.support[d].map_or((0..self.shape[d]).collect(), |(a, b)| (a..b).collect()))
    }

    /// What each element of the spectrum is, in C order of its shape: a mode, or nothing.
    pub fn held(&self) -> ([usize; 3], Vec<Option<[usize; 3]>>) {
        let lists = self.modes();
        let lens = [0, 1, 2].map(|d| lists[d].len());
        let mode = |at: [usize; 3]| [0, 1, 2].map(|d| lists[d][at[d]]);
        let Some(radii) = self.sphere else {
            return (lens, indices(lens).map(|at| Some(mode(at))).collect());
        };
        let inside = |mode: [usize; 3]| {
            let part = |d: usize| (self.frequency(d, mode[d]) / radii[d]).powi(2);
            (0..3).map(part).sum::<f64>() <= 1.0 + 1e-12
        };
        let pairs = lists[2].iter().flat_map(|c| lists[1].iter().map(move |b| [0, *b, *c]));
        let columns: Vec<[usize; 3]> = pairs.filter(|pair| inside(*pair)).collect();
        let held = lists[0].iter().flat_map(|a| columns.iter().map(move |[_, b, c]| [*a, *b, *c]));
        ([lens[0], columns.len(), 1], held.map(|mode| Some(mode).filter(|mode| inside(*mode))).collect())
    }

    pub fn frequency(&self, d: usize, mode: usize) -> f64 {
        let n = self.shape[d];
        if self.kinds[d] == Kind::Real { mode as f64 } else { mode.min(n - mode) as f64 }
    }

    pub fn modes(&self) -> [Vec<usize>; 3] {
        if let Some(radii) = self.sphere {
            // In the order of numpy.fft.fftfreq, from 0 up, then from the lowest to -1.
            return [0, 1, 2].map(|d| {
                let all = (0..self.spectrum()[d]).filter(|mode| self.frequency(d, *mode) <= radii[d]);
                all.collect()
            });
        }
        [0, 1, 2].map(|d| match (self.keep[d], self.kinds[d]) {
            (Keep::All, _) => (0..self.spectrum()[d]).collect(),
            (Keep::Range(a, b), _) => (a..b).collect(),
            (Keep::Lowest(m), Kind::Complex) => mixed::lowest(self.shape[d], m),
            (Keep::Lowest(m), Kind::Real) => (0..m / 2 + 1).collect(),
            (Keep::Lowest(m), _) => (0..m).collect(),
        })
    }

    pub fn sizes(&self) -> usize {
        (0..3).map(|d| axis(self.kinds[d]).size(self.shape[d])).product()
    }

    /// What goes in: of array `b`, forward and backward.
    pub fn sources<T: Number>(&self, b: usize) -> [Vec<Complex<f64>>; 2] {
        let field = Field::new(99, T::BITS);
        let part = |shape: [usize; 3], real: bool, side: usize| {
            let value = |at| match real {
                true => Complex::new(field.real(2 * b + side, at), 0.0),
                false => field.complex(2 * b + side, at),
            };
            indices(shape).map(value).collect()
        };
        [
            part(self.points().map(|list| list.len()), self.real_in(), 0),
            part(self.held().0, self.real_out(), 1),
        ]
    }

    /// What must come out, and how large a value of the whole array is in the mean.
    pub fn wanted<T: Number>(&self, b: usize) -> [(Vec<Complex<f64>>, f64); 2] {
        let factor = |scale: Scale| match scale {
            Scale::Unscaled => 1.0,
            Scale::Full => 1.0 / self.sizes() as f64,
            Scale::Symmetric => 1.0 / (self.sizes() as f64).sqrt(),
        };
        let mean = |all: &[Complex<f64>]| all.iter().map(|x| x.norm_sqr()).sum::<f64>() / all.len() as f64;
        let [x, y] = self.sources::<T>(b);
        let (points, held) = (self.points(), self.held().1);
        let place = |[a, b, c]: [usize; 3]| (a * self.spectrum()[1] + b) * self.spectrum()[2] + c;
        let whole = mixed::placed(&x, self.shape, &points);
        let ortho = |scale| scale == Scale::Symmetric;
        let (there, back) = self.scale;
        let all = mixed::forward(&whole, self.shape, self.axes(), ortho(there), factor(there));
        let zero = Complex::new(0.0, 0.0);
        let taken = held.iter().map(|mode| mode.map_or(zero, |mode| all[place(mode)])).collect();
        let forward = (taken, mean(&all));
        let mut whole = vec![zero; self.spectrum().iter().product()];
        for (mode, value) in held.iter().zip(&y) {
            mode.iter().for_each(|mode| whole[place(*mode)] = *value);
        }
        let all = mixed::backward(&whole, self.shape, self.axes(), ortho(back), factor(back));
        [forward, (mixed::taken(&all, self.shape, &points), mean(&all))]
    }
}

/// A rank's part: where it lies and its values.
pub type Part<T> = (Tile, [usize; 3], Vec<Complex<T>>);

pub fn narrowed<T: Number>(x: &Complex<f64>) -> Complex<T> {
    Complex::new(T::rounded(x.re), T::rounded(x.im))
}

/// One direction on this rank: the values of all arrays, as they lie in memory.
pub fn one_way<T: Number>(plan: &mut Plan<T>, setup: &Setup, mode: Mode, forward: bool) -> Result<Part<T>> {
    let layouts = [plan.input_layout().clone(), plan.output_layout().clone()];
    let boxes = [plan.input_box(), plan.output_box()].map(|b| (b.lo, b.hi));
    let reals = [setup.real_in(), setup.real_out()];
    let (from, to) = if forward { (0, 1) } else { (1, 0) };
    let orders = [0, 1].map(|side: usize| layouts[side].order().axes());
    let shape = layouts[from].shape();
    let mut values: Vec<Complex<T>> = Vec::new();
    for b in 0..setup.batch {
        let whole = &setup.sources::<T>(b)[from];
        let at = |[i, j, k]: [usize; 3]| narrowed(&whole[(i * shape[1] + j) * shape[2] + k]);
        values.extend(walk(boxes[from], orders[from]).map(at));
    }
    let count = setup.batch * walk(boxes[to], orders[to]).count();
    let numbers = |values: &[Complex<T>], real: bool| -> Vec<T> {
        values.iter().flat_map(|x| if real { vec![x.re] } else { vec![x.re, x.im] }).collect()
    };
    let nan = T::rounded(f64::NAN);
    let result: Vec<T> = match mode {
        Mode::InPlace => in_place(plan, setup, forward, &values)?,
        Mode::Arrays => {
            let (mut x, mut y) = (plan.make_input()?, plan.make_output()?);
            if !forward {
                std::mem::swap(&mut x, &mut y);
            }
            x.scalars_mut().copy_from_slice(&numbers(&values, reals[from]));
            y.scalars_mut().fill(nan);
            if forward {
                plan.forward(&x, &mut y)?
            } else {
                plan.backward(&x, &mut y)?
            }
            y.scalars_mut().to_vec()
        }
        Mode::Slices => {
            let x = numbers(&values, reals[from]);
            let mut y = vec![nan; count * if reals[to] { 1 } else { 2 }];
            slices(plan, (&x, reals[from]), (&mut y, reals[to]), forward)?;
            y
        }
    };
    let values = match reals[to] {
        true => result.iter().take(count).map(|x| Complex::new(*x, T::rounded(0.0))).collect(),
        false => result.chunks_exact(2).take(count).map(|x| Complex::new(x[0], x[1])).collect(),
    };
    Ok((boxes[to], orders[to], values))
}

/// Vectors of the caller's own, of the right kind.
pub fn slices<T: Number>(
    plan: &mut Plan<T>,
    x: (&[T], bool),
    y: (&mut [T], bool),
    forward: bool,
) -> Result<()> {
    let complex =
        |x: &[T]| -> Vec<Complex<T>> { x.chunks_exact(2).map(|x| Complex::new(x[0], x[1])).collect() };
    let (wide_x, mut wide_y) = (complex(x.0), complex(y.0));
    match (x.1, y.1, forward) {
        (true, true, true) => return plan.forward(x.0, y.0),
        (true, true, false) => return plan.backward(x.0, y.0),
        (false, true, true) => return plan.forward(&wide_x[..], y.0),
        (false, true, false) => return plan.backward(&wide_x[..], y.0),
        (true, false, true) => plan.forward(x.0, &mut wide_y[..])?,
        (true, false, false) => plan.backward(x.0, &mut wide_y[..])?,
        (false, false, true) => plan.forward(&wide_x[..], &mut wide_y[..])?,
        (false, false, false) => plan.backward(&wide_x[..], &mut wide_y[..])?,
    }
    for (y, x) in y.0.chunks_exact_mut(2).zip(wide_y) {
        (y[0], y[1]) = (x.re, x.im);
    }
    Ok(())
}

/// In place. Real rows may be padded where the other side is complex; all else lies densely.
pub fn in_place<T: Number>(
    plan: &mut Plan<T>,
    setup: &Setup,
    forward: bool,
    values: &[Complex<T>],
) -> Result<Vec<T>> {
    let mut array = plan.make_in_place()?;
    array.scalars_mut().fill(T::rounded(f64::NAN));
    let (real_in, real_out) = (setup.real_in(), setup.real_out());
    let boxes = [plan.input_box(), plan.output_box()].map(|b| (b.lo, b.hi));
    let orders = [plan.input_layout().order().axes(), plan.output_layout().order().axes()];
    let (from, to) = if forward { (0, 1) } else { (1, 0) };
    // Where each number of a side lies.
    let places = |side: usize| -> Vec<usize> {
        let real = [real_in, real_out][side];
        let mut places = Vec::new();
        for b in 0..setup.batch {
            for (i, at) in walk(boxes[side], orders[side]).enumerate() {
                let dense = b * walk(boxes[side], orders[side]).count() + i;
                match real {
                    true if real_in != real_out => places.push(array.real_index(b, at).unwrap()),
                    true => places.push(dense),
                    false => places.extend([2 * dense, 2 * dense + 1]),
                }
            }
        }
        places
    };
    let (before, after) = (places(from), places(to));
    let real = [real_in, real_out][from];
    let numbers = values.iter().flat_map(|x| if real { vec![x.re] } else { vec![x.re, x.im] });
    let memory = array.scalars_mut();
    before.iter().zip(numbers).for_each(|(place, number)| memory[*place] = number);
    if forward {
        plan.call().forward_in_place(&mut array)?
    } else {
        plan.call().backward_in_place(&mut array)?
    }
    let memory = array.scalars_mut();
    Ok(after.iter().map(|place| memory[*place]).collect())
}

/// How it is run.
pub struct How {
    pub ranks: usize,
    pub nodes: usize,
    pub threads: usize,
    pub choice: Choice,
    pub mode: Mode,
}

/// Forward and backward: the whole arrays in C order, one after the other, on every rank count.
pub fn run<T: Number>(setup: &Setup, how: &How) -> [Vec<Complex<T>>; 2] {
    let problem = setup.problem();
    let outcome = ferrier::ranks(how.ranks).nodes(how.nodes).threads(how.threads).run(|comm| {
        let mut plan = plan_of::<T>(&comm, &problem, &how.choice)?;
        Ok([one_way(&mut plan, setup, how.mode, true)?, one_way(&mut plan, setup, how.mode, false)?])
    });
    let parts = outcome.unwrap_or_else(|error| panic!("{error}\n{setup:?}\n{:?}", how.choice));
    [0, 1].map(|side| {
        let shape = if side == 0 { setup.held().0 } else { setup.points().map(|list| list.len()) };
        let volume = shape.iter().product::<usize>();
        let mut all = vec![narrowed(&Complex::new(f64::NAN, 0.0)); volume * setup.batch];
        for rank in &parts {
            let (tile, order, values) = &rank[side];
            let count = walk(*tile, *order).count();
            for b in 0..setup.batch {
                for ([i, j, k], x) in walk(*tile, *order).zip(&values[b * count..]) {
                    all[b * volume + (i * shape[1] + j) * shape[2] + k] = *x;
                }
            }
        }
        all
    })
}

/// Runs it and holds it against the oracle.
pub fn check<T: Number>(setup: &Setup, how: &How) -> [Vec<Complex<T>>; 2] {
    let got = run::<T>(setup, how);
    for side in 0..2 {
        let per = got[side].len() / setup.batch;
        for b in 0..setup.batch {
            let (want, mean) = &setup.wanted::<T>(b)[side];
            let mut errors = Errors::default();
            for (got, want) in got[side][b * per..][..per].iter().zip(want) {
                errors.add(common::to_f64(*got), *want);
            }
            assert_eq!(errors.count, want.len());
            // A few modes may be small by chance: what counts is the whole array they are from.
            let error = (errors.wrong / (per as f64 * mean)).sqrt();
            let allowed = tolerance::<T>(2 * setup.sizes());
            assert!(
                error <= allowed,
                "{}: error {error:.2e}, allowed {allowed:.2e}, {} {} ranks {:?}\n{setup:?}\n{:?}",
                ["forward", "backward"][side],
                T::NAME,
                how.ranks,
                how.mode,
                how.choice
            );
        }
    }
    got
}
