//! The density of electrons in a plane-wave code: wave functions are given by
//! their modes inside a sphere of half the grid's radius; the density is the
//! sum of their squares in real space, where a product needs twice the modes.
//!
//! Many wave functions go through one plan (a batch), and modes that are zero
//! are neither transformed nor sent (`keep`).
//!
//!     cargo run --release --example density

use ferrier::{Complex, Keep, LayoutSpec, Plan, Problem, Result};

/// Points of the grid, modes that are kept along each axis, wave functions.
const N: usize = 32;
const KEPT: usize = 15;
const BANDS: usize = 6;

/// The whole number that an index of the kept modes stands for.
fn wave(index: usize) -> f64 {
    if 2 * index < KEPT { index as f64 } else { index as f64 - KEPT as f64 }
}

/// A mode of a wave function: zero outside the sphere.
fn mode(band: usize, index: [usize; 3]) -> Complex<f64> {
    let [x, y, z] = index.map(wave);
    let square = x * x + y * y + z * z;
    if square > (KEPT as f64 / 2.0).powi(2) {
        return Complex::ZERO;
    }
    let b = band as f64 + 1.0;
    Complex::cis(b * x + 2.0 * b * y * y + 0.5 * b * z) * (-square / (4.0 * b)).exp()
}

fn main() -> Result<()> {
    let base = Problem::c2c([N; 3]).batch(BANDS).output(LayoutSpec::best());
    let problem = base.clone().keep([Keep::Lowest(KEPT); 3]);
    let bytes = ferrier::ranks(4).run(|comm| {
        let mut plan = Plan::<f64>::new(&comm, &problem)?;
        let (mut waves, mut space) = (plan.make_output()?, plan.make_input()?);
        waves.fill_complex(mode);
        // Each wave function has the norm 1.
        let mut norms = vec![0.0; BANDS];
        let volume = waves.get_box().volume();
        for (band, norm) in norms.iter_mut().enumerate() {
            *norm = waves.complex()[band * volume..][..volume].iter().map(Complex::norm_sqr).sum();
        }
        let norms = comm.sum(&norms)?;
        let points = (N * N * N) as f64;
        waves.fill_complex(|band, index| mode(band, index) * (points / norms[band].sqrt()));
        plan.backward(&waves, &mut space)?;

        let volume = space.get_box().volume();
        let mut density = vec![0.0; volume];
        for band in space.complex().chunks_exact(volume.max(1)) {
            density.iter_mut().zip(band).for_each(|(density, psi)| *density += psi.norm_sqr());
        }
        let electrons = comm.sum(&[density.iter().sum::<f64>() / points])?[0];
        if comm.rank() == 0 {
            println!("{BANDS} wave functions make {electrons:.12} electrons");
        }
        assert!((electrons - BANDS as f64).abs() < 1e-12);

        // The same by a sum over modes, in one place.
        if let Some(at) = space.index(2, [3, 5, 7]) {
            let mut direct = Complex::ZERO;
            for i in 0..KEPT {
                for j in 0..KEPT {
                    for k in 0..KEPT {
                        let turn = (3.0 * wave(i) + 5.0 * wave(j) + 7.0 * wave(k)) / N as f64;
                        direct += mode(2, [i, j, k]) * Complex::cis(std::f64::consts::TAU * turn);
                    }
                }
            }
            assert!((space.complex()[at] - direct / norms[2].sqrt()).norm() < 1e-12);
        }
        let full = Plan::<f64>::new(&comm, &base)?;
        Ok([plan.recipe().wire_bytes(), full.recipe().wire_bytes()])
    })?;
    let [kept, full] = bytes[0];
    println!("between ranks go {kept} bytes, with all modes {full}");
    assert!(kept * 3 < full);
    Ok(())
}
