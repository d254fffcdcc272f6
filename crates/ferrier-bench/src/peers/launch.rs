//! The MPI launch that a distributed peer runs on.

#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
mod platform {
    use std::path::Path;

    /// The MPI library in use, and the communicator of all processes.
    #[derive(Clone, Copy)]
    pub struct MpiLaunch<'a> {
        /// The file of the library.
        pub library: &'a Path,
        /// All processes of the launch.
        pub world: &'a ferrier_mpi::Comm,
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
mod platform {
    /// `ferrier-mpi` supports 64-bit little-endian Linux only: there are no launches here.
    #[derive(Clone, Copy)]
    pub struct MpiLaunch<'a>(std::convert::Infallible, std::marker::PhantomData<&'a ()>);
}

pub use platform::MpiLaunch;
