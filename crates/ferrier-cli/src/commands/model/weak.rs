//! Shapes that grow with the number of ranks.

use crate::arguments::UserShape;
use crate::failure::Outcome;

/// The shape for `ranks` ranks that has as many points a rank as `shape` for `first`: all axes grow alike, to lengths
/// with small prime factors.
///
/// # Errors
/// A shape that is too large.
pub fn grown(shape: &UserShape, first: usize, ranks: usize) -> Outcome<UserShape> {
    let lengths = shape.lengths();
    let factor = (ranks as f64 / first as f64).powf(1.0 / lengths.len() as f64);
    let grown: Vec<usize> = lengths.iter().map(|&n| smooth(n as f64 * factor)).collect();
    UserShape::new(&grown)
}

/// The number with no prime factor but 2, 3 and 5 that is nearest to `length`, relatively.
fn smooth(length: f64) -> usize {
    let is_smooth = |n: usize| {
        let mut rest = n;
        for prime in [2, 3, 5] {
            while rest.is_multiple_of(prime) {
                rest /= prime;
            }
        }
        rest == 1
    };
    let target = length.round().max(1.0) as usize;
    let far = |n: usize| (n as f64 / length).ln().abs();
    let below = (1..=target).rev().find(|&n| is_smooth(n)).unwrap_or(1);
    let above = (target..2 * target + 2).find(|&n| is_smooth(n)).unwrap_or(target);
    if far(below) <= far(above) { below } else { above }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_grow_in_proportion() {
        let shape: UserShape = "256".parse().unwrap();
        assert_eq!(grown(&shape, 8, 8).unwrap().shape(), [256; 3]);
        assert_eq!(grown(&shape, 8, 64).unwrap().shape(), [512; 3]);
        assert_eq!(grown(&shape, 8, 16).unwrap().shape(), [324; 3]);
        assert_eq!([smooth(7.0), smooth(11.0), smooth(1e-3)], [8, 12, 1]);
    }
}
