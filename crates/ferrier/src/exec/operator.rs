//! Operators: pointwise functions of a spectrum, run on blocks of it that are in cache.

use num_complex::Complex;

use crate::Real;

/// A pointwise function of the modes of a spectrum.
///
/// [`Call::apply`](crate::Call::apply) calls it from all threads, with a
/// block of modes at a time, in no particular order; every mode comes exactly
/// once. What it does to a mode must depend on that mode's value, index and
/// array alone: then the bits of the result do not depend on how the work is
/// spread. [`pointwise`] makes one from a closure, [`spectral`](crate::spectral)
/// has those of vector calculus.
pub trait Operator<T: Real>: Sync {
    /// Changes the modes of a block.
    fn apply(&self, modes: &mut Modes<'_, T>);

    /// The same as a formula, which plans on GPUs need; `None` where there is none.
    fn formula(&self) -> Option<Formula<'_, T>> {
        None
    }

    /// Its norm: by how much it may let the norm of a change of the spectrum grow. The largest modulus of a factor, if it
    /// multiplies modes. `None` where it is unknown: then a call has no certificate, and a plan with a tolerance refuses
    /// it; see [`bounded`].
    fn norm(&self) -> Option<f64> {
        None
    }
}

/// An operator whose norm the caller knows; see [`Operator::norm`].
///
/// ```
/// use ferrier::{Complex, Plan, Problem, bounded, pointwise};
/// ferrier::ranks(2).run(|comm| {
///     let problem = Problem::c2c([16, 16, 16]).operators(true).tolerance(1e-4);
///     let mut plan = Plan::<f64>::new(&comm, &problem)?;
///     let (mut field, mut halved) = (plan.make_input()?, plan.make_input()?);
///     field.fill_complex(|_, [i, j, k]| Complex::cis((i + 2 * j * j + 3 * k) as f64));
///     let half = bounded(pointwise(|_, mode: Complex<f64>| mode * 0.5), 0.5);
///     plan.call().operator(&half).apply(&field, &mut halved)?;
///     assert!(plan.certificate().is_some_and(|certificate| certificate.bound() <= 1e-4));
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
pub fn bounded<T: Real, O: Operator<T>>(operator: O, norm: f64) -> impl Operator<T> + use<T, O> {
    Bounded { operator, norm }
}

struct Bounded<O> {
    operator: O,
    norm: f64,
}

impl<T: Real, O: Operator<T>> Operator<T> for Bounded<O> {
    fn apply(&self, modes: &mut Modes<'_, T>) {
        self.operator.apply(modes);
    }

    fn formula(&self) -> Option<Formula<'_, T>> {
        self.operator.formula()
    }

    fn norm(&self) -> Option<f64> {
        Some(self.norm)
    }
}

/// What an operator does to a mode, in words that the compiler of a GPU knows.
/// It is compiled once for each text and kind of plan (about half a second, in
/// the first call); tables and constants may change from call to call.
///
/// ```
/// use ferrier::{Formula, Modes, Operator, Tables};
/// /// Multiplies the modes of array b of a batch by factors[b].
/// struct Each([f64; 4]);
/// impl Operator<f64> for Each {
///     fn apply(&self, modes: &mut Modes<'_, f64>) {
///         for mut run in modes.runs() {
///             let factor = self.0[run.batch()];
///             run.scale(|_| factor);
///         }
///     }
///     fn formula(&self) -> Option<Formula<'_, f64>> {
///         Some(Formula { code: "return z * p[batch];", tables: Tables::None, constants: self.0 })
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Formula<'a, T> {
    /// The body of a function in CUDA C++ that returns what becomes of a mode.
    ///
    /// It has `Pair z`, the mode, with members `x` and `y`; `a`, `b` and `c`, the
    /// entries of the tables of axes 0, 1 and 2 at the mode's index; `int
    /// index[3]`, that index in the spectrum; `int batch`, the array; `p[4]`, the
    /// constants. `REAL` is the type of numbers; pairs can be added, subtracted
    /// and multiplied, by each other and by numbers.
    pub code: &'a str,
    /// A table for each axis.
    pub tables: Tables<'a, T>,
    /// Whatever else it needs.
    pub constants: [T; 4],
}

/// A table for each axis of a spectrum, with an entry for each index; one that
/// is empty stands for zeros.
#[derive(Clone, Copy, Debug)]
pub enum Tables<'a, T> {
    /// There are none: entries are zero.
    None,
    /// Of real numbers.
    Real([&'a [T]; 3]),
    /// Of complex numbers.
    Complex([&'a [Complex<T>]; 3]),
}

impl<T: Real, O: Operator<T> + ?Sized> Operator<T> for &O {
    fn apply(&self, modes: &mut Modes<'_, T>) {
        (**self).apply(modes);
    }

    fn formula(&self) -> Option<Formula<'_, T>> {
        (**self).formula()
    }

    fn norm(&self) -> Option<f64> {
        (**self).norm()
    }
}

/// A block of modes: runs of neighbours along one axis, each at its own index along another.
pub struct Modes<'a, T> {
    pub(super) scalars: &'a mut [T],
    /// Global index of the first mode.
    pub(super) first: [usize; 3],
    pub(super) batch: usize,
    /// Runs follow each other along this axis.
    pub(super) along: usize,
    /// Modes of a run lie side by side along this one.
    pub(super) side: usize,
    /// Numbers from one run to the next.
    pub(super) pitch: usize,
    /// Modes of a run.
    pub(super) len: usize,
    /// Numbers of a mode.
    pub(super) width: usize,
}

impl<T: Real> Modes<'_, T> {
    /// The runs of the block, one by one.
    #[inline]
    pub fn runs(&mut self) -> impl Iterator<Item = ModeRun<'_, T>> {
        let (first, batch, along, axis) = (self.first, self.batch, self.along, self.side);
        let (len, width) = (self.len, self.width);
        self.scalars.chunks_exact_mut(self.pitch).enumerate().map(move |(k, scalars)| {
            let mut first = first;
            first[along] += k;
            ModeRun { scalars: &mut scalars[..len * width], first, batch, axis, width }
        })
    }
}

/// Neighbouring modes along one axis.
pub struct ModeRun<'a, T> {
    scalars: &'a mut [T],
    first: [usize; 3],
    batch: usize,
    axis: usize,
    width: usize,
}

impl<T: Real> ModeRun<'_, T> {
    /// Global index, in the spectrum, of the first mode. For each complex
    /// axis of n points indices are those of `numpy.fft.fftfreq(n)`.
    #[inline]
    pub fn first(&self) -> [usize; 3] {
        self.first
    }

    /// The axis along which the others follow.
    #[inline]
    pub fn axis(&self) -> usize {
        self.axis
    }

    /// Which array of the batch they belong to.
    #[inline]
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// How many modes.
    #[inline]
    pub fn len(&self) -> usize {
        self.scalars.len() / self.width
    }

    /// Are there none? (There never are.)
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.scalars.is_empty()
    }

    /// Are the modes real numbers, as those of cosine and sine transforms are?
    #[inline]
    pub fn is_real(&self) -> bool {
        self.width == 1
    }

    /// The modes of a complex spectrum.
    ///
    /// # Panics
    /// If they are real.
    #[inline]
    pub fn complex(&mut self) -> &mut [Complex<T>] {
        assert!(self.width == 2, "the modes of this spectrum are real numbers");
        // SAFETY: pairs of T are Complex<T>.
        unsafe { std::slice::from_raw_parts_mut(self.scalars.as_mut_ptr().cast(), self.scalars.len() / 2) }
    }

    /// The modes of a real spectrum.
    ///
    /// # Panics
    /// If they are complex.
    #[inline]
    pub fn real(&mut self) -> &mut [T] {
        assert!(self.width == 1, "the modes of this spectrum are complex numbers");
        self.scalars
    }

    /// Multiplies each mode, complex or real, by a real factor.
    #[inline]
    pub fn scale(&mut self, factor: impl Fn(usize) -> T) {
        if self.width == 1 {
            self.scalars.iter_mut().enumerate().for_each(|(i, number)| *number *= factor(i));
            return;
        }
        for (i, mode) in self.complex().iter_mut().enumerate() {
            let factor = factor(i);
            *mode = Complex::new(mode.re * factor, mode.im * factor);
        }
    }

    /// The same, where each mode's factor comes from its entry in a table: a
    /// loop without checks, which compilers turn into vectors.
    #[inline]
    pub(crate) fn scale_by<R: Copy>(&mut self, table: &[R], factor: impl Fn(R) -> T) {
        if self.width == 1 {
            self.scalars.iter_mut().zip(table).for_each(|(number, &entry)| *number *= factor(entry));
            return;
        }
        for (mode, &entry) in self.complex().iter_mut().zip(table) {
            let factor = factor(entry);
            *mode = Complex::new(mode.re * factor, mode.im * factor);
        }
    }
}

/// The operator that replaces each mode of a complex spectrum by `value` of
/// its index and itself.
///
/// ```
/// use ferrier::{LayoutSpec, Plan, Problem};
/// let problem = Problem::c2c([8, 8, 8]).output(LayoutSpec::unconstrained()).operators(true);
/// ferrier::ranks(2).run(|comm| {
///     let mut plan = Plan::<f64>::new(&comm, &problem)?;
///     let mut field = plan.make_input()?;
///     field.fill_complex(|_, [i, _, _]| ferrier::Complex::new(i as f64, 1.0));
///     let mut mean = plan.make_input()?;
///     // Only the mean is left.
///     let keep = ferrier::pointwise(|index, value| if index == [0, 0, 0] { value } else { 0.0.into() });
///     plan.call().operator(&keep).apply(&field, &mut mean)?;
///     assert!(mean.complex().iter().all(|z| (z.re - 3.5).abs() < 1e-12 && (z.im - 1.0).abs() < 1e-12));
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
pub fn pointwise<T, F>(value: F) -> impl Operator<T>
where
    T: Real,
    F: Fn([usize; 3], Complex<T>) -> Complex<T> + Sync,
{
    Pointwise(value)
}

struct Pointwise<F>(F);

impl<T, F> Operator<T> for Pointwise<F>
where
    T: Real,
    F: Fn([usize; 3], Complex<T>) -> Complex<T> + Sync,
{
    fn apply(&self, modes: &mut Modes<'_, T>) {
        for mut run in modes.runs() {
            let (mut index, axis) = (run.first(), run.axis());
            for mode in run.complex() {
                *mode = (self.0)(index, *mode);
                index[axis] += 1;
            }
        }
    }
}
