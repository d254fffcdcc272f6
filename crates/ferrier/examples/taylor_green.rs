//! The Taylor-Green vortex: the Navier-Stokes equations on a periodic cube by
//! a pseudo-spectral method, dealiased, in time by Runge and Kutta's.
//!
//! Without arguments a short run at a Reynolds number of 100 is held against
//! the exact series in time. With them:
//!
//!     taylor_green N RE END DT RANKS DRAWINGS
//!
//! prints energy, enstrophy and dissipation, and draws the dissipation over
//! time and a slice of the vorticity at t = 9, or at the end if that is sooner
//! (`scripts/taylor-green` has the case that everybody compares with: N 128,
//! RE 1600, peak near t = 9).

mod drawing;

use std::f64::consts::TAU;

use ferrier::{Array, Comm, Complex, Data, LayoutSpec, Plan, Problem, Result, spectral};

/// The flow: three components of the velocity in one array, as modes.
struct Flow {
    plan: Plan<f64>,
    viscosity: f64,
    dealias: Box<dyn ferrier::Operator<f64>>,
    /// The wave vector of each mode of this rank, for derivatives and for squares.
    waves: Vec<([f64; 3], f64)>,
    /// What a mode counts in sums over all: two where its mirror image is not there.
    weights: Vec<f64>,
    velocity: Array<f64>,
    vorticity: Array<f64>,
    modes: Array<f64>,
}

impl Flow {
    fn new(comm: &Comm, n: usize, reynolds: f64) -> Result<Flow> {
        let problem = Problem::r2c([n; 3]).batch(3).output(LayoutSpec::unconstrained()).operators(true);
        let plan = Plan::<f64>::new(comm, &problem)?;
        let table = spectral::WaveNumbers::new(plan.recipe(), [TAU; 3])?;
        let (mut waves, mut weights) = (Vec::new(), Vec::new());
        for index in indices(&plan) {
            let odd = |axis: usize| {
                if table.is_nyquist(axis, index[axis]) { 0.0 } else { table.at(axis, index[axis]) }
            };
            waves.push(([odd(0), odd(1), odd(2)], table.vector(index).iter().map(|k| k * k).sum()));
            weights.push(if index[2] == 0 || table.is_nyquist(2, index[2]) { 1.0 } else { 2.0 });
        }
        let (velocity, vorticity, modes) = (plan.make_input()?, plan.make_input()?, plan.make_output()?);
        let dealias = Box::new(spectral::two_thirds(&table));
        Ok(Flow { plan, viscosity: 1.0 / reynolds, dealias, waves, weights, velocity, vorticity, modes })
    }

    /// The modes of the vortex at time 0.
    fn start(&mut self, n: usize) -> Result<Vec<Complex<f64>>> {
        let angle = |i: usize| TAU * i as f64 / n as f64;
        self.velocity.fill_real(|component, at| {
            let [(sx, cx), (sy, cy), (_, cz)] = at.map(|i| angle(i).sin_cos());
            [sx * cy * cz, -cx * sy * cz, 0.0][component]
        });
        self.plan.forward(&self.velocity, &mut self.modes)?;
        Ok(self.modes.complex().to_vec())
    }

    /// The curl of a field, mode by mode.
    fn curl(&self, field: &[Complex<f64>], out: &mut [Complex<f64>]) {
        let m = self.waves.len();
        for (i, ([kx, ky, kz], _)) in self.waves.iter().enumerate() {
            let [u, v, w] = [field[i], field[m + i], field[2 * m + i]];
            let times_i = |z: Complex<f64>| Complex::new(-z.im, z.re);
            out[i] = times_i(w * ky - v * kz);
            out[m + i] = times_i(u * kz - w * kx);
            out[2 * m + i] = times_i(v * kx - u * ky);
        }
    }

    /// How fast the modes change: u x curl(u), less its gradient part, less what viscosity takes.
    fn slope(&mut self, modes: &[Complex<f64>], slope: &mut [Complex<f64>]) -> Result<()> {
        self.curl(modes, slope);
        self.modes.complex_mut().copy_from_slice(slope);
        self.plan.backward(&self.modes, &mut self.vorticity)?;
        self.plan.backward(modes, &mut self.velocity)?;
        let n = self.velocity.real().len() / 3;
        let (velocity, vorticity) = (self.velocity.real_mut(), self.vorticity.real());
        for i in 0..n {
            let [u, v, w] = [velocity[i], velocity[n + i], velocity[2 * n + i]];
            let [a, b, c] = [vorticity[i], vorticity[n + i], vorticity[2 * n + i]];
            (velocity[i], velocity[n + i], velocity[2 * n + i]) =
                (v * c - w * b, w * a - u * c, u * b - v * a);
        }
        // Products of modes above a third of the points would come back as others: dropped on the way.
        self.plan.call().operator(&&*self.dealias).forward(&self.velocity, &mut self.modes)?;
        let m = self.waves.len();
        let force = self.modes.complex();
        for (i, (k, square)) in self.waves.iter().enumerate() {
            let along = (force[i] * k[0] + force[m + i] * k[1] + force[2 * m + i] * k[2]) / square.max(1.0);
            for (c, k) in k.iter().enumerate() {
                let at = c * m + i;
                slope[at] = force[at] - along * k - modes[at] * (self.viscosity * square);
            }
        }
        Ok(())
    }

    /// Energy and enstrophy: half the means of |u|^2 and |curl u|^2.
    fn sums(&self, comm: &Comm, modes: &[Complex<f64>], n: usize) -> Result<[f64; 2]> {
        let m = self.waves.len();
        let (mut energy, mut enstrophy) = (0.0, 0.0);
        for (at, mode) in modes.iter().enumerate() {
            let part = self.weights[at % m] * mode.norm_sqr();
            energy += part;
            enstrophy += part * self.waves[at % m].1;
        }
        let scale = 0.5 / ((n * n * n) as f64).powi(2);
        let sums = comm.sum(&[scale * energy, scale * enstrophy])?;
        Ok([sums[0], sums[1]])
    }
}

/// The indices of this rank's modes, as they lie in memory.
fn indices(plan: &Plan<f64>) -> Vec<[usize; 3]> {
    let (part, order) = (plan.output_box(), plan.output_layout().order());
    let [slow, mid, fast] = order.axes();
    let mut all = Vec::with_capacity(part.volume());
    for i in part.lo[slow]..part.hi[slow] {
        for j in part.lo[mid]..part.hi[mid] {
            for k in part.lo[fast]..part.hi[fast] {
                let mut index = [0; 3];
                (index[slow], index[mid], index[fast]) = (i, j, k);
                all.push(index);
            }
        }
    }
    all
}

/// Runs to `end`; time, energy and enstrophy after each step. What there is at step `look` is shown.
fn run(
    comm: &Comm,
    (n, reynolds): (usize, f64),
    (end, dt): (f64, f64),
    (look, mut show): (usize, impl FnMut(&Flow)),
) -> Result<Vec<[f64; 3]>> {
    let mut flow = Flow::new(comm, n, reynolds)?;
    let mut modes = flow.start(n)?;
    let zero = vec![Complex::ZERO; modes.len()];
    let (mut slope, mut stage, mut sum) = (zero.clone(), zero.clone(), zero);
    let mut history = Vec::new();
    for step in 0..=(end / dt).round() as usize {
        let [energy, enstrophy] = flow.sums(comm, &modes, n)?;
        history.push([step as f64 * dt, energy, enstrophy]);
        sum.copy_from_slice(&modes);
        stage.copy_from_slice(&modes);
        let stages = [(0.5, 1.0 / 6.0), (0.5, 1.0 / 3.0), (1.0, 1.0 / 3.0), (0.0, 1.0 / 6.0)];
        for (number, (next, share)) in stages.into_iter().enumerate() {
            flow.slope(&stage, &mut slope)?;
            // The first slope is that of the flow as it is.
            if step == look && number == 0 {
                show(&flow);
            }
            for i in 0..modes.len() {
                sum[i] += slope[i] * (dt * share);
                stage[i] = modes[i] + slope[i] * (dt * next);
            }
        }
        modes.copy_from_slice(&sum);
    }
    Ok(history)
}

/// Energy and enstrophy at a Reynolds number of 100 for short times: the
/// coefficients of their series in t, from the equations in exact fractions.
const SERIES: [[f64; 5]; 2] = [
    [1.0 / 8.0, -3.0 / 400.0, 9.0 / 40_000.0, -3179.0 / 12_000_000.0, 12_527.0 / 400_000_000.0],
    [3.0 / 8.0, -9.0 / 400.0, 3179.0 / 80_000.0, -12_527.0 / 2_000_000.0, 30_248_657.0 / 8_800_000_000.0],
];

/// Energy and enstrophy at t = 1 and 2, from the same method with half the step, written with numpy.
const STORED: [[f64; 3]; 2] = [[1.0, 0.117_480_934, 0.388_428_092], [2.0, 0.109_047_775, 0.463_245_497]];

fn check() -> Result<()> {
    let all = ferrier::ranks(2).run(|comm| run(&comm, (32, 100.0), (2.0, 0.025), (0, |_| ())))?;
    let history = &all[0];
    for [t, energy, enstrophy] in history.iter().copied().filter(|row| row[0] < 0.25) {
        let exact = SERIES.map(|series| series.iter().rev().fold(0.0, |sum, c| sum * t + c));
        // What is left of the series is of the order t^5, of Runge and Kutta's method dt^4.
        let within = 2e-3 * t.powi(5) + 1e-9;
        assert!(
            (energy - exact[0]).abs() < within && (enstrophy - exact[1]).abs() < within,
            "{t}: {energy} {enstrophy}, {exact:?}"
        );
    }
    for [time, energy, enstrophy] in STORED {
        let Some(row) = history.iter().find(|row| (row[0] - time).abs() < 1e-9) else { continue };
        println!("t = {time}: energy {:.9}, enstrophy {:.9}", row[1], row[2]);
        assert!((row[1] - energy).abs() < 2e-9 && (row[2] - enstrophy).abs() < 5e-9, "{row:?}");
    }
    Ok(())
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() {
        return check();
    }
    let number = |at: usize| -> Result<f64> {
        let word = words.get(at).ok_or_else(|| ferrier::Error::other("N RE END DT RANKS DRAWINGS"))?;
        word.parse().map_err(ferrier::Error::other)
    };
    let (n, reynolds, end, dt) = (number(0)? as usize, number(1)?, number(2)?, number(3)?);
    let folder = words.get(5).cloned().unwrap_or_else(|| ".".into());
    let shown = end.min(9.0);
    let all = ferrier::ranks(number(4)? as usize).run(|comm| {
        // |vorticity| in the plane x = 0, which rank 0 has.
        let mut slice = Vec::new();
        let show = |flow: &Flow| {
            let volume = flow.vorticity.real_box().volume();
            slice = drawing::magnitude(flow.vorticity.scalars(), volume, n * n);
        };
        let history = run(&comm, (n, reynolds), (end, dt), ((shown / dt).round() as usize, show))?;
        Ok((history, slice))
    })?;
    let (history, slice) = &all[0];
    println!("t,energy,enstrophy,dissipation");
    for [t, energy, enstrophy] in history {
        println!("{t:.4},{energy:.9},{enstrophy:.9},{:.9}", 2.0 * enstrophy / reynolds);
    }
    let curve: Vec<[f64; 2]> = history.iter().map(|row| [row[0], 2.0 * row[2] / reynolds]).collect();
    let title = format!("Taylor-Green vortex, {n}^3, Re {reynolds}: dissipation");
    std::fs::write(format!("{folder}/dissipation.svg"), drawing::curve(&title, &curve))?;
    let title = format!("|vorticity| in the plane x = 0 at t = {shown}, {n}^3, Re {reynolds}");
    std::fs::write(format!("{folder}/vorticity.svg"), drawing::plane(&title, slice, n))?;
    Ok(())
}
