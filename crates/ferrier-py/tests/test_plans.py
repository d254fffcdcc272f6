"""Plans of distributed arrays, on threads of this process."""

import functools
import os

import numpy as np
import pytest

import ferrier

scipy_fft = pytest.importorskip("scipy.fft")


def field(shape, dtype=complex, seed=1):
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    return (real + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else real).astype(dtype)


def close(got, expected, factor=1.0):
    epsilon = np.finfo(expected.dtype).eps
    assert got.dtype == expected.dtype and got.shape == expected.shape
    assert np.linalg.norm(got - expected) <= factor * 5 * epsilon * np.log2(max(expected.size, 2)) * np.linalg.norm(expected)


LAYOUTS = ["slabs:0", "slabs:1", "pencils:2", "bricks", ferrier.Layout("bricks", order="F"), ferrier.Layout.slabs(1, order=(2, 0, 1))]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("layouts", [(0, 1), (2, 3), (3, 4), (5, 2), (4, 5)])
def test_forward_and_backward_in_every_layout(ranks, layouts):
    whole = field((6, 7, 8))
    problem = ferrier.Problem(whole.shape, input=LAYOUTS[layouts[0]], output=LAYOUTS[layouts[1]])

    def work(comm):
        plan = ferrier.Plan(problem, comm)
        x = plan.make_input()
        x[...] = whole[plan.input_slice]
        modes = plan.forward(x)
        assert isinstance(modes, ferrier.DistributedArray)
        assert modes.global_shape == whole.shape and modes.local_slice == plan.output_slice
        back = plan.backward(modes)
        close(np.asarray(back), np.asarray(x), 2)
        # Arrays of the user's own, strided or of another order, give the same.
        again = plan.forward(np.asfortranarray(whole)[plan.input_slice])
        assert np.array_equal(again, modes)
        doubled, everywhere = (2 * modes).gather(0), modes.gather()
        assert doubled is None if comm.rank else np.array_equal(doubled, 2 * everywhere)
        return everywhere

    for modes in ferrier.run(ranks, work):
        close(modes, np.fft.fftn(whole))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("batch", [1, 3])
def test_real_transforms_in_place_and_batches(dtype, batch):
    shape = (6, 8, 10) if batch == 1 else (batch, 6, 8, 10)
    whole = field(shape, dtype)
    expected = np.fft.rfftn(whole.astype("f8"), axes=(-3, -2, -1)).astype("c8" if dtype == "f4" else "c16")

    def work(comm):
        problem = ferrier.Problem((6, 8, 10), "r2c", batch=batch)
        with ferrier.Plan(problem, comm, dtype=dtype) as plan:
            part = (..., *plan.input_slice)
            modes = plan.forward(whole[part])
            real, spectrum = plan.make_in_place()
            real[...] = whole[part]
            assert plan.forward_in_place((real, spectrum)) is spectrum
            close(np.asarray(spectrum), np.asarray(modes))
            plan.backward_in_place((real, spectrum))
            close(np.asarray(real), np.ascontiguousarray(whole[part]), 4)
            scaled = plan.forward(whole[part], scale=0.5)
            close(np.asarray(scaled), np.asarray(modes) / 2)
            return modes.gather()

    for modes in ferrier.run(2, work):
        close(modes, expected)


@pytest.mark.parametrize("shape", [(30,), (12, 10)])
def test_one_and_two_axes(shape):
    whole = field(shape)

    def work(comm):
        plan = ferrier.Plan(ferrier.Problem(shape, norm="ortho"), comm)
        modes = plan.forward(whole[plan.input_slice])
        return modes.gather(), modes.redistribute("slabs:-1").gather()

    for modes, again in ferrier.run(2, work):
        close(modes, np.fft.fftn(whole, norm="ortho"))
        assert np.array_equal(modes, again)


def test_redistribution():
    whole = field((5, 6, 7), float)

    def work(comm):
        plan = ferrier.Plan(ferrier.Problem(whole.shape, "dct2", input="bricks"), comm)
        x = plan.make_input()
        x[...] = whole[plan.input_slice]
        moved = x.redistribute(ferrier.Layout("pencils:0", order="F"))
        assert np.array_equal(moved, whole[moved.local_slice])
        assert moved.dtype == whole.dtype
        # Results of other types keep their place.
        for dtype in ("?", "i2", "f4", "c16", "m8[s]"):
            cast = x.astype(dtype)
            turned = cast.redistribute("slabs:2")
            assert turned.dtype == np.dtype(dtype) and np.array_equal(turned, whole.astype(dtype)[turned.local_slice])
        with pytest.raises(ValueError, match="no place"):
            _ = x[0].layout
        return moved.gather(1)

    first, second, third = ferrier.run(3, work)
    assert first is None and third is None and np.array_equal(second, whole)


def test_mixed_kinds_and_operators():
    n = 16
    at = 2 * np.pi * np.arange(n) / n
    wave = np.sin(at)[:, None, None] * np.cos(2 * at)[None, :, None] * np.ones(n)

    def work(comm):
        plan = ferrier.Plan(ferrier.Problem((n, n, n), "r2c", operators=True), comm)
        part = plan.input_slice
        close(np.asarray(plan.apply(wave[part], "laplacian")), -5 * wave[part], 100)
        close(np.asarray(plan.apply(-5 * wave[part], "inverse_laplacian")), wave[part], 100)
        along = np.cos(at)[:, None, None] * np.cos(2 * at)[None, :, None] * np.ones(n)
        close(np.asarray(plan.apply(wave[part], "derivative", 0)), along[part], 100)
        with pytest.raises(ValueError, match="operator is one of"):
            plan.apply(wave[part], "dance")

    ferrier.run(2, work)


def test_tolerance_and_certificate():
    whole = field((16, 16, 16))

    def work(comm):
        plan = ferrier.Plan(ferrier.Problem(whole.shape, tolerance=1e-4), comm)
        modes = plan.forward(whole[plan.input_slice])
        return plan.certificate, modes.gather(), plan.wire_bytes

    for certificate, modes, sent in ferrier.run(4, work, nodes=2):
        exact = np.fft.fftn(whole)
        assert certificate["bound"] <= 1e-4 and sent > 0
        assert 1e-12 < np.linalg.norm(modes - exact) / np.linalg.norm(exact) <= certificate["bound"]


def test_what_a_plan_tells():
    def work(comm):
        plan = ferrier.Plan(ferrier.Problem((8, 8, 8), input="bricks"), comm, exchange="all_to_allv", grid=(2, 2))
        plan.forward(np.ones((4, 4, 8))[: plan.input_slice[0].stop - plan.input_slice[0].start])
        picture = ferrier.timeline(plan)
        return repr(plan), plan.memory, plan.notes, plan.show(), plan.predicted, picture, plan.rejected

    for text, memory, notes, picture, predicted, timeline, rejected in ferrier.run(4, work):
        assert "fft axis" in text and "all_to_allv" in text
        assert memory["total"] > 0 and isinstance(notes, list)
        assert picture._repr_svg_().startswith("<svg") and "fft axis" in picture.svg
        assert timeline.svg.count("rank ") == 4
        assert predicted["seconds"] > 0 and len(predicted["steps"]) > 1
        assert all(ratio > 0 for _, ratio in rejected)


def test_errors():
    with pytest.raises(ferrier.FerrierError, match=r"expected the shape \(4, 4, 4\)"):
        ferrier.Plan((4, 4, 4)).forward(np.ones((4, 4)))
    with pytest.raises(TypeError, match="unknown choice exchanges"):
        ferrier.Plan((4, 4, 4), exchanges="ring")
    with pytest.raises(ferrier.FerrierError, match="ring, hierarchical|direct"):
        ferrier.Plan((4, 4, 4), exchange="dance")
    with pytest.raises(ValueError, match="kind is one of"):
        ferrier.Problem((4, 4, 4), ["dct9", "c2c", "c2c"])
    with pytest.raises(ValueError, match="a layout is"):
        ferrier.Problem((4, 4, 4), input="cubes")
    with pytest.raises(TypeError, match="mpi4py"):
        ferrier.Plan((4, 4, 4), 7)
    with ferrier.Plan((4, 4, 4)) as plan:
        pass
    with pytest.raises(ferrier.FerrierError, match="closed"):
        plan.forward(np.ones((4, 4, 4)))


def test_an_exception_of_one_rank_ends_all():
    def work(comm):
        if comm.rank == 1:
            raise KeyError("planted")
        ferrier.Plan((4, 4, 4), comm)
        comm.barrier()

    with pytest.raises(KeyError, match="planted"):
        ferrier.run(3, work)


def test_groups():
    def work(comm):
        comm.barrier()
        assert comm.sum([1.0, comm.rank]) == [3.0, 3.0] and comm.max([comm.rank]) == [2.0]
        assert comm.all_gather(bytes([comm.rank])) == [b"\0", b"\1", b"\2"]
        return comm.rank, comm.size, comm.threads, comm.nodes

    assert ferrier.run(3, work, threads=2) == [(rank, 3, 2, [0, 0, 0]) for rank in range(3)]


def test_a_plan_of_the_parent_process_says_so():
    plan = ferrier.Plan((64, 64, 64), threads=2)
    x = field((64, 64, 64))
    plan.forward(x)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            plan.forward(x)
        except ferrier.FerrierError as error:
            code = 0 if "os.fork" in str(error) else 2
        finally:
            del plan
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    plan.forward(x)


def test_strides_signs_and_real_input():
    whole = field((8, 9, 10))

    def work(comm):
        part = slice(4 * comm.rank, 4 * comm.rank + 4)
        ghosts = np.zeros((6, 11, 12), complex)
        inner = ghosts[1:-1, 1:-1, 1:-1]
        inner[...] = whole[part]
        steps = [step // 16 for step in inner.strides]
        plan = ferrier.Plan(ferrier.Problem(whole.shape, input_strides=steps, sign=1, norm="none"), comm)
        close(np.asarray(plan.forward(inner)), whole.size * np.fft.ifftn(whole)[plan.output_slice])
        # Elsewhere than the plan expects them: copied.
        close(np.asarray(plan.forward(whole[part])), whole.size * np.fft.ifftn(whole)[plan.output_slice])
        back = np.zeros_like(ghosts)
        plan.backward(plan.forward(inner), back[1:-1, 1:-1, 1:-1], scale=1 / whole.size)
        close(back, ghosts, 4)
        with pytest.raises(ferrier.FerrierError, match="strides"):
            plan.backward(plan.forward(inner), np.zeros_like(whole[part]))
        real = ferrier.Plan(ferrier.Problem(whole.shape, real_input=True), comm)
        close(np.asarray(real.forward(whole[part].real)), np.fft.fftn(whole.real)[real.output_slice])
        in_place = ferrier.Plan(whole.shape, comm)
        x = whole[part].copy()
        assert in_place.forward(x, out=x) is x
        close(x, np.fft.fftn(whole)[in_place.output_slice])

    ferrier.run(2, work)
    with pytest.raises(ValueError, match="input_strides: expected 3 strides"):
        ferrier.Problem((4, 4, 4), input_strides=(1, 2))
    with pytest.raises(ValueError, match="sign is"):
        ferrier.Problem((4, 4, 4), sign=2)


def test_the_look_alike_of_mpi4py_fft():
    from ferrier.mpi4py_fft import PFFT, newDistArray

    whole = field((8, 9, 10), float)

    def work(comm):
        fft = PFFT(comm, whole.shape, axes=(0, 1, 2), dtype=float)
        u, u_hat = newDistArray(fft, False), newDistArray(fft)
        u[:] = whole[fft.local_slice(False)]
        assert fft.forward(u, u_hat) is u_hat
        back = fft.backward(u_hat, newDistArray(fft, False))
        close(np.asarray(back), np.asarray(u), 4)
        assert u.local_slice() == fft.local_slice(False) and u_hat.global_shape == (8, 9, 6)
        vector = newDistArray(fft, True, rank=1, val=2)
        assert vector.shape[0] == 3 and vector.global_shape == (3, 8, 9, 6) and vector[1].global_shape == (8, 9, 6)
        turned = u.redistribute(0)
        assert np.array_equal(turned, whole[turned.local_slice()])
        padded = PFFT(comm, (8, 8, 8), dtype=complex, padding=1.5)
        assert padded.global_shape(False) == (12, 12, 12) and padded.global_shape(True) == (8, 8, 8)
        plane = PFFT(comm, (12, 12), axes=(0, 1), dtype=complex, grid=(-1,))
        assert fft.shape() == u_hat.shape and fft.local_slice() == u_hat.local_slice() and fft.dimensions == 3
        return u_hat.gather(), plane.shape(False)

    for modes, shape in ferrier.run(4, work):
        close(modes, np.fft.rfftn(whole) / whole.size)
        assert shape == (3, 12)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_kinds_and_more_axes_of_the_look_alike(ranks):
    """The examples of mpi4py-fft's documentation."""
    from ferrier.mpi4py_fft import PFFT, newDistArray
    from ferrier.mpi4py_fft.fftw import dctn, dstn, idctn, idstn, irfftn, rfftn
    from ferrier.mpi4py_fft.pencil import Subcomm

    kind3 = {"type": 3}
    dct, idct = functools.partial(dctn, **kind3), functools.partial(idctn, **kind3)
    dst, idst = functools.partial(dstn, **kind3), functools.partial(idstn, **kind3)
    three, five = field((6, 7, 8), float), field((5, 6, 7, 8, 3), float)
    cases = [
        (three, {"axes": ((0,), (1, 2)), "transforms": {(0,): (rfftn, irfftn), (1, 2): (dct, idct)}}, scipy_fft.rfft(scipy_fft.dctn(three, 3, axes=(1, 2)), axis=0) / (6 * 14 * 16)),
        (three, {"axes": (2, 0, 1)}, scipy_fft.rfftn(three, axes=(2, 0, 1)) / three.size),
        (three, {"collapse": True, "grid": (-1,), "transforms": {(1, 2): (dct, idct)}}, scipy_fft.rfft(scipy_fft.dctn(three, 3, axes=(1, 2)), axis=0) / (6 * 14 * 16)),
        (five, {"axes": ((0,), (1, 2), (3, 4)), "grid": (-1,), "transforms": {(1, 2): (dct, idct), (3, 4): (dst, idst)}}, scipy_fft.rfft(scipy_fft.dctn(scipy_fft.dstn(five, 3, axes=(3, 4)), 3, axes=(1, 2)), axis=0) / (5 * 12 * 14 * 16 * 6)),
        (five, {}, scipy_fft.rfftn(five) / five.size),
        (five.astype(complex), {"axes": (0, 1, 2, 3)}, scipy_fft.fftn(five, axes=(0, 1, 2, 3)) / (5 * 6 * 7 * 8)),
    ]

    if ranks == 1:
        # All axes are whole then, and collapse to one group, for which there is no entry.
        del cases[2]

    def work(comm):
        for whole, options, expected in cases:
            fft = PFFT(comm, whole.shape, dtype=whole.dtype, **options)
            u = newDistArray(fft, False)
            u[:] = whole[fft.local_slice(False)]
            u_hat = fft.forward(u)
            assert fft.global_shape(True) == expected.shape
            close(np.asarray(u_hat), expected[fft.local_slice(True)], 4)
            close(np.asarray(fft.backward(u_hat, np.zeros_like(u))), np.asarray(u), 8)
        fft = PFFT(Subcomm(comm, [1, 0, 1]), three.shape, axes=(0, 1, 2), dtype=float)
        assert fft.local_slice(False)[0] == slice(0, 6)
        turned = PFFT(comm, darray=u.redistribute(0)) if u.ndim < 4 else None
        assert turned is None or turned.axes[-1] == (0,)

    ferrier.run(ranks, work)
    with pytest.raises(ValueError, match="transforms are"):
        PFFT(None, (4, 4, 4), transforms={(2,): (np.sum, np.sum)})
