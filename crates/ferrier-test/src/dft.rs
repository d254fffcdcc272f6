//! The naive discrete Fourier transform.
//!
//! Separable over the axes, direct along each of them: `n^2` operations per
//! line and no factorisation. Angles are reduced exactly
//! (`k * j mod n`, then to the first octant) before a sine is taken; twiddles,
//! products and sums are double-double, also between the axes.

use num_complex::Complex;

use crate::dd::Dd;

/// The direction of a transform: the sign of its exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `e^(-2 pi i jk/n)`.
    Forward,
    /// `e^(+2 pi i jk/n)`, not scaled.
    Backward,
}

#[derive(Clone, Copy)]
pub(crate) struct Number {
    pub re: Dd,
    pub im: Dd,
}

/// `e^(2 pi i k/n)` for all `k` below `n`.
pub(crate) fn roots(n: usize) -> Vec<Number> {
    (0..n)
        .map(|k| {
            // k/n = quarter/4 + rest/(4n) exactly, rest in [0, n).
            let (quarter, rest) = (4 * k / n, 4 * k % n);
            let angle = |eighths: usize| (Dd::TAU.over(4) * Dd::of(eighths as f64)).over(n as u64);
            let (s, c) = if 2 * rest <= n {
                angle(rest).sin_cos()
            } else {
                let (s, c) = angle(n - rest).sin_cos();
                (c, s)
            };
            match quarter {
                0 => Number { re: c, im: s },
                1 => Number { re: -s, im: c },
                2 => Number { re: -c, im: -s },
                _ => Number { re: s, im: -c },
            }
        })
        .collect()
}

/// `e^(-2 pi i k/n)` for all `k` below `n`, each correctly rounded or nearly so.
pub fn twiddles(n: usize) -> Vec<Complex<f64>> {
    roots(n).iter().map(|w| Complex::new(w.re.value(), -w.im.value())).collect()
}

pub(crate) fn strides(shape: [usize; 3]) -> [usize; 3] {
    [shape[1] * shape[2], shape[2], 1]
}

fn transform_axis(data: &mut [Number], shape: [usize; 3], axis: usize, direction: Direction) {
    let n = shape[axis];
    let stride = strides(shape)[axis];
    let roots = roots(n);
    let mut line = Vec::with_capacity(n);
    for start in (0..data.len()).filter(|at| (at / stride).is_multiple_of(n)) {
        line.clear();
        line.extend((0..n).map(|j| data[start + j * stride]));
        for k in 0..n {
            let (mut re, mut im, mut turn) = (Dd::ZERO, Dd::ZERO, 0);
            for x in &line {
                // The root number k * j mod n.
                let w = roots[turn];
                turn = if turn + k < n { turn + k } else { turn + k - n };
                let wi = if direction == Direction::Forward { -w.im } else { w.im };
                re = re + x.re * w.re - x.im * wi;
                im = im + x.re * wi + x.im * w.re;
            }
            data[start + k * stride] = Number { re, im };
        }
    }
}

/// The transform of one array in C order along some of its axes, times `scale`.
///
/// # Panics
/// If the length of `data` is not that of the shape.
pub fn dft(
    data: &[Complex<f64>],
    shape: [usize; 3],
    axes: &[usize],
    direction: Direction,
    scale: f64,
) -> Vec<Complex<f64>> {
    assert_eq!(data.len(), shape.iter().product::<usize>(), "array and shape differ");
    let mut work: Vec<Number> = data.iter().map(|x| Number { re: Dd::of(x.re), im: Dd::of(x.im) }).collect();
    for &axis in axes {
        transform_axis(&mut work, shape, axis, direction);
    }
    let scale = Dd::of(scale);
    work.iter().map(|x| Complex::new((x.re * scale).value(), (x.im * scale).value())).collect()
}

/// The shape of the spectrum of a real array whose axis `halved` is halved.
pub fn half_shape(shape: [usize; 3], halved: usize) -> [usize; 3] {
    let mut half = shape;
    half[halved] = shape[halved] / 2 + 1;
    half
}

/// The part of a full spectrum (C order) that a real transform keeps.
pub fn keep_half(full: &[Complex<f64>], shape: [usize; 3], halved: usize) -> Vec<Complex<f64>> {
    let half = half_shape(shape, halved);
    let step = strides(shape);
    indices(half).map(|[i, j, k]| full[i * step[0] + j * step[1] + k]).collect()
}

/// All indices of a shape in C order.
pub fn indices(shape: [usize; 3]) -> impl Iterator<Item = [usize; 3]> + Clone {
    Indices { shape, next: [0; 3], left: shape.iter().product() }
}

/// Nested loops as three `flat_map`s take most of the time of some tests.
#[derive(Clone)]
struct Indices {
    shape: [usize; 3],
    next: [usize; 3],
    left: usize,
}

impl Iterator for Indices {
    type Item = [usize; 3];

    #[inline]
    fn next(&mut self) -> Option<[usize; 3]> {
        self.left = self.left.checked_sub(1)?;
        let at = self.next;
        for axis in (0..3).rev() {
            self.next[axis] += 1;
            if self.next[axis] < self.shape[axis] {
                break;
            }
            self.next[axis] = 0;
        }
        Some(at)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Field, measure::Errors};

    fn random(shape: [usize; 3]) -> Vec<Complex<f64>> {
        indices(shape).map(|at| Field::new(7, 53).complex(0, at)).collect()
    }

    #[test]
    fn four_points_by_hand() {
        let c = |re, im| Complex::new(re, im);
        let x = [c(1.0, 0.0), c(2.0, 0.0), c(3.0, 0.0), c(4.0, 1.0)];
        let y = dft(&x, [1, 1, 4], &[2], Direction::Forward, 1.0);
        assert_eq!(y, [c(10.0, 1.0), c(-3.0, 2.0), c(-2.0, -1.0), c(-1.0, -2.0)]);
    }

    #[test]
    fn a_wave_is_one_peak() {
        let (n, m) = (13, 4);
        let x: Vec<_> = (0..n).map(|j| twiddles(n)[j * m % n].conj()).collect();
        let y = dft(&x, [n, 1, 1], &[0], Direction::Forward, 1.0);
        for (k, v) in y.iter().enumerate() {
            let want = if k == m { n as f64 } else { 0.0 };
            assert!((v - want).norm() < 1e-14, "{k}: {v}");
        }
    }

    #[test]
    fn there_and_back_is_exact_to_the_last_bit() {
        let shape = [5, 6, 7];
        let x = random(shape);
        let y = dft(&x, shape, &[0, 1, 2], Direction::Forward, 1.0);
        let back = dft(&y, shape, &[2, 0, 1], Direction::Backward, 1.0 / 210.0);
        let mut errors = Errors::default();
        back.iter().zip(&x).for_each(|(got, want)| errors.add(*got, *want));
        assert!(errors.relative() < 2e-16, "{}", errors.relative());
    }

    #[test]
    fn separable_equals_direct() {
        let shape = [3, 4, 5];
        let x = random(shape);
        let y = dft(&x, shape, &[0, 1, 2], Direction::Forward, 1.0);
        for (p, q) in indices(shape).enumerate() {
            let direct: Complex<f64> = indices(shape)
                .zip(&x)
                .map(|(r, v)| {
                    let turns: f64 = (0..3).map(|d| (q[d] * r[d] % shape[d]) as f64 / shape[d] as f64).sum();
                    v * Complex::from_polar(1.0, -std::f64::consts::TAU * turns)
                })
                .sum();
            assert!((y[p] - direct).norm() < 1e-13);
        }
    }

    #[test]
    fn half_of_a_real_spectrum_holds_it_all() {
        let shape = [3, 4, 5];
        let x: Vec<_> = random(shape).iter().map(|v| Complex::new(v.re, 0.0)).collect();
        let full = dft(&x, shape, &[0, 1, 2], Direction::Forward, 1.0);
        for halved in 0..3 {
            let half = keep_half(&full, shape, halved);
            let mut all = indices(half_shape(shape, halved)).zip(half);
            let at = |q: [usize; 3]| full[(q[0] * shape[1] + q[1]) * shape[2] + q[2]];
            assert!(all.all(|(q, v)| {
                let mirror = [0, 1, 2].map(|d| (shape[d] - q[d]) % shape[d]);
                v == at(q) && (at(mirror).conj() - v).norm() < 1e-14
            }));
        }
    }
}
