//! Boxes as heFFTe has them, and the boxes and shapes that Ferrier takes.

use ferrier::{Box3, Comm, LayoutSpec, Order};

/// Errors are texts: the callers throw or print them.
pub type Outcome<T> = Result<T, String>;

/// A box of heFFTe: inclusive bounds, and dimensions from the fastest to the slowest in memory.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HeffteBox {
    /// The first index of each dimension.
    pub low: [i64; 3],
    /// The last index of each dimension; below `low` where the box is empty.
    pub high: [i64; 3],
    /// Dimensions from the fastest to the slowest.
    pub order: [i32; 3],
}

/// heFFTe's dimensions are Ferrier's axes in reverse.
pub fn reversed<T: Copy>(of: [T; 3]) -> [T; 3] {
    [of[2], of[1], of[0]]
}

impl HeffteBox {
    fn is_empty(&self) -> bool {
        (0..3).any(|dimension| self.high[dimension] < self.low[dimension])
    }

    /// Indices are not negative where the whole begins at 0.
    fn to_ferrier(self) -> Box3 {
        if self.is_empty() {
            return Box3::EMPTY;
        }
        let [lo, hi] = [self.low, self.high.map(|high| high + 1)];
        Box3::new(reversed(lo).map(|lo| lo as usize), reversed(hi).map(|hi| hi as usize))
    }

    fn to_bytes(self) -> Vec<u8> {
        let numbers = self.low.into_iter().chain(self.high).chain(self.order.map(i64::from));
        numbers.flat_map(i64::to_le_bytes).collect()
    }

    fn from_bytes(bytes: &[u8]) -> HeffteBox {
        let mut numbers = bytes.chunks_exact(8).map(|chunk| {
            i64::from_le_bytes(std::array::from_fn(|byte| chunk.get(byte).copied().unwrap_or_default()))
        });
        let mut three = || std::array::from_fn(|_| numbers.next().unwrap_or_default());
        let [low, high, order] = [three(), three(), three()];
        HeffteBox { low, high, order: order.map(|dimension| dimension as i32) }
    }
}

/// The boxes of one side on all ranks.
pub struct GatheredBoxes {
    /// The lengths of the whole, by heFFTe's dimensions.
    pub world: [usize; 3],
    /// How Ferrier is told of them.
    pub layout: LayoutSpec,
    /// Elements of this rank.
    pub own: usize,
}

/// Gathers the boxes of all ranks. Collective.
pub fn gather(comm: &Comm, own: [HeffteBox; 2]) -> Outcome<[GatheredBoxes; 2]> {
    let mine: Vec<u8> = own.iter().flat_map(|side| side.to_bytes()).collect();
    let all = comm.all_gather(&mine).map_err(|error| error.to_string())?;
    let side = |at: usize, name: &str| {
        let boxes: Vec<HeffteBox> = all
            .iter()
            .map(|bytes| HeffteBox::from_bytes(bytes.get(at * 72..(at + 1) * 72).unwrap_or_default()))
            .collect();
        GatheredBoxes::new(&boxes, comm.rank()).map_err(|error| format!("{name}boxes: {error}"))
    };
    Ok([side(0, "in")?, side(1, "out")?])
}

impl GatheredBoxes {
    fn new(boxes: &[HeffteBox], rank: usize) -> Outcome<GatheredBoxes> {
        let first = boxes.first().ok_or("there are no ranks")?;
        if let Some(at) = boxes.iter().position(|other| other.order != first.order) {
            return Err(format!(
                "the order of dimensions must be the same on all ranks, got {:?} on rank 0 and {:?} on rank {at}",
                first.order, boxes[at].order
            ));
        }
        let filled: Vec<&HeffteBox> = boxes.iter().filter(|other| !other.is_empty()).collect();
        let extreme = |of: fn(&HeffteBox) -> [i64; 3], best: fn(i64, i64) -> i64| {
            let bounds = filled.iter().map(|other| of(other));
            bounds.reduce(|a, b| std::array::from_fn(|dimension| best(a[dimension], b[dimension])))
        };
        let [Some(low), Some(high)] =
            [extreme(|other| other.low, i64::min), extreme(|other| other.high, i64::max)]
        else {
            return Err("all of them are empty".into());
        };
        if low != [0; 3] {
            return Err(format!("indices must begin at 0 in each dimension, got {low:?}"));
        }
        // Fastest first there, slowest first here, and axes in reverse: the same numbers.
        let order = first.order.map(|dimension| usize::try_from(dimension).unwrap_or(usize::MAX));
        let slowest_first = reversed(order).map(|dimension| 2_usize.wrapping_sub(dimension));
        let order = Order::new(slowest_first).map_err(|_| {
            format!("the order of dimensions must have each of 0, 1 and 2 once, got {:?}", first.order)
        })?;
        let parts: Vec<Box3> = boxes.iter().map(|part| part.to_ferrier()).collect();
        let own = parts.get(rank).map_or(0, Box3::volume);
        Ok(GatheredBoxes {
            world: high.map(|high| high as usize + 1),
            layout: LayoutSpec::boxes(parts).order(order),
            own,
        })
    }
}
