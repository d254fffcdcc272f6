//! `ferrier model --search`: what other layouts, exchanges, tiles and codecs would gain.

use std::path::Path;

use ferrier::{Choice, Decomposition, Overlap, Tiling};
use ferrier_bench::table::{digits, left_columns};
use ferrier_model::{Cluster, ExchangeName, Job, JobOptions, Modelled};
use serde::Serialize;

use crate::arguments::{JobArgs, LayoutName, UserShape, codec_of};
use crate::failure::Outcome;
use crate::print;

/// Variants that are listed.
const LISTED: usize = 16;
/// Rank grids that are tried, the most square ones.
const GRIDS: usize = 4;
/// Parts of the longest axis that tiles are tried for.
const TILES: [usize; 2] = [4, 16];
/// Tolerances that are tried if none is given.
const TOLERANCES: [f64; 3] = [1e-10, 1e-6, 1e-3];

/// A variant of a job; the keys are part of the contract.
#[derive(Serialize)]
struct Variant {
    /// What differs from the job as it was given.
    change: String,
    /// Time of the job as it was given over that of the variant.
    gain: f64,
    #[serde(flatten)]
    modelled: Modelled,
}

/// Predicts the variants and prints them, the fastest first.
///
/// # Errors
/// What the machine or the problem does not allow.
pub fn run(
    args: &JobArgs,
    cluster: &Cluster,
    shape: &UserShape,
    ranks: usize,
    json: Option<&Path>,
) -> Outcome {
    let base = args.job(cluster, shape, ranks)?.model();
    let options = args.options(cluster, shape)?;
    let mut found = vec![Variant { change: "as given".into(), gain: 1.0, modelled: base.clone() }];
    let mut layouts = vec![args.out_layout];
    if args.out_layout != LayoutName::Best {
        layouts.push(LayoutName::Best);
    }
    for layout in layouts {
        let args = JobArgs { out_layout: layout, ..args.clone() };
        let problem = args.problem(shape, ranks)?;
        let output =
            if layout == LayoutName::Best { "output where the last transform leaves it" } else { "" };
        for (decision, job) in jobs(cluster, &problem, &args, ranks, &options, shape) {
            for (codec, job) in coded(&args, &problem, job)? {
                let parts: Vec<&str> =
                    [output, &decision, &codec].into_iter().filter(|part| !part.is_empty()).collect();
                let modelled = job.model();
                let gain = base.total_ms / modelled.total_ms;
                found.push(Variant { change: parts.join(", "), gain, modelled });
            }
        }
    }
    found[1..].sort_by(|a, b| a.modelled.total_ms.total_cmp(&b.modelled.total_ms));
    found.dedup_by(|a, b| a.modelled == b.modelled);
    print::report(json, &found, &text(&found, cluster, shape, ranks))
}

/// The jobs with each exchange, rank grid and tiles that fit.
fn jobs<'a>(
    cluster: &'a Cluster,
    problem: &ferrier::Problem,
    args: &JobArgs,
    ranks: usize,
    given: &JobOptions,
    shape: &UserShape,
) -> Vec<(String, Job<'a>)> {
    let exchanges: Vec<ExchangeName> = match given.exchange {
        Some(name) => vec![name],
        None => ExchangeName::ALL.to_vec(),
    };
    let longest = shape.lengths().iter().copied().max().unwrap_or(1);
    let mut all = Vec::new();
    for (grid, choice) in rank_grids(&given.choice, ranks) {
        let mut designed: Vec<Job<'_>> = Vec::new();
        for &exchange in &exchanges {
            // Exchanges that move data alike have the same layouts.
            let alike = designed.iter().find_map(|job| job.clone().with_exchange(exchange));
            let options = given.clone().exchange(Some(exchange)).choice(choice.clone());
            let job =
                match alike.map_or_else(|| Job::new(cluster, problem, args.precision, ranks, &options), Ok) {
                    Ok(job) => job,
                    // What does not fit is no variant.
                    Err(_) => continue,
                };
            let mut words = vec![job.exchange.name().to_string()];
            words.extend(grid.clone());
            all.push((words.join(", "), job.clone()));
            let tiles = if given.choice.overlap.is_some() { &[][..] } else { &TILES };
            for tile in tiles.iter().map(|parts| (longest / parts).max(1)) {
                let tiled = job.clone().with_overlap(Overlap::uniform(Tiling::new(tile)));
                all.push((format!("{}, tiles of {tile}", words.join(", ")), tiled));
            }
            designed.push(job);
        }
    }
    all
}

/// What the planner decides, slabs, pencils, and the rank grids that are about as square as one can be.
fn rank_grids(given: &Choice, ranks: usize) -> Vec<(Option<String>, Choice)> {
    let mut all = vec![(None, given.clone())];
    for decomposition in [Decomposition::Slab, Decomposition::Pencil] {
        let choice = given.clone().decomposition(decomposition);
        all.push((Some(format!("{decomposition:?}").to_lowercase()), choice));
    }
    let divisors = (2..ranks).filter(|p| ranks.is_multiple_of(*p));
    let mut grids: Vec<[usize; 2]> = divisors.map(|p| [p, ranks / p]).collect();
    grids.sort_by_key(|&[p, q]| (p.max(q) / p.min(q), p));
    for [p, q] in grids.into_iter().take(GRIDS) {
        all.push((Some(format!("grid {p}x{q}")), given.clone().grid([p, q])));
    }
    all
}

/// The job with raw messages and with codecs.
fn coded<'a>(args: &JobArgs, problem: &ferrier::Problem, job: Job<'a>) -> Outcome<Vec<(String, Job<'a>)>> {
    let given = args.codec.as_deref();
    if given.is_some() || args.tolerance.is_some() {
        let codec = codec_of(problem, given, &job.recipe)?;
        return Ok(vec![(String::new(), codec.map_or(job.clone(), |codec| job.clone().with_codec(codec)))]);
    }
    let mut all = vec![(String::new(), job.clone())];
    for tolerance in TOLERANCES {
        let problem = problem.clone().tolerance(tolerance);
        // A tolerance below the rounding errors is no variant.
        let Ok(Some(codec)) = codec_of(&problem, None, &job.recipe) else { continue };
        all.push((format!("tolerance {tolerance:e}"), job.clone().with_codec(codec)));
    }
    Ok(all)
}

fn text(found: &[Variant], cluster: &Cluster, shape: &UserShape, ranks: usize) -> String {
    let row = |variant: &Variant| {
        let Modelled { total_ms, gflops, .. } = variant.modelled;
        vec![variant.change.clone(), digits(total_ms), digits(gflops), digits(variant.gain)]
    };
    let rows: Vec<_> = found.iter().take(LISTED).map(row).collect();
    let mut out = format!("{shape} on {ranks} ranks of {}\n\n", cluster.name);
    out += &left_columns(&["variant", "ms", "Gflop/s", "gain"], &rows);
    let exact = found.iter().skip(1).find(|variant| !variant.change.contains("tolerance"));
    let lossy = found.iter().skip(1).find(|variant| variant.change.contains("tolerance"));
    for (what, variant) in [("without loss", exact), ("with a tolerance", lossy)] {
        if let Some(variant) = variant.filter(|variant| variant.gain > 1.005) {
            out += &format!(
                "\n{what} you would gain a factor of {} by: {}",
                digits(variant.gain),
                variant.change
            );
        }
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use ferrier::exchange::EXCHANGES;
    use ferrier_model::ExchangeName;

    /// The model knows the exchanges of the library.
    #[test]
    fn exchanges_have_the_names_of_the_library() {
        let known: Vec<_> = EXCHANGES.iter().map(|entry| entry.name).collect();
        assert_eq!(ExchangeName::ALL.map(ExchangeName::name).to_vec(), known);
    }
}
