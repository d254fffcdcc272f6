//! A Gaussian process: what measured points say about the others, and how sure
//! that is. Small and dense; a tuner has at most some hundred points.

/// Points, what was measured there, and the process through them.
pub(crate) struct Process<'a> {
    points: &'a [Vec<f64>],
    /// Axes on which two values are the same or not, and never near.
    named: &'a [bool],
    /// How far apart two points may be on each axis and still tell of each other.
    scales: Vec<f64>,
    mean: f64,
    variance: f64,
    /// Lower triangle: the matrix of covariances is this times its transpose.
    factor: Vec<Vec<f64>>,
    /// The inverse of that matrix times what was measured, less the mean.
    weights: Vec<f64>,
    likelihood: f64,
}

/// What two runs of the same point differ by, about, relative to how points differ.
const NOISE: f64 = 0.02;
/// Scales that are tried: from "each rung is a world of its own" to "the axis does not matter".
const SCALES: [f64; 5] = [0.15, 0.4, 1.0, 3.0, 10.0];

impl<'a> Process<'a> {
    /// The process that makes what was measured most likely, by trying other
    /// scales one axis at a time, from `scales` on.
    pub fn fit(
        points: &'a [Vec<f64>],
        named: &'a [bool],
        measured: &[f64],
        mut scales: Vec<f64>,
    ) -> Option<Process<'a>> {
        let mut best = Process::new(points, named, measured, scales.clone())?;
        for axis in 0..scales.len() {
            for scale in SCALES {
                let mut other = scales.clone();
                other[axis] = scale;
                if let Some(process) = Process::new(points, named, measured, other)
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
        named: &'a [bool],
        measured: &[f64],
        scales: Vec<f64>,
    ) -> Option<Process<'a>> {
        let n = points.len();
        let mean = measured.iter().sum::<f64>() / n as f64;
        let row = |i: usize| -> Vec<f64> {
            let noise = |j| if i == j { NOISE } else { 0.0 };
            (0..=i).map(|j| likeness(&points[i], &points[j], &scales, named) + noise(j)).collect()
        };
        let factor = cholesky((0..n).map(row).collect())?;
        let centred: Vec<f64> = measured.iter().map(|y| y - mean).collect();
        let half = forward(&factor, &centred);
        let variance = (half.iter().map(|x| x * x).sum::<f64>() / n as f64).max(1e-8);
        let weights = backward(&factor, half);
        let determinant: f64 = (0..n).map(|i| factor[i][i].ln()).sum();
        let likelihood = -0.5 * n as f64 * variance.ln() - determinant;
        Some(Process { points, named, scales, mean, variance, factor, weights, likelihood })
    }

    /// The scales that were found.
    pub fn scales(&self) -> &[f64] {
        &self.scales
    }

    /// What is to be expected at a point, and how far off that may be.
    pub fn at(&self, point: &[f64]) -> (f64, f64) {
        let alike = |other: &Vec<f64>| likeness(point, other, &self.scales, self.named);
        let alike: Vec<f64> = self.points.iter().map(alike).collect();
        let mean = self.mean + alike.iter().zip(&self.weights).map(|(a, w)| a * w).sum::<f64>();
        let known: f64 = forward(&self.factor, &alike).iter().map(|x| x * x).sum();
        (mean, (self.variance * (1.0 - known).max(1e-12)).sqrt())
    }
}

/// Matérn 5/2: costs are smooth, but not infinitely so.
fn likeness(one: &[f64], other: &[f64], scales: &[f64], named: &[bool]) -> f64 {
    let apart = |i: usize| match named[i] {
        true => f64::from(one[i] != other[i]),
        false => one[i] - other[i],
    };
    let r = (5.0 * (0..one.len()).map(|i| (apart(i) / scales[i]).powi(2)).sum::<f64>()).sqrt();
    (1.0 + r + r * r / 3.0) * (-r).exp()
}

/// The factor of a matrix whose lower triangle is given; `None` where it is not positive.
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
    fn it_goes_through_what_was_measured_and_is_unsure_elsewhere() {
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
