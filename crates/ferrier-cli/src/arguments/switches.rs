//! Decisions of the planner that users may take themselves; heFFTe has most of them as options.

use std::fmt;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use ferrier::{Choice, Decomposition, LayoutSpec, Order};

use super::shape::UserShape;
use crate::failure::{Failure, Outcome, fail};

/// Slabs or pencils.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DecompositionName {
    /// One axis is split: fewer reshapes, more messages each
    Slab,
    /// Two axes are split: more reshapes, each within a row or column of the rank grid
    Pencil,
}

/// Yes, no, or as the planner decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum YesNoAuto {
    /// Always
    Yes,
    /// Never
    No,
    /// As the planner decides
    Auto,
}

/// A number of parts for each of two axes: `2x4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair(pub [usize; 2]);

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<usize>> = text.split('x').map(|part| part.parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[p, q]) if q > 0 => Ok(Pair([p, q])),
            _ => Err(format!("`{text}` is not a grid of two numbers, such as 2x4")),
        }
    }
}

/// Axes as digits: `210`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisDigits(Vec<usize>);

impl FromStr for AxisDigits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits: Option<Vec<usize>> =
            text.chars().map(|digit| digit.to_digit(3).map(|axis| axis as usize)).collect();
        match digits {
            Some(axes) if !axes.is_empty() => Ok(AxisDigits(axes)),
            _ => Err(format!("`{text}` is not a list of axes as digits, such as 210")),
        }
    }
}

impl fmt::Display for AxisDigits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|axis| write!(f, "{axis}"))
    }
}

impl AxisDigits {
    /// The library's axes.
    fn axes(&self, shape: &UserShape, what: &str) -> Outcome<Vec<usize>> {
        self.0.iter().map(|&axis| shape.axis(axis as isize, what)).collect()
    }

    /// A memory order of all axes, the slowest first.
    fn order(&self, shape: &UserShape, what: &str) -> Outcome<Order> {
        let own = self.axes(shape, what)?;
        let mut all: Vec<usize> = (0..3 - shape.ndim()).collect();
        all.extend(own);
        let order = <[usize; 3]>::try_from(all).ok().and_then(|axes| Order::new(axes).ok());
        order.ok_or_else(|| {
            Failure::new(format!("{what} {self}: every axis of shape {shape} must be listed once"))
        })
    }
}

/// Decisions of the planner that users may take.
#[derive(Args, Clone, Debug, Default)]
pub struct SwitchArgs {
    /// Slabs or pencils between the first and the last reshape [default: as the planner predicts]
    #[arg(long, value_name = "WORD", ignore_case = true)]
    pub decomposition: Option<DecompositionName>,
    /// Rank grid between the first and the last reshape: parts of the two split axes, such as 2x4
    #[arg(long, value_name = "PxQ")]
    pub grid: Option<Pair>,
    /// The order in which axes are transformed, as digits, such as 210
    #[arg(long, value_name = "AXES")]
    pub axis_order: Option<AxisDigits>,
    /// Transform two axes in one pass over memory, plane by plane
    #[arg(long, value_name = "WORD")]
    pub fuse: Option<YesNoAuto>,
    /// Store arrays in another memory order before an axis is transformed, so that local transforms are contiguous (yes),
    /// or keep the memory order, so that some are strided (no)
    #[arg(long, value_name = "WORD")]
    pub reorder: Option<YesNoAuto>,
    /// Copy strided rows of the next block side by side while the current block is transformed
    #[arg(long, value_name = "WORD")]
    pub staging: Option<YesNoAuto>,
    /// Store past the caches where lines do not return to where they were loaded from
    #[arg(long, value_name = "WORD")]
    pub stream: Option<YesNoAuto>,
    /// Ranks that hold data between the first and the last reshape [default: all]
    #[arg(long, value_name = "N")]
    pub inner_ranks: Option<usize>,
    /// Pretend that in-process ranks are on so many nodes: ranks of different nodes send messages. Without --wire there
    /// is no network between them
    #[arg(long, value_name = "N")]
    pub nodes: Option<usize>,
}

impl SwitchArgs {
    /// The choice with these decisions.
    ///
    /// # Errors
    /// Axes that the shape does not have; numbers of zero.
    pub fn apply(&self, choice: Choice, shape: &UserShape) -> Outcome<Choice> {
        if self.inner_ranks == Some(0) || self.nodes == Some(0) {
            return fail("--inner-ranks and --nodes must be at least 1");
        }
        let decided = |word: Option<YesNoAuto>| match word {
            Some(YesNoAuto::Yes) => Some(true),
            Some(YesNoAuto::No) => Some(false),
            Some(YesNoAuto::Auto) | None => None,
        };
        let choice = choice.fuse(decided(self.fuse)).reorder(decided(self.reorder));
        let mut choice = choice.staging(decided(self.staging)).stream(decided(self.stream));
        choice.decomposition = self.decomposition.map(|name| match name {
            DecompositionName::Slab => Decomposition::Slab,
            DecompositionName::Pencil => Decomposition::Pencil,
        });
        (choice.grid, choice.ranks) = (self.grid.map(|pair| pair.0), self.inner_ranks);
        choice.axes = self.axis_order.as_ref().map(|axes| axes.axes(shape, "--axis-order")).transpose()?;
        Ok(choice)
    }
}

/// Memory orders of input and output.
#[derive(Args, Clone, Debug, Default)]
pub struct OrderArgs {
    /// Memory order of the input, slowest axis first, as digits [default: 012]
    #[arg(long, value_name = "AXES")]
    pub in_order: Option<AxisDigits>,
    /// Memory order of the output, slowest axis first, as digits; 210 is the transposed array [default: 012]
    #[arg(long, value_name = "AXES")]
    pub out_order: Option<AxisDigits>,
}

impl OrderArgs {
    /// The layouts of input and output with their memory orders.
    ///
    /// # Errors
    /// Orders that do not list every axis once.
    pub fn orders(&self, shape: &UserShape, [inward, outward]: [LayoutSpec; 2]) -> Outcome<[LayoutSpec; 2]> {
        let with = |spec: LayoutSpec, axes: &Option<AxisDigits>, what| -> Outcome<LayoutSpec> {
            Ok(match axes {
                Some(axes) => spec.order(axes.order(shape, what)?),
                None => spec,
            })
        };
        Ok([with(inward, &self.in_order, "--in-order")?, with(outward, &self.out_order, "--out-order")?])
    }
}
