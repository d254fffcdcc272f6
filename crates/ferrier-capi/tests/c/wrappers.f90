! ferrier.f90 beyond transforms: drafts, redistribution, ghost cells and their sums, lists of fields. Run by scripts/check-c.
program wrappers
  use ferrier
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
#ifdef WITH_MPI
  use mpi
#endif
  implicit none
  type(ferrier_comm) :: comm
  integer :: failures = 0
#ifdef WITH_MPI
  integer :: code
  call mpi_init(code)
  call comm%from_mpi(mpi_comm_world)
#else
  call comm%one()
#endif
  call moves()
  call ghosts()
  call lists()
  if (comm%rank() == 0 .and. failures == 0) print '(a,i0,a)', "ferrier.f90, ", comm%size(), " ranks: ok"
  call comm%destroy()
#ifdef WITH_MPI
  call mpi_finalize(code)
#endif
  if (failures /= 0) error stop 1

contains

  subroutine want(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (condition) return
    print '(2a)', "failed: ", what
    failures = failures + 1
  end subroutine

  ! Integers that know where they belong, from slabs to pencils of another order.
  subroutine moves()
    type(ferrier_problem) :: problem
    type(ferrier_redistribution) :: moving
    type(ferrier_box) :: box
    integer(int32), allocatable :: from(:, :, :), to(:, :, :)
    integer(int64) :: i, j, k
    integer :: status
    call problem%redistribute([4, 5, 6])
    call problem%pencils(ferrier_output, 3)
    call problem%order(ferrier_output, [3, 1, 2])
    call moving%create(comm, problem, 5, stat=status)
    call want(status /= 0, "elements of 5 bytes")
    call want(index(ferrier_error_text(), "element_bytes") > 0, "the text of the error")
    call moving%create(comm, problem, 4)
    box = moving%box(ferrier_input)
    allocate (from(box%lo(1):box%hi(1), box%lo(2):box%hi(2), box%lo(3):box%hi(3)))
    do k = box%lo(3), box%hi(3)
      do j = box%lo(2), box%hi(2)
        do i = box%lo(1), box%hi(1)
          from(i, j, k) = int(100 * i + 10 * j + k, int32)
        end do
      end do
    end do
    box = moving%box(ferrier_output)
    allocate (to(box%lo(3):box%hi(3), box%lo(1):box%hi(1), box%lo(2):box%hi(2)))
    call want(size(to, kind=int64) == moving%size(ferrier_output), "size of the output")
    call moving%run(from, to)
    do k = box%lo(3), box%hi(3)
      do j = box%lo(2), box%hi(2)
        do i = box%lo(1), box%hi(1)
          call want(to(k, i, j) == 100 * i + 10 * j + k, "an element")
        end do
      end do
    end do
    call moving%destroy()
    ! x-pencils and y-pencils of one grid.
    call problem%pencil_family(ferrier_input, 1, comm, 0, 0)
    call problem%pencil_family(ferrier_output, 2, comm, 0, 0)
    call moving%create(comm, problem, 4)
    box = moving%box(ferrier_input)
    if (moving%size(ferrier_input) > 0) call want(box%hi(1) - box%lo(1) == 3, "x is whole")
    call moving%destroy()
    call problem%destroy()
  end subroutine

  ! Two fields with one periodic ghost cell on each side.
  subroutine ghosts()
    type(ferrier_problem) :: problem
    type(ferrier_halo) :: halo
    type(ferrier_ghost_sum) :: total
    type(ferrier_ghosts) :: around
    type(ferrier_box) :: box
    real(real64), allocatable :: fields(:, :, :, :)
    real(real64) :: cells(2)
    integer(int64) :: extents(3), i, j
    integer :: status
    call problem%redistribute([4, 5, 6])
    around%low = [1, 1, 1]
    around%high = [1, 1, 1]
    around%periodic = .true.
    around%fields = 2
    call halo%create(comm, problem, ferrier_input, 8, around)
    extents = halo%shape()
    box = halo%box()
    allocate (fields(extents(1), extents(2), extents(3), 2), source=0.0_real64)
    do j = 1, box%hi(2) - box%lo(2) + 1
      do i = 1, box%hi(1) - box%lo(1) + 1
        fields(i + 1, j + 1, 2:extents(3) - 1, 1) = real(10 * i + j, real64)
        fields(i + 1, j + 1, 2:extents(3) - 1, 2) = -real(10 * i + j, real64)
      end do
    end do
    call halo%start(fields)
    call halo%start(fields, stat=status)
    call want(status /= 0, "two starts")
    call halo%finish()
    ! Slabs along axis 3: axes 1 and 2 are whole, their ghost cells are the cells of the other end.
    if (size(fields) > 0) &
      call want(all(abs(fields(1, 2:6, 2, 1) - fields(5, 2:6, 2, 1)) < tiny(1.0_real64)), "ghost cells of axis 1")
    if (size(fields) > 0) &
      call want(all(abs(fields(:, :, :, 2) + fields(:, :, :, 1)) < tiny(1.0_real64)), "both fields")
    fields = 1
    call total%create(comm, problem, ferrier_input, ferrier_sum_real64, around)
    call want(total%size() * 2 == size(fields, kind=int64), "size of a field")
    call total%run(fields)
    cells(1) = 0
    if (size(fields) > 0) cells(1) = sum(fields(2:extents(1) - 1, 2:extents(2) - 1, 2:extents(3) - 1, 1))
    cells(2) = real(total%size(), real64)
    call comm%sum(cells)
    call want(abs(cells(1) - cells(2)) < 0.5, "the sum of all cells")
    call total%destroy()
    call halo%destroy()
    call problem%destroy()
  end subroutine

  ! A batch of two arrays that were allocated one by one.
  subroutine lists()
    type(ferrier_problem) :: problem
    type(ferrier_draft) :: draft
    type(ferrier_plan) :: plan
    real(real64), allocatable, target :: a(:), b(:)
    complex(real64), allocatable, target :: u(:), v(:)
    call problem%r2c([4, 4, 4])
    call problem%batch(2)
    call draft%create(comm, problem, ferrier_real64)
    call want(draft%seconds() > 0, "a prediction")
    call want(len(draft%json("recipe")) > 2, "a recipe")
    call draft%build(plan)
    call draft%destroy()
    allocate (a(plan%field_bytes(ferrier_input) / 8), source=1.0_real64)
    allocate (b(size(a)), source=2.0_real64)
    allocate (u(plan%field_bytes(ferrier_output) / 16), v(plan%field_bytes(ferrier_output) / 16))
    call plan%forward_list([c_loc(a), c_loc(b)], [c_loc(u), c_loc(v)])
    call want(all(abs(v - 2 * u) < 1e-12), "spectra")
    call plan%backward_list([c_loc(v), c_loc(u)], [c_loc(a), c_loc(b)])
    call want(all(abs(a - 2) < 1e-12) .and. all(abs(b - 1) < 1e-12), "and back")
    call want(index(ferrier_predict(problem, ferrier_real32, 64, 8, 2), "prediction") > 0, "a prediction for 64 ranks")
    call plan%destroy()
    call problem%destroy()
  end subroutine
end program
