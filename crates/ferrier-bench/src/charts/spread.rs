//! A histogram of the times of random choices, as text and as SVG.

use ferrier::tune::Outcome;
use serde::Serialize;

use super::chart::Chart;
use crate::table::{digits, pairs};
use crate::timing::median;

/// Bars of a histogram.
const BARS: usize = 20;

/// Times of random choices and of the default.
#[derive(Debug, Serialize)]
pub struct Spread {
    /// Milliseconds of each except the default, ascending.
    times_ms: Vec<f64>,
    default_ms: f64,
    /// Number of choices that could not run.
    infeasible: usize,
    /// The result of a search of the same parameters, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    tuned: Option<TunedPlace>,
}

/// Where the result of a search lies among random choices; the keys are part of the contract.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TunedPlace {
    /// Its time, relative to the default as the random choices are.
    tuned_ms: f64,
    /// The part of the random choices that are faster, in percent.
    percentile: f64,
    /// Choices that the search ran.
    trials: usize,
    /// Its duration.
    seconds: f64,
}

impl Spread {
    /// The spread of the trials of a random search, and the place of the result of another one.
    pub fn new(outcome: &Outcome, tuned: Option<&Outcome>) -> Self {
        let times = outcome.trials.iter().skip(1).map(|trial| trial.seconds * 1e3);
        let (mut times_ms, other): (Vec<f64>, Vec<f64>) = times.partition(|time| time.is_finite());
        times_ms.sort_by(f64::total_cmp);
        let default_ms = outcome.trials.first().map_or(f64::NAN, |trial| trial.seconds * 1e3);
        let place = |tuned: &Outcome| {
            // Both searches start from the same choice: what the machine's speed did between them cancels.
            let tuned_ms = tuned.best_ms / tuned.default_ms * default_ms;
            let faster = times_ms.iter().filter(|&&time| time < tuned_ms).count();
            let percentile = 100.0 * faster as f64 / times_ms.len().max(1) as f64;
            TunedPlace { tuned_ms, percentile, trials: tuned.measured, seconds: tuned.seconds }
        };
        let tuned = tuned.map(place);
        Spread { times_ms, default_ms, infeasible: other.len(), tuned }
    }

    /// Lower edge, upper edge and count of each bar; the range includes the default.
    fn bars(&self) -> Vec<(f64, f64, usize)> {
        let all = || self.times_ms.iter().copied().chain([self.default_ms]);
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        let width = ((high - low) / BARS as f64).max(1e-9);
        let bar = |time: f64| (((time - low) / width) as usize).min(BARS - 1);
        let mut counts = [0; BARS];
        self.times_ms.iter().for_each(|&time| counts[bar(time)] += 1);
        let edge = |at: usize| low + width * at as f64;
        counts.iter().enumerate().map(|(at, &count)| (edge(at), edge(at + 1), count)).collect()
    }

    /// The histogram as text.
    pub fn text(&self) -> String {
        if self.times_ms.is_empty() {
            return "no choice could run\n".into();
        }
        let bars = self.bars();
        let most = bars.iter().map(|bar| bar.2).max().unwrap_or(1).max(1);
        let mut out = String::new();
        for (at, (from, to, count)) in bars.iter().enumerate() {
            let last = at + 1 == bars.len();
            let here = *from <= self.default_ms && (self.default_ms < *to || last && self.default_ms <= *to);
            let mark = if here { " <- default" } else { "" };
            let length = (40 * count).div_ceil(most);
            out += format!("{:>9} ms {:>4} {}{mark}", digits(*from), count, "#".repeat(length)).trim_end();
            out.push('\n');
        }
        out.push('\n');
        let faster = self.times_ms.iter().filter(|&&time| time < self.default_ms).count();
        out + &pairs(&[
            ("choices run", self.times_ms.len().to_string()),
            ("infeasible", self.infeasible.to_string()),
            ("fastest", format!("{} ms", digits(self.times_ms[0]))),
            ("median", format!("{} ms", digits(median(&self.times_ms)))),
            ("slowest", format!("{} ms", digits(self.times_ms[self.times_ms.len() - 1]))),
            ("default", format!("{} ms, {faster} were faster", digits(self.default_ms))),
        ]) + &self.tuned_text()
    }

    /// The place of the tuned choice.
    fn tuned_text(&self) -> String {
        self.tuned.map_or(String::new(), |TunedPlace { tuned_ms, percentile, trials, seconds }| {
            let place = format!("{} ms, percentile {percentile:.1}", digits(tuned_ms));
            pairs(&[("tuned", format!("{place} ({trials} trials in {} s)", digits(seconds)))])
        })
    }

    /// The cumulative distribution as SVG.
    fn cumulative(&self, title: &str) -> String {
        let mut chart = Chart::new(
            format!("{title}: {} random choices", self.times_ms.len()),
            "ms",
            "part of the choices that are as fast",
        );
        let count = self.times_ms.len() as f64;
        let part = |(number, time): (usize, &f64)| (*time, (number + 1) as f64 / count);
        chart.line("random choices", self.times_ms.iter().enumerate().map(part).collect());
        let mark = |ms: f64| vec![(ms, 1.0 / count.max(1.0)), (ms, 1.0)];
        chart.line("default", mark(self.default_ms));
        if let Some(tuned) = self.tuned {
            chart.line(&format!("tuned, percentile {:.1}", tuned.percentile), mark(tuned.tuned_ms));
        }
        let ends = [self.times_ms.first(), self.times_ms.last()].map(|time| time.copied().unwrap_or(0.0));
        chart.svg(|ms| if ends.contains(&ms) || ms == self.default_ms { digits(ms) } else { String::new() })
    }

    /// The histogram as SVG; with a tuned choice, the cumulative distribution.
    pub fn svg(&self, title: &str) -> String {
        if self.tuned.is_some() {
            return self.cumulative(title);
        }
        let bars = self.bars();
        let most = bars.iter().map(|bar| bar.2).max().unwrap_or(1).max(1) as f64;
        let (low, high) = (bars[0].0, bars[bars.len() - 1].1);
        let across = |time: f64| 50.0 + 580.0 * (time - low) / (high - low);
        let mut out = String::from(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 660 320\" font-family=\"sans-serif\" \
             font-size=\"13\">\n<rect width=\"660\" height=\"320\" fill=\"white\"/>\n",
        );
        out += &format!(
            "<text x=\"50\" y=\"24\">{title}: times of {} random choices</text>\n",
            self.times_ms.len()
        );
        for (from, to, count) in &bars {
            let height = 220.0 * *count as f64 / most;
            out += &format!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"#4477aa\"/>\n",
                across(*from),
                270.0 - height,
                across(*to) - across(*from) - 1.0
            );
        }
        let x = across(self.default_ms);
        out += &format!(
            "<line x1=\"{x:.1}\" y1=\"40\" x2=\"{x:.1}\" y2=\"270\" stroke=\"#cc3311\" stroke-width=\"2\"/>\n\
             <text x=\"{:.1}\" y=\"52\" fill=\"#cc3311\">default</text>\n",
            x + 4.0
        );
        out += "<line x1=\"50\" y1=\"270\" x2=\"630\" y2=\"270\" stroke=\"black\"/>\n";
        for time in [low, (low + high) / 2.0, high] {
            out += &format!(
                "<text x=\"{:.1}\" y=\"290\" text-anchor=\"middle\">{} ms</text>\n",
                across(time),
                digits(time)
            );
        }
        out + "</svg>\n"
    }
}
