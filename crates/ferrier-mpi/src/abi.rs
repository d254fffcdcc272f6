//! The constants of `mpi.h`, one table per binary interface.
//!
//! Taken from the headers themselves: `tests/constants.rs` compiles a C file
//! against each `mpi.h` it finds and compares every entry.

/// A handle of MPI (communicator, type, request, ...). Open MPI's and the
/// standard ABI's are pointers; MPICH's are 32-bit integers, kept in the
/// low half.
pub type Handle = usize;

/// The binary interface of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Open MPI 4.1 and 5 (`libmpi.so.40`).
    OpenMpi,
    /// MPICH 4 and 5 (`libmpich.so.12`, `libmpi.so.12`); others that share its ABI are not tested.
    Mpich,
    /// The standard ABI of MPI 5 (`libmpi_abi.so`).
    Standard,
}

impl Family {
    /// For users: "Open MPI".
    pub fn name(self) -> &'static str {
        match self {
            Family::OpenMpi => "Open MPI",
            Family::Mpich => "MPICH",
            Family::Standard => "the MPI-5 standard ABI",
        }
    }
}

/// A predefined handle: the address of a symbol, or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predefined {
    /// The address of an exported symbol (Open MPI).
    Symbol(&'static str),
    /// The handle itself.
    Value(Handle),
}

/// Longest string that any of the ABIs writes (`MPI_MAX_LIBRARY_VERSION_STRING`).
pub(crate) const LONGEST_STRING: usize = 8192;

/// Defines [`Abi`] from one row per constant: its field, its name in C, and its
/// values under Open MPI, MPICH and the standard ABI.
macro_rules! constants {
    (
        handles { $($handle:ident = $handle_name:literal ($h1:expr, $h2:expr, $h3:expr);)* }
        numbers { $($number:ident: $type:ty = $number_name:literal ($n1:expr, $n2:expr, $n3:expr);)* }
    ) => {
        /// Every constant that this crate passes to, or gets from, MPI. Fields are
        /// named as the constants of `mpi.h`, without `MPI_`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // the names are those of the standard
        pub struct Abi {
            pub family: Family,
            $(pub $handle: Predefined,)*
            $(pub $number: $type,)*
        }

        impl Abi {
            /// The table of a family.
            pub fn of(family: Family) -> &'static Abi {
                match family {
                    Family::OpenMpi => &Abi { family: Family::OpenMpi, $($handle: $h1,)* $($number: $n1,)* },
                    Family::Mpich => &Abi { family: Family::Mpich, $($handle: $h2,)* $($number: $n2,)* },
                    Family::Standard => &Abi { family: Family::Standard, $($handle: $h3,)* $($number: $n3,)* },
                }
            }

            /// Names in C and values of all handles.
            pub fn handles(&self) -> Vec<(&'static str, Predefined)> {
                vec![$(($handle_name, self.$handle),)*]
            }

            /// Expressions in C and values of all other constants, also of those
            /// that are the same everywhere.
            pub fn numbers(&self) -> Vec<(&'static str, i64)> {
                vec![
                    $(($number_name, self.$number as i64),)*
                    ("sizeof(MPI_Request)", self.sizeof_handle as i64),
                    ("sizeof(MPI_Datatype)", self.sizeof_handle as i64),
                    ("MPI_SUCCESS", 0),
                    ("sizeof(MPI_Aint)", 8),
                    ("sizeof(MPI_Count)", 8),
                ]
            }
        }

        /// Predefined handles of the loaded library.
        #[doc(hidden)]
        #[allow(missing_docs)]
        pub struct Handles { $(pub $handle: Handle,)* }

        impl Handles {
            pub(crate) fn new<E>(abi: &Abi, get: impl Fn(Predefined) -> Result<Handle, E>) -> Result<Handles, E> {
                Ok(Handles { $($handle: get(abi.$handle)?,)* })
            }
        }
    };
}

use Predefined::{Symbol, Value};

constants! {
    handles {
        comm_world    = "MPI_COMM_WORLD"    (Symbol("ompi_mpi_comm_world"),    Value(0x4400_0000), Value(0x101));
        comm_self     = "MPI_COMM_SELF"     (Symbol("ompi_mpi_comm_self"),     Value(0x4400_0001), Value(0x102));
        comm_null     = "MPI_COMM_NULL"     (Symbol("ompi_mpi_comm_null"),     Value(0x0400_0000), Value(0x100));
        info_null     = "MPI_INFO_NULL"     (Symbol("ompi_mpi_info_null"),     Value(0x1c00_0000), Value(0x130));
        errors_return = "MPI_ERRORS_RETURN" (Symbol("ompi_mpi_errors_return"), Value(0x5400_0001), Value(0x143));
        byte          = "MPI_BYTE"          (Symbol("ompi_mpi_byte"),          Value(0x4c00_010d), Value(0x247));
        int32_t       = "MPI_INT32_T"       (Symbol("ompi_mpi_int32_t"),       Value(0x4c00_0439), Value(0x250));
        int64_t       = "MPI_INT64_T"       (Symbol("ompi_mpi_int64_t"),       Value(0x4c00_083a), Value(0x258));
        uint64_t      = "MPI_UINT64_T"      (Symbol("ompi_mpi_uint64_t"),      Value(0x4c00_083e), Value(0x259));
        float         = "MPI_FLOAT"         (Symbol("ompi_mpi_float"),         Value(0x4c00_040a), Value(0x210));
        double        = "MPI_DOUBLE"        (Symbol("ompi_mpi_double"),        Value(0x4c00_080b), Value(0x214));
        sum           = "MPI_SUM"           (Symbol("ompi_mpi_op_sum"),        Value(0x5800_0003), Value(0x21));
        min           = "MPI_MIN"           (Symbol("ompi_mpi_op_min"),        Value(0x5800_0002), Value(0x22));
        max           = "MPI_MAX"           (Symbol("ompi_mpi_op_max"),        Value(0x5800_0001), Value(0x23));
    }
    numbers {
        status_ignore: usize            = "(size_t)MPI_STATUS_IGNORE"      (0,      1,          0);
        in_place: usize                 = "(size_t)MPI_IN_PLACE"           (1,      usize::MAX, 1);
        thread_single: i32              = "MPI_THREAD_SINGLE"              (0,      0,          0);
        thread_funneled: i32            = "MPI_THREAD_FUNNELED"            (1,      1,          1024);
        thread_serialized: i32          = "MPI_THREAD_SERIALIZED"          (2,      2,          2048);
        thread_multiple: i32            = "MPI_THREAD_MULTIPLE"            (3,      3,          4096);
        comm_type_shared: i32           = "MPI_COMM_TYPE_SHARED"           (0,      1,          221);
        mode_nocheck: i32               = "MPI_MODE_NOCHECK"               (1,      1024,       1024);
        any_source: i32                 = "MPI_ANY_SOURCE"                 (-1,     -2,         -1);
        undefined: i32                  = "MPI_UNDEFINED"                  (-32766, -32766,     -32766);
        max_error_string: i32           = "MPI_MAX_ERROR_STRING"           (256,    512,        512);
        max_library_version_string: i32 = "MPI_MAX_LIBRARY_VERSION_STRING" (256,    8192,       8192);
        sizeof_handle: usize            = "sizeof(MPI_Comm)"               (8,      4,          8);
    }
}
