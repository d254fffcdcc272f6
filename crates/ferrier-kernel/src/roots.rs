//! Roots of unity, correctly rounded.
//!
//! They are computed in double-double arithmetic (unevaluated sums of two
//! `f64`) in the first octant and rounded once; the other octants are
//! reflections.

/// An unevaluated sum, the second term below half an ulp of the first.
#[derive(Clone, Copy)]
struct DoubleDouble(f64, f64);

const TWO_PI: DoubleDouble = DoubleDouble(std::f64::consts::TAU, 2.449_293_598_294_706_4e-16);

fn sum(a: f64, b: f64) -> DoubleDouble {
    let s = a + b;
    let t = s - a;
    DoubleDouble(s, (a - (s - t)) + (b - t))
}

fn product(a: f64, b: f64) -> DoubleDouble {
    // Dekker's split: a fused multiply-add would be a library call here.
    let halves = |x: f64| {
        let t = 134_217_729.0 * x;
        let high = t - (t - x);
        (high, x - high)
    };
    let p = a * b;
    let ((ah, al), (bh, bl)) = (halves(a), halves(b));
    DoubleDouble(p, ((ah * bh - p) + ah * bl + al * bh) + al * bl)
}

impl DoubleDouble {
    fn plus(self, b: DoubleDouble) -> DoubleDouble {
        let s = sum(self.0, b.0);
        let t = sum(self.1, b.1);
        let s = sum(s.0, s.1 + t.0);
        sum(s.0, s.1 + t.1)
    }

    fn minus(self, b: DoubleDouble) -> DoubleDouble {
        self.plus(DoubleDouble(-b.0, -b.1))
    }

    fn times(self, b: DoubleDouble) -> DoubleDouble {
        let p = product(self.0, b.0);
        sum(p.0, p.1 + (self.0 * b.1 + self.1 * b.0))
    }

    fn over(self, b: f64) -> DoubleDouble {
        let q = self.0 / b;
        let rest = self.minus(product(q, b));
        let q2 = rest.0 / b;
        let rest = rest.minus(product(q2, b));
        sum(q, q2).plus(DoubleDouble(rest.0 / b, 0.0))
    }
}

/// Cosine and sine of an angle in the first octant, by their series.
fn series(x: DoubleDouble) -> (DoubleDouble, DoubleDouble) {
    let square = x.times(x);
    let (mut cos, mut sin) = (DoubleDouble(1.0, 0.0), x);
    let (mut even, mut odd) = (cos, sin);
    for k in 1..16 {
        let k = 2.0 * k as f64;
        even = even.times(square).over(-(k - 1.0) * k);
        odd = odd.times(square).over(-k * (k + 1.0));
        cos = cos.plus(even);
        sin = sin.plus(odd);
    }
    (cos, sin)
}

/// The `n`-th roots of unity.
pub struct Roots {
    n: usize,
    /// Cosines and sines of `i * 2 pi / 8n`, and of multiples of that by the
    /// length of `fine`: one complex product gives any angle of the first octant.
    fine: Vec<(DoubleDouble, DoubleDouble)>,
    coarse: Vec<(DoubleDouble, DoubleDouble)>,
}

impl Roots {
    /// The `n`-th roots of unity.
    pub fn new(n: usize) -> Self {
        let step = ((n + 1) as f64).sqrt().ceil() as usize;
        let angle = |t: usize| series(TWO_PI.times(DoubleDouble(t as f64, 0.0)).over(8.0 * n as f64));
        Roots {
            n,
            fine: (0..step).map(angle).collect(),
            coarse: (0..=n / step).map(|i| angle(i * step)).collect(),
        }
    }

    /// Cosine and sine of `2 pi k / n`.
    pub fn get(&self, k: usize) -> (f64, f64) {
        let n = self.n;
        // In eighths of a step, so that the octants begin at integers.
        let mut t = 8 * (k % n);
        let below = t > 4 * n;
        t = if below { 8 * n - t } else { t };
        let left = t > 2 * n;
        t = if left { 4 * n - t } else { t };
        let steep = t > n;
        t = if steep { 2 * n - t } else { t };

        let (a, b) = (self.coarse[t / self.fine.len()], self.fine[t % self.fine.len()]);
        let cos = a.0.times(b.0).minus(a.1.times(b.1)).0;
        let sin = a.1.times(b.0).plus(a.0.times(b.1)).0;
        let (cos, sin) = if steep { (sin, cos) } else { (cos, sin) };
        (if left { -cos } else { cos }, if below { -sin } else { sin })
    }
}
