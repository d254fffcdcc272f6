//! The libraries of CUDA, found at run time.

use std::ffi::CString;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use cudarc::driver::sys::CUdevice_attribute;
use cudarc::driver::{DriverError, result as driver};
use serde::Serialize;

use crate::{Error, Result};

/// A GPU, as its driver describes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GpuInfo {
    /// Its number.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Compute capability, such as 9.0.
    pub capability: String,
    /// Multiprocessors.
    pub multiprocessors: usize,
    /// Its memory.
    pub memory_bytes: usize,
    /// Its last cache.
    pub cache_bytes: usize,
}

/// The result of [`info`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CudaInfo {
    /// The GPUs.
    pub gpus: Vec<GpuInfo>,
    /// The newest CUDA that the driver knows, such as 13.0.
    pub driver: Option<String>,
    /// Version of cuFFT.
    pub cufft: Option<String>,
    /// Version of NVRTC, which compiles our kernels.
    pub nvrtc: Option<String>,
    /// Missing libraries, and where they were searched.
    pub missing: Option<String>,
}

/// One of the three libraries.
struct Library {
    name: &'static str,
    what: &'static str,
    found: AtomicBool,
}

impl Library {
    const fn new(name: &'static str, what: &'static str) -> Library {
        Library { name, what, found: AtomicBool::new(false) }
    }

    /// Whether it is there. Once found it is never unloaded: initialisers of these libraries allocate memory that unloading
    /// does not free. A program may make a missing one available later.
    fn is_here(&self) -> bool {
        let load = |name: CString| {
            // SAFETY: loads the library by its name, which ends in a zero; its initialisers run: what we ask for.
            unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NODELETE) }
        };
        let names = || cudarc::get_lib_name_candidates(self.name).into_iter().flat_map(CString::new);
        self.found.load(Relaxed) || {
            let found = names().any(|name| !load(name).is_null());
            self.found.store(found, Relaxed);
            found
        }
    }

    /// cudarc panics if a library is missing, so this is checked first.
    fn check(&self) -> Result<()> {
        if self.is_here() {
            return Ok(());
        }
        let mut names = cudarc::get_lib_name_candidates(self.name);
        names.dedup();
        let path = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
        Err(Error::device(format!(
            "no CUDA: {} was not found; searched for {} in the system's library folders and in LD_LIBRARY_PATH \
             ({})",
            self.what,
            names.join(", "),
            if path.is_empty() { "not set" } else { &path }
        )))
    }
}

static LIBRARIES: [Library; 3] = [
    Library::new("cuda", "the driver of NVIDIA's GPUs"),
    Library::new("nvrtc", "NVRTC, which compiles kernels"),
    Library::new("cufft", "cuFFT"),
];

/// Checks that all libraries exist and the driver starts.
///
/// # Errors
/// Says which is missing and what was searched.
pub fn check() -> Result<()> {
    LIBRARIES.iter().try_for_each(Library::check)?;
    start_driver().map_err(|error| {
        Error::device(format!("no CUDA: the driver does not start: {error:?}")).caused_by(error)
    })
}

/// Starts the driver, once: each start that fails leaks memory of the driver, and a program may ask for GPUs often.
fn start_driver() -> std::result::Result<(), DriverError> {
    static STARTED: OnceLock<std::result::Result<(), DriverError>> = OnceLock::new();
    *STARTED.get_or_init(driver::init)
}

/// The number of GPUs; 0 where CUDA is missing.
pub fn gpu_count() -> usize {
    if check().is_ok() { gpus() } else { 0 }
}

/// The GPUs and libraries of this machine.
pub fn info() -> CudaInfo {
    let mut info = CudaInfo::default();
    let missing: Vec<String> =
        LIBRARIES.iter().filter_map(|library| library.check().err()).map(|error| error.to_string()).collect();
    info.missing = (!missing.is_empty()).then(|| missing.join("; "));
    if LIBRARIES[0].is_here() {
        match start_driver() {
            Ok(()) => {
                info.driver = driver_version();
                info.gpus = (0..gpus()).filter_map(|index| describe(index).ok()).collect();
            }
            Err(error) => info.missing = Some(format!("no CUDA: the driver does not start: {error:?}")),
        }
    }
    if LIBRARIES[1].is_here() {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the library is there; both places are ours.
        let status = unsafe { cudarc::nvrtc::sys::nvrtcVersion(&mut major, &mut minor) };
        info.nvrtc = status.result().is_ok().then(|| format!("{major}.{minor}"));
    }
    if LIBRARIES[2].is_here() {
        // 11.4.2 is 11402, 12.0.0 is 12000.
        let version = cudarc::cufft::result::get_version().ok();
        info.cufft = version.map(|v| format!("{}.{}.{}", v / 1000, v / 100 % 10, v % 100));
    }
    info
}

fn gpus() -> usize {
    driver::device::get_count().map_or(0, |count| count.max(0) as usize)
}

fn driver_version() -> Option<String> {
    let mut version = 0;
    // SAFETY: the library is there; the place is ours.
    let status = unsafe { cudarc::driver::sys::cuDriverGetVersion(&mut version) };
    status.result().ok().map(|()| format!("{}.{}", version / 1000, version % 1000 / 10))
}

fn describe(index: usize) -> std::result::Result<GpuInfo, cudarc::driver::DriverError> {
    use CUdevice_attribute as A;
    let device = driver::device::get(index as i32)?;
    // SAFETY: a device that the driver has just named.
    let attribute = |which| unsafe { driver::device::get_attribute(device, which) };
    Ok(GpuInfo {
        index,
        name: driver::device::get_name(device)?,
        capability: format!(
            "{}.{}",
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?
        ),
        multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as usize,
        // SAFETY: as above.
        memory_bytes: unsafe { driver::device::total_mem(device)? },
        cache_bytes: attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
    })
}
