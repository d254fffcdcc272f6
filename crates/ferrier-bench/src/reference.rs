//! The spectrum at some frequencies, by direct summation.
//!
//! A whole reference transform would need another FFT, which could have the same faults,
//! and as much memory again. Instead a few frequencies are drawn along each axis, and the
//! defining sum is evaluated at every combination of them: along the last axis first, so
//! that n0 n1 n2 f2 products give f0 f1 f2 frequencies. Sums are compensated and the roots
//! of unity are exact to the last bit or two, so the reference is more exact than any FFT.
//! On an axis that is not longer than the number drawn, all frequencies are taken.
//!
//! Errors need not be spread evenly: those of some codecs are largest at frequency zero,
//! which is always drawn. So each drawn frequency is weighted by the number of frequencies
//! that it represents. Sums over the drawn ones then estimate sums over all.

use ferrier::{Comm, Kind, Problem, Real, Result};
use num_complex::Complex;

use crate::noise::mix;
use crate::view::{View, in_parallel};

/// Frequencies drawn along each axis.
const DRAWN: [usize; 3] = [8, 8, 4];
const LAST: usize = DRAWN[2];

/// The transform of which values are needed.
pub struct ReferenceProblem {
    /// Lengths of the transforms.
    pub shape: [usize; 3],
    /// The transform along each axis.
    pub kinds: [Kind; 3],
    /// Which mode each index of the spectrum is.
    pub modes: [Vec<usize>; 3],
}

impl ReferenceProblem {
    /// A Fourier transform of some axes, the first modes of each.
    pub fn fourier(shape: [usize; 3], spectrum: [usize; 3], axes: &[usize]) -> ReferenceProblem {
        let kind = |axis: usize| if axes.contains(&axis) { Kind::Complex } else { Kind::Identity };
        ReferenceProblem {
            shape,
            kinds: std::array::from_fn(kind),
            modes: spectrum.map(|n| (0..n).collect()),
        }
    }

    /// The transform of a problem; modes of a sphere are those of its bounding box.
    pub fn of(problem: &Problem) -> ReferenceProblem {
        let modes = std::array::from_fn(|axis| problem.kept_modes(axis));
        ReferenceProblem { shape: problem.lengths(), kinds: problem.kinds(), modes }
    }

    /// The weight of point `i` of an axis in a mode.
    fn weight(&self, axis: usize, mode: usize, i: usize) -> Complex<f64> {
        let n = self.shape[axis];
        let (odd, odd_mode) = (2 * i + 1, 2 * mode + 1);
        let cos =
            |twice: bool, f: usize, k: usize, n: usize| root(f, k, n).re * if twice { 2.0 } else { 1.0 };
        let sin =
            |twice: bool, f: usize, k: usize, n: usize| -root(f, k, n).im * if twice { 2.0 } else { 1.0 };
        let real = match self.kinds[axis] {
            Kind::Identity => f64::from(mode == i),
            Kind::Dct1 => cos(i != 0 && i + 1 != n, mode, i, 2 * (n - 1)),
            Kind::Dct2 => cos(true, mode, odd, 4 * n),
            Kind::Dct3 => cos(i != 0, odd_mode, i, 4 * n),
            Kind::Dct4 => cos(true, odd_mode, odd, 8 * n),
            Kind::Dst1 => sin(true, mode + 1, i + 1, 2 * (n + 1)),
            Kind::Dst2 => sin(true, mode + 1, odd, 4 * n),
            Kind::Dst3 => sin(i + 1 != n, odd_mode, i + 1, 4 * n),
            Kind::Dst4 => sin(true, odd_mode, odd, 8 * n),
            _ => return root(mode, i, n),
        };
        Complex::from(real)
    }
}

/// True values at the drawn frequencies.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Of the spectrum.
    lengths: [usize; 3],
    drawn: [Vec<usize>; 3],
    values: Vec<Complex<f64>>,
}

impl Reference {
    /// Sums over all ranks' parts. Collective; every rank gets all values.
    ///
    /// # Errors
    /// A rank failed or left.
    pub fn new<T: Real>(comm: &Comm, problem: &ReferenceProblem, view: &View<'_, T>) -> Result<Self> {
        let drawn: [Vec<usize>; 3] =
            std::array::from_fn(|axis| draw(problem.modes[axis].len(), DRAWN[axis], axis));
        let weights: [Vec<Vec<Complex<f64>>>; 3] = std::array::from_fn(|axis| {
            let range = view.lo[axis]..view.hi[axis];
            let weight = |f: usize, i: usize| problem.weight(axis, problem.modes[axis][f], i);
            drawn[axis].iter().map(|&f| range.clone().map(|i| weight(f, i)).collect()).collect()
        });
        let planes = view.hi[0] - view.lo[0];
        let workers = comm.threads().clamp(1, planes.max(1));
        let count = drawn.iter().map(Vec::len).product::<usize>();
        let mut sums = vec![Sum::default(); count];
        let share = |worker: usize| planes * worker / workers..planes * (worker + 1) / workers;
        for part in in_parallel(workers, |worker| partial(view, &weights, share(worker))) {
            sums.iter_mut().zip(part).for_each(|(sum, part)| sum.add(part));
        }
        let flat: Vec<f64> = sums.iter().map(Sum::value).flat_map(|value| [value.re, value.im]).collect();
        let flat = comm.sum(&flat)?;
        Ok(Reference {
            lengths: problem.modes.each_ref().map(Vec::len),
            drawn,
            values: flat.chunks_exact(2).map(|pair| Complex::new(pair[0], pair[1])).collect(),
        })
    }

    /// The number of frequencies of an axis that a drawn one represents: the first and the
    /// last represent themselves, the others all the rest.
    fn weight(&self, axis: usize, frequency: usize) -> f64 {
        let (n, drawn) = (self.lengths[axis], self.drawn[axis].len());
        let sure = drawn == n || frequency == 0 || frequency == n - 1;
        if sure { 1.0 } else { (n - 2) as f64 / (drawn - 2) as f64 }
    }

    /// Squared distance of `got(index)` from the reference, over the frequencies at which
    /// `got` is `Some`, and the squared norm of the reference; both as estimates for the
    /// whole spectrum.
    pub fn distance(&self, mut got: impl FnMut([usize; 3]) -> Option<Complex<f64>>) -> (f64, f64) {
        let (mut distance, mut norm) = (0.0, 0.0);
        let mut values = self.values.iter();
        for &a in &self.drawn[0] {
            for &b in &self.drawn[1] {
                for &c in &self.drawn[2] {
                    let Some(value) = values.next() else { continue };
                    let weight = self.weight(0, a) * self.weight(1, b) * self.weight(2, c);
                    norm += weight * value.norm_sqr();
                    distance += got([a, b, c]).map_or(0.0, |got| weight * (got - value).norm_sqr());
                }
            }
        }
        (distance, norm)
    }
}

/// References of some arrays of a batch, with the numbers of the arrays.
pub type References = [(usize, Reference)];

/// The relative error of a spectrum. `got(array, index)` is `None` outside this rank's part.
/// `comm` has the ranks among which the spectrum is distributed. Collective.
///
/// # Errors
/// A rank failed or left.
pub fn relative_error(
    comm: Option<&Comm>,
    references: &References,
    mut got: impl FnMut(usize, [usize; 3]) -> Option<Complex<f64>>,
) -> Result<f64> {
    let (mut distance, mut norm) = (0.0, 0.0);
    for (b, reference) in references {
        let part = reference.distance(|index| got(*b, index));
        distance += part.0;
        norm += part.1;
    }
    // Every rank has the whole norm but only its part of the distance.
    let distance = match comm {
        Some(comm) => comm.sum(&[distance])?[0],
        None => distance,
    };
    Ok((distance / norm).sqrt())
}

/// Some of `0..n`, all different: zero, the last one, and others at random.
fn draw(n: usize, count: usize, salt: usize) -> Vec<usize> {
    if n <= count {
        return (0..n).collect();
    }
    let mut drawn = vec![0, n - 1];
    let mut counter = (salt as u64) << 32;
    while drawn.len() < count {
        counter += 1;
        let candidate = (mix(counter) % n as u64) as usize;
        if !drawn.contains(&candidate) {
            drawn.push(candidate);
        }
    }
    drawn
}

/// The sums over some planes of a rank's box.
fn partial<T: Real>(
    view: &View<'_, T>,
    weights: &[Vec<Vec<Complex<f64>>>; 3],
    planes: std::ops::Range<usize>,
) -> Vec<Complex<f64>> {
    let extent = |axis: usize| view.hi[axis] - view.lo[axis];
    let [f0, f1, f2] = [0, 1, 2].map(|axis| weights[axis].len());
    let mut total = vec![Sum::default(); f0 * f1 * f2];
    let mut plane = vec![Sum::default(); f1 * f2];
    // Index first, so that one element meets all its weights at once.
    let last: Vec<[Complex<f64>; LAST]> = (0..extent(2))
        .map(|k| std::array::from_fn(|c| weights[2].get(c).map_or(Complex::ZERO, |weights| weights[k])))
        .collect();
    let width = view.width;
    for i in planes {
        plane.fill(Sum::default());
        for j in 0..extent(1) {
            let mut row = [Sum::default(); LAST];
            let mut at = (i * view.strides[0] + j * view.strides[1]) * width;
            for weights in &last {
                let re: f64 = view.scalars[at].widened();
                let im: f64 = if width == 1 { 0.0 } else { view.scalars[at + 1].widened() };
                for (sum, weight) in row.iter_mut().zip(weights) {
                    sum.add(Complex::new(re, im) * weight);
                }
                at += view.strides[2] * width;
            }
            for (weights, sums) in weights[1].iter().zip(plane.chunks_exact_mut(f2)) {
                sums.iter_mut().zip(&row).for_each(|(sum, row)| sum.add(row.value() * weights[j]));
            }
        }
        for (weights, sums) in weights[0].iter().zip(total.chunks_exact_mut(f1 * f2)) {
            sums.iter_mut().zip(&plane).for_each(|(sum, plane)| sum.add(plane.value() * weights[i]));
        }
    }
    total.iter().map(Sum::value).collect()
}

/// A compensated sum (Knuth's two-sum): as if in twice the precision.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    high: Complex<f64>,
    low: Complex<f64>,
}

impl Sum {
    fn add(&mut self, value: Complex<f64>) {
        let high = self.high + value;
        let back = high - self.high;
        self.low += (self.high - (high - back)) + (value - back);
        self.high = high;
    }

    fn value(&self) -> Complex<f64> {
        self.high + self.low
    }
}

/// e^(-2 pi i f k / n), from an angle of at most an eighth of the circle.
fn root(f: usize, k: usize, n: usize) -> Complex<f64> {
    let (n, r) = (n as u128, (f as u128 * k as u128) % n as u128);
    let mut eighths = 8 * r; // of a circle, in units of 1 / n
    let below = eighths > 4 * n;
    if below {
        eighths = 8 * n - eighths;
    }
    let left = eighths > 2 * n;
    if left {
        eighths = 4 * n - eighths;
    }
    let steep = eighths > n;
    if steep {
        eighths = 2 * n - eighths;
    }
    let (mut sin, mut cos) = (std::f64::consts::FRAC_PI_4 * (eighths as f64 / n as f64)).sin_cos();
    if steep {
        (sin, cos) = (cos, sin);
    }
    Complex::new(if left { -cos } else { cos }, if below { sin } else { -sin })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_of_unity_are_exact() {
        for n in 1..40usize {
            for f in 0..n {
                for k in 0..n {
                    let angle = -2.0 * std::f64::consts::PI * ((f * k) % n) as f64 / n as f64;
                    let (sin, cos) = angle.sin_cos();
                    assert!((root(f, k, n) - Complex::new(cos, sin)).norm() < 2e-15, "{f} {k} {n}");
                }
            }
        }
    }

    #[test]
    fn drawn_frequencies_differ() {
        for n in 1..100 {
            let mut drawn = draw(n, 8, 1);
            assert_eq!(drawn.len(), n.min(8));
            drawn.sort_unstable();
            drawn.dedup();
            assert_eq!(drawn.len(), n.min(8));
            assert!(drawn.iter().all(|&f| f < n));
        }
    }

    /// An error in one plane has the weight of the plane in the whole, not among the drawn frequencies.
    #[test]
    fn sums_over_drawn_frequencies_estimate_sums_over_all() {
        let shape = [30, 20, 40];
        let numbers: Vec<f64> = (0..30 * 20 * 40).map(|i| f64::from(i == 0)).collect();
        let strides = [800, 40, 1];
        let view = View {
            scalars: &numbers,
            width: 1,
            lo: [0; 3],
            hi: shape,
            strides,
            array: 24000,
            batch: 1,
            rows: None,
        };
        let problem = ReferenceProblem::fourier(shape, shape, &[0, 1, 2]);
        let reference = Reference::new(&Comm::one_rank(), &problem, &view).unwrap();
        // The spectrum of an impulse is 1 everywhere; here it is 3 where the second frequency is 0.
        let (distance, norm) =
            reference.distance(|[_, b, _]| Some(Complex::from(if b == 0 { 3.0 } else { 1.0 })));
        assert!((norm / 24000.0 - 1.0).abs() < 1e-12, "{norm}");
        assert!((distance / (4.0 * 30.0 * 40.0) - 1.0).abs() < 1e-12, "{distance}");
    }

    /// One axis passes through, one is a shift of an impulse, one is constant.
    #[test]
    fn sums_are_the_transform() {
        let shape = [3, 4, 5];
        let mut numbers = vec![0.0; 60];
        for (i, value) in [1.0, 2.0, 3.0].into_iter().enumerate() {
            for k in 0..5 {
                numbers[(i * 4 + 1) * 5 + k] = value;
            }
        }
        let view = View {
            scalars: &numbers,
            width: 1,
            lo: [0; 3],
            hi: shape,
            strides: [20, 5, 1],
            array: 60,
            batch: 1,
            rows: None,
        };
        let problem = ReferenceProblem::fourier(shape, [3, 4, 3], &[1, 2]);
        let reference = Reference::new(&Comm::one_rank(), &problem, &view).unwrap();
        let (distance, norm) = reference.distance(|[i, f1, f2]| {
            let along = if f2 == 0 { 5.0 } else { 0.0 };
            Some(root(f1, 1, 4) * (i as f64 + 1.0) * along)
        });
        assert!(distance.sqrt() <= 1e-15 * norm.sqrt(), "{distance} {norm}");
        assert!(norm > 1.0);
    }
}
