! Solves laplace(u) = f in a periodic box of side 2 pi, distributed over ranks:
!
!   gfortran -cpp $PREFIX/share/ferrier/ferrier.f90 poisson.f90 -o poisson $(pkg-config --libs ferrier) && ./poisson
!   mpifort -cpp -DWITH_MPI $PREFIX/share/ferrier/ferrier.f90 poisson.f90 -o poisson $(pkg-config --libs ferrier)
!   mpiexec -n 4 ./poisson
program poisson
  use, intrinsic :: iso_fortran_env, only: real64, int64
  use ferrier
#ifdef WITH_MPI
  use mpi
#endif
  implicit none
  integer, parameter :: n = 48
  real(real64), parameter :: pi = acos(-1.0_real64), h = 2 * pi / n
  type(ferrier_comm) :: comm
  type(ferrier_problem) :: problem
  type(ferrier_plan) :: plan
  type(ferrier_operator) :: inverse_laplacian
  type(ferrier_box) :: box, modes_box
  real(real64), allocatable :: f(:, :, :), u(:, :, :), back(:, :, :)
  complex(real64), allocatable :: modes(:, :, :)
  real(real64) :: error
  integer(int64) :: i, j, k
  integer :: rank, ranks
#ifdef WITH_MPI
  integer :: ierr
  call mpi_init(ierr)
  call comm%from_mpi(mpi_comm_world)
#else
  call comm%one()
#endif
  rank = comm%rank()
  ranks = comm%size()

  ! Bricks of a real field; pencils along axis 1 of its spectrum.
  call problem%r2c([n, n, n])
  call problem%bricks(ferrier_input)
  call problem%pencils(ferrier_output, 1)
  call problem%operators(.true.)
  call plan%create(comm, problem, ferrier_real64)

  box = plan%box(ferrier_input)
  allocate (f(box%lo(1):box%hi(1), box%lo(2):box%hi(2), box%lo(3):box%hi(3)))
  allocate (u, back, mold=f)
  do k = box%lo(3), box%hi(3)
    do j = box%lo(2), box%hi(2)
      do i = box%lo(1), box%hi(1)
        f(i, j, k) = -14 * wave(i, j, k)
      end do
    end do
  end do

  ! Forward, the operator on every mode, backward.
  call inverse_laplacian%named(plan, "inverse_laplacian", [2 * pi, 2 * pi, 2 * pi])
  call plan%apply(inverse_laplacian, f, u)

  error = 0
  do k = box%lo(3), box%hi(3)
    do j = box%lo(2), box%hi(2)
      do i = box%lo(1), box%hi(1)
        error = max(error, abs(u(i, j, k) - wave(i, j, k)))
      end do
    end do
  end do

  ! The spectrum of the solution: mode (1, 2, 3) and its signs are all there is.
  modes_box = plan%box(ferrier_output)
  allocate (modes(modes_box%lo(1):modes_box%hi(1), modes_box%lo(2):modes_box%hi(2), modes_box%lo(3):modes_box%hi(3)))
  call plan%forward(u, modes)
  do k = modes_box%lo(3), modes_box%hi(3)
    do j = modes_box%lo(2), modes_box%hi(2)
      do i = modes_box%lo(1), modes_box%hi(1)
        if (i == 2 .and. (j == 3 .or. j == n - 1) .and. (k == 4 .or. k == n - 2)) then
          error = max(error, abs(8 * abs(modes(i, j, k)) / real(n, real64)**3 - 1))
        else
          error = max(error, 8 * abs(modes(i, j, k)) / real(n, real64)**3)
        end if
      end do
    end do
  end do
  call plan%backward(modes, back)
  error = max(error, maxval(abs(back - u), mask=.true.))
#ifdef WITH_MPI
  call mpi_allreduce(mpi_in_place, error, 1, mpi_double_precision, mpi_max, mpi_comm_world, ierr)
#endif
  if (rank == 0) print '(a, i0, a, i0, a, es8.1)', "poisson in Fortran: ", n, "^3, ", ranks, " ranks, largest error ", error

  call inverse_laplacian%destroy()
  call plan%destroy()
  call problem%destroy()
  call comm%destroy()
#ifdef WITH_MPI
  call mpi_finalize(ierr)
#endif
  if (error > 1e-13_real64) error stop 1

contains

  real(real64) function wave(i, j, k)
    integer(int64), intent(in) :: i, j, k
    wave = sin(h * (i - 1)) * cos(2 * h * (j - 1)) * sin(3 * h * (k - 1))
  end function

end program
