//! Tables to be uploaded to a GPU.

use std::f64::consts::TAU;

use crate::Real;

/// Tables for the kernels, in the layout that they have on the GPU.
#[derive(Default)]
pub(crate) struct TableBuffer {
    pub bytes: Vec<u8>,
    roots: Vec<(usize, usize)>,
}

impl TableBuffer {
    /// Appends values; returns their offset.
    pub fn push<E: Copy>(&mut self, items: &[E]) -> usize {
        let at = self.bytes.len().next_multiple_of(64);
        self.bytes.resize(at, 0);
        // SAFETY: tables are structures of integers and floats without padding.
        let bytes = unsafe { std::slice::from_raw_parts(items.as_ptr().cast::<u8>(), size_of_val(items)) };
        self.bytes.extend_from_slice(bytes);
        at
    }

    /// Reserves `count` words that are set later.
    pub fn reserve(&mut self, count: usize) -> usize {
        self.push(&vec![0_u64; count])
    }

    /// The n-th roots of unity, sign -1.
    pub fn roots<T: Real>(&mut self, n: usize) -> usize {
        if let Some((_, at)) = self.roots.iter().find(|(known, _)| *known == n) {
            return *at;
        }
        // Reduced to half a quadrant, so that values that are 0, 1 or equal are exactly so.
        let root = |k: usize| {
            let (quadrant, rest) = (4 * k / n, 4 * k % n);
            let angle = |part: usize| TAU * part as f64 / (4 * n) as f64;
            let (c, s) = match 2 * rest <= n {
                true => (angle(rest).cos(), angle(rest).sin()),
                false => (angle(n - rest).sin(), angle(n - rest).cos()),
            };
            let (c, s) = match quadrant {
                0 => (c, s),
                1 => (-s, c),
                2 => (-c, -s),
                _ => (s, -c),
            };
            [T::rounded(c), T::rounded(-s)]
        };
        let all: Vec<[T; 2]> = (0..n).map(root).collect();
        let at = self.push(&all);
        self.roots.push((n, at));
        at
    }
}
