//! Constants from measured steps.

use super::constants::{Constants, MeasuredConstants};
use super::machine::Machine;
use super::predict::Prediction;

/// Speeds that steps of transforms determine, in groups that change together.
const GROUPS: &[&[&str]] = &[
    &["flop_s", "contiguous_flop_s"],
    &["flop_s"],
    &["block_s"],
    &["level2_bytes_s"],
    &["last_level_bytes_s", "last_level_busy_bytes_s"],
    &["last_level_busy_bytes_s"],
    &["memory_bytes_s", "memory_node_bytes_s"],
    &["memory_node_bytes_s"],
    &["run_last_level_s", "run_memory_s"],
    &["run_memory_s"],
    &["page_s"],
];
/// Speeds that are higher or lower together on another processor: those of [`GROUPS`] and this.
const TOGETHER: &str = "shared_line_s";
/// Factors that are tried, in turns of smaller and smaller changes.
const FACTORS: [f64; 8] = [0.5, 2.0, 0.75, 1.33, 0.9, 1.1, 0.97, 1.03];
/// Constants that may be zero: what is tried, and a large change.
const VALUES: &[(&str, &[f64], f64)] = &[
    ("overlap", &[0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], 0.3),
    ("plane_overlap", &[0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], 0.3),
    ("allocate", &[0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0], 0.7),
    ("unaligned", &[0.0, 0.05, 0.1, 0.2, 0.3, 0.4], 0.2),
    ("partial", &[0.0, 0.25, 0.5, 0.75, 1.0], 0.5),
    ("shared_line_s", &[0.0, 10e-9, 20e-9, 30e-9, 45e-9, 60e-9], 30e-9),
    ("remote", &[0.6, 0.7, 0.8, 0.9, 0.95, 1.0], 0.2),
    ("last_level_part", &[0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8], 0.3),
    ("last_level_random", &[0.0, 0.25, 0.5, 0.75, 1.0], 0.7),
    ("conflict", &[0.0, 0.1, 0.25, 0.5, 1.0, 1.6], 0.5),
    ("line_conflict", &[0.0, 0.05, 0.1, 0.2, 0.5], 0.2),
];
/// Error that a change of one speed by a factor of e, or a large change of another constant, must save: constants that
/// steps say nothing of stay.
const INERTIA: f64 = 0.01;

/// A measured call: the seconds of its steps, and what the model predicts on a machine.
#[derive(Debug)]
pub struct Sample<P> {
    /// Names and seconds of the steps, in order.
    pub steps: Vec<(String, f64)>,
    /// The prediction of the same call.
    pub predict: P,
}

/// The constants with which predictions agree best with measured steps, starting from those of `machine`.
pub fn fit<P: Fn(&Machine) -> Prediction>(machine: &Machine, samples: &[Sample<P>]) -> MeasuredConstants {
    let mut search =
        Search { start: &machine.constants, samples, best: machine.clone(), scale: 1.0, least: 0.0 };
    search.least = search.error(&search.best, search.scale);
    loop {
        let before = search.least;
        for factor in FACTORS {
            search.try_scale(factor);
            for group in GROUPS {
                search.try_with(|constants| {
                    group.iter().for_each(|name| multiply(constants, name, factor));
                });
            }
        }
        for &(name, values, _) in VALUES {
            for &value in values {
                search.try_with(|constants| {
                    constants.set(name, value);
                });
            }
        }
        if before - search.least < 1e-4 {
            return changed(&machine.constants, &search.best.constants);
        }
    }
}

/// Multiplies the constant called `name`.
fn multiply(constants: &mut Constants, name: &str, factor: f64) {
    let known = constants.list().into_iter().find(|(other, _)| *other == name);
    known.iter().for_each(|(_, value)| {
        constants.set(name, value * factor);
    });
}

/// Whether the constant called `name` is a rate, so that it is lower where times are longer.
fn is_rate(name: &str) -> bool {
    name.ends_with("_bytes_s")
}

/// The search for constants.
struct Search<'a, P> {
    start: &'a Constants,
    samples: &'a [Sample<P>],
    /// The best constants so far, how many times as long as at the start everything takes with them, and their error.
    best: Machine,
    scale: f64,
    least: f64,
}

impl<P: Fn(&Machine) -> Prediction> Search<'_, P> {
    /// Tries constants with which everything takes so many times as long.
    fn try_scale(&mut self, factor: f64) {
        let mut other = self.best.clone();
        for name in speeds() {
            multiply(&mut other.constants, name, if is_rate(name) { 1.0 / factor } else { factor });
        }
        self.keep_better(other, self.scale * factor);
    }

    /// Tries changed constants.
    fn try_with(&mut self, change: impl FnOnce(&mut Constants)) {
        let mut other = self.best.clone();
        change(&mut other.constants);
        if other.constants != self.best.constants {
            self.keep_better(other, self.scale);
        }
    }

    fn keep_better(&mut self, other: Machine, scale: f64) {
        let found = self.error(&other, scale);
        if found < self.least - 1e-9 {
            (self.best, self.scale, self.least) = (other, scale, found);
        }
    }

    /// Mean error of the steps, as a logarithm, and the distance of the constants from where they started.
    fn error(&self, machine: &Machine, scale: f64) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for sample in self.samples {
            let total: f64 = sample.steps.iter().map(|step| step.1).sum();
            let predicted = (sample.predict)(machine);
            for ((name, seconds), step) in sample.steps.iter().zip(&predicted.steps) {
                // Waits for other ranks are no work, and short steps are noise.
                if name != "wait" && *name == step.name && *seconds > 0.05 * total && step.seconds > 0.0 {
                    sum += (step.seconds / seconds).ln().abs();
                    count += 1.0;
                }
            }
        }
        let moved = self.moved(&machine.constants, scale);
        if count > 0.0 { sum / count + INERTIA * moved } else { moved }
    }

    /// How far constants are from those of the start, apart from what all speeds have in common.
    fn moved(&self, constants: &Constants, scale: f64) -> f64 {
        let mut sum = scale.ln().abs();
        for ((name, now), (_, before)) in constants.list().into_iter().zip(self.start.list()) {
            if let Some((_, _, large)) = VALUES.iter().find(|(other, ..)| *other == name) {
                let common = if name == TOGETHER { scale } else { 1.0 };
                sum += (now - before * common).abs() / large;
            } else if now > 0.0 && before > 0.0 && speeds().any(|other| other == name) {
                let common = if is_rate(name) { 1.0 / scale } else { scale };
                sum += (now / (before * common)).ln().abs();
            }
        }
        sum
    }
}

/// The constants that are speeds of passes.
fn speeds() -> impl Iterator<Item = &'static str> {
    let first = |at: usize, name: &str| !GROUPS[..at].iter().any(|group| group.contains(&name));
    let listed = GROUPS.iter().enumerate();
    let listed =
        listed.flat_map(move |(at, group)| group.iter().copied().filter(move |name| first(at, name)));
    listed.chain([TOGETHER])
}

/// The constants of `to` that differ from those of `from`.
fn changed(from: &Constants, to: &Constants) -> MeasuredConstants {
    let mut measured = MeasuredConstants::default();
    for ((name, before), (_, after)) in from.list().into_iter().zip(to.list()) {
        if before != after {
            measured.set(name, after);
        }
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::StepCost;

    /// Constants that the samples depend on are found, the others stay.
    #[test]
    fn constants_of_another_machine_are_found() {
        let machine = Machine::of_family("intel-avx512");
        let mut other = machine.clone();
        other.constants.flop_s *= 1.9;
        other.constants.memory_bytes_s /= 2.2;
        let steps = |machine: &Machine, flops: f64, bytes: f64| {
            let Constants { flop_s, memory_bytes_s, .. } = machine.constants;
            let seconds = flops * flop_s + bytes / memory_bytes_s;
            Prediction { steps: vec![StepCost { name: "fft".into(), seconds, pass: None }] }
        };
        let samples: Vec<_> = [(1e9, 1e6), (1e6, 1e9), (1e9, 1e9)]
            .map(|(flops, bytes)| Sample {
                steps: vec![("fft".to_string(), steps(&other, flops, bytes).seconds())],
                predict: move |machine: &Machine| steps(machine, flops, bytes),
            })
            .into();
        let found = fit(&machine, &samples);
        let near = |found: Option<f64>, wanted: f64| (found.unwrap() / wanted).ln().abs() < 0.1;
        assert!(near(found.flop_s, other.constants.flop_s), "{found:?}");
        assert!(near(found.memory_bytes_s, other.constants.memory_bytes_s), "{found:?}");
        assert_eq!(found.wire_bytes_s, None);
    }
}
