//! Lengths that two butterflies transform, whose radices the compiler knows.

/// Calls a macro with the pairs of radices, of the first and of the last pass: lengths from 18 to 128 that users have.
macro_rules! with_pairs {
    ($name:ident; $($arguments:tt)*) => {
        $name!(@ $($arguments)*; (9 2) (5 4) (7 4) (10 3) (8 4) (12 3) (10 4) (12 4) (10 5) (15 4) (8 8) (9 8) (16 5) (12 8)
            (10 10) (15 8) (16 8))
    };
}
pub(super) use with_pairs;

macro_rules! table {
    (@; $(($a:literal $b:literal))*) => { &[$(($a, $b)),*] };
}
const PAIRS: &[(usize, usize)] = with_pairs!(table;);

/// The pair of radices for lines of `n` points.
pub(super) fn pair_of(n: usize, radices: &[(usize, u32)]) -> Option<(usize, usize)> {
    let has = |radix: usize| radices.iter().any(|&(listed, _)| listed == radix);
    PAIRS.iter().copied().find(|&(a, b)| a * b == n && has(a) && has(b))
}
