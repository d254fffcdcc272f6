//! Filters on an image: a 2-D array spread over ranks, blurred against noise,
//! and sharpened again.
//!
//!     cargo run --release --example image_filter

use ferrier::{Array, LayoutSpec, Plan, Problem, Result, pointwise, spectral};

const HEIGHT: usize = 120;
const WIDTH: usize = 200;
/// Width of the blur, in pixels.
const SIGMA: f64 = 2.0;

/// A picture: soft stripes and a disc.
fn picture([_, i, j]: [usize; 3]) -> f64 {
    let (y, x) = (i as f64 - 60.0, j as f64 - 100.0);
    let stripes = 0.5
        + 0.5
            * (std::f64::consts::TAU * (2.0 * i as f64 / HEIGHT as f64 + 3.0 * j as f64 / WIDTH as f64))
                .sin();
    stripes + 0.5 * (-(x * x + y * y) / 800.0).exp()
}

/// Evenly between -1/2 and 1/2, by a hash of the place.
fn noise([_, i, j]: [usize; 3]) -> f64 {
    let z = ((i * WIDTH + j + 1) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
}

fn main() -> Result<()> {
    // A 2-D array has a first axis of one point.
    let problem = Problem::r2c([1, HEIGHT, WIDTH])
        .axes(&[1, 2])
        .input(LayoutSpec::slabs(1))
        .output(LayoutSpec::unconstrained())
        .operators(true);
    ferrier::ranks(4).run(|comm| {
        let mut plan = Plan::<f64>::new(&comm, &problem)?;
        // Lengths in pixels, so that widths are too.
        let waves = spectral::WaveNumbers::new(plan.recipe(), [1.0, HEIGHT as f64, WIDTH as f64])?;
        let (mut clean, mut image, mut out) = (plan.make_input()?, plan.make_input()?, plan.make_input()?);
        clean.fill_real(|_, at| picture(at));
        image.fill_real(|_, at| picture(at) + noise(at));
        let distance = |a: &Array<f64>, b: &Array<f64>| -> Result<f64> {
            let square = a.real().iter().zip(b.real()).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            Ok((comm.sum(&[square])?[0] / (HEIGHT * WIDTH) as f64).sqrt())
        };

        let before = distance(&image, &clean)?;
        plan.call().operator(&spectral::gaussian(&waves, SIGMA)).apply(&image, &mut out)?;
        let after = distance(&out, &clean)?;

        // Blurred, a clean picture can be sharpened again: each mode over what the blur has left of it.
        plan.call().operator(&spectral::gaussian(&waves, SIGMA)).apply(&clean, &mut image)?;
        let sharpen = pointwise(|index, mode| {
            let square = waves.vector(index).iter().map(|k| k * k).sum::<f64>();
            mode * (0.5 * SIGMA * SIGMA * square).min(20.0).exp()
        });
        plan.call().operator(&sharpen).apply(&image, &mut out)?;
        let (blurred, sharpened) = (distance(&image, &clean)?, distance(&out, &clean)?);

        if comm.rank() == 0 {
            println!("noise {before:.3}, blurred {after:.3}; blur {blurred:.3}, sharpened {sharpened:.1e}");
        }
        assert!(after < 0.3 * before && sharpened < 1e-3 * blurred);
        Ok(())
    })?;
    Ok(())
}
