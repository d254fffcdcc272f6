//! The native part of the Python package `ferrier`.

mod comm;
mod dlpack;
mod engine;
mod errors;
mod fft;
#[cfg(feature = "cuda")]
mod gpu;
mod memory;
mod plan;
mod redistribute;

use pyo3::prelude::*;

/// The native part of the package `ferrier`.
#[pymodule(gil_used = false)]
fn _ferrier(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    fft::register(module)?;
    dlpack::register(module)?;
    #[cfg(feature = "cuda")]
    gpu::register(module)?;
    module.add_class::<comm::Comm>()?;
    module.add_class::<plan::Draft>()?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<memory::Memory>()?;
    module.add_function(wrap_pyfunction!(comm::run_ranks, module)?)?;
    module.add_function(wrap_pyfunction!(redistribute::redistribute, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_count, module)?)?;
    module.add_function(wrap_pyfunction!(clear_plans, module)?)?;
    module.add_function(wrap_pyfunction!(after_fork, module)?)
}

/// Called in a process that was just forked: plans of the parent process have threads that are not here.
#[pyfunction]
fn after_fork() {
    fft::after_fork();
    #[cfg(feature = "cuda")]
    gpu::after_fork();
    plan::after_fork();
}

/// Forgets the plans that were kept for the next call: how many, and their bytes.
#[pyfunction]
fn clear_plans(py: Python<'_>) -> (usize, usize) {
    py.detach(|| {
        let cpu = fft::clear();
        #[cfg(feature = "cuda")]
        let gpu = gpu::clear();
        #[cfg(not(feature = "cuda"))]
        let gpu = (0, 0);
        (cpu.0 + gpu.0, cpu.1 + gpu.1)
    })
}

/// The number of GPUs that can be used.
#[pyfunction]
fn gpu_count() -> usize {
    #[cfg(feature = "cuda")]
    return ferrier::cuda::gpu_count();
    #[cfg(not(feature = "cuda"))]
    0
}

/// Runs the command `ferrier` with these arguments, of which the first is its own name: the exit code.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| ferrier_cli::run(arguments))
}
