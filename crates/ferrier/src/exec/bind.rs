//! Binding: a schedule becomes what one rank does, step by step, on memory of its own.

use super::backend::{Executor, PassEnds, TileToCode, VariantOf};
use super::certificate::Gains;
use super::variant::{BoundPass, BoundStep, CallKind, Exchanges, TileRef, Variant};
use crate::exchange::{Exchange, ExchangeEntry, PacketPolicy};
use crate::{Box3, Comm, Real, Recipe, Result};
use ferrier_kernel::LineKind;
use ferrier_plan::geometry::width;
use ferrier_plan::lowering::{
    EndStrides, MemoryPolicy, MessageEnd, RankContext, ReshapeTile, WorkspaceLayout, volumes,
};
use ferrier_plan::messages::{Encoding, Volumes};
use ferrier_plan::order::{self, Action, BufferCycle, PassPart};
use ferrier_plan::recipe;
use ferrier_plan::schedule::{
    ArraySlot, AxisTransform, Direction, End, FusedOp, OpPosition, Pass, PointwiseOp, Reshape, Schedule,
    stages,
};
use ferrier_plan::tiles::{self, Tiles};

/// The name of a pass that transforms nothing.
const COPY: &str = "copy";

/// The exchanges of some directions, each with its tiles: one for every tile. `copied`: messages must be copied to
/// receive buffers.
pub(crate) fn exchanges(
    comm: &Comm,
    recipe: &Recipe,
    directions: &[(&Schedule, &[Tiles])],
    entry: &ExchangeEntry,
    (encoding, copied, packets): (Option<&Encoding>, bool, PacketPolicy),
) -> Result<Vec<Exchanges>> {
    let sends = entry.sends_messages(comm.node_count());
    let Some(make) = entry.make.filter(|_| sends) else {
        return Ok(vec![Exchanges::default(); directions.len()]);
    };
    let size = recipe.precision.bytes();
    let mut all: Vec<Volumes> = Vec::new();
    let mut count = 0;
    for (schedule, cuts) in directions {
        // Reshapes that are in flight together must not use the same memory in turn: two ranks could each wait for
        // the turn that the other has. Nor must those that passes may load from a window.
        let loads = encoding.is_none() && !copied;
        let (first, together) = (count, loads || order::in_flight_together(&order::actions(schedule, cuts)));
        for (reshape, cut) in schedule.reshapes.iter().zip(*cuts) {
            let of = |tile| Volumes {
                reshape: if together { first } else { count },
                via_host: copied,
                ..volumes(reshape, (cut, tile), comm.rank(), size, encoding)
            };
            all.extend((0..cut.count()).map(of));
            count += 1;
        }
    }
    let mut made = make(comm, &all, packets)?.into_iter();
    let share = |(_, cuts): &(&Schedule, &[Tiles])| {
        let tiles: usize = cuts.iter().map(Tiles::count).sum();
        Exchanges::new(made.by_ref().take(tiles).collect())
    };
    Ok(directions.iter().map(share).collect())
}

/// Do ranks load segments where their senders stored them?
pub(crate) fn has_remote_buffers(exchanges: &[Exchange]) -> bool {
    exchanges.iter().any(|exchange| exchange.buffers().remote.is_some())
}

/// Binds a schedule to this rank and its memory. `help`: whether all ranks can access the ends of the call, where ranks
/// help each other.
pub(crate) fn bind<T: Real, E: Executor<T>>(
    comm: &Comm,
    recipe: &Recipe,
    schedule: &Schedule,
    (kind, memory_policy, strides, help): (CallKind, MemoryPolicy, &EndStrides, Option<bool>),
    (cuts, exchanges): (&[Tiles], &Exchanges),
    binder: &mut E::Binder,
) -> Result<VariantOf<T, E>> {
    let CallKind { direction, in_place, .. } = kind;
    let (rank, size) = (comm.rank(), recipe.precision.bytes());
    let cuts = &tiles::fit(schedule, cuts, in_place);
    let actions = order::actions(schedule, cuts);
    let mut cycle = BufferCycle::new(schedule, &actions);
    if has_remote_buffers(exchanges) {
        // Only at the end of a call does a sender know that all was loaded.
        cycle.buffers[0] = schedule.reshapes.len().max(1);
    }
    let encoding = E::encoding(binder).cloned();
    let buffers: Vec<_> = exchanges.iter().map(|exchange| exchange.buffers()).collect();
    let context = &RankContext {
        rank,
        ranks: comm.size(),
        batch: recipe.batch,
        scalar_bytes: size,
        memory: recipe.memory,
        in_place,
        strides,
        memory_policy,
        halved: recipe.padded_axis(),
        packed_rows: memory_policy.packed_rows(direction),
        cuts,
        cycle,
        exchanges: &buffers,
        encoding: encoding.as_ref(),
    };
    let layout = context.workspace(schedule);
    let [input, output] = [(ArraySlot::In, &schedule.input), (ArraySlot::Out, &schedule.output)]
        .map(|(slot, state)| context.geometry(slot, state, rank));
    let tiles = || {
        let tiles = |(reshape, cut): (usize, &Tiles)| (0..cut.count()).map(move |tile| (reshape, tile));
        cuts.iter().enumerate().flat_map(tiles)
    };
    let by_tile = |(reshape, tile): (usize, usize)| {
        bytes_received(&schedule.reshapes[reshape], (&cuts[reshape], tile), rank, size)
    };
    let received: Vec<u64> = tiles().map(by_tile).collect();
    let reshape_of: Vec<usize> = tiles().map(|(reshape, _)| reshape).collect();
    let bytes_of = |number: usize| {
        reshape_of.iter().zip(&received).filter(|(of, _)| **of == number).map(|(_, bytes)| bytes).sum()
    };
    let named = |(number, reshape): (usize, &Reshape)| (reshape.name.clone(), bytes_of(number));
    let mut variant = Variant {
        passes: Vec::new(),
        steps: Vec::new(),
        last_pass: last_pass(schedule),
        reshapes: schedule.reshapes.iter().enumerate().map(named).collect(),
        received,
        codings: Vec::new(),
        reshape_of,
        coding_polls: cuts.iter().flat_map(|cut| cut.polls).max().unwrap_or(0),
        gains: Gains::new(recipe, direction),
        plain_bytes: if encoding.is_some() { 0 } else { bytes_sent(recipe, direction, rank) },
        input,
        output,
        strided: [0, 1].map(|end| strides.is_strided(end, rank)),
        real: [schedule.input.real, schedule.output.real],
        exchanges: exchanges.clone(),
        layout,
    };
    if let Some(work) = E::bind_whole(binder, schedule, context, [&input, &output])? {
        let transforms = || schedule.passes.iter().flat_map(|pass| &pass.transforms);
        let volume = (input.scalars(recipe.batch) + output.scalars(recipe.batch)) * size;
        variant.passes.push(BoundPass {
            name: name(transforms()),
            bytes: (volume * transforms().count()) as u64,
            flops: flops(transforms(), input.part) * recipe.batch as f64,
            is_copy: false,
            work,
        });
        let (reshapes, part) = ([None; 2], PassPart::default());
        variant.steps.push(BoundStep::Run { bound: 0, pass: 0, part, reshapes, polls: 0 });
        variant.last_pass = Some(0);
        // There are no arrays between passes.
        (variant.layout.arrays, variant.layout.total) = (0, 0);
        return Ok(variant);
    }
    let most_polls = cuts.iter().flat_map(|cut| cut.polls).max().unwrap_or(0);
    let helped = |at: usize| {
        help.is_some_and(|exposed_ends| E::HELPS && can_help(schedule, &actions, at, exposed_ends))
    };
    for (at, &action) in actions.iter().enumerate() {
        match action {
            Action::Barrier => variant.steps.push(BoundStep::Barrier),
            Action::Run { pass, part } => {
                let bound = variant.passes.len();
                let ends = [&schedule.passes[pass].from, &schedule.passes[pass].to];
                let reshapes = ends.map(|end| match end {
                    End::Message(number) => Some(*number),
                    _ => None,
                });
                // It loads from the first reshape, which it follows, and stores to the second one.
                let [after, before] = reshapes.map(|reshape| reshape.map(|number| &cuts[number]));
                let polls = after.map(|cut| cut.polls[1]).max(before.map(|cut| cut.polls[0]));
                let polls = polls.unwrap_or(most_polls);
                let sub_tile = before.and_then(|cut| cut.sub_tiles[0]);
                let sub_tile = sub_tile.or(after.and_then(|cut| cut.sub_tiles[1]));
                let place = (context, schedule, &variant.layout);
                let part = (part, sub_tile);
                let mut bound_pass = bind_pass::<T, E>(place, &schedule.passes[pass], part, binder)?;
                if helped(at) {
                    let counter = |rank: usize| pass * comm.size() + rank;
                    let bind_peer = |peer: usize| {
                        let context = &RankContext { rank: peer, ..*context };
                        let place = (context, schedule, &variant.layout);
                        let bound = bind_pass::<T, E>(place, &schedule.passes[pass], part, binder)?;
                        Ok((counter(peer), bound.work))
                    };
                    let peers = helped_by(rank, comm.size()).map(bind_peer).collect::<Result<_>>()?;
                    E::share_pass(&mut bound_pass.work, counter(rank), peers);
                }
                variant.passes.push(bound_pass);
                let part = part.0;
                variant.steps.push(BoundStep::Run { bound, pass, part, reshapes, polls });
            }
            Action::Start { reshape, tile: number } | Action::Wait { reshape, tile: number } => {
                let tile = TileRef { exchange: context.exchange(reshape, number), reshape, tile: number };
                let place = |side| context.tile_at(&variant.layout, reshape, number, rank, side);
                let (buffers, blocking) = ([0, 1].map(place), cuts[reshape].count() == 1);
                // Exchanges that encode while they send need no steps for it.
                let coded = encoding.is_some() && !exchanges[tile.exchange].buffers().encodes;
                match action {
                    Action::Start { .. } => {
                        variant.steps.extend(coded.then_some(BoundStep::Encode(tile)));
                        variant.steps.push(BoundStep::Start { tile, buffers, blocking });
                    }
                    _ => {
                        variant.steps.push(BoundStep::Wait { tile, buffers, blocking });
                        variant.steps.extend(coded.then_some(BoundStep::Decode(tile)));
                    }
                }
            }
        }
    }
    if let (Some(encoding), false) = (&encoding, exchanges.is_empty()) {
        let mut coding = |(reshape, tile): (usize, usize)| {
            let bytes = volumes(&schedule.reshapes[reshape], (&cuts[reshape], tile), rank, size, None).to;
            let plain =
                bytes.iter().enumerate().map(|(peer, &bytes)| match encoding.is_encoded(rank, peer) {
                    true => 0,
                    false => bytes,
                });
            let (plain, layout) = (plain.collect(), &variant.layout);
            let tile = ReshapeTile { reshape: &schedule.reshapes[reshape], index: reshape, tile };
            let tile = TileToCode { context, layout, tile, encoding, plain };
            Some(E::bind_coding(binder, tile))
        };
        let codings = tiles().map(&mut coding).collect();
        variant.codings = codings;
    }
    Ok(variant)
}

/// Whether ranks can help each other with a pass: they come to it after a barrier and leave it to one (calls begin and end
/// with one), all can access its ends, and it does nothing that only its own rank can do.
fn can_help(schedule: &Schedule, actions: &[Action], at: usize, exposed_ends: bool) -> bool {
    let Action::Run { pass, part } = actions[at] else { return false };
    let is_barrier = |at: Option<usize>| {
        at.and_then(|at| actions.get(at)).is_none_or(|action| matches!(action, Action::Barrier))
    };
    let reached = |end: &End| match end {
        End::Own(ArraySlot::Work(_), _) | End::Peers(ArraySlot::Work(_), _) => true,
        End::Own(..) | End::Peers(..) => exposed_ends,
        End::Message(_) => false,
    };
    let pass = &schedule.passes[pass];
    let is_called = |transform: &AxisTransform| {
        transform.fused_op.as_ref().is_some_and(|op| matches!(op.op, PointwiseOp::Called))
    };
    part == PassPart::default()
        && is_barrier(at.checked_sub(1))
        && is_barrier(Some(at + 1))
        && [&pass.from, &pass.to].into_iter().all(reached)
        && !pass.transforms.iter().any(is_called)
}

/// The ranks that a rank helps: a few, so that planning stays short, at distances that differ.
fn helped_by(rank: usize, ranks: usize) -> impl Iterator<Item = usize> {
    (0..MOST_HELPED)
        .map(|power| 1 << power)
        .take_while(move |&step| step < ranks)
        .map(move |step| (rank + step) % ranks)
}

/// The most ranks that a rank helps.
const MOST_HELPED: u32 = 4;

/// The pass that applies the scale of a call: the last one. One that only copies work arrays to their place, its own or those
/// of other ranks, leaves it to the transform before: bits are those of a call without it, and kernels scale for nothing.
fn last_pass(schedule: &Schedule) -> Option<usize> {
    let last = schedule.passes.len().checked_sub(1)?;
    let is_work = |end: &End| {
        matches!(end, End::Own(ArraySlot::Work(_), _)) || matches!(end, End::Peers(ArraySlot::Work(_), _))
    };
    let copies = |pass: &Pass| pass.transforms.is_empty() && is_work(&pass.from);
    let before = last.checked_sub(1).filter(|&before| !schedule.passes[before].transforms.is_empty());
    Some(before.filter(|_| copies(&schedule.passes[last])).unwrap_or(last))
}

fn bind_pass<T: Real, E: Executor<T>>(
    (context, schedule, layout): (&RankContext<'_>, &Schedule, &WorkspaceLayout),
    pass: &Pass,
    (part, sub_tile): (PassPart, Option<[usize; 2]>),
    binder: &mut E::Binder,
) -> Result<BoundPass<E::Work>> {
    let [arrive, leave] = [&pass.arrive, &pass.leave]
        .map(|state| context.part_of(schedule, pass, part, &state.layout.boxes()[context.rank]));
    let arrays = context.arrays(part.batch_chunk);
    let end = |sending: bool| {
        let tile = if sending { part.to } else { part.from };
        MessageEnd { sending, batch_chunk: part.batch_chunk, tile }
    };
    let from = context.pieces(schedule, layout, &pass.from, (&arrive, &arrays), end(false));
    let to = context.pieces(schedule, layout, &pass.to, (&leave, &arrays), end(true));
    let scalars = |part: &Box3, real: bool| part.volume() * width(real) * arrays.len();
    let bytes =
        (scalars(&arrive, pass.arrive.real) + scalars(&leave, pass.leave.real)) * context.scalar_bytes;
    let flops = flops(pass.transforms.iter(), arrive) * arrays.len() as f64;
    let work = E::bind_pass(binder, &PassEnds { context, pass, arrive, leave, arrays, from, to, sub_tile })?;
    let is_copy = pass.transforms.is_empty();
    let name = if is_copy { COPY.into() } else { name(pass.transforms.iter()) };
    Ok(BoundPass { name, bytes: bytes as u64, flops, is_copy, work })
}

fn name<'a>(transforms: impl Iterator<Item = &'a AxisTransform>) -> String {
    transforms.map(|transform| transform.name.as_str()).collect::<Vec<_>>().join(" + ")
}

/// The operations of transforms of a box, one after the other.
fn flops<'a>(transforms: impl Iterator<Item = &'a AxisTransform>, mut now: Box3) -> f64 {
    let count = |transform: &AxisTransform| {
        let part = transform.lines_in(&now);
        let lines = part.volume() as f64 / part.shape()[transform.axis].max(1) as f64;
        now = transform.after(&now);
        let n = transform.spec.n as f64;
        let half = match transform.spec.kind {
            LineKind::Forward | LineKind::Backward | LineKind::R2r { complex: true, .. } => 1.0,
            LineKind::RealForward | LineKind::RealBackward | LineKind::R2r { .. } => 0.5,
        };
        let returns = matches!(transform.fused_op, Some(FusedOp { position: OpPosition::Between(_), .. }));
        let times = if returns { 2.0 } else { 1.0 };
        times * half * 5.0 * n * n.log2() * lines
    };
    transforms.map(count).sum()
}

/// The bytes that a rank sends to others in all reshapes of one direction, where nothing is encoded.
fn bytes_sent(recipe: &Recipe, direction: Direction, rank: usize) -> u64 {
    let mut bytes = 0;
    for stage in stages(recipe, direction, false) {
        if let recipe::Step::Reshape { from, to } = &stage.step {
            bytes +=
                from.sent(to, rank)[0] * width(stage.before.real) * recipe.batch * recipe.precision.bytes();
        }
    }
    bytes as u64
}

/// The bytes that a rank receives from others in a tile; a scalar has `size` bytes.
fn bytes_received(reshape: &Reshape, (cut, tile): (&Tiles, usize), rank: usize, size: usize) -> u64 {
    let (from, own) = (reshape.from.boxes(), &reshape.to.boxes()[rank]);
    let others = reshape.peers(rank, false).into_iter().filter(|&source| source != rank);
    let elements: usize = others.map(|source| cut.between(&from[source], own, tile).volume()).sum();
    (elements * width(reshape.real) * cut.arrays(tile).len() * size) as u64
}
