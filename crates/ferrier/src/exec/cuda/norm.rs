//! Norms of arrays on a GPU.

use std::ffi::c_void;
use std::marker::PhantomData;

use super::gpu::{Function, Gpu, Grid, argument};
use super::memory::{Pinned, Stream};
use super::sources::{COMMON, NORM, real_name};
use crate::{Real, Result};
use ferrier_codec::Norm;
use ferrier_plan::geometry::Geometry;

/// Threads of a block of `norm.cu`, and blocks of a launch.
const WORKERS: usize = 256;
const BLOCKS: usize = 512;

/// Bytes of main memory for the sums of all blocks.
pub(super) const NORM_BYTES: usize = BLOCKS * size_of::<[f64; 4]>();

/// Runs of scalars without gaps; as in `norm.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sides {
    run: u64,
    count: [u64; 4],
    stride: [u64; 4],
}

impl Sides {
    fn new(geometry: &Geometry, batch: usize) -> Sides {
        let shape = geometry.part.shape();
        let side = |axis: usize| match axis {
            3 => (batch, geometry.batch),
            _ => (shape[axis], geometry.strides[axis]),
        };
        let mut sides = [0, 1, 2, 3].map(side);
        // Sides of one element may have any stride.
        sides.sort_by_key(|&(count, stride)| (count == 1, stride));
        let mut run = geometry.width;
        for side in &mut sides {
            if side.0 != 1 && side.1 != run {
                break;
            }
            run *= side.0;
            side.0 = 1;
        }
        let [count, stride] = [sides.map(|side| side.0 as u64), sides.map(|side| side.1 as u64)];
        Sides { run: run as u64, count, stride }
    }

    fn total(&self) -> u64 {
        self.run * self.count.iter().product::<u64>()
    }
}

/// Computes norms without allocating.
pub(super) struct NormSum<T> {
    kernel: Function,
    sums: Pinned,
    scalar: PhantomData<T>,
}

impl<T: Real> NormSum<T> {
    pub fn new(gpu: &Gpu) -> Result<NormSum<T>> {
        let kernel = gpu.kernel("sum_squares", &[COMMON, NORM], &[("REAL", real_name::<T>())], 0)?;
        let sums = Pinned::new(gpu, NORM_BYTES)?;
        Ok(NormSum { kernel, sums, scalar: PhantomData })
    }

    /// The norm of this rank's part of an array. Waits for the stream.
    ///
    /// # Safety
    /// The array at `address` is as its geometry says; what writes to it is on the stream.
    pub unsafe fn norm(
        &self,
        geometry: &Geometry,
        batch: usize,
        mut address: u64,
        stream: &Stream,
    ) -> Result<Norm> {
        address += (geometry.start * size_of::<T>()) as u64;
        let mut sides = Sides::new(geometry, batch);
        let (mut total, mut out) = (sides.total(), self.sums.at(0) as u64);
        let blocks = total.div_ceil(WORKERS as u64).min(BLOCKS as u64);
        let mut arguments: [*mut c_void; 4] =
            [argument(&mut address), argument(&mut sides), argument(&mut total), argument(&mut out)];
        let grid = Grid { blocks: blocks as u32, threads: WORKERS as u32, shared: 0 };
        // SAFETY: the arguments are those of `norm.cu`; this function's contract for the array.
        unsafe { self.kernel.launch(grid, stream.raw(), &mut arguments, false)? };
        stream.synchronize()?;
        // Half an epsilon for each addition and product of a thread, and of the sums of threads, doubled.
        let each = total.div_ceil((WORKERS * BLOCKS) as u64);
        let slack = (each + 64) as f64 * f64::EPSILON;
        let block = |block: usize| {
            // SAFETY: inside the memory, and the kernel is complete.
            let [mid, small, large, odd] =
                unsafe { self.sums.at(block * size_of::<[f64; 4]>()).cast::<[f64; 4]>().read_volatile() };
            if odd != 0.0 {
                return Norm::INFINITE;
            }
            let part = |sum: f64, exponent: f64| {
                Norm::from_array([sum * (1.0 - slack), exponent, sum * (1.0 + slack), exponent])
            };
            part(mid, 0.0) + part(small, -600.0) + part(large, 600.0)
        };
        Ok((0..blocks as usize).map(block).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayStrides, Box3, Order};

    #[test]
    fn sides_without_gaps_are_one_run() {
        let part = Box3::new([2, 0, 1], [5, 7, 12]);
        let dense = Sides::new(&Geometry::dense(part, Order::C, false), 2);
        assert_eq!((dense.run, dense.total(), dense.count), (2 * 2 * 3 * 7 * 11, 924, [1; 4]));
        let strided = Geometry::strided(part, &ArrayStrides::interleaved(part.shape(), 5, Order::C), true);
        let sides = Sides::new(&strided, 1);
        assert_eq!((sides.run, sides.total()), (1, 3 * 7 * 11));
        assert_eq!((sides.count, sides.stride), ([11, 7, 3, 1], [5, 55, 385, sides.stride[3]]));
    }
}
