//! Lengths into passes.

/// The radices of the passes for `n` points, and what is left where `n` has
/// prime factors that no radix divides.
pub(super) fn factors(n: usize, radices: &[usize]) -> (Vec<usize>, usize) {
    let mut passes = vec![];
    let mut rest = n;
    for &radix in radices.iter().filter(|radix| !radix.is_power_of_two()) {
        while rest.is_multiple_of(radix) {
            passes.push(radix);
            rest /= radix;
        }
    }
    let twos = rest.trailing_zeros() as usize;
    passes.extend(powers(twos, radices));
    (passes, rest >> twos)
}

/// Two to the `twos`, in passes of the first power of two listed or a little
/// less; or, where a larger one is listed too, one such pass for what is over.
fn powers(twos: usize, radices: &[usize]) -> Vec<usize> {
    let first = radices.iter().find(|radix| radix.is_power_of_two());
    let bits = first.map_or(1, |radix| radix.trailing_zeros() as usize);
    let over = bits + twos % bits;
    if over > bits && twos >= over && radices.contains(&(1 << over)) {
        let mut passes = vec![1 << bits; (twos - over) / bits];
        passes.insert(0, 1 << over);
        return passes;
    }
    let passes = twos.div_ceil(bits);
    (0..passes).map(|i| 1 << (twos * (i + 1) / passes - twos * i / passes)).rev().collect()
}

/// The smallest length from `least` on that has no prime factor above 5: these
/// have the fastest passes.
pub(super) fn smooth_from(least: usize) -> usize {
    (least..).find(|&n| factors(n, &[5, 3, 2]).1 == 1).expect("powers of two are smooth")
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

/// A number whose powers run through all residues of the prime `p` but zero.
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
    (1..p).find(|&g| primes.iter().all(|q| power(g, (p - 1) / q, p) != 1)).expect("every prime has one")
}
