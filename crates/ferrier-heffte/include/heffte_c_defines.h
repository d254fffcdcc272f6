/* Constants and types of heffte_c.h. */
#ifndef HEFFTE_C_DEFINES_H
#define HEFFTE_C_DEFINES_H

#include "heffte_config.h"

#define Heffte_BACKEND_STOCK 0
#define Heffte_BACKEND_FFTW 1
#define Heffte_BACKEND_MKL 2
#ifdef Heffte_ENABLE_CUDA
#define Heffte_BACKEND_CUFFT 10
#endif

#define Heffte_SUCCESS 0

#define Heffte_RESHAPE_ALGORITHM_ALLTOALLV 0
#define Heffte_RESHAPE_ALGORITHM_P2P_PLINED 1
#define Heffte_RESHAPE_ALGORITHM_P2P 2

#define Heffte_SCALE_NONE 0
#define Heffte_SCALE_FULL 1
#define Heffte_SCALE_SYMMETRIC 2

typedef struct {
  int use_reorder;
  int algorithm;
  int use_pencils;
  int use_gpu_aware;
} heffte_plan_options;

typedef struct {
  int backend_type;
  int using_r2c;
  void *fft;
} heffte_fft_plan;

typedef heffte_fft_plan *heffte_plan;

#endif
