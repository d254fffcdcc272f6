//! Redistributions, pencils and ghost cells on a GPU: the elements that those in main memory have, for every exchange.

use std::fmt::Debug;

use ferrier::cuda::{Cuda, DeviceSum, RawArray};
use ferrier::{
    ArrayStrides, Box3, Choice, Comm, Complex, Data, Error, GhostSum, Ghosts, Halo, LayoutSpec, Order,
    PencilFamily, Pencils, Plan, Planner, Problem, Redistribution, Result,
};
use ferrier_test::{Rng, watchdog};

use crate::scenario::{Sample, canary, layout, value};
use crate::{Gpu, gpu, thin};

/// Exchanges of ranks on one node, and on several.
const NEAR: [Option<&str>; 8] = [
    None,
    Some("direct"),
    Some("all_to_allv"),
    Some("all_to_all"),
    Some("point_to_point"),
    Some("ring"),
    Some("hierarchical"),
    None,
];
const FAR: [Option<&str>; 5] =
    [None, Some("all_to_allv"), Some("all_to_all"), Some("point_to_point"), Some("ring")];

/// A case that every rank derives from its number.
struct Case {
    shape: [usize; 3],
    layouts: [LayoutSpec; 2],
    fields: usize,
    exchange: Option<&'static str>,
    widths: [[usize; 2]; 3],
    ghosts: Ghosts,
    strided: bool,
    /// In place, or by start and finish.
    flies: bool,
    seed: u64,
}

impl Case {
    fn new(seed: u64, comm: &Comm) -> Case {
        let mut rng = Rng::new(seed);
        let shape = std::array::from_fn(|_| 1 + rng.below(20));
        let exchange = if comm.node_count() == 1 { *rng.pick(&NEAR) } else { *rng.pick(&FAR) };
        let (fields, widths) = (1 + rng.below(3), std::array::from_fn(|_| [rng.below(4), rng.below(4)]));
        let periodic = std::array::from_fn(|_| rng.below(2) == 0);
        let mut ghosts = Ghosts::widths(widths).periodic(periodic).fields(fields);
        if rng.below(3) == 0 {
            ghosts = ghosts.faces_only();
        }
        if let Some(name) = exchange {
            ghosts = ghosts.exchange(name);
        }
        let layouts = [0, 1].map(|_| layout(&mut rng, shape, comm.size()));
        let (strided, flies) = (rng.below(3) == 0, rng.below(2) == 0);
        Case { shape, layouts, fields, exchange, widths, ghosts, strided, flies, seed }
    }

    /// The problem of a redistribution; some arrays have gaps.
    fn problem(&self, comm: &Comm) -> Result<Problem> {
        let [input, output] = self.layouts.clone();
        let problem = Problem::redistribute(self.shape).input(input).output(output).batch(self.fields);
        if !self.strided {
            return Ok(problem);
        }
        let strides = |spec: &LayoutSpec| -> Result<ArrayStrides> {
            let part = spec.layout(self.shape, comm.size())?.boxes()[comm.rank()];
            let outer = std::array::from_fn(|a| part.shape()[a] + self.widths[a][0] + self.widths[a][1]);
            Ok(ArrayStrides::inside(outer, self.widths.map(|[low, _]| low), spec.order))
        };
        let [input, output] = [strides(&self.layouts[0])?, strides(&self.layouts[1])?];
        Ok(problem.input_strides(input).output_strides(output))
    }

    fn redistribute<E: Sample>(&self, comm: &Comm, gpu: &Gpu) -> Result<()> {
        let problem = self.problem(comm)?;
        let mut choice = Choice::new();
        choice.exchange = self.exchange.map(Into::into);
        let mut host = Redistribution::<E>::with(comm, &problem, &choice)?;
        let mut device = Redistribution::<E, Cuda>::on_with(gpu, comm, &problem, &choice)?;
        for round in 0..2 {
            let mut input = host.make_input()?;
            let mut output = host.make_output()?;
            let fill = |array: &mut [E], seed: usize| {
                array.iter_mut().enumerate().for_each(|(i, e)| *e = value(round, seed, [i, comm.rank(), 3]));
            };
            if self.flies {
                let len = input.len().max(output.len());
                let mut array = vec![canary::<E>(); len];
                fill(&mut array, 1);
                let mut copy = DeviceCopy::new(gpu, &array)?;
                host.run_in_place(&mut array)?;
                device.run_in_place(&mut copy.raw())?;
                device.synchronize()?;
                assert_eq!(copy.elements()?, array, "in place");
                continue;
            }
            fill(&mut input, 1);
            fill(&mut output, 2);
            let (mut from, mut to) = (device.make_input()?, device.make_output()?);
            from.upload(&input)?;
            to.upload(&output)?;
            host.run(&input, &mut output)?;
            device.run(&from, &mut to)?;
            device.synchronize()?;
            let mut got = vec![canary(); output.len()];
            to.download(&mut got)?;
            assert_eq!(got[..], output[..]);
        }
        Ok(())
    }

    fn fill_ghosts<E: Sample>(&self, comm: &Comm, gpu: &Gpu) -> Result<()> {
        let mut host = Halo::<E>::new(comm, self.shape, &self.layouts[0], &self.ghosts)?;
        let mut device = Halo::<E, Cuda>::on(gpu, comm, self.shape, &self.layouts[0], &self.ghosts)?;
        assert_eq!((host.volume(), host.local_box()), (device.volume(), device.local_box()));
        for round in 0..3 {
            let values = |field: usize| -> Vec<E> {
                (0..host.volume()).map(|i| value(round, field, [i, comm.rank(), 5])).collect()
            };
            let mut fields: Vec<Vec<E>> = (0..self.fields).map(values).collect();
            let mut copies = Vec::new();
            for field in &fields {
                let mut copy = device.make_field()?;
                copy.upload(field)?;
                copies.push(copy);
            }
            host.exchange(&mut fields)?;
            match self.flies {
                true => device.start(&mut copies)?.finish().map(drop)?,
                false => device.exchange(&mut copies)?,
            }
            device.synchronize()?;
            for (number, (field, copy)) in fields.iter().zip(&copies).enumerate() {
                let mut got = vec![canary(); field.len()];
                copy.download(&mut got)?;
                assert_eq!(got, *field, "field {number} in round {round}");
            }
        }
        Ok(())
    }

    fn sum_ghosts<E: Sample + DeviceSum>(&self, comm: &Comm, gpu: &Gpu) -> Result<()> {
        let mut host = GhostSum::<E>::new(comm, self.shape, &self.layouts[0], &self.ghosts)?;
        let mut device = GhostSum::<E, Cuda>::on(gpu, comm, self.shape, &self.layouts[0], &self.ghosts)?;
        // Sums of these fit in 32 bits, and are rounded in 24.
        let seed = |i: usize, field: usize| (i * 48_271 + comm.rank() * 69_621 + field) % (1 << 25);
        let values =
            |field: usize| -> Vec<E> { (0..host.volume()).map(|i| E::of(seed(i, field) as u64)).collect() };
        let mut fields: Vec<Vec<E>> = (0..self.fields).map(values).collect();
        let mut copies = Vec::new();
        for field in &fields {
            let mut copy = device.make_field()?;
            copy.upload(field)?;
            copies.push(copy);
        }
        // Twice: sums grow.
        for _ in 0..2 {
            host.run(&mut fields)?;
            device.run(&mut copies)?;
        }
        device.synchronize()?;
        for (field, copy) in fields.iter().zip(&copies) {
            let mut got = vec![canary(); field.len()];
            copy.download(&mut got)?;
            assert_eq!(got, *field);
        }
        Ok(())
    }
}

/// Elements at an address of the caller's.
struct DeviceCopy<E: Sample> {
    halo: Halo<E, Cuda>,
    field: ferrier::cuda::DeviceField<E>,
    len: usize,
}

impl<E: Sample> DeviceCopy<E> {
    fn new(gpu: &Gpu, elements: &[E]) -> Result<Self> {
        let shape = [1, 1, elements.len().max(1)];
        let halo =
            Halo::<E, Cuda>::on(gpu, &Comm::one_rank(), shape, &LayoutSpec::slabs(0), &Ghosts::width(0))?;
        let mut field = halo.make_field()?;
        let mut padded = elements.to_vec();
        padded.resize(shape[2], canary());
        field.upload(&padded)?;
        Ok(DeviceCopy { halo, field, len: elements.len() })
    }

    fn raw(&mut self) -> RawArray<E> {
        // SAFETY: the field has so many elements, is not used otherwise before it is read back, and lives longer.
        unsafe { RawArray::new(self.field.as_raw(), self.len) }
    }

    fn elements(&self) -> Result<Vec<E>> {
        self.halo.synchronize()?;
        let mut all = vec![canary(); self.field.len()];
        self.field.download(&mut all)?;
        all.truncate(self.len);
        Ok(all)
    }
}

/// Random cases on ranks that share the GPU; some on several simulated nodes.
fn on_ranks(seed: u64, count: usize, check: impl Fn(&Comm, &Case) -> Result<()> + Sync) {
    let _watchdog = watchdog(300);
    for case in (0..count as u64).step_by(thin()) {
        let mut rng = Rng::new(seed + case);
        let ranks = 1 + rng.below(6);
        let nodes = if case % 3 == 0 { 1 + rng.below(3).min(ranks - 1) } else { 1 };
        let outcome = ferrier::ranks(ranks).nodes(nodes).threads(1).run(|comm| {
            let case = Case::new(seed + case, &comm);
            check(&comm, &case)
        });
        assert!(outcome.is_ok(), "case {case} of seed {seed}, {ranks} ranks on {nodes} nodes: {outcome:?}");
    }
}

macro_rules! with_element {
    ($case:ident, $method:ident, $comm:ident, $gpu:ident) => {
        match $case.seed % 7 {
            0 => $case.$method::<u8>($comm, $gpu),
            1 => $case.$method::<u16>($comm, $gpu),
            2 => $case.$method::<i32>($comm, $gpu),
            3 => $case.$method::<Complex<f64>>($comm, $gpu),
            4 => $case.$method::<[u8; 3]>($comm, $gpu),
            5 => $case.$method::<[f32; 3]>($comm, $gpu),
            _ => $case.$method::<[u64; 8]>($comm, $gpu),
        }
    };
}

#[test]
fn redistributions_on_gpus() {
    let Some(gpu) = &gpu() else { return };
    on_ranks(190_000, 140, |comm, case| with_element!(case, redistribute, comm, gpu));
}

#[test]
fn ghost_cells_on_gpus() {
    let Some(gpu) = &gpu() else { return };
    on_ranks(191_000, 140, |comm, case| with_element!(case, fill_ghosts, comm, gpu));
}

/// Bits are those of the CPU: terms are added in the same order.
#[test]
fn sums_of_ghost_cells_on_gpus() {
    let Some(gpu) = &gpu() else { return };
    on_ranks(192_000, 90, |comm, case| match case.seed % 4 {
        0 => case.sum_ghosts::<f32>(comm, gpu),
        1 => case.sum_ghosts::<f64>(comm, gpu),
        2 => case.sum_ghosts::<Complex<f64>>(comm, gpu),
        _ => case.sum_ghosts::<i32>(comm, gpu),
    });
}

/// Around all pencils and back.
#[test]
fn pencils_on_gpus() {
    let Some(gpu) = &gpu() else { return };
    let _watchdog = watchdog(120);
    for (shape, [rows, columns], contiguous) in
        [([12, 9, 14], [2, 2], true), ([5, 8, 3], [1, 3], false), ([33, 40, 37], [3, 2], true)]
    {
        let pencils = Pencils::new(shape).grid(rows, columns).batch(2);
        let pencils = if contiguous { pencils.contiguous() } else { pencils.order(Order::F) };
        let run = |comm: Comm| -> Result<()> {
            let mut host = PencilFamily::<f32>::new(&comm, &pencils)?;
            let mut device = PencilFamily::<f32, Cuda>::on(gpu, &comm, &pencils)?;
            let mut x = host.make(0)?;
            x.iter_mut().enumerate().for_each(|(i, e)| *e = (i * 7 + comm.rank()) as f32);
            let [mut y, mut z] = [host.make(1)?, host.make(2)?];
            host.x_to_y(&x, &mut y)?;
            host.y_to_z(&y, &mut z)?;
            let [mut dx, mut dy, mut dz] = [device.make(0)?, device.make(1)?, device.make(2)?];
            dx.upload(&x)?;
            // No wait between the steps: they use one stream.
            device.x_to_y(&dx, &mut dy)?;
            device.y_to_z(&dy, &mut dz)?;
            let [mut back_y, mut back_x] = [device.make(1)?, device.make(0)?];
            device.z_to_y(&dz, &mut back_y)?;
            device.y_to_x(&back_y, &mut back_x)?;
            device.synchronize()?;
            for (got, want) in [(&dy, &y), (&dz, &z), (&back_y, &y), (&back_x, &x)] {
                let mut values = vec![-1.0; want.len()];
                got.download(&mut values)?;
                assert_eq!(values[..], want[..]);
            }
            assert!(device.make(3).is_err());
            Ok(())
        };
        ferrier::ranks(rows * columns).run(run).unwrap_or_else(|error| panic!("{shape:?}: {error}"));
    }
}

/// Ghost cells and a transform of the box between them, on one stream and one field.
#[test]
fn plans_transform_fields_between_their_ghost_cells() {
    let Some(gpu) = &gpu() else { return };
    let shape = [12, 10, 8];
    let layout = LayoutSpec::bricks();
    let ghosts = Ghosts::width(2).periodic([true; 3]);
    let run = |comm: Comm| -> Result<()> {
        let stream = gpu.context().new_stream().map_err(Error::other)?;
        let mut halo = Halo::<f64, Cuda>::on(gpu, &comm, shape, &layout, &ghosts)?;
        let problem = Problem::r2c(shape).input(layout.clone()).input_strides(halo.array_strides());
        let mut plan = Planner::new(&problem).device(gpu).draft::<f64>(&comm)?.build()?;
        halo.set_stream(&stream)?;
        plan.set_stream(&stream)?;
        let mut host = Plan::<f64>::new(&comm, &Problem::r2c(shape).input(layout.clone()))?;
        let (mut input, mut wanted) = (host.make_input()?, host.make_output()?);
        let function = |[i, j, k]: [usize; 3]| ((i * 3 + j * 5 + k * 7) % 11) as f64;
        input.fill_real(|_, at| function(at));
        host.forward(&input, &mut wanted)?;
        let mut values = vec![-1.0; halo.volume()];
        let own = halo.local_box();
        for i in own.lo[0]..own.hi[0] {
            for j in own.lo[1]..own.hi[1] {
                for k in own.lo[2]..own.hi[2] {
                    values[halo.index([i, j, k].map(|at| at as isize)).unwrap()] = function([i, j, k]);
                }
            }
        }
        // A slice of cudarc's: it orders its own stream and ours.
        let mut field = stream.clone_htod(&values).map_err(Error::other)?;
        let mut modes = plan.make_output()?;
        halo.exchange([&mut field])?;
        plan.forward(&field, &mut modes)?;
        plan.synchronize()?;
        let mut got = plan.make_host_output()?;
        modes.download(&mut got)?;
        let worst = got.scalars().iter().zip(wanted.scalars()).map(|(a, b)| (a - b).abs());
        assert!(worst.fold(0.0, f64::max) < 1e-9);
        let filled = stream.clone_dtoh(&field).map_err(Error::other)?;
        let at = [own.lo[0] as isize - 2, own.hi[1] as isize + 1, own.lo[2] as isize];
        let there = [0, 1, 2].map(|a| at[a].rem_euclid(shape[a] as isize) as usize);
        assert_eq!(filled[halo.index(at).unwrap()], function(there));
        // A field of ghost cells is an array of plans, too.
        let mut made = halo.make_field()?;
        made.upload(&values)?;
        plan.forward(&made, &mut modes)?;
        plan.synchronize()
    };
    ferrier::ranks(4).run(run).unwrap();
}

fn refused<R: Debug>(outcome: Result<R>, part: &str) {
    let told = outcome.expect_err("an error").to_string();
    assert!(told.contains(part), "{told}");
}

#[test]
fn wrong_fields_and_exchanges_are_refused() {
    let Some(gpu) = &gpu() else { return };
    let comm = Comm::one_rank();
    let (shape, layout) = ([4, 4, 4], LayoutSpec::slabs(0));
    let mut halo =
        Halo::<Complex<f64>, Cuda>::on(gpu, &comm, shape, &layout, &Ghosts::width(1).fields(2)).unwrap();
    let mut field = halo.make_field().unwrap();
    refused(halo.exchange([&mut field]), "must be 2");
    let short = |start: u64, len: usize| {
        // SAFETY: never accessed: it is refused.
        unsafe { RawArray::<Complex<f64>>::new(start, len) }
    };
    let start = field.as_raw();
    refused(halo.exchange([short(start, 216), short(start, 215)]), "215 in field 1");
    refused(halo.exchange([short(start + 8, 216), short(start, 216)]), "multiple of 16");
    let mut redistribution =
        Redistribution::<f32, Cuda>::on(gpu, &comm, &Problem::redistribute(shape)).unwrap();
    // SAFETY: as above.
    let (input, mut output) =
        unsafe { (RawArray::<f32>::new(start, 64), RawArray::<f32>::new(start + 2, 64)) };
    refused(redistribution.run(&input, &mut output), "multiple of 4");
    let far = ferrier::ranks(4).nodes(2).run(|comm| {
        let ghosts = Ghosts::width(1).exchange("hierarchical");
        Halo::<f64, Cuda>::on(gpu, &comm, shape, &layout, &ghosts).map(drop)
    });
    refused(far, "threads of one process");
    let boxes = LayoutSpec::boxes(vec![Box3::whole(shape)]);
    assert!(Halo::<f64, Cuda>::on(gpu, &comm, shape, &boxes, &Ghosts::width(1)).is_ok());
}

/// A rank that fails makes the others fail; nothing hangs, and memory may be freed at once.
#[test]
fn a_failure_on_one_rank_reaches_all() {
    let Some(gpu) = &gpu() else { return };
    let _watchdog = watchdog(120);
    for exchange in [None, Some("all_to_allv"), Some("ring")] {
        for panics in [false, true] {
            let outcome = ferrier::ranks(4).run(|comm| -> Result<()> {
                let mut ghosts = Ghosts::width(1).periodic([true; 3]);
                if let Some(name) = exchange {
                    ghosts = ghosts.exchange(name);
                }
                let mut halo =
                    Halo::<f64, Cuda>::on(gpu, &comm, [16, 16, 16], &LayoutSpec::bricks(), &ghosts)?;
                let mut field = halo.make_field()?;
                halo.exchange([&mut field])?;
                if comm.rank() == 2 {
                    halo.inject_fault(if panics { ferrier::Fault::Panic } else { ferrier::Fault::Error });
                }
                let mut outcome = Ok(());
                for _ in 0..3 {
                    outcome = outcome.and(halo.exchange([&mut field]));
                }
                outcome
            });
            let told = outcome.expect_err("an error").to_string();
            assert!(told.contains("injected fault"), "{exchange:?}, {panics}: {told}");
        }
    }
}
