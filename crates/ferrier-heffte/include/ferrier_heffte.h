/*
 * What the headers of this folder call of libheffte.so.2 (crate ferrier-heffte). Programs use heffte.h.
 *
 * Functions that return an int return 0 for success; else ferrier_heffte_error() has the text.
 */
#ifndef FERRIER_HEFFTE_H
#define FERRIER_HEFFTE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A transform between boxes. */
typedef struct ferrier_heffte_transform ferrier_heffte_transform;

/* Inclusive bounds; `order` has the dimensions from the fastest to the slowest in memory. */
typedef struct {
  int64_t low[3];
  int64_t high[3];
  int32_t order[3];
} ferrier_heffte_box;

/* plan_options. */
typedef struct {
  int32_t algorithm;
  int32_t reorder;
  int32_t pencils;
  int32_t gpu_aware;
  int32_t subranks;
} ferrier_heffte_options;

typedef struct {
  /* sizeof(ferrier_heffte_description). */
  uint64_t size;
  /* Those of this rank. */
  ferrier_heffte_box inbox;
  ferrier_heffte_box outbox;
  /* 0: complex; 1: real to a halved spectrum; cosine and sine transforms of type 2: 2 and 3, of type 1: 4 and 5. */
  int32_t kind;
  /* The halved dimension of kind 1. */
  int32_t halved;
  /* Bit d is set where dimension d is transformed. */
  uint32_t dimensions;
  ferrier_heffte_options options;
  /* The CUDA device of the arrays; -1: main memory. */
  int32_t device;
  /* 1: this process alone, without MPI. */
  int32_t alone;
} ferrier_heffte_description;

typedef struct {
  /* sizeof(ferrier_heffte_call). */
  uint64_t size;
  /* Elements of the inbox, or of the outbox where the call goes backward. */
  const void *input;
  void *output;
  /* The CUDA stream. */
  void *stream;
  double scale;
  /* Arrays, one after the other. */
  int32_t batch;
  /* 1: from the outbox to the inbox. */
  int32_t backward;
  int32_t double_precision;
  /* 1: elements of the inbox are real although the transform is complex. */
  int32_t real;
} ferrier_heffte_call;

/* 1. heFFTe's own library does not have this name. */
extern const int ferrier_heffte_drop_in;

/* `comm` is Fortran's integer of a communicator, `mpi_function` the address of any function of its MPI. Collective. */
int ferrier_heffte_create(const ferrier_heffte_description *description, int32_t comm, const void *mpi_function,
                          ferrier_heffte_transform **transform);
/* NULL is allowed. */
void ferrier_heffte_free(ferrier_heffte_transform *transform);
/* Plans are made by the first call of each precision and batch. Collective. */
int ferrier_heffte_run(const ferrier_heffte_transform *transform, const ferrier_heffte_call *call);
/* The lengths[3] of the whole in real space. */
void ferrier_heffte_world(const ferrier_heffte_transform *transform, int64_t *lengths);
/* The text of the last error in this thread. */
const char *ferrier_heffte_error(void);
/* Options that are served in another way than in heFFTe, and notes of the plans so far, one per line. */
const char *ferrier_heffte_notes(const ferrier_heffte_transform *transform);

#ifdef __cplusplus
}
#endif

#endif
