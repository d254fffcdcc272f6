//! Errors and tolerances.

use num_complex::Complex;

/// The factor `c` of [`tolerance`].
///
/// A Cooley-Tukey transform with good twiddles shows a relative L2 error of
/// about `0.3 * eps * sqrt(log2 N)`; primes by Rader or Bluestein, whose inner
/// transforms are two to four times longer, up to three times that. One
/// `eps * log2 N` leaves a margin of 3 for powers of two and hardly any for the
/// worst primes.
pub const C: f64 = 1.0;

/// The machine epsilon of a precision, for [`tolerance`].
pub trait Ulp {
    /// `2^-52` or `2^-23`.
    const EPS: f64;
    /// Bits of the mantissa.
    const BITS: u32;
}

impl Ulp for f32 {
    const EPS: f64 = f32::EPSILON as f64;
    const BITS: u32 = 24;
}

impl Ulp for f64 {
    const EPS: f64 = f64::EPSILON;
    const BITS: u32 = 53;
}

/// The relative L2 error allowed for one transform of `points` points (the
/// product of the transformed lengths): [`C`]` * eps * log2 N`, with N at least 2.
pub fn tolerance<T: Ulp>(points: usize) -> f64 {
    C * T::EPS * (points.max(2) as f64).log2()
}

/// Sums for a relative L2 error; each rank has its own, which are then merged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errors {
    /// Sum of squared differences; NaN if a value is NaN.
    pub wrong: f64,
    /// Sum of squares of the expected values.
    pub size: f64,
    /// Number of values compared.
    pub count: usize,
}

impl Errors {
    /// Compares one value.
    pub fn add(&mut self, got: Complex<f64>, want: Complex<f64>) {
        self.wrong += (got - want).norm_sqr();
        self.size += want.norm_sqr();
        self.count += 1;
    }

    /// Adds the sums of another rank.
    pub fn merge(&mut self, other: &Errors) {
        self.wrong += other.wrong;
        self.size += other.size;
        self.count += other.count;
    }

    /// The relative L2 error; absolute if all expected values are zero.
    pub fn relative(&self) -> f64 {
        if self.size == 0.0 { self.wrong.sqrt() } else { (self.wrong / self.size).sqrt() }
    }

    /// Checks that the error is within `limit` and that `count` values were compared.
    ///
    /// # Errors
    /// One line with the error and the limit. NaN is an error.
    pub fn within(&self, limit: f64, count: usize) -> Result<(), String> {
        let error = self.relative();
        if self.count != count {
            return Err(format!("{} values compared, {count} expected", self.count));
        }
        if error.is_nan() || error > limit {
            return Err(format!("relative L2 error {error:.3e}, allowed {limit:.3e}"));
        }
        Ok(())
    }
}

/// A compensated sum (Neumaier): its error does not grow with the number of terms.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    /// Adds one term.
    pub fn add(&mut self, term: f64) {
        let sum = self.sum + term;
        let (large, small) = if self.sum.abs() >= term.abs() { (self.sum, term) } else { (term, self.sum) };
        self.lost += (large - sum) + small;
        self.sum = sum;
    }

    /// The sum so far.
    pub fn value(&self) -> f64 {
        self.sum + self.lost
    }
}

impl FromIterator<f64> for Sum {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = Sum::default();
        terms.into_iter().for_each(|term| sum.add(term));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_and_missing_values_are_errors() {
        let mut errors = Errors::default();
        errors.add(Complex::new(1.0, 0.0), Complex::new(1.0, 0.0));
        assert!(errors.within(0.0, 1).is_ok());
        assert!(errors.within(0.0, 2).is_err());
        errors.add(Complex::new(f64::NAN, 0.0), Complex::new(1.0, 0.0));
        assert!(errors.within(1e9, 2).is_err());
    }

    #[test]
    fn a_compensated_sum_keeps_small_terms() {
        let terms = [1.0, 1e100, 1.0, -1e100];
        assert_eq!(terms.into_iter().collect::<Sum>().value(), 2.0);
    }

    #[test]
    fn tolerances_are_tight() {
        assert!(tolerance::<f64>(24 * 24 * 24) < 1e-14);
        assert!(tolerance::<f32>(2) < 1e-6);
        assert!(tolerance::<f64>(1) > 0.0);
    }
}
