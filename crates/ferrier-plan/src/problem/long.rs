//! Transforms of one long axis.

use super::definition::Problem;
use crate::layout::{LayoutSpec, Order};

impl Problem {
    /// A complex transform of one long axis of `n` points, over all ranks.
    ///
    /// The array is treated as a matrix of shape `[1, n1, n2]` with n = n1 n2, both factors as near to the root of
    /// n as its divisors allow. Point j of the input is element (j / n2, j % n2), so each rank has consecutive
    /// points (whole rows of the matrix). The output is in natural order as well: mode k is element
    /// (k % n1, k / n1), in memory order (0, 2, 1). With the output `LayoutSpec::slabs(1)` or
    /// `LayoutSpec::unconstrained()` it stays transposed, mode k1 + n1 k2 in row k1, which saves one of three
    /// exchanges.
    ///
    /// At most n1 ranks have work: an n with a large prime factor is distributed unevenly, and a prime n is one
    /// line (n1 = 1) on one rank.
    ///
    /// ```
    /// use ferrier::{Complex, Plan, Problem};
    /// let problem = Problem::c2c_1d(1 << 12);
    /// ferrier::ranks(4).run(|comm| {
    ///     let mut plan = Plan::<f64>::new(&comm, &problem)?;
    ///     let mut signal = plan.make_input()?;
    ///     signal.fill_complex(|_, [_, j1, j2]| {
    ///         let j = j1 * problem.shape()[2] + j2;
    ///         Complex::cis(2.0 * std::f64::consts::PI * 5.0 * j as f64 / 4096.0)
    ///     });
    ///     let mut modes = plan.make_output()?;
    ///     plan.forward(&signal, &mut modes)?;
    ///     if let Some(at) = modes.index(0, problem.mode(5)) {
    ///         assert!((modes.complex()[at].re - 4096.0).abs() < 1e-9);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), ferrier::Error>(())
    /// ```
    pub fn c2c_1d(n: usize) -> Self {
        let root = (n as f64).sqrt() as usize + 1;
        let n1 = (1..=root.min(n)).rev().find(|d| n.is_multiple_of(*d) && d * d <= n).unwrap_or(1);
        let problem = Problem::c2c([1, n1, n / n1]).axes(&[1, 2]).input(LayoutSpec::slabs(1));
        match n1 {
            1 => problem.output(LayoutSpec::slabs(1)),
            _ => {
                let order = Order::new([0, 2, 1]).expect("three different axes");
                Problem { long: true, ..problem.output(LayoutSpec::slabs(2).order(order)) }
            }
        }
    }

    /// The index of mode `k` of a [`c2c_1d`](Self::c2c_1d) transform in its spectrum.
    pub fn mode(&self, k: usize) -> [usize; 3] {
        [0, k % self.shape[1], k / self.shape[1]]
    }
}
