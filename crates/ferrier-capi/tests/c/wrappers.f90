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
  call plans()
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
    call addresses(moving, from, to)
    call want(moving%memory_bytes() >= 0, "memory")
    call moving%synchronize(stat=status)
    call want(status /= 0, "main memory has no stream")
    call want(index(ferrier_error_text(), "is not on a GPU") > 0, "the reason")
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

  ! The same by addresses, from and to arrays of the redistribution.
  subroutine addresses(moving, from, to)
    type(ferrier_redistribution), intent(in) :: moving
    integer(int32), intent(in), target, contiguous :: from(:, :, :), to(:, :, :)
    integer(int32), allocatable, target :: again(:)
    type(ferrier_array) :: input, output
    call moving%make(ferrier_input, input)
    call moving%make(ferrier_output, output)
    call want(input%bytes() == 4 * size(from), "bytes of an array")
    if (size(from) > 0) call input%upload(c_loc(from))
    call moving%run_addresses(input%data(), input%bytes(), output%data(), output%bytes())
    allocate (again(size(to)))
    if (size(to) > 0) call output%download(c_loc(again))
    call want(all(again == reshape(to, [size(to)])), "by addresses")
    call input%destroy()
    call output%destroy()
  end subroutine

  ! Communicators, problems, arrays and workspaces of plans, modes, the library.
  subroutine plans()
    type(ferrier_problem) :: problem, other
    type(ferrier_options) :: options
    type(ferrier_plan) :: plan
    type(ferrier_array) :: array
    type(ferrier_workspace) :: workspace
    complex(c_double_complex), pointer :: modes(:)
    integer(int64), allocatable :: kept(:)
    integer :: status
    call comm%barrier()
    call want(comm%nodes() >= 1, "nodes")
    call want(comm%threads() >= 1, "threads")
    call want(index(comm%json(), "transport") > 0, "a communicator as JSON")
    call problem%c2c([6, 5, 4])
    call problem%keep_lowest(1, 3)
    allocate (kept, source=problem%kept_modes(1))
    call want(size(kept) == 3 .and. kept(1) == 1, "kept modes")
    call want(all(problem%spectrum_shape() == [3_int64, 5_int64, 4_int64]), "the shape of the spectrum")
    call want(size(problem%columns()) == 0, "no ellipsoid")
    call problem%check()
    call other%copy(problem)
    call want(other%json() == problem%json(), "a copy")
    call problem%destroy()
    call problem%c2c([4, 4, 4])
    call options%create()
    call options%set_json('{"kernel": "native"}')
    call plan%create(comm, problem, ferrier_real64, options)
    call want(all(plan%order(ferrier_input) == [1, 2, 3]), "the order")
    call want(.not. plan%is_tuning(), "not tuning")
    call plan%make_in_place(array)
    call plan%make_workspace(workspace)
    call c_f_pointer(array%data(), modes, [array%bytes() / 16])
    modes = 1
    call plan%execute(ferrier_forward_in_place, c_null_ptr, 0_int64, array%data(), array%bytes(), scale=0.5_c_double, &
      workspace=workspace)
    call want(abs(sum(real(modes)) - merge(32, 0, any(real(modes) > 1))) < 1e-12, "the mean")
    call workspace%destroy()
    call array%destroy()
    call plan%destroy()
    call options%destroy()
    call other%destroy()
    call problem%c2c_1d(64_int64)
    call want(all(problem%mode(1_int64) == 1), "the first mode")
    call problem%destroy()
    call want(len(ferrier_info()) > 2, "the machine")
    call want(ferrier_cuda_count() >= 0, "its GPUs")
    call want(ferrier_status_name(0) == "FERRIER_STATUS_OK", "the name of a status")
    call ferrier_wisdom_merge("/nonexistent/from", "/nonexistent/to", stat=status)
    call want(status /= 0, "no wisdom there")
  end subroutine

  ! Two fields with one periodic ghost cell on each side.
  subroutine ghosts()
    type(ferrier_problem) :: problem
    type(ferrier_halo) :: halo
    type(ferrier_ghost_sum) :: total
    type(ferrier_ghosts) :: around
    type(ferrier_box) :: box
    type(ferrier_array) :: made
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
    call want(all(halo%strides() == [1_int64, extents(1), extents(1) * extents(2)]) .or. size(fields) == 0, "strides")
    call want(halo%memory_bytes() >= 0, "memory")
    call halo%make(made)
    call want(made%bytes() * 2 == 8 * size(fields), "an array of the halo")
    call made%destroy()
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
    call want(len(total%notes()) >= 0, "notes")
    call want(all(total%strides() == halo%strides()), "strides of a sum")
    call total%destroy()
    call halo%destroy()
    around%exchange = "pigeon"
    call halo%create(comm, problem, ferrier_input, 8, around, stat=status)
    call want(status /= 0, "no such exchange")
    call want(index(ferrier_error_text(), "pigeon") > 0, "its name")
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
