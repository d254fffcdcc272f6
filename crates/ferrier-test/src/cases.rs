//! The case table, as data: `cases.txt` and the numbers of ranks.

/// The numbers of ranks that every case runs on.
pub const RANKS: [usize; 8] = [1, 2, 3, 4, 6, 7, 8, 12];

/// The six memory orders, axes slowest first.
pub const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Kind of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Complex to complex.
    C2c,
    /// Real to complex with this axis halved.
    R2c(usize),
}

/// How a shape is split over the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// All axes split.
    Bricks,
    /// One axis split.
    Slabs(usize),
    /// One axis left whole.
    Pencils(usize),
    /// Random boxes, see [`tiles`](crate::tiles).
    Boxes,
    /// The layout that the planner chooses for the spectrum.
    Best,
}

/// Scale of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scale {
    /// 1.
    Unscaled,
    /// 1/N.
    Full,
    /// 1/sqrt N.
    Symmetric,
}

impl Scale {
    /// The factor for `points` points (the product of the transformed lengths).
    pub fn factor(self, points: usize) -> f64 {
        match self {
            Scale::Unscaled => 1.0,
            Scale::Full => 1.0 / points as f64,
            Scale::Symmetric => 1.0 / (points as f64).sqrt(),
        }
    }
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// The line of the table, for messages.
    pub line: String,
    /// Lengths of the axes (of the real array, for real kinds).
    pub shape: [usize; 3],
    /// Complex or real.
    pub kind: Kind,
    /// The axes to transform.
    pub axes: Vec<usize>,
    /// Arrays in one plan.
    pub batch: usize,
    /// The first array of a [`Field`](crate::Field) in the batch.
    pub first: usize,
    /// Split of the input.
    pub input: Split,
    /// Split of the output.
    pub output: Split,
    /// Memory order of the input.
    pub order_in: [usize; 3],
    /// Memory order of the output.
    pub order_out: [usize; 3],
    /// Scaling of forward and of backward.
    pub scale: (Scale, Scale),
}

impl Case {
    /// The product of the transformed lengths.
    pub fn points(&self) -> usize {
        self.axes.iter().map(|&axis| self.shape[axis]).product()
    }

    /// The shape of the output.
    pub fn spectrum_shape(&self) -> [usize; 3] {
        match self.kind {
            Kind::C2c => self.shape,
            Kind::R2c(halved) => crate::dft::half_shape(self.shape, halved),
        }
    }

    /// The factor of a round trip, forward then backward.
    pub fn round_trip(&self) -> f64 {
        let n = self.points();
        n as f64 * self.scale.0.factor(n) * self.scale.1.factor(n)
    }
}

/// All cases of the table.
///
/// # Panics
/// If a line of the table is malformed.
pub fn cases() -> Vec<Case> {
    include_str!("../cases.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| parse(line).unwrap_or_else(|| panic!("cases.txt: `{line}`")))
        .collect()
}

fn parse(line: &str) -> Option<Case> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [shape, kind, axes, batch, input, output, order_in, order_out, scale] = words[..] else {
        return None;
    };
    let shape: Vec<usize> = shape.split('x').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let (forward, backward) = scale.split_once('/')?;
    Some(Case {
        line: words.join(" "),
        shape: shape.try_into().ok()?,
        kind: match kind.split_once(':') {
            None if kind == "c2c" => Kind::C2c,
            Some(("r2c", axis)) => Kind::R2c(axis.parse().ok()?),
            _ => return None,
        },
        axes: digits(axes)?,
        batch: batch.parse().ok()?,
        first: 0,
        input: split(input)?,
        output: split(output)?,
        order_in: digits(order_in)?.try_into().ok()?,
        order_out: digits(order_out)?.try_into().ok()?,
        scale: (scaling(forward)?, scaling(backward)?),
    })
}

fn digits(word: &str) -> Option<Vec<usize>> {
    word.chars().map(|c| c.to_digit(3).map(|d| d as usize)).collect()
}

fn split(word: &str) -> Option<Split> {
    Some(match word.split_once(':') {
        None if word == "bricks" => Split::Bricks,
        None if word == "boxes" => Split::Boxes,
        None if word == "best" => Split::Best,
        Some(("slabs", axis)) => Split::Slabs(axis.parse().ok()?),
        Some(("pencils", axis)) => Split::Pencils(axis.parse().ok()?),
        _ => return None,
    })
}

fn scaling(word: &str) -> Option<Scale> {
    Some(match word {
        "none" => Scale::Unscaled,
        "full" => Scale::Full,
        "symmetric" => Scale::Symmetric,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn all<T: Eq + std::hash::Hash>(of: impl Fn(&Case) -> T) -> HashSet<T> {
        cases().iter().map(of).collect()
    }

    #[test]
    fn the_table_covers_shapes_kinds_orders_splits_and_scales() {
        let shapes = all(|c| c.shape);
        for shape in [
            [5, 6, 7],
            [9, 9, 9],
            [19, 20, 21],
            [19, 15, 25],
            [31, 31, 1],
            [11, 11, 22],
            [16, 1, 15],
            [24, 24, 24],
        ] {
            assert!(shapes.contains(&shape), "{shape:?}");
        }
        let lengths: HashSet<usize> = cases()
            .iter()
            .flat_map(|c| c.axes.iter().map(|&axis| c.shape[axis]).collect::<Vec<_>>())
            .collect();
        let prime = |n: &usize| (2..*n).all(|d| !n.is_multiple_of(d));
        for n in (1..=101).filter(prime) {
            assert!(lengths.contains(&n), "a transformed length of {n}");
        }
        let half: HashSet<_> = all(|c| (c.kind, c.batch));
        for axis in 0..3 {
            assert!(half.contains(&(Kind::R2c(axis), 1)) && half.contains(&(Kind::R2c(axis), 5)));
        }
        assert_eq!(all(|c| c.order_in).len(), 6);
        assert_eq!(all(|c| c.order_out).len(), 6);
        assert_eq!(all(|c| c.input).len(), 8);
        assert_eq!(all(|c| c.output).len(), 9);
        assert_eq!(all(|c| c.scale.0).len(), 3);
        assert_eq!(all(|c| c.scale.1).len(), 3);
        let subsets: HashSet<Vec<usize>> = all(|c| {
            let mut axes = c.axes.clone();
            axes.sort_unstable();
            axes
        });
        assert_eq!(subsets.len(), 7, "every subset of the axes");
    }

    #[test]
    fn every_case_is_valid() {
        for case in cases() {
            let axes: HashSet<_> = case.axes.iter().collect();
            assert_eq!(axes.len(), case.axes.len(), "{}", case.line);
            if let Kind::R2c(halved) = case.kind {
                assert!(case.axes.contains(&halved), "{}", case.line);
            }
            assert!(ORDERS.contains(&case.order_in) && ORDERS.contains(&case.order_out), "{}", case.line);
            assert_ne!(case.input, Split::Best, "{}", case.line);
        }
    }

    #[test]
    fn a_malformed_line_is_rejected() {
        for line in [
            "5x6 c2c 012 1 bricks bricks 012 012 none/full",
            "5x6x7 c2c 013 1 bricks bricks 012 012 none/full",
        ] {
            assert_eq!(parse(line), None);
        }
    }
}
