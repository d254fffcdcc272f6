//! Redistribution of arrays of elements of several sizes.

use std::ffi::{c_char, c_void};
use std::sync::Mutex;

use ferrier::{Box3, Choice};

use crate::array::Array;
use crate::comm::Comm;
use crate::elements::{Bytes, array_of, for_size};
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
}

struct Sized<const N: usize> {
    inner: ferrier::Redistribution<Bytes<N>>,
    batch: usize,
}

impl<const N: usize> Sized<N> {
    fn elements(&self, side: ArrayEnd) -> usize {
        self.boxes()[side as usize].volume() * self.batch
    }
}

impl<const N: usize> AnyRedistribution for Sized<N> {
    fn boxes(&self) -> [Box3; 2] {
        [self.inner.input_box(), self.inner.output_box()]
    }
    fn bytes(&self, side: ArrayEnd) -> u64 {
        (self.elements(side) * N) as u64
    }
    fn run(&mut self, input: Source<'_>, mut output: Target<'_>) -> Outcome {
        let [from, to] = [ArrayEnd::Input, ArrayEnd::Output].map(|side| self.elements(side));
        let (input, output) = (input.scalars::<Bytes<N>>("input", from)?, output.scalars("output", to)?);
        Ok(self.inner.run(input, output)?)
    }
    fn run_in_place(&mut self, mut array: Target<'_>) -> Outcome {
        let needed = self.elements(ArrayEnd::Input).max(self.elements(ArrayEnd::Output));
        Ok(self.inner.run_in_place(array.scalars("array", needed)?)?)
    }
    fn make(&self, side: ArrayEnd) -> Outcome<Array> {
        Ok(array_of(match side {
            ArrayEnd::Input => self.inner.make_input()?,
            ArrayEnd::Output => self.inner.make_output()?,
        }))
    }
    fn memory(&self) -> usize {
        self.inner.memory()
    }
    fn notes(&self) -> &[String] {
        self.inner.notes()
    }
}

fn make_redistribution<const N: usize>(
    comm: &ferrier::Comm,
    problem: &ferrier::Problem,
    choice: &Choice,
) -> Outcome<Box<dyn AnyRedistribution>> {
    let inner = ferrier::Redistribution::<Bytes<N>>::with(comm, problem, choice)?;
    Ok(Box::new(Sized { inner, batch: problem.batch }))
}

/// From the input layout of a problem of ferrier_problem_redistribute to its output layout, for elements of
/// `element_bytes` bytes: 1, 2, 4, 8, 12, 16, 24, 32, 48 or 64. Of the options (or NULL) "exchange" and "threads" matter.
/// Collective.
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
        let made = for_size!(element_bytes, make_redistribution(&comm, &problem, settings.choice()))?;
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

/// An array for the input or output, in memory that the ranks of a node share. Collective.
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
