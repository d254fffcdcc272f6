"""ferrier.fft against scipy.fft and numpy.fft."""

import os
import threading
import tracemalloc

import numpy as np
import pytest

import ferrier
import ferrier.fft

scipy_fft = pytest.importorskip("scipy.fft")

CASES = int(os.environ.get("FERRIER_CASES", 150))
FOURIER = [prefix + name for name in ("fft", "rfft", "hfft") for prefix in ("", "i")]
COSINES = [prefix + name for name in ("dct", "dst") for prefix in ("", "i")]
REAL_INPUT = {"rfft", "ihfft"}


def values(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "iub":
        return rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if dtype.kind == "c" else real).astype(dtype)


def disguised(rng, x):
    """The same values in memory of another kind."""
    way = rng.integers(8)
    if way == 0:
        return np.asfortranarray(x)
    if way == 1:
        wide = np.zeros([2 * n for n in x.shape], x.dtype)
        view = wide[tuple(slice(None, None, 2) for _ in x.shape)]
        view[...] = x
        return view
    if way == 2:
        back = tuple(slice(None, None, -1) for _ in x.shape)
        return np.ascontiguousarray(x[back])[back]
    # scipy refuses float16 of the other byte order.
    if way == 3 and x.dtype.char != "e":
        return x.astype(x.dtype.newbyteorder())
    if way == 4:
        order = rng.permutation(x.ndim)
        return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
    if way == 5:
        copy = x.copy()
        copy.flags.writeable = False
        return copy
    if way == 6:
        raw = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
        raw[...] = x
        return raw
    return x


def agrees(got, expected, points):
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    if expected.size == 0:
        return
    epsilon = np.finfo(expected.dtype).eps
    norm = np.linalg.norm(expected.astype(np.clongdouble).ravel())
    error = np.linalg.norm((got.astype(np.clongdouble) - expected).ravel())
    assert error <= 5 * epsilon * max(np.log2(points), 1) * max(norm, np.finfo(expected.dtype).tiny), (error / norm, epsilon)


def reference(name, x, options):
    """scipy's result of the same transform in higher precision, in the type that scipy returns."""
    expected = getattr(scipy_fft, name)(x, **options)
    wide = x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)
    return getattr(scipy_fft, name)(wide, **options).astype(expected.dtype)


@pytest.mark.parametrize("case", range(CASES))
def test_random_transforms_equal_scipys(case):
    rng = np.random.default_rng([21, case])
    cosines = rng.random() < 0.35
    name = str(rng.choice(COSINES if cosines else FOURIER))
    dimensions = int(rng.integers(1, 6))
    top = {1: 400, 2: 40, 3: 18, 4: 8, 5: 6}[dimensions]
    shape = [int(rng.integers(1, top)) for _ in range(dimensions)]
    kinds = ["f2", "f4", "f8", "i4", "u1", "?"] + ([] if name in REAL_INPUT else ["c8", "c16"] * 2)
    x = disguised(rng, values(rng, shape, rng.choice(kinds)))
    options = {"norm": [None, "backward", "ortho", "forward"][rng.integers(4)], "workers": int(rng.integers(1, 4))}
    suffix = ["", "n", "2"][rng.integers(2 if cosines or dimensions < 2 else 3)]
    if suffix:
        count = 2 if suffix == "2" else int(rng.integers(1, dimensions + 1))
        axes = [int(axis) for axis in rng.permutation(dimensions)[:count]]
        options["axes"] = [axis - dimensions if rng.random() < 0.3 else axis for axis in axes]
        if rng.random() < 0.4:
            options["s"] = [max(1, int(shape[axis] + rng.integers(-2, 4))) for axis in axes]
    else:
        axes = [int(rng.integers(-dimensions, dimensions))]
        options["axis"] = axes[0]
        if rng.random() < 0.4:
            options["n"] = max(1, int(shape[axes[0]] + rng.integers(-2, 4)))
    lengths = options.get("s") or [options.get("n") or shape[axis] for axis in axes]
    if name in ("irfft", "hfft") and lengths[-1] < 2:
        options["s" if suffix else "n"] = [*lengths[:-1], 2] if suffix else 2
    if cosines:
        options["type"] = int(rng.integers(1, 5))
        if options["type"] == 1 and min(lengths) < 2:
            options["type"] = 2
        # scipy drops it for complex values.
        if x.dtype.kind != "c":
            options["orthogonalize"] = [None, True, False][rng.integers(3)]
    if x.dtype.kind == "c" and cosines and options["norm"] == "ortho":
        x = x.real
    expected = reference(name + suffix, x, options)
    before = x.copy()
    got = getattr(ferrier.fft, name + suffix)(x, **options)
    agrees(got, expected, max(x.size, expected.size))
    assert np.array_equal(x, before), "the input was changed"
    out = disguised(rng, np.zeros(expected.shape, expected.dtype))
    if out.flags.writeable and out.dtype.isnative:
        assert getattr(ferrier.fft, name + suffix)(x, **options, out=out) is out
        # Where the axes have another order in memory, they may be transformed in another order.
        agrees(out, expected, max(x.size, expected.size))
    if x.flags.writeable:
        assert np.array_equal(getattr(ferrier.fft, name + suffix)(x, **options, overwrite_x=True), got)


def test_in_place():
    x = values(np.random.default_rng(1), (8, 9, 10), "c16")
    expected = scipy_fft.fftn(x)
    y = x.copy()
    assert ferrier.fft.fftn(y, overwrite_x=True) is y
    agrees(y, expected, x.size)
    y = x.copy()
    assert ferrier.fft.fftn(y, out=y) is y
    agrees(y, expected, x.size)
    line = np.zeros(12, complex)
    line[:10] = x[0, 0]
    agrees(ferrier.fft.fft(line[:10], out=line[2:]), scipy_fft.fft(x[0, 0]), 10)


def test_arrays_with_strides_and_real_ones_are_not_copied():
    rng = np.random.default_rng(6)
    wide = values(rng, (40, 44, 48), "c16")
    real = values(rng, (40, 44, 48), "f8")
    ghosts = (slice(2, -2), slice(2, -2), slice(2, -2))
    sources = {
        "ghost cells": (ferrier.fft.fftn, scipy_fft.fftn, wide[ghosts], {}),
        "every second": (ferrier.fft.ifftn, scipy_fft.ifftn, wide[::2, ::2, ::2], {}),
        "axes exchanged": (ferrier.fft.fftn, scipy_fft.fftn, wide.transpose(1, 2, 0)[1:], {"axes": (0, 2)}),
        "real parts": (ferrier.fft.fftn, scipy_fft.fftn, wide.real, {}),
        "real values": (ferrier.fft.fftn, scipy_fft.fftn, real, {}),
        "real values, back": (ferrier.fft.ifftn, scipy_fft.ifftn, real[ghosts], {}),
        "real rows": (ferrier.fft.rfftn, scipy_fft.rfftn, real[:, :, 1:-1], {}),
        "half a spectrum": (ferrier.fft.irfftn, scipy_fft.irfftn, wide[ghosts], {}),
        "its conjugate": (ferrier.fft.ihfftn, scipy_fft.ihfftn, real[ghosts], {}),
        "cut": (ferrier.fft.fft2, scipy_fft.fft2, wide, {"s": (30, 20)}),
        "cosines": (ferrier.fft.dctn, scipy_fft.dctn, real[ghosts], {}),
    }
    for name, (ours, scipys, x, options) in sources.items():
        expected = scipys(x, **options)
        out = np.zeros_like(expected)
        gaps = np.zeros([2 * n for n in expected.shape], expected.dtype)
        for target in (out, gaps[tuple(slice(1, None, 2) for _ in out.shape)], np.zeros_like(out, order="F")):
            # The plan is kept.
            ours(x, **options, out=target)
            tracemalloc.start()
            ours(x, **options, out=target)
            copied = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert copied < x.nbytes / 4, f"{name}: {copied} bytes"
            agrees(target, expected, max(x.size, expected.size))
        assert not gaps[::2].any(), f"{name}: elements between those of the result were written"
        assert not gaps[:, ::2].any() and not gaps[:, :, ::2].any()


def test_lists_and_scalars_of_other_types():
    agrees(ferrier.fft.fft([1, 2, 3, 4]), scipy_fft.fft([1, 2, 3, 4]), 4)
    agrees(ferrier.fft.fftn(np.ones((1, 1, 1))), np.ones((1, 1, 1), complex), 1)
    agrees(ferrier.fft.fft(np.ones((0, 4))), scipy_fft.fft(np.ones((0, 4))), 4)
    assert ferrier.fft.fftn(np.ones((2, 2)), axes=()).shape == (2, 2)


@pytest.mark.parametrize("dtype", ["g", "G"])
def test_long_doubles_are_left_to_scipy(dtype):
    x = values(np.random.default_rng(2), (6, 5), dtype)
    got = ferrier.fft.fftn(x, norm="ortho")
    assert got.dtype == np.clongdouble
    assert np.array_equal(got, scipy_fft.fftn(x, norm="ortho"))
    if dtype == "g":
        assert np.array_equal(ferrier.fft.idct(x, type=3, axis=0), scipy_fft.idct(x, type=3, axis=0))
    with scipy_fft.set_backend(ferrier.backend):
        assert scipy_fft.fft(x).dtype == np.clongdouble


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda f: f.fft(np.ones(4), axis=3), IndexError, ""),
        (lambda f: f.fft(np.ones(4), 0), ValueError, r"invalid number of data points \(0\) specified"),
        (lambda f: f.fft(np.ones((2, 0))), ValueError, r"invalid number of data points \(0\) specified"),
        (lambda f: f.fftn(np.ones((2, 0))), ValueError, r"invalid number of data points \(\[2, 0\]\) specified"),
        (lambda f: f.fftn(np.ones((2, 2)), axes=(0, 2)), ValueError, "axes exceeds dimensionality of input"),
        (lambda f: f.fftn(np.ones((2, 2)), axes=(0, 0)), ValueError, "all axes must be unique"),
        (lambda f: f.fftn(np.ones((2, 2)), axes=(0, 1), s=(2,)), ValueError, "of the same length"),
        (lambda f: f.fftn(np.ones((2, 2)), s=(2, 2, 2)), ValueError, "shape requires more axes than are present"),
        (lambda f: f.fftn(np.ones((2, 2)), axes=1.5), ValueError, "must be a scalar or iterable of integers"),
        (lambda f: f.rfft(np.ones(4, complex)), TypeError, "x must be a real sequence"),
        (lambda f: f.rfftn(np.ones(4), axes=()), ValueError, "at least 1 axis must be transformed"),
        (lambda f: f.irfft(np.ones(1)), ValueError, "nvalid number of data points"),
        (lambda f: f.fft(np.ones(4), norm="other"), ValueError, "Invalid norm value 'other'"),
        (lambda f: f.fft(np.ones(4), workers=0), ValueError, "workers must not be zero"),
        (lambda f: f.fft(np.ones(4), workers=-10**6), ValueError, "workers value out of range"),
        (lambda f: f.dct(np.ones(4), type=5), ValueError, ""),
        (lambda f: f.fft(np.ones(4), plan=1), NotImplementedError, ""),
    ],
)
def test_errors_are_scipys(call, error, text):
    for module in (ferrier.fft, scipy_fft):
        with pytest.raises(error, match=text or None if module is ferrier.fft else None):
            call(module)


def test_errors_of_out():
    with pytest.raises(ValueError, match="wrong shape"):
        ferrier.fft.fft(np.ones(4), out=np.empty(5, complex))
    with pytest.raises(TypeError, match="complex128"):
        ferrier.fft.fft(np.ones(4), out=np.empty(4))
    with pytest.raises(TypeError, match="must be an array"):
        ferrier.fft.fft(np.ones(4), out=[1])


def test_lengths_equal_scipys():
    for real in (False, True):
        for n in [*range(1, 300), 1009, 65537, 93059]:
            assert ferrier.fft.next_fast_len(n, real) == scipy_fft.next_fast_len(n, real), n
            if hasattr(scipy_fft, "prev_fast_len"):
                assert ferrier.fft.prev_fast_len(n, real) == scipy_fft.prev_fast_len(n, real), n


def test_workers():
    assert ferrier.fft.get_workers() == 1
    with ferrier.fft.set_workers(-1):
        assert ferrier.fft.get_workers() == os.cpu_count()
        seen = []
        thread = threading.Thread(target=lambda: seen.append(ferrier.fft.get_workers()))
        thread.start()
        thread.join()
        assert seen == [1], "the default is that of a thread"
    assert ferrier.fft.get_workers() == 1


def test_backend():
    x = values(np.random.default_rng(3), (12, 10), "f8")
    calls = []
    original = ferrier.fft.rfftn

    def counted(*args, **kwargs):
        calls.append(kwargs.get("workers"))
        return original(*args, **kwargs)

    from ferrier import _backend

    _backend._FUNCTIONS["rfftn"] = counted
    try:
        with scipy_fft.set_backend(ferrier.backend(workers=2)):
            agrees(scipy_fft.rfftn(x), original(x), x.size)
        with scipy_fft.set_backend(ferrier.backend), scipy_fft.set_workers(3):
            scipy_fft.rfftn(x)
            scipy_fft.fht(x[0], 0.1, 0.5)
        scipy_fft.rfftn(x)
    finally:
        _backend._FUNCTIONS["rfftn"] = original
    assert calls == [2, 3]


def test_several_threads():
    rng = np.random.default_rng(4)
    arrays = [values(rng, (24, 24, 24), "c16") for _ in range(4)]
    expected = [ferrier.fft.fftn(x) for x in arrays]
    failures = []

    def work(i):
        for _ in range(10):
            if not np.array_equal(ferrier.fft.fftn(arrays[i], workers=1 + i % 2), expected[i]):
                failures.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_after_fork():
    x = values(np.random.default_rng(5), (64, 64, 64), "c16")
    expected = ferrier.fft.fftn(x, workers=2)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if np.array_equal(ferrier.fft.fftn(x, workers=2), expected) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(ferrier.fft.fftn(x, workers=2), expected)


def test_plans_are_kept_and_can_be_forgotten():
    ferrier.fft.clear_plans()
    for _ in range(3):
        ferrier.fft.fftn(np.ones((4, 5, 6), complex))
    count, size = ferrier.fft.clear_plans()
    assert count == 1 and size > 0
    for n in range(1, 200):
        ferrier.fft.fft(np.ones(n + 1, complex))
    assert ferrier.fft.clear_plans()[0] <= 128
