! Ferrier for Fortran: distributed fast Fourier transforms. Compile this file with your program.
!
!   use ferrier
!   type(ferrier_comm) :: comm
!   type(ferrier_problem) :: problem
!   type(ferrier_plan) :: plan
!   call comm%from_mpi(mpi_comm_world)               ! or comm%one() without MPI; mpi_f08: comm%mpi_val
!   call problem%r2c([nx, ny, nz])
!   call plan%create(comm, problem, ferrier_real64)
!   call plan%forward(field, modes)                  ! real(8) field(:,:,:), complex(8) modes(:,:,:)
!
! Arrays are as Fortran holds them: axis 1 is the fastest in memory, axes are 1, 2 and 3, indices begin with 1, and boxes
! are inclusive. By default input and output are slabs along axis 3, and the spectrum of a real field has nx/2+1 modes
! along axis 1. An array of a batch is one more dimension, the last. Arrays may have any rank; only the number and type of
! their elements matter.
!
! Every procedure has an optional last argument `stat`: 0 or a status of ferrier.h, with its text in
! ferrier_error_text(). Without `stat` an error ends the program. Objects are destroyed by their `destroy`.
module ferrier
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit, int64
  implicit none
  private

  integer, parameter, public :: ferrier_real32 = 0, ferrier_real64 = 1
  integer, parameter, public :: ferrier_input = 0, ferrier_output = 1
  integer, parameter, public :: ferrier_none = 0, ferrier_full = 1, ferrier_symmetric = 2
  integer, parameter, public :: ferrier_c2c = 1, ferrier_kind_r2c = 2
  integer, parameter, public :: ferrier_dct1 = 3, ferrier_dct2 = 4, ferrier_dct3 = 5, ferrier_dct4 = 6
  integer, parameter, public :: ferrier_dst1 = 7, ferrier_dst2 = 8, ferrier_dst3 = 9, ferrier_dst4 = 10
  integer, parameter, public :: ferrier_estimate = 0, ferrier_measure = 1, ferrier_patient = 2, ferrier_online = 3

  ! A box of global indices: lo(a) <= index <= hi(a).
  type, public :: ferrier_box
    integer(int64) :: lo(3) = 1, hi(3) = 0
  end type

  integer, parameter, public :: ferrier_sum_real32 = 0, ferrier_sum_real64 = 1, ferrier_sum_complex32 = 2
  integer, parameter, public :: ferrier_sum_complex64 = 3, ferrier_sum_int32 = 4, ferrier_sum_int64 = 5

  ! Ghost cells around a box.
  type, public :: ferrier_ghosts
    integer :: low(3) = 0, high(3) = 0
    logical :: periodic(3) = .false., faces_only = .false.
    integer :: fields = 1
    ! Of messages between nodes; blank: chosen.
    character(len=32) :: exchange = ''
    ! The CUDA device whose memory the arrays are in, from 0 on; -1: main memory.
    integer :: device = -1
  end type

  ! How far the last result may be from the exact one.
  type, bind(c), public :: ferrier_certificate
    real(c_double) :: loss, rounding_worst, rounding_typical, tolerance, bound
  end type

  ! Neighbouring modes, as ferrier_operator%callback hands them to a bind(c) subroutine (data, run): axes and indices here
  ! are those of ferrier.h, 0-based, the fastest axis last.
  type, bind(c), public :: ferrier_mode_run
    type(c_ptr) :: values
    integer(c_int64_t) :: length, first(3), axis, batch
    integer(c_int32_t) :: is_real, scalar_bytes
  end type

  type, bind(c) :: c_box
    integer(c_int64_t) :: lo(3), hi(3)
  end type

  type, bind(c) :: c_ghosts
    integer(c_int64_t) :: size, low(3), high(3)
    integer(c_int32_t) :: periodic(3), faces_only
    integer(c_int64_t) :: fields
    type(c_ptr) :: exchange
    integer(c_int64_t) :: device
  end type

  type, bind(c) :: c_call
    integer(c_int64_t) :: size
    real(c_double) :: scale
    type(c_ptr) :: op, workspace
  end type

  type, public :: ferrier_comm
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: one => comm_one
    procedure :: world => comm_world
    procedure :: from_mpi => comm_from_mpi
    procedure :: rank => comm_rank
    procedure :: size => comm_size
    procedure :: nodes => comm_nodes
    procedure :: threads => comm_threads
    procedure :: set_threads => comm_set_threads
    procedure :: barrier => comm_barrier
    procedure :: json => comm_json
    procedure :: sum => comm_sum
    procedure :: max => comm_max
    procedure :: destroy => comm_destroy
  end type

  type, public :: ferrier_problem
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: c2c => problem_c2c
    procedure :: r2c => problem_r2c
    procedure :: mixed => problem_mixed
    procedure :: redistribute => problem_redistribute
    procedure :: c2c_1d => problem_c2c_1d
    procedure :: from_json => problem_from_json
    procedure :: slabs => problem_slabs
    procedure :: pencils => problem_pencils
    procedure :: bricks => problem_bricks
    procedure :: unconstrained => problem_unconstrained
    procedure :: local_box => problem_local_box
    procedure :: boxes => problem_boxes
    procedure :: grid => problem_grid
    procedure :: order => problem_order
    procedure :: pencil_family => problem_pencil_family
    procedure :: strides => problem_strides
    procedure :: inside => problem_inside
    procedure :: axes => problem_axes
    procedure :: halved => problem_halved
    procedure :: batch => problem_batch
    procedure :: sign => problem_sign
    procedure :: real_input => problem_real_input
    procedure :: complex_values => problem_complex_values
    procedure :: scale => problem_scale
    procedure :: keep_lowest => problem_keep_lowest
    procedure :: keep_range => problem_keep_range
    procedure :: keep_ellipsoid => problem_keep_ellipsoid
    procedure :: support => problem_support
    procedure :: tolerance => problem_tolerance
    procedure :: reproducible => problem_reproducible
    procedure :: operators => problem_operators
    procedure :: copy => problem_copy
    procedure :: check => problem_check
    procedure :: json => problem_json
    procedure :: spectrum_shape => problem_spectrum_shape
    procedure :: kept_modes => problem_kept_modes
    procedure :: columns => problem_columns
    procedure :: mode => problem_mode
    procedure :: destroy => problem_destroy
  end type

  type, public :: ferrier_options
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: create => options_create
    procedure :: set => options_set
    procedure :: set_json => options_set_json
    procedure :: effort => options_effort
    procedure :: wisdom => options_wisdom
    procedure :: cuda => options_cuda
    procedure :: destroy => options_destroy
  end type

  type, public :: ferrier_operator
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: named => operator_named
    procedure :: callback => operator_callback
    procedure :: destroy => operator_destroy
  end type

  ! Memory that a plan, a redistribution or a halo made: shared with the other ranks of the node, in huge pages, so that
  ! transforms need fewer copies than with other memory; on a GPU: memory of the GPU. In main memory a program uses it by
  !
  !   complex(c_double_complex), pointer :: modes(:,:,:)
  !   call c_f_pointer(array%data(), modes, [nx, ny, nz])
  type, public :: ferrier_array
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: data => array_data
    procedure :: bytes => array_bytes
    procedure :: upload => array_upload
    procedure :: download => array_download
    procedure :: destroy => array_destroy
  end type

  ! Memory that several plans can use in turn for their work.
  type, public :: ferrier_workspace
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: destroy => workspace_destroy
  end type

  type, public :: ferrier_plan
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: create => plan_create
    procedure :: box => plan_box
    procedure :: box_of => plan_box_of
    procedure :: input_size => plan_input_size
    procedure :: output_size => plan_output_size
    procedure :: in_place_bytes => plan_in_place_bytes
    procedure :: memory_bytes => plan_memory_bytes
    procedure :: wire_bytes => plan_wire_bytes
    procedure :: field_bytes => plan_field_bytes
    procedure :: order => plan_order
    procedure :: is_tuning => plan_is_tuning
    procedure :: make_input => plan_make_input
    procedure :: make_output => plan_make_output
    procedure :: make_in_place => plan_make_in_place
    procedure :: make_workspace => plan_make_workspace
    procedure :: execute => plan_execute
    procedure :: forward_list => plan_forward_list
    procedure :: backward_list => plan_backward_list
    procedure :: set_stream => plan_set_stream
    procedure :: synchronize => plan_synchronize
    procedure :: certificate => plan_certificate
    procedure :: notes => plan_notes
    procedure :: json => plan_json
    procedure :: destroy => plan_destroy
    procedure, private :: forward_c4c4, forward_c8c8, forward_r4c4, forward_r8c8, &
      forward_r4r4, forward_r8r8
    generic :: forward => forward_c4c4, forward_c8c8, forward_r4c4, forward_r8c8, &
      forward_r4r4, forward_r8r8
    procedure, private :: backward_c4c4, backward_c8c8, backward_c4r4, backward_c8r8, &
      backward_r4r4, backward_r8r8
    generic :: backward => backward_c4c4, backward_c8c8, backward_c4r4, backward_c8r8, &
      backward_r4r4, backward_r8r8
    procedure, private :: apply_c4c4, apply_c8c8, apply_r4r4, apply_r8r8
    generic :: apply => apply_c4c4, apply_c8c8, apply_r4r4, apply_r8r8
    procedure, private :: forward_in_place_c4, forward_in_place_c8, forward_in_place_r4, forward_in_place_r8
    generic :: forward_in_place => forward_in_place_c4, forward_in_place_c8, forward_in_place_r4, forward_in_place_r8
    procedure, private :: backward_in_place_c4, backward_in_place_c8, backward_in_place_r4, backward_in_place_r8
    generic :: backward_in_place => backward_in_place_c4, backward_in_place_c8, backward_in_place_r4, backward_in_place_r8
  end type

  ! A plan of which everything is decided, and nothing allocated.
  type, public :: ferrier_draft
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: create => draft_create
    procedure :: memory_bytes => draft_memory_bytes
    procedure :: largest_memory_bytes => draft_largest_memory_bytes
    procedure :: seconds => draft_seconds
    procedure :: json => draft_json
    procedure :: build => draft_build
    procedure :: destroy => draft_destroy
  end type

  ! Takes arrays of any type from one layout to another.
  type, public :: ferrier_redistribution
    type(c_ptr) :: handle = c_null_ptr
    integer(c_int64_t) :: element_bytes = 0
  contains
    procedure :: create => redistribution_create
    procedure :: box => redistribution_box
    procedure :: size => redistribution_size
    procedure :: run => redistribution_run
    procedure :: run_in_place => redistribution_run_in_place
    procedure :: run_addresses => redistribution_run_addresses
    procedure :: make => redistribution_make
    procedure :: memory_bytes => redistribution_memory_bytes
    procedure :: set_stream => redistribution_set_stream
    procedure :: synchronize => redistribution_synchronize
    procedure :: notes => redistribution_notes
    procedure :: destroy => redistribution_destroy
  end type

  ! Fills ghost cells of arrays of any type with the cells of their owners.
  type, public :: ferrier_halo
    type(c_ptr) :: handle = c_null_ptr
    integer(c_int64_t) :: element_bytes = 0
    integer :: fields = 1
  contains
    procedure :: create => halo_create
    procedure :: box => halo_box
    procedure :: shape => halo_shape
    procedure :: strides => halo_strides
    procedure :: size => halo_size
    procedure :: memory_bytes => halo_memory_bytes
    procedure :: make => halo_make
    procedure :: set_stream => halo_set_stream
    procedure :: synchronize => halo_synchronize
    procedure :: exchange => halo_exchange
    procedure :: exchange_list => halo_exchange_list
    procedure :: start => halo_start
    procedure :: start_list => halo_start_list
    procedure :: finish => halo_finish
    procedure :: notes => halo_notes
    procedure :: destroy => halo_destroy
  end type

  ! Adds ghost cells to the cells of their owners.
  type, public :: ferrier_ghost_sum
    type(c_ptr) :: handle = c_null_ptr
    integer(c_int64_t) :: element_bytes = 0
    integer :: fields = 1
  contains
    procedure :: create => ghost_sum_create
    procedure :: box => ghost_sum_box
    procedure :: shape => ghost_sum_shape
    procedure :: strides => ghost_sum_strides
    procedure :: size => ghost_sum_size
    procedure :: memory_bytes => ghost_sum_memory_bytes
    procedure :: make => ghost_sum_make
    procedure :: set_stream => ghost_sum_set_stream
    procedure :: synchronize => ghost_sum_synchronize
    procedure :: run => ghost_sum_run
    procedure :: run_list => ghost_sum_run_list
    procedure :: notes => ghost_sum_notes
    procedure :: destroy => ghost_sum_destroy
  end type

  ! What plan%execute does.
  integer, parameter, public :: ferrier_forward = 0, ferrier_backward = 1, ferrier_apply = 2
  integer, parameter, public :: ferrier_forward_in_place = 3, ferrier_backward_in_place = 4, ferrier_apply_in_place = 5

  public :: ferrier_error_text, ferrier_version, ferrier_predict, ferrier_status_name, ferrier_info, ferrier_cuda_count
  public :: ferrier_wisdom_file, ferrier_wisdom_merge, ferrier_measure_machine, ferrier_run_ranks

  interface
    integer(c_int) function c_ferrier_comm_one(comm) &
      bind(c, name="ferrier_comm_one")
      import
      type(c_ptr), intent(out) :: comm
    end function
    integer(c_int) function c_ferrier_comm_world(comm) &
      bind(c, name="ferrier_comm_world")
      import
      type(c_ptr), intent(out) :: comm
    end function
    integer(c_int) function c_ferrier_comm_from_fortran(handle, address, comm) &
      bind(c, name="ferrier_comm_from_fortran")
      import
      integer(c_int32_t), value :: handle
      type(c_ptr), value :: address
      type(c_ptr), intent(out) :: comm
    end function
    integer(c_int) function c_ferrier_comm_rank(comm, number) &
      bind(c, name="ferrier_comm_rank")
      import
      type(c_ptr), value :: comm
      integer(c_int64_t), intent(out) :: number
    end function
    integer(c_int) function c_ferrier_comm_size(comm, number) &
      bind(c, name="ferrier_comm_size")
      import
      type(c_ptr), value :: comm
      integer(c_int64_t), intent(out) :: number
    end function
    integer(c_int) function c_ferrier_comm_set_threads(comm, threads) &
      bind(c, name="ferrier_comm_set_threads")
      import
      type(c_ptr), value :: comm
      integer(c_int64_t), value :: threads
    end function
    integer(c_int) function c_ferrier_comm_free(comm) &
      bind(c, name="ferrier_comm_free")
      import
      type(c_ptr), value :: comm
    end function
    integer(c_int) function c_ferrier_problem_c2c(shape, problem) &
      bind(c, name="ferrier_problem_c2c")
      import
      integer(c_int64_t), intent(in) :: shape(3)
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int) function c_ferrier_problem_r2c(shape, problem) &
      bind(c, name="ferrier_problem_r2c")
      import
      integer(c_int64_t), intent(in) :: shape(3)
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int) function c_ferrier_problem_mixed(shape, kinds, problem) &
      bind(c, name="ferrier_problem_mixed")
      import
      integer(c_int64_t), intent(in) :: shape(3)
      integer(c_int32_t), intent(in) :: kinds(3)
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int) function c_ferrier_problem_from_json(text, problem) &
      bind(c, name="ferrier_problem_from_json")
      import
      character(kind=c_char), intent(in) :: text(*)
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int) function c_ferrier_problem_slabs(problem, side, axis) &
      bind(c, name="ferrier_problem_slabs")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: side
      integer(c_int64_t), value :: axis
    end function
    integer(c_int) function c_ferrier_problem_pencils(problem, side, axis) &
      bind(c, name="ferrier_problem_pencils")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: side
      integer(c_int64_t), value :: axis
    end function
    integer(c_int) function c_ferrier_problem_bricks(problem, side) &
      bind(c, name="ferrier_problem_bricks")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: side
    end function
    integer(c_int) function c_ferrier_problem_unconstrained(problem, side) &
      bind(c, name="ferrier_problem_unconstrained")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: side
    end function
    integer(c_int) function c_ferrier_problem_local_box(problem, side, part) &
      bind(c, name="ferrier_problem_local_box")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: side
      type(c_box), intent(in) :: part
    end function
    integer(c_int) function c_ferrier_problem_grid(problem, side, grid) &
      bind(c, name="ferrier_problem_grid")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: side
      integer(c_int64_t), intent(in) :: grid(3)
    end function
    integer(c_int) function c_ferrier_problem_strides(problem, side, strides, offset, batch) &
      bind(c, name="ferrier_problem_strides")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: side
      integer(c_int64_t), intent(in) :: strides(3)
      integer(c_int64_t), value :: offset
      integer(c_int64_t), value :: batch
    end function
    integer(c_int) function c_ferrier_problem_axes(problem, axes, count) &
      bind(c, name="ferrier_problem_axes")
      import
      type(c_ptr), value :: problem
      integer(c_int64_t), intent(in) :: axes(*)
      integer(c_int64_t), value :: count
    end function
    integer(c_int) function c_ferrier_problem_halved(problem, axis) &
      bind(c, name="ferrier_problem_halved")
      import
      type(c_ptr), value :: problem
      integer(c_int64_t), value :: axis
    end function
    integer(c_int) function c_ferrier_problem_batch(problem, arrays) &
      bind(c, name="ferrier_problem_batch")
      import
      type(c_ptr), value :: problem
      integer(c_int64_t), value :: arrays
    end function
    integer(c_int) function c_ferrier_problem_scale(problem, forward, backward) &
      bind(c, name="ferrier_problem_scale")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: forward
      integer(c_int32_t), value :: backward
    end function
    integer(c_int) function c_ferrier_problem_keep_lowest(problem, axis, modes) &
      bind(c, name="ferrier_problem_keep_lowest")
      import
      type(c_ptr), value :: problem
      integer(c_int64_t), value :: axis
      integer(c_int64_t), value :: modes
    end function
    integer(c_int) function c_ferrier_problem_keep_ellipsoid(problem, radii) &
      bind(c, name="ferrier_problem_keep_ellipsoid")
      import
      type(c_ptr), value :: problem
      real(c_double), intent(in) :: radii(*)
    end function
    integer(c_int) function c_ferrier_problem_support(problem, axis, first, last) &
      bind(c, name="ferrier_problem_support")
      import
      type(c_ptr), value :: problem
      integer(c_int64_t), value :: axis
      integer(c_int64_t), value :: first
      integer(c_int64_t), value :: last
    end function
    integer(c_int) function c_ferrier_problem_tolerance(problem, bound) &
      bind(c, name="ferrier_problem_tolerance")
      import
      type(c_ptr), value :: problem
      real(c_double), value :: bound
    end function
    integer(c_int) function c_ferrier_problem_reproducible(problem, yes) &
      bind(c, name="ferrier_problem_reproducible")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: yes
    end function
    integer(c_int) function c_ferrier_problem_operators(problem, yes) &
      bind(c, name="ferrier_problem_operators")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: yes
    end function
    integer(c_int) function c_ferrier_problem_free(problem) &
      bind(c, name="ferrier_problem_free")
      import
      type(c_ptr), value :: problem
    end function
    integer(c_int) function c_ferrier_options_create(options) &
      bind(c, name="ferrier_options_create")
      import
      type(c_ptr), intent(out) :: options
    end function
    integer(c_int) function c_ferrier_options_set(options, key, text) &
      bind(c, name="ferrier_options_set")
      import
      type(c_ptr), value :: options
      character(kind=c_char), intent(in) :: key(*)
      character(kind=c_char), intent(in) :: text(*)
    end function
    integer(c_int) function c_ferrier_options_effort(options, effort, seconds) &
      bind(c, name="ferrier_options_effort")
      import
      type(c_ptr), value :: options
      integer(c_int32_t), value :: effort
      real(c_double), value :: seconds
    end function
    integer(c_int) function c_ferrier_options_wisdom(options, path) &
      bind(c, name="ferrier_options_wisdom")
      import
      type(c_ptr), value :: options
      type(c_ptr), value :: path
    end function
    integer(c_int) function c_ferrier_options_cuda(options, device) &
      bind(c, name="ferrier_options_cuda")
      import
      type(c_ptr), value :: options
      integer(c_int32_t), value :: device
    end function
    integer(c_int) function c_ferrier_options_free(options) &
      bind(c, name="ferrier_options_free")
      import
      type(c_ptr), value :: options
    end function
    integer(c_int) function c_ferrier_operator_named(plan, name, lengths, parameters, count, op) &
      bind(c, name="ferrier_operator_named")
      import
      type(c_ptr), value :: plan
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), intent(in) :: lengths(*)
      real(c_double), intent(in) :: parameters(*)
      integer(c_int64_t), value :: count
      type(c_ptr), intent(out) :: op
    end function
    integer(c_int) function c_ferrier_operator_callback(function, data, op) &
      bind(c, name="ferrier_operator_callback")
      import
      type(c_funptr), value :: function
      type(c_ptr), value :: data
      type(c_ptr), intent(out) :: op
    end function
    integer(c_int) function c_ferrier_operator_free(op) &
      bind(c, name="ferrier_operator_free")
      import
      type(c_ptr), value :: op
    end function
    integer(c_int) function c_ferrier_plan_create(comm, problem, precision, options, plan) &
      bind(c, name="ferrier_plan_create")
      import
      type(c_ptr), value :: comm
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: precision
      type(c_ptr), value :: options
      type(c_ptr), intent(out) :: plan
    end function
    integer(c_int) function c_ferrier_plan_free(plan) &
      bind(c, name="ferrier_plan_free")
      import
      type(c_ptr), value :: plan
    end function
    integer(c_int) function c_ferrier_plan_box(plan, side, part) &
      bind(c, name="ferrier_plan_box")
      import
      type(c_ptr), value :: plan
      integer(c_int32_t), value :: side
      type(c_box), intent(out) :: part
    end function
    integer(c_int) function c_ferrier_plan_box_of(plan, side, rank, part) &
      bind(c, name="ferrier_plan_box_of")
      import
      type(c_ptr), value :: plan
      integer(c_int32_t), value :: side
      integer(c_int64_t), value :: rank
      type(c_box), intent(out) :: part
    end function
    integer(c_int) function c_ferrier_plan_is_real(plan, side, is_real) &
      bind(c, name="ferrier_plan_is_real")
      import
      type(c_ptr), value :: plan
      integer(c_int32_t), value :: side
      integer(c_int32_t), intent(out) :: is_real
    end function
    integer(c_int) function c_ferrier_plan_precision(plan, precision) &
      bind(c, name="ferrier_plan_precision")
      import
      type(c_ptr), value :: plan
      integer(c_int32_t), intent(out) :: precision
    end function
    integer(c_int) function c_ferrier_plan_input_bytes(plan, bytes) &
      bind(c, name="ferrier_plan_input_bytes")
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), intent(out) :: bytes
    end function
    integer(c_int) function c_ferrier_plan_output_bytes(plan, bytes) &
      bind(c, name="ferrier_plan_output_bytes")
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), intent(out) :: bytes
    end function
    integer(c_int) function c_ferrier_plan_in_place_bytes(plan, bytes) &
      bind(c, name="ferrier_plan_in_place_bytes")
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), intent(out) :: bytes
    end function
    integer(c_int) function c_ferrier_plan_memory_bytes(plan, bytes) &
      bind(c, name="ferrier_plan_memory_bytes")
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), intent(out) :: bytes
    end function
    integer(c_int) function c_ferrier_plan_certificate(plan, certificate) &
      bind(c, name="ferrier_plan_certificate")
      import
      type(c_ptr), value :: plan
      type(ferrier_certificate), intent(out) :: certificate
    end function
    integer(c_int) function c_ferrier_plan_notes(plan, text) &
      bind(c, name="ferrier_plan_notes")
      import
      type(c_ptr), value :: plan
      type(c_ptr), intent(out) :: text
    end function
    integer(c_int) function c_ferrier_plan_json(plan, what, text) &
      bind(c, name="ferrier_plan_json")
      import
      type(c_ptr), value :: plan
      character(kind=c_char), intent(in) :: what(*)
      type(c_ptr), intent(out) :: text
    end function
    integer(c_int) function c_ferrier_string_free(text) &
      bind(c, name="ferrier_string_free")
      import
      type(c_ptr), value :: text
    end function
    integer(c_int) function c_ferrier_plan_execute(plan, action, call, from, from_bytes, to, to_bytes) &
      bind(c, name="ferrier_plan_execute")
      import
      type(c_ptr), value :: plan
      integer(c_int32_t), value :: action
      type(c_call), intent(in) :: call
      type(c_ptr), value :: from
      integer(c_int64_t), value :: from_bytes
      type(c_ptr), value :: to
      integer(c_int64_t), value :: to_bytes
    end function
    integer(c_int) function c_ferrier_comm_sum(comm, values, count) &
      bind(c, name="ferrier_comm_sum")
      import
      type(c_ptr), value :: comm
      real(c_double), intent(inout) :: values(*)
      integer(c_int64_t), value :: count
    end function
    integer(c_int) function c_ferrier_comm_max(comm, values, count) &
      bind(c, name="ferrier_comm_max")
      import
      type(c_ptr), value :: comm
      real(c_double), intent(inout) :: values(*)
      integer(c_int64_t), value :: count
    end function
    integer(c_int) function c_ferrier_problem_redistribute(shape, problem) &
      bind(c, name="ferrier_problem_redistribute")
      import
      integer(c_int64_t), intent(in) :: shape(3)
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int) function c_ferrier_problem_c2c_1d(n, problem) &
      bind(c, name="ferrier_problem_c2c_1d")
      import
      integer(c_int64_t), value :: n
      type(c_ptr), intent(out) :: problem
    end function
    integer(c_int) function c_ferrier_problem_boxes(problem, side, parts, count) &
      bind(c, name="ferrier_problem_boxes")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: side
      type(c_box), intent(in) :: parts(*)
      integer(c_int64_t), value :: count
    end function
    integer(c_int) function c_ferrier_problem_order(problem, side, axes) &
      bind(c, name="ferrier_problem_order")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: side
      integer(c_int64_t), intent(in) :: axes(3)
    end function
    integer(c_int) function c_ferrier_problem_inside(problem, side, outer, margin) &
      bind(c, name="ferrier_problem_inside")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: side
      integer(c_int64_t), intent(in) :: outer(3)
      integer(c_int64_t), intent(in) :: margin(3)
    end function
    integer(c_int) function c_ferrier_problem_pencil_family(problem, side, axis, ranks, rows, columns, contiguous_axis) &
      bind(c, name="ferrier_problem_pencil_family")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: side
      integer(c_int64_t), value :: axis
      integer(c_int64_t), value :: ranks
      integer(c_int64_t), value :: rows
      integer(c_int64_t), value :: columns
      integer(c_int32_t), value :: contiguous_axis
    end function
    integer(c_int) function c_ferrier_problem_sign(problem, sign) &
      bind(c, name="ferrier_problem_sign")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: sign
    end function
    integer(c_int) function c_ferrier_problem_real_input(problem, yes) &
      bind(c, name="ferrier_problem_real_input")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: yes
    end function
    integer(c_int) function c_ferrier_problem_complex_values(problem) &
      bind(c, name="ferrier_problem_complex_values")
      import
      type(c_ptr), value :: problem
    end function
    integer(c_int) function c_ferrier_problem_keep_range(problem, axis, first, last) &
      bind(c, name="ferrier_problem_keep_range")
      import
      type(c_ptr), value :: problem
      integer(c_int64_t), value :: axis
      integer(c_int64_t), value :: first
      integer(c_int64_t), value :: last
    end function
    integer(c_int) function c_ferrier_plan_wire_bytes(plan, bytes) &
      bind(c, name="ferrier_plan_wire_bytes")
      import
      type(c_ptr), value :: plan
      integer(c_int64_t), intent(out) :: bytes
    end function
    integer(c_int) function c_ferrier_plan_field_bytes(plan, side, bytes) &
      bind(c, name="ferrier_plan_field_bytes")
      import
      type(c_ptr), value :: plan
      integer(c_int32_t), value :: side
      integer(c_int64_t), intent(out) :: bytes
    end function
    integer(c_int) function c_ferrier_plan_execute_fields(plan, action, call, count, from, from_bytes, to, to_bytes) &
      bind(c, name="ferrier_plan_execute_fields")
      import
      type(c_ptr), value :: plan
      integer(c_int32_t), value :: action
      type(c_call), intent(in) :: call
      integer(c_int64_t), value :: count
      type(c_ptr), intent(in) :: from(*)
      integer(c_int64_t), value :: from_bytes
      type(c_ptr), intent(in) :: to(*)
      integer(c_int64_t), value :: to_bytes
    end function
    integer(c_int) function c_ferrier_plan_set_stream(plan, stream) &
      bind(c, name="ferrier_plan_set_stream")
      import
      type(c_ptr), value :: plan
      type(c_ptr), value :: stream
    end function
    integer(c_int) function c_ferrier_plan_synchronize(plan) &
      bind(c, name="ferrier_plan_synchronize")
      import
      type(c_ptr), value :: plan
    end function
    integer(c_int) function c_ferrier_draft_create(comm, problem, precision, options, draft) &
      bind(c, name="ferrier_draft_create")
      import
      type(c_ptr), value :: comm
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: precision
      type(c_ptr), value :: options
      type(c_ptr), intent(out) :: draft
    end function
    integer(c_int) function c_ferrier_draft_memory_bytes(draft, bytes) &
      bind(c, name="ferrier_draft_memory_bytes")
      import
      type(c_ptr), value :: draft
      integer(c_int64_t), intent(out) :: bytes
    end function
    integer(c_int) function c_ferrier_draft_largest_memory_bytes(draft, bytes) &
      bind(c, name="ferrier_draft_largest_memory_bytes")
      import
      type(c_ptr), value :: draft
      integer(c_int64_t), intent(out) :: bytes
    end function
    integer(c_int) function c_ferrier_draft_seconds(draft, in_place, seconds) &
      bind(c, name="ferrier_draft_seconds")
      import
      type(c_ptr), value :: draft
      integer(c_int32_t), value :: in_place
      real(c_double), intent(out) :: seconds
    end function
    integer(c_int) function c_ferrier_draft_json(draft, what, text) &
      bind(c, name="ferrier_draft_json")
      import
      type(c_ptr), value :: draft
      character(kind=c_char), intent(in) :: what(*)
      type(c_ptr), intent(out) :: text
    end function
    integer(c_int) function c_ferrier_draft_build(draft, workspace, plan) &
      bind(c, name="ferrier_draft_build")
      import
      type(c_ptr), value :: draft
      integer(c_int32_t), value :: workspace
      type(c_ptr), intent(out) :: plan
    end function
    integer(c_int) function c_ferrier_draft_free(draft) &
      bind(c, name="ferrier_draft_free")
      import
      type(c_ptr), value :: draft
    end function
    integer(c_int) function c_ferrier_predict(problem, precision, options, ranks, nodes, threads, text) &
      bind(c, name="ferrier_predict")
      import
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: precision
      type(c_ptr), value :: options
      integer(c_int64_t), value :: ranks
      integer(c_int64_t), value :: nodes
      integer(c_int64_t), value :: threads
      type(c_ptr), intent(out) :: text
    end function
    integer(c_int) function c_ferrier_redistribution_create(comm, problem, element_bytes, options, redistribution) &
      bind(c, name="ferrier_redistribution_create")
      import
      type(c_ptr), value :: comm
      type(c_ptr), value :: problem
      integer(c_int64_t), value :: element_bytes
      type(c_ptr), value :: options
      type(c_ptr), intent(out) :: redistribution
    end function
    integer(c_int) function c_ferrier_redistribution_free(redistribution) &
      bind(c, name="ferrier_redistribution_free")
      import
      type(c_ptr), value :: redistribution
    end function
    integer(c_int) function c_ferrier_redistribution_box(redistribution, side, part) &
      bind(c, name="ferrier_redistribution_box")
      import
      type(c_ptr), value :: redistribution
      integer(c_int32_t), value :: side
      type(c_box), intent(out) :: part
    end function
    integer(c_int) function c_ferrier_redistribution_bytes(redistribution, side, bytes) &
      bind(c, name="ferrier_redistribution_bytes")
      import
      type(c_ptr), value :: redistribution
      integer(c_int32_t), value :: side
      integer(c_int64_t), intent(out) :: bytes
    end function
    integer(c_int) function c_ferrier_redistribution_run(redistribution, from, from_bytes, to, to_bytes) &
      bind(c, name="ferrier_redistribution_run")
      import
      type(c_ptr), value :: redistribution
      type(c_ptr), value :: from
      integer(c_int64_t), value :: from_bytes
      type(c_ptr), value :: to
      integer(c_int64_t), value :: to_bytes
    end function
    integer(c_int) function c_ferrier_redistribution_run_in_place(redistribution, array, bytes) &
      bind(c, name="ferrier_redistribution_run_in_place")
      import
      type(c_ptr), value :: redistribution
      type(c_ptr), value :: array
      integer(c_int64_t), value :: bytes
    end function
    integer(c_int) function c_ferrier_redistribution_notes(redistribution, text) &
      bind(c, name="ferrier_redistribution_notes")
      import
      type(c_ptr), value :: redistribution
      type(c_ptr), intent(out) :: text
    end function
    integer(c_int) function c_ferrier_halo_create(comm, problem, side, element_bytes, ghosts, made) &
      bind(c, name="ferrier_halo_create")
      import
      type(c_ptr), value :: comm
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: side
      integer(c_int64_t), value :: element_bytes
      type(c_ghosts), intent(in) :: ghosts
      type(c_ptr), intent(out) :: made
    end function
    integer(c_int) function c_ferrier_halo_free(handle) &
      bind(c, name="ferrier_halo_free")
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function c_ferrier_halo_box(handle, part) &
      bind(c, name="ferrier_halo_box")
      import
      type(c_ptr), value :: handle
      type(c_box), intent(out) :: part
    end function
    integer(c_int) function c_ferrier_halo_shape(handle, shape) &
      bind(c, name="ferrier_halo_shape")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), intent(out) :: shape(3)
    end function
    integer(c_int) function c_ferrier_halo_bytes(handle, bytes) &
      bind(c, name="ferrier_halo_bytes")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), intent(out) :: bytes
    end function
    integer(c_int) function c_ferrier_halo_exchange(handle, fields, count, bytes) &
      bind(c, name="ferrier_halo_exchange")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(in) :: fields(*)
      integer(c_int64_t), value :: count
      integer(c_int64_t), value :: bytes
    end function
    integer(c_int) function c_ferrier_halo_start(handle, fields, count, bytes) &
      bind(c, name="ferrier_halo_start")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(in) :: fields(*)
      integer(c_int64_t), value :: count
      integer(c_int64_t), value :: bytes
    end function
    integer(c_int) function c_ferrier_ghost_sum_create(comm, problem, side, element, ghosts, made) &
      bind(c, name="ferrier_ghost_sum_create")
      import
      type(c_ptr), value :: comm
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: side
      integer(c_int32_t), value :: element
      type(c_ghosts), intent(in) :: ghosts
      type(c_ptr), intent(out) :: made
    end function
    integer(c_int) function c_ferrier_ghost_sum_free(handle) &
      bind(c, name="ferrier_ghost_sum_free")
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function c_ferrier_ghost_sum_box(handle, part) &
      bind(c, name="ferrier_ghost_sum_box")
      import
      type(c_ptr), value :: handle
      type(c_box), intent(out) :: part
    end function
    integer(c_int) function c_ferrier_ghost_sum_shape(handle, shape) &
      bind(c, name="ferrier_ghost_sum_shape")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), intent(out) :: shape(3)
    end function
    integer(c_int) function c_ferrier_ghost_sum_bytes(handle, bytes) &
      bind(c, name="ferrier_ghost_sum_bytes")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), intent(out) :: bytes
    end function
    integer(c_int) function c_ferrier_ghost_sum_run(handle, fields, count, bytes) &
      bind(c, name="ferrier_ghost_sum_run")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(in) :: fields(*)
      integer(c_int64_t), value :: count
      integer(c_int64_t), value :: bytes
    end function
    integer(c_int) function c_ferrier_halo_finish(handle) &
      bind(c, name="ferrier_halo_finish")
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function c_ferrier_halo_notes(handle, text) &
      bind(c, name="ferrier_halo_notes")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(out) :: text
    end function
    type(c_ptr) function c_ferrier_last_error() bind(c, name="ferrier_last_error")
      import
    end function
    type(c_ptr) function c_ferrier_version() bind(c, name="ferrier_version")
      import
    end function
    integer(c_size_t) function c_strlen(text) bind(c, name="strlen")
      import
      type(c_ptr), value :: text
    end function
    integer(c_int) function c_ferrier_comm_nodes(handle, n) &
      bind(c, name="ferrier_comm_nodes")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), intent(out) :: n
    end function
    integer(c_int) function c_ferrier_comm_threads(handle, n) &
      bind(c, name="ferrier_comm_threads")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), intent(out) :: n
    end function
    integer(c_int) function c_ferrier_comm_barrier(handle) &
      bind(c, name="ferrier_comm_barrier")
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function c_ferrier_comm_json(handle, text) &
      bind(c, name="ferrier_comm_json")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(out) :: text
    end function
    integer(c_int) function c_ferrier_problem_clone(handle, made) &
      bind(c, name="ferrier_problem_clone")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(out) :: made
    end function
    integer(c_int) function c_ferrier_problem_check(handle) &
      bind(c, name="ferrier_problem_check")
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function c_ferrier_problem_json(handle, text) &
      bind(c, name="ferrier_problem_json")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(out) :: text
    end function
    integer(c_int) function c_ferrier_problem_spectrum_shape(handle, three) &
      bind(c, name="ferrier_problem_spectrum_shape")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), intent(out) :: three(3)
    end function
    integer(c_int) function c_ferrier_problem_kept_modes(handle, axis, list, room, n) &
      bind(c, name="ferrier_problem_kept_modes")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), value :: axis
      integer(c_int64_t), intent(out) :: list(*)
      integer(c_int64_t), value :: room
      integer(c_int64_t), intent(out) :: n
    end function
    integer(c_int) function c_ferrier_problem_columns(handle, list, room, n) &
      bind(c, name="ferrier_problem_columns")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), intent(out) :: list(*)
      integer(c_int64_t), value :: room
      integer(c_int64_t), intent(out) :: n
    end function
    integer(c_int) function c_ferrier_problem_mode(handle, k, three) &
      bind(c, name="ferrier_problem_mode")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), value :: k
      integer(c_int64_t), intent(out) :: three(3)
    end function
    integer(c_int) function c_ferrier_options_set_json(handle, string) &
      bind(c, name="ferrier_options_set_json")
      import
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: string(*)
    end function
    integer(c_int) function c_ferrier_array_data(handle, made) &
      bind(c, name="ferrier_array_data")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(out) :: made
    end function
    integer(c_int) function c_ferrier_array_bytes(handle, n) &
      bind(c, name="ferrier_array_bytes")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), intent(out) :: n
    end function
    integer(c_int) function c_ferrier_array_upload(handle, address, bytes) &
      bind(c, name="ferrier_array_upload")
      import
      type(c_ptr), value :: handle
      type(c_ptr), value :: address
      integer(c_int64_t), value :: bytes
    end function
    integer(c_int) function c_ferrier_array_download(handle, address, bytes) &
      bind(c, name="ferrier_array_download")
      import
      type(c_ptr), value :: handle
      type(c_ptr), value :: address
      integer(c_int64_t), value :: bytes
    end function
    integer(c_int) function c_ferrier_array_free(handle) &
      bind(c, name="ferrier_array_free")
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function c_ferrier_workspace_free(handle) &
      bind(c, name="ferrier_workspace_free")
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function c_ferrier_plan_order(handle, side, three) &
      bind(c, name="ferrier_plan_order")
      import
      type(c_ptr), value :: handle
      integer(c_int32_t), value :: side
      integer(c_int64_t), intent(out) :: three(3)
    end function
    integer(c_int) function c_ferrier_plan_is_tuning(handle, flag) &
      bind(c, name="ferrier_plan_is_tuning")
      import
      type(c_ptr), value :: handle
      integer(c_int32_t), intent(out) :: flag
    end function
    integer(c_int) function c_ferrier_plan_make_input(handle, made) &
      bind(c, name="ferrier_plan_make_input")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(out) :: made
    end function
    integer(c_int) function c_ferrier_plan_make_output(handle, made) &
      bind(c, name="ferrier_plan_make_output")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(out) :: made
    end function
    integer(c_int) function c_ferrier_plan_make_in_place(handle, made) &
      bind(c, name="ferrier_plan_make_in_place")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(out) :: made
    end function
    integer(c_int) function c_ferrier_plan_make_workspace(handle, made) &
      bind(c, name="ferrier_plan_make_workspace")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(out) :: made
    end function
    integer(c_int) function c_ferrier_redistribution_make(handle, side, made) &
      bind(c, name="ferrier_redistribution_make")
      import
      type(c_ptr), value :: handle
      integer(c_int32_t), value :: side
      type(c_ptr), intent(out) :: made
    end function
    integer(c_int) function c_ferrier_redistribution_memory_bytes(handle, n) &
      bind(c, name="ferrier_redistribution_memory_bytes")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), intent(out) :: n
    end function
    integer(c_int) function c_ferrier_redistribution_set_stream(handle, address) &
      bind(c, name="ferrier_redistribution_set_stream")
      import
      type(c_ptr), value :: handle
      type(c_ptr), value :: address
    end function
    integer(c_int) function c_ferrier_redistribution_synchronize(handle) &
      bind(c, name="ferrier_redistribution_synchronize")
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function c_ferrier_halo_strides(handle, three) &
      bind(c, name="ferrier_halo_strides")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), intent(out) :: three(3)
    end function
    integer(c_int) function c_ferrier_halo_memory_bytes(handle, n) &
      bind(c, name="ferrier_halo_memory_bytes")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), intent(out) :: n
    end function
    integer(c_int) function c_ferrier_halo_make(handle, made) &
      bind(c, name="ferrier_halo_make")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(out) :: made
    end function
    integer(c_int) function c_ferrier_halo_set_stream(handle, address) &
      bind(c, name="ferrier_halo_set_stream")
      import
      type(c_ptr), value :: handle
      type(c_ptr), value :: address
    end function
    integer(c_int) function c_ferrier_halo_synchronize(handle) &
      bind(c, name="ferrier_halo_synchronize")
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function c_ferrier_ghost_sum_strides(handle, three) &
      bind(c, name="ferrier_ghost_sum_strides")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), intent(out) :: three(3)
    end function
    integer(c_int) function c_ferrier_ghost_sum_memory_bytes(handle, n) &
      bind(c, name="ferrier_ghost_sum_memory_bytes")
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), intent(out) :: n
    end function
    integer(c_int) function c_ferrier_ghost_sum_make(handle, made) &
      bind(c, name="ferrier_ghost_sum_make")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(out) :: made
    end function
    integer(c_int) function c_ferrier_ghost_sum_set_stream(handle, address) &
      bind(c, name="ferrier_ghost_sum_set_stream")
      import
      type(c_ptr), value :: handle
      type(c_ptr), value :: address
    end function
    integer(c_int) function c_ferrier_ghost_sum_synchronize(handle) &
      bind(c, name="ferrier_ghost_sum_synchronize")
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function c_ferrier_ghost_sum_notes(handle, text) &
      bind(c, name="ferrier_ghost_sum_notes")
      import
      type(c_ptr), value :: handle
      type(c_ptr), intent(out) :: text
    end function
    integer(c_int) function c_ferrier_info(text) &
      bind(c, name="ferrier_info")
      import
      type(c_ptr), intent(out) :: text
    end function
    integer(c_int) function c_ferrier_wisdom_file(text) &
      bind(c, name="ferrier_wisdom_file")
      import
      type(c_ptr), intent(out) :: text
    end function
    integer(c_int) function c_ferrier_wisdom_merge(string, other) &
      bind(c, name="ferrier_wisdom_merge")
      import
      character(kind=c_char), intent(in) :: string(*)
      character(kind=c_char), intent(in) :: other(*)
    end function
    integer(c_int) function c_ferrier_measure_machine(handle, place, text) &
      bind(c, name="ferrier_measure_machine")
      import
      type(c_ptr), value :: handle
      type(c_ptr), value :: place
      type(c_ptr), intent(out) :: text
    end function
    integer(c_int) function c_ferrier_cuda_count(n) &
      bind(c, name="ferrier_cuda_count")
      import
      integer(c_int64_t), intent(out) :: n
    end function
    integer(c_int) function c_ferrier_run_ranks(ranks, nodes, threads, function, data) &
      bind(c, name="ferrier_run_ranks")
      import
      integer(c_int64_t), value :: ranks
      integer(c_int64_t), value :: nodes
      integer(c_int64_t), value :: threads
      type(c_funptr), value :: function
      type(c_ptr), value :: data
    end function
    type(c_ptr) function c_ferrier_status_name(status) bind(c, name="ferrier_status_name")
      import
      integer(c_int32_t), value :: status
    end function
  end interface

contains

  ! The text of the last error in this thread.
  function ferrier_error_text() result(text)
    character(:), allocatable :: text
    text = to_text(c_ferrier_last_error())
  end function

  function ferrier_version() result(text)
    character(:), allocatable :: text
    text = to_text(c_ferrier_version())
  end function

  function to_text(pointer) result(text)
    type(c_ptr), intent(in) :: pointer
    character(:), allocatable :: text
    character(kind=c_char), pointer :: bytes(:)
    integer :: i
    if (.not. c_associated(pointer)) then
      text = ""
      return
    end if
    call c_f_pointer(pointer, bytes, [c_strlen(pointer)])
    allocate (character(size(bytes)) :: text)
    do i = 1, size(bytes)
      text(i:i) = bytes(i)
    end do
  end function

  ! A text that the library gave; frees it.
  function taken(pointer) result(text)
    type(c_ptr), intent(in) :: pointer
    character(:), allocatable :: text
    integer(c_int) :: ignored
    text = to_text(pointer)
    ignored = c_ferrier_string_free(pointer)
  end function

  subroutine done(status, stat)
    integer(c_int), intent(in) :: status
    integer, intent(out), optional :: stat
    if (present(stat)) then
      stat = status
    else if (status /= 0) then
      write (error_unit, '(a)') "ferrier: " // ferrier_error_text()
      error stop 2
    end if
  end subroutine

  ! Fortran's axis 1 is ferrier.h's axis 2.
  pure elemental function axis_of(axis) result(c_axis)
    integer, intent(in) :: axis
    integer(c_int64_t) :: c_axis
    c_axis = 3 - axis
  end function

  pure function reversed(three) result(other)
    integer, intent(in) :: three(3)
    integer(c_int64_t) :: other(3)
    other = three(3:1:-1)
  end function

  pure function from_c(part) result(box)
    type(c_box), intent(in) :: part
    type(ferrier_box) :: box
    box%lo = part%lo(3:1:-1) + 1
    box%hi = part%hi(3:1:-1)
  end function

  ! This process alone.
  subroutine comm_one(self, stat)
    class(ferrier_comm), intent(inout) :: self
    integer, intent(out), optional :: stat
    call done(c_ferrier_comm_one(self%handle), stat)
  end subroutine

  ! All processes of this launch, or this one alone. Collective.
  subroutine comm_world(self, stat)
    class(ferrier_comm), intent(inout) :: self
    integer, intent(out), optional :: stat
    call done(c_ferrier_comm_world(self%handle), stat)
  end subroutine

  ! A communicator of the MPI that the program uses. Collective over it.
  subroutine comm_from_mpi(self, mpi_comm, stat)
    class(ferrier_comm), intent(inout) :: self
    integer, intent(in) :: mpi_comm
    integer, intent(out), optional :: stat
    call done(c_ferrier_comm_from_fortran(int(mpi_comm, c_int32_t), c_null_ptr, self%handle), stat)
  end subroutine

  subroutine comm_set_threads(self, threads, stat)
    class(ferrier_comm), intent(inout) :: self
    integer, intent(in) :: threads
    integer, intent(out), optional :: stat
    call done(c_ferrier_comm_set_threads(self%handle, int(threads, c_int64_t)), stat)
  end subroutine

  integer function comm_rank(self)
    class(ferrier_comm), intent(in) :: self
    integer(c_int64_t) :: number
    number = 0
    call done(c_ferrier_comm_rank(self%handle, number))
    comm_rank = int(number)
  end function

  integer function comm_size(self)
    class(ferrier_comm), intent(in) :: self
    integer(c_int64_t) :: number
    number = 0
    call done(c_ferrier_comm_size(self%handle, number))
    comm_size = int(number)
  end function

  subroutine comm_destroy(self, stat)
    class(ferrier_comm), intent(inout) :: self
    integer, intent(out), optional :: stat
    type(c_ptr) :: handle
    handle = self%handle
    self%handle = c_null_ptr
    call done(c_ferrier_comm_free(handle), stat)
  end subroutine

  ! A complex transform.
  subroutine problem_c2c(self, shape, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: shape(3)
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_c2c(reversed(shape), self%handle), stat)
  end subroutine

  ! Real to complex; shape is that of the real field.
  subroutine problem_r2c(self, shape, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: shape(3)
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_r2c(reversed(shape), self%handle), stat)
  end subroutine

  ! A kind for each axis: ferrier_none, ferrier_c2c, ferrier_kind_r2c, ferrier_dct1, ...
  subroutine problem_mixed(self, shape, kinds, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: shape(3)
    integer, intent(in) :: kinds(3)
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_mixed(reversed(shape), int(kinds(3:1:-1), c_int32_t), self%handle), stat)
  end subroutine

  subroutine problem_from_json(self, text, stat)
    class(ferrier_problem), intent(inout) :: self
    character(*), intent(in) :: text
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_from_json(text // c_null_char, self%handle), stat)
  end subroutine

  subroutine problem_slabs(self, side, axis, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: side, axis
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_slabs(self%handle, int(side, c_int32_t), axis_of(axis)), stat)
  end subroutine

  subroutine problem_pencils(self, side, axis, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: side, axis
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_pencils(self%handle, int(side, c_int32_t), axis_of(axis)), stat)
  end subroutine

  subroutine problem_bricks(self, side, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: side
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_bricks(self%handle, int(side, c_int32_t)), stat)
  end subroutine

  subroutine problem_unconstrained(self, side, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: side
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_unconstrained(self%handle, int(side, c_int32_t)), stat)
  end subroutine

  ! The box of this rank.
  subroutine problem_local_box(self, side, box, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: side
    type(ferrier_box), intent(in) :: box
    type(c_box) :: part
    integer, intent(out), optional :: stat
    part%lo = box%lo(3:1:-1) - 1
    part%hi = box%hi(3:1:-1)
    call done(c_ferrier_problem_local_box(self%handle, int(side, c_int32_t), part), stat)
  end subroutine

  subroutine problem_grid(self, side, grid, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: side
    integer, intent(in) :: grid(3)
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_grid(self%handle, int(side, c_int32_t), reversed(grid)), stat)
  end subroutine

  ! In elements; batch 0: arrays one after the other.
  subroutine problem_strides(self, side, strides, offset, batch, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: side
    integer, intent(in) :: strides(3)
    integer, intent(in) :: offset, batch
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_strides(self%handle, int(side, c_int32_t), reversed(strides), &
      int(offset, c_int64_t), int(batch, c_int64_t)), stat)
  end subroutine

  subroutine problem_axes(self, axes, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: axes(:)
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_axes(self%handle, axis_of(axes), size(axes, kind=c_int64_t)), stat)
  end subroutine

  subroutine problem_halved(self, axis, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: axis
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_halved(self%handle, axis_of(axis)), stat)
  end subroutine

  subroutine problem_batch(self, arrays, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: arrays
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_batch(self%handle, int(arrays, c_int64_t)), stat)
  end subroutine

  subroutine problem_scale(self, forward, backward, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: forward, backward
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_scale(self%handle, int(forward, c_int32_t), int(backward, c_int32_t)), stat)
  end subroutine

  subroutine problem_keep_lowest(self, axis, modes, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: axis, modes
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_keep_lowest(self%handle, axis_of(axis), int(modes, c_int64_t)), stat)
  end subroutine

  subroutine problem_keep_ellipsoid(self, radii, stat)
    class(ferrier_problem), intent(inout) :: self
    real(c_double), intent(in) :: radii(3)
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_keep_ellipsoid(self%handle, radii(3:1:-1)), stat)
  end subroutine

  ! Points first to last of an axis, inclusive.
  subroutine problem_support(self, axis, first, last, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: axis, first, last
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_support(self%handle, axis_of(axis), int(first - 1, c_int64_t), int(last, c_int64_t)), stat)
  end subroutine

  subroutine problem_tolerance(self, bound, stat)
    class(ferrier_problem), intent(inout) :: self
    real(c_double), intent(in) :: bound
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_tolerance(self%handle, bound), stat)
  end subroutine

  subroutine problem_reproducible(self, yes, stat)
    class(ferrier_problem), intent(inout) :: self
    logical, intent(in) :: yes
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_reproducible(self%handle, merge(1_c_int32_t, 0_c_int32_t, yes)), stat)
  end subroutine

  subroutine problem_operators(self, yes, stat)
    class(ferrier_problem), intent(inout) :: self
    logical, intent(in) :: yes
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_operators(self%handle, merge(1_c_int32_t, 0_c_int32_t, yes)), stat)
  end subroutine

  subroutine problem_destroy(self, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(out), optional :: stat
    type(c_ptr) :: handle
    handle = self%handle
    self%handle = c_null_ptr
    call done(c_ferrier_problem_free(handle), stat)
  end subroutine

  subroutine options_create(self, stat)
    class(ferrier_options), intent(inout) :: self
    integer, intent(out), optional :: stat
    call done(c_ferrier_options_create(self%handle), stat)
  end subroutine

  subroutine options_set(self, key, text, stat)
    class(ferrier_options), intent(inout) :: self
    character(*), intent(in) :: key, text
    integer, intent(out), optional :: stat
    call done(c_ferrier_options_set(self%handle, key // c_null_char, text // c_null_char), stat)
  end subroutine

  subroutine options_effort(self, effort, seconds, stat)
    class(ferrier_options), intent(inout) :: self
    integer, intent(in) :: effort
    real(c_double), intent(in) :: seconds
    integer, intent(out), optional :: stat
    call done(c_ferrier_options_effort(self%handle, int(effort, c_int32_t), seconds), stat)
  end subroutine

  ! A wisdom file; an empty path: none.
  subroutine options_wisdom(self, path, stat)
    class(ferrier_options), intent(inout) :: self
    character(*), intent(in) :: path
    character(len=len(path) + 1, kind=c_char), target :: text
    integer, intent(out), optional :: stat
    text = path // c_null_char
    call done(c_ferrier_options_wisdom(self%handle, merge(c_null_ptr, c_loc(text), len(path) == 0)), stat)
  end subroutine

  subroutine options_cuda(self, device, stat)
    class(ferrier_options), intent(inout) :: self
    integer, intent(in) :: device
    integer, intent(out), optional :: stat
    call done(c_ferrier_options_cuda(self%handle, int(device, c_int32_t)), stat)
  end subroutine

  subroutine options_destroy(self, stat)
    class(ferrier_options), intent(inout) :: self
    integer, intent(out), optional :: stat
    type(c_ptr) :: handle
    handle = self%handle
    self%handle = c_null_ptr
    call done(c_ferrier_options_free(handle), stat)
  end subroutine

  ! One of Ferrier's operators for a plan: "laplacian", "inverse_laplacian", "helmholtz" (shift), "derivative" (axis),
  ! "gaussian" (sigma), "low_pass" (largest wave number), "shift" (three distances), "two_thirds".
  subroutine operator_named(self, plan, name, lengths, parameters, stat)
    class(ferrier_operator), intent(inout) :: self
    class(ferrier_plan), intent(in) :: plan
    character(*), intent(in) :: name
    real(c_double), intent(in) :: lengths(3)
    real(c_double), intent(in), optional :: parameters(:)
    integer, intent(out), optional :: stat
    real(c_double), allocatable :: given(:)
    allocate (given(0))
    if (present(parameters)) then
      given = parameters
      if (name == "shift" .and. size(given) == 3) given = given(3:1:-1)
      if (name == "derivative") given = 3 - given
    end if
    call done(c_ferrier_operator_named(plan%handle, name // c_null_char, lengths(3:1:-1), given, &
      size(given, kind=c_int64_t), self%handle), stat)
  end subroutine

  ! An operator of the program: c_funloc of a bind(c) subroutine (type(c_ptr), value :: data; type(ferrier_mode_run) :: run).
  ! It is called from several threads at once.
  subroutine operator_callback(self, function, data, stat)
    class(ferrier_operator), intent(inout) :: self
    type(c_funptr), intent(in) :: function
    type(c_ptr), intent(in) :: data
    integer, intent(out), optional :: stat
    call done(c_ferrier_operator_callback(function, data, self%handle), stat)
  end subroutine

  subroutine operator_destroy(self, stat)
    class(ferrier_operator), intent(inout) :: self
    integer, intent(out), optional :: stat
    type(c_ptr) :: handle
    handle = self%handle
    self%handle = c_null_ptr
    call done(c_ferrier_operator_free(handle), stat)
  end subroutine

  ! Makes a plan of ferrier_real32 or ferrier_real64. Collective.
  subroutine plan_create(self, comm, problem, precision, options, stat)
    class(ferrier_plan), intent(inout) :: self
    type(ferrier_comm), intent(in) :: comm
    type(ferrier_problem), intent(in) :: problem
    integer, intent(in) :: precision
    type(ferrier_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    type(c_ptr) :: given
    given = c_null_ptr
    if (present(options)) given = options%handle
    call done(c_ferrier_plan_create(comm%handle, problem%handle, int(precision, c_int32_t), given, self%handle), stat)
  end subroutine

  ! The box of this rank (ferrier_input or ferrier_output).
  function plan_box(self, side) result(box)
    class(ferrier_plan), intent(in) :: self
    integer, intent(in) :: side
    type(ferrier_box) :: box
    type(c_box) :: part
    call done(c_ferrier_plan_box(self%handle, int(side, c_int32_t), part))
    box = from_c(part)
  end function

  ! The box of a rank, from 0 on as in MPI.
  function plan_box_of(self, side, rank) result(box)
    class(ferrier_plan), intent(in) :: self
    integer, intent(in) :: side, rank
    type(ferrier_box) :: box
    type(c_box) :: part
    call done(c_ferrier_plan_box_of(self%handle, int(side, c_int32_t), int(rank, c_int64_t), part))
    box = from_c(part)
  end function

  ! Elements of the input of forward on this rank, real or complex.
  function plan_input_size(self) result(elements)
    class(ferrier_plan), intent(in) :: self
    integer(int64) :: elements
    integer(c_int64_t) :: bytes
    call done(c_ferrier_plan_input_bytes(self%handle, bytes))
    elements = bytes / element_bytes(self, ferrier_input)
  end function

  ! Elements of the output of forward on this rank, real or complex.
  function plan_output_size(self) result(elements)
    class(ferrier_plan), intent(in) :: self
    integer(int64) :: elements
    integer(c_int64_t) :: bytes
    call done(c_ferrier_plan_output_bytes(self%handle, bytes))
    elements = bytes / element_bytes(self, ferrier_output)
  end function

  function element_bytes(self, side) result(bytes)
    class(ferrier_plan), intent(in) :: self
    integer, intent(in) :: side
    integer(int64) :: bytes
    integer(c_int32_t) :: is_real
    call done(c_ferrier_plan_is_real(self%handle, int(side, c_int32_t), is_real))
    bytes = merge(1, 2, is_real == 1) * scalar_bytes(self)
  end function

  function scalar_bytes(self) result(bytes)
    class(ferrier_plan), intent(in) :: self
    integer(int64) :: bytes
    integer(c_int32_t) :: precision
    call done(c_ferrier_plan_precision(self%handle, precision))
    bytes = merge(4, 8, precision == ferrier_real32)
  end function

  function plan_in_place_bytes(self) result(bytes)
    class(ferrier_plan), intent(in) :: self
    integer(c_int64_t) :: bytes
    call done(c_ferrier_plan_in_place_bytes(self%handle, bytes))
  end function

  function plan_memory_bytes(self) result(bytes)
    class(ferrier_plan), intent(in) :: self
    integer(c_int64_t) :: bytes
    call done(c_ferrier_plan_memory_bytes(self%handle, bytes))
  end function

  ! How far the result of the last call may be from the exact one.
  subroutine plan_certificate(self, certificate, stat)
    class(ferrier_plan), intent(in) :: self
    type(ferrier_certificate), intent(out) :: certificate
    integer, intent(out), optional :: stat
    call done(c_ferrier_plan_certificate(self%handle, certificate), stat)
  end subroutine

  ! The substitutions that Ferrier made, one per line.
  function plan_notes(self) result(text)
    class(ferrier_plan), intent(in) :: self
    character(:), allocatable :: text
    type(c_ptr) :: given
    call done(c_ferrier_plan_notes(self%handle, given))
    text = taken(given)
  end function

  ! A part of the plan as JSON: "recipe", "memory", "notes", "events", "profile", "certificate".
  function plan_json(self, what) result(text)
    class(ferrier_plan), intent(in) :: self
    character(*), intent(in) :: what
    character(:), allocatable :: text
    type(c_ptr) :: given
    call done(c_ferrier_plan_json(self%handle, what // c_null_char, given))
    text = taken(given)
  end function

  subroutine plan_destroy(self, stat)
    class(ferrier_plan), intent(inout) :: self
    integer, intent(out), optional :: stat
    type(c_ptr) :: handle
    handle = self%handle
    self%handle = c_null_ptr
    call done(c_ferrier_plan_free(handle), stat)
  end subroutine

  ! All calls of plans: the actions are those of ferrier.h.
  subroutine run(self, action, from, from_bytes, to, to_bytes, scale, op, stat)
    class(ferrier_plan), intent(in) :: self
    integer, intent(in) :: action
    type(c_ptr), intent(in) :: from, to
    integer(c_int64_t), intent(in) :: from_bytes, to_bytes
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in), optional :: op
    integer, intent(out), optional :: stat
    type(c_call) :: call_
    call_ = c_call(c_sizeof(call_), 1.0_c_double, c_null_ptr, c_null_ptr)
    if (present(scale)) call_%scale = scale
    if (present(op)) call_%op = op%handle
    call done(c_ferrier_plan_execute(self%handle, int(action, c_int32_t), call_, from, from_bytes, to, to_bytes), stat)
  end subroutine

  subroutine forward_c4c4(self, from, to, scale, op, stat)
    class(ferrier_plan), intent(in) :: self
    complex(c_float), intent(in), contiguous, target :: from(..)
    complex(c_float), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in), optional :: op
    integer, intent(out), optional :: stat
    call run(self, 0, c_loc(from), 8 * size(from, kind=c_int64_t), &
      c_loc(to), 8 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine forward_c8c8(self, from, to, scale, op, stat)
    class(ferrier_plan), intent(in) :: self
    complex(c_double), intent(in), contiguous, target :: from(..)
    complex(c_double), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in), optional :: op
    integer, intent(out), optional :: stat
    call run(self, 0, c_loc(from), 16 * size(from, kind=c_int64_t), &
      c_loc(to), 16 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine forward_r4c4(self, from, to, scale, op, stat)
    class(ferrier_plan), intent(in) :: self
    real(c_float), intent(in), contiguous, target :: from(..)
    complex(c_float), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in), optional :: op
    integer, intent(out), optional :: stat
    call run(self, 0, c_loc(from), 4 * size(from, kind=c_int64_t), &
      c_loc(to), 8 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine forward_r8c8(self, from, to, scale, op, stat)
    class(ferrier_plan), intent(in) :: self
    real(c_double), intent(in), contiguous, target :: from(..)
    complex(c_double), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in), optional :: op
    integer, intent(out), optional :: stat
    call run(self, 0, c_loc(from), 8 * size(from, kind=c_int64_t), &
      c_loc(to), 16 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine forward_r4r4(self, from, to, scale, op, stat)
    class(ferrier_plan), intent(in) :: self
    real(c_float), intent(in), contiguous, target :: from(..)
    real(c_float), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in), optional :: op
    integer, intent(out), optional :: stat
    call run(self, 0, c_loc(from), 4 * size(from, kind=c_int64_t), &
      c_loc(to), 4 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine forward_r8r8(self, from, to, scale, op, stat)
    class(ferrier_plan), intent(in) :: self
    real(c_double), intent(in), contiguous, target :: from(..)
    real(c_double), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in), optional :: op
    integer, intent(out), optional :: stat
    call run(self, 0, c_loc(from), 8 * size(from, kind=c_int64_t), &
      c_loc(to), 8 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine backward_c4c4(self, from, to, scale, op, stat)
    class(ferrier_plan), intent(in) :: self
    complex(c_float), intent(in), contiguous, target :: from(..)
    complex(c_float), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in), optional :: op
    integer, intent(out), optional :: stat
    call run(self, 1, c_loc(from), 8 * size(from, kind=c_int64_t), &
      c_loc(to), 8 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine backward_c8c8(self, from, to, scale, op, stat)
    class(ferrier_plan), intent(in) :: self
    complex(c_double), intent(in), contiguous, target :: from(..)
    complex(c_double), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in), optional :: op
    integer, intent(out), optional :: stat
    call run(self, 1, c_loc(from), 16 * size(from, kind=c_int64_t), &
      c_loc(to), 16 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine backward_c4r4(self, from, to, scale, op, stat)
    class(ferrier_plan), intent(in) :: self
    complex(c_float), intent(in), contiguous, target :: from(..)
    real(c_float), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in), optional :: op
    integer, intent(out), optional :: stat
    call run(self, 1, c_loc(from), 8 * size(from, kind=c_int64_t), &
      c_loc(to), 4 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine backward_c8r8(self, from, to, scale, op, stat)
    class(ferrier_plan), intent(in) :: self
    complex(c_double), intent(in), contiguous, target :: from(..)
    real(c_double), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in), optional :: op
    integer, intent(out), optional :: stat
    call run(self, 1, c_loc(from), 16 * size(from, kind=c_int64_t), &
      c_loc(to), 8 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine backward_r4r4(self, from, to, scale, op, stat)
    class(ferrier_plan), intent(in) :: self
    real(c_float), intent(in), contiguous, target :: from(..)
    real(c_float), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in), optional :: op
    integer, intent(out), optional :: stat
    call run(self, 1, c_loc(from), 4 * size(from, kind=c_int64_t), &
      c_loc(to), 4 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine backward_r8r8(self, from, to, scale, op, stat)
    class(ferrier_plan), intent(in) :: self
    real(c_double), intent(in), contiguous, target :: from(..)
    real(c_double), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in), optional :: op
    integer, intent(out), optional :: stat
    call run(self, 1, c_loc(from), 8 * size(from, kind=c_int64_t), &
      c_loc(to), 8 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine apply_c4c4(self, op, from, to, scale, stat)
    class(ferrier_plan), intent(in) :: self
    complex(c_float), intent(in), contiguous, target :: from(..)
    complex(c_float), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in) :: op
    integer, intent(out), optional :: stat
    call run(self, 2, c_loc(from), 8 * size(from, kind=c_int64_t), &
      c_loc(to), 8 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine apply_c8c8(self, op, from, to, scale, stat)
    class(ferrier_plan), intent(in) :: self
    complex(c_double), intent(in), contiguous, target :: from(..)
    complex(c_double), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in) :: op
    integer, intent(out), optional :: stat
    call run(self, 2, c_loc(from), 16 * size(from, kind=c_int64_t), &
      c_loc(to), 16 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine apply_r4r4(self, op, from, to, scale, stat)
    class(ferrier_plan), intent(in) :: self
    real(c_float), intent(in), contiguous, target :: from(..)
    real(c_float), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in) :: op
    integer, intent(out), optional :: stat
    call run(self, 2, c_loc(from), 4 * size(from, kind=c_int64_t), &
      c_loc(to), 4 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine apply_r8r8(self, op, from, to, scale, stat)
    class(ferrier_plan), intent(in) :: self
    real(c_double), intent(in), contiguous, target :: from(..)
    real(c_double), intent(inout), contiguous, target :: to(..)
    real(c_double), intent(in), optional :: scale
    class(ferrier_operator), intent(in) :: op
    integer, intent(out), optional :: stat
    call run(self, 2, c_loc(from), 8 * size(from, kind=c_int64_t), &
      c_loc(to), 8 * size(to, kind=c_int64_t), scale, op, stat)
  end subroutine

  subroutine forward_in_place_c4(self, array, scale, stat)
    class(ferrier_plan), intent(in) :: self
    complex(c_float), intent(inout), contiguous, target :: array(..)
    real(c_double), intent(in), optional :: scale
    integer, intent(out), optional :: stat
    call run(self, 3, c_null_ptr, 0_c_int64_t, c_loc(array), 8 * size(array, kind=c_int64_t), scale, stat=stat)
  end subroutine

  subroutine forward_in_place_c8(self, array, scale, stat)
    class(ferrier_plan), intent(in) :: self
    complex(c_double), intent(inout), contiguous, target :: array(..)
    real(c_double), intent(in), optional :: scale
    integer, intent(out), optional :: stat
    call run(self, 3, c_null_ptr, 0_c_int64_t, c_loc(array), 16 * size(array, kind=c_int64_t), scale, stat=stat)
  end subroutine

  subroutine forward_in_place_r4(self, array, scale, stat)
    class(ferrier_plan), intent(in) :: self
    real(c_float), intent(inout), contiguous, target :: array(..)
    real(c_double), intent(in), optional :: scale
    integer, intent(out), optional :: stat
    call run(self, 3, c_null_ptr, 0_c_int64_t, c_loc(array), 4 * size(array, kind=c_int64_t), scale, stat=stat)
  end subroutine

  subroutine forward_in_place_r8(self, array, scale, stat)
    class(ferrier_plan), intent(in) :: self
    real(c_double), intent(inout), contiguous, target :: array(..)
    real(c_double), intent(in), optional :: scale
    integer, intent(out), optional :: stat
    call run(self, 3, c_null_ptr, 0_c_int64_t, c_loc(array), 8 * size(array, kind=c_int64_t), scale, stat=stat)
  end subroutine

  subroutine backward_in_place_c4(self, array, scale, stat)
    class(ferrier_plan), intent(in) :: self
    complex(c_float), intent(inout), contiguous, target :: array(..)
    real(c_double), intent(in), optional :: scale
    integer, intent(out), optional :: stat
    call run(self, 4, c_null_ptr, 0_c_int64_t, c_loc(array), 8 * size(array, kind=c_int64_t), scale, stat=stat)
  end subroutine

  subroutine backward_in_place_c8(self, array, scale, stat)
    class(ferrier_plan), intent(in) :: self
    complex(c_double), intent(inout), contiguous, target :: array(..)
    real(c_double), intent(in), optional :: scale
    integer, intent(out), optional :: stat
    call run(self, 4, c_null_ptr, 0_c_int64_t, c_loc(array), 16 * size(array, kind=c_int64_t), scale, stat=stat)
  end subroutine

  subroutine backward_in_place_r4(self, array, scale, stat)
    class(ferrier_plan), intent(in) :: self
    real(c_float), intent(inout), contiguous, target :: array(..)
    real(c_double), intent(in), optional :: scale
    integer, intent(out), optional :: stat
    call run(self, 4, c_null_ptr, 0_c_int64_t, c_loc(array), 4 * size(array, kind=c_int64_t), scale, stat=stat)
  end subroutine

  subroutine backward_in_place_r8(self, array, scale, stat)
    class(ferrier_plan), intent(in) :: self
    real(c_double), intent(inout), contiguous, target :: array(..)
    real(c_double), intent(in), optional :: scale
    integer, intent(out), optional :: stat
    call run(self, 4, c_null_ptr, 0_c_int64_t, c_loc(array), 8 * size(array, kind=c_int64_t), scale, stat=stat)
  end subroutine

  ! Sums over ranks, in the place of the values. Collective.
  subroutine comm_sum(self, values, stat)
    class(ferrier_comm), intent(in) :: self
    real(c_double), intent(inout), contiguous :: values(:)
    integer, intent(out), optional :: stat
    call done(c_ferrier_comm_sum(self%handle, values, size(values, kind=c_int64_t)), stat)
  end subroutine

  ! Maxima over ranks, in the place of the values. Collective.
  subroutine comm_max(self, values, stat)
    class(ferrier_comm), intent(in) :: self
    real(c_double), intent(inout), contiguous :: values(:)
    integer, intent(out), optional :: stat
    call done(c_ferrier_comm_max(self%handle, values, size(values, kind=c_int64_t)), stat)
  end subroutine

  ! No transform: for ferrier_redistribution.
  subroutine problem_redistribute(self, shape, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: shape(3)
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_redistribute(reversed(shape), self%handle), stat)
  end subroutine

  ! A complex transform of one long axis; see ferrier.h.
  subroutine problem_c2c_1d(self, n, stat)
    class(ferrier_problem), intent(inout) :: self
    integer(int64), intent(in) :: n
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_c2c_1d(n, self%handle), stat)
  end subroutine

  ! The boxes of all ranks.
  subroutine problem_boxes(self, side, boxes, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: side
    type(ferrier_box), intent(in) :: boxes(:)
    integer, intent(out), optional :: stat
    type(c_box) :: parts(size(boxes))
    integer :: i
    do i = 1, size(boxes)
      parts(i)%lo = boxes(i)%lo(3:1:-1) - 1
      parts(i)%hi = boxes(i)%hi(3:1:-1)
    end do
    call done(c_ferrier_problem_boxes(self%handle, int(side, c_int32_t), parts, size(boxes, kind=c_int64_t)), stat)
  end subroutine

  ! The memory order: axes from the fastest to the slowest; [1, 2, 3] is the default.
  subroutine problem_order(self, side, axes, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: side, axes(3)
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_order(self%handle, int(side, c_int32_t), axis_of(axes(3:1:-1))), stat)
  end subroutine

  ! Pencils of a family over one grid of ranks, as in 2DECOMP&FFT: x-pencils split y over p_row and z over p_col, y-pencils
  ! x and z, z-pencils x and y. Both 0: chosen.
  subroutine problem_pencil_family(self, side, axis, comm, p_row, p_col, contiguous_axis, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: side, axis
    type(ferrier_comm), intent(in) :: comm
    integer, intent(in) :: p_row, p_col
    logical, intent(in), optional :: contiguous_axis
    integer, intent(out), optional :: stat
    integer(c_int32_t) :: first
    first = 0
    if (present(contiguous_axis)) first = merge(1_c_int32_t, 0_c_int32_t, contiguous_axis)
    call done(c_ferrier_problem_pencil_family(self%handle, int(side, c_int32_t), axis_of(axis), &
      int(comm%size(), c_int64_t), int(p_col, c_int64_t), int(p_row, c_int64_t), first), stat)
  end subroutine

  ! This rank's box lies inside an array of shape outer; margin are the elements of each axis before it.
  subroutine problem_inside(self, side, outer, margin, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: side, outer(3), margin(3)
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_inside(self%handle, int(side, c_int32_t), reversed(outer), reversed(margin)), stat)
  end subroutine

  ! The sign of the exponent of forward: -1 (the default) or 1.
  subroutine problem_sign(self, sign, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: sign
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_sign(self%handle, int(sign, c_int32_t)), stat)
  end subroutine

  ! A real input of a complex transform.
  subroutine problem_real_input(self, yes, stat)
    class(ferrier_problem), intent(inout) :: self
    logical, intent(in) :: yes
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_real_input(self%handle, merge(1_c_int32_t, 0_c_int32_t, yes)), stat)
  end subroutine

  ! Complex values although all kinds are cosine and sine transforms.
  subroutine problem_complex_values(self, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_complex_values(self%handle), stat)
  end subroutine

  ! Keeps modes first to last of an axis, counted from 1, inclusive.
  subroutine problem_keep_range(self, axis, first, last, stat)
    class(ferrier_problem), intent(inout) :: self
    integer, intent(in) :: axis, first, last
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_keep_range(self%handle, axis_of(axis), int(first - 1, c_int64_t), &
      int(last, c_int64_t)), stat)
  end subroutine

  ! What this rank sent in the last call, in bytes.
  function plan_wire_bytes(self) result(bytes)
    class(ferrier_plan), intent(in) :: self
    integer(c_int64_t) :: bytes
    call done(c_ferrier_plan_wire_bytes(self%handle, bytes))
  end function

  ! Bytes of each array of a batch where each has memory of its own (ferrier_input or ferrier_output).
  function plan_field_bytes(self, side) result(bytes)
    class(ferrier_plan), intent(in) :: self
    integer, intent(in) :: side
    integer(c_int64_t) :: bytes
    call done(c_ferrier_plan_field_bytes(self%handle, int(side, c_int32_t), bytes))
  end function

  ! Forward of a batch of arrays that were allocated one by one: from and to hold c_loc of each, which has field_bytes.
  ! Collective.
  subroutine plan_forward_list(self, from, to, stat)
    class(ferrier_plan), intent(in) :: self
    type(c_ptr), intent(in) :: from(:), to(:)
    integer, intent(out), optional :: stat
    call run_list(self, 0, from, self%field_bytes(ferrier_input), to, self%field_bytes(ferrier_output), stat)
  end subroutine

  ! Backward of a batch of arrays that were allocated one by one. Collective.
  subroutine plan_backward_list(self, from, to, stat)
    class(ferrier_plan), intent(in) :: self
    type(c_ptr), intent(in) :: from(:), to(:)
    integer, intent(out), optional :: stat
    call run_list(self, 1, from, self%field_bytes(ferrier_output), to, self%field_bytes(ferrier_input), stat)
  end subroutine

  subroutine run_list(self, action, from, from_bytes, to, to_bytes, stat)
    class(ferrier_plan), intent(in) :: self
    integer, intent(in) :: action
    type(c_ptr), intent(in) :: from(:), to(:)
    integer(c_int64_t), intent(in) :: from_bytes, to_bytes
    integer, intent(out), optional :: stat
    type(c_call) :: given
    given%size = c_sizeof(given)
    given%scale = 1
    given%op = c_null_ptr
    given%workspace = c_null_ptr
    call done(c_ferrier_plan_execute_fields(self%handle, int(action, c_int32_t), given, &
      int(min(size(from), size(to)), c_int64_t), from, from_bytes, to, to_bytes), stat)
  end subroutine

  ! A CUDA stream on which a plan on a GPU enqueues its work.
  subroutine plan_set_stream(self, stream, stat)
    class(ferrier_plan), intent(inout) :: self
    type(c_ptr), intent(in) :: stream
    integer, intent(out), optional :: stat
    call done(c_ferrier_plan_set_stream(self%handle, stream), stat)
  end subroutine

  ! Waits for the work of a plan on a GPU.
  subroutine plan_synchronize(self, stat)
    class(ferrier_plan), intent(in) :: self
    integer, intent(out), optional :: stat
    call done(c_ferrier_plan_synchronize(self%handle), stat)
  end subroutine

  ! Decides everything about a plan of ferrier_real32 or ferrier_real64. Collective.
  subroutine draft_create(self, comm, problem, precision, options, stat)
    class(ferrier_draft), intent(inout) :: self
    type(ferrier_comm), intent(in) :: comm
    type(ferrier_problem), intent(in) :: problem
    integer, intent(in) :: precision
    type(ferrier_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    call done(c_ferrier_draft_create(comm%handle, problem%handle, int(precision, c_int32_t), &
      options_handle(options), self%handle), stat)
  end subroutine

  function options_handle(options) result(handle)
    type(ferrier_options), intent(in), optional :: options
    type(c_ptr) :: handle
    handle = c_null_ptr
    if (present(options)) handle = options%handle
  end function

  ! The memory that the plan will take on this rank.
  function draft_memory_bytes(self) result(bytes)
    class(ferrier_draft), intent(in) :: self
    integer(c_int64_t) :: bytes
    call done(c_ferrier_draft_memory_bytes(self%handle, bytes))
  end function

  ! The most that it will take on any rank. Collective.
  function draft_largest_memory_bytes(self) result(bytes)
    class(ferrier_draft), intent(in) :: self
    integer(c_int64_t) :: bytes
    call done(c_ferrier_draft_largest_memory_bytes(self%handle, bytes))
  end function

  ! Predicted for forward, out of place.
  function draft_seconds(self) result(seconds)
    class(ferrier_draft), intent(in) :: self
    real(c_double) :: seconds
    call done(c_ferrier_draft_seconds(self%handle, 0_c_int32_t, seconds))
  end function

  ! A part of the draft, as ferrier_draft_json names them.
  function draft_json(self, what) result(text)
    class(ferrier_draft), intent(in) :: self
    character(*), intent(in) :: what
    character(:), allocatable :: text
    type(c_ptr) :: pointer
    pointer = c_null_ptr
    call done(c_ferrier_draft_json(self%handle, what // c_null_char, pointer))
    text = taken(pointer)
  end function

  ! Makes the plan; the draft is used up. Collective.
  subroutine draft_build(self, plan, stat)
    class(ferrier_draft), intent(inout) :: self
    type(ferrier_plan), intent(inout) :: plan
    integer, intent(out), optional :: stat
    call done(c_ferrier_draft_build(self%handle, 1_c_int32_t, plan%handle), stat)
  end subroutine

  subroutine draft_destroy(self, stat)
    class(ferrier_draft), intent(inout) :: self
    integer, intent(out), optional :: stat
    type(c_ptr) :: handle
    handle = self%handle
    self%handle = c_null_ptr
    call done(c_ferrier_draft_free(handle), stat)
  end subroutine

  ! The plan that so many ranks on so many nodes would make, and the predicted times, as JSON.
  function ferrier_predict(problem, precision, ranks, nodes, threads, options) result(text)
    type(ferrier_problem), intent(in) :: problem
    integer, intent(in) :: precision, ranks, nodes, threads
    type(ferrier_options), intent(in), optional :: options
    character(:), allocatable :: text
    type(c_ptr) :: pointer
    pointer = c_null_ptr
    call done(c_ferrier_predict(problem%handle, int(precision, c_int32_t), options_handle(options), &
      int(ranks, c_int64_t), int(nodes, c_int64_t), int(threads, c_int64_t), pointer))
    text = taken(pointer)
  end function

  ! From the input layout of a problem to its output layout, for elements of so many bytes. Collective.
  subroutine redistribution_create(self, comm, problem, element_bytes, options, stat)
    class(ferrier_redistribution), intent(inout) :: self
    type(ferrier_comm), intent(in) :: comm
    type(ferrier_problem), intent(in) :: problem
    integer, intent(in) :: element_bytes
    type(ferrier_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    self%element_bytes = element_bytes
    call done(c_ferrier_redistribution_create(comm%handle, problem%handle, self%element_bytes, &
      options_handle(options), self%handle), stat)
  end subroutine

  function redistribution_box(self, side) result(box)
    class(ferrier_redistribution), intent(in) :: self
    integer, intent(in) :: side
    type(ferrier_box) :: box
    type(c_box) :: part
    call done(c_ferrier_redistribution_box(self%handle, int(side, c_int32_t), part))
    box = from_c(part)
  end function

  ! Elements on this rank, all arrays of a batch together.
  function redistribution_size(self, side) result(elements)
    class(ferrier_redistribution), intent(in) :: self
    integer, intent(in) :: side
    integer(int64) :: elements
    integer(c_int64_t) :: bytes
    call done(c_ferrier_redistribution_bytes(self%handle, int(side, c_int32_t), bytes))
    elements = bytes / self%element_bytes
  end function

  ! Elements of both arrays have the size of the redistribution. Collective.
  subroutine redistribution_run(self, from, to, stat)
    class(ferrier_redistribution), intent(in) :: self
    type(*), intent(in), contiguous, target :: from(..)
    type(*), intent(inout), contiguous, target :: to(..)
    integer, intent(out), optional :: stat
    call done(c_ferrier_redistribution_run(self%handle, c_loc(from), &
      self%element_bytes * size(from, kind=c_int64_t), c_loc(to), self%element_bytes * size(to, kind=c_int64_t)), stat)
  end subroutine

  subroutine redistribution_run_in_place(self, array, stat)
    class(ferrier_redistribution), intent(in) :: self
    type(*), intent(inout), contiguous, target :: array(..)
    integer, intent(out), optional :: stat
    call done(c_ferrier_redistribution_run_in_place(self%handle, c_loc(array), &
      self%element_bytes * size(array, kind=c_int64_t)), stat)
  end subroutine

  function redistribution_notes(self) result(text)
    class(ferrier_redistribution), intent(in) :: self
    character(:), allocatable :: text
    type(c_ptr) :: pointer
    pointer = c_null_ptr
    call done(c_ferrier_redistribution_notes(self%handle, pointer))
    text = taken(pointer)
  end function

  subroutine redistribution_destroy(self, stat)
    class(ferrier_redistribution), intent(inout) :: self
    integer, intent(out), optional :: stat
    type(c_ptr) :: handle
    handle = self%handle
    self%handle = c_null_ptr
    call done(c_ferrier_redistribution_free(handle), stat)
  end subroutine

  function to_ghosts(ghosts, name) result(given)
    type(ferrier_ghosts), intent(in) :: ghosts
    ! Keeps the name of the exchange as long as the result is used.
    character(len=len(ghosts%exchange) + 1, kind=c_char), intent(out), target :: name
    type(c_ghosts) :: given
    given%size = c_sizeof(given)
    given%low = reversed(ghosts%low)
    given%high = reversed(ghosts%high)
    given%periodic = merge(1_c_int32_t, 0_c_int32_t, ghosts%periodic(3:1:-1))
    given%faces_only = merge(1_c_int32_t, 0_c_int32_t, ghosts%faces_only)
    given%fields = ghosts%fields
    given%device = ghosts%device
    name = trim(ghosts%exchange) // c_null_char
    given%exchange = merge(c_null_ptr, c_loc(name), len_trim(ghosts%exchange) == 0)
  end function

  ! The addresses of fields that follow each other, the last dimension of one array.
  function fields_of(start, bytes, count) result(places)
    type(c_ptr), intent(in) :: start
    integer(c_int64_t), intent(in) :: bytes
    integer, intent(in) :: count
    type(c_ptr) :: places(count)
    integer :: i
    do i = 1, count
      places(i) = transfer(transfer(start, 0_c_intptr_t) + (i - 1) * (bytes / count), start)
    end do
  end function

  ! Ghost cells around the boxes of the input or output of a problem, for elements of so many bytes. Collective.
  subroutine halo_create(self, comm, problem, side, element_bytes, ghosts, stat)
    class(ferrier_halo), intent(inout) :: self
    type(ferrier_comm), intent(in) :: comm
    type(ferrier_problem), intent(in) :: problem
    integer, intent(in) :: side, element_bytes
    type(ferrier_ghosts), intent(in) :: ghosts
    character(len=len(ghosts%exchange) + 1, kind=c_char), target :: name
    integer, intent(out), optional :: stat
    self%element_bytes = element_bytes
    self%fields = ghosts%fields
    call done(c_ferrier_halo_create(comm%handle, problem%handle, int(side, c_int32_t), &
      int(element_bytes, c_int64_t), to_ghosts(ghosts, name), self%handle), stat)
  end subroutine

  ! The box of this rank, without ghost cells.
  function halo_box(self) result(box)
    class(ferrier_halo), intent(in) :: self
    type(ferrier_box) :: box
    type(c_box) :: part
    call done(c_ferrier_halo_box(self%handle, part))
    box = from_c(part)
  end function

  ! The shape of an array, ghost cells included.
  function halo_shape(self) result(extents)
    class(ferrier_halo), intent(in) :: self
    integer(int64) :: extents(3)
    integer(c_int64_t) :: values(3)
    call done(c_ferrier_halo_shape(self%handle, values))
    extents = values(3:1:-1)
  end function

  ! Elements of an array, ghost cells included.
  function halo_size(self) result(elements)
    class(ferrier_halo), intent(in) :: self
    integer(int64) :: elements
    integer(c_int64_t) :: bytes
    call done(c_ferrier_halo_bytes(self%handle, bytes))
    elements = bytes / self%element_bytes
  end function

  ! Fills the ghost cells of an array, or of several that are the last dimension of one. Collective.
  subroutine halo_exchange(self, field, stat)
    class(ferrier_halo), intent(in) :: self
    type(*), intent(inout), contiguous, target :: field(..)
    integer, intent(out), optional :: stat
    integer(c_int64_t) :: bytes
    bytes = self%element_bytes * size(field, kind=c_int64_t)
    call done(c_ferrier_halo_exchange(self%handle, fields_of(c_loc(field), bytes, self%fields), &
      int(self%fields, c_int64_t), bytes / self%fields), stat)
  end subroutine

  ! The same for arrays that were allocated one by one: c_loc of each, which has the size of an array. Collective.
  subroutine halo_exchange_list(self, fields, stat)
    class(ferrier_halo), intent(in) :: self
    type(c_ptr), intent(in) :: fields(:)
    integer, intent(out), optional :: stat
    call done(c_ferrier_halo_exchange(self%handle, fields, size(fields, kind=c_int64_t), &
      self%element_bytes * self%size()), stat)
  end subroutine

  ! Begins to fill the ghost cells of an array, or of several that are the last dimension of one. finish fills them; until then the array
  ! stays and can be read, not changed. Collective.
  subroutine halo_start(self, field, stat)
    class(ferrier_halo), intent(in) :: self
    type(*), intent(inout), contiguous, target :: field(..)
    integer, intent(out), optional :: stat
    integer(c_int64_t) :: bytes
    bytes = self%element_bytes * size(field, kind=c_int64_t)
    call done(c_ferrier_halo_start(self%handle, fields_of(c_loc(field), bytes, self%fields), &
      int(self%fields, c_int64_t), bytes / self%fields), stat)
  end subroutine

  ! The same for arrays that were allocated one by one: c_loc of each, which has the size of an array. Collective.
  subroutine halo_start_list(self, fields, stat)
    class(ferrier_halo), intent(in) :: self
    type(c_ptr), intent(in) :: fields(:)
    integer, intent(out), optional :: stat
    call done(c_ferrier_halo_start(self%handle, fields, size(fields, kind=c_int64_t), &
      self%element_bytes * self%size()), stat)
  end subroutine

  ! Waits for the neighbours and fills the ghost cells of the arrays of start. Collective.
  subroutine halo_finish(self, stat)
    class(ferrier_halo), intent(in) :: self
    integer, intent(out), optional :: stat
    call done(c_ferrier_halo_finish(self%handle), stat)
  end subroutine

  function halo_notes(self) result(text)
    class(ferrier_halo), intent(in) :: self
    character(:), allocatable :: text
    type(c_ptr) :: pointer
    pointer = c_null_ptr
    call done(c_ferrier_halo_notes(self%handle, pointer))
    text = taken(pointer)
  end function

  subroutine halo_destroy(self, stat)
    class(ferrier_halo), intent(inout) :: self
    integer, intent(out), optional :: stat
    type(c_ptr) :: handle
    handle = self%handle
    self%handle = c_null_ptr
    call done(c_ferrier_halo_free(handle), stat)
  end subroutine

  ! Sums of ghost cells of elements of a type: ferrier_sum_real64, ... Collective.
  subroutine ghost_sum_create(self, comm, problem, side, element, ghosts, stat)
    class(ferrier_ghost_sum), intent(inout) :: self
    type(ferrier_comm), intent(in) :: comm
    type(ferrier_problem), intent(in) :: problem
    integer, intent(in) :: side, element
    type(ferrier_ghosts), intent(in) :: ghosts
    character(len=len(ghosts%exchange) + 1, kind=c_char), target :: name
    integer, intent(out), optional :: stat
    self%element_bytes = 8
    if (element == ferrier_sum_real32 .or. element == ferrier_sum_int32) self%element_bytes = 4
    if (element == ferrier_sum_complex64) self%element_bytes = 16
    self%fields = ghosts%fields
    call done(c_ferrier_ghost_sum_create(comm%handle, problem%handle, int(side, c_int32_t), &
      int(element, c_int32_t), to_ghosts(ghosts, name), self%handle), stat)
  end subroutine

  ! The box of this rank, without ghost cells.
  function ghost_sum_box(self) result(box)
    class(ferrier_ghost_sum), intent(in) :: self
    type(ferrier_box) :: box
    type(c_box) :: part
    call done(c_ferrier_ghost_sum_box(self%handle, part))
    box = from_c(part)
  end function

  ! The shape of an array, ghost cells included.
  function ghost_sum_shape(self) result(extents)
    class(ferrier_ghost_sum), intent(in) :: self
    integer(int64) :: extents(3)
    integer(c_int64_t) :: values(3)
    call done(c_ferrier_ghost_sum_shape(self%handle, values))
    extents = values(3:1:-1)
  end function

  ! Elements of an array, ghost cells included.
  function ghost_sum_size(self) result(elements)
    class(ferrier_ghost_sum), intent(in) :: self
    integer(int64) :: elements
    integer(c_int64_t) :: bytes
    call done(c_ferrier_ghost_sum_bytes(self%handle, bytes))
    elements = bytes / self%element_bytes
  end function

  ! Adds the ghost cells to the cells of their owners of an array, or of several that are the last dimension of one. Collective.
  subroutine ghost_sum_run(self, field, stat)
    class(ferrier_ghost_sum), intent(in) :: self
    type(*), intent(inout), contiguous, target :: field(..)
    integer, intent(out), optional :: stat
    integer(c_int64_t) :: bytes
    bytes = self%element_bytes * size(field, kind=c_int64_t)
    call done(c_ferrier_ghost_sum_run(self%handle, fields_of(c_loc(field), bytes, self%fields), &
      int(self%fields, c_int64_t), bytes / self%fields), stat)
  end subroutine

  ! The same for arrays that were allocated one by one: c_loc of each, which has the size of an array. Collective.
  subroutine ghost_sum_run_list(self, fields, stat)
    class(ferrier_ghost_sum), intent(in) :: self
    type(c_ptr), intent(in) :: fields(:)
    integer, intent(out), optional :: stat
    call done(c_ferrier_ghost_sum_run(self%handle, fields, size(fields, kind=c_int64_t), &
      self%element_bytes * self%size()), stat)
  end subroutine

  subroutine ghost_sum_destroy(self, stat)
    class(ferrier_ghost_sum), intent(inout) :: self
    integer, intent(out), optional :: stat
    type(c_ptr) :: handle
    handle = self%handle
    self%handle = c_null_ptr
    call done(c_ferrier_ghost_sum_free(handle), stat)
  end subroutine

  ! Groups of ranks that share memory.
  function comm_nodes(self) result(value)
    class(ferrier_comm), intent(in) :: self
    integer(int64) :: value
    call done(c_ferrier_comm_nodes(self%handle, value))
  end function

  ! Threads that each rank may use.
  function comm_threads(self) result(value)
    class(ferrier_comm), intent(in) :: self
    integer(int64) :: value
    call done(c_ferrier_comm_threads(self%handle, value))
  end function

  ! Returns when every rank has called it. Collective.
  subroutine comm_barrier(self, stat)
    class(ferrier_comm), intent(in) :: self
    integer, intent(out), optional :: stat
    call done(c_ferrier_comm_barrier(self%handle), stat)
  end subroutine

  function comm_json(self) result(text)
    class(ferrier_comm), intent(in) :: self
    character(:), allocatable :: text
    type(c_ptr) :: pointer
    call done(c_ferrier_comm_json(self%handle, pointer))
    text = taken(pointer)
  end function

  ! self becomes a copy of another problem; plans and other copies stay as they are.
  subroutine problem_copy(self, other, stat)
    class(ferrier_problem), intent(inout) :: self
    type(ferrier_problem), intent(in) :: other
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_clone(other%handle, self%handle), stat)
  end subroutine

  ! Checks everything but the layouts, as plan%create does.
  subroutine problem_check(self, stat)
    class(ferrier_problem), intent(in) :: self
    integer, intent(out), optional :: stat
    call done(c_ferrier_problem_check(self%handle), stat)
  end subroutine

  function problem_json(self) result(text)
    class(ferrier_problem), intent(in) :: self
    character(:), allocatable :: text
    type(c_ptr) :: pointer
    call done(c_ferrier_problem_json(self%handle, pointer))
    text = taken(pointer)
  end function

  function problem_spectrum_shape(self) result(extents)
    class(ferrier_problem), intent(in) :: self
    integer(int64) :: extents(3), values(3)
    call done(c_ferrier_problem_spectrum_shape(self%handle, values))
    extents = values(3:1:-1)
  end function

  ! The modes of the whole axis that the spectrum holds, one for each of its indices along an axis, counted from 1.
  function problem_kept_modes(self, axis) result(modes)
    class(ferrier_problem), intent(in) :: self
    integer, intent(in) :: axis
    integer(int64), allocatable :: modes(:)
    integer(int64) :: none(1), count
    call done(c_ferrier_problem_kept_modes(self%handle, axis_of(axis), none, 0_c_int64_t, count))
    allocate (modes(count))
    call done(c_ferrier_problem_kept_modes(self%handle, axis_of(axis), modes, size(modes, kind=c_int64_t), count))
    modes = modes + 1
  end function

  ! The columns of an ellipsoid, one for each index of the spectrum along axis 2: indices, from 1 on, in the kept modes of
  ! axis 2 (columns(2, i)) and axis 1 (columns(1, i)). Empty without an ellipsoid.
  function problem_columns(self) result(columns)
    class(ferrier_problem), intent(in) :: self
    integer(int64), allocatable :: columns(:, :)
    integer(int64) :: none(1), count
    call done(c_ferrier_problem_columns(self%handle, none, 0_c_int64_t, count))
    allocate (columns(2, count))
    call done(c_ferrier_problem_columns(self%handle, columns, size(columns, 2, kind=c_int64_t), count))
    columns = columns(2:1:-1, :) + 1
  end function

  ! Where mode k, counted from 1, of a problem of c2c_1d lies: its indices in the spectrum.
  function problem_mode(self, k) result(index)
    class(ferrier_problem), intent(in) :: self
    integer(int64), intent(in) :: k
    integer(int64) :: index(3), values(3)
    call done(c_ferrier_problem_mode(self%handle, k - 1, values))
    index = values(3:1:-1) + 1
  end function

  ! Sets choices from a JSON object.
  subroutine options_set_json(self, text, stat)
    class(ferrier_options), intent(inout) :: self
    character(*), intent(in) :: text
    integer, intent(out), optional :: stat
    call done(c_ferrier_options_set_json(self%handle, text // c_null_char), stat)
  end subroutine

  ! The address of the first element, for c_f_pointer; valid until the array is destroyed.
  function array_data(self) result(address)
    class(ferrier_array), intent(in) :: self
    type(c_ptr) :: address
    call done(c_ferrier_array_data(self%handle, address))
  end function

  function array_bytes(self) result(value)
    class(ferrier_array), intent(in) :: self
    integer(int64) :: value
    call done(c_ferrier_array_bytes(self%handle, value))
  end function

  ! Copies from main memory (c_loc of as many bytes) to the whole array, which may be on a GPU.
  subroutine array_upload(self, place, stat)
    class(ferrier_array), intent(in) :: self
    type(c_ptr), intent(in) :: place
    integer, intent(out), optional :: stat
    call done(c_ferrier_array_upload(self%handle, place, self%bytes()), stat)
  end subroutine

  ! Copies the whole array, which may be on a GPU, to main memory (c_loc of as many bytes).
  subroutine array_download(self, place, stat)
    class(ferrier_array), intent(in) :: self
    type(c_ptr), intent(in) :: place
    integer, intent(out), optional :: stat
    call done(c_ferrier_array_download(self%handle, place, self%bytes()), stat)
  end subroutine

  subroutine array_destroy(self, stat)
    class(ferrier_array), intent(inout) :: self
    integer, intent(out), optional :: stat
    type(c_ptr) :: handle
    handle = self%handle
    self%handle = c_null_ptr
    call done(c_ferrier_array_free(handle), stat)
  end subroutine

  subroutine workspace_destroy(self, stat)
    class(ferrier_workspace), intent(inout) :: self
    integer, intent(out), optional :: stat
    type(c_ptr) :: handle
    handle = self%handle
    self%handle = c_null_ptr
    call done(c_ferrier_workspace_free(handle), stat)
  end subroutine

  ! The memory order: axes from the fastest to the slowest.
  function plan_order(self, side) result(axes)
    class(ferrier_plan), intent(in) :: self
    integer, intent(in) :: side
    integer :: axes(3)
    integer(c_int64_t) :: values(3)
    call done(c_ferrier_plan_order(self%handle, int(side, c_int32_t), values))
    axes = 3 - int(values(3:1:-1))
  end function

  ! While the plan looks for a faster choice (ferrier_online).
  function plan_is_tuning(self) result(tuning)
    class(ferrier_plan), intent(in) :: self
    logical :: tuning
    integer(c_int32_t) :: flag
    call done(c_ferrier_plan_is_tuning(self%handle, flag))
    tuning = flag /= 0
  end function

  ! An array for the input of forward. Collective.
  subroutine plan_make_input(self, made, stat)
    class(ferrier_plan), intent(in) :: self
    type(ferrier_array), intent(inout) :: made
    integer, intent(out), optional :: stat
    call done(c_ferrier_plan_make_input(self%handle, made%handle), stat)
  end subroutine

  ! An array for the output of forward. Collective.
  subroutine plan_make_output(self, made, stat)
    class(ferrier_plan), intent(in) :: self
    type(ferrier_array), intent(inout) :: made
    integer, intent(out), optional :: stat
    call done(c_ferrier_plan_make_output(self%handle, made%handle), stat)
  end subroutine

  ! An array for transforms in place. Collective.
  subroutine plan_make_in_place(self, made, stat)
    class(ferrier_plan), intent(in) :: self
    type(ferrier_array), intent(inout) :: made
    integer, intent(out), optional :: stat
    call done(c_ferrier_plan_make_in_place(self%handle, made%handle), stat)
  end subroutine

  ! A workspace for execute. Collective; main memory only.
  subroutine plan_make_workspace(self, made, stat)
    class(ferrier_plan), intent(in) :: self
    type(ferrier_workspace), intent(inout) :: made
    integer, intent(out), optional :: stat
    call done(c_ferrier_plan_make_workspace(self%handle, made%handle), stat)
  end subroutine

  ! A call of any kind (ferrier_forward, ...) by addresses and bytes, in main memory or that of a GPU. In place `from` is
  ! ignored. Collective.
  subroutine plan_execute(self, action, from, from_bytes, to, to_bytes, scale, op, workspace, stat)
    class(ferrier_plan), intent(in) :: self
    integer, intent(in) :: action
    type(c_ptr), intent(in) :: from, to
    integer(int64), intent(in) :: from_bytes, to_bytes
    real(c_double), intent(in), optional :: scale
    type(ferrier_operator), intent(in), optional :: op
    type(ferrier_workspace), intent(in), optional :: workspace
    integer, intent(out), optional :: stat
    type(c_call) :: given
    given%size = c_sizeof(given)
    given%scale = 1
    given%op = c_null_ptr
    given%workspace = c_null_ptr
    if (present(scale)) given%scale = scale
    if (present(op)) given%op = op%handle
    if (present(workspace)) given%workspace = workspace%handle
    call done(c_ferrier_plan_execute(self%handle, int(action, c_int32_t), given, from, from_bytes, to, to_bytes), stat)
  end subroutine

  ! By addresses and bytes, in main memory or that of a GPU. Collective.
  subroutine redistribution_run_addresses(self, from, from_bytes, to, to_bytes, stat)
    class(ferrier_redistribution), intent(in) :: self
    type(c_ptr), intent(in) :: from, to
    integer(int64), intent(in) :: from_bytes, to_bytes
    integer, intent(out), optional :: stat
    call done(c_ferrier_redistribution_run(self%handle, from, from_bytes, to, to_bytes), stat)
  end subroutine

  ! An array for one side, in memory that the ranks of a node share, or of the GPU. Collective.
  subroutine redistribution_make(self, side, made, stat)
    class(ferrier_redistribution), intent(in) :: self
    integer, intent(in) :: side
    type(ferrier_array), intent(inout) :: made
    integer, intent(out), optional :: stat
    call done(c_ferrier_redistribution_make(self%handle, int(side, c_int32_t), made%handle), stat)
  end subroutine

  function redistribution_memory_bytes(self) result(value)
    class(ferrier_redistribution), intent(in) :: self
    integer(int64) :: value
    call done(c_ferrier_redistribution_memory_bytes(self%handle, value))
  end function

  ! A CUDA stream on which it enqueues its work on a GPU.
  subroutine redistribution_set_stream(self, stream, stat)
    class(ferrier_redistribution), intent(inout) :: self
    type(c_ptr), intent(in) :: stream
    integer, intent(out), optional :: stat
    call done(c_ferrier_redistribution_set_stream(self%handle, stream), stat)
  end subroutine

  ! Waits for its work on a GPU.
  subroutine redistribution_synchronize(self, stat)
    class(ferrier_redistribution), intent(in) :: self
    integer, intent(out), optional :: stat
    call done(c_ferrier_redistribution_synchronize(self%handle), stat)
  end subroutine

  ! Distances of neighbours on each axis of a field, in elements.
  function halo_strides(self) result(strides)
    class(ferrier_halo), intent(in) :: self
    integer(int64) :: strides(3), values(3)
    call done(c_ferrier_halo_strides(self%handle, values))
    strides = values(3:1:-1)
  end function

  function halo_memory_bytes(self) result(value)
    class(ferrier_halo), intent(in) :: self
    integer(int64) :: value
    call done(c_ferrier_halo_memory_bytes(self%handle, value))
  end function

  ! A field with ghost cells, zero at first, in memory that the ranks of a node share, or of the GPU. Collective.
  subroutine halo_make(self, made, stat)
    class(ferrier_halo), intent(in) :: self
    type(ferrier_array), intent(inout) :: made
    integer, intent(out), optional :: stat
    call done(c_ferrier_halo_make(self%handle, made%handle), stat)
  end subroutine

  ! A CUDA stream on which it enqueues its work on a GPU.
  subroutine halo_set_stream(self, stream, stat)
    class(ferrier_halo), intent(inout) :: self
    type(c_ptr), intent(in) :: stream
    integer, intent(out), optional :: stat
    call done(c_ferrier_halo_set_stream(self%handle, stream), stat)
  end subroutine

  ! Waits for its work on a GPU.
  subroutine halo_synchronize(self, stat)
    class(ferrier_halo), intent(in) :: self
    integer, intent(out), optional :: stat
    call done(c_ferrier_halo_synchronize(self%handle), stat)
  end subroutine

  ! Distances of neighbours on each axis of a field, in elements.
  function ghost_sum_strides(self) result(strides)
    class(ferrier_ghost_sum), intent(in) :: self
    integer(int64) :: strides(3), values(3)
    call done(c_ferrier_ghost_sum_strides(self%handle, values))
    strides = values(3:1:-1)
  end function

  function ghost_sum_memory_bytes(self) result(value)
    class(ferrier_ghost_sum), intent(in) :: self
    integer(int64) :: value
    call done(c_ferrier_ghost_sum_memory_bytes(self%handle, value))
  end function

  ! A field with ghost cells, zero at first, in memory that the ranks of a node share, or of the GPU. Collective.
  subroutine ghost_sum_make(self, made, stat)
    class(ferrier_ghost_sum), intent(in) :: self
    type(ferrier_array), intent(inout) :: made
    integer, intent(out), optional :: stat
    call done(c_ferrier_ghost_sum_make(self%handle, made%handle), stat)
  end subroutine

  ! A CUDA stream on which it enqueues its work on a GPU.
  subroutine ghost_sum_set_stream(self, stream, stat)
    class(ferrier_ghost_sum), intent(inout) :: self
    type(c_ptr), intent(in) :: stream
    integer, intent(out), optional :: stat
    call done(c_ferrier_ghost_sum_set_stream(self%handle, stream), stat)
  end subroutine

  ! Waits for its work on a GPU.
  subroutine ghost_sum_synchronize(self, stat)
    class(ferrier_ghost_sum), intent(in) :: self
    integer, intent(out), optional :: stat
    call done(c_ferrier_ghost_sum_synchronize(self%handle), stat)
  end subroutine

  function ghost_sum_notes(self) result(text)
    class(ferrier_ghost_sum), intent(in) :: self
    character(:), allocatable :: text
    type(c_ptr) :: pointer
    call done(c_ferrier_ghost_sum_notes(self%handle, pointer))
    text = taken(pointer)
  end function

  ! The name of a status.
  function ferrier_status_name(status) result(text)
    integer, intent(in) :: status
    character(:), allocatable :: text
    text = to_text(c_ferrier_status_name(int(status, c_int32_t)))
  end function

  ! The machine and what the library can do on it, as JSON.
  function ferrier_info() result(text)
    character(:), allocatable :: text
    type(c_ptr) :: pointer
    call done(c_ferrier_info(pointer))
    text = taken(pointer)
  end function

  ! The number of CUDA devices.
  function ferrier_cuda_count() result(count)
    integer(int64) :: count
    call done(c_ferrier_cuda_count(count))
  end function

  ! The user's wisdom file.
  subroutine ferrier_wisdom_file(path, stat)
    character(:), allocatable, intent(out) :: path
    integer, intent(out), optional :: stat
    type(c_ptr) :: pointer
    pointer = c_null_ptr
    call done(c_ferrier_wisdom_file(pointer), stat)
    path = taken(pointer)
  end subroutine

  ! Adds the entries of a wisdom file to another one.
  subroutine ferrier_wisdom_merge(from, to, stat)
    character(*), intent(in) :: from, to
    integer, intent(out), optional :: stat
    call done(c_ferrier_wisdom_merge(from // c_null_char, to // c_null_char), stat)
  end subroutine

  ! Measures the machine under these ranks and keeps the result in a wisdom file (empty: the user's); the speeds as JSON.
  ! Collective.
  subroutine ferrier_measure_machine(comm, wisdom, text, stat)
    type(ferrier_comm), intent(in) :: comm
    character(*), intent(in) :: wisdom
    character(:), allocatable, intent(out) :: text
    integer, intent(out), optional :: stat
    character(len=len(wisdom) + 1, kind=c_char), target :: path
    type(c_ptr) :: pointer
    path = wisdom // c_null_char
    pointer = c_null_ptr
    call done(c_ferrier_measure_machine(comm%handle, merge(c_null_ptr, c_loc(path), len(wisdom) == 0), pointer), stat)
    text = taken(pointer)
  end subroutine

  ! Runs a bind(c) function (data, comm) on so many ranks inside this process, as ferrier_run_ranks of ferrier.h.
  subroutine ferrier_run_ranks(ranks, function, data, nodes, threads, stat)
    integer, intent(in) :: ranks
    type(c_funptr), intent(in) :: function
    type(c_ptr), intent(in) :: data
    integer, intent(in), optional :: nodes, threads
    integer, intent(out), optional :: stat
    integer(c_int64_t) :: simulated, each
    simulated = 1
    each = 0
    if (present(nodes)) simulated = nodes
    if (present(threads)) each = threads
    call done(c_ferrier_run_ranks(int(ranks, c_int64_t), simulated, each, function, data), stat)
  end subroutine
end module
