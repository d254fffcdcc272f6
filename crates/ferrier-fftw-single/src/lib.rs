//! FFTW's MPI interface in single precision, as a drop-in for `libfftw3f_mpi.so.3`.

ferrier_fftw::export!("fftwf_", f32);
