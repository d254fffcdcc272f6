//! Arrays of stores that are read, chunk by chunk.

use std::fs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use zarrs::array::{Array, ArrayBytes, ArraySubset, CodecOptions};

use super::super::dtype::Dtype;
use super::super::failure::{cannot, cannot_io};
use super::super::location::Location;
use super::super::view::{BoxViewMut, bytes_mut, rows};
use super::blosc_codec;
use super::metadata::{self, Node};
use super::slice::{Pick, picks};
use super::store::FolderStore;
use crate::machine;
use crate::{Box3, Real, Result};

/// An array of a store, or a part of it.
#[derive(Debug)]
pub struct ZarrReader {
    array: Array<FolderStore>,
    dtype: Dtype,
    /// What is taken of each axis of the array.
    picks: Vec<Pick>,
    /// The lengths of the ranges.
    shape: Vec<usize>,
}

impl ZarrReader {
    /// Opens an array; `name` is what the user has given.
    ///
    /// # Errors
    /// There is no such array; it is damaged, or has elements that are not supported.
    pub fn open(name: &Path, location: &Location) -> Result<Self> {
        let wrong = |why: String| cannot("read", name, why);
        fs::metadata(&location.path).map_err(|error| cannot_io("read", name, error))?;
        let inner = location.array.as_deref().unwrap_or_default();
        let folder = location.path.join(inner);
        if !folder.starts_with(&location.path) || inner.split('/').any(|part| part == "..") {
            return Err(wrong(format!("`{inner}` is not in the store")));
        }
        let metadata = match metadata::node(&folder).map_err(wrong)? {
            Node::Array(metadata) => metadata,
            Node::Group => return Err(wrong(group_text(&folder, location))),
            Node::None if folder.join(".zarray").exists() => {
                return Err(wrong("its format is Zarr 2; Zarr 3 is supported".into()));
            }
            Node::None if !inner.is_empty() => {
                return Err(wrong(format!("there is no array `{inner}` in {}", location.path.display())));
            }
            Node::None => return Err(wrong(format!("it is a folder without a {}", metadata::FILE))),
        };
        let (whole, dtype) = metadata::shape_and_type(&metadata).map_err(wrong)?;
        let picks = picks(location.slice.as_deref(), &whole).map_err(wrong)?;
        // Damaged metadata is an error, whatever the crate makes of it.
        blosc_codec::register();
        let open = || Array::open(Arc::new(FolderStore::new(&folder)), "/");
        let array = match catch_unwind(AssertUnwindSafe(open)) {
            Ok(Ok(array)) => array,
            Ok(Err(error)) => return Err(wrong(error.to_string())),
            Err(_) => return Err(wrong(format!("its {} is damaged", metadata::FILE))),
        };
        let length = |pick: &Pick| matches!(pick, Pick::Range(..)).then(|| pick.range().len());
        let shape = picks.iter().filter_map(length).collect();
        Ok(ZarrReader { array, dtype, picks, shape })
    }

    /// The type of the elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The lengths of the axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The axis of `Box3` of each axis of the array; `None` for those with one index, which `batch` may be.
    fn axes(&self, batch: Option<usize>) -> Vec<(Option<usize>, usize)> {
        let skip = batch.is_some() as usize;
        let mut next = 3 + skip - self.shape.len();
        let mut first = batch;
        let axis = |pick: &Pick| match (pick, first.take()) {
            (Pick::Index(index), kept) => {
                first = kept;
                (None, *index)
            }
            (Pick::Range(from, _), Some(number)) => (None, from + number),
            (Pick::Range(from, _), None) => {
                next += 1;
                (Some(next - 1), *from)
            }
        };
        self.picks.iter().map(axis).collect()
    }

    /// Reads `part` into `block`, one of `batch` where the first axis counts arrays. Threads decode chunks, this one
    /// copies them.
    ///
    /// # Errors
    /// A chunk that cannot be read or decoded.
    pub fn read<T: Real>(
        &self,
        name: &Path,
        batch: Option<usize>,
        part: &Box3,
        block: &mut BoxViewMut<'_, T>,
        threads: usize,
        progress: &dyn Fn(u64),
    ) -> Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        let axes = self.axes(batch);
        let range = |&(axis, from): &(Option<usize>, usize)| -> Range<u64> {
            let (lo, hi) = axis.map_or((0, 1), |axis| (part.lo[axis], part.hi[axis]));
            (from + lo) as u64..(from + hi) as u64
        };
        let wanted = ArraySubset::new_with_ranges(&axes.iter().map(range).collect::<Vec<_>>());
        let chunks = self.array.chunks_in_array_subset(&wanted).ok().flatten();
        let Some(chunks) = chunks else {
            return Err(cannot("read", name, "its chunks do not cover its shape"));
        };
        let chunks: Vec<Vec<u64>> = chunks.indices().into_iter().map(|index| index.to_vec()).collect();
        self.check_chunk(name, &chunks[0])?;
        let workers = threads.clamp(1, chunks.len());
        let options = CodecOptions::default().with_concurrent_target(threads.div_ceil(workers));
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = |sender: mpsc::SyncSender<_>| {
            while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let decoded = self.decode(chunk, &wanted, &options);
                if stop.load(Ordering::Relaxed) || sender.send((chunk, decoded)).is_err() {
                    return;
                }
            }
        };
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(workers);
            for _ in 0..workers {
                let sender = sender.clone();
                scope.spawn(|| work(sender));
            }
            drop(sender);
            let mut outcome = Ok(());
            while let Ok((chunk, decoded)) = receiver.recv() {
                match decoded {
                    Ok((region, bytes)) if outcome.is_ok() => {
                        self.scatter(&axes, &region, &bytes, block);
                        progress(bytes.len() as u64);
                    }
                    Err(why) if outcome.is_ok() => {
                        stop.store(true, Ordering::Relaxed);
                        outcome = Err(cannot("read", name, format_args!("chunk {chunk:?}: {why}")));
                    }
                    _ => {}
                }
            }
            outcome
        })
    }

    /// Refuses chunks that do not fit in memory: their size is what a file claims.
    fn check_chunk(&self, name: &Path, chunk: &[u64]) -> Result<()> {
        let shape = self.array.chunk_shape(chunk).map_err(|error| cannot("read", name, error))?;
        let bytes =
            shape.iter().try_fold(self.dtype.bytes() as u64, |product, n| product.checked_mul(n.get()));
        if bytes.is_none_or(|bytes| bytes > machine::memory_left()) {
            return Err(cannot(
                "read",
                name,
                format_args!("a chunk of {shape:?} elements does not fit in memory"),
            ));
        }
        Ok(())
    }

    /// The part of a chunk that is wanted, and its bytes in C order.
    fn decode(
        &self,
        chunk: &[u64],
        wanted: &ArraySubset,
        options: &CodecOptions,
    ) -> std::result::Result<(ArraySubset, Vec<u8>), String> {
        let decode = || -> std::result::Result<_, zarrs::array::ArrayError> {
            let whole = self.array.chunk_subset(chunk)?;
            let region = wanted.overlap(&whole)?;
            let inside = region.relative_to(whole.start())?;
            let bytes: ArrayBytes<'static> = self.array.retrieve_chunk_subset_opt(chunk, &inside, options)?;
            Ok((region, bytes.into_fixed()?.into_owned()))
        };
        let damaged = || Err("it is damaged".to_string());
        let (region, bytes) = match catch_unwind(AssertUnwindSafe(decode)) {
            Ok(Ok(decoded)) => decoded,
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return damaged(),
        };
        if bytes.len() as u64 != region.num_elements() * self.dtype.bytes() as u64 {
            return damaged();
        }
        Ok((region, bytes))
    }

    /// Copies a region of the array into memory.
    fn scatter<T: Real>(
        &self,
        axes: &[(Option<usize>, usize)],
        region: &ArraySubset,
        bytes: &[u8],
        block: &mut BoxViewMut<'_, T>,
    ) {
        let mut part = Box3::whole([1; 3]);
        for (range, &(axis, from)) in region.to_ranges().iter().zip(axes) {
            if let Some(axis) = axis {
                (part.lo[axis], part.hi[axis]) = (range.start as usize - from, range.end as usize - from);
            }
        }
        let (width, step) = (self.dtype.width(), block.geometry.strides[2]);
        let row = (part.hi[2] - part.lo[2]) * width;
        let mut stage = vec![T::default(); row];
        let mut source = bytes.chunks_exact(row * size_of::<T>());
        rows(&part, |index, len| {
            let Some(bytes) = source.next() else { return };
            let start = block.geometry.offset(index);
            if step == width && width == block.geometry.width {
                bytes_mut(&mut block.scalars[start..start + row]).copy_from_slice(bytes);
                return;
            }
            bytes_mut(&mut stage).copy_from_slice(bytes);
            for k in 0..len {
                let to = start + k * step;
                if width < block.geometry.width {
                    block.scalars[to + 1] = T::default();
                }
                block.scalars[to..to + width].copy_from_slice(&stage[k * width..(k + 1) * width]);
            }
        });
    }
}

/// Why a group is not an array, with the arrays it has.
fn group_text(folder: &Path, location: &Location) -> String {
    let arrays = metadata::arrays(folder);
    let inner = location.array.as_deref().map_or(String::new(), |inner| format!("{inner}/"));
    let path = location.path.display();
    match arrays.first() {
        Some(first) => format!(
            "it is a Zarr group; name an array in it, such as {path}::{inner}{first} (it has: {})",
            arrays.join(", ")
        ),
        None => "it is a Zarr group without arrays".into(),
    }
}
