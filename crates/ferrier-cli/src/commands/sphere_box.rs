//! Modes inside a sphere, as an array of its bounding box.

use ferrier::{Array, Box3, Problem, Real};
use num_complex::Complex;

/// The columns of a sphere inside its bounding box of modes.
pub struct SphereBox {
    /// Modes of the box.
    pub shape: [usize; 3],
    /// Indices of the columns along the last two axes.
    columns: Vec<[usize; 2]>,
}

impl SphereBox {
    /// The bounding box of the sphere of a problem, if it has one.
    pub fn new(problem: &Problem) -> Option<SphereBox> {
        let columns = problem.columns();
        let shape = std::array::from_fn(|axis| problem.kept_modes(axis).len());
        (!columns.is_empty()).then_some(SphereBox { shape, columns })
    }

    /// A rank's planes of the box; `own` is its part of the columns.
    pub fn part(&self, own: Box3) -> Box3 {
        match own.is_empty() {
            true => own,
            false => Box3::new([own.lo[0], 0, 0], [own.hi[0], self.shape[1], self.shape[2]]),
        }
    }

    /// Elements of a plane of the box.
    fn plane(&self) -> usize {
        self.shape[1] * self.shape[2]
    }

    /// The offset of a column in a plane of the box.
    fn offset(&self, column: usize) -> usize {
        self.columns[column][0] * self.shape[2] + self.columns[column][1]
    }

    /// The box with these columns, zero elsewhere.
    pub fn fill_box<T: Real>(&self, columns: &Array<T>) -> Vec<Complex<T>> {
        let planes = columns.complex().chunks_exact(self.columns.len());
        let mut all = vec![Complex::new(T::zero(), T::zero()); planes.len() * self.plane()];
        for (plane, values) in all.chunks_exact_mut(self.plane()).zip(planes) {
            values.iter().enumerate().for_each(|(column, value)| plane[self.offset(column)] = *value);
        }
        all
    }

    /// Copies the columns out of the box.
    pub fn to_columns<T: Real>(&self, all: &[Complex<T>], columns: &mut Array<T>) {
        let planes = columns.complex_mut().chunks_exact_mut(self.columns.len());
        for (plane, values) in all.chunks_exact(self.plane()).zip(planes) {
            values.iter_mut().enumerate().for_each(|(column, value)| *value = plane[self.offset(column)]);
        }
    }
}
