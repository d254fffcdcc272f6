"""fluidfft's method `fft3d.mpi_with_ferrier`."""

from __future__ import annotations

from typing import Any

import numpy as np
from fluiddyn.util import mpi  # type: ignore[import-not-found]
from fluidfft.fft3d.base import BaseFFTMPI  # type: ignore[import-not-found]

from ferrier._layout import Layout
from ferrier._plan import Plan, Problem


class FFT3DMPIWithFerrier(BaseFFTMPI):
    """Transforms of three axes over all ranks, in slabs. The spectrum has its first two axes exchanged, as that of FFTW-MPI's
    transposed transforms: data is exchanged once. `fft` is scaled by 1/N, `ifft` is not."""

    def __init__(self, n0: int, n1: int, n2: int) -> None:
        shape = (int(n0), int(n1), int(n2))
        problem = Problem(
            shape, "r2c", input=Layout("slabs:0"), output=Layout("slabs:1", order=(1, 0, 2)), norm="forward"
        )
        comm = mpi.comm if mpi.nb_proc > 1 else None
        self._plan = Plan(problem, comm, threads=1)
        self._shape = shape
        boxes = self._plan.input_slice, self._plan.output_slice
        self._first_x = tuple(s.start for s in boxes[0])
        self._local_x = tuple(s.stop - s.start for s in boxes[0])
        z, y, x = boxes[1]
        self._first_k = (y.start, z.start, x.start)
        self._local_k = tuple(s.stop - s.start for s in (y, z, x))
        self.shapeX, self.shapeK = self._local_x, self._local_k
        super().__init__(*shape)

    def get_dimX_K(self) -> tuple[int, int, int]:  # noqa: N802
        return 1, 0, 2

    def get_seq_indices_first_K(self) -> tuple[int, ...]:  # noqa: N802
        return self._first_k

    def get_seq_indices_first_X(self) -> tuple[int, ...]:  # noqa: N802
        return self._first_x

    def get_shapeX_seq(self) -> tuple[int, ...]:  # noqa: N802
        return self._shape

    def get_shapeX_loc(self) -> tuple[int, ...]:  # noqa: N802
        return self._local_x

    def get_shapeK_seq(self) -> tuple[int, ...]:  # noqa: N802
        n0, n1, n2 = self._shape
        return n1, n0, n2 // 2 + 1

    def get_shapeK_loc(self) -> tuple[int, ...]:  # noqa: N802
        return self._local_k

    def create_arrayX(self, value: float | None = None, shape: Any = None) -> np.ndarray:  # noqa: N802
        """An array in real space; that of this rank is in memory that the ranks of a node share."""
        shape = self._local_x if shape is None else tuple(shape)
        array = np.asarray(self._plan.make_input()) if shape == self._local_x else np.empty(shape)
        return _filled(array, value)

    def create_arrayK(self, value: complex | None = None, shape: Any = None) -> np.ndarray:  # noqa: N802
        """An array in Fourier space."""
        shape = self._local_k if shape is None else tuple(shape)
        own = shape == self._local_k
        array = np.asarray(self._plan.make_output()).transpose(1, 0, 2) if own else np.empty(shape, np.complex128)
        return _filled(array, value)

    def fft_as_arg(self, fieldX: np.ndarray, fieldK: np.ndarray) -> None:  # noqa: N803
        self._plan.forward(fieldX, fieldK.transpose(1, 0, 2))

    def ifft_as_arg(self, fieldK: np.ndarray, fieldX: np.ndarray) -> None:  # noqa: N803
        self._plan.backward(fieldK.transpose(1, 0, 2), fieldX)

    ifft_as_arg_destroy = ifft_as_arg

    def fft(self, fieldX: np.ndarray) -> np.ndarray:  # noqa: N803
        spectrum = np.empty(self._local_k, np.complex128)
        self.fft_as_arg(fieldX, spectrum)
        return spectrum

    def ifft(self, fieldK: np.ndarray) -> np.ndarray:  # noqa: N803
        field = np.empty(self._local_x)
        self.ifft_as_arg(fieldK, field)
        return field


def _filled(array: np.ndarray, value: complex | None) -> np.ndarray:
    if value is not None:
        array.fill(value)
    return array


FFTclass = FFT3DMPIWithFerrier
