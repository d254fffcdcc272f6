"""Discrete Fourier transforms with the names, arguments and results of `scipy.fft` and `numpy.fft`.

Transforms of one to three axes are done at once, those of more axes in turn. All functions take `workers`, the number of
threads (by default that of `set_workers`, which is 1), and numpy's `out`, an array for the result. Plans are kept for
the next call of the same kind; `clear_plans` forgets them.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from numpy.fft import fftfreq, fftshift, ifftshift, rfftfreq
from numpy.typing import ArrayLike, NDArray

from ferrier import _ferrier

__all__ = [
    "clear_plans",
    "dct",
    "dctn",
    "dst",
    "dstn",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "get_workers",
    "hfft",
    "hfft2",
    "hfftn",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "next_fast_len",
    "prev_fast_len",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
    "set_workers",
]

Norm = Literal["backward", "ortho", "forward"] | None
Lengths = int | Sequence[int] | None
_c2c, _r2c, _c2r, _r2r = _ferrier.c2c, _ferrier.r2c, _ferrier.c2r, _ferrier.r2r


def _no_plan(plan: Any) -> None:
    if plan is not None:
        raise NotImplementedError("the argument `plan` is for other libraries' plans; Ferrier keeps its own")


def fft(
    x: ArrayLike,
    n: int | None = None, axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The transform of one axis."""
    if plan is not None:
        _no_plan(plan)
    return _c2c(x, True, n, axis, norm, bool(overwrite_x), workers, out)


def fft2(
    x: ArrayLike,
    s: Lengths = None, axes: Lengths = (-2, -1),
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """`fftn` of the last two axes, unless `axes` says otherwise."""
    if plan is not None:
        _no_plan(plan)
    return _c2c(x, True, s, axes, norm, bool(overwrite_x), workers, out)


def fftn(
    x: ArrayLike,
    s: Lengths = None, axes: Lengths = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The transform of several axes, by default all."""
    if plan is not None:
        _no_plan(plan)
    return _c2c(x, True, s, axes, norm, bool(overwrite_x), workers, out)


def ifft(
    x: ArrayLike,
    n: int | None = None, axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The inverse of `fft`."""
    if plan is not None:
        _no_plan(plan)
    return _c2c(x, False, n, axis, norm, bool(overwrite_x), workers, out)


def ifft2(
    x: ArrayLike,
    s: Lengths = None, axes: Lengths = (-2, -1),
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """`ifftn` of the last two axes, unless `axes` says otherwise."""
    if plan is not None:
        _no_plan(plan)
    return _c2c(x, False, s, axes, norm, bool(overwrite_x), workers, out)


def ifftn(
    x: ArrayLike,
    s: Lengths = None, axes: Lengths = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The inverse of `fftn`."""
    if plan is not None:
        _no_plan(plan)
    return _c2c(x, False, s, axes, norm, bool(overwrite_x), workers, out)


def rfft(
    x: ArrayLike,
    n: int | None = None, axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The transform of real values along one axis, which gets n/2 + 1 elements."""
    if plan is not None:
        _no_plan(plan)
    return _r2c(x, True, n, axis, norm, workers, out)


def rfft2(
    x: ArrayLike,
    s: Lengths = None, axes: Lengths = (-2, -1),
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """`rfftn` of the last two axes, unless `axes` says otherwise."""
    if plan is not None:
        _no_plan(plan)
    return _r2c(x, True, s, axes, norm, workers, out)


def rfftn(
    x: ArrayLike,
    s: Lengths = None, axes: Lengths = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The transform of real values along several axes, by default all. The last one gets n/2 + 1 elements."""
    if plan is not None:
        _no_plan(plan)
    return _r2c(x, True, s, axes, norm, workers, out)


def irfft(
    x: ArrayLike,
    n: int | None = None, axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The inverse of `rfft`; `n` is the number of real values."""
    if plan is not None:
        _no_plan(plan)
    return _c2r(x, False, n, axis, norm, workers, out)


def irfft2(
    x: ArrayLike,
    s: Lengths = None, axes: Lengths = (-2, -1),
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """`irfftn` of the last two axes, unless `axes` says otherwise."""
    if plan is not None:
        _no_plan(plan)
    return _c2r(x, False, s, axes, norm, workers, out)


def irfftn(
    x: ArrayLike,
    s: Lengths = None, axes: Lengths = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The inverse of `rfftn`; the last of `s` is the number of real values of the last axis."""
    if plan is not None:
        _no_plan(plan)
    return _c2r(x, False, s, axes, norm, workers, out)


def hfft(
    x: ArrayLike,
    n: int | None = None, axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The transform of a Hermitian-symmetric signal, given by its first half: real."""
    if plan is not None:
        _no_plan(plan)
    return _c2r(x, True, n, axis, norm, workers, out)


def hfft2(
    x: ArrayLike,
    s: Lengths = None, axes: Lengths = (-2, -1),
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """`hfftn` of the last two axes, unless `axes` says otherwise."""
    if plan is not None:
        _no_plan(plan)
    return _c2r(x, True, s, axes, norm, workers, out)


def hfftn(
    x: ArrayLike,
    s: Lengths = None, axes: Lengths = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The transform of a Hermitian-symmetric signal along several axes, by default all: real."""
    if plan is not None:
        _no_plan(plan)
    return _c2r(x, True, s, axes, norm, workers, out)


def ihfft(
    x: ArrayLike,
    n: int | None = None, axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The inverse of `hfft`."""
    if plan is not None:
        _no_plan(plan)
    return _r2c(x, False, n, axis, norm, workers, out)


def ihfft2(
    x: ArrayLike,
    s: Lengths = None, axes: Lengths = (-2, -1),
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """`ihfftn` of the last two axes, unless `axes` says otherwise."""
    if plan is not None:
        _no_plan(plan)
    return _r2c(x, False, s, axes, norm, workers, out)


def ihfftn(
    x: ArrayLike,
    s: Lengths = None, axes: Lengths = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The inverse of `hfftn`."""
    if plan is not None:
        _no_plan(plan)
    return _r2c(x, False, s, axes, norm, workers, out)


def dct(
    x: ArrayLike,
    type: Literal[1, 2, 3, 4] = 2,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The discrete cosine transform of one axis, of type 1, 2, 3 or 4."""
    return _r2r("dct", type, x, True, n, axis, norm, bool(overwrite_x), workers, orthogonalize, out)


def dctn(
    x: ArrayLike,
    type: Literal[1, 2, 3, 4] = 2,
    s: Lengths = None,
    axes: Lengths = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The discrete cosine transform of several axes, by default all, of type 1, 2, 3 or 4."""
    return _r2r("dct", type, x, True, s, axes, norm, bool(overwrite_x), workers, orthogonalize, out)


def idct(
    x: ArrayLike,
    type: Literal[1, 2, 3, 4] = 2,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The inverse of `dct` of the same type."""
    return _r2r("dct", type, x, False, n, axis, norm, bool(overwrite_x), workers, orthogonalize, out)


def idctn(
    x: ArrayLike,
    type: Literal[1, 2, 3, 4] = 2,
    s: Lengths = None,
    axes: Lengths = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The inverse of `dctn` of the same type."""
    return _r2r("dct", type, x, False, s, axes, norm, bool(overwrite_x), workers, orthogonalize, out)


def dst(
    x: ArrayLike,
    type: Literal[1, 2, 3, 4] = 2,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The discrete sine transform of one axis, of type 1, 2, 3 or 4."""
    return _r2r("dst", type, x, True, n, axis, norm, bool(overwrite_x), workers, orthogonalize, out)


def dstn(
    x: ArrayLike,
    type: Literal[1, 2, 3, 4] = 2,
    s: Lengths = None,
    axes: Lengths = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The discrete sine transform of several axes, by default all, of type 1, 2, 3 or 4."""
    return _r2r("dst", type, x, True, s, axes, norm, bool(overwrite_x), workers, orthogonalize, out)


def idst(
    x: ArrayLike,
    type: Literal[1, 2, 3, 4] = 2,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The inverse of `dst` of the same type."""
    return _r2r("dst", type, x, False, n, axis, norm, bool(overwrite_x), workers, orthogonalize, out)


def idstn(
    x: ArrayLike,
    type: Literal[1, 2, 3, 4] = 2,
    s: Lengths = None,
    axes: Lengths = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
    *,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The inverse of `dstn` of the same type."""
    return _r2r("dst", type, x, False, s, axes, norm, bool(overwrite_x), workers, orthogonalize, out)


@contextlib.contextmanager
def set_workers(workers: int) -> Iterator[None]:
    """Within this context, the default number of threads of this thread's calls. Negative numbers count from the number
    of cores: -1 is all."""
    before = _ferrier.swap_workers(operator.index(workers))
    try:
        yield
    finally:
        _ferrier.swap_workers(before)


def get_workers() -> int:
    """The default number of threads of this thread's calls."""
    return _ferrier.get_workers()


def _fast_lengths(most: int, real: bool) -> Iterator[int]:
    """The products of small primes up to `most`."""
    lengths = [1]
    for prime in (2, 3, 5) if real else (2, 3, 5, 7, 11):
        for length in lengths:
            if length * prime <= most:
                lengths.append(length * prime)
    return iter(lengths)


def _target(target: Any) -> int:
    try:
        length = operator.index(target)
    except TypeError:
        raise TypeError(f"target must be an integer, got {target!r}") from None
    if length < 0:
        raise ValueError(f"target must be positive, got {length}")
    return length


@functools.lru_cache
def next_fast_len(target: int, real: bool = False) -> int:
    """The smallest length of at least `target` whose prime factors are at most 11, or 5 for a real transform."""
    length = _target(target)
    if length <= 6:
        return length
    return min(n for n in _fast_lengths(2 * length, bool(real)) if n >= length)


@functools.lru_cache
def prev_fast_len(target: int, real: bool = False) -> int:
    """The largest length of at most `target` whose prime factors are at most 11, or 5 for a real transform."""
    length = _target(target)
    if length < 1:
        raise ValueError(f"target must be positive, got {length}")
    return max(_fast_lengths(length, bool(real)))


def clear_plans() -> tuple[int, int]:
    """Forgets the plans that are kept for the next call: how many, and their bytes."""
    return _ferrier.clear_plans()
