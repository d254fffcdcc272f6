//! Constants assumed for processor families.

use super::cache_shape::CacheShape;
use super::constants::Constants;

/// A processor family.
pub(super) struct Family {
    pub name: &'static str,
    pub cores: usize,
    pub level2: CacheShape,
    pub last_level: CacheShape,
    pub vector_bytes: usize,
    pub constants: fn() -> Constants,
}

/// The family of unknown processors.
pub(super) const DEFAULT: &str = "generic";

const fn cache(bytes: usize, ways: usize, cores: usize) -> CacheShape {
    CacheShape { bytes, ways, cores }
}

/// All families; the first one is [`DEFAULT`].
pub(super) static FAMILIES: &[Family] = &[
    Family {
        name: DEFAULT,
        cores: 16,
        level2: cache(1 << 20, 8, 1),
        last_level: cache(32 << 20, 16, 16),
        vector_bytes: 32,
        constants: Constants::default,
    },
    // Fitted to 2 and 16 cores of Sapphire Rapids (2 MiB level 2 of 16 ways, mesh of last-level slices).
    Family {
        name: "intel-avx512",
        cores: 16,
        level2: cache(2 << 20, 16, 1),
        last_level: cache(64 << 20, 15, 32),
        vector_bytes: 64,
        constants: || Constants {
            flop_s: 2.25e-11,
            contiguous_flop_s: 2.1e-11,
            block_s: 1.33e-6,
            busy_flop: 0.24,
            uneven: 0.15,
            level2_bytes_s: 150e9,
            last_level_bytes_s: 16.5e9,
            last_level_busy_bytes_s: 30e9,
            memory_bytes_s: 15e9,
            memory_node_bytes_s: 102e9,
            run_last_level_s: 27e-9,
            run_memory_s: 6.3e-9,
            page_s: 8.6e-9,
            last_level_part: 0.18,
            last_level_random: 1.0,
            overlap: 0.67,
            plane_overlap: 0.68,
            conflict: 1.6,
            line_conflict: 0.0342,
            neighbours: 2.02,
            staging: 0.641,
            unaligned: 0.338,
            allocate: 0.524,
            remote: 1.0,
            slice_s: 3.6e-3,
            ..Constants::default()
        },
    },
    Family {
        name: "intel-avx2",
        cores: 8,
        level2: cache(256 << 10, 4, 1),
        last_level: cache(16 << 20, 16, 8),
        vector_bytes: 32,
        constants: || Constants { memory_node_bytes_s: 40e9, ..Constants::default() },
    },
    // Zen 2 to 4: small fast last-level caches, one of each 8 cores.
    Family {
        name: "amd-zen",
        cores: 16,
        level2: cache(1 << 20, 8, 1),
        last_level: cache(32 << 20, 16, 8),
        vector_bytes: 64,
        constants: zen4,
    },
    // Zen 5: as before, with wider arithmetic and faster memory.
    Family {
        name: "amd-zen5",
        cores: 16,
        level2: cache(1 << 20, 16, 1),
        last_level: cache(32 << 20, 16, 8),
        vector_bytes: 64,
        // Between what `ferrier tune --measure-machine` finds on 2 cores in short and long runs; the others are those of a Zen 4.
        constants: || Constants {
            flop_s: 9e-12,
            contiguous_flop_s: 1.6e-11,
            block_s: 0.44e-6,
            overlap: 0.7,
            plane_overlap: 0.8,
            level2_bytes_s: 115e9,
            last_level_bytes_s: 90e9,
            last_level_busy_bytes_s: 120e9,
            memory_bytes_s: 50e9,
            memory_node_bytes_s: 200e9,
            run_last_level_s: 9e-9,
            run_memory_s: 4e-9,
            page_s: 1.55e-9,
            shared_line_s: 40e-9,
            allocate: 1.2,
            ..zen4()
        },
    },
    Family {
        name: "arm-neon",
        cores: 16,
        level2: cache(1 << 20, 8, 1),
        last_level: cache(32 << 20, 16, 16),
        vector_bytes: 16,
        constants: || Constants { page_s: 3e-9, ..Constants::default() },
    },
];

/// Fitted to 2 cores of a Zen 4, in a quiet and in a busy session. Staging makes cubes from 64^3 to 256^3 a sixth to a fifth
/// slower there.
fn zen4() -> Constants {
    Constants {
        flop_s: 2.05e-11,
        contiguous_flop_s: 2.4e-11,
        block_s: 0.55e-6,
        overlap: 0.78,
        plane_overlap: 0.815,
        last_level_busy_bytes_s: 88e9,
        last_level_part: 0.8,
        memory_bytes_s: 31.5e9,
        run_memory_s: 14e-9,
        unaligned: 0.02,
        partial: 1.0,
        shared_line_s: 28e-9,
        last_level_random: 0.02,
        conflict: 0.1,
        line_conflict: 0.1,
        staging: 0.5,
        allocate: 1.78,
        slice_s: 2e-3,
        slice_part: 0.75,
        ..Constants::default()
    }
}

/// The family called `name`; the default one if there is none.
pub(super) fn find(name: &str) -> &'static Family {
    FAMILIES.iter().find(|family| family.name == name).unwrap_or(&FAMILIES[0])
}

/// The family of a processor by its model name, followed by the number of its family if that is known: virtual machines hide
/// the model.
pub(super) fn of_processor(processor: &str, vector_bytes: usize) -> &'static str {
    let name = processor.to_ascii_lowercase();
    let is = |word: &str| name.contains(word);
    match vector_bytes {
        _ if is("amd") && is("family 26") => "amd-zen5",
        _ if is("amd") || is("epyc") || is("ryzen") => "amd-zen",
        64 if is("intel") || is("xeon") => "intel-avx512",
        32 if is("intel") || is("xeon") => "intel-avx2",
        16 if is("arm") || is("neoverse") || is("grace") => "arm-neon",
        _ => DEFAULT,
    }
}
