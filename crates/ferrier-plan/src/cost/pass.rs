//! The cost of one pass.

use super::access::{Access, LINE};
use super::constants::Constants;
use super::machine::{Machine, held};

/// Lines of one transform in a pass.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LineWork {
    /// Operations, by the usual count of 5 n log2 n a line, weighted by the difficulty of the length.
    pub flops: f64,
    /// Whether lines are contiguous in memory, so that they are transposed in registers.
    pub contiguous: bool,
    /// Blocks of lines.
    pub blocks: f64,
    /// Bytes of a line that is loaded and stored.
    pub bytes: f64,
}

/// What one rank does in a pass.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PassShape {
    /// The transforms, in order; none for a copy.
    pub lines: Vec<LineWork>,
    /// What is loaded.
    pub load: Access,
    /// What is stored.
    pub store: Access,
    /// Bytes of cache lines of a plane between two fused transforms.
    pub plane_bytes: f64,
    /// Planes or blocks that are shared out over the threads.
    pub units: f64,
    /// Whether stores bypass the caches, those of the pass before too, so that arrays are in memory.
    pub stream: bool,
    /// Whether lines return to where they were loaded from, which is in cache.
    pub in_place: bool,
    /// Whether rows of the next block are staged, which avoids conflicts in cache sets.
    pub staging: bool,
    /// Bytes of a scalar.
    pub scalar_bytes: usize,
    /// Threads of the rank.
    pub threads: usize,
    /// Ranks on its node.
    pub ranks_on_node: usize,
    /// Whether ranks that are done help the others, so that none waits for the slowest.
    pub helped: bool,
    /// Bytes on the node that are accessed until an array is accessed again.
    pub node_bytes: f64,
}

/// The seconds of a pass, and where they go.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PassCost {
    /// Seconds of the pass, while all ranks of the node do the same.
    pub seconds: f64,
    /// Seconds of the pass if every thread has a core of its own.
    pub alone: f64,
    /// Of a core: arithmetic, and caches between fused transforms.
    pub compute: f64,
    /// Of a core: loads.
    pub load: f64,
    /// Of a core: stores.
    pub store: f64,
}

impl PassCost {
    /// Seconds until the rank itself is done: of ranks that share a core each runs for a time slice, so that a short
    /// pass is not interrupted. The others are done after [`seconds`](Self::seconds).
    pub fn own_seconds(&self, constants: &Constants) -> f64 {
        let part = 1.0 / (1.0 + (constants.slice_s / self.alone.max(1e-9)).powi(2));
        self.alone + (self.seconds - self.alone) * part
    }

    /// Seconds after the rank itself is done that the next barrier, message or the end waits: for ranks that share the
    /// core, and for their turns.
    pub fn late_seconds(&self, constants: &Constants) -> f64 {
        self.seconds - self.own_seconds(constants) + self.turn_seconds(constants)
    }

    /// Seconds that the next barrier costs ranks that share cores, besides the wait for the last of them.
    fn turn_seconds(&self, constants: &Constants) -> f64 {
        let shares = self.seconds > self.alone;
        let part = if shares { self.alone / (self.alone + constants.slice_s) } else { 0.0 };
        part * constants.slice_part * constants.slice_s
    }
}

/// Where an array is, as parts of its bytes in the level-2 cache, the last level and memory.
#[derive(Clone, Copy)]
struct Residence([f64; 3]);

impl Residence {
    fn new(core_bytes: f64, node_bytes: f64, machine: &Machine) -> Residence {
        let near = held(core_bytes, machine.level2.bytes as f64 / machine.level2.cores as f64);
        let last = machine.last_level_kept(node_bytes).max(near);
        Residence([near, last - near, 1.0 - last])
    }

    fn sum(self, costs: [f64; 3]) -> f64 {
        self.0.iter().zip(costs).map(|(part, cost)| part * cost).sum()
    }
}

/// Seconds per byte of a core at each level while `active` cores of the node do the same.
fn byte_seconds(machine: &Machine, active: f64) -> [f64; 3] {
    let Constants { level2_bytes_s, last_level_bytes_s, last_level_busy_bytes_s, .. } = machine.constants;
    let Constants { memory_bytes_s, memory_node_bytes_s, .. } = machine.constants;
    let cores = machine.cores.max(2) as f64;
    let busy = ((active - 1.0) / (cores - 1.0)).clamp(0.0, 1.0);
    [
        1.0 / level2_bytes_s,
        (1.0 - busy) / last_level_bytes_s + busy / last_level_busy_bytes_s,
        1.0 / memory_bytes_s.min(memory_node_bytes_s / active),
    ]
}

impl PassShape {
    /// The predicted cost on a machine.
    pub fn cost(&self, machine: &Machine) -> PassCost {
        let constants = &machine.constants;
        let wanted = (self.ranks_on_node * self.threads).max(1) as f64;
        let active = wanted.min(machine.cores as f64);
        // The last round of units may leave threads idle.
        let threads = self.threads.max(1) as f64;
        let rounds = (self.units / threads).ceil().max(1.0);
        let sharing = if self.units > 0.0 { self.units / rounds } else { threads }.clamp(1.0, threads);
        let own = self.load.bytes + if self.in_place { 0.0 } else { self.store.bytes };
        let place = match self.stream {
            true => Residence([0.0, 0.0, 1.0]),
            false => Residence::new(own / threads, self.node_bytes, machine),
        };
        let byte = byte_seconds(machine, active);
        // Staging takes rows that meet in few sets out of their way. Stores write whole cache lines.
        let conflict = match self.staging {
            true => machine.staging_seconds(),
            false if self.lines.len() > 1 => constants.conflict * place.sum(byte),
            false => machine.conflict_part(threads) * place.sum(byte),
        };
        let load = self.end(&self.load, place, byte, machine) + self.load.conflicts * LINE * conflict;
        // Staged lines are stored past the caches also where they return.
        let returns = self.in_place && !(self.staging && self.stream && self.load.conflicts > 0.0);
        let store = if returns { 0.0 } else { self.end(&self.store, place, byte, machine) };
        // A cached store loads the line first, and lines that return are written back; one past the caches goes to memory at
        // once.
        let cached =
            if self.stream && !returns { constants.partial * self.store.partial } else { self.store.bytes };
        let store = store + constants.allocate * place.sum([0.0, byte[1], byte[2]]) * cached;
        let shared =
            if self.ranks_on_node > 1 { constants.shared_line_s * self.store.shared_lines } else { 0.0 };
        // The slowest of so many ranks is further from their mean the more there are, and nearer with more threads each.
        let uneven = if self.helped { 0.0 } else { constants.uneven };
        let slowest = 1.0 + uneven * ((active / threads).max(1.0).ln() / threads).sqrt();
        let compute = self.compute(byte, machine) * active.powf(constants.busy_flop) * slowest;
        let memory = load + store + shared;
        let overlap = if self.lines.len() > 1 { constants.plane_overlap } else { constants.overlap };
        let core = memory.max(compute) + (1.0 - overlap) * memory.min(compute);
        let wake = if self.threads > 1 { constants.wake_s } else { 0.0 };
        let alone = core / sharing + wake + constants.pass_s;
        // In this order it is exactly `alone` where no core is shared.
        PassCost { seconds: alone * (wanted / active), alone, compute, load, store }
    }

    /// Seconds of a core for the accesses at one end.
    fn end(&self, access: &Access, place: Residence, byte: [f64; 3], machine: &Machine) -> f64 {
        let constants = &machine.constants;
        let remote = access.remote * (1.0 / constants.remote.clamp(0.05, 1.0) - 1.0);
        let runs = place.sum([0.0, constants.run_last_level_s, constants.run_memory_s]) * access.runs;
        // Cache lines that were touched before, by another run: from the cache that still holds them.
        let again = (access.lines - access.bytes / LINE).max(0.0) * LINE;
        let active = (self.ranks_on_node * self.threads).min(machine.cores).max(1) as f64;
        let reuse = Residence::new(2.0 * access.reuse_bytes, active * access.reuse_bytes, machine);
        let again = again * reuse.sum(byte).min(place.sum(byte).max(byte[0]));
        // Pages of the smallest size are looked up as well.
        let lookup = if machine.page_bytes <= 4096 { 1.5 } else { 1.0 };
        let pages = place.sum([0.0, 0.2, 1.0]) * lookup * constants.page_s * access.pages;
        let unaligned = access.unaligned * constants.unaligned;
        (access.bytes + remote + unaligned) * place.sum(byte) + runs + again + pages
    }

    /// Seconds of a core for the arithmetic.
    fn compute(&self, byte: [f64; 3], machine: &Machine) -> f64 {
        let constants = &machine.constants;
        let width = (self.scalar_bytes as f64 / 8.0) * (64.0 / machine.vector_bytes.clamp(8, 64) as f64);
        let of = |work: &LineWork| {
            let flop = if work.contiguous { constants.contiguous_flop_s } else { constants.flop_s };
            work.flops * flop * width + work.blocks * constants.block_s + work.bytes * byte[0]
        };
        let between = self.lines.len().saturating_sub(1) as f64;
        let plane = Residence::new(self.plane_bytes, self.plane_bytes * machine.cores as f64, machine);
        let bytes = self.load.bytes.max(self.store.bytes);
        self.lines.iter().map(of).sum::<f64>() + between * 2.0 * bytes * (plane.sum(byte) - byte[0]).max(0.0)
    }
}
