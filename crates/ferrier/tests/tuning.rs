//! Tuning and wisdom.

mod common;
mod tune;
mod wisdom;
mod wisdom_compat;
