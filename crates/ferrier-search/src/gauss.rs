//! Gaussian process regression with a dense covariance matrix, for at most some hundred points.

/// A Gaussian process conditioned on measurements.
pub(crate) struct Process<'a> {
    points: &'a [Vec<f64>],
    /// Categorical axes: two values are equal or different, without a distance.
    categorical: &'a [bool],
    /// Length scale of each axis.
    scales: Vec<f64>,
    mean: f64,
    variance: f64,
    /// Cholesky factor of the covariance matrix, lower triangle.
    factor: Vec<Vec<f64>>,
    /// Inverse covariance matrix times the centred measurements.
    weights: Vec<f64>,
    likelihood: f64,
}

/// Variance of the measurement noise, relative to the variance of the process.
const NOISE: f64 = 0.02;
/// Length scales to try: from uncorrelated levels to an irrelevant axis.
const SCALES: [f64; 5] = [0.15, 0.4, 1.0, 3.0, 10.0];

impl<'a> Process<'a> {
    /// The process of the highest likelihood, found by coordinate search over the length scales, starting from
    /// `scales`; `None` if no covariance matrix is positive definite.
    pub fn fit(
        points: &'a [Vec<f64>],
        categorical: &'a [bool],
        measured: &[f64],
        mut scales: Vec<f64>,
    ) -> Option<Process<'a>> {
        let mut best = Process::new(points, categorical, measured, scales.clone())?;
        for axis in 0..scales.len() {
            for scale in SCALES {
                let mut other = scales.clone();
                other[axis] = scale;
                if let Some(process) = Process::new(points, categorical, measured, other)
                    && process.likelihood > best.likelihood
                {
                    best = process;
                }
            }
            scales = best.scales.clone();
        }
        Some(best)
    }

    fn new(
        points: &'a [Vec<f64>],
        categorical: &'a [bool],
        measured: &[f64],
        scales: Vec<f64>,
    ) -> Option<Process<'a>> {
        let n = points.len();
        let mean = measured.iter().sum::<f64>() / n as f64;
        let row = |i: usize| -> Vec<f64> {
            let noise = |j| if i == j { NOISE } else { 0.0 };
            (0..=i).map(|j| covariance(&points[i], &points[j], &scales, categorical) + noise(j)).collect()
        };
        let factor = cholesky((0..n).map(row).collect())?;
        let centred: Vec<f64> = measured.iter().map(|y| y - mean).collect();
        let half = forward(&factor, &centred);
        let variance = (half.iter().map(|x| x * x).sum::<f64>() / n as f64).max(1e-8);
        let weights = backward(&factor, half);
        let determinant: f64 = (0..n).map(|i| factor[i][i].ln()).sum();
        let likelihood = -0.5 * n as f64 * variance.ln() - determinant;
        Some(Process { points, categorical, scales, mean, variance, factor, weights, likelihood })
    }

    /// The fitted length scales.
    pub fn scales(&self) -> &[f64] {
        &self.scales
    }

    /// Mean and standard deviation at a point.
    pub fn at(&self, point: &[f64]) -> (f64, f64) {
        let covariances = |other: &Vec<f64>| covariance(point, other, &self.scales, self.categorical);
        let covariances: Vec<f64> = self.points.iter().map(covariances).collect();
        let mean = self.mean + covariances.iter().zip(&self.weights).map(|(a, w)| a * w).sum::<f64>();
        let known: f64 = forward(&self.factor, &covariances).iter().map(|x| x * x).sum();
        (mean, (self.variance * (1.0 - known).max(1e-12)).sqrt())
    }
}

/// Matérn 5/2 covariance: twice differentiable.
fn covariance(one: &[f64], other: &[f64], scales: &[f64], categorical: &[bool]) -> f64 {
    let apart = |i: usize| match categorical[i] {
        true => f64::from(one[i] != other[i]),
        false => one[i] - other[i],
    };
    let r = (5.0 * (0..one.len()).map(|i| (apart(i) / scales[i]).powi(2)).sum::<f64>()).sqrt();
    (1.0 + r + r * r / 3.0) * (-r).exp()
}

/// Cholesky factor of a matrix given by its lower triangle; `None` if it is not positive definite.
fn cholesky(mut a: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    for i in 0..a.len() {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| a[i][k] * a[j][k]).sum();
            let rest = a[i][j] - dot;
            a[i][j] = match i == j {
                true if rest > 1e-12 => rest.sqrt(),
                true => return None,
                false => rest / a[j][j],
            };
        }
    }
    Some(a)
}

/// Solves `factor * x = b`.
fn forward(factor: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let mut x: Vec<f64> = Vec::with_capacity(b.len());
    for (row, b) in factor.iter().zip(b) {
        let dot: f64 = row.iter().zip(&x).map(|(a, x)| a * x).sum();
        x.push((b - dot) / row[x.len()]);
    }
    x
}

/// Solves `transpose(factor) * x = b`.
fn backward(factor: &[Vec<f64>], mut b: Vec<f64>) -> Vec<f64> {
    for i in (0..b.len()).rev() {
        b[i] /= factor[i][i];
        let x = b[i];
        b[..i].iter_mut().zip(&factor[i]).for_each(|(b, a)| *b -= a * x);
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolates_measurements_and_is_uncertain_elsewhere() {
        let points: Vec<Vec<f64>> = [0.0, 0.2, 0.5, 0.8, 1.0].map(|x| vec![x, 0.3]).to_vec();
        let measured: Vec<f64> = points.iter().map(|p| (3.0 * p[0]).sin()).collect();
        let process = Process::fit(&points, &[false; 2], &measured, vec![0.4, 0.4]).unwrap();
        for (point, want) in points.iter().zip(&measured) {
            let (mean, sigma) = process.at(point);
            assert!((mean - want).abs() < 0.05, "{mean} {want}");
            assert!(sigma < 0.2, "{sigma}");
        }
        let (mean, _) = process.at(&[0.35, 0.3]);
        assert!((mean - (3.0 * 0.35f64).sin()).abs() < 0.1, "{mean}");
        assert!(process.at(&[0.35, 3.0]).1 > process.at(&[0.35, 0.3]).1);
    }

    #[test]
    fn a_factor_times_its_transpose_is_the_matrix() {
        let a = vec![vec![4.0], vec![2.0, 5.0], vec![1.0, 3.0, 6.0]];
        let factor = cholesky(a.clone()).unwrap();
        let want = [1.0, -2.0, 0.5];
        let get = |i: usize, j: usize| if i >= j { a[i][j] } else { a[j][i] };
        let b: Vec<f64> = (0..3).map(|i| (0..3).map(|j| get(i, j) * want[j]).sum()).collect();
        let got = backward(&factor, forward(&factor, &b));
        got.iter().zip(want).for_each(|(x, y)| assert!((x - y).abs() < 1e-12));
        assert!(cholesky(vec![vec![1.0], vec![2.0, 1.0]]).is_none());
    }
}
