"""A program for `mpiexec -n N python mpi_program.py`: mpi4py's communicators, sub-communicators, the look-alike."""

import numpy as np
from mpi4py import MPI

import ferrier
from ferrier.mpi4py_fft import PFFT, DistArray, newDistArray

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
# As in mpi4py-fft's examples.
z0 = DistArray((16, 14, 12), dtype=float, alignment=0)
z0[:] = whole[0, 0, 0] + np.arange(z0.size).reshape(z0.shape)
z1 = z0.redistribute(2).redistribute(1)
assert np.isclose(world.allreduce(np.sum(z0)), world.allreduce(np.sum(z1)))
fft = PFFT(world, darray=z1, axes=(0, 2, 1), threads=1)
modes = fft.forward(z1.copy(), newDistArray(fft))
same(fft.backward(modes, newDistArray(fft, False)), np.asarray(z1))
m0 = DistArray((6, 5, 4, 3, 6), dtype=float, alignment=2)
m0[:] = world.rank
m1 = m0.redistribute(4)
assert np.array_equal(m1.redistribute(out=np.zeros_like(m0)), m0) and m1.alignment == 4
t0 = DistArray((3, 3, 6, 5, 6), dtype=float, val=1, alignment=2, rank=2)
t0[:] = world.rank
assert np.array_equal(t0.redistribute(1).redistribute(out=np.zeros_like(t0)), t0)
part = t0.get((0, 0, 0, slice(None), 0))
assert part is None if world.rank else part.shape == (5,)

if world.rank == 0:
    print(f"{world.size} ranks agree with numpy ({MPI.Get_library_version().splitlines()[0][:40]})")
