//! This machine as data for the cost model.

use std::sync::OnceLock;

use super::info::{Cache, caches, cores, last_level_bytes, level2, processor};
use super::pages::huge_page_setting;
use ferrier_plan::cost::{CacheShape, Machine};

/// This machine as data for the cost model: what the system says of it, and the constants that are assumed for its
/// processor. Nothing is measured. Reads files under /proc and /sys, once.
pub fn model() -> &'static Machine {
    static MODEL: OnceLock<Machine> = OnceLock::new();
    MODEL.get_or_init(|| {
        let vector_bytes = match ferrier_kernel::simd() {
            Ok("avx512") => 64,
            Ok("avx2") => 32,
            _ => 16,
        };
        let huge = ["always", "madvise"].contains(&huge_page_setting());
        let last = caches().into_iter().max_by_key(|cache| cache.bytes);
        let shape = |cache: &Cache| CacheShape::new(cache.bytes, cache.ways, cache.cores);
        let last = last.as_ref().map_or(CacheShape::new(last_level_bytes(), 16, cores()), shape);
        Machine::of_family(Machine::family_of(&processor(), vector_bytes))
            .cores(cores())
            .level2(shape(level2()))
            .last_level(last)
            .page_bytes(if huge { 2 << 20 } else { 4 << 10 })
            .vector_bytes(vector_bytes)
    })
}
