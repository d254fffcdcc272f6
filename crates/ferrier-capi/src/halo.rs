//! Exchange of ghost cells, of elements of several sizes.

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard};

use ferrier::{Cpu, Ghosts};

use crate::array::Array;
use crate::comm::Comm;
use crate::elements::{Bytes, Mesh, Place, Streamed, for_size};
use crate::handle::{Handle, Object, locked};
use crate::layout::{IndexBox, side};
use crate::options::gpu;
use crate::padded::Padded;
use crate::pointer::{In, Out, Plain};
use crate::problem::{Problem, problem_of};
use crate::status::{Failure, Outcome, Status, guard};
use crate::text::give;

/// Fills the ghost cells around the boxes of a layout with the cells of their owners. Made once, run often.
pub struct Halo(Mutex<Box<dyn Exchanger>>);

impl Object for Halo {
    const NAME: &'static str = "halo";
    const TAG: usize = 10;
}

impl Halo {
    fn lock(&self) -> Outcome<MutexGuard<'_, Box<dyn Exchanger>>> {
        locked(&self.0, "halo")
    }
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
    /// The name of the exchange between nodes, or NULL.
    pub exchange: *const c_char,
    /// The number of the CUDA device whose memory the arrays are in; -1: main memory.
    pub device: i64,
}

// SAFETY: numbers and an address (nothing is read through it before it is checked) without padding.
unsafe impl Plain for GhostSpec {}

const NO_GHOSTS: GhostSpec = GhostSpec {
    size: size_of::<GhostSpec>() as u64,
    low: [0; 3],
    high: [0; 3],
    periodic: [0; 3],
    faces_only: 0,
    fields: 1,
    exchange: std::ptr::null(),
    device: -1,
};

/// What a structure of the caller's says, and the number of the GPU if there is one.
pub(crate) fn ghosts(spec: &In<GhostSpec>) -> Outcome<(Ghosts, Option<usize>)> {
    let spec = spec.sized("ghosts", NO_GHOSTS)?;
    let widths = std::array::from_fn(|axis| [spec.low[axis] as usize, spec.high[axis] as usize]);
    let mut ghosts = Ghosts::widths(widths)
        .periodic(spec.periodic.map(|periodic| periodic != 0))
        .fields(spec.fields as usize);
    if spec.faces_only != 0 {
        ghosts = ghosts.faces_only();
    }
    if let Some(name) = In::of_field(spec.exchange).optional_text("exchange")? {
        ghosts = ghosts.exchange(name);
    }
    Ok((ghosts, gpu(i32::try_from(spec.device).unwrap_or(i32::MIN))?))
}

/// An exchange of ghost cells of elements of any size.
trait Exchanger: Send {
    fn padded(&self) -> &dyn Padded;
    fn exchange(&mut self, fields: &mut [Out<c_void>], bytes: u64) -> Outcome;
    fn start(&mut self, fields: &mut [Out<c_void>], bytes: u64) -> Outcome;
    fn finish(&mut self) -> Outcome;
    fn stream(&mut self) -> &mut dyn Streamed;
}

struct Sized<const N: usize, B: Place> {
    inner: ferrier::Halo<Bytes<N>, B>,
    /// The fields of the exchange in flight.
    in_flight: Option<Vec<B::Given<Bytes<N>>>>,
}

impl<const N: usize, B: Place> Sized<N, B> {
    fn fields(&self, fields: &mut [Out<c_void>], bytes: u64) -> Outcome<Vec<B::Given<Bytes<N>>>> {
        match self.in_flight {
            None => B::fields(fields, bytes, self.inner.volume()),
            Some(_) => Err(Failure::argument("halo", "is in flight: ferrier_halo_finish comes first")),
        }
    }
}

/// For one memory, whose methods have the names of the other's.
macro_rules! exchanger {
    ($place:ty) => {
        impl<const N: usize> Exchanger for Sized<N, $place> {
            fn padded(&self) -> &dyn Padded {
                &self.inner
            }
            fn exchange(&mut self, fields: &mut [Out<c_void>], bytes: u64) -> Outcome {
                let mut fields = self.fields(fields, bytes)?;
                Ok(self.inner.exchange(&mut fields)?)
            }
            fn start(&mut self, fields: &mut [Out<c_void>], bytes: u64) -> Outcome {
                let mut fields = self.fields(fields, bytes)?;
                // C can keep no borrow: `finish` takes up what is forgotten here.
                std::mem::forget(self.inner.start(&mut fields)?);
                self.in_flight = Some(fields);
                Ok(())
            }
            fn finish(&mut self) -> Outcome {
                let none = || Failure::argument("halo", "is not in flight: ferrier_halo_start comes first");
                let mut fields = self.in_flight.take().ok_or_else(none)?;
                self.inner.resume(&mut fields).ok_or_else(none)?.finish()?;
                Ok(())
            }
            fn stream(&mut self) -> &mut dyn Streamed {
                &mut self.inner
            }
        }
    };
}
exchanger!(Cpu);
#[cfg(feature = "cuda")]
exchanger!(ferrier::cuda::Cuda);

fn make_halo<const N: usize>(
    mesh: &Mesh<'_>,
    (ghosts, gpu): &(Ghosts, Option<usize>),
) -> Outcome<Box<dyn Exchanger>> {
    let Mesh { comm, shape, layout } = *mesh;
    match *gpu {
        None => {
            let inner = ferrier::Halo::<Bytes<N>>::new(comm, shape, layout, ghosts)?;
            Ok(Box::new(Sized { inner, in_flight: None }))
        }
        #[cfg(feature = "cuda")]
        Some(gpu) => {
            let gpu = ferrier::Device::cuda(gpu)?;
            let inner = ferrier::Halo::<Bytes<N>, _>::on(&gpu, comm, shape, layout, ghosts)?;
            Ok(Box::new(Sized { inner, in_flight: None }))
        }
        #[cfg(not(feature = "cuda"))]
        Some(_) => Err(crate::options::without_cuda()),
    }
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
        let (comm, problem) = (comm.get("comm")?.get(), problem_of(problem)?);
        let mesh = Mesh::new(&comm, &problem, self::side(side)?)?;
        let made = for_size!(element_bytes, make_halo(&mesh, &self::ghosts(&ghosts)?))?;
        slot.set(Handle::new(Halo(Mutex::new(made))));
        Ok(())
    })
}

/// Destroys a halo; an exchange in flight leaves the ghost cells as they were. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_free(halo: Handle<Halo>) -> Status {
    guard(|| halo.destroy("halo"))
}

/// The box of this rank, without ghost cells.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_box(halo: Handle<Halo>, local: Out<IndexBox>) -> Status {
    guard(|| local.set("local", halo.get("halo")?.lock()?.padded().part().into()))
}

/// The shape[3] of the arrays of this rank, ghost cells included. Cell {i, j, k} of the whole array lies at element
/// (i - lo[0] + low[0]) strides[0] + (j - lo[1] + low[1]) strides[1] + (k - lo[2] + low[2]) strides[2].
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_shape(halo: Handle<Halo>, shape: Out<u64>) -> Status {
    guard(|| shape.set_three("shape", halo.get("halo")?.lock()?.padded().shape()))
}

/// The strides[3] of the arrays of this rank, in elements.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_strides(halo: Handle<Halo>, strides: Out<u64>) -> Status {
    guard(|| strides.set_three("strides", halo.get("halo")?.lock()?.padded().strides()))
}

/// Bytes of an array of this rank, ghost cells included.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_bytes(halo: Handle<Halo>, bytes: Out<u64>) -> Status {
    guard(|| bytes.set("bytes", halo.get("halo")?.lock()?.padded().bytes()))
}

/// The memory that the halo takes on this rank, in bytes; arrays are not counted.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_memory_bytes(halo: Handle<Halo>, bytes: Out<u64>) -> Status {
    guard(|| bytes.set("bytes", halo.get("halo")?.lock()?.padded().memory() as u64))
}

/// The substitutions that Ferrier made for this halo, one per line. Free the text with ferrier_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_notes(halo: Handle<Halo>, text: Out<*mut c_char>) -> Status {
    guard(|| give(text, "text", halo.get("halo")?.lock()?.padded().notes().join("\n")))
}

/// An array with ghost cells, zero at first, in memory that the ranks of a node share: the fastest. On a GPU: memory of the
/// GPU. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_make(halo: Handle<Halo>, mut array: Out<Handle<Array>>) -> Status {
    guard(|| {
        let slot = array.slot("array")?;
        let made = halo.get("halo")?.lock()?.padded().make()?;
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
        halo.get("halo")?.lock()?.exchange(&mut fields, bytes)
    })
}

/// Begins to fill the ghost cells of `count` arrays, without a wait for other ranks; ferrier_halo_finish fills them.
/// Until then the arrays stay where they are and can be read, not changed; the list itself is not needed any more.
/// Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_start(
    halo: Handle<Halo>,
    fields: In<*mut c_void>,
    count: u64,
    bytes: u64,
) -> Status {
    guard(|| {
        let mut fields = fields.places("fields", count, bytes)?;
        halo.get("halo")?.lock()?.start(&mut fields, bytes)
    })
}

/// Waits for the neighbours and fills the ghost cells of the arrays of ferrier_halo_start. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_finish(halo: Handle<Halo>) -> Status {
    guard(|| halo.get("halo")?.lock()?.finish())
}

/// Makes a halo on a GPU enqueue its work on this CUDA stream; as ferrier_plan_set_stream.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_set_stream(halo: Handle<Halo>, stream: Out<c_void>) -> Status {
    guard(|| {
        let halo = halo.get("halo")?;
        // SAFETY: a stream of the halo's GPU that lives as long, as the header asks for.
        unsafe { halo.lock()?.stream().set_stream(stream.address()) }
    })
}

/// Returns when all work that the halo enqueued on its GPU is complete; errors of it are returned here.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_halo_synchronize(halo: Handle<Halo>) -> Status {
    guard(|| halo.get("halo")?.lock()?.stream().synchronize())
}
