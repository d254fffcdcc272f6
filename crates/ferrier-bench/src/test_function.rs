//! A smooth periodic function with known spectrum and derivatives.
//!
//! Along each axis the Poisson kernel, (1 - r^2) / (1 - 2 r cos x + r^2), on
//! [0, 2 pi): its Fourier coefficients are r^|k|, so errors of a grid fall
//! geometrically with the number of points, as for all analytic functions, but slowly
//! enough to be measured: for Helmholtz' equation, 3e-2 at 32 points and 7e-6 at 64.

use std::f64::consts::TAU;

/// The rate at which coefficients fall.
const RATE: f64 = 0.7;

/// The product of three kernels on a grid.
pub struct TestFunction {
    shape: [usize; 3],
    /// The kernel along each axis, and its second derivative.
    values: [Vec<f64>; 3],
    second_derivatives: [Vec<f64>; 3],
    /// The discrete transform of the kernel along each axis.
    modes: [Vec<f64>; 3],
}

impl TestFunction {
    /// On the points `2 pi i / n`.
    pub fn new(shape: [usize; 3]) -> Self {
        let along =
            |kind: fn(usize, usize) -> f64| shape.map(|n| (0..n).map(|i| kind(i, n)).collect::<Vec<_>>());
        TestFunction {
            shape,
            values: along(kernel),
            second_derivatives: along(second_derivative),
            modes: along(mode),
        }
    }

    /// The grid.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// The function itself.
    pub fn value(&self, index: [usize; 3]) -> f64 {
        product(&self.values, index)
    }

    /// The function minus its Laplacian.
    pub fn helmholtz(&self, [i, j, k]: [usize; 3]) -> f64 {
        let [a, b, c] = [self.values[0][i], self.values[1][j], self.values[2][k]];
        let [second_a, second_b, second_c] =
            [self.second_derivatives[0][i], self.second_derivatives[1][j], self.second_derivatives[2][k]];
        a * b * c - (second_a * b * c + a * second_b * c + a * b * second_c)
    }

    /// The unscaled discrete transform of its values, which is real.
    pub fn mode(&self, index: [usize; 3]) -> f64 {
        product(&self.modes, index)
    }
}

fn product(factors: &[Vec<f64>; 3], [i, j, k]: [usize; 3]) -> f64 {
    factors[0][i] * factors[1][j] * factors[2][k]
}

/// Cosine of a point, from the angle to the nearest multiple of pi.
fn cosine(i: usize, n: usize) -> f64 {
    (TAU * i.min(n - i) as f64 / n as f64).cos()
}

fn kernel(i: usize, n: usize) -> f64 {
    (1.0 - RATE * RATE) / (1.0 - 2.0 * RATE * cosine(i, n) + RATE * RATE)
}

fn second_derivative(i: usize, n: usize) -> f64 {
    let cos = cosine(i, n);
    let below = 1.0 - 2.0 * RATE * cos + RATE * RATE;
    let (first, second) = (-2.0 * RATE * cos, 8.0 * RATE * RATE * (1.0 - cos * cos) / below);
    (1.0 - RATE * RATE) * (first + second) / (below * below)
}

/// Coefficients whose wave numbers differ by a multiple of n alias to one mode: two geometric series.
fn mode(k: usize, n: usize) -> f64 {
    let power = |k: usize| RATE.powi(k as i32);
    n as f64 * (power(k) + power(n - k)) / (1.0 - power(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the defining sums and second differences.
    #[test]
    fn modes_and_derivatives_match_the_values() {
        let function = TestFunction::new([1, 9, 12]);
        assert!((function.value([0, 0, 0]) / (1.7f64 / 0.3).powi(3) - 1.0).abs() < 1e-14);
        for n in [1, 2, 9, 12] {
            for k in 0..n {
                let sum: f64 =
                    (0..n).map(|i| kernel(i, n) * (TAU * (i * k % n) as f64 / n as f64).cos()).sum();
                assert!((sum - mode(k, n)).abs() < 1e-13 * mode(0, n), "{k} of {n}: {sum} {}", mode(k, n));
            }
        }
        let (n, h) = (1 << 14, TAU / f64::from(1 << 14));
        for i in [0, 1, 100, 5000, n / 2] {
            let [a, b, c] = [i + n - 1, i, i + 1].map(|i| kernel(i % n, n));
            assert!(((a - 2.0 * b + c) / (h * h) - second_derivative(i, n)).abs() < 1e-3, "{i}");
        }
    }
}
