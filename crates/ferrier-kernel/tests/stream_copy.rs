//! Rows that leave a cache.

use ferrier_kernel::StreamCopy;

/// However few lines go at a time, and wherever rows begin, every number
/// arrives, and nothing beside them is touched.
#[test]
fn all_rows_arrive() {
    for (row, steps, first, share) in
        [(65, [80, 65], 0, 1), (130, [144, 130], 3, 2), (7, [7, 9], 1, 3), (64, [72, 64], 0, 100)]
    {
        let rows = 5;
        let from: Vec<f64> = (0..rows * steps[0]).map(|i| i as f64 + 1.0).collect();
        let mut to = vec![0.0f64; first + rows * steps[1] + 8];
        // SAFETY: both are long enough, and nobody else looks.
        let mut leaving =
            unsafe { StreamCopy::new(from.as_ptr(), to[first..].as_mut_ptr(), row, rows, steps) };
        let mut calls = 0;
        while !leaving.is_empty() {
            leaving.advance(share);
            calls += 1;
            assert!(calls <= rows * row, "no more of them leave");
        }
        assert!(calls >= rows * row / (8 * share), "too much at a time");
        ferrier_kernel::fence();
        for (i, &x) in to.iter().enumerate() {
            let (r, k) = (i.wrapping_sub(first) / steps[1], i.wrapping_sub(first) % steps[1]);
            let expected = if i >= first && r < rows && k < row { from[r * steps[0] + k] } else { 0.0 };
            assert_eq!(x, expected, "number {k} of row {r}");
        }
    }
}
