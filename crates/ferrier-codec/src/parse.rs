//! Parameters of codecs.

use crate::error::Error;

fn wrong(name: &'static str, expected: String, parameter: &str) -> Error {
    Error::Parameter { name, parameter: parameter.into(), expected }
}

/// Checks that there is no parameter.
pub(crate) fn none(name: &'static str, parameter: &str) -> Result<(), Error> {
    if parameter.is_empty() { Ok(()) } else { Err(wrong(name, "no parameter".into(), parameter)) }
}

/// An integer from `least` to `most`.
pub(crate) fn integer(name: &'static str, parameter: &str, least: u32, most: u32) -> Result<u32, Error> {
    let digits = !parameter.is_empty() && parameter.bytes().all(|byte| byte.is_ascii_digit());
    match parameter.parse() {
        Ok(value) if digits && (least..=most).contains(&value) => Ok(value),
        _ => Err(wrong(name, format!("{name}:B with B from {least} to {most}"), parameter)),
    }
}

/// A real from `least` to `most`.
pub(crate) fn real(
    name: &'static str,
    pattern: &str,
    parameter: &str,
    least: f64,
    most: f64,
) -> Result<f64, Error> {
    match parameter.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(wrong(name, format!("{pattern} from {least} to {most}"), parameter)),
    }
}

/// The error of a parameter of an unknown form.
pub(crate) fn unexpected<T>(name: &'static str, expected: &str, parameter: &str) -> Result<T, Error> {
    Err(wrong(name, expected.into(), parameter))
}
