//! Tunables of single reshapes, for the last stage of a search: tile, window and polls of each reshape in each
//! direction; and the number of lines in a block.

use super::context::{TuneContext, longest};
use crate::{Choice, Tiling};
use ferrier_search::{Parameter, Value};

/// Parameter names. Reshapes after the fourth use the values of the fourth.
const NAMES: [[[&str; 3]; 4]; 2] = [
    [
        ["forward tile 1", "forward window 1", "forward polls 1"],
        ["forward tile 2", "forward window 2", "forward polls 2"],
        ["forward tile 3", "forward window 3", "forward polls 3"],
        ["forward tile 4", "forward window 4", "forward polls 4"],
    ],
    [
        ["backward tile 1", "backward window 1", "backward polls 1"],
        ["backward tile 2", "backward window 2", "backward polls 2"],
        ["backward tile 3", "backward window 3", "backward polls 3"],
        ["backward tile 4", "backward window 4", "backward polls 4"],
    ],
];

/// Bounds of the lines in a block.
const BLOCKS: [usize; 2] = [8, 128];
/// Start of the search for blocks.
const BLOCK: usize = 32;

/// A field that the last stage tunes.
#[derive(Clone, Copy, Debug)]
pub(super) enum PerReshape {
    Tiling { backward: bool, number: usize, of: usize, field: TilingField },
    Block,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum TilingField {
    Tile,
    Window,
    Polls,
}

/// All of them, for this number of reshapes in each direction.
pub(super) fn all(
    context: &TuneContext<'_>,
    given: &Choice,
    reshapes: usize,
) -> Vec<(PerReshape, Parameter)> {
    let mut list = Vec::new();
    let of = reshapes.min(NAMES[0].len());
    for backward in [false, true] {
        for (number, names) in NAMES[usize::from(backward)].iter().enumerate().take(of) {
            let here = tiling(given, backward, number);
            let [tile, window, polls] = *names;
            let longest = longest(context.problem);
            let start = if here.tile == 0 { longest } else { here.tile };
            let entry = |field| PerReshape::Tiling { backward, number, of, field };
            list.push((entry(TilingField::Tile), Parameter::log_scale(tile, 1, longest).from(start)));
            list.push((entry(TilingField::Window), Parameter::log_scale(window, 1, 8).from(here.window)));
            list.push((entry(TilingField::Polls), Parameter::log_scale(polls, 0, 128).from(here.polls)));
        }
    }
    let start = given.block.unwrap_or(BLOCK);
    list.push((PerReshape::Block, Parameter::log_scale("block", BLOCKS[0], BLOCKS[1]).from(start)));
    list
}

/// The tiling of a reshape.
fn tiling(choice: &Choice, backward: bool, number: usize) -> Tiling {
    let Some(overlap) = &choice.overlap else { return Tiling::default() };
    let list = if backward { &overlap.backward } else { &overlap.forward };
    list.get(number).or(list.last()).copied().unwrap_or_default()
}

impl PerReshape {
    /// Sets the field.
    pub fn set(&self, choice: &mut Choice, value: &Value) {
        let PerReshape::Tiling { backward, number, of, field } = *self else {
            choice.block = Some(value.number());
            return;
        };
        let mut all: Vec<Tiling> = (0..of).map(|number| tiling(choice, backward, number)).collect();
        match field {
            TilingField::Tile => all[number].tile = value.number(),
            TilingField::Window => all[number].window = value.number(),
            TilingField::Polls => all[number].polls = value.number(),
        }
        let overlap = choice.overlap.get_or_insert_default();
        *if backward { &mut overlap.backward } else { &mut overlap.forward } = all;
    }
}
