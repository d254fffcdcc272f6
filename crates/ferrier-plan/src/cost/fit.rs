//! Constants from measured steps.

use super::constants::{Constants, MeasuredConstants};
use super::machine::Machine;
use super::predict::Prediction;

/// Constants that steps of transforms determine, in groups that change together.
const GROUPS: &[&[&str]] = &[
    &["flop_s", "contiguous_flop_s"],
    &["flop_s"],
    &["level2_bytes_s"],
    &["last_level_bytes_s", "last_level_busy_bytes_s"],
    &["last_level_busy_bytes_s"],
    &["memory_bytes_s", "memory_node_bytes_s"],
    &["memory_node_bytes_s"],
    &["run_last_level_s", "run_memory_s"],
    &["remote"],
];
/// Factors that are tried, in turns of smaller and smaller changes.
const FACTORS: [f64; 8] = [0.5, 2.0, 0.75, 1.33, 0.9, 1.1, 0.97, 1.03];
/// Error that a change by a factor of e of one constant must save: constants that steps say nothing of stay.
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
    let mut best = machine.clone();
    let mut least = error(&best, machine, samples);
    loop {
        let before = least;
        for (group, factor) in
            FACTORS.iter().flat_map(|factor| GROUPS.iter().map(move |group| (group, factor)))
        {
            let mut other = best.clone();
            for (name, value) in best.constants.list().into_iter().filter(|(name, _)| group.contains(name)) {
                let most = if name == "remote" { 1.0 } else { f64::INFINITY };
                other.constants.set(name, (value * factor).min(most));
            }
            let found = error(&other, machine, samples);
            if found < least - 1e-9 {
                (best, least) = (other, found);
            }
        }
        if before - least < 1e-4 {
            return changed(&machine.constants, &best.constants);
        }
    }
}

/// Mean error of the steps, as a logarithm, and the distance of the constants from where they started.
fn error<P: Fn(&Machine) -> Prediction>(machine: &Machine, start: &Machine, samples: &[Sample<P>]) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for sample in samples {
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
    let pairs = machine.constants.list().into_iter().zip(start.constants.list());
    let moved: f64 = pairs
        .filter(|((_, now), (_, before))| now != before && *now > 0.0 && *before > 0.0)
        .map(|((_, now), (_, before))| (now / before).ln().abs())
        .sum();
    if count > 0.0 { sum / count + INERTIA * moved } else { moved }
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
