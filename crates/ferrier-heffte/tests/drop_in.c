/* heffte_c.h on any number of ranks: a plane wave has one mode, and transforms back are what they were. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "heffte.h"

static int rank, ranks, failures;

static void expect(int right, const char *what) {
  if (right) return;
  failures++;
  fprintf(stderr, "rank %d: %s\n", rank, what);
}

/* Slabs along dimension 2 of a box of 4 x 6 x n. */
static void slab(int n, int low[3], int high[3]) {
  low[0] = low[1] = 0;
  high[0] = 3;
  high[1] = 5;
  low[2] = rank * n / ranks;
  high[2] = (rank + 1) * n / ranks - 1;
}

/* The wave of mode (1, 2, 3); the array has `width` numbers for each element. */
static void wave(double *data, const int low[3], const int high[3], int width) {
  size_t at = 0;
  for (int k = low[2]; k <= high[2]; k++)
    for (int j = 0; j < 6; j++)
      for (int i = 0; i < 4; i++, at++) {
        double phase = 2 * acos(-1.0) * (i / 4.0 + 2 * j / 6.0 + 3 * k / 8.0);
        data[width * at] = cos(phase);
        if (width == 2) data[2 * at + 1] = sin(phase);
      }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int low[3], high[3], half_low[3], half_high[3];
  slab(8, low, high);
  slab(5, half_low, half_high);
  heffte_plan plan;
  heffte_plan_options options;
  expect(heffte_set_default_options(Heffte_BACKEND_FFTW, &options) == Heffte_SUCCESS && options.use_pencils, "options");
  expect(heffte_plan_create(77, low, high, NULL, low, high, NULL, MPI_COMM_WORLD, NULL, &plan) == 1, "unknown backend");

  for (int r2c = 0; r2c < 2; r2c++) {
    int width = r2c ? 1 : 2, status;
    if (r2c)
      status = heffte_plan_create_r2c(Heffte_BACKEND_STOCK, low, high, NULL, half_low, half_high, NULL, 2, MPI_COMM_WORLD,
                                      &options, &plan);
    else
      status = heffte_plan_create(Heffte_BACKEND_FFTW, low, high, NULL, low, high, NULL, MPI_COMM_WORLD, NULL, &plan);
    expect(status == Heffte_SUCCESS, "plan");
    if (status) MPI_Abort(MPI_COMM_WORLD, 1);
    size_t inside = (size_t)heffte_size_inbox(plan), outside = (size_t)heffte_size_outbox(plan);
    expect(inside == (size_t)(24 * (high[2] - low[2] + 1)), "inbox");
    expect(heffte_is_r2c(plan) == r2c, "is_r2c");
    double *input = malloc(width * inside * sizeof(double) + 1), *back = malloc(width * inside * sizeof(double) + 1);
    double *modes = malloc(2 * outside * sizeof(double) + 1);
    double *work = malloc(2 * sizeof(double) * (size_t)heffte_size_workspace(plan) + 1);
    wave(input, low, high, width);
    if (r2c)
      heffte_forward_d2z(plan, input, modes, Heffte_SCALE_FULL);
    else
      heffte_forward_z2z_buffered(plan, input, modes, work, Heffte_SCALE_FULL);
    /* The wave of mode (1, 2, 3) is half of that of (3, 4, 5), which is redundant, where it is real. */
    int first = r2c ? half_low[2] : low[2];
    for (size_t at = 0; at < outside; at++) {
      int is_mode = at % 4 == 1 && at / 4 % 6 == 2 && at / 24 + (size_t)first == 3;
      expect(fabs(modes[2 * at] - (is_mode ? (r2c ? 0.5 : 1.0) : 0.0)) < 1e-14 && fabs(modes[2 * at + 1]) < 1e-14, "mode");
    }
    if (r2c)
      heffte_backward_z2d_buffered(plan, modes, back, work, Heffte_SCALE_NONE);
    else
      heffte_backward_z2z(plan, modes, back, Heffte_SCALE_NONE);
    for (size_t at = 0; at < width * inside; at++) expect(fabs(back[at] - input[at]) < 1e-14, "backward");
    expect(heffte_plan_destroy(plan) == Heffte_SUCCESS, "destroy");
    free(input);
    free(back);
    free(modes);
    free(work);
  }
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%s\n", failures ? "failures" : "all right");
  MPI_Finalize();
  return failures != 0;
}
