//! A rank's box of an array in a file without chunks: `.npy` behind its header, or raw.
//!
//! Reads and writes are positional and access only the box. Runs that are contiguous in the
//! file are one call, cut into chunks so that a progress bar moves.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::dtype::Dtype;
use super::view::{BoxView, BoxViewMut, bytes, bytes_mut};
use crate::{Box3, Real};
use ferrier_plan::geometry::Geometry;

/// Bytes per call. Large enough that the overhead of a call is small.
const CHUNK: usize = 4 << 20;
/// Bytes of the buffer through which elements are converted; fits second-level cache.
const STAGE: usize = 256 << 10;

/// Where the elements of a file lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flat {
    /// The type of the elements.
    pub dtype: Dtype,
    /// The shape of an array, on three axes.
    pub shape: [usize; 3],
    /// The first axis is the fastest.
    pub fortran: bool,
    /// Offset of the first element in bytes.
    pub offset: u64,
}

/// A run of elements that is contiguous in the file.
struct FileRun {
    /// Position in the file, in elements.
    file: usize,
    /// Position in memory, in scalars.
    memory: usize,
    /// How many elements.
    len: usize,
    /// Scalars of memory from one of them to the next.
    step: usize,
}

impl Flat {
    /// Array `batch` of a batch.
    pub fn of_batch(mut self, batch: usize) -> Flat {
        self.offset += (batch * self.shape.iter().product::<usize>() * self.dtype.bytes()) as u64;
        self
    }

    /// Calls `each` for every run of `part`, in the order of the file.
    fn runs(
        &self,
        part: &Box3,
        memory: &Geometry,
        mut each: impl FnMut(FileRun) -> io::Result<()>,
    ) -> io::Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        // Slowest to fastest in the file, and the stride of each axis there and in memory.
        let [slow, mid, fast] = if self.fortran { [2, 1, 0] } else { [0, 1, 2] };
        let mut in_file = [1; 3];
        in_file[mid] = self.shape[fast];
        in_file[slow] = self.shape[fast] * self.shape[mid];
        let in_memory = memory.strides;

        // Rows that follow each other both in the file and in memory are one run.
        let extent = part.shape();
        let whole = |axis: usize| extent[axis] == self.shape[axis];
        let follows = |axis: usize, next: usize, len: usize| {
            whole(axis) && (extent[next] == 1 || in_memory[next] == len * in_memory[fast])
        };
        let (mut len, mut mids, mut slows) = (extent[fast], extent[mid], extent[slow]);
        if follows(fast, mid, len) {
            len *= mids;
            mids = 1;
            if whole(mid) && (slows == 1 || in_memory[slow] == len * in_memory[fast]) {
                len *= slows;
                slows = 1;
            }
        }
        let origin: usize = (0..3).map(|axis| part.lo[axis] * in_file[axis]).sum();
        let start = memory.offset(part.lo);
        for i in 0..slows {
            for j in 0..mids {
                each(FileRun {
                    file: origin + i * in_file[slow] + j * in_file[mid],
                    memory: start + i * in_memory[slow] + j * in_memory[mid],
                    len,
                    step: in_memory[fast],
                })?;
            }
        }
        Ok(())
    }

    /// Reads `part` of `file` into `block`; real elements of the file may become complex ones.
    /// Calls `progress` with the bytes of each call.
    ///
    /// # Errors
    /// The file cannot be read, or has become shorter.
    pub fn read<T: Real>(
        &self,
        file: &File,
        part: &Box3,
        block: &mut BoxViewMut<'_, T>,
        progress: &dyn Fn(u64),
    ) -> io::Result<()> {
        let (size, width) = (self.dtype.bytes(), self.dtype.width());
        let scalars = &mut *block.scalars;
        let mut stage = Vec::new();
        self.runs(part, &block.geometry, |run| {
            let mut at = self.offset + (run.file * size) as u64;
            let mut get = |chunk: &mut [T]| {
                let bytes = bytes_mut(chunk);
                file.read_exact_at(bytes, at)?;
                at += bytes.len() as u64;
                progress(bytes.len() as u64);
                if self.dtype.is_swapped() {
                    swap(chunk);
                }
                Ok(())
            };
            if run.step == width && width == block.geometry.width {
                let scalars = &mut scalars[run.memory..run.memory + run.len * width];
                return scalars.chunks_mut(CHUNK / size_of::<T>()).try_for_each(get);
            }
            stage.resize(STAGE / size_of::<T>(), T::default());
            let mut done = 0;
            while done < run.len {
                let count = (run.len - done).min(STAGE / size);
                let chunk = &mut stage[..count * width];
                get(chunk)?;
                for (k, value) in chunk.chunks_exact(width).enumerate() {
                    let to = run.memory + (done + k) * run.step;
                    if width < block.geometry.width {
                        scalars[to + 1] = T::default();
                    }
                    scalars[to..to + width].copy_from_slice(value);
                }
                done += count;
            }
            Ok(())
        })
    }

    /// Writes `part` of `file` from `block`, which has elements of the file's kind. Calls `progress` with the
    /// bytes of each call.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write<T: Real>(
        &self,
        file: &File,
        part: &Box3,
        block: &BoxView<'_, T>,
        progress: &dyn Fn(u64),
    ) -> io::Result<()> {
        let (size, width) = (self.dtype.bytes(), self.dtype.width());
        let mut stage = Vec::new();
        self.runs(part, &block.geometry, |run| {
            let mut at = self.offset + (run.file * size) as u64;
            let mut put = |bytes: &[u8]| {
                file.write_all_at(bytes, at)?;
                at += bytes.len() as u64;
                progress(bytes.len() as u64);
                Ok(())
            };
            if run.step == width && !self.dtype.is_swapped() {
                let scalars = &block.scalars[run.memory..run.memory + run.len * width];
                return bytes(scalars).chunks(CHUNK).try_for_each(put);
            }
            let mut done = 0;
            while done < run.len {
                let count = (run.len - done).min(STAGE / size);
                stage.clear();
                for k in done..done + count {
                    let from = run.memory + k * run.step;
                    stage.extend_from_slice(&block.scalars[from..from + width]);
                }
                if self.dtype.is_swapped() {
                    swap(&mut stage);
                }
                put(bytes(&stage))?;
                done += count;
            }
            Ok(())
        })
    }
}

/// Reverses the bytes of each scalar.
fn swap<T: Real>(scalars: &mut [T]) {
    bytes_mut(scalars).chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Order, Precision};

    const SHAPE: [usize; 3] = [3, 2, 4];

    fn geometry(part: Box3, memory: [usize; 3], width: usize) -> Geometry {
        Geometry::dense(part, Order::new(memory).unwrap(), width == 1)
    }

    /// Calls `each` with every index of a box.
    fn each(part: &Box3, mut each: impl FnMut([usize; 3])) {
        for i in part.lo[0]..part.hi[0] {
            for j in part.lo[1]..part.hi[1] {
                (part.lo[2]..part.hi[2]).for_each(|k| each([i, j, k]));
            }
        }
    }

    fn at([i, j, k]: [usize; 3]) -> f64 {
        (100 * i + 10 * j + k) as f64
    }

    /// Every box of a small array, in every memory order, from both file orders and byte orders.
    #[test]
    fn boxes_are_read_and_written_at_their_positions() {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let boxes = [([0; 3], SHAPE), ([1, 0, 0], SHAPE), ([0, 1, 1], [3, 2, 3]), ([2, 0, 3], [3, 2, 4])];
        for (complex, big, fortran) in
            [(false, false, false), (false, true, true), (true, false, true), (true, true, false)]
        {
            let dtype = Dtype::new(complex, Precision::F64).big_endian(big);
            let flat = Flat { dtype, shape: SHAPE, fortran, offset: 64 };
            let width = dtype.width();
            let (file, copy) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
            let whole = Box3::whole(SHAPE);
            let all = geometry(whole, [1, 2, 0], width);
            let mut scalars = vec![0.0; all.volume];
            each(&whole, |index| {
                scalars[all.offset(index)] = at(index);
                if complex {
                    scalars[all.offset(index) + 1] = -at(index);
                }
            });
            let block = BoxView { scalars: &scalars, geometry: all };
            flat.write(&file, &whole, &block, &|_| {}).unwrap();
            for memory in orders {
                for (lo, hi) in boxes {
                    let part = Box3::new(lo, hi);
                    let geometry = geometry(part, memory, 2);
                    let mut got = vec![f64::NAN; geometry.volume];
                    let mut block = BoxViewMut { scalars: &mut got, geometry };
                    flat.read(&file, &part, &mut block, &|_| {}).unwrap();
                    each(&part, |index| {
                        let im = if complex { -at(index) } else { 0.0 };
                        let offset = geometry.offset(index);
                        assert_eq!(got[offset..offset + 2], [at(index), im], "{part:?} {flat:?}");
                    });
                    if complex {
                        let block = BoxView { scalars: &got, geometry };
                        flat.write(&copy, &part, &block, &|_| {}).unwrap();
                    }
                }
            }
            if complex {
                let len = SHAPE.iter().product::<usize>() * dtype.bytes();
                let (mut a, mut b) = (vec![0; len], vec![0; len]);
                file.read_exact_at(&mut a, flat.offset).unwrap();
                copy.read_exact_at(&mut b, flat.offset).unwrap();
                assert_eq!(a, b);
            }
        }
    }

    /// A part of a box: what is outside the file becomes zero.
    #[test]
    fn elements_outside_are_cleared() {
        let part = Box3::new([1, 0, 0], [4, 3, 5]);
        let inside = part.intersect(&Box3::whole(SHAPE));
        for memory in [[0, 1, 2], [2, 0, 1]] {
            let geometry = geometry(part, memory, 1);
            let mut scalars = vec![7.0; geometry.volume];
            BoxViewMut { scalars: &mut scalars, geometry }.clear_outside(&inside);
            each(&part, |index| {
                let expected = if inside.contains(index) { 7.0 } else { 0.0 };
                assert_eq!(scalars[geometry.offset(index)], expected);
            });
        }
    }
}
