//! A transform of its own for each axis, term by term in double-double: complex,
//! real, cosines and sines by the formulas in the documentation of `scipy.fft`;
//! truncation and padding of arrays.

use num_complex::Complex;

use crate::dd::Dd;
use crate::dft::{Number, indices, roots, strides};

/// A cosine or sine transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wave {
    /// DCT-I.
    Dct1,
    /// DCT-II.
    Dct2,
    /// DCT-III.
    Dct3,
    /// DCT-IV.
    Dct4,
    /// DST-I.
    Dst1,
    /// DST-II.
    Dst2,
    /// DST-III.
    Dst3,
    /// DST-IV.
    Dst4,
}

impl Wave {
    /// All of them.
    pub const ALL: [Wave; 8] =
        [Wave::Dct1, Wave::Dct2, Wave::Dct3, Wave::Dct4, Wave::Dst1, Wave::Dst2, Wave::Dst3, Wave::Dst4];

    /// The type of the inverse.
    pub fn inverse(self) -> Wave {
        match self {
            Wave::Dct2 => Wave::Dct3,
            Wave::Dct3 => Wave::Dct2,
            Wave::Dst2 => Wave::Dst3,
            Wave::Dst3 => Wave::Dst2,
            own => own,
        }
    }

    /// The factor of a transform followed by its inverse.
    pub fn size(self, n: usize) -> usize {
        match self {
            Wave::Dct1 => 2 * (n - 1),
            Wave::Dst1 => 2 * (n + 1),
            _ => 2 * n,
        }
    }

    /// The weight of point `j` in mode `k`: twice the cosine (sine) of
    /// `angle` parts of a full turn, or once.
    fn weight(self, n: usize, j: usize, k: usize) -> (usize, usize, bool, bool) {
        let (odd_j, odd_k) = (2 * j + 1, 2 * k + 1);
        // (numerator and denominator of the turn, is it a cosine, does it count twice)
        match self {
            Wave::Dct1 => (k * j, 2 * (n - 1), true, j != 0 && j != n - 1),
            Wave::Dct2 => (k * odd_j, 4 * n, true, true),
            Wave::Dct3 => (odd_k * j, 4 * n, true, j != 0),
            Wave::Dct4 => (odd_k * odd_j, 8 * n, true, true),
            Wave::Dst1 => ((k + 1) * (j + 1), 2 * (n + 1), false, true),
            Wave::Dst2 => ((k + 1) * odd_j, 4 * n, false, true),
            Wave::Dst3 => (odd_k * (j + 1), 4 * n, false, j != n - 1),
            Wave::Dst4 => (odd_k * odd_j, 8 * n, false, true),
        }
    }

    /// Squares of the factors that make the matrix orthogonal, of points and of modes.
    fn squares(self, n: usize, at: usize) -> (f64, f64) {
        match self {
            Wave::Dct1 if at == 0 || at == n - 1 => (2.0, 0.5),
            Wave::Dct2 if at == 0 => (1.0, 0.5),
            Wave::Dct3 if at == 0 => (2.0, 1.0),
            Wave::Dst2 if at == n - 1 => (1.0, 0.5),
            Wave::Dst3 if at == n - 1 => (2.0, 1.0),
            _ => (1.0, 1.0),
        }
    }

    /// The weights of all points in each mode.
    fn matrix(self, n: usize, ortho: bool) -> Vec<Vec<Dd>> {
        let turns = roots(self.weight(n, 0, 0).1);
        let diagonal = roots(8)[1].re;
        // The square root of 1, 2 or a half.
        let root = |square: f64| match square {
            1.0 => Dd::ONE,
            2.0 => diagonal * Dd::of(2.0),
            _ => diagonal,
        };
        let factors = |at: usize| if ortho { self.squares(n, at) } else { (1.0, 1.0) };
        let weight = |j: usize, k: usize| {
            let (turn, of, cosine, twice) = self.weight(n, j, k);
            let value = turns[turn % of];
            let value = if cosine { value.re } else { value.im };
            value * Dd::of(if twice { 2.0 } else { 1.0 }) * root(factors(j).0) * root(factors(k).1)
        };
        (0..n).map(|k| (0..n).map(|j| weight(j, k)).collect()).collect()
    }
}

fn weighed(line: &[Number], matrix: &[Vec<Dd>]) -> Vec<Number> {
    let mode = |weights: &Vec<Dd>| {
        let mut sum = Number { re: Dd::ZERO, im: Dd::ZERO };
        for (x, weight) in line.iter().zip(weights) {
            sum = Number { re: sum.re + x.re * *weight, im: sum.im + x.im * *weight };
        }
        sum
    };
    matrix.iter().map(mode).collect()
}

/// The transform of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// None.
    Same,
    /// Complex to complex.
    Complex,
    /// Real to the first n/2+1 modes.
    Half,
    /// Cosines or sines, of both parts.
    Wave(Wave),
}

impl Axis {
    /// Modes of `n` points.
    pub fn modes(self, n: usize) -> usize {
        if self == Axis::Half { n / 2 + 1 } else { n }
    }

    /// The factor of forward followed by backward.
    pub fn size(self, n: usize) -> usize {
        match self {
            Axis::Same => 1,
            Axis::Complex | Axis::Half => n,
            Axis::Wave(wave) => wave.size(n),
        }
    }
}

fn fourier(line: &[Number], turns: &[Number], sign: f64) -> Vec<Number> {
    let n = line.len();
    let mode = |k: usize| {
        let (mut re, mut im) = (Dd::ZERO, Dd::ZERO);
        for (j, x) in line.iter().enumerate() {
            let w = turns[k * j % n];
            let wi = w.im * Dd::of(sign);
            re = re + x.re * w.re - x.im * wi;
            im = im + x.re * wi + x.im * w.re;
        }
        Number { re, im }
    };
    (0..n).map(mode).collect()
}

/// The real line whose spectrum begins with these modes. Imaginary parts of
/// modes that must be real are ignored.
fn half_back(modes: &[Number], turns: &[Number]) -> Vec<Number> {
    let n = turns.len();
    let conjugate = |x: Number| Number { re: x.re, im: -x.im };
    let mut full: Vec<Number> =
        (0..n).map(|k| if 2 * k <= n { modes[k] } else { conjugate(modes[n - k]) }).collect();
    full[0].im = Dd::ZERO;
    if n.is_multiple_of(2) {
        full[n / 2].im = Dd::ZERO;
    }
    fourier(&full, turns, 1.0).into_iter().map(|x| Number { re: x.re, im: Dd::ZERO }).collect()
}

/// Replaces every line along an axis.
fn along(
    data: &[Number],
    shape: &mut [usize; 3],
    axis: usize,
    of: impl Fn(&[Number]) -> Vec<Number>,
) -> Vec<Number> {
    let (n, before) = (shape[axis], strides(*shape));
    let starts: Vec<[usize; 3]> = indices(*shape).filter(|at| at[axis] == 0).collect();
    let place = |at: [usize; 3], step: [usize; 3]| -> usize { (0..3).map(|d| at[d] * step[d]).sum() };
    let line = |at: &[usize; 3]| {
        let first = place(*at, before);
        of(&(0..n).map(|j| data[first + j * before[axis]]).collect::<Vec<_>>())
    };
    let lines: Vec<Vec<Number>> = starts.iter().map(line).collect();
    shape[axis] = lines[0].len();
    let after = strides(*shape);
    let mut result = vec![Number { re: Dd::ZERO, im: Dd::ZERO }; shape.iter().product()];
    for (at, line) in starts.iter().zip(lines) {
        let first = place(*at, after);
        line.into_iter().enumerate().for_each(|(k, x)| result[first + k * after[axis]] = x);
    }
    result
}

fn widened(data: &[Complex<f64>]) -> Vec<Number> {
    data.iter().map(|x| Number { re: Dd::of(x.re), im: Dd::of(x.im) }).collect()
}

fn rounded(data: &[Number], scale: f64) -> Vec<Complex<f64>> {
    let scale = Dd::of(scale);
    data.iter().map(|x| Complex::new((x.re * scale).value(), (x.im * scale).value())).collect()
}

/// Forward: the modes of an array in C order, times `scale`. Real axes first.
pub fn forward(
    data: &[Complex<f64>],
    shape: [usize; 3],
    axes: [Axis; 3],
    ortho: bool,
    scale: f64,
) -> Vec<Complex<f64>> {
    let (mut work, mut shape) = (widened(data), shape);
    for (axis, kind) in axes.into_iter().enumerate() {
        let turns = roots(shape[axis]);
        work = match kind {
            Axis::Same => work,
            Axis::Complex => along(&work, &mut shape, axis, |line| fourier(line, &turns, -1.0)),
            Axis::Half => along(&work, &mut shape, axis, |line| {
                let mut modes = fourier(line, &turns, -1.0);
                modes.truncate(line.len() / 2 + 1);
                modes
            }),
            Axis::Wave(wave) => {
                let matrix = wave.matrix(shape[axis], ortho);
                along(&work, &mut shape, axis, |line| weighed(line, &matrix))
            }
        };
    }
    rounded(&work, scale)
}

/// Backward: from modes to an array of this shape, times `scale`.
pub fn backward(
    modes: &[Complex<f64>],
    shape: [usize; 3],
    axes: [Axis; 3],
    ortho: bool,
    scale: f64,
) -> Vec<Complex<f64>> {
    let mut now: [usize; 3] = std::array::from_fn(|axis| axes[axis].modes(shape[axis]));
    let mut work = widened(modes);
    // Real axes come last: `half_back` takes spectra of real lines.
    let mut order = [0, 1, 2];
    order.sort_by_key(|&axis| axes[axis] == Axis::Half);
    for axis in order {
        let turns = roots(shape[axis]);
        work = match axes[axis] {
            Axis::Same => work,
            Axis::Complex => along(&work, &mut now, axis, |line| fourier(line, &turns, 1.0)),
            Axis::Half => along(&work, &mut now, axis, |line| half_back(line, &turns)),
            Axis::Wave(wave) => {
                let matrix = wave.inverse().matrix(shape[axis], ortho);
                along(&work, &mut now, axis, |line| weighed(line, &matrix))
            }
        };
    }
    rounded(&work, scale)
}

/// The elements of a whole array (C order) whose indices are listed for each axis.
pub fn taken(data: &[Complex<f64>], shape: [usize; 3], lists: &[Vec<usize>; 3]) -> Vec<Complex<f64>> {
    let step = strides(shape);
    let lens = [0, 1, 2].map(|d| lists[d].len());
    indices(lens).map(|at| data[(0..3).map(|d| lists[d][at[d]] * step[d]).sum::<usize>()]).collect()
}

/// The whole array that has these elements at the listed indices, and zeros elsewhere.
pub fn placed(data: &[Complex<f64>], shape: [usize; 3], lists: &[Vec<usize>; 3]) -> Vec<Complex<f64>> {
    let step = strides(shape);
    let mut whole = vec![Complex::new(0.0, 0.0); shape.iter().product()];
    for (at, value) in indices([0, 1, 2].map(|d| lists[d].len())).zip(data) {
        whole[(0..3).map(|d| lists[d][at[d]] * step[d]).sum::<usize>()] = *value;
    }
    whole
}

/// The indices of the `m` lowest frequencies of `n`, in the order of `numpy.fft.fftfreq(m)`.
pub fn lowest(n: usize, m: usize) -> Vec<usize> {
    // As numpy has it: 0 to (m - 1) / 2, then -(m / 2) to -1.
    (0..m.div_ceil(2)).chain(n - m / 2..n).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;

    /// Printed by `scipy.fft.dct` and `dst`, types 1 to 4, of [1, 2, 4, 7, 11].
    #[rustfmt::skip]
    const SCIPY: [[f64; 5]; 8] = [
        [38.0, -17.071067811865476, 4.0, -2.9289321881345245, 2.0],
        [50.0, -24.898982848827806, 5.854101966249685, -2.245139882897926, 0.8541019662496847],
        [26.30372942852366, -30.23416005021068, 14.999999999999996, -8.30685961228616, 2.2372902339731837],
        [20.993682254674862, -27.06453110355668, 18.38477631085024, -14.79797913498994, 13.408813335070539],
        [35.588457268119896, -25.980762113533157, 16.0, -8.660254037844386, 4.411542731880104],
        [29.978713763747795, -21.266270208800996, 16.97871376374779, -13.143277802978343, 14.0],
        [33.75610218105152, -11.334597523164533, 5.0, -2.4850625893365157, 2.424237706447432],
        [41.98892001026121, -11.2766374313553, 4.242640687119286, -0.6607332872146658, 1.153896068460611],
    ];

    /// The same with `norm="ortho"`.
    #[rustfmt::skip]
    const ORTHO: [[f64; 5]; 8] = [
        [10.742640687119287, -7.500000000000001, 3.171572875253811, -2.5000000000000004, 1.7426406871192859],
        [11.180339887498949, -7.87374972237638, 1.8512295868219164, -0.7099755695641163, 0.2700907567377273],
        [8.448955424576516, -9.429895060590532, 4.8744023197356885, -2.495873828325629, 0.8384791221037486],
        [6.638785239863164, -8.558556209170954, 5.813776741499454, -4.679531883421648, 4.240239085886143],
        [10.273502691896256, -7.499999999999999, 4.618802153517006, -2.4999999999999996, 1.2735026918962575],
        [9.480101681568195, -6.724985119639573, 5.369140723349302, -4.156269377774535, 3.130495168499706],
        [12.115460906464351, -5.025158577764625, 3.02198295439851, -2.2266899153522255, 2.2074553985179746],
        [13.278062372304607, -3.56598586309934, 1.3416407864998738, -0.20894221134885593, 0.364893975944911],
    ];

    #[test]
    fn waves_are_those_of_scipy() {
        let x: Vec<_> = [1.0, 2.0, 4.0, 7.0, 11.0].map(|v| Complex::new(v, 0.0)).to_vec();
        for (i, wave) in Wave::ALL.into_iter().enumerate() {
            let axes = [Axis::Same, Axis::Same, Axis::Wave(wave)];
            let plain = forward(&x, [1, 1, 5], axes, false, 1.0);
            let ortho = forward(&x, [1, 1, 5], axes, true, 1.0 / (wave.size(5) as f64).sqrt());
            for (got, want) in plain.iter().zip(SCIPY[i]).chain(ortho.iter().zip(ORTHO[i])) {
                assert!((got.re - want).abs() < 2e-14 && got.im == 0.0, "{wave:?}: {got} {want}");
            }
        }
    }

    #[test]
    fn orthogonal_waves_keep_the_energy_and_come_back() {
        let x: Vec<_> = (0..7).map(|k| Field::new(3, 53).complex(0, [0, 0, k])).collect();
        let size = |v: &[Complex<f64>]| v.iter().map(Complex::norm_sqr).sum::<f64>();
        for wave in Wave::ALL {
            let axes = [Axis::Same, Axis::Same, Axis::Wave(wave)];
            let scale = 1.0 / (wave.size(7) as f64).sqrt();
            let y = forward(&x, [1, 1, 7], axes, true, scale);
            assert!((size(&y) / size(&x) - 1.0).abs() < 1e-14, "{wave:?}");
            let back = backward(&y, [1, 1, 7], axes, true, scale);
            assert!(back.iter().zip(&x).all(|(a, b)| (a - b).norm() < 1e-14), "{wave:?}");
        }
    }

    #[test]
    fn lowest_is_the_order_of_fftfreq() {
        assert_eq!(lowest(8, 4), [0, 1, 6, 7]);
        assert_eq!(lowest(8, 5), [0, 1, 2, 6, 7]);
        assert_eq!(lowest(5, 5), [0, 1, 2, 3, 4]);
        assert_eq!(lowest(5, 1), [0]);
    }
}
