//! Arrays and workspaces in main memory, made by plans.

use num_complex::Complex;

use super::backend::ArrayShape;
use super::data::{Data, DataMut};
use super::operator::{Modes, Operator};
use crate::machine::SendPtr;
use crate::machine::buffer::Buffer;
use crate::transport::shared_buffer;
use crate::{Box3, Comm, Real, Result};
use ferrier_plan::geometry::Geometry;

/// One rank's part of an array, made by a plan: aligned, in huge pages where
/// large, and reachable by global index.
///
/// The input (or output) of a plan is either real or complex. An array for
/// transforms in place is both in turn: before and after.
#[derive(Debug)]
pub struct Array<T: Real> {
    buffer: Buffer<T>,
    real: Option<Geometry>,
    complex: Option<Geometry>,
    batch: usize,
}

impl<T: Real> Array<T> {
    pub(crate) fn new(
        shape: ArrayShape,
        buffer: impl FnOnce(usize, &'static str) -> Result<Buffer<T>>,
    ) -> Result<Self> {
        let ArrayShape { real, complex, scalars, batch } = shape;
        Ok(Array { buffer: buffer(scalars, "an array of a plan")?, real, complex, batch })
    }

    /// Can the array hold real numbers?
    pub fn is_real(&self) -> bool {
        self.real.is_some()
    }

    /// Can the array hold complex numbers?
    pub fn is_complex(&self) -> bool {
        self.complex.is_some()
    }

    /// This rank's box of global indices (of the complex array where it can be both).
    pub fn local_box(&self) -> Box3 {
        self.complex.or(self.real).map_or(Box3::EMPTY, |geometry| geometry.part)
    }

    /// This rank's box of global indices of the real array.
    ///
    /// # Panics
    /// If the array cannot hold real numbers.
    pub fn real_box(&self) -> Box3 {
        self.real_geometry().part
    }

    /// Where its complex or real elements lie, if it can have some.
    pub(crate) fn geometry(&self, complex: bool) -> Option<Geometry> {
        if complex { self.complex } else { self.real }
    }

    /// How many arrays of a batch it holds.
    pub fn batch(&self) -> usize {
        self.batch
    }

    fn real_geometry(&self) -> &Geometry {
        self.real.as_ref().expect("this array holds complex numbers, not real ones")
    }

    fn complex_geometry(&self) -> &Geometry {
        self.complex.as_ref().expect("this array holds real numbers, not complex ones")
    }

    /// All real numbers in memory order, those that pad rows included.
    ///
    /// # Panics
    /// If the array cannot hold real numbers.
    pub fn real(&self) -> &[T] {
        self.real_geometry();
        self.buffer.as_slice()
    }

    /// All real numbers in memory order, those that pad rows included.
    ///
    /// # Panics
    /// If the array cannot hold real numbers.
    pub fn real_mut(&mut self) -> &mut [T] {
        self.real_geometry();
        self.buffer.as_mut_slice()
    }

    /// All complex numbers in memory order.
    ///
    /// # Panics
    /// If the array cannot hold complex numbers.
    pub fn complex(&self) -> &[Complex<T>] {
        self.complex_geometry();
        let scalars = self.buffer.as_slice();
        // SAFETY: pairs of T are Complex<T>.
        unsafe { std::slice::from_raw_parts(scalars.as_ptr().cast(), scalars.len() / 2) }
    }

    /// All complex numbers in memory order.
    ///
    /// # Panics
    /// If the array cannot hold complex numbers.
    pub fn complex_mut(&mut self) -> &mut [Complex<T>] {
        self.complex_geometry();
        let scalars = self.buffer.as_mut_slice();
        // SAFETY: pairs of T are Complex<T>.
        unsafe { std::slice::from_raw_parts_mut(scalars.as_mut_ptr().cast(), scalars.len() / 2) }
    }

    /// Where a global index of array `batch` lies in [`real`](Self::real), if this rank has it.
    ///
    /// # Panics
    /// If the array cannot hold real numbers.
    pub fn real_index(&self, batch: usize, index: [usize; 3]) -> Option<usize> {
        place(self.real_geometry(), self.batch, batch, index)
    }

    /// Where a global index of array `batch` lies in [`complex`](Self::complex), if this rank has it.
    ///
    /// # Panics
    /// If the array cannot hold complex numbers.
    pub fn complex_index(&self, batch: usize, index: [usize; 3]) -> Option<usize> {
        place(self.complex_geometry(), self.batch, batch, index).map(|number| number / 2)
    }

    /// Where a global index lies in [`complex`](Self::complex) or, for an
    /// array that is only real, in [`real`](Self::real).
    pub fn index(&self, batch: usize, index: [usize; 3]) -> Option<usize> {
        if self.is_complex() { self.complex_index(batch, index) } else { self.real_index(batch, index) }
    }

    /// Sets every element from its number in the batch and its global index.
    ///
    /// # Panics
    /// If the array cannot hold real numbers.
    pub fn fill_real(&mut self, mut value: impl FnMut(usize, [usize; 3]) -> T) {
        let geometry = *self.real_geometry();
        let scalars = self.buffer.as_mut_slice();
        each_index(&geometry.part, self.batch, |batch, index| {
            scalars[batch * geometry.batch + geometry.offset(index)] = value(batch, index);
        });
    }

    /// Sets every element from its number in the batch and its global index.
    ///
    /// # Panics
    /// If the array cannot hold complex numbers.
    pub fn fill_complex(&mut self, mut value: impl FnMut(usize, [usize; 3]) -> Complex<T>) {
        let geometry = *self.complex_geometry();
        let scalars = self.buffer.as_mut_slice();
        each_index(&geometry.part, self.batch, |batch, index| {
            let at = batch * geometry.batch + geometry.offset(index);
            let value = value(batch, index);
            (scalars[at], scalars[at + 1]) = (value.re, value.im);
        });
    }

    /// Sends each mode of a spectrum through an operator, on so many threads: a pass over memory of its own, which
    /// [`Call::operator`](crate::Call::operator) saves.
    pub fn apply(&mut self, operator: &(impl Operator<T> + ?Sized), threads: usize) {
        let Some(geometry) = self.complex.or(self.real) else { return };
        let width = if self.is_complex() { 2 } else { 1 };
        let (shape, strides) = (geometry.part.shape(), geometry.strides);
        if geometry.part.is_empty() {
            return;
        }
        // Where strides are equal, an axis of one point is the slower one.
        let mut axes = [0, 1, 2];
        axes.sort_by_key(|&axis| (std::cmp::Reverse(strides[axis]), shape[axis]));
        let [slow, mid, side] = axes;
        let plane = if shape[slow] > 1 { strides[slow] } else { geometry.volume };
        if geometry.scalars(self.batch) != plane * shape[slow] * self.batch || strides[side] != width {
            return self.apply_by_rows(operator, threads, geometry, side);
        }
        let (pitch, len) = (if shape[mid] > 1 { strides[mid] } else { plane }, shape[side]);
        let planes = |batch: usize, start: usize, scalars: &mut [T]| {
            for (number, scalars) in scalars.chunks_exact_mut(plane).enumerate() {
                let mut first = geometry.part.lo;
                first[slow] += start + number;
                operator.apply(&mut Modes { scalars, first, batch, along: mid, side, pitch, len, width });
            }
        };
        let share = shape[slow].div_ceil(threads.max(1));
        let arrays = self.buffer.as_mut_slice().chunks_exact_mut(geometry.volume).take(self.batch);
        for (batch, scalars) in arrays.enumerate() {
            let mut parts = scalars.chunks_mut(share * plane).enumerate();
            let own = parts.next();
            std::thread::scope(|scope| {
                for (part, scalars) in parts {
                    let planes = &planes;
                    scope.spawn(move || planes(batch, part * share, scalars));
                }
                own.into_iter().for_each(|(_, scalars)| planes(batch, 0, scalars));
            });
        }
    }

    /// The same for an array with gaps: rows along `side` go through a buffer.
    fn apply_by_rows(
        &mut self,
        operator: &(impl Operator<T> + ?Sized),
        threads: usize,
        geometry: Geometry,
        side: usize,
    ) {
        let Geometry { part, strides, width, .. } = geometry;
        let mut starts = Vec::new();
        each_index(&part.with_axis(side, 1), self.batch, |batch, mut index| {
            index[side] = part.lo[side];
            starts.push((batch, index));
        });
        let (len, step) = (part.shape()[side], strides[side]);
        let share = starts.len().div_ceil(threads.max(1));
        let scalars = self.buffer.as_mut_slice();
        let (start, all) = (SendPtr(scalars.as_mut_ptr()), scalars.len());
        std::thread::scope(|scope| {
            for rows in starts.chunks(share) {
                scope.spawn(move || {
                    let mut row = vec![T::default(); len * width];
                    for &(batch, first) in rows {
                        let at = batch * geometry.batch + geometry.offset(first);
                        assert!(at + (len - 1) * step + width <= all, "rows lie inside the array");
                        // SAFETY: inside the array, as just checked; elements of different rows do not overlap, and
                        // each row is one thread's.
                        let element = |i: usize| unsafe { start.get().add(at + i * step) };
                        for (i, to) in row.chunks_exact_mut(width).enumerate() {
                            // SAFETY: as above.
                            unsafe { element(i).copy_to_nonoverlapping(to.as_mut_ptr(), width) };
                        }
                        let (along, pitch) = ((side + 1) % 3, len * width);
                        let scalars = &mut row[..];
                        operator.apply(&mut Modes { scalars, first, batch, along, side, pitch, len, width });
                        for (i, from) in row.chunks_exact(width).enumerate() {
                            // SAFETY: as above.
                            unsafe { element(i).copy_from_nonoverlapping(from.as_ptr(), width) };
                        }
                    }
                });
            }
        });
    }
}

/// Neighbouring modes of a spectrum along one axis.
pub(crate) struct Rows<'a, T> {
    modes: &'a [Complex<T>],
    step: usize,
}

impl<'a, T: Real> Rows<'a, T> {
    /// Those from `first` on.
    ///
    /// # Panics
    /// If the array is real, or this rank does not have that index.
    pub fn new(spectrum: &'a Array<T>, batch: usize, first: [usize; 3], axis: usize) -> Self {
        let at = spectrum.complex_index(batch, first).expect("an index of this rank's part of the spectrum");
        Rows { modes: &spectrum.complex()[at..], step: spectrum.complex_geometry().strides[axis] / 2 }
    }

    #[inline]
    pub fn get(&self, i: usize) -> Complex<T> {
        self.modes[i * self.step]
    }
}

fn place(geometry: &Geometry, arrays: usize, batch: usize, index: [usize; 3]) -> Option<usize> {
    (batch < arrays && geometry.part.contains(index)).then(|| batch * geometry.batch + geometry.offset(index))
}

fn each_index(part: &Box3, batch: usize, mut visit: impl FnMut(usize, [usize; 3])) {
    for b in 0..batch {
        for i in part.lo[0]..part.hi[0] {
            for j in part.lo[1]..part.hi[1] {
                for k in part.lo[2]..part.hi[2] {
                    visit(b, [i, j, k]);
                }
            }
        }
    }
}

impl<T: Real> Data<T> for Array<T> {
    fn scalars(&self) -> &[T] {
        self.buffer.as_slice()
    }
    fn is_real(&self) -> Option<bool> {
        match (&self.real, &self.complex) {
            (Some(_), None) => Some(true),
            (None, _) => Some(false),
            _ => None,
        }
    }
}

impl<T: Real> DataMut<T> for Array<T> {
    fn scalars_mut(&mut self) -> &mut [T] {
        self.buffer.as_mut_slice()
    }
}

/// Memory for plans that own none; one serves several plans in turn.
#[derive(Debug)]
pub struct Workspace<T: Real>(Buffer<T>);

impl<T: Real> Workspace<T> {
    /// A workspace of at least `bytes` bytes; a plan needs [`Memory::total`](crate::Memory::total). A plan of MPI
    /// ranks that share memory needs one of [`Plan::make_workspace`](crate::Plan::make_workspace). Allocates.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn new(bytes: usize) -> Result<Self> {
        Ok(Workspace(Buffer::new(bytes.div_ceil(size_of::<T>()), "a workspace")?))
    }

    /// A workspace that other ranks can access where it is `exposed`; then collective.
    pub(crate) fn allocate(comm: &Comm, bytes: usize, exposed: bool, what: &'static str) -> Result<Self> {
        let scalars = bytes / size_of::<T>();
        let buffer = match exposed {
            true => shared_buffer(&**comm.transport(), scalars, what),
            false => Buffer::new(scalars, what),
        };
        buffer.map(Workspace)
    }

    /// Where it begins, and how many bytes it has.
    pub(crate) fn address(&self) -> (usize, usize) {
        (self.0.as_ptr() as usize, self.0.len() * size_of::<T>())
    }
}
