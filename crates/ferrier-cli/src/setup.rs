//! From options to what the library wants.

use ferrier::{Choice, Comm, Compress, Device, Kind, LayoutSpec, Problem};

use crate::args::{Common, CompressName, KindName, ProblemArgs};
use crate::failure::{Outcome, fail};
use crate::report;
use crate::session;
use crate::shape::{Frame, Grid, LayoutName};

/// Ranks of one process. Each knows every other's boxes, so memory grows with
/// the square: 1024 take some GiB, ten times as many would take a machine down.
const MOST_RANKS: usize = 1024;
/// Threads of one process, all ranks together.
const MOST_THREADS: usize = 4096;

/// Checks the number of ranks and threads.
///
/// # Errors
/// None of either, or more than a process can bear.
pub fn check_group(common: &Common) -> Outcome {
    let ranks = common.ranks.unwrap_or(1);
    if ranks == 0 {
        return fail("--ranks 0: at least 1 rank is needed");
    }
    if common.threads == Some(0) {
        return fail("--threads 0: at least 1 thread is needed");
    }
    if ranks > MOST_RANKS {
        return fail(format!("--ranks {ranks}: at most {MOST_RANKS} ranks can share a process"));
    }
    let threads = ranks.saturating_mul(common.threads.unwrap_or(1));
    if threads > MOST_THREADS {
        return fail(format!(
            "--ranks x --threads is {threads}: at most {MOST_THREADS} threads can share a process"
        ));
    }
    Ok(())
}

/// Refuses a GPU where only the CPU will do.
///
/// # Errors
/// Another device than the CPU was asked for.
pub fn cpu_only(common: &Common, what: &str) -> Outcome {
    match common.device {
        Device::Cpu => Ok(()),
        device => fail(format!("--device {device}: {what} is for the CPU")),
    }
}

/// The name of each rank's host. Collective.
///
/// # Errors
/// Where a rank has failed or left.
pub fn hosts(comm: &Comm) -> ferrier::Result<Vec<String>> {
    let mut name = [0_u8; 256];
    // SAFETY: writes at most as many bytes as there are, the last of which stays zero.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let all = comm.all_gather(&name[..end])?;
    Ok(all.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// Refuses what a machine cannot hold, before the system starts to kill.
/// `bytes` is what this rank will need. Collective.
///
/// # Errors
/// The ranks of a node together need more memory than it has; the same on every rank.
pub fn check_room(comm: &Comm, bytes: usize) -> Outcome {
    let own = comm.nodes()[comm.rank()];
    let mut mine = vec![0.0; comm.node_count()];
    mine[own] = bytes as f64;
    let needed = comm.sum(&mine)?[own];
    let machine = ferrier::machine::info().memory_bytes as u64;
    let there = ferrier::machine::memory_left().min(if machine == 0 { u64::MAX } else { machine }) as f64;
    let text = |bytes: f64| report::bytes(bytes as u64);
    let enough = match needed > there {
        true => fail(format!("not enough memory: {} are needed, {} are there", text(needed), text(there))),
        false => Ok(()),
    };
    session::agree(comm, enough)
}

/// The choice that was asked for; the planner makes the rest.
///
/// # Errors
/// Unknown names; lists of tiles, and tiles that do not fit the array.
pub fn choice(common: &Common, frame: &Frame) -> Outcome<Choice> {
    Ok(named(common)?.overlap(common.tiling.overlap(frame)?))
}

/// The same without tiles.
///
/// # Errors
/// Unknown names.
pub fn named(common: &Common) -> Outcome<Choice> {
    if let Some(name) = &common.exchange {
        ferrier::exchange::find(name)?;
    }
    // Those of a GPU are the plan's to know.
    if let (Some(name), Device::Cpu) = (&common.kernel, common.device) {
        ferrier::kernel::find(name)?;
    }
    if common.tiling.block == Some(0) || common.tiling.arrays == Some(0) {
        return fail("--block and --arrays: at least 1");
    }
    let compress = common.compress.map(|compress| match compress {
        CompressName::BetweenNodes => Compress::BetweenNodes,
        CompressName::BetweenRanks => Compress::BetweenRanks,
    });
    let (exchange, kernel, codec) = (common.exchange.clone(), common.kernel.clone(), common.codec.clone());
    let (progress, block) = (common.tiling.progress.map(|name| name.progress()), common.tiling.block);
    let mut choice = Choice::new().compress(compress).progress(progress).block(block);
    (choice.exchange, choice.kernel, choice.codec) = (exchange, kernel, codec);
    Ok(choice)
}

/// The problem with the error that is allowed, if one is.
pub fn allowing(problem: Problem, common: &Common) -> Problem {
    match common.tolerance {
        Some(error) => problem.tolerance(error),
        None => problem,
    }
}

/// The library's axes to transform, the halved one last.
///
/// # Errors
/// Axes that are not there or come twice; a halved one that is not among them.
pub fn axes(frame: &Frame, common: &Common, real: bool) -> Outcome<Vec<usize>> {
    let mut axes = match &common.axes {
        Some(list) => frame.axes(&list.0)?,
        None => (3 - frame.ndim()..3).collect(),
    };
    if let Some(halved) = common.halved {
        if !real {
            return fail("--halved is for real transforms");
        }
        let axis = frame.axis(halved, "--halved")?;
        let Some(at) = axes.iter().position(|&a| a == axis) else {
            return fail(format!("--halved {halved}: the halved axis must be one of --axes"));
        };
        axes[at..].rotate_left(1);
    }
    Ok(axes)
}

/// A layout by its name. `flag` is `--in` or `--out`, for errors.
///
/// # Errors
/// An axis that is not there; a grid that does not fit. `same` is the
/// caller's to replace.
pub fn layout(
    frame: &Frame,
    name: LayoutName,
    grid: Option<&Grid>,
    ranks: usize,
    flag: &str,
) -> Outcome<LayoutSpec> {
    let option = format!("{flag}-layout {name}");
    let spec = match name {
        LayoutName::Bricks => LayoutSpec::bricks(),
        LayoutName::Slabs(axis) => LayoutSpec::slabs(frame.axis(axis, &option)?),
        LayoutName::Pencils(axis) => LayoutSpec::pencils(frame.axis(axis, &option)?),
        LayoutName::Best if flag == "--out" => {
            if grid.is_some() {
                return fail("--out-grid does not go with --out-layout best, which chooses the grid itself");
            }
            return Ok(LayoutSpec::unconstrained());
        }
        LayoutName::Best | LayoutName::Same => {
            return fail(format!("{option}: {name} is for --out-layout only"));
        }
    };
    match grid {
        Some(grid) => Ok(spec.grid(frame.grid(grid, ranks, &format!("{flag}-grid"))?)),
        None => Ok(spec),
    }
}

/// Both layouts, `same` resolved.
///
/// # Errors
/// Those of [`layout`].
pub fn layouts(
    frame: &Frame,
    inward: LayoutName,
    outward: LayoutName,
    common: &Common,
    ranks: usize,
) -> Outcome<(LayoutSpec, LayoutSpec)> {
    let spec_in = layout(frame, inward, common.in_grid.as_ref(), ranks, "--in")?;
    let (name, grid) = match outward {
        LayoutName::Same => (inward, common.out_grid.as_ref().or(common.in_grid.as_ref())),
        other => (other, common.out_grid.as_ref()),
    };
    Ok((spec_in, layout(frame, name, grid, ranks, "--out")?))
}

/// Is this one axis, in consecutive parts? A complex one goes over all ranks.
pub fn is_line(frame: &Frame, inward: LayoutName, outward: LayoutName, common: &Common) -> bool {
    let whole = common.in_grid.is_none() && common.out_grid.is_none();
    let parts = |layout| matches!(layout, LayoutName::Slabs(_) | LayoutName::Same);
    let modes = parts(outward) || outward == LayoutName::Best;
    frame.ndim() == 1 && common.axes.is_none() && whole && parts(inward) && modes
}

/// The problem of `bench` and `plan`.
///
/// # Errors
/// Whatever does not fit.
pub fn problem(args: &ProblemArgs, ranks: usize) -> Outcome<(Problem, Vec<usize>)> {
    let frame = &args.shape;
    let kinds = args.common.modes.kinds(frame)?;
    if kinds.is_some() && args.kind == KindName::R2c {
        return fail("--kinds says all: r2c is one of them, for the axis to halve");
    }
    let real = args.kind == KindName::R2c;
    let axes = axes(frame, &args.common, real)?;
    let (inward, outward) = layouts(frame, args.in_layout, args.out_layout, &args.common, ranks)?;
    if args.batch == 0 {
        return fail("--batch 0: at least 1 array is needed");
    }
    let bytes = frame.lengths().iter().try_fold(args.batch, |product, &n| product.checked_mul(n + 2));
    if bytes.and_then(|n| n.checked_mul(16)).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return fail(format!("shape {frame} in a batch of {} is too large: its size overflows", args.batch));
    }
    if !real && args.common.modes.is_plain() && is_line(frame, args.in_layout, args.out_layout, &args.common)
    {
        let problem = Problem::c2c_1d(frame.shape()[2]);
        let problem = if args.out_layout == LayoutName::Best {
            problem.output(LayoutSpec::unconstrained())
        } else {
            problem
        };
        let problem = problem.batch(args.batch).reproducible(args.common.reproducible);
        return Ok((allowing(problem, &args.common), axes));
    }
    let (problem, axes) = match (kinds, axes.last()) {
        (Some(kinds), _) => {
            let mut axes: Vec<usize> = (0..3).filter(|&axis| kinds[axis] != Kind::Identity).collect();
            axes.sort_by_key(|&axis| kinds[axis] == Kind::Real);
            (Problem::mixed(frame.shape(), kinds), axes)
        }
        (None, Some(&halved)) if real => (Problem::r2c(frame.shape()).halved(halved), axes),
        _ => (Problem::c2c(frame.shape()), axes),
    };
    let problem = problem.axes(&axes).input(inward).batch(args.batch).reproducible(args.common.reproducible);
    let problem = args.common.modes.apply(frame, problem)?;
    // Columns of a sphere are shared out evenly unless it is said how.
    let columns = args.common.modes.keep_sphere.is_some() && args.out_layout == LayoutName::Same;
    let problem = if columns { problem } else { problem.output(outward) };
    Ok((allowing(problem, &args.common), axes))
}
