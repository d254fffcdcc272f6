//! Ghost cells alone: the time of their exchange against a copy of the same boxes without one.

use ferrier::{Box3, Comm, CopyBackend, Cpu, DeviceSpec, Element, Ghosts, Halo, LayoutSpec, Real};
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
    device: String,
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
    /// The least time of a link for the bytes that a rank gets from other nodes, where a network is simulated.
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
    /// Where the field is.
    pub device: DeviceSpec,
    /// The exchange, if the user named one.
    pub exchange: Option<String>,
    /// The simulated network between ranks.
    pub wire: Option<ferrier::Wire>,
    /// Number of repetitions; `None`: about half a second's worth.
    pub repeat: Option<usize>,
}

impl HaloBench {
    /// Times exchanges of ghost cells in main memory. Collective.
    ///
    /// # Errors
    /// Those of the library; wrong ghost cells.
    pub fn run(&self, comm: &Comm) -> Outcome<HaloReport> {
        in_precision!(self.precision, T => measure::<T, HostHalo<T>>(comm, self))
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

/// The ghost cells of one field, where a device has it.
pub(crate) trait TimedHalo<T: Real + Element> {
    /// The device.
    type Device: CopyBackend;
    /// Calls that are timed together.
    const CALLS: usize;

    fn new(
        comm: &Comm,
        shape: [usize; 3],
        layout: &LayoutSpec,
        ghosts: &Ghosts,
        device: DeviceSpec,
    ) -> Outcome<Self>
    where
        Self: Sized;
    fn halo(&self) -> &Halo<T, Self::Device>;
    fn set(&mut self, cells: &[T]) -> ferrier::Result<()>;
    fn cells(&self) -> ferrier::Result<Vec<T>>;
    fn exchange(&mut self) -> ferrier::Result<()>;
    fn start_and_finish(&mut self) -> ferrier::Result<()>;
    /// Returns when what the calls enqueued is done.
    fn complete(&self) -> ferrier::Result<()>;
}

/// In main memory.
struct HostHalo<T: Real + Element> {
    halo: Halo<T>,
    field: ferrier::Field<T>,
}

impl<T: Real + Element> TimedHalo<T> for HostHalo<T> {
    type Device = Cpu;
    const CALLS: usize = 1;

    fn new(
        comm: &Comm,
        shape: [usize; 3],
        layout: &LayoutSpec,
        ghosts: &Ghosts,
        _: DeviceSpec,
    ) -> Outcome<Self> {
        let halo = Halo::new(comm, shape, layout, ghosts)?;
        check_memory(comm, halo.memory() + 2 * halo.volume() * size_of::<T>())?;
        let field = agree_result(comm, halo.make_field())?;
        Ok(HostHalo { halo, field })
    }

    fn halo(&self) -> &Halo<T> {
        &self.halo
    }

    fn set(&mut self, cells: &[T]) -> ferrier::Result<()> {
        self.field.copy_from_slice(cells);
        Ok(())
    }

    fn cells(&self) -> ferrier::Result<Vec<T>> {
        Ok(self.field.to_vec())
    }

    fn exchange(&mut self) -> ferrier::Result<()> {
        self.halo.exchange([&mut self.field])
    }

    fn start_and_finish(&mut self) -> ferrier::Result<()> {
        self.halo.start([&mut self.field])?.finish().map(drop)
    }

    fn complete(&self) -> ferrier::Result<()> {
        Ok(())
    }
}

/// Seconds of a call on the slowest rank. Collective.
fn seconds<T: Real + Element, H: TimedHalo<T>>(
    comm: &Comm,
    halo: &mut H,
    call: fn(&mut H) -> ferrier::Result<()>,
) -> ferrier::Result<f64> {
    let all = timed(comm, || {
        (0..H::CALLS).try_for_each(|_| call(halo))?;
        halo.complete()
    })?;
    Ok(all / H::CALLS as f64)
}

/// Times exchanges of ghost cells on a device. Collective.
pub(crate) fn measure<T: Real + Element, H: TimedHalo<T>>(
    comm: &Comm,
    options: &HaloBench,
) -> Outcome<HaloReport> {
    let ghosts = match &options.exchange {
        Some(name) => options.ghosts().exchange(name),
        None => options.ghosts(),
    };
    let mut halo = H::new(comm, options.shape, &options.layout, &ghosts, options.device)?;
    let own = halo.halo().local_box();
    agree_result(comm, halo.set(&cells(halo.halo(), options.shape, false)))?;
    halo.exchange()?;
    halo.complete()?;
    let wrong = agree_result(comm, halo.cells())? != cells(halo.halo(), options.shape, true);
    agree(comm, if wrong { Err(Failure::wrong("ghost cells have wrong values")) } else { Ok(()) })?;

    // A periodic array of one rank copies the same boxes inside its own field.
    let alone = Comm::one_rank().with_threads(comm.threads());
    // Empty and very thin boxes copy a little more.
    let least = options.width.div_ceil(64).max(1);
    let shape = own.shape().map(|n| n.max(least));
    let copy = H::new(&alone, shape, &LayoutSpec::slabs(0), &options.ghosts(), options.device);
    let mut copy = agree(comm, copy)?;
    let once = seconds(comm, &mut halo, H::exchange)?;
    let repeat = options
        .repeat
        .unwrap_or_else(|| (WANTED_SECONDS / once / H::CALLS as f64).ceil().clamp(5.0, 2000.0) as usize);
    let mut times: [Vec<f64>; 3] = std::array::from_fn(|_| Vec::with_capacity(repeat));
    // In blocks, so that each finds its own data in the caches, in turn, so that all meet the same noise.
    let blocks = 5.min(repeat);
    for block in 0..blocks {
        for _ in block * repeat / blocks..(block + 1) * repeat / blocks {
            times[0].push(seconds(comm, &mut halo, H::exchange)?);
        }
        for _ in block * repeat / blocks..(block + 1) * repeat / blocks {
            times[1].push(seconds(comm, &mut halo, H::start_and_finish)?);
        }
        for _ in block * repeat / blocks..(block + 1) * repeat / blocks {
            times[2].push(seconds(comm, &mut copy, H::exchange)?);
        }
    }
    let halo = halo.halo();
    let ghost_bytes = ((halo.volume() - own.volume()) * size_of::<T>()) as f64;
    let far_bytes = (far_cells(comm, halo, options.shape) * size_of::<T>()) as f64;
    let most = comm.max(&[ghost_bytes, far_bytes])?;
    let [exchange, start_finish, plain] = times.each_ref().map(|seconds| Times::new(seconds));
    Ok(HaloReport {
        group: RankGroup::new(comm),
        device: options.device.to_string(),
        shape: options.shape,
        grid: halo.layout().grid_text(),
        width: options.width,
        precision: T::PRECISION.name(),
        ghost_bytes: most[0] as u64,
        exchange,
        start_finish,
        copy: plain,
        exchange_over_copy: median(&times[0]) / median(&times[2]),
        wire_ms: options.wire.map(|wire| most[1] * 8e-6 / wire.gbit_per_s + wire.latency_us * 1e-3),
        notes: halo.notes().to_vec(),
    })
}

/// The cells of a rank's field, and its ghost cells or zeros there.
fn cells<T: Real + Element, B: CopyBackend>(halo: &Halo<T, B>, shape: [usize; 3], ghosts: bool) -> Vec<T> {
    let (own, room, strides) = (halo.local_box(), halo.shape(), halo.strides());
    let before: [usize; 3] = std::array::from_fn(|axis| (room[axis] - own.shape()[axis]) / 2);
    let mut cells = vec![T::rounded(0.0); halo.volume()];
    for i in 0..room[0] {
        for j in 0..room[1] {
            for k in 0..room[2] {
                let at = [i, j, k];
                let inside = (0..3).all(|a| at[a] >= before[a] && at[a] < before[a] + own.shape()[a]);
                if inside || ghosts {
                    let index =
                        std::array::from_fn(|a| (own.lo[a] + at[a] + (shape[a] - 1) * before[a]) % shape[a]);
                    cells[i * strides[0] + j * strides[1] + k * strides[2]] = T::rounded(cell(index));
                }
            }
        }
    }
    cells
}

/// The ghost cells of this rank that ranks of other nodes own.
fn far_cells<T: Real + Element, B: CopyBackend>(comm: &Comm, halo: &Halo<T, B>, shape: [usize; 3]) -> usize {
    let (own, nodes, boxes) = (halo.local_box(), comm.nodes(), halo.layout().boxes());
    let near = |rank: &usize| nodes[*rank] == nodes[comm.rank()];
    let near: Vec<Box3> = (0..comm.size()).filter(near).map(|rank| boxes[rank]).collect();
    let range = |a: usize| {
        let before = (halo.shape()[a] - own.shape()[a]) / 2;
        (own.lo[a] + (shape[a] - 1) * before..).take(halo.shape()[a]).map(move |at| at % shape[a])
    };
    let inside = |part: &Box3| -> usize {
        (0..3).map(|a| range(a).filter(|at| (part.lo[a]..part.hi[a]).contains(at)).count()).product()
    };
    halo.volume() - near.iter().map(inside).sum::<usize>()
}

impl HaloReport {
    /// A table of the times, and the notes.
    pub fn text(&self) -> String {
        let RankGroup { ranks, nodes, threads, transport } = self.group;
        let [ranks, nodes, threads] =
            [(ranks, "rank"), (nodes, "node"), (threads, "thread")].map(|(count, noun)| plural(count, noun));
        let [x, y, z] = self.shape;
        let mut out = format!(
            "{x}x{y}x{z} {} on {ranks} of {nodes} ({transport}), {threads} each, {}, {}: ghost cells of width {}, {} per rank\n",
            self.precision,
            self.device,
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
