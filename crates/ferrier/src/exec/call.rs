//! Calls of a plan: what they are made of, and the checks of their arguments.

use std::fmt;
use std::time::Instant;

use super::array::Workspace;
use super::backend::{Backend, Executor, VariantOf};
use super::cpu::Cpu;
use super::data::{Input, Output, Span};
use super::field_table::FieldTable;
use super::operator::Operator;
use super::plan::Plan;
use super::variant::{BACKWARD, FORWARD, IN_PLACE, OPERATED, ROUND_TRIP};
use crate::{Error, Real, Result};
use ferrier_plan::geometry::{Geometry, width};

impl<T: Real, B: Backend> Plan<T, B> {
    /// Transforms `input` to `output`; the input is unchanged. Collective; allocates nothing.
    ///
    /// On a GPU the call enqueues its work on the plan's stream and returns; errors of the GPU that occur later are
    /// returned by `synchronize`.
    ///
    /// # Errors
    /// [`Error::Array`] where an array is not the one the plan was made for (the other ranks' calls fail then); an
    /// error on every rank where one fails or leaves. When a call returns an error or unwinds, no exchange is in
    /// flight.
    pub fn forward<I, O>(&mut self, input: &I, output: &mut O) -> Result<()>
    where
        I: Input<T, B> + ?Sized,
        O: Output<T, B> + ?Sized,
    {
        self.call().forward(input, output)
    }

    /// Transforms `input`, laid out as the output of [`forward`](Self::forward), back; the input is unchanged.
    /// Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn backward<I, O>(&mut self, input: &I, output: &mut O) -> Result<()>
    where
        I: Input<T, B> + ?Sized,
        O: Output<T, B> + ?Sized,
    {
        self.call().backward(input, output)
    }

    /// A call that is more than [`forward`](Self::forward) or [`backward`](Self::backward): in place, with an
    /// operator, a scale or a workspace of the caller's.
    ///
    /// ```
    /// use ferrier::{Complex, Plan, Problem, pointwise};
    /// ferrier::ranks(2).run(|comm| {
    ///     let mut plan = Plan::<f64>::new(&comm, &Problem::c2c([8, 8, 8]).operators(true))?;
    ///     let mut wave = plan.make_in_place()?;
    ///     wave.fill_complex(|_, [i, _, _]| Complex::new(i as f64, 0.0));
    ///     plan.call().scale(0.5).forward_in_place(&mut wave)?;
    ///     plan.call().backward_in_place(&mut wave)?;
    ///     // Forward, each mode through an operator, and back, in as few passes over memory as possible.
    ///     plan.call().operator(&pointwise(|_, mode| mode * 2.0)).apply_in_place(&mut wave)?;
    ///     if let Some(at) = wave.index(0, [5, 0, 0]) {
    ///         assert!((wave.complex()[at].re - 5.0).abs() < 1e-12);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), ferrier::Error>(())
    /// ```
    pub fn call(&mut self) -> Call<'_, T, B> {
        Call { plan: self, workspace: None, operator: None, scale: 1.0 }
    }
}

/// A call of a plan, made by [`Plan::call`]. Its last methods ([`forward`](Self::forward),
/// [`backward`](Self::backward), [`apply`](Self::apply) and those in place) run it; they are collective and allocate
/// nothing, but where a GPU compiles a formula or a scale for the first time.
#[must_use = "a call does nothing until one of its methods that take arrays runs it"]
pub struct Call<'a, T: Real, B: Backend = Cpu> {
    plan: &'a mut Plan<T, B>,
    /// Address and bytes.
    workspace: Option<(usize, usize)>,
    operator: Option<&'a dyn Operator<T>>,
    scale: f64,
}

impl<T: Real, B: Backend> fmt::Debug for Call<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("plan", &self.plan).field("scale", &self.scale).finish_non_exhaustive()
    }
}

impl<'a, T: Real> Call<'a, T> {
    /// Uses this workspace instead of the plan's. The last methods return [`Error::Array`] where it is too small.
    pub fn workspace(mut self, workspace: &'a mut Workspace<T>) -> Self {
        self.workspace = Some(workspace.address());
        self
    }
}

impl<'a, T: Real, B: Backend> Call<'a, T, B> {
    /// Sends each mode through this operator: as it is stored by [`forward`](Self::forward), as it is loaded by
    /// [`backward`](Self::backward), between the two in [`apply`](Self::apply). The last methods return
    /// [`Error::Choice`] for a plan of a problem without [`operators`](crate::Problem::operators) and, on a GPU, for
    /// an operator without a [`formula`](Operator::formula).
    ///
    /// Several fields can be made from one spectrum so, or one from several (an operator may read other arrays).
    pub fn operator<F: Operator<T>>(mut self, operator: &'a F) -> Self {
        self.operator = Some(operator);
        self
    }

    /// Multiplies the result by this factor, besides the scale of the problem. The same on every rank.
    pub fn scale(mut self, factor: f64) -> Self {
        self.scale = factor;
        self
    }

    /// Transforms `input` to `output`; the input is unchanged.
    ///
    /// # Errors
    /// As [`Plan::forward`], and as the parts of the call say.
    pub fn forward<I, O>(self, input: &I, output: &mut O) -> Result<()>
    where
        I: Input<T, B> + ?Sized,
        O: Output<T, B> + ?Sized,
    {
        let kind = if self.operator.is_some() { OPERATED } else { 0 };
        self.out_of_place(kind + FORWARD, input, output)
    }

    /// Transforms `input`, laid out as the output of [`forward`](Self::forward), back; the input is unchanged.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn backward<I, O>(self, input: &I, output: &mut O) -> Result<()>
    where
        I: Input<T, B> + ?Sized,
        O: Output<T, B> + ?Sized,
    {
        let kind = if self.operator.is_some() { OPERATED } else { 0 };
        self.out_of_place(kind + BACKWARD, input, output)
    }

    /// Transforms an array in place; see [`Plan::make_in_place`] for its length and layout.
    ///
    /// # Errors
    /// As [`forward`](Self::forward); [`Error::Choice`] where there is an operator.
    pub fn forward_in_place<A: Output<T, B> + ?Sized>(self, array: &mut A) -> Result<()> {
        self.without_operator()?.in_place(IN_PLACE + FORWARD, array)
    }

    /// Transforms a spectrum back in place.
    ///
    /// # Errors
    /// As [`forward_in_place`](Self::forward_in_place).
    pub fn backward_in_place<A: Output<T, B> + ?Sized>(self, array: &mut A) -> Result<()> {
        self.without_operator()?.in_place(IN_PLACE + BACKWARD, array)
    }

    /// Transforms `input` forward, sends each mode through the operator, and transforms back to `output`, which is
    /// laid out as the input; the input is unchanged.
    ///
    /// The spectrum never leaves the caches: the last axis is transformed, the operator applied and the axis
    /// transformed back in one pass over memory, wherever that axis is whole. So it costs less than
    /// [`forward`](Self::forward) and [`backward`](Self::backward), and the output layout of the problem does not
    /// matter. The result is that of these two, with the operator between them, to the last bit.
    ///
    /// # Errors
    /// As [`forward`](Self::forward); [`Error::Choice`] where there is no operator.
    pub fn apply<I, O>(self, input: &I, output: &mut O) -> Result<()>
    where
        I: Input<T, B> + ?Sized,
        O: Output<T, B> + ?Sized,
    {
        self.with_operator()?.out_of_place(ROUND_TRIP, input, output)
    }

    /// [`apply`](Self::apply) to an array of [`Plan::make_in_place`].
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_in_place<A: Output<T, B> + ?Sized>(self, array: &mut A) -> Result<()> {
        self.with_operator()?.in_place(ROUND_TRIP + 1, array)
    }

    fn with_operator(self) -> Result<Self> {
        match self.operator {
            Some(_) => Ok(self),
            None => Err(Error::choice("operator", "`apply` needs an operator: `plan.call().operator(..)`")),
        }
    }

    fn without_operator(self) -> Result<Self> {
        match self.operator {
            None => Ok(self),
            Some(_) => Err(Error::choice(
                "operator",
                "transforms in place take no operator; `apply_in_place`, `forward` and `backward` do",
            )),
        }
    }

    fn out_of_place<I, O>(self, kind: usize, input: &I, output: &mut O) -> Result<()>
    where
        I: Input<T, B> + ?Sized,
        O: Output<T, B> + ?Sized,
    {
        self.observed(kind, |call| {
            let access = call.plan.executor.access();
            let [mut sources, mut targets] = std::mem::take(&mut call.plan.state.fields);
            // Each is taken once: what is checked is what is used, whatever the caller's types do.
            let outcome = input.with_span(&access, &mut sources, |source, sources| {
                output.with_span_mut(&access, &mut targets, |target, targets| {
                    let variant = &call.plan.variants[kind];
                    let checked = call
                        .check(("input", 0), &variant.input, variant, &source)
                        .and_then(|()| call.check(("output", 1), &variant.output, variant, &target));
                    let (checked, [input, output]) =
                        call.addresses(checked, [(&source, sources), (&target, targets)]);
                    // SAFETY: lengths were checked, both arrays are borrowed for the call.
                    unsafe { call.run(kind, checked, input, output) }
                })
            });
            call.plan.state.fields = [sources, targets];
            outcome
        })
    }

    fn in_place<A: Output<T, B> + ?Sized>(self, kind: usize, array: &mut A) -> Result<()> {
        self.observed(kind, |call| {
            let access = call.plan.executor.access();
            let [mut fields, other] = std::mem::take(&mut call.plan.state.fields);
            let outcome = array.with_span_mut(&access, &mut fields, |span, fields| {
                let batch = call.plan.recipe.batch;
                let (arrays, scalars) = span.fields.map_or((batch, span.scalars), |list| (1, list.least));
                let needed = call.plan.scalars_in_place(kind, arrays);
                let checked = call.check_count("array", &span).and_then(|()| match scalars >= needed {
                    true => call.check_alignment("array", &span),
                    false => {
                        let needed = format!("{needed} scalars (a complex element is two)");
                        let expected = format!("at least {needed} for a transform in place");
                        Err(call.wrong("array", expected, scalars))
                    }
                });
                let (checked, [address]) = call.addresses(checked, [(&span, fields)]);
                // SAFETY: the length was checked, the array is borrowed for the call.
                unsafe { call.run(kind, checked, address, address) }
            });
            call.plan.state.fields = [fields, other];
            outcome
        })
    }

    /// The addresses of arrays that were checked, or of the lists of them.
    fn addresses<const N: usize>(
        &mut self,
        mut checked: Result<()>,
        arrays: [(&Span, &FieldTable); N],
    ) -> (Result<()>, [usize; N]) {
        let mut addresses = [0; N];
        for (end, (span, fields)) in arrays.into_iter().enumerate() {
            addresses[end] = span.start;
            if span.fields.is_some() && checked.is_ok() {
                match self.plan.executor.list(end, fields) {
                    Ok(address) => addresses[end] = address,
                    Err(error) => checked = Err(error),
                }
            }
        }
        (checked, addresses)
    }

    /// Makes a call, observed if there is an observer and the call is a plain one. Collective.
    fn observed(mut self, kind: usize, call: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.operator.is_some() && !self.plan.recipe.operators {
            // The same on every rank: no other rank waits for this one.
            return Err(Error::choice(
                "operators",
                "this plan takes no operators: make it from a problem with `operators(true)`",
            ));
        }
        let plain = self.workspace.is_none() && self.operator.is_none();
        let Some(mut observer) = self.plan.observer.take_if(|_| plain) else { return call(&mut self) };
        if !observer.before(self.plan)? {
            return call(&mut self);
        }
        let start = Instant::now();
        call(&mut self)?;
        observer.after(self.plan, kind, start.elapsed())?;
        self.plan.observer = Some(observer);
        Ok(())
    }

    /// # Safety
    /// If `checked` is `Ok`, the arrays are as long as the variant of this kind says. Both are borrowed for the call.
    unsafe fn run(&mut self, kind: usize, checked: Result<()>, input: usize, output: usize) -> Result<()> {
        let (operator, scale) = (self.operator, self.scale);
        let checked = checked.and_then(|()| self.work_address());
        let work = self.plan.or_fail(checked)?;
        // SAFETY: this function's contract.
        unsafe { self.plan.execute(kind, [input, output, work], operator, scale) }
    }

    /// Checks the kind and length of an array.
    fn check(
        &self,
        (name, end): (&'static str, usize),
        geometry: &Geometry,
        variant: &VariantOf<T, B::Executor<T>>,
        span: &Span,
    ) -> Result<()> {
        let (real, strided) = (variant.real[end], variant.strided[end]);
        let batch = self.plan.recipe.batch;
        let word = |real: bool| if real { "real" } else { "complex" };
        if span.is_real.is_some_and(|is_real| is_real != real) {
            return Err(self.wrong(name, word(real), word(!real)));
        }
        self.check_count(name, span)?;
        // Arrays that have memory of their own are checked one by one.
        let (batch, least, most) =
            span.fields.map_or((batch, span.scalars, span.scalars), |list| (1, list.least, list.most));
        let needed = geometry.scalars(batch);
        if least < needed || most > needed && !strided {
            let scalars = if least < needed { least } else { most };
            let (elements, width) = (needed / width(real), width(real));
            let (word, part) = (word(real), geometry.part);
            let expected = match strided {
                false => format!("{elements} {word} elements (its box is {part}, times {batch} arrays)"),
                true => format!(
                    "at least {elements} {word} elements (its box is {part} with the strides {:?} from {} on, times \
                     {batch} arrays {} apart: {} ends outside)",
                    geometry.strides.map(|stride| stride / width),
                    geometry.start / width,
                    geometry.batch / width,
                    side_outside(geometry, batch, scalars)
                ),
            };
            return Err(self.wrong(name, expected, scalars / width));
        }
        self.check_alignment(name, span)
    }

    /// Checks the number of arrays that have memory of their own.
    fn check_count(&self, name: &'static str, span: &Span) -> Result<()> {
        let batch = self.plan.recipe.batch;
        match span.fields {
            Some(list) if list.count != batch => {
                Err(self.wrong(name, format!("{batch} arrays, the batch of the plan"), list.count))
            }
            _ => Ok(()),
        }
    }

    fn check_alignment(&self, name: &'static str, span: &Span) -> Result<()> {
        let alignment = self.plan.executor.alignment();
        match span.start.is_multiple_of(alignment) {
            true => Ok(()),
            false => {
                let expected = format!("at a multiple of {alignment} bytes");
                Err(self.wrong(name, expected, format_args!("{:#x}", span.start)))
            }
        }
    }

    /// The error of an array of this rank that is not as expected.
    fn wrong(&self, name: &'static str, expected: impl Into<String>, got: impl fmt::Display) -> Error {
        Error::array(name, self.plan.comm.rank(), expected, got.to_string())
    }

    fn work_address(&self) -> Result<usize> {
        let needed = self.plan.memory.workspace();
        match (self.workspace, self.plan.executor.workspace()) {
            (Some((address, bytes)), _) if bytes >= needed => Ok(address),
            (Some((_, bytes)), _) => Err(self.wrong("workspace", format!("at least {needed} bytes"), bytes)),
            (None, Some(address)) => Ok(address),
            (None, None) => {
                let expected = "passed by `plan.call().workspace(..)` to a plan that was built without one";
                Err(self.wrong("workspace", expected, "none"))
            }
        }
    }
}

/// The axis, or the batch, along which an array of so many scalars is too short.
fn side_outside(geometry: &Geometry, batch: usize, scalars: usize) -> String {
    let shape = geometry.part.shape();
    let mut sides =
        [0, 1, 2].map(|axis| (geometry.strides[axis] * (shape[axis].max(1) - 1), Some(axis))).to_vec();
    sides.push((geometry.batch * (batch.max(1) - 1), None));
    sides.sort_unstable();
    // The first side whose last index is outside by itself, else the longest.
    let outside = sides.iter().find(|(extent, _)| geometry.start + extent >= scalars).or(sides.last());
    outside.and_then(|(_, axis)| *axis).map_or("the batch".into(), |axis| format!("axis {axis}"))
}
