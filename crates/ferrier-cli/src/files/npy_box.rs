//! A rank's box of an array in a file.
//!
//! Reads and writes are positional and access only the box. Runs that are contiguous in the
//! file are one call, cut into chunks so that a progress bar moves.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use ferrier::{Array, Box3, Layout, Real};
use ferrier_bench::scalars::scalars_mut;
use num_complex::Complex;

use super::npy::{Dtype, Header};
use crate::failure::{Failure, io_text};

/// Bytes per call. Large enough that the overhead of a call is small.
const CHUNK: usize = 4 << 20;
/// Bytes of the buffer through which elements are converted; fits second-level cache.
const STAGE: usize = 256 << 10;

/// The elements of a rank, real or complex.
pub enum Elements<'a, T> {
    /// Real ones.
    Real(&'a mut [T]),
    /// Complex ones.
    Complex(&'a mut [Complex<T>]),
}

/// A rank's box of the array in the file, and the order of its memory.
#[derive(Clone, Copy, Debug)]
pub struct FileBox {
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
struct FileRun {
    /// Position in the file, in elements.
    file: usize,
    /// Position in memory, in elements.
    memory: usize,
    /// How many elements.
    len: usize,
    /// Elements of memory from one of them to the next.
    step: usize,
}

impl<'a, T: Real> From<&'a mut Array<T>> for Elements<'a, T> {
    fn from(array: &'a mut Array<T>) -> Self {
        match array.is_real() {
            true => Elements::Real(array.real_mut()),
            false => Elements::Complex(array.complex_mut()),
        }
    }
}

impl FileBox {
    /// The box `own` of an array of this layout.
    pub fn new(layout: &Layout, own: Box3) -> FileBox {
        FileBox { shape: layout.shape(), lo: own.lo, hi: own.hi, memory: layout.order().axes() }
    }

    fn extent(&self, axis: usize) -> usize {
        self.hi[axis] - self.lo[axis]
    }

    /// How many elements the box has.
    pub fn len(&self) -> usize {
        (0..3).map(|axis| self.extent(axis)).product()
    }

    /// Calls `each` for every run, in the order of the file.
    fn runs(&self, fortran: bool, mut each: impl FnMut(FileRun) -> io::Result<()>) -> io::Result<()> {
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
                each(FileRun {
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

/// Reads `part` of `file` into `elements`; real elements of the file may become complex ones.
/// Calls `progress` with the bytes of each call.
///
/// # Errors
/// The file cannot be read, or has become shorter.
///
/// # Panics
/// `elements` has another length than the box or another precision than the file, or is real
/// while the file is complex.
pub fn read<T: Real>(
    file: &File,
    header: &Header,
    part: &FileBox,
    elements: Elements<'_, T>,
    progress: &dyn Fn(u64),
) -> io::Result<()> {
    assert_eq!(header.dtype.precision, T::PRECISION, "the file has the precision of the transform");
    let Dtype { complex, swapped, .. } = header.dtype;
    // A complex element is two scalars.
    let (scalars, promote) = match elements {
        Elements::Real(real) => {
            assert!(!complex, "a complex file is not read as a real one");
            assert_eq!(real.len(), part.len());
            (real, false)
        }
        Elements::Complex(both) => {
            assert_eq!(both.len(), part.len());
            (scalars_mut(both), !complex)
        }
    };
    let size = header.dtype.bytes();
    let width = if complex { 2 } else { 1 };
    let mut stage = Vec::new();
    part.runs(header.fortran, |run| {
        let mut at = header.offset + (run.file * size) as u64;
        let mut get = |chunk: &mut [T]| {
            let bytes = bytes_mut(chunk);
            file.read_exact_at(bytes, at)?;
            at += bytes.len() as u64;
            progress(bytes.len() as u64);
            if swapped {
                swap(chunk);
            }
            Ok(())
        };
        if run.step == 1 && !promote {
            let scalars = &mut scalars[run.memory * width..(run.memory + run.len) * width];
            return scalars.chunks_mut(CHUNK / size_of::<T>()).try_for_each(get);
        }
        stage.resize(STAGE / size_of::<T>(), T::default());
        let mut done = 0;
        while done < run.len {
            let count = (run.len - done).min(STAGE / size);
            let chunk = &mut stage[..count * width];
            get(chunk)?;
            for (k, value) in chunk.chunks_exact(width).enumerate() {
                let to = (run.memory + (done + k) * run.step) * if promote { 2 } else { width };
                scalars[to] = value[0];
                if promote {
                    scalars[to + 1] = T::default();
                } else if width == 2 {
                    scalars[to + 1] = value[1];
                }
            }
            done += count;
        }
        Ok(())
    })
}

/// Writes `part` of `file` from `elements`. Calls `progress` with the bytes of each call.
///
/// # Errors
/// The file cannot be written.
///
/// # Panics
/// `elements` differ in kind, number or precision from the header and the box.
pub fn write<T: Real>(
    file: &File,
    header: &Header,
    part: &FileBox,
    elements: Elements<'_, T>,
    progress: &dyn Fn(u64),
) -> io::Result<()> {
    assert_eq!(header.dtype.precision, T::PRECISION);
    let (scalars, width) = match elements {
        Elements::Real(real) => (real, 1),
        Elements::Complex(both) => (scalars_mut(both), 2),
    };
    assert_eq!(
        header.dtype.complex,
        width == 2,
        "real elements are written to a real file, complex ones to a complex file"
    );
    assert_eq!(scalars.len(), part.len() * width);
    let size = header.dtype.bytes();
    let mut stage = Vec::new();
    part.runs(header.fortran, |run| {
        let mut at = header.offset + (run.file * size) as u64;
        let mut put = |chunk: &mut [T]| {
            if header.dtype.swapped {
                swap(chunk);
            }
            let bytes = bytes_mut(chunk);
            file.write_all_at(bytes, at)?;
            at += bytes.len() as u64;
            progress(bytes.len() as u64);
            Ok(())
        };
        if run.step == 1 {
            let scalars = &mut scalars[run.memory * width..(run.memory + run.len) * width];
            return scalars.chunks_mut(CHUNK / size_of::<T>()).try_for_each(put);
        }
        let mut done = 0;
        while done < run.len {
            let count = (run.len - done).min(STAGE / size);
            stage.clear();
            for k in done..done + count {
                let from = (run.memory + k * run.step) * width;
                stage.extend_from_slice(&scalars[from..from + width]);
            }
            put(&mut stage)?;
            done += count;
        }
        Ok(())
    })
}

/// Scalars as bytes.
fn bytes_mut<T: Real>(scalars: &mut [T]) -> &mut [u8] {
    // SAFETY: `Real` is sealed to `f32` and `f64`, which have no padding and of which every bit
    // pattern is valid; the length is that of the slice in bytes and the borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(scalars.as_mut_ptr().cast(), size_of_val(scalars)) }
}

/// Reverses the bytes of each scalar.
fn swap<T: Real>(scalars: &mut [T]) {
    bytes_mut(scalars).chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
}

/// The failure to `verb` (read, write) the file at `path`, which may have changed meanwhile.
pub fn io_error(verb: &str, path: &Path, error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the file has become shorter".to_string(),
        _ => io_text(error),
    };
    Failure::new(format!("cannot {verb} {}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrier::Precision;

    /// Every box of a small array, in every memory order, from both file orders.
    #[test]
    fn boxes_are_read_and_written_at_their_positions() {
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
                FileBox { shape, lo: [0; 3], hi: shape, memory: if fortran { [2, 1, 0] } else { [0, 1, 2] } };
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
                    let part = FileBox { shape, lo, hi, memory };
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
