//! Ranks, nodes and links that are slow.

use std::str::FromStr;

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
