"""Files for `ferrier convolve` and `ferrier spectrum`, and what numpy says of the results.

spectral_cases.py make FOLDER    writes a_N.npy, b_N.npy for the cases of cases.json
spectral_cases.py check FOLDER   compares out_N.npy and shells_N.csv with numpy; prints what differs
"""

import json
import pathlib
import sys

import numpy as np

folder = pathlib.Path(sys.argv[2])
cases = json.loads((folder / "cases.json").read_text())


def noise(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def arrays(case):
    a = noise(case["a"], case["dtype_a"], 2 * case["id"])
    b = noise(case["b"], case["dtype_b"], 2 * case["id"] + 1)
    return (np.asfortranarray(a), b) if case["fortran"] else (a, b)


def convolved(case, a, b):
    axes = tuple(range(a.ndim))
    shape = [n + m - 1 for n, m in zip(a.shape, b.shape)] if case["way"] == "linear" else a.shape
    a, b = a.astype(complex), b.astype(complex)
    one, two = np.fft.fftn(a, s=shape, axes=axes), np.fft.fftn(b, s=shape, axes=axes)
    return np.fft.ifftn(one * (np.conj(two) if case["way"] == "correlate" else two), axes=axes)


def shells(case, a):
    lengths = case["lengths"] or [2 * np.pi] * a.ndim
    power = np.abs(np.fft.fftn(a)) ** 2 / a.size**2
    waves = np.meshgrid(*[2 * np.pi * np.fft.fftfreq(n, l / n) for n, l in zip(a.shape, lengths)], indexing="ij")
    unit = max(2 * np.pi / l for l in lengths)
    shell = np.rint(np.sqrt(sum(k**2 for k in waves)) / unit).astype(int).ravel()
    return np.bincount(shell, power.ravel()), np.bincount(shell)


def differences(case):
    a, b = arrays(case)
    epsilon = np.finfo(a.dtype).eps
    out = np.load(folder / f"out_{case['id']}.npy")
    want = convolved(case, a, b)
    complex_out = "c" in case["dtype_a"] + case["dtype_b"]
    if out.shape != want.shape or (out.dtype.kind == "c") != complex_out:
        yield f"convolution has shape {out.shape} {out.dtype}, not {want.shape}"
    elif np.linalg.norm(out - want) > 20 * epsilon * np.log2(max(want.size, 2)) * np.linalg.norm(want):
        yield f"convolution is off by {np.linalg.norm(out - want) / np.linalg.norm(want)}"
    rows = np.loadtxt(folder / f"shells_{case['id']}.csv", delimiter=",", skiprows=1, ndmin=2)
    power, modes = shells(case, a)
    if len(rows) != len(power) or not np.array_equal(rows[:, 1].astype(int), modes):
        yield f"shells have {rows[:, 1].astype(int).tolist()} modes, not {modes.tolist()}"
    elif not np.allclose(rows[:, 2], power, rtol=1e3 * epsilon, atol=1e3 * epsilon * power.sum()):
        yield f"shells have power {rows[:, 2].tolist()}, not {power.tolist()}"


if sys.argv[1] == "make":
    for case in cases:
        a, b = arrays(case)
        np.save(folder / f"a_{case['id']}.npy", a)
        np.save(folder / f"b_{case['id']}.npy", b)
else:
    wrong = [f"{case}: {text}" for case in cases for text in differences(case)]
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)
