//! A Gaussian random field with a given spectrum, as cosmologists and
//! turbulence modellers start from: white noise, each mode multiplied by the
//! root of its power, and back.
//!
//!     cargo run --release --example random_field

use std::f64::consts::TAU;

use ferrier::{LayoutSpec, Plan, Problem, Result, pointwise, spectral};

const N: usize = 48;

/// Power of a mode: rises as k^2, falls as k^-4.
fn power(k: f64) -> f64 {
    if k == 0.0 { 0.0 } else { 1e-3 * k.powi(2) / (1.0 + (k / 4.0).powi(6)) }
}

/// Numbers that depend on the place alone, so that the field does not depend
/// on the number of ranks (a hash, then the method of Box and Muller).
fn normal([i, j, k]: [usize; 3]) -> f64 {
    let mut state = ((i * N + j) * N + k) as u64;
    let mut uniform = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    (-2.0 * (1.0 - uniform()).ln()).sqrt() * (TAU * uniform()).cos()
}

fn main() -> Result<()> {
    let problem = Problem::r2c([N; 3]).output(LayoutSpec::unconstrained()).operators(true);
    ferrier::ranks(4).run(|comm| {
        let mut plan = Plan::<f64>::new(&comm, &problem)?;
        let waves = spectral::WaveNumbers::new(plan.recipe(), [TAU; 3])?;
        let (mut noise, mut field) = (plan.make_input()?, plan.make_input()?);
        noise.fill_real(|_, at| normal(at));
        // White noise has the power 1 / N^3 in every mode.
        let points = (N * N * N) as f64;
        let length = |index| waves.vector(index).iter().map(|k| k * k).sum::<f64>().sqrt();
        let colour = pointwise(|index, mode| mode * (points * power(length(index))).sqrt());
        plan.call().operator(&colour).apply(&noise, &mut field)?;

        let mut spectrum = plan.make_output()?;
        plan.forward(&field, &mut spectrum)?;
        let shells = spectral::power_spectrum(&comm, &plan, &waves, &spectrum)?;
        for shell in shells.iter().filter(|shell| shell.k > 0.0 && shell.k < N as f64 / 2.0) {
            if comm.rank() == 0 && shell.k % 4.0 == 1.0 {
                println!("k {:2}: {:.3e} of {:.3e} wanted", shell.k, shell.mean(), power(shell.k));
            }
            // The power varies within a shell, and the mean of m squares scatters by the root of 2/m.
            let within = 0.25 + 5.0 / (shell.modes as f64 / 2.0).sqrt();
            let ratio = shell.mean() / power(shell.k);
            assert!((1.0 - within..1.0 + within).contains(&ratio), "shell {}: {ratio}", shell.k);
        }
        Ok(())
    })?;
    Ok(())
}
