"""The interface of mpi4py-fft: `from ferrier.mpi4py_fft import PFFT, newDistArray`.

For programs that use its `PFFT` and distributed arrays of one to three dimensions. `forward` is scaled by 1/N unless
`normalize=False` is passed, `backward` is not. Parts of arrays lie where mpi4py-fft has them. With `padding`, the highest mode of an
axis of even length is kept as it is, where mpi4py-fft takes the mean of the two frequencies of the padded axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrier._array import DistributedArray, distributed
from ferrier._ferrier import Comm
from ferrier._layout import Layout, Slices
from ferrier._plan import Plan, Problem, as_comm

__all__ = ["PFFT", "DistArray", "newDistArray"]


def _part(n: int, parts: int, index: int) -> slice:
    """The first ones get the elements that are left over."""
    size, rest = divmod(n, parts)
    start = index * size + min(index, rest)
    return slice(start, start + size + (index < rest))


def _boxes(shape: Sequence[int], grid: Sequence[int]) -> list[Slices]:
    """The boxes of a grid of ranks, the last axis of the grid fastest."""
    return [tuple(_part(n, g, i) for n, g, i in zip(shape, grid, index)) for index in np.ndindex(*grid)]


def _divided(ranks: int, wanted: Sequence[int]) -> list[int]:
    """The grid of so many ranks; entries that are not positive are free and as equal as can be, largest first."""
    fixed = int(np.prod([g for g in wanted if g > 0], initial=1))
    free = [i for i, g in enumerate(wanted) if g <= 0]
    if ranks % fixed or (not free and fixed != ranks):
        raise ValueError(f"the grid {tuple(wanted)} does not fit {ranks} ranks")
    best: list[int] = []

    def search(left: int, count: int, largest: int, chosen: list[int]) -> None:
        nonlocal best
        if count == 0:
            if left == 1 and (not best or max(chosen) < max(best)):
                best = chosen
            return
        for size in range(min(left, largest), 0, -1):
            if left % size == 0:
                search(left // size, count - 1, size, [*chosen, size])

    search(ranks // fixed, len(free), ranks, [])
    grid = list(wanted)
    for i, size in zip(free, best):
        grid[i] = size
    return grid


class DistArray(DistributedArray):
    """A distributed array with the attributes of mpi4py-fft's. The first `rank` axes are components."""

    _rank: int = 0

    def __array_finalize__(self, obj: Any) -> None:
        super().__array_finalize__(obj)
        self._rank = getattr(obj, "_rank", 0)
        # A component of a tensor is a distributed array too.
        place = getattr(obj, "_tensor_place", None) or getattr(obj, "_place", None)
        self._tensor_place = place
        if place is not None and self._place is None:
            local = tuple(s.stop - s.start for s in place[1].boxes[place[0].rank])
            if self.shape[max(self.ndim - len(local), 0) :] == local:
                self._place = place
                self._rank = self.ndim - len(local)

    @property
    def v(self) -> np.ndarray:
        """The local array as a plain one."""
        return np.asarray(self)

    @property
    def rank(self) -> int:
        """The number of axes of components."""
        return self._rank

    @property
    def dimensions(self) -> int:
        """The number of axes that are distributed."""
        return self.ndim - self._rank

    @property
    def global_shape(self) -> tuple[int, ...]:
        return self.shape[: self._rank] + super().global_shape

    @property
    def substart(self) -> tuple[int, ...]:
        """The first index of this rank's part."""
        return (0,) * self._rank + tuple(s.start for s in self.layout.boxes[self.comm.rank])

    @property
    def commsizes(self) -> list[int]:
        """The number of parts of each axis."""
        boxes = self.layout.boxes
        return [1] * self._rank + [len({(box[a].start, box[a].stop) for box in boxes}) for a in range(self.dimensions)]

    def local_slice(self) -> Slices:  # type: ignore[override]
        """This rank's part of the whole array."""
        return tuple(slice(0, n) for n in self.shape[: self._rank]) + self.layout.boxes[self.comm.rank]

    def gather(self, root: int | None = None) -> np.ndarray | None:
        lead, local = self.shape[: self._rank], self.shape[self._rank :]
        parts = [
            distributed(np.asarray(part), self.comm, self.layout, 1).gather(root)
            for part in np.asarray(self).reshape(-1, *local)
        ]
        if root is not None and self.comm.rank != root:
            return None
        return np.asarray(parts).reshape(lead + (self.layout.shape or ()))

    def get(self, gslice: Any) -> np.ndarray | None:
        """A part of the whole array, on rank 0. Collective."""
        whole = self.gather(0)
        return None if whole is None else whole[gslice]

    def redistribute(self, axis: int | None = None, out: DistArray | None = None) -> DistArray:  # type: ignore[override]
        """The same array with `axis` whole on every rank, or in the layout of `out`. Collective."""
        if out is not None:
            layout = out.layout
        else:
            assert axis is not None
            ndim = self.dimensions
            grid = self.commsizes[self._rank :]
            axis = axis % ndim
            # The parts of the axis go to the one that is whole now.
            whole = next((a for a in range(ndim) if grid[a] == 1 and a != axis), axis)
            grid[whole], grid[axis] = grid[axis], 1
            layout = Layout.of_boxes(_reordered(_boxes(self.layout.shape or (), grid), self.layout, axis, whole))
        local = self.shape[self._rank :]
        parts = [
            distributed(np.asarray(part), self.comm, self.layout, 1).redistribute(layout)
            for part in np.asarray(self).reshape(-1, *local)
        ]
        result = np.stack([np.asarray(part) for part in parts]).reshape(self.shape[: self._rank] + parts[0].shape)
        made = _dist_array(result, self.comm, parts[0].layout, self._rank)
        if out is None:
            return made
        out[...] = made
        return out


def _reordered(boxes: list[Slices], before: Layout, axis: int, whole: int) -> list[Slices]:
    """Boxes of a grid in which two axes were exchanged, for the ranks that had the same place in the other axes."""
    order = sorted(range(len(boxes)), key=lambda rank: [before.boxes[rank][a].start for a in _swapped(len(boxes[0]), axis, whole)])
    result: list[Slices] = [()] * len(boxes)
    for place, rank in enumerate(order):
        result[rank] = boxes[place]
    return result


def _swapped(ndim: int, axis: int, whole: int) -> list[int]:
    axes = list(range(ndim))
    axes[axis], axes[whole] = axes[whole], axes[axis]
    return axes


def _dist_array(array: np.ndarray, comm: Comm, layout: Layout, rank: int) -> DistArray:
    view = array.view(DistArray)
    view._place = view._tensor_place = (comm, layout, 1)
    view._rank = rank
    return view


class _Transform:
    """`fft.forward` and `fft.backward`."""

    def __init__(self, plan: Plan, forward: bool, factor: float) -> None:
        self._plan, self._forward, self._factor = plan, forward, factor
        self._arrays: dict[bool, DistArray] = {}

    def _array(self, output: bool) -> DistArray:
        if output not in self._arrays:
            self._arrays[output] = _made(self._plan, output)
        return self._arrays[output]

    @property
    def input_array(self) -> DistArray:
        """The array that is transformed where none is passed."""
        return self._array(not self._forward)

    @property
    def output_array(self) -> DistArray:
        """The result where no array is passed for it."""
        return self._array(self._forward)

    def __call__(
        self, input_array: Any = None, output_array: Any = None, normalize: bool | None = None, **_: Any
    ) -> Any:
        source = self.input_array if input_array is None else input_array
        target = self.output_array if output_array is None else output_array
        scaled = self._forward if normalize is None else normalize
        call = self._plan.forward if self._forward else self._plan.backward
        return call(source, target, scale=self._factor if scaled else 1.0)


def _made(plan: Plan, output: bool) -> DistArray:
    made = plan.make_output() if output else plan.make_input()
    made[...] = 0
    return _dist_array(made, plan.comm, plan.output_layout if output else plan.input_layout, 0)


class PFFT:
    """Transforms of arrays that are distributed over the ranks of `comm`, as mpi4py-fft has them.

    `forward` and `backward` are called with an input and an output array. The plan is Ferrier's: `fft.plan` tells its
    steps. `backend` is accepted and has no effect; other keywords are choices of Ferrier's planner.
    """

    def __init__(
        self,
        comm: Any,
        shape: int | Sequence[int] | None = None,
        axes: Any = None,
        dtype: Any = float,
        grid: Sequence[int] | None = None,
        padding: bool | float | Sequence[float] = False,
        collapse: bool = False,
        backend: str = "ferrier",
        transforms: Any = None,
        darray: DistArray | None = None,
        slab: bool = False,
        **options: Any,
    ) -> None:
        if transforms is not None:
            raise NotImplementedError("transforms: kinds of axes are given to ferrier.Problem, PFFT does Fourier transforms")
        if darray is not None:
            shape, dtype = darray.global_shape[darray.rank :], darray.dtype
        if shape is None:
            raise ValueError("PFFT needs a shape or a distributed array")
        shape = [int(n) for n in np.atleast_1d(shape)]
        ndim = len(shape)
        if ndim > 3:
            raise NotImplementedError(f"arrays have one to three axes, got {ndim}")
        self.axes = _flat(axes, ndim)
        real = np.dtype(dtype).kind == "f"
        physical = list(shape)
        for axis, factor in zip(self.axes, np.broadcast_to(padding if padding is not False else 1.0, len(self.axes))):
            physical[axis] = int(np.floor(shape[axis] * factor))
        self._shapes = [tuple(physical), tuple(n // 2 + 1 if real and a == self.axes[-1] else n for a, n in enumerate(shape))]
        self.comm = comm
        ours = as_comm(comm)
        grids = self._grids(ours.size, ndim, grid, slab)
        layouts = [Layout.of_boxes(_boxes(extent, parts)) for extent, parts in zip(self._shapes, grids)]
        keep = [None if physical[a] == shape[a] else shape[a] for a in range(ndim)]
        kinds = ["none"] * ndim
        for axis in self.axes:
            kinds[axis] = "r2c" if real and axis == self.axes[-1] else "c2c"
        problem = Problem(physical, kinds, input=layouts[0], output=layouts[1], norm="none", keep=keep)
        self.plan = Plan(problem, ours, dtype=dtype, **options)
        factor = 1.0 / float(np.prod([physical[a] for a in self.axes]))
        self.forward = _Transform(self.plan, True, factor)
        self.backward = _Transform(self.plan, False, factor)

    def _grids(self, ranks: int, ndim: int, grid: Sequence[int] | None, slab: bool) -> list[list[int]]:
        """The parts of each axis before and after: the last transformed axis is whole first, the first one last."""
        last = self.axes[-1]
        if grid is None:
            split = [a for a in range(ndim) if a != last]
            wanted = [1] * ndim
            for axis in split[:1] if slab else split:
                wanted[axis] = 0
        else:
            wanted = [*grid, *[1] * (ndim - len(grid))]
        before = _divided(ranks, wanted) if ndim > 1 else [ranks]
        if ndim == 1:
            return [before, before]
        if before[last] != 1:
            raise ValueError(f"the grid {tuple(before)} splits axis {last}, which is transformed first")
        after, whole = list(before), last
        for axis in reversed(self.axes[:-1]):
            after[whole], after[axis], whole = after[axis], 1, axis
        return [before, after]

    def global_shape(self, forward_output: bool = False) -> tuple[int, ...]:
        """The shape of the whole input, or output, of `forward`."""
        return self._shapes[forward_output]

    def shape(self, forward_output: bool = False) -> tuple[int, ...]:
        """The shape of this rank's part."""
        return tuple(s.stop - s.start for s in self.local_slice(forward_output))

    def local_slice(self, forward_output: bool = False) -> Slices:
        """This rank's part of the whole array."""
        return self.plan.output_slice if forward_output else self.plan.input_slice

    def dtype(self, forward_output: bool = False) -> np.dtype[Any]:
        """The type of the elements."""
        return self.plan.output_dtype if forward_output else self.plan.input_dtype

    def dimensions(self) -> int:
        """The number of axes."""
        return len(self._shapes[0])

    def destroy(self) -> None:
        """Gives the memory of the plan back."""
        self.plan.close()


def _flat(axes: Any, ndim: int) -> list[int]:
    if axes is None:
        return list(range(ndim))
    flat: list[int] = []
    for axis in [axes] if isinstance(axes, int) else axes:
        flat += [axis] if isinstance(axis, int) else list(axis)
    return [axis % ndim for axis in flat]


def newDistArray(pfft: PFFT, forward_output: bool = True, val: float = 0, rank: int = 0, view: bool = False) -> Any:  # noqa: N802
    """An array for the output (or input) of `pfft.forward`, filled with `val`. With `rank`, a vector or tensor of them."""
    plan = pfft.plan
    if rank == 0:
        array = _made(plan, forward_output)
    else:
        layout = plan.output_layout if forward_output else plan.input_layout
        shape = (pfft.dimensions(),) * rank + pfft.shape(forward_output)
        array = _dist_array(np.empty(shape, pfft.dtype(forward_output)), plan.comm, layout, rank)
    array[...] = val
    return array.v if view else array
