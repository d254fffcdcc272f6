//! Gray–Scott reaction and diffusion on a 2-D torus with ghost cells, and the gravity of what grows: a 3-D Poisson step with
//! the same ranks in the same program. Neighbours exchange ghost cells of both substances in one message while
//! the cells that need none are computed.
//!
//!     cargo run --release -p ferrier --example gray_scott [STEPS]

use ferrier::{Box3, Comm, Ghosts, Halo, LayoutSpec, Order, Plan, Problem, Result, spectral};

const N: usize = 96;
const DEPTH: usize = 8;

/// Diffusion of both substances, feed and kill rate.
const DIFFUSION: [f64; 2] = [0.16, 0.08];
const FEED: f64 = 0.060;
const KILL: f64 = 0.062;

/// The two substances on this rank: its box of the plane, with one ghost cell on each side.
struct Plane {
    own: Box3,
    strides: [usize; 3],
}

impl Plane {
    /// The place of a cell of the box, by its indices from the first ghost cell on.
    fn at(&self, i: usize, j: usize) -> usize {
        i * self.strides[1] + j * self.strides[2]
    }

    /// One explicit step of the cells `rows` by `columns`, counted from the first cell of the box.
    fn step(&self, old: [&[f64]; 2], new: &mut [Vec<f64>; 2], rows: [usize; 2], columns: [usize; 2]) {
        for i in rows[0] + 1..rows[1] + 1 {
            for j in columns[0] + 1..columns[1] + 1 {
                let at = self.at(i, j);
                let around = |u: &[f64]| {
                    let [up, down] = [self.at(i - 1, j), self.at(i + 1, j)];
                    u[up] + u[down] + u[at - 1] + u[at + 1] - 4.0 * u[at]
                };
                let [u, v] = [old[0][at], old[1][at]];
                let reaction = u * v * v;
                new[0][at] = u + DIFFUSION[0] * around(old[0]) - reaction + FEED * (1.0 - u);
                new[1][at] = v + DIFFUSION[1] * around(old[1]) + reaction - (FEED + KILL) * v;
            }
        }
    }
}

/// Both substances after some steps on these ranks; returns the second one without its ghost cells.
fn react(comm: &Comm, steps: usize) -> Result<(Box3, Vec<f64>)> {
    let ghosts =
        Ghosts::widths([[0, 0], [1, 1], [1, 1]]).periodic([false, true, true]).faces_only().fields(2);
    let mut halo = Halo::<f64>::new(comm, [1, N, N], &LayoutSpec::bricks(), &ghosts)?;
    let plane = Plane { own: halo.local_box(), strides: halo.strides() };
    let [_, rows, columns] = plane.own.shape();
    let [mut u, mut v] = [halo.make_field()?, halo.make_field()?];
    u.fill(1.0);
    for i in 0..rows {
        for j in 0..columns {
            let seeded = |at: usize, first: usize| at + first >= 5 * N / 12 && at + first < 7 * N / 12;
            if seeded(i, plane.own.lo[1]) && seeded(j, plane.own.lo[2]) {
                let at = plane.at(i + 1, j + 1);
                (u[at], v[at]) = (0.5, 0.25 + 0.01 * ((i + plane.own.lo[1]) % 3) as f64);
            }
        }
    }
    let mut new = [u.to_vec(), v.to_vec()];
    for _ in 0..steps {
        let (inner_rows, inner_columns) = ([1, rows - 1], [1, columns - 1]);
        let exchange = halo.start([&mut u, &mut v])?;
        let [old_u, old_v] = exchange.fields();
        plane.step([&old_u[..], &old_v[..]], &mut new, inner_rows, inner_columns);
        exchange.finish()?;
        for border in [[0, 1], [rows - 1, rows]] {
            plane.step([&u[..], &v[..]], &mut new, border, [0, columns]);
        }
        for border in [[0, 1], [columns - 1, columns]] {
            plane.step([&u[..], &v[..]], &mut new, inner_rows, border);
        }
        u.copy_from_slice(&new[0]);
        v.copy_from_slice(&new[1]);
    }
    let row = |i: usize| v[plane.at(i + 1, 1)..plane.at(i + 1, columns) + 1].to_vec();
    Ok((plane.own, (0..rows).flat_map(row).collect()))
}

/// The potential of a slab that carries this density in its middle plane: solves the periodic 3-D Poisson equation and
/// returns the largest residual of its discrete check.
fn potential(comm: &Comm, own: Box3, density: &[f64]) -> Result<f64> {
    // Each rank has the column of cells above and below its part of the plane.
    let column = Box3::new([0, own.lo[1], own.lo[2]], [DEPTH, own.hi[1], own.hi[2]]);
    let layout = LayoutSpec::local(column).order(Order::C);
    let problem =
        Problem::r2c([DEPTH, N, N]).input(layout).output(LayoutSpec::unconstrained()).operators(true);
    let mut plan = Plan::<f64>::new(comm, &problem)?;
    let (mut mass, mut phi, mut back) = (plan.make_input()?, plan.make_input()?, plan.make_input()?);
    let plane = own.shape()[1] * own.shape()[2];
    mass.real_mut()[DEPTH / 2 * plane..][..plane].copy_from_slice(density);
    let size = [DEPTH as f64, N as f64, N as f64];
    let waves = spectral::WaveNumbers::new(plan.recipe(), size)?;
    plan.call().operator(&spectral::inverse_laplacian(&waves)).apply(&mass, &mut phi)?;
    plan.call().operator(&spectral::laplacian(&waves)).apply(&phi, &mut back)?;
    let cells = (DEPTH * N * N) as f64;
    let mean = comm.sum(&[mass.real().iter().sum::<f64>()])?[0] / cells;
    let residual = mass.real().iter().zip(back.real()).map(|(m, b)| (m - mean - b).abs()).fold(0.0, f64::max);
    Ok(comm.max(&[residual])?[0])
}

fn main() -> Result<()> {
    let steps = std::env::args().nth(1).map_or(2000, |text| text.parse().expect("a number of steps"));
    let run = |ranks: usize| {
        ferrier::ranks(ranks).run(|comm| {
            let (own, grown) = react(&comm, steps)?;
            let residual = potential(&comm, own, &grown)?;
            let mass = comm.sum(&[grown.iter().sum()])?[0];
            Ok((own, grown, mass, residual))
        })
    };
    let parts = run(4)?;
    let (mass, residual) = (parts[0].2, parts[0].3);
    println!("after {steps} steps: mass {mass:.6}, residual of the potential {residual:.1e}");
    assert!(residual < 1e-10);
    // Cells do not depend on how the plane is cut.
    let whole = &run(1)?[0].1;
    for (own, grown, ..) in &parts {
        for (row, i) in grown.chunks_exact(own.shape()[2]).zip(own.lo[1]..) {
            assert_eq!(row, &whole[i * N + own.lo[2]..i * N + own.hi[2]]);
        }
    }
    draw(whole);
    Ok(())
}

/// The second substance in letters.
fn draw(grown: &[f64]) {
    for i in (0..N).step_by(4) {
        let letter = |j: usize| [' ', '.', ':', 'o', '#'][((grown[i * N + j] * 12.0) as usize).min(4)];
        println!("{}", (0..N).step_by(2).map(letter).collect::<String>());
    }
}
