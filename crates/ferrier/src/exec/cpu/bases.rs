//! The addresses of a call: those that pieces of memory count from.

use crate::exec::field_table::table_at;
use crate::transport::{EXPOSED, Exposed};

/// A vector whose memory does not share cache lines with the next one's: threads write to theirs at every block.
pub(super) fn apart<V>(capacity: usize) -> Vec<V> {
    Vec::with_capacity(capacity + 128usize.div_ceil(size_of::<V>().max(1)))
}

/// The exposed pointers of all ranks (input, output, workspace), then the address that planes in scratch count from, then
/// that of this rank's window.
pub(crate) struct Bases<T> {
    pointers: Vec<*mut T>,
    /// The addresses of the arrays of a batch, where each has memory of its own; else null.
    tables: Vec<*const usize>,
    /// Whether there are tables.
    listed: bool,
}

impl<T> Bases<T> {
    pub fn new(ranks: usize, window: *mut T) -> Self {
        let count = ranks * EXPOSED;
        let (mut pointers, mut tables) = (apart(count + 2), apart(count + 2));
        pointers.resize(count + 2, std::ptr::null_mut());
        tables.resize(count + 2, std::ptr::null());
        pointers[count + 1] = window;
        Bases { pointers, tables, listed: false }
    }

    /// Takes the addresses of a call, by rank.
    pub fn set(&mut self, exposed: &[Exposed], scratch: *mut T) {
        self.listed = false;
        for (number, &address) in exposed.as_flattened().iter().enumerate() {
            let table = table_at(address);
            self.tables[number] = table.unwrap_or(std::ptr::null());
            self.pointers[number] = address as *mut T;
            self.listed |= table.is_some();
        }
        self.set_scratch(scratch);
    }

    /// Sets the address that planes in scratch count from.
    pub fn set_scratch(&mut self, scratch: *mut T) {
        let at = self.pointers.len() - 2;
        self.pointers[at] = scratch;
    }

    /// The address that pieces count from; none where each array of a batch has memory of its own.
    pub fn pointer(&self, base: usize) -> Option<*mut T> {
        (!self.listed || self.tables[base].is_null()).then(|| self.pointers[base])
    }

    /// The address of a scalar of an array: `offset` is that in array `first` of the batch, `array` counts from there,
    /// `stride` is the distance of arrays that have their memory in common.
    ///
    /// # Safety
    /// The addresses are those of the current call, whose tables list every array of the batch.
    #[inline]
    pub unsafe fn at(&self, base: usize, offset: usize, [first, array]: [usize; 2], stride: usize) -> *mut T {
        if self.listed && !self.tables[base].is_null() {
            // SAFETY: this function's contract.
            let start = unsafe { *self.tables[base].add(first + array) } as *mut T;
            return start.wrapping_add(offset - first * stride);
        }
        // The base of planes in scratch may lie before it.
        self.pointers[base].wrapping_add(offset + array * stride)
    }
}
