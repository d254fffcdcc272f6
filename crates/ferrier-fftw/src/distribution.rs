//! Which rank has what: FFTW's blocks, and the numbers of `fftw_mpi_local_size` and its relatives.
//!
//! Programs compute addresses from these numbers, so they are those of FFTW's library, exactly. They were learned by
//! comparing results: `scripts/check-fftw`.

use std::ffi::{c_int, c_uint};

use crate::flags::{FORWARD, SCRAMBLED_IN, SCRAMBLED_OUT};

/// The length of blocks that FFTW chooses.
pub fn default_block(n: usize, ranks: usize) -> usize {
    n.div_ceil(ranks).max(1)
}

/// An axis cut into blocks: rank r has block r.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The length of the axis.
    pub n: usize,
    /// The length of a block.
    pub block: usize,
}

impl Blocks {
    /// Blocks of this length; 0: the default.
    pub fn new(n: usize, block: usize, ranks: usize) -> Blocks {
        Blocks { n, block: if block == 0 { default_block(n, ranks) } else { block } }
    }

    /// Length and start of a rank's block; both are 0 where it has none.
    pub fn of(&self, rank: usize) -> (usize, usize) {
        match rank.checked_mul(self.block).filter(|&start| start < self.n) {
            Some(start) => (self.block.min(self.n - start), start),
            None => (0, 0),
        }
    }

    /// Whether the ranks have room for the axis.
    pub fn fit(&self, ranks: usize) -> bool {
        self.block.checked_mul(ranks).is_none_or(|room| room >= self.n)
    }
}

/// The answer of `local_size`: elements to allocate, and length and start of the blocks of two axes, or of input and
/// output of a 1-D transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalSize {
    pub alloc: usize,
    pub first: (usize, usize),
    pub second: (usize, usize),
}

/// The ranks of a communicator.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub rank: usize,
    pub ranks: usize,
}

/// The blocks of axis 1 of a transposed array. Blocks that hold the whole axis count as none given.
pub fn second_blocks(n: usize, block: usize, ranks: usize) -> Blocks {
    Blocks::new(n, if block >= n { 0 } else { block }, ranks)
}

/// Numbers of arrays of `howmany` interleaved components, from two axes up; `transposed`: the block of axis 1, where
/// the transposed array is asked for.
pub fn local_size(
    n: &[usize],
    howmany: usize,
    block: usize,
    transposed: Option<usize>,
    group: Group,
) -> LocalSize {
    let Group { rank, ranks } = group;
    let (n0, n1) = (n[0], n.get(1).copied().unwrap_or(1));
    let rest = n.iter().skip(2).product::<usize>() * howmany;
    let first = Blocks::new(n0, block, ranks);
    let even = |n: usize| Blocks::new(n, 0, ranks).of(rank).0;
    let own = first.of(rank);
    let mut most = own.0 * n1 * rest;
    let given = transposed.unwrap_or(0);
    // FFTW's planner does not transpose then.
    let whole = given >= n1 && given > 0;
    let second = second_blocks(n1, given, ranks);
    let answer = if whole { (if own.0 > 0 { n1 } else { 0 }, 0) } else { second.of(rank) };
    if transposed.is_some() && !whole {
        most = most.max(answer.0 * n0 * rest);
    }
    if first.block < n0 && (transposed.is_none() || whole || second.block < n1) {
        most = most.max(second.of(rank).0 * n0 * rest);
        most = most.max(even(n1 * rest) * n0).max(even(n0 * rest) * n1);
    }
    LocalSize { alloc: most.max(1).div_ceil(howmany) * howmany, first: own, second: answer }
}

/// The factors of a 1-D transform that is distributed as a matrix of n1 x n2, as `Problem::c2c_1d` has them; `None`
/// where the ranks have plain blocks of the line.
pub fn factors(n: usize, howmany: usize, ranks: usize) -> Option<[usize; 2]> {
    if howmany > 1 || ranks == 1 {
        return None;
    }
    let [_, n1, n2] = ferrier::Problem::c2c_1d(n).shape();
    (n1 > 1).then_some([n1, n2])
}

/// The blocks of input and output of a 1-D transform. Natural order of the input of a forward transform is whole
/// rows of the matrix, natural order of its output whole columns; scrambled order is the other way round, and
/// a backward transform has what the forward one of the same flags leaves.
pub fn blocks_1d(n: usize, howmany: usize, ranks: usize, sign: c_int, flags: c_uint) -> [Blocks; 2] {
    let Some([n1, n2]) = factors(n, howmany, ranks) else { return [Blocks::new(n, 0, ranks); 2] };
    let rows = Blocks { n, block: n2 * default_block(n1, ranks) };
    let columns = Blocks { n, block: n1 * default_block(n2, ranks) };
    let forward = sign == FORWARD;
    let choose = |in_rows: bool| if in_rows { rows } else { columns };
    [choose(forward != (flags & SCRAMBLED_IN != 0)), choose(forward == (flags & SCRAMBLED_OUT != 0))]
}

/// Numbers of a 1-D transform. The elements to allocate are at least those of FFTW, which chooses other factors: one
/// that is the number of ranks, or those nearest to the root.
pub fn local_size_1d(n: usize, howmany: usize, group: Group, sign: c_int, flags: c_uint) -> LocalSize {
    let Group { rank, ranks } = group;
    let [input, output] = blocks_1d(n, howmany, ranks, sign, flags);
    let mut most = input.block.max(output.block) * howmany;
    let matrix = |d: usize| (d * default_block(n / d, ranks)).max(n / d * default_block(d, ranks)) * howmany;
    let root = (1..=n).take_while(|d| d * d <= n).filter(|d| n.is_multiple_of(*d)).last().unwrap_or(1);
    most = most.max(matrix(root));
    if n.is_multiple_of(ranks) {
        most = most.max(matrix(ranks));
    }
    if howmany >= ranks {
        most = most.max(n * default_block(howmany, ranks)).next_multiple_of(howmany);
    }
    LocalSize { alloc: most, first: input.of(rank), second: output.of(rank) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of FFTW 3.3.10.
    #[test]
    fn numbers_are_those_of_fftw() {
        let ask = |n: &[usize], howmany, b0, b1, ranks, rank| {
            let size = local_size(n, howmany, b0, Some(b1), Group { rank, ranks });
            (
                size.alloc,
                size.first,
                size.second,
                local_size(n, howmany, b0, None, Group { rank, ranks }).alloc,
            )
        };
        assert_eq!(ask(&[5, 3], 1, 0, 2, 3, 0), (10, (2, 0), (2, 0), 6));
        assert_eq!(ask(&[5, 3], 1, 0, 2, 3, 2), (5, (1, 4), (0, 0), 5));
        // A block of axis 1 that holds all of it.
        assert_eq!(ask(&[17, 1], 1, 7, 1, 3, 1), (7, (7, 7), (1, 0), 7));
        assert_eq!(ask(&[9, 3, 9], 3, 0, 3, 2, 0), (486, (5, 0), (3, 0), 486));
        // Axis 0 in one block.
        assert_eq!(ask(&[1, 8, 9, 8], 4, 1, 6, 2, 1), (576, (0, 0), (2, 6), 4));
        // Even parts of the other two axes together are more than the blocks.
        assert_eq!(ask(&[15, 13, 11], 3, 0, 0, 2, 1), (3213, (7, 8), (6, 7), 3213));
        assert_eq!(ask(&[14, 11, 11, 9], 1, 3, 2, 12, 10), (1276, (0, 0), (0, 0), 1386));
        assert_eq!(ask(&[16, 1, 7, 2], 1, 0, 0, 12, 10), (1, (0, 0), (0, 0), 19));
    }

    #[test]
    fn blocks_of_a_line_are_rows_and_columns() {
        let ask = |sign, flags| {
            let size = local_size_1d(65, 1, Group { rank: 1, ranks: 2 }, sign, flags);
            (size.first, size.second)
        };
        assert_eq!(ask(-1, 0), ((26, 39), (30, 35)));
        assert_eq!(ask(1, 0), ((30, 35), (26, 39)));
        assert_eq!(ask(-1, SCRAMBLED_OUT), ((26, 39), (26, 39)));
        assert_eq!(ask(1, SCRAMBLED_IN), ((26, 39), (26, 39)));
        assert_eq!(ask(-1, SCRAMBLED_IN), ((30, 35), (30, 35)));
        assert_eq!(ask(-1, SCRAMBLED_IN | SCRAMBLED_OUT), ((30, 35), (26, 39)));
    }
}
