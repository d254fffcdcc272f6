//! The user's axes and the library's three.
//!
//! A file (or a SHAPE on the command line) has one to three axes; the library always has
//! three, the leading ones of length 1. Options count the user's axes.

use std::fmt;
use std::str::FromStr;

use crate::failure::{Failure, Outcome, fail};

/// The shape of an array as the user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserShape {
    lengths: Vec<usize>,
}

impl UserShape {
    /// Checks a shape: one to three axes, none empty, and few enough elements
    /// that a complex double array of them can be addressed.
    ///
    /// # Errors
    /// Names the violated condition.
    pub fn new(lengths: &[usize]) -> Outcome<Self> {
        let shape = UserShape { lengths: lengths.to_vec() };
        if lengths.is_empty() {
            return fail("the array has no axes (it is a scalar); 1 to 3 are needed");
        }
        if lengths.len() > 3 {
            return fail(format!("shape {shape} has {} axes; 1 to 3 are supported", lengths.len()));
        }
        if let Some(axis) = lengths.iter().position(|&n| n == 0) {
            return fail(format!("shape {shape} has no elements: axis {axis} is of length 0"));
        }
        // The halved axis of a real transform may grow from n to 2 (n / 2 + 1).
        let bytes = lengths
            .iter()
            .try_fold(16usize, |product, &n| product.checked_mul(n.checked_add(2)?))
            .filter(|&bytes| bytes <= isize::MAX as usize);
        if bytes.is_none() {
            return fail(format!("shape {shape} is too large: its size in bytes does not fit in 63 bits"));
        }
        Ok(shape)
    }

    /// The lengths of the user's axes.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// How many axes the user has.
    pub fn ndim(&self) -> usize {
        self.lengths.len()
    }

    /// The library's shape: leading axes of length 1.
    pub fn shape(&self) -> [usize; 3] {
        self.embed(&self.lengths)
    }

    /// One number per user axis as one per library axis, 1 for the leading ones.
    fn embed(&self, numbers: &[usize]) -> [usize; 3] {
        let mut three = [1; 3];
        three[3 - numbers.len()..].copy_from_slice(numbers);
        three
    }

    /// The library's axis for the user's `axis`; negative ones count from the
    /// last, as in numpy. `what` names the option for the error.
    ///
    /// # Errors
    /// There is no such axis.
    pub fn axis(&self, axis: isize, what: &str) -> Outcome<usize> {
        let ndim = self.ndim() as isize;
        let counted = if axis < 0 { axis + ndim } else { axis };
        if (0..ndim).contains(&counted) {
            return Ok(counted as usize + 3 - self.ndim());
        }
        let known = (0..ndim).map(|a| a.to_string()).collect::<Vec<_>>().join(", ");
        fail(format!("{what}: there is no axis {axis}; shape {self} has {known}"))
    }

    /// The library's axes for the user's list, in the user's order.
    ///
    /// # Errors
    /// An axis that does not exist or is listed twice.
    pub fn axes(&self, axes: &[isize]) -> Outcome<Vec<usize>> {
        let mut list = Vec::with_capacity(3);
        for &axis in axes {
            let axis_here = self.axis(axis, "--axes")?;
            if list.contains(&axis_here) {
                return fail(format!("--axes {}: axis {axis} is listed twice", joined(axes, ",")));
            }
            list.push(axis_here);
        }
        Ok(list)
    }

    /// The library's rank grid for the user's.
    ///
    /// # Errors
    /// A grid with another number of axes, or that does not multiply to `ranks`.
    pub fn grid(&self, grid: &Grid, ranks: usize, what: &str) -> Outcome<[usize; 3]> {
        if grid.0.len() != self.ndim() {
            return fail(format!(
                "{what} {grid}: the grid has {} numbers but the array ({self}) has {} axes",
                grid.0.len(),
                self.ndim()
            ));
        }
        let product = grid.0.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
        if product != Some(ranks) {
            let product = product.map_or("too many".to_string(), |n| n.to_string());
            return fail(format!("{what} {grid}: the grid is for {product} ranks, not for {ranks}"));
        }
        Ok(self.embed(&grid.0))
    }

    /// The user's axes of a shape, box or permutation of the library's.
    pub fn users(&self, three: [usize; 3]) -> Vec<usize> {
        three[3 - self.ndim()..].to_vec()
    }
}

impl fmt::Display for UserShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.lengths, "x"))
    }
}

/// SHAPE of `bench` and `plan`: `256` is a cube; `256x128` has two axes, `1d:256` has one.
impl FromStr for UserShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let how = "a shape is written 256 (a cube), 256x256x128 or 1d:256 (one axis)";
        let (line, text) = text.strip_prefix("1d:").map_or((false, text), |text| (true, text));
        let lengths = match numbers(text, how)?[..] {
            [n] if !line => vec![n; 3],
            [_, _, ..] if line => return Err(how.into()),
            ref lengths => lengths.to_vec(),
        };
        UserShape::new(&lengths).map_err(|failure| failure.message)
    }
}

/// A rank grid, one number per user axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid(pub Vec<usize>);

impl FromStr for Grid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let grid = numbers(text, "a grid is written 2x2x1, one number per axis")?;
        if grid.contains(&0) {
            return Err("a grid has at least 1 rank along every axis".into());
        }
        Ok(Grid(grid))
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.0, "x"))
    }
}

/// A layout as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutName {
    /// All axes split.
    Bricks,
    /// One axis split.
    Slabs(isize),
    /// One axis whole, the others split.
    Pencils(isize),
    /// As the input.
    Same,
    /// The layout that needs no reshape.
    Best,
}

const LAYOUTS: &str = "bricks, slabs:A, pencils:A";

impl FromStr for LayoutName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, axis) = match text.split_once(':') {
            Some((name, axis)) => {
                let parsed = axis.parse::<isize>();
                (name, Some(parsed.map_err(|_| format!("`{axis}` is not the number of an axis"))?))
            }
            None => (text, None),
        };
        match (name, axis) {
            ("bricks", None) => Ok(LayoutName::Bricks),
            ("same", None) => Ok(LayoutName::Same),
            ("best", None) => Ok(LayoutName::Best),
            ("slabs", Some(axis)) => Ok(LayoutName::Slabs(axis)),
            ("pencils", Some(axis)) => Ok(LayoutName::Pencils(axis)),
            ("slabs" | "pencils", None) => Err(format!("which axis? write {name}:0, {name}:1 or {name}:2")),
            ("bricks" | "same" | "best", Some(_)) => Err(format!("{name} takes no axis")),
            _ => Err(format!("unknown layout `{text}`; known are: {LAYOUTS} (and same, best for an output)")),
        }
    }
}

impl fmt::Display for LayoutName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutName::Bricks => f.write_str("bricks"),
            LayoutName::Slabs(axis) => write!(f, "slabs:{axis}"),
            LayoutName::Pencils(axis) => write!(f, "pencils:{axis}"),
            LayoutName::Same => f.write_str("same"),
            LayoutName::Best => f.write_str("best"),
        }
    }
}

/// The list of axes of `--axes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisList(pub Vec<isize>);

impl FromStr for AxisList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',')
            .map(|part| part.trim().parse::<isize>())
            .collect::<Result<_, _>>()
            .map(AxisList)
            .map_err(|_| "axes are written 0,2".into())
    }
}

fn numbers(text: &str, hint: &str) -> Result<Vec<usize>, String> {
    text.split(['x', 'X'])
        .map(|part| {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            match part.parse::<usize>() {
                Ok(n) if digits => Ok(n),
                _ if digits => Err(format!("{part} is too large")),
                _ => Err(hint.to_string()),
            }
        })
        .collect()
}

fn joined<N: fmt::Display>(numbers: &[N], separator: &str) -> String {
    numbers.iter().map(N::to_string).collect::<Vec<_>>().join(separator)
}

/// The real length behind a halved axis of `m` frequencies.
///
/// # Errors
/// `last` does not give `m` frequencies, or there is no default.
pub fn real_length(m: usize, last: Option<usize>) -> Outcome<usize> {
    match last {
        Some(n) if n > 0 && n / 2 + 1 == m => Ok(n),
        Some(n) => {
            let fits = if m == 1 { "1".to_string() } else { format!("{} or {}", 2 * m - 2, 2 * m - 1) };
            Err(Failure::new(format!(
                "--last {n} does not match: the halved axis has {m} frequencies, so its real length is {fits}"
            )))
        }
        None if m == 1 => {
            fail("the halved axis has 1 frequency: its real length can only be 1; give --last 1")
        }
        None => Ok(2 * (m - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_a_cube_and_axes_are_the_users() {
        let cube: UserShape = "8".parse().unwrap();
        assert_eq!(cube.shape(), [8, 8, 8]);
        let plane: UserShape = "4x6".parse().unwrap();
        assert_eq!(plane.shape(), [1, 4, 6]);
        assert_eq!(plane.axis(0, "").unwrap(), 1);
        assert_eq!(plane.axis(-1, "").unwrap(), 2);
        assert_eq!(plane.axes(&[1, 0]).unwrap(), [2, 1]);
        assert_eq!(plane.grid(&Grid(vec![2, 3]), 6, "").unwrap(), [1, 2, 3]);
        assert_eq!(plane.users([1, 4, 6]), [4, 6]);
    }

    #[test]
    fn invalid_shapes_and_layouts_are_refused() {
        for bad in
            ["", "x", "0", "4x0", "-3", "+3", "1x2x3x4", "99999999999999999999", "4294967296x4294967296"]
        {
            assert!(bad.parse::<UserShape>().is_err(), "{bad}");
        }
        let plane = UserShape::new(&[4, 6]).unwrap();
        assert!(plane.axis(2, "").is_err());
        assert!(plane.axes(&[1, -1]).unwrap_err().message.contains("twice"));
        assert!(plane.grid(&Grid(vec![2, 2]), 6, "").is_err());
        assert!(plane.grid(&Grid(vec![2, 2, 1]), 4, "").is_err());
        for bad in ["slabs", "slabs:", "slabs:z", "bricks:1", "tiles", ""] {
            assert!(bad.parse::<LayoutName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn halved_axes_have_two_real_lengths() {
        assert_eq!(real_length(5, None).unwrap(), 8);
        assert_eq!(real_length(5, Some(9)).unwrap(), 9);
        assert_eq!(real_length(1, Some(1)).unwrap(), 1);
        assert!(real_length(1, None).is_err());
        assert!(real_length(5, Some(10)).is_err());
        assert!(real_length(1, Some(0)).is_err());
    }
}
