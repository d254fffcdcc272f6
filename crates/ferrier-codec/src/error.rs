//! Errors of names, parameters and encoded bytes.

/// An error of a codec's name, of its parameter, or of encoded bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No codec has this name.
    #[error("there is no codec {name:?}: expected one of {expected}")]
    #[non_exhaustive]
    Name {
        /// The name that was given.
        name: String,
        /// The names in [`CODECS`](crate::CODECS), with the form of their parameters.
        expected: String,
    },
    /// A parameter is missing, superfluous or out of range.
    #[error("codec {name}: expected {expected}, got {parameter:?}")]
    #[non_exhaustive]
    Parameter {
        /// The name of the codec, without its parameter.
        name: &'static str,
        /// The parameter that was given: the text after the colon.
        parameter: String,
        /// The form and the range of the parameter.
        expected: String,
    },
    /// The number of bytes of a chunk is wrong.
    #[error("codec {name}: expected a chunk of {expected} bytes, got {got}")]
    #[non_exhaustive]
    Length {
        /// The name of the codec, without its parameter.
        name: &'static str,
        /// The number of bytes of such a chunk.
        expected: usize,
        /// The number of bytes that were given.
        got: usize,
    },
    /// The bytes of a chunk are malformed.
    #[error("codec {name}: the bytes of a chunk say {what}")]
    #[non_exhaustive]
    Corrupt {
        /// The name of the codec, without its parameter.
        name: &'static str,
        /// What is malformed.
        what: &'static str,
    },
}

impl Error {
    pub(crate) fn check_length(name: &'static str, expected: usize, got: usize) -> Result<(), Error> {
        if expected == got { Ok(()) } else { Err(Error::Length { name, expected, got }) }
    }
}
