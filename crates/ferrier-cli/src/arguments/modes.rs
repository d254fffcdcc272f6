//! Options about kinds of transforms and modes to keep.

use std::str::FromStr;

use clap::Args;
use ferrier::{Keep, Kind, Problem};

use super::shape::{Grid, UserShape};
use crate::failure::{Outcome, fail};

/// The kind of each axis, and the modes to keep.
#[derive(Args, Clone, Debug, Default)]
pub struct ModesArgs {
    /// Keep only the lowest modes: 64x64x64, one number per axis, or `all` for all modes of an axis; 64
    /// alone is for every transformed axis
    #[arg(long, value_name = "MODES", conflicts_with = "keep_sphere", allow_negative_numbers = true)]
    pub keep: Option<KeepList>,
    /// Keep only the modes inside a sphere of this radius, in periods over an axis
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub keep_sphere: Option<f64>,
    /// The transform of each axis, such as dct2,c2c,none: one of none, c2c, r2c (at most one axis), dct1
    /// to dct4, dst1 to dst4 (numbered and scaled as in scipy.fft). All none: the array is only redistributed
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
    /// The kinds of the library's axes, if `--kinds` is given.
    ///
    /// # Errors
    /// Another number of kinds than of axes.
    pub fn kinds(&self, shape: &UserShape) -> Outcome<Option<[Kind; 3]>> {
        let Some(kinds) = &self.kinds else { return Ok(None) };
        check_entries("--kinds", kinds.len(), shape)?;
        let mut three = [Kind::Identity; 3];
        three[3 - kinds.len()..].copy_from_slice(kinds);
        Ok(Some(three))
    }

    /// Is it a Fourier transform that keeps all modes?
    pub fn is_plain(&self) -> bool {
        self.kinds.is_none() && self.keeps_all()
    }

    /// Are all modes kept?
    pub fn keeps_all(&self) -> bool {
        self.keep.is_none() && self.keep_sphere.is_none()
    }

    /// The problem with the modes to keep.
    ///
    /// # Errors
    /// Another number of entries than of axes; modes that an axis does not have.
    pub fn apply(&self, shape: &UserShape, mut problem: Problem) -> Outcome<Problem> {
        if let Some(KeepList(list)) = &self.keep {
            let list = if let [one] = list[..] { vec![one; shape.ndim()] } else { list.clone() };
            check_entries("--keep", list.len(), shape)?;
            let mut keep = [Keep::All; 3];
            keep[3 - list.len()..].copy_from_slice(&list);
            // One number for all axes applies to the transformed ones.
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

    /// For a backward transform from fewer modes than all: the lengths in space and the modes in the
    /// file.
    ///
    /// # Errors
    /// Lengths are missing, or too short for the modes.
    pub fn back(
        &self,
        shape: &UserShape,
        kinds: [Kind; 3],
        points: Option<&Grid>,
    ) -> Outcome<Option<([usize; 3], [Keep; 3])>> {
        let Some(points) = points else {
            return match self.keeps_all() {
                true => Ok(None),
                false => fail("a backward transform from kept modes needs --points, the lengths in space"),
            };
        };
        if self.keep.is_some() {
            return fail(
                "in a backward transform the file itself has the number of kept modes: leave out --keep",
            );
        }
        if points.0.len() != shape.ndim() {
            return fail(format!("--points {points}: the array ({shape}) has {} axes", shape.ndim()));
        }
        let mut lengths = [1; 3];
        lengths[3 - points.0.len()..].copy_from_slice(&points.0);
        let keep = std::array::from_fn(|axis| {
            let held = shape.shape()[axis];
            match kinds[axis] {
                kind if held == kind.modes(lengths[axis]) => Keep::All,
                Kind::Real => Keep::Lowest((2 * (held - 1)).max(1)),
                _ => Keep::Lowest(held),
            }
        });
        Ok(Some((lengths, keep)))
    }
}

/// Checks that an option has an entry for each axis.
fn check_entries(option: &str, entries: usize, shape: &UserShape) -> Outcome {
    match entries == shape.ndim() {
        true => Ok(()),
        false => {
            fail(format!("{option} has {entries} entries but the array ({shape}) has {} axes", shape.ndim()))
        }
    }
}

/// Checks that a file has the elements that axes of these kinds need.
///
/// # Errors
/// Complex elements instead of real ones, or real ones instead of complex ones.
pub fn check_file(kinds: [Kind; 3], forward: bool, complex: bool) -> Outcome {
    let halved = kinds.contains(&Kind::Real);
    match (halved, forward, complex) {
        (true, true, true) => fail("r2c takes real numbers forward, the file has complex ones"),
        (true, false, false) => fail("r2c takes complex numbers backward, the file has real ones"),
        _ => Ok(()),
    }
}
