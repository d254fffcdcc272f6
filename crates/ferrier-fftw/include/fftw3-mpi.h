/* FFTW's MPI interface, as Ferrier's libfftw3_mpi and libfftw3f_mpi provide it.

   Link -lfftw3_mpi before -lfftw3 (and -lfftw3f_mpi before -lfftw3f): these libraries define fftw_execute,
   fftw_destroy_plan and the other functions that look inside plans, and pass plans of FFTW on. Long double is not provided.

   Licensed as Ferrier: MIT OR Apache-2.0. */
#ifndef FFTW3_MPI_H
#define FFTW3_MPI_H

#include <mpi.h>
#include <stddef.h>

#include <fftw3.h>

#define FFTW_MPI_DEFAULT_BLOCK (0)

#define FFTW_MPI_SCRAMBLED_IN (1U << 27)
#define FFTW_MPI_SCRAMBLED_OUT (1U << 28)
#define FFTW_MPI_TRANSPOSED_IN (1U << 29)
#define FFTW_MPI_TRANSPOSED_OUT (1U << 30)

#ifdef __cplusplus
extern "C" {
#endif

/* All functions of one precision: P begins their names, S those of the types, REAL and COMPLEX are elements. */
#define FERRIER_FFTW_MPI(P, S, REAL, COMPLEX)                                                                             \
  void P##init(void);                                                                                                     \
  void P##cleanup(void);                                                                                                  \
                                                                                                                          \
  /* Elements to allocate on this rank; length and start of its blocks of axes 0 and 1. */                                \
  ptrdiff_t P##local_size(int rnk, const ptrdiff_t *n, MPI_Comm comm, ptrdiff_t *local_n0, ptrdiff_t *local_0_start);     \
  ptrdiff_t P##local_size_2d(ptrdiff_t n0, ptrdiff_t n1, MPI_Comm comm, ptrdiff_t *local_n0, ptrdiff_t *local_0_start);   \
  ptrdiff_t P##local_size_3d(ptrdiff_t n0, ptrdiff_t n1, ptrdiff_t n2, MPI_Comm comm, ptrdiff_t *local_n0,                \
                             ptrdiff_t *local_0_start);                                                                   \
  ptrdiff_t P##local_size_many(int rnk, const ptrdiff_t *n, ptrdiff_t howmany, ptrdiff_t block0, MPI_Comm comm,           \
                               ptrdiff_t *local_n0, ptrdiff_t *local_0_start);                                            \
  ptrdiff_t P##local_size_transposed(int rnk, const ptrdiff_t *n, MPI_Comm comm, ptrdiff_t *local_n0,                     \
                                     ptrdiff_t *local_0_start, ptrdiff_t *local_n1, ptrdiff_t *local_1_start);            \
  ptrdiff_t P##local_size_2d_transposed(ptrdiff_t n0, ptrdiff_t n1, MPI_Comm comm, ptrdiff_t *local_n0,                   \
                                        ptrdiff_t *local_0_start, ptrdiff_t *local_n1, ptrdiff_t *local_1_start);         \
  ptrdiff_t P##local_size_3d_transposed(ptrdiff_t n0, ptrdiff_t n1, ptrdiff_t n2, MPI_Comm comm, ptrdiff_t *local_n0,     \
                                        ptrdiff_t *local_0_start, ptrdiff_t *local_n1, ptrdiff_t *local_1_start);         \
  ptrdiff_t P##local_size_many_transposed(int rnk, const ptrdiff_t *n, ptrdiff_t howmany, ptrdiff_t block0,               \
                                          ptrdiff_t block1, MPI_Comm comm, ptrdiff_t *local_n0,                           \
                                          ptrdiff_t *local_0_start, ptrdiff_t *local_n1, ptrdiff_t *local_1_start);       \
  /* The same for a line, of input and output. */                                                                         \
  ptrdiff_t P##local_size_1d(ptrdiff_t n0, MPI_Comm comm, int sign, unsigned flags, ptrdiff_t *local_ni,                  \
                             ptrdiff_t *local_i_start, ptrdiff_t *local_no, ptrdiff_t *local_o_start);                    \
  ptrdiff_t P##local_size_many_1d(ptrdiff_t n0, ptrdiff_t howmany, MPI_Comm comm, int sign, unsigned flags,               \
                                  ptrdiff_t *local_ni, ptrdiff_t *local_i_start, ptrdiff_t *local_no,                     \
                                  ptrdiff_t *local_o_start);                                                              \
                                                                                                                          \
  S##plan P##plan_transpose(ptrdiff_t n0, ptrdiff_t n1, REAL *in, REAL *out, MPI_Comm comm, unsigned flags);              \
  S##plan P##plan_many_transpose(ptrdiff_t n0, ptrdiff_t n1, ptrdiff_t howmany, ptrdiff_t block0, ptrdiff_t block1,       \
                                 REAL *in, REAL *out, MPI_Comm comm, unsigned flags);                                     \
                                                                                                                          \
  S##plan P##plan_dft(int rnk, const ptrdiff_t *n, COMPLEX *in, COMPLEX *out, MPI_Comm comm, int sign, unsigned flags);   \
  S##plan P##plan_dft_1d(ptrdiff_t n0, COMPLEX *in, COMPLEX *out, MPI_Comm comm, int sign, unsigned flags);               \
  S##plan P##plan_dft_2d(ptrdiff_t n0, ptrdiff_t n1, COMPLEX *in, COMPLEX *out, MPI_Comm comm, int sign,                  \
                         unsigned flags);                                                                                 \
  S##plan P##plan_dft_3d(ptrdiff_t n0, ptrdiff_t n1, ptrdiff_t n2, COMPLEX *in, COMPLEX *out, MPI_Comm comm, int sign,    \
                         unsigned flags);                                                                                 \
  S##plan P##plan_many_dft(int rnk, const ptrdiff_t *n, ptrdiff_t howmany, ptrdiff_t block, ptrdiff_t tblock,             \
                           COMPLEX *in, COMPLEX *out, MPI_Comm comm, int sign, unsigned flags);                           \
                                                                                                                          \
  S##plan P##plan_dft_r2c(int rnk, const ptrdiff_t *n, REAL *in, COMPLEX *out, MPI_Comm comm, unsigned flags);            \
  S##plan P##plan_dft_r2c_2d(ptrdiff_t n0, ptrdiff_t n1, REAL *in, COMPLEX *out, MPI_Comm comm, unsigned flags);          \
  S##plan P##plan_dft_r2c_3d(ptrdiff_t n0, ptrdiff_t n1, ptrdiff_t n2, REAL *in, COMPLEX *out, MPI_Comm comm,             \
                             unsigned flags);                                                                             \
  S##plan P##plan_many_dft_r2c(int rnk, const ptrdiff_t *n, ptrdiff_t howmany, ptrdiff_t iblock, ptrdiff_t oblock,        \
                               REAL *in, COMPLEX *out, MPI_Comm comm, unsigned flags);                                    \
  S##plan P##plan_dft_c2r(int rnk, const ptrdiff_t *n, COMPLEX *in, REAL *out, MPI_Comm comm, unsigned flags);            \
  S##plan P##plan_dft_c2r_2d(ptrdiff_t n0, ptrdiff_t n1, COMPLEX *in, REAL *out, MPI_Comm comm, unsigned flags);          \
  S##plan P##plan_dft_c2r_3d(ptrdiff_t n0, ptrdiff_t n1, ptrdiff_t n2, COMPLEX *in, REAL *out, MPI_Comm comm,             \
                             unsigned flags);                                                                             \
  S##plan P##plan_many_dft_c2r(int rnk, const ptrdiff_t *n, ptrdiff_t howmany, ptrdiff_t iblock, ptrdiff_t oblock,        \
                               COMPLEX *in, REAL *out, MPI_Comm comm, unsigned flags);                                    \
                                                                                                                          \
  S##plan P##plan_r2r(int rnk, const ptrdiff_t *n, REAL *in, REAL *out, MPI_Comm comm, const S##r2r_kind *kind,           \
                      unsigned flags);                                                                                    \
  S##plan P##plan_r2r_2d(ptrdiff_t n0, ptrdiff_t n1, REAL *in, REAL *out, MPI_Comm comm, S##r2r_kind kind0,               \
                         S##r2r_kind kind1, unsigned flags);                                                              \
  S##plan P##plan_r2r_3d(ptrdiff_t n0, ptrdiff_t n1, ptrdiff_t n2, REAL *in, REAL *out, MPI_Comm comm,                    \
                         S##r2r_kind kind0, S##r2r_kind kind1, S##r2r_kind kind2, unsigned flags);                        \
  S##plan P##plan_many_r2r(int rnk, const ptrdiff_t *n, ptrdiff_t howmany, ptrdiff_t iblock, ptrdiff_t oblock, REAL *in,  \
                           REAL *out, MPI_Comm comm, const S##r2r_kind *kind, unsigned flags);                            \
                                                                                                                          \
  void P##execute_dft(const S##plan plan, COMPLEX *in, COMPLEX *out);                                                     \
  void P##execute_dft_r2c(const S##plan plan, REAL *in, COMPLEX *out);                                                    \
  void P##execute_dft_c2r(const S##plan plan, COMPLEX *in, REAL *out);                                                    \
  void P##execute_r2r(const S##plan plan, REAL *in, REAL *out);                                                           \
                                                                                                                          \
  void P##gather_wisdom(MPI_Comm comm);                                                                                   \
  void P##broadcast_wisdom(MPI_Comm comm);

FERRIER_FFTW_MPI(fftw_mpi_, fftw_, double, fftw_complex)
FERRIER_FFTW_MPI(fftwf_mpi_, fftwf_, float, fftwf_complex)

#undef FERRIER_FFTW_MPI

#ifdef __cplusplus
}
#endif

#endif
