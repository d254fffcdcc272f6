//! The functions of MPI, looked up by name.
//!
//! Handles are passed as `usize` under every ABI. Where `mpi.h` has a 32-bit
//! handle (MPICH), the callee reads the low half of the register or of the
//! 8-byte stack slot; through pointers it reads and writes the low half of a
//! zeroed `usize`. Both hold on little-endian 64-bit Linux (x86-64 and
//! aarch64), which is all that this crate builds for.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

use libloading::os::unix::Library;

use crate::abi::{Handle, Predefined};
use crate::error::{Error, Result};

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
compile_error!("ferrier-mpi passes 32-bit handles in 64-bit slots: 64-bit little-endian Linux only");

pub(crate) type Int = c_int;
pub(crate) type Count = i64;
pub(crate) type Aint = isize;
type In = *const c_void;
type Out = *mut c_void;
type IntOut = *mut c_int;
type HandleOut = *mut Handle;
type Text = *mut c_char;
type StatusOut = *mut c_void;

macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($field:ident = $symbol:literal ($($arg:ty),*);)* }) => {
        $(#[$doc])*
        pub(crate) struct $name { $(pub $field: unsafe extern "C" fn($($arg),*) -> c_int,)* }

        impl $name {
            fn load(library: &Library) -> std::result::Result<$name, libloading::Error> {
                // SAFETY: the types are those of the MPI standard, handles widened
                // as the module says; the library is never unloaded.
                unsafe { Ok($name { $($field: *library.get($symbol)?,)* }) }
            }
        }
    };
}

table! {
    /// Calls of every MPI since 3.1.
    Calls {
        initialized = "MPI_Initialized" (IntOut);
        finalized = "MPI_Finalized" (IntOut);
        init_thread = "MPI_Init_thread" (*mut Int, *mut *mut *mut c_char, Int, IntOut);
        query_thread = "MPI_Query_thread" (IntOut);
        finalize = "MPI_Finalize" ();
        abort = "MPI_Abort" (Handle, Int);
        get_version = "MPI_Get_version" (IntOut, IntOut);
        get_library_version = "MPI_Get_library_version" (Text, IntOut);
        get_processor_name = "MPI_Get_processor_name" (Text, IntOut);
        error_string = "MPI_Error_string" (Int, Text, IntOut);
        error_class = "MPI_Error_class" (Int, IntOut);

        comm_size = "MPI_Comm_size" (Handle, IntOut);
        comm_rank = "MPI_Comm_rank" (Handle, IntOut);
        comm_dup = "MPI_Comm_dup" (Handle, HandleOut);
        comm_split = "MPI_Comm_split" (Handle, Int, Int, HandleOut);
        comm_split_type = "MPI_Comm_split_type" (Handle, Int, Int, Handle, HandleOut);
        comm_free = "MPI_Comm_free" (HandleOut);
        comm_set_errhandler = "MPI_Comm_set_errhandler" (Handle, Handle);

        send = "MPI_Send" (In, Int, Handle, Int, Int, Handle);
        recv = "MPI_Recv" (Out, Int, Handle, Int, Int, Handle, StatusOut);
        isend = "MPI_Isend" (In, Int, Handle, Int, Int, Handle, HandleOut);
        irecv = "MPI_Irecv" (Out, Int, Handle, Int, Int, Handle, HandleOut);
        iprobe = "MPI_Iprobe" (Int, Int, Handle, IntOut, StatusOut);
        get_elements_x = "MPI_Get_elements_x" (In, Handle, *mut Count);
        test = "MPI_Test" (HandleOut, IntOut, StatusOut);
        wait = "MPI_Wait" (HandleOut, StatusOut);
        cancel = "MPI_Cancel" (HandleOut);
        start = "MPI_Start" (HandleOut);
        request_free = "MPI_Request_free" (HandleOut);

        barrier = "MPI_Barrier" (Handle);
        bcast = "MPI_Bcast" (Out, Int, Handle, Int, Handle);
        allreduce = "MPI_Allreduce" (In, Out, Int, Handle, Handle, Handle);
        allgather = "MPI_Allgather" (In, Int, Handle, Out, Int, Handle, Handle);
        allgatherv = "MPI_Allgatherv" (In, Int, Handle, Out, *const Int, *const Int, Handle, Handle);
        alltoall = "MPI_Alltoall" (In, Int, Handle, Out, Int, Handle, Handle);
        ialltoall = "MPI_Ialltoall" (In, Int, Handle, Out, Int, Handle, Handle, HandleOut);
        alltoallv = "MPI_Alltoallv"
            (In, *const Int, *const Int, Handle, Out, *const Int, *const Int, Handle, Handle);
        ialltoallv = "MPI_Ialltoallv"
            (In, *const Int, *const Int, Handle, Out, *const Int, *const Int, Handle, Handle, HandleOut);

        win_allocate = "MPI_Win_allocate" (Aint, Int, Handle, Handle, *mut *mut c_void, HandleOut);
        win_allocate_shared = "MPI_Win_allocate_shared" (Aint, Int, Handle, Handle, *mut *mut c_void, HandleOut);
        win_shared_query = "MPI_Win_shared_query" (Handle, Int, *mut Aint, IntOut, *mut *mut c_void);
        win_free = "MPI_Win_free" (HandleOut);
        win_set_errhandler = "MPI_Win_set_errhandler" (Handle, Handle);
        win_lock_all = "MPI_Win_lock_all" (Int, Handle);
        win_unlock_all = "MPI_Win_unlock_all" (Handle);
        win_flush = "MPI_Win_flush" (Int, Handle);
        win_flush_all = "MPI_Win_flush_all" (Handle);
        win_flush_local = "MPI_Win_flush_local" (Int, Handle);
        win_sync = "MPI_Win_sync" (Handle);
        win_fence = "MPI_Win_fence" (Int, Handle);
        put = "MPI_Put" (In, Int, Handle, Int, Aint, Int, Handle, Handle);
    }
}

table! {
    /// Calls with 64-bit counts: MPI 4 and later.
    Wide {
        send = "MPI_Send_c" (In, Count, Handle, Int, Int, Handle);
        recv = "MPI_Recv_c" (Out, Count, Handle, Int, Int, Handle, StatusOut);
        isend = "MPI_Isend_c" (In, Count, Handle, Int, Int, Handle, HandleOut);
        irecv = "MPI_Irecv_c" (Out, Count, Handle, Int, Int, Handle, HandleOut);
        bcast = "MPI_Bcast_c" (Out, Count, Handle, Int, Handle);
        allreduce = "MPI_Allreduce_c" (In, Out, Count, Handle, Handle, Handle);
        allgather = "MPI_Allgather_c" (In, Count, Handle, Out, Count, Handle, Handle);
        allgatherv = "MPI_Allgatherv_c" (In, Count, Handle, Out, *const Count, *const Aint, Handle, Handle);
        alltoall = "MPI_Alltoall_c" (In, Count, Handle, Out, Count, Handle, Handle);
        ialltoall = "MPI_Ialltoall_c" (In, Count, Handle, Out, Count, Handle, Handle, HandleOut);
        alltoallv = "MPI_Alltoallv_c"
            (In, *const Count, *const Aint, Handle, Out, *const Count, *const Aint, Handle, Handle);
        ialltoallv = "MPI_Ialltoallv_c"
            (In, *const Count, *const Aint, Handle, Out, *const Count, *const Aint, Handle, Handle, HandleOut);
        alltoallv_init = "MPI_Alltoallv_init_c"
            (In, *const Count, *const Aint, Handle, Out, *const Count, *const Aint, Handle, Handle, Handle, HandleOut);
        put = "MPI_Put_c" (In, Count, Handle, Int, Aint, Count, Handle, Handle);
    }
}

/// `MPI_Alltoallv_init`.
pub(crate) type AlltoallvInit = unsafe extern "C" fn(
    In,
    *const Int,
    *const Int,
    Handle,
    Out,
    *const Int,
    *const Int,
    Handle,
    Handle,
    Handle,
    HandleOut,
) -> Int;

/// `MPI_Comm_f2c` or `MPI_Comm_fromint`.
pub(crate) type CommOfInt = unsafe extern "C" fn(Int) -> Handle;

/// `MPIX_Query_cuda_support` (Open MPI, MPICH): do calls take pointers to GPU memory?
pub(crate) type CudaSupport = unsafe extern "C" fn() -> Int;

/// `MPIX_GPU_query_support` (MPICH): the same for a kind of GPUs.
pub(crate) type GpuSupport = unsafe extern "C" fn(Int, IntOut) -> Int;

/// A loaded library. It is never unloaded: no MPI supports that.
pub(crate) struct Loaded {
    library: Library,
    pub calls: Calls,
    pub wide: Option<Wide>,
    pub alltoallv_init: Option<AlltoallvInit>,
    pub comm_of_int: Option<CommOfInt>,
    pub cuda_support: Option<CudaSupport>,
    pub gpu_support: Option<GpuSupport>,
}

impl Loaded {
    /// Loads with `RTLD_GLOBAL`: plugins of MPI libraries look for its symbols there.
    pub fn open(path: &Path) -> Result<Loaded> {
        let failed = |why: String| Error::Load { path: path.to_owned(), why };
        let flags = libc::RTLD_NOW | libc::RTLD_GLOBAL | libc::RTLD_NODELETE;
        // SAFETY: runs the initialisers of an MPI library, which are made for that.
        let library =
            unsafe { Library::open(Some(path), flags) }.map_err(|error| failed(error.to_string()))?;
        let calls = Calls::load(&library).map_err(|error| failed(error.to_string()))?;
        let wide = Wide::load(&library).ok();
        // SAFETY: the types of the standard; MPIX_ is the same call before it was standard.
        let alltoallv_init = unsafe {
            library
                .get(b"MPI_Alltoallv_init")
                .or_else(|_| library.get(b"MPIX_Alltoallv_init"))
                .ok()
                .map(|call| *call)
        };
        // SAFETY: the types of the standard.
        let comm_of_int = unsafe {
            library.get(b"MPI_Comm_fromint").or_else(|_| library.get(b"MPI_Comm_f2c")).ok().map(|call| *call)
        };
        // SAFETY: the types that Open MPI's and MPICH's headers declare.
        let (cuda_support, gpu_support) = unsafe {
            (
                library.get(b"MPIX_Query_cuda_support").ok().map(|call| *call),
                library.get(b"MPIX_GPU_query_support").ok().map(|call| *call),
            )
        };
        Ok(Loaded { library, calls, wide, alltoallv_init, comm_of_int, cuda_support, gpu_support })
    }

    /// The handle behind a predefined one; `None` where the symbol is missing.
    pub fn handle(&self, predefined: Predefined) -> Option<Handle> {
        match predefined {
            Predefined::Value(value) => Some(value),
            // SAFETY: only the address is taken.
            Predefined::Symbol(name) => unsafe {
                self.library
                    .get::<*mut c_void>(name.as_bytes())
                    .ok()
                    .map(|symbol| symbol.into_raw() as Handle)
            },
        }
    }
}
