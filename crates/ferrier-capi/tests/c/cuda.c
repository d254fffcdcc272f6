// Plans on a GPU through C: pointers and a stream of the program's own. Needs a CUDA toolkit and a GPU, so it is not part of
// ./check:
//
//   gcc cuda.c -o cuda $(pkg-config --cflags --libs ferrier) -I$CUDA/include -L$CUDA/lib64 -lcudart -lm && ./cuda
#include <cuda_runtime_api.h>
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
#define CUDA(call) TRUE((call) == cudaSuccess)

// The largest difference, relative to the largest value.
static double difference(const double *a, const double *b, size_t n) {
  double most = 0, scale = 0;
  for (size_t i = 0; i < n; i++) most = fmax(most, fabs(a[i] - b[i])), scale = fmax(scale, fabs(a[i]));
  return most / scale;
}

// Arrays of a batch that were allocated one by one, redistribution, ghost cells and their sums: on a GPU as in main memory.
static void other_objects(ferrier_comm *comm, cudaStream_t stream) {
  uint64_t shape[3] = {12, 10, 8}, bytes, order[3] = {2, 0, 1};
  ferrier_problem *problem;
  ferrier_options *options;
  OK(ferrier_options_create(&options));
  OK(ferrier_options_cuda(options, 0));

  ferrier_plan *cpu, *gpu;
  OK(ferrier_problem_c2c(shape, &problem));
  OK(ferrier_problem_batch(problem, 2));
  OK(ferrier_plan_create(comm, problem, FERRIER_PRECISION_F64, NULL, &cpu));
  OK(ferrier_plan_create(comm, problem, FERRIER_PRECISION_F64, options, &gpu));
  OK(ferrier_plan_field_bytes(gpu, FERRIER_SIDE_INPUT, &bytes));
  double *host[2], *wanted[2], *back = malloc(bytes);
  void *from[2], *to[2];
  for (int i = 0; i < 2; i++) {
    host[i] = malloc(bytes), wanted[i] = malloc(bytes);
    for (size_t k = 0; k < bytes / 8; k++) host[i][k] = sin((double)k * (k + 3 * i));
    CUDA(cudaMalloc(&from[i], bytes));
    CUDA(cudaMalloc(&to[i], bytes));
    CUDA(cudaMemcpy(from[i], host[i], bytes, cudaMemcpyHostToDevice));
  }
  OK(ferrier_plan_set_stream(gpu, stream));
  OK(ferrier_plan_execute_fields(cpu, FERRIER_ACTION_FORWARD, NULL, 2, (const void *const *)host, bytes, (void *const *)wanted, bytes));
  OK(ferrier_plan_execute_fields(gpu, FERRIER_ACTION_FORWARD, NULL, 2, (const void *const *)from, bytes, to, bytes));
  OK(ferrier_plan_execute_fields(gpu, FERRIER_ACTION_FORWARD_IN_PLACE, NULL, 2, NULL, 0, from, bytes));
  OK(ferrier_plan_synchronize(gpu));
  for (int i = 0; i < 2; i++) {
    CUDA(cudaMemcpy(back, to[i], bytes, cudaMemcpyDeviceToHost));
    TRUE(difference(wanted[i], back, bytes / 8) < 1e-14);
    CUDA(cudaMemcpy(back, from[i], bytes, cudaMemcpyDeviceToHost));
    TRUE(difference(wanted[i], back, bytes / 8) < 1e-14);
    CUDA(cudaMemcpy(from[i], host[i], bytes, cudaMemcpyHostToDevice));
  }
  BAD(ARRAY, "must be 2 arrays", ferrier_plan_execute_fields(gpu, FERRIER_ACTION_FORWARD, NULL, 1, (const void *const *)from, bytes, to, bytes));
  OK(ferrier_plan_free(cpu));
  OK(ferrier_plan_free(gpu));
  OK(ferrier_problem_free(problem));

  ferrier_redistribution *slow, *fast;
  uint64_t moved;
  OK(ferrier_problem_redistribute(shape, &problem));
  OK(ferrier_problem_order(problem, FERRIER_SIDE_OUTPUT, order));
  OK(ferrier_redistribution_create(comm, problem, 16, NULL, &slow));
  OK(ferrier_redistribution_create(comm, problem, 16, options, &fast));
  OK(ferrier_redistribution_bytes(fast, FERRIER_SIDE_OUTPUT, &moved));
  TRUE(moved == bytes);
  OK(ferrier_redistribution_set_stream(fast, stream));
  BAD(ARGUMENT, "is not on a GPU", ferrier_redistribution_set_stream(slow, stream));
  BAD(ARGUMENT, "is not on a GPU", ferrier_redistribution_synchronize(slow));
  OK(ferrier_redistribution_run(slow, host[0], bytes, wanted[0], bytes));
  OK(ferrier_redistribution_run(fast, from[0], bytes, to[0], bytes));
  BAD(ARRAY, "the output must have at least", ferrier_redistribution_run(fast, from[0], bytes, to[0], bytes - 16));
  OK(ferrier_redistribution_run_in_place(fast, from[0], bytes));
  OK(ferrier_redistribution_synchronize(fast));
  CUDA(cudaMemcpy(back, to[0], bytes, cudaMemcpyDeviceToHost));
  TRUE(memcmp(wanted[0], back, bytes) == 0);
  CUDA(cudaMemcpy(back, from[0], bytes, cudaMemcpyDeviceToHost));
  TRUE(memcmp(wanted[0], back, bytes) == 0);
  ferrier_array *array;
  OK(ferrier_redistribution_make(fast, FERRIER_SIDE_INPUT, &array));
  OK(ferrier_array_upload(array, host[1], bytes));
  OK(ferrier_array_download(array, back, bytes));
  TRUE(memcmp(host[1], back, bytes) == 0);
  OK(ferrier_array_free(array));
  OK(ferrier_redistribution_free(slow));
  OK(ferrier_redistribution_free(fast));

  ferrier_ghosts ghosts = FERRIER_GHOSTS_DEFAULT;
  for (int axis = 0; axis < 3; axis++) ghosts.low[axis] = 1, ghosts.high[axis] = 2, ghosts.periodic[axis] = 1;
  ferrier_halo *halo, *device_halo;
  ferrier_ghost_sum *sum, *device_sum;
  OK(ferrier_halo_create(comm, problem, FERRIER_SIDE_INPUT, 8, &ghosts, &halo));
  OK(ferrier_ghost_sum_create(comm, problem, FERRIER_SIDE_INPUT, FERRIER_ELEMENT_F64, &ghosts, &sum));
  BAD(ARGUMENT, "is not on a GPU", ferrier_halo_synchronize(halo));
  BAD(ARGUMENT, "is not on a GPU", ferrier_ghost_sum_synchronize(sum));
  ghosts.device = 99;
  BAD(DEVICE, "99", ferrier_halo_create(comm, problem, FERRIER_SIDE_INPUT, 8, &ghosts, &device_halo));
  ghosts.device = 0;
  OK(ferrier_halo_create(comm, problem, FERRIER_SIDE_INPUT, 8, &ghosts, &device_halo));
  OK(ferrier_ghost_sum_create(comm, problem, FERRIER_SIDE_INPUT, FERRIER_ELEMENT_F64, &ghosts, &device_sum));
  OK(ferrier_halo_set_stream(device_halo, stream));
  OK(ferrier_ghost_sum_set_stream(device_sum, stream));
  OK(ferrier_halo_bytes(device_halo, &bytes));
  double *field = malloc(bytes), *got = malloc(bytes);
  for (size_t k = 0; k < bytes / 8; k++) field[k] = sin((double)k * k);
  OK(ferrier_halo_make(device_halo, &array));
  OK(ferrier_array_upload(array, field, bytes));
  void *data;
  OK(ferrier_array_data(array, &data));
  void *own[1] = {field}, *on_gpu[1] = {data};
  OK(ferrier_halo_exchange(halo, own, 1, bytes));
  OK(ferrier_halo_start(device_halo, on_gpu, 1, bytes));
  BAD(ARGUMENT, "is in flight", ferrier_halo_exchange(device_halo, on_gpu, 1, bytes));
  OK(ferrier_halo_finish(device_halo));
  OK(ferrier_halo_synchronize(device_halo));
  OK(ferrier_array_download(array, got, bytes));
  TRUE(memcmp(field, got, bytes) == 0);
  OK(ferrier_halo_exchange(device_halo, on_gpu, 1, bytes));
  OK(ferrier_ghost_sum_run(sum, own, 1, bytes));
  OK(ferrier_ghost_sum_run(device_sum, on_gpu, 1, bytes));
  OK(ferrier_ghost_sum_synchronize(device_sum));
  OK(ferrier_array_download(array, got, bytes));
  TRUE(memcmp(field, got, bytes) == 0);
  BAD(ARRAY, "the field must have at least", ferrier_halo_exchange(device_halo, on_gpu, 1, bytes - 8));
  OK(ferrier_array_free(array));
  OK(ferrier_halo_free(halo));
  OK(ferrier_halo_free(device_halo));
  OK(ferrier_ghost_sum_free(sum));
  OK(ferrier_ghost_sum_free(device_sum));
  OK(ferrier_problem_free(problem));
  OK(ferrier_options_free(options));
}

int main(void) {
  uint64_t shape[3] = {48, 40, 36}, gpus, input_bytes, output_bytes, bytes;
  ferrier_comm *comm;
  ferrier_problem *problem;
  ferrier_options *options;
  ferrier_plan *cpu, *gpu;
  char *text;
  OK(ferrier_cuda_count(&gpus));
  TRUE(gpus > 0);
  OK(ferrier_comm_one(&comm));
  OK(ferrier_problem_r2c(shape, &problem));
  OK(ferrier_problem_operators(problem, 1));
  OK(ferrier_options_create(&options));
  OK(ferrier_options_cuda(options, 99));
  BAD(DEVICE, "99", ferrier_plan_create(comm, problem, FERRIER_PRECISION_F64, options, &gpu));
  OK(ferrier_options_cuda(options, 0));
  OK(ferrier_plan_create(comm, problem, FERRIER_PRECISION_F64, NULL, &cpu));
  OK(ferrier_plan_create(comm, problem, FERRIER_PRECISION_F64, options, &gpu));
  OK(ferrier_plan_input_bytes(gpu, &input_bytes));
  OK(ferrier_plan_output_bytes(gpu, &output_bytes));
  OK(ferrier_plan_notes(gpu, &text));
  OK(ferrier_string_free(text));

  double *field = malloc(input_bytes), *back = calloc(1, input_bytes);
  double *modes = malloc(output_bytes), *from_gpu = calloc(1, output_bytes);
  for (size_t i = 0; i < input_bytes / 8; i++) field[i] = sin((double)i * i);
  OK(ferrier_plan_forward(cpu, field, input_bytes, modes, output_bytes));

  // The program's own memory and stream.
  void *d_field, *d_modes;
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaMalloc(&d_field, input_bytes));
  CUDA(cudaMalloc(&d_modes, output_bytes));
  OK(ferrier_plan_set_stream(gpu, stream));
  CUDA(cudaMemcpyAsync(d_field, field, input_bytes, cudaMemcpyHostToDevice, stream));
  OK(ferrier_plan_forward(gpu, d_field, input_bytes, d_modes, output_bytes));
  CUDA(cudaMemcpyAsync(from_gpu, d_modes, output_bytes, cudaMemcpyDeviceToHost, stream));
  CUDA(cudaStreamSynchronize(stream));
  TRUE(difference(modes, from_gpu, output_bytes / 8) < 1e-14);
  CUDA(cudaMemsetAsync(d_field, 0, input_bytes, stream));
  OK(ferrier_plan_backward(gpu, d_modes, output_bytes, d_field, input_bytes));
  OK(ferrier_plan_synchronize(gpu));
  CUDA(cudaMemcpy(back, d_field, input_bytes, cudaMemcpyDeviceToHost));
  TRUE(difference(field, back, input_bytes / 8) < 1e-14);

  // A scale and an operator, on both.
  ferrier_operator *op;
  double lengths[3] = {1, 1, 1}, *applied = malloc(input_bytes);
  ferrier_call call = FERRIER_CALL_DEFAULT;
  OK(ferrier_operator_named(gpu, "gaussian", lengths, (double[1]){0.1}, 1, &op));
  call.op = op;
  call.scale = 0.5;
  OK(ferrier_plan_execute(cpu, FERRIER_ACTION_APPLY, &call, field, input_bytes, applied, input_bytes));
  void *d_applied;
  CUDA(cudaMalloc(&d_applied, input_bytes));
  OK(ferrier_plan_execute(gpu, FERRIER_ACTION_APPLY, &call, d_field, input_bytes, d_applied, input_bytes));
  OK(ferrier_plan_synchronize(gpu));
  CUDA(cudaMemcpy(back, d_applied, input_bytes, cudaMemcpyDeviceToHost));
  TRUE(difference(applied, back, input_bytes / 8) < 1e-13);
  OK(ferrier_operator_free(op));

  // Arrays of the plan, in place.
  ferrier_array *array;
  void *data;
  OK(ferrier_plan_make_in_place(gpu, &array));
  OK(ferrier_array_data(array, &data));
  OK(ferrier_array_bytes(array, &bytes));
  double *rows = calloc(1, bytes), *rows_back = calloc(1, bytes);
  for (uint64_t row = 0; row < shape[0] * shape[1]; row++)
    memcpy(rows + row * (shape[2] + 2), field + row * shape[2], shape[2] * sizeof(double));
  OK(ferrier_array_upload(array, rows, bytes));
  OK(ferrier_plan_forward_in_place(gpu, data, bytes));
  OK(ferrier_array_download(array, rows_back, bytes));
  TRUE(difference(modes, rows_back, output_bytes / 8) < 1e-14);
  OK(ferrier_plan_backward_in_place(gpu, data, bytes));
  OK(ferrier_array_download(array, rows_back, bytes));
  TRUE(fabs(rows_back[shape[2] + 5] - rows[shape[2] + 5]) < 1e-13);
  OK(ferrier_array_free(array));

  // What a GPU does not have.
  ferrier_workspace *workspace;
  BAD(UNSUPPORTED, "their own workspace", ferrier_plan_make_workspace(gpu, &workspace));
  OK(ferrier_plan_make_workspace(cpu, &workspace));
  call = (ferrier_call)FERRIER_CALL_DEFAULT;
  call.workspace = workspace;
  BAD(ARGUMENT, "is in main memory", ferrier_plan_execute(gpu, FERRIER_ACTION_FORWARD, &call, d_field, input_bytes, d_modes, output_bytes));
  BAD(ARRAY, "the input must have at least", ferrier_plan_forward(gpu, d_field, input_bytes - 8, d_modes, output_bytes));
  BAD(ARGUMENT, "`output` is NULL", ferrier_plan_forward(gpu, d_field, input_bytes, NULL, output_bytes));
  OK(ferrier_workspace_free(workspace));
  other_objects(comm, stream);

  OK(ferrier_plan_free(gpu));
  OK(ferrier_plan_free(cpu));
  OK(ferrier_options_free(options));
  OK(ferrier_problem_free(problem));
  OK(ferrier_comm_free(comm));
  CUDA(cudaStreamDestroy(stream));
  cudaFree(d_field);
  cudaFree(d_modes);
  cudaFree(d_applied);
  printf("GPU through C: %s\n", failures ? "failed" : "ok");
  return failures != 0;
}
