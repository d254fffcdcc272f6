"""Arrays in the memory of GPUs: CuPy's, PyTorch's, JAX's and others that speak DLPack or have `__cuda_array_interface__`.

Transforms are enqueued on the stream of the array's library, and return before they are done. Nothing is copied unless elements
lie so that plans cannot take them.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ferrier import _ferrier

# DLPack's numbers.
_CUDA, _MANAGED = 2, 13
_FLOAT, _COMPLEX = 2, 5


class GpuArray:
    """An array in the memory of a GPU that Ferrier made. Other libraries see it without a copy: `cupy.asarray`,
    `torch.from_dlpack`, `jax.numpy.from_dlpack`. `get` copies it to an array of numpy's."""

    def __init__(self, memory: _ferrier.Memory, device: int, shape: tuple[int, ...], strides: Sequence[int], dtype: np.dtype[Any], stream: int) -> None:
        self._memory, self.device, self._stream = memory, device, stream
        self.shape, self.strides, self.dtype = shape, tuple(strides), dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "data": (self._memory.span[0], False),
            "typestr": self.dtype.str,
            "shape": self.shape,
            "strides": self.strides,
            # 0 would be ambiguous: 1 is the default stream.
            "stream": self._stream or 1,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, self.device

    def __dlpack__(self, *, stream: int | None = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        if copy or (dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__()):
            raise BufferError("an array of Ferrier's is exported as it is, on its GPU")
        # The work on our stream is done before the consumer's begins; -1: the consumer sees to it.
        if stream != -1 and stream != (self._stream or 1):
            self.synchronize()
        strides = [step // self.dtype.itemsize for step in self.strides]
        code = _COMPLEX if self.dtype.kind == "c" else _FLOAT
        address = self._memory.span[0]
        return _ferrier.dlpack_capsule(self, address, [_CUDA, self.device], list(self.shape), strides, (code, self.dtype.itemsize * 8))

    def synchronize(self) -> None:
        """Returns when all work on its GPU that was enqueued before is done."""
        # A copy of one element comes after all of it.
        self._memory.download(np.empty(min(self._memory.span[1], 1) * self.dtype.itemsize, np.uint8))

    def get(self) -> np.ndarray:
        """A copy in main memory."""
        data = np.empty(self._memory.span[1] * self.dtype.itemsize // (2 if self.dtype.kind == "c" else 1), np.uint8)
        self._memory.download(data)
        return np.lib.stride_tricks.as_strided(data.view(self.dtype), self.shape, self.strides)

    def __repr__(self) -> str:
        return f"<ferrier.GpuArray: {self.dtype} {'x'.join(map(str, self.shape))} on GPU {self.device}>"


class View:
    """Where the elements of an array of another library lie; it holds the array."""

    device: int
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    def __init__(self, array: Any, stream: int | None = None) -> None:
        self.array, self.library = array, library(array)
        own = _stream(array, self.library)
        self.stream = own if stream is None else stream
        # On another stream than the array's library works on now, DLPack makes that stream wait.
        known = stream is None or stream == own
        if known and self.library == "torch" and _is_plain(array):
            self._take_torch()
        elif known and self.library == "cupy":
            self._take_cupy()
        elif hasattr(array, "__dlpack__"):
            self._take_dlpack()
        else:
            self._take_interface()
        if self.dtype.char not in "fdFD":
            raise TypeError(f"arrays on GPUs are of float32, float64, complex64 or complex128, got {self.dtype}")

    def _take_torch(self) -> None:
        array = self.array
        self.dtype, self.device = _dtype(array.dtype), array.get_device()
        self.address, self.shape = array.data_ptr(), tuple(array.shape)
        step = self.dtype.itemsize
        self.strides = tuple([n * step for n in array.stride()])

    def _take_cupy(self) -> None:
        array = self.array
        self.dtype, self.device = array.dtype, array.data.device_id
        self.address, self.shape, self.strides = array.data.ptr, array.shape, array.strides

    def _take_dlpack(self) -> None:
        tensor = self._tensor = _ferrier.DlpackTensor(_capsule(self.array, self.stream))
        (code, bits, lanes), self.device = tensor.dtype, tensor.device[1]
        if code not in (_FLOAT, _COMPLEX) or lanes != 1 or bits not in (32, 64, 128):
            raise TypeError(f"arrays on GPUs are of float32, float64, complex64 or complex128, got {self.array.dtype}")
        self.dtype = np.dtype(f"{'c' if code == _COMPLEX else 'f'}{bits // 8}")
        self.address, self.shape = tensor.address, tuple(tensor.shape)
        strides, step = tensor.strides, self.dtype.itemsize
        self.strides = self._dense() if strides is None else tuple([n * step for n in strides])

    def _take_interface(self) -> None:
        interface = self.array.__cuda_array_interface__
        if interface.get("mask") is not None:
            raise TypeError("arrays with a mask are not transformed")
        self.dtype, self.shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
        self.address, self.device = interface["data"][0], _device(self.array)
        self.strides = interface.get("strides") or self._dense()

    def _dense(self) -> tuple[int, ...]:
        return dense(self.shape, range(len(self.shape)), self.dtype.itemsize)


def _is_plain(array: Any) -> bool:
    """Are the values of PyTorch's array those in its memory, and are no gradients wanted? DLPack says what is wrong."""
    return not (array.requires_grad or array.is_conj() or array.is_neg() or array.is_sparse)


@functools.lru_cache
def _dtype(dtype: Any) -> np.dtype[Any]:
    """numpy's name of a type of another library."""
    return np.dtype(str(dtype).removeprefix("torch."))


@functools.lru_cache
def _torch_dtype(dtype: np.dtype[Any]) -> Any:
    return getattr(sys.modules["torch"], dtype.name)


def dense(shape: Sequence[int], order: Sequence[int], step: int) -> tuple[int, ...]:
    """Strides of an array without gaps, the axes in this order in memory, slowest first."""
    strides = [0] * len(shape)
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def is_on_gpu(x: Any) -> bool:
    """Is it an array in the memory of a GPU?"""
    if isinstance(x, (np.ndarray, list, tuple, int, float, complex)):
        return False
    name = library(x)
    if name in ("torch", "cupy"):
        return name == "cupy" or bool(getattr(x, "is_cuda", False))
    device = getattr(x, "__dlpack_device__", None)
    if device is not None:
        return int(device()[0]) in (_CUDA, _MANAGED)
    return hasattr(x, "__cuda_array_interface__")


def library(array: Any) -> str:
    """The name of the array's library."""
    name = type(array).__module__.partition(".")[0]
    return "jax" if name == "jaxlib" else name


def _capsule(array: Any, stream: int) -> Any:
    # DLPack calls the default stream 1.
    return array.__dlpack__(stream=stream or 1)


def _device(array: Any) -> int:
    device = getattr(array, "device", 0)
    for name in ("id", "index"):
        device = getattr(device, name, device)
    return device if isinstance(device, int) else 0


def _stream(array: Any, name: str) -> int:
    """The stream on which the array's library works now: the caller's."""
    if name == "torch":
        torch, device = sys.modules["torch"], array.get_device()
        # What current_stream() calls, without the object around it.
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        return torch.cuda.current_stream(device).cuda_stream if raw is None else raw(device)
    if name == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream().ptr
    if name == "ferrier":
        return array._stream
    interface = {} if name == "jax" else getattr(array, "__cuda_array_interface__", {})
    return interface.get("stream") or 0


def as_stream(stream: Any) -> int | None:
    """A stream as a number: the address, or an object of CuPy's, PyTorch's or CUDA Python's."""
    if stream is None or isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("ptr", "cuda_stream"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise TypeError(f"stream is an address or a stream of CuPy or PyTorch, got {type(stream).__name__}")


def empty(view: View, shape: Sequence[int], order: Sequence[int], dtype: np.dtype[Any]) -> Any:
    """An array of the same library, not set, with its axes in this order in memory; None where Ferrier must make it."""
    if view.library not in ("torch", "cupy"):
        return None
    lengths, places = _lengths(tuple(shape), tuple(order))
    library = sys.modules[view.library]
    if view.library == "torch":
        made = library.empty(lengths, dtype=_torch_dtype(dtype), device=view.array.device)
        return made if places is None else made.permute(places)
    if library.cuda.runtime.getDevice() == view.device:
        made = library.empty(lengths, dtype)
    else:
        with library.cuda.Device(view.device):
            made = library.empty(lengths, dtype)
    return made if places is None else made.transpose(places)


@functools.lru_cache(256)
def _lengths(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """The lengths in the order of memory, and the place of each axis there; None where the axes are in order."""
    lengths = tuple(shape[axis] for axis in order)
    places = None if list(order) == sorted(order) else tuple(order.index(axis) for axis in range(len(order)))
    return lengths, places


def handed(view: View, made: GpuArray) -> Any:
    """An array that Ferrier made as one of the same library."""
    if view.library != "jax":
        return made
    import jax.numpy

    return jax.numpy.from_dlpack(made)


def converted(x: Any, dtype: np.dtype[Any]) -> Any:
    """An array with elements of another type, by its own library."""
    if library(x) == "torch":
        return x.to(getattr(sys.modules["torch"], dtype.name))
    return x.astype(dtype)


def copied(x: Any) -> Any:
    """A copy without gaps, by the array's own library."""
    name = library(x)
    if name == "torch":
        return x.contiguous()
    if name in ("cupy", "jax"):
        return x.copy()
    raise ValueError("the elements of this array lie so that plans cannot take them; copy it first")


def resized(x: Any, lengths: Sequence[int], axes: Sequence[int]) -> Any:
    """`x` with these lengths of these axes: cut, or padded with zeros by the array's own library."""
    shape, kept = list(x.shape), [slice(None)] * len(x.shape)
    for n, axis in zip(lengths, axes):
        kept[axis] = slice(0, min(n, shape[axis]))
        shape[axis] = n
    part = x[tuple(kept)] if tuple(shape) != tuple(x.shape) else x
    if tuple(part.shape) == tuple(shape):
        return part
    if library(x) == "jax":
        import jax.numpy

        return jax.numpy.pad(part, [(0, n - m) for n, m in zip(shape, part.shape)])
    padded = part.new_zeros(shape) if library(x) == "torch" else sys.modules["cupy"].zeros(shape, part.dtype)
    padded[tuple(kept)] = part
    return padded


class Prepared(NamedTuple):
    """What arguments mean for arrays of one shape and type."""

    lengths: list[int]
    axes: list[int]
    points: list[int]
    # Of input and output.
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    kinds: tuple[str, ...]
    # The types that are read and written.
    source: np.dtype[Any]
    dtype: np.dtype[Any]
    factor: float
    is_resized: bool
    is_converted: bool


@functools.lru_cache(256)
def _prepared(kind: str, forward: bool, shape: tuple[int, ...], dtype: Any, s: Any, axes: Any, norm: Any) -> Prepared:
    if kind not in ("c2c", "r2c", "c2r") or forward == (kind == "c2r") and kind != "c2c":
        raise NotImplementedError("on GPUs there are fft, ifft, rfft and irfft of any axes; no cosines, sines and hfft")
    lengths, axes = _arguments(shape, s, axes)
    points = list(lengths)
    if kind == "c2r":
        if s is None:
            points[-1] = 2 * (lengths[-1] - 1)
        lengths = [*lengths[:-1], points[-1] // 2 + 1]
    if min(points) < 1:
        raise ValueError(f"invalid number of data points ({points}) specified")
    shapes = [list(shape), list(shape)]
    for axis, n in zip(axes, lengths):
        shapes[0][axis] = shapes[1][axis] = n
    if kind == "r2c":
        shapes[1][axes[-1]] = points[-1] // 2 + 1
    elif kind == "c2r":
        shapes[1][axes[-1]] = points[-1]
    kinds = ["none"] * len(shape)
    for axis in axes:
        kinds[axis] = "c2c"
    if kind != "c2c":
        kinds[axes[-1]] = "r2c"
    name = str(dtype).removeprefix("torch.")
    if kind == "r2c" and "complex" in name:
        raise TypeError("x must be a real sequence")
    # As in scipy.fft: float16 becomes float32, everything else that is no float becomes float64.
    double = name not in ("float32", "complex64", "float16")
    real, complex_ = np.dtype("f8" if double else "f4"), np.dtype("c16" if double else "c8")
    source, result = real if kind == "r2c" else complex_, real if kind == "c2r" else complex_
    factor = _factor(norm, forward, float(np.prod(points)))
    both = tuple(shapes[0]), tuple(shapes[1])
    return Prepared(lengths, axes, points, both, tuple(kinds), source, result, factor, both[0] != shape, name != source.name)


def _hashable(value: Any) -> Any:
    """An argument `s` or `axes` that a cache can have."""
    return value if value is None or isinstance(value, int) else tuple(np.atleast_1d(np.asarray(value, int)).tolist())


def transform(kind: str, x: Any, forward: bool, s: Any, axes: Any, norm: Any, overwrite: bool, out: Any) -> Any:
    """A transform of `ferrier.fft` of an array on a GPU."""
    prepared = _prepared(kind, forward, tuple(x.shape), x.dtype, _hashable(s), _hashable(axes), norm)
    given = x
    if prepared.is_resized:
        x = resized(x, prepared.lengths, prepared.axes)
    if prepared.is_converted:
        x = converted(x, prepared.source)
    view = View(x)
    axes, points = prepared.axes, prepared.points
    # One call makes real values of a spectrum; more axes go before it.
    if kind == "c2r" and len(axes) > 1 and (len(view.shape) > 3 or len(axes) > 3):
        x = transform("c2c", view.array, False, None, axes[:-1], norm, False, None)
        return transform("c2r", x, False, points[-1:], axes[-1:], norm, False, out)
    if out is None and overwrite and kind == "c2c" and view.array is given and view.library != "jax":
        out = given
    return _run(view, out, prepared, forward)


@functools.lru_cache(256)
def _order(strides: tuple[int, ...]) -> tuple[int, ...]:
    """The axes in the order of memory, slowest first."""
    return tuple(sorted(range(len(strides)), key=lambda axis: (-strides[axis], axis)))


@functools.lru_cache(256)
def _native(double: bool, strides: Any, shapes: Any, kinds: tuple[str, ...], forward: bool, factor: float, in_place: bool) -> Any:
    return _ferrier.gpu_transform(double, strides, shapes, kinds, forward, factor, in_place)


def _run(view: View, out: Any, prepared: Prepared, forward: bool) -> Any:
    shapes, dtype = prepared.shapes, prepared.dtype
    target = out if out is not None else empty(view, shapes[1], _order(view.strides), dtype)
    address, strides = None, None
    if target is not None:
        if library(target) == "jax":
            raise TypeError("arrays of JAX cannot be written to: leave out `out`")
        store = View(target, view.stream)
        if store.shape != shapes[1] or store.dtype != dtype or store.device != view.device:
            raise ValueError(f"out must be of the shape {shapes[1]}, of {dtype}, on GPU {view.device}; got {store.shape}, {store.dtype}, GPU {store.device}")
        address, strides = store.address, store.strides
    double = dtype.char in "dD"
    native = _native(double, (view.strides, strides), shapes, prepared.kinds, forward, prepared.factor, address == view.address)
    if native is None:
        return _run(View(copied(view.array), view.stream), out, prepared, forward)
    memory = native.run(view.device, view.stream, view.address, address)
    if memory is None:
        return target
    return handed(view, GpuArray(memory, view.device, shapes[1], native.strides, dtype, view.stream))


def _arguments(shape: tuple[int, ...], s: Any, axes: Any) -> tuple[list[int], list[int]]:
    ndim = len(shape)
    lengths = None if s is None else [int(n) for n in np.atleast_1d(s)]
    if axes is None:
        axes = range(ndim - (ndim if lengths is None else len(lengths)), ndim)
    places = [int(axis) for axis in np.atleast_1d(np.asarray(axes, int))]
    if any(not -ndim <= axis < ndim for axis in places):
        raise ValueError("axes exceeds dimensionality of input")
    places = [axis % ndim for axis in places]
    if len(set(places)) != len(places):
        raise ValueError("all axes must be unique")
    if not places:
        raise ValueError("at least 1 axis must be transformed")
    if lengths is None:
        lengths = [shape[axis] for axis in places]
    if len(lengths) != len(places):
        raise ValueError("when given, axes and shape arguments have to be of the same length")
    return [shape[axis] if n == -1 else n for n, axis in zip(lengths, places)], places


def _factor(norm: str | None, forward: bool, size: float) -> float:
    if norm == "ortho":
        return size**-0.5
    return 1 / size if (norm == "forward") == forward else 1.0
