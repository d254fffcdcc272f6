"""Arrays on GPUs: of CuPy, PyTorch, JAX, and of the driver itself; skipped where there is none."""

import ctypes

import numpy as np
import pytest

import ferrier
import ferrier.fft
from ferrier import _ferrier, _gpu


def libraries():
    """Name -> a function that puts an array of numpy's on the GPU."""
    found = {"driver": Driver, "driver without DLPack": lambda x: Driver(x, dlpack=False)}
    try:
        import cupy

        found["cupy"] = cupy.asarray
    except Exception:
        pass
    try:
        import torch

        if torch.cuda.is_available():
            found["torch"] = lambda x: torch.from_numpy(np.ascontiguousarray(x)).cuda()
    except Exception:
        pass
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        if jax.default_backend() == "gpu":
            found["jax"] = lambda x: jax.numpy.asarray(x)
    except Exception:
        pass
    return found


class Driver:
    """The least that a library has: memory of the driver's."""

    def __init__(self, x, dlpack=True):
        self.driver = ctypes.CDLL("libcuda.so.1")
        assert _ferrier.gpu_count() > 0
        # The primary context, which Ferrier uses too.
        context = ctypes.c_void_p()
        assert self.driver.cuInit(0) == 0
        assert self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert self.driver.cuCtxSetCurrent(context) == 0
        x = np.ascontiguousarray(x)
        self.address = ctypes.c_uint64()
        assert self.driver.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(x.nbytes)) == 0
        assert self.driver.cuMemcpyHtoD_v2(self.address, x.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(x.nbytes)) == 0
        self.shape, self.dtype, self.strides, self.ndim = x.shape, x.dtype, x.strides, x.ndim
        self.asked = []
        if dlpack:
            self.__class__ = WithDLPack

    @property
    def __cuda_array_interface__(self):
        return {"version": 3, "shape": self.shape, "typestr": self.dtype.str, "data": (self.address.value, False), "strides": None, "stream": 1}

    def __del__(self):
        if getattr(self, "address", None):
            self.driver.cuMemFree_v2(self.address)


class WithDLPack(Driver):
    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream=None):
        self.asked.append(stream)
        steps = [step // self.dtype.itemsize for step in self.strides]
        code = 5 if self.dtype.kind == "c" else 2
        return _ferrier.dlpack_capsule(self, self.address.value, [2, 0], list(self.shape), steps, (code, self.dtype.itemsize * 8))


def host(array):
    """A copy of a GPU's array, after the work on its stream."""
    if isinstance(array, Driver):
        copy = np.empty(array.shape, array.dtype)
        assert array.driver.cuCtxSynchronize() == 0
        assert array.driver.cuMemcpyDtoH_v2(copy.ctypes.data_as(ctypes.c_void_p), array.address, ctypes.c_size_t(copy.nbytes)) == 0
        return copy
    if hasattr(array, "get"):
        return array.get()
    return array.cpu().numpy() if hasattr(array, "cpu") else np.asarray(array)


def close(got, expected, factor=1):
    epsilon = np.finfo(got.dtype).eps
    assert got.shape == expected.shape and got.dtype.kind == expected.dtype.kind
    assert np.linalg.norm(got - expected) <= 40 * factor * epsilon * np.linalg.norm(expected)


gpu = pytest.mark.skipif(_ferrier.gpu_count() == 0, reason="there is no GPU")
NAMES = list(libraries()) if _ferrier.gpu_count() else ["none"]
RNG = np.random.default_rng(11)


def values(shape, dtype):
    real = RNG.standard_normal(shape)
    return (real + 1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else real).astype(dtype)


@gpu
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("double", [True, False])
def test_transforms_equal_numpys(name, double):
    put = libraries()[name]
    real, complex_ = ("f8", "c16") if double else ("f4", "c8")
    for shape, axes in [((16, 12, 20), None), ((64,), None), ((6, 5, 8, 4), (1, 2)), ((3, 4, 5, 6, 7), None), ((30, 8), (0,))]:
        x, u = values(shape, complex_), values(shape, real)
        close(host(ferrier.fft.fftn(put(x), axes=axes)), np.fft.fftn(x, axes=axes).astype(complex_), 3)
        close(host(ferrier.fft.ifftn(put(x), axes=axes, norm="ortho")), np.fft.ifftn(x, axes=axes, norm="ortho").astype(complex_), 3)
        close(host(ferrier.fft.rfftn(put(u), axes=axes)), np.fft.rfftn(u, axes=axes).astype(complex_), 3)
        if "driver" in name and len(shape) > 3:
            continue
        half = np.fft.rfftn(u, axes=axes).astype(complex_)
        lengths = [shape[axis] for axis in axes or range(len(shape))]
        close(host(ferrier.fft.irfftn(put(half), lengths, axes)), u, 4)


@gpu
@pytest.mark.parametrize("name", [name for name in NAMES if name in ("cupy", "torch")])
def test_strides_types_and_results_of_the_same_library(name):
    put = libraries()[name]
    x = values((12, 10, 16), "c16")
    wide = put(x)
    got = ferrier.fft.fftn(wide[:, ::2, 3:])
    assert type(got) is type(wide)
    close(host(got), np.fft.fftn(x[:, ::2, 3:]), 3)
    turned = wide.transpose(2, 0, 1) if name == "cupy" else wide.permute(2, 0, 1)
    close(host(ferrier.fft.fftn(turned)), np.fft.fftn(x.transpose(2, 0, 1)), 3)
    u = put(values((8, 6), "f4"))
    assert host(ferrier.fft.fft(u)).dtype == np.complex64
    close(host(ferrier.fft.fft(wide, 20, axis=1)), np.fft.fft(x, 20, axis=1), 3)
    out = put(np.zeros_like(x))
    assert ferrier.fft.fftn(wide, out=out) is out
    close(host(out), np.fft.fftn(x), 3)
    assert ferrier.fft.fftn(out, overwrite_x=True) is out
    close(host(out), np.fft.fftn(np.fft.fftn(x)), 6)
    with pytest.raises(ValueError, match="out must be of the shape"):
        ferrier.fft.fftn(wide, out=put(np.zeros((3, 3), complex)))


@gpu
@pytest.mark.parametrize("name", NAMES)
def test_plans(name):
    put = libraries()[name]
    u = values((16, 12, 20), "f8")
    with ferrier.Plan(ferrier.Problem(u.shape, "r2c", operators=True), device="cuda:0") as plan:
        x = put(u)
        modes = plan.forward(x)
        close(host(modes), np.fft.rfftn(u), 3)
        close(host(plan.backward(modes)), u, 4)
        own = plan.make_output()
        assert isinstance(own, ferrier.GpuArray)
        assert plan.forward(x, own) is own
        close(own.get(), np.fft.rfftn(u), 3)
        identity = plan.apply(plan.apply(x, "helmholtz", 1.0), "laplacian")
        assert host(identity).shape == u.shape
        with pytest.raises(TypeError, match="is not"):
            plan.forward(u)
        with pytest.raises(ferrier.FerrierError, match="expected the shape"):
            plan.forward(put(u[:3]))


@gpu
@pytest.mark.parametrize("name", [name for name in NAMES if name in ("cupy", "torch")])
def test_work_is_on_the_callers_stream(name):
    """A long kernel on the caller's stream comes first: a transform on another stream would read what was there before."""
    shape = (64, 512, 512)
    if name == "cupy":
        import cupy

        x = cupy.zeros(shape, complex)
        cupy.cuda.Device().synchronize()
        with cupy.cuda.Stream(non_blocking=True) as stream:
            for _ in range(200):
                x += 1
            modes = ferrier.fft.fftn(x)
            stream.synchronize()
    else:
        import torch

        x = torch.zeros(shape, dtype=torch.complex128, device="cuda")
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(200):
                x += 1
            modes = ferrier.fft.fftn(x)
        stream.synchronize()
    assert abs(host(modes)[0, 0, 0] / (200 * np.prod(shape)) - 1) < 1e-12


@gpu
def test_arrays_of_ferrier_for_other_libraries():
    plan = ferrier.Plan((4, 6, 8), device="cuda")
    x = values((4, 6, 8), "c16")
    made = plan.forward(Driver(x))
    assert isinstance(made, ferrier.GpuArray) and made.shape == x.shape
    for name, load in {"cupy": "from_dlpack", "torch": "from_dlpack"}.items():
        module = pytest.importorskip(name) if name in NAMES else None
        if module is not None:
            seen = getattr(module, load)(made)
            close(host(seen), np.fft.fftn(x), 3)


def test_dlpack_of_arrays_in_main_memory():
    """The capsule's fields, both ways; numpy takes it as DLPack's."""
    x = np.arange(24.0).reshape(2, 3, 4)

    class Exporter:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **_):
            return _ferrier.dlpack_capsule(x, x.ctypes.data, [1, 0], [2, 3, 4], [12, 4, 1], (2, 64))

    seen = np.from_dlpack(Exporter())
    assert seen.ctypes.data == x.ctypes.data and np.array_equal(seen, x)
    tensor = _ferrier.DlpackTensor(x[:, ::2].__dlpack__())
    assert (tensor.address, tensor.shape, tensor.strides) == (x.ctypes.data, [2, 2, 4], [12, 8, 1])
    assert tensor.dtype == (2, 64, 1) and tensor.device == (1, 0)
    with pytest.raises(ValueError, match="capsule"):
        _ferrier.DlpackTensor(x)
    capsule = x.__dlpack__()
    _ferrier.DlpackTensor(capsule)
    with pytest.raises(ValueError, match="was not taken before"):
        _ferrier.DlpackTensor(capsule)
    assert not _gpu.is_on_gpu(x) and not _gpu.is_on_gpu([1])


def test_without_a_gpu_plans_say_so():
    if _ferrier.gpu_count():
        pytest.skip("there is a GPU")
    with pytest.raises(ferrier.FerrierError, match="(?i)cuda|gpu"):
        ferrier.Plan((4, 4, 4), device="cuda:0")
    with pytest.raises(ValueError, match="device is"):
        ferrier.Plan((4, 4, 4), device="tpu")
