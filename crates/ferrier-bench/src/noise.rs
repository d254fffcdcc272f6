//! Random data: the value at a global index is a function of that index, so it does not
//! depend on the layout.

use ferrier::{Array, Real};
use num_complex::Complex;

use crate::scalars::rounded;

/// Random values for arrays of one shape.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    shape: [usize; 3],
    seed: u64,
}

impl Noise {
    /// Random values for arrays of this shape.
    pub fn new(shape: [usize; 3], seed: u64) -> Self {
        Noise { shape, seed }
    }

    /// The value of array `b` at `index`: both parts uniform in [-1, 1).
    pub fn at(&self, b: usize, index: [usize; 3]) -> Complex<f64> {
        let linear = (b * self.shape[0] + index[0]) * self.shape[1] + index[1];
        let linear = (linear * self.shape[2] + index[2]) as u64;
        Complex::new(self.uniform(2 * linear), self.uniform(2 * linear + 1))
    }

    /// Fills a rank's part of the arrays.
    pub fn fill<T: Real>(&self, array: &mut Array<T>) {
        match array.is_real() {
            true => array.fill_real(|b, index| T::rounded(self.at(b, index).re)),
            false => array.fill_complex(|b, index| rounded(self.at(b, index))),
        }
    }

    fn uniform(&self, counter: u64) -> f64 {
        (mix(self.seed ^ mix(counter)) >> 11) as f64 * (2.0 / (1u64 << 53) as f64) - 1.0
    }
}

/// The finaliser of splitmix64.
pub fn mix(counter: u64) -> u64 {
    let z = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
