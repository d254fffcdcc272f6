"""What fluidfft's methods on one process share."""

from __future__ import annotations

from typing import Any

import numpy as np
from fluiddyn.calcul.easypyfft import nthreads  # type: ignore[import-not-found]

from ferrier import fft


class Sequential:
    """In the place of the plans of pyFFTW that fluidfft's own classes have. `fft` is scaled by 1/N, `ifft` is not."""

    def _prepare(self, shape: tuple[int, ...]) -> None:
        self.shapeX = tuple(int(n) for n in shape)
        self.shapeK = self.shapeK_seq = self.shapeK_loc = (*self.shapeX[:-1], self.shapeX[-1] // 2 + 1)
        self.coef_norm = int(np.prod(self.shapeX))
        self.inv_coef_norm = 1.0 / self.coef_norm

    @staticmethod
    def empty_aligned(shape: Any, dtype: Any = np.float64) -> np.ndarray:
        return np.empty(shape, dtype)

    def fft(self, fieldX: np.ndarray) -> np.ndarray:  # noqa: N803
        return fft.rfftn(fieldX, norm="forward", workers=nthreads)

    def ifft(self, fieldK: np.ndarray) -> np.ndarray:  # noqa: N803
        return fft.irfftn(fieldK, self.shapeX, norm="forward", workers=nthreads)

    def fft_as_arg(self, fieldX: np.ndarray, fieldK: np.ndarray) -> None:  # noqa: N803
        fft.rfftn(fieldX, norm="forward", workers=nthreads, out=fieldK)

    def ifft_as_arg(self, fieldK: np.ndarray, fieldX: np.ndarray) -> None:  # noqa: N803
        fft.irfftn(fieldK, self.shapeX, norm="forward", workers=nthreads, out=fieldX)

    ifft_as_arg_destroy = ifft_as_arg

    def create_arrayX(self, value: float | None = None, shape: Any = None) -> np.ndarray:  # noqa: N802
        return _filled(self.shapeX if shape is None else shape, np.float64, value)

    def create_arrayK(self, value: complex | None = None, shape: Any = None) -> np.ndarray:  # noqa: N802
        return _filled(self.shapeK if shape is None else shape, np.complex128, value)


def _filled(shape: Any, dtype: Any, value: complex | None) -> np.ndarray:
    array = np.empty(shape, dtype)
    if value is not None:
        array.fill(value)
    return array
