//! A block of lines by its place in a grid.

/// One block: which lines of which cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockAt {
    pub cell: usize,
    pub batch: usize,
    pub plane: usize,
    pub lane: usize,
    pub lanes: usize,
    /// Planes that it goes through: more than one where few lines lie side by side.
    pub rows: usize,
}

impl BlockAt {
    pub fn lines(&self) -> usize {
        self.lanes * self.rows
    }
}
