// The border of libferrier: bad input gives a status and a message, good input works. Run by scripts/check-c.
#ifdef WITH_MPI
#include <mpi.h>
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ferrier.h"

static int failures;

static void want(int line, ferrier_status got, ferrier_status wanted, const char *text) {
  if (got == wanted && (got == FERRIER_STATUS_OK || strstr(ferrier_last_error(), text))) return;
  fprintf(stderr, "line %d: %s, %s was expected with `%s`: %s\n", line, ferrier_status_name(got),
          ferrier_status_name(wanted), text, ferrier_last_error());
  failures++;
}
#define OK(call) want(__LINE__, call, FERRIER_STATUS_OK, "")
#define BAD(status, text, call) want(__LINE__, call, FERRIER_STATUS_##status, text)
#define TRUE(condition) ((condition) ? (void)0 : (fprintf(stderr, "line %d: %s\n", __LINE__, #condition), (void)failures++))

static void double_it(void *data, const ferrier_mode_run *run) {
  const float factor = *(float *)data;
  float *values = run->values;
  for (uint64_t i = 0; i < 2 * run->length; i++) values[i] *= factor;
}

// Elements that know where they belong, from slabs to pencils of another order; and ghost cells around bricks.
static void moves(ferrier_comm *comm) {
  uint64_t shape[3] = {6, 5, 4}, order[3] = {2, 1, 0}, bytes, out_bytes, strides[3], outer[3];
  ferrier_problem *problem;
  ferrier_redistribution *moving;
  ferrier_halo *halo;
  ferrier_box box;
  OK(ferrier_problem_redistribute(shape, &problem));
  OK(ferrier_problem_pencils(problem, FERRIER_SIDE_OUTPUT, 0));
  OK(ferrier_problem_order(problem, FERRIER_SIDE_OUTPUT, order));
  BAD(ARGUMENT, "`element_bytes` must be 1, 2, 4", ferrier_redistribution_create(comm, problem, 5, NULL, &moving));
  OK(ferrier_redistribution_create(comm, problem, 4, NULL, &moving));
  OK(ferrier_redistribution_bytes(moving, FERRIER_SIDE_INPUT, &bytes));
  OK(ferrier_redistribution_bytes(moving, FERRIER_SIDE_OUTPUT, &out_bytes));
  int32_t *from = malloc(bytes + 1), *to = malloc(out_bytes + 1);
  size_t at = 0;
  OK(ferrier_redistribution_box(moving, FERRIER_SIDE_INPUT, &box));
  for (uint64_t i = box.lo[0]; i < box.hi[0]; i++)
    for (uint64_t j = box.lo[1]; j < box.hi[1]; j++)
      for (uint64_t k = box.lo[2]; k < box.hi[2]; k++) from[at++] = (int32_t)(100 * i + 10 * j + k);
  OK(ferrier_redistribution_run(moving, from, bytes, to, out_bytes));
  OK(ferrier_redistribution_box(moving, FERRIER_SIDE_OUTPUT, &box));
  at = 0;
  for (uint64_t k = box.lo[2]; k < box.hi[2]; k++)
    for (uint64_t j = box.lo[1]; j < box.hi[1]; j++)
      for (uint64_t i = box.lo[0]; i < box.hi[0]; i++) TRUE(to[at++] == (int32_t)(100 * i + 10 * j + k));
  free(from);
  free(to);
  OK(ferrier_redistribution_free(moving));

  ferrier_ghosts ghosts = FERRIER_GHOSTS_DEFAULT;
  for (int axis = 0; axis < 3; axis++) ghosts.low[axis] = ghosts.high[axis] = 1, ghosts.periodic[axis] = 1;
  ghosts.fields = 2;
  OK(ferrier_problem_bricks(problem, FERRIER_SIDE_INPUT));
  OK(ferrier_halo_create(comm, problem, FERRIER_SIDE_INPUT, 8, &ghosts, &halo));
  OK(ferrier_halo_bytes(halo, &bytes));
  OK(ferrier_halo_strides(halo, strides));
  OK(ferrier_halo_shape(halo, outer));
  OK(ferrier_halo_box(halo, &box));
  double *u = calloc(1, bytes + 1), *v = calloc(1, bytes + 1);
  void *fields[2] = {u, v}, *same[2] = {u, u};
  for (uint64_t i = box.lo[0]; i < box.hi[0]; i++)
    for (uint64_t j = box.lo[1]; j < box.hi[1]; j++)
      for (uint64_t k = box.lo[2]; k < box.hi[2]; k++) {
        at = (i - box.lo[0] + 1) * strides[0] + (j - box.lo[1] + 1) * strides[1] + (k - box.lo[2] + 1) * strides[2];
        u[at] = (double)(100 * i + 10 * j + k);
        v[at] = -u[at];
      }
  if (bytes) BAD(ARGUMENT, "overlap each other", ferrier_halo_exchange(halo, same, 2, bytes));
  if (bytes) BAD(ARRAY, "the field must have at least", ferrier_halo_exchange(halo, fields, 2, bytes - 8));
  OK(ferrier_halo_exchange(halo, fields, 2, bytes));
  for (uint64_t a = 0; a < outer[0]; a++)
    for (uint64_t b = 0; b < outer[1]; b++)
      for (uint64_t c = 0; c < outer[2]; c++) {
        uint64_t i = (box.lo[0] + a + shape[0] - 1) % shape[0], j = (box.lo[1] + b + shape[1] - 1) % shape[1];
        uint64_t k = (box.lo[2] + c + shape[2] - 1) % shape[2];
        at = a * strides[0] + b * strides[1] + c * strides[2];
        TRUE(u[at] == (double)(100 * i + 10 * j + k) && v[at] == -u[at]);
      }
  free(u);
  free(v);
  OK(ferrier_halo_free(halo));
  BAD(HANDLE, "a halo that was destroyed", ferrier_halo_free(halo));
  OK(ferrier_problem_free(problem));
}

// Arguments that are wrong, on one rank.
static void bad_input(void) {
  uint64_t shape[3] = {8, 6, 4}, number = 7, three[3];
  int32_t kinds[3] = {FERRIER_KIND_C2C, FERRIER_KIND_R2C, 99};
  ferrier_comm *comm, *none = NULL;
  ferrier_problem *problem, *other;
  ferrier_options *options;
  ferrier_plan *plan = NULL;
  ferrier_draft *draft;
  ferrier_array *array;
  ferrier_box box;
  char *text;
  float a[2 * 8 * 6 * 4], b[2 * 8 * 6 * 4];

  OK(ferrier_comm_one(&comm));
  BAD(ARGUMENT, "`comm` is NULL", ferrier_comm_one(NULL));
  BAD(HANDLE, "`comm` is NULL, a communicator", ferrier_comm_rank(none, &number));
  BAD(ARGUMENT, "`rank` is NULL", ferrier_comm_rank(comm, NULL));
  BAD(HANDLE, "another kind, a problem", ferrier_problem_batch((ferrier_problem *)comm, 1));
  BAD(HANDLE, "not a handle of this library", ferrier_problem_batch((ferrier_problem *)&number, 1));
  BAD(ARGUMENT, "`threads` must be from 1", ferrier_comm_set_threads(comm, 0));
  OK(ferrier_comm_set_threads(comm, 2));
  TRUE(number == 7);

  BAD(ARGUMENT, "`shape` is NULL", ferrier_problem_c2c(NULL, &problem));
  BAD(ARGUMENT, "multiple of 8", ferrier_problem_c2c((uint64_t *)((char *)shape + 1), &problem));
  BAD(ARGUMENT, "`kinds` must be one of", ferrier_problem_mixed(shape, kinds, &problem));
  BAD(ARGUMENT, "not as expected", ferrier_problem_from_json("{", &problem));
  OK(ferrier_problem_c2c(shape, &problem));
  BAD(ARGUMENT, "`axis` must be 0, 1 or 2, got 3", ferrier_problem_slabs(problem, FERRIER_SIDE_INPUT, 3));
  BAD(ARGUMENT, "`side` must be one of 0, 1, got 2", ferrier_problem_bricks(problem, 2));
  BAD(ARGUMENT, "at most 3", ferrier_problem_axes(problem, shape, 1000000));
  BAD(LAYOUT, "", ferrier_problem_order(problem, FERRIER_SIDE_INPUT, shape));
  OK(ferrier_problem_json(problem, &text));
  OK(ferrier_problem_from_json(text, &other));
  OK(ferrier_string_free(text));
  BAD(ARGUMENT, "is not a text that this library gave", ferrier_string_free(text));
  OK(ferrier_string_free(NULL));
  OK(ferrier_problem_tolerance(other, NAN));
  BAD(PROBLEM, "tolerance", ferrier_plan_create(comm, other, FERRIER_PRECISION_F32, NULL, &plan));
  TRUE(plan == NULL);
  OK(ferrier_problem_free(other));
  BAD(HANDLE, "a problem that was destroyed", ferrier_problem_free(other));

  // Boxes that leave a gap; a communicator that does not fit.
  box = (ferrier_box){{0, 0, 0}, {8, 6, 3}};
  OK(ferrier_problem_clone(problem, &other));
  OK(ferrier_problem_local_box(other, FERRIER_SIDE_INPUT, &box));
  BAD(LAYOUT, "", ferrier_plan_create(comm, other, FERRIER_PRECISION_F32, NULL, &plan));
  ferrier_box two[2] = {{{0, 0, 0}, {4, 6, 4}}, {{4, 0, 0}, {8, 6, 4}}};
  OK(ferrier_problem_boxes(other, FERRIER_SIDE_INPUT, two, 2));
  BAD(LAYOUT, "2 boxes were given for 1 ranks", ferrier_plan_create(comm, other, FERRIER_PRECISION_F32, NULL, &plan));
  BAD(ARGUMENT, "more than memory can hold", ferrier_problem_boxes(other, FERRIER_SIDE_INPUT, two, UINT64_MAX / 2));
  uint64_t huge[3] = {1u << 31, 1u << 31, 1u << 31};
  OK(ferrier_problem_free(other));
  OK(ferrier_problem_c2c(huge, &other));
  BAD(PROBLEM, "", ferrier_plan_create(comm, other, FERRIER_PRECISION_F32, NULL, &plan));
  OK(ferrier_problem_free(other));
  BAD(TRANSPORT, "no MPI library is loaded", ferrier_comm_from_fortran(0, NULL, &none));

  OK(ferrier_options_create(&options));
  BAD(UNKNOWN_NAME, "unknown option `colour`; known are: ", ferrier_options_set(options, "colour", "red"));
  BAD(CHOICE, "threads", ferrier_options_set(options, "threads", "many"));
  BAD(ARGUMENT, "`value` is NULL", ferrier_options_set(options, "threads", NULL));
  BAD(ARGUMENT, "is not UTF-8", ferrier_options_set(options, "threads", "\xff\xfe"));
  BAD(ARGUMENT, "`seconds` must be a time", ferrier_options_effort(options, FERRIER_EFFORT_PATIENT, -1));
  OK(ferrier_options_set(options, "exchange", "pigeon"));
  BAD(UNKNOWN_NAME, "pigeon", ferrier_plan_create(comm, problem, FERRIER_PRECISION_F32, options, &plan));
  OK(ferrier_options_set_json(options, "{\"exchange\": null, \"threads\": 1}"));
  OK(ferrier_options_wisdom(options, NULL));
  BAD(ARGUMENT, "`precision` must be one of 0, 1", ferrier_plan_create(comm, problem, 2, options, &plan));

  OK(ferrier_problem_operators(problem, 1));
  OK(ferrier_draft_create(comm, problem, FERRIER_PRECISION_F32, options, &draft));
  OK(ferrier_draft_memory_bytes(draft, &number));
  BAD(UNKNOWN_NAME, "no part `poem`", ferrier_draft_json(draft, "poem", &text));
  OK(ferrier_draft_json(draft, "prediction", &text));
  TRUE(strstr(text, "seconds"));
  OK(ferrier_string_free(text));
  OK(ferrier_draft_build(draft, 1, &plan));
  BAD(ARGUMENT, "is used up", ferrier_draft_build(draft, 1, &plan));
  OK(ferrier_draft_free(draft));
  OK(ferrier_plan_memory_bytes(plan, &three[0]));
  TRUE(three[0] == number);

  for (int i = 0; i < 2 * 8 * 6 * 4; i++) a[i] = (float)(i % 7);
  BAD(ARRAY, "the input must have at least 1536 bytes", ferrier_plan_forward(plan, a, sizeof a - 1, b, sizeof b));
  BAD(ARRAY, "the output must have at least 1536 bytes", ferrier_plan_forward(plan, a, sizeof a, b, 0));
  BAD(ARGUMENT, "`input` is NULL", ferrier_plan_forward(plan, NULL, sizeof a, b, sizeof b));
  BAD(ARGUMENT, "`output` is NULL", ferrier_plan_forward(plan, a, sizeof a, NULL, sizeof b));
  BAD(ARGUMENT, "multiple of 4", ferrier_plan_forward(plan, (char *)a + 1, sizeof a, b, sizeof b));
  BAD(ARGUMENT, "overlaps the input", ferrier_plan_forward(plan, a, sizeof a, a, sizeof a));
  BAD(ARGUMENT, "overlaps the input", ferrier_plan_forward(plan, a, sizeof a, a + 8, sizeof a - 32));
  BAD(ARGUMENT, "`action` must be one of", ferrier_plan_execute(plan, 6, NULL, a, sizeof a, b, sizeof b));
  BAD(CHOICE, "operator", ferrier_plan_execute(plan, FERRIER_ACTION_APPLY, NULL, a, sizeof a, b, sizeof b));
  BAD(ARGUMENT, "`rank` must be less than 1", ferrier_plan_box_of(plan, FERRIER_SIDE_INPUT, 1, &box));
  BAD(ARGUMENT, "not on a GPU", ferrier_plan_synchronize(plan));
  BAD(OTHER, "no certificate", ferrier_plan_certificate(plan, &(ferrier_certificate){0}));

  // The operator, a scale, and a structure of an older header.
  float factor = 2;
  ferrier_operator *op;
  double lengths[3] = {1, 1, 1};
  BAD(ARGUMENT, "`function` is NULL", ferrier_operator_callback(NULL, NULL, &op));
  BAD(UNKNOWN_NAME, "unknown operator `curl`", ferrier_operator_named(plan, "curl", lengths, NULL, 0, &op));
  BAD(ARGUMENT, "`count` must be 1", ferrier_operator_named(plan, "gaussian", lengths, NULL, 0, &op));
  OK(ferrier_operator_callback(double_it, &factor, &op));
  ferrier_call call = FERRIER_CALL_DEFAULT;
  call.op = op;
  call.scale = 0.25;
  OK(ferrier_plan_execute(plan, FERRIER_ACTION_APPLY, &call, a, sizeof a, b, sizeof b));
  TRUE(fabsf(b[5] - a[5] / 2) < 1e-5f && fabsf(b[300] - a[300] / 2) < 1e-5f);
  call.size = 16; // no operator in it
  BAD(CHOICE, "operator", ferrier_plan_execute(plan, FERRIER_ACTION_APPLY, &call, a, sizeof a, b, sizeof b));
  call.size = 3;
  BAD(ARGUMENT, "does not begin with its size", ferrier_plan_execute(plan, 0, &call, a, sizeof a, b, sizeof b));
  OK(ferrier_operator_free(op));
  call = (ferrier_call)FERRIER_CALL_DEFAULT;
  call.op = op;
  BAD(HANDLE, "an operator that was destroyed", ferrier_plan_execute(plan, 0, &call, a, sizeof a, b, sizeof b));

  // In place, with the plan's own memory and a workspace.
  ferrier_workspace *workspace;
  void *data;
  OK(ferrier_plan_make_in_place(plan, &array));
  OK(ferrier_array_data(array, &data));
  OK(ferrier_array_bytes(array, &number));
  TRUE(number == sizeof a);
  memcpy(data, a, sizeof a);
  OK(ferrier_plan_make_workspace(plan, &workspace));
  call = (ferrier_call)FERRIER_CALL_DEFAULT;
  call.workspace = workspace;
  OK(ferrier_plan_execute(plan, FERRIER_ACTION_FORWARD_IN_PLACE, &call, NULL, 0, data, number));
  OK(ferrier_plan_backward_in_place(plan, data, number));
  TRUE(fabsf(((float *)data)[77] - a[77]) < 1e-5f);
  OK(ferrier_workspace_free(workspace));
  OK(ferrier_array_free(array));

  OK(ferrier_plan_free(plan));
  BAD(HANDLE, "a plan that was destroyed", ferrier_plan_forward(plan, a, sizeof a, b, sizeof b));
  OK(ferrier_plan_free(NULL));
  OK(ferrier_predict(problem, FERRIER_PRECISION_F64, NULL, 1024, 16, 4, &text));
  TRUE(strstr(text, "\"prediction\""));
  OK(ferrier_string_free(text));
  OK(ferrier_info(&text));
  OK(ferrier_string_free(text));
  OK(ferrier_options_free(options));
  OK(ferrier_problem_free(problem));
  moves(comm);
  OK(ferrier_comm_free(comm));
}

#ifdef WITH_MPI
// A plan on a communicator; the transform of a constant.
static ferrier_plan *transform(ferrier_comm *comm, int n) {
  uint64_t shape[3] = {(uint64_t)n, 6, 5}, bytes;
  ferrier_problem *problem;
  ferrier_plan *plan = NULL;
  OK(ferrier_problem_c2c(shape, &problem));
  OK(ferrier_plan_create(comm, problem, FERRIER_PRECISION_F64, NULL, &plan));
  OK(ferrier_problem_free(problem));
  OK(ferrier_plan_input_bytes(plan, &bytes));
  double *a = malloc(bytes + 1), *b = malloc(bytes + 1);
  for (uint64_t i = 0; i < bytes / 16; i++) a[2 * i] = 1, a[2 * i + 1] = 0;
  OK(ferrier_plan_forward(plan, a, bytes, b, bytes));
  double sum = 0, all;
  for (uint64_t i = 0; i < bytes / 8; i++) sum += b[i];
  MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  TRUE(all > 0);
  OK(ferrier_plan_backward(plan, b, bytes, a, bytes));
  for (uint64_t i = 0; i < bytes / 16; i++) TRUE(fabs(a[2 * i] - 1) < 1e-12);
  free(a);
  free(b);
  return plan;
}

// Communicators: sub-communicators, several plans, thread levels, plans that outlive MPI_Finalize.
static void communicators(int argc, char **argv) {
  ferrier_comm *comm = NULL, *again, *half, *self, *wrong;
  ferrier_problem *problem;
  ferrier_options *options;
  ferrier_plan *plan;
  uint64_t size, shape[3] = {16, 16, 16};
  int rank, ranks, flag;
  char *text;
  BAD(TRANSPORT, "MPI is not initialised", ferrier_comm_from_mpi(MPI_COMM_WORLD, &comm));
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  BAD(TRANSPORT, "null communicator", ferrier_comm_from_mpi(MPI_COMM_NULL, &wrong));
  BAD(TRANSPORT, "", ferrier_comm_from_fortran(0x07654321, NULL, &wrong));
  OK(ferrier_comm_from_mpi(MPI_COMM_WORLD, &comm));
  OK(ferrier_comm_from_fortran((int32_t)FERRIER_COMM_TO_INT(MPI_COMM_WORLD), NULL, &again));
  OK(ferrier_comm_size(again, &size));
  TRUE(size == (uint64_t)ranks);
  ferrier_plan *first = transform(comm, 12), *second = transform(again, 9);
  OK(ferrier_comm_free(again));

  // Halves of the ranks, in reverse order; freed before and after the plans on them.
  MPI_Comm split;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &split);
  OK(ferrier_comm_from_mpi(split, &half));
  OK(ferrier_comm_size(half, &size));
  TRUE(size == (uint64_t)((ranks + 1 - rank % 2) / 2));
  ferrier_plan *third = transform(half, 7);
  OK(ferrier_comm_from_mpi(MPI_COMM_SELF, &self));
  OK(ferrier_comm_size(self, &size));
  TRUE(size == 1);
  ferrier_plan *fourth = transform(self, 5);
  OK(ferrier_comm_free(half));
  MPI_Comm_free(&split);
  OK(ferrier_plan_free(third));

  // An inter-communicator is no group of ranks.
  if (ranks > 1) {
    MPI_Comm mine, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, 0, &mine);
    MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 3, &inter);
    BAD(TRANSPORT, "inter-communicator", ferrier_comm_from_mpi(inter, &wrong));
    MPI_Comm_free(&inter);
    MPI_Comm_free(&mine);
  }

  moves(comm);

  // MPI_Init alone allows one thread: no progress thread, and a note says so.
  OK(ferrier_options_create(&options));
  OK(ferrier_options_set(options, "progress", "thread"));
  OK(ferrier_options_set(options, "exchange", "point_to_point"));
  OK(ferrier_problem_c2c(shape, &problem));
  OK(ferrier_plan_create(comm, problem, FERRIER_PRECISION_F32, options, &plan));
  OK(ferrier_plan_notes(plan, &text));
  MPI_Query_thread(&flag);
  if (ranks > 1 && flag < MPI_THREAD_SERIALIZED) TRUE(strstr(text, "progress thread disabled") && strstr(text, "MPI_Init_thread"));
  OK(ferrier_string_free(text));
  OK(ferrier_plan_free(plan));
  // A communicator that does not fit the boxes.
  uint64_t grid[3] = {(uint64_t)ranks + 1, 1, 1};
  OK(ferrier_problem_grid(problem, FERRIER_SIDE_INPUT, grid));
  BAD(LAYOUT, "", ferrier_plan_create(comm, problem, FERRIER_PRECISION_F32, NULL, &plan));
  OK(ferrier_problem_free(problem));
  OK(ferrier_options_free(options));

  OK(ferrier_comm_free(comm));
  OK(ferrier_plan_free(first));
  MPI_Finalize();
  OK(ferrier_plan_free(second));
  OK(ferrier_plan_free(fourth));
  BAD(TRANSPORT, "finalized", ferrier_comm_from_mpi(MPI_COMM_SELF, &wrong));
  OK(ferrier_comm_free(self));
  if (rank == 0) printf("communicators of %d ranks: ", ranks);
  if (rank == 0 && !failures) printf("ok\n");
}
#endif

int main(int argc, char **argv) {
#ifdef WITH_MPI
  communicators(argc, argv);
#else
  (void)argc, (void)argv;
  bad_input();
  printf("border: %s\n", failures ? "failed" : "ok");
#endif
  return failures != 0;
}
