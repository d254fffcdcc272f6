"""Ferrier: fast Fourier transforms, on one process or distributed.

`ferrier.fft` has the functions of `scipy.fft`; `ferrier.backend` makes `scipy.fft` itself use them.
"""

from __future__ import annotations

import os as _os

from ferrier import _ferrier, fft
from ferrier._backend import backend
from ferrier._ferrier import FerrierError, ToleranceError, TransportError, __version__

__all__ = ["FerrierError", "ToleranceError", "TransportError", "__version__", "backend", "fft"]

# The threads of plans are not copied to a child process.
_os.register_at_fork(after_in_child=_ferrier.after_fork)
