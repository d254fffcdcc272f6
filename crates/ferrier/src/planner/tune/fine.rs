//! Knobs for a choice that is nearly good: what each reshape of each direction
//! can have to itself, and the blocks that stages go by.

use super::knobs::{Site, longest};
use crate::{Choice, Tiling};
use ferrier_search::{Parameter, Value};

/// Names for at most so many reshapes; what comes after goes by the last.
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

/// Lines in a block, around what kernels like.
const BLOCKS: [usize; 2] = [8, 128];
/// Where the search for blocks starts, whatever the kernel likes.
const BLOCK: usize = 32;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fine {
    Reshape { backward: bool, number: usize, of: usize, field: Field },
    Block,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Field {
    Tile,
    Window,
    Polls,
}

/// All of them, where there are so many reshapes in a direction.
pub(super) fn all(site: &Site<'_>, given: &Choice, reshapes: usize) -> Vec<(Fine, Parameter)> {
    let mut list = Vec::new();
    let of = reshapes.min(NAMES[0].len());
    for backward in [false, true] {
        for (number, names) in NAMES[usize::from(backward)].iter().enumerate().take(of) {
            let here = tiling(given, backward, number);
            let [tile, window, polls] = *names;
            let longest = longest(site.problem);
            let start = if here.tile == 0 { longest } else { here.tile };
            let fine = |field| Fine::Reshape { backward, number, of, field };
            list.push((fine(Field::Tile), Parameter::log_scale(tile, 1, longest).from(start)));
            list.push((fine(Field::Window), Parameter::log_scale(window, 1, 8).from(here.window)));
            list.push((fine(Field::Polls), Parameter::log_scale(polls, 0, 128).from(here.polls)));
        }
    }
    let start = given.block.unwrap_or(BLOCK);
    list.push((Fine::Block, Parameter::log_scale("block", BLOCKS[0], BLOCKS[1]).from(start)));
    list
}

/// The tiles of a reshape.
fn tiling(choice: &Choice, backward: bool, number: usize) -> Tiling {
    let Some(overlap) = &choice.overlap else { return Tiling::default() };
    let list = if backward { &overlap.backward } else { &overlap.forward };
    list.get(number).or(list.last()).copied().unwrap_or_default()
}

impl Fine {
    /// Gives the field a value.
    pub fn set(&self, choice: &mut Choice, value: &Value) {
        let Fine::Reshape { backward, number, of, field } = *self else {
            choice.block = Some(value.number());
            return;
        };
        let mut all: Vec<Tiling> = (0..of).map(|number| tiling(choice, backward, number)).collect();
        match field {
            Field::Tile => all[number].tile = value.number(),
            Field::Window => all[number].window = value.number(),
            Field::Polls => all[number].polls = value.number(),
        }
        let overlap = choice.overlap.get_or_insert_default();
        *if backward { &mut overlap.backward } else { &mut overlap.forward } = all;
    }
}
