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

/// The most tiles in flight, and polls in a pass.
pub(super) const MOST_WINDOW: usize = 8;
pub(super) const MOST_POLLS: usize = 4096;

/// Bounds of the lines in a block.
const BLOCKS: [usize; 2] = [8, 128];
/// Start of the search for blocks.
const BLOCK: usize = 32;

/// Sets a field of a choice.
pub(super) type Setter = Box<dyn Fn(&mut Choice, &Value)>;

/// All of them, for this number of reshapes in each direction.
pub(super) fn all(context: &TuneContext<'_>, given: &Choice, reshapes: usize) -> Vec<(Setter, Parameter)> {
    let mut list: Vec<(Setter, Parameter)> = Vec::new();
    let reshapes = reshapes.min(NAMES[0].len());
    let longest = longest(context.problem);
    for backward in [false, true] {
        for (number, [tile, window, polls]) in
            NAMES[usize::from(backward)].into_iter().enumerate().take(reshapes)
        {
            let here = tiling(given, backward, number);
            let start = if here.tile == 0 { longest } else { here.tile };
            let mut add = |parameter: Parameter, field: fn(&mut Tiling) -> &mut usize| {
                let set = move |choice: &mut Choice, value: &Value| {
                    let mut all: Vec<_> = (0..reshapes).map(|at| tiling(choice, backward, at)).collect();
                    *field(&mut all[number]) = value.number();
                    let overlap = choice.overlap.get_or_insert_default();
                    *if backward { &mut overlap.backward } else { &mut overlap.forward } = all;
                };
                list.push((Box::new(set), parameter));
            };
            add(Parameter::log_scale(tile, 1, longest).from(start), |tiling| &mut tiling.tile);
            add(Parameter::linear(window, 1, MOST_WINDOW).from(here.window), |tiling| &mut tiling.window);
            add(Parameter::log_scale(polls, 0, MOST_POLLS).from(here.polls), |tiling| &mut tiling.polls);
        }
    }
    let block = Parameter::log_scale("block", BLOCKS[0], BLOCKS[1]).from(given.block.unwrap_or(BLOCK));
    list.push((Box::new(|choice, value| choice.block = Some(value.number())), block));
    list
}

/// The tiling of a reshape.
fn tiling(choice: &Choice, backward: bool, number: usize) -> Tiling {
    let Some(overlap) = &choice.overlap else { return Tiling::default() };
    let list = if backward { &overlap.backward } else { &overlap.forward };
    list.get(number).or(list.last()).copied().unwrap_or_default()
}
