//! DLPack: arrays of other libraries, and ours for them, without copies.

use std::ffi::{CStr, c_void};

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

/// The names of a capsule before and after its tensor was taken.
const NEW: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// An array of another library; it is released when this is dropped.
#[pyclass(frozen, module = "ferrier._ferrier")]
pub struct DlpackTensor {
    managed: *mut Managed,
}

// SAFETY: a tensor may be used and released by any thread.
unsafe impl Send for DlpackTensor {}
// SAFETY: as above; it is only read.
unsafe impl Sync for DlpackTensor {}

impl DlpackTensor {
    fn tensor(&self) -> &Tensor {
        // SAFETY: it lives until the deleter is called, by `drop`.
        unsafe { &(*self.managed).tensor }
    }

    /// Shape or strides.
    fn list(&self, list: *const i64) -> Option<Vec<i64>> {
        // SAFETY: lists have as many entries as there are axes.
        (!list.is_null())
            .then(|| unsafe { std::slice::from_raw_parts(list, self.tensor().ndim as usize) }.to_vec())
    }
}

impl Drop for DlpackTensor {
    fn drop(&mut self) {
        // SAFETY: the tensor was taken from its capsule, so it is released here, once.
        unsafe {
            if let Some(deleter) = (*self.managed).deleter {
                deleter(self.managed);
            }
        }
    }
}

#[pymethods]
impl DlpackTensor {
    /// The tensor of a capsule.
    #[new]
    fn new(capsule: &Bound<'_, PyAny>) -> PyResult<DlpackTensor> {
        // SAFETY: a live object; the name is checked, so the pointer is that of a tensor; after the renaming no other consumer takes it.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), NEW.as_ptr()) == 0 {
                return Err(PyValueError::new_err(
                    "expected a capsule of DLPack whose tensor was not taken before",
                ));
            }
            let managed = ffi::PyCapsule_GetPointer(capsule.as_ptr(), NEW.as_ptr()).cast::<Managed>();
            if ffi::PyCapsule_SetName(capsule.as_ptr(), USED.as_ptr()) != 0 {
                return Err(PyErr::fetch(capsule.py()));
            }
            Ok(DlpackTensor { managed })
        }
    }

    #[getter]
    fn address(&self) -> usize {
        self.tensor().data as usize + self.tensor().byte_offset as usize
    }

    #[getter]
    fn shape(&self) -> Vec<i64> {
        self.list(self.tensor().shape).unwrap_or_default()
    }

    /// Strides in elements; `None` without gaps.
    #[getter]
    fn strides(&self) -> Option<Vec<i64>> {
        self.list(self.tensor().strides)
    }

    /// Code (2 real, 5 complex), bits and lanes of an element.
    #[getter]
    fn dtype(&self) -> (u8, u8, u16) {
        let Tensor { code, bits, lanes, .. } = *self.tensor();
        (code, bits, lanes)
    }

    /// Type (2 is CUDA) and number of the device.
    #[getter]
    fn device(&self) -> (i32, i32) {
        self.tensor().device.into()
    }
}

/// A tensor of ours with what it points to.
struct Exported {
    managed: Managed,
    shape: Vec<i64>,
    strides: Vec<i64>,
    owner: Option<Py<PyAny>>,
}

/// A capsule of DLPack for memory that `owner` holds. Strides are in elements; `dtype` is code and bits.
#[pyfunction]
#[pyo3(signature = (owner, address, device, shape, strides, dtype, /))]
fn dlpack_capsule<'py>(
    py: Python<'py>,
    owner: Py<PyAny>,
    address: usize,
    device: [i32; 2],
    shape: Vec<i64>,
    strides: Vec<i64>,
    dtype: (u8, u8),
) -> PyResult<Bound<'py, PyAny>> {
    if shape.len() != strides.len() {
        return Err(PyBufferError::new_err("shape and strides differ in length"));
    }
    let tensor = Tensor {
        data: address as *mut c_void,
        device,
        ndim: shape.len() as i32,
        code: dtype.0,
        bits: dtype.1,
        lanes: 1,
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let managed = Managed { tensor, context: std::ptr::null_mut(), deleter: Some(take_back) };
    let exported = Box::into_raw(Box::new(Exported { managed, shape, strides, owner: Some(owner) }));
    // SAFETY: `exported` was made above; it is freed by `take_back`, which the consumer calls, or the capsule if there is none.
    unsafe {
        (*exported).managed.tensor.shape = (*exported).shape.as_mut_ptr();
        (*exported).managed.tensor.strides = (*exported).strides.as_mut_ptr();
        (*exported).managed.context = exported.cast();
        let managed = &raw mut (*exported).managed;
        let capsule = ffi::PyCapsule_New(managed.cast(), NEW.as_ptr(), Some(capsule_dropped));
        if capsule.is_null() {
            take_back(managed);
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// Frees a tensor of ours.
unsafe extern "C" fn take_back(managed: *mut Managed) {
    // SAFETY: the context is the box that `dlpack_capsule` made; a consumer calls this once.
    let mut exported = unsafe { Box::from_raw((*managed).context.cast::<Exported>()) };
    let owner = exported.owner.take();
    drop(exported);
    // Any thread may call this, also when the interpreter is gone: then nothing can be freed.
    match Python::try_attach(|_| ()) {
        Some(()) => Python::attach(|_| drop(owner)),
        None => std::mem::forget(owner),
    }
}

/// The destructor of a capsule: frees a tensor that was not taken.
unsafe extern "C" fn capsule_dropped(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with the capsule of `dlpack_capsule`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NEW.as_ptr()) != 0 {
            take_back(ffi::PyCapsule_GetPointer(capsule, NEW.as_ptr()).cast());
        }
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DlpackTensor>()?;
    module.add_function(wrap_pyfunction!(dlpack_capsule, module)?)
}
