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

/// Every constant that this crate passes to, or gets from, MPI. Fields are
/// named as the constants of `mpi.h`, without `MPI_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are those of the standard
pub struct Abi {
    pub family: Family,

    pub comm_world: Predefined,
    pub comm_self: Predefined,
    pub comm_null: Predefined,
    pub info_null: Predefined,
    pub errors_return: Predefined,
    pub byte: Predefined,
    pub int32_t: Predefined,
    pub int64_t: Predefined,
    pub uint64_t: Predefined,
    pub float: Predefined,
    pub double: Predefined,
    pub sum: Predefined,
    pub min: Predefined,
    pub max: Predefined,

    pub status_ignore: usize,
    pub in_place: usize,

    pub thread_single: i32,
    pub thread_funneled: i32,
    pub thread_serialized: i32,
    pub thread_multiple: i32,
    pub comm_type_shared: i32,
    pub mode_nocheck: i32,
    pub mode_noprecede: i32,
    pub mode_nosucceed: i32,
    pub any_source: i32,
    pub undefined: i32,
    pub max_error_string: i32,
    pub max_library_version_string: i32,
    pub max_processor_name: i32,

    pub sizeof_handle: usize,
    pub sizeof_status: usize,
    pub status_source: usize,
    pub status_tag: usize,
}

/// Longest string that any of the ABIs writes (`MPI_MAX_LIBRARY_VERSION_STRING`).
pub(crate) const LONGEST_STRING: usize = 8192;

use Predefined::{Symbol, Value};

/// Open MPI 4.1 and 5.
pub const OPEN_MPI: Abi = Abi {
    family: Family::OpenMpi,
    comm_world: Symbol("ompi_mpi_comm_world"),
    comm_self: Symbol("ompi_mpi_comm_self"),
    comm_null: Symbol("ompi_mpi_comm_null"),
    info_null: Symbol("ompi_mpi_info_null"),
    errors_return: Symbol("ompi_mpi_errors_return"),
    byte: Symbol("ompi_mpi_byte"),
    int32_t: Symbol("ompi_mpi_int32_t"),
    int64_t: Symbol("ompi_mpi_int64_t"),
    uint64_t: Symbol("ompi_mpi_uint64_t"),
    float: Symbol("ompi_mpi_float"),
    double: Symbol("ompi_mpi_double"),
    sum: Symbol("ompi_mpi_op_sum"),
    min: Symbol("ompi_mpi_op_min"),
    max: Symbol("ompi_mpi_op_max"),
    status_ignore: 0,
    in_place: 1,
    thread_single: 0,
    thread_funneled: 1,
    thread_serialized: 2,
    thread_multiple: 3,
    comm_type_shared: 0,
    mode_nocheck: 1,
    mode_noprecede: 2,
    mode_nosucceed: 16,
    any_source: -1,
    undefined: -32766,
    max_error_string: 256,
    max_library_version_string: 256,
    max_processor_name: 256,
    sizeof_handle: 8,
    sizeof_status: 24,
    status_source: 0,
    status_tag: 4,
};

/// MPICH 4 and 5 with their own ABI.
pub const MPICH: Abi = Abi {
    family: Family::Mpich,
    comm_world: Value(0x4400_0000),
    comm_self: Value(0x4400_0001),
    comm_null: Value(0x0400_0000),
    info_null: Value(0x1c00_0000),
    errors_return: Value(0x5400_0001),
    byte: Value(0x4c00_010d),
    int32_t: Value(0x4c00_0439),
    int64_t: Value(0x4c00_083a),
    uint64_t: Value(0x4c00_083e),
    float: Value(0x4c00_040a),
    double: Value(0x4c00_080b),
    sum: Value(0x5800_0003),
    min: Value(0x5800_0002),
    max: Value(0x5800_0001),
    status_ignore: 1,
    in_place: usize::MAX,
    thread_single: 0,
    thread_funneled: 1,
    thread_serialized: 2,
    thread_multiple: 3,
    comm_type_shared: 1,
    mode_nocheck: 1024,
    mode_noprecede: 8192,
    mode_nosucceed: 16384,
    any_source: -2,
    undefined: -32766,
    max_error_string: 512,
    max_library_version_string: 8192,
    max_processor_name: 128,
    sizeof_handle: 4,
    sizeof_status: 20,
    status_source: 8,
    status_tag: 12,
};

/// The standard ABI of MPI 5.
pub const STANDARD: Abi = Abi {
    family: Family::Standard,
    comm_world: Value(0x101),
    comm_self: Value(0x102),
    comm_null: Value(0x100),
    info_null: Value(0x130),
    errors_return: Value(0x143),
    byte: Value(0x247),
    int32_t: Value(0x250),
    int64_t: Value(0x258),
    uint64_t: Value(0x259),
    float: Value(0x210),
    double: Value(0x214),
    sum: Value(0x21),
    min: Value(0x22),
    max: Value(0x23),
    status_ignore: 0,
    in_place: 1,
    thread_single: 0,
    thread_funneled: 1024,
    thread_serialized: 2048,
    thread_multiple: 4096,
    comm_type_shared: 221,
    mode_nocheck: 1024,
    mode_noprecede: 2048,
    mode_nosucceed: 16384,
    any_source: -1,
    undefined: -32766,
    max_error_string: 512,
    max_library_version_string: 8192,
    max_processor_name: 256,
    sizeof_handle: 8,
    sizeof_status: 32,
    status_source: 0,
    status_tag: 4,
};

impl Abi {
    /// The table of a family.
    pub fn of(family: Family) -> &'static Abi {
        match family {
            Family::OpenMpi => &OPEN_MPI,
            Family::Mpich => &MPICH,
            Family::Standard => &STANDARD,
        }
    }

    /// Handles under the names of `mpi.h`.
    pub fn handles(&self) -> Vec<(&'static str, Predefined)> {
        vec![
            ("MPI_COMM_WORLD", self.comm_world),
            ("MPI_COMM_SELF", self.comm_self),
            ("MPI_COMM_NULL", self.comm_null),
            ("MPI_INFO_NULL", self.info_null),
            ("MPI_ERRORS_RETURN", self.errors_return),
            ("MPI_BYTE", self.byte),
            ("MPI_INT32_T", self.int32_t),
            ("MPI_INT64_T", self.int64_t),
            ("MPI_UINT64_T", self.uint64_t),
            ("MPI_FLOAT", self.float),
            ("MPI_DOUBLE", self.double),
            ("MPI_SUM", self.sum),
            ("MPI_MIN", self.min),
            ("MPI_MAX", self.max),
        ]
    }

    /// Every other constant, as an expression of C and its value.
    pub fn numbers(&self) -> Vec<(&'static str, i64)> {
        vec![
            ("(size_t)MPI_STATUS_IGNORE", self.status_ignore as i64),
            ("(size_t)MPI_IN_PLACE", self.in_place as i64),
            ("MPI_SUCCESS", 0),
            ("MPI_THREAD_SINGLE", self.thread_single.into()),
            ("MPI_THREAD_FUNNELED", self.thread_funneled.into()),
            ("MPI_THREAD_SERIALIZED", self.thread_serialized.into()),
            ("MPI_THREAD_MULTIPLE", self.thread_multiple.into()),
            ("MPI_COMM_TYPE_SHARED", self.comm_type_shared.into()),
            ("MPI_MODE_NOCHECK", self.mode_nocheck.into()),
            ("MPI_MODE_NOPRECEDE", self.mode_noprecede.into()),
            ("MPI_MODE_NOSUCCEED", self.mode_nosucceed.into()),
            ("MPI_ANY_SOURCE", self.any_source.into()),
            ("MPI_UNDEFINED", self.undefined.into()),
            ("MPI_MAX_ERROR_STRING", self.max_error_string.into()),
            ("MPI_MAX_LIBRARY_VERSION_STRING", self.max_library_version_string.into()),
            ("MPI_MAX_PROCESSOR_NAME", self.max_processor_name.into()),
            ("sizeof(MPI_Comm)", self.sizeof_handle as i64),
            ("sizeof(MPI_Request)", self.sizeof_handle as i64),
            ("sizeof(MPI_Datatype)", self.sizeof_handle as i64),
            ("sizeof(MPI_Status)", self.sizeof_status as i64),
            ("offsetof(MPI_Status, MPI_SOURCE)", self.status_source as i64),
            ("offsetof(MPI_Status, MPI_TAG)", self.status_tag as i64),
            ("sizeof(MPI_Aint)", 8),
            ("sizeof(MPI_Count)", 8),
        ]
    }
}
