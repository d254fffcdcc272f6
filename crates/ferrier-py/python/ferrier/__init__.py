"""Ferrier: fast Fourier transforms, on one process or distributed.

`ferrier.fft` has the functions of `scipy.fft`; `ferrier.backend` makes `scipy.fft` itself use them. `Plan` transforms
arrays that are distributed over the ranks of mpi4py, or over threads of this process (`run`); `ferrier.mpi4py_fft` has
the interface of mpi4py-fft.
"""

from __future__ import annotations

import os as _os

from ferrier import _ferrier, fft
from ferrier._array import DistributedArray
from ferrier._backend import backend
from ferrier._ferrier import Comm, FerrierError, ToleranceError, TransportError, __version__
from ferrier._files import transform
from ferrier._gpu import GpuArray
from ferrier._layout import Layout
from ferrier._pictures import Picture, timeline
from ferrier._plan import Plan, Problem, as_comm, run

__all__ = [
    "Comm",
    "DistributedArray",
    "FerrierError",
    "GpuArray",
    "Layout",
    "Picture",
    "Plan",
    "Problem",
    "ToleranceError",
    "TransportError",
    "__version__",
    "as_comm",
    "backend",
    "fft",
    "run",
    "timeline",
    "transform",
]

# The threads of plans are not copied to a child process.
_os.register_at_fork(after_in_child=_ferrier.after_fork)
