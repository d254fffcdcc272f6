//! Checks of a problem.

use super::definition::Problem;
use crate::error::{Error, Invalid, Result};
use crate::kind::{Kind, Sign, names};
use crate::layout::{Layout, Split};
use crate::modes::Keep;

impl Problem {
    /// Checks everything but the layouts.
    ///
    /// # Errors
    /// [`Error::Problem`] for an axis of length 0, repeated or unknown axes, a halved axis that is not transformed,
    /// incompatible kinds, kept modes or a support that an axis does not have, only one factor of a long axis,
    /// operators without a transform, a batch of 0, arrays that exceed the address space.
    pub fn check(&self) -> Result<()> {
        let fail = |invalid: Invalid| Err(Error::Problem(invalid));
        let [x, y, z] = self.shape;
        if let Some(axis) = (0..3).find(|&a| self.shape[a] == 0) {
            let message = format!("every axis needs at least one point; axis {axis} of {x}x{y}x{z} has none");
            return fail(Invalid::new("shape", message).expected("1 or more points").got(0));
        }
        if let Some(axis) = self.axes.iter().find(|&&axis| axis > 2) {
            let message = format!("axes are 0, 1 and 2; got {axis}");
            return fail(Invalid::new("axes", message).expected("0, 1 or 2").got(axis));
        }
        if let Some(i) = (1..self.axes.len()).find(|&i| self.axes[..i].contains(&self.axes[i])) {
            let message = format!("axis {} is listed twice in {:?}", self.axes[i], self.axes);
            return fail(
                Invalid::new("axes", message).expected("each axis once").got(format!("{:?}", self.axes)),
            );
        }
        if self.real && !self.axes.contains(&self.halved) {
            let (halved, axes) = (self.halved, &self.axes);
            let message = format!(
                "the halved axis {halved} of a real transform must be among the transformed axes {axes:?}"
            );
            return fail(Invalid::new("halved", message).expected(format!("one of {axes:?}")).got(halved));
        }
        self.check_kinds().or_else(fail)?;
        self.check_modes().or_else(fail)?;
        self.check_use().or_else(fail)?;
        if self.batch == 0 {
            let message = "a batch needs at least one array, got 0";
            return fail(Invalid::new("batch", message).expected("1 or more").got(0));
        }
        // Twice the bytes, so that padded strides and offsets stay in range as well.
        let bytes = self
            .shape
            .iter()
            .map(|&n| n.saturating_add(2))
            .chain([self.batch, 32])
            .try_fold(1usize, usize::checked_mul);
        if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
            let message =
                format!("{} arrays of {x}x{y}x{z} are more bytes than can be addressed", self.batch);
            return fail(Invalid::new("shape", message).got(format!("{x}x{y}x{z}")));
        }
        Ok(())
    }

    fn check_kinds(&self) -> std::result::Result<(), Invalid> {
        let kinds = self.kinds();
        let fail = |message: String| Err(Invalid::new("kinds", message).got(names(kinds)));
        let real = kinds.iter().filter(|&&kind| kind == Kind::Real).count();
        if real > 1 {
            return fail(format!("one axis at most can be halved, got {real}: {}", names(kinds)));
        }
        if self.real != (real == 1) {
            return fail(format!("axis {} is to be halved, but the kinds are {}", self.halved, names(kinds)));
        }
        if self.complex_values && kinds.contains(&Kind::Real) {
            return fail(format!("a halved axis takes real values, not complex ones: {}", names(kinds)));
        }
        if self.real_input && self.complex_values {
            return fail("values are either real or complex, not both".into());
        }
        match (0..3).find(|&axis| kinds[axis] == Kind::Dct1 && self.shape[axis] < 2) {
            Some(axis) => fail(format!("cosines of type 1 need at least two points; axis {axis} has one")),
            None => Ok(()),
        }
    }

    fn check_modes(&self) -> std::result::Result<(), Invalid> {
        let kinds = self.kinds();
        if let Some(radii) = self.sphere {
            radii.check(self.shape, kinds)?;
            if self.keep != [Keep::All; 3] {
                let message = format!("a sphere says all about the modes to keep; got {:?} too", self.keep);
                return Err(Invalid::new("keep", message)
                    .expected("[All, All, All]")
                    .got(format!("{:?}", self.keep)));
            }
        }
        for (axis, kind) in kinds.into_iter().enumerate() {
            let n = self.shape[axis];
            self.keep[axis].check(axis, kind, n)?;
            match self.support[axis] {
                Some(_) if kind == Kind::Identity => {
                    let message = format!("axis {axis} is not transformed, so all of it is there");
                    return Err(Invalid::new("support", message).expected("no support"));
                }
                Some((from, to)) if from >= to || to > n => {
                    let message = format!(
                        "the non-zero part of the {n} points of axis {axis} must not be empty or go beyond them, \
                         got {from}..{to}"
                    );
                    let invalid = Invalid::new("support", message).expected(format!("a range within 0..{n}"));
                    return Err(invalid.got(format!("{from}..{to}")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_use(&self) -> std::result::Result<(), Invalid> {
        if self.operators && self.axes.is_empty() {
            let message = "operators act on spectra, but no axis is transformed";
            return Err(Invalid::new("operators", message).expected("at least one transformed axis"));
        }
        if self.operators && self.sign == Sign::Positive {
            let message = "operators are defined by the spectra of e^(-i k x); with the other sign they would act on \
                           mirrored wave numbers: there and back the sign does not matter";
            return Err(Invalid::new("sign", message).expected("the negative sign with operators"));
        }
        if self.long && (self.axes != [1, 2] || self.mixed.is_some()) {
            let message = format!("axes 1 and 2 of a long transform go together; got {:?}", self.axes);
            return Err(Invalid::new("axes", message).expected("[1, 2]").got(format!("{:?}", self.axes)));
        }
        if self.long && (self.keep != [Keep::All; 3] || self.support != [None; 3]) {
            let message = "all points of a long transform are there, and all modes are kept";
            return Err(Invalid::new("keep", message).expected("all modes and points"));
        }
        Ok(())
    }

    /// Checks the strides of input and output against the boxes of all ranks.
    ///
    /// # Errors
    /// [`Error::Problem`] for elements that overlap, arrays that exceed the address space, and strides of an output whose
    /// layout the planner chooses; [`Error::Layout`] as [`layouts`](Self::layouts).
    pub fn check_strides(&self, ranks: usize) -> Result<()> {
        if self.input_strides.is_dense() && self.output_strides.is_dense() {
            return Ok(());
        }
        let (input, output) = self.layouts(ranks)?;
        self.input_strides.check(("input", "input_strides"), &input, self.batch)?;
        match output {
            Some(output) => self.output_strides.check(("output", "output_strides"), &output, self.batch),
            None if self.output_strides.is_dense() => Ok(()),
            None => {
                let message = "the strides of an output need its layout, but the planner is to choose it";
                Err(Error::Problem(
                    Invalid::new("output_strides", message)
                        .expected("an output layout other than unconstrained"),
                ))
            }
        }
    }

    /// The layouts of input and output; `None` for an output that the planner chooses.
    ///
    /// # Errors
    /// [`Error::Layout`] of [`LayoutSpec::layout`](crate::layout::LayoutSpec::layout), prefixed by `input` or `output`.
    pub fn layouts(&self, ranks: usize) -> Result<(Layout, Option<Layout>)> {
        let input = self.input.layout(self.shape(), ranks).map_err(|e| prefix("input", e))?;
        let output = match self.output.split {
            Split::Unconstrained => None,
            _ => Some(self.output.layout(self.spectrum_shape(), ranks).map_err(|e| prefix("output", e))?),
        };
        Ok((input, output))
    }
}

fn prefix(end: &str, error: Error) -> Error {
    match error {
        Error::Layout(invalid) => {
            let message = format!("{end} layout: {}", invalid.message);
            Error::Layout(Invalid { message, ..invalid })
        }
        other => other,
    }
}
