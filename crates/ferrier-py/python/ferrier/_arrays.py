"""Arrays that transforms cannot use as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrier import _gpu


def on_gpu(kind: str, x: Any, *arguments: Any) -> Any:
    """The transform of an array in the memory of a GPU; None where it is not in one."""
    return _gpu.transform(kind, x, *arguments) if _gpu.is_on_gpu(x) else None


def as_floats(x: Any) -> tuple[np.ndarray, bool] | None:
    """`x` as a native, aligned array of float32, float64, complex64 or complex128, and whether it is a copy; None for a
    longdouble. float16 becomes float32, everything else float64, as in scipy.fft."""
    array = np.asarray(x)
    dtype: np.dtype[Any]
    if array.dtype.char == "e":
        dtype = np.dtype(np.float32)
    elif array.dtype.kind not in "fc":
        dtype = np.dtype(np.float64)
    else:
        dtype = array.dtype.newbyteorder("=")
    if dtype.char in "gG":
        return None
    if not array.flags.aligned:
        array = array.copy()
    result = np.asarray(array, dtype)
    # A list has made a new array; what another library's object gave may be its own memory.
    fresh = result is not x and result.base is None and (isinstance(x, np.ndarray) or not hasattr(x, "__array__"))
    return result, fresh


def resized(x: np.ndarray, lengths: list[int], axes: list[int]) -> tuple[np.ndarray, bool]:
    """`x` with these lengths of these axes, cut or padded with zeros, and whether it is a copy."""
    shape = list(x.shape)
    kept = [slice(None)] * x.ndim
    for n, axis in zip(lengths, axes):
        kept[axis] = slice(0, min(n, x.shape[axis]))
        shape[axis] = n
    part = x[tuple(kept)]
    if part.shape == tuple(shape):
        return part, False
    padded = np.zeros(shape, x.dtype)
    padded[tuple(kept)] = part
    return padded, True


def long_double(name: str, x: Any, kind: int, s: Any, axes: Any, norm: Any, workers: Any, orthogonalize: Any, out: Any) -> Any:
    """A transform of a longdouble, by scipy."""
    try:
        import scipy.fft  # type: ignore[import-untyped]
    except ImportError:
        raise TypeError(f"transforms are in single and double precision; {np.asarray(x).dtype} needs scipy") from None
    from ferrier._backend import backend

    options: dict[str, Any] = {"s": s, "axes": axes, "norm": norm, "workers": workers}
    if kind:
        options |= {"type": kind, "orthogonalize": orthogonalize}
    with scipy.fft.skip_backend(backend):
        result = getattr(scipy.fft, name)(x, **options)
    if out is None:
        return result
    if out.shape != result.shape:
        raise ValueError(f"output array has wrong shape: out must have the shape {result.shape}, got {out.shape}")
    out[...] = result
    return out
