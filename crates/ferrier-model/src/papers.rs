//! The communication model of the heFFTe paper: equations 1 to 3.
//!
//! A transform of N points computes 5 N log2 N operations and moves all N elements, of `alpha` bytes, in each of `r`
//! reshapes. The paper counts all bytes, also those that stay inside a node: its peak is too low by as much
//! ([`Modelled::network_gflops`](crate::Modelled) counts what leaves a node).

/// Reshapes of the paper: bricks, three layouts of pencils, bricks.
pub const RESHAPES: f64 = 4.0;
/// Bytes of a complex element of f64.
pub const ELEMENT_BYTES: f64 = 16.0;

/// Equation 1: operations for each byte that a node sends, with `nodes` nodes; N = `points`.
pub fn intensity(points: f64, nodes: f64, element_bytes: f64, reshapes: f64) -> f64 {
    5.0 * nodes * points.log2() / (element_bytes * reshapes)
}

/// Equation 2: peak operations per second where each node sends `bytes_s` bytes per second.
pub fn peak_flops(points: f64, nodes: f64, element_bytes: f64, reshapes: f64, bytes_s: f64) -> f64 {
    intensity(points, nodes, element_bytes, reshapes) * bytes_s
}

/// Equation 3: the peak of Summit, 25 GB/s a node, for complex f64 and four reshapes, in Gflop/s.
pub fn peak_summit_gflops(points: f64, nodes: f64) -> f64 {
    peak_flops(points, nodes, ELEMENT_BYTES, RESHAPES, 25e9) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1.953 P log2 N Gflop/s, and 58.6 a node for 1024^3: the digits of the paper.
    #[test]
    fn equation_3_is_reproduced_exactly() {
        let points = 1024f64.powi(3);
        for nodes in [1.0, 4.0, 32.0, 512.0, 1024.0] {
            assert_eq!(peak_summit_gflops(points, nodes), nodes * 5.0 * 30.0 * 25.0 / 64.0);
        }
        let digits = |value: f64| (value * 1e3).round() / 1e3;
        assert_eq!(digits(peak_summit_gflops(2.0, 1.0)), 1.953);
        assert_eq!((peak_summit_gflops(points, 1.0) * 10.0).round() / 10.0, 58.6);
        assert_eq!(intensity(points, 1.0, ELEMENT_BYTES, RESHAPES), 5.0 * 30.0 / 64.0);
    }
}
