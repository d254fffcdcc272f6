//! Boxes as tables for the kernel of copies. Pure but for the tables.

use crate::copies::box_copy::BoxCopy;
use crate::copies::copier::{RouteCounts, SweepKind};
use crate::copies::sweep::{Planes, Task};
use crate::exec::cuda::{Flow, MoveTable, TableBuffer, WIDEST};

/// A variant of the kernel of copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelVariant {
    /// Bytes moved at once.
    pub unit: usize,
    /// Whether source and target have different fastest axes.
    pub turn: bool,
    /// Whether they are added, as scalars of this type in CUDA C++.
    pub sum: Option<&'static str>,
}

/// A launch of the kernel.
#[derive(Clone, Copy, Debug)]
pub struct CopyLaunch {
    pub variant: KernelVariant,
    /// Offset of the boxes in the tables, in bytes, and their number.
    pub at: usize,
    pub count: usize,
    pub blocks: u64,
}

/// The same copies for any addresses, and for those that are multiples of [`WIDEST`].
#[derive(Clone, Copy, Debug)]
pub struct Launches {
    pub any: CopyLaunch,
    pub aligned: CopyLaunch,
}

/// Copies whose targets do not overlap: from arrays (or to segments, where they are packed), and from segments.
#[derive(Debug, Default)]
pub struct Layer {
    pub direct: Vec<Launches>,
    pub packed: Vec<Launches>,
}

/// The copies of some routes. Layers follow each other.
#[derive(Debug)]
pub struct DeviceSweep {
    pub routes: Vec<usize>,
    pub layers: Vec<Layer>,
}

/// What makes tables of tasks.
pub(super) struct SweepBinder<'a> {
    pub tables: &'a mut TableBuffer,
    pub element_bytes: usize,
    /// Type and bytes of the scalars that are added.
    pub sum: Option<(&'static str, usize)>,
    pub counts: RouteCounts,
}

impl SweepBinder<'_> {
    pub fn bind(&mut self, tasks: &[Task], kind: SweepKind) -> DeviceSweep {
        let tasks: Vec<Task> = tasks.iter().filter(|task| task.volume() > 0).copied().collect();
        let mut routes: Vec<usize> = tasks.iter().map(|task| task.route).collect();
        routes.dedup();
        let layers = match kind {
            SweepKind::Pack => vec![Layer { direct: self.pack(&tasks), packed: Vec::new() }],
            SweepKind::Store => vec![self.store(&tasks)],
            SweepKind::Ordered(planes) => {
                disjoint(&tasks, planes).iter().map(|tasks| self.store(tasks)).collect()
            }
        };
        DeviceSweep { routes, layers }
    }

    /// The addresses: sources, then segments of outgoing routes.
    fn pack(&mut self, tasks: &[Task]) -> Vec<Launches> {
        let fields = self.counts.fields;
        let boxes = tasks.iter().flat_map(|task| {
            (0..fields).map(move |field| (task.packed, [field, fields + task.route * fields + field]))
        });
        self.launches(&boxes.collect::<Vec<_>>(), None)
    }

    /// The addresses: arrays of incoming routes, their segments, then targets.
    fn store(&mut self, tasks: &[Task]) -> Layer {
        let RouteCounts { fields, incoming, .. } = self.counts;
        let [direct, packed] = [false, true].map(|packed| {
            let boxes = tasks.iter().flat_map(|task| {
                let (copy, first) = if packed { (task.packed, incoming * fields) } else { (task.direct, 0) };
                (0..fields).map(move |field| {
                    (copy, [first + task.route * fields + field, 2 * incoming * fields + field])
                })
            });
            self.launches(&boxes.collect::<Vec<_>>(), self.sum)
        });
        Layer { direct, packed }
    }

    /// The launches of these boxes, with the indices of the addresses that they count from.
    fn launches(
        &mut self,
        boxes: &[(BoxCopy, [usize; 2])],
        sum: Option<(&'static str, usize)>,
    ) -> Vec<Launches> {
        let unit = sum.map_or_else(|| unit_bytes(self.element_bytes), |(_, bytes)| bytes);
        let mut flows: [Vec<Flow>; 2] = Default::default();
        for (copy, bases) in boxes {
            // Axes that are contiguous on both sides are one.
            let copy = &copy.simplified();
            let (flow, turn) = flow(copy, self.element_bytes / unit, bases.map(|base| base as u32));
            flows[usize::from(turn)].push(flow);
        }
        let launches = |(flows, turn): (&Vec<Flow>, bool)| {
            let mut launch = |wide: bool| {
                let table = MoveTable::of(flows, turn, 1, unit, wide);
                let variant = KernelVariant { unit: table.unit, turn, sum: sum.map(|(name, _)| name) };
                let (at, count) = (self.tables.push(&table.moves), table.moves.len());
                CopyLaunch { variant, at, count, blocks: table.blocks }
            };
            let any = launch(false);
            let aligned = if sum.is_none() { launch(true) } else { any };
            Launches { any, aligned }
        };
        flows.iter().zip([false, true]).filter(|(flows, _)| !flows.is_empty()).map(launches).collect()
    }
}

/// What a copy of an element of so many bytes moves at once.
pub(super) fn unit_bytes(element_bytes: usize) -> usize {
    (1 << element_bytes.trailing_zeros()).min(WIDEST)
}

/// A box as the kernel takes it, in units of which an element has `units`, and whether it is turned.
fn flow(copy: &BoxCopy, units: usize, bases: [u32; 2]) -> (Flow, bool) {
    let fastest =
        |strides: [usize; 3]| (0..3).min_by_key(|&axis| (copy.shape[axis] == 1, strides[axis])).unwrap_or(2);
    let (fast, near) = (fastest(copy.to.strides), fastest(copy.from.strides));
    let turn = units == 1 && fast != near;
    let second = match turn {
        true => near,
        false => {
            let others = (0..3).filter(|&axis| axis != fast);
            others.min_by_key(|&axis| (copy.shape[axis] == 1, copy.to.strides[axis])).unwrap_or(0)
        }
    };
    let axes = [fast, second, 3 - fast - second];
    let contiguous = copy.shape[fast] == 1 || (copy.from.strides[fast] == 1 && copy.to.strides[fast] == 1);
    let pick = |values: [usize; 3]| axes.map(|axis| values[axis]);
    let ([n0, n1, n2], [f0, f1, f2], [t0, t1, t2]) =
        (pick(copy.shape), pick(copy.from.strides), pick(copy.to.strides));
    let steps = |[a, b, c]: [usize; 3]| [a * units, b * units, c * units];
    let ([f0, f1, f2], [t0, t1, t2]) = (steps([f0, f1, f2]), steps([t0, t1, t2]));
    let (n, from_step, to_step) = match (units, contiguous) {
        (1, false) => ([n0, n1, n2, 1], [f0, f1, f2, 0], [t0, t1, t2, 0]),
        // The units of a row follow each other.
        (_, true) => ([n0 * units, n1, n2, 1], [1, f1, f2, 0], [1, t1, t2, 0]),
        (_, false) => ([units, n0, n1, n2], [1, f0, f1, f2], [1, t0, t1, t2]),
    };
    let (from, to) = (copy.from.offset * units, copy.to.offset * units);
    (Flow { from, to, from_step, to_step, n, bases, array: 0 }, turn)
}

/// The tasks in layers: in each, targets do not overlap, and a task is in a later layer than those before it whose targets it
/// overlaps.
fn disjoint(tasks: &[Task], planes: Planes) -> Vec<Vec<Task>> {
    let region = |task: &Task| -> [[usize; 2]; 3] {
        let (mut rest, mut region) = (task.direct.to.offset, [[0; 2]; 3]);
        for axis in planes.axes {
            let stride = task.direct.to.strides[axis];
            region[axis] = [rest / stride, rest / stride + task.direct.shape[axis]];
            rest %= stride;
        }
        region
    };
    let overlap = |a: &[[usize; 2]; 3], b: &[[usize; 2]; 3]| {
        a.iter().zip(b).all(|([low, high], [other_low, other_high])| low < other_high && other_low < high)
    };
    let mut placed: Vec<(usize, [[usize; 2]; 3])> = Vec::with_capacity(tasks.len());
    let mut layers: Vec<Vec<Task>> = Vec::new();
    for task in tasks {
        let region = region(task);
        let before = placed.iter().filter(|(_, other)| overlap(&region, other)).map(|(layer, _)| layer + 1);
        let layer = before.max().unwrap_or(0);
        if layer == layers.len() {
            layers.push(Vec::new());
        }
        layers[layer].push(*task);
        placed.push((layer, region));
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Order;
    use crate::copies::box_copy::Place;
    use ferrier_test::Rng;

    /// A random box in random arrays.
    fn random_copy(rng: &mut Rng) -> (BoxCopy, [usize; 2]) {
        let shape: [usize; 3] = std::array::from_fn(|_| 1 + rng.below(9));
        let mut end = || {
            let room: [usize; 3] = std::array::from_fn(|a| shape[a] + rng.below(3));
            let at: [usize; 3] = std::array::from_fn(|a| rng.below(room[a] - shape[a] + 1));
            let strides = rng.pick(&Order::ALL).strides(room);
            let offset = (0..3).map(|a| at[a] * strides[a]).sum();
            (Place { offset, strides }, room.iter().product::<usize>())
        };
        let ((from, n), (to, m)) = (end(), end());
        (BoxCopy { shape, from, to }, [n, m])
    }

    /// The tables of the kernel move what copies in main memory move, in units of any size.
    #[test]
    fn tables_are_copies() {
        let mut rng = Rng::for_test(1802);
        for case in 0..400 {
            let (copy, [n, m]) = random_copy(&mut rng);
            let bytes = [1, 2, 3, 4, 12, 16, 24, 64][case % 8];
            let unit = unit_bytes(bytes);
            assert!(bytes.is_multiple_of(unit) && unit <= 16);
            let source: Vec<u8> = (0..n * bytes).map(|i| (i % 251) as u8).collect();
            let mut expected = vec![255; m * bytes];
            for i in 0..copy.shape[0] {
                for j in 0..copy.shape[1] {
                    for k in 0..copy.shape[2] {
                        let at = |p: &Place| {
                            (p.offset + i * p.strides[0] + j * p.strides[1] + k * p.strides[2]) * bytes
                        };
                        expected[at(&copy.to)..][..bytes].copy_from_slice(&source[at(&copy.from)..][..bytes]);
                    }
                }
            }
            let (flow, turn) = flow(&copy, bytes / unit, [0, 1]);
            for wide in [false, true] {
                let table = MoveTable::of(&[flow], turn, 1, unit, wide);
                let mut got = vec![255; m * bytes];
                table.run_on_host(1, &source, &mut got);
                assert_eq!(got, expected, "{copy:?}, {bytes} bytes, turn {turn}, wide {wide}");
            }
        }
    }

    /// Layers keep the order of tasks whose targets overlap, and have no overlaps in themselves.
    #[test]
    fn layers_have_no_overlaps() {
        let mut rng = Rng::for_test(1803);
        for _ in 0..100 {
            let order = *rng.pick(&Order::ALL);
            let room: [usize; 3] = std::array::from_fn(|_| 1 + rng.below(6));
            let strides = order.strides(room);
            let task = |rng: &mut Rng, route: usize| {
                let shape: [usize; 3] = std::array::from_fn(|a| 1 + rng.below(room[a]));
                let offset = (0..3).map(|a| rng.below(room[a] - shape[a] + 1) * strides[a]).sum();
                let place = Place { offset, strides };
                let copy = BoxCopy { shape, from: place, to: place };
                Task { route, direct: copy, packed: copy }
            };
            let tasks: Vec<Task> = (0..12).map(|route| task(&mut rng, route)).collect();
            let axes = order.axes();
            let planes = Planes { axes, count: room[axes[0]], stride: strides[axes[0]] };
            let cells = |task: &Task| -> Vec<usize> {
                let [a, b, c] = task.direct.shape;
                let at = |i, j, k| task.direct.to.offset + i * strides[0] + j * strides[1] + k * strides[2];
                (0..a * b * c).map(|n| at(n / (b * c), n / c % b, n % c)).collect()
            };
            // By cell: the routes that reach it.
            let mut reached: Vec<Vec<usize>> = vec![Vec::new(); room.iter().product()];
            for layer in disjoint(&tasks, planes) {
                let mut seen = vec![false; reached.len()];
                for task in &layer {
                    for cell in cells(task) {
                        assert!(!std::mem::replace(&mut seen[cell], true), "an overlap in a layer");
                        reached[cell].push(task.route);
                    }
                }
            }
            for routes in &reached {
                assert!(routes.is_sorted(), "{routes:?}");
            }
            let total: usize = tasks.iter().map(Task::volume).sum();
            assert_eq!(reached.iter().map(Vec::len).sum::<usize>(), total);
        }
    }
}
