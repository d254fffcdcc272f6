//! Zarr stores without the feature `zarr`: an error.

use std::path::Path;

use super::dtype::Dtype;
use super::failure::cannot;
use super::location::Location;
use super::options::WriteOptions;
use super::view::{BoxView, BoxViewMut};
use crate::{Box3, Comm, Layout, Real, Result};

const WHY: &str = "it is a Zarr store, and this build has no feature `zarr`";

/// No store.
#[derive(Debug)]
pub(super) enum ZarrReader {}

impl ZarrReader {
    pub fn open(name: &Path, _location: &Location) -> Result<Self> {
        Err(cannot("read", name, WHY))
    }

    pub fn dtype(&self) -> Dtype {
        match *self {}
    }

    pub fn shape(&self) -> &[usize] {
        match *self {}
    }

    pub fn read<T: Real>(
        &self,
        _name: &Path,
        _batch: Option<usize>,
        _part: &Box3,
        _block: &mut BoxViewMut<'_, T>,
        _threads: usize,
        _progress: &dyn Fn(u64),
    ) -> Result<()> {
        match *self {}
    }
}

/// No store.
#[derive(Debug)]
pub(super) enum ZarrWriter {}

impl ZarrWriter {
    pub fn create(_: &Comm, name: &Path, _: Dtype, _: &[usize], _: &WriteOptions) -> Result<Self> {
        Err(cannot("write", name, WHY))
    }

    pub fn write<T: Real>(
        &self,
        _comm: &Comm,
        _layout: &Layout,
        _batch: usize,
        _block: &BoxView<'_, T>,
        _progress: &(dyn Fn(u64) + Sync),
    ) -> Result<()> {
        match *self {}
    }

    pub fn commit(self) -> Result<()> {
        match self {}
    }
}
