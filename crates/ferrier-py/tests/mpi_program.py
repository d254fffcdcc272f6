"""A program for `mpiexec -n N python mpi_program.py`: mpi4py's communicators, sub-communicators, the look-alike."""

import numpy as np
from mpi4py import MPI

import ferrier
from ferrier.mpi4py_fft import PFFT, newDistArray

world = MPI.COMM_WORLD
whole = np.random.default_rng(7).standard_normal((12, 10, 14))
exact = np.fft.rfftn(whole)


def same(got, expected):
    assert np.linalg.norm(got - expected) <= 1e-13 * np.linalg.norm(expected)


problem = ferrier.Problem(whole.shape, "r2c", input="bricks", output="pencils:0")
with ferrier.Plan(problem, world, threads=1) as plan:
    assert plan.comm.transport == "mpi" and (plan.comm.rank, plan.comm.size) == (world.rank, world.size)
    modes = plan.forward(whole[plan.input_slice])
    same(np.asarray(modes), exact[plan.output_slice])
    same(modes.gather(), exact)
    root = modes.gather(0)
    assert root is None if world.rank else np.allclose(root, exact)

half = world.Split(world.rank % 2)
plan = ferrier.Plan(ferrier.Problem(whole.shape, "r2c"), half, threads=1)
same(plan.forward(whole[plan.input_slice]).gather(), exact)

fft = PFFT(world, whole.shape, dtype=float, threads=1)
u, u_hat = newDistArray(fft, False), newDistArray(fft)
u[:] = whole[fft.local_slice(False)]
fft.forward(u, u_hat)
same(np.asarray(u_hat), exact[fft.local_slice(True)] / whole.size)
if world.rank == 0:
    print(f"{world.size} ranks agree with numpy ({MPI.Get_library_version().splitlines()[0][:40]})")
