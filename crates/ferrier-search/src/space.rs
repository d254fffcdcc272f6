//! The search space: named parameters, each with a list of values.
//!
//! The values of a log-scale parameter are powers of two and both ends of its range; one level is a step in log scale.
//! Categorical parameters have no order.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::rng::Rng;

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// The value of an integer parameter.
    Number(usize),
    /// The value of a categorical parameter.
    Name(String),
}

impl Value {
    /// The number; 0 for a name.
    pub fn number(&self) -> usize {
        match self {
            Value::Number(number) => *number,
            Value::Name(_) => 0,
        }
    }

    /// The name; empty for a number.
    pub fn name(&self) -> &str {
        match self {
            Value::Number(_) => "",
            Value::Name(name) => name,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Name(name) => f.write_str(name),
        }
    }
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    name: &'static str,
    values: Vec<Value>,
    ordered: bool,
    start: usize,
}

impl Parameter {
    fn new(name: &'static str, values: Vec<Value>, ordered: bool) -> Self {
        Parameter { name, values, ordered, start: 0 }
    }

    /// A categorical parameter; searches start at the first value.
    pub fn category<S: Into<String>>(name: &'static str, values: impl IntoIterator<Item = S>) -> Self {
        Self::new(name, values.into_iter().map(|value| Value::Name(value.into())).collect(), false)
    }

    /// An integer in a range: powers of two, and both ends.
    pub fn log_scale(name: &'static str, low: usize, high: usize) -> Self {
        let powers = (0..usize::BITS).map(|bit| 1usize << bit).filter(|&power| power > low && power < high);
        let mut levels: Vec<usize> = std::iter::once(low).chain(powers).chain([high.max(low)]).collect();
        levels.dedup();
        Self::new(name, levels.into_iter().map(Value::Number).collect(), true)
    }

    /// An integer in a range: every integer.
    pub fn linear(name: &'static str, low: usize, high: usize) -> Self {
        Self::new(name, (low..=high.max(low)).map(Value::Number).collect(), true)
    }

    /// Sets the start value of searches: `number`, or the value nearest to it.
    #[must_use]
    pub fn from(mut self, number: usize) -> Self {
        let distance = |at: &usize| self.values[*at].number().abs_diff(number);
        self.start = (0..self.values.len()).min_by_key(distance).unwrap_or(0);
        self
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its values.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Whether its values are ordered; false for a categorical parameter.
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }
}

/// A point of a [`Space`]: for each parameter the index of its value (its level).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point(pub Vec<usize>);

type Rule = Box<dyn Fn(&Space, &Point) -> Result<(), String>>;

/// Parameters and constraints.
pub struct Space {
    parameters: Vec<Parameter>,
    rules: Vec<Rule>,
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} rules", self.parameters, self.rules.len())
    }
}

impl Space {
    /// The space of these parameters; those with fewer than two values are left out.
    pub fn new(parameters: impl IntoIterator<Item = Parameter>) -> Self {
        let parameters = parameters.into_iter().filter(|parameter| parameter.values.len() > 1).collect();
        Space { parameters, rules: Vec::new() }
    }

    /// Adds a constraint: a point for which `rule` returns an error is infeasible, with this text as the reason.
    #[must_use]
    pub fn rule(mut self, rule: impl Fn(&Space, &Point) -> Result<(), String> + 'static) -> Self {
        self.rules.push(Box::new(rule));
        self
    }

    /// Checks all constraints.
    ///
    /// # Errors
    /// The reason of the first violated constraint.
    pub fn check(&self, point: &Point) -> Result<(), String> {
        self.rules.iter().try_for_each(|rule| rule(self, point))
    }

    /// Its parameters.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The value of the parameter `name` at a point; `None` if there is no such parameter.
    pub fn value(&self, point: &Point, name: &str) -> Option<&Value> {
        let at = self.parameters.iter().position(|parameter| parameter.name == name)?;
        Some(&self.parameters[at].values[point.0[at]])
    }

    /// The start point of searches.
    pub fn start(&self) -> Point {
        Point(self.parameters.iter().map(|parameter| parameter.start).collect())
    }

    /// Number of points; saturates at `usize::MAX`.
    pub fn size(&self) -> usize {
        self.parameters.iter().fold(1, |size: usize, parameter| size.saturating_mul(parameter.values.len()))
    }

    /// The parameters that are ordered, or categorical.
    pub(crate) fn axes(&self, ordered: bool) -> Vec<usize> {
        (0..self.parameters.len()).filter(|&at| self.parameters[at].ordered == ordered).collect()
    }

    /// All points that differ in one parameter: by one level, or by any value of a categorical one.
    pub(crate) fn around(&self, point: &Point) -> Vec<Point> {
        let mut found = Vec::new();
        for (axis, parameter) in self.parameters().iter().enumerate() {
            let here = point.0[axis];
            let near = |level: &usize| !parameter.is_ordered() || level.abs_diff(here) == 1;
            for level in (0..self.levels(axis)).filter(|level| *level != here).filter(near) {
                let mut other = point.clone();
                other.0[axis] = level;
                found.push(other);
            }
        }
        found
    }

    /// Number of values of a parameter.
    pub(crate) fn levels(&self, axis: usize) -> usize {
        self.parameters[axis].values.len()
    }

    /// A random point, feasible or not.
    pub(crate) fn random(&self, rng: &mut Rng) -> Point {
        Point(self.parameters.iter().map(|parameter| rng.below(parameter.values.len())).collect())
    }

    /// The point of this index in mixed-radix order.
    pub(crate) fn nth(&self, mut number: usize) -> Point {
        let digit = |parameter: &Parameter| {
            let level = number % parameter.values.len();
            number /= parameter.values.len();
            level
        };
        Point(self.parameters.iter().map(digit).collect())
    }

    /// Description of the differences from the start point, such as `exchange ring, tiles 8`.
    pub fn text(&self, point: &Point) -> String {
        let differs = |(parameter, &at): (&Parameter, &usize)| {
            (at != parameter.start).then(|| format!("{} {}", parameter.name, parameter.values[at]))
        };
        let words: Vec<_> = self.parameters.iter().zip(&point.0).filter_map(differs).collect();
        if words.is_empty() { "default".into() } else { words.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(parameter: &Parameter) -> Vec<usize> {
        parameter.values.iter().map(Value::number).collect()
    }

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!(numbers(&Parameter::log_scale("t", 1, 24)), [1, 2, 4, 8, 16, 24]);
        assert_eq!(numbers(&Parameter::log_scale("t", 3, 16)), [3, 4, 8, 16]);
        assert_eq!(numbers(&Parameter::log_scale("t", 0, 3)), [0, 1, 2, 3]);
        assert_eq!(numbers(&Parameter::log_scale("t", 5, 5)), [5]);
        assert_eq!(numbers(&Parameter::linear("w", 0, 3)), [0, 1, 2, 3]);
        assert_eq!(Parameter::log_scale("t", 1, 24).from(15).start, 4);
    }

    #[test]
    fn points_are_counted_and_described() {
        let space = Space::new([
            Parameter::category("exchange", ["direct", "ring"]),
            Parameter::category("idle", ["only"]),
            Parameter::log_scale("tiles", 1, 24).from(4),
        ]);
        assert_eq!((space.size(), space.parameters().len()), (12, 2));
        let all: std::collections::HashSet<_> = (0..12).map(|n| space.nth(n)).collect();
        assert_eq!(all.len(), 12);
        assert_eq!(space.text(&space.start()), "default");
        assert_eq!(space.text(&Point(vec![1, 0])), "exchange ring, tiles 1");
        assert_eq!(space.value(&Point(vec![1, 5]), "tiles"), Some(&Value::Number(24)));
    }
}
