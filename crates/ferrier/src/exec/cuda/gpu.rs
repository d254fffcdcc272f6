//! A GPU: its context, and the kernels compiled for it.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::{CUdevice_attribute as Attribute, CUfunction_attribute_enum as FunctionAttribute};
use cudarc::driver::{CudaContext, DriverError, result as driver, sys};
use cudarc::nvrtc::{result as nvrtc, sys as nvrtc_sys};

use super::library;
use crate::{Error, Result};

/// An error of the driver, with the operation that failed.
pub(super) fn failed(what: &str) -> impl FnOnce(DriverError) -> Error + '_ {
    move |error| Error::device(format!("{what}: {error:?}")).caused_by(error)
}

/// A GPU of this machine. Cheap to clone; handles of the same GPU share
/// its context and the kernels compiled for it.
#[derive(Clone)]
pub struct Gpu(Arc<Inner>);

struct Inner {
    context: Arc<CudaContext>,
    index: usize,
    name: String,
    capability: (i32, i32),
    /// Bytes of shared memory of a block (at most), and of a multiprocessor.
    shared: [usize; 2],
    /// Bytes of the cache that all multiprocessors share.
    cache: usize,
    /// Each is compiled once, by the first thread that needs it; others wait.
    kernels: Mutex<HashMap<String, Arc<OnceLock<Result<Function>>>>>,
}

/// A kernel, ready to be launched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function(sys::CUfunction);

// SAFETY: a handle into a module that is never unloaded; the driver allows its use from any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// The address of an argument of a launch; the driver copies it.
pub(crate) fn argument<A>(argument: &mut A) -> *mut c_void {
    std::ptr::from_mut(argument).cast()
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GPU {} ({})", self.0.index, self.0.name)
    }
}

impl PartialEq for Gpu {
    fn eq(&self, other: &Gpu) -> bool {
        self.0.index == other.0.index
    }
}

impl Gpu {
    /// Opens GPU number `index`.
    ///
    /// # Errors
    /// Where there is no such GPU, no driver, or a library is missing; says what was searched.
    pub fn new(index: usize) -> Result<Gpu> {
        static ALL: OnceLock<Mutex<HashMap<usize, Gpu>>> = OnceLock::new();
        library::check()?;
        let mut all = ALL.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gpu) = all.get(&index) {
            return Ok(gpu.clone());
        }
        let count = library::gpu_count();
        if index >= count {
            return Err(Error::device(format!("there is no GPU {index}: this machine has {count}")));
        }
        let gpu = Gpu::open(index).map_err(failed("the GPU does not start"))?;
        all.insert(index, gpu.clone());
        Ok(gpu)
    }

    fn open(index: usize) -> std::result::Result<Gpu, DriverError> {
        let context = CudaContext::new(index)?;
        let attribute = |which| context.attribute(which).map(|value| value as usize);
        let shared = [
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        ];
        let cache = attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?;
        let (name, capability) = (context.name()?, context.compute_capability()?);
        let kernels = Mutex::default();
        Ok(Gpu(Arc::new(Inner { context, index, name, capability, shared, cache, kernels })))
    }

    /// Its number.
    pub fn index(&self) -> usize {
        self.0.index
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its context, for programs that call cudarc directly.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.0.context
    }

    /// Bytes of shared memory of a block (at most), and of a multiprocessor.
    pub(super) fn shared_bytes(&self) -> [usize; 2] {
        self.0.shared
    }

    /// Bytes of the cache that all multiprocessors share.
    pub(super) fn cache_bytes(&self) -> usize {
        self.0.cache
    }

    /// Whether a kernel can start while the previous one runs (`early` of [`Function::launch`]).
    pub(super) fn launches_early(&self) -> bool {
        self.0.capability >= (9, 0)
    }

    /// Makes it the current GPU of this thread.
    pub(crate) fn enter(&self) -> Result<()> {
        self.0.context.bind_to_thread().map_err(failed("the GPU does not answer"))
    }

    /// Waits until all work that was enqueued on it is complete.
    ///
    /// # Errors
    /// Where the GPU failed.
    pub fn synchronize(&self) -> Result<()> {
        self.enter()?;
        driver::ctx::synchronize().map_err(failed("the GPU failed"))
    }

    /// Free and total bytes of its memory.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn memory(&self) -> Result<(usize, usize)> {
        self.enter()?;
        driver::mem_get_info().map_err(failed("the GPU does not tell its free memory"))
    }

    /// Lets kernels of this GPU access another GPU's memory.
    pub(crate) fn reach(&self, other: usize) -> Result<()> {
        if other == self.0.index {
            return Ok(());
        }
        let theirs = Gpu::new(other)?;
        self.enter()?;
        // SAFETY: both contexts live as long as the process.
        let status = unsafe { sys::cuCtxEnablePeerAccess(theirs.0.context.cu_ctx(), 0) };
        match status {
            sys::CUresult::CUDA_SUCCESS | sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            other_status => Err(Error::device(format!(
                "GPU {} cannot reach the memory of GPU {other} ({other_status:?}): choose an exchange that sends \
                 messages",
                self.0.index
            ))),
        }
    }

    /// The kernel `name` of a source with these macros: compiled once for
    /// each GPU and process.
    pub(crate) fn kernel(
        &self,
        name: &str,
        source: &[&str],
        macros: &[(&str, String)],
        shared: usize,
    ) -> Result<Function> {
        // Sources may contain formulas of callers.
        let text = {
            let mut hasher = DefaultHasher::new();
            source.hash(&mut hasher);
            hasher.finish()
        };
        let key = format!("{name} {macros:?} {shared} {text:x}");
        let cell = {
            let mut kernels = self.0.kernels.lock().unwrap_or_else(PoisonError::into_inner);
            kernels.entry(key).or_default().clone()
        };
        cell.get_or_init(|| {
            self.enter()?;
            let image = self.compile(name, source, macros)?;
            load(name, &image, shared).map_err(failed("a compiled kernel does not load"))
        })
        .clone()
    }

    fn compile(&self, name: &str, source: &[&str], macros: &[(&str, String)]) -> Result<Vec<u8>> {
        let source = CString::new(source.concat()).map_err(Error::other)?;
        let (major, minor) = self.0.capability;
        let mut options = vec![format!("--gpu-architecture=sm_{major}{minor}"), "--std=c++17".into()];
        options.extend(macros.iter().map(|(name, value)| format!("-D{name}={value}")));
        compile(&source, &options)
            .map_err(|why| Error::device(format!("kernel `{name}` does not compile: {why}")))
    }
}

/// Machine code from source. Needs no GPU.
fn compile(source: &CString, options: &[String]) -> std::result::Result<Vec<u8>, String> {
    let program = nvrtc::create_program(source, None).map_err(|error| format!("{error:?}"))?;
    // SAFETY: the program was made above and is destroyed below, once.
    unsafe {
        let outcome = nvrtc::compile_program(program, options).map_err(|error| {
            let log = nvrtc::get_program_log(program).unwrap_or_default();
            let log: Vec<u8> = log.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
            format!("{error:?}: {}", String::from_utf8_lossy(&log).trim())
        });
        let image = outcome.and_then(|()| {
            let mut bytes = 0;
            let told = nvrtc_sys::nvrtcGetCUBINSize(program, &mut bytes).result();
            let mut image = vec![0_u8; bytes];
            let told = told.and_then(|()| {
                nvrtc_sys::nvrtcGetCUBIN(program, image.as_mut_ptr().cast()).result().map(|()| image)
            });
            told.map_err(|error| format!("{error:?}"))
        });
        let _ = nvrtc::destroy_program(program);
        image
    }
}

fn load(name: &str, image: &[u8], shared: usize) -> std::result::Result<Function, DriverError> {
    // SAFETY: the image is what the compiler made for this GPU. The module is
    // never unloaded, so the function stays valid.
    unsafe {
        let module = driver::module::load_data(image.as_ptr().cast())?;
        let name = CString::new(name).unwrap_or_default();
        let function = driver::module::get_function(module, name)?;
        if shared > 0 {
            let most = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            driver::function::set_function_attribute(function, most, shared as i32)?;
        }
        Ok(Function(function))
    }
}

/// A launch: blocks, threads of a block, bytes of shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub blocks: u32,
    pub threads: u32,
    pub shared: u32,
}

impl Function {
    /// Enqueues the kernel. `early`: the kernel itself waits for what was enqueued before (`griddepcontrol.wait`), so
    /// that its blocks may start on multiprocessors while the last blocks of the kernel before still run.
    ///
    /// # Safety
    /// The arguments are the kernel's, in order; the memory they point to lives until it is complete. A kernel
    /// that starts early accesses no memory that changes before it has waited.
    pub unsafe fn launch(
        self,
        grid: Grid,
        stream: sys::CUstream,
        arguments: &mut [*mut c_void],
        early: bool,
    ) -> Result<()> {
        if grid.blocks == 0 {
            return Ok(());
        }
        let mut attribute = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let config = sys::CUlaunchConfig {
            gridDimX: grid.blocks,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: grid.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: grid.shared,
            hStream: stream,
            attrs: &mut attribute,
            numAttrs: u32::from(early),
        };
        // SAFETY: this function's contract; configuration and attribute live for the call.
        unsafe { sys::cuLaunchKernelEx(&config, self.0, arguments.as_mut_ptr(), std::ptr::null_mut()) }
            .result()
            .map_err(failed("a kernel could not be launched"))
    }
}
