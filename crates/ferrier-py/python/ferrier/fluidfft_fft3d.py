"""fluidfft's method `fft3d.with_ferrier`."""

from __future__ import annotations

from typing import Any

from fluiddyn.calcul.easypyfft import FFTW3DReal2Complex  # type: ignore[import-not-found]

from ferrier.fluidfft_sequential import Sequential


class FFT3DWithFerrier(Sequential, FFTW3DReal2Complex):
    """Transforms of three axes on one process; `OMP_NUM_THREADS` threads."""

    def __init__(self, n0: int, n1: int, n2: int) -> None:
        self._prepare((n0, n1, n2))
        self.fft3d, self.ifft3d = self.fft, self.ifft

    def gather_Xspace(self, arr: Any, root: int | None = None) -> Any:  # noqa: N802
        return arr

    def scatter_Xspace(self, arr: Any, root: int | None = None) -> Any:  # noqa: N802
        return arr


FFTclass = FFT3DWithFerrier
