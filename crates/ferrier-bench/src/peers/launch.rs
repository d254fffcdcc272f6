//! The MPI launch that a distributed peer runs on.

/// The MPI library in use, and the communicator of all processes.
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#[derive(Clone, Copy)]
pub struct MpiLaunch<'a> {
    /// The file of the library.
    pub library: &'a std::path::Path,
    /// All processes of the launch.
    pub world: &'a ferrier_mpi::Comm,
}

/// `ferrier-mpi` supports 64-bit little-endian Linux only: there are no launches here.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
#[derive(Clone, Copy)]
pub struct MpiLaunch<'a>(std::convert::Infallible, std::marker::PhantomData<&'a ()>);
