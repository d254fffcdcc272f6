//! What is asked of a chunk before it is encoded: how large, what norm.

use crate::isa::{Job, Runner};
use crate::number::{Number, Word};
use crate::pack::ROW;

/// The largest magnitude of a chunk, as bits.
pub(crate) struct Largest<T: Number> {
    pub word: T::Word,
}

impl<T: Number> Largest<T> {
    /// The power of two by which the chunk is lifted: 0 or [`Number::LIFT`].
    pub fn lifted(&self) -> i32 {
        let low = T::Word::from_u64(T::LOW as u64) << T::MANTISSA;
        if self.word < low && self.word > T::Word::ZERO { T::LIFT } else { 0 }
    }

    /// That power.
    pub fn lift(&self) -> T {
        T::power(self.lifted())
    }

    /// The exponent field of the largest value after lifting; that of 1 where all are zero.
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

    /// Is it far from both ends of the range?
    pub fn is_plain(&self) -> bool {
        self.lifted() == 0 && self.field() < 2 * T::BIAS
    }

    /// From this magnitude on the squares of errors, in units of the largest value, are normal numbers.
    pub fn lowest(&self) -> T::Word {
        let field = (self.field() - T::DEPTH).max(0);
        T::Word::from_u64(field as u64) << T::MANTISSA
    }
}

/// What is known of a chunk before it is encoded.
pub(crate) struct Survey<T: Number> {
    /// The largest of the finite magnitudes.
    pub top: Largest<T>,
    /// Is there anything that is not finite?
    pub special: bool,
    /// The smallest magnitude but zero, less one; all ones if there are but zeros.
    pub least: T::Word,
}

/// Looks at all values once (twice if some are not finite).
pub(crate) fn survey<T: Number>(values: &[T], runner: Runner) -> Survey<T> {
    let (word, least) = runner.run(Extremes(values));
    let special = word >= T::infinity();
    Survey { top: if special { largest_finite(values) } else { Largest { word } }, special, least }
}

/// The largest among what is finite.
fn largest_finite<T: Number>(values: &[T]) -> Largest<T> {
    let words = values.iter().map(|x| x.word() & T::magnitude()).filter(|w| *w < T::infinity());
    Largest { word: words.max().unwrap_or(T::Word::ZERO) }
}

struct Extremes<'a, T>(&'a [T]);

impl<T: Number> Job for Extremes<'_, T> {
    type Out = (T::Word, T::Word);
    #[inline(always)]
    fn run(self) -> (T::Word, T::Word) {
        // Plain loops: over rows of lanes the compiler gathers instead of loading.
        let (mut most, mut least) = (T::Word::ZERO, T::magnitude());
        if T::Word::BITS == 32 {
            // Unsigned words of 32 bits are compared everywhere: shifting the sign out is one step less.
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

/// The largest of a row of magnitudes, halving it.
#[inline(always)]
pub(crate) fn top<W: Word>(row: &[W; ROW]) -> W {
    let a: [W; 8] = std::array::from_fn(|l| row[l].larger(row[l + 8]));
    let b: [W; 4] = std::array::from_fn(|l| a[l].larger(a[l + 4]));
    let c: [W; 2] = std::array::from_fn(|l| b[l].larger(b[l + 2]));
    c[0].larger(c[1])
}

/// Adds the sums of a few rows.
#[inline(always)]
pub(crate) fn widen<T: Number>(sums: &mut [f64; ROW], few: &[T; ROW]) {
    for l in 0..ROW {
        sums[l] += few[l].widened();
    }
}

/// The sum of a row, halving it.
#[inline(always)]
pub(crate) fn total(row: &[f64; ROW]) -> f64 {
    let a: [f64; 8] = std::array::from_fn(|l| row[l] + row[l + 8]);
    let b: [f64; 4] = std::array::from_fn(|l| a[l] + a[l + 4]);
    (b[0] + b[2]) + (b[1] + b[3])
}

/// The values of a last, incomplete row, zeros after them.
#[inline(always)]
pub(crate) fn padded<T: Number>(tail: &[T]) -> [T; ROW] {
    let mut row = [T::default(); ROW];
    row[..tail.len()].copy_from_slice(tail);
    row
}

/// The sum of the squares of `(a - b) * weight`, and whether any differ.
pub(crate) fn sum_of_differences<T: Number>(a: &[T], b: &[T], weight: f64, runner: Runner) -> (f64, bool) {
    runner.run(SumOfDifferences { a, b, weight })
}

struct SumOfDifferences<'a, T> {
    a: &'a [T],
    b: &'a [T],
    weight: f64,
}

impl<T: Number> Job for SumOfDifferences<'_, T> {
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

/// By what a value is multiplied before it is squared.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<T> {
    pub lift: T,
    pub weight: f64,
}

/// The sum of the squares of `values * lift * weight`.
pub(crate) fn sum_of_squares<T: Number>(values: &[T], lanes: Lanes<T>, runner: Runner) -> f64 {
    runner.run(SumOfSquares(values, lanes))
}

struct SumOfSquares<'a, T>(&'a [T], Lanes<T>);

impl<T: Number> Job for SumOfSquares<'_, T> {
    type Out = f64;
    #[inline(always)]
    fn run(self) -> f64 {
        let SumOfSquares(values, Lanes { lift, weight }) = self;
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
