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

  // In two halves, between which the fields are read; then the other way: each cell gets what its ghost images hold.
  BAD(ARGUMENT, "is not in flight", ferrier_halo_finish(halo));
  for (uint64_t i = 0; i < bytes / 8; i++) v[i] = u[i] = 0;
  at = strides[0] + strides[1] + strides[2];
  if (bytes) u[at] = 1;
  OK(ferrier_halo_start(halo, fields, 2, bytes));
  BAD(ARGUMENT, "is in flight", ferrier_halo_start(halo, fields, 2, bytes));
  BAD(ARGUMENT, "is in flight", ferrier_halo_exchange(halo, fields, 2, bytes));
  if (bytes) TRUE(u[at] == 1 && u[0] == 0);
  OK(ferrier_halo_finish(halo));
  double ones = 0;
  for (uint64_t i = 0; i < bytes / 8; i++) ones += u[i];
  if (bytes) TRUE(ones >= 1);
  uint64_t ranks;
  OK(ferrier_comm_size(comm, &ranks));
  if (ranks == 1) TRUE(ones == 8);
  char *text;
  OK(ferrier_halo_memory_bytes(halo, &out_bytes));
  OK(ferrier_halo_notes(halo, &text));
  OK(ferrier_string_free(text));

  ferrier_ghost_sum *sum;
  BAD(ARGUMENT, "`element` must be one of 0, 1, 2", ferrier_ghost_sum_create(comm, problem, FERRIER_SIDE_INPUT, 6, &ghosts, &sum));
  OK(ferrier_ghost_sum_create(comm, problem, FERRIER_SIDE_INPUT, FERRIER_ELEMENT_F64, &ghosts, &sum));
  OK(ferrier_ghost_sum_bytes(sum, &out_bytes));
  TRUE(out_bytes == bytes);
  OK(ferrier_ghost_sum_strides(sum, strides));
  OK(ferrier_ghost_sum_shape(sum, outer));
  OK(ferrier_ghost_sum_box(sum, &box));
  for (uint64_t i = 0; i < bytes / 8; i++) u[i] = 1, v[i] = 2;
  if (bytes) BAD(ARRAY, "the field must have at least", ferrier_ghost_sum_run(sum, fields, 2, bytes - 8));
  OK(ferrier_ghost_sum_run(sum, fields, 2, bytes));
  // With ones everywhere the sum over all cells is the number of all elements, ghost cells included.
  double cells[2] = {0, (double)(bytes / 8)};
  for (uint64_t i = box.lo[0]; i < box.hi[0]; i++)
    for (uint64_t j = box.lo[1]; j < box.hi[1]; j++)
      for (uint64_t k = box.lo[2]; k < box.hi[2]; k++) {
        at = (i - box.lo[0] + 1) * strides[0] + (j - box.lo[1] + 1) * strides[1] + (k - box.lo[2] + 1) * strides[2];
        cells[0] += u[at];
        TRUE(v[at] == 2 * u[at]);
      }
  OK(ferrier_comm_sum(comm, cells, 2));
  TRUE(cells[0] == cells[1]);
  ferrier_array *array;
  OK(ferrier_ghost_sum_memory_bytes(sum, &out_bytes));
  OK(ferrier_ghost_sum_notes(sum, &text));
  OK(ferrier_string_free(text));
  BAD(ARGUMENT, "`sum` is not on a GPU", ferrier_ghost_sum_set_stream(sum, NULL));
  BAD(ARGUMENT, "`sum` is not on a GPU", ferrier_ghost_sum_synchronize(sum));
  BAD(ARGUMENT, "`halo` is not on a GPU", ferrier_halo_set_stream(halo, NULL));
  BAD(ARGUMENT, "`halo` is not on a GPU", ferrier_halo_synchronize(halo));
  OK(ferrier_ghost_sum_make(sum, &array));
  OK(ferrier_array_free(array));
  OK(ferrier_ghost_sum_free(sum));
  BAD(HANDLE, "a ghost sum that was destroyed", ferrier_ghost_sum_free(sum));

  // Freed in flight; an exchange that does not exist.
  OK(ferrier_halo_start(halo, fields, 2, bytes));
  OK(ferrier_halo_free(halo));
  BAD(HANDLE, "a halo that was destroyed", ferrier_halo_finish(halo));
  ghosts.device = -2;
  BAD(ARGUMENT, "must be the number of a GPU", ferrier_halo_create(comm, problem, FERRIER_SIDE_INPUT, 8, &ghosts, &halo));
  // A header of an older version, without the device.
  ghosts.size = offsetof(ferrier_ghosts, device);
  OK(ferrier_halo_create(comm, problem, FERRIER_SIDE_INPUT, 8, &ghosts, &halo));
  OK(ferrier_halo_free(halo));
  ghosts.size = sizeof ghosts, ghosts.device = -1;
  ghosts.exchange = "pigeon";
  BAD(UNKNOWN_NAME, "pigeon", ferrier_halo_create(comm, problem, FERRIER_SIDE_INPUT, 8, &ghosts, &halo));
  free(u);
  free(v);

  // Pencils of one grid: from those along x to those along y.
  OK(ferrier_problem_pencil_family(problem, FERRIER_SIDE_INPUT, 0, ranks, 0, 0, 1));
  OK(ferrier_problem_pencil_family(problem, FERRIER_SIDE_OUTPUT, 1, ranks, 0, 0, 1));
  BAD(LAYOUT, "", ferrier_problem_pencil_family(problem, FERRIER_SIDE_OUTPUT, 1, ranks, ranks, 2, 1));
  OK(ferrier_redistribution_create(comm, problem, 1, NULL, &moving));
  OK(ferrier_redistribution_make(moving, FERRIER_SIDE_INPUT, &array));
  OK(ferrier_array_bytes(array, &bytes));
  OK(ferrier_redistribution_box(moving, FERRIER_SIDE_INPUT, &box));
  TRUE(box.hi[0] - box.lo[0] == 6 || bytes == 0);
  OK(ferrier_array_free(array));
  OK(ferrier_redistribution_memory_bytes(moving, &bytes));
  OK(ferrier_redistribution_notes(moving, &text));
  OK(ferrier_string_free(text));
  OK(ferrier_redistribution_free(moving));
  OK(ferrier_problem_free(problem));
}

// A batch of arrays that were allocated one by one; a positive sign; a real input of a complex transform.
static void lists(ferrier_comm *comm) {
  uint64_t shape[3] = {4, 3, 5}, bytes[3], whole;
  ferrier_problem *problem;
  ferrier_plan *plan;
  OK(ferrier_problem_c2c(shape, &problem));
  OK(ferrier_problem_batch(problem, 2));
  OK(ferrier_problem_real_input(problem, 1));
  BAD(ARGUMENT, "`sign` must be one of -1, 1", ferrier_problem_sign(problem, 0));
  OK(ferrier_problem_sign(problem, 1));
  OK(ferrier_plan_create(comm, problem, FERRIER_PRECISION_F64, NULL, &plan));
  for (int side = -1; side < 2; side++) OK(ferrier_plan_field_bytes(plan, side, &bytes[side + 1]));
  OK(ferrier_plan_input_bytes(plan, &whole));
  TRUE(2 * bytes[1] == whole && bytes[2] == 2 * bytes[1]);
  double *a = malloc(bytes[1] + 1), *b = malloc(bytes[1] + 1), *c = malloc(bytes[2] + 1), *d = malloc(bytes[2] + 1);
  for (uint64_t i = 0; i < bytes[1] / 8; i++) a[i] = 1, b[i] = (double)(i % 5);
  const void *from[2] = {a, b};
  void *to[2] = {c, d}, *same[2] = {c, c}, *back[2] = {a, b};
  BAD(ARRAY, "2 arrays, the batch of the plan", ferrier_plan_execute_fields(plan, FERRIER_ACTION_FORWARD, NULL, 1, from, bytes[1], to, bytes[2]));
  if (bytes[1]) {
    BAD(ARRAY, "the input must have at least", ferrier_plan_execute_fields(plan, FERRIER_ACTION_FORWARD, NULL, 2, from, bytes[1] - 8, to, bytes[2]));
    BAD(ARGUMENT, "overlap each other", ferrier_plan_execute_fields(plan, FERRIER_ACTION_FORWARD, NULL, 2, from, bytes[1], same, bytes[2]));
    BAD(ARGUMENT, "overlaps the input", ferrier_plan_execute_fields(plan, FERRIER_ACTION_FORWARD, NULL, 2, from, bytes[1], back, bytes[1]));
    BAD(ARGUMENT, "`inputs` is NULL", ferrier_plan_execute_fields(plan, FERRIER_ACTION_FORWARD, NULL, 2, NULL, bytes[1], to, bytes[2]));
  }
  OK(ferrier_plan_execute_fields(plan, FERRIER_ACTION_FORWARD, NULL, 2, from, bytes[1], to, bytes[2]));
  // Mode 0 of ones; mode 1 of 0, 1, 2, 3, 4 along axis 2 has a negative imaginary part where the sign is positive.
  ferrier_box box;
  OK(ferrier_plan_box(plan, FERRIER_SIDE_OUTPUT, &box));
  if (bytes[2] && box.lo[0] == 0) TRUE(fabs(c[0] - 60) < 1e-12 && fabs(d[2] + 30) < 1e-9 && d[3] < -1);
  for (uint64_t i = 0; i < bytes[1] / 8; i++) a[i] = b[i] = 0;
  const void *modes[2] = {c, d};
  OK(ferrier_plan_execute_fields(plan, FERRIER_ACTION_BACKWARD, NULL, 2, modes, bytes[2], back, bytes[1]));
  for (uint64_t i = 0; i < bytes[1] / 8; i++) TRUE(fabs(a[i] - 1) < 1e-12 && fabs(b[i] - (double)(i % 5)) < 1e-12);
  free(a);
  free(b);
  free(c);
  free(d);
  OK(ferrier_plan_free(plan));
  OK(ferrier_problem_free(problem));
}

// Ranks that are threads.
static int32_t on_a_rank(void *data, ferrier_comm *comm) {
  uint64_t rank;
  char *text;
  double most[1];
  OK(ferrier_comm_rank(comm, &rank));
  most[0] = (double)rank;
  OK(ferrier_comm_max(comm, most, 1));
  TRUE(most[0] == 2);
  OK(ferrier_comm_json(comm, &text));
  TRUE(strstr(text, "\"threads\""));
  OK(ferrier_string_free(text));
  moves(comm);
  lists(comm);
  return *(int32_t *)data;
}

// A rank that fails: the others do not wait for it.
static int32_t fails(void *data, ferrier_comm *comm) {
  uint64_t rank;
  OK(ferrier_comm_rank(comm, &rank));
  if (rank == 1) return *(int32_t *)data;
  BAD(RANK, "the function returned 7", ferrier_comm_barrier(comm));
  return 0;
}

// What problems tell, and arrays inside larger ones.
static void queries(void) {
  uint64_t shape[3] = {8, 6, 4}, outer[3] = {10, 8, 6}, margin[3] = {1, 1, 1}, modes[8], count, index[3];
  double radii[3] = {2, 2, 2}, *memory;
  ferrier_problem *problem;
  OK(ferrier_problem_c2c(shape, &problem));
  OK(ferrier_problem_keep_lowest(problem, 0, 3));
  OK(ferrier_problem_kept_modes(problem, 0, modes, 8, &count));
  TRUE(count == 3 && modes[0] == 0 && modes[1] == 1 && modes[2] == 7);
  OK(ferrier_problem_kept_modes(problem, 0, NULL, 0, &count));
  BAD(ARGUMENT, "`modes` is NULL", ferrier_problem_kept_modes(problem, 0, NULL, 8, &count));
  BAD(ARGUMENT, "`axis` must be", ferrier_problem_kept_modes(problem, 3, modes, 8, &count));
  BAD(ARGUMENT, "`count` is NULL", ferrier_problem_kept_modes(problem, 0, modes, 8, NULL));
  OK(ferrier_problem_columns(problem, modes, 4, &count));
  TRUE(count == 0);
  OK(ferrier_problem_free(problem));
  OK(ferrier_problem_c2c(shape, &problem));
  OK(ferrier_problem_keep_ellipsoid(problem, radii));
  OK(ferrier_problem_columns(problem, modes, 4, &count));
  TRUE(count > 4);
  OK(ferrier_problem_batch(problem, 0));
  BAD(PROBLEM, "batch", ferrier_problem_check(problem));
  OK(ferrier_problem_free(problem));
  OK(ferrier_problem_c2c_1d(35, &problem));
  OK(ferrier_problem_mode(problem, 34, index));
  TRUE(index[0] == 0 && index[1] == 4 && index[2] == 6);
  BAD(ARGUMENT, "`k` must be less than 35", ferrier_problem_mode(problem, 35, index));
  OK(ferrier_problem_free(problem));

  OK(ferrier_problem_c2c(shape, &problem));
  BAD(ARGUMENT, "`margin` [11, 1, 1] exceeds", ferrier_problem_inside(problem, FERRIER_SIDE_INPUT, outer, (uint64_t[3]){11, 1, 1}));
  OK(ferrier_problem_inside(problem, FERRIER_SIDE_INPUT, outer, margin));
  ferrier_comm *comm;
  ferrier_plan *plan;
  ferrier_draft *draft;
  ferrier_array *array;
  double seconds = 0;
  char *text;
  OK(ferrier_comm_one(&comm));
  OK(ferrier_draft_create(comm, problem, FERRIER_PRECISION_F64, NULL, &draft));
  OK(ferrier_draft_seconds(draft, 0, &seconds));
  TRUE(seconds > 0);
  const char *parts[] = {"recipe", "memory", "notes", "wisdom", "rejected", "machine", "speeds", "messages_between_nodes"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    OK(ferrier_draft_json(draft, parts[i], &text));
    OK(ferrier_string_free(text));
  }
  OK(ferrier_draft_build(draft, 1, &plan));
  OK(ferrier_draft_free(draft));
  OK(ferrier_plan_input_bytes(plan, &count));
  TRUE(count == 16 * (8 * 48 + 6 * 6 + 4 + 1));
  OK(ferrier_plan_make_output(plan, &array));
  OK(ferrier_array_bytes(array, &count));
  memory = calloc(1, count);
  memory[5] = 3;
  BAD(ARRAY, "the data must have at least", ferrier_array_upload(array, memory, count - 1));
  OK(ferrier_array_upload(array, memory, count));
  memory[5] = 0;
  OK(ferrier_array_download(array, memory, count));
  TRUE(memory[5] == 3);
  free(memory);
  OK(ferrier_array_free(array));
  OK(ferrier_plan_free(plan));
  OK(ferrier_cuda_count(&count));
  BAD(ARGUMENT, "`count` is NULL", ferrier_cuda_count(NULL));
  ferrier_options *options;
  OK(ferrier_options_create(&options));
  BAD(ARGUMENT, "`device` must be the number of a GPU", ferrier_options_cuda(options, -2));
  OK(ferrier_options_cuda(options, 0));
  // Without a GPU the error says what is missing.
  if (count == 0) BAD(DEVICE, "", ferrier_plan_create(comm, problem, FERRIER_PRECISION_F64, options, &plan));
  OK(ferrier_options_free(options));
  OK(ferrier_problem_free(problem));
  OK(ferrier_comm_free(comm));
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
  BAD(WISDOM, "there is no wisdom file /nonexistent/from", ferrier_wisdom_merge("/nonexistent/from", "/nonexistent/to"));
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
  lists(comm);
  queries();
  OK(ferrier_comm_free(comm));
  int32_t code = 0;
  OK(ferrier_run_ranks(3, 1, 1, on_a_rank, &code));
  OK(ferrier_run_ranks(3, 3, 1, on_a_rank, &code));
  code = 7;
  BAD(OTHER, "the function returned 7 on rank 1", ferrier_run_ranks(3, 1, 1, fails, &code));
  BAD(ARGUMENT, "`function` is NULL", ferrier_run_ranks(3, 1, 1, NULL, NULL));
  BAD(ARGUMENT, "`ranks` must be from 1", ferrier_run_ranks(0, 1, 1, on_a_rank, NULL));
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
  lists(comm);

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
