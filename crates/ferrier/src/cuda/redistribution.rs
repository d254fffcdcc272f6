//! Redistributions and pencils of arrays in the memory of GPUs.

use super::streams::stream_methods;
use super::{Cuda, DeviceElements, DeviceElementsMut, DeviceField};
use crate::copies::cuda::CudaCopier;
use crate::exec::cuda::Stream;
use crate::pencils::no_such_axis;
use crate::{Choice, Comm, Device, Element, PencilFamily, Pencils, Problem, Redistribution, Result};

/// On a GPU calls enqueue their work and return; exchanges by messages wait inside the call.
///
/// ```no_run
/// use ferrier::{Device, LayoutSpec, Problem, Redistribution};
/// ferrier::ranks(2).run(|comm| {
///     let gpu = Device::cuda(0)?;
///     let problem = Problem::redistribute([64, 64, 64]).output(LayoutSpec::pencils(0));
///     let mut redistribution = Redistribution::<f32, _>::on(&gpu, &comm, &problem)?;
///     let slab = redistribution.make_input()?;
///     let mut pencils = redistribution.make_output()?;
///     redistribution.run(&slab, &mut pencils)?;
///     redistribution.synchronize()
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
impl<E: Element> Redistribution<E, Cuda> {
    /// As [`Redistribution::new`], of arrays in the memory of this GPU. Collective; allocates.
    ///
    /// # Errors
    /// As [`Redistribution::new`]; where the GPU has no memory or a kernel does not compile.
    pub fn on(gpu: &Device<Cuda>, comm: &Comm, problem: &Problem) -> Result<Self> {
        Self::on_with(gpu, comm, problem, &Choice::default())
    }

    /// The same with the exchange of a choice; other fields of it do not matter.
    ///
    /// # Errors
    /// As [`on`](Self::on) and [`Redistribution::with`].
    pub fn on_with(gpu: &Device<Cuda>, comm: &Comm, problem: &Problem, choice: &Choice) -> Result<Self> {
        Self::of(comm, problem, (choice, choice.exchange.as_deref()), |_| CudaCopier::new(gpu.handle(), None))
    }

    /// Copies `input` to `output`. Collective.
    ///
    /// # Errors
    /// As `run` in main memory; where the GPU fails.
    pub fn run(
        &mut self,
        input: &impl DeviceElements<E>,
        output: &mut impl DeviceElementsMut<E>,
    ) -> Result<()> {
        let stream = self.plan.copier.stream().twin();
        let (from, to) = (input.span(&stream), output.span_mut(&stream));
        self.take([from.start, to.start], [from.len, to.len])?;
        // SAFETY: lengths were checked; both are borrowed, one of them mutably, so that they do not overlap. Their types keep
        // them until enqueued work is complete, or their makers do.
        unsafe { self.plan.run()? };
        input.release(&stream);
        output.release_mut(&stream);
        Ok(())
    }

    /// Redistributes an array in place. It has room for the larger of input and output, which begin at its start.
    /// Collective.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_in_place(&mut self, array: &mut impl DeviceElementsMut<E>) -> Result<()> {
        let stream = self.plan.copier.stream().twin();
        let span = array.span_mut(&stream);
        self.take_one(span.start, span.len)?;
        // SAFETY: the length was checked. The array is copied to segments before anything is stored to it.
        unsafe {
            self.plan.start()?;
            self.plan.finish()?;
        }
        array.release_mut(&stream);
        Ok(())
    }

    /// An array for the input. Allocates.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_input(&self) -> Result<DeviceField<E>> {
        DeviceField::new(self.gpu(), self.len(0))
    }

    /// An array for the output. Allocates.
    ///
    /// # Errors
    /// Where the memory cannot be allocated.
    pub fn make_output(&self) -> Result<DeviceField<E>> {
        DeviceField::new(self.gpu(), self.len(1))
    }
}

stream_methods!(Redistribution, |all| [&mut all.plan.copier], |one| one.plan.copier);

/// Its four redistributions use one stream.
impl<E: Element> PencilFamily<E, Cuda> {
    /// As [`PencilFamily::new`], of arrays in the memory of this GPU. Collective; allocates.
    ///
    /// # Errors
    /// As [`PencilFamily::new`] and [`Redistribution::on`].
    pub fn on(gpu: &Device<Cuda>, comm: &Comm, pencils: &Pencils) -> Result<Self> {
        let stream = Stream::new(gpu.handle())?;
        Self::of(comm, pencils, |problem, choice| {
            let exchange = choice.exchange.as_deref();
            Redistribution::of(comm, problem, (choice, exchange), |_| {
                CudaCopier::new(gpu.handle(), Some(&stream))
            })
        })
    }

    /// From x-pencils to y-pencils. Collective.
    ///
    /// # Errors
    /// As [`Redistribution::run`].
    pub fn x_to_y(&mut self, x: &impl DeviceElements<E>, y: &mut impl DeviceElementsMut<E>) -> Result<()> {
        self.steps[0].run(x, y)
    }

    /// From y-pencils to z-pencils. Collective.
    ///
    /// # Errors
    /// As [`Redistribution::run`].
    pub fn y_to_z(&mut self, y: &impl DeviceElements<E>, z: &mut impl DeviceElementsMut<E>) -> Result<()> {
        self.steps[1].run(y, z)
    }

    /// From z-pencils to y-pencils. Collective.
    ///
    /// # Errors
    /// As [`Redistribution::run`].
    pub fn z_to_y(&mut self, z: &impl DeviceElements<E>, y: &mut impl DeviceElementsMut<E>) -> Result<()> {
        self.steps[2].run(z, y)
    }

    /// From y-pencils to x-pencils. Collective.
    ///
    /// # Errors
    /// As [`Redistribution::run`].
    pub fn y_to_x(&mut self, y: &impl DeviceElements<E>, x: &mut impl DeviceElementsMut<E>) -> Result<()> {
        self.steps[3].run(y, x)
    }

    /// An array for the pencils along `axis`. Allocates.
    ///
    /// # Errors
    /// [`Error::Problem`](crate::Error::Problem) for an axis above 2; where the memory cannot be allocated.
    pub fn make(&self, axis: usize) -> Result<DeviceField<E>> {
        match axis {
            0 => self.steps[0].make_input(),
            1 => self.steps[0].make_output(),
            2 => self.steps[1].make_output(),
            _ => Err(no_such_axis(axis)),
        }
    }
}

stream_methods!(PencilFamily, |all| all.steps.iter_mut().map(|step| &mut step.plan.copier), |one| one.steps
    [0]
.plan
.copier);
