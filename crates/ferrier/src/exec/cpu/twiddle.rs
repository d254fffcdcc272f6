//! The twiddle factors between the two steps of a long 1-D transform.

use num_complex::Complex;

use crate::Real;
use crate::exec::operator::Modes;

/// Multiplies element (k, j) by e^(-2 pi i k j / n) (or +), where k < n1 is
/// the index on axis 1 and j < n2 that on axis 2, n = n1 n2. So k j < n.
pub(crate) struct Twiddle<T> {
    /// e^(-2 pi i m / n) for m = 0, 1, 2, ... below `step`, and for multiples of it.
    fine: Vec<Complex<f64>>,
    coarse: Vec<Complex<f64>>,
    step: usize,
    /// Elements on axis 1.
    rows: usize,
    backward: bool,
    kind: std::marker::PhantomData<T>,
}

/// The factor of element k is that of k % STRIDE times that of the multiple of STRIDE below k.
const STRIDE: usize = 64;

impl<T: Real> Twiddle<T> {
    pub fn new(points: usize, rows: usize, backward: bool) -> Self {
        let step = (points as f64).sqrt().ceil().max(1.0) as usize;
        let fine = (0..step).map(|m| root(m, points)).collect();
        let coarse = (0..points.div_ceil(step)).map(|m| root(m * step, points)).collect();
        Twiddle { fine, coarse, step, rows, backward, kind: std::marker::PhantomData }
    }

    fn factor(&self, m: usize) -> Complex<f64> {
        let value = self.coarse[m / self.step] * self.fine[m % self.step];
        if self.backward { value.conj() } else { value }
    }

    /// Steps of `STRIDE` elements in a line.
    fn strides(&self) -> usize {
        self.rows.div_ceil(STRIDE)
    }

    /// Scalars of scratch for blocks of `lines` lines.
    pub fn spare(&self, lines: usize) -> usize {
        (STRIDE.min(self.rows) + self.strides()) * 2 * lines
    }

    /// Multiplies a block of lines along axis 1.
    pub fn apply(&self, modes: &mut Modes<'_, T>, spare: &mut [T]) {
        let (lines, row, scalars) = (modes.len, modes.first[2], 2 * modes.len);
        let column = |lane: usize| if modes.side == 2 { row + lane } else { row };
        let small = STRIDE.min(self.rows);
        let (fine, rest) = spare.split_at_mut(small * scalars);
        let coarse = &mut rest[..self.strides() * scalars];
        let fill = |table: &mut [T], stride: usize| {
            for (k, factors) in table.chunks_exact_mut(scalars).enumerate() {
                for lane in 0..lines {
                    let factor = self.factor(k * stride * column(lane));
                    factors[2 * lane] = T::rounded(factor.re);
                    factors[2 * lane + 1] = T::rounded(factor.im);
                }
            }
        };
        fill(fine, 1);
        fill(coarse, STRIDE);
        for (k, mut run) in modes.runs().enumerate() {
            let one = &fine[k % STRIDE * scalars..][..scalars];
            let two = &coarse[k / STRIDE * scalars..][..scalars];
            let pairs = one.chunks_exact(2).zip(two.chunks_exact(2));
            for (value, (one, two)) in run.complex().iter_mut().zip(pairs) {
                let factor = Complex::new(one[0], one[1]) * Complex::new(two[0], two[1]);
                *value = *value * factor;
            }
        }
    }
}

/// e^(-2 pi i m / n), from an angle of at most an eighth of a turn.
fn root(m: usize, n: usize) -> Complex<f64> {
    // The nearest eighth of a turn, and the rest of the angle, between -1/2 and 1/2 of an eighth.
    let (m, n) = ((m % n) as i128, n as i128);
    let eighth = (16 * m + n) / (2 * n);
    let left = 8 * m - eighth * n;
    let angle = -(left as f64) / (n as f64) * std::f64::consts::FRAC_PI_4;
    let (sin, cos) = angle.sin_cos();
    let half = std::f64::consts::FRAC_1_SQRT_2;
    let turn = [
        (1.0, 0.0),
        (half, -half),
        (0.0, -1.0),
        (-half, -half),
        (-1.0, 0.0),
        (-half, half),
        (0.0, 1.0),
        (half, half),
    ];
    let (re, im) = turn[(eighth % 8) as usize];
    Complex::new(cos, sin) * Complex::new(re, im)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_right() {
        for n in [1, 2, 3, 8, 12, 97, 1 << 20] {
            for m in [0, 1, n / 8, n / 4, n / 3, n / 2, 5 * n / 8, n - 1] {
                let angle = -2.0 * std::f64::consts::PI * m as f64 / n as f64;
                let distance = (root(m, n) - Complex::cis(angle)).norm();
                assert!(distance < 1e-15, "{m}/{n}: {distance}");
            }
        }
        assert_eq!(root(3, 12), Complex::new(0.0, -1.0));
    }
}
