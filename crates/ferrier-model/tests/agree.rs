//! The closed form against the simulation, and what simulations must show.

use ferrier_model::sim::{SimOptions, Simulated, simulate};
use ferrier_model::{Cluster, Codec, ExchangeName, Job, JobOptions, Processor, Topology, TreeLevel, shipped};
use ferrier_plan::{Choice, LayoutSpec, Overlap, Precision, Problem, Tiling};

fn machine(name: &str, topology: Topology) -> Cluster {
    let mut cluster = shipped(name).unwrap();
    cluster.topology = topology;
    cluster
}

fn problem(n: usize, layout: LayoutSpec) -> Problem {
    Problem::c2c([n; 3]).input(layout.clone()).output(layout)
}

fn job<'a>(cluster: &'a Cluster, problem: &Problem, ranks: usize, options: &JobOptions) -> Job<'a> {
    Job::new(cluster, problem, Precision::F64, ranks, options).unwrap()
}

fn run(job: &Job<'_>, options: &SimOptions) -> Simulated {
    simulate(job, options).unwrap()
}

fn quiet(job: &Job<'_>) -> f64 {
    run(job, &SimOptions::default()).total_ms
}

/// Blocking exchanges of equal ranks on a network that only the links of nodes limit: both must say the same.
#[test]
fn closed_form_and_simulation_agree_for_blocking_symmetric_exchanges() {
    for (name, processor, per_node) in [
        ("summit", Processor::Gpu, 1),
        ("summit", Processor::Gpu, 4),
        ("summit", Processor::Cpu, 8),
        ("genoa-hdr", Processor::Cpu, 4),
        ("umd", Processor::Cpu, 1),
    ] {
        let cluster = machine(name, Topology::Star);
        let slabs = || [LayoutSpec::slabs(0), LayoutSpec::slabs(1)];
        let pencils = || [LayoutSpec::pencils(2), LayoutSpec::pencils(0)];
        let bricks = || [LayoutSpec::bricks(), LayoutSpec::bricks()];
        for (ranks, layouts) in [
            (16, slabs()),
            (64, slabs()),
            (16, pencils()),
            (64, pencils()),
            // From bricks some ranks keep a part of what they have, and others send all of it.
            (64, bricks()),
        ] {
            if ranks / per_node > cluster.nodes {
                continue;
            }
            for exchange in ExchangeName::ALL.into_iter().filter(|name| *name != ExchangeName::Direct) {
                let options = JobOptions::new(processor).per_node(Some(per_node)).exchange(Some(exchange));
                let [input, output] = layouts.clone();
                let job = job(&cluster, &problem(256, input).output(output), ranks, &options);
                // Packets of an encoded message fill all of a ring's places, so that ranks that keep nothing wait for
                // each other: a simulation shows that, the closed form does not.
                let unequal = exchange == ExchangeName::Ring && layouts == bricks();
                let codecs = if unequal { 1 } else { 2 };
                for job in [job.clone(), job.with_codec(Codec::new("f32", 0.5))].into_iter().take(codecs) {
                    let (model, simulated) = (job.model().total_ms, quiet(&job));
                    let error = simulated / model - 1.0;
                    assert!(
                        error.abs() < 0.05,
                        "{name} {processor:?} {ranks} ranks, {per_node} a node, {exchange:?}, {layouts:?}, codec {:?}: \
                         model {model} ms, simulated {simulated} ms",
                        job.codec
                    );
                }
            }
        }
    }
}

/// Boxes of unequal sizes, messages that are padded to the longest, and nodes that are not full.
#[test]
fn closed_form_takes_the_slowest_node_of_an_exchange() {
    let cluster = machine("genoa-hdr", Topology::Star);
    let unequal = [300, 200, 250];
    for (ranks, per_node) in [(16, 1), (30, 4), (61, 4), (64, 8)] {
        for layout in [LayoutSpec::slabs(0), LayoutSpec::pencils(2), LayoutSpec::bricks()] {
            for exchange in [ExchangeName::AllToAllV, ExchangeName::AllToAll, ExchangeName::Hierarchical] {
                let problem = Problem::c2c(unequal).input(layout.clone()).output(layout.clone());
                let options =
                    JobOptions::new(Processor::Cpu).per_node(Some(per_node)).exchange(Some(exchange));
                let job = job(&cluster, &problem, ranks, &options);
                let (model, simulated) = (job.model().total_ms, quiet(&job));
                let error = simulated / model - 1.0;
                assert!(
                    error.abs() < 0.05,
                    "{ranks} ranks, {per_node} a node, {exchange:?}, {layout:?}: model {model}, simulated {simulated} ms"
                );
            }
        }
    }
}

/// Ranks that send everything keep step with those that keep a part, and ranks of a node whose targets differ do not all
/// begin with the same node: a ring takes about as long as all messages at once.
#[test]
fn rings_from_bricks_keep_step() {
    for (name, processor) in [("genoa-hdr", Processor::Cpu), ("summit", Processor::Gpu)] {
        let cluster = machine(name, Topology::Star);
        let bricks = problem(256, LayoutSpec::bricks());
        for (ranks, per_node) in [(64, 1), (64, 4), (256, 4)] {
            let options = |exchange: ExchangeName| {
                JobOptions::new(processor).per_node(Some(per_node)).exchange(Some(exchange))
            };
            let ring = job(&cluster, &bricks, ranks, &options(ExchangeName::Ring));
            let all = ring.clone().with_exchange(ExchangeName::PointToPoint).unwrap();
            let [ring, all] = [quiet(&ring), quiet(&all)];
            assert!(
                ring < 1.1 * all,
                "{name} {ranks} ranks, {per_node} a node: {ring} ms, all at once {all} ms"
            );
        }
    }
}

/// More ranks than planes: those that have nothing to receive do not all follow the same order.
#[test]
fn a_ring_to_few_receivers_does_not_queue() {
    let cluster = machine("genoa-hdr", Topology::Star);
    let problem = Problem::c2c([300, 200, 250]).input(LayoutSpec::slabs(0)).output(LayoutSpec::slabs(1));
    let options = JobOptions::new(Processor::Cpu).per_node(Some(1)).exchange(Some(ExchangeName::Ring));
    let ring = job(&cluster, &problem, 256, &options);
    let all = ring.clone().with_exchange(ExchangeName::PointToPoint).unwrap();
    let [ring, all] = [quiet(&ring), quiet(&all)];
    assert!(ring < 2.0 * all, "{ring} ms, all at once {all} ms");
}

#[test]
fn closed_form_knows_what_is_slow() {
    let cluster = machine("genoa-hdr", Topology::Star);
    let slabs = problem(256, LayoutSpec::slabs(0)).output(LayoutSpec::slabs(1));
    let options =
        JobOptions::new(Processor::Cpu).per_node(Some(2)).exchange(Some(ExchangeName::PointToPoint));
    let job = job(&cluster, &slabs, 32, &options);
    let base = job.model().total_ms;
    for slow in [
        SimOptions::default().slow_links(vec![(3, 2.0)]),
        SimOptions::default().slow_nodes(vec![(3, 3.0)]),
        SimOptions::default().slow_ranks(vec![(7, 3.0)]),
    ] {
        let (model, simulated) = (job.model_with(&slow).unwrap().total_ms, run(&job, &slow).total_ms);
        assert!(model > 1.02 * base, "{slow:?}: {model} ms, {base} ms without");
        assert!((simulated / model - 1.0).abs() < 0.05, "{slow:?}: model {model}, simulated {simulated} ms");
    }
    assert!(job.model_with(&SimOptions::default().slow_links(vec![(99, 2.0)])).is_err());
}

#[test]
fn tiles_overlap_and_rings_go_one_by_one() {
    let cluster = machine("umd", Topology::Star);
    let slabs = problem(256, LayoutSpec::slabs(0)).output(LayoutSpec::slabs(1));
    let options = |tile: usize| {
        let choice = Choice::new().fuse(false);
        let choice = if tile == 0 { choice } else { choice.overlap(Overlap::uniform(Tiling::new(tile))) };
        JobOptions::new(Processor::Cpu).choice(choice)
    };
    let [whole, tiled] = [0, 16].map(|tile| quiet(&job(&cluster, &slabs, 16, &options(tile))));
    assert!(tiled < 0.95 * whole, "{tiled} {whole}");
    let ring = options(0).exchange(Some(ExchangeName::Ring));
    let ring = quiet(&job(&cluster, &slabs, 16, &ring));
    // Few messages at a time fill the link as well as all at once.
    assert!((ring / whole - 1.0).abs() < 0.1, "{ring} {whole}");
}

/// Tiles along an axis that is split: each rank sends in some of them and receives in others. Where all are in flight
/// together they take as long as one exchange; otherwise ranks wait for tiles that others have yet to send, which the closed
/// form knows in part.
#[test]
fn closed_form_knows_in_which_tiles_ranks_take_part() {
    let cluster = machine("genoa-hdr", Topology::Star);
    for per_node in [1, 4] {
        for (tile, limit) in [(16, 0.05), (32, 0.05), (64, 0.35), (128, 0.05)] {
            let choice = Choice::new().overlap(Overlap::uniform(Tiling::new(tile)));
            let options = JobOptions::new(Processor::Cpu).per_node(Some(per_node)).choice(choice);
            let job = job(&cluster, &problem(256, LayoutSpec::bricks()), 64, &options);
            let (model, simulated) = (job.model().total_ms, quiet(&job));
            assert!(
                (simulated / model - 1.0).abs() < limit,
                "tiles of {tile}, {per_node} a node: model {model} ms, simulated {simulated} ms"
            );
        }
    }
}

/// A rank that sends at a quarter of the speed of a link does not notice that the link has half its speed.
#[test]
fn slow_links_matter_to_ranks_that_fill_them() {
    let mut cluster = machine("genoa-hdr", Topology::Star);
    cluster.network.rank_bytes_s = cluster.network.rail_bytes_s / 4.0;
    let slabs = problem(256, LayoutSpec::slabs(0)).output(LayoutSpec::slabs(1));
    let job = job(&cluster, &slabs, 16, &JobOptions::new(Processor::Cpu).per_node(Some(1)));
    let slow = |factor: f64| {
        let slow = SimOptions::default().slow_links(vec![(3, factor)]);
        [job.model_with(&slow).unwrap().total_ms, run(&job, &slow).total_ms]
    };
    assert_eq!(slow(2.0), slow(1.0));
    assert!(slow(8.0).iter().zip(slow(1.0)).all(|(slow, usual)| *slow > 1.5 * usual));
}

/// Four nodes, three equal messages of each: the first two go at once, the third when the first has arrived. So there are
/// three latencies, of a word that says that the receiver is ready and of two messages one after the other; all messages
/// at once have one.
#[test]
fn a_ring_waits_for_receivers_and_for_arrivals() {
    let mut cluster = machine("umd", Topology::Star);
    cluster.network.latency_s = 1e-3;
    let slabs = problem(64, LayoutSpec::slabs(0)).output(LayoutSpec::slabs(1));
    let ms = |exchange: ExchangeName| {
        let options = JobOptions::new(Processor::Cpu).per_node(Some(1)).exchange(Some(exchange));
        quiet(&job(&cluster, &slabs, 4, &options))
    };
    let later = ms(ExchangeName::Ring) - ms(ExchangeName::PointToPoint);
    assert!((later - 2.0).abs() < 0.01, "{later} ms");
}

#[test]
fn what_is_slow_makes_all_wait() {
    let cluster = machine("genoa-hdr", Topology::Star);
    let options = JobOptions::new(Processor::Cpu).per_node(Some(2));
    let job = job(&cluster, &problem(256, LayoutSpec::bricks()), 32, &options);
    let base = quiet(&job);
    let link = run(&job, &SimOptions::default().slow_links(vec![(3, 2.0)])).total_ms;
    let node = run(&job, &SimOptions::default().slow_nodes(vec![(3, 3.0)])).total_ms;
    let rank = run(&job, &SimOptions::default().slow_ranks(vec![(7, 3.0)])).total_ms;
    let noise = run(&job, &SimOptions::default().noise(0.5, 1)).total_ms;
    for (what, ms) in [("link", link), ("node", node), ("rank", rank), ("noise", noise)] {
        assert!(ms > 1.02 * base, "{what}: {ms} {base}");
    }
    assert_eq!(noise, run(&job, &SimOptions::default().noise(0.5, 1)).total_ms);
    assert!(simulate(&job, &SimOptions::default().slow_nodes(vec![(99, 2.0)])).is_err());
}

/// The slowest link that is allowed: the clock counts far more than the closed form expects without it, and goes on.
#[test]
fn very_slow_links_come_to_an_end() {
    let cluster = machine("umd", Topology::Star);
    for exchange in [ExchangeName::PointToPoint, ExchangeName::Ring] {
        let options = JobOptions::new(Processor::Cpu).per_node(Some(1)).exchange(Some(exchange));
        let job = job(&cluster, &problem(64, LayoutSpec::bricks()), 8, &options);
        let slow = SimOptions::default().slow_links(vec![(0, 1e6)]).slow_ranks(vec![(3, 1e6)]);
        assert!(run(&job, &slow).total_ms > 1e5 * quiet(&job));
    }
}

#[test]
fn a_taper_slows_traffic_between_leaves() {
    let problem = problem(256, LayoutSpec::pencils(2));
    let options = JobOptions::new(Processor::Cpu).per_node(Some(1));
    let ms = |taper: f64| {
        let cluster = machine("genoa-hdr", Topology::FatTree { levels: vec![TreeLevel::new(8, taper)] });
        let job = job(&cluster, &problem, 64, &options);
        (quiet(&job), job.model().total_ms)
    };
    let (full, tapered) = (ms(1.0), ms(8.0));
    assert!(tapered.0 > 1.5 * full.0 && tapered.1 > 1.5 * full.1, "{full:?} {tapered:?}");
}

/// The steps of a simulation are those of the closed form, and every recorded rank is busy from the start to the end.
#[test]
fn steps_and_events_are_complete() {
    let cluster = machine("summit", Topology::Star);
    let options = JobOptions::new(Processor::Gpu).per_node(Some(6));
    let job =
        job(&cluster, &problem(128, LayoutSpec::bricks()), 24, &options).with_codec(Codec::new("f32", 0.5));
    let found = run(&job, &SimOptions::default().recorded(24));
    let names = |steps: Vec<String>| {
        let mut names = steps;
        names.sort();
        names
    };
    let model = names(job.model().steps.into_iter().map(|step| step.name).collect());
    assert_eq!(names(found.steps.iter().map(|step| step.name.clone()).collect()), model);
    for events in &found.events {
        assert_eq!(events[0].seconds[0], 0.0);
        assert!(events.windows(2).all(|pair| pair[0].seconds[1] == pair[1].seconds[0]));
        assert!(events.last().unwrap().seconds[1] <= found.total_ms / 1e3 * (1.0 + 1e-12));
    }
}

#[test]
fn jobs_that_cannot_run_are_refused() {
    let cluster = shipped("umd").unwrap();
    let problem = problem(64, LayoutSpec::slabs(0));
    let error = |ranks: usize, options: &JobOptions| {
        Job::new(&cluster, &problem, Precision::F64, ranks, options).unwrap_err().to_string()
    };
    assert!(error(65, &JobOptions::new(Processor::Cpu)).contains("need 65 nodes; machine `umd` has 64"));
    assert!(error(4, &JobOptions::new(Processor::Gpu)).contains("has no GPUs"));
    for threads in [0, usize::MAX] {
        let options = JobOptions::new(Processor::Cpu).threads(Some(threads));
        assert!(error(4, &options).contains("threads of a rank must be from 1 to"));
    }
    let direct = JobOptions::new(Processor::Cpu).exchange(Some(ExchangeName::Direct));
    assert!(error(4, &direct).contains("direct works inside a node"));
}
