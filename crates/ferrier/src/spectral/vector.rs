//! Gradient, divergence and curl.

use std::fmt;

use num_complex::Complex;

use super::wave_numbers::WaveNumbers;
use crate::exec::Rows;
use crate::{Array, Comm, Data, DataMut, LayoutSpec, Modes, Operator, Plan, Planner, Problem, Real, Result};

/// Vector calculus on a periodic box: gradient, divergence and curl of fields
/// with the input layout of a plan.
///
/// Every field is transformed once; derivatives, signs and sums are fused with
/// the backward transforms.
///
/// ```
/// use ferrier::{Problem, spectral::Calculus};
/// use std::f64::consts::TAU;
/// ferrier::ranks(2).run(|comm| {
///     let mut calculus = Calculus::<f64>::new(&comm, &Problem::r2c([8, 8, 8]), [TAU; 3])?;
///     let x = |i: usize| TAU * i as f64 / 8.0;
///     let mut f = calculus.plan().make_input()?;
///     f.fill_real(|_, [i, j, _]| x(i).sin() * x(j).cos());
///     let mut slopes = calculus.fields()?;
///     calculus.gradient(&f, &mut slopes)?;
///     let mut exact = calculus.plan().make_input()?;
///     exact.fill_real(|_, [i, j, _]| x(i).cos() * x(j).cos());
///     let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-14;
///     assert!(slopes[0].real().iter().zip(exact.real()).all(near));
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
pub struct Calculus<T: Real> {
    plan: Plan<T>,
    spectra: [Array<T>; 3],
    /// Wave numbers of first derivatives.
    odd: [Vec<T>; 3],
    /// The axis of the spectrum along which the wave numbers of each axis vary.
    places: [usize; 3],
    waves: WaveNumbers,
}

impl<T: Real> fmt::Debug for Calculus<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calculus").field("recipe", self.plan.recipe()).finish_non_exhaustive()
    }
}

impl<T: Real> Calculus<T> {
    /// Operators on fields of this problem in a box with sides of these lengths.
    /// The output layout and the batch of the problem are ignored. Collective; allocates.
    ///
    /// # Errors
    /// Those of [`Planner::draft`] and [`WaveNumbers::new`]; axes that are not periodic.
    pub fn new(comm: &Comm, problem: &Problem, lengths: [f64; 3]) -> Result<Self> {
        let problem = problem.clone().output(LayoutSpec::unconstrained()).batch(1).operators(true);
        let plan = Planner::new(&problem).draft::<T>(comm)?.build()?;
        let waves = WaveNumbers::new(plan.recipe(), lengths)?;
        let odd = [waves.odd(0)?, waves.odd(1)?, waves.odd(2)?];
        let spectra = [plan.make_output()?, plan.make_output()?, plan.make_output()?];
        let places = [0, 1, 2].map(|axis| waves.place(axis));
        Ok(Calculus { plan, spectra, odd, places, waves })
    }

    /// The plan: arrays for fields, and operators on them.
    pub fn plan(&mut self) -> &mut Plan<T> {
        &mut self.plan
    }

    /// The wave numbers.
    pub fn waves(&self) -> &WaveNumbers {
        &self.waves
    }

    /// Three arrays for the components of a vector field. Collective; allocates.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub fn fields(&self) -> Result<[Array<T>; 3]> {
        Ok([self.plan.make_input()?, self.plan.make_input()?, self.plan.make_input()?])
    }

    /// The gradient of a field. Collective; does not allocate.
    ///
    /// # Errors
    /// As [`Call::apply`](crate::Call::apply).
    pub fn gradient<I, O>(&mut self, field: &I, gradient: &mut [O; 3]) -> Result<()>
    where
        I: Data<T> + ?Sized,
        O: DataMut<T>,
    {
        self.plan.forward(field, &mut self.spectra[0])?;
        for (axis, component) in gradient.iter_mut().enumerate() {
            let sum = DerivativeSum {
                odd: &self.odd,
                places: self.places,
                first: Some((axis, false)),
                others: &[],
            };
            self.plan.call().operator(&sum).backward(&self.spectra[0], component)?;
        }
        Ok(())
    }

    /// The divergence of a vector field. Collective; does not allocate.
    ///
    /// # Errors
    /// As [`Call::apply`](crate::Call::apply).
    pub fn divergence<I, O>(&mut self, field: &[I; 3], divergence: &mut O) -> Result<()>
    where
        I: Data<T>,
        O: DataMut<T> + ?Sized,
    {
        self.forward(field)?;
        let [x, y, z] = &self.spectra;
        let others = [(1, false, y), (2, false, z)];
        let sum =
            DerivativeSum { odd: &self.odd, places: self.places, first: Some((0, false)), others: &others };
        self.plan.call().operator(&sum).backward(x, divergence)
    }

    /// The curl of a vector field. Collective; does not allocate.
    ///
    /// # Errors
    /// As [`Call::apply`](crate::Call::apply).
    pub fn curl<I, O>(&mut self, field: &[I; 3], curl: &mut [O; 3]) -> Result<()>
    where
        I: Data<T>,
        O: DataMut<T>,
    {
        self.forward(field)?;
        for (a, out) in curl.iter_mut().enumerate() {
            // (curl u)_a = d_b u_c - d_c u_b
            let (b, c) = ((a + 1) % 3, (a + 2) % 3);
            let others = [(c, true, &self.spectra[b])];
            let sum = DerivativeSum {
                odd: &self.odd,
                places: self.places,
                first: Some((b, false)),
                others: &others,
            };
            self.plan.call().operator(&sum).backward(&self.spectra[c], out)?;
        }
        Ok(())
    }

    fn forward<I: Data<T>>(&mut self, field: &[I; 3]) -> Result<()> {
        for (component, spectrum) in field.iter().zip(&mut self.spectra) {
            self.plan.forward(component, spectrum)?;
        }
        Ok(())
    }
}

/// A sum of first derivatives of the spectrum being transformed and of others.
/// Each term has an axis, a sign (is it negative?) and a spectrum.
struct DerivativeSum<'a, T: Real> {
    odd: &'a [Vec<T>; 3],
    places: [usize; 3],
    first: Option<(usize, bool)>,
    others: &'a [(usize, bool, &'a Array<T>)],
}

impl<T: Real> Operator<T> for DerivativeSum<'_, T> {
    fn apply(&self, modes: &mut Modes<'_, T>) {
        for mut run in modes.runs() {
            let (first, axis) = (run.first(), run.axis());
            let wave = |of: usize, negative: bool, i: usize| {
                let place = self.places[of];
                let k = self.odd[of][first[place] + if place == axis { i } else { 0 }];
                if negative { -k } else { k }
            };
            let turn = |z: Complex<T>, k: T| Complex::new(-(z.im * k), z.re * k);
            let batch = run.batch();
            let values = run.complex();
            if let Some((of, negative)) = self.first {
                values.iter_mut().enumerate().for_each(|(i, z)| *z = turn(*z, wave(of, negative, i)));
            }
            for (of, negative, spectrum) in self.others {
                let rows = Rows::new(spectrum, batch, first, axis);
                for (i, z) in values.iter_mut().enumerate() {
                    *z = *z + turn(rows.get(i), wave(*of, *negative, i));
                }
            }
        }
    }
}
