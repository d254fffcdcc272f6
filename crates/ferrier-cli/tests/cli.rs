//! The command `ferrier` from the outside: arguments, files, messages, exit codes. One program, because each of its
//! own would take seconds to link.

mod accuracy;
mod codec;
mod commands;
mod common;
mod errors;
mod files;
mod model;
mod modes;
mod numpy;
mod see;
mod spectral;
mod study;
mod tune;
