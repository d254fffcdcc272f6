//! Problems of one long axis, and problems for operators.

use crate::error::Invalid;
use crate::{Keep, LayoutSpec, Order, Problem};

impl Problem {
    /// A complex transform of one long axis of `n` points, over all ranks.
    ///
    /// The array is seen as a matrix: n = n1 n2, both as near to the root of n
    /// as its divisors allow, shape `[1, n1, n2]`. Point j of the input is
    /// element (j / n2, j % n2), so each rank has consecutive points (whole
    /// rows of the matrix). The output lies likewise in natural order: mode k
    /// is element (k % n1, k / n1), in memory order (0, 2, 1). With the output
    /// `LayoutSpec::slabs(1)` or `best()` it stays transposed, mode k1 + n1 k2
    /// in row k1, which saves one of three exchanges.
    ///
    /// No more than n1 ranks have work, so a number with a large prime factor
    /// is spread badly, and a prime is one line (n1 = 1) on one rank.
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

    /// Where mode `k` of a [`c2c_1d`](Self::c2c_1d) transform is in its spectrum.
    pub fn mode(&self, k: usize) -> [usize; 3] {
        [0, k % self.shape[1], k / self.shape[1]]
    }

    /// Prepares plans for operators too ([`Plan::apply`](crate::Plan::apply)
    /// and its relatives), which take more time to make and may take more memory.
    /// Not together with a [`tolerance`](Self::tolerance), since nobody knows how an operator lets errors grow.
    pub fn operators(mut self, yes: bool) -> Self {
        self.operators = yes;
        self
    }

    pub(crate) fn check_use(&self) -> std::result::Result<(), Invalid> {
        if self.operators && self.axes.is_empty() {
            let message = "operators act on spectra, but no axis is transformed";
            return Err(Invalid::new("operators", message).expected("at least one transformed axis"));
        }
        if self.operators && self.tolerance.is_some() {
            let message = "a tolerance is kept by forward and backward transforms; an operator in between may let \
                           errors grow by any factor: name a codec, which promises nothing, or go there and back \
                           with a plan without operators";
            return Err(Invalid::new("tolerance", message).expected("no tolerance with operators"));
        }
        if self.long && (self.axes != [1, 2] || self.mixed.is_some()) {
            let message = format!("axes 1 and 2 of a long transform go together; got {:?}", self.axes);
            return Err(Invalid::new("axes", message).expected("[1, 2]").got(format!("{:?}", self.axes)));
        }
        if self.long && (self.keep != [Keep::All; 3] || self.support != [None; 3]) {
            let message = "all points of a long transform are there, and all modes are kept";
            return Err(Invalid::new("keep", message).expected("all modes and points"));
        }
        Ok(())
    }
}
