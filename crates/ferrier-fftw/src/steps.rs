//! From arguments of FFTW's planner to problems of Ferrier.
//!
//! FFTW's arrays are `(n0, n1, .., howmany)` with axis 0 in blocks over the ranks, or transposed `(n1, n0, ..)` with axis 1
//! in blocks; the real array of a real transform has rows of 2 (n/2 + 1). Up to three axes are one problem, whose strides
//! say where components and padding lie. Of more axes the first two are one problem, and each other axis is one of
//! this rank alone.

use ferrier::{ArrayStrides, Box3, Kind, LayoutSpec, Order, Problem, Scale};

use crate::distribution::{Blocks, Group, factors};

/// What is transformed.
#[derive(Clone, Debug)]
pub struct Transform {
    /// Lengths of the axes, in real space.
    pub n: Vec<usize>,
    /// One for each axis; a real axis is the last one.
    pub kinds: Vec<Kind>,
    /// Components, which are interleaved.
    pub howmany: usize,
    /// From the spectrum to real space.
    pub backward: bool,
}

/// How input or output is distributed.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Axis 1 comes first in memory and is the one in blocks.
    pub transposed: bool,
    /// The blocks of the first axis in memory; 0: FFTW's default.
    pub block: usize,
}

/// A call of a plan.
#[derive(Clone, Debug)]
pub struct Part {
    /// A transform, or a redistribution of real numbers.
    pub problem: Problem,
    pub backward: bool,
    /// Of this rank alone; else over all ranks.
    pub local: bool,
    /// Scalars from the first to the last one of source and target on this rank.
    pub scalars: [usize; 2],
}

impl Transform {
    fn is_real(&self) -> bool {
        self.kinds.last() == Some(&Kind::Real)
    }

    fn has_r2r(&self) -> bool {
        self.kinds.iter().any(|kind| kind.r2r().is_some())
    }

    fn modes(&self) -> Vec<usize> {
        self.n.iter().zip(&self.kinds).map(|(&n, kind)| kind.modes(n)).collect()
    }

    /// The calls that make up this transform. All but the first one are in place.
    ///
    /// # Errors
    /// Says what FFTW does and this library does not.
    pub fn steps(&self, ends: [End; 2], group: Group) -> Result<Vec<Part>, String> {
        if self.n.len() > 3 {
            return self.folded(ends, group);
        }
        let physical = ends[usize::from(self.backward)];
        if self.is_real() && self.n.len() < 3 && (physical.transposed || self.n.len() == 1) {
            return Err("a real array that is distributed along its halved axis".into());
        }
        Ok(vec![self.distributed(ends, group)?])
    }

    /// All axes at once, over all ranks.
    fn distributed(&self, ends: [End; 2], group: Group) -> Result<Part, String> {
        let skip = 3 - self.n.len();
        let fill = |n: &[usize]| std::array::from_fn(|axis| if axis < skip { 1 } else { n[axis - skip] });
        let shapes = [fill(&self.n), fill(&self.modes())];
        let kinds =
            std::array::from_fn(|axis| if axis < skip { Kind::Identity } else { self.kinds[axis - skip] });
        let [physical, spectral] = if self.backward { [ends[1], ends[0]] } else { ends };
        let [before, after] = [(physical, 0), (spectral, 1)].map(|(end, side)| {
            let real = self.has_r2r() || (side == 0 && self.is_real());
            let padded = real && self.is_real();
            EndLayout::new(shapes[side], skip, end, group, (padded, self.howmany))
                .map(|side| (side, if real { 1 } else { 2 }))
        });
        let ((before, width), (after, spectral_width)) = (before?, after?);
        let mut problem = Problem::mixed(shapes[0], kinds)
            .scale_backward(Scale::Unscaled)
            .batch(self.howmany)
            .input(before.layout)
            .output(after.layout);
        let part = |side: &Box3, strides: &Option<ArrayStrides>, width| match strides {
            Some(strides) => strides.len(side, self.howmany) * width,
            None => side.volume() * width,
        };
        let mut scalars =
            [part(&before.own, &before.strides, width), part(&after.own, &after.strides, spectral_width)];
        if let Some(strides) = before.strides {
            problem = problem.input_strides(strides);
        }
        if let Some(strides) = after.strides {
            problem = problem.output_strides(strides);
        }
        if self.backward {
            scalars.reverse();
        }
        Ok(Part { problem, backward: self.backward, local: false, scalars })
    }

    /// The first two axes over all ranks, and each other axis on this rank.
    fn folded(&self, ends: [End; 2], group: Group) -> Result<Vec<Part>, String> {
        let modes = self.modes();
        let rest: usize = modes[2..].iter().product::<usize>() * self.howmany;
        let outer = Transform {
            n: vec![self.n[0], self.n[1], rest],
            kinds: vec![self.kinds[0], self.kinds[1], Kind::Identity],
            howmany: 1,
            backward: self.backward,
        };
        let shared = outer.distributed(ends, group)?;
        // A backward real transform ends with the real axis.
        let real_last = self.is_real() && self.backward;
        let end = ends[usize::from(real_last)];
        let first = [self.n[0], self.n[1]];
        let split = Blocks::new(first[usize::from(end.transposed)], end.block, group.ranks);
        let rows = split.of(group.rank).0 * first[usize::from(!end.transposed)];
        let mut inner: Vec<Part> = (2..self.n.len())
            .map(|axis| {
                let lead: usize = rows * self.n[2..axis].iter().product::<usize>();
                let tail: usize = modes[axis + 1..].iter().product::<usize>() * self.howmany;
                self.local(axis, lead, tail)
            })
            .filter(|step| step.scalars[0] > 0)
            .collect();
        if self.is_real() {
            // Forward: the real axis first, so that the others find a spectrum.
            inner.reverse();
        }
        if real_last {
            inner.reverse();
        }
        Ok(if real_last { [vec![shared], inner].concat() } else { [inner, vec![shared]].concat() })
    }

    /// One axis of this rank's array: `lead` times `n` times `tail` elements.
    fn local(&self, axis: usize, lead: usize, tail: usize) -> Part {
        let (n, kind) = (self.n[axis], self.kinds[axis]);
        let unscaled = |problem: Problem| problem.scale_backward(Scale::Unscaled);
        if kind != Kind::Real {
            let problem = Problem::mixed([lead, n, tail], [Kind::Identity, kind, Kind::Identity]);
            let width = if kind.r2r().is_some() { 1 } else { 2 };
            let scalars = [lead * n * tail * width; 2];
            return Part { problem: unscaled(problem), backward: self.backward, local: true, scalars };
        }
        let modes = kind.modes(n);
        let strides = |row: usize| ArrayStrides::new([lead * row * tail, row * tail, tail]).batch(1);
        let problem = Problem::mixed([1, lead, n], [Kind::Identity, Kind::Identity, Kind::Real])
            .batch(tail)
            .input_strides(strides(modes * 2))
            .output_strides(strides(modes));
        let rows = lead.saturating_sub(1) * modes * 2;
        let mut scalars = if lead == 0 { [0; 2] } else { [(rows + n) * tail, lead * modes * tail * 2] };
        if self.backward {
            scalars.reverse();
        }
        Part { problem: unscaled(problem), backward: self.backward, local: true, scalars }
    }
}

/// A complex line over all ranks, as a matrix of n1 x n2: point j is element (j / n2, j % n2), mode k is element
/// (k % n1, k / n1). In natural order the input of `forward` is in blocks of whole rows and its output in blocks of whole
/// columns; scrambled arrays are the other way round. `None` where the ranks have plain blocks of the line.
pub fn line(n: usize, backward: bool, scrambled: [bool; 2], group: Group) -> Option<Part> {
    let [n1, n2] = factors(n, 1, group.ranks)?;
    let shape = [1, n1, n2];
    let side = |rows: bool| {
        let end = End { transposed: !rows, block: 0 };
        EndLayout::new(shape, 1, end, group, (false, 1)).ok()
    };
    let [before, after] = if backward { [scrambled[1], scrambled[0]] } else { scrambled };
    let (before, after) = (side(!before)?, side(after)?);
    let mut scalars = [before.own.volume() * 2, after.own.volume() * 2];
    if backward {
        scalars.reverse();
    }
    let problem =
        Problem::c2c_1d(n).input(before.layout).output(after.layout).scale_backward(Scale::Unscaled);
    Some(Part { problem, backward, local: false, scalars })
}

/// A matrix of n0 x n1 rows of `howmany` numbers in blocks of axis 0 becomes one in blocks of axis 1, in memory as
/// `(n1, n0)`. `kept`: whether input and output are in memory the other way round.
///
/// # Errors
/// Where the ranks do not have room for an axis.
pub fn transpose(
    n: [usize; 2],
    howmany: usize,
    blocks: [usize; 2],
    kept: [bool; 2],
    group: Group,
) -> Result<Part, String> {
    let shape = [n[0], n[1], howmany];
    let memory = |transposed: bool| if transposed { [1, 0, 2] } else { [0, 1, 2] };
    let before = EndLayout::split(shape, memory(kept[0]), (0, blocks[0]), group, (false, 1))?;
    let after = EndLayout::split(shape, memory(!kept[1]), (1, blocks[1]), group, (false, 1))?;
    let scalars = [before.own.volume(), after.own.volume()];
    let problem = Problem::redistribute(shape).input(before.layout).output(after.layout);
    Ok(Part { problem, backward: false, local: false, scalars })
}

/// One side of a problem on all ranks.
struct EndLayout {
    layout: LayoutSpec,
    own: Box3,
    strides: Option<ArrayStrides>,
}

impl EndLayout {
    /// Axes before `skip` have one point.
    fn new(
        shape: [usize; 3],
        skip: usize,
        end: End,
        group: Group,
        components: (bool, usize),
    ) -> Result<EndLayout, String> {
        let mut memory = [0, 1, 2];
        if end.transposed && skip < 2 {
            memory.swap(skip, skip + 1);
        }
        EndLayout::split(shape, memory, (memory[skip], end.block), group, components)
    }

    /// One axis in blocks, in this memory order, slowest axis first. `padded`: rows are real and have room for their
    /// spectra.
    fn split(
        shape: [usize; 3],
        memory: [usize; 3],
        (axis, block): (usize, usize),
        group: Group,
        (padded, howmany): (bool, usize),
    ) -> Result<EndLayout, String> {
        let blocks = Blocks::new(shape[axis], block, group.ranks);
        if !blocks.fit(group.ranks) {
            return Err(format!(
                "{} ranks with blocks of {} cannot hold an axis of {}",
                group.ranks, blocks.block, blocks.n
            ));
        }
        let boxes: Vec<Box3> = (0..group.ranks).map(|rank| block_box(shape, axis, blocks.of(rank))).collect();
        let own = boxes[group.rank];
        let order = Order::new(memory).map_err(|error| error.to_string())?;
        let strides = (padded || howmany > 1).then(|| {
            let mut extents = own.shape();
            if padded {
                extents[2] = (shape[2] / 2 + 1) * 2;
            }
            ArrayStrides::new(order.strides(extents).map(|stride| stride * howmany)).batch(1)
        });
        Ok(EndLayout { layout: LayoutSpec::boxes(boxes).order(order), own, strides })
    }
}

fn block_box(shape: [usize; 3], split: usize, (len, start): (usize, usize)) -> Box3 {
    let (mut lo, mut hi) = ([0; 3], shape);
    (lo[split], hi[split]) = (start, start + len);
    if len == 0 { Box3::EMPTY } else { Box3::new(lo, hi) }
}
