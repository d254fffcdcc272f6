//! Texts that callers own.

use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::pointer::{In, Out};
use crate::status::{Failure, Outcome, Status, guard};

/// By address: what is not in it is no text of ours.
static TEXTS: LazyLock<Mutex<HashMap<usize, CString>>> = LazyLock::new(Mutex::default);

/// Gives a text to the caller.
pub(crate) fn give(mut out: Out<*mut c_char>, name: &str, text: impl Into<Vec<u8>>) -> Outcome {
    let slot = out.slot(name)?;
    let mut bytes = text.into();
    bytes.retain(|&byte| byte != 0);
    let text = CString::new(bytes).map_err(|error| Failure::new(Status::Other, error.to_string()))?;
    let address = text.as_ptr();
    TEXTS.lock().unwrap_or_else(PoisonError::into_inner).insert(address.addr(), text);
    slot.set(address.cast_mut());
    Ok(())
}

/// Frees a text that a function of this library has given (char **). NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_string_free(text: In<c_char>) -> Status {
    guard(|| {
        if text.is_null() {
            return Ok(());
        }
        let known = TEXTS.lock().unwrap_or_else(PoisonError::into_inner).remove(&text.addr());
        known.map(drop).ok_or_else(|| Failure::argument("text", "is not a text that this library gave"))
    })
}
