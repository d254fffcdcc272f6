//! Arrays of stores that are written, each chunk by one rank.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use zarrs::array::{Array, ArrayBytes, CodecOptions};

use super::super::dtype::Dtype;
use super::super::failure::{agree, cannot, cannot_io};
use super::super::location::Location;
use super::super::options::WriteOptions;
use super::super::view::{BoxView, bytes, bytes_mut, embed, rows};
use super::blosc_codec;
use super::chunks::{aligned_boxes, chunk_shapes, is_aligned};
use super::folder::{Destination, PendingFolder, write_json};
use super::metadata;
use super::store::FolderStore;
use crate::redistribute::Redistribution;
use crate::{Box3, Comm, Layout, LayoutSpec, Order, Problem, Real, Result};
use ferrier_plan::geometry::Geometry;

/// An array that is being written.
#[derive(Debug)]
pub struct ZarrWriter {
    name: PathBuf,
    /// On the rank that made it.
    folder: Option<PendingFolder>,
    array: Array<FolderStore>,
    dtype: Dtype,
    shape: Vec<usize>,
    /// Lengths of the files: shards, or chunks where there are no shards.
    chunk: Vec<usize>,
}

impl ZarrWriter {
    /// Makes a store with a hidden name and the metadata of an array. Collective.
    ///
    /// # Errors
    /// The same on every rank.
    pub fn create(
        comm: &Comm,
        name: &Path,
        dtype: Dtype,
        shape: &[usize],
        options: &WriteOptions,
    ) -> Result<Self> {
        let (chunks, shards) = chunk_shapes(options, shape).map_err(|why| cannot("write", name, why))?;
        let make = || {
            let destination = Destination::new(name, &Location::parse(name))?;
            let folder = destination.create(name)?;
            let place = destination.array_in(folder.path());
            let metadata = metadata::array(shape, dtype, &chunks, shards.as_deref(), options.compress);
            write_json(&place, &metadata).map_err(|error| cannot_io("write", name, error))?;
            Ok((folder, place))
        };
        let made = if comm.rank() == 0 { make().map(Some) } else { Ok(None) };
        let made = agree(comm, name, made, false)?;
        let place = made.as_ref().map_or(&[][..], |(_, place)| place.as_os_str().as_encoded_bytes());
        let place = comm.all_gather(place)?.swap_remove(0);
        let place = PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&place));
        let array = agree(comm, name, open(name, &place), true)?;
        let (folder, chunk) = (made.map(|(folder, _)| folder), shards.unwrap_or(chunks));
        Ok(ZarrWriter { name: name.into(), folder, array, dtype, shape: shape.to_vec(), chunk })
    }

    /// Writes an array of the batch; `block` is this rank's box of `layout`. Collective.
    ///
    /// # Errors
    /// The same on every rank: a chunk that cannot be written.
    pub fn write<T: Real>(
        &self,
        comm: &Comm,
        layout: &Layout,
        batch: usize,
        block: &BoxView<'_, T>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<()> {
        let chunk = embed(&self.chunk);
        if is_aligned(layout.boxes(), layout.shape(), chunk) {
            return self.store(comm, batch, block, progress);
        }
        // Boxes that cut chunks: to a layout of whole chunks first.
        let boxes = aligned_boxes(layout.shape(), chunk, comm.size());
        let problem = Problem::redistribute(layout.shape())
            .input(LayoutSpec::boxes(layout.boxes().to_vec()).order(layout.order()))
            .output(LayoutSpec::boxes(boxes.clone()).order(Order::C));
        let dense = Geometry::dense(block.geometry.part, layout.order(), !self.dtype.is_complex());
        let mut copy = Vec::new();
        let from = if dense.strides == block.geometry.strides {
            &block.scalars[block.geometry.start..][..dense.volume]
        } else {
            copy.resize(dense.volume, T::default());
            copy_rows(block, &dense.part, &dense, &mut copy);
            &copy
        };
        let target = Geometry::dense(boxes[comm.rank()], Order::C, !self.dtype.is_complex());
        let mut whole = vec![T::default(); target.volume];
        match self.dtype.bytes() {
            4 => redistribute::<T, 4>(comm, &problem, from, &mut whole)?,
            8 => redistribute::<T, 8>(comm, &problem, from, &mut whole)?,
            _ => redistribute::<T, 16>(comm, &problem, from, &mut whole)?,
        }
        drop(copy);
        let aligned = BoxView { scalars: &whole, geometry: target };
        self.store(comm, batch, &aligned, progress)
    }

    /// Writes the chunks of a box, which has whole ones only. Collective.
    fn store<T: Real>(
        &self,
        comm: &Comm,
        batch: usize,
        block: &BoxView<'_, T>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<()> {
        let (shape, chunk) = (embed(&self.shape), embed(&self.chunk));
        let part = block.geometry.part.intersect(&Box3::whole(shape));
        let lo: [usize; 3] = std::array::from_fn(|axis| part.lo[axis] / chunk[axis]);
        let counts: [usize; 3] = std::array::from_fn(|axis| part.hi[axis].div_ceil(chunk[axis]) - lo[axis]);
        let count = if part.is_empty() { 0 } else { counts.iter().product() };
        let workers = comm.threads().clamp(1, count.max(1));
        let options = CodecOptions::default().with_concurrent_target(comm.threads().div_ceil(workers));
        let next = AtomicUsize::new(0);
        let fault = Mutex::new(None);
        let work = || loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let [_, second, third] = counts;
            let at =
                [lo[0] + number / (second * third), lo[1] + number / third % second, lo[2] + number % third];
            let bytes = self.gather(at, &part, block);
            let length = bytes.len() as u64;
            if let Err(why) = self.store_chunk(batch, at, bytes, &options) {
                next.store(count, Ordering::Relaxed);
                fault.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(why);
            }
            progress(length);
        };
        std::thread::scope(|scope| {
            (1..workers).for_each(|_| drop(scope.spawn(work)));
            work();
        });
        let fault = fault.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let outcome = fault.map_or(Ok(()), |why| Err(cannot("write", &self.name, why)));
        agree(comm, &self.name, outcome, true)
    }

    /// The bytes of a chunk; what lies outside the array is zero.
    fn gather<T: Real>(&self, at: [usize; 3], part: &Box3, block: &BoxView<'_, T>) -> Vec<u8> {
        let chunk = embed(&self.chunk);
        let lo: [usize; 3] = std::array::from_fn(|axis| at[axis] * chunk[axis]);
        let whole = Box3::new(lo, std::array::from_fn(|axis| lo[axis] + chunk[axis]));
        let target = Geometry::dense(whole, Order::C, block.geometry.width == 1);
        let mut scalars = vec![T::default(); target.volume];
        copy_rows(block, &whole.intersect(part), &target, &mut scalars);
        bytes(&scalars).to_vec()
    }

    fn store_chunk(
        &self,
        batch: usize,
        at: [usize; 3],
        bytes: Vec<u8>,
        options: &CodecOptions,
    ) -> std::result::Result<(), String> {
        let axes = self.shape.len().min(3);
        let mut index: Vec<u64> = at[3 - axes..].iter().map(|&number| number as u64).collect();
        if self.shape.len() == 4 {
            index.insert(0, batch as u64);
        }
        let store = || self.array.store_chunk_opt(&index, ArrayBytes::new_flen(bytes), options);
        match catch_unwind(AssertUnwindSafe(store)) {
            Ok(stored) => stored.map_err(|error| error.to_string()),
            Err(_) => Err(format!("chunk {index:?} cannot be encoded")),
        }
    }

    /// Gives the store its name, on the rank that made it.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn commit(self) -> Result<()> {
        self.folder.map_or(Ok(()), |folder| folder.commit(&self.name))
    }
}

/// The array of an unfinished store.
fn open(name: &Path, place: &Path) -> Result<Array<FolderStore>> {
    File::open(place).map_err(|error| {
        let why = format!(
            "{}, which the first rank has made, cannot be opened (is its folder on a file system that all hosts \
             share?): {error}",
            place.display()
        );
        cannot("write", name, why)
    })?;
    blosc_codec::register();
    Array::open(Arc::new(FolderStore::new(place)), "/").map_err(|error| cannot("write", name, error))
}

/// Takes elements of `N` bytes from one layout to another. Collective.
fn redistribute<T: Real, const N: usize>(
    comm: &Comm,
    problem: &Problem,
    from: &[T],
    to: &mut [T],
) -> Result<()> {
    let (from, to) = (bytes(from).as_chunks::<N>().0, bytes_mut(to).as_chunks_mut::<N>().0);
    Redistribution::<[u8; N]>::new(comm, problem)?.run(from, to)
}

/// Copies `part` of a block into memory of another geometry.
fn copy_rows<T: Real>(block: &BoxView<'_, T>, part: &Box3, target: &Geometry, scalars: &mut [T]) {
    let (width, step, pitch) = (block.geometry.width, block.geometry.strides[2], target.strides[2]);
    rows(part, |index, len| {
        let (from, to) = (block.geometry.offset(index), target.offset(index));
        if step == width && pitch == width {
            scalars[to..to + len * width].copy_from_slice(&block.scalars[from..from + len * width]);
            return;
        }
        for k in 0..len {
            let (from, to) = (from + k * step, to + k * pitch);
            scalars[to..to + width].copy_from_slice(&block.scalars[from..from + width]);
        }
    });
}
