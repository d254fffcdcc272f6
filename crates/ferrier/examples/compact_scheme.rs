//! The divergence of a velocity by a compact scheme of sixth order, as codes on 2DECOMP&FFT compute it: each derivative is a
//! solve along whole lines, so the fields go from x- to y- to z-pencils and back. The comments name the calls of
//! 2DECOMP&FFT that each line replaces.
//!
//!     cargo run --release -p ferrier --example compact_scheme

use std::f64::consts::TAU;

use ferrier::{Comm, PencilFamily, Pencils, Result};

/// Derivatives along periodic lines of n points: (f'[i-1] + 3 f'[i] + f'[i+1]) / 3 = 14/9 (f[i+1] - f[i-1]) / 2h + 1/9
/// (f[i+2] - f[i-2]) / 4h.
struct Compact {
    h: f64,
    /// The forward sweep of the tridiagonal part, and the correction for the two corners of the matrix.
    sweep: Vec<f64>,
    corner: Vec<f64>,
}

const ALPHA: f64 = 1.0 / 3.0;
/// The first diagonal entry without the corners (Sherman and Morrison).
const FIRST: f64 = 2.0;

impl Compact {
    fn new(n: usize, length: f64) -> Compact {
        let mut scheme = Compact { h: length / n as f64, sweep: vec![0.0; n], corner: Vec::new() };
        let mut last = 0.0;
        for i in 0..n {
            last = ALPHA / (scheme.diagonal(i) - ALPHA * last);
            scheme.sweep[i] = last;
        }
        let mut corner = vec![0.0; n];
        (corner[0], corner[n - 1]) = (-1.0, ALPHA);
        scheme.solve(&mut corner);
        scheme.corner = corner;
        scheme
    }

    fn diagonal(&self, i: usize) -> f64 {
        match i {
            0 => FIRST,
            i if i + 1 == self.sweep.len() => 1.0 + ALPHA * ALPHA,
            _ => 1.0,
        }
    }

    /// Solves the tridiagonal part in place.
    fn solve(&self, line: &mut [f64]) {
        let n = line.len();
        line[0] /= FIRST;
        for i in 1..n {
            line[i] = (line[i] - ALPHA * line[i - 1]) / (self.diagonal(i) - ALPHA * self.sweep[i - 1]);
        }
        for i in (0..n - 1).rev() {
            line[i] -= self.sweep[i] * line[i + 1];
        }
    }

    fn derivative(&self, f: &[f64], out: &mut [f64]) {
        let n = f.len();
        let at = |i: usize, by: isize| f[(i as isize + by).rem_euclid(n as isize) as usize];
        for (i, value) in out.iter_mut().enumerate() {
            *value = 14.0 / 18.0 * (at(i, 1) - at(i, -1)) / self.h + (at(i, 2) - at(i, -2)) / (36.0 * self.h);
        }
        self.solve(out);
        // v = (1, 0, .., -alpha): the corners of the matrix are u v with u = (-1, 0, .., alpha).
        let with_v = |line: &[f64]| line[0] - ALPHA * line[n - 1];
        let factor = with_v(out) / (1.0 + with_v(&self.corner));
        out.iter_mut().zip(&self.corner).for_each(|(value, corner)| *value -= factor * corner);
    }

    /// Derivatives of all contiguous lines of an array.
    fn lines(&self, f: &[f64], out: &mut [f64]) {
        let n = self.sweep.len();
        f.chunks_exact(n).zip(out.chunks_exact_mut(n)).for_each(|(f, out)| self.derivative(f, out));
    }
}

/// u = sin x cos y cos z, v = cos x sin y cos z, w = cos x cos y sin z: the divergence is 3 cos x cos y cos z.
fn velocity(axis: usize, at: [f64; 3]) -> f64 {
    (0..3).map(|a| if a == axis { at[a].sin() } else { at[a].cos() }).product()
}

/// The largest error of the divergence on this grid of ranks.
fn divergence(comm: &Comm, shape: [usize; 3], grid: [usize; 2]) -> Result<f64> {
    // call decomp_2d_init(nx, ny, nz, p_row, p_col); here lines of each pencil are contiguous as well.
    let mut pencils =
        PencilFamily::<f64>::new(comm, &Pencils::new(shape).grid(grid[0], grid[1]).contiguous())?;
    let place = |index: [usize; 3]| std::array::from_fn(|a| TAU * index[a] as f64 / shape[a] as f64);
    // call alloc_x(u); call alloc_y(..); call alloc_z(..)
    let mut u = [pencils.make(0)?, pencils.make(0)?, pencils.make(0)?];
    let [mut y, mut dy] = [pencils.make(1)?, pencils.make(1)?];
    let [mut z, mut dz] = [pencils.make(2)?, pencils.make(2)?];
    let [mut sum, mut back] = [pencils.make(0)?, pencils.make(0)?];
    let own = pencils.local_box(0); // xstart, xend
    let strides = pencils.layout(0).order().strides(own.shape());
    let each = |visit: &mut dyn FnMut(usize, [f64; 3])| {
        for i in own.lo[0]..own.hi[0] {
            for j in own.lo[1]..own.hi[1] {
                for k in own.lo[2]..own.hi[2] {
                    let index = [i, j, k];
                    let offset = (0..3).map(|a| (index[a] - own.lo[a]) * strides[a]).sum();
                    visit(offset, place(index));
                }
            }
        }
    };
    for (axis, field) in u.iter_mut().enumerate() {
        each(&mut |offset, at| field[offset] = velocity(axis, at));
    }
    let scheme: [Compact; 3] = std::array::from_fn(|axis| Compact::new(shape[axis], TAU));
    scheme[0].lines(&u[0], &mut sum);
    pencils.x_to_y(&u[1], &mut y)?; // call transpose_x_to_y(v, y)
    scheme[1].lines(&y, &mut dy);
    pencils.y_to_x(&dy, &mut back)?; // call transpose_y_to_x(dy, back)
    sum.iter_mut().zip(&*back).for_each(|(sum, term)| *sum += term);
    pencils.x_to_y(&u[2], &mut y)?; // call transpose_x_to_y(w, y)
    pencils.y_to_z(&y, &mut z)?; // call transpose_y_to_z(y, z)
    scheme[2].lines(&z, &mut dz);
    pencils.z_to_y(&dz, &mut y)?; // call transpose_z_to_y(dz, y)
    pencils.y_to_x(&y, &mut back)?; // call transpose_y_to_x(y, back)
    sum.iter_mut().zip(&*back).for_each(|(sum, term)| *sum += term);
    let mut error = 0.0_f64;
    each(&mut |offset, at| {
        let exact = 3.0 * at.iter().map(|x| x.cos()).product::<f64>();
        error = error.max((sum[offset] - exact).abs());
    });
    Ok(comm.max(&[error])?[0])
}

fn main() -> Result<()> {
    let mut last = f64::INFINITY;
    for n in [16, 32, 64] {
        let error = ferrier::ranks(6).run(|comm| divergence(&comm, [n, n + 4, n - 2], [2, 3]))?[0];
        println!("{n:3} points: the divergence is right to {error:.1e}");
        // Sixth order: a 64th of the error, or nearly so.
        assert!(error < last / 30.0, "{error} after {last}");
        last = error;
    }
    Ok(())
}
