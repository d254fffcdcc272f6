//! Ranks, nodes and links that are slow.

use std::str::FromStr;

use clap::Args;
use ferrier_model::sim::SimOptions;

/// What is slow.
#[derive(Args, Clone, Debug, Default)]
pub struct SlowArgs {
    /// Passes of rank R take F times as long
    #[arg(long, value_name = "R=F,..", value_delimiter = ',')]
    pub slow_rank: Vec<Slow>,
    /// Passes of all ranks of node N take F times as long
    #[arg(long, value_name = "N=F,..", value_delimiter = ',')]
    pub slow_node: Vec<Slow>,
    /// The links of node N are F times as slow: 2 if one of two is broken
    #[arg(long, value_name = "N=F,..", value_delimiter = ',')]
    pub slow_link: Vec<Slow>,
}

impl SlowArgs {
    /// The options of a simulation without noise.
    pub fn options(&self) -> SimOptions {
        let list = |slow: &[Slow]| slow.iter().map(|slow| (slow.number, slow.factor)).collect();
        SimOptions::default()
            .slow_ranks(list(&self.slow_rank))
            .slow_nodes(list(&self.slow_node))
            .slow_links(list(&self.slow_link))
    }
}

/// A number and how many times as long things take there, such as `3=2`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    /// The rank or the node.
    pub number: usize,
    /// The factor.
    pub factor: f64,
}

impl FromStr for Slow {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not like 3=2, a number and a factor above 0");
        let (number, factor) = text.split_once('=').ok_or_else(wrong)?;
        let slow = Slow {
            number: number.trim().parse().map_err(|_| wrong())?,
            factor: factor.trim().parse().map_err(|_| wrong())?,
        };
        if slow.factor > 0.0 && slow.factor.is_finite() { Ok(slow) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_factors_are_parsed() {
        assert_eq!("3=2.5".parse(), Ok(Slow { number: 3, factor: 2.5 }));
        for bad in ["", "3", "=2", "3=", "3=0", "3=-1", "3=inf", "x=2"] {
            assert!(bad.parse::<Slow>().is_err(), "{bad}");
        }
    }
}
