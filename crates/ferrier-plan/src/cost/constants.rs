//! Constants of the speed of a machine.

use serde::{Deserialize, Serialize};

use crate::setters::setters;

/// Defines [`Constants`], and [`MeasuredConstants`] with the same fields, each of them optional.
macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident = $default:expr;)*) => {
        /// Constants of the speed of a machine. Of one core unless stated otherwise.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        #[non_exhaustive]
        pub struct Constants {$($(#[$doc])* pub $name: f64,)*}

        impl Default for Constants {
            fn default() -> Self {
                Constants {$($name: $default,)*}
            }
        }

        /// Those of the [`Constants`] that were measured; the others are assumed.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        #[non_exhaustive]
        pub struct MeasuredConstants {$(
            $(#[$doc])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $name: Option<f64>,
        )*}

        impl Constants {
            /// All constants with their names.
            pub fn list(&self) -> Vec<(&'static str, f64)> {
                vec![$((stringify!($name), self.$name)),*]
            }

            /// Sets the constant called `name`; false if there is none.
            pub fn set(&mut self, name: &str, value: f64) -> bool {
                match name {
                    $(stringify!($name) => self.$name = value,)*
                    _ => return false,
                }
                true
            }

            /// These constants, with those that were measured.
            #[must_use]
            pub fn with(mut self, measured: &MeasuredConstants) -> Self {
                $(self.$name = measured.$name.filter(|value| value.is_finite() && *value >= 0.0).unwrap_or(self.$name);)*
                self
            }
        }

        impl MeasuredConstants {
            /// The constants that were measured, with their names.
            pub fn list(&self) -> Vec<(&'static str, f64)> {
                [$((stringify!($name), self.$name)),*].into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
            }

            /// Sets the constant called `name`; false if there is none.
            pub fn set(&mut self, name: &str, value: f64) -> bool {
                match name {
                    $(stringify!($name) => self.$name = Some(value),)*
                    _ => return false,
                }
                true
            }

            /// Whether nothing was measured.
            pub fn is_empty(&self) -> bool {
                *self == MeasuredConstants::default()
            }

            setters! {$($(#[$doc])* $name(value: f64) = Some(value);)*}
        }
    };
}

constants! {
    /// Seconds per operation (5 n log2 n a line) of f64 lines that are adjacent in memory, in cache, in vectors of
    /// 64 bytes.
    flop_s = 2e-11;
    /// The same of contiguous lines, which are transposed in registers.
    contiguous_flop_s = 2.7e-11;
    /// How arithmetic slows down with the number of busy cores, which share power and, in pairs, units: an exponent.
    busy_flop = 0.0;
    /// How far the speeds of busy cores are apart, relative to their mean. Threads of a rank share out their blocks, but
    /// ranks have boxes of their own, and the slowest of them is waited for.
    uneven = 0.0;
    /// Seconds of a block of lines, besides its lines.
    block_s = 1.7e-6;
    /// Seconds of a pass, besides its blocks: on a GPU, the launch of a kernel.
    pass_s = 0.0;
    /// The part of the shorter of arithmetic and memory access that the longer one hides, from 0 to 1.
    overlap = 0.63;
    /// The same in passes of several axes: the planes between their transforms are neither loaded nor stored meanwhile.
    plane_overlap = 0.63;
    /// Bytes per second from and to the level-2 cache.
    level2_bytes_s = 42e9;
    /// Bytes per second from and to the last-level cache, of one core.
    last_level_bytes_s = 88e9;
    /// Bytes per second from and to the last-level cache, of a core among as many as there are.
    last_level_busy_bytes_s = 34e9;
    /// Bytes per second from and to memory, of one core alone.
    memory_bytes_s = 11e9;
    /// Bytes per second from and to memory, of all cores of a node.
    memory_node_bytes_s = 200e9;
    /// Seconds of each contiguous run in the last-level cache, besides its bytes.
    run_last_level_s = 22e-9;
    /// Seconds of each contiguous run in memory, besides its bytes.
    run_memory_s = 22e-9;
    /// Seconds of each run in memory that is a page (4 KiB) or more from the run before: processors do not fetch
    /// ahead across pages, and memory opens a row for each.
    page_s = 1.6e-9;
    /// The part of the last-level cache that ranks have for themselves, from 0 to 1.
    last_level_part = 0.42;
    /// The times that a cache line is loaded again if rows of a plane meet in few sets of the level-2 cache.
    conflict = 0.01;
    /// The same of rows of a block of lines, which kernels load together.
    line_conflict = 0.01;
    /// The same besides, where many threads of a rank work on neighbouring lines: they fetch each other's ahead.
    neighbours = 0.0;
    /// What staging such rows costs instead, relative to a core's loading them once from memory, alone.
    staging = 0.01;
    /// What runs that do not begin and end with cache lines cost besides, relative to their bytes.
    unaligned = 0.0;
    /// The part of rows that are not whole cache lines that is stored through the caches, where stores otherwise bypass them.
    partial = 0.0;
    /// Seconds of a cache line that two ranks store to: it changes cores.
    shared_line_s = 0.0;
    /// How the last-level cache replaces lines, from 0 to 1. 0: the oldest first, so that of an array of twice its size
    /// nothing stays; 1: at random, so that half of it stays.
    last_level_random = 0.0;
    /// The part of a cached store that costs as much again: the line is loaded before it is stored.
    allocate = 1.84;
    /// Speed of memory of other ranks of the node, relative to own memory.
    remote = 0.985;
    /// Seconds that a thread runs before another one gets its core, if there are more threads than cores.
    slice_s = 9e-3;
    /// The part of such a time slice that a barrier costs ranks that share cores: those that come first sleep, and wake when
    /// a core is free.
    slice_part = 0.5;
    /// Seconds in which all threads of a rank are woken.
    wake_s = 3e-6;
    /// Seconds of a barrier between two ranks; more ranks take as many times as the logarithm of their number.
    barrier_s = 2e-6;
    /// Seconds of a small message between ranks of a node.
    node_latency_s = 1e-6;
    /// Seconds between the starts of two messages to ranks of the node.
    node_gap_s = 0.5e-6;
    /// Bytes per second that a rank sends to ranks of its node.
    node_bytes_s = 5e9;
    /// Seconds of a small message between nodes.
    wire_latency_s = 2e-6;
    /// Seconds between the starts of two messages to other nodes.
    wire_gap_s = 1e-6;
    /// Bytes per second that a rank sends to other nodes, alone.
    wire_bytes_s = 10e9;
    /// Bytes per second that all ranks of a node send to other nodes.
    wire_node_bytes_s = 12e9;
    /// The part of the shorter of copies inside a node and transfers between nodes that the longer one hides, from 0
    /// to 1: 0 where cores do both, 1 where network cards read and write memory by themselves.
    copy_overlap = 0.0;
    /// Bytes per second that a codec encodes, before encoding.
    encode_bytes_s = 4e9;
    /// Bytes per second that a codec decodes, after decoding.
    decode_bytes_s = 5e9;
    /// Bytes after encoding, relative to those before.
    encoded_part = 0.5;
}
