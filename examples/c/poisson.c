// Solves laplace(u) = f in a periodic box of side 2 pi, distributed over ranks:
//
//   cc poisson.c -o poisson $(pkg-config --cflags --libs ferrier) -lm && ./poisson
//   mpicc -DWITH_MPI poisson.c -o poisson $(pkg-config --cflags --libs ferrier) -lm && mpiexec -n 4 ./poisson
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

#include "ferrier.h"

enum { N = 48 };

static void check(ferrier_status status, const char *what) {
  if (status == FERRIER_STATUS_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, ferrier_status_name(status), ferrier_last_error());
#ifdef WITH_MPI
  MPI_Abort(MPI_COMM_WORLD, 1);
#endif
  exit(1);
}
#define CHECK(call) check(call, #call)

static double wave(uint64_t i, uint64_t j, uint64_t k) {
  const double h = 2 * 3.14159265358979323846 / N;
  return sin(h * (double)i) * cos(2 * h * (double)j) * sin(3 * h * (double)k);
}

// Divides each mode by -k^2; the mean becomes zero. Called by several threads.
static void inverse_laplacian(void *data, const ferrier_mode_run *run) {
  double *values = run->values;
  (void)data;
  for (uint64_t m = 0; m < run->length; m++) {
    double square = 0;
    for (int axis = 0; axis < 3; axis++) {
      uint64_t index = run->first[axis] + (run->axis == (uint64_t)axis ? m : 0);
      double k = (double)(index <= N / 2 ? index : N - index);
      square += k * k;
    }
    double factor = square == 0 ? 0 : -1 / square;
    values[2 * m] *= factor;
    values[2 * m + 1] *= factor;
  }
}

int main(int argc, char **argv) {
  (void)argc, (void)argv;
  uint64_t shape[3] = {N, N, N}, rank = 0, size = 1, bytes;
  ferrier_comm *comm;
  ferrier_problem *problem;
  ferrier_plan *plan;
  ferrier_operator *op;
  ferrier_box box;
#ifdef WITH_MPI
  MPI_Init(&argc, &argv);
  CHECK(ferrier_comm_from_mpi(MPI_COMM_WORLD, &comm));
#else
  CHECK(ferrier_comm_one(&comm));
#endif
  CHECK(ferrier_comm_rank(comm, &rank));
  CHECK(ferrier_comm_size(comm, &size));

  // Bricks of a real field; where the spectrum lies does not matter here.
  CHECK(ferrier_problem_r2c(shape, &problem));
  CHECK(ferrier_problem_bricks(problem, FERRIER_SIDE_INPUT));
  CHECK(ferrier_problem_unconstrained(problem, FERRIER_SIDE_OUTPUT));
  CHECK(ferrier_problem_operators(problem, 1));
  CHECK(ferrier_plan_create(comm, problem, FERRIER_PRECISION_F64, NULL, &plan));

  CHECK(ferrier_plan_box(plan, FERRIER_SIDE_INPUT, &box));
  CHECK(ferrier_plan_input_bytes(plan, &bytes));
  double *f = malloc(bytes ? bytes : 1), *u = malloc(bytes ? bytes : 1);
  size_t at = 0;
  for (uint64_t i = box.lo[0]; i < box.hi[0]; i++)
    for (uint64_t j = box.lo[1]; j < box.hi[1]; j++)
      for (uint64_t k = box.lo[2]; k < box.hi[2]; k++) f[at++] = -14 * wave(i, j, k);

  // Forward, the operator on every mode, backward, in as few passes over memory as possible.
  CHECK(ferrier_operator_callback(inverse_laplacian, NULL, &op));
  ferrier_call call = FERRIER_CALL_DEFAULT;
  call.op = op;
  CHECK(ferrier_plan_execute(plan, FERRIER_ACTION_APPLY, &call, f, bytes, u, bytes));

  double error = 0;
  at = 0;
  for (uint64_t i = box.lo[0]; i < box.hi[0]; i++)
    for (uint64_t j = box.lo[1]; j < box.hi[1]; j++)
      for (uint64_t k = box.lo[2]; k < box.hi[2]; k++) error = fmax(error, fabs(u[at++] - wave(i, j, k)));
#ifdef WITH_MPI
  MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
#endif
  if (rank == 0) printf("poisson in C: %d^3, %d ranks, largest error %.1e\n", N, (int)size, error);

  free(f);
  free(u);
  ferrier_operator_free(op);
  ferrier_plan_free(plan);
  ferrier_problem_free(problem);
  ferrier_comm_free(comm);
#ifdef WITH_MPI
  MPI_Finalize();
#endif
  return error < 1e-13 ? 0 : 1;
}
