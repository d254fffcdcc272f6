//! Ghost cells alone: the time of their exchange against a copy of the same boxes without one.

use ferrier::{Comm, Ghosts, Halo, LayoutSpec, Real};
use serde::Serialize;

use crate::agree::{RankGroup, agree, agree_result, check_memory};
use crate::failure::{Failure, Outcome};
use crate::in_precision;
use crate::table::{bytes, digits, plural};
use crate::timing::{Times, median, timed};

/// About the time of the repetitions of one measurement.
const WANTED_SECONDS: f64 = 0.5;

/// The report of the benchmark; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct HaloReport {
    #[serde(flatten)]
    group: RankGroup,
    shape: [usize; 3],
    grid: String,
    width: usize,
    precision: &'static str,
    /// The most bytes of ghost cells of a rank.
    ghost_bytes: u64,
    /// The exchange in one call.
    exchange: Times,
    /// Start and finish, without work between them.
    start_finish: Times,
    /// A copy of as many boxes of the same shapes inside each rank's field, by the same threads, without an exchange.
    copy: Times,
    /// Exchange over copy, medians.
    exchange_over_copy: f64,
    /// The least time of a link for the bytes of a rank, where a network is simulated.
    wire_ms: Option<f64>,
    notes: Vec<String>,
}

/// Options of the benchmark.
pub struct HaloBench {
    /// The shape of the array.
    pub shape: [usize; 3],
    /// The precision of its real elements.
    pub precision: ferrier::Precision,
    /// How it is distributed.
    pub layout: LayoutSpec,
    /// Ghost cells on each side of each axis longer than 1; all axes are periodic, edges and corners included.
    pub width: usize,
    /// The exchange, if the user named one.
    pub exchange: Option<String>,
    /// The simulated network between ranks.
    pub wire: Option<ferrier::Wire>,
    /// Number of repetitions; `None`: about half a second's worth.
    pub repeat: Option<usize>,
}

impl HaloBench {
    /// Times exchanges of ghost cells. Collective.
    ///
    /// # Errors
    /// Those of the library; wrong ghost cells.
    pub fn run(&self, comm: &Comm) -> Outcome<HaloReport> {
        in_precision!(self.precision, T => measure::<T>(comm, self))
    }

    fn ghosts(&self) -> Ghosts {
        let widths = self.shape.map(|n| if n == 1 { [0; 2] } else { [self.width; 2] });
        Ghosts::widths(widths).periodic([true; 3])
    }
}

/// The value of a cell.
fn cell([i, j, k]: [usize; 3]) -> f64 {
    (i * 64 + j * 8 + k) as f64
}

fn measure<T: Real + ferrier::Element>(comm: &Comm, options: &HaloBench) -> Outcome<HaloReport> {
    let ghosts = match &options.exchange {
        Some(name) => options.ghosts().exchange(name),
        None => options.ghosts(),
    };
    let mut halo = Halo::<T>::new(comm, options.shape, &options.layout, &ghosts)?;
    let own = halo.local_box();
    check_memory(comm, halo.memory() + 2 * halo.volume() * size_of::<T>())?;
    let mut field = agree_result(comm, halo.make_field())?;
    fill(&halo, &mut field, options.shape, true);
    let exact = field.to_vec();
    fill(&halo, &mut field, options.shape, false);
    halo.exchange([&mut field])?;
    let wrong = field.iter().zip(&exact).any(|(got, exact)| got != exact);
    agree(comm, if wrong { Err(Failure::wrong("ghost cells have wrong values")) } else { Ok(()) })?;

    // A periodic array of one rank copies the same boxes inside its own field.
    let alone = Comm::one_rank().with_threads(comm.threads());
    let mut copy = Halo::<T>::new(&alone, own.shape(), &LayoutSpec::slabs(0), &options.ghosts())?;
    let mut copied = copy.make_field()?;
    let once = timed(comm, || halo.exchange([&mut field]))?;
    let repeat = options.repeat.unwrap_or_else(|| (WANTED_SECONDS / once).ceil().clamp(5.0, 2000.0) as usize);
    let mut seconds: [Vec<f64>; 3] = std::array::from_fn(|_| Vec::with_capacity(repeat));
    // In blocks, so that each finds its own data in the caches, in turn, so that all meet the same noise.
    let blocks = 5.min(repeat);
    for block in 0..blocks {
        let times = (block + 1) * repeat / blocks - block * repeat / blocks;
        for _ in 0..times {
            seconds[0].push(timed(comm, || halo.exchange([&mut field]))?);
        }
        for _ in 0..times {
            seconds[1].push(timed(comm, || halo.start([&mut field])?.finish().map(drop))?);
        }
        for _ in 0..times {
            seconds[2].push(timed(comm, || copy.exchange([&mut copied]))?);
        }
    }
    let ghost_bytes = ((halo.volume() - own.volume()) * size_of::<T>()) as f64;
    let most = comm.max(&[ghost_bytes])?[0];
    let [exchange, start_finish, plain] = seconds.each_ref().map(|seconds| Times::new(seconds));
    Ok(HaloReport {
        group: RankGroup::new(comm),
        shape: options.shape,
        grid: halo.layout().grid_text(),
        width: options.width,
        precision: T::PRECISION.name(),
        ghost_bytes: most as u64,
        exchange,
        start_finish,
        copy: plain,
        exchange_over_copy: median(&seconds[0]) / median(&seconds[2]),
        wire_ms: options.wire.map(|wire| most * 8e-6 / wire.gbit_per_s + wire.latency_us * 1e-3),
        notes: halo.notes().to_vec(),
    })
}

/// Sets the cells of a rank's field, and its ghost cells or zeros there.
fn fill<T: Real + ferrier::Element>(halo: &Halo<T>, field: &mut [T], shape: [usize; 3], ghosts: bool) {
    let (own, room, strides) = (halo.local_box(), halo.shape(), halo.strides());
    let before: [usize; 3] = std::array::from_fn(|axis| (room[axis] - own.shape()[axis]) / 2);
    for i in 0..room[0] {
        for j in 0..room[1] {
            for k in 0..room[2] {
                let at = [i, j, k];
                let inside = (0..3).all(|a| at[a] >= before[a] && at[a] < before[a] + own.shape()[a]);
                let index =
                    std::array::from_fn(|a| (own.lo[a] + at[a] + (shape[a] - 1) * before[a]) % shape[a]);
                let value = if inside || ghosts { cell(index) } else { 0.0 };
                field[i * strides[0] + j * strides[1] + k * strides[2]] = T::rounded(value);
            }
        }
    }
}

impl HaloReport {
    /// A table of the times, and the notes.
    pub fn text(&self) -> String {
        let RankGroup { ranks, nodes, threads, transport } = self.group;
        let [ranks, nodes, threads] =
            [(ranks, "rank"), (nodes, "node"), (threads, "thread")].map(|(count, noun)| plural(count, noun));
        let [x, y, z] = self.shape;
        let mut out = format!(
            "{x}x{y}x{z} {} on {ranks} of {nodes} ({transport}), {threads} each, {}: ghost cells of width {}, {} per rank\n",
            self.precision,
            self.grid,
            self.width,
            bytes(self.ghost_bytes)
        );
        for (name, times) in [
            ("exchange", &self.exchange),
            ("start and finish", &self.start_finish),
            ("copy alone", &self.copy),
        ] {
            let (median, best) = (digits(times.median_ms), digits(times.best_ms));
            out += &format!("{name:17} {median:>9} ms (best {best})\n");
        }
        out += &format!("exchange over copy: {:.2}\n", self.exchange_over_copy);
        if let Some(wire) = self.wire_ms {
            let ratio = self.exchange.median_ms / wire;
            out += &format!("time of the wire {:>9} ms: exchange over wire {ratio:.2}\n", digits(wire));
        }
        self.notes.iter().for_each(|note| out += &format!("note: {note}\n"));
        out
    }
}
