// What is enabled. All CPU backends are served by Ferrier, whether their libraries are there or not. A macro says that
// programs may also call that library themselves:
//
// Heffte_ENABLE_FFTW: fftw3.h is there. By CMake's package, or found here. FERRIER_HEFFTE_WITHOUT_FFTW: not looked for.
// Heffte_ENABLE_MKL, Heffte_ENABLE_CUDA: set by CMake's package (components MKL, CUDA) or by the program.
// Heffte_ENABLE_TRACING: set by the program.
#ifndef HEFFTE_CONFIG_H
#define HEFFTE_CONFIG_H

#define Heffte_VERSION_MAJOR 2
#define Heffte_VERSION_MINOR 4
#define Heffte_VERSION_PATCH 1
#define Heffte_GIT_HASH "Ferrier"

#if !defined(Heffte_ENABLE_FFTW) && !defined(FERRIER_HEFFTE_WITHOUT_FFTW) && defined(__has_include)
#if __has_include(<fftw3.h>)
#define Heffte_ENABLE_FFTW
#endif
#endif

#ifdef Heffte_ENABLE_CUDA
#define Heffte_ENABLE_GPU
#endif

#endif
