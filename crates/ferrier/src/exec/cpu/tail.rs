//! The last arrays of a batch whose arrays go through all axes in one pass: cores of unequal speed, or interrupted ones, would
//! leave the others idle for the time of an array. So the last array of each thread goes in two passes, a plane and then
//! a block of lines at a time, of which every thread takes as many as it can.

use std::ops::Range;

use super::lines::{BlockLen, LineGrid};
use super::planes::Planes;
use super::side::Side;
use super::tables::KernelTables;
use crate::exec::backend::PassEnds;
use crate::{Real, Result};
use ferrier_plan::geometry::{Axes, Piece};

/// Two axes of the last arrays, which go with the whole arrays, and the third one, after them. Between the two passes the
/// arrays are in the target.
pub(super) struct Tail<T> {
    pub planes: Planes<T>,
    pub lines: LineGrid<T>,
}

impl<T: Real> Tail<T> {
    /// The arrays that go as a whole, and the tail if it takes the others.
    pub fn new(ends: &PassEnds<'_>, tables: &mut KernelTables<T>) -> Result<(Range<usize>, Option<Self>)> {
        let PassEnds { context, pass, arrive, arrays, from, to, sub_tile, .. } = ends;
        let Range { start, end } = *arrays;
        let whole = whole_arrays(arrays.len(), context.memory_policy.threads);
        let ([one, two, three], [target]) = (&pass.transforms[..], &to[..]) else {
            return Ok((start..end, None));
        };
        let between = two.after(&one.after(arrive));
        let plain = pass.transforms.iter().all(|t| t.fused_op.is_none() && t.axes().is_none());
        let fits = target.region == between
            && three.after(&between) == between
            && [two.real, three.real_before, three.real].iter().all(|&real| real == two.real);
        if whole == arrays.len() || !plain || !fits || context.memory_policy.stream || sub_tile.is_some() {
            return Ok((start..end, None));
        }
        let last = start + whole..end;
        // Offsets are those of the first array.
        let moved = |piece: &Piece| Piece { offset: piece.offset + whole * piece.batch, ..piece.clone() };
        let [from, to]: [Vec<Piece>; 2] = [from, to].map(|pieces| pieces.iter().map(moved).collect());
        let mut planes = Planes::new(context, (arrive, &last), [&from, &to], [one, two], tables)?;
        (planes.first.staging_len, planes.second.staging_len) = (0, 0);
        planes.set_prefetch(context.memory_policy.prefetch);
        let axes = Axes::choose(three.axis, &to, &to);
        let [before, after] = Side::of(three, &to, &to);
        let block = BlockLen::Best(context.memory_policy.block, context.memory_policy.threads);
        let line_op = tables.line_op(three)?;
        let mut lines = LineGrid::across(axes, &between, before, after, line_op, (&last, block));
        (lines.staging_len, lines.prefetch) = (0, context.memory_policy.prefetch);
        Ok((start..last.start, Some(Tail { planes, lines })))
    }

    /// Scalars of scratch per thread.
    pub fn scratch(&self) -> usize {
        self.planes.scratch().max(self.lines.scratch())
    }

    /// The most strips of a line.
    pub fn most_strips(&self) -> usize {
        self.planes.most_strips().max(self.lines.most_strips())
    }
}

/// How many of a batch's arrays go as a whole: all but the last one of each thread, and what the threads do not share
/// evenly. All of them where threads have one, or so many that the last one matters little.
fn whole_arrays(batch: usize, threads: usize) -> usize {
    const MANY: usize = 6;
    match batch / threads.max(1) {
        rounds if threads > 1 && (2..MANY).contains(&rounds) => (rounds - 1) * threads,
        _ => batch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_their_last_arrays() {
        assert_eq!([(32, 16), (64, 16), (40, 16)].map(|(b, t)| whole_arrays(b, t)), [16, 48, 16]);
        assert_eq!(
            [(4, 1), (16, 16), (31, 16), (256, 16)].map(|(b, t)| whole_arrays(b, t)),
            [4, 16, 31, 256]
        );
    }
}
