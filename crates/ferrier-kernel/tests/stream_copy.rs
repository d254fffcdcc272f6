//! Copies of rows with non-temporal stores.

use ferrier_kernel::StreamCopy;

/// For any number of cache lines per step and any alignment, every scalar is
/// copied, and nothing outside the rows is written.
#[test]
fn all_rows_are_copied() {
    for (row, steps, first, lines) in
        [(65, [80, 65], 0, 1), (130, [144, 130], 3, 2), (7, [7, 9], 1, 3), (64, [72, 64], 0, 100)]
    {
        let rows = 5;
        let from: Vec<f64> = (0..rows * steps[0]).map(|i| i as f64 + 1.0).collect();
        let mut to = vec![0.0f64; first + rows * steps[1] + 8];
        // SAFETY: both have room for all rows; this function owns them.
        let mut copy = unsafe { StreamCopy::new(from.as_ptr(), to[first..].as_mut_ptr(), row, rows, steps) };
        let mut calls = 0;
        while !copy.is_empty() {
            copy.advance(lines);
            calls += 1;
            assert!(calls <= rows * row, "the copy does not advance");
        }
        assert!(calls >= rows * row / (8 * lines), "too much per step");
        ferrier_kernel::fence();
        for (i, &x) in to.iter().enumerate() {
            let (r, k) = (i.wrapping_sub(first) / steps[1], i.wrapping_sub(first) % steps[1]);
            let expected = if i >= first && r < rows && k < row { from[r * steps[0] + k] } else { 0.0 };
            assert_eq!(x, expected, "scalar {k} of row {r}");
        }
    }
}
