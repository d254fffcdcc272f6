//! The constants of `fftw3.h` and `fftw3-mpi.h` that decide something here.

use std::ffi::{c_int, c_uint};

use ferrier::Kind;

pub const FORWARD: c_int = -1;
pub const BACKWARD: c_int = 1;

pub const EXHAUSTIVE: c_uint = 1 << 3;
pub const PATIENT: c_uint = 1 << 5;
pub const SCRAMBLED_IN: c_uint = 1 << 27;
pub const SCRAMBLED_OUT: c_uint = 1 << 28;
pub const TRANSPOSED_IN: c_uint = 1 << 29;
pub const TRANSPOSED_OUT: c_uint = 1 << 30;

/// Names of `fftw_r2r_kind`, by value, and the kinds that Ferrier has. Both libraries number and scale them alike.
const R2R: [(&str, Option<Kind>); 11] = [
    ("FFTW_R2HC", None),
    ("FFTW_HC2R", None),
    ("FFTW_DHT", None),
    ("FFTW_REDFT00", Some(Kind::Dct1)),
    ("FFTW_REDFT01", Some(Kind::Dct3)),
    ("FFTW_REDFT10", Some(Kind::Dct2)),
    ("FFTW_REDFT11", Some(Kind::Dct4)),
    ("FFTW_RODFT00", Some(Kind::Dst1)),
    ("FFTW_RODFT01", Some(Kind::Dst3)),
    ("FFTW_RODFT10", Some(Kind::Dst2)),
    ("FFTW_RODFT11", Some(Kind::Dst4)),
];

/// The kind of a real transform.
///
/// # Errors
/// Says which value Ferrier does not have.
pub fn r2r_kind(value: c_int) -> Result<Kind, String> {
    match usize::try_from(value).ok().and_then(|value| R2R.get(value)) {
        Some((_, Some(kind))) => Ok(*kind),
        Some((name, None)) => Err(format!("transforms of kind {name} are left to FFTW")),
        None => Err(format!("{value} is not a kind of real transform")),
    }
}
