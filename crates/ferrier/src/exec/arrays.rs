//! What a plan gives: arrays that fit it, and what it knows about itself.

use super::cpu::bind::Step;
use super::{Array, FORWARD, IN_PLACE, Memory, Plan, StepTime, Workspace};
use crate::machine::buffer::Buffer;
use crate::transport::shared_buffer;
use crate::{Box3, Layout, Real, Recipe, Result};
use ferrier_plan::geometry::Geometry;
use ferrier_plan::messages::Mechanism;

impl<T: Real> Plan<T> {
    /// An array for the input of [`forward`](Self::forward). Collective; allocates.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    pub fn make_input(&self) -> Result<Array<T>> {
        self.make(Some(self.variants[FORWARD].input), None)
    }

    /// An array for the output of [`forward`](Self::forward). Collective; allocates.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    pub fn make_output(&self) -> Result<Array<T>> {
        self.make(None, Some(self.variants[FORWARD].output))
    }

    /// An array for transforms in place. Collective; allocates.
    ///
    /// It has room for the larger of input and output. In a real transform
    /// whose halved axis is the fastest in memory and whole on each rank, real
    /// rows of n are padded to 2 (n/2 + 1) numbers, as FFTW lays them out;
    /// otherwise real numbers lie densely at its start, also where not all
    /// modes of that axis are kept or not all of its points are filled.
    /// [`Array::index`] knows the input where input and output are of one kind.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    pub fn make_in_place(&self) -> Result<Array<T>> {
        let variant = &self.variants[IN_PLACE + FORWARD];
        self.make(Some(variant.input), Some(variant.output))
    }

    fn make(&self, input: Option<Geometry>, output: Option<Geometry>) -> Result<Array<T>> {
        // An array that is input and output in turn, both of one kind, is seen as the input.
        let sides = [(input, self.recipe.is_real()), (output, self.recipe.has_real_output())];
        let first = |real: bool| sides.iter().filter(|side| side.1 == real).find_map(|side| side.0);
        let (real, complex) = (first(true), first(false));
        let batch = self.recipe.batch;
        let most = [input, output].iter().flatten().map(|geometry| geometry.volume).max().unwrap_or(0);
        let lendable = self.shared && matches!(self.mechanism, Mechanism::SharedMemory);
        let buffer = self.buffer(most * batch, lendable, "an array of a plan")?;
        Ok(Array { buffer, real, complex, batch })
    }

    fn buffer(&self, numbers: usize, lendable: bool, what: &'static str) -> Result<Buffer<T>> {
        match lendable {
            true => shared_buffer(&**self.comm.transport(), numbers, what),
            false => Buffer::new(numbers, what),
        }
    }

    /// A workspace for this plan. Collective; allocates.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    pub fn make_workspace(&self) -> Result<Workspace<T>> {
        let numbers = self.memory.workspace() / size_of::<T>();
        self.buffer(numbers, self.shared, "a workspace").map(Workspace)
    }

    /// What a user should know; see [`Draft::notes`](crate::Draft::notes).
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// This rank's box of the input of [`forward`](Self::forward).
    pub fn input_box(&self) -> Box3 {
        self.recipe.input.boxes()[self.comm.rank()]
    }

    /// This rank's box of the output of [`forward`](Self::forward).
    pub fn output_box(&self) -> Box3 {
        self.recipe.output.boxes()[self.comm.rank()]
    }

    /// Where the input of [`forward`](Self::forward) lies.
    pub fn input_layout(&self) -> &Layout {
        &self.recipe.input
    }

    /// Where the output of [`forward`](Self::forward) lies.
    pub fn output_layout(&self) -> &Layout {
        &self.recipe.output
    }

    /// What the plan does.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// What the plan takes on this rank.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// How long each step of the last transform took on this rank, its tiles
    /// together. Allocates.
    pub fn profile(&self) -> Vec<StepTime> {
        let variant = &self.variants[self.last];
        let mut steps: Vec<(Step, StepTime)> = Vec::new();
        for (step, spell) in variant.steps.iter().zip(&self.spells) {
            let ms = spell.end.duration_since(spell.start).as_secs_f64() * 1e3;
            let (name, bytes, flops) = match *step {
                Step::Barrier => ("wait".into(), 0, 0.0),
                Step::Run { bound, .. } => {
                    let pass = &variant.passes[bound];
                    (pass.name.clone(), pass.bytes, pass.flops)
                }
                Step::Encode { reshape, .. } => (format!("encode {}", variant.reshapes[reshape].0), 0, 0.0),
                Step::Decode { reshape, .. } => (format!("decode {}", variant.reshapes[reshape].0), 0, 0.0),
                Step::Start { reshape, .. } => (variant.reshapes[reshape].0.clone(), 0, 0.0),
                Step::Wait { reshape, .. } => (variant.reshapes[reshape].0.clone(), 0, 0.0),
            };
            let same = steps.iter_mut().find(|(known, _)| match (known, step) {
                (Step::Run { pass: a, .. }, Step::Run { pass: b, .. }) => a == b,
                (
                    Step::Start { reshape: a, .. } | Step::Wait { reshape: a, .. },
                    Step::Start { reshape: b, .. } | Step::Wait { reshape: b, .. },
                ) => a == b,
                (Step::Encode { reshape: a, .. }, Step::Encode { reshape: b, .. }) => a == b,
                (Step::Decode { reshape: a, .. }, Step::Decode { reshape: b, .. }) => a == b,
                _ => false,
            });
            match same {
                Some((_, known)) => {
                    known.ms += ms;
                    known.bytes += bytes;
                    known.flops += flops;
                }
                None => {
                    let moved = match *step {
                        Step::Start { reshape, .. } | Step::Wait { reshape, .. } => {
                            variant.reshapes[reshape].1
                        }
                        _ => bytes,
                    };
                    steps.push((*step, StepTime { name, ms, bytes: moved, flops }));
                }
            }
        }
        steps.into_iter().map(|(_, time)| time).collect()
    }
}
