//! The density of electrons in a plane-wave code: wave functions are given by
//! their modes inside a sphere of half the grid's radius; the density is the
//! sum of their squares in real space, where a product needs twice the modes.
//!
//! Many wave functions go through one plan (a batch). Their modes lie in
//! columns, of which ranks have equal numbers (`keep_sphere`): modes outside the
//! sphere are neither stored nor transformed nor sent. The kinetic energy is an
//! operator on the same columns.
//!
//!     cargo run --release --example density

use std::f64::consts::TAU;

use ferrier::spectral::{WaveNumbers, laplacian};
use ferrier::{Complex, Plan, Problem, Result};

/// Points of the grid, radius of the sphere, wave functions.
const N: usize = 32;
const RADIUS: f64 = 7.5;
const BANDS: usize = 6;

/// A mode of a wave function.
fn mode(band: usize, [x, y, z]: [f64; 3]) -> Complex<f64> {
    let b = band as f64 + 1.0;
    Complex::cis(b * x + 2.0 * b * y * y + 0.5 * b * z) * (-(x * x + y * y + z * z) / (4.0 * b)).exp()
}

fn main() -> Result<()> {
    let base = Problem::c2c([N; 3]).batch(BANDS);
    let problem = base.clone().keep_sphere(RADIUS).operators(true);
    let bytes = ferrier::ranks(4).run(|comm| {
        let mut plan = Plan::<f64>::new(&comm, &problem)?;
        let (mut modes, mut space) = (plan.make_output()?, plan.make_input()?);
        // On a box with sides of 2 pi wave vectors are whole numbers.
        let waves = WaveNumbers::new(plan.recipe(), [TAU; 3])?;
        let value = |band, index| match waves.is_held(index) {
            true => mode(band, waves.vector(index)),
            false => Complex::ZERO,
        };
        modes.fill_complex(value);
        // Each wave function has the norm 1.
        let volume = modes.local_box().volume();
        let bands = modes.complex().chunks_exact(volume.max(1));
        let mut norms: Vec<f64> = bands.map(|band| band.iter().map(Complex::norm_sqr).sum()).collect();
        norms.resize(BANDS, 0.0);
        let norms = comm.sum(&norms)?;
        let points = (N * N * N) as f64;
        modes.fill_complex(|band, index| value(band, index) * (points / norms[band].sqrt()));
        plan.backward(&modes, &mut space)?;

        let volume = space.local_box().volume();
        let mut density = vec![0.0; volume];
        for band in space.complex().chunks_exact(volume.max(1)) {
            density.iter_mut().zip(band).for_each(|(density, psi)| *density += psi.norm_sqr());
        }
        let electrons = comm.sum(&[density.iter().sum::<f64>() / points])?[0];

        // The kinetic energy: the mean of conj(psi) (-1/2 laplace) psi.
        let mut curved = plan.make_input()?;
        plan.call().operator(&laplacian(&waves)).apply(&space, &mut curved)?;
        let pairs = space.complex().iter().zip(curved.complex());
        let energy: f64 = pairs.map(|(psi, curved)| -0.5 * (psi.conj() * curved).re).sum();
        let energy = comm.sum(&[energy / points])?[0];
        if comm.rank() == 0 {
            println!("{BANDS} wave functions make {electrons:.12} electrons, kinetic energy {energy:.9}");
        }
        assert!((electrons - BANDS as f64).abs() < 1e-12);

        // The same by sums over all modes: the energy, and a wave function in one place.
        let (mut kinetic, mut direct) = (0.0, Complex::ZERO);
        let whole = -(RADIUS as i32)..=RADIUS as i32;
        for (x, y) in whole.clone().flat_map(|x| whole.clone().map(move |y| (x, y))) {
            for k in whole.clone().map(|z| [x, y, z].map(f64::from)) {
                let square = k.iter().map(|k| k * k).sum::<f64>();
                if square <= RADIUS * RADIUS {
                    let power = |band: usize| mode(band, k).norm_sqr() / norms[band];
                    kinetic += 0.5 * square * (0..BANDS).map(power).sum::<f64>();
                    let turn = (3.0 * k[0] + 5.0 * k[1] + 7.0 * k[2]) / N as f64;
                    direct += mode(2, k) * Complex::cis(TAU * turn);
                }
            }
        }
        assert!((energy / kinetic - 1.0).abs() < 1e-12, "{energy}, not {kinetic}");
        if let Some(at) = space.index(2, [3, 5, 7]) {
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
