//! Problems: which transform, and how its arrays are distributed.

use std::ffi::c_char;
use std::sync::{Mutex, MutexGuard};

use ferrier::{Keep, Kind, Scale, Sign};

use crate::handle::{Handle, Object, locked};
use crate::json;
use crate::pointer::{In, Out, one_of};
use crate::status::{Failure, Outcome, Status, guard};
use crate::text::give;

/// A transform of three axes, and how its input and output are distributed over ranks. Axis 2 is the fastest in memory
/// unless an order is set. A 2-D array has the shape {1, n0, n1}, a 1-D array {1, 1, n}.
///
/// By default all axes are transformed, input and output are slabs along axis 0 (the first axis is split over ranks),
/// forward is e^(-2 pi i k x / n) without a factor, backward is scaled by 1/N.
///
/// Functions of problems only store; what does not fit together is reported when a plan is made.
pub struct Problem(Mutex<ferrier::Problem>);

impl Object for Problem {
    const NAME: &'static str = "problem";
    const TAG: usize = 2;
}

impl Problem {
    pub(crate) fn get(&self) -> Outcome<MutexGuard<'_, ferrier::Problem>> {
        locked(&self.0, "problem")
    }
}

/// The 1-D transform of an axis.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum TransformKind {
    /// No transform.
    None = 0,
    /// Complex to complex.
    C2c = 1,
    /// Real to complex forward (n to n/2+1 modes), complex to real backward.
    R2c = 2,
    /// Cosine transform of type 1, as scipy.fft and FFTW define it (REDFT00).
    Dct1 = 3,
    /// Cosine transform of type 2; backward is type 3 (REDFT10).
    Dct2 = 4,
    /// Cosine transform of type 3; backward is type 2 (REDFT01).
    Dct3 = 5,
    /// Cosine transform of type 4 (REDFT11).
    Dct4 = 6,
    /// Sine transform of type 1 (RODFT00).
    Dst1 = 7,
    /// Sine transform of type 2; backward is type 3 (RODFT10).
    Dst2 = 8,
    /// Sine transform of type 3; backward is type 2 (RODFT01).
    Dst3 = 9,
    /// Sine transform of type 4 (RODFT11).
    Dst4 = 10,
}

const KINDS: [(i32, Kind); 11] = [
    (TransformKind::None as i32, Kind::Identity),
    (TransformKind::C2c as i32, Kind::Complex),
    (TransformKind::R2c as i32, Kind::Real),
    (TransformKind::Dct1 as i32, Kind::Dct1),
    (TransformKind::Dct2 as i32, Kind::Dct2),
    (TransformKind::Dct3 as i32, Kind::Dct3),
    (TransformKind::Dct4 as i32, Kind::Dct4),
    (TransformKind::Dst1 as i32, Kind::Dst1),
    (TransformKind::Dst2 as i32, Kind::Dst2),
    (TransformKind::Dst3 as i32, Kind::Dst3),
    (TransformKind::Dst4 as i32, Kind::Dst4),
];

/// A scale factor; N is the product of the lengths of the transformed axes (2n for cosine and sine transforms, but
/// 2(n-1) for type 1 of cosines and 2(n+1) for type 1 of sines).
#[derive(Clone, Copy)]
#[repr(C)]
pub enum ScaleKind {
    /// 1.
    None = 0,
    /// 1/N.
    Full = 1,
    /// 1/sqrt(N).
    Symmetric = 2,
}

const SCALES: [(i32, Scale); 3] = [
    (ScaleKind::None as i32, Scale::Unscaled),
    (ScaleKind::Full as i32, Scale::Full),
    (ScaleKind::Symmetric as i32, Scale::Symmetric),
];

fn make(mut problem: Out<Handle<Problem>>, make: impl FnOnce() -> Outcome<ferrier::Problem>) -> Outcome {
    let slot = problem.slot("problem")?;
    slot.set(Handle::new(Problem(Mutex::new(make()?))));
    Ok(())
}

/// Changes a problem by one of its setters.
pub(crate) fn change(
    problem: Handle<Problem>,
    change: impl FnOnce(ferrier::Problem) -> Outcome<ferrier::Problem>,
) -> Status {
    guard(|| {
        let problem = problem.get("problem")?;
        let mut problem = problem.get()?;
        *problem = change(problem.clone())?;
        Ok(())
    })
}

/// An axis: 0, 1 or 2.
pub(crate) fn axis(axis: u64) -> Outcome<usize> {
    usize::try_from(axis)
        .ok()
        .filter(|axis| *axis < 3)
        .ok_or_else(|| Failure::argument("axis", format_args!("must be 0, 1 or 2, got {axis}")))
}

/// A complex transform of an array of shape[3].
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_c2c(shape: In<u64>, problem: Out<Handle<Problem>>) -> Status {
    guard(|| make(problem, || Ok(ferrier::Problem::c2c(shape.three("shape")?))))
}

/// A transform of shape[3] real elements to the half of their spectrum that is not redundant, and back: axis 2 has
/// n/2+1 modes (ferrier_problem_halved chooses another axis).
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_r2c(shape: In<u64>, problem: Out<Handle<Problem>>) -> Status {
    guard(|| make(problem, || Ok(ferrier::Problem::r2c(shape.three("shape")?))))
}

/// A transform with a kind for each axis: kinds[3] are values of ferrier_kind, at most one of them r2c. With
/// cosine and sine transforms only, values are real before and after.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_mixed(
    shape: In<u64>,
    kinds: In<i32>,
    problem: Out<Handle<Problem>>,
) -> Status {
    guard(|| {
        make(problem, || {
            let [a, b, c] = kinds.array::<3>("kinds")?.map(|kind| one_of("kinds", kind, &KINDS));
            Ok(ferrier::Problem::mixed(shape.three("shape")?, [a?, b?, c?]))
        })
    })
}

/// No transform: takes arrays from the layout of the input to that of the output; for ferrier_redistribution_create.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_redistribute(shape: In<u64>, problem: Out<Handle<Problem>>) -> Status {
    guard(|| make(problem, || Ok(ferrier::Problem::redistribute(shape.three("shape")?))))
}

/// A complex transform of one long axis that is distributed over all ranks: two factors of `n` are axes 1 and 2, and
/// mode k lies at {0, k % n1, k / n1} of the spectrum, where n1 is the length of axis 1.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_c2c_1d(n: u64, problem: Out<Handle<Problem>>) -> Status {
    guard(|| make(problem, || Ok(ferrier::Problem::c2c_1d(n as usize))))
}

/// A problem from JSON, as ferrier_problem_json writes it.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_from_json(text: In<c_char>, problem: Out<Handle<Problem>>) -> Status {
    guard(|| make(problem, || json::read("text", text.text("text")?)))
}

/// A copy of a problem.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_clone(problem: Handle<Problem>, copy: Out<Handle<Problem>>) -> Status {
    guard(|| make(copy, || Ok(problem.get("problem")?.get()?.clone())))
}

/// The problem as JSON; free it with ferrier_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_json(problem: Handle<Problem>, text: Out<*mut c_char>) -> Status {
    guard(|| give(text, "text", json::write(&*problem.get("problem")?.get()?)?))
}

/// Destroys a problem; plans made from it stay as they are. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_free(problem: Handle<Problem>) -> Status {
    guard(|| problem.destroy("problem"))
}

/// Sets the axes to transform (`count` of them); the others are left alone.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_axes(problem: Handle<Problem>, axes: In<u64>, count: u64) -> Status {
    change(problem, |problem| {
        if count > 3 {
            return Err(Failure::argument("count", format_args!("must be at most 3, got {count}")));
        }
        let axes: Vec<usize> = axes.list("axes", count)?.into_iter().map(axis).collect::<Outcome<_>>()?;
        Ok(problem.axes(&axes))
    })
}

/// Sets the axis that has n/2+1 modes in a real transform.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_halved(problem: Handle<Problem>, axis: u64) -> Status {
    change(problem, |problem| Ok(problem.halved(self::axis(axis)?)))
}

/// Values are complex although all kinds are cosine and sine transforms, which act on real and imaginary parts.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_complex_values(problem: Handle<Problem>) -> Status {
    change(problem, |problem| Ok(problem.complex_values()))
}

/// Sets the sign of the exponent of forward: -1 (the default) or 1. Backward has the other one.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_sign(problem: Handle<Problem>, sign: i32) -> Status {
    change(problem, |problem| {
        Ok(problem.sign(one_of("sign", sign, &[(-1, Sign::Negative), (1, Sign::Positive)])?))
    })
}

/// With 1 the input of forward is real although a complex axis is transformed, and its spectrum is whole; backward gives
/// the real parts.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_real_input(problem: Handle<Problem>, yes: i32) -> Status {
    change(problem, |problem| Ok(problem.real_input(yes != 0)))
}

/// Sets the number of arrays that are transformed together; on each rank they are consecutive in memory.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_batch(problem: Handle<Problem>, arrays: u64) -> Status {
    change(problem, |problem| Ok(problem.batch(arrays as usize)))
}

/// Sets the factors of forward and backward: values of ferrier_scale.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_scale(problem: Handle<Problem>, forward: i32, backward: i32) -> Status {
    change(problem, |problem| {
        let forward = one_of("forward", forward, &SCALES)?;
        Ok(problem.scale_forward(forward).scale_backward(one_of("backward", backward, &SCALES)?))
    })
}

/// Keeps only the `modes` lowest frequencies of an axis: forward drops the others, backward takes them as zero. Known
/// zeros are neither transformed nor sent. The spectrum is an array of the kept modes.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_keep_lowest(problem: Handle<Problem>, axis: u64, modes: u64) -> Status {
    keep(problem, axis, Keep::Lowest(modes as usize))
}

/// Keeps only the modes from `first` to before `end` of an axis.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_keep_range(
    problem: Handle<Problem>,
    axis: u64,
    first: u64,
    end: u64,
) -> Status {
    keep(problem, axis, Keep::Range(first as usize, end as usize))
}

fn keep(problem: Handle<Problem>, axis: u64, keep: Keep) -> Status {
    change(problem, |problem| {
        let mut all = problem.keep;
        all[self::axis(axis)?] = keep;
        Ok(problem.keep(all))
    })
}

/// Keeps the modes inside an ellipsoid: integer frequencies k with (k0/r0)^2 + (k1/r1)^2 + (k2/r2)^2 <= 1. The spectrum
/// has the shape {kept modes of axis 0, columns, 1}. The output becomes slabs along axis 1; set another layout after
/// this call.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_keep_ellipsoid(problem: Handle<Problem>, radii: In<f64>) -> Status {
    change(problem, |problem| Ok(problem.keep_ellipsoid(radii.array::<3>("radii")?)))
}

/// Sets the points of an axis, from `first` to before `end`, that may be non-zero before forward. The input has only
/// them; backward computes only them.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_support(
    problem: Handle<Problem>,
    axis: u64,
    first: u64,
    end: u64,
) -> Status {
    change(problem, |problem| Ok(problem.support(self::axis(axis)?, first as usize..end as usize)))
}

/// Sets the allowed relative error (L2): messages between ranks are encoded in as few bytes as it allows, and
/// ferrier_plan_certificate reports what was lost.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_tolerance(problem: Handle<Problem>, error: f64) -> Status {
    change(problem, |problem| Ok(problem.tolerance(error)))
}

/// With 1 the bits of results do not depend on the number of ranks.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_reproducible(problem: Handle<Problem>, yes: i32) -> Status {
    change(problem, |problem| Ok(problem.reproducible(yes != 0)))
}

/// With 1 plans can apply operators to the spectrum; they may take more memory.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_operators(problem: Handle<Problem>, yes: i32) -> Status {
    change(problem, |problem| Ok(problem.operators(yes != 0)))
}

/// The shape[3] of the spectrum.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_spectrum_shape(problem: Handle<Problem>, shape: Out<u64>) -> Status {
    guard(|| shape.set_three("shape", checked(problem)?.spectrum_shape()))
}

/// The modes of the whole axis that the spectrum holds, one for each of its indices along `axis`: as many as there is
/// `room` for in modes[room], and their number.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_kept_modes(
    problem: Handle<Problem>,
    axis: u64,
    modes: Out<u64>,
    room: u64,
    count: Out<u64>,
) -> Status {
    guard(|| {
        let runs = checked(problem)?.modes(self::axis(axis)?);
        count.set("count", runs.iter().map(|run| run.len as u64).sum())?;
        let kept = runs.iter().flat_map(|run| run.line..run.line + run.len).map(|mode| mode as u64);
        modes.set_list("modes", room, kept)
    })
}

/// The columns of the ellipsoid of ferrier_problem_keep_ellipsoid, one for each index of the spectrum along axis 1: pairs
/// of indices in the kept modes of axes 1 and 2. As many as there is `room` for in pairs[2 * room], and their number, which
/// is 0 without an ellipsoid.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_columns(
    problem: Handle<Problem>,
    pairs: Out<u64>,
    room: u64,
    count: Out<u64>,
) -> Status {
    guard(|| {
        let columns = checked(problem)?.columns();
        count.set("count", columns.len() as u64)?;
        let indices = columns.into_iter().flatten().map(|index| index as u64);
        pairs.set_list("pairs", room.saturating_mul(2), indices)
    })
}

/// Where mode `k` of a problem of ferrier_problem_c2c_1d lies: its index[3] in the spectrum.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_mode(problem: Handle<Problem>, k: u64, index: Out<u64>) -> Status {
    guard(|| {
        let problem = checked(problem)?;
        let [_, rows, columns] = problem.shape;
        match usize::try_from(k).ok().filter(|k| *k < rows * columns) {
            Some(k) => index.set_three("index", problem.mode(k)),
            None => {
                Err(Failure::argument("k", format_args!("must be less than {}, got {k}", rows * columns)))
            }
        }
    })
}

/// Checks everything but the layouts, as ferrier_plan_create does.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_problem_check(problem: Handle<Problem>) -> Status {
    guard(|| checked(problem).map(drop))
}

/// A problem that a transform can have, whatever its layouts.
pub(crate) fn checked(problem: Handle<Problem>) -> Outcome<ferrier::Problem> {
    let problem = problem_of(problem)?;
    problem.check().map_err(ferrier::Error::from)?;
    Ok(problem)
}

/// The columns of an ellipsoid that can be listed in reasonable time and memory.
const MOST_COLUMNS: f64 = 1e8;

/// A problem of the caller's.
pub(crate) fn problem_of(problem: Handle<Problem>) -> Outcome<ferrier::Problem> {
    let problem = problem.get("problem")?.get()?.clone();
    if let Some(radii) = problem.sphere {
        let modes = |axis: usize| (2.0 * radii.get()[axis].abs() + 1.0).min(problem.shape[axis] as f64);
        if modes(1) * modes(2) > MOST_COLUMNS {
            let message = format!("the ellipsoid of radii {radii:?} has more than {MOST_COLUMNS} columns");
            return Err(Failure::new(Status::Problem, message));
        }
    }
    Ok(problem)
}
