//! Short transforms in registers, sign -1, natural order in and out.

use super::factorization::Radices;
use super::vector::{Op, Vector};
use crate::real::Real;

/// Runs `$body` with the constant `$R` equal to the value `$radix`, one of the radices of `$V`.
macro_rules! with_radix {
    ($radix:expr, $V:ty, $R:ident => $body:expr) => {
        with_radix!(@ $radix, $V, $R => $body; 1 2 3 4 5 7 8 9 10 11 12 13 15 16 24 25 27)
    };
    (@ $radix:expr, $V:ty, $R:ident => $body:expr; $($r:literal)*) => {
        match $radix {
            // Radices that the vectors do not use are not compiled.
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

/// An unrolled loop of at most six iterations: the compiler does not unroll those of the largest radices.
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
        15 => dft15(x),
        16 => dft16(x),
        24 => dft24(x),
        25 => dft25(x),
        27 => dft27(x),
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
        // SAFETY: butterflies run inside `enter`, so the processor has the instruction set.
        11 | 13 => unsafe { V::enter(Large::<V, R>(x)) },
        _ => unreachable!("no butterfly of this radix"),
    }
}

/// The largest radices are compiled once for each vector type instead of being
/// inlined into every pass: they do not fit the registers, and inlining them
/// took most of the build time of the crate.
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
    // Factors (1 - i) and -(1 + i); the sums multiply by the root of one half.
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
    // The middle result is rotated by an eighth of a turn, as in `dft8`.
    let (b1, d1) = (turned(b[1], cos, sin), turned(d[1], sin, cos));
    let c1 = c[1].sub_i(c[1]);
    let (s, t) = (plus(a[1], c1, half), minus(a[1], c1, half));
    let (u, v) = (b1.add(d1), b1.sub(d1));
    [x[1], x[5], x[9], x[13]] = [s.add(u), t.sub_i(v), s.sub(u), t.add_i(v)];
    // Rotations by an eighth, a quarter, and three eighths.
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

// Prime-factor algorithm: coprime lengths A and B need no twiddles between the
// two steps. Input element `B a + A b` is element b of transform a; result a of
// transform b is the element with remainder a modulo A and b modulo B.

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

#[inline(always)]
fn dft15<V: Vector>(x: &mut [V]) {
    let p = five(x[0], x[3], x[6], x[9], x[12]);
    let q = five(x[5], x[8], x[11], x[14], x[2]);
    let r = five(x[10], x[13], x[1], x[4], x[7]);
    [x[0], x[10], x[5]] = three(p[0], q[0], r[0]);
    [x[6], x[1], x[11]] = three(p[1], q[1], r[1]);
    [x[12], x[7], x[2]] = three(p[2], q[2], r[2]);
    [x[3], x[13], x[8]] = three(p[3], q[3], r[3]);
    [x[9], x[4], x[14]] = three(p[4], q[4], r[4]);
}

#[inline(always)]
fn dft24<V: Vector>(x: &mut [V]) {
    let mut p = [x[0], x[3], x[6], x[9], x[12], x[15], x[18], x[21]];
    dft8(&mut p);
    let mut q = [x[8], x[11], x[14], x[17], x[20], x[23], x[2], x[5]];
    dft8(&mut q);
    let mut r = [x[16], x[19], x[22], x[1], x[4], x[7], x[10], x[13]];
    dft8(&mut r);
    [x[0], x[16], x[8]] = three(p[0], q[0], r[0]);
    [x[9], x[1], x[17]] = three(p[1], q[1], r[1]);
    [x[18], x[10], x[2]] = three(p[2], q[2], r[2]);
    [x[3], x[19], x[11]] = three(p[3], q[3], r[3]);
    [x[12], x[4], x[20]] = three(p[4], q[4], r[4]);
    [x[21], x[13], x[5]] = three(p[5], q[5], r[5]);
    [x[6], x[22], x[14]] = three(p[6], q[6], r[6]);
    [x[15], x[7], x[23]] = three(p[7], q[7], r[7]);
}

/// Five times five.
#[inline(always)]
fn dft25<V: Vector>(x: &mut [V]) {
    let a = five(x[0], x[5], x[10], x[15], x[20]);
    let b = five(x[1], x[6], x[11], x[16], x[21]);
    let c = five(x[2], x[7], x[12], x[17], x[22]);
    let d = five(x[3], x[8], x[13], x[18], x[23]);
    let e = five(x[4], x[9], x[14], x[19], x[24]);
    [x[0], x[5], x[10], x[15], x[20]] = five(a[0], b[0], c[0], d[0], e[0]);
    let b1 = turned(b[1], 0.968_583_161_128_631_1, 0.248_689_887_164_854_8);
    let c1 = turned(c[1], 0.876_306_680_043_863_6, 0.481_753_674_101_715_3);
    let d1 = turned(d[1], 0.728_968_627_421_411_6, 0.684_547_105_928_688_6);
    let e1 = turned(e[1], 0.535_826_794_978_996_5, 0.844_327_925_502_015_1);
    [x[1], x[6], x[11], x[16], x[21]] = five(a[1], b1, c1, d1, e1);
    let b2 = turned(b[2], 0.876_306_680_043_863_6, 0.481_753_674_101_715_3);
    let c2 = turned(c[2], 0.535_826_794_978_996_5, 0.844_327_925_502_015_1);
    let d2 = turned(d[2], 0.062_790_519_529_313_53, 0.998_026_728_428_271_6);
    let e2 = turned(e[2], -0.425_779_291_565_072_7, 0.904_827_052_466_019_5);
    [x[2], x[7], x[12], x[17], x[22]] = five(a[2], b2, c2, d2, e2);
    let b3 = turned(b[3], 0.728_968_627_421_411_6, 0.684_547_105_928_688_6);
    let c3 = turned(c[3], 0.062_790_519_529_313_53, 0.998_026_728_428_271_6);
    let d3 = turned(d[3], -0.637_423_989_748_689_7, 0.770_513_242_775_789_3);
    let e3 = turned(e[3], -0.992_114_701_314_477_8, 0.125_333_233_564_304_54);
    [x[3], x[8], x[13], x[18], x[23]] = five(a[3], b3, c3, d3, e3);
    let b4 = turned(b[4], 0.535_826_794_978_996_5, 0.844_327_925_502_015_1);
    let c4 = turned(c[4], -0.425_779_291_565_072_7, 0.904_827_052_466_019_5);
    let d4 = turned(d[4], -0.992_114_701_314_477_8, 0.125_333_233_564_304_54);
    let e4 = turned(e[4], -0.637_423_989_748_689_5, -0.770_513_242_775_789_4);
    [x[4], x[9], x[14], x[19], x[24]] = five(a[4], b4, c4, d4, e4);
}

/// Three times nine.
#[inline(always)]
fn dft27<V: Vector>(x: &mut [V]) {
    let mut a = [x[0], x[3], x[6], x[9], x[12], x[15], x[18], x[21], x[24]];
    let mut b = [x[1], x[4], x[7], x[10], x[13], x[16], x[19], x[22], x[25]];
    let mut c = [x[2], x[5], x[8], x[11], x[14], x[17], x[20], x[23], x[26]];
    dft9(&mut a);
    dft9(&mut b);
    dft9(&mut c);
    [x[0], x[9], x[18]] = three(a[0], b[0], c[0]);
    let b1 = turned(b[1], 0.973_044_870_579_823_8, 0.230_615_870_742_440_17);
    let c1 = turned(c[1], 0.893_632_640_323_412_3, 0.448_799_180_200_462_17);
    [x[1], x[10], x[19]] = three(a[1], b1, c1);
    let b2 = turned(b[2], 0.893_632_640_323_412_3, 0.448_799_180_200_462_17);
    let c2 = turned(c[2], 0.597_158_591_702_786_2, 0.802_123_192_755_043_7);
    [x[2], x[11], x[20]] = three(a[2], b2, c2);
    let b3 = turned(b[3], 0.766_044_443_118_978, 0.642_787_609_686_539_3);
    let c3 = turned(c[3], 0.173_648_177_666_930_41, 0.984_807_753_012_208);
    [x[3], x[12], x[21]] = three(a[3], b3, c3);
    let b4 = turned(b[4], 0.597_158_591_702_786_2, 0.802_123_192_755_043_7);
    let c4 = turned(c[4], -0.286_803_232_711_090_2, 0.957_989_512_315_488_9);
    [x[4], x[13], x[22]] = three(a[4], b4, c4);
    let b5 = turned(b[5], 0.396_079_766_039_156_9, 0.918_216_106_880_274);
    let c5 = turned(c[5], -0.686_241_637_868_733_5, 0.727_373_641_573_048_8);
    [x[5], x[14], x[23]] = three(a[5], b5, c5);
    let b6 = turned(b[6], 0.173_648_177_666_930_41, 0.984_807_753_012_208);
    let c6 = turned(c[6], -0.939_692_620_785_908_3, 0.342_020_143_325_668_9);
    [x[6], x[15], x[24]] = three(a[6], b6, c6);
    let b7 = turned(b[7], -0.058_144_828_910_475_774, 0.998_308_158_271_268_2);
    let c7 = turned(c[7], -0.993_238_357_741_943, -0.116_092_914_125_230_12);
    [x[7], x[16], x[25]] = three(a[7], b7, c7);
    let b8 = turned(b[8], -0.286_803_232_711_090_2, 0.957_989_512_315_488_9);
    let c8 = turned(c[8], -0.835_487_811_412_936_5, -0.549_508_978_070_806);
    [x[8], x[17], x[26]] = three(a[8], b8, c8);
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
    x.times(splat(cos), V::splat_complex(V::T::rounded(sin), V::T::rounded(-sin)))
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
/// pairs halve the number of products. `cos` and `sin` are those of `2 pi j / R`, from 1.
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
