//! A rank's array as scalars and strides.

use std::ops::Range;
use std::panic::resume_unwind;

use ferrier::{Array, Box3, Comm, Order, Real};
use num_complex::Complex;

use crate::noise::Noise;
use crate::scalars::{rounded, scalars, widened};

/// A rank's part of one or more arrays.
pub struct View<'a, T> {
    /// All scalars.
    pub scalars: &'a [T],
    /// Scalars per element: 1 for real, 2 for complex.
    pub width: usize,
    /// First index of the box along each axis.
    pub lo: [usize; 3],
    /// One past the last.
    pub hi: [usize; 3],
    /// Strides in elements along each axis.
    pub strides: [usize; 3],
    /// Stride in elements from one array of the batch to the next.
    pub array: usize,
    /// Number of arrays.
    pub batch: usize,
    /// The number of rows of a spectrum whose element (k1, k2) is mode k1 + rows k2 of one long axis.
    pub rows: Option<usize>,
}

impl<'a, T: Real> View<'a, T> {
    /// The input of a plan, which may be padded for a transform in place.
    pub fn of_input(array: &'a Array<T>, batch: usize) -> Self {
        let (scalars, width, own) = match array.is_real() {
            true => (array.real(), 1, array.real_box()),
            false => (scalars(array.complex()), 2, array.local_box()),
        };
        let (lo, hi, strides) = (own.lo, own.hi, [0; 3]);
        let empty = View { scalars: &[], width, lo, hi: lo, strides, array: 0, batch, rows: None };
        if own.is_empty() {
            return empty;
        }
        // The strides follow from the offsets of neighbours.
        let offset = |b: usize, index: [usize; 3]| {
            let offset = if width == 1 { array.real_index(b, index) } else { array.index(b, index) };
            offset.unwrap_or(0)
        };
        let origin = offset(0, own.lo);
        let strides = std::array::from_fn(|axis| {
            let mut next = own.lo;
            next[axis] += 1;
            if next[axis] < own.hi[axis] { offset(0, next) - origin } else { 0 }
        });
        let apart = if batch > 1 { offset(1, own.lo) - origin } else { 0 };
        View { scalars: &scalars[origin * width..], hi, strides, array: apart, ..empty }
    }

    /// A part of a matrix in C order as a part of one long axis.
    pub fn as_line(self, row: usize) -> Self {
        let (lo, hi) = ([0, 0, self.lo[1] * row], [1, 1, self.hi[1] * row]);
        let hi = if self.lo[1] < self.hi[1] { hi } else { lo };
        View { lo, hi, strides: [0, 0, 1], ..self }
    }

    /// The spectrum of a plan, which fills its box without gaps: complex if the array is.
    pub fn of_spectrum(array: &'a Array<T>, own: Box3, order: Order, batch: usize) -> Self {
        let (scalars, width) =
            if array.is_complex() { (scalars(array.complex()), 2) } else { (array.real(), 1) };
        let extent: [usize; 3] = std::array::from_fn(|axis| own.hi[axis] - own.lo[axis]);
        let [slow, mid, fast] = order.axes();
        let mut strides = [1; 3];
        strides[mid] = extent[fast];
        strides[slow] = extent[fast] * extent[mid];
        let array = extent.iter().product();
        View { scalars, width, lo: own.lo, hi: own.hi, strides, array, batch, rows: None }
    }

    /// The value of array `b` at a global index, if it is in this part.
    pub fn at(&self, b: usize, index: [usize; 3]) -> Option<Complex<f64>> {
        let index = self.rows.map_or(index, |rows| [0, index[2] % rows, index[2] / rows]);
        if (0..3).any(|axis| !(self.lo[axis]..self.hi[axis]).contains(&index[axis])) {
            return None;
        }
        let place = (0..3).map(|axis| (index[axis] - self.lo[axis]) * self.strides[axis]).sum::<usize>();
        let at = (b * self.array + place) * self.width;
        let im = if self.width == 2 { self.scalars[at + 1].widened() } else { 0.0 };
        Some(Complex::new(self.scalars[at].widened(), im))
    }

    /// Array `b` of the batch alone.
    pub fn of_batch(&self, b: usize) -> View<'a, T> {
        let scalars = self.scalars.get(b * self.array * self.width..).unwrap_or_default();
        View { scalars, batch: 1, ..*self }
    }

    /// Squared distance from `noise`, and the squared norm of `noise`, over
    /// this rank's box; with `threads` threads.
    pub fn distance(&self, noise: &Noise, threads: usize) -> (f64, f64) {
        let planes = self.hi[0] - self.lo[0];
        let rows = self.batch * planes * (self.hi[1] - self.lo[1]);
        let workers = threads.clamp(1, rows.max(1));
        let work =
            |worker: usize| self.rows_distance(noise, rows * worker / workers..rows * (worker + 1) / workers);
        let sums = in_parallel(workers, work);
        sums.into_iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    fn rows_distance(&self, noise: &Noise, rows: Range<usize>) -> (f64, f64) {
        let [n0, n1] = [0, 1].map(|axis| self.hi[axis] - self.lo[axis]);
        let (mut distance, mut norm) = (0.0, 0.0);
        for row in rows {
            let (b, i, j) = (row / (n0 * n1), row / n1 % n0, row % n1);
            let mut at = (b * self.array + i * self.strides[0] + j * self.strides[1]) * self.width;
            for k in self.lo[2]..self.hi[2] {
                let want = rounded::<T>(noise.at(b, [self.lo[0] + i, self.lo[1] + j, k]));
                let (re, im) = (want.re.widened(), want.im.widened());
                let off = self.scalars[at].widened() - re;
                distance += off * off;
                norm += re * re;
                if self.width == 2 {
                    let off = self.scalars[at + 1].widened() - im;
                    distance += off * off;
                    norm += im * im;
                }
                at += self.strides[2] * self.width;
            }
        }
        (distance, norm)
    }
}

/// The value of the first array at a global index of this rank's part; NaN elsewhere.
pub fn value<T: Real>(array: &Array<T>, index: [usize; 3]) -> Complex<f64> {
    match array.index(0, index) {
        None => Complex::from(f64::NAN),
        Some(at) if array.is_complex() => widened(array.complex()[at]),
        Some(at) => Complex::from(array.real()[at].widened()),
    }
}

/// The norm of the difference of an array and `expected`, and the norm of `expected`. Collective.
///
/// # Errors
/// A rank failed or left.
pub fn distance<T: Real>(
    comm: &Comm,
    array: &Array<T>,
    expected: impl Fn([usize; 3]) -> Complex<f64>,
) -> ferrier::Result<(f64, f64)> {
    let own = array.local_box();
    let mut sums = [0.0; 2];
    for i in own.lo[0]..own.hi[0] {
        for j in own.lo[1]..own.hi[1] {
            for k in own.lo[2]..own.hi[2] {
                let expected = expected([i, j, k]);
                sums[0] += (value(array, [i, j, k]) - expected).norm_sqr();
                sums[1] += expected.norm_sqr();
            }
        }
    }
    let sums = comm.sum(&sums)?;
    Ok((sums[0].sqrt(), sums[1].sqrt()))
}

/// The results of `work(0)` to `work(workers - 1)`, each on a thread of its own; a panic is passed on.
pub fn in_parallel<R: Send>(workers: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = (1..workers).map(|worker| scope.spawn(move || work(worker))).collect();
        let own = work(0);
        let joined =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        std::iter::once(own).chain(joined).collect()
    })
}
