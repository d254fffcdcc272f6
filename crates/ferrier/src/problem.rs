//! What the user wants.

use serde::{Deserialize, Serialize};

use crate::{Error, Layout, LayoutSpec, Order, Result};

/// What happens to an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// Left as it is.
    None,
    /// Complex to complex.
    Complex,
    /// Real to complex forward (n to n/2+1), complex to real backward.
    Real,
}

/// By what a transform multiplies; N is the product of the transformed axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// 1.
    None,
    /// 1/N.
    Full,
    /// 1/sqrt(N).
    Symmetric,
}

impl Scale {
    pub(crate) fn factor(self, n: f64) -> f64 {
        match self {
            Scale::None => 1.0,
            Scale::Full => 1.0 / n,
            Scale::Symmetric => 1.0 / n.sqrt(),
        }
    }
}

/// What is to be transformed, how it is spread over ranks before and after.
///
/// There are always three axes: a 2-D array has the shape `[1, n0, n1]`, a
/// 1-D one `[1, 1, n]`. Forward is `e^(-2 pi i k x / n)`. By default all axes
/// are transformed, both sides lie in slabs along axis 0, forward is not
/// scaled and backward is scaled by 1/N, as in numpy.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Problem {
    pub(crate) shape: [usize; 3],
    pub(crate) real: bool,
    pub(crate) halved: usize,
    pub(crate) axes: Vec<usize>,
    pub(crate) input: LayoutSpec,
    pub(crate) output: LayoutSpec,
    pub(crate) scale_forward: Scale,
    pub(crate) scale_backward: Scale,
    pub(crate) batch: usize,
    pub(crate) reproducible: bool,
    pub(crate) operators: bool,
    /// Are axes 1 and 2 the factors of one long axis?
    pub(crate) long: bool,
}

impl Problem {
    fn new(shape: [usize; 3], real: bool) -> Self {
        Problem {
            shape,
            real,
            halved: 2,
            axes: vec![0, 1, 2],
            input: LayoutSpec::slabs(0),
            output: LayoutSpec::slabs(0),
            scale_forward: Scale::None,
            scale_backward: Scale::Full,
            batch: 1,
            reproducible: false,
            operators: false,
            long: false,
        }
    }

    /// A complex transform of all three axes.
    pub fn c2c(shape: [usize; 3]) -> Self {
        Self::new(shape, false)
    }

    /// A transform from real numbers to the non-redundant half of their
    /// spectrum (forward) and back; axis 2 is halved unless told otherwise.
    pub fn r2c(shape: [usize; 3]) -> Self {
        Self::new(shape, true)
    }

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
        let problem = Self::new([1, n1, n / n1], false).axes(&[1, 2]);
        match n1 {
            1 => problem.output(LayoutSpec::slabs(1)).input(LayoutSpec::slabs(1)),
            _ => {
                let order = Order::new([0, 2, 1]).expect("three different axes");
                let problem = problem.input(LayoutSpec::slabs(1)).output(LayoutSpec::slabs(2).order(order));
                Problem { long: true, ..problem }
            }
        }
    }

    /// Where mode `k` of a [`c2c_1d`](Self::c2c_1d) transform is in its spectrum.
    pub fn mode(&self, k: usize) -> [usize; 3] {
        [0, k % self.shape[1], k / self.shape[1]]
    }

    /// Prepares plans for operators too ([`Plan::apply`](crate::Plan::apply)
    /// and its relatives), which take more time to make and may take more memory.
    pub fn operators(mut self, yes: bool) -> Self {
        self.operators = yes;
        self
    }

    /// The axis that shrinks to n/2+1 in a real transform.
    pub fn halved(mut self, axis: usize) -> Self {
        self.halved = axis;
        self
    }

    /// The axes to transform; the others are left as they are.
    pub fn axes(mut self, axes: &[usize]) -> Self {
        self.axes = axes.to_vec();
        self
    }

    /// How the input of `forward` is spread over ranks.
    pub fn input(mut self, layout: LayoutSpec) -> Self {
        self.input = layout;
        self
    }

    /// How the output of `forward` is spread over ranks.
    pub fn output(mut self, layout: LayoutSpec) -> Self {
        self.output = layout;
        self
    }

    /// The factor of `forward`.
    pub fn scale_forward(mut self, scale: Scale) -> Self {
        self.scale_forward = scale;
        self
    }

    /// The factor of `backward`.
    pub fn scale_backward(mut self, scale: Scale) -> Self {
        self.scale_backward = scale;
        self
    }

    /// The number of arrays transformed together; each rank has them one
    /// after the other in memory.
    pub fn batch(mut self, arrays: usize) -> Self {
        self.batch = arrays;
        self
    }

    /// Pins the order of the axes and the kernel, so that the bits of the
    /// result do not depend on the number of ranks.
    pub fn reproducible(mut self, yes: bool) -> Self {
        self.reproducible = yes;
        self
    }

    /// Shape of the input of `forward`.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Shape of the output of `forward`: the same, but for the halved axis of
    /// a real transform.
    pub fn spectrum_shape(&self) -> [usize; 3] {
        let mut shape = self.shape;
        if self.real && self.halved < 3 {
            shape[self.halved] = shape[self.halved] / 2 + 1;
        }
        shape
    }

    /// Is this a real transform?
    pub fn is_real(&self) -> bool {
        self.real
    }

    /// The kind of each axis.
    pub fn kinds(&self) -> [Kind; 3] {
        std::array::from_fn(|axis| match () {
            () if !self.axes.contains(&axis) => Kind::None,
            () if self.real && axis == self.halved => Kind::Real,
            () => Kind::Complex,
        })
    }

    /// Product of the transformed axes.
    pub(crate) fn points(&self) -> f64 {
        self.axes.iter().map(|&axis| self.shape[axis] as f64).product()
    }

    /// Checks everything but the layouts.
    ///
    /// # Errors
    /// [`Error::Problem`] for an axis of length 0, axes that repeat or do not
    /// exist, a halved axis that is not transformed, half of a long axis,
    /// operators without a transform, a batch of 0, a size whose bytes do not
    /// fit the address space.
    pub fn check(&self) -> Result<()> {
        let fail = |text: String| Err(Error::Problem(text));
        let [x, y, z] = self.shape;
        if let Some(axis) = (0..3).find(|&a| self.shape[a] == 0) {
            return fail(format!("every axis needs at least one point; axis {axis} of {x}x{y}x{z} has none"));
        }
        if let Some(axis) = self.axes.iter().find(|&&axis| axis > 2) {
            return fail(format!("axes are 0, 1 and 2; got {axis}"));
        }
        if let Some(i) = (1..self.axes.len()).find(|&i| self.axes[..i].contains(&self.axes[i])) {
            return fail(format!("axis {} is listed twice in {:?}", self.axes[i], self.axes));
        }
        if self.real && !self.axes.contains(&self.halved) {
            return fail(format!(
                "the halved axis {} of a real transform must be among the transformed axes {:?}",
                self.halved, self.axes
            ));
        }
        if self.operators && self.axes.is_empty() {
            return fail("operators act on spectra, but no axis is transformed".into());
        }
        if self.long && self.axes != [1, 2] {
            return fail(format!("axes 1 and 2 of a long transform go together; got {:?}", self.axes));
        }
        if self.batch == 0 {
            return fail("a batch needs at least one array, got 0".into());
        }
        // Twice the bytes, so that padded strides and offsets stay in range too.
        let bytes = self
            .shape
            .iter()
            .map(|&n| n.saturating_add(2))
            .chain([self.batch, 32])
            .try_fold(1usize, usize::checked_mul);
        if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
            return fail(format!(
                "{} arrays of {x}x{y}x{z} are more bytes than can be addressed",
                self.batch
            ));
        }
        Ok(())
    }

    /// The layouts of input and output; `None` for an output left to the planner.
    pub(crate) fn layouts(&self, ranks: usize) -> Result<(Layout, Option<Layout>)> {
        let input = self.input.layout(self.shape, ranks).map_err(|e| prefix("input", e))?;
        let output = match self.output.split {
            crate::layout::Split::Best => None,
            _ => Some(self.output.layout(self.spectrum_shape(), ranks).map_err(|e| prefix("output", e))?),
        };
        Ok((input, output))
    }
}

fn prefix(side: &str, error: Error) -> Error {
    match error {
        Error::Layout(text) => Error::Layout(format!("{side} layout: {text}")),
        other => other,
    }
}
