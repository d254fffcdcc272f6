//! Plans of both precisions, in main memory and on GPUs, behind one interface; arrays are addresses.

use std::ffi::c_void;

use ferrier::{Choice, Comm, Error, Plan, Planner, Problem, Real, Scalars};

use crate::geometry::Outcome;

/// A call of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub backward: bool,
    pub input: *const c_void,
    pub output: *mut c_void,
    /// A factor.
    pub scale: f64,
    /// The CUDA stream; ignored in main memory.
    pub stream: *mut c_void,
}

/// A plan.
pub trait Engine: Send {
    /// What Ferrier did in another way than asked for.
    fn notes(&self) -> &[String];

    /// Runs the plan. Collective.
    ///
    /// # Safety
    /// Input and output have as many elements as the plan's boxes, in the plan's memory; nothing else accesses the
    /// output, or writes to the input, during the call. The stream is one of the plan's GPU.
    unsafe fn run(&mut self, request: &Request) -> Outcome<()>;
}

/// Makes a plan; collective. A choice that does not fit the problem is left out, and a note says so.
pub fn make<T: Real>(
    comm: &Comm,
    problem: &Problem,
    choice: &Choice,
    gpu: Option<usize>,
) -> Outcome<(Box<dyn Engine>, Option<String>)> {
    let with = |choice: Choice| -> ferrier::Result<Box<dyn Engine>> {
        let planner = Planner::new(problem).choice(choice);
        match gpu {
            None => Ok(Box::new(planner.draft::<T>(comm)?.build()?)),
            #[cfg(feature = "cuda")]
            Some(gpu) => on_gpu::make::<T>(planner, comm, gpu),
            #[cfg(not(feature = "cuda"))]
            Some(_) => {
                Err(Error::Device { message: "this library was built without CUDA".into(), source: None })
            }
        }
    };
    match with(choice.clone()) {
        Ok(plan) => Ok((plan, None)),
        Err(Error::Choice(reason)) if *choice != Choice::new() => {
            let plan = with(Choice::new()).map_err(|error| error.to_string())?;
            Ok((plan, Some(format!("options that do not fit are left out: {reason}"))))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Scalars of the source and the target of a call, and whether it can be done in place: both sides have the same
/// numbers, so that elements lie in both as in arrays of their own.
struct Extent {
    source: usize,
    target: usize,
    alike: bool,
    in_place: usize,
}

impl Extent {
    fn of<T: Real, B: ferrier::Backend>(plan: &Plan<T, B>, backward: bool) -> Extent {
        let (real, real_output) = (plan.recipe().is_real(), plan.recipe().has_real_output());
        let width = |real: bool| if real { 1 } else { 2 };
        let [input, output] = [plan.input_len() * width(real), plan.output_len() * width(real_output)];
        let [source, target] = if backward { [output, input] } else { [input, output] };
        Extent { source, target, alike: real == real_output, in_place: plan.in_place_scalars() }
    }
}

/// # Safety
/// So many scalars are there, which nothing writes to while the slice is used. An empty box may have any address.
unsafe fn slice<'a, T>(start: *const c_void, scalars: usize) -> &'a [T] {
    // SAFETY: the contract of this function.
    if scalars == 0 { &[] } else { unsafe { std::slice::from_raw_parts(start.cast(), scalars) } }
}

/// # Safety
/// So many scalars are there, which nothing else accesses while the slice is used.
unsafe fn slice_mut<'a, T>(start: *mut c_void, scalars: usize) -> &'a mut [T] {
    // SAFETY: the contract of this function.
    if scalars == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(start.cast(), scalars) } }
}

/// An address that elements of `T` can have.
fn check<T>(name: &str, start: *const c_void, scalars: usize) -> Outcome<()> {
    if scalars > 0 && (start.is_null() || !start.addr().is_multiple_of(align_of::<T>())) {
        return Err(format!(
            "the {name} must be at a multiple of {} bytes, got {:#x}",
            align_of::<T>(),
            start.addr()
        ));
    }
    Ok(())
}

fn overlap<T>(input: *const c_void, source: usize, output: *mut c_void, target: usize) -> bool {
    let [from, to] = [input.addr(), output.addr()];
    from < to + target * size_of::<T>() && to < from + source * size_of::<T>()
}

impl<T: Real> Engine for Plan<T> {
    fn notes(&self) -> &[String] {
        self.notes()
    }

    unsafe fn run(&mut self, request: &Request) -> Outcome<()> {
        let Request { backward, input, output, scale, .. } = *request;
        let extent = Extent::of(self, backward);
        check::<T>("input", input, extent.source)?;
        check::<T>("output", output, extent.target)?;
        let call = self.call().scale(scale);
        let done = if extent.alike && std::ptr::eq(input, output) {
            // SAFETY: the longer of the two boxes is there, by the contract of this function.
            let mut array = Scalars(unsafe { slice_mut::<T>(output, extent.in_place) });
            match backward {
                false => call.forward_in_place(&mut array),
                true => call.backward_in_place(&mut array),
            }
        } else {
            // SAFETY: the contract of this function; read before the output is written.
            let source = unsafe { slice::<T>(input, extent.source) };
            let copied;
            let source = if overlap::<T>(input, extent.source, output, extent.target) {
                copied = source.to_vec();
                &copied[..]
            } else {
                source
            };
            // SAFETY: the contract of this function; the source is apart, or a copy.
            let mut target = Scalars(unsafe { slice_mut::<T>(output, extent.target) });
            match backward {
                false => call.forward(&Scalars(source), &mut target),
                true => call.backward(&Scalars(source), &mut target),
            }
        };
        done.map_err(|error| error.to_string())
    }
}

#[cfg(feature = "cuda")]
mod on_gpu {
    use ferrier::cuda::{Plan, RawArray};

    use super::*;

    struct OnGpu<T: Real> {
        plan: Plan<T>,
        /// The stream of the last call.
        stream: Option<*mut c_void>,
    }

    // SAFETY: the stream is only compared and handed to the driver, which any thread may do.
    unsafe impl<T: Real> Send for OnGpu<T> where Plan<T>: Send {}

    pub fn make<T: Real>(planner: Planner, comm: &Comm, gpu: usize) -> ferrier::Result<Box<dyn Engine>> {
        let plan = planner.device(&ferrier::Device::cuda(gpu)?).draft::<T>(comm)?.build()?;
        Ok(Box::new(OnGpu { plan, stream: None }))
    }

    impl<T: Real> Engine for OnGpu<T> {
        fn notes(&self) -> &[String] {
            self.plan.notes()
        }

        unsafe fn run(&mut self, request: &Request) -> Outcome<()> {
            let Request { backward, input, output, scale, stream } = *request;
            let extent = Extent::of(&self.plan, backward);
            check::<T>("input", input, extent.source)?;
            check::<T>("output", output, extent.target)?;
            if self.stream != Some(stream) {
                // SAFETY: a stream of this GPU that lives as long as the caller's object, by the contract.
                unsafe { self.plan.set_raw_stream(stream) }.map_err(|error| error.to_string())?;
                self.stream = Some(stream);
            }
            let call = self.plan.call().scale(scale);
            let array = |start: *const c_void, scalars| {
                // SAFETY: so many scalars in the memory of this GPU, by the contract of this function.
                unsafe { RawArray::<T>::new(start.addr() as u64, scalars) }
            };
            let done = if extent.alike && std::ptr::eq(input, output) {
                let mut array = array(output, extent.in_place);
                match backward {
                    false => call.forward_in_place(&mut array),
                    true => call.backward_in_place(&mut array),
                }
            } else if overlap::<T>(input, extent.source, output, extent.target) {
                return Err(
                    "the output overlaps the input: on a GPU only complex transforms run in place".into()
                );
            } else {
                let (input, mut output) = (array(input, extent.source), array(output, extent.target));
                match backward {
                    false => call.forward(&input, &mut output),
                    true => call.backward(&input, &mut output),
                }
            };
            done.map_err(|error| error.to_string())
        }
    }
}
