//! Operators: pointwise functions of the modes of a spectrum.

use std::any::Any;
use std::ffi::c_void;

use ferrier::spectral::{self, WaveNumbers};
use ferrier::{Modes, Real, Recipe};

use crate::handle::{Handle, Object};
use crate::pointer::Out;
use crate::status::{Failure, Outcome, Status, guard};

/// A pointwise function of the modes of a spectrum, for ferrier_plan_execute. The problem must have
/// ferrier_problem_operators.
pub struct Operator(Inner);

enum Inner {
    Callback(Callback),
    /// A [`Typed`] of one of the precisions.
    Named(Box<dyn Any + Send + Sync>),
}

type Typed<T> = Box<dyn ferrier::Operator<T> + Send + Sync>;

impl Object for Operator {
    const NAME: &'static str = "operator";
    const TAG: usize = 4;
}

impl Operator {
    /// One of Ferrier's own: a [`Typed`].
    pub(crate) fn named(operator: Box<dyn Any + Send + Sync>) -> Operator {
        Operator(Inner::Named(operator))
    }
}

/// Neighbouring modes of a spectrum along one axis, in cache; a function of the caller's changes them in place.
#[repr(C)]
pub struct ModeRun {
    /// The modes: `length` complex numbers (pairs) or, where is_real, real ones, of the precision of the plan.
    pub values: *mut c_void,
    /// The number of modes.
    pub length: u64,
    /// The global index, in the spectrum, of the first mode. For each complex axis of n points indices are those of
    /// numpy.fft.fftfreq(n).
    pub first: [u64; 3],
    /// The axis along which the others follow.
    pub axis: u64,
    /// Which array of the batch.
    pub batch: u64,
    /// 1 where the modes are real numbers (cosine and sine transforms only), else 0.
    pub is_real: i32,
    /// Bytes of a real number: 4 or 8.
    pub scalar_bytes: i32,
}

/// A function of the caller's: changes the modes of a run. It is called from several threads at once, with every mode
/// once, in no particular order. It must not throw, jump out or call this library.
pub type ModeFunction = Option<unsafe extern "C" fn(data: *mut c_void, run: *const ModeRun)>;

struct Callback {
    function: unsafe extern "C" fn(*mut c_void, *const ModeRun),
    data: *mut c_void,
}

// SAFETY: the header asks for a function that several threads may call at once with its data.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl<T: Real> ferrier::Operator<T> for Callback {
    fn apply(&self, modes: &mut Modes<'_, T>) {
        for mut run in modes.runs() {
            let is_real = run.is_real();
            let values: *mut c_void = match is_real {
                true => run.real().as_mut_ptr().cast(),
                false => run.complex().as_mut_ptr().cast(),
            };
            let run = ModeRun {
                values,
                length: run.len() as u64,
                first: run.first().map(|index| index as u64),
                axis: run.axis() as u64,
                batch: run.batch() as u64,
                is_real: i32::from(is_real),
                scalar_bytes: size_of::<T>() as i32,
            };
            // SAFETY: a function of the caller's, called as the header says; the run lives during the call.
            unsafe { (self.function)(self.data, &run) };
        }
    }
}

impl Operator {
    /// The operator for a plan of precision `T`.
    pub(crate) fn typed<T: Real>(&self) -> Outcome<&dyn ferrier::Operator<T>> {
        match &self.0 {
            Inner::Callback(callback) => Ok(callback),
            Inner::Named(operator) => match operator.downcast_ref::<Typed<T>>() {
                Some(operator) => Ok(&**operator),
                None => Err(Failure::argument("op", "was made for a plan of the other precision")),
            },
        }
    }
}

/// Names of operators with the numbers of their parameters.
const NAMES: [(&str, usize); 8] = [
    ("laplacian", 0),
    ("inverse_laplacian", 0),
    ("helmholtz", 1),
    ("derivative", 1),
    ("gaussian", 1),
    ("low_pass", 1),
    ("shift", 3),
    ("two_thirds", 0),
];

/// An operator by its name.
pub(crate) fn named<T: Real>(
    recipe: &Recipe,
    name: &str,
    lengths: [f64; 3],
    parameters: &[f64],
) -> Outcome<Box<dyn Any + Send + Sync>> {
    let Some((_, count)) = NAMES.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        let message = format!("unknown operator `{name}`; known are: {}", known.join(", "));
        return Err(Failure::new(Status::UnknownName, message));
    };
    if parameters.len() != *count {
        let message = format_args!("must be {count} for operator {name}, got {}", parameters.len());
        return Err(Failure::argument("count", message));
    }
    let waves = WaveNumbers::new(recipe, lengths)?;
    let typed: Typed<T> = match name {
        "laplacian" => Box::new(spectral::laplacian(&waves)),
        "inverse_laplacian" => Box::new(spectral::inverse_laplacian(&waves)),
        "helmholtz" => Box::new(spectral::helmholtz(&waves, parameters[0])),
        "derivative" => {
            let axis = [0.0, 1.0, 2.0].iter().position(|axis| *axis == parameters[0]);
            let axis = axis.ok_or_else(|| Failure::argument("parameters", "must be the axis 0, 1 or 2"))?;
            Box::new(spectral::derivative(&waves, axis)?)
        }
        "gaussian" => Box::new(spectral::gaussian(&waves, parameters[0])),
        "low_pass" => Box::new(spectral::low_pass(&waves, parameters[0])),
        "shift" => Box::new(spectral::shift(&waves, [parameters[0], parameters[1], parameters[2]])?),
        _ => Box::new(spectral::two_thirds(&waves)),
    };
    Ok(Box::new(typed))
}

/// An operator that calls a function of the caller's, for plans in main memory. `data` is handed to it.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_operator_callback(
    function: ModeFunction,
    data: Out<c_void>,
    mut op: Out<Handle<Operator>>,
) -> Status {
    guard(|| {
        let slot = op.slot("op")?;
        let function = function.ok_or_else(|| Failure::argument("function", "is NULL"))?;
        slot.set(Handle::new(Operator(Inner::Callback(Callback { function, data: data.address() }))));
        Ok(())
    })
}

/// Destroys an operator. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_operator_free(op: Handle<Operator>) -> Status {
    guard(|| op.destroy("op"))
}
