//! Ghost cells of fields on GPUs.

use ferrier::cuda::{Cuda, DeviceField};
use ferrier::{Comm, DeviceSpec, Element, Ghosts, Halo, LayoutSpec, Real};

use super::device::of_rank;
use crate::agree::agree_result;
use crate::failure::Outcome;
use crate::halo_bench::{HaloBench, HaloReport, TimedHalo, measure};
use crate::in_precision;

/// Times exchanges of ghost cells in the memory of each rank's GPU. Collective.
///
/// # Errors
/// Those of the library; wrong ghost cells.
pub fn halo_bench(comm: &Comm, options: &HaloBench) -> Outcome<HaloReport> {
    in_precision!(options.precision, T => measure::<T, DeviceHalo<T>>(comm, options))
}

struct DeviceHalo<T: Real + Element> {
    halo: Halo<T, Cuda>,
    field: DeviceField<T>,
}

impl<T: Real + Element> TimedHalo<T> for DeviceHalo<T> {
    type Device = Cuda;
    // Calls enqueue work: one alone would be the time of its launches.
    const CALLS: usize = 10;

    fn new(
        comm: &Comm,
        shape: [usize; 3],
        layout: &LayoutSpec,
        ghosts: &Ghosts,
        device: DeviceSpec,
    ) -> Outcome<Self> {
        let gpu = of_rank(device, comm)?;
        let halo = Halo::<T, Cuda>::on(&gpu, comm, shape, layout, ghosts)?;
        let field = agree_result(comm, halo.make_field())?;
        Ok(DeviceHalo { halo, field })
    }

    fn halo(&self) -> &Halo<T, Cuda> {
        &self.halo
    }

    fn set(&mut self, cells: &[T]) -> ferrier::Result<()> {
        self.field.upload(cells)
    }

    fn cells(&self) -> ferrier::Result<Vec<T>> {
        let mut cells = vec![T::rounded(0.0); self.field.len()];
        self.field.download(&mut cells)?;
        Ok(cells)
    }

    fn exchange(&mut self) -> ferrier::Result<()> {
        self.halo.exchange([&mut self.field])
    }

    fn start_and_finish(&mut self) -> ferrier::Result<()> {
        self.halo.start([&mut self.field])?.finish().map(drop)
    }

    fn complete(&self) -> ferrier::Result<()> {
        self.halo.synchronize()
    }
}
