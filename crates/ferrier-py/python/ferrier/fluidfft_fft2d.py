"""fluidfft's method `fft2d.with_ferrier`."""

from __future__ import annotations

from typing import Any

from fluiddyn.calcul.easypyfft import FFTW2DReal2Complex  # type: ignore[import-not-found]

from ferrier.fluidfft_sequential import Sequential


class FFT2DWithFerrier(Sequential, FFTW2DReal2Complex):
    """Transforms of two axes on one process; `OMP_NUM_THREADS` threads."""

    def __init__(self, n0: int, n1: int) -> None:
        self._prepare((n0, n1))
        self.fft2d, self.ifft2d = self.fft, self.ifft

    @property
    def _numpy_api(self) -> Any:
        import numpy as np

        return np


FFTclass = FFT2DWithFerrier
