! Module heffte_fftw on any number of ranks: forward and back, real and complex, with and without options.
program drop_in
  use, intrinsic :: iso_c_binding
  use heffte_fftw
  use mpi
  implicit none
  type(heffte_fft3d_fftw) :: fft
  type(heffte_fft3d_r2c_fftw) :: fft_r2c
  complex(c_double_complex), allocatable :: input(:), output(:), workspace(:)
  real(c_float), allocatable :: values(:), back(:)
  complex(c_float_complex), allocatable :: modes(:)
  integer :: rank, ranks, error, failures, first, last, half_first, half_last, i
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  failures = 0
  first = rank * 8 / ranks
  last = (rank + 1) * 8 / ranks - 1
  half_first = rank * 5 / ranks
  half_last = (rank + 1) * 5 / ranks - 1

  ! A constant has one mode, whose value is the number of points.
  fft = heffte_fft3d_fftw(0, 0, first, 3, 5, last, 0, 1, 2, 0, 0, first, 3, 5, last, 2, 1, 0, MPI_COMM_WORLD, &
    .true._c_bool, 1_c_int, .false._c_bool)
  allocate (input(fft%size_inbox()), output(fft%size_outbox()), workspace(fft%size_workspace()))
  input = (1, 2)
  call fft%forward(input, output, workspace)
  if (first == 0) then
    if (abs(output(1) - 192 * (1, 2)) > 1d-12) failures = failures + 1
    output(1) = 0
  end if
  if (any(abs(output) > 1d-12)) failures = failures + 1
  if (first == 0) output(1) = 192 * (1, 2)
  input = 0
  call fft%backward(output, input, scale_fftw_full)
  if (any(abs(input - (1, 2)) > 1d-14)) failures = failures + 1
  if (abs(fft%get_scale_factor(scale_fftw_full) * 192 - 1) > 1d-14) failures = failures + 1
  call fft%release()

  ! Two arrays at once, in single precision.
  fft_r2c = heffte_fft3d_r2c_fftw(0, 0, first, 3, 5, last, 0, 0, half_first, 3, 5, half_last, 2, MPI_COMM_WORLD)
  allocate (values(2 * fft_r2c%size_inbox()), back(2 * fft_r2c%size_inbox()), modes(2 * fft_r2c%size_outbox()))
  values = [(real(mod(7 * i, 13)), i=1, size(values))]
  call fft_r2c%forward(2_c_int, values, modes, scale_fftw_symmetric)
  call fft_r2c%backward(2_c_int, modes, back, scale_fftw_symmetric)
  if (any(abs(back - values) > 1e-4)) failures = failures + 1
  call fft_r2c%release()

  call MPI_Allreduce(MPI_IN_PLACE, failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0) then
    if (failures == 0) print '(a)', 'all right'
    if (failures /= 0) print '(a, i0)', 'failures: ', failures
  end if
  call MPI_Finalize(error)
  if (failures /= 0) error stop 1
end program
