//! Redistribution of arrays of elements of several sizes.

use std::ffi::{c_char, c_void};
use std::sync::Mutex;

#[cfg(feature = "cuda")]
use ferrier::cuda::Cuda;
use ferrier::{Box3, Cpu, Element};

use crate::array::Array;
use crate::comm::Comm;
use crate::elements::{Bytes, Made, Place, Streamed, for_size};
#[cfg(feature = "cuda")]
use crate::engine_cuda::device;
use crate::handle::{Handle, Object, locked};
use crate::layout::{ArrayEnd, IndexBox, side};
use crate::options::{Options, Settings};
use crate::pointer::{In, Out, Source, Target, apart};
use crate::problem::{Problem, problem_of};
use crate::status::{Failure, Outcome, Status, guard};
use crate::text::give;

/// Takes arrays from one layout to another, unchanged. Made once, run often.
pub struct Redistribution(Mutex<Box<dyn AnyRedistribution>>);

impl Object for Redistribution {
    const NAME: &'static str = "redistribution";
    const TAG: usize = 9;
}

/// A redistribution of elements of any size.
trait AnyRedistribution: Send {
    fn boxes(&self) -> [Box3; 2];
    fn bytes(&self, side: ArrayEnd) -> u64;
    fn run(&mut self, input: Source<'_>, output: Target<'_>) -> Outcome;
    fn run_in_place(&mut self, array: Target<'_>) -> Outcome;
    fn make(&self, side: ArrayEnd) -> Outcome<Array>;
    fn memory(&self) -> usize;
    fn notes(&self) -> &[String];
    fn stream(&mut self) -> &mut dyn Streamed;
}

struct Sized<const N: usize, B: Place> {
    inner: ferrier::Redistribution<Bytes<N>, B>,
    batch: usize,
}

/// What differs between memories.
trait Runs: Place {
    fn run<E: Element>(
        inner: &mut ferrier::Redistribution<E, Self>,
        input: (Source<'_>, usize),
        output: (Target<'_>, usize),
    ) -> Outcome;
    fn run_in_place<E: Element>(
        inner: &mut ferrier::Redistribution<E, Self>,
        array: (Target<'_>, usize),
    ) -> Outcome;
    fn make<E: Element>(inner: &ferrier::Redistribution<E, Self>, side: ArrayEnd) -> Outcome<Array>;
}

impl Runs for Cpu {
    fn run<E: Element>(
        inner: &mut ferrier::Redistribution<E>,
        (input, from): (Source<'_>, usize),
        (mut output, to): (Target<'_>, usize),
    ) -> Outcome {
        Ok(inner.run(input.scalars("input", from)?, output.scalars("output", to)?)?)
    }
    fn run_in_place<E: Element>(
        inner: &mut ferrier::Redistribution<E>,
        (mut array, needed): (Target<'_>, usize),
    ) -> Outcome {
        Ok(inner.run_in_place(array.scalars("array", needed)?)?)
    }
    fn make<E: Element>(inner: &ferrier::Redistribution<E>, side: ArrayEnd) -> Outcome<Array> {
        Ok(match side {
            ArrayEnd::Input => inner.make_input()?.into_array(),
            ArrayEnd::Output => inner.make_output()?.into_array(),
        })
    }
}

#[cfg(feature = "cuda")]
impl Runs for Cuda {
    fn run<E: Element>(
        inner: &mut ferrier::Redistribution<E, Cuda>,
        (input, from): (Source<'_>, usize),
        (output, to): (Target<'_>, usize),
    ) -> Outcome {
        let input = device("input", input.0.address(), input.1, from)?;
        Ok(inner.run(&input, &mut Cuda::given("output", output, to)?)?)
    }
    fn run_in_place<E: Element>(
        inner: &mut ferrier::Redistribution<E, Cuda>,
        (array, needed): (Target<'_>, usize),
    ) -> Outcome {
        Ok(inner.run_in_place(&mut Cuda::given("array", array, needed)?)?)
    }
    fn make<E: Element>(inner: &ferrier::Redistribution<E, Cuda>, side: ArrayEnd) -> Outcome<Array> {
        Ok(match side {
            ArrayEnd::Input => inner.make_input()?.into_array(),
            ArrayEnd::Output => inner.make_output()?.into_array(),
        })
    }
}

impl<const N: usize, B: Runs> Sized<N, B> {
    fn elements(&self, side: ArrayEnd) -> usize {
        [self.inner.input_box(), self.inner.output_box()][side as usize].volume() * self.batch
    }
}

impl<const N: usize, B: Runs> AnyRedistribution for Sized<N, B>
where
    ferrier::Redistribution<Bytes<N>, B>: Streamed + Send,
{
    fn boxes(&self) -> [Box3; 2] {
        [self.inner.input_box(), self.inner.output_box()]
    }
    fn bytes(&self, side: ArrayEnd) -> u64 {
        (self.elements(side) * N) as u64
    }
    fn run(&mut self, input: Source<'_>, output: Target<'_>) -> Outcome {
        let [from, to] = [ArrayEnd::Input, ArrayEnd::Output].map(|side| self.elements(side));
        B::run(&mut self.inner, (input, from), (output, to))
    }
    fn run_in_place(&mut self, array: Target<'_>) -> Outcome {
        let needed = self.elements(ArrayEnd::Input).max(self.elements(ArrayEnd::Output));
        B::run_in_place(&mut self.inner, (array, needed))
    }
    fn make(&self, side: ArrayEnd) -> Outcome<Array> {
        B::make(&self.inner, side)
    }
    fn memory(&self) -> usize {
        self.inner.memory()
    }
    fn notes(&self) -> &[String] {
        self.inner.notes()
    }
    fn stream(&mut self) -> &mut dyn Streamed {
        &mut self.inner
    }
}

fn make_redistribution<const N: usize>(
    comm: &ferrier::Comm,
    problem: &ferrier::Problem,
    settings: &Settings,
) -> Outcome<Box<dyn AnyRedistribution>> {
    let batch = problem.batch;
    match settings.gpu {
        None => {
            let inner = ferrier::Redistribution::<Bytes<N>>::with(comm, problem, settings.choice())?;
            Ok(Box::new(Sized { inner, batch }))
        }
        #[cfg(feature = "cuda")]
        Some(gpu) => {
            let gpu = ferrier::Device::cuda(gpu)?;
            let inner =
                ferrier::Redistribution::<Bytes<N>, _>::on_with(&gpu, comm, problem, settings.choice())?;
            Ok(Box::new(Sized { inner, batch }))
        }
        #[cfg(not(feature = "cuda"))]
        Some(_) => Err(crate::options::without_cuda()),
    }
}

/// From the input layout of a problem of ferrier_problem_redistribute to its output layout, for elements of
/// `element_bytes` bytes: 1, 2, 4, 8, 12, 16, 24, 32, 48 or 64. Of the options (or NULL) "exchange", "threads" and
/// the CUDA device matter. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_redistribution_create(
    comm: Handle<Comm>,
    problem: Handle<Problem>,
    element_bytes: u64,
    options: Handle<Options>,
    mut redistribution: Out<Handle<Redistribution>>,
) -> Status {
    guard(|| {
        let slot = redistribution.slot("redistribution")?;
        let (comm, problem) = (comm.get("comm")?.get(), problem_of(problem)?);
        let settings = Settings::of(options)?;
        let made = for_size!(element_bytes, make_redistribution(&comm, &problem, &settings))?;
        slot.set(Handle::new(Redistribution(Mutex::new(made))));
        Ok(())
    })
}

/// Destroys a redistribution. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_redistribution_free(redistribution: Handle<Redistribution>) -> Status {
    guard(|| redistribution.destroy("redistribution"))
}

/// The box that this rank has of the input or output.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_redistribution_box(
    redistribution: Handle<Redistribution>,
    side: i32,
    local: Out<IndexBox>,
) -> Status {
    guard(|| {
        let held = redistribution.get("redistribution")?;
        let part = locked(&held.0, "redistribution")?.boxes()[self::side(side)? as usize];
        local.set("local", part.into())
    })
}

/// Bytes of the input or output on this rank, all arrays of a batch together.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_redistribution_bytes(
    redistribution: Handle<Redistribution>,
    side: i32,
    bytes: Out<u64>,
) -> Status {
    guard(|| {
        let held = redistribution.get("redistribution")?;
        let length = locked(&held.0, "redistribution")?.bytes(self::side(side)?);
        bytes.set("bytes", length)
    })
}

/// An array for the input or output, in memory that the ranks of a node share, or of the GPU. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_redistribution_make(
    redistribution: Handle<Redistribution>,
    side: i32,
    mut array: Out<Handle<Array>>,
) -> Status {
    guard(|| {
        let slot = array.slot("array")?;
        let held = redistribution.get("redistribution")?;
        let made = locked(&held.0, "redistribution")?.make(self::side(side)?)?;
        slot.set(Handle::new(made));
        Ok(())
    })
}

/// Copies the input to the output. Collective; allocates nothing.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_redistribution_run(
    redistribution: Handle<Redistribution>,
    input: In<c_void>,
    input_bytes: u64,
    mut output: Out<c_void>,
    output_bytes: u64,
) -> Status {
    guard(|| {
        apart((&input, input_bytes), (&output, output_bytes))?;
        let held = redistribution.get("redistribution")?;
        let mut held = locked(&held.0, "redistribution")?;
        held.run(Source(&input, input_bytes), Target(&mut output, output_bytes))
    })
}

/// The same in place: the array has room for the longer of input and output, which both begin at its start.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_redistribution_run_in_place(
    redistribution: Handle<Redistribution>,
    mut array: Out<c_void>,
    bytes: u64,
) -> Status {
    guard(|| {
        let held = redistribution.get("redistribution")?;
        locked(&held.0, "redistribution")?.run_in_place(Target(&mut array, bytes))
    })
}

/// The memory that the redistribution takes on this rank, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_redistribution_memory_bytes(
    redistribution: Handle<Redistribution>,
    bytes: Out<u64>,
) -> Status {
    guard(|| {
        let held = redistribution.get("redistribution")?;
        let memory = locked(&held.0, "redistribution")?.memory();
        bytes.set("bytes", memory as u64)
    })
}

/// The substitutions that Ferrier made for this redistribution, one per line. Free the text with ferrier_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_redistribution_notes(
    redistribution: Handle<Redistribution>,
    text: Out<*mut c_char>,
) -> Status {
    guard(|| {
        let held = redistribution.get("redistribution")?;
        let notes = locked(&held.0, "redistribution")?.notes().join("\n");
        give(text, "text", notes)
    })
}

/// Makes a redistribution on a GPU enqueue its work on this CUDA stream; as ferrier_plan_set_stream.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_redistribution_set_stream(
    redistribution: Handle<Redistribution>,
    stream: Out<c_void>,
) -> Status {
    guard(|| {
        let held = redistribution.get("redistribution")?;
        // SAFETY: a stream of its GPU that lives as long, as the header asks for.
        unsafe { locked(&held.0, "redistribution")?.stream().set_stream(stream.address()) }
    })
}

/// Returns when all work that the redistribution enqueued on its GPU is complete; errors of it are returned here.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_redistribution_synchronize(redistribution: Handle<Redistribution>) -> Status {
    guard(|| {
        let held = redistribution.get("redistribution")?;
        locked(&held.0, "redistribution")?.stream().synchronize()
    })
}
