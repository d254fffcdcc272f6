//! The parts of planning that depend on the backend.

use super::agree::{self, Decision, StartChoice};
use super::forecast::{Forecast, mechanism};
use crate::codec::{self, CodecInstance};
use crate::design::design_free;
use crate::exec::Cpu;
use crate::exec::backend::{Backend, Executor};
use crate::exec::cpu::CpuBinder;
use crate::{Comm, Compress, Problem, Real, Recipe, Result};
use ferrier_plan::lowering::EndStrides;
use ferrier_plan::messages::Encoding;
use ferrier_plan::{Designed, Freedom};

type BinderOf<T, B> = <<B as Backend>::Executor<T> as Executor<T>>::Binder;

/// A backend that plans can be made for.
pub trait Target: Backend {
    /// The name that the ranks compare.
    #[doc(hidden)]
    const NAME: &'static str;
    /// Are wisdom and tuning for it?
    #[doc(hidden)]
    const LEARNS: bool;
    /// May a thread of its own make progress on exchanges?
    #[doc(hidden)]
    const PROGRESS_THREAD: bool;
    /// Completes a choice; the result is the same on every rank. Collective.
    #[doc(hidden)]
    fn decide<T: Real>(comm: &Comm, problem: &Problem, start: StartChoice) -> Result<Decision>;
    /// The recipe of a decision.
    #[doc(hidden)]
    fn design<T: Real>(problem: &Problem, decision: &Decision, comm: &Comm) -> Result<Designed>;
    /// What binds the schedules of a recipe. Collective.
    #[doc(hidden)]
    fn binder<T: Real>(device: &Self::Handle, comm: &Comm, recipe: &Recipe) -> Result<BinderOf<T, Self>>;
}

impl Target for Cpu {
    const NAME: &'static str = "cpu";
    const LEARNS: bool = true;
    const PROGRESS_THREAD: bool = true;

    fn decide<T: Real>(comm: &Comm, problem: &Problem, start: StartChoice) -> Result<Decision> {
        agree::decide::<T>(comm, problem, start)
    }

    fn design<T: Real>(problem: &Problem, decision: &Decision, comm: &Comm) -> Result<Designed> {
        let choice = &decision.start.choice;
        let mechanism = mechanism(choice, comm.node_count())?;
        // Without the strides of users: arrays with gaps give the recipe, and with it the bits, of arrays without.
        let forecast = Forecast::of(comm, decision, mechanism, EndStrides::default());
        let coded = forecast.sends() && problem.tolerance.is_some() || choice.codec.is_some();
        let ranks = (comm.size(), &forecast.machine);
        let others = if decision.open_exchange { agree::other_exchanges(comm) } else { Vec::new() };
        let open = decision.open_exchange;
        // Choices of wisdom and of trials have the order that they were measured with.
        let freedom = Freedom::default().exchanges(&others).ranks(open).tiles(open).axes(decision.start.open);
        design_free(problem, choice, T::PRECISION, ranks, &forecast.setting(coded), &freedom)
    }

    fn binder<T: Real>((): &(), comm: &Comm, recipe: &Recipe) -> Result<CpuBinder<T>> {
        let plain = recipe.codec == codec::RAW
            || comm.size() == 1
            || comm.node_count() == 1 && recipe.compress == Compress::BetweenNodes
            || recipe.reshapes() == 0;
        if plain {
            return Ok(CpuBinder::new(comm, recipe, None));
        }
        let instance = CodecInstance::new(&recipe.codec)?;
        let nodes = (recipe.compress == Compress::BetweenNodes).then(|| comm.nodes().to_vec());
        let encoding = encoding(&instance, nodes);
        Ok(CpuBinder::new(comm, recipe, Some((instance, encoding))))
    }
}

/// How messages are encoded with this codec; those inside a node are left alone where `nodes` is `Some`.
pub(super) fn encoding<T: Real>(instance: &CodecInstance<T>, nodes: Option<Vec<usize>>) -> Encoding {
    let codec = instance.codec.clone();
    let varies = !codec.is_fixed();
    Encoding::new(std::sync::Arc::new(move |scalars| codec.max_bytes(scalars)), varies, nodes)
}
