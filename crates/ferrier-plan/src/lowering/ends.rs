//! The memory of inputs and outputs, as their users have them.

use crate::geometry::Geometry;
use crate::problem::Problem;
use crate::recipe::{Distribution, Recipe};
use crate::schedule::Direction;
use crate::strides::StridesSpec;

/// Where the elements of input and output lie, on every rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndStrides([StridesSpec; 2]);

impl EndStrides {
    /// Those of `forward`.
    pub fn new(problem: &Problem) -> EndStrides {
        EndStrides([problem.input_strides.clone(), problem.output_strides.clone()])
    }

    /// Those of a direction, from those of `forward`.
    pub fn of(&self, direction: Direction) -> EndStrides {
        let [input, output] = self.0.clone();
        EndStrides(match direction {
            Direction::Forward => [input, output],
            Direction::Backward => [output, input],
            Direction::RoundTrip => [input.clone(), input],
        })
    }

    /// Whether no array has gaps.
    pub fn is_dense(&self) -> bool {
        self.0.iter().all(StridesSpec::is_dense)
    }

    /// Whether `rank`'s input (`end` 0) or output (1) has strides of its user.
    pub fn is_strided(&self, end: usize, rank: usize) -> bool {
        self.0[end].of(rank).is_some()
    }

    /// The memory of `rank`'s box of the input (`end` 0) or output (1). In place, real rows of an array without gaps
    /// are padded along `halved`.
    pub fn geometry(
        &self,
        end: usize,
        array: &Distribution,
        rank: usize,
        (in_place, halved): (bool, Option<usize>),
    ) -> Geometry {
        let (part, order) = (array.layout.boxes()[rank], array.layout.order());
        match self.0[end].of(rank) {
            Some(strides) => Geometry::strided(part, strides, array.real),
            None if in_place && array.real && padded_rows(array, halved) => {
                Geometry::padded_real(part, order)
            }
            None => Geometry::dense(part, order, array.real),
        }
    }

    /// Whether input and output of in-place calls of `forward` and `backward` are
    /// [alike](Geometry::is_alike) on every rank. Arrays without gaps are, if their distributions are.
    pub fn are_alike(&self, recipe: &Recipe) -> bool {
        let halved = recipe.padded_axis();
        let ends = [(&recipe.input, recipe.is_real()), (&recipe.output, recipe.has_real_output())]
            .map(|(layout, real)| Distribution { layout: layout.clone(), real });
        let alike = |rank: usize| {
            let [one, two] = [0, 1].map(|end| self.geometry(end, &ends[end], rank, (true, halved)));
            one.is_alike(&two, recipe.batch, halved)
        };
        self.is_dense() || (0..recipe.ranks()).all(alike)
    }
}

/// Whether rows run along the halved axis, unsplit, so that they can be padded.
fn padded_rows(array: &Distribution, halved: Option<usize>) -> bool {
    halved.is_some_and(|axis| array.layout.order().fastest() == axis && array.layout.is_whole(axis))
}
