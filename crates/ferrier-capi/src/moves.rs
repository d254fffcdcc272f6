//! Redistribution of arrays and exchange of ghost cells, of elements of several sizes.

use std::ffi::c_void;
use std::sync::Mutex;

use ferrier::{Box3, Choice, Field, Ghosts};

use crate::array::Array;
use crate::comm::Comm;
use crate::handle::{Handle, Object, locked};
use crate::layout::{ArrayEnd, IndexBox, side};
use crate::options::{Options, Settings};
use crate::pointer::{In, Out, Plain, Source, Target, apart};
use crate::problem::Problem;
use crate::status::{Failure, Outcome, Status, guard};

/// Takes arrays from one layout to another, unchanged. Made once, run often.
pub struct Redistribution(Mutex<Box<dyn AnyRedistribution>>);

impl Object for Redistribution {
    const NAME: &'static str = "redistribution";
    const TAG: usize = 9;
}

/// Fills the ghost cells around the boxes of a layout with the cells of their owners. Made once, run often.
pub struct Halo(Mutex<Box<dyn Exchanger>>);

impl Object for Halo {
    const NAME: &'static str = "halo";
    const TAG: usize = 10;
}

/// Elements of `N` bytes.
type Bytes<const N: usize> = [u8; N];

/// Calls a function for elements of so many bytes.
macro_rules! for_size {
    ($bytes:expr, $function:ident($($argument:expr),*)) => {
        match $bytes {
            1 => $function::<1>($($argument),*),
            2 => $function::<2>($($argument),*),
            4 => $function::<4>($($argument),*),
            8 => $function::<8>($($argument),*),
            12 => $function::<12>($($argument),*),
            16 => $function::<16>($($argument),*),
            24 => $function::<24>($($argument),*),
            32 => $function::<32>($($argument),*),
            48 => $function::<48>($($argument),*),
            64 => $function::<64>($($argument),*),
            other => Err(Failure::argument(
                "element_bytes",
                format_args!("must be 1, 2, 4, 8, 12, 16, 24, 32, 48 or 64, got {other}"),
            )),
        }
    };
}

/// A redistribution of elements of any size.
trait AnyRedistribution: Send {
    fn boxes(&self) -> [Box3; 2];
    fn bytes(&self, side: ArrayEnd) -> u64;
    fn run(&mut self, input: Source<'_>, output: Target<'_>) -> Outcome;
    fn run_in_place(&mut self, array: Target<'_>) -> Outcome;
    fn make(&self, side: ArrayEnd) -> Outcome<Array>;
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
}

fn array_of<const N: usize>(mut field: Field<Bytes<N>>) -> Array {
    let (start, bytes) = (field.as_mut_ptr().cast(), size_of_val(&*field));
    Array::new(start, bytes as u64, field)
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
        let (comm, problem) = (comm.get("comm")?.get(), problem.get("problem")?.get()?.clone());
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

/// Ghost cells around a box. Set it to FERRIER_GHOSTS_DEFAULT first.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct GhostSpec {
    /// sizeof(ferrier_ghosts) of the program.
    pub size: u64,
    /// Ghost cells below the box on each axis.
    pub low: [u64; 3],
    /// Ghost cells above the box on each axis.
    pub high: [u64; 3],
    /// 1 for axes that are periodic.
    pub periodic: [i32; 3],
    /// 1: only ghost cells at faces are filled; those of edges and corners are left alone.
    pub faces_only: i32,
    /// The number of arrays that are exchanged together, with one message per neighbour.
    pub fields: u64,
}

// SAFETY: numbers without padding.
unsafe impl Plain for GhostSpec {}

const NO_GHOSTS: GhostSpec = GhostSpec {
    size: size_of::<GhostSpec>() as u64,
    low: [0; 3],
    high: [0; 3],
    periodic: [0; 3],
    faces_only: 0,
    fields: 1,
};

/// An exchange of ghost cells of elements of any size.
trait Exchanger: Send {
    fn part(&self) -> Box3;
    fn shape(&self) -> [usize; 3];
    fn strides(&self) -> [usize; 3];
    fn bytes(&self) -> u64;
    fn exchange(&mut self, fields: &mut [Out<c_void>], bytes: u64) -> Outcome;
    fn make(&self) -> Outcome<Array>;
}

impl<const N: usize> Exchanger for ferrier::Halo<Bytes<N>> {
    fn part(&self) -> Box3 {
        self.local_box()
    }
    fn shape(&self) -> [usize; 3] {
        self.shape()
    }
    fn strides(&self) -> [usize; 3] {
        self.strides()
    }
    fn bytes(&self) -> u64 {
        (self.volume() * N) as u64
    }
    fn exchange(&mut self, fields: &mut [Out<c_void>], bytes: u64) -> Outcome {
        let volume = self.volume();
        let mut targets: Vec<Target<'_>> = fields.iter_mut().map(|field| Target(field, bytes)).collect();
        let arrays = targets.iter_mut().map(|target| target.scalars::<Bytes<N>>("field", volume));
        let arrays: Vec<&mut [Bytes<N>]> = arrays.collect::<Outcome<_>>()?;
        Ok(ferrier::Halo::exchange(self, arrays)?)
    }
    fn make(&self) -> Outcome<Array> {
        Ok(array_of(self.make_field()?))
    }
}

fn make_halo<const N: usize>(
    comm: &ferrier::Comm,
    problem: &ferrier::Problem,
    side: ArrayEnd,
    ghosts: &Ghosts,
) -> Outcome<Box<dyn Exchanger>> {
    let (shape, layout) = match side {
        ArrayEnd::Input => (problem.shape, &problem.input),
        ArrayEnd::Output => (problem.spectrum_shape(), &problem.output),
    };
    Ok(Box::new(ferrier::Halo::<Bytes<N>>::new(comm, shape, layout, ghosts)?))
}

/// Ghost cells around the boxes of the input or output (a ferrier_side) of a problem, for elements of `element_bytes`
/// bytes: 1, 2, 4, 8, 12, 16, 24, 32, 48 or 64. The array of a rank holds its box and the ghost cells around it, in the
/// order of the layout. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_create(
    comm: Handle<Comm>,
    problem: Handle<Problem>,
    side: i32,
    element_bytes: u64,
    ghosts: In<GhostSpec>,
    mut halo: Out<Handle<Halo>>,
) -> Status {
    guard(|| {
        let slot = halo.slot("halo")?;
        let (comm, problem) = (comm.get("comm")?.get(), problem.get("problem")?.get()?.clone());
        let (side, spec) = (self::side(side)?, ghosts.sized("ghosts", NO_GHOSTS)?);
        let widths = std::array::from_fn(|axis| [spec.low[axis] as usize, spec.high[axis] as usize]);
        let mut ghosts = Ghosts::widths(widths)
            .periodic(spec.periodic.map(|periodic| periodic != 0))
            .fields(spec.fields as usize);
        if spec.faces_only != 0 {
            ghosts = ghosts.faces_only();
        }
        let made = for_size!(element_bytes, make_halo(&comm, &problem, side, &ghosts))?;
        slot.set(Handle::new(Halo(Mutex::new(made))));
        Ok(())
    })
}

/// Destroys a halo. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_free(halo: Handle<Halo>) -> Status {
    guard(|| halo.destroy("halo"))
}

/// The box of this rank, without ghost cells.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_box(halo: Handle<Halo>, local: Out<IndexBox>) -> Status {
    guard(|| {
        let held = halo.get("halo")?;
        let part = locked(&held.0, "halo")?.part();
        local.set("local", part.into())
    })
}

/// The shape[3] of the arrays of this rank, ghost cells included. Cell {i, j, k} of the whole array lies at element
/// (i - lo[0] + low[0]) strides[0] + (j - lo[1] + low[1]) strides[1] + (k - lo[2] + low[2]) strides[2].
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_shape(halo: Handle<Halo>, shape: Out<u64>) -> Status {
    guard(|| {
        let held = halo.get("halo")?;
        let values = locked(&held.0, "halo")?.shape();
        shape.set_three("shape", values)
    })
}

/// The strides[3] of the arrays of this rank, in elements.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_strides(halo: Handle<Halo>, strides: Out<u64>) -> Status {
    guard(|| {
        let held = halo.get("halo")?;
        let values = locked(&held.0, "halo")?.strides();
        strides.set_three("strides", values)
    })
}

/// Bytes of an array of this rank, ghost cells included.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_bytes(halo: Handle<Halo>, bytes: Out<u64>) -> Status {
    guard(|| {
        let held = halo.get("halo")?;
        let length = locked(&held.0, "halo")?.bytes();
        bytes.set("bytes", length)
    })
}

/// An array with ghost cells, zero at first, in memory that the ranks of a node share: the fastest. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_make(halo: Handle<Halo>, mut array: Out<Handle<Array>>) -> Status {
    guard(|| {
        let slot = array.slot("array")?;
        let held = halo.get("halo")?;
        let made = locked(&held.0, "halo")?.make()?;
        slot.set(Handle::new(made));
        Ok(())
    })
}

/// Fills the ghost cells of `count` arrays, as many as the ghosts have fields, each of `bytes` bytes. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_exchange(
    halo: Handle<Halo>,
    fields: In<*mut c_void>,
    count: u64,
    bytes: u64,
) -> Status {
    guard(|| {
        let mut fields = fields.places("fields", count, bytes)?;
        let held = halo.get("halo")?;
        locked(&held.0, "halo")?.exchange(&mut fields, bytes)
    })
}
