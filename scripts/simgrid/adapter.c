/* SimGrid's MPI (SMPI) with the binary interface of Open MPI, which Ferrier loads at run time: the symbols are Open MPI's,
 * the calls go to SMPI's PMPI functions with handles and constants translated. scripts/check-smpi builds it.
 *
 * The prototypes are those of SMPI's header, so the compiler compares them. Values of Open MPI are written out: both headers
 * cannot be included in one file. */
#include <smpi/smpi.h>

#define OPENMPI_ANY_SOURCE (-1)
#define OPENMPI_UNDEFINED (-32766)
#define OPENMPI_IN_PLACE ((const void *)1)
#define OPENMPI_COMM_TYPE_SHARED 0
#define OPENMPI_MODE_NOCHECK 1

/* Predefined handles of Open MPI are addresses of objects. What is in them does not matter. */
#define OBJECTS(OBJECT)                                                                                                \
  OBJECT(comm_world) OBJECT(comm_self) OBJECT(comm_null) OBJECT(info_null) OBJECT(errors_return) OBJECT(byte)          \
  OBJECT(int32_t) OBJECT(int64_t) OBJECT(uint64_t) OBJECT(float) OBJECT(double) OBJECT(op_sum) OBJECT(op_min)          \
  OBJECT(op_max)
#define DEFINE(name) char ompi_mpi_##name[64];
OBJECTS(DEFINE)

static MPI_Comm comm_in(MPI_Comm comm) {
  void *given = comm;
  if (given == ompi_mpi_comm_world) return MPI_COMM_WORLD;
  if (given == ompi_mpi_comm_self) return MPI_COMM_SELF;
  return given == ompi_mpi_comm_null ? MPI_COMM_NULL : comm;
}

static void comm_out(MPI_Comm *comm) {
  if (*comm == MPI_COMM_NULL) *comm = (MPI_Comm)ompi_mpi_comm_null;
}

static MPI_Datatype type_in(MPI_Datatype type) {
  void *given = type;
  if (given == ompi_mpi_byte) return MPI_BYTE;
  if (given == ompi_mpi_int32_t) return MPI_INT32_T;
  if (given == ompi_mpi_int64_t) return MPI_INT64_T;
  if (given == ompi_mpi_uint64_t) return MPI_UINT64_T;
  if (given == ompi_mpi_float) return MPI_FLOAT;
  return given == ompi_mpi_double ? MPI_DOUBLE : type;
}

static MPI_Op op_in(MPI_Op op) {
  void *given = op;
  if (given == ompi_mpi_op_sum) return MPI_SUM;
  if (given == ompi_mpi_op_min) return MPI_MIN;
  return given == ompi_mpi_op_max ? MPI_MAX : op;
}

static MPI_Info info_in(MPI_Info info) { return (void *)info == ompi_mpi_info_null ? MPI_INFO_NULL : info; }
static MPI_Errhandler handler_in(MPI_Errhandler handler) {
  return (void *)handler == ompi_mpi_errors_return ? MPI_ERRORS_RETURN : handler;
}
static int source_in(int source) { return source == OPENMPI_ANY_SOURCE ? MPI_ANY_SOURCE : source; }
static int color_in(int color) { return color == OPENMPI_UNDEFINED ? MPI_UNDEFINED : color; }
static const void *buffer_in(const void *buffer) { return buffer == OPENMPI_IN_PLACE ? MPI_IN_PLACE : buffer; }
static int mode_in(int mode) { return mode & OPENMPI_MODE_NOCHECK ? MPI_MODE_NOCHECK : 0; }

/* Defines a call that hands its arguments on. */
#define FORWARD(name, arguments, given) int MPI_##name arguments { return PMPI_##name given; }

FORWARD(Initialized, (int *flag), (flag))
FORWARD(Finalized, (int *flag), (flag))
FORWARD(Init_thread, (int *argc, char ***argv, int required, int *provided), (argc, argv, required, provided))
FORWARD(Query_thread, (int *provided), (provided))
FORWARD(Finalize, (void), ())
FORWARD(Abort, (MPI_Comm comm, int code), (comm_in(comm), code))
FORWARD(Get_version, (int *version, int *subversion), (version, subversion))
FORWARD(Get_library_version, (char *text, int *length), (text, length))
FORWARD(Error_string, (int code, char *text, int *length), (code, text, length))
FORWARD(Error_class, (int code, int *class), (code, class))

FORWARD(Comm_size, (MPI_Comm comm, int *size), (comm_in(comm), size))
FORWARD(Comm_rank, (MPI_Comm comm, int *rank), (comm_in(comm), rank))
FORWARD(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm_in(comm), made))
FORWARD(Comm_free, (MPI_Comm *comm), (comm))
FORWARD(Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm_in(comm), handler_in(handler)))
FORWARD(Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler *handler), (comm_in(comm), handler))
FORWARD(Errhandler_free, (MPI_Errhandler *handler), (handler))
FORWARD(Comm_create_keyval,
        (MPI_Comm_copy_attr_function * copy, MPI_Comm_delete_attr_function *del, int *key, void *extra),
        (copy, del, key, extra))
FORWARD(Comm_set_attr, (MPI_Comm comm, int key, void *value), (comm_in(comm), key, value))
FORWARD(Comm_get_attr, (MPI_Comm comm, int key, void *value, int *flag), (comm_in(comm), key, value, flag))

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made) {
  int code = PMPI_Comm_split(comm_in(comm), color_in(color), key, made);
  comm_out(made);
  return code;
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made) {
  int to = type == OPENMPI_COMM_TYPE_SHARED ? MPI_COMM_TYPE_SHARED : color_in(type);
  int code = PMPI_Comm_split_type(comm_in(comm), to, key, info_in(info), made);
  comm_out(made);
  return code;
}

/* SMPI has no communicators between groups. */
int MPI_Comm_test_inter(MPI_Comm comm, int *flag) {
  (void)comm;
  *flag = 0;
  return MPI_SUCCESS;
}

FORWARD(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
        (source_in(source), tag, comm_in(comm), flag, status))
FORWARD(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status))
FORWARD(Wait, (MPI_Request * request, MPI_Status *status), (request, status))
FORWARD(Cancel, (MPI_Request * request), (request))
FORWARD(Isend, (const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request),
        (data, count, type_in(type), to, tag, comm_in(comm), request))
FORWARD(Irecv, (void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request),
        (data, count, type_in(type), source_in(from), tag, comm_in(comm), request))

FORWARD(Barrier, (MPI_Comm comm), (comm_in(comm)))
FORWARD(Bcast, (void *data, int count, MPI_Datatype type, int root, MPI_Comm comm),
        (data, count, type_in(type), root, comm_in(comm)))
FORWARD(Allreduce, (const void *sent, void *received, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (buffer_in(sent), received, count, type_in(type), op_in(op), comm_in(comm)))
FORWARD(Allgather,
        (const void *sent, int count, MPI_Datatype type, void *received, int each, MPI_Datatype as, MPI_Comm comm),
        (buffer_in(sent), count, type_in(type), received, each, type_in(as), comm_in(comm)))
FORWARD(Allgatherv,
        (const void *sent, int count, MPI_Datatype type, void *received, const int *counts, const int *offsets,
         MPI_Datatype as, MPI_Comm comm),
        (buffer_in(sent), count, type_in(type), received, counts, offsets, type_in(as), comm_in(comm)))
FORWARD(Alltoall,
        (const void *sent, int count, MPI_Datatype type, void *received, int each, MPI_Datatype as, MPI_Comm comm),
        (buffer_in(sent), count, type_in(type), received, each, type_in(as), comm_in(comm)))
FORWARD(Ialltoall,
        (const void *sent, int count, MPI_Datatype type, void *received, int each, MPI_Datatype as, MPI_Comm comm,
         MPI_Request *request),
        (buffer_in(sent), count, type_in(type), received, each, type_in(as), comm_in(comm), request))
FORWARD(Alltoallv,
        (const void *sent, const int *counts, const int *offsets, MPI_Datatype type, void *received,
         const int *each, const int *starts, MPI_Datatype as, MPI_Comm comm),
        (buffer_in(sent), counts, offsets, type_in(type), received, each, starts, type_in(as), comm_in(comm)))
FORWARD(Ialltoallv,
        (const void *sent, const int *counts, const int *offsets, MPI_Datatype type, void *received,
         const int *each, const int *starts, MPI_Datatype as, MPI_Comm comm, MPI_Request *request),
        (buffer_in(sent), counts, offsets, type_in(type), received, each, starts, type_in(as), comm_in(comm), request))

FORWARD(Win_allocate, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
        (size, unit, info_in(info), comm_in(comm), base, win))
FORWARD(Win_free, (MPI_Win * win), (win))
FORWARD(Win_set_errhandler, (MPI_Win win, MPI_Errhandler handler), (win, handler_in(handler)))
FORWARD(Win_lock_all, (int mode, MPI_Win win), (mode_in(mode), win))
FORWARD(Win_unlock_all, (MPI_Win win), (win))
FORWARD(Win_flush, (int rank, MPI_Win win), (rank, win))
FORWARD(Win_flush_all, (MPI_Win win), (win))
FORWARD(Win_flush_local, (int rank, MPI_Win win), (rank, win))
FORWARD(Win_sync, (MPI_Win win), (win))
FORWARD(Put,
        (const void *data, int count, MPI_Datatype type, int rank, MPI_Aint offset, int each, MPI_Datatype as,
         MPI_Win win),
        (data, count, type_in(type), rank, offset, each, type_in(as), win))
FORWARD(Rput,
        (const void *data, int count, MPI_Datatype type, int rank, MPI_Aint offset, int each, MPI_Datatype as,
         MPI_Win win, MPI_Request *request),
        (data, count, type_in(type), rank, offset, each, type_in(as), win, request))
