# find_package(Heffte 2.4): Ferrier with the interface of heFFTe.
#
# Targets: Heffte::Heffte (C and C++), Heffte::Fortran (modules heffte_stock, heffte_fftw, heffte_mkl and, with CUDA,
# heffte_cufft, compiled with the program that links it), Heffte::FFTW where FFTW is installed.
#
# Components: SHARED, BUILTIN, FFTW and MKL always: their backends are served without those libraries. FFTW's header and
# libraries come with Heffte::Heffte where they are found (Heffte_ENABLE_FFTW is defined then). CUDA where CUDAToolkit is
# found and it is asked for: by the component, by -D Heffte_ENABLE_CUDA=ON, or because the project uses CUDA already.
# Fortran; PYTHON: Heffte_PYTHONPATH has heffte_config.py, for heFFTe's heffte.py.
get_filename_component(_heffte_prefix "${CMAKE_CURRENT_LIST_DIR}/../../../../../.." ABSOLUTE)
get_property(_heffte_languages GLOBAL PROPERTY ENABLED_LANGUAGES)

if(NOT TARGET MPI::MPI_CXX AND NOT TARGET MPI::MPI_C)
  find_package(MPI QUIET)
endif()
set(_heffte_definitions "")
set(_heffte_links "")
foreach(_heffte_language CXX C)
  if(TARGET MPI::MPI_${_heffte_language})
    list(APPEND _heffte_links MPI::MPI_${_heffte_language})
    break()
  endif()
endforeach()

# FFTW, for programs that call it themselves.
find_path(Heffte_FFTW_INCLUDE fftw3.h)
find_library(Heffte_FFTW_LIBRARY fftw3)
find_library(Heffte_FFTW_THREADS_LIBRARY NAMES fftw3_threads fftw3_omp)
find_library(Heffte_FFTWF_LIBRARY fftw3f)
find_library(Heffte_FFTWF_THREADS_LIBRARY NAMES fftw3f_threads fftw3f_omp)
mark_as_advanced(Heffte_FFTW_INCLUDE Heffte_FFTW_LIBRARY Heffte_FFTW_THREADS_LIBRARY Heffte_FFTWF_LIBRARY
  Heffte_FFTWF_THREADS_LIBRARY)
if(Heffte_FFTW_INCLUDE AND Heffte_FFTW_LIBRARY)
  if(NOT TARGET Heffte::FFTW)
    add_library(Heffte::FFTW INTERFACE IMPORTED GLOBAL)
    set(_heffte_fftw "")
    foreach(_heffte_library FFTW_THREADS FFTW FFTWF_THREADS FFTWF)
      if(Heffte_${_heffte_library}_LIBRARY)
        list(APPEND _heffte_fftw "${Heffte_${_heffte_library}_LIBRARY}")
      endif()
    endforeach()
    set_target_properties(Heffte::FFTW PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${Heffte_FFTW_INCLUDE}"
      INTERFACE_LINK_LIBRARIES "${_heffte_fftw}")
  endif()
  list(APPEND _heffte_links Heffte::FFTW)
  list(APPEND _heffte_definitions Heffte_ENABLE_FFTW)
else()
  list(APPEND _heffte_definitions FERRIER_HEFFTE_WITHOUT_FFTW)
endif()

if("MKL" IN_LIST Heffte_FIND_COMPONENTS OR Heffte_ENABLE_MKL)
  list(APPEND _heffte_definitions Heffte_ENABLE_MKL)
endif()

set(Heffte_CUDA_FOUND OFF)
if("CUDA" IN_LIST Heffte_FIND_COMPONENTS OR Heffte_ENABLE_CUDA OR "CUDA" IN_LIST _heffte_languages OR TARGET CUDA::cudart)
  if(NOT TARGET CUDA::cudart)
    find_package(CUDAToolkit QUIET)
  endif()
  if(TARGET CUDA::cudart)
    set(Heffte_CUDA_FOUND ON)
    list(APPEND _heffte_links CUDA::cudart)
    if(TARGET CUDA::cufft)
      list(APPEND _heffte_links CUDA::cufft)
    endif()
    list(APPEND _heffte_definitions Heffte_ENABLE_CUDA)
  endif()
endif()

if(NOT TARGET Heffte::Heffte)
  add_library(Heffte::Heffte SHARED IMPORTED GLOBAL)
  set_target_properties(Heffte::Heffte PROPERTIES
    IMPORTED_LOCATION "${_heffte_prefix}/lib/ferrier/heffte/libheffte.so.2"
    IMPORTED_SONAME "libheffte.so.2"
    INTERFACE_INCLUDE_DIRECTORIES "${_heffte_prefix}/include/ferrier/heffte"
    INTERFACE_COMPILE_DEFINITIONS "${_heffte_definitions}"
    INTERFACE_LINK_LIBRARIES "${_heffte_links}")
endif()

set(Heffte_Fortran_FOUND OFF)
if("Fortran" IN_LIST Heffte_FIND_COMPONENTS AND NOT "Fortran" IN_LIST _heffte_languages)
  enable_language(Fortran)
endif()
if("Fortran" IN_LIST _heffte_languages OR "Fortran" IN_LIST Heffte_FIND_COMPONENTS)
  set(Heffte_Fortran_FOUND ON)
  if(NOT TARGET Heffte::Fortran)
    if(NOT TARGET MPI::MPI_Fortran)
      find_package(MPI QUIET COMPONENTS Fortran)
    endif()
    add_library(Heffte::Fortran INTERFACE IMPORTED GLOBAL)
    set(_heffte_modules stock fftw mkl)
    if(Heffte_CUDA_FOUND)
      list(APPEND _heffte_modules cufft)
    endif()
    list(TRANSFORM _heffte_modules REPLACE "(.+)" "${_heffte_prefix}/share/ferrier/heffte/heffte_\\1.f90")
    set_target_properties(Heffte::Fortran PROPERTIES INTERFACE_SOURCES "${_heffte_modules}"
      INTERFACE_LINK_LIBRARIES "Heffte::Heffte;MPI::MPI_Fortran")
  endif()
endif()

set(Heffte_SHARED_FOUND ON)
set(Heffte_STATIC_FOUND OFF)
set(Heffte_BUILTIN_FOUND ON)
set(Heffte_FFTW_FOUND ON)
set(Heffte_MKL_FOUND ON)
set(Heffte_ROCM_FOUND OFF)
set(Heffte_ONEAPI_FOUND OFF)
set(Heffte_INTRINSICS_FOUND ON)
set(Heffte_GPUAWARE_FOUND ${Heffte_CUDA_FOUND})
set(Heffte_PYTHON_FOUND ON)
set(Heffte_PYTHONPATH "${_heffte_prefix}/share/ferrier/heffte/python")

set(Heffte_FOUND TRUE)
foreach(_heffte_component ${Heffte_FIND_COMPONENTS})
  if(Heffte_FIND_REQUIRED_${_heffte_component} AND NOT Heffte_${_heffte_component}_FOUND)
    set(Heffte_FOUND FALSE)
    set(Heffte_NOT_FOUND_MESSAGE "Ferrier's package Heffte has no component ${_heffte_component} here")
  endif()
endforeach()
if(Heffte_FOUND AND NOT Heffte_FIND_QUIETLY)
  message(STATUS "Found Heffte: Ferrier's, in ${_heffte_prefix}")
endif()
