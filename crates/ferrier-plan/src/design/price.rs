//! Predicted seconds of the parts of a recipe, from the layouts that a search considers.

use crate::cost::{Estimator, ExchangeShape, Machine, Setting};
use crate::geometry::width;
use crate::layout::Layout;
use crate::messages::Mechanism;
use crate::recipe::Distribution;
use crate::schedule::AxisTransform;
use ferrier_kernel::Precision;

/// What a search compares layouts by: a machine and how its ranks are placed.
#[derive(Clone, Copy)]
pub(super) struct Prices<'a> {
    pub machine: &'a Machine,
    pub setting: &'a Setting<'a>,
    pub precision: Precision,
    pub batch: usize,
}

/// An array in a candidate layout, and a rank with the largest box.
#[derive(Clone)]
pub(super) struct Placed {
    pub array: Distribution,
    pub busiest: usize,
}

impl Placed {
    pub fn new(layout: Layout, real: bool) -> Placed {
        let busiest = busiest(&layout);
        Placed::with_busiest(layout, real, busiest)
    }

    pub fn with_busiest(layout: Layout, real: bool, busiest: usize) -> Placed {
        Placed { array: Distribution { layout, real }, busiest }
    }
}

/// One pass of a candidate recipe.
pub(super) struct CandidatePass<'a> {
    pub transforms: &'a [AxisTransform],
    /// The array that the previous pass left, or the input.
    pub before: &'a Placed,
    /// Whether that is the input.
    pub first: bool,
    /// In this layout the lines are transformed.
    pub arrive: &'a Placed,
    pub leave: &'a Placed,
    /// The output of the recipe, for its last pass.
    pub output: Option<&'a Placed>,
}

impl Prices<'_> {
    /// Whether ranks load from each other's memory.
    pub fn shares(&self) -> bool {
        self.setting.mechanism == Mechanism::SharedMemory
    }

    /// Seconds of a pass with the exchange before it, and the one after it if it is the last.
    pub fn pass(&self, pass: &CandidatePass<'_>) -> f64 {
        let CandidatePass { before, arrive, leave, .. } = *pass;
        let moves = !same_boxes(&before.array, &arrive.array);
        // Own arrays and those of other ranks are loaded where they are; messages lie as the receiver needs them.
        let from = if self.shares() || !moves { before } else { arrive };
        let to = match pass.output {
            Some(output) if self.shares() || same_boxes(&output.array, &leave.array) => output,
            _ => leave,
        };
        let mut seconds = self.transforms(pass.transforms, [from, arrive], [leave, to]);
        if moves {
            seconds += self.exchange(before, arrive);
            if pass.first && !self.shares() {
                seconds += self.copy(before);
            }
        }
        if let Some(output) = pass.output.filter(|output| !same_boxes(&output.array, &leave.array)) {
            seconds += self.exchange(leave, output);
            if !self.shares() {
                seconds += self.copy(output);
            }
        }
        seconds
    }

    /// Seconds to bring an array to another layout without a transform.
    pub fn reshape(&self, before: &Placed, after: &Placed) -> f64 {
        match same_boxes(&before.array, &after.array) {
            true => 0.0,
            false => self.exchange(before, after) + self.copy(after),
        }
    }

    fn transforms(&self, transforms: &[AxisTransform], from: [&Placed; 2], to: [&Placed; 2]) -> f64 {
        let estimator = Estimator {
            machine: self.machine,
            setting: self.setting,
            precision: self.precision,
            batch: self.batch,
        };
        let rank = from[1].busiest;
        estimator
            .shape(rank, transforms, from.map(|end| &end.array), to.map(|end| &end.array))
            .cost(self.machine)
            .seconds
    }

    fn copy(&self, placed: &Placed) -> f64 {
        self.transforms(&[], [placed; 2], [placed; 2])
    }

    /// Seconds between two passes: of messages, or of a barrier where ranks share memory.
    fn exchange(&self, from: &Placed, to: &Placed) -> f64 {
        if self.shares() {
            return self.machine.constants.barrier_s * (from.array.layout.ranks().max(2) as f64).log2();
        }
        let element = width(from.array.real) * self.precision.bytes() * self.batch;
        let (before, after) = (&from.array.layout, &to.array.layout);
        let of = |rank| ExchangeShape::new(before, after, element, rank, self.setting).seconds(self.machine);
        of(from.busiest).max(of(to.busiest))
    }
}

fn same_boxes(one: &Distribution, other: &Distribution) -> bool {
    one.layout.has_boxes_of(&other.layout)
}

/// A rank with the largest box; of equal ones one in the middle, which has most neighbours.
pub(super) fn busiest(layout: &Layout) -> usize {
    let (boxes, ranks) = (layout.boxes(), layout.ranks());
    let middle = (0..ranks).map(|rank| (rank + ranks / 2) % ranks);
    middle
        .reduce(|best, rank| if boxes[rank].volume() > boxes[best].volume() { rank } else { best })
        .unwrap_or(0)
}
