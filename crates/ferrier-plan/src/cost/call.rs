//! What one rank does in each pass and exchange of a call.

use super::build::{PassDomain, PassEnd, pass_shape};
use super::constants::Constants;
use super::exchange::ExchangeShape;
use super::machine::Machine;
use super::pass::PassShape;
use super::setting::Setting;
use crate::geometry::{Base, Geometry, Piece, width};
use crate::layout::Box3;
use crate::lowering::{EndStrides, RankContext};
use crate::order::{BufferCycle, PassPart};
use crate::recipe::{Distribution, Recipe};
use crate::schedule::{
    ArraySlot, AxisTransform, Direction, End, Pass, Schedule, ScheduleOptions, better_aside, may_fuse,
    schedule, tilings,
};
use crate::tiles::{self, Tiles};

/// The schedule of `forward` or `backward` of a recipe, and how its reshapes are cut.
pub fn scheduled(
    recipe: &Recipe,
    direction: Direction,
    in_place: bool,
    setting: &Setting<'_>,
) -> (Schedule, Vec<Tiles>) {
    let fuse = |transforms: &[AxisTransform], state: &Distribution| {
        may_fuse(recipe, (setting.plane_bytes, setting.threads), transforms, state)
    };
    let aside = |transform: &AxisTransform, state: &Distribution| {
        better_aside(recipe, (setting.plane_bytes, setting.threads), transform, state)
    };
    let tilings = tilings(recipe, direction);
    let options = ScheduleOptions {
        direction,
        in_place,
        alike: setting.strides.is_none_or(|strides| strides.are_alike(recipe)),
        with_operator: false,
        mechanism: setting.mechanism,
        exposed_ends: setting.exposed_ends,
        tilings: &tilings,
        fuse: &fuse,
        aside: &aside,
    };
    let schedule = schedule(recipe, options);
    let batch_chunks = match recipe.overlap.arrays {
        0 => 1,
        arrays => recipe.batch.div_ceil(arrays).max(1),
    };
    let cuts = tiles::cut(&schedule, &tilings, recipe.batch, batch_chunks);
    let cuts = tiles::fit(&schedule, &cuts, in_place);
    (schedule, cuts)
}

/// The passes and exchanges of a call, rank by rank.
#[derive(Clone, Copy, Debug)]
pub struct CallShapes<'a> {
    /// The recipe.
    pub recipe: &'a Recipe,
    /// A schedule of it.
    pub schedule: &'a Schedule,
    /// The tiles of its reshapes.
    pub cuts: &'a [Tiles],
    /// The direction, and whether input and output are one array.
    pub kind: (Direction, bool),
    /// The placement of the ranks.
    pub setting: &'a Setting<'a>,
    /// The machine.
    pub machine: &'a Machine,
}

impl CallShapes<'_> {
    fn strides(&self) -> EndStrides {
        self.setting.strides.map_or_else(EndStrides::default, |strides| strides.of(self.kind.0))
    }

    fn context<'a>(&'a self, rank: usize, strides: &'a EndStrides) -> RankContext<'a> {
        let (direction, in_place) = self.kind;
        RankContext {
            rank,
            ranks: self.recipe.ranks(),
            batch: self.recipe.batch,
            scalar_bytes: self.recipe.precision.bytes(),
            memory: self.recipe.memory,
            in_place,
            strides,
            memory_policy: self.setting.memory_policy,
            halved: self.recipe.padded_axis(),
            packed_rows: self.setting.memory_policy.packed_rows(direction),
            cuts: self.cuts,
            cycle: BufferCycle { buffers: [1; 2], local: 1 },
            exchanges: &[],
            encoding: None,
        }
    }

    /// Bytes of an element of all arrays in a reshape.
    pub fn element_bytes(&self, reshape: usize) -> usize {
        width(self.schedule.reshapes[reshape].real) * self.recipe.precision.bytes() * self.recipe.batch
    }

    /// What a rank sends and receives in a reshape, all tiles together.
    pub fn exchange(&self, rank: usize, reshape: usize) -> ExchangeShape {
        let element = self.element_bytes(reshape);
        let reshape = &self.schedule.reshapes[reshape];
        ExchangeShape::new(&reshape.from, &reshape.to, element, rank, self.setting)
    }

    /// Seconds in which a rank encodes or decodes so many bytes at this speed, while the ranks that share its cores do the
    /// same.
    pub fn coding_seconds(&self, rank: usize, bytes: f64, bytes_s: f64) -> f64 {
        let threads = self.setting.ranks_on_host(rank, self.recipe.ranks()) * self.setting.threads;
        bytes / bytes_s * (threads as f64 / self.machine.cores as f64).max(1.0)
    }

    /// Seconds in which a rank certifies the result of encoded messages: the norm of its output, as fast as a codec, and a
    /// sum over all ranks. None without encoding.
    pub fn certificate_seconds(&self, rank: usize) -> f64 {
        let Some(last) = self.schedule.passes.last().filter(|_| self.setting.coded) else { return 0.0 };
        let Constants { decode_bytes_s, wire_latency_s, .. } = self.machine.constants;
        let elements = last.leave.layout.boxes()[rank].volume() * self.recipe.batch;
        let bytes = (elements * width(last.leave.real) * self.recipe.precision.bytes()) as f64;
        self.coding_seconds(rank, bytes, decode_bytes_s) + wire_latency_s
    }

    /// The boxes of a rank before and after a part of a pass.
    pub fn boxes(&self, rank: usize, number: usize, part: PassPart) -> [Box3; 2] {
        let strides = EndStrides::default();
        let (context, pass) = (self.context(rank, &strides), &self.schedule.passes[number]);
        [&pass.arrive, &pass.leave]
            .map(|state| context.part_of(self.schedule, pass, part, &state.layout.boxes()[rank]))
    }

    /// What a rank does in a part of a pass.
    pub fn pass(&self, rank: usize, number: usize, part: PassPart) -> PassShape {
        let strides = self.strides();
        let (context, pass) = (&self.context(rank, &strides), &self.schedule.passes[number]);
        let [arrive, leave] = self.boxes(rank, number, part);
        let from = self.pieces(context, &pass.from, &arrive, false);
        let to = self.pieces(context, &pass.to, &leave, true);
        let domain = PassDomain {
            rank: context.rank,
            arrive,
            transforms: &pass.transforms,
            arrays: context.arrays(part.batch_chunk).len(),
            scalar_bytes: context.scalar_bytes,
            in_place: self.returns(pass),
            ranks_on_node: self.setting.busy_on_host(context.rank, &pass.arrive.layout),
        };
        let from = PassEnd { pieces: &from, real: pass.arrive.real };
        let to = PassEnd { pieces: &to, real: pass.leave.real };
        let node_bytes = self.array_bytes(rank) * domain.ranks_on_node as f64;
        PassShape { node_bytes, ..pass_shape(&domain, &from, &to, self.setting, self.machine) }
    }

    /// Bytes of all arrays that a call of a rank accesses: input, output, work arrays and message buffers.
    fn array_bytes(&self, rank: usize) -> f64 {
        let mut arrays: Vec<(ArraySlot, usize)> = Vec::new();
        let mut bytes = 0;
        let of = |array: &Distribution| array.layout.boxes()[rank].volume() * width(array.real);
        for end in self.schedule.passes.iter().flat_map(|pass| [&pass.from, &pass.to]) {
            match end {
                End::Own(slot, array) | End::Peers(slot, array) => {
                    let (slot, scalars) = (self.memory(*slot), of(array));
                    match arrays.iter_mut().find(|(known, _)| *known == slot) {
                        Some((_, known)) => *known = scalars.max(*known),
                        None => arrays.push((slot, scalars)),
                    }
                }
                End::Message(index) => {
                    let reshape = &self.schedule.reshapes[*index];
                    bytes += reshape.to.boxes()[rank].volume() * width(reshape.real);
                }
            }
        }
        bytes += arrays.iter().map(|(_, scalars)| scalars).sum::<usize>();
        (bytes * self.recipe.precision.bytes() * self.recipe.batch) as f64
    }

    /// The array that a slot is in this call.
    fn memory(&self, slot: ArraySlot) -> ArraySlot {
        match slot {
            ArraySlot::In if self.kind.1 => ArraySlot::Out,
            slot => slot,
        }
    }

    /// Whether lines are stored where they were loaded from.
    fn returns(&self, pass: &Pass) -> bool {
        match (&pass.from, &pass.to) {
            (End::Own(a, one), End::Own(b, two)) | (End::Peers(a, one), End::Peers(b, two)) => {
                self.memory(*a) == self.memory(*b) && one == two
            }
            _ => false,
        }
    }

    /// The pieces of memory at an end of a pass. Their offsets are not needed here.
    fn pieces(&self, context: &RankContext<'_>, end: &End, domain: &Box3, sending: bool) -> Vec<Piece> {
        let piece = |geometry: Geometry, rank: usize| {
            let region = geometry.part.intersect(domain);
            let Geometry { strides, batch, .. } = geometry;
            (!region.is_empty()).then_some(Piece {
                region,
                rank,
                base: Base::Work,
                offset: 0,
                strides,
                batch,
            })
        };
        let rank = context.rank;
        match end {
            End::Own(slot, array) => piece(context.geometry(*slot, array, rank), rank).into_iter().collect(),
            End::Peers(slot, array) => {
                let met = array.layout.intersections(domain).into_iter();
                met.filter_map(|(peer, _)| piece(context.geometry(*slot, array, peer), peer)).collect()
            }
            End::Message(index) => {
                let reshape = &self.schedule.reshapes[*index];
                let (own, theirs) = match sending {
                    true => (&reshape.from, &reshape.to),
                    false => (&reshape.to, &reshape.from),
                };
                let of = |(peer, both): (usize, Box3)| {
                    let region = both.intersect(domain);
                    let holder = if !sending && self.setting.remote_buffers { peer } else { rank };
                    (!region.is_empty())
                        .then(|| piece(Geometry::dense(region, reshape.to.order(), reshape.real), holder))?
                };
                theirs.intersections(&own.boxes()[rank]).into_iter().filter_map(of).collect()
            }
        }
    }
}
