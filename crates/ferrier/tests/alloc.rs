//! Nothing is allocated in `forward` and `backward`, by any thread, in the
//! first call or a later one; and a plan's memory is known to the byte.
//!
//! One test alone: the allocator counts for the whole process, and the test
//! runner allocates when it starts another.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use common::{choice, exchanges, kernels};
use ferrier::{
    ArrayStrides, Choice, Fields, FieldsMut, GhostSum, Ghosts, Halo, Keep, Kind, LayoutSpec, Overlap,
    Planner, Problem, Redistribution, Result, Sign, Tiling,
};
use ferrier_test::watchdog;
use num_complex::Complex;

struct Counting;

/// While set, every allocation of every thread counts.
static ARMED: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Size of the last one, for the message.
static LAST: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Bytes this thread has taken in blocks aligned to a cache line or more,
    /// as a plan's buffers are.
    static ALIGNED: Cell<usize> = const { Cell::new(0) };
    /// While set, such blocks are refused to this thread.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// The first thread of the process is the test runner's, who says so when a
/// test takes long; ranks never run there.
fn count(layout: Layout) {
    // SAFETY: plain system calls.
    if ARMED.load(SeqCst) && unsafe { libc::gettid() != libc::getpid() } {
        COUNT.fetch_add(1, SeqCst);
        LAST.store(layout.size(), SeqCst);
    }
}

// SAFETY: everything is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout);
        if layout.align() >= 64 {
            if REFUSED.get() {
                return std::ptr::null_mut();
            }
            ALIGNED.set(ALIGNED.get() + layout.size());
        }
        // SAFETY: the caller's contract is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(layout);
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `work` on every rank at once, counting.
fn counted(ranks: &Barrier, work: impl FnOnce() -> Result<()>) -> Result<()> {
    if ranks.wait().is_leader() {
        COUNT.store(0, SeqCst);
        ARMED.store(true, SeqCst);
    }
    ranks.wait();
    let outcome = work();
    if ranks.wait().is_leader() {
        ARMED.store(false, SeqCst);
    }
    ranks.wait();
    outcome
}

fn problems() -> Vec<(&'static str, Problem)> {
    vec![
        ("c2c slabs", Problem::c2c([8, 9, 10])),
        // Large enough that two threads on each of four ranks have work.
        ("c2c large", Problem::c2c([32, 32, 32]).output(LayoutSpec::pencils(0))),
        ("r2c large", Problem::r2c([32, 32, 40]).input(LayoutSpec::bricks())),
        ("c2c bricks, a batch", Problem::c2c([8, 6, 10]).input(LayoutSpec::bricks()).batch(2)),
        (
            "r2c pencils",
            Problem::r2c([7, 8, 12]).input(LayoutSpec::pencils(2)).output(LayoutSpec::pencils(0)),
        ),
        ("half of the modes", Problem::c2c([16, 12, 10]).keep([Keep::Lowest(6); 3]).support(1, 0..7)),
        (
            "strides",
            Problem::c2c([8, 9, 10])
                .batch(2)
                .input_strides(ArrayStrides::new([400, 30, 2]).batch(1))
                .output_strides(ArrayStrides::new([200, 20, 1]).batch(5000).offset(3)),
        ),
        ("real input", Problem::c2c([8, 9, 10]).real_input(true).sign(Sign::Positive)),
        ("mixed", Problem::mixed([8, 9, 10], [Kind::Dct2, Kind::Complex, Kind::Real])),
        ("a sphere", Problem::c2c([12, 10, 14]).keep_sphere(4.0)),
        ("r2c halved 0, a prime", Problem::r2c([16, 4, 37]).halved(0).output(LayoutSpec::unconstrained())),
        ("r2c with operators", Problem::r2c([12, 10, 8]).output(LayoutSpec::unconstrained()).operators(true)),
        ("one long axis with operators", Problem::c2c_1d(360).operators(true)),
    ]
}

/// Every call of a fresh plan, the first included.
fn nothing_is_allocated(told: &str, problem: &Problem, choice: &Choice, ranks: usize, threads: usize) {
    let barrier = Barrier::new(ranks);
    let outcome = ferrier::ranks(ranks).threads(threads).run(|comm| {
        let told = |call: &str| format!("{call}: {told}, {choice:?}, {ranks} ranks, {threads} threads");
        let check = |call: &str, work: &mut dyn FnMut() -> Result<()>| -> Result<()> {
            counted(&barrier, work)?;
            let count = COUNT.load(SeqCst);
            assert_eq!(
                count,
                0,
                "{}: {count} allocations, the last of {} bytes",
                told(call),
                LAST.load(SeqCst)
            );
            Ok(())
        };
        let mut plan = common::plan_of::<f64>(&comm, problem, choice)?;
        let (x, mut y, mut z) = (plan.make_input()?, plan.make_output()?, plan.make_input()?);
        check("first forward", &mut || plan.forward(&x, &mut y))?;
        check("first backward", &mut || plan.backward(&y, &mut z))?;
        check("second forward", &mut || plan.forward(&x, &mut y))?;
        check("second backward", &mut || plan.backward(&y, &mut z))?;

        if plan.recipe().operators {
            let twice = ferrier::pointwise(|_, mode| mode * 2.0);
            let mut plan = common::plan_of::<f64>(&comm, problem, choice)?;
            let mut array = plan.make_in_place()?;
            check("first apply", &mut || plan.call().operator(&twice).apply(&x, &mut z))?;
            check("first forward with", &mut || plan.call().operator(&twice).forward(&x, &mut y))?;
            check("first backward with", &mut || plan.call().operator(&twice).backward(&y, &mut z))?;
            check("first apply in place", &mut || plan.call().operator(&twice).apply_in_place(&mut array))?;
        }

        let mut plan = common::plan_of::<f64>(&comm, problem, choice)?;
        let mut array = plan.make_in_place()?;
        check("first forward in place", &mut || plan.call().forward_in_place(&mut array))?;
        check("first backward in place", &mut || plan.call().backward_in_place(&mut array))?;
        check("second forward in place", &mut || plan.call().forward_in_place(&mut array))?;

        let mut plan = common::plan_of::<f64>(&comm, problem, choice)?;
        let mut spectrum = y.complex().to_vec();
        if x.is_real() {
            let (input, mut back) = (x.real().to_vec(), x.real().to_vec());
            check("first forward of slices", &mut || plan.forward(&input[..], &mut spectrum[..]))?;
            check("first backward of slices", &mut || plan.backward(&spectrum[..], &mut back[..]))?;
        } else {
            let (input, mut back) = (x.complex().to_vec(), x.complex().to_vec());
            check("first forward of slices", &mut || plan.forward(&input[..], &mut spectrum[..]))?;
            check("first backward of slices", &mut || plan.backward(&spectrum[..], &mut back[..]))?;
        }
        if problem.batch == 2 && x.is_complex() && problem.input_strides.is_dense() {
            let mut plan = common::plan_of::<f64>(&comm, problem, choice)?;
            let [mut a, mut b] = [(); 2].map(|()| x.complex()[..x.complex().len() / 2].to_vec());
            let [mut c, mut d] = [(); 2].map(|()| spectrum[..spectrum.len() / 2].to_vec());
            check("first forward of a list", &mut || {
                plan.forward(&Fields(&[&a, &b]), &mut FieldsMut(&mut [&mut c, &mut d]))
            })?;
            check("first backward of a list", &mut || {
                plan.backward(&Fields(&[&c, &d]), &mut FieldsMut(&mut [&mut a, &mut b]))
            })?;
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{told}, {choice:?}, {ranks} ranks: {error}"));
}

/// What a draft promises is what the plan says, and what `build` takes.
fn memory_is_exact(told: &str, problem: &Problem, choice: &Choice, ranks: usize, threads: usize) {
    let outcome = ferrier::ranks(ranks).threads(threads).run(|comm| {
        let start = ALIGNED.get();
        let draft = Planner::new(problem).choice(choice.clone()).draft::<f64>(&comm)?;
        assert_eq!(ALIGNED.get(), start, "a draft takes no buffers");
        let promised = draft.memory();
        let plan = draft.build()?;
        let taken = ALIGNED.get() - start;
        let told = format!("{told}, {choice:?}, rank {} of {ranks}, {threads} threads", comm.rank());
        assert_eq!(promised, plan.memory(), "{told}");
        assert_eq!(promised.total(), taken, "{told}: promised and taken bytes differ: {promised:?}");
        Ok(taken)
    });
    let taken = outcome.unwrap_or_else(|error| panic!("{told}, {choice:?}, {ranks} ranks: {error}"));
    if choice.exchange.as_deref() != Some("direct") && ranks > 1 {
        assert!(taken.iter().sum::<usize>() > 0, "buffers that this test does not see");
    }
}

/// Redistributions and ghost cells: runs allocate nothing, and their memory is what they say.
fn copies_allocate_nothing(exchange: &str, ranks: usize, threads: usize) {
    let barrier = Barrier::new(ranks);
    let outcome = ferrier::ranks(ranks).threads(threads).run(|comm| {
        let told = format!("{exchange}, {ranks} ranks, {threads} threads");
        let check = |call: &str, work: &mut dyn FnMut() -> Result<()>| -> Result<()> {
            counted(&barrier, work)?;
            let count = COUNT.load(SeqCst);
            assert_eq!(count, 0, "{call}, {told}: {count} allocations, the last of {}", LAST.load(SeqCst));
            Ok(())
        };
        let problem = Problem::redistribute([9, 10, 11]).output(LayoutSpec::pencils(0)).batch(2);
        let start = ALIGNED.get();
        let mut plan = Redistribution::<[u8; 3]>::with(&comm, &problem, &Choice::new().exchange(exchange))?;
        assert_eq!(plan.memory(), ALIGNED.get() - start, "redistribution, {told}");
        let (x, mut y) = (plan.make_input()?, plan.make_output()?);
        let mut array = vec![[0; 3]; x.len().max(y.len())];
        check("first redistribution", &mut || plan.run(&x, &mut y))?;
        check("redistribution in place", &mut || plan.run_in_place(&mut array))?;
        check("second redistribution", &mut || plan.run(&x, &mut y))?;

        let ghosts = Ghosts::width(2).periodic([true, false, true]).fields(2).exchange(exchange);
        let start = ALIGNED.get();
        let mut halo = Halo::<f32>::new(&comm, [9, 10, 11], &LayoutSpec::bricks(), &ghosts)?;
        assert_eq!(halo.memory(), ALIGNED.get() - start, "ghost cells, {told}");
        let [mut u, mut v] = [halo.make_field()?, halo.make_field()?];
        check("first start and finish", &mut || halo.start([&mut u, &mut v])?.finish().map(drop))?;
        check("first exchange", &mut || halo.exchange([&mut u, &mut v]))?;
        check("second exchange", &mut || halo.exchange([&mut u, &mut v]))?;
        let mut sum = GhostSum::<f32>::new(&comm, [9, 10, 11], &LayoutSpec::bricks(), &ghosts)?;
        check("sum of ghost cells", &mut || sum.run([&mut u, &mut v]))
    });
    outcome.unwrap_or_else(|error| panic!("{exchange}, {ranks} ranks: {error}"));
}

/// A failed allocation on one rank is an error of the run; no rank hangs.
fn refused_on_one_rank(exchange: &str) {
    for refused in 0..3 {
        let outcome = ferrier::ranks(3).run(|comm| {
            let draft = Planner::new(&Problem::c2c([12, 12, 12]))
                .choice(choice(exchange, kernels()[0]))
                .draft::<f64>(&comm)?;
            REFUSED.set(comm.rank() == refused);
            let built = draft.build();
            REFUSED.set(false);
            let mut plan = built?;
            let (x, mut y) = (plan.make_input()?, plan.make_output()?);
            plan.forward(&x, &mut y)
        });
        let text = outcome.expect_err("a rank without buffers").to_string();
        assert!(text.contains("memory") && text.contains("bytes"), "{exchange}: {text}");
    }
}

/// The counter counts: in this thread, in another, and what is given back.
fn the_counter_works() {
    let alone = Barrier::new(1);
    let count = |work: &dyn Fn()| {
        counted(&alone, || {
            work();
            Ok(())
        })
        .unwrap();
        COUNT.load(SeqCst)
    };
    // The test runner may still be starting.
    assert!((0..100).any(|_| count(&|| ()) == 0));
    assert!(count(&|| drop(std::hint::black_box(Box::new(1)))) >= 2);
    assert!(
        count(&|| std::thread::scope(|s| drop(
            s.spawn(|| std::hint::black_box(vec![Complex::new(1.0, 2.0)]))
        ))) > 2
    );
}

#[test]
fn forward_and_backward_allocate_nothing_and_memory_is_exact() {
    let _watchdog = watchdog(120);
    the_counter_works();
    for exchange in exchanges() {
        for (turn, (name, problem)) in problems().into_iter().enumerate() {
            // The kernels differ in nothing but their own scratch.
            let kernels = kernels();
            for kernel in if turn < 3 { &kernels[..] } else { &kernels[..1] } {
                for ranks in [1, 2, 4] {
                    let threads = 1 + (turn + ranks / 2) % 2;
                    let choice = choice(exchange, kernel);
                    nothing_is_allocated(name, &problem, &choice, ranks, threads);
                    memory_is_exact(name, &problem, &choice, ranks, threads);
                }
            }
        }
        refused_on_one_rank(exchange);
        for (ranks, threads) in [(1, 2), (4, 1), (3, 2)] {
            copies_allocate_nothing(exchange, ranks, threads);
        }
    }
    // Encoded: of every kind of length, in tiles or not.
    for (turn, exchange) in ["all_to_allv", "all_to_all", "point_to_point", "ring"].into_iter().enumerate() {
        for codec in ["f32", "block:12", "within:1e-5", "zfp:accuracy=1e-3", "lossless"] {
            let (name, problem) = &problems()[1 + turn % 2];
            let tiling = Tiling::new(3);
            let choice = choice(exchange, kernels()[0])
                .codec(codec)
                .overlap((turn % 2 == 0).then(|| Overlap::uniform(tiling)));
            nothing_is_allocated(name, problem, &choice, 3, 2);
            memory_is_exact(name, problem, &choice, 3, 2);
        }
    }
}
