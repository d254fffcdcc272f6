//! The addresses of runs, in tables on the GPU.

use super::memory::{Block, Stream};
use crate::Result;

/// Sets kept on the GPU, so that callers may change arrays.
const SETS: usize = 8;

/// What copies move at once, at most.
pub(crate) const WIDEST: usize = 16;

/// Sets of addresses that the GPU has.
#[derive(Default)]
pub(crate) struct AddressSets {
    /// Their offset in the tables, in bytes, and the addresses of a set.
    at: usize,
    len: usize,
    sets: Vec<Vec<u64>>,
    /// Index of the set to replace next.
    next: usize,
    /// The set that is being looked for.
    wanted: Vec<u64>,
}

/// A set on the GPU.
#[derive(Clone, Copy)]
pub(crate) struct AddressSet {
    /// Where it begins.
    pub start: u64,
    /// Whether all its addresses are multiples of [`WIDEST`].
    pub aligned: bool,
}

impl AddressSets {
    /// Words in the tables for sets of so many addresses.
    pub fn words(len: usize) -> usize {
        SETS * len
    }

    /// Room for sets of `len` addresses from byte `at` of the tables on.
    pub fn new(at: usize, len: usize) -> AddressSets {
        let empty = || Vec::with_capacity(len);
        let sets = (0..SETS).map(|_| empty()).collect();
        AddressSets { at, len, sets, next: 0, wanted: empty() }
    }

    /// The set that was found last.
    pub fn last(&self) -> &[u64] {
        &self.wanted
    }

    /// The set with these addresses: one that is there, or a new one that replaces the oldest.
    pub fn find(
        &mut self,
        addresses: impl Iterator<Item = usize>,
        tables: &Block,
        stream: &Stream,
    ) -> Result<AddressSet> {
        self.wanted.clear();
        self.wanted.extend(addresses.map(|address| address as u64));
        debug_assert_eq!(self.wanted.len(), self.len);
        let slot = match self.sets.iter().position(|set| *set == self.wanted) {
            Some(slot) => slot,
            None => {
                let slot = self.next % SETS;
                // Waits for kernels that use the oldest set.
                stream.synchronize()?;
                tables.upload(self.at + slot * self.len * 8, &self.wanted)?;
                self.sets[slot].clone_from(&self.wanted);
                self.next += 1;
                slot
            }
        };
        let aligned = self.wanted.iter().all(|address| address.is_multiple_of(WIDEST as u64));
        Ok(AddressSet { start: tables.start() + (self.at + slot * self.len * 8) as u64, aligned })
    }
}
