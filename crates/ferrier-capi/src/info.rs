//! The library, the machine, and wisdom.

use std::ffi::{CStr, c_char};
use std::path::Path;

use ferrier::wisdom::Wisdom;

use crate::comm::Comm;
use crate::handle::Handle;
use crate::json;
use crate::pointer::{In, Out};
use crate::status::{Failure, Status, guard};
use crate::text::give;

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};

/// The version of the library: "0.1.0". Valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_version() -> *const c_char {
    VERSION.as_ptr()
}

/// The machine and what the library can do on it, as JSON: processor, cores, caches, memory, exchanges, kernels, codecs,
/// devices, GPUs. Free it with ferrier_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_info(text: Out<*mut c_char>) -> Status {
    guard(|| {
        let mut value = json::value(&ferrier::machine::info())?;
        value["version"] = env!("CARGO_PKG_VERSION").into();
        value["exchanges"] = ferrier::exchange::EXCHANGES.iter().map(|entry| entry.name).collect();
        value["kernels"] = ferrier::kernel::KERNELS.iter().map(|entry| entry.name).collect();
        value["codecs"] = ferrier::codec::CODECS.iter().map(|entry| entry.name).collect();
        value["devices"] = ferrier::device::DEVICES.iter().map(|entry| entry.name).collect();
        value["simd_used"] = ferrier::kernel::simd()?.into();
        #[cfg(feature = "cuda")]
        {
            value["cuda"] = json::value(&ferrier::cuda::info())?;
        }
        give(text, "text", value.to_string())
    })
}

/// The user's wisdom file. FERRIER_STATUS_WISDOM where there is none (FERRIER_WISDOM=off). Free the text with
/// ferrier_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_wisdom_file(text: Out<*mut c_char>) -> Status {
    guard(|| {
        let none = || Failure::new(Status::Wisdom, "this user has no wisdom file");
        let path = ferrier::wisdom::user_file().ok_or_else(none)?;
        give(text, "text", path.display().to_string())
    })
}

/// Adds the entries of a wisdom file to another one, which is created where it does not exist; of two entries for one
/// problem the newer one stays.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_wisdom_merge(from: In<c_char>, to: In<c_char>) -> Status {
    guard(|| {
        let from = Path::new(from.text("from")?);
        // Reading a file that is not there gives no entries, which would hide a wrong name.
        if !from.is_file() {
            return Err(Failure::new(Status::Wisdom, format!("there is no wisdom file {}", from.display())));
        }
        let other = Wisdom::read(from)?;
        Wisdom::update(Path::new(to.text("to")?), |wisdom| {
            wisdom.merge(other);
        })?;
        Ok(())
    })
}

/// Measures the machine under these ranks (some seconds) for better estimates of plans, and keeps the result in a wisdom
/// file (NULL: the user's), which rank 0 writes. The speeds as JSON; free it with ferrier_string_free. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_measure_machine(
    comm: Handle<Comm>,
    wisdom: In<c_char>,
    text: Out<*mut c_char>,
) -> Status {
    guard(|| {
        let comm = comm.get("comm")?.get();
        let file = wisdom.optional_text("wisdom")?.map(Path::new);
        let (speeds, _) = ferrier::wisdom::measure_machine(&comm, ferrier::MEASURE_TIME, file)?;
        give(text, "text", json::write(&speeds)?)
    })
}

/// The number of CUDA devices of this machine; 0 where there is no driver.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_cuda_count(count: Out<u64>) -> Status {
    guard(|| {
        #[cfg(feature = "cuda")]
        let found = ferrier::cuda::gpu_count();
        #[cfg(not(feature = "cuda"))]
        let found = 0;
        count.set("count", found as u64)
    })
}
