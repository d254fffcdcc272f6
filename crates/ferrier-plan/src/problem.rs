//! What the user wants.

use serde::{Deserialize, Serialize};

use crate::error::Invalid;
use crate::kind::names;
use crate::modes::{Columns, IndexRun, Radii, frequency, modes, total_len};
use crate::{Error, Keep, Kind, Layout, LayoutSpec, Result, Scale};

/// A relative error that is allowed; compared by its bits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tolerance(pub f64);

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

/// What is to be transformed, how it is spread over ranks before and after.
///
/// There are always three axes: a 2-D array has the shape `[1, n0, n1]`, a
/// 1-D one `[1, 1, n]`. Forward is `e^(-2 pi i k x / n)`. By default all axes
/// are transformed, both sides lie in slabs along axis 0, forward is not
/// scaled and backward is scaled by 1/N, as in numpy.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Problem {
    pub shape: [usize; 3],
    pub real: bool,
    pub halved: usize,
    pub axes: Vec<usize>,
    /// Kinds that are not all complex or real.
    pub mixed: Option<[Kind; 3]>,
    /// Are the values complex although no axis says so?
    pub complex_values: bool,
    pub keep: [Keep; 3],
    #[serde(rename = "filled")]
    pub support: [Option<(usize, usize)>; 3],
    pub sphere: Option<Radii>,
    pub input: LayoutSpec,
    pub output: LayoutSpec,
    pub scale_forward: Scale,
    pub scale_backward: Scale,
    pub batch: usize,
    pub reproducible: bool,
    pub operators: bool,
    /// Are axes 1 and 2 the factors of one long axis?
    pub long: bool,
    pub tolerance: Option<Tolerance>,
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

    /// Each axis its own transform.
    ///
    /// - With a [`Kind::Real`] axis (one at most) values are real before
    ///   `forward` and complex after it; cosines and sines act on real values
    ///   before that axis is transformed, or on both parts after it, which is
    ///   the same.
    /// - Without one, but with a [`Kind::Complex`] axis, values are complex on
    ///   both sides; cosines and sines act on both parts.
    /// - With cosines and sines only, values are real on both sides, unless
    ///   [`complex_values`](Self::complex_values) says otherwise.
    ///
    /// Nothing is scaled forward, and backward by one over the product of
    /// [sizes](Kind::size), as `scipy.fft` does with `norm="backward"`;
    /// [`Scale::Symmetric`] on both sides is its `norm="ortho"`, and
    /// [`Scale::Full`] forward with [`Scale::Unscaled`] backward its `norm="forward"`.
    ///
    /// ```
    /// use ferrier::{Kind, Plan, Problem};
    /// // The walls are in z, the other two axes are periodic.
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

    /// The values are complex although the axes are cosines and sines only,
    /// which act on both parts.
    pub fn complex_values(mut self) -> Self {
        self.complex_values = true;
        self
    }

    /// Which modes of each axis are kept. Forward drops the others right
    /// after an axis is transformed, backward pads with zeros right before:
    /// what is known to be zero is neither transformed nor sent. The spectrum
    /// is an array of the kept modes only.
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
    pub fn keep(mut self, keep: [Keep; 3]) -> Self {
        self.keep = keep;
        self
    }

    /// Keeps the modes inside a sphere: frequencies k (in whole turns over an
    /// axis) with |k| <= `radius`, as plane-wave codes cut off their waves.
    ///
    /// The spectrum is made of *columns* along axis 0, one for each pair of
    /// frequencies of the other two axes inside the disc, in the order of
    /// [`columns`](Self::columns): its shape is the kept modes of axis 0, by
    /// columns, by 1. Columns outside the disc are neither transformed nor
    /// sent. By default the output lies in slabs along axis 1, so that ranks
    /// have equal numbers of columns, and of transforms; `output` after this
    /// changes that. Elements of a column that are outside the sphere are zero
    /// after `forward` and taken as zero by `backward`.
    ///
    /// Axes are complex, axis 2 may be halved; axis 0 may be of length 1.
    pub fn keep_sphere(self, radius: f64) -> Self {
        self.keep_ellipsoid([radius; 3])
    }

    /// [`keep_sphere`](Self::keep_sphere) with a radius for each axis: the sum of (k/r)^2 is at most 1.
    pub fn keep_ellipsoid(mut self, radii: [f64; 3]) -> Self {
        self.sphere = Some(Radii::new(radii));
        self.output = LayoutSpec::slabs(1);
        self
    }

    /// Before `forward`, only these indices of an axis are not zero, and the
    /// array holds only them; `backward` gives only them. The axis is
    /// transformed in its whole length: a linear convolution of `m` points
    /// with as many is one of length `2m` whose support is `0..m`.
    pub fn support(mut self, axis: usize, range: std::ops::Range<usize>) -> Self {
        if let Some(support) = self.support.get_mut(axis) {
            *support = Some((range.start, range.end));
        }
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

    /// The error that is allowed: the L2 norm of the difference to the exact
    /// result, over the norm of the result. What crosses between ranks is then
    /// encoded with as few bytes as keep it, and
    /// [`Plan::certificate`](crate::Plan::certificate) tells what was lost.
    ///
    /// A plan is refused where rounding alone might exceed it (below 10 epsilon
    /// log2 N), and a transform whose certificate exceeds it is an error: that
    /// can only be where the result is much smaller than what went before it.
    pub fn tolerance(mut self, error: f64) -> Self {
        self.tolerance = Some(Tolerance(error));
        self
    }

    /// Lengths of the transforms of each axis.
    pub fn lengths(&self) -> [usize; 3] {
        self.shape
    }

    /// Shape of the input of `forward`: the [support](Self::support).
    pub fn shape(&self) -> [usize; 3] {
        std::array::from_fn(|axis| total_len(&self.space(axis)))
    }

    /// Shape of the output of `forward`: the same, but for the halved axis of
    /// a real transform and for modes that are not kept.
    pub fn spectrum_shape(&self) -> [usize; 3] {
        match self.sphere_columns() {
            Some(columns) => [total_len(&self.modes(0)), columns.count(), 1],
            None => std::array::from_fn(|axis| total_len(&self.modes(axis))),
        }
    }

    /// The columns of a [sphere](Self::keep_sphere): which mode of axis 1 and
    /// of axis 2 each is, of those that [`kept_modes`](Self::kept_modes) lists
    /// for these axes. None without a sphere.
    pub fn columns(&self) -> Vec<[usize; 2]> {
        self.sphere_columns().map_or(Vec::new(), |columns| columns.places(&self.modes(1)))
    }

    /// Is a mode inside the [sphere](Self::keep_sphere), if there is one? By
    /// its places in the lists of [`kept_modes`](Self::kept_modes).
    pub fn is_inside(&self, places: [usize; 3]) -> bool {
        let Some(radii) = self.sphere else { return true };
        let kinds = self.kinds();
        let k = |axis: usize| {
            let mode = self.kept_modes(axis).get(places[axis]).copied()?;
            Some(frequency(kinds[axis], self.shape[axis], mode))
        };
        matches!((k(0), k(1), k(2)), (Some(a), Some(b), Some(c)) if radii.holds([a, b, c]))
    }

    pub fn sphere_columns(&self) -> Option<Columns> {
        self.sphere.map(|radii| Columns::new(radii, self.shape, self.kinds()))
    }

    /// The points of an axis that the array before `forward` holds.
    pub fn space(&self, axis: usize) -> Vec<IndexRun> {
        match self.support[axis] {
            Some((from, to)) => vec![IndexRun { at: 0, line: from, len: to.saturating_sub(from) }],
            None => IndexRun::whole(self.shape[axis]),
        }
    }

    /// The modes of an axis that the array after `forward` holds.
    pub fn modes(&self, axis: usize) -> Vec<IndexRun> {
        modes(self.keep[axis], self.sphere, axis, self.kinds()[axis], self.shape[axis])
    }

    /// Which mode of the whole axis each index of the spectrum is.
    pub fn kept_modes(&self, axis: usize) -> Vec<usize> {
        self.modes(axis).iter().flat_map(|run| run.line..run.line + run.len).collect()
    }

    /// Are the values before `forward` real?
    pub fn is_real(&self) -> bool {
        let waves = self.mixed.is_some_and(|kinds| kinds.iter().any(|kind| kind.r2r().is_some()));
        self.real || (waves && !self.complex_values && !self.kinds().contains(&Kind::Complex))
    }

    /// Are the values after `forward` real?
    pub fn has_real_spectrum(&self) -> bool {
        self.is_real() && !self.real
    }

    /// The kind of each axis.
    pub fn kinds(&self) -> [Kind; 3] {
        std::array::from_fn(|axis| match (self.mixed, self.axes.contains(&axis)) {
            (_, false) => Kind::Identity,
            (Some(kinds), _) => kinds[axis],
            (None, _) if self.real && axis == self.halved => Kind::Real,
            (None, _) => Kind::Complex,
        })
    }

    /// May the axes be transformed in this order? A halved axis comes before
    /// complex ones; columns of a sphere are made of axes 2 and 1; the two
    /// factors of a long axis have their order.
    pub fn is_legal_order(&self, axes: &[usize]) -> bool {
        if self.long {
            return axes == [1, 2];
        }
        let kinds = self.kinds();
        if self.sphere.is_some() {
            return axes.is_sorted_by(|a, b| a > b);
        }
        let complex = axes.iter().position(|&axis| kinds[axis] == Kind::Complex);
        let halved = axes.iter().position(|&axis| kinds[axis] == Kind::Real);
        !matches!((halved, complex), (Some(halved), Some(complex)) if halved > complex)
    }

    /// Product of the transformed axes' sizes.
    pub fn points(&self) -> f64 {
        let kinds = self.kinds();
        (0..3).map(|axis| kinds[axis].size(self.shape[axis]) as f64).product()
    }

    /// Checks everything but the layouts.
    ///
    /// # Errors
    /// [`Error::Problem`] for an axis of length 0, axes that repeat or do not
    /// exist, a halved axis that is not transformed, kinds that do not go
    /// together, modes to keep or points to fill that an axis does not have,
    /// half of a long axis, operators without a transform or with a tolerance,
    /// a batch of 0, a size whose bytes do not fit the address space.
    pub fn check(&self) -> Result<()> {
        let fail = |invalid: Invalid| Err(Error::Problem(invalid));
        let [x, y, z] = self.shape;
        if let Some(axis) = (0..3).find(|&a| self.shape[a] == 0) {
            let message = format!("every axis needs at least one point; axis {axis} of {x}x{y}x{z} has none");
            return fail(Invalid::new("shape", message).expected("1 or more points").got(0));
        }
        if let Some(axis) = self.axes.iter().find(|&&axis| axis > 2) {
            let message = format!("axes are 0, 1 and 2; got {axis}");
            return fail(Invalid::new("axes", message).expected("0, 1 or 2").got(axis));
        }
        if let Some(i) = (1..self.axes.len()).find(|&i| self.axes[..i].contains(&self.axes[i])) {
            let message = format!("axis {} is listed twice in {:?}", self.axes[i], self.axes);
            return fail(
                Invalid::new("axes", message).expected("each axis once").got(format!("{:?}", self.axes)),
            );
        }
        if self.real && !self.axes.contains(&self.halved) {
            let (halved, axes) = (self.halved, &self.axes);
            let message = format!(
                "the halved axis {halved} of a real transform must be among the transformed axes {axes:?}"
            );
            return fail(Invalid::new("halved", message).expected(format!("one of {axes:?}")).got(halved));
        }
        self.check_kinds().or_else(fail)?;
        self.check_modes().or_else(fail)?;
        self.check_use().or_else(fail)?;
        if self.batch == 0 {
            let message = "a batch needs at least one array, got 0";
            return fail(Invalid::new("batch", message).expected("1 or more").got(0));
        }
        // Twice the bytes, so that padded strides and offsets stay in range too.
        let bytes = self
            .shape
            .iter()
            .map(|&n| n.saturating_add(2))
            .chain([self.batch, 32])
            .try_fold(1usize, usize::checked_mul);
        if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
            let message =
                format!("{} arrays of {x}x{y}x{z} are more bytes than can be addressed", self.batch);
            return fail(Invalid::new("shape", message).got(format!("{x}x{y}x{z}")));
        }
        Ok(())
    }

    fn check_kinds(&self) -> std::result::Result<(), Invalid> {
        let kinds = self.kinds();
        let fail = |message: String| Err(Invalid::new("kinds", message).got(names(kinds)));
        let real = kinds.iter().filter(|&&kind| kind == Kind::Real).count();
        if real > 1 {
            return fail(format!("one axis at most can be halved, got {real}: {}", names(kinds)));
        }
        if self.real != (real == 1) {
            return fail(format!("axis {} is to be halved, but the kinds are {}", self.halved, names(kinds)));
        }
        if self.complex_values && kinds.contains(&Kind::Real) {
            return fail(format!("a halved axis takes real values, not complex ones: {}", names(kinds)));
        }
        match (0..3).find(|&axis| kinds[axis] == Kind::Dct1 && self.shape[axis] < 2) {
            Some(axis) => fail(format!("cosines of type 1 need at least two points; axis {axis} has one")),
            None => Ok(()),
        }
    }

    fn check_modes(&self) -> std::result::Result<(), Invalid> {
        let kinds = self.kinds();
        if let Some(radii) = self.sphere {
            radii.check(self.shape, kinds)?;
            if self.keep != [Keep::All; 3] {
                let message = format!("a sphere says all about the modes to keep; got {:?} too", self.keep);
                return Err(Invalid::new("keep", message)
                    .expected("[All, All, All]")
                    .got(format!("{:?}", self.keep)));
            }
        }
        for (axis, kind) in kinds.into_iter().enumerate() {
            let n = self.shape[axis];
            self.keep[axis].check(axis, kind, n)?;
            match self.support[axis] {
                Some(_) if kind == Kind::Identity => {
                    let message = format!("axis {axis} is not transformed, so all of it is there");
                    return Err(Invalid::new("support", message).expected("no support"));
                }
                Some((from, to)) if from >= to || to > n => {
                    let message = format!(
                        "the non-zero part of the {n} points of axis {axis} must not be empty or go beyond them, \
                         got {from}..{to}"
                    );
                    let invalid = Invalid::new("support", message).expected(format!("a range within 0..{n}"));
                    return Err(invalid.got(format!("{from}..{to}")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The layouts of input and output; `None` for an output left to the planner.
    pub fn layouts(&self, ranks: usize) -> Result<(Layout, Option<Layout>)> {
        let input = self.input.layout(self.shape(), ranks).map_err(|e| prefix("input", e))?;
        let output = match self.output.split {
            crate::layout::Split::Best => None,
            _ => Some(self.output.layout(self.spectrum_shape(), ranks).map_err(|e| prefix("output", e))?),
        };
        Ok((input, output))
    }
}

fn prefix(side: &str, error: Error) -> Error {
    match error {
        Error::Layout(invalid) => {
            let message = format!("{side} layout: {}", invalid.message);
            Error::Layout(Invalid { message, ..invalid })
        }
        other => other,
    }
}
