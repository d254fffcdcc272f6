//! The transform of a file, from options and header.

use ferrier::io::{Dtype, Format, Reader, WriteOptions};
use ferrier::{Choice, Kind, LayoutSpec, Order, Problem, Scale};
use ferrier_bench::table::shape_text;

use super::args::TransformArgs;
use crate::arguments::{Direction, LayoutName, ScaleName, UserShape, modes, real_length, setup};
use crate::commands::sphere_box::SphereBox;
use crate::failure::{Failure, Outcome, fail};
use crate::session::Session;

/// The transform of a file, the same on all ranks.
pub struct TransformTask<'a> {
    pub args: &'a TransformArgs,
    pub problem: Problem,
    /// Whether no axis is transformed: elements stay what they are.
    pub redistributes: bool,
    /// The bounding box of a sphere of modes.
    pub sphere: Option<SphereBox>,
    pub choice: Choice,
    pub input: Reader,
    pub out_dtype: Dtype,
    pub out_shape: Vec<usize>,
    pub out_options: WriteOptions,
    /// The output is the file of a matrix of this shape; whether in Fortran order.
    pub out_matrix: Option<([usize; 3], bool)>,
}

impl TransformTask<'_> {
    /// Bytes of the elements of the output.
    pub fn out_bytes(&self) -> u64 {
        self.out_shape.iter().product::<usize>() as u64 * self.out_dtype.bytes() as u64
    }

    /// Changes a transform of one long axis to that of a matrix: the file of points has it in
    /// C order, the file of modes in Fortran order.
    fn into_matrix(mut self, n: usize, scale: Scale, forward: bool) -> Self {
        let problem = Problem::c2c_1d(n).reproducible(self.args.common.reproducible);
        let shape = problem.shape();
        let modes = shape[1] > 1;
        self.input = self.input.reshaped(&shape, modes && !forward);
        self.out_matrix = Some((shape, modes && forward));
        self.problem = if forward { problem.scale_forward(scale) } else { problem.scale_backward(scale) };
        self
    }
}

/// Reads the options and the header of the input.
///
/// # Errors
/// Options that do not fit each other or the file.
pub fn prepare<'a>(args: &'a TransformArgs, session: &Session) -> Outcome<TransformTask<'a>> {
    let ranks = session.size(&args.common)?;
    let forward = args.direction == Direction::Forward;
    let halves = args.real || args.common.modes.kinds.iter().flatten().any(|kind| *kind == Kind::Real);
    if args.last.is_some() && (forward || !halves) {
        return fail("--last is for --real --direction backward");
    }
    let input = args.input_file.open(&args.input, 0)?;
    let dtype = input.dtype();
    let shape = UserShape::new(input.shape()).map_err(|failure| {
        Failure::new(format!("cannot transform {}: {}", args.input.display(), failure.message))
    })?;
    check_kind(args, dtype)?;
    let (problem, axes) = problem(args, &shape, dtype.is_complex())?;
    let choice = setup::choice(&args.common, &shape)?;
    let sphere = SphereBox::new(&problem);
    let (space, modes) =
        (problem.shape(), sphere.as_ref().map_or(problem.spectrum_shape(), |sphere| sphere.shape));
    if !forward && modes != shape.shape() {
        return fail(format!(
            "cannot transform {}: it has {shape} modes, {} are kept",
            args.input.display(),
            shape_text(&shape.users(modes))
        ));
    }
    let out_shape = shape.users(if forward { modes } else { space });
    UserShape::new(&out_shape)?;
    let (spec_in, mut spec_out) = layouts(args, &shape, input.is_fortran(), ranks)?;
    let redistributes = problem.kinds() == [Kind::Identity; 3] && modes == space;
    if redistributes {
        check_redistribution(args, &choice)?;
        if args.out_layout == LayoutName::Best {
            spec_out = spec_in.clone();
        }
    }
    let scale = match args.scale {
        ScaleName::Numpy if forward => Scale::Unscaled,
        ScaleName::Numpy | ScaleName::Full => Scale::Full,
        ScaleName::None => Scale::Unscaled,
        ScaleName::Symmetric => Scale::Symmetric,
    };
    let problem = problem.axes(&axes).reproducible(args.common.reproducible);
    if sphere.is_some() && args.out_layout != LayoutName::Slabs(0) {
        return fail(
            "--keep-sphere writes the bounding box of the sphere in slabs:0; no other --out-layout is possible",
        );
    }
    let problem = setup::with_tolerance(problem, &args.common);
    let problem = if forward {
        problem.input(spec_in).output(spec_out).scale_forward(scale)
    } else {
        problem.input(spec_out).output(spec_in).scale_backward(scale)
    };
    // Each rank has planes of the box and of the columns.
    let problem = if sphere.is_some() { problem.output(LayoutSpec::slabs(0)) } else { problem };

    let real_out = if forward { problem.has_real_spectrum() } else { problem.is_real() };
    let out_options = args.output_file.options(&args.output, dtype)?;
    let complex_out = if redistributes { dtype.is_complex() } else { !real_out };
    let out_dtype = Dtype::new(complex_out, dtype.precision());
    // The chunks of a store have its shape.
    let flat = !input.is_zarr() && Format::of_name(&args.output) != Format::Zarr;
    let task = TransformTask {
        args,
        problem,
        redistributes,
        sphere,
        choice,
        input,
        out_dtype,
        out_shape,
        out_options,
        out_matrix: None,
    };
    let in_layout = args.in_layout.unwrap_or(LayoutName::Slabs(0));
    let natural = args.out_layout != LayoutName::Best;
    let plain = !args.real && args.common.modes.is_plain() && args.points.is_none();
    if flat && natural && plain && setup::is_line(&shape, in_layout, args.out_layout, &args.common) {
        return Ok(task.into_matrix(shape.shape()[2], scale, forward));
    }
    Ok(task)
}

/// Redistributed elements are sent as they are.
fn check_redistribution(args: &TransformArgs, choice: &Choice) -> Outcome {
    if choice.codec.as_deref().is_some_and(|name| name != "raw") || args.common.tolerance.is_some() {
        return fail("--codec and --tolerance are for transforms: without one, elements stay what they are");
    }
    Ok(())
}

/// The problem without layouts and scales, and its axes. `complex`: the file has complex elements.
fn problem(args: &TransformArgs, shape: &UserShape, complex: bool) -> Outcome<(Problem, Vec<usize>)> {
    let forward = args.direction == Direction::Forward;
    if forward && args.points.is_some() {
        return fail("--points is for --direction backward: forward, the file has all points");
    }
    let (kinds, axes) = match args.common.modes.kinds(shape)? {
        Some(kinds) => {
            modes::check_file(kinds, forward, complex)?;
            (kinds, (0..3).filter(|&axis| kinds[axis] != Kind::Identity).collect())
        }
        None => {
            let axes = setup::axes(shape, &args.common, args.real)?;
            let halved = axes.last().copied().filter(|_| args.real);
            let kind = |axis: usize| match axes.contains(&axis) {
                false => Kind::Identity,
                true if halved == Some(axis) => Kind::Real,
                true => Kind::Complex,
            };
            (std::array::from_fn(kind), axes)
        }
    };
    let halved = kinds.iter().position(|&kind| kind == Kind::Real);
    let mut lengths = shape.shape();
    let mut keep = None;
    if !forward {
        if let Some((points, kept)) = args.common.modes.back(shape, kinds, args.points.as_ref())? {
            (lengths, keep) = (points, Some(kept));
        } else if let Some(axis) = halved {
            lengths[axis] = real_length(lengths[axis], args.last)?;
        }
    }
    let problem = Problem::mixed(lengths, kinds);
    // Cosine and sine transforms of a complex file apply to both parts.
    let waves = kinds.iter().all(|kind| !matches!(kind, Kind::Complex | Kind::Real));
    let problem = if waves && complex { problem.complex_values() } else { problem };
    let problem = match keep {
        Some(keep) if args.common.modes.keep_sphere.is_none() => problem.keep(keep),
        _ => problem,
    };
    Ok((args.common.modes.apply(&UserShape::new(&shape.users(lengths))?, problem)?, axes))
}

/// Checks that the file has the elements that the transform takes.
fn check_kind(args: &TransformArgs, dtype: Dtype) -> Outcome {
    match (args.real, args.direction, dtype.is_complex()) {
        (true, Direction::Forward, true) => fail(format!(
            "cannot transform {}: --real takes real numbers forward, the file has {}",
            args.input.display(),
            dtype.name()
        )),
        (true, Direction::Backward, false) => fail(format!(
            "cannot transform {}: --real takes complex numbers backward, the file has {}",
            args.input.display(),
            dtype.name()
        )),
        _ => Ok(()),
    }
}

/// The layouts of the input, in the memory order of the file, and of the output.
fn layouts(
    args: &TransformArgs,
    shape: &UserShape,
    fortran: bool,
    ranks: usize,
) -> Outcome<(LayoutSpec, LayoutSpec)> {
    if args.out_layout == LayoutName::Best && args.direction == Direction::Backward {
        return fail("--out-layout best is for forward transforms");
    }
    let slowest = if fortran { shape.ndim() as isize - 1 } else { 0 };
    let in_layout = args.in_layout.unwrap_or(LayoutName::Slabs(slowest));
    let (inward, outward) = setup::layouts(shape, in_layout, args.out_layout, &args.common, ranks)?;
    Ok((inward.order(if fortran { Order::F } else { Order::C }), outward))
}
