/* Random transforms through FFTW's MPI interface, to be run with two libraries and compared.

     compare run SEED FIRST COUNT FOLDER    under mpiexec: writes FOLDER/rank.R: sizes, whether there is a plan, results
     compare diff FOLDER FOLDER RANKS       compares two such folders; exit status 1 where they differ

   Numbers of local_size and results must agree; the second folder may have a plan where the first has none. Input is a
   function of rank and offset, and results are compared by rank and offset, so layouts are compared too. 1-D transforms
   are compared by global index, since there the blocks may differ. */
#ifndef R

#include <fftw3-mpi.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static FILE *record;
static uint64_t state;

static unsigned below(unsigned n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((state >> 33) % n);
}

static double value(uint64_t at) {
  at = (at + 1) * 0x9E3779B97F4A7C15u;
  at ^= at >> 29;
  at *= 0xBF58476D1CE4E5B9u;
  at ^= at >> 32;
  return (double)(at % 20001) / 10000.0 - 1.0;
}

/* What both precisions do. */
typedef struct {
  int kind, rnk, sign, in_place, plain, new_arrays, kinds[5];
  ptrdiff_t n[5], howmany, block[2];
  unsigned flags;
} Case;

enum { DFT, R2C, C2R, R2R, TRANSPOSE, LINE, KINDS };

static Case draw(uint64_t seed) {
  static const ptrdiff_t most[] = {0, 60, 14, 11, 5, 3};
  static const char *names[] = {"dft", "r2c", "c2r", "r2r", "transpose", "line"};
  Case c;
  memset(&c, 0, sizeof c);
  state = seed * 7919 + 17;
  for (int i = 0; i < 8; i++) below(2);
  c.kind = (int)below(KINDS);
  c.rnk = c.kind == TRANSPOSE ? 2 : c.kind == LINE ? 1 : 2 + (int)below(3);
  if (below(3)) c.rnk = c.rnk == 4 ? 3 : c.rnk;
  /* FFTW 3.3.10 gives wrong results or ends where axis 0 or 1, or a line, has one point. */
  for (int i = 0; i < c.rnk; i++) c.n[i] = (i < 2 ? 2 : 1) + below((unsigned)most[c.rnk]);
  c.howmany = below(3) ? 1 : 1 + below(4);
  c.sign = below(2) ? FFTW_FORWARD : FFTW_BACKWARD;
  c.in_place = (int)below(2);
  c.new_arrays = below(3) == 0;
  c.flags = below(4) ? FFTW_ESTIMATE : FFTW_MEASURE;
  for (int i = 0; i < c.rnk; i++) {
    /* FFTW_REDFT00 to FFTW_RODFT11; the first needs two points. */
    c.kinds[i] = 3 + (int)below(8);
    if (c.kinds[i] == 3 && c.n[i] < 2) c.n[i] = 2;
  }
  int tin = below(3) == 0, tout = below(3) == 0;
  if (c.kind == R2C) tin = 0;
  if (c.kind == C2R) tout = 0;
  if (c.kind == LINE) {
    tin = tout = 0;
    if (below(3) == 0) c.flags |= c.sign == FFTW_FORWARD ? FFTW_MPI_SCRAMBLED_OUT : FFTW_MPI_SCRAMBLED_IN;
  }
  if (tin) c.flags |= FFTW_MPI_TRANSPOSED_IN;
  if (tout) c.flags |= FFTW_MPI_TRANSPOSED_OUT;
  for (int i = 0; i < 2 && c.kind != LINE; i++) {
    ptrdiff_t n = c.n[i];
    if ((c.kind == R2C || c.kind == C2R) && i == c.rnk - 1) n = n / 2 + 1;
    c.block[i] = below(3) ? 0 : (n + ranks - 1) / ranks + below(3);
    /* FFTW 3.3.10 does not transpose where axis 1 is one block, and its numbers and plans differ then. */
    if (i == 1 && c.block[i] >= n) c.block[i] = 0;
  }
  c.plain = c.howmany == 1 && !c.block[0] && !c.block[1];
  fprintf(record, "case %llu %s", (unsigned long long)seed, names[c.kind]);
  for (int i = 0; i < c.rnk; i++) fprintf(record, "%c%td", i ? 'x' : ' ', c.n[i]);
  fprintf(record, " howmany %td blocks %td,%td sign %d flags %x %s\n", c.howmany, c.block[0], c.block[1], c.sign, c.flags,
          c.in_place ? "in place" : "out of place");
  fflush(record);
  return c;
}

#define TWICE
#define R double
#define X(name) fftw_##name
#define NAME(name) name##_double
#include "compare.c"
#undef R
#undef X
#undef NAME
#define R float
#define X(name) fftwf_##name
#define NAME(name) name##_float
#include "compare.c"

static char line[2][1 << 22];

static int differ(const char *a, const char *b, int ranks_of_both) {
  int bad = 0, cases = 0, plans = 0, extra = 0;
  for (int r = 0; r < ranks_of_both; r++) {
    char name[2][4096], current[4096] = "";
    snprintf(name[0], sizeof name[0], "%s/rank.%d", a, r);
    snprintf(name[1], sizeof name[1], "%s/rank.%d", b, r);
    FILE *file[2] = {fopen(name[0], "r"), fopen(name[1], "r")};
    if (!file[0] || !file[1]) return printf("cannot read %s or %s\n", name[0], name[1]), 1;
    for (;;) {
      char *got[2] = {fgets(line[0], sizeof line[0], file[0]), fgets(line[1], sizeof line[1], file[1])};
      if (!got[0] && !got[1]) break;
      if (!got[0] || !got[1]) {
        printf("rank %d: one file ends early, after %s\n", r, current);
        return 1;
      }
      if (!strncmp(line[0], "case ", 5)) snprintf(current, sizeof current, "%.4000s", line[0]), cases++;
      if (!strncmp(line[0], "data ", 5) && !strncmp(line[1], "data ", 5)) {
        /* Values, after the precision and the sum of magnitudes that a result can have. */
        char *at[2] = {line[0] + 5, line[1] + 5};
        double tolerance = strtod(at[0], &at[0]);
        strtod(at[1], &at[1]);
        double error = 0, most = 0;
        long i = 0;
        for (;; i++) {
          char *end[2];
          double v = strtod(at[0], &end[0]), w = strtod(at[1], &end[1]);
          if ((end[0] == at[0]) != (end[1] == at[1])) error = INFINITY;
          if (end[0] == at[0] || end[1] == at[1]) break;
          if (!(fabs(v - w) <= error)) error = fabs(v - w);
          if (fabs(v) > most) most = fabs(v);
          at[0] = end[0], at[1] = end[1];
        }
        plans++;
        if (!(error <= tolerance * (most + 1)) && bad++ < 20)
          printf("rank %d: results differ by %g (largest %g)\n  %s", r, error, most, current);
      } else if (!strncmp(line[0], "none", 4) && !strncmp(line[1], "data ", 5)) {
        extra++;
      } else if (!strncmp(line[0], "line ", 5) && !strncmp(line[1], "line ", 5)) {
        if (atoll(line[1] + 5) < atoll(line[0] + 5) && bad++ < 20)
          printf("rank %d: %s elements to allocate, but FFTW says %s  %s", r, line[1] + 5, line[0] + 5, current);
      } else if (!strncmp(line[0], "beyond ", 7) && !strncmp(line[1], "beyond 0", 8)) {
      } else if (strcmp(line[0], line[1]) && bad++ < 20) {
        printf("rank %d: %.200s   and: %.200s  in %s", r, line[0], line[1], current);
      }
    }
    fclose(file[0]);
    fclose(file[1]);
  }
  printf("%d ranks: %d cases, %d results compared, %d plans that only the second library has, %d differences\n",
         ranks_of_both, cases / ranks_of_both, plans, extra, bad);
  return bad != 0;
}

int main(int argc, char **argv) {
  if (argc == 5 && !strcmp(argv[1], "diff")) return differ(argv[2], argv[3], atoi(argv[4]));
  if (argc != 6 || strcmp(argv[1], "run")) return fprintf(stderr, "compare run SEED FIRST COUNT FOLDER\n"), 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  fftw_mpi_init();
  fftwf_mpi_init();
  char name[4096];
  snprintf(name, sizeof name, "%s/rank.%d", argv[5], rank);
  record = fopen(name, "w");
  if (!record) return perror(name), MPI_Abort(MPI_COMM_WORLD, 2);
  uint64_t seed = strtoull(argv[2], NULL, 10) * 1000003, first = strtoull(argv[3], NULL, 10);
  for (uint64_t i = first; i < first + strtoull(argv[4], NULL, 10); i++) {
    Case c = draw(seed + i);
    (c.kind == LINE ? (i % 3 == 0 ? line_float : line_double) : (i % 3 == 0 ? many_float : many_double))(&c);
  }
  fclose(record);
  fftw_mpi_cleanup();
  fftwf_mpi_cleanup();
  MPI_Finalize();
  return 0;
}

#else /* For each precision. */

/* The twins that Fortran calls; no header of C declares them. */
X(plan) X(mpi_plan_dft_3d_f03)(ptrdiff_t, ptrdiff_t, ptrdiff_t, X(complex) *, X(complex) *, MPI_Fint, int, unsigned);
ptrdiff_t X(mpi_local_size_3d_f03)(ptrdiff_t, ptrdiff_t, ptrdiff_t, MPI_Fint, ptrdiff_t *, ptrdiff_t *);

static void NAME(print)(const R *values, size_t count) {
  for (size_t i = 0; i < count; i++) fprintf(record, " %.9g", (double)values[i]);
}

/* The elements of an array whose rows of `row` scalars are `stride` apart. */
static void NAME(rows)(R *array, ptrdiff_t rows, ptrdiff_t row, ptrdiff_t stride, int print) {
  for (ptrdiff_t i = 0; i < rows; i++)
    if (print) NAME(print)(array + i * stride, (size_t)row);
    else
      for (ptrdiff_t j = 0; j < row; j++)
        array[i * stride + j] = (R)value(((uint64_t)rank << 40) + (uint64_t)(i * row + j));
}

static X(plan) NAME(plan)(const Case *c, int kind, int sign, unsigned flags, R *in, R *out) {
  const ptrdiff_t *n = c->n;
  /* Blocks are those of axes 0 and 1. */
  ptrdiff_t b0 = flags & FFTW_MPI_TRANSPOSED_IN ? c->block[1] : c->block[0];
  ptrdiff_t b1 = flags & FFTW_MPI_TRANSPOSED_OUT ? c->block[1] : c->block[0];
  X(complex) *cin = (X(complex) *)in, *cout = (X(complex) *)out;
  MPI_Comm w = MPI_COMM_WORLD;
  X(r2r_kind) kinds[5];
  for (int i = 0; i < c->rnk; i++) kinds[i] = (X(r2r_kind))c->kinds[i];
  if (c->plain && c->new_arrays && kind == DFT && c->rnk == 3)
    return X(mpi_plan_dft_3d_f03)(n[0], n[1], n[2], cin, cout, MPI_Comm_c2f(w), sign, flags);
  switch (kind * 4 + (c->plain && c->rnk <= 3 ? c->rnk : 0)) {
  case DFT * 4 + 2: return X(mpi_plan_dft_2d)(n[0], n[1], cin, cout, w, sign, flags);
  case DFT * 4 + 3: return X(mpi_plan_dft_3d)(n[0], n[1], n[2], cin, cout, w, sign, flags);
  case DFT * 4: return X(mpi_plan_many_dft)(c->rnk, n, c->howmany, b0, b1, cin, cout, w, sign, flags);
  case R2C * 4 + 2: return X(mpi_plan_dft_r2c_2d)(n[0], n[1], in, cout, w, flags);
  case R2C * 4 + 3: return X(mpi_plan_dft_r2c_3d)(n[0], n[1], n[2], in, cout, w, flags);
  case R2C * 4: return X(mpi_plan_many_dft_r2c)(c->rnk, n, c->howmany, b0, b1, in, cout, w, flags);
  case C2R * 4 + 2: return X(mpi_plan_dft_c2r_2d)(n[0], n[1], cin, out, w, flags);
  case C2R * 4 + 3: return X(mpi_plan_dft_c2r_3d)(n[0], n[1], n[2], cin, out, w, flags);
  case C2R * 4: return X(mpi_plan_many_dft_c2r)(c->rnk, n, c->howmany, b0, b1, cin, out, w, flags);
  case R2R * 4 + 2: return X(mpi_plan_r2r_2d)(n[0], n[1], in, out, w, kinds[0], kinds[1], flags);
  case R2R * 4 + 3: return X(mpi_plan_r2r_3d)(n[0], n[1], n[2], in, out, w, kinds[0], kinds[1], kinds[2], flags);
  case R2R * 4: return X(mpi_plan_many_r2r)(c->rnk, n, c->howmany, b0, b1, in, out, w, kinds, flags);
  case TRANSPOSE * 4 + 2: return X(mpi_plan_transpose)(n[0], n[1], in, out, w, flags);
  default: return X(mpi_plan_many_transpose)(n[0], n[1], c->howmany, c->block[0], c->block[1], in, out, w, flags);
  }
}

static void NAME(run)(const Case *c, int kind, X(plan) plan, R *in, R *out) {
  if (!c->new_arrays || kind == TRANSPOSE) X(execute)(plan);
  else if (kind == DFT) X(mpi_execute_dft)(plan, (X(complex) *)in, (X(complex) *)out);
  else if (kind == R2C) X(mpi_execute_dft_r2c)(plan, in, (X(complex) *)out);
  else if (kind == C2R) X(mpi_execute_dft_c2r)(plan, (X(complex) *)in, out);
  else X(mpi_execute_r2r)(plan, in, out);
}

/* One end of a transform on this rank: rows of `row` scalars, `stride` apart. */
typedef struct {
  ptrdiff_t rows, row, stride;
} NAME(End);

static NAME(End) NAME(end)(const Case *c, int transposed, int real, ptrdiff_t l0, ptrdiff_t l1) {
  int halved = c->kind == R2C || c->kind == C2R, last = c->rnk - 1;
  ptrdiff_t dims[5];
  memcpy(dims, c->n, sizeof dims);
  if (halved && !real) dims[last] = dims[last] / 2 + 1;
  ptrdiff_t width = real ? 1 : 2, stride, rows = 1;
  dims[0] = transposed ? l1 : l0;
  if (transposed) dims[1] = c->n[0];
  for (int i = 0; i < last; i++) rows *= dims[i];
  stride = halved && real ? (dims[last] / 2 + 1) * 2 : dims[last] * width;
  NAME(End) end = {rows, dims[last] * width * c->howmany, stride * c->howmany};
  if (c->kind == TRANSPOSE) {
    /* Transposed on the rank: n1 x l0, or n0 x l1. */
    end.rows = 1;
    end.row = end.stride = rows * dims[last] * c->howmany;
  }
  return end;
}

static void NAME(many)(const Case *c) {
  ptrdiff_t n[5], l0, s0, l1, s1, m0, t0;
  int halved = c->kind == R2C || c->kind == C2R, real_kind = c->kind == R2R || c->kind == TRANSPOSE;
  memcpy(n, c->n, sizeof n);
  if (halved) n[c->rnk - 1] = n[c->rnk - 1] / 2 + 1;
  ptrdiff_t alloc = X(mpi_local_size_many_transposed)(c->rnk, n, c->howmany, c->block[0], c->block[1], MPI_COMM_WORLD, &l0,
                                                      &s0, &l1, &s1);
  ptrdiff_t other = X(mpi_local_size_many)(c->rnk, n, c->howmany, c->block[0], MPI_COMM_WORLD, &m0, &t0);
  fprintf(record, "size %td %td %td %td %td; %td %td %td\n", alloc, l0, s0, l1, s1, other, m0, t0);
  if (c->plain && c->rnk == 3) {
    alloc = X(mpi_local_size_3d_transposed)(n[0], n[1], n[2], MPI_COMM_WORLD, &l0, &s0, &l1, &s1);
    other = X(mpi_local_size_3d_f03)(n[0], n[1], n[2], MPI_Comm_c2f(MPI_COMM_WORLD), &m0, &t0);
    fprintf(record, "size %td %td %td %td %td; %td %td %td\n", alloc, l0, s0, l1, s1, other, m0, t0);
  }
  if (alloc < other) alloc = other;
  /* With transposed input and output and axis 0 in one block, FFTW 3.3.10 writes beyond what it asks for. */
  ptrdiff_t all = c->howmany;
  for (int i = 0; i < c->rnk; i++) all *= n[i];
  size_t asked = (size_t)(alloc * (real_kind ? 1 : 2)), room = asked + (size_t)all * 2;
  R *in = X(alloc_real)(room), *out = c->in_place ? in : X(alloc_real)(room), *spectrum = in;
  memset(in, 0, room * sizeof(R));
  memset(out, 0, room * sizeof(R));
  int tin = (c->flags & FFTW_MPI_TRANSPOSED_IN) != 0, tout = (c->flags & FFTW_MPI_TRANSPOSED_OUT) != 0;
  NAME(End) from = NAME(end)(c, c->kind == TRANSPOSE ? 0 : tin, real_kind || c->kind == R2C, l0, l1);
  NAME(End) to = NAME(end)(c, c->kind == TRANSPOSE ? 1 : tout, real_kind || c->kind == C2R, l0, l1);
  if (c->kind == C2R) {
    /* A spectrum of real values. */
    NAME(End) real = NAME(end)(c, 0, 1, l0, l1);
    R *field = X(alloc_real)(room);
    spectrum = X(alloc_real)(room);
    memset(field, 0, room * sizeof(R));
    NAME(rows)(field, real.rows, real.row, real.stride, 0);
    X(plan) plan = NAME(plan)(c, R2C, 0, FFTW_ESTIMATE | (tin ? FFTW_MPI_TRANSPOSED_OUT : 0), field, spectrum);
    if (plan) X(execute)(plan);
    else memset(spectrum, 0, room * sizeof(R));
    X(destroy_plan)(plan);
    X(free)(field);
  } else {
    NAME(rows)(in, from.rows, from.row, from.stride, 0);
  }
  X(plan) plan = NAME(plan)(c, c->kind, c->sign, c->flags, in, out);
  if (c->kind == C2R) {
    memcpy(in, spectrum, asked * sizeof(R));
    X(free)(spectrum);
  } else if (c->flags & FFTW_ESTIMATE) {
    /* The arrays are as they were. */
    int changed = 0;
    for (ptrdiff_t i = 0; i < from.rows; i++)
      for (ptrdiff_t j = 0; j < from.row; j++)
        changed |= in[i * from.stride + j] != (R)value(((uint64_t)rank << 40) + (uint64_t)(i * from.row + j));
    fprintf(record, "changed %d\n", changed);
  } else {
    NAME(rows)(in, from.rows, from.row, from.stride, 0);
  }
  if (!plan) {
    fprintf(record, "none\nbeyond 0\n");
  } else {
    NAME(run)(c, c->kind, plan, in, out);
    fprintf(record, "data %g", sizeof(R) == 4 ? 3e-5 : 1e-8);
    NAME(rows)(out, to.rows, to.row, to.stride, 1);
    fprintf(record, "\n");
    int beyond = 0;
    for (size_t i = asked; i < room; i++) beyond |= in[i] != 0 || out[i] != 0;
    fprintf(record, "beyond %d\n", beyond);
    X(destroy_plan)(plan);
  }
  if (out != in) X(free)(out);
  X(free)(in);
}

/* A line: the spectrum by global index, or there and back in scrambled order. */
static void NAME(line)(const Case *c) {
  ptrdiff_t ni, si, no, so, n = c->n[0], h = c->howmany;
  int scrambled = (c->flags & (FFTW_MPI_SCRAMBLED_IN | FFTW_MPI_SCRAMBLED_OUT)) != 0;
  int sign = scrambled ? FFTW_FORWARD : c->sign;
  unsigned flags = (c->flags & FFTW_ESTIMATE) | (scrambled ? FFTW_MPI_SCRAMBLED_OUT : 0);
  ptrdiff_t alloc = X(mpi_local_size_many_1d)(n, h, MPI_COMM_WORLD, sign, flags, &ni, &si, &no, &so);
  fprintf(record, "line %td\n", alloc);
  if (scrambled) {
    ptrdiff_t more = X(mpi_local_size_many_1d)(n, h, MPI_COMM_WORLD, FFTW_BACKWARD, FFTW_MPI_SCRAMBLED_IN, &ni, &si, &no, &so);
    if (alloc < more) alloc = more;
    X(mpi_local_size_many_1d)(n, h, MPI_COMM_WORLD, sign, flags, &ni, &si, &no, &so);
  }
  alloc += n * h;
  X(complex) *in = X(alloc_complex)((size_t)alloc), *out = c->in_place ? in : X(alloc_complex)((size_t)alloc);
  X(plan) plan = h == 1 ? X(mpi_plan_dft_1d)(n, in, out, MPI_COMM_WORLD, sign, flags)
                        : X(mpi_plan_many_dft)(1, &n, h, 0, 0, in, out, MPI_COMM_WORLD, sign, flags);
  for (ptrdiff_t i = 0; i < ni * h; i++) {
    in[i][0] = (R)value((uint64_t)(2 * (si * h + i)));
    in[i][1] = (R)value((uint64_t)(2 * (si * h + i) + 1));
  }
  double *mine = calloc((size_t)(2 * n * h), sizeof(double)), *all = calloc((size_t)(2 * n * h), sizeof(double));
  if (plan) X(execute)(plan);
  ptrdiff_t count = no, start = so;
  if (scrambled && plan) {
    ptrdiff_t nb, sb;
    X(mpi_local_size_many_1d)(n, h, MPI_COMM_WORLD, FFTW_BACKWARD, FFTW_MPI_SCRAMBLED_IN, &nb, &sb, &count, &start);
    X(destroy_plan)(plan);
    unsigned back = (c->flags & FFTW_ESTIMATE) | FFTW_MPI_SCRAMBLED_IN;
    X(complex) *spectrum = X(alloc_complex)((size_t)alloc);
    memcpy(spectrum, out, (size_t)alloc * sizeof *out);
    plan = h == 1 ? X(mpi_plan_dft_1d)(n, out, in, MPI_COMM_WORLD, FFTW_BACKWARD, back)
                  : X(mpi_plan_many_dft)(1, &n, h, 0, 0, out, in, MPI_COMM_WORLD, FFTW_BACKWARD, back);
    memcpy(out, spectrum, (size_t)alloc * sizeof *out);
    X(free)(spectrum);
    if (plan) X(execute)(plan);
  }
  X(complex) *result = scrambled ? in : out;
  for (ptrdiff_t i = 0; plan && i < count * h * 2; i++) mine[start * h * 2 + i] = (double)result[i / 2][i % 2];
  MPI_Allreduce(mine, all, (int)(2 * n * h), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (plan) {
    fprintf(record, "data %g", sizeof(R) == 4 ? 3e-5 : 1e-8);
    for (ptrdiff_t i = 0; i < 2 * n * h; i++) fprintf(record, " %.9g", all[i]);
    fprintf(record, "\n");
  } else {
    fprintf(record, "none\n");
  }
  X(destroy_plan)(plan);
  free(mine);
  free(all);
  if (out != in) X(free)(out);
  X(free)(in);
}

#endif
