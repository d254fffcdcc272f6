//! Seeded random numbers, and random fields over a global index.

use num_complex::Complex;

/// The mixing step of splitmix64.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A splitmix64 generator that prints its seed when the test that holds it
/// panics. `FERRIER_SEED=<number>` overrides every seed.
#[derive(Debug)]
pub struct Rng {
    state: u64,
    seed: u64,
    loud: bool,
}

impl Rng {
    /// A generator for a test, with `default_seed` unless `FERRIER_SEED` is set.
    ///
    /// # Panics
    /// If `FERRIER_SEED` is not a number.
    pub fn for_test(default_seed: u64) -> Self {
        let seed = match std::env::var("FERRIER_SEED") {
            Ok(text) => text.parse().expect("FERRIER_SEED is a number"),
            Err(_) => default_seed,
        };
        Rng { state: seed, seed, loud: true }
    }

    /// A generator with this seed, which prints nothing.
    pub fn new(seed: u64) -> Self {
        Rng { state: seed, seed, loud: false }
    }

    /// The seed it was made with.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `end`.
    ///
    /// # Panics
    /// If `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        assert!(end > 0, "nothing is below 0");
        (self.bits() % end as u64) as usize
    }

    /// A random element.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Permutes the items at random.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

impl Drop for Rng {
    fn drop(&mut self) {
        if self.loud && std::thread::panicking() {
            eprintln!("random seed: FERRIER_SEED={}", self.seed);
        }
    }
}

/// Random values that depend only on the seed, the array of a batch and the
/// global index: every rank can compute its own box, and the oracle all values.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    state: u64,
    bits: u32,
}

fn step(state: u64, word: u64) -> u64 {
    mix(state.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(word + 1))
}

impl Field {
    /// Values with `bits` random bits (24 are exact in f32, 53 in f64).
    pub fn new(seed: u64, bits: u32) -> Self {
        Field { state: mix(seed ^ 0x6a09_e667_f3bc_c909), bits }
    }

    fn uniform(&self, word: u64) -> f64 {
        let half = (1_u64 << (self.bits - 1)) as f64;
        (word >> (64 - self.bits)) as f64 / half - 1.0
    }

    fn at(&self, batch: usize, at: [usize; 3]) -> u64 {
        [batch, at[0], at[1], at[2]]
            .into_iter()
            .fold(self.state, |state, coordinate| step(state, coordinate as u64))
    }

    /// A real value in [-1, 1).
    pub fn real(&self, batch: usize, at: [usize; 3]) -> f64 {
        self.uniform(step(self.at(batch, at), 0))
    }

    /// A complex value; its real part is [`real`](Field::real).
    pub fn complex(&self, batch: usize, at: [usize; 3]) -> Complex<f64> {
        let state = self.at(batch, at);
        Complex::new(self.uniform(step(state, 0)), self.uniform(step(state, 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_its_published_numbers() {
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.bits(), 6_457_827_717_110_365_317);
        assert_eq!(rng.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn a_field_of_24_bits_is_exact_in_f32_and_spread_out() {
        let field = Field::new(3, 24);
        let mut sum = 0.0;
        for i in 0..10_000 {
            let v = field.complex(1, [i, i % 7, 2]);
            assert_eq!(f64::from(v.re as f32), v.re);
            assert!((-1.0..1.0).contains(&v.im));
            sum += v.re + v.im;
        }
        assert!((sum / 20_000.0_f64).abs() < 0.02);
    }

    #[test]
    fn shuffle_keeps_every_item() {
        let mut items: Vec<_> = (0..50).collect();
        Rng::new(1).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
