//! Factorization of lengths into radices, and number theory for Rader's algorithm.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::pairs::pair_of;

/// Radices and the cost of a pass of each, in tenths of a cycle per element:
/// estimated from counts of loads, stores and arithmetic. Only ratios matter.
pub(super) type Radices = &'static [(usize, u32)];

/// The radices of the cheapest passes for `n` points, in order, and the
/// cofactor whose prime factors no radix divides (1 if there is none).
pub(super) fn factorize(n: usize, radices: Radices) -> (Vec<usize>, usize) {
    if let Some((first, last)) = pair_of(n, radices) {
        return (vec![first, last], 1);
    }
    let mut rest = n;
    for &(radix, _) in radices {
        while rest.is_multiple_of(radix) {
            rest /= radix;
        }
    }
    let mut known = BTreeMap::from([(1, (0, 1))]);
    cheapest(n / rest, radices, &mut known);
    let (mut passes, mut left) = (vec![], n / rest);
    while left > 1 {
        let radix = known[&left].1;
        passes.push(radix);
        left /= radix;
    }
    arrange(&mut passes);
    (passes, rest)
}

/// The order of passes: large radices first, but those that leave no registers for twiddles last, where there are none.
fn arrange(passes: &mut [usize]) {
    passes.sort_unstable_by_key(|&radix| (radix > 16, Reverse(radix)));
    // Contiguous lines use vectors of neighbours if their length divides the first radix and the last.
    let fits = |radix: &usize| radix.is_multiple_of(4);
    if passes.len() > 2 && passes.iter().filter(|radix| fits(radix)).count() > 1 {
        let last = passes.iter().rposition(fits).expect("there are two");
        passes[last..].rotate_left(1);
        let first = passes.iter().position(fits).expect("there are two");
        passes[..=first].rotate_right(1);
    }
}

/// The least cost of `n` points; `known` also records the radix of a pass that attains it.
fn cheapest(n: usize, radices: Radices, known: &mut BTreeMap<usize, (u32, usize)>) -> u32 {
    if let Some(&(cost, _)) = known.get(&n) {
        return cost;
    }
    let mut best = (u32::MAX, n);
    for &(radix, cost) in radices.iter().filter(|(radix, _)| n.is_multiple_of(*radix)) {
        best = best.min((cost.saturating_add(cheapest(n / radix, radices, known)), radix));
    }
    known.insert(n, best);
    best.0
}

/// The smallest length from `least` on without a prime factor above 5: such
/// lengths have the fastest passes.
pub(super) fn smooth_from(least: usize) -> usize {
    (least..).find(|&n| factorize(n, &[(2, 1), (3, 1), (5, 1)]).1 == 1).expect("powers of two are smooth")
}

/// Whether `n` is a prime.
pub(super) fn is_prime(n: usize) -> bool {
    n > 1 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

/// `base ** exponent % modulus`
pub(super) fn power(base: usize, exponent: usize, modulus: usize) -> usize {
    let (mut result, mut square, mut exponent) = (1, base as u128, exponent);
    let modulus = modulus as u128;
    while exponent > 0 {
        if exponent % 2 == 1 {
            result = result * square % modulus;
        }
        square = square * square % modulus;
        exponent /= 2;
    }
    (result % modulus) as usize
}

/// A primitive root: its powers are all nonzero residues of the prime `p`.
pub(super) fn primitive_root(p: usize) -> usize {
    let mut primes = vec![];
    let mut rest = p - 1;
    for d in 2.. {
        if d * d > rest {
            break;
        }
        if rest.is_multiple_of(d) {
            primes.push(d);
            while rest.is_multiple_of(d) {
                rest /= d;
            }
        }
    }
    if rest > 1 {
        primes.push(rest);
    }
    (1..p)
        .find(|&g| primes.iter().all(|q| power(g, (p - 1) / q, p) != 1))
        .expect("every prime has a primitive root")
}
