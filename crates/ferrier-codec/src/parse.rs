//! Parameters of codecs.

use crate::Error;

fn wrong(codec: &'static str, expected: String, given: &str) -> Error {
    Error::Parameter { codec, expected, given: given.into() }
}

/// No parameter.
pub(crate) fn nothing(codec: &'static str, given: &str) -> Result<(), Error> {
    if given.is_empty() { Ok(()) } else { Err(wrong(codec, "no parameter".into(), given)) }
}

/// An integer between two others.
pub(crate) fn integer(codec: &'static str, given: &str, least: u32, most: u32) -> Result<u32, Error> {
    let digits = !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_digit());
    match given.parse() {
        Ok(value) if digits && (least..=most).contains(&value) => Ok(value),
        _ => Err(wrong(codec, format!("{codec}:B with B from {least} to {most}"), given)),
    }
}

/// A number between two others.
pub(crate) fn number(
    codec: &'static str,
    pattern: &str,
    given: &str,
    least: f64,
    most: f64,
) -> Result<f64, Error> {
    match given.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(wrong(codec, format!("{pattern} from {least} to {most}"), given)),
    }
}

/// Something else.
pub(crate) fn neither<T>(codec: &'static str, expected: &str, given: &str) -> Result<T, Error> {
    Err(wrong(codec, expected.into(), given))
}
