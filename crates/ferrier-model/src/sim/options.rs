//! What disturbs a simulated machine.

use crate::error::{Error, Result};
use crate::job::Job;

/// Factors beyond are mistakes, and times would not add up in double precision.
const FACTORS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// What disturbs a simulated machine.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SimOptions {
    /// Passes take longer by a random part: the mean of its size, relative to the pass.
    pub noise: f64,
    /// Seed of the noise.
    pub seed: u64,
    /// Ranks whose passes take so many times as long.
    pub slow_ranks: Vec<(usize, f64)>,
    /// Nodes all of whose passes take so many times as long.
    pub slow_nodes: Vec<(usize, f64)>,
    /// Nodes whose links to the network are so many times as slow.
    pub slow_links: Vec<(usize, f64)>,
    /// Ranks, from 0 on, whose events are kept.
    pub recorded: usize,
}

impl SimOptions {
    /// Sets the mean size of random delays.
    #[must_use]
    pub fn noise(mut self, part: f64, seed: u64) -> Self {
        (self.noise, self.seed) = (part, seed);
        self
    }

    /// Sets ranks whose passes are slow.
    #[must_use]
    pub fn slow_ranks(mut self, ranks: Vec<(usize, f64)>) -> Self {
        self.slow_ranks = ranks;
        self
    }

    /// Sets nodes whose passes are slow.
    #[must_use]
    pub fn slow_nodes(mut self, nodes: Vec<(usize, f64)>) -> Self {
        self.slow_nodes = nodes;
        self
    }

    /// Sets nodes whose links are slow.
    #[must_use]
    pub fn slow_links(mut self, nodes: Vec<(usize, f64)>) -> Self {
        self.slow_links = nodes;
        self
    }

    /// Sets the number of ranks whose events are kept.
    #[must_use]
    pub fn recorded(mut self, ranks: usize) -> Self {
        self.recorded = ranks;
        self
    }

    /// How many times as long the passes of a rank take, without noise.
    pub(crate) fn slowness(&self, rank: usize, node: usize) -> f64 {
        product(&self.slow_ranks, rank) * product(&self.slow_nodes, node)
    }

    /// How many times as slow the links of a node are.
    pub(crate) fn link_slowness(&self, node: usize) -> f64 {
        product(&self.slow_links, node)
    }

    pub(crate) fn check(&self, job: &Job<'_>) -> Result<()> {
        let (ranks, nodes) = (job.ranks(), job.node_count());
        let lists = [
            ("rank", &self.slow_ranks, ranks),
            ("node", &self.slow_nodes, nodes),
            ("link of node", &self.slow_links, nodes),
        ];
        for (what, list, count) in lists {
            for (number, factor) in list {
                if *number >= count {
                    return Err(Error::Job(format!("slow {what} {number}: there are {count}")));
                }
                if !FACTORS.contains(factor) {
                    let (least, most) = (FACTORS.start(), FACTORS.end());
                    let message =
                        format!("slow {what} {number}: a factor from {least:e} to {most:e}, got {factor}");
                    return Err(Error::Job(message));
                }
            }
        }
        if !(0.0..=*FACTORS.end()).contains(&self.noise) {
            return Err(Error::Job(format!(
                "noise must be from 0 to {:e}, got {}",
                FACTORS.end(),
                self.noise
            )));
        }
        Ok(())
    }
}

/// The product of the factors of one rank or node.
fn product(list: &[(usize, f64)], number: usize) -> f64 {
    list.iter().filter(|(slow, _)| *slow == number).map(|(_, factor)| factor).product()
}
