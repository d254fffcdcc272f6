//! Plans on every kind of problem, and the errors of plans: AddressSanitizer runs this file.

mod calls;
mod cases;
mod common;
mod copies;
mod errors;
mod strides;
mod values;
