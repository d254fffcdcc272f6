//! Arrays with strides: the same bits as arrays without gaps, and nothing outside the box is touched.

use crate::common::{self, Number, any_choice, exchanges, kernels, plan_of};
use ferrier::{
    Array, ArrayStrides, Box3, Choice, Comm, Data, DataMut, Fields, FieldsMut, Keep, Kind, LayoutSpec, Modes,
    Operator, Order, Plan, Problem, Result, Sign,
};
use ferrier_test::cases::ORDERS;
use ferrier_test::{Field, Rng, watchdog};

/// What memory outside the box holds.
const CANARY: f64 = -12345.678;

/// Memory of a user, real or complex.
#[derive(Clone)]
struct Memory<T>(Vec<T>);

impl<T: Number> Data<T> for Memory<T> {
    fn scalars(&self) -> &[T] {
        &self.0
    }
    fn is_real(&self) -> Option<bool> {
        None
    }
}

impl<T: Number> DataMut<T> for Memory<T> {
    fn scalars_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

/// Where the elements of an end lie on this rank, in words that do not come from the library.
#[derive(Clone, Copy)]
struct End {
    part: Box3,
    batch: usize,
    width: usize,
    /// In scalars.
    offset: usize,
    strides: [usize; 3],
    array: usize,
}

impl End {
    fn dense(part: Box3, order: Order, batch: usize, width: usize) -> End {
        let (shape, [slow, mid, fast]) = (part.shape(), order.axes());
        let mut strides = [width; 3];
        (strides[mid], strides[slow]) = (shape[fast] * width, shape[fast] * shape[mid] * width);
        End { part, batch, width, offset: 0, strides, array: shape.iter().product::<usize>() * width }
    }

    /// Gaps at random, axes and batch in any order.
    fn any(self, order: Order, rng: &mut Rng) -> (End, ArrayStrides) {
        let [slow, mid, fast] = order.axes();
        let mut sides = [fast, mid, slow, 3];
        match rng.below(4) {
            0 => rng.shuffle(&mut sides),
            1 => sides.rotate_right(1),
            _ => {}
        }
        let shape = self.part.shape();
        let (mut strides, mut extent) = ([0; 4], 1);
        for side in sides {
            strides[side] = extent + *rng.pick(&[0, 0, 0, 1, 2, 5]);
            extent = strides[side] * if side == 3 { self.batch } else { shape[side] }.max(1);
        }
        let [a, b, c, array] = strides;
        let (offset, width) = (*rng.pick(&[0, 0, 1, 7]), self.width);
        let given = ArrayStrides::new([a, b, c]).offset(offset).batch(array);
        let strides = [a, b, c].map(|stride| stride * width);
        (End { offset: offset * width, strides, array: array * width, ..self }, given)
    }

    /// Array, index and first scalar of every element.
    fn elements(self) -> impl Iterator<Item = (usize, [usize; 3], usize)> {
        let ([i0, j0, k0], [i1, j1, k1]) = (self.part.lo, self.part.hi);
        (0..self.batch).flat_map(move |b| {
            (i0..i1).flat_map(move |i| {
                (j0..j1).flat_map(move |j| {
                    (k0..k1).map(move |k| {
                        let at = [i, j, k];
                        let moved: usize = (0..3).map(|a| (at[a] - self.part.lo[a]) * self.strides[a]).sum();
                        (b, at, self.offset + b * self.array + moved)
                    })
                })
            })
        })
    }

    fn len(self) -> usize {
        self.elements().map(|(_, _, at)| at + self.width).max().unwrap_or(0)
    }

    fn fill<T: Number>(self, memory: &mut [T], value: impl Fn(usize, [usize; 3], usize) -> T) {
        for (b, index, at) in self.elements() {
            (0..self.width).for_each(|part| memory[at + part] = value(b, index, part));
        }
    }

    /// The bits of all elements, in an order that does not depend on the strides.
    fn bits<T: Number>(self, memory: &[T]) -> Vec<u64> {
        let bits = |at: usize| memory[at..at + self.width].iter().map(|&x| f64::to_bits(x.into()));
        self.elements().flat_map(|(_, _, at)| bits(at)).collect()
    }

    /// Panics where memory outside of these ends is not as it was.
    fn check_canaries<T: Number>(ends: &[End], memory: &[T], what: &str) {
        let mut outside = vec![true; memory.len()];
        for end in ends {
            end.elements().for_each(|(_, _, at)| outside[at..at + end.width].fill(false));
        }
        for (at, &value) in memory.iter().enumerate().filter(|(at, _)| outside[*at]) {
            assert_eq!(
                f64::to_bits(value.into()),
                f64::to_bits(T::rounded(CANARY).into()),
                "{what}: scalar {at}"
            );
        }
    }
}

/// Multiplies each mode by a factor of its index.
struct Weights;

impl<T: Number> Operator<T> for Weights {
    fn apply(&self, modes: &mut Modes<'_, T>) {
        for mut run in modes.runs() {
            let (first, axis, batch) = (run.first(), run.axis(), run.batch());
            run.scale(|i| {
                let mut at = first;
                at[axis] += i;
                T::rounded((1 + batch + at[0] + 2 * at[1] + 3 * at[2]) as f64 / 8.0)
            });
        }
    }
}

/// The ends of arrays without gaps, out of place and in place, and an array in place.
fn own_ends<T: Number>(plan: &Plan<T>) -> Result<([End; 2], [End; 2], Array<T>)> {
    let recipe = plan.recipe();
    let width = |real: bool| if real { 1 } else { 2 };
    let (widths, batch) = ([width(recipe.is_real()), width(recipe.has_real_output())], recipe.batch);
    let layouts = [plan.input_layout(), plan.output_layout()];
    let boxes = [plan.input_box(), plan.output_box()];
    let dense = [0, 1].map(|e| End::dense(boxes[e], layouts[e].order(), batch, widths[e]));
    let mut in_place = dense;
    let array = plan.make_in_place()?;
    let first = in_place[0].part.lo;
    if widths == [1, 2] && !in_place[0].part.is_empty() {
        // Real rows may be padded.
        let at = |b: usize, index: [usize; 3]| array.real_index(b, index);
        let start = at(0, first).unwrap();
        let next = |axis: usize| {
            let mut index = first;
            index[axis] += 1;
            at(0, index).map_or(0, |at| at - start)
        };
        in_place[0] = End {
            offset: start,
            strides: [0, 1, 2].map(next),
            array: at(1, first).map_or(0, |at| at - start),
            ..in_place[0]
        };
    }
    Ok((dense, in_place, array))
}

/// The results of all kinds of calls on one rank, as bits by array and index.
fn results<T: Number>(plan: &mut Plan<T>, given: [Option<End>; 2]) -> Result<Vec<Vec<u64>>> {
    let (dense, in_place, mut both) = own_ends(plan)?;
    let ends = [0, 1].map(|e| given[e].unwrap_or(dense[e]));
    let ([input, output], operators) = (ends, plan.recipe().operators);
    let value = |b: usize, at: [usize; 3], part: usize| {
        let value = Field::new(2026, T::BITS).complex(b, at);
        T::rounded([value.re, value.im][part])
    };
    let memory = |scalars: usize| Memory(vec![T::rounded(CANARY); scalars]);
    let mut field = memory(input.len());
    input.fill(&mut field.0, value);
    let (mut spectrum, mut back) = (memory(output.len()), memory(input.len()));
    assert_eq!(plan.input_len() * input.width, input.len());
    assert_eq!(plan.output_len() * output.width, output.len());
    let kept = field.clone();
    plan.call().scale(0.3).forward(&field, &mut spectrum)?;
    let mut found = vec![output.bits(&spectrum.0)];
    let sent = spectrum.clone();
    plan.backward(&spectrum, &mut back)?;
    found.push(input.bits(&back.0));
    assert_eq!(kept.0, field.0, "forward changed its input");
    assert_eq!(sent.0, spectrum.0, "backward changed its input");
    End::check_canaries(&[output], &spectrum.0, "forward");
    End::check_canaries(&[input], &back.0, "backward");
    // Both ends of calls in place.
    let ends = [0, 1].map(|e| given[e].unwrap_or(in_place[e]));
    assert_eq!(both.scalars().len(), plan.in_place_scalars());
    assert!(ends.iter().all(|end| end.len() <= plan.in_place_scalars()));
    both.scalars_mut().fill(T::rounded(CANARY));
    ends[0].fill(both.scalars_mut(), value);
    plan.call().scale(0.3).forward_in_place(&mut both)?;
    found.push(ends[1].bits(both.scalars()));
    End::check_canaries(&ends, both.scalars(), "forward in place");
    plan.call().backward_in_place(&mut both)?;
    found.push(ends[0].bits(both.scalars()));
    End::check_canaries(&ends, both.scalars(), "backward in place");
    assert_eq!(found[..2], [lists(plan, ends, [input, output], value)?, found[1].clone()]);
    if operators {
        let (mut spectrum, mut back) = (memory(output.len()), memory(input.len()));
        plan.call().operator(&Weights).forward(&field, &mut spectrum)?;
        plan.call().operator(&Weights).backward(&spectrum, &mut back)?;
        found.extend([output.bits(&spectrum.0), input.bits(&back.0)]);
        End::check_canaries(&[output], &spectrum.0, "forward with an operator");
        End::check_canaries(&[input], &back.0, "backward with an operator");
        plan.call().operator(&Weights).apply(&field, &mut back)?;
        found.push(input.bits(&back.0));
        End::check_canaries(&[input], &back.0, "apply");
        both.scalars_mut().fill(T::rounded(CANARY));
        ends[0].fill(both.scalars_mut(), value);
        plan.call().operator(&Weights).apply_in_place(&mut both)?;
        found.push(ends[0].bits(both.scalars()));
        End::check_canaries(&[ends[0]], both.scalars(), "apply in place");
    }
    Ok(found)
}

/// The same calls with arrays of their own for each array of the batch; returns the result of `forward`.
fn lists<T: Number>(
    plan: &mut Plan<T>,
    in_place: [End; 2],
    ends: [End; 2],
    value: impl Fn(usize, [usize; 3], usize) -> T,
) -> Result<Vec<u64>> {
    let batch = ends[0].batch;
    let one = |end: End| End { batch: 1, ..end };
    let ([input, output], in_place) = (ends.map(one), in_place.map(one));
    let memory = |scalars: usize| -> Vec<Memory<T>> {
        (0..batch).map(|_| Memory(vec![T::rounded(CANARY); scalars])).collect()
    };
    let fill = |end: End, fields: &mut [Memory<T>]| {
        let fields = fields.iter_mut().enumerate();
        fields.for_each(|(b, field)| end.fill(&mut field.0, |_, at, part| value(b, at, part)));
    };
    let bits = |end: End, fields: &[Memory<T>]| -> Vec<u64> {
        fields.iter().flat_map(|field| end.bits(&field.0)).collect()
    };
    let mut source = memory(input.len());
    fill(input, &mut source);
    let (mut modes, mut back) = (memory(output.len()), memory(input.len()));
    let sources: Vec<_> = source.iter().collect();
    plan.call()
        .scale(0.3)
        .forward(&Fields(&sources), &mut FieldsMut(&mut modes.iter_mut().collect::<Vec<_>>()))?;
    let found = bits(output, &modes);
    modes.iter().for_each(|field| End::check_canaries(&[output], &field.0, "a list"));
    // From a list to one array.
    let mut whole = Memory(vec![T::rounded(CANARY); ends[0].len()]);
    plan.backward(&Fields(&modes.iter().collect::<Vec<_>>()), &mut whole)?;
    plan.backward(
        &Fields(&modes.iter().collect::<Vec<_>>()),
        &mut FieldsMut(&mut back.iter_mut().collect::<Vec<_>>()),
    )?;
    assert_eq!(bits(input, &back), ends[0].bits(&whole.0));
    // The padding of the last row counts.
    let scalars = in_place.map(End::len).into_iter().max().unwrap_or(0) + 2;
    let mut both = memory(scalars);
    fill(in_place[0], &mut both);
    plan.call().scale(0.3).forward_in_place(&mut FieldsMut(&mut both.iter_mut().collect::<Vec<_>>()))?;
    assert_eq!(bits(in_place[1], &both), found);
    both.iter().for_each(|field| End::check_canaries(&in_place, &field.0, "a list in place"));
    plan.call().backward_in_place(&mut FieldsMut(&mut both.iter_mut().collect::<Vec<_>>()))?;
    assert_eq!(bits(in_place[0], &both), bits(input, &back));
    Ok(found)
}

const WAVES: [Kind; 4] = [Kind::Dct2, Kind::Dst3, Kind::Dct4, Kind::Identity];

fn any_layout(rng: &mut Rng) -> LayoutSpec {
    let specs = [
        LayoutSpec::bricks(),
        LayoutSpec::slabs(rng.below(3)),
        LayoutSpec::pencils(rng.below(3)),
        LayoutSpec::slabs(0),
    ];
    specs[rng.below(4)].clone().order(Order::new(*rng.pick(&ORDERS)).unwrap())
}

/// A problem whose layouts fit any number of ranks.
fn any_problem(rng: &mut Rng) -> Problem {
    let shape = [0; 3].map(|_| *rng.pick(&[1, 2, 3, 4, 5, 7, 8, 12, 16, 30]));
    let problem = match rng.below(8) {
        0..=2 => Problem::c2c(shape),
        3..=4 => Problem::r2c(shape).halved(rng.below(3)),
        5 => Problem::mixed(shape, [0; 3].map(|_| *rng.pick(&WAVES))),
        6 => Problem::mixed(shape, [*rng.pick(&WAVES), Kind::Complex, Kind::Real]),
        _ => Problem::c2c([16, 12, 15]).keep([Keep::Lowest(7), Keep::All, Keep::Lowest(8)]).support(1, 2..9),
    };
    let problem = match rng.below(12) {
        0 => Problem::c2c([9, 12, 10]).keep_sphere(3.0),
        _ => problem,
    };
    let (input, output) = (any_layout(rng), any_layout(rng));
    let output = if problem.sphere.is_some() { LayoutSpec::slabs(1) } else { output };
    let operators = rng.below(4) == 0 && problem.kinds() != [Kind::Identity; 3];
    let problem = match rng.below(6) {
        0 if !problem.real => problem.real_input(true),
        1 if !operators => problem.sign(Sign::Positive),
        _ => problem,
    };
    problem.input(input).output(output).batch(1 + rng.below(4)).operators(operators)
}

/// Two plans of one choice on this rank: without gaps, and with the strides of a seed.
fn compare<T: Number>(comm: &Comm, problem: &Problem, choice: &Choice, seed: u64) -> Result<()> {
    let mut plain = plan_of::<T>(comm, problem, choice)?;
    let want = results(&mut plain, [None; 2])?;
    let (dense, ..) = own_ends(&plain)?;
    let mut rng = Rng::new(seed + comm.rank() as u64);
    let orders = [plain.input_layout().order(), plain.output_layout().order()];
    // Some ranks, and some ends, have no strides.
    let any = [0, 1].map(|e| {
        let any = dense[e].any(orders[e], &mut rng);
        (rng.below(5) > 0).then_some(any)
    });
    let mut strided = problem.clone();
    if let Some((_, strides)) = any[0] {
        strided = strided.input_strides(strides);
    }
    if let Some((_, strides)) = any[1] {
        strided = strided.output_strides(strides);
    }
    let mut plan = plan_of::<T>(comm, &strided, choice)?;
    assert_eq!(plain.recipe().digest(), plan.recipe().digest());
    let found = results(&mut plan, any.map(|any| any.map(|(end, _)| end)))?;
    assert_eq!(found.len(), want.len());
    for (number, (found, want)) in found.iter().zip(&want).enumerate() {
        let strides = any.map(|any| any.map(|any| any.1));
        assert_eq!(found, want, "result {number} of rank {}: {strides:?}", comm.rank());
    }
    Ok(())
}

/// Where stores bypass the caches, rows of such arrays go in three parts; blocks of the middle one have other remainders than
/// those of a whole row. The array is too large to be transformed as a whole in a cache.
#[test]
fn arrays_may_begin_inside_a_cache_line() {
    let _watchdog = watchdog(120);
    for columns in (20..150).step_by(4) {
        let problem = Problem::c2c([80, 4800 / columns, columns]);
        let choice = Choice::new().kernel("native").fuse(false).stream(true);
        let outcome = ferrier::ranks(1).threads(1).run(|comm| {
            let mut plan = plan_of::<f64>(&comm, &problem, &choice)?;
            let len = plan.input_len();
            let values: Vec<_> =
                (0..len).map(|i| ferrier::Complex::new((i % 11) as f64, (i % 7) as f64)).collect();
            let mut want = plan.make_output()?;
            plan.forward(&values[..], &mut want)?;
            for start in 0..4 {
                let mut found = vec![ferrier::Complex::default(); len + 4];
                plan.forward(&values[..], &mut found[start..start + len])?;
                assert!(
                    found[start..start + len] == *want.complex(),
                    "{columns} columns from element {start}"
                );
            }
            Ok(())
        });
        assert!(outcome.is_ok(), "{columns} columns: {outcome:?}");
    }
}

/// Real lines of two points have two modes: planes before and after their transform are alike but for the elements. With a
/// stride of two scalars between real points their memory is alike, too. The array is too large to be transformed as a
/// whole in a cache.
#[test]
fn streamed_planes_of_two_real_points_change_nothing_else_in_memory() {
    let _watchdog = watchdog(120);
    let choice = Choice::new().kernel("native").fuse(true).stream(true);
    for (points, rows) in [(1, 150), (2, 150), (2, 37), (3, 150)] {
        let problem = Problem::r2c([105_000 / rows, rows, points]);
        let row = 2 * points + 1;
        let strides = ArrayStrides::new([row * rows, row, 2]);
        let outcome = ferrier::ranks(1).threads(1).run(|comm| {
            let mut plain = plan_of::<f64>(&comm, &problem, &choice)?;
            let modes: Vec<_> = (0..plain.output_len())
                .map(|i| ferrier::Complex::new((i % 11) as f64, (i % 7) as f64))
                .collect();
            let mut want = vec![0.0; plain.input_len()];
            plain.backward(&modes[..], &mut want[..])?;
            let mut plan = plan_of::<f64>(&comm, &problem.clone().input_strides(strides), &choice)?;
            // Elements between the points, and behind the last one, must stay as they are.
            let mut found = vec![-0.5; plan.input_len() + 16];
            plan.backward(&modes[..], &mut found[..])?;
            let mut expected = vec![-0.5; found.len()];
            for (i, &value) in want.iter().enumerate() {
                expected[i / points * row + i % points * 2] = value;
            }
            assert!(found == expected, "{points} points, {rows} rows");
            Ok(())
        });
        assert!(outcome.is_ok(), "{points} points, {rows} rows: {outcome:?}");
    }
}

#[test]
fn strides_change_no_bits_and_nothing_else_in_memory() {
    let _watchdog = watchdog(300);
    let mut rng = Rng::for_test(18);
    let cases = std::env::var("FERRIER_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases = cases.unwrap_or(if common::thin() { 30 } else { 250 });
    for case in 0..cases {
        let problem = any_problem(&mut rng);
        let ranks = 1 + rng.below(6);
        let exchange = exchanges()[case % exchanges().len()];
        let kernel = *rng.pick(&kernels());
        let mut choice = any_choice(exchange, kernel, ranks, &mut rng);
        let nodes = common::nodes(exchange, ranks, case);
        if exchange != "direct" && nodes == ranks && rng.below(3) == 0 {
            choice = choice.codec(*rng.pick(&["trim:12", "lossless"]));
        }
        let (threads, seed, single) = (1 + rng.below(3), rng.bits(), rng.below(2) == 0);
        let outcome = std::panic::catch_unwind(|| {
            ferrier::ranks(ranks).nodes(nodes).threads(threads).run(|comm| match single {
                true => compare::<f32>(&comm, &problem, &choice, seed),
                false => compare::<f64>(&comm, &problem, &choice, seed),
            })
        });
        if !matches!(outcome, Ok(Ok(_))) {
            eprintln!("case {case}: {ranks} ranks on {nodes} nodes, {problem:?}, {choice:?}");
        }
        match outcome {
            Ok(outcome) => drop(outcome.unwrap()),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

#[test]
fn errors_name_the_rank_and_the_axis_on_every_rank() {
    let outcome = ferrier::ranks(3).run(|comm| {
        let problem = Problem::c2c([6, 4, 5]);
        let message = |problem: &Problem| Plan::<f64>::new(&comm, problem).map(drop).unwrap_err().to_string();
        // Only rank 1 is wrong.
        let rows = if comm.rank() == 1 { 4 } else { 5 };
        let found = message(&problem.clone().input_strides(ArrayStrides::new([40, rows, 1])));
        assert!(found.contains("input strides of rank 1"), "{found}");
        assert!(found.contains("the stride of axis 1, 4, is less than the 5 elements"), "{found}");
        let batch = ArrayStrides::new([20, 5, 1]).batch(7);
        let found = message(&problem.clone().batch(2).output_strides(batch));
        assert!(
            found.contains("output strides of rank 0") && found.contains("stride of the batch, 7"),
            "{found}"
        );
        let free = problem.clone().output(LayoutSpec::unconstrained()).output_strides(batch);
        assert!(message(&free).contains("the planner is to choose it"));
        Ok(())
    });
    outcome.unwrap();
    let outcome = ferrier::ranks(1).run(|comm| {
        let problem = Problem::r2c([2, 4, 5]).input_strides(ArrayStrides::new([40, 8, 1]).offset(3));
        let mut plan = Plan::<f64>::new(&comm, &problem)?;
        assert_eq!((plan.input_len(), plan.output_len()), (3 + 40 + 24 + 5, 2 * 4 * 3));
        let (short, mut modes) = (vec![0.0; 71], vec![ferrier::Complex::default(); 24]);
        let found = plan.forward(&short, &mut modes).unwrap_err().to_string();
        assert!(found.contains("at least 72 real elements") && found.contains("71"), "{found}");
        assert!(found.contains("axis 0 ends outside"), "{found}");
        let found = plan.forward(&vec![0.0; 20], &mut modes).unwrap_err().to_string();
        assert!(found.contains("axis 1 ends outside"), "{found}");
        plan.forward(&vec![0.0; 100], &mut modes)
    });
    outcome.unwrap();
}

/// A group for planning has the strides of its rank.
#[test]
fn strides_can_be_planned_without_the_other_ranks() {
    let comm = ferrier::ranks(6).for_planning().unwrap();
    let problem = Problem::c2c([12, 8, 8]);
    let strides = ArrayStrides::inside([4, 10, 10], [1; 3], Order::C);
    let [plain, strided] = [problem.clone(), problem.input_strides(strides).output_strides(strides)]
        .map(|problem| ferrier::Planner::new(&problem).draft::<f64>(&comm).unwrap());
    assert_eq!(plain.memory(), strided.memory());
    assert_eq!(plain.largest_memory().unwrap(), strided.largest_memory().unwrap());
}

#[test]
fn lists_of_arrays_are_checked() {
    let outcome = ferrier::ranks(1).run(|comm| {
        let mut plan = Plan::<f64>::new(&comm, &Problem::c2c([2, 2, 2]).batch(2))?;
        let (field, short) = (vec![ferrier::Complex::default(); 8], vec![ferrier::Complex::default(); 7]);
        let mut whole = vec![ferrier::Complex::default(); 16];
        let found = plan.forward(&Fields(&[&field]), &mut whole).unwrap_err().to_string();
        assert!(found.contains("2 arrays") && found.contains("got 1"), "{found}");
        let found = plan.forward(&Fields(&[&field, &short]), &mut whole).unwrap_err().to_string();
        assert!(found.contains("8 complex elements") && found.contains("got 7"), "{found}");
        let mut array = short.clone();
        let mut list = [&mut array];
        let found = plan.call().forward_in_place(&mut FieldsMut(&mut list)).unwrap_err().to_string();
        assert!(found.contains("2 arrays"), "{found}");
        plan.forward(&Fields(&[&field, &field]), &mut whole)
    });
    outcome.unwrap();
}
