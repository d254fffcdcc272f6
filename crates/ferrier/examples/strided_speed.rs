//! How much strides cost: transforms of arrays with ghost cells, padded rows and interleaved components, relative to arrays
//! without gaps of the same kind of memory.
//!
//! ```sh
//! cargo run --release -p ferrier --example strided_speed -- [POINTS] [RANKS] [CALLS]
//! ```
//!
//! Calls of both plans alternate; the figures are medians over calls of the slowest rank.

use std::time::Instant;

use ferrier::{ArrayStrides, Comm, Data, DataMut, LayoutSpec, Order, Plan, Problem, Result};

/// Zeros of the user's own, as an application allocates them.
struct Memory(Vec<f64>);

impl Data<f64> for Memory {
    fn scalars(&self) -> &[f64] {
        &self.0
    }
    fn is_real(&self) -> Option<bool> {
        None
    }
}

impl DataMut<f64> for Memory {
    fn scalars_mut(&mut self) -> &mut [f64] {
        &mut self.0
    }
}

/// A plan with arrays for its ends.
struct Contestant {
    plan: Plan<f64>,
    field: Memory,
    spectrum: Memory,
    seconds: Vec<f64>,
}

impl Contestant {
    fn new(comm: &Comm, problem: &Problem) -> Result<Self> {
        let plan = Plan::new(comm, problem)?;
        let width = |real: bool| if real { 1 } else { 2 };
        // Values that are touched: pages are there before the first call.
        let memory = |elements: usize, real: bool| {
            Memory((0..elements * width(real)).map(|i| (i % 17) as f64).collect())
        };
        let field = memory(plan.input_len(), problem.is_real());
        let spectrum = memory(plan.output_len(), problem.has_real_spectrum());
        Ok(Contestant { plan, field, spectrum, seconds: Vec::new() })
    }

    /// There and back; all ranks start together.
    fn call(&mut self, comm: &Comm) -> Result<()> {
        comm.max(&[0.0])?;
        let start = Instant::now();
        self.plan.forward(&self.field, &mut self.spectrum)?;
        self.plan.backward(&self.spectrum, &mut self.field)?;
        self.seconds.push(comm.max(&[start.elapsed().as_secs_f64()])?[0]);
        Ok(())
    }

    fn median(&mut self) -> f64 {
        self.seconds.sort_by(f64::total_cmp);
        self.seconds[self.seconds.len() / 2]
    }
}

fn main() -> Result<()> {
    let arguments: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let argument = |number: usize, default: usize| arguments.get(number).copied().unwrap_or(default);
    let (n, ranks, calls) = (argument(0, 128), argument(1, 2), argument(2, 15));
    let shape = [n; 3];
    let lines = ferrier::ranks(ranks).run(|comm| {
        let mut lines = Vec::new();
        let own = |layout: &LayoutSpec, shape: [usize; 3]| -> Result<[usize; 3]> {
            Ok(layout.layout(shape, ranks)?.boxes()[comm.rank()].shape())
        };
        let (bricks, slabs) = (LayoutSpec::bricks(), LayoutSpec::slabs(0));
        let (brick, slab) = (own(&bricks, shape)?, own(&slabs, shape)?);
        let ghosts = |part: [usize; 3]| ArrayStrides::inside(part.map(|n| n + 4), [2; 3], Order::C);
        let c2c = Problem::c2c(shape);
        let in_bricks = c2c.clone().input(bricks.clone()).output(bricks);
        let thrice = c2c.clone().batch(3);
        let interleaved = ArrayStrides::interleaved(slab, 3, Order::C);
        let r2c = Problem::r2c(shape);
        let cases = [
            ("ghost cells, slabs", c2c.clone(), c2c.input_strides(ghosts(slab)).output_strides(ghosts(slab))),
            (
                "ghost cells, bricks",
                in_bricks.clone(),
                in_bricks.input_strides(ghosts(brick)).output_strides(ghosts(brick)),
            ),
            ("padded real rows", r2c.clone(), r2c.input_strides(ArrayStrides::padded_real(slab, Order::C))),
            (
                "3 components side by side",
                thrice.clone(),
                thrice.input_strides(interleaved).output_strides(interleaved),
            ),
        ];
        for (name, plain, strided) in cases {
            let (mut plain, mut strided) =
                (Contestant::new(&comm, &plain)?, Contestant::new(&comm, &strided)?);
            for _ in 0..=calls {
                plain.call(&comm)?;
                strided.call(&comm)?;
            }
            // The first call of each is not counted.
            for contestant in [&mut plain, &mut strided] {
                contestant.seconds.remove(0);
            }
            let (one, two) = (plain.median() * 1e3, strided.median() * 1e3);
            lines.push(format!("{name:<28} {one:9.3} ms {two:9.3} ms   {:.2}", two / one));
        }
        Ok(lines)
    })?;
    println!("{n}^3, {ranks} ranks: forward and backward, arrays without gaps and with strides");
    lines[0].iter().for_each(|line| println!("{line}"));
    Ok(())
}
