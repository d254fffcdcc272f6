//! Which array of which file: `a.npy`, `a.zarr`, `a.zarr::density[3]`.

use std::path::{Path, PathBuf};

/// The formats of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// numpy's file of one array.
    Npy,
    /// Elements alone.
    Raw,
    /// A Zarr store: a folder of chunks.
    Zarr,
}

/// Names of raw files end with one of these.
const RAW: [&str; 3] = ["raw", "bin", "dat"];

impl Format {
    /// The format of a file that is written, by its name: `.zarr`, or with `::`, is Zarr; `.raw`, `.bin` and `.dat`
    /// are raw; all others are `.npy`.
    pub fn of_name(path: &Path) -> Format {
        match path.extension().and_then(|end| end.to_str()) {
            _ if Location::parse(path).is_zarr() => Format::Zarr,
            Some(end) if RAW.contains(&end) => Format::Raw,
            _ => Format::Npy,
        }
    }
}

/// A name of the command line or of a program, in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// The file, or the folder of the store.
    pub path: PathBuf,
    /// The array in the store, behind `::`.
    pub array: Option<String>,
    /// The text in brackets.
    pub slice: Option<String>,
}

impl Location {
    /// Takes a name apart. Only names of stores have parts: files may have any name.
    pub fn parse(name: &Path) -> Location {
        let whole = || Location { path: name.into(), array: None, slice: None };
        let Some(text) = name.to_str() else { return whole() };
        let (text, slice) = match text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
            Some((text, slice)) => (text, Some(slice.to_string())),
            None => (text, None),
        };
        match text.split_once("::") {
            Some((path, array)) if !path.is_empty() => {
                let array = array.trim_matches('/').to_string();
                Location { path: path.into(), array: (!array.is_empty()).then_some(array), slice }
            }
            _ if slice.is_some() && text.ends_with(".zarr") => {
                Location { path: text.into(), array: None, slice }
            }
            _ => whole(),
        }
    }

    /// Is it the name of a store?
    pub fn is_zarr(&self) -> bool {
        let named = self.path.extension().is_some_and(|end| end == "zarr");
        named || self.array.is_some() || self.slice.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (String, Option<String>, Option<String>) {
        let Location { path, array, slice } = Location::parse(Path::new(text));
        (path.to_str().unwrap().into(), array, slice)
    }

    #[test]
    fn names_have_parts() {
        let parts = |path: &str, array: Option<&str>, slice: Option<&str>| {
            (path.to_string(), array.map(str::to_string), slice.map(str::to_string))
        };
        assert_eq!(parse("a.npy"), parts("a.npy", None, None));
        assert_eq!(parse("a[3].npy"), parts("a[3].npy", None, None));
        assert_eq!(parse("a.dat[3]"), parts("a.dat[3]", None, None));
        assert_eq!(parse("x/a.zarr"), parts("x/a.zarr", None, None));
        assert_eq!(parse("a.zarr[3]"), parts("a.zarr", None, Some("3")));
        assert_eq!(parse("a.zarr::density"), parts("a.zarr", Some("density"), None));
        assert_eq!(parse("a::/b/c/[3,:]"), parts("a", Some("b/c"), Some("3,:")));
        assert_eq!(parse("a.zarr::[3]"), parts("a.zarr", None, Some("3")));
        for (name, format) in [
            ("a", Format::Npy),
            ("a.npy", Format::Npy),
            ("a.raw", Format::Raw),
            ("a.b.dat", Format::Raw),
            ("a.zarr", Format::Zarr),
            ("a::b", Format::Zarr),
        ] {
            assert_eq!(Format::of_name(Path::new(name)), format, "{name}");
        }
    }
}
