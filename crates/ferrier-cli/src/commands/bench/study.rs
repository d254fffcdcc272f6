//! `ferrier bench` with lists: every combination in one run, as one table with speed-up and efficiency.
//!
//! Lists are expanded in the words of the command line, before they are parsed: each combination is then checked as a
//! command of its own. Combinations that differ only in a choice of the planner are timed in turn.

use std::ffi::OsString;

use ferrier::DeviceSpec;
use ferrier_bench::contest::{BenchReport, Comparison, ContestResult};
use ferrier_bench::exchange_bench::{ExchangeRow, ExchangeStudy};
use ferrier_bench::study::{StudyReport, StudyRow, other_rows};
use indicatif::ProgressBar;

use super::args::BenchArgs;
use super::{contest, exchanges};
use crate::arguments::{CommonArgs, UserShape, setup};
use crate::failure::{Failure, Outcome, fail};
use crate::session::Session;
use crate::{cuda, print};

/// Options that may be lists and that a whole run has in common.
const OF_RUNS: [&str; 17] = [
    "--ranks",
    "--nodes",
    "--threads",
    "--wire",
    "--precision",
    "--kind",
    "--in-layout",
    "--out-layout",
    "--in-grid",
    "--out-grid",
    "--in-order",
    "--out-order",
    "--batch",
    "--tolerance",
    "--device",
    "--keep-sphere",
    "--keep",
];
/// Options that may be lists and are choices of the planner: plans that differ in them are timed in turn.
const OF_PLANS: [&str; 14] = [
    "--exchange",
    "--codec",
    "--kernel",
    "--compress",
    "--decomposition",
    "--grid",
    "--axis-order",
    "--fuse",
    "--reorder",
    "--staging",
    "--stream",
    "--inner-ranks",
    "--progress",
    "--block",
];
/// Options whose lists are a sweep, unless another option has a list.
const OF_TILES: [&str; 7] =
    ["--tiles", "--tiles-forward", "--tiles-backward", "--window", "--polls", "--polls-after", "--cut"];

/// One combination.
pub struct StudyPoint {
    pub args: BenchArgs,
    /// The options that vary, without dashes, and their values.
    varied: Vec<(String, String)>,
    /// The words that points of one run have in common.
    run: Vec<OsString>,
}

/// The combinations of the lists of a command line, each parsed by `parse`; `None` if it is not that of `bench`, or has
/// no lists.
///
/// # Errors
/// Those of the command line of a combination.
pub fn points(
    words: &[OsString],
    parse: impl Fn(&[OsString]) -> Outcome<BenchArgs>,
) -> Option<Outcome<Vec<StudyPoint>>> {
    let text: Vec<&str> = words.iter().map(|word| word.to_str()).collect::<Option<_>>()?;
    if text.get(1) != Some(&"bench") {
        return None;
    }
    let listed = lists(&text);
    let is_list = |list: &Listed<'_>| list.values.len() > 1;
    let study = listed.iter().any(|list| is_list(list) && !OF_TILES.contains(&list.name));
    if !study {
        return None;
    }
    let mut lists: Vec<&Listed<'_>> = listed.iter().filter(|list| is_list(list)).collect();
    // Those of runs first, so that the points of a run follow each other.
    lists.sort_by_key(|list| list.of_plan());
    Some(combinations(&lists).map(|values| point(words, &lists, &values, &parse)).collect())
}

/// A word of the command line that may be a list.
struct Listed<'a> {
    /// `SHAPE` for the shape.
    name: &'a str,
    /// The word with the values.
    at: usize,
    /// What stands before the values in that word: `--ranks=`.
    before: &'a str,
    values: Vec<&'a str>,
}

const SHAPE: &str = "SHAPE";

impl Listed<'_> {
    fn of_plan(&self) -> bool {
        OF_PLANS.contains(&self.name) || OF_TILES.contains(&self.name)
    }
}

fn lists<'a>(words: &[&'a str]) -> Vec<Listed<'a>> {
    let known = |name: &str| OF_RUNS.contains(&name) || OF_PLANS.contains(&name) || OF_TILES.contains(&name);
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().skip(2) {
        let before = words[at - 1];
        let (name, start) = match word.split_once('=') {
            Some((name, _)) if known(name) => (name, name.len() + 1),
            _ if known(before) => (before, 0),
            _ if at == 2 && word.starts_with(|first: char| first.is_ascii_digit()) => (SHAPE, 0),
            _ => continue,
        };
        found.push(Listed { name, at, before: &word[..start], values: word[start..].split(',').collect() });
    }
    found
}

/// The numbers of the values of each combination, the last list varying fastest.
fn combinations<'a>(lists: &'a [&Listed<'_>]) -> impl Iterator<Item = Vec<usize>> + 'a {
    let count: usize = lists.iter().map(|list| list.values.len()).product();
    (0..count).map(|mut number| {
        let mut values: Vec<usize> = lists
            .iter()
            .rev()
            .map(|list| {
                let value = number % list.values.len();
                number /= list.values.len();
                value
            })
            .collect();
        values.reverse();
        values
    })
}

fn point(
    words: &[OsString],
    lists: &[&Listed<'_>],
    values: &[usize],
    parse: impl Fn(&[OsString]) -> Outcome<BenchArgs>,
) -> Outcome<StudyPoint> {
    let (mut own, mut run) = (words.to_vec(), words.to_vec());
    let mut varied = Vec::new();
    for (list, &value) in lists.iter().zip(values) {
        let value = list.values[value];
        own[list.at] = format!("{}{value}", list.before).into();
        run[list.at] = if list.of_plan() { OsString::new() } else { own[list.at].clone() };
        varied.push((list.name.trim_start_matches('-').to_lowercase(), value.to_string()));
    }
    Ok(StudyPoint { args: parse(&own)?, varied, run })
}

/// A study of one combination, for a file of values.
pub fn alone(args: &BenchArgs) -> StudyPoint {
    StudyPoint { args: args.clone(), varied: Vec::new(), run: Vec::new() }
}

/// Runs a study.
///
/// # Errors
/// Bad input; a wrong result (exit code 1).
pub fn run(mut points: Vec<StudyPoint>, session: &Session) -> Outcome {
    let Some(first) = points.first() else { return Ok(()) };
    let args = first.args.clone();
    session.agree(check(&mut points, session))?;
    session.first(|| print::check([&args.json, &args.csv, &args.svg]))?;
    let title = title(&args, &points);
    if args.exchange_only {
        return of_exchanges(&points, &args, title, session);
    }
    let mut rows = Vec::new();
    let mut wrong = None;
    for group in points.chunk_by(|one, other| one.run == other.run) {
        let common = &group[0].args.problem.common;
        let work = |session: &Session, common: &CommonArgs| {
            let mut args: Vec<BenchArgs> = group.iter().map(|point| point.args.clone()).collect();
            args.iter_mut().for_each(|args| args.problem.common = with_group(&args.problem.common, common));
            measure(group, &args, session)
        };
        let Some((more, failure)) = session.on_ranks(common, work)? else { continue };
        rows.extend(more);
        wrong = wrong.or(failure);
    }
    session.first(|| {
        let report = StudyReport::new(title, args.weak, rows);
        print::optional(args.csv.as_deref(), || report.csv())?;
        print::optional(args.svg.as_deref(), || report.svg())?;
        if !print::is_stdout(args.csv.as_deref()) {
            print::report(args.json.as_deref(), &report, &report.text())?;
        }
        wrong.map_or(Ok(()), Err)
    })
}

/// The options of a point on the ranks of its group.
fn with_group(own: &CommonArgs, group: &CommonArgs) -> CommonArgs {
    CommonArgs { ranks: group.ranks, ..own.clone() }
}

/// Checks the options that studies exclude, and lets arrays grow with the ranks.
fn check(points: &mut [StudyPoint], session: &Session) -> Outcome {
    for point in points {
        let args = &mut point.args;
        if args.apply.is_some()
            || args.halo.is_some()
            || args.codec_speed
            || args.trace.is_some()
            || args.blocks
        {
            return fail("lists of options exclude --apply, --halo, --codec-speed, --trace, --blocks");
        }
        setup::check_group(&args.problem.common)?;
        setup::named(&args.problem.common, &args.problem.shape)?;
        if args.weak {
            let launched = session.launched().map_or(1, |launched| launched.comm().size());
            let ranks = args.problem.common.ranks.unwrap_or(launched);
            args.problem.shape = grown(&args.problem.shape, ranks)?;
            if !point.varied.iter().any(|(name, _)| name == "shape") {
                point.varied.insert(0, ("shape".into(), args.problem.shape.to_string()));
            }
        }
    }
    Ok(())
}

/// A shape with `ranks` times the elements: each prime factor of the number goes to the shortest axis, the largest
/// factor first.
fn grown(shape: &UserShape, ranks: usize) -> Outcome<UserShape> {
    let (mut lengths, mut left, mut factors) = (shape.lengths().to_vec(), ranks, Vec::new());
    let mut divisor = 2;
    while left > 1 {
        if left.is_multiple_of(divisor) {
            factors.push(divisor);
            left /= divisor;
        } else {
            divisor += 1;
        }
    }
    for factor in factors.into_iter().rev() {
        if let Some(shortest) = lengths.iter_mut().min() {
            *shortest *= factor;
        }
    }
    UserShape::new(&lengths)
}

/// What all points have in common.
fn title(args: &BenchArgs, points: &[StudyPoint]) -> String {
    let varies = |name: &str| points.iter().any(|point| point.varied.iter().any(|(own, _)| own == name));
    let problem = &args.problem;
    let shape = if varies("shape") { String::new() } else { format!("{} ", problem.shape) };
    let precision =
        if varies("precision") { String::new() } else { format!(" {}", problem.precision.name()) };
    let wire = problem.common.execution.wire.filter(|_| !varies("wire"));
    let wire = wire.map_or(String::new(), |wire| format!(", wire {wire}"));
    format!("{shape}{}{precision}{wire}", contest::kind_text(problem))
}

/// Measures the points of a group on its ranks: rows on the first process, and the first wrong result. Collective.
fn measure(
    group: &[StudyPoint],
    args: &[BenchArgs],
    session: &Session,
) -> Outcome<(Vec<StudyRow>, Option<Failure>)> {
    let bar = match session.is_first() {
        true => print::styled(ProgressBar::new_spinner(), "{spinner} {msg}"),
        false => ProgressBar::hidden(),
    };
    let progress = |message: String| bar.set_message(message);
    let common = &args[0].problem.common;
    let ranks = session.agree(session.size(common))?;
    let base = |point: &StudyPoint| StudyRow {
        varied: point.varied.clone(),
        shape: point.args.problem.shape.lengths().to_vec(),
        ranks,
        ..StudyRow::default()
    };
    if ranks < 2 && !args[0].variants.is_empty() {
        let note = |point| StudyRow { note: Some("one rank sends nothing".into()), ..base(point) };
        return Ok((group.iter().map(note).collect(), None));
    }
    let options = session.agree(contest::prepare(&args[0], session, &progress))?;
    let flops = options.peer_problem.flops();
    let run = |comparison: &Comparison| match common.device {
        DeviceSpec::Cpu => session.run(common, |comm| comparison.run(comm, &options)),
        device => cuda::contest(common, &options, comparison, device, session).map(|(result, _)| result),
    };
    let mut rows = Vec::new();
    let mut add = |points: &[StudyPoint], comparison: &Comparison, result: &ContestResult| -> Outcome<_> {
        let mut candidates = result.candidates.iter();
        for (number, point) in points.iter().enumerate() {
            let group = result.group;
            let row = StudyRow { nodes: group.nodes, threads: group.threads, ..base(point) };
            match result.infeasible.get(number).cloned().flatten() {
                Some(note) => rows.push(StudyRow { note: Some(note), ..row }),
                None if matches!(comparison, Comparison::Variants(..)) => {}
                None => rows.extend(candidates.next().map(|candidate| row.measured(candidate, flops))),
            }
        }
        if !result.candidates.is_empty() {
            let report = BenchReport::new(&options, comparison, result, 1.0, false)?;
            let row =
                StudyRow { nodes: result.group.nodes, threads: result.group.threads, ..base(&points[0]) };
            rows.extend(other_rows(&row, &report, flops));
        }
        Ok(result.first_error(&options.peer_problem, options.whole))
    };
    let mut wrong = None;
    if args[0].variants.is_empty() && common.device == DeviceSpec::Cpu {
        let choices = args.iter().map(|args| setup::choice(&args.problem.common, &args.problem.shape));
        let comparison = Comparison::Several(session.agree(choices.collect())?);
        let result = run(&comparison)?;
        wrong = add(group, &comparison, &result)?;
    } else {
        for (point, args) in group.chunks(1).zip(args) {
            let args = BenchArgs { svg: None, ..args.clone() };
            let comparison = session.agree(contest::comparison(&args))?;
            let result = run(&comparison)?;
            wrong = wrong.or(add(point, &comparison, &result)?);
        }
    }
    bar.finish_and_clear();
    Ok((rows, wrong))
}

/// `ferrier bench --exchange-only` with lists.
fn of_exchanges(points: &[StudyPoint], args: &BenchArgs, title: String, session: &Session) -> Outcome {
    let mut rows = Vec::new();
    for point in points {
        let work = |session: &Session, common: &CommonArgs| {
            let mut args = point.args.clone();
            args.problem.common = with_group(&args.problem.common, common);
            let bench = session.agree(exchanges::prepare(&args, session))?;
            session.run(&args.problem.common, |comm| bench.run(comm))
        };
        let Some(report) = session.on_ranks(&point.args.problem.common, work)? else { continue };
        rows.extend(ExchangeRow::of(&report, &point.varied));
    }
    session.first(|| {
        let report = ExchangeStudy { title, rows };
        print::optional(args.csv.as_deref(), || report.csv())?;
        print::optional(args.svg.as_deref(), || report.svg())?;
        if !print::is_stdout(args.csv.as_deref()) {
            print::report(args.json.as_deref(), &report, &report.text())?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn study(words: &str) -> Option<Outcome<Vec<StudyPoint>>> {
        #[derive(clap::Parser)]
        struct Alone {
            #[command(flatten)]
            args: BenchArgs,
        }
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        points(&words, |words| {
            let parsed = Alone::try_parse_from(&words[1..]);
            parsed.map(|alone| alone.args).map_err(|error| Failure::new(error.to_string()))
        })
    }

    #[test]
    fn lists_become_combinations_and_plans_vary_last() {
        let points =
            study("ferrier bench 16,32 --exchange ring,direct --ranks=1,2 --repeat 3").unwrap().unwrap();
        let varied: Vec<String> = points.iter().map(|point| format!("{:?}", point.varied)).collect();
        assert_eq!(points.len(), 8);
        assert_eq!(varied[1], r#"[("shape", "16"), ("ranks", "1"), ("exchange", "direct")]"#);
        assert_eq!(points[7].args.problem.common.ranks, Some(2));
        assert_eq!(points.chunk_by(|one, other| one.run == other.run).count(), 4);
        assert!(study("ferrier bench 16 --tiles 2,4").is_none());
        assert!(study("ferrier plan 16 --ranks 2,4").is_none());
        assert_eq!(study("ferrier bench 16 --ranks 2,4 --tiles 2,4").unwrap().unwrap().len(), 4);
        assert!(study("ferrier bench 16 --ranks 2,x").unwrap().is_err());
    }

    #[test]
    fn weak_scaling_keeps_the_elements_of_a_rank() {
        let shape = UserShape::new(&[16, 16, 16]).unwrap();
        for (ranks, lengths) in [(1, [16, 16, 16]), (2, [32, 16, 16]), (8, [32, 32, 32]), (12, [48, 32, 32])]
        {
            assert_eq!(grown(&shape, ranks).unwrap().lengths(), lengths);
        }
    }
}
