//! Random redistributions and ghost cells, checked against plain indexing. Every rank derives the same scenario.
#![allow(dead_code, reason = "the tests and the launched program use their own parts of this")]

use std::fmt::Debug;

use ferrier::{
    ArrayStrides, Box3, Choice, Comm, Complex, Element, GhostSum, Ghosts, Halo, LayoutSpec, Order, Problem,
    Redistribution, Result, exchange,
};
use ferrier_test::Rng;

/// An element type under test.
pub trait Sample: Element + PartialEq + Debug {
    /// A value that depends on all bits of `seed`.
    fn of(seed: u64) -> Self;
}

macro_rules! samples {
    ($($name:ty: $seed:ident => $value:expr),* $(,)?) => {
        $(impl Sample for $name {
            fn of($seed: u64) -> Self {
                $value
            }
        })*
    };
}

samples! {
    u8: seed => (seed ^ seed >> 17) as u8,
    u16: seed => seed as u16,
    i32: seed => seed as i32,
    f32: seed => seed as f32,
    f64: seed => seed as f64,
    Complex<f64>: seed => Complex::new(seed as f64, -(seed as f64)),
    [u8; 3]: seed => [seed as u8, (seed >> 8) as u8, 7],
    [f32; 3]: seed => [seed as f32, 1.5, -(seed as f32)],
    [u64; 8]: seed => std::array::from_fn(|i| seed.wrapping_mul(i as u64 + 1)),
}

/// A value for each element of each field, and of each repetition.
pub fn value<E: Sample>(round: usize, field: usize, index: [usize; 3]) -> E {
    let at = (index[0] * 1009 + index[1]) * 1013 + index[2];
    E::of((at * 31 + field * 7 + round) as u64)
}

/// What lies around arrays and must not change.
pub fn canary<E: Sample>() -> E {
    E::of(0xfeed_beef)
}

/// An array with canaries on both sides.
struct Guarded<E> {
    all: Vec<E>,
}

const GUARD: usize = 9;

impl<E: Sample> Guarded<E> {
    fn new(len: usize) -> Self {
        Guarded { all: vec![canary(); len + 2 * GUARD] }
    }

    fn check(&self) {
        let (low, high) = (&self.all[..GUARD], &self.all[self.all.len() - GUARD..]);
        assert!(low.iter().chain(high).all(|e| *e == canary()), "elements outside of an array changed");
    }
}

impl<E> AsMut<[E]> for Guarded<E> {
    fn as_mut(&mut self) -> &mut [E] {
        let end = self.all.len() - GUARD;
        &mut self.all[GUARD..end]
    }
}

pub fn indices(part: Box3) -> impl Iterator<Item = [usize; 3]> {
    (part.lo[0]..part.hi[0]).flat_map(move |i| {
        (part.lo[1]..part.hi[1]).flat_map(move |j| (part.lo[2]..part.hi[2]).map(move |k| [i, j, k]))
    })
}

pub fn offset(part: &Box3, order: Order, index: [usize; 3]) -> usize {
    let strides = order.strides(part.shape());
    (0..3).map(|a| (index[a] - part.lo[a]) * strides[a]).sum()
}

/// Any layout: a grid, or boxes by repeated cuts, some of them empty.
pub fn layout(rng: &mut Rng, shape: [usize; 3], ranks: usize) -> LayoutSpec {
    let axis = rng.below(3);
    let spec = match rng.below(5) {
        0 => LayoutSpec::bricks(),
        1 => LayoutSpec::slabs(axis),
        2 => LayoutSpec::pencils(axis),
        _ => {
            let mut boxes = vec![Box3::whole(shape)];
            while boxes.len() < ranks {
                let at = rng.below(boxes.len());
                let (part, axis) = (boxes[at], rng.below(3));
                if part.shape()[axis] < 2 || rng.below(10) == 0 {
                    boxes.push(Box3::EMPTY);
                    continue;
                }
                let cut = part.lo[axis] + 1 + rng.below(part.shape()[axis] - 1);
                let mut other = part;
                (boxes[at].hi[axis], other.lo[axis]) = (cut, cut);
                boxes.push(other);
            }
            LayoutSpec::boxes(boxes)
        }
    };
    spec.order(*rng.pick(&Order::ALL))
}

/// A case as every rank derives it from its number.
pub struct Scenario {
    shape: [usize; 3],
    layouts: [LayoutSpec; 2],
    fields: usize,
    exchange: Option<&'static str>,
    element: usize,
    widths: [[usize; 2]; 3],
    periodic: [bool; 3],
    faces_only: bool,
    threads: usize,
    /// Arrays of redistributions have gaps.
    strided: bool,
    /// With arrays of the plan, by start and finish.
    made: bool,
    flies: bool,
}

macro_rules! with_element {
    ($self:ident, $method:ident, $comm:ident) => {
        match $self.element {
            0 => $self.$method::<u8>($comm),
            1 => $self.$method::<u16>($comm),
            2 => $self.$method::<i32>($comm),
            3 => $self.$method::<f64>($comm),
            4 => $self.$method::<Complex<f64>>($comm),
            5 => $self.$method::<[u8; 3]>($comm),
            6 => $self.$method::<[f32; 3]>($comm),
            _ => $self.$method::<[u64; 8]>($comm),
        }
    };
}

impl Scenario {
    pub fn new(seed: u64, comm: &Comm) -> Scenario {
        let mut rng = Rng::new(seed);
        let shape = std::array::from_fn(|_| 1 + rng.below(14));
        let names = exchange::EXCHANGES.iter().map(|entry| entry.name);
        let mut exchanges: Vec<_> =
            names.filter(|name| comm.node_count() == 1 || *name != "direct").map(Some).collect();
        exchanges.extend([None; 3]);
        Scenario {
            shape,
            layouts: [0, 1].map(|_| layout(&mut rng, shape, comm.size())),
            fields: 1 + rng.below(3),
            exchange: *rng.pick(&exchanges),
            element: rng.below(8),
            widths: std::array::from_fn(|_| [rng.below(4), rng.below(4)]),
            periodic: std::array::from_fn(|_| rng.below(2) == 0),
            faces_only: rng.below(3) == 0,
            threads: comm.threads(),
            strided: rng.below(3) == 0,
            made: rng.below(2) == 0,
            flies: rng.below(2) == 0,
        }
    }

    /// Whether the exchange was named and shares memory.
    pub fn shares_by_name(&self) -> bool {
        self.exchange.is_some_and(|name| ["direct", "hierarchical"].contains(&name))
    }

    pub fn redistribute(&self, comm: &Comm) -> Result<()> {
        with_element!(self, redistribute_elements, comm)
    }

    pub fn fill_ghosts(&self, comm: &Comm) -> Result<()> {
        with_element!(self, fill_ghosts_of, comm)
    }

    /// The strides of a rank's array, which has gaps, or none; where an element of a field lies; and the length.
    fn array(&self, end: usize, comm: &Comm) -> Result<(Option<ArrayStrides>, ArrayStrides, Box3, usize)> {
        let spec = &self.layouts[end];
        let part = spec.layout(self.shape, comm.size())?.boxes()[comm.rank()];
        let gaps = self.widths.map(|[low, high]| if self.strided { [low, high] } else { [0; 2] });
        let outer = std::array::from_fn(|a| part.shape()[a] + gaps[a][0] + gaps[a][1]);
        let strides = ArrayStrides::inside(outer, gaps.map(|[low, _]| low), spec.order);
        let len = match self.strided {
            true => outer.iter().product::<usize>() * self.fields,
            false => part.volume() * self.fields,
        };
        Ok((self.strided.then_some(strides), strides, part, len))
    }

    fn redistribute_elements<E: Sample>(&self, comm: &Comm) -> Result<()> {
        let [input, output] = self.layouts.clone();
        let mut problem = Problem::redistribute(self.shape).input(input).output(output).batch(self.fields);
        let [from, to] = [self.array(0, comm)?, self.array(1, comm)?];
        if let (Some(input), Some(output)) = (from.0, to.0) {
            problem = problem.input_strides(input).output_strides(output);
        }
        let mut choice = Choice::new().threads(Some(self.threads));
        choice.exchange = self.exchange.map(Into::into);
        let mut plan = Redistribution::<E>::with(comm, &problem, &choice)?;
        assert_eq!([plan.input_box(), plan.output_box()], [from.2, to.2]);
        let place = |strides: &ArrayStrides, part: &Box3, field: usize, index: [usize; 3]| -> usize {
            let inside: usize = (0..3).map(|a| (index[a] - part.lo[a]) * strides.axes[a]).sum();
            strides.offset + inside + field * strides.batch.unwrap_or(0)
        };
        for round in 0..3 {
            let source = |field: usize, index: [usize; 3]| value::<E>(round, field, index);
            let fill = |array: &mut [E]| {
                for field in 0..self.fields {
                    for index in indices(from.2) {
                        array[place(&from.1, &from.2, field, index)] = source(field, index);
                    }
                }
            };
            // Elements between those of the box are not checked in place, where they are elements of the input.
            let check = |array: &[E], gaps: bool| {
                let mut expected = if gaps { vec![canary(); array.len()] } else { array.to_vec() };
                for field in 0..self.fields {
                    for index in indices(to.2) {
                        expected[place(&to.1, &to.2, field, index)] = source(field, index);
                    }
                }
                assert_eq!(array, expected);
            };
            if self.flies {
                let mut array = Guarded::new(from.3.max(to.3));
                fill(array.as_mut());
                plan.run_in_place(array.as_mut())?;
                check(array.as_mut(), false);
                array.check();
            } else if self.made {
                let (mut input, mut output) = (plan.make_input()?, plan.make_output()?);
                fill(&mut input);
                output.fill(canary());
                plan.run(&input, &mut output)?;
                check(&output, true);
            } else {
                let [mut input, mut output] = [Guarded::new(from.3), Guarded::new(to.3)];
                fill(input.as_mut());
                plan.run(input.as_mut(), output.as_mut())?;
                check(output.as_mut(), true);
                output.check();
            }
        }
        Ok(())
    }

    fn ghosts(&self) -> Ghosts {
        let ghosts = Ghosts::widths(self.widths).periodic(self.periodic).fields(self.fields);
        let ghosts = if self.faces_only { ghosts.faces_only() } else { ghosts };
        match self.exchange {
            Some(name) => ghosts.exchange(name),
            None => ghosts,
        }
    }

    /// The global indices of a rank's box and of the cells around it.
    fn padded(&self, own: Box3) -> Vec<[isize; 3]> {
        if own.is_empty() {
            return Vec::new();
        }
        let room: [usize; 3] =
            std::array::from_fn(|a| own.shape()[a] + self.widths[a][0] + self.widths[a][1]);
        let shift = |index: [usize; 3]| {
            std::array::from_fn(|a| (index[a] + own.lo[a]) as isize - self.widths[a][0] as isize)
        };
        indices(Box3::whole(room)).map(shift).collect()
    }

    /// The owned cell that a cell of a rank's array is a copy of: the cell itself in its box, `None` for cells that no
    /// exchange fills.
    fn owner(&self, own: Box3, at: [isize; 3]) -> Option<[usize; 3]> {
        let outside = |a: usize| at[a] < own.lo[a] as isize || at[a] >= own.hi[a] as isize;
        if self.faces_only && (0..3).filter(|&a| outside(a)).count() > 1 {
            return None;
        }
        let mut index = [0; 3];
        for a in 0..3 {
            let n = self.shape[a] as isize;
            let wrapped = if self.periodic[a] { at[a].rem_euclid(n) } else { at[a] };
            index[a] = usize::try_from(wrapped).ok().filter(|&at| at < self.shape[a])?;
        }
        Some(index)
    }

    fn fill_ghosts_of<E: Sample>(&self, comm: &Comm) -> Result<()> {
        let comm = comm.clone().with_threads(self.threads);
        let mut halo = Halo::<E>::new(&comm, self.shape, &self.layouts[0], &self.ghosts())?;
        let own = halo.local_box();
        let cells = self.padded(own);
        let places: Vec<usize> =
            cells.iter().map(|&at| halo.index(at).expect("a cell of the array")).collect();
        assert_eq!(places.len(), halo.volume());
        for round in 0..3 {
            let fill = |number: usize, field: &mut [E]| {
                for (&at, &place) in cells.iter().zip(&places) {
                    let inside = self
                        .owner(own, at)
                        .filter(|&index| at == index.map(|i| i as isize) && own.contains(index));
                    field[place] = inside.map_or(canary(), |index| value(round, number, index));
                }
            };
            let check = |number: usize, field: &[E]| {
                for (&at, &place) in cells.iter().zip(&places) {
                    let expected = self.owner(own, at).map_or(canary(), |index| value(round, number, index));
                    assert_eq!(
                        field[place], expected,
                        "cell {at:?} of field {number} in round {round}, box {own}"
                    );
                }
            };
            if self.made {
                let mut fields = (0..self.fields).map(|_| halo.make_field()).collect::<Result<Vec<_>>>()?;
                fields.iter_mut().enumerate().for_each(|(number, field)| fill(number, field));
                self.exchange(&mut halo, &mut fields)?;
                fields.iter().enumerate().for_each(|(number, field)| check(number, field));
            } else {
                let mut fields: Vec<Guarded<E>> =
                    (0..self.fields).map(|_| Guarded::new(places.len())).collect();
                fields.iter_mut().enumerate().for_each(|(number, field)| fill(number, field.as_mut()));
                self.exchange(&mut halo, &mut fields)?;
                fields.iter_mut().enumerate().for_each(|(number, field)| check(number, field.as_mut()));
                fields.iter().for_each(Guarded::check);
            }
        }
        Ok(())
    }

    fn exchange<E: Sample, G: AsMut<[E]>>(&self, halo: &mut Halo<E>, fields: &mut Vec<G>) -> Result<()> {
        match self.flies {
            true => halo.start(fields)?.finish().map(drop),
            false => halo.exchange(fields),
        }
    }

    /// Integers, so that the order of the terms does not matter.
    pub fn sum_ghosts(&self, comm: &Comm) -> Result<()> {
        let comm = comm.clone().with_threads(self.threads);
        let mut sum = GhostSum::<i64>::new(&comm, self.shape, &self.layouts[0], &self.ghosts())?;
        let layout = self.layouts[0].layout(self.shape, comm.size())?;
        let term = |rank: usize, number: usize, at: [isize; 3]| -> i64 {
            at[0] as i64 * 100 + at[1] as i64 * 10 + at[2] as i64 + (rank * 1000 + number) as i64
        };
        let own = sum.local_box();
        let cells = self.padded(own);
        let mut fields: Vec<Vec<i64>> = vec![vec![0; sum.volume()]; self.fields];
        for (number, field) in fields.iter_mut().enumerate() {
            for &at in &cells {
                field[sum.index(at).expect("a cell of the array")] = term(comm.rank(), number, at);
            }
        }
        sum.run(&mut fields)?;
        for (number, field) in fields.iter().enumerate() {
            let mut total = vec![0; self.shape.iter().product()];
            for (rank, &part) in layout.boxes().iter().enumerate() {
                for at in self.padded(part) {
                    if let Some(index) = self.owner(part, at) {
                        total[offset(&Box3::whole(self.shape), Order::C, index)] += term(rank, number, at);
                    }
                }
            }
            for &at in &cells {
                let inside = at.map(|i| usize::try_from(i).unwrap_or(usize::MAX));
                let expected = match own.contains(inside) {
                    true => total[offset(&Box3::whole(self.shape), Order::C, inside)],
                    false => term(comm.rank(), number, at),
                };
                let got = field[sum.index(at).expect("a cell of the array")];
                assert_eq!(got, expected, "cell {at:?} of field {number}, box {own}");
            }
        }
        Ok(())
    }
}
