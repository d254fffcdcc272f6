// Ferrier with the interface of heFFTe 2.4.
#ifndef HEFFTE_H
#define HEFFTE_H

#ifdef __cplusplus
#include "heffte_fft3d_r2c.h"
#else
#include "heffte_c.h"
#endif

#endif
