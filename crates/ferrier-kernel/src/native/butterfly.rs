//! Short transforms in registers, sign -1, natural order in and out.

use super::factor::Radices;
use super::vector::{Op, Vector};
use crate::Real;

/// Runs `$body` with the constant `$R` equal to the value `$radix`, one of the radices of `$V`.
macro_rules! with_radix {
    ($radix:expr, $V:ty, $R:ident => $body:expr) => {
        with_radix!(@ $radix, $V, $R => $body; 1 2 3 4 5 7 8 9 10 11 12 13 16)
    };
    (@ $radix:expr, $V:ty, $R:ident => $body:expr; $($r:literal)*) => {
        match $radix {
            // Passes that the vectors never use are not compiled.
            $($r if const { $r == 1 || lists(<$V>::RADICES, $r) } => { const $R: usize = $r; $body })*
            other => unreachable!("no butterfly of radix {other}"),
        }
    };
}
pub(super) use with_radix;

/// Whether `radix` is one of `radices`.
pub(super) const fn lists(radices: Radices, radix: usize) -> bool {
    let mut i = 0;
    while i < radices.len() {
        if radices[i].0 == radix {
            return true;
        }
        i += 1;
    }
    false
}

/// A loop of at most six rounds, unrolled: the compiler gives up on the largest radices.
macro_rules! each {
    ($i:ident < $end:expr, $body:block) => {
        each!(@ $i, $end, $body; 0 1 2 3 4 5)
    };
    (@ $i:ident, $end:expr, $body:block; $($n:literal)*) => {
        $(if $n < $end { let $i: usize = $n; $body })*
    };
}

/// The transform of `R` points.
#[inline(always)]
pub(super) fn dft<V: Vector, const R: usize>(x: &mut [V; R]) {
    match R {
        1 => {}
        2 => dft2(x),
        3 => odd::<V, R, 1>(x, &[-0.5], &[0.866_025_403_784_438_6]),
        4 => dft4(x),
        10 => dft10(x),
        12 => dft12(x),
        16 => dft16(x),
        5 => odd::<V, R, 2>(
            x,
            &[0.309_016_994_374_947_45, -0.809_016_994_374_947_5],
            &[0.951_056_516_295_153_5, 0.587_785_252_292_473_1],
        ),
        7 => odd::<V, R, 3>(
            x,
            &[0.623_489_801_858_733_5, -0.222_520_933_956_314_4, -0.900_968_867_902_419_1],
            &[0.781_831_482_468_029_8, 0.974_927_912_181_823_6, 0.433_883_739_117_558_1],
        ),
        8 => dft8(x),
        9 => dft9(x),
        // SAFETY: butterflies run inside `enter`, so the instructions are there.
        11 | 13 => unsafe { V::enter(Large::<V, R>(x)) },
        _ => unreachable!("no butterfly of this radix"),
    }
}

/// The largest radices are compiled once for each vector type, not into every
/// pass that uses them: they do not fit the registers anyway, and inlined they
/// made up most of the time it takes to build the crate.
struct Large<'a, V: Vector, const R: usize>(&'a mut [V; R]);

impl<V: Vector, const R: usize> Op<V> for Large<'_, V, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let x = self.0;
        match R {
            11 => odd::<V, R, 5>(
                x,
                &[
                    0.841_253_532_831_181_2,
                    0.415_415_013_001_886_44,
                    -0.142_314_838_273_285_14,
                    -0.654_860_733_945_285_1,
                    -0.959_492_973_614_497_4,
                ],
                &[
                    0.540_640_817_455_597_6,
                    0.909_631_995_354_518_3,
                    0.989_821_441_880_932_7,
                    0.755_749_574_354_258_3,
                    0.281_732_556_841_429_67,
                ],
            ),
            13 => odd::<V, R, 6>(
                x,
                &[
                    0.885_456_025_653_209_9,
                    0.568_064_746_731_155_8,
                    0.120_536_680_255_323_05,
                    -0.354_604_887_042_535_6,
                    -0.748_510_748_171_101_1,
                    -0.970_941_817_426_052,
                ],
                &[
                    0.464_723_172_043_768_56,
                    0.822_983_865_893_656_4,
                    0.992_708_874_098_054,
                    0.935_016_242_685_414_8,
                    0.663_122_658_240_795_2,
                    0.239_315_664_287_557_77,
                ],
            ),
            _ => unreachable!("no butterfly of this radix"),
        }
    }
}

#[inline(always)]
fn splat<V: Vector>(x: f64) -> V {
    V::splat(V::T::rounded(x))
}

#[inline(always)]
fn dft2<V: Vector>(x: &mut [V]) {
    (x[0], x[1]) = (x[0].add(x[1]), x[0].sub(x[1]));
}

#[inline(always)]
fn four<V: Vector>(a: V, b: V, c: V, d: V) -> [V; 4] {
    let (s, t) = (a.add(c), a.sub(c));
    let (u, v) = (b.add(d), b.sub(d));
    [s.add(u), t.sub_i(v), s.sub(u), t.add_i(v)]
}

#[inline(always)]
fn dft4<V: Vector>(x: &mut [V]) {
    [x[0], x[1], x[2], x[3]] = four(x[0], x[1], x[2], x[3]);
}

#[inline(always)]
fn dft8<V: Vector>(x: &mut [V]) {
    let even = four(x[0], x[2], x[4], x[6]);
    let odd = four(x[1], x[3], x[5], x[7]);
    let half = splat::<V>(std::f64::consts::FRAC_1_SQRT_2);
    (x[0], x[4]) = (even[0].add(odd[0]), even[0].sub(odd[0]));
    (x[2], x[6]) = (even[2].sub_i(odd[2]), even[2].add_i(odd[2]));
    // (1 - i) and -(1 + i); the root of one half goes into the sums.
    let (a, b) = (odd[1].sub_i(odd[1]), odd[3].add_i(odd[3]));
    (x[1], x[5]) = (plus(even[1], a, half), minus(even[1], a, half));
    (x[3], x[7]) = (minus(even[3], b, half), plus(even[3], b, half));
}

/// Four times four.
#[inline(always)]
fn dft16<V: Vector>(x: &mut [V]) {
    let (cos, sin) = (0.923_879_532_511_286_7, 0.382_683_432_365_089_8);
    let half = splat::<V>(std::f64::consts::FRAC_1_SQRT_2);
    let a = four(x[0], x[4], x[8], x[12]);
    let b = four(x[1], x[5], x[9], x[13]);
    let c = four(x[2], x[6], x[10], x[14]);
    let d = four(x[3], x[7], x[11], x[15]);
    [x[0], x[4], x[8], x[12]] = four(a[0], b[0], c[0], d[0]);
    // The middle one is turned by an eighth, as in `dft8`.
    let (b1, d1) = (turned(b[1], cos, sin), turned(d[1], sin, cos));
    let c1 = c[1].sub_i(c[1]);
    let (s, t) = (plus(a[1], c1, half), minus(a[1], c1, half));
    let (u, v) = (b1.add(d1), b1.sub(d1));
    [x[1], x[5], x[9], x[13]] = [s.add(u), t.sub_i(v), s.sub(u), t.add_i(v)];
    // By an eighth, a quarter, and three eighths.
    let (b2, d2) = (b[2].sub_i(b[2]), d[2].add_i(d[2]));
    let (s, t) = (a[2].sub_i(c[2]), a[2].add_i(c[2]));
    let (u, v) = (b2.sub(d2), b2.add(d2).mul(half));
    [x[2], x[6], x[10], x[14]] = [plus(s, u, half), t.sub_i(v), minus(s, u, half), t.add_i(v)];
    let (b3, d3) = (turned(b[3], sin, cos), turned(d[3], -cos, -sin));
    let c3 = c[3].add_i(c[3]);
    let (s, t) = (minus(a[3], c3, half), plus(a[3], c3, half));
    let (u, v) = (b3.add(d3), b3.sub(d3));
    [x[3], x[7], x[11], x[15]] = [s.add(u), t.sub_i(v), s.sub(u), t.add_i(v)];
}

#[inline(always)]
fn five<V: Vector>(a: V, b: V, c: V, d: V, e: V) -> [V; 5] {
    let mut x = [a, b, c, d, e];
    dft::<V, 5>(&mut x);
    x
}

// Products of two factors without a common one: no twiddles between the two
// steps. Element `B a + A b` goes in as number b of step a; what comes out as
// number a of step b belongs where division by A leaves a and by B leaves b.

#[inline(always)]
fn dft10<V: Vector>(x: &mut [V]) {
    let p = five(x[0], x[2], x[4], x[6], x[8]);
    let q = five(x[5], x[7], x[9], x[1], x[3]);
    (x[0], x[5]) = (p[0].add(q[0]), p[0].sub(q[0]));
    (x[6], x[1]) = (p[1].add(q[1]), p[1].sub(q[1]));
    (x[2], x[7]) = (p[2].add(q[2]), p[2].sub(q[2]));
    (x[8], x[3]) = (p[3].add(q[3]), p[3].sub(q[3]));
    (x[4], x[9]) = (p[4].add(q[4]), p[4].sub(q[4]));
}

#[inline(always)]
fn dft12<V: Vector>(x: &mut [V]) {
    let p = four(x[0], x[3], x[6], x[9]);
    let q = four(x[4], x[7], x[10], x[1]);
    let r = four(x[8], x[11], x[2], x[5]);
    [x[0], x[4], x[8]] = three(p[0], q[0], r[0]);
    [x[9], x[1], x[5]] = three(p[1], q[1], r[1]);
    [x[6], x[10], x[2]] = three(p[2], q[2], r[2]);
    [x[3], x[7], x[11]] = three(p[3], q[3], r[3]);
}

/// `a + s b`
#[inline(always)]
fn plus<V: Vector>(a: V, b: V, s: V) -> V {
    b.mul_add(s, a)
}

/// `a - s b`
#[inline(always)]
fn minus<V: Vector>(a: V, b: V, s: V) -> V {
    b.neg_mul_add(s, a)
}

/// `x` times `cos - i sin`.
#[inline(always)]
fn turned<V: Vector>(x: V, cos: f64, sin: f64) -> V {
    x.times(splat(cos), V::twin(V::T::rounded(sin), V::T::rounded(-sin)))
}

#[inline(always)]
fn three<V: Vector>(a: V, b: V, c: V) -> [V; 3] {
    let mut x = [a, b, c];
    odd::<V, 3, 1>(&mut x, &[-0.5], &[0.866_025_403_784_438_6]);
    x
}

#[inline(always)]
fn dft9<V: Vector>(x: &mut [V]) {
    let a = three(x[0], x[3], x[6]);
    let b = three(x[1], x[4], x[7]);
    let c = three(x[2], x[5], x[8]);
    let b1 = turned(b[1], 0.766_044_443_118_978, 0.642_787_609_686_539_4);
    let b2 = turned(b[2], 0.173_648_177_666_930_36, 0.984_807_753_012_208);
    let c1 = turned(c[1], 0.173_648_177_666_930_36, 0.984_807_753_012_208);
    let c2 = turned(c[2], -0.939_692_620_785_908_4, 0.342_020_143_325_668_7);
    [x[0], x[3], x[6]] = three(a[0], b[0], c[0]);
    [x[1], x[4], x[7]] = three(a[1], b1, c1);
    [x[2], x[5], x[8]] = three(a[2], b2, c2);
}

/// An odd number `R = 2 H + 1` of points: sums and differences of mirrored
/// pairs halve the products. `cos` and `sin` are those of `2 pi j / R`, from 1.
#[inline(always)]
fn odd<V: Vector, const R: usize, const H: usize>(x: &mut [V], cos: &[f64; H], sin: &[f64; H]) {
    let sums: [V; H] = std::array::from_fn(|j| x[j + 1].add(x[R - 1 - j]));
    let differences: [V; H] = std::array::from_fn(|j| x[j + 1].sub(x[R - 1 - j]));
    let first = x[0];
    for sum in sums {
        x[0] = x[0].add(sum);
    }
    each!(k < H, {
        let k = k + 1;
        let mut a = first;
        let mut b = V::zero();
        each!(j < H, {
            let turn = (j + 1) * k % R;
            let (c, s) = if turn <= H {
                (cos[turn - 1], sin[turn - 1])
            } else {
                (cos[R - turn - 1], -sin[R - turn - 1])
            };
            a = plus(a, sums[j], splat(c));
            b = if j == 0 { differences[0].mul(splat(s)) } else { plus(b, differences[j], splat(s)) };
        });
        x[k] = a.sub_i(b);
        x[R - k] = a.add_i(b);
    });
}
