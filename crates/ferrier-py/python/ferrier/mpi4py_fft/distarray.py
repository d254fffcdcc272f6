"""Distributed arrays with the attributes of mpi4py-fft's."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from ferrier._array import DistributedArray, distributed
from ferrier._ferrier import Comm
from ferrier._layout import Layout, Slices
from ferrier._plan import as_comm, redistributed
from ferrier.mpi4py_fft.pencil import Subcomm, boxes


def _world() -> Any:
    try:
        from mpi4py import MPI  # type: ignore[import-not-found]
    except ImportError:
        return None
    return MPI.COMM_WORLD


class DistArray(DistributedArray):
    """A distributed array with the attributes of mpi4py-fft's. The first `rank` axes are components.

    `DistArray(shape, subcomm=None, val=None, dtype=float, alignment=None, rank=0)`: `subcomm` is a grid of ranks (zeros are
    free) or a `Subcomm`, by default that of all ranks with `alignment`, or the last axis, whole.
    """

    _rank: int = 0
    _alignment: int | None = None

    def __new__(
        cls,
        global_shape: Sequence[int],
        subcomm: Any = None,
        val: Any = None,
        dtype: Any = float,
        buffer: Any = None,
        strides: Any = None,
        alignment: int | None = None,
        rank: int = 0,
    ) -> DistArray:
        shape = tuple(int(n) for n in global_shape)
        lead, whole = shape[:rank], shape[rank:]
        if subcomm is None:
            subcomm = [0] * len(whole)
            subcomm[-1 if alignment is None else alignment] = 1
        grid = subcomm if isinstance(subcomm, Subcomm) else Subcomm(_world(), subcomm)
        if alignment is not None and grid.grid[alignment] != 1:
            raise ValueError(f"the grid {grid.grid} splits axis {alignment}, which is to be whole")
        comm = as_comm(grid.comm)
        layout = Layout.of_boxes(boxes(whole, grid.grid))
        layout.shape = whole
        local = lead + tuple(s.stop - s.start for s in layout.boxes[comm.rank])
        array = dist_array(np.ndarray(local, dtype, buffer, 0, strides), comm, layout, rank, alignment)
        if buffer is None and isinstance(val, Number):
            array.fill(val)
        return array

    def __array_finalize__(self, obj: Any) -> None:
        super().__array_finalize__(obj)
        self._rank = getattr(obj, "_rank", 0)
        self._alignment = getattr(obj, "_alignment", None)
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
        return [1] * self._rank + grid_of(self.layout)

    @property
    def alignment(self) -> int:
        """An axis that is whole on every rank: the one that was asked for, or the last."""
        grid = self.commsizes[self._rank :]
        if self._alignment is not None and grid[self._alignment] == 1:
            return self._alignment
        return max(axis for axis, parts in enumerate(grid) if parts == 1)

    def local_slice(self) -> Slices:  # type: ignore[override]
        """This rank's part of the whole array."""
        return tuple(slice(0, n) for n in self.shape[: self._rank]) + self.layout.boxes[self.comm.rank]

    def gather(self, root: int | None = None) -> np.ndarray | None:
        lead, whole = self.shape[: self._rank], self.layout.shape or ()
        parts = self.comm.all_gather(np.ascontiguousarray(self).tobytes())
        if root is not None and self.comm.rank != root:
            return None
        result = np.empty(lead + whole, self.dtype)
        for box, part in zip(self.layout.boxes, parts):
            view = result[(..., *box)]
            view[...] = np.frombuffer(part, self.dtype).reshape(view.shape)
        return result

    def get(self, gslice: Any) -> np.ndarray | None:
        """A part of the whole array, on rank 0. Collective."""
        whole = self.gather(0)
        return None if whole is None else whole[gslice]

    def redistribute(self, axis: int | None = None, out: DistArray | None = None) -> DistArray:  # type: ignore[override]
        """The same array with `axis` whole on every rank, or in the layout of `out`. Collective."""
        if out is not None:
            out[...] = moved(self, out.layout, self._rank)
            return out
        assert axis is not None
        grid, axis = self.commsizes[self._rank :], axis % self.dimensions
        if grid[axis] == 1:
            self._alignment = axis
            return self
        # The parts of the axis go to the one that is whole now.
        layout = exchanged(self.layout, self.alignment, axis)
        result = moved(self, layout, self._rank)
        return dist_array(result, self.comm, layout, self._rank, axis)


def grid_of(layout: Layout) -> list[int]:
    """The number of parts of each axis."""
    return [len({(box[a].start, box[a].stop) for box in layout.boxes}) for a in range(len(layout.shape or ()))]


def exchanged(layout: Layout, whole: int, axis: int) -> Layout:
    """The layout in which `axis` is whole and its parts are those of `whole`; ranks keep their places in all other axes."""
    shape = layout.shape or ()
    grid = grid_of(layout)
    place = {start: i for i, start in enumerate(sorted({box[axis].start for box in layout.boxes}))}
    parts = boxes(shape[whole : whole + 1], [grid[axis]])
    made = []
    for box in layout.boxes:
        new = list(box)
        new[axis], new[whole] = slice(0, shape[axis]), parts[place[box[axis].start]][0]
        made.append(tuple(new))
    result = Layout.of_boxes(made)
    result.shape = shape
    return result


def moved(array: DistributedArray, layout: Layout, rank: int = 0) -> np.ndarray:
    """This rank's part in another layout of an array of any number of axes, the first `rank` of which are components. Collective."""
    comm, before = array.comm, array.layout
    boxes = before.boxes[comm.rank], layout.boxes[comm.rank]
    changed = [a for a in range(len(boxes[0])) if any(p[a] != q[a] for p, q in zip(before.boxes, layout.boxes))]
    plain = np.asarray(array)
    ndim = plain.ndim - rank
    if not changed:
        return plain.copy()
    if ndim <= 3 and rank == 0:
        source = distributed(plain, comm, before, 1)
        return np.asarray(redistributed(source, layout))
    if len(changed) > 2:
        raise NotImplementedError("arrays of more than three axes are redistributed between layouts that differ in two of them")
    # The axes that differ go last. Ranks that agree in the others exchange their parts: they are a range of the first axis.
    changed = changed if len(changed) == 2 else [changed[0], next(a for a in range(ndim) if a != changed[0])]
    others = [a for a in range(ndim) if a not in changed]
    groups = sorted({tuple(box[a].start for a in others) for box in before.boxes})
    lead = int(np.prod(plain.shape[:rank], initial=1))
    sizes = {}
    for box in before.boxes:
        sizes[tuple(box[a].start for a in others)] = lead * int(np.prod([box[a].stop - box[a].start for a in others], initial=1))
    offsets, total = {}, 0
    for group in groups:
        offsets[group], total = total, total + sizes[group]

    def flat(layout: Layout) -> Layout:
        made = []
        for own, box in zip(before.boxes, layout.boxes):
            group = tuple(own[a].start for a in others)
            made.append((slice(offsets[group], offsets[group] + sizes[group]), box[changed[0]], box[changed[1]]))
        result = Layout.of_boxes(made)
        shape = before.shape or ()
        result.shape = (total, shape[changed[0]], shape[changed[1]])
        return result

    order = [*range(rank), *(a + rank for a in others), *(a + rank for a in changed)]
    turned = np.ascontiguousarray(plain.transpose(order))
    local = turned.reshape(-1, *turned.shape[-2:])
    result = np.asarray(redistributed(distributed(local, comm, flat(before), 1), flat(layout)))
    return result.reshape(turned.shape[:-2] + result.shape[1:]).transpose(np.argsort(order))


def dist_array(array: np.ndarray, comm: Comm, layout: Layout, rank: int, alignment: int | None = None) -> DistArray:
    """An array with its place."""
    view = np.asarray(array).view(DistArray)
    view._place = view._tensor_place = (comm, layout, 1)
    view._rank, view._alignment = rank, alignment
    return view


def newDistArray(pfft: Any, forward_output: bool = True, val: Any = 0, rank: int = 0, view: bool = False) -> Any:  # noqa: N802
    """An array for the output (or input) of `pfft.forward`, filled with `val`. With `rank`, a vector or tensor of them."""
    array = pfft._made(forward_output, rank)
    array[...] = val
    return array.v if view else array
