//! The definition of a problem: constructors and setters.

use serde::{Deserialize, Serialize};

use crate::kind::{Kind, Scale, Sign};
use crate::layout::LayoutSpec;
use crate::modes::{Keep, Radii};
use crate::setters::setters;
use crate::strides::{ArrayStrides, StridesSpec};

/// A relative error bound. Compared and hashed by its bits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tolerance(
    /// The bound.
    pub f64,
);

impl PartialEq for Tolerance {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Tolerance {}

impl std::hash::Hash for Tolerance {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// A transform, and how its input and output are distributed over ranks.
///
/// There are always three axes: a 2-D array has the shape `[1, n0, n1]`, a 1-D array `[1, 1, n]`. The kernel of
/// `forward` is `e^(-2 pi i k x / n)` unless [`sign`](Problem::sign) says otherwise. By default all axes are transformed, input and output are distributed in
/// slabs along axis 0, `forward` is unscaled and `backward` is scaled by 1/N, as in numpy.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// Lengths of the transforms, in elements.
    pub shape: [usize; 3],
    /// Whether an axis is a real-to-complex transform.
    pub real: bool,
    /// The axis of the real-to-complex transform, which has n/2+1 modes.
    pub halved: usize,
    /// The transformed axes.
    pub axes: Vec<usize>,
    /// The kind of each axis, if given one by one; see [`mixed`](Self::mixed).
    pub mixed: Option<[Kind; 3]>,
    /// Whether the values are complex although all kinds are cosine and sine transforms.
    pub complex_values: bool,
    /// The modes that are kept of each axis.
    pub keep: [Keep; 3],
    /// The half-open range of points of each axis that may be non-zero before `forward`; `None`: all points.
    #[serde(rename = "filled")]
    pub support: [Option<(usize, usize)>; 3],
    /// The radii of the ellipsoid of kept modes.
    pub sphere: Option<Radii>,
    /// Layout of the input of `forward`.
    pub input: LayoutSpec,
    /// Layout of the output of `forward`.
    pub output: LayoutSpec,
    /// Factor of `forward`.
    pub scale_forward: Scale,
    /// Factor of `backward`.
    pub scale_backward: Scale,
    /// Number of arrays that are transformed together.
    pub batch: usize,
    /// Whether the bits of results are independent of the number of ranks.
    pub reproducible: bool,
    /// Whether plans can apply operators to the spectrum.
    pub operators: bool,
    /// Whether axes 1 and 2 are the factors of one long axis; see [`c2c_1d`](Self::c2c_1d).
    pub long: bool,
    /// The allowed relative error of results.
    pub tolerance: Option<Tolerance>,
    /// The sign of the exponent of `forward`.
    #[serde(default, skip_serializing_if = "Sign::is_negative")]
    pub sign: Sign,
    /// Whether the input of `forward` is real although a complex axis is transformed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub real_input: bool,
    /// Where the elements of the inputs of `forward` lie.
    #[serde(default, skip_serializing_if = "StridesSpec::is_dense")]
    pub input_strides: StridesSpec,
    /// Where the elements of the outputs of `forward` lie.
    #[serde(default, skip_serializing_if = "StridesSpec::is_dense")]
    pub output_strides: StridesSpec,
}

impl Problem {
    fn new(shape: [usize; 3], real: bool) -> Self {
        Problem {
            shape,
            real,
            halved: 2,
            axes: vec![0, 1, 2],
            mixed: None,
            complex_values: false,
            keep: [Keep::All; 3],
            support: [None; 3],
            sphere: None,
            input: LayoutSpec::slabs(0),
            output: LayoutSpec::slabs(0),
            scale_forward: Scale::Unscaled,
            scale_backward: Scale::Full,
            batch: 1,
            reproducible: false,
            operators: false,
            long: false,
            tolerance: None,
            sign: Sign::Negative,
            real_input: false,
            input_strides: StridesSpec::Dense,
            output_strides: StridesSpec::Dense,
        }
    }

    /// A complex transform of all three axes.
    pub fn c2c(shape: [usize; 3]) -> Self {
        Self::new(shape, false)
    }

    /// A transform from real values to the non-redundant half of their spectrum (`forward`) and back. Axis 2 is
    /// halved unless [`halved`](Self::halved) sets another one.
    pub fn r2c(shape: [usize; 3]) -> Self {
        Self::new(shape, true)
    }

    /// A transform with a kind for each axis.
    ///
    /// - With a [`Kind::Real`] axis (at most one) values are real before `forward` and complex after it. Cosine
    ///   and sine transforms act on real values before that axis is transformed, or on real and imaginary parts
    ///   after it, with the same result.
    /// - Without a real axis but with a [`Kind::Complex`] axis, values are complex before and after. Cosine and
    ///   sine transforms act on real and imaginary parts.
    /// - With cosine and sine transforms only, values are real before and after, unless
    ///   [`complex_values`](Self::complex_values) is set.
    ///
    /// `forward` is unscaled and `backward` is scaled by one over the product of [sizes](Kind::size), as in
    /// `scipy.fft` with `norm="backward"`. [`Scale::Symmetric`] in both directions is `norm="ortho"`;
    /// [`Scale::Full`] forward with [`Scale::Unscaled`] backward is `norm="forward"`.
    ///
    /// ```
    /// use ferrier::{Kind, Plan, Problem};
    /// // Axis 0 is bounded by walls, the other two axes are periodic.
    /// let problem = Problem::mixed([8, 8, 8], [Kind::Dct2, Kind::Complex, Kind::Real]);
    /// ferrier::ranks(2).run(|comm| {
    ///     let mut plan = Plan::<f64>::new(&comm, &problem)?;
    ///     let mut field = plan.make_input()?;
    ///     field.fill_real(|_, _| 1.0);
    ///     let mut modes = plan.make_output()?;
    ///     plan.forward(&field, &mut modes)?;
    ///     if let Some(zero) = modes.index(0, [0, 0, 0]) {
    ///         assert!((modes.complex()[zero].re - 2.0 * 512.0).abs() < 1e-9);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), ferrier::Error>(())
    /// ```
    pub fn mixed(shape: [usize; 3], kinds: [Kind; 3]) -> Self {
        let halved = kinds.iter().position(|&kind| kind == Kind::Real);
        Problem {
            axes: (0..3).filter(|&axis| kinds[axis] != Kind::Identity).collect(),
            halved: halved.unwrap_or(2),
            mixed: Some(kinds),
            ..Self::new(shape, halved.is_some())
        }
    }

    /// No transform: an array goes from the layout of its input to that of its output. `Redistribution` takes it for
    /// elements of any type, plans take it for complex numbers.
    ///
    /// ```
    /// use ferrier::{LayoutSpec, Problem, Redistribution};
    /// let problem = Problem::redistribute([4, 6, 8]).input(LayoutSpec::slabs(0)).output(LayoutSpec::pencils(2));
    /// ferrier::ranks(2).run(|comm| {
    ///     let mut redistribution = Redistribution::<u16>::new(&comm, &problem)?;
    ///     let slab = vec![comm.rank() as u16; redistribution.input_box().volume()];
    ///     let mut pencils = vec![0; redistribution.output_box().volume()];
    ///     redistribution.run(&slab, &mut pencils)?;
    ///     Ok(())
    /// })?;
    /// # Ok::<(), ferrier::Error>(())
    /// ```
    pub fn redistribute(shape: [usize; 3]) -> Self {
        Self::mixed(shape, [Kind::Identity; 3])
    }

    /// Makes values complex although all kinds are cosine and sine transforms, which then act on real and
    /// imaginary parts.
    #[must_use]
    pub fn complex_values(mut self) -> Self {
        self.complex_values = true;
        self
    }

    setters! {
        /// Sets the modes of each axis that are kept. `forward` drops the others right after an axis is transformed,
        /// `backward` pads with zeros right before: known zeros are neither transformed nor sent. The spectrum is an
        /// array of the kept modes only.
        ///
        /// ```
        /// use ferrier::{Keep, Plan, Problem};
        /// let problem = Problem::c2c([16, 16, 16]).keep([Keep::Lowest(8); 3]);
        /// assert_eq!(problem.spectrum_shape(), [8, 8, 8]);
        /// ferrier::ranks(2).run(|comm| {
        ///     let mut plan = Plan::<f64>::new(&comm, &problem)?;
        ///     let (mut coarse, mut fine) = (plan.make_output()?, plan.make_input()?);
        ///     coarse.fill_complex(|_, at| if at == [0, 0, 7] { 4096.0.into() } else { 0.0.into() });
        ///     // The last of the kept modes is the frequency -1.
        ///     plan.backward(&coarse, &mut fine)?;
        ///     if let Some(at) = fine.index(0, [0, 0, 4]) {
        ///         assert!((fine.complex()[at].im + 1.0).abs() < 1e-12);
        ///     }
        ///     Ok(())
        /// })?;
        /// # Ok::<(), ferrier::Error>(())
        /// ```
        keep(keep: [Keep; 3]) = keep;
    }

    /// Keeps the modes inside a sphere: integer frequencies k with |k| <= `radius`, the cut-off of plane-wave
    /// codes.
    ///
    /// The spectrum consists of *columns* along axis 0, one for each pair of frequencies of the other two axes
    /// inside the disc, in the order of [`columns`](Self::columns). Its shape is: kept modes of axis 0, number of
    /// columns, 1. Columns outside the disc are neither transformed nor sent. By default the output is
    /// distributed in slabs along axis 1, so that ranks have equal numbers of columns and of transforms; call
    /// `output` after this to change it. Elements of a column outside the sphere are zero after `forward` and
    /// treated as zero by `backward`.
    ///
    /// Axes must be complex; axis 2 may be halved; axis 0 may have length 1.
    #[must_use]
    pub fn keep_sphere(self, radius: f64) -> Self {
        self.keep_ellipsoid([radius; 3])
    }

    /// [`keep_sphere`](Self::keep_sphere) with a radius for each axis: the sum of (k/r)^2 is at most 1.
    #[must_use]
    pub fn keep_ellipsoid(mut self, radii: [f64; 3]) -> Self {
        self.sphere = Some(Radii::new(radii));
        self.output = LayoutSpec::slabs(1);
        self
    }

    /// Sets the points of an axis that may be non-zero before `forward`. The input holds only them, and
    /// `backward` computes only them. The axis is transformed in its whole length: a linear convolution of two
    /// signals of `m` points is a transform of length `2m` with the support `0..m`. Axes above 2 are ignored.
    #[must_use]
    pub fn support(mut self, axis: usize, range: std::ops::Range<usize>) -> Self {
        if let Some(support) = self.support.get_mut(axis) {
            *support = Some((range.start, range.end));
        }
        self
    }

    setters! {
        /// Sets the axis that shrinks to n/2+1 modes in a real transform.
        halved(axis: usize) = axis;

        /// Sets the axes to transform; the others are not changed.
        axes(axes: &[usize]) = axes.to_vec();

        /// Sets the layout of the input of `forward`.
        input(layout: LayoutSpec) = layout;

        /// Sets the layout of the output of `forward`.
        output(layout: LayoutSpec) = layout;

        /// Sets the sign of the exponent of `forward`; `backward` has the other one. Not together with
        /// [`operators`](Self::operators), which are defined by the spectra of the negative sign.
        sign(sign: Sign) = sign;

        /// Takes real values as the input of a complex transform: the first pass reads real elements, and real ones are
        /// sent until a complex axis is transformed. The spectrum is whole, not halved as that of [`r2c`](Self::r2c);
        /// `backward` stores the real parts of its results.
        real_input(yes: bool) = yes;

        /// Sets where the elements of the calling rank's input of `forward` lie: ghost cells around a brick, padded
        /// rows, interleaved arrays of a batch. Ranks may differ; one that sets nothing has an array without gaps. The
        /// plan, its bits and its choices are those of arrays without gaps: no pass is added, except where input and
        /// output of a call in place have strides that differ. The memory order of the layout should be that of the
        /// strides: the planner decides by it.
        input_strides(strides: ArrayStrides) = StridesSpec::Local(strides);

        /// Sets where the elements of the calling rank's output of `forward` lie; see
        /// [`input_strides`](Self::input_strides). Not for an output that the planner chooses.
        output_strides(strides: ArrayStrides) = StridesSpec::Local(strides);

        /// Sets the factor of `forward`.
        scale_forward(scale: Scale) = scale;

        /// Sets the factor of `backward`.
        scale_backward(scale: Scale) = scale;

        /// Sets the number of arrays that are transformed together; on each rank they are consecutive in memory.
        batch(arrays: usize) = arrays;

        /// Fixes the order of the axes and the kernel, so that the bits of the result do not depend on the number of
        /// ranks, on their nodes or on constants of the machine that were measured.
        reproducible(yes: bool) = yes;

        /// Sets the allowed relative error: the L2 norm of the difference to the exact result, over the norm of the
        /// result. Messages between ranks are then encoded in as few bytes as the tolerance allows, and
        /// `Plan::certificate` reports the loss.
        ///
        /// Planning fails for a tolerance that rounding alone might exceed (below 10 epsilon log2 N). A transform
        /// whose certificate exceeds the tolerance is an error; this happens only if the result is much smaller than
        /// an intermediate array.
        tolerance(error: f64) = Some(Tolerance(error));

        /// Prepares plans for operators (`Plan::apply` and related calls). Such plans take more time to make and may
        /// take more memory. Not together with a [`tolerance`](Self::tolerance), since an operator may amplify errors
        /// by any factor.
        operators(yes: bool) = yes;
    }
}
