//! Four ranks, bricks in, pencils out: transform a wave and find it again.
//!
//!     cargo run --release -p ferrier --example quick

use ferrier::{Complex, LayoutSpec, Plan, Problem};

fn main() -> ferrier::Result<()> {
    let n = 48;
    let problem = Problem::c2c([n, n, n]).input(LayoutSpec::bricks()).output(LayoutSpec::pencils(0));
    let found = ferrier::ranks(4).run(|comm| {
        let mut plan = Plan::<f64>::new(&comm, &problem)?;
        if comm.rank() == 0 {
            println!("{}\nmemory on rank 0: {} bytes", plan.recipe(), plan.memory().total());
        }
        let mut wave = plan.make_input()?;
        wave.fill_complex(|_, [i, j, k]| {
            Complex::cis(std::f64::consts::TAU * (5 * i + 7 * j + 11 * k) as f64 / n as f64)
        });
        let mut modes = plan.make_output()?;
        plan.forward(&wave, &mut modes)?;
        // The one mode that is not zero lies on one rank.
        Ok(modes.index(0, [5, 7, 11]).map(|at| modes.complex()[at].re / (n * n * n) as f64))
    })?;
    let peak: f64 = found.into_iter().flatten().sum();
    println!("mode (5, 7, 11) has the amplitude {peak}");
    assert!((peak - 1.0).abs() < 1e-12);
    Ok(())
}
