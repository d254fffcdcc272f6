//! Tiles of reshapes: the exchange that they need, and how they are printed.

use ferrier::tune::{self, Limits, Options};
use ferrier::{Choice, Comm, Overlap, Problem, Real, Tiling, exchange};

use crate::agree::agree;
use crate::failure::{Outcome, fail};

/// If tiles are asked for, the choice with an exchange that sends messages. Collective.
///
/// # Errors
/// The chosen exchange sends no messages.
pub fn with_messages(comm: &Comm, choice: &Choice) -> Outcome<Choice> {
    let mut choice = choice.clone();
    if choice.overlap.is_none() {
        return Ok(choice);
    }
    let nodes = comm.node_count();
    let fits = match &choice.exchange {
        Some(name) if !exchange::find(name)?.sends_messages(nodes) => {
            let here = if nodes == 1 { " on one node" } else { "" };
            fail(format!("exchange {name} sends no messages{here}, so there is nothing to cut into tiles"))
        }
        _ => Ok(()),
    };
    agree(comm, fits)?;
    if nodes == 1 && choice.exchange.is_none() {
        choice.exchange = Some("all_to_allv".into());
    }
    Ok(choice)
}

/// Parameters that [`tuned_tiles`] searches.
const AUTO: [&str; 4] = ["tile", "window", "polls", "cut"];

/// The choice with tiles that are tuned in some runs, at most for three seconds; and the seconds that it took. On one
/// rank nothing is sent, and the choice stays as it is. Collective.
///
/// # Errors
/// Those of the library; an exchange that sends no messages.
pub fn tuned_tiles<T: Real>(comm: &Comm, problem: &Problem, choice: &Choice) -> Outcome<(Choice, f64)> {
    if comm.size() == 1 {
        return Ok((choice.clone(), 0.0));
    }
    let longest = problem.lengths().into_iter().max().unwrap_or(1);
    let start = Overlap::uniform(Tiling::new((longest / 16).max(1)));
    let start = with_messages(comm, &choice.clone().overlap(start))?;
    let limits = Limits { seconds: 3.0, trials: 24, ..Limits::default() };
    let options = Options::default().limits(limits).only(AUTO.to_vec()).refine(false);
    let found = tune::tune::<T>(comm, problem, &start, &options, &mut |_| ())?;
    Ok((found.choice, found.seconds))
}

/// The tiles of the forward reshapes; reshapes with the same tiles are listed once.
/// `ndim` is the number of axes that the user has.
pub fn overlap_text(overlap: &Overlap, ndim: usize) -> String {
    let mut tilings: Vec<String> = overlap.forward.iter().map(|tiling| tiling_text(tiling, ndim)).collect();
    tilings.dedup();
    let arrays =
        if overlap.arrays > 0 { format!(", {} arrays at once", overlap.arrays) } else { String::new() };
    tilings.join(" / ") + &arrays
}

/// The tiling of the first forward reshape under the names of the literature (Song and Hollingsworth, 2014). FFTy and
/// Pack are one pass here, and so are Unpack and FFTx: their polls are given once.
pub fn paper_parameters(overlap: &Overlap) -> Vec<(&'static str, usize)> {
    let tiling = overlap.forward.first().copied().unwrap_or_default();
    let ([pz, px], [uz, uy]) = (tiling.sub_before.unwrap_or([0, 1]), tiling.sub_after.unwrap_or([0, 1]));
    let after = tiling.polls_after.unwrap_or(tiling.polls);
    vec![
        ("T", tiling.tile),
        ("W", tiling.window),
        ("Px", px),
        ("Pz", pz),
        ("Uy", uy),
        ("Uz", uz),
        ("Fy+Fp", tiling.polls),
        ("Fu+Fx", after),
    ]
}

/// The same as text; a sub-tile whose lines the kernel chooses has no number.
pub fn paper_text(overlap: &Overlap) -> String {
    let value = |(name, value): (&str, usize)| match (name, value) {
        ("Pz" | "Uz", 0) => format!("{name} auto"),
        _ => format!("{name} {value}"),
    };
    paper_parameters(overlap).into_iter().map(value).collect::<Vec<_>>().join(", ")
}

/// Where the search of that paper starts: T = Nz/16, W = 2, sub-tiles of 8192 elements, F = p/2 in each of two steps.
pub fn paper_start([nx, ny, nz]: [usize; 3], ranks: usize) -> Tiling {
    let sub = |length: usize| {
        let lines = (8192 / length.max(1)).max(1);
        [(8192 / length.max(1) / lines).max(1), lines]
    };
    let tiling = Tiling::new((nz / 16).max(1)).window(2).polls(ranks / 2 * 2).polls_after(ranks / 2 * 2);
    tiling.sub_before(sub(ny)).sub_after(sub(nx))
}

/// Does anything overlap: more than one tile, or part of a batch at a time?
pub fn is_tiled(overlap: &Overlap) -> bool {
    overlap.arrays > 0 || overlap.forward.iter().any(|tiling| tiling.tile > 0)
}

fn tiling_text(tiling: &Tiling, ndim: usize) -> String {
    if tiling.tile == 0 {
        return "one tile".into();
    }
    let cut = tiling.cut.map_or(String::new(), |axis| format!(" along axis {}", axis + ndim - 3));
    let after = if tiling.after { "" } else { ", before the reshape only" };
    let polls_after = tiling.polls_after.map_or(String::new(), |polls| format!(" and {polls}"));
    let sub = |word: &str, block: Option<[usize; 2]>| {
        let lines = |lines: usize| if lines == 0 { "auto".into() } else { lines.to_string() };
        block.map_or(String::new(), |[side, planes]| format!(", {word} blocks of {} x {planes}", lines(side)))
    };
    let (before, behind) = (sub("sent", tiling.sub_before), sub("received", tiling.sub_after));
    let Tiling { tile, window, polls, .. } = tiling;
    format!("{tile}{cut}, window {window}, polls {polls}{polls_after}{before}{behind}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_printed_once() {
        assert_eq!(overlap_text(&Overlap::uniform(Tiling::default()), 3), "one tile");
        assert!(!is_tiled(&Overlap::uniform(Tiling::default())));
        let start = paper_start([256, 512, 640], 16);
        let text = paper_text(&Overlap::uniform(start));
        assert_eq!(text, "T 40, W 2, Px 16, Pz 1, Uy 32, Uz 1, Fy+Fp 16, Fu+Fx 16");
        let text = overlap_text(&Overlap::uniform(start.sub_after([0, 4])), 3);
        assert_eq!(text, "40, window 2, polls 16 and 16, sent blocks of 1 x 16, received blocks of auto x 4");
    }
}
