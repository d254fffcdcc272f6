/*
 * heFFTe's interface for C, by libheffte.so.2 of Ferrier.
 *
 * heffte_plan_create and its relative return 0, 1 for an unknown backend, 2 for an error (a line on standard error says
 * which). Sizes are in elements. Plans have their own workspace: that of buffered calls is not looked at.
 */
#ifndef HEFFTE_C_H
#define HEFFTE_C_H

#ifdef __cplusplus
#error "heffte_c.h is for C; C++ programs include heffte.h"
#endif

#include <mpi.h>

#include "heffte_c_defines.h"

int heffte_set_default_options(int backend, heffte_plan_options *options);

/* Bounds are inclusive. An order lists dimensions from the fastest to the slowest in memory; NULL is 0, 1, 2. Collective. */
int heffte_plan_create(int backend, const int inbox_low[3], const int inbox_high[3], const int *inbox_order,
                       const int outbox_low[3], const int outbox_high[3], const int *outbox_order, MPI_Comm comm,
                       const heffte_plan_options *options, heffte_plan *plan);
int heffte_plan_create_r2c(int backend, const int inbox_low[3], const int inbox_high[3], const int *inbox_order,
                           const int outbox_low[3], const int outbox_high[3], const int *outbox_order,
                           int r2c_direction, MPI_Comm comm, const heffte_plan_options *options, heffte_plan *plan);
int heffte_plan_destroy(heffte_plan plan);

int heffte_size_inbox(heffte_plan plan);
int heffte_size_outbox(heffte_plan plan);
int heffte_size_workspace(heffte_plan plan);
int heffte_get_backend(heffte_plan plan);
int heffte_is_r2c(heffte_plan plan);

/* From the inbox to the outbox. */
void heffte_forward_s2c(heffte_plan plan, const float *input, void *output, int scale);
void heffte_forward_c2c(heffte_plan plan, const void *input, void *output, int scale);
void heffte_forward_d2z(heffte_plan plan, const double *input, void *output, int scale);
void heffte_forward_z2z(heffte_plan plan, const void *input, void *output, int scale);
void heffte_forward_s2c_buffered(heffte_plan plan, const float *input, void *output, void *workspace, int scale);
void heffte_forward_c2c_buffered(heffte_plan plan, const void *input, void *output, void *workspace, int scale);
void heffte_forward_d2z_buffered(heffte_plan plan, const double *input, void *output, void *workspace, int scale);
void heffte_forward_z2z_buffered(heffte_plan plan, const void *input, void *output, void *workspace, int scale);

/* From the outbox to the inbox. */
void heffte_backward_c2s(heffte_plan plan, const void *input, float *output, int scale);
void heffte_backward_c2c(heffte_plan plan, const void *input, void *output, int scale);
void heffte_backward_z2d(heffte_plan plan, const void *input, double *output, int scale);
void heffte_backward_z2z(heffte_plan plan, const void *input, void *output, int scale);
void heffte_backward_c2s_buffered(heffte_plan plan, const void *input, float *output, void *workspace, int scale);
void heffte_backward_c2c_buffered(heffte_plan plan, const void *input, void *output, void *workspace, int scale);
void heffte_backward_z2d_buffered(heffte_plan plan, const void *input, double *output, void *workspace, int scale);
void heffte_backward_z2z_buffered(heffte_plan plan, const void *input, void *output, void *workspace, int scale);

#endif
