//! Cosine and sine transforms, on top of any kernel.
//!
//! Each is a sparse map (every scalar is a weighted sum of at most two others),
//! a real or complex transform of about the same length, and another sparse
//! map. The maps run in cache on rows of scalars, one column per line, so they
//! need no extra pass over memory. Weights are correctly rounded, and no
//! algorithm is used whose error grows faster than that of the transform.

use std::f64::consts::SQRT_2;

use crate::lines::{LineBlock, Lines, Strip};
use crate::real::Real;
use crate::roots::Roots;
use crate::spec::{LineKind, LinesSpec, R2r};

/// A scalar as a weighted sum of two others: indices and weights.
type Sum = [(usize, f64); 2];

fn one(p: usize, weight: f64) -> Sum {
    [(p, weight), (p, 0.0)]
}

/// A factorization of a transform: a sparse map, a transform of another kernel, a sparse map.
struct Factorization {
    before: Vec<Sum>,
    engine: LineKind,
    n: usize,
    after: Vec<Sum>,
}

impl Factorization {
    fn new(kind: R2r, n: usize, ortho: bool) -> Factorization {
        let mut factorization = match kind {
            R2r::Dct1 => dct1(n),
            R2r::Dst1 => dst1(n),
            R2r::Dct2 | R2r::Dst2 => dct2(n),
            R2r::Dct3 | R2r::Dst3 => dct3(n),
            R2r::Dct4 | R2r::Dst4 if n.is_multiple_of(2) => dct4_even(n),
            R2r::Dct4 | R2r::Dst4 => dct4_odd(n),
        };
        let sign = |k: usize| if k.is_multiple_of(2) { 1.0 } else { -1.0 };
        // Sine transforms are cosine transforms with every other sign changed, or with reversed order.
        match kind {
            R2r::Dst2 => {
                factorization.weigh_input(sign);
                factorization.after.reverse();
            }
            R2r::Dst3 | R2r::Dst4 => {
                factorization.before.iter_mut().flatten().for_each(|(p, _)| *p = n - 1 - *p);
                factorization.weigh_output(sign);
            }
            _ => {}
        }
        if ortho {
            let ends = |k: usize| match kind {
                R2r::Dct1 => k == 0 || k == n - 1,
                R2r::Dct2 | R2r::Dct3 => k == 0,
                R2r::Dst2 | R2r::Dst3 => k == n - 1,
                _ => false,
            };
            if matches!(kind, R2r::Dct1 | R2r::Dct3 | R2r::Dst3) {
                factorization.weigh_input(|k| if ends(k) { SQRT_2 } else { 1.0 });
            }
            if matches!(kind, R2r::Dct1 | R2r::Dct2 | R2r::Dst2) {
                factorization.weigh_output(|k| if ends(k) { 1.0 / SQRT_2 } else { 1.0 });
            }
        }
        factorization
    }

    fn weigh_input(&mut self, weight: impl Fn(usize) -> f64) {
        self.before.iter_mut().flatten().for_each(|(p, a)| *a *= weight(*p));
    }

    fn weigh_output(&mut self, weight: impl Fn(usize) -> f64) {
        for (k, sum) in self.after.iter_mut().enumerate() {
            sum.iter_mut().for_each(|(_, a)| *a *= weight(k));
        }
    }
}

/// The transform of the even extension. (Shorter algorithms exist; their errors grow with the length.)
fn dct1(n: usize) -> Factorization {
    let size = R2r::Dct1.size(n);
    Factorization {
        before: (0..size).map(|m| one(m.min(size - m), 1.0)).collect(),
        engine: LineKind::RealForward,
        n: size,
        after: (0..n).map(|k| one(2 * k, 1.0)).collect(),
    }
}

/// The transform of the odd extension.
fn dst1(n: usize) -> Factorization {
    let size = R2r::Dst1.size(n);
    let value = |m: usize| match m {
        m if m == 0 || m == n + 1 => one(0, 0.0),
        m if m <= n => one(m - 1, 1.0),
        m => one(size - m - 1, -1.0),
    };
    Factorization {
        before: (0..size).map(value).collect(),
        engine: LineKind::RealForward,
        n: size,
        after: (0..n).map(|k| one(2 * (k + 1) + 1, -1.0)).collect(),
    }
}

/// Even elements, then odd ones from the end: in their transform, element `k`
/// rotated by a quarter of a step gives results `k` and `n - k`.
fn dct2(n: usize) -> Factorization {
    let roots = Roots::new(4 * n);
    let result = |k: usize| {
        let m = k.min(n - k);
        let (cos, sin) = roots.get(m);
        match k == m {
            true => [(2 * m, 2.0 * cos), (2 * m + 1, 2.0 * sin)],
            false => [(2 * m, 2.0 * sin), (2 * m + 1, -2.0 * cos)],
        }
    };
    Factorization {
        before: (0..n).map(|i| one(if 2 * i < n { 2 * i } else { 2 * (n - i) - 1 }, 1.0)).collect(),
        engine: LineKind::RealForward,
        n,
        after: (0..n).map(result).collect(),
    }
}

/// The inverse of [`dct2`], up to a scale.
fn dct3(n: usize) -> Factorization {
    let roots = Roots::new(4 * n);
    let scalar = |m: usize| {
        let (k, (cos, sin)) = (m / 2, roots.get(m / 2));
        match (k, m % 2) {
            (0, 0) => one(0, 1.0),
            (0, _) => one(0, 0.0),
            (_, 0) => [(k, cos), (n - k, sin)],
            _ => [(k, sin), (n - k, -cos)],
        }
    };
    Factorization {
        before: (0..2 * (n / 2 + 1)).map(scalar).collect(),
        engine: LineKind::RealBackward,
        n,
        after: (0..n).map(|k| one(if k % 2 == 0 { k / 2 } else { n - 1 - k / 2 }, 1.0)).collect(),
    }
}

/// Elements `2j` and `n - 1 - 2j` form a complex number, rotated before and
/// after a complex transform of half the length.
fn dct4_even(n: usize) -> Factorization {
    let roots = Roots::new(8 * n);
    let scalar = |m: usize| {
        let (j, (cos, sin)) = (m / 2, roots.get(4 * (m / 2) + 1));
        match m % 2 {
            0 => [(2 * j, cos), (n - 1 - 2 * j, sin)],
            _ => [(2 * j, -sin), (n - 1 - 2 * j, cos)],
        }
    };
    let result = |i: usize| {
        let k = if i.is_multiple_of(2) { i / 2 } else { (n - 1 - i) / 2 };
        let (cos, sin) = roots.get(4 * k);
        match i % 2 {
            0 => [(2 * k, 2.0 * cos), (2 * k + 1, 2.0 * sin)],
            _ => [(2 * k, 2.0 * sin), (2 * k + 1, -2.0 * cos)],
        }
    };
    Factorization {
        before: (0..n).map(scalar).collect(),
        engine: LineKind::Forward,
        n: n / 2,
        after: (0..n).map(result).collect(),
    }
}

/// The line's symmetric extension has period 4n, and 4 and n have no common
/// factor: every fourth element of it is a real line of length n whose
/// transform, rotated by eighths of a turn, is the result in another order.
fn dct4_odd(n: usize) -> Factorization {
    let extended = |m: usize| match m / n {
        0 => one(m, 1.0),
        1 => one(2 * n - 1 - m, -1.0),
        2 => one(m - 2 * n, -1.0),
        _ => one(4 * n - 1 - m, 1.0),
    };
    let result = |k: usize| {
        let turn = (2 * k + 1) % n;
        let (q, conjugate) = if 2 * turn > n { (n - turn, -1.0) } else { (turn, 1.0) };
        // 2 cos and 2 sin of (2k + 1) eighths.
        let (cos, sin) = [(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)][k % 4];
        [(2 * q, SQRT_2 * cos), (2 * q + 1, SQRT_2 * sin * conjugate)]
    };
    Factorization {
        before: (0..n).map(|i| extended((n / 2 + 4 * i) % (4 * n))).collect(),
        engine: LineKind::RealForward,
        n,
        after: (0..n).map(result).collect(),
    }
}

/// A [`Sum`] in the precision of the lines.
struct Term<T> {
    p: usize,
    q: usize,
    a: T,
    b: T,
}

fn terms<T: Real>(sums: &[Sum]) -> Vec<Term<T>> {
    let term = |[(p, a), (q, b)]: &Sum| Term { p: *p, q: *q, a: T::rounded(*a), b: T::rounded(*b) };
    sums.iter().map(term).collect()
}

/// Lines of an [`R2r`] transform.
pub(super) struct R2rLines<T> {
    n: usize,
    /// Scalars of an element: real and imaginary parts are separate lines.
    width: usize,
    before: Vec<Term<T>>,
    engine: Box<dyn Lines<T>>,
    engine_spec: LinesSpec,
    after: Vec<Term<T>>,
}

impl<T: Real> R2rLines<T> {
    /// Lines that use the transforms that `make` constructs.
    pub fn new(
        spec: &LinesSpec,
        (kind, ortho, complex): (R2r, bool, bool),
        make: impl Fn(&LinesSpec) -> Box<dyn Lines<T>>,
    ) -> Self {
        let mut factorization = Factorization::new(kind, spec.n, ortho);
        factorization.weigh_output(|_| spec.scale);
        let engine_spec = LinesSpec { n: factorization.n, kind: factorization.engine, scale: 1.0 };
        R2rLines {
            n: spec.n,
            width: if complex { 2 } else { 1 },
            before: terms(&factorization.before),
            engine: make(&engine_spec),
            engine_spec,
            after: terms(&factorization.after),
        }
    }

    /// Scalars of one of the two areas, for `lanes` real lines.
    fn area(&self, lanes: usize) -> usize {
        let LinesSpec { n, kind, .. } = self.engine_spec;
        let (before, after) = (kind.len_in(n) * kind.width_in(), kind.len_out(n) * kind.width_out());
        (self.n.max(before).max(after) * lanes).next_multiple_of(16)
    }

    fn strip(ptr: *mut T, len: usize, width: usize, lanes: usize) -> [Strip<T>; 1] {
        [Strip { ptr, len, step: (lanes * width) as isize, lane: width as isize, ..Strip::default() }]
    }
}

impl<T: Real> Lines<T> for R2rLines<T> {
    fn block(&self, strided: bool) -> usize {
        (self.engine.block(strided) / self.width).max(1)
    }

    fn scratch(&self, lines: usize) -> usize {
        let lanes = lines * self.width;
        2 * self.area(lanes) + self.engine.scratch(lanes)
    }

    unsafe fn run(&self, block: &LineBlock<'_, T>, scratch: &mut [T]) -> bool {
        let lanes = block.lines * self.width;
        let (one, rest) = scratch.split_at_mut(self.area(lanes));
        let (two, inner) = rest.split_at_mut(self.area(lanes));
        let LinesSpec { n, kind, .. } = self.engine_spec;
        // SAFETY: `run`'s contract: every element of `from` is valid for reads.
        unsafe { gather(block.from, block.lines, self.width, self.n, one) };
        mix(&self.before, (one, 1), (two, kind.width_in()), lanes);
        let from = Self::strip(two.as_mut_ptr(), kind.len_in(n), kind.width_in(), lanes);
        let to = Self::strip(one.as_mut_ptr(), kind.len_out(n), kind.width_out(), lanes);
        let inside = LineBlock { factor: block.factor, ..LineBlock::new(lanes, &from, &to) };
        // SAFETY: the strips lie within the two areas; the rest of the scratch has the length that the engine needs.
        unsafe { self.engine.run(&inside, inner) };
        mix(&self.after, (one, kind.width_out()), (two, 1), lanes);
        // SAFETY: `run`'s contract: every element of `to` is valid for writes.
        unsafe { scatter(block.to, block.lines, self.width, two) };
        false
    }
}

/// Computes scalar `i` of all lines from two others. Scalar `i` of all lines is
/// a row of `lanes`, or, for parts of complex elements (pitch 2), every other scalar of a row.
fn mix<T: Real>(terms: &[Term<T>], from: (&[T], usize), to: (&mut [T], usize), lanes: usize) {
    match (from.1, to.1) {
        (1, 1) => mix_rows::<T, 1, 1>(terms, from.0, to.0, lanes),
        (1, _) => mix_rows::<T, 1, 2>(terms, from.0, to.0, lanes),
        (_, 1) => mix_rows::<T, 2, 1>(terms, from.0, to.0, lanes),
        (_, _) => unreachable!("one side of a map is real"),
    }
}

fn mix_rows<T: Real, const FROM: usize, const TO: usize>(
    terms: &[Term<T>],
    from: &[T],
    to: &mut [T],
    lanes: usize,
) {
    let row = |index: usize, pitch: usize| index / pitch * pitch * lanes + index % pitch;
    for (i, term) in terms.iter().enumerate() {
        let target = to[row(i, TO)..].iter_mut().step_by(TO).take(lanes);
        let p = from[row(term.p, FROM)..].iter().step_by(FROM);
        if term.b == T::zero() {
            target.zip(p).for_each(|(to, p)| *to = term.a * *p);
        } else {
            let q = from[row(term.q, FROM)..].iter().step_by(FROM);
            target.zip(p.zip(q)).for_each(|(to, (p, q))| *to = term.a * *p + term.b * *q);
        }
    }
}

/// Copies the elements of the lines to rows; elements that no strip has are zero.
///
/// # Safety
/// All elements of the strips are valid for reads.
unsafe fn gather<T: Real>(strips: &[Strip<T>], lines: usize, width: usize, n: usize, area: &mut [T]) {
    let row = lines * width;
    let mut next = 0;
    for strip in strips {
        area[next * row..strip.at * row].fill(T::zero());
        next = strip.at + strip.len;
        for k in 0..strip.len {
            let to = &mut area[(strip.at + k) * row..][..row];
            let offset = k as isize * strip.step;
            if strip.lane == width as isize && strip.run >= lines {
                let start = strip.ptr.wrapping_offset(offset);
                // SAFETY: neighbouring lines are adjacent, so `row` scalars are valid for reads; scratch is apart from them.
                unsafe { std::ptr::copy_nonoverlapping(start, to.as_mut_ptr(), row) };
                continue;
            }
            for (j, to) in to.chunks_exact_mut(width).enumerate() {
                for (w, to) in to.iter_mut().enumerate() {
                    // SAFETY: `gather`'s contract covers scalar `w` of an element.
                    *to = unsafe { *strip.line(j).offset(offset).add(w) };
                }
            }
        }
    }
    area[next * row..n * row].fill(T::zero());
}

/// Copies rows to the elements of the lines; elements that no strip has are dropped.
///
/// # Safety
/// All elements of the strips are valid for writes.
unsafe fn scatter<T: Real>(strips: &[Strip<T>], lines: usize, width: usize, area: &[T]) {
    let row = lines * width;
    for strip in strips {
        for k in 0..strip.len {
            let from = &area[(strip.at + k) * row..][..row];
            let offset = k as isize * strip.step;
            if strip.lane == width as isize && strip.run >= lines {
                let start = strip.ptr.wrapping_offset(offset);
                // SAFETY: neighbouring lines are adjacent, so `row` scalars are valid for writes; scratch is apart from them.
                unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), start, row) };
                continue;
            }
            for (j, from) in from.chunks_exact(width).enumerate() {
                for (w, from) in from.iter().enumerate() {
                    // SAFETY: `scatter`'s contract covers scalar `w` of an element.
                    unsafe { *strip.line(j).offset(offset).add(w) = *from };
                }
            }
        }
    }
}
