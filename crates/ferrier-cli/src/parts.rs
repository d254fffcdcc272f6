//! A rank's own box of an array that lies in a file.
//!
//! Reads and writes are positional and touch only the box: no rank sees more
//! of the file than it holds. Runs that are contiguous in the file are one
//! call, cut into chunks so that a progress bar moves.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use ferrier::Precision;
use num_complex::Complex;

use crate::npy::{Dtype, Header};

/// Bytes per call. Large enough that the call costs nothing.
const CHUNK: usize = 4 << 20;
/// Bytes of the buffer through which elements are converted; in second-level cache.
const STAGE: usize = 256 << 10;

/// A number of one of the two precisions, as bytes.
///
/// # Safety
/// Every bit pattern is a value, there is no padding, and `Complex` of it is
/// two of it in a row.
pub unsafe trait Number: Copy + Default + Send + Sync {
    /// This type as a value.
    const PRECISION: Precision;
    /// The number with its bytes in the other order.
    fn swapped(self) -> Self;
}

// SAFETY: IEEE numbers take every bit pattern; `Complex` is `repr(C)`.
unsafe impl Number for f32 {
    const PRECISION: Precision = Precision::F32;
    fn swapped(self) -> Self {
        f32::from_bits(self.to_bits().swap_bytes())
    }
}

// SAFETY: as for `f32`.
unsafe impl Number for f64 {
    const PRECISION: Precision = Precision::F64;
    fn swapped(self) -> Self {
        f64::from_bits(self.to_bits().swap_bytes())
    }
}

/// The elements of a rank, real or complex.
pub enum Elements<'a, T> {
    /// Real ones.
    Real(&'a mut [T]),
    /// Complex ones.
    Complex(&'a mut [Complex<T>]),
}

/// A rank's box in the file's array, and how its own memory is ordered.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The shape of the whole array, on three axes.
    pub shape: [usize; 3],
    /// The first index of the box along each axis.
    pub lo: [usize; 3],
    /// One past the last.
    pub hi: [usize; 3],
    /// Axes from slowest to fastest in the rank's memory.
    pub memory: [usize; 3],
}

/// A run of elements that is contiguous in the file.
struct Run {
    /// Position in the file, in elements.
    file: usize,
    /// Position in memory, in elements.
    memory: usize,
    /// How many elements.
    len: usize,
    /// Elements of memory from one of them to the next.
    step: usize,
}

impl Part {
    fn extent(&self, axis: usize) -> usize {
        self.hi[axis] - self.lo[axis]
    }

    /// How many elements the box has.
    pub fn len(&self) -> usize {
        (0..3).map(|axis| self.extent(axis)).product()
    }

    /// Calls `each` for every run, in the order of the file.
    fn runs(&self, fortran: bool, mut each: impl FnMut(Run) -> io::Result<()>) -> io::Result<()> {
        if self.len() == 0 {
            return Ok(());
        }
        // Slowest to fastest in the file, and the stride of each axis there and in memory.
        let [slow, mid, fast] = if fortran { [2, 1, 0] } else { [0, 1, 2] };
        let mut in_file = [1; 3];
        in_file[mid] = self.shape[fast];
        in_file[slow] = self.shape[fast] * self.shape[mid];
        let mut in_memory = [1; 3];
        in_memory[self.memory[1]] = self.extent(self.memory[2]);
        in_memory[self.memory[0]] = self.extent(self.memory[2]) * self.extent(self.memory[1]);

        // Rows that follow each other both in the file and in memory are one run.
        let whole = |axis: usize| self.extent(axis) == self.shape[axis];
        let follows = |axis: usize, next: usize, len: usize| {
            whole(axis) && (self.extent(next) == 1 || in_memory[next] == len * in_memory[fast])
        };
        let (mut len, mut mids, mut slows) = (self.extent(fast), self.extent(mid), self.extent(slow));
        if follows(fast, mid, len) {
            len *= mids;
            mids = 1;
            if whole(mid) && (slows == 1 || in_memory[slow] == len * in_memory[fast]) {
                len *= slows;
                slows = 1;
            }
        }
        let origin: usize = (0..3).map(|axis| self.lo[axis] * in_file[axis]).sum();
        for i in 0..slows {
            for j in 0..mids {
                each(Run {
                    file: origin + i * in_file[slow] + j * in_file[mid],
                    memory: i * in_memory[slow] + j * in_memory[mid],
                    len,
                    step: in_memory[fast],
                })?;
            }
        }
        Ok(())
    }
}

/// Reads `part` of `file` into `elements`; real numbers in the file may
/// become complex ones. `moved` is told of the bytes as they come.
///
/// # Errors
/// The file cannot be read, or has become shorter.
///
/// # Panics
/// `elements` has another length than the box, or real elements are wanted
/// from a complex file, or the precision is another.
pub fn read<T: Number>(
    file: &File,
    header: &Header,
    part: &Part,
    elements: Elements<'_, T>,
    moved: &dyn Fn(u64),
) -> io::Result<()> {
    assert_eq!(header.dtype.precision, T::PRECISION, "the precision of a file is its transform's");
    let Dtype { complex, swapped, .. } = header.dtype;
    // In parts: a complex number is two.
    let (numbers, promote) = match elements {
        Elements::Real(real) => {
            assert!(!complex, "a complex file is not read as a real one");
            assert_eq!(real.len(), part.len());
            (real, false)
        }
        Elements::Complex(both) => {
            assert_eq!(both.len(), part.len());
            (flat_mut(both), !complex)
        }
    };
    let size = header.dtype.bytes();
    let width = if complex { 2 } else { 1 };
    let mut stage = Vec::new();
    part.runs(header.fortran, |run| {
        let at = header.offset + (run.file * size) as u64;
        if run.step == 1 && !promote {
            let numbers = &mut numbers[run.memory * width..(run.memory + run.len) * width];
            let mut at = at;
            for chunk in numbers.chunks_mut(CHUNK / size_of::<T>()) {
                let bytes = bytes_mut(chunk);
                file.read_exact_at(bytes, at)?;
                at += bytes.len() as u64;
                moved(bytes.len() as u64);
                if swapped {
                    chunk.iter_mut().for_each(|number| *number = number.swapped());
                }
            }
            return Ok(());
        }
        stage.resize(STAGE / size_of::<T>(), T::default());
        let mut done = 0;
        while done < run.len {
            let count = (run.len - done).min(STAGE / size);
            let chunk = &mut stage[..count * width];
            let bytes = bytes_mut(chunk);
            file.read_exact_at(bytes, at + (done * size) as u64)?;
            moved(bytes.len() as u64);
            if swapped {
                chunk.iter_mut().for_each(|number| *number = number.swapped());
            }
            for (k, value) in chunk.chunks_exact(width).enumerate() {
                let to = (run.memory + (done + k) * run.step) * if promote { 2 } else { width };
                numbers[to] = value[0];
                if promote {
                    numbers[to + 1] = T::default();
                } else if width == 2 {
                    numbers[to + 1] = value[1];
                }
            }
            done += count;
        }
        Ok(())
    })
}

/// Writes `part` of `file` from `elements`. `moved` is told of the bytes as they go.
///
/// # Errors
/// The file cannot be written.
///
/// # Panics
/// `elements` are not of the kind or number that the header and the box say.
pub fn write<T: Number>(
    file: &File,
    header: &Header,
    part: &Part,
    elements: Elements<'_, T>,
    moved: &dyn Fn(u64),
) -> io::Result<()> {
    assert_eq!(header.dtype.precision, T::PRECISION);
    let (numbers, width) = match elements {
        Elements::Real(real) => (real, 1),
        Elements::Complex(both) => (flat_mut(both), 2),
    };
    assert_eq!(
        header.dtype.complex,
        width == 2,
        "real elements go to a real file, complex ones to a complex file"
    );
    assert_eq!(numbers.len(), part.len() * width);
    let size = header.dtype.bytes();
    let mut stage = Vec::new();
    part.runs(header.fortran, |run| {
        let mut at = header.offset + (run.file * size) as u64;
        let mut put = |chunk: &mut [T]| {
            if header.dtype.swapped {
                chunk.iter_mut().for_each(|number| *number = number.swapped());
            }
            let bytes = bytes_mut(chunk);
            file.write_all_at(bytes, at)?;
            at += bytes.len() as u64;
            moved(bytes.len() as u64);
            Ok(())
        };
        if run.step == 1 {
            let numbers = &mut numbers[run.memory * width..(run.memory + run.len) * width];
            return numbers.chunks_mut(CHUNK / size_of::<T>()).try_for_each(put);
        }
        let mut done = 0;
        while done < run.len {
            let count = (run.len - done).min(STAGE / size);
            stage.clear();
            for k in done..done + count {
                let from = (run.memory + k * run.step) * width;
                stage.extend_from_slice(&numbers[from..from + width]);
            }
            put(&mut stage)?;
            done += count;
        }
        Ok(())
    })
}

/// Complex numbers as twice as many real ones.
pub fn flat<T: Number>(both: &[Complex<T>]) -> &[T] {
    // SAFETY: `Complex` is `repr(C)` with two `T`; the length doubles.
    unsafe { std::slice::from_raw_parts(both.as_ptr().cast(), both.len() * 2) }
}

/// Complex numbers as twice as many real ones.
pub fn flat_mut<T: Number>(both: &mut [Complex<T>]) -> &mut [T] {
    // SAFETY: `Complex` is `repr(C)` with two `T`; the length doubles.
    unsafe { std::slice::from_raw_parts_mut(both.as_mut_ptr().cast(), both.len() * 2) }
}

fn bytes_mut<T: Number>(numbers: &mut [T]) -> &mut [u8] {
    // SAFETY: a `Number` has no padding and takes every bit pattern.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), size_of_val(numbers)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every box of a small array, in every memory order, from both file orders.
    #[test]
    fn boxes_are_read_and_written_where_they_lie() {
        let shape = [3, 2, 4];
        let at = |i: usize, j: usize, k: usize| (100 * i + 10 * j + k) as f64;
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        for (complex, swapped, fortran) in
            [(false, false, false), (false, true, true), (true, false, true), (true, true, false)]
        {
            let dtype = Dtype { complex, precision: Precision::F64, swapped };
            let (mut header, bytes) = Header::write(dtype, &shape);
            header.fortran = fortran;
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            let whole =
                Part { shape, lo: [0; 3], hi: shape, memory: if fortran { [2, 1, 0] } else { [0, 1, 2] } };
            // The whole array, in the file's own order.
            let mut all = Vec::new();
            for a in 0..shape[whole.memory[0]] {
                for b in 0..shape[whole.memory[1]] {
                    for c in 0..shape[whole.memory[2]] {
                        let mut index = [0; 3];
                        index[whole.memory[0]] = a;
                        index[whole.memory[1]] = b;
                        index[whole.memory[2]] = c;
                        all.push(at(index[0], index[1], index[2]));
                    }
                }
            }
            let mut both: Vec<Complex<f64>> = all.iter().map(|&x| Complex::new(x, -x)).collect();
            let elements = if complex { Elements::Complex(&mut both) } else { Elements::Real(&mut all) };
            write(&file, &header, &whole, elements, &|_| {}).unwrap();
            let copy = tempfile::tempfile().unwrap();
            copy.set_len(file.metadata().unwrap().len()).unwrap();
            for memory in orders {
                for (lo, hi) in
                    [([0; 3], shape), ([1, 0, 0], [3, 2, 4]), ([0, 1, 1], [3, 2, 3]), ([2, 0, 3], [3, 2, 4])]
                {
                    let part = Part { shape, lo, hi, memory };
                    let mut got = vec![Complex::new(f64::NAN, f64::NAN); part.len()];
                    read(&file, &header, &part, Elements::Complex(&mut got), &|_| {}).unwrap();
                    let mut n = 0;
                    for a in lo[memory[0]]..hi[memory[0]] {
                        for b in lo[memory[1]]..hi[memory[1]] {
                            for c in lo[memory[2]]..hi[memory[2]] {
                                let mut index = [0; 3];
                                (index[memory[0]], index[memory[1]], index[memory[2]]) = (a, b, c);
                                let x = at(index[0], index[1], index[2]);
                                let im = if complex { -x } else { 0.0 };
                                assert_eq!(got[n], Complex::new(x, im), "{part:?} {header:?}");
                                n += 1;
                            }
                        }
                    }
                    if complex {
                        write(&copy, &header, &part, Elements::Complex(&mut got), &|_| {}).unwrap();
                    }
                }
            }
            if complex {
                let len = file.metadata().unwrap().len() - header.offset;
                let (mut a, mut b) = (vec![0; len as usize], vec![0; len as usize]);
                file.read_exact_at(&mut a, header.offset).unwrap();
                copy.read_exact_at(&mut b, header.offset).unwrap();
                assert_eq!(a, b);
            }
        }
    }
}
