"""The interface of mpi4py-fft: `from ferrier.mpi4py_fft import PFFT, newDistArray`.

For programs that use its `PFFT` and distributed arrays. `forward` is scaled by 1/N unless `normalize=False` is passed, `backward` is not.
Parts of arrays lie where mpi4py-fft has them. Transforms of up to three axes are plans of Ferrier's; those of more are done group
by group, as mpi4py-fft does them. With `padding`, the highest mode of an axis of even length is kept as it is, where
mpi4py-fft takes the mean of the two frequencies of the padded axis.
"""

from ferrier.mpi4py_fft.distarray import DistArray, newDistArray
from ferrier.mpi4py_fft.mpifft import PFFT
from ferrier.mpi4py_fft.pencil import Subcomm

__all__ = ["PFFT", "DistArray", "Subcomm", "newDistArray"]
