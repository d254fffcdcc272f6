//! The functions of MPI, looked up by name.
//!
//! Handles are passed as `usize` under every ABI. Where `mpi.h` has a 32-bit
//! handle (MPICH), the callee reads the low half of the register or of the
//! 8-byte stack slot; through pointers it reads and writes the low half of a
//! zeroed `usize`. Both hold on little-endian 64-bit Linux (x86-64 and
//! aarch64), which is all that this crate builds for.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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

/// `MPI_Comm_copy_attr_function`: a communicator is duplicated.
pub(crate) type CopyAttribute =
    extern "C" fn(Handle, Int, *mut c_void, *mut c_void, *mut c_void, IntOut) -> Int;
/// `MPI_Comm_delete_attr_function`: a communicator is freed, or the attribute replaced.
pub(crate) type DeleteAttribute = extern "C" fn(Handle, Int, *mut c_void, *mut c_void) -> Int;

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

macro_rules! counted_table {
    ($(#[$doc:meta])* $name:ident<C, D> { $($field:ident = $symbol:literal ($($arg:ty),*);)* }) => {
        $(#[$doc])*
        pub(crate) struct $name<C, D> { $(pub $field: unsafe extern "C" fn($($arg),*) -> c_int,)* }

        impl $name<Int, Int> {
            fn narrow(library: &Library) -> std::result::Result<Self, libloading::Error> {
                // SAFETY: as in `table`.
                unsafe { Ok($name { $($field: *library.get($symbol)?,)* }) }
            }
        }

        impl $name<Count, Aint> {
            fn wide(library: &Library) -> std::result::Result<Self, libloading::Error> {
                // SAFETY: as in `table`.
                unsafe { Ok($name { $($field: *library.get(concat!($symbol, "_c"))?,)* }) }
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
        error_string = "MPI_Error_string" (Int, Text, IntOut);
        error_class = "MPI_Error_class" (Int, IntOut);

        comm_size = "MPI_Comm_size" (Handle, IntOut);
        comm_rank = "MPI_Comm_rank" (Handle, IntOut);
        comm_dup = "MPI_Comm_dup" (Handle, HandleOut);
        comm_split = "MPI_Comm_split" (Handle, Int, Int, HandleOut);
        comm_split_type = "MPI_Comm_split_type" (Handle, Int, Int, Handle, HandleOut);
        comm_free = "MPI_Comm_free" (HandleOut);
        comm_set_errhandler = "MPI_Comm_set_errhandler" (Handle, Handle);
        comm_get_errhandler = "MPI_Comm_get_errhandler" (Handle, HandleOut);
        errhandler_free = "MPI_Errhandler_free" (HandleOut);
        comm_test_inter = "MPI_Comm_test_inter" (Handle, IntOut);
        comm_create_keyval = "MPI_Comm_create_keyval" (CopyAttribute, DeleteAttribute, IntOut, *mut c_void);
        comm_set_attr = "MPI_Comm_set_attr" (Handle, Int, *mut c_void);
        comm_get_attr = "MPI_Comm_get_attr" (Handle, Int, *mut *mut c_void, IntOut);

        iprobe = "MPI_Iprobe" (Int, Int, Handle, IntOut, StatusOut);
        test = "MPI_Test" (HandleOut, IntOut, StatusOut);
        wait = "MPI_Wait" (HandleOut, StatusOut);
        cancel = "MPI_Cancel" (HandleOut);

        barrier = "MPI_Barrier" (Handle);

        win_allocate = "MPI_Win_allocate" (Aint, Int, Handle, Handle, *mut *mut c_void, HandleOut);
        win_free = "MPI_Win_free" (HandleOut);
        win_set_errhandler = "MPI_Win_set_errhandler" (Handle, Handle);
        win_lock_all = "MPI_Win_lock_all" (Int, Handle);
        win_unlock_all = "MPI_Win_unlock_all" (Handle);
        win_flush = "MPI_Win_flush" (Int, Handle);
        win_flush_all = "MPI_Win_flush_all" (Handle);
        win_flush_local = "MPI_Win_flush_local" (Int, Handle);
        win_sync = "MPI_Win_sync" (Handle);
    }
}

counted_table! {
    /// Calls with counts `C` and displacements `D`: 32-bit ones of every MPI, and
    /// 64-bit ones of MPI 4 (`MPI_Bcast_c`).
    Counted<C, D> {
        isend = "MPI_Isend" (In, C, Handle, Int, Int, Handle, HandleOut);
        irecv = "MPI_Irecv" (Out, C, Handle, Int, Int, Handle, HandleOut);
        bcast = "MPI_Bcast" (Out, C, Handle, Int, Handle);
        allreduce = "MPI_Allreduce" (In, Out, C, Handle, Handle, Handle);
        allgather = "MPI_Allgather" (In, C, Handle, Out, C, Handle, Handle);
        allgatherv = "MPI_Allgatherv" (In, C, Handle, Out, *const C, *const D, Handle, Handle);
        alltoall = "MPI_Alltoall" (In, C, Handle, Out, C, Handle, Handle);
        ialltoall = "MPI_Ialltoall" (In, C, Handle, Out, C, Handle, Handle, HandleOut);
        alltoallv = "MPI_Alltoallv"
            (In, *const C, *const D, Handle, Out, *const C, *const D, Handle, Handle);
        ialltoallv = "MPI_Ialltoallv"
            (In, *const C, *const D, Handle, Out, *const C, *const D, Handle, Handle, HandleOut);
        put = "MPI_Put" (In, C, Handle, Int, Aint, C, Handle, Handle);
        rput = "MPI_Rput" (In, C, Handle, Int, Aint, C, Handle, Handle, HandleOut);
    }
}

pub(crate) type Narrow = Counted<Int, Int>;
pub(crate) type Wide = Counted<Count, Aint>;

/// `MPI_Comm_f2c` (what `MPI_Comm_c2f` of callers belongs to), else `MPI_Comm_fromint`.
pub(crate) type CommOfInt = unsafe extern "C" fn(Int) -> Handle;

/// `MPIX_Query_cuda_support` (Open MPI, MPICH): do calls take pointers to GPU memory?
pub(crate) type CudaSupport = unsafe extern "C" fn() -> Int;

/// `MPIX_GPU_query_support` (MPICH): the same for a kind of GPUs.
pub(crate) type GpuSupport = unsafe extern "C" fn(Int, IntOut) -> Int;

/// A loaded library. It is never unloaded: no MPI supports that.
pub(crate) struct Loaded {
    library: Library,
    pub calls: Calls,
    pub narrow: Narrow,
    pub wide: Option<Wide>,
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
        let missing = |error: libloading::Error| failed(error.to_string());
        let (calls, narrow) =
            (Calls::load(&library).map_err(missing)?, Narrow::narrow(&library).map_err(missing)?);
        // SAFETY: each use has the type of the standard, or of Open MPI's and MPICH's headers.
        unsafe {
            Ok(Loaded {
                wide: Wide::wide(&library).ok(),
                comm_of_int: optional(&library, &["MPI_Comm_f2c", "MPI_Comm_fromint"]),
                cuda_support: optional(&library, &["MPIX_Query_cuda_support"]),
                gpu_support: optional(&library, &["MPIX_GPU_query_support"]),
                library,
                calls,
                narrow,
            })
        }
    }

    /// The handle behind a predefined one; `None` where the symbol is missing.
    pub fn handle(&self, predefined: Predefined) -> Option<Handle> {
        match predefined {
            Predefined::Value(value) => Some(value),
            // A program that is linked to the library holds the object itself (a copy relocation).
            Predefined::Symbol(name) => {
                let own = || address_of(&self.library, name);
                in_program(name).or_else(own).map(|address| address as Handle)
            }
        }
    }
}

/// The address of a symbol as seen from a library.
pub(crate) fn address_of(library: &Library, name: &str) -> Option<*mut c_void> {
    // SAFETY: only the address is taken.
    unsafe { library.get::<*mut c_void>(name) }.ok().map(|symbol| symbol.into_raw())
}

/// A symbol that the program itself defines, not one of its libraries.
fn in_program(name: &str) -> Option<*mut c_void> {
    let address = address_of(&Library::this(), name)?;
    // Libraries can be opened by their names, programs cannot.
    opened(&object_of(address)?).is_none().then_some(address)
}

/// The file of the object that holds an address.
pub(crate) fn object_of(address: *const c_void) -> Option<PathBuf> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: any address may be asked for; the out-parameter is valid.
    if address.is_null() || unsafe { libc::dladdr(address, &mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's string, which lives as long as the object is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// A library that is loaded already.
pub(crate) fn opened(path: &Path) -> Option<Library> {
    // SAFETY: loads nothing, so it runs no initialiser.
    unsafe { Library::open(Some(path), libc::RTLD_LAZY | libc::RTLD_NOLOAD) }.ok()
}

/// The first of these functions that the library has.
///
/// # Safety
/// `F` is the type of a pointer to each of them.
unsafe fn optional<F: Copy>(library: &Library, names: &[&str]) -> Option<F> {
    // SAFETY: the contract of this function.
    names.iter().find_map(|name| unsafe { library.get(*name) }.ok()).map(|call| *call)
}
