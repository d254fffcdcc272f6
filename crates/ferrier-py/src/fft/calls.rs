//! A transform of any axes of a dense array as calls of plans, which have three axes and a batch.

use ferrier::Kind;

/// One call of a plan on a whole array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    pub shape: [usize; 3],
    pub kinds: [Kind; 3],
    pub batch: usize,
}

impl Call {
    /// The product of the sizes of the transformed axes.
    pub fn size(&self) -> f64 {
        (0..3).map(|axis| self.kinds[axis].size(self.shape[axis]) as f64).product()
    }

    fn new(pre: usize, window: &[Axis], post: usize) -> Call {
        let mut axes: Vec<Axis> = window.to_vec();
        if post > 1 {
            axes.push(Axis::idle(post));
        }
        // A free axis serves better than a batch: lines of several arrays are then transformed together.
        let mut batch = pre;
        if axes.len() < 3 && pre > 1 {
            axes.insert(0, Axis::idle(pre));
            batch = 1;
        }
        while axes.len() < 3 {
            axes.insert(0, Axis::idle(1));
        }
        Call { shape: [0, 1, 2].map(|i| axes[i].len), kinds: [0, 1, 2].map(|i| axes[i].kind), batch }
    }
}

/// An axis of an array in the order of memory: its length as the transform counts it, and its transform.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    pub len: usize,
    pub kind: Kind,
}

impl Axis {
    fn idle(len: usize) -> Axis {
        Axis { len, kind: Kind::Identity }
    }

    /// Does its transform leave all values as they are?
    fn is_idle(&self) -> bool {
        matches!((self.kind, self.len), (Kind::Identity, _) | (Kind::Complex, 1))
    }
}

/// The calls that transform these axes, slowest first. The real axis, if there is one, is in the first call.
pub fn calls(axes: &[Axis]) -> Vec<Call> {
    let mut axes = axes.to_vec();
    let mut calls = Vec::new();
    loop {
        let merged = merge(&axes);
        let halved = merged.iter().position(|axis| axis.kind == Kind::Real);
        let Some((first, last)) = window(&merged, halved) else { return calls };
        let product = |axes: &[Axis]| axes.iter().map(|axis| axis.len).product();
        calls.push(Call::new(product(&merged[..first]), &merged[first..=last], product(&merged[last + 1..])));
        axes = merged;
        for axis in &mut axes[first..=last] {
            *axis = Axis::idle(axis.kind.modes(axis.len));
        }
    }
}

/// The same axes without those of length 1, neighbours that are not transformed as one.
fn merge(axes: &[Axis]) -> Vec<Axis> {
    let mut merged: Vec<Axis> = Vec::with_capacity(axes.len());
    for axis in axes {
        match merged.last_mut() {
            _ if axis.is_idle() && axis.len == 1 => {}
            Some(last) if axis.is_idle() && last.is_idle() => last.len *= axis.len,
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
