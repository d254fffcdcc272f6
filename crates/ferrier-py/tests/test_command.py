"""The command of the wheel."""

import subprocess
import sys

import numpy as np
import pytest

import ferrier


def command(*words, code=0):
    done = subprocess.run([sys.executable, "-m", "ferrier", *map(str, words)], capture_output=True, text=True, timeout=100)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_transform(tmp_path):
    x = np.random.default_rng(1).standard_normal((6, 7, 8)) + 0j
    np.save(tmp_path / "a.npy", x)
    command("transform", tmp_path / "a.npy", tmp_path / "b.npy", "--ranks", 2)
    assert np.allclose(np.load(tmp_path / "b.npy"), np.fft.fftn(x))


def test_plan_and_errors():
    assert "fft axis" in command("plan", 16, "--ranks", 2)
    assert command("dance", code=2).startswith("ferrier: ")


def test_files_in_one_call(tmp_path):
    x = np.random.default_rng(2).standard_normal((6, 7, 8))
    np.save(tmp_path / "a.npy", x)
    ferrier.transform(tmp_path / "a.npy", tmp_path / "b.npy", real=True, axes=(0, 2), ranks=2)
    assert np.allclose(np.load(tmp_path / "b.npy"), np.fft.rfftn(x, axes=(0, 2)))
    with pytest.raises(ferrier.FerrierError, match="none.npy"):
        ferrier.transform(tmp_path / "none.npy", tmp_path / "b.npy")


def test_stores_of_zarr_in_one_call(tmp_path):
    x = np.random.default_rng(3).standard_normal((6, 7, 8))
    np.save(tmp_path / "a.npy", x)
    ferrier.transform(tmp_path / "a.npy", tmp_path / "b.zarr", real=True, ranks=2)
    ferrier.transform(tmp_path / "b.zarr", tmp_path / "c.npy", real=True, direction="backward", ranks=2)
    assert (tmp_path / "b.zarr" / "zarr.json").exists()
    assert np.allclose(np.load(tmp_path / "c.npy"), x)
    zarr = pytest.importorskip("zarr")
    assert np.allclose(zarr.open_array(tmp_path / "b.zarr")[...], np.fft.rfftn(x))
