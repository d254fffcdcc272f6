//! Files that are written, by all ranks together.

use std::path::{Path, PathBuf};

use super::dtype::Dtype;
use super::failure::{agree, cannot, cannot_io};
use super::flat::Flat;
use super::location::Format;
use super::npy::Header;
use super::options::WriteOptions;
use super::output::AtomicFile;
use super::view::{BoxView, embed};
use super::zarr::ZarrWriter;
use crate::exec::{Array, Data};
use crate::{Box3, Comm, Layout, Real, Result};
use ferrier_plan::geometry::Geometry;

/// A file that is being written. It gets its name in [`commit`](Writer::commit) and is removed otherwise; a file
/// that has the name keeps its contents until then.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    dtype: Dtype,
    shape: Vec<usize>,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Flat(AtomicFile, Flat),
    Zarr(Box<ZarrWriter>),
}

impl Writer {
    /// Creates the file: `.npy`, `.zarr` (also `a.zarr::name`, an array in a store) or raw, by its name. `shape` has
    /// 1 to 3 axes, or 4 for a batch, the first of which counts the arrays. Collective.
    ///
    /// # Errors
    /// The same on every rank: the folder does not exist or cannot be written, there is no room, options that do not
    /// fit. Zarr without the feature `zarr` of this crate.
    pub fn create(
        comm: &Comm,
        name: impl AsRef<Path>,
        dtype: Dtype,
        shape: &[usize],
        options: &WriteOptions,
    ) -> Result<Writer> {
        let path = name.as_ref().to_path_buf();
        let format = options.format.unwrap_or_else(|| Format::of_name(&path));
        if !(1..=4).contains(&shape.len()) || shape.contains(&0) {
            return Err(cannot(
                "write",
                &path,
                format_args!("its shape would be {shape:?}; it must have 1 to 4 axes"),
            ));
        }
        let little = dtype.big_endian(false);
        let native = Dtype::new(dtype.is_complex(), dtype.precision());
        let target = match format {
            Format::Zarr => Target::Zarr(Box::new(ZarrWriter::create(comm, &path, little, shape, options)?)),
            Format::Npy | Format::Raw => {
                let raw = format == Format::Raw;
                let dtype = if raw { dtype.big_endian(options.big_endian) } else { native };
                let head = if raw { Vec::new() } else { Header::write(dtype, shape).1 };
                let bytes = shape.iter().product::<usize>() * dtype.bytes();
                let file = AtomicFile::create_shared(comm, &path, &head, bytes as u64)?;
                let flat = Flat { dtype, shape: embed(shape), fortran: false, offset: head.len() as u64 };
                Target::Flat(file, flat)
            }
        };
        Ok(Writer { path, dtype, shape: shape.to_vec(), target })
    }

    /// The name that was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Is it a Zarr store?
    pub fn is_zarr(&self) -> bool {
        matches!(self.target, Target::Zarr(_))
    }

    /// The same file as elements of another shape on three axes, in another order; not for Zarr stores.
    ///
    /// # Panics
    /// For another number of elements, and for a Zarr store.
    #[must_use]
    pub fn reshaped(mut self, shape: [usize; 3], fortran: bool) -> Self {
        assert_eq!(
            shape.iter().product::<usize>(),
            self.shape.iter().product::<usize>(),
            "as many elements as the file has"
        );
        match &mut self.target {
            Target::Flat(_, flat) => (flat.shape, flat.fortran) = (shape, fortran),
            Target::Zarr(_) => panic!("the chunks of a Zarr store have its shape"),
        }
        self
    }

    /// Writes an array of a plan, whose layout is `layout`. Elements outside the shape of the file are left out.
    /// Calls `progress` with the bytes that were written. Collective.
    ///
    /// # Errors
    /// The same on every rank: the array has other elements than the file; the file cannot be written.
    pub fn write<T: Real>(
        &self,
        comm: &Comm,
        layout: &Layout,
        array: &Array<T>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<()> {
        let arrays = if self.shape.len() == 4 { self.shape[0] } else { 1 };
        let fits = if arrays == array.batch() {
            self.check::<T>(array.geometry(self.dtype.is_complex()).is_some())
        } else {
            let why = format!("its shape is {:?}, but the batch has {} arrays", self.shape, array.batch());
            Err(cannot("write", &self.path, why))
        };
        agree(comm, &self.path, fits, true)?;
        for number in 0..arrays {
            let Some(block) = BoxView::of(array, self.dtype.is_complex(), number) else { continue };
            self.write_block(comm, layout, number, &block, progress)?;
        }
        Ok(())
    }

    /// As [`write`](Self::write), for boxes that are dense in memory, in the order of `layout`.
    ///
    /// # Errors
    /// Those of [`write`](Self::write); `elements` has another length.
    pub fn write_box<T: Real>(
        &self,
        comm: &Comm,
        layout: &Layout,
        elements: &(impl Data<T> + ?Sized),
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<()> {
        let real = elements.is_real() == Some(true);
        let geometry = Geometry::dense(layout.boxes()[comm.rank()], layout.order(), real);
        let scalars = elements.scalars();
        let fits = if scalars.len() == geometry.volume {
            self.check::<T>(real != self.dtype.is_complex())
        } else {
            let why =
                format!("a box of {} scalars cannot be written from {}", geometry.volume, scalars.len());
            Err(cannot("write", &self.path, why))
        };
        agree(comm, &self.path, fits, true)?;
        let block = BoxView { scalars, geometry };
        self.write_block(comm, layout, 0, &block, progress)
    }

    fn write_block<T: Real>(
        &self,
        comm: &Comm,
        layout: &Layout,
        number: usize,
        block: &BoxView<'_, T>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<()> {
        let (file, flat) = match &self.target {
            Target::Zarr(store) => return store.write(comm, layout, number, block, progress),
            Target::Flat(file, flat) => (file.file(), flat.of_batch(number)),
        };
        let part = block.geometry.part.intersect(&Box3::whole(flat.shape));
        // Each process syncs its own part. Threads share a file, which is synced in the end.
        let written = flat
            .write(file, &part, block, &|bytes| progress(bytes))
            .and_then(|()| if comm.transport_name() == "mpi" { file.sync_all() } else { Ok(()) });
        agree(comm, &self.path, written.map_err(|error| cannot_io("write", &self.path, error)), true)
    }

    /// Gives the file its name, once all ranks have written. Collective.
    ///
    /// # Errors
    /// The same on every rank; a file that has the name then keeps its contents.
    pub fn commit(self, comm: &Comm) -> Result<()> {
        let Writer { path, target, .. } = self;
        let named = match target {
            _ if comm.rank() > 0 => Ok(()),
            Target::Flat(file, _) => file.commit(),
            Target::Zarr(store) => store.commit(),
        };
        agree(comm, &path, named, false)
    }

    fn check<T: Real>(&self, kind_fits: bool) -> Result<()> {
        let name = self.dtype.name();
        if self.dtype.precision() != T::PRECISION {
            let why = format!("its elements are {name}, the array is {}", T::PRECISION.name());
            return Err(cannot("write", &self.path, why));
        }
        if !kind_fits {
            let kind = if self.dtype.is_complex() { "real" } else { "complex" };
            return Err(cannot(
                "write",
                &self.path,
                format_args!("its elements are {name}, the array is {kind}"),
            ));
        }
        Ok(())
    }
}

/// Writes the array of a plan to a file, by its name `.npy`, `.zarr` or raw; see [`Writer`] for options. `layout` is
/// [`Plan::input_layout`](crate::Plan::input_layout) or [`Plan::output_layout`](crate::Plan::output_layout). The file
/// has three axes, a batch four. It appears when it is complete. Collective.
///
/// # Errors
/// The same on every rank; a file that has the name then keeps its contents.
pub fn write<T: Real>(comm: &Comm, name: impl AsRef<Path>, layout: &Layout, array: &Array<T>) -> Result<()> {
    let mut shape = layout.shape().to_vec();
    if array.batch() > 1 {
        shape.insert(0, array.batch());
    }
    let dtype = Dtype::new(array.is_complex(), T::PRECISION);
    let writer = Writer::create(comm, name, dtype, &shape, &WriteOptions::default())?;
    writer.write(comm, layout, array, &|_| {})?;
    writer.commit(comm)
}
