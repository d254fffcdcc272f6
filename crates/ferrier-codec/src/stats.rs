//! Statistics of a chunk that encoders need: extremes and sums of squares.

use crate::float::{Float, Word};
use crate::isa::{Job, Runner};
use crate::pack::ROW;

/// The largest magnitude of a chunk, as bits.
pub(crate) struct LargestMagnitude<T: Float> {
    pub word: T::Word,
}

impl<T: Float> LargestMagnitude<T> {
    /// The exponent of the power of two that the chunk is multiplied by: 0 or [`Float::LIFT`].
    pub fn lifted(&self) -> i32 {
        let low = T::Word::from_u64(T::LOW as u64) << T::MANTISSA;
        if self.word < low && self.word > T::Word::ZERO { T::LIFT } else { 0 }
    }

    /// That power of two.
    pub fn lift(&self) -> T {
        T::power(self.lifted())
    }

    /// The exponent field of the largest value after lifting; that of 1 if all values are zero.
    pub fn field(&self) -> i32 {
        if self.word == T::Word::ZERO {
            return T::BIAS;
        }
        ((T::of_word(self.word) * self.lift()).word() >> T::MANTISSA).to_u64() as i32
    }

    /// The exponent of the largest value after lifting.
    pub fn exponent(&self) -> i32 {
        self.field() - T::BIAS
    }

    /// Whether it is far from both ends of the range.
    pub fn is_plain(&self) -> bool {
        self.lifted() == 0 && self.field() < 2 * T::BIAS
    }

    /// From this magnitude on the squares of errors, in units of the largest value, are normal floats.
    pub fn lowest(&self) -> T::Word {
        let field = (self.field() - T::DEPTH).max(0);
        T::Word::from_u64(field as u64) << T::MANTISSA
    }
}

/// Statistics of a chunk.
pub(crate) struct ChunkStats<T: Float> {
    /// The largest finite magnitude.
    pub top: LargestMagnitude<T>,
    /// Whether some values are not finite.
    pub special: bool,
    /// The smallest nonzero magnitude, minus one; all ones if all values are zero.
    pub least: T::Word,
}

/// Computes the statistics in one pass (two if some values are not finite).
pub(crate) fn chunk_stats<T: Float>(values: &[T], runner: Runner) -> ChunkStats<T> {
    let (word, least) = runner.run(Extremes(values));
    let special = word >= T::infinity();
    ChunkStats {
        top: if special { largest_finite(values) } else { LargestMagnitude { word } },
        special,
        least,
    }
}

/// The largest finite magnitude.
fn largest_finite<T: Float>(values: &[T]) -> LargestMagnitude<T> {
    let words = values.iter().map(|x| x.word() & T::magnitude()).filter(|w| *w < T::infinity());
    LargestMagnitude { word: words.max().unwrap_or(T::Word::ZERO) }
}

struct Extremes<'a, T>(&'a [T]);

impl<T: Float> Job for Extremes<'_, T> {
    type Out = (T::Word, T::Word);
    #[inline(always)]
    fn run(self) -> (T::Word, T::Word) {
        // Plain loops: for loops over rows the compiler emits gathers instead of loads.
        let (mut most, mut least) = (T::Word::ZERO, T::magnitude());
        if T::Word::BITS == 32 {
            // All instruction sets compare unsigned 32-bit words; shifting the sign out saves an operation.
            least = T::sign() | least;
            for x in self.0 {
                let twice = x.word() << 1;
                most = most.max(twice);
                least = least.min(twice.minus(T::Word::ONE));
            }
            return (most >> 1, least >> 1);
        }
        for x in self.0 {
            let word = x.word() & T::magnitude();
            most = most.larger(word);
            least = least.smaller(word.minus(T::Word::ONE) & T::magnitude());
        }
        (most, least)
    }
}

/// The largest of a row of magnitudes, by halving.
#[inline(always)]
pub(crate) fn row_max<W: Word>(row: &[W; ROW]) -> W {
    let a: [W; 8] = std::array::from_fn(|l| row[l].larger(row[l + 8]));
    let b: [W; 4] = std::array::from_fn(|l| a[l].larger(a[l + 4]));
    let c: [W; 2] = std::array::from_fn(|l| b[l].larger(b[l + 2]));
    c[0].larger(c[1])
}

/// Adds sums in `T` to sums in f64.
#[inline(always)]
pub(crate) fn widen<T: Float>(sums: &mut [f64; ROW], partial: &[T; ROW]) {
    for l in 0..ROW {
        sums[l] += partial[l].widened();
    }
}

/// The sum of a row, by halving.
#[inline(always)]
pub(crate) fn total(row: &[f64; ROW]) -> f64 {
    let a: [f64; 8] = std::array::from_fn(|l| row[l] + row[l + 8]);
    let b: [f64; 4] = std::array::from_fn(|l| a[l] + a[l + 4]);
    (b[0] + b[2]) + (b[1] + b[3])
}

/// The last, incomplete row, padded with zeros.
#[inline(always)]
pub(crate) fn padded<T: Float>(tail: &[T]) -> [T; ROW] {
    let mut row = [T::default(); ROW];
    row[..tail.len()].copy_from_slice(tail);
    row
}

/// The sum of the squares of `(a - b) * weight`, and whether any differ.
pub(crate) fn sum_of_differences<T: Float>(a: &[T], b: &[T], weight: f64, runner: Runner) -> (f64, bool) {
    runner.run(SumOfDifferences { a, b, weight })
}

struct SumOfDifferences<'a, T> {
    a: &'a [T],
    b: &'a [T],
    weight: f64,
}

impl<T: Float> Job for SumOfDifferences<'_, T> {
    type Out = (f64, bool);
    #[inline(always)]
    fn run(self) -> (f64, bool) {
        let (a, a_tail) = self.a.as_chunks::<ROW>();
        let (b, b_tail) = self.b.as_chunks::<ROW>();
        let (mut sums, mut lost) = ([0.0; ROW], [0; ROW]);
        let last = (padded(a_tail), padded(b_tail));
        for (a, b) in a.iter().zip(b).chain([(&last.0, &last.1)]) {
            for l in 0..ROW {
                let difference = a[l].widened() - b[l].widened();
                sums[l] += (difference * self.weight) * (difference * self.weight);
                lost[l] |= difference.to_bits() << 1;
            }
        }
        (total(&sums), lost.iter().any(|bits| *bits != 0))
    }
}

/// The factors of a value before it is squared.
#[derive(Clone, Copy)]
pub(crate) struct Weights<T> {
    pub lift: T,
    pub weight: f64,
}

/// The sum of the squares of `values * lift * weight`.
pub(crate) fn sum_of_squares<T: Float>(values: &[T], weights: Weights<T>, runner: Runner) -> f64 {
    runner.run(SumOfSquares(values, weights))
}

struct SumOfSquares<'a, T>(&'a [T], Weights<T>);

impl<T: Float> Job for SumOfSquares<'_, T> {
    type Out = f64;
    #[inline(always)]
    fn run(self) -> f64 {
        let SumOfSquares(values, Weights { lift, weight }) = self;
        let (rows, tail) = values.as_chunks::<ROW>();
        let mut sums = [0.0; ROW];
        let mut add = |row: &[T; ROW]| {
            for l in 0..ROW {
                let x = (row[l] * lift).widened() * weight;
                sums[l] += x * x;
            }
        };
        rows.iter().for_each(&mut add);
        add(&padded(tail));
        total(&sums)
    }
}
