//! What a search walks through: named parameters, each a ladder of values.
//!
//! Integers that range over magnitudes climb by powers of two, both ends
//! included whether they are powers or not; so a search that takes steps of
//! one rung takes steps in log scale. Names have no order.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::rng::Rng;

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Of an integer parameter.
    Number(usize),
    /// Of a parameter without an order.
    Name(String),
}

impl Value {
    /// The number; 0 where it is a name.
    pub fn number(&self) -> usize {
        match self {
            Value::Number(number) => *number,
            Value::Name(_) => 0,
        }
    }

    /// The name; empty where it is a number.
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

/// One thing that may be varied.
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

    /// One of some names, which have no order; the first is where searches start.
    pub fn category<S: Into<String>>(name: &'static str, values: impl IntoIterator<Item = S>) -> Self {
        Self::new(name, values.into_iter().map(|value| Value::Name(value.into())).collect(), false)
    }

    /// An integer between two others: powers of two, and both ends.
    pub fn log_scale(name: &'static str, low: usize, high: usize) -> Self {
        let powers = (0..usize::BITS).map(|bit| 1usize << bit).filter(|&power| power > low && power < high);
        let mut rungs: Vec<usize> = std::iter::once(low).chain(powers).chain([high.max(low)]).collect();
        rungs.dedup();
        Self::new(name, rungs.into_iter().map(Value::Number).collect(), true)
    }

    /// An integer between two others: each of them.
    pub fn linear(name: &'static str, low: usize, high: usize) -> Self {
        Self::new(name, (low..=high.max(low)).map(Value::Number).collect(), true)
    }

    /// Where searches start: at `number`, or at the rung nearest to it.
    pub fn from(mut self, number: usize) -> Self {
        let distance = |at: &usize| self.values[*at].number().abs_diff(number);
        self.start = (0..self.values.len()).min_by_key(distance).unwrap_or(0);
        self
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it can be.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Is a step along its values a small change?
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }
}

/// A place in a [`Space`]: for each parameter the number of its value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point(pub Vec<usize>);

type Rule = Box<dyn Fn(&Space, &Point) -> Result<(), String>>;

/// Parameters, and which of their combinations make sense.
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
    /// The space of these parameters; those with fewer than two values are
    /// nothing to search and are left out.
    pub fn new(parameters: impl IntoIterator<Item = Parameter>) -> Self {
        let parameters = parameters.into_iter().filter(|parameter| parameter.values.len() > 1).collect();
        Space { parameters, rules: Vec::new() }
    }

    /// Points that break `rule` are never run; what it says is shown to people.
    pub fn rule(mut self, rule: impl Fn(&Space, &Point) -> Result<(), String> + 'static) -> Self {
        self.rules.push(Box::new(rule));
        self
    }

    /// Does the point keep all rules?
    ///
    /// # Errors
    /// What the first broken rule says.
    pub fn check(&self, point: &Point) -> Result<(), String> {
        self.rules.iter().try_for_each(|rule| rule(self, point))
    }

    /// Its parameters.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The value of the parameter called `name` at a point; `None` where
    /// there is no such parameter.
    pub fn value(&self, point: &Point, name: &str) -> Option<&Value> {
        let at = self.parameters.iter().position(|parameter| parameter.name == name)?;
        Some(&self.parameters[at].values[point.0[at]])
    }

    /// Where searches start.
    pub fn start(&self) -> Point {
        Point(self.parameters.iter().map(|parameter| parameter.start).collect())
    }

    /// Number of points; the largest number there is where they are more.
    pub fn size(&self) -> usize {
        self.parameters.iter().fold(1, |size: usize, parameter| size.saturating_mul(parameter.values.len()))
    }

    /// The parameters whose values have (or have not) an order.
    pub(crate) fn axes(&self, ordered: bool) -> Vec<usize> {
        (0..self.parameters.len()).filter(|&at| self.parameters[at].ordered == ordered).collect()
    }

    /// Number of values of a parameter.
    pub(crate) fn rungs(&self, axis: usize) -> usize {
        self.parameters[axis].values.len()
    }

    /// Any point, feasible or not.
    pub(crate) fn random(&self, rng: &mut Rng) -> Point {
        Point(self.parameters.iter().map(|parameter| rng.below(parameter.values.len())).collect())
    }

    /// The point with this number, counted as an odometer does.
    pub(crate) fn nth(&self, mut number: usize) -> Point {
        let digit = |parameter: &Parameter| {
            let rung = number % parameter.values.len();
            number /= parameter.values.len();
            rung
        };
        Point(self.parameters.iter().map(digit).collect())
    }

    /// Where a point differs from the start, in words: `exchange ring, tiles 8`.
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
    fn ladders_have_both_ends() {
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
