//! Ghost cells in the memory of GPUs.

use std::sync::Arc;

use super::streams::stream_methods;
use super::{Cuda, DeviceElementsMut, DeviceField, DeviceSum};
use crate::copies::Pattern;
use crate::copies::cuda::CudaCopier;
use crate::exec::cuda::Stream;
use crate::halo::reversed;
use crate::{Comm, Device, Element, GhostSum, Ghosts, Halo, HaloInFlight, LayoutSpec, Result};

/// On a GPU calls enqueue their work and return; exchanges by messages wait inside the call.
///
/// ```no_run
/// use ferrier::{Device, Ghosts, Halo, LayoutSpec};
/// ferrier::ranks(2).run(|comm| {
///     let gpu = Device::cuda(0)?;
///     let ghosts = Ghosts::width(2).periodic([true; 3]);
///     let mut halo = Halo::<f64, _>::on(&gpu, &comm, [64, 64, 64], &LayoutSpec::bricks(), &ghosts)?;
///     let mut u = halo.make_field()?;
///     halo.exchange([&mut u])?;
///     halo.synchronize()
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
impl<E: Element> Halo<E, Cuda> {
    /// As [`Halo::new`], around fields in the memory of this GPU. Collective; allocates.
    ///
    /// # Errors
    /// As [`Halo::new`]; where the GPU has no memory or a kernel does not compile.
    pub fn on(
        gpu: &Device<Cuda>,
        comm: &Comm,
        shape: [usize; 3],
        layout: &LayoutSpec,
        ghosts: &Ghosts,
    ) -> Result<Self> {
        let padded = Arc::new(ghosts.bind(comm, shape, layout, size_of::<E>())?);
        let pattern: Arc<dyn Pattern> = padded.clone();
        Halo::of(comm, padded, &pattern, (ghosts, None), || CudaCopier::new(gpu.handle(), None))
    }

    /// Fills the ghost cells of these fields: as many as the plan has, each of [`volume`](Self::volume) elements.
    /// Collective.
    ///
    /// # Errors
    /// As `exchange` in main memory; where the GPU fails.
    pub fn exchange<F, G>(&mut self, mut fields: F) -> Result<()>
    where
        F: AsMut<[G]>,
        G: DeviceElementsMut<E>,
    {
        let (stream, fields) = (self.plan.copier.stream().twin(), fields.as_mut());
        self.take_spans(fields, &stream)?;
        // SAFETY: the fields were checked and are borrowed for the call; their types keep them until enqueued work is
        // complete, or their makers do. Copies load from the boxes of ranks and store to their ghost cells, or the other way.
        unsafe { self.plan.run()? };
        fields.iter_mut().for_each(|field| field.release_mut(&stream));
        Ok(())
    }

    /// Begins to fill the ghost cells, without a wait for other ranks; as `start` in main memory. Collective.
    ///
    /// # Errors
    /// As [`exchange`](Self::exchange).
    pub fn start<F, G>(&mut self, mut fields: F) -> Result<HaloInFlight<'_, E, F, G, Cuda>>
    where
        F: AsMut<[G]>,
        G: DeviceElementsMut<E>,
    {
        let stream = self.plan.copier.stream().twin();
        self.take_spans(fields.as_mut(), &stream)?;
        // SAFETY: the fields were checked and are borrowed until this returns; as in `exchange` for enqueued work.
        unsafe { self.plan.start()? };
        fields.as_mut().iter_mut().for_each(|field| field.release_mut(&stream));
        Ok(HaloInFlight::new(self, fields))
    }

    fn take_spans<G: DeviceElementsMut<E>>(&mut self, fields: &mut [G], stream: &Stream) -> Result<()> {
        self.take(fields.iter_mut().map(|field| {
            let span = field.span_mut(stream);
            (span.start, span.len)
        }))
    }

    /// A field, zero at first. Allocates.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_field(&self) -> Result<DeviceField<E>> {
        DeviceField::new(self.gpu(), self.volume())
    }
}

stream_methods!(Halo, |all| [&mut all.plan.copier], |one| one.plan.copier);

impl<E: Element, F: AsMut<[G]>, G: DeviceElementsMut<E>> HaloInFlight<'_, E, F, G, Cuda> {
    /// Fills the ghost cells when the neighbours' cells have come, and returns the fields. Collective.
    ///
    /// # Errors
    /// As [`Halo::exchange`].
    ///
    /// # Panics
    /// Never: the fields are there until this call.
    pub fn finish(mut self) -> Result<F> {
        let mut fields = self.fields.take().expect("the fields are there until they are returned");
        let stream = self.halo.plan.copier.stream().twin();
        self.halo.take_spans(fields.as_mut(), &stream)?;
        // SAFETY: the fields were checked and are borrowed for the call; as in `exchange` for enqueued work.
        unsafe { self.halo.plan.finish()? };
        fields.as_mut().iter_mut().for_each(|field| field.release_mut(&stream));
        Ok(fields)
    }
}

impl<E: DeviceSum> GhostSum<E, Cuda> {
    /// As [`GhostSum::new`], of fields in the memory of this GPU. Collective; allocates.
    ///
    /// # Errors
    /// As [`Halo::on`].
    pub fn on(
        gpu: &Device<Cuda>,
        comm: &Comm,
        shape: [usize; 3],
        layout: &LayoutSpec,
        ghosts: &Ghosts,
    ) -> Result<Self> {
        let padded = Arc::new(ghosts.bind(comm, shape, layout, size_of::<E>())?);
        let (pattern, planes) = reversed(&padded, comm.rank());
        let copier = || CudaCopier::adding(gpu.handle());
        Ok(GhostSum { halo: Halo::of(comm, padded, &pattern, (ghosts, Some(planes)), copier)? })
    }

    /// Adds the ghost cells of these fields to the cells of their owners. Collective.
    ///
    /// # Errors
    /// As [`Halo::exchange`].
    pub fn run<F, G>(&mut self, fields: F) -> Result<()>
    where
        F: AsMut<[G]>,
        G: DeviceElementsMut<E>,
    {
        self.halo.exchange(fields)
    }

    /// See [`Halo::make_field`].
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_field(&self) -> Result<DeviceField<E>> {
        self.halo.make_field()
    }
}

stream_methods!(GhostSum, |all| [&mut all.halo.plan.copier], |one| one.halo.plan.copier);
