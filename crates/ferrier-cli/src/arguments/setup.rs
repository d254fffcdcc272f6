//! From options to problems, layouts and choices of the library.

use ferrier::{Choice, DeviceSpec, Kind, LayoutSpec, Problem};

use super::common::{CommonArgs, ExecutionArgs, ProblemArgs};
use super::shape::{Grid, LayoutName, UserShape};
use super::words::KindName;
use crate::failure::{Outcome, fail};

/// Ranks of one process, each of which is a thread.
const MOST_RANKS: usize = 1024;
/// Threads of one process, all ranks together.
const MOST_THREADS: usize = 4096;
/// Ranks of a group that only plans: the boxes of a layout of so many take 50 MB.
const MOST_PLANNED: usize = 1 << 20;

/// Checks the number of ranks and threads.
///
/// # Errors
/// A number of zero, more ranks than can be planned for, more threads than a process can have.
pub fn check_counts(common: &CommonArgs) -> Outcome {
    let ranks = common.ranks.unwrap_or(1);
    if ranks == 0 {
        return fail("--ranks 0: at least 1 rank is needed");
    }
    if common.execution.threads == Some(0) {
        return fail("--threads 0: at least 1 thread is needed");
    }
    if let Some(threads) = common.execution.threads.filter(|&threads| threads > MOST_THREADS) {
        return fail(format!("--threads {threads}: at most {MOST_THREADS} threads can share a process"));
    }
    if ranks > MOST_PLANNED {
        return fail(format!("--ranks {ranks}: at most {MOST_PLANNED} ranks can be planned for"));
    }
    Ok(())
}

/// Checks the number of ranks and threads of a run.
///
/// # Errors
/// A number of zero, or above the limits of a process.
pub fn check_group(common: &CommonArgs) -> Outcome {
    let ranks = common.ranks.unwrap_or(1);
    if ranks > MOST_RANKS {
        return fail(format!("--ranks {ranks}: at most {MOST_RANKS} ranks can share a process"));
    }
    check_counts(common)?;
    let threads = ranks.saturating_mul(common.execution.threads.unwrap_or(1));
    if threads > MOST_THREADS {
        return fail(format!(
            "--ranks x --threads is {threads}: at most {MOST_THREADS} threads can share a process"
        ));
    }
    Ok(())
}

/// Checks that the device is the CPU. `what` names the feature for the error.
///
/// # Errors
/// Another device.
pub fn cpu_only(common: &CommonArgs, what: &str) -> Outcome {
    match common.device {
        DeviceSpec::Cpu => Ok(()),
        device => fail(format!("--device {device}: {what} is for the CPU")),
    }
}

/// The choice of the options; the planner chooses the rest.
///
/// # Errors
/// Unknown names; lists of tiles, and tiles that do not fit the array.
pub fn choice(common: &CommonArgs, shape: &UserShape) -> Outcome<Choice> {
    Ok(named(common, shape)?.overlap(common.tiling.overlap(shape)?))
}

/// As [`choice`], without tiles.
///
/// # Errors
/// Unknown names; axes that the array does not have.
pub fn named(common: &CommonArgs, shape: &UserShape) -> Outcome<Choice> {
    let ExecutionArgs { exchange, kernel, compress, .. } = &common.execution;
    if let Some(name) = exchange {
        ferrier::exchange::find(name)?;
    }
    // The planner checks kernels of GPUs.
    if let (Some(name), DeviceSpec::Cpu) = (kernel, common.device) {
        ferrier::kernel::find(name)?;
    }
    if common.tiling.block == Some(0) || common.tiling.arrays == Some(0) {
        return fail("--block and --arrays must be at least 1");
    }
    let tiling = &common.tiling;
    if tiling.packet == Some(0) || tiling.packets == Some(0) {
        return fail("--packet and --packets must be at least 1");
    }
    let mut choice = Choice::new().compress(*compress).progress(tiling.progress).block(tiling.block);
    (choice.packet, choice.packets) = (tiling.packet, tiling.packets);
    (choice.exchange, choice.kernel, choice.codec) = (exchange.clone(), kernel.clone(), common.codec.clone());
    common.switches.apply(choice, shape)
}

/// The problem with the tolerance of the options, if there is one.
pub fn with_tolerance(problem: Problem, common: &CommonArgs) -> Problem {
    match common.tolerance {
        Some(error) => problem.tolerance(error),
        None => problem,
    }
}

/// The library's axes to transform, the halved one last.
///
/// # Errors
/// Unknown or repeated axes; a halved axis that is not transformed.
pub fn axes(shape: &UserShape, common: &CommonArgs, real: bool) -> Outcome<Vec<usize>> {
    let mut axes = match &common.axes {
        Some(list) => shape.axes(&list.0)?,
        None => (3 - shape.ndim()..3).collect(),
    };
    if let Some(halved) = common.halved {
        if !real {
            return fail("--halved is for real transforms only");
        }
        let axis = shape.axis(halved, "--halved")?;
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
/// An unknown axis; a grid of another size; `same`, which the caller replaces.
pub fn layout(
    shape: &UserShape,
    name: LayoutName,
    grid: Option<&Grid>,
    ranks: usize,
    flag: &str,
) -> Outcome<LayoutSpec> {
    let option = format!("{flag}-layout {name}");
    let spec = match name {
        LayoutName::Bricks => LayoutSpec::bricks(),
        LayoutName::Slabs(axis) => LayoutSpec::slabs(shape.axis(axis, &option)?),
        LayoutName::Pencils(axis) => LayoutSpec::pencils(shape.axis(axis, &option)?),
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
        Some(grid) => Ok(spec.grid(shape.grid(grid, ranks, &format!("{flag}-grid"))?)),
        None => Ok(spec),
    }
}

/// Both layouts, with `same` resolved.
///
/// # Errors
/// Those of [`layout`].
pub fn layouts(
    shape: &UserShape,
    inward: LayoutName,
    outward: LayoutName,
    common: &CommonArgs,
    ranks: usize,
) -> Outcome<(LayoutSpec, LayoutSpec)> {
    let spec_in = layout(shape, inward, common.in_grid.as_ref(), ranks, "--in")?;
    let (name, grid) = match outward {
        LayoutName::Same => (inward, common.out_grid.as_ref().or(common.in_grid.as_ref())),
        other => (other, common.out_grid.as_ref()),
    };
    Ok((spec_in, layout(shape, name, grid, ranks, "--out")?))
}

/// Is this one axis in consecutive parts, which a complex transform distributes over all ranks?
pub fn is_line(shape: &UserShape, inward: LayoutName, outward: LayoutName, common: &CommonArgs) -> bool {
    let whole = common.in_grid.is_none() && common.out_grid.is_none();
    let parts = |layout| matches!(layout, LayoutName::Slabs(_) | LayoutName::Same);
    let modes = parts(outward) || outward == LayoutName::Best;
    shape.ndim() == 1 && common.axes.is_none() && whole && parts(inward) && modes
}

/// The problem of `bench`, `plan` and `tune`, and its axes.
///
/// # Errors
/// Options that do not fit each other.
pub fn problem(args: &ProblemArgs, ranks: usize) -> Outcome<(Problem, Vec<usize>)> {
    let shape = &args.shape;
    let kinds = args.common.modes.kinds(shape)?;
    if kinds.is_some() && args.kind == KindName::R2c {
        return fail(
            "--kinds and --kind r2c exclude each other: r2c is one of the kinds, for the axis to halve",
        );
    }
    let real = args.kind == KindName::R2c;
    let axes = axes(shape, &args.common, real)?;
    let (inward, outward) = layouts(shape, args.in_layout, args.out_layout, &args.common, ranks)?;
    let [inward, outward] = args.orders.orders(shape, [inward, outward])?;
    if args.batch == 0 {
        return fail("--batch 0: at least 1 array is needed");
    }
    let bytes = shape.lengths().iter().try_fold(args.batch, |product, &n| product.checked_mul(n + 2));
    if bytes.and_then(|n| n.checked_mul(16)).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return fail(format!("shape {shape} in a batch of {} is too large: its size overflows", args.batch));
    }
    if !real && args.common.modes.is_plain() && is_line(shape, args.in_layout, args.out_layout, &args.common)
    {
        let problem = Problem::c2c_1d(shape.shape()[2]);
        let problem = if args.out_layout == LayoutName::Best {
            problem.output(LayoutSpec::unconstrained())
        } else {
            problem
        };
        let problem = problem.batch(args.batch).reproducible(args.common.reproducible);
        return Ok((with_tolerance(problem, &args.common), axes));
    }
    let (problem, axes) = match (kinds, axes.last()) {
        (Some(kinds), _) => {
            let mut axes: Vec<usize> = (0..3).filter(|&axis| kinds[axis] != Kind::Identity).collect();
            axes.sort_by_key(|&axis| kinds[axis] == Kind::Real);
            (Problem::mixed(shape.shape(), kinds), axes)
        }
        (None, Some(&halved)) if real => (Problem::r2c(shape.shape()).halved(halved), axes),
        _ => (Problem::c2c(shape.shape()), axes),
    };
    let problem = problem.axes(&axes).input(inward).batch(args.batch).reproducible(args.common.reproducible);
    let problem = args.common.modes.apply(shape, problem)?;
    // Columns of a sphere are distributed evenly unless a layout is given.
    let columns = args.common.modes.keep_sphere.is_some() && args.out_layout == LayoutName::Same;
    let problem = if columns { problem } else { problem.output(outward) };
    Ok((with_tolerance(problem, &args.common), axes))
}
