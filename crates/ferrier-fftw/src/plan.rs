//! Plans: the calls of Ferrier that make up a transform of FFTW's.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Mutex;
use std::time::Duration;

use ferrier::{Comm, Effort, Element, Planner, Real, Redistribution, Scalars};

use crate::distribution::{Group, blocks_1d};
use crate::flags::{EXHAUSTIVE, PATIENT, SCRAMBLED_IN, SCRAMBLED_OUT, TRANSPOSED_IN, TRANSPOSED_OUT};
use crate::steps::{End, Part, Transform, line};

/// The numbers of one precision.
pub trait Scalar: Real + Element {}

impl Scalar for f32 {}
impl Scalar for f64 {}

/// A plan that callers hold.
pub struct Plan<T: Scalar> {
    calls: Mutex<Vec<Call<T>>>,
    input: *mut T,
    output: *mut T,
    text: String,
    flops: f64,
}

/// A call, and the scalars of its source and target.
struct Call<T: Scalar> {
    run: PlannedCall<T>,
    scalars: [usize; 2],
}

enum PlannedCall<T: Scalar> {
    Forward(ferrier::Plan<T>),
    Backward(ferrier::Plan<T>),
    Transpose(Redistribution<T>),
}

/// # Safety
/// The caller's array has this many scalars, and nothing else accesses it for the length of a call.
unsafe fn memory<'a, T>(address: *mut T, scalars: usize) -> Scalars<&'a mut [T]> {
    match scalars {
        // A rank without data may pass anything.
        0 => Scalars(&mut []),
        // SAFETY: the contract of this function.
        _ => Scalars(unsafe { std::slice::from_raw_parts_mut(address, scalars) }),
    }
}

/// The calls of a transform.
///
/// # Errors
/// Says what FFTW does and this library does not. The same on every rank.
pub fn steps(
    transform: &Transform,
    blocks: [usize; 2],
    (sign, flags): (c_int, c_uint),
    group: Group,
) -> Result<Vec<Part>, String> {
    let [n] = transform.n[..] else {
        let ends = [
            End { transposed: flags & TRANSPOSED_IN != 0, block: blocks[0] },
            End { transposed: flags & TRANSPOSED_OUT != 0, block: blocks[1] },
        ];
        return transform.steps(ends, group);
    };
    let complex = transform.kinds == [ferrier::Kind::Complex];
    if complex && transform.howmany == 1 && blocks == [0; 2] {
        let scrambled = [flags & SCRAMBLED_IN != 0, flags & SCRAMBLED_OUT != 0];
        if let Some(step) = line(n, transform.backward, scrambled, group) {
            return Ok(vec![step]);
        }
    }
    let default = blocks_1d(n, transform.howmany.max(2), group.ranks, sign, flags);
    let block = |end: usize| if blocks[end] == 0 { default[end].block } else { blocks[end] };
    transform.steps([0, 1].map(|end| End { transposed: false, block: block(end) }), group)
}

impl<T: Scalar> Plan<T> {
    /// Collective over `comm`.
    ///
    /// # Errors
    /// Those of Ferrier's planner.
    pub fn new(
        comm: &Comm,
        steps: Vec<Part>,
        arrays: [*mut T; 2],
        flags: c_uint,
    ) -> ferrier::Result<Plan<T>> {
        // FFTW's planner tries plans by default. Ferrier's model decides as well in most cases, in no time.
        let effort = match flags {
            flags if flags & EXHAUSTIVE != 0 => Effort::Patient(Duration::from_secs(60)),
            flags if flags & PATIENT != 0 => Effort::Measure,
            _ => Effort::Estimate,
        };
        let (mut calls, mut lines, mut flops) = (Vec::new(), Vec::new(), 0.0);
        for Part { problem, backward, local, scalars } in steps {
            let one = Comm::one_rank().with_threads(comm.threads());
            let comm = if local { &one } else { comm };
            let [a, b, c] = problem.shape();
            let run = if problem.axes.is_empty() {
                lines.push(format!("transpose {a}x{b}x{c}"));
                PlannedCall::Transpose(Redistribution::new(comm, &problem)?)
            } else {
                let kinds = problem.kinds().map(|kind| kind.name()).join(",");
                lines.push(format!("{} {a}x{b}x{c} {kinds}", if backward { "backward" } else { "forward" }));
                let points = problem.points() * problem.batch as f64;
                flops += 2.5 * points * problem.points().log2() * if problem.is_real() { 1.0 } else { 2.0 };
                let plan = Planner::new(&problem).effort(effort).draft::<T>(comm)?.build()?;
                if backward { PlannedCall::Backward(plan) } else { PlannedCall::Forward(plan) }
            };
            calls.push(Call { run, scalars });
        }
        let text = format!("(ferrier-mpi {})", lines.join("; "));
        let [input, output] = arrays;
        Ok(Plan { calls: Mutex::new(calls), input, output, text, flops: flops / comm.size() as f64 })
    }

    /// Transforms the arrays that the plan was made for.
    ///
    /// # Errors
    /// Those of the transport.
    ///
    /// # Safety
    /// As [`execute_on`](Self::execute_on).
    pub unsafe fn execute(&self) -> ferrier::Result<()> {
        // SAFETY: the contract of this function.
        unsafe { self.execute_on(self.input, self.output) }
    }

    /// Transforms other arrays. Collective.
    ///
    /// # Errors
    /// Those of the transport.
    ///
    /// # Safety
    /// Both arrays are as long as `local_size` said, are equal or do not overlap, and nothing else accesses them for the
    /// length of the call.
    pub unsafe fn execute_on(&self, input: *mut T, output: *mut T) -> ferrier::Result<()> {
        let mut calls = self.calls.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut source = input;
        for Call { run, scalars: [from, to] } in calls.iter_mut() {
            // SAFETY: the contract of this function; where they are one array only the second is made.
            unsafe {
                if source == output {
                    let mut array = memory(output, *(from).max(to));
                    match run {
                        PlannedCall::Forward(plan) => plan.call().forward_in_place(&mut array)?,
                        PlannedCall::Backward(plan) => plan.call().backward_in_place(&mut array)?,
                        PlannedCall::Transpose(redistribution) => redistribution.run_in_place(array.0)?,
                    }
                } else {
                    let (source, mut target) = (memory(source, *from), memory(output, *to));
                    match run {
                        PlannedCall::Forward(plan) => plan.forward(&source, &mut target)?,
                        PlannedCall::Backward(plan) => plan.backward(&source, &mut target)?,
                        PlannedCall::Transpose(redistribution) => redistribution.run(source.0, target.0)?,
                    }
                }
            }
            source = output;
        }
        Ok(())
    }

    /// For `fftw_print_plan`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Floating-point operations of this rank.
    pub fn flops(&self) -> f64 {
        self.flops
    }
}

/// A plan as callers hold it.
pub type RawPlan = *mut c_void;
