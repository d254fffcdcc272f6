//! Kinds of axes and modes to keep, as the options say.

use std::str::FromStr;

use clap::Args;
use ferrier::{Array, Box3, Keep, Kind, Problem, Real};
use num_complex::Complex;

use crate::failure::{Failure, Outcome, fail};
use crate::shape::{Frame, Grid};

/// What each axis goes through, and which modes are kept.
#[derive(Args, Clone, Debug, Default)]
pub struct ModesArgs {
    /// Keep only the lowest modes: 64x64x64, one number per axis, `all` for an axis of which all are
    /// kept; 64 is short for the same of every axis
    #[arg(long, value_name = "MODES", conflicts_with = "keep_sphere", allow_negative_numbers = true)]
    pub keep: Option<KeepList>,
    /// Keep only the modes inside a sphere of this radius (frequencies in whole turns over an axis)
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub keep_sphere: Option<f64>,
    /// What each axis goes through, such as dct2,c2c,none: one of none, c2c, r2c (one axis at most), dct1
    /// to dct4, dst1 to dst4 (as scipy.fft numbers and scales them)
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["axes", "halved"])]
    pub kinds: Option<Vec<Kind>>,
}

/// Modes to keep, one entry per axis or one for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeepList(Vec<Keep>);

impl std::fmt::Display for KeepList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let entry = |keep: &Keep| match keep {
            Keep::Lowest(m) => m.to_string(),
            _ => "all".into(),
        };
        f.write_str(&self.0.iter().map(entry).collect::<Vec<_>>().join("x"))
    }
}

impl FromStr for KeepList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let entry = |word: &str| match word {
            "all" => Ok(Keep::All),
            word => word.parse().map(Keep::Lowest).map_err(|_| {
                format!("`{text}`: modes to keep are written 64x64x64 or 64xallx64, one entry per axis")
            }),
        };
        text.split('x').map(entry).collect::<Result<_, _>>().map(KeepList)
    }
}

impl ModesArgs {
    /// The kinds of the library's axes, if they were asked for.
    ///
    /// # Errors
    /// Another number of kinds than of axes.
    pub fn kinds(&self, frame: &Frame) -> Outcome<Option<[Kind; 3]>> {
        let Some(kinds) = &self.kinds else { return Ok(None) };
        if kinds.len() != frame.ndim() {
            return fail(format!(
                "--kinds has {} entries but the array ({frame}) has {} axes",
                kinds.len(),
                frame.ndim()
            ));
        }
        let mut three = [Kind::Identity; 3];
        three[3 - kinds.len()..].copy_from_slice(kinds);
        Ok(Some(three))
    }

    /// Is it a Fourier transform of which all modes are kept?
    pub fn is_plain(&self) -> bool {
        self.kinds.is_none() && self.keeps_all()
    }

    /// Are all modes kept?
    pub fn keeps_all(&self) -> bool {
        self.keep.is_none() && self.keep_sphere.is_none()
    }

    /// The problem with the modes that it keeps.
    ///
    /// # Errors
    /// Another number of entries than of axes; modes that an axis does not have.
    pub fn apply(&self, frame: &Frame, mut problem: Problem) -> Outcome<Problem> {
        if let Some(KeepList(list)) = &self.keep {
            let list = if let [one] = list[..] { vec![one; frame.ndim()] } else { list.clone() };
            if list.len() != frame.ndim() {
                return fail(format!(
                    "--keep has {} entries but the array ({frame}) has {} axes",
                    list.len(),
                    frame.ndim()
                ));
            }
            let mut keep = [Keep::All; 3];
            keep[3 - list.len()..].copy_from_slice(&list);
            // One number for all axes means those that are transformed.
            for (keep, kind) in keep.iter_mut().zip(problem.kinds()) {
                if kind == Kind::Identity && self.keep.as_ref().is_some_and(|keep| keep.0.len() == 1) {
                    *keep = Keep::All;
                }
            }
            problem = problem.keep(keep);
        }
        if let Some(radius) = self.keep_sphere {
            problem = problem.keep_sphere(radius);
        }
        problem.check()?;
        Ok(problem)
    }

    /// Going back: how long the axes are in space, where the file holds less
    /// than all modes, and the modes that it holds.
    ///
    /// # Errors
    /// Lengths are missing, or too short for the modes.
    pub fn back(
        &self,
        frame: &Frame,
        kinds: [Kind; 3],
        points: Option<&Grid>,
    ) -> Outcome<Option<([usize; 3], [Keep; 3])>> {
        let Some(points) = points else {
            return match self.keeps_all() {
                true => Ok(None),
                false => fail("going back from modes that were kept takes --points, the lengths in space"),
            };
        };
        if self.keep.is_some() {
            return fail("going back, the file itself says how many modes were kept: leave out --keep");
        }
        if points.0.len() != frame.ndim() {
            return fail(format!("--points {points}: the array ({frame}) has {} axes", frame.ndim()));
        }
        let mut lengths = [1; 3];
        lengths[3 - points.0.len()..].copy_from_slice(&points.0);
        let keep = std::array::from_fn(|axis| {
            let held = frame.shape()[axis];
            match kinds[axis] {
                kind if held == kind.modes(lengths[axis]) => Keep::All,
                Kind::Real => Keep::Lowest((2 * (held - 1)).max(1)),
                _ => Keep::Lowest(held),
            }
        });
        Ok(Some((lengths, keep)))
    }
}

/// The columns of a sphere inside the box of modes around it.
pub struct Cube {
    /// Modes of the box.
    pub shape: [usize; 3],
    /// Places of the columns.
    columns: Vec<[usize; 2]>,
}

impl Cube {
    /// The box around the sphere of a problem, if it has one.
    pub fn new(problem: &Problem) -> Option<Cube> {
        let columns = problem.columns();
        let shape = std::array::from_fn(|axis| problem.kept_modes(axis).len());
        (!columns.is_empty()).then_some(Cube { shape, columns })
    }

    /// A rank's planes of the box, where it has these of the columns.
    pub fn part(&self, own: Box3) -> Box3 {
        match own.is_empty() {
            true => own,
            false => Box3::new([own.lo[0], 0, 0], [own.hi[0], self.shape[1], self.shape[2]]),
        }
    }

    /// Elements of a plane of the box.
    fn plane(&self) -> usize {
        self.shape[1] * self.shape[2]
    }

    /// Where a column meets a plane of the box.
    fn place(&self, column: usize) -> usize {
        self.columns[column][0] * self.shape[2] + self.columns[column][1]
    }

    /// The box that these columns are in, zeros elsewhere.
    pub fn filled<T: Real>(&self, columns: &Array<T>) -> Vec<Complex<T>> {
        let planes = columns.complex().chunks_exact(self.columns.len());
        let mut all = vec![Complex::new(T::zero(), T::zero()); planes.len() * self.plane()];
        for (plane, values) in all.chunks_exact_mut(self.plane()).zip(planes) {
            values.iter().enumerate().for_each(|(column, value)| plane[self.place(column)] = *value);
        }
        all
    }

    /// The way back: what is outside the columns is left out.
    pub fn take<T: Real>(&self, all: &[Complex<T>], columns: &mut Array<T>) {
        let planes = columns.complex_mut().chunks_exact_mut(self.columns.len());
        for (plane, values) in all.chunks_exact(self.plane()).zip(planes) {
            values.iter_mut().enumerate().for_each(|(column, value)| *value = plane[self.place(column)]);
        }
    }
}

/// Is this the kind of file that axes of these kinds take?
///
/// # Errors
/// Complex numbers where real ones are needed, or the other way around.
pub fn check_file(kinds: [Kind; 3], forward: bool, complex: bool, name: &str) -> Outcome {
    let halved = kinds.contains(&Kind::Real);
    match (halved, forward, complex) {
        (true, true, true) => {
            Err(Failure::new(format!("r2c takes real numbers forward, the file has {name}")))
        }
        (true, false, false) => {
            Err(Failure::new(format!("r2c takes complex numbers backward, the file has {name}")))
        }
        _ => Ok(()),
    }
}
