//! The functions of the header, with plain pointers: anything at all can be handed over.

use std::ffi::{c_char, c_void};

pub type H = *mut c_void;

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        // The header's own types, so that anything at all can be handed over.
        unsafe extern "C" { $(pub fn $name($($argument: $type),*) -> i32;)* }
    };
}

functions! {
    fn ferrier_comm_one(out: *mut H);
    fn ferrier_comm_free(comm: H);
    fn ferrier_comm_rank(comm: H, out: *mut u64);
    fn ferrier_comm_set_threads(comm: H, threads: u64);
    fn ferrier_problem_c2c(shape: *const u64, out: *mut H);
    fn ferrier_problem_r2c(shape: *const u64, out: *mut H);
    fn ferrier_problem_mixed(shape: *const u64, kinds: *const i32, out: *mut H);
    fn ferrier_problem_c2c_1d(n: u64, out: *mut H);
    fn ferrier_problem_from_json(text: *const c_char, out: *mut H);
    fn ferrier_problem_json(problem: H, out: *mut *mut c_char);
    fn ferrier_problem_clone(problem: H, out: *mut H);
    fn ferrier_problem_free(problem: H);
    fn ferrier_problem_axes(problem: H, axes: *const u64, count: u64);
    fn ferrier_problem_halved(problem: H, axis: u64);
    fn ferrier_problem_complex_values(problem: H);
    fn ferrier_problem_batch(problem: H, arrays: u64);
    fn ferrier_problem_scale(problem: H, forward: i32, backward: i32);
    fn ferrier_problem_keep_lowest(problem: H, axis: u64, modes: u64);
    fn ferrier_problem_keep_range(problem: H, axis: u64, first: u64, end: u64);
    fn ferrier_problem_keep_ellipsoid(problem: H, radii: *const f64);
    fn ferrier_problem_support(problem: H, axis: u64, first: u64, end: u64);
    fn ferrier_problem_tolerance(problem: H, error: f64);
    fn ferrier_problem_reproducible(problem: H, yes: i32);
    fn ferrier_problem_operators(problem: H, yes: i32);
    fn ferrier_problem_spectrum_shape(problem: H, out: *mut u64);
    fn ferrier_problem_slabs(problem: H, side: i32, axis: u64);
    fn ferrier_problem_pencils(problem: H, side: i32, axis: u64);
    fn ferrier_problem_bricks(problem: H, side: i32);
    fn ferrier_problem_unconstrained(problem: H, side: i32);
    fn ferrier_problem_local_box(problem: H, side: i32, local: *const [u64; 6]);
    fn ferrier_problem_boxes(problem: H, side: i32, boxes: *const [u64; 6], count: u64);
    fn ferrier_problem_grid(problem: H, side: i32, grid: *const u64);
    fn ferrier_problem_order(problem: H, side: i32, axes: *const u64);
    fn ferrier_problem_strides(problem: H, side: i32, strides: *const u64, offset: u64, batch: u64);
    fn ferrier_options_create(out: *mut H);
    fn ferrier_options_free(options: H);
    fn ferrier_options_set(options: H, key: *const c_char, value: *const c_char);
    fn ferrier_options_set_json(options: H, text: *const c_char);
    fn ferrier_options_effort(options: H, effort: i32, seconds: f64);
    fn ferrier_options_wisdom(options: H, path: *const c_char);
    fn ferrier_plan_create(comm: H, problem: H, precision: i32, options: H, out: *mut H);
    fn ferrier_plan_free(plan: H);
    fn ferrier_plan_box(plan: H, side: i32, out: *mut [u64; 6]);
    fn ferrier_plan_box_of(plan: H, side: i32, rank: u64, out: *mut [u64; 6]);
    fn ferrier_plan_order(plan: H, side: i32, out: *mut u64);
    fn ferrier_plan_input_bytes(plan: H, out: *mut u64);
    fn ferrier_plan_output_bytes(plan: H, out: *mut u64);
    fn ferrier_plan_in_place_bytes(plan: H, out: *mut u64);
    fn ferrier_plan_execute(plan: H, action: i32, call: *const Call, input: *const u8, n: u64, output: *mut u8, m: u64);
    fn ferrier_plan_json(plan: H, what: *const c_char, out: *mut *mut c_char);
    fn ferrier_plan_certificate(plan: H, out: *mut [f64; 5]);
    fn ferrier_plan_make_input(plan: H, out: *mut H);
    fn ferrier_plan_make_in_place(plan: H, out: *mut H);
    fn ferrier_plan_make_workspace(plan: H, out: *mut H);
    fn ferrier_array_data(array: H, out: *mut *mut u8);
    fn ferrier_array_bytes(array: H, out: *mut u64);
    fn ferrier_array_free(array: H);
    fn ferrier_workspace_free(workspace: H);
    fn ferrier_operator_named(plan: H, name: *const c_char, l: *const f64, p: *const f64, count: u64, out: *mut H);
    fn ferrier_operator_callback(function: ModeFunction, data: H, out: *mut H);
    fn ferrier_operator_free(op: H);
    fn ferrier_draft_create(comm: H, problem: H, precision: i32, options: H, out: *mut H);
    fn ferrier_draft_json(draft: H, what: *const c_char, out: *mut *mut c_char);
    fn ferrier_draft_build(draft: H, workspace: i32, out: *mut H);
    fn ferrier_draft_free(draft: H);
    fn ferrier_string_free(text: *const c_char);
    fn ferrier_comm_json(comm: H, out: *mut *mut c_char);
    fn ferrier_comm_sum(comm: H, values: *mut f64, count: u64);
    fn ferrier_run_ranks(ranks: u64, nodes: u64, threads: u64, function: RankFunction, data: H);
    fn ferrier_problem_redistribute(shape: *const u64, out: *mut H);
    fn ferrier_problem_sign(problem: H, sign: i32);
    fn ferrier_problem_real_input(problem: H, yes: i32);
    fn ferrier_problem_inside(problem: H, side: i32, outer: *const u64, margin: *const u64);
    fn ferrier_problem_pencil_family(problem: H, side: i32, axis: u64, ranks: u64, rows: u64, columns: u64, first: i32);
    fn ferrier_problem_kept_modes(problem: H, axis: u64, modes: *mut u64, room: u64, count: *mut u64);
    fn ferrier_problem_columns(problem: H, pairs: *mut u64, room: u64, count: *mut u64);
    fn ferrier_problem_mode(problem: H, k: u64, index: *mut u64);
    fn ferrier_problem_check(problem: H);
    fn ferrier_plan_field_bytes(plan: H, side: i32, out: *mut u64);
    fn ferrier_plan_execute_fields(plan: H, action: i32, call: *const Call, count: u64, inputs: *const *const u8, n: u64, outputs: *const *mut u8, m: u64);
    fn ferrier_plan_synchronize(plan: H);
    fn ferrier_array_upload(array: H, data: *const u8, bytes: u64);
    fn ferrier_array_download(array: H, data: *mut u8, bytes: u64);
    fn ferrier_draft_seconds(draft: H, in_place: i32, out: *mut f64);
    fn ferrier_redistribution_create(comm: H, problem: H, element: u64, options: H, out: *mut H);
    fn ferrier_redistribution_bytes(redistribution: H, side: i32, out: *mut u64);
    fn ferrier_redistribution_make(redistribution: H, side: i32, out: *mut H);
    fn ferrier_redistribution_run(redistribution: H, input: *const u8, n: u64, output: *mut u8, m: u64);
    fn ferrier_redistribution_run_in_place(redistribution: H, array: *mut u8, bytes: u64);
    fn ferrier_redistribution_free(redistribution: H);
    fn ferrier_halo_create(comm: H, problem: H, side: i32, element: u64, ghosts: *const Ghosts, out: *mut H);
    fn ferrier_halo_bytes(halo: H, out: *mut u64);
    fn ferrier_halo_shape(halo: H, out: *mut u64);
    fn ferrier_halo_make(halo: H, out: *mut H);
    fn ferrier_halo_exchange(halo: H, fields: *const *mut u8, count: u64, bytes: u64);
    fn ferrier_halo_start(halo: H, fields: *const *mut u8, count: u64, bytes: u64);
    fn ferrier_halo_finish(halo: H);
    fn ferrier_halo_free(halo: H);
    fn ferrier_ghost_sum_create(comm: H, problem: H, side: i32, element: i32, ghosts: *const Ghosts, out: *mut H);
    fn ferrier_ghost_sum_bytes(sum: H, out: *mut u64);
    fn ferrier_ghost_sum_run(sum: H, fields: *const *mut u8, count: u64, bytes: u64);
    fn ferrier_ghost_sum_free(sum: H);
    fn ferrier_ghost_sum_memory_bytes(sum: H, out: *mut u64);
    fn ferrier_ghost_sum_notes(sum: H, out: *mut *mut c_char);
    fn ferrier_halo_set_stream(halo: H, stream: H);
    fn ferrier_ghost_sum_synchronize(sum: H);
    fn ferrier_redistribution_set_stream(redistribution: H, stream: H);
}

unsafe extern "C" {
    pub fn ferrier_last_error() -> *const c_char;
}

/// Calls of the library.
macro_rules! c {
    ($($call:tt)*) => {{
        // SAFETY: arguments keep the promise of the header: pointers are NULL, or to as much as the others say.
        unsafe { $($call)* }
    }};
}
pub(crate) use c;

#[repr(C)]
pub struct Call {
    pub size: u64,
    pub scale: f64,
    pub op: H,
    pub workspace: H,
}

#[repr(C)]
pub struct Ghosts {
    pub size: u64,
    pub low: [u64; 3],
    pub high: [u64; 3],
    pub periodic: [i32; 3],
    pub faces_only: i32,
    pub fields: u64,
    pub exchange: *const c_char,
    pub device: i64,
}

pub type ModeFunction = Option<extern "C" fn(H, *const c_void)>;
pub type RankFunction = Option<extern "C" fn(H, H) -> i32>;
