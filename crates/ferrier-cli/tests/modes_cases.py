"""Runs `ferrier transform` with --kinds, --keep and --keep-sphere and compares with numpy.

Cosines and sines are matrices made of the formulas in scipy's documentation, so scipy is not needed.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

FERRIER = sys.argv[1]
FOLDER = Path(tempfile.mkdtemp(prefix="ferrier-modes-"))
RANDOM = np.random.default_rng(7)
INVERSE = {"dct2": "dct3", "dct3": "dct2", "dst2": "dst3", "dst3": "dst2"}
failures = []
runs = 0


def matrix(kind, n, ortho=False):
    """Modes by points."""
    k, j = np.arange(n)[:, None], np.arange(n)[None, :]
    last = n - 1
    m = {
        "dct1": lambda: np.where((j == 0) | (j == last), 1, 2) * np.cos(np.pi * k * j / last),
        "dct2": lambda: 2 * np.cos(np.pi * k * (2 * j + 1) / (2 * n)),
        "dct3": lambda: np.where(j == 0, 1, 2) * np.cos(np.pi * (2 * k + 1) * j / (2 * n)),
        "dct4": lambda: 2 * np.cos(np.pi * (2 * k + 1) * (2 * j + 1) / (4 * n)),
        "dst1": lambda: 2 * np.sin(np.pi * (k + 1) * (j + 1) / (n + 1)),
        "dst2": lambda: 2 * np.sin(np.pi * (k + 1) * (2 * j + 1) / (2 * n)),
        "dst3": lambda: np.where(j == last, 1, 2) * np.sin(np.pi * (2 * k + 1) * (j + 1) / (2 * n)),
        "dst4": lambda: 2 * np.sin(np.pi * (2 * k + 1) * (2 * j + 1) / (4 * n)),
    }[kind]()
    if ortho:
        root = np.sqrt(2)
        if kind == "dct1":
            m[:, [0, last]] *= root
            m[[0, last], :] /= root
        elif kind == "dct2":
            m[0] /= root
        elif kind == "dct3":
            m[:, 0] *= root
        elif kind == "dst2":
            m[last] /= root
        elif kind == "dst3":
            m[:, last] *= root
    return m


def size(kind, n):
    return {"none": 1, "c2c": n, "r2c": n, "dct1": 2 * (n - 1), "dst1": 2 * (n + 1)}.get(kind, 2 * n)


def wave(a, kind, axis, ortho):
    return np.moveaxis(np.tensordot(matrix(kind, a.shape[axis], ortho), a, (1, axis)), 0, axis)


def forward(a, kinds, ortho=False):
    # What is halved first: the others may be complex.
    for axis in sorted(range(a.ndim), key=lambda axis: kinds[axis] != "r2c"):
        kind = kinds[axis]
        if kind == "r2c":
            a = np.fft.rfft(a, axis=axis)
        elif kind == "c2c":
            a = np.fft.fft(a, axis=axis)
        elif kind != "none":
            a = wave(a, kind, axis, ortho)
    return a


def backward(a, kinds, shape):
    for axis in sorted(range(a.ndim), key=lambda axis: kinds[axis] == "r2c"):
        kind, n = kinds[axis], shape[axis]
        if kind == "r2c":
            a = np.fft.irfft(a, n, axis=axis)
        elif kind == "c2c":
            a = np.fft.ifft(a, axis=axis)
        elif kind != "none":
            a = wave(a, INVERSE.get(kind, kind), axis, False) / size(kind, n)
    return a


def lowest(n, m, kind):
    if kind == "r2c":
        return np.arange(m // 2 + 1)
    if kind == "c2c":
        return np.round(np.fft.fftfreq(m, 1 / m)).astype(int) % n
    return np.arange(m)


def check(name, got, want, file, arguments):
    global runs
    runs += 1
    error = np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-300) if got.shape == want.shape else np.inf
    if got.dtype != want.dtype or not error < 1e-14:
        failures.append(f"{name}: {error:.1e} {got.dtype} {got.shape}, {want.dtype} {want.shape}: {arguments}")


def run(name, a, want, *arguments):
    arguments = [str(word) for word in arguments]
    np.save(FOLDER / "in.npy", a)
    command = [FERRIER, "transform", str(FOLDER / "in.npy"), str(FOLDER / "out.npy"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        failures.append(f"{name}: {done.stderr.strip()}: {arguments}")
        return
    check(name, np.load(FOLDER / "out.npy"), want, "out.npy", arguments)


def noise(shape, real):
    a = RANDOM.standard_normal(shape)
    return a if real else a + 1j * RANDOM.standard_normal(shape)


def kinds_cases():
    cases = [("dct2,c2c,none", False), ("dct2,c2c,r2c", True), ("dst1,dct3,dst4", True), ("dct1,dct4,dst2", True),
             ("r2c,dst3,c2c", True), ("dct2,dct2,dct2", False), ("none,dst2", True), ("dct1", True)]
    for turn, (text, real) in enumerate(cases):
        kinds = text.split(",")
        a = noise([6, 9, 10][: len(kinds)], real)
        where = ["--ranks", 1 + turn % 4, "--out-layout", ["slabs:0", "best", "bricks"][turn % 3]]
        want = forward(a, kinds)
        if "c2c" not in kinds and "r2c" not in kinds and real:
            want = want.real
        run(text, a, want, "--kinds", text, *where)
        back = backward(want, kinds, a.shape)
        last = ["--last", a.shape[kinds.index("r2c")]] if "r2c" in kinds else []
        run(text + " back", want, back, "--kinds", text, "--direction", "backward", "--ranks", 2, *last)
        total = np.prod([size(kind, n) for kind, n in zip(kinds, a.shape)])
        ortho = forward(a, kinds, True) / np.sqrt(total)
        run(text + " ortho", a, ortho.astype(want.dtype), "--kinds", text, "--scale", "symmetric", "--ranks", 3)


def keep_cases():
    for shape, keep, real in [((12, 9, 16), (6, 4, 8), False), ((12, 9, 16), (5, 9, 7), True), ((10, 15), (3, 6), False)]:
        kinds = ["c2c"] * len(shape)
        if real:
            kinds[-1] = "r2c"
        a = noise(shape, real)
        picked = np.ix_(*[lowest(n, m, kind) for n, m, kind in zip(shape, keep, kinds)])
        full = forward(a, kinds)
        text = "x".join(map(str, keep))
        flag = ["--real"] if real else []
        for ranks in [1, 2, 5]:
            run(f"keep {text}", a, full[picked], "--keep", text, "--ranks", ranks, *flag)
        padded = np.zeros_like(full)
        padded[picked] = full[picked]
        points = "x".join(map(str, shape))
        run(f"pad {text}", full[picked], backward(padded, kinds, shape), "--direction", "backward",
            "--points", points, "--ranks", 3, *flag)
    a = noise((8, 6, 10), True)
    run("keep of cosines", a, forward(a, ["dct2", "none", "r2c"])[:3, :, :3], "--kinds", "dct2,none,r2c",
        "--keep", "3xallx5", "--ranks", 2)


def sphere_cases():
    for shape, radius, real in [((12, 10, 14), 4, False), ((12, 10, 14), 3.5, True), ((9, 9), 3, False)]:
        kinds = ["c2c"] * len(shape)
        if real:
            kinds[-1] = "r2c"
        a = noise(shape, real)
        frequencies = [np.fft.fftfreq(n, 1 / n) for n in shape]
        if real:
            frequencies[-1] = np.arange(shape[-1] // 2 + 1)
        inside = sum(k**2 for k in np.meshgrid(*frequencies, indexing="ij")) <= radius**2
        box = np.ix_(*[np.flatnonzero(abs(k) <= radius) for k in frequencies])
        full = np.where(inside, forward(a, kinds), 0)
        flag = ["--real"] if real else []
        for ranks in [1, 4]:
            run(f"sphere {radius}", a, full[box], "--keep-sphere", radius, "--ranks", ranks, *flag)
        run(f"sphere {radius} back", full[box], backward(full, kinds, shape), "--keep-sphere", radius, "--ranks", 3,
            "--direction", "backward", "--points", "x".join(map(str, shape)), *flag)


kinds_cases()
keep_cases()
sphere_cases()
print(f"{runs} results compared, {len(failures)} wrong")
print("\n".join(failures))
sys.exit(bool(failures) or runs < 40)
