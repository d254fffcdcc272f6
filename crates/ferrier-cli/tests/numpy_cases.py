"""Makes the input files of the cases in cases.json, or checks the results.

Called twice by numpy.rs: `numpy_cases.py make FOLDER`, and after `ferrier` has
run on every case, `numpy_cases.py check FOLDER`.
"""

import json
import sys
from pathlib import Path

import numpy as np

FORWARD_NORM = {"numpy": "backward", "none": "backward", "full": "forward", "symmetric": "ortho"}
BACKWARD_NORM = {"numpy": "backward", "none": "forward", "full": "backward", "symmetric": "ortho"}


def make(folder, cases):
    for case in cases:
        rng = np.random.default_rng(case["id"])
        dtype = np.dtype(case["dtype"])
        x = rng.uniform(-1, 1, case["shape"])
        if dtype.kind == "c":
            x = x + 1j * rng.uniform(-1, 1, case["shape"])
        x = np.asarray(x, dtype=dtype, order="F" if case["fortran"] else "C")
        with open(folder / f"in_{case['id']}.npy", "wb") as f:
            np.lib.format.write_array(f, x, version=tuple(case["version"]))


def reference(case, x):
    """numpy's own transform, always in double precision."""
    x = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    axes = case["axes"] if case["axes"] is not None else list(range(x.ndim))
    if case["direction"] == "forward":
        transform = np.fft.rfftn if case["real"] else np.fft.fftn
        return transform(x, axes=axes, norm=FORWARD_NORM[case["scale"]])
    norm = BACKWARD_NORM[case["scale"]]
    if not case["real"]:
        return np.fft.ifftn(x, axes=axes, norm=norm)
    lengths = [x.shape[axis] for axis in axes]
    lengths[-1] = case["last"] if case["last"] is not None else 2 * (lengths[-1] - 1)
    return np.fft.irfftn(x, s=lengths, axes=axes, norm=norm)


def check(folder, cases):
    failed = 0
    for case in cases:
        x = np.load(folder / f"in_{case['id']}.npy")
        want = reference(case, x)
        single = x.dtype.itemsize == (8 if x.dtype.kind == "c" else 4)
        dtype = {"c": np.complex64 if single else np.complex128, "f": np.float32 if single else np.float64}[want.dtype.kind]
        try:
            got = np.load(folder / f"out_{case['id']}.npy")
            problem = None
        except Exception as error:
            problem = f"cannot be loaded: {error}"
        if problem is None and got.dtype != dtype:
            problem = f"is {got.dtype}, not {np.dtype(dtype)}"
        if problem is None and got.shape != want.shape:
            problem = f"has shape {got.shape}, not {want.shape}"
        if problem is None and not got.flags["C_CONTIGUOUS"]:
            problem = "is not in C order"
        if problem is None:
            error = np.linalg.norm((got - want).ravel()) / np.linalg.norm(want.ravel())
            allowed = 1e-6 if single else 1e-14
            if not error <= allowed:
                problem = f"is off by {error:.1e} relative, {allowed:.0e} is allowed"
        if problem is not None:
            failed += 1
            print(f"case {case['id']} {problem}: {json.dumps(case)}")
    print(f"{len(cases) - failed} of {len(cases)} cases equal numpy {np.__version__}")
    return failed


def main():
    folder = Path(sys.argv[2])
    cases = json.loads((folder / "cases.json").read_text())
    if sys.argv[1] == "make":
        make(folder, cases)
    elif check(folder, cases):
        sys.exit(1)


main()
