//! A rank's array as numbers and strides.

use ferrier::{Array, Real};
use num_complex::Complex;

use crate::noise::Noise;
use crate::parts::{Number, flat};

/// A rank's part of one or more arrays.
pub struct View<'a, T> {
    /// All numbers.
    pub numbers: &'a [T],
    /// Numbers per element: 1 for real, 2 for complex.
    pub width: usize,
    /// First index of the box along each axis.
    pub lo: [usize; 3],
    /// One past the last.
    pub hi: [usize; 3],
    /// Elements from one to the next along each axis.
    pub strides: [usize; 3],
    /// Elements from one array of the batch to the next.
    pub array: usize,
    /// Arrays.
    pub batch: usize,
}

impl<'a, T: Real + Number> View<'a, T> {
    /// How the array lies, by asking it for the places of neighbours.
    pub fn new(array: &'a Array<T>, batch: usize) -> Self {
        let own = array.get_box();
        let (numbers, width) = if array.is_real() { (array.real(), 1) } else { (flat(array.complex()), 2) };
        let place = |b: usize, index: [usize; 3]| array.index(b, index).unwrap_or(0);
        let origin = if own.is_empty() { 0 } else { place(0, own.lo) };
        let strides = std::array::from_fn(|axis| {
            let mut next = own.lo;
            next[axis] += 1;
            if own.is_empty() || next[axis] == own.hi[axis] { 0 } else { place(0, next) - origin }
        });
        let apart = if own.is_empty() || batch < 2 { 0 } else { place(1, own.lo) - origin };
        View {
            numbers: &numbers[(origin * width).min(numbers.len())..],
            width,
            lo: own.lo,
            hi: own.hi,
            strides,
            array: apart,
            batch,
        }
    }

    /// Array `b` of the batch alone.
    pub fn of_batch(&self, b: usize) -> View<'a, T> {
        let numbers = self.numbers.get(b * self.array * self.width..).unwrap_or_default();
        View { numbers, batch: 1, ..*self }
    }

    /// Squared distance from `noise`, and the squared norm of `noise`, over
    /// this rank's box; with `threads` threads.
    pub fn distance(&self, noise: &Noise, threads: usize) -> (f64, f64) {
        let planes = self.hi[0] - self.lo[0];
        let rows = self.batch * planes * (self.hi[1] - self.lo[1]);
        let workers = threads.clamp(1, rows.max(1));
        let work =
            |worker: usize| self.rows_distance(noise, rows * worker / workers..rows * (worker + 1) / workers);
        std::thread::scope(|scope| {
            let work = &work;
            let others: Vec<_> = (1..workers).map(|worker| scope.spawn(move || work(worker))).collect();
            let own = work(0);
            // A thread that panics makes the result wrong, and it must show.
            others
                .into_iter()
                .map(|other| other.join().unwrap_or((f64::NAN, f64::NAN)))
                .fold(own, |a, b| (a.0 + b.0, a.1 + b.1))
        })
    }

    fn rows_distance(&self, noise: &Noise, rows: std::ops::Range<usize>) -> (f64, f64) {
        let [n0, n1] = [0, 1].map(|axis| self.hi[axis] - self.lo[axis]);
        let (mut distance, mut norm) = (0.0, 0.0);
        for row in rows {
            let (b, i, j) = (row / (n0 * n1), row / n1 % n0, row % n1);
            let mut at = (b * self.array + i * self.strides[0] + j * self.strides[1]) * self.width;
            for k in self.lo[2]..self.hi[2] {
                let want = rounded::<T>(noise.at(b, [self.lo[0] + i, self.lo[1] + j, k]));
                let (re, im) = (want.re.widened(), want.im.widened());
                let off = self.numbers[at].widened() - re;
                distance += off * off;
                norm += re * re;
                if self.width == 2 {
                    let off = self.numbers[at + 1].widened() - im;
                    distance += off * off;
                    norm += im * im;
                }
                at += self.strides[2] * self.width;
            }
        }
        (distance, norm)
    }
}

/// A value in the precision of the transform.
pub fn rounded<T: Real>(value: Complex<f64>) -> Complex<T> {
    Complex::new(T::rounded(value.re), T::rounded(value.im))
}
