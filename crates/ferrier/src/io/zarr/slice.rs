//! Parts of arrays: `[3]`, `[3,:,2:5]`.

use std::ops::Range;

/// What is taken of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// One index; the axis is gone.
    Index(usize),
    /// A range from the first index to one past the last.
    Range(usize, usize),
}

impl Pick {
    /// The indices.
    pub fn range(self) -> Range<usize> {
        match self {
            Pick::Index(index) => index..index + 1,
            Pick::Range(from, to) => from..to,
        }
    }
}

/// What is taken of each axis of an array of this shape: all of the axes that `text` does not mention.
///
/// # Errors
/// More axes than the array has; an index outside it; not an index or range.
pub fn picks(text: Option<&str>, shape: &[usize]) -> Result<Vec<Pick>, String> {
    let words: Vec<&str> = text.map_or(Vec::new(), |text| text.split(',').collect());
    let text = text.unwrap_or_default();
    if words.len() > shape.len() {
        return Err(format!("[{text}] has {} indices, the array has {} axes", words.len(), shape.len()));
    }
    let pick = |(axis, &length): (usize, &usize)| {
        let Some(word) = words.get(axis) else { return Ok(Pick::Range(0, length)) };
        let number = |word: &str, default: usize| match word.trim() {
            "" => Ok(default),
            word => word
                .parse()
                .map_err(|_| format!("[{text}]: `{word}` is not an index; write 3, 2:5 or : for each axis")),
        };
        match word.split_once(':') {
            None if word.trim().is_empty() => Err(format!("[{text}] has an empty index")),
            None => match number(word, 0)? {
                index if index < length => Ok(Pick::Index(index)),
                index => {
                    Err(format!("[{text}]: axis {axis} has {length} indices, {index} is not one of them"))
                }
            },
            Some((from, to)) => match (number(from, 0)?, number(to, length)?) {
                (from, to) if from < to && to <= length => Ok(Pick::Range(from, to)),
                _ => {
                    Err(format!("[{text}]: axis {axis} has {length} indices, {word} is not a range of them"))
                }
            },
        }
    };
    shape.iter().enumerate().map(pick).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_checked() {
        let picks = |text: &str| picks(Some(text), &[4, 5, 6]);
        assert_eq!(picks("3").unwrap(), [Pick::Index(3), Pick::Range(0, 5), Pick::Range(0, 6)]);
        assert_eq!(picks(":, 2:, :3").unwrap(), [Pick::Range(0, 4), Pick::Range(2, 5), Pick::Range(0, 3)]);
        assert_eq!(super::picks(None, &[7]).unwrap(), [Pick::Range(0, 7)]);
        for (bad, part) in [
            ("4", "axis 0 has 4 indices"),
            ("0,0,0,0", "4 indices, the array has 3 axes"),
            ("x", "`x` is not an index"),
            ("-1", "`-1` is not an index"),
            ("", "empty index"),
            ("2:2", "not a range"),
            ("3:1", "not a range"),
            (":9", "not a range"),
            ("99999999999999999999", "not an index"),
        ] {
            let error = picks(bad).unwrap_err();
            assert!(error.contains(part), "{bad}: {error}");
        }
    }
}
