"""Arrays in the memory of GPUs: CuPy's, PyTorch's, JAX's and others that speak DLPack or have `__cuda_array_interface__`.

Transforms are enqueued on the stream of the array's library, and return before they are done. Nothing is copied unless elements
lie so that plans cannot take them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

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

    def __init__(self, array: Any, stream: int | None = None) -> None:
        self.array, self.library = array, library(array)
        self.stream = _stream(array, self.library) if stream is None else stream
        interface = None if hasattr(array, "__dlpack__") else array.__cuda_array_interface__
        if interface is None:
            tensor = self._tensor = _ferrier.DlpackTensor(_capsule(array, self.stream))
            (code, bits, lanes), self.device = tensor.dtype, tensor.device[1]
            if code not in (_FLOAT, _COMPLEX) or lanes != 1 or bits not in (32, 64, 128):
                raise TypeError(f"arrays on GPUs are of float32, float64, complex64 or complex128, got {array.dtype}")
            self.dtype = np.dtype(f"{'c' if code == _COMPLEX else 'f'}{bits // 8}")
            self.address, self.shape = tensor.address, tuple(tensor.shape)
            strides = tensor.strides
            self.strides = None if strides is None else tuple(step * self.dtype.itemsize for step in strides)
        else:
            self.dtype, self.shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
            self.address, self.strides = interface["data"][0], interface.get("strides")
            self.device = _device(array)
            if interface.get("mask") is not None:
                raise TypeError("arrays with a mask are not transformed")
        if self.dtype.char not in "fdFD":
            raise TypeError(f"arrays on GPUs are of float32, float64, complex64 or complex128, got {self.dtype}")
        if self.strides is None:
            self.strides = dense(self.shape, range(len(self.shape)), self.dtype.itemsize)


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
        return sys.modules["torch"].cuda.current_stream(array.device).cuda_stream
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
    lengths = [shape[axis] for axis in order]
    places = [int(place) for place in np.argsort(order)]
    if view.library == "torch":
        torch = sys.modules["torch"]
        return torch.empty(lengths, dtype=getattr(torch, dtype.name), device=view.array.device).permute(places)
    if view.library == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(view.device):
            return cupy.empty(lengths, dtype).transpose(places)
    return None


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


def transform(kind: str, x: Any, forward: bool, s: Any, axes: Any, norm: Any, overwrite: bool, out: Any) -> Any:
    """A transform of `ferrier.fft` of an array on a GPU."""
    if kind not in ("c2c", "r2c", "c2r") or forward == (kind == "c2r") and kind != "c2c":
        raise NotImplementedError("on GPUs there are fft, ifft, rfft and irfft of any axes; no cosines, sines and hfft")
    lengths, axes = _arguments(x, s, axes)
    points = list(lengths)
    if kind == "c2r":
        if s is None:
            points[-1] = 2 * (lengths[-1] - 1)
        lengths = [*lengths[:-1], points[-1] // 2 + 1]
    if min(points) < 1:
        raise ValueError(f"invalid number of data points ({points}) specified")
    x = resized(x, lengths, axes)
    view = View(_of_type(x, kind))
    # One call makes real values of a spectrum; more axes go before it.
    if kind == "c2r" and len(axes) > 1 and (view.array.ndim > 3 or len(axes) > 3):
        x = transform("c2c", view.array, False, None, axes[:-1], norm, False, None)
        return transform("c2r", x, False, points[-1:], axes[-1:], norm, False, out)
    shapes = [list(view.shape), list(view.shape)]
    if kind == "r2c":
        shapes[1][axes[-1]] = points[-1] // 2 + 1
    elif kind == "c2r":
        shapes[1][axes[-1]] = points[-1]
    kinds = ["none"] * len(view.shape)
    for axis in axes:
        kinds[axis] = "c2c"
    if kind != "c2c":
        kinds[axes[-1]] = "r2c"
    real = kind == "c2r"
    double = view.dtype.char in "dD"
    dtype = np.dtype(("f" if real else "c") + str((8 if double else 4) * (1 if real else 2)))
    factor = _factor(norm, forward, float(np.prod(points)))
    return _run(view, out if out is not None else x if overwrite and kind == "c2c" and _is(x, view) else None, shapes, kinds, dtype, forward, factor)


def _is(x: Any, view: View) -> bool:
    """Does the view belong to the caller's array, and may it be overwritten?"""
    return x is view.array and view.library != "jax"


def _run(view: View, out: Any, shapes: list[list[int]], kinds: list[str], dtype: np.dtype[Any], forward: bool, factor: float) -> Any:
    order = sorted(range(len(view.shape)), key=lambda axis: (-view.strides[axis], axis))
    target = out if out is not None else empty(view, shapes[1], order, dtype)
    place = None
    if target is not None:
        if library(target) == "jax":
            raise TypeError("arrays of JAX cannot be written to: leave out `out`")
        store = View(target, view.stream)
        if store.shape != tuple(shapes[1]) or store.dtype != dtype or store.device != view.device:
            raise ValueError(f"out must be of the shape {tuple(shapes[1])}, of {dtype}, on GPU {view.device}; got {store.shape}, {store.dtype}, GPU {store.device}")
        place = (store.address, list(store.strides))
    double = view.dtype.char in "dD"
    done = _ferrier.gpu_fft(
        (view.device, view.stream), double, (view.address, list(view.strides)), place, shapes, kinds, forward, factor
    )
    if done is None:
        return _run(View(copied(view.array), view.stream), out, shapes, kinds, dtype, forward, factor)
    strides, memory = done
    if memory is None:
        return target
    made = GpuArray(memory, view.device, tuple(shapes[1]), strides, dtype, view.stream)
    return handed(view, made)


def _of_type(x: Any, kind: str) -> Any:
    """`x` as an array of the type that the transform takes."""
    name = str(x.dtype).removeprefix("torch.")
    if name in ("float32", "complex64"):
        double = False
    elif name in ("float64", "complex128"):
        double = True
    elif name == "float16":
        double, x = False, converted(x, np.dtype(np.float32))
    else:
        double, x = True, converted(x, np.dtype(np.float64))
    if kind == "r2c":
        if "complex" in name:
            raise TypeError("x must be a real sequence")
        return x
    return x if "complex" in name else converted(x, np.dtype(np.complex128 if double else np.complex64))


def _arguments(x: Any, s: Any, axes: Any) -> tuple[list[int], list[int]]:
    ndim = len(x.shape)
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
        lengths = [x.shape[axis] for axis in places]
    if len(lengths) != len(places):
        raise ValueError("when given, axes and shape arguments have to be of the same length")
    return [x.shape[axis] if n == -1 else n for n, axis in zip(lengths, places)], places


def _factor(norm: str | None, forward: bool, size: float) -> float:
    if norm == "ortho":
        return size**-0.5
    return 1 / size if (norm == "forward") == forward else 1.0
