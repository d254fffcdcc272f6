//! numpy's arrays as transforms need them: aligned, of one of four types, with strides that plans take.

use ferrier::Kind;
use numpy::npyffi::{self, NPY_TYPES, PY_ARRAY_API, npy_intp};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    pub double: bool,
    pub complex: bool,
}

impl Element {
    fn from_num(num: i32) -> Option<Element> {
        let all = [(false, false), (false, true), (true, false), (true, true)];
        all.map(|(double, complex)| Element { double, complex }).into_iter().find(|e| e.num() as i32 == num)
    }

    fn num(self) -> NPY_TYPES {
        match (self.double, self.complex) {
            (false, false) => NPY_TYPES::NPY_FLOAT,
            (true, false) => NPY_TYPES::NPY_DOUBLE,
            (false, true) => NPY_TYPES::NPY_CFLOAT,
            (true, true) => NPY_TYPES::NPY_CDOUBLE,
        }
    }

    pub fn bytes(self) -> usize {
        (if self.double { 8 } else { 4 }) * self.width()
    }

    /// Scalars of an element.
    pub fn width(self) -> usize {
        if self.complex { 2 } else { 1 }
    }

    pub fn complex(self) -> Element {
        Element { complex: true, ..self }
    }

    pub fn real(self) -> Element {
        Element { complex: false, ..self }
    }

    pub fn name(self) -> &'static str {
        match (self.double, self.complex) {
            (false, false) => "float32",
            (true, false) => "float64",
            (false, true) => "complex64",
            (true, true) => "complex128",
        }
    }

    /// The type of an array that can be used as it is.
    pub fn of(array: &Bound<'_, PyUntypedArray>) -> Option<Element> {
        let element = Element::from_num(array.dtype().num())?;
        (array.is_aligned() && array.dtype().is_native_byteorder() != Some(false)).then_some(element)
    }
}

/// An array to be transformed.
pub struct Source<'py> {
    pub array: Bound<'py, PyUntypedArray>,
    pub element: Element,
    /// Is this the only reference to it?
    pub fresh: bool,
}

/// Functions of the Python part that prepare arrays that need it.
pub fn helper<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("ferrier._arrays").map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

impl<'py> Source<'py> {
    /// The array of an argument, converted where it must be; `None` for a longdouble.
    pub fn take(x: &Bound<'py, PyAny>) -> PyResult<Option<Source<'py>>> {
        if let Ok(array) = x.cast::<PyUntypedArray>()
            && let Some(element) = Element::of(array)
        {
            return Ok(Some(Source { array: array.clone(), element, fresh: false }));
        }
        let prepared = helper(x.py(), "as_floats")?.call1((x,))?;
        if prepared.is_none() {
            return Ok(None);
        }
        Source::prepared(prepared).map(Some)
    }

    fn prepared(pair: Bound<'py, PyAny>) -> PyResult<Source<'py>> {
        let (array, fresh): (Bound<'py, PyAny>, bool) = pair.extract()?;
        Source::new(array, fresh)
    }

    fn new(array: Bound<'py, PyAny>, fresh: bool) -> PyResult<Source<'py>> {
        let array = array.cast_into::<PyUntypedArray>()?;
        let element = Element::of(&array)
            .ok_or_else(|| PyTypeError::new_err("the array could not be made native and aligned"))?;
        Ok(Source { array, element, fresh })
    }

    /// With these lengths of these axes: cut, or padded with zeros.
    pub fn resized(self, lengths: &[usize], axes: &[usize]) -> PyResult<Source<'py>> {
        let shape = self.array.shape();
        if axes.iter().zip(lengths).all(|(&axis, &n)| shape[axis] == n) {
            return Ok(self);
        }
        let py = self.array.py();
        let resized = helper(py, "resized")?.call1((&self.array, lengths, axes))?;
        let (array, copied): (Bound<'py, PyAny>, bool) = resized.extract()?;
        Source::new(array, copied || self.fresh)
    }

    pub fn complex(self) -> PyResult<Source<'py>> {
        match self.element.complex {
            true => Ok(self),
            false => Source::new(self.array.call_method1("astype", (self.element.complex().name(),))?, true),
        }
    }

    /// A copy with the axes in the order of memory `C`, or in the same order (`K`).
    pub fn copy(self, order: &str) -> PyResult<Source<'py>> {
        Source::new(self.array.call_method1("copy", (order,))?, true)
    }

    pub fn is_writeable(&self) -> bool {
        flags(&self.array) & npyffi::NPY_ARRAY_WRITEABLE != 0
    }

    /// Where its elements lie; `None` where plans cannot take them so.
    pub fn places(&self) -> Option<Places> {
        match self.array.is_c_contiguous() {
            true => Some(Places::dense(self.array.shape(), (0..self.array.ndim()).collect())),
            false => Places::of(self.array.shape(), self.array.strides(), self.element),
        }
    }
}

/// Where the elements of an array lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The axes in the order of memory, slowest first.
    pub order: Vec<usize>,
    /// Elements from one index to the next along each axis.
    pub strides: Vec<usize>,
    /// Elements from the first to the last, gaps included.
    pub extent: usize,
}

impl Places {
    /// Of an array without gaps, with its axes in this order.
    pub fn dense(shape: &[usize], order: Vec<usize>) -> Places {
        let (mut strides, mut extent) = (vec![0; shape.len()], 1);
        for &axis in order.iter().rev() {
            strides[axis] = extent;
            extent *= shape[axis];
        }
        Places { order, strides, extent }
    }

    /// Of an array with these strides in bytes; `None` unless they are a memory order: whole elements, not negative, each at
    /// least the extent of the smaller ones.
    pub fn of(shape: &[usize], bytes: &[isize], element: Element) -> Option<Places> {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        order.sort_by_key(|&axis| std::cmp::Reverse((bytes[axis], shape[axis])));
        let (mut strides, mut extent, mut next) = (vec![0; shape.len()], 1, 1);
        for &axis in order.iter().rev() {
            if shape[axis] == 1 {
                strides[axis] = next;
                continue;
            }
            let stride = usize::try_from(bytes[axis]).ok()?;
            if stride % element.bytes() != 0 || stride < extent * element.bytes() {
                return None;
            }
            strides[axis] = stride / element.bytes();
            next = strides[axis] * shape[axis];
            extent += shape[axis].saturating_sub(1) * strides[axis];
        }
        Some(Places { order, strides, extent })
    }
}

fn flags(array: &Bound<'_, PyUntypedArray>) -> i32 {
    // SAFETY: a live array object.
    unsafe { (*array.as_array_ptr()).flags }
}

/// The address of the first element.
pub fn data(array: &Bound<'_, PyUntypedArray>) -> usize {
    // SAFETY: a live array object.
    unsafe { (*array.as_array_ptr()).data as usize }
}

/// A new array whose elements are not set, with its axes in this order in memory.
pub fn empty<'py>(
    py: Python<'py>,
    shape: &[usize],
    order: &[usize],
    element: Element,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let mut dims: Vec<npy_intp> = order.iter().map(|&axis| shape[axis] as npy_intp).collect();
    // SAFETY: `dims` has as many entries as is said; the descriptor's reference is given to the array. A null pointer
    // is an error that is set.
    let made = unsafe {
        let descr = PY_ARRAY_API.PyArray_DescrFromType(py, element.num() as i32);
        let made = PY_ARRAY_API.PyArray_Empty(py, dims.len() as i32, dims.as_mut_ptr(), descr, 0);
        Bound::from_owned_ptr_or_err(py, made)?
    };
    let made = if order.iter().enumerate().all(|(i, &axis)| i == axis) {
        made
    } else {
        let mut places = vec![0; order.len()];
        for (place, &axis) in order.iter().enumerate() {
            places[axis] = place;
        }
        made.call_method1("transpose", (places,))?
    };
    Ok(made.cast_into::<PyUntypedArray>()?)
}

/// The array that the caller gave for the result.
pub struct Out<'py> {
    pub array: Bound<'py, PyUntypedArray>,
    element: Option<Element>,
}

impl<'py> Out<'py> {
    pub fn check(out: &Bound<'py, PyAny>, shape: &[usize], element: Element) -> PyResult<Out<'py>> {
        let Ok(array) = out.cast::<PyUntypedArray>() else {
            return Err(PyTypeError::new_err(format!("out must be an array, got {}", out.get_type())));
        };
        if array.shape() != shape {
            return Err(PyValueError::new_err(format!(
                "output array has wrong shape: out must have the shape {shape:?}, got {:?}",
                array.shape()
            )));
        }
        if Element::from_num(array.dtype().num()) != Some(element) {
            let dtype = array.dtype();
            return Err(PyTypeError::new_err(format!("out must be of {}, got {dtype}", element.name())));
        }
        if flags(array) & npyffi::NPY_ARRAY_WRITEABLE == 0 {
            return Err(PyValueError::new_err("out is read-only"));
        }
        Ok(Out { array: array.clone(), element: Element::of(array) })
    }

    /// Where results can be stored directly; `None` where plans cannot.
    pub fn places(&self) -> Option<Places> {
        Places::of(self.array.shape(), self.array.strides(), self.element?)
    }
}

/// The bytes that the elements of an array occupy: first and one past the last.
pub fn extent(array: &Bound<'_, PyUntypedArray>) -> (usize, usize) {
    let (mut low, mut high) = (data(array), data(array) + array.dtype().itemsize());
    for (&n, &stride) in array.shape().iter().zip(array.strides()) {
        let reach = (n.max(1) - 1) * stride.unsigned_abs();
        if stride < 0 { low -= reach } else { high += reach }
    }
    (low, high)
}

/// The transforms of an array's axes in the order of memory.
pub fn kinds_in_order(ndim: usize, axes: &[usize], kind: impl Fn(usize) -> Kind) -> Vec<Kind> {
    let mut kinds = vec![Kind::Identity; ndim];
    for (i, &axis) in axes.iter().enumerate() {
        kinds[axis] = kind(i);
    }
    kinds
}
