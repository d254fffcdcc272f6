//! The transform that a peer does, and the layout of its arrays.

use ferrier::Precision;

/// The transform that a peer does. Input and, unless `transposed`, output are in natural order.
#[derive(Clone, Debug)]
pub struct PeerProblem {
    /// The shape of the input.
    pub shape: [usize; 3],
    /// The axes to transform, the halved one last.
    pub axes: Vec<usize>,
    /// Real input.
    pub real: bool,
    /// Number of arrays.
    pub batch: usize,
    /// The precision of the arrays.
    pub precision: Precision,
    /// Number of axes that the user has.
    pub ndim: usize,
    /// The peer may leave the first two axes of the spectrum swapped.
    pub transposed: bool,
    /// Threads that the peer may use, in all processes together.
    pub threads: usize,
}

impl PeerProblem {
    /// The shape of the spectrum.
    pub fn spectrum(&self) -> [usize; 3] {
        let mut shape = self.shape;
        if let (true, Some(&halved)) = (self.real, self.axes.last()) {
            shape[halved] = shape[halved] / 2 + 1;
        }
        shape
    }

    /// Floating-point operations of one transform, by the usual count of 5 n log2 n (half of it if real).
    pub fn flops(&self) -> f64 {
        let elements = self.shape.iter().product::<usize>() as f64 * self.batch as f64;
        2.5 * elements * self.transformed_points().log2() * self.width() as f64
    }

    /// Bytes of all input arrays.
    pub fn input_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.batch * self.precision.bytes() * self.width()
    }

    /// The product of the lengths of the transformed axes.
    pub fn transformed_points(&self) -> f64 {
        self.axes.iter().map(|&axis| self.shape[axis] as f64).product()
    }

    /// Both arrays as a single process holds them.
    pub(super) fn whole(&self) -> (LocalPart, LocalPart) {
        let whole = |shape, strides| LocalPart { lo: [0; 3], hi: shape, strides };
        (whole(self.shape, self.strides_in(false)), whole(self.spectrum(), self.strides_out()))
    }

    /// Scalars per element of the input.
    pub fn width(&self) -> usize {
        if self.real { 1 } else { 2 }
    }

    /// Can the transform run in place? A real one needs padded rows, as in FFTW.
    pub(super) fn fits_in_place(&self) -> bool {
        !self.real || self.axes.last() == Some(&2)
    }

    /// Strides of the input in scalars, along each axis and from array to array.
    /// `padded`: for a transform in place.
    pub(super) fn strides_in(&self, padded: bool) -> [usize; 4] {
        let mut shape = self.shape;
        if padded && self.real {
            shape[2] = 2 * (shape[2] / 2 + 1);
        }
        strides(shape, self.width())
    }

    /// Strides of the output in scalars.
    pub(super) fn strides_out(&self) -> [usize; 4] {
        strides(self.spectrum(), 2)
    }
}

/// Strides in scalars along the three axes, and from array to array.
pub(super) fn strides(shape: [usize; 3], width: usize) -> [usize; 4] {
    let [n0, n1, n2] = shape;
    [n1 * n2 * width, n2 * width, width, n0 * n1 * n2 * width]
}

/// The part of an array that this process holds.
pub(super) struct LocalPart {
    /// First index along each axis.
    pub lo: [usize; 3],
    /// One past the last.
    pub hi: [usize; 3],
    /// Strides in scalars along the three axes, and from array to array.
    pub strides: [usize; 4],
}

impl LocalPart {
    /// The offset of an element in scalars, if this process holds it.
    pub fn offset(&self, array: usize, index: [usize; 3]) -> Option<usize> {
        let local = (0..3).all(|axis| (self.lo[axis]..self.hi[axis]).contains(&index[axis]));
        let along = |axis: usize| (index[axis] - self.lo[axis]) * self.strides[axis];
        local.then(|| array * self.strides[3] + (0..3).map(along).sum::<usize>())
    }
}
