"""Names of transforms for `PFFT(transforms=...)`: `functools.partial(dctn, type=3)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrier.fft import dctn, dstn, fftn, idctn, idstn, ifftn, irfftn, rfftn

__all__ = [
    "aligned", "aligned_like", "dctn", "dstn", "fftn", "idctn", "idstn", "ifftn", "irfftn", "rfftn",
]  # fmt: skip


def aligned(shape: Any, n: int = 32, dtype: Any = float, fill: Any = None) -> np.ndarray:
    """A new array, for programs that use mpi4py-fft's; Ferrier needs no alignment."""
    return np.empty(shape, dtype) if fill is None else np.full(shape, fill, dtype)


def aligned_like(z: np.ndarray, fill: Any = None) -> np.ndarray:
    """A new array of the same shape and type."""
    return np.empty_like(z) if fill is None else np.full_like(z, fill)
