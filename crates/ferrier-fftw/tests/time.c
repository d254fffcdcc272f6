/* Times a complex transform of n^3 points through FFTW's MPI interface, on arrays of fftw_alloc_complex.

     time N natural|transposed in|out CALLS [WISDOM]

   under mpiexec: prints the median of CALLS forward transforms, in ms. Plans are measured, unless the file has wisdom of an
   earlier run. */
#include <fftw3-mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc < 5) return fprintf(stderr, "time N natural|transposed in|out CALLS [WISDOM]\n"), MPI_Abort(MPI_COMM_WORLD, 2);
  fftw_mpi_init();
  int rank, calls = atoi(argv[4]);
  ptrdiff_t n = atol(argv[1]), l0, s0, l1, s1;
  unsigned flags = FFTW_MEASURE | (strcmp(argv[2], "natural") ? FFTW_MPI_TRANSPOSED_OUT : 0);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 5 && rank == 0) fftw_import_wisdom_from_filename(argv[5]);
  fftw_mpi_broadcast_wisdom(MPI_COMM_WORLD);
  ptrdiff_t alloc = fftw_mpi_local_size_3d_transposed(n, n, n, MPI_COMM_WORLD, &l0, &s0, &l1, &s1);
  fftw_complex *in = fftw_alloc_complex((size_t)alloc);
  fftw_complex *out = strcmp(argv[3], "in") ? fftw_alloc_complex((size_t)alloc) : in;
  fftw_plan plan = fftw_mpi_plan_dft_3d(n, n, n, in, out, MPI_COMM_WORLD, FFTW_FORWARD, flags);
  if (!plan) return fprintf(stderr, "no plan\n"), MPI_Abort(MPI_COMM_WORLD, 1);
  fftw_mpi_gather_wisdom(MPI_COMM_WORLD);
  if (argc > 5 && rank == 0) fftw_export_wisdom_to_filename(argv[5]);
  for (ptrdiff_t i = 0; i < l0 * n * n; i++) in[i][0] = (double)(i % 7) * 1e-9, in[i][1] = 0;
  double *ms = malloc((size_t)calls * sizeof(double));
  for (int i = -2; i < calls; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    fftw_execute(plan);
    MPI_Barrier(MPI_COMM_WORLD);
    if (i >= 0) ms[i] = (MPI_Wtime() - begin) * 1e3;
    if (out == in)
      for (ptrdiff_t k = 0; k < l0 * n * n; k++) in[k][0] *= 1e-6, in[k][1] *= 1e-6;
  }
  qsort(ms, (size_t)calls, sizeof(double), ascending);
  if (rank == 0) printf("%.3f\n", ms[calls / 2]);
  fftw_destroy_plan(plan);
  MPI_Finalize();
  return 0;
}
