//! Files that are read.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::dtype::Dtype;
use super::failure::{agree, cannot, cannot_io};
use super::flat::Flat;
use super::location::Location;
use super::npy::{Header, check_length};
use super::view::BoxViewMut;
use super::zarr::ZarrReader;
use crate::exec::{Array, DataMut};
use crate::{Box3, Comm, Layout, Order, Real, Result};
use ferrier_plan::geometry::Geometry;

/// The elements of a raw file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Raw {
    /// The lengths of the axes.
    pub shape: Vec<usize>,
    /// The type of the elements, with their byte order.
    pub dtype: Dtype,
    /// Bytes before the first element.
    pub offset: u64,
    /// The first axis is the fastest.
    pub fortran: bool,
}

impl Raw {
    /// Elements in C order from the first byte on.
    pub fn new(shape: &[usize], dtype: Dtype) -> Self {
        Raw { shape: shape.to_vec(), dtype, offset: 0, fortran: false }
    }
}

/// An open file of one array, or one array of a Zarr store.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    dtype: Dtype,
    shape: Vec<usize>,
    fortran: bool,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Flat(File, u64),
    Zarr(Box<ZarrReader>),
}

impl Reader {
    /// Opens an `.npy` file, or an array of a Zarr store (format 3): `a.zarr`, `a.zarr::density` for an array in the
    /// store, `a.zarr::density[3]` for a part of it, with an index, a range `2:5` or `:` for each axis. Not
    /// collective.
    ///
    /// # Errors
    /// The file does not exist, is truncated or damaged; an element type that is not supported. Zarr without the
    /// feature `zarr` of this crate.
    pub fn open(name: impl AsRef<Path>) -> Result<Reader> {
        let name = name.as_ref();
        let location = Location::parse(name);
        let store = |folder: &Path| folder.join("zarr.json").exists() || folder.join(".zarray").exists();
        if location.is_zarr() && !location.path.is_file() || name.is_dir() && store(name) {
            let source = ZarrReader::open(name, &location)?;
            let (dtype, shape) = (source.dtype(), source.shape().to_vec());
            return Ok(Reader {
                path: name.into(),
                dtype,
                shape,
                fortran: false,
                source: Source::Zarr(Box::new(source)),
            });
        }
        let file = File::open(name).map_err(|error| cannot_io("read", name, error))?;
        let header = Header::read(&file, name)?;
        let Header { dtype, shape, fortran, offset } = header;
        Ok(Reader { path: name.into(), dtype, shape, fortran, source: Source::Flat(file, offset) })
    }

    /// Opens a file of elements alone. Not collective.
    ///
    /// # Errors
    /// The file does not exist or is too short.
    pub fn open_raw(path: impl AsRef<Path>, raw: &Raw) -> Result<Reader> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| cannot_io("read", path, error))?;
        let there = file.metadata().map_err(|error| cannot_io("read", path, error))?;
        if !there.is_file() {
            let what = if there.is_dir() { "it is a folder" } else { "it is not a regular file" };
            return Err(cannot("read", path, what));
        }
        let Raw { shape, dtype, offset, fortran } = raw.clone();
        check_length(dtype, &shape, offset, there.len(), path)?;
        Ok(Reader { path: path.into(), dtype, shape, fortran, source: Source::Flat(file, offset) })
    }

    /// Is it an `.npy` file, by its first bytes?
    pub fn is_npy(path: impl AsRef<Path>) -> bool {
        use std::io::Read;
        let mut start = [0; 6];
        File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
            && &start == super::npy::MAGIC
    }

    /// The name that was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The type of the elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The lengths of the axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Is the first axis the fastest?
    pub fn is_fortran(&self) -> bool {
        self.fortran
    }

    /// Is it a Zarr store?
    pub fn is_zarr(&self) -> bool {
        matches!(self.source, Source::Zarr(_))
    }

    /// Bytes of the elements, before compression.
    pub fn bytes(&self) -> u64 {
        self.shape.iter().product::<usize>() as u64 * self.dtype.bytes() as u64
    }

    /// The same elements under another shape and order; not for Zarr stores.
    ///
    /// # Panics
    /// For another number of elements, and for a Zarr store.
    #[must_use]
    pub fn reshaped(mut self, shape: &[usize], fortran: bool) -> Self {
        assert!(!self.is_zarr(), "the chunks of a Zarr store have its shape");
        assert_eq!(
            shape.iter().product::<usize>(),
            self.shape.iter().product::<usize>(),
            "as many elements as the file has"
        );
        (self.shape, self.fortran) = (shape.to_vec(), fortran);
        self
    }

    /// Reads this rank's box of the file into an array of a plan, with so many threads. Indices of the array are
    /// those of the file, whose last axis is axis 2; what lies outside the file becomes zero. A batch of arrays is a
    /// file of four axes, the first of which counts the arrays. Real elements become complex where the array is
    /// complex. Calls `progress` with the bytes that were read. Not collective.
    ///
    /// # Errors
    /// The file has another precision, or is complex while the array is real; it has too many axes; it cannot be
    /// read.
    pub fn read<T: Real>(&self, array: &mut Array<T>, threads: usize, progress: &dyn Fn(u64)) -> Result<()> {
        self.check::<T>(array.geometry(true).is_some() || !self.dtype.is_complex())?;
        let arrays = array.batch();
        let (shape, batch) = self.embed(arrays)?;
        // An array for transforms in place can be both.
        let complex = self.dtype.is_complex() || array.geometry(false).is_none();
        for number in 0..arrays {
            let Some(mut block) = BoxViewMut::of(array, complex, number) else { continue };
            self.read_block(shape, batch.then_some(number), &mut block, threads, progress)?;
        }
        Ok(())
    }

    /// As [`read`](Self::read), for a box of global indices that is dense in memory, in this order of axes.
    ///
    /// # Errors
    /// Those of [`read`](Self::read); `elements` has another length.
    pub fn read_box<T: Real>(
        &self,
        part: Box3,
        order: Order,
        elements: &mut (impl DataMut<T> + ?Sized),
        threads: usize,
        progress: &dyn Fn(u64),
    ) -> Result<()> {
        let real = elements.is_real() == Some(true);
        self.check::<T>(!real || !self.dtype.is_complex())?;
        let geometry = Geometry::dense(part, order, real);
        let scalars = elements.scalars_mut();
        if scalars.len() != geometry.volume {
            let why = format!("a box of {} scalars cannot be read into {}", geometry.volume, scalars.len());
            return Err(cannot("read", &self.path, why));
        }
        let mut block = BoxViewMut { scalars, geometry };
        self.read_block(self.embed(1)?.0, None, &mut block, threads, progress)
    }

    fn read_block<T: Real>(
        &self,
        shape: [usize; 3],
        batch: Option<usize>,
        block: &mut BoxViewMut<'_, T>,
        threads: usize,
        progress: &dyn Fn(u64),
    ) -> Result<()> {
        let part = block.geometry.part.intersect(&Box3::whole(shape));
        block.clear_outside(&part);
        match &self.source {
            Source::Flat(file, offset) => {
                let flat = Flat { dtype: self.dtype, shape, fortran: self.fortran, offset: *offset };
                let read = flat.of_batch(batch.unwrap_or(0)).read(file, &part, block, progress);
                read.map_err(|error| cannot_io("read", &self.path, error))
            }
            Source::Zarr(store) => store.read(&self.path, batch, &part, block, threads, progress),
        }
    }

    fn check<T: Real>(&self, kind_fits: bool) -> Result<()> {
        let name = self.dtype.name();
        if self.dtype.precision() != T::PRECISION {
            let why = format!("its elements are {name}, the array is {}", T::PRECISION.name());
            return Err(cannot("read", &self.path, why));
        }
        if !kind_fits {
            return Err(cannot(
                "read",
                &self.path,
                format_args!("its elements are {name}, the array is real"),
            ));
        }
        Ok(())
    }

    /// The shape of an array on three axes, and whether the first axis of the file counts arrays.
    fn embed(&self, arrays: usize) -> Result<([usize; 3], bool)> {
        let (lengths, batch) = match (arrays, &self.shape[..]) {
            (2.., [first, rest @ ..]) if rest.len() == 3 && *first == arrays && !self.fortran => (rest, true),
            (2.., shape) => {
                let why = format!(
                    "a batch of {arrays} arrays needs a file of shape {arrays}xAxBxC in C order, it has {shape:?}"
                );
                return Err(cannot("read", &self.path, why));
            }
            (_, shape) => (shape, false),
        };
        if lengths.len() > 3 {
            return Err(cannot(
                "read",
                &self.path,
                format_args!("it has {} axes; 1 to 3 are supported", lengths.len()),
            ));
        }
        let mut shape = [1; 3];
        shape[3 - lengths.len()..].copy_from_slice(lengths);
        Ok((shape, batch))
    }
}

/// Reads a file into the array of a plan: `.npy` or Zarr, see [`Reader::open`]. The file has the shape of `layout`,
/// which is [`Plan::input_layout`](crate::Plan::input_layout) or
/// [`Plan::output_layout`](crate::Plan::output_layout). Collective; every rank reads its own box.
///
/// # Errors
/// The same on every rank: a file that cannot be read, has another shape or other elements.
pub fn read<T: Real>(
    comm: &Comm,
    name: impl AsRef<Path>,
    layout: &Layout,
    array: &mut Array<T>,
) -> Result<()> {
    let name = name.as_ref();
    let mut read = || {
        let reader = Reader::open(name)?;
        let (shape, _) = reader.embed(array.batch())?;
        if shape != layout.shape() {
            let why = format!("its shape is {:?}, the array's is {:?}", reader.shape, layout.shape());
            return Err(cannot("read", name, why));
        }
        reader.read(array, comm.threads(), &|_| {})
    };
    agree(comm, name, read(), true)
}
