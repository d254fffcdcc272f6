//! The functions of `fftw3-mpi.h`, and those of `fftw3.h` that look inside plans.

/// A function that takes `MPI_Comm`, and its twin for Fortran that takes an integer.
#[doc(hidden)]
#[macro_export]
macro_rules! twins {
    ($prefix:literal, $name:literal, $c:ident, $f03:ident,
     ($($a:ident: $at:ty),*), ($($b:ident: $bt:ty),*) $(-> $result:ty)?, |$comm:ident| $body:expr) => {
        #[doc = concat!("`", $prefix, "mpi_", $name, "` of `fftw3-mpi.h`.")]
        ///
        /// # Safety
        /// As its manual says.
        #[unsafe(export_name = concat!($prefix, "mpi_", $name))]
        pub unsafe extern "C" fn $c($($a: $at,)* $comm: usize $(, $b: $bt)*) $(-> $result)? {
            let $comm = $crate::Handle::from($comm);
            // SAFETY: the caller's arguments are those of FFTW's function.
            unsafe { $body }
        }

        #[doc = concat!("`", $prefix, "mpi_", $name, "_f03` of `fftw3-mpi.f03`.")]
        ///
        /// # Safety
        /// As its manual says.
        #[unsafe(export_name = concat!($prefix, "mpi_", $name, "_f03"))]
        pub unsafe extern "C" fn $f03($($a: $at,)* $comm: c_int $(, $b: $bt)*) $(-> $result)? {
            let $comm = $crate::Handle::from($comm);
            // SAFETY: the caller's arguments are those of FFTW's function.
            unsafe { $body }
        }
    };
}

/// Defines the functions of one precision: `export!("fftw_", f64)`.
#[macro_export]
macro_rules! export {
    ($prefix:literal, $real:ty) => {
        use std::ffi::{c_char, c_double, c_int, c_uint, c_void};
        use std::ptr::null_mut;
        use std::sync::atomic::AtomicPtr;

        use $crate::{Api, Plan, RawPlan, Registry, Request, twins};

        static PLANS: Registry<Plan<$real>> = Registry::new();
        static API: Api<$real> = Api {
            prefix: $prefix,
            plans: &PLANS,
            execute: execute as unsafe extern "C" fn(RawPlan) as *const c_void,
        };

        /// Arguments that all planning functions have.
        fn request(
            howmany: isize,
            blocks: [isize; 2],
            arrays: [*mut $real; 2],
            comm: $crate::Handle,
            flags: c_uint,
        ) -> Request<$real> {
            Request { howmany, blocks, arrays, comm, flags }
        }

        $crate::export_sizes!($prefix);
        $crate::export_plans!($prefix, $real);
        $crate::export_calls!($prefix, $real);
    };
}

/// `local_size` and its relatives.
#[doc(hidden)]
#[macro_export]
macro_rules! export_sizes {
    ($prefix:literal) => {
        twins!($prefix, "local_size_many_transposed", local_size_many_transposed, local_size_many_transposed_f03,
            (rnk: c_int, n: *const isize, howmany: isize, block0: isize, block1: isize),
            (n0: *mut isize, start0: *mut isize, n1: *mut isize, start1: *mut isize) -> isize,
            |comm| API.local_size((rnk, n), howmany, (block0, Some(block1)), comm, [n0, start0, n1, start1]));
        twins!($prefix, "local_size_many", local_size_many, local_size_many_f03,
            (rnk: c_int, n: *const isize, howmany: isize, block0: isize),
            (n0: *mut isize, start0: *mut isize) -> isize,
            |comm| API.local_size((rnk, n), howmany, (block0, None), comm, [n0, start0, null_mut(), null_mut()]));
        twins!($prefix, "local_size_transposed", local_size_transposed, local_size_transposed_f03,
            (rnk: c_int, n: *const isize),
            (n0: *mut isize, start0: *mut isize, n1: *mut isize, start1: *mut isize) -> isize,
            |comm| API.local_size((rnk, n), 1, (0, Some(0)), comm, [n0, start0, n1, start1]));
        twins!($prefix, "local_size", local_size, local_size_f03,
            (rnk: c_int, n: *const isize), (n0: *mut isize, start0: *mut isize) -> isize,
            |comm| API.local_size((rnk, n), 1, (0, None), comm, [n0, start0, null_mut(), null_mut()]));
        twins!($prefix, "local_size_many_1d", local_size_many_1d, local_size_many_1d_f03,
            (n0: isize, howmany: isize),
            (sign: c_int, flags: c_uint, ni: *mut isize, starti: *mut isize, no: *mut isize, starto: *mut isize) -> isize,
            |comm| API.local_size_1d((n0, howmany), comm, (sign, flags), [ni, starti, no, starto]));
        twins!($prefix, "local_size_1d", local_size_1d, local_size_1d_f03,
            (n0: isize),
            (sign: c_int, flags: c_uint, ni: *mut isize, starti: *mut isize, no: *mut isize, starto: *mut isize) -> isize,
            |comm| API.local_size_1d((n0, 1), comm, (sign, flags), [ni, starti, no, starto]));
        twins!($prefix, "local_size_2d", local_size_2d, local_size_2d_f03,
            (n0: isize, n1: isize), (l0: *mut isize, s0: *mut isize) -> isize,
            |comm| API.local_size((2, [n0, n1].as_ptr()), 1, (0, None), comm, [l0, s0, null_mut(), null_mut()]));
        twins!($prefix, "local_size_2d_transposed", local_size_2d_transposed, local_size_2d_transposed_f03,
            (n0: isize, n1: isize),
            (l0: *mut isize, s0: *mut isize, l1: *mut isize, s1: *mut isize) -> isize,
            |comm| API.local_size((2, [n0, n1].as_ptr()), 1, (0, Some(0)), comm, [l0, s0, l1, s1]));
        twins!($prefix, "local_size_3d", local_size_3d, local_size_3d_f03,
            (n0: isize, n1: isize, n2: isize), (l0: *mut isize, s0: *mut isize) -> isize,
            |comm| API.local_size((3, [n0, n1, n2].as_ptr()), 1, (0, None), comm, [l0, s0, null_mut(), null_mut()]));
        twins!($prefix, "local_size_3d_transposed", local_size_3d_transposed, local_size_3d_transposed_f03,
            (n0: isize, n1: isize, n2: isize),
            (l0: *mut isize, s0: *mut isize, l1: *mut isize, s1: *mut isize) -> isize,
            |comm| API.local_size((3, [n0, n1, n2].as_ptr()), 1, (0, Some(0)), comm, [l0, s0, l1, s1]));
    };
}

/// The planning functions.
#[doc(hidden)]
#[macro_export]
macro_rules! export_plans {
    ($prefix:literal, $real:ty) => {
        twins!($prefix, "plan_many_transpose", plan_many_transpose, plan_many_transpose_f03,
            (n0: isize, n1: isize, howmany: isize, b0: isize, b1: isize, input: *mut $real, output: *mut $real),
            (flags: c_uint) -> RawPlan,
            |comm| API.transpose(n0, n1, request(howmany, [b0, b1], [input, output], comm, flags)));
        twins!($prefix, "plan_transpose", plan_transpose, plan_transpose_f03,
            (n0: isize, n1: isize, input: *mut $real, output: *mut $real), (flags: c_uint) -> RawPlan,
            |comm| API.transpose(n0, n1, request(1, [0, 0], [input, output], comm, flags)));

        twins!($prefix, "plan_many_dft", plan_many_dft, plan_many_dft_f03,
            (rnk: c_int, n: *const isize, howmany: isize, block: isize, tblock: isize, input: *mut $real, output: *mut $real),
            (sign: c_int, flags: c_uint) -> RawPlan,
            |comm| API.dft(rnk, n, sign, request(howmany, [block, tblock], [input, output], comm, flags)));
        twins!($prefix, "plan_dft", plan_dft, plan_dft_f03,
            (rnk: c_int, n: *const isize, input: *mut $real, output: *mut $real),
            (sign: c_int, flags: c_uint) -> RawPlan,
            |comm| API.dft(rnk, n, sign, request(1, [0, 0], [input, output], comm, flags)));
        twins!($prefix, "plan_dft_1d", plan_dft_1d, plan_dft_1d_f03,
            (n0: isize, input: *mut $real, output: *mut $real), (sign: c_int, flags: c_uint) -> RawPlan,
            |comm| API.dft(1, &n0, sign, request(1, [0, 0], [input, output], comm, flags)));
        twins!($prefix, "plan_dft_2d", plan_dft_2d, plan_dft_2d_f03,
            (n0: isize, n1: isize, input: *mut $real, output: *mut $real),
            (sign: c_int, flags: c_uint) -> RawPlan,
            |comm| API.dft(2, [n0, n1].as_ptr(), sign, request(1, [0, 0], [input, output], comm, flags)));
        twins!($prefix, "plan_dft_3d", plan_dft_3d, plan_dft_3d_f03,
            (n0: isize, n1: isize, n2: isize, input: *mut $real, output: *mut $real),
            (sign: c_int, flags: c_uint) -> RawPlan,
            |comm| API.dft(3, [n0, n1, n2].as_ptr(), sign, request(1, [0, 0], [input, output], comm, flags)));

        twins!($prefix, "plan_many_r2r", plan_many_r2r, plan_many_r2r_f03,
            (rnk: c_int, n: *const isize, howmany: isize, iblock: isize, oblock: isize, input: *mut $real, output: *mut $real),
            (kind: *const c_int, flags: c_uint) -> RawPlan,
            |comm| API.r2r(rnk, n, kind, request(howmany, [iblock, oblock], [input, output], comm, flags)));
        twins!($prefix, "plan_r2r", plan_r2r, plan_r2r_f03,
            (rnk: c_int, n: *const isize, input: *mut $real, output: *mut $real),
            (kind: *const c_int, flags: c_uint) -> RawPlan,
            |comm| API.r2r(rnk, n, kind, request(1, [0, 0], [input, output], comm, flags)));
        twins!($prefix, "plan_r2r_2d", plan_r2r_2d, plan_r2r_2d_f03,
            (n0: isize, n1: isize, input: *mut $real, output: *mut $real),
            (k0: c_int, k1: c_int, flags: c_uint) -> RawPlan,
            |comm| API.r2r(2, [n0, n1].as_ptr(), [k0, k1].as_ptr(), request(1, [0, 0], [input, output], comm, flags)));
        twins!($prefix, "plan_r2r_3d", plan_r2r_3d, plan_r2r_3d_f03,
            (n0: isize, n1: isize, n2: isize, input: *mut $real, output: *mut $real),
            (k0: c_int, k1: c_int, k2: c_int, flags: c_uint) -> RawPlan,
            |comm| API.r2r(
                3, [n0, n1, n2].as_ptr(), [k0, k1, k2].as_ptr(), request(1, [0, 0], [input, output], comm, flags)
            ));

        $crate::export_real_plans!($prefix, $real, false, "plan_many_dft_r2c", plan_many_dft_r2c, plan_many_dft_r2c_f03,
            "plan_dft_r2c", plan_dft_r2c, plan_dft_r2c_f03, "plan_dft_r2c_2d", plan_dft_r2c_2d, plan_dft_r2c_2d_f03,
            "plan_dft_r2c_3d", plan_dft_r2c_3d, plan_dft_r2c_3d_f03);
        $crate::export_real_plans!($prefix, $real, true, "plan_many_dft_c2r", plan_many_dft_c2r, plan_many_dft_c2r_f03,
            "plan_dft_c2r", plan_dft_c2r, plan_dft_c2r_f03, "plan_dft_c2r_2d", plan_dft_c2r_2d, plan_dft_c2r_2d_f03,
            "plan_dft_c2r_3d", plan_dft_c2r_3d, plan_dft_c2r_3d_f03);
    };
}

/// The planning functions of real transforms in one direction.
#[doc(hidden)]
#[macro_export]
macro_rules! export_real_plans {
    ($prefix:literal, $real:ty, $backward:literal, $many:literal, $many_c:ident, $many_f:ident,
     $any:literal, $any_c:ident, $any_f:ident, $two:literal, $two_c:ident, $two_f:ident,
     $three:literal, $three_c:ident, $three_f:ident) => {
        twins!($prefix, $many, $many_c, $many_f,
            (rnk: c_int, n: *const isize, howmany: isize, iblock: isize, oblock: isize, input: *mut $real, output: *mut $real),
            (flags: c_uint) -> RawPlan,
            |comm| API.real_dft(rnk, n, $backward, request(howmany, [iblock, oblock], [input, output], comm, flags)));
        twins!($prefix, $any, $any_c, $any_f,
            (rnk: c_int, n: *const isize, input: *mut $real, output: *mut $real), (flags: c_uint) -> RawPlan,
            |comm| API.real_dft(rnk, n, $backward, request(1, [0, 0], [input, output], comm, flags)));
        twins!($prefix, $two, $two_c, $two_f,
            (n0: isize, n1: isize, input: *mut $real, output: *mut $real), (flags: c_uint) -> RawPlan,
            |comm| API.real_dft(2, [n0, n1].as_ptr(), $backward, request(1, [0, 0], [input, output], comm, flags)));
        twins!($prefix, $three, $three_c, $three_f,
            (n0: isize, n1: isize, n2: isize, input: *mut $real, output: *mut $real), (flags: c_uint) -> RawPlan,
            |comm| API.real_dft(3, [n0, n1, n2].as_ptr(), $backward, request(1, [0, 0], [input, output], comm, flags)));
    };
}

/// Calls on plans, wisdom, and the beginning and the end.
#[doc(hidden)]
#[macro_export]
macro_rules! export_calls {
    ($prefix:literal, $real:ty) => {
        twins!($prefix, "gather_wisdom", gather_wisdom, gather_wisdom_f03, (), (),
            |comm| API.share_wisdom(comm, false));
        twins!($prefix, "broadcast_wisdom", broadcast_wisdom, broadcast_wisdom_f03, (), (),
            |comm| API.share_wisdom(comm, true));

        // Nothing is to be prepared: plans find MPI by their communicator.
        $crate::interpose!($prefix, "mpi_init", mpi_init, (), ());
        $crate::interpose!($prefix, "mpi_cleanup", mpi_cleanup, (), $crate::next_function!("cleanup", unsafe extern "C" fn())());

        $crate::interpose!($prefix, "execute", execute, (plan: RawPlan), {
            if !API.execute(plan, None) {
                $crate::next_function!("execute", unsafe extern "C" fn(RawPlan))(plan)
            }
        });
        $crate::interpose!($prefix, "destroy_plan", destroy_plan, (plan: RawPlan), {
            if !API.destroy(plan) {
                $crate::next_function!("destroy_plan", unsafe extern "C" fn(RawPlan))(plan)
            }
        });
        $crate::export_execute!($prefix, $real, "mpi_execute_dft", mpi_execute_dft);
        $crate::export_execute!($prefix, $real, "mpi_execute_dft_r2c", mpi_execute_dft_r2c);
        $crate::export_execute!($prefix, $real, "mpi_execute_dft_c2r", mpi_execute_dft_c2r);
        $crate::export_execute!($prefix, $real, "mpi_execute_r2r", mpi_execute_r2r);

        // FFTW runs its MPI plans by these too, and programs do so (xmds2).
        $crate::export_serial_execute!($prefix, $real, "execute_dft", execute_dft);
        $crate::export_serial_execute!($prefix, $real, "execute_dft_r2c", execute_dft_r2c);
        $crate::export_serial_execute!($prefix, $real, "execute_dft_c2r", execute_dft_c2r);
        $crate::export_serial_execute!($prefix, $real, "execute_r2r", execute_r2r);

        $crate::interpose!($prefix, "print_plan", print_plan, (plan: RawPlan), {
            match API.text(plan) {
                Some(text) => $crate::print(&text, None),
                None => $crate::next_function!("print_plan", unsafe extern "C" fn(RawPlan))(plan),
            }
        });
        $crate::interpose!($prefix, "fprint_plan", fprint_plan, (plan: RawPlan, file: *mut c_void), {
            match API.text(plan) {
                Some(text) => $crate::print(&text, Some(file)),
                None => $crate::next_function!("fprint_plan", unsafe extern "C" fn(RawPlan, *mut c_void))(plan, file),
            }
        });
        $crate::interpose!($prefix, "sprint_plan", sprint_plan, (plan: RawPlan) -> *mut c_char, {
            match API.text(plan) {
                Some(text) => $crate::copy(&text),
                None => $crate::next_function!("sprint_plan", unsafe extern "C" fn(RawPlan) -> *mut c_char)(plan),
            }
        });
        $crate::interpose!($prefix, "flops", flops,
            (plan: RawPlan, add: *mut c_double, mul: *mut c_double, fma: *mut c_double), {
            match API.flops(plan) {
                Some(count) => {
                    add.write(count * 0.6);
                    mul.write(count * 0.4);
                    fma.write(0.0);
                }
                None => $crate::next_function!("flops", unsafe extern "C" fn(RawPlan, *mut c_double, *mut c_double, *mut c_double))(
                    plan, add, mul, fma
                ),
            }
        });
        $crate::interpose!($prefix, "cost", cost, (plan: RawPlan) -> c_double, {
            API.flops(plan).unwrap_or_else(|| $crate::next_function!("cost", unsafe extern "C" fn(RawPlan) -> c_double)(plan))
        });
        $crate::interpose!($prefix, "estimate_cost", estimate_cost, (plan: RawPlan) -> c_double, {
            API.flops(plan)
                .unwrap_or_else(|| $crate::next_function!("estimate_cost", unsafe extern "C" fn(RawPlan) -> c_double)(plan))
        });
    };
}

/// A function of FFTW's library for one process, as a value of a function type.
#[doc(hidden)]
#[macro_export]
macro_rules! next_function {
    ($name:literal, $type:ty) => {{
        static KNOWN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
        std::mem::transmute::<*const c_void, $type>(API.next(&KNOWN, $name))
    }};
}

/// A function of the name that programs know.
#[doc(hidden)]
#[macro_export]
macro_rules! interpose {
    ($prefix:literal, $name:literal, $function:ident, ($($a:ident: $at:ty),*) $(-> $result:ty)?, $body:expr) => {
        #[doc = concat!("`", $prefix, $name, "` of FFTW.")]
        ///
        /// # Safety
        /// As its manual says.
        #[unsafe(export_name = concat!($prefix, $name))]
        pub unsafe extern "C" fn $function($($a: $at),*) $(-> $result)? {
            // SAFETY: the caller's arguments are those of FFTW's function, and so is the type.
            #[allow(unused_unsafe, reason = "some bodies need it")]
            unsafe { $body }
        }
    };
}

/// The execution of a plan on other arrays.
#[doc(hidden)]
#[macro_export]
macro_rules! export_execute {
    ($prefix:literal, $real:ty, $name:literal, $function:ident) => {
        $crate::interpose!(
            $prefix, $name, $function, (plan: RawPlan, input: *mut $real, output: *mut $real), {
            if !API.execute(plan, Some([input, output])) {
                let function = API.next_mpi($name);
                std::mem::transmute::<*const c_void, unsafe extern "C" fn(RawPlan, *mut $real, *mut $real)>(function)(
                    plan, input, output
                )
            }
        });
    };
}

/// The execution of a plan on other arrays by the function for one process.
#[doc(hidden)]
#[macro_export]
macro_rules! export_serial_execute {
    ($prefix:literal, $real:ty, $name:literal, $function:ident) => {
        $crate::interpose!($prefix, $name, $function, (plan: RawPlan, input: *mut $real, output: *mut $real), {
            if !API.execute(plan, Some([input, output])) {
                $crate::next_function!($name, unsafe extern "C" fn(RawPlan, *mut $real, *mut $real))(
                    plan, input, output
                )
            }
        });
    };
}
