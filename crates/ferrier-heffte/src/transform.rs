//! A transform between boxes, with the plans that calls needed so far.

use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use ferrier::{Choice, Comm, Kind, Problem, Scale};

use crate::choice::{Options, choice};
use crate::engine::{self, Engine, Request};
use crate::geometry::{GatheredBoxes, HeffteBox, Outcome, gather, reversed};

/// What is transformed.
#[derive(Clone, Copy, Debug)]
pub enum Numbers {
    /// `fft3d`: to the whole spectrum, from complex elements or, if a call says so, from real ones.
    Complex,
    /// `fft3d_r2c`: real elements to the spectrum that is halved in a dimension.
    Halved(usize),
    /// Cosine and sine transforms of real elements.
    Real(Kind),
}

/// What a plan is for. Precision and batch are chosen by each call, and so is what the input of `fft3d` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    pub double: bool,
    /// Real input of `fft3d`.
    pub real: bool,
    pub batch: usize,
}

/// A transform between boxes.
pub struct Transform {
    comm: Comm,
    problem: Problem,
    choice: Choice,
    gpu: Option<usize>,
    world: [usize; 3],
    sizes: [usize; 2],
    held: Mutex<MadePlans>,
}

#[derive(Default)]
struct MadePlans {
    plans: HashMap<Variant, Box<dyn Engine>>,
    notes: Vec<String>,
}

impl Transform {
    /// Collective. `axes`: bit d is set where dimension d is transformed.
    ///
    /// # Errors
    /// Boxes that do not fit together, unknown options; the same on every rank.
    pub fn new(
        comm: Comm,
        boxes: [HeffteBox; 2],
        numbers: Numbers,
        axes: u32,
        options: &Options,
        gpu: Option<usize>,
    ) -> Outcome<Transform> {
        let (choice, notes) = choice(options, &comm)?;
        let [input, output] = gather(&comm, boxes)?;
        let mut expected = input.world;
        if let Numbers::Halved(dimension) = numbers {
            expected[dimension] = expected[dimension] / 2 + 1;
        }
        if output.world != expected {
            return Err(format!(
                "the outboxes must fill {expected:?}, as the inboxes fill {:?}; they fill {:?}",
                input.world, output.world
            ));
        }
        let sizes = [input.own, output.own];
        let GatheredBoxes { world, layout, .. } = input;
        let problem = problem(world, numbers, axes).input(layout).output(output.layout);
        let held = Mutex::new(MadePlans { notes, ..MadePlans::default() });
        Ok(Transform { comm, problem, choice, gpu, world, sizes, held })
    }

    /// The lengths of the whole in real space, by dimensions.
    pub fn world(&self) -> [usize; 3] {
        self.world
    }

    /// Elements of inbox and outbox on this rank.
    pub fn sizes(&self) -> [usize; 2] {
        self.sizes
    }

    /// Options that are served in another way, and the notes of the plans so far.
    pub fn notes(&self) -> Vec<String> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let plans = held.plans.values().flat_map(|plan| plan.notes());
        let mut notes: Vec<String> = held.notes.iter().chain(plans).cloned().collect();
        notes.sort();
        notes.dedup();
        notes
    }

    /// Runs a transform; the first call of each variant makes its plan. Collective.
    ///
    /// # Errors
    /// Those of Ferrier.
    ///
    /// # Safety
    /// As [`Engine::run`], `variant.batch` times.
    pub unsafe fn run(&self, variant: Variant, request: &Request) -> Outcome<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let MadePlans { plans, notes } = &mut *held;
        let plan = match plans.get_mut(&variant) {
            Some(plan) => plan,
            None => {
                let (plan, note) = self.plan(variant)?;
                notes.extend(note);
                plans.entry(variant).or_insert(plan)
            }
        };
        // SAFETY: the contract of this function.
        unsafe { plan.run(request) }
    }

    fn plan(&self, variant: Variant) -> Outcome<(Box<dyn Engine>, Option<String>)> {
        if variant.batch == 0 {
            return Err("the batch must be at least 1".into());
        }
        let problem = self.problem.clone().batch(variant.batch).real_input(variant.real);
        let comm = self.comm.clone().with_threads(threads(variant.double));
        match variant.double {
            false => engine::make::<f32>(&comm, &problem, &self.choice, self.gpu),
            true => engine::make::<f64>(&comm, &problem, &self.choice, self.gpu),
        }
    }
}

fn problem(world: [usize; 3], numbers: Numbers, axes: u32) -> Problem {
    let (shape, axis_of) = (reversed(world), |dimension: usize| 2 - dimension);
    let transformed = |axis: usize| axes & (1 << (2 - axis)) != 0;
    let chosen: Vec<usize> = (0..3).filter(|axis| transformed(*axis)).collect();
    let problem = match numbers {
        Numbers::Complex => Problem::c2c(shape).axes(&chosen),
        Numbers::Halved(dimension) => Problem::r2c(shape).halved(axis_of(dimension)).axes(&chosen),
        Numbers::Real(kind) => {
            Problem::mixed(shape, [0, 1, 2].map(|axis| if transformed(axis) { kind } else { Kind::Identity }))
        }
    };
    // Scaled by calls.
    problem.scale_backward(Scale::Unscaled)
}

/// A function of the program or of a library that it is linked to.
pub fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: looks a name up; it ends in a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Threads of each rank: one, as in heFFTe, unless the program asked FFTW for more (`fftw_plan_with_nthreads`).
fn threads(double: bool) -> usize {
    let name = if double { c"fftw_planner_nthreads" } else { c"fftwf_planner_nthreads" };
    let Some(address) = symbol(name) else { return 1 };
    // SAFETY: FFTW's function of this name takes nothing and returns an int.
    let asked = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(address)() };
    usize::try_from(asked).unwrap_or(1).max(1)
}
