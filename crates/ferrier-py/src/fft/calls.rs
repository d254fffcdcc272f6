//! A transform of any axes of an array as calls of plans, which have three axes and a batch.

use ferrier::{ArrayStrides, Kind, Order};

/// One call of a plan on a whole array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    pub shape: [usize; 3],
    pub kinds: [Kind; 3],
    pub batch: usize,
    /// Of what the call reads and of what it writes: `None` where an array has no gaps and its axes are in order.
    pub strides: [Option<Strides>; 2],
    /// Does a complex transform read real values?
    pub real_input: bool,
}

/// Elements from one index to the next along each axis and along the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Strides {
    pub axes: [usize; 3],
    pub batch: usize,
}

impl Strides {
    /// Of an array without gaps.
    fn dense(lens: [usize; 3]) -> Strides {
        Strides { axes: Order::C.strides(lens), batch: lens.iter().product() }
    }

    /// The same elements of an array of these lengths?
    fn is(&self, other: &Strides, lens: [usize; 3], batch: usize) -> bool {
        (0..3).all(|axis| lens[axis] == 1 || self.axes[axis] == other.axes[axis])
            && (batch == 1 || self.batch == other.batch)
    }

    /// The order of the axes in memory, those of one element first.
    pub fn order(&self, lens: [usize; 3]) -> Order {
        let mut axes = [0, 1, 2];
        axes.sort_by_key(|&axis| std::cmp::Reverse((lens[axis] == 1, self.axes[axis])));
        Order::new(axes).unwrap_or(Order::C)
    }

    pub fn of_arrays(&self) -> ArrayStrides {
        ArrayStrides::new(self.axes).batch(self.batch)
    }
}

impl Call {
    /// The product of the sizes of the transformed axes.
    pub fn size(&self) -> f64 {
        (0..3).map(|axis| self.kinds[axis].size(self.shape[axis]) as f64).product()
    }

    pub fn is_real(&self) -> bool {
        self.kinds.contains(&Kind::Real)
    }

    /// Are both arrays without gaps?
    pub fn is_dense(&self) -> bool {
        self.strides == [None, None]
    }

    /// Lengths of the axes after the transform.
    pub fn modes(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.kinds[axis].modes(self.shape[axis]))
    }

    fn new(pre: Option<Axis>, window: &[Axis], post: Option<Axis>, backward: bool) -> Call {
        let mut axes: Vec<Axis> = window.to_vec();
        axes.extend(post);
        // A free axis serves better than a batch: lines of several arrays are then transformed together.
        let mut batch = pre;
        if axes.len() < 3 {
            axes.splice(0..0, batch.take());
        }
        while axes.len() < 3 {
            axes.insert(0, Axis { len: 1, kind: Kind::Identity, strides: [0; 2] });
        }
        let count = batch.map_or(1, |axis| axis.len);
        let mut call = Call {
            shape: [0, 1, 2].map(|i| axes[i].len),
            kinds: [0, 1, 2].map(|i| axes[i].kind),
            batch: count,
            strides: [None; 2],
            real_input: false,
        };
        // What is read has the lengths before the transform, what is written those after it; or the other way round.
        let lens = if backward { [call.modes(), call.shape] } else { [call.shape, call.modes()] };
        call.strides = [0, 1].map(|end| {
            let found = Strides {
                axes: [0, 1, 2].map(|i| axes[i].strides[end]),
                batch: batch.map_or(0, |axis| axis.strides[end]),
            };
            (!found.is(&Strides::dense(lens[end]), lens[end], count)).then_some(found)
        });
        call
    }
}

/// An axis of an array: its length as the transform counts it, its transform, and the elements from one index to the next
/// in what is read and in what is written.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    pub len: usize,
    pub kind: Kind,
    pub strides: [usize; 2],
}

impl Axis {
    /// Does its transform leave all values as they are?
    fn is_idle(&self) -> bool {
        matches!((self.kind, self.len), (Kind::Identity, _) | (Kind::Complex, 1))
    }

    /// Both axes as one that is not transformed, if their elements lie so; `self` is the slower one.
    fn with(&self, faster: &Axis) -> Option<Axis> {
        let fits = (0..2).all(|end| self.strides[end] == faster.strides[end] * faster.len);
        fits.then_some(Axis { len: self.len * faster.len, kind: Kind::Identity, strides: faster.strides })
    }

    /// After its transform, in what was written.
    fn done(&self) -> Axis {
        Axis { len: self.kind.modes(self.len), kind: Kind::Identity, strides: [self.strides[1]; 2] }
    }
}

/// The calls that transform these axes, slowest first; `None` where elements lie so that plans cannot take them. The first call reads
/// what is read, the others are in place in what it wrote. The real axis, if there is one, is in the first call.
///
/// `backward`: from the spectrum to real values. The calls are to be made in reverse then, and plans take the elements of
/// more than one only where there are no gaps.
pub fn calls(axes: &[Axis], backward: bool) -> Option<Vec<Call>> {
    let mut axes = axes.to_vec();
    let mut calls = Vec::new();
    loop {
        let merged = merge(&axes);
        let halved = merged.iter().position(|axis| axis.kind == Kind::Real);
        let Some((first, last)) = window(&merged, halved) else { break };
        let (pre, post) = (joined(&merged[..first])?, joined(&merged[last + 1..])?);
        calls.push(Call::new(pre, &merged[first..=last], post, backward));
        let window = first..=last;
        axes =
            merged.iter().enumerate().map(|(i, axis)| after(axis, window.contains(&i), backward)).collect();
    }
    (!backward || calls.len() < 2 || calls.iter().all(Call::is_dense)).then_some(calls)
}

/// An axis after a call, for the next one.
fn after(axis: &Axis, transformed: bool, backward: bool) -> Axis {
    match (transformed, backward) {
        (true, false) => axis.done(),
        // The next call is made before this one, on spectra.
        (true, true) => Axis { strides: [axis.strides[0]; 2], ..axis.done() },
        (false, false) => Axis { strides: [axis.strides[1]; 2], ..*axis },
        (false, true) => Axis { strides: [axis.strides[0]; 2], ..*axis },
    }
}

/// These axes as one; `Some(None)` where there are none, `None` where their elements do not lie so.
fn joined(axes: &[Axis]) -> Option<Option<Axis>> {
    let mut axes = axes.iter();
    let Some(&first) = axes.next() else { return Some(None) };
    axes.try_fold(first, |slower, axis| slower.with(axis)).map(Some)
}

/// The same axes without those of length 1, neighbours that are not transformed as one where their elements lie so.
fn merge(axes: &[Axis]) -> Vec<Axis> {
    let mut merged: Vec<Axis> = Vec::with_capacity(axes.len());
    for axis in axes {
        if axis.is_idle() && axis.len == 1 {
            continue;
        }
        match merged.last_mut() {
            Some(last) if axis.is_idle() && last.is_idle() && last.with(axis).is_some() => {
                *last = last.with(axis).unwrap_or(*last);
            }
            _ => merged.push(*axis),
        }
    }
    merged
}

/// The neighbouring axes (first and last) that one call transforms: as many as possible, with the halved one. What
/// follows them takes one of the three axes.
fn window(axes: &[Axis], halved: Option<usize>) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize, usize)> = None;
    for first in 0..axes.len() {
        for last in first..axes.len().min(first + 3) {
            let slots = last - first + 1 + usize::from(last + 1 < axes.len());
            let worked = axes[first..=last].iter().filter(|axis| !axis.is_idle()).count();
            let has_halved = halved.is_none_or(|halved| (first..=last).contains(&halved));
            if slots <= 3 && worked > 0 && has_halved && best.is_none_or(|(most, ..)| worked >= most) {
                best = Some((worked, first, last));
            }
        }
    }
    best.map(|(_, first, last)| (first, last))
}
