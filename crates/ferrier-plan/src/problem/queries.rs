//! Properties of a problem: shapes, kinds, modes.

use super::definition::Problem;
use crate::kind::Kind;
use crate::modes::{Columns, IndexRun, frequency, modes, total_len};

impl Problem {
    /// Length of the transform of each axis.
    pub fn lengths(&self) -> [usize; 3] {
        self.shape
    }

    /// Shape of the input of `forward`: the [support](Self::support).
    pub fn shape(&self) -> [usize; 3] {
        std::array::from_fn(|axis| total_len(&self.space(axis)))
    }

    /// Shape of the output of `forward`: differs from the input in the halved axis of a real transform and in
    /// modes that are not kept.
    pub fn spectrum_shape(&self) -> [usize; 3] {
        match self.sphere_columns() {
            Some(columns) => [total_len(&self.modes(0)), columns.count(), 1],
            None => std::array::from_fn(|axis| total_len(&self.modes(axis))),
        }
    }

    /// The columns of a [sphere](Self::keep_sphere): for each column its index in
    /// [`kept_modes`](Self::kept_modes) of axis 1 and of axis 2. Empty without a sphere.
    pub fn columns(&self) -> Vec<[usize; 2]> {
        self.sphere_columns().map_or(Vec::new(), |columns| columns.mode_indices(&self.modes(1)))
    }

    /// Whether a mode, given by its indices in [`kept_modes`](Self::kept_modes), is inside the
    /// [sphere](Self::keep_sphere); true without a sphere.
    pub fn is_inside(&self, indices: [usize; 3]) -> bool {
        let Some(radii) = self.sphere else { return true };
        let kinds = self.kinds();
        let k = |axis: usize| {
            let mode = self.kept_modes(axis).get(indices[axis]).copied()?;
            Some(frequency(kinds[axis], self.shape[axis], mode))
        };
        matches!((k(0), k(1), k(2)), (Some(a), Some(b), Some(c)) if radii.contains([a, b, c]))
    }

    /// The columns of the sphere, if there is one.
    pub fn sphere_columns(&self) -> Option<Columns> {
        self.sphere.map(|radii| Columns::new(radii, self.shape, self.kinds()))
    }

    /// The points of an axis that the input of `forward` holds.
    pub fn space(&self, axis: usize) -> Vec<IndexRun> {
        match self.support[axis] {
            Some((from, to)) => vec![IndexRun { at: 0, line: from, len: to.saturating_sub(from) }],
            None => IndexRun::whole(self.shape[axis]),
        }
    }

    /// The modes of an axis that the output of `forward` holds.
    pub fn modes(&self, axis: usize) -> Vec<IndexRun> {
        modes(self.keep[axis], self.sphere, axis, self.kinds()[axis], self.shape[axis])
    }

    /// For each index of the spectrum along `axis`, the mode of the whole axis.
    pub fn kept_modes(&self, axis: usize) -> Vec<usize> {
        self.modes(axis).iter().flat_map(|run| run.line..run.line + run.len).collect()
    }

    /// Whether the input of `forward` is real.
    pub fn is_real(&self) -> bool {
        let has_r2r = self.mixed.is_some_and(|kinds| kinds.iter().any(|kind| kind.r2r().is_some()));
        self.real
            || self.real_input
            || (has_r2r && !self.complex_values && !self.kinds().contains(&Kind::Complex))
    }

    /// Whether the output of `forward` is real.
    pub fn has_real_spectrum(&self) -> bool {
        self.is_real() && !self.kinds().iter().any(|kind| kind.is_fourier())
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

    /// Whether the axes can be transformed in this order. A halved axis comes before complex ones; the columns of
    /// a sphere need axes 2, 1, 0; the factors of a long axis need axes 1, 2.
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

    /// Product of the [sizes](Kind::size) of the transformed axes.
    pub fn points(&self) -> f64 {
        let kinds = self.kinds();
        (0..3).map(|axis| kinds[axis].size(self.shape[axis]) as f64).product()
    }
}
