//! JSON of arguments and results.

use serde_json::Value;

use crate::status::{Failure, Outcome, Status};

pub(crate) fn read<T: for<'a> serde::Deserialize<'a>>(name: &str, text: &str) -> Outcome<T> {
    serde_json::from_str(text)
        .map_err(|error| Failure::argument(name, format_args!("is not as expected: {error}")))
}

pub(crate) fn write<T: serde::Serialize + ?Sized>(value: &T) -> Outcome<String> {
    serde_json::to_string(value).map_err(|error| Failure::new(Status::Other, error.to_string()))
}

pub(crate) fn value<T: serde::Serialize + ?Sized>(value: &T) -> Outcome<Value> {
    serde_json::to_value(value).map_err(|error| Failure::new(Status::Other, error.to_string()))
}

pub(crate) fn memory(memory: ferrier::Memory) -> Outcome<Value> {
    let mut value = value(&memory)?;
    value["total"] = memory.total().into();
    Ok(value)
}

/// The error of a part that does not exist.
pub(crate) fn unknown(what: &str, known: &str) -> Failure {
    Failure::new(Status::UnknownName, format!("there is no part `{what}`; known are: {known}"))
}
