//! Sums of ghost cells.

use std::ffi::{c_char, c_void};
use std::ops::AddAssign;
use std::sync::{Mutex, MutexGuard};

use ferrier::{Complex, Cpu, Element, Ghosts};

use crate::array::Array;
use crate::comm::Comm;
use crate::elements::{Mesh, Place, Streamed};
use crate::halo::{GhostSpec, ghosts};
use crate::handle::{Handle, Object, locked};
use crate::layout::{IndexBox, side};
use crate::padded::Padded;
use crate::pointer::{In, Out, one_of};
use crate::problem::{Problem, problem_of};
use crate::status::{Outcome, Status, guard};
use crate::text::give;

/// Adds what is in the ghost cells to the cells of their owners: the reverse of a halo, for particles on a mesh. A cell gets
/// its terms in order of rank. Made once, run often.
pub struct GhostSum(Mutex<Box<dyn Adder>>);

impl Object for GhostSum {
    const NAME: &'static str = "ghost sum";
    const TAG: usize = 11;
}

impl GhostSum {
    fn lock(&self) -> Outcome<MutexGuard<'_, Box<dyn Adder>>> {
        locked(&self.0, "sum")
    }
}

/// The elements of a ghost sum.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum ElementKind {
    /// float.
    F32 = 0,
    /// double.
    F64 = 1,
    /// float complex.
    C32 = 2,
    /// double complex.
    C64 = 3,
    /// int32_t; sums wrap around.
    I32 = 4,
    /// int64_t; sums wrap around.
    I64 = 5,
}

/// A sum of elements of any type.
trait Adder: Send {
    fn padded(&self) -> &dyn Padded;
    fn run(&mut self, fields: &mut [Out<c_void>], bytes: u64) -> Outcome;
    fn stream(&mut self) -> &mut dyn Streamed;
}

/// For one memory, whose methods have the names of the other's.
macro_rules! adder {
    ($place:ty, $($bound:tt)*) => {
        impl<E: $($bound)*> Adder for ferrier::GhostSum<E, $place> {
            fn padded(&self) -> &dyn Padded {
                self
            }
            fn run(&mut self, fields: &mut [Out<c_void>], bytes: u64) -> Outcome {
                let mut fields = <$place>::fields::<E>(fields, bytes, self.volume())?;
                Ok(ferrier::GhostSum::<E, $place>::run(self, &mut fields)?)
            }
            fn stream(&mut self) -> &mut dyn Streamed {
                self
            }
        }
    };
}
adder!(Cpu, Element + AddAssign);
#[cfg(feature = "cuda")]
adder!(ferrier::cuda::Cuda, ferrier::cuda::DeviceSum);

/// An integer whose sums wrap around.
macro_rules! wrapping {
    ($name:ident, $number:ty) => {
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        struct $name($number);

        // SAFETY: a number.
        unsafe impl Element for $name {}

        impl AddAssign for $name {
            fn add_assign(&mut self, other: $name) {
                self.0 = self.0.wrapping_add(other.0);
            }
        }
    };
}
wrapping!(Wrapping32, i32);
wrapping!(Wrapping64, i64);

fn make<E: Element + AddAssign>(mesh: &Mesh<'_>, ghosts: &Ghosts) -> Outcome<Box<dyn Adder>> {
    Ok(Box::new(ferrier::GhostSum::<E>::new(mesh.comm, mesh.shape, mesh.layout, ghosts)?))
}

type Maker = fn(&Mesh<'_>, &Ghosts) -> Outcome<Box<dyn Adder>>;

const MAKERS: [(i32, Maker); 6] = [
    (ElementKind::F32 as i32, make::<f32>),
    (ElementKind::F64 as i32, make::<f64>),
    (ElementKind::C32 as i32, make::<Complex<f32>>),
    (ElementKind::C64 as i32, make::<Complex<f64>>),
    (ElementKind::I32 as i32, make::<Wrapping32>),
    (ElementKind::I64 as i32, make::<Wrapping64>),
];

#[cfg(feature = "cuda")]
mod on_gpu {
    use ferrier::Device;
    use ferrier::cuda::{Cuda, DeviceSum};

    use super::*;

    type Maker = fn(&Device<Cuda>, &Mesh<'_>, &Ghosts) -> Outcome<Box<dyn Adder>>;

    fn make<E: DeviceSum>(gpu: &Device<Cuda>, mesh: &Mesh<'_>, ghosts: &Ghosts) -> Outcome<Box<dyn Adder>> {
        Ok(Box::new(ferrier::GhostSum::<E, _>::on(gpu, mesh.comm, mesh.shape, mesh.layout, ghosts)?))
    }

    /// Sums of integers wrap around: those without sign have the same bits.
    pub const MAKERS: [(i32, Maker); 6] = [
        (ElementKind::F32 as i32, make::<f32>),
        (ElementKind::F64 as i32, make::<f64>),
        (ElementKind::C32 as i32, make::<Complex<f32>>),
        (ElementKind::C64 as i32, make::<Complex<f64>>),
        (ElementKind::I32 as i32, make::<u32>),
        (ElementKind::I64 as i32, make::<u64>),
    ];
}

fn make_on(
    element: i32,
    mesh: &Mesh<'_>,
    (ghosts, gpu): &(Ghosts, Option<usize>),
) -> Outcome<Box<dyn Adder>> {
    match *gpu {
        None => one_of("element", element, &MAKERS)?(mesh, ghosts),
        #[cfg(feature = "cuda")]
        Some(gpu) => one_of("element", element, &on_gpu::MAKERS)?(&ferrier::Device::cuda(gpu)?, mesh, ghosts),
        #[cfg(not(feature = "cuda"))]
        Some(_) => Err(crate::options::without_cuda()),
    }
}

/// The sum of the ghost cells around the boxes of the input or output (a ferrier_side) of a problem, for elements of a
/// type (a ferrier_element). Arrays are those of a halo with the same arguments. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_ghost_sum_create(
    comm: Handle<Comm>,
    problem: Handle<Problem>,
    side: i32,
    element: i32,
    ghosts: In<GhostSpec>,
    mut sum: Out<Handle<GhostSum>>,
) -> Status {
    guard(|| {
        let slot = sum.slot("sum")?;
        let (comm, problem) = (comm.get("comm")?.get(), problem_of(problem)?);
        let mesh = Mesh::new(&comm, &problem, self::side(side)?)?;
        let made = make_on(element, &mesh, &self::ghosts(&ghosts)?)?;
        slot.set(Handle::new(GhostSum(Mutex::new(made))));
        Ok(())
    })
}

/// Destroys a ghost sum. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_ghost_sum_free(sum: Handle<GhostSum>) -> Status {
    guard(|| sum.destroy("sum"))
}

/// The box of this rank, without ghost cells.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_ghost_sum_box(sum: Handle<GhostSum>, local: Out<IndexBox>) -> Status {
    guard(|| local.set("local", sum.get("sum")?.lock()?.padded().part().into()))
}

/// The shape[3] of the arrays of this rank, ghost cells included; see ferrier_halo_shape.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_ghost_sum_shape(sum: Handle<GhostSum>, shape: Out<u64>) -> Status {
    guard(|| shape.set_three("shape", sum.get("sum")?.lock()?.padded().shape()))
}

/// The strides[3] of the arrays of this rank, in elements.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_ghost_sum_strides(sum: Handle<GhostSum>, strides: Out<u64>) -> Status {
    guard(|| strides.set_three("strides", sum.get("sum")?.lock()?.padded().strides()))
}

/// Bytes of an array of this rank, ghost cells included.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_ghost_sum_bytes(sum: Handle<GhostSum>, bytes: Out<u64>) -> Status {
    guard(|| bytes.set("bytes", sum.get("sum")?.lock()?.padded().bytes()))
}

/// The memory that the sum takes on this rank, in bytes; arrays are not counted.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_ghost_sum_memory_bytes(sum: Handle<GhostSum>, bytes: Out<u64>) -> Status {
    guard(|| bytes.set("bytes", sum.get("sum")?.lock()?.padded().memory() as u64))
}

/// The substitutions that Ferrier made for this sum, one per line. Free the text with ferrier_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_ghost_sum_notes(sum: Handle<GhostSum>, text: Out<*mut c_char>) -> Status {
    guard(|| give(text, "text", sum.get("sum")?.lock()?.padded().notes().join("\n")))
}

/// An array with ghost cells, zero at first, in memory that the ranks of a node share: the fastest. On a GPU: memory of the
/// GPU. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_ghost_sum_make(sum: Handle<GhostSum>, mut array: Out<Handle<Array>>) -> Status {
    guard(|| {
        let slot = array.slot("array")?;
        let made = sum.get("sum")?.lock()?.padded().make()?;
        slot.set(Handle::new(made));
        Ok(())
    })
}

/// Adds the ghost cells of `count` arrays, as many as the ghosts have fields, each of `bytes` bytes, to the cells of
/// their owners. Ghost cells are not changed. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_ghost_sum_run(
    sum: Handle<GhostSum>,
    fields: In<*mut c_void>,
    count: u64,
    bytes: u64,
) -> Status {
    guard(|| {
        let mut fields = fields.places("fields", count, bytes)?;
        sum.get("sum")?.lock()?.run(&mut fields, bytes)
    })
}

/// Makes a sum on a GPU enqueue its work on this CUDA stream; as ferrier_plan_set_stream.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_ghost_sum_set_stream(sum: Handle<GhostSum>, stream: Out<c_void>) -> Status {
    guard(|| {
        let sum = sum.get("sum")?;
        // SAFETY: a stream of the sum's GPU that lives as long, as the header asks for.
        unsafe { sum.lock()?.stream().set_stream(stream.address()) }
    })
}

/// Returns when all work that the sum enqueued on its GPU is complete; errors of it are returned here.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_ghost_sum_synchronize(sum: Handle<GhostSum>) -> Status {
    guard(|| sum.get("sum")?.lock()?.stream().synchronize())
}
