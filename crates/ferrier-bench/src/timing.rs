//! Times of collective calls, and statistics of several.

use std::time::Instant;

use ferrier::Comm;
use serde::Serialize;

/// Seconds that `work` takes on the slowest rank. Collective.
///
/// # Errors
/// Those of `work`.
pub fn timed(comm: &Comm, work: impl FnOnce() -> ferrier::Result<()>) -> ferrier::Result<f64> {
    comm.barrier()?;
    let start = Instant::now();
    work()?;
    Ok(comm.max(&[start.elapsed().as_secs_f64()])?[0])
}

/// The median; NaN of no values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// Best and median of several times, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    /// The shortest.
    pub best_ms: f64,
    /// The median.
    pub median_ms: f64,
}

impl Times {
    /// Of times in seconds.
    pub fn new(seconds: &[f64]) -> Self {
        let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        Times { best_ms: best * 1e3, median_ms: median(seconds) * 1e3 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_few_values() {
        assert!(median(&[]).is_nan());
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        let times = Times::new(&[0.25, 0.5]);
        assert_eq!((times.best_ms, times.median_ms), (250.0, 375.0));
    }
}
