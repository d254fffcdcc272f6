//! Lists of arrays, each with memory of its own.

/// The lengths of arrays that have memory of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldSpans {
    /// How many arrays.
    pub count: usize,
    /// Scalars of the shortest.
    pub least: usize,
    /// Scalars of the longest.
    pub most: usize,
}

/// The addresses of arrays that have memory of their own: room for as many as a plan transforms together.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct FieldTable {
    starts: Vec<usize>,
    spans: FieldSpans,
}

impl FieldTable {
    pub(crate) fn new(arrays: usize) -> FieldTable {
        FieldTable { starts: Vec::with_capacity(arrays), spans: FieldSpans::default() }
    }

    pub(crate) fn clear(&mut self) {
        self.starts.clear();
        self.spans = FieldSpans { count: 0, least: usize::MAX, most: 0 };
    }

    /// Adds an array. There is room for those of the plan.
    pub(crate) fn push(&mut self, start: usize, scalars: usize) {
        let FieldSpans { count, least, most } = &mut self.spans;
        (*count, *least, *most) = (*count + 1, scalars.min(*least), scalars.max(*most));
        self.starts.push(start);
    }

    /// What was added; `None` for nothing.
    pub(crate) fn spans(&self) -> Option<FieldSpans> {
        (self.spans.count > 0).then_some(self.spans)
    }

    /// The addresses.
    #[cfg(feature = "cuda")]
    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The address of the table, marked as such.
    pub(crate) fn address(&self) -> usize {
        self.starts.as_ptr() as usize | LISTED
    }
}

/// Marks the address of a table. Addresses of arrays are even, as those of tables are.
pub(crate) const LISTED: usize = 1;

/// The table of addresses, one for each array of a batch, that stands in the place of an address; `None` for the address of
/// an array.
pub(crate) fn table_at(address: usize) -> Option<*const usize> {
    (address & LISTED != 0).then_some((address & !LISTED) as *const usize)
}
