//! Cheap estimates from candidate layouts, before there is a recipe.

use super::build::{PassDomain, PassEnd, pass_shape};
use super::exchange::ExchangeShape;
use super::machine::Machine;
use super::pass::PassShape;
use super::setting::Setting;
use crate::geometry::{Base, Geometry, Piece, width};
use crate::layout::{Box3, Layout};
use crate::recipe::Distribution;
use crate::schedule::AxisTransform;
use ferrier_kernel::Precision;

/// Estimates passes and reshapes between candidate layouts, for one rank: that with the largest box.
#[derive(Clone, Copy, Debug)]
pub struct Estimator<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The placement of the ranks.
    pub setting: &'a Setting<'a>,
    /// Precision of the scalars.
    pub precision: Precision,
    /// Number of arrays.
    pub batch: usize,
}

impl Estimator<'_> {
    /// Seconds of a pass that transforms the lines of `arrive`, in this order along up to three axes, and leaves them
    /// in `leave`: it loads from arrays that are distributed as `from` and stores to arrays that are distributed as
    /// `to`. `from` differs from `arrive`, or `to` from `leave`, where ranks access each other's memory.
    pub fn pass(
        &self,
        transforms: &[AxisTransform],
        [from, arrive]: [&Distribution; 2],
        [leave, to]: [&Distribution; 2],
    ) -> f64 {
        let rank = largest(&arrive.layout);
        self.shape(rank, transforms, [from, arrive], [leave, to]).cost(self.machine).seconds
    }

    /// The shape of that pass on one rank.
    pub fn shape(
        &self,
        rank: usize,
        transforms: &[AxisTransform],
        [from, arrive]: [&Distribution; 2],
        [leave, to]: [&Distribution; 2],
    ) -> PassShape {
        let sources = self.pieces(from, &arrive.layout.boxes()[rank], rank);
        let targets = self.pieces(to, &leave.layout.boxes()[rank], rank);
        let domain = PassDomain {
            rank,
            arrive: arrive.layout.boxes()[rank],
            transforms,
            arrays: self.batch,
            scalar_bytes: self.precision.bytes(),
            in_place: false,
            ranks_on_node: self.setting.busy_on_host(rank, &arrive.layout),
        };
        let from = PassEnd { pieces: &sources, real: arrive.real };
        let to = PassEnd { pieces: &targets, real: leave.real };
        pass_shape(&domain, &from, &to, self.setting, self.machine)
    }

    /// Seconds of an exchange of messages, without the passes before and after it; none if ranks load from each
    /// other's memory.
    pub fn exchange(&self, from: &Layout, to: &Layout, real: bool) -> f64 {
        let element = width(real) * self.precision.bytes() * self.batch;
        let cost = |rank| ExchangeShape::new(from, to, element, rank, self.setting).seconds(self.machine);
        cost(largest(from)).max(cost(largest(to)))
    }

    fn pieces(&self, array: &Distribution, domain: &Box3, rank: usize) -> Vec<Piece> {
        let (boxes, order) = (array.layout.boxes(), array.layout.order());
        let piece = |peer: usize| {
            let region = boxes[peer].intersect(domain);
            let Geometry { strides, batch, .. } = Geometry::dense(boxes[peer], order, array.real);
            (!region.is_empty()).then_some(Piece {
                region,
                rank: peer,
                base: Base::Work,
                offset: 0,
                strides,
                batch,
            })
        };
        // An array that is distributed as the pass is: no other rank has a part of it.
        if boxes[rank].intersect(domain) == *domain {
            return piece(rank).into_iter().collect();
        }
        array.layout.intersections(domain).into_iter().filter_map(|(peer, _)| piece(peer)).collect()
    }
}

/// A rank with the largest box; of equal ones one in the middle.
fn largest(layout: &Layout) -> usize {
    let (boxes, ranks) = (layout.boxes(), layout.ranks());
    let middle = (0..ranks).map(|rank| (rank + ranks / 2) % ranks);
    let larger =
        |best: usize, rank: usize| if boxes[rank].volume() > boxes[best].volume() { rank } else { best };
    middle.reduce(larger).unwrap_or(0)
}
