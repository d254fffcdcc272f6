//! FFTW's MPI interface in double precision, as a drop-in for `libfftw3_mpi.so.3`.

ferrier_fftw::export!("fftw_", f64);
